//! Memory of a rank, and what new strings take.

use std::collections::BTreeMap;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library, size};
use crate::parts::times::steady as read_steady;
use crate::readings::number_after;
use crate::row::Unit::{Count, KiB, Seconds, TimedBytes};
use crate::table::Table;
use crate::task::Task;

/// Resident, shared out and own KiB.
type Mapping = [i64; 3];

pub fn memory(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let steps = given.number(0, 1000)?.to_string();
    let title = format!(
        "Memory of the last of 2 ranks of stencil2d at its step {steps}, KiB that tracing adds; only mappings that differ by 8 or more"
    );
    let header = bench.file("bench/smaps.h").display().to_string();
    bench.table(Table::new("mappings", &title).with("steps", &steps));
    let mut told = Vec::new();
    for library in Library::ALL {
        let program = bench.mpicc(library, "tests/programs/stencil2d.c", &["-include", &header, "-lm"])?;
        let command = library.sharing(2).arg(program).arg(&steps).env("SMAPS_AT", &steps);
        let mut maps = Vec::new();
        for (name, task) in [("plain", command.clone()), ("traced", bench.traced(&[], &command))] {
            task.env("SMAPS", bench.work(name)).run()?;
            maps.push(by_mapping(&std::fs::read_to_string(bench.work(&format!("{name}.1")))?));
        }
        let mut all = [0; 3];
        let names: Vec<&String> =
            maps[0].keys().chain(maps[1].keys().filter(|name| !maps[0].contains_key(*name))).collect();
        for name in names {
            let of = |map: &BTreeMap<String, Mapping>| map.get(name).copied().unwrap_or_default();
            let added: Mapping = std::array::from_fn(|at| of(&maps[1])[at] - of(&maps[0])[at]);
            all.iter_mut().zip(added).for_each(|(all, added)| *all += added);
            if added[0].abs() >= 8 {
                mapping(bench, library, name, added)?;
            }
        }
        mapping(bench, library, "all", all)?;
        let lines = bench.info_text(&bench.trace())?;
        told.extend(
            lines
                .lines()
                .filter(|line| line.contains("tracer's memory"))
                .map(|line| format!("{}: {line}", library.name())),
        );
    }
    told.iter().for_each(|line| bench.note(line));
    Ok(())
}

fn mapping(bench: &mut Bench, library: Library, name: &str, [resident, share, own]: Mapping) -> Result<()> {
    let values = [("resident", resident), ("share", share), ("own", own)]
        .map(|(name, kib)| (name, KiB.of(kib as f64)));
    bench.row(&[("library", &library.name()), ("mapping", &name)], &values)
}

/// Of a copy of smaps: KiB by each file or kind of memory.
fn by_mapping(smaps: &str) -> BTreeMap<String, Mapping> {
    let mut found: BTreeMap<String, Mapping> = BTreeMap::new();
    let mut name = String::new();
    for line in smaps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let kib = || words.get(1).and_then(|word| word.parse::<i64>().ok()).unwrap_or(0);
        let at = match words.first().copied().unwrap_or_default() {
            "Rss:" => 0,
            "Pss:" => 1,
            "Private_Clean:" | "Private_Dirty:" => 2,
            first if first.contains('-') && !first.ends_with(':') => {
                name = mapping_name(words.get(5).copied().unwrap_or("anonymous"));
                continue;
            }
            _ => continue,
        };
        found.entry(name.clone()).or_default()[at] += kib();
    }
    found
}

/// The last of its path, without what differs from run to run.
fn mapping_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match ["ucx_shm_posix", "vader_segment", "smdataseg", "smseg"]
        .into_iter()
        .find(|prefix| name.starts_with(prefix))
    {
        Some(prefix) => prefix.to_owned(),
        None if name.ends_with(".part") => "part".to_owned(),
        None => name.to_owned(),
    }
}

pub fn steady(bench: &mut Bench, _: &Arguments) -> Result<()> {
    let program = bench.mpicc(Library::Mpich, "bench/steady.c", &[])?;
    let command = Library::Mpich.sharing(1).arg(program);
    let plain = read_steady(&command.run()?.out);
    let traced = read_steady(&bench.traced(&[], &command).run()?.out);
    bench.table(Table::new("steady", "Memory over ten million regular calls, KiB resident (MPICH)"));
    for ((calls, untraced), (_, traced)) in plain.iter().zip(traced) {
        bench.row(&[("calls", calls)], &[("untraced", KiB.of(*untraced)), ("traced", KiB.of(traced))])?;
    }
    bench.table(Table::new("trace", "Bytes of the trace"));
    let bytes = size(&bench.trace())?;
    bench.row(&[("program", &"steady")], &[("trace", TimedBytes.of(bytes))])
}

