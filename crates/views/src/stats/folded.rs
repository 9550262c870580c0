//! The payload of a cohort's calls from their folded form: sums over streams, without looking at any call.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use refrain_encode::{Decoder, Layout, Outcome, Slot};
use refrain_fold::bundle::{Bundle, Cohort, Lane};
use refrain_fold::stream::Stream;
use refrain_model::{Value, constant};

use super::Amount;
use super::payload::{InPlace, Payload, Side, Times};
use super::sizes::{CommSize, Made, named_comm, named_type};
use super::walked::{Sizes, of_call, size_of_code};

/// The folded form does not say it; the calls have to be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NeedWalk;

/// One symbol of a cohort as one rank has it: how often it happened, and where its streams are.
pub(crate) struct Occurrence<'a> {
    pub(crate) symbol: u32,
    pub(crate) times: u64,
    pub(crate) layout: &'a Layout,
    lanes: &'a [Lane],
    bundle: &'a Bundle,
    rank: u32,
    /// Whether something was asked for that is not the same on all ranks.
    pub(crate) varied: Cell<bool>,
}

impl<'a> Occurrence<'a> {
    fn lane(&self, lane: u16) -> Result<Cow<'a, Stream>, NeedWalk> {
        let lane = self.lanes.get(usize::from(lane)).ok_or(NeedWalk)?;
        if matches!(lane, Lane::Varied(_)) {
            self.varied.set(true);
        }
        self.bundle.stream_of(lane, self.rank).ok_or(NeedWalk)
    }

    pub(super) fn stream(&self, lane: u16) -> Option<Cow<'a, Stream>> {
        self.lane(lane).ok()
    }

    /// The first number of a lane.
    pub(super) fn first(&self, lane: u16) -> Option<i64> {
        self.lane(lane).ok()?.iter().next()
    }

    /// The same symbol on another rank of the cohort.
    pub(crate) fn at(&self, rank: u32) -> Occurrence<'a> {
        Occurrence { rank, varied: Cell::new(false), ..*self }
    }

    /// With the failed polls that are counted in a lane.
    pub(crate) fn calls(&self) -> u64 {
        let polls = self.layout.polls.and_then(|lane| self.lane(lane).ok()).map_or(0, |l| l.sum(self.times));
        self.times.saturating_add(u64::try_from(polls).unwrap_or(0))
    }

    /// The call itself, where all its values stand in the symbol.
    pub(super) fn inline_call(&self, rank: u32) -> Option<refrain_model::Call> {
        self.layout.inline.as_ref()?;
        Decoder::new(rank).call(self.layout, &mut |_| 0).ok()
    }
}

/// The symbols of a cohort that a rank came by, in the order of its lanes.
pub(crate) fn occurrences<'a>(
    bundle: &'a Bundle,
    cohort: &'a Cohort,
    rank: u32,
    counts: &[(u32, u64)],
    layouts: &'a [Layout],
) -> Vec<Occurrence<'a>> {
    let mut next = 0;
    let one = |&(symbol, times): &(u32, u64)| {
        let count = usize::from(bundle.symbols.get(symbol as usize)?.lanes);
        let lanes = bundle.values_of(cohort).get(next..next + count)?;
        next += count;
        let layout = layouts.get(symbol as usize).filter(|_| times > 0)?;
        Some(Occurrence { symbol, times, layout, lanes, bundle, rank, varied: Cell::new(false) })
    };
    counts.iter().filter_map(one).collect()
}

/// The sizes of the datatypes that a rank makes, by id.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// `None` for an id that had several sizes.
    sizes: HashMap<u32, Option<u64>>,
    /// More were made, and which is not known without reading the calls.
    more: bool,
}

