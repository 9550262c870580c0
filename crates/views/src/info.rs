//! A trace on one screen: what ran, what was kept, where the bytes are.

use std::collections::HashSet;
use std::io::Write;

use refrain_fold::bundle::Bundle;
use refrain_fold::loops::Node;
use refrain_fold::ranks::RankList;
use refrain_model::time::Time;
use refrain_model::{Code, Histograms, Lossy, Numbers};
use refrain_sites::printable;
use refrain_tracefile::{Memory, Trace};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::clocks;
use crate::cores;
use crate::error::Error;
use crate::flight::Picture;
use crate::human::{date, duration, folded, plural, ranks as rank_list, thousands};
use crate::json;
use crate::length::Length;
use crate::timed::time_of;

/// What is known of the file beside its content.
#[derive(Debug, Clone, Default)]
pub struct File<'a> {
    pub name: &'a str,
    pub bytes: u64,
    /// Name and length of each section, in the order of the file.
    pub sections: &'a [(&'a str, u64)],
    /// The memory references of the same run, where it has them too.
    pub references: Option<Beside>,
    /// How many calls have a time of their own, where that was to be kept.
    pub timed: Option<u64>,
    /// Where its ranks were, of a run that did not end by itself.
    pub flight: Picture,
}

/// How many memory references a file has beside its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Beside {
    pub references: u64,
    pub threads: u64,
    pub complete: bool,
    pub notes: Vec<String>,
}

/// Calls of all ranks.
pub fn calls(bundle: &Bundle) -> u64 {
    bundle
        .cohorts
        .iter()
        .fold(0u64, |sum, cohort| sum.saturating_add(refrain_encode::calls_of_all(bundle, cohort)))
}

fn rules(bundle: &Bundle) -> u64 {
    bundle.structures.iter().filter_map(|s| s.rules()).map(|rules| rules.rules.len() as u64).sum()
}

fn loops(bundle: &Bundle) -> u64 {
    let loops = bundle.structures.iter().filter_map(|s| s.loops()).flat_map(|loops| &loops.nodes);
    loops.filter(|node| matches!(node, Node::Loop { .. })).count() as u64
}

fn threads(bundle: &Bundle) -> u32 {
    bundle.most_threads()
}

/// Distinct call stacks that calls have.
fn sites(bundle: &Bundle) -> u64 {
    let sites: HashSet<u64> = bundle.symbols.iter().map(|symbol| symbol.site).collect();
    sites.iter().filter(|site| **site != 0).count() as u64
}

fn bytes_per_call(file: &File<'_>, calls: u64) -> f64 {
    let others: u64 = file.sections.iter().filter(|(name, _)| *name == "references").map(|(_, n)| n).sum();
    if calls == 0 { 0.0 } else { file.bytes.saturating_sub(others) as f64 / calls as f64 }
}

fn option<'a>(options: &'a [(String, String)], name: &str) -> Option<&'a str> {
    options.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

/// What a run with these options records.
pub fn recorded(options: &[(String, String)]) -> Vec<String> {
    let mut lines = calls_kept(options, true);
    lines.push(pointers_kept(options).into());
    lines.extend(stacks_kept(options));
    lines.extend(lost(options).into_iter().map(|lost| format!("lost: {lost}")));
    lines
}

/// The words of `--lossy` that a run was recorded with.
pub fn lossy(trace: &Trace) -> Option<&str> {
    option(&trace.meta.options, "lossy")
}

