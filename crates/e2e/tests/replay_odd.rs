//! Replays of what is seldom done: receives that are cancelled or completed by another thread, polls of requests that are
//! others to MPI, threads that cannot go on, launchers that number ranks in their own way. Ignored in a plain `cargo test`:
//! needs the MPI libraries and the built command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use refrain_e2e::run::words;
use refrain_e2e::{Library, Program, build, run};

const LIBRARIES: [Library; 2] = [Library::Mpich, Library::OpenMpi];

/// A trace `first.rfn` of a program; its folder.
fn recorded(library: Library, source: &'static str, ranks: u32, args: &[&str]) -> PathBuf {
    let program = Program::unwitnessed(source);
    let folder = run::folder(&format!("replay-odd-{}", program.name()));
    fs::copy(program.build(library), folder.join("app")).unwrap();
    run::trace_app(&folder, library, "first.rfn", ranks, args, &[]);
    folder
}

fn replay_of(trace: &str, library: Library, ranks: u32, options: &[&str]) -> Vec<String> {
    let mut command = words(&["replay", trace]);
    command.extend(words(options));
    command.push("--".into());
    command.extend(run::launcher(library, ranks));
    command
}

#[track_caller]
fn says(outcome: &run::Outcome, code: i32, text: &str) {
    let all = format!("{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.code, code, "{all}");
    assert!(all.contains(text), "{text}: {all}");
}

/// Checked and traced, and the trace held against what was replayed.
#[track_caller]
fn made_again(folder: &Path, library: Library, ranks: u32, options: &[&str]) {
    let mut command = words(&["run", "--quiet", "--force", "--out", "again.rfn", "--"]);
    command.push(build::refrain().to_string_lossy().into_owned());
    command.extend(replay_of("first.rfn", library, ranks, &[&["--check", "--speed", "0"], options].concat()));
    let outcome = run::refrain_in(&[], folder, &command);
    says(&outcome, 0, "equal: every outcome");
    assert!(!outcome.stdout.contains("may have got another message"), "{}", outcome.stdout);
    let same = ["diff", "first.rfn", "again.rfn", "--ignore", "pointers,sites"];
    says(&run::refrain_in(&[], folder, &words(&same)), 0, "equal: ");
}

/// A message that comes earlier than then is not for a receive that was cancelled.
#[test]
#[ignore = "needs MPI: `make test`"]
fn receives_that_were_cancelled_take_no_message() {
    for library in LIBRARIES {
        let folder = recorded(library, "cancelled.c", 2, &[]);
        made_again(&folder, library, 2, &[]);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn what_another_thread_completes_gets_the_message_of_then() {
    for library in LIBRARIES {
        let folder = recorded(library, "handed_over.c", 3, &[]);
        made_again(&folder, library, 3, &[]);
    }
}

/// The thread that starts it does not wait for the other one by any call of MPI.
#[test]
#[ignore = "needs MPI: `make test`"]
fn what_another_thread_completes_is_not_started_again_before() {
    for library in LIBRARIES {
        let folder = recorded(library, "started_over.c", 2, &[]);
        made_again(&folder, library, 2, &[]);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn polls_are_made_of_requests_that_mpi_knows() {
    for library in LIBRARIES {
        let folder = recorded(library, "polled.c", 2, &[]);
        made_again(&folder, library, 2, &["--polls"]);
    }
}

/// Of receives whose statuses are ignored one has failed: what the others matched is known, and the program is told the same.
#[test]
#[ignore = "needs MPI: `make test`"]
fn what_was_matched_is_known_where_another_one_failed() {
    for library in LIBRARIES {
        let program = Program::unwitnessed("partly.c");
        let plain = run::plain(library, &program, 3);
        let folder = recorded(library, "partly.c", 3, &[]);
        let traced = fs::read_to_string(folder.join("stdout")).unwrap();
        assert_eq!(traced, plain.stdout);
        let shown =
            run::refrain_in(&[], &folder, &words(&["dump", "first.rfn", "--ranks", "0", "--only", "wait"]));
        says(&shown, 0, "{matched=[{source=1, tag=1, cancelled=false, error=0}, {error=1");
        let outcome = run::refrain_in(&[], &folder, &replay_of("first.rfn", library, 3, &["--check"]));
        says(&outcome, 0, "equal: every outcome");
    }
}

/// The program's own files are not touched: one that was there before is there again, as long as it was.
#[test]
#[ignore = "needs MPI: `make test`"]
fn files_that_were_there_before_are_there_again() {
    for library in LIBRARIES {
        let folder = recorded(library, "input_file.c", 2, &[]);
        fs::remove_file(folder.join("input.dat")).unwrap();
        made_again(&folder, library, 2, &[]);
        assert!(!folder.join("input.dat").exists());
    }
}

/// Addresses of other ranks that nobody has asked MPI for. (`windows.c`, which asks, is made again in `replay.rs`.)
#[test]
#[ignore = "needs MPI: `make test`"]
fn addresses_that_are_not_known_are_said_before() {
    for library in LIBRARIES {
        let folder = recorded(library, "cast.c", 2, &[]);
        let outcome = run::refrain_in(&[], &folder, &replay_of("first.rfn", library, 2, &[]));
        says(&outcome, 2, "MPI_Put names an address of another rank (0x");
        says(&outcome, 2, "no rank has asked MPI_Get_address");
    }
}

/// Where an element lies, a rank has read in the memory of another one. A replay has to wait until it is there.
fn addresses_that_stand_in_memory_are_waited_for(library: Library) {
    let folder = recorded(library, "linked_list.c", 4, &[]);
    made_again(&folder, library, 4, &[]);
}

on_both!(addresses_that_stand_in_memory_are_waited_for);

/// Another thread completes a generalised request once it is started, and sends from a buffer once it is attached.
fn what_another_thread_promises_is_waited_for(library: Library) {
    let folder = recorded(library, "promises.c", 2, &[]);
    made_again(&folder, library, 2, &[]);
}

on_both!(what_another_thread_promises_is_waited_for);

/// A call that has failed and returned success, as a function of the program wants it, returns success again.
fn what_the_program_forgives_is_forgiven(library: Library) {
    let folder = recorded(library, "forgiven.c", 2, &[]);
    assert_eq!(fs::read_to_string(folder.join("stdout")).unwrap(), "forgiven: 2 of 2, sum 1\n");
    made_again(&folder, library, 2, &[]);
}

on_both!(what_the_program_forgives_is_forgiven);

/// Calls are made only if they are those that were recorded.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_trace_that_does_not_verify_is_not_begun() {
    let library = Library::Mpich;
    let folder = recorded(library, "ring.c", 2, &[]);
    let text = run::refrain_in(&[], &folder, &words(&["loops", "--text", "first.rfn"])).stdout;
    let at = text.rfind(" digest ").unwrap() + 8;
    let mut other = text.clone();
    let digit = if &text[at..=at] == "0" { "1" } else { "0" };
    other.replace_range(at..=at, digit);
    fs::write(folder.join("text"), &other).unwrap();
    let import = ["import", "text", "--out", "other.rfn", "--force"];
    says(&run::refrain_in(&[], &folder, &words(&import)), 0, "");
    let differs = "are not those that were recorded: their digest differs";
    let outcome = run::refrain_in(&[], &folder, &replay_of("other.rfn", library, 2, &[]));
    says(&outcome, 2, differs);
    let proxy = words(&["proxy", "other.rfn", "--out", "proxy.c"]);
    says(&run::refrain_in(&[], &folder, &proxy), 2, differs);
    // Somebody has changed it on purpose.
    let import = ["import", "text", "--digest", "--out", "other.rfn", "--force"];
    says(&run::refrain_in(&[], &folder, &words(&import)), 0, "");
    let outcome = run::refrain_in(&[], &folder, &replay_of("other.rfn", library, 2, &["--check"]));
    says(&outcome, 0, "equal: every outcome");
}

/// The trace `other.rfn`: the same with another text.
fn with_text(folder: &Path, change: impl Fn(&str) -> String) {
    let text = run::refrain_in(&[], folder, &words(&["loops", "--text", "first.rfn"])).stdout;
    let changed = change(&text);
    assert_ne!(text, changed);
    fs::write(folder.join("text"), changed).unwrap();
    let import = words(&["import", "text", "--digest", "--out", "other.rfn", "--force"]);
    says(&run::refrain_in(&[], folder, &import), 0, "");
}

/// The lines of each thread, after those that all share.
fn threads_of(text: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    for line in text.lines() {
        if line.starts_with("cohort ") {
            parts.push(std::mem::take(&mut part));
        }
        part += line;
        part.push('\n');
    }
    parts.push(part);
    parts
}

/// A trace that tells of another string, another number in an array and more bytes in a status than its calls give.
#[test]
#[ignore = "needs MPI: `make test`"]
fn strings_arrays_and_statuses_are_compared() {
    for library in LIBRARIES {
        let folder = recorded(library, "told.c", 1, &[]);
        made_again(&folder, library, 1, &[]);
        with_text(&folder, |text| {
            let stream = |line: &&str| line.starts_with("stream ") && line.contains(" terms 4711 ");
            let stream = text.lines().find(stream).and_then(|line| line.split(' ').nth(1)).unwrap();
            let streams = text.lines().filter(|line| line.starts_with("stream ")).count();
            let lines = text.lines().map(|line| match line.contains("# MPI_Comm_get_name(") {
                true => line.replace("61626364", "61626365"),
                false => line.to_owned(),
            });
            let mut text = lines.collect::<Vec<_>>().join("\n") + "\n";
            // What the type is made of comes last.
            let lane = format!("  lane {stream}\n");
            let at = text.rfind(&lane).unwrap();
            text.replace_range(at..at + lane.len(), &format!("  lane {streams}\n"));
            let other = format!("stream {streams} terms 4712 shape t0\nstructure 0 ");
            text.replacen("structure 0 ", &other, 1).replace(" terms 4924 ", " terms 4925 ")
        });
        let outcome = run::refrain_in(&[], &folder, &replay_of("other.rfn", library, 1, &["--check"]));
        says(&outcome, 1, "call 2, MPI_Comm_get_name: comm_name is \"abcd\", in the trace \"abce\"");
        says(&outcome, 1, "array_of_integers[0] is 4711, in the trace 4712");
        says(&outcome, 1, "MPI_Sendrecv: status is ");
    }
}

/// A thread that cannot go on ends its rank, whatever the other threads do. Nothing here waits for `--patience`.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_thread_that_fails_ends_the_replay() {
    for library in LIBRARIES {
        let folder = recorded(library, "forkjoin.c", 2, &["3"]);
        // The last thread uses a communicator that nobody makes: the first waits for it before it frees what is shared.
        with_text(&folder, |text| {
            let lines =
                text.lines().map(|line| match line.contains("# MPI_Sendrecv(") && line.contains("comm#2") {
                    true => line.replace("0105038001", "0109038001"),
                    false => line.to_owned(),
                });
            lines.collect::<Vec<_>>().join("\n") + "\n"
        });
        let outcome =
            run::refrain_in(&[], &folder, &replay_of("other.rfn", library, 2, &["--patience", "0"]));
        says(&outcome, 2, "its threads wait for each other: thread 0: ");
        says(&outcome, 2, "was not made by a call that is in the trace");

        // One thread waits for a message that nobody sends, and another one has a buffer beyond any memory.
        with_text(&folder, |text| {
            let mut parts = threads_of(text);
            assert_eq!(parts.len(), 5, "{text}");
            let streams = text.lines().filter(|line| line.starts_with("stream ")).count();
            let at = parts[2].rfind("  lane 1\n").unwrap();
            parts[2].replace_range(at.., "  lane 0\n");
            let lanes: Vec<usize> = parts[4].match_indices("  lane ").map(|(at, _)| at).collect();
            parts[4].replace_range(lanes[1]..lanes[2], &format!("  lane {streams}\n"));
            let far = format!("stream {streams} terms {} shape t0\nstructure 0 ", 1u64 << 46);
            parts.concat().replacen("structure 0 ", &far, 1)
        });
        let outcome =
            run::refrain_in(&[], &folder, &replay_of("other.rfn", library, 2, &["--patience", "0"]));
        says(&outcome, 2, "thread 3, call 0, MPI_Sendrecv: sendbuf: ");
    }
}

/// What a launcher tells a process is not its number in MPI.
#[test]
#[ignore = "needs MPI: `make test`"]
fn ranks_that_are_numbered_otherwise_are_told() {
    let library = Library::Mpich;
    let folder = recorded(library, "ring.c", 2, &[]);
    let script =
        "#!/bin/sh\nexport OMPI_COMM_WORLD_RANK=$((1 - PMI_RANK)) OMPI_COMM_WORLD_SIZE=2\nexec \"$@\"\n";
    fs::write(folder.join("odd"), script).unwrap();
    fs::set_permissions(folder.join("odd"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = replay_of("first.rfn", library, 2, &[]);
    command.push("./odd".into());
    let outcome = run::refrain_in(&[], &folder, &command);
    says(&outcome, 2, "in its environment, but to MPI it is rank ");
}
