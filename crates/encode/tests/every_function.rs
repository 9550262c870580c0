//! Every function of the call table, with made-up arguments: what is read is what was called. What that is this file says by
//! itself, from the call table and the memory of the call, without asking the encoder.

use crate::common;

use std::collections::HashMap;

use common::generated::*;
use common::*;
use refrain_encode::Memory;
use refrain_model::{
    Address, Area, Call, Class, Cond, Dir, Effect, Function, Kind, Len, Param, Returns, Status, Value,
    constants_of, functions,
};

/// What a call should be read as.
#[derive(Debug, Clone, PartialEq)]
enum Want {
    Is(Value),
    /// An argument that a condition on an output rules out: it may still be told that the program passed nothing.
    Unwritten,
    Object(Class, u64),
    Made(Class, u64),
    List(Vec<Want>),
    InOut(Box<Want>, Box<Want>),
}

fn name(name: &'static str) -> Want {
    Want::Is(Value::Name(name))
}

/// A call whose every side is known.
struct Seen<'a> {
    f: &'static Function,
    host: &'a Fake,
    args: &'a [usize],
    /// What lay behind each argument before the call.
    earlier: &'a [Vec<u64>],
    result: i64,
}

impl Seen<'_> {
    fn failed(&self) -> bool {
        self.f.returns == Returns::Code && self.result != 0 && self.result != 17
    }

    /// A number of parameter `i`, of its array element `k` if it has some.
    fn at(&self, i: usize, k: usize, pointer: usize) -> i64 {
        let wide = self.f.params[i].ctype.is_wide();
        if wide { self.host.wide_at(pointer, k) } else { self.host.int_at(pointer, k) }
    }

    fn before(&self, i: usize) -> usize {
        self.earlier[i].as_ptr() as usize
    }

    fn scalar(&self, j: u8) -> i64 {
        let (j, p) = (usize::from(j), &self.f.params[usize::from(j)]);
        match self.args[j] {
            word if p.dir == Dir::In && p.ctype.is_wide() => word as i64,
            word if p.dir == Dir::In => i64::from(word as u32 as i32),
            0 => 0,
            pointer => self.at(j, 0, pointer),
        }
    }

    /// The caller's rank in a communicator and the size of it.
    fn group(&self, j: u8) -> (i64, i64) {
        let comm = self.host.handle(Class::Comm, self.args[usize::from(j)]);
        let info = self.host.comms.get(&comm).cloned().unwrap_or_default();
        (info.rank.into(), info.size.into())
    }

    fn holds(&self, condition: Cond) -> bool {
        match condition {
            Cond::AtRoot(j) => match self.f.params[usize::from(j)].kind {
                Kind::Root(comm) => self.scalar(j) == self.group(comm).0,
                _ => false,
            },
            // There are no inter-communicators here.
            Cond::AtLeaf(_) => true,
            Cond::NotNull(j) => self.scalar(j) != i64::from(PROC_NULL as i32),
            Cond::NotInPlace(j) => self.args[usize::from(j)] != IN_PLACE,
            Cond::Flag(j) => self.scalar(j) != 0,
            Cond::Defined(j) => self.scalar(j) != i64::from(UNDEFINED),
        }
    }

    fn length(&self, p: &Param) -> usize {
        let of = |rule: &Len| match *rule {
            Len::Param(j)
                if self.f.params[usize::from(j)].dir == Dir::InOut && self.args[usize::from(j)] != 0 =>
            {
                self.scalar(j).min(self.at(j.into(), 0, self.before(j.into())))
            }
            Len::Param(j) => self.scalar(j),
            Len::Triple(j) => 3 * self.scalar(j),
            Len::Fixed(n) => n.into(),
            Len::Size(j) | Len::LocalSize(j) => self.group(j).1,
            Len::InDegree(_) => self.host.topology.indegree as i64,
            Len::OutDegree(_) => self.host.topology.outdegree as i64,
            Len::CartDims(_) => self.host.topology.dims as i64,
            Len::Sum(j) | Len::Last(j) => {
                let (pointer, n) = (self.args[usize::from(j)], self.length(&self.f.params[usize::from(j)]));
                let n = if pointer == 0 { 0 } else { n };
                let element = |k| self.at(j.into(), k, pointer);
                let sum = matches!(rule, Len::Sum(_));
                if sum { (0..n).map(element).sum() } else { n.checked_sub(1).map_or(0, element) }
            }
            Len::Asked(..) | Len::Neighbours(..) => 2,
        };
        p.len.iter().map(|rule| usize::try_from(of(rule)).unwrap_or(0)).min().unwrap_or(1)
    }

    fn wants(&self) -> Vec<Want> {
        (0..self.f.params.len()).map(|i| self.want(i)).collect()
    }

    fn want(&self, i: usize) -> Want {
        let p = &self.f.params[i];
        let output = p.dir == Dir::Out && p.kind != Kind::Buffer;
        if p.kind == Kind::Skip || (self.failed() && output) {
            return Want::Is(Value::Unset);
        }
        let by_output = |c: &Cond| matches!(c, Cond::Flag(_) | Cond::Defined(_));
        if !p.when.iter().filter(|c| !by_output(c)).all(|&c| self.holds(c)) {
            return Want::Is(Value::Unset);
        }
        if !p.when.iter().filter(|c| by_output(c)).all(|&c| self.holds(c)) {
            return Want::Unwritten;
        }
        // Lengths that stand in arrays are not believed after a failure.
        let in_arrays = p.len.iter().any(|rule| matches!(rule, Len::Sum(_) | Len::Last(_)));
        let named = self.args[i] == 0 || [3, 4].contains(&self.args[i]);
        if self.failed() && in_arrays && p.dir != Dir::Out && !named {
            return Want::Is(Value::Unset);
        }
        match p.kind {
            Kind::Handle(class) => self.handle(i, class),
            Kind::Status => self.statuses(i),
            Kind::Buffer if p.effect == Effect::Free && self.args[i] == 0 => name("NULL"),
            Kind::Buffer => self.buffer(self.args[i]),
            Kind::Value => self.value(self.args[i]),
            Kind::OutPointer | Kind::OutAttribute if self.args[i] == 0 => name("NULL"),
            Kind::OutPointer => match self.host.pointer_at(self.args[i], 0) {
                0 => name("NULL"),
                pointer => self.buffer(pointer),
            },
            Kind::OutAttribute => self.value(self.host.pointer_at(self.args[i], 0)),
            Kind::String => self.string(i),
            Kind::Strings | Kind::StringsOfStrings | Kind::ArgVector => self.strings(i),
            Kind::Function if self.args[i] == 0 => name("NULL"),
            Kind::Function => Want::Is(Value::Text("app+0x10".into())),
            _ => self.numbers(i),
        }
    }

    fn numbers(&self, i: usize) -> Want {
        let (p, pointer) = (&self.f.params[i], self.args[i]);
        let one = |value| Want::Is(number(p.kind, value));
        if p.len.is_empty() && p.dir == Dir::In {
            return one(self.scalar(i as u8));
        }
        match pointer {
            0 => return name("NULL"),
            3 if !p.len.is_empty() => return name("MPI_UNWEIGHTED"),
            4 if !p.len.is_empty() => return name("MPI_WEIGHTS_EMPTY"),
            _ => {}
        }
        let read = |pointer: usize| match p.len.is_empty() {
            true => one(self.at(i, 0, pointer)),
            false => Want::List((0..self.length(p)).map(|k| one(self.at(i, k, pointer))).collect()),
        };
        match p.dir {
            Dir::InOut if p.kind == Kind::ArgCount => read(pointer),
            Dir::InOut if self.failed() => read(self.before(i)),
            Dir::InOut => Want::InOut(read(self.before(i)).into(), read(pointer).into()),
            _ => read(pointer),
        }
    }

    fn handle(&self, i: usize, class: Class) -> Want {
        let (p, word) = (&self.f.params[i], self.args[i]);
        let scalar = p.len.is_empty();
        if scalar && p.dir == Dir::In {
            return Want::Object(class, self.host.handle(class, word));
        }
        let in_lane = matches!(class, Class::Request | Class::Message);
        match word {
            0 if scalar && p.dir == Dir::InOut && !in_lane => return Want::Is(Value::Unset),
            0 => return name("NULL"),
            _ => {}
        }
        let pointer = if p.dir == Dir::InOut { self.before(i) } else { word };
        let one = |k| {
            let handle = self.host.handle_at(class, pointer, k);
            let made = p.dir == Dir::Out && p.effect != Effect::Alias;
            if made { Want::Made(class, handle) } else { Want::Object(class, handle) }
        };
        if scalar { one(0) } else { Want::List((0..self.length(p)).map(one).collect()) }
    }

    fn buffer(&self, pointer: usize) -> Want {
        match pointer {
            0 => name("MPI_BOTTOM"),
            IN_PLACE => name("MPI_IN_PLACE"),
            pointer => self.place(pointer),
        }
    }

    fn value(&self, pointer: usize) -> Want {
        if pointer == 0 { name("NULL") } else { self.place(pointer) }
    }

    fn place(&self, pointer: usize) -> Want {
        let segment = (pointer >> 12) as u32 & 0xff;
        Want::Is(Value::Address(Address { area: Area::Heap, device: 0, segment, offset: 8 }))
    }

    fn text(&self, pointer: usize, most: usize) -> Value {
        let mut text = Vec::new();
        self.host.text_at(pointer, most, &mut text);
        Value::Text(String::from_utf8(text).unwrap())
    }

    fn string(&self, i: usize) -> Want {
        let p = &self.f.params[i];
        let most = if p.dir == Dir::In || p.len.is_empty() { usize::MAX } else { self.length(p) };
        if self.args[i] == 0 { name("NULL") } else { Want::Is(self.text(self.args[i], most)) }
    }

    fn strings(&self, i: usize) -> Want {
        let (p, mut pointer) = (&self.f.params[i], self.args[i]);
        match p.kind {
            Kind::Strings if pointer == 0 => return name("MPI_ARGV_NULL"),
            Kind::StringsOfStrings if pointer == 0 => return name("MPI_ARGVS_NULL"),
            Kind::ArgVector if pointer != 0 => pointer = self.host.pointer_at(pointer, 0),
            _ => {}
        }
        if pointer == 0 {
            return name("NULL");
        }
        let most = match self.f.params.iter().position(|p| p.kind == Kind::ArgCount) {
            Some(j) => usize::try_from(self.scalar(j as u8)).unwrap_or(0),
            None if p.len.is_empty() => usize::MAX,
            None => self.length(p),
        };
        let list = |pointer: usize, most: usize| {
            let at = |k| self.host.pointer_at(pointer, k);
            let texts = (0..most).map(at).take_while(|&text| text != 0);
            Value::List(texts.map(|text| self.text(text, usize::MAX)).collect())
        };
        Want::Is(match p.kind {
            Kind::StringsOfStrings => {
                let lists = (0..most).map(|k| list(self.host.pointer_at(pointer, k), usize::MAX));
                Value::List(lists.collect())
            }
            _ => list(pointer, most),
        })
    }

    fn statuses(&self, i: usize) -> Want {
        let (p, pointer) = (&self.f.params[i], self.args[i]);
        match pointer {
            0 => return name("NULL"),
            STATUS_IGNORE if p.len.is_empty() => return name("MPI_STATUS_IGNORE"),
            STATUS_IGNORE => return name("MPI_STATUSES_IGNORE"),
            _ => {}
        }
        let one = |k| Want::Is(self.status(i, k));
        if p.len.is_empty() { one(0) } else { Want::List((0..self.length(p)).map(one).collect()) }
    }

    /// What MPI defines of the k-th status. Nobody saw any request of these calls being made.
    fn status(&self, i: usize, k: usize) -> Value {
        let (f, p) = (self.f, &self.f.params[i]);
        let raw = self.host.status_at(self.args[i], k);
        let has = |kind: Kind| f.params.iter().any(|p| p.kind == kind);
        let requests =
            f.params.iter().position(|p| p.kind == Kind::Handle(Class::Request) && p.dir != Dir::Out);
        let (mut peer, mut bytes, mut cancelled) = match requests {
            _ if p.dir != Dir::Out && has(Kind::Logical) => (false, false, true),
            _ if p.dir != Dir::Out => (false, has(Kind::Handle(Class::Datatype)), false),
            None if has(Kind::Handle(Class::File)) => (false, true, false),
            None => (true, true, true),
            Some(j) => {
                let all = self.empty_status(j, k);
                (all, all, all)
            }
        };
        let was_cancelled = raw.cancelled && (requests.is_some() || p.dir != Dir::Out);
        if cancelled && was_cancelled {
            (peer, bytes) = (false, false);
        }
        let error = (f.returns == Returns::Code && self.result == 17).then_some(i64::from(raw.error));
        if error.is_some_and(|error| error != 0) {
            (peer, bytes, cancelled) = (false, false, false);
        }
        if !peer && !bytes && !cancelled && error.is_none() {
            return Value::Unset;
        }
        let number = |kind, value: i32| if peer { number(kind, value.into()) } else { Value::Unset };
        Value::Status(Status {
            source: number(Kind::Peer(0), raw.source).into(),
            tag: number(Kind::Tag, raw.tag).into(),
            bytes: bytes.then_some(raw.bytes),
            cancelled: cancelled.then_some(was_cancelled),
            error,
        })
    }

    /// Whether the k-th status belongs to no request, or to one that is null.
    fn empty_status(&self, j: usize, k: usize) -> bool {
        let (f, p) = (self.f, &self.f.params[j]);
        let index = |listed: bool| {
            let wanted =
                |p: &Param| p.dir == Dir::Out && p.kind == Kind::Undefinable && p.len.is_empty() != listed;
            f.params.iter().position(wanted)
        };
        let at = match (index(false), index(true)) {
            (Some(_), Some(list)) if [0, 3, 4].contains(&self.args[list]) => -1,
            (Some(_), Some(list)) => self.at(list, k, self.args[list]),
            (Some(one), None) if self.args[one] == 0 => -1,
            (Some(one), None) => self.at(one, 0, self.args[one]),
            _ => k as i64,
        };
        let n = if self.args[j] == 0 && p.dir != Dir::In { 0 } else { self.length(p) };
        let Some(at) = usize::try_from(at).ok().filter(|at| *at < n) else { return true };
        let handle = match p.dir {
            Dir::In if p.len.is_empty() => self.host.handle(Class::Request, self.args[j]),
            Dir::In if self.args[j] == 0 => return true,
            Dir::In => self.host.handle_at(Class::Request, self.args[j], at),
            _ => self.host.handle_at(Class::Request, self.before(j), at),
        };
        handle == constant_value("MPI_REQUEST_NULL") as u64
    }
}

