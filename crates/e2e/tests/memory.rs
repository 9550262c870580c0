//! `refrain memory run`: programs whose loads and stores are known by construction, on one and several threads and ranks, and all
//! the ways in which a program may end. Ignored in a plain `cargo test`: needs QEMU, the MPI libraries and the built command.

use std::collections::BTreeMap;
use std::fs;

use refrain_e2e::Library;
use refrain_e2e::memory::{Reference, built, hexadecimal, killed, recorded, references, stores};
use refrain_e2e::run;

/// What `known` says that it did, by what stands first in a line.
fn known(stdout: &str) -> BTreeMap<String, Vec<Reference>> {
    let mut all: BTreeMap<String, Vec<Reference>> = BTreeMap::new();
    for line in stdout.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[who, what, address, size] = &words[..] else { panic!("{line}") };
        let reference = (what.chars().next().unwrap(), hexadecimal(address), size.parse().unwrap());
        all.entry(who.to_owned()).or_default().push(reference);
    }
    all
}

/// An area of `known`.
const AREA: u64 = 8192;

/// Of these references, those in the area of what was expected are that.
#[track_caller]
fn holds(expected: &[Reference], found: &[(Reference, String)]) {
    let start = expected.iter().map(|(_, address, _)| *address).min().unwrap();
    let within = |(_, address, _): Reference| address.wrapping_sub(start) < AREA;
    let inside: Vec<Reference> = found.iter().map(|(r, _)| *r).filter(|r| within(*r)).collect();
    let differ = expected.iter().zip(&inside).position(|(a, b)| a != b);
    assert_eq!(differ, None, "{:x?}, {:x?}", expected.get(differ.unwrap()), inside.get(differ.unwrap()));
    assert_eq!(expected.len(), inside.len());
}

const REGION: [&str; 5] = ["--skip-libraries", "--from", "begin", "--to", "finish"];

