//! Traces made again: the trace of a replay is equal to what was replayed. Ignored in a plain `cargo test`: needs the MPI
//! libraries and the built command.

use std::path::{Path, PathBuf};

use refrain_e2e::{Library, Program, build, run};

const LIBRARIES: [Library; 2] = [Library::Mpich, Library::OpenMpi];

/// Runs it with `refrain` before it; its folder.
fn refrain(folder: &Path, library: Library, words: &[String]) -> run::Outcome {
    let preload = match library {
        Library::Mpich => build::yielding().to_string_lossy().into_owned(),
        _ => String::new(),
    };
    let mut all = vec![build::refrain().to_string_lossy().into_owned()];
    all.extend_from_slice(words);
    run::command(folder, &all, &[("LD_PRELOAD", preload)])
}

fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|word| word.to_string()).collect()
}

fn recorded(library: Library, name: &str, args: &[&str], ranks: u32, options: &[&str]) -> PathBuf {
    let folder = run::folder(&format!("replay-{name}"));
    std::fs::copy(Program::named(name).build(library), folder.join("app")).unwrap();
    let mut command = words(&["run", "--quiet", "--out", "first.rfn"]);
    command.extend(words(options));
    command.push("--".into());
    command.extend(run::launcher(library, ranks));
    command.push("./app".into());
    command.extend(words(args));
    let outcome = refrain(&folder, library, &command);
    assert_eq!(outcome.code, 0, "{name}: {}", outcome.stderr);
    folder
}

/// Checked, then traced and held against what was replayed.
fn made_again(folder: &Path, library: Library, ranks: u32, what: &str) {
    let launcher = run::launcher(library, ranks);
    let mut command = words(&["replay", "first.rfn", "--check", "--"]);
    command.extend(launcher.clone());
    let outcome = refrain(folder, library, &command);
    assert_eq!(outcome.code, 0, "{what}: {}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("equal: every outcome"), "{what}: {}", outcome.stdout);
    let mut command = words(&["run", "--quiet", "--force", "--out", "again.rfn", "--"]);
    command.push(build::refrain().to_string_lossy().into_owned());
    command.extend(words(&["replay", "first.rfn", "--"]));
    command.extend(launcher);
    let outcome = refrain(folder, library, &command);
    assert_eq!(outcome.code, 0, "{what}: {}{}", outcome.stdout, outcome.stderr);
    let same =
        refrain(folder, library, &words(&["diff", "first.rfn", "again.rfn", "--ignore", "pointers,sites"]));
    assert_eq!(same.code, 0, "{what}: {}{}", same.stdout, same.stderr);
    assert!(same.stdout.lines().any(|line| line.starts_with("equal: ")), "{what}: {}", same.stdout);
}

/// Messages, collectives, communicators, types, requests in every style, polls, one-sided.
const PROGRAMS: [(&str, u32); 12] = [
    ("ring", 3),
    ("stencil2d", 4),
    ("p2p", 2),
    ("collectives", 3),
    ("comms", 3),
    ("completion", 3),
    ("persistent", 2),
    ("types", 2),
    ("masterworker", 3),
    ("alltoallv", 3),
    ("icollectives", 3),
    ("random_sizes", 3),
];

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_trace_of_a_replay_is_what_was_replayed() {
    for library in LIBRARIES {
        for (name, ranks) in PROGRAMS {
            let loops = ["stencil2d", "comms", "completion"].contains(&name);
            for options in [&[][..], &["--fold", "loops"]].into_iter().take(1 + usize::from(loops)) {
                let folder = recorded(library, name, &[], ranks, options);
                made_again(&folder, library, ranks, &format!("{name} on {}, {options:?}", library.suffix()));
            }
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn what_one_library_recorded_another_makes_again() {
    for (first, second) in [(LIBRARIES[0], LIBRARIES[1]), (LIBRARIES[1], LIBRARIES[0])] {
        for (name, ranks) in [("ring", 3), ("stencil2d", 4), ("comms", 3), ("masterworker", 3)] {
            let folder = recorded(first, name, &[], ranks, &[]);
            made_again(&folder, second, ranks, &format!("{name}, of {}", first.suffix()));
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn what_cannot_be_made_again_is_said_before() {
    for library in LIBRARIES {
        let folder = recorded(library, "ring", &[], 3, &["--only", "p2p"]);
        let mut command = words(&["replay", "first.rfn", "--"]);
        command.extend(run::launcher(library, 3));
        let outcome = refrain(&folder, library, &command);
        assert_eq!(outcome.code, 2, "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains("record the run without it"), "{}", outcome.stderr);
        let folder = recorded(library, "ring", &[], 3, &[]);
        let mut command = words(&["replay", "first.rfn", "--"]);
        command.extend(run::launcher(library, 2));
        let outcome = refrain(&folder, library, &command);
        assert_eq!(outcome.code, 2, "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains("2 ranks, the trace has 3"), "{}", outcome.stderr);
    }
}
