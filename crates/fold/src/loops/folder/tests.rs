use super::*;
use crate::loops::{Cursor, Node};
use crate::testing::{loops, probes};
use fastrand::Rng;

const MATCHINGS: [Matching; 4] = [
    Matching::Elastic,
    Matching::Exact { window: WINDOW },
    Matching::Exact { window: 20 },
    Matching::Exact { window: 1 },
];

fn letters(text: &str) -> Vec<u32> {
    text.bytes().filter(|letter| *letter != b' ').map(u32::from).collect()
}

fn fold(matching: Matching, symbols: &[u32]) -> Folded {
    let mut folder = Folder::new(matching);
    symbols.iter().for_each(|&symbol| folder.push(symbol));
    folder.finish()
}

fn letter(symbol: u32) -> String {
    char::from_u32(symbol).unwrap().to_string()
}

/// The blanks only help to read.
fn elastic(text: &str, folded: &str) {
    let symbols = letters(text);
    let result = fold(Matching::Elastic, &symbols);
    assert_sound(&result, &symbols, Matching::Elastic);
    assert_eq!(result.notation(letter), folded, "{text}");
}

fn exact(text: &str, folded: &str) {
    let (symbols, matching) = (letters(text), Matching::Exact { window: WINDOW });
    let result = fold(matching, &symbols);
    assert_sound(&result, &symbols, matching);
    assert_eq!(result.notation(letter), folded, "{text}");
}

fn assert_sound(folded: &Folded, symbols: &[u32], matching: Matching) {
    assert_eq!(folded.loops.validate(), Ok(()));
    assert!(folded.iter().eq(symbols.iter().copied()), "{symbols:?} -> {folded:?}");
    let totals = folded.loops.totals(|node| folded.times.get(node));
    assert!(totals.iter().map(|total| total.0).eq(folded.lengths.iter().copied()), "{folded:?}");
    if matching == Matching::Elastic {
        let events = folded.loops.nodes.iter().filter(|node| matches!(node, Node::Event(_)));
        assert_eq!(events.count(), folded.loops.symbols().len(), "one leaf each: {folded:?}");
        for (at, node) in folded.loops.nodes.iter().enumerate() {
            let Node::Loop { inside } = *node else { continue };
            assert_ne!(folded.times[at].as_constant(), Some(1), "a loop that never loops: {folded:?}");
            let only = match folded.loops.nodes[at + 1] {
                Node::Event(_) => inside == 1,
                Node::Loop { inside: inner } => inside == inner + 1,
            };
            assert!(!only, "a loop of one: {folded:?}");
        }
    }
}

fn depth(folded: &Folded) -> usize {
    let (mut open, mut deepest) = (Vec::new(), 0);
    for (at, node) in folded.loops.nodes.iter().enumerate() {
        while open.pop_if(|end| *end <= at).is_some() {}
        if let Node::Loop { inside } = *node {
            open.push(at + 1 + inside as usize);
            deepest = deepest.max(open.len());
        }
    }
    deepest
}

#[test]
fn plain_loops() {
    for check in [elastic, exact] {
        check("", "");
        check("a", "a");
        check("abc", "a b c");
        check("aaaa", "a(1,4)");
        check("ab ab ab", "a(2,3) b");
        check("x ab ab ab y", "x a(2,3) b y");
        check("aab aab aab", "a(2,3)(1,2) b");
        check("x aab aab aab y x aab aab aab y", "x(4,2) a(2,3)(1,2) b y");
        check("x ababab y x ababab y x ababab y", "x(4,3) a(2,3) b y");
        check("ab ab cd cd cd", "a(2,2) b c(2,3) d");
        check("abab c abab c abab c z", "a(3,3)(2,2) b c z");
    }
}

#[test]
fn figure_1_iterations_that_differ() {
    elastic("ABD ACD", "A(4,2) B(1,1 0) C(1,0 1) D");
    exact("ABD ACD", "A B D A C D");
    elastic("ACD ABCD ABCD ACD", "A(4,4) B(1,0 1 1 0) C D");
}

