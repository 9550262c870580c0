//! The end of a recording, before the program's `MPI_Finalize` is passed on: the ranks come together (`together`, `arrival`),
//! each collects what it has (`collect`), loses what it may (`lossy`, `agreement`), gathers it up a tree (`exchange`,
//! `summary`, `clocks`), and rank 0 writes the file (`write`). At its word each removes its parts (`settle`).

pub mod absence;
mod agreement;
mod arrival;
pub mod clocks;
mod collect;
mod exchange;
mod lossy;
mod missed;
mod settle;
mod sign;
mod spans;
mod summary;
#[cfg(test)]
mod testing;
pub mod together;
pub mod write;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use refrain_fold::bundle::gather;
use refrain_guest::process::apart::{apart, uncancelled};
use refrain_guest::process::clock::Moment;
use refrain_guest::process::host;
use refrain_guest::process::say::say;
use refrain_mpi::{MpiTransport, Waiting};
use refrain_tracefile::Trace;
use refrain_tracefile::part::End;

use crate::config::{self, Config};
use crate::endings;
use crate::files;
use crate::held::Raised;
use crate::hooks::{Ending, Ticks};
use crate::recording::{Own, State};
use arrival::Meeting;
use clocks::OwnClock;
use sign::{Signs, Watch};
use together::{LONG_PATIENCE, MOST_PATIENCE, Wire, together};

/// Called on every rank that reached MPI's end, also where tracing stopped: the others wait for it.
pub fn finalize(recorder: Option<Box<State>>, streams: Vec<(u32, &mut Own)>, ending: Ending, called: Ticks) {
    // Waiting is where a thread may be cancelled.
    uncancelled(|| end(recorder, streams, ending, called));
    // A signal handler on another thread may be on its way to the parts: their memory stays as long as the process.
    endings::over();
}

