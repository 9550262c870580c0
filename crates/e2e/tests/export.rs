//! `refrain export`, read back by the tools the formats are for: `otf2-print` and Debian's `python3-otf2` find the calls that
//! `stats` counts, and `smpirun -replay` comes to the end.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use refrain_e2e::json::Json;
use refrain_e2e::run::{self, Traced};
use refrain_e2e::{Library, Program, skipped};

/// Reads an archive: calls by function, and events by kind, as lines of `enter NAME COUNT` and `event KIND COUNT`.
const READ: &str = r#"
import collections, sys, otf2
from otf2.events import Enter, Leave, MpiIrecv, MpiIsend, MpiRecv, MpiSend
calls, kinds, open_calls = collections.Counter(), collections.Counter(), collections.Counter()
last = {}
with otf2.reader.open(sys.argv[1]) as trace:
    for location, event in trace.events:
        kinds[type(event).__name__] += 1
        assert event.time >= last.get(location, 0), "time goes back"
        last[location] = event.time
        if isinstance(event, Enter):
            calls[event.region.name] += 1
            open_calls[location] += 1
        elif isinstance(event, Leave):
            open_calls[location] -= 1
        else:
            assert open_calls[location] == 1, "a record outside of any call"
        if isinstance(event, (MpiSend, MpiIsend)): kinds["bytes-sent"] += event.msg_length
        if isinstance(event, (MpiRecv, MpiIrecv)): kinds["bytes-received"] += event.msg_length
assert not any(open_calls.values()), "a call that never ends"
for name, count in calls.items(): print("enter", name, count)
for name, count in kinds.items(): print("event", name, count)
"#;

fn there(words: &[&str]) -> bool {
    let command =
        Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    command.is_ok_and(|status| status.success())
}

