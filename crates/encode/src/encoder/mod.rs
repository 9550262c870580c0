//! The writing side: an observed call becomes a [`Record`].

mod handles;
mod numbers;
mod texts;

use refrain_fold::FastMap;
use refrain_model::{
    Address, Amount, Class, Cond, Dir, Effect, Function, Kind, Len, Returns, constant, constant_by_id,
};

use std::sync::Arc;

use crate::comms::{Comm, Comms, Later};
use crate::defined::Undefined;
use crate::facts::{Facts, Names, Numbers};
use crate::host::{Host, Memory, Topology};
use crate::layout::Outcome;
use crate::memo::Plans;
use crate::objects::{Code, Objects};
use crate::record::Record;
use crate::shape::{Form, Shape};
use crate::tables::Tables;
use crate::wire;

/// Turns the calls of one process into records. Holds the process's objects; knows no library but through a [`Host`].
/// A clone of one that has seen no call is a cheap start for another process of the same library.
#[derive(Debug, Default, Clone)]
pub struct Encoder {
    pub(crate) facts: Arc<Facts>,
    enums: FastMap<(&'static str, i64), u16>,
    /// Of each set: a name's bits in the running library, and its bit with us.
    masks: FastMap<&'static str, Vec<(i64, u32)>>,
    /// Addresses that are names: of buffers, of callback functions.
    buffers: Vec<(usize, u16)>,
    functions: Vec<(usize, u16)>,
    predefined_comms: Vec<(u64, u16)>,
    objects: Objects,
    comms: Comms,
    wins: FastMap<u64, i64>,
    /// Changes whenever an object other than a request is made or freed.
    pub(crate) generation: u64,
    /// A request was made that receives from any source or with any tag.
    wild: bool,
    /// The rank that the sources of the last statuses are relative to.
    pub(crate) status_base: i64,
    texts: texts::Texts,
    scratch: Scratch,
}

/// What a call was about to overwrite, from its [`Encoder::before`] to its [`Encoder::after`]. One for each thread,
/// reused from call to call: a call whose signature is known allocates nothing.
#[derive(Debug, Default)]
pub struct Before {
    handles: Vec<u64>,
    numbers: Vec<i64>,
    /// Where memory lay that the call gives back.
    place: Option<Address>,
    /// What the call frees: its handle may be another thread's before the call returns.
    ending: Vec<(Class, u64, Code)>,
    /// Where the statuses are that MPI was given although the program ignores them; 0 where it was given none.
    statuses: usize,
    /// Room for such statuses: where it is, and how many words. Never given back: MPI may still write to it when nobody traces
    /// any more. No reference is held, since MPI writes to it while we are not looking.
    room: (usize, usize),
}

impl Before {
    /// The handles that are about to be overwritten.
    #[inline]
    pub fn handles(&self) -> &[u64] {
        &self.handles
    }

    /// Nothing is being overwritten.
    pub fn clear(&mut self) {
        self.handles.clear();
        self.numbers.clear();
        self.place = None;
        self.ending.clear();
    }

    /// Room for statuses that the program does not see; 0 where there is no memory for them.
    pub fn room(&mut self, bytes: usize) -> usize {
        let words = bytes.div_ceil(8);
        let (mut place, room) = self.room;
        if room < words {
            let Some(words) = words.max(LEAST_ROOM).checked_next_power_of_two() else { return 0 };
            let mut new: Vec<u64> = Vec::new();
            if new.try_reserve_exact(words).is_err() {
                return 0;
            }
            new.resize(words, 0);
            place = new.leak().as_mut_ptr().expose_provenance();
            self.room = (place, words);
        }
        place
    }

    /// The call at hand was given these statuses in place of those that the program ignores; 0: it was given none.
    #[inline]
    pub fn set_statuses(&mut self, place: usize) {
        self.statuses = place;
    }

    pub(crate) fn statuses(&self) -> usize {
        self.statuses
    }

