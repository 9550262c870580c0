//! Memory references without a tracer: what loops over matrices refer to, on threads of ranks that each have their own
//! memory, folds to a size that depends neither on the matrix nor on how many there are.

use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart, Walk, merge};
use refrain_fold::grammar;
use refrain_fold::loops;
use refrain_fold::stream;
use refrain_tracefile::{Meta, Trace, read, write};

/// An instruction and the address it refers to, less where the thread's memory begins.
type Reference = (u32, i64);

const A: i64 = 0;
const B: i64 = 1 << 24;
const C: i64 = 2 << 24;

/// `C += A * B` of n x n numbers, in blocks.
fn multiply(n: i64, block: i64) -> Vec<Reference> {
    let blocks = || (0..n).step_by(block as usize);
    let mut all = Vec::new();
    for (ii, jj, kk) in blocks().flat_map(|i| blocks().flat_map(move |j| blocks().map(move |k| (i, j, k)))) {
        for (i, j) in (ii..ii + block).flat_map(|i| (jj..jj + block).map(move |j| (i, j))) {
            all.push((0, C + 8 * (i * n + j)));
            for k in kk..kk + block {
                all.push((1, A + 8 * (i * n + k)));
                all.push((2, B + 8 * (k * n + j)));
            }
            all.push((3, C + 8 * (i * n + j)));
        }
    }
    all
}

/// `y[i] += A[i][j] * x[j]` of the numbers below the diagonal and on it.
fn triangle(n: i64) -> Vec<Reference> {
    let mut all = Vec::new();
    for i in 0..n {
        all.push((3, C + 8 * i));
        for j in 0..=i {
            all.push((0, A + 8 * (i * n + j)));
            all.push((1, B + 8 * j));
        }
        all.push((2, C + 8 * i));
    }
    all
}

/// Where the memory of a thread begins: a function of both.
fn base(rank: u32, thread: u32) -> i64 {
    0x7f00_0000_0000 + (i64::from(rank) << 32) + (i64::from(thread) << 26)
}

/// How the order of the instructions is kept.
#[derive(Clone, Copy, Debug)]
enum Order {
    Rules,
    Loops,
}

fn parts(order: Order, references: &[Reference], rank: u32, threads: u32) -> Vec<ThreadPart> {
    let symbols = references.iter().map(|r| r.0);
    let (structure, times) = match order {
        Order::Rules => {
            let mut folder = grammar::Folder::new();
            symbols.for_each(|symbol| folder.push(symbol));
            (folder.finish().into(), Vec::new())
        }
        Order::Loops => {
            let mut folder = loops::Folder::new(loops::Matching::Elastic);
            symbols.for_each(|symbol| folder.push(symbol));
            let folded = folder.finish();
            (folded.loops.into(), folded.times.into_iter().zip(folded.lengths).collect())
        }
    };
    let part = |thread: u32| {
        let mut lanes: Vec<stream::Folder> = vec![stream::Folder::new(); 4];
        references.iter().for_each(|r| lanes[r.0 as usize].push(base(rank, thread) + r.1));
        ThreadPart {
            thread,
            structure: refrain_fold::bundle::Structure::clone(&structure),
            times: times.clone(),
            lengths: lanes.iter().map(|lane| vec![lane.len()]).collect(),
            lanes: lanes.iter().map(|lane| vec![lane.finish()]).collect(),
            digest: 1,
        }
    };
    (0..threads).map(part).collect()
}

/// Bytes of the file, from which everything comes back.
fn folded(order: Order, references: &[Reference], ranks: u32, threads: u32) -> usize {
    let entry = |number: u8| SymbolEntry {
        bytes: [number].into(),
        site: 0,
        lanes: 1,
        tally: Tally { total: 0, min: 0, max: 0 },
        classes: Default::default(),
    };
    let mut all = Bundle::default();
    for rank in 0..ranks {
        let parts = parts(order, references, rank, threads);
        let symbols = (0..4).map(entry).collect();
        all = merge(all, Bundle::of_rank((rank, ranks), symbols, parts).unwrap()).unwrap();
    }
    all.canonical().unwrap();
    let trace = Trace { meta: Meta { ranks, complete: true, ..Meta::default() }, bundle: all };
    let bytes = write(&trace);
    let back = read(&bytes).unwrap();
    assert_eq!(back, trace);
    assert_eq!(back.bundle.cohorts.len(), 1);
    // All threads of some ranks, some of all.
    for (rank, thread) in (0..ranks).flat_map(|rank| (0..threads).map(move |thread| (rank, thread))) {
        if rank % 21 != 0 && (rank + thread) % 16 != 5 {
            continue;
        }
        let mut walk = Walk::new(&back.bundle, rank, thread).unwrap().unwrap();
        for &(instruction, address) in references {
            let symbol = walk.next_symbol().unwrap();
            assert_eq!(back.bundle.symbols[symbol as usize].bytes[0], instruction as u8);
            assert_eq!(walk.value(0), Some(base(rank, thread) + address));
        }
        assert_eq!(walk.next_symbol(), None);
    }
    bytes.len()
}

/// No file has more than `most` bytes: of matrices of all sizes on a few threads, and of the first on `many`.
fn check(name: &str, order: Order, most: usize, sizes: &[Vec<Reference>], many: &[(u32, u32)]) {
    let mut told = Vec::new();
    for references in sizes {
        told.push((references.len(), 2, 2, folded(order, references, 2, 2)));
    }
    for &(ranks, threads) in many {
        told.push((sizes[0].len(), ranks, threads, folded(order, &sizes[0], ranks, threads)));
    }
    println!("{name}, {order:?}: (references, ranks, threads, bytes) {told:?}");
    assert!(told.iter().all(|one| one.3 <= most), "{name}, {order:?}: {told:?}");
}

const MANY: [(u32, u32); 5] = [(1, 1), (1, 64), (64, 1), (8, 8), (64, 64)];

#[test]
fn a_blocked_matrix_multiply() {
    let sizes = [16, 32, 64].map(|n| multiply(n, 8));
    check("multiply", Order::Rules, 240, &sizes, &[(1, 1), (4, 4)]);
    check("multiply", Order::Loops, 240, &sizes, &MANY);
}

/// Rules have a repeat count for each row, so that only loops are of one size.
#[test]
fn a_triangular_loop() {
    check("triangle", Order::Loops, 150, &[16, 40, 100, 300].map(triangle), &MANY);
}