/// What these words mean for a reader.
fn lost(options: &[(String, String)]) -> Vec<String> {
    let Some(words) = option(options, "lossy") else { return Vec::new() };
    let Ok(lossy) = Lossy::read(Some(words)) else { return vec![format!("--lossy {words}")] };
    let mut lines = Vec::new();
    if let Some(Histograms { trigger, bins }) = lossy.histograms {
        let (numbers, ones) =
            (if trigger == 1 { "number" } else { "numbers" }, if bins == 1 { "one" } else { "ones" });
        lines.push(format!(
            "the order of peers and counts that take more than {trigger} {numbers} to tell; they are sorted, at most \
             {bins} different {ones}"
        ));
    }
    if lossy.averages {
        lines.push(
            "the counts of MPI_Alltoallv and its kin; they are means over all ranks, both sent and received"
                .into(),
        );
    }
    if lossy.tags {
        lines.push("tags, where the order of messages says the same; they are 0".into());
    }
    if lossy.waits {
        lines.push(
            "how many MPI_Waitsome and MPI_Testsome it took; those of the same requests are one".into(),
        );
    }
    if lossy.sites > 0 {
        lines.push(format!(
            "call stacks as deep as each other that differ in fewer than {} frames; they are one of them",
            lossy.sites
        ));
    }
    for Code { module, start, end } in &lossy.sites_in {
        lines.push(format!("which place in {module}+{start:#x}-{end:#x} a call was made from"));
    }
    lines
}

/// Where calls were made, if that was asked for.
fn stacks_kept(options: &[(String, String)]) -> Option<String> {
    let what = match (option(options, "stacks")?, option(options, "recursion")) {
        ("site", _) => "the place that calls MPI",
        ("full", Some("keep")) => "all frames, recursions as deep as they are",
        ("full", _) => "all frames, recursions folded",
        _ => return None,
    };
    Some(format!("call stacks: {what}"))
}

fn pointers_kept(options: &[(String, String)]) -> &'static str {
    match option(options, "pointers") {
        Some("off") => "buffer addresses: not kept (--pointers off)",
        _ => "buffer addresses: as allocation and offset",
    }
}

/// The ranks that were to be recorded; all where nothing else was said.
pub fn chosen_ranks(trace: &Trace) -> impl Iterator<Item = u32> {
    let chosen: Option<Numbers> = option(&trace.meta.options, "ranks").and_then(|ranks| ranks.parse().ok());
    (0..trace.meta.ranks).filter(move |&rank| chosen.as_ref().is_none_or(|chosen| chosen.contains(rank)))
}

/// Whether ranks were chosen of which the run had none.
pub fn in_vain(trace: &Trace) -> bool {
    trace.meta.ranks > 0 && chosen_ranks(trace).next().is_none()
}

/// Which calls were asked for, and whether all of these are there.
fn calls_kept(options: &[(String, String)], complete: bool) -> Vec<String> {
    let option = |name| option(options, name);
    let (only, skip, window) = (option("only"), option("skip"), option("window"));
    let which = only.map_or("every call".into(), |only| format!("only {only}"));
    let ranks = option("ranks").map_or("every rank".into(), |ranks| {
        let several = ranks.contains([',', '-']);
        format!("rank{} {ranks}", if several { "s" } else { "" })
    });
    let skip = skip.map_or(String::new(), |skip| format!(" but {skip}"));
    let window = window.map_or(String::new(), |window| format!(", {window} after MPI_Init"));
    let but = if lost(options).is_empty() { "" } else { " but those below" };
    let missing = if complete { "" } else { " but those that are missing (see notes)" };
    let mut lines =
        vec![format!("calls: {which}{skip} of {ranks}{window}{missing}, all arguments and results{but}")];
    if only.is_some() || option("skip").is_some() || !window.is_empty() {
        lines.push(
            "calls: also MPI_Init, MPI_Finalize, MPI_Pcontrol, and what makes the objects of these calls"
                .into(),
        );
    }
    lines
}

/// Whether the program switched recording itself.
fn switched(trace: &Trace) -> bool {
    let control = |symbol: &refrain_fold::bundle::SymbolEntry| {
        refrain_encode::Layout::parse(&symbol.bytes)
            .is_ok_and(|layout| layout.function.name == "MPI_Pcontrol")
    };
    option(&trace.meta.options, "pcontrol") != Some("off") && trace.bundle.symbols.iter().any(control)
}

