//! The command as a user meets it: exit codes, refusals, what the program is given.

use crate::{common, made};

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use refrain_tracefile::{Meta, Trace};

use common::{Done, Scratch};

fn small_trace() -> Vec<u8> {
    refrain_tracefile::write(&Trace {
        meta: Meta { complete: true, library: "none".into(), ..Meta::default() },
        ..Trace::default()
    })
}

#[test]
fn the_programs_exit_code_is_passed_on() {
    let place = Scratch::new("exit");
    let run = |words: &[&str]| place.refrain(&[&["run", "--out", "x.rfn", "--"], words].concat());
    run(&["true"]).check(0, "no trace was written to x.rfn").check(0, "made no MPI call");
    run(&["/bin/false"]).check(1, "no trace was written").check(1, "the program failed");
    run(&["sh", "-c", "exit 3"]).check(3, "");
    run(&["sh", "-c", "exit 255"]).check(255, "");
    run(&["sh", "-c", "kill -9 $$"]).check(137, "");
    run(&["sh", "-c", "kill -TERM $$"]).check(143, "");
    run(&["./no-such-program"]).check(2, "./no-such-program could not be started");
    let plain = place.file("plain.txt", "text");
    run(&[plain.to_str().unwrap()]).check(2, "is it executable?");
}

/// A trace of which numbers are in chunks.
fn chunked_trace() -> (Vec<u8>, usize) {
    use refrain_tracefile::chunks::{Key, Settings, Writer};
    let mut writer = Writer::new(Vec::new(), Settings { chunk: 500, ..Settings::default() });
    let stream = writer.stream(Key { member: 0, lane: 1 }, refrain_fold::pack::Kind::TIME);
    let times: Vec<i64> = (0..3000).map(|i: i64| i * 5000 + i * i % 97).collect();
    writer.push(stream, &times).unwrap();
    let chunks = writer.finish().unwrap();
    let mut file = Vec::new();
    refrain_tracefile::append(&small_trace(), std::io::Cursor::new(&chunks), &mut file).unwrap();
    (file, chunks.len())
}

#[test]
fn numbers_in_chunks_are_counted_and_checked() {
    let place = Scratch::new("chunks");
    let (file, length) = chunked_trace();
    place.file("good.rfn", &file);
    let info = place.refrain("info good.rfn");
    let shown = format!("chunked {},{:03}", length / 1000, length % 1000);
    assert!(info.check(0, "").out.contains(&shown), "{}", info.out);
    place.refrain("verify good.rfn").check(0, "");
    let mut bad = file.clone();
    let at = file.len() - length / 2;
    bad[at] ^= 1;
    place.file("bad.rfn", &bad);
    let verify = place.refrain("verify bad.rfn");
    assert!(verify.check(1, "").out.contains("does not match its checksum"), "{}", verify.out);
    // What is not in chunks is read all the same.
    place.refrain("dump bad.rfn").check(0, "");
    place.file("cut.rfn", &file[..at]);
    let verify = place.refrain("verify cut.rfn");
    assert!(verify.check(1, "").out.contains("end without their footer"), "{}", verify.out);
    place.refrain("dump cut.rfn").check(0, "the file is cut short");
}

#[test]
fn the_closing_line() {
    let place = Scratch::new("closing");
    place.file("ready.rfn", small_trace());
    // As a traced program writes its trace, and writes down that it did.
    let noted =
        "ln -s '1 a' \"$REFRAIN_OUT.parts/job.1\"; ln -s 'whole 1:2:3:4' \"$REFRAIN_OUT.parts/done.1\"";
    let copy = &format!("cp ready.rfn \"$REFRAIN_OUT\"; {noted}");
    let size = small_trace().len();
    place
        .refrain(&["run", "--out", "new.rfn", "--", "sh", "-c", copy])
        .check(0, &format!("refrain: 0 ranks, 0 calls, {size} bytes -> new.rfn"));
    let quiet = place.refrain(&["run", "--quiet", "--out", "q.rfn", "--", "sh", "-c", copy]);
    assert!(!quiet.check(0, "").err.contains("-> q.rfn"));
    // The program's exit code stands also when there is a trace, and when there is rubbish.
    place
        .refrain(&["run", "--out", "a.rfn", "--", "sh", "-c", &format!("{copy}; exit 5")])
        .check(5, "-> a.rfn");
    place
        .refrain(&[
            "run",
            "--out",
            "b.rfn",
            "--",
            "sh",
            "-c",
            &format!("echo rubbish > \"$REFRAIN_OUT\"; {noted}"),
        ])
        .check(0, "cannot be read");
    // What nobody wrote down is another's.
    place
        .refrain(&["run", "--out", "c.rfn", "--", "sh", "-c", "cp ready.rfn \"$REFRAIN_OUT\""])
        .check(0, "no trace was written to c.rfn; the file that is there came meanwhile");
}

