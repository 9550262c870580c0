//! Shared mappings of files among the parts.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicU64;

use refrain_guest::ends::shield;
use refrain_guest::process::pages;
use refrain_tracefile::part::{HEADER, Word};

/// Room on disk is taken before anything is stored there: a store to a page that has none would be the end of the program.
/// By zeros: there is a word for it, but a filter of system calls may end a program that speaks it.
pub fn allocate(file: &File, from: usize, to: usize) -> io::Result<()> {
    const BLOCK: usize = 16 << 10;
    let zeros = [0; BLOCK];
    let before = file.metadata()?.len();
    let taken = (from..to)
        .step_by(BLOCK)
        .try_for_each(|at| file.write_all_at(&zeros[..BLOCK.min(to - at)], at as u64));
    if taken.is_err() && before < to as u64 {
        // What is too little is given back: others may need it.
        let _ = file.set_len(before);
    }
    taken
}

/// A shared mapping of some of a part file, which has room for it.
fn map(file: &File, offset: usize, length: usize) -> io::Result<*mut u8> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    let (file, offset) = (file.as_raw_fd(), offset as libc::off_t);
    // SAFETY: a new mapping wherever there is room.
    let start = unsafe { pages::map_as(null_mut(), length, protection, flags, file, offset) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start.cast()) }
}

/// The words of a part. Their page stays mapped as long as the process lives: a signal handler on any thread may be on
/// its way to them.
#[derive(Clone, Copy)]
pub struct Words(&'static [AtomicU64; HEADER / 8]);

impl Words {
    pub fn map(file: &File) -> io::Result<Words> {
        let start = map(file, 0, HEADER)?;
        shield::shield(start as usize, HEADER);
        // SAFETY: a page that is never unmapped, and is only used as these.
        Ok(Words(unsafe { &*start.cast() }))
    }

    /// In memory alone.
    pub fn nowhere() -> io::Result<Words> {
        let start = pages::map(HEADER).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: as above, and zeroed.
        Ok(Words(unsafe { start.cast().as_ref() }))
    }

    #[inline]
    pub fn word(self, word: Word) -> &'static AtomicU64 {
        &self.0[word as usize]
    }

    /// One by its number, of those that are no `Word` ([`refrain_tracefile::flight`]).
    pub fn at(self, number: usize) -> &'static AtomicU64 {
        &self.0[number.min(HEADER / 8 - 1)]
    }
}

/// A place in a file: of the journal, or of the log of times. Unmapped when dropped.
pub struct Tail {
    start: NonNull<u8>,
    pub length: usize,
    /// So much of it has room on disk.
    pub ready: usize,
}

// SAFETY: plain memory that only its owner refers to.
unsafe impl Send for Tail {}

impl Tail {
    /// Of that place in a file. Its first `there` bytes have room already, and `ready` are to have it.
    pub fn map(
        file: &File,
        offset: usize,
        length: usize,
        (there, ready): (usize, usize),
    ) -> io::Result<Tail> {
        let ready = ready.min(length);
        allocate(file, offset + there, offset + ready)?;
        let start = map(file, offset, length)?;
        shield::shield(start as usize, length);
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Tail { start, length, ready })
    }

    /// Without any room.
    pub fn nowhere() -> Tail {
        Tail { start: NonNull::dangling(), length: 0, ready: 0 }
    }

    /// Takes more room on disk. Whether there is more than before.
    pub fn go_on(&mut self, file: &File, offset: usize) -> io::Result<bool> {
        let ready = (self.ready * 2).next_multiple_of(HEADER).min(self.length);
        allocate(file, offset + self.ready, offset + ready)?;
        Ok(std::mem::replace(&mut self.ready, ready) < ready)
    }

    /// Up to `used` it is written and not looked at again: the file has it, and it need not lie in this process's memory.
    /// Where it is written anew, the pages come back.
    pub fn let_go(&self, used: usize) {
        let used = used / HEADER * HEADER;
        if used > 0 {
            // SAFETY: advice about our own mapping of a file, whose contents stay; whole pages of it.
            unsafe { pages::let_go(self.start.as_ptr().cast(), used) };
        }
    }

    /// As far as there is room on disk.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: a part of the mapping, which is nobody else's; or nothing.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.ready) }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        if self.length > 0 {
            shield::unshield(self.start.as_ptr() as usize);
            // SAFETY: mapped by `map`, and `self` was the only way to it.
            unsafe { libc::syscall(libc::SYS_munmap, self.start.as_ptr(), self.length) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_guest::process::apart::apart;
    use refrain_tracefile::private::Private;

    /// No file may be longer than that: what there was no room for takes none.
    #[test]
    fn what_is_too_little_room_is_given_back() {
        // In a process of its own: the limit is the whole process's.
        const TOLD: &str = "REFRAIN_TEST_TOO_LITTLE";
        let Some(place) = std::env::var_os(TOLD) else {
            let place = std::env::temp_dir().join(format!("refrain-tail-{}", std::process::id()));
            let own = "tail::tests::what_is_too_little_room_is_given_back";
            let mut again = std::process::Command::new(std::env::current_exe().unwrap());
            let done = again.args(["--exact", own]).env(TOLD, &place).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
            std::fs::remove_dir_all(place).unwrap();
            return;
        };
        let private = Private::make(place.as_ref()).unwrap();
        let file = private.create("a".as_ref()).unwrap();
        let length = || file.metadata().unwrap().len();
        let mut tail = Tail::map(&file, HEADER, 1 << 20, (0, HEADER)).unwrap();
        let limit = libc::rlimit { rlim_cur: 3 * HEADER as u64 + 100, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: reads a place of ours.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
        assert!(apart(|| tail.go_on(&file, HEADER)).unwrap());
        assert_eq!((length(), tail.ready), (3 * HEADER as u64, 2 * HEADER));
        assert!(apart(|| tail.go_on(&file, HEADER)).is_err());
        assert_eq!((length(), tail.ready), (3 * HEADER as u64, 2 * HEADER));
    }
}