impl Types {
    /// What other threads may rely on: nothing, if it depends on the rank.
    pub(super) fn of_all(occurrences: &[Occurrence<'_>], rank: u32, counts_differ: bool) -> Types {
        let mut types = Types::of(occurrences, rank);
        types.more |= counts_differ || occurrences.iter().any(|o| o.varied.take());
        types
    }

    pub(super) fn get(&self, id: u32) -> Option<Option<u64>> {
        if self.more { Some(None) } else { self.sizes.get(&id).copied() }
    }

    fn add(&mut self, id: u32, size: u64) {
        let known = self.sizes.entry(id).or_insert(Some(size));
        *known = known.filter(|k| *k == size);
    }

    pub(super) fn of(occurrences: &[Occurrence<'_>], rank: u32) -> Types {
        /// Pairs of type and size that are read one by one before the calls are read instead.
        const MOST_PAIRS: u64 = 1 << 16;
        let mut types = Types::default();
        for occurrence in occurrences.iter().filter(|o| !o.layout.datatype_facts.is_empty()) {
            if let Some(call) = occurrence.inline_call(rank) {
                let mut made = Made::default();
                made.take_in(&call);
                made.types.into_iter().for_each(|(id, size)| types.add(id, size));
                continue;
            }
            for facts in &occurrence.layout.datatype_facts {
                let (Ok(codes), Ok(sizes)) =
                    (occurrence.lane(facts.code_lane), occurrence.lane(facts.size_lane))
                else {
                    continue;
                };
                let n = occurrence.times;
                let same = constant_of(&codes, n).is_some() && constant_of(&sizes, n).is_some();
                types.more |= !same && n > MOST_PAIRS;
                let pairs = usize::try_from(if same { n.min(1) } else { n.min(MOST_PAIRS) }).unwrap_or(0);
                for (code, size) in codes.iter().zip(sizes.iter()).take(pairs) {
                    // Odd codes are constants: the call returned a type that was there already.
                    let id = u64::try_from(code)
                        .ok()
                        .filter(|c| c % 2 == 0)
                        .and_then(|c| u32::try_from(c / 2).ok());
                    if let Some(id) = id {
                        types.add(id, u64::try_from(size).unwrap_or(0));
                    }
                }
            }
        }
        types
    }
}

/// How many ranks the communicators have that a rank makes, by id; `None` for an id that had several sizes.
#[derive(Debug, Default)]
pub(super) struct Comms {
    sizes: HashMap<u32, Option<u64>>,
    /// Some were made whose size only a reader of all calls knows.
    more: bool,
}

impl Comms {
    fn get(&self, id: u32) -> Option<u64> {
        if self.more { None } else { self.sizes.get(&id).copied().flatten() }
    }

    pub(super) fn of(occurrences: &[Occurrence<'_>]) -> Comms {
        let mut comms = Comms::default();
        for o in occurrences {
            for slot in &o.layout.slots {
                let Slot::NewComm(new) = slot else { continue };
                let (code, len) = new.size_lanes();
                let constant = |lane: u16| o.lane(lane).ok().and_then(|lane| constant_of(&lane, o.times));
                let id = |code: i64| u32::try_from(code / 2).ok().filter(|_| code >= 0 && code % 2 == 0);
                match (constant(code), len.and_then(constant)) {
                    // Odd codes are constants: no communicator was made here.
                    (Some(code), _) if code % 2 == 1 => {}
                    (Some(code), Some(len)) if id(code).is_some() => {
                        let size = u64::try_from(len).ok();
                        let known = comms.sizes.entry(id(code).unwrap_or(0)).or_insert(size);
                        *known = known.filter(|known| Some(*known) == size);
                    }
                    (Some(code), None) if id(code).is_some() => {
                        comms.sizes.insert(id(code).unwrap_or(0), None);
                    }
                    _ => comms.more = true,
                }
            }
        }
        comms
    }
}

pub(super) struct Context<'a> {
    pub(super) rank: u32,
    pub(super) world: u32,
    /// Of this rank's thread.
    pub(super) types: &'a Types,
    pub(super) comms: &'a Comms,
    /// Of types that other threads made.
    pub(super) elsewhere: &'a dyn Fn(u32) -> Option<u64>,
}

impl Context<'_> {
    fn datatype(&self, id: u32) -> Result<Option<u64>, NeedWalk> {
        match self.types.get(id) {
            Some(Some(size)) => Ok(Some(size)),
            Some(None) => Err(NeedWalk),
            None => Ok((self.elsewhere)(id)),
        }
    }
}

impl Sizes for Context<'_> {
    fn datatype(&self, id: u32) -> Option<u64> {
        Context::datatype(self, id).unwrap_or(None)
    }
    fn comm(&self, value: &Value) -> Option<CommSize> {
        if let Value::Comm(name) = value { named_comm(name, self.world) } else { None }
    }
}

