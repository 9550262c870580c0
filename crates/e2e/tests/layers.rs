//! Programs that meet MPI's layer for Fortran in unusual ways: in libraries of their own, from functions that it runs, and
//! out of it by jumps and exceptions. Ignored in a plain `cargo test`: it needs the MPI libraries and the built command.

use std::process::Command;

use refrain_e2e::run::{self, Outcome};
use refrain_e2e::{Library, Program, build};

const BOTH: [Library; 2] = Library::ALL;

/// A run, traced.
struct Run {
    outcome: Outcome,
    /// The functions that rank 0 called.
    calls: Vec<String>,
    info: String,
}

impl Run {
    fn of(&self, name: &str) -> usize {
        self.calls.iter().filter(|call| *call == name).count()
    }
}

/// Runs the program alone and traced, with these arguments, and holds what it says and how it ends against each other.
fn same(library: Library, source: &'static str, args: &[String], ranks: u32) -> Run {
    let program = Program::unwitnessed(source).build(library);
    let folder = run::folder(source);
    let mut words = run::launcher(library, ranks);
    words.push(program.to_string_lossy().into_owned());
    words.extend_from_slice(args);
    let plain = run::command(&folder, &words, &[]);
    assert_eq!(plain.code, 0, "{library:?}, {args:?}, untraced: {}\n{}", plain.stdout, plain.stderr);
    let trace = folder.join("trace.rfn").to_string_lossy().into_owned();
    let command = build::refrain().to_string_lossy().into_owned();
    let start = [command.as_str(), "run", "--out", &trace, "--force", "--"].map(String::from);
    let outcome = run::command(&folder, &[&start[..], &words].concat(), &[]);
    assert_eq!(outcome.code, 0, "{library:?}, {args:?}: {}\n{}", outcome.stdout, outcome.stderr);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&outcome.stdout), sorted(&plain.stdout), "{library:?}, {args:?}");
    let dump = run::refrain(&["dump", &trace, "--rank", "0"]).stdout;
    let name = |line: &str| line.split_whitespace().nth(2)?.split('(').next().map(String::from);
    let info = run::refrain(&["info", &trace]).stdout;
    Run { outcome, calls: dump.lines().filter_map(name).collect(), info }
}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| arg.to_string()).collect()
}

/// Two libraries that ask Fortran how many ranks there are: with a layer in a file of that name that calls nothing of MPI,
/// and with MPI's.
fn plugins(library: Library, name: &str) -> [String; 2] {
    let folder = build::folder_for(library);
    let source = build::sources().join("programs/layers_plugin.c");
    let built = |name: &str, more: &str| {
        let target = folder.join(name);
        build::make(&target, &[&source], |part| {
            let mut command = Command::new("cc");
            command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(part).arg(&source).arg(more);
            vec![command]
        });
        target.to_string_lossy().into_owned()
    };
    let stub = built(name, "-DSTUB");
    let layer = if library.is_open_mpi() { "-l:libmpi_mpifh.so.40" } else { "-l:libmpichfort.so.12" };
    [built(&format!("with_{name}"), &stub), built("with_layer.so", layer)]
}

/// By its name no layer of MPI's.
const STUB: &str = "libplays_mpi.so";

#[test]
#[ignore = "needs MPI: `make test`"]
fn each_library_calls_the_layer_that_it_sees() {
    for library in BOTH {
        let run = same(library, "layers.c", &[&words(&["plugins"])[..], &plugins(library, STUB)].concat(), 2);
        assert_eq!(run.outcome.stdout, "1 2\n1 2\n", "{library:?}");
        assert_eq!(run.of("MPI_Comm_size"), 1, "{library:?}: {:?}", run.calls);
    }
}

/// What it was called for nobody can tell, but that it was.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_layer_that_calls_nothing_of_c() {
    for library in BOTH {
        let plugins = plugins(library, "libmpifort_alone.so");
        let run = same(library, "layers.c", &[&words(&["plugins"])[..], &plugins].concat(), 2);
        assert_eq!(run.of("MPI_Comm_size"), 1, "{library:?}: {:?}", run.calls);
        let note = "rank 0: MPI's Fortran layer did a call in a way of its own, that call is missing";
        assert!(run.info.contains(note), "{library:?}: {}", run.info);
        assert!(run.info.contains("but those that are missing (see notes)"), "{library:?}: {}", run.info);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_layer_that_is_closed_and_opened_again() {
    for library in BOTH {
        let run = same(library, "layers.c", &[&words(&["reopen"])[..], &plugins(library, STUB)].concat(), 2);
        assert_eq!(run.of("MPI_Comm_size"), 3, "{library:?}: {:?}", run.calls);
    }
}

/// The layer sets attributes without any function of C, and runs a function of the program meanwhile.
#[test]
#[ignore = "needs MPI: `make test`"]
fn functions_that_the_layer_runs_call_mpi_in_c() {
    for library in BOTH {
        let run = same(library, "layers.c", &words(&["callbacks"]), 1);
        assert_eq!(run.of("MPI_Comm_set_attr"), 7, "{library:?}: {:?}", run.calls);
        assert_eq!(run.of("MPI_Comm_size"), 12, "{library:?}: {:?}", run.calls);
        assert!(run.info.contains("every call of every rank,"), "{library:?}: {}", run.info);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn calls_of_the_same_name_after_a_jump_out_of_the_layer() {
    for library in BOTH {
        let run = same(library, "layers.c", &words(&["jump"]), 1);
        assert_eq!(run.of("MPI_Comm_set_attr"), 6, "{library:?}: {:?}", run.calls);
        assert_eq!(run.of("MPI_Barrier"), 1, "{library:?}: {:?}", run.calls);
        assert!(run.info.contains("rank 0: left an MPI call by a jump,"), "{library:?}: {}", run.info);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn exceptions_through_the_layer() {
    for library in BOTH {
        for args in [&["0"][..], &["3"], &["6"], &["8"], &["0", "and on"]] {
            let run = same(library, "layers_throw.cpp", &words(args), 1);
            assert_eq!(run.outcome.stdout, "caught 42\nend\n", "{library:?}, {args:?}");
            assert_eq!(run.of("MPI_Barrier"), args.len() - 1, "{library:?}: {:?}", run.calls);
            let note = "rank 0: left an MPI call by a jump,";
            assert!(run.info.contains(note), "{library:?}, {args:?}: {}", run.info);
        }
    }
}

/// A program may take a name for the promise that there is a layer.
#[test]
#[ignore = "needs MPI: `make test`"]
fn names_that_nothing_defines_are_not_there() {
    for library in BOTH {
        let run = same(library, "layers.c", &words(&["offered"]), 1);
        assert_eq!(run.outcome.stdout, "0 0 0\n1\n", "{library:?}");
    }
}