/// A number of this kind, by name where it has one.
fn number(kind: Kind, value: i64) -> Value {
    let names: &[&'static str] = match kind {
        Kind::Peer(_) => &["MPI_ANY_SOURCE", "MPI_PROC_NULL", "MPI_ROOT", "MPI_UNDEFINED"],
        Kind::Root(_) => &["MPI_PROC_NULL", "MPI_ROOT"],
        Kind::Rank => &["MPI_PROC_NULL", "MPI_UNDEFINED"],
        Kind::Tag => &["MPI_ANY_TAG"],
        Kind::Undefinable => &["MPI_UNDEFINED"],
        Kind::Logical => return Value::Bool(value != 0),
        Kind::Enum(set) => {
            let named = constants_of(set).find(|c| constant_value(c.name) == value);
            return named.map_or(Value::Int(value), |c| Value::Name(c.name));
        }
        Kind::Mask(set) => {
            let mut bits: Vec<_> = constants_of(set)
                .filter(|c| {
                    constant_value(c.name) != 0 && value & constant_value(c.name) == constant_value(c.name)
                })
                .collect();
            bits.sort_by_key(|c| c.bit());
            let rest = bits.iter().fold(value, |rest, c| rest & !constant_value(c.name));
            let told = bits.iter().fold(0i64, |told, c| told | 1 << c.bit());
            return match rest {
                0 => Value::Mask(bits.iter().map(|c| c.name).collect()),
                // What has no name stands above what has.
                rest => Value::Int(told | rest << 32),
            };
        }
        _ => &[],
    };
    let named = names.iter().find(|name| constant_value(name) == value);
    named.map_or(Value::Int(value), |name| Value::Name(name))
}

