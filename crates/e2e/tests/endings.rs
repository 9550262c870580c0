//! Runs that do not end well, on both MPI libraries: the program ends as it would untraced, and of what it did nothing is
//! lost but the call in flight. Ignored in a plain `cargo test`, because it needs the MPI libraries and the built command.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use refrain_e2e::json::Json;
use refrain_e2e::run::Special;
use refrain_e2e::{Library, Program, compare, run, skipped};

const RANKS: u32 = 3;

fn endings(args: &'static [&'static str]) -> Program {
    Program { source: "endings.c", args, ..Program::named("ring") }
}

/// `refrain info`, and the trace held against the witness: how many calls.
fn check(traced: &run::Traced, what: &str) -> (String, usize) {
    let path = traced.trace.to_string_lossy().into_owned();
    let said = &traced.outcome.stderr;
    let verified = run::refrain(&["verify", &path]);
    assert_eq!(verified.code, 0, "{what}: {}{}\n{said}", verified.stdout, verified.stderr);
    let report = compare::compare_so_far(&traced.dump(), &traced.witness_so_far(), Default::default());
    let report = report.unwrap_or_else(|e| panic!("{what}: {e}\n{said}"));
    let info = run::refrain(&["info", &path]);
    assert_eq!(info.code, 0, "{what}: {}", info.stderr);
    (info.stdout, report.calls)
}

/// The launcher's exit code, and a partial trace that says how the last rank ended.
fn ends(library: Library, args: &'static [&'static str], expected: &str) {
    let program = endings(args);
    let what = format!("{args:?} on {}", library.suffix());
    let special = Special { code_noted: true, ..Special::default() };
    let traced = run::traced_special(library, &program, RANKS, &special);
    let code = traced.outcome.code;
    assert_eq!(Some(code), traced.launchers_code(), "{what}: {}", traced.outcome.stderr);
    let (info, calls) = check(&traced, &what);
    assert!(info.contains("partial"), "{what}: {info}");
    let told = info.lines().find(|line| line.contains(expected) && tells_of(line, RANKS - 1));
    assert!(told.is_some(), "{what}, not {expected:?}: {info}\n{}", traced.outcome.stderr);
    assert!(calls > 100, "{what}: {calls} calls");
    assert!(!traced.parts().exists(), "{what}");
    println!("{what}: exit code {code}, {calls} calls; {}", told.unwrap_or("").trim());
}

/// Whether a line of `info` is about this rank: `rank 2: ...`, `ranks 0-2: ...`.
fn tells_of(line: &str, rank: u32) -> bool {
    let Some((_, ranks)) = line.split(": ").next().unwrap_or("").split_once("rank") else { return false };
    ranks.trim_start_matches('s').trim().split(',').any(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        from.parse().is_ok_and(|from: u32| from <= rank) && to.parse().is_ok_and(|to: u32| rank <= to)
    })
}

macro_rules! endings {
    ($($name:ident: $args:expr, $expected:expr;)*) => {
        $(fn $name(library: Library) {
            ends(library, &$args, $expected);
        }
        on_both!($name);)*
    };
}

// Faults are noted, also where MPICH's UCX or Open MPI or the program has a handler for them. What else ends a process is
// none of the tracer's business inside it: it leaves no word.
endings! {
    exit_without_finalize: ["exit", "50"], "exit(7) without MPI_Finalize";
    quiet_exit: ["_exit", "50"], "killed or crashed";
    abort: ["abort", "50"], "MPI_Abort with error code 42";
    fatal_mpi_error: ["error", "50"], "inside MPI_Send";
    segmentation_fault: ["segv", "50"], "ended by SIGSEGV";
    breakpoint: ["trap", "50"], "killed or crashed";
    sigterm: ["raise", "50", "15"], "killed or crashed";
    sigabrt: ["raise", "50", "6"], "ended by SIGABRT";
    sigkill_of_one: ["raise", "50", "9"], "killed or crashed";
    sigfpe: ["raise", "50", "8"], "ended by SIGFPE";
    a_handler_of_the_program: ["handled", "50"], "killed or crashed";
}

