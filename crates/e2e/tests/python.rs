//! Where Python programs call MPI: by Python's own file, line and function.
//! Ignored in a plain `cargo test`: needs the MPI libraries, mpi4py and the built command.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use refrain_e2e::{Library, build, run, skipped};

/// A place as `dump` shows it: `step (sites.py:24)`.
type Line = String;

/// `tests/python/sites.py` on two ranks; what it printed. Every stack that is recognised is also asked for, and the two are
/// compared.
fn run_script(library: Library, traced: Option<(&str, &[&str])>) -> String {
    let folder = run::folder("python");
    let mut words = Vec::new();
    if let Some((trace, options)) = traced {
        words.push(build::refrain().to_string_lossy().into_owned());
        words.extend(["run", "--force", "--out", trace].map(str::to_owned));
        words.extend(options.iter().map(|option| option.to_string()));
        words.push("--".into());
    }
    words.extend(run::launcher(library, 2));
    words.extend(
        [build::python(library), build::script("sites.py")].map(|p| p.to_string_lossy().into_owned()),
    );
    let outcome = run::command(&folder, &words, &[("REFRAIN_TEST_STACKS", "on".into())]);
    assert_eq!(outcome.code, 0, "{words:?}: {}", outcome.stderr);
    assert!(!outcome.stderr.contains("tracing stopped"), "{words:?}: {}", outcome.stderr);
    outcome.stdout
}

/// The stacks of the barriers of rank 0, each with its innermost place first.
fn stacks(trace: &str) -> Vec<Vec<Line>> {
    let dumped = run::refrain(&["dump", "--stacks", "--rank", "0", trace]);
    assert_eq!(dumped.code, 0, "{}", dumped.stderr);
    let barriers = dumped.stdout.lines().filter(|line| line.contains("MPI_Barrier"));
    let places = |line: &str| {
        let (_, places) = line.split_once("  at ").unwrap_or_else(|| panic!("no place: {line}"));
        places.split(", in ").map(str::to_owned).collect()
    };
    barriers.map(places).collect()
}

/// The places that comments of the script name: `# at NAME`, or another word.
fn named(word: &str) -> BTreeSet<Line> {
    let text = fs::read_to_string(build::script("sites.py")).unwrap();
    let mark = format!("# {word} ");
    let place = |(line, text): (usize, &str)| {
        let (_, rest) = text.split_once(&mark)?;
        let name = rest.split(',').next()?;
        Some(format!("{name} (sites.py:{})", line + 1))
    };
    text.lines().enumerate().filter_map(place).collect()
}

/// What `exec` ran, at twenty lines: code objects that lie one after the other where the last one lay.
fn made() -> BTreeSet<Line> {
    (1..=20).map(|line| format!("<module> (made.py:{line})")).collect()
}

