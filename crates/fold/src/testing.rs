//! What the tests of this crate share.

use fastrand::Rng;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::ranks::{Checks, RankList, RankMap};

/// So many cases, the same in every run.
pub fn cases(cases: u32) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(1);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// Nested loops over few symbols.
pub fn nests(symbols: u32) -> impl Strategy<Value = Vec<u32>> {
    let call = (0..symbols).prop_map(|symbol| vec![symbol]);
    call.prop_recursive(4, 64, 4, |inner| {
        (vec(inner, 1..5), 1..6usize).prop_map(|(body, trips)| body.concat().repeat(trips))
    })
}

/// Places at which a sequence of this length is looked into.
pub fn probes(len: usize) -> [u64; 7] {
    [0, 1, len / 3, len / 2 + 1, len.saturating_sub(1), len, len + 7].map(|place| place as u64)
}

thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Called by what takes a number or a run of them in hand.
pub fn step() {
    STEPS.set(STEPS.get() + 1);
}

/// Steps that were taken in something.
pub fn steps(work: impl FnOnce()) -> u64 {
    let before = STEPS.get();
    work();
    STEPS.get() - before
}

/// A program-like sequence: nested loops over few symbols, with now and then a disturbance.
pub fn loops(random: &mut Rng, symbols: u64, limit: usize) -> Vec<u32> {
    let mut out = Vec::new();
    while out.len() < limit {
        let block = nest(random, symbols, 3);
        for _ in 0..1 + random.u64(..4) {
            out.extend(&block);
            if random.u64(..8) == 0 {
                out.push(random.u64(..symbols) as u32);
            }
        }
    }
    out.truncate(limit);
    out
}

fn nest(random: &mut Rng, symbols: u64, depth: u32) -> Vec<u32> {
    let mut body = Vec::new();
    for _ in 0..1 + random.u64(..4) {
        if depth > 0 && random.u64(..2) == 0 {
            body.extend(nest(random, symbols, depth - 1));
        } else {
            body.push(random.u64(..symbols) as u32);
        }
    }
    body.repeat(1 + random.u64(..6) as usize)
}

/// What a function of the rank over (most of) a square grid must be, however it is told: the same numbers, for all of its ranks
/// and for some, by boxes and without another order.
pub fn stays(pairs: &[(u32, i64)], side: u32) -> (RankMap, RankList) {
    let map = RankMap::loose(pairs.to_vec());
    let list = RankList::from_iter(pairs.iter().map(|pair| pair.0));
    assert_eq!(map.pairs_of(&list), pairs);
    pairs.iter().for_each(|&(rank, number)| assert_eq!(map.get(rank), Some(number)));
    assert_eq!(Checks::unbounded().is_over(&map, &list), Ok(true));
    assert_eq!(map.plain().pairs_of(&list), pairs);
    let half = u64::from(side)..u64::from(side * side / 2);
    let kept: Vec<(u32, i64)> = pairs.iter().copied().filter(|pair| half.contains(&pair.0.into())).collect();
    let only = RankList::from_iter(kept.iter().map(|pair| pair.0));
    assert_eq!(map.within(half).pairs_of(&only), kept);
    (map, list)
}