/// What the objects of a process are read as.
#[derive(Default)]
struct Known(HashMap<(Class, u64), Value>);

impl Known {
    fn constant(class: Class, handle: u64) -> Option<Value> {
        let constant = constants_of(class.set()).find(|c| constant_value(c.name) as u64 == handle)?;
        Some(match constant.name {
            "MPI_COMM_WORLD" => Value::Comm("world".into()),
            "MPI_COMM_SELF" => Value::Comm("self".into()),
            name => Value::Name(name),
        })
    }

    fn fits(&mut self, want: &Want, found: &Value) -> bool {
        match want {
            Want::Is(value) => value == found,
            Want::Unwritten => {
                let nothing = [
                    "NULL",
                    "MPI_STATUS_IGNORE",
                    "MPI_STATUSES_IGNORE",
                    "MPI_UNWEIGHTED",
                    "MPI_WEIGHTS_EMPTY",
                ];
                match found {
                    Value::Name(name) => nothing.contains(name),
                    found => *found == Value::Unset,
                }
            }
            Want::List(wants) => match found {
                Value::List(found) => {
                    wants.len() == found.len() && wants.iter().zip(found).all(|(w, f)| self.fits(w, f))
                }
                _ => false,
            },
            Want::InOut(before, after) => match found {
                Value::InOut(b, a) => self.fits(before, b) && self.fits(after, a),
                _ => false,
            },
            Want::Object(class, handle) | Want::Made(class, handle) => {
                let made = matches!(want, Want::Made(..));
                if let Some(constant) = Known::constant(*class, *handle) {
                    // A communicator that comes later has no handle yet.
                    return constant == *found || (made && matches!(found, Value::Comm(_)));
                }
                let kind = match found {
                    Value::Object(of, _) => of == class,
                    Value::Comm(_) => *class == Class::Comm,
                    _ => false,
                };
                // Which of several requests it is depends on more than the handle.
                if !kind || *class == Class::Request {
                    return kind;
                }
                let key = (*class, *handle);
                if made {
                    self.0.remove(&key);
                } else if let Some(known) = self.0.get(&key) {
                    return known == found;
                }
                // No two objects are called the same at one time; groups and error handlers may be given out again.
                let unique = self.0.iter().all(|((of, _), known)| of != class || known != found);
                self.0.insert(key, found.clone());
                unique || matches!(class, Class::Group | Class::Errhandler)
            }
        }
    }

