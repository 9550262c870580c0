//! What a thread is doing, as far as it concerns us: read and written on every call. A library's thread-locals cost a function call each time, since it might be loaded
//! late; a preloaded library never is, so these lie at a fixed distance from the thread pointer.

use std::cell::Cell;

pub use imp::*;

/// Added to the depth while the thread runs our own code, which no call may enter again.
pub const BUSY: u32 = 1 << 31;
/// Added to the depth while what is traced has called a function of the program: what is called now, the program calls.
pub const PROGRAM: u32 = 1 << 30;
/// Added to the depth while the thread is in a layer between a language and what is traced, which has not called the function
/// yet that the program has.
pub const LAYER: u32 = 1 << 29;
/// Added to the depth from where a thread enters that layer until it leaves it.
pub const IN_LAYER: u32 = 1 << 28;
/// The rest of the depth: how many observed calls this thread is in, 1 in a call of the program, 2 in one that a callback
/// makes inside it.
pub const LEVELS: u32 = IN_LAYER - 1;
/// Callbacks in callbacks up to which calls are observed.
pub const DEEPEST: usize = 64;

thread_local! {
    /// How this thread entered the calls it is in, but the outermost: by level.
    static ENTRIES: [Cell<Entry>; DEEPEST] = const { [const { Cell::new(Entry { slot: 0, caller: 0 }) }; DEEPEST] };
}

/// How this thread entered the call at that level.
pub fn entry_at(level: usize) -> Entry {
    match level {
        0 => entry(),
        _ => ENTRIES.with(|entries| entries[level.min(DEEPEST - 1)].get()),
    }
}

/// It has entered the call at that level, which is not the outermost one, so.
pub fn set_entry_at(level: usize, entry: Entry) {
    ENTRIES.with(|entries| entries[level.min(DEEPEST - 1)].set(entry));
}

/// Where a wrapper was called from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller {
    /// Where on the stack it is written where it returns to; 0 where that is not known.
    pub slot: usize,
    /// The caller's frame pointer, or whatever else it has in that register.
    pub pointer: usize,
}

/// How a wrapper was entered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Entry {
    /// Where on the stack the address lies that it returns to; 0 where that is not known.
    pub slot: usize,
    /// That address.
    pub caller: usize,
}

/// The call of a layer between a language and what is traced that a thread is in.
#[derive(Debug, Clone, Copy)]
pub struct Layer {
    pub entry: Entry,
    pub level: u32,
    /// Which function of what is traced the layer is to call.
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

    use super::{Caller, Entry, Layer};

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
    /// Has a name of its own, since who enters a wrapper writes it and the two words after it; and three others, at
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

    /// `LEVELS`, and what was added to them.
    #[inline]
    pub fn depth() -> u32 {
        read::<DEPTH>()
    }

    #[inline]
    pub fn set_depth(depth: u32) {
        write::<DEPTH>(depth);
    }

    /// One more than the number this thread will have with its first traced call; 0: it has not been given one.
    pub fn assigned() -> u32 {
        read::<ASSIGNED>()
    }

    pub fn assign(number: u32) {
        write::<ASSIGNED>(number);
    }

    /// What this thread has for itself; null until its first traced call.
    #[inline]
    pub fn stream() -> *const () {
        read_word::<STREAM>() as *const ()
    }

    pub fn set_stream(stream: *const ()) {
        write_word::<STREAM>(stream as usize);
    }

    /// How the wrapper was entered that this thread entered last while it was in no other.
    #[inline]
    pub fn entry() -> Entry {
        Entry { slot: read_word::<SLOT>(), caller: read_word::<CALLER>() }
    }

    /// The same while it was in another one.
    pub fn nested() -> Entry {
        Entry { slot: read_word::<NESTED_SLOT>(), caller: read_word::<NESTED_CALLER>() }
    }

    /// The second takes the place of the first, which the thread has left by a jump.
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
    pub fn place() -> Caller {
        Caller { slot: read_word::<SLOT>(), pointer: read_word::<POINTER>() }
    }

    /// Notes in the word that it was given for this, if any, which function the thread is in: its position plus one, or 0.
    /// Returns what stood there.
    #[inline]
    pub fn note_inside(function: usize) -> usize {
        // SAFETY: null, or a word that stays as long as the thread makes traced calls.
        let word = unsafe { (read_word::<INSIDE>() as *const AtomicU64).as_ref() };
        let Some(word) = word else { return 0 };
        let outside = word.load(Relaxed);
        word.store(function as u64, Relaxed);
        outside as usize
    }

    /// Null: it is noted no more, and what lies behind that word may go.
    pub fn set_inside(word: *const AtomicU64) {
        write_word::<INSIDE>(word as usize);
    }

    /// That word; null where there is none.
    #[inline]
    pub fn inside() -> *const AtomicU64 {
        read_word::<INSIDE>() as *const AtomicU64
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod imp {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::{Caller, Entry, Layer};

    thread_local! {
        static DEPTH: Cell<u32> = const { Cell::new(0) };
        static STREAM: Cell<*const ()> = const { Cell::new(std::ptr::null()) };
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

    #[inline]
    pub fn inside() -> *const AtomicU64 {
        INSIDE.with(Cell::get)
    }

    /// Nor is this: frames are found by unwinding.
    pub fn place() -> Caller {
        Caller::default()
    }

    /// Not known here: a call inside another one is taken for one of what is traced, unless that called a function of the
    /// program that we know of.
    pub fn nested() -> Entry {
        Entry { slot: 0, caller: super::depth as *const () as usize }
    }

    pub fn entry() -> Entry {
        Entry::default()
    }

    pub fn nested_is_outermost() {}

    /// Layers are not entered through us here.
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

    /// What this thread has for itself; null until its first traced call.
    #[inline]
    pub fn stream() -> *const () {
        STREAM.with(Cell::get)
    }

    pub fn set_stream(stream: *const ()) {
        STREAM.with(|cell| cell.set(stream));
    }

    pub fn assigned() -> u32 {
        ASSIGNED.with(Cell::get)
    }

    pub fn assign(number: u32) {
        ASSIGNED.with(|cell| cell.set(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_its_own_depth() {
        set_depth(1);
        assert_eq!((depth(), std::thread::spawn(depth).join().unwrap()), (1, 0));
        set_depth(0);
        assert_eq!(depth(), 0);
    }
}
