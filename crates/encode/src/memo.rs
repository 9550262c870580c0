//! Calls that were made before with the same arguments: their records are known without encoding them again.
//!
//! A record is a function of the call's argument words, of what the handles among them stand for, of where the buffers
//! lie, and of what the call wrote. The words are compared, the middle two are covered by generations that change when
//! an object is made or freed or a segment is released, and outputs are compared or filled in anew. So a hit yields
//! exactly the record that encoding would.

use std::sync::{Arc, OnceLock};

use refrain_model::{CType, Class, Cond, Dir, Effect, Function, Kind, Returns, functions};

use crate::comms::Later;
use crate::completions::{Completion, SHAPES};
use crate::defined::{Statuses, Undefined};
use crate::encoder::{Before, Encoder};
use crate::facts::Facts;
use crate::hash::{FastMap, mix};
use crate::host::{Host, Memory};
use crate::params::{dynamic_condition, is_number, is_wide, object_in_lane};
use crate::record::Record;
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
    status: Option<u8>,
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
        for (i, p) in f.params.iter().enumerate() {
            let at = i as u8;
            let scalar = p.len.is_empty();
            match (p.dir, p.kind) {
                (Dir::In, Kind::Handle(class)) if scalar && !object_in_lane(class) => {
                    if narrow.has(class) || p.ctype == CType::Int {
                        plan.masks[i] = u64::from(u32::MAX);
                    }
                }
                (Dir::In, kind) if scalar && is_number(kind) => {
                    if !is_wide(p.ctype) {
                        plan.masks[i] = u64::from(u32::MAX);
                    }
                }
                (_, Kind::Buffer | Kind::Value) if p.effect != Effect::Free => plan.buffers.push(at),
                (Dir::Out, Kind::Status) if scalar && plan.status.is_none() => {
                    let Statuses::OfTheCall(undefined) = Statuses::of(f, i) else { return None };
                    plan.undefined = undefined;
                    plan.status = Some(at);
                }
                (Dir::Out, Kind::Handle(Class::Request)) if scalar && p.effect == Effect::Create => {
                    plan.request = Some(at);
                }
                (Dir::Out, kind) if scalar && is_number(kind) => plan.outputs.push((at, is_wide(p.ctype))),
                _ => return None,
            }
        }
        // A request that brings a communicator with it, or a record with something after the request, is not for here.
        let last = plan.request.is_none_or(|at| usize::from(at) + 1 == f.params.len());
        last.then_some(plan)
    }
}

#[derive(Debug)]
struct Entry {
    function: u16,
    site: u64,
    words: [u64; WORDS],
    objects: u64,
    places: u64,
    outputs: [i64; 4],
    symbol: u32,
    values: Vec<(u16, i64)>,
    /// Where in `values` the status begins, and the rank its source is relative to.
    status: Option<(usize, i64)>,
    /// The pool of the request's ids; the id is the last of `values`.
    pool: Option<u32>,
    /// The entry that came after this one last time.
    next: usize,
}

/// One for each thread.
#[derive(Debug, Default)]
pub struct Memo {
    entries: Vec<Entry>,
    /// By hash of a call: one more than the place of its entry.
    places: Vec<u16>,
    last: usize,
    /// By function and shape: one more than the symbol of its completions.
    completions: Vec<[u32; SHAPES]>,
    /// The same for calls whose site is known: by function, shape and site.
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

fn completion_key(f: &Function, shape: usize) -> u32 {
    u32::from(f.id) << 8 | shape as u32
}

impl Entry {
    /// Whether this is the same call again.
    #[inline]
    fn fits<M: Memory>(&self, plan: &Plan, host: &M, now: Now, f: &Function, args: &[usize]) -> bool {
        self.function == f.id
            && self.objects == now.objects
            && self.places == now.places
            && self.site == now.site
            && same(plan, args, &self.words)
            && plan
                .outputs
                .iter()
                .zip(self.outputs)
                .all(|(&(at, wide), known)| known == read(host, args[usize::from(at)], wide))
    }
}

/// Whether the words of a call are those that were remembered.
#[inline]
fn same(plan: &Plan, args: &[usize], words: &[u64; WORDS]) -> bool {
    let words = args.iter().zip(words).zip(&plan.masks);
    words.fold(0, |differs, ((&arg, word), mask)| differs | ((arg as u64 ^ word) & mask)) == 0
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
    ) -> Option<(u32, &[(u16, i64)])> {
        let plan = match facts.plans.way(f)? {
            Way::Same(plan) => plan,
            Way::Completion(completion) => {
                let shape = completion.shape(facts, args)?;
                let symbol = match now.site {
                    0 => self.completions.get(usize::from(f.id))?[shape as usize].checked_sub(1)?,
                    site => *self.completions_at.get(&(completion_key(f, shape as usize), site))?,
                };
                let Memo { values, arrived, undefined, .. } = self;
                completion.values(facts, host, tables, args, shape, before, values, undefined, arrived);
                return Some((symbol, &self.values));
            }
            Way::None => return None,
        };
        // Programs repeat themselves: what followed last time is tried before anything is hashed.
        let mut at = self.entries.get(self.last)?.next;
        if !self.entries.get(at).is_some_and(|entry| entry.fits(plan, host, now, f, args)) {
            at = self.look_up(plan, host, now, f, args)?;
        }
        self.last = at;
        let entry = &mut self.entries[at];
        if let (Some((first, base)), Some(status)) = (entry.status, plan.status) {
            let values = &mut entry.values[first..first + plan.undefined.numbers()];
            facts.fill_status(host, args[usize::from(status)], base, plan.undefined, values);
        }
        if let (Some(pool), Some(request)) = (entry.pool, plan.request) {
            let pointer = args[usize::from(request)];
            let handle = host.handle_at(Class::Request, pointer, 0);
            if facts.null_request(handle).is_some() {
                return None;
            }
            let number = tables.create_in(pool, handle, pointer, f.persistent);
            if let Some(last) = entry.values.last_mut() {
                last.1 = number;
            }
        }
        Some((entry.symbol, &entry.values))
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
        let at = usize::from(self.places[slot(plan, f.id, now.site, args)]).wrapping_sub(1);
        if !self.entries.get(at)?.fits(plan, host, now, f, args) {
            return None;
        }
        self.entries[self.last].next = at;
        Some(at)
    }

