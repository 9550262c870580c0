//! Files and folders that an export makes. Nothing that is there is lost unless the user said so.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use refrain_tracefile::{put_folder_in_place, put_in_place};

use crate::{Error, Output};

impl Output {
    pub fn new(path: PathBuf, force: bool) -> Output {
        Output { path, force, placing: Arc::default(), becomes: None }
    }

    /// The same, with a lock that somebody else knows too.
    pub fn placed_under(self, placing: Arc<Mutex<()>>) -> Output {
        Output { placing, ..self }
    }

    /// What it will be called.
    pub(crate) fn final_path(&self) -> &Path {
        self.becomes.as_deref().unwrap_or(&self.path)
    }

    /// Whether this may be written at all: asked before anything is read.
    pub fn check(&self) -> Result<(), Error> {
        if !self.force && self.path.symlink_metadata().is_ok() {
            return Err(Error::Exists { path: self.path.clone() });
        }
        Ok(())
    }

    /// The same in a new folder beside it: what is there stays until the export is complete. What is no file, as
    /// `/dev/stdout`, is written into as it is.
    pub(crate) fn apart(&self) -> Result<Apart, Error> {
        let special = self.path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir());
        let Some(name) = self.path.file_name().filter(|_| !special) else {
            return Ok(Apart { folder: None, output: self.clone() });
        };
        let drawn = RandomState::new().build_hasher().finish();
        let mut temporary = name.to_os_string();
        temporary.push(format!(".{}-{drawn:016x}.part", std::process::id()));
        let folder = self.path.with_file_name(temporary);
        fs::create_dir(&folder).map_err(written(&self.path))?;
        let becomes = Some(self.path.clone());
        let output = Output { path: folder.join(name), force: false, becomes, ..self.clone() };
        Ok(Apart { folder: Some(folder), output })
    }

    /// The output as one file.
    pub fn file(&self) -> Result<BufWriter<File>, Error> {
        self.beside(&self.path)
    }

    /// A file of the output that has a name of its own.
    pub fn beside(&self, path: &Path) -> Result<BufWriter<File>, Error> {
        let mut options = OpenOptions::new();
        options.write(true);
        let options = if self.force { options.create(true).truncate(true) } else { options.create_new(true) };
        let file = options.open(path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
            _ => written(path)(error),
        })?;
        Ok(BufWriter::with_capacity(1 << 16, file))
    }

    /// The output as a new folder.
    pub fn folder(&self) -> Result<PathBuf, Error> {
        fs::create_dir(&self.path).map_err(written(&self.path))?;
        Ok(self.path.clone())
    }

    /// Whether it may become a folder. Replaced is only one that `ours` says is an export of this kind.
    pub(crate) fn check_folder(&self, ours: impl Fn(&Path) -> bool) -> Result<(), Error> {
        let path = &self.path;
        let Ok(there) = path.symlink_metadata() else { return Ok(()) };
        if !self.force {
            return Err(Error::Exists { path: path.clone() });
        }
        if there.is_dir() && fs::read_dir(path).map_err(written(path))?.next().is_some() && !ours(path) {
            return Err(Error::Refused {
                what: format!("{} is a folder with something else in it", path.display()),
                help: "name another one".into(),
            });
        }
        Ok(())
    }
}

/// An export that is being made apart from where it will be; removed with this unless it came so far.
pub(crate) struct Apart {
    folder: Option<PathBuf>,
    pub(crate) output: Output,
}

