//! The program's MPI library, from the moment at which it is there.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use refrain_guest::objects::elf::{Module, Which};
use refrain_guest::process::say::say;
use refrain_mpi::Library;

use crate::config::Config;

/// Written once: in the constructor, or when the program loads one later.
static LIBRARY: OnceLock<Library> = OnceLock::new();
/// There is no MPI library yet, and one that comes is to be traced.
static WAITING: AtomicBool = AtomicBool::new(false);

/// From here on MPI may come. Called by the constructor.
pub fn wait() {
    WAITING.store(true, Release);
}

#[inline]
pub fn is_waited_for() -> bool {
    WAITING.load(Acquire)
}

/// The first stays.
pub fn set(library: Library) -> bool {
    LIBRARY.set(library).is_ok()
}

/// As far as it is known: nothing is looked for.
pub fn known() -> Option<&'static Library> {
    LIBRARY.get()
}

/// The program's MPI library, looked for where it may have come since the last time. Not for the path of every call.
pub fn library() -> Option<&'static Library> {
    if LIBRARY.get().is_none() && is_waited_for() && is_there() {
        let first = set(Library::find()?);
        WAITING.store(false, Release);
        // Where a variable means nothing to us the constructor kept silent, as in any process without MPI.
        if let (true, Err(unknown)) = (first, Config::read(|variable| std::env::var_os(variable))) {
            say(&format!("not tracing: {unknown}"));
        }
    }
    LIBRARY.get()
}

/// The object that this code is part of.
pub fn own() -> Option<Module> {
    Module::find(Which::Holding(own as *const () as usize))
}

/// Whether an MPI library is loaded. Much cheaper than finding it, and asks nothing of the linker.
pub fn is_there() -> bool {
    own().is_some_and(|own| some(&own, |_| true))
}

/// Whether one is for which `wanted` is true.
pub fn some(own: &Module, wanted: impl Fn(&Module) -> bool) -> bool {
    Module::any(|module| {
        module.base != own.base && refrain_mpi::is_library(|mark| module.defines(mark)) && wanted(module)
    })
}