#[test]
fn figure_2_trailing_iterations() {
    elastic("Eisw Eiswisw Eiswiswisw", "E(4,3) i(3,1 2 3) s w");
    elastic("X abab Y X ababab Y", "X(4,2) a(2,2 3) b Y");
    elastic("X ababab X abab X ab X abababab", "X(3,4) a(2,3 2 1 4) b");
    // Equal iterations only, and folded at once: what trails is left over.
    exact("X abab Y X abab Y", "X(4,2) a(2,2) b Y");
    exact("X abab X ababab", "X(3,2) a(2,2) b a b");
    // An inner loop of more than two iterations that the outer one ends with.
    exact("X aaaa X aaaa X aaaa Z", "X(2,3) a(1,4) Z");
    exact("X ababab X ababab X ababab X ababab", "X(3,4) a(2,3) b");
    exact("X aaa Y aaa X aaa Y aaa X aaa Y aaa Z", "X(4,3) a(1,3) Y a(1,3) Z");
    exact("X ababab X ababab Y X ababab X ababab Y", "X(4,2)(3,2) a(2,3) b Y");
}

#[test]
fn inner_loops_that_are_new_or_run_once_at_first() {
    elastic("XY X abab Y X ab Y", "X(4,3) a(2,0 2 1) b Y");
    elastic("X ab Y X abab Y X Y", "X(4,3) a(2,1 2 0) b Y");
    elastic("X abY X ababY XababY", "X(4,3) a(2,1 2 2) b Y");
}

#[test]
fn conditionals() {
    // At the end: seen at first, seen later on.
    elastic("abc ab ab abc ab", "a(3,5) b c(1,1 0 0 1 0)");
    elastic("ab ab abc ab ab abc", "a(3,2)(2,3) b c");
    // At the head.
    elastic("hab ab ab hab", "h(3,2) a(2,3 1) b");
    elastic("ab hab ab hab", "a(3,4) b h(1,1 0 1 0)");
    // Two in a row, both new at once.
    elastic("ad ad abcd ad", "a(4,4) b(1,0 0 1 0) c(1,0 0 1 0) d");
}

#[test]
fn new_symbols_wait_for_a_known_one() {
    // Known in the loop, after the cursor; before it, with the iteration complete or not; further out; none at all.
    elastic("ac ac abc ac", "a(3,4) b(1,0 0 1 0) c");
    elastic("ac ac b ac", "a(3,2)(2,2 1) c b(1,1 0)");
    elastic("acd acd ac b acd", "a(4,4) c b(1,0 0 1 0) d(1,1 1 0 1)");
    elastic("x ac ac y x ac b y", "x(5,2) a(2,2 1) c b(1,0 1) y");
    elastic("ac ac bd", "a(2,2) c b d");
    // With loops of their own, one in the other.
    elastic("ac ac bdbd ef ef g c", "a(7,2)(2,2 1)(1,1 1 0) c b(2,2 0) d e(2,2 0) f g(1,1 0)");
}

#[test]
fn a_helper_that_is_called_from_two_places() {
    elastic("abscsd abscsd abscsd", "a(5,3) b s(2,2) c(1,1 0 1 0 1 0) d");
}

#[test]
fn call_paths_tell_an_inner_loop_from_a_new_iteration() {
    let text = "abY ababY";
    elastic(text, "a(3,3) b Y(1,1 0 1)");
    let mut folder = Folder::new(Matching::Elastic);
    // a and b are called in a function that main calls, Y in main.
    for (symbol, path) in [('a', &[1, 10][..]), ('b', &[1, 11]), ('Y', &[2])] {
        folder.define(symbol.into(), spots(path));
    }
    letters(text).iter().for_each(|&symbol| folder.push(symbol));
    assert_eq!(folder.finish().notation(letter), "a(3,2)(2,1 2) b Y");
    letters("abY abab Y").iter().for_each(|&symbol| folder.push(symbol));
    assert_eq!(folder.finish().notation(letter), "a(3,4)(2,1 2 1 2) b Y");
}

