//! One rank's calls, made again.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use refrain_fold::FastMap;
use refrain_model::{Address, Call, Class, Dir, Effect, Kind, Param, Returns, Scope, Value};
use refrain_mpi::{Abi, Library};
use refrain_views::value::shown;

use crate::ahead::{Ahead, Match, after, before, completed, is_followed, is_wild, own_match, started};
use crate::check;
use crate::drawn::messages::{self, Messages};
use crate::dynamic::Places;
use crate::inputs::Inputs;
use crate::memory::Memory;
use crate::objects::Objects;
use crate::pace::Pace;
use crate::perform::is_failed_poll;
use crate::reach::{self, Reach, Shape};
use crate::several::{Not, Several};
use crate::stand_ins;
use crate::watch::Watch;
use crate::wild::Wild;
use crate::windows::Windows;
use crate::words::{self, Named, Room, Surroundings, Unmade};

/// One rank.
pub struct Process {
    pub library: Library,
    pub abi: Abi,
    pub world: u32,
    /// What comes before MPI's functions, where the replay itself is traced.
    pub traced: Option<Traced>,
    pub check: bool,
    /// Polls that had found nothing are made.
    pub polls: bool,
    /// Where the program's files are put.
    pub files: PathBuf,
    /// The trace was recorded on a library of another kind.
    pub foreign: bool,
    /// Receives were cancelled.
    pub cancels: bool,
    /// Where memory of other ranks lies, if calls name it by its address.
    pub places: Option<Places>,
    /// What its threads tell each other, where there are several.
    pub several: Option<Several>,
    /// Messages, where it is drawn who sends what to whom.
    pub(crate) drawn: Option<Mutex<Messages>>,
    known: Mutex<Known>,
    /// By where their names lie.
    functions: Mutex<FastMap<usize, Option<usize>>>,
    names: Mutex<FastMap<usize, Named>>,
}

/// The tracer's functions, which call ours in place of MPI's.
#[derive(Debug, Clone, Copy)]
pub struct Traced {
    pub function: fn(&str) -> Option<*const ()>,
}

#[derive(Default)]
pub(crate) struct Known {
    pub(crate) wild: Wild,
    pub(crate) inputs: Inputs,
    objects: Objects,
    pub(crate) memory: Memory,
    /// What elements of datatypes touch, by handle.
    shapes: FastMap<u64, Shape>,
    pub(crate) windows: Windows,
    pub(crate) last_window: Option<u64>,
    /// What `MPI_Alloc_mem` has given and `MPI_Free_mem` has not taken back; and of which the trace names no place.
    pub(crate) allocated: HashSet<usize>,
    pub(crate) nameless: Vec<usize>,
    /// Requests that are not over.
    pub(crate) live: HashSet<u32>,
    /// Generalised requests that are not complete.
    pub(crate) going_on: HashSet<u32>,
    /// Partitions of requests that have some.
    pub(crate) partitions: FastMap<u32, i128>,
    pub(crate) phase: Phase,
    /// What the arguments of operations that are not complete point at, by request.
    held: FastMap<u32, Room>,
    /// Where requests lie.
    pub(crate) cells: FastMap<u32, Box<u64>>,
    /// Collective calls that are not over.
    pub(crate) together: HashSet<u32>,
    /// Whether files were opened to be read, and to be written.
    pub(crate) modes: FastMap<u32, (bool, bool)>,
    /// Of files with a view: bytes of what offsets count, and how far what is repeated reaches.
    pub(crate) units: FastMap<u32, (i128, i128)>,
    /// Error codes that libraries made up: the recorded one, and that of this run.
    pub(crate) codes: HashMap<i64, i64>,
    /// Requests that functions of the program complete, and messages of nobody: libraries differ in their statuses.
    pub(crate) unsent: HashSet<u32>,
    /// Requests that survive completion.
    persistent: HashSet<u32>,
}

/// Whether MPI is up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Before,
    Up,
    /// By a session; `MPI_Init` may come.
    Sessions,
    Finalized,
}

/// What became of a thread's calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub made: u64,
    /// Polls that had found nothing: they were not made.
    pub failed_polls: u64,
    /// Receives from any source of which the trace does not tell who sent.
    pub unmatched: u64,
    /// Calls that had another outcome than in the trace, and the first of them.
    pub different: u64,
    pub first_different: Vec<String>,
}