/// The last call of the one that aborts is there: it is recorded before it is passed on.
#[test]
#[ignore = "needs MPI: `make test`"]
fn abort_is_recorded() {
    for library in Library::ALL {
        let traced = run::traced(library, &endings(&["abort", "5"]), RANKS);
        let dump = traced.dump();
        let last = dump[RANKS as usize - 1].last().and_then(|call| call.get("call").text());
        assert_eq!(last, Some("MPI_Abort"), "{}", traced.outcome.stderr);
    }
}

/// Polls that found nothing are only counted until another call follows: where none does, a snapshot or two later, the count is
/// in the trace all the same.
fn polls_in_vain_until_the_end(library: Library) {
    for end in ["9", "0"] {
        let environment = [("REFRAIN_TEST_TAIL", "4096")];
        let special = Special { environment: &environment, ..Special::default() };
        let program = endings(Vec::leak(vec!["polls", "20", end]));
        let traced = run::traced_special(library, &program, RANKS, &special);
        let what = format!("{end} on {}", library.suffix());
        check(&traced, &what);
        let last = &traced.dump()[RANKS as usize - 1];
        let polls = last.iter().rev().skip_while(|call| call.get("call").text() == Some("MPI_Abort"));
        let polls = polls.take_while(|call| call.get("call").text() == Some("MPI_Test"));
        assert_eq!(polls.filter(|call| compare::is_vain_poll(call)).count(), 3000, "{what}");
    }
}

on_both!(polls_in_vain_until_the_end);

/// What comes after `MPI_Finalize` is none of ours, nor is what a child of the program does.
fn after_finalize_and_in_children(library: Library) {
    for (args, code) in [(&["finalized", "9"] as &[_], 6), (&["fork", "9"], 0)] {
        let program = endings(args);
        let plain = run::untraced(library, &program, RANKS);
        let traced = run::traced(library, &program, RANKS);
        assert_eq!((plain.code, traced.outcome.code), (code, code), "{}", traced.outcome.stderr);
        // After an error the launcher may drop output, and end ranks that are still in MPI_Finalize.
        assert!(code != 0 || traced.outcome.stdout == plain.stdout, "{}", traced.outcome.stdout);
        if code == 0 {
            let compared = compare::compare(&traced.dump(), &traced.witness(), Default::default());
            compared.unwrap_or_else(|e| panic!("{e}"));
        }
        let (info, _) = check(&traced, args[0]);
        assert!(info.contains(", complete") && !info.contains("notes"), "{info}");
        assert!(!traced.parts().exists());
    }
}

on_both!(after_finalize_and_in_children);

/// Waits for something that takes as long as the machine needs.
fn a_hang_that_is_ended(library: Library) {
    let special = Special { before: &run::NOTED, ..Special::default() };
    // What the launcher returns when it is ended is a race, traced or not.
    let traced = run::traced_while(library, &endings(&["hang", "50"]), RANKS, &special, |parts| {
        // All that each can do with the one that hangs: four calls a step, and one more in every fourth.
        let calls = |rank| {
            let log = parts.with_file_name(format!("witness/rank.{rank}.jsonl"));
            fs::read(log).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count()
        };
        let over = || parts.with_extension("").exists();
        run::until(|| over() || (0..RANKS).all(|rank| calls(rank) > 4 * 50 + 13));
        run::tell("-TERM", parts);
    });
    let (info, calls) = check(&traced, library.suffix());
    // Steps of the one that hangs, and what the others could do without it.
    assert!(info.contains("partial") && calls > 3 * 200, "{calls} calls: {info}");
    println!("{}: {calls} calls\n{info}", library.suffix());
}

on_both!(a_hang_that_is_ended);

