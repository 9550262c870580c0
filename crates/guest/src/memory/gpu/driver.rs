//! Asks CUDA's driver about an address that no hook knows: a runtime linked into the executable (nvcc's default) or
//! loaded later than we were allocates without our seeing it.
//!
//! Nothing is loaded for this: only a driver that is in the process already is asked, and only about addresses in no
//! segment that a hook saw. Frees are not seen either; that the driver numbers its allocations makes up for it.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::table::Segment;
use crate::memory::area::Area;

/// What CUDA's driver says about an address; null until it is there.
static DRIVER: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// Numbers of CUDA's driver interface: `CUpointer_attribute` and `CUmemorytype`.
const MEMORY_TYPE: c_uint = 2;
const BUFFER_ID: c_uint = 7;
const IS_MANAGED: c_uint = 8;
const DEVICE_ORDINAL: c_uint = 9;
const RANGE_START_ADDR: c_uint = 11;
const RANGE_SIZE: c_uint = 12;
const TYPE_HOST: u32 = 1;
const TYPE_DEVICE: u32 = 2;

type GetAttributes = unsafe extern "C" fn(c_uint, *const c_uint, *const *mut c_void, usize) -> c_int;

/// The driver's allocation that holds `pointer`.
pub fn ask(pointer: usize) -> Option<Segment> {
    let get = get_attributes()?;
    let attributes = [MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL, RANGE_START_ADDR, RANGE_SIZE, BUFFER_ID];
    // Some answers have four bytes, some eight.
    let mut answers = [0_u64; 6];
    let places = answers.each_mut().map(|answer| (answer as *mut u64).cast::<c_void>());
    // SAFETY: as many attributes as places, each large enough; the driver looks the address up and does not follow it.
    let code = unsafe { get(attributes.len() as c_uint, attributes.as_ptr(), places.as_ptr(), pointer) };
    if code == 0 { understand(answers, pointer) } else { None }
}

fn understand([kind, managed, device, start, size, id]: [u64; 6], pointer: usize) -> Option<Segment> {
    let area = match (managed as u32 & 0xff, kind as u32) {
        (1.., _) => Area::Managed,
        (0, TYPE_DEVICE) => Area::Gpu,
        (0, TYPE_HOST) => Area::Pinned,
        // An address the driver does not know.
        _ => return None,
    };
    let start = usize::try_from(start).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    let device = if area == Area::Gpu { device as u32 } else { 0 };
    (start <= pointer && pointer < end).then_some(Segment {
        start,
        end,
        area,
        device,
        id: id.saturating_add(1),
    })
}

fn get_attributes() -> Option<GetAttributes> {
    let mut found = DRIVER.load(Relaxed);
    if found.is_null() {
        // SAFETY: loads nothing. The handle is kept, so that the function stays where it is.
        let driver = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if driver.is_null() {
            return None;
        }
        // SAFETY: an open library and a terminated name.
        found = unsafe { libc::dlsym(driver, c"cuPointerGetAttributes".as_ptr()) }.cast();
        DRIVER.store(found, Release);
    }
    // SAFETY: null, or the driver's function of that name, which has this signature.
    unsafe { std::mem::transmute::<*mut (), Option<GetAttributes>>(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check([kind, managed, device, start, size]: [u64; 5], expected: Option<(Area, u32)>) {
        let answers = [kind, managed, device, start, size, 9];
        let found = understand(answers, 0x1010);
        assert_eq!(found.map(|s| (s.area, s.device)), expected, "{answers:?}");
        assert!(found.is_none_or(|s| (s.start, s.end, s.id) == (0x1000, 0x1100, 10)));
    }

    #[test]
    fn what_the_driver_says() {
        check([2, 0, 3, 0x1000, 0x100], Some((Area::Gpu, 3)));
        check([2, 1, 3, 0x1000, 0x100], Some((Area::Managed, 0)));
        check([1, 0, 0, 0x1000, 0x100], Some((Area::Pinned, 0)));
        // What it does not know: no type, and -2 for the device.
        check([0, 0, 0xffff_fffe, 0, 0], None);
        // A range that does not hold the address is none.
        check([2, 0, 0, 0x1000, 0x10], None);
        check([2, 0, 0, 0x2000, 0x10], None);
        check([2, 0, 0, u64::MAX, 2], None);
    }

    #[test]
    fn without_a_driver_nobody_knows() {
        assert_eq!(ask(0x1000), None);
    }
}
