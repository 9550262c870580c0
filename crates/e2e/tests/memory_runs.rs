//! `refrain memory run` on what starts programs, and on a part of a run. Ignored in a plain `cargo test`: needs QEMU, the MPI
//! libraries and the built command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use refrain_e2e::Library;
use refrain_e2e::memory::{built, hexadecimal, recorded, references, stores};
use refrain_e2e::run::{self, LONG};

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
        words.extend(launcher.into_iter().chain(run::words(&["sh", "-c", "exec ./ends well"])));
        let outcome = run::refrain_in(&[], &folder, &words);
        assert_eq!(outcome.code, 0, "{library:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("ends: 2 ranks, 2 threads, "), "{library:?}: {}", outcome.stderr);
        assert_eq!(programs(&folder), ["first", "ends"]);
        let info = info(&folder.join("t.rfn"));
        assert!(info.contains("rank 1 became ") && info.contains("in 2 processes"), "{info}");
        let (all, start) = (references(&folder.join("t.2.rfn")), &outcome.stdout);
        let start = hexadecimal(start.lines().next().unwrap());
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
    let outcome = run::refrain_in(&["env", &path], &elsewhere, &words);
    assert_eq!(outcome.code, 5, "{}", outcome.stderr);
    assert_eq!(stores(&elsewhere.join("t.rfn"), &outcome.stdout), 1000);
}

/// How many stores there are into each of the arrays whose places a program has printed; they are those of a loop over them.
fn filled(trace: &Path, stdout: &str) -> Vec<usize> {
    let found = references(trace);
    let found: Vec<_> = found.get(&(0, 0)).into_iter().flatten().map(|(reference, _)| *reference).collect();
    let count = |start: u64| {
        let own = found.iter().filter(|(_, address, _)| address.wrapping_sub(start) < 4000);
        let count = own.clone().enumerate().map(|(n, reference)| {
            assert_eq!(*reference, ('S', start + 4 * (n as u64 % 1000), 4), "store {n}");
        });
        count.count()
    };
    stdout.lines().map(|line| count(hexadecimal(line))).collect()
}

#[test]
#[ignore = "needs QEMU: `make test`"]
fn marks_switch_recording() {
    let folder = run::folder("memory-marks");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/refrain.h");
    let header = source.to_string_lossy();
    let mut object = Command::new("cc");
    object.args(["-c", "-x", "c", &header, "-o", "refrain.o"]).current_dir(&folder);
    assert!(object.status().unwrap().success());
    let object = folder.join("refrain.o");
    let object = object.to_string_lossy();
    for (source, compiler, options) in [
        ("regions.c", "cc", &["-Wall", "-Werror"][..]),
        ("regions.c", "c++", &["-x", "c++", "-Wall", "-Werror", "-s"]),
        ("regions.f90", "gfortran", &[&*object]),
    ] {
        let program = built(&folder, source, compiler, options);
        let program = program.to_string_lossy();
        let outcome = recorded(&folder, &["--force"], &[&program]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert_eq!(filled(&folder.join("t.rfn"), &outcome.stdout), [1000, 0, 5000], "{compiler}");
        assert!(info(&folder.join("t.rfn")).contains("only a part of the run is recorded: 6 regions"));
        let outcome = recorded(&folder, &["--force", "--off"], &[&program]);
        assert_eq!(filled(&folder.join("t.rfn"), &outcome.stdout), [0, 0, 5000], "{compiler}");
        assert!(info(&folder.join("t.rfn")).contains("only a part of the run is recorded: 5 regions"));
    }
    // Functions, again and again.
    let program = built(&folder, "regions.c", "cc", &[]);
    let region = ["--from", "refrain_memory_off", "--to", "refrain_memory_on", "--force"];
    let outcome = recorded(&folder, &region, &[&program.to_string_lossy()]);
    // The function is entered before its mark is reached, which says the opposite.
    assert_eq!(filled(&folder.join("t.rfn"), &outcome.stdout), [0, 0, 5000]);
}

#[test]
#[ignore = "needs QEMU: `make test`"]
fn recording_is_switched_from_outside() {
    let folder = run::folder("memory-switched");
    let program = built(&folder, "regions.c", "cc", &[]);
    let program = program.to_string_lossy().into_owned();
    let refused = run::refrain(&["memory", "off", &folder.join("t.rfn").to_string_lossy()]);
    assert!(refused.code == 2 && refused.stderr.contains("no run of"), "{}", refused.stderr);
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| recorded(&folder, &["--off"], &[&program, "steps"]));
        for (step, state) in [(1, "on"), (2, "off")] {
            let began = Instant::now();
            while !folder.join(format!("ready.{step}")).exists() {
                assert!(began.elapsed() < LONG, "step {step} never came");
                std::thread::sleep(Duration::from_millis(20));
            }
            let switched = run::refrain(&["memory", state, &folder.join("t.rfn").to_string_lossy()]);
            assert_eq!(switched.code, 0, "{}", switched.stderr);
            assert!(switched.stderr.contains(&format!("{state} for 1 process")), "{}", switched.stderr);
            fs::write(folder.join(format!("go.{step}")), "").unwrap();
        }
        running.join().unwrap()
    });
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(filled(&folder.join("t.rfn"), &outcome.stdout), [0, 1000, 0]);
    assert!(info(&folder.join("t.rfn")).contains("switched on or off 2 times"));
}

