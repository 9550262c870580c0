//! Calls that were made before with the same arguments: their records are known without encoding them again.
//!
//! A record is a function of the call's argument words, of what the handles among them stand for, of where the buffers
//! lie, and of what the call wrote. The words are compared, the middle two are covered by generations that change when
//! an object is made or freed or a segment is released, and outputs are compared or filled in anew. So a hit yields
//! exactly the record that encoding would.

use refrain_model::{CType, Class, Cond, Dir, Effect, Function, Kind, Returns, functions};

use crate::encoder::Encoder;
use crate::hash::mix;
use crate::host::Host;
use crate::objects::Code;
use crate::params::{dynamic_condition, is_number, is_wide, object_in_lane, only_amount};
use crate::record::Record;

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
    /// The status speaks of a file.
    file: bool,
    request: Option<u8>,
}

impl Plan {
    /// `None` for functions whose record depends on more than this knows about.
    fn new<H: Host>(f: &'static Function, host: &H) -> Option<Plan> {
        // Whether a status was written is looked up by its flag; other outputs that decide about it are not.
        let by_index = f.params.iter().flat_map(|p| p.when).any(|c| matches!(c, Cond::Defined(_)));
        if f.returns != Returns::Code || f.silent || f.params.len() > WORDS || by_index {
            return None;
        }
        let mut plan = Plan {
            masks: [u64::MAX; WORDS],
            outputs: Vec::new(),
            buffers: Vec::new(),
            status: None,
            file: only_amount(f),
            request: None,
        };
        for (i, p) in f.params.iter().enumerate() {
            let at = i as u8;
            let scalar = p.len.is_empty();
            match (p.dir, p.kind) {
                (Dir::In, Kind::Handle(class)) if scalar && !object_in_lane(class) => {
                    if host.handle_size(class) == 4 || p.ctype == CType::Int {
                        plan.masks[i] = u64::from(u32::MAX);
                    }
                }
                (Dir::In, kind) if scalar && is_number(kind) => {
                    if !is_wide(p.ctype) {
                        plan.masks[i] = u64::from(u32::MAX);
                    }
                }
                (_, Kind::Buffer) if p.effect != Effect::Free => plan.buffers.push(at),
                (Dir::Out, Kind::Status) if scalar && plan.status.is_none() => plan.status = Some(at),
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

#[derive(Debug, Clone)]
struct Entry {
    function: u16,
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
    /// The slot that came after this one last time.
    next: usize,
}

/// One for each thread.
#[derive(Debug, Default)]
pub struct Memo {
    slots: Vec<Option<Entry>>,
    last: usize,
}

/// Made once for a process: by function id.
#[derive(Debug, Default, Clone)]
pub(crate) struct Plans(Vec<Option<Plan>>);

impl Plans {
    pub(crate) fn new<H: Host>(host: &H) -> Plans {
        let most = functions().iter().map(|f| usize::from(f.id)).max().unwrap_or(0);
        let mut plans = vec![None; most + 1];
        for f in functions() {
            plans[usize::from(f.id)] = Plan::new(f, host);
        }
        Plans(plans)
    }

    pub(crate) fn get(&self, f: &Function) -> Option<&Plan> {
        self.0.get(usize::from(f.id))?.as_ref()
    }
}

fn words(plan: &Plan, args: &[usize]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for ((word, &arg), mask) in words.iter_mut().zip(args).zip(&plan.masks) {
        *word = arg as u64 & mask;
    }
    words
}

fn slot(function: u16, words: &[u64; WORDS]) -> usize {
    words.iter().fold(u64::from(function), |h, &word| mix(h, word)) as usize % REMEMBERED
}

impl Memo {
    /// The symbol and values of a successful call that was seen before; `None`: it has to be encoded.
    #[inline]
    pub fn recall<H: Host>(
        &mut self,
        encoder: &mut Encoder,
        host: &mut H,
        f: &'static Function,
        args: &[usize],
    ) -> Option<(u32, &[(u16, i64)])> {
        let plan = encoder.plans.get(f)?;
        let words = words(plan, args);
        let (objects, places) = (encoder.generation, host.places());
        let fits = |entry: &Entry| {
            entry.function == f.id
                && entry.words == words
                && entry.objects == objects
                && entry.places == places
                && plan
                    .outputs
                    .iter()
                    .zip(entry.outputs)
                    .all(|(&(at, wide), known)| known == read(host, args[usize::from(at)], wide))
        };
        // Programs repeat themselves: what followed last time is tried before anything is hashed.
        let followed =
            self.slots.get(self.last).and_then(|entry| entry.as_ref()).map_or(0, |entry| entry.next);
        let expected = self.slots.get(followed).and_then(|entry| entry.as_ref());
        let at = if expected.is_some_and(fits) {
            followed
        } else {
            let at = slot(f.id, &words);
            if !self.slots.get(at).and_then(|entry| entry.as_ref()).is_some_and(fits) {
                return None;
            }
            if let Some(entry) = self.slots.get_mut(self.last).and_then(|entry| entry.as_mut()) {
                entry.next = at;
            }
            at
        };
        self.last = at;
        let entry = self.slots[at].as_mut()?;
        if let (Some((first, base)), Some(status)) = (entry.status, plan.status) {
            let values = &mut entry.values[first..first + 4];
            encoder.fill_status(host, args[usize::from(status)], base, plan.file, values);
        }
        if let (Some(pool), Some(request)) = (entry.pool, plan.request) {
            let pointer = args[usize::from(request)];
            let handle = host.handle_at(Class::Request, pointer, 0);
            if encoder.requests.is_null(handle) {
                return None;
            }
            let code = encoder.requests.create_in(pool, handle, pointer, f.persistent, None);
            if let Some(last) = entry.values.last_mut() {
                last.1 = code.number() as i64;
            }
        }
        Some((entry.symbol, &entry.values))
    }

    /// Keeps the record of a successful call that has just been encoded, if another like it can be recognised.
    pub fn remember<H: Host>(
        &mut self,
        encoder: &mut Encoder,
        host: &mut H,
        f: &'static Function,
        args: &[usize],
        record: &Record,
        symbol: u32,
    ) {
        let Some(plan) = encoder.plans.get(f) else { return };
        if plan.outputs.len() > 4 || plan.buffers.iter().any(|&at| !host.lasting(args[usize::from(at)])) {
            return;
        }
        let written = |at: u8| {
            let flag = match dynamic_condition(f, usize::from(at)) {
                Some(Cond::Flag(j)) => Some(usize::from(j)),
                _ => None,
            };
            encoder.status_was_written(args[usize::from(at)])
                && flag.is_none_or(|j| read(host, args[j], false) != 0)
        };
        let status = match plan.status {
            Some(at) if written(at) => {
                // It is the last thing in a record (but for the count of polls), or there is no telling where it is.
                let Some(first) = record.values.len().checked_sub(4 + usize::from(f.poll)) else { return };
                if plan.request.is_some() || usize::from(at) + 1 != f.params.len() {
                    return;
                }
                Some((first, encoder.status_base))
            }
            _ => None,
        };
        let pool = match plan.request {
            Some(_) => match (encoder.requests.last_pool(), record.values.last()) {
                (Some(pool), Some(&(_, code)))
                    if matches!(Code::from_number(code as u64), Some(Code::Id(_))) =>
                {
                    Some(pool)
                }
                _ => return,
            },
            None => None,
        };
        let words = words(plan, args);
        let mut outputs = [0; 4];
        for (known, &(at, wide)) in outputs.iter_mut().zip(&plan.outputs) {
            *known = read(host, args[usize::from(at)], wide);
        }
        let at = slot(f.id, &words);
        if self.slots.is_empty() {
            self.slots.resize_with(REMEMBERED, || None);
        }
        if let Some(entry) = &mut self.slots[self.last] {
            entry.next = at;
        }
        self.last = at;
        self.slots[at] = Some(Entry {
            function: f.id,
            words,
            objects: encoder.generation,
            places: host.places(),
            outputs,
            symbol,
            values: record.values.clone(),
            status,
            pool,
            next: at,
        });
    }
}

/// A scalar output; a null pointer reads as nothing.
fn read<H: Host>(host: &H, pointer: usize, wide: bool) -> i64 {
    match (pointer, wide) {
        (0, _) => 0,
        (pointer, true) => host.wide_at(pointer, 0),
        (pointer, false) => host.int_at(pointer, 0),
    }
}