pub fn strings(bench: &mut Bench, _: &Arguments) -> Result<()> {
    let program = bench.mpicc(Library::Mpich, "bench/new_strings.c", &[])?;
    let command = Library::Mpich.sharing(1).arg(program);
    bench.table(Table::new(
        "strings",
        "A string that no call had before in every third of 204,005 calls (MPICH); seconds",
    ));
    let said = command.run()?.out;
    let seconds = |said: &str| [" in ", "MPI_Finalize "].map(|mark| Seconds.of(number_after(said, mark)));
    let [calls, all] = seconds(&said);
    bench.row(&[("fold", &"untraced")], &[("calls", calls), ("with MPI_Finalize", all)])?;
    for fold in ["grammar", "loops"] {
        let said = bench.traced(&["--fold", fold], &command).run()?.out;
        let [calls, all] = seconds(&said);
        let info = bench.command(&["info"]).arg(bench.trace()).run()?.wall;
        let bytes = size(&bench.trace())?;
        bench.row(
            &[("fold", &fold)],
            &[
                ("calls", calls),
                ("with MPI_Finalize", all),
                ("info", Seconds.of(info)),
                ("trace", TimedBytes.of(bytes)),
            ],
        )?;
    }
    Ok(())
}

pub fn threads(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let runs = given.number(0, 100)?;
    held_against_the_witness(bench, runs)?;
    let preload = bench.yielding()?;
    bench.table(Table::new(
        "forks",
        "Three threads created and joined in every step, 2 ranks: bytes, and seconds to verify",
    ));
    for library in Library::ALL {
        let program = bench.mpicc(library, "tests/programs/forkjoin.c", &["-pthread"])?;
        for steps in [10, 100, 1000] {
            let command = library.sharing(2).arg(&program).arg(steps.to_string());
            bench.traced(&[], &command).env("LD_PRELOAD", &preload).run()?;
            let verified = bench.command(&["verify"]).arg(bench.trace()).run()?.wall;
            let bytes = size(&bench.trace())?;
            bench.row(
                &[("library", &library.name()), ("steps", &steps)],
                &[("trace", TimedBytes.of(bytes)), ("verified", Seconds.of(verified))],
            )?;
        }
    }
    Ok(())
}

/// Four threads a rank calling at once, so many runs held against the witness and as many without it, by the test.
fn held_against_the_witness(bench: &mut Bench, runs: u64) -> Result<()> {
    let words = "test -q --release -p refrain-e2e --test e2e -- threads:: --include-ignored --nocapture --test-threads 1";
    let task = Task::new("cargo").args(words.split(' ')).dir(&bench.file("")).limit(36_000);
    let said = task.env("REFRAIN_E2E", "1").env("REFRAIN_THREAD_RUNS", runs.to_string()).run()?.out;
    bench.table(Table::new(
        "together",
        &format!("4 threads a rank calling at once, {runs} runs with the witness and as many without: no call lost or wrong"),
    ).with("runs", runs));
    for line in said.lines().filter(|line| line.contains("runs with the witness")) {
        // The test harness writes a dot for each test that is done.
        let library = line.trim_start_matches('.').split(':').next().unwrap_or_default();
        bench.row(
            &[("library", &library)],
            &[
                ("calls", Count.of(number_after(line, "without: ")).varies()),
                ("smallest", TimedBytes.of(number_after(line, "wrong; "))),
                ("largest", TimedBytes.of(number_after(line, " to "))),
                ("one thread works", TimedBytes.of(number_after(line, "bytes a trace, "))),
            ],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_summed_by_mapping() {
        let smaps = "7f00-7f10 r-xp 00000000 08:01 12 /usr/lib/libx.so\nRss: 12 kB\nPss: 6 kB\nPrivate_Clean: 2 kB\n\
                     Private_Dirty: 3 kB\n7f20-7f30 rw-p 00000000 00:00 0\nRss: 4 kB\n7f40-7f50 rw-p 0 08:01 12 /usr/lib/libx.so\n\
                     Rss: 1 kB\n7f60-7f70 rw-p 0 08:01 12 /tmp/t.rfn.parts/0.part\nRss: 5 kB\n";
        let found = by_mapping(smaps);
        let names: Vec<&String> = found.keys().collect();
        assert_eq!(names, ["anonymous", "libx.so", "part"]);
        assert_eq!((found["libx.so"], found["anonymous"]), ([13, 6, 5], [4, 0, 0]));
    }

    #[test]
    fn names_of_mappings_are_the_same_in_every_run() {
        assert_eq!(mapping_name("/dev/shm/ucx_shm_posix_12ab"), "ucx_shm_posix");
        assert_eq!(mapping_name("/dev/shm/vader_segment.host.1"), "vader_segment");
        assert_eq!(mapping_name("[heap]"), "[heap]");
    }
}
