//! Calls that were made before with the same arguments: their records are known without encoding them again.
//!
//! A record is a function of the call's argument words, of what the handles among them stand for, of where the buffers
//! lie, and of what the call wrote. The words are compared, the middle two are covered by generations that change when
//! an object is made or freed or a segment is released, and outputs are compared or filled in anew. So a hit yields
//! exactly the record that encoding would.

use std::sync::{Arc, OnceLock};

use refrain_fold::FastMap;
use refrain_model::{CType, Class, Cond, Dir, Effect, Function, Kind, Returns, functions};

use crate::comms::Later;
use crate::completions::{Completion, PASSED, Passed};
use crate::defined::{Statuses, Undefined};
use crate::encoder::{Before, Encoder};
use crate::facts::Facts;
use crate::hash::mix;
use crate::host::{Host, Memory};
use crate::record::{Record, Values};
use crate::requests::Source;
use crate::shape::{Form, Shape};
use crate::tables::Tables;

/// Most parameters any function of MPI has.
const WORDS: usize = 13;
/// Calls remembered at a time. More than a loop body has.
const REMEMBERED: usize = 1024;

/// What the call table says about a function, prepared for comparing its calls.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Only the low half of an `int` means anything.
    masks: [u64; WORDS],
    /// Scalar outputs, to be compared: (parameter, eight bytes wide).
    outputs: Vec<(u8, bool)>,
    buffers: Vec<u8>,
    /// And the output that says whether it was written.
    status: Option<(u8, Option<Cond>)>,
    /// What the status does not say.
    undefined: Undefined,
    request: Option<u8>,
}

impl Plan {
    /// `None` for functions whose record depends on more than this knows about.
    fn new(f: &'static Function, narrow: Narrow) -> Option<Plan> {
        // Whether a status was written is looked up by its flag; other outputs that decide about it are not.
        let by_index = f.params.iter().flat_map(|p| p.when).any(|c| matches!(c, Cond::Defined(_)));
        if !matches!(f.returns, Returns::Code | Returns::Clock)
            || f.silent
            || f.params.len() > WORDS
            || by_index
        {
            return None;
        }
        let mut plan = Plan {
            masks: [u64::MAX; WORDS],
            outputs: Vec::new(),
            buffers: Vec::new(),
            status: None,
            undefined: Undefined::NONE,
            request: None,
        };
        for (i, (p, step)) in f.params.iter().zip(&Shape::of(f).steps).enumerate() {
            let at = i as u8;
            match (p.dir, step.form) {
                (_, Form::Pointer)
                    if matches!(p.kind, Kind::Buffer | Kind::Value) && p.effect != Effect::Free =>
                {
                    plan.buffers.push(at);
                }
                _ if !step.is_one() => return None,
                (Dir::In, Form::Object(class)) => {
                    if narrow.has(class) || p.ctype == CType::Int {
                        plan.masks[i] = u64::from(u32::MAX);
                    }
                }
                (Dir::In, Form::Number | Form::Numbers { .. }) => {
                    if !p.ctype.is_wide() {
                        plan.masks[i] = u64::from(u32::MAX);
                    }
                }
                (Dir::Out, Form::Statuses(Statuses::OfTheCall(undefined))) if plan.status.is_none() => {
                    plan.undefined = undefined;
                    plan.status = Some((at, step.dynamic));
                }
                (Dir::Out, Form::Codes { .. })
                    if p.kind == Kind::Handle(Class::Request) && p.effect == Effect::Create =>
                {
                    plan.request = Some(at);
                }
                (Dir::Out, Form::Numbers { .. }) => plan.outputs.push((at, p.ctype.is_wide())),
                _ => return None,
            }
        }
        // A request that brings a communicator with it, or a record with something after the request, is not for here.
        let last = plan.request.is_none_or(|at| usize::from(at) + 1 == f.params.len());
        last.then_some(plan)
    }
}

/// A call, with all that recognising it again takes: the plan of its function is not looked at.
#[derive(Debug)]
struct Entry {
    function: u16,
    /// How many outputs it has.
    outputs: u16,
    symbol: u32,
    site: u64,
    objects: u64,
    places: u64,
    /// Each argument, and the bits of it that mean something.
    words: [(u64, u64); WORDS],
    written: [Output; OUTPUTS],
    /// Of the values as they are now ([`Values`]).
    mark: u32,
    values: Vec<(u16, i64)>,
    status: Option<Filled>,
    /// Where the request's id comes from, and the parameter; the id is the last of `values`.
    request: Option<(Source, u8)>,
    /// The entry that came after this one last time.
    next: usize,
}

