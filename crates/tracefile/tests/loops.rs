//! Loops of many ranks, merged, scored, written and read back: every rank's calls come back, and no bytes do harm.

use crate::seal;
use crate::stencil;

use fastrand::Rng;
use refrain_fold::bundle::{
    Bundle, Cohort, Index, Lane, Number, SymbolEntry, Tally, ThreadPart, Variant, Walk, merge,
};
use refrain_fold::loops::{Folder, Loops, Matching, Node};
use refrain_fold::ranks::{RankList, RankMap};
use refrain_fold::stream;
use refrain_tracefile::{Trace, read, sections, write, write_plain};
use seal::reseal;

/// Symbols and, for each, one number.
type Calls = Vec<(u32, i64)>;

/// A program that ranks go through alike, but not equally: some take part in a step and some do not, trip counts depend
/// on the rank or on chance.
struct Program {
    body: Vec<Step>,
}

enum Step {
    Call(u32),
    /// On some ranks, and in some iterations.
    Sometimes(u32, u64),
    Loop {
        body: Vec<Step>,
        least: u64,
        spread: u64,
        by_rank: bool,
    },
}

impl Program {
    fn any(random: &mut Rng, symbols: &mut u32, depth: u32) -> Vec<Step> {
        let step = |random: &mut Rng| {
            let next = *symbols;
            *symbols += 1;
            match random.u64(..8) {
                0 | 1 if depth > 0 => Step::Loop {
                    body: Program::any(random, symbols, depth - 1),
                    least: random.u64(..3),
                    spread: 1 + random.u64(..4),
                    by_rank: random.u64(..2) == 0,
                },
                2 | 3 => Step::Sometimes(next, 1 + random.u64(..4)),
                4 if next > 0 => Step::Call(random.u64(..u64::from(next)) as u32),
                _ => Step::Call(next),
            }
        };
        let count = 1 + random.u64(..5);
        let mut step = step;
        (0..count).map(|_| step(random)).collect()
    }

    fn run(body: &[Step], rank: u32, random: &mut Rng, calls: &mut Calls) {
        for step in body {
            match step {
                Step::Call(symbol) => calls.push((*symbol, i64::from(rank) * 3 + i64::from(*symbol))),
                Step::Sometimes(symbol, one_of) => {
                    if u64::from(rank).is_multiple_of(*one_of) || random.u64(..*one_of) == 0 {
                        calls.push((*symbol, random.u64(..2) as i64));
                    }
                }
                Step::Loop { body, least, spread, by_rank } => {
                    let more = if *by_rank { u64::from(rank) % spread } else { random.u64(..*spread) };
                    (0..least + more).for_each(|_| Program::run(body, rank, random, calls));
                }
            }
        }
    }
}

fn bundle(rank: u32, calls: &Calls, matching: Matching) -> Bundle {
    let mut folder = Folder::new(matching);
    let mut symbols: Vec<u32> = Vec::new();
    let mut lanes: Vec<stream::Folder> = Vec::new();
    for &(symbol, number) in calls {
        let own = symbols.iter().position(|known| *known == symbol).unwrap_or_else(|| {
            symbols.push(symbol);
            lanes.push(stream::Folder::new());
            symbols.len() - 1
        });
        folder.push(own as u32);
        lanes[own].push(number);
    }
    let folded = folder.finish();
    let entry = |symbol: &u32| SymbolEntry {
        bytes: symbol.to_le_bytes().into(),
        site: 0,
        lanes: 1,
        tally: Tally { total: 5, min: 1, max: 2 },
        classes: Default::default(),
    };
    let part = ThreadPart {
        thread: 0,
        structure: folded.loops.into(),
        times: folded.times.into_iter().zip(folded.lengths).collect(),
        lengths: lanes.iter().map(|lane| vec![lane.len()]).collect(),
        lanes: lanes.iter_mut().map(|lane| vec![lane.finish()]).collect(),
        digest: rank.into(),
    };
    Bundle::of_rank((rank, 0), symbols.iter().map(entry).collect(), vec![part]).unwrap()
}

fn expand(bundle: &Bundle, rank: u32) -> Calls {
    let mut calls = Vec::new();
    let Some(mut walk) = Walk::new(bundle, rank, 0).unwrap() else { return calls };
    while let Some(symbol) = walk.next_symbol() {
        let bytes = &bundle.symbols[symbol as usize].bytes;
        let name = u32::from_le_bytes(bytes[..].try_into().unwrap());
        calls.push((name, walk.value(0).unwrap()));
    }
    // Ranks differ in how often they come by: what is read from the middle on is the same.
    let (n, (cohort, member)) = (calls.len() / 2, Index::new(bundle).cohort_of(rank, 0).unwrap());
    let before = Walk::before(bundle, cohort, member, n as u64).unwrap();
    let taken =
        |symbol: u32, _: u16| before.iter().find(|(s, _)| *s == symbol).map_or(0, |(_, times)| *times);
    let mut walk = Walk::from(bundle, cohort, member, n as u64, taken, |symbol| taken(symbol, 0)).unwrap();
    for (_, value) in calls.iter().skip(n) {
        assert!(walk.next_symbol().is_some());
        assert_eq!(walk.value(0), Some(*value), "rank {rank}, from {n}");
    }
    assert_eq!(walk.next_symbol(), None);
    calls
}