pub fn write_text(trace: &Trace, file: &File<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let (meta, bundle) = (&trace.meta, &trace.bundle);
    let calls = calls(bundle);
    let mut lines: Vec<(&str, String)> = Vec::new();
    let state = match (meta.extrapolated(), meta.complete) {
        (Some(_), _) => "extrapolated, not recorded",
        (None, true) => "complete",
        (None, false) => "partial: the run did not finish",
    };
    lines.push(("file", format!("{}, {}, {state}", file.name, plural(file.bytes, "byte"))));
    let command = meta.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    match meta.extrapolated() {
        // That of another run, with another number of ranks.
        Some(_) => lines.push(("worked out from", command)),
        None => lines.push(("command", command)),
    }
    lines.push(("MPI library", format!("{} ({})", first_line(&meta.library), meta.abi)));
    lines.push(("written by", format!("Refrain {}", meta.refrain_version)));
    match meta.extrapolated() {
        Some(from) => lines.push(("extrapolated", from.to_owned())),
        None => {
            lines.push(("started", date(i64::try_from(meta.started).unwrap_or(i64::MAX))));
            // Of a process that was killed the last time it looked at the clock is known.
            let (at_least, end) = match meta.complete {
                true => ("", "MPI_Finalize"),
                false => ("at least ", "the last call that returned"),
            };
            lines.push(match Length::of(trace) {
                Some(Length { run, .. }) => (
                    "run",
                    format!("{at_least}{run}, from the start of MPI_Init to {end} on the longest rank"),
                ),
                None => {
                    ("wall time", format!("{at_least}{} after MPI_Init on rank 0", duration(meta.wall_ns)))
                }
            });
        }
    }
    lines.push(("ranks", thousands(meta.ranks.into())));
    if threads(bundle) > 1 {
        lines.push(("threads", format!("up to {} a rank", threads(bundle))));
    }
    if !meta.hosts.is_empty() || meta.extrapolated().is_none() {
        lines.push(("hosts", hosts(trace)));
    }
    for (i, line) in cores::lines(meta).into_iter().enumerate() {
        lines.push((if i == 0 { "cores" } else { "" }, line));
    }
    let each = format!("{:.3} bytes a call", bytes_per_call(file, calls));
    lines.push(("calls", if calls == 0 { "0".into() } else { format!("{}, {each}", thousands(calls)) }));
    lines.push((
        "folded into",
        format!(
            "{}, {} in {}, {}, for {} of {}",
            plural(bundle.symbols.len() as u64, "symbol"),
            if rules(bundle) > 0 || loops(bundle) == 0 {
                plural(rules(bundle), "rule")
            } else {
                plural(loops(bundle), "loop")
            },
            plural(bundle.structures.len() as u64, "structure"),
            plural(bundle.streams.len() as u64, "stream"),
            plural(bundle.of_threads().len() as u64, "kind"),
            if threads(bundle) > 1 { "threads" } else { "ranks" },
        ),
    ));
    if let Some(Beside { references, threads, complete, .. }) = &file.references {
        let partial = if *complete { "" } else { ", partial" };
        let (references, threads) = (thousands(*references), plural(*threads, "thread"));
        lines.push((
            "references",
            format!("{references} of {threads}{partial}: `--references` with dump, loops, stats"),
        ));
    }
    if !bundle.sites.is_empty() {
        let modules = plural(bundle.sites.modules.len() as u64, "module");
        lines.push(("called from", format!("{} in {modules}", plural(sites(bundle), "place"))));
    }
    let sections: Vec<String> =
        file.sections.iter().map(|(name, n)| format!("{name} {}", thousands(*n))).collect();
    lines.push(("bytes", sections.join(", ")));
    if let Some(memory) = &meta.memory {
        let kib = |bytes: u64| thousands(bytes >> 10);
        lines.push((
            "tracer's memory",
            format!(
                "{} to {} KiB a rank, mean {}; {} on rank 0 with the merge",
                kib(memory.min),
                kib(memory.max),
                kib(memory.mean),
                kib(memory.root)
            ),
        ));
    }
    if let Some(merge) = meta.merge_ms {
        lines.push((
            "merge",
            format!("at most {} ms on rank 0, before the file was written", thousands(merge)),
        ));
    }
    for (i, line) in clocks::lines(meta).into_iter().enumerate() {
        lines.push((if i == 0 { "clock" } else { "" }, line));
    }
    for (i, kept) in kept(trace, file).into_iter().enumerate() {
        lines.push((if i == 0 { "kept" } else { "" }, kept));
    }
    for (i, lost) in lost(&meta.options).into_iter().enumerate() {
        lines.push((if i == 0 { "lost" } else { "" }, lost));
    }
    let of_references = file.references.iter().flat_map(|beside| &beside.notes);
    let of_references = of_references.map(|note| format!("references: {note}"));
    for (i, note) in meta.notes.iter().cloned().chain(of_references).enumerate() {
        lines.push((if i == 0 { "notes" } else { "" }, note));
    }
    for (i, conclusion) in file.flight.conclusions.iter().enumerate() {
        lines.push((if i == 0 { "in short" } else { "" }, conclusion.clone()));
    }
    for (i, line) in file.flight.lines().into_iter().enumerate() {
        lines.push((if i == 0 { "in flight" } else { "" }, line));
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, text) in &lines {
        // Hosts, options and notes are what the file says they are.
        writeln!(out, "{name:<width$}  {}", printable(text))?;
    }
    Ok(out.flush()?)
}

