//! The calls of one thread, from first to last: what is left out or changed, when each is made, how long all took.

use std::collections::HashSet;
use std::time::Instant;

use refrain_encode::Reader;
use refrain_tracefile::Trace;
use refrain_views::replayable::{Draws, draws};
use refrain_views::timed::Timed;

use crate::ahead::Ahead;
use crate::drawn::Director;
use crate::issue::{Process, Report, Thread};
use crate::pace::Pace;
use crate::perform::is_failed_poll;
use crate::subset::Subset;
use crate::what_if::{self, NoFiles, Without};
use crate::{Done, Setting};
use refrain_views::gaps::Gaps;

/// Makes the calls of a thread of a rank.
pub fn calls(process: &Process, trace: &Trace, setting: &Setting<'_>, thread: u32) -> Result<Done, String> {
    let Setting { rank, ranks, options, watch, .. } = *setting;
    let started = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
    let draw = process.drawn.as_ref().and_then(|_| draws(trace, options.seed));
    let (reader, mut director) = match draw {
        None => (Reader::new(&trace.bundle), None),
        Some(Draws { draw, collectives }) => {
            let director = Director::new(trace, draw, rank, options, collectives)?;
            (Reader::drawing(&trace.bundle, draw), Some(director))
        }
    };
    let times = if options.factor() > 0.0 { (setting.times)()? } else { None };
    let factor = options.factor();
    let mut gaps = if factor > 0.0 {
        Gaps::of(trace, (rank, thread), times.is_some(), options.seed)
    } else {
        Gaps::Unknown
    };
    let factor = if matches!(gaps, Gaps::Unknown) { 0.0 } else { factor };
    let nothing = HashSet::new();
    let shared = process.several.as_ref().map_or(&nothing, |several| several.requests());
    let ahead = Ahead::new(trace, (rank, thread), process.cancels, shared);
    let ahead = ahead.map_err(|error| error.to_string())?;
    let timed = Timed::new(&trace.bundle, &reader, times.as_ref(), (rank, thread), 0);
    let mut calls = timed.map_err(|error| error.to_string())?;
    let mut issuing = Thread::new(process, ahead);
    issuing.number = thread;
    issuing.pace = Pace::new(factor, options.sleep, watch.of_thread(thread));
    let mut subset = options.ranks.is_some().then(|| Subset::new(ranks, rank, trace.meta.ranks));
    let mut no_files = options.no_io.then(NoFiles::default);
    let (mut began, mut wall, mut left_out) = (None, None, 0);
    loop {
        let number = calls.number();
        let Some((mut call, told)) = calls.next_call().map_err(|error| error.to_string())? else { break };
        // Polls that failed are part of the call that found something at last.
        let symbol = calls.symbol().filter(|_| !is_failed_poll(&call));
        issuing.pace.owe(number, gaps.next(symbol, told.as_ref()));
        let name = call.function.name;
        if options.message_size != 1.0 {
            what_if::sized(&mut call, options.message_size);
        }
        if let Some(director) = director.as_mut().filter(|_| !is_failed_poll(&call)) {
            director
                .next(process, &mut call, symbol)
                .map_err(|why| format!("call {number}, {name}: {why}"))?;
        }
        let without = no_files.as_mut().map_or(Without::Nothing, |files| files.of(&call));
        if without == Without::All {
            NoFiles::requests(&call).into_iter().for_each(|request| process.never_made(request));
            issuing.passed_over(&call);
            left_out += 1;
            continue;
        }
        if let Some(subset) = &mut subset {
            subset.renumber(&mut call);
        }
        let now = Instant::now;
        let ends = matches!(name, "MPI_Finalize").then(now);
        let before = (without == Without::Outcome).then(|| issuing.report.clone());
        issuing.issue(&call).map_err(|why| {
            let of = if process.several.is_some() { format!("thread {thread}, ") } else { String::new() };
            format!("{of}call {number}, {name}: {why}")
        })?;
        if let Some(Report { different, first_different, .. }) = before {
            (issuing.report.different, issuing.report.first_different) = (different, first_different);
        }
        match name {
            "MPI_Init" | "MPI_Init_thread" => {
                has_that_many_ranks(process, started)?;
                is_that_rank(process, ranks, rank)?;
                director.as_mut().map_or(Ok(()), |director| director.negotiate(process))?;
                began = Some(now());
            }
            "MPI_Finalize" => {
                let ended = issuing.pace.began().or(ends);
                wall = began.zip(ended).map(|(began, ended)| ended.saturating_duration_since(began));
            }
            _ => {}
        }
    }
    Ok(Done { report: issuing.report, gaps: gaps.word(), wall, left_out })
}

/// A library that belongs to another launcher makes a world of one rank of each process.
fn has_that_many_ranks(process: &Process, world: u32) -> Result<(), String> {
    let mut size = 0i32;
    let words = [process.abi.comm_world as usize, std::ptr::from_mut(&mut size) as usize];
    if process.real_call("MPI_Comm_size", &words) == 0 && u32::try_from(size) != Ok(world) {
        return Err(format!(
            "the launcher started {world} ranks, but this MPI library has a world of {size}: it belongs to another \
             launcher (--library names one)"
        ));
    }
    Ok(())
}

/// Launchers tell a process its number in the environment. MPI may number processes in another way.
fn is_that_rank(process: &Process, ranks: &[u32], rank: u32) -> Result<(), String> {
    let mut number = 0i32;
    let words = [process.abi.comm_world as usize, std::ptr::from_mut(&mut number) as usize];
    let told = ranks.iter().position(|one| *one == rank);
    if process.real_call("MPI_Comm_rank", &words) == 0 && usize::try_from(number).ok() != told {
        let told = told.unwrap_or(0);
        return Err(format!(
            "the launcher calls this process rank {told} in its environment, but to MPI it is rank {number}: start the \
             replay with options of the launcher that number ranks in order"
        ));
    }
    Ok(())
}