/// Waits until all ranks keep what they record, or have ended.
fn under_way(parts: &Path) -> Vec<(u32, u32)> {
    let mut there = Vec::new();
    run::until(|| {
        there = run::processes(parts);
        there.len() == RANKS as usize || parts.with_extension("").exists()
    });
    there
}

/// Whether a process has ended, also where nobody has asked how.
fn is_gone(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().unwrap_or("").trim_start().chars().next().is_none_or(|state| "ZX".contains(state))
}

/// All ranks get the signal of a scheduler while they work.
fn sigterm_of_all(library: Library) {
    let special = Special::default();
    let traced = run::traced_while(library, &endings(&["spin", "1"]), RANKS, &special, |parts| {
        let processes = under_way(parts);
        std::thread::sleep(Duration::from_millis(100));
        run::kill("-TERM", &processes);
    });
    assert_ne!(traced.outcome.code, 0);
    let (info, _) = check(&traced, library.suffix());
    assert!(info.contains("killed or crashed"), "{info}");
}

on_both!(sigterm_of_all);

fn random(below: u64) -> u64 {
    RandomState::new().build_hasher().finish() % below
}

/// Random moments, and small tails, so that many of them are near a snapshot.
fn killed_at_random(library: Library, rounds: usize) {
    let mut told = Vec::new();
    for round in 0..rounds {
        let delay = Duration::from_micros(random(500_000));
        let tail = ["4096", "65536", "1048576"][round % 3];
        let environment = [("REFRAIN_TEST_TAIL", tail)];
        let special = Special { environment: &environment, ..Special::default() };
        let traced = run::traced_while(library, &endings(&["spin", "1"]), RANKS, &special, |parts| {
            let processes = under_way(parts);
            std::thread::sleep(delay);
            run::kill("-KILL", &processes);
        });
        assert_ne!(traced.outcome.code, 0);
        let what = format!("{} killed after {delay:?}, tail of {tail}", library.suffix());
        let (info, calls) = check(&traced, &what);
        assert!(info.contains("partial") && info.contains("killed or crashed"), "{what}: {info}");
        told.push(calls);
    }
    println!("{}: {rounds} runs killed, calls in their traces: {told:?}", library.suffix());
}

fn sigkill_of_all_at_random_moments(library: Library) {
    killed_at_random(library, 6);
}

on_both!(sigkill_of_all_at_random_moments);

mod long {
    use super::*;

    #[test]
    #[ignore = "needs MPI: `make test-all`"]
    fn sigkill_of_all_at_many_random_moments() {
        Library::ALL.into_iter().for_each(|library| killed_at_random(library, 40));
    }
}

/// Everything was recorded, so the trace is complete, whoever writes it.
fn death_inside_the_merge(library: Library) {
    for rank in ["0", "1", "2"] {
        let environment = [("REFRAIN_TEST_DIE_IN_MERGE", rank)];
        let special = Special { environment: &environment, before: &run::NOTED, ..Special::default() };
        let program = endings(&["finalized", "20"]);
        let traced = run::traced_while(library, &program, RANKS, &special, |parts| {
            let processes = under_way(parts);
            let trace = parts.with_extension("");
            let dies = processes.iter().find(|(number, _)| number.to_string() == rank);
            run::until(|| trace.exists() || dies.is_none_or(|(_, process)| is_gone(*process)));
            // Open MPI's launcher now and then does not notice, and then has to be told.
            if !run::within(Duration::from_secs(20), || trace.exists()) {
                run::tell("-TERM", parts);
            }
        });
        assert_ne!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
        let (info, _) = check(&traced, &format!("{} rank {rank}", library.suffix()));
        assert!(info.contains("reached MPI_Finalize, but"), "{info}");
        for calls in traced.dump() {
            assert_eq!(calls.last().and_then(|call| call.get("call").text()), Some("MPI_Finalize"));
        }
    }
}

on_both!(death_inside_the_merge);

