//! How many calls all ranks made, told by kinds of ranks: the same as rank by rank, however many there are.

mod common;

use common::*;
use refrain_encode::{Tape, calls_of, calls_of_all, elements_of_all};
use refrain_fold::bundle::{Bundle, Cohort, Lane, Number, Variant, merge};
use refrain_fold::loops::{Loops, Node};
use refrain_fold::ranks::{Dim, MapPart, Part, RankList, RankMap};
use refrain_fold::stream::Stream;
use std::alloc::{GlobalAlloc, Layout as Size, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every request goes to the system allocator as it came; counting touches only a thread-local without a
// destructor, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, size: Size) -> *mut u8 {
        BYTES.with(|n| n.set(n.get() + size.size()));
        // SAFETY: the caller's promise about the size is passed on.
        unsafe { System.alloc(size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, size: Size) {
        // SAFETY: `pointer` came from `alloc` above, hence from the system allocator, with this size.
        unsafe { System.dealloc(pointer, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What ranks do in each of some steps: how many polls that fail, and how many barriers.
fn recorded(folding: &str, ranks: u32, steps: usize, does: &dyn Fn(u32, usize) -> (usize, usize)) -> Bundle {
    let comm = handle("MPI_COMM_WORLD");
    let mut all = Bundle::default();
    for rank in 0..ranks {
        let mut world = world_of(rank as i32);
        let mut tape = Tape::new(folding.parse().unwrap());
        let status = FakeStatus { source: 1, tag: 5, bytes: 8, error: 0, cancelled: 0 };
        let mut push = |name: &str, args: &[usize]| {
            world.call(name, args, 0, || {});
            tape.push(&world.record, 7);
        };
        for step in 0..steps {
            let (fails, barriers) = does(rank, step);
            for n in 0..=fails {
                let flag = i32::from(n == fails);
                let (flag, status) =
                    (std::ptr::from_ref(&flag) as usize, std::ptr::from_ref(&status) as usize);
                push("MPI_Iprobe", &[ANY_SOURCE, 5, comm, flag, status]);
            }
            (0..barriers).for_each(|_| push("MPI_Barrier", &[comm]));
            push("MPI_Initialized", &[std::ptr::from_ref(&1i32) as usize]);
        }
        all = merge(all, Tape::bundle((rank, 0), [(0, &mut tape)], |ticks| ticks).unwrap()).unwrap();
    }
    if folding != "grammar" {
        all.score().unwrap();
    }
    all.canonical().unwrap();
    all
}

#[test]
fn as_counted_rank_by_rank() {
    type Does = dyn Fn(u32, usize) -> (usize, usize);
    let alike = |_: u32, step: usize| (step % 3, 2usize);
    let borders = |rank: u32, _: usize| (0usize, 2 - usize::from([0, 3].contains(&(rank % 4))));
    let triangle = |rank: u32, step: usize| (rank as usize % 3, step.min(rank as usize));
    let ragged = |rank: u32, step: usize| {
        let n = (rank as usize * 7 + step * 13) ^ (rank as usize * step);
        (n % 5, n % 3)
    };
    let mut differ = 0;
    for folding in ["grammar", "loops", "loops,exact", "loops,apart"] {
        for does in [&alike as &Does, &borders, &triangle, &ragged] {
            let bundle = recorded(folding, 12, 9, does);
            let made: usize = (0..12)
                .flat_map(|rank| (0..9).map(move |step| does(rank, step)))
                .map(|(fails, barriers)| fails + barriers + 2)
                .sum();
            let (mut all, mut one_by_one) = (0, 0);
            for cohort in &bundle.cohorts {
                all += calls_of_all(&bundle, cohort);
                differ += usize::from(bundle.counts_differ(cohort));
                one_by_one += cohort.ranks.iter().map(|rank| calls_of(&bundle, cohort, rank)).sum::<u64>();
            }
            assert_eq!((all, one_by_one), (made as u64, made as u64), "{folding}");
        }
    }
    assert!(differ > 2, "{differ} cohorts of ranks that differ");
}

/// Displacements that follow from counts are as many elements as others.
#[test]
fn elements_are_counted_however_they_are_told() {
    let (comm, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let elements = |displacements: [i32; 5]| {
        let (mut world, mut tape) = (world(), Tape::default());
        let counts = [2i32, 0, 1, 1, 3];
        let side = [0, counts.as_ptr() as usize, displacements.as_ptr() as usize, int];
        for _ in 0..4 {
            world.call("MPI_Alltoallv", &[&side[..], &side, &[comm]].concat(), 0, || {});
            tape.push(&world.record, 7);
        }
        let bundle = Tape::bundle((0, 0), [(0, &mut tape)], |ticks| ticks).unwrap();
        elements_of_all(&bundle, &bundle.cohorts[0])
    };
    // Four calls, each with five counts and five displacements on either side.
    assert_eq!((elements([0, 2, 2, 3, 4]), elements([0, 9, 2, 3, 4])), (80, 80));
}

fn ranks(start: u32, dims: &[(u32, u32)]) -> RankList {
    RankList { parts: vec![Part { start, dims: dims.to_vec() }] }
}

/// A loop of 100 steps; in it one call by the ranks of the lower half, and a loop of some of them with another call.
fn halves(many: u32) -> (Bundle, Cohort) {
    let bundle = recorded("loops", 1, 2, &|_, _| (0, 1));
    let symbol = |name: &str| {
        let is = |entry: &refrain_fold::bundle::SymbolEntry| {
            refrain_encode::Layout::parse(&entry.bytes).unwrap().function.name == name
        };
        bundle.symbols.iter().position(is).unwrap() as u32
    };
    let nodes = vec![
        Node::Loop { inside: 3 },
        Node::Event(symbol("MPI_Barrier")),
        Node::Loop { inside: 1 },
        Node::Event(symbol("MPI_Initialized")),
    ];
    let streams = [100, 0, 1, 2, 3].map(Stream::constant).to_vec();
    let (lower, upper) = (ranks(0, &[(many / 2, 1)]), ranks(many / 2, &[(many / 2, 1)]));
    let variant =
        |ranks: &RankList, stream| Variant { ranks: ranks.clone(), stream, used: 0, numbers: Vec::new() };
    // The same number for rows of ranks: 5 in the lower half, 7 in the upper.
    let part =
        |start, value| MapPart { start, value, dims: vec![Dim { count: many / 2, stride: 1, step: 0 }] };
    let values = RankMap::plainly(vec![part(0, 5), part(many / 2, 7)]);
    let all = Variant { numbers: vec![Number { place: 0, values }], ..variant(&ranks(0, &[(many, 1)]), 1) };
    let lanes = vec![
        Lane::same(0),
        Lane::Varied(vec![variant(&lower, 2), variant(&upper, 1)]),
        Lane::Varied(vec![all]),
        Lane::Varied(vec![variant(&lower, 3), variant(&upper, 4)]),
    ];
    let cohort = Cohort { ranks: ranks(0, &[(many, 1)]), structure: 0, lanes, sides: Vec::new(), digest: 0 };
    (Bundle { structures: vec![Loops { nodes }.into()], streams, ..bundle }, cohort)
}

/// Sixteen million: far too many to hold something of each.
#[test]
fn as_many_as_there_may_be() {
    // Each of the lower half: 100 barriers and 100 * 5 * 2 others; of the upper half: 100 * 7 * 3.
    let expected = |many: u64| many / 2 * (100 + 1000) + many / 2 * 2100;
    let (bundle, cohort) = halves(8);
    assert_eq!(cohort.ranks.iter().map(|rank| calls_of(&bundle, &cohort, rank)).sum::<u64>(), expected(8));
    assert_eq!(calls_of_all(&bundle, &cohort), expected(8));
    // Nothing is held for each rank: what is allocated is that of eight ranks, byte for byte. A loop over the ranks that
    // allocates nothing is not seen here.
    let held = |many: u32| {
        let (bundle, cohort) = halves(many);
        let before = BYTES.with(Cell::get);
        assert_eq!(calls_of_all(&bundle, &cohort), expected(many.into()));
        BYTES.with(Cell::get) - before
    };
    assert_eq!(held(1 << 24), held(8));
}
