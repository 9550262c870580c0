//! What is in the program's buffers: a trace does not say, so they hold numbers that look drawn.

/// So many bytes of a buffer, from where it is first used. The rest is zero, and takes no memory before a message is written
/// there.
const MOST: usize = 1 << 16;

/// Fills the beginning of a new buffer, which has so many bytes.
pub fn fill(place: usize, bytes: usize, seed: u64) {
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    for at in (0..bytes.min(MOST) & !7).step_by(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = state ^ state >> 29;
        // SAFETY: the caller has just mapped these bytes, and nobody else knows of them yet.
        unsafe { ((place + at) as *mut u64).write_unaligned(word) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_fills_alike() {
        let filled = |seed| {
            let mut room = vec![0u8; 100];
            fill(room.as_mut_ptr() as usize, room.len(), seed);
            room
        };
        assert_eq!(filled(1), filled(1));
        assert_ne!(filled(1), filled(2));
        assert_eq!(filled(1)[96..], [0; 4]);
        assert!(filled(1)[..96].iter().filter(|byte| **byte == 0).count() < 8);
    }
}
