//! Read and written on every call. A library's thread-locals cost a function call each time, since it might be loaded
//! late; a preloaded library never is, so these lie at a fixed distance from the thread pointer.

pub use imp::*;

/// How a wrapper was entered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Entry {
    /// Where on the stack the address lies that it returns to; 0 where that is not known.
    pub slot: usize,
    /// That address.
    pub caller: usize,
}

/// The call of MPI's layer for Fortran that a thread is in.
#[derive(Debug, Clone, Copy)]
pub struct Layer {
    pub entry: Entry,
    pub level: u32,
    /// Which function of C the layer is to call.
    pub function: usize,
    /// It may make no such call.
    pub alone: bool,
}

impl Layer {
    /// No call that anybody could be in.
    pub const NONE: Layer = Layer {
        entry: Entry { slot: 0, caller: 0 },
        level: u32::MAX,
        function: u32::MAX as usize >> 1,
        alone: false,
    };
}

#[cfg(target_arch = "x86_64")]
mod imp {
    use std::arch::{asm, global_asm};
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::{Entry, Layer};
    use crate::recorder::stream::Stream;
    use crate::stacks::Place;

    global_asm!(
        ".pushsection .tbss.refrain_own, \"awT\", @nobits",
        ".globl refrain_own",
        ".hidden refrain_own",
        ".type refrain_own, @object",
        ".size refrain_own, 96",
        ".balign 8",
        "refrain_own:",
        ".zero 16",
        ".globl refrain_caller",
        ".hidden refrain_caller",
        ".type refrain_caller, @object",
        ".size refrain_caller, 80",
        "refrain_caller:",
        ".zero 80",
        ".popsection",
    );

    const DEPTH: usize = 0;
    const ASSIGNED: usize = 4;
    const STREAM: usize = 8;
    /// Has a name of its own, since `wrappers::entry` writes it and the two words after it; and three others, at
    /// `NESTED_AFTER_CALLER`, where the thread is in a call already.
    const CALLER: usize = 16;
    const SLOT: usize = 24;
    const POINTER: usize = 32;
    const INSIDE: usize = 40;
    const NESTED_CALLER: usize = 48;
    const NESTED_SLOT: usize = 56;
    const NESTED_POINTER: usize = 64;
    const LAYER_SLOT: usize = 72;
    const LAYER_CALLER: usize = 80;
    const EXPECTED: usize = 88;
    /// Above a function's position.
    const ALONE: usize = 1 << 31;
    pub const CALLER_AFTER_DEPTH: usize = CALLER - DEPTH;
    pub const NESTED_AFTER_CALLER: usize = NESTED_CALLER - CALLER;

    /// A field of this thread's, as a register of that width.
    macro_rules! field {
        ($read:ident, $write:ident, $type:ty, $width:literal, $register:literal) => {
            #[inline]
            fn $read<const AT: usize>() -> $type {
                let word: $type;
                // SAFETY: reads this thread's own variable, defined above; the loader put its distance into our table.
                unsafe {
                    asm!(
                        "mov {at}, qword ptr [rip + refrain_own@GOTTPOFF]",
                        concat!("mov {word", $register, "}, ", $width, " ptr fs:[{at} + {field}]"),
                        at = out(reg) _,
                        word = out(reg) word,
                        field = const AT,
                        options(nostack, readonly, preserves_flags),
                    );
                }
                word
            }

            #[inline]
            fn $write<const AT: usize>(word: $type) {
                // SAFETY: as above, and nobody but this thread refers to it.
                unsafe {
                    asm!(
                        "mov {at}, qword ptr [rip + refrain_own@GOTTPOFF]",
                        concat!("mov ", $width, " ptr fs:[{at} + {field}], {word", $register, "}"),
                        at = out(reg) _,
                        word = in(reg) word,
                        field = const AT,
                        options(nostack, preserves_flags),
                    );
                }
            }
        };
    }

    field!(read, write, u32, "dword", ":e");
    field!(read_word, write_word, usize, "qword", "");

    #[inline]
    pub fn depth() -> u32 {
        read::<DEPTH>()
    }

    #[inline]
    pub fn set_depth(depth: u32) {
        write::<DEPTH>(depth);
    }

    pub fn assigned() -> u32 {
        read::<ASSIGNED>()
    }

    pub fn assign(number: u32) {
        write::<ASSIGNED>(number);
    }

    /// Null until this thread calls MPI.
    #[inline]
    pub fn stream() -> *const Stream {
        read_word::<STREAM>() as *const Stream
    }

    pub fn set_stream(stream: *const Stream) {
        write_word::<STREAM>(stream as usize);
    }

