//! The options of `refrain replay`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use refrain_tracefile::Trace;
use refrain_views::replayable::draws;
use refrain_views::select::Numbers;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct ReplayFlags {
    /// The trace
    pub file: PathBuf,
    /// Compare the outcome of each call with the trace
    #[arg(long)]
    pub check: bool,
    /// 1: compute between calls for as long as the program did; 2: half as long; 0: not at all (default 1 where times were
    /// kept)
    #[arg(long, value_name = "FACTOR", value_parser = factor, allow_negative_numbers = true)]
    pub speed: Option<f64>,
    /// Compute for so many times as long: what if the computation were twice as fast? 0.5
    #[arg(long, value_name = "FACTOR", value_parser = factor, allow_negative_numbers = true, default_value = "1", hide_default_value = true)]
    pub compute: f64,
    /// Sleep where the program computed, instead of keeping a core busy: for more ranks than cores
    #[arg(long)]
    pub sleep: bool,
    /// Messages are so many times as long: what if the problem were larger? 2
    #[arg(long, value_name = "FACTOR", value_parser = factor, allow_negative_numbers = true, default_value = "1", hide_default_value = true)]
    pub message_size: f64,
    /// Without files: no call of MPI_File_*, nor what needs one
    #[arg(long)]
    pub no_io: bool,
    /// Make polls that had found nothing too, as often as then
    #[arg(long)]
    pub polls: bool,
    /// Only these ranks, if they need no others: 0,3-5
    #[arg(long, visible_alias = "rank")]
    pub ranks: Option<Numbers>,
    /// Of whatever is drawn: messages of a trace with histograms, what is in buffers, computation
    #[arg(long, value_name = "NUMBER", default_value = "0", hide_default_value = true)]
    pub seed: u64,
    /// End the replay when no rank has got on for so many seconds; 0: never
    #[arg(long, value_name = "SECONDS", default_value = "120")]
    pub patience: u64,
    /// Refuse calls with more data than so many MiB (default: the memory of the machine)
    #[arg(long, value_name = "MIB")]
    pub memory: Option<u32>,
    /// Where the program's files are put, and what ranks say (default: the directory for temporary files)
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// The MPI library, where it is not the one that the launcher belongs to
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// The launcher and its options, without a program
    #[arg(last = true, required = true, value_name = "LAUNCHER")]
    pub words: Vec<OsString>,
}

/// 0 or more.
fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "it is a number such as 0.5 or 2".to_owned())
}

impl ReplayFlags {
    /// Whether this can be asked of the trace.
    pub fn suit(&self, trace: &Trace) -> Result<(), Failure> {
        let meta = &trace.meta;
        let timed = meta.profile.is_some() || meta.paths.is_some();
        let asked = self.speed.is_some_and(|speed| speed > 0.0) || self.compute != 1.0 || self.sleep;
        if asked && !timed {
            return Err(Failure::new("the trace does not tell how long the program computed")
                .help("record it without `--time off`, or replay it with `--speed 0`"));
        }
        if let Some(beyond) = self.ranks.as_ref().and_then(|ranks| ranks.beyond(meta.ranks)) {
            return Err(Failure::new(format!(
                "there is no rank {beyond}: the trace has {} ranks",
                meta.ranks
            )));
        }
        if self.ranks.is_some() && self.check {
            return Err(Failure::new("of some ranks alone outcomes are other ones: nothing can be compared")
                .help("leave out --check or --ranks"));
        }
        if draws(trace, self.seed).is_some() {
            let without = "record the run without `--lossy histograms`";
            if self.check {
                return Err(Failure::new(
                    "the trace has histograms: messages are drawn, and nothing can be compared",
                )
                .help(format!("leave out --check, or {without}")));
            }
            if self.ranks.is_some() {
                return Err(Failure::new("the trace has histograms: whom a rank sends to is drawn, so no ranks can do without others")
                    .help(format!("leave out --ranks, or {without}")));
            }
        }
        if self.message_size == 0.0 {
            return Err(Failure::new("messages of no bytes are not those of the program")
                .help("`--message-size 0.01` makes nearly all of them one element long"));
        }
        if self.check && self.message_size != 1.0 {
            return Err(Failure::new(
                "with other sizes of messages outcomes are other ones: nothing can be compared",
            )
            .help("leave out --check or --message-size"));
        }
        Ok(())
    }

