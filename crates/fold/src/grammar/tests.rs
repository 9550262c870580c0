use super::*;
use crate::testing::{cases, loops, nests, probes};
use fastrand::Rng;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashSet;

fn fold(symbols: &[u32]) -> Grammar {
    symbols.iter().copied().collect()
}

fn letters(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

/// `(ab)x3 c`: rules in brackets, letters as they are.
fn render(grammar: &Grammar) -> String {
    fn body(grammar: &Grammar, rule: u32) -> String {
        let items = grammar.rules[rule as usize].iter().map(|item| {
            let one = match item.symbol {
                Symbol::Terminal(t) => char::from_u32(t).unwrap().to_string(),
                Symbol::Rule(r) => format!("({})", body(grammar, r)),
            };
            if item.count == 1 { one } else { format!("{one}x{} ", item.count) }
        });
        items.collect::<String>().trim_end().to_string()
    }
    body(grammar, 0)
}

fn check(text: &str, folded: &str) {
    assert_eq!(render(&fold(&letters(text))), folded, "{text}");
}

#[test]
fn small_sequences() {
    check("", "");
    check("a", "a");
    check("aaaa", "ax4");
    check("abab", "(ab)x2");
    check("abababa", "(ab)x3 a");
    check("abcabcabcabc", "(abc)x4");
    check("aabaabaab", "(ax2 b)x3");
    check("xabcabcyxabcabcy", "(x(abc)x2 y)x2");
    check("abcdbc", "a(bc)d(bc)");
    check("ababcababcababc", "((ab)x2 c)x3");
    check("abcxabcyabcz", "(abc)x(abc)y(abc)z");
}

/// P1, P2, canonical numbers, and the expansion.
fn assert_sound(grammar: &Grammar, symbols: &[u32]) {
    assert_eq!(grammar.validate(), Ok(()));
    assert!(grammar.iter().eq(symbols.iter().copied()), "{symbols:?} -> {grammar:?}");
    assert_eq!(grammar.len(), symbols.len() as u64);
    assert_digrams_unique(&grammar.rules);
    for n in probes(symbols.len()) {
        let (rest, before) = grammar.iter_from(n);
        let (first, last) = symbols.split_at(symbols.len().min(n as usize));
        assert!(rest.eq(last.iter().copied()), "from {n} of {grammar:?}");
        let before: HashSet<(u32, u64)> = before.into_iter().collect();
        assert_eq!(before, count_plainly(first).into_iter().collect(), "before {n} of {grammar:?}");
    }
    let even = symbols.iter().copied().filter(|symbol| symbol % 2 == 0);
    assert!(grammar.only(|symbol| symbol % 2 == 0).eq(even), "{grammar:?}");
    let mut uses = vec![0; grammar.rules.len()];
    for item in grammar.rules.iter().flatten() {
        if let Symbol::Rule(r) = item.symbol {
            uses[r as usize] += item.count;
        }
    }
    assert!(uses[1..].iter().all(|&n| n >= 2), "P2: {grammar:?}");
    assert_eq!(Renumber::default().from(&grammar.rules, 0), grammar.rules);
    assert_eq!(grammar.counts(), count_plainly(symbols));
}

fn assert_digrams_unique(rules: &[Vec<Item>]) {
    let mut digrams = HashSet::new();
    for pair in rules.iter().flat_map(|body| body.windows(2)) {
        assert_ne!(pair[0].symbol, pair[1].symbol, "not merged: {rules:?}");
        assert!(digrams.insert([pair[0], pair[1]]), "P1: {pair:?} in {rules:?}");
    }
}

fn count_plainly(symbols: &[u32]) -> Vec<(u32, u64)> {
    let mut counts: Vec<(u32, u64)> = Vec::new();
    for &symbol in symbols {
        match counts.iter_mut().find(|(s, _)| *s == symbol) {
            Some((_, n)) => *n += 1,
            None => counts.push((symbol, 1)),
        }
    }
    counts
}

fn some_symbols() -> impl Strategy<Value = Vec<u32>> {
    let random = (2..12u32).prop_flat_map(|symbols| vec(0..symbols, 150));
    let disturbed = (any::<u64>(), prop_oneof![Just(2), Just(4)])
        .prop_map(|(seed, symbols)| loops(&mut Rng::with_seed(seed), symbols, 200));
    prop_oneof![random, vec(nests(4), 1..6).prop_map(|nests| nests.concat()), disturbed]
}

proptest! {
    #![proptest_config(cases(60))]
    #[test]
    fn properties_hold_after_every_push(symbols in some_symbols()) {
        let mut folder = Folder::new();
        for (at, &symbol) in symbols.iter().take(200).enumerate() {
            folder.push(symbol);
            assert_sound(&folder.finish(), &symbols[..=at]);
        }
    }
}

#[test]
fn properties_hold_on_long_sequences() {
    let mut random = Rng::with_seed(2);
    for round in 0..20 {
        let symbols = match round % 2 {
            0 => loops(&mut random, 2 + round, 10_000),
            _ => (0..10_000).map(|_| random.u64(..1 + round) as u32).collect(),
        };
        assert_sound(&fold(&symbols), &symbols);
    }
}

#[test]
fn every_short_binary_and_ternary_sequence() {
    for (base, length) in [(2u32, 13), (3, 8)] {
        for code in 0..base.pow(length) {
            let symbols: Vec<u32> = (0..length).map(|i| code / base.pow(i) % base).collect();
            assert_sound(&fold(&symbols), &symbols);
        }
    }
}

#[test]
fn a_loop_costs_the_same_for_any_trip_count() {
    let body: Vec<u32> = (0..20).chain([3, 3, 3, 7, 7]).collect();
    for trips in [10, 100, 10_000] {
        let mut symbols = vec![100, 101];
        symbols.extend(body.repeat(trips));
        symbols.extend([102, 103]);
        let grammar = fold(&symbols);
        assert_sound(&grammar, &symbols);
        assert_eq!(grammar.items(), fold(&[&[100, 101][..], &body.repeat(5), &[102, 103]].concat()).items());
    }
}

#[test]
fn nested_loops_cost_the_same_for_any_trip_count() {
    let nest = |outer: usize, inner: usize| {
        let step = [vec![1], [2, 3].repeat(inner), vec![4], [5, 6, 7].repeat(inner), vec![8]].concat();
        [vec![0], step.repeat(outer), vec![9]].concat()
    };
    let size = fold(&nest(5, 5)).items();
    for (outer, inner) in [(5, 50), (50, 5), (300, 70)] {
        let symbols = nest(outer, inner);
        assert_sound(&fold(&symbols), &symbols);
        assert_eq!(fold(&symbols).items(), size);
    }
}

/// Most pushes into regular nests go through the expectation, and it predicts them.
#[test]
fn predicts_the_next_round() {
    let mut folder = Folder::new();
    let step = [vec![1], [2, 3].repeat(6), vec![4]].concat();
    let symbols = step.repeat(100);
    let mut missed = 0;
    for &symbol in &symbols {
        missed += usize::from(folder.predicted() != Some(symbol));
        folder.push(symbol);
    }
    assert!(missed < 3 * step.len(), "{missed}");
    assert_eq!(folder.predicted(), Some(1));
    assert_eq!(Folder::new().predicted(), None);
}

#[test]
fn push_n_is_many_pushes() {
    let mut random = Rng::with_seed(3);
    for _ in 0..200 {
        let (mut folder, mut symbols) = (Folder::new(), Vec::new());
        let pattern: Vec<(u32, u64)> =
            (0..1 + random.u64(..5)).map(|_| (random.u64(..3) as u32, 1 + random.u64(..4))).collect();
        for _ in 0..1 + random.u64(..10) {
            for &(symbol, count) in &pattern {
                let count = if random.u64(..20) == 0 { 7 } else { count };
                folder.push_n(symbol, count);
                symbols.extend((0..count).map(|_| symbol));
            }
        }
        assert_eq!(folder.len(), symbols.len() as u64);
        assert_sound(&folder.finish(), &symbols);
    }
}

#[test]
fn folding_goes_on_after_finish() {
    let symbols = loops(&mut Rng::with_seed(4), 3, 500);
    let (mut plain, mut watched) = (Folder::new(), Folder::new());
    for &symbol in &symbols {
        plain.push(symbol);
        watched.push(symbol);
        watched.finish();
    }
    assert_eq!(plain.finish(), watched.finish());
}

/// Sequences full of squares, where expectations begin and fail all the time.
#[test]
fn words_that_almost_repeat() {
    let fibonacci = |n: usize| {
        let (mut a, mut b) = (vec![0], vec![0, 1]);
        while b.len() < n {
            (a, b) = (b.clone(), [b, a].concat());
        }
        b[..n].to_vec()
    };
    let growing = (1..200u32).flat_map(|n| (0..n).map(|_| 0).chain([1])).collect::<Vec<u32>>();
    let growing_loops =
        (1..80usize).flat_map(|n| [[0, 1, 2].repeat(n), vec![3]].concat()).collect::<Vec<u32>>();
    let ruler = (1..20_000u32).map(u32::trailing_zeros).collect::<Vec<u32>>();
    let thue_morse = (0..20_000u32).map(|n| n.count_ones() % 2).collect::<Vec<u32>>();
    for word in [fibonacci(20_000), growing, growing_loops, ruler, thue_morse] {
        let grammar = fold(&word);
        assert_sound(&grammar, &word);
        assert!(grammar.items() < 700, "{} of {}", grammar.items(), word.len());
    }
}

#[test]
fn terminals_are_mapped() {
    let grammar = fold(&letters("xabcabcy"));
    assert_eq!(render(&grammar.map_terminals(|t| t - 32)), "X(ABC)x2 Y");
}

fn item(symbol: Symbol, count: u64) -> Item {
    Item { symbol, count }
}

#[test]
fn bad_grammars_are_refused() {
    let t = |count| item(Symbol::Terminal(1), count);
    let r = |rule, count| item(Symbol::Rule(rule), count);
    let error = |rules: &[&[Item]]| Grammar { rules: rules.iter().map(|b| b.to_vec()).collect() }.validate();
    assert_eq!(error(&[]), Err(Error::NoStart));
    assert_eq!(error(&[&[]]), Ok(()));
    assert_eq!(error(&[&[t(0)]]), Err(Error::ZeroCount { rule: 0, item: 0 }));
    assert_eq!(error(&[&[r(1, 1)]]), Err(Error::NoSuchRule { rule: 1, used_in: 0, rules: 1 }));
    assert_eq!(error(&[&[r(1, 1)], &[]]), Err(Error::EmptyRule { rule: 1 }));
    assert_eq!(error(&[&[r(0, 1)]]), Err(Error::Circle { rule: 0 }));
    assert!(matches!(error(&[&[r(1, 1)], &[t(1), r(2, 1)], &[r(1, 1)]]), Err(Error::Circle { .. })));
    assert!(matches!(error(&[&[t(1)], &[r(2, 1)], &[r(1, 1)]]), Err(Error::Circle { .. })));
    assert_eq!(error(&[&[t(u64::MAX)]]), Ok(()));
    assert_eq!(error(&[&[t(u64::MAX), t(1)]]), Err(Error::TooLong { rule: 0 }));
    assert_eq!(error(&[&[r(1, 1 << 40)], &[t(1 << 40)]]), Err(Error::TooLong { rule: 0 }));
}

/// A chain of rules far deeper than any call stack.
#[test]
fn depth_does_not_matter() {
    let depth = 200_000;
    let mut rules: Vec<Vec<Item>> =
        (1..=depth).map(|next| vec![item(Symbol::Terminal(0), 1), item(Symbol::Rule(next), 1)]).collect();
    rules.push(vec![item(Symbol::Terminal(1), 2)]);
    let grammar = Grammar { rules };
    assert_eq!(grammar.validate(), Ok(()));
    assert_eq!(grammar.len(), u64::from(depth) + 2);
    assert_eq!(grammar.iter().last(), Some(1));
    assert_eq!(grammar.counts(), [(0, u64::from(depth)), (1, 2)]);
    let forest = join(std::slice::from_ref(&grammar));
    assert_eq!(forest.split()[0].len(), grammar.len());
}

/// Nothing runs for ever or panics on rules that `validate` refuses.
#[test]
fn unchecked_grammars_do_no_harm() {
    let mut random = Rng::with_seed(5);
    for _ in 0..2000 {
        let rules = 1 + random.u64(..4);
        let grammar = Grammar {
            rules: (0..rules)
                .map(|_| {
                    let item = |r: &mut Rng| match r.u64(..2) {
                        0 => item(Symbol::Terminal(r.u64(..3) as u32), r.u64(..3)),
                        _ => item(Symbol::Rule(r.u64(..rules + 1) as u32), r.u64(..3)),
                    };
                    (0..random.u64(..4)).map(|_| item(&mut random)).collect()
                })
                .collect(),
        };
        let valid = grammar.validate().is_ok();
        let (len, counts) = (grammar.len(), grammar.counts());
        if valid {
            assert_eq!(grammar.iter().count() as u64, len);
            assert_eq!(counts, count_plainly(&grammar.iter().collect::<Vec<_>>()));
        } else {
            grammar.iter().take(1000).count();
        }
    }
}

fn items(rules: &[Vec<Item>]) -> usize {
    rules.iter().map(Vec::len).sum()
}

fn assert_joins(sequences: &[Vec<u32>]) -> Forest {
    let grammars: Vec<Grammar> = sequences.iter().map(|s| fold(s)).collect();
    let forest = join(&grammars);
    assert_eq!(forest.validate(), Ok(()));
    assert!(items(&forest.rules) <= grammars.iter().map(Grammar::items).sum());
    assert_digrams_unique(&forest.rules);
    let split = forest.split();
    assert_eq!(split.len(), sequences.len());
    for (at, (grammar, sequence)) in split.iter().zip(sequences).enumerate() {
        assert!(forest.iter(at).eq(sequence.iter().copied()));
        assert!(grammar.iter().eq(sequence.iter().copied()), "{sequences:?}: {forest:?}");
        assert_eq!(grammar.validate(), Ok(()));
    }
    assert_eq!(join(&split), forest);
    assert_eq!(join(&split).split(), split);
    forest
}

#[test]
fn forests_keep_every_sequence() {
    let mut random = Rng::with_seed(6);
    for round in 0..400 {
        let mut sequences: Vec<Vec<u32>> = Vec::new();
        for _ in 0..random.u64(..6) {
            let length = random.u64(..1 + round) as usize;
            sequences.push(loops(&mut random, 2 + round % 5, length));
            // Relatives: equal, contained, slightly different.
            let relative = match random.u64(..4) {
                0 => sequences[0].clone(),
                1 => [&sequences[0][..], &[1, 2]].concat(),
                2 => sequences[0][..sequences[0].len() / 2].to_vec(),
                _ => continue,
            };
            sequences.push(relative);
        }
        assert_joins(&sequences);
    }
}

#[test]
fn forests_share_what_is_common() {
    let body: Vec<u32> = (10..30).collect();
    let sequences: Vec<Vec<u32>> =
        (0..9).map(|rank| [vec![rank], body.repeat(50), vec![rank, rank + 100]].concat()).collect();
    // Each start is three items of its own and the loop; the body is there once.
    assert_eq!(items(&assert_joins(&sequences).rules), 9 * 4 + body.len());
    // Common parts that no single sequence repeats.
    let sequences: Vec<Vec<u32>> =
        (0..4).map(|rank| [vec![rank], body.clone(), vec![rank + 50]].concat()).collect();
    assert_eq!(items(&assert_joins(&sequences).rules), 4 * 3 + body.len());
    // Equal sequences have one start.
    assert_eq!(assert_joins(&[body.clone(), body.clone()]).starts, [0, 0]);
    // A sequence that is part of another is a rule of it.
    let forest = assert_joins(&[body.clone(), [&[1], &body[..], &[2]].concat()]);
    assert_eq!(items(&forest.rules), body.len() + 3);
    assert_eq!(join(&[]), Forest::default());
}
