//! The allocator behind ours, and a small arena for the time before it can be found.
//!
//! Finding it takes `dlsym`, which may allocate: what is asked for in the meantime comes from the arena, is never given
//! back, and is known by its address when it is freed or resized later.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};

use libc::off_t;

use super::live::track;
use crate::objects::elf::sanitized;
use crate::process::next::{first, next};

/// Memory for the program until the allocator behind ours is found.
static EARLY: Arena = Arena::new();
/// The allocator behind ours.
pub static ALLOCATOR: Real = Real::new(Definition::Next, &EARLY);
/// The process's first one, where that is not ours, and calls of it are redirected to us.
pub static FIRST_ALLOCATOR: Real = Real::new(Definition::First, &EARLY);
pub static REDIRECTED: AtomicBool = AtomicBool::new(false);

type Memory = *mut c_void;

/// Which of several functions of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definition {
    /// The one after this library's own.
    Next,
    /// The one that others call.
    First,
}

pub struct Real {
    definition: Definition,
    malloc: AtomicPtr<()>,
    calloc: AtomicPtr<()>,
    realloc: AtomicPtr<()>,
    reallocarray: AtomicPtr<()>,
    free: AtomicPtr<()>,
    posix_memalign: AtomicPtr<()>,
    aligned_alloc: AtomicPtr<()>,
    memalign: AtomicPtr<()>,
    valloc: AtomicPtr<()>,
    pvalloc: AtomicPtr<()>,
    mmap: AtomicPtr<()>,
    munmap: AtomicPtr<()>,
    mremap: AtomicPtr<()>,
    /// Somebody is looking them up, and may be allocating.
    resolving: AtomicBool,
    arena: &'static Arena,
}

/// The function in slot `$slot` as a `$type`, or else `$otherwise`, which leaves the function.
macro_rules! real {
    ($self:ident . $slot:ident as fn($($arg:ty),*) $(-> $result:ty)?, else $otherwise:expr) => {{
        let mut found = $self.$slot.load(Relaxed);
        if found.is_null() {
            $self.resolve();
            found = $self.$slot.load(Relaxed);
        }
        if found.is_null() {
            $otherwise
        }
        // SAFETY: `resolve` stored the function of that name, which has this signature in every C library.
        unsafe { std::mem::transmute::<*mut (), unsafe extern "C" fn($($arg),*) $(-> $result)?>(found) }
    }};
}

/// # Safety
/// All of these are C's functions of the same names, and want what those want.
#[expect(clippy::missing_safety_doc, reason = "said once, above")]
impl Real {
    pub const fn new(definition: Definition, arena: &'static Arena) -> Self {
        Self {
            definition,
            malloc: AtomicPtr::new(null_mut()),
            calloc: AtomicPtr::new(null_mut()),
            realloc: AtomicPtr::new(null_mut()),
            reallocarray: AtomicPtr::new(null_mut()),
            free: AtomicPtr::new(null_mut()),
            posix_memalign: AtomicPtr::new(null_mut()),
            aligned_alloc: AtomicPtr::new(null_mut()),
            memalign: AtomicPtr::new(null_mut()),
            valloc: AtomicPtr::new(null_mut()),
            pvalloc: AtomicPtr::new(null_mut()),
            mmap: AtomicPtr::new(null_mut()),
            munmap: AtomicPtr::new(null_mut()),
            mremap: AtomicPtr::new(null_mut()),
            resolving: AtomicBool::new(false),
            arena,
        }
    }

    /// Whether anybody has called us, so that the functions are known.
    pub fn is_known(&self) -> bool {
        !self.malloc.load(Acquire).is_null()
    }

    /// Looks the functions up.
    #[cold]
    #[inline(never)]
    pub fn resolve(&self) {
        if self.resolving.swap(true, AcqRel) {
            return;
        }
        let names: [(&AtomicPtr<()>, &CStr); 13] = [
            (&self.malloc, c"malloc"),
            (&self.calloc, c"calloc"),
            (&self.realloc, c"realloc"),
            (&self.reallocarray, c"reallocarray"),
            (&self.free, c"free"),
            (&self.posix_memalign, c"posix_memalign"),
            (&self.aligned_alloc, c"aligned_alloc"),
            (&self.memalign, c"memalign"),
            (&self.valloc, c"valloc"),
            (&self.pvalloc, c"pvalloc"),
            (&self.mmap, c"mmap"),
            (&self.munmap, c"munmap"),
            (&self.mremap, c"mremap"),
        ];
        for (slot, name) in names {
            let found = match self.definition {
                Definition::Next => next(name),
                Definition::First => first(name).unwrap_or(null_mut()),
            };
            slot.store(found.cast(), Release);
        }
        if !asked_for() {
            track(false);
        }
        if sanitized() {
            REDIRECTED.store(true, Relaxed);
        }
        self.resolving.store(false, Release);
    }

