//! Replays of traces that have lost something: with histograms messages are drawn, with other words all is as recorded. Ignored
//! in a plain `cargo test`: needs the MPI libraries and the built command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use refrain_e2e::run::words;
use refrain_e2e::{Library, Program, build, json::Json, run};

const LIBRARIES: [Library; 2] = [Library::Mpich, Library::OpenMpi];

fn recorded(library: Library, name: &str, ranks: u32, options: &[&str]) -> PathBuf {
    let folder = run::folder(&format!("probabilistic-{name}"));
    std::fs::copy(Program::named(name).build(library), folder.join("app")).unwrap();
    run::trace_app(&folder, library, "first.rfn", ranks, &[], options);
    folder
}

/// Replays `first.rfn`, and traces that.
fn again(folder: &Path, library: Library, ranks: u32, trace: &str, options: &[&str]) -> run::Outcome {
    let mut command = words(&["run", "--quiet", "--force", "--out", trace, "--"]);
    command.push(build::refrain().to_string_lossy().into_owned());
    command.extend(words(&["replay", "first.rfn", "--speed", "0"]));
    command.extend(words(options));
    command.push("--".into());
    command.extend(run::launcher(library, ranks));
    run::refrain_in(&[], folder, &command)
}

/// How often each function was called, on each rank.
fn counts(folder: &Path, trace: &str) -> BTreeMap<(i64, String), u64> {
    let shown = run::refrain_in(&[], folder, &words(&["dump", trace, "--format", "json"]));
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let mut counts = BTreeMap::new();
    for line in shown.stdout.lines().map(|line| Json::parse(line).unwrap()) {
        let (rank, call) = (line.get("rank").int().unwrap(), line.get("call").text().unwrap().to_owned());
        *counts.entry((rank, call)).or_default() += 1;
    }
    counts
}

fn is_equal(folder: &Path, a: &str, b: &str) -> bool {
    let told = run::refrain_in(&[], folder, &words(&["diff", a, b, "--ignore", "pointers,sites"]));
    assert!(told.code < 2, "{}{}", told.stdout, told.stderr);
    told.code == 0
}

/// Messages of any length, receives from any source, probes, collectives with counts by rank, persistent requests.
fn what_is_drawn_is_as_much_as_was_recorded(library: Library) {
    let programs = [
        ("random_sizes", 3, "histograms=1:16"),
        ("alltoallv", 3, "histograms=1:16"),
        ("persistent", 2, "histograms=1:16"),
        ("p2p", 2, "histograms=2:4"),
    ];
    for (name, ranks, lossy) in programs {
        let what = format!("{name} on {}", library.suffix());
        let folder = recorded(library, name, ranks, &["--lossy", lossy]);
        let expected = counts(&folder, "first.rfn");
        for seed in ["1", "2", "3"] {
            let outcome = again(&folder, library, ranks, &format!("{seed}.rfn"), &["--seed", seed]);
            assert_eq!(outcome.code, 0, "{what}: {}{}", outcome.stdout, outcome.stderr);
            let told = format!("drawn from histograms (--seed {seed})");
            assert!(outcome.stdout.contains(&told), "{what}: {}", outcome.stdout);
            assert_eq!(counts(&folder, &format!("{seed}.rfn")), expected, "{what}, seed {seed}");
        }
        if name == "random_sizes" {
            let outcome = again(&folder, library, ranks, "once-more.rfn", &["--seed", "3"]);
            assert_eq!(outcome.code, 0, "{what}: {}{}", outcome.stdout, outcome.stderr);
            assert!(is_equal(&folder, "3.rfn", "once-more.rfn"), "{what}: the same seed");
            assert!(!is_equal(&folder, "2.rfn", "3.rfn"), "{what}: another seed");
        }
    }
}

on_both!(what_is_drawn_is_as_much_as_was_recorded);

/// Nothing is drawn where only tags, polls and means were lost.
#[test]
#[ignore = "needs MPI: `make test`"]
fn other_losses_are_made_again_as_they_are() {
    for library in LIBRARIES {
        for name in ["alltoallv", "completion"] {
            let folder = recorded(library, name, 3, &["--lossy", "waits,averages"]);
            let outcome = again(&folder, library, 3, "again.rfn", &["--check"]);
            assert_eq!(outcome.code, 0, "{name}: {}{}", outcome.stdout, outcome.stderr);
            assert!(outcome.stdout.contains("equal: every outcome"), "{name}: {}", outcome.stdout);
            assert!(!outcome.stdout.contains("drawn"), "{name}: {}", outcome.stdout);
            assert!(is_equal(&folder, "first.rfn", "again.rfn"), "{name} on {}", library.suffix());
        }
        let options = ["--stacks", "full", "--lossy", "tags,sites=2"];
        let folder = recorded(library, "stencil2d", 3, &options);
        let outcome = again(&folder, library, 3, "again.rfn", &["--check"]);
        assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
        assert!(is_equal(&folder, "first.rfn", "again.rfn"));
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn what_cannot_be_drawn_is_said_before() {
    let library = Library::Mpich;
    let refused = |folder: &Path, options: &[&str], why: &str| {
        let mut command = words(&["replay", "first.rfn"]);
        command.extend(words(options));
        command.push("--".into());
        command.extend(run::launcher(library, 2));
        let outcome = run::refrain_in(&[], folder, &command);
        assert_eq!(outcome.code, 2, "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
    };
    let lossy = ["--lossy", "histograms=1:16"];
    let folder = recorded(library, "rma", 2, &lossy);
    refused(&folder, &[], "may not fit a window");
    let folder = recorded(library, "p2p", 2, &lossy);
    refused(&folder, &["--check"], "nothing can be compared");
    refused(&folder, &["--ranks", "0"], "no ranks can do without others");
    let proxy = run::refrain_in(&[], &folder, &words(&["proxy", "first.rfn", "-o", "app.c"]));
    assert_eq!(proxy.code, 2, "{}", proxy.stderr);
    assert!(proxy.stderr.contains("lost on purpose"), "{}", proxy.stderr);
}
