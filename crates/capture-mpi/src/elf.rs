//! A loaded module as the dynamic linker sees it: its tables in memory.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;

use libc::{Elf64_Phdr, Elf64_Rela, Elf64_Sym, dl_phdr_info};

const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;
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
    /// What the loader made read-only after relocating.
    pub read_only: Range<usize>,
}

impl Module {
    pub fn find(which: Which) -> Option<Module> {
        let mut search = Search { which, found: None };
        // SAFETY: the callback fits, and `search` outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut search).cast()) };
        search.found.filter(|module| module.symbols != 0 && module.names != 0)
    }

    fn new(base: usize, headers: &[Elf64_Phdr]) -> Option<Module> {
        let at = |header: &Elf64_Phdr| base + header.p_vaddr as usize;
        let mut module = Module { base, ..Default::default() };
        if let Some(relro) = headers.iter().find(|h| h.p_type == libc::PT_GNU_RELRO) {
            module.read_only = at(relro)..at(relro) + relro.p_memsz as usize;
        }
        let mut entry = at(headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC)?) as *const Dyn;
        loop {
            // SAFETY: the dynamic section ends with DT_NULL, where this loop does.
            let Dyn { tag, value } = unsafe { *entry };
            let value = value as usize;
            // Most architectures relocate these addresses in place, some leave them relative to the base.
            let address = if value < base { base + value } else { value };
            match tag {
                DT_NULL => return Some(module),
                DT_SYMTAB => module.symbols = address,
                DT_STRTAB => module.names = address,
                DT_GNU_HASH => module.hash = address,
                DT_RELA => module.relocations[0].0 = address,
                DT_RELASZ => module.relocations[0].1 = value,
                DT_JMPREL => module.relocations[1].0 = address,
                DT_PLTRELSZ => module.relocations[1].1 = value,
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

    pub fn name(&self, symbol: &Elf64_Sym) -> &CStr {
        // SAFETY: the string table holds a terminated name for every symbol.
        unsafe { CStr::from_ptr((self.names as *const c_char).add(symbol.st_name as usize)) }
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

/// The relocations that fill in a function's address: GLOB_DAT and JUMP_SLOT.
#[cfg(target_arch = "x86_64")]
const SLOTS: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const SLOTS: [u32; 2] = [1025, 1026];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const SLOTS: [u32; 0] = [];

struct Search {
    which: Which,
    found: Option<Module>,
}

unsafe extern "C" fn each(info: *mut dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a valid description, and our own pointer back.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: the loader's own array, of that length.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let base = info.dlpi_addr as usize;
    let wanted = match search.which {
        Which::Program => true,
        Which::Holding(address) => headers.iter().any(|h| {
            h.p_type == libc::PT_LOAD && address.wrapping_sub(base + h.p_vaddr as usize) < h.p_memsz as usize
        }),
    };
    if wanted {
        search.found = Module::new(base, headers);
    }
    c_int::from(wanted)
}

/// The range of symbols a GNU hash table covers.
///
/// # Safety
/// `hash` is a complete `.gnu.hash` section of this machine's word size.
unsafe fn hashed(hash: *const u32) -> (usize, usize) {
    // SAFETY: the four words of the header.
    let [buckets, first, blooms] = [0, 1, 2].map(|i| unsafe { *hash.add(i) } as usize);
    let words_a_bloom = size_of::<usize>() / size_of::<u32>();
    // SAFETY: the Bloom filter follows the header, the buckets follow it, the chains follow them.
    let bucket = unsafe { hash.add(4 + blooms * words_a_bloom) };
    // SAFETY: as above.
    let chain = unsafe { bucket.add(buckets) };
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