#[test]
fn nothing_is_overwritten_or_started_without_leave() {
    let place = Scratch::new("overwrite");
    place.file("app.rfn", "old");
    place.script("app", "touch started");
    let refused = place.refrain(&["run", "--", "./app"]);
    refused.check(2, "the trace cannot be written to app.rfn: it exists already").check(2, "--force");
    assert!(!place.path("started").exists());
    symlink("nowhere", place.path("link.rfn")).unwrap();
    place.refrain(&["run", "--out", "link.rfn", "--", "./app"]).check(2, "exists already");
    place.refrain(&["run", "--out", "no/dir.rfn", "--", "./app"]).check(2, "there is no directory");
    place.refrain(&["run", "--out", ".", "--", "./app"]).check(2, "it is a directory");
    place.refrain(&["run", "--ouut", "x.rfn", "./app"]).check(2, "unexpected argument '--ouut'");
    assert!(!place.path("started").exists());

    place.refrain(&["run", "--force", "--", "./app"]).check(0, "the file that is there is from before");
    assert!(place.path("started").exists());
    assert_eq!(std::fs::read(place.path("app.rfn")).unwrap(), b"old");
    let mut by_variable = place.command(&["run", "--", "./app"]);
    Done::of(by_variable.env("REFRAIN_FORCE", "1").output().unwrap()).check(0, "from before");
}

#[test]
fn what_the_program_is_given() {
    let place = Scratch::new("given");
    let mut command = place.command(&["run", "--out", "x.rfn", "--time", "off", "--force", "--", "env"]);
    let done = Done::of(command.env("LD_PRELOAD", "/other.so").env("REFRAIN_SPLIT", "off").output().unwrap());
    let library = place.path("library.so").canonicalize().unwrap();
    for line in [
        format!("LD_PRELOAD=/other.so:{}", library.display()),
        format!("REFRAIN_OUT={}", place.path("x.rfn").display()),
        "REFRAIN_TIME=off".into(),
        "REFRAIN_SPLIT=off".into(),
        "REFRAIN_POINTERS=on".into(),
        "REFRAIN_FORCE=1".into(),
        "REFRAIN_COMMAND=env".into(),
    ] {
        assert!(done.out.lines().any(|l| l == line), "{line} in {}", done.out);
    }
    assert!(!done.out.contains("REFRAIN_SUMMARY"), "{}", done.out);
}

#[test]
fn unknown_values_stop_before_the_program_starts() {
    let place = Scratch::new("unknown");
    place.script("app", "touch started");
    for (name, value, known) in [
        ("REFRAIN_TIME", "all", "mean, mean=signature, histogram"),
        ("REFRAIN_POINTERS", "1", "on, off"),
        ("REFRAIN_FORCE", "perhaps", "on, off"),
    ] {
        let mut command = place.command(&["run", "--", "./app"]);
        let done = Done::of(command.env(name, value).output().unwrap());
        done.check(2, name).check(2, known);
    }
    let mut command = place.command(&["run", "--", "./app"]);
    Done::of(command.env("REFRAIN_LIBRARY", "/no/library.so").output().unwrap()).check(2, "/no/library.so");
    assert!(!place.path("started").exists());
}

