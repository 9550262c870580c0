//! Starting the traced command and waiting for it, without getting between it and its signals.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::ptr;
use std::time::{Duration, Instant};

use crate::say;

/// Signals that are meant for the program. We share its process group, so those of the terminal reach it by
/// themselves; those sent to our process alone are passed on.
const FOR_THE_PROGRAM: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

/// A second Ctrl-C is one that comes later than this: what one key press sends to a process and to its group is one.
const APART: Duration = Duration::from_millis(300);
/// How long what was killed may take to be gone. A process that waits for a disk that never answers cannot be killed.
const AFTER_KILLING: Duration = Duration::from_secs(10);

/// When to stop waiting for a command that was told to end.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// It starts the program, and so ends when it is told to. A program may do with SIGINT what it likes.
    pub launcher: bool,
    pub grace: Duration,
    /// What sets it, if anything does.
    pub option: &'static str,
}

/// How often to look whether the command should go on, and what says that it should not.
pub type Look<'a> = (Duration, &'a mut dyn FnMut() -> bool);

/// Runs the command to its end. An error means that it did not start.
///
/// The signals stay blocked in this process afterwards while they are pending, so that an interrupted run still gets
/// its closing line.
pub fn run(command: &mut Command, patience: Patience) -> io::Result<ExitStatus> {
    run_watched(command, patience, None)
}

/// The same. When the one who looks says so, the command is told to end.
pub fn run_watched(
    command: &mut Command,
    patience: Patience,
    look: Option<Look<'_>>,
) -> io::Result<ExitStatus> {
    let set = signal_set()?;
    // Who ignores the end of children is never told how they ended. The program ignores it still.
    let children_ignored = is_ignored(libc::SIGCHLD)?;
    if children_ignored {
        set_disposition(libc::SIGCHLD, libc::SIG_DFL)?;
    }
    let before = block(&set)?;
    // SAFETY: pthread_sigmask and signal are async-signal-safe, and the closure owns the mask it reads.
    unsafe {
        command.pre_exec(move || {
            if children_ignored {
                set_disposition(libc::SIGCHLD, libc::SIG_IGN)?;
            }
            set_mask(&before)
        });
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            set_mask(&before)?;
            return Err(error);
        }
    };
    wait(&mut child, &set, patience, look)
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

/// What a command was told.
enum Order {
    Nothing,
    /// To end, by this signal and at this time.
    End(i32, Instant),
    /// It was killed.
    Killed(Instant),
}

fn wait(
    child: &mut Child,
    set: &libc::sigset_t,
    patience: Patience,
    mut look: Option<Look<'_>>,
) -> io::Result<ExitStatus> {
    let mut told = Order::Nothing;
    loop {
        // SIGCHLD is blocked, so a child that ends after this look leaves the signal pending.
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let left = match told {
            Order::Nothing => look.as_ref().map(|(every, _)| *every),
            Order::End(_, at) => Some(patience.grace.saturating_sub(at.elapsed())),
            Order::Killed(at) => Some(AFTER_KILLING.saturating_sub(at.elapsed())),
        };
        if left == Some(Duration::ZERO) && !matches!(told, Order::Nothing) {
            match told {
                Order::End(signal, _) => {
                    let (seconds, signal) = (patience.grace.as_secs(), name(signal));
                    say(&format!(
                        "the command has not ended {seconds} s after {signal}{}: it is killed with all that it \
                         started here",
                        patience.option
                    ));
                    told = kill_all(child);
                }
                _ => {
                    say("the command cannot be killed; it is left to itself");
                    return Ok(ExitStatus::from_raw(libc::SIGKILL));
                }
            }
            continue;
        }
        let Some((signal, sent_by_a_process)) = next_signal(set, left)? else {
            if let (Order::Nothing, Some((_, look))) = (&told, &mut look)
                && look()
            {
                send(child.id(), libc::SIGTERM);
                told = Order::End(libc::SIGTERM, Instant::now());
            }
            continue;
        };
        if signal == libc::SIGCHLD {
            continue;
        }
        if sent_by_a_process {
            send(child.id(), signal);
        }
        let ends = match signal {
            libc::SIGTERM => true,
            libc::SIGINT | libc::SIGHUP => patience.launcher,
            _ => false,
        };
        match told {
            Order::Nothing if ends => told = Order::End(signal, Instant::now()),
            Order::End(_, at) if ends && signal == libc::SIGINT && at.elapsed() > APART => {
                say("the command is killed with all that it started here");
                told = kill_all(child);
            }
            _ => {}
        }
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        libc::SIGINT => "SIGINT",
        libc::SIGHUP => "SIGHUP",
        _ => "SIGTERM",
    }
}

/// The next signal and whether a process sent it; nothing when that time has passed.
fn next_signal(set: &libc::sigset_t, left: Option<Duration>) -> io::Result<Option<(i32, bool)>> {
    let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
    let signal = match left {
        // SAFETY: both pointers are to live values of the right types.
        None => unsafe { libc::sigwaitinfo(set, info.as_mut_ptr()) },
        Some(left) => {
            let seconds = libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX);
            let left = libc::timespec { tv_sec: seconds, tv_nsec: left.subsec_nanos().into() };
            // SAFETY: as above.
            unsafe { libc::sigtimedwait(set, info.as_mut_ptr(), &left) }
        }
    };
    if signal < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: the wait succeeded, so it filled the structure in.
    let info = unsafe { info.assume_init() };
    Ok(Some((signal, info.si_code == libc::SI_USER)))
}

fn send(process: u32, signal: i32) {
    if let Ok(process @ 2..) = libc::pid_t::try_from(process) {
        // SAFETY: kill takes no pointers. The child has not been waited for, so its number is still its own.
        unsafe { libc::kill(process, signal) };
    }
}

/// Kills the child and all that descends from it on this machine. Daemons of a launcher elsewhere notice that it is gone.
fn kill_all(child: &Child) -> Order {
    // What is started while we look is found the next time.
    for _ in 0..3 {
        let family = family(child.id());
        family.iter().for_each(|process| send(*process, libc::SIGKILL));
        if family.len() == 1 {
            break;
        }
    }
    Order::Killed(Instant::now())
}

/// A process and what descends from it.
fn family(first: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The command stands in brackets, and may have some itself.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(process);
    }
    let mut family = vec![first];
    let mut at = 0;
    while at < family.len() {
        family.extend(children.remove(&family[at]).unwrap_or_default());
        at += 1;
    }
    family
}

/// The signals to wait for. What this process was started to ignore, as `nohup` does with SIGHUP, it goes on ignoring, and
/// so does the program: the kernel would keep such a signal for who waits for it.
fn signal_set() -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises what it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by the line above.
    let mut set = unsafe { set.assume_init() };
    for signal in FOR_THE_PROGRAM.into_iter().chain([libc::SIGCHLD]) {
        if signal == libc::SIGCHLD || !is_ignored(signal)? {
            // SAFETY: the set is initialised and the signal numbers are valid.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
    }
    Ok(set)
}

fn is_ignored(signal: i32) -> io::Result<bool> {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: nothing is changed, and the pointer is to a live value of the right type.
    if unsafe { libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: sigaction succeeded, so it filled the structure in.
    Ok(unsafe { now.assume_init() }.sa_sigaction == libc::SIG_IGN)
}

/// Sets what a signal does to "ignored" or to what the system does by itself. May be called after a fork.
fn set_disposition(signal: i32, disposition: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: neither of the two is a function, so none of ours is ever called.
    let before = unsafe { libc::signal(signal, disposition) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
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
