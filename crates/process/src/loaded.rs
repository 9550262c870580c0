//! The one walk over the loaded objects.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libc::{Elf64_Phdr, dl_phdr_info};

/// How many objects came and went so far, as the dynamic linker counts them: equal numbers, equal objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    came: u64,
    went: u64,
}

impl Changes {
    pub fn now() -> Changes {
        let mut changes = Changes::default();
        // Every object's record has them: the first one's will do.
        walk(|object| {
            changes = object.changes;
            true
        });
        changes
    }

    /// Whether an object has gone since `earlier`.
    pub fn lost_some(self, earlier: Changes) -> bool {
        self.went != earlier.went
    }
}

/// An object as the dynamic linker shows it during a walk.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    /// What its addresses are relative to.
    pub base: usize,
    pub headers: &'a [Elf64_Phdr],
    /// As the dynamic linker knows it; empty for the program's own file.
    pub path: &'a CStr,
    pub changes: Changes,
}

impl<'a> Object<'a> {
    /// Where that part of it lies.
    pub fn range(&self, header: &Elf64_Phdr) -> Range<usize> {
        let start = self.base.wrapping_add(header.p_vaddr as usize);
        start..start.wrapping_add(header.p_memsz as usize)
    }

    /// The parts of it that are mapped.
    pub fn loads(&self) -> impl Iterator<Item = &'a Elf64_Phdr> {
        self.headers.iter().filter(|header| header.p_type == libc::PT_LOAD)
    }

    pub fn holds(&self, address: usize) -> bool {
        self.loads().any(|header| self.range(header).contains(&address))
    }

    /// From its first to its last mapped byte.
    pub fn memory(&self) -> Range<usize> {
        let ranges = || self.loads().map(|header| self.range(header));
        let start = ranges().map(|range| range.start).min().unwrap_or(0);
        start..ranges().map(|range| range.end).max().unwrap_or(0)
    }
}

/// Shows `visit` each object, in the order in which the dynamic linker looks names up, until it returns true. Whether it
/// has seen them all: a panic in it ends the walk too. Runs under the dynamic linker's lock, so `visit` calls nothing that
/// loads.
pub fn walk(mut visit: impl FnMut(&Object<'_>) -> bool) -> bool {
    let mut visit: &mut Visit<'_> = &mut visit;
    // SAFETY: the callback takes what it is given for a `&mut Visit`, and `visit` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut visit).cast()) == 0 }
}

/// What `look` makes of each object, and when that was; `None` where nothing has changed since `known`.
pub fn if_changed<T>(known: Changes, mut look: impl FnMut(&Object<'_>) -> T) -> Option<(Changes, Vec<T>)> {
    let (mut changes, mut found) = (known, Vec::new());
    let whole = walk(|object| {
        if found.is_empty() && object.changes == known {
            return true;
        }
        changes = object.changes;
        found.push(look(object));
        false
    });
    whole.then_some((changes, found))
}

type Visit<'a> = dyn FnMut(&Object<'_>) -> bool + 'a;

unsafe extern "C" fn each(info: *mut dl_phdr_info, _size: usize, visit: *mut c_void) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a valid description, and our own pointer back.
    let (info, visit) = unsafe { (&*info, &mut *visit.cast::<&mut Visit<'_>>()) };
    let headers = match info.dlpi_phdr.is_null() {
        true => &[],
        // SAFETY: the loader's own array, of that length.
        false => unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) },
    };
    let path = match info.dlpi_name.is_null() {
        true => c"",
        // SAFETY: a terminated string of the loader's.
        false => unsafe { CStr::from_ptr(info.dlpi_name) },
    };
    let changes = Changes { came: info.dlpi_adds, went: info.dlpi_subs };
    let object = Object { base: info.dlpi_addr as usize, headers, path, changes };
    // A panic must not pass through the loader: it ends the walk.
    let seen = catch_unwind(AssertUnwindSafe(|| visit(&object)));
    c_int::from(seen.unwrap_or(true))
}

/// A function or other static address, by its object's file name and the offset in it: the same in every process that
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
    // SAFETY: a terminated string, valid while the object is loaded, as it is: the program just passed its function.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy();
    let file = path.rsplit('/').next().unwrap_or(&path);
    format!("{file}+{:#x}", pointer.wrapping_sub(info.dli_fbase as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_ourselves_and_libc() {
        let mut found: Vec<(String, Range<usize>)> = Vec::new();
        let here = finds_ourselves_and_libc as *const () as usize;
        assert!(walk(|object| {
            assert_eq!(object.holds(here), object.memory().contains(&here) && found.is_empty());
            found.push((object.path.to_string_lossy().into_owned(), object.memory()));
            false
        }));
        let holding = |address: usize| found.iter().filter(move |(_, memory)| memory.contains(&address));
        assert_eq!(holding(here).count(), 1, "{found:?}");
        let libc = holding(libc::getpid as *const () as usize).next().unwrap();
        assert!(libc.0.contains("libc.so") || libc.1.contains(&here), "{found:?}");
    }

    #[test]
    fn nothing_is_looked_at_again_that_has_not_changed() {
        let (changes, bases) = if_changed(Changes::default(), |object| object.base).unwrap();
        assert!(bases.len() > 1);
        assert_eq!(changes, Changes::now());
        let again = if_changed(changes, |_| panic!("nothing has changed"));
        assert!(again.is_none() || Changes::now() != changes);
    }

    #[test]
    fn a_panic_ends_the_walk_and_nothing_else() {
        let mut seen = 0;
        let whole = walk(|_| {
            seen += 1;
            assert_eq!(seen, 1, "a test asks for it");
            seen == 1 && { panic!("a test asks for it") }
        });
        assert!(!whole && seen == 1);
    }
}
