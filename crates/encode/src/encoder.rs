//! The writing side: an observed call becomes a [`Record`].

use refrain_model::{
    Area, CType, Class, Cond, Dir, Effect, Function, Kind, Len, Returns, Scope, constant,
    constant_by_id,
};

use crate::comms::{Comm, Comms, Later};
use crate::hash::{FastMap, hash_bytes, mix};
use crate::host::{Host, RawStatus};
use crate::objects::{Code, Objects};
use crate::params::{
    comm_param, dynamic_condition, has_datatype_facts, is_number, is_wide, known_length, object_in_lane,
    untagged,
};
use crate::record::Record;
use crate::requests::Requests;
use crate::wire;

/// Numbers of the running library that the encoder compares with on every call.
#[derive(Debug, Default, Clone, Copy)]
struct Numbers {
    any_source: i64,
    proc_null: i64,
    root: i64,
    any_tag: i64,
    undefined: i64,
    in_place: usize,
    status_ignore: usize,
    statuses_ignore: usize,
    err_in_status: i64,
}

/// Constant ids of the same, as they go into symbols.
#[derive(Debug, Default, Clone, Copy)]
struct Names {
    any_source: u16,
    proc_null: u16,
    root: u16,
    any_tag: u16,
    status_ignore: u16,
    statuses_ignore: u16,
    argv_null: u16,
    argvs_null: u16,
}

/// Turns the calls of one process into records. Holds the process's objects; knows no library but through a [`Host`].
#[derive(Debug, Default)]
pub struct Encoder {
    numbers: Numbers,
    names: Names,
    enums: FastMap<(&'static str, i64), u16>,
    /// Of each set: a name's bits in the running library, and its bit with us.
    masks: FastMap<&'static str, Vec<(i64, u32)>>,
    /// Addresses that are names: of buffers, of integer arrays, of callback functions.
    buffers: Vec<(usize, u16)>,
    arrays: Vec<(usize, u16)>,
    functions: Vec<(usize, u16)>,
    predefined_comms: Vec<(u64, u16)>,
    objects: Objects,
    comms: Comms,
    requests: Requests,
    wins: FastMap<u64, i64>,
    world_rank: i64,
    scratch: Scratch,
}

/// What a call was about to overwrite, from its [`Encoder::before`] to its [`Encoder::after`]. One for each thread,
/// reused from call to call: a call whose signature is known allocates nothing.
#[derive(Debug, Default)]
pub struct Before {
    handles: Vec<u64>,
    numbers: Vec<i64>,
}

#[derive(Debug, Default)]
struct Scratch {
    codes: Vec<Code>,
    text: Vec<u8>,
    pending: Option<Box<Later>>,
}

/// How a call ended, and so which of its outputs mean something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Success,
    Failed,
    /// Some of several operations failed: everything was written, and the statuses tell which.
    FailedWithStatuses,
}

/// The call at hand: everything the parameter rules look at.
struct Call<'a, H> {
    host: &'a mut H,
    f: &'static Function,
    args: &'a [usize],
    end: End,
    before: &'a Before,
    /// How far `before` has been used.
    handle_at: usize,
    number_at: usize,
}

impl<H: Host> Call<'_, H> {
    /// A scalar number, from its register or from behind its pointer.
    fn number(&self, i: usize) -> i64 {
        let p = &self.f.params[i];
        let arg = self.args[i];
        match (p.dir, is_wide(p.ctype)) {
            (Dir::In, true) => arg as i64,
            (Dir::In, false) => i64::from(arg as u32 as i32),
            _ if arg == 0 => 0,
            _ => self.element(i, 0),
        }
    }

    /// A number as a length. Where the call changes it, the smaller of before and after: room given and room used.
    fn length(&self, i: usize) -> i64 {
        let now = self.number(i);
        if self.f.params[i].dir != Dir::InOut {
            return now;
        }
        let earlier = self.f.params[..i].iter().zip(self.args);
        let at = earlier.filter(|(p, arg)| p.dir == Dir::InOut && **arg != 0 && is_number(p.kind)).count();
        self.before.numbers.get(at).map_or(now, |&before| now.min(before))
    }

    /// Element `k` of an array or output parameter, which is not null.
    fn element(&self, i: usize, k: usize) -> i64 {
        let p = &self.f.params[i];
        if is_wide(p.ctype) { self.host.wide_at(self.args[i], k) } else { self.host.int_at(self.args[i], k) }
    }
}