/// A scalar output that a call wrote.
#[derive(Debug, Clone, Copy, Default)]
struct Output {
    at: u8,
    wide: bool,
    known: i64,
}

/// More outputs than functions have whose calls are remembered.
const OUTPUTS: usize = 4;

/// A status that is read anew each time.
#[derive(Debug, Clone, Copy)]
struct Filled {
    at: u8,
    /// It is one of ours: the program ignores it.
    ignored: bool,
    /// Where in the values it begins.
    first: usize,
    /// The rank its source is relative to.
    base: i64,
    undefined: Undefined,
}

/// One for each thread.
#[derive(Debug, Default)]
pub struct Memo {
    entries: Vec<Entry>,
    /// By hash of a call: one more than the place of its entry.
    places: Vec<u16>,
    last: usize,
    /// What came after it last time.
    expected: usize,
    /// The last mark that was given.
    marks: u32,
    /// By function and what was passed for statuses: one more than the symbol of its completions.
    completions: Vec<[u32; PASSED]>,
    /// The same for calls whose site is known: by function, that and site.
    completions_at: FastMap<(u32, u64), u32>,
    /// Of the last completion.
    values: Vec<(u16, i64)>,
    /// Of its requests.
    undefined: Vec<Undefined>,
    /// Communicators that have a handle since the last completion: the encoder does not know them yet.
    arrived: Vec<Later>,
}

/// What changes from call to call, and with it what a call's words mean.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// [`Encoder::generation`]
    pub objects: u64,
    /// [`Host::places`]
    pub places: u64,
    /// Where the call is made, as in [`Record::site`].
    pub site: u64,
}

/// How calls of a function are recognised.
#[derive(Debug, Default, Clone)]
enum Way {
    /// Not at all: they are encoded.
    #[default]
    None,
    Same(Plan),
    Completion(Completion),
}

impl Way {
    #[cold]
    fn new(f: &'static Function, narrow: Narrow) -> Way {
        let same = Plan::new(f, narrow).map(Way::Same);
        same.or_else(|| Completion::new(f).map(Way::Completion)).unwrap_or_default()
    }
}

/// The classes whose handles have four bytes, a bit each.
#[derive(Debug, Clone, Copy)]
struct Narrow(u32);

impl Narrow {
    fn new<M: Memory>(host: &M) -> Narrow {
        let classes = functions().iter().flat_map(|f| f.params).filter_map(|p| match p.kind {
            Kind::Handle(class) => Some(class),
            _ => None,
        });
        let narrow = classes.filter(|&class| host.handle_size(class) == 4);
        Narrow(narrow.fold(0, |bits, class| bits | 1 << class as u32))
    }

    fn has(self, class: Class) -> bool {
        self.0 >> class as u32 & 1 != 0
    }
}

/// One for a process, by function id. A program calls a few of MPI's functions: a way is made when it is first needed.
#[derive(Debug, Default, Clone)]
pub(crate) struct Plans(Option<(Arc<[Made]>, Narrow)>);

type Made = OnceLock<Box<Way>>;

