//! Runs that hang or die, on both MPI libraries: what `refrain where` says while they hang, and `refrain info` when they are
//! dead. Ignored in a plain `cargo test`, because it needs the MPI libraries and the built command.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use refrain_e2e::build::Level;
use refrain_e2e::run::{LONG, Special, Traced};
use refrain_e2e::{Library, Program, run};
use serde_json::Value;

const RANKS: u32 = 3;

fn stuck(mode: &'static [&'static str]) -> Program {
    Program::unwitnessed("stuck.c").with(mode)
}

/// What a test expects, with `@words@` for the line of the source that has such a comment.
fn with_lines(program: &Program, expected: &str) -> String {
    let pieces = expected.split('@').enumerate();
    let piece = |(n, piece): (usize, &str)| match n % 2 {
        0 => piece.to_owned(),
        _ => format!("{}:{}", program.source, program.line_of(piece)),
    };
    pieces.map(piece).collect()
}

/// Asks until all of it is said, or for too long: what was said last.
fn ask(args: &[&str], expected: &[String]) -> String {
    let begun = Instant::now();
    loop {
        let said = run::refrain(args);
        let all = expected.iter().all(|expected| said.stdout.contains(expected));
        if all || begun.elapsed() > LONG {
            return said.stdout + &said.stderr;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// How a run that hangs is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// By itself.
    Itself,
    /// All ranks are killed.
    Ranks,
    /// And `refrain run` before them, so that nobody makes a trace.
    Everything,
}

/// A program on both libraries: what is said while it hangs, and when it is dead. Nothing that is said may have one of
/// `never`.
fn says(mode: &'static [&'static str], end: End, expected: &[&str], never: &[&str]) {
    program_says(&stuck(mode), end, expected, never);
}

fn program_says(program: &Program, end: End, expected: &[&str], never: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|expected| with_lines(program, expected)).collect();
    let check = |what: &str, said: &str| {
        for expected in &expected {
            assert!(said.contains(expected), "{what}: not {expected:?}:\n{said}");
        }
        for never in never {
            assert!(!said.contains(never), "{what}: {never:?}:\n{said}");
        }
    };
    for library in Library::ALL {
        let what = format!("{} {:?} on {}", program.source, program.args, library.suffix());
        let special = Special { before: &run::NOTED, unwitnessed: true, ..Special::default() };
        let traced = run::traced_while(library, program, RANKS, &special, |parts| {
            if end != End::Itself {
                let trace = parts.with_extension("");
                let live = ask(&["where", &trace.to_string_lossy()], &expected);
                // The program is not disturbed by who looks at it.
                assert_eq!(run::processes(parts).len(), RANKS as usize, "{what}");
                println!("{what}, live:\n{live}");
                check(&what, &live);
                if end == End::Everything {
                    run::tell("-KILL", parts);
                }
                run::kill("-KILL", &run::processes(parts));
            }
        });
        let info = dead(&traced, end);
        println!("{what}, dead:\n{info}");
        check(&what, &info);
    }
}

