//! Traces made again: the trace of a replay is equal to what was replayed. Ignored in a plain `cargo test`: needs the MPI
//! libraries and the built command.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use refrain_e2e::build::Level;
use refrain_e2e::json::Json;
use refrain_e2e::run::words;
use refrain_e2e::{Library, Program, build, run};

const LIBRARIES: [Library; 2] = [Library::Mpich, Library::OpenMpi];

fn recorded(library: Library, name: &str, ranks: u32, options: &[&str]) -> PathBuf {
    record(library, &Program::named(name), ranks, options).0
}

/// The folder with the trace, and what the program printed.
fn record(library: Library, program: &Program, ranks: u32, options: &[&str]) -> (PathBuf, String) {
    let name = program.name();
    let folder = run::folder(&format!("replay-{name}"));
    std::fs::copy(program.build(library), folder.join("app")).unwrap();
    let outcome = run::trace_app(&folder, library, "first.rfn", ranks, program.args, options);
    (folder, outcome.stdout)
}

/// Every outcome is that of the trace.
fn checked(folder: &Path, library: Library, ranks: u32, what: &str) {
    let mut command = words(&["replay", "first.rfn", "--check", "--"]);
    command.extend(run::launcher(library, ranks));
    let outcome = run::refrain_in(&[], folder, &command);
    assert_eq!(outcome.code, 0, "{what}: {}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("equal: every outcome"), "{what}: {}", outcome.stdout);
}

/// Checked and traced, and the trace held against what was replayed.
fn made_again(folder: &Path, library: Library, ranks: u32, what: &str) {
    let mut command = words(&["run", "--quiet", "--force", "--out", "again.rfn", "--"]);
    command.push(build::refrain().to_string_lossy().into_owned());
    command.extend(words(&["replay", "first.rfn", "--check", "--"]));
    command.extend(run::launcher(library, ranks));
    let outcome = run::refrain_in(&[], folder, &command);
    assert_eq!(outcome.code, 0, "{what}: {}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("equal: every outcome"), "{what}: {}", outcome.stdout);
    let same = run::refrain_in(
        &[],
        folder,
        &words(&["diff", "first.rfn", "again.rfn", "--ignore", "pointers,sites"]),
    );
    assert_eq!(same.code, 0, "{what}: {}{}", same.stdout, same.stderr);
    assert!(same.stdout.lines().any(|line| line.starts_with("equal: ")), "{what}: {}", same.stdout);
}

/// Messages, collectives, communicators, types, requests in every style, polls, one-sided, files, callbacks, errors,
/// threads, Fortran.
const PROGRAMS: [(&str, u32); 22] = [
    ("stencil2d", 4),
    ("p2p", 2),
    ("collectives", 3),
    ("comms", 3),
    ("completion", 3),
    ("persistent", 2),
    ("types", 2),
    ("types_more", 2),
    ("alltoallv", 3),
    ("icollectives", 3),
    ("vw", 3),
    ("misc", 2),
    ("callbacks", 2),
    ("tails", 2),
    ("leftovers", 2),
    ("rma", 2),
    ("windows", 2),
    ("io", 2),
    ("files", 2),
    ("forkjoin", 2),
    ("f_f08", 2),
    ("f_callbacks", 2),
];

fn the_trace_of_a_replay_is_what_was_replayed(library: Library) {
    for (name, ranks) in PROGRAMS {
        let loops = ["stencil2d", "comms", "completion"].contains(&name);
        for options in [&[][..], &["--fold", "loops"]].into_iter().take(1 + usize::from(loops)) {
            let folder = recorded(library, name, ranks, options);
            made_again(&folder, library, ranks, &format!("{name} on {}, {options:?}", library.suffix()));
        }
    }
}

on_both!(the_trace_of_a_replay_is_what_was_replayed);

/// Keys are used after they were freed.
fn what_lives_after_it_was_freed(library: Library) {
    let (folder, _) = record(library, &Program::unwitnessed("outlived.c"), 2, &[]);
    made_again(&folder, library, 2, &format!("outlived on {}", library.suffix()));
}

on_both!(what_lives_after_it_was_freed);

/// Datatypes of several allocations, as HPC Challenge makes them: a replay has the distances that the program had.
fn distances_between_allocations_are_those_of_the_program(library: Library) {
    let program = Program { args: &["near"], ..Program::unwitnessed("apart.c") };
    let (folder, _) = record(library, &program, 3, &[]);
    made_again(&folder, library, 3, &format!("apart on {}", library.suffix()));
}

on_both!(distances_between_allocations_are_those_of_the_program);

/// What MPI 4.0 added.
#[test]
#[ignore = "needs MPI: `make test`"]
fn the_same_of_large_counts_partitions_and_sessions() {
    for name in ["large_p2p", "partitioned", "coll_forms", "sessions4"] {
        let folder = recorded(Library::Mpich, name, 2, &[]);
        made_again(&folder, Library::Mpich, 2, name);
    }
}

/// Each library has its own favourite among types of one size: the recorded one is shown.
#[test]
#[ignore = "needs MPI: `make test`"]
fn types_of_one_size_keep_their_names_on_another_library() {
    for (first, second) in [(LIBRARIES[0], LIBRARIES[1]), (LIBRARIES[1], LIBRARIES[0])] {
        let (folder, _) = record(first, &Program::unwitnessed("of_size.c"), 2, &[]);
        made_again(&folder, second, 2, &format!("of_size of {} elsewhere", first.suffix()));
    }
}

/// What receives from any source got is in the trace although the program ignores it: the payload says the same. A replay
/// gets it again.
#[test]
#[ignore = "needs MPI: `make test`"]
fn what_was_matched_is_known_where_nobody_asked() {
    for (first, second) in [(LIBRARIES[0], LIBRARIES[1]), (LIBRARIES[1], LIBRARIES[0])] {
        for (source, messages) in [("f_wild.f90", 4 * 2), ("wild.c", 3 * 9 * 2)] {
            let (folder, printed) = record(first, &Program::unwitnessed(source), 3, &[]);
            let shown = ["dump", "first.rfn", "--ranks", "0", "--format", "json"];
            let matched = matched(&run::refrain_in(&[], &folder, &words(&shown)).stdout);
            let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            let wanted: Vec<String> = printed.lines().filter(|l| !l.starts_with("wild:")).map(line).collect();
            assert_eq!(wanted.len(), messages, "{printed}");
            assert_eq!(matched, wanted, "{source} on {}", first.suffix());
            for library in [first, second] {
                let what = format!("{source} of {} on {}", first.suffix(), library.suffix());
                made_again(&folder, library, 3, &what);
            }
        }
    }
}

/// Source and tag of each message, in the order in which its receive was begun: a line as the program prints it.
fn matched(dump: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // Where in `lines` a request's is, and how that begins.
    let mut begun: HashMap<String, (usize, &str)> = HashMap::new();
    for call in dump.lines().map(|line| Json::parse(line).unwrap()) {
        let (args, name) = (call.get("args"), call.get("call").text().unwrap_or_default().to_owned());
        let found = call.get("facts").get("matched");
        let told = |how: &str, found: &Json| {
            format!("{how} {} {}", found.get("source").int().unwrap(), found.get("tag").int().unwrap())
        };
        match name.as_str() {
            "MPI_Recv" => lines.push(told("recv", found)),
            "MPI_Sendrecv_replace" => lines.push(told("replace", found)),
            // The one from itself is no receive from any source.
            "MPI_Irecv" if args.get("comm").text() == Some("world") => {
                begun.insert(args.get("request").text().unwrap().to_owned(), (lines.len(), "irecv"));
                lines.push(String::new());
            }
            "MPI_Startall" => {
                for request in args.get("array_of_requests").list() {
                    begun.insert(request.text().unwrap().to_owned(), (lines.len(), "start"));
                    lines.push(String::new());
                }
            }
            "MPI_Wait" | "MPI_Test" if *args.get("flag") != Json::Bool(false) => {
                let (at, how) = begun[args.get("request").text().unwrap()];
                lines[at] = told(how, found);
            }
            "MPI_Waitall" | "MPI_Waitany" | "MPI_Waitsome" => {
                let requests = args.get("array_of_requests").list();
                let of = |index: &Json| requests[usize::try_from(index.int().unwrap()).unwrap()].clone();
                let complete: Vec<(Json, &Json)> = match name.as_str() {
                    "MPI_Waitall" => requests.iter().cloned().zip(found.list()).collect(),
                    "MPI_Waitany" => vec![(of(args.get("indx")), found)],
                    _ => args.get("array_of_indices").list().iter().map(of).zip(found.list()).collect(),
                };
                for (request, found) in complete {
                    if let Some((at, how)) =
                        begun.get(request.text().unwrap()).filter(|_| *found != Json::Null)
                    {
                        lines[*at] = told(how, found);
                    }
                }
            }
            _ => {}
        }
    }
    lines
}

/// A library may have one handle for several requests, and a program may copy handles before it waits for them. The trace names the
/// requests that the program means, and so does the trace of a replay.
fn copied_handles_stand_for_what_the_program_means(first: Library) {
    let second = LIBRARIES[usize::from(!first.is_open_mpi())];
    let program = Program::unwitnessed("copied.c").at(Level::Optimised);
    let (folder, printed) = record(first, &program, 2, &[]);
    let shown = ["dump", "first.rfn", "--ranks", "0", "--format", "json"];
    let named = waited(&run::refrain_in(&[], &folder, &words(&shown)).stdout);
    let meant: Vec<&str> = printed.lines().filter(|line| line.starts_with("wait")).collect();
    assert_eq!(meant.len(), 3 * 27, "{printed}");
    assert_eq!(named, meant, "on {}", first.suffix());
    for library in [first, second] {
        made_again(&folder, library, 2, &format!("copied, of {}", first.suffix()));
    }
}

on_both!(copied_handles_stand_for_what_the_program_means);

/// As PETSc does it.
fn arrays_without_elements_may_be_null(first: Library) {
    let program = Program::unwitnessed("nulls.c");
    let (folder, printed) = record(first, &program, 2, &[]);
    assert_eq!(printed, "nulls: 0\n");
    for library in LIBRARIES {
        made_again(&folder, library, 2, &format!("nulls, of {}", first.suffix()));
    }
}

on_both!(arrays_without_elements_may_be_null);

fn outputs_that_nobody_asks_for_may_be_null(library: Library) {
    let (folder, _) = record(library, &Program::unwitnessed("unasked.c"), 1, &[]);
    made_again(&folder, library, 1, &format!("unasked on {}", library.suffix()));
}

on_both!(outputs_that_nobody_asks_for_may_be_null);

/// The tags of the requests that each call waits for, as the program prints them.
fn waited(dump: &str) -> Vec<String> {
    let mut tags: HashMap<String, i64> = HashMap::new();
    let mut lines = Vec::new();
    for call in dump.lines().map(|line| Json::parse(line).unwrap()) {
        let (args, name) = (call.get("args"), call.get("call").text().unwrap_or_default());
        let request = args.get("request");
        let requests = match name {
            "MPI_Isend" | "MPI_Irecv" => {
                tags.insert(request.text().unwrap().to_owned(), args.get("tag").int().unwrap());
                continue;
            }
            "MPI_Wait" => std::slice::from_ref(request),
            "MPI_Waitall" | "MPI_Waitany" => args.get("array_of_requests").list(),
            _ => continue,
        };
        let tag = |request: &Json| tags.get(request.text().unwrap_or_default()).copied().unwrap_or(0);
        let all: Vec<String> = requests.iter().map(|request| tag(request).to_string()).collect();
        lines.push(format!("wait {}", all.join(" ")));
    }
    lines
}

fn what_one_library_recorded_another_makes_again(first: Library) {
    let second = LIBRARIES[usize::from(!first.is_open_mpi())];
    let programs = [
        ("ring", 3),
        ("stencil2d", 4),
        ("comms", 3),
        ("completion", 3),
        ("persistent", 3),
        ("p2p", 3),
        ("tails", 2),
        ("forkjoin", 2),
    ];
    for (name, ranks) in programs {
        let folder = recorded(first, name, ranks, &[]);
        let what = format!("{name}, of {}", first.suffix());
        made_again(&folder, second, ranks, &what);
        if ["completion", "forkjoin"].contains(&name) {
            checked(&folder, first, ranks, &what);
        }
    }
}

on_both!(what_one_library_recorded_another_makes_again);

/// MPICH's launcher may end by SIGPIPE where ranks end before it has spoken to all of them, and what they said is lost with it. That says
/// nothing about Refrain: it is run again, once, and counted.
fn unless_broken(run: impl Fn() -> run::Outcome) -> run::Outcome {
    let first = run();
    if !first.stderr.contains("(SIGPIPE)") {
        return first;
    }
    run::inconclusive("a launcher ended by SIGPIPE, as its ranks ended at once");
    run()
}

/// Runs a replay that is not to start; what it says.
fn refused(folder: &Path, library: Library, ranks: u32) -> String {
    let mut command = words(&["replay", "first.rfn", "--"]);
    command.extend(run::launcher(library, ranks));
    let outcome = unless_broken(|| run::refrain_in(&[], folder, &command));
    assert_eq!(outcome.code, 2, "{}{}", outcome.stdout, outcome.stderr);
    outcome.stderr
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn what_a_library_lacks_is_said_before() {
    let folder = recorded(Library::Mpich, "large_p2p", 2, &[]);
    let said = refused(&folder, Library::OpenMpi, 2);
    assert!(said.contains("has no MPI_") && said.contains("replay it on MPICH"), "{said}");
}

/// Threads whose order would have to be known, and a program that switches recording off.
#[test]
#[ignore = "needs MPI: `make test`"]
fn what_the_trace_lacks_is_said_before() {
    let folder = recorded(Library::Mpich, "threads4", 2, &[]);
    let said = refused(&folder, Library::Mpich, 2);
    assert!(said.contains("in which order threads call is not recorded"), "{said}");
    for library in LIBRARIES {
        let program = Program::unwitnessed("rivals.c");
        let said = refused(&record(library, &program, 2, &[]).0, library, 2);
        let why = "several threads receive from rank 1 of world with tag 5, and in which order threads call is not recorded";
        assert!(said.contains(why), "{said}");
        let apart = program.with(&["apart"]);
        made_again(&record(library, &apart, 2, &[]).0, library, 2, "rivals apart");
    }
    let program = Program::unwitnessed("switch.c");
    let (folder, _) = record(Library::Mpich, &program, 2, &[]);
    let said = refused(&folder, Library::Mpich, 2);
    assert!(said.contains("record the run with --pcontrol off"), "{said}");
    let (folder, _) = record(Library::Mpich, &program, 2, &["--pcontrol", "off"]);
    checked(&folder, Library::Mpich, 2, "switch with --pcontrol off");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn what_cannot_be_made_again_is_said_before() {
    for library in LIBRARIES {
        let folder = recorded(library, "ring", 3, &["--only", "p2p"]);
        let mut command = words(&["replay", "first.rfn", "--"]);
        command.extend(run::launcher(library, 3));
        let outcome = run::refrain_in(&[], &folder, &command);
        assert_eq!(outcome.code, 2, "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains("record the run without it"), "{}", outcome.stderr);
        let folder = recorded(library, "ring", 3, &[]);
        let mut command = words(&["replay", "first.rfn", "--"]);
        command.extend(run::launcher(library, 2));
        let outcome = unless_broken(|| run::refrain_in(&[], &folder, &command));
        assert_eq!(outcome.code, 2, "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains("2 ranks, the trace has 3"), "{}", outcome.stderr);
    }
}
