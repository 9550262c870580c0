//! Who sends how much to whom, from the folded form.
//!
//! Messages between two ranks only; collective and one-sided calls are not here. A rank's messages are told by how far away
//! the receiver is: what the ranks of a kind have in common is looked at once. Costs time in the size of the file times the
//! ranks. Where messages go through communicators that the program made, have a datatype whose size changes, or are sent by
//! starting a persistent request, calls are read one by one, up to a number.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use refrain_encode::{Error as Unread, Outcome, Reader, Slot};
use refrain_model::{Call, Class, Kind, Value, constant};
use refrain_tracefile::Trace;

use super::folded::{self, Comms, Context, Occurrence, Types};
use super::given::{Given, Payloads};
use super::payload::{Payload, payload};
use super::sizes::named_type;
use super::walked::{Sizes, of_call};
use crate::error::Error;
use crate::meaning::comms::Comms as Communicators;

/// Numbers of lanes that are looked at one by one where they change. When these are used up, so many of a lane are, and the
/// others taken to be like these.
const MOST_LOOKED_AT: u64 = 1 << 24;
const LOOKED_AT: u64 = 1 << 14;
/// Calls that are read where the folded form does not tell.
const MOST_READ: u64 = 1 << 22;
/// Pairs of distance and rank that are held.
const MOST_PAIRS: usize = 1 << 21;

/// Messages, and the bytes in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    pub messages: u64,
    pub bytes: u128,
}

