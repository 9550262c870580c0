//! Which call a rank is in, for whoever watches over it: a page of a file that outlives the process.
//!
//! `[number of the call that began last + 1, number of the call that ended last + 1, process, calls of other threads]`,
//! little-endian. The first two are those of the first thread, and differ while it is in a call. On another machine there is
//! no such file: a thread of the rank watches there.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const BYTES: usize = 32;

#[derive(Debug, Clone, Copy)]
pub struct Watch {
    words: &'static [AtomicU64; 4],
    first_thread: bool,
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
        let words = unsafe { &*page.cast::<[AtomicU64; 4]>() };
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

    /// The call that its first thread is in.
    pub fn inside(&self) -> Option<u64> {
        let [begun, ended, ..] = self.words.each_ref().map(|word| word.load(Relaxed));
        (begun != ended).then(|| begun.saturating_sub(1))
    }

    /// So many calls other threads have begun.
    pub fn others(&self) -> u64 {
        self.words[3].load(Relaxed)
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
            (bytes.len(), word(0), word(8), word(24))
        };
        assert_eq!((words(), watch.inside()), ((32, 0, 0, 0), None));
        watch.begins(6);
        assert_eq!((words(), watch.inside()), ((32, 7, 0, 0), Some(6)));
        watch.ends();
        assert_eq!((words(), watch.inside()), ((32, 7, 7, 0), None));
        let other = watch.of_thread(1);
        other.begins(3);
        other.ends();
        assert_eq!((words(), watch.inside(), watch.others()), ((32, 7, 7, 1), None, 1));
        std::fs::remove_file(&path).unwrap();
        assert!(Watch::in_file(Path::new("/nowhere/at/all")).is_err());
    }
}
