//! The processes of a run, each with the parts of its threads: how they ended, and what they recorded.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};

use refrain_encode::{Folding, Tape};
use refrain_fold::bundle::{Bundle, member};
use refrain_model::Lossy;
use refrain_model::time::Time;
use refrain_times::Packer;
use refrain_tracefile::Profile;
use refrain_tracefile::chunks::{Key, Writer};
use refrain_tracefile::clocks::Converter;
use refrain_tracefile::part::{End, Life, Lost, Part, Word};
use refrain_tracefile::private::Private;
use refrain_tracefile::spans::{Entries, log_name, pack};
use refrain_views::human::plural;

use super::{Found, Named, signal_name};

/// A thread by its number, and what it recorded.
pub type Recorded = (u32, Tape);

/// By symbol of a thread: the signature and the function of its calls.
pub type About = Vec<Option<(u64, u16)>>;

/// The same for all threads of a process, or why they could not be read.
pub type Symbols = Result<Vec<(u32, About)>, String>;

/// What a process recorded, and what else its parts tell.
pub struct OfProcess {
    pub bundle: Bundle,
    pub profile: Profile,
    pub symbols: Vec<(u32, About)>,
    pub damage: Option<Damage>,
}

/// What a thread recorded, and what was wrong with the end of it.
pub fn recorded((directory, name): &Named) -> Result<(Recorded, Option<String>), String> {
    let private = Private::open_to_read(directory).map_err(|error| error.to_string())?;
    let part = Part::read(&private, name)?;
    let folding = folding(&part.options());
    let resumed = match &part.snapshot {
        Some(snapshot) => Tape::resume(snapshot, folding),
        None => Ok(Tape::new(folding)),
    };
    let mut tape = resumed.map_err(|error| error.to_string())?;
    tape.join_waits(lossy(&part.options()).waits);
    let damage = refrain_encode::replay(&part.journal, &mut tape).err().map(|error| error.to_string());
    let thread = u32::try_from(part.word(Word::Thread)).map_err(|_| "it has no such thread")?;
    Ok(((thread, tape), damage))
}

/// What could not be read of a process.
#[derive(Debug, Clone, Default)]
pub struct Damage {
    pub why: String,
    pub parts: Vec<Named>,
}

/// All threads of one process.
pub struct Process {
    pub rank: u32,
    /// Their headers.
    pub parts: Vec<Part>,
    pub names: Vec<Named>,
    pub life: Life,
}

impl Process {
    pub fn first(&self) -> &Part {
        // Parts come by threads, and there is at least one.
        &self.parts[0]
    }

    /// The launcher said that all ranks are on the host of this one.
    pub fn has_all_beside_it(&self) -> bool {
        let beside = self.first().text("beside").and_then(|number| number.parse().ok());
        beside.is_some_and(|beside: u64| beside >= self.first().word(Word::Size))
    }

    /// The part that says how the process ended, if any does.
    pub fn end(&self) -> (End, i64) {
        let told = self.parts.iter().find(|part| part.end() != End::Silent).unwrap_or(self.first());
        let fault = self.parts.iter().map(|part| part.word(Word::Fault)).find(|signal| *signal != 0);
        match (told.end(), fault) {
            (End::Silent, Some(signal)) => (End::Signal, signal as i64),
            (end, _) => (end, told.word(Word::EndCode) as i64),
        }
    }

    pub fn how_it_ended(&self) -> String {
        let inside = self.parts.iter().find_map(|part| {
            let position = part.word(Word::Inside).checked_sub(1)?;
            refrain_model::functions().get(usize::try_from(position).ok()?).map(|f| f.name)
        });
        let inside = inside.map_or(String::new(), |function| format!(" inside {function}"));
        let lost = match self.lost() {
            Lost::Nothing => "",
            Lost::NoRoom => "; calls are missing at the end, there was no room to keep them",
            Lost::Stopped => "; calls are missing at the end, tracing had stopped",
            Lost::Jumped => "; it left an MPI call by a jump, that call is missing",
            Lost::Interrupted => {
                "; a signal handler called it in the middle of another call, both are missing"
            }
        };
        let how = match self.end() {
            (End::Silent | End::Exit, _) if self.failed() => format!("ended by an error of MPI{inside}"),
            (End::Silent, _) if self.life == Life::Running => format!("was still running{inside}"),
            (End::Silent, _) if self.life == Life::Unseen => {
                format!("killed or crashed, or still running where it cannot be seen{inside}")
            }
            (End::Silent, _) => format!("killed or crashed{inside}"),
            (End::Exit, code) => format!("exit({code}) without MPI_Finalize{inside}"),
            (End::Abort, code) => format!("MPI_Abort with error code {code}"),
            (End::Signal, number) => format!("ended by {}{inside}", signal_name(number)),
            (End::Finalized, _) => "reached MPI_Finalize, but the trace was not written there".into(),
        };
        how + lost
    }

