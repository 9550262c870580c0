//! Lines in the order of time, more of them than fit in memory: sorted in runs beside the output, and merged at the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Lines that are held before a run is written.
const HELD: usize = 1 << 18;
/// Runs that are there before they become one: so many files are open at once.
const RUNS: usize = 256;

pub struct Sorter {
    beside: PathBuf,
    held: Vec<(i64, String)>,
    most: usize,
    runs: Vec<PathBuf>,
    most_runs: usize,
    /// Runs so far, for their names.
    made: usize,
}

impl Sorter {
    /// Runs lie beside this file, with longer names.
    pub fn new(beside: &Path) -> Sorter {
        Sorter {
            beside: beside.to_owned(),
            held: Vec::new(),
            most: HELD,
            runs: Vec::new(),
            most_runs: RUNS,
            made: 0,
        }
    }

    pub fn put(&mut self, time: i64, line: String) -> io::Result<()> {
        self.held.push((time, line));
        if self.held.len() >= self.most { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        // Lines of one time stay in the order in which they came.
        self.held.sort_by_key(|(time, _)| *time);
        let mut out = self.begin()?;
        for (time, line) in self.held.drain(..) {
            writeln!(out, "{time} {line}")?;
        }
        out.flush()?;
        if self.runs.len() < self.most_runs {
            return Ok(());
        }
        let old = self.runs.len();
        let mut out = self.begin()?;
        self.join(old, &mut |time, line| writeln!(out, "{time} {line}"))?;
        out.flush()?;
        self.runs.drain(..old).try_for_each(fs::remove_file)
    }

    /// A new run, the last one.
    fn begin(&mut self) -> io::Result<BufWriter<File>> {
        let mut name = self.beside.clone().into_os_string();
        name.push(format!(".{}.{}", std::process::id(), self.made));
        self.made += 1;
        let path = PathBuf::from(name);
        let out = BufWriter::new(File::create_new(&path)?);
        self.runs.push(path);
        Ok(out)
    }

    /// Writes all of it, and removes the runs.
    pub fn merge(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.runs.is_empty() {
            self.held.sort_by_key(|(time, _)| *time);
            return self.held.drain(..).try_for_each(|(_, line)| writeln!(out, "{line}"));
        }
        self.spill()?;
        self.join(self.runs.len(), &mut |_, line| writeln!(out, "{line}"))
    }

    /// The lines of the first so many runs, in order.
    fn join(&self, count: usize, to: &mut dyn FnMut(i64, &str) -> io::Result<()>) -> io::Result<()> {
        let open = |path: &PathBuf| File::open(path).map(BufReader::new);
        let mut runs: Vec<BufReader<File>> =
            self.runs[..count].iter().map(open).collect::<io::Result<_>>()?;
        let mut heap = BinaryHeap::new();
        for (at, run) in runs.iter_mut().enumerate() {
            heap.extend(next(run)?.map(|(time, line)| Reverse((time, at, line))));
        }
        while let Some(Reverse((time, at, line))) = heap.pop() {
            to(time, &line)?;
            heap.extend(next(&mut runs[at])?.map(|(time, line)| Reverse((time, at, line))));
        }
        Ok(())
    }
}

fn next(run: &mut BufReader<File>) -> io::Result<Option<(i64, String)>> {
    let mut line = String::new();
    if run.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let (time, text) = line.trim_end().split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some((time.parse().map_err(|_| io::ErrorKind::InvalidData)?, text.to_owned())))
}

impl Drop for Sorter {
    fn drop(&mut self) {
        // What cannot be removed is only in the way.
        self.runs.iter().for_each(|run| drop(fs::remove_file(run)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_order_whatever_fits_in_memory() {
        let folder = std::env::temp_dir().join(format!("refrain-sort-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (most, most_runs) in [(3, 256), (3, 4), (1000, 4)] {
            let mut sorter = Sorter::new(&folder.join("a.prv"));
            (sorter.most, sorter.most_runs) = (most, most_runs);
            for i in 0i64..100 {
                sorter.put(i * 37 % 50, format!("{i}")).unwrap();
            }
            let mut out = Vec::new();
            sorter.merge(&mut out).unwrap();
            let seen: Vec<i64> =
                String::from_utf8(out).unwrap().lines().map(|line| line.parse().unwrap()).collect();
            let mut wanted: Vec<i64> = (0..100).collect();
            wanted.sort_by_key(|i| i * 37 % 50);
            assert_eq!(seen, wanted, "{most}");
            drop(sorter);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{most}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
