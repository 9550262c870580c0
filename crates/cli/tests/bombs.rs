//! Files of a few bytes that ask for the moon. Each command runs with a bound on its memory, and says something before it does
//! what would take for ever.

use crate::common;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use common::{Done, Scratch};

/// Of address space, for a file of 100 bytes.
const MEMORY: u64 = 512 << 20;

/// `MPI_Comm_split(world)` with a list of members, `MPI_Comm_dup(world)`, `MPI_Barrier` on the communicator with id 0 and on world,
/// `MPI_Send` to world: the bytes of their symbols, and how many lanes they have.
const SPLIT: (&str, u32) = ("990200060102", 6);
const DUP: (&str, u32) = ("8b0200060101", 2);
const BARRIER: (&str, u32) = ("610001", 0);
const BARRIER_WORLD: (&str, u32) = ("610006", 0);
const SEND: (&str, u32) = ("15000420010106", 3);

/// A text that `refrain import` makes a trace of.
fn text(
    ranks: u32,
    symbols: &[(&str, u32)],
    streams: &[&str],
    structures: &[&str],
    cohorts: &[(&str, &[u32])],
) -> String {
    let mut text =
        "refrain-text 1\nversion \"0.1.0\"\ncommand \"./bomb\"\nlibrary \"MPICH 4.0.2\"\n".to_owned();
    text += &format!("abi \"MPICH ABI\"\nranks {ranks}\nsplit yes\ntimed no\ncomplete yes\n");
    for (number, (bytes, lanes)) in symbols.iter().enumerate() {
        text += &format!("symbol {number} lanes {lanes} stack - time 0 0 0 bytes {bytes}\n");
    }
    for (number, terms) in streams.iter().enumerate() {
        text += &format!("stream {number} terms {terms} shape t0\n");
    }
    for (number, structure) in structures.iter().enumerate() {
        text += &format!("structure {number} {structure}\n");
    }
    for (number, (members, lanes)) in cohorts.iter().enumerate() {
        text += &format!("cohort members {members} structure {number} digest 0\n");
        lanes.iter().for_each(|lane| text += &format!("  lane {lane}\n"));
    }
    text
}

/// 10^12 sends.
fn calls() -> String {
    text(1, &[SEND], &["1", "7"], &["rules e0x1000000000000"], &[("0", &[0, 0, 1])])
}

fn bomb(place: &Scratch, name: &str, text: &str) {
    place.refrain_with(&format!("import - -o {name}"), text).check(0, "");
    assert!(place.read(name).len() < 150, "{name} is to be a small file");
}

fn bounded(place: &Scratch, words: &str) -> Command {
    let mut command = place.command(words);
    let bound = || {
        let limit = libc::rlimit { rlim_cur: MEMORY, rlim_max: MEMORY };
        // SAFETY: sets a limit of the new process.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
        Ok(())
    };
    // SAFETY: what it calls is async-signal-safe.
    unsafe { command.pre_exec(bound) };
    command
}

fn run(place: &Scratch, words: &str) -> Done {
    Done::of(bounded(place, words).output().unwrap())
}

