//! `refrain memory cc`: programs that tell of their own loads and stores, without an emulator. What they did is known by
//! construction, and held against what the emulator saw in the same run. Ignored in a plain `cargo test`: needs compilers, QEMU,
//! the MPI libraries and the built command.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use refrain_e2e::memory::{Reference, References, hexadecimal, killed, recorded, references, stores};
use refrain_e2e::{Library, build, run, skipped};

/// Builds a program of `tests/programs/memory` in that folder, with that compiler.
fn made(folder: &Path, source: &str, compiler: &str, options: &[&str]) -> PathBuf {
    let program = folder.join(source.split('.').next().unwrap());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/memory").join(source);
    let mut command = Command::new(build::refrain());
    command
        .args(["memory", "cc", compiler, "-g", "-pthread"])
        .args(options)
        .arg(&source)
        .arg("-o")
        .arg(&program);
    let status = command.status().unwrap();
    assert!(status.success(), "{}", source.display());
    program
}

/// The compilers that are here.
fn compilers() -> Vec<&'static str> {
    let mut all = vec!["gcc"];
    match Command::new("clang").arg("--version").output() {
        Ok(_) => all.push("clang"),
        Err(_) => skipped("programs that clang makes: it is not installed"),
    }
    all
}

/// What a thread of `compiled` says of itself.
#[derive(Default)]
struct Known {
    references: Vec<Reference>,
    /// Its stack, and what of the program cannot be written: where, and how many bytes.
    stack: (u64, u64),
    constant: (u64, u64),
}

/// By what stands first in a line.
fn known(stdout: &str) -> BTreeMap<String, Known> {
    let mut all: BTreeMap<String, Known> = BTreeMap::new();
    for line in stdout.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[who, what, address, size] = &words[..] else { panic!("{line}") };
        let (address, size): (u64, u64) = (hexadecimal(address), size.parse().unwrap());
        let known = all.entry(who.to_owned()).or_default();
        match what {
            "T" => known.stack = (address, size),
            "R" => known.constant = (address, size),
            _ => known.references.push((what.chars().next().unwrap(), address, size as u32)),
        }
    }
    all
}

/// Of these references, those in the area of what was expected are that.
#[track_caller]
fn holds(expected: &[Reference], found: &[(Reference, String)]) {
    let area = area(expected);
    let inside: Vec<Reference> = found.iter().map(|(r, _)| *r).filter(|r| within(*r, area)).collect();
    let differ = expected.iter().zip(&inside).position(|(a, b)| a != b);
    assert_eq!(differ, None, "{:x?}, {:x?}", expected.get(differ.unwrap()), inside.get(differ.unwrap()));
    assert_eq!(expected.len(), inside.len());
}

fn area(references: &[Reference]) -> (u64, u64) {
    (references.iter().map(|(_, address, _)| *address).min().unwrap(), 8192)
}

fn within((_, address, _): Reference, (start, length): (u64, u64)) -> bool {
    address.wrapping_sub(start) < length
}

const REGION: [&str; 4] = ["--from", "begin", "--to", "finish"];

