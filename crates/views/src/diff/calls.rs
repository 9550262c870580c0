//! Decoded calls, one by one: what differs between two, and the first that do.

use std::borrow::Cow;

use refrain_encode::{Calls, Reader};
use refrain_model::{Address, Area, CType, Call, Dir, Kind, Param, Returns, Value};
use refrain_tracefile::Trace;

use super::faces::{is_place, is_request};
use super::settings::Settings;
use super::{First, Unread, Which};
use crate::error::Error;
use crate::meaning::addresses::Addresses;
use crate::value;

/// One thing that two calls of one function do not have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The argument, `result`, `call site`, or what is known of a new object.
    pub what: String,
    pub a: String,
    pub b: String,
    /// A rank that is told from the caller's on: others of the line have others.
    pub is_peer: bool,
}

/// What it takes to go through calls.
pub(super) struct Comparing<'t, 'r> {
    traces: (&'t Trace, &'t Trace),
    readers: &'r (Reader<'t>, Reader<'t>),
    settings: &'r Settings,
    progress: &'r mut dyn FnMut(u64),
    read: u64,
}

/// A call among those that count.
struct Counted {
    number: u64,
    call: Call,
    /// With places instead of the distances between them, if it has some.
    settled: Option<Call>,
    symbol: Option<u32>,
}

impl Counted {
    fn settled(&self) -> &Call {
        self.settled.as_ref().unwrap_or(&self.call)
    }
}

/// The calls of a thread that count.
struct Counting<'t, 'r> {
    which: Which,
    place: (u32, u32),
    settings: &'r Settings,
    calls: Calls<'t>,
    next: u64,
    /// Read to see whether it goes on with the one before; it does not.
    held: Option<Counted>,
    addresses: Addresses,
}

/// So many calls at a time without a word.
const QUIET: u64 = 4096;
/// Numbers of type `MPI_Aint` from here on are addresses: on this machine memory begins above, but for programs at fixed places.
const LOWEST_ADDRESS: i64 = 1 << 40;

impl<'t, 'r> Comparing<'t, 'r> {
    pub fn new(
        traces: (&'t Trace, &'t Trace),
        readers: &'r (Reader<'t>, Reader<'t>),
        settings: &'r Settings,
        progress: &'r mut dyn FnMut(u64),
    ) -> Comparing<'t, 'r> {
        Comparing { traces, readers, settings, progress, read: 0 }
    }

    pub fn read(&self) -> u64 {
        self.read
    }

    /// Some work that reads events was done.
    pub fn tick(&mut self) {
        self.read += QUIET;
        (self.progress)(self.read);
    }

