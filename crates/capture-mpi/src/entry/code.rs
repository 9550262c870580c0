//! Whose code lies where.

use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use refrain_guest::objects::loaded::Changes;
use refrain_mpi::Owner;

use crate::library::library;

/// The loaded code, and which of it is MPI's: made when first needed, and again when a caller is in none of it and
/// libraries came or went.
static CODE: AtomicPtr<Code> = AtomicPtr::new(null_mut());

struct Code {
    changes: Changes,
    objects: Vec<(Range<usize>, Owner)>,
}

/// Whether that code is MPI's own, or ours.
pub fn is_mpi(address: usize) -> bool {
    owner(address) == Owner::Mpi
}

/// Whose code that is.
pub fn owner(address: usize) -> Owner {
    let find = |table: &Code| {
        let holding = |(memory, _): &&(Range<usize>, Owner)| memory.contains(&address);
        table.objects.iter().find(holding).map(|&(_, owner)| owner)
    };
    // SAFETY: null, or a table that was leaked below.
    let known = unsafe { CODE.load(Acquire).as_ref() };
    if let Some(owner) = known.and_then(find) {
        return owner;
    }
    let Some(library) = library() else { return Owner::Mpi };
    let changes = Changes::now();
    if known.is_some_and(|known| known.changes == changes) {
        // Code in no object was made at run time, and not by MPI.
        return Owner::Other;
    }
    // Leaked, since another thread may be reading it: one for each time that libraries came or went before new code
    // called from a callback.
    let table: &Code = Box::leak(Box::new(Code { changes, objects: library.code() }));
    CODE.store(std::ptr::from_ref(table).cast_mut(), Release);
    find(table).unwrap_or(Owner::Other)
}
