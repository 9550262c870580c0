//! A trace file, as far as it is held in memory.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};

use pyo3::PyErr;
use refrain_tracefile::{Loaded, Trace};
use refrain_views::timed::Times;

pub struct Opened {
    pub path: PathBuf,
    /// Where else binaries may be.
    pub modules: Vec<PathBuf>,
    pub length: u64,
    pub sections: Vec<(&'static str, u64)>,
    pub trace: Trace,
    chunks: Option<Range<u64>>,
}

fn not_read(path: &Path, error: &std::io::Error) -> String {
    let why = match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    };
    format!("{} cannot be read: {why}", path.display())
}

impl Opened {
    pub fn read(path: PathBuf, modules: Vec<PathBuf>) -> Result<Opened, String> {
        let load = || refrain_tracefile::load(&mut BufReader::new(File::open(&path)?));
        let Loaded { bytes, chunks, length, .. } = load().map_err(|error| not_read(&path, &error))?;
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let contents = refrain_tracefile::outline(&bytes).map_err(|error| said(&error))?;
        let trace = refrain_tracefile::read(&bytes).map_err(|error| said(&error))?;
        if refrain_references::is_memory(&trace.meta) {
            return Err(said(
                &"a trace of memory references, not of MPI calls; the command `refrain` reads it",
            ));
        }
        let mut sections: Vec<(&'static str, u64)> =
            contents.sections.iter().map(|info| (info.name, info.stored as u64)).collect();
        if let Some(chunks) = &chunks {
            // The header has an entry for them.
            sections[0].1 += chunks.start - bytes.len() as u64;
            sections.push(("chunked", chunks.end - chunks.start));
        }
        Ok(Opened { path, modules, length, sections, trace, chunks })
    }

    /// When calls began and ended, where the trace says so. For one thread: it reads the file.
    pub fn times(&self) -> Result<Option<Times>, refrain_views::Error> {
        let file = File::open(&self.path).map_err(refrain_views::Error::Write)?;
        Times::open(&self.trace, BufReader::new(file), self.chunks.clone())
    }

    /// With sums of times from those of single calls, where there are any.
    pub fn summed_up(&self) -> Result<Trace, refrain_views::Error> {
        let mut trace = self.trace.clone();
        if let Some(times) = self.times()? {
            refrain_views::exact::sum_up(&mut trace, &times, &mut |_| ())?;
        }
        Ok(trace)
    }

    pub fn failed(&self, error: impl std::fmt::Display) -> PyErr {
        crate::failed(format!("{}: {error}", self.path.display()))
    }
}
