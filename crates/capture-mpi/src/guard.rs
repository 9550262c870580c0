//! The path of every call: who is let through, what is observed, and what happens when we fail.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use refrain_model::Returns;
use refrain_mpi::{Changes, Library, Owner};

use crate::apart::apart;
use crate::callbacks;
use crate::clock;
use crate::filter;
use crate::hooks::{Active, Ending, Observed, Recorder};
use crate::late;
use crate::state::{self, Code, DEEPEST, ENTRIES, Entry, Layer, Mode};

/// `MPI_ERR_OTHER` of Open MPI, `MPI_ERR_INTERN` of the MPICH ABI: an error everywhere, and in no ABI a success.
pub const MISSING: usize = 16;

/// The real function, looked up on its first use. Never null.
#[inline]
pub fn real(index: usize) -> *const () {
    let known = state::REAL[index].load(Relaxed);
    if known.is_null() { resolve(index) } else { known }
}

#[cold]
#[inline(never)]
fn resolve(index: usize) -> *const () {
    let function = &refrain_model::functions()[index];
    let mut found = look_up(function.name);
    if found.is_null() {
        say_in_pieces(&["the MPI library has no ", function.name, "; the call fails"]);
        found = match function.returns {
            Returns::Clock => missing_clock as *const (),
            _ => missing as *const (),
        };
    }
    state::REAL[index].store(found.cast_mut(), Relaxed);
    found
}

/// `PMPI_X` of the program's MPI library, else its `MPI_X`, else what comes after us in the look-up order. Allocates
/// nothing: a signal handler may have interrupted our allocator.
fn look_up(name: &str) -> *const () {
    const LONGEST: usize = 128;
    let mut profiling = [0u8; LONGEST];
    // One more at the front, and at least one zero at the end.
    assert!(name.len() + 2 <= LONGEST, "no function of MPI has a name this long");
    profiling[0] = b'P';
    profiling[1..=name.len()].copy_from_slice(name.as_bytes());
    let own = |name: &[u8]| {
        let name = std::str::from_utf8(name.strip_suffix(&[0]).unwrap_or(name)).ok()?;
        late::library().and_then(|library: &Library| library.symbol(name))
    };
    let next = |name: &[u8]| {
        // SAFETY: a terminated string; `RTLD_NEXT` is seen from this library, which is the one that calls.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) };
        (!found.is_null()).then_some(found.cast_const())
    };
    let profiling = &profiling[..name.len() + 2];
    let plain = &profiling[1..];
    let found = own(profiling).or_else(|| own(plain)).or_else(|| next(profiling)).or_else(|| next(plain));
    found.map_or(std::ptr::null(), <*const c_void>::cast)
}

extern "C" fn missing() -> usize {
    MISSING
}

extern "C" fn missing_clock() -> f64 {
    0.0
}

/// One line on stderr, in one write, so that ranks do not interleave.
pub fn say(message: &str) {
    say_in_pieces(&[message]);
}

/// The same without putting them together, which would take memory. The system call itself: the C library's function is
/// one at which a thread can be cancelled.
pub fn say_in_pieces(pieces: &[&str]) {
    const MOST: usize = 8;
    let mut list = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST];
    let all = ["refrain: "].iter().chain(&pieces[..pieces.len().min(MOST - 2)]).chain(&["\n"]);
    let mut count = 0;
    for (place, piece) in list.iter_mut().zip(all) {
        *place = libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() };
        count += 1;
    }
    // SAFETY: so many pieces, which live through the call and are only read. Where stderr is closed the line is lost, as
    // it should be.
    apart(|| unsafe { libc::syscall(libc::SYS_writev, libc::STDERR_FILENO, list.as_ptr(), count) });
}

/// Whether a call goes straight to MPI: tracing is off, or the call comes from inside MPI or from us.
#[inline]
pub fn passing(index: usize) -> bool {
    !state::watching() || (state::depth() != 0 && !is_programs(index))
}

/// As `passing`, for the calls at which a rank whose tracing has stopped still meets the others.
pub fn passing_by(index: usize) -> bool {
    !matches!(state::mode(), Mode::On | Mode::Stopped) || (state::depth() != 0 && !is_programs(index))
}

