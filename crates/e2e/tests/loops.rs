//! `refrain loops` against the sources: the right number of time steps, at the right line. Ignored in a plain `cargo test`:
//! needs the MPI libraries and the built command.

use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, run};

const LOOPS: (&str, &str) = ("REFRAIN_FOLD", "loops");

/// Traces a program and looks at its structure.
fn kinds(
    library: Library,
    program: &Program,
    ranks: u32,
    variables: &[(&'static str, &str)],
) -> (Vec<Json>, String) {
    let traced = run::traced_with(library, program, ranks, variables);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let trace = traced.trace.to_string_lossy().into_owned();
    let shown = run::refrain(&["loops", &trace, "--json"]);
    assert_eq!((shown.code, &*shown.stderr), (0, ""), "{}", program.source);
    let json = Json::parse(&shown.stdout).unwrap_or_else(|e| panic!("{e}: {}", shown.stdout));
    (json.get("kinds").list().to_vec(), trace)
}

/// Every rank's steps, and where their loop is.
fn check(
    library: Library,
    program: &Program,
    ranks: u32,
    expected: &[i64],
    variables: &[(&'static str, &str)],
) {
    let (kinds, _) = kinds(library, program, ranks, variables);
    assert!(!kinds.is_empty(), "{}", program.source);
    for kind in &kinds {
        let loops = kind.get("steps").get("loops").list();
        let found: Vec<i64> = loops.iter().filter_map(|l| l.get("steps").int()).collect();
        assert_eq!(found, expected, "{} on {ranks} ranks of {library:?}: {loops:?}", program.source);
        for one in loops {
            let at = one.get("at");
            let line = at.get("first").int().and_then(|line| u32::try_from(line).ok());
            assert_eq!(line, program.time_step(), "{} of {library:?}: {at}", program.source);
            assert!(at.get("file").text().is_some_and(|file| file.ends_with(program.source)), "{at}");
        }
    }
}

fn time_steps_and_their_lines(library: Library) {
    let programs: [(&str, u32, &[i64]); 21] = [
        ("stencil1d5", 4, &[4]),
        ("stencil2d9", 4, &[3]),
        ("stencil3d27", 8, &[3]),
        ("stencil3d_recursive", 5, &[4]),
        ("trailing", 4, &[9]),
        ("loop_figure1", 2, &[2]),
        ("loop_figure4", 2, &[5, 6]),
        ("pop_like", 4, &[8]),
        ("mg_like", 8, &[3]),
        ("amr", 4, &[8]),
        ("pipeline2d", 4, &[3]),
        ("alltoallv", 4, &[4]),
        ("bt_sites", 4, &[5]),
        ("branches", 3, &[50]),
        ("cold", 2, &[40]),
        ("commands", 4, &[40]),
        ("seldom", 3, &[100]),
        ("jumps", 2, &[12]),
        ("random3", 2, &[300]),
        ("f_steps", 3, &[5]),
        ("f_steps08", 3, &[5]),
    ];
    for (name, ranks, expected) in programs {
        check(library, &Program::named(name), ranks, expected, &[LOOPS]);
    }
}

on_both!(time_steps_and_their_lines);

#[test]
#[ignore = "needs MPI: `make test`"]
fn loops_are_found_in_traces_of_rules() {
    let stacks = [("REFRAIN_FOLD", "grammar"), ("REFRAIN_STACKS", "full")];
    check(Library::Mpich, &Program::named("bt_sites"), 4, &[5], &stacks);
}

/// Whatever the calls look like, or which ranks make them.
#[test]
#[ignore = "needs MPI: `make test`"]
fn one_loop_of_the_source_is_one_loop() {
    let lines = [
        "time-step loop: 50 iterations at branches.c:17 in main, with 622 of 637 calls",
        "  loop 50 times  at branches.c:17 in main",
        "    loop 3.0 times on average  at branches.c:18 in main",
        "  in 5 of 50 iterations on rank 0  at save (branches.c:7)",
        "  in 5 of 50 iterations on ranks 1-2  at save (branches.c:7)",
        "  in 2 of 50 iterations on rank 2  at main (branches.c:27)",
        "  in 2 of 50 iterations on rank 0  at main (branches.c:29)",
        "  MPI_Reduce(count=1, datatype=MPI_LONG, op=MPI_SUM, root=0, comm=world)  at finish (common.h:50)",
    ];
    check_loops("branches", 3, &lines);
}

/// What no turn does both of is not done in one turn, though the calls look like it.
#[test]
#[ignore = "needs MPI: `make test`"]
fn calls_that_exclude_each_other_are_of_several_turns() {
    let lines = [
        "time-step loop: 60 iterations at turns.c:31 in main, with 120 of 190 calls",
        "  loop 30 times  at turns.c:24 in main",
        "  in 15 of 30 iterations  at main (turns.c:26)",
        "  in 15 of 30 iterations  at main (turns.c:28)",
        "  loop 60 times  at turns.c:31 in main",
        "  in 36 of 60 iterations  at meet (turns.c:7)",
        "  in 24 of 60 iterations  at tell (turns.c:14)",
        "are not counted.",
    ];
    check_loops("turns", 2, &lines);
}

/// The way round leads through a part of the function that stands elsewhere.
#[test]
#[ignore = "needs MPI: `make test`"]
fn code_that_was_moved_away_is_in_the_loop() {
    let program = Program::named("cold");
    for library in Library::ALL {
        let symbols = std::process::Command::new("nm").arg(program.build(library)).output();
        let symbols = symbols.unwrap_or_else(|e| panic!("nm: {e}")).stdout;
        assert!(String::from_utf8_lossy(&symbols).contains(" main.cold"), "{library:?}: nothing was moved");
        let traced = run::traced_with(library, &program, 2, &[LOOPS]);
        let shown = run::refrain(&["loops", &traced.trace.to_string_lossy()]).stdout;
        for line in [
            "  loop 40 times  at cold.c:15 in main",
            "  in 30 of 40 iterations  at main (cold.c:18)",
            "  in 10 of 40 iterations  at main (cold.c:20)",
        ] {
            assert!(
                shown.lines().any(|shown| shown.ends_with(line)),
                "{line} of {library:?} is not in\n{shown}"
            );
        }
    }
}

/// The time steps are those of the one command that takes them, and what looks the same shows where it comes from.
#[test]
#[ignore = "needs MPI: `make test`"]
fn time_steps_among_commands() {
    let lines = [
        "time-step loop: 40 iterations at commands.c:15 in simulate, with 255 of 297 calls",
        "  loop 8 times  at commands.c:33 in main",
        "  in 1 of 8 iterations  at simulate (commands.c:14)",
        "    loop 40 times, in 1 of 8 iterations  at commands.c:15 in simulate",
        "  at add (commands.c:8) < simulate (commands.c:20)",
        "  in 5 of 40 iterations  at add (commands.c:8) < simulate (commands.c:22)",
    ];
    check_loops("commands", 3, &lines);
}

/// A function whose frame is gone was called all the same, once for what it did itself.
#[test]
#[ignore = "needs MPI: `make test`"]
fn functions_that_end_with_a_jump() {
    let lines = [
        "time-step loop: 12 iterations at jumps.c:29 in main, with 48 of 66 calls",
        "  loop 12 times  at jumps.c:29 in main",
        "  loop 4 times  at jumps.c:33 in main",
        "are not counted.",
    ];
    check_loops("jumps", 2, &lines);
}

/// Where only the number in all is known, nothing is said of single iterations.
#[test]
#[ignore = "needs MPI: `make test`"]
fn loops_that_are_seldom_there() {
    let program = Program::named("seldom");
    for library in Library::ALL {
        let traced = run::traced_with(library, &program, 2, &[LOOPS]);
        let shown = unwrapped(&run::refrain(&["loops", &traced.trace.to_string_lossy()]).stdout);
        for line in [
            "time-step loop: 100 iterations at seldom.c:21 in main, with 2,354 of 2,364 calls",
            "  in 2 of 100 iterations  at solve (seldom.c:9)",
            "    loop 10 times  at seldom.c:10 in solve",
        ] {
            assert!(shown.lines().any(|l| l.ends_with(line)), "{line} of {library:?} is not in\n{shown}");
        }
        let seldom = shown.lines().find(|line| line.contains("at seldom.c:23 in main"));
        let right = ["    loop 75 times in all", "    loop 3 times, in 25 of 100 iterations"];
        assert!(seldom.is_some_and(|line| right.iter().any(|right| line.starts_with(right))), "{shown}");
    }
}

/// Lines as they were before they were wrapped: what goes on is indented, and begins with neither a call nor a loop.
fn unwrapped(shown: &str) -> String {
    let goes_on = |line: &str| {
        let text = line.trim_start();
        line.starts_with("      ") && !text.starts_with("MPI_") && !text.starts_with("loop ")
    };
    let mut whole = String::new();
    for line in shown.lines() {
        let (between, line) = if goes_on(line) { (" ", line.trim_start()) } else { ("\n", line) };
        whole.push_str(between);
        whole.push_str(line);
    }
    whole
}

/// What `loops` shows of a program has lines that end like this, in this order, and two loops.
fn check_loops(program: &str, ranks: u32, lines: &[&str]) {
    for library in Library::ALL {
        let traced = run::traced_with(library, &Program::named(program), ranks, &[LOOPS]);
        let shown = unwrapped(&run::refrain(&["loops", &traced.trace.to_string_lossy()]).stdout);
        let mut rest = shown.lines();
        for line in lines {
            assert!(rest.any(|shown| shown.ends_with(line)), "{line} of {library:?} is not in\n{shown}");
        }
        assert_eq!(shown.lines().filter(|line| line.trim_start().starts_with("loop ")).count(), 2, "{shown}");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn calls_are_shown_with_their_stacks() {
    let program = Program::named("bt_sites");
    let traced = run::traced_with(Library::Mpich, &program, 3, &[LOOPS]);
    let trace = traced.trace.to_string_lossy().into_owned();
    let shown = run::refrain(&["dump", &trace, "--rank", "1", "--only", "MPI_Irecv", "--stacks"]);
    let first = shown.stdout.lines().next().unwrap_or_default();
    let stack = "  at solve_x (bt_sites.c:24), in simulate (bt_sites.c:45), in main (bt_sites.c:55)";
    assert!(first.ends_with(stack), "{first}");
    let shown = run::refrain(&["dump", &trace, "--rank", "1", "--calls", "0", "--sites", "--json"]);
    let site = Json::parse(&shown.stdout).unwrap_or_else(|e| panic!("{e}: {}", shown.stdout));
    let innermost = site.get("site").list().last().cloned().unwrap_or_else(|| panic!("{site}"));
    assert_eq!(innermost.get("function").text(), Some("start"), "{site}");
    assert!(innermost.get("file").text().is_some_and(|file| file.ends_with("common.h")), "{site}");
}

/// A binary that is not the one that ran gives no names; one that moved does, if it is said where.
#[test]
#[ignore = "needs MPI: `make test`"]
fn only_the_binaries_that_ran_give_names() {
    let program = Program::named("bt_sites");
    let own = run::folder("moved");
    let copy = own.join("bt_sites");
    std::fs::copy(program.build(Library::Mpich), &copy).expect("a copy of the program");
    let trace = own.join("t.rfn").to_string_lossy().into_owned();
    let words = [
        vec![refrain_e2e::build::refrain().to_string_lossy().into_owned()],
        ["run", "--fold", "loops", "--out", &trace, "--"].map(String::from).to_vec(),
        run::launcher(Library::Mpich, 2),
        vec![copy.to_string_lossy().into_owned(), "3".into()],
    ]
    .concat();
    assert_eq!(run::command(&own, &words, &[]).code, 0);
    let named = run::refrain(&["loops", &trace]);
    assert!(named.stdout.contains("3 iterations at bt_sites.c:44 in simulate"), "{}", named.stdout);

    let elsewhere = own.join("elsewhere");
    std::fs::create_dir_all(&elsewhere).expect("a folder");
    std::fs::rename(&copy, elsewhere.join("bt_sites")).expect("the program moves");
    std::fs::copy(Program::named("ring").build(Library::Mpich), &copy).expect("another program in its place");
    let other = run::refrain(&["loops", &trace]);
    assert!(other.stderr.contains("is not the file that ran: its build-id is"), "{}", other.stderr);
    assert_eq!(other.stderr.lines().count(), 1, "{}", other.stderr);
    assert!(
        other.stdout.contains("3 iterations") && other.stdout.contains("bt_sites+0x"),
        "{}",
        other.stdout
    );
    let found = run::refrain(&["loops", &trace, "--modules", &elsewhere.to_string_lossy()]);
    assert_eq!(found.stderr, "");
    assert_eq!(found.stdout, named.stdout);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_trace_goes_through_its_text() {
    for (name, ranks, variable) in [("pop_like", 4, LOOPS), ("amr", 4, ("REFRAIN_FOLD", "grammar"))] {
        let traced = run::traced_with(Library::Mpich, &Program::named(name), ranks, &[variable]);
        let trace = traced.trace.to_string_lossy().into_owned();
        let text = traced.folder().join("text").to_string_lossy().into_owned();
        let again = traced.folder().join("again.rfn").to_string_lossy().into_owned();
        let written = run::refrain(&["loops", &trace, "--text"]);
        assert_eq!(written.code, 0, "{}", written.stderr);
        std::fs::write(&text, &written.stdout).expect("the text is kept");
        let read = run::refrain(&["import", &text, "--out", &again]);
        assert_eq!(read.code, 0, "{}", read.stderr);
        let dumped = |trace: &str| run::refrain(&["dump", trace, "--json"]).stdout;
        assert!(dumped(&trace) == dumped(&again) && !dumped(&again).is_empty(), "{name}");
        assert_eq!(run::refrain(&["verify", &again]).code, 0, "{name}");
    }
}

/// ScalaTrace II's figures 1 and 4, as the text has them.
#[test]
#[ignore = "needs MPI: `make test`"]
fn the_papers_traces() {
    let figures: [(&str, &[(&str, &str)]); 2] = [
        (
            "loop_figure1",
            &[
                ("0-1", "MPI_Barrier()(4,2)"),
                ("0-1", "MPI_Isend()(1,1 0)"),
                ("0-1", "MPI_Irecv()(1,0 1)"),
                ("0-1", "MPI_Barrier()"),
            ],
        ),
        (
            "loop_figure4",
            &[
                ("0-1", "MPI_Isend()(2,5)[0](3,6)[1]"),
                ("0-1", "MPI_Irecv()"),
                ("0", "MPI_Isend()"),
                ("0", "MPI_Irecv()"),
                ("0-1", "MPI_Waitall()"),
            ],
        ),
    ];
    for library in Library::ALL {
        for (name, expected) in figures {
            let program = Program::named(name);
            let traced = run::traced_with(library, &program, 2, &[LOOPS, ("REFRAIN_STACKS", "site")]);
            assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
            let shown = run::refrain(&["loops", &traced.trace.to_string_lossy(), "--events"]);
            let row = |line: &str| {
                line.split_once("  ").map(|(rank, event)| (rank.to_owned(), event.trim().to_owned()))
            };
            let rows: Vec<(String, String)> = shown.stdout.lines().filter_map(row).collect();
            let expected: Vec<(String, String)> =
                expected.iter().map(|(rank, event)| ((*rank).to_owned(), (*event).to_owned())).collect();
            let there = rows.windows(expected.len()).any(|rows| rows == expected);
            assert!(there, "{name} of {library:?}:\n{}", shown.stdout);
        }
    }
}