/// Rank 0 stands still when all others have given it what they have. They wait for it as long as anybody is waited for, and no
/// longer; when it goes on, the program ends as it would have.
fn rank_0_that_stands_still_when_it_should_write(library: Library) {
    let environment = [("REFRAIN_TEST_STOP_WRITING", "on"), ("REFRAIN_PATIENCE", "30")];
    let special = Special { environment: &environment, ..Special::default() };
    let traced = run::traced_while(library, &endings(&["finalized", "20"]), RANKS, &special, |parts| {
        let processes = under_way(parts);
        let left = || {
            let names = fs::read_dir(parts).into_iter().flatten().flatten();
            names.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(".off"))
        };
        assert!(run::until(left), "{} waits still", library.suffix());
        run::kill("-CONT", &processes);
    });
    let said = &traced.outcome.stderr;
    assert_eq!(traced.outcome.code, 6, "{said}");
    assert!(said.contains("rank 0 has given no sign of life for"), "{said}");
    let (info, _) = check(&traced, library.suffix());
    assert!(info.contains(", complete"), "{info}");
}

on_both!(rank_0_that_stands_still_when_it_should_write);

/// A fault of ours stops tracing; what was recorded before it is in the trace all the same.
fn a_fault_of_the_tracer_loses_nothing_before_it(library: Library) {
    let environment = [("REFRAIN_TEST_PANIC", "60")];
    let special = Special { environment: &environment, ..Special::default() };
    let traced = run::traced_special(library, &endings(&["finalized", "20"]), RANKS, &special);
    assert_eq!(traced.outcome.code, 6, "{}", traced.outcome.stderr);
    let (dump, mut witness) = (traced.dump(), traced.witness());
    for (dump, witness) in dump.iter().zip(&mut witness) {
        // The fault is at the beginning of a call.
        assert_eq!(dump.len(), 59, "{}", traced.outcome.stderr);
        witness.truncate(dump.len());
    }
    compare::compare(&dump, &witness, Default::default()).unwrap_or_else(|e| panic!("{e}"));
    let info = run::refrain(&["info", &traced.trace.to_string_lossy()]).stdout;
    assert!(info.contains("partial") && info.contains("tracing had stopped"), "{info}");
}

on_both!(a_fault_of_the_tracer_loses_nothing_before_it);

/// Somebody cuts the files short: a store to what is gone must not be the end of the program.
fn a_file_that_vanishes_under_the_tracer(library: Library) {
    let program = endings(&["truncate", "9", "trace.rfn.parts"]);
    let traced = run::traced(library, &program, RANKS);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    compare::compare(&traced.dump(), &traced.witness(), Default::default()).unwrap_or_else(|e| panic!("{e}"));
    let (info, _) = check(&traced, library.suffix());
    assert!(info.contains(", complete"), "{info}");
}

on_both!(a_file_that_vanishes_under_the_tracer);

/// Nobody waits for the ranks: their parts stay, and a trace is made of them by hand; until then no other run may take
/// their place.
fn recovery_by_hand(library: Library) {
    let special = Special { inside: true, ..Special::default() };
    let traced = run::traced_special(library, &endings(&["raise", "50", "9"]), RANKS, &special);
    assert_ne!(traced.outcome.code, 0);
    assert!(!traced.trace.exists() && traced.parts().is_dir(), "{}", traced.outcome.stderr);
    let parts = traced.parts().to_string_lossy().into_owned();
    let recovered = run::refrain(&["recover", &parts]);
    assert_eq!(recovered.code, 0, "{}", recovered.stderr);
    let (info, _) = check(&traced, library.suffix());
    assert!(info.contains("killed or crashed"), "{info}");
    let again = run::refrain(&["recover", &parts]);
    assert!(again.code == 2 && again.stderr.contains("exists"), "{}", again.stderr);
    damaged_parts_are_read_without_a_panic(&traced.parts(), traced.folder());
    parts_that_are_there_twice(&traced.parts(), traced.folder(), &traced.trace);

    let trace = Some(traced.trace.clone());
    fs::remove_file(&traced.trace).unwrap();
    let careful = Special { trace: trace.clone(), careful: true, ..Special::default() };
    let refused = run::traced_special(library, &endings(&["finalized", "2"]), RANKS, &careful);
    assert!(refused.outcome.code == 2 && traced.parts().is_dir(), "{}", refused.outcome.stderr);
    let forced = Special { trace, ..Special::default() };
    let done = run::traced_special(library, &endings(&["finalized", "2"]), RANKS, &forced);
    assert_eq!(done.outcome.code, 6, "{}", done.outcome.stderr);
    assert!(!traced.parts().exists());
    check(&done, "forced");
}