impl Encoder {
    /// `constants` are MPI's constants by our number and their value in the running library: integers, handles and
    /// addresses alike.
    pub fn new(constants: &[(u16, i64)]) -> Encoder {
        let mut e = Encoder::default();
        let class_of = |set: &str| CLASSES.iter().find(|(name, _)| *name == set).map(|&(_, class)| class);
        for &(id, value) in constants {
            let Some(c) = constant_by_id(id) else { continue };
            match (c.name, c.set) {
                ("MPI_COMM_NULL", _) => e.comms.set_null(value as u64, id),
                ("MPI_REQUEST_NULL", _) => e.requests.set_null(value as u64, id),
                (_, "comm") => e.predefined_comms.push((value as u64, id)),
                (_, "function") => e.functions.push((value as usize, id)),
                (_, "address") => e.address(c.name, id, value as usize),
                (_, "rank" | "tag" | "undefined") => {}
                (_, set) => {
                    if let Some(class) = class_of(set) {
                        e.objects.predefine(class, value as u64, id);
                    }
                }
            }
            e.number(c.name, value);
        }
        let value_of: FastMap<u16, i64> = constants.iter().copied().collect();
        for kind in refrain_model::functions().iter().flat_map(|f| f.params).map(|p| p.kind) {
            let (Kind::Enum(set) | Kind::Mask(set)) = kind else { continue };
            if e.masks.contains_key(set) {
                continue;
            }
            let named = refrain_model::constants_of(set).filter_map(|c| Some((c, *value_of.get(&c.id)?)));
            let bits = e.masks.entry(set).or_default();
            for (position, (c, value)) in named.enumerate() {
                // Where two names have one value the first is canonical.
                e.enums.entry((set, value)).or_insert(c.id);
                bits.push((value, if matches!(kind, Kind::Mask(_)) { c.bit() } else { position as u32 }));
            }
        }
        let id = |name| constant(name).map_or(0, |c| c.id);
        e.names = Names {
            any_source: id("MPI_ANY_SOURCE"),
            proc_null: id("MPI_PROC_NULL"),
            root: id("MPI_ROOT"),
            any_tag: id("MPI_ANY_TAG"),
            status_ignore: id("MPI_STATUS_IGNORE"),
            statuses_ignore: id("MPI_STATUSES_IGNORE"),
            argv_null: id("MPI_ARGV_NULL"),
            argvs_null: id("MPI_ARGVS_NULL"),
        };
        e
    }

    fn address(&mut self, name: &str, id: u16, value: usize) {
        match name {
            "MPI_BOTTOM" | "MPI_IN_PLACE" | "MPI_BUFFER_AUTOMATIC" => self.buffers.push((value, id)),
            "MPI_UNWEIGHTED" | "MPI_WEIGHTS_EMPTY" | "MPI_ERRCODES_IGNORE" => self.arrays.push((value, id)),
            _ => {}
        }
    }

    fn number(&mut self, name: &str, value: i64) {
        let n = &mut self.numbers;
        match name {
            "MPI_ANY_SOURCE" => n.any_source = value,
            "MPI_PROC_NULL" => n.proc_null = value,
            "MPI_ROOT" => n.root = value,
            "MPI_ANY_TAG" => n.any_tag = value,
            "MPI_UNDEFINED" => n.undefined = value,
            "MPI_IN_PLACE" => n.in_place = value as usize,
            "MPI_STATUS_IGNORE" => n.status_ignore = value as usize,
            "MPI_STATUSES_IGNORE" => n.statuses_ignore = value as usize,
            "MPI_ERR_IN_STATUS" => n.err_in_status = value,
            _ => {}
        }
    }

    /// MPI is up: the predefined communicators can be asked about.
    pub fn start<H: Host>(&mut self, host: &mut H) {
        for (handle, id) in std::mem::take(&mut self.predefined_comms) {
            let info = host.comm(handle);
            if constant_by_id(id).is_some_and(|c| c.name == "MPI_COMM_WORLD") {
                self.world_rank = i64::from(info.rank);
            }
            self.comms.predefine(handle, id, info);
        }
    }