/// Of calls in one module.
fn spots(offsets: &[u64]) -> Vec<Spot> {
    offsets.iter().map(|&at| Spot { area: 1, at }).collect()
}

#[test]
fn where_code_stands_tells_where_new_calls_belong() {
    // A wavefront from each corner of a grid, as a rank at a corner and one at a side see it: r and u receive, s and t send.
    let corner = "stst rtrt usus ruru A".repeat(3);
    let last = "ruru usus rtrt stst A".repeat(3);
    let side = "ustust rutrut ustust rutrut A".repeat(3);
    for (text, notation) in [
        (
            corner,
            "r(5,3)(4,7)(1,(0x2 1x2 0 1x2)...) u(2,1x4 (2 1x4 0x2)...)(1,0x4 (1x4 0x2)...) s(1,(1x2 0x2)x2 (1x4 \
             0x2)...) t(1,(1x4 0x3)...) A",
        ),
        (
            last,
            "r(5,12)(2,2 1 1 1 2 1 1 1 2 1 1 1)(1,1 1 0 1 1 1 1 0 1 1 1 1 0 1 1) u(1,1 2 1 0 0 1 2 1 0 0 1 2 1 0 0) \
             s(2,1 1 1 3 1 1 1 3 1 1 1 3)(1,1x2 (0x2 1x4)...) t(1,(0x2 1x4)...) A(1,0 0 0 1 0 0 0 1 0 0 0 1)",
        ),
        (side, "r(5,3)(4,8)(1,(0x2 1x2)...) u s(1,(1x2 0x2)...) t A"),
    ] {
        let mut folder = Folder::new(Matching::Elastic);
        for (symbol, at) in [('r', 10), ('u', 11), ('s', 12), ('t', 13), ('A', 14)] {
            folder.define(symbol.into(), spots(&[1, at]));
        }
        letters(&text).iter().for_each(|&symbol| folder.push(symbol));
        assert_eq!(folder.finish().notation(letter), notation);
    }
}

#[test]
fn every_short_sequence() {
    for (base, length) in [(2u32, 11), (3, 8), (4, 7)] {
        for code in 0..base.pow(length) {
            let symbols: Vec<u32> = (0..length).map(|i| code / base.pow(i) % base).collect();
            for matching in MATCHINGS {
                assert_sound(&fold(matching, &symbols), &symbols, matching);
            }
        }
    }
}

#[test]
fn sequences_come_back_at_any_time() {
    let mut random = Rng::with_seed(3);
    for round in 0..150u64 {
        let symbols = match round % 3 {
            0 => (0..300).map(|_| random.u64(..2 + round / 6) as u32).collect(),
            1 => loops(&mut random, 2 + round % 30, 400),
            _ => Program::new(&mut random, round % 2 == 0).run(&mut random, 600),
        };
        for matching in MATCHINGS {
            let mut folder = Folder::new(matching);
            for symbol in (0..60).filter(|_| round % 4 < 2) {
                let path: Vec<u64> = (0..random.u64(..4)).map(|_| random.u64(..4)).collect();
                folder.define(symbol, spots(&path));
            }
            for (at, &symbol) in symbols.iter().enumerate() {
                assert_eq!(folder.len(), at as u64);
                folder.push(symbol);
                if random.u64(..12) == 0 || at + 1 == symbols.len() {
                    assert_sound(&folder.finish(), &symbols[..=at], matching);
                }
            }
        }
    }
}

