//! Files: written under a temporary name beside the final one, and renamed when they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Trace};

pub fn open(path: impl AsRef<Path>) -> Result<Trace, Error> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(failed("read", path))?;
    crate::read(&bytes)
}

/// Never replaces a file unless `overwrite`, also not one that appears meanwhile; returns the size.
pub fn save(trace: &Trace, path: impl AsRef<Path>, overwrite: bool) -> Result<u64, Error> {
    let path = path.as_ref();
    if !overwrite && fs::symlink_metadata(path).is_ok() {
        return Err(Error::Exists { path: path.into() });
    }
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
