//! Where a run that died or hangs was: the call that each rank had entered and not left, and what follows from all of
//! them together (`conclude`). The same sentences for `info`, `where` and pages.

mod conclude;
mod culprit;
mod history;
mod meetings;

pub use culprit::{Culprit, Kind as CulpritKind};

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::io;

use refrain_encode::{Error, Reader, calls_of};
use refrain_fold::bundle::sites::{Frame, Sites};
use refrain_model::{Call, Class, Effect, Kind, Value, constant_by_id, function_by_id};
use refrain_sites::{Location, Names, printable};
use refrain_tracefile::flight::MOST_MADE;
use refrain_tracefile::{Arg, CodeAddress, InFlight, Trace, Waited};
use serde::{Serialize, Serializer};

use crate::human::{duration, ranks as rank_list, signal};
use crate::meaning::requests::{Outcome, completed, is_failed_poll, made_request, outcome, told_in_statuses};
use crate::value;
use crate::waiting::{brief, open_requests};
use culprit::endings;

/// So many calls before are looked at for those that made a request.
const MOST_BEFORE: u64 = 1 << 16;
/// So many requests of a call are looked for.
const MOST_WAITED: usize = 16;
/// So many requests of a call are told.
const MOST_REQUESTS: usize = 4;
/// So many calls that make communicators are read.
const MOST_MAKERS: usize = 1 << 16;
/// A thread polls if so many of its last calls have found nothing.
const AGAIN: u64 = 2;
/// So many lines are told.
const MOST_LINES: usize = 64;
/// So many frames of a thread are told.
const MOST_FRAMES: usize = 32;
/// So many stacks of ranks that do the same are told.
const MOST_STACKS: usize = 16;

/// A call that made a request, and where.
pub type Made = (Call, Option<String>);

/// What a thread was doing.
#[derive(Debug, Clone)]
pub struct Doing {
    pub rank: u32,
    pub thread: u32,
    /// It had not left the call.
    pub inside: bool,
    /// Its call, with the arguments that are known; or the last one.
    pub call: Option<Call>,
    /// Where it was made.
    pub site: Option<String>,
    /// Of a thread outside MPI, from where its last call was made, the innermost function first; if the trace has stacks.
    pub stack: Vec<String>,
    /// Of a thread outside MPI, the functions that it was in when it was looked at, the innermost first; if it could be.
    pub now: Vec<Location>,
    /// The calls that made the requests it is to complete, as far as they are known, and how many requests there are.
    pub requests: Vec<Made>,
    pub waits_for: u64,
    /// It asks again and again for what does not come: for its requests, or a message.
    pub polls: bool,
    /// All calls of the run are recorded. If not, a thread outside may be in one that is not.
    pub whole: bool,
    /// For how long it has been there, inside or outside.
    pub ns: Option<u64>,
    /// How its process ended before `MPI_Finalize`: by its own word, or while others went on.
    pub gone: Option<String>,
    /// The class and the text of the error that ended it.
    pub error: Option<(String, String)>,
    /// The signal that ended it, and where.
    pub fault: Option<(u32, Option<String>)>,
}

/// What all of them were doing.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    pub doing: Vec<Doing>,
    /// Who is to be looked at first.
    pub culprit: Option<Culprit>,
    /// What is plain from that, in sentences: of the culprit first.
    pub conclusions: Vec<String>,
}

/// The modules whose names a picture asks for.
pub fn modules(trace: &Trace) -> Sites {
    let mut sites = trace.bundle.sites.clone();
    let places = trace.meta.flight.iter().flat_map(|one| [&one.place, &one.fault_place]);
    places.flatten().for_each(|place| sites.add_module(place.module.clone()));
    sites
}

/// The frames that threads are in now, the innermost first, by rank and thread.
pub type Stacks = HashMap<(u32, u32), Vec<Frame>>;

/// Empty where the trace says nothing of calls in flight.
pub fn picture(trace: &Trace, names: &dyn Names) -> Picture {
    picture_with(trace, names, &Stacks::new())
}