    /// Another thread goes on here: buffers on its stack are not those of the last one.
    pub fn forget(&mut self) {
        self.entries.clear();
        self.places.fill(0);
        self.last = 0;
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
                if let Some(shape) = completion.shape(facts, args) {
                    if record.site != 0 {
                        let key = (completion_key(f, shape as usize), record.site);
                        self.completions_at.insert(key, symbol);
                        return;
                    }
                    if self.completions.len() <= usize::from(f.id) {
                        self.completions.resize(usize::from(f.id) + 1, [0; SHAPES]);
                    }
                    self.completions[usize::from(f.id)][shape as usize] = symbol.wrapping_add(1);
                }
                return;
            }
            _ => return,
        };
        if plan.outputs.len() > 4 || plan.buffers.iter().any(|&at| !host.lasting(args[usize::from(at)])) {
            return;
        }
        let written = |at: u8| {
            let flag = match dynamic_condition(f, usize::from(at)) {
                Some(Cond::Flag(j)) => Some(usize::from(j)),
                _ => None,
            };
            facts.status_was_written(args[usize::from(at)])
                && flag.is_none_or(|j| read(host, args[j], false) != 0)
        };
        let status = match plan.status {
            Some(at) if written(at) => {
                // It is the last thing in a record (but for the count of polls), or there is no telling where it is.
                let numbers = plan.undefined.numbers() + usize::from(f.poll);
                let Some(first) = record.values.len().checked_sub(numbers) else { return };
                if plan.request.is_some() || usize::from(at) + 1 != f.params.len() {
                    return;
                }
                Some((first, encoder.status_base))
            }
            _ => None,
        };
        let pool = match plan.request {
            // Without a place for the request none was made: the pool is that of an earlier one.
            Some(at) => match tables.last_pool().filter(|_| args[usize::from(at)] != 0) {
                Some(pool) => Some(pool),
                None => return,
            },
            None => None,
        };
        let mut words = [0; WORDS];
        for ((word, &arg), mask) in words.iter_mut().zip(args).zip(&plan.masks) {
            *word = arg as u64 & mask;
        }
        let mut outputs = [0; 4];
        for (known, &(at, wide)) in outputs.iter_mut().zip(&plan.outputs) {
            *known = read(host, args[usize::from(at)], wide);
        }
        if self.places.is_empty() {
            self.places = vec![0; REMEMBERED];
        }
        let place = &mut self.places[slot(plan, f.id, record.site, args)];
        let known = usize::from(*place).checked_sub(1);
        let at = known.unwrap_or(self.entries.len());
        let entry = Entry {
            function: f.id,
            site: record.site,
            words,
            objects: encoder.generation,
            places: host.places(),
            outputs,
            symbol,
            values: record.values.clone(),
            status,
            pool,
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
    }
}

/// A scalar output; a null pointer reads as nothing.
fn read<M: Memory>(host: &M, pointer: usize, wide: bool) -> i64 {
    match (pointer, wide) {
        (0, _) => 0,
        (pointer, true) => host.wide_at(pointer, 0),
        (pointer, false) => host.int_at(pointer, 0),
    }
}