impl Plans {
    pub(crate) fn new<M: Memory>(host: &M) -> Plans {
        let most = functions().iter().map(|f| usize::from(f.id)).max().unwrap_or(0);
        Plans(Some(((0..=most).map(|_| OnceLock::new()).collect(), Narrow::new(host))))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    fn way(&self, f: &'static Function) -> Option<&Way> {
        let (ways, narrow) = self.0.as_ref()?;
        let way = ways.get(usize::from(f.id))?;
        // Made before the place is taken: a thread that stands still in the middle of it holds up nobody.
        let made = way.get().or_else(|| {
            let _ = way.set(Box::new(Way::new(f, *narrow)));
            way.get()
        });
        made.map(Box::as_ref)
    }

    pub(crate) fn completion(&self, f: &'static Function) -> Option<&Completion> {
        match self.way(f) {
            Some(Way::Completion(completion)) => Some(completion),
            _ => None,
        }
    }
}

fn completion_key(f: &Function, passed: usize) -> u32 {
    u32::from(f.id) << 8 | passed as u32
}

impl Entry {
    /// Whether this is the same call again.
    #[inline]
    fn fits<M: Memory>(&self, host: &M, now: Now, f: &Function, args: &[usize]) -> bool {
        if self.function != f.id
            || (self.objects ^ now.objects) | (self.places ^ now.places) | (self.site ^ now.site) != 0
        {
            return false;
        }
        for (&arg, (word, mask)) in args.iter().zip(&self.words) {
            if (arg as u64 ^ word) & mask != 0 {
                return false;
            }
        }
        for output in &self.written[..usize::from(self.outputs).min(OUTPUTS)] {
            if output.known != read(host, args[usize::from(output.at)], output.wide) {
                return false;
            }
        }
        true
    }
}

fn slot(plan: &Plan, function: u16, site: u64, args: &[usize]) -> usize {
    let words = args.iter().zip(&plan.masks).map(|(&arg, mask)| arg as u64 & mask);
    words.fold(u64::from(function) ^ site, mix) as usize % REMEMBERED
}

impl Memo {
    /// The symbol and values of a successful call that was seen before, made at that site; `None`: it has to be encoded. Asks
    /// nothing of what threads share. [`Memo::take_arrived`] follows.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "a call has that many sides")]
    pub fn recall<M: Memory, T: Tables + ?Sized>(
        &mut self,
        facts: &Facts,
        host: &M,
        tables: &mut T,
        now: Now,
        f: &'static Function,
        args: &[usize],
        before: &Before,
    ) -> Option<(u32, Values<'_>)> {
        // Programs repeat themselves: what followed last time is tried before anything is asked or hashed.
        let expected = self.entries.get(self.expected).is_some_and(|entry| entry.fits(host, now, f, args));
        let at = match expected {
            true => self.expected,
            false => match facts.plans.way(f)? {
                Way::Same(plan) => self.look_up(plan, host, now, f, args)?,
                Way::Completion(completion) => {
                    let passed = completion.passed_with(facts, host, tables, args, before)?;
                    let symbol = match now.site {
                        0 => self.completions.get(usize::from(f.id))?[passed as usize].checked_sub(1)?,
                        site => *self.completions_at.get(&(completion_key(f, passed as usize), site))?,
                    };
                    let Memo { values, arrived, undefined, .. } = self;
                    completion.values(facts, host, tables, args, passed, before, values, undefined, arrived);
                    return Some((symbol, Values::from(&self.values)));
                }
                Way::None => return None,
            },
        };
        let entry = &mut self.entries[at];
        let mut changed = false;
        if let Some(Filled { at, ignored, first, base, undefined }) = entry.status {
            let place = if ignored { before.statuses() } else { args[usize::from(at)] };
            if place == 0 {
                return None;
            }
            let values = &mut entry.values[first..first + undefined.numbers()];
            changed |= facts.fill_status(host, place, base, undefined, values);
        }
        if let Some((source, request)) = entry.request {
            let pointer = args[usize::from(request)];
            let handle = host.handle_at(Class::Request, pointer, 0);
            if facts.null_request(handle).is_some() {
                return None;
            }
            let number = tables.create_in(source, handle, pointer, f.persistent);
            if let Some(last) = entry.values.last_mut() {
                changed |= last.1 != number;
                last.1 = number;
            }
        }
        if changed {
            entry.mark = next_mark(&mut self.marks);
        }
        self.last = at;
        self.expected = entry.next;
        Some((entry.symbol, Values { numbers: &entry.values, mark: entry.mark }))
    }

    /// Where a call is that did not follow the last one before.
    #[cold]
    fn look_up<M: Memory>(
        &mut self,
        plan: &Plan,
        host: &M,
        now: Now,
        f: &'static Function,
        args: &[usize],
    ) -> Option<usize> {
        let place = *self.places.get(slot(plan, f.id, now.site, args))?;
        let at = usize::from(place).wrapping_sub(1);
        if !self.entries.get(at)?.fits(host, now, f, args) {
            return None;
        }
        self.entries[self.last].next = at;
        Some(at)
    }

    /// Another thread goes on here: buffers on its stack are not those of the last one.
    pub fn forget(&mut self) {
        self.entries.clear();
        self.places.fill(0);
        (self.last, self.expected) = (0, 0);
    }

    /// Communicators that the last completion brought, for [`Encoder::arrived`].
    #[inline]
    pub fn take_arrived(&mut self) -> Option<Later> {
        self.arrived.pop()
    }

