//! Replays of traces that somebody changed: real ones, with numbers of theirs in place of which others stand, and the digest made
//! right again. A trace may come from anybody: a replay of it is done, refused with a sentence, or ended by MPI or by
//! `--patience`; no rank of it crashes. A number stands for a mutant: the same number, the same change of the same trace.
//!
//! `scripts/fuzz --replay MINUTES` tries others for as long as one likes.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use refrain_e2e::run::words;
use refrain_e2e::{Library, Program, run};

/// Programs whose calls have numbers of every kind, and on how many ranks they run.
const SEEDS: [(&str, u32); 14] = [
    ("p2p", 2),
    ("vw", 3),
    ("windows", 2),
    ("types", 2),
    ("rma", 2),
    ("types_more", 1),
    ("persistent", 2),
    ("comms", 3),
    ("io", 2),
    ("coll_forms", 2),
    ("completion", 3),
    ("misc", 2),
    ("icollectives", 3),
    ("seldom", 2),
];

/// Numbers that come from anybody.
const ODD: [i64; 29] = [
    -1,
    0,
    1,
    2,
    -2,
    7,
    255,
    1000,
    65_536,
    1 << 20,
    (1 << 30) + 1,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 31,
    1 << 32,
    1 << 40,
    (1 << 40) + 4096,
    0x7f00_0000_0000,
    1 << 47,
    1 << 61,
    i64::MAX,
    i64::MIN,
    -(1 << 40),
    -4096,
    // Names of constants: MPI_INT, MPI_TAG_UB, MPI_PROC_NULL, MPI_UNDEFINED, MPI_THREAD_FUNNELED.
    i64::MIN + 15,
    i64::MIN + 106,
    i64::MIN + 151,
    i64::MIN + 154,
    i64::MIN + 156,
];

/// Numbers that look drawn, the same for the same mutant.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ x >> 31) % most as u64) as usize
    }
}

/// One number of a text becomes another one. Which is a matter of chance, but one of a stream.
fn change(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let has_numbers = |line: &String| {
        let line = line.trim_start();
        line.starts_with("stream ") || line.starts_with("variant ") || line.starts_with("block ")
    };
    let chosen: Vec<usize> = (0..lines.len()).filter(|at| has_numbers(&lines[*at])).collect();
    if chosen.is_empty() {
        return text.to_owned();
    }
    let line = &mut lines[chosen[random.below(chosen.len())]];
    let begins = line.find(" terms ").or_else(|| line.find(" number ")).map_or(0, |at| at + 7);
    let ends = line.find(" shape ").unwrap_or(line.len());
    let bytes = line.as_bytes();
    let digit = |at: usize| bytes[at].is_ascii_digit();
    let starts: Vec<usize> = (begins..ends).filter(|at| digit(*at) && (*at == 0 || !digit(at - 1))).collect();
    if starts.is_empty() {
        return text.to_owned();
    }
    let start = starts[random.below(starts.len())];
    let end = (start..ends).find(|at| !digit(*at)).unwrap_or(ends);
    let start = if start > 0 && bytes[start - 1] == b'-' { start - 1 } else { start };
    let was: i64 = line[start..end].parse().unwrap_or(0);
    let now = match random.below(4) {
        0 => was.wrapping_add([1, -1, 8, -8][random.below(4)]),
        1 => was.wrapping_mul([2, 1000, -1, 1 << 20][random.below(4)]),
        _ => ODD[random.below(ODD.len())],
    };
    line.replace_range(start..end, &now.to_string());
    lines.join("\n") + "\n"
}

/// A recorded program as text, once for all mutants.
struct Seed {
    name: &'static str,
    ranks: u32,
    text: String,
}

fn seed(library: Library, name: &'static str, ranks: u32) -> Seed {
    let program = Program::named(name);
    let folder = run::folder(&format!("mutants-{name}"));
    fs::copy(program.build(library), folder.join("app")).unwrap();
    let args: Vec<&str> = program.args.to_vec();
    run::trace_app(&folder, library, "first.rfn", ranks, &args, &[]);
    let text = run::refrain_in(&[], &folder, &words(&["loops", "--text", "first.rfn"]));
    assert_eq!(text.code, 0, "{}", text.stderr);
    Seed { name, ranks, text: text.stdout }
}

/// The exit code of what took too long.
const TIME_IS_UP: i32 = 99;

/// What runs a command for so many seconds.
fn limited(seconds: &'static str) -> [&'static str; 5] {
    let script = "timeout -k 5 $0 \"$@\"; code=$?; [ $code = 124 ] && exit 99; exit $code";
    ["sh", "-c", script, seconds, "env"]
}

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// Its numbers fit no structure.
    NoTrace,
    /// It stands for too many calls.
    TooLong,
    Done,
    /// Outcomes differ.
    Differs,
    RefusedBefore,
    RefusedWithin,
    ByMpi,
    Standstill,
    /// Must not be.
    Crashed,
    Hung,
}