/// The same, with what threads outside MPI are doing now.
pub fn picture_with(trace: &Trace, names: &dyn Names, stacks: &Stacks) -> Picture {
    let reader = Reader::new(&trace.bundle);
    let endings = endings(&trace.meta.notes, trace.meta.ranks);
    let gone = |rank: u32| Some(endings.get(&rank).filter(|ending| ending.is_early())?.told.clone());
    let whole = is_whole(trace);
    let of_one = |one: &InFlight| {
        let mut one = Doing { whole, gone: gone(one.rank), ..of_one(trace, &reader, names, one) };
        if !whole && !one.inside {
            one.ns = None;
        }
        let stack = stacks.get(&(one.rank, one.thread)).filter(|_| !one.inside);
        one.now = stack.map_or_else(Vec::new, |frames| now(frames, names));
        // Calls that cannot be read tell of no polls.
        let _ = notice_polls(&mut one, trace, &reader, names);
        one
    };
    let mut doing: Vec<Doing> = trace.meta.flight.iter().map(of_one).collect();
    doing.sort_by_key(|one| (one.rank, one.thread));
    let (culprit, conclusions) = conclude::conclude(trace, &reader, &doing, endings);
    Picture { doing, culprit, conclusions }
}

fn of_one(trace: &Trace, reader: &Reader<'_>, names: &dyn Names, one: &InFlight) -> Doing {
    let site = |place: &CodeAddress, behind: u64| {
        let frame = Frame { module: place.module.key(), offset: place.offset.wrapping_add(behind) };
        // Without debug information a place in a file says more than an offset from a function that a library exports.
        names.places(frame).last().map(|place| match &place.source {
            Some(source) => source.to_string(),
            None => place.to_string(),
        })
    };
    let call = one.function.and_then(function_by_id).map(|function| {
        let comms = reader.making(one.rank, one.thread).ok().map(|mut making| {
            making.by_ref().take(MOST_MAKERS).for_each(drop);
            making
        });
        let value = |(at, p): (usize, &refrain_model::Param)| match (one.args.get(at), p.kind) {
            (Some(Arg::Number(number)), Kind::Logical) => Value::Bool(*number != 0),
            (Some(Arg::Number(number)), _) => Value::Int(*number),
            (Some(Arg::Constant(id)), _) => match constant_by_id(*id).map(|c| c.name) {
                Some("MPI_COMM_WORLD") => Value::Comm("world".into()),
                Some("MPI_COMM_SELF") => Value::Comm("self".into()),
                Some(name) => Value::Name(name),
                None => Value::Unset,
            },
            (Some(Arg::Object(id)), Kind::Handle(Class::Comm)) => {
                let name = comms.as_ref().and_then(|comms| comms.comm_name(*id));
                name.map_or(Value::Object(Class::Comm, *id), |name| Value::Comm(name.into()))
            }
            (Some(Arg::Object(id)), Kind::Handle(class)) => Value::Object(class, *id),
            _ => Value::Unset,
        };
        let args = function.params.iter().enumerate().map(value).collect();
        Call { function, args, result: Value::Unset, facts: Vec::new() }
    });
    Doing {
        rank: one.rank,
        thread: one.thread,
        inside: one.inside,
        call,
        site: one.place.as_ref().and_then(|place| site(place, 0)),
        stack: if one.inside {
            Vec::new()
        } else {
            last_stack(trace, reader, names, one).unwrap_or_default()
        },
        now: Vec::new(),
        requests: makers(trace, reader, names, one.rank, &one.requests).unwrap_or_default(),
        waits_for: one.waits_for,
        polls: false,
        whole: true,
        ns: one.ns,
        gone: None,
        error: one.error.as_ref().map(|(class, text)| {
            let class = constant_by_id(*class).map_or("an error of MPI", |c| c.name);
            (class.to_owned(), in_short(text, class))
        }),
        // The instruction itself, not what comes after a call.
        fault: one.fault.map(|signal| (signal, one.fault_place.as_ref().and_then(|place| site(place, 1)))),
    }
}

/// All calls of the run are there, and were recorded.
fn is_whole(trace: &Trace) -> bool {
    let of_times = |note: &str| note.contains("times of") || note.starts_with("how times");
    let lacks = |note: &String| note.contains("missing") && !of_times(note);
    !crate::stats::is_chosen(trace) && !trace.meta.notes.iter().any(lacks)
}

