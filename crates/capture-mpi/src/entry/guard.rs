//! The path of every call: who is let through, what is observed, and what happens when we fail.

use std::any::Any;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use refrain_guest::memory::live::track;
use refrain_guest::process::clock::ticks;
use refrain_guest::process::mode::{self, Mode, halt, mode, set_mode, watching};
use refrain_guest::process::say::say;
use refrain_guest::process::stack;
use refrain_guest::threads::marks::{self, DEEPEST, Entry};
use refrain_model::Returns;
use refrain_mpi::Owner;

use super::callbacks;
use super::code::owner;
#[cfg(target_arch = "x86_64")]
use super::fortran::frame;
use super::jumps::{lasts, settle_jumps};
use super::real::{is_replay, real};
use crate::hooks::{Ending, MOST_ARGS, Observed, Recorder, Ticks};
use crate::recorder::{self, Real as Active};
use crate::switches::fail_if_told;
use crate::{filter, flight, missing, recording, wild};

/// The recorder's `init` was called.
static STARTED: AtomicBool = AtomicBool::new(false);

/// Whether a call goes straight to MPI: tracing is off, or the call comes from inside MPI or from us.
#[inline]
pub fn passing(index: usize) -> bool {
    !watching() || (marks::depth() != 0 && !is_programs(index))
}

/// As `passing`, for the calls at which a rank whose tracing has stopped still meets the others.
pub fn passing_by(index: usize) -> bool {
    !matches!(mode(), Mode::On | Mode::Stopped) || (marks::depth() != 0 && !is_programs(index))
}

/// Whether a call that begins while the thread is marked as inside another one is the program's: MPI has called one of
/// its functions, or the thread has left the other call by a jump, or MPI's layer for Fortran does what it was called
/// for. Called once for each such call.
#[cold]
#[inline(never)]
fn is_programs(index: usize) -> bool {
    let depth = marks::depth();
    let entry = marks::nested();
    if depth & marks::BUSY != 0 {
        if left_our_code(entry) {
            abandon();
        }
        return false;
    }
    // What a replay's functions call inside of MPI is not in the trace.
    if is_replay() {
        return false;
    }
    if depth & marks::IN_LAYER != 0 && depth & marks::PROGRAM == 0 {
        let layer = marks::layer();
        let expected = depth & marks::LAYER != 0 && layer.function == index;
        // What the layer calls on the way, also through tools that lie between it and us. A layer that calls nothing of
        // C may run a function of the program instead: then it counts who calls.
        let on_the_way = depth & marks::LEVELS == layer.level && !layer.alone;
        if (expected || on_the_way) && lasts(layer.entry, entry) {
            if expected {
                // How the layer was entered counts, not how it calls.
                marks::set_depth(depth & !marks::LAYER);
            }
            return expected;
        }
    }
    if is_inner(depth, entry.caller) {
        return false;
    }
    let level = settle_jumps(entry);
    if level == 0 {
        marks::nested_is_outermost();
    } else if level < DEEPEST {
        marks::set_entry_at(level, entry);
    }
    level < DEEPEST
}

/// Whether code that calls while the thread is that deep in MPI is MPI's. A callback that we do not know of (of Fortran,
/// or registered behind our back) is told by where it lies.
fn is_inner(depth: u32, caller: usize) -> bool {
    depth & marks::PROGRAM == 0
        && match owner(caller) {
            Owner::Mpi => true,
            // What a layer calls, the program calls, unless we know what it called the layer for.
            Owner::Layer => depth & marks::IN_LAYER != 0,
            Owner::Binding | Owner::Other => false,
        }
}

/// As `is_programs`, for a call by one of Fortran's names, which notes its entry itself where it is in no other call.
#[cfg(target_arch = "x86_64")]
#[cold]
#[inline(never)]
pub fn is_programs_in_fortran(index: usize, entry: Entry) -> bool {
    let depth = marks::depth();
    let layer = marks::layer();
    // One name of a function may be made of another one.
    let again =
        depth & marks::LAYER != 0 && layer.function == index && !layer.alone && lasts(layer.entry, entry);
    if depth & marks::BUSY != 0 || again || is_inner(depth, entry.caller) {
        return false;
    }
    let level = settle_jumps(entry);
    if level != 0 && level < DEEPEST {
        marks::set_entry_at(level, entry);
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
        match refrain_model::functions()[index].returns {
            Returns::Clock => after_clock(index, word as u64, start, end),
            _ => after(index, args, 0, word, start, end),
        }
    }
    inside.leave();
}

/// The calling thread is back in the layer for Fortran that was entered so, at that level, after functions of the program
/// that ran in it. `pointer` is the frame pointer of who called the layer.
#[cfg(target_arch = "x86_64")]
pub fn back_in_layer(level: usize, entry: Entry, pointer: usize) {
    match level {
        0 => {
            marks::replace_entry([entry.caller, entry.slot, pointer]);
        }
        _ => marks::set_entry_at(level, entry),
    }
}