    #[inline]
    pub unsafe fn malloc(&self, size: usize) -> Memory {
        let real = real!(self.malloc as fn(usize) -> Memory, else return self.arena.allocate(16, size));
        // SAFETY: as the caller says.
        unsafe { real(size) }
    }

    #[inline]
    pub unsafe fn calloc(&self, count: usize, size: usize) -> Memory {
        let real = real!(self.calloc as fn(usize, usize) -> Memory, else return match count.checked_mul(size) {
            Some(size) => self.arena.allocate(16, size),
            None => null_mut(),
        });
        // SAFETY: as the caller says.
        unsafe { real(count, size) }
    }

    #[inline]
    pub unsafe fn realloc(&self, old: Memory, size: usize) -> Memory {
        if self.arena.holds(old) {
            // SAFETY: a pointer of the arena, which the caller may read and is giving up.
            return unsafe { self.move_out(old, size) };
        }
        let real = real!(self.realloc as fn(Memory, usize) -> Memory, else {
            return if old.is_null() { self.arena.allocate(16, size) } else { null_mut() };
        });
        // SAFETY: as the caller says.
        unsafe { real(old, size) }
    }

    /// Not by way of `realloc`: an allocator may have that and not this, and then the C library's calls the allocator's.
    pub unsafe fn reallocarray(&self, old: Memory, count: usize, size: usize) -> Memory {
        let bytes = count.checked_mul(size);
        if let (true, Some(bytes)) = (self.arena.holds(old), bytes) {
            // SAFETY: as the caller says.
            return unsafe { self.realloc(old, bytes) };
        }
        let real = real!(self.reallocarray as fn(Memory, usize, usize) -> Memory, else {
            // An old C library, which has none: nobody else does.
            return match bytes {
                // SAFETY: as the caller says.
                Some(bytes) => unsafe { self.realloc(old, bytes) },
                None => null_mut(),
            };
        });
        // SAFETY: as the caller says.
        unsafe { real(old, count, size) }
    }

    #[cold]
    unsafe fn move_out(&self, old: Memory, size: usize) -> Memory {
        // SAFETY: any size will do.
        let new = unsafe { self.malloc(size) };
        if !new.is_null() {
            let kept = self.arena.size(old).min(size);
            // SAFETY: both are at least that long, and `new` is fresh.
            unsafe { std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), kept) };
        }
        new
    }

    #[inline]
    pub unsafe fn free(&self, memory: Memory) {
        if self.arena.holds(memory) {
            return;
        }
        // Memory that the allocator we have not found yet cannot have given out: it stays.
        let real = real!(self.free as fn(Memory), else return);
        // SAFETY: as the caller says.
        unsafe { real(memory) }
    }

    pub unsafe fn posix_memalign(&self, memory: *mut Memory, alignment: usize, size: usize) -> c_int {
        let real = real!(self.posix_memalign as fn(*mut Memory, usize, usize) -> c_int, else {
            let found = self.arena.allocate(alignment, size);
            if found.is_null() {
                return libc::ENOMEM;
            }
            // SAFETY: the caller's place for the result.
            unsafe { *memory = found };
            return 0;
        });
        // SAFETY: as the caller says.
        unsafe { real(memory, alignment, size) }
    }

    pub unsafe fn aligned_alloc(&self, alignment: usize, size: usize) -> Memory {
        let real = real!(
            self.aligned_alloc as fn(usize, usize) -> Memory,
            else return self.arena.allocate(alignment, size)
        );
        // SAFETY: as the caller says.
        unsafe { real(alignment, size) }
    }

    pub unsafe fn memalign(&self, alignment: usize, size: usize) -> Memory {
        let real = real!(
            self.memalign as fn(usize, usize) -> Memory,
            else return self.arena.allocate(alignment, size)
        );
        // SAFETY: as the caller says.
        unsafe { real(alignment, size) }
    }

    pub unsafe fn valloc(&self, size: usize) -> Memory {
        let real = real!(self.valloc as fn(usize) -> Memory, else return self.arena.allocate(4096, size));
        // SAFETY: as the caller says.
        unsafe { real(size) }
    }

    pub unsafe fn pvalloc(&self, size: usize) -> Memory {
        let real = real!(self.pvalloc as fn(usize) -> Memory, else return self.arena.allocate(4096, size));
        // SAFETY: as the caller says.
        unsafe { real(size) }
    }

    pub unsafe fn mmap(
        &self,
        a: Memory,
        length: usize,
        prot: c_int,
        flags: c_int,
        file: c_int,
        at: off_t,
    ) -> Memory {
        let real = real!(
            self.mmap as fn(Memory, usize, c_int, c_int, c_int, off_t) -> Memory,
            // SAFETY: what the C library would do.
            else return unsafe { libc::syscall(libc::SYS_mmap, a, length, prot, flags, file, at) as Memory }
        );
        // SAFETY: as the caller says.
        unsafe { real(a, length, prot, flags, file, at) }
    }

    pub unsafe fn munmap(&self, address: Memory, length: usize) -> c_int {
        let real = real!(
            self.munmap as fn(Memory, usize) -> c_int,
            // SAFETY: what the C library would do.
            else return unsafe { libc::syscall(libc::SYS_munmap, address, length) as c_int }
        );
        // SAFETY: as the caller says.
        unsafe { real(address, length) }
    }

    pub unsafe fn mremap(&self, address: Memory, old: usize, new: usize, flags: c_int, to: Memory) -> Memory {
        let real = real!(
            // The last argument is variadic in C; it travels in the same register.
            self.mremap as fn(Memory, usize, usize, c_int, Memory) -> Memory,
            // SAFETY: what the C library would do.
            else return unsafe { libc::syscall(libc::SYS_mremap, address, old, new, flags, to) as Memory }
        );
        // SAFETY: as the caller says.
        unsafe { real(address, old, new, flags, to) }
    }
}

