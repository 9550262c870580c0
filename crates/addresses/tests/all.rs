//! All tests of this crate that need nothing of their own: one program, built and linked once.

mod coherence;
mod common;
mod damage;
mod fuzz;
mod mutants;
mod packed;
mod policies;
mod round_trips;
mod simulate;
mod tables;

/// How often a test with random input goes around: a quarter of all rounds, unless `make test-all` asks for all.
fn rounds(all: u64) -> u64 {
    if std::env::var_os("REFRAIN_LONG").is_some() { all } else { all / 4 }
}
