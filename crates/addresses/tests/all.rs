//! All tests of this crate that need nothing of their own: one program, built and linked once.

mod coherence;
mod common;
mod damage;
mod fuzz;
mod mutants;
mod packed;
mod policies;
mod round_trips;
#[path = "../../tracefile/tests/rounds.rs"]
mod rounds;
mod simulate;
mod tables;

use rounds::rounds;
