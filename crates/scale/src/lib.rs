//! Scale without a big machine: communication patterns of N ranks through the same encoding, folding, merging and
//! file code as in a real run, in one process.
//!
//! Owns: a process that exists only here ([`Rank`]: memory, handles, constants of its own), patterns that make the
//! calls a program would make, and [`simulate`], which merges the ranks in the order of `fold::bundle::gather`.
//! Does not own: any of what it measures. No message is ever sent; a pattern knows what its peers do.
//!
//! ```
//! use refrain_scale::{Options, Pattern, simulate};
//! let pattern: Pattern = "torus3d".parse().unwrap();
//! let done = simulate(pattern, 27, 10, &Options::default()).unwrap();
//! assert_eq!(done.report.calls, 27 * (10 * 14 + 4)); // each step: 12 messages, Waitall, Allreduce
//! assert_eq!(refrain_tracefile::read(&done.bytes).unwrap(), done.trace);
//! ```

#![forbid(unsafe_code)]

mod grid;
mod memory;
mod papers;
mod pattern;
mod patterns;
mod process;
mod rank;
mod simulate;

pub use grid::Grid;
pub use memory::Memory;
pub use papers::{Loop, Paper};
pub use pattern::{Pattern, UnknownPattern};
pub use rank::{Access, Comm, Data, Finished, Peer, Rank, Template, Win};
pub use simulate::{Error, Meter, NoMeter, Options, Report, Seconds, Simulation, simulate};