/// Whether `REFRAIN_OUT` is set. Reads the environment in place; when it is not there yet, nobody can say no.
fn asked_for() -> bool {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: the C library's variable; before `main` nobody changes it.
    let mut entry = unsafe { environ };
    if entry.is_null() {
        return true;
    }
    loop {
        // SAFETY: not past the null at the array's end.
        let variable = unsafe { *entry };
        if variable.is_null() {
            return false;
        }
        // SAFETY: a terminated string.
        if unsafe { CStr::from_ptr(variable) }.to_bytes().starts_with(b"REFRAIN_OUT=") {
            return true;
        }
        // SAFETY: the null has not been reached.
        entry = unsafe { entry.add(1) };
    }
}

const ARENA: usize = 256 << 10;
/// Before each piece, its size.
const HEADER: usize = size_of::<usize>();

/// Memory that is handed out once and never taken back.
#[repr(align(16))]
pub struct Arena {
    bytes: UnsafeCell<[u8; ARENA]>,
    used: AtomicUsize,
}

// SAFETY: every byte is handed out at most once, by the atomic `used`; the header is written before that piece's address
// leaves `allocate`, and only read afterwards.
unsafe impl Sync for Arena {}

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl Arena {
    pub const fn new() -> Self {
        Self { bytes: UnsafeCell::new([0; ARENA]), used: AtomicUsize::new(0) }
    }

    #[cold]
    fn allocate(&self, alignment: usize, size: usize) -> Memory {
        let base = self.bytes.get() as usize;
        let alignment = alignment.max(16);
        let place = |used: usize| (base + used + HEADER).next_multiple_of(alignment);
        let take = |used: usize| {
            let end = place(used).checked_add(size)? - base;
            (end <= ARENA).then_some(end)
        };
        match self.used.fetch_update(AcqRel, Acquire, take) {
            Err(_) => null_mut(),
            Ok(used) => {
                let piece = place(used) as *mut u8;
                // SAFETY: `place` left room for the header within what was just taken, 8 bytes before a multiple of 16.
                unsafe { piece.sub(HEADER).cast::<usize>().write(size) };
                piece.cast()
            }
        }
    }

    #[inline]
    fn holds(&self, memory: Memory) -> bool {
        (memory as usize).wrapping_sub(self.bytes.get() as usize) < ARENA
    }

    fn size(&self, memory: Memory) -> usize {
        // SAFETY: the arena gave this pointer out, so its header lies before it.
        unsafe { memory.cast::<u8>().sub(HEADER).cast::<usize>().read() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arena_aligns_separates_and_ends() {
        let arena = Box::new(Arena::new());
        let sizes = [(16, 1), (16, 100), (4096, 10), (64, 0), (16, 33)];
        let pieces: Vec<_> = sizes.iter().map(|&(alignment, size)| arena.allocate(alignment, size)).collect();
        for (i, (&(alignment, size), &piece)) in sizes.iter().zip(&pieces).enumerate() {
            assert_eq!(piece as usize % alignment, 0);
            assert_eq!(arena.size(piece), size);
            assert!(
                arena.holds(piece) && (i == 0 || piece as usize >= pieces[i - 1] as usize + sizes[i - 1].1)
            );
        }
        assert!(arena.allocate(16, ARENA).is_null());
        assert!(arena.allocate(16, usize::MAX - 64).is_null());
        assert!(!arena.allocate(16, 100).is_null(), "a refusal takes nothing");
        assert!(!arena.holds(null_mut()) && !arena.holds((&raw const arena).cast_mut().cast()));
    }

    #[test]
    fn memory_moves_out_of_the_arena_with_its_contents() {
        let real = Box::new(Real::new(Definition::Next, Box::leak(Box::new(Arena::new()))));
        let old = real.arena.allocate(16, 5);
        // SAFETY: five bytes of ours; then an allocation of ours, read and given back.
        unsafe {
            std::ptr::copy_nonoverlapping(b"hello".as_ptr(), old.cast(), 5);
            let new = real.realloc(old, 4000);
            assert!(!real.arena.holds(new));
            assert_eq!(std::slice::from_raw_parts(new.cast::<u8>(), 5), b"hello");
            real.free(old);
            real.free(new);
        }
    }
}
