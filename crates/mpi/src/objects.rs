//! The objects (executable and shared libraries) loaded into this process.

use libc::{c_int, c_void, dl_phdr_info, size_t};
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

    /// The path's last part; lossless for every name an MPI library has.
    pub(crate) fn file_name(&self) -> &str {
        let bytes = self.path.to_bytes();
        let name = bytes.rsplit(|&b| b == b'/').next().unwrap_or(bytes);
        str::from_utf8(name).unwrap_or("")
    }
}

/// All loaded objects, in the order in which the dynamic linker loaded them.
pub(crate) fn objects() -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    // SAFETY: `collect` takes `data` for a `Vec<Object>`, and nothing else uses the vector meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut objects).cast()) };
    objects
}

/// Runs under the dynamic linker's lock: it copies what is needed and calls nothing that loads.
unsafe extern "C" fn collect(info: *mut dl_phdr_info, _size: size_t, data: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker passes a valid record.
    let info = unsafe { &*info };
    // SAFETY: `data` is what `objects` passed.
    let objects = unsafe { &mut *data.cast::<Vec<Object>>() };
    // A panic must not pass through the dynamic linker: it ends the list.
    c_int::from(catch_unwind(AssertUnwindSafe(|| add(info, objects))).is_err())
}

fn add(info: &dl_phdr_info, objects: &mut Vec<Object>) {
    let headers = if info.dlpi_phdr.is_null() {
        &[]
    } else {
        // SAFETY: the record says where the program headers are and how many.
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
    };
    let base = info.dlpi_addr as usize;
    let mut memory = 0..0;
    for header in headers.iter().filter(|h| h.p_type == libc::PT_LOAD) {
        let start = base.wrapping_add(header.p_vaddr as usize);
        let end = start.wrapping_add(header.p_memsz as usize);
        memory = if memory.is_empty() { start..end } else { memory.start.min(start)..memory.end.max(end) };
    }
    let path = if info.dlpi_name.is_null() {
        CString::default()
    } else {
        // SAFETY: a NUL-terminated name, which outlives the callback.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned()
    };
    objects.push(Object { path, memory });
}

/// How many objects came and went so far, as the dynamic linker counts them: equal numbers, equal objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    came: u64,
    went: u64,
}

impl Changes {
    pub fn now() -> Changes {
        let mut changes = Changes { came: 0, went: 0 };
        // SAFETY: `count` takes `data` for these numbers, and nothing else uses them meanwhile.
        unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut changes).cast()) };
        changes
    }
}

/// Every object's record has them: the first one's will do.
unsafe extern "C" fn count(info: *mut dl_phdr_info, _size: size_t, data: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker passes a valid record, and `data` is what `now` passed.
    let (info, changes) = unsafe { (&*info, &mut *data.cast::<Changes>()) };
    *changes = Changes { came: info.dlpi_adds, went: info.dlpi_subs };
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_ourselves_and_libc() {
        let all = objects();
        let here = objects as fn() -> Vec<Object> as *const c_void;
        let ours: Vec<_> = all.iter().filter(|o| o.contains(here)).collect();
        assert_eq!(ours.len(), 1, "{all:?}");
        let malloc = libc::malloc as unsafe extern "C" fn(size_t) -> *mut c_void as *const c_void;
        assert!(all.iter().any(|o| o.contains(malloc)));
        assert!(all.iter().any(|o| o.file_name().starts_with("libc.so")));
    }
}