    /// Those that are made again.
    pub fn ranks_of(&self, trace: &Trace) -> Vec<u32> {
        let chosen = |rank: &u32| self.ranks.as_ref().is_none_or(|ranks| ranks.contains(*rank));
        (0..trace.meta.ranks).filter(chosen).collect()
    }

    /// What each rank is told.
    pub fn words_for_ranks(&self, trace: &Trace) -> Vec<String> {
        let mut words = Vec::new();
        let flags =
            [("check", self.check), ("sleep", self.sleep), ("no-io", self.no_io), ("polls", self.polls)];
        words.extend(flags.iter().filter(|(_, set)| *set).map(|(word, _)| (*word).to_owned()));
        words.extend(self.speed.map(|speed| format!("speed={speed}")));
        words.push(format!("compute={}", self.compute));
        words.push(format!("message-size={}", self.message_size));
        words.push(format!("seed={}", self.seed));
        words.push(format!("patience={}", self.patience));
        words.extend(self.memory.map(|memory| format!("memory={memory}")));
        words.push(format!("elements={}", refrain_encode::most_elements()));
        if self.ranks.is_some() {
            let ranks: Vec<String> = self.ranks_of(trace).iter().map(u32::to_string).collect();
            words.push(format!("ranks={}", ranks.join(",")));
        }
        words
    }
}

pub fn help() -> &'static str {
    "\
Examples:
  refrain replay app.rfn -- mpiexec -n 16             as many ranks as the trace has
  refrain replay app.rfn --check -- mpiexec -n 16     is the outcome of each call that of the trace? Exit code 1 if not
  refrain replay app.rfn --speed 0 -- mpiexec -n 16   as fast as it can: only the communication
  refrain replay app.rfn --sleep -- mpiexec -n 64     on fewer cores than ranks: who computes leaves its core to others
  refrain replay app.rfn --compute 0.5 -- mpiexec -n 16        what if it computed twice as fast?
  refrain replay app.rfn --message-size 4 -- mpiexec -n 16     what if its messages were four times as long?
  refrain replay app.rfn --ranks 0-7 -- mpiexec -n 8  only these, if they need no others: it says which call does
  refrain replay lossy.rfn --seed 7 -- mpiexec -n 16  of a trace with histograms: other messages than with --seed 8
  refrain run --out again.rfn -- refrain replay app.rfn -- mpiexec -n 16       a trace of the replay
  refrain diff app.rfn again.rfn --ignore pointers    the same calls?

Each rank walks its own calls and makes them, one after the other. Buffers have the recorded sizes; what is in them is not in the
trace, so it looks drawn (--seed). A receive from any source gets the message that it got then, and calls that complete some of
several requests complete those that were complete then. Polls that had found nothing are left out (--polls makes them). The MPI
library is that of the launcher, which need not be the one that the trace was recorded with.

A trace with histograms (`run --lossy histograms`) does not say in which order a rank sent to others, nor how much at which time.
There destinations and counts are drawn: the same ones with the same --seed, and all together as often as they were. Each rank
walks the calls of those who send to it, and so knows what will come. Receives get whatever message comes next.

Time. Between calls a rank computes for as long as it did: to the microsecond of a trace with `--time exact`, within the stated error
with `binned`. With `histogram` the computation before a call is drawn from that of calls of its kind after one of that kind (--seed), and
each rank computes as much in all as it did. With `mean` only that sum is known, and spread evenly: where ranks take turns in computing, such a replay is
too fast. `--speed 2` computes half as long, and compares the wall time with half of the recorded one; `--compute 0.5` computes half as
long too, and compares with all of it. What calls take is up to the MPI library.

`--message-size` changes the counts of messages, on both sides alike. Factors that are not whole leave collectives alone that
move data between datatypes (MPI_Bcast, MPI_Gather, ...); reductions and messages grow. MPI_Sendrecv_replace, which has one count for both
directions, takes the next whole factor. Counts by rank (MPI_Alltoallv), windows and files stay.

Exit code 0: done, 1: a call failed that did not then, or some outcome differs (--check), 2: it could not be done."
}
