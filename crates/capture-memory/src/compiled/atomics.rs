//! What atomic operations do: compilers leave that to us. All are as strong as there is; on x86-64 most are that anyway.

macro_rules! effects {
    ($module:ident, $number:ty, $atomic:ident) => {
        pub mod $module {
            use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};
            use std::sync::atomic::{fence, $atomic};

            type Pointer = *const $atomic;

            /// # Safety
            /// The program gives an address of this size.
            unsafe fn at<'a>(place: Pointer) -> &'a $atomic {
                // SAFETY: as the caller says.
                unsafe { &*place }
            }

            pub unsafe extern "C" fn load(place: Pointer) -> $number {
                // SAFETY: the program's own address.
                unsafe { at(place) }.load(Acquire)
            }

            /// A plain store, and a fence where the program asks for the strongest.
            pub unsafe extern "C" fn store(place: Pointer, value: $number, order: i32) {
                // SAFETY: the program's own address.
                unsafe { at(place) }.store(value, Release);
                if order & 0xf == 5 {
                    fence(SeqCst);
                }
            }

            pub unsafe extern "C" fn exchange(place: Pointer, value: $number) -> $number {
                // SAFETY: the program's own address.
                unsafe { at(place) }.swap(value, SeqCst)
            }

            pub unsafe extern "C" fn fetch_add(place: Pointer, value: $number) -> $number {
                // SAFETY: the program's own address.
                unsafe { at(place) }.fetch_add(value, SeqCst)
            }

            pub unsafe extern "C" fn fetch_sub(place: Pointer, value: $number) -> $number {
                // SAFETY: the program's own address.
                unsafe { at(place) }.fetch_sub(value, SeqCst)
            }

            pub unsafe extern "C" fn fetch_and(place: Pointer, value: $number) -> $number {
                // SAFETY: the program's own address.
                unsafe { at(place) }.fetch_and(value, SeqCst)
            }

            pub unsafe extern "C" fn fetch_or(place: Pointer, value: $number) -> $number {
                // SAFETY: the program's own address.
                unsafe { at(place) }.fetch_or(value, SeqCst)
            }

            pub unsafe extern "C" fn fetch_xor(place: Pointer, value: $number) -> $number {
                // SAFETY: the program's own address.
                unsafe { at(place) }.fetch_xor(value, SeqCst)
            }

            pub unsafe extern "C" fn fetch_nand(place: Pointer, value: $number) -> $number {
                // SAFETY: the program's own address.
                unsafe { at(place) }.fetch_nand(value, SeqCst)
            }

            /// What was expected becomes what was found, where it differs.
            pub unsafe extern "C" fn compare_exchange(
                place: Pointer,
                expected: *mut $number,
                value: $number,
            ) -> bool {
                // SAFETY: the program's own addresses.
                let (place, wanted) = unsafe { (at(place), *expected) };
                match place.compare_exchange(wanted, value, SeqCst, SeqCst) {
                    Ok(_) => true,
                    Err(found) => {
                        // SAFETY: as above.
                        unsafe { *expected = found };
                        false
                    }
                }
            }

            pub unsafe extern "C" fn compare_exchange_value(
                place: Pointer,
                expected: $number,
                value: $number,
            ) -> $number {
                // SAFETY: the program's own address.
                unsafe { at(place) }
                    .compare_exchange(expected, value, SeqCst, SeqCst)
                    .unwrap_or_else(|found| found)
            }
        }
    };
}

effects!(of8, u8, AtomicU8);
effects!(of16, u16, AtomicU16);
effects!(of32, u32, AtomicU32);
effects!(of64, u64, AtomicU64);

pub mod of128 {
    use std::arch::asm;

    type Pointer = *mut u128;

    /// What was there.
    ///
    /// # Safety
    /// The program gives an address of 16 bytes that it uses atomically, so it is aligned to that.
    unsafe fn swapped_if(place: Pointer, expected: u128, value: u128) -> u128 {
        let (mut low, mut high) = (expected as u64, (expected >> 64) as u64);
        // SAFETY: as the caller says; rbx is put back.
        unsafe {
            asm!(
                "xchg {value_low}, rbx",
                "lock cmpxchg16b [rdi]",
                "mov rbx, {value_low}",
                value_low = inout(reg) value as u64 => _,
                // Not any register: rbx has something else by then.
                in("rdi") place,
                in("rcx") (value >> 64) as u64,
                inout("rax") low,
                inout("rdx") high,
                options(nostack),
            );
        }
        u128::from(high) << 64 | u128::from(low)
    }

