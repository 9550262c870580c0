//! `refrain run --memory`: calls and references in one file. A program stores at the index of how many calls it has made, so each
//! store says itself between which calls it lies. Ignored in a plain `cargo test`: needs QEMU, the MPI libraries and the built
//! command.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use refrain_e2e::json::Json;
use refrain_e2e::machine::Room;
use refrain_e2e::run::{self, LONG, Outcome};
use refrain_e2e::{Library, build};

/// Longs in an area of `between`, and how many areas it has.
const AREA: u64 = 4096;
const AREAS: u64 = 17;

/// Builds `between` as `app` in that folder.
fn built(folder: &Path, library: Library) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/memory/between.c");
    let mut command = Command::new(library.tool("mpicc"));
    // GCC takes MPICH's ignored statuses for an array that is too short.
    command.args(["-O1", "-g", "-pthread", "-Wno-stringop-overflow"]);
    let status = command.arg(&source).arg("-o").arg(folder.join("app")).status();
    assert!(status.is_ok_and(|status| status.success()), "{}", source.display());
}

/// `refrain run` with these options.
fn traced(folder: &Path, library: Library, ranks: u32, args: &[&str], options: &[&str]) -> Outcome {
    let mut all = run::words(&["run", "--force"]);
    all.extend(run::words(options));
    all.push("--".into());
    all.extend(run::launcher(library, ranks));
    all.push("./app".into());
    all.extend(run::words(args));
    run::refrain_in(&[], folder, &all)
}

fn name(folder: &Path, trace: &str) -> String {
    folder.join(trace).to_string_lossy().into_owned()
}

#[track_caller]
fn said(words: &[&str]) -> String {
    let outcome = run::refrain(words);
    assert_eq!(outcome.code, 0, "{words:?}: {}{}", outcome.stdout, outcome.stderr);
    outcome.stdout
}

/// How many, by rank and area, and by rank and thread of the calls.
type Stores = BTreeMap<(i64, u64), u64>;
type Calls = BTreeMap<(i64, i64), i64>;

/// Every store into an area lies behind as many calls of its thread as its index says. The stores and calls that there are.
#[track_caller]
fn between(trace: &str, stdout: &str) -> (Stores, Calls) {
    let mut starts: BTreeMap<i64, u64> = BTreeMap::new();
    for line in stdout.lines() {
        let (rank, start) = line.split_once(" 0x").unwrap_or_else(|| panic!("{line}"));
        starts.insert(rank.parse().unwrap(), u64::from_str_radix(start, 16).unwrap());
    }
    let (mut stores, mut calls) = (BTreeMap::new(), BTreeMap::new());
    let mut made: BTreeMap<(i64, i64), u64> = BTreeMap::new();
    for line in said(&["dump", trace, "--references", "--json"]).lines() {
        let json = Json::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let number = |name: &str| json.get(name).int().unwrap_or_else(|| panic!("{name} of {line}"));
        let (rank, thread) = (number("rank"), number("thread"));
        let made = made.entry((rank, thread)).or_default();
        if let Some(position) = json.get("call").get("number").int() {
            let of = json.get("call").get("thread").int().unwrap();
            let next: &mut i64 = calls.entry((rank, of)).or_default();
            // Those of a thread follow each other, whichever thread of the program goes on with them.
            assert_eq!(position, *next, "{line}");
            *next += 1;
            *made += 1;
            continue;
        }
        let at = (number("address") as u64).wrapping_sub(starts[&rank]) / 8;
        if at < AREA * AREAS && json.get("access").text() == Some("store") {
            assert_eq!(at % AREA, *made % AREA, "after {made} calls: {line}");
            *stores.entry((rank, at / AREA)).or_default() += 1;
        }
    }
    (stores, calls)
}

/// What `touch` stores while a thread makes so many calls, and after them.
fn stored(calls: u64) -> u64 {
    (0..=calls).map(|made| made % 3 + 1).sum()
}

