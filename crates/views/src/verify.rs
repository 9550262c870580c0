//! Is what a trace gives back what happened? Every thread's calls are decoded and held against the digest that was
//! taken while the program ran.

use std::fmt;
use std::io::Write;

use refrain_encode::{Calls, calls_of};
use refrain_fold::bundle;
use refrain_tracefile::Trace;

use crate::error::Error;
use crate::human::{plural, ranks as rank_list};

/// What was found; nothing in `problems` is a yes.
#[derive(Debug, Default)]
pub struct Report {
    pub problems: Vec<Problem>,
    pub ranks: u64,
    /// On all ranks.
    pub calls: u64,
    /// Groups of ranks that did the same.
    pub groups: usize,
    pub complete: bool,
}

#[derive(Debug)]
pub enum Problem {
    /// Parts of the trace that do not fit each other.
    Bundle(bundle::Error),
    /// Ranks that nothing is recorded of.
    Missing(Vec<u32>),
    /// Ranks that the run did not have.
    Extra(Vec<u32>),
    /// A call that cannot be read back.
    Call { rank: u32, thread: u32, position: u64, error: refrain_encode::Error },
    /// The calls are not those that happened.
    Digest { rank: u32, thread: u32, calls: u64, others: u64 },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Bundle(error) => write!(f, "the trace's parts do not fit: {error}"),
            Problem::Missing(ranks) => write!(f, "nothing is recorded of rank {}", rank_list(ranks)),
            Problem::Extra(ranks) => {
                write!(f, "rank {} is recorded, but was not in the run", rank_list(ranks))
            }
            Problem::Call { rank, thread, position, error } => {
                write!(f, "call {position} of rank {rank}, thread {thread} cannot be read: {error}")
            }
            Problem::Digest { rank, thread, calls, others } => {
                write!(f, "the {} of rank {rank}, thread {thread}", plural(*calls, "call"))?;
                if *others > 0 {
                    write!(f, " (and of {} that did the same)", plural(*others, "rank"))?;
                }
                write!(f, " are not those that happened: their digest differs")
            }
        }
    }
}

/// Ranks of one group share structure, streams and digest, so reading one of them is reading all.
/// `progress` is told how many of how many calls have been read, from time to time.
pub fn verify(trace: &Trace, progress: &mut dyn FnMut(u64, u64)) -> Report {
    let bundle = &trace.bundle;
    let mut report =
        Report { complete: trace.meta.complete, groups: bundle.groups.len(), ..Report::default() };
    if let Err(error) = bundle.validate() {
        report.problems.push(Problem::Bundle(error));
        return report;
    }
    presence(trace, &mut report);

    let all = bundle.groups.iter().fold(0u64, |sum, g| sum.saturating_add(calls_of(bundle, g)));
    let mut done = 0u64;
    for group in &bundle.groups {
        let Some(rank) = group.ranks.iter().next() else { continue };
        let thread = group.thread;
        let members = group.ranks.len();
        let mut calls = match Calls::new(bundle, rank, thread) {
            Ok(calls) => calls,
            Err(error) => {
                report.problems.push(Problem::Call { rank, thread, position: 0, error });
                continue;
            }
        };
        let mut position = 0u64;
        let mut readable = true;
        for call in &mut calls {
            if let Err(error) = call {
                report.problems.push(Problem::Call { rank, thread, position, error });
                readable = false;
                break;
            }
            position += 1;
            done += 1;
            // Often enough for a bar that moves, seldom enough to cost nothing.
            if done.is_multiple_of(1 << 14) {
                progress(done, all);
            }
        }
        report.calls = report.calls.saturating_add(position.saturating_mul(members));
        if readable && calls.digest() != group.digest {
            let others = members.saturating_sub(1);
            report.problems.push(Problem::Digest { rank, thread, calls: position, others });
        }
    }
    progress(all, all);
    report
}

/// Every rank of the run is there; that none is there twice is the bundle's own rule.
fn presence(trace: &Trace, report: &mut Report) {
    let ranks = trace.meta.ranks;
    let mut seen = vec![false; ranks as usize];
    let mut extra = Vec::new();
    for rank in trace.bundle.groups.iter().flat_map(|g| g.ranks.iter()) {
        match seen.get_mut(rank as usize) {
            Some(seen) => *seen = true,
            None => extra.push(rank),
        }
    }
    report.ranks = seen.iter().filter(|s| **s).count() as u64;
    let missing: Vec<u32> = (0u32..).zip(&seen).filter(|(_, seen)| !**seen).map(|(rank, _)| rank).collect();
    // A partial trace holds those whose recording could be saved.
    if trace.meta.complete && !missing.is_empty() {
        report.problems.push(Problem::Missing(missing));
    }
    if !extra.is_empty() {
        extra.sort_unstable();
        extra.dedup();
        report.problems.push(Problem::Extra(extra));
    }
}

pub fn write_text(report: &Report, out: &mut dyn Write) -> Result<(), Error> {
    for problem in &report.problems {
        writeln!(out, "no: {problem}")?;
    }
    if report.problems.is_empty() {
        let partial = if report.complete { "" } else { " (a partial trace: the run did not finish)" };
        writeln!(
            out,
            "yes: {}, {}: what is read back is what happened{partial}",
            plural(report.ranks, "rank"),
            plural(report.calls, "call"),
        )?;
    }
    Ok(out.flush()?)
}

/// Where a file that does not look like one of ours would be one but for a single byte at its very beginning: a flipped
/// mark, version or section count makes a file unrecognisable, not foreign.
pub fn damaged_byte(bytes: &[u8]) -> Option<usize> {
    /// Mark, version, flags, count and length: what has to be right before the header's checksum can be found.
    const BEGINNING: usize = 16;
    let mark = refrain_tracefile::MAGIC;
    let wrong = bytes.iter().zip(&mark).filter(|(have, want)| have != want).count();
    if bytes.len() <= mark.len() || wrong > 1 {
        return None;
    }
    let mut copy = bytes.to_vec();
    for at in 0..BEGINNING.min(bytes.len()) {
        let mut candidates = match mark.get(at) {
            Some(byte) => *byte..=*byte,
            None => 0..=u8::MAX,
        };
        let found = candidates.any(|byte| {
            copy[at] = byte;
            byte != bytes[at] && refrain_tracefile::read(&copy).is_ok()
        });
        if found {
            return Some(at);
        }
        copy[at] = bytes[at];
    }
    None
}
