//! Static memory: the program and its libraries, numbered in the order in which MPI calls first mention them, so that a
//! number does not depend on how many libraries some other machine loads.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libc::dl_phdr_info;

#[derive(Debug, Default)]
pub struct Modules {
    loaded: Vec<Module>,
    /// How many modules came and went when `loaded` was made.
    changes: (u64, u64),
    /// Bases, by number. A module that is unloaded keeps its number.
    numbered: Vec<usize>,
}

#[derive(Debug)]
struct Module {
    base: usize,
    memory: Range<usize>,
}

impl Modules {
    /// The number of the module that holds `pointer`, and how far into it that is.
    pub fn find(&mut self, pointer: usize) -> Option<(u32, i64)> {
        let mut base = self.base_of(pointer);
        if base.is_none() && self.refresh() {
            base = self.base_of(pointer);
        }
        let base = base?;
        let number = self.numbered.iter().position(|&known| known == base).unwrap_or_else(|| {
            self.numbered.push(base);
            self.numbered.len() - 1
        });
        Some((u32::try_from(number).ok()?, pointer.wrapping_sub(base) as i64))
    }

    fn base_of(&self, pointer: usize) -> Option<usize> {
        self.loaded.iter().find(|module| module.memory.contains(&pointer)).map(|module| module.base)
    }

    /// True if anything changed since last time.
    fn refresh(&mut self) -> bool {
        let mut now = Modules { changes: self.changes, ..Default::default() };
        // SAFETY: the callback fits, and `now` outlives the call.
        let changed = unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut now).cast()) } == 0;
        if changed {
            self.loaded = now.loaded;
            self.changes = now.changes;
        }
        changed
    }
}

/// A function or other static address, by its module's file name and the offset in it: the same in every process that
/// runs the same program.
pub fn name_of(pointer: usize) -> String {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: any address may be asked about, and `info` is a valid place for the answer.
    let found = unsafe { libc::dladdr(pointer as *const c_void, &mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return format!("{pointer:#x}");
    }
    // SAFETY: a terminated string, valid while the module is loaded, as it is: the program just passed its function.
    let path = unsafe { std::ffi::CStr::from_ptr(info.dli_fname) }.to_string_lossy();
    let file = path.rsplit('/').next().unwrap_or(&path);
    format!("{file}+{:#x}", pointer.wrapping_sub(info.dli_fbase as usize))
}

/// Adds one module; stops with 1 where the loader's counters say that nothing changed.
unsafe extern "C" fn each(info: *mut dl_phdr_info, _size: usize, modules: *mut c_void) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a valid description, and our own pointer back.
    let (info, modules) = unsafe { (&*info, &mut *modules.cast::<Modules>()) };
    // A panic must not pass through the loader: it ends the walk, and what is known stays as it was.
    catch_unwind(AssertUnwindSafe(|| add(info, modules))).unwrap_or(1)
}

fn add(info: &dl_phdr_info, modules: &mut Modules) -> c_int {
    let changes = (info.dlpi_adds, info.dlpi_subs);
    if modules.loaded.is_empty() && modules.changes == changes {
        return 1;
    }
    modules.changes = changes;
    let headers = match info.dlpi_phdr.is_null() {
        true => &[],
        // SAFETY: the loader's own array, of that length.
        false => unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) },
    };
    let base = info.dlpi_addr as usize;
    let loads = || headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
    let start = loads().map(|h| base + h.p_vaddr as usize).min().unwrap_or(0);
    let end = loads().map(|h| base + (h.p_vaddr + h.p_memsz) as usize).max().unwrap_or(0);
    modules.loaded.push(Module { base, memory: start..end });
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    static HERE: [u8; 100] = [1; 100];

    #[test]
    fn modules_are_numbered_by_first_use() {
        let mut modules = Modules::default();
        let address = &raw const HERE as usize;
        assert_eq!(modules.find(16), None);
        let (number, offset) = modules.find(address).unwrap();
        assert_eq!(number, 0);
        assert_eq!(modules.find(address + 9), Some((0, offset + 9)));
        let (libc, _) = modules.find(libc::getpid as *const () as usize).unwrap();
        // A test binary refers to the C library's functions through its own table, or not.
        assert!(libc <= 1);
        assert_eq!(modules.find(&raw const modules as usize), None, "the stack is no module");
        assert_eq!(modules.find(address), Some((0, offset)));
    }
}
