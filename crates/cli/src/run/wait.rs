//! Starting the traced command and waiting for it, without getting between it and its signals.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::ptr;

/// Signals that are meant for the program. We share its process group, so those of the terminal reach it by
/// themselves; those sent to our process alone are passed on.
const FOR_THE_PROGRAM: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// Runs the command to its end. An error means that it did not start.
///
/// The signals stay blocked in this process afterwards while they are pending, so that an interrupted run still gets
/// its closing line.
pub fn run(command: &mut Command) -> io::Result<ExitStatus> {
    let set = signal_set();
    let before = block(&set)?;
    // SAFETY: pthread_sigmask is async-signal-safe, and the closure owns the mask it reads.
    unsafe {
        command.pre_exec(move || set_mask(&before));
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            set_mask(&before)?;
            return Err(error);
        }
    };
    wait(&mut child, &set)
}

/// What the shell would say: the exit code, or 128 + the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    // The kernel keeps eight bits of an exit code, and signals end at 64.
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// The signal that ended it, or, as launchers say it, one of its processes.
pub fn signal(status: ExitStatus) -> Option<i32> {
    status.signal().or_else(|| status.code()?.checked_sub(128).filter(|signal| (1..=64).contains(signal)))
}

fn wait(child: &mut Child, set: &libc::sigset_t) -> io::Result<ExitStatus> {
    loop {
        // SIGCHLD is blocked, so a child that ends after this look leaves the signal pending for sigwaitinfo.
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: both pointers are to live values of the right types.
        let signal = unsafe { libc::sigwaitinfo(set, info.as_mut_ptr()) };
        if signal < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        // SAFETY: sigwaitinfo succeeded, so it filled the structure in.
        let sent_by_a_process = unsafe { info.assume_init() }.si_code == libc::SI_USER;
        if signal != libc::SIGCHLD && sent_by_a_process {
            let pid = libc::pid_t::try_from(child.id()).unwrap_or(0);
            if pid > 0 {
                // SAFETY: kill takes no pointers; the child has not been waited for, so the id is still its own.
                unsafe { libc::kill(pid, signal) };
            }
        }
    }
}

fn signal_set() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises what it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by the line above.
    let mut set = unsafe { set.assume_init() };
    for signal in FOR_THE_PROGRAM.into_iter().chain([libc::SIGCHLD]) {
        // SAFETY: the set is initialised and the signal numbers are valid.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    set
}

/// Blocks the set and returns the mask as it was.
fn block(set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both pointers are to live values of the right type.
    check(unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, before.as_mut_ptr()) })?;
    // SAFETY: pthread_sigmask succeeded, so it wrote the old mask.
    Ok(unsafe { before.assume_init() })
}

fn set_mask(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the mask is a live, initialised value; the old one is not asked for.
    check(unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) })
}

/// The pthread functions return their error instead of setting errno.
fn check(code: i32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}
