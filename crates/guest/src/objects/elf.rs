//! A loaded module as the dynamic linker sees it: its tables in memory.

use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use libc::{Elf64_Rela, Elf64_Sym};

use refrain_process::loaded::{Object, walk};

use crate::process::next::first;

const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_RPATH: i64 = 15;
const DT_JMPREL: i64 = 23;
const DT_RUNPATH: i64 = 29;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

#[repr(C)]
#[derive(Clone, Copy)]
struct Dyn {
    tag: i64,
    value: u64,
}

/// Which module to look for.
#[derive(Debug, Clone, Copy)]
pub enum Which {
    /// The program itself, which the loader lists first.
    Program,
    /// The one that holds this address.
    Holding(usize),
}

/// A module's dynamic symbols and relocations. The tables belong to the loader and live as long as the module.
#[derive(Debug, Default)]
pub struct Module {
    pub base: usize,
    symbols: usize,
    names: usize,
    hash: usize,
    relocations: [(usize, usize); 2],
    /// Has places of its own in which the linker looks for what this module opens.
    pub own_paths: bool,
    /// What the loader made read-only after relocating.
    pub read_only: Range<usize>,
}

impl Module {
    pub fn find(which: Which) -> Option<Module> {
        let mut found = None;
        walk(|object| {
            let wanted = match which {
                Which::Program => true,
                Which::Holding(address) => object.holds(address),
            };
            if wanted {
                found = Module::new(object).filter(Module::has_symbols);
            }
            wanted
        });
        found
    }

