//! Replays in time, with other sizes, without files, and those that do not end well. Nothing here goes by how long something
//! takes, but for the least that it must. Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use refrain_e2e::json::Json;
use refrain_e2e::machine::Room;
use refrain_e2e::run::words;
use refrain_e2e::{Library, Program, build, run};

const LIBRARIES: [Library; 2] = [Library::Mpich, Library::OpenMpi];

fn program(name: &str) -> Program {
    match name {
        "pingpong" => Program::unwitnessed("pingpong.c"),
        "pairs" => Program::unwitnessed("pairs.c"),
        "one_file" => Program::unwitnessed("one_file.c"),
        name => Program::named(name),
    }
}

/// A trace `first.rfn` of a program, on two ranks; its folder.
fn recorded(library: Library, name: &str, args: &[&str], options: &[&str]) -> PathBuf {
    recorded_on(2, library, name, args, options)
}

fn recorded_on(ranks: u32, library: Library, name: &str, args: &[&str], options: &[&str]) -> PathBuf {
    let folder = run::folder(&format!("replay-time-{name}"));
    fs::copy(program(name).build(library), folder.join("app")).unwrap();
    fs::create_dir(folder.join("scratch")).unwrap();
    run::trace_app(&folder, library, "first.rfn", ranks, args, options);
    folder
}

fn replay_of(trace: &str, library: Library, ranks: u32, options: &[&str]) -> Vec<String> {
    let mut command = words(&["replay", trace, "--scratch", "scratch"]);
    command.extend(words(options));
    command.push("--".into());
    command.extend(run::launcher(library, ranks));
    command
}

/// Replays it. Nothing may be left of it.
fn replayed(folder: &Path, library: Library, options: &[&str]) -> run::Outcome {
    let outcome = run::refrain_in(&[], folder, &replay_of("first.rfn", library, 2, options));
    nothing_is_left(folder);
    outcome
}