impl Report {
    pub fn add(&mut self, other: Report) {
        self.made += other.made;
        self.failed_polls += other.failed_polls;
        self.unmatched += other.unmatched;
        self.different += other.different;
        self.first_different.extend(other.first_different);
        self.first_different.truncate(MOST_TOLD);
    }
}

/// So many differences are told.
const MOST_TOLD: usize = 8;

/// A call that is about to be made by the tracer's wrapper.
struct Pending<'a> {
    process: &'a Process,
    call: &'a Call,
    words: &'a [usize],
    matched: &'a [Option<Match>],
}

thread_local! {
    /// The call failed, as it had to, and is not made.
    pub(crate) static VOID: Cell<bool> = const { Cell::new(false) };
    static PENDING: Cell<*const Pending<'static>> = const { Cell::new(std::ptr::null()) };
}

/// What a tracer calls in place of a function of MPI: the call that this thread has told it of. Of what it passes only
/// statuses count: it may want some where the program does not.
pub extern "C-unwind" fn instead(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    g: usize,
    h: usize,
    i: usize,
    j: usize,
    k: usize,
    l: usize,
    m: usize,
) -> usize {
    let pending = PENDING.replace(std::ptr::null());
    // SAFETY: set by `Thread::issue` on this thread, which waits for the call in which this is called.
    let Some(pending) = (unsafe { pending.as_ref() }) else { return 16 };
    let passed = [a, b, c, d, e, f, g, h, i, j, k, l, m];
    let status = |p: &Param| p.kind == Kind::Status && p.dir == Dir::Out;
    let Some(at) = pending.call.function.params.iter().position(status) else {
        return pending.process.perform(pending.call, pending.words, pending.matched);
    };
    let mut words = pending.words.to_vec();
    words[at] = passed[at];
    pending.process.perform(pending.call, &words, pending.matched)
}

/// The same for those that give a clock's reading.
pub extern "C-unwind" fn instead_of_clock() -> f64 {
    let pending = PENDING.replace(std::ptr::null());
    // SAFETY: as in `instead`.
    let Some(pending) = (unsafe { pending.as_ref() }) else { return 0.0 };
    pending.process.clock(pending.call.function.name)
}

impl Process {
    pub fn new(library: Library, abi: Abi, world: u32) -> Process {
        let mut known = Known::default();
        known.objects.made(&Value::Comm("world".into()), abi.comm_world);
        known.objects.made(&Value::Comm("self".into()), abi.comm_self);
        let known = Mutex::new(known);
        let files = PathBuf::new();
        let (several, drawn, functions, names) = (None, None, Mutex::default(), Mutex::default());
        let (check, polls, foreign, cancels, traced) = (false, false, false, false, None);
        Process {
            library,
            abi,
            world,
            traced,
            check,
            polls,
            files,
            foreign,
            cancels,
            places: None,
            several,
            drawn,
            known,
            functions,
            names,
        }
    }

    /// What is in buffers depends on it.
    pub fn set_seed(&self, seed: u64) {
        self.known().memory.seed = seed;
    }

    /// A request that is complete from the beginning.
    pub fn never_made(&self, request: &Value) {
        self.known().objects.made(request, self.abi.request_null);
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is such an object.
    pub(crate) fn has(&self, object: &Value) -> bool {
        self.known().objects.get(object).is_some()
    }

    pub(crate) fn is_persistent(&self, request: u32) -> bool {
        self.known().persistent.contains(&request)
    }

    /// A function of the library itself.
    fn real(&self, name: &'static str) -> Option<*const ()> {
        let look_up = || {
            let profiling = format!("P{name}");
            let found = self.library.symbol(&profiling).or_else(|| self.library.symbol(name));
            found.map(|found| found as usize)
        };
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.entry(name.as_ptr() as usize).or_insert_with(look_up).map(|found| found as *const ())
    }

    /// Calls the library. A function that it has not is an error, as it would be to the program.
    pub(crate) fn real_call(&self, name: &'static str, words: &[usize]) -> usize {
        match self.real(name) {
            // SAFETY: the words were made for this function.
            Some(function) => unsafe { words::call(function, words) },
            None => 16,
        }
    }

    /// What elements of a datatype touch, as MPI says.
    fn asked(&self, datatype: u64) -> Option<Shape> {
        let ask = |name: &'static str| {
            let (mut first, mut length) = (0i64, 0i64);
            let cells = [&mut first, &mut length].map(|cell| std::ptr::from_mut(cell) as usize);
            let made = self.real_call(name, &[datatype as usize, cells[0], cells[1]]) == 0;
            made.then_some((first, length))
        };
        let ((lower, extent), (first, length)) =
            (ask("MPI_Type_get_extent")?, ask("MPI_Type_get_true_extent")?);
        let mut size = 0i64;
        let words = [datatype as usize, std::ptr::from_mut(&mut size) as usize];
        let size = (self.real_call("MPI_Type_size_x", &words) == 0).then_some(size)?;
        // Of a type without data a library may say anything.
        let data = if size == 0 { (0, 0) } else { (first, first.checked_add(length)?) };
        Some(Shape { lower, extent, data, size, ..Shape::plain(0) })
    }

