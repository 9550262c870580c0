//! Makes our wrappers invisible where the program's MPI library lacks the function. A program may take the presence of
//! `MPI_Isend_c` for a promise (mpi4py does), and we can keep it only as far as its library does.
//!
//! The dynamic linker looks names up in our symbol table in memory and passes over symbols that are undefined there, so
//! a wrapper is withdrawn by making its entry undefined and offered again by undoing that.
//!
//! Limit: symbols that were bound before our constructor ran (weak references of a program linked to bind at once) keep
//! what they found.

use std::ffi::{CStr, c_int, c_void};
use std::mem::offset_of;

use libc::{Elf64_Addr, Elf64_Phdr, Elf64_Sym, dl_phdr_info};
use refrain_mpi::Library;

const DT_NULL: i64 = 0;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const SHN_UNDEF: u16 = 0;

#[repr(C)]
#[derive(Clone, Copy)]
struct Dyn {
    tag: i64,
    value: u64,
}

/// Our own module, as the dynamic linker loaded it.
struct Module {
    base: usize,
    dynamic: *const Dyn,
}

/// Shows exactly the wrappers of the functions `library` has; none without a library. May be called again when a
/// library comes in later.
pub fn offer(library: Option<&Library>) {
    let Some(table) = own_module().and_then(|module| Table::of(&module)) else { return };
    table.update(|name| library.is_some_and(|library| library.exports(name)));
}

fn own_module() -> Option<Module> {
    unsafe extern "C" fn each(info: *mut dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid description, and our own pointer back.
        let (info, found) = unsafe { (&*info, &mut *found.cast::<Option<Module>>()) };
        // SAFETY: the loader's own array, of that length.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let base = info.dlpi_addr as usize;
        let here = own_module as *const () as usize;
        let ours = |h: &Elf64_Phdr| {
            h.p_type == libc::PT_LOAD && here.wrapping_sub(base + h.p_vaddr as usize) < h.p_memsz as usize
        };
        if !headers.iter().any(ours) {
            return 0;
        }
        let dynamic = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC);
        *found = dynamic.map(|h| Module { base, dynamic: (base + h.p_vaddr as usize) as *const Dyn });
        1
    }
    let mut found: Option<Module> = None;
    // SAFETY: the callback fits, and `found` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut found).cast()) };
    found
}

/// Our dynamic symbol table.
struct Table {
    symbols: *mut Elf64_Sym,
    /// The first symbol that can be looked up, and one past the last.
    first: usize,
    end: usize,
    names: *const std::ffi::c_char,
}

impl Table {
    fn of(module: &Module) -> Option<Table> {
        let (mut symbols, mut names, mut hash) = (0, 0, 0);
        let mut entry = module.dynamic;
        loop {
            // SAFETY: the dynamic section ends with DT_NULL, where this loop does.
            let Dyn { tag, value } = unsafe { *entry };
            // Most architectures relocate these addresses in place, some leave them relative to the base.
            let address =
                if (value as usize) < module.base { module.base + value as usize } else { value as usize };
            match tag {
                DT_NULL => break,
                DT_SYMTAB => symbols = address,
                DT_STRTAB => names = address,
                DT_GNU_HASH => hash = address,
                _ => {}
            }
            // SAFETY: not past DT_NULL yet.
            entry = unsafe { entry.add(1) };
        }
        if symbols == 0 || names == 0 || hash == 0 {
            return None;
        }
        // SAFETY: the hash section the linker made for this very table.
        let (first, end) = unsafe { hashed(hash as *const u32) };
        Some(Table { symbols: symbols as *mut Elf64_Sym, first, end, names: names as *const _ })
    }

    /// Shows the wrappers for which `wanted` holds, and hides the others.
    fn update(&self, wanted: impl Fn(&str) -> bool) {
        let Some(_writable) = Writable::new(self.symbols as usize, self.end * size_of::<Elf64_Sym>()) else {
            return;
        };
        // SAFETY: `end` symbols are there, and nobody else writes; the linker's look-ups read single fields.
        let symbols = unsafe { std::slice::from_raw_parts_mut(self.symbols, self.end) };
        let (here, wrappers) = symbols.split_at_mut(self.first);
        let _ = here;
        let section = wrappers.iter().map(|s| s.st_shndx).find(|&section| section != SHN_UNDEF);
        for symbol in wrappers {
            // SAFETY: the string table holds a terminated name for every symbol.
            let name = unsafe { CStr::from_ptr(self.names.add(symbol.st_name as usize)) };
            let Some(name) = name.to_str().ok().filter(|n| n.starts_with("MPI_") || n.starts_with("PMPI_"))
            else {
                continue;
            };
            match (symbol.st_shndx != SHN_UNDEF, wanted(name)) {
                (true, false) => hide(symbol),
                (false, true) => show(symbol, section.unwrap_or(1)),
                _ => {}
            }
        }
    }
}

/// A hidden symbol keeps its value where its size was; nothing at run time reads a function's size.
fn hide(symbol: &mut Elf64_Sym) {
    symbol.st_size = symbol.st_value;
    symbol.st_value = 0;
    symbol.st_shndx = SHN_UNDEF;
}

fn show(symbol: &mut Elf64_Sym, section: u16) {
    symbol.st_value = symbol.st_size;
    symbol.st_size = 0;
    symbol.st_shndx = section;
}

/// The range of symbols a GNU hash table covers.
///
/// # Safety
/// `hash` is a complete `.gnu.hash` section of this machine's word size.
unsafe fn hashed(hash: *const u32) -> (usize, usize) {
    // SAFETY: the four words of the header.
    let [buckets, first, blooms] = [0, 1, 2].map(|i| unsafe { *hash.add(i) } as usize);
    let words_a_bloom = size_of::<Elf64_Addr>() / size_of::<u32>();
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

/// Pages that may be written until dropped. They were read-only before: symbol tables are.
struct Writable {
    start: *mut c_void,
    length: usize,
}

impl Writable {
    fn new(address: usize, length: usize) -> Option<Self> {
        // SAFETY: asks for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let start = address & !(page - 1);
        let pages = Self { start: start as *mut c_void, length: address + length - start };
        // SAFETY: pages of our own module's symbol table, which stay readable.
        let done = unsafe { libc::mprotect(pages.start, pages.length, libc::PROT_READ | libc::PROT_WRITE) };
        (done == 0).then_some(pages)
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        // SAFETY: as they were.
        unsafe { libc::mprotect(self.start, self.length, libc::PROT_READ) };
    }
}

const _: () = assert!(offset_of!(Elf64_Sym, st_value) == 8, "a 64-bit symbol table");