/// If the last calls of a thread have asked for something and found nothing, it is told with what it has asked for.
fn notice_polls(one: &mut Doing, trace: &Trace, reader: &Reader<'_>, names: &dyn Names) -> Result<(), Error> {
    // It is between two polls, or in one, for a moment.
    let short = one.ns.is_none_or(|ns| ns < conclude::LONG);
    let may = one.whole && short && !one.is_over() && one.gone.is_none();
    let Some(current) = one.call.as_ref().filter(|call| may && call.function.poll) else {
        return Ok(());
    };
    let Some(cohort) = trace.bundle.cohort_of(one.rank, one.thread) else { return Ok(()) };
    let Some(member) = trace.bundle.member(one.rank, one.thread) else { return Ok(()) };
    let Some(first) = calls_of(&trace.bundle, cohort, member).checked_sub(AGAIN) else { return Ok(()) };
    let mut last: Vec<Call> = reader.calls_from(one.rank, one.thread, first)?.collect::<Result<_, _>>()?;
    if !last.iter().all(is_failed_poll) {
        return Ok(());
    }
    let Some(call) = last.pop() else { return Ok(()) };
    let open = open_requests(&call);
    let mut made: HashMap<u32, Made> = HashMap::new();
    if !open.is_empty() && history::events(&trace.bundle) <= history::MOST_CALLS {
        let mut calls = reader.calls(one.rank, one.thread)?.with_few_polls();
        while let Some(call) = calls.next() {
            let call = call?;
            if let Some(id) = made_request(&call).filter(|id| open.contains(id)) {
                let site = calls.symbol().and_then(|symbol| site_of(trace, names, symbol));
                made.insert(id, (call, site));
            }
        }
    }
    // The one that it is in may be another.
    one.site.take_if(|_| current.function.id != call.function.id);
    one.requests = open.iter().filter_map(|id| made.get(id)).cloned().collect();
    (one.waits_for, one.call, one.polls, one.ns) = (open.len() as u64, Some(call), true, None);
    Ok(())
}

/// What frames are called, the innermost first and no further out than `main`: what is around that is the same in all programs.
fn now(frames: &[Frame], names: &dyn Names) -> Vec<Location> {
    let mut places: Vec<Location> = frames
        .iter()
        .flat_map(|frame| names.places(*frame).iter().rev().cloned().collect::<Vec<_>>())
        .collect();
    let is_first = |place: &Location| {
        place.function.as_deref().is_some_and(|name| matches!(name, "main" | "start_thread"))
    };
    if let Some(first) = places.iter().position(is_first) {
        places.truncate(first + 1);
    }
    places.truncate(MOST_FRAMES);
    places
}

/// The functions that the last call of a thread was made in, the innermost first, if it is the one that is known of it.
fn last_stack(trace: &Trace, reader: &Reader<'_>, names: &dyn Names, one: &InFlight) -> Option<Vec<String>> {
    let cohort = trace.bundle.cohort_of(one.rank, one.thread)?;
    let last = calls_of(&trace.bundle, cohort, trace.bundle.member(one.rank, one.thread)?).checked_sub(1)?;
    let mut calls = reader.calls_from(one.rank, one.thread, last).ok()?;
    let call = calls.next()?.ok()?;
    let symbol = calls.symbol().filter(|_| Some(call.function.id) == one.function)?;
    let frames = trace.bundle.sites.frames(trace.bundle.symbols.get(symbol as usize)?.site);
    let places =
        frames.iter().rev().flat_map(|frame| names.places(*frame).iter().rev().cloned().collect::<Vec<_>>());
    // One frame is the place of the call, which is known.
    (frames.len() > 1).then(|| places.map(|place| place.to_string()).collect())
}

