//! Lanes that tell who is whose neighbour along a Morton curve, and ranks that are alike where no rule says which.

use crate::seal;

use std::collections::HashMap;

use fastrand::Rng;
use refrain_fold::bundle::{Bundle, Lane, SymbolEntry, Tally, ThreadPart, Variant, Walk, merge};
use refrain_fold::loops::{Folder, Matching};
use refrain_fold::ranks::{Curve, RankList};
use refrain_fold::stream::{self, Flat};
use refrain_tracefile::{Trace, contents, read, sections, write, write_plain};
use seal::reseal;

/// Of each rank the distances to its neighbours, and a number for each of these.
type Rows = Vec<[Vec<i64>; 2]>;

/// The neighbours of a grid: along each axis, around it, both ways.
fn rows(curve: Curve, ranks: u32, sorted: bool) -> Rows {
    let mut ways = Vec::new();
    let mut start = 0;
    for axis in 0..curve.axes {
        let length = (curve.bits + curve.axes - 1 - axis) / curve.axes;
        ways.push((1 << start, 64 + i64::from(axis)));
        ways.push((((1 << length) - 1) << start, 64 + i64::from(axis)));
        start += length;
    }
    let row = |rank: u32| {
        let to = |&(way, number): &(u32, i64)| {
            (i64::from(curve.rank(curve.moved(curve.seen(rank), way))) - i64::from(rank), number)
        };
        let mut near: Vec<(i64, i64)> = ways.iter().map(to).collect();
        if sorted {
            near.sort_unstable();
        }
        let (near, numbers): (Vec<i64>, Vec<i64>) = near.into_iter().unzip();
        // How much comes from each is told before from whom.
        [numbers, near]
    };
    (0..ranks).map(row).collect()
}

const ROUNDS: usize = 5;

fn bundle(rank: u32, lanes: &[Vec<i64>]) -> Bundle {
    let mut folder = Folder::new(Matching::Exact { window: 32 });
    (0..ROUNDS * lanes[0].len()).for_each(|_| folder.push(0));
    // Those with more numbers make another call, too.
    let more = lanes[0].len() == 3;
    (0..u32::from(more)).for_each(|_| folder.push(1));
    let folded = folder.finish();
    let symbol = |name: u8, lanes: u16| SymbolEntry {
        bytes: [name, 7].into(),
        site: 0,
        lanes,
        tally: Tally { total: 5, min: 1, max: 2 },
        classes: Default::default(),
    };
    let stream_of = |numbers: &Vec<i64>| {
        let mut folder = stream::Folder::new();
        (0..ROUNDS).flat_map(|_| numbers).for_each(|&number| folder.push(number));
        (folder.finish(), (ROUNDS * numbers.len()) as u64)
    };
    let (streams, lengths): (Vec<_>, Vec<_>) = lanes.iter().map(stream_of).unzip();
    let mut part = ThreadPart {
        thread: 0,
        structure: folded.loops.into(),
        times: folded.times.into_iter().zip(folded.lengths).collect(),
        lengths: vec![lengths],
        lanes: vec![streams],
        digest: rank.into(),
    };
    let mut symbols = vec![symbol(3, lanes.len() as u16)];
    if more {
        symbols.push(symbol(4, 0));
        part.lengths.push(Vec::new());
        part.lanes.push(Vec::new());
    }
    Bundle::of_rank((rank, 0), symbols, vec![part]).unwrap()
}

fn trace(rows: &Rows) -> Trace {
    let own = (0..).zip(rows).map(|(rank, lanes)| bundle(rank, lanes));
    let mut all = own.reduce(|a, b| merge(a, b).unwrap()).unwrap();
    all.canonical().unwrap();
    Trace { bundle: all, ..Trace::default() }
}

#[track_caller]
fn check(rows: &Rows) -> usize {
    let trace = trace(rows);
    let bytes = write(&trace);
    for back in [read(&bytes).unwrap(), read(&write_plain(&trace)).unwrap()] {
        assert_eq!(write(&back).len(), bytes.len());
        for (rank, lanes) in (0..).zip(rows) {
            let mut walk = Walk::new(&back.bundle, rank, 0).unwrap().unwrap();
            for at in 0..ROUNDS * lanes[0].len() {
                assert_eq!(walk.next_symbol(), Some(0));
                for (lane, numbers) in (0..).zip(lanes) {
                    assert_eq!(walk.value(lane), Some(numbers[at % numbers.len()]), "rank {rank}, {at}");
                }
            }
        }
    }
    bytes.len()
}

