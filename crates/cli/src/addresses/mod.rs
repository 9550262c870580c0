//! The commands for address traces. They need no MPI, and share nothing with those for MPI but the command line.

mod convert;
mod files;
mod flags;
mod stats;
mod stats_text;

pub use convert::{Convert, convert, convert_help};
pub use stats::{StatsFlags, stats};