    /// The same, of one that nobody has asked for before.
    fn shape_of(&self, datatype: u64) -> Shape {
        let known = self.known().shapes.get(&datatype).cloned();
        known.unwrap_or_else(|| {
            let shape = self.asked(datatype).unwrap_or(Shape::plain(1 << 61));
            self.known().shapes.insert(datatype, shape.clone());
            shape
        })
    }

    /// Of the datatypes that a call has made or told of.
    fn shapes_made(&self, call: &Call, words: &[usize]) -> Vec<(u64, Shape)> {
        let mut shapes = Vec::new();
        for ((p, value), word) in call.function.params.iter().zip(&call.args).zip(words) {
            let told = p.dir == Dir::Out && p.kind == Kind::Handle(Class::Datatype);
            if !told || call.result != Value::Int(0) || *word == 0 {
                continue;
            }
            let outline = reach::of_datatype(call, &Around { process: self }).ok().flatten();
            // What it was made of is not made of more.
            let of =
                call.function.index_of("datatype").map(|at| Around { process: self }.shape(&call.args[at]));
            let list = if let Value::List(list) = value { &list[..] } else { std::slice::from_ref(value) };
            for at in 0..list.len() {
                // SAFETY: as many elements as the list has lie there.
                let handle = unsafe { words::read(*word as *const u8, at, words::width_of(p, &self.abi)) };
                // A call that failed has made none.
                if handle == 0 || handle == self.abi.datatype_null {
                    continue;
                }
                let mut shape = self.asked(handle).unwrap_or(Shape::plain(1 << 61));
                if let Some(outline) = &outline {
                    (shape.depth, shape.pieces) = (outline.depth, outline.pieces);
                    shape.parts.clone_from(&outline.parts);
                } else if let Some(of) = &of {
                    (shape.depth, shape.pieces) = (of.depth, of.pieces);
                }
                shapes.push((handle, shape));
            }
        }
        shapes
    }

    fn clock(&self, name: &'static str) -> f64 {
        let Some(function) = self.real(name) else { return 0.0 };
        // SAFETY: `MPI_Wtime` and `MPI_Wtick` take nothing and give a double.
        let function = unsafe { std::mem::transmute::<*const (), extern "C-unwind" fn() -> f64>(function) };
        function()
    }
}

/// A receive that gets no message, or a send that sends none.
fn is_with_nobody(call: &Call) -> bool {
    let peer = call.function.index_of("source").or_else(|| call.function.index_of("dest"));
    peer.is_some_and(|at| call.args[at] == Value::Name("MPI_PROC_NULL"))
}

/// What the words of a call depend on.
pub(crate) struct Around<'p> {
    pub(crate) process: &'p Process,
}

