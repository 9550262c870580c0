//! The file, on rank 0: what is wrong with its name is said at the beginning already.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use refrain_encode::{Folding, hash_symbol};
use refrain_fold::FastMap;
use refrain_fold::bundle::Bundle;
use refrain_guest::process::clock::Moment;
use refrain_guest::process::host;
use refrain_guest::process::reserve::most_held;
use refrain_guest::process::say::say;
use refrain_model::time::Time;
use refrain_mpi::Pmpi;
use refrain_tracefile::claim::{Holder, Job};
use refrain_tracefile::clocks::Clocks;
use refrain_tracefile::{Error, Memory, Meta, Replace, Trace, is_device};

use super::summary::Summary;
use crate::config::{Config, Kept};
use crate::files::path;

/// What the trace says of the run.
pub fn meta(
    config: &Config,
    pmpi: &Pmpi,
    ranks: u32,
    (summary, lost): (Summary, Vec<String>),
    (started, wall_ns): (u64, u64),
    clocks: Option<Clocks>,
) -> Meta {
    let version = pmpi.library_version().unwrap_or_default();
    Meta {
        refrain_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: config.command.clone(),
        library: library_name(&version),
        abi: pmpi.abi().family.name().to_owned(),
        ranks,
        cores: summary.cores(),
        hosts: summary.hosts,
        started,
        wall_ns,
        options: options(config),
        split: config.split,
        timed: config.time != Time::Off,
        complete: summary.notes.is_empty(),
        notes: [summary.notes, lost].concat(),
        paths: summary.paths,
        profile: summary
            .profile
            .map(|mut profile| {
                profile.settle();
                profile
            })
            // It came as text, from ranks that may have failed.
            .filter(|profile| profile.is_valid()),
        memory: summary.memory.map(|m| Memory {
            min: m.min,
            mean: m.total / m.ranks.max(1),
            max: m.max,
            root: 0,
        }),
        merge_ms: None,
        clocks,
        flight: Vec::new(),
    }
}

/// What is not as it is by default.
pub fn options(config: &Config) -> Vec<(String, String)> {
    let pointers = (!config.pointers).then(|| ("pointers".to_owned(), "off".to_owned()));
    let said = config.choice.said().iter().map(|(option, text)| ((*option).to_owned(), text.clone()));
    let stacks = match config.stacks {
        Kept::Nothing => None,
        Kept::Site => Some("site"),
        Kept::Full => Some("full"),
    };
    let recursion = stacks.filter(|_| !config.fold_recursion).map(|_| "keep");
    let fold = (config.fold != Folding::default()).then(|| config.fold.to_string());
    let time = !matches!(config.time, Time::Off | Time::Mean);
    let time = time.then(|| config.time.to_string());
    let more = [
        ("time", time.as_deref()),
        ("fold", fold.as_deref()),
        ("stacks", stacks),
        ("recursion", recursion),
        ("lossy", config.lossy.said()),
    ];
    let more = more.into_iter().filter_map(|(option, text)| Some((option.to_owned(), text?.to_owned())));
    pointers.into_iter().chain(more).chain(said).collect()
}

/// The first line of a library's own description, without the padding: MPICH's goes on for a kilobyte about its build.
pub fn library_name(version: &str) -> String {
    let line = version.lines().next().unwrap_or("").split(", package:").next().unwrap_or("");
    line.split_whitespace().collect::<Vec<_>>().join(" ").replace("MPICH Version: ", "MPICH ")
}

