//! Memory references: what a thread loads and stores, folded as it happens, and read back one by one.
//!
//! Owns: what a basic block is in a trace, the recording of a thread, joining threads and processes, reading. Does not own: where
//! references come from, files, names of places.
//!
//! A block of code is a symbol: which of its instructions refer to memory, how, and how many bytes. Where it lies, and by
//! which calls it was reached, is its site. Each of its references has a lane of addresses. So the order of the blocks folds
//! into loops, and the addresses of each instruction into strides. Threads and ranks are members of one bundle: what they
//! share is there once, and a base address that depends on the thread is a function of it. Where calls of the same run are recorded
//! too, a mark stands in the order for each of them, so that every reference lies between two calls.
//!
//! ```
//! use refrain_fold::bundle::Sites;
//! use refrain_references::{Access, Block, Folding, Reference, References, Thread, join};
//!
//! let body = Block {
//!     pc: 0x1000,
//!     references: vec![
//!         Reference { at: 0, access: Access::Load, size: 8 },
//!         Reference { at: 4, access: Access::Store, size: 8 },
//!     ],
//! };
//! let record = |thread: u32| {
//!     let mut recording = Thread::new(Folding::Rules, (0, 1), thread);
//!     let symbol = recording.symbol(&body, 0);
//!     for i in 0..1000 {
//!         let at = 8 * (1000 * u64::from(thread) + i);
//!         recording.push(symbol, &[0x10_0000 + at, 0x20_0000 + at]);
//!     }
//!     recording.bundle(&Sites::default()).unwrap()
//! };
//! let all = join((0..4).map(record)).unwrap();
//! assert_eq!(all.cohorts.len(), 1);
//! let third: Vec<_> = References::new(&all, (0, 3), None).unwrap().unwrap().map(Result::unwrap).collect();
//! assert_eq!((third.len(), third[1].address, third[1].access), (2000, 0x20_0000 + 24_000, Access::Store));
//! ```

#![forbid(unsafe_code)]

mod block;
pub mod emulator;
mod join;
pub mod parts;
mod read;
mod stretch;
mod thread;

pub use block::{Access, Block, Reference};
pub use join::{Joining, join};
pub use read::{Checked, Event, Item, References, Symbol, check, has_marks, symbols};
pub use stretch::{Chunks, MOST_OF_BLOCK, Sink, Source, open};
pub use thread::{Folding, Thread};

/// What [`refrain_tracefile::Meta::abi`] says of such a trace.
pub const ABI: &str = "memory";

/// Whether a trace has memory references instead of calls.
pub fn is_memory(meta: &refrain_tracefile::Meta) -> bool {
    meta.abi == ABI
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("block {symbol} is not well formed: {why}")]
    Block { symbol: usize, why: &'static str },
    #[error("reference {at}: the block has no address for it")]
    Address { at: u64 },
    #[error("reference {at}: it is among those in chunks, and these do not fit")]
    Stretch { at: u64 },
    #[error(transparent)]
    Chunks(#[from] refrain_tracefile::chunks::Error),
    #[error(transparent)]
    Bundle(#[from] refrain_fold::bundle::Error),
}