    /// A call has freed these.
    fn forget(&mut self, seen: &Seen<'_>) {
        for (i, p) in
            seen.f.params.iter().enumerate().filter(|(i, p)| p.effect == Effect::Free && seen.args[*i] != 0)
        {
            if let Kind::Handle(class) = p.kind {
                let handle = match p.dir {
                    Dir::In => seen.host.handle(class, seen.args[i]),
                    _ => seen.host.handle_at(class, seen.before(i), 0),
                };
                self.0.remove(&(class, handle));
            }
        }
    }
}

/// What was observed beside the arguments of a call that makes a datatype.
fn facts(seen: &Seen<'_>, call: &Call) -> bool {
    let mut wanted = Vec::new();
    for (p, value) in seen.f.params.iter().zip(&call.args) {
        let makes = p.kind == Kind::Handle(Class::Datatype)
            && p.dir == Dir::Out
            && p.len.is_empty()
            && matches!(p.effect, Effect::Create | Effect::Alias);
        if makes && matches!(value, Value::Object(..)) {
            wanted.extend([("size", Value::Int(24)), ("lb", Value::Int(0)), ("extent", Value::Int(32))]);
        }
    }
    let of_types: Vec<_> = call.facts.iter().filter(|(name, _)| !name.contains("group")).cloned().collect();
    of_types == wanted
}