/// Whether a call that begins while the thread is marked as inside another one is the program's: MPI has called one of
/// its functions, or the thread has left the other call by a jump, or MPI's layer for Fortran does what it was called
/// for. Called once for each such call.
#[cold]
#[inline(never)]
fn is_programs(index: usize) -> bool {
    let depth = state::depth();
    let entry = state::nested();
    if depth & state::BUSY != 0 {
        if left_our_code(entry) {
            abandon();
        }
        return false;
    }
    if depth & state::FORTRAN != 0 && depth & state::PROGRAM == 0 {
        let layer = state::layer();
        let expected = depth & state::LAYER != 0 && layer.function == index;
        // What the layer calls on the way, also through tools that lie between it and us. A layer that calls nothing of
        // C may run a function of the program instead: then it counts who calls.
        let on_the_way = depth & state::LEVELS == layer.level && !layer.alone;
        if (expected || on_the_way) && lasts(layer.entry, entry) {
            if expected {
                // How the layer was entered counts, not how it calls.
                state::set_depth(depth & !state::LAYER);
            }
            return expected;
        }
    }
    if is_inner(depth, entry.caller) {
        return false;
    }
    let level = settle_jumps(entry);
    if level == 0 {
        state::nested_is_outermost();
    } else if level < DEEPEST {
        ENTRIES.with(|entries| entries[level].set(entry));
    }
    level < DEEPEST
}

/// Whether code that calls while the thread is that deep in MPI is MPI's. A callback that we do not know of (of Fortran,
/// or registered behind our back) is told by where it lies.
fn is_inner(depth: u32, caller: usize) -> bool {
    depth & state::PROGRAM == 0
        && match owner(caller) {
            Owner::Mpi => true,
            // What a layer calls, the program calls, unless we know what it called the layer for.
            Owner::Layer => depth & state::FORTRAN != 0,
            Owner::Other => false,
        }
}

/// As `is_programs`, for a call by one of Fortran's names, which notes its entry itself where it is in no other call.
#[cfg(target_arch = "x86_64")]
#[cold]
#[inline(never)]
pub fn is_programs_in_fortran(index: usize, entry: Entry) -> bool {
    let depth = state::depth();
    let layer = state::layer();
    // One name of a function may be made of another one.
    let again =
        depth & state::LAYER != 0 && layer.function == index && !layer.alone && lasts(layer.entry, entry);
    if depth & state::BUSY != 0 || again || is_inner(depth, entry.caller) {
        return false;
    }
    let level = settle_jumps(entry);
    if level != 0 && level < DEEPEST {
        ENTRIES.with(|entries| entries[level].set(entry));
    }
    level < DEEPEST
}

/// A call by one of Fortran's names that its layer made no call of C for. `args` are what it would have passed.
#[cfg(target_arch = "x86_64")]
pub fn made_in_fortran(index: usize, args: &[usize], word: usize, start: u64, end: u64) {
    let inside = Inside::enter(index);
    if !filter::passes(index) {
        if refrain_model::functions()[index].overwrites() {
            before(index, args);
        }
        after(index, args, word, start, end);
    }
    inside.leave();
}

/// The calling thread is back in the layer for Fortran that was entered so, at that level, after functions of the program
/// that ran in it. `pointer` is the frame pointer of who called the layer.
#[cfg(target_arch = "x86_64")]
pub fn back_in_layer(level: usize, entry: Entry, pointer: usize) {
    match level {
        0 => {
            state::replace_entry([entry.caller, entry.slot, pointer]);
        }
        _ => ENTRIES.with(|entries| entries[level.min(DEEPEST - 1)].set(entry)),
    }
}

/// A call by one of Fortran's names is missing.
#[cold]
pub fn count_unseen() {
    state::UNSEEN.fetch_add(1, Relaxed);
}

/// Whether a signal handler has jumped out of our own code: the call that we looked at is over, and the mark still there.
fn left_our_code(entry: Entry) -> bool {
    entry.slot != 0 && !lasts(state::entry(), entry)
}

/// What we were changing is half changed, and nobody may touch it again.
#[cold]
fn abandon() {
    if state::MODE.compare_exchange(Mode::On as u8, Mode::Stopped as u8, AcqRel, Acquire).is_ok() {
        state::TRACKING.store(false, Relaxed);
        state::JUMPS.fetch_add(1, Relaxed);
        crate::recorder::jumped();
        say(
            "tracing stopped: a signal handler has left a call by a jump while it was recorded; the program is not affected",
        );
    }
}

