//! A directory that nobody else can put anything into, and the files in it.
//!
//! Parts lie beside the trace, often where others may write too (`/tmp`, a project's scratch). Whoever gets there first
//! could otherwise choose what we overwrite: with a directory of his own, a link, a pipe. So the directory must be ours,
//! files are made new, nothing is reached through a link, and what is read is a plain file of the directory's owner.
//!
//! System calls go straight to the kernel (`rustix`): inside a traced program none of them is a point at which a thread
//! can be cancelled, and no other preloaded library sees them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, chmodat, fchmod, fstat, mkdir, openat,
    readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

/// Group and others may write.
const SHARED: u32 = 0o022;
/// What a file and a directory are for.
const PERMISSIONS: u32 = 0o777;

/// An open directory of our own.
#[derive(Debug)]
pub struct Private {
    directory: OwnedFd,
    path: PathBuf,
    owner: u32,
}

impl Private {
    /// That directory, made if there is none. Directories above it are not made: a name that was mistyped is no reason to.
    pub fn make(path: &Path) -> io::Result<Private> {
        // Mostly it is there, and to ask for another one is work for the server of a network file system.
        match Private::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match mkdir(path, Mode::RWXU) {
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
            Ok(()) => Private::allow_owner(path)?,
        }
        Private::open(path)
    }

    /// A umask may have taken from a new directory what its owner needs.
    fn allow_owner(path: &Path) -> io::Result<()> {
        // Opened as a mere place, which needs no rights; and what is changed is what was looked at, whatever the name means
        // by then.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = openat(CWD, path, flags, Mode::empty())?;
        let Stat { st_mode, st_uid, .. } = fstat(&place)?;
        if st_mode & PERMISSIONS == Mode::RWXU.as_raw_mode() || st_uid != own_user() {
            return Ok(());
        }
        let by_number = format!("/proc/self/fd/{}", place.as_raw_fd());
        Ok(chmodat(CWD, by_number, Mode::RWXU, AtFlags::empty())?)
    }

    /// That directory, if it is ours alone.
    pub fn open(path: &Path) -> io::Result<Private> {
        let (private, mode) = Private::look(path)?;
        if private.owner != own_user() {
            return Err(refused(path, "it belongs to another user"));
        }
        private.unless_shared(mode)
    }

    /// As `open`, for those who only look: it may be another user's, and so must its files be.
    pub fn open_to_read(path: &Path) -> io::Result<Private> {
        let (private, mode) = Private::look(path)?;
        private.unless_shared(mode)
    }