/// What a library says of an error, without the names of its own functions. MPICH says the kind of error first, and last
/// what it is about.
fn in_short(text: &str, class: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix(class).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(first);
    let first = first.strip_suffix(", error stack:").unwrap_or(first);
    let last = lines.next_back().and_then(|line| line.split_once("): ")).map(|(_, what)| what);
    match last {
        Some(last) if !last.eq_ignore_ascii_case(first) => format!("{first}; {last}"),
        _ => first.to_owned(),
    }
}

/// The calls that made these requests, and where they were made if the trace knows.
fn makers(
    trace: &Trace,
    reader: &Reader<'_>,
    names: &dyn Names,
    rank: u32,
    requests: &[Waited],
) -> Result<Vec<Made>, Error> {
    let mut found = Vec::new();
    // Where not all calls were recorded, they cannot be counted back.
    let requests =
        if crate::stats::is_chosen(trace) { &[] } else { &requests[..requests.len().min(MOST_WAITED)] };
    let threads: BTreeSet<u32> = requests.iter().map(|request| request.thread).collect();
    for thread in threads {
        let Some(cohort) = trace.bundle.cohort_of(rank, thread) else { continue };
        let Some(member) = trace.bundle.member(rank, thread) else { continue };
        let first = calls_of(&trace.bundle, cohort, member).saturating_sub(MOST_BEFORE);
        let mut calls = reader.calls_from(rank, thread, first)?;
        let mut made = Vec::new();
        while let Some(call) = calls.next() {
            let call = call?;
            if makes_request(&call) {
                made.push((call, calls.symbol()));
            }
        }
        for request in requests.iter().filter(|request| request.thread == thread) {
            let back = usize::try_from(request.back).ok();
            let at = back.and_then(|back| made.len().checked_sub(back)?.checked_sub(1));
            let Some((call, symbol)) = at.and_then(|at| made.get(at)) else { continue };
            found.push((call.clone(), symbol.and_then(|symbol| site_of(trace, names, symbol))));
        }
    }
    Ok(found)
}

/// Where the calls of a symbol were made.
fn site_of(trace: &Trace, names: &dyn Names, symbol: u32) -> Option<String> {
    let frames = trace.bundle.sites.frames(trace.bundle.symbols.get(symbol as usize)?.site);
    let place = names.places(*frames.last()?).last().cloned()?;
    Some(place.source.as_ref().map_or(place.to_string(), ToString::to_string))
}

/// Of each of the last calls of a thread that made a request, the last first, whether that is not complete yet, or persistent and
/// not freed. As many as a part can tell of.
pub fn outstanding(trace: &Trace, rank: u32, thread: u32) -> Result<Vec<bool>, Error> {
    let bundle = &trace.bundle;
    let Some(cohort) = bundle.cohort_of(rank, thread) else { return Ok(Vec::new()) };
    let Some(member) = bundle.member(rank, thread) else { return Ok(Vec::new()) };
    let all = calls_of(bundle, cohort, member);
    // Most threads have made as many requests in fewer calls.
    for before in [MOST_BEFORE >> 6, MOST_BEFORE >> 3, MOST_BEFORE] {
        let first = all.saturating_sub(before);
        let mut left = outstanding_since(&Reader::new(bundle), (rank, thread), first)?;
        if left.len() >= MOST_MADE || first == 0 || before == MOST_BEFORE {
            left.reverse();
            left.truncate(MOST_MADE);
            return Ok(left);
        }
    }
    Ok(Vec::new())
}

/// The same of all that were made by a thread since its `first` call, the oldest first.
fn outstanding_since(
    reader: &Reader<'_>,
    (rank, thread): (u32, u32),
    first: u64,
) -> Result<Vec<bool>, Error> {
    let mut left = Vec::new();
    // By id: which of them, and whether it ends when it is complete.
    let mut made: HashMap<u32, (usize, bool)> = HashMap::new();
    for call in reader.calls_from(rank, thread, first)? {
        let call = call?;
        if call.result == Value::Int(0) || told_in_statuses(&call) {
            let freed = call.function.params.iter().any(|p| p.effect == Effect::Free);
            let over = |(id, status): (u32, Option<&Value>)| {
                let &(at, ends) = made.get(&id)?;
                ((ends || freed) && outcome(status) != Outcome::Open).then_some(at)
            };
            completed(&call).into_iter().filter_map(over).for_each(|at| left[at] = false);
        }
        if makes_request(&call) {
            if let Some(id) = made_request(&call) {
                made.insert(id, (left.len(), !call.function.persistent));
            }
            left.push(true);
        }
    }
    Ok(left)
}

