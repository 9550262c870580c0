//! Makes our wrappers invisible where the program's MPI library lacks the function. A program may take the presence of
//! `MPI_Isend_c` for a promise (mpi4py does), and we can keep it only as far as its library does. So with the functions of
//! GPU runtimes.
//!
//! The dynamic linker looks names up in our symbol table in memory and passes over symbols that are undefined there, so
//! a wrapper is withdrawn by making its entry undefined and offered again by undoing that.
//!
//! Limit: symbols that were bound before our constructor ran (weak references of a program linked to bind at once) keep
//! what they found.

use std::ffi::CStr;

use libc::Elf64_Sym;
use refrain_mpi::Library;

use crate::elf::{Module, Which, Writable};
use crate::memory::gpu;

const SHN_UNDEF: u16 = 0;

/// Shows exactly the wrappers of the functions `library` has; none without a library. May be called again when a
/// library comes in later.
pub fn offer(library: Option<&Library>) {
    let wanted = |name: &CStr| {
        gpu::wanted(name).or_else(|| {
            let name = name.to_str().ok()?;
            let of_mpi = name.starts_with("MPI_") || name.starts_with("PMPI_");
            of_mpi.then(|| library.is_some_and(|library| library.exports(name)))
        })
    };
    let Some(module) = Module::find(Which::Holding(offer as *const () as usize)) else { return };
    let Some((symbols, count)) = module.exported() else { return };
    // SAFETY: our own symbol table, which is mapped, and read-only as every symbol table is.
    let Some(_writable) = (unsafe { Writable::new(symbols as usize, count * size_of::<Elf64_Sym>()) }) else {
        return;
    };
    // SAFETY: `count` symbols are there, and nobody else writes; the linker's look-ups read single fields.
    let symbols = unsafe { std::slice::from_raw_parts_mut(symbols, count) };
    let section = symbols.iter().map(|symbol| symbol.st_shndx).find(|&section| section != SHN_UNDEF);
    for symbol in symbols {
        let Some(wanted) = wanted(module.name(symbol)) else { continue };
        match (symbol.st_shndx != SHN_UNDEF, wanted) {
            (true, false) => hide(symbol),
            (false, true) => show(symbol, section.unwrap_or(1)),
            _ => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_symbol_comes_back() {
        let mut symbol =
            Elf64_Sym { st_name: 7, st_info: 18, st_other: 0, st_shndx: 12, st_value: 0x1234, st_size: 99 };
        hide(&mut symbol);
        assert_eq!((symbol.st_value, symbol.st_shndx), (0, SHN_UNDEF));
        show(&mut symbol, 12);
        assert_eq!((symbol.st_value, symbol.st_shndx, symbol.st_name), (0x1234, 12, 7));
    }
}