#[test]
fn inside_a_launcher_it_becomes_the_program() {
    let place = Scratch::new("inside");
    for variable in ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"] {
        let mut command =
            place.command(&["run", "--out", "x.rfn", "--", "sh", "-c", "echo $REFRAIN_SUMMARY $$; exit 4"]);
        let child = command.env(variable, "1").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = child.id();
        let done = Done::of(child.wait_with_output().unwrap());
        assert_eq!(done.check(4, "").out, format!("1 {id}\n"), "{variable}");
        assert!(!done.err.contains("no trace"), "{}", done.err);
    }
    // A batch script has a rank of its own and is still outside; so is a launcher named on the command line.
    place.script("mpiexec", "echo \"$REFRAIN_SUMMARY.\"");
    let mut batch = place.command(&["run", "--out", "x.rfn", "--", "sh", "-c", "echo \"$REFRAIN_SUMMARY.\""]);
    assert_eq!(Done::of(batch.env("SLURM_PROCID", "0").output().unwrap()).check(0, "no trace").out, ".\n");
    let mut nested = place.command(&["run", "--out", "x.rfn", "--", "./mpiexec", "./app"]);
    assert_eq!(Done::of(nested.env("PMIX_RANK", "0").output().unwrap()).check(0, "no trace").out, ".\n");
    let mut step = place.command(&["run", "--out", "x.rfn", "--", "sh", "-c", "echo \"$REFRAIN_SUMMARY.\""]);
    let step = step.env("SLURM_PROCID", "0").env("SLURM_STEP_ID", "0").output().unwrap();
    assert_eq!(Done::of(step).check(0, "").out, "1.\n");
}

#[test]
fn open_mpi_is_told_which_variables_to_pass_on() {
    let place = Scratch::new("openmpi");
    let echo = "echo : \"$@\" : $OMPI_MCA_mca_base_env_list";
    place.script("orterun", echo);
    place.script("hydra", echo);
    std::fs::create_dir(place.path("a")).unwrap();
    std::fs::create_dir(place.path("b")).unwrap();
    symlink("../orterun", place.path("a/mpiexec")).unwrap();
    symlink("../hydra", place.path("b/mpiexec")).unwrap();
    // Version 5 brings a launcher that starts prterun.
    place.script("mpirun", "echo : \"$@\" : # and then exec prterun");
    let words = |launcher: &str, more: &[&str]| {
        let command = [&["run", "--out", "x.rfn", "--", launcher], more, &["-n", "2", "./app"]].concat();
        place.refrain(&command).out
    };
    let names = [
        "LD_PRELOAD",
        "REFRAIN_OUT",
        "REFRAIN_POINTERS",
        "REFRAIN_TIME",
        "REFRAIN_SPLIT",
        "REFRAIN_FOLD",
        "REFRAIN_SAFE",
        "REFRAIN_STACKS",
        "REFRAIN_RECURSION",
        "ASAN_OPTIONS",
        "REFRAIN_COMMAND",
        "REFRAIN_RUN",
    ];
    let exported = names.map(|name| format!("-x {name}")).join(" ");
    assert_eq!(words("a/mpiexec", &[]), format!(": {exported} -n 2 ./app :\n"));
    assert_eq!(words("a/mpiexec", &["-x", "A"]), format!(": {exported} -x A -n 2 ./app :\n"));
    assert_eq!(words("./mpirun", &[]), format!(": {exported} -n 2 ./app :\n"));
    assert_eq!(words("b/mpiexec", &[]), ": -n 2 ./app :\n");
}