fn each_reference_lies_between_two_calls(library: Library) {
    let folder = run::folder("memory-calls");
    built(&folder, library);
    let (both, alone) = (name(&folder, "t.rfn"), name(&folder, "u.rfn"));
    // More threads than these would ask for their messages in turns.
    let runs = [
        (2, 2, &["--fold", "loops"][..]),
        (3, 0, &["--time", "exact"]),
        (1, 2, &["--limit", "300"]),
        (4, 0, &[]),
    ];
    // Other ranks and `--limit` have nothing that depends on the library.
    let runs = if library.is_open_mpi() { &runs[..2] } else { &runs[..] };
    for &(ranks, threads, options) in runs {
        let args = ["4", &threads.to_string()];
        let options = [&["--memory", "--out", "t.rfn"], options].concat();
        let outcome = traced(&folder, library, ranks, &args, &options);
        assert_eq!(outcome.code, 0, "{library:?}: {}", outcome.stderr);
        let verified = said(&["verify", &both]);
        assert_eq!(verified.lines().filter(|line| line.starts_with("yes: ")).count(), 2, "{verified}");
        let (stores, calls) = between(&both, &outcome.stdout);
        if ranks > 1 {
            // The first thread comes twice to where it has made five calls: before MPI_Comm_dup, and in its callback.
            let expected = (0..i64::from(ranks)).flat_map(|rank| {
                (0..1 + 2 * threads)
                    .map(move |area| ((rank, area), if area == 0 { stored(27) + 3 } else { stored(12) }))
            });
            assert_eq!(stores, expected.collect(), "{library:?}, {ranks} ranks");
        }
        // Two threads after each other have one number.
        let expected = (0..i64::from(ranks)).flat_map(|rank| {
            (0..=threads as i64).map(move |thread| ((rank, thread), if thread == 0 { 27 } else { 24 }))
        });
        assert_eq!(calls, expected.collect(), "{library:?}, {ranks} ranks");
        let outcome = traced(&folder, library, ranks, &args, &["--out", "u.rfn"]);
        assert_eq!(outcome.code, 0, "{library:?}: {}", outcome.stderr);
        // Which thread comes first to a buffer on its stack is chance.
        said(&["diff", &both, &alone, "--ignore", "pointers,sites"]);
    }
    let outcome = traced(&folder, library, 2, &["3", "1", "polls"], &["--memory", "--out", "t.rfn"]);
    assert_eq!(outcome.code, 0, "{library:?}: {}", outcome.stderr);
    said(&["verify", &both]);
    between(&both, &outcome.stdout);
}

on_both!(each_reference_lies_between_two_calls, "needs QEMU and MPI: `make test`");

/// Which calls are recorded is the user's choice, and the program's.
#[test]
#[ignore = "needs QEMU and MPI: `make test`"]
fn only_recorded_calls_are_marked() {
    let folder = run::folder("memory-chosen");
    built(&folder, Library::Mpich);
    let both = name(&folder, "t.rfn");
    for options in [["--only", "p2p", "--ranks", "1"], ["--skip", "MPI_Isend", "--window", "..1ms"]] {
        let options = [&["--memory", "--out", "t.rfn"], &options[..]].concat();
        let outcome = traced(&folder, Library::Mpich, 2, &["5", "1"], &options);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let verified = said(&["verify", &both]);
        assert_eq!(verified.lines().filter(|line| line.starts_with("yes: ")).count(), 2, "{verified}");
    }
}

