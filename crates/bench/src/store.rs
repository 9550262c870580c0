//! Rows on disk: `target/bench/PART-DATE.json`, a line about the run and a line for each row.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::compare::same;
use crate::row::Row;
use crate::task::Task;

/// Of which build, when and where rows were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub part: String,
    pub arguments: Vec<String>,
    /// With a `+` where files differ from it.
    pub commit: String,
    /// UTC, as it is in the file's name.
    pub date: String,
    pub cpu: String,
    pub cores: usize,
}

impl Run {
    pub fn now(root: &Path, part: &str, arguments: &[String]) -> Run {
        let said = |words: &[&str]| Task::of(words).dir(root).run().map(|ran| ran.out.trim().to_owned());
        let changes = said(&["git", "status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
        let commit = said(&["git", "rev-parse", "--short", "HEAD"]).unwrap_or_else(|_| "unknown".to_owned());
        Run {
            part: part.to_owned(),
            arguments: arguments.to_vec(),
            commit: commit + if changes.is_empty() { "" } else { "+" },
            date: said(&["date", "-u", "+%Y%m%dT%H%M%SZ"]).unwrap_or_else(|_| "unknown".to_owned()),
            cpu: cpu(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

fn cpu(info: &str) -> String {
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    model.and_then(|rest| rest.split_once(": ")).map_or("unknown", |(_, name)| name).trim().to_owned()
}

/// Rows of one part of one run.
#[derive(Debug, PartialEq)]
pub struct Stored {
    pub run: Run,
    pub rows: Vec<Row>,
}

impl Stored {
    pub fn read(path: &Path) -> Result<Stored> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Stored::parse(&text).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    fn parse(text: &str) -> Result<Stored> {
        let mut lines = text.lines();
        let run = serde_json::from_str(lines.next().ok_or("it is empty")?)?;
        let rows = lines.map(serde_json::from_str).collect::<std::result::Result<_, _>>()?;
        Ok(Stored { run, rows })
    }
}

/// Where rows of all runs lie.
pub struct Store {
    pub folder: PathBuf,
}

impl Store {
    pub fn path(&self, run: &Run) -> PathBuf {
        self.folder.join(format!("{}-{}.json", run.part, run.date))
    }

    /// A file that grows row by row, so that a run that is ended early leaves what it had.
    pub fn create(&self, run: &Run) -> Result<Writer> {
        fs::create_dir_all(&self.folder)?;
        let mut writer = Writer { file: BufWriter::new(File::create(self.path(run))?) };
        writer.line(run)?;
        Ok(writer)
    }

    /// The newest earlier run of this part that measured some of these rows.
    pub fn last(&self, now: &Stored) -> Option<Stored> {
        let shared =
            |was: &Stored| was.rows.iter().any(|before| now.rows.iter().any(|row| same(before, row)));
        let mut earlier: Vec<PathBuf> =
            fs::read_dir(&self.folder).ok()?.flatten().map(|entry| entry.path()).collect();
        earlier.retain(|path| is_before(path, &now.run));
        earlier.sort();
        earlier.iter().rev().filter_map(|path| Stored::read(path).ok()).find(shared)
    }
}

/// Whether a file's name is that of an earlier run of the same part. Parts may begin with the names of others.
fn is_before(path: &Path, run: &Run) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let date = name.strip_prefix(run.part.as_str()).and_then(|rest| rest.strip_prefix('-'));
    date.is_some_and(|date| date.starts_with(|first: char| first.is_ascii_digit()) && *date < *run.date)
}

pub struct Writer {
    file: BufWriter<File>,
}

impl Writer {
    pub fn line(&mut self, line: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.file, line)?;
        self.file.write_all(b"\n")?;
        Ok(self.file.flush()?)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::row::Unit;
    use crate::row::tests::row;

    pub fn stored(cpu: &str, rows: Vec<Row>) -> Stored {
        Stored { run: run("20260101T000000Z", cpu), rows }
    }

    fn run(date: &str, cpu: &str) -> Run {
        Run {
            part: "part".into(),
            arguments: vec!["4".into()],
            commit: "abc".into(),
            date: date.into(),
            cpu: cpu.into(),
            cores: 2,
        }
    }

    fn sizes(ranks: &str) -> Row {
        row("sizes", &[("ranks", ranks)], &[("trace", Unit::Bytes.of(5))])
    }

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let folder = tempfile("round-trip");
        let store = Store { folder: folder.clone() };
        let there = stored("x", vec![sizes("4"), sizes("8")]);
        let mut writer = store.create(&there.run).unwrap();
        there.rows.iter().for_each(|row| writer.line(row).unwrap());
        assert_eq!(Stored::read(&store.path(&there.run)).unwrap(), there);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_last_run_is_the_newest_earlier_one_with_a_row_in_common() {
        let folder = tempfile("last");
        let store = Store { folder: folder.clone() };
        for (date, ranks) in [
            ("20260101T000000Z", "4"),
            ("20260102T000000Z", "4"),
            ("20260103T000000Z", "64"),
            ("20260105T000000Z", "4"),
        ] {
            store.create(&run(date, "x")).unwrap().line(&sizes(ranks)).unwrap();
        }
        fs::write(folder.join("part-sizes-20260104T000000Z.json"), "of another part").unwrap();
        let now = Stored { run: run("20260104T000000Z", "x"), rows: vec![sizes("4")] };
        assert_eq!(store.last(&now).unwrap().run.date, "20260102T000000Z");
        let first = Stored { run: run("20260101T000000Z", "x"), rows: vec![sizes("4")] };
        assert_eq!(store.last(&first), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_is_none_is_refused_by_its_name() {
        let told = Stored::read(Path::new("/nowhere/x.json")).unwrap_err().to_string();
        assert!(told.starts_with("/nowhere/x.json: "), "{told}");
        assert!(Stored::parse("").unwrap_err().to_string().contains("empty"));
    }

    #[test]
    fn the_processor_has_a_name() {
        assert_eq!(cpu("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"), "Some CPU @ 2 GHz");
        assert_eq!(cpu(""), "unknown");
    }

    fn tempfile(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("refrain-bench-test-{}-{name}", std::process::id()))
    }
}
