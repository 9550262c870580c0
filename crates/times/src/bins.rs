//! Bins that grow with what falls into them.

use refrain_model::time::Base;

const ONE: u64 = 1_000_000;

/// The bins of one base: the first has 0 alone, the next begins with 1, and each ends before the base times its beginning.
#[derive(Debug, Clone)]
pub struct Bins {
    base: u64,
    /// Where each begins.
    lows: Vec<u64>,
}

/// What is known of a number when its bin is: it is at most `error` below or above `middle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bin {
    pub low: u64,
    pub high: u64,
}

impl Bin {
    pub fn middle(self) -> u64 {
        self.low + (self.high - self.low) / 2
    }

    pub fn error(self) -> u64 {
        self.high - self.middle()
    }

    fn has(self, number: u64) -> bool {
        self.low <= number && number <= self.high
    }
}

/// The bins around a guess that are told by their distance from it.
pub const NEAR: i64 = 6;

impl Bins {
    pub fn new(base: Base) -> Bins {
        let base = (base.value() * ONE as f64).round() as u64;
        let mut bins = Bins { base, lows: vec![0, 1] };
        while let Some(next) = bins.above(bins.lows[bins.lows.len() - 1]).high.checked_add(1) {
            bins.lows.push(next);
        }
        bins
    }

    pub fn of(&self, number: u64) -> usize {
        self.lows.partition_point(|low| *low <= number) - 1
    }

    /// `None` if there is no such bin.
    pub fn get(&self, bin: usize) -> Option<Bin> {
        let low = *self.lows.get(bin)?;
        Some(Bin { low, high: self.lows.get(bin + 1).map_or(u64::MAX, |next| next - 1) })
    }

    /// The bin that begins here: no number in it is more than the base times another.
    fn above(&self, low: u64) -> Bin {
        let wide = u128::from(low) * u128::from(self.base - ONE) / u128::from(ONE);
        Bin { low, high: u64::try_from(u128::from(low) + wide).unwrap_or(u64::MAX) }
    }

    /// The bin that ends here.
    fn below(&self, high: u64) -> Bin {
        let low = (u128::from(high) * u128::from(ONE)).div_ceil(u128::from(self.base));
        Bin { low: low as u64, high }
    }

    /// The bin in whose middle a guess above 0 is.
    fn around(&self, guess: u64) -> Bin {
        let half = u128::from(guess) * u128::from(self.base - ONE) / u128::from(self.base + ONE);
        Bin { low: guess - half as u64, high: guess.saturating_add(half as u64) }
    }

    /// The bin that is so many bins away from a guess. `None` if numbers above 0 do not go so far.
    pub fn near(&self, guess: u64, distance: i64) -> Option<Bin> {
        let mut bin = self.around(guess);
        for _ in 0..distance {
            bin = self.above(bin.high.checked_add(1)?);
        }
        for _ in distance..0 {
            bin = self.below((bin.low - 1 > 0).then_some(bin.low - 1)?);
        }
        Some(bin)
    }

    /// How many bins away from a guess a number above 0 is, if it is near.
    pub fn distance(&self, guess: u64, number: u64) -> Option<i64> {
        let away = if number < guess { -1 } else { 1 };
        (0..=NEAR).map(|far| far * away).find(|far| self.near(guess, *far).is_some_and(|bin| bin.has(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::time::{Bases, Time};

    fn bins(text: &str) -> Bins {
        let Ok(Time::Binned(Bases { all, .. })) = Time::read(text) else { panic!("{text}") };
        Bins::new(all)
    }

    /// No number of a bin is more than the base times another.
    fn check(bins: &Bins, bin: Bin) {
        assert!(bin.low <= bin.high);
        let most = u128::from(bin.low) * u128::from(bins.base) / u128::from(ONE);
        assert!(u128::from(bin.high) <= most.max(u128::from(bin.low)), "{bin:?}");
    }

    #[test]
    fn tables_have_every_number_once() {
        for text in ["binned=1.001", "binned=1.2", "binned=2", "binned=16"] {
            let bins = bins(text);
            let mut next = Some(0);
            for i in 0..bins.lows.len() {
                let bin = bins.get(i).unwrap();
                assert_eq!((Some(bin.low), bins.of(bin.low), bins.of(bin.high)), (next, i, i));
                check(&bins, bin);
                next = bin.high.checked_add(1);
            }
            assert_eq!((next, bins.get(bins.lows.len())), (None, None), "{text}");
        }
    }

    #[test]
    fn bins_around_a_guess_follow_each_other() {
        for text in ["binned=1.001", "binned=1.2", "binned=2", "binned=16"] {
            let bins = bins(text);
            for guess in [1, 2, 3, 10, 99, 12_345, 1 << 40, 1 << 63] {
                let mut before: Option<Bin> = None;
                for distance in -NEAR..=NEAR {
                    let Some(bin) = bins.near(guess, distance) else { continue };
                    assert!(bin.low > 0);
                    for number in [bin.low, bin.middle(), bin.high] {
                        assert_eq!(bins.distance(guess, number), Some(distance), "{text} {guess} {number}");
                    }
                    check(&bins, bin);
                    assert!(before.is_none_or(|before| before.high + 1 == bin.low));
                    before = Some(bin);
                }
                assert_eq!(bins.near(guess, 0).unwrap().middle(), guess);
            }
        }
    }
}
