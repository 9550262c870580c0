//! The folder of a run: `target/bench/work.PROCESS`. It goes with the run. Those of runs that were killed go with the next.
//!
//! A run holds a lock on its folder. A lock is seen from every container that shares the folder; the number of a process is
//! not, and another process may have it.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::Result;

const PREFIX: &str = "work.";
/// Digits of a process number. Traces keep the command that ran, so its length is the same in every run.
const DIGITS: usize = 8;

pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// A new folder in this one.
    pub fn new(folder: &Path) -> Result<Scratch> {
        Scratch::numbered(folder, std::process::id())
    }

    fn numbered(folder: &Path, process: u32) -> Result<Scratch> {
        fs::create_dir_all(folder)?;
        // Nobody sweeps between the making of the folder and its lock.
        let _all = lock(folder, libc::LOCK_EX)?;
        sweep(folder)?;
        let path = folder.join(format!("{PREFIX}{process:0DIGITS$}"));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let lock = lock(&path, libc::LOCK_EX)?;
        Ok(Scratch { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes folders that no run holds.
fn sweep(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let ours = is_ours(&entry.file_name().to_string_lossy()) && entry.file_type()?.is_dir();
        if ours && let Ok(_lock) = lock(&entry.path(), libc::LOCK_EX | libc::LOCK_NB) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn is_ours(name: &str) -> bool {
    let process = name.strip_prefix(PREFIX).unwrap_or_default();
    process.len() >= DIGITS && process.bytes().all(|byte| byte.is_ascii_digit())
}

/// The folder, locked until it is dropped. Programs that are started do not inherit it.
fn lock(folder: &Path, how: libc::c_int) -> Result<File> {
    let file = File::open(folder)?;
    // SAFETY: flock is a system call; the descriptor is open.
    match unsafe { libc::flock(file.as_raw_fd(), how) } {
        0 => Ok(file),
        _ => Err(format!("{}: {}", folder.display(), io::Error::last_os_error()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of the test's own.
    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("refrain-bench-scratch-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_run_has_a_folder_until_its_end() {
        let folder = folder("end");
        let scratch = Scratch::numbered(&folder, 7).unwrap();
        assert_eq!(scratch.path(), folder.join("work.00000007"));
        fs::write(scratch.path().join("t.rfn"), "").unwrap();
        drop(scratch);
        assert!(!folder.join("work.00000007").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_folders_that_no_run_holds_are_swept() {
        let folder = folder("sweep");
        let live = Scratch::numbered(&folder, 1).unwrap();
        for name in ["work.00000002", "work.mine", "work.2", "other"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        fs::write(folder.join("work.00000003"), "a file").unwrap();
        sweep(&folder).unwrap();
        let mut left: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        left.sort();
        assert_eq!(left, ["other", "work.00000001", "work.00000003", "work.2", "work.mine"]);
        drop(live);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_another_run_holds_is_not_taken() {
        let folder = folder("held");
        let live = Scratch::numbered(&folder, 1).unwrap();
        let told = Scratch::numbered(&folder, 1).map(|_| ()).unwrap_err().to_string();
        assert!(told.contains("work.00000001"), "{told}");
        assert!(live.path().exists());
        drop(live);
        fs::remove_dir_all(folder).unwrap();
    }
}