/// Whether a call that was entered so is not over, seen from one that is entered now.
///
/// A frame of a call that is not over lies above that of a call made inside it, and the address that the call returns
/// to still stands in it. Nothing is concluded where a stack is not the thread's own (coroutines, signal stacks).
pub fn lasts(outer: Entry, now: Entry) -> bool {
    let stack = crate::memory::stack::current();
    if !stack.contains(&outer.slot) || !stack.contains(&now.slot) {
        return true;
    }
    // SAFETY: a word of this thread's stack above what it uses now, so it is mapped; aligned as return addresses are.
    now.slot < outer.slot && unsafe { (outer.slot as *const usize).read_volatile() } == outer.caller
}

/// How this thread entered the call at that level.
fn entry_at(level: usize) -> Entry {
    match level {
        0 => state::entry(),
        _ => ENTRIES.with(|entries| entries[level.min(DEEPEST - 1)].get()),
    }
}

/// Counts the calls that this thread has left by a jump: their frames are gone, or others lie where they were. Returns
/// how many it is in.
#[cold]
fn settle_jumps(entry: Entry) -> usize {
    let depth = state::depth();
    let level = (depth & state::LEVELS) as usize;
    let mut left = level;
    while left > 0 && !lasts(entry_at(left - 1), entry) {
        left -= 1;
    }
    let layer = state::layer();
    let left_layer = depth & state::FORTRAN != 0 && !lasts(layer.entry, entry);
    if left_layer {
        state::set_layer(Layer::NONE);
    }
    if left < level {
        if depth & state::PROGRAM == 0 {
            state::TORN_OUT.store(true, Relaxed);
        }
        count_jumps((level - left) as u64);
        // It is back in a callback, or in no call at all.
        state::set_depth(if left == 0 { 0 } else { left as u32 | state::PROGRAM });
    } else if left_layer && layer.level as usize == left {
        // Out of a layer for Fortran.
        state::TORN_OUT.store(true, Relaxed);
        count_jumps(1);
        state::set_depth(if left == 0 { 0 } else { left as u32 | state::PROGRAM });
    }
    left
}

/// The program has left so many calls by a jump.
#[cold]
pub fn count_jumps(calls: u64) {
    state::JUMPS.fetch_add(calls, Relaxed);
    crate::recorder::jumped();
}

/// The calling thread ends: calls that it is still marked as inside of never return.
#[cold]
pub fn leave_all() {
    let depth = state::depth();
    let calls = (depth & state::LEVELS) + u32::from(depth & state::LAYER != 0);
    if calls != 0 && depth & state::BUSY == 0 {
        count_jumps(calls.into());
        state::set_depth(0);
    }
}

/// Whether that code is MPI's own, or ours.
pub fn is_mpi(address: usize) -> bool {
    owner(address) == Owner::Mpi
}

/// Whose code that is.
pub fn owner(address: usize) -> Owner {
    let find = |table: &Code| {
        let holding = |(memory, _): &&(Range<usize>, Owner)| memory.contains(&address);
        table.objects.iter().find(holding).map(|&(_, owner)| owner)
    };
    // SAFETY: null, or a table that was leaked below.
    let known = unsafe { state::CODE.load(Acquire).as_ref() };
    if let Some(owner) = known.and_then(find) {
        return owner;
    }
    let Some(library) = late::library() else { return Owner::Mpi };
    let changes = Changes::now();
    if known.is_some_and(|known| known.changes == changes) {
        // Code in no object was made at run time, and not by MPI.
        return Owner::Other;
    }
    // Leaked, since another thread may be reading it: one for each time that libraries came or went before new code
    // called from a callback.
    let table: &Code = Box::leak(Box::new(Code { changes, objects: library.code() }));
    state::CODE.store(std::ptr::from_ref(table).cast_mut(), Release);
    find(table).unwrap_or(Owner::Other)
}

