//! When calls began and ended: packed in blocks, exactly or in bins, and back; or how their times are distributed (`paths`).
//!
//! Owns: the bytes of a block, what a histogram is. Does not own: where times come from, where blocks are kept, what is asked of them.
//!
//! Which calls a thread made is told elsewhere, so both sides know each call's *signature* (a hash of what it is) and its
//! function: times are packed beside these, and a reader gives them again.
//!
//! ```
//! use refrain_model::time::Time;
//! use refrain_times::{Packer, Span, Unpacker};
//! let mut packer = Packer::new(&Time::Exact).unwrap();
//! for i in 0..3 {
//!     assert!(packer.push(7, 21, Span { start: 1000 * i, end: 1000 * i + 90 }, 0).is_none());
//! }
//! let block = packer.finish().unwrap();
//! assert_eq!((block.first, block.calls), (0, 3));
//! let mut unpacker = Unpacker::new(&Time::Exact).unwrap();
//! unpacker.begin(&block.bytes, block.calls).unwrap();
//! let told = unpacker.next(7, 21).unwrap();
//! assert_eq!((told.span, told.start_error), (Span { start: 0, end: 90 }, 0));
//! ```

#![forbid(unsafe_code)]

mod binned;
mod bins;
mod block;
mod exact;
pub mod levels;
mod model;
pub mod paths;

pub use block::{FIRST_BYTES, Packer, Unpacker, first_start};

/// A block has so many calls, the last one fewer.
pub const CALLS: u32 = 1 << 15;

/// When a call began and ended: nanoseconds of the clock of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    pub start: i64,
    pub end: i64,
}

/// The times of some calls that follow each other, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Which call of its thread the first one is, from 0.
    pub first: u64,
    pub calls: u32,
    pub bytes: Vec<u8>,
}

/// What a block says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallTime {
    pub span: Span,
    /// It began at most so much earlier or later than that, in nanoseconds.
    pub start_error: u64,
    pub end_error: u64,
    /// The `double` that it returned, by its bits: of clocks, in exact blocks.
    pub result: Option<u64>,
}

/// The bytes are not those of a block, or not of these calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the times of calls are damaged")]
pub struct Damaged;
