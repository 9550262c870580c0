//! What a user of `refrain run` can rely on: the program's output and exit code, the file, and what happens when
//! Refrain itself fails. Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use std::fs;

use refrain_e2e::check::same;
use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, build, check, compare, run};

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_exit_code_is_the_program_s() {
    for library in Library::ALL {
        let program = Program::named("ring").with(&["3"]);
        let plain = run::untraced(library, &program, 2);
        assert_eq!(plain.code, 3, "{}", plain.stderr);
        let traced = run::traced_with(library, &program, 2, &[]);
        // Not the output: a launcher that sees a rank fail may drop what the ranks printed, traced or not.
        assert_eq!(traced.outcome.code, 3, "{}", traced.outcome.stderr);
        assert!(traced.trace.exists(), "{}", traced.outcome.stderr);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn more_iterations_and_named_neighbours() {
    for library in Library::ALL {
        let program = Program::named("stencil2d").with(&["40", "4", "null"]);
        let plain = run::plain(library, &program, 4);
        let traced = run::traced(library, &program, 4);
        assert_eq!(traced.outcome.stdout, plain.stdout);
        let report = compare::compare(&traced.dump(), &traced.witness(), program.rules)
            .unwrap_or_else(|e| panic!("{e}"));
        assert!(report.calls >= 4 * 40 * 10, "{report:?}");
        println!("stencil2d with PROC_NULL, {}: {} calls equal", library.suffix(), report.calls);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_panic_inside_the_tracer_leaves_the_program_alone() {
    for library in Library::ALL {
        for (ranks, lines) in [(1, 1..=1), (3, 1..=3)] {
            let program = Program::named("p2p");
            let plain = run::plain(library, &program, ranks);
            let traced = run::traced_with(library, &program, ranks, &[("REFRAIN_TEST_PANIC", "5")]);
            assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
            assert_eq!(traced.outcome.stdout, plain.stdout);
            let said = traced.outcome.lines("refrain: tracing stopped");
            assert!(lines.contains(&said.len()), "{}", traced.outcome.stderr);
            assert!(!traced.outcome.stderr.contains("panicked at"), "{}", traced.outcome.stderr);
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_trace_is_never_overwritten_without_force() {
    let library = Library::Mpich;
    let folder = run::folder("overwrite");
    let mut words = vec![build::refrain().to_string_lossy().into_owned(), "run".into(), "--".into()];
    words.extend(run::launcher(library, 2));
    words.push(Program::named("ring").build(library).to_string_lossy().into_owned());
    let first = run::command(&folder, &words, &[]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    // The default name is the program's.
    let trace = folder.join("ring.rfn");
    let before = fs::read(&trace).unwrap_or_else(|e| panic!("{}: {e}; {}", trace.display(), first.stderr));

    let second = run::command(&folder, &words, &[]);
    assert_eq!(second.code, 2, "{}", second.stderr);
    assert!(second.stderr.contains("ring.rfn") && second.stderr.contains("--force"), "{}", second.stderr);
    assert_eq!(second.stdout, "", "the program must not have run");
    assert_eq!(fs::read(&trace).unwrap(), before);

    words.insert(2, "--force".into());
    let third = run::command(&folder, &words, &[]);
    assert_eq!((third.code, third.stdout), (0, first.stdout), "{}", third.stderr);
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "stdout, stderr and the trace, but there is {left:?}");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn inside_the_launcher() {
    for library in Library::ALL {
        let program = Program::named("ring");
        let plain = run::plain(library, &program, 4);
        let traced = run::traced_inside(library, &program, 4);
        assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
        assert_eq!(traced.outcome.stdout, plain.stdout);
        assert!(traced.outcome.lines("refrain:").len() <= 1, "{}", traced.outcome.stderr);
        compare::compare(&traced.dump(), &traced.witness(), program.rules).unwrap_or_else(|e| panic!("{e}"));
        let failing = run::traced_inside(library, &program.with(&["3"]), 2);
        assert_eq!(failing.outcome.code, 3, "{}", failing.outcome.stderr);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_program_without_mpi_is_left_alone() {
    let folder = run::folder("no-mpi");
    let refrain = build::refrain().to_string_lossy().into_owned();
    let words =
        |rest: &[&str]| [vec![refrain.clone()], rest.iter().map(|w| w.to_string()).collect()].concat();
    let done = run::command(
        &folder,
        &words(&["run", "--out", "x.rfn", "--", "sh", "-c", "echo hello; exit 7"]),
        &[],
    );
    assert_eq!((done.code, done.stdout.as_str()), (7, "hello\n"), "{}", done.stderr);
    assert!(!folder.join("x.rfn").exists());
    let done =
        run::command(&folder, &words(&["run", "--out", "x.rfn", "--", "./there-is-no-such-program"]), &[]);
    assert_eq!(done.code, 2, "{}", done.stderr);
    assert!(done.stderr.contains("there-is-no-such-program"), "{}", done.stderr);
}

/// MPI's thread level says nothing about `MPI_Initialized` and its like.
#[test]
#[ignore = "needs MPI: `make test`"]
fn threads_that_ask_mpi_at_any_level() {
    for library in Library::ALL {
        let traced = same(library, &Program::unwitnessed("threads.c"), 1);
        assert!(!traced.outcome.stderr.contains("tracing stopped"), "{}", traced.outcome.stderr);
        let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
        assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
        // Init, Finalize, one Bcast in ten and two calls of three threads a time.
        assert!(verified.stdout.contains("610,002 calls"), "{}", verified.stdout);
    }
}

/// Threads that are created and joined in every step are the same few threads to us.
#[test]
#[ignore = "needs MPI: `make test`"]
fn threads_that_come_and_go_cost_nothing() {
    for library in Library::ALL {
        let few = same(library, &Program::unwitnessed("forkjoin.c").with(&["20"]), 2);
        let many = same(library, &Program::unwitnessed("forkjoin.c").with(&["200"]), 2);
        let size = |traced: &run::Traced| traced.trace.metadata().map_or(0, |file| file.len());
        assert!(size(&many) < size(&few) + 50, "{} bytes became {}", size(&few), size(&many));
        let verified = run::refrain(&["verify", &many.trace.to_string_lossy()]);
        assert!(verified.stdout.contains("1,220 calls"), "{}{}", verified.stdout, verified.stderr);
        for call in many.dump().concat() {
            let thread = call.get("thread").int();
            assert!(thread.is_some_and(|thread| thread <= 3), "{call}");
            // The thread that is made first has tag 0, the next one 1, and so on.
            let tag = call.get("args").get("sendtag").int();
            assert!(tag.is_none() || tag.map(|tag| tag + 1) == thread, "{call}");
        }
    }
}

/// The other ranks wait for this one in `MPI_Finalize`, and the trace says what it lacks.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_jump_out_of_a_call_keeps_nobody_waiting() {
    for library in Library::ALL {
        let traced = same(library, &Program::unwitnessed("jump.c"), 3);
        let info = run::refrain(&["info", &traced.trace.to_string_lossy()]);
        assert!(info.stdout.contains("rank 0: left an MPI call by a jump"), "{}", info.stdout);
    }
}

/// Every class of error, and a status that comes with one.
#[test]
#[ignore = "needs MPI: `make test`"]
fn what_is_wrong_stays_wrong_in_the_same_way() {
    for library in Library::ALL {
        let traced = same(library, &Program::unwitnessed("wrong.c"), 2);
        let told = traced.outcome.stdout.lines().filter(|line| line.contains("MPI_")).count();
        assert_eq!(told, 34, "{}", traced.outcome.stdout);
        let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
        assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    }
}

/// Away from the witness, which stands between MPI and Refrain: what MPI calls itself is not the program's, and what
/// callbacks call is.
#[test]
#[ignore = "needs MPI: `make test`"]
fn callbacks_are_told_from_mpi_itself() {
    for library in Library::ALL {
        for name in ["callbacks", "f_callbacks", "vw", "comms"] {
            let program = Program::named(name);
            // In which of its calls MPI gets around to a reduction is chance, so the order is not compared.
            let names = |calls: &[Vec<Json>]| -> Vec<Vec<String>> {
                let sorted = |rank: &Vec<Json>| {
                    let mut names: Vec<_> = rank.iter().map(|call| call.get("call").to_string()).collect();
                    names.sort();
                    names
                };
                calls.iter().map(sorted).collect()
            };
            let alone = run::traced_with(library, &program, 3, &[]);
            let mut dump = alone.dump();
            let (_, mut witness) = run::witnessed(library, &program, 3);
            check::as_the_witness_sees_it(&program, &mut dump, &mut witness);
            assert_eq!(names(&dump), names(&witness), "{name}, {}", library.suffix());
        }
    }
}

/// There is no world to ask about, and no `MPI_Finalize`: `endings.rs` looks at the trace.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_program_of_sessions_alone_is_left_alone() {
    // Open MPI has sessions since 5.0.
    same(Library::Mpich, &Program::unwitnessed("sessions.c"), 2);
}

/// Both are worlds of their own, and both end up with a trace.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_spawned_program_has_a_trace_of_its_own() {
    // Debian's MPICH cannot spawn.
    let traced = same(Library::OpenMpi, &Program::unwitnessed("spawn.c"), 3);
    let folder = traced.trace.parent().unwrap();
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let spawned: Vec<String> = names.filter(|name| name.starts_with("trace.spawned-")).collect();
    assert_eq!(spawned.len(), 1, "{spawned:?}: {}", traced.outcome.stderr);
    for (trace, ranks) in [(traced.trace.clone(), "3 ranks"), (folder.join(&spawned[0]), "2 ranks")] {
        let verified = run::refrain(&["verify", &trace.to_string_lossy()]);
        assert!(verified.code == 0 && verified.stdout.contains(ranks), "{ranks}: {}", verified.stdout);
    }
}
