//! References to more bytes than a register has: a row of pieces of 64 bytes, then halves of what is left. So blocks of any
//! length are made of seven kinds of references.

use std::sync::atomic::Ordering::Relaxed;

use super::kinds::{PIECE, load, store};
use super::own::{BUFFER, Record, own};
use super::threads::turn_now;

/// Calls `each` with how far each piece is from the start, and its size.
fn pieces(length: u64, mut each: impl FnMut(u64, u64)) {
    let (mut at, mut size) = (0, 64);
    while at < length {
        while length - at < size {
            size /= 2;
        }
        each(at, size);
        at += size;
    }
}

/// Notes a record as the entry points do.
fn note(address: u64, word: u64) {
    let own = own();
    if own.next.load(Relaxed) == 0 {
        turn_now();
        if own.next.load(Relaxed) == 0 {
            return;
        }
    }
    let next = own.next.fetch_add(size_of::<Record>(), Relaxed);
    // SAFETY: the place of this thread's next record.
    unsafe { (next as *mut Record).write(Record { address, word }) };
    if (next + size_of::<Record>()).is_multiple_of(BUFFER) {
        turn_now();
    }
}

pub extern "C" fn loaded(from: u64, length: u64, _: u64, pc: u64) {
    pieces(length, |at, size| note(from + at, load(size) | PIECE | pc));
}

pub extern "C" fn stored(to: u64, length: u64, _: u64, pc: u64) {
    pieces(length, |at, size| note(to + at, store(size) | PIECE | pc));
}

pub extern "C" fn filled(to: u64, _: u64, length: u64, pc: u64) {
    stored(to, length, 0, pc);
}

pub extern "C" fn copied(to: u64, from: u64, length: u64, pc: u64) {
    pieces(length, |at, size| {
        note(from + at, load(size) | PIECE | pc);
        note(to + at, store(size) | PIECE | pc);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_pieces() {
        for (length, expected) in [
            (0, vec![]),
            (1, vec![(0, 1)]),
            (64, vec![(0, 64)]),
            (135, vec![(0, 64), (64, 64), (128, 4), (132, 2), (134, 1)]),
        ] {
            let mut found = Vec::new();
            pieces(length, |at, size| found.push((at, size)));
            assert_eq!(found, expected);
        }
    }
}