    /// Keeps what the call is about to overwrite. Runs before it.
    pub fn before<H: Host>(
        &mut self,
        host: &mut H,
        f: &'static Function,
        args: &[usize],
        before: &mut Before,
    ) {
        before.handles.clear();
        before.numbers.clear();
        let nothing = Before::default();
        let mut call =
            Call { host, f, args, end: End::Success, before: &nothing, handle_at: 0, number_at: 0 };
        for (i, p) in f.params.iter().enumerate() {
            if p.dir != Dir::InOut || args[i] == 0 {
                continue;
            }
            match p.kind {
                Kind::Handle(class) => {
                    for k in 0..self.count(&mut call, i) {
                        before.handles.push(call.host.handle_at(class, args[i], k));
                    }
                }
                kind if is_number(kind) => {
                    for k in 0..self.count(&mut call, i) {
                        before.numbers.push(call.element(i, k));
                    }
                }
                _ => {}
            }
        }
    }

    /// Encodes a finished call. `result` is what it returned.
    pub fn after<H: Host>(
        &mut self,
        host: &mut H,
        f: &'static Function,
        args: &[usize],
        result: i64,
        before: &Before,
        record: &mut Record,
    ) {
        let end = match f.returns {
            Returns::Code if result == 0 => End::Success,
            Returns::Code if result == self.numbers.err_in_status => End::FailedWithStatuses,
            Returns::Code => End::Failed,
            _ => End::Success,
        };
        let outcome = match end {
            End::Success => wire::SUCCESS,
            End::Failed => wire::FAILED,
            End::FailedWithStatuses => wire::FAILED_WITH_STATUSES,
        };
        record.begin(f.id, outcome);
        self.requests.next_call();
        let mut call = Call { host, f, args, end, before, handle_at: 0, number_at: 0 };
        for i in 0..f.params.len() {
            self.parameter(&mut call, i, record);
        }
        match f.returns {
            Returns::Code if end != End::Success => record.lane(result),
            Returns::Aint => record.lane(result),
            _ => {}
        }
    }