/// What is known of when single calls were, if so many of them have times.
pub fn of_every_call(trace: &Trace, timed: Option<u64>) -> Option<String> {
    let told = match time_of(trace) {
        Ok(Time::Histogram) => {
            "how durations and gaps of each call after another are distributed, to within 10%"
        }
        Ok(Time::Exact) => "when each call began and ended, to the nanosecond",
        Ok(Time::Binned(_)) => "when each call began and ended, within an error that is told with it",
        _ => return None,
    };
    let calls = calls(&trace.bundle);
    Some(match calls.saturating_sub(timed.unwrap_or(calls)) {
        0 => told.to_owned(),
        all if all == calls => "when single calls began and ended: of none of them".to_owned(),
        some => format!("{told} where kept; {} of {} have none", thousands(some), plural(calls, "call")),
    })
}

/// What can be had from the trace, and what cannot.
fn kept(trace: &Trace, file: &File<'_>) -> Vec<String> {
    let pointers = pointers_kept(&trace.meta.options);
    let time = if trace.meta.timed && !trace.meta.split {
        "time: total, mean, shortest and longest for calls with the same arguments, and by rank, to within 3.2%; stats --per signature"
    } else if trace.meta.timed {
        "time: total, mean, shortest and longest for each kind of call, message size and peer, and by rank, to within 3.2%; \
         where that is below about 1/1000 of the time in MPI, for each function"
    } else if trace.meta.extrapolated().is_some() {
        "time: none, as nothing was timed"
    } else {
        "time: not kept (--time off)"
    };
    let every_call = of_every_call(trace, file.timed);
    let mut kept = calls_kept(&trace.meta.options, trace.meta.complete);
    if switched(trace) {
        kept.push("calls: not those between MPI_Pcontrol(0) and MPI_Pcontrol of another level".into());
    }
    kept.extend([pointers.into(), time.into()]);
    kept.extend(every_call.map(|told| format!("time: {told}")));
    if !trace.meta.split {
        kept.push("numbers: as part of their calls (--split off)".into());
    }
    let stacks = stacks_kept(&trace.meta.options);
    let mut told = vec!["pointers", "time", "split", "ranks", "only", "skip", "window", "pcontrol", "lossy"];
    told.push(refrain_tracefile::EXTRAPOLATED);
    if stacks.is_some() {
        told.extend(["stacks", "recursion"]);
    }
    kept.extend(stacks);
    let others = trace.meta.options.iter().filter(|(name, _)| !told.contains(&name.as_str()));
    kept.extend(others.map(|(name, value)| format!("option {name}: {value}")));
    kept
}

fn hosts(trace: &Trace) -> String {
    /// More than this does not fit on one screen.
    const MOST: usize = 4;
    let hosts = &trace.meta.hosts;
    let show = |(name, ranks): &(String, RankList)| {
        let ranks: Vec<u32> = ranks.iter().collect();
        format!("{name} (rank {})", folded(&ranks))
    };
    match hosts.as_slice() {
        [] => "not known".into(),
        [(name, _)] => name.clone(),
        many => {
            let mut shown: Vec<String> = many.iter().take(MOST).map(show).collect();
            if many.len() > MOST {
                shown.push(format!("and {} more", many.len() - MOST));
            }
            format!("{}: {}", many.len(), shown.join(", "))
        }
    }
}

