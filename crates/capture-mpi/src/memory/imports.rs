//! Stands before the program's own calls of `mmap`, `munmap` and `mremap`, by changing where they go.
//!
//! Not by defining these names, as for `malloc`: communication libraries (UCX, and Open MPI's patcher) find the first
//! `munmap` of the process and overwrite its code, to learn when registered memory goes away. The first must be the C
//! library's, as without us; they would otherwise patch ours, and miss every mapping that `free` gives back.

use std::ffi::{CStr, c_void};

use super::{mmap, mremap, munmap};
use crate::elf::{Module, Which, Writable};

/// Redirects the program's calls to ours. Those of its libraries stay as they are.
pub fn redirect() {
    let Some(program) = Module::find(Which::Program) else { return };
    for (name, slot) in program.imports() {
        let Some(ours) = replacement(name) else { continue };
        let read_only = program.read_only.contains(&(slot as usize));
        // SAFETY: a part of the program that is mapped, and that its loader made read-only.
        let writable = read_only.then(|| unsafe { Writable::new(slot as usize, size_of::<usize>()) });
        if let Some(None) = writable {
            continue;
        }
        // SAFETY: a slot for this function's address, aligned as relocations of words are; no other thread runs yet.
        unsafe { slot.write(ours as usize) };
    }
}

fn replacement(name: &CStr) -> Option<*const c_void> {
    match name.to_bytes() {
        // One function by two names where files are addressed with 64 bits.
        b"mmap" | b"mmap64" => Some(mmap as *const c_void),
        b"munmap" => Some(munmap as *const c_void),
        b"mremap" => Some(mremap as *const c_void),
        _ => None,
    }
}
