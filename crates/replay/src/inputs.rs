//! Files that were there before the run. In the scratch directory they are made when they are opened, and grow to what is
//! read of them: sparse, so that they take no room. What was in them is not in a trace.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use refrain_model::{Call, Class, Status, Value};

use crate::issue::Process;

/// Beside the files: one that was there before has an empty file of its name here.
const MARKS: &str = "inputs";

/// Open files that were there before, by id.
#[derive(Debug, Default)]
pub struct Inputs {
    open: HashMap<u32, Input>,
}

#[derive(Debug, Clone)]
struct Input {
    path: PathBuf,
    /// Bytes of the type that offsets count.
    etype: u64,
}

/// Makes it at least so long.
fn grow(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    if file.metadata()?.len() < bytes { file.set_len(bytes) } else { Ok(()) }
}

fn has_mode(call: &Call, mode: &str) -> bool {
    call.args.iter().any(|value| matches!(value, Value::Mask(names) if names.contains(&mode)))
}

fn file_of(call: &Call) -> Option<u32> {
    call.args.iter().map(crate::ahead::before).find_map(|value| match value {
        Value::Object(Class::File, id) => Some(*id),
        _ => None,
    })
}

fn is_read(name: &str) -> bool {
    (name.starts_with("MPI_File_read") || name.starts_with("MPI_File_iread")) && !name.ends_with("_end")
}

impl Process {
    /// Before a file is opened, of that path in the scratch directory: is there one, if there was?
    pub(crate) fn before_open(&self, call: &Call, path: &Path) {
        let (Some(id), Some(name), Some(above)) = (file_of(call), path.file_name(), self.files.parent())
        else {
            return;
        };
        self.known().inputs.open.remove(&id);
        if call.result != Value::Int(0) || has_mode(call, "MPI_MODE_CREATE") {
            return;
        }
        let marks = above.join(MARKS);
        let mark = marks.join(name);
        // Another rank may have made it. One that the replay itself has written has no mark.
        if path.exists() && !mark.exists() {
            return;
        }
        // Where there is no room, MPI says so when it opens the file.
        let _ = std::fs::create_dir_all(&marks).and_then(|()| grow(&mark, 0)).and_then(|()| grow(path, 0));
        self.known().inputs.open.insert(id, Input { path: path.to_owned(), etype: 1 });
    }

    /// Before any other call of a file: what it reads is there.
    pub(crate) fn before_file(&self, call: &Call, words: &[usize]) {
        let name = call.function.name;
        let input = file_of(call).and_then(|id| Some((id, self.known().inputs.open.get(&id)?.clone())));
        let Some((id, input)) = input else { return };
        let word = |parameter: &str| call.function.index_of(parameter).map(|at| words[at]);
        let need = match name {
            "MPI_File_close" => {
                self.known().inputs.open.remove(&id);
                None
            }
            "MPI_File_set_view" => {
                let etype = word("etype").and_then(|etype| self.type_size(etype)).unwrap_or(1).max(1);
                self.known().inputs.open.insert(id, Input { etype, ..input.clone() });
                None
            }
            "MPI_File_get_size" => match call.args.last() {
                Some(Value::Int(size)) => u64::try_from(*size).ok(),
                _ => None,
            },
            name if is_read(name) => self.end_of_read(call, words, input.etype),
            _ => None,
        };
        if let Some(need) = need {
            // Where there is no room, what is read is less than it was.
            let _ = grow(&input.path, need);
        }
    }

    fn type_size(&self, datatype: usize) -> Option<u64> {
        let mut size = 0i32;
        let words = [datatype, std::ptr::from_mut(&mut size) as usize];
        (self.real_call("MPI_Type_size", &words) == 0).then(|| u64::try_from(size).unwrap_or(0))
    }

    /// Where in the file the last byte lies that a call reads, + 1.
    fn end_of_read(&self, call: &Call, words: &[usize], etype: u64) -> Option<u64> {
        let name = call.function.name;
        let told = call.args.iter().find_map(|value| match value {
            Value::Status(Status { bytes, .. }) => *bytes,
            _ => None,
        });
        let asked = || {
            let at = call.function.index_of("datatype")?;
            let Value::Int(count) = call.args[call.function.index_of("count")?] else { return None };
            u64::try_from(count).ok()?.checked_mul(self.type_size(words[at])?)
        };
        let mut bytes = told.and_then(|bytes| u64::try_from(bytes).ok()).or_else(asked)?;
        let (mut offset, mut place) = (0i64, 0i64);
        let file = words[0];
        let cell = |it: &mut i64| std::ptr::from_mut(it).cast::<c_void>() as usize;
        match call.function.index_of("offset") {
            Some(at) => offset = words[at] as i64,
            None => {
                let shared = name.contains("_shared") || name.contains("_ordered");
                let asks = if shared { "MPI_File_get_position_shared" } else { "MPI_File_get_position" };
                if self.real_call(asks, &[file, cell(&mut offset)]) != 0 {
                    return None;
                }
            }
        }
        if name.contains("_ordered") {
            // Those of the ranks before it come first.
            bytes = bytes.saturating_mul(self.world.into());
        }
        let last = i64::try_from(bytes.div_ceil(etype)).ok()?.checked_sub(1).filter(|last| *last >= 0)?;
        let last = offset.checked_add(last)?;
        let code = self.real_call("MPI_File_get_byte_offset", &[file, last as usize, cell(&mut place)]);
        (code == 0).then(|| u64::try_from(place).ok()?.checked_add(etype)).flatten()
    }
}
