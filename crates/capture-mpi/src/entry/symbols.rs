//! Makes our wrappers visible exactly where the program's MPI library has the function. A program may take the presence
//! of `MPI_Isend_c` for a promise (mpi4py does), and we can keep it only as far as its library does. So with the functions
//! of GPU runtimes.
//!
//! The dynamic linker looks names up in our symbol table in memory and passes over symbols that are undefined there, so
//! a wrapper is withdrawn by making its entry undefined and offered again by undoing that.
//!
//! While a library is being loaded that may bring MPI with it, nobody knows yet what to offer: the new objects are
//! mapped and linked in one go. For that time the wrappers are *indirect functions*: the linker asks a resolver of ours
//! for the address when it comes to link them, and by then the MPI library can be looked at. Wrappers of what that library
//! has stay indirect afterwards: other threads may be linking them.
//!
//! Limit: symbols that were bound before our constructor ran (weak references of a program linked to bind at once) keep
//! what they found.

use std::ffi::CStr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, fence};

use libc::Elf64_Sym;
use refrain_guest::memory::gpu;
use refrain_guest::objects::elf::{Module, Which, Writable};
use refrain_mpi::Library;

use crate::library::{self, own};

const SHN_UNDEF: u16 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

/// Shows exactly the wrappers of the functions `library` has; none without a library. Those by Fortran's names are to be
/// decided on when the linker comes to them: the layer may come later, with a library that the program opens.
pub fn offer(library: Option<&Library>) {
    let shown = |wanted| if wanted { Form::Plain } else { Form::Hidden };
    edit(|name, index| {
        if is_fortran(name) {
            return Some(library.map_or(Form::Hidden, |_| asked(index)));
        }
        let of_mpi = || of_mpi(name).map(|name| library.is_some_and(|library| library.exports(name)));
        gpu::wanted(name).or_else(of_mpi).map(shown)
    });
}

/// Shows every wrapper of MPI, to be decided on when the linker comes to it.
pub fn offer_by_asking() {
    edit(|name, index| is_of_mpi(name).then(|| asked(index)));
}

/// Hides every wrapper of MPI, and asks the linker nothing: a program may be about to ask it what went wrong.
pub fn withdraw() {
    edit(|name, _| is_of_mpi(name).then_some(Form::Hidden));
}

/// Takes Fortran's names back that were bound before the constructor ran, and that nobody else defines: a program may
/// take one for the promise of a layer.
pub fn take_back_fortran() {
    let Some(own) = own() else { return };
    let is_own =
        |address| Module::find(Which::Holding(address)).is_some_and(|holder| holder.base == own.base);
    for module in Module::all().iter().filter(|module| module.base != own.base) {
        for (name, slot) in module.imports().filter(|(name, _)| is_fortran(name)) {
            // SAFETY: a slot of a loaded module, aligned as relocations of words are.
            if is_own(unsafe { slot.read() }) && !others_define(&own, name) {
                // SAFETY: one of the module's slots; nothing is what it would have found without us.
                unsafe { module.bind(slot, std::ptr::null()) };
            }
        }
    }
}

fn asked(index: usize) -> Form {
    stub(index).map_or(Form::Hidden, Form::Indirect)
}

fn is_of_mpi(name: &CStr) -> bool {
    of_mpi(name).is_some() || is_fortran(name)
}

/// Whether it is one of Fortran's names of MPI's functions, if it is one of ours.
fn is_fortran(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.ends_with(b"_") && [&b"mpi_"[..], b"pmpi_", b"pmpir_"].iter().any(|start| name.starts_with(start))
}

fn others_define(own: &Module, name: &CStr) -> bool {
    Module::any(|module| module.base != own.base && module.defines(name))
}

fn of_mpi(name: &CStr) -> Option<&str> {
    let own = |name: &&str| {
        name.starts_with("MPI_") || name.starts_with("PMPI_") || super::fatal::NAMES.contains(name)
    };
    name.to_str().ok().filter(own)
}

/// What the linker finds under a wrapper's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Hidden,
    Plain,
    /// The resolver's address.
    Indirect(usize),
}

