//! `refrain extrapolate`: opens the traces, says what was found out, and writes the trace of another number of ranks.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use refrain_extrapolate::{Error, Input, Options, Problem, Report, extrapolate};
use refrain_fold::bundle::sites::Sites;
use refrain_sites::{Binaries, Location, Names};
use refrain_tracefile::{Replace, Trace};
use refrain_views::human::plural;
use refrain_views::json;
use serde::Serialize;

use crate::failure::{Failure, not_saved};
use crate::paint::Look;
use crate::progress::Bar;
use crate::reading::{NO, finish, open, say_written, shown};
use crate::say;

pub struct How {
    pub ranks: u32,
    pub out: PathBuf,
    pub guess: bool,
    pub force: bool,
    pub json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    from: &'a [u32],
    ranks: u32,
    /// The trace was written.
    written: bool,
    kinds: u64,
    same: u64,
    laws: u64,
    unconfirmed: u64,
    /// A number of ranks that one more trace would say most at.
    next: Option<u32>,
    problems: Vec<Part<'a>>,
    /// Laws that were not held against a trace that they were not found with.
    not_confirmed: Vec<Part<'a>>,
}

#[derive(Serialize)]
struct Part<'a> {
    function: Option<&'a str>,
    parameter: &'a str,
    /// Where the call is; nothing where no trace says.
    site: Option<String>,
    why: &'a str,
    /// A trace of so many ranks would say which of two laws it is.
    settled_by: Option<u32>,
    seen: Vec<Seen<'a>>,
    places: u64,
    guessed: bool,
}

#[derive(Serialize)]
struct Seen<'a> {
    ranks: u32,
    what: &'a str,
}

pub fn command(files: &[PathBuf], how: &How) -> Result<ExitCode, Failure> {
    refrain_tracefile::target(&how.out, how.force).map_err(|error| not_saved(&error))?;
    let traces: Vec<Trace> =
        files.iter().map(|file| open(file).map(|opened| opened.trace)).collect::<Result<_, _>>()?;
    let name = |file: &PathBuf| file.display().to_string();
    let inputs: Vec<Input<'_>> =
        files.iter().zip(&traces).map(|(file, trace)| Input { name: name(file), trace }).collect();
    let options = Options { ranks: how.ranks, guess: how.guess };
    let mut bar = Bar::new("extrapolating");
    let outcome = extrapolate(&inputs, options, &mut |done, all| bar.show(done, all)).map_err(failed)?;
    bar.say("writing the trace");
    if let Some(trace) = &outcome.trace {
        let replace = if how.force { Replace::Anything } else { Replace::Nothing };
        refrain_tracefile::save_as(trace, &how.out, replace).map_err(|error| not_saved(&error))?;
    }
    bar.clear();
    let written = outcome.trace.is_some();
    let mut out = shown(how.json, Look::Answer);
    let told = Told { report: &outcome.report, written, places: Places::of(&traces) };
    let told = if how.json { told.write_json(&mut out) } else { told.write_text(&mut out) };
    finish(&how.out, told)?;
    drop(out);
    let Some(trace) = &outcome.trace else { return Ok(ExitCode::from(NO)) };
    say_saved(trace, &how.out);
    if !outcome.report.unconfirmed.is_empty() {
        let laws = plural(outcome.report.found.unconfirmed, "law");
        say(&format!("warning: {laws} not confirmed: two traces cannot confirm a law"));
    }
    Ok(ExitCode::SUCCESS)
}

fn say_saved(trace: &Trace, out: &Path) {
    if !refrain_tracefile::is_device(out) {
        let length = out.metadata().map_or(0, |file| file.len());
        say_written(trace, length, out, out);
    }
}

fn failed(error: Error) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        Error::OneTrace => {
            failure.help("name traces of the same program at two numbers of ranks or more; three are better")
        }
        Error::SameRanks(..) => failure.help("leave one of them out"),
        Error::Options(..) => failure.help("record all of them with the same options"),
        Error::NotSplit(_) => failure.help("record it without --split off"),
        Error::Incomplete(_) | Error::Missing(..) => {
            failure.help("record every call of every rank, to the end")
        }
        _ => failure,
    }
}