/// As `passing_by`, for `MPI_Finalize`: nothing in MPI calls it, so a thread that is marked as inside MPI has left it by
/// a jump, or finalizes from a callback or a signal handler (`interrupting`).
pub fn passing_finalize(_index: usize) -> bool {
    !matches!(state::mode(), Mode::On | Mode::Stopped)
}

/// Marks the thread as inside MPI until dropped, also where a C++ exception or a cancellation unwinds through. Keeps the
/// depth outside.
pub struct Inside {
    depth: u32,
    function: usize,
}

impl Inside {
    #[inline]
    pub fn enter(index: usize) -> Self {
        let outside = Self { depth: state::depth(), function: state::note_inside(index + 1) };
        state::set_depth((outside.depth & (state::LEVELS | state::FORTRAN)) + 1);
        outside
    }
}

impl Inside {
    /// The call has returned.
    #[inline]
    pub fn leave(self) {
        self.restore();
        std::mem::forget(self);
    }

    #[inline]
    fn restore(&self) {
        state::note_inside(self.function);
        state::set_depth(self.depth);
    }
}

/// It never will: an exception, or the thread's end, unwinds through it.
impl Drop for Inside {
    #[cold]
    fn drop(&mut self) {
        self.restore();
        #[cfg(target_arch = "x86_64")]
        if self.depth & (state::PROGRAM | state::LAYER | state::FORTRAN) == state::FORTRAN {
            // It goes on through the layer's call that this one was made for.
            crate::fortran::left(self.depth & state::LEVELS);
        }
        count_jumps(1);
    }
}

/// Runs what observes. A panic in it ends tracing, with one line; `errno` stays what it was.
fn observe(look: impl FnOnce()) {
    // SAFETY: the thread's own errno, valid as long as the thread lives.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let kept: c_int = unsafe { *errno };
    let depth = state::depth();
    state::set_depth(depth | state::BUSY);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(look)) {
        stop(panic);
    }
    state::set_depth(depth);
    // SAFETY: as above.
    unsafe { *errno = kept };
}

#[cold]
fn stop(panic: Box<dyn Any + Send>) {
    let reason = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text.as_str(),
        _ => "an internal error",
    };
    // Another thread may fail at the same time: one of them speaks.
    if state::MODE.compare_exchange(Mode::On as u8, Mode::Stopped as u8, AcqRel, Acquire).is_ok() {
        state::TRACKING.store(false, Relaxed);
        crate::recorder::stopped();
        match state::rank() {
            Some(rank) => {
                say(&format!("tracing stopped on rank {rank}: {reason}; the program is not affected"))
            }
            None => say(&format!("tracing stopped: {reason}; the program is not affected")),
        }
    }
    // What a payload's destructor does is not ours to know.
    std::mem::forget(panic);
}

/// Runs `look` unless tracing stopped in the meantime.
fn observe_if_on(look: impl FnOnce()) {
    if state::watching() {
        observe(look);
    }
}

/// Room for arguments that are not recorded as they are.
type Room = MaybeUninit<[usize; MOST_ARGS]>;

#[inline]
fn observed_call<'a>(index: usize, args: &'a [usize], room: &'a mut Room) -> Observed<'a> {
    let function = &refrain_model::functions()[index];
    if state::depth() == 1 {
        return Observed { index, function, args, level: 0 };
    }
    observed_inside(Observed { index, function, args, level: 0 }, room)
}

/// The same of a call that a callback makes, or Fortran's layer for the program.
#[cold]
#[inline(never)]
fn observed_inside<'a>(call: Observed<'a>, room: &'a mut Room) -> Observed<'a> {
    let depth = state::depth();
    let level = (depth & state::LEVELS).saturating_sub(1) as usize;
    let call = Observed { level, ..call };
    #[cfg(target_arch = "x86_64")]
    if depth & state::FORTRAN != 0
        && let Some(args) = crate::fortran::adapt(call.index, call.args, level, room)
    {
        return Observed { args, ..call };
    }
    let _ = room;
    call
}

/// The fault that tests ask for.
#[inline]
fn fail_if_told() {
    let at = state::PANIC_AT.load(Relaxed);
    if at != 0 && state::OBSERVED.fetch_add(1, Relaxed) + 1 == at {
        panic!("a test asked for a fault at call {at}");
    }
}

/// The clock, or 0 where no time is kept.
#[inline]
pub fn ticks() -> u64 {
    if state::TIMED.load(Relaxed) { clock::now() } else { 0 }
}

