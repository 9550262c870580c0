//! The functions that a thread of another process is in, now. The thread stands still for the time that its registers and its
//! stack are copied in, as a rule less than a millisecond; what they mean is found afterwards.
//!
//! Three rules: the thread goes on, whatever happens here; nothing of it is changed; and a system call that the stop could make
//! fail is not stopped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::io;

use refrain_sites::unwind::{LENT, Mapping, Place, Stopped, Unwinder};

/// So many frames at most.
const MOST_FRAMES: usize = 64;

/// Why a stack is not known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// On this host, or where its processes have other numbers.
    Elsewhere,
    NotAllowed,
    /// Somebody else looks at it: a debugger, as a rule.
    Traced,
    /// It is in a system call that might fail for it.
    SystemCall,
    /// Which of the threads of the process it is nobody knows.
    WhichThread,
    /// It has ended, or does not stop.
    NoAnswer,
    #[cfg(not(target_arch = "x86_64"))]
    Processor,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Elsewhere => "not on this host",
            Why::NotAllowed => {
                "this user may not look into the process (see kernel.yama.ptrace_scope; containers need CAP_SYS_PTRACE)"
            }
            Why::Traced => "a debugger or another tool is attached",
            Why::SystemCall => "a system call is under way that could fail if the thread was stopped",
            Why::WhichThread => "which thread of the process made the calls is not known",
            Why::NoAnswer => "the thread has ended, or does not stop",
            #[cfg(not(target_arch = "x86_64"))]
            Why::Processor => "not on this kind of processor",
        })
    }
}

/// The stack of a thread, the innermost frame first. `same` is asked afterwards: whether it is still where it was.
pub fn look(
    unwinder: &mut Unwinder,
    process: u32,
    thread: u32,
    same: impl Fn() -> bool + Send,
) -> Result<Vec<Place>, Why> {
    // What has attached is the thread that did. When that ends, for whatever reason, the kernel lets go of all that it holds.
    let read = std::thread::scope(|scope| scope.spawn(|| stopped(process, thread, same)).join());
    let stopped = read.unwrap_or(Err(Why::NoAnswer))?;
    Ok(stopped.map_or_else(Vec::new, |stopped| unwinder.frames(&stopped, MOST_FRAMES)))
}

/// The pieces of a process's memory that have names; and where all pieces begin and end, because stacks end there.
type Mappings = (Vec<Mapping>, Vec<(u64, u64)>);

fn mappings(process: u32) -> Option<Mappings> {
    let text = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let (mut named, mut all) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        let offset = words.nth(1).and_then(number)?;
        all.push((start, end));
        let path = words.nth(2).unwrap_or_default().trim_start();
        if path.starts_with('/') || path == LENT {
            named.push(Mapping { start, end, offset, path: path.to_owned() });
        }
    }
    Some((named, all))
}

#[cfg(not(target_arch = "x86_64"))]
fn stopped(_: u32, _: u32, _: impl Fn() -> bool) -> Result<Option<Stopped>, Why> {
    Err(Why::Processor)
}

/// `None`: it has gone on.
#[cfg(target_arch = "x86_64")]
fn stopped(process: u32, thread: u32, same: impl Fn() -> bool) -> Result<Option<Stopped>, Why> {
    can_stop(process, thread)?;
    let held = Held::stop(thread)?;
    let registers = held.registers()?;
    // The maps cannot change under the thread that is looked at, and other threads do not unmap its stack.
    let (mappings, all) = mappings(process).ok_or(Why::NotAllowed)?;
    let low = registers.rsp.saturating_sub(RED_ZONE);
    let high = all.iter().find(|(start, end)| (*start..*end).contains(&registers.rsp)).map(|(_, end)| *end);
    let length = high.map_or(0, |high| high.saturating_sub(low).min(MOST_STACK));
    let stack = copy(thread, low, length);
    let lent = mappings.iter().find(|one| one.path == LENT);
    let lent = lent.map_or_else(Vec::new, |one| copy(thread, one.start, one.end.saturating_sub(one.start)));
    drop(held);
    // What it does never comes again: if it is the same now, it was while the thread stood still.
    if !same() {
        return Ok(None);
    }
    let r = registers;
    // By their numbers in DWARF.
    let registers = [
        r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
        r.r14, r.r15, r.rip,
    ];
    Ok(Some(Stopped { registers, mappings, stack, low, lent }))
}

