//! The program dies of a signal. QEMU tells no plugin of it: it gives itself the signal, by `kill`. So a function of ours stands
//! in the place of `kill` in the emulator's own table of imports, and calls the real one.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};

use libc::{Elf64_Phdr, Elf64_Rela, Elf64_Sym, dl_phdr_info};

/// What is done before the emulator ends itself, a `fn()`; 0: nothing.
static BEFORE: AtomicUsize = AtomicUsize::new(0);

/// Sees to it that `before` runs when the program dies of a signal, on the thread that ends the emulator. Whether it will.
pub fn watch(before: fn()) -> bool {
    BEFORE.store(before as usize, Release);
    let mut done = false;
    // SAFETY: the callback takes what it is given for a `&mut bool`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first_object), (&raw mut done).cast()) };
    done
}

unsafe extern "C" fn own_kill(process: libc::pid_t, signal: c_int) -> c_int {
    let before = BEFORE.load(Acquire);
    // SAFETY: asks for a number.
    if before != 0 && signal != 0 && process == unsafe { libc::getpid() } {
        // SAFETY: it is what `watch` was given.
        let before = unsafe { std::mem::transmute::<usize, fn()>(before) };
        before();
    }
    // SAFETY: the caller's own words.
    unsafe { libc::kill(process, signal) }
}

/// The emulator itself is the first object.
unsafe extern "C" fn first_object(info: *mut dl_phdr_info, _size: usize, done: *mut c_void) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a valid description, and our own pointer back.
    let (info, done) = unsafe { (&*info, &mut *done.cast::<bool>()) };
    // SAFETY: the loader's own array, of that length.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    // SAFETY: an object that is loaded, as the loader describes it.
    *done = unsafe { slot(info.dlpi_addr as usize, headers, c"kill") }.is_some_and(put);
    1
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Dyn {
    tag: i64,
    value: u64,
}

/// Where the address of that imported function is kept.
///
/// # Safety
/// An object that is loaded there, with these headers.
unsafe fn slot(base: usize, headers: &[Elf64_Phdr], name: &CStr) -> Option<*mut usize> {
    const DT_NULL: i64 = 0;
    const DT_PLTRELSZ: i64 = 2;
    const DT_STRTAB: i64 = 5;
    const DT_SYMTAB: i64 = 6;
    const DT_JMPREL: i64 = 23;
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
    let mut entry = base.wrapping_add(dynamic.p_vaddr as usize) as *const Dyn;
    let (mut imports, mut length, mut symbols, mut names) = (0, 0, 0, 0);
    loop {
        // SAFETY: the dynamic section ends with DT_NULL, where this loop does.
        let Dyn { tag, value } = unsafe { *entry };
        let value = value as usize;
        // The loader makes addresses of these, or leaves them relative to the base.
        let address = if value < base { base + value } else { value };
        match tag {
            DT_NULL => break,
            DT_PLTRELSZ => length = value,
            DT_STRTAB => names = address,
            DT_SYMTAB => symbols = address,
            DT_JMPREL => imports = address,
            _ => {}
        }
        // SAFETY: it was not the last one.
        entry = unsafe { entry.add(1) };
    }
    if imports == 0 || symbols == 0 || names == 0 {
        return None;
    }
    // SAFETY: the object's table of imported functions, of that length.
    let imports =
        unsafe { std::slice::from_raw_parts(imports as *const Elf64_Rela, length / size_of::<Elf64_Rela>()) };
    for import in imports {
        // SAFETY: an import has the number of its symbol.
        let symbol = unsafe { &*(symbols as *const Elf64_Sym).add((import.r_info >> 32) as usize) };
        // SAFETY: a symbol has the place of its name, which is terminated.
        let called = unsafe { CStr::from_ptr((names + symbol.st_name as usize) as *const _) };
        if called == name {
            return Some(base.wrapping_add(import.r_offset as usize) as *mut usize);
        }
    }
    None
}

/// Puts our function there. The page is read-only again afterwards, as the loader left it.
fn put(slot: *mut usize) -> bool {
    let page = 4096;
    let start = (slot as usize & !(page - 1)) as *mut c_void;
    // SAFETY: a page of the emulator's own table.
    if unsafe { libc::mprotect(start, page, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
        return false;
    }
    // SAFETY: it can be written now, and nobody calls through it yet.
    unsafe { slot.write(own_kill as *const () as usize) };
    // SAFETY: as it was.
    unsafe { libc::mprotect(start, page, libc::PROT_READ) };
    true
}