fn nothing_is_left(folder: &Path) {
    let left: Vec<_> = fs::read_dir(folder.join("scratch")).unwrap().flatten().map(|e| e.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[track_caller]
fn says(outcome: &run::Outcome, code: i32, text: &str) {
    let all = format!("{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.code, code, "{all}");
    assert!(all.contains(text), "{text}: {all}");
}

/// How long the ranks were at it after `MPI_Init`, by what the replay says.
fn took(outcome: &run::Outcome) -> Duration {
    let said = outcome.stdout.split_once(" calls again in ").and_then(|(_, rest)| rest.split_once(" after"));
    let (number, unit) = said.and_then(|(said, _)| said.split_once(' ')).expect("how long it took");
    let second = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        unit => panic!("{number} {unit}"),
    };
    Duration::from_secs_f64(number.parse::<f64>().unwrap() * second)
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn computation_takes_its_time() {
    const MILLISECONDS: &str = "300";
    for library in LIBRARIES {
        for (time, word) in [
            ("exact", "as recorded, call by call"),
            ("binned=1.1", "as recorded, call by call"),
            ("histogram", "drawn for each kind of call after another"),
            ("mean", "spread evenly over its calls"),
        ] {
            let folder = recorded(library, "pingpong", &[MILLISECONDS], &["--time", time]);
            let several: &[(&[&str], u64)] = match time {
                "exact" => &[(&[], 240), (&["--sleep", "--speed", "2"], 120)],
                "histogram" => &[(&["--check", "--compute", "0.5"], 120)],
                _ => &[(&[], 240)],
            };
            for (options, least) in several {
                let outcome = replayed(&folder, library, options);
                let took = took(&outcome);
                says(&outcome, 0, word);
                assert!(took >= Duration::from_millis(*least), "{time}, {options:?}: {took:?}");
            }
        }
        let folder = recorded(library, "pingpong", &["5"], &["--time", "off"]);
        says(&replayed(&folder, library, &["--check"]), 0, "as fast as it can");
        says(&replayed(&folder, library, &["--speed", "1"]), 2, "record it without `--time off`");
        let folder = recorded(library, "pingpong", &["5"], &["--time", "exact"]);
        says(&replayed(&folder, library, &["--speed", "0"]), 0, "as fast as it can");
    }
}

/// The calls of a traced replay with these options.
fn calls_of_replay(folder: &Path, library: Library, options: &[&str]) -> Vec<Json> {
    let mut command = words(&["run", "--quiet", "--force", "--out", "again.rfn", "--"]);
    command.push(build::refrain().to_string_lossy().into_owned());
    command.extend(replay_of("first.rfn", library, 2, options));
    let outcome = run::refrain_in(&[], folder, &command);
    assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
    calls_of(folder, "again.rfn")
}

fn calls_of(folder: &Path, trace: &str) -> Vec<Json> {
    let shown = run::refrain_in(&[], folder, &words(&["dump", trace, "--format", "json"]));
    shown.stdout.lines().map(|line| Json::parse(line).unwrap()).collect()
}

fn name_of(call: &Json) -> String {
    call.get("call").text().unwrap_or_default().to_owned()
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn messages_of_another_size_and_runs_without_files() {
    for library in LIBRARIES {
        let folder = recorded(library, "stencil2d", &["3"], &[]);
        let counts = |calls: &[Json]| -> Vec<(String, i64)> {
            let count = |call: &Json| Some((name_of(call), call.get("args").get("count").int()?));
            calls.iter().filter_map(count).collect()
        };
        let before = counts(&calls_of(&folder, "first.rfn"));
        let after = counts(&calls_of_replay(&folder, library, &["--speed", "0", "--message-size", "3"]));
        assert!(!before.is_empty());
        let longer = |(name, count): &(String, i64)| match &**name {
            "MPI_Waitall" => (name.clone(), *count),
            _ => (name.clone(), 3 * count),
        };
        assert_eq!(after, before.iter().map(longer).collect::<Vec<_>>());
        let outcome = replayed(&folder, library, &["--message-size", "2", "--check"]);
        says(&outcome, 2, "leave out --check or --message-size");

        let folder = recorded(library, "io", &[], &[]);
        let outcome = replayed(&folder, library, &["--no-io", "--check"]);
        says(&outcome, 0, "calls were left out with the files\nequal: ");
        let calls = calls_of_replay(&folder, library, &["--no-io"]);
        assert!(calls.iter().any(|call| name_of(call).starts_with("MPI_Wait")));
        assert!(calls.iter().all(|call| !name_of(call).starts_with("MPI_File_")));
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn some_ranks_without_the_others() {
    for library in LIBRARIES {
        let folder = recorded_on(4, library, "pairs", &[], &[]);
        let replay = |ranks: u32, options: &[&str]| {
            let outcome = run::refrain_in(&[], &folder, &replay_of("first.rfn", library, ranks, options));
            nothing_is_left(&folder);
            outcome
        };
        says(&replay(2, &["--ranks", "1,3"]), 0, "2 ranks made ");
        says(&replay(4, &["--check"]), 0, "equal: ");
        says(&replay(2, &["--ranks", "0,1"]), 2, "rank 0, call 3, MPI_Sendrecv(dest=2, ");
        says(
            &replay(1, &["--ranks", "3"]),
            2,
            "rank 3, call 3, MPI_Sendrecv(dest=1, source=1, comm=world): it needs rank 1",
        );
        says(&replay(3, &["--ranks", "1,3"]), 2, "started 3 ranks, --ranks names 2");
        says(&replay(2, &["--ranks", "1,4"]), 2, "there is no rank 4");
        says(&replay(2, &["--ranks", "1,3", "--check"]), 2, "leave out --check or --ranks");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn polls_are_made_where_they_are_asked_for() {
    for library in LIBRARIES {
        let folder = recorded(library, "completion", &[], &[]);
        let outcome = replayed(&folder, library, &["--speed", "0", "--check", "--polls"]);
        says(&outcome, 0, "equal: ");
        assert!(!outcome.stdout.contains("were left out"), "{}", outcome.stdout);
    }
}

/// In the recorded run rank 0 sends and receives, rank 1 receives and sends. Here rank 0 begins with receiving.
fn with_both_waiting(folder: &Path) {
    let text = run::refrain_in(&[], folder, &words(&["loops", "--text", "first.rfn"])).stdout;
    let number = |function: &str| {
        let line = text.lines().find(|line| line.contains(function)).unwrap();
        format!("e{}", line.split(' ').nth(1).unwrap())
    };
    let (send, receive) = (number("# MPI_Send("), number("# MPI_Recv("));
    let exchanged = |line: &str| {
        let words = line.split(' ').map(|word| match word {
            word if word == send => receive.clone(),
            word if word == receive => send.clone(),
            word => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let first = |line: &str| line.starts_with("structure 0 ");
    let lines: Vec<String> =
        text.lines().map(|line| if first(line) { exchanged(line) } else { line.to_owned() }).collect();
    fs::write(folder.join("text"), lines.join("\n") + "\n").unwrap();
    let import = words(&["import", "text", "--digest", "--out", "stuck.rfn", "--force"]);
    assert_eq!(run::refrain_in(&[], folder, &import).code, 0);
}

fn a_standstill_is_told_and_ended(library: Library) {
    let folder = recorded(library, "pingpong", &["3"], &[]);
    with_both_waiting(&folder);
    let outcome = run::refrain_in(&[], &folder, &replay_of("stuck.rfn", library, 2, &["--patience", "30"]));
    nothing_is_left(&folder);
    says(&outcome, 2, "no rank has done anything for 30 s (--patience): the replay is ended");
    says(&outcome, 2, "rank 0: in call 3, MPI_Recv(source=1, tag=");
    says(&outcome, 2, "rank 1: in call 3, MPI_Recv(source=0, tag=1, comm=world)");
    says(&outcome, 2, "came to a standstill");
}

on_both!(a_standstill_is_told_and_ended);

/// The process of a rank of a replay that is under way.
fn process_of(scratch: &Path, rank: u32) -> u32 {
    let limit = Instant::now() + run::LONG;
    while Instant::now() < limit {
        for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
            let bytes = fs::read(entry.path().join(format!("state-{rank}"))).unwrap_or_default();
            let word = |at: usize| bytes.get(at..at + 8).map(|b| u64::from_le_bytes(b.try_into().unwrap()));
            // Past MPI_Init, so that every launcher knows of it.
            if let (Some(3..), Some(process @ 1..)) = (word(0), word(16)) {
                return process as u32;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("rank {rank} has not come to its third call");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_rank_that_is_killed_ends_the_replay() {
    for library in LIBRARIES {
        let folder = recorded(library, "pingpong", &["1000"], &[]);
        // Some minutes.
        let command = replay_of("first.rfn", library, 2, &["--compute", "300", "--sleep"]);
        // The wait for its third call begins when the replay does.
        let room = Room::for_ranks(2);
        let outcome = std::thread::scope(|scope| {
            let replay = scope.spawn(|| {
                room.is_for_this_thread();
                run::refrain_in(&[], &folder, &command)
            });
            run::kill("-9", &[(1, process_of(&folder.join("scratch"), 1))]);
            replay.join().unwrap()
        });
        nothing_is_left(&folder);
        says(&outcome, 2, "the replay ended early");
        says(&outcome, 2, "rank 1: gone, ");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn what_is_wrong_is_told() {
    for (library, other) in [(LIBRARIES[0], LIBRARIES[1]), (LIBRARIES[1], LIBRARIES[0])] {
        let folder = recorded(library, "pingpong", &["3"], &[]);
        for (ranks, told) in
            [(1, "started 1 ranks, the trace has 2"), (3, "started 3 ranks, the trace has 2")]
        {
            let outcome = run::refrain_in(&[], &folder, &replay_of("first.rfn", library, ranks, &[]));
            nothing_is_left(&folder);
            says(&outcome, 2, told);
        }
        // A library of another launcher, one that is none, and none.
        let libraries = fs::read_to_string("/proc/self/maps").unwrap();
        let libc = libraries
            .lines()
            .find_map(|line| line.split_whitespace().nth(5).filter(|p| p.contains("libc.so")));
        let mut command = replay_of("first.rfn", library, 2, &[]);
        command.truncate(command.len() - run::launcher(library, 2).len());
        command.extend(run::launcher(other, 2));
        let own = |library| program("pingpong").build(library);
        let linked = |library| {
            let shown = run::command(
                &folder,
                &[words(&["ldd"]), vec![own(library).to_string_lossy().into_owned()]].concat(),
                &[],
            );
            let line =
                shown.stdout.lines().find(|line| line.contains("libmpi")).unwrap_or_default().to_owned();
            line.split_whitespace().nth(2).unwrap_or_default().to_owned()
        };
        let with = |file: &str| replayed(&folder, library, &["--library", file]);
        says(&with(&linked(other)), 2, "it belongs to another launcher");
        says(&with(libc.unwrap()), 2, "has no MPI_Comm_rank");
        says(&with("/nowhere.so"), 2, "cannot open shared object file");
        says(
            &run::refrain_in(&[], &folder, &words(&["replay", "first.rfn", "--", "no-launcher"])),
            2,
            "there is no program no-launcher",
        );
        let nowhere = words(&["replay", "first.rfn", "--scratch", "nowhere", "--", "mpiexec"]);
        let mut nowhere = nowhere;
        nowhere.truncate(5);
        nowhere.extend(run::launcher(library, 2));
        says(&run::refrain_in(&[], &folder, &nowhere), 2, "--scratch names another");

        // Bytes that are not those that were written, at every place that is tried, and a file that is cut short.
        let bytes = fs::read(folder.join("first.rfn")).unwrap();
        for place in (0..bytes.len()).step_by(bytes.len() / 7) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x55;
            fs::write(folder.join("damaged.rfn"), damaged).unwrap();
            let outcome = run::refrain_in(&[], &folder, &replay_of("damaged.rfn", library, 2, &[]));
            says(&outcome, 2, "damaged.rfn");
        }
        fs::write(folder.join("damaged.rfn"), &bytes[..bytes.len() / 2]).unwrap();
        says(&run::refrain_in(&[], &folder, &replay_of("damaged.rfn", library, 2, &[])), 2, "damaged.rfn");
        nothing_is_left(&folder);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_run_that_did_not_finish_is_not_begun() {
    for library in LIBRARIES {
        let folder = recorded(library, "pingpong", &["3"], &[]);
        let text = run::refrain_in(&[], &folder, &words(&["loops", "--text", "first.rfn"])).stdout;
        fs::write(folder.join("text"), text.replace("\ncomplete yes\n", "\ncomplete no\n")).unwrap();
        assert_eq!(run::refrain_in(&[], &folder, &words(&["import", "text", "--out", "part.rfn"])).code, 0);
        let outcome = run::refrain_in(&[], &folder, &replay_of("part.rfn", library, 2, &[]));
        nothing_is_left(&folder);
        says(&outcome, 2, "it is not the whole run");
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_full_scratch_directory_is_told() {
    for library in LIBRARIES {
        let folder = recorded(library, "one_file", &[], &[]);
        // So many kilobytes: for nothing at all, and for what ranks say but not for the program's files.
        // Open MPI 4 says so itself, and lets the call succeed.
        let failed = if library == Library::Mpich { 1 } else { 0 };
        for (size, code) in [(8, 2), (16, failed)] {
            let script = format!("mount -t tmpfs -o size={size}k tmpfs scratch && exec \"$0\" \"$@\"");
            let command = replay_of("first.rfn", library, 2, &["--speed", "0"]);
            let before = ["unshare", "-rm", "sh", "-c", &script];
            let outcome = run::refrain_in(&before, &folder, &command);
            if outcome.stderr.contains("unshare: ") || outcome.stderr.contains("mount: ") {
                refrain_e2e::skipped("a full directory: no file system can be mounted here");
                return;
            }
            says(&outcome, code, "No space left on device");
        }
    }
}