#[test]
fn a_signal_for_refrain_reaches_the_program() {
    let place = Scratch::new("signal");
    let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let mut command = place.command(&["run", "--out", "x.rfn", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "ready\n");
    // The shell's own: not every machine has a program of that name.
    let killed = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

fn readers(file: &Path) -> Vec<Vec<String>> {
    let file = file.to_str().unwrap();
    ["info", "dump", "stats", "verify"].iter().map(|c| vec![c.to_string(), file.to_string()]).collect()
}

#[test]
fn files_that_cannot_be_read() {
    let place = Scratch::new("unreadable");
    let good = small_trace();
    for (name, bytes, why) in [
        ("empty.rfn", &b""[..], "empty"),
        ("short.rfn", &good[..6], "truncated"),
        ("cut.rfn", &good[..good.len() - 1], "truncated"),
        ("foreign.rfn", &b"#!/bin/sh\nexit 0\n"[..], "not a Refrain file"),
    ] {
        for args in readers(&place.file(name, bytes)) {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            place.refrain(&args).check(2, why).check(2, name);
        }
    }
    for args in readers(&place.path("missing.rfn")) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        place.refrain(&args).check(2, "missing.rfn cannot be read");
    }
    for args in readers(&place.0) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        place.refrain(&args).check(2, "cannot be read");
    }
}

#[test]
fn a_flipped_byte_is_a_no() {
    let place = Scratch::new("flipped");
    let good = small_trace();
    place.file("good.rfn", &good);
    let yes = place.refrain(&["verify", "good.rfn"]);
    assert!(yes.check(0, "").out.starts_with("yes: "), "{yes:?}");
    assert_eq!(place.refrain(&["verify", "--quiet", "good.rfn"]).check(0, "").out, "");
    for at in 0..good.len() {
        let mut flipped = good.clone();
        flipped[at] ^= 0x04;
        place.file("bad.rfn", &flipped);
        let no = place.refrain(&["verify", "bad.rfn"]);
        assert_eq!(no.code, Some(1), "byte {at}: {no:?}");
        assert!(
            no.out.starts_with("no: ") && no.out.contains("section") && no.out.contains("offset"),
            "{no:?}"
        );
    }
    place.refrain(&["info", "bad.rfn"]).check(2, "bad.rfn: ");
}

#[test]
fn two_traces_are_equal_or_not_or_cannot_be_compared() {
    let place = Scratch::new("two");
    place.file("a.rfn", small_trace());
    let mut other = Trace { meta: Meta { ranks: 2, ..Meta::default() }, ..Trace::default() };
    other.bundle.world = 2;
    place.file("b.rfn", refrain_tracefile::write(&other));
    place.file("bad.rfn", "#!/bin/sh\n");
    let yes = place.refrain(&["diff", "a.rfn", "a.rfn"]);
    assert_eq!(yes.check(0, "").out, "equal: 0 ranks, 0 calls (not compared: time)\n");
    let no = place.refrain(&["diff", "a.rfn", "b.rfn", "--ignore", "time,sites"]);
    assert!(no.check(1, "").out.contains("different: 0 ranks and 2 ranks\n"), "{no:?}");
    place.refrain(&["diff", "a.rfn", "bad.rfn"]).check(2, "bad.rfn: ").check(2, "not a Refrain file");
    place.refrain(&["diff", "none.rfn", "a.rfn"]).check(2, "none.rfn cannot be read");
    place.refrain(&["diff", "a.rfn"]).check(2, "<B>");
    place
        .refrain(&["diff", "a.rfn", "a.rfn", "--ignore", "tiem"])
        .check(2, "'tiem' is none of time, pointers");
    place.refrain(&["diff", "a.rfn", "a.rfn", "--time"]).check(2, "a.rfn has no times to compare");
}

