//! A few of the mutants that `scripts/fuzz` tries for as long as one likes.

mod mutants;
#[path = "../../tracefile/tests/rounds.rs"]
mod rounds;

use std::time::{Duration, Instant};

#[global_allocator]
static COUNTING: mutants::Counting = mutants::Counting;

#[test]
fn no_mutant_makes_a_reader_fail() {
    mutants::watch(Instant::now(), Duration::from_secs(300));
    let mut fuzz = mutants::Fuzz::new();
    let failed: Vec<String> = (0..rounds::rounds(2000))
        .filter_map(|number| Some(format!("mutant {number}: {}", fuzz.round(number).err()?)))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    // Most are refused by the reader of files; enough are not.
    let commands: u64 = fuzz.bounds.commands.values().map(|(times, _)| times).sum();
    assert!(fuzz.read > 50 && commands > 1200, "{} {commands}", fuzz.read);
}
