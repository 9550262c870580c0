//! `refrain stats` of an address trace.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use refrain_addresses::stats::Stats;
use refrain_addresses::{Batch, Format, of_name};

use super::files::{Source, is_dash, print};
use super::{flags, stats_text};
use crate::failure::{Failure, not_read};
use crate::paint::{self, Look};
use crate::progress::Bar;

#[derive(Debug, Args)]
#[command(next_help_heading = "Of an address trace")]
pub struct StatsFlags {
    /// Its format [default: what its bytes and its name say]
    #[arg(long, value_name = "FORMAT", value_parser = flags::format)]
    from: Option<Format>,
    /// The offset that is counted apart, and that PDATS writes without a byte [default: 4]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    step: Option<i16>,
    /// Also PDATS and gzip after it
    #[arg(long)]
    lz: bool,
}

/// Whether it is not a trace of MPI calls: its name or its bytes say so.
pub fn is_address_trace(path: &Path) -> bool {
    if is_dash(path) || of_name(&path.to_string_lossy()).0.is_some() {
        return true;
    }
    // What is no file cannot be looked at and read again.
    let mut mark = [0; 4];
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut mark)).is_ok()
        && mark != refrain_tracefile::MAGIC
        && Source::open(path, None).is_ok()
}

/// Done here if it is an address trace, otherwise left to the caller. Options for the other kind are refused; `of_calls`
/// is one for traces of calls, if there is one.
pub fn stats(
    path: &Path,
    flags: &StatsFlags,
    of_calls: Option<&str>,
    json: bool,
) -> Option<Result<ExitCode, Failure>> {
    let refused = |option: &str, other: &str| {
        Some(Err(Failure::new(format!("{option} is for {other}, and {} is none", path.display()))))
    };
    if let Err(error) = path.metadata()
        && !is_dash(path)
    {
        return Some(Err(not_read(path, &error)));
    }
    if flags.from.is_some() || is_address_trace(path) {
        return match of_calls {
            Some(option) => refused(option, "traces of MPI calls"),
            None => Some(of_addresses(path, flags, json)),
        };
    }
    match flags {
        StatsFlags { step: Some(_), .. } => refused("--step", "address traces"),
        StatsFlags { lz: true, .. } => refused("--lz", "address traces"),
        _ => None,
    }
}

fn of_addresses(path: &Path, flags: &StatsFlags, json: bool) -> Result<ExitCode, Failure> {
    let mut source = Source::open(path, flags.from)?;
    let mut stats = Stats::new(source.reader.fields(), flags.step.unwrap_or(4), flags.lz);
    let mut bar = Bar::new("reading");
    let mut batch = Batch::new();
    let damage = loop {
        match source.next(&mut batch) {
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
    let text = match json {
        true => stats_text::json(&report, format),
        false => paint::text(Look::Tables, &stats_text::table(&report, format)),
    };
    print(path, &text, damage)
}