/// What is read from anywhere on is what is read when all before it was read too.
#[test]
fn any_place_can_be_gone_to() {
    let mut random = Rng::with_seed(57);
    for round in 0..60 {
        let symbols = loops(&mut random, 2 + round % 7, 20 + 5 * round as usize);
        for matching in MATCHINGS {
            let folded = fold(matching, &symbols);
            for n in probes(symbols.len()) {
                let place = folded.loops.seek(n, |node, first| folded.times[node].sum(first) as u64);
                let times = folded.times.iter().zip(&place.used).map(|(times, used)| times.iter_from(*used));
                let (first, last) = symbols.split_at(symbols.len().min(n as usize));
                let rest = Cursor::at(&folded.loops, &place, times.collect());
                assert!(rest.eq(last.iter().copied()), "from {n} of {folded:?}");
                let events = folded.loops.nodes.iter().zip(&place.runs);
                let events = events.filter(|(node, _)| matches!(node, Node::Event(_)));
                assert_eq!(
                    events.map(|(_, runs)| runs).sum::<u64>(),
                    first.len() as u64,
                    "{n} of {folded:?}"
                );
            }
        }
    }
}

#[test]
fn long_sequences_come_back() {
    let mut random = Rng::with_seed(4);
    for round in 0..16u64 {
        let symbols = match round % 4 {
            0 => (0..20_000).map(|_| random.u64(..1 + 30 * round) as u32).collect(),
            1 => loops(&mut random, 2 + 10 * round, 20_000),
            2 => (0..20_000).map(|i| i / (1 + round as u32)).collect(),
            _ => Program::new(&mut random, false).run(&mut random, 20_000),
        };
        for matching in MATCHINGS {
            let folded = fold(matching, &symbols);
            assert_sound(&folded, &symbols, matching);
            if matching == Matching::Elastic {
                assert!(depth(&folded) <= 20, "{}", depth(&folded));
            }
        }
    }
}

/// What a program does, one symbol for each place: the loops found must not depend on how often it does it.
enum Step {
    Call(u32),
    Loop(u64, u64, Vec<Step>),
    If(u64, Vec<Step>),
}

struct Program(Vec<Step>);

impl Program {
    /// With `helpers`, some places share their symbols.
    fn new(random: &mut Rng, helpers: bool) -> Program {
        let mut next = 0;
        let steps = (0..3).flat_map(|_| Program::steps(random, &mut next, 3, helpers)).collect();
        Program(vec![Step::Loop(1_000_000, 1, steps)])
    }

    fn steps(random: &mut Rng, next: &mut u32, depth: u32, helpers: bool) -> Vec<Step> {
        let step = |random: &mut Rng| match random.u64(..6) {
            0 | 1 if depth > 0 => {
                let body = Program::steps(random, next, depth - 1, helpers);
                Step::Loop(random.u64(..4), 1 + random.u64(..4), body)
            }
            2 if depth > 0 => Step::If(1 + random.u64(..4), Program::steps(random, next, depth - 1, helpers)),
            _ if helpers && random.u64(..4) == 0 => Step::Call(random.u64(..u64::from(*next) + 1) as u32),
            _ => {
                *next += 1;
                Step::Call(*next)
            }
        };
        let mut step = step;
        (0..1 + random.u64(..4)).map(|_| step(random)).collect()
    }

    fn run(&self, random: &mut Rng, length: usize) -> Vec<u32> {
        let mut out = Vec::new();
        Program::walk(&self.0, random, length, &mut out);
        out.truncate(length);
        out
    }

    fn walk(steps: &[Step], random: &mut Rng, length: usize, out: &mut Vec<u32>) {
        for step in steps {
            match step {
                _ if out.len() >= length => return,
                Step::Call(symbol) => out.push(*symbol),
                Step::Loop(least, spread, body) => {
                    let trips = least + random.u64(..*spread);
                    (0..trips).for_each(|_| Program::walk(body, random, length, out));
                }
                Step::If(odds, body) if random.u64(..*odds) == 0 => Program::walk(body, random, length, out),
                Step::If(..) => {}
            }
        }
    }
}