impl Surroundings for Around<'_> {
    fn abi(&self) -> &Abi {
        &self.process.abi
    }

    fn object(&self, value: &Value) -> Option<u64> {
        self.process.known().objects.get(value)
    }

    fn place(&self, address: Address, reach: Reach) -> io::Result<usize> {
        self.process.known().memory.place(address, reach)
    }

    fn somewhere(&self, reach: Reach) -> io::Result<usize> {
        let segment = u32::MAX;
        let address = Address { area: refrain_model::Area::Other, device: u32::MAX, segment, offset: 0 };
        self.process.known().memory.place(address, reach)
    }

    fn is_there(&self, touched: Reach) -> bool {
        self.process.known().memory.is_there(touched)
    }

    fn named(&self, name: &'static str) -> Named {
        let abi = &self.process.abi;
        let look_up = || {
            let (pointer, handle) = (abi.pointer(name), abi.handle(name));
            Named { pointer, handle, number: abi.constant_int(name) }
        };
        let mut names = self.process.names.lock().unwrap_or_else(PoisonError::into_inner);
        *names.entry(name.as_ptr() as usize).or_insert_with(look_up)
    }

    fn world(&self) -> usize {
        self.process.world as usize
    }

    fn address(&self, then: i64) -> i64 {
        self.process.known().memory.now(then)
    }

    fn request(&self, id: u32) -> *mut u8 {
        let mut known = self.process.known();
        std::ptr::from_mut(&mut **known.cells.entry(id).or_default()).cast()
    }

    fn shape(&self, datatype: &Value) -> Shape {
        let handle = match datatype {
            Value::Object(Class::Datatype, _) => self.object(datatype),
            Value::Name("MPI_DATATYPE_NULL") => None,
            Value::Name(name) => self.named(name).handle,
            _ => None,
        };
        // Of none that is not there anything is looked at.
        handle.map_or(Shape::plain(1), |handle| self.process.shape_of(handle))
    }

    fn members(&self, comm: &Value, neighbours: bool) -> u64 {
        let handle = match comm {
            Value::Name(name) => self.named(name).handle,
            comm => self.object(comm),
        };
        let handle = handle.filter(|handle| *handle != self.process.abi.comm_null);
        handle.map_or(0, |handle| match neighbours {
            true => self.process.neighbours(handle),
            false => self.process.members(handle),
        })
    }

    fn dimensions(&self, comm: &Value) -> u64 {
        let handle = match comm {
            Value::Name(name) => self.named(name).handle,
            comm => self.object(comm),
        };
        let handle = handle.filter(|handle| *handle != self.process.abi.comm_null);
        handle.map_or(0, |handle| self.process.dimensions(handle))
    }
}

/// A thread's calls.
pub struct Thread<'p, 't> {
    process: &'p Process,
    ahead: Ahead<'t>,
    pub pace: Pace,
    /// Persistent requests of which is known before what they get each time.
    followed: HashSet<u32>,
    /// Those of the last call, for the next one.
    room: Room,
    words: Vec<usize>,
    /// Which of the rank's threads it is.
    pub number: u32,
    pub report: Report,
}

impl<'p, 't> Thread<'p, 't> {
    pub fn new(process: &'p Process, ahead: Ahead<'t>) -> Thread<'p, 't> {
        let pace = Pace::new(0.0, false, Watch::nobody());
        let (room, words, report) = (Room::default(), Vec::new(), Report::default());
        Thread { process, ahead, pace, followed: HashSet::new(), room, words, number: 0, report }
    }

    /// A call is not made. Threads that wait until all have used something count it.
    pub fn passed_over(&self, call: &Call) {
        if let Some(several) = &self.process.several {
            several.made(self.number, call);
        }
    }

    /// Makes a call.
    pub fn issue(&mut self, call: &Call) -> Result<(), String> {
        let process = self.process;
        if is_failed_poll(call) && process.traced.is_none() && !process.polls {
            self.report.failed_polls += 1;
            self.passed_over(call);
            return Ok(());
        }
        let matched = self.matched(call)?;
        let (mut room, mut words) = (std::mem::take(&mut self.room), std::mem::take(&mut self.words));
        let mut make_words = || {
            room.clear();
            process.allows(call).map_err(|why| Unmade::Time { why })?;
            words::words(call, &Around { process }, &mut room, &mut words)
        };
        match &process.several {
            None => make_words().map_err(|why| why.to_string())?,
            Some(several) => {
                let not = |why: Unmade| match why {
                    // Another thread may make it.
                    Unmade::Object { .. } => Not::Yet(why.to_string()),
                    why => Not::Ever(why.to_string()),
                };
                let thread = (self.number, self.pace.watch());
                several.when_ready(process, thread, call, || make_words().map_err(not))?;
            }
        }
        let mut is_void = room.is_void;
        if let (false, Err(why)) = (is_void, process.is_sound(call, &words)) {
            // It failed then too: that a library says so is not worth a crash.
            is_void = call.result != Value::Int(0);
            if !is_void {
                return Err(why);
            }
        }
        match process.drawn.is_some() {
            false => self.pace.begin(),
            true => self.pace.begin_after(messages::LOOK, || process.let_messages_come()),
        }
        process.finds_address(call, &words)?;
        VOID.set(is_void);
        stand_ins::listen();
        let code = self.make(call, &words, &matched);
        VOID.set(false);
        // It may have failed although it says that it has not: then it has made nothing.
        let failed = code != 0 || stand_ins::have_heard();
        if !failed && call.result == Value::Int(0) {
            process.has_made(call, &words);
        }
        self.pace.end();
        self.report.made += 1;
        if process.check || !self.agrees_on_code(call, code) {
            self.compare(call, &words, code);
        }
        let failed = failed && call.result == Value::Int(0);
        self.room = self.learn(call, &words, room, failed).unwrap_or_default();
        self.words = words;
        if let Some(several) = &process.several {
            several.made(self.number, call);
        }
        Ok(())
    }

