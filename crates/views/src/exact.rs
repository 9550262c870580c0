//! Where a trace tells the times of single calls, what it says of kinds of calls is computed from these. What ranks summed up while
//! they ran is rounded, and calls that took little share a mean.

use refrain_encode::{ClassLanes, Layout, Reader};
use refrain_fold::bundle::Tally;
use refrain_fold::bundle::classes::{Class, Classes};
use refrain_model::time::Time;
use refrain_tracefile::Trace;

use crate::error::Error;
use crate::stats;
use crate::timed::{Timed, Times};

/// Puts the times of single calls in place of the sums of symbols and of their classes. False, and nothing is changed, where the trace
/// does not tell them to the nanosecond, or not of every call. `progress` is told how many calls were read.
pub fn sum_up(trace: &mut Trace, times: &Times, progress: &mut dyn FnMut(u64)) -> Result<bool, Error> {
    if *times.time() != Time::Exact {
        return Ok(false);
    }
    let layouts = stats::layouts(&trace.bundle)?;
    let lanes: Vec<Option<ClassLanes>> = layouts.iter().map(ClassLanes::of).collect();
    let mut sums: Vec<(Tally, Classes)> = vec![(Tally::NONE, Classes::default()); layouts.len()];
    let reader = Reader::new(&trace.bundle);
    let mut read = 0u64;
    for rank in 0..trace.meta.ranks {
        for thread in reader.threads(rank) {
            let mut calls = Timed::new(&trace.bundle, &reader, Some(times), (rank, thread), 0)?;
            while let Some((_, told)) = calls.next_call()? {
                let (Some(told), Some(symbol)) = (told, calls.symbol()) else { return Ok(false) };
                let time = u64::try_from(told.span.end.saturating_sub(told.span.start)).unwrap_or(0);
                let tally = Tally { total: time, min: time, max: time };
                let (sum, classes) = &mut sums[symbol as usize];
                sum.add(tally);
                if let Some(kind) = lanes[symbol as usize].map(|lanes| calls.kind(lanes)) {
                    classes.add(Class { kind, count: 1, tally });
                }
                read += 1;
                if read.is_multiple_of(1 << 14) {
                    progress(read);
                }
            }
        }
    }
    for ((symbol, (sum, classes)), layout) in trace.bundle.symbols.iter_mut().zip(sums).zip(&layouts) {
        // The trace is written before its last call ends.
        if sum == Tally::NONE || is_last(layout) {
            continue;
        }
        symbol.tally = sum;
        // What is all alike is told by its symbol.
        let several = classes.together || classes.list().len() > 1;
        symbol.classes = if several { classes } else { Classes::default() };
    }
    Ok(true)
}

fn is_last(layout: &Layout) -> bool {
    layout.function.name == "MPI_Finalize"
}
