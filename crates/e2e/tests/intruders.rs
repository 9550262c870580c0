//! Nobody else gets in: other users in a shared directory, other runs and other programs with the same name, on both MPI
//! libraries. Ignored in a plain `cargo test`, because it needs the MPI libraries and the built command; attacks by another
//! user need root, which can be one.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use refrain_e2e::machine::Room;
use refrain_e2e::run::{LONG, Outcome, Special, Started, Traced};
use refrain_e2e::{Library, Program, build, run, skipped};

const RANKS: u32 = 2;
/// The attacker, and a victim that is not root.
const NOBODY: &str = "65534";
const DAEMON: &str = "1";

fn endings(args: &'static [&'static str]) -> Program {
    Program { source: "endings.c", args, ..Program::named("ring") }
}

/// A directory in which everybody may write, like `/tmp`, and which everybody can get to.
struct Shared(PathBuf);

impl Shared {
    fn new() -> Shared {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("refrain-intruders-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o1777)).unwrap();
        Shared(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file of the victim's, and a way to see that it is as it was.
    fn precious(&self) -> PathBuf {
        let directory = self.path("home");
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        fs::write(directory.join("precious"), "years of work").unwrap();
        directory.join("precious")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn is_as_it_was(precious: &Path) {
    assert_eq!(fs::read_to_string(precious).unwrap(), "years of work");
    assert_eq!(fs::read_dir(precious.parent().unwrap()).unwrap().count(), 1);
}

/// Does this as another user. `false`, and why, where that cannot be.
fn as_other(user: &str, script: &str) -> bool {
    let ids = [format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()];
    match Command::new("setpriv").args(ids).args(["sh", "-c", script]).output() {
        Ok(done) if done.status.success() => true,
        Ok(done) => {
            skipped(&format!("another user: {}", String::from_utf8_lossy(&done.stderr).trim()));
            false
        }
        Err(error) => {
            skipped(&format!("another user: setpriv: {error}"));
            false
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn traced(library: Library, trace: &Path, inside: bool, before: &[&str]) -> Traced {
    let special = Special {
        trace: Some(trace.to_owned()),
        inside,
        careful: true,
        unwitnessed: true,
        before,
        environment: &[("REFRAIN_TEST_TAIL", "4096")],
        ..Special::default()
    };
    run::traced_special(library, &endings(&["well", "400"]), RANKS, &special)
}

fn verified(trace: &Path) -> String {
    let verified = run::refrain(&["verify", &text(trace)]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let info = run::refrain(&["info", &text(trace)]);
    assert_eq!(info.code, 0, "{}", info.stderr);
    info.stdout
}

/// `run` refuses before the program starts; inside the launcher the program runs, nothing is kept, and the trace is there.
fn parts_are_refused(library: Library, shared: &Shared, why: &str) {
    let trace = shared.path("t.rfn");
    let outside = traced(library, &trace, false, &[]).outcome;
    assert!(outside.code == 2 && outside.stderr.contains(why), "{}", outside.stderr);
    assert!(outside.stdout.is_empty() && !trace.exists(), "{}", outside.stdout);
    let plain = run::untraced(library, &endings(&["well", "400"]), RANKS);
    let inside = traced(library, &trace, true, &[]).outcome;
    assert_eq!((inside.code, &inside.stdout), (plain.code, &plain.stdout), "{}", inside.stderr);
    assert!(inside.stderr.contains("would not survive a crash"), "{}", inside.stderr);
    assert!(verified(&trace).contains(", complete"));
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn another_user_makes_the_directory_first() {
    for library in Library::ALL {
        let shared = Shared::new();
        let parts = shared.path("t.rfn.parts");
        if !as_other(NOBODY, &format!("mkdir -m 777 '{}'", text(&parts))) {
            return;
        }
        parts_are_refused(library, &shared, "belongs to another user");
        assert_eq!(fs::read_dir(&parts).unwrap().count(), 0);
    }
}

/// Tells an attacker to end by a file, also where the test fails.
struct Over(PathBuf);

impl Drop for Over {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "");
    }
}

/// Links of all the names that come next, made as soon as a name is known.
#[test]
#[ignore = "needs MPI: `make test`"]
fn another_user_plants_links() {
    for library in Library::ALL {
        let shared = Shared::new();
        let precious = shared.precious();
        let (parts, trace) = (text(&shared.path("t.rfn.parts")), text(&shared.path("t.rfn")));
        if !as_other(NOBODY, &format!("mkdir -m 777 '{parts}'")) {
            return;
        }
        let plant = format!(
            "until [ -e '{trace}' ] || [ -e '{trace}.over' ]; do for p in '{parts}'/*.part; do for n in 2 3 4 5 6 7; do \
             ln -s '{}' \"$p.$n\" 2>/dev/null; done; done; done; true",
            text(&precious)
        );
        std::thread::scope(|scope| {
            let _over = Over(shared.path("t.rfn.over"));
            scope.spawn(|| as_other(NOBODY, &plant));
            let inside = traced(library, &shared.path("t.rfn"), true, &[]);
            assert_eq!(inside.outcome.code, 0, "{}", inside.outcome.stderr);
        });
        is_as_it_was(&precious);
        assert!(verified(&shared.path("t.rfn")).contains(", complete"));
    }
}

/// A pipe has no end to read to.
#[test]
#[ignore = "needs MPI: `make test`"]
fn another_user_plants_pipes() {
    for library in Library::ALL {
        let shared = Shared::new();
        let parts = shared.path("t.rfn.parts");
        for mode in ["777", "755"] {
            let make =
                "mkdir -m MODE 'PARTS' && cd 'PARTS' && mkfifo -m 666 0-a-1-0.part 0-a-1-0.part.1 claim";
            if !as_other(NOBODY, &make.replace("MODE", mode).replace("PARTS", &text(&parts))) {
                return;
            }
            let recovered = run::refrain(&["recover", &text(&parts), "--out", &text(&shared.path("r.rfn"))]);
            assert_eq!(recovered.code, 2, "{}", recovered.stderr);
            let doctor = run::refrain(&["doctor", "--out", &text(&shared.path("t.rfn")), "/bin/true"]);
            assert!(doctor.code == 1 && doctor.stdout.contains("is not used"), "{}", doctor.stdout);
            parts_are_refused(library, &shared, "is not used");
            fs::remove_dir_all(&parts).unwrap();
            fs::remove_file(shared.path("t.rfn")).unwrap();
        }
        // The directory itself.
        if !as_other(NOBODY, &format!("mkfifo -m 666 '{}'", text(&parts))) {
            return;
        }
        assert_eq!(run::refrain(&["recover", &text(&parts)]).code, 2);
        parts_are_refused(library, &shared, "is not used");
    }
}

/// The directory is a link to one of the victim's own: nothing comes into it, and nothing goes, with or without `--force`.
#[test]
#[ignore = "needs MPI: `make test`"]
fn another_user_links_the_directory_to_mine() {
    for library in Library::ALL {
        let shared = Shared::new();
        let precious = shared.precious();
        let parts = shared.path("t.rfn.parts");
        let home = text(precious.parent().unwrap());
        if !as_other(NOBODY, &format!("ln -s '{home}' '{}'", text(&parts))) {
            return;
        }
        parts_are_refused(library, &shared, "is not used");
        let trace = text(&shared.path("t.rfn"));
        let forced = run::refrain(&["run", "--force", "--out", &trace, "--", "/bin/true"]);
        assert!(forced.code == 2 && forced.stderr.contains("is not used"), "{}", forced.stderr);
        is_as_it_was(&precious);
    }
}

/// What is written at the end, and by other commands: a link or a pipe of another user is not used, forced or not.
#[test]
#[ignore = "needs root and the built command: `make test`"]
fn another_user_plants_the_output() {
    let shared = Shared::new();
    let precious = shared.precious();
    let input = shared.path("in.din");
    fs::write(&input, "0 10\n").unwrap();
    let (input, precious_text) = (text(&input), text(&precious));
    let commands: [&[&str]; 3] = [
        &["run", "--force", "--out", "OUT", "--", "/bin/true"],
        &["convert", "--force", "--to", "raw", &input, "OUT"],
        &["import", "--force", &input, "OUT"],
    ];
    for plant in ["ln -s PRECIOUS OUT", "ln -s PRECIOUS.new OUT", "ln -s /dev/null OUT", "mkfifo -m 666 OUT"]
    {
        let out = text(&shared.path("out.rfn"));
        let script = plant.replace("PRECIOUS", &precious_text).replace("OUT", &out);
        if !as_other(NOBODY, &script) {
            return;
        }
        for command in commands {
            let words: Vec<&str> =
                command.iter().map(|word| if *word == "OUT" { &out } else { *word }).collect();
            let refused = run::refrain(&words);
            assert_eq!(refused.code, 2, "{plant} {command:?}: {}", refused.stderr);
            is_as_it_was(&precious);
        }
        fs::remove_file(&out).unwrap();
    }
    // One's own link is followed.
    let out = shared.path("out.rfn");
    symlink("elsewhere.raw", &out).unwrap();
    let done = run::refrain(&["convert", "--force", "--to", "raw", &input, &text(&out)]);
    assert!(done.code == 0 && shared.path("elsewhere.raw").exists(), "{}", done.stderr);
}

/// Parts are for their owner alone whatever the umask; the finished trace is as the umask says.
#[test]
#[ignore = "needs MPI: `make test`"]
fn modes() {
    for library in Library::ALL {
        for (umask, finished) in [("0", 0o666), ("027", 0o640), ("0277", 0o400)] {
            let script = format!("umask {umask}; exec \"$0\" \"$@\"");
            let special = Special {
                before: &["sh", "-c", &script],
                unwitnessed: true,
                environment: &[("REFRAIN_TEST_TAIL", "4096")],
                ..Special::default()
            };
            let mut seen = 0;
            let traced = run::traced_while(library, &endings(&["well", "4000"]), RANKS, &special, |parts| {
                let over = parts.with_extension("");
                run::until(|| run::processes(parts).len() == RANKS as usize || over.exists());
                // Files come and go: those that can be looked at are what they should be.
                let about = |path: &Path| path.symlink_metadata().ok().filter(|about| !about.is_symlink());
                while !over.exists() {
                    // New ones may have even less for a moment.
                    if let Some(about) = about(parts) {
                        assert_eq!(about.mode() & 0o777 & !0o700, 0, "umask {umask}");
                    }
                    let files = fs::read_dir(parts).into_iter().flatten().flatten();
                    for about in files.filter_map(|file| about(&file.path())) {
                        assert_eq!(about.mode() & 0o777 & !0o600, 0, "umask {umask}");
                        seen += u32::from(about.mode() & 0o777 == 0o600);
                    }
                    if run::processes(parts)
                        .iter()
                        .all(|(_, process)| !Path::new(&format!("/proc/{process}")).exists())
                    {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
            assert!(seen > 0, "{}", traced.outcome.stderr);
            let mode = traced.trace.metadata().unwrap().mode() & 0o777;
            assert_eq!(mode, finished, "umask {umask}");
            assert!(verified(&traced.trace).contains(", complete"));
            assert!(!traced.parts().exists());
        }
    }
}

/// A user like any other, in the directory of others.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_victim_that_is_not_root() {
    for library in Library::ALL {
        let shared = Shared::new();
        let home = shared.path("daemon");
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&home, Permissions::from_mode(0o777)).unwrap();
        // Where that user can get to them.
        let program = shared.path("program");
        fs::copy(endings(&[]).build(library), &program).unwrap();
        for name in ["refrain", "librefrain_capture_mpi.so"] {
            fs::copy(build::refrain().with_file_name(name), shared.path(name)).unwrap();
        }
        let trace = shared.path("t.rfn");
        let run = |extra: &str| {
            let mpiexec = run::launcher(library, RANKS).join(" ");
            format!(
                "cd '{0}/daemon' && export HOME=$PWD TMPDIR=$PWD && '{0}/refrain' run {extra} -o '{1}' -- {mpiexec} \
                 '{2}' well 20 2>err",
                text(&shared.0),
                text(&trace),
                text(&program)
            )
        };
        if !as_other(DAEMON, &run("")) {
            return;
        }
        assert!(verified(&trace).contains(", complete"));
        assert_eq!((trace.metadata().unwrap().uid(), shared.path("t.rfn.parts").exists()), (1, false));
        // Root's own file in its place is not replaced, whatever is forced.
        fs::remove_file(&trace).unwrap();
        fs::write(&trace, "root's").unwrap();
        as_other(DAEMON, &run("--force"));
        assert_eq!(fs::read_to_string(&trace).unwrap(), "root's");
    }
}

/// `refrain run` with the words of a shell's command.
fn shell(folder: &Path, options: &[&str], script: &str) -> Outcome {
    let mut words = vec![text(&build::refrain()), "run".into()];
    words.extend(options.iter().map(|option| option.to_string()));
    words.extend(["--out", "x.rfn", "--", "sh", "-c", script].map(str::to_owned));
    run::command(folder, &words, &[])
}

fn ring(library: Library, ranks: u32) -> String {
    let mut words = run::launcher(library, ranks);
    words.push(text(&Program::named("ring").build(library)));
    words.join(" ")
}

/// What `info` says of the number of ranks.
fn ranks(info: &str) -> Option<u32> {
    info.lines().find_map(|line| line.strip_prefix("ranks")?.trim().parse().ok())
}

/// Which of the traces are there, and of how many ranks each is.
fn traces(folder: &Path) -> Vec<(String, Option<u32>)> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.contains(".rfn")).collect();
    names.sort();
    let of = |name: String| {
        let info = verified(&folder.join(&name));
        assert!(info.contains(", complete"), "{info}");
        (name, ranks(&info))
    };
    names.into_iter().map(of).collect()
}

#[track_caller]
fn both_are_there(folder: &Path, outcome: &Outcome, first: Option<u32>) {
    let found = traces(folder);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x.2.rfn", "x.rfn"], "{}", outcome.stderr);
    let of = (found[1].1, found[0].1);
    match first {
        Some(first) => assert_eq!(of, (Some(first), Some(5 - first)), "{}", outcome.stderr),
        None => {
            assert!([(Some(2), Some(3)), (Some(3), Some(2))].contains(&of), "{found:?}\n{}", outcome.stderr)
        }
    }
}

/// One after the other, as a script runs them: also with `--force`, which is for what was there before.
#[test]
#[ignore = "needs MPI: `make test`"]
fn two_programs_one_after_the_other() {
    for library in Library::ALL {
        for round in 0..5 {
            let folder = run::folder("two");
            let options: &[&str] = if round % 2 == 1 { &["--force"] } else { &[] };
            if round % 2 == 1 {
                fs::write(folder.join("x.rfn"), "from before").unwrap();
            }
            let script = format!("{} && {}", ring(library, 2), ring(library, 3));
            let outcome = shell(&folder, options, &script);
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            both_are_there(&folder, &outcome, Some(2));
            assert_eq!(outcome.lines("refrain: ").len(), 3, "{}", outcome.stderr);
            let said =
                outcome.stderr.contains("is for another program of this run; the trace of this one goes to");
            assert!(said && outcome.stderr.contains("-> x.rfn") && outcome.stderr.contains("-> x.2.rfn"));
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn two_programs_at_the_same_time() {
    for library in Library::ALL {
        for _ in 0..2 {
            let folder = run::folder("two");
            let script = format!("{} & {}; code=$?; wait; exit $code", ring(library, 2), ring(library, 3));
            let outcome = shell(&folder, &[], &script);
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            both_are_there(&folder, &outcome, None);
            assert!(outcome.stderr.contains("-> x.rfn") && outcome.stderr.contains("-> x.2.rfn"));
        }
    }
}

/// The first program crashes; what it did is not the second one's, and the other way round.
#[test]
#[ignore = "needs MPI: `make test`"]
fn the_first_of_two_programs_crashes() {
    for library in Library::ALL {
        let folder = run::folder("two");
        let program = text(&endings(&[]).build(library));
        let crash = format!("{} {program} raise 50 9", run::launcher(library, 2).join(" "));
        let outcome = shell(&folder, &[], &format!("{crash}; {}", ring(library, 3)));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let first = verified(&folder.join("x.rfn"));
        assert!(first.contains("partial") && ranks(&first) == Some(2), "{first}\n{}", outcome.stderr);
        let second = verified(&folder.join("x.2.rfn"));
        assert!(second.contains(", complete") && ranks(&second) == Some(3), "{second}\n{}", outcome.stderr);
        assert!(!folder.join("x.rfn.parts").exists() && !folder.join("x.2.rfn.parts").exists());
    }
}

/// A program without a launcher that becomes another one.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_program_that_becomes_another() {
    let folder = run::folder("becomes");
    let program = text(&Program::named("ring").build(Library::Mpich));
    let outcome = shell(&folder, &[], &format!("{program}; exec {program}"));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(traces(&folder).len(), 2, "{}", outcome.stderr);
}

fn start(folder: &Path, name: &str, words: &[&str]) -> Started {
    let limited =
        ["timeout", "-k", "60", &LONG.as_secs().to_string(), &text(&build::refrain())].map(String::from);
    run::start(folder, name, &[&limited, &run::words(words)[..]].concat())
}

/// Two runs that are given the same name: the second is told so and has another, forced or not.
#[test]
#[ignore = "needs MPI: `make test`"]
fn two_runs_at_the_same_time() {
    for library in Library::ALL {
        for round in 0..5 {
            let folder = run::folder("two");
            let _room = Room::for_ranks(2 + 3);
            let wait =
                format!("touch started; until [ -e go ]; do sleep 0.05; done; exec {}", ring(library, 2));
            let mut first = start(&folder, "first", &["run", "-o", "x.rfn", "--", "sh", "-c", &wait]);
            assert!(run::until(|| folder.join("started").exists()));
            let options: &[&str] = if round % 2 == 1 { &["--force"] } else { &[] };
            let second = shell(&folder, options, &format!("exec {}", ring(library, 3)));
            assert_eq!(second.code, 0, "{}", second.stderr);
            assert!(second.stderr.contains("x.rfn; this one writes"), "{}", second.stderr);
            assert!(second.stderr.contains("-> x.2.rfn"), "{}", second.stderr);
            fs::write(folder.join("go"), "").unwrap();
            let status = first.process.wait().unwrap();
            let said = fs::read_to_string(folder.join("first.err")).unwrap();
            assert!(status.success() && said.contains("2 ranks") && said.contains("-> x.rfn"), "{said}");
            both_are_there(&folder, &second, Some(2));
        }
    }
}

/// The same with `refrain run` inside the launcher, where the ranks have to find out by themselves.
#[test]
#[ignore = "needs MPI: `make test`"]
fn two_runs_at_the_same_time_inside_the_launcher() {
    for library in Library::ALL {
        let folder = run::folder("two");
        let program = text(&endings(&[]).build(library));
        let inside = |ranks: u32, how: &str| {
            let launcher = run::launcher(library, ranks).join(" ");
            let refrain = text(&build::refrain());
            format!("{launcher} {refrain} run -o x.rfn -- {program} {how}")
        };
        // The first is at work until it is told, when the second has ended.
        let script = format!(
            "{} & first=$!; until [ \"$(ls x.rfn.parts/*-0.part | wc -l)\" -ge 2 ]; do sleep 0.05; done; {}; code=$?; \
             kill -TERM $first; wait; exit $code",
            inside(2, "spin 1"),
            inside(3, "well 20")
        );
        let words = ["sh", "-c", &script].map(str::to_owned);
        let outcome = run::command(&folder, &words, &[]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("is for another run (process"), "{}", outcome.stderr);
        let second = verified(&folder.join("x.2.rfn"));
        assert!(second.contains(", complete") && ranks(&second) == Some(3), "{second}");
        let recovered = run::refrain(&["recover", &text(&folder.join("x.rfn.parts"))]);
        assert_eq!(recovered.code, 0, "{}", recovered.stderr);
        assert_eq!(ranks(&verified(&folder.join("x.rfn"))), Some(2));
    }
}

/// Processes that do not outlive the test, also where it fails.
struct Killed(Vec<(u32, u32)>);

impl Drop for Killed {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            run::kill("-KILL", &self.0);
        }
    }
}

/// A run that was killed blocks nobody: what it left is cleared with leave.
#[test]
#[ignore = "needs MPI: `make test`"]
fn what_a_killed_run_left() {
    for library in Library::ALL {
        let folder = run::folder("killed");
        let _room = Room::for_ranks(2 + 3);
        let program = text(&endings(&[]).build(library));
        let spin = format!("{} {program} spin 1", run::launcher(library, 2).join(" "));
        let script = format!("echo $PPID >process; exec {spin}");
        let mut killed = start(&folder, "killed", &["run", "-o", "x.rfn", "--", "sh", "-c", &script]);
        let parts = folder.join("x.rfn.parts");
        let mut ranks_left = Killed(Vec::new());
        let both = run::until(|| {
            ranks_left.0 = run::processes(&parts);
            ranks_left.0.len() == 2
        });
        let process: u32 = fs::read_to_string(folder.join("process")).unwrap().trim().parse().unwrap();
        run::kill("-KILL", &[(0, process)]);
        let _ = killed.process.wait();
        assert!(both, "{}", fs::read_to_string(folder.join("killed.err")).unwrap());
        let left = ranks_left.0.clone();
        // Its ranks still run: their place is not taken, whatever is forced.
        let beside = shell(&folder, &["--force"], &format!("exec {}", ring(library, 3)));
        assert!(beside.stderr.contains("-> x.2.rfn"), "{}", beside.stderr);
        let recovered = run::refrain(&["recover", &text(&parts), "--out", &text(&folder.join("y.rfn"))]);
        assert!(recovered.stderr.contains("still run"), "{}", recovered.stderr);
        assert!(!recovered.stderr.contains("remove it"), "{}", recovered.stderr);
        run::kill("-KILL", &left);
        let gone = |process: u32| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            stat.rsplit(')').next().unwrap_or("").trim_start().chars().next().is_none_or(|s| "ZX".contains(s))
        };
        assert!(run::until(|| left.iter().all(|(_, process)| gone(*process))));
        // Their numbers may be others' by now.
        ranks_left.0.clear();
        let refused = shell(&folder, &[], &format!("exec {}", ring(library, 2)));
        assert!(refused.code == 2 && refused.stderr.contains("refrain recover"), "{}", refused.stderr);
        let forced = shell(&folder, &["--force"], &format!("exec {}", ring(library, 2)));
        assert_eq!(forced.code, 0, "{}", forced.stderr);
        assert_eq!(ranks(&verified(&folder.join("x.rfn"))), Some(2));
        assert!(!parts.exists());
    }
}

/// While a run is at work its trace is its own to write, and its parts are not to be removed.
#[test]
#[ignore = "needs MPI: `make test`"]
fn recovering_a_run_that_is_at_work() {
    for library in Library::ALL {
        let special = Special { before: &run::NOTED, unwitnessed: true, ..Special::default() };
        let traced = run::traced_while(library, &endings(&["spin", "1"]), RANKS, &special, |parts| {
            run::until(|| run::processes(parts).len() == RANKS as usize);
            let directory = text(parts);
            let refused = run::refrain(&["recover", &directory]);
            let meanwhile = text(&parts.with_file_name("meanwhile.rfn"));
            let recovered = run::refrain(&["recover", &directory, "--out", &meanwhile]);
            run::tell("-TERM", parts);
            assert!(refused.code == 2 && refused.stderr.contains("is at work"), "{}", refused.stderr);
            assert_eq!(recovered.code, 0, "{}", recovered.stderr);
            assert!(recovered.stderr.contains("still run"), "{}", recovered.stderr);
            assert!(!recovered.stderr.contains("remove it"), "{}", recovered.stderr);
            assert!(verified(Path::new(&meanwhile)).contains("was still running"));
        });
        assert!(verified(&traced.trace).contains("partial"), "{}", traced.outcome.stderr);
        assert!(!traced.parts().exists(), "{}", traced.outcome.stderr);
    }
}

/// Ranks on a machine that cannot be seen from here: what they keep stays.
#[test]
#[ignore = "needs MPI: `make test`"]
fn parts_of_ranks_elsewhere_stay() {
    let works = Command::new("unshare").args(["-u", "hostname", "elsewhere"]).output();
    if !works.is_ok_and(|done| done.status.success()) {
        return skipped("another machine's name: unshare -u");
    }
    for library in Library::ALL {
        let folder = run::folder("elsewhere");
        let program = text(&endings(&[]).build(library));
        let crash = format!("{} {program} raise 50 9", run::launcher(library, 2).join(" "));
        let outcome = shell(&folder, &[], &format!("unshare -u sh -c 'hostname elsewhere; exec {crash}'"));
        assert!(verified(&folder.join("x.rfn")).contains("partial"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("nobody can tell from here"), "{}", outcome.stderr);
        let parts = folder.join("x.rfn.parts");
        assert_eq!(run::processes(&parts).len(), 2, "{}", outcome.stderr);
        let recovered = run::refrain(&["recover", &text(&parts), "--force"]);
        assert!(recovered.code == 0 && recovered.stderr.contains("keep"), "{}", recovered.stderr);
        assert!(!recovered.stderr.contains("remove it"), "{}", recovered.stderr);
    }
}

/// A file that comes while the run is at work is not spoken of as its trace.
#[test]
#[ignore = "needs the built command: `make test`"]
fn a_file_of_another_is_not_the_trace() {
    for options in [&[][..], &["--force"]] {
        let folder = run::folder("meanwhile");
        let outcome = shell(&folder, options, "echo anything >x.rfn");
        assert!(outcome.stderr.contains("no trace was written to x.rfn"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("came meanwhile"), "{}", outcome.stderr);
        assert_eq!(fs::read_to_string(folder.join("x.rfn")).unwrap(), "anything\n");
        assert!(!folder.join("x.rfn.parts").exists());
    }
}

/// The name of the second program is in somebody's way: it has the next one, and the first keeps its trace.
#[test]
#[ignore = "needs MPI: `make test`"]
fn the_second_name_cannot_be_used() {
    for library in Library::ALL {
        let folder = run::folder("unusable");
        fs::write(folder.join("x.rfn"), "from before").unwrap();
        fs::write(folder.join("x.2.rfn.parts"), "no directory").unwrap();
        let outcome = shell(&folder, &["--force"], &format!("{} && {}", ring(library, 2), ring(library, 3)));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert_eq!(ranks(&verified(&folder.join("x.rfn"))), Some(2), "{}", outcome.stderr);
        assert_eq!(ranks(&verified(&folder.join("x.3.rfn"))), Some(3), "{}", outcome.stderr);
    }
}
