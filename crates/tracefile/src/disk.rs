//! Files: written under a temporary name beside the final one, and renamed when they are complete. What is no file is never
//! renamed over, and in a directory that others may write to, nobody else chooses where we write.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufWriter, ErrorKind, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use rustix::fs::FileType;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, PROC_SUPER_MAGIC, Stat, fstat, fstatfs, openat, readlinkat, stat, statat,
};
use rustix::io::Errno;

use crate::{Error, Trace};

pub fn open(path: impl AsRef<Path>) -> Result<Trace, Error> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(failed("read", path))?;
    crate::read(&bytes)
}

/// What stands where something is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file, or a name that nothing has yet. Where a link led there, it is what the link leads to: the link stays.
    File(PathBuf),
    /// A character device such as `/dev/null`, to be written into as it is.
    Device(PathBuf),
}

/// Where what is written to `path` goes. Files are for replacing with `overwrite` only; directories, pipes, sockets and
/// disks never are. Links and devices of other users are not used in a directory that they may write to.
pub fn target(path: &Path, overwrite: bool) -> Result<Target, Error> {
    let end = End::of(path)?;
    match end.kind() {
        Some(FileType::CharacterDevice) => Ok(Target::Device(path.into())),
        Some(FileType::RegularFile) | None => {
            end.unless_taken(path, overwrite)?;
            Ok(Target::File(end.path))
        }
        Some(kind) => Err(no_file(path, kind)),
    }
}

fn no_file(path: &Path, kind: FileType) -> Error {
    let what = match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "a disk",
    };
    Error::NoFile { path: path.into(), what }
}

/// Where a name leads to, links and all.
///
/// Others may change what a name means between two looks at it. So each name on the way is looked at once: what was found
/// is held by a descriptor, and everything asked is asked of that. Nobody may go back to the name that was given.
#[derive(Debug)]
pub struct End {
    path: PathBuf,
    there: Option<Thing>,
    is_linked: bool,
}

/// What has a name, whatever has it later.
#[derive(Debug)]
struct Thing {
    /// A mere place: nothing was opened to read or write, which would wait for the other end of a pipe.
    place: OwnedFd,
    about: Stat,
}

impl Thing {
    fn at(directory: impl AsFd, name: &Path, more: OFlags) -> rustix::io::Result<Option<Thing>> {
        match openat(directory, name, OFlags::PATH | OFlags::CLOEXEC | more, Mode::empty()) {
            Ok(place) => Ok(Some(Thing { about: fstat(&place)?, place })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.about.st_mode)
    }

    /// The kernel's own link in `/proc`, which leads to what a process has open. Its text may be no name at all.
    fn is_of_kernel(&self) -> bool {
        fstatfs(&self.place).is_ok_and(|system| system.f_type == PROC_SUPER_MAGIC)
    }
}

impl End {
    /// Follows the links from `path`. An error where one of them, or what they lead to, is not to be trusted.
    pub fn of(path: &Path) -> Result<End, Error> {
        /// As many links in a row as Linux follows.
        const LINKS: usize = 40;
        let mut end = End { path: path.to_owned(), there: None, is_linked: false };
        for _ in 0..LINKS {
            match end.step() {
                Ok(Step::Next(next)) => {
                    end.path = directory_of(&end.path).join(next);
                    end.is_linked = true;
                }
                Ok(Step::End(there)) => return Ok(End { there, ..end }),
                Ok(Step::Planted) => return Err(Error::Planted { path: end.path }),
                Err(error) => return Err(failed("write", path)(error.into())),
            }
        }
        Err(failed("write", path)(Errno::LOOP.into()))
    }

    fn step(&self) -> rustix::io::Result<Step> {
        let Some(directory) = Thing::at(CWD, directory_of(&self.path), OFlags::DIRECTORY)? else {
            return Ok(Step::End(None));
        };
        // A path without a name is a directory's, as the one above it is.
        let name = self.path.file_name().map_or(Path::new("."), Path::new);
        let Some(found) = Thing::at(&directory.place, name, OFlags::NOFOLLOW)? else {
            return Ok(Step::End(None));
        };
        if is_planted(&found, &directory) {
            return Ok(Step::Planted);
        }
        if found.kind() != FileType::Symlink {
            return Ok(Step::End(Some(found)));
        }
        if found.is_of_kernel()
            && let Some(open) = Thing::at(&directory.place, name, OFlags::empty())?
            && open.kind() != FileType::RegularFile
        {
            return Ok(Step::End(Some(open)));
        }
        let text = readlinkat(&found.place, "", Vec::new())?;
        Ok(Step::Next(PathBuf::from(OsString::from_vec(text.into_bytes()))))
    }

    /// What was found there; nothing where the name is free, or the links lead nowhere.
    pub fn kind(&self) -> Option<FileType> {
        self.there.as_ref().map(Thing::kind)
    }