    /// # Safety
    /// As for [`swapped_if`].
    unsafe fn changed(place: Pointer, change: impl Fn(u128) -> u128) -> u128 {
        // SAFETY: as the caller says.
        let mut known = unsafe { swapped_if(place, 0, 0) };
        loop {
            // SAFETY: as the caller says.
            let found = unsafe { swapped_if(place, known, change(known)) };
            if found == known {
                return found;
            }
            known = found;
        }
    }

    pub unsafe extern "C" fn load(place: Pointer) -> u128 {
        // SAFETY: the program's own address.
        unsafe { swapped_if(place, 0, 0) }
    }

    pub unsafe extern "C" fn store(place: Pointer, value: u128) {
        // SAFETY: the program's own address.
        unsafe { changed(place, |_| value) };
    }

    pub unsafe extern "C" fn exchange(place: Pointer, value: u128) -> u128 {
        // SAFETY: the program's own address.
        unsafe { changed(place, |_| value) }
    }

    pub unsafe extern "C" fn fetch_add(place: Pointer, value: u128) -> u128 {
        // SAFETY: the program's own address.
        unsafe { changed(place, |old| old.wrapping_add(value)) }
    }

    pub unsafe extern "C" fn fetch_sub(place: Pointer, value: u128) -> u128 {
        // SAFETY: the program's own address.
        unsafe { changed(place, |old| old.wrapping_sub(value)) }
    }

    pub unsafe extern "C" fn fetch_and(place: Pointer, value: u128) -> u128 {
        // SAFETY: the program's own address.
        unsafe { changed(place, |old| old & value) }
    }

    pub unsafe extern "C" fn fetch_or(place: Pointer, value: u128) -> u128 {
        // SAFETY: the program's own address.
        unsafe { changed(place, |old| old | value) }
    }

    pub unsafe extern "C" fn fetch_xor(place: Pointer, value: u128) -> u128 {
        // SAFETY: the program's own address.
        unsafe { changed(place, |old| old ^ value) }
    }

    pub unsafe extern "C" fn fetch_nand(place: Pointer, value: u128) -> u128 {
        // SAFETY: the program's own address.
        unsafe { changed(place, |old| !(old & value)) }
    }

    pub unsafe extern "C" fn compare_exchange(place: Pointer, expected: *mut u128, value: u128) -> bool {
        // SAFETY: the program's own addresses.
        let wanted = unsafe { expected.read_unaligned() };
        // SAFETY: as above.
        let found = unsafe { swapped_if(place, wanted, value) };
        if found != wanted {
            // SAFETY: as above.
            unsafe { expected.write_unaligned(found) };
        }
        found == wanted
    }

    pub unsafe extern "C" fn compare_exchange_value(place: Pointer, expected: u128, value: u128) -> u128 {
        // SAFETY: the program's own address.
        unsafe { swapped_if(place, expected, value) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU16;

    use super::*;

    #[test]
    fn sixteen_bytes_at_once() {
        #[repr(align(16))]
        struct Aligned(u128);
        let mut there = Aligned(u128::MAX - 1);
        let place = &raw mut there.0;
        // SAFETY: an aligned place of ours.
        unsafe {
            assert_eq!(of128::load(place), u128::MAX - 1);
            assert_eq!(of128::fetch_add(place, 3), u128::MAX - 1);
            assert_eq!(of128::exchange(place, 1 << 100 | 5), 1);
            let mut expected = 5;
            assert!(!of128::compare_exchange(place, &mut expected, 7));
            assert_eq!(expected, 1 << 100 | 5);
            assert!(of128::compare_exchange(place, &mut expected, 7));
            assert_eq!(of128::fetch_nand(place, 3), 7);
            assert_eq!(of128::load(place), !3);
            of128::store(place, 9);
            assert_eq!(of128::compare_exchange_value(place, 9, 10), 9);
        }
        assert_eq!(there.0, 10);
    }

    #[test]
    fn what_was_expected_is_told() {
        let there = AtomicU16::new(5);
        let mut expected = 4;
        // SAFETY: places of ours.
        unsafe {
            assert!(!of16::compare_exchange(&there, &mut expected, 9));
            assert_eq!(expected, 5);
            assert!(of16::compare_exchange(&there, &mut expected, 9));
            assert_eq!(of16::fetch_sub(&there, 10), 9);
            assert_eq!(of16::load(&there), u16::MAX);
        }
    }
}