/// The addresses of fetches, in order.
fn fetches(trace: &Path) -> Vec<u64> {
    let all = references(trace).remove(&(0, 0)).unwrap();
    all.into_iter().map(|(reference, _)| reference).filter(|r| r.0 == 'F').map(|r| r.1).collect()
}

/// `bare.S` says what each instruction is and does.
#[test]
#[ignore = "needs QEMU: `make test`"]
fn instruction_fetches_are_what_they_should_be() {
    let folder = run::folder("memory-fetches");
    let program = built(&folder, "bare.S", "cc", &["-nostdlib", "-static"]);
    let outcome = recorded(&folder, &["--fetches"], &[&program.to_string_lossy()]);
    assert_eq!(outcome.code, 7, "{}", outcome.stderr);
    let found = references(&folder.join("t.rfn")).remove(&(0, 0)).unwrap();
    let found: Vec<String> = found.iter().map(|((what, _, size), _)| format!("{what}{size}")).collect();
    let around = "F7 L4 S4 F2 F2 ";
    let strings = "L1 S1 ".repeat(5);
    let expected = format!(
        "F2 F5 {around}{around}{around}F5 S8 F1 S8 F1 L8 F1 L8 F7 F7 F5 F2 {strings}F2 F5 F2 F2 F7 L16 F7 U4 F5 F5 F2"
    );
    assert_eq!(found.join(" "), expected);
    // Each follows the one before, or is where that one goes to.
    let start = fetches(&folder.join("t.rfn"))[0];
    let offsets: Vec<u64> = fetches(&folder.join("t.rfn")).iter().map(|at| at - start).collect();
    assert_eq!(offsets[..9], [0, 2, 7, 14, 16, 7, 14, 16, 7]);
    assert_eq!(offsets[11..16], [18, 79, 80, 81, 23]);
    // As other formats have them, and in caches.
    let din = run::refrain(&[
        "convert",
        &folder.join("t.rfn").to_string_lossy(),
        "-",
        "--to",
        "din",
        "--drop",
        "sizes,pcs",
    ]);
    assert_eq!(din.code, 0, "{}", din.stderr);
    assert_eq!(din.stdout.lines().filter(|line| line.starts_with("2 ")).count(), offsets.len());
    let simulated = run::refrain(&[
        "simulate",
        &folder.join("t.rfn").to_string_lossy(),
        "--l1i",
        "1K,1,64",
        "--l1d",
        "1K,1,64",
    ]);
    assert_eq!(simulated.code, 0, "{}", simulated.stderr);
    let fetched = simulated.stdout.lines().find(|line| line.starts_with("l1i fetch")).unwrap();
    assert_eq!(fetched.split_whitespace().skip(2).take(2).collect::<Vec<_>>(), ["28", "2"], "{fetched}");
}

/// The same instructions as QEMU writes down itself, one by one.
#[test]
#[ignore = "needs QEMU: `make test`"]
fn instruction_fetches_are_those_of_the_emulators_log() {
    let folder = run::folder("memory-log");
    let program = built(&folder, "ends.c", "cc", &[]).canonicalize().unwrap();
    let program = program.to_string_lossy();
    let outcome = recorded(&folder, &["--fetches"], &["env", "-i", &program, "exit"]);
    assert_eq!(outcome.code, 5, "{}", outcome.stderr);
    let mut found = fetches(&folder.join("t.rfn"));
    let log = folder.join("log");
    let mut emulator = Command::new("qemu-x86_64");
    emulator.env_clear().args(["-0", &program, "-singlestep", "-d", "exec,nochain", "-D"]).arg(&log);
    emulator.args([&program, "exit"]).stdout(fs::File::create(folder.join("out")).unwrap());
    assert_eq!(emulator.status().unwrap().code(), Some(5));
    let log = fs::read_to_string(log).unwrap();
    let address = |line: &str| hexadecimal(line.split('/').nth(1).unwrap());
    let mut logged: Vec<u64> = log.lines().filter(|line| line.starts_with("Trace")).map(address).collect();
    // The log has each turn of an instruction that is repeated.
    found.dedup();
    logged.dedup();
    assert!(found.len() > 10_000);
    let differ = found.iter().zip(&logged).position(|(a, b)| a != b);
    assert_eq!((differ, found.len()), (None, logged.len()));
}

/// A trace of the parts that a run has left.
fn recovered(parts: &Path, trace: &Path) -> String {
    let words = ["recover", &parts.to_string_lossy(), "--out", &trace.to_string_lossy()];
    let outcome = run::refrain(&words);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome.stderr
}

