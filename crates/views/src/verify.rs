//! Is what a trace gives back what was recorded? Every thread's calls are decoded and held against the digest that was
//! taken while the program ran.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;

use refrain_encode::{Reader, calls_of_all};
use refrain_fold::bundle::{self, Cohort, Lane, Own, blend};
use refrain_sites::printable;
use refrain_tracefile::Trace;

use crate::error::Error;
use crate::human::{folded as rank_list, plural};
use crate::info::{chosen_ranks, in_vain, lossy};

/// What was found; nothing in `problems` is a yes.
#[derive(Debug, Default)]
pub struct Report {
    pub problems: Vec<Problem>,
    pub ranks: u64,
    /// On all ranks.
    pub calls: u64,
    /// Sets of ranks that made the same calls.
    pub cohorts: usize,
    pub complete: bool,
    /// Nobody recorded it: what it was worked out from.
    pub extrapolated: Option<String>,
    /// The words of `--lossy`: what was recorded was not all kept.
    pub lossy: Option<String>,
    /// Only ranks were to be recorded that the run did not have.
    pub in_vain: bool,
}

#[derive(Debug)]
pub enum Problem {
    /// Parts of the trace that do not fit each other.
    Bundle(bundle::Error),
    /// Ranks that nothing is recorded of.
    Missing(Vec<u32>),
    /// A call that cannot be read back.
    Call { rank: u32, thread: u32, position: u64, error: refrain_encode::Error },
    /// The calls are not those that were recorded; nor are those of so many others, on other ranks or also in other threads.
    Digest { rank: u32, thread: u32, calls: u64, others: u64, threads: bool },
    /// The calls of at least one of these threads of these ranks are not; only their digests' sum is kept.
    OneOf { ranks: Vec<u32>, threads: Vec<u32> },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Bundle(error) => write!(f, "the trace's parts do not fit: {error}"),
            Problem::Missing(ranks) => write!(f, "nothing is recorded of rank {}", rank_list(ranks)),
            Problem::Call { rank, thread, position, error } => {
                write!(f, "call {position} of rank {rank}, thread {thread} cannot be read: {error}")
            }
            Problem::Digest { rank, thread, calls, others, threads } => {
                write!(f, "the {} of rank {rank}, thread {thread}", plural(*calls, "call"))?;
                if *others > 0 {
                    let what = if *threads { "thread" } else { "rank" };
                    write!(f, " (and of {} that did the same)", plural(*others, what))?;
                }
                write!(f, " are not those that were recorded: their digest differs")
            }
            Problem::OneOf { ranks, threads } => {
                let word = if threads.len() == 1 { "thread" } else { "threads" };
                write!(f, "the calls of one of ranks {}, {word} {}", rank_list(ranks), rank_list(threads))?;
                write!(f, " are not those that were recorded: their digest differs")
            }
        }
    }
}

/// Ranks of a cohort that have the same streams in all lanes did the same, so reading one of them is reading all.
/// `progress` is told how many of how many calls have been read, from time to time.
pub fn verify(trace: &Trace, progress: &mut dyn FnMut(u64, u64)) -> Report {
    let bundle = &trace.bundle;
    let mut report = Report {
        complete: trace.meta.complete,
        cohorts: bundle.cohorts.len(),
        extrapolated: trace.meta.extrapolated().map(str::to_owned),
        lossy: lossy(trace).map(str::to_owned),
        in_vain: in_vain(trace),
        ..Report::default()
    };
    if let Err(error) = bundle.validate() {
        report.problems.push(Problem::Bundle(error));
        return report;
    }
    presence(trace, &mut report);

    let cost = |c: &Cohort| {
        let all = calls_of_all(bundle, c);
        if c.is_uniform() { all / c.ranks.len().max(1) } else { all }
    };
    let all = bundle.cohorts.iter().fold(0u64, |sum, c| sum.saturating_add(cost(c)));
    let reader = Reader::new(bundle);
    let mut done = 0u64;
    for cohort in &bundle.cohorts {
        let mut step = |calls: u64| {
            done = done.saturating_add(calls);
            progress(done, all);
        };
        verify_cohort((bundle, &reader), cohort, &mut report, &mut step);
    }
    progress(all, all);
    report
}

/// Takes what a trace gives back for what was recorded, where somebody has changed it on purpose.
pub fn renew(trace: &mut Trace) -> Result<(), Problem> {
    let bundle = &trace.bundle;
    bundle.validate().map_err(Problem::Bundle)?;
    let reader = Reader::new(bundle);
    let digests = bundle.cohorts.iter().map(|cohort| Ok(sum((bundle, &reader), cohort, &mut |_| ())?.digest));
    let digests = digests.collect::<Result<Vec<u64>, Problem>>()?;
    for (cohort, digest) in trace.bundle.cohorts.iter_mut().zip(digests) {
        cohort.digest = digest;
    }
    Ok(())
}