    /// The pages of the module at that address which nobody is meant to write to: its code and its constants.
    pub fn constant(address: usize) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        walk(|object| {
            let wanted = object.holds(address);
            if wanted {
                let constant = object.loads().filter(|header| header.p_flags & libc::PF_W == 0);
                found.extend(constant.map(|header| object.range(header)));
            }
            wanted
        });
        found
    }

    /// All that have symbols, in the order in which names are looked up.
    pub fn all() -> Vec<Module> {
        let mut all = Vec::new();
        walk(|object| {
            all.extend(Module::new(object).filter(Module::has_symbols));
            false
        });
        all
    }

    /// Whether `wanted` is true for some module.
    pub fn any(wanted: impl Fn(&Module) -> bool) -> bool {
        let mut found = false;
        walk(|object| {
            found = Module::new(object).filter(Module::has_symbols).is_some_and(|m| wanted(&m));
            found
        });
        found
    }

    fn has_symbols(&self) -> bool {
        self.symbols != 0 && self.names != 0
    }

    fn new(object: &Object<'_>) -> Option<Module> {
        let &Object { base, headers, .. } = object;
        let part = |kind| headers.iter().find(|header| header.p_type == kind);
        let dynamic = object.range(part(libc::PT_DYNAMIC)?).start as *const Dyn;
        // SAFETY: a dynamic section, as its header says.
        let mut module = unsafe { Module::of_section(base, dynamic) };
        if let Some(relro) = part(libc::PT_GNU_RELRO) {
            module.read_only = object.range(relro);
        }
        Some(module)
    }

    /// # Safety
    /// The dynamic section of the module that is loaded at `base`.
    unsafe fn of_section(base: usize, mut entry: *const Dyn) -> Module {
        let mut module = Module { base, ..Default::default() };
        loop {
            // SAFETY: the dynamic section ends with DT_NULL, where this loop does.
            let Dyn { tag, value } = unsafe { *entry };
            let value = value as usize;
            // Most architectures relocate these addresses in place, some leave them relative to the base.
            let address = if value < base { base + value } else { value };
            match tag {
                DT_NULL => return module,
                DT_SYMTAB => module.symbols = address,
                DT_STRTAB => module.names = address,
                DT_GNU_HASH => module.hash = address,
                DT_RELA => module.relocations[0].0 = address,
                DT_RELASZ => module.relocations[0].1 = value,
                DT_JMPREL => module.relocations[1].0 = address,
                DT_PLTRELSZ => module.relocations[1].1 = value,
                DT_RPATH | DT_RUNPATH => module.own_paths = true,
                _ => {}
            }
            // SAFETY: not past DT_NULL yet.
            entry = unsafe { entry.add(1) };
        }
    }

    /// The symbols others can look up here: where they lie, and how many there are.
    pub fn exported(&self) -> Option<(*mut Elf64_Sym, usize)> {
        (self.hash != 0).then(|| {
            // SAFETY: the hash section the linker made for this very table.
            let (first, end) = unsafe { hashed(self.hash as *const u32) };
            // SAFETY: the table has at least `end` symbols.
            (unsafe { (self.symbols as *mut Elf64_Sym).add(first) }, end - first)
        })
    }

    /// Whether others find that name here. Calls nothing of the linker's, so that it can be asked in the midst of linking.
    pub fn defines(&self, name: &CStr) -> bool {
        if self.hash == 0 {
            return false;
        }
        let wanted = name.to_bytes().iter().fold(5381u32, |h, &b| h.wrapping_mul(33).wrapping_add(b.into()));
        // SAFETY: the hash section the linker made for this very table.
        let mut chain = unsafe { chain(self.hash as *const u32, wanted) };
        while let Some((index, hash)) = chain {
            if hash | 1 == wanted | 1 {
                // SAFETY: the table has every symbol its hash section knows.
                let symbol = unsafe { &*(self.symbols as *const Elf64_Sym).add(index) };
                if symbol.st_shndx != 0 && self.name(symbol) == name {
                    return true;
                }
            }
            // SAFETY: as above; the lowest bit marks a chain's end.
            chain = (hash & 1 == 0).then(|| unsafe { (index + 1, link(self.hash as *const u32, index + 1)) });
        }
        false
    }

    pub fn name(&self, symbol: &Elf64_Sym) -> &CStr {
        // SAFETY: the string table holds a terminated name for every symbol.
        unsafe { CStr::from_ptr((self.names as *const c_char).add(symbol.st_name as usize)) }
    }

    /// Puts another function's address into a slot of this module; not where the system does not allow it.
    ///
    /// # Safety
    /// One of `imports`, for a function that `address` can stand in for.
    pub unsafe fn bind(&self, slot: *mut usize, address: *const c_void) {
        let read_only = self.read_only.contains(&(slot as usize));
        // SAFETY: a part of the module that is mapped, and that its loader made read-only.
        let writable = read_only.then(|| unsafe { Writable::new(slot as usize, size_of::<usize>()) });
        if let Some(None) = writable {
            return;
        }
        // SAFETY: a slot for a function's address, aligned as relocations of words are. The linker and calls of other
        // threads read it in one go, and find one function or the other.
        unsafe { AtomicUsize::from_ptr(slot) }.store(address as usize, Relaxed);
    }

    /// The slots through which this module calls others' functions, with the functions' names.
    pub fn imports(&self) -> impl Iterator<Item = (&CStr, *mut usize)> {
        let tables = self.relocations.iter().filter(|(table, _)| *table != 0).flat_map(|&(table, bytes)| {
            // SAFETY: the loader's table, of that many bytes.
            unsafe { std::slice::from_raw_parts(table as *const Elf64_Rela, bytes / size_of::<Elf64_Rela>()) }
        });
        tables.filter(|relocation| SLOTS.contains(&(relocation.r_info as u32))).map(|relocation| {
            // SAFETY: a relocation names a symbol of this table.
            let symbol =
                unsafe { &*(self.symbols as *const Elf64_Sym).add((relocation.r_info >> 32) as usize) };
            (self.name(symbol), (self.base + relocation.r_offset as usize) as *mut usize)
        })
    }
}

/// What the dynamic linker tells debuggers, as far as it is read here.
#[repr(C)]
struct Debugged {
    version: i32,
    first: *const Listed,
}

/// A module in the dynamic linker's list.
#[repr(C)]
struct Listed {
    base: usize,
    name: *const c_char,
    dynamic: *const Dyn,
    next: *const Listed,
}

/// Whether a sanitizer that has a `malloc` of its own is in this process. Reads the linker's list where it lies, because this is asked
/// when the first memory is: `dl_iterate_phdr` may be ThreadSanitizer's, which is not ready by then, and `dlsym` takes memory to say that
/// there is no such name, which hangs in an allocator that has asked for pages under its lock.
pub fn sanitized() -> bool {
    const SIGNS: [&CStr; 4] = [c"__asan_init", c"__tsan_init", c"__lsan_init", c"__msan_init"];
    let Some(debugged) = first(c"_r_debug") else { return false };
    // SAFETY: the linker's own, which has this form and stays where it is.
    let mut listed = unsafe { (*debugged.cast::<Debugged>()).first };
    while !listed.is_null() {
        // SAFETY: an entry of the list, which ends with null.
        let Listed { base, dynamic, next, .. } = unsafe { listed.read() };
        if !dynamic.is_null() {
            // SAFETY: the linker says where the section of this module is.
            let module = unsafe { Module::of_section(base, dynamic) };
            if module.has_symbols() && SIGNS.iter().any(|sign| module.defines(sign)) {
                return true;
            }
        }
        listed = next;
    }
    false
}