impl Apart {
    /// Gives all files their names. None of them before it is known that all may have theirs.
    pub(crate) fn put_in_place(&self, out: &Output) -> Result<(), Error> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let _placing = out.placing.lock().unwrap_or_else(PoisonError::into_inner);
        let files = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let files = files.map_err(written(folder))?;
        let files: Vec<(PathBuf, PathBuf)> =
            files.iter().map(|file| (file.path(), out.path.with_file_name(file.file_name()))).collect();
        if let Some((_, taken)) = files.iter().find(|(_, to)| !out.force && to.symlink_metadata().is_ok()) {
            return Err(Error::Exists { path: taken.clone() });
        }
        for (from, to) in &files {
            put_in_place(from, to, out.force).map_err(|error| Error::Refused {
                what: format!("{} cannot be written: {error}", to.display()),
                help: "name another file".into(),
            })?;
        }
        Ok(())
    }

    /// The same for a folder. What it replaces is gone with this.
    pub(crate) fn put_folder_in_place(
        &self,
        out: &Output,
        ours: impl Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        if self.folder.is_none() {
            return Ok(());
        }
        let _placing = out.placing.lock().unwrap_or_else(PoisonError::into_inner);
        out.check_folder(ours)?;
        put_folder_in_place(&self.output.path, &out.path, out.force).map_err(|error| Error::Refused {
            what: format!("{} cannot be written: {error}", out.path.display()),
            help: "name another folder".into(),
        })
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // Best effort: it is empty, or of no use to anybody.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// An error of writing this.
pub fn written(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::Write { path: path.clone(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_unless_it_is_ours() {
        let dir = std::env::temp_dir().join(format!("refrain-export-out-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let out = |name: &str, force| Output::new(dir.join(name), force);
        drop(out("a", false).file().unwrap());
        assert!(matches!(out("a", false).file(), Err(Error::Exists { .. })));
        assert!(matches!(out("a", false).check(), Err(Error::Exists { .. })));
        drop(out("a", true).file().unwrap());
        out("folder", false).folder().unwrap();
        out("folder", true).check_folder(|_| false).unwrap();
        fs::write(dir.join("folder/theirs"), "x").unwrap();
        assert!(matches!(out("folder", false).check_folder(|_| true), Err(Error::Exists { .. })));
        assert!(matches!(out("folder", true).check_folder(|_| false), Err(Error::Refused { .. })));
        assert!(matches!(out("folder", true).folder(), Err(Error::Write { .. })));
        assert!(dir.join("folder/theirs").exists());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn an_old_folder_is_whole_until_the_new_one_is() {
        let dir = std::env::temp_dir().join(format!("refrain-export-folder-{}", std::process::id()));
        fs::create_dir_all(dir.join("a")).unwrap();
        fs::write(dir.join("a/old"), "old").unwrap();
        let out = Output::new(dir.join("a"), true);
        let ours = |path: &Path| path.join("old").exists();
        let half = out.apart().unwrap();
        fs::write(half.output.folder().unwrap().join("new"), "half").unwrap();
        assert_eq!(half.output.final_path(), out.path);
        drop(half);
        assert_eq!(fs::read_to_string(dir.join("a/old")).unwrap(), "old");
        let made = out.apart().unwrap();
        fs::write(made.output.folder().unwrap().join("new"), "new").unwrap();
        // Meanwhile it became another's.
        assert!(made.put_folder_in_place(&out, |_| false).is_err() && ours(&out.path));
        assert!(made.put_folder_in_place(&Output::new(out.path.clone(), false), ours).is_err());
        made.put_folder_in_place(&out, ours).unwrap();
        drop(made);
        assert_eq!(fs::read_to_string(dir.join("a/new")).unwrap(), "new");
        assert!(!dir.join("a/old").exists());
        let first = Output::new(dir.join("b"), false);
        let made = first.apart().unwrap();
        made.output.folder().unwrap();
        made.put_folder_in_place(&first, |_| false).unwrap();
        drop(made);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_was_there_stays_until_the_export_is_complete() {
        let dir = std::env::temp_dir().join(format!("refrain-export-apart-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let out = Output::new(dir.join("a.prv"), true);
        fs::write(&out.path, "old").unwrap();
        let made = out.apart().unwrap();
        fs::write(&made.output.path, "half").unwrap();
        drop(made);
        assert_eq!(fs::read_to_string(&out.path).unwrap(), "old");
        let made = out.apart().unwrap();
        fs::write(&made.output.path, "new").unwrap();
        fs::write(made.output.path.with_extension("pcf"), "labels").unwrap();
        made.put_in_place(&out).unwrap();
        drop(made);
        assert_eq!(fs::read_to_string(&out.path).unwrap(), "new");
        assert_eq!(fs::read_to_string(dir.join("a.pcf")).unwrap(), "labels");
        let careful = Output { force: false, ..out.clone() };
        let made = careful.apart().unwrap();
        fs::write(&made.output.path, "third").unwrap();
        assert!(matches!(made.put_in_place(&careful), Err(Error::Exists { .. })));
        drop(made);
        assert_eq!(fs::read_to_string(&out.path).unwrap(), "new");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
        fs::remove_dir_all(dir).unwrap();
    }
}