/// Call sites by name.
struct Places {
    sites: Sites,
    names: Binaries,
}

impl Places {
    fn of(traces: &[Trace]) -> Places {
        let mut sites = Sites::default();
        traces.iter().for_each(|trace| sites.join(&trace.bundle.sites));
        let names = Binaries::new(&sites, &[]);
        Places { sites, names }
    }

    fn name(&self, site: u64) -> Option<String> {
        let frame = *self.sites.frames(site).last()?;
        self.names.places(frame).last().map(Location::to_string)
    }
}

struct Told<'a> {
    report: &'a Report,
    written: bool,
    places: Places,
}

impl Told<'_> {
    fn write_text(&self, out: &mut dyn Write) -> Result<(), refrain_views::Error> {
        let Told { report, written, .. } = *self;
        let from: Vec<String> = report.from.iter().map(u32::to_string).collect();
        let found = report.found;
        writeln!(out, "learnt from {} ranks, for {} ranks", from.join(", "), report.ranks)?;
        if found.kinds > 0 {
            writeln!(
                out,
                "{} of ranks; {} the same everywhere, {} by a law",
                plural(found.kinds, "kind"),
                plural(found.same, "number"),
                plural(found.laws, "number"),
            )?;
        }
        if !report.unconfirmed.is_empty() {
            writeln!(out, "\nnot confirmed, as only two traces tell of it:")?;
            self.write_parts(&report.unconfirmed, out)?;
        }
        if !report.problems.is_empty() {
            writeln!(out, "\n{}:", if written { "guessed, as no law was found" } else { "not worked out" })?;
            self.write_parts(&report.problems, out)?;
        }
        if let Some(next) = report.next {
            writeln!(out, "\none more trace may settle it: take one of {}", plural(next.into(), "rank"))?;
        }
        if !written {
            writeln!(out, "\nnothing was written; --guess takes what the largest trace has")?;
        }
        Ok(out.flush()?)
    }

    fn write_parts(&self, parts: &[Problem], out: &mut dyn Write) -> Result<(), refrain_views::Error> {
        for Problem { function, parameter, site, seen, why, places, .. } in parts {
            let mut what =
                if function.is_empty() { parameter.clone() } else { format!("{function} {parameter}") };
            if let Some(place) = self.places.name(*site) {
                what = format!("{what} at {place}");
            }
            let places =
                if *places > 1 { format!(" (in {places} places or kinds of ranks)") } else { String::new() };
            writeln!(out, "  {what}{places}: {why}")?;
            for (ranks, seen) in seen {
                writeln!(out, "    {}: {seen}", plural((*ranks).into(), "rank"))?;
            }
        }
        Ok(())
    }

    fn part<'a>(&self, problem: &'a Problem, guessed: bool) -> Part<'a> {
        Part {
            function: Some(problem.function.as_str()).filter(|name| !name.is_empty()),
            parameter: &problem.parameter,
            site: self.places.name(problem.site),
            settled_by: problem.settled_by,
            why: &problem.why,
            seen: problem.seen.iter().map(|(ranks, what)| Seen { ranks: *ranks, what }).collect(),
            places: problem.places,
            guessed,
        }
    }

    fn write_json(&self, out: &mut dyn Write) -> Result<(), refrain_views::Error> {
        let Told { report, written, .. } = *self;
        let document = Document {
            schema: "refrain-extrapolate-1",
            from: &report.from,
            ranks: report.ranks,
            written,
            kinds: report.found.kinds,
            same: report.found.same,
            laws: report.found.laws,
            unconfirmed: report.found.unconfirmed,
            next: report.next,
            problems: report.problems.iter().map(|problem| self.part(problem, written)).collect(),
            not_confirmed: report.unconfirmed.iter().map(|law| self.part(law, false)).collect(),
        };
        Ok(json::document(&document, out)?)
    }
}
