//! Folding: sequences of symbols into rules, sequences of numbers into shapes, ranks into lists.
//!
//! Owns: structure folding, stream folding, rank lists, the pure merge of what many ranks recorded.
//! Does not own: MPI, files, clocks, processes. Symbols are opaque bytes, numbers are `i64`.

pub mod bundle;
pub mod grammar;
pub mod ranks;
pub mod stream;