/// An error code is an `int`, whose upper half in the register means nothing.
fn as_result(returns: Returns, word: usize) -> i64 {
    match returns {
        Returns::Code => i64::from(word as i32),
        Returns::Aint | Returns::Converted => word as i64,
        Returns::Clock => 0,
    }
}

/// Ahead of an ordinary function that overwrites what it is given.
#[inline(never)]
pub fn before(index: usize, args: &[usize]) {
    let mut room = Room::uninit();
    let call = observed_call(index, args, &mut room);
    observe(|| Active::before(call));
}

/// An ordinary function has returned `word`.
#[inline(never)]
pub fn after(index: usize, args: &[usize], word: usize, start: u64, end: u64) {
    let mut room = Room::uninit();
    let call = observed_call(index, args, &mut room);
    observe_if_on(|| {
        fail_if_told();
        Active::after(call, as_result(call.function.returns, word), start, end);
    });
}

/// A function that takes functions of the program, which MPI will call.
///
/// # Safety
/// `args` are the arguments the program passed to function `index`.
#[inline(never)]
pub unsafe fn registering(index: usize, args: &[usize]) -> usize {
    let inside = Inside::enter(index);
    let mut passed = [0; MOST_ARGS];
    let passed = &mut passed[..args.len()];
    passed.copy_from_slice(args);
    let function = &refrain_model::functions()[index];
    observe_if_on(|| callbacks::stand_in_for(function, passed));
    if filter::passes(index) {
        // SAFETY: the program's own call, passed on, with functions that do what its own do.
        let word = unsafe { invoke(real(index), passed) };
        inside.leave();
        return word;
    }
    if function.overwrites() {
        before(index, args);
    }
    let real = real(index);
    let start = ticks();
    // SAFETY: as above.
    let word = unsafe { invoke(real, passed) };
    let end = ticks();
    after(index, args, word, start, end);
    inside.leave();
    word
}

/// A clock of MPI, which returns in a floating-point register.
///
/// # Safety
/// Function `index` takes nothing and returns a `double`.
#[inline(never)]
pub unsafe fn clock(index: usize) -> f64 {
    let inside = Inside::enter(index);
    if filter::passes(index) {
        // SAFETY: as the caller says.
        let value = unsafe { pass_clock(real(index)) };
        inside.leave();
        return value;
    }
    let real = real(index);
    let start = ticks();
    // SAFETY: as the caller says.
    let value = unsafe { pass_clock(real) };
    let end = ticks();
    after(index, &[], 0, start, end);
    inside.leave();
    value
}

/// # Safety
/// `real` takes nothing and returns a `double`.
#[inline]
pub unsafe fn pass_clock(real: *const ()) -> f64 {
    // SAFETY: as the caller says.
    let real: unsafe extern "C-unwind" fn() -> f64 = unsafe { std::mem::transmute(real) };
    // SAFETY: as the caller says.
    unsafe { real() }
}

/// `MPI_Init` and its like: the recorder starts when it has returned.
///
/// # Safety
/// `args` are the arguments the program passed to function `index`.
#[inline(never)]
pub unsafe fn init(index: usize, args: &[usize]) -> usize {
    let inside = Inside::enter(index);
    let mut room = Room::uninit();
    let call = observed_call(index, args, &mut room);
    let real = real(index);
    let start = ticks();
    // SAFETY: the program's own call, passed on.
    let word = unsafe { invoke(real, args) };
    let end = ticks();
    let result = as_result(call.function.returns, word);
    // Known also where tracing has stopped before: this rank is one of those that meet at the end.
    if result == 0 {
        state::STARTED.store(true, Release);
    }
    observe_if_on(|| {
        fail_if_told();
        if result == 0 {
            Active::init(call);
        }
        Active::after(call, result, start, end);
    });
    inside.leave();
    word
}

/// `MPI_Abort`, of which nothing is heard afterwards.
///
/// # Safety
/// `args` are the arguments the program passed to function `index`.
#[inline(never)]
pub unsafe fn abort(index: usize, args: &[usize]) -> usize {
    let inside = Inside::enter(index);
    let mut room = Room::uninit();
    let call = observed_call(index, args, &mut room);
    observe(|| Active::abort(call));
    // SAFETY: the program's own call, passed on.
    let word = unsafe { invoke(real(index), args) };
    inside.leave();
    word
}