/// Whether it was written. The ranks had all come at the moment `met`. `make_room` makes room on the disk of a file for so many
/// bytes, or says that it cannot.
pub fn write<R: Read + Seek>(
    config: &Config,
    spawned: bool,
    alone: Option<u32>,
    job: Option<&Job>,
    (mut trace, mut chunks): (Trace, Option<&mut R>),
    met: Moment,
    make_room: impl FnOnce(&Path, u64) -> bool,
) -> bool {
    let score = matches!(config.fold, Folding::Loops { together: true, .. });
    let scored = if score { trace.bundle.score() } else { Ok(()) };
    if let Err(error) = scored.and_then(|()| trace.bundle.canonical()) {
        say(&format!("no trace: what was merged does not hold together: {error}"));
        return false;
    }
    trace.meta.paths = trace.meta.paths.take().map(|paths| {
        let symbols = (0..).zip(&trace.bundle.symbols);
        let numbers: FastMap<u64, u64> =
            symbols.map(|(number, symbol)| (hash_symbol(&symbol.bytes, symbol.site), number)).collect();
        let mut paths = paths.renamed(|signature| numbers.get(&signature).copied());
        refrain_tracefile::settle(&mut paths);
        paths
    });
    if let Some(memory) = &mut trace.meta.memory {
        memory.root = most_held() as u64;
    }
    let merging = Moment::now().nanoseconds.saturating_sub(met.nanoseconds);
    trace.meta.merge_ms = Some(merging.div_ceil(1_000_000));
    let ranks = trace.meta.ranks;
    let calls: u64 = calls(&trace.bundle);
    let path = path(config, spawned, alone, job);
    let replace = match job {
        // What was there before, and not what somebody else has written since.
        Some(job) => Replace::old(config.force, job.old),
        // Another program of the same run may have written there since.
        None if config.held && path == config.out && !is_device(&path) => Replace::Nothing,
        None if config.force => Replace::Anything,
        None => Replace::Nothing,
    };
    let save = |chunks: Option<&mut R>| refrain_tracefile::save_with(&trace, chunks, &path, replace);
    let mut saved = save(chunks.as_deref_mut());
    if saved.as_ref().is_err_and(is_full) {
        let times = chunks.as_deref_mut().and_then(|times| times.seek(SeekFrom::End(0)).ok()).unwrap_or(0);
        let bytes = refrain_tracefile::write(&trace).len() as u64 + times;
        if make_room(&path, bytes) {
            saved = save(chunks);
        }
    }
    match &saved {
        // The launcher's `refrain` speaks of the file it asked for only.
        Ok(bytes) if config.summary || spawned => {
            say(&format!("{ranks} ranks, {calls} calls, {bytes} bytes -> {}", path.display()));
        }
        // Who waits for the run's end is on another host, and does not see it.
        Ok(bytes) if config.held && job.is_some_and(|job| !job.held) => {
            let (host, path) = (host::name(), path.display());
            say(&format!(
                "{ranks} ranks, {calls} calls, {bytes} bytes -> {path} on {host}, which is not shared"
            ));
        }
        Ok(_) => {}
        Err(error) => say(&format!("no trace: {}", mended(config, error))),
    }
    saved.is_ok()
}

/// The disk has no room.
fn is_full(error: &Error) -> bool {
    const FULL: [ErrorKind; 2] = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    matches!(error, Error::Io { error, .. } if FULL.contains(&error.kind()))
}

/// What is wrong with the file, and what to do about it here.
fn mended(config: &Config, error: &Error) -> String {
    match error {
        Error::Exists { path } if config.force => {
            let path = path.display();
            format!(
                "{path} exists, and another program may have written it since; REFRAIN_OUT names another file"
            )
        }
        Error::Exists { path } => {
            let path = path.display();
            format!("{path} exists already; REFRAIN_FORCE=on replaces it, REFRAIN_OUT names another file")
        }
        error => error.to_string(),
    }
}

/// Says at the beginning of a run what would keep its trace from being written at the end.
pub fn foresee(config: &Config, job: Option<&Job>) {
    let out = job.map_or(&config.out, |job| &job.trace);
    if let Err(error @ (Error::Exists { .. } | Error::NoFile { .. } | Error::Planted { .. })) =
        refrain_tracefile::target(out, config.force)
    {
        say(&format!("the trace cannot be written: {}", mended(config, &error)));
    }
    if let Some(job) = job.filter(|job| job.trace != config.out) {
        let (asked, own) = (config.out.display(), job.trace.display());
        say(&match &job.instead {
            None => {
                format!("{asked} is for another program of this run; the trace of this one goes to {own}")
            }
            Some(claim) if claim.holder() == Holder::Gone => format!(
                "{asked}.parts has what an earlier run left (`refrain recover {asked}.parts` makes a trace of it); the \
                 trace of this one goes to {own}"
            ),
            Some(claim) => format!(
                "{asked} is for another run (process {} on {}); the trace of this one goes to {own}",
                claim.process, claim.host
            ),
        });
    }
}

fn calls(bundle: &Bundle) -> u64 {
    let of = |cohort: &refrain_fold::bundle::Cohort| refrain_encode::calls_of_all(bundle, cohort);
    bundle.cohorts.iter().map(of).sum()
}