/// Gives every symbol the form that `wanted` says for its name and its place in the table, if it says one.
fn edit(wanted: impl Fn(&CStr, usize) -> Option<Form>) {
    let Some(module) = own() else { return };
    let Some((symbols, count)) = module.exported() else { return };
    // SAFETY: our own symbol table, which is mapped, and read-only as every symbol table is.
    let Some(_writable) = (unsafe { Writable::new(symbols as usize, count * size_of::<Elf64_Sym>()) }) else {
        return;
    };
    // SAFETY: `count` symbols are there, and live as long as we do.
    let at = |index: usize| unsafe { Symbol::new(symbols.add(index)) };
    let section = (0..count).map(|index| at(index).now().st_shndx).find(|&section| section != SHN_UNDEF);
    for index in 0..count {
        let now = at(index).now();
        if let Some(form) = wanted(module.name(&now), index) {
            at(index).change(now, shape(now, form, module.base, section.unwrap_or(1)));
        }
    }
}

/// An entry of our symbol table. Other threads' look-ups may be reading it at any moment, in the dynamic linker: each field
/// is one store, and what a look-up finds on the way is the old symbol, none, or the new one. The linker takes a value of
/// zero for no symbol at all. What is left: a thread that has found the symbol by its name, and then reads the rest of it
/// after we have hidden it. So a wrapper is hidden only where nobody can have a use for it.
struct Symbol<'a> {
    value: &'a AtomicU64,
    size: &'a AtomicU64,
    section: &'a AtomicU16,
    info: &'a AtomicU8,
    place: *mut Elf64_Sym,
}

impl Symbol<'_> {
    /// # Safety
    /// A symbol of ours, whose page stays mapped, and is writable for `change`. Nobody writes it but through this.
    unsafe fn new(place: *mut Elf64_Sym) -> Self {
        // SAFETY: as the caller says; the fields are aligned as the types are.
        unsafe {
            Symbol {
                value: AtomicU64::from_ptr(&raw mut (*place).st_value),
                size: AtomicU64::from_ptr(&raw mut (*place).st_size),
                section: AtomicU16::from_ptr(&raw mut (*place).st_shndx),
                info: AtomicU8::from_ptr(&raw mut (*place).st_info),
                place,
            }
        }
    }

    fn now(&self) -> Elf64_Sym {
        // SAFETY: neither of the two is ever written.
        let (st_name, st_other) = unsafe { ((*self.place).st_name, (*self.place).st_other) };
        Elf64_Sym {
            st_name,
            st_info: self.info.load(Relaxed),
            st_other,
            st_shndx: self.section.load(Relaxed),
            st_value: self.value.load(Acquire),
            st_size: self.size.load(Relaxed),
        }
    }

    fn change(&self, now: Elf64_Sym, new: Elf64_Sym) {
        let same = (now.st_value, now.st_shndx, now.st_info) == (new.st_value, new.st_shndx, new.st_info);
        if same {
            return;
        }
        self.value.store(0, Release);
        fence(SeqCst);
        self.size.store(new.st_size, Relaxed);
        self.info.store(new.st_info, Relaxed);
        self.section.store(new.st_shndx, Relaxed);
        self.value.store(new.st_value, Release);
    }
}

/// A symbol that is not plain keeps its value where its size was; nothing at run time reads a function's size.
fn shape(symbol: Elf64_Sym, form: Form, base: usize, section: u16) -> Elf64_Sym {
    let plain = symbol.st_shndx != SHN_UNDEF && symbol.st_info & 15 == STT_FUNC;
    let indirect = symbol.st_shndx != SHN_UNDEF && symbol.st_info & 15 == STT_GNU_IFUNC;
    let value = if plain { symbol.st_value } else { symbol.st_size };
    let binding = symbol.st_info & !15;
    let (st_value, st_size, st_shndx, st_info) = match form {
        Form::Hidden => (0, value, SHN_UNDEF, binding | STT_FUNC),
        // It gives the same function, and other threads may be linking it.
        Form::Plain if indirect => return symbol,
        Form::Plain => (value, 0, section, binding | STT_FUNC),
        Form::Indirect(resolver) => ((resolver - base) as u64, value, section, binding | STT_GNU_IFUNC),
    };
    Elf64_Sym { st_value, st_size, st_shndx, st_info, ..symbol }
}