impl Sent {
    fn add(&mut self, other: Sent) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// What each of some ranks in a row sends to the rank that is so far away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub offset: i64,
    pub first: u32,
    pub last: u32,
    /// By each of them.
    pub sent: Sent,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matrix {
    pub ranks: u32,
    /// By distance, then by rank.
    pub runs: Vec<Run>,
    /// Messages by the bits of their length in bytes: those of 0 bytes, of 1, of 2 and 3, of 4 to 7, and so on.
    pub sizes: BTreeMap<u32, Sent>,
    /// Some numbers were taken to be like others, or the size of a datatype is not known.
    pub about: bool,
    /// Messages that are not in it: too many calls would have to be read, there are too many pairs, or the receiver is not a
    /// rank of this run. Where calls of `MPI_Startall` would have to be read, each is one.
    pub left_out: u64,
}

/// What one rank sends: by distance, and by size.
#[derive(Debug, Clone, Default)]
struct Row {
    to: BTreeMap<i64, Sent>,
    sizes: BTreeMap<u32, Sent>,
    about: bool,
    left_out: u64,
}

impl Row {
    fn send(&mut self, offset: i64, bytes: u128, messages: u64) {
        let sent = Sent { messages, bytes: bytes.saturating_mul(u128::from(messages)) };
        self.to.entry(offset).or_default().add(sent);
        self.sizes.entry(u128::BITS - bytes.leading_zeros()).or_default().add(sent);
    }
}

pub fn matrix(trace: &Trace) -> Result<Matrix, Error> {
    let bundle = &trace.bundle;
    let world = trace.meta.ranks;
    let layouts = super::layouts(bundle)?;
    let cohorts = bundle.of_threads();
    let mut of_rank: Vec<Vec<usize>> = vec![Vec::new(); world as usize];
    for (at, cohort) in cohorts.iter().enumerate() {
        for rank in cohort.ranks.iter() {
            if let Some(all) = of_rank.get_mut(rank as usize) {
                all.push(at);
            }
        }
    }
    let reader = Reader::new(bundle);
    let payloads = Rc::new(Payloads::new(trace)?);
    // Only then a started request may be a message.
    let persistent = layouts.iter().any(|layout| {
        layout.function.persistent && payload(layout.function).is_some_and(|rule| sends(&rule).is_some())
    });
    let mut communicators: Option<Communicators> = None;
    let mut matrix = Matrix { ranks: world, ..Matrix::default() };
    let mut shared: HashMap<usize, Row> = HashMap::new();
    let mut lines: BTreeMap<i64, Vec<Run>> = BTreeMap::new();
    let (mut room, mut numbers, mut pairs) = (MOST_READ, MOST_LOOKED_AT, 0);
    for (rank, all) in (0u32..).zip(&of_rank) {
        let mut sum: BTreeMap<i64, Sent> = BTreeMap::new();
        for &at in all {
            let cohort = &cohorts[at];
            let known = shared.get(&at).cloned();
            let row = match known {
                Some(row) => row,
                None => {
                    let counts = bundle.counts(cohort, rank);
                    let occurrences = folded::occurrences(bundle, cohort, rank, &counts, &layouts);
                    let (types, comms) = (Types::of(&occurrences, rank), Comms::of(&occurrences));
                    let given = payloads.of_thread(cohort.thread);
                    let elsewhere = |id: u32| given.datatype(id);
                    let context =
                        Context { rank, world, types: &types, comms: &comms, elsewhere: &elsewhere };
                    let mut row = Row::default();
                    let mut missing = 0u64;
                    for occurrence in &occurrences {
                        let started = persistent
                            && matches!(occurrence.layout.function.name, "MPI_Start" | "MPI_Startall");
                        missing = missing.saturating_add(match started {
                            true => occurrence.times,
                            false => of_symbol(occurrence, &context, &mut numbers, &mut row),
                        });
                    }
                    let varied = bundle.counts_differ(cohort) || occurrences.iter().any(|o| o.varied.get());
                    if missing > 0 {
                        let calls = refrain_encode::calls_of(bundle, cohort, rank);
                        match room.checked_sub(calls) {
                            Some(left) => {
                                room = left;
                                let thread = cohort.thread;
                                let failed =
                                    |(position, error)| Error::Call { rank, thread, position, error };
                                let calls = reader.calls(rank, thread).map_err(|error| failed((0, error)))?;
                                let present = || of_rank.iter().map(|all| !all.is_empty()).collect();
                                let comms =
                                    communicators.get_or_insert_with(|| Communicators::new(present()));
                                row = read(calls, rank, given, comms).map_err(failed)?;
                            }
                            None => matrix.left_out = matrix.left_out.saturating_add(missing),
                        }
                    } else if !varied {
                        shared.insert(at, row.clone());
                    }
                    row
                }
            };
            matrix.about |= row.about;
            matrix.left_out = matrix.left_out.saturating_add(row.left_out);
            for (bits, sent) in row.sizes {
                matrix.sizes.entry(bits).or_default().add(sent);
            }
            for (offset, sent) in row.to {
                sum.entry(offset).or_default().add(sent);
            }
        }
        for (offset, sent) in sum {
            if !(0..i64::from(world)).contains(&offset.saturating_add(i64::from(rank))) {
                matrix.left_out = matrix.left_out.saturating_add(sent.messages);
                continue;
            }
            let line = lines.entry(offset).or_default();
            match line.last_mut() {
                Some(run) if run.last + 1 == rank && run.sent == sent => run.last = rank,
                _ if pairs == MOST_PAIRS => {
                    matrix.left_out = matrix.left_out.saturating_add(sent.messages);
                }
                _ => {
                    pairs += 1;
                    line.push(Run { offset, first: rank, last: rank, sent });
                }
            }
        }
    }
    matrix.runs = lines.into_values().flatten().collect();
    Ok(matrix)
}

/// Whether a function sends messages to one peer on a communicator.
fn sends(rule: &Payload) -> Option<(usize, usize)> {
    Some((rule.peer?, rule.comm?))
}

/// Adds what the calls of a symbol send. Says how many messages the folded form does not tell.
fn of_symbol(o: &Occurrence<'_>, context: &Context<'_>, numbers: &mut u64, row: &mut Row) -> u64 {
    let Some(rule) = payload(o.layout.function) else { return 0 };
    let Some((peer, comm)) = sends(&rule) else { return 0 };
    // A persistent request is a message whenever it is started.
    if o.layout.outcome != Outcome::Success || o.layout.function.persistent {
        return 0;
    }
    if o.layout.inline.is_some() {
        let Some(call) = o.inline_call(context.rank) else { return o.times };
        if call.args.get(comm) != Some(&Value::Comm("world".into())) {
            return o.times;
        }
        if let Some(Value::Int(to)) = call.args.get(peer) {
            let amount = of_call(&call, &rule, context);
            if !amount.exact {
                return o.times;
            }
            row.send(to.saturating_sub(i64::from(context.rank)), amount.bytes, o.times);
        }
        return 0;
    }
    match &o.layout.slots[comm] {
        Slot::Fixed(Value::Name("MPI_COMM_WORLD")) => {}
        Slot::Absent => return 0,
        _ => return o.times,
    }
    let null = constant("MPI_PROC_NULL").map(|c| c.name);
    let peers = match &o.layout.slots[peer] {
        Slot::Number { lane } => *lane,
        Slot::Fixed(Value::Name(name)) if Some(*name) == null => return 0,
        Slot::Absent => return 0,
        _ => return o.times,
    };
    let size = match &o.layout.slots[rule.send.datatype] {
        Slot::Fixed(Value::Name(name)) => Some(named_type(name)),
        Slot::Object(_, id) => Sizes::datatype(context, *id),
        Slot::Absent => Some(0),
        _ => None,
    };
    let Some(size) = size.map(u128::from) else { return o.times };
    let Some(peers) = o.stream(peers) else { return o.times };
    let counts = match rule.send.count.map(|at| &o.layout.slots[at]) {
        Some(Slot::Number { lane }) => match o.stream(*lane) {
            Some(counts) => counts,
            None => return o.times,
        },
        _ => return o.times,
    };
    let n = o.times;
    let same = |bounds: Option<(i64, i64)>| bounds.is_some_and(|(low, high)| low == high);
    let looked = match same(peers.min_max(n)) && same(counts.min_max(n)) {
        true => 1,
        false if n <= *numbers => n,
        false => n.min(LOOKED_AT),
    };
    *numbers = numbers.saturating_sub(looked);
    if looked == 0 {
        return 0;
    }
    row.about |= looked > 1 && looked < n;
    let mut seen: BTreeMap<(i64, i64), u64> = BTreeMap::new();
    let pairs = peers.iter().zip(counts.iter());
    pairs
        .take(usize::try_from(looked).unwrap_or(usize::MAX))
        .for_each(|pair| *seen.entry(pair).or_default() += 1);
    for ((offset, count), times) in seen {
        let bytes = u128::try_from(count).unwrap_or(0).saturating_mul(size);
        let messages = u128::from(times) * u128::from(n) / u128::from(looked);
        row.send(offset, bytes, u64::try_from(messages).unwrap_or(u64::MAX));
    }
    0
}

/// The same from the calls themselves. An error comes with the position of the call.
fn read(
    calls: impl Iterator<Item = Result<Call, Unread>>,
    rank: u32,
    mut given: Given,
    communicators: &mut Communicators,
) -> Result<Row, (u64, Unread)> {
    let mut row = Row::default();
    // Persistent requests that were made here: whom a start sends how much, if it sends at all.
    let mut persistent: HashMap<u32, Option<Message>> = HashMap::new();
    for (position, call) in (0u64..).zip(calls) {
        let call = call.map_err(|error| (position, error))?;
        given.see(&call);
        communicators.learn(rank, &call);
        if call.result != Value::Int(0) {
            continue;
        }
        if matches!(call.function.name, "MPI_Start" | "MPI_Startall") {
            for id in requests(&call) {
                match persistent.get(&id) {
                    Some(Some(message)) => message.send(rank, &mut row),
                    Some(None) => {}
                    // Another thread made it; it may be a receive.
                    None => row.about = true,
                }
            }
            continue;
        }
        let message = Message::of(&call, rank, communicators, &given);
        if call.function.persistent {
            persistent.extend(requests(&call).map(|id| (id, message)));
        } else if let Some(message) = message {
            message.send(rank, &mut row);
        }
    }
    Ok(row)
}

/// What a call sends to one rank.
#[derive(Debug, Clone, Copy)]
struct Message {
    /// Nothing if the receiver is not a rank of the world, or not known.
    to: Option<u32>,
    bytes: u128,
    exact: bool,
}

impl Message {
    fn of(call: &Call, rank: u32, communicators: &Communicators, given: &Given) -> Option<Message> {
        let rule = payload(call.function)?;
        let (peer, comm) = sends(&rule)?;
        let (Value::Int(to), comm @ Value::Comm(_)) = (call.args.get(peer)?, call.args.get(comm)?) else {
            return None;
        };
        let to = communicators.get(rank, comm).and_then(|used| used.comm.peer(*to));
        let amount = of_call(call, &rule, given);
        Some(Message { to, bytes: amount.bytes, exact: amount.exact })
    }