#[test]
#[ignore = "needs compilers: `make test`"]
fn all_kinds_of_references_are_what_they_should_be() {
    let folder = run::folder("compiled-known");
    for compiler in compilers() {
        for (level, threads, options) in [
            ("-O0", "1", &REGION[..]),
            ("-O1", "4", &[]),
            ("-O2", "3", &["--fold", "loops"]),
            ("-O3", "2", &["--no-stacks"]),
        ] {
            let program = made(&folder, "compiled.c", compiler, &[level]);
            let options = [options, &["--force"]].concat();
            let outcome = recorded(&folder, &options, &[&program.to_string_lossy(), threads]);
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            let found = references(&folder.join("t.rfn"));
            let expected = known(&outcome.stdout);
            assert_eq!(expected.len().to_string(), threads);
            assert_eq!(found.len().to_string(), threads);
            for (who, expected) in expected {
                // Threads are numbered as they are created.
                holds(&expected.references, &found[&(0, who.parse().unwrap())]);
            }
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn ranks_have_their_own() {
    for library in Library::ALL {
        let folder = run::folder("compiled-ranks");
        let program = made(&folder, "compiled.c", &library.tool("mpicc"), &["-O2", "-DUSE_MPI"]);
        for ranks in [2, 4] {
            let mut words = run::words(&["memory", "run", "--out", "t.rfn", "--force", "--"]);
            words.extend(run::launcher(library, ranks));
            words.extend([program.to_string_lossy().into_owned(), "2".into()]);
            let outcome = run::refrain_in(&[], &folder, &words);
            assert_eq!(outcome.code, 0, "{library:?}: {}", outcome.stderr);
            let found = references(&folder.join("t.rfn"));
            let said =
                (0..ranks).map(|rank| fs::read_to_string(folder.join(format!("said.{rank}"))).unwrap());
            let expected = known(&said.collect::<String>());
            assert_eq!((expected.len(), found.len()), (2 * ranks as usize, 2 * ranks as usize));
            for (who, expected) in expected {
                let (rank, thread) = who.split_once('.').unwrap();
                let rank: u32 = rank.parse().unwrap();
                // The library's threads are counted, and have nothing: ours is one of those that were created later.
                let mine =
                    found.iter().filter(|((of, number), _)| *of == rank && (*number == 0) == (thread == "0"));
                let [(_, found)] = mine.collect::<Vec<_>>()[..] else {
                    panic!("rank {rank}, thread {thread}")
                };
                holds(&expected.references, found);
            }
        }
    }
}

/// What the compiler made the program tell, and what the emulator saw it do: the first is in the second, in order, and the rest
/// of the second is what compilers keep to themselves.
#[test]
#[ignore = "needs QEMU and compilers: `make test`"]
fn both_engines_see_the_same() {
    let folder = run::folder("compiled-both");
    let refrain = build::refrain().to_string_lossy().into_owned();
    for compiler in compilers() {
        for (level, threads) in [("-O1", "3"), ("-O2", "1")] {
            let program = made(&folder, "compiled.c", compiler, &[level]);
            let inner =
                [&[&*refrain, "memory", "run", "--engine", "qemu", "--out", "q.rfn", "--force"], &REGION[..]]
                    .concat();
            let program = program.to_string_lossy();
            let command = [&inner[..], &["--", &program, threads, "plain"]].concat();
            let options = [&["--engine", "compiled", "--force"], &REGION[..]].concat();
            let outcome = recorded(&folder, &options, &command);
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            let (told, seen) = (references(&folder.join("t.rfn")), references(&folder.join("q.rfn")));
            let known = known(&outcome.stdout);
            assert_eq!((told.len(), known.len()), (known.len(), threads.parse().unwrap()));
            for (who, known) in known {
                let thread = (0, who.parse().unwrap());
                holds(&known.references, &told[&thread]);
                compare(&known, &told[&thread], &seen[&thread]);
            }
        }
    }
}

#[track_caller]
fn compare(known: &Known, told: &[(Reference, String)], seen: &[(Reference, String)]) {
    let area = area(&known.references);
    let mut told = told.iter().map(|(reference, _)| *reference).peekable();
    let (mut rest, mut last) = (0, None);
    for (reference, place) in seen {
        let is_own = place.starts_with("compiled+");
        // Atomic operations are done by the library.
        let is_effect = place.starts_with("librefrain") && within(*reference, area);
        if !is_own && !is_effect {
            continue;
        }
        if told.next_if_eq(reference).is_some() {
            last = Some(*reference);
            continue;
        }
        rest += 1;
        let is_stack = within(*reference, known.stack);
        let is_constant = reference.0 == 'L' && within(*reference, known.constant);
        // What changes a number may look at it first.
        let is_look = !is_own && reference.0 == 'L';
        // clang 14 loads once more what it has had loaded atomically, and makes nothing of it.
        let is_again = reference.0 == 'L' && last == Some(*reference);
        assert!(is_stack || is_constant || is_look || is_again, "{reference:x?} at {place} was not told");
    }
    assert_eq!(told.next(), None, "was told and not seen");
    assert!(rest > 0);
}

#[test]
#[ignore = "needs compilers: `make test`"]
fn the_threads_of_a_parallel_loop() {
    let folder = run::folder("compiled-shared");
    let program = made(&folder, "shared.c", "gcc", &["-O2", "-fopenmp"]);
    let command = ["env", "OMP_NUM_THREADS=4", &program.to_string_lossy()];
    let outcome = recorded(&folder, &["--skip-libraries"], &command);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let mut lines = outcome.stdout.lines();
    let arrays: Vec<u64> = lines.next().unwrap().split(' ').map(hexadecimal).collect();
    let found = references(&folder.join("t.rfn"));
    assert_eq!(found.len(), 4);
    for (thread, line) in (0..).zip(lines) {
        let (first, last) = line.split_once(' ').unwrap();
        let expected: Vec<Reference> = (first.parse::<u64>().unwrap()..=last.parse().unwrap())
            .flat_map(|i| {
                [('L', arrays[0] + 8 * i, 8), ('L', arrays[1] + 8 * i, 8), ('S', arrays[2] + 8 * i, 8)]
            })
            .collect();
        let own = found[&(0, thread)].iter().map(|(reference, _)| *reference);
        let is_of_array = |r: &Reference| arrays.iter().any(|start| within(*r, (*start, 8000)));
        assert_eq!(own.filter(is_of_array).collect::<Vec<_>>(), expected, "thread {thread}");
    }
}

#[test]
#[ignore = "needs compilers: `make test`"]
fn what_is_chosen_is_a_part_of_all() {
    let folder = run::folder("compiled-chosen");
    let program = made(&folder, "compiled.c", "gcc", &["-O1"]);
    let program = program.to_string_lossy();
    let of = |options: &[&str]| {
        let outcome = recorded(&folder, &[options, &["--force"]].concat(), &[&program, "1"]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let mut found: References = references(&folder.join("t.rfn"));
        let found = found.remove(&(0, 0)).unwrap_or_default();
        // Where a stack begins depends on the environment, in which options are.
        found.into_iter().map(|((what, _, size), place)| (what, size, place)).collect::<Vec<_>>()
    };
    let all = of(&[]);
    assert!(of(&["--skip-libraries"]) == all);
    assert!(of(&["--limit", "123"]) == all[..123]);
    let region = of(&REGION);
    assert!(region.len() > 100 && all.windows(region.len()).any(|window| window == region));
    assert_eq!(of(&["--from", "nowhere"]).len(), 0);
    let info = run::refrain(&["info", &folder.join("t.rfn").to_string_lossy()]);
    assert!(info.stdout.contains("nowhere was never called"), "{}{}", info.stdout, info.stderr);
    let outcome = recorded(&folder, &["--only-module", "libm", "--force"], &[&program, "1"]);
    assert!(outcome.code == 2 && outcome.stderr.contains("--engine qemu"), "{}", outcome.stderr);
    // Addresses are not random.
    let again = || {
        of(&[]);
        references(&folder.join("t.rfn"))
    };
    assert!(again() == again());
    // By itself it records nothing.
    let alone = Command::new(&*program).current_dir(&folder).output().unwrap();
    assert!(alone.status.success() && alone.stderr.is_empty());
}

#[test]
#[ignore = "needs compilers: `make test`"]
fn however_a_program_ends_what_it_did_is_there() {
    let folder = run::folder("compiled-ends");
    let program = made(&folder, "ends.c", "gcc", &["-O1"]);
    let program = program.to_string_lossy();
    let trace = folder.join("t.rfn");
    for (how, code, complete) in
        [("exit", 5, true), ("segv", 139, false), ("abort", 134, false), ("exec", 6, false)]
    {
        let outcome = recorded(&folder, &["--force"], &[&program, how]);
        assert_eq!(outcome.code, code, "{how}: {}", outcome.stderr);
        assert_eq!(stores(&trace, &outcome.stdout), 1000, "{how}");
        assert_eq!(!outcome.stderr.contains("(partial"), complete, "{how}: {}", outcome.stderr);
        assert!(!folder.join("t.rfn.parts").exists());
    }
    // A process that was forked has a trace of its own; one that became another program has none.
    let outcome = recorded(&folder, &["--force"], &[&program, "fork"]);
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    assert_eq!(stores(&trace, &outcome.stdout), 0);
    assert_eq!(stores(&folder.join("t.2.rfn"), &outcome.stdout), 1000);
    assert!(!folder.join("t.3.rfn").exists());
}

#[test]
#[ignore = "needs compilers: `make test`"]
fn what_a_killed_program_did_is_there() {
    let folder = run::folder("compiled-killed");
    let program = made(&folder, "ends.c", "gcc", &["-O1"]);
    let outcome = killed(&folder, &program);
    assert_eq!(outcome.code, 137, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("(partial"), "{}", outcome.stderr);
    assert!(stores(&folder.join("t.rfn"), &outcome.stdout) > 0);
}

#[test]
#[ignore = "needs the built command: `make test`"]
fn what_cannot_be_done_is_said() {
    let folder = run::folder("compiled-not");
    let of = |words: &[&str]| run::refrain_in(&[], &folder, &run::words(words));
    let outcome = of(&["memory", "cc", "gcc", "-static", "a.c"]);
    assert!(outcome.code == 2 && outcome.stderr.contains("leave out -static"), "{}", outcome.stderr);
    let outcome = of(&["memory", "cc", "cat", "a.c"]);
    assert!(outcome.code == 2, "{}", outcome.stderr);
    let outcome = of(&["memory", "run", "--engine", "compiled", "--", "/bin/true"]);
    assert!(outcome.stderr.contains("refrain memory cc"), "{}", outcome.stderr);
}