fn end(recorder: Option<Box<State>>, mut streams: Vec<(u32, &mut Own)>, ending: Ending, called: Ticks) {
    let (Some(state), Some(config)) = (recorder, config::asked()) else { return };
    // The program may have used up its descriptors: here they are ours too.
    let _raised = Raised::if_needed();
    for (_, stream) in &mut streams {
        if let Some(safe) = &mut stream.safe {
            safe.settle(&mut stream.tape);
        }
    }
    let State { host, start, began, before, started, spawned, alone, parts, job, user, compared, .. } =
        *state;
    endings::note(End::Finalized, 0);
    let end = Moment::now();
    let wall_ns = end.nanoseconds.saturating_sub(start.nanoseconds);
    let pmpi = &host.pmpi;
    // Until the end: none of our errors is the program's.
    let _returned = pmpi.returning_errors();
    let world = pmpi.abi().comm_world;
    let number = |number: Result<i32, _>| number.ok().and_then(|number| u32::try_from(number).ok());
    let (Some(rank), Some(size)) = (number(pmpi.comm_rank(world)), number(pmpi.comm_size(world))) else {
        say("no trace: MPI does not say which rank this is");
        return;
    };
    // All times of this rank are told by it.
    let skew = config.tests().skew.as_ref().map(|skews| skews.of(rank));
    let clock = OwnClock::new(rank, start, compared.map(|compared| compared.done), end, skew);
    let since_init = clock.converter.length(called.start.saturating_sub(began.unwrap_or(start).ticks));
    let kept = parts.is_some();
    // This rank may have found no room for its own while others did.
    let place = files::parts(config, spawned, alone, job.as_ref());
    let parts = parts.map_or_else(|| files::own_parts(config, &place), |parts| parts.directory);
    let meeting = match together(config, pmpi, (rank, size), (user, ending), &place) {
        Ok(meeting) => meeting,
        Err(why) => {
            if let Some(why) = why {
                say(&without(config, &parts, kept, &why));
            }
            return;
        }
    };
    // Of those that fail one speaks.
    let give_up = |meeting: &Option<Meeting>, why: &dyn std::fmt::Display| {
        if meeting.as_ref().is_none_or(Meeting::call_off) {
            let why = format!("the ranks could not be brought together, on rank {rank}: {why}");
            say(&without(config, &parts, kept, &why));
        }
    };
    let signs = meeting.as_ref().filter(|_| rank == 0).map(Signs::begin);
    let watch = Watch::new(config.patience);
    let called_off = |waited| {
        meeting.as_ref().is_some_and(|meeting| {
            meeting.is_off() || rank != 0 && watch.is_silent(waited, || meeting.sign())
        })
    };
    let waiting = Waiting { most: MOST_PATIENCE, called_off: &called_off };
    let transport = match (size > 1).then(|| MpiTransport::new(pmpi, world, waiting)).transpose() {
        Ok(transport) => transport,
        Err(error) => return give_up(&meeting, &error),
    };
    let dies = config.tests().die_in_merge == Some(rank);
    let mut link = Wire { transport, broken: false, dies };
    let clocks = clocks::of_all(config, &mut link, (rank, size), &clock, compared);
    if link.broken {
        return give_up(&meeting, &"a message was lost");
    }
    let met = Moment::now();
    let (bundle, mut own) =
        collect::collect(config, (rank, size), &mut streams, clock.converter, (since_init, before), ending);
    let every_call = config.time.of_every_call();
    let mut times = None;
    if every_call {
        let pack = || spans::packed(config, rank, (&mut streams, &bundle), clock.converter, &parts);
        let lost = match catch_unwind(AssertUnwindSafe(|| apart(pack))) {
            Ok(Ok((packed, without))) => {
                times = Some(packed);
                (without > 0).then(|| format!("the times of {without} calls are missing"))
            }
            Ok(Err(error)) => Some(format!("the times of its calls are missing: {error}")),
            Err(_) => Some("the times of its calls are missing".to_owned()),
        };
        if let Some(lost) = lost {
            own.notes.push(format!("rank {rank}: {lost}"));
            own.missing = true;
        }
        // Others may still be at it.
        link.wait_at_most(LONG_PATIENCE);
    }
    let (bundle, lost) = lossy::lose_on_purpose(config, &mut link, (rank, size), bundle, &mut own);
    let merged = exchange::both(&mut link, rank, size, |link| {
        let gathered = gather(link, rank, size, bundle)?;
        for (from, error) in &gathered.lost {
            own.notes.push(format!("what rank {from} merged was lost ({error})"));
            own.missing = true;
        }
        let summary = summary::gather(link, rank, size, own)?;
        Ok((gathered.bundle, summary))
    });
    let merged_whole = !link.broken;
    let mut times = times;
    if every_call && merged_whole {
        let gather = || {
            assert_ne!(config.tests().fail_with_times, Some(rank), "a test asked for a fault");
            spans::gather(&mut link, (rank, size), times.take(), &parts)
        };
        times = match catch_unwind(AssertUnwindSafe(gather)) {
            Ok(gathered) => gathered.ok().flatten(),
            Err(_) => {
                link.broken = true;
                None
            }
        };
        if let (true, Some(meeting)) = (link.broken, &meeting) {
            // Nobody need wait for its turn: only times are lost, and the parts still have them.
            meeting.call_off();
        }
    }
    if !merged_whole {
        return match merged {
            Some(Err(error)) => give_up(&meeting, &error),
            _ => give_up(&meeting, &"a message was lost"),
        };
    }
    // What rank 0 made of it: whether there is a trace, and whether it lacks something that the parts have.
    let mut wrote = None;
    match merged {
        Some(Ok((Some(bundle), mut summary))) => {
            if every_call && times.is_none() {
                summary.notes.push("the times of calls could not be brought together".into());
                summary.missing = true;
            }
            let missing = summary.missing;
            let meta = write::meta(config, &host.pmpi, size, (summary, lost), (started, wall_ns), clocks);
            let written = apart(|| {
                if config.tests().stop_writing {
                    // SAFETY: takes numbers only.
                    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
                }
                // What the parts alone have is not given up.
                let make_room =
                    |trace: &Path, bytes| !missing && settle::make_room(config, &parts, trace, bytes);
                let trace = (Trace { meta, bundle }, times.as_mut());
                write::write(config, spawned, alone, job.as_ref(), trace, met, make_room)
            });
            apart(|| settle::note(job.as_ref(), written, missing));
            wrote = Some(written && !missing);
        }
        Some(Ok((None, _))) => {}
        Some(Err(error)) => say(&format!("merging failed on rank {rank}: {error}; its calls are missing")),
        None => say(&format!("merging failed on rank {rank}, an internal error; its calls are missing")),
    }
    drop(times);
    drop(signs);
    // Rank 0 may be writing for as long as the run took: others wait while it gives signs of life.
    link.wait_at_most(LONG_PATIENCE);
    let whole = settle::word(&mut link, (rank, size), wrote);
    if whole == Some(true) || wrote == Some(true) {
        apart(|| settle::remove_own(config, &streams, &parts, &place));
    }
    // They all know by now, and have a few files to remove.
    link.wait_at_most(MOST_PATIENCE);
    let all_did = whole.is_some() && settle::all_did(&mut link, (rank, size));
    if let (true, Some(meeting)) = (link.broken, &meeting) {
        // Nobody need wait for a word that will not come.
        let first = meeting.call_off();
        if let (true, Some(seconds)) = (first, watch.gave_up_after()) {
            let why = format!("rank 0 has given no sign of life for {seconds} s while it made the trace");
            say(&without(config, &parts, kept, &why));
        }
    }
    if let (false, Some(transport)) = (link.broken, link.transport.take()) {
        // An error here leaks a communicator in a program that is about to end.
        let _ = transport.close();
    }
    if let Some(whole) = wrote {
        apart(|| {
            // All of them have talked to this one, so none still looks there. Where a message was lost some may.
            if let Some(meeting) = meeting.filter(|_| all_did) {
                meeting.clear();
            }
            match whole {
                true => settle::end(config, &place, job.as_ref(), all_did),
                false => settle::say_kept(config, &parts, &place),
            }
        });
    }
}

/// What is said where no trace is written: why, and what can be done.
fn without(config: &Config, parts: &Path, kept: bool, why: &str) -> String {
    let (parts, host) = (parts.display(), host::name());
    match (kept, config.summary) {
        (false, _) => format!("no trace: {why}"),
        // Nobody is left to do it.
        (true, true) => format!(
            "no trace yet: {why}. What was recorded is kept on {host}: `refrain recover {parts}` makes a trace of it, with the \
             directories of other hosts behind it"
        ),
        (true, false) => format!("no trace yet: {why}. What was recorded is kept on {host} in {parts}"),
    }
}