/// Whether a signal handler has jumped out of our own code: the call that we looked at is over, and the mark still there.
fn left_our_code(entry: Entry) -> bool {
    entry.slot != 0 && !lasts(marks::entry(), entry)
}

/// What we were changing is half changed, and nobody may touch it again.
#[cold]
fn abandon() {
    if halt() {
        track(false);
        missing::count_jumps(1);
        say(
            "tracing stopped: a signal handler has left a call by a jump while it was recorded; the program is not affected",
        );
    }
}

/// As `passing_by`, for `MPI_Finalize`: nothing in MPI calls it, so a thread that is marked as inside MPI has left it by
/// a jump, or finalizes from a callback or a signal handler (`interrupting`).
pub fn passing_finalize(_index: usize) -> bool {
    !matches!(mode(), Mode::On | Mode::Stopped)
}

/// Marks the thread as inside MPI until dropped, also where a C++ exception or a cancellation unwinds through. Keeps the
/// depth outside.
pub struct Inside {
    depth: u32,
    function: usize,
    has_part: bool,
}

impl Inside {
    #[inline]
    pub fn enter(index: usize) -> Self {
        let function = flight::enter(index);
        let outside =
            Self { depth: marks::depth(), function: function.unwrap_or(0), has_part: function.is_some() };
        marks::set_depth((outside.depth & (marks::LEVELS | marks::IN_LAYER)) + 1);
        outside
    }
}

impl Inside {
    /// Of a thread without a part nobody could tell that it hangs in its first call.
    #[inline]
    pub fn begin_part(&self, index: usize) {
        if !self.has_part {
            begin_part(index);
        }
    }

    /// The call has returned.
    #[inline]
    pub fn leave(self) {
        self.restore();
        std::mem::forget(self);
    }

    #[inline]
    fn restore(&self) {
        marks::note_inside(self.function);
        if self.function != 0 {
            // The outer call's were overwritten by those of this one.
            flight::forget();
        }
        marks::set_depth(self.depth);
    }
}

/// It never will: an exception, or the thread's end, unwinds through it.
impl Drop for Inside {
    #[cold]
    fn drop(&mut self) {
        self.restore();
        #[cfg(target_arch = "x86_64")]
        if self.depth & (marks::PROGRAM | marks::LAYER | marks::IN_LAYER) == marks::IN_LAYER {
            // It goes on through the layer's call that this one was made for.
            frame::left(self.depth & marks::LEVELS);
        }
        missing::count_jumps(1);
    }
}

/// Runs what observes. A panic in it ends tracing, with one line; `errno` stays what it was.
fn observe(look: impl FnOnce()) {
    // SAFETY: the thread's own errno, valid as long as the thread lives.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let kept: c_int = unsafe { *errno };
    let depth = marks::depth();
    marks::set_depth(depth | marks::BUSY);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(look)) {
        stop(panic);
    }
    marks::set_depth(depth);
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
    mode::stop(reason);
    // What a payload's destructor does is not ours to know.
    std::mem::forget(panic);
}

/// Runs `look` unless tracing stopped in the meantime.
pub fn observe_if_on(look: impl FnOnce()) {
    if watching() {
        observe(look);
    }
}

/// Room for arguments that are not recorded as they are.
type Room = MaybeUninit<[usize; MOST_ARGS]>;

#[inline]
fn observed_call<'a>(index: usize, args: &'a [usize], room: &'a mut Room) -> Observed<'a> {
    let function = &refrain_model::functions()[index];
    if marks::depth() == 1 {
        return Observed { index, function, args, level: 0, statuses: 0 };
    }
    observed_inside(Observed { index, function, args, level: 0, statuses: 0 }, room)
}

/// The same of a call that a callback makes, or Fortran's layer for the program.
#[cold]
#[inline(never)]
fn observed_inside<'a>(call: Observed<'a>, room: &'a mut Room) -> Observed<'a> {
    let depth = marks::depth();
    let level = (depth & marks::LEVELS).saturating_sub(1) as usize;
    let call = Observed { level, ..call };
    #[cfg(target_arch = "x86_64")]
    if depth & marks::IN_LAYER != 0
        && let Some(args) = frame::adapt(call.index, call.args, level, room)
    {
        return Observed { args, statuses: layers_statuses(call, args), ..call };
    }
    let _ = room;
    call
}

/// A layer for Fortran may ask for statuses that the program ignores, for itself. `args` are what is recorded.
fn layers_statuses(call: Observed<'_>, args: &[usize]) -> usize {
    // Those that complete requests say nothing new as long as none is of such a kind.
    if wild::completes(call.function) && !wild::made() {
        return 0;
    }
    match wild::parameter(call.function) {
        Some(at) if call.args[at] != args[at] => call.args[at],
        _ => 0,
    }
}

/// An error code is an `int`, whose upper half in the register means nothing.
fn as_result(returns: Returns, word: usize) -> i64 {
    match returns {
        Returns::Code => i64::from(word as i32),
        Returns::Aint | Returns::Converted => word as i64,
        Returns::Clock => 0,
    }
}

#[cold]
#[inline(never)]
fn begin_part(index: usize) {
    if recording::keeps_parts() {
        observe_if_on(Active::begin_part);
        flight::enter(index);
    }
}