#[test]
fn what_cannot_be_asked_for() {
    let place = Scratch::new("asked");
    place.file("good.rfn", small_trace());
    place.refrain(&["dump", "good.rfn", "--rank", "7"]).check(2, "no rank 7");
    place.refrain(&["dump", "good.rfn", "--only", "send"]).check(2, "did you mean MPI_Send?");
    place.refrain(&["dump", "good.rfn", "--only", "nonsense"]).check(2, "is neither a function nor a family");
    place.refrain(&["dump", "good.rfn", "--only", "MPI_Send,MPI_Recv"]).check(0, "");
    place.refrain(&["nonsense"]).check(2, "unrecognized");
    place.refrain(&["stat"]).check(2, "'stats', 'simulate'");
    let version = place.refrain(&["--version"]);
    assert_eq!(version.check(0, "").out, format!("refrain {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_to_record_is_passed_on_and_checked_first() {
    let place = Scratch::new("choice");
    place.script("app", "touch started");
    let mut command =
        place.command(&["run", "--out", "x.rfn", "--only", "p2p", "--window", "1s..2s", "--", "env"]);
    let done = Done::of(command.env("REFRAIN_RANKS", "0-3").env("REFRAIN_ONLY", "coll").output().unwrap());
    for line in ["REFRAIN_RANKS=0-3", "REFRAIN_ONLY=p2p", "REFRAIN_WINDOW=1s..2s"] {
        assert!(done.out.lines().any(|l| l == line), "{line} in {}", done.out);
    }
    assert!(!done.out.contains("REFRAIN_SKIP"), "{}", done.out);
    for (option, value, why) in [
        ("--only", "MPI_Alreduce", "did you mean MPI_Allreduce?"),
        ("--only", "nothing", "the families are"),
        ("--only", "MPI_Comm_c2f", "no call is left"),
        ("--skip", "MPI_Finalize", "always recorded"),
        ("--ranks", "3-1", "'3-1' is neither a number nor a range"),
        ("--window", "5s..5s", "'5s..5s' is empty"),
        ("--window", "5s", "write 10s..2m"),
    ] {
        place.refrain(&["run", option, value, "--", "./app"]).check(2, &format!("{option}: ")).check(2, why);
    }
    place.refrain(&["run", "--only", "coll", "--skip", "coll", "--", "./app"]).check(2, "no call is left");
    assert!(!place.path("started").exists());
}

#[test]
fn variables_for_a_shell() {
    let place = Scratch::new("env it's");
    let script = "eval \"$(\"$0\" env --out a.rfn --only p2p --ranks 0)\" && env";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_refrain")]).current_dir(&place.0);
    // The path of a library that is preloaded has neither spaces nor quotes; that of the trace may.
    let library = Scratch::new("env-library");
    command.env("REFRAIN_LIBRARY", library.path("library.so")).env_remove("LD_PRELOAD");
    let done = Done::of(command.output().unwrap());
    for line in [
        format!("LD_PRELOAD={}", library.path("library.so").canonicalize().unwrap().display()),
        format!("REFRAIN_OUT={}", place.path("a.rfn").display()),
        "REFRAIN_ONLY=p2p".into(),
        "REFRAIN_RANKS=0".into(),
        "REFRAIN_SUMMARY=on".into(),
    ] {
        assert!(done.out.lines().any(|l| l == line), "{line} in {done:?}");
    }
    let refused = library.refrain(&["env", "--skip", "sned"]);
    assert_eq!(refused.check(2, "--skip: 'sned' is neither").out, "");
}

/// The page is made, and where it is is said.
#[test]
fn view_without_a_browser() {
    let place = Scratch::new("view");
    let trace = made::alike(2, &[made::call("MPI_Barrier").object("MPI_COMM_WORLD")]);
    place.file("a.rfn", refrain_tracefile::write(&trace));
    for browser in ["./none-such", "false"] {
        let cache = place.path("cache");
        let mut command = place.command("view a.rfn");
        command.env("XDG_CACHE_HOME", &cache).env("BROWSER", browser);
        let done = Done::of(command.output().unwrap());
        done.check(0, &format!("the page is {}", cache.join("refrain").display()))
            .check(0, "no browser was found");
        let pages: Vec<_> = std::fs::read_dir(cache.join("refrain")).unwrap().collect();
        assert_eq!(pages.len(), 1, "{done:?}");
        std::fs::remove_dir_all(cache).unwrap();
    }
}

/// A folder that is somebody else's, or that others may write into, gets no page.
#[test]
fn view_leaves_nothing_in_a_folder_of_others() {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let place = Scratch::new("view-of-others");
    let trace = made::alike(2, &[made::call("MPI_Barrier").object("MPI_COMM_WORLD")]);
    place.file("a.rfn", refrain_tracefile::write(&trace));
    let cache = place.path("cache");
    let folder = cache.join("refrain");
    std::fs::create_dir_all(&folder).unwrap();
    let refused = |why: &str| {
        let mut command = place.command("view a.rfn");
        command.env("XDG_CACHE_HOME", &cache).env("BROWSER", "true");
        Done::of(command.output().unwrap()).check(2, &format!("{} is not used: {why}", folder.display()));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    };
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    refused("others may write into it");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    // Only root can give it away; for anybody else there is a folder of root's.
    if chown(&folder, Some(65_534), None).is_ok() {
        refused("it belongs to another user");
        std::fs::remove_dir(&folder).unwrap();
        std::fs::create_dir(cache.join("own")).unwrap();
        symlink(cache.join("own"), &folder).unwrap();
        std::os::unix::fs::lchown(&folder, Some(65_534), None).unwrap();
        refused("it belongs to another user");
    } else {
        std::fs::remove_dir(&folder).unwrap();
        symlink("/usr", &folder).unwrap();
        let mut command = place.command("view a.rfn");
        command.env("XDG_CACHE_HOME", &cache).env("BROWSER", "true");
        Done::of(command.output().unwrap()).check(2, "it belongs to another user");
    }
}

/// Nobody who names a file writes a line of ours.
#[test]
fn names_make_no_lines() {
    let place = Scratch::new("lines");
    let name = "a\nrefrain: all is well\u{1b}[2J";
    let shown = r"a\nrefrain: all is well\u001b[2J";
    place.file(name, "neither a trace nor anything else");
    for words in
        [vec!["info", name], vec!["stats", name], vec!["dump", name], vec!["run", "-o", "x.rfn", name]]
    {
        let done = place.refrain(&words);
        assert!(done.check(2, shown).err.lines().skip(1).all(|line| line.starts_with("  ")), "{done:?}");
    }
    place.script(name, "exit 0");
    let untraced = place.refrain(&["run", "-o", name, "--force", "/bin/true"]);
    // The dynamic linker has its say first.
    let lines: Vec<&str> =
        untraced.check(0, shown).err.lines().skip_while(|line| !line.starts_with("refrain: ")).collect();
    let [first, rest @ ..] = &lines[..] else { panic!("{untraced:?}") };
    assert!(first.starts_with(&format!("refrain: no trace was written to {shown}")), "{untraced:?}");
    assert!(rest.len() == 2 && rest.iter().all(|line| line.starts_with("  ")), "{untraced:?}");
    let doctor = place.refrain(&["doctor", &format!("./{name}")]);
    assert!(doctor.out.lines().next().unwrap().contains(shown), "{doctor:?}");
}

#[test]
fn the_doctor_looks_without_running() {
    let place = Scratch::new("doctor");
    let doctor = |args: &[&str]| place.refrain(&[&["doctor"], args].concat());
    let no_mpi = doctor(&["/bin/sh"]);
    assert!(no_mpi.check(1, "").out.contains("is not linked with an MPI library"), "{no_mpi:?}");
    doctor(&["./no-such-program"]).check(2, "there is no program ./no-such-program");
    place.script("job", "touch started; exec mpiexec ./app");
    let script = doctor(&["--json", "./job"]);
    assert!(script.check(0, "").out.contains(r#""kind":"script""#), "{script:?}");
    assert!(script.out.contains(r#""problems":[]"#), "{script:?}");
    assert!(!place.path("started").exists());

    let mut bytes = std::fs::read("/bin/sh").unwrap();
    bytes[18] = 183;
    let other = place.file("other", &bytes);
    let set_user_id = place.path("setuid");
    std::fs::copy("/bin/sh", &set_user_id).unwrap();
    std::fs::set_permissions(&other, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&set_user_id, PermissionsExt::from_mode(0o4755)).unwrap();
    let other = doctor(&["./other"]);
    assert!(other.check(1, "").out.contains("for another machine: ARM 64, not x86-64"), "{other:?}");
    let set_user_id = doctor(&["./setuid"]);
    assert!(set_user_id.check(1, "").out.contains("set-user-id"), "{set_user_id:?}");

    let launched = doctor(&["--only", "coll", "--", "./no-mpiexec.sh", "-n", "4"]);
    launched.check(2, "there is no program");
    let missing = doctor(&["--", "mpiexec.hydra.none", "-n", "2", "/bin/sh"]);
    missing.check(2, "there is no program mpiexec.hydra.none");
    let mut command = place.command(&["doctor", "/bin/sh"]);
    let no_library = Done::of(command.env("REFRAIN_LIBRARY", "/no/library.so").output().unwrap());
    assert!(no_library.check(1, "").out.contains("/no/library.so"), "{no_library:?}");
}

/// What takes longer never comes.
const LONG: std::time::Duration = std::time::Duration::from_secs(120);

/// Waits until a file is there.
fn await_file(path: &Path) {
    let begun = std::time::Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < LONG, "{} never came", path.display());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn tell(signal: &str, process: u32) {
    Command::new("sh").arg("-c").arg(format!("kill -{signal} {process}")).status().unwrap();
}

const DEAF: &str = "trap '' TERM INT; sleep 1000 & echo $! >sleeper; touch started; while :; do wait; done";

fn is_gone(place: &Scratch) -> bool {
    let sleeper = String::from_utf8(place.read("sleeper")).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", sleeper.trim())).unwrap_or_default();
    stat.rsplit(')').next().unwrap_or("").trim_start().chars().next().is_none_or(|state| "ZX".contains(state))
}

#[test]
fn a_launcher_that_does_not_end_is_killed() {
    let place = Scratch::new("deaf");
    place.script("mpiexec", DEAF);
    let mut command = place.command(&["run", "--grace", "1", "--out", "x.rfn", "--", "./mpiexec", "./app"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    await_file(&place.path("started"));
    tell("TERM", child.id());
    let done = Done::of(child.wait_with_output().unwrap());
    done.check(137, "has not ended 1 s after SIGTERM").check(137, "no trace was written to x.rfn");
    assert!(is_gone(&place));
    assert!(!place.path("x.rfn.parts").exists());
}

/// What `nohup` has set to be ignored is ignored by us and by the program. And who started us may ignore how its children
/// end: we do not.
#[test]
fn signals_that_are_ignored_stay_so() {
    let place = Scratch::new("nohup");
    place.script(
        "mpiexec",
        "grep SigIgn /proc/self/status; touch started; until [ -e go ]; do sleep 0.05; done; sleep 0.5; exit 3",
    );
    let ignore = || {
        for signal in [libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD] {
            // SAFETY: no function of ours is called for it.
            if unsafe { libc::signal(signal, libc::SIG_IGN) } == libc::SIG_ERR {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    let mut command = place.command(&["run", "--grace", "0", "--out", "x.rfn", "--", "./mpiexec", "./app"]);
    // SAFETY: what it calls is async-signal-safe.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, ignore) };
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    await_file(&place.path("started"));
    // The program goes on, though no time at all is left to it by a signal that is for it.
    tell("HUP", child.id());
    place.file("go", "");
    let out = child.wait_with_output().unwrap();
    let ignored = String::from_utf8(out.stdout.clone()).unwrap();
    let done = Done::of(out);
    done.check(3, "no trace was written to x.rfn");
    let ignored = ignored.trim().rsplit('\t').next().unwrap();
    // Of SIGCHLD a shell takes care itself.
    let kept = 1 << (libc::SIGHUP - 1) | 1 << (libc::SIGQUIT - 1);
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & kept, kept);
}

#[test]
fn a_second_interrupt_is_enough() {
    let place = Scratch::new("twice");
    place.script("mpiexec", DEAF);
    let mut command =
        place.command(&["run", "--grace", "1000", "--out", "x.rfn", "--", "./mpiexec", "./app"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    await_file(&place.path("started"));
    while child.try_wait().unwrap().is_none() {
        tell("INT", child.id());
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    Done::of(child.wait_with_output().unwrap()).check(137, "is killed with all that it started");
    assert!(is_gone(&place));
}

#[test]
fn a_program_may_do_with_an_interrupt_what_it_likes() {
    let place = Scratch::new("likes");
    let program = "trap 'echo told >>told' INT; touch started; until [ -e go ]; do sleep 0.05; done; exit 4";
    let mut command = place.command(&["run", "--grace", "0", "--out", "x.rfn", "--", "sh", "-c", program]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    await_file(&place.path("started"));
    tell("INT", child.id());
    await_file(&place.path("told"));
    place.file("go", "");
    Done::of(child.wait_with_output().unwrap()).check(4, "");
}

#[test]
fn a_run_that_was_killed_blocks_nobody() {
    let place = Scratch::new("killed");
    place.refrain(&["run", "--out", "x.rfn", "--", "sh", "-c", "kill -9 $PPID"]);
    assert!(place.path("x.rfn.parts/claim").symlink_metadata().is_ok());
    let next = place.refrain(&["run", "--out", "x.rfn", "--", "true"]);
    assert!(!next.check(0, "no trace was written to x.rfn").err.contains("x.2.rfn"), "{next:?}");
    assert!(!place.path("x.rfn.parts").exists());
    // A command that cannot be started leaves nothing either.
    place.refrain(&["run", "--out", "x.rfn", "--", "./no-such-program"]).check(2, "could not be started");
    assert!(!place.path("x.rfn.parts").exists());
}

#[test]
fn what_others_put_there_is_not_removed() {
    let place = Scratch::new("kept");
    std::fs::create_dir(place.path("x.rfn.parts")).unwrap();
    place.file("x.rfn.parts/thesis.tex", "mine");
    std::fs::create_dir(place.path("x.rfn.parts/more")).unwrap();
    place.file("x.rfn.parts/0-a-1-0.part", "an old part");
    let run =
        |options: &[&str]| place.refrain(&[&["run", "--out", "x.rfn"], options, &["--", "true"]].concat());
    run(&[]).check(2, "an earlier run did not end well");
    run(&["--force"]).check(0, "no trace was written");
    assert_eq!(place.read("x.rfn.parts/thesis.tex"), b"mine");
    assert!(place.path("x.rfn.parts/more").is_dir() && !place.path("x.rfn.parts/0-a-1-0.part").exists());
}

#[test]
fn the_doctor_refuses_what_run_refuses() {
    let place = Scratch::new("refuses");
    place.script("app", "exit 0");
    place.file("app.rfn", "old");
    let doctor = |args: &[&str]| place.refrain(&[&["doctor"], args].concat());
    let said = |done: &Done, what: &str| assert!(done.out.contains(what), "{what} in {done:?}");
    said(doctor(&["./app"]).check(1, ""), "app.rfn: it exists already");
    said(doctor(&["--force", "./app"]).check(0, ""), "problems  none");
    said(doctor(&["--out", "no/x.rfn", "./app"]).check(1, ""), "there is no directory");
    said(doctor(&["--out", ".", "./app"]).check(1, ""), "it is a directory");
    let mut misspelt = place.command(&["doctor", "--force", "./app"]);
    let misspelt = Done::of(misspelt.env("REFRAIN_STACK", "full").output().unwrap());
    said(misspelt.check(1, ""), "did you mean REFRAIN_STACKS?");
    std::fs::create_dir(place.path("y.rfn.parts")).unwrap();
    place.file("y.rfn.parts/0-a-1-0.part", "an old part");
    said(doctor(&["--out", "y.rfn", "./app"]).check(1, ""), "an earlier run did not end well");
    place.file("z.rfn.parts", "");
    said(doctor(&["--out", "z.rfn", "./app"]).check(1, ""), "z.rfn.parts is not used");
    assert!(!place.path("x.rfn.parts").exists());

    for (word, place_of) in
        [("apptainer", "in a container"), ("docker", "in a container"), ("ssh", "machine")]
    {
        place.script(word, "exit 0");
        let word = format!("./{word}");
        said(
            doctor(&["--force", "--", "env", "A=1", &word, "exec", "image", "./app"]).check(1, ""),
            place_of,
        );
    }
    place.script("srun", "exit 0");
    said(doctor(&["--force", "--", "./srun", "-n", "4", "./app"]).check(0, ""), "that were not looked at");
}
