//! Numbers to a stated precision: so many levels to the octave, of equal width within it.

/// `STEPS` levels to the octave, a power of two; numbers below twice as many have one each.
#[derive(Debug, Clone, Copy)]
pub struct Levels<const STEPS: u32>;

impl<const STEPS: u32> Levels<STEPS> {
    /// No number has a higher one.
    pub const HIGHEST: u16 = Self::of(u64::MAX);

    pub const fn of(number: u64) -> u16 {
        let bits = u64::BITS - number.leading_zeros();
        let shift = bits.saturating_sub(STEPS.ilog2() + 1);
        (shift * STEPS) as u16 + (number >> shift) as u16
    }

    /// The least number of a level, and how many bits it leaves open.
    pub const fn lowest(level: u16) -> (u64, u32) {
        let shift = (level as u32 / STEPS).saturating_sub(1);
        ((level as u64 - (shift * STEPS) as u64) << shift, shift)
    }

    /// What a level stands for: wrong by one part in twice `STEPS` at most.
    pub const fn middle(level: u16) -> u64 {
        let (lowest, open) = Self::lowest(level);
        lowest + (1 << open >> 1)
    }

    /// The greatest number of a level.
    pub const fn greatest(level: u16) -> u64 {
        let (lowest, open) = Self::lowest(level);
        lowest + ((1 << open) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const STEPS: u32>() {
        assert!((1..70_000).all(|n| Levels::<STEPS>::of(n - 1) <= Levels::<STEPS>::of(n)));
        let edges = (16..64).flat_map(|b| [(1 << b) - 1, 1 << b, (1 << b) + 1, 3 << (b - 1)]);
        for number in (0..70_000u64).chain(edges).chain([u64::MAX]) {
            let level = Levels::<STEPS>::of(number);
            let (told, (low, open)) = (Levels::<STEPS>::middle(level), Levels::<STEPS>::lowest(level));
            let most = number / (2 * u64::from(STEPS)) + 1;
            assert!(
                told.abs_diff(number) <= most && (number >= (2 * STEPS).into() || told == number),
                "{number}: {told}"
            );
            assert!(low <= number && number - low < 1u64 << open, "{number}");
            assert!(Levels::<STEPS>::greatest(level) >= number);
        }
        assert_eq!(Levels::<STEPS>::of(u64::MAX), Levels::<STEPS>::HIGHEST);
    }

    #[test]
    fn a_level_is_near_what_it_stands_for() {
        check::<8>();
        check::<16>();
        check::<32>();
    }
}
