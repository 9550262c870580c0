//! All tests of this crate that need nothing of their own: one program, built and linked once.

mod bombs;
mod classes;
mod common;
mod diff;
mod flight;
mod happenings;
mod loops;
#[path = "../../tracefile/tests/seal/mod.rs"]
#[allow(dead_code)] // A section is added, none is changed.
mod seal;
mod second_reader;
mod stats;
mod timed;
mod views;
mod waits;
mod written;
