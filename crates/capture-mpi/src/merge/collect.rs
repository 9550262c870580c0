//! What this rank has recorded, and what is known of it beside its calls.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use refrain_encode::Tape;
use refrain_fold::bundle::{Bundle, member};
use refrain_fold::ranks::RankList;
use refrain_guest::process::reserve::most_held;
use refrain_guest::process::{cores, host};
use refrain_model::time::Time;
use refrain_times::paths::Paths;
use refrain_tracefile::Profile;
use refrain_tracefile::clocks::Converter;

use super::summary::{Spread, Summary};
use crate::config::Config;
use crate::hooks::Ending;
use crate::missing;
use crate::recording::Own;

/// A fault here must not leave the other ranks waiting: this one then takes part with nothing.
pub fn collect(
    config: &Config,
    (rank, size): (u32, u32),
    streams: &mut [(u32, &mut Own)],
    clock: Converter,
    ran: (u64, u64),
    ending: Ending,
) -> (Bundle, Summary) {
    let rank_alone = RankList::single(rank);
    let mut own = Summary {
        hosts: vec![(host::name(), rank_alone.clone())],
        shares: [((host::name(), cores::allowed()), rank_alone)].into(),
        ..Summary::default()
    };
    let chosen = config.choice.has_rank(rank);
    if config.time != Time::Off && chosen {
        own.profile = Some(profile(rank, streams, clock, ran));
    }
    own.memory = Some(Spread::one(most_held() as u64));
    let tapes = streams.iter_mut().map(|(number, own)| (*number, &mut own.tape));
    // A rank without any call is one all the same, but not every thread whose calls were left out.
    let tapes = tapes.filter(|(number, tape)| *number == 0 || !tape.is_empty());
    // Rank and thread are one number of 32 bits in a trace.
    let (tapes, unnumbered): (Vec<_>, Vec<_>) =
        tapes.partition(|(number, _)| member(size, rank, *number).is_some());
    if !unnumbered.is_empty() {
        own.notes.push(format!(
            "rank {rank}: {} of its threads have numbers too high for a run of {size} ranks, their calls are missing",
            unnumbered.len()
        ));
        own.missing = true;
    }
    let finish = || Tape::bundle((rank, size), tapes, |ticks| clock.length(ticks));
    let bundle = match catch_unwind(AssertUnwindSafe(finish)) {
        // What it may have recorded before it knew its rank does not count.
        Ok(Ok(_)) if !chosen => Bundle::default(),
        Ok(Ok(bundle)) if ending == Ending::Whole => bundle,
        Ok(Ok(bundle)) if ending == Ending::LeftByJump => {
            own.notes.push(match missing::jumps() {
                1 => format!("rank {rank}: left an MPI call by a jump, that call is missing"),
                calls => format!("rank {rank}: left {calls} MPI calls by jumps, those calls are missing"),
            });
            bundle
        }
        Ok(Ok(_)) => {
            own.notes.push(format!("rank {rank}: tracing stopped, its calls are missing"));
            own.missing = true;
            Bundle::default()
        }
        Ok(Err(error)) => {
            own.notes.push(format!("rank {rank}: its recording does not hold together ({error})"));
            own.missing = true;
            Bundle::default()
        }
        Err(_) => {
            own.notes.push(format!("rank {rank}: tracing failed at the end, its calls are missing"));
            own.missing = true;
            Bundle::default()
        }
    };
    if !bundle.cohorts.is_empty() && config.time == Time::Histogram {
        own.paths = Some(paths(streams, clock));
    }
    match missing::unseen() {
        0 => {}
        1 => own.notes.push(format!(
            "rank {rank}: MPI's Fortran layer did a call in a way of its own, that call is missing"
        )),
        calls => own.notes.push(format!(
            "rank {rank}: MPI's Fortran layer did {calls} calls in a way of its own, those calls are missing"
        )),
    }
    (bundle, own)
}

/// How the times of calls are distributed, by their signatures.
fn paths(streams: &[(u32, &mut Own)], clock: Converter) -> Paths {
    let of = |own: &Own| {
        let paths = own.paths.as_ref()?;
        Some(paths.paths(|symbol| Some(own.tape.signature(symbol)), |ticks| clock.length(ticks)))
    };
    streams.iter().filter_map(|(_, own)| of(own)).fold(Paths::default(), Paths::join)
}

/// How the rank spent its time: its main thread outside MPI and inside it, and all of them in each function.
///
/// MPI was up for so long, and the main thread had spent so many ticks in calls before.
fn profile(
    rank: u32,
    streams: &[(u32, &mut Own)],
    clock: Converter,
    (since_init, before): (u64, u64),
) -> Profile {
    let mut functions: BTreeMap<u16, u64> = BTreeMap::new();
    let mut main = (since_init, 0);
    for (number, own) in streams {
        let spent = own.tape.spent();
        if *number == 0 {
            let inside = clock.length(spent.all.saturating_sub(before));
            let since = inside.saturating_sub(clock.length(spent.starting));
            main = (since_init.saturating_sub(since), inside);
        }
        for (function, ticks) in spent.functions {
            let sum = functions.entry(function).or_default();
            *sum = sum.saturating_add(clock.length(ticks));
        }
    }
    Profile::of_rank(rank, main, functions)
}
