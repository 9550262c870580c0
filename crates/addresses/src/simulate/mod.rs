//! Caches, simulated from the batches that a reader gives: nothing is unpacked that is not used at once.
//!
//! ```
//! use refrain_addresses::simulate::{Config, Geometry, Hierarchy, Level, Type};
//! use refrain_addresses::{Batch, Format, Reader};
//! let config = Config::new(Geometry::new(32 << 10, 8, 64).unwrap());
//! let mut caches = Hierarchy::new(Level::Unified(config), &[], 0).unwrap();
//! let din: &[u8] = b"2 430d70\n2 430d74\n0 1000acac\n";
//! let mut reader = Reader::new(Box::new(din), Format::Din).unwrap();
//! let mut batch = Batch::new();
//! while reader.read(&mut batch).unwrap() {
//!     caches.add(&batch);
//! }
//! assert_eq!(caches.caches()[0].1.counts().misses[Type::Fetch as usize], 1);
//! ```

mod cache;
mod classes;
mod coherence;
mod commands;
mod counts;
mod curve;
mod extras;
mod flow;
mod geometry;
mod hierarchy;
mod lines;
mod plain;
mod plru;
mod prefetch;
mod sectors;
mod stack;
mod system;
mod tally;
mod tlb;
mod unit;

pub use cache::{Config, Inclusion, Policy, Prefetch, Write};
pub use classes::Class;
pub use coherence::{MOST_CORES, Protocol, State, Traffic};
pub use counts::{Counts, Memory};
pub use curve::{Curve, Distances, Streams};
pub use geometry::{Geometry, Misfit, short_size};
pub use hierarchy::{Hierarchy, Part};
pub use system::{LEVELS, Level, Misplaced, Place, Side, System};
pub use tally::{Region, Tallies, Tally};
pub use tlb::{Lookups, Pages, Tlbs};

/// What is done to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Read = 0,
    Write = 1,
    Fetch = 2,
    /// What a level above sends down: lines that leave it, or writes that it does not keep.
    Written = 3,
    /// What a level above fetches before anybody asks for it.
    Prefetch = 4,
}

pub const ALL: [Type; 5] = [Type::Read, Type::Write, Type::Fetch, Type::Written, Type::Prefetch];

impl Type {
    pub fn name(self) -> &'static str {
        match self {
            Type::Read => "read",
            Type::Write => "write",
            Type::Fetch => "fetch",
            Type::Written => "written",
            Type::Prefetch => "prefetch",
        }
    }
}