    /// The library was dealing with an error when it ended.
    pub fn failed(&self) -> bool {
        let failed = |part: &Part| part.doing.error.is_some() && part.word(Word::Inside) != 0;
        self.life != Life::Running && self.parts.iter().any(failed)
    }

    pub fn ended_well(&self) -> bool {
        matches!(self.end(), (End::Exit, 0) | (End::Finalized, _)) && self.lost() == Lost::Nothing
    }

    pub fn lost(&self) -> Lost {
        self.parts.iter().map(Part::lost).find(|lost| *lost != Lost::Nothing).unwrap_or_default()
    }

    /// Ticks as nanoseconds, as far as the two clocks were compared.
    pub fn clock(&self) -> Converter {
        let part = self.first();
        let moment = |ticks, nanoseconds| (part.word(ticks), part.word(nanoseconds));
        let (start, end) =
            (moment(Word::Ticks, Word::Nanoseconds), moment(Word::LaterTicks, Word::LaterNanoseconds));
        Converter::between(start, end)
    }

    pub fn wall_ns(&self) -> u64 {
        let of = |part: &Part| part.word(Word::LaterNanoseconds).saturating_sub(part.word(Word::Nanoseconds));
        self.parts.iter().map(of).max().unwrap_or(0)
    }

    /// What each thread recorded, and what was wrong with it.
    pub fn tapes(&self) -> Result<(Vec<Recorded>, Option<Damage>), String> {
        let (mut tapes, mut damage) = (Vec::new(), None::<Damage>);
        for named in &self.names {
            let (recorded, wrong) = match recorded(named) {
                Ok((recorded, wrong)) => (Some(recorded), wrong),
                Err(why) => (None, Some(format!("{}: {why}", named.1.display()))),
            };
            tapes.extend(recorded);
            if let Some(why) = wrong {
                let damage = damage.get_or_insert_default();
                damage.why = why;
                damage.parts.push(named.clone());
            }
        }
        match (tapes.is_empty(), damage) {
            (true, Some(damage)) => Err(damage.why),
            (_, damage) => Ok((tapes, damage)),
        }
    }