fn check(library: Library) {
    let has = Command::new(build::python(library)).args(["-c", "import mpi4py"]).output();
    if !has.is_ok_and(|has| has.status.success()) {
        skipped(&format!("mpi4py with {}; `make test` or `make wheels` fetches it", library.suffix()));
        return;
    }
    let folder = run::folder("python-traces");
    let trace = folder.join("trace.rfn").to_string_lossy().into_owned();
    let untraced = run_script(library, None);
    assert!(untraced.contains("[1, 3], 5, 'seen'"), "{untraced}");
    let everywhere: BTreeSet<Line> = named("at").union(&made()).cloned().collect();
    assert_eq!(everywhere.len(), 29);

    assert_eq!(run_script(library, Some((&trace, &["--stacks", "full"]))), untraced);
    let all = stacks(&trace);
    let innermost: BTreeSet<Line> = all.iter().filter_map(|stack| stack.first().cloned()).collect();
    assert_eq!(innermost, everywhere);
    for stack in &all {
        let outermost = stack.last().unwrap();
        assert!(
            outermost.starts_with("<module> (sites.py:") || outermost.starts_with("Thread._bootstrap ("),
            "{stack:?}"
        );
        // The interpreter's own frames are not there.
        assert!(
            stack.iter().all(|place| !place.contains("PyEval") && !place.contains("python3")),
            "{stack:?}"
        );
    }
    let of = |place: &str| {
        let found = all.iter().find(|stack| stack[0].starts_with(place));
        found.unwrap_or_else(|| panic!("no {place}")).clone()
    };
    // Python calls C, and C calls Python: each stands where it was.
    let sorted = of("compare (");
    let c = sorted.iter().position(|place| place.contains("qsort")).expect("the C library's function");
    let python = named("through").into_iter().find(|place| place.starts_with("sort (")).unwrap();
    let outer = sorted.iter().position(|place| *place == python).expect("who called it");
    assert!(0 < c && c < outer && sorted[outer + 1].starts_with("main ("), "{sorted:?}");
    // A generator is called by whoever asks it for the next number; `reduce` is C, without a frame of its own.
    assert!(of("numbers (").iter().any(|place| place.starts_with("main (")));
    assert!(of("add (")[1].starts_with("main ("), "{:?}", of("add ("));
    // A recursion is folded, as everywhere.
    let deep = all.iter().find(|stack| stack[1].starts_with("recursion (")).expect("a recursion");
    assert_eq!(deep.iter().filter(|place| place.starts_with("recursion (")).count(), 2, "{deep:?}");

    assert_eq!(run_script(library, Some((&trace, &["--stacks", "site"]))), untraced);
    let sites = stacks(&trace);
    assert!(sites.iter().all(|stack| stack.len() == 1), "{sites:?}");
    assert_eq!(sites.into_iter().flatten().collect::<BTreeSet<_>>(), everywhere);

    assert_eq!(run_script(library, Some((&trace, &["--fold", "loops"]))), untraced);
    let loops = run::refrain(&["loops", "--all", &trace]).stdout;
    let step = named("at").into_iter().find(|place| place.starts_with("Solver.step (")).unwrap();
    let seven = loops.lines().find(|line| line.contains(&step) && line.contains("MPI_Barrier"));
    assert!(seven.is_some_and(|line| line.contains("7 times")), "{loops}");
    let verified = run::refrain(&["verify", &trace]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
}

/// A script of `tests/python` on one rank, traced with its stacks; the barriers that it has in the trace.
fn barriers(script: &str, arguments: &[String]) -> Option<Vec<Vec<Line>>> {
    let library = Library::OpenMpi;
    let has = Command::new(build::python(library)).args(["-c", "import mpi4py"]).output();
    if !has.is_ok_and(|has| has.status.success()) {
        skipped("mpi4py of Debian");
        return None;
    }
    let folder = run::folder("python-threads");
    let trace = folder.join("trace.rfn").to_string_lossy().into_owned();
    let mut words = vec![build::refrain().to_string_lossy().into_owned()];
    words.extend(["run", "--force", "--stacks", "full", "--out", &trace, "--"].map(str::to_owned));
    words.extend(run::launcher(library, 1));
    words.extend([build::python(library), build::script(script)].map(|p| p.to_string_lossy().into_owned()));
    words.extend(arguments.iter().cloned());
    let outcome = run::command(&folder, &words, &[]);
    assert_eq!(outcome.code, 0, "{words:?}: {}", outcome.stderr);
    assert_eq!(outcome.stdout.trim(), "fine", "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("tracing stopped"), "{}", outcome.stderr);
    Some(stacks(&trace))
}

/// Nobody waits for the interpreter's lock who does not without Refrain.
#[test]
#[ignore = "needs MPI: `make test`"]
fn the_interpreters_lock_is_not_waited_for() {
    let source = build::sources().join("programs/locked.c");
    let library = build::folder_for(Library::OpenMpi).join("locked.so");
    build::make(&library, &[&source], |part| {
        let mut command = Command::new(Library::OpenMpi.compiler(&source));
        command.args(["-shared", "-fPIC", "-O2", "-g", "-Wall", "-Werror", "-pthread", "-o"]);
        command.arg(part).arg(&source);
        vec![command]
    });
    let Some(all) = barriers("locked.py", &[library.to_string_lossy().into_owned()]) else { return };
    assert_eq!(all.len(), 1, "{all:?}");
    // Also without the lock, the places are Python's.
    assert!(all[0][0].contains("locked_barrier"), "{all:?}");
    assert!(all[0].iter().any(|place| place.starts_with("Thread.run (")), "{all:?}");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_second_interpreter_does_no_harm() {
    let Some(all) = barriers("subinterpreter.py", &[]) else { return };
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(all.iter().all(|stack| stack[0].starts_with("<module> (subinterpreter.py:")), "{all:?}");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_interpreter_ends_under_a_thread_that_calls_mpi() {
    let Some(all) = barriers("daemon.py", &[]) else { return };
    assert!(all.len() > 100, "{}", all.len());
    assert_eq!(all[0][0], "<module> (made0.py:1)");
    assert_eq!(all[100][0], "<module> (made100.py:101)");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn sites_with_mpi4py_of_debian() {
    check(Library::OpenMpi);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn sites_with_the_mpich_wheel() {
    check(Library::WheelMpich);
}
