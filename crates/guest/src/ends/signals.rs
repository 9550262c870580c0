//! What the program has asked to happen on a signal is the program's own. We handle five signals, those of faults, and
//! nobody can tell.
//!
//! Why at all: a file of ours may lose its pages under us (SIGBUS), which must not be the end of the program; and a crash is
//! worth a word in the trace. All other signals stay as they are: of a process that was killed `refrain run` and
//! `refrain recover` learn from what it left behind.
//!
//! How: while we watch, the kernel has `entry` as the handler of a fault, with the program's flags and mask, and what the
//! program had asked for is kept in `PROGRAMS`. `entry` looks at the fault and *jumps* to the program's handler,
//! which so finds the stack, the mask and its arguments as if the kernel had called it; where there is none, the signal
//! gets its default action. Every C function that asks for or changes such an action goes through `undisturbed`: the
//! program's action is put back for the length of the call, and whatever is there afterwards is watched again. So the
//! C library, and every library that has its own `sigaction`, see and do what they would without us.
//!
//! An action that ignores the signal is left alone: a program that this one starts would inherit it.
//!
//! Limit: who calls the kernel without the C library (Go's runtime) sees `entry`.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize};

use super::{shield, words};
use crate::process::next::next;

/// What a program brings upon itself.
const FAULTS: [c_int; 5] = [libc::SIGILL, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV];

/// What the program has asked to happen on each of them, where our handler stands before its own.
static PROGRAMS: [Program; FAULTS.len()] = [const { Program::new() }; FAULTS.len()];
/// The process whose faults are noted; 0: none.
static WATCHER: AtomicI32 = AtomicI32::new(0);
/// The thread that is changing what happens on a fault; 0: none.
static CHANGING: AtomicI32 = AtomicI32::new(0);
/// The C library's functions for this, or another library's; null until first used.
static NEXT: [AtomicPtr<()>; NAMED.len()] = [const { AtomicPtr::new(null_mut()) }; NAMED.len()];

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// What the program asked for. The fields belong together under `CHANGING`; a handler that runs reads single ones.
#[derive(Debug)]
struct Program {
    handler: AtomicUsize,
    flags: AtomicU64,
    restorer: AtomicUsize,
    mask: AtomicU64,
}

impl Program {
    /// Nothing: the default action.
    const fn new() -> Program {
        Program {
            handler: AtomicUsize::new(libc::SIG_DFL),
            flags: AtomicU64::new(0),
            restorer: AtomicUsize::new(0),
            mask: AtomicU64::new(0),
        }
    }

    fn keep(&self, action: Action) {
        self.flags.store(action.flags, Relaxed);
        self.restorer.store(action.restorer, Relaxed);
        self.mask.store(action.mask, Relaxed);
        self.handler.store(action.handler, Release);
    }

    fn action(&self) -> Action {
        Action {
            handler: self.handler.load(Acquire),
            flags: self.flags.load(Relaxed),
            restorer: self.restorer.load(Relaxed),
            mask: self.mask.load(Relaxed),
        }
    }
}

/// The kernel's action for a signal, and a new one where that is given. Not the C library's function: that one may be
/// another library's, and has its own idea of some fields.
fn kernel(signal: c_int, new: Option<&Action>) -> Option<Action> {
    let mut old = MaybeUninit::<Action>::zeroed();
    let new = new.map_or(null(), std::ptr::from_ref);
    // SAFETY: the kernel reads and writes structures of this layout and a mask of eight bytes. The handlers in them are
    // `entry`, or were there before.
    let done =
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old.as_mut_ptr(), size_of::<u64>()) };
    // SAFETY: zeros before, and filled in by the kernel.
    (done == 0).then(|| unsafe { old.assume_init() })
}

/// From here on faults of this process are noted, until `leave`.
pub fn watch() {
    // SAFETY: takes nothing.
    WATCHER.store(unsafe { libc::getpid() }, Release);
    let _changing = Changing::begin();
    (0..FAULTS.len()).for_each(take);
}

/// The kernel has the program's own actions again.
pub fn leave() {
    if is_watcher() {
        let _changing = Changing::begin();
        WATCHER.store(0, Release);
        (0..FAULTS.len()).for_each(give_back);
    }
}

/// Not in a child: what it does with its signals is not ours, and `PROGRAMS` may be its parent's memory (`vfork`).
fn is_watcher() -> bool {
    let watcher = WATCHER.load(Acquire);
    // SAFETY: takes nothing.
    watcher != 0 && watcher == unsafe { libc::getpid() }
}

