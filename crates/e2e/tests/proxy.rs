//! Programs that `refrain proxy` wrote: they compile without a warning, and their traces are those they were made from.
//! Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use std::fs;
use std::path::{Path, PathBuf};

use refrain_e2e::run::words;
use refrain_e2e::{Library, Program, run};

const LIBRARIES: [Library; 2] = [Library::Mpich, Library::OpenMpi];

fn traced(folder: &Path, library: Library, trace: &str, ranks: u32, args: &[&str], options: &[&str]) {
    run::trace_app(folder, library, trace, ranks, args, options);
}

/// A folder with the trace of a program, whose name is an argument of `MPI_Init`.
fn recorded(library: Library, name: &str, args: &[&str], ranks: u32, options: &[&str]) -> PathBuf {
    recorded_of(library, Program::named(name), args, ranks, options)
}

fn recorded_of(library: Library, program: Program, args: &[&str], ranks: u32, options: &[&str]) -> PathBuf {
    let folder = run::folder(&format!("proxy-{}", program.name()));
    fs::copy(program.build(library), folder.join("app")).unwrap();
    traced(&folder, library, "first.rfn", ranks, args, options);
    folder
}

/// Writes the program in place of the one that was traced; the lines of it.
fn written(folder: &Path, library: Library, options: &[&str]) -> usize {
    let mut command = words(&["proxy", "first.rfn", "-o", "proxy.c"]);
    command.extend(words(options));
    let outcome = run::refrain_in(&[], folder, &command);
    assert_eq!(outcome.code, 0, "{}: {}", folder.display(), outcome.stderr);
    let compiler = library.compiler(Path::new("proxy.c"));
    let flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-DCOMPUTE=0", "proxy.c", "-o", "proxy"];
    let compiled = run::command(folder, &[words(&[&compiler]), words(&flags)].concat(), &[]);
    assert_eq!(compiled.code, 0, "{}: {}", folder.display(), compiled.stderr);
    fs::rename(folder.join("proxy"), folder.join("app")).unwrap();
    fs::read_to_string(folder.join("proxy.c")).unwrap().lines().count()
}

#[track_caller]
fn check_equal(folder: &Path, a: &str, b: &str) {
    let ignore = "time,pointers,sites,polls";
    let said = run::refrain_in(&[], folder, &words(&["diff", a, b, "--ignore", ignore]));
    assert_eq!(said.code, 0, "{}: {}{}", folder.display(), said.stdout, said.stderr);
    assert!(said.stdout.lines().any(|line| line.starts_with("equal: ")), "{}", said.stdout);
}

/// Messages, collectives, communicators, types, requests in every style, polls, one-sided.
const PROGRAMS: [(&str, u32); 10] = [
    ("stencil2d", 4),
    ("collectives", 3),
    ("alltoallv", 3),
    ("p2p", 2),
    ("comms", 3),
    ("completion", 3),
    ("persistent", 2),
    ("types", 2),
    ("rma", 3),
    ("branches", 3),
];

fn the_trace_of_a_proxy_is_that_of_the_program(library: Library) {
    for (name, ranks) in PROGRAMS {
        let folder = recorded(library, name, &[], ranks, &[]);
        written(&folder, library, &[]);
        traced(&folder, library, "again.rfn", ranks, &[], &[]);
        check_equal(&folder, "first.rfn", "again.rfn");
    }
}

on_both!(the_trace_of_a_proxy_is_that_of_the_program);

/// Keys are used after they were freed.
fn what_lives_after_it_was_freed(library: Library) {
    let folder = recorded_of(library, Program::unwitnessed("outlived.c"), &[], 2, &[]);
    written(&folder, library, &[]);
    traced(&folder, library, "again.rfn", 2, &[], &[]);
    check_equal(&folder, "first.rfn", "again.rfn");
}

on_both!(what_lives_after_it_was_freed);

/// Where a library has one handle for several requests nobody can tell their copies apart: all else is equal.
fn copies_of_handles_are_the_only_difference(library: Library) {
    let folder = recorded_of(library, Program::unwitnessed("copied.c"), &[], 2, &[]);
    written(&folder, library, &[]);
    traced(&folder, library, "again.rfn", 2, &[], &[]);
    let ignore = ["diff", "first.rfn", "again.rfn", "--ignore", "pointers,sites,polls,requests"];
    let said = run::refrain_in(&[], &folder, &words(&ignore));
    assert!(said.code == 0 && said.stdout.starts_with("equal: "), "{}{}", said.stdout, said.stderr);
}

on_both!(copies_of_handles_are_the_only_difference);

/// The number of a block is asked for once. And a program may be called without any word.
fn memory_goes_back_in_the_order_of_the_program(library: Library) {
    let folder = recorded_of(library, Program::unwitnessed("freed.c"), &[], 2, &[]);
    written(&folder, library, &[]);
    traced(&folder, library, "again.rfn", 2, &[], &[]);
    check_equal(&folder, "first.rfn", "again.rfn");
}

on_both!(memory_goes_back_in_the_order_of_the_program);

