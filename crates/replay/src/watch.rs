//! What a rank does, for whoever watches over it: a page of a file that outlives the process.
//!
//! Words of eight bytes, little-endian:
//!
//! | | |
//! |---|---|
//! | 0 | number of the call that the first thread began last, + 1 |
//! | 1 | number of the call that it ended last, + 1: they differ while it is in a call |
//! | 2 | process |
//! | 3 | calls that other threads have begun |
//! | 4 | threads that compute |
//! | 5 | 1: the first thread waits for others, or has come to its end |
//! | 6 | whose number the process is (`refrain_tracefile::claim::processes_seen`) |
//!
//! On another machine there may be no such file: a thread of the rank watches there.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use refrain_tracefile::claim::processes_seen;

const WORDS: usize = 7;
const BYTES: usize = 8 * WORDS;

#[derive(Debug, Clone, Copy)]
pub struct Watch {
    words: &'static [AtomicU64; WORDS],
    first_thread: bool,
}

/// What a rank does. It gets on for as long as this changes, or it computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Its first thread is in the call with this number; so many calls other threads have begun.
    Inside(u64, u64),
    /// Its first thread waits for others, which have begun so many calls.
    Waits(u64),
    Computes,
}

impl Watch {
    /// Nobody sees it but this process.
    pub fn nobody() -> Watch {
        Watch { words: Box::leak(Box::default()), first_thread: true }
    }

    /// Told in the page of a file that is made for it.
    pub fn in_file(path: &Path) -> io::Result<Watch> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        // A page that is not there would end the process when it is written to.
        // SAFETY: an open file.
        let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, BYTES as libc::off_t) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of a file that has these bytes.
        let page = unsafe { libc::mmap(null_mut(), BYTES, prot, flags, file.as_raw_fd(), 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a page, aligned, never unmapped; all words are zero.
        let words = unsafe { &*page.cast::<[AtomicU64; WORDS]>() };
        words[6].store(processes_seen(), Relaxed);
        words[2].store(std::process::id().into(), Relaxed);
        Ok(Watch { words, first_thread: true })
    }

    /// The same for another thread of the rank.
    pub fn of_thread(&self, thread: u32) -> Watch {
        Watch { first_thread: thread == 0, ..*self }
    }

    pub fn begins(&self, number: u64) {
        match self.first_thread {
            true => self.words[0].store(number + 1, Relaxed),
            false => _ = self.words[3].fetch_add(1, Relaxed),
        }
    }

    pub fn ends(&self) {
        if self.first_thread {
            self.words[1].store(self.words[0].load(Relaxed), Relaxed);
        }
    }

    /// A thread computes while `it` is done.
    pub fn computes<T>(&self, it: impl FnOnce() -> T) -> T {
        self.words[4].fetch_add(1, Relaxed);
        let done = it();
        self.words[4].fetch_sub(1, Relaxed);
        done
    }

    /// The thread waits for others from now on, or no longer does.
    pub fn waits(&self, yes: bool) {
        if self.first_thread {
            self.words[5].store(yes.into(), Relaxed);
        }
    }

    pub fn doing(&self) -> Doing {
        let [begun, ended, _, others, computing, waits, _] = self.words.each_ref().map(|w| w.load(Relaxed));
        match begun != ended {
            _ if computing > 0 => Doing::Computes,
            true => Doing::Inside(begun.saturating_sub(1), others),
            false if waits != 0 => Doing::Waits(others),
            false => Doing::Computes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_which_call_it_is() {
        let path = std::env::temp_dir().join(format!("refrain-watch-{}", std::process::id()));
        let watch = Watch::in_file(&path).unwrap();
        let words = || {
            let bytes = std::fs::read(&path).unwrap();
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            assert_eq!((bytes.len(), word(16)), (56, std::process::id().into()));
            assert_eq!(word(48), processes_seen());
            [word(0), word(8), word(24), word(32), word(40)]
        };
        assert_eq!((words(), watch.doing()), ([0; 5], Doing::Computes));
        watch.begins(6);
        assert_eq!((words(), watch.doing()), ([7, 0, 0, 0, 0], Doing::Inside(6, 0)));
        let other = watch.of_thread(1);
        other.begins(3);
        other.ends();
        assert_eq!((words(), watch.doing()), ([7, 0, 1, 0, 0], Doing::Inside(6, 1)));
        // Whoever waits in a call waits for one who computes.
        other.computes(|| assert_eq!((words(), watch.doing()), ([7, 0, 1, 1, 0], Doing::Computes)));
        watch.ends();
        assert_eq!((words(), watch.doing()), ([7, 7, 1, 0, 0], Doing::Computes));
        other.waits(true);
        assert_eq!(words(), [7, 7, 1, 0, 0]);
        watch.waits(true);
        assert_eq!((words(), watch.doing()), ([7, 7, 1, 0, 1], Doing::Waits(1)));
        watch.waits(false);
        assert_eq!(watch.doing(), Doing::Computes);
        std::fs::remove_file(&path).unwrap();
        assert!(Watch::in_file(Path::new("/nowhere/at/all")).is_err());
    }
}
