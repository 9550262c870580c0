//! The commands for address traces. They need no MPI, and share nothing with those for MPI but the command line.

mod convert;
mod files;
mod flags;
mod simulate;
mod stats;
mod stats_text;

pub use convert::{Convert, convert, convert_help};
pub use files::is_dash;
pub use simulate::{Simulate, simulate, simulate_help};
pub use stats::{StatsFlags, is_address_trace, stats};