#[test]
fn programs_keep_their_size_however_long_they_run() {
    let mut random = Rng::with_seed(5);
    for _ in 0..40 {
        let program = Program::new(&mut random, false);
        let symbols = program.run(&mut random, 40_000);
        let (half, whole) = (fold(Matching::Elastic, &symbols[..20_000]), fold(Matching::Elastic, &symbols));
        assert_sound(&whole, &symbols, Matching::Elastic);
        let nodes = (half.loops.nodes.len(), whole.loops.nodes.len());
        assert!(nodes.1 <= nodes.0 + nodes.0 / 8, "{nodes:?}");
    }
}

#[test]
fn a_constant_nest_is_found_as_it_is() {
    let nest: Vec<u32> = std::iter::repeat_with(|| {
        let inner = [vec![1], [2, 3].repeat(5), vec![4]].concat().repeat(3);
        [vec![0], inner, vec![5]].concat()
    })
    .take(1000)
    .flatten()
    .collect();
    for matching in [Matching::Elastic, Matching::Exact { window: WINDOW }] {
        let mut folder = Folder::new(matching);
        let mut missed = 0;
        let mut early = 0;
        for (at, &symbol) in nest.iter().enumerate() {
            missed += usize::from(folder.predicted() != Some(symbol));
            folder.push(symbol);
            if at == 200 {
                early = folder.memory();
            }
        }
        assert!(missed < 120, "{missed} {matching:?}");
        assert!(early > 0 && folder.memory() <= 2 * early, "{early} {}", folder.memory());
        let folded = folder.finish();
        assert_eq!(folded.notation(|s| s.to_string()), "0(6,1000) 1(4,3) 2(2,5) 3 4 5", "{matching:?}");
        assert!(folded.times.iter().all(|times| times.as_constant().is_some()));
    }
}

#[test]
fn an_iteration_longer_than_the_window_is_none() {
    let symbols: Vec<u32> = (0..30).collect::<Vec<u32>>().repeat(3);
    let nodes = |window| fold(Matching::Exact { window }, &symbols).loops.nodes.len();
    assert_eq!((nodes(30), nodes(29)), (31, 90));
}

/// 400 places that are called once, then time steps with a solver that takes as long as it takes, and now and then
/// something more in the middle or at the end of a step.
#[test]
fn a_code_like_pop() {
    let (mut random, mut symbols) = (Rng::with_seed(6), (1000..1400).collect::<Vec<u32>>());
    let mut trips = Vec::new();
    for step in 0..200 {
        let iterations = 3 + random.u64(..20);
        trips.push(iterations.to_string());
        symbols.extend([0, 1, 0, 1, 2]);
        (0..iterations).for_each(|_| symbols.extend([10, 11, 12]));
        symbols.extend([3, 3].iter().filter(|_| step % 10 == 0));
        symbols.extend([4, 5]);
    }
    symbols.push(2000);
    let folded = fold(Matching::Elastic, &symbols);
    assert_sound(&folded, &symbols, Matching::Elastic);
    assert_eq!(folded.loops.nodes.len(), 401 + 12);
    let text = folded.notation(|s| s.to_string());
    let (before, steps) = text.split_at(text.find(" 0(").unwrap());
    assert!(before.split(' ').eq((1000..1400).map(|s| s.to_string())));
    let [head, rest @ ..] = &steps[1..].split(" 10(3,").collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(*head, "0(9,200)(2,2) 1 2");
    assert!(rest[0].ends_with(") 11 12 3(1,(2 0x9)...) 4 5 2000"), "{rest:?}");
    let solver = folded.loops.nodes.iter().position(|node| *node == Node::Event(10)).unwrap() - 1;
    let found: Vec<String> = folded.times[solver].iter().take(200).map(|n| n.to_string()).collect();
    assert_eq!(found, trips);
}

