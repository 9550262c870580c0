//! Files: written under a temporary name beside the final one, and renamed when they are complete. What is no file is never
//! renamed over, and in a directory that others may write to, nobody else chooses where we write.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::OFlags;

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
    let exists = || Error::Exists { path: path.into() };
    let end = follow(path)?;
    let about = match fs::metadata(path) {
        Ok(about) => about,
        // A link to nowhere is something too.
        Err(error)
            if error.kind() == ErrorKind::NotFound && !overwrite && fs::symlink_metadata(path).is_ok() =>
        {
            return Err(exists());
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Target::File(end)),
        Err(error) => return Err(Error::Io { action: "write", path: path.into(), error }),
    };
    let kind = about.file_type();
    if kind.is_char_device() {
        return Ok(Target::Device(path.into()));
    }
    if kind.is_file() {
        let file = || fs::canonicalize(path).map(Target::File).map_err(failed("write", path));
        return if overwrite { file() } else { Err(exists()) };
    }
    let kinds = [(kind.is_dir(), "a directory"), (kind.is_fifo(), "a pipe"), (kind.is_socket(), "a socket")];
    let what = kinds.iter().find(|(is, _)| *is).map_or("a disk", |(_, what)| what);
    Err(Error::NoFile { path: path.into(), what })
}

/// Where links lead, step by step, so that each of them is looked at.
fn follow(path: &Path) -> Result<PathBuf, Error> {
    /// As many links in a row as Linux follows.
    const LINKS: usize = 40;
    let mut end = path.to_owned();
    for _ in 0..LINKS {
        check_planted(&end)?;
        let Ok(next) = fs::read_link(&end) else { break };
        end = end.parent().unwrap_or(Path::new("")).join(next);
    }
    Ok(end)
}

/// Refuses links, pipes and devices that somebody else put into a directory where others may write. Those of the
/// directory's owner and of root are meant to be there. Plain files are replaced, not written into, and only with leave.
pub fn check_planted(path: &Path) -> Result<(), Error> {
    const SHARED: u32 = 0o022;
    let Ok(about) = fs::symlink_metadata(path) else { return Ok(()) };
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if about.is_file() || about.is_dir() || !fs::metadata(directory).is_ok_and(|d| d.mode() & SHARED != 0) {
        return Ok(());
    }
    let own = [rustix::process::geteuid().as_raw(), 0];
    let of_directory = |about: &Metadata| fs::metadata(directory).is_ok_and(|d| d.uid() == about.uid());
    if own.contains(&about.uid()) || of_directory(&about) {
        return Ok(());
    }
    Err(Error::Planted { path: path.into() })
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
        let about = path.metadata().ok()?;
        Some(Stamp {
            device: about.dev(),
            inode: about.ino(),
            seconds: about.mtime(),
            nanoseconds: about.mtime_nsec(),
        })
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
    /// This one and no other.
    Only(Stamp),
    Anything,
}

impl Replace {
    /// What was there, if it may be replaced at all.
    pub fn old(allowed: bool, old: Option<Stamp>) -> Replace {
        old.filter(|_| allowed).map_or(Replace::Nothing, Replace::Only)
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
    let may = || match replace {
        Replace::Nothing => false,
        Replace::Only(stamp) => Stamp::of(shown) == Some(stamp),
        Replace::Anything => true,
    };
    let path = &match target(shown, may())? {
        Target::File(path) => path,
        Target::Device(path) => {
            let bytes = crate::write(trace);
            // It may be a terminal, which is not to become ours.
            let flags = OFlags::NOCTTY.bits() as i32;
            let device = OpenOptions::new().write(true).custom_flags(flags).open(&path);
            device.and_then(|mut file| file.write_all(&bytes)).map_err(failed("write", &path))?;
            return Ok(bytes.len() as u64);
        }
    };
    let bytes = crate::write(trace);
    let (temporary, mut file) = beside(path)?;
    let written = file
        .write_all(&bytes)
        .and_then(|()| file.sync_all())
        .map_err(failed("write", &temporary))
        .and_then(|()| put_in_place(&temporary, path, may()));
    if written.is_err() {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    Ok(bytes.len() as u64)
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
            Err(error) => return Err(Error::Io { action: "create", path: temporary, error }),
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
    // The name itself is on disk only when the directory is.
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
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
