//! An interrupt ends a command that reads: what it was writing is removed, and nothing half done has its final name.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

const MOMENT: Duration = Duration::from_millis(5);

/// Somebody waits for signals in the place of the command.
pub struct Watch {
    ending: Arc<AtomicBool>,
}

impl Watch {
    /// To be called before there are other threads, by a command that starts no processes: these would not hear of signals.
    /// `out`: what the command writes, under a temporary name beside it that has the number of this process.
    /// `placing`: held by the command while what it wrote gets its name, which is not disturbed.
    pub fn new(out: Option<PathBuf>, placing: &Arc<Mutex<()>>) -> Watch {
        let ending = Arc::new(AtomicBool::new(false));
        let set = heeded();
        if mask(libc::SIG_BLOCK, &set) {
            let (known, placing) = (ending.clone(), placing.clone());
            let waiting = std::thread::Builder::new().spawn(move || {
                let mut signal = 0;
                // SAFETY: both are ours, and live as long as the call.
                if unsafe { libc::sigwait(&set, &mut signal) } == 0 {
                    known.store(true, Ordering::SeqCst);
                    // To the end: nothing else gets its name after this.
                    let _placing = placing.lock().unwrap_or_else(PoisonError::into_inner);
                    // The command may be just about to begin: twice, and as often as there was something.
                    if let Some(out) = &out {
                        tidy(out);
                        std::thread::sleep(MOMENT);
                        while tidy(out) {
                            std::thread::sleep(MOMENT);
                        }
                    }
                    end_by(signal, &set);
                }
            });
            if waiting.is_err() {
                // Nobody waits for them: they end the process at once, as they do any other.
                mask(libc::SIG_UNBLOCK, &set);
            }
        }
        Watch { ending }
    }

    /// Lets a signal that came go first, whatever the command made of it.
    pub fn settle(&self) {
        while self.ending.load(Ordering::SeqCst) {
            std::thread::park();
        }
    }
}

/// Holds signals back from this thread and those that it starts, or lets them through again. Whether that was done.
fn mask(how: libc::c_int, set: &libc::sigset_t) -> bool {
    // SAFETY: `set` is a set of signals, and nobody asks for the old one.
    unsafe { libc::pthread_sigmask(how, set, ptr::null_mut()) == 0 }
}

/// Ends the process by the signal that came, so that a shell knows, and does not go on with what comes next.
fn end_by(signal: libc::c_int, set: &libc::sigset_t) -> ! {
    // SAFETY: sets the default action, which is to end.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    mask(libc::SIG_UNBLOCK, set);
    // SAFETY: sends it to this thread.
    unsafe { libc::raise(signal) };
    // The first process of a container is not ended so.
    // SAFETY: ends the process without anything else being done.
    unsafe { libc::_exit(128 + signal) }
}

/// The signals that end a process, but for those that whoever started this one has switched off.
fn heeded() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: makes a set of it.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in SIGNALS {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: only asks; all zeros are an action too.
        let known = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } == 0;
        // SAFETY: as above.
        if known && unsafe { action.assume_init() }.sa_sigaction != libc::SIG_IGN {
            // SAFETY: `set` was made above.
            unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
        }
    }
    // SAFETY: `sigemptyset` has made it one.
    unsafe { set.assume_init() }
}

/// Removes what this process has begun to write for `out`. Whether there was something.
fn tidy(out: &Path) -> bool {
    let mut found = false;
    let real = out.canonicalize().ok();
    for out in [Some(out), real.as_deref()].into_iter().flatten() {
        let Some(name) = out.file_name() else { continue };
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if is_begun(&entry.file_name(), name, std::process::id()) {
                let path = entry.path();
                let removed = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    true => std::fs::remove_dir_all(path),
                    false => std::fs::remove_file(path),
                };
                // What cannot be removed stays.
                found |= removed.is_ok();
            }
        }
    }
    found
}

/// `OUT.PROCESS-RANDOM.part`, `OUT.PROCESS.part` and `OUT.PROCESS.2.part`.
fn is_begun(name: &OsStr, out: &OsStr, process: u32) -> bool {
    let rest = name.as_bytes().strip_prefix(out.as_bytes());
    let rest = rest.and_then(|rest| rest.strip_prefix(format!(".{process}").as_bytes()));
    rest.is_some_and(|rest| (rest.starts_with(b".") || rest.starts_with(b"-")) && rest.ends_with(b".part"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_what_was_begun() {
        let begun = |name: &str| is_begun(OsStr::new(name), OsStr::new("a.prv"), 12);
        for ours in ["a.prv.12-00ff.part", "a.prv.12.part", "a.prv.12.3.part"] {
            assert!(begun(ours), "{ours}");
        }
        for other in
            ["a.prv", "a.prv.123.part", "a.prv.part", "a.prv.12", "b.a.prv.12.part", "a.prv.1.12.part"]
        {
            assert!(!begun(other), "{other}");
        }
    }
}
