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
    let mut data = data(input, progress)?;
    // Strings of the timeline are drawn.
    let parts = data.as_object_mut().into_iter().flatten().filter(|(part, _)| *part != "timeline");
    parts.for_each(|(_, part)| shorten(part));
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

/// So many bytes of a string are shown: a program may have passed megabytes, in many calls.
const MOST_OF_STRING: usize = 4096;

/// Leaves out the middle of strings that nobody would read.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MOST_OF_STRING => {
            let whole = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let (head, tail) = (whole(MOST_OF_STRING * 3 / 4), whole(text.len() - MOST_OF_STRING / 8));
            let words = format!(" ... {} bytes ... ", tail - head);
            text.replace_range(head..tail, &words);
        }
        Value::Array(all) => all.iter_mut().for_each(shorten),
        Value::Object(all) => all.iter_mut().for_each(|(_, value)| shorten(value)),
        _ => {}
    }
}

/// A number for JavaScript, which has no larger ones that are exact.
fn number(n: u128) -> Value {
    match u64::try_from(n) {
        Ok(small) if small < 1 << 53 => small.into(),
        _ => (n as f64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_strings_lose_their_middle() {
        let (short, long) = ("ä".repeat(MOST_OF_STRING / 2), "ä".repeat(MOST_OF_STRING * 256));
        let mut value = json!({ "lines": [[1, &short], [2, format!("MPI_Info_set({long})  at main.c:7")]] });
        shorten(&mut value);
        assert_eq!(value["lines"][0][1], short);
        let shown = value["lines"][1][1].as_str().unwrap();
        assert!(shown.starts_with("MPI_Info_set(ää") && shown.ends_with("ää)  at main.c:7"), "{shown}");
        assert!(shown.len() < MOST_OF_STRING && shown.contains(" bytes ... "), "{shown}");
    }
}