/// The relocations that fill in a function's address: GLOB_DAT and JUMP_SLOT.
#[cfg(target_arch = "x86_64")]
const SLOTS: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const SLOTS: [u32; 2] = [1025, 1026];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const SLOTS: [u32; 0] = [];

/// The parts of a GNU hash table: how many buckets, the first symbol it covers, the buckets, the chains.
///
/// # Safety
/// `hash` is a complete `.gnu.hash` section of this machine's word size.
unsafe fn parts(hash: *const u32) -> (usize, usize, *const u32, *const u32) {
    // SAFETY: the four words of the header.
    let [buckets, first, blooms] = [0, 1, 2].map(|i| unsafe { *hash.add(i) } as usize);
    let words_a_bloom = size_of::<usize>() / size_of::<u32>();
    // SAFETY: the Bloom filter follows the header, the buckets follow it, the chains follow them.
    let bucket = unsafe { hash.add(4 + blooms * words_a_bloom) };
    // SAFETY: as above.
    let chain = unsafe { bucket.add(buckets) };
    (buckets, first, bucket, chain)
}

/// What a GNU hash table says about symbol `index`: its hash, with the lowest bit set at the end of a chain.
///
/// # Safety
/// As for `parts`, and the table covers that symbol.
unsafe fn link(hash: *const u32, index: usize) -> u32 {
    // SAFETY: as the caller says.
    let (_, first, _, chain) = unsafe { parts(hash) };
    // SAFETY: as the caller says.
    unsafe { *chain.add(index - first) }
}

/// The first symbol of the chain in which one with that hash would be, and its own hash.
///
/// # Safety
/// As for `parts`.
unsafe fn chain(hash: *const u32, wanted: u32) -> Option<(usize, u32)> {
    // SAFETY: as the caller says.
    let (buckets, first, bucket, _) = unsafe { parts(hash) };
    if buckets == 0 {
        return None;
    }
    // SAFETY: `buckets` of them are there.
    let index = unsafe { *bucket.add(wanted as usize % buckets) } as usize;
    // SAFETY: a bucket names a symbol that the table covers, or none with a lower number.
    (index >= first.max(1)).then(|| (index, unsafe { link(hash, index) }))
}

/// The range of symbols a GNU hash table covers.
///
/// # Safety
/// `hash` is a complete `.gnu.hash` section of this machine's word size.
unsafe fn hashed(hash: *const u32) -> (usize, usize) {
    // SAFETY: as the caller says.
    let (buckets, first, bucket, chain) = unsafe { parts(hash) };
    // SAFETY: `buckets` of them are there.
    let last = (0..buckets).map(|i| unsafe { *bucket.add(i) } as usize).max().unwrap_or(0);
    if last < first {
        return (first, first);
    }
    let mut end = last;
    // SAFETY: a chain ends at the entry whose lowest bit is set, and the last bucket's chain is the last of all.
    while unsafe { *chain.add(end - first) } & 1 == 0 {
        end += 1;
    }
    (first, end + 1)
}

/// Pages that may be written until dropped, and are read-only afterwards, as they were.
pub struct Writable {
    start: *mut c_void,
    length: usize,
}

impl Writable {
    /// None where the system does not allow it.
    ///
    /// # Safety
    /// The pages are mapped, readable, and were read-only.
    pub unsafe fn new(address: usize, length: usize) -> Option<Self> {
        // SAFETY: asks for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let start = address & !(page - 1);
        let pages = Self { start: start as *mut c_void, length: address + length - start };
        // SAFETY: as the caller says; they stay readable.
        let done = unsafe { libc::mprotect(pages.start, pages.length, libc::PROT_READ | libc::PROT_WRITE) };
        if done == 0 {
            return Some(pages);
        }
        std::mem::forget(pages);
        None
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        // SAFETY: as they were.
        unsafe { libc::mprotect(self.start, self.length, libc::PROT_READ) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_where_they_are_defined() {
        let libc = Module::find(Which::Holding(libc::getpid as *const () as usize)).expect("libc is loaded");
        for name in [c"getpid", c"dl_iterate_phdr", c"qsort", c"environ"] {
            assert!(libc.defines(name), "{name:?}");
            assert!(Module::any(|module| module.defines(name)));
        }
        for name in [c"", c"getpi", c"getpidd", c"MPI_Init"] {
            assert!(!libc.defines(name), "{name:?}");
            assert!(!Module::any(|module| module.defines(name)));
        }
    }
}
