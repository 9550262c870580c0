//! Readers on traces that somebody changed, for a while: `mutants [--seconds N] [--from MUTANT]`. A failure is printed with the
//! mutant's number, and `mutants --only MUTANT` runs it again.

#[path = "../tests/mutants/mod.rs"]
mod mutants;

use std::time::{Duration, Instant};

#[global_allocator]
static COUNTING: mutants::Counting = mutants::Counting;

fn main() {
    let (mut seconds, mut from, mut only) = (60, 0, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number = words.next().and_then(|n| n.parse().ok()).expect("a number follows");
        match word.as_str() {
            "--seconds" => seconds = number,
            "--from" => from = number,
            "--only" => only = Some(number),
            other => panic!("{other}: neither --seconds, --from nor --only"),
        }
    }
    let start = Instant::now();
    let mut fuzz = mutants::Fuzz::new();
    if let Some(number) = only {
        println!("mutant {number}: {:?}", fuzz.round(number));
        return;
    }
    mutants::watch(start, Duration::from_secs(10));
    std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
    let (mut number, mut failures) = (from, 0u64);
    while start.elapsed() < Duration::from_secs(seconds) {
        if let Err(why) = fuzz.round(number) {
            failures += 1;
            println!("mutant {number}: {why}");
        }
        number += 1;
    }
    for (command, (times, longest)) in &fuzz.bounds.commands {
        println!("{times:8} {command}, {} ms at most", longest.as_millis());
    }
    let (mutants, read) = (number - from, fuzz.read);
    let commands: u64 = fuzz.bounds.commands.values().map(|(times, _)| times).sum();
    println!(
        "{mutants} mutants from {from} on, {read} of them read, {commands} commands, {failures} failures"
    );
    std::process::exit(i32::from(failures > 0));
}