/// Whether a call that succeeded has made one request: what the recorder counts.
fn makes_request(call: &Call) -> bool {
    let makes = |p: &refrain_model::Param| {
        p.kind == Kind::Handle(Class::Request) && p.effect == Effect::Create && p.len.is_empty()
    };
    call.result == Value::Int(0) && call.function.params.iter().any(makes)
}

impl Doing {
    /// Its call in a few words, with where it was made.
    fn call_text(&self) -> String {
        let mut text = self.call.as_ref().map_or_else(
            || "a call".into(),
            |call| match self.requests.is_empty() {
                true if self.waits_for == 0 => brief(call),
                _ => call.function.name.to_owned(),
            },
        );
        if self.waits_for > 0 {
            let several = self.waits_for > 1 || self.requests.is_empty();
            let requests = crate::human::plural(self.waits_for, "request");
            let _ = if several { write!(text, " for {requests}") } else { write!(text, " for ") };
            let known = self.requests.iter().take(MOST_REQUESTS).enumerate();
            for (n, (call, site)) in known {
                text += if n > 0 {
                    "; "
                } else if several {
                    ": "
                } else {
                    ""
                };
                text += &brief(call);
                if let Some(site) = site {
                    let _ = write!(text, " of {site}");
                }
            }
            if !self.requests.is_empty() && self.waits_for as usize > self.requests.len().min(MOST_REQUESTS) {
                text += "; ...";
            }
        }
        if let Some(site) = &self.site {
            let _ = write!(text, " at {site}");
        }
        text
    }

    /// The innermost function that it is in now of those that the source is known of, and where: `kernel at heat.c:41`. One that has
    /// called the system's own library says more than that.
    fn now_at(&self) -> Option<String> {
        let own = |place: &&Location| {
            !["libc.", "libm.", "libpthread.", "ld-"].iter().any(|name| place.module.starts_with(name))
        };
        let mut known = self.now.iter().filter(|place| place.source.is_some());
        let place = known.clone().find(own).or_else(|| known.next()).or(self.now.first())?;
        Some(match (&place.function, &place.source) {
            (Some(function), Some(source)) => format!("{function} at {source}"),
            _ => place.to_string(),
        })
    }

    /// What it was doing, without who and how long.
    pub fn state(&self) -> String {
        let call = self.call_text();
        let at =
            |place: &Option<String>| place.as_ref().map_or_else(String::new, |place| format!(" at {place}"));
        match (&self.error, &self.fault) {
            (Some((class, text)), _) => format!("ended by an error of MPI in {call}: {class}: {text}"),
            (_, Some((number, place))) if self.inside => {
                format!("ended by {}{}, in {call}", signal((*number).into()), at(place))
            }
            (_, Some((number, place))) => {
                let last =
                    self.call.as_ref().map_or_else(String::new, |_| format!("; the last call was {call}"));
                format!("ended by {}{}{last}", signal((*number).into()), at(place))
            }
            _ if self.gone.is_some() && !self.is_in("MPI_Abort") => {
                // The call says it with its place.
                let gone = self.gone.iter().flat_map(|gone| gone.split(" inside MPI_")).next();
                let gone = gone.unwrap_or_default().trim_start_matches("is gone: it was ");
                match (self.inside, &self.call) {
                    (true, _) => format!("{gone}, in {call}"),
                    (false, Some(_)) => format!("{gone}; the last call was {call}"),
                    (false, None) => gone.to_owned(),
                }
            }
            _ if self.polls => format!("polls with {call}"),
            _ if self.inside => format!("in {call}"),
            _ if !self.whole && self.call.is_none() => "in no call that is recorded".into(),
            _ if !self.whole => format!("in no call that is recorded; the last one was {call}"),
            _ if self.call.is_none() => "outside MPI".into(),
            _ if self.stack.is_empty() => format!("outside MPI since {call}"),
            _ => format!("outside MPI since {call}, called from {}", self.stack.join(", ")),
        }
    }