fn address() -> usize {
    entry as *const () as usize
}

/// Puts `entry` before what the program has asked for.
fn take(index: usize) {
    let signal = FAULTS[index];
    let Some(program) = kernel(signal, None) else { return };
    if program.handler == address() || program.handler == libc::SIG_IGN {
        return;
    }
    PROGRAMS[index].keep(program);
    let mut ours = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros are a structure of this type.
    let ours = unsafe { ours.assume_init_mut() };
    ours.sa_sigaction = address();
    // The default action has neither a stack nor a mask; ours must be able to run where the stack is full.
    ours.sa_flags = libc::SA_ONSTACK;
    if program.handler != libc::SIG_DFL {
        ours.sa_flags = program.flags as c_int;
        // SAFETY: the C library's mask begins with the kernel's, and is longer.
        unsafe { (&raw mut ours.sa_mask).cast::<u64>().write(program.mask) };
    }
    // Without it the kernel tells nothing of the fault.
    ours.sa_flags |= libc::SA_SIGINFO;
    let next = Name::PlainSigaction.next().or_else(|| Name::Sigaction.next());
    if let Some(next) = next {
        // SAFETY: a function of that name has this signature in every C library; it adds what its handlers need to
        // return.
        let next = unsafe { std::mem::transmute::<*mut (), Sigaction>(next) };
        // SAFETY: a live structure, and a handler that does only what a handler may.
        unsafe { next(signal, ours, null_mut()) };
    }
}

/// Puts back what the program has asked for. Nothing where it, or somebody, has another handler by now.
fn give_back(index: usize) {
    let signal = FAULTS[index];
    if kernel(signal, None).is_some_and(|now| now.handler == address()) {
        kernel(signal, Some(&PROGRAMS[index].action()));
    }
}

/// One thread at a time changes actions. No signal is blocked meanwhile, since some of these functions change the mask:
/// a handler that interrupts one of them may come here too. A thread that never comes back must not hold up others for
/// ever.
struct Changing {
    ended_by: c_int,
}

impl Changing {
    /// `None`: this very thread is at it, and has been interrupted.
    fn begin() -> Option<Changing> {
        const PATIENCE: u32 = 10_000;
        // SAFETY: takes nothing.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) } as c_int;
        for _ in 0..PATIENCE {
            match CHANGING.compare_exchange(0, thread, AcqRel, Acquire) {
                Ok(_) => return Some(Changing { ended_by: thread }),
                Err(other) if other == thread => return None,
                Err(_) => std::thread::yield_now(),
            }
        }
        CHANGING.store(thread, Release);
        Some(Changing { ended_by: thread })
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let _ = CHANGING.compare_exchange(self.ended_by, 0, AcqRel, Relaxed);
    }
}

/// Runs a function that looks at or changes the action of `signal`, as if we were not there.
fn undisturbed<R>(signal: c_int, call: impl FnOnce() -> R) -> R {
    let index = match FAULTS.iter().position(|&fault| fault == signal) {
        Some(index) if WATCHER.load(Acquire) != 0 => index,
        _ => return call(),
    };
    let before = errno();
    let changing = if is_watcher() { Changing::begin() } else { None };
    give_back(index);
    set_errno(before);
    let result = call();
    let after = errno();
    if changing.is_some() && is_watcher() {
        take(index);
    }
    drop(changing);
    set_errno(after);
    result
}

fn errno() -> c_int {
    // SAFETY: the thread's own errno, valid as long as the thread lives.
    unsafe { *libc::__errno_location() }
}

fn set_errno(value: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}

/// The handler, as the kernel knows it: looks at the fault, and goes on where `look` says, with the registers and the
/// stack as the kernel made them.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn entry(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_def_cfa_offset 16",
        "push rsi",
        ".cfi_def_cfa_offset 24",
        "push rdx",
        ".cfi_def_cfa_offset 32",
        "call {look}",
        "pop rdx",
        ".cfi_def_cfa_offset 24",
        "pop rsi",
        ".cfi_def_cfa_offset 16",
        "pop rdi",
        ".cfi_def_cfa_offset 8",
        "mov r11, rax",
        "xor eax, eax",
        "jmp r11",
        ".cfi_endproc",
        look = sym look,
    )
}

