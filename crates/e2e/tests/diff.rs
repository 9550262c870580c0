//! `refrain diff` on real runs: the same program twice, on two libraries, with other arguments, on more ranks. Ignored in a
//! plain `cargo test`: needs the MPI libraries and the built command.

use std::path::{Path, PathBuf};

use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, run};

const LIBRARIES: [Library; 2] = [Library::Mpich, Library::OpenMpi];

/// A trace of a program that is called the same whichever library it is linked with: its name is an argument of `MPI_Init`.
fn traced(library: Library, name: &str, args: &[&str], ranks: u32, options: &[&str]) -> PathBuf {
    traced_program(library, Program::named(name), args, ranks, options)
}

fn traced_program(
    library: Library,
    program: Program,
    args: &[&str],
    ranks: u32,
    options: &[&str],
) -> PathBuf {
    let name = program.name();
    let folder = run::folder(&format!("diff-{name}"));
    std::fs::copy(program.build(library), folder.join("app")).unwrap();
    run::trace_app(&folder, library, "trace.rfn", ranks, args, options);
    folder.join("trace.rfn")
}

fn diff(a: &Path, b: &Path, more: &[&str]) -> run::Outcome {
    let words = [&["diff", a.to_str().unwrap(), b.to_str().unwrap()], more].concat();
    run::refrain(&words)
}

#[track_caller]
fn check_equal(a: &Path, b: &Path, more: &[&str]) {
    let said = diff(a, b, more);
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("equal: "), "{}", said.stdout);
}

/// Programs whose calls do not depend on chance.
const STEADY: [(&str, &[&str], u32); 4] =
    [("ring", &[], 3), ("stencil2d", &["20"], 4), ("collectives", &[], 3), ("types", &[], 2)];

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_same_program_twice_is_equal() {
    for library in LIBRARIES {
        for (name, args, ranks) in STEADY {
            let first = traced(library, name, args, ranks, &[]);
            let again = traced(library, name, args, ranks, &[]);
            check_equal(&first, &again, &["--ignore", "time,pointers"]);
        }
        // How often rank 0 asks in vain is chance. There is one sender, so nothing else is.
        let [first, again] =
            [(), ()].map(|()| traced_program(library, Program::unwitnessed("polling.c"), &[], 2, &[]));
        check_equal(&first, &again, &["--ignore", "pointers,polls"]);
        // By the other folder, with call sites that the first has not.
        let (rules, loops) = (
            traced(library, "stencil2d", &["20"], 4, &[]),
            traced(library, "stencil2d", &["20"], 4, &["--fold", "loops"]),
        );
        check_equal(&rules, &loops, &["--ignore", "pointers"]);
        let said = diff(&rules, &loops, &[]).stdout;
        assert!(said.contains("note: A was recorded with no call sites, B with --stacks full"), "{said}");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_same_program_on_two_libraries_is_equal() {
    for (name, args, ranks) in [("ring", &[][..], 3), ("stencil2d", &["20"], 4), ("collectives", &[], 3)] {
        let [mpich, open_mpi] = LIBRARIES.map(|library| traced(library, name, args, ranks, &[]));
        check_equal(&mpich, &open_mpi, &["--ignore", "pointers"]);
        let said = diff(&mpich, &open_mpi, &["--ignore", "pointers"]).stdout;
        assert!(said.starts_with("note: A ran on MPICH"), "{said}");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn what_differs_is_said() {
    for library in LIBRARIES {
        let four = traced(library, "stencil2d", &["20"], 4, &[]);
        let five = traced(library, "stencil2d", &["20"], 5, &[]);
        let said = diff(&four, &five, &["--ignore", "pointers"]);
        assert_eq!(said.code, 1, "{}", said.stderr);
        assert!(said.stdout.contains("different: 4 ranks and 5 ranks\n"), "{}", said.stdout);
        assert!(said.stdout.lines().count() < 24, "{}", said.stdout);

        // Messages of other sizes: the arguments of the program, then those of the calls.
        let larger = traced(library, "stencil2d", &["20", "9"], 4, &[]);
        let smaller = traced(library, "stencil2d", &["20", "8"], 4, &[]);
        let said = diff(&smaller, &larger, &["--ignore", "pointers", "--json"]);
        assert_eq!(said.code, 1, "{}", said.stderr);
        let document = Json::parse(&said.stdout).unwrap();
        let first = &document.get("first").list()[0];
        assert_eq!(first.get("function").get("a").text(), Some("MPI_Init"));
        let change = &first.get("changes").list()[0];
        assert_eq!(change.get("what").text(), Some("argv[2]"), "{}", said.stdout);
        let functions = document.get("functions").list();
        let of = |name: &str| functions.iter().find(|row| row.get("function").text() == Some(name)).unwrap();
        assert_eq!(of("MPI_Isend").get("differ").int(), of("MPI_Isend").get("a").int(), "{}", said.stdout);
        assert_eq!(of("MPI_Waitall").get("differ").int(), Some(0), "{}", said.stdout);

        // More steps: other calls from some number on.
        let longer = traced(library, "stencil2d", &["21"], 4, &[]);
        let said = diff(&four, &longer, &["--ignore", "pointers"]);
        assert_eq!(said.code, 1, "{}", said.stderr);
        assert!(said.stdout.contains("calls a rank in A"), "{}", said.stdout);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn times_are_compared_only_where_they_are() {
    let timed = traced(Library::Mpich, "ring", &[], 2, &[]);
    let untimed = traced(Library::Mpich, "ring", &[], 2, &["--time", "off"]);
    check_equal(&timed, &untimed, &["--ignore", "pointers"]);
    let said = diff(&timed, &untimed, &["--time"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("has no times to compare"), "{}", said.stderr);
    let said = diff(&timed, &timed, &["--time"]);
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("no change beyond noise"), "{}", said.stdout);
}