    /// The first calls that differ from these numbers on; all before are equal.
    pub fn from(
        &mut self,
        (rank, thread): (u32, u32),
        (in_a, in_b): (u64, u64),
    ) -> Result<Option<First>, Unread> {
        let open = |which: Which, reader: &Reader<'t>, next| -> Result<Counting<'t, 'r>, Unread> {
            let calls = reader.calls_from(rank, thread, next);
            let calls = calls.map_err(|error| at(which, (rank, thread), next, error))?;
            Ok(Counting {
                which,
                place: (rank, thread),
                settings: self.settings,
                calls,
                next,
                held: None,
                addresses: Addresses::default(),
            })
        };
        let mut a = open(Which::A, &self.readers.0, in_a)?;
        let mut b = open(Which::B, &self.readers.1, in_b)?;
        loop {
            self.read += 1;
            if self.read.is_multiple_of(QUIET) {
                (self.progress)(self.read);
            }
            let (one, other) = (a.next()?, b.next()?);
            let changes = match (&one, &other) {
                (None, None) => return Ok(None),
                (Some(one), Some(other)) if self.is_equal(one, other) => continue,
                (Some(one), Some(other)) if one.call.function.id == other.call.function.id => {
                    self.changes(one, other)
                }
                _ => Vec::new(),
            };
            let name = |counted: &Option<Counted>| counted.as_ref().map(|counted| counted.call.function.name);
            let symbol = |counted: &Option<Counted>| counted.as_ref().and_then(|counted| counted.symbol);
            let number = |counted: &Option<Counted>, next| counted.as_ref().map_or(next, |one| one.number);
            return Ok(Some(First {
                thread,
                ranks: Default::default(),
                rank,
                number: (number(&one, a.next), number(&other, b.next)),
                function: (name(&one), name(&other)),
                symbol: (symbol(&one), symbol(&other)),
                changes,
            }));
        }
    }

    fn sites(&self, one: &Counted, other: &Counted) -> (u64, u64) {
        if self.settings.ignore.sites {
            return (0, 0);
        }
        let site = |trace: &Trace, counted: &Counted| {
            counted.symbol.and_then(|symbol| trace.bundle.symbols.get(symbol as usize)).map_or(0, |s| s.site)
        };
        (site(self.traces.0, one), site(self.traces.1, other))
    }

    fn is_equal(&self, one: &Counted, other: &Counted) -> bool {
        let sites = self.sites(one, other);
        // A replay has the distances of the program, which in its own memory lead to no place.
        sites.0 == sites.1
            && (self.are_same_calls(&one.call, &other.call)
                || self.are_same_calls(one.settled(), other.settled()))
    }

    fn are_same_calls(&self, a: &Call, b: &Call) -> bool {
        a.function.id == b.function.id
            && a.args.len() == b.args.len()
            && a.function
                .params
                .iter()
                .zip(a.args.iter().zip(&b.args))
                .all(|(p, (a, b))| self.is_same(p, a, b))
            && self.is_same_result(a, b)
            && self.are_same_facts(a, b)
    }

    /// Datatypes that are made of addresses begin at one.
    fn are_same_facts(&self, a: &Call, b: &Call) -> bool {
        let same = |a: &Value, b: &Value| a == b || self.settings.ignore.pointers && is_same_number(a, b);
        a.facts.len() == b.facts.len()
            && a.facts.iter().zip(&b.facts).all(|((x, a), (y, b))| x == y && same(a, b))
    }

    fn is_same_result(&self, a: &Call, b: &Call) -> bool {
        match a.function.returns {
            Returns::Clock => true,
            Returns::Aint if self.settings.ignore.pointers => is_same_number(&a.result, &b.result),
            _ => a.result == b.result,
        }
    }

    fn is_same(&self, p: &Param, a: &Value, b: &Value) -> bool {
        if self.settings.ignore.requests && is_request(p) {
            return true;
        }
        if !self.settings.ignore.pointers {
            return a == b;
        }
        let in_memory = |value: &Value, numbers_count: bool| match value {
            Value::Address(Address { area: Area::Number, .. }) => !numbers_count,
            value => matches!(value, Value::Address(_) | Value::Unset),
        };
        match is_place(p) {
            Some(numbers_count) => a == b || in_memory(a, numbers_count) && in_memory(b, numbers_count),
            None if p.kind == Kind::Function => a == b || matches!((a, b), (Value::Text(_), Value::Text(_))),
            None if p.ctype == CType::Aint => is_same_number(a, b),
            None => a == b,
        }
    }

    fn changes(&self, one: &Counted, other: &Counted) -> Vec<Change> {
        let (a, b) = (one.settled(), other.settled());
        let mut changes = Vec::new();
        for (p, (a, b)) in a.function.params.iter().zip(a.args.iter().zip(&b.args)) {
            if !self.is_same(p, a, b) {
                let same = |a: &Value, b: &Value| self.is_same(p, a, b);
                let is_peer = matches!(p.kind, Kind::Peer(_) | Kind::Status);
                changes.push(Change { is_peer, ..change(p.name.to_owned(), a, b, &same) });
            }
        }
        let plain = |a: &Value, b: &Value| a == b;
        if !self.is_same_result(a, b) {
            changes.push(change("result".to_owned(), &a.result, &b.result, &plain));
        }
        let mut names: Vec<&str> = a.facts.iter().chain(&b.facts).map(|(name, _)| *name).collect();
        names.dedup();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let fact = |call: &Call| {
                let found = call.facts.iter().find(|(fact, _)| *fact == name);
                found.map_or(Value::Unset, |(_, value)| value.clone())
            };
            let same = self.settings.ignore.pointers && is_same_number(&fact(a), &fact(b));
            if fact(a) != fact(b) && !same {
                changes.push(change(name.to_owned(), &fact(a), &fact(b), &plain));
            }
        }
        let sites = self.sites(one, other);
        if sites.0 != sites.1 {
            // The names of places are for who shows them.
            let (a, b) = (String::new(), String::new());
            changes.push(Change { what: SITE.to_owned(), a, b, is_peer: false });
        }
        changes
    }
}

