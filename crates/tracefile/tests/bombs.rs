//! A few bytes that stand for a lot of ranks: what reading them takes is counted, and does not follow the ranks.

use refrain_fold::bundle::{Bundle, Cohort, Lane, Number, SymbolEntry, Tally, Variant};
use refrain_fold::grammar::{Grammar, Item, Symbol};
use refrain_fold::ranks::{Dim, MapPart, Part, RankList, RankMap};
use refrain_fold::stream::Stream;
use refrain_tracefile::{Contents, Error, Meta, Trace, contents, outline, read, write};

/// All ranks below `ranks` make one call; its symbol has these lanes.
fn one_call(ranks: u32, lanes: Vec<Lane>) -> Trace {
    let tally = Tally { total: 0, min: 0, max: 0 };
    let symbols = vec![SymbolEntry {
        bytes: [7].into(),
        site: 0,
        lanes: lanes.len() as u16,
        tally,
        classes: Default::default(),
    }];
    let start = vec![Item { symbol: Symbol::Terminal(0), count: 1 }];
    let cohort = Cohort { ranks: all(ranks), structure: 0, lanes, sides: Vec::new(), digest: 0 };
    let bundle = Bundle {
        world: ranks,
        symbols,
        structures: vec![Grammar { rules: vec![start] }.into()],
        streams: vec![Stream::constant(0)],
        cohorts: vec![cohort],
        ..Bundle::default()
    };
    Trace { meta: Meta { ranks, ..Meta::default() }, bundle }
}

fn all(ranks: u32) -> RankList {
    RankList { parts: vec![Part { start: 0, dims: vec![(ranks, 1)] }] }
}

fn every_second(ranks: u32, start: u32) -> Part {
    Part { start, dims: vec![(ranks / 2, 2)] }
}

/// Even ranks have their number, odd ones the one before.
fn by_parity(ranks: u32) -> RankMap {
    let part =
        |start: u32| MapPart { start, value: 0, dims: vec![Dim { count: ranks / 2, stride: 2, step: 2 }] };
    RankMap::plainly(vec![part(0), part(1)])
}

/// A lane whose number is a function of the rank.
fn of_number(ranks: RankList, values: RankMap) -> Variant {
    Variant { ranks, stream: 0, used: 0, numbers: vec![Number { place: 0, values }] }
}

/// Two hundred lanes that share one function, in one variant or in two.
fn bombs(ranks: u32) -> [Trace; 2] {
    let one = Lane::Varied(vec![of_number(all(ranks), by_parity(ranks))]);
    let half = |start| {
        let ranks = RankList { parts: vec![every_second(ranks, start)] };
        of_number(ranks.clone(), RankMap::constant(&ranks, 5 + i64::from(start)))
    };
    let two = Lane::Varied(vec![half(0), half(1)]);
    [one, two].map(|lane| one_call(ranks, vec![lane; 200]))
}

#[test]
fn lanes_that_share_a_function_are_checked_once_whatever_the_ranks() {
    let steps = |ranks: u32| {
        bombs(ranks).map(|bomb| {
            bomb.bundle.validate().unwrap();
            let bytes = write(&bomb);
            assert!(bytes.len() < 120, "{}", bytes.len());
            let Contents { trace, steps, .. } = contents(&bytes).unwrap();
            assert_eq!(trace, bomb);
            assert_eq!(outline(&bytes).unwrap().steps, steps);
            steps
        })
    };
    let few = steps(64);
    // A step is an operation on a box or a few nanoseconds' worth of memory.
    assert!(few.iter().all(|&steps| steps < 100_000), "{few:?}");
    assert_eq!(steps(1 << 20), few);
}

/// What a file tells by a reference counts as well: a token for each of 20,000 lanes would be five million parts.
#[test]
fn a_small_file_cannot_ask_for_much_work() {
    // No two ranks are alike, or they would be told as one kind.
    let drawn = |start: u32| i64::from(start.wrapping_mul(0x9e37_79b1) >> 22);
    let single = |start: u32| MapPart { start, value: drawn(start), dims: vec![] };
    let values = RankMap::plainly((0..256).map(single).collect());
    let lane = Lane::Varied(vec![of_number(all(256), values)]);
    let with = |lanes: usize| {
        let bytes = write(&one_call(256, vec![lane.clone(); lanes]));
        assert!(bytes.len() < 1000, "{}", bytes.len());
        contents(&bytes).map(|contents| contents.steps)
    };
    assert!(with(100).unwrap() < 10_000_000);
    let error = with(30_000).unwrap_err();
    assert!(matches!(&error, Error::Malformed { section: "ranks", .. }), "{error}");
    assert!(error.to_string().contains("more work to check than its size allows"), "{error}");
}

#[test]
fn ranks_that_are_there_twice_are_found_by_boxes() {
    let [mut twice, _] = bombs(1 << 20);
    let Lane::Varied(variants) = &mut twice.bundle.cohorts[0].lanes[7] else { unreachable!() };
    variants[0].numbers[0].values.parts[1].start = 2;
    let error = read(&write(&twice)).unwrap_err();
    assert!(error.to_string().contains("lane 7 of cohort 0"), "{error}");
}
