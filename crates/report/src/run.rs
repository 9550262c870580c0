//! What ran, and what was kept of it.

use refrain_encode::Reader;
use refrain_model::time::Time;
use refrain_sites::printable;
use refrain_tracefile::Meta;
use refrain_views::exact::is_summed_up;
use refrain_views::human::{date, plural};
use refrain_views::length::Length;
use refrain_views::timed::time_of;
use refrain_views::{command, cores, info};
use serde_json::{Value, json};

use crate::Input;

/// Hosts that are named.
const MOST_HOSTS: usize = 8;
/// Notes that are shown.
const MOST_NOTES: usize = 40;

pub fn run(input: &Input<'_>) -> Value {
    let (meta, bundle) = (&input.trace.meta, &input.trace.bundle);
    let calls = info::calls(bundle);
    let length = Length::of(input.trace);
    let reader = Reader::new(bundle);
    let recorded = (0..meta.ranks).filter(|rank| !reader.threads(*rank).is_empty()).count();
    let hosts = meta.hosts.iter().take(MOST_HOSTS);
    let notes: Vec<String> =
        meta.notes.iter().take(MOST_NOTES).map(|note| printable(note).into_owned()).collect();
    json!({
        "title": title(&meta.command),
        "command": command_of(meta),
        "library": meta.library.lines().next().unwrap_or("").trim(),
        "abi": meta.abi,
        "ranks": meta.ranks,
        "recorded_ranks": recorded,
        "chosen": refrain_views::stats::is_chosen(input.trace),
        "threads": bundle.most_threads(),
        "hosts": hosts.map(|(name, ranks)| json!([printable(name), ranks.len()])).collect::<Vec<_>>(),
        "host_count": meta.hosts.len(),
        "cores": cores::lines(meta),
        "started": date(i64::try_from(meta.started).unwrap_or(i64::MAX)),
        "run_ns": length.map(|length| length.run.ns),
        "all_ns": length.map(|length| length.all.ns),
        "run_exact": length.is_some_and(|length| length.is_exact()),
        // Of kinds of calls too.
        "exact": is_summed_up(input.trace),
        "complete": meta.complete,
        "file": input.file,
        "bytes": input.bytes,
        "calls": calls,
        "symbols": bundle.symbols.len(),
        "structures": bundle.structures.len(),
        "timed": meta.timed,
        "time": time(input),
        "times": times(input),
        "sites": !bundle.sites.is_empty(),
        "notes": notes,
        "kept": info::recorded(&meta.options),
        "version": meta.refrain_version,
    })
}

/// A prediction has no command of its own.
fn command_of(meta: &Meta) -> String {
    let command = meta.command.join(" ");
    match meta.extrapolated() {
        Some(_) => format!(
            "predicted for {}; the largest recorded run: {command}",
            plural(meta.ranks.into(), "rank")
        ),
        None => command,
    }
}

pub fn time(input: &Input<'_>) -> &'static str {
    match time_of(input.trace) {
        _ if !input.trace.meta.timed => "off",
        Ok(Time::Exact) => "exact",
        Ok(Time::Binned(_)) => "binned",
        Ok(Time::Histogram) => "histogram",
        _ => "mean",
    }
}

/// What is known of times: of single calls only where these have them.
fn times(input: &Input<'_>) -> String {
    let trace = input.trace;
    // Times that cannot be read are none.
    let timed = input.times.map_or(0, refrain_views::timed::Times::count);
    let of_kinds = || match trace.meta.timed {
        true => "total, shortest and longest of each kind of call",
        false => "not kept",
    };
    let timed = (time(input) != "histogram").then_some(timed);
    let of_calls = trace.meta.timed.then(|| info::of_every_call(trace, timed)).flatten();
    of_calls.unwrap_or_else(|| of_kinds().to_owned())
}

/// What a run is called: the program among the words of its command, or the launcher where none is found.
pub fn title(words: &[String]) -> String {
    let Some(first) = words.first() else { return "a run".into() };
    // The run is over: whether a word was a program can only be guessed.
    let found = command::analyse(words, |word| word.contains('/'));
    match found.program {
        Some(_) => found.name,
        None => first.rsplit('/').next().unwrap_or(first).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(title(&words), expected);
    }

    #[test]
    fn titles() {
        check("mpiexec.mpich -n 9 ./stencil2d 100", "stencil2d");
        check("mpiexec.openmpi --allow-run-as-root --oversubscribe -n 4 lmp -in x", "lmp");
        check("/opt/app --steps 3", "app");
        check("mpiexec --mca mpi_yield_when_idle 1 -n 4 lmp -in x", "lmp");
        check("mpiexec.hydra -genv A 1 -n 4 nice lmp -in x", "lmp");
        check("srun -N 2 --mpi=pmix /home/me/solver", "solver");
        check("", "a run");
        check("mpiexec -n 4", "mpiexec");
    }
}
