//! C++'s operators `new` and `delete` of allocators that have their own (tcmalloc, jemalloc, mimalloc): they pass `malloc`
//! by. Those of the C++ library do not, and are left alone.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::live::{allocated, released, tracking};
use crate::process::next;

const COUNT: usize = 20;

/// C++'s operators of an allocator that has its own; null where they are not redirected.
static OPERATORS: [AtomicPtr<()>; COUNT] = [const { AtomicPtr::new(null_mut()) }; COUNT];

/// `new` first. All have at most three arguments: the size or the memory first, and then words that we only pass on.
const NAMES: [&CStr; COUNT] = [
    c"_Znwm",
    c"_Znam",
    c"_ZnwmRKSt9nothrow_t",
    c"_ZnamRKSt9nothrow_t",
    c"_ZnwmSt11align_val_t",
    c"_ZnamSt11align_val_t",
    c"_ZnwmSt11align_val_tRKSt9nothrow_t",
    c"_ZnamSt11align_val_tRKSt9nothrow_t",
    c"_ZdlPv",
    c"_ZdaPv",
    c"_ZdlPvm",
    c"_ZdaPvm",
    c"_ZdlPvRKSt9nothrow_t",
    c"_ZdaPvRKSt9nothrow_t",
    c"_ZdlPvSt11align_val_t",
    c"_ZdaPvSt11align_val_t",
    c"_ZdlPvmSt11align_val_t",
    c"_ZdaPvmSt11align_val_t",
    c"_ZdlPvSt11align_val_tRKSt9nothrow_t",
    c"_ZdaPvSt11align_val_tRKSt9nothrow_t",
];

/// Whoever has this one has them all.
pub const SIGN: &CStr = NAMES[0];

type New = unsafe extern "C-unwind" fn(usize, usize, usize) -> *mut c_void;
type Delete = unsafe extern "C-unwind" fn(*mut c_void, usize, usize);

const HOOKS: [*const c_void; COUNT] = [
    new::<0> as *const c_void,
    new::<1> as *const c_void,
    new::<2> as *const c_void,
    new::<3> as *const c_void,
    new::<4> as *const c_void,
    new::<5> as *const c_void,
    new::<6> as *const c_void,
    new::<7> as *const c_void,
    delete::<8> as *const c_void,
    delete::<9> as *const c_void,
    delete::<10> as *const c_void,
    delete::<11> as *const c_void,
    delete::<12> as *const c_void,
    delete::<13> as *const c_void,
    delete::<14> as *const c_void,
    delete::<15> as *const c_void,
    delete::<16> as *const c_void,
    delete::<17> as *const c_void,
    delete::<18> as *const c_void,
    delete::<19> as *const c_void,
];

/// Looks up those that others call, if `wanted` says so of their addresses.
pub fn resolve(wanted: impl Fn(usize) -> bool) {
    for (slot, name) in OPERATORS.iter().zip(NAMES) {
        let found = next::first(name).unwrap_or(null_mut());
        if wanted(found as usize) {
            slot.store(found.cast(), Release);
        }
    }
}

/// What stands in for the operator of that name; none where it was not looked up.
pub fn redirected(name: &CStr) -> Option<*const c_void> {
    let number = NAMES.iter().position(|known| *known == name)?;
    (!OPERATORS[number].load(Relaxed).is_null()).then(|| HOOKS[number])
}

/// It may throw: nothing here needs to be undone then.
unsafe extern "C-unwind" fn new<const N: usize>(size: usize, second: usize, third: usize) -> *mut c_void {
    // SAFETY: `resolve` stored this operator before any call was redirected to here.
    let real: New = unsafe { std::mem::transmute(OPERATORS[N].load(Relaxed)) };
    // SAFETY: the program's own call, passed on. Arguments that the operator does not have are in registers.
    let memory = unsafe { real(size, second, third) };
    if tracking() {
        allocated(memory, size);
    }
    memory
}

unsafe extern "C-unwind" fn delete<const N: usize>(memory: *mut c_void, second: usize, third: usize) {
    if tracking() {
        released(memory);
    }
    // SAFETY: `resolve` stored this operator before any call was redirected to here.
    let real: Delete = unsafe { std::mem::transmute(OPERATORS[N].load(Relaxed)) };
    // SAFETY: the program's own call, passed on. Arguments that the operator does not have are in registers.
    unsafe { real(memory, second, third) }
}
