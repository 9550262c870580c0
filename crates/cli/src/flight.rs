//! What the threads of a process were doing, from what stands in their parts; and `refrain where`, which tells it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use refrain_encode::{Given, stand_for};
use refrain_fold::bundle::sites::Frame;
use refrain_model::{Class, Dir, Effect, Function, Kind};
use refrain_sites::Binaries;
use refrain_sites::unwind::Place;
use refrain_tracefile::clocks::Converter;
use refrain_tracefile::flight::{Doing, Name};
use refrain_tracefile::part::{End, Part, Word};
use refrain_tracefile::{Arg, CodeAddress, InFlight, Trace, Waited};
use refrain_views::flight::{self, Picture};
use refrain_views::{human, info, json};
use serde::Serialize;

use crate::failure::{Failure, not_read};
use crate::paint::Look;
use crate::reading::{finish, open, shown};
use crate::stack::Stacks;
use crate::{recover, say};

/// A moment of the clock that the processes of this machine have too, in nanoseconds.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// What is needed of a process.
pub struct Process<'a> {
    pub rank: u32,
    /// Its threads.
    pub parts: &'a [Part],
    /// How it ended, and with which signal if that is it.
    pub end: (End, i64),
    pub clock: &'a Converter,
    /// Until when its calls in flight took, if that is known.
    pub until: Option<u64>,
    /// It goes on.
    pub lives: bool,
}

