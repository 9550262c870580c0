//! Folding: sequences of symbols into rules, sequences of numbers into shapes, ranks into lists.
//!
//! Owns: structure folding, stream folding, rank lists, the pure merge of what many ranks recorded.
//! Does not own: MPI, files, clocks, processes. Symbols are opaque bytes, numbers are 64 bits that wrap.
//!
//! ```
//! use refrain_fold::{grammar::Grammar, ranks::RankList, stream::Folder};
//! assert_eq!((0..3000).map(|i| i % 3).collect::<Grammar>().items(), 4); // (0 1 2)x1000
//! let mut offsets = Folder::new();
//! (0..3000).for_each(|i| offsets.push(8 * (i % 3)));
//! assert_eq!(offsets.finish().terms.len(), 1); // 0, 8, 16, over and over
//! assert_eq!(RankList::from_iter([7, 8, 10, 11]).parts.len(), 1); // 2 x 2 ranks
//! ```
//!
//! # All of it, on something that is not MPI
//!
//! Four workers multiply a matrix with a vector, each in a part of memory of its own. Every reference is a symbol, which says
//! what is read or written, and a number: the address. The order of the symbols is folded twice here, into rules and into
//! loops; a recording has one of the two.
//!
//! ```
//! use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart, Walk, merge};
//! use refrain_fold::{Fold, grammar, loops, stream};
//!
//! const NAMES: [&str; 3] = ["load matrix", "load vector", "store result"];
//!
//! /// What a worker does: 40 rows of 50.
//! fn references(worker: u32) -> Vec<(usize, i64)> {
//!     let own = 0x10_0000 * i64::from(worker);
//!     let row = |i: i64| {
//!         let products = (0..50).flat_map(move |j| [(0, own + 8 * (50 * i + j)), (1, 8 * j)]);
//!         products.chain([(2, own + 0x8_0000 + 8 * i)])
//!     };
//!     (0..40).flat_map(row).collect()
//! }
//!
//! /// A worker folds its own symbols and numbers as they come.
//! fn record(worker: u32, in_loops: bool) -> Bundle {
//!     let mut rules = grammar::Folder::new();
//!     let mut tree = loops::Folder::new(loops::Matching::Elastic);
//!     let mut addresses = [const { Vec::new() }; 3];
//!     for (symbol, address) in references(worker) {
//!         rules.push(symbol as u32);
//!         tree.push(symbol as u32);
//!         addresses[symbol].push(address);
//!     }
//!     assert_eq!(rules.finish().len(), 40 * 101);
//!     let (structure, times) = match in_loops {
//!         false => (rules.finish().into(), Vec::new()),
//!         true => {
//!             let folded = tree.finish(); // ((load matrix, load vector) x50, store result) x40
//!             assert_eq!(folded.loops.nodes.len(), 5);
//!             (folded.loops.into(), folded.times.into_iter().zip(folded.lengths).collect())
//!         }
//!     };
//!     // Numbers may also come in columns. Each symbol has one lane of them.
//!     let streams = addresses.map(|column: Vec<i64>| {
//!         let mut folder = stream::Folder::new();
//!         folder.extend(&column);
//!         folder
//!     });
//!     let lanes = streams.iter().map(|folder| vec![folder.finish()]).collect();
//!     let lengths = streams.iter().map(|folder| vec![folder.len()]).collect();
//!     let tally = Tally { total: 0, min: 0, max: 0 };
//!     let symbol = |name: &str| SymbolEntry { bytes: name.as_bytes().into(), site: 0, lanes: 1, tally, classes: Default::default() };
//!     let part = ThreadPart { thread: 0, structure, times, lanes, lengths, digest: 0 };
//!     Bundle::of_rank((worker, 4), NAMES.map(symbol).to_vec(), vec![part]).unwrap()
//! }
//!
//! for in_loops in [false, true] {
//!     // What is equal is there once, with the list of workers it holds for.
//!     let workers = (0..4).map(|worker| record(worker, in_loops));
//!     let mut all = workers.reduce(|a, b| merge(a, b).unwrap()).unwrap();
//!     all.canonical().unwrap();
//!     assert_eq!((all.structures.len(), all.cohorts.len()), (1, 1));
//!     let bytes = all.to_bytes();
//!     assert!(bytes.len() < 500, "{} bytes for 16,160 references", bytes.len());
//!
//!     // Read back, any worker's references come one after the other.
//!     let back = Bundle::from_bytes(&bytes).unwrap();
//!     for worker in 0..4 {
//!         let mut walk = Walk::new(&back, worker, 0).unwrap().unwrap();
//!         for (symbol, address) in references(worker) {
//!             let entry = &back.symbols[walk.next_symbol().unwrap() as usize];
//!             assert_eq!((&*entry.bytes, walk.value(0)), (NAMES[symbol].as_bytes(), Some(address)));
//!         }
//!         assert_eq!(walk.next_symbol(), None);
//!     }
//! }
//! ```
//!
//! The same with numbers that have no shape, and with a bound on memory: `examples/sorting.rs`.

#![forbid(unsafe_code)]

pub mod bundle;
pub mod entropy;
mod folding;
pub mod grammar;
pub mod loops;
pub mod pack;
mod print;
pub mod ranks;
mod round;
pub mod stream;

/// What names symbols, call stacks and modules in files (FORMAT.md): taken once for each of these, never for a call.
pub use xxhash_rust::xxh64::xxh64;

/// Maps for keys we make ourselves: nobody can choose them to collide. They take no seed from the system, so they serve in a
/// traced program too. Their order, which is the same in every run, is in no file.
pub use rustc_hash::{FxHashMap as FastMap, FxHashSet as FastSet};

pub use folding::{Bounded, Fold, Piece};

#[cfg(test)]
mod testing;