/// A trace whose ranks have these rows in each lane. It is made at once: merging so many ranks would take long.
fn large(lanes: &[Vec<Vec<i64>>]) -> Trace {
    let first: Vec<Vec<i64>> = lanes.iter().map(|rows| rows[0].clone()).collect();
    let mut all = bundle(0, &first);
    let cohort = &mut all.cohorts[0];
    cohort.ranks = (0..lanes[0].len() as u32).collect();
    let own = cohort.lanes.len() - lanes.len();
    let mut streams: HashMap<&[i64], u32> = HashMap::new();
    for (lane, rows) in cohort.lanes[own..].iter_mut().zip(lanes) {
        let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
        let mut known: HashMap<&[i64], usize> = HashMap::new();
        for (rank, row) in (0..).zip(rows) {
            let group = *known.entry(row).or_insert_with(|| {
                let stream = *streams.entry(row).or_insert_with(|| {
                    all.streams.push(Flat { numbers: row.clone(), tail: row.len() }.stream().unwrap());
                    all.streams.len() as u32 - 1
                });
                groups.push((stream, Vec::new()));
                groups.len() - 1
            });
            groups[group].1.push(rank);
        }
        let variant = |(stream, ranks): (u32, Vec<u32>)| Variant {
            ranks: RankList::from_sorted(&ranks),
            stream,
            used: 0,
            numbers: Vec::new(),
        };
        *lane = Lane::Varied(groups.into_iter().map(variant).collect());
    }
    all.number_streams();
    all.validate().unwrap();
    Trace { bundle: all, ..Trace::default() }
}

#[track_caller]
fn check_large(lanes: &[Vec<Vec<i64>>]) -> (usize, u64) {
    let bytes = write(&large(lanes));
    let back = contents(&bytes).unwrap();
    for rank in [0, 1, 77, lanes[0].len() as u32 / 3, lanes[0].len() as u32 - 1] {
        let mut walk = Walk::new(&back.trace.bundle, rank, 0).unwrap().unwrap();
        for at in 0..lanes[0][0].len() {
            assert_eq!(walk.next_symbol(), Some(0));
            for (lane, rows) in (0..).zip(lanes) {
                assert_eq!(walk.value(lane), Some(rows[rank as usize][at]), "rank {rank}, {at}");
            }
        }
    }
    (bytes.len(), back.steps)
}

/// What a reader would refuse as too much work is told otherwise.
#[test]
fn many_lanes_of_many_ranks_are_read_back() {
    let bits = 16;
    let rows = rows(Curve { axes: 2, bits }, 1 << bits, true);
    let near: Vec<Vec<i64>> = rows.iter().map(|[_, near]| near.clone()).collect();
    // The same neighbours in every lane are kept once.
    let (_, steps) = check_large(&vec![near.clone(); 20]);
    assert!(steps < 20 << 20, "{steps}");
    // Other numbers of each neighbour in every lane.
    let numbers = |by: i64| rows.iter().map(|[n, _]| n.iter().map(|n| n * by % 101).collect()).collect();
    let mut lanes = vec![near];
    lanes.extend((1..20).map(numbers));
    check_large(&lanes);
}

#[test]
fn any_grid_takes_the_same_bytes() {
    for sorted in [true, false] {
        for (axes, sizes) in [(2, [6, 7, 9]), (3, [6, 8, 9])] {
            let sizes = sizes.map(|bits| check(&rows(Curve { axes, bits }, 1 << bits, sorted)));
            assert!(sizes[2] < sizes[0] + 8, "{axes} axes, sorted: {sorted}: {sizes:?}");
        }
    }
}