    fn ending(&self, class: Class, handle: u64) -> Option<Code> {
        self.ending.iter().find(|&&(c, h, _)| (c, h) == (class, handle)).map(|&(_, _, code)| code)
    }
}

/// Words for statuses that the program ignores, at first: enough for sixteen of any library.
const LEAST_ROOM: usize = 64;

#[derive(Debug, Default, Clone)]
struct Scratch {
    codes: Vec<Code>,
    requests: Vec<i64>,
    /// Their handles, as the call was given them.
    given: Vec<u64>,
    /// Of their statuses.
    undefined: Vec<Undefined>,
    /// Which of them are complete.
    complete: Vec<usize>,
    text: Vec<u8>,
    pending: Option<Box<Later>>,
}

/// The call at hand: everything the parameter rules look at.
struct Call<'a, H> {
    host: &'a mut H,
    tables: &'a mut dyn Tables,
    f: &'static Function,
    shape: &'static Shape,
    args: &'a [usize],
    end: Outcome,
    before: &'a Before,
    /// How far `before` has been used.
    handle_at: usize,
    number_at: usize,
}

impl Before {
    /// Keeps what a call that completes requests is about to overwrite. False: it is of another kind, and the encoder has
    /// to look at it.
    #[inline]
    pub fn completes<M: Memory>(
        &mut self,
        facts: &Facts,
        memory: &M,
        f: &'static Function,
        args: &[usize],
    ) -> bool {
        let Some(completion) = facts.plans.completion(f) else { return false };
        self.clear();
        completion.before(memory, args, &mut self.handles);
        true
    }
}

