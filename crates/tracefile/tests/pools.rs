//! Numbers without a shape, of many ranks: told together, and once where one lane is the transpose of another.

use crate::seal;

use fastrand::Rng;
use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart, Walk, merge};
use refrain_fold::loops::{Folder, Matching};
use refrain_fold::stream;
use refrain_tracefile::{Trace, read, sections, write, write_plain};
use seal::reseal;

/// What each rank has for each other one, call after call: `[call][from][to]`.
type Tables = Vec<Vec<Vec<i64>>>;

fn drawn(ranks: usize, calls: usize, seed: u64) -> Tables {
    let mut random = Rng::with_seed(seed);
    let first: Vec<Vec<i64>> = (0..ranks).map(|_| (0..ranks).map(|_| random.i64(50..80)).collect()).collect();
    let mut tables = vec![first];
    while tables.len() < calls {
        let mut next = tables[tables.len() - 1].clone();
        next.iter_mut().for_each(|row| row[random.usize(..ranks)] += 1);
        tables.push(next);
    }
    tables
}

fn stream_of(numbers: &[i64]) -> (stream::Stream, u64) {
    let mut folder = stream::Folder::new();
    numbers.iter().for_each(|&number| folder.push(number));
    (folder.finish(), numbers.len() as u64)
}

/// What a rank sends and receives, all calls in a row.
fn rows(tables: &Tables, rank: usize) -> [Vec<i64>; 2] {
    let sent = tables.iter().flat_map(|table| table[rank].iter().copied()).collect();
    let received = tables.iter().flat_map(|table| table.iter().map(|row| row[rank])).collect();
    [sent, received]
}

fn bundle(rank: u32, calls: usize, lanes: &[Vec<i64>; 2]) -> Bundle {
    let mut folder = Folder::new(Matching::Elastic);
    // Ranks differ in other calls, too.
    let own = u32::from(rank.is_multiple_of(5));
    (0..calls).for_each(|_| folder.push(0));
    (0..own).for_each(|_| folder.push(1));
    let folded = folder.finish();
    let symbol = |name: u8, lanes| SymbolEntry {
        bytes: [name, 7].into(),
        site: 0,
        lanes,
        tally: Tally { total: 5, min: 1, max: 2 },
        classes: Default::default(),
    };
    let (streams, lengths): (Vec<_>, Vec<_>) = lanes.iter().map(|numbers| stream_of(numbers)).unzip();
    let mut part = ThreadPart {
        thread: 0,
        structure: folded.loops.into(),
        times: folded.times.into_iter().zip(folded.lengths).collect(),
        lengths: vec![lengths],
        lanes: vec![streams],
        digest: rank.into(),
    };
    let mut symbols = vec![symbol(3, 2)];
    if own > 0 {
        symbols.push(symbol(4, 0));
        part.lengths.push(Vec::new());
        part.lanes.push(Vec::new());
    }
    Bundle::of_rank((rank, 0), symbols, vec![part]).unwrap()
}

fn trace(calls: usize, ranks: &[[Vec<i64>; 2]]) -> Trace {
    let own = (0..).zip(ranks).map(|(rank, lanes)| bundle(rank, calls, lanes));
    let mut all = own.reduce(|a, b| merge(a, b).unwrap()).unwrap();
    all.canonical().unwrap();
    Trace { bundle: all, ..Trace::default() }
}

#[track_caller]
fn check(trace: &Trace, ranks: &[[Vec<i64>; 2]]) -> usize {
    let bytes = write(trace);
    for back in [read(&bytes).unwrap(), read(&write_plain(trace)).unwrap()] {
        for (rank, lanes) in (0..).zip(ranks) {
            let mut walk = Walk::new(&back.bundle, rank, 0).unwrap().unwrap();
            let mut found = [Vec::new(), Vec::new()];
            while let Some(symbol) = walk.next_symbol() {
                if back.bundle.symbols[symbol as usize].lanes == 2 {
                    for (lane, found) in (0..).zip(&mut found) {
                        found.extend((0..ranks.len()).map(|_| walk.value(lane).unwrap()));
                    }
                }
            }
            assert!(found == *lanes, "rank {rank}");
        }
    }
    bytes.len()
}

#[test]
fn a_transpose_is_told_once() {
    for (ranks, calls) in [(7, 1), (16, 2), (24, 3), (40, 30)] {
        let tables = drawn(ranks, calls, ranks as u64);
        let mut rows: Vec<[Vec<i64>; 2]> = (0..ranks).map(|rank| rows(&tables, rank)).collect();
        let once = check(&trace(calls, &rows), &rows);
        // The same numbers in other places.
        rows.iter_mut().for_each(|[_, received]| received[..ranks].rotate_left(1));
        let twice = check(&trace(calls, &rows), &rows);
        assert!(once < twice, "{ranks} ranks, {calls} calls: {once} {twice}");
        let least = if ranks > 20 { 3 } else { 8 };
        assert!(ranks < 16 || 4 * once < least * twice, "{ranks} ranks, {calls} calls: {once} {twice}");
    }
}

#[test]
fn one_number_that_differs_is_kept() {
    let (ranks, calls) = (16, 2);
    let tables = drawn(ranks, calls, 3);
    for at in [0, 5, 16, 31] {
        for rank in [0, 7, 15] {
            let mut rows: Vec<[Vec<i64>; 2]> = (0..ranks).map(|rank| rows(&tables, rank)).collect();
            rows[rank][1][at] += 1;
            check(&trace(calls, &rows), &rows);
        }
    }
}

#[test]
fn numbers_told_together_take_little_more_than_their_information() {
    let ranks = 64;
    let tables = drawn(ranks, 1, 9);
    let rows: Vec<[Vec<i64>; 2]> = (0..ranks).map(|rank| rows(&tables, rank)).collect();
    let bytes = check(&trace(1, &rows), &rows);
    let information = (ranks * ranks) as f64 * 30f64.log2() / 8.0;
    assert!((bytes as f64) < 1.1 * information, "{bytes} bytes, {information} of information");
}

#[test]
fn any_bytes_are_safe() {
    let mut random = Rng::with_seed(5);
    let tables = drawn(16, 2, 4);
    let rows: Vec<[Vec<i64>; 2]> = (0..16).map(|rank| rows(&tables, rank)).collect();
    let good = write(&trace(2, &rows));
    let places = sections(&good).unwrap();
    let body = places[1].offset;
    for _ in 0..crate::rounds(1000) {
        let mut bytes = good.clone();
        let at = body + random.usize(..bytes.len() - body);
        bytes[at] ^= 1 << random.u32(..8);
        // The checksums would notice; behind them nothing may rely on them.
        reseal(&mut bytes, &places);
        let Ok(trace) = read(&bytes) else { continue };
        for rank in 0..16 {
            if let Ok(Some(mut walk)) = Walk::new(&trace.bundle, rank, 0) {
                (0..100)
                    .take_while(|_| walk.next_symbol().and_then(|_| walk.value(0)).is_some())
                    .for_each(drop);
            }
        }
    }
}