on_both!(recovery_by_hand);

/// A copied folder adds nothing and takes nothing. Of parts that differ the longer is taken; where none can be read a trace that is
/// there stays.
fn parts_that_are_there_twice(parts: &Path, folder: &Path, trace: &Path) {
    let (copy, out) = (folder.join("copy.rfn.parts"), folder.join("twice.rfn"));
    fs::create_dir(&copy).unwrap();
    let all = fs::read_dir(parts).unwrap().map(|entry| entry.unwrap().path());
    let all: Vec<PathBuf> = all.filter(|path| !path.is_symlink()).collect();
    for path in &all {
        fs::copy(path, copy.join(path.file_name().unwrap())).unwrap();
    }
    let recover = |directories: [&Path; 2]| {
        let [first, second] = directories.map(|directory| directory.to_string_lossy().into_owned());
        run::refrain(&["recover", &first, &second, "--force", "--out", &out.to_string_lossy()])
    };
    let calls = |trace: &Path| {
        let info = run::refrain(&["info", "--json", &trace.to_string_lossy()]).stdout;
        Json::parse(&info).unwrap().get("calls").int().unwrap()
    };
    let told = recover([parts, &copy]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let info = run::refrain(&["info", &out.to_string_lossy()]).stdout;
    assert!(calls(&out) == calls(trace) && !info.contains("is taken"), "{info}");
    // Words 19 and 21 of a header say how much of what follows counts.
    for path in all.iter().filter(|path| path.extension().is_some_and(|extension| extension == "part")) {
        let path = copy.join(path.file_name().unwrap());
        let mut bytes = fs::read(&path).unwrap();
        for word in [19, 21] {
            bytes[word * 8..][..8].fill(0);
        }
        fs::write(path, bytes).unwrap();
    }
    for directories in [[parts, &copy], [&copy, parts]] {
        let told = recover(directories);
        assert_eq!(told.code, 0, "{}", told.stderr);
        let info = run::refrain(&["info", &out.to_string_lossy()]).stdout;
        assert!(calls(&out) == calls(trace) && info.contains("the first is taken"), "{info}");
    }
    for path in all.iter().filter(|path| path.extension().is_some_and(|extension| extension == "part")) {
        let path = copy.join(path.file_name().unwrap());
        let mut bytes = fs::read(&path).unwrap();
        // Words 18 and 20 say where the snapshot is: it is longer than all there is.
        for word in [18, 20] {
            bytes[word * 8..][..8].fill(0xff);
        }
        fs::write(path, bytes).unwrap();
    }
    let before = fs::read(&out).unwrap();
    let told = recover([&copy, &copy]);
    assert!(told.code == 2 && told.stderr.contains("cannot be read"), "{} {}", told.code, told.stderr);
    assert_eq!(fs::read(&out).unwrap(), before);
}

/// Any bytes: an answer, within bounds of time and memory.
fn damaged_parts_are_read_without_a_panic(parts: &Path, folder: &Path) {
    let copy = folder.join("damaged.rfn.parts");
    fs::create_dir(&copy).unwrap();
    let files = fs::read_dir(parts).unwrap().map(|e| e.unwrap().path());
    // The claim is a note, not a file.
    let files: Vec<PathBuf> = files.filter(|path| !path.is_symlink()).collect();
    let out = folder.join("damaged.rfn").to_string_lossy().into_owned();
    // The same bytes every time, as far as the parts are the same.
    let mut state: u64 = 1;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..60 {
        for path in &files {
            let mut bytes = fs::read(path).unwrap();
            // Where there is something: the words, the text, the first entries; and of a snapshot, all of it.
            let most = bytes.len().min(5200) as u64;
            for _ in 0..=random(4) {
                let at = if random(2) == 0 { random(most.min(200)) } else { random(most) };
                bytes[at as usize] = random(256) as u8;
            }
            if round % 10 == 0 {
                bytes.truncate(random(most + 1) as usize);
            }
            fs::write(copy.join(path.file_name().unwrap()), bytes).unwrap();
        }
        let limit = ["sh", "-c", "ulimit -v 4000000; exec \"$0\" \"$@\""];
        let refrain = refrain_e2e::build::refrain().to_string_lossy().into_owned();
        let parts = copy.to_string_lossy().into_owned();
        let words = [&refrain, "recover", &parts, "--out", &out, "--force"].map(str::to_owned);
        let words = [limit.map(str::to_owned).to_vec(), words.to_vec()].concat();
        let answer = run::command(folder, &words, &[]);
        assert!([0, 2].contains(&answer.code), "{}: {}", answer.code, answer.stderr);
        assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
        if answer.code == 0 {
            let info = run::refrain(&["info", &out]);
            assert_eq!(info.code, 0, "{}", info.stderr);
        }
    }
}

/// They never reach `MPI_Finalize`; what they keep is all there is to say.
#[test]
#[ignore = "needs MPI: `make test`"]
fn sessions_alone() {
    // Open MPI has sessions since 5.0.
    let program = Program { source: "sessions.c", ..endings(&[]) };
    let special = Special { unwitnessed: true, ..Special::default() };
    let traced = run::traced_special(Library::Mpich, &program, 2, &special);
    assert_eq!((traced.outcome.code, traced.outcome.stdout.as_str()), (0, "2 ranks\n2 ranks\n"));
    let (info, _) = check_unwitnessed(&traced);
    assert!(info.contains(", complete"), "{info}");
    for calls in traced.dump() {
        let names: Vec<_> = calls.iter().filter_map(|call| call.get("call").text()).collect();
        assert_eq!(
            names,
            [
                "MPI_Session_init",
                "MPI_Group_from_session_pset",
                "MPI_Comm_create_from_group",
                "MPI_Comm_size",
                "MPI_Barrier",
                "MPI_Comm_free",
                "MPI_Group_free",
                "MPI_Session_finalize"
            ]
        );
    }
}

fn check_unwitnessed(traced: &run::Traced) -> (String, String) {
    let path = traced.trace.to_string_lossy().into_owned();
    let verified = run::refrain(&["verify", &path]);
    assert_eq!(verified.code, 0, "{}{}\n{}", verified.stdout, verified.stderr, traced.outcome.stderr);
    (run::refrain(&["info", &path]).stdout, verified.stdout)
}

/// A file system of its own, of that size. `None`, and why, where it cannot be had.
struct Disk(PathBuf);

impl Disk {
    fn new(kibibytes: u32) -> Option<Disk> {
        let at = run::folder("disk");
        let options = format!("size={kibibytes}k");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "refrain"]).arg(&at).output();
        match mount {
            Ok(done) if done.status.success() => Some(Disk(at)),
            Ok(done) => {
                skipped(&format!("a full disk: {}", String::from_utf8_lossy(&done.stderr).trim()));
                None
            }
            Err(error) => {
                skipped(&format!("a full disk: mount: {error}"));
                None
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// No room for the parts: the program is not touched, and the trace, which is small, is there at the end.
fn no_room_for_parts(library: Library) {
    // Of one rank, and not of two.
    let Some(disk) = Disk::new(96) else { return };
    let special = Special { trace: Some(disk.0.join("t.rfn")), ..Special::default() };
    let traced = run::traced_special(library, &endings(&["finalized", "20"]), RANKS, &special);
    assert_eq!(traced.outcome.code, 6, "{}", traced.outcome.stderr);
    let said = traced.outcome.lines("refrain: what is recorded would not survive a crash");
    assert_eq!(said.len(), 1, "{}", traced.outcome.stderr);
    assert!(said[0].contains("No space left"), "{}", traced.outcome.stderr);
    let (info, _) = check(&traced, library.suffix());
    assert!(info.contains(", complete"), "{info}");
    assert!(!traced.parts().exists());
}

on_both!(no_room_for_parts);

/// The disk is full when the trace is to be written: it takes the room of the parts.
fn no_room_for_the_trace(library: Library) {
    let Some(disk) = Disk::new(8 * 1024) else { return };
    let special = Special { trace: Some(disk.0.join("t.rfn")), ..Special::default() };
    let balloon = disk.0.join("balloon").to_string_lossy().into_owned();
    let args: &'static [&'static str] = Vec::leak(vec!["fullend", "20", balloon.leak()]);
    let traced = run::traced_special(library, &endings(args), RANKS, &special);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let (info, _) = check(&traced, library.suffix());
    assert!(info.contains(", complete"), "{info}");
    assert!(!traced.parts().exists());
}

on_both!(no_room_for_the_trace);

/// The disk fills up while the program runs: it does not notice, and what was kept until then can be read.
fn room_runs_out_on_the_way(library: Library) {
    let Some(disk) = Disk::new(8 * 1024) else { return };
    let special = Special { trace: Some(disk.0.join("t.rfn")), ..Special::default() };
    let balloon = disk.0.join("balloon").to_string_lossy().into_owned();
    let args: &'static [&'static str] = Vec::leak(vec!["full", "100000", balloon.clone().leak()]);
    let traced = run::traced_special(library, &endings(args), 2, &special);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let said = &traced.outcome.stderr;
    assert!(said.contains("what is recorded from here on would not survive a crash"), "{said}");
    let parts = traced.parts().to_string_lossy().into_owned();
    let elsewhere = traced.folder().join("elsewhere.rfn");
    let recovered = run::refrain(&["recover", &parts, "--out", &elsewhere.to_string_lossy()]);
    assert_eq!(recovered.code, 0, "{}", recovered.stderr);
    let traced = traced.at(elsewhere);
    let (dump, mut witness) = (traced.dump(), traced.witness());
    for (dump, witness) in dump.iter().zip(&mut witness) {
        assert!(dump.len() > 1_000 && dump.len() < witness.len(), "{} calls", dump.len());
        witness.truncate(dump.len());
    }
    compare::compare(&dump, &witness, Default::default()).unwrap_or_else(|e| panic!("{e}"));
    let info = run::refrain(&["info", &traced.trace.to_string_lossy()]).stdout;
    assert!(info.contains("partial") && info.contains("there was no room to keep them"), "{info}");
    println!("{}: {} of {} calls kept", library.suffix(), dump[0].len(), traced.witness()[0].len());
}

on_both!(room_runs_out_on_the_way);

/// Parts have filled the disk: they give way to the trace, which is smaller.
fn parts_give_way_to_the_trace(library: Library) {
    // What two ranks keep of so many calls needs more, in whatever order they ask for it; the trace needs a third of it.
    let Some(disk) = Disk::new(300) else { return };
    let special = Special { trace: Some(disk.0.join("t.rfn")), unwitnessed: true, ..Special::default() };
    let args: &'static [&'static str] = &["well", "60000"];
    let program = Program { args, ..Program::unwitnessed("restricted.c") };
    let traced = run::traced_special(library, &program, 2, &special);
    let outcome = &traced.outcome;
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("would not survive a crash"), "{}", outcome.stderr);
    let (info, verified) = check_unwitnessed(&traced);
    assert!(info.contains(", complete"), "{info}");
    assert!(verified.contains("2 ranks, 120,010 calls"), "{verified}");
    assert!(!traced.parts().exists());
}