    /// Where the links led.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error where there is a file, or a link to nowhere, and it may not be replaced. `shown` is what the user calls it.
    pub fn unless_taken(&self, shown: &Path, overwrite: bool) -> Result<(), Error> {
        // A link to nowhere is something too.
        let is_taken = self.there.is_some() || self.is_linked;
        if is_taken && !overwrite { Err(Error::Exists { path: shown.into() }) } else { Ok(()) }
    }

    /// Opens what was found, to write: a device or a pipe. What has its name by now is not touched.
    pub fn open(&self) -> io::Result<File> {
        let there = self.there.as_ref().ok_or(ErrorKind::NotFound)?;
        // It may be a terminal, which is not to become ours.
        let flags = OFlags::NOCTTY.bits() as i32;
        let by_number = format!("/proc/self/fd/{}", there.place.as_raw_fd());
        OpenOptions::new().write(true).custom_flags(flags).open(by_number)
    }

    fn stamp(&self) -> Option<Stamp> {
        self.there.as_ref().map(|there| Stamp::from(&there.about))
    }
}

enum Step {
    /// A link that leads there.
    Next(PathBuf),
    End(Option<Thing>),
    Planted,
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether it is a link, a pipe or a device that somebody else put into a directory where others may write. Those of the
/// directory's owner and of root are meant to be there. Plain files are replaced, not written into, and only with leave.
fn is_planted(found: &Thing, directory: &Thing) -> bool {
    const SHARED: u32 = 0o022;
    let harmless = [FileType::RegularFile, FileType::Directory].contains(&found.kind());
    let trusted = [rustix::process::geteuid().as_raw(), 0, directory.about.st_uid];
    !harmless && directory.about.st_mode & SHARED != 0 && !trusted.contains(&found.about.st_uid)
}

/// What tells one file from the next under the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Stamp {
    pub fn of(path: &Path) -> Option<Stamp> {
        stat(path).ok().map(|about| Stamp::from(&about))
    }
}

impl From<&Stat> for Stamp {
    fn from(about: &Stat) -> Stamp {
        Stamp {
            device: about.st_dev,
            inode: about.st_ino,
            seconds: about.st_mtime,
            nanoseconds: about.st_mtime_nsec as i64,
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}:{}", self.device, self.inode, self.seconds, self.nanoseconds)
    }
}

impl FromStr for Stamp {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Stamp, Self::Err> {
        let mut numbers = text.splitn(4, ':');
        let mut next = || numbers.next().unwrap_or("");
        Ok(Stamp {
            device: next().parse()?,
            inode: next().parse()?,
            seconds: next().parse()?,
            nanoseconds: next().parse()?,
        })
    }
}

/// Which file may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    Nothing,
    /// No file. But the name may be a link of one's own to where no file is yet.
    NoFile,
    /// This one and no other.
    Only(Stamp),
    Anything,
}

impl Replace {
    /// What was there, if it may be replaced at all.
    pub fn old(allowed: bool, old: Option<Stamp>) -> Replace {
        if allowed { old.map_or(Replace::NoFile, Replace::Only) } else { Replace::Nothing }
    }

    /// Whether the name may be used where it leads to this file, or by a link to nowhere.
    fn allows(self, there: Option<Stamp>) -> bool {
        match self {
            Replace::Nothing => false,
            Replace::NoFile => there.is_none(),
            Replace::Only(stamp) => there == Some(stamp),
            Replace::Anything => true,
        }
    }
}

/// Whether a trace written there leaves nothing behind.
pub fn is_device(path: &Path) -> bool {
    matches!(target(path, true), Ok(Target::Device(_)))
}

/// Never replaces a file unless `overwrite`, also not one that appears meanwhile; returns the size.
pub fn save(trace: &Trace, path: impl AsRef<Path>, overwrite: bool) -> Result<u64, Error> {
    save_as(trace, path.as_ref(), if overwrite { Replace::Anything } else { Replace::Nothing })
}

/// As `save`, where one file may be replaced and others not.
pub fn save_as(trace: &Trace, shown: &Path, replace: Replace) -> Result<u64, Error> {
    save_with(trace, None::<&mut File>, shown, replace)
}

