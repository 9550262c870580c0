//! Refrain held against real MPI libraries and an independent witness of what the programs asked of them.
//!
//! Owns: building the programs and the witness of `tests/`, running them traced and untraced with a time limit,
//! and comparing `refrain dump --json` with the witness. Does not own, and never links, any code of Refrain:
//! what it knows, it knows from the command line and from JSON.
//!
//! ```no_run
//! use refrain_e2e::{Library, Program, compare, run};
//! let traced = run::traced(Library::Mpich, &Program::named("ring"), 3);
//! let dump = traced.dump();
//! let report = compare::compare(&dump, &traced.witness(), Default::default()).unwrap();
//! println!("{} calls equal", report.calls);
//! ```

use std::io::Write;

mod account;
pub mod build;
pub mod check;
pub mod compare;
pub mod examples;
pub mod hosts;
pub mod json;
pub mod machine;
pub mod memory;
pub mod once;
pub mod run;

pub use build::{Library, Program};

/// Says why something is not tested, also where the output of tests that pass is not shown.
pub fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "not tested: {why}");
}