/// Below its stack pointer a function may use so much.
const RED_ZONE: u64 = 128;
/// So much of a stack is copied. It takes a few milliseconds.
const MOST_STACK: u64 = 16 << 20;

/// A thread that sleeps in one of these system calls sleeps on when it has been stopped: the kernel calls them again. Others fail
/// with EINTR, as `epoll_wait` and `semop` do, and a program may not expect that.
fn sleeps_on(call: libc::c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if matches!(call, libc::SYS_poll | libc::SYS_select | libc::SYS_pause) {
        return true;
    }
    matches!(
        call,
        libc::SYS_nanosleep
            | libc::SYS_clock_nanosleep
            | libc::SYS_restart_syscall
            | libc::SYS_futex
            | libc::SYS_ppoll
            | libc::SYS_pselect6
            | libc::SYS_rt_sigsuspend
            | libc::SYS_wait4
            | libc::SYS_waitid
            | libc::SYS_sched_yield
    )
}

/// Whether stopping a thread disturbs it.
fn can_stop(process: u32, thread: u32) -> Result<(), Why> {
    let place = format!("/proc/{process}/task/{thread}");
    let status = fs::read_to_string(format!("{place}/status")).map_err(|_| Why::NoAnswer)?;
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")).map(str::trim);
    if tracer.is_some_and(|tracer| tracer != "0") {
        return Err(Why::Traced);
    }
    match fs::read_to_string(format!("{place}/syscall")) {
        Ok(text) => match text.split_whitespace().next() {
            // At work; or without a system call: it waits for memory, or was stopped by somebody.
            Some("running" | "-1") => Ok(()),
            Some(call)
                if call.parse().is_ok_and(|call| sleeps_on(call) || may_be_read(call, process, &text)) =>
            {
                Ok(())
            }
            _ => Err(Why::SystemCall),
        },
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Why::NotAllowed),
        // A kernel that does not tell: it may be stopped if it runs.
        Err(_) => {
            let state = status.lines().find_map(|line| line.strip_prefix("State:")).map(str::trim);
            if state.is_some_and(|state| state.starts_with('R')) { Ok(()) } else { Err(Why::SystemCall) }
        }
    }
}

/// Reading goes on too, of a pipe or a terminal. A long write would return what it has written by then.
fn may_be_read(call: libc::c_long, process: u32, text: &str) -> bool {
    let file = text.split_whitespace().nth(1).and_then(|file| file.strip_prefix("0x"));
    let file = file.and_then(|file| u64::from_str_radix(file, 16).ok());
    let Some(file) = file.filter(|_| call == libc::SYS_read) else { return false };
    let what = fs::read_link(format!("/proc/{process}/fd/{file}")).unwrap_or_default();
    what.to_str().is_some_and(|what| what.starts_with("pipe:[") || what.starts_with("/dev/pts/"))
}

#[cfg(target_arch = "x86_64")]
fn copy(thread: u32, from: u64, length: u64) -> Vec<u8> {
    let Ok(length) = usize::try_from(length) else { return Vec::new() };
    let mut bytes = vec![0u8; length];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    let remote = libc::iovec { iov_base: from as *mut libc::c_void, iov_len: length };
    // SAFETY: the one place is ours and has so many bytes; of the other the kernel says how much can be read.
    let read = unsafe {
        libc::process_vm_readv(thread as libc::pid_t, &raw const local, 1, &raw const remote, 1, 0)
    };
    bytes.truncate(usize::try_from(read).unwrap_or(0));
    bytes
}

/// The kernel is given whole words.
#[cfg(target_arch = "x86_64")]
const NOWHERE: *mut libc::c_void = std::ptr::null_mut();

/// A thread that stands still until this is dropped.
#[cfg(target_arch = "x86_64")]
struct Held {
    thread: libc::pid_t,
    /// What it was about to be given when it stopped; 0: nothing.
    signal: libc::c_int,
}

