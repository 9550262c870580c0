//! The objects (executable and shared libraries) loaded into this process.

use libc::c_void;
use std::ffi::CString;
use std::ops::Range;

use refrain_process::loaded::walk;

/// One loaded object.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// As the dynamic linker knows it; empty for the executable.
    pub(crate) path: CString,
    /// From its first to its last mapped byte.
    pub(crate) memory: Range<usize>,
}

impl Object {
    pub(crate) fn contains(&self, address: *const c_void) -> bool {
        self.memory.contains(&(address as usize))
    }

    /// Lossless for every path that anything is known by.
    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap_or("")
    }

    /// The path's last part.
    pub(crate) fn file_name(&self) -> &str {
        self.path().rsplit('/').next().unwrap_or("")
    }
}

/// All loaded objects, in the order in which the dynamic linker loaded them.
pub(crate) fn objects() -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    walk(|object| {
        objects.push(Object { path: object.path.to_owned(), memory: object.memory() });
        false
    });
    objects
}