    /// Who sent what a receive from any source got; of a start, what each of these gets that it starts.
    fn matched(&mut self, call: &Call) -> Result<Vec<Option<Match>>, String> {
        if self.process.drawn.is_some() {
            return Ok(Vec::new());
        }
        let starts = started(call);
        if !starts.is_empty() {
            let mut all = Vec::new();
            for id in starts {
                let known = self.process.known().wild.is_from_any_source(id);
                let Some(wild) = known else { continue };
                // One that another thread has made is not read ahead of.
                let found = match self.followed.contains(&id) {
                    true => self.ahead.next_match().map_err(|error| error.to_string())?,
                    false => None,
                };
                self.report.unmatched += u64::from(wild && found.is_none());
                all.push(found);
            }
            return Ok(all);
        }
        if !is_followed(call, self.process.cancels) || is_failed_poll(call) || call.function.persistent {
            return Ok(Vec::new());
        }
        let blocks = !call
            .function
            .params
            .iter()
            .any(|p| p.kind == Kind::Handle(Class::Request) && p.effect == Effect::Create);
        let found = if blocks {
            own_match(call)
        } else {
            self.ahead.next_match().map_err(|error| error.to_string())?
        };
        self.report.unmatched += u64::from(found.is_none() && is_wild(call));
        Ok(vec![found])
    }

    fn make(&self, call: &Call, words: &[usize], matched: &[Option<Match>]) -> i64 {
        let process = self.process;
        let clock = call.function.returns == Returns::Clock;
        let traced = process.traced.and_then(|traced| (traced.function)(call.function.name));
        let Some(function) = traced else {
            if clock {
                process.clock(call.function.name);
                return 0;
            }
            return i64::from(process.perform(call, words, matched) as i32);
        };
        let pending = Pending { process, call, words, matched };
        PENDING.set(std::ptr::from_ref(&pending).cast());
        // SAFETY: the words were made for this function; a clock takes none.
        let word = unsafe { words::call(function, words) };
        PENDING.set(std::ptr::null());
        i64::from(word as i32)
    }