/// What [`Change::what`] calls a difference of call stacks.
pub(super) const SITE: &str = "call site";

/// The innermost thing that differs: an element of an array, a field of a status.
fn change(what: String, a: &Value, b: &Value, same: &dyn Fn(&Value, &Value) -> bool) -> Change {
    match (a, b) {
        (Value::List(x), Value::List(y)) if x.len() == y.len() => {
            if let Some(at) = x.iter().zip(y).position(|(x, y)| !same(x, y)) {
                return change(format!("{what}[{at}]"), &x[at], &y[at], same);
            }
        }
        (Value::List(x), Value::List(y)) => {
            let said = |list: &[Value]| format!("{} elements", list.len());
            return Change { what, a: said(x), b: said(y), is_peer: false };
        }
        (Value::Status(x), Value::Status(y)) => {
            let int = |value: Option<i64>| value.map_or(Value::Unset, Value::Int);
            let bool = |value: Option<bool>| value.map_or(Value::Unset, Value::Bool);
            let fields = [
                ("source", Value::clone(&x.source), Value::clone(&y.source)),
                ("tag", Value::clone(&x.tag), Value::clone(&y.tag)),
                ("bytes", int(x.bytes), int(y.bytes)),
                ("cancelled", bool(x.cancelled), bool(y.cancelled)),
                ("error", int(x.error), int(y.error)),
            ];
            if let Some((name, a, b)) = fields.iter().find(|(_, a, b)| a != b) {
                return change(format!("{what}.{name}"), a, b, same);
            }
        }
        _ => {}
    }
    let text = |value: &Value| {
        let mut out = String::new();
        value::text(value, &mut out);
        out
    };
    Change { what, a: text(a), b: text(b), is_peer: false }
}

/// Numbers of type `MPI_Aint`, of which addresses are all the same.
fn is_same_number(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b || *a >= LOWEST_ADDRESS && *b >= LOWEST_ADDRESS,
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_number(a, b))
        }
        (Value::Address(_), Value::Address(_)) => true,
        (Value::InOut(a, x), Value::InOut(b, y)) => is_same_number(a, b) && is_same_number(x, y),
        _ => a == b,
    }
}

fn at(which: Which, (rank, thread): (u32, u32), position: u64, error: refrain_encode::Error) -> Unread {
    Unread { which, error: Error::Call { rank, thread, position, error } }
}

impl Counting<'_, '_> {
    fn next(&mut self) -> Result<Option<Counted>, Unread> {
        if !self.settings.ignore.polls {
            return self.next_counted();
        }
        let Some(mut first) = (match self.held.take() {
            Some(held) => Some(held),
            None => self.next_counted()?,
        }) else {
            return Ok(None);
        };
        if completed(&first.call).is_none() {
            return Ok(Some(first));
        }
        first.call = sorted(first.call);
        loop {
            let Some(next) = self.next_counted()? else { return Ok(Some(first)) };
            match joined(&first.call, &next.call) {
                Some(call) => first.call = call,
                None => {
                    self.held = Some(next);
                    return Ok(Some(first));
                }
            }
        }
    }

