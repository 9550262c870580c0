//! What the user is told.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

use refrain_process::apart::apart;

/// This process's number among those that run together, or -1.
static RANK: AtomicI64 = AtomicI64::new(-1);

/// For messages; known once the processes know of each other.
pub fn set_rank(rank: i64) {
    RANK.store(rank, Relaxed);
}

/// ` on rank N`, where that is known.
pub fn on_rank() -> String {
    match RANK.load(Relaxed) {
        rank @ 0.. => format!(" on rank {rank}"),
        _ => String::new(),
    }
}

/// One line on stderr, in one write, so that processes do not interleave.
pub fn say(message: &str) {
    say_in_pieces(&[message]);
}

/// The same without putting them together, which would take memory. The system call itself: the C library's function is
/// one at which a thread can be cancelled.
pub fn say_in_pieces(pieces: &[&str]) {
    const MOST: usize = 8;
    let mut list = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST];
    let all = ["refrain: "].iter().chain(&pieces[..pieces.len().min(MOST - 2)]).chain(&["\n"]);
    let mut count = 0;
    for (place, piece) in list.iter_mut().zip(all) {
        *place = libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() };
        count += 1;
    }
    // SAFETY: so many pieces, which live through the call and are only read. Where stderr is closed the line is lost, as
    // it should be.
    apart(|| unsafe { libc::syscall(libc::SYS_writev, libc::STDERR_FILENO, list.as_ptr(), count) });
}
