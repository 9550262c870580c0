//! Makes our wrappers visible exactly where the program's MPI library has the function. A program may take the presence
//! of `MPI_Isend_c` for a promise (mpi4py does), and we can keep it only as far as its library does. So with the functions
//! of GPU runtimes.
//!
//! The dynamic linker looks names up in our symbol table in memory and passes over symbols that are undefined there, so
//! a wrapper is withdrawn by making its entry undefined and offered again by undoing that.
//!
//! While a library is being loaded that may bring MPI with it, nobody knows yet what to offer: the new objects are
//! mapped and linked in one go. For that time the wrappers are *indirect functions*: the linker asks a resolver of ours
//! for the address when it comes to link them, and by then the MPI library can be looked at.
//!
//! Limit: symbols that were bound before our constructor ran (weak references of a program linked to bind at once) keep
//! what they found.

use std::ffi::CStr;

use libc::Elf64_Sym;
use refrain_mpi::Library;

use crate::elf::{Module, Which, Writable};
use crate::memory::gpu;

const SHN_UNDEF: u16 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;

/// Shows exactly the wrappers of the functions `library` has; none without a library.
pub fn offer(library: Option<&Library>) {
    edit(|name, _| {
        let of_mpi = || of_mpi(name).map(|name| library.is_some_and(|library| library.exports(name)));
        gpu::wanted(name).or_else(of_mpi).map(|wanted| if wanted { Form::Plain } else { Form::Hidden })
    });
}

/// Shows every wrapper of MPI, to be decided on when the linker comes to it.
pub fn offer_by_asking() {
    edit(|name, index| of_mpi(name).map(|_| stub(index).map_or(Form::Hidden, Form::Indirect)));
}

/// Hides every wrapper of MPI, and asks the linker nothing: a program may be about to ask it what went wrong.
pub fn withdraw() {
    edit(|name, _| of_mpi(name).map(|_| Form::Hidden));
}

fn of_mpi(name: &CStr) -> Option<&str> {
    name.to_str().ok().filter(|name| name.starts_with("MPI_") || name.starts_with("PMPI_"))
}

/// What the linker finds under a wrapper's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Hidden,
    Plain,
    /// The resolver's address.
    Indirect(usize),
}

fn own() -> Option<Module> {
    Module::find(Which::Holding(offer as *const () as usize))
}

/// Gives every symbol the form that `wanted` says for its name and its place in the table, if it says one.
fn edit(wanted: impl Fn(&CStr, usize) -> Option<Form>) {
    let Some(module) = own() else { return };
    let Some((symbols, count)) = module.exported() else { return };
    // SAFETY: our own symbol table, which is mapped, and read-only as every symbol table is.
    let Some(_writable) = (unsafe { Writable::new(symbols as usize, count * size_of::<Elf64_Sym>()) }) else {
        return;
    };
    // SAFETY: `count` symbols are there, and nobody else writes; the linker's look-ups read single fields.
    let symbols = unsafe { std::slice::from_raw_parts_mut(symbols, count) };
    let section = symbols.iter().map(|symbol| symbol.st_shndx).find(|&section| section != SHN_UNDEF);
    for (index, symbol) in symbols.iter_mut().enumerate() {
        if let Some(form) = wanted(module.name(symbol), index) {
            shape(symbol, form, module.base, section.unwrap_or(1));
        }
    }
}

/// A symbol that is not plain keeps its value where its size was; nothing at run time reads a function's size.
fn shape(symbol: &mut Elf64_Sym, form: Form, base: usize, section: u16) {
    let plain = symbol.st_shndx != SHN_UNDEF && symbol.st_info & 15 == STT_FUNC;
    let value = if plain { symbol.st_value } else { symbol.st_size };
    let binding = symbol.st_info & !15;
    (symbol.st_value, symbol.st_size, symbol.st_shndx, symbol.st_info) = match form {
        Form::Hidden => (0, value, SHN_UNDEF, binding | STT_FUNC),
        Form::Plain => (value, 0, section, binding | STT_FUNC),
        Form::Indirect(resolver) => ((resolver - base) as u64, value, section, binding | STT_GNU_IFUNC),
    };
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

/// Both names of every function, and the few dozen other names we define.
#[cfg(target_arch = "x86_64")]
const STUBS: usize = 2 * crate::wrappers::FUNCTIONS + 256;
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
    let index = (inside_stub - (&raw const refrain_stubs) as usize) / STUB_SIZE;
    let Some(module) = own() else { return 0 };
    let Some((symbols, _)) = module.exported().filter(|&(_, count)| index < count) else { return 0 };
    // SAFETY: one of our own symbols.
    let symbol = unsafe { &*symbols.add(index) };
    let name = module.name(symbol);
    let offered = some_library(&module, |library| library.defines(name));
    if offered { module.base + symbol.st_size as usize } else { 0 }
}

/// Whether an MPI library is loaded. Much cheaper than finding it, and asks nothing of the linker.
pub fn library_is_there() -> bool {
    own().is_some_and(|own| some_library(&own, |_| true))
}

fn some_library(own: &Module, wanted: impl Fn(&Module) -> bool) -> bool {
    Module::any(|module| {
        module.base != own.base && refrain_mpi::is_library(|mark| module.defines(mark)) && wanted(module)
    })
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
        let forms = [Form::Plain, Form::Hidden, Form::Hidden, indirect, Form::Hidden, indirect, Form::Plain];
        let mut symbol = original();
        for form in forms {
            shape(&mut symbol, form, 0x10_0000, 12);
            let wanted = match form {
                Form::Hidden => (0, SHN_UNDEF, WEAK | STT_FUNC),
                Form::Plain => (0x1234, 12, WEAK | STT_FUNC),
                Form::Indirect(_) => (0x5678, 12, WEAK | STT_GNU_IFUNC),
            };
            assert_eq!(shown(&symbol), wanted, "{form:?}");
        }
        assert_eq!(symbol.st_name, original().st_name);
    }
}
