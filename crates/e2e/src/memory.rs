//! Programs of `tests/programs/memory`, recorded and read back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::run::{self, Outcome};

/// A reference: what it does (L, S, U or F), where, and of how many bytes.
pub type Reference = (char, u64, u32);

/// By rank and thread, in order, each with the place of its instruction.
pub type References = BTreeMap<(u32, u32), Vec<(Reference, String)>>;

/// Builds a program of `tests/programs/memory` in that folder.
pub fn built(folder: &Path, source: &str, compiler: &str, options: &[&str]) -> PathBuf {
    let program = folder.join(source.split('.').next().unwrap_or(source));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/memory").join(source);
    let mut command = Command::new(compiler);
    command.args(["-O1", "-g", "-pthread"]).args(options).arg(&source).arg("-o").arg(&program);
    let status = command.status().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(status.success(), "{}", source.display());
    program
}

/// `refrain memory run` in that folder; the trace is `t.rfn` there.
pub fn recorded(folder: &Path, options: &[&str], command: &[&str]) -> Outcome {
    let start = ["memory", "run", "--out", "t.rfn"];
    let words = run::words(&[&start, options, &["--"], command].concat());
    run::refrain_in(&[], folder, &words)
}

/// Records `ends forever`, kills it as soon as some of its stores are written, and says what `memory run` did then.
pub fn killed(folder: &Path, program: &Path) -> Outcome {
    let parts = folder.join("t.rfn.parts");
    std::thread::scope(|scope| {
        let program = program.to_string_lossy().into_owned();
        let running = scope.spawn(move || recorded(folder, &["--limit", "200000"], &[&program, "forever"]));
        let began = Instant::now();
        // `RANK-PID-THREAD.thread` is written again and again: this waits for one that is younger than the first stores.
        let written = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
        let process = loop {
            let entries = fs::read_dir(&parts).into_iter().flatten().flatten();
            let filled = written(&folder.join("filled"));
            let mut process = entries.filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let pid = name.strip_suffix(".thread")?.split('-').nth(1)?.parse::<u32>().ok()?;
                (written(&entry.path())? > filled?).then_some(pid)
            });
            if let Some(process) = process.next() {
                break process;
            }
            assert!(began.elapsed() < run::LONG, "nothing was written");
            std::thread::sleep(Duration::from_millis(20));
        };
        run::kill("-KILL", &[(0, process)]);
        running.join().expect("the command was waited for")
    })
}

/// The references of a trace, which is what was recorded.
pub fn references(trace: &Path) -> References {
    let name = trace.to_string_lossy();
    let verified = run::refrain(&["verify", &name]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let shown = run::refrain(&["dump", &name, "--json"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let mut all = References::new();
    for line in shown.stdout.lines() {
        let json = crate::json::Json::parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let number = |name: &str| json.get(name).int().unwrap_or_else(|| panic!("{name} of {line}"));
        let what = match json.get("access").text() {
            Some("load") => 'L',
            Some("store") => 'S',
            Some("update") => 'U',
            Some("fetch") => 'F',
            other => panic!("{other:?}: {line}"),
        };
        let module = json.get("module").text().unwrap_or("").rsplit('/').next().unwrap_or("").to_owned();
        let place = format!("{module}+{:#x}", number("offset"));
        let reference = (what, number("address") as u64, number("size") as u32);
        all.entry((number("rank") as u32, number("thread") as u32)).or_default().push((reference, place));
    }
    all
}

pub fn hexadecimal(word: &str) -> u64 {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or_else(|error| panic!("{word}: {error}"))
}

/// How many of the stores of `ends` are there, which are the first of those that it repeats.
pub fn stores(trace: &Path, stdout: &str) -> usize {
    let start = hexadecimal(stdout.lines().next().unwrap());
    let found = &references(trace)[&(0, 0)];
    let stores = found.iter().map(|(r, _)| *r).filter(|r| r.1.wrapping_sub(start) < 4000);
    let mut count = 0;
    for (n, store) in stores.enumerate() {
        assert_eq!(store, ('S', start + 4 * (n as u64 % 1000), 4), "store {n}");
        count += 1;
    }
    count
}