on_both!(parts_give_way_to_the_trace);

/// The disk has no room for the times of all calls while the program runs: memory has.
fn times_that_have_no_room_are_kept_in_memory(library: Library) {
    // Of a part and the beginning of its times, of which there are at least three bytes a call; of not even a part.
    let cases: [(u32, &'static [&'static str], &str); 2] =
        [(400, &["well", "30000"], "30,005"), (72, &["well", "8000"], "8,005")];
    for (kibibytes, args, all) in cases {
        let Some(disk) = Disk::new(kibibytes) else { return };
        let environment = [("REFRAIN_TIME", "exact")];
        let special = Special {
            trace: Some(disk.0.join("t.rfn")),
            unwitnessed: true,
            environment: &environment,
            ..Special::default()
        };
        let program = Program { args, ..Program::unwitnessed("restricted.c") };
        let traced = run::traced_special(library, &program, 1, &special);
        let outcome = &traced.outcome;
        assert_eq!(outcome.code, 0, "{kibibytes}: {}", outcome.stderr);
        let words = if kibibytes > 100 { "kept in memory from here on" } else { "would not survive a crash" };
        assert!(outcome.stderr.contains(words), "{kibibytes}: {}", outcome.stderr);
        let (info, verified) = check_unwitnessed(&traced);
        assert!(info.contains(", complete"), "{kibibytes}: {info}");
        assert!(verified.contains(&format!("1 rank, {all} calls")), "{verified}");
        let timed = run::refrain(&["info", "--json", &traced.trace.to_string_lossy()]);
        assert!(
            timed.stdout.contains(&format!("\"timed_calls\":{},", all.replace(',', ""))),
            "{}",
            timed.stdout
        );
        assert!(!traced.parts().exists());
    }
}

