//! Functions of the program that MPI calls: reductions, copies and deletions of attributes, error handlers and the like.
//!
//! What such a function calls is the program's own, although the thread is inside MPI. Where a call returns to does not
//! tell: a function that ends in `return MPI_Comm_free(comm);` ends in a jump when it is optimised, and that call returns
//! into MPI. So MPI is given one of the functions below in place of each of the program's. It marks the thread as being
//! in the program, and calls the program's function with the words that it was called with.
//!
//! No MPI library hands a callback back to the program, so nobody can tell the difference.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use refrain_guest::threads::marks;
use refrain_model::{CType, Function};

use super::code::is_mpi;
use crate::library::library;
use crate::missing;

/// The program's functions that MPI was given a function of ours for; 0 where there is none.
static CALLBACKS: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];

/// So many different functions have one of ours. Those beyond go to MPI as they are: what they call is then told by
/// where it returns to.
const MOST: usize = 256;

/// More words than any callback takes: Fortran's `copy` of an attribute takes seven.
const WORDS: usize = 8;

/// A callback takes integers and pointers, a word each, and returns an integer or nothing. The words that it does not
/// take are whatever lies in registers and on the stack of who calls; the stack goes on at least so far.
type Callback = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> usize;

/// Puts functions of ours where `args` of that function have some of the program's.
pub fn stand_in_for(function: &Function, args: &mut [usize]) {
    for (param, arg) in function.params.iter().zip(args) {
        if matches!(param.ctype, CType::Function(_))
            && let Some(slot) = known(*arg).or_else(|| new(*arg))
        {
            *arg = STAND_INS[slot / ROW][slot % ROW] as usize;
        }
    }
}

/// A function of MPI's own, such as `MPI_COMM_DUP_FN`: a small number, an address in MPI, or one in an executable that
/// is not position-independent and stands for one in MPI.
fn is_predefined(function: usize) -> bool {
    /// No code lies below.
    const LOWEST: usize = 4096;
    if function < LOWEST || is_mpi(function) {
        return true;
    }
    let abi = library().and_then(|library| library.abi().ok());
    abi.is_some_and(|abi| {
        abi.iter().any(|(constant, value)| {
            constant.kind == refrain_mpi::Kind::Function && value as usize == function
        })
    })
}

/// The place of that function in the table, which has no gaps; `None` where it has none.
fn known(function: usize) -> Option<usize> {
    let mut slots = CALLBACKS.iter().map(|slot| slot.load(Acquire)).take_while(|&known| known != 0);
    slots.position(|known| known == function)
}

/// A place for it, which it keeps, if it is the program's.
#[cold]
fn new(function: usize) -> Option<usize> {
    if is_predefined(function) {
        return None;
    }
    CALLBACKS.iter().position(|slot| {
        let known = slot.compare_exchange(0, function, AcqRel, Acquire);
        known == Ok(0) || known == Err(function)
    })
}

/// Marks the thread as being in the program, until dropped.
struct InProgram(u32);

impl InProgram {
    fn enter() -> InProgram {
        let depth = marks::depth();
        // Outside of every call all is the program's anyway, and a call of ours is nobody's business.
        if depth != 0 && depth & marks::BUSY == 0 {
            marks::set_depth(depth | marks::PROGRAM);
        }
        InProgram(depth)
    }
}

impl Drop for InProgram {
    fn drop(&mut self) {
        // Calls that it left by a jump are not among those that the thread is in.
        let left = (marks::depth() & marks::LEVELS).saturating_sub(self.0 & marks::LEVELS);
        if left != 0 {
            missing::count_jumps(left.into());
        }
        marks::set_depth(self.0);
    }
}

/// # Safety
/// MPI calls the callback in that slot with these words.
#[inline(never)]
unsafe fn call(slot: usize, [a, b, c, d, e, f, g, h]: [usize; WORDS]) -> usize {
    let _in_program = InProgram::enter();
    // SAFETY: the program gave MPI this function to be called, and `stand_in_for` put it here before MPI knew of ours.
    let callback = unsafe { std::mem::transmute::<usize, Callback>(CALLBACKS[slot].load(Acquire)) };
    // SAFETY: as the caller says; words that the callback does not take it does not look at.
    unsafe { callback(a, b, c, d, e, f, g, h) }
}

unsafe extern "C-unwind" fn stand_in<const SLOT: usize>(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    g: usize,
    h: usize,
) -> usize {
    // SAFETY: MPI was given this function in place of the one in that slot.
    unsafe { call(SLOT, [a, b, c, d, e, f, g, h]) }
}

const ROW: usize = 16;

macro_rules! stand_ins {
    ($($row:literal)*) => { [$(stand_ins!(@row $row, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)),*] };
    (@row $row:literal, $($place:literal)*) => { [$(stand_in::<{ $row * ROW + $place }>),*] };
}

static STAND_INS: [[Callback; ROW]; MOST / ROW] = stand_ins!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    static SEEN: AtomicU32 = AtomicU32::new(0);

    extern "C-unwind" fn seven(
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        e: usize,
        f: usize,
        g: usize,
    ) -> usize {
        SEEN.store(marks::depth(), Relaxed);
        [a, b, c, d, e, f, g].iter().fold(0, |number, digit| number * 10 + digit)
    }

    #[test]
    fn words_and_result_pass_through_and_the_thread_is_in_the_program_meanwhile() {
        let slot = CALLBACKS
            .iter()
            .position(|slot| slot.compare_exchange(0, seven as *const () as usize, AcqRel, Acquire).is_ok())
            .unwrap();
        assert_eq!((known(seven as *const () as usize), known(1)), (Some(slot), None));
        marks::set_depth(3);
        // SAFETY: a callback of seven words.
        let result = unsafe { STAND_INS[slot / ROW][slot % ROW](1, 2, 3, 4, 5, 6, 7, 8) };
        assert_eq!((result, SEEN.load(Relaxed)), (1_234_567, 3 | marks::PROGRAM));
        assert_eq!(marks::depth(), 3);
        marks::set_depth(0);
        // SAFETY: as above.
        unsafe { STAND_INS[slot / ROW][slot % ROW](1, 2, 3, 4, 5, 6, 7, 8) };
        assert_eq!((SEEN.load(Relaxed), marks::depth()), (0, 0));
    }

    #[test]
    fn stand_ins_are_all_different() {
        let mut all: Vec<usize> = STAND_INS.iter().flatten().map(|&f| f as usize).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), MOST);
    }
}
