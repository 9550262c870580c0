//! The library in real processes: nothing a program can see may change.

use crate::common;

use common::{compile, installed, library, said, scratch, sorted, text};
use std::fs;
use std::process::Command;

fn plain_and_preloaded(program: &str, words: &[&str], variables: &[(&str, &str)]) {
    let run = |preload: bool| {
        let mut command = Command::new(program);
        command.args(words).envs(variables.iter().copied());
        if preload {
            command.env("LD_PRELOAD", library());
        }
        let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
        (text(&output.stdout), text(&output.stderr), output.status)
    };
    let plain = run(false);
    assert!(plain.2.success(), "{program}: {plain:?}");
    assert_eq!(plain, run(true), "{program}");
}

#[test]
fn ordinary_programs_do_not_notice() {
    for variables in [
        &[][..],
        &[("REFRAIN_OUT", "/nowhere/x.rfn")],
        &[("REFRAIN_OUT", "/nowhere/x.rfn"), ("REFRAIN_TIME", "?")],
    ] {
        plain_and_preloaded("/bin/ls", &["-l", "/usr"], variables);
        plain_and_preloaded(
            "bash",
            &["-c", "for i in 1 2 3; do echo $(ls / | wc -l); done; (echo $i)"],
            variables,
        );
        if Command::new("python3").arg("-V").output().is_ok() {
            let script = "import ctypes, threading; print(sum(len(str(i)) for i in range(20000)))";
            plain_and_preloaded("python3", &["-c", script], variables);
        }
    }
}

#[test]
fn every_way_to_allocate_works() {
    let heap = compile("cc", "heap.c", &["-pthread", "-fno-builtin"], "");
    let objects = compile("c++", "objects.cpp", &["-std=c++17"], "");
    for program in [heap, objects] {
        plain_and_preloaded(program.to_str().unwrap(), &[], &[("REFRAIN_OUT", "/nowhere/x.rfn")]);
    }
}

/// Here allocations are followed, which takes an MPI library in the process.
#[test]
fn every_way_to_allocate_works_while_it_is_followed() {
    for mpi in installed() {
        let heap = compile(
            &format!("mpicc.{}", mpi.0),
            "heap.c",
            &["-pthread", "-fno-builtin", "-Wl,--no-as-needed"],
            mpi.0,
        );
        let objects = compile(&format!("mpicxx.{}", mpi.0), "objects.cpp", &["-Wl,--no-as-needed"], mpi.0);
        for program in [heap, objects] {
            plain_and_preloaded(program.to_str().unwrap(), &[], &[("REFRAIN_OUT", "/nowhere/x.rfn")]);
            plain_and_preloaded(
                program.to_str().unwrap(),
                &[],
                &[("REFRAIN_OUT", "/nowhere/x.rfn"), ("REFRAIN_POINTERS", "off")],
            );
        }
    }
}

/// The same of traced programs is in `crates/e2e`.
#[test]
fn mpi_programs_that_nobody_traces_do_not_notice() {
    for mpi in installed() {
        for program in ["ring.c", "throwing.cpp", "old.f90", "f08.f90"] {
            let compiled = mpi.compile(program);
            let plain = mpi.run(3, &compiled, &[], &[]);
            assert!(!plain.stdout.is_empty());
            let preloaded = mpi.run(3, &compiled, &[], &[("LD_PRELOAD", &library())]);
            assert_eq!(sorted(&plain.stdout), sorted(&preloaded.stdout), "{mpi:?} {program}");
            assert_eq!(plain.status, preloaded.status, "{mpi:?} {program}");
            assert_eq!(said(&preloaded), [""; 0], "{mpi:?} {program}");
        }
    }
}

#[test]
fn a_fault_of_ours_ends_tracing_and_nothing_else() {
    let out = scratch().join("fault");
    for mpi in installed() {
        let ring = mpi.compile("ring.c");
        let plain = mpi.run(1, &ring, &[], &[]);
        for at in ["1", "31"] {
            let variables = [
                ("LD_PRELOAD", &*library()),
                ("REFRAIN_OUT", out.to_str().unwrap()),
                ("REFRAIN_FORCE", "on"),
                ("REFRAIN_TEST_PANIC", at),
            ];
            // What a run leaves that was not traced to its end keeps its name.
            let _ = fs::remove_dir_all(refrain_tracefile::part::directory(&out));
            let traced = mpi.run(1, &ring, &[], &variables);
            assert_eq!(text(&plain.stdout), text(&traced.stdout), "{mpi:?} at {at}");
            assert_eq!(plain.status, traced.status, "{mpi:?} at {at}");
            let said = said(&traced);
            assert_eq!(said.len(), 1, "{mpi:?} at {at}: {said:?}");
            let ending = format!(": a test asked for a fault at call {at}; the program is not affected");
            assert!(
                said[0].starts_with("refrain: tracing stopped") && said[0].ends_with(&ending),
                "{said:?}"
            );
        }
    }
}