/// `MPI_Finalize`: the recorder ends before it, while it can still communicate.
///
/// # Safety
/// `args` are the arguments the program passed to function `index`.
#[inline(never)]
pub unsafe fn finalize(index: usize, args: &[usize]) -> usize {
    let interrupting = interrupting(index);
    let left_by_jump = state::JUMPS.load(Relaxed) != 0;
    let inside = Inside::enter(index);
    if interrupting {
        // Nothing of the recording may be touched, and nobody can say what MPI is in the middle of.
        crate::recorder::interrupted();
    } else if state::STARTED.load(Acquire) {
        observe_if_on(fail_if_told);
        let ending = match state::mode() {
            Mode::On if left_by_jump => Ending::LeftByJump,
            Mode::On => Ending::Whole,
            _ => Ending::Stopped,
        };
        let mut room = Room::uninit();
        let call = observed_call(index, args, &mut room);
        observe(|| Active::finalize(call, ending));
    }
    state::MODE.store(Mode::Done as u8, Release);
    state::TRACKING.store(false, Relaxed);
    let real = real(index);
    // SAFETY: the program's own call, passed on.
    let word = unsafe { invoke(real, args) };
    inside.leave();
    word
}

/// Whether the calling thread is in a signal handler that has interrupted us, or inside MPI in a call of the program: what
/// is below on the stack goes on when it returns. Not so where the program has left such a call by a jump, which is
/// counted, nor in the layer for Fortran that was called to end MPI: `index` is what it calls then.
fn interrupting(index: usize) -> bool {
    let depth = state::depth();
    if depth & state::BUSY != 0 {
        return true;
    }
    if depth & (state::LEVELS | state::FORTRAN) == 0 {
        return false;
    }
    let entry = state::nested();
    if depth & state::LEVELS == 0 && lasts(state::layer().entry, entry) {
        let expected = depth & state::LAYER != 0 && state::layer().function == index;
        if expected {
            state::set_depth(depth & !state::LAYER);
        }
        return !expected;
    }
    if on_another_stack() || (entry.slot != 0 && settle_jumps(entry) != 0) {
        return true;
    }
    state::nested_is_outermost();
    false
}

/// Whether the calling thread is in a signal handler that has a stack of its own.
fn on_another_stack() -> bool {
    let mut stack = std::mem::MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: only asks, into a place of the right type.
    let known = unsafe { libc::sigaltstack(std::ptr::null(), stack.as_mut_ptr()) } == 0;
    // SAFETY: filled in by the call above, and zeros before.
    known && unsafe { stack.assume_init() }.ss_flags & libc::SS_ONSTACK != 0
}

/// Where `enter_variadic` keeps what `leave_variadic` needs, in the shim's stack frame.
#[repr(C)]
pub struct Variadic {
    /// 0, or one more than the depth outside.
    observing: usize,
    args: [usize; 2],
    start: u64,
}

/// The real function and how many words of the caller's stack it may be given; comes back in two registers.
#[repr(C)]
pub struct Forward {
    real: *const (),
    words: usize,
}

/// More variadic arguments on the stack than anybody passes to `MPI_Pcontrol`: eight floating-point and five integer
/// ones travel in registers.
const MOST_WORDS: usize = 16;

/// The first half of a call of a variadic function, before its registers are restored.
///
/// # Safety
/// `frame` is a writable place; `stack` is where the caller's stack arguments begin.
pub unsafe extern "C" fn enter_variadic(
    index: usize,
    level: usize,
    stack: *const usize,
    frame: *mut Variadic,
) -> Forward {
    let mut begun = Variadic { observing: 0, args: [level, 0], start: 0 };
    if !passing(index) {
        state::note_inside(index + 1);
        let outside = state::depth();
        state::set_depth((outside & (state::LEVELS | state::FORTRAN)) + 1);
        begun.observing = outside as usize + 1;
        begun.start = ticks();
    }
    let forward = Forward { real: real(index), words: readable_words(stack as usize) };
    // SAFETY: as the caller says.
    unsafe { frame.write(begun) };
    forward
}

