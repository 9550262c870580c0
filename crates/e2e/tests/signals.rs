//! Signals belong to the program: what it asks, sets and handles is the same traced and untraced, on both MPI libraries.
//! Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use std::fs;

use refrain_e2e::run::Special;
use refrain_e2e::{Library, Program, run};

fn program(source: &'static str, args: &'static [&'static str]) -> Program {
    Program { source, args, ..Program::named("ring") }
}

/// The same lines and exit code with and without Refrain, and a trace.
fn same(how: &'static str, lines: usize) {
    let program = program("handlers.c", vec![how].leak());
    for library in Library::ALL {
        let what = format!("{how} on {}", library.suffix());
        let plain = run::plain(library, &program, 1);
        let traced = run::traced_with(library, &program, 1, &[]);
        let outcome = &traced.outcome;
        assert_eq!((plain.code, outcome.code), (0, 0), "{what}: {}{}", plain.stderr, outcome.stderr);
        for (number, (plain, traced)) in plain.stdout.lines().zip(outcome.stdout.lines()).enumerate() {
            assert_eq!(traced, plain, "{what}, line {}", number + 1);
        }
        let told = plain.stdout.lines().count();
        assert!(told >= lines && outcome.stdout == plain.stdout, "{what}: {told} lines");
        let info = run::refrain(&["info", &traced.trace.to_string_lossy()]);
        assert!(info.stdout.contains(", complete"), "{what}: {}{}", info.stdout, outcome.stderr);
        println!("{what}: {told} lines equal");
    }
}

/// All signals in a constructor, before, after and after the end of MPI, in children of `fork`, `vfork` and `exec`.
#[test]
#[ignore = "needs MPI: `make test`"]
fn every_action_is_what_it_would_be() {
    same("query", 64 * 9);
}

/// Handlers that call the one that was there before, with one argument.
#[test]
#[ignore = "needs MPI: `make test`"]
fn chained_handlers() {
    same("chain", 1);
}

/// Every flag and every function of C, `siglongjmp`, an alternate stack, the fault's address, handlers that mend.
#[test]
#[ignore = "needs MPI: `make test`"]
fn faults_that_the_program_handles() {
    same("faults", 200);
}

/// A part file is cut under a program that has handlers of its own for the fault this raises, one of them for one use.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_torn_file_is_no_fault_of_the_program_s() {
    for library in Library::ALL {
        let traced = run::traced_with(library, &program("handlers.c", &["torn", "trace.rfn.parts"]), 1, &[]);
        let outcome = &traced.outcome;
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let lines: Vec<&str> = outcome.stdout.lines().collect();
        let torn = ["cut", "not handled", "one argument", "used up: default", "not handled"];
        for (line, start) in lines.iter().zip(torn) {
            assert!(line.starts_with(start), "{}\n{}", outcome.stdout, outcome.stderr);
        }
        assert_eq!(lines.len(), torn.len(), "{}", outcome.stdout);
    }
}

/// A handler finalizes in the middle of a call: the program ends as it would, and there is a trace that says so.
fn ends_late(how: &'static str, moments: std::ops::Range<u32>, libraries: &[Library]) {
    for &library in libraries {
        let mut told = Vec::new();
        for moment in moments.clone() {
            let after: &'static str = (10_000 + 777 * moment).to_string().leak();
            let program = program("late_end.c", vec![how, after].leak());
            let what = format!("{how} after {after} us on {}", library.suffix());
            let special = Special { unwitnessed: true, ..Special::default() };
            let traced = run::traced_special(library, &program, 1, &special);
            let outcome = &traced.outcome;
            assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "ended\n"), "{what}: {}", outcome.stderr);
            let path = traced.trace.to_string_lossy().into_owned();
            let verified = run::refrain(&["verify", &path]);
            assert_eq!(verified.code, 0, "{what}: {}{}", verified.stdout, verified.stderr);
            let info = run::refrain(&["info", &path]).stdout;
            let interrupted = info.contains("a signal handler called it in the middle of another call");
            assert!(interrupted || info.contains(", complete") || how == "standing", "{what}: {info}");
            assert!(!traced.parts().exists(), "{what}");
            told.push(if interrupted { "interrupted" } else { "complete" });
        }
        println!("{how} on {}: {told:?}", library.suffix());
        let always = ["waiting", "calling"].contains(&how);
        assert!(!always || told.iter().all(|told| *told == "interrupted"), "{told:?}");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn finalize_in_a_handler_that_may_interrupt_the_tracer() {
    ends_late("computing", 0..20, &Library::ALL);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn finalize_in_a_handler_that_interrupts_mpi() {
    ends_late("calling", 0..2, &Library::ALL);
    // MPICH itself does not survive it.
    ends_late("waiting", 0..5, &[Library::OpenMpi]);
}

/// One thread stands still for ever, perhaps in the recorder; another one ends the program.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_thread_that_stands_still_holds_up_nobody() {
    ends_late("standing", 0..2, &Library::ALL);
}

/// A signal that is none of ours leaves no word in the part; the launcher's exit status may.
#[test]
#[ignore = "needs MPI: `make test`"]
fn the_launcher_knows_what_ended_a_rank() {
    let program = program("endings.c", &["raise", "5", "15"]);
    let traced = run::traced_with(Library::OpenMpi, &program, 2, &[]);
    assert_eq!(traced.outcome.code, 143, "{}", traced.outcome.stderr);
    assert!(traced.outcome.stderr.contains("which stands for SIGTERM"), "{}", traced.outcome.stderr);
    let info = run::refrain(&["info", &traced.trace.to_string_lossy()]).stdout;
    assert!(info.contains("rank 1: killed or crashed"), "{info}");
    let _ = fs::remove_file(&traced.trace);
}
