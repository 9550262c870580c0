//! The kernel's barrier on all cores that run this process, on behalf of the one thread that asks.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use crate::process::filter;

/// A page whose rights change. Whoever asks holds the lock.
static PAGE: Page = Page([const { AtomicU64::new(0) }; 512]);

#[repr(align(4096))]
struct Page([AtomicU64; 512]);

const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;

fn ask(command: libc::c_int) -> bool {
    // SAFETY: takes two numbers, touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0) == 0 }
}

pub fn register() -> bool {
    ask(REGISTER_PRIVATE_EXPEDITED)
}

/// Where whoever asks for that may be killed: to take a right away from a page, a kernel of this machine interrupts all cores that
/// run this process.
pub fn run() -> bool {
    if cfg!(target_arch = "x86_64") && filter::came() { by_a_page() } else { ask(PRIVATE_EXPEDITED) }
}

fn by_a_page() -> bool {
    let start = (&raw const PAGE).cast_mut().cast();
    let protect = |rights| {
        // SAFETY: a page that is ours alone, and that has this right when it is written to.
        unsafe { libc::mprotect(start, size_of::<Page>(), rights) == 0 }
    };
    let may = protect(libc::PROT_READ | libc::PROT_WRITE);
    PAGE.0[0].fetch_add(1, SeqCst);
    may && protect(libc::PROT_READ)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_page_is_a_barrier_again_and_again() {
        assert!((0..3).all(|_| super::by_a_page()));
    }
}