fn fate(outcome: &run::Outcome) -> Fate {
    let all = format!("{}{}", outcome.stdout, outcome.stderr);
    // What launchers say of a process that a signal has ended, other than one that they have sent.
    let signals = ["(signal 11)", "(signal 6)", "(signal 7)", "(signal 8)", "(signal 4)"];
    let codes = ["EXIT CODE: 139", "EXIT CODE: 134", "EXIT CODE: 135", "EXIT CODE: 136", "EXIT CODE: 132"];
    let named =
        ["on signal 11", "on signal 6", "on signal 7", "on signal 8", "Process received signal", "panicked"];
    if signals.iter().chain(&codes).chain(&named).any(|word| all.contains(word)) {
        return Fate::Crashed;
    }
    match outcome.code {
        0 => Fate::Done,
        1 => Fate::Differs,
        // It says beforehand how long that takes: polls that found nothing are many calls in few bytes.
        TIME_IS_UP if all.contains("calls to go through one by one") => Fate::TooLong,
        TIME_IS_UP | 137 => Fate::Hung,
        _ if all.contains("came to a standstill") => Fate::Standstill,
        _ if all.contains("cannot be made again")
            || all.contains("first.rfn:")
            || all.contains("mutant.rfn:") =>
        {
            Fate::RefusedBefore
        }
        _ if all.lines().any(|line| line.starts_with("refrain: rank ") && line.contains("call ")) => {
            Fate::RefusedWithin
        }
        _ => Fate::ByMpi,
    }
}

/// Replays a mutant; says what became of it, and what it printed.
fn replayed(library: Library, seeds: &[Seed], number: u64) -> (Fate, String, PathBuf) {
    let mut random = Random(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let seed = &seeds[random.below(seeds.len())];
    let mut text = seed.text.clone();
    for _ in 0..1 + random.below(2) * random.below(3) {
        text = change(&text, &mut random);
    }
    let folder = run::folder("mutant");
    fs::write(folder.join("text"), text).unwrap();
    let import = words(&["import", "text", "--digest", "--out", "mutant.rfn", "--force"]);
    // One that stands for so many calls that they are not gone through in that time is not replayed either.
    let imported = run::refrain_in(&limited("8"), &folder, &import);
    if imported.code != 0 {
        let fate = match imported.code {
            2 => Fate::NoTrace,
            TIME_IS_UP => Fate::TooLong,
            _ => fate(&imported),
        };
        return (fate, format!("{}: {}", seed.name, imported.stderr), folder);
    }
    let options = ["--speed", "0", "--patience", "4", "--memory", "256"];
    let mut command = words(&["replay", "mutant.rfn"]);
    command.extend(words(&options));
    command.push("--".into());
    command.extend(run::launcher(library, seed.ranks));
    // Files do not fill the disk; a core of each is no use.
    let before = [&limited("200")[..], &["prlimit", "--fsize=268435456", "--core=0"]].concat();
    let outcome = run::refrain_in(&before, &folder, &command);
    (fate(&outcome), format!("{}: {}{}", seed.name, outcome.stdout, outcome.stderr), folder)
}

/// Some mutants, several at a time. Prints how many came to which end, and fails with those that must not be.
fn none_crashes(
    library: Library,
    names: &[&str],
    from: u64,
    count: u64,
    time: Duration,
    side_by_side: usize,
) {
    let offers = |name: &str| Program::named(name).only.is_none_or(|only| only == library);
    let wanted = SEEDS.iter().filter(|(name, _)| names.is_empty() || names.contains(name));
    let wanted = wanted.filter(|(name, _)| offers(name));
    let seeds: Vec<Seed> = wanted.map(|(name, ranks)| seed(library, name, *ranks)).collect();
    let (next, began) = (AtomicU64::new(from), Instant::now());
    let fates: Mutex<BTreeMap<Fate, u64>> = Mutex::default();
    let bad: Mutex<Vec<String>> = Mutex::default();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= from + count || began.elapsed() >= time {
                break;
            }
            let (fate, said, folder) = replayed(library, &seeds, number);
            *fates.lock().unwrap().entry(fate).or_default() += 1;
            if fate >= Fate::Crashed {
                let kept = folder.with_file_name(format!("crash-{}-{number}.rfn", library.suffix()));
                let _ = fs::copy(folder.join("mutant.rfn"), &kept);
                let text =
                    format!("mutant {number} of {}: {fate:?}: {} ({said})", library.suffix(), kept.display());
                println!("{text}");
                bad.lock().unwrap().push(text);
            } else if fate == Fate::ByMpi && std::env::var_os("REFRAIN_MUTANTS_SHOWN").is_some() {
                println!("mutant {number}: {fate:?}: {said}");
            }
            let _ = fs::remove_dir_all(folder);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..side_by_side {
            scope.spawn(work);
        }
    });
    let (fates, bad) = (fates.into_inner().unwrap(), bad.into_inner().unwrap());
    println!("{} mutants of {}, from {from}: {fates:?}", fates.values().sum::<u64>(), library.suffix());
    assert!(bad.is_empty(), "{} mutants: {}", bad.len(), bad.join("\n"));
}

/// A few of them.
fn changed_numbers_crash_no_rank(library: Library) {
    none_crashes(library, &["p2p", "windows", "types"], 0, 8, run::LONG, 1);
}

on_both!(changed_numbers_crash_no_rank);

mod long {
    use super::*;

    fn number(name: &str, otherwise: u64) -> u64 {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }

    /// As many as one likes: `REFRAIN_MUTANTS` of them, from `REFRAIN_MUTANTS_FROM` on, or as many as `REFRAIN_MUTANTS_SECONDS`
    /// have room for.
    fn many_mutants(library: Library) {
        let (count, from) = (number("REFRAIN_MUTANTS", 40), number("REFRAIN_MUTANTS_FROM", 1000));
        let seconds = number("REFRAIN_MUTANTS_SECONDS", run::LONG.as_secs());
        let names = std::env::var("REFRAIN_MUTANTS_OF").unwrap_or_default();
        let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
        none_crashes(library, &names, from, count, Duration::from_secs(seconds), 2);
    }

    on_both!(many_mutants);
}
