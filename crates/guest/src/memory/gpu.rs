//! Memory that a GPU's runtime allocates: CUDA's and HIP's functions, intercepted without linking with either.
//!
//! Each function here stands before the one of the runtime the program came with, and is to be withdrawn where there is none
//! (`wanted`). A runtime that is inside the executable, or loaded later, is not passed through: what it allocated is asked
//! of the `driver` when a traced call mentions it.
//!
//! The same order as for the heap: a segment is forgotten *before* its memory goes back.

pub mod driver;
pub mod table;

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::area::{Area, gpu_key};
use super::live::{FREED, tracking};
use crate::process::next::next;
use table::{Segment, SegmentTable};

/// What GPU runtimes allocated.
pub static GPU: SegmentTable = SegmentTable::new();
/// The GPU runtimes' functions behind ours; null until first used.
static RUNTIME: [AtomicPtr<()>; NAMES.len()] = [const { AtomicPtr::new(null_mut()) }; NAMES.len()];

type Memory = *mut c_void;
/// Where an allocation's address is put.
type Out = *mut Memory;
type Stream = *mut c_void;
type MemoryPool = *mut c_void;

/// What both runtimes say when they are not there (`cudaErrorInitializationError`, `hipErrorNotInitialized`). Seen only
/// by a program that took our symbol's address before we could withdraw it.
const NOT_INITIALISED: c_int = 3;

/// A slot for each function that is passed on to, with its name and its type. `allocates` and `frees` are also defined,
/// under that very name.
macro_rules! runtime {
    ($($kind:ident $name:ident($($arg:ident: $type:ty),*) $(=> $area:ident, $size:expr, $device:ident)?;)*) => {
        #[expect(non_camel_case_types, reason = "the runtimes' own names")]
        #[derive(Clone, Copy)]
        enum Slot {
            $($name),*
        }

        const NAMES: &[&CStr] = &[$(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("no name has a zero in it"),
        }),*];

        $(runtime!(@$kind $name($($arg: $type),*) $(=> $area, $size, $device)?);)*
    };
    (@asks $name:ident($($arg:ident: $type:ty),*)) => {};
    (@allocates $name:ident($place:ident: $places:ty $(, $arg:ident: $type:ty)*) => $area:ident, $size:expr, $device:ident) => {
        /// # Safety
        /// As for the runtime's function of this name: the arguments are the program's, and go on as they are.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "the runtime's own name")]
        pub unsafe extern "C" fn $name($place: $places $(, $arg: $type)*) -> c_int {
            let Some(real) = Slot::$name.find() else { return NOT_INITIALISED };
            // SAFETY: the runtime's function of this name, which has this signature.
            let real = unsafe {
                std::mem::transmute::<*mut (), unsafe extern "C" fn($places $(, $type)*) -> c_int>(real)
            };
            // SAFETY: the program's own call, passed on.
            let code = unsafe { real($place $(, $arg)*) };
            if code == 0 && tracking() {
                // SAFETY: on success the runtime wrote what the program's pointers point to.
                let (start, size) = unsafe { (*$place as usize, $size) };
                allocated(start, size, Area::$area, Slot::$device);
            }
            code
        }
    };
    (@frees $name:ident($memory:ident: $memories:ty $(, $arg:ident: $type:ty)*)) => {
        /// # Safety
        /// As for the runtime's function of this name.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[allow(non_snake_case, reason = "the runtime's own name")]
        pub unsafe extern "C" fn $name($memory: $memories $(, $arg: $type)*) -> c_int {
            let Some(real) = Slot::$name.find() else { return NOT_INITIALISED };
            released($memory as usize);
            // SAFETY: the runtime's function of this name, which has this signature.
            let real = unsafe {
                std::mem::transmute::<*mut (), unsafe extern "C" fn($memories $(, $type)*) -> c_int>(real)
            };
            // SAFETY: the program's own call, passed on.
            unsafe { real($memory $(, $arg)*) }
        }
    };
}