    /// Packs the times of its calls, as far as they were kept.
    pub fn pack_spans<W: Write>(
        &self,
        time: &Time,
        symbols: &[(u32, About)],
        to: &mut Writer<W>,
    ) -> Result<(), String> {
        let size = self.size()?;
        let clock = self.clock();
        let nanoseconds = |ticks: u64| clock.nanoseconds(ticks) as i64;
        for (part, name) in self.parts.iter().zip(&self.names) {
            let of_part = |(thread, _): &&(u32, About)| u64::from(*thread) == part.word(Word::Thread);
            let Some((thread, about)) = symbols.iter().find(of_part) else { continue };
            let (Some(member), Some(mut packer)) = (member(size, self.rank, *thread), Packer::new(time))
            else {
                continue;
            };
            let (directory, name) = name;
            let log = Private::open_to_read(directory).and_then(|private| private.read(&log_name(name)));
            let log = log.map_err(|error| error.to_string())?;
            let entries = Entries::new(BufReader::new(log.take(part.word(Word::Spans))));
            let key = Key { member: member.into(), lane: 0 };
            let packed = pack(to, key, &mut packer, entries, about, nanoseconds);
            packed.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    pub fn size(&self) -> Result<u32, String> {
        u32::try_from(self.first().word(Word::Size)).map_err(|_| "it has no such world".into())
    }

    /// What it recorded. Its parts are read for it.
    pub fn recorded(&self) -> Result<OfProcess, String> {
        let size = self.size()?;
        let (mut tapes, damage) = self.tapes()?;
        let clock = self.clock();
        let nanoseconds = |ticks: u64| clock.length(ticks);
        let profile = self.profile(&tapes, nanoseconds);
        let symbols = tapes.iter().map(|(thread, tape)| (*thread, tape.about())).collect();
        let tapes = tapes.iter_mut().map(|(thread, tape)| (*thread, tape));
        let bundle =
            Tape::bundle((self.rank, size), tapes, nanoseconds).map_err(|error| error.to_string())?;
        Ok(OfProcess { bundle, profile, symbols, damage })
    }

    /// A part begins when MPI is up, and knows the time as of the last time it looked at the clock.
    pub fn profile(&self, tapes: &[(u32, Tape)], nanoseconds: impl Fn(u64) -> u64) -> Profile {
        let mut functions: BTreeMap<u16, u64> = BTreeMap::new();
        let mut main = (self.wall_ns(), 0);
        for (thread, tape) in tapes {
            let spent = tape.spent();
            if *thread == 0 {
                let since = nanoseconds(spent.all.saturating_sub(spent.starting));
                main = (self.wall_ns().saturating_sub(since), nanoseconds(spent.all));
            }
            for (function, ticks) in spent.functions {
                let sum = functions.entry(function).or_default();
                *sum = sum.saturating_add(nanoseconds(ticks));
            }
        }
        Profile::of_rank(self.rank, main, functions)
    }
}

/// How times were to be kept, where that was asked for.
pub fn time(options: &[(String, String)]) -> Option<Time> {
    let said = options.iter().find(|(option, _)| option == "time");
    said.and_then(|(_, words)| Time::read(words).ok())
}

pub fn folding(options: &[(String, String)]) -> Folding {
    let said = options.iter().find(|(option, _)| option == "fold");
    said.and_then(|(_, value)| value.parse().ok()).unwrap_or_default()
}

/// What the run was allowed to lose.
pub fn lossy(options: &[(String, String)]) -> Lossy {
    let said = options.iter().find(|(option, _)| option == "lossy");
    Lossy::read(said.map(|(_, value)| value.as_str())).unwrap_or_default()
}

/// More ranks than any run has.
const MOST_RANKS: u64 = 1 << 24;

/// One thread's part is there twice, as where a folder was copied: the one with more calls is kept. What is to be said of it,
/// unless they are the same.
fn keep_longer(rank: u32, kept: &mut (Part, Named), again: &mut (Part, Named)) -> Option<String> {
    let tell = |named: &Named| {
        let ((_, mut tape), damage) = recorded(named)?;
        tape.snapshot().map(|bundle| (bundle, damage)).map_err(|error| error.to_string())
    };
    let [one, other] = [&kept.1, &again.1].map(tell);
    if one == other {
        return None;
    }
    let [has, more] =
        [one, other].map(|told| told.map_or(0, |(bundle, _)| refrain_views::info::calls(&bundle)));
    if more > has {
        std::mem::swap(kept, again);
    }
    let [taken, left] = [&kept.1, &again.1].map(|(directory, name)| directory.join(name));
    let (taken, left) = (taken.display(), left.display());
    Some(format!(
        "rank {rank}: {taken} has {}, {left} has {}; the first is taken",
        plural(has.max(more), "call"),
        plural(has.min(more), "call")
    ))
}

/// The processes of the newest run, by rank.
pub fn processes(parts: Vec<Found>, notes: &mut Vec<String>) -> Vec<Process> {
    let mut by_process: BTreeMap<(u64, String, u64), Process> = BTreeMap::new();
    for (part, name, life) in parts {
        let Some(rank) = part.rank() else { continue };
        let host = part.text("host").unwrap_or_default().to_owned();
        let key = (part.word(Word::Rank), host, part.word(Word::Pid));
        let new = || Process { rank, parts: Vec::new(), names: Vec::new(), life: Life::Ended };
        let process = by_process.entry(key).or_insert_with(new);
        process.life = process.life.max(life);
        process.parts.push(part);
        process.names.push(name);
    }
    let mut processes: Vec<Process> = by_process.into_values().collect();
    for process in &mut processes {
        let named = std::mem::take(&mut process.parts).into_iter().zip(std::mem::take(&mut process.names));
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|(part, _)| part.word(Word::Thread));
        named.dedup_by(|again, one| {
            let same = again.0.word(Word::Thread) == one.0.word(Word::Thread);
            if same {
                notes.extend(keep_longer(process.rank, one, again));
            }
            same
        });
        (process.parts, process.names) = named.into_iter().unzip();
    }
    let started = |process: &Process| process.first().word(Word::Started);
    processes.sort_by_key(|process| std::cmp::Reverse(started(process)));
    // Of one run with the newest, as far as can be told.
    let run = |process: &Process| {
        let first = process.first();
        let text = |key| first.text(key).map(str::to_owned);
        // Its name alone, where it has one: parts of one run may have different commands.
        let named = first.text("run").is_some_and(|run| !run.is_empty());
        let others = if named { [None, None] } else { [text("command"), text("library")] };
        (first.word(Word::Size), text("run"), others)
    };
    let newest = processes.first().map(run);
    let all = processes.len();
    let mut by_rank: BTreeMap<u32, Process> = BTreeMap::new();
    for process in processes {
        let (size, rank) = (process.first().word(Word::Size), process.rank);
        if Some(run(&process)) == newest && u64::from(rank) < size && size <= MOST_RANKS {
            by_rank.entry(rank).or_insert(process);
        }
    }
    if by_rank.len() < all {
        notes.push(format!("{} of an earlier run left out", plural((all - by_rank.len()) as u64, "process")));
    }
    by_rank.into_values().collect()
}