    /// What the call has made, and what it has done away with. Gives the room back, unless MPI may still look at it.
    fn learn(&mut self, call: &Call, words: &[usize], room: Room, failed: bool) -> Option<Room> {
        let process = self.process;
        let abi = &process.abi;
        let shapes = process.shapes_made(call, words);
        let mut known = process.known();
        known.shapes.extend(shapes);
        let mut request = None;
        let mut room = Some(room);
        for ((p, value), word) in call.function.params.iter().zip(&call.args).zip(words) {
            let cells = *word as *const u8;
            let class = match p.kind {
                Kind::Handle(class) => class,
                Kind::OutPointer => {
                    // SAFETY: a cell of ours, into which MPI has put a pointer.
                    let place = unsafe { cells.cast::<usize>().read_unaligned() };
                    known.allocates(call, words, after(value), place);
                    continue;
                }
                Kind::Buffer if p.effect == Effect::Free => {
                    if let Value::Address(address) = value {
                        known.memory.is_gone(*address);
                    }
                    continue;
                }
                _ => continue,
            };
            let width = words::width_of(p, abi);
            let list = match (p.dir, value) {
                // Nothing was asked for.
                _ if *word == 0 => &[][..],
                (Dir::In, _) => &[][..],
                (_, Value::List(list)) => &list[..],
                (_, one) => std::slice::from_ref(one),
            };
            // A call that failed, and had not, has made nothing: what uses it is refused.
            let makes = matches!(p.effect, Effect::Create | Effect::CreateComm(_) | Effect::Alias);
            let list = if failed && makes { &[][..] } else { list };
            for (at, one) in list.iter().enumerate() {
                match p.effect {
                    // Other threads may not have used it yet: another one of this id is the same.
                    Effect::Free if process.is_kept(one) => {}
                    Effect::Free => {
                        if class == Class::Datatype
                            && let Some(handle) = known.objects.get(before(one))
                        {
                            known.shapes.remove(&handle);
                        }
                        known.objects.gone(before(one));
                    }
                    Effect::Complete | Effect::Start => {}
                    Effect::CreateComm(Scope::ParentLater(..)) => {
                        // The handle is there when the request is complete: the cell stays for ever.
                        std::mem::forget(room.take());
                        // SAFETY: never given back; handles of four bytes stand in a cell of eight that was zero.
                        known.objects.made_later(after(one), unsafe { &*cells.cast::<u64>() });
                    }
                    Effect::None | Effect::Create | Effect::CreateComm(_) | Effect::Alias => {
                        // SAFETY: as many elements as the list has lie there.
                        let handle = unsafe { words::read(cells, at, width) };
                        match p.effect {
                            // An alias is freed as what it stands for is, once more.
                            Effect::Create | Effect::CreateComm(_) | Effect::Alias => {
                                known.objects.made(after(one), handle);
                            }
                            _ => known.objects.seen(after(one), handle),
                        }
                        if let (Class::Request, Value::Object(_, id)) = (class, after(one)) {
                            request = Some(*id);
                        }
                    }
                }
            }
        }
        if let ("MPI_Get_address" | "MPI_Address", [Value::Address(place), Value::Int(then)]) =
            (call.function.name, &call.args[..])
        {
            // SAFETY: a cell of ours, in which the address is.
            let now = unsafe { (words[1] as *const usize).read_unaligned() };
            known.memory.was_at(*place, *then, now);
            if let Some(places) = &process.places {
                let base = |address: i64| address.wrapping_sub(place.offset);
                // Who needs it says that it is not there.
                let _ = places.tell(base(*then), base(now as i64));
            }
        }
        let freed = call.function.name == "MPI_Request_free";
        for (id, _) in completed(call) {
            if freed || !known.persistent.contains(&id) {
                let persistent = known.persistent.remove(&id);
                if persistent {
                    self.followed.remove(&id);
                    known.wild.forget(id);
                }
                known.together.remove(&id);
                let room = known.held.remove(&id);
                if freed && !persistent {
                    // MPI may still look at it.
                    std::mem::forget(room);
                } else {
                    known.live.remove(&id);
                    known.partitions.remove(&id);
                }
                known.unsent.remove(&id);
                known.wild.is_over(id);
                known.objects.gone(&Value::Object(Class::Request, id));
            }
        }
        if let Some(request) = request {
            known.live.insert(request);
            if let Some(at) = call.function.index_of("partitions") {
                known.partitions.insert(request, reach::number(call, at));
            }
            if call.function.families.contains(&"coll") && !call.function.persistent {
                known.together.insert(request);
            }
            if call.function.name == "MPI_Grequest_start" {
                known.going_on.insert(request);
            }
            if call.function.persistent {
                known.persistent.insert(request);
            }
            if call.function.name == "MPI_Grequest_start" || is_with_nobody(call) {
                known.unsent.insert(request);
            }
            if let Some(room) = room.take_if(|room| !room.is_empty()) {
                known.held.insert(request, room);
            }
            drop(known);
            if call.function.persistent && is_followed(call, process.cancels) {
                self.followed.insert(request);
                process.note_wild(call, request, words);
            }
        }
        room
    }

    fn agrees_on_code(&self, call: &Call, code: i64) -> bool {
        call.function.returns != Returns::Code || (code == 0) == (call.result == Value::Int(0))
    }

    /// What came out, against what the trace says.
    fn compare(&mut self, call: &Call, words: &[usize], code: i64) {
        let mut differs = Vec::new();
        if !self.agrees_on_code(call, code) {
            let why = crate::errors::text(self.process, code);
            differs.push(format!("returned {code}{why}, in the trace {}", shown(&call.result)));
        }
        differs.extend(check::differences(self.process, call, words));
        if !differs.is_empty() {
            self.report.different += 1;
            if self.report.first_different.len() < MOST_TOLD {
                let (number, name) = (self.pace.number(), call.function.name);
                self.report.first_different.push(format!("call {number}, {name}: {}", differs.join("; ")));
            }
        }
    }
}
