//! `refrain memory run` on what starts programs, and on a part of a run. Ignored in a plain `cargo test`: needs QEMU, the MPI
//! libraries and the built command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use refrain_e2e::Library;
use refrain_e2e::memory::{built, recorded, stores};
use refrain_e2e::run;

fn info(trace: &Path) -> String {
    let shown = run::refrain(&["info", &trace.to_string_lossy()]);
    assert_eq!(shown.code, 0, "{}: {}", trace.display(), shown.stderr);
    shown.stdout
}

/// The traces of a run in their order, and of which programs they are.
fn programs(folder: &Path) -> Vec<String> {
    let names = (1..).map(|n| if n == 1 { "t.rfn".into() } else { format!("t.{n}.rfn") });
    let there = names.map(|name| folder.join(name)).take_while(|path| path.exists());
    let of = |path: &Path| {
        let info = info(path);
        let came = info.lines().find_map(|line| line.strip_suffix(", which the run came to"));
        came.map_or("first", |line| line.rsplit('/').next().unwrap()).to_owned()
    };
    there.map(|path| of(&path)).collect()
}

#[test]
#[ignore = "needs QEMU: `make test`"]
fn every_program_of_a_script_is_recorded() {
    let folder = run::folder("memory-script");
    built(&folder, "ends.c", "cc", &[]);
    let script = folder.join("script");
    let lines = "#!/bin/sh\n./ends exit\n./nothing\necho $? $0 $1 >&2\nexec env X=1 ./ends exit\n";
    fs::write(&script, lines).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = recorded(&folder, &[], &["./script", "word"]);
    assert_eq!(outcome.code, 5, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("127 ") && outcome.stderr.contains("script word\n"),
        "{}",
        outcome.stderr
    );
    // The one that tries in vain to become `nothing` was only forked.
    let made = programs(&folder);
    let started: Vec<&str> = made.iter().map(String::as_str).filter(|name| *name != "first").collect();
    assert_eq!(started, ["ends", "env", "ends"]);
    assert_eq!(stores(&folder.join("t.2.rfn"), &outcome.stdout), 1000);
    let last = folder.join(format!("t.{}.rfn", made.len()));
    assert_eq!(stores(&last, &outcome.stdout), 1000);
    assert!(info(&folder.join("t.rfn")).contains("/env, which is recorded by itself"));
    assert!(!folder.join("t.rfn.parts").exists());
}

#[test]
#[ignore = "needs QEMU: `make test`"]
fn programs_are_chosen_by_name() {
    let folder = run::folder("memory-only");
    built(&folder, "ends.c", "cc", &[]);
    let command = ["sh", "-c", "env ./ends fork; exec ./ends exit"];
    let outcome = recorded(&folder, &["--only-program", "ends"], &command);
    assert_eq!(outcome.code, 5, "{}", outcome.stderr);
    // The one that forks, its child, and the last; not the shell, nor that of `system`.
    assert_eq!(programs(&folder), ["ends", "first", "ends"]);
    assert_eq!(stores(&folder.join("t.rfn"), &outcome.stdout), 0);
    assert_eq!(stores(&folder.join("t.2.rfn"), &outcome.stdout), 1000);
    assert_eq!(stores(&folder.join("t.3.rfn"), &outcome.stdout), 1000);
    for other in ["t.2.rfn", "t.3.rfn"] {
        fs::remove_file(folder.join(other)).unwrap();
    }
    let outcome = recorded(&folder, &["--no-follow", "--force"], &command);
    assert_eq!(outcome.code, 5, "{}", outcome.stderr);
    assert_eq!(programs(&folder), ["first"]);
    assert!(outcome.stderr.contains("became another one (exec)"), "{}", outcome.stderr);
    let info = info(&folder.join("t.rfn"));
    assert!(
        info.contains("/ends (--no-follow), which is not recorded") && info.contains("partial"),
        "{info}"
    );
}

/// What the ranks of a launcher become is one program of as many ranks.
#[test]
#[ignore = "needs QEMU and MPI: `make test`"]
fn ranks_become_a_program_together() {
    for library in Library::ALL {
        let folder = run::folder("memory-become");
        built(&folder, "ends.c", "cc", &[]);
        let launcher = run::launcher(library, 2);
        let mut words = run::words(&["memory", "run", "--out", "t.rfn", "--"]);
        words.extend(launcher.into_iter().chain(run::words(&["sh", "-c", "exec ./ends exit"])));
        let outcome = run::refrain_in(&[], &folder, library, &words);
        // Launchers tell of an exit code in their own words.
        assert!(outcome.stderr.contains("ends: 2 ranks, 2 threads, "), "{library:?}: {}", outcome.stderr);
        assert_eq!(programs(&folder), ["first", "ends"]);
        let info = info(&folder.join("t.rfn"));
        assert!(info.contains("rank 1 became ") && info.contains("in 2 processes"), "{info}");
        let (all, start) = (refrain_e2e::memory::references(&folder.join("t.2.rfn")), &outcome.stdout);
        let start = refrain_e2e::memory::hexadecimal(start.lines().next().unwrap());
        for rank in 0..2 {
            let own = all[&(rank, 0)].iter().filter(|(r, _)| r.0 == 'S' && r.1.wrapping_sub(start) < 4000);
            assert_eq!(own.count(), 1000);
        }
    }
}

/// Linked without shared libraries, and found by its name alone.
#[test]
#[ignore = "needs QEMU: `make test`"]
fn a_static_program_in_path() {
    let folder = run::folder("memory-static");
    built(&folder, "ends.c", "cc", &["-static"]);
    let words = run::words(&["memory", "run", "--out", "t.rfn", "--", "ends", "exit"]);
    let path = format!("PATH={}:{}", folder.display(), std::env::var("PATH").unwrap());
    let elsewhere = run::folder("memory-elsewhere");
    let outcome = run::refrain_in(&["env", &path], &elsewhere, Library::Mpich, &words);
    assert_eq!(outcome.code, 5, "{}", outcome.stderr);
    assert_eq!(stores(&elsewhere.join("t.rfn"), &outcome.stdout), 1000);
}