    pub fn entry() -> Entry {
        Entry { slot: read_word::<SLOT>(), caller: read_word::<CALLER>() }
    }

    pub fn nested() -> Entry {
        Entry { slot: read_word::<NESTED_SLOT>(), caller: read_word::<NESTED_CALLER>() }
    }

    pub fn nested_is_outermost() {
        write_word::<CALLER>(read_word::<NESTED_CALLER>());
        write_word::<SLOT>(read_word::<NESTED_SLOT>());
        write_word::<POINTER>(read_word::<NESTED_POINTER>());
    }

    /// Puts a caller, its slot and its frame pointer there, and returns what stood there.
    #[inline]
    pub fn replace_entry([caller, slot, pointer]: [usize; 3]) -> [usize; 3] {
        let old = [read_word::<CALLER>(), read_word::<SLOT>(), read_word::<POINTER>()];
        write_word::<CALLER>(caller);
        write_word::<SLOT>(slot);
        write_word::<POINTER>(pointer);
        old
    }

    #[inline]
    pub fn layer() -> Layer {
        let word = read_word::<EXPECTED>();
        Layer {
            entry: Entry { slot: read_word::<LAYER_SLOT>(), caller: read_word::<LAYER_CALLER>() },
            level: (word >> 32) as u32,
            function: word & (ALONE - 1),
            alone: word & ALONE != 0,
        }
    }

    #[inline]
    pub fn set_layer(layer: Layer) {
        let alone = if layer.alone { ALONE } else { 0 };
        write_word::<LAYER_SLOT>(layer.entry.slot);
        write_word::<LAYER_CALLER>(layer.entry.caller);
        write_word::<EXPECTED>((layer.level as usize) << 32 | alone | layer.function);
    }

    /// Where the wrapper was called that this thread entered last while it was in no other.
    #[inline]
    pub fn place() -> Place {
        Place { slot: read_word::<SLOT>(), pointer: read_word::<POINTER>() }
    }

    #[inline]
    pub fn note_inside(function: usize) -> usize {
        // SAFETY: null, or a word of this thread's part.
        let word = unsafe { (read_word::<INSIDE>() as *const AtomicU64).as_ref() };
        let Some(word) = word else { return 0 };
        let outside = word.load(Relaxed);
        word.store(function as u64, Relaxed);
        outside as usize
    }

    pub fn set_inside(word: *const AtomicU64) {
        write_word::<INSIDE>(word as usize);
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod imp {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::{Entry, Layer};
    use crate::recorder::stream::Stream;
    use crate::stacks::Place;

    thread_local! {
        static DEPTH: Cell<u32> = const { Cell::new(0) };
        static STREAM: Cell<*const Stream> = const { Cell::new(std::ptr::null()) };
        static ASSIGNED: Cell<u32> = const { Cell::new(0) };
        static INSIDE: Cell<*const AtomicU64> = const { Cell::new(std::ptr::null()) };
    }

    #[inline]
    pub fn note_inside(function: usize) -> usize {
        // SAFETY: null, or a word of this thread's part.
        let Some(word) = (unsafe { INSIDE.with(Cell::get).as_ref() }) else { return 0 };
        let outside = word.load(Relaxed);
        word.store(function as u64, Relaxed);
        outside as usize
    }

    pub fn set_inside(word: *const AtomicU64) {
        INSIDE.with(|cell| cell.set(word));
    }

    /// Nor is this: frames are found by unwinding.
    pub fn place() -> Place {
        Place::default()
    }

    /// Not known here: a call inside another one is taken for MPI's own, unless MPI called a function of the program
    /// that we know of.
    pub fn nested() -> Entry {
        Entry { slot: 0, caller: super::depth as *const () as usize }
    }

    pub fn entry() -> Entry {
        Entry::default()
    }

    pub fn nested_is_outermost() {}

    /// Fortran's names are not ours here.
    pub fn layer() -> Layer {
        Layer::NONE
    }

    pub fn set_layer(_layer: Layer) {}

    #[inline]
    pub fn depth() -> u32 {
        DEPTH.with(Cell::get)
    }

    #[inline]
    pub fn set_depth(depth: u32) {
        DEPTH.with(|cell| cell.set(depth));
    }

    /// Null until this thread calls MPI.
    #[inline]
    pub fn stream() -> *const Stream {
        STREAM.with(Cell::get)
    }

    pub fn set_stream(stream: *const Stream) {
        STREAM.with(|cell| cell.set(stream));
    }

    pub fn assigned() -> u32 {
        ASSIGNED.with(Cell::get)
    }

    pub fn assign(number: u32) {
        ASSIGNED.with(|cell| cell.set(number));
    }
}