    fn send(&self, rank: u32, row: &mut Row) {
        match self.to {
            Some(to) => {
                row.about |= !self.exact;
                row.send(i64::from(to) - i64::from(rank), self.bytes, 1);
            }
            None => row.left_out += 1,
        }
    }
}

/// The requests of a call, by id.
fn requests(call: &Call) -> impl Iterator<Item = u32> {
    fn id(value: &Value) -> Option<u32> {
        match value {
            Value::Object(Class::Request, id) => Some(*id),
            Value::InOut(before, _) => id(before),
            _ => None,
        }
    }
    let params = call.function.params.iter().zip(&call.args);
    let of = params.filter(|(param, _)| param.kind == Kind::Handle(Class::Request));
    of.flat_map(|(_, value)| match value {
        Value::List(all) => all.iter().filter_map(id).collect::<Vec<u32>>(),
        one => id(one).into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use refrain_model::function;

    use super::*;
    use crate::stats::stats;

    fn trace(bytes: &[u8]) -> Trace {
        refrain_tracefile::read(bytes).unwrap()
    }

    fn total(matrix: &Matrix) -> Sent {
        let mut all = Sent::default();
        for run in &matrix.runs {
            let ranks = u64::from(run.last - run.first + 1);
            all.add(Sent { messages: run.sent.messages * ranks, bytes: run.sent.bytes * u128::from(ranks) });
        }
        all
    }

    /// Ids of datatypes come back with other sizes: only the calls tell.
    #[test]
    fn derived_types_count_with_their_size() {
        let trace = trace(include_bytes!("../../tests/seeds/types.rfn"));
        let matrix = matrix(&trace).unwrap();
        let stats = stats(&trace).unwrap();
        let row = stats.functions.iter().find(|row| row.name == "MPI_Sendrecv").unwrap();
        assert_eq!(total(&matrix), Sent { messages: 26, bytes: row.payload.unwrap().bytes });
        assert_eq!((total(&matrix).bytes, matrix.about, matrix.left_out), (952, false, 0));
    }

    /// A call with these arguments by name.
    fn call(name: &str, args: &[(&str, Value)]) -> Call {
        let function = function(name).unwrap();
        let of = |name: &str| args.iter().find(|(n, _)| *n == name).map_or(Value::Unset, |(_, v)| v.clone());
        let args = function.params.iter().map(|param| of(param.name)).collect();
        Call { function, args, result: Value::Int(0), facts: Vec::new() }
    }

    fn message(name: &str, dest: i64, comm: &str, request: u32) -> Call {
        let request = Value::Object(Class::Request, request);
        let comm = Value::Comm(comm.into());
        let datatype = Value::Name("MPI_INT");
        let count = Value::Int(10);
        let peer = if name.contains("ecv") { "source" } else { "dest" };
        let args = [("count", count), ("datatype", datatype), (peer, Value::Int(dest)), ("comm", comm)];
        call(name, &[&args[..], &[("request", request)]].concat())
    }

    fn three() -> Communicators {
        Communicators::new(vec![true; 3])
    }

    fn row(calls: Vec<Call>) -> Row {
        let payloads = Payloads::new(&trace(include_bytes!("../../tests/seeds/ring.rfn"))).unwrap();
        read(calls.into_iter().map(Ok), 1, Rc::new(payloads).of_thread(0), &mut three()).unwrap()
    }

    #[test]
    fn a_persistent_request_counts_when_it_is_started() {
        let request = |id| Value::Object(Class::Request, id);
        let start = || call("MPI_Start", &[("request", request(0))]);
        let both = Value::List(vec![request(0), request(1), request(2)]);
        let mut calls = vec![
            message("MPI_Send_init", 2, "world", 0),
            message("MPI_Recv_init", 2, "world", 1),
            message("MPI_Ssend_init", 0, "world", 2),
        ];
        assert_eq!(row(calls.clone()).to, BTreeMap::new());
        calls.extend([start(), start(), call("MPI_Startall", &[("array_of_requests", both)])]);
        let made = row(calls);
        let expected = [(-1, Sent { messages: 1, bytes: 40 }), (1, Sent { messages: 3, bytes: 120 })];
        assert_eq!(made.to, expected.into());
        assert!(!made.about && made.left_out == 0);
        assert!(row(vec![start()]).about, "nobody saw it being made");
    }

    #[test]
    fn what_goes_to_other_worlds_is_left_out() {
        let mut spawn = call("MPI_Comm_spawn", &[("intercomm", Value::Comm("process.0".into()))]);
        let list = |n: i64| Value::List((0..n).map(Value::Int).collect());
        spawn.facts = vec![("group", list(2)), ("remote_group", list(2))];
        let made =
            row(vec![spawn, message("MPI_Send", 0, "process.0", 0), message("MPI_Send", 0, "self", 0)]);
        assert_eq!(made.to, [(0, Sent { messages: 1, bytes: 40 })].into());
        assert_eq!(made.left_out, 1);
    }

    #[test]
    fn a_call_that_cannot_be_read_is_an_error() {
        let payloads = Payloads::new(&trace(include_bytes!("../../tests/seeds/ring.rfn"))).unwrap();
        let calls = vec![Ok(message("MPI_Send", 0, "world", 0)), Err(Unread::UnknownFunction { id: 9999 })];
        let made = read(calls.into_iter(), 1, Rc::new(payloads).of_thread(0), &mut three());
        assert_eq!(made.err().map(|(position, _)| position), Some(1));
    }
}
