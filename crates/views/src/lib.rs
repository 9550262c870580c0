//! What a trace says: every call as text or JSON, statistics, an overview, a check.
//!
//! Owns: turning a trace into words, as pure functions from a trace to a `Write`. Does not own: opening files,
//! arguments, terminals, exit codes; nothing here prints by itself.
//!
//! ```no_run
//! # fn trace() -> refrain_tracefile::Trace { unimplemented!() }
//! use refrain_views::dump::{Format, Selection, dump};
//! let first_ten = Selection { calls: 0..10, ..Selection::default() };
//! dump(&trace(), &first_ten, Format::Json, &mut std::io::stdout()).unwrap();
//! ```

#![forbid(unsafe_code)]

mod clocks;
pub mod closed;
pub mod command;
pub mod cores;
pub mod diff;
pub mod dump;
mod error;
pub mod exact;
pub mod flight;
pub mod gaps;
pub mod happenings;
pub mod human;
pub mod info;
pub mod json;
pub mod length;
pub mod loops;
mod meaning;
pub mod plot;
pub mod proxy;
pub mod references;
pub mod replayable;
mod rivals;
pub mod select;
pub mod stats;
pub mod table;
pub mod timed;
pub mod value;
pub mod verify;
pub mod waiting;
pub mod waits;
pub mod written;

pub use error::Error;
pub use meaning::addresses::{Addresses, Apart};
pub use meaning::roles::{Receives, receives};