    fn parameter<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, record: &mut Record) {
        let p = &call.f.params[i];
        if p.dir == Dir::Out && call.end == End::Failed {
            return;
        }
        if p.kind == Kind::Skip {
            return;
        }
        let dynamic = dynamic_condition(call.f, i);
        let fixed = p.when.iter().filter(|&&c| Some(c) != dynamic).all(|&c| self.holds(call, c));
        if !fixed {
            record.tag(wire::ABSENT);
            return;
        }
        let live = dynamic.is_none_or(|c| self.holds(call, c));
        match p.kind {
            Kind::Handle(class) => self.handle(call, i, class, live, record),
            Kind::Status => self.status(call, i, live, record),
            Kind::Buffer => self.buffer(call, call.args[i], record),
            Kind::OutPointer | Kind::OutAttribute => match call.args[i] {
                0 => record.tag(wire::NULL),
                pointer => self.buffer(call, call.host.pointer_at(pointer, 0), record),
            },
            Kind::String => self.string(call, i, record),
            Kind::Strings | Kind::StringsOfStrings | Kind::ArgVector => self.strings(call, i, record),
            Kind::Function => self.function(call, i, record),
            Kind::Skip => {}
            _ if p.len.is_empty() => self.scalar(call, i, live, record),
            _ => self.array(call, i, live, record),
        }
    }

    /// Whether a condition of the call table holds for this call, on this rank.
    fn holds<H: Host>(&mut self, call: &mut Call<'_, H>, condition: Cond) -> bool {
        let rooted = |e: &mut Self, call: &mut Call<'_, H>, j: u8| {
            let root = call.number(usize::from(j));
            let comm = match call.f.params[usize::from(j)].kind {
                Kind::Root(c) => e.comm_of(call, usize::from(c)),
                _ => None,
            };
            comm.map_or((root, 0, false), |c| (root, i64::from(c.info.rank), c.info.remote_size.is_some()))
        };
        match condition {
            Cond::AtRoot(j) => {
                let (root, rank, inter) = rooted(self, call, j);
                if inter { root == self.numbers.root } else { root == rank }
            }
            Cond::AtLeaf(j) => {
                let (root, _, inter) = rooted(self, call, j);
                !inter || (root != self.numbers.root && root != self.numbers.proc_null)
            }
            Cond::NotNull(j) => call.number(usize::from(j)) != self.numbers.proc_null,
            Cond::NotInPlace(j) => call.args[usize::from(j)] != self.numbers.in_place,
            Cond::Flag(j) => call.number(usize::from(j)) != 0,
            Cond::Defined(j) => call.number(usize::from(j)) != self.numbers.undefined,
        }
    }

    /// The communicator in parameter `j`; one that nobody saw being made is asked about now, unless the call failed,
    /// when the handle may be rubbish.
    fn comm_of<H: Host>(&mut self, call: &mut Call<'_, H>, j: usize) -> Option<&mut Comm> {
        let handle = match call.f.params[j].dir {
            Dir::In => call.host.handle(Class::Comm, call.args[j]),
            _ => *call.before.handles.get(call.handle_at)?,
        };
        self.adopt(call, handle)
    }

    fn adopt<H: Host>(&mut self, call: &mut Call<'_, H>, handle: u64) -> Option<&mut Comm> {
        if !self.comms.is_known(handle) {
            if call.end != End::Success || self.comms.null(handle).is_some() {
                return None;
            }
            let info = call.host.comm(handle);
            let comm = self.comms.make(info);
            self.comms.bind(handle, comm);
        }
        self.comms.get_mut(handle)
    }

    /// The caller's rank in the communicator or window of parameter `j`.
    fn base_rank<H: Host>(&mut self, call: &mut Call<'_, H>, j: usize) -> i64 {
        match call.f.params[j].kind {
            Kind::Handle(Class::Win) => {
                let win = call.host.handle(Class::Win, call.args[j]);
                if let Some(&rank) = self.wins.get(&win) {
                    return rank;
                }
                let rank = if call.end == End::Success { i64::from(call.host.win_rank(win)) } else { 0 };
                self.wins.insert(win, rank);
                rank
            }
            _ => self.comm_of(call, j).map_or(0, |c| i64::from(c.info.rank)),
        }
    }

    /// How many elements an array has: the smallest of its rules.
    fn count<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize) -> usize {
        let p = &call.f.params[i];
        if p.len.is_empty() {
            return 1;
        }
        let mut shortest = usize::MAX;
        for &rule in p.len {
            let n = match rule {
                Len::Param(j) => call.length(usize::from(j)),
                Len::Triple(j) => call.number(usize::from(j)).saturating_mul(3),
                Len::Fixed(n) => i64::from(n),
                Len::Size(j) | Len::LocalSize(j) => self.comm_of(call, usize::from(j)).map_or(0, |c| {
                    let remote = c.info.remote_size.filter(|_| matches!(rule, Len::Size(_)));
                    i64::from(remote.unwrap_or(c.info.size))
                }),
                Len::InDegree(j) => self.topology(call, usize::from(j)).indegree as i64,
                Len::OutDegree(j) => self.topology(call, usize::from(j)).outdegree as i64,
                Len::CartDims(j) => self.topology(call, usize::from(j)).dims as i64,
                Len::Sum(j) => {
                    let j = usize::from(j);
                    let n = if call.args[j] == 0 { 0 } else { self.count(call, j) };
                    (0..n).map(|k| call.element(j, k)).sum()
                }
                Len::Last(j) => {
                    let j = usize::from(j);
                    let n = if call.args[j] == 0 { 0 } else { self.count(call, j) };
                    if n == 0 { 0 } else { call.element(j, n - 1) }
                }
            };
            shortest = shortest.min(usize::try_from(n).unwrap_or(0));
        }
        shortest
    }

    fn topology<H: Host>(&mut self, call: &mut Call<'_, H>, j: usize) -> crate::host::Topology {
        let handle = call.host.handle(Class::Comm, call.args[j]);
        let Some(known) = self.adopt(call, handle) else { return crate::host::Topology::default() };
        if let Some(topology) = known.topology {
            return topology;
        }
        let topology = call.host.topology(handle);
        if let Some(comm) = self.comms.get_mut(handle) {
            comm.topology = Some(topology);
        }
        topology
    }

    /// A number as it stands in a lane, or the constant it is.
    fn relative(&self, kind: Kind, value: i64, base: i64) -> Result<i64, u16> {
        let n = &self.numbers;
        match kind {
            Kind::Peer(_) if value == n.any_source => Err(self.names.any_source),
            Kind::Peer(_) | Kind::Root(_) | Kind::Rank if value == n.proc_null => Err(self.names.proc_null),
            Kind::Peer(_) | Kind::Root(_) if value == n.root => Err(self.names.root),
            Kind::Peer(_) => Ok(value - base),
            Kind::Tag if value == n.any_tag => Err(self.names.any_tag),
            Kind::Enum(set) => self.enums.get(&(set, value)).map_or(Ok(value), |&id| Err(id)),
            Kind::Mask(set) => Ok(self.mask(set, value)),
            _ => Ok(value),
        }
    }

    /// Bits by our numbering; those without a name above it.
    fn mask(&self, set: &str, value: i64) -> i64 {
        let mut rest = value;
        let mut out = 0i64;
        for &(bits, position) in self.masks.get(set).map_or(&[][..], Vec::as_slice) {
            if bits != 0 && value & bits == bits {
                out |= 1 << position;
                rest &= !bits;
            }
        }
        out | rest << 32
    }

    fn scalar<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, live: bool, record: &mut Record) {
        let p = &call.f.params[i];
        if p.dir != Dir::In && call.args[i] == 0 {
            record.tag(wire::NULL);
            return;
        }
        let base = match p.kind {
            Kind::Peer(j) => self.base_rank(call, usize::from(j)),
            _ => 0,
        };
        if p.dir == Dir::InOut && p.kind != Kind::ArgCount {
            record.tag(wire::LANE);
            let before = call.before.numbers.get(call.number_at).copied().unwrap_or(0);
            call.number_at += 1;
            record.lane(before);
            if call.end != End::Failed {
                record.lane(call.element(i, 0));
            }
            return;
        }
        if untagged(p) {
            record.lane(call.number(i));
            return;
        }
        if !live {
            record.tag(wire::LANE);
            record.reserve(1);
            return;
        }
        match self.relative(p.kind, call.number(i), base) {
            Err(id) => record.named(id),
            Ok(value) => {
                record.tag(wire::LANE);
                record.lane(value);
            }
        }
    }

    fn array<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, live: bool, record: &mut Record) {
        let p = &call.f.params[i];
        let pointer = call.args[i];
        if let Some(&(_, id)) = self.arrays.iter().find(|&&(address, _)| address == pointer && address != 0) {
            record.named(id);
            return;
        }
        if pointer == 0 {
            record.tag(wire::NULL);
            return;
        }
        record.tag(wire::LANE);
        let base = match p.kind {
            Kind::Peer(j) => self.base_rank(call, usize::from(j)),
            _ => 0,
        };
        let length = if known_length(call.f, i).is_none() { Some(record.reserve(1)) } else { None };
        let before = if p.dir == Dir::InOut { Some(record.reserve(1)) } else { None };
        let lane =
            if p.dir == Dir::InOut && call.end == End::Failed { None } else { Some(record.reserve(1)) };
        if !live {
            return;
        }
        let n = self.count(call, i);
        if let Some(length) = length {
            record.push(length, n as i64);
        }
        let value = |e: &Self, v| e.relative(p.kind, v, base).unwrap_or_else(wire::named_value);
        if let Some(before) = before {
            for _ in 0..n {
                let v = call.before.numbers.get(call.number_at).copied().unwrap_or(0);
                call.number_at += 1;
                record.push(before, value(self, v));
            }
        }
        if let Some(lane) = lane {
            for k in 0..n {
                record.push(lane, value(self, call.element(i, k)));
            }
        }
    }

    fn status<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, live: bool, record: &mut Record) {
        let p = &call.f.params[i];
        let pointer = call.args[i];
        let (ignore, name) = if p.len.is_empty() {
            (self.numbers.status_ignore, self.names.status_ignore)
        } else {
            (self.numbers.statuses_ignore, self.names.statuses_ignore)
        };
        if pointer == ignore {
            record.named(name);
            return;
        }
        if pointer == 0 {
            record.tag(wire::NULL);
            return;
        }
        record.tag(wire::LANE);
        let base = comm_param(call.f).map_or(self.world_rank, |j| self.base_rank(call, j));
        let length = if !p.len.is_empty() && known_length(call.f, i).is_none() {
            Some(record.reserve(1))
        } else {
            None
        };
        // The error field is written only where the call says so; elsewhere it holds what was there before.
        let with_error = call.end == End::FailedWithStatuses;
        let first = record.reserve(if with_error { 5 } else { 4 });
        if !live {
            return;
        }
        let n = self.count(call, i);
        if let Some(length) = length {
            record.push(length, n as i64);
        }
        for k in 0..n {
            let RawStatus { source, tag, error, bytes, cancelled } = call.host.status_at(pointer, k);
            let source = self.relative(Kind::Peer(0), i64::from(source), base);
            let tag = self.relative(Kind::Tag, i64::from(tag), 0);
            record.push(first, source.unwrap_or_else(wire::named_value));
            record.push(first + 1, tag.unwrap_or_else(wire::named_value));
            record.push(first + 2, bytes);
            record.push(first + 3, i64::from(cancelled));
            if with_error {
                record.push(first + 4, i64::from(error));
            }
        }
    }

    fn buffer<H: Host>(&mut self, call: &mut Call<'_, H>, pointer: usize, record: &mut Record) {
        if let Some(&(_, id)) = self.buffers.iter().find(|&&(address, _)| address == pointer) {
            record.named(id);
            return;
        }
        let Some(address) = call.host.locate(pointer) else {
            record.tag(wire::UNKEPT);
            return;
        };
        record.tag(wire::AREA + address.area as u8);
        if address.area != Area::Number {
            record.lane(i64::from(address.segment));
        }
        record.lane(address.offset);
    }

    fn string<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, record: &mut Record) {
        let p = &call.f.params[i];
        if call.args[i] == 0 {
            record.tag(wire::NULL);
            return;
        }
        let max = if p.dir == Dir::In || p.len.is_empty() { usize::MAX } else { self.count(call, i) };
        self.scratch.text.clear();
        call.host.text_at(call.args[i], max, &mut self.scratch.text);
        record.tag(wire::TEXT);
        record.text(&self.scratch.text);
    }

    /// Arrays of strings, one level or two.
    fn strings<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, record: &mut Record) {
        let p = &call.f.params[i];
        let mut pointer = call.args[i];
        if pointer == 0 {
            match p.kind {
                Kind::Strings => record.named(self.names.argv_null),
                Kind::StringsOfStrings => record.named(self.names.argvs_null),
                _ => record.tag(wire::NULL),
            }
            return;
        }
        if p.kind == Kind::ArgVector {
            pointer = call.host.pointer_at(pointer, 0);
            if pointer == 0 {
                record.tag(wire::NULL);
                return;
            }
        }
        record.tag(wire::TEXT);
        let limit = match p.kind {
            Kind::ArgVector => {
                let count = call.f.params.iter().position(|p| p.kind == Kind::ArgCount);
                count.map_or(0, |j| usize::try_from(call.number(j)).unwrap_or(0))
            }
            _ if p.len.is_empty() => usize::MAX,
            _ => self.count(call, i),
        };
        if p.kind == Kind::StringsOfStrings {
            record.number(limit as u64);
            for k in 0..limit {
                self.string_list(call, call.host.pointer_at(pointer, k), usize::MAX, record);
            }
        } else {
            self.string_list(call, pointer, limit, record);
        }
    }

    fn string_list<H: Host>(&mut self, call: &Call<'_, H>, list: usize, limit: usize, record: &mut Record) {
        let at = |k| if list == 0 { 0 } else { call.host.pointer_at(list, k) };
        let n = (0..limit).take_while(|&k| at(k) != 0).count();
        record.number(n as u64);
        for k in 0..n {
            self.scratch.text.clear();
            call.host.text_at(at(k), usize::MAX, &mut self.scratch.text);
            record.text(&self.scratch.text);
        }
    }

    fn function<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, record: &mut Record) {
        let pointer = call.args[i];
        if let CType::Function(typedef) = call.f.params[i].ctype
            && let Some(id) = self.predefined_function(typedef, pointer)
        {
            record.named(id);
            return;
        }
        if pointer == 0 {
            record.tag(wire::NULL);
            return;
        }
        let name = call.host.function_name(pointer);
        record.tag(wire::TEXT);
        record.text(name.as_bytes());
    }

    /// Libraries use one address for many predefined callbacks (and null for most): the parameter's type tells which.
    fn predefined_function(&self, typedef: &str, pointer: usize) -> Option<u16> {
        let wanted = typedef.to_ascii_uppercase();
        let object =
            ["MPI_COMM_", "MPI_WIN_", "MPI_TYPE_"].into_iter().find(|prefix| wanted.starts_with(prefix));
        let deletes = wanted.contains("DELETE");
        let fits = |name: &str| {
            let copies = name.contains("COPY") || name.contains("DUP");
            let same_object = match object {
                Some(prefix) => name.starts_with(prefix),
                None => !["MPI_COMM_", "MPI_WIN_", "MPI_TYPE_"].iter().any(|prefix| name.starts_with(prefix)),
            };
            if wanted.contains("CONVERSION") {
                return name.contains("CONVERSION");
            }
            same_object && if deletes { name.contains("DELETE") } else { wanted.contains("COPY") && copies }
        };
        let mut named = self.functions.iter().filter(|&&(address, _)| address == pointer);
        named.find(|&&(_, id)| constant_by_id(id).is_some_and(|c| fits(c.name))).map(|&(_, id)| id)
    }

    fn handle<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        i: usize,
        class: Class,
        live: bool,
        record: &mut Record,
    ) {
        let p = &call.f.params[i];
        let in_symbol = p.len.is_empty() && p.dir != Dir::Out && !object_in_lane(class);
        if p.dir != Dir::In || !p.len.is_empty() {
            if call.args[i] == 0 {
                record.tag(if in_symbol { wire::ABSENT } else { wire::NULL });
                return;
            }
            if let Effect::CreateComm(scope) = p.effect {
                self.new_comm(call, i, scope, record);
                return;
            }
        }
        if in_symbol {
            let handle = self.given(call, i, class, 0);
            let code = self.code(call, class, handle, 0);
            record.number(code.map_or(0, |c| c.number() + 1));
            if p.effect == Effect::Free && call.end == End::Success {
                self.free(class, handle);
            }
            return;
        }
        record.tag(wire::LANE);
        let length = if !p.len.is_empty() && known_length(call.f, i).is_none() {
            Some(record.reserve(1))
        } else {
            None
        };
        let lane = record.reserve(1);
        let facts = if has_datatype_facts(p) { Some(record.reserve(3)) } else { None };
        if !live {
            return;
        }
        let n = self.count(call, i);
        if let Some(length) = length {
            record.push(length, n as i64);
        }
        let first_handle = call.handle_at;
        self.scratch.codes.clear();
        for k in 0..n {
            let handle = self.given(call, i, class, k);
            let code = match (p.dir, p.effect) {
                (Dir::Out, Effect::Alias) => Some(self.objects.alias(class, handle)),
                (Dir::Out, _) if class == Class::Request => {
                    let signature = signature(record);
                    let later = self.scratch.pending.take();
                    let address = call.args[i];
                    let (function, persistent) = (call.f.id, call.f.persistent);
                    Some(self.requests.create(handle, address, signature, function, persistent, later))
                }
                (Dir::Out, _) => Some(self.objects.create(class, handle)),
                _ => self.code(call, class, handle, self.element_address(call, i, class, k)),
            };
            let code = code.unwrap_or(Code::Constant(0));
            self.scratch.codes.push(code);
            record.push(lane, code.number() as i64);
        }
        if let Some(facts) = facts {
            let handle = call.host.handle_at(class, call.args[i], 0);
            let made = match self.scratch.codes.first() {
                Some(Code::Id(_)) => call.host.datatype(handle),
                _ => crate::host::DatatypeInfo::default(),
            };
            for (k, v) in (0u16..).zip([made.size, made.lb, made.extent]) {
                record.push(facts + k, v);
            }
        }
        if p.dir == Dir::Out && class == Class::Win {
            let rank = comm_param(call.f).map_or(0, |j| self.base_rank(call, j));
            self.wins.insert(call.host.handle_at(class, call.args[i], 0), rank);
        }
        if matches!(p.effect, Effect::Free | Effect::Complete) {
            self.release(call, i, class, first_handle);
        }
    }

    /// Where element `k` of a handle parameter is kept by the program.
    fn element_address<H: Host>(&self, call: &Call<'_, H>, i: usize, class: Class, k: usize) -> usize {
        match call.f.params[i].dir {
            Dir::In if call.f.params[i].len.is_empty() => 0,
            _ => call.args[i] + k * call.host.handle_size(class),
        }
    }

    /// The handle the program gave (for InOut: before the call) or the call returned.
    fn given<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, class: Class, k: usize) -> u64 {
        let p = &call.f.params[i];
        match p.dir {
            Dir::InOut => {
                let handle = call.before.handles.get(call.handle_at).copied();
                call.handle_at += 1;
                handle.unwrap_or(0)
            }
            Dir::In if p.len.is_empty() => call.host.handle(class, call.args[i]),
            _ => call.host.handle_at(class, call.args[i], k),
        }
    }

    fn code<H: Host>(
        &mut self,
        call: &mut Call<'_, H>,
        class: Class,
        handle: u64,
        address: usize,
    ) -> Option<Code> {
        match class {
            Class::Comm => self.comms.null(handle).or_else(|| self.adopt(call, handle).map(|c| c.code)),
            Class::Request => Some(self.requests.code(handle, address)),
            _ => Some(self.objects.code(class, handle)),
        }
    }

    fn free(&mut self, class: Class, handle: u64) {
        match class {
            Class::Comm => self.comms.free(handle),
            Class::Win => {
                self.wins.remove(&handle);
                self.objects.free(class, handle);
            }
            _ => self.objects.free(class, handle),
        }
    }

    /// After the call, requests that became null are over, and freed objects give their ids back.
    fn release<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, class: Class, first_handle: usize) {
        let freed = call.f.params[i].effect == Effect::Free;
        for k in 0..self.scratch.codes.len() {
            let before = call.before.handles.get(first_handle + k).copied().unwrap_or(0);
            let Code::Id(id) = self.scratch.codes[k] else { continue };
            if class != Class::Request {
                if call.end == End::Success {
                    self.free(class, before);
                }
                continue;
            }
            let gone = self.requests.is_null(call.host.handle_at(class, call.args[i], k));
            if gone && let Some(later) = self.requests.complete(before, id, freed) {
                let handle = call.host.handle_at(Class::Comm, later.pointer, 0);
                self.comms.bind(handle, later.comm);
            }
        }
    }

    fn new_comm<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, scope: Scope, record: &mut Record) {
        let pointer = call.args[i];
        let handle = call.host.handle_at(Class::Comm, pointer, 0);
        let null = self.comms.null(handle);
        let parent = match scope {
            Scope::Parent(j) | Scope::ParentLater(j, _) => {
                call.host.handle(Class::Comm, call.args[usize::from(j)])
            }
            _ => 0,
        };
        let by_members = matches!(scope, Scope::Members | Scope::Inter);
        let later = matches!(scope, Scope::ParentLater(..));
        record.tag(wire::LANE);
        if let Some(code) = null
            && !later
        {
            let naming = self.comms.name(scope, parent, None);
            record.tag(wire::GROUP_NONE);
            record.lane(code.number() as i64);
            record.lane(naming.order as i64);
            return;
        }
        let parent_info = match scope {
            Scope::Parent(_) | Scope::ParentLater(..) => self.adopt(call, parent).map(|c| c.info.clone()),
            _ => None,
        };
        let info = match &parent_info {
            Some(info) if later => info.clone(),
            _ => call.host.comm(handle),
        };
        let naming = self.comms.name(scope, parent, Some(&info));
        let comm = self.comms.make(info.clone());
        let group = match &parent_info {
            Some(parent) if *parent == info => wire::GROUP_SAME,
            _ if info.remote_size.is_some() => wire::GROUP_INTER,
            _ => wire::GROUP_LIST,
        };
        record.tag(group);
        record.lane(comm.code.number() as i64);
        record.lane(naming.order as i64);
        if by_members {
            record.lane(i64::from(naming.members));
        }
        if by_members || scope == Scope::Process {
            record.lane(i64::from(info.rank));
        }
        if group != wire::GROUP_SAME {
            list(record, &info.world);
        }
        if group == wire::GROUP_INTER {
            list(record, &info.remote_world);
        }
        if null.is_some() {
            self.scratch.pending = Some(Box::new(Later { pointer, comm }));
        } else {
            self.comms.bind(handle, comm);
        }
    }
}

fn list(record: &mut Record, ranks: &[i32]) {
    record.lane(ranks.len() as i64);
    let lane = record.reserve(1);
    for &rank in ranks {
        record.push(lane, i64::from(rank));
    }
}

/// A hash of everything about a call that creates a request, but the request.
fn signature(record: &Record) -> u64 {
    record
        .values
        .iter()
        .fold(hash_bytes(&record.symbol), |h, &(lane, v)| mix(mix(h, u64::from(lane)), v as u64))
}

/// The sets of constants that are handles.
const CLASSES: [(&str, Class); 11] = [
    ("group", Class::Group),
    ("datatype", Class::Datatype),
    ("op", Class::Op),
    ("win", Class::Win),
    ("file", Class::File),
    ("info", Class::Info),
    ("errhandler", Class::Errhandler),
    ("keyval", Class::Keyval),
    ("message", Class::Message),
    ("session", Class::Session),
    ("request", Class::Request),
];