/// What all occurrences of a symbol gave on one rank.
pub(super) fn of_symbol(
    o: &Occurrence<'_>,
    rule: &Payload,
    context: &Context<'_>,
) -> Result<Amount, NeedWalk> {
    if o.layout.outcome != Outcome::Success {
        return Ok(Amount::NOTHING);
    }
    if o.layout.inline.is_some() {
        let call = o.inline_call(context.rank).ok_or(NeedWalk)?;
        let amount = of_call(&call, rule, context);
        // Communicators that calls made are known only to a reader of all calls, and so are types that changed.
        return if amount.exact { Ok(amount.times(o.times)) } else { Err(NeedWalk) };
    }
    let is = |index: Option<usize>, name: &str| {
        let wanted = constant(name).map(|c| c.name);
        matches!(index.map(|i| &o.layout.slots[i]), Some(Slot::Fixed(Value::Name(have))) if Some(*have) == wanted)
    };
    if is(rule.peer, "MPI_PROC_NULL") || is(rule.op, "MPI_NO_OP") {
        return Ok(Amount::NOTHING);
    }
    let side = match rule.in_place {
        InPlace::Nothing { buffer } if is(Some(buffer), "MPI_IN_PLACE") => return Ok(Amount::NOTHING),
        InPlace::Unknown { buffer } if is(Some(buffer), "MPI_IN_PLACE") => return Ok(Amount::UNKNOWN),
        InPlace::Receive { buffer, side } if is(Some(buffer), "MPI_IN_PLACE") => side,
        _ => rule.send,
    };
    of_side(o, side, rule.comm, context)
}

fn of_side(
    o: &Occurrence<'_>,
    side: Side,
    comm: Option<usize>,
    context: &Context<'_>,
) -> Result<Amount, NeedWalk> {
    let (count, elements) = match side.count.map(|i| &o.layout.slots[i]) {
        None => (i128::from(o.times), o.times),
        Some(Slot::Number { lane }) => (o.lane(*lane)?.sum(o.times), o.times),
        Some(Slot::List { len: Some(len), lane, .. }) => {
            let elements = u64::try_from(o.lane(*len)?.sum(o.times)).map_err(|_| NeedWalk)?;
            (o.lane(*lane)?.sum(elements), elements)
        }
        Some(Slot::Absent | Slot::Fixed(_)) => return Ok(Amount::NOTHING),
        Some(_) => return Err(NeedWalk),
    };
    let count = u128::try_from(count).map_err(|_| NeedWalk)?;
    if count == 0 {
        return Ok(Amount::NOTHING);
    }
    let size = match &o.layout.slots[side.datatype] {
        Slot::Fixed(Value::Name(name)) => Some(named_type(name)),
        Slot::Object(_, id) => context.datatype(*id)?,
        Slot::Codes { lane, .. } => {
            // Counts and types go in pairs; unless the types are all one, only their order tells which.
            let code = constant_of(&*o.lane(*lane)?, elements).ok_or(NeedWalk)?;
            size_of_code(code, |id| context.datatype(id).unwrap_or(None))
        }
        Slot::Absent => Some(0),
        _ => return Err(NeedWalk),
    };
    let comm = || -> Result<CommSize, NeedWalk> {
        match comm.map(|i| &o.layout.slots[i]) {
            Some(Slot::Fixed(Value::Name(name))) => named_comm(name, context.world).ok_or(NeedWalk),
            Some(Slot::Object(_, id)) => {
                let local = context.comms.get(*id).ok_or(NeedWalk)?;
                Ok(CommSize { local, remote: None, out_degree: None })
            }
            _ => Err(NeedWalk),
        }
    };
    let times = match side.times {
        Times::Once => 1,
        Times::CommSize | Times::LocalSize => comm()?.local,
        Times::OutDegree => return Err(NeedWalk),
        Times::Param(i) => match &o.layout.slots[i] {
            Slot::Number { lane } => {
                let partitions = constant_of(&*o.lane(*lane)?, o.times).ok_or(NeedWalk)?;
                u64::try_from(partitions).map_err(|_| NeedWalk)?
            }
            _ => return Err(NeedWalk),
        },
    };
    Ok(match size {
        Some(size) => {
            let bytes = count.saturating_mul(u128::from(size)).saturating_mul(u128::from(times));
            Amount { bytes, exact: true }
        }
        None => Amount::UNKNOWN,
    })
}

/// The number that all of the first `n` are.
fn constant_of(stream: &Stream, n: u64) -> Option<i64> {
    stream.min_max(n).filter(|(min, max)| min == max).map(|(value, _)| value)
}