#[test]
fn a_variable_we_do_not_understand_is_named() {
    for mpi in installed() {
        let ring = mpi.compile("ring.c");
        let variables =
            [("LD_PRELOAD", &*library()), ("REFRAIN_OUT", "/nowhere/x.rfn"), ("REFRAIN_SPLIT", "maybe")];
        let traced = mpi.run(1, &ring, &[], &variables);
        let line = "refrain: not tracing: REFRAIN_SPLIT is \"maybe\", which is none of: on, off, 1, 0";
        assert_eq!(said(&traced), [line], "{mpi:?}");
        assert!(text(&traced.stdout).contains("rank 0 of 1"));
    }
}

/// The dynamic linker answers as without us, for functions the library has and for those it lacks.
#[test]
fn only_functions_of_the_library_are_offered() {
    let names = [
        "MPI_Send",
        "PMPI_Send",
        "MPI_Isend_c",
        "PMPI_Isend_c",
        "MPI_Abi_get_version",
        "MPI_Session_init",
        "MPI_Pcontrol",
    ];
    for mpi in installed() {
        let symbols = mpi.compile("symbols.c");
        let plain = mpi.run(1, &symbols, &names, &[]);
        let traced =
            mpi.run(1, &symbols, &names, &[("LD_PRELOAD", &library()), ("REFRAIN_OUT", "/nowhere/x.rfn")]);
        assert_eq!(text(&plain.stdout), text(&traced.stdout), "{mpi:?}");
        assert!(text(&traced.stdout).contains("MPI_Send yes") && text(&traced.stdout).contains(" no"));
    }
    let script =
        "import ctypes; print(hasattr(ctypes.CDLL(None), 'MPI_Send'), hasattr(ctypes.CDLL(None), 'malloc'))";
    if Command::new("python3").arg("-V").output().is_ok() {
        plain_and_preloaded("python3", &["-c", script], &[]);
    }
}

/// As `variadic_arguments_arrive`, where the library comes with something that the program opens. It comes by a path and
/// by a name that only the program's own list of folders leads to.
#[test]
fn a_library_that_comes_late_is_followed() {
    let folder = scratch().join("late");
    std::fs::create_dir_all(&folder).unwrap();
    let mpi = folder.join("libmpi.so.99");
    let built = compile("cc", "standin.c", &["-shared", "-fPIC", "-Wl,-soname,libmpi.so.99"], "");
    std::fs::copy(&built, &mpi).unwrap();
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    let plugin = folder.join("libplugin.so");
    let built = compile("cc", "plugin.c", &["-shared", "-fPIC", mpi.to_str().unwrap(), &rpath], "");
    std::fs::copy(&built, &plugin).unwrap();
    let anywhere = compile("cc", "late.c", &["-ldl"], "anywhere");
    let beside = compile("cc", "late.c", &["-ldl", &rpath], "beside");
    for (program, opened) in [(&anywhere, plugin.to_str().unwrap()), (&beside, "libplugin.so")] {
        for when in ["now", "lazy"] {
            plain_and_preloaded(program.to_str().unwrap(), &[opened, when], &[]);
            let run = |preload: &str| {
                let mut command = Command::new(program);
                command.args([opened, when]).env("LD_PRELOAD", preload);
                command.env("REFRAIN_OUT", "/nowhere/x.rfn").output().unwrap()
            };
            let (plain, preloaded) = (run(""), run(&library()));
            assert_eq!(text(&plain.stdout), text(&preloaded.stdout), "{opened} {when}");
            assert_eq!((plain.status.code(), preloaded.status.code()), (Some(0), Some(0)), "{preloaded:?}");
            // It was observed: the stand-in is no whole MPI library, so that tracing stops and says so. Not where the
            // program's own folders lead to it, for there we must not come between the program and the linker.
            let lines = if opened.contains('/') { 1 } else { 0 };
            assert_eq!(said(&preloaded).len(), lines, "{opened} {when}: {preloaded:?}");
        }
    }
}

/// `MPI_Pcontrol` gets what the program passed, whatever its type, observed or not.
#[test]
fn variadic_arguments_arrive() {
    let folder = scratch().join("standin");
    std::fs::create_dir_all(&folder).unwrap();
    let built = compile("cc", "standin.c", &["-shared", "-fPIC", "-Wl,-soname,libmpi.so.99"], "");
    std::fs::copy(&built, folder.join("libmpi.so.99")).unwrap();
    let path = folder.join("libmpi.so.99");
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    let program = compile("cc", "control.c", &[path.to_str().unwrap(), &rpath], "");
    plain_and_preloaded(program.to_str().unwrap(), &[], &[]);
    // The stand-in is no whole MPI library: tracing stops and says so, in the middle of the first call.
    let run = |preload: &str| {
        let mut command = Command::new(&program);
        command.env("LD_PRELOAD", preload).env("REFRAIN_OUT", "/nowhere/x.rfn").output().unwrap()
    };
    let (plain, preloaded) = (run(""), run(&library()));
    assert_eq!((plain.stdout, plain.status), (preloaded.stdout.clone(), preloaded.status));
    assert_eq!(said(&preloaded).len(), 1, "{preloaded:?}");
}
