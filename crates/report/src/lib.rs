//! A trace as one page to look at: a single HTML file that needs no network.
//!
//! Owns: what the page says (`flags` first), how much of it (a few hundred kilobytes whatever the run), and its own HTML, CSS
//! and JavaScript (`page/`). Does not own: opening files, names of binaries, terminals; all figures come from `refrain-views`.
//! Data goes into the page as one JSON document, which scripts of the page draw. Nothing in it is fetched from anywhere.
//!
//! ```no_run
//! # fn trace() -> refrain_tracefile::Trace { unimplemented!() }
//! # fn names() -> refrain_sites::Binaries { unimplemented!() }
//! let (trace, names) = (trace(), names());
//! let input = refrain_report::Input { trace: &trace, times: None, names: &names, file: "app.rfn", bytes: 367, between: None };
//! let page = refrain_report::page(&input, &mut |_, _, _| {}).unwrap();
//! std::fs::write("app.html", page).unwrap();
//! ```

#![forbid(unsafe_code)]

mod flags;
mod html;
mod memory;
mod ranks;
mod run;
mod tables;
mod timeline;
mod waits;

use refrain_sites::Names;
use refrain_tracefile::Trace;
use refrain_views::Error;
use refrain_views::select::Between;
use refrain_views::timed::Times;
use serde_json::{Value, json};

pub use memory::{Memory, memory_page};

/// A trace of MPI calls, and what is known beside it.
pub struct Input<'a> {
    pub trace: &'a Trace,
    /// When calls began and ended, where the trace tells.
    pub times: Option<&'a Times>,
    pub names: &'a dyn Names,
    pub file: &'a str,
    /// Of the file.
    pub bytes: u64,
    /// What the timeline shows closely.
    pub between: Option<Between>,
}

/// Told what is done, how far it is, and how far it goes.
pub type Progress<'p> = &'p mut dyn FnMut(&'static str, u64, u64);

/// The page of a trace of MPI calls.
pub fn page(input: &Input<'_>, progress: Progress<'_>) -> Result<String, Error> {
    let data = data(input, progress)?;
    let title = data["run"]["title"].as_str().unwrap_or("a run").to_owned();
    Ok(html::page(&title, &data))
}

/// What the page is made of.
fn data(input: &Input<'_>, progress: Progress<'_>) -> Result<Value, Error> {
    let trace = input.trace;
    let stats = refrain_views::stats::stats(trace)?;
    let matrix = refrain_views::stats::matrix(trace)?;
    let sites = match trace.bundle.sites.is_empty() {
        true => Vec::new(),
        false => refrain_views::stats::sites(trace, input.names)?,
    };
    let waits = waits::found(input, progress);
    let outlines = tables::outlines(input);
    let facts = flags::Facts {
        input,
        stats: &stats,
        matrix: &matrix,
        sites: &sites,
        waits: waits.as_ref().ok().and_then(Option::as_ref),
        outlines: outlines.as_ref().map_or(&[], Vec::as_slice),
    };
    let flags = flags::flags(&facts);
    Ok(json!({
        "kind": "calls",
        "flags": flags,
        "run": run::run(input),
        "functions": tables::functions(&stats),
        "sites": tables::sites(trace, &sites),
        "ranks": ranks::times(trace, &stats),
        "kinds": ranks::kinds(trace, &stats),
        "matrix": tables::matrix(&matrix),
        "sizes": tables::sizes(trace, &matrix)?,
        "loops": tables::loops(&outlines, &sites, &stats),
        "waits": waits::value(input, &waits),
        "timeline": timeline::timeline(input, outlines.as_ref().map_or(&[], Vec::as_slice), progress)?,
    }))
}

/// A number for JavaScript, which has no larger ones that are exact.
fn number(n: u128) -> Value {
    match u64::try_from(n) {
        Ok(small) if small < 1 << 53 => small.into(),
        _ => (n as f64).into(),
    }
}