/// The second half, after the real function returned.
///
/// # Safety
/// `frame` was filled in by `enter_variadic`.
pub unsafe extern "C" fn leave_variadic(index: usize, word: usize, frame: *const Variadic) -> usize {
    // SAFETY: as the caller says.
    let begun = unsafe { frame.read() };
    if begun.observing != 0 {
        after(index, &begun.args, word, begun.start, ticks());
        state::note_inside(0);
        state::set_depth((begun.observing - 1) as u32);
    }
    word
}

/// How many words from `address` on are certainly mapped: to the end of the page the caller's frame is in, and on as
/// far as the thread's stack is known to go.
fn readable_words(address: usize) -> usize {
    const PAGE: usize = 4096;
    let mut end = (address | (PAGE - 1)) + 1;
    if state::watching() {
        let stack = crate::memory::stack::current();
        if stack.contains(&address) {
            end = stack.end;
        }
    }
    ((end - address) / size_of::<usize>()).min(MOST_WORDS)
}

/// No MPI function has more parameters.
pub const MOST_ARGS: usize = 13;

/// Calls `real` with as many words as it has parameters.
///
/// # Safety
/// `real` takes exactly these arguments, all of them integers or pointers, and returns one.
unsafe fn invoke(real: *const (), args: &[usize]) -> usize {
    macro_rules! by_arity {
        ($($pattern:pat => ($($a:ident)*),)*) => {
            match *args {
                $($pattern => {
                    type Real = unsafe extern "C-unwind" fn($(by_arity!(@word $a)),*) -> usize;
                    // SAFETY: as the caller says; in the C calling convention a word carries any of these types.
                    let real = unsafe { std::mem::transmute::<*const (), Real>(real) };
                    // SAFETY: as the caller says.
                    unsafe { real($($a),*) }
                })*
                _ => unreachable!("no MPI function has more than {MOST_ARGS} parameters"),
            }
        };
        (@word $a:ident) => { usize };
    }
    by_arity! {
        [] => (),
        [a] => (a),
        [a, b] => (a b),
        [a, b, c] => (a b c),
        [a, b, c, d] => (a b c d),
        [a, b, c, d, e] => (a b c d e),
        [a, b, c, d, e, f] => (a b c d e f),
        [a, b, c, d, e, f, g] => (a b c d e f g),
        [a, b, c, d, e, f, g, h] => (a b c d e f g h),
        [a, b, c, d, e, f, g, h, i] => (a b c d e f g h i),
        [a, b, c, d, e, f, g, h, i, j] => (a b c d e f g h i j),
        [a, b, c, d, e, f, g, h, i, j, k] => (a b c d e f g h i j k),
        [a, b, c, d, e, f, g, h, i, j, k, l] => (a b c d e f g h i j k l),
        [a, b, c, d, e, f, g, h, i, j, k, l, m] => (a b c d e f g h i j k l m),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn digits(
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        e: usize,
        f: usize,
        g: usize,
        h: usize,
    ) -> usize {
        [a, b, c, d, e, f, g, h].iter().fold(0, |number, digit| number * 10 + digit)
    }

    #[test]
    fn arguments_arrive_in_order_in_registers_and_on_the_stack() {
        // SAFETY: eight words, as `digits` takes.
        let number = unsafe { invoke(digits as *const (), &[1, 2, 3, 4, 5, 6, 7, 8]) };
        assert_eq!(number, 12_345_678);
    }

    #[test]
    fn an_int_result_is_signed_and_an_aint_is_whole() {
        assert_eq!(as_result(Returns::Code, 0xdead_beef_ffff_ffff), -1);
        assert_eq!(as_result(Returns::Aint, usize::MAX - 1), -2);
    }

    #[test]
    fn every_function_fits_the_widest_call() {
        assert!(refrain_model::functions().iter().all(|function| function.params.len() <= MOST_ARGS));
    }

    #[test]
    fn errno_survives_observing() {
        // SAFETY: this thread's errno.
        unsafe { *libc::__errno_location() = 77 };
        // SAFETY: this thread's errno.
        observe(|| unsafe { *libc::__errno_location() = 5 });
        // SAFETY: this thread's errno.
        assert_eq!(unsafe { *libc::__errno_location() }, 77);
    }
}
