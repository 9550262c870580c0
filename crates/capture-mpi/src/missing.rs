//! Calls of the program that no record can be made of, and why.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use refrain_tracefile::part::Lost;

use crate::endings;

/// How many calls of MPI the program has left by a jump.
static JUMPS: AtomicU64 = AtomicU64::new(0);
/// One of these jumps did not come from a function that MPI had called, but out of MPI itself.
static TORN_OUT: AtomicBool = AtomicBool::new(false);
/// How many calls by Fortran's names are missing: the layer called no function of C that tells what they were.
static UNSEEN: AtomicU64 = AtomicU64::new(0);

/// The program has left so many calls by a jump.
#[cold]
pub fn count_jumps(calls: u64) {
    JUMPS.fetch_add(calls, Relaxed);
    endings::lose(Lost::Jumped);
}

pub fn jumps() -> u64 {
    JUMPS.load(Relaxed)
}

/// It has done so in the midst of MPI.
pub fn tear_out() {
    TORN_OUT.store(true, Relaxed);
}

pub fn torn_out() -> bool {
    TORN_OUT.load(Relaxed)
}

/// A call by one of Fortran's names is missing.
#[cfg(target_arch = "x86_64")]
#[cold]
pub fn count_unseen() {
    UNSEEN.fetch_add(1, Relaxed);
}

pub fn unseen() -> u64 {
    UNSEEN.load(Relaxed)
}
