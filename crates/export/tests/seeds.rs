//! Stored traces of real runs, exported.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use refrain_export::{Error, Format, Input, Output, Report, export};
use refrain_sites::Binaries;
use refrain_tracefile::Trace;

fn seeds() -> Vec<(String, Trace)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../views/tests/seeds");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut traces = Vec::new();
    for path in files.filter(|path| path.extension().is_some_and(|end| end == "rfn")) {
        let trace = refrain_tracefile::read(&fs::read(&path).unwrap()).unwrap();
        traces.push((path.file_stem().unwrap().to_string_lossy().into_owned(), trace));
    }
    assert!(traces.len() > 10);
    traces
}

/// A fresh name in a folder of this test.
fn out(test: &str, name: &str) -> Output {
    let folder = std::env::temp_dir().join(format!("refrain-export-{test}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    Output::new(folder.join(name), false)
}

fn written(format: Format, trace: &Trace, out: &Output) -> Result<Report, Error> {
    let names = Binaries::new(&trace.bundle.sites, &[]);
    let mut input = Input {
        trace,
        times: None,
        names: &names,
        ranks: None,
        between: None,
        only: None,
        progress: &mut |_| {},
    };
    export(format, &mut input, out)
}

/// Source, destination and tag.
type Key = (u32, u32, i64);

/// Every message is sent as often as it is received, unless the export said that some are `unclear`; and what is waited for was
/// begun.
fn check_actions(name: &str, folder: &Path, ranks: u32, unclear: bool) {
    let (mut sent, mut received) = (BTreeMap::<Key, u64>::new(), BTreeMap::<Key, u64>::new());
    for rank in 0..ranks {
        let text = fs::read_to_string(folder.join(format!("rank-{rank}.txt"))).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(lines.first().map(|words| words[1]), Some("init"), "{name}");
        assert_eq!(lines.last().map(|words| words[1]), Some("finalize"), "{name}");
        let mut open = HashSet::new();
        for words in &lines {
            assert_eq!(words[0], rank.to_string(), "{name}: {words:?}");
            let number = |at: usize| words[at].parse::<i64>().unwrap_or_else(|_| panic!("{name}: {words:?}"));
            let peer = || u32::try_from(number(2)).unwrap();
            match words[1] {
                what @ ("send" | "isend") => {
                    assert!(peer() < ranks && number(4) > 0, "{name}: {words:?}");
                    let key = (rank, peer(), number(3));
                    *sent.entry(key).or_default() += 1;
                    if what == "isend" {
                        open.insert(key);
                    }
                }
                what @ ("recv" | "irecv") => {
                    assert!(peer() < ranks && number(4) > 0, "{name}: {words:?}");
                    let key = (peer(), rank, number(3));
                    *received.entry(key).or_default() += 1;
                    if what == "irecv" {
                        open.insert(key);
                    }
                }
                "wait" => {
                    let key = (peer(), u32::try_from(number(3)).unwrap(), number(4));
                    assert!(open.remove(&key), "{name}: {words:?}");
                }
                "compute" => assert!(number(2) > 0, "{name}: {words:?}"),
                _ => {}
            }
        }
    }
    assert_eq!(sent == received, !unclear, "{name}: {sent:?} {received:?}");
}

#[test]
fn simgrid_gets_messages_that_meet() {
    let mut exported = Vec::new();
    for (name, trace) in seeds() {
        let out = out("simgrid", &name);
        match written(Format::Simgrid, &trace, &out) {
            Ok(report) => {
                let unclear = report.notes.iter().any(|note| note.contains("does not say who sent"));
                check_actions(&name, &out.path, trace.meta.ranks, unclear);
                assert_eq!(report.calls, refrain_views::info::calls(&trace.bundle), "{name}");
                exported.push(name);
            }
            Err(Error::Refused { what, .. }) => {
                assert!(trace.bundle.most_threads() > 1 && what.contains("threads"), "{name}: {what}");
                assert!(!out.path.exists(), "{name}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    for name in ["collectives", "comms", "completion", "p2p", "ring", "rma", "stencil-loops", "wild"] {
        assert!(exported.iter().any(|one| one == name), "{name} of {exported:?}");
    }
    fs::remove_dir_all(out("simgrid", "x").path.parent().unwrap()).unwrap();
}

/// Where the OTF2 library is not installed, it is said what to install.
#[test]
fn otf2_archives_are_whole_or_refused_with_a_word() {
    for (name, trace) in seeds() {
        let out = out("otf2", &name);
        match written(Format::Otf2, &trace, &out) {
            Ok(report) => {
                assert_eq!(report.calls, refrain_views::info::calls(&trace.bundle), "{name}");
                let there = |path: PathBuf| path.metadata().is_ok_and(|file| file.len() > 0);
                assert!(there(out.path.join("traces.otf2")) && there(out.path.join("traces.def")), "{name}");
                for rank in 0..trace.meta.ranks {
                    assert!(there(out.path.join(format!("traces/{rank}.evt"))), "{name}");
                }
            }
            Err(Error::Refused { what, help }) => {
                assert!(what.contains("not installed") && help.contains("libopen-trace-format2"), "{what}");
                assert!(!out.path.exists(), "{name}: a folder without anything in it stays");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    fs::remove_dir_all(out("otf2", "x").path.parent().unwrap()).unwrap();
}