#[cfg(not(target_arch = "x86_64"))]
extern "C" fn entry(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let go_on = look(signal, info, context);
    // SAFETY: `nothing`, or a handler of the program's for this signal.
    unsafe { std::mem::transmute::<usize, Handler>(go_on)(signal, info, context) }
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

extern "C" fn nothing(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {}

/// Where to go on: in the program's handler, or nowhere.
extern "C" fn look(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> usize {
    let before = errno();
    let go_on = decide(signal, info, context);
    set_errno(before);
    go_on.unwrap_or(nothing as Handler as usize)
}

/// The instruction that a signal has interrupted.
fn interrupted(context: *mut c_void) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel gives handlers with SA_SIGINFO a context of this type, and ours is one.
    let place = unsafe { context.cast::<libc::ucontext_t>().as_ref() }
        .map_or(0, |context| context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize);
    #[cfg(not(target_arch = "x86_64"))]
    let place = {
        let _ = context;
        0
    };
    place
}

fn decide(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> Option<usize> {
    let index = FAULTS.iter().position(|&fault| fault == signal)?;
    // SAFETY: the kernel fills it in for handlers with SA_SIGINFO, and nobody else knows of this one.
    let info = unsafe { info.as_ref() }.filter(|info| info.si_signo == signal);
    // SAFETY: signals of faults have an address, or zeros in its place.
    let (code, address) = info.map_or((0, 0), |info| (info.si_code, unsafe { info.si_addr() } as usize));
    let program = &PROGRAMS[index];
    if signal == libc::SIGBUS && code > 0 && shield::mend(address) {
        // It was our fault, and must not use up a handler that the program wants called once.
        if program.flags.load(Relaxed) & libc::SA_RESETHAND as u64 != 0 {
            kernel(signal, Some(&program.action()));
            if let Some(_changing) = Changing::begin() {
                take(index);
            }
        }
        return None;
    }
    let handler = program.handler.load(Acquire);
    words::place(interrupted(context));
    if handler != libc::SIG_DFL {
        // It may know how to go on.
        words::fault(signal as u64);
        let action = program.action();
        if action.flags & libc::SA_RESETHAND as u64 != 0 {
            // The kernel has taken it away, and left a flag of ours behind.
            kernel(signal, Some(&Action { handler: libc::SIG_DFL, ..action }));
            if is_watcher()
                && let Some(_changing) = Changing::begin()
            {
                take(index);
            }
        }
        return Some(handler);
    }
    words::note_signal(signal.into());
    kernel(signal, Some(&program.action()));
    // A fault of the program's own happens again when we return; anything else has to be sent again. So has a memory
    // error that nobody has stumbled on yet.
    let by_itself = match signal {
        libc::SIGILL | libc::SIGFPE | libc::SIGSEGV => code > 0,
        libc::SIGBUS => code > 0 && code != libc::BUS_MCEERR_AO,
        _ => false,
    };
    if !by_itself {
        // SAFETY: takes numbers only; the signal is blocked until we return.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), signal) };
    }
    None
}

/// The functions of C libraries that tell or change what happens on a signal.
#[derive(Debug, Clone, Copy)]
enum Name {
    Sigaction,
    PlainSigaction,
    Signal,
    BsdSignal,
    Ssignal,
    SysvSignal,
    PlainSysvSignal,
    Sigset,
    Sigignore,
    Siginterrupt,
}

const NAMED: [(Name, &CStr); 10] = [
    (Name::Sigaction, c"sigaction"),
    (Name::PlainSigaction, c"__sigaction"),
    (Name::Signal, c"signal"),
    (Name::BsdSignal, c"bsd_signal"),
    (Name::Ssignal, c"ssignal"),
    (Name::SysvSignal, c"sysv_signal"),
    (Name::PlainSysvSignal, c"__sysv_signal"),
    (Name::Sigset, c"sigset"),
    (Name::Sigignore, c"sigignore"),
    (Name::Siginterrupt, c"siginterrupt"),
];

impl Name {
    /// The function that would be called if ours were not there.
    fn next(self) -> Option<*mut ()> {
        let slot: &AtomicPtr<()> = &NEXT[self as usize];
        let mut found = slot.load(Relaxed);
        if found.is_null() {
            let (_, name) = NAMED[self as usize];
            found = next(name).cast();
            slot.store(found, Relaxed);
        }
        (!found.is_null()).then_some(found)
    }
}

/// Looks all of them up: a handler, or the child of a `vfork`, may call them and must not look for anything.
pub fn prepare() {
    for (name, _) in NAMED {
        name.next();
    }
    // SAFETY: takes nothing. A function that this C library lacks is no error of the program's.
    unsafe { libc::dlerror() };
}

type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
type Simple = unsafe extern "C" fn(c_int, usize) -> usize;
type Ignoring = unsafe extern "C" fn(c_int) -> c_int;
type Interrupting = unsafe extern "C" fn(c_int, c_int) -> c_int;

fn missing<R>(result: R) -> R {
    set_errno(libc::ENOSYS);
    result
}

/// # Safety
/// As for C's function of that name; so for all of these. The arguments are the program's, and go on as they are.
unsafe fn pass_sigaction(
    name: Name,
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    let Some(next) = name.next() else { return missing(-1) };
    // SAFETY: the function of that name, which has this signature in every C library.
    let next = unsafe { std::mem::transmute::<*mut (), Sigaction>(next) };
    // SAFETY: the program's own call, passed on.
    undisturbed(signal, || unsafe { next(signal, new, old) })
}

/// # Safety
/// As above.
unsafe fn pass_simple(name: Name, signal: c_int, handler: usize) -> usize {
    let Some(next) = name.next() else { return missing(libc::SIG_ERR) };
    // SAFETY: as above.
    let next = unsafe { std::mem::transmute::<*mut (), Simple>(next) };
    // SAFETY: as above.
    undisturbed(signal, || unsafe { next(signal, handler) })
}

macro_rules! sigactions {
    ($($function:ident: $name:ident,)*) => {
        $(
            /// # Safety
            /// See `pass_sigaction`.
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C" fn $function(
                signal: c_int,
                new: *const libc::sigaction,
                old: *mut libc::sigaction,
            ) -> c_int {
                // SAFETY: as the caller says.
                unsafe { pass_sigaction(Name::$name, signal, new, old) }
            }
        )*
    };
}

macro_rules! simple {
    ($($function:ident: $name:ident,)*) => {
        $(
            /// # Safety
            /// See `pass_sigaction`.
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C" fn $function(signal: c_int, handler: usize) -> usize {
                // SAFETY: as the caller says.
                unsafe { pass_simple(Name::$name, signal, handler) }
            }
        )*
    };
}

sigactions! {
    sigaction: Sigaction,
    __sigaction: PlainSigaction,
}

simple! {
    signal: Signal,
    bsd_signal: BsdSignal,
    ssignal: Ssignal,
    sysv_signal: SysvSignal,
    __sysv_signal: PlainSysvSignal,
    sigset: Sigset,
}

/// # Safety
/// See `pass_sigaction`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn sigignore(signal: c_int) -> c_int {
    let Some(next) = Name::Sigignore.next() else { return missing(-1) };
    // SAFETY: the function of that name, which has this signature in every C library.
    let next = unsafe { std::mem::transmute::<*mut (), Ignoring>(next) };
    // SAFETY: the program's own call, passed on.
    undisturbed(signal, || unsafe { next(signal) })
}