impl Process<'_> {
    /// What its threads were doing: the first one in any case, the others only inside of a call. Nothing of a process that
    /// has come to its end.
    pub fn threads(&self) -> Vec<InFlight> {
        // Ranks wait for each other in MPI_Finalize too.
        if matches!(self.end, (End::Finalized | End::Exit, 0)) && !self.lives {
            return Vec::new();
        }
        let mut all: Vec<InFlight> = self.parts.iter().map(|part| self.thread(part)).collect();
        let says = |one: &InFlight| one.inside || one.error.is_some();
        let first = all.iter().map(|one| one.thread).min();
        let faulted = self.faulted();
        all.retain(|one| says(one) || [first, faulted].contains(&Some(one.thread)));
        if let (End::Signal, signal) = self.end {
            let place = self.fault_place().and_then(|place| self.place(place));
            let fault = u32::try_from(signal).ok();
            match all.iter_mut().find(|one| Some(one.thread) == faulted) {
                Some(one) => (one.fault, one.fault_place) = (fault, place),
                // It was a thread that has recorded nothing, or none of them alone.
                None => {
                    let process =
                        InFlight { rank: self.rank, fault, fault_place: place, ..InFlight::default() };
                    all.insert(0, process);
                }
            }
        }
        all
    }

    /// Where the last fault of the process came up.
    fn fault_place(&self) -> Option<u64> {
        self.first().map(|doing| doing.fault_place).filter(|place| *place != 0)
    }

    /// The thread that had it, if that is known.
    fn faulted(&self) -> Option<u32> {
        let number = |part: &Part| u32::try_from(part.word(Word::Thread)).unwrap_or(0);
        match self.parts {
            [one] => Some(number(one)),
            parts => {
                let place = self.fault_place()?;
                let mut had = parts.iter().filter(|part| part.doing.own_fault == place);
                had.next().filter(|_| had.next().is_none()).map(number)
            }
        }
    }

    /// The part that has the names of the process.
    fn first(&self) -> Option<&Doing> {
        let has_names = |doing: &&Doing| !doing.names.is_empty();
        self.parts.iter().map(|part| &part.doing).find(has_names)
    }

    fn place(&self, address: u64) -> Option<CodeAddress> {
        let (module, offset) = self.first()?.place(address)?;
        Some(CodeAddress { module: module.clone(), offset })
    }

    fn thread(&self, part: &Part) -> InFlight {
        let doing = &part.doing;
        let inside = part.word(Word::Inside).checked_sub(1).and_then(|at| usize::try_from(at).ok());
        let at = inside.or(doing.function);
        let function = at.and_then(|at| refrain_model::functions().get(at));
        // The arguments may be those of another call: one whose arguments nobody keeps, or one around it.
        let known = function.filter(|_| at == doing.function);
        let started = Some(doing.started).filter(|ticks| *ticks != 0 && inside.is_some() && known.is_some());
        // Outside: since it has left its last call, if that is known.
        let left =
            Some(doing.left).filter(|left| inside.is_none() && known.is_some() && *left >= doing.started);
        let since = started.or(left.filter(|ticks| *ticks != 0));
        let ns = since.zip(self.until).map(|(ticks, now)| now.saturating_sub(self.clock.nanoseconds(ticks)));
        let completes = |f: &&Function| f.params.iter().any(|p| p.effect == Effect::Complete);
        let completing = known.filter(|f| inside.is_some() && completes(f));
        // A program that goes on deals with its errors itself.
        let failed = !self.lives && !matches!(self.end.0, End::Abort | End::Finalized) && inside.is_some();
        InFlight {
            rank: self.rank,
            thread: u32::try_from(part.word(Word::Thread)).unwrap_or(0),
            inside: inside.is_some(),
            function: function.map(|f| f.id),
            args: known.map_or_else(Vec::new, |f| self.args(f, &doing.args)),
            waits_for: completing.map_or(0, |_| self.waits_for(doing)),
            ns,
            place: known.and_then(|_| self.place(doing.caller)),
            error: doing.error.as_ref().filter(|_| failed).map(|error| (error.class, error.text.clone())),
            ..InFlight::default()
        }
    }

    /// How many requests a thread wants completed.
    fn waits_for(&self, doing: &Doing) -> u64 {
        let null = doing.waited.iter().filter(|handle| self.is_null(**handle)).count() as u64;
        doing.waits_for.saturating_sub(null)
    }

    fn is_null(&self, request: u64) -> bool {
        matches!(self.name(Class::Request, request), Some(Name::Constant(_)))
    }

    /// The calls that made the requests which a thread wants completed, named as the recorder would: a library may have one
    /// handle for several. `outstanding` says of each of the last calls of a thread that made a request, the last first, whether
    /// that is still there.
    pub fn requests(&self, thread: u32, outstanding: impl Fn(u32) -> Vec<bool>) -> Vec<Waited> {
        let number = |part: &Part| u32::try_from(part.word(Word::Thread)).unwrap_or(0);
        let Some(part) = self.parts.iter().find(|part| number(part) == thread) else { return Vec::new() };
        let doing = &part.doing;
        let function = doing.function.and_then(|at| refrain_model::functions().get(at));
        let at = function.and_then(|f| f.params.iter().position(|p| p.effect == Effect::Complete));
        let address = at.and_then(|at| doing.args.get(at)).copied().unwrap_or(0);
        // The oldest first; and how many calls each of them is before the last.
        let mut backs: Vec<Vec<u64>> = Vec::new();
        let of = |part: &Part| {
            let all = part.doing.made.iter().zip(0u64..).zip(outstanding(number(part)));
            let left = all.filter(|(_, left)| *left);
            let (mut back, mut made): (Vec<u64>, Vec<(u64, usize)>) =
                left.map(|((&(handle, address), back), _)| (back, (handle, address as usize))).unzip();
            back.reverse();
            made.reverse();
            backs.push(back);
            (number(part), made)
        };
        let made: Vec<(u32, Vec<(u64, usize)>)> = self.parts.iter().map(of).collect();
        let given =
            Given { handles: &doing.waited, address: address as usize, size: doing.waited_size as usize };
        let maker = |(handle, found): (&u64, Option<(u32, usize)>)| {
            let (thread, at) = found.filter(|_| !self.is_null(*handle))?;
            let of = made.iter().position(|(of, _)| *of == thread)?;
            Some(Waited { thread, back: *backs.get(of)?.get(at)? })
        };
        doing.waited.iter().zip(stand_for(&made, thread, given)).filter_map(maker).collect()
    }

    fn name(&self, class: Class, handle: u64) -> Option<Name> {
        let of_class = |name: &Name| match *name {
            Name::Constant(id) => refrain_model::constant_by_id(id).is_some_and(|c| c.set == class.set()),
            Name::Object { class: of, .. } => of == class as u8,
        };
        let names = &self.first()?.names;
        names.iter().find(|(known, name)| *known == handle && of_class(name)).map(|(_, name)| *name)
    }

    fn constant(&self, set: &str, value: i64) -> Option<Arg> {
        let of_set = |id: u16| refrain_model::constant_by_id(id).is_some_and(|c| c.set == set);
        self.first()?.names.iter().find_map(|(known, name)| match name {
            Name::Constant(id) if *known as i64 == value && of_set(*id) => Some(Arg::Constant(*id)),
            _ => None,
        })
    }

    fn args(&self, function: &Function, words: &[u64]) -> Vec<Arg> {
        let arg = |(p, &word): (&refrain_model::Param, &u64)| {
            if p.dir != Dir::In || !p.len.is_empty() {
                return Arg::Unknown;
            }
            // The upper half of a register that carries an `int` means nothing.
            let number = if p.ctype.is_wide() { word as i64 } else { i64::from(word as u32 as i32) };
            match p.kind {
                Kind::Peer(_) | Kind::Root(_) | Kind::Rank => {
                    self.constant("rank", number).unwrap_or(Arg::Number(number))
                }
                Kind::Tag => self.constant("tag", number).unwrap_or(Arg::Number(number)),
                Kind::Int | Kind::Undefinable | Kind::Logical => Arg::Number(number),
                Kind::Handle(class) => {
                    // A library's handles have four bytes or eight.
                    let name = self.name(class, word).or_else(|| self.name(class, u64::from(word as u32)));
                    match name {
                        Some(Name::Constant(id)) => Arg::Constant(id),
                        Some(Name::Object { id, .. }) => Arg::Object(id),
                        None => Arg::Unknown,
                    }
                }
                _ => Arg::Unknown,
            }
        };
        function.params.iter().zip(words).map(arg).collect()
    }
}