    fn look(path: &Path) -> io::Result<(Private, u32)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty())?;
        let Stat { st_mode, st_uid, .. } = fstat(&directory)?;
        Ok((Private { directory, path: path.to_owned(), owner: st_uid }, st_mode))
    }

    fn unless_shared(self, mode: u32) -> io::Result<Private> {
        if mode & SHARED != 0 {
            return Err(refused(&self.path, "others may write into it"));
        }
        Ok(self)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new file, to read and write. An error where there is one of that name already, whatever it is.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = openat(&self.directory, own_name(name)?, flags, mode)?;
        // Whatever the umask says.
        if fstat(&file)?.st_mode & PERMISSIONS != mode.as_raw_mode() {
            fchmod(&file, mode)?;
        }
        Ok(file.into())
    }

    /// A new file, in the place of what is there.
    pub fn create_anew(&self, name: &OsStr) -> io::Result<File> {
        match self.create(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.remove(name)?;
                self.create(name)
            }
            created => created,
        }
    }

    /// A file that is there, to read and write.
    pub fn reopen(&self, name: &OsStr) -> io::Result<File> {
        self.plain_file(name, OFlags::RDWR)
    }

    /// A file that is there, to read.
    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        self.plain_file(name, OFlags::RDONLY)
    }

    fn plain_file(&self, name: &OsStr, how: OFlags) -> io::Result<File> {
        // A pipe is opened without waiting for its other end, to be refused.
        let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&self.directory, own_name(name)?, flags, Mode::empty())?;
        let Stat { st_mode, st_uid, .. } = fstat(&file)?;
        let path = self.path.join(name);
        if FileType::from_raw_mode(st_mode) != FileType::RegularFile {
            return Err(refused(&path, "it is no plain file"));
        }
        if st_uid != self.owner {
            return Err(refused(&path, "it belongs to another user than its directory"));
        }
        Ok(file.into())
    }

    /// Gives a file another name, in the place of what has that one.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.directory, own_name(from)?, &self.directory, own_name(to)?)?)
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.directory, own_name(name)?, AtFlags::empty())?)
    }

    /// Leaves a word under a name, at once and whole for whoever looks for it. An error where that name is taken: of
    /// several that leave one, one succeeds. The word is what a link points to, which is nowhere: nobody follows it.
    pub fn leave(&self, name: &OsStr, word: &str) -> io::Result<()> {
        Ok(symlinkat(word, &self.directory, own_name(name)?)?)
    }

    /// The word under a name, if one was left there.
    ///
    /// A network file system remembers for some while that a name was not there. It asks again when it sees that the
    /// directory has changed, and it looks whether it has when the directory is opened.
    pub fn word(&self, name: &OsStr) -> io::Result<Option<String>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let anew = openat(&self.directory, ".", flags, Mode::empty())?;
        match readlinkat(&anew, own_name(name)?, Vec::new()) {
            Ok(word) => Ok(Some(word.to_string_lossy().into_owned())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps others who do the same waiting until what is returned is dropped; as far as the file system can do this, and for ten
    /// seconds at most: a program does not wait for somebody who holds the directory for long.
    pub fn lock(&self) -> impl Drop + use<> {
        struct Locked(Option<OwnedFd>);
        impl Drop for Locked {
            fn drop(&mut self) {
                if let Some(directory) = &self.0 {
                    let _ = rustix::fs::flock(directory, FlockOperation::Unlock);
                }
            }
        }
        const TRIES: u32 = 500;
        let Ok(again) = self.directory.try_clone() else { return Locked(None) };
        for _ in 0..TRIES {
            match rustix::fs::flock(&again, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Locked(Some(again)),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(20)),
                Err(_) => break,
            }
        }
        Locked(None)
    }

    /// Removes the directory, if there is nothing in it any more and it still has its name.
    pub fn remove_itself(&self) -> io::Result<()> {
        let own = fstat(&self.directory)?;
        let there = statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW)?;
        if (own.st_dev, own.st_ino) != (there.st_dev, there.st_ino) {
            return Err(refused(&self.path, "it is another directory by now"));
        }
        Ok(unlinkat(CWD, &self.path, AtFlags::REMOVEDIR)?)
    }

    /// The names of what is in it. It is opened anew for this, so that a network file system looks again.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A name in the directory, not one that leads out of it.