/// # Safety
/// See `pass_sigaction`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn siginterrupt(signal: c_int, interrupts: c_int) -> c_int {
    let Some(next) = Name::Siginterrupt.next() else { return missing(-1) };
    // SAFETY: the function of that name, which has this signature in every C library.
    let next = unsafe { std::mem::transmute::<*mut (), Interrupting>(next) };
    // SAFETY: the program's own call, passed on.
    undisturbed(signal, || unsafe { next(signal, interrupts) })
}

/// Runs what makes a traced call on our own behalf, with no signal of the program's in between: its handler may make one
/// too, which it could at this moment if we were not there. Faults stay what they are.
pub fn held_off<R>(ask: impl FnOnce() -> R) -> R {
    /// Undoes it also when a panic passes through.
    struct Mask(libc::sigset_t);
    impl Drop for Mask {
        fn drop(&mut self) {
            // SAFETY: the mask as it was; concerns the calling thread alone.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, null_mut()) };
        }
    }
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sets of our own; concerns the calling thread alone.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        FAULTS.iter().for_each(|&fault| {
            libc::sigdelset(all.as_mut_ptr(), fault);
        });
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
    }
    // SAFETY: filled in by the call above, and zeros before.
    let _mask = Mask(unsafe { before.assume_init() });
    ask()
}
