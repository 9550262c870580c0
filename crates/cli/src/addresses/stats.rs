//! `refrain stats` of an address trace.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use refrain_addresses::stats::Stats;
use refrain_addresses::{Batch, Format};

use super::files::{Source, is_dash, said};
use super::{flags, stats_text};
use crate::failure::Failure;
use crate::progress::Bar;

#[derive(Debug, Args)]
#[command(next_help_heading = "Of an address trace")]
pub struct StatsFlags {
    /// Its format [default: what its bytes and its name say]
    #[arg(long, value_name = "FORMAT", value_parser = flags::format)]
    from: Option<Format>,
    /// The offset that is counted apart, and that PDATS writes without a byte [default: 4]
    #[arg(
        long,
        value_name = "S",
        default_value = "4",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    step: i16,
    /// Also PDATS and gzip after it
    #[arg(long)]
    lz: bool,
}

/// Whether it is not a trace of MPI calls: the file does not begin as one, or the user says so.
pub fn is_address_trace(path: &Path, flags: &StatsFlags) -> bool {
    if flags.from.is_some() || is_dash(path) {
        return true;
    }
    let mut mark = [0; 4];
    let Ok(()) = File::open(path).and_then(|mut file| file.read_exact(&mut mark)) else {
        return refrain_addresses::of_name(&path.to_string_lossy()).0.is_some();
    };
    mark != refrain_tracefile::MAGIC && Source::open(path, None).is_ok()
}

pub fn stats(path: &Path, flags: &StatsFlags, json: bool) -> Result<ExitCode, Failure> {
    let mut source = Source::open(path, flags.from)?;
    let mut stats = Stats::new(source.reader.fields(), flags.step, flags.lz);
    let mut bar = Bar::new("reading");
    let mut batch = Batch::new();
    let damage = loop {
        match source.reader.read(&mut batch) {
            Ok(true) => stats.add(&batch),
            Ok(false) => break None,
            Err(error) => break Some(error),
        }
        if let Some((done, all)) = source.progress() {
            bar.show(done, all);
        }
    };
    bar.clear();
    let report = stats.finish(source.reader.offset());
    let format = source.reader.format();
    let text = if json { stats_text::json(&report, format) } else { stats_text::table(&report, format) };
    // A reader that has seen enough is no error; damage is, though what stands before it is counted.
    let _ = std::io::stdout().write_all(text.as_bytes());
    match damage {
        Some(error) => Err(said(path, &error).help("the numbers are of what stands before it")),
        None => Ok(ExitCode::SUCCESS),
    }
}