#[test]
#[ignore = "needs QEMU: `make test`"]
fn all_kinds_of_references_are_what_they_should_be() {
    let folder = run::folder("memory-known");
    let program = built(&folder, "known.c", "cc", &[]);
    let program = program.to_string_lossy();
    let loops: &[&str] = &["--fold", "loops"];
    for (threads, options) in
        [("1", &REGION[..]), ("3", &[]), ("3", loops), ("4", &REGION), ("2", &["--no-stacks"])]
    {
        let options = [options, &["--force"]].concat();
        let outcome = recorded(&folder, &options, &[&program, threads]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let found = references(&folder.join("t.rfn"));
        let expected = known(&outcome.stdout);
        assert_eq!(expected.len().to_string(), threads);
        assert_eq!(found.len().to_string(), threads);
        for (who, expected) in expected {
            // Threads are numbered as they are created.
            holds(&expected, &found[&(0, who.parse().unwrap())]);
        }
    }
}

fn ranks_have_their_own(library: Library) {
    let folder = run::folder("memory-ranks");
    let program = built(&folder, "known.c", &library.tool("mpicc"), &["-DUSE_MPI"]);
    let ranks = if library.is_open_mpi() { 3 } else { 4 };
    let mut words = run::words(&["memory", "run", "--out", "t.rfn", "--force"]);
    words.extend(run::words(&REGION));
    words.push("--".into());
    words.extend(run::launcher(library, ranks));
    words.extend([program.to_string_lossy().into_owned(), "2".into()]);
    let outcome = run::refrain_in(&[], &folder, &words);
    assert_eq!(outcome.code, 0, "{library:?}: {}", outcome.stderr);
    let found = references(&folder.join("t.rfn"));
    let said = |rank| fs::read_to_string(folder.join(format!("known.{rank}"))).unwrap();
    let expected = known(&(0..ranks).map(said).collect::<String>());
    assert_eq!(expected.len(), 2 * ranks as usize);
    for (who, expected) in expected {
        let (rank, thread) = who.split_once('.').unwrap();
        let rank: u32 = rank.parse().unwrap();
        let mine = found.iter().filter(|((of, _), _)| *of == rank);
        // The library has threads too: those that were created later are ours.
        let touches = |found: &[(Reference, String)]| found.iter().any(|(r, _)| r.1 == expected[0].1);
        let mut mine: Vec<_> = mine.filter(|(_, found)| touches(found)).collect();
        assert_eq!(mine.len(), 1, "rank {rank}, thread {thread} on {library:?}");
        let (place, found) = mine.pop().unwrap();
        assert_eq!(place.1 == 0, thread == "0");
        holds(&expected, found);
    }
}

on_both!(ranks_have_their_own, "needs QEMU and MPI: `make test`");

#[test]
#[ignore = "needs QEMU: `make test`"]
fn the_threads_of_a_parallel_loop() {
    let folder = run::folder("memory-shared");
    let program = built(&folder, "shared.c", "cc", &["-fopenmp"]);
    let command = ["env", "OMP_NUM_THREADS=4", &program.to_string_lossy()];
    let outcome = recorded(&folder, &["--skip-libraries"], &command);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let mut lines = outcome.stdout.lines();
    let arrays: Vec<u64> = lines.next().unwrap().split(' ').map(hexadecimal).collect();
    let found = references(&folder.join("t.rfn"));
    assert_eq!(found.len(), 4);
    let mut threads = 0;
    for (thread, line) in (0..).zip(lines) {
        let (first, last) = line.split_once(' ').unwrap();
        let expected: Vec<Reference> = (first.parse::<u64>().unwrap()..=last.parse().unwrap())
            .flat_map(|i| {
                [('L', arrays[0] + 8 * i, 8), ('L', arrays[1] + 8 * i, 8), ('S', arrays[2] + 8 * i, 8)]
            })
            .collect();
        let own = found[&(0, thread)].iter().map(|(reference, _)| *reference);
        let is_of_array = |r: &Reference| arrays.iter().any(|start| r.1.wrapping_sub(*start) < 8000);
        assert_eq!(own.filter(is_of_array).collect::<Vec<_>>(), expected, "thread {thread}");
        threads += 1;
    }
    assert_eq!(threads, 4);
}

/// The program's own references are the same, whether or not others are recorded.
#[test]
#[ignore = "needs QEMU: `make test`"]
fn what_is_chosen_is_a_part_of_all() {
    let folder = run::folder("memory-chosen");
    let program = built(&folder, "known.c", "cc", &["-Wl,-z,lazy"]);
    let program = program.to_string_lossy();
    let of = |options: &[&str]| {
        let options = [options, &["--force"]].concat();
        let outcome = recorded(&folder, &options, &[&program, "1"]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let found = references(&folder.join("t.rfn")).remove(&(0, 0)).unwrap();
        found.into_iter().map(|((what, _, size), place)| (what, size, place)).collect::<Vec<_>>()
    };
    let all = of(&[]);
    let part = |module: &str| all.iter().filter(|(.., place)| place.starts_with(module)).cloned().collect();
    let (own, libc): (Vec<_>, Vec<_>) = (part("known+"), part("libc.so"));
    assert!(!own.is_empty() && !libc.is_empty() && own.len() + libc.len() < all.len());
    assert!(of(&["--skip-libraries"]) == own);
    assert!(of(&["--only-module", "libc.so"]) == libc);
    assert!(of(&["--limit", "12345"]) == all[..12345]);
    let region = of(&["--from", "begin", "--to", "finish"]);
    assert!(all.windows(region.len()).any(|window| window == region));
    let outcome = recorded(&folder, &["--from", "nowhere", "--force"], &[&program, "1"]);
    assert_eq!(outcome.code, 0);
    let info = run::refrain(&["info", &folder.join("t.rfn").to_string_lossy()]);
    assert!(info.stdout.contains("nowhere was never called"), "{}{}", info.stdout, info.stderr);
}

#[test]
#[ignore = "needs QEMU: `make test`"]
fn however_a_program_ends_what_it_did_is_there() {
    let folder = run::folder("memory-ends");
    let program = built(&folder, "ends.c", "cc", &[]);
    let program = program.to_string_lossy();
    let trace = folder.join("t.rfn");
    for (how, code, complete) in
        [("exit", 5, true), ("segv", 139, false), ("abort", 134, false), ("exec", 6, true)]
    {
        let outcome = recorded(&folder, &["--force"], &[&program, how]);
        assert_eq!(outcome.code, code, "{how}: {}", outcome.stderr);
        assert_eq!(stores(&trace, &outcome.stdout), 1000, "{how}");
        assert_eq!(!outcome.stderr.contains("(partial"), complete, "{how}: {}", outcome.stderr);
        assert!(!folder.join("t.rfn.parts").exists());
    }
    // A process that was forked has a trace of its own, and so have programs that were started: that of exec, and of system.
    let info = run::refrain(&["info", &folder.join("t.2.rfn").to_string_lossy()]);
    assert!(info.stdout.contains("sh, which the run came to"), "{}", info.stdout);
    fs::remove_file(folder.join("t.2.rfn")).unwrap();
    let outcome = recorded(&folder, &["--force"], &[&program, "fork"]);
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
    assert_eq!(stores(&trace, &outcome.stdout), 0);
    assert_eq!(stores(&folder.join("t.2.rfn"), &outcome.stdout), 1000);
    let info = run::refrain(&["info", &folder.join("t.3.rfn").to_string_lossy()]);
    assert!(info.stdout.contains("sh, which the run came to"), "{}", info.stdout);
    assert!(!folder.join("t.4.rfn").exists());
    // Nothing is replaced that was there.
    let outcome = recorded(&folder, &[], &[&program, "exit"]);
    assert!(outcome.code == 2 && outcome.stderr.contains("--force"), "{}", outcome.stderr);
}

#[test]
#[ignore = "needs QEMU: `make test`"]
fn what_a_killed_program_did_is_there() {
    let folder = run::folder("memory-killed");
    let program = built(&folder, "ends.c", "cc", &[]);
    let outcome = killed(&folder, &program);
    assert_eq!(outcome.code, 137, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("(partial"), "{}", outcome.stderr);
    assert!(stores(&folder.join("t.rfn"), &outcome.stdout) > 0);
}

/// No file may be longer than a few kilobytes: the program goes on, and one line says what is missing.
#[test]
#[ignore = "needs QEMU: `make test`"]
fn a_full_disk_ends_no_program() {
    let folder = run::folder("memory-full");
    let program = built(&folder, "ends.c", "cc", &[]);
    let words = run::words(&["memory", "run", "--out", "t.rfn", "--", &program.to_string_lossy(), "exit"]);
    let limit = ["bash", "-c", "ulimit -f 8; exec \"$0\" \"$@\""];
    let outcome = run::refrain_in(&limit, &folder, &words);
    assert_eq!(outcome.code, 5, "{}", outcome.stderr);
    let lines = outcome.stderr.lines().filter(|line| line.contains("the program goes on"));
    assert_eq!(lines.count(), 1, "{}", outcome.stderr);
}

#[test]
#[ignore = "needs the built command: `make test`"]
fn without_qemu_its_package_is_named() {
    let folder = run::folder("memory-without");
    let words = run::words(&["memory", "run", "--", "/bin/true"]);
    let outcome = run::refrain_in(&["env", "PATH=/nowhere"], &folder, &words);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("apt install qemu-user"), "{}", outcome.stderr);
}

/// Two threads that add to neighbouring counters take the line from each other at nearly every step, for bytes that neither uses of
/// the other; in lines of their own they never do.
#[test]
#[ignore = "needs QEMU: `make test`"]
fn counters_side_by_side_share_falsely() {
    let folder = run::folder("memory-sharing");
    let sharing = |options: &[&str]| {
        let program = built(&folder, "sharing.c", "cc", options);
        let outcome = recorded(&folder, &["--skip-libraries", "--force"], &[&program.to_string_lossy()]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let trace = folder.join("t.rfn");
        let words =
            ["--l1d", "32K,8,64", "--l2", "1M,16,64", "--coherence", "mesi", "--by", "line", "--json"];
        let said = run::refrain(&[&["simulate", &trace.to_string_lossy()], &words[..]].concat());
        assert_eq!(said.code, 0, "{}", said.stderr);
        refrain_e2e::json::Json::parse(&said.stdout).unwrap()
    };
    let of = |said: &refrain_e2e::json::Json, key: &str| said.get("coherence").get(key).int().unwrap();
    // 5,000 reads and 5,000 writes each; each of the two loses the line between them.
    let near = sharing(&[]);
    assert!(of(&near, "false_sharing") > 9_000, "{}", of(&near, "false_sharing"));
    assert!(of(&near, "true_sharing") <= 2);
    let first = &near.get("misses_by").list()[0];
    let text = fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/memory/sharing.c"),
    )
    .unwrap();
    let line = 1 + text.lines().position(|line| line.contains("*counter += i")).unwrap();
    assert_eq!(first.get("line").int(), Some(line as i64));
    assert!(first.get("sharing").get("false").int().unwrap() > 9_000);
    let apart = sharing(&["-DAPART"]);
    assert_eq!((of(&apart, "false_sharing"), of(&apart, "invalidations_sent")), (0, 0));
}