impl<'a, H: Host> Call<'a, H> {
    fn new(
        host: &'a mut H,
        tables: &'a mut dyn Tables,
        f: &'static Function,
        args: &'a [usize],
        end: Outcome,
        before: &'a Before,
    ) -> Call<'a, H> {
        Call { host, tables, f, shape: Shape::of(f), args, end, before, handle_at: 0, number_at: 0 }
    }

    /// A scalar number, from its register or from behind its pointer.
    fn number(&self, i: usize) -> i64 {
        let p = &self.f.params[i];
        let arg = self.args[i];
        match (p.dir, p.ctype.is_wide()) {
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
        let at = earlier.filter(|(p, arg)| p.dir == Dir::InOut && **arg != 0 && p.kind.is_number()).count();
        self.before.numbers.get(at).map_or(now, |&before| now.min(before))
    }

    /// Element `k` of an array or output parameter, which is not null.
    fn element(&self, i: usize, k: usize) -> i64 {
        let p = &self.f.params[i];
        if p.ctype.is_wide() { self.host.wide_at(self.args[i], k) } else { self.host.int_at(self.args[i], k) }
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
                ("MPI_REQUEST_NULL", _) => e.facts_mut().null_request = Some((value as u64, id)),
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
        e.facts_mut().names = Names {
            any_source: id("MPI_ANY_SOURCE"),
            proc_null: id("MPI_PROC_NULL"),
            root: id("MPI_ROOT"),
            any_tag: id("MPI_ANY_TAG"),
            undefined: id("MPI_UNDEFINED"),
            status_ignore: id("MPI_STATUS_IGNORE"),
            statuses_ignore: id("MPI_STATUSES_IGNORE"),
            argv_null: id("MPI_ARGV_NULL"),
            argvs_null: id("MPI_ARGVS_NULL"),
        };
        e
    }

    fn facts_mut(&mut self) -> &mut Facts {
        Arc::make_mut(&mut self.facts)
    }

    /// What recognising calls needs to know. Changes when MPI starts.
    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// The id of an object that was made, by its handle.
    pub fn id_of(&self, class: Class, handle: u64) -> Option<u32> {
        let code = match class {
            Class::Comm => self.comms.code(handle),
            _ => self.objects.known_code(class, handle),
        };
        match code? {
            Code::Id(id) => Some(id),
            Code::Constant(_) => None,
        }
    }

    /// Changes whenever an object other than a request is made or freed.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a request was made that receives from any source or with any tag.
    pub fn has_wild(&self) -> bool {
        self.wild
    }

    /// Whether a call receives from any source or with any tag.
    fn asks_for_any<H: Host>(&self, call: &Call<'_, H>) -> bool {
        let Numbers { any_source, any_tag, .. } = self.facts.numbers;
        call.f.params.iter().enumerate().any(|(i, p)| match p.kind {
            _ if p.dir != Dir::In || !p.len.is_empty() => false,
            Kind::Peer(_) => call.number(i) == any_source,
            Kind::Tag => call.number(i) == any_tag,
            _ => false,
        })
    }

    fn address(&mut self, name: &str, id: u16, value: usize) {
        match name {
            "MPI_BOTTOM" | "MPI_IN_PLACE" | "MPI_BUFFER_AUTOMATIC" => self.buffers.push((value, id)),
            "MPI_UNWEIGHTED" | "MPI_WEIGHTS_EMPTY" | "MPI_ERRCODES_IGNORE" => {
                self.facts_mut().arrays.push((value, id));
            }
            _ => {}
        }
    }

    fn number(&mut self, name: &str, value: i64) {
        let n = &mut self.facts_mut().numbers;
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

    /// What [`Encoder::start`] asks of the host only for how the library's handles look: for encoders that are copies of
    /// one.
    pub fn prepare<H: Host>(&mut self, host: &H) {
        self.facts_mut().plans = Plans::new(host);
    }

    /// MPI is up: the predefined communicators can be asked about.
    pub fn start<H: Host>(&mut self, host: &mut H) {
        if self.facts.plans.is_empty() {
            self.prepare(host);
        }
        for (handle, id) in std::mem::take(&mut self.predefined_comms) {
            let info = host.comm(handle);
            if constant_by_id(id).is_some_and(|c| c.name == "MPI_COMM_WORLD") {
                self.facts_mut().world_rank = i64::from(info.rank);
            }
            self.comms.predefine(handle, id, info);
        }
    }

    /// Keeps what the call is about to overwrite. Runs before it; need not for functions that overwrite nothing.
    #[inline]
    pub fn before<H: Host>(
        &mut self,
        host: &mut H,
        tables: &mut dyn Tables,
        f: &'static Function,
        args: &[usize],
        before: &mut Before,
    ) {
        if before.completes(&self.facts, host, f, args) {
            tables.forget_set();
        } else {
            before.clear();
            self.before_any(host, tables, f, args, before);
        }
    }

    fn before_any<H: Host>(
        &mut self,
        host: &mut H,
        tables: &mut dyn Tables,
        f: &'static Function,
        args: &[usize],
        before: &mut Before,
    ) {
        let nothing = Before::default();
        let mut call = Call::new(host, tables, f, args, Outcome::Success, &nothing);
        for (i, p) in f.params.iter().enumerate() {
            if p.kind == Kind::Buffer && p.effect == Effect::Free {
                before.place = call.host.locate(args[i]);
            }
            if p.dir != Dir::InOut || args[i] == 0 {
                continue;
            }
            match p.kind {
                Kind::Handle(class) => {
                    for k in 0..self.count(&mut call, i) {
                        let handle = call.host.handle_at(class, args[i], k);
                        before.handles.push(handle);
                        if p.effect == Effect::Free
                            && let Some(code) = self.ending(class, handle, call.tables.thread())
                        {
                            before.ending.push((class, handle, code));
                        }
                    }
                }
                kind if kind.is_number() => {
                    for k in 0..self.count(&mut call, i) {
                        before.numbers.push(call.element(i, k));
                    }
                }
                _ => {}
            }
        }
    }

    /// Encodes a finished call. `tables` are the requests that the calling thread knows, `result` is what the call returned.
    #[expect(clippy::too_many_arguments, reason = "a call has that many sides")]
    pub fn after<H: Host>(
        &mut self,
        host: &mut H,
        tables: &mut dyn Tables,
        f: &'static Function,
        args: &[usize],
        result: i64,
        before: &Before,
        record: &mut Record,
    ) {
        let end = match f.returns {
            Returns::Code if result == 0 => Outcome::Success,
            Returns::Code if result == self.facts.numbers.err_in_status => Outcome::FailedWithStatuses,
            Returns::Code => Outcome::Failed,
            _ => Outcome::Success,
        };
        record.begin(f.id, end.byte());
        tables.next_call();
        self.scratch.undefined.clear();
        let mut call = Call::new(host, tables, f, args, end, before);
        for i in 0..f.params.len() {
            self.parameter(&mut call, i, record);
        }
        let has_status = || f.params.iter().any(|p| p.kind == Kind::Status);
        if self.scratch.undefined.iter().any(|of| of.goes_by_what_was_set()) && has_status() {
            call.tables.forget_set();
        }
        if end != Outcome::Success {
            for &(class, handle, code) in &before.ending {
                self.stays(class, handle, code);
            }
        }
        if call.shape.has_result(end) {
            record.lane(result);
        }
        if call.shape.counts_polls(end) {
            record.count_polls();
        }
    }

    fn parameter<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, record: &mut Record) {
        let (p, step) = (&call.f.params[i], &call.shape.steps[i]);
        if step.form == Form::Nothing || (call.end == Outcome::Failed && step.output) {
            return;
        }
        let dynamic = step.dynamic;
        let fixed = p.when.iter().filter(|&&c| Some(c) != dynamic).all(|&c| self.holds(call, c));
        if !fixed {
            record.tag(wire::ABSENT);
            return;
        }
        if call.end == Outcome::Failed && !p.len.is_empty() && !self.may_read(call, i) {
            record.tag(wire::ABSENT);
            return;
        }
        let live = dynamic.is_none_or(|c| self.holds(call, c));
        match step.form {
            Form::Nothing => {}
            Form::Object(class) => self.object(call, i, class, record),
            Form::NewComm(_) | Form::Codes { .. }
                if call.args[i] == 0 && (p.dir != Dir::In || !step.is_one()) =>
            {
                record.tag(wire::NULL)
            }
            Form::NewComm(scope) => self.new_comm(call, i, scope, record),
            Form::Codes { .. } => self.codes(call, i, live, record),
            Form::Statuses(of) => self.status(call, i, of, live, record),
            Form::Pointer => self.pointer(call, i, record),
            Form::Text => self.string(call, i, record),
            Form::Texts => self.strings(call, i, record),
            Form::Function => self.function(call, i, record),
            Form::Number => record.lane(call.number(i)),
            Form::Numbers { .. } if step.is_one() => self.scalar(call, i, live, record),
            Form::Numbers { .. } => self.array(call, i, live, record),
        }
    }

    fn pointer<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize, record: &mut Record) {
        let p = &call.f.params[i];
        match p.kind {
            // No memory is given back, or none is handed out: that is not MPI_BOTTOM, which is null too.
            Kind::Buffer if p.effect == Effect::Free && call.args[i] == 0 => record.tag(wire::NULL),
            Kind::Buffer if p.effect == Effect::Free => {
                self.place(call.args[i], record, || call.before.place)
            }
            Kind::Buffer => self.buffer(call, call.args[i], record),
            Kind::Value => self.value(call, call.args[i], record),
            Kind::OutPointer | Kind::OutAttribute if call.args[i] == 0 => record.tag(wire::NULL),
            Kind::OutAttribute => self.value(call, call.host.pointer_at(call.args[i], 0), record),
            Kind::OutPointer => match call.host.pointer_at(call.args[i], 0) {
                0 => record.tag(wire::NULL),
                pointer => self.buffer(call, pointer, record),
            },
            _ => {}
        }
    }

    /// Whether an array of a call that failed is there as long as it was said to be: that may be why it failed.
    fn may_read<H: Host>(&mut self, call: &mut Call<'_, H>, i: usize) -> bool {
        let p = &call.f.params[i];
        let pointer = call.args[i];
        if pointer == 0
            || p.dir == Dir::Out
            || self.facts.arrays.iter().any(|&(address, _)| address == pointer)
        {
            return true;
        }
        // Lengths that stand in other arrays are no better than those.
        if p.len.iter().any(|rule| matches!(rule, Len::Sum(_) | Len::Last(_))) {
            return false;
        }
        let width = match p.kind {
            Kind::Handle(class) => call.host.handle_size(class),
            kind if kind.is_number() && !p.ctype.is_wide() => 4,
            _ => 8,
        };
        let bytes = self.count(call, i).checked_mul(width);
        bytes.is_some_and(|bytes| call.host.readable(pointer, bytes))
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
                if inter { root == self.facts.numbers.root } else { root == rank }
            }
            Cond::AtLeaf(j) => {
                let (root, _, inter) = rooted(self, call, j);
                !inter || (root != self.facts.numbers.root && root != self.facts.numbers.proc_null)
            }
            Cond::NotNull(j) => call.number(usize::from(j)) != self.facts.numbers.proc_null,
            Cond::NotInPlace(j) => call.args[usize::from(j)] != self.facts.numbers.in_place,
            Cond::Flag(j) => call.number(usize::from(j)) != 0,
            Cond::Defined(j) => call.number(usize::from(j)) != self.facts.numbers.undefined,
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
            if call.end != Outcome::Success || self.comms.null(handle).is_some() {
                return None;
            }
            let info = call.host.comm(handle);
            let comm = self.comms.make(info, call.tables.thread());
            self.comms.bind(handle, comm);
            self.generation += 1;
        }
        self.comms.get_mut(handle, call.tables.thread())
    }

    /// The caller's rank in the communicator or window of parameter `j`.
    fn base_rank<H: Host>(&mut self, call: &mut Call<'_, H>, j: usize) -> i64 {
        match call.f.params[j].kind {
            Kind::Handle(Class::Win) => {
                let win = call.host.handle(Class::Win, call.args[j]);
                if let Some(&rank) = self.wins.get(&win) {
                    return rank;
                }
                let rank = if call.end == Outcome::Success { i64::from(call.host.win_rank(win)) } else { 0 };
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
                Len::Asked(amount, j) => self.asked(call, amount, usize::from(j)),
                Len::Neighbours(comm, rank) => {
                    let comm = call.host.handle(Class::Comm, call.args[usize::from(comm)]);
                    call.host.neighbours_of(comm, call.number(usize::from(rank))) as i64
                }
            };
            shortest = shortest.min(usize::try_from(n).unwrap_or(0));
        }
        shortest
    }

    fn asked<H: Host>(&mut self, call: &mut Call<'_, H>, amount: Amount, j: usize) -> i64 {
        let of = match call.f.params[j].kind {
            Kind::Handle(class) => call.host.handle(class, call.args[j]),
            _ => call.number(j) as u64,
        };
        // A large form counts some of it as something else.
        call.host.amount(amount, of, call.f.name.ends_with("_c")) as i64
    }

    fn topology<H: Host>(&mut self, call: &mut Call<'_, H>, j: usize) -> Topology {
        let handle = call.host.handle(Class::Comm, call.args[j]);
        let Some(known) = self.adopt(call, handle) else { return Topology::default() };
        if let Some(topology) = known.topology {
            return topology;
        }
        let topology = call.host.topology(handle);
        if let Some(comm) = self.comms.get_mut(handle, call.tables.thread()) {
            comm.topology = Some(topology);
        }
        topology
    }
}

/// The sets of constants that are handles.
const CLASSES: [(&str, Class); 15] = [
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
    ("tool_enum", Class::ToolEnum),
    ("tool_cvar", Class::ToolCvar),
    ("tool_pvar", Class::ToolPvar),
    ("tool_pvar_session", Class::ToolPvarSession),
];

#[cfg(test)]
mod room {
    use super::Before;

    #[test]
    fn statuses_that_there_is_no_memory_for_are_done_without() {
        let mut before = Before::default();
        let place = before.room(100);
        assert_ne!(place, 0);
        for bytes in [1 << 60, usize::MAX] {
            assert_eq!(before.room(bytes), 0);
        }
        // What there was stays.
        assert_eq!((before.room(8), before.room(100)), (place, place));
        assert_ne!(before.room(1 << 20), 0);
    }
}