#[test]
fn every_function_reads_back_as_it_was_called() {
    let mut random = fastrand::Rng::with_seed(0x1234_5678_9abc_def1);
    let mut calls = 0;
    for (f, narrow) in functions().iter().flat_map(|f| [(f, false), (f, true)]).filter(|(f, _)| !f.silent) {
        let mut w = world_with(2, narrow);
        // A window that nobody saw being made: whose ranks it counts cannot be read.
        w.host.win_rank = 0;
        let mut known = Known::default();
        for round in 0..20 {
            w.split = round % 4 != 3;
            let mut arguments = Arguments::new(&mut random, f, narrow);
            let args = arguments.words.clone();
            let earlier: Vec<Vec<u64>> = arguments.blocks.iter().map(|block| block.to_vec()).collect();
            let result = one(&mut random, &[0, 0, 0, 5, 17]);
            let call = w.call(f.name, &args, result, || {
                for (i, p) in f.params.iter().enumerate().filter(|(_, p)| p.dir != Dir::In) {
                    arguments.write(&mut random, p, i, narrow);
                }
            });
            let seen = Seen { f, host: &w.host, args: &args, earlier: &earlier, result };
            for ((p, want), found) in f.params.iter().zip(seen.wants()).zip(&call.args) {
                let told = || format!("{} {}: {found:?}, not {want:?}\n{args:x?} = {result}", f.name, p.name);
                assert!(known.fits(&want, found), "{}", told());
            }
            let result = match f.returns {
                Returns::Clock => Value::Unset,
                Returns::Code if result == 0 => Value::Int(0),
                _ => Value::Int(result),
            };
            assert_eq!(call.result, result, "{}", f.name);
            assert!(facts(&seen, &call), "{}: {:?}", f.name, call.facts);
            if seen.result == 0 {
                known.forget(&seen);
            }
            calls += 1;
        }
    }
    assert_eq!(calls, 20 * 2 * functions().iter().filter(|f| !f.silent).count());
}
