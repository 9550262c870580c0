//! What `refrain extrapolate` works out from real runs is what a real run on more ranks records. Ignored in a plain `cargo test`:
//! needs the MPI libraries and the built command.

use std::fs;

use refrain_e2e::run::words;
use refrain_e2e::{Library, Program, run};

const LIBRARIES: [Library; 2] = [Library::Mpich, Library::OpenMpi];

/// Records a program at some numbers of ranks and at one more, which is compared with what follows from the others.
fn check(library: Library, program: Program, args: &[&str], from: &[u32], to: u32) {
    let folder = run::folder("extrapolate");
    fs::copy(program.build(library), folder.join("app")).unwrap();
    for &ranks in from.iter().chain([&to]) {
        run::trace_app(&folder, library, &format!("{ranks}.rfn"), ranks, args, &["--time", "off"]);
    }
    let mut command = words(&["extrapolate"]);
    command.extend(from.iter().map(|ranks| format!("{ranks}.rfn")));
    command.extend(words(&["--ranks", &to.to_string(), "-o", "more.rfn"]));
    let made = run::refrain_in(&[], &folder, &command);
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    let recorded = format!("{to}.rfn");
    // Where buffers lie is a matter of each process.
    let differ = words(&["diff", "more.rfn", &recorded, "--ignore", "pointers"]);
    let compared = run::refrain_in(&[], &folder, &differ);
    assert_eq!(compared.code, 0, "{}{}", compared.stdout, compared.stderr);
    let verified = run::refrain_in(&[], &folder, &words(&["verify", "more.rfn"]));
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn programs_in_c() {
    for library in LIBRARIES {
        check(library, Program::named("ring"), &[], &[2, 4, 6], 9);
        check(library, Program::named("stencil2d"), &["5"], &[4, 9, 16], 25);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_program_in_fortran() {
    for library in LIBRARIES {
        check(library, Program::named("f_steps"), &[], &[2, 3, 4], 6);
    }
}
