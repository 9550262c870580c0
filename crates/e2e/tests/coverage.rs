//! How much of MPI the programs exercise: of the functions that Debian's MPICH exports, those that come back from a
//! trace equal to what the witness saw (`check::seen`). Ignored in a plain `cargo test`: it runs every program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use refrain_e2e::{Library, Program, build, check, compare, run};

/// Passed through and never recorded, so that no trace can show them.
fn is_silent(name: &str) -> bool {
    ["_c2f", "_f2c", "_f082c", "_c2f08", "_f082f", "_f2f08"].iter().any(|end| name.ends_with(end))
}

/// Functions of MPICH that no program's trace has, with the reason.
const NOT_CALLED: [(&str, &str); 1] = [(
    "MPI_Abort",
    "ends the program: `endings` looks at it, and there is no trace of it to hold against the witness",
)];

/// Functions that have a name in Fortran on both libraries and that no program of ours calls by it, with the reason.
const NOT_IN_FORTRAN: [(&str, &str); 15] = [
    ("abort", "ends the program"),
    ("finalized", "called after MPI_Finalize, when the trace is written"),
    ("init", "called by other programs: MPI_Init_thread stands for it here"),
    (
        "f_sync_reg",
        "does nothing, has no function in C, and MPICH's writes to an argument that it does not have",
    ),
    (
        "register_datarep",
        "fails on both libraries with conversions of its own, and on Open MPI without them too",
    ),
    ("comm_join", "needs a socket"),
    ("comm_accept", "needs a second program"),
    ("comm_connect", "needs a second program"),
    ("open_port", "a port's name is the library's own"),
    ("close_port", "as open_port"),
    ("publish_name", "needs a name server"),
    ("lookup_name", "needs a name server"),
    ("unpublish_name", "needs a name server"),
    ("comm_spawn", "starts a second program, which has a trace of its own"),
    ("comm_spawn_multiple", "as comm_spawn"),
];

/// What a library of Fortran's layer offers to programs, as `mpi_NAME` with that end.
fn in_fortran(library: &str, end: &str) -> BTreeSet<String> {
    let path = Path::new("/usr/lib/x86_64-linux-gnu").join(library);
    let names = build::defined(&path);
    let plain = |name: &String| {
        let name = name.strip_prefix("mpi_")?.strip_suffix(end)?;
        let other = ["_", "_fn", "fn_null", "_f08", "_f08ts", "_large"].iter().any(|end| name.ends_with(end));
        (!other && !name.starts_with("sizeof") && !name.starts_with("fortran")).then(|| name.to_owned())
    };
    names.iter().filter_map(plain).collect()
}

/// Of what both libraries offer to Fortran, the program calls all but what is said above.
fn check_fortran(program: &Program, mpich: BTreeSet<String>, openmpi: BTreeSet<String>) {
    let ranks = program.ranks[0];
    let dump = run::traced_with(Library::OpenMpi, program, ranks, &[]).dump();
    let short = |name: String| name.trim_start_matches("MPI_").to_lowercase();
    let called: BTreeSet<String> = compare::functions(&dump).into_iter().map(short).collect();
    let shared: BTreeSet<&String> = mpich.intersection(&openmpi).collect();
    let excused = |name: &str| NOT_IN_FORTRAN.iter().any(|(known, _)| name == *known);
    let missing: Vec<_> = shared.iter().filter(|name| !called.contains(**name) && !excused(name)).collect();
    println!("{}: {} of {} functions that both libraries have", program.name(), called.len(), shared.len());
    assert!(shared.len() > 340, "these cannot be all: {shared:?}");
    assert!(missing.is_empty(), "{} does not call {missing:?}", program.name());
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn fortran() {
    for program in Program::EVERY_FORTRAN {
        if program.name().ends_with("f08") {
            let mut mpich = in_fortran("libmpichfort.so.12", "_f08_");
            mpich.extend(in_fortran("libmpichfort.so.12", "_f08ts_"));
            check_fortran(program, mpich, in_fortran("libmpi_usempif08.so.40", "_f08_"));
        } else {
            check_fortran(
                program,
                in_fortran("libmpichfort.so.12", "_"),
                in_fortran("libmpi_mpifh.so.40", "_"),
            );
        }
    }
}

/// The library that a program runs with, as the dynamic linker finds it.
fn library_of(program: &Path) -> PathBuf {
    let listing = std::process::Command::new("ldd").arg(program).output();
    let listing = listing.unwrap_or_else(|e| build::missing(&format!("ldd: {e}")));
    let text = String::from_utf8_lossy(&listing.stdout).into_owned();
    let line = text.lines().find(|line| line.trim_start().starts_with("libmpi"));
    let path = line.and_then(|line| line.split_whitespace().nth(2));
    path.unwrap_or_else(|| panic!("no MPI library in {text}")).into()
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn coverage() {
    let seen: BTreeSet<String> =
        Program::ALL.iter().flat_map(|program| check::seen(Library::Mpich, program).functions).collect();
    let exported = build::defined(&library_of(&Program::named("ring").build(Library::Mpich)));
    // Those in capitals are variables, MPI_UNWEIGHTED and the like.
    let is_function =
        |name: &str| name.starts_with("MPI_") && name.contains(|c: char| c.is_ascii_lowercase());
    let wanted: BTreeSet<String> =
        exported.into_iter().filter(|f| is_function(f) && !f.starts_with("MPI_T_")).collect();
    let (silent, wanted): (BTreeSet<_>, BTreeSet<_>) = wanted.into_iter().partition(|f| is_silent(f));
    let missing: Vec<&str> = wanted.difference(&seen).map(String::as_str).collect();
    println!(
        "{} of {} functions of MPICH (without MPI_T and {} conversions of handles) come back as the witness saw them",
        wanted.len() - missing.len(),
        wanted.len(),
        silent.len()
    );
    assert!(wanted.len() > 400, "these cannot be all: {wanted:?}");
    assert_eq!(missing, NOT_CALLED.map(|(name, _)| name), "what no program calls, in the order of names");
}
