//! `refrain loops` counts what the source does, also where no call is made in each iteration: counts and lines that are
//! known by construction, at two levels of optimisation. Ignored in a plain `cargo test`: needs the MPI libraries and the
//! built command.

use refrain_e2e::build::Level;
use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, run};

const LOOPS: (&str, &str) = ("REFRAIN_FOLD", "loops");
const LEVELS: [Level; 2] = [Level::Plain, Level::Optimised];

/// What `loops` prints, and its JSON.
fn shown(library: Library, program: &Program, ranks: u32) -> (String, Json) {
    let traced = run::traced_with(library, program, ranks, &[LOOPS]);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let trace = traced.trace.to_string_lossy().into_owned();
    let text = run::refrain(&["loops", &trace]);
    assert_eq!((text.code, &*text.stderr), (0, ""), "{}", program.source);
    let json = run::refrain(&["loops", &trace, "--json"]).stdout;
    (text.stdout, Json::parse(&json).unwrap_or_else(|e| panic!("{e}: {json}")))
}

/// By kind of ranks, for the loops that begin at a line how often a rank went around them, in the order of the program.
fn turns(json: &Json, line: u32) -> Vec<Vec<i64>> {
    let of_kind = |kind: &Json| {
        let nodes = kind.get("nodes").list();
        let here = nodes.iter().filter(|node| node.get("at").get("first").int() == Some(line.into()));
        here.flat_map(|node| node.get("times").list().iter().filter_map(|times| times.get("runs").int()))
            .collect()
    };
    json.get("kinds").list().iter().map(of_kind).collect()
}

#[track_caller]
fn check_steps(program: &Program, (text, json): &(String, Json), steps: i64) {
    for kind in json.get("kinds").list() {
        assert_eq!(kind.get("steps").get("most").to_string(), "true", "{}:\n{text}", program.source);
        for found in kind.get("steps").get("loops").list() {
            let (count, line) = (found.get("steps").int(), found.get("at").get("first").int());
            assert_eq!((count, line), (Some(steps), program.time_step().map(i64::from)), "{text}");
            assert_eq!(found.get("at_least").to_string(), "false", "{text}");
        }
    }
    assert!(!text.contains("or more"), "{}:\n{text}", program.source);
}

/// Each step of a multigrid holds nothing but calls in functions that hang on conditions, and ranks that skip levels.
#[test]
#[ignore = "needs MPI: `make test`"]
fn steps_with_nothing_but_conditional_calls() {
    for library in Library::ALL {
        for level in LEVELS {
            let program = Program::named("vcycle").with(&["6"]).at(level);
            for ranks in [2, 3, 4] {
                let shown = shown(library, &program, ranks);
                check_steps(&program, &shown, 6);
                // Each exchange goes along three axes.
                let axes = turns(&shown.1, program.line_of("axes"));
                assert!(axes.iter().flatten().all(|runs| runs % 3 == 0) && !axes.is_empty(), "{}", shown.0);
            }
        }
    }
}

/// The first cell of a sweep receives nothing and the last one sends nothing: no call is made in every turn.
#[test]
#[ignore = "needs MPI: `make test`"]
fn sweeps_forward_and_backward() {
    for library in Library::ALL {
        for level in LEVELS {
            let program = Program::named("f_sweeps").at(level);
            for ranks in [2u32, 3, 4] {
                let shown = shown(library, &program, ranks);
                check_steps(&program, &shown, 5);
                for sweep in ["x forward", "x backward", "y forward", "y backward"] {
                    for kind in turns(&shown.1, program.line_of(sweep)) {
                        let right = !kind.is_empty() && kind.iter().all(|runs| *runs == 5 * i64::from(ranks));
                        assert!(
                            right,
                            "{sweep} on {ranks} ranks of {library:?}, {level:?}: {kind:?}\n{}",
                            shown.0
                        );
                    }
                }
            }
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn no_loop_holds_most_of_the_calls() {
    for library in Library::ALL {
        for level in LEVELS {
            let program = Program::named("no_steps").at(level);
            let (text, json) = shown(library, &program, 3);
            let (none, largest) =
                ("time-step loop: none, no loop holds most of the calls\n", "largest repetition: 7 ");
            assert!(text.contains(none) && text.contains(largest), "{text}");
            for (phase, expected) in [("spread", 6), ("gather", 7), ("agree", 6)] {
                let found = turns(&json, program.line_of(phase)).concat();
                assert!(!found.is_empty() && found.iter().all(|runs| *runs == expected), "{phase}: {text}");
            }
        }
    }
}

/// How often a loop polled depends on the time it took: it has no steps, and nothing is said to be exact.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_loop_that_polls_has_no_steps() {
    for library in Library::ALL {
        let program = Program::unwitnessed("polling.c");
        let (text, _) = shown(library, &program, 3);
        assert!(text.contains("Not shown: "), "nothing was polled in vain: {text}");
        let asks = format!("at polling.c:{} in main", program.line_of("asks"));
        let line = text.lines().find(|line| line.trim_start().starts_with("loop") && line.ends_with(&asks));
        assert!(line.is_some_and(|line| line.contains(" 20 times or more on rank 0")), "{text}");
        let steps = format!("10 iterations on ranks 1-2 at polling.c:{} in main", program.line_of("sends"));
        assert!(text.contains("time-step loop: none") && text.contains(&steps), "{text}");
    }
}

/// Where the views say different things, each says what the other does.
#[test]
#[ignore = "needs MPI: `make test`"]
fn views_that_disagree_say_so() {
    let program = Program::named("turns");
    let traced = run::traced_with(Library::Mpich, &program, 2, &[LOOPS]);
    let trace = traced.trace.to_string_lossy().into_owned();
    let (source, folded) =
        (run::refrain(&["loops", &trace]).stdout, run::refrain(&["loops", &trace, "--folded"]).stdout);
    let finding = |text: &str, start: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(start))
            .unwrap_or_else(|| panic!("{start}: {text}"));
        line.split(" (").next().unwrap_or_default().to_string()
    };
    assert_eq!(finding(&source, "time-step loop: "), finding(&folded, "the source says: "));
    assert!(finding(&source, "as the calls were folded: ").ends_with("with 120 of 190 calls"), "{source}");
    assert!(folded.lines().all(|line| line.chars().count() <= 120), "{folded}");
}