/// Its first line on standard output. Then nobody listens any more, and it ends, with this exit code.
fn first_line(place: &Scratch, words: &str) -> (String, Option<i32>) {
    let mut command = bounded(place, words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (line, child.wait().unwrap().code())
}

/// What it says first, on standard error, while it is still at work.
fn begun(place: &Scratch, words: &str) -> (Child, String) {
    let mut command = bounded(place, words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = Vec::new();
    let stderr = child.stderr.as_mut().unwrap();
    // Byte by byte: what comes after the line stays in the pipe.
    let mut byte = [0];
    while stderr.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    (child, String::from_utf8(line).unwrap())
}

/// It says this first; then an interrupt ends it, and it leaves nothing behind.
fn interrupted(place: &Scratch, words: &str, said: &[&str]) {
    interrupted_writing(place, words, None, said);
}

/// The same, when it has begun to write this.
fn interrupted_writing(place: &Scratch, words: &str, out: Option<&str>, said: &[&str]) {
    let before = place.names();
    let (mut child, line) = begun(place, words);
    for part in said {
        assert!(line.contains(part), "{words}: {line}");
    }
    let is_begun = |name: &String| {
        out.is_none_or(|out| name.starts_with(&format!("{out}.{}", child.id())) && name.ends_with(".part"))
    };
    while !place.names().iter().any(is_begun) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // SAFETY: it is our child, and was not waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGINT), "{words}: {line}");
    assert_eq!(place.names(), before, "{words}");
}

#[test]
fn more_calls_than_anyone_can_wait_for() {
    let place = Scratch::new("calls");
    bomb(&place, "b.rfn", &calls());
    let many = "1,000,000,000,000 calls to go through one by one, about 11 days";
    interrupted(&place, "verify b.rfn", &[many, "Ctrl-C ends it"]);
    interrupted(&place, "dump b.rfn --format json", &[many, "about 90.9 TiB to write", "--limit N"]);
    for (to, out) in [("chrome", "out.json"), ("csv", "out.csv"), ("paje", "out.paje"), ("simgrid", "out")] {
        let words = format!("export b.rfn --to {to} -o {out}");
        interrupted_writing(&place, &words, Some(out), &[many, "TiB to write"]);
    }
    for some in ["--only MPI_Recv", "--ranks 0", "--limit 5 --only MPI_Recv", "--calls 7.."] {
        interrupted(&place, &format!("dump b.rfn {some}"), &["b.rfn: ", " calls to go through one by one"]);
    }
    let (line, code) = first_line(&place, "dump b.rfn");
    assert!(line.starts_with("[0]            0  MPI_Send("), "{line}");
    assert_eq!(code, Some(0));
    let limited = run(&place, "dump b.rfn --limit 3");
    assert_eq!(limited.check(0, "").out.lines().count(), 3);
    assert!(limited.err.is_empty(), "{}", limited.err);
    let last = run(&place, "dump b.rfn --calls 999999999999..");
    assert_eq!(last.check(0, "").out.lines().count(), 1);
    for words in ["info", "stats", "stats --plot", "report -o -", "loops", "loops --json", "diff b.rfn"] {
        let (command, rest) = words.split_once(' ').unwrap_or((words, ""));
        assert!(!run(&place, &format!("{command} b.rfn {rest}")).check(0, "").out.is_empty(), "{words}");
    }
    assert!(run(&place, "loops b.rfn").out.contains("1,000,000,000,000 times"));
    run(&place, "proxy b.rfn -o -").check(2, "more calls than one would wait for");
    // Loops are found in fewer of them, which also become a program: what takes seconds is said too.
    let two = [SEND, BARRIER_WORLD];
    let in_turn = |turns: u64| {
        text(1, &two, &["1", "7"], &[&format!("rules r1x{turns} | e0 e1")], &[("0", &[0, 0, 1])])
    };
    bomb(&place, "c.rfn", &in_turn(30_000_000));
    for words in ["loops c.rfn", "loops c.rfn --json", "proxy c.rfn -o out.c"] {
        let (mut child, line) = begun(&place, words);
        let said = "c.rfn: 60,000,000 calls to go through one by one, about 60 seconds";
        assert!(line.contains(said), "{words}: {line}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // Traces that fold in different ways are compared call by call.
    bomb(&place, "d.rfn", &in_turn(500_000_000_000));
    let looped =
        text(1, &two, &["1", "7", "500000000000"], &["loops l2 e0 e1"], &[("0", &[2, 0, 0, 0, 0, 1])]);
    bomb(&place, "e.rfn", &looped);
    interrupted(&place, "diff d.rfn e.rfn", &["d.rfn: ", many]);
    assert!(run(&place, "diff d.rfn d.rfn").check(0, "").err.is_empty());
}

/// Also where something else is there already.
#[test]
fn what_was_there_is_whole_after_an_interrupt_and_after_an_error() {
    let place = Scratch::new("whole");
    bomb(&place, "b.rfn", &calls());
    let few = text(1, &[SEND], &["1", "7"], &["rules e0x3"], &[("0", &[0, 0, 1])]);
    bomb(&place, "few.rfn", &few);
    let broken = text(1, &[SPLIT], &["0", "60000000"], &["rules e0"], &[("0", &[0, 0, 0, 0, 1, 0])]);
    bomb(&place, "broken.rfn", &broken);
    run(&place, "export few.rfn --to simgrid -o old").check(0, "");
    let read = || ["list.txt", "rank-0.txt", "platform.xml"].map(|name| place.read(&format!("old/{name}")));
    let old = read();
    assert!(String::from_utf8_lossy(&old[0]).contains("/old/rank-0.txt"), "{:?}", old[0]);
    let words = "export b.rfn --to simgrid -o old --force";
    interrupted_writing(&place, words, Some("old"), &["1,000,000,000,000 calls"]);
    assert_eq!(read(), old);
    let names = place.names();
    run(&place, "export broken.rfn --to simgrid -o old --force").check(2, "60000000 elements");
    assert_eq!((read(), place.names()), (old.clone(), names.clone()));
    run(&place, "export few.rfn --to simgrid -o old").check(2, "old");
    run(&place, "export few.rfn --to simgrid -o old --force").check(0, "");
    assert_eq!((read(), place.names()), (old, names));
    place.file("chrome.json", "theirs");
    interrupted_writing(&place, "export b.rfn --to chrome -o chrome.json --force", Some("chrome.json"), &[]);
    assert_eq!(place.read("chrome.json"), b"theirs");
}

/// The same in loops, of which the order of the calls is read off too.
#[test]
fn loops_of_more_turns_than_anyone_can_wait_for() {
    let place = Scratch::new("loops");
    let streams = ["1", "7", "1000000000000"];
    let looped = text(1, &[SEND], &streams, &["loops l1 e0"], &[("0", &[2, 0, 0, 0, 1])]);
    bomb(&place, "b.rfn", &looped);
    interrupted(&place, "verify b.rfn", &["1,000,000,000,000 calls"]);
    assert!(run(&place, "loops b.rfn").check(0, "").out.contains("1,000,000,000,000 times"));
    assert!(first_line(&place, "dump b.rfn").0.contains("MPI_Send("));
}

#[test]
fn arrays_that_fill_no_memory() {
    let place = Scratch::new("arrays");
    let one = |length: &str| text(1, &[SPLIT], &["0", length], &["rules e0"], &[("0", &[0, 0, 0, 0, 1, 0])]);
    bomb(&place, "b.rfn", &one("60000000"));
    let refused =
        "has 60000000 elements, and the arrays of a call are read up to 1048576: --elements N allows N";
    for words in ["dump b.rfn", "export b.rfn --to chrome -o out.json"] {
        run(&place, words).check(2, refused);
    }
    // Only calls that are those of the digest become a program.
    run(&place, "proxy b.rfn -o out.c").check(2, "their digest differs");
    assert_eq!(place.names(), ["b.rfn", "library.so"]);
    place.refrain_with("import --digest - -o p.rfn", one("60000000")).check(0, "");
    run(&place, "proxy p.rfn -o out.c").check(2, refused);
    assert_eq!(place.names(), ["b.rfn", "library.so", "p.rfn"]);
    // All numbers are read, and none is kept.
    let verify = run(&place, "verify b.rfn");
    assert!(verify.check(1, "").out.contains("their digest differs"), "{}", verify.out);
    bomb(&place, "c.rfn", &one("2000000"));
    run(&place, "dump c.rfn").check(2, "has 2000000 elements");
    let all = run(&place, "dump c.rfn --elements 2000000");
    assert_eq!(all.check(0, "").out.matches("0, ").count(), 1_999_999 + 2);
    let many = ["rules e0x1000000000000"];
    bomb(&place, "d.rfn", &text(1, &[SPLIT], &["0", "1000000"], &many, &[("0", &[0, 0, 0, 0, 1, 0])]));
    let said = "1,000,000,000,000 calls with 1,000,000,000,000,000,000 numbers in arrays";
    interrupted(&place, "verify d.rfn", &[said]);
    interrupted(&place, "dump d.rfn", &[said]);
}

/// Threads use communicators that others made, so the calls that make them are looked through first: not any number.
#[test]
fn threads_that_make_communicators_for_ever() {
    let place = Scratch::new("threads");
    let rules = ["rules e0x33000000000000 e1", "rules e1 e0x33000000000000"];
    let cohorts: [(&str, &[u32]); 2] = [("0", &[0, 0]), ("1", &[0, 0])];
    bomb(&place, "b.rfn", &text(1, &[DUP, BARRIER], &["0"], &rules, &cohorts));
    let (line, code) = first_line(&place, "dump b.rfn");
    assert!(line.contains("MPI_Comm_dup(comm=world, newcomm=world.0)"), "{line}");
    assert_eq!(code, Some(0));
    // Who has made it is not known, so it is not named, nor are peers in it.
    run(&place, "dump b.rfn --thread 1").check(2, "MPI_Barrier uses a communicator or window that");
    interrupted(&place, "verify b.rfn", &["66,000,000,000,002 calls"]);
    run(&place, "proxy b.rfn -o -").check(2, "more calls than one would wait for");
    // One call that makes one, behind 10^12 others, in loops.
    let streams = ["0", "1", "1000000000000"];
    let late = ["loops l1 e0 e1 e2"];
    let lanes: &[u32] = &[2, 1, 1, 1, 0, 0];
    bomb(&place, "c.rfn", &text(1, &[BARRIER_WORLD, DUP, BARRIER], &streams, &late, &[("0x2:1", lanes)]));
    assert!(first_line(&place, "dump c.rfn").0.contains("MPI_Barrier(comm=world)"));
    run(&place, "dump c.rfn --calls 1000000000001..").check(2, "MPI_Barrier uses a communicator");
    // The same behind fewer. The threads pass by 2^24 together and not each, to know what others made; these made another one.
    for (others, known) in [(8_000_000, true), (9_000_000, false)] {
        let (times, name) = (others.to_string(), format!("{others}.rfn"));
        let streams = ["0", "2", &times, "1"];
        let lanes: &[u32] = &[2, 3, 3, 3, 1, 0];
        let text = text(1, &[BARRIER_WORLD, DUP, BARRIER], &streams, &late, &[("0x2:1", lanes)]);
        bomb(&place, &name, &text);
        let done = run(&place, &format!("dump {name} --thread 1 --calls {}..", others + 1));
        match known {
            true => assert!(done.check(0, "").out.contains("MPI_Barrier(comm=comm#0)"), "{}", done.out),
            false => drop(done.check(2, "--elements N looks through N of them")),
        }
        let more =
            run(&place, &format!("dump {name} --thread 1 --elements 2000000 --calls {}..", others + 1));
        assert!(more.check(0, "").out.contains("MPI_Barrier(comm=comm#0)"), "{}", more.out);
    }
}

/// A number that no program gives a thread, but a file may: nobody goes through all below it.
#[test]
fn a_thread_with_a_high_number() {
    let place = Scratch::new("high");
    let rules = ["rules e0x3", "rules e1"];
    let cohorts: [(&str, &[u32]); 2] = [("0", &[0, 0, 1]), ("268435456", &[])];
    bomb(&place, "b.rfn", &text(1, &[SEND, BARRIER_WORLD], &["1", "7"], &rules, &cohorts));
    let dump = run(&place, "dump b.rfn --limit 5");
    let lines: Vec<&str> = dump.check(0, "").out.lines().collect();
    assert!(lines.len() == 4 && lines[3].starts_with("[0.268435456]"), "{lines:?}");
    for words in ["info b.rfn", "stats b.rfn", "stats b.rfn --json", "loops b.rfn", "report b.rfn -o -"] {
        assert!(!run(&place, words).check(0, "").out.is_empty(), "{words}");
    }
    run(&place, "verify b.rfn").check(1, "");
    run(&place, "dump b.rfn --thread 268435455").check(0, "");
}

#[test]
fn communicators_without_end_take_no_memory() {
    let place = Scratch::new("comms");
    let streams = ["0", "0:2:1000000000000"];
    let rules = ["rules e0x1000000000000 e1"];
    bomb(&place, "b.rfn", &text(1, &[DUP, BARRIER], &streams, &rules, &[("0", &[1, 0])]));
    run(&place, "dump b.rfn --only MPI_Barrier")
        .check(2, "more than 1048576 communicators or windows at a time");
    // Each from the one before: its name has the other's in it. Then many from one with a long name.
    for (ids, shape) in [("0", "t0"), ("0 2:2:1000000000000", "t0x40000 t1")] {
        let again = ("8b0200010101", 2);
        let (streams, rules) = (["0", "IDS"], ["rules e0 e1x1000000000000 e2"]);
        let text = text(1, &[DUP, again, BARRIER], &streams, &rules, &[("0", &[0, 0, 1, 0])]);
        let ids = format!("terms {ids} shape {shape}");
        place
            .refrain_with("import - -o n.rfn --force", text.replace("terms IDS shape t0", &ids))
            .check(0, "");
        run(&place, "dump n.rfn --only MPI_Barrier").check(2, "communicators were made from one another");
        run(&place, "stats n.rfn").check(0, "");
    }
}

#[test]
fn ranks_without_end() {
    let place = Scratch::new("ranks");
    let all: [(&str, &[u32]); 1] = [("0x16777216:1", &[0, 0, 1])];
    bomb(&place, "b.rfn", &text(1 << 24, &[SEND], &["1", "7"], &["rules e0x1000000000000"], &all));
    run(&place, "info b.rfn")
        .check(0, "it has 16,777,216 threads of ranks, which may take 3.12 GiB of memory");
    assert_eq!(run(&place, "dump b.rfn --limit 1").check(0, "").out.lines().count(), 1);
    assert!(run(&place, "loops b.rfn").check(0, "").out.contains("all 16,777,216 ranks"));
}

/// A block of code with one load of 8 bytes, 10^12 times.
#[test]
fn references_without_end() {
    let place = Scratch::new("references");
    let references = text(1, &[("80200020", 1)], &["4096"], &["rules e0x1000000000000"], &[("0", &[0])]);
    bomb(&place, "b.rfn", &references.replace("MPICH ABI", "memory"));
    let many = "1,000,000,000,000 references to go through one by one, about 11 days";
    interrupted(&place, "verify b.rfn", &[many]);
    interrupted(&place, "stats b.rfn", &[many]);
    interrupted(&place, "report b.rfn -o out.html", &[many]);
    interrupted(&place, "dump b.rfn --json", &[many, "--limit N"]);
    assert!(first_line(&place, "dump b.rfn").0.contains("load"));
    assert_eq!(run(&place, "dump b.rfn --limit 3").check(0, "").out.lines().count(), 3);
    assert_eq!(run(&place, "dump b.rfn --calls 999999999999..").check(0, "").out.lines().count(), 1);
    assert!(run(&place, "info b.rfn").check(0, "").out.contains("1,000,000,000,000"));
}

/// A record of PDATS that stands for 2^32 references, and says so in five bytes.
#[test]
fn address_traces_without_end() {
    let place = Scratch::new("addresses");
    let short: String = (0..10).map(|i| format!("0 {:x}\n", i * 8)).collect();
    place.file("short.din", short);
    place.refrain("convert short.din short.pdt64").check(0, "");
    let bytes = place.read("short.pdt64");
    let at = bytes
        .windows(3)
        .position(|three| three == [0x88, 8, 8])
        .expect("eight more references, 8 bytes apart");
    let mut long = bytes[..=at].to_vec();
    long.extend([0xfe, 0xff, 0xff, 0xff, 0x0f]);
    long.push(bytes[at + 2]);
    place.file("b.pdt64", long);
    let many = "references to go through one by one, about 71 minutes";
    let said = ["b.pdt64: 4,294,967,", many, "--limit N"];
    interrupted_writing(&place, "convert b.pdt64 out.pdt64", Some("out.pdt64"), &said);
    interrupted(&place, "convert b.pdt64 - --to din", &[many]);
    interrupted(&place, "stats b.pdt64", &[many]);
    interrupted(&place, "simulate b.pdt64 --l1d 32K,8,64", &[many]);
    let few = run(&place, "convert b.pdt64 - --to din --limit 3");
    assert_eq!(few.check(0, "").out.lines().count(), 3);
}