    /// Its call and where that was made.
    fn short(&self) -> String {
        let name = self.call.as_ref().map_or("a call", |call| call.function.name);
        self.site.as_ref().map_or_else(|| name.to_owned(), |site| format!("{name} at {site}"))
    }

    fn is_in(&self, function: &str) -> bool {
        self.inside && self.call.as_ref().is_some_and(|call| call.function.name == function)
    }

    /// By what it was ended, and where it was then, in short.
    fn end(&self) -> String {
        let call = self.short();
        match (&self.error, &self.fault) {
            (Some((class, text)), _) => format!("an error of MPI in {call}: {class}: {text}"),
            (_, Some((number, place))) => {
                let at = place.as_ref().map_or_else(String::new, |place| format!(" at {place}"));
                let call = match (self.inside, &self.call) {
                    (true, _) => format!(", in {call}"),
                    (false, Some(_)) => format!(", after {call}"),
                    (false, None) => String::new(),
                };
                format!("{}{at}{call}", signal((*number).into()))
            }
            _ => String::new(),
        }
    }

    /// `in kernel (heat.c:41), called from main (heat.c:80)`
    fn now_told(&self) -> Option<String> {
        let (first, rest) = self.now.split_first()?;
        let mut told = format!("in {first}");
        for (n, place) in rest.iter().enumerate() {
            let _ = write!(told, "{}{place}", if n == 0 { ", called from " } else { ", " });
        }
        let more = if self.now.len() < MOST_FRAMES { "" } else { ", ..." };
        Some(told + more)
    }

    fn is_over(&self) -> bool {
        self.error.is_some() || self.fault.is_some()
    }
}

/// A line for each stack of ranks that do the same.
fn stacks(all: &[&Doing]) -> Vec<String> {
    let mut alike: Vec<(String, Vec<u32>)> = Vec::new();
    for one in all {
        let Some(told) = one.now_told() else { continue };
        match alike.iter_mut().find(|(known, _)| *known == told) {
            Some((_, ranks)) => ranks.push(one.rank),
            None => alike.push((told, vec![one.rank])),
        }
    }
    let more = alike.len().saturating_sub(MOST_STACKS);
    alike.truncate(MOST_STACKS);
    let each = |(told, ranks): &(String, Vec<u32>)| match ranks.len() == all.len() {
        true => format!("  now {told}"),
        false => format!("  {} now {told}", of_ranks(ranks)),
    };
    let mut lines: Vec<String> = alike.iter().map(|one| printable(&each(one)).into_owned()).collect();
    if more > 0 {
        lines.push(format!("  and {more} other stacks"));
    }
    lines
}

/// `rank 2`, `ranks 0-3`
fn of_ranks(ranks: &[u32]) -> String {
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, rank_list(ranks))
}

impl Picture {
    pub fn is_empty(&self) -> bool {
        self.doing.is_empty()
    }

