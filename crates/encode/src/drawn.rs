//! Numbers drawn from histograms: the reading side of `--lossy histograms`.
//!
//! Such a lane has as many numbers as before, sorted. They are drawn without putting them back: each number that is left is as
//! likely as any other, so that in the end each has come as often as it is there. What is drawn depends on the seed and on
//! the place of the lane alone, so that everybody who reads a rank with the same seed draws the same.

use std::collections::HashMap;

use refrain_fold::stream::{Folder, Stream};
use refrain_model::Histograms;

use crate::hash::mix;

/// How numbers of histograms are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    pub seed: u64,
    /// As the trace was recorded.
    pub histograms: Histograms,
}

/// Names keep bins of their own beside the others.
const MOST_NAMES: usize = 8;

/// What is left of a histogram.
#[derive(Debug, Clone)]
pub(crate) struct Bins {
    /// Numbers, and how often each is still to come.
    left: Vec<(i64, u64)>,
    total: u64,
    random: u64,
}

impl Bins {
    /// The first `used` numbers of a stream, if they are sorted and there are several, but no more than a histogram has.
    fn of(stream: &Stream, used: u64, draw: &Draw, place: u64) -> Option<Bins> {
        let (least, most) = stream.min_max(used)?;
        if least == most {
            return None;
        }
        let most_bins = (draw.histograms.bins as usize).saturating_add(MOST_NAMES);
        let largest = |count: u64| stream.min_max(count).map(|(_, most)| most);
        let mut left: Vec<(i64, u64)> = Vec::new();
        let mut begin = 0;
        while begin < used {
            let number = largest(begin + 1)?;
            // The end of the numbers that are no larger: `first` are, `last` are not.
            let (mut first, mut last) = (begin + 1, used + 1);
            while last - first > 1 {
                let middle = first + (last - first) / 2;
                if largest(middle)? == number { first = middle } else { last = middle }
            }
            left.push((number, first - begin));
            if left.len() > most_bins {
                return None;
            }
            begin = first;
        }
        let mut sorted = Folder::new();
        left.iter().for_each(|(number, times)| sorted.push_n(*number, *times));
        if sorted.finish().first_difference(stream, used).is_some() {
            return None;
        }
        Some(Bins { left, total: used, random: mix(draw.seed, place) })
    }

    /// The next one. Where more are asked for than there were, the last one again.
    fn draw(&mut self) -> i64 {
        if self.total == 0 {
            return self.left.last().map_or(0, |(number, _)| *number);
        }
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let drawn = mix(self.random, 1);
        let mut place = ((u128::from(drawn) * u128::from(self.total)) >> 64) as u64;
        self.total -= 1;
        for (number, times) in &mut self.left {
            if place < *times {
                *times -= 1;
                return *number;
            }
            place -= *times;
        }
        0
    }
}

/// The histograms of one thread, by symbol and lane.
#[derive(Debug, Clone, Default)]
pub(crate) struct Drawn(HashMap<(u32, u16), Bins>);

impl Drawn {
    /// One lane of a thread of a rank.
    pub(crate) fn add(
        &mut self,
        (rank, thread): (u32, u32),
        (symbol, lane): (u32, u16),
        (stream, used): (&Stream, u64),
        draw: &Draw,
    ) {
        let numbers = [rank, thread, symbol, u32::from(lane)];
        let place = numbers.into_iter().fold(0, |hash, number| mix(hash, number.into()));
        if let Some(bins) = Bins::of(stream, used, draw, place) {
            self.0.insert((symbol, lane), bins);
        }
    }

    /// `None` where the lane is no histogram.
    pub(crate) fn next(&mut self, symbol: u32, lane: u16) -> Option<i64> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get_mut(&(symbol, lane)).map(Bins::draw)
    }

    /// The symbols that have histograms.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = u32> {
        self.0.keys().map(|(symbol, _)| *symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seed: u64) -> Draw {
        Draw { seed, histograms: Histograms { trigger: 1, bins: 4 } }
    }

    fn stream(numbers: &[(i64, u64)]) -> (Stream, u64) {
        let mut folder = Folder::new();
        numbers.iter().for_each(|(number, times)| folder.push_n(*number, *times));
        (folder.finish(), numbers.iter().map(|(_, times)| times).sum())
    }

    fn drawn(numbers: &[(i64, u64)], seed: u64, place: u64) -> Option<Vec<i64>> {
        let (stream, used) = stream(numbers);
        let mut bins = Bins::of(&stream, used, &draw(seed), place)?;
        Some((0..used).map(|_| bins.draw()).collect())
    }

    #[test]
    fn every_number_comes_as_often_as_it_was_there() {
        let numbers = [(-3, 50), (0, 1), (7, 1000), (8, 3)];
        let first = drawn(&numbers, 1, 0).unwrap();
        let mut sorted = first.clone();
        sorted.sort_unstable();
        let expected: Vec<i64> =
            numbers.iter().flat_map(|(number, times)| (0..*times).map(|_| *number)).collect();
        assert_eq!(sorted, expected);
        assert_ne!(first, expected);
        // Half of the numbers have about half of each kind.
        let half = first[..527].iter().filter(|number| **number == -3).count();
        assert!((12..=38).contains(&half), "{half}");
    }

    #[test]
    fn the_same_seed_and_place_draw_the_same() {
        let numbers = [(1, 40), (2, 40)];
        assert_eq!(drawn(&numbers, 5, 9), drawn(&numbers, 5, 9));
        assert_ne!(drawn(&numbers, 5, 9), drawn(&numbers, 6, 9));
        assert_ne!(drawn(&numbers, 5, 9), drawn(&numbers, 5, 10));
    }

    #[test]
    fn what_is_no_histogram_stays() {
        for numbers in [
            &[(5, 1000)][..],
            &[(5, 3), (4, 3)],
            &[(1, 2), (2, 2), (1, 2)],
            &(0..100).map(|number| (number, 1)).collect::<Vec<_>>()[..],
        ] {
            assert_eq!(drawn(numbers, 1, 0), None, "{numbers:?}");
        }
    }
}
