//! Folding: sequences of symbols into rules, sequences of numbers into shapes, ranks into lists.
//!
//! Owns: structure folding, stream folding, rank lists, the pure merge of what many ranks recorded.
//! Does not own: MPI, files, clocks, processes. Symbols are opaque bytes, numbers are `i64`.
//!
//! ```
//! use refrain_fold::{grammar::Grammar, ranks::RankList, stream::Folder};
//! assert_eq!((0..3000).map(|i| i % 3).collect::<Grammar>().items(), 4); // (0 1 2)x1000
//! let mut offsets = Folder::new();
//! (0..3000).for_each(|i| offsets.push(8 * (i % 3)));
//! assert_eq!(offsets.finish().terms.len(), 1); // 0, 8, 16, over and over
//! assert_eq!(RankList::from_iter([7, 8, 10, 11]).parts.len(), 1); // 2 x 2 ranks
//! ```

pub mod bundle;
pub mod entropy;
pub mod grammar;
pub mod loops;
pub mod ranks;
pub mod stream;
mod xxh64;

pub use xxh64::xxh64;

#[cfg(test)]
mod testing;