fn own_name(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.contains(&b'/') || bytes == b"." || bytes == b".." {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a file in a directory was meant"));
    }
    Ok(name)
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{} is not used: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("refrain-private-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn files_are_new_ours_and_unreadable_to_others() {
        let place = Scratch::new("new");
        let private = Private::make(&place.0.join("a")).unwrap();
        assert_eq!(fs::metadata(private.path()).unwrap().permissions().mode() & 0o777, 0o700);
        private.create(name("x")).unwrap().write_all(b"hello").unwrap();
        assert_eq!(fs::metadata(private.path().join("x")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(private.create(name("x")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let mut text = String::new();
        Private::make(private.path()).unwrap().read(name("x")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), private.names().unwrap()), ("hello", vec![OsString::from("x")]));
        private.remove(name("x")).unwrap();
        assert!(private.names().unwrap().is_empty());
        for outside in ["", ".", "..", "../b", "/etc/passwd"] {
            assert!(private.create(name(outside)).is_err() && private.remove(name(outside)).is_err());
        }
    }

    #[test]
    fn one_word_is_left_under_a_name() {
        let place = Scratch::new("words");
        let private = Private::make(&place.0.join("a")).unwrap();
        assert_eq!(private.word(name("x")).unwrap(), None);
        private.leave(name("x"), "first").unwrap();
        assert_eq!(private.leave(name("x"), "second").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(private.word(name("x")).unwrap().as_deref(), Some("first"));
        private.create(name("file")).unwrap();
        assert!(private.word(name("file")).is_err());
        assert!(private.leave(name("../y"), "out").is_err() && private.word(name("..")).is_err());
    }

    #[test]
    fn links_pipes_and_directories_are_refused() {
        let place = Scratch::new("links");
        let precious = place.0.join("precious");
        fs::write(&precious, "mine").unwrap();
        let private = Private::make(&place.0.join("a")).unwrap();
        let at = |file: &str| private.path().join(file);
        symlink(&precious, at("link")).unwrap();
        symlink(place.0.join("nowhere"), at("dangling")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for there in ["link", "dangling", "directory", "pipe"] {
            assert!(private.create(name(there)).is_err(), "{there}");
            assert!(private.read(name(there)).is_err(), "{there}");
            assert!(private.reopen(name(there)).is_err(), "{there}");
        }
        assert_eq!(fs::read_to_string(precious).unwrap(), "mine");
    }

    #[test]
    fn a_directory_that_others_can_write_to_or_that_is_a_link_is_refused() {
        let place = Scratch::new("shared");
        let shared = place.0.join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Private::make(&shared).unwrap_err().to_string().contains("others may write"));
        fs::create_dir(place.0.join("own")).unwrap();
        symlink(place.0.join("own"), place.0.join("link")).unwrap();
        assert!(Private::make(&place.0.join("link")).is_err());
        assert!(Private::make(&place.0.join("no/such")).is_err());
    }

    #[test]
    fn notes_are_made_once_and_never_followed() {
        let place = Scratch::new("notes");
        let private = Private::make(&place.0.join("a")).unwrap();
        private.leave(name("claim"), "/etc/passwd of mine").unwrap();
        let again = private.leave(name("claim"), "other").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(private.word(name("claim")).unwrap().as_deref(), Some("/etc/passwd of mine"));
        assert_eq!(private.word(name("nothing")).unwrap(), None);
        assert!(private.remove_itself().is_err());
        private.remove(name("claim")).unwrap();
        // Under the name of the directory there is another one by now.
        fs::rename(private.path(), place.0.join("b")).unwrap();
        fs::create_dir(private.path()).unwrap();
        assert!(private.remove_itself().unwrap_err().to_string().contains("another directory"));
        fs::remove_dir(private.path()).unwrap();
        fs::rename(place.0.join("b"), private.path()).unwrap();
        private.remove_itself().unwrap();
        assert!(private.create(name("x")).is_err() && !private.path().exists());
    }

    #[test]
    fn no_umask_changes_what_the_owner_may() {
        // In a process of its own: a umask is the whole process's.
        const TOLD: &str = "REFRAIN_TEST_UMASK";
        if let Some(path) = std::env::var_os(TOLD) {
            rustix::process::umask(Mode::from_raw_mode(0o777));
            let private = Private::make(Path::new(&path)).unwrap();
            private.create(name("x")).unwrap();
            return;
        }
        let place = Scratch::new("umask");
        let own = "private::tests::no_umask_changes_what_the_owner_may";
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", own])
            .env(TOLD, place.0.join("a"))
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(place.0.join("a")), mode(place.0.join("a/x"))), (0o700, 0o600));
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let place = Scratch::new("theirs");
        let theirs = place.0.join("theirs");
        fs::create_dir(&theirs).unwrap();
        // Only root can give it away.
        if std::os::unix::fs::chown(&theirs, Some(65_534), None).is_err() {
            eprintln!("not run: this needs root");
            return;
        }
        assert!(Private::make(&theirs).unwrap_err().to_string().contains("another user"));
        // One that is only read may be: but not with files of others in it.
        fs::write(theirs.join("planted"), "x").unwrap();
        let read = Private::open_to_read(&theirs).unwrap();
        assert!(read.read(name("planted")).unwrap_err().to_string().contains("another user"));
    }
}