#[test]
#[ignore = "needs QEMU and MPI: `make test`"]
fn more_steps_take_no_more_bytes() {
    let folder = run::folder("memory-steps");
    built(&folder, Library::Mpich);
    let size = |steps: &str| {
        let outcome = traced(&folder, Library::Mpich, 2, &[steps, "0"], &["--memory", "--out", "t.rfn"]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        fs::metadata(folder.join("t.rfn")).unwrap().len()
    };
    let (few, many) = (size("20"), size("800"));
    assert!(many < few + 60, "{few} bytes for 20 steps, {many} for 800");
}

#[test]
#[ignore = "needs QEMU and MPI: `make test`"]
fn a_run_that_ends_early_is_in_one_file_too() {
    for (library, how, code) in [(Library::Mpich, "abort", 7), (Library::OpenMpi, "kill", 137)] {
        let folder = run::folder("memory-early");
        built(&folder, library);
        fs::write(folder.join("go"), "").unwrap();
        let outcome = traced(&folder, library, 2, &["40", "1", how], &["--memory", "--out", "t.rfn"]);
        assert_eq!(outcome.code, code, "{library:?}, {how}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("(partial"), "{library:?}, {how}: {}", outcome.stderr);
        holds_as_far_as_it_goes(&folder, &outcome.stdout);
    }
}

/// What is left of a run: both kinds, and where references are they lie between the right calls.
#[track_caller]
fn holds_as_far_as_it_goes(folder: &Path, stdout: &str) {
    let trace = name(folder, "t.rfn");
    let verified = said(&["verify", &trace]);
    assert!(verified.contains("as far as it was recorded"), "{verified}");
    assert!(said(&["info", &trace]).contains(", partial: `--references`"));
    let lines: Vec<&str> = stdout.lines().filter(|line| line.contains(" 0x")).collect();
    between(&trace, &lines.join("\n"));
}

/// The command itself is killed, and then a rank: `refrain recover` finds the parts of both kinds.
#[test]
#[ignore = "needs QEMU and MPI: `make test`"]
fn parts_of_both_kinds_are_recovered() {
    let folder = run::folder("memory-recovered");
    built(&folder, Library::OpenMpi);
    let mut words = run::words(&["run", "--memory", "--out", "t.rfn", "--"]);
    words.extend(run::launcher(Library::OpenMpi, 2));
    words.extend(run::words(&["./app", "40", "1", "kill"]));
    let (out, err): (PathBuf, PathBuf) = (folder.join("killed.out"), folder.join("killed.err"));
    let _room = Room::for_ranks(2);
    let mut running = run::start(
        &folder,
        "killed",
        &[&[build::refrain().to_string_lossy().into_owned()], &words[..]].concat(),
    );
    let parts = folder.join("t.rfn.parts");
    let began = Instant::now();
    let wait = |what: &dyn Fn() -> bool| {
        while !what() {
            let said = || fs::read_to_string(&err).unwrap_or_default();
            assert!(began.elapsed() < LONG, "{}", said());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    // Both ranks have told where their areas are.
    wait(&|| fs::read_to_string(&out).is_ok_and(|text| text.lines().count() == 2));
    let processes = run::processes(&parts);
    running.process.kill().unwrap();
    running.process.wait().unwrap();
    fs::write(folder.join("go"), "").unwrap();
    wait(&|| !processes.iter().any(|(_, process)| Path::new("/proc").join(process.to_string()).exists()));
    assert!(!folder.join("t.rfn").exists());
    said(&["recover", &parts.to_string_lossy()]);
    holds_as_far_as_it_goes(&folder, &fs::read_to_string(&out).unwrap());
    // The same of references alone.
    for entry in fs::read_dir(&parts).unwrap().flatten() {
        if entry.file_name().to_string_lossy().contains(".part") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    said(&["recover", &parts.to_string_lossy(), "--out", &name(&folder, "alone.rfn")]);
    assert!(said(&["verify", &name(&folder, "alone.rfn")]).contains("as far as it was recorded"));
}

#[test]
#[ignore = "needs QEMU and MPI: `make test`"]
fn what_cannot_be_combined_is_refused() {
    let folder = run::folder("memory-refused");
    built(&folder, Library::Mpich);
    for (options, why) in [
        (&["--lossy", "tags", "--out", "t.rfn"][..], "--lossy may leave calls out"),
        (&["--out", "/dev/null"], "it is a device"),
        (&["--from", "f", "--to", "f", "--out", "t.rfn"], "name the same function"),
    ] {
        let options = [&["--memory"], options].concat();
        let outcome = traced(&folder, Library::Mpich, 2, &[], &options);
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(why) && outcome.stdout.is_empty(), "{}", outcome.stderr);
        assert!(!folder.join("t.rfn.parts").exists());
    }
    let other = name(&folder, "app");
    let words = run::words(&["run", "--memory", "--", "./app"]);
    let named = ["env", &format!("REFRAIN_LIBRARY={other}")];
    let outcome = run::refrain_in(&named, &folder, &words);
    assert!(outcome.stderr.contains("does not say where it records calls"), "{}", outcome.stderr);
    let mut inside = run::launcher(Library::Mpich, 2);
    let words = ["run", "--memory", "--", "./app"];
    inside.push(build::refrain().to_string_lossy().into_owned());
    let inside: Vec<String> = inside.into_iter().chain(run::words(&words)).collect();
    let outcome = run::command(&folder, &inside, &[]);
    assert!(outcome.stderr.contains("goes before the launcher"), "{}", outcome.stderr);
}
