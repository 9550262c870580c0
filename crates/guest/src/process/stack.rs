//! The calling thread's stack.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::null_mut;

thread_local! {
    /// The bounds of this thread's stack, or (0, 0) until asked for.
    static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// An address that no other living thread has. Every thread has it from its first instruction on, and nothing is touched.
#[inline]
pub fn address() -> usize {
    STACK.with(|cell| &raw const *cell as usize)
}

/// Its bounds; empty where the system does not say. Asked for once a thread: for the main thread the C library reads a
/// file of the kernel's.
pub fn current() -> Range<usize> {
    let (low, high) = STACK.with(|cell| {
        if cell.get().1 == 0 {
            cell.set(ask().unwrap_or((1, 1)));
        }
        cell.get()
    });
    low..high
}

fn ask() -> Option<(usize, usize)> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: fills in `attributes` when it returns 0.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut low, mut size) = (null_mut(), 0);
    // SAFETY: `attributes` was filled in; both results are places of ours.
    let code = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size) };
    // SAFETY: filled in above, used no more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (code == 0).then_some((low as usize, low as usize + size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_variable_is_on_the_stack_and_a_box_is_not() {
        let (local, boxed) = (5, Box::new(5));
        assert!(current().contains(&(&raw const local as usize)));
        assert!(!current().contains(&(&raw const *boxed as usize)));
        let other = std::thread::spawn(current).join().unwrap();
        assert!(!other.contains(&(&raw const local as usize)) && !other.is_empty());
    }
}
