//! Cache simulation from packed address traces: its numbers beside those of Valgrind's cachegrind on the same program, and
//! its speed from each form of a trace. The traces are all references that lackey sees of a program, its start included;
//! they are collected anew.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::Bench;
use crate::parts::addresses::compiler;
use crate::readings::numbers;
use crate::row::Unit::{Bytes, Count, Ns, TimeRatio};
use crate::table::Table;
use crate::task::Task;
use crate::valgrind::Lackey;

/// Seconds for one program under Valgrind.
const BOUND: u64 = 300;
/// Cachegrind's events, in its words.
const EVENTS: [&str; 9] = ["Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw"];

type Events = IndexMap<String, u64>;

pub fn simulate(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let count = given.number(0, 2_000_000)?;
    bench.need(&[("valgrind", "valgrind"), ("gzip", "gzip"), ("cc", "gcc")])?;
    let reading = bench.example("refrain-addresses", "reading")?;
    let scan = bench.cc("bench/addresses/din.c", "din", &[])?;
    let matmul = bench.cc("bench/addresses/matmul.c", "matmul", &["-fno-tree-vectorize"])?;
    let mut same =
        compare(bench, "true", ["32768,8,64", "32768,8,64", "262144,8,64"], Task::of(&["/bin/true"]))?;
    same &= compare(bench, "ls", ["4096,1,32", "8192,2,32", "131072,4,64"], Task::of(&["ls", "-l", "/usr"]))?;
    let cc1 = Task::of(&["gcc", "-print-prog-name=cc1"]).run()?.out;
    let version = Task::new(cc1.trim()).args(["-quiet", "--version"]);
    same &= compare(bench, "gcc", ["16384,4,64", "16384,4,32", "524288,16,64"], version)?;
    bench.note("");
    let compiling = compiler(&["-O3"])?.arg(bench.file("bench/addresses/spmv.c")).args(["-o", "/dev/null"]);
    for (name, command) in [("matmul", Task::new(matmul)), ("gcc", compiling)] {
        speed(bench, name, &command, count, &reading, &scan)?;
    }
    match same {
        true => Ok(()),
        false => Err("the first level differs from cachegrind's, which it should not".into()),
    }
}

/// A program's accesses and misses, as cachegrind and as we count them. True if the first level is the same.
fn compare(bench: &mut Bench, name: &str, caches: [&str; 3], command: Task) -> Result<bool> {
    let (all, reads) = (bench.work("all.lackey"), bench.work("read.lackey"));
    Lackey { command: command.clone(), from: None, limit: BOUND, bare: true }.write(File::create(&all)?)?;
    let theirs = cachegrind(bench, caches, &command)?;
    let ours = ours(bench, caches, &all)?;
    // Cachegrind knows no dirty lines. Without writes we have none either.
    let modifies = without_writes(&all, &reads)?;
    let as_reads = self::ours(bench, caches, &reads)?;
    let [i1, d1, ll] = caches;
    let title =
        format!("{name}: I1 {i1}, D1 {d1}, LL {ll}; {modifies} instructions read and write one place");
    bench.table(Table::new("caches", &title).with("program", name).with("caches", caches.join(" ")));
    let of = |events: &Events, name: &str| events.get(name).copied().unwrap_or(0);
    for event in EVENTS {
        row(bench, event, of(&theirs, event), of(&ours, event))?;
    }
    row(bench, "DLm, writes as reads", of(&theirs, "DLmr") + of(&theirs, "DLmw"), of(&as_reads, "DLmr"))?;
    let equal = |event: &str| of(&theirs, event) == of(&ours, event);
    let same = ["Ir", "Dr", "I1mr", "D1mr", "D1mw"].into_iter().all(equal)
        && of(&ours, "Dw") == of(&theirs, "Dw") + modifies;
    bench.note(match same {
        true => "the first level is the same, but for writes of instructions that read the place first",
        false => "the first level differs, which it should not",
    });
    Ok(same)
}

fn row(bench: &mut Bench, event: &str, theirs: u64, ours: u64) -> Result<()> {
    let difference = ours as f64 - theirs as f64;
    bench.row(
        &[("event", &event)],
        &[
            ("cachegrind", Count.of(theirs)),
            ("refrain", Count.of(ours)),
            ("difference", Count.of(difference)),
        ],
    )
}

fn cachegrind(bench: &Bench, [i1, d1, ll]: [&str; 3], command: &Task) -> Result<Events> {
    let out = bench.work("cachegrind");
    let task = Task::of(&["valgrind", "--tool=cachegrind", "--cache-sim=yes"]).bare().limit(BOUND);
    let task = task.args([format!("--I1={i1}"), format!("--D1={d1}"), format!("--LL={ll}")]);
    let task = task.arg(format!("--cachegrind-out-file={}", out.display())).then(command);
    // Programs look at what they write to, and lackey gives them the same.
    task.silent().run()?;
    let text = fs::read_to_string(&out)?;
    // The next program must not be taken for this one.
    fs::remove_file(out)?;
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let names = line("events:").split_whitespace().map(str::to_owned);
    Ok(names.zip(line("summary:").split_whitespace().filter_map(|word| word.parse().ok())).collect())
}

/// The same events as we count them.
fn ours(bench: &Bench, [i1, d1, ll]: [&str; 3], trace: &Path) -> Result<Events> {
    let task = bench.command(&["simulate", "--json", "--l1i", i1, "--l1d", d1, "--l2", ll]).arg(trace);
    Ok(events_of(&serde_json::from_str(&task.run()?.out)?))
}

