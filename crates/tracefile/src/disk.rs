//! Files: written under a temporary name beside the final one, and renamed when they are complete. What is no file is never
//! renamed over.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

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
/// disks never are.
pub fn target(path: &Path, overwrite: bool) -> Result<Target, Error> {
    /// As many links in a row as Linux follows.
    const LINKS: usize = 40;
    let exists = || Error::Exists { path: path.into() };
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // A link to nowhere is something too.
            if !overwrite && fs::symlink_metadata(path).is_ok() {
                return Err(exists());
            }
            let mut end = path.to_owned();
            for _ in 0..LINKS {
                let Ok(next) = fs::read_link(&end) else { break };
                end = end.parent().unwrap_or(Path::new("")).join(next);
            }
            return Ok(Target::File(end));
        }
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

/// Whether a trace written there leaves nothing behind.
pub fn is_device(path: &Path) -> bool {
    matches!(target(path, true), Ok(Target::Device(_)))
}

/// Never replaces a file unless `overwrite`, also not one that appears meanwhile; returns the size.
pub fn save(trace: &Trace, path: impl AsRef<Path>, overwrite: bool) -> Result<u64, Error> {
    let path = &match target(path.as_ref(), overwrite)? {
        Target::File(path) => path,
        Target::Device(path) => {
            let bytes = crate::write(trace);
            let written =
                OpenOptions::new().write(true).open(&path).and_then(|mut file| file.write_all(&bytes));
            written.map_err(failed("write", &path))?;
            return Ok(bytes.len() as u64);
        }
    };
    let bytes = crate::write(trace);
    let (temporary, mut file) = beside(path)?;
    let written = file
        .write_all(&bytes)
        .and_then(|()| file.sync_all())
        .map_err(failed("write", &temporary))
        .and_then(|()| put_in_place(&temporary, path, overwrite));
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

/// A new file in the same directory, so that renaming it stays within one file system.
fn beside(path: &Path) -> Result<(PathBuf, File), Error> {
    let mut number = 0u32;
    loop {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}-{number}.part", std::process::id()));
        let temporary = path.with_file_name(name);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 1000 => number += 1,
            Err(error) => return Err(Error::Io { action: "create", path: temporary, error }),
        }
    }
}

fn put_in_place(temporary: &Path, path: &Path, overwrite: bool) -> Result<(), Error> {
    if overwrite {
        fs::rename(temporary, path).map_err(failed("rename the finished file to", path))?;
    } else {
        // A link, unlike a rename, fails where the name is taken.
        match fs::hard_link(temporary, path) {
            Ok(()) => fs::remove_file(temporary).map_err(failed("remove", temporary))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::Exists { path: path.into() });
            }
            // File systems without links: the earlier look has to do.
            Err(_) => fs::rename(temporary, path).map_err(failed("rename the finished file to", path))?,
        }
    }
    // The name itself is on disk only when the directory is.
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}
