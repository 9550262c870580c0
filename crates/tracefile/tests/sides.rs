//! Side lanes: numbers of a stated kind beside those that a symbol's bytes announce.

use refrain_fold::bundle::{Bundle, Error, SideKind, SymbolEntry, Tally, ThreadPart, Walk, merge};
use refrain_fold::grammar::Grammar;
use refrain_fold::stream::{Folder, Stream};
use refrain_tracefile::{Meta, Trace, read, sections, write};

const RANKS: u32 = 3;
const THREADS: u32 = 4;
const CALLS: i64 = 1000;
/// No reader knows it.
const OTHER: SideKind = SideKind(777);

fn stream(numbers: impl Iterator<Item = i64>) -> Stream {
    let mut folder = Folder::new();
    numbers.for_each(|number| folder.push(number));
    folder.finish()
}

fn address(rank: u32, thread: u32, call: i64) -> i64 {
    (i64::from(rank) << 30) + (i64::from(thread) << 20) + 8 * call
}

/// Noise, so that some of it is packed.
fn time(rank: u32, thread: u32, call: i64) -> i64 {
    let seed = (call as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(rank * 100 + thread) << 32;
    1000 * call + (seed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 56) as i64
}

/// Two calls in turn, of which the second has addresses and, on rank 1, the first a kind that nobody knows.
fn recording(rank: u32, sides: bool) -> Bundle {
    let entry = |number: u8| SymbolEntry {
        bytes: [number].into(),
        site: 0,
        lanes: 1,
        tally: Tally { total: 0, min: 0, max: 0 },
        classes: Default::default(),
    };
    let part = |thread: u32| ThreadPart {
        thread,
        structure: (0..2 * CALLS as u32).map(|call| call % 2).collect::<Grammar>().into(),
        times: Vec::new(),
        lanes: vec![vec![Stream::constant(7)], vec![stream(0..CALLS)]],
        lengths: vec![vec![CALLS as u64]; 2],
        digest: 5,
    };
    let parts = (0..THREADS).map(part).collect();
    let mut bundle = Bundle::of_rank((rank, RANKS), vec![entry(0), entry(1)], parts).unwrap();
    if sides {
        let of = |numbers: Stream| Some((numbers, CALLS as u64));
        let addresses = |thread, symbol| match symbol {
            1 => of(stream((0..CALLS).map(|call| address(rank, thread, call)))),
            _ => None,
        };
        bundle.add_side(SideKind::ADDRESS, addresses).unwrap();
        let times = |thread, _| of(stream((0..CALLS).map(|call| time(rank, thread, call))));
        bundle.add_side(SideKind::TIME, times).unwrap();
        assert!(matches!(bundle.add_side(SideKind::TIME, times), Err(Error::Side { .. })));
        if rank == 1 {
            bundle.add_side(OTHER, |_, symbol| (symbol == 0).then(|| (Stream::constant(9), 1000))).unwrap();
        }
    }
    bundle
}

fn trace(order: impl Iterator<Item = u32>, sides: bool) -> Trace {
    let mut all = Bundle::default();
    for rank in order {
        all = merge(all, recording(rank, sides)).unwrap();
    }
    all.canonical().unwrap();
    Trace { meta: Meta { ranks: RANKS, complete: true, ..Meta::default() }, bundle: all }
}

#[test]
fn side_lanes_come_back_and_change_nothing_else() {
    let whole = trace(0..RANKS, true);
    assert_eq!(trace((0..RANKS).rev(), true), whole);
    assert_eq!(Bundle::from_bytes(&whole.bundle.to_bytes()).unwrap(), whole.bundle);
    let bytes = write(&whole);
    let back = read(&bytes).unwrap();
    assert_eq!(back, whole);
    // Rank 1 has a kind more, and so is a cohort of its own.
    assert_eq!(back.bundle.cohorts.len(), 2);
    for (rank, thread) in (0..RANKS).flat_map(|rank| (0..THREADS).map(move |thread| (rank, thread))) {
        let mut walk = Walk::new(&back.bundle, rank, thread).unwrap().unwrap();
        for call in 0..CALLS {
            for symbol in 0..2 {
                assert_eq!(walk.next_symbol(), Some(symbol));
                assert_eq!(walk.value(0), Some(if symbol == 0 { 7 } else { call }));
                let own = (symbol == 1).then(|| address(rank, thread, call));
                assert_eq!(walk.side(SideKind::ADDRESS), own);
                assert_eq!(walk.side(SideKind::TIME), Some(time(rank, thread, call)));
                assert_eq!(walk.side(OTHER), (rank == 1 && symbol == 0).then_some(9));
                assert_eq!(walk.side(SideKind::DURATION), None);
            }
        }
        assert_eq!(walk.next_symbol(), None);
    }
    // Every flipped byte is noticed.
    for at in (0..bytes.len()).rev().step_by(97) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 4;
        assert!(read(&bytes).is_err(), "{at}");
    }
}

/// What holds the calls is the same to the byte where all ranks have the same kinds.
#[test]
fn sections_of_calls_do_not_know_of_side_lanes() {
    let (with, without) = (trace([0, 2].into_iter(), true), trace([0, 2].into_iter(), false));
    let (with, without) = (write(&with), write(&without));
    let body = |bytes: &[u8], name: &str| -> Option<Vec<u8>> {
        let all = sections(bytes).unwrap();
        let one = all.iter().find(|section| section.name == name)?;
        Some(bytes[one.offset..one.offset + one.stored].to_vec())
    };
    for name in ["meta", "symbols", "structure", "ranks", "streams", "tallies", "blocks"] {
        assert_eq!(body(&with, name), body(&without, name), "{name}");
    }
    assert!(body(&with, "sides").is_some() && body(&without, "sides").is_none());
}
