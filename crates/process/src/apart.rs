//! Work of ours that must not reach the program: signals that our own writes raise, and cancellation, which would unwind
//! a thread from inside our code.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// What a write can raise: a file becomes larger than it may be, nobody reads the other end of a pipe.
const RAISED: [c_int; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

const CANCEL_DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// The calling thread cannot be cancelled until this is dropped.
struct Uncancelled(c_int);

impl Uncancelled {
    fn begin() -> Uncancelled {
        let mut before = 0;
        // SAFETY: a place of our own; concerns the calling thread alone.
        unsafe { pthread_setcancelstate(CANCEL_DISABLE, &mut before) };
        Uncancelled(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { pthread_setcancelstate(self.0, null_mut()) };
    }
}

/// Runs what waits or calls into the system, in a thread that the program may cancel.
pub fn uncancelled<T>(run: impl FnOnce() -> T) -> T {
    let _held = Uncancelled::begin();
    run()
}

/// The signals of [`RAISED`] are blocked until this is dropped; those that came meanwhile from ourselves are taken away.
struct Blocked {
    before: libc::sigset_t,
    /// They were waiting before, so the program is to have them.
    pending: libc::sigset_t,
}

fn empty() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: a place of our own, filled in by the call.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

impl Blocked {
    fn begin() -> Blocked {
        let (mut raised, mut before, mut pending) = (empty(), empty(), empty());
        // SAFETY: sets of our own; all of these concern the calling thread alone.
        unsafe {
            for signal in RAISED {
                libc::sigaddset(&mut raised, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raised, &mut before);
            libc::sigpending(&mut pending);
        }
        Blocked { before, pending }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        for signal in RAISED {
            let mut one = empty();
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            // SAFETY: sets and places of our own, which the calls fill in. A signal that somebody else sent meanwhile is
            // sent again: the kernel names us as the sender of those that our writes raise.
            unsafe {
                if libc::sigismember(&self.pending, signal) != 0 {
                    continue;
                }
                libc::sigaddset(&mut one, signal);
                let taken = libc::sigtimedwait(&one, info.as_mut_ptr(), &now) == signal;
                if taken && info.assume_init().si_pid() != libc::getpid() {
                    libc::kill(libc::getpid(), signal);
                }
            }
        }
        // SAFETY: as the thread had it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, null_mut()) };
    }
}

/// Runs what writes, so that nothing of it reaches the program but that it takes time.
pub fn apart<T>(write: impl FnOnce() -> T) -> T {
    let _uncancelled = Uncancelled::begin();
    let _blocked = Blocked::begin();
    write()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_pending(signal: c_int) -> bool {
        let mut pending = empty();
        // SAFETY: a set of our own.
        unsafe {
            libc::sigpending(&mut pending);
            libc::sigismember(&pending, signal) != 0
        }
    }

    /// A write that nobody reads.
    fn into_nowhere() -> bool {
        let mut ends = [0; 2];
        // SAFETY: places of our own, and file descriptors that were just made.
        unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            libc::close(ends[0]);
            let failed = libc::write(ends[1], b"x".as_ptr().cast(), 1) < 0;
            libc::close(ends[1]);
            failed
        }
    }

    #[test]
    fn a_signal_of_our_own_does_not_arrive() {
        // Rust's runtime ignores this signal; as a program has it that says nothing about it, it would end the test.
        // SAFETY: sets a default action.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        assert!(apart(into_nowhere));
        assert!(!is_pending(libc::SIGPIPE));
        // One that waited before is the program's, and stays.
        let mut pipe = empty();
        // SAFETY: a set of our own, for this thread.
        unsafe {
            libc::sigaddset(&mut pipe, libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &pipe, null_mut());
            libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE);
        }
        assert!(apart(into_nowhere) && is_pending(libc::SIGPIPE));
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: as above; what was there is put back.
        unsafe {
            assert_eq!(libc::sigtimedwait(&pipe, null_mut(), &now), libc::SIGPIPE);
            // Blocked by the program, raised by us: it is not left behind.
            assert!(apart(into_nowhere) && !is_pending(libc::SIGPIPE));
            libc::signal(libc::SIGPIPE, before);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &pipe, null_mut());
        }
    }
}