/// The resolver of symbol `index`: one of a row of stubs that differ only in where they lie, which is all that an
/// indirect function's resolver gets to know.
#[cfg(target_arch = "x86_64")]
fn stub(index: usize) -> Option<usize> {
    (index < STUBS).then(|| (&raw const refrain_stubs) as usize + index * STUB_SIZE)
}

/// Without stubs nothing is offered, and a library that comes late is left alone.
#[cfg(not(target_arch = "x86_64"))]
fn stub(_index: usize) -> Option<usize> {
    None
}

/// Both names of every function, those of Fortran, and the few dozen other names we define.
#[cfg(target_arch = "x86_64")]
const STUBS: usize = 2 * refrain_model::FUNCTION_COUNT + super::fortran::names::NAMES.len() + 256;
#[cfg(target_arch = "x86_64")]
const STUB_SIZE: usize = 16;

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    static refrain_stubs: u8;
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.refrain_stubs, \"ax\", @progbits",
    ".balign {size}",
    ".globl refrain_stubs",
    ".hidden refrain_stubs",
    "refrain_stubs:",
    ".rept {stubs}",
    ".balign {size}",
    "lea rdi, [rip]",
    "jmp {resolve}",
    ".endr",
    ".popsection",
    size = const STUB_SIZE,
    stubs = const STUBS,
    resolve = sym resolve,
);

/// The wrapper if an MPI library with that function is loaded by now, or null: what a weak reference finds that nobody
/// defines. Runs inside the dynamic linker, which has mapped the new objects and is linking them: only looks.
#[cfg(target_arch = "x86_64")]
extern "C" fn resolve(inside_stub: usize) -> usize {
    // A panic must not pass through the dynamic linker.
    std::panic::catch_unwind(|| resolved(inside_stub)).unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
fn resolved(inside_stub: usize) -> usize {
    let index = (inside_stub - (&raw const refrain_stubs) as usize) / STUB_SIZE;
    let Some(module) = own() else { return 0 };
    let Some((symbols, _)) = module.exported().filter(|&(_, count)| index < count) else { return 0 };
    // SAFETY: one of our own symbols.
    let symbol = unsafe { Symbol::new(symbols.add(index)) }.now();
    let name = module.name(&symbol);
    let offered = match is_fortran(name) {
        true => others_define(&module, name) && library::is_there(),
        false => library::some(&module, |library| library.defines(name)),
    };
    if offered { module.base + symbol.st_size as usize } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_goes_through_all_forms_and_comes_back() {
        const WEAK: u8 = 2 << 4;
        let original = || Elf64_Sym {
            st_name: 7,
            st_info: WEAK | STT_FUNC,
            st_other: 0,
            st_shndx: 12,
            st_value: 0x1234,
            st_size: 99,
        };
        let shown = |symbol: &Elf64_Sym| (symbol.st_value, symbol.st_shndx, symbol.st_info);
        let indirect = Form::Indirect(0x10_5678);
        let (plain, hidden) = (Form::Plain, Form::Hidden);
        let forms = [plain, hidden, hidden, indirect, hidden, plain, hidden, indirect, indirect, plain];
        let mut symbol = original();
        let mut before = plain;
        for form in forms {
            let now = symbol;
            // SAFETY: a symbol of this test's.
            let place = unsafe { Symbol::new(&raw mut symbol) };
            place.change(now, shape(now, form, 0x10_0000, 12));
            let wanted = match form {
                Form::Hidden => (0, SHN_UNDEF, WEAK | STT_FUNC),
                Form::Plain if before == indirect => (0x5678, 12, WEAK | STT_GNU_IFUNC),
                Form::Plain => (0x1234, 12, WEAK | STT_FUNC),
                Form::Indirect(_) => (0x5678, 12, WEAK | STT_GNU_IFUNC),
            };
            assert_eq!(shown(&symbol), wanted, "{form:?} after {before:?}");
            before = form;
        }
        assert_eq!(symbol.st_name, original().st_name);
    }
}