/// The deepest and widest the rules allow: what would nest for ever does not.
#[test]
fn depth_has_an_end() {
    let growing: Vec<u32> = (1..200).flat_map(|length| 0..length).collect();
    let inwards: Vec<u32> = (0..60u32).rev().flat_map(|from| (from..60).chain(from..60)).collect();
    let phases: Vec<u32> = (0..3000).flat_map(|phase| [2 * phase, 2 * phase + 1].repeat(2)).collect();
    let again = [&phases[..], &[0], &phases[40..80], &[3]].concat();
    for symbols in [growing, inwards, phases, again] {
        let folded = fold(Matching::Elastic, &symbols);
        assert_sound(&folded, &symbols, Matching::Elastic);
        assert!(depth(&folded) <= 14, "{}", depth(&folded));
    }
}

/// Something new in each iteration: what is read must not be looked for among all that was ever new.
#[test]
fn bodies_do_not_widen_for_ever() {
    let symbols: Vec<u32> = (0..60_000).map(|i| if i % 3 < 2 { i % 3 } else { i }).collect();
    let mut folder = Folder::new(Matching::Elastic);
    symbols.iter().for_each(|&symbol| folder.push(symbol));
    let folded = folder.finish();
    assert!(folded.iter().eq(symbols.iter().copied()));
    assert!(folder.memory() < symbols.len() * 100, "{}", folder.memory());
    let passed: u64 = folded.lengths.iter().sum();
    assert!(passed < 600 * symbols.len() as u64 && folded.loops.nodes.len() < 21_000, "{passed}");
}

/// Most of a wide body was left out at some time, and what comes is new or leads back: nobody may look at all of the body
/// again for each event.
#[test]
fn wide_bodies_are_not_looked_at_for_each_event() {
    let (body, all) = (8_000u32, 60_000);
    let wide: Vec<u32> = (0..body).map(|i| 2 * i).collect();
    let (half, last) = (body as usize / 2, 2 * body - 2);
    let later = (0..).flat_map(|i| [2 * body + i, 0]);
    let between = (0..).flat_map(|i| [2 * i + 1, last]);
    let back = wide[..half].iter().rev().copied().cycle();
    let ways: [Box<dyn Iterator<Item = u32>>; 3] = [Box::new(later), Box::new(between), Box::new(back)];
    for (way, more) in ways.into_iter().enumerate() {
        let begin = [&wide[..], &wide, &wide[..half]].concat();
        let symbols: Vec<u32> = begin.into_iter().chain(more).take(all).collect();
        for paths in [false, true] {
            let mut folder = Folder::new(Matching::Elastic);
            for &symbol in symbols.iter().filter(|_| paths) {
                folder.define(symbol, spots(&[1, u64::from(symbol)]));
            }
            symbols.iter().for_each(|&symbol| folder.push(symbol));
            let Kind::Elastic(elastic) = &folder.kind else { panic!() };
            let looked = elastic.looked();
            assert!(looked <= (1 << 20) + 12 * all as u64, "{looked} in way {way}, paths: {paths}");
            assert!(folder.finish().iter().eq(symbols.iter().copied()));
        }
    }
}

/// Symbols in random order: most are left out of most iterations, and that takes no time.
#[test]
fn random_orders_take_the_same_steps_an_event_however_many_symbols() {
    let mut random = Rng::with_seed(44);
    for symbols in [20, 200, 2_000, 20_000] {
        let sequence: Vec<u32> = (0..60_000).map(|_| random.u64(..symbols) as u32).collect();
        let mut folder = Folder::new(Matching::Elastic);
        let pushed = crate::testing::steps(|| sequence.iter().for_each(|&symbol| folder.push(symbol)));
        let mut folded = Folded::default();
        let finished = crate::testing::steps(|| folded = folder.finish());
        let events = sequence.len() as u64;
        assert!(pushed < 40 * events && finished < 40 * events, "{symbols}: {pushed} and {finished} steps");
        assert!(folded.iter().eq(sequence));
    }
}