/// Ahead of an ordinary function that overwrites what it is given.
#[inline(never)]
pub fn before(index: usize, args: &[usize]) {
    let mut room = Room::uninit();
    let call = observed_call(index, args, &mut room);
    observe(|| Active::before(call));
}

/// A clock has returned a number of these bits.
#[inline(never)]
fn after_clock(index: usize, returned: u64, start: u64, end: u64) {
    flight::left(end);
    let mut room = Room::uninit();
    let call = observed_call(index, &[], &mut room);
    observe_if_on(|| {
        fail_if_told();
        Active::after_clock(call, returned, Ticks { start, end });
    });
}

/// A thread of a replay makes itself known before its first call, so that threads have the numbers that they had.
#[unsafe(no_mangle)]
pub extern "C" fn refrain_joins() {
    observe_if_on(recorder::join);
}

/// Where MPI is to write statuses that the program ignores, if something is to be known from them; otherwise 0.
#[inline(never)]
pub fn statuses(index: usize, args: &[usize]) -> usize {
    let function = &refrain_model::functions()[index];
    let Some(bytes) = wild::needed(function, args) else { return 0 };
    let mut place = 0;
    let mut room = Room::uninit();
    let call = observed_call(index, args, &mut room);
    observe_if_on(|| place = Active::room(call, bytes));
    place
}

/// An ordinary function has returned `word`. `statuses` of ours were given to it, or 0.
#[inline(never)]
pub fn after(index: usize, args: &[usize], statuses: usize, word: usize, start: u64, end: u64) {
    flight::left(end);
    let mut room = Room::uninit();
    let mut call = observed_call(index, args, &mut room);
    if statuses != 0 {
        call.statuses = statuses;
    }
    observe_if_on(|| {
        fail_if_told();
        Active::after(call, as_result(call.function.returns, word), Ticks { start, end });
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
    flight::note(index, args, start);
    // SAFETY: as above.
    let word = unsafe { invoke(real, passed) };
    let end = ticks();
    after(index, args, 0, word, start, end);
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
    flight::note(index, &[], start);
    // SAFETY: as the caller says.
    let value = unsafe { pass_clock(real) };
    let end = ticks();
    after_clock(index, value.to_bits(), start, end);
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
    let mut end = ticks();
    let result = as_result(call.function.returns, word);
    // Known also where tracing has stopped before: this rank is one of those that meet at the end.
    if result == 0 {
        STARTED.store(true, Release);
    }
    observe_if_on(|| {
        fail_if_told();
        if result == 0 {
            end = Active::init(call).unwrap_or(end);
        }
        Active::after(call, result, Ticks { start, end });
    });
    // It has a part only now: a program that calls nothing else is outside since then.
    flight::note(index, args, start);
    flight::left(end);
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
    flight::note(index, args, ticks());
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
    let left_by_jump = missing::jumps() != 0;
    let inside = Inside::enter(index);
    flight::note(index, args, ticks());
    if interrupting {
        // Nothing of the recording may be touched, and nobody can say what MPI is in the middle of.
        recorder::interrupted();
    } else if STARTED.load(Acquire) {
        observe_if_on(fail_if_told);
        let ending = match mode() {
            Mode::On if left_by_jump => Ending::LeftByJump,
            Mode::On => Ending::Whole,
            _ => Ending::Stopped,
        };
        let mut room = Room::uninit();
        let call = observed_call(index, args, &mut room);
        observe(|| Active::finalize(call, ending));
    }
    set_mode(Mode::Done);
    track(false);
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
    let depth = marks::depth();
    if depth & marks::BUSY != 0 {
        return true;
    }
    if depth & (marks::LEVELS | marks::IN_LAYER) == 0 {
        return false;
    }
    let entry = marks::nested();
    if depth & marks::LEVELS == 0 && lasts(marks::layer().entry, entry) {
        let expected = depth & marks::LAYER != 0 && marks::layer().function == index;
        if expected {
            marks::set_depth(depth & !marks::LAYER);
        }
        return !expected;
    }
    if on_another_stack() || (entry.slot != 0 && settle_jumps(entry) != 0) {
        return true;
    }
    marks::nested_is_outermost();
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
        flight::enter(index);
        let outside = marks::depth();
        marks::set_depth((outside & (marks::LEVELS | marks::IN_LAYER)) + 1);
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
        after(index, &begun.args, 0, word, begun.start, ticks());
        marks::note_inside(0);
        marks::set_depth((begun.observing - 1) as u32);
    }
    word
}

/// How many words from `address` on are certainly mapped: to the end of the page the caller's frame is in, and on as
/// far as the thread's stack is known to go.
fn readable_words(address: usize) -> usize {
    const PAGE: usize = 4096;
    let mut end = (address | (PAGE - 1)) + 1;
    if watching() {
        let stack = stack::current();
        if stack.contains(&address) {
            end = stack.end;
        }
    }
    ((end - address) / size_of::<usize>()).min(MOST_WORDS)
}

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