/// Where the ranks of a trace were, with the lines of the source where the binaries are still there.
pub fn picture(trace: &Trace, folders: &[PathBuf]) -> Picture {
    let names = Binaries::new(&flight::modules(trace), folders);
    flight::picture(trace, &names)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: Cow<'a, str>,
    /// Of the parts that the run keeps, and not of its trace.
    parts: bool,
    ranks: u32,
    calls: u64,
    #[serde(flatten)]
    picture: &'a Picture,
}

/// `refrain where`: of a run that is at work, or has died, or of its trace.
pub fn command(path: Option<PathBuf>, as_json: bool, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    let path = path.map_or_else(only_one_here, Ok)?;
    let parts = if path.is_dir() { path.clone() } else { refrain_tracefile::part::directory(&path) };
    let live = parts.is_dir();
    if !live && !path.exists() {
        let failure = Failure::new(format!("neither {} nor {} is there", path.display(), parts.display()));
        return Err(failure.help("a run keeps its parts from MPI_Init on, beside where its trace will be, unless it has --safe off"));
    }
    let (trace, stacks) = match live {
        true => recover::as_of_now(&parts)?,
        false => (open(&path)?.trace, Stacks::default()),
    };
    let mut sites = flight::modules(&trace);
    stacks.known.values().flatten().for_each(|place| sites.add_module(place.module.clone()));
    let names = Binaries::new(&sites, folders);
    let frame = |place: &Place| Frame { module: place.module.key(), offset: place.offset };
    let now = stacks.known.iter().map(|(who, places)| (*who, places.iter().map(frame).collect()));
    let picture = flight::picture_with(&trace, &names, &now.collect());
    let (ranks, calls) = (trace.meta.ranks, info::calls(&trace.bundle));
    let mut out = shown(as_json, Look::Facts);
    let written = if as_json {
        let file = path.to_string_lossy();
        let picture = &picture;
        json::document(
            &Document { schema: "refrain-where-1", file, parts: live, ranks, calls, picture },
            &mut out,
        )
    } else {
        if picture.is_empty() {
            let calls = human::plural(calls, "call");
            let why = match (live, trace.meta.complete) {
                (true, _) => format!("no rank is in a call; {calls} so far"),
                (false, true) => format!("the run ended in order, after {calls}; no rank is in a call"),
                (false, false) => format!("nothing is known of calls in flight; {calls} until then"),
            };
            say(&format!("{}: {why}", path.display()));
        }
        picture.write_text(&mut out)
    };
    names.warnings().iter().for_each(|warning| say(warning));
    for (why, ranks) in &stacks.unknown {
        let ranks: Vec<u32> = ranks.iter().copied().collect();
        let stacks = if ranks.len() == 1 { "stack" } else { "stacks" };
        say(&format!("the {stacks} of {} cannot be read: {why}", recover::of_ranks(&ranks)));
    }
    finish(&path, written.map_err(Into::into))
}

/// The run that keeps its parts in this directory, if there is one and no other.
fn only_one_here() -> Result<PathBuf, Failure> {
    let here = Path::new(".");
    let entries = std::fs::read_dir(here).map_err(|error| not_read(here, &error))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut found: Vec<PathBuf> =
        names.filter(|name| name.as_encoded_bytes().ends_with(b".rfn.parts")).map(PathBuf::from).collect();
    found.sort();
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => Err(Failure::new("no run keeps parts in this directory")
            .help("name the trace: refrain where app.rfn")),
        many => {
            let all: Vec<String> = many.iter().map(|one| one.display().to_string()).collect();
            Err(Failure::new(format!("several runs keep parts here: {}", all.join(", ")))
                .help("name one: refrain where app.rfn"))
        }
    }
}