fn events_of(document: &Json) -> Events {
    let caches = document["caches"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |cache: &str, kind: &str, what: &str| {
        let cache = caches.iter().find(|there| there["name"] == cache);
        cache.and_then(|cache| cache[kind][what].as_u64()).unwrap_or(0)
    };
    let event =
        |(name, cache, kind, what): (&str, &str, &str, &str)| (name.to_owned(), of(cache, kind, what));
    [
        ("Ir", "l1i", "fetch", "accesses"),
        ("I1mr", "l1i", "fetch", "misses"),
        ("Dr", "l1d", "read", "accesses"),
        ("D1mr", "l1d", "read", "misses"),
        ("Dw", "l1d", "write", "accesses"),
        ("D1mw", "l1d", "write", "misses"),
        ("ILmr", "l2", "fetch", "misses"),
        ("DLmr", "l2", "read", "misses"),
        ("DLmw", "l2", "write", "misses"),
    ]
    .map(event)
    .into()
}

/// A copy with every write taken for a read; how many instructions read and write one place.
fn without_writes(all: &Path, reads: &Path) -> Result<u64> {
    let mut to = BufWriter::new(File::create(reads)?);
    let mut modifies = 0;
    for line in BufReader::new(File::open(all)?).split(b'\n') {
        let mut line = line?;
        modifies += u64::from(line.starts_with(b" M"));
        if line.starts_with(b" S") || line.starts_with(b" M") {
            line[1] = b'L';
        }
        line.push(b'\n');
        to.write_all(&line)?;
    }
    to.flush()?;
    Ok(modifies)
}

/// From din, and from what it is packed as.
fn speed(
    bench: &mut Bench,
    name: &str,
    command: &Task,
    count: u64,
    reading: &Path,
    scan: &Path,
) -> Result<()> {
    let long = bench.work(&format!("{name}.din"));
    let convert = bench.command(&[
        "convert",
        "--force",
        "--from",
        "lackey",
        "--drop",
        "sizes",
        "--limit",
        &count.to_string(),
        "-",
    ]);
    Lackey { command: command.clone(), from: None, limit: BOUND, bare: true }.into(&convert.arg(&long))?;
    let short = bench.work(&format!("{name}-32.din"));
    let references = shortened(&long, &short)?;
    for (trace, din, packed) in [(name.to_owned(), long, "pdt64"), (format!("{name}-32"), short, "pdt")] {
        let mut files = vec![din.clone()];
        for format in ["din.gz".to_owned(), packed.to_owned(), format!("{packed}.gz")] {
            let file = bench.work(&format!("{trace}.{format}"));
            bench.command(&["convert", "--force"]).arg(&din).arg(&file).run()?;
            files.push(file);
        }
        let scanned: f64 = Task::new(scan).arg(&din).run()?.out.trim().parse()?;
        forms(bench, &trace, references, packed, &files, reading, scanned)?;
    }
    Ok(())
}

fn forms(
    bench: &mut Bench,
    trace: &str,
    references: u64,
    packed: &str,
    files: &[PathBuf],
    reading: &Path,
    scanned: f64,
) -> Result<()> {
    let title = format!(
        "{trace}: {references} references. Nanoseconds of processor time for each: reading alone; reading and simulating I1 and\n\
         D1 32K,8,64, L2 1M,16,64"
    );
    bench.table(Table::new("speed", &title).with("trace", trace).with("references", references));
    let mut plain = f64::NAN;
    for line in Task::new(reading).args(files).run()?.out.lines().skip(1) {
        let form = line.split_whitespace().next().unwrap_or_default();
        let [bytes, read, faster, simulated, faster_simulated] = numbers(line)[..] else {
            return Err(format!("no row: {line}").into());
        };
        plain = if form == packed { read } else { plain };
        bench.row(
            &[("form", &form)],
            &[
                ("bytes", Bytes.of(bytes)),
                ("read", Ns.of(read)),
                ("faster", TimeRatio.of(faster)),
                ("simulate", Ns.of(simulated)),
                ("simulate faster", TimeRatio.of(faster_simulated)),
            ],
        )?;
    }
    bench.row(&[("form", &"din, fscanf in C")], &[("read", Ns.of(scanned))])?;
    bench.note(&format!("{packed} is read {:.1} times faster than din with fscanf in C", scanned / plain));
    Ok(())
}

/// Addresses of 32 bits, for the published form: the last eight digits. How many references there are.
fn shortened(long: &Path, short: &Path) -> Result<u64> {
    let mut to = BufWriter::new(File::create(short)?);
    let mut references = 0;
    for line in BufReader::new(File::open(long)?).lines() {
        let line = line?;
        let (kind, address) = line.split_once(' ').ok_or("no reference")?;
        let digits = &address[address.len().saturating_sub(8)..];
        writeln!(to, "{kind} {digits}")?;
        references += 1;
    }
    to.flush()?;
    Ok(references)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_in_the_document() {
        let document = serde_json::json!({"caches": [
            {"name": "l1i", "fetch": {"accesses": 10, "misses": 1}},
            {"name": "l1d", "read": {"accesses": 5, "misses": 2}, "write": {"accesses": 4, "misses": 3}},
            {"name": "l2", "fetch": {"misses": 6}, "read": {"misses": 7}, "write": {"misses": 8}},
        ]});
        let events = events_of(&document);
        assert_eq!(EVENTS.map(|event| events[event]), [10, 1, 6, 5, 2, 7, 4, 3, 8]);
    }
}