runtime! {
    asks cudaGetDevice(device: *mut c_int);
    allocates cudaMalloc(place: Out, size: usize) => Gpu, size, cudaGetDevice;
    allocates cudaMallocPitch(place: Out, pitch: *mut usize, width: usize, height: usize)
        => Gpu, (*pitch).saturating_mul(height), cudaGetDevice;
    allocates cudaMallocManaged(place: Out, size: usize, flags: c_uint) => Managed, size, cudaGetDevice;
    allocates cudaMallocHost(place: Out, size: usize) => Pinned, size, cudaGetDevice;
    allocates cudaHostAlloc(place: Out, size: usize, flags: c_uint) => Pinned, size, cudaGetDevice;
    allocates cudaMallocAsync(place: Out, size: usize, stream: Stream) => Gpu, size, cudaGetDevice;
    allocates cudaMallocFromPoolAsync(place: Out, size: usize, pool: MemoryPool, stream: Stream)
        => Gpu, size, cudaGetDevice;
    frees cudaFree(memory: Memory);
    frees cudaFreeHost(memory: Memory);
    frees cudaFreeAsync(memory: Memory, stream: Stream);
    // The same for programs compiled with a default stream for each thread.
    allocates cudaMallocAsync_ptsz(place: Out, size: usize, stream: Stream) => Gpu, size, cudaGetDevice;
    allocates cudaMallocFromPoolAsync_ptsz(place: Out, size: usize, pool: MemoryPool, stream: Stream)
        => Gpu, size, cudaGetDevice;
    frees cudaFreeAsync_ptsz(memory: Memory, stream: Stream);

    asks hipGetDevice(device: *mut c_int);
    allocates hipMalloc(place: Out, size: usize) => Gpu, size, hipGetDevice;
    allocates hipMallocPitch(place: Out, pitch: *mut usize, width: usize, height: usize)
        => Gpu, (*pitch).saturating_mul(height), hipGetDevice;
    allocates hipExtMallocWithFlags(place: Out, size: usize, flags: c_uint) => Gpu, size, hipGetDevice;
    allocates hipMallocManaged(place: Out, size: usize, flags: c_uint) => Managed, size, hipGetDevice;
    allocates hipMallocHost(place: Out, size: usize) => Pinned, size, hipGetDevice;
    allocates hipHostMalloc(place: Out, size: usize, flags: c_uint) => Pinned, size, hipGetDevice;
    allocates hipHostAlloc(place: Out, size: usize, flags: c_uint) => Pinned, size, hipGetDevice;
    allocates hipMallocAsync(place: Out, size: usize, stream: Stream) => Gpu, size, hipGetDevice;
    allocates hipMallocFromPoolAsync(place: Out, size: usize, pool: MemoryPool, stream: Stream)
        => Gpu, size, hipGetDevice;
    frees hipFree(memory: Memory);
    frees hipHostFree(memory: Memory);
    frees hipFreeHost(memory: Memory);
    frees hipFreeAsync(memory: Memory, stream: Stream);
}

impl Slot {
    /// The runtime's function of this name, or null.
    fn find(self) -> Option<*mut ()> {
        let slot = &RUNTIME[self as usize];
        let mut found = slot.load(Relaxed);
        if found.is_null() {
            found = next(NAMES[self as usize]).cast();
            slot.store(found, Release);
        }
        (!found.is_null()).then_some(found)
    }
}

/// Whether a function of that name is ours to offer; `None` where it is no GPU runtime's.
pub fn wanted(name: &CStr) -> Option<bool> {
    NAMES.contains(&name).then(|| !next(name).is_null())
}

fn allocated(start: usize, size: usize, area: Area, get_device: Slot) {
    if start == 0 {
        return;
    }
    let device = if area == Area::Gpu { current_device(get_device) } else { 0 };
    GPU.insert(Segment { start, end: start.saturating_add(size), area, device, id: 0 }, gone);
}

fn released(start: usize) {
    if tracking() {
        GPU.remove(start, gone);
    }
}

/// What becomes of a segment's name.
fn gone(segment: Segment) {
    FREED.push(gpu_key(segment.start, segment.area));
}

/// The device that allocations of the calling thread come from.
fn current_device(ask: Slot) -> u32 {
    let Some(real) = ask.find() else { return 0 };
    // SAFETY: the runtime's function of this name, which has this signature.
    let real = unsafe { std::mem::transmute::<*mut (), unsafe extern "C" fn(*mut c_int) -> c_int>(real) };
    let mut device = 0;
    // SAFETY: a place for the answer. The runtime has just allocated, so it is up.
    let code = unsafe { real(&raw mut device) };
    if code == 0 { u32::try_from(device).unwrap_or(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_runtimes_functions_are_spoken_for() {
        assert_eq!(wanted(c"cudaMalloc"), Some(false), "there is no CUDA in this process");
        assert_eq!(wanted(c"hipFreeAsync"), Some(false));
        assert_eq!(wanted(c"MPI_Send"), None);
        assert_eq!(wanted(c"malloc"), None);
    }

    #[test]
    fn without_a_runtime_nothing_is_allocated() {
        let mut place = std::ptr::null_mut();
        // SAFETY: a place for the address; there is nothing to free.
        let codes = unsafe { [cudaMalloc(&raw mut place, 8), cudaFree(place)] };
        assert_eq!((codes, place.is_null()), ([NOT_INITIALISED; 2], true));
    }
}