    /// Without those that do not count by themselves.
    fn next_counted(&mut self) -> Result<Option<Counted>, Unread> {
        loop {
            let Some(call) = self.calls.next() else { return Ok(None) };
            let call = call.map_err(|error| at(self.which, self.place, self.next, error))?;
            let pointers = self.settings.ignore.pointers;
            let settled = if pointers { self.addresses.settled(&call) } else { None };
            let number = self.next;
            self.next += 1;
            let left_out = self.settings.functions.as_ref().is_some_and(|f| !f.contains(&call.function.id))
                || self.settings.ignore.polls && found_nothing(&call);
            if !left_out {
                return Ok(Some(Counted { number, call, settled, symbol: self.calls.symbol() }));
            }
        }
    }
}

/// A poll that came back empty-handed.
fn found_nothing(call: &Call) -> bool {
    let f = call.function;
    if !f.poll || call.result != Value::Int(0) {
        return false;
    }
    let outputs = || f.params.iter().zip(&call.args).filter(|(p, _)| p.dir == Dir::Out);
    if let Some((_, flag)) = outputs().find(|(p, _)| p.kind == Kind::Logical) {
        return *flag == Value::Bool(false);
    }
    outputs().any(|(p, value)| p.kind == Kind::Undefinable && p.len.is_empty() && *value == Value::Int(0))
}

/// Of a call that completes some of its requests: the requests, which of them it completed, and their statuses if it has
/// them. These are its parameters, whatever their names: an array of requests, a count that may be undefined, as many
/// indices.
fn completed(call: &Call) -> Option<(&[Value], &[Value], &Value)> {
    let f = call.function;
    let [_, requests, done, indices, statuses] = f.params else { return None };
    let is = matches!(requests.kind, Kind::Handle(refrain_model::Class::Request))
        && requests.dir == Dir::InOut
        && done.kind == Kind::Undefinable
        && done.dir == Dir::Out
        && !indices.len.is_empty()
        && statuses.kind == Kind::Status;
    match &call.args[..] {
        [_, Value::List(requests), Value::Int(_), Value::List(indices), statuses] if is => {
            Some((requests, indices, statuses))
        }
        _ => None,
    }
}

/// With what it completed in the order of the requests.
fn sorted(mut call: Call) -> Call {
    let Some((_, indices, statuses)) = completed(&call) else { return call };
    let statuses: Cow<'_, [Value]> = match statuses {
        Value::List(statuses) => Cow::Borrowed(statuses),
        _ => Cow::Owned(Vec::new()),
    };
    let index = |value: &Value| if let Value::Int(index) = value { *index } else { i64::MAX };
    let mut order: Vec<usize> = (0..indices.len()).collect();
    order.sort_by_key(|&at| index(&indices[at]));
    let by_index = order.iter().map(|&at| indices[at].clone()).collect();
    let of_index = order.iter().filter_map(|&at| statuses.get(at).cloned()).collect();
    let has_statuses = !statuses.is_empty();
    call.args[2] = Value::Int(order.len() as i64);
    call.args[3] = Value::List(by_index);
    if has_statuses {
        call.args[4] = Value::List(of_index);
    }
    call
}

/// One call of two, if the second goes on with the requests that the first left.
fn joined(first: &Call, next: &Call) -> Option<Call> {
    if first.function.id != next.function.id || first.result != next.result {
        return None;
    }
    let ((before, done, statuses), (after, more, others)) = (completed(first)?, completed(next)?);
    let is_done = |at: usize| done.contains(&Value::Int(at as i64));
    let goes_on = before.len() == after.len()
        && !more.iter().any(|index| done.contains(index))
        && before.iter().zip(after).enumerate().all(|(at, (a, b))| a == b || is_done(at));
    if !goes_on {
        return None;
    }
    let mut call = first.clone();
    call.args[3] = Value::List(done.iter().chain(more).cloned().collect());
    if let (Value::List(statuses), Value::List(others)) = (statuses, others) {
        call.args[4] = Value::List(statuses.iter().chain(others).cloned().collect());
    }
    Some(sorted(call))
}
