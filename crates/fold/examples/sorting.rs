//! Memory references of a sorting algorithm, folded, merged, written and read back: what a user of this crate does, with data
//! that has little shape. Eight workers sort lists of their own by insertion, so that inner loops run as often as the numbers
//! say.
//!
//!     cargo run --release -p refrain-fold --example sorting [NUMBERS]

use refrain_fold::bundle::{Bundle, Structure, SymbolEntry, Tally, ThreadPart, Walk, merge};
use refrain_fold::{Bounded, Fold, grammar, loops, stream};

const WORKERS: u32 = 8;
const NAMES: [&str; 4] = ["load key", "load other", "move other", "store key"];

/// What sorting a list of so many numbers does with memory: what, and where.
fn references(worker: u32, count: usize) -> Vec<(usize, i64)> {
    let mut random = fastrand::Rng::with_seed(worker.into());
    let mut list: Vec<u32> = (0..count).map(|_| random.u32(..1 << 24)).collect();
    let address = |place: usize| 0x10_0000 * (1 + i64::from(worker)) + 8 * place as i64;
    let mut seen = Vec::new();
    for i in 1..count {
        let key = list[i];
        seen.push((0, address(i)));
        let mut at = i;
        while at > 0 {
            seen.push((1, address(at - 1)));
            if list[at - 1] <= key {
                break;
            }
            list[at] = list[at - 1];
            seen.push((2, address(at)));
            at -= 1;
        }
        list[at] = key;
        seen.push((3, address(at)));
    }
    assert!(list.is_sorted());
    seen
}

/// One worker's references with its order folded by `folder`.
fn record<F: Fold<Item = u32>>(
    worker: u32,
    references: &[(usize, i64)],
    mut folder: F,
    parts: impl Fn(F::Folded) -> (Structure, Vec<(stream::Stream, u64)>),
) -> Bundle {
    let mut addresses = NAMES.map(|_| stream::Folder::new());
    for &(symbol, address) in references {
        folder.push(symbol as u32);
        addresses[symbol].push(address);
    }
    let (structure, times) = parts(folder.finish());
    let lanes = addresses.iter().map(|folder| vec![folder.finish()]).collect();
    let lengths = addresses.iter().map(|folder| vec![folder.len()]).collect();
    let tally = Tally { total: 0, min: 0, max: 0 };
    let symbol = |name: &str| SymbolEntry {
        bytes: name.as_bytes().into(),
        site: 0,
        lanes: 1,
        tally,
        classes: Default::default(),
    };
    let part = ThreadPart { thread: 0, structure, times, lanes, lengths, digest: 0 };
    Bundle::of_rank((worker, WORKERS), NAMES.map(symbol).to_vec(), vec![part])
        .expect("a recording that is whole")
}

fn main() {
    let count: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(500);
    let all: Vec<Vec<(usize, i64)>> = (0..WORKERS).map(|worker| references(worker, count)).collect();
    let total: usize = all.iter().map(Vec::len).sum();
    println!("{WORKERS} workers sort {count} numbers each: {total} references");
    for name in ["rules", "loops"] {
        let recorded = (0..WORKERS).zip(&all).map(|(worker, references)| match name {
            "rules" => record(worker, references, grammar::Folder::new(), |rules| (rules.into(), Vec::new())),
            _ => record(worker, references, loops::Folder::new(loops::Matching::Elastic), |folded| {
                (folded.loops.into(), folded.times.into_iter().zip(folded.lengths).collect())
            }),
        });
        let merged = recorded.reduce(|a, b| merge(a, b).expect("two recordings that fit"));
        let mut bundle = merged.unwrap_or_default();
        bundle.canonical().expect("a bundle that is whole");
        let bytes = bundle.to_bytes();
        let back = Bundle::from_bytes(&bytes).expect("what was written");
        for (worker, references) in (0..WORKERS).zip(&all) {
            let walk = Walk::new(&back, worker, 0).expect("a bundle that is whole");
            let mut walk = walk.expect("a worker that was recorded");
            for &(symbol, address) in references {
                let next = walk.next_symbol().map(|symbol| &*back.symbols[symbol as usize].bytes);
                assert_eq!((next, walk.value(0)), (Some(NAMES[symbol].as_bytes()), Some(address)));
            }
            assert_eq!(walk.next_symbol(), None);
        }
        let (structures, cohorts) = (back.structures.len(), back.cohorts.len());
        let each = 8.0 * bytes.len() as f64 / total as f64;
        println!(
            "  as {name}: {} bytes, {each:.2} bits a reference, {structures} structures, {cohorts} cohorts",
            bytes.len()
        );
    }
    // Where a recording may be as long as it likes, but memory may not: the pieces are what would be written.
    let (mut pieces, mut sealed) = (0, 0);
    let mut bounded = Bounded::new(grammar::Folder::new(), 1 << 16, |piece| {
        pieces += 1;
        sealed += piece.len;
    });
    let order: Vec<u32> = all.iter().flatten().map(|&(symbol, _)| symbol as u32).collect();
    order.chunks(4096).for_each(|column| bounded.extend(column));
    bounded.finish();
    assert_eq!(sealed, total as u64);
    println!("  in 64 KiB: {pieces} pieces");
}