/// As one would type it.
fn quoted(word: &str) -> String {
    let bare = |c: char| c.is_alphanumeric() || "-_./=,:+@%^".contains(c);
    if !word.is_empty() && word.chars().all(bare) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Version strings of MPI libraries go on for a page.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("").trim_end()
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: &'a str,
    bytes: u64,
    complete: bool,
    refrain_version: &'a str,
    command: &'a [String],
    library: &'a str,
    abi: &'a str,
    ranks: u32,
    threads: u32,
    hosts: Vec<Host<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cores: Vec<cores::Document>,
    started: String,
    /// Of rank 0, after `MPI_Init`.
    wall_ns: u64,
    /// Of the longest rank, with `MPI_Init`.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_error_ns: Option<u64>,
    calls: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_calls: Option<u64>,
    bytes_per_call: Box<RawValue>,
    symbols: usize,
    structures: usize,
    rules: u64,
    loops: u64,
    streams: usize,
    kinds_of_ranks: usize,
    sites: u64,
    modules: usize,
    #[serde(serialize_with = "json::pairs")]
    sections: &'a [(&'a str, u64)],
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<&'a Beside>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracer_memory: Option<Held>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merge_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks: Option<clocks::ClocksDocument>,
    split: bool,
    timed: bool,
    #[serde(serialize_with = "json::pairs")]
    options: &'a [(String, String)],
    notes: &'a [String],
    #[serde(flatten)]
    flight: Option<&'a Picture>,
}

#[derive(Serialize)]
struct Host<'a> {
    name: &'a str,
    ranks: String,
}

/// The bytes that the tracer held on each rank, and on rank 0 with the merge.
#[derive(Serialize)]
struct Held {
    min: u64,
    mean: u64,
    max: u64,
    root: u64,
}

pub fn write_json(trace: &Trace, file: &File<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let (meta, bundle) = (&trace.meta, &trace.bundle);
    let (calls, length) = (calls(bundle), Length::of(trace));
    let document = Document {
        schema: "refrain-info-1",
        file: file.name,
        bytes: file.bytes,
        complete: meta.complete,
        refrain_version: &meta.refrain_version,
        command: &meta.command,
        library: &meta.library,
        abi: &meta.abi,
        ranks: meta.ranks,
        threads: threads(bundle),
        hosts: meta.hosts.iter().map(Host::of).collect(),
        cores: cores::documents(meta),
        started: date(i64::try_from(meta.started).unwrap_or(i64::MAX)),
        wall_ns: meta.wall_ns,
        run_ns: length.map(|length| length.run.ns),
        run_error_ns: length.and_then(|length| length.run.open()),
        calls,
        timed_calls: file.timed,
        bytes_per_call: json::number(format!("{:.6}", bytes_per_call(file, calls))),
        symbols: bundle.symbols.len(),
        structures: bundle.structures.len(),
        rules: rules(bundle),
        loops: loops(bundle),
        streams: bundle.streams.len(),
        kinds_of_ranks: bundle.of_threads().len(),
        sites: sites(bundle),
        modules: bundle.sites.modules.len(),
        sections: file.sections,
        references: file.references.as_ref(),
        tracer_memory: meta.memory.as_ref().map(Held::of),
        merge_ms: meta.merge_ms,
        clocks: meta.clocks.as_ref().map(clocks::ClocksDocument::of),
        split: meta.split,
        timed: meta.timed,
        options: &meta.options,
        notes: &meta.notes,
        flight: Some(&file.flight).filter(|flight| !flight.is_empty()),
    };
    Ok(json::document(&document, out)?)
}

impl Host<'_> {
    fn of((name, ranks): &(String, RankList)) -> Host<'_> {
        Host { name, ranks: rank_list(&ranks.iter().collect::<Vec<_>>()) }
    }
}

impl Held {
    fn of(&Memory { min, mean, max, root }: &Memory) -> Held {
        Held { min, mean, max, root }
    }
}