/// What is sent goes to one, what comes may be of any; and functions of large counts get functions of large counts.
fn buffers_are_replaced_by_what_any_rank_sends(library: Library) {
    let folder = recorded_of(library, Program::unwitnessed("replaced.c"), &[], 4, &[]);
    written(&folder, library, &[]);
    let program = fs::read_to_string(folder.join("proxy.c")).unwrap();
    assert!(program.contains("AS_THEN(Sendrecv_replace)("), "{}", folder.display());
    assert_eq!(
        program.contains("MPI_Register_datarep_c("),
        library == Library::Mpich,
        "{}",
        folder.display()
    );
    traced(&folder, library, "again.rfn", 4, &[], &[]);
    check_equal(&folder, "first.rfn", "again.rfn");
}

on_both!(buffers_are_replaced_by_what_any_rank_sends);

/// A datatype of several allocations is made of where they are now.
fn distances_between_allocations_are_places(library: Library) {
    let folder = recorded_of(library, Program::unwitnessed("apart.c"), &[], 3, &[]);
    written(&folder, library, &[]);
    traced(&folder, library, "again.rfn", 3, &[], &[]);
    check_equal(&folder, "first.rfn", "again.rfn");
}

on_both!(distances_between_allocations_are_places);

/// A call that has failed and returned success, as a function of the program wants it, returns success again.
fn what_the_program_forgives_is_forgiven(library: Library) {
    let folder = recorded_of(library, Program::unwitnessed("forgiven.c"), &[], 2, &[]);
    written(&folder, library, &[]);
    traced(&folder, library, "again.rfn", 2, &[], &[]);
    check_equal(&folder, "first.rfn", "again.rfn");
}

on_both!(what_the_program_forgives_is_forgiven);

/// The messages that were meant for others find them, as those from any source do.
fn receives_that_were_cancelled_get_nothing(library: Library) {
    let program = Program::unwitnessed("cancelled.c");
    let folder = recorded_of(library, program, &["3"], 2, &[]);
    written(&folder, library, &[]);
    traced(&folder, library, "again.rfn", 2, &[], &[]);
    check_equal(&folder, "first.rfn", "again.rfn");
    // One that is started again and again, and cancelled once.
    let folder = recorded_of(library, program, &[], 2, &[]);
    let outcome = run::refrain_in(&[], &folder, &words(&["proxy", "first.rfn", "-o", "proxy.c"]));
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("persistent receive that gets something else"), "{}", outcome.stderr);
    assert!(!folder.join("proxy.c").exists());
}

on_both!(receives_that_were_cancelled_get_nothing);

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_run_of_one_library_is_a_program_for_another() {
    for (first, second) in [(LIBRARIES[0], LIBRARIES[1]), (LIBRARIES[1], LIBRARIES[0])] {
        let folder = recorded(first, "stencil2d", &[], 4, &["--fold", "loops"]);
        written(&folder, second, &[]);
        traced(&folder, second, "again.rfn", 4, &[], &[]);
        check_equal(&folder, "first.rfn", "again.rfn");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_longer_run_is_no_longer_program() {
    for library in LIBRARIES {
        // Times are others in each run.
        let lines = ["20", "40", "400"].map(|steps| {
            let folder = recorded(library, "stencil2d", &[steps], 4, &["--time", "off"]);
            let lines = written(&folder, library, &[]);
            traced(&folder, library, "again.rfn", 4, &[steps], &["--time", "off"]);
            check_equal(&folder, "first.rfn", "again.rfn");
            lines
        });
        assert!(lines.iter().all(|one| *one == lines[0]) && lines[0] < 300, "{lines:?}");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn any_number_of_ranks_where_all_numbers_follow_from_it() {
    for library in LIBRARIES {
        let folder = recorded(library, "ring", &[], 4, &[]);
        traced(&folder, library, "three.rfn", 3, &[], &[]);
        written(&folder, library, &["--ranks", "any"]);
        traced(&folder, library, "again.rfn", 3, &[], &[]);
        check_equal(&folder, "three.rfn", "again.rfn");
        let folder = recorded(library, "alltoallv", &[], 3, &[]);
        let command = words(&["proxy", "first.rfn", "-o", "proxy.c", "--ranks", "any"]);
        let outcome = run::refrain_in(&[], &folder, &command);
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("sendcounts of MPI_Alltoallv"), "{}", outcome.stderr);
        assert!(!folder.join("proxy.c").exists());
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn what_cannot_be_written_is_said_before() {
    let library = LIBRARIES[0];
    let folder = recorded(library, "ring", &[], 3, &["--only", "p2p"]);
    let command = words(&["proxy", "first.rfn", "-o", "proxy.c"]);
    let outcome = run::refrain_in(&[], &folder, &command);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("record the run without it"), "{}", outcome.stderr);
    assert!(!folder.join("proxy.c").exists());
    // Nothing is overwritten.
    let folder = recorded(library, "ring", &[], 3, &[]);
    fs::write(folder.join("proxy.c"), "mine").unwrap();
    let outcome = run::refrain_in(&[], &folder, &command);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--force"), "{}", outcome.stderr);
    assert_eq!(fs::read_to_string(folder.join("proxy.c")).unwrap(), "mine");
    // Other numbers of ranks than the program is for.
    fs::remove_file(folder.join("proxy.c")).unwrap();
    written(&folder, library, &[]);
    let mut started = run::launcher(library, 2);
    started.push("./app".into());
    let outcome = run::command(&folder, &started, &[]);
    assert_ne!(outcome.code, 0);
    assert!(outcome.stderr.contains("for 3 ranks, and 2 were started"), "{}", outcome.stderr);
}