#[test]
fn one_neighbour_that_differs_is_kept() {
    let curve = Curve { axes: 3, bits: 7 };
    for rank in [0, 77, 127] {
        for place in [0, 3, 5] {
            let mut rows = rows(curve, 128, true);
            // It is its own neighbour, or one of nobody else, or none of the grid.
            for by in [-rows[rank][1][place], 5, 1 << 20] {
                rows[rank][1][place] += by;
                rows[rank][0][place] += 1;
                check(&rows);
            }
        }
    }
    // Not all ranks of the curve are there.
    check(&rows(curve, 100, true));
}

/// Cells of a map, one of five is land. Who is beside land has other numbers.
fn islands(side: usize) -> Rows {
    let mut random = Rng::with_seed(3);
    let land: Vec<bool> = (0..side * side).map(|_| random.u32(..5) == 0).collect();
    let row = |rank: usize| {
        let beside = |by: usize, to: bool| {
            let other = if to { rank + by } else { rank.wrapping_sub(by) };
            i64::from(land.get(other).is_some_and(|land| !land) && !land[rank])
        };
        let near = [beside(1, false), beside(1, true), beside(side, false), beside(side, true)];
        [near.to_vec(), near.map(|is| 7 * is).to_vec()]
    };
    (0..side * side).map(row).collect()
}

#[test]
fn where_land_is_takes_little_more_than_its_information() {
    let [few, many] = [16, 32].map(|side| check(&islands(side)));
    let information = (32 * 32 - 16 * 16) as f64 * (0.2 * 5f64.log2() + 0.8 * 1.25f64.log2()) / 8.0;
    assert!(((many - few) as f64) < 2.5 * information, "{few} {many}, {information} of information");
}

/// Ranks inside a grid along a curve make more calls than those at its edges.
fn inside(side: u32) -> Rows {
    let curve = Curve { axes: 2, bits: 2 * side.ilog2() };
    let row = |rank: u32| {
        let seen = curve.seen(rank);
        let inside = [seen % side, seen / side].into_iter().all(|at| (1..side - 1).contains(&at));
        let count = if inside { 3 } else { 2 };
        [vec![5; count], (0..count as i64).collect()]
    };
    (0..side * side).map(row).collect()
}

#[test]
fn who_is_inside_takes_the_same_bytes() {
    let [few, many] = [8, 32].map(|side| check(&inside(side)));
    assert!(many < few + 12, "{few} {many}");
}

#[test]
fn any_bytes_of_ranks_along_a_curve_are_safe() {
    // Each rank is seen along the curve once.
    any_bytes_are_safe(&inside(16), [8 * 256; 2]);
}

#[test]
fn any_bytes_of_neighbours_are_safe() {
    // A row of each rank in both lanes.
    any_bytes_are_safe(&rows(Curve { axes: 3, bits: 6 }, 64, true), [2 * 64 * (128 + 6 * 16), 0]);
}

#[test]
fn any_bytes_of_kinds_are_safe() {
    // Each rank in the list and in its cohort.
    any_bytes_are_safe(&islands(16), [2 * 256 * 16, 0]);
}

/// What the form takes at least in steps says that it is in the file, packed and plain; 0 where it is not.
fn any_bytes_are_safe(rows: &Rows, least: [u64; 2]) {
    let mut random = Rng::with_seed(11);
    let trace = trace(rows);
    let good = write(&trace);
    let steps = [&good, &write_plain(&trace)].map(|bytes| contents(bytes).unwrap().steps);
    assert!(steps[0] >= least[0] + if least[1] == 0 { steps[1] } else { 0 }, "{steps:?}");
    assert!(steps[1] >= least[1], "{steps:?}");
    let places = sections(&good).unwrap();
    let body = places[1].offset;
    let mut refused = 0;
    for _ in 0..500 {
        let mut bytes = good.clone();
        let at = body + random.usize(..bytes.len() - body);
        bytes[at] ^= 1 << random.u32(..8);
        // The checksums would notice; behind them nothing may rely on them.
        reseal(&mut bytes, &places);
        let Ok(trace) = read(&bytes) else {
            refused += 1;
            continue;
        };
        for rank in 0..64 {
            if let Ok(Some(mut walk)) = Walk::new(&trace.bundle, rank, 0) {
                (0..100)
                    .take_while(|_| walk.next_symbol().and_then(|_| walk.value(1)).is_some())
                    .for_each(drop);
            }
        }
    }
    assert!(refused > 100, "{refused} of 500 refused");
}
