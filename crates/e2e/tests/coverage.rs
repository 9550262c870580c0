//! How much of MPI the programs exercise: of the functions that Debian's MPICH exports, those that come back from a
//! trace equal to what the witness saw. Ignored in a plain `cargo test`: it runs every program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use refrain_e2e::{Library, Program, build, compare, run};

/// Passed through and never recorded, so that no trace can show them.
fn is_silent(name: &str) -> bool {
    ["_c2f", "_f2c", "_f082c", "_c2f08", "_f082f", "_f2f08"].iter().any(|end| name.ends_with(end))
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

/// The functions of one program's trace, if it equals the witness's log.
fn equal_functions(program: &Program) -> Result<BTreeSet<String>, String> {
    let ranks = program.ranks[program.ranks.len() - 1];
    let traced = run::traced(Library::Mpich, program, ranks);
    let dump = traced.dump();
    compare::compare(&dump, &traced.witness(), program.rules)?;
    Ok(compare::functions(&dump).into_iter().collect())
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn coverage() {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for program in Program::ALL {
        match equal_functions(program) {
            Ok(functions) => seen.extend(functions),
            Err(difference) => wrong.push(format!("{}: {difference}", program.name())),
        }
    }
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
    println!("not yet ({}): {}", missing.len(), missing.join(" "));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(wanted.len() > 400, "these cannot be all: {wanted:?}");
    assert!(missing.len() * 10 < wanted.len(), "fewer than nine of ten");
}
