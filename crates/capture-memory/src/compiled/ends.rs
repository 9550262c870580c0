//! How a process ends: it exits, becomes another program, or dies of a signal.

use std::arch::naked_asm;
use std::ffi::{CStr, c_int, c_void};
use std::mem::{MaybeUninit, zeroed};
use std::ptr::null_mut;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use refrain_references::parts::State;

use super::own::own;
use super::threads::{guarded, is_recorded, quietly};

/// After the destructors of whatever was linked with us.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_end() {
    extern "C" fn exit(_: usize) {
        guarded(|process| {
            if process.is_here() {
                process.exit();
            }
        });
    }
    run(exit, 0);
}

/// On our own stack, if this process is recorded and we are not at work on this thread already.
fn run(work: extern "C" fn(usize), argument: usize) {
    let own = own();
    if is_recorded() && own.inside.load(Relaxed) == 0 && own.take_stack() {
        quietly(work, argument);
    }
}

/// What a call of the C library does to the process.
enum End {
    Exit,
    Exec,
}

const CALLS: [(&CStr, End); 11] = [
    (c"execve", End::Exec),
    (c"execv", End::Exec),
    (c"execvp", End::Exec),
    (c"execvpe", End::Exec),
    (c"execl", End::Exec),
    (c"execlp", End::Exec),
    (c"execle", End::Exec),
    (c"fexecve", End::Exec),
    (c"execveat", End::Exec),
    (c"_exit", End::Exit),
    (c"_Exit", End::Exit),
];

/// The C library's own, where they were looked up.
static REAL: [AtomicUsize; CALLS.len()] = [const { AtomicUsize::new(0) }; CALLS.len()];

/// The address of what a function of ours stands before.
pub fn next(name: &CStr, known: &AtomicUsize) -> usize {
    let found = known.load(Acquire);
    if found != 0 {
        return found;
    }
    // SAFETY: the name is a terminated string; the handle stands for what was loaded after us.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
    known.store(found, Release);
    found
}

/// Before such a call. Returns the address of the real one.
extern "C" fn before(call: usize) -> usize {
    extern "C" fn work(call: usize) {
        guarded(|process| {
            // One that `vfork` made has our memory, and is another process.
            if process.is_here() {
                match CALLS[call].1 {
                    // If it comes back, it failed, and the end of the process is still to come.
                    End::Exec => process.leave(State::Replaced),
                    End::Exit => process.exit(),
                }
            }
        });
    }
    run(work, call);
    next(CALLS[call].0, &REAL[call])
}

/// Functions of any arguments, which come to the real one as they were.
macro_rules! ending {
    ($($name:ident $call:literal)*) => {
        $(
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                naked_asm!(
                    "push rax",
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "mov edi, {call}",
                    "call {before}",
                    "mov r11, rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "pop rax",
                    "jmp r11",
                    call = const $call,
                    before = sym before,
                )
            }
        )*
    };
}

ending! {
    execve 0 execv 1 execvp 2 execvpe 3 execl 4 execlp 5 execle 6 fexecve 7 execveat 8 _exit 9 _Exit 10
}

/// Signals that end a program that does not ask for anything else.
const DEADLY: [c_int; 13] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGALRM,
    libc::SIGPIPE,
];

/// Sees to it that what was noted is written when a signal ends the program. Where the program has a handler of its own, or
/// gets one later, that is none of ours.
pub fn watch() {
    for signal in DEADLY {
        // SAFETY: a place for what is done now, and a handler with what `SA_SIGINFO` gives it.
        unsafe {
            let mut now = MaybeUninit::<libc::sigaction>::uninit();
            if libc::sigaction(signal, null_mut(), now.as_mut_ptr()) != 0
                || now.assume_init().sa_sigaction != libc::SIG_DFL
            {
                continue;
            }
            let mut ours: libc::sigaction = zeroed();
            ours.sa_sigaction = dying as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
            libc::sigfillset(&mut ours.sa_mask);
            libc::sigaction(signal, &ours, null_mut());
        }
    }
}

/// The handler is gone when it runs: the signal comes again and does what it does.
extern "C" fn dying(signal: c_int, _info: *mut libc::siginfo_t, _context: *mut c_void) {
    extern "C" fn die(_: usize) {
        guarded(|process| {
            if process.is_here() {
                process.leave(State::Signalled);
            }
        });
    }
    run(die, 0);
    // A fault happens again when this returns; what somebody sent does not. It waits until then.
    // SAFETY: a signal to this thread.
    unsafe { libc::raise(signal) };
}