/// A disk that becomes full while references are recorded: the program goes on, and what was written until then is readable. No
/// room is left for the trace itself, so it is made elsewhere.
#[test]
#[ignore = "needs QEMU: `make test`"]
fn a_disk_that_becomes_full() {
    let folder = run::folder("memory-disk");
    let program = built(&folder, "ends.c", "cc", &[]);
    let disk = folder.join("disk");
    fs::create_dir(&disk).unwrap();
    // The file system is gone when its name space is. Parts are read within. The disk is filled when the first stores are saved.
    let script = "mount -t tmpfs -o size=2m tmpfs disk || exit 99
        \"$@\" & run=$!
        while kill -0 $run; do
            [ -e filled ] && [ -n \"$(find disk/t.rfn.parts -name '*.thread' -newer filled)\" ] && break
            sleep 0.1
        done
        touch saved; wait $run; code=$?; cp -a disk/t.rfn.parts kept; exit $code";
    let before = ["unshare", "-m", "sh", "-c", script, "sh"];
    let command = ["memory", "run", "--out", "disk/t.rfn", "--", &program.to_string_lossy(), "random"];
    let outcome = run::refrain_in(&before, &folder, &run::words(&command));
    if outcome.code == 99 || outcome.stderr.contains("unshare") {
        return refrain_e2e::skipped("a full disk: no file system can be mounted here");
    }
    assert_eq!(outcome.code, 5, "{}", outcome.stderr);
    assert_eq!(
        outcome.lines("refrain: ").iter().filter(|line| line.contains("the program goes on")).count(),
        1
    );
    assert!(outcome.stderr.contains("refrain recover"), "{}", outcome.stderr);
    let trace = folder.join("t.rfn");
    let said = recovered(&folder.join("kept"), &trace);
    assert!(said.contains("partial"), "{said}");
    assert_eq!(stores(&trace, &outcome.stdout), 1000);
    let info = info(&trace);
    assert!(info.contains("thread 0 stops after ") && info.contains("the rest is lost"), "{info}");
    assert!(info.contains("partial"), "{info}");
}

/// Both the program and the command that would have made a trace are killed: the parts are there.
#[test]
#[ignore = "needs QEMU: `make test`"]
fn parts_of_a_killed_run_become_a_trace() {
    let folder = run::folder("memory-recover");
    let program = built(&folder, "ends.c", "cc", &[]);
    let parts = folder.join("t.rfn.parts");
    let script = "echo $$ > pid; exec \"$@\"";
    let command =
        ["memory", "run", "--limit", "200000", "--out", "t.rfn", "--", &program.to_string_lossy(), "forever"];
    let outcome = std::thread::scope(|scope| {
        let words = run::words(&command);
        let folder = &folder;
        let before = ["sh", "-c", script, "sh"];
        let running = scope.spawn(move || run::refrain_in(&before, folder, &words));
        let began = Instant::now();
        let written = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
        // A part that is younger than the first stores.
        let process = loop {
            let filled = written(&folder.join("filled"));
            let young = fs::read_dir(&parts).into_iter().flatten().flatten().find_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let pid = name.strip_suffix(".thread")?.split('-').nth(1)?.parse::<u32>().ok()?;
                (written(&entry.path())? > filled?).then_some(pid)
            });
            if let Some(process) = young {
                break process;
            }
            assert!(began.elapsed() < LONG, "nothing was written");
            std::thread::sleep(Duration::from_millis(20));
        };
        let own: u32 = fs::read_to_string(folder.join("pid")).unwrap().trim().parse().unwrap();
        run::kill("-KILL", &[(0, own)]);
        run::kill("-KILL", &[(0, process)]);
        running.join().unwrap()
    });
    assert!(!folder.join("t.rfn").exists());
    let said = recovered(&parts, &folder.join("t.rfn"));
    assert!(said.contains("partial") && said.contains("the parts are kept"), "{said}");
    assert!(stores(&folder.join("t.rfn"), &outcome.stdout) > 0);
    assert!(info(&folder.join("t.rfn")).contains("did not come to its end"));
    // Another run of that name does not take them for its own.
    let again = recorded(&folder, &["--force"], &[&program.to_string_lossy(), "exit"]);
    assert_eq!(again.code, 5, "{}", again.stderr);
}

/// Addresses are not drawn: two runs of a program are the same, reference by reference, and so are ranks that do the same.
#[test]
#[ignore = "needs QEMU: `make test`"]
fn two_runs_are_the_same() {
    let folder = run::folder("memory-twice");
    let program = built(&folder, "ends.c", "cc", &[]);
    let of = || {
        let outcome = recorded(&folder, &["--force"], &["env", "-i", &program.to_string_lossy(), "exit"]);
        assert_eq!(outcome.code, 5, "{}", outcome.stderr);
        references(&folder.join("t.rfn"))
    };
    assert!(of() == of());
}