#[cfg(target_arch = "x86_64")]
impl Held {
    fn stop(thread: u32) -> Result<Held, Why> {
        /// With the signal of a stop that is ours.
        const EVENT_STOP: libc::c_int = 128;
        /// A thread that waits for a disk does not stop.
        const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);
        let thread = libc::pid_t::try_from(thread).map_err(|_| Why::NoAnswer)?;
        let ask = |request| {
            // SAFETY: neither request reads or writes anything of ours.
            match unsafe { libc::ptrace(request, thread, NOWHERE, NOWHERE) } {
                -1 if io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) => Err(Why::NoAnswer),
                -1 => Err(Why::NotAllowed),
                _ => Ok(()),
            }
        };
        ask(libc::PTRACE_SEIZE)?;
        ask(libc::PTRACE_INTERRUPT)?;
        let begun = std::time::Instant::now();
        loop {
            let mut status = 0;
            // SAFETY: a valid place for the answer.
            let of = unsafe { libc::waitpid(thread, &raw mut status, libc::WNOHANG | libc::__WALL) };
            if of == thread && libc::WIFSTOPPED(status) {
                // A signal that was on its way goes on to the program.
                let is_ours = status >> 16 == EVENT_STOP;
                let signal = if is_ours { 0 } else { libc::WSTOPSIG(status) };
                return Ok(Held { thread, signal });
            }
            // If it has not stopped it is let go when this thread ends.
            if of != 0 || begun.elapsed() > PATIENCE {
                return Err(Why::NoAnswer);
            }
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }

    fn registers(&self) -> Result<libc::user_regs_struct, Why> {
        let mut registers = std::mem::MaybeUninit::<libc::user_regs_struct>::zeroed();
        // SAFETY: a place of the size that the kernel fills for this request.
        let done =
            unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.thread, NOWHERE, registers.as_mut_ptr()) };
        // SAFETY: any bytes are registers.
        if done == -1 { Err(Why::NoAnswer) } else { Ok(unsafe { registers.assume_init() }) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for Held {
    fn drop(&mut self) {
        let signal = libc::c_long::from(self.signal);
        // SAFETY: reads and writes nothing of ours. If it fails the thread is gone.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.thread, NOWHERE, signal) };
    }
}

/// Stacks by rank and thread.
#[derive(Debug, Default)]
pub struct Stacks {
    pub known: HashMap<(u32, u32), Vec<Place>>,
    /// Ranks whose stacks are not known.
    pub unknown: BTreeMap<Why, BTreeSet<u32>>,
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A child that sleeps, in the system call by the time this returns.
    fn sleeper(seconds: &str) -> Child {
        let child = Command::new("sleep").arg(seconds).stdin(Stdio::null()).spawn().unwrap();
        let place = format!("/proc/{}/syscall", child.id());
        let asleep = libc::SYS_clock_nanosleep.to_string();
        // Where nobody may look it is taken on trust.
        let begun = std::time::Instant::now();
        while begun.elapsed().as_secs() < 10
            && fs::read_to_string(&place).is_ok_and(|text| text.split(' ').next() != Some(&asleep))
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child
    }

    #[test]
    fn a_thread_is_looked_at_and_goes_on() {
        let mut child = sleeper("5");
        let found = look(&mut Unwinder::default(), child.id(), child.id(), || true);
        // It sleeps to its end, and well.
        assert!(child.wait().unwrap().success());
        let found = match found {
            Ok(found) => found,
            // Where nobody may look.
            Err(why) => return assert!(matches!(why, Why::NotAllowed | Why::SystemCall), "{why:?}"),
        };
        let modules: Vec<&str> =
            found.iter().filter_map(|place| place.module.path.rsplit('/').next()).collect();
        assert!(modules[0].starts_with("libc"), "{modules:?}");
        // Called by the program, which libc has called, which the program's first instructions have called.
        let own = |name: &&&str| !name.starts_with("libc");
        assert!(
            modules.iter().filter(own).count() >= 2 && !modules.last().unwrap().starts_with("libc"),
            "{modules:?}"
        );
    }

    #[test]
    fn one_that_has_gone_on_has_no_stack() {
        let mut child = sleeper("600");
        let found = look(&mut Unwinder::default(), child.id(), child.id(), || false);
        let may_not = |why: &Why| matches!(why, Why::NotAllowed | Why::SystemCall);
        assert!(found == Ok(Vec::new()) || found.as_ref().is_err_and(may_not), "{found:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(look(&mut Unwinder::default(), child.id(), child.id(), || true).is_err());
    }

    #[test]
    fn calls_that_could_fail_are_not_stopped() {
        assert!(sleeps_on(libc::SYS_clock_nanosleep) && sleeps_on(libc::SYS_futex));
        assert!(!sleeps_on(libc::SYS_semtimedop) && !sleeps_on(libc::SYS_epoll_pwait));
    }
}