/// A run of a random program on up to nine ranks: what each did, and the trace.
fn any(seed: u64, score: bool) -> (Vec<Calls>, Trace) {
    let mut random = Rng::with_seed(seed * 7919 + 1);
    let mut symbols = 0;
    let program = Program { body: Program::any(&mut random, &mut symbols, 3) };
    let matching = if seed.is_multiple_of(3) { Matching::Exact { window: 50 } } else { Matching::Elastic };
    let mut all = Vec::new();
    let mut merged = Bundle::default();
    for rank in 0..1 + random.u64(..9) as u32 {
        let mut calls = Vec::new();
        let steps = 1 + random.u64(..3);
        (0..steps).for_each(|_| Program::run(&program.body, rank, &mut random, &mut calls));
        merged = merge(merged, bundle(rank, &calls, matching)).unwrap();
        all.push(calls);
    }
    if score {
        merged.score().unwrap();
    }
    merged.canonical().unwrap();
    (all, stencil::told(Trace { bundle: merged, ..Trace::default() }))
}

#[test]
fn every_rank_comes_back() {
    let mut together = 0;
    let seeds = crate::rounds(600);
    for seed in 0..seeds {
        for score in [false, true] {
            let (all, trace) = any(seed, score);
            for bytes in [write(&trace), write_plain(&trace)] {
                let back = read(&bytes).unwrap();
                assert_eq!(back, trace, "seed {seed}");
                for (rank, calls) in (0..).zip(&all) {
                    assert_eq!(expand(&back.bundle, rank), *calls, "seed {seed}, rank {rank}");
                    let counts: u64 = match back.bundle.cohort_of(rank, 0) {
                        Some(cohort) => back.bundle.counts(cohort, rank).iter().map(|c| c.1).sum(),
                        None => 0,
                    };
                    assert_eq!(counts, calls.len() as u64, "seed {seed}, rank {rank}");
                }
            }
            together += usize::from(score && all.len() > 1 && trace.bundle.cohorts.len() == 1);
        }
    }
    assert!(together as u64 > seeds / 2, "ranks are brought together: {together}");
}

#[test]
fn any_bytes_are_safe() {
    let mut random = Rng::with_seed(99);
    for seed in 0..crate::rounds(60) {
        let (_, trace) = any(seed, true);
        for good in [write(&trace), write_plain(&trace)] {
            for _ in 0..40 {
                let mut bytes = good.clone();
                let places = sections(&good).unwrap();
                let body = places[1].offset;
                let at = body + random.u64(..(bytes.len() - body) as u64) as usize;
                bytes[at] ^= 1 << random.u64(..8);
                // The checksums would notice; behind them nothing may rely on them.
                reseal(&mut bytes, &places);
                let Ok(trace) = read(&bytes) else { continue };
                for rank in 0..9 {
                    if let Ok(Some(mut walk)) = Walk::new(&trace.bundle, rank, 0) {
                        (0..10_000).take_while(|_| walk.next_symbol().is_some()).for_each(drop);
                    }
                }
            }
        }
    }
}

/// A few bytes can be many nodes of many ranks: to read them must not take as long as to count them all.
#[test]
fn many_nodes_of_many_ranks() {
    const NODES: usize = 50_000;
    let ranks: RankList = (0..4000).collect();
    let values = RankMap::loose((0..4000).map(|rank| (rank, i64::from(rank))).collect());
    let varied =
        Variant { ranks: ranks.clone(), stream: 0, used: 0, numbers: vec![Number { place: 0, values }] };
    let mut lanes = vec![Lane::same(0); NODES];
    lanes[0] = Lane::Varied(vec![varied]);
    let symbol = |total| SymbolEntry {
        bytes: [total as u8].into(),
        site: 0,
        lanes: 0,
        tally: Tally { total, min: 1, max: 2 },
        classes: Default::default(),
    };
    let bundle = Bundle {
        symbols: vec![symbol(4), symbol(5)],
        structures: vec![Loops { nodes: (0..NODES as u32).map(|at| Node::Event(at % 2)).collect() }.into()],
        streams: vec![stream::Folder::new().finish()],
        cohorts: vec![Cohort { ranks, structure: 0, lanes, sides: Vec::new(), digest: 7 }],
        ..Bundle::default()
    };
    let trace = Trace { bundle, ..Trace::default() };
    let bytes = write(&trace);
    assert!(bytes.len() < 1000, "{}", bytes.len());
    assert_eq!(read(&bytes).unwrap(), trace);
    let mut walk = Walk::new(&trace.bundle, 3, 0).unwrap().unwrap();
    assert_eq!(std::iter::from_fn(|| walk.next_symbol()).collect::<Vec<_>>(), [0, 0, 0]);
}