    /// Keeps the record of a successful call that has just been encoded, if another like it can be recognised.
    #[expect(clippy::too_many_arguments, reason = "a call has that many sides")]
    pub fn remember<H: Host>(
        &mut self,
        encoder: &Encoder,
        host: &mut H,
        tables: &dyn Tables,
        f: &'static Function,
        args: &[usize],
        record: &Record,
        symbol: u32,
    ) {
        let facts = encoder.facts();
        let plan = match facts.plans.way(f) {
            Some(Way::Same(plan)) => plan,
            Some(Way::Completion(completion)) => {
                if let Some(passed) = completion.passed(facts, args) {
                    let matched = passed == Passed::Ignored && record.keeps_ignored();
                    let passed = if matched { Passed::Matched } else { passed };
                    if record.site != 0 {
                        let key = (completion_key(f, passed as usize), record.site);
                        self.completions_at.insert(key, symbol);
                        return;
                    }
                    if self.completions.len() <= usize::from(f.id) {
                        self.completions.resize(usize::from(f.id) + 1, [0; PASSED]);
                    }
                    self.completions[usize::from(f.id)][passed as usize] = symbol.wrapping_add(1);
                }
                return;
            }
            _ => return,
        };
        if plan.outputs.len() > OUTPUTS || plan.buffers.iter().any(|&at| !host.lasting(args[usize::from(at)]))
        {
            return;
        }
        let written = |at: u8, by: Option<Cond>| {
            let flag = match by {
                Some(Cond::Flag(j)) => Some(usize::from(j)),
                _ => None,
            };
            (facts.status_was_written(args[usize::from(at)]) || record.keeps_ignored())
                && flag.is_none_or(|j| read(host, args[j], false) != 0)
        };
        let status = match plan.status {
            Some((at, by)) if written(at, by) => match record.status() {
                Some(first) => {
                    let ignored = !facts.status_was_written(args[usize::from(at)]);
                    let undefined = if ignored { Undefined::MATCH } else { plan.undefined };
                    Some(Filled { at, ignored, first, base: encoder.status_base, undefined })
                }
                None => return,
            },
            _ => None,
        };
        let request = match plan.request {
            // Without a place for the request none was made: the source is that of an earlier one.
            Some(at) => match tables.last_source().filter(|_| args[usize::from(at)] != 0) {
                Some(source) => Some((source, at)),
                None => return,
            },
            None => None,
        };
        let mut words = [(0, 0); WORDS];
        for ((word, &arg), &mask) in words.iter_mut().zip(args).zip(&plan.masks) {
            *word = (arg as u64 & mask, mask);
        }
        let mut written = [Output::default(); OUTPUTS];
        for (output, &(at, wide)) in written.iter_mut().zip(&plan.outputs) {
            *output = Output { at, wide, known: read(host, args[usize::from(at)], wide) };
        }
        if self.places.is_empty() {
            self.places = vec![0; REMEMBERED];
        }
        let place = &mut self.places[slot(plan, f.id, record.site, args)];
        let known = usize::from(*place).checked_sub(1);
        let at = known.unwrap_or(self.entries.len());
        let entry = Entry {
            function: f.id,
            outputs: plan.outputs.len() as u16,
            symbol,
            site: record.site,
            objects: encoder.generation,
            places: host.places(),
            words,
            written,
            mark: next_mark(&mut self.marks),
            values: record.values.clone(),
            status,
            request,
            next: at,
        };
        match self.entries.get_mut(at) {
            Some(old) => *old = entry,
            None => {
                self.entries.push(entry);
                *place = self.entries.len() as u16;
            }
        }
        self.entries[self.last].next = at;
        self.last = at;
        self.expected = self.entries[at].next;
    }
}

/// No mark is given twice. Where there are no more of them, values are compared.
fn next_mark(last: &mut u32) -> u32 {
    *last = last.saturating_add(1);
    if *last == u32::MAX { 0 } else { *last }
}

/// A scalar output; a null pointer reads as nothing.
fn read<M: Memory>(host: &M, pointer: usize, wide: bool) -> i64 {
    match (pointer, wide) {
        (0, _) => 0,
        (pointer, true) => host.wide_at(pointer, 0),
        (pointer, false) => host.int_at(pointer, 0),
    }
}