/// What `info` says of a run that is over.
fn dead(traced: &Traced, end: End) -> String {
    let path = traced.trace.to_string_lossy().into_owned();
    if end == End::Everything {
        let parts = traced.parts().to_string_lossy().into_owned();
        recover_when_all_are_gone(&parts, Path::new(&path));
    }
    let info = run::refrain(&["info", &path]);
    assert_eq!(info.code, 0, "{}{}", info.stderr, traced.outcome.stderr);
    let verified = run::refrain(&["verify", &path]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    info.stdout
}

/// Processes that were killed may need a while to be gone.
fn recover_when_all_are_gone(parts: &str, trace: &Path) {
    let begun = Instant::now();
    loop {
        let _ = std::fs::remove_file(trace);
        let said = run::refrain(&["recover", parts]);
        if said.code == 0 && !said.stderr.contains("still run") {
            return;
        }
        assert!(begun.elapsed() < LONG, "{}", said.stderr);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Whether a text begins as a pattern says, in which `*` stands for anything.
fn begins(text: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = text.strip_prefix(pieces.next().unwrap_or_default());
    let rest = |rest: &str, piece: &str| rest.split_once(piece).map(|(_, rest)| rest.to_owned());
    first.is_some_and(|first| pieces.try_fold(first.to_owned(), |left, piece| rest(&left, piece)).is_some())
}

/// What is said of a run that hung when all of it was killed.
fn when_dead(sentence: &str, kind: &str) -> String {
    let past = |words: &[(&str, &str)]| {
        words.iter().fold(sentence.to_owned(), |text, (now, then)| text.replace(now, then))
    };
    match (kind, sentence.split_once(" ha")) {
        // Who has come to its end is in no call any more.
        ("finished", Some((who, _))) => format!("{who} reached MPI_Finalize"),
        ("outside", _) => past(&[("holds up", "held up"), ("has been outside", "was outside")]),
        ("polling", _) => past(&[("holds up", "held up"), ("polls", "polled"), ("comes", "came")]),
        _ => sentence.to_owned(),
    }
}

/// The first sentence of `where` while the program hangs, on both libraries, and of `info` when it was killed: as JSON says it
/// too. `kind` is that of the culprit.
fn first_says(mode: &'static [&'static str], kind: &str, sentence: &str) {
    let program = stuck(mode);
    let sentence = with_lines(&program, sentence);
    for library in Library::ALL {
        let what = format!("{mode:?} on {}", library.suffix());
        let special = Special { before: &run::NOTED, unwitnessed: true, ..Special::default() };
        let traced = run::traced_while(library, &program, RANKS, &special, |parts| {
            let trace = parts.with_extension("").to_string_lossy().into_owned();
            let begun = Instant::now();
            let said = loop {
                let said = run::refrain(&["where", &trace]);
                if begins(&said.stdout, &sentence) || begun.elapsed() > LONG {
                    break said.stdout + &said.stderr;
                }
                std::thread::sleep(Duration::from_millis(100));
            };
            println!("{what}, live:\n{said}");
            assert!(begins(&said, &sentence), "{what}: not {sentence:?}:\n{said}");
            let json = run::refrain(&["where", &trace, "--json"]).stdout;
            assert!(json.contains(&format!("\"culprit\":{{\"kind\":\"{kind}\"")), "{what}: {json}");
            run::kill("-KILL", &run::processes(parts));
        });
        let info = dead(&traced, End::Ranks);
        println!("{what}, dead:\n{info}");
        let short = info.split_once("in short").map_or("", |(_, short)| short.trim_start());
        let sentence = when_dead(&sentence, kind);
        assert!(begins(short, sentence.trim_end_matches('.')), "{what}: not {sentence:?}:\n{info}");
    }
}

/// Hangs as programs have them: the first sentence is about who is to be looked at.
const MESSAGES: [(&[&str], &str, &str); 14] = [
    (
        &["never-sent"],
        "outside",
        "Rank 1 holds up rank 2: it has been outside MPI for *, since MPI_Comm_size at stuck.c:*.",
    ),
    (
        &["wrong-tag"],
        "other_message",
        "Rank 1 waits for rank 0 to send something with tag 6 on world; rank 0 has sent it 1 message with tag 5 on world \
         that it has not asked for.",
    ),
    (
        &["wrong-comm"],
        "other_message",
        "Rank 1 waits for rank 0 to send something with tag 5 on world; rank 0 has sent it 1 message with tag 5 on world.0 \
         that it has not asked for.",
    ),
    (
        &["wrong-tag-barrier"],
        "other_message",
        "Rank 1 waits for rank 0 to send something with tag 6 on world; rank 0 has sent it 1 message with tag 5 on world \
         that it has not asked for.",
    ),
    (
        &["wrong-tag-any"],
        "other_message",
        "Rank 1 waits for ranks 0,2 to send something with tag 6 on world (any of them); rank 0 has sent it 1 message with \
         tag 5 on world that it has not asked for.",
    ),
    (
        &["polls"],
        "polling",
        "Rank 1 holds up the others: it polls with MPI_Test for MPI_Irecv(source=2, tag=13, comm=world) at @polls@, and \
         nothing comes.",
    ),
    (&["circle"], "circle", "Ranks 0-2 have waited for each other in a circle for *: 0 -> 1 -> 2 -> 0."),
    (&["sends"], "circle", "Ranks 0-2 have waited for each other in a circle for *: 0 -> 1 -> 2 -> 0."),
    (
        &["waitall"],
        "finished",
        "Rank 1 waits in vain for rank 0, which has been in MPI_Finalize at @the end@ for *.",
    ),
    (
        &["probe"],
        "finished",
        "Rank 2 waits in vain for rank 0, which has been in MPI_Finalize at @the end@ for *.",
    ),
    (
        &["ssend"],
        "outside",
        "Rank 2 holds up rank 0: it has been outside MPI for *, since MPI_Comm_size at stuck.c:*.",
    ),
    (
        &["persistent"],
        "finished",
        "Rank 0 waits in vain for rank 1, which has been in MPI_Finalize at @the end@ for *.",
    ),
    (&["itself"], "circle", "Rank 1 has waited for itself for *, in MPI_Recv at @from itself@."),
    (
        &["somebody"],
        "anybody",
        "Rank 0 waits for somebody to send something with tag 1 on world: ranks 1-2 may still do so.",
    ),
];

const ALL_TOGETHER: [(&[&str], &str, &str); 8] = [
    (
        &["absent"],
        "outside",
        "Rank 2 holds up the others: it has been outside MPI for *, since MPI_Barrier at @before it is lost@.",
    ),
    (
        &["skipped"],
        "finished",
        "The others wait in vain for rank 1, which has been in MPI_Finalize at @the end@ for *.",
    ),
    (
        &["functions"],
        "mismatch",
        "Collective calls do not match on world: rank 0 has MPI_Allreduce at @another function@; rank 1 has MPI_Barrier at \
         @a function@.",
    ),
    (
        &["roots"],
        "mismatch",
        "The roots of MPI_Bcast do not match on world: rank 0 has root=1 at @roots@; rank 1 has root=0 at @roots@.",
    ),
    (
        &["fence"],
        "outside",
        "Rank 1 holds up the others: it has been outside MPI for *, since MPI_Win_fence at @the first fence@.",
    ),
    (
        &["dup"],
        "outside",
        "Rank 0 holds up the others: it has been outside MPI for *, since MPI_Comm_size at stuck.c:*.",
    ),
    (
        &["anybody"],
        "finished",
        "Rank 0 waits in vain for ranks 1-2, which have been in MPI_Finalize at @the end@ for *.",
    ),
    (
        &["all-from-anybody"],
        "circle",
        "Ranks 0-2 have waited for each other for *, and nobody is left who could help.",
    ),
];

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_first_sentence_of_messages_that_never_come() {
    MESSAGES.iter().for_each(|(mode, kind, sentence)| first_says(mode, kind, sentence));
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_first_sentence_of_calls_that_not_all_make() {
    ALL_TOGETHER.iter().for_each(|(mode, kind, sentence)| first_says(mode, kind, sentence));
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_receive_that_nobody_sends() {
    let expected = [
        "rank 2: in MPI_Recv(source=1, tag=77, comm=world) at @never sent@",
        "rank 2 waits for rank 1 to send something with tag 77 on world",
    ];
    says(&["never-sent"], End::Ranks, &expected, &["circle"]);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_deadlock() {
    let expected = [
        "rank 0: in MPI_Recv(source=1, tag=5, comm=world) at @circle@",
        "rank 2: in MPI_Recv(source=0, tag=5, comm=world) at @circle@",
        "Ranks 0-2 ",
        " for each other in a circle",
        ": 0 -> 1 -> 2 -> 0",
        "rank 0 waits for rank 1 to send something with tag 5 on world",
    ];
    says(&["circle"], End::Everything, &expected, &[]);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_collective_call_that_not_all_reach() {
    let expected = [
        "Ranks 0-1 ",
        " for each other in a circle",
        ": 0 -> 1 -> 0",
        "ranks 0,2 wait for rank 1 in MPI_Barrier at @missed@ (collective call 2 on world.0)",
        "rank 1: in MPI_Recv(source=0, tag=3, comm=world.0) at @instead@",
    ];
    says(&["missed"], End::Ranks, &expected, &["do not match"]);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn collective_calls_that_do_not_match() {
    let functions = "Collective calls do not match on world: rank 0 has MPI_Allreduce at @another function@; rank 1 has \
                     MPI_Barrier at @a function@";
    says(&["functions"], End::Ranks, &[functions], &[]);
    let roots = "The roots of MPI_Bcast do not match on world: rank 0 has root=1 at @roots@; rank 1 has root=0 at @roots@";
    says(&["roots"], End::Ranks, &[roots], &[]);
    let counts = "The counts of MPI_Bcast do not match on world: rank 0 has count=8, datatype=MPI_INT at @counts@; rank 1 \
                  has count=4, datatype=MPI_INT at @counts@";
    says(&["counts"], End::Ranks, &[counts, "ranks 0-1 wait for rank 2 in MPI_Bcast"], &[]);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn requests_that_do_not_complete() {
    let expected = [
        "rank 0: in MPI_Waitall for 2 requests: MPI_Irecv(source=1, tag=11, comm=world); MPI_Irecv(source=2, tag=12, \
         comm=world) at @two requests@",
        "rank 1: in MPI_Wait for MPI_Irecv(source=2, tag=13, comm=world) at @one request@",
        "rank 1 waits for rank 2 to send something with tag 13 on world",
        "rank 0 waits for rank 1 to send something with tag 11 on world",
        "rank 0 waits for rank 2 to send something with tag 12 on world",
    ];
    says(&["requests"], End::Ranks, &expected, &[]);
}

/// MPICH has one handle for all sends that are over when they begin, Open MPI for everything with `MPI_PROC_NULL` too.
#[test]
#[ignore = "needs MPI: `make test`"]
fn requests_that_share_a_handle() {
    let expected = [
        "rank 0: in MPI_Waitall for 4 requests: MPI_Irecv(source=MPI_PROC_NULL, tag=2, comm=world); MPI_Isend(dest=2, tag=3, \
         comm=world); MPI_Isend(dest=MPI_PROC_NULL, tag=4, comm=world); MPI_Irecv(source=1, tag=8, comm=world) at @copied@",
        "rank 1: in MPI_Waitall for 3 requests: MPI_Isend(dest=0, tag=0, comm=world); MPI_Isend(dest=2, tag=1, comm=world); \
         MPI_Irecv(source=2, tag=9, comm=world) at @one handle@",
    ];
    says(&["shared"], End::Ranks, &expected, &[]);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_fatal_error() {
    let expected = "rank 1: ended by an error of MPI in MPI_Recv(source=0, tag=5, comm=world) at @truncated@: MPI_ERR_TRUNCATE: ";
    let first = "Rank 1 was ended by an error of MPI in MPI_Recv at @truncated@: MPI_ERR_TRUNCATE: ";
    says(&["truncated"], End::Itself, &[expected, first, "essage truncated"], &["rank 1: killed or crashed"]);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_fault_of_one_rank() {
    let expected = "rank 1: ended by SIGSEGV at @fault@; the last call was MPI_Barrier(comm=world) at @before the fault@";
    let first = "Rank 1 was ended by SIGSEGV at @fault@, after MPI_Barrier at @before the fault@";
    says(&["segv"], End::Itself, &[expected, first], &[]);
}

/// However soon the others were ended too.
#[test]
#[ignore = "needs MPI: `make test`"]
fn who_ended_the_run_comes_first() {
    let endings = |how| Program::unwitnessed("endings.c").with(how);
    let exit = "Rank 2 called exit(7) without MPI_Finalize, after MPI_";
    program_says(&endings(&["exit", "50"]), End::Itself, &[exit], &[]);
    let left = "Rank 1 called exit(0) without MPI_Finalize";
    program_says(&stuck(&["leaves"]), End::Itself, &[left], &[]);
    let abort = "Rank 2 called MPI_Abort with error code 42 at endings.c:";
    program_says(&endings(&["abort", "50"]), End::Itself, &[abort], &[]);
}

/// Each thread is told by itself.
#[test]
#[ignore = "needs MPI: `make test`"]
fn threads_in_different_calls() {
    let expected = [
        "rank 0: in MPI_Recv(source=2, tag=22, comm=world) at @the first thread@",
        "rank 0, thread 1: in MPI_Recv(source=1, tag=21, comm=world) at @another thread@",
    ];
    says(&["threads"], End::Ranks, &expected, &[]);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_fault_of_one_thread() {
    let expected = "rank 1, thread 1: ended by SIGSEGV at @fault of a thread@; the last call was MPI_Barrier(comm=self) at @before \
                    its fault@";
    says(&["threads-segv"], End::Itself, &[expected], &[]);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn fortran_that_hangs() {
    let program = Program::unwitnessed("f_stuck.f90");
    // Of the second call gfortran notes another line with the module of Open MPI.
    let expected = [
        "rank 2: in MPI_Recv(source=1, tag=77, comm=world) at @never sent@",
        "rank 1: in MPI_Wait for MPI_Irecv(source=2, tag=13, comm=world)",
        "rank 0: in MPI_Bcast(count=3, datatype=MPI_DOUBLE_PRECISION, root=1, comm=world) at @broadcast@",
    ];
    program_says(&program, End::Ranks, &expected, &[]);
}

/// An error that the program has seen and lived with is not what ended it.
#[test]
#[ignore = "needs MPI: `make test`"]
fn an_error_that_ends_nothing() {
    let expected = "rank 2: in MPI_Recv(source=0, tag=9, comm=world) at @after an error@";
    says(&["returned"], End::Ranks, &[expected], &["error of MPI"]);
}

/// Who has done its part of a call is not waited for.
#[test]
#[ignore = "needs MPI: `make test`"]
fn what_is_no_deadlock() {
    let expected = [
        "rank 0: in MPI_Sendrecv(",
        "rank 1 waits for rank 0 to send something with tag 2 on world",
        "Rank 2 ",
        " up the others: it ",
        " outside MPI for ",
    ];
    says(&["exchange"], End::Ranks, &expected, &["circle"]);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn communicators_that_came_and_went() {
    let expected =
        ["ranks 0-1 wait for rank 2 in MPI_Barrier at @the first one@ (collective call 1 on world.1)"];
    says(&["again"], End::Ranks, &expected, &["collective call 2", "collective call 5"]);
}

/// The program's own codes and handlers are nobody else's business.
#[test]
#[ignore = "needs MPI: `make test`"]
fn an_abort_is_as_without_us() {
    for library in Library::ALL {
        for code in ["200", "3"] {
            let program =
                Program::unwitnessed("aborts.c").with(if code == "200" { &["200"] } else { &["3"] });
            let special = Special { unwitnessed: true, ..Special::default() };
            let traced = run::traced_special(library, &program, 2, &special);
            let plain = run::untraced(library, &program, 2);
            assert_eq!(traced.outcome.code, plain.code, "{code} on {}", library.suffix());
            assert!(!traced.outcome.stdout.contains("handler"), "{}", traced.outcome.stdout);
        }
    }
}

/// The same as JSON, live and from the trace.
#[test]
#[ignore = "needs MPI: `make test`"]
fn as_json() {
    let program = stuck(&["never-sent"]);
    let special = Special { unwitnessed: true, ..Special::default() };
    let rank_2 = "\"args\":{\"count\":1,\"datatype\":\"MPI_INT\",\"source\":1,\"tag\":77,\"comm\":\"world\"}"
        .to_owned();
    let mut expected = [
        rank_2,
        "\"call\":\"MPI_Recv\"".into(),
        "\"conclusions\":[\"Rank 1 holds up rank 2: it has been outside MPI for ".into(),
    ];
    let traced = run::traced_while(Library::Mpich, &program, RANKS, &special, |parts| {
        let said = ask(&["where", &parts.to_string_lossy(), "--json"], &expected);
        assert!(expected.iter().all(|expected| said.contains(expected)), "{said}");
        run::kill("-KILL", &run::processes(parts));
    });
    expected[2] = when_dead(&expected[2], "outside");
    let said = run::refrain(&["info", "--json", &traced.trace.to_string_lossy()]).stdout;
    assert!(expected.iter().all(|expected| said.contains(expected)), "{said}");
    assert!(said.contains("\"in_flight\":[{\"rank\":0"), "{said}");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn requests_as_json() {
    let special = Special { unwitnessed: true, ..Special::default() };
    let made_by =
        "\"made_by\":[\"MPI_Isend(dest=0, tag=0, comm=world)\",\"MPI_Isend(dest=2, tag=1, comm=world)\",";
    let expected = [made_by.to_owned()];
    for library in Library::ALL {
        let traced = run::traced_while(library, &stuck(&["shared"]), RANKS, &special, |parts| {
            let said = ask(&["where", &parts.to_string_lossy(), "--json"], &expected);
            assert!(said.contains(made_by), "{said}");
            run::kill("-KILL", &run::processes(parts));
        });
        let said = run::refrain(&["info", "--json", &traced.trace.to_string_lossy()]).stdout;
        assert!(said.contains(made_by), "{said}");
    }
}

/// Whether one process may look into another here: into a child of its own, and into one that is not.
fn may_look() -> bool {
    let mut child = Command::new("sleep").arg("600").spawn().unwrap_or_else(|e| panic!("sleep: {e}"));
    let id = child.id();
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: reads and writes nothing of ours. The child is let go when it is killed.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, id as libc::pid_t, none, none) } == 0;
    child.kill().unwrap_or_else(|e| panic!("{e}"));
    child.wait().unwrap_or_else(|e| panic!("{e}"));
    let mut other = Command::new("sleep").arg("600").spawn().unwrap_or_else(|e| panic!("sleep: {e}"));
    let place = format!("/proc/{}/syscall", other.id());
    let read = Command::new("cat").arg(place).stdout(Stdio::null()).status();
    other.kill().unwrap_or_else(|e| panic!("{e}"));
    other.wait().unwrap_or_else(|e| panic!("{e}"));
    seized && read.is_ok_and(|status| status.success())
}

/// Ranks outside MPI are looked at, and notice nothing.
#[test]
#[ignore = "needs MPI: `make test`"]
fn where_a_rank_is_outside_mpi() {
    let program = Program { level: Level::Optimised, ..Program::unwitnessed("outside.c") };
    let since = with_lines(&program, "since MPI_Comm_size at @before it computes@.\n");
    let kernel = program.line_of("kernel begins")..=program.line_of("kernel ends");
    let may_look = may_look();
    for library in Library::ALL {
        let special = Special { unwitnessed: true, ..Special::default() };
        let traced = run::traced_while(library, &program, 4, &special, |parts| {
            let trace = parts.with_extension("").to_string_lossy().into_owned();
            // Looked at on its way into that system call, it would fail there: `where` can know only what it does by then.
            let epoll = [libc::SYS_epoll_wait, libc::SYS_epoll_pwait].map(|call| call.to_string());
            let waits = |process: u32| {
                let text = std::fs::read_to_string(format!("/proc/{process}/syscall"));
                text.is_ok_and(|text| epoll.iter().any(|call| text.split(' ').next() == Some(call)))
            };
            let third = || run::processes(parts).into_iter().find(|(rank, _)| *rank == 3);
            assert!(!may_look || run::until(|| third().is_some_and(|(_, process)| waits(process))));
            let expected =
                ["Rank 1 holds up rank 0: it has been outside MPI for ", &since, "ranks 2-3: outside"];
            let said = ask(&["where", &trace], &expected.map(str::to_owned));
            println!("{}:\n{said}", library.suffix());
            let why = "the stack of rank 3 cannot be read: a system call is under way";
            let begun = Instant::now();
            while may_look && begun.elapsed() < LONG && !run::refrain(&["where", &trace]).stderr.contains(why)
            {
                std::thread::sleep(Duration::from_millis(100));
            }
            // Many looks, and all that they see.
            for n in 0..20 {
                let said = run::refrain(&["where", &trace, "--json"]);
                assert_eq!(said.code, 0, "{}", said.stderr);
                if !may_look {
                    assert!(said.stderr.contains(" cannot be read: "), "{}", said.stderr);
                    continue;
                }
                let found: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|e| panic!("{e}"));
                let of =
                    |rank: usize| found["in_flight"][rank]["now"].as_array().cloned().unwrap_or_default();
                let names = |rank: usize| -> Vec<String> {
                    of(rank).iter().map(|one| one["function"].as_str().unwrap_or("?").to_owned()).collect()
                };
                let at = of(1).iter().position(|one| one["function"] == "kernel");
                let at = at.unwrap_or_else(|| panic!("{n}: {:?}", names(1)));
                let line = of(1)[at]["line"].as_u64().and_then(|line| u32::try_from(line).ok());
                assert!(line.is_some_and(|line| kernel.contains(&line)), "{n}: {line:?}");
                let main = &of(1)[at + 1];
                assert_eq!(
                    (&main["function"], of(1).len()),
                    (&Value::from("main"), at + 2),
                    "{:?}",
                    names(1)
                );
                assert_eq!(main["line"], program.line_of("main computes"));
                // It sleeps, or looks for the file.
                assert!(names(2).ends_with(&["sleeps".into(), "main".into()]), "{n}: {:?}", names(2));
                // This one could not be stopped without harm.
                assert_eq!(names(3), [""; 0], "{n}");
                assert!(said.stderr.contains(why), "{n}: {}", said.stderr);
                let told = found["culprit"]["told"].as_str().unwrap_or_default();
                assert!(told.contains(" (now in ") && told.contains(" at outside.c:"), "{told}");
            }
            std::fs::write(parts.with_file_name("go"), "").unwrap_or_else(|e| panic!("{e}"));
        });
        assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    }
}