    /// A line for all ranks that were doing the same, and lines below it for what they are in now; those that ended in a way of their own first.
    pub fn lines(&self) -> Vec<String> {
        struct Line<'a> {
            over: bool,
            thread: u32,
            told: String,
            all: Vec<&'a Doing>,
        }
        let mut lines: Vec<Line<'_>> = Vec::new();
        for one in &self.doing {
            let told = one.state();
            match lines.iter_mut().find(|line| line.thread == one.thread && line.told == told) {
                Some(line) => line.all.push(one),
                None => lines.push(Line {
                    over: one.is_over() || one.gone.is_some(),
                    thread: one.thread,
                    told,
                    all: vec![one],
                }),
            }
        }
        lines.sort_by_key(|line| !line.over);
        let more = lines.len().saturating_sub(MOST_LINES);
        lines.truncate(MOST_LINES);
        let text = |line: &Line<'_>| {
            let ranks: Vec<u32> = line.all.iter().map(|one| one.rank).collect();
            let thread = if line.thread > 0 { format!(", thread {}", line.thread) } else { String::new() };
            let times = || line.all.iter().filter(|_| !line.over).filter_map(|one| one.ns);
            let long = match (times().min(), times().max()) {
                // It has gone on while it was looked at.
                (Some(_), Some(0)) => ", just now".into(),
                (Some(least), Some(most)) if duration(least) == duration(most) => {
                    format!(", for {}", duration(least))
                }
                (Some(least), Some(most)) => format!(", for {} to {}", duration(least), duration(most)),
                _ => String::new(),
            };
            printable(&format!("{}{thread}: {}{long}", of_ranks(&ranks), line.told)).into_owned()
        };
        let mut told: Vec<String> = Vec::new();
        for line in &lines {
            told.push(text(line));
            told.extend(stacks(&line.all));
        }
        if more > 0 {
            told.push(format!("and {more} more"));
        }
        told
    }

    /// Both: who is to be looked at first, who waits for whom, and what each rank does.
    pub fn write_text(&self, out: &mut dyn io::Write) -> io::Result<()> {
        for (n, conclusion) in self.conclusions.iter().enumerate() {
            match n == 0 && self.culprit.is_some() {
                true => writeln!(out, "{conclusion}.")?,
                false => writeln!(out, "  {conclusion}")?,
            }
        }
        if !self.conclusions.is_empty() {
            writeln!(out)?;
        }
        for line in self.lines() {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }
}

/// What a [`Picture`] is for programs.
#[derive(Serialize)]
struct FlightDocument<'a> {
    in_flight: Vec<FlightRow<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    culprit: Option<&'a Culprit>,
    conclusions: &'a [String],
}

#[derive(Serialize)]
struct FlightRow<'a> {
    rank: u32,
    thread: u32,
    inside: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Args<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<Cow<'a, str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Vec<Now<'a>>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    polls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    made_by: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal_at: Option<Cow<'a, str>>,
    told: String,
}

/// A frame.
#[derive(Serialize)]
struct Now<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    module: &'a str,
    offset: u64,
}

impl<'a> Now<'a> {
    fn of(place: &'a Location) -> Now<'a> {
        Now {
            function: place.function.as_deref(),
            file: place.source.as_ref().map(|source| source.file.as_str()),
            line: place.source.as_ref().map(|source| source.line),
            module: &place.module,
            offset: place.offset,
        }
    }
}

/// Those that are known.
struct Args<'a>(&'a Call);

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let known = value::args(self.0).filter(|(_, value)| **value != Value::Unset);
        to.collect_map(known.map(|(name, value)| (name, value::Json(value))))
    }
}

impl<'a> FlightRow<'a> {
    fn of(one: &'a Doing) -> FlightRow<'a> {
        let (call, waits) = (one.call.as_ref(), one.waits_for > 0);
        let made_by = || one.requests.iter().map(|(call, _)| printable(&brief(call)).into_owned()).collect();
        let (signal_number, signal_at) =
            one.fault.as_ref().map_or((None, None), |(n, at)| (Some(*n), at.as_deref()));
        FlightRow {
            rank: one.rank,
            thread: one.thread,
            inside: one.inside,
            call: call.map(|call| call.function.name),
            args: call.map(Args),
            site: one.site.as_deref().map(printable),
            stack: (!one.stack.is_empty()).then(|| one.stack.iter().map(|one| printable(one)).collect()),
            now: (!one.now.is_empty()).then(|| one.now.iter().map(Now::of).collect()),
            polls: one.polls,
            requests: waits.then_some(one.waits_for),
            made_by: waits.then(made_by),
            ns: one.ns,
            error_class: one.error.as_ref().map(|(class, _)| class.as_str()),
            error: one.error.as_ref().map(|(_, text)| printable(text)),
            signal: signal_number.map(|number| signal(number.into())),
            signal_at: signal_at.map(printable),
            told: printable(&one.state()).into_owned(),
        }
    }
}

/// The members `in_flight`, `culprit` and `conclusions`.
impl Serialize for Picture {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let in_flight = self.doing.iter().map(FlightRow::of).collect();
        FlightDocument { in_flight, culprit: self.culprit.as_ref(), conclusions: &self.conclusions }
            .serialize(to)
    }
}