on_both!(times_that_have_no_room_are_kept_in_memory);

/// Inside the launcher, where a directory may be missing on some nodes: the program runs, and rank 0 says what is wrong.
fn an_unwritable_directory(library: Library) {
    let program = endings(&["well", "20"]);
    let plain = run::plain(library, &program, RANKS);
    for place in ["/proc/t.rfn", "/there/is/no/such/directory/t.rfn"] {
        let special = Special { trace: Some(place.into()), inside: true, ..Special::default() };
        let traced = run::traced_special(library, &program, RANKS, &special);
        let outcome = &traced.outcome;
        assert_eq!((outcome.code, &outcome.stdout), (plain.code, &plain.stdout), "{}", outcome.stderr);
        assert_eq!(
            outcome.lines("refrain: what is recorded would not survive").len(),
            1,
            "{}",
            outcome.stderr
        );
        assert_eq!(outcome.lines("refrain: no trace").len(), 1, "{}", outcome.stderr);
        assert_eq!(outcome.lines("refrain:").len(), 2, "{}", outcome.stderr);
    }
}

on_both!(an_unwritable_directory);

/// No memory left for the tracer: it stops, the program goes on.
fn a_memory_limit(library: Library) {
    let special = Special { unwitnessed: true, ..Special::default() };
    let program = endings(&["memory", "1000000"]);
    let plain = run::plain(library, &program, 1);
    let traced = run::traced_special(library, &program, 1, &special);
    let outcome = &traced.outcome;
    assert_eq!((outcome.code, &outcome.stdout), (plain.code, &plain.stdout), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("tracing stopped on rank 0: there is no memory left"),
        "{}",
        outcome.stderr
    );
    let (info, verified) = check_unwitnessed(&traced);
    assert!(info.contains("partial") && info.contains("tracing had stopped"), "{info}");
    println!("{}: {}", library.suffix(), verified.trim());
}

on_both!(a_memory_limit);