/// The same with a section of chunks, which a device is not given.
pub fn save_with<R: Read + Seek>(
    trace: &Trace,
    chunks: Option<&mut R>,
    shown: &Path,
    replace: Replace,
) -> Result<u64, Error> {
    let end = End::of(shown)?;
    match end.kind() {
        Some(FileType::CharacterDevice) => {
            let bytes = crate::write(trace);
            end.open().and_then(|mut file| file.write_all(&bytes)).map_err(failed("write", shown))?;
            return Ok(bytes.len() as u64);
        }
        Some(FileType::RegularFile) | None => {}
        Some(kind) => return Err(no_file(shown, kind)),
    }
    end.unless_taken(shown, replace.allows(end.stamp()))?;
    let path = end.path();
    // A link that came meanwhile is not followed: it has another stamp.
    let may = || {
        let there = || statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        replace == Replace::Anything || there().is_ok_and(|there| replace.allows(Some(Stamp::from(&there))))
    };
    let (temporary, mut file) = beside(path)?;
    let content = match chunks {
        Some(chunks) => crate::append(&crate::write(trace), chunks, &mut file),
        None => {
            let mut out = BufWriter::new(&mut file);
            let written = crate::write_to(trace, &mut out).and_then(|()| out.flush());
            written.map_err(failed("write", &temporary))
        }
    };
    let written = content
        .and_then(|()| file.sync_all().map_err(failed("write", &temporary)))
        .and_then(|()| file.metadata().map_err(failed("write", &temporary)))
        .and_then(|about| put_in_place(&temporary, path, may()).map(|()| about.len()));
    if written.is_err() {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Saves what is no trace, in the same way.
pub fn save_text(text: &str, shown: &Path, overwrite: bool) -> Result<(), Error> {
    let path = match target(shown, overwrite)? {
        Target::File(path) => path,
        Target::Device(_) => {
            let end = End::of(shown)?;
            let written = end.open().and_then(|mut file| file.write_all(text.as_bytes()));
            return written.map_err(failed("write", shown));
        }
    };
    let (temporary, mut file) = beside(&path)?;
    let written = file.write_all(text.as_bytes()).map_err(failed("write", shown));
    let placed = written.and_then(|()| put_in_place(&temporary, &path, overwrite));
    if placed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    placed
}

/// Replaces a file, and no other that has its name by now, with what `write` writes; returns the size.
pub fn replace_with(
    path: &Path,
    old: Stamp,
    write: impl FnOnce(&mut File) -> Result<(), Error>,
) -> Result<u64, Error> {
    let end = End::of(path)?;
    let (temporary, mut file) = beside(end.path())?;
    let written = write(&mut file)
        .and_then(|()| file.sync_all().map_err(failed("write", &temporary)))
        .and_then(|()| file.metadata().map_err(failed("write", &temporary)))
        .and_then(|about| {
            let may = Stamp::of(end.path()) == Some(old);
            put_in_place(&temporary, end.path(), may).map(|()| about.len())
        });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Error + use<'a> {
    move |error| Error::Io { action, path: path.into(), error }
}

/// A new file in the same directory, so that renaming it stays within one file system. Nobody can take its name first:
/// part of it is drawn.
fn beside(path: &Path) -> Result<(PathBuf, File), Error> {
    const TRIES: u32 = 100;
    let mut tries = 0;
    loop {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        let drawn = RandomState::new().build_hasher().finish();
        name.push(format!(".{}-{drawn:016x}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        // New, and so not through a link.
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < TRIES => tries += 1,
            Err(error) => return Err(Error::Io { action: "create", path: path.into(), error }),
        }
    }
}

/// Gives a finished file its name. Without `overwrite` it takes the place of nothing, also not of what came meanwhile.
pub fn put_in_place(temporary: &Path, path: &Path, overwrite: bool) -> Result<(), Error> {
    if overwrite {
        fs::rename(temporary, path).map_err(failed("rename the finished file to", path))?;
    } else {
        // A link, unlike a rename, fails where the name is taken.
        match fs::hard_link(temporary, path) {
            Ok(()) => fs::remove_file(temporary).map_err(failed("remove", temporary))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::Exists { path: path.into() });
            }
            // File systems without links.
            Err(_) => rename_to_new(temporary, path)?,
        }
    }
    sync_directory(path);
    Ok(())
}

/// The name itself is on disk only when the directory is.
fn sync_directory(path: &Path) {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
}

/// The same for a finished folder. What had the name with `overwrite` is then beside `temporary` or in its place: to be removed,
/// and until then whole.
pub fn put_folder_in_place(temporary: &Path, path: &Path, overwrite: bool) -> Result<(), Error> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    if !overwrite || path.symlink_metadata().is_err() {
        rename_to_new(temporary, path)?;
    } else {
        match renameat_with(CWD, temporary, CWD, path, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            // A file system, or a kernel, that cannot do it at once.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => swap(temporary, path)?,
            Err(error) => return Err(failed("rename the finished folder to", path)(error.into())),
        }
    }
    sync_directory(path);
    Ok(())
}

/// One after the other: the old one aside, the new one in.
fn swap(temporary: &Path, path: &Path) -> Result<(), Error> {
    let mut aside = temporary.as_os_str().to_os_string();
    aside.push(".old");
    fs::rename(path, &aside).map_err(failed("rename", path))?;
    fs::rename(temporary, path).map_err(|error| {
        // Back again: the error that matters is the first one.
        let _ = fs::rename(&aside, path);
        failed("rename the finished folder to", path)(error)
    })
}

fn rename_to_new(temporary: &Path, path: &Path) -> Result<(), Error> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::EXIST) => Err(Error::Exists { path: path.into() }),
        // One that knows neither: a last look has to do.
        Err(_) if fs::symlink_metadata(path).is_ok() => Err(Error::Exists { path: path.into() }),
        Err(_) => fs::rename(temporary, path).map_err(failed("rename the finished file to", path)),
    }
}