/// What the members of a cohort give back.
struct Sum {
    digest: u64,
    /// Of all of them, and of the last.
    calls: u64,
    last: u64,
    /// So many of them differ.
    kinds: usize,
}

/// `step` is told how many calls more have been read (or need not be).
fn sum(
    (bundle, reader): (&bundle::Bundle, &Reader<'_>),
    cohort: &Cohort,
    step: &mut dyn FnMut(u64),
) -> Result<Sum, Problem> {
    let varied: Vec<&Lane> = cohort.lanes.iter().filter(|lane| matches!(lane, Lane::Varied(_))).collect();
    // By what is a member's own: calls and digest.
    let mut known: HashMap<Vec<Option<Own>>, (u64, u64)> = HashMap::new();
    let mut sum = Sum { digest: 0, calls: 0, last: 0, kinds: 0 };
    for member in cohort.ranks.iter() {
        let (rank, thread) = bundle.place_of(member);
        let own: Vec<_> = varied.iter().map(|lane| lane.of_rank(member)).collect();
        let (count, digest) = match known.get(&own) {
            Some(same) => {
                if !varied.is_empty() {
                    step(same.0);
                }
                *same
            }
            None => {
                let read = read(reader, rank, thread, step)?;
                known.insert(own, read);
                read
            }
        };
        sum.last = count;
        sum.calls = sum.calls.saturating_add(count);
        sum.digest = sum.digest.wrapping_add(blend(member, digest));
    }
    sum.kinds = known.len();
    Ok(sum)
}

fn verify_cohort(
    (bundle, reader): (&bundle::Bundle, &Reader<'_>),
    cohort: &Cohort,
    report: &mut Report,
    step: &mut dyn FnMut(u64),
) {
    let sum = match sum((bundle, reader), cohort, step) {
        Ok(sum) => sum,
        Err(problem) => return report.problems.push(problem),
    };
    report.calls = report.calls.saturating_add(sum.calls);
    if sum.digest == cohort.digest {
        return;
    }
    let (mut ranks, mut threads): (Vec<u32>, Vec<u32>) =
        cohort.ranks.iter().map(|member| bundle.place_of(member)).unzip();
    for numbers in [&mut ranks, &mut threads] {
        numbers.sort_unstable();
        numbers.dedup();
    }
    report.problems.push(match (sum.kinds, cohort.ranks.first()) {
        (1, Some(first)) => {
            let (rank, thread) = bundle.place_of(first);
            let (others, threads) = (cohort.ranks.len() - 1, threads.len() > 1);
            Problem::Digest { rank, thread, calls: sum.last, others, threads }
        }
        _ => Problem::OneOf { ranks, threads },
    });
}

/// How many calls a thread made, and their digest.
fn read(
    reader: &Reader<'_>,
    rank: u32,
    thread: u32,
    step: &mut dyn FnMut(u64),
) -> Result<(u64, u64), Problem> {
    let checked = reader.check(rank, thread, step);
    checked.map_err(|(position, error)| Problem::Call { rank, thread, position, error })
}

/// Every rank of the run is there; that none is there twice is the bundle's own rule.
fn presence(trace: &Trace, report: &mut Report) {
    let ranks = trace.meta.ranks;
    let mut seen = vec![false; ranks as usize];
    for cohort in &trace.bundle.cohorts {
        for rank in trace.bundle.ranks_of(cohort).iter() {
            if let Some(seen) = seen.get_mut(rank as usize) {
                *seen = true;
            }
        }
    }
    report.ranks = seen.iter().filter(|s| **s).count() as u64;
    let missing: Vec<u32> = chosen_ranks(trace).filter(|&rank| !seen[rank as usize]).collect();
    // A partial trace holds those whose recording could be saved.
    if trace.meta.complete && !missing.is_empty() {
        report.problems.push(Problem::Missing(missing));
    }
}

pub fn write_text(report: &Report, out: &mut dyn Write) -> Result<(), Error> {
    for problem in &report.problems {
        writeln!(out, "no: {problem}")?;
    }
    if report.problems.is_empty() && report.in_vain {
        writeln!(out, "yes: but nothing was recorded, as none of the chosen ranks was in the run")?;
    } else if report.problems.is_empty() {
        let partial = if report.complete { "" } else { " (a partial trace: the run did not finish)" };
        let what = match (&report.extrapolated, &report.lossy) {
            (Some(from), _) => format!("what was extrapolated {}; nobody recorded it", printable(from)),
            (None, None) => "what was recorded".to_owned(),
            (None, Some(words)) => {
                format!("what was kept of what was recorded with --lossy {}", printable(words))
            }
        };
        writeln!(
            out,
            "yes: {}, {}: what is read back is {what}{partial}",
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
