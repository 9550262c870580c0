//! A file of ours that the program can take nothing of. Its descriptor is held under a high number, so that the file grows also
//! where the program has used up its descriptors, lowered their limit, or become another user. Programs close descriptors that
//! they know nothing of: before each use the number is looked at, and if another file has it the name leads back to ours.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::path::PathBuf;

use refrain_tracefile::private::Private;

/// Where the program may have more descriptors than this, numbers from here on are ours.
const FIRST: libc::rlim_t = 1 << 10;

/// A file in a directory of parts.
pub struct Held {
    pub directory: PathBuf,
    pub name: OsString,
    descriptor: Option<Descriptor>,
}

impl Held {
    pub fn new(directory: PathBuf, name: OsString, file: &File) -> Held {
        Held { directory, name, descriptor: Descriptor::of(file) }
    }

    /// One that there is not.
    pub fn nothing(directory: PathBuf, name: OsString) -> Held {
        Held { directory, name, descriptor: None }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// Does something in the file.
    pub fn with<T>(&mut self, work: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        if let Some(file) = self.descriptor.as_ref().and_then(Descriptor::file) {
            return work(&file);
        }
        let file = Private::open(&self.directory)?.reopen(&self.name)?;
        self.descriptor = Descriptor::of(&file);
        work(&file)
    }
}

/// The number of an open file, and what tells that file from others.
struct Descriptor {
    number: RawFd,
    file: (libc::dev_t, libc::ino_t),
}

impl Descriptor {
    /// `None` where no high number can be had: the low ones are the program's.
    fn of(file: &File) -> Option<Descriptor> {
        let number = duplicate(file.as_raw_fd())?;
        let Some(file) = which(number) else {
            close(number);
            return None;
        };
        Some(Descriptor { number, file })
    }

    fn file(&self) -> Option<ManuallyDrop<File>> {
        // SAFETY: the number is that of our file, which stays open: it is not dropped.
        (which(self.number) == Some(self.file))
            .then(|| ManuallyDrop::new(unsafe { File::from_raw_fd(self.number) }))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if which(self.number) == Some(self.file) {
            close(self.number);
        }
    }
}

fn close(number: RawFd) {
    // SAFETY: a descriptor of ours that nobody uses any more.
    unsafe { libc::close(number) };
}

fn which(number: RawFd) -> Option<(libc::dev_t, libc::ino_t)> {
    let mut about = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: any number may be asked about, and there is room for the answer.
    if unsafe { libc::fstat(number, about.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call has filled it in.
    let about = unsafe { about.assume_init() };
    Some((about.st_dev, about.st_ino))
}

/// The same file under a number that takes none of the program's: one beyond those that it may have, if that limit may be
/// raised for the moment; otherwise a high one of many.
fn duplicate(number: RawFd) -> Option<RawFd> {
    let limit = Limit::now()?;
    let above = |least: libc::rlim_t| {
        // SAFETY: takes numbers only.
        let number = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, least as libc::c_int) };
        (number >= 0).then_some(number)
    };
    if limit.0.rlim_cur > 4 * FIRST {
        return above(FIRST);
    }
    if limit.0.rlim_cur < limit.0.rlim_max {
        let _raised = Raised::from(limit)?;
        return above(limit.0.rlim_cur);
    }
    (limit.0.rlim_cur >= FIRST / 4).then(|| above(limit.0.rlim_cur / 4 * 3)).flatten()
}

/// How many descriptors this process may have.
#[derive(Clone, Copy)]
struct Limit(libc::rlimit);

impl Limit {
    fn now() -> Option<Limit> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a place for the answer.
        (unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0).then_some(Limit(limit))
    }

    fn set(self) -> bool {
        // SAFETY: reads a place of ours.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &self.0) == 0 }
    }
}

/// The limit is as high as the program may set it, until this is dropped.
pub struct Raised(Limit);

impl Raised {
    fn from(limit: Limit) -> Option<Raised> {
        Limit(libc::rlimit { rlim_cur: limit.0.rlim_max, ..limit.0 }).set().then_some(Raised(limit))
    }

    /// Only where no file can be opened.
    pub fn if_needed() -> Option<Raised> {
        match File::open("/") {
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => Raised::from(Limit::now()?),
            _ => None,
        }
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_file_is_found_again_when_its_number_is_another_s() {
        let place = std::env::temp_dir().join(format!("refrain-held-{}", std::process::id()));
        let private = Private::make(&place).unwrap();
        let file = private.create("a".as_ref()).unwrap();
        let mut held = Held::new(place.clone(), "a".into(), &file);
        drop(file);
        let number = |held: &Held| held.descriptor.as_ref().map(|descriptor| descriptor.number).unwrap();
        let first = number(&held);
        assert!(first > 100, "{first}");
        held.with(|file| file.write_all_at(b"one", 0)).unwrap();
        // Without its name it is still ours.
        fs::rename(place.join("a"), place.join("b")).unwrap();
        held.with(|file| file.write_all_at(b"two", 3)).unwrap();
        fs::rename(place.join("b"), place.join("a")).unwrap();
        // The program closes all, and has another file under that number.
        let other = fs::File::create(place.join("other")).unwrap();
        // SAFETY: numbers; what was there is the file that is held.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), first) }, first);
        held.with(|file| file.write_all_at(b"three", 6)).unwrap();
        assert_eq!(fs::read(place.join("a")).unwrap(), b"onetwothree");
        assert_eq!(fs::read(place.join("other")).unwrap(), b"");
        drop(held);
        // The other one is not ours to close.
        assert!(which(first).is_some());
        close(first);
        fs::remove_dir_all(place).unwrap();
    }
}