fn traced(library: Library, source: &'static str, options: &[(&'static str, &str)]) -> Traced {
    let traced = run::traced_with(library, &Program::unwitnessed(source), 4, options);
    assert_eq!(traced.outcome.code, 0, "{source}: {}", traced.outcome.stderr);
    traced
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Exports next to the trace; what was said.
fn export(traced: &Traced, format: &str, out: &Path, more: &[&str]) -> String {
    let (trace, out) = (text(&traced.trace), text(out));
    let done = run::refrain(&[&["export", &trace, "--to", format, "-o", &out], more].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
    done.stderr
}

/// Calls by function, as `stats` counts them.
fn counted(traced: &Traced) -> BTreeMap<String, u64> {
    let stats = run::refrain(&["stats", &text(&traced.trace), "--json"]);
    assert_eq!(stats.code, 0, "{}", stats.stderr);
    let stats = Json::parse(&stats.stdout).unwrap();
    let row = |row: &Json| Some((row.get("function").text()?.to_owned(), row.get("calls").int()? as u64));
    let rows: BTreeMap<String, u64> = stats.get("functions").list().iter().filter_map(row).collect();
    assert!(!rows.is_empty());
    rows
}

/// Calls by function, as `otf2-print` shows them.
fn printed(traced: &Traced, archive: &Path) -> BTreeMap<String, u64> {
    let shown = run::command(traced.folder(), &run::words(&["otf2-print", &text(archive)]), &[]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let mut calls = BTreeMap::new();
    for line in shown.stdout.lines().filter(|line| line.starts_with("ENTER ")) {
        let name = line.split('"').nth(1).unwrap_or_else(|| panic!("{line}"));
        *calls.entry(name.to_owned()).or_default() += 1;
    }
    calls
}

/// Calls by function, and events by kind, as `python3-otf2` reads them.
fn read(traced: &Traced, archive: &Path) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let words = run::words(&["/usr/bin/python3", "-c", READ, &text(archive)]);
    let shown = run::command(traced.folder(), &words, &[]);
    assert_eq!(shown.code, 0, "{}{}", shown.stdout, shown.stderr);
    let rows = |kind: &str| {
        let row = |line: &str| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        };
        shown.stdout.lines().filter(|line| line.starts_with(kind)).filter_map(row).collect()
    };
    (rows("enter"), rows("event"))
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn an_otf2_archive_has_all_calls() {
    if !there(&["otf2-print", "--version"]) || !there(&["/usr/bin/python3", "-c", "import otf2"]) {
        return skipped("otf2-print or python3-otf2 is not installed (`scripts/setup test`)");
    }
    let exact: &[(&str, &str)] = &[("REFRAIN_TIME", "exact"), ("REFRAIN_STACKS", "site")];
    let programs: [(&str, &[(&str, &str)]); 7] = [
        ("stencil2d.c", &[]),
        ("ring.c", &[("REFRAIN_TIME", "off")]),
        ("collectives.c", &[("REFRAIN_TIME", "histogram")]),
        ("masterworker.c", exact),
        ("persistent.c", exact),
        ("icollectives.c", &[]),
        // Threads that use what others make and free.
        ("threads4.c", &[]),
    ];
    for library in Library::ALL {
        for (source, options) in programs {
            let traced = traced(library, source, options);
            let out = traced.folder().join("otf2");
            let said = export(&traced, "otf2", &out, &[]);
            let made_up = said.contains("times are");
            assert_eq!(made_up, options != exact, "{source}: {said}");
            let archive = out.join("traces.otf2");
            let calls = counted(&traced);
            assert_eq!(printed(&traced, &archive), calls, "{source}");
            let (entered, events) = read(&traced, &archive);
            assert_eq!(entered, calls, "{source}");
            let of = |kinds: &[&str]| -> u64 { kinds.iter().filter_map(|kind| events.get(*kind)).sum() };
            let all: u64 = calls.values().sum();
            assert_eq!((of(&["Enter"]), of(&["Leave"])), (all, all), "{source}: {events:?}");
            // In these programs nobody sends what nobody receives, and all that begins is completed.
            assert_eq!(of(&["MpiSend", "MpiIsend"]), of(&["MpiRecv", "MpiIrecv"]), "{source}: {events:?}");
            assert_eq!(of(&["bytes-sent"]), of(&["bytes-received"]), "{source}: {events:?}");
            assert_eq!(of(&["MpiIsend"]), of(&["MpiIsendComplete"]), "{source}: {events:?}");
            assert_eq!(of(&["MpiIrecvRequest"]), of(&["MpiIrecv"]), "{source}: {events:?}");
            assert_eq!(of(&["MpiCollectiveBegin"]), of(&["MpiCollectiveEnd"]), "{source}: {events:?}");
            let (asked, complete) = ("NonBlockingCollectiveRequest", "NonBlockingCollectiveComplete");
            assert_eq!(of(&[asked]), of(&[complete]), "{source}: {events:?}");
            let sends = of(&["MpiSend", "MpiIsend"]);
            let asks = |names: &[&str]| names.iter().filter_map(|name| calls.get(*name)).sum::<u64>();
            let blocking = asks(&["MPI_Send", "MPI_Isend", "MPI_Sendrecv"]);
            assert!(source == "persistent.c" || sends <= blocking, "{source}: {events:?} {calls:?}");
            assert!(source != "threads4.c" || sends == blocking, "{events:?} {calls:?}");
            assert!(sends > 0 || source.contains("collectives"), "{source}: {events:?}");
        }
    }
}

/// Two ranks of four, and half of the time: fewer calls, and what is there is what `dump` shows.
#[test]
#[ignore = "needs MPI: `make test`"]
fn some_ranks_and_some_time() {
    if !there(&["otf2-print", "--version"]) {
        return skipped("otf2-print is not installed (`scripts/setup test`)");
    }
    let traced = traced(Library::Mpich, "stencil2d.c", &[("REFRAIN_TIME", "exact")]);
    let out = traced.folder().join("otf2");
    export(&traced, "otf2", &out, &["--ranks", "1,3"]);
    let calls: u64 = printed(&traced, &out.join("traces.otf2")).values().sum();
    let dumped = traced.dump();
    assert_eq!(calls as usize, dumped[1].len() + dumped[3].len());
    // The middle of the run, by its own times.
    let starts: Vec<i64> = dumped[0].iter().filter_map(|call| call.get("start").int()).collect();
    let (from, to) = (starts[starts.len() / 3], starts[2 * starts.len() / 3]);
    let between = format!("{}..{}", from as f64 * 1e-9, to as f64 * 1e-9);
    export(&traced, "otf2", &out, &["--force", "--between", &between]);
    let trace = text(&traced.trace);
    let shown = run::refrain(&["dump", &trace, "--between", &between]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let calls: u64 = printed(&traced, &out.join("traces.otf2")).values().sum();
    assert_eq!(calls as usize, shown.stdout.lines().count());
    assert!(calls > 0 && (calls as usize) < dumped.iter().map(Vec::len).sum());
    // What is there stays without --force; a folder of somebody else's stays even with it.
    let out = text(&out);
    let refused = run::refrain(&["export", &trace, "--to", "otf2", "-o", &out]);
    assert!(refused.code == 2 && refused.stderr.contains("--force"), "{}", refused.stderr);
    let theirs = text(traced.folder());
    let refused = run::refrain(&["export", &trace, "--to", "otf2", "--force", "-o", &theirs]);
    assert!(refused.code == 2 && refused.stderr.contains("something else"), "{}", refused.stderr);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn simgrid_replays_to_the_end() {
    if !there(&["smpirun", "-version"]) {
        return skipped("smpirun is not installed (`scripts/setup test`)");
    }
    let programs =
        ["stencil2d.c", "ring.c", "collectives.c", "pipeline2d.c", "masterworker.c", "icollectives.c"];
    for library in Library::ALL {
        for source in programs {
            let traced = traced(library, source, &[]);
            let out = traced.folder().join("simgrid");
            let said = export(&traced, "simgrid", &out, &[]);
            assert!(said.contains("smpirun -np 4"), "{said}");
            let file = |name: &str| text(&out.join(name));
            let (platform, hosts, list) = (file("platform.xml"), file("hosts.txt"), file("list.txt"));
            let words =
                ["smpirun", "-np", "4", "-platform", &platform, "-hostfile", &hosts, "-replay", &list];
            let replayed = run::command(traced.folder(), &run::words(&words), &[]);
            let all = format!("{source}: {}{}", replayed.stdout, replayed.stderr);
            assert_eq!(replayed.code, 0, "{all}");
            assert!(all.contains("Simulation time"), "{all}");
            assert!(!all.contains("talling") && !all.contains("eadlock"), "{all}");
            // As many messages are sent as are received.
            let actions = |kinds: &[&str]| -> usize {
                let files =
                    (0..4).map(|rank| std::fs::read_to_string(out.join(format!("rank-{rank}.txt"))).unwrap());
                files
                    .map(|text| {
                        text.lines().filter(|l| kinds.contains(&l.split(' ').nth(1).unwrap())).count()
                    })
                    .sum()
            };
            assert_eq!(actions(&["send", "isend"]), actions(&["recv", "irecv"]), "{source}");
            assert_eq!((actions(&["init"]), actions(&["finalize"])), (4, 4), "{source}");
        }
    }
}
