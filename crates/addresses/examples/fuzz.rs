//! Decoders, and what the commands do with references, on bytes that nobody meant for them, for a while:
//! `fuzz [--seconds N] [FORMAT...]`. A panic is a finding; the seed that is printed with it finds it again:
//! `fuzz --seed S FORMAT`. Without a format, also traces that were compressed, each way as long as a format.

#[path = "../tests/mutants/mod.rs"]
mod mutants;

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use refrain_addresses::Format;

fn main() {
    let (mut seconds, mut seed, mut formats) = (60, None, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|n| n.parse().ok()).expect("a number follows");
        match word.as_str() {
            "--seconds" => seconds = number(),
            "--seed" => seed = Some(number()),
            name => formats.push(Format::named(name).expect("a format's name")),
        }
    }
    if formats.is_empty() {
        formats.extend(Format::ALL);
        compressed(Duration::from_secs(seconds));
    }
    for format in formats {
        let end = Instant::now() + Duration::from_secs(seconds);
        let (mut inputs, mut references, mut errors) = (0u64, 0u64, 0u64);
        let mut next = seed.unwrap_or(1);
        let mut fuzz = mutants::Fuzz::new(format);
        while Instant::now() < end {
            let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| fuzz.round(next)));
            let (read, failed) = outcome.unwrap_or_else(|_| {
                eprintln!("fuzz --seed {next} {}", format.name());
                std::process::exit(1);
            });
            inputs += 1;
            references += read;
            errors += u64::from(failed);
            if seed.is_some() {
                break;
            }
            next += 1;
        }
        println!(
            "{:<10} {inputs:>9} inputs, {errors:>9} refused, {references:>12} references, no panic",
            format.name()
        );
    }
}

fn compressed(time: Duration) {
    for compression in mutants::COMPRESSIONS {
        let end = Instant::now() + time;
        let (mut inputs, mut references, mut errors) = (0u64, 0u64, 0u64);
        while Instant::now() < end {
            let outcome = std::panic::catch_unwind(|| mutants::compressed_round(compression, inputs));
            let (read, failed) = outcome.unwrap_or_else(|_| {
                eprintln!("compressed_round({compression:?}, {inputs})");
                std::process::exit(1);
            });
            inputs += 1;
            references += read;
            errors += u64::from(failed);
        }
        let name = format!("{compression:?}");
        println!("{name:<10} {inputs:>9} inputs, {errors:>9} refused, {references:>12} references, no panic");
    }
}
