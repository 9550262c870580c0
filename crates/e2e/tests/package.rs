//! The Debian package: built, unpacked somewhere, and used from there. Ignored in a plain `cargo test`: needs the MPI libraries
//! and the built command.

use std::path::{Path, PathBuf};
use std::process::Command;

use refrain_e2e::{Library, Program, build, run, skipped};

fn output(command: &mut Command) -> (bool, String) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (done.status.success(), text)
}

#[track_caller]
fn said(command: &mut Command) -> String {
    let (done, text) = output(command);
    assert!(done, "{command:?}: {text}");
    text
}

/// The package need not be small.
const QUICKLY: [(&str, &str); 2] = [("DPKG_DEB_COMPRESSOR_TYPE", "gzip"), ("DPKG_DEB_COMPRESSOR_LEVEL", "1")];

/// The package of what is built, unpacked.
fn unpacked() -> (PathBuf, PathBuf) {
    let folder = run::folder("package");
    let built = build::refrain();
    let built = built.parent().unwrap();
    let sources = build::sources().join("..").canonicalize().unwrap();
    said(Command::new(sources.join("scripts/deb")).arg(built).env("DEB_OUT", &folder).envs(QUICKLY));
    let mut packages = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let package = packages.find(|path| path.extension().is_some_and(|e| e == "deb")).expect("a package");
    let root = folder.join("root");
    said(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    (package, root)
}

fn field(package: &Path, name: &str) -> String {
    said(Command::new("dpkg-deb").arg("-f").arg(package).arg(name)).trim().to_owned()
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_package_is_whole_and_traces_from_where_it_lies() {
    let (package, root) = unpacked();
    assert!(field(&package, "Depends").contains("libc6 (>= 2."), "{}", field(&package, "Depends"));
    assert_eq!(field(&package, "Recommends"), "mpich | openmpi-bin");
    let doc = root.join("usr/share/doc/refrain");
    for file in ["copyright", "changelog.Debian.gz", "changelog.gz", "README.md"] {
        assert!(doc.join(file).is_file(), "{file}");
    }
    for file in [
        "include/refrain.h",
        "share/man/man1/refrain.1.gz",
        "share/man/man1/refrain-memory-run.1.gz",
        "share/bash-completion/completions/refrain",
        "share/zsh/vendor-completions/_refrain",
        "share/fish/vendor_completions.d/refrain.fish",
        "lib/refrain/librefrain_capture_memory.so",
        "lib/refrain/refrain-replay",
    ] {
        assert!(root.join("usr").join(file).is_file(), "{file}");
    }
    // Stripped: no symbols but those that others look for.
    let symbols = said(Command::new("nm").arg(root.join("usr/lib/refrain/librefrain_capture_mpi.so")));
    assert!(symbols.contains("no symbols"), "{}", &symbols[..symbols.len().min(300)]);

    let refrain = root.join("usr/bin/refrain");
    for library in [Library::Mpich, Library::OpenMpi] {
        let folder = run::folder(&format!("package-{}", library.suffix()));
        let app = Program::unwitnessed("ring.c").build(library);
        let trace = folder.join("t.rfn").to_string_lossy().into_owned();
        let mut words = run::words(&[&refrain.to_string_lossy(), "run", "--out", &trace, "--"]);
        words.extend(run::launcher(library, 2));
        words.push(app.to_string_lossy().into_owned());
        let outcome = run::command(&folder, &words, &[]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("refrain: 2 ranks, "), "{}", outcome.stderr);
        let seen = said(Command::new(&refrain).args(["verify", &trace]));
        assert!(seen.starts_with("yes: 2 ranks"), "{seen}");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn bash_completes_from_the_script() {
    let script = run::folder("completions").join("refrain");
    let refrain = build::refrain();
    std::fs::write(&script, said(Command::new(&refrain).args(["completions", "bash"]))).unwrap();
    let ask = "source \"$0\"; COMP_WORDS=(refrain stats --pl); COMP_CWORD=2; _refrain refrain --pl stats; echo \"${COMPREPLY[@]}\"";
    assert_eq!(said(Command::new("bash").args(["-c", ask]).arg(&script)).trim(), "--plot");
}

/// A replay has the functions of its process as they are: only what is preloaded stands before them.
#[test]
#[ignore = "needs the built command: `make test`"]
fn a_replay_stands_before_no_function() {
    let replay = build::refrain().with_file_name("refrain-replay");
    let symbols = said(Command::new("nm").args(["-D", "--defined-only"]).arg(&replay));
    let defined = |name: &str| symbols.lines().any(|line| line.split_whitespace().last() == Some(name));
    for name in ["malloc", "free", "mmap", "sigaction", "signal", "pthread_create", "cudaMalloc", "dlclose"] {
        assert!(!defined(name), "{name}: {symbols}");
    }
    // What the tracer asks it for.
    assert!(defined("refrain_instead"), "{symbols}");
}

/// What tests ask for is in the library that they run, and not in the one that users build.
#[test]
#[ignore = "needs the built command: `make test`"]
fn switches_of_tests_are_in_builds_for_tests_alone() {
    let has = |library: &Path| {
        let bytes = std::fs::read(library).unwrap();
        bytes.windows(18).any(|bytes| bytes == b"REFRAIN_TEST_PANIC")
    };
    let name = "librefrain_capture_mpi.so";
    assert!(has(&build::refrain().with_file_name(name)));
    let demo = build::sources().join("../target/quick").join(name);
    match demo.exists() {
        true => assert!(!has(&demo), "{}", demo.display()),
        false => skipped("the library of `make demo`: it is not built"),
    }
}
