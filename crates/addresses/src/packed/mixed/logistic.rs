//! Probabilities that learn, and how several are made one. Integers only, so that every machine comes to the same bytes.

/// Logarithms of odds have eight bits behind the point, and lie between these.
const FAR: i32 = 12 << 8;

/// Between probabilities of 16 bits and logarithms of their odds.
pub(crate) struct Curve {
    squashed: Box<[u16]>,
    stretched: Box<[i16]>,
}

/// e^(1/256), with 48 bits behind the point.
const STEP: u128 = 282_576_638_621_015;
const ONE: u128 = 1 << 48;

impl Curve {
    pub(crate) fn new() -> Curve {
        // Odds of x and of -x: one rises, the other is what is left.
        let mut odds = ONE;
        let mut squashed = vec![0u16; 2 * FAR as usize + 1];
        for x in 0..=FAR as usize {
            let above = ((odds << 16) / (odds + ONE)).min(65_535) as u16;
            squashed[FAR as usize + x] = above;
            squashed[FAR as usize - x] = (65_536 - u32::from(above)) as u16;
            odds = (odds * STEP) >> 48;
        }
        let mut x = 0;
        let stretch = |probability: u32| {
            while x < 2 * FAR as usize && u32::from(squashed[x]) < probability {
                x += 1;
            }
            (x as i32 - FAR) as i16
        };
        let stretched = (0..65_536).map(stretch).collect();
        Curve { stretched, squashed: squashed.into() }
    }

    #[inline(always)]
    pub(crate) fn squash(&self, x: i32) -> u32 {
        u32::from(self.squashed[(x.clamp(-FAR, FAR) + FAR) as usize])
    }

    #[inline(always)]
    pub(crate) fn stretch(&self, chance: Chance) -> i16 {
        self.stretched[chance.probability() as usize]
    }
}

/// How often something was so: 22 bits of probability, from the middle, and 10 of how often it was seen.
#[derive(Clone, Copy, Default)]
pub(crate) struct Chance(u32);

const SEEN: u32 = (1 << 10) - 1;
const MIDDLE: u32 = 1 << 31;

impl Chance {
    pub(crate) fn of(stored: u32) -> Chance {
        Chance(stored)
    }

    pub(crate) fn stored(self) -> u32 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn seen(self) -> u32 {
        self.0 & SEEN
    }

    #[inline(always)]
    fn probability(self) -> u32 {
        (self.0 ^ MIDDLE) >> 16
    }

    /// The mean of what was seen, until that is `most`; from then on what is older counts less.
    #[inline(always)]
    pub(crate) fn learn(&mut self, one: bool, most: u32) {
        let seen = self.seen();
        let before = ((self.0 ^ MIDDLE) >> 10) as i32;
        let target = if one { (1 << 22) - 1 } else { 0 };
        let now =
            before + ((i64::from(target - before) * i64::from(RECIPROCALS[seen as usize])) >> 16) as i32;
        self.0 = ((now as u32) << 10 ^ MIDDLE) | (seen + 1).min(most);
    }
}

/// Many of them, as numbers: memory that is all zeros costs nothing until it is used.
pub(crate) struct Chances(Box<[u32]>);

impl Chances {
    pub(crate) fn new(count: usize) -> Chances {
        Chances(vec![0; count].into())
    }

    #[inline(always)]
    pub(crate) fn at(&self, place: usize) -> Chance {
        Chance(self.0[place])
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, place: usize, one: bool, most: u32) {
        let mut chance = self.at(place);
        chance.learn(one, most);
        self.0[place] = chance.0;
    }
}

/// 2^17 / (2n + 3).
const RECIPROCALS: [u32; SEEN as usize + 1] = {
    let mut table = [0; SEEN as usize + 1];
    let mut n = 0;
    while n < table.len() {
        table[n] = (1 << 17) / (2 * n as u32 + 3);
        n += 1;
    }
    table
};

/// What a mixer takes at most; what is not used is 0.
pub(crate) const INPUTS: usize = 24;

pub(crate) type Inputs = [i16; INPUTS];

/// Weights have 16 bits behind the point.
const HEAVIEST: i32 = 1 << 19;

/// Sums of weighted inputs, one of several sets of weights at a time.
pub(crate) struct Mixer {
    weights: Box<[[i32; INPUTS]]>,
    rate: i32,
}

impl Mixer {
    pub(crate) fn new(sets: usize, weight: i32, rate: i32) -> Mixer {
        Mixer { weights: vec![[weight; INPUTS]; sets].into(), rate }
    }

    #[inline(always)]
    pub(crate) fn mix(&self, inputs: &Inputs, set: usize) -> i32 {
        // Sums stay below 2^31: weights have 15 bits here, inputs 13.
        let weighted = |(weight, input): (&i32, &i16)| i32::from((weight >> 5) as i16) * i32::from(*input);
        self.weights[set].iter().zip(inputs).map(weighted).sum::<i32>() >> 11
    }

    /// `error`: what it was, less what was said, as probabilities of 16 bits.
    #[inline(always)]
    pub(crate) fn learn(&mut self, inputs: &Inputs, set: usize, error: i32) {
        let error = ((error * self.rate + 16) >> 5) as i16;
        for (weight, input) in self.weights[set].iter_mut().zip(inputs) {
            let change = (i32::from(*input << 3) * i32::from(error) + (1 << 15)) >> 16;
            *weight = (*weight + change).clamp(-HEAVIEST, HEAVIEST);
        }
    }
}

/// What it was, less the probability that was said.
#[inline(always)]
pub(crate) fn error(one: bool, probability: u32) -> i32 {
    (i32::from(one) << 16) - probability as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_and_back() {
        let curve = Curve::new();
        assert_eq!((curve.squash(0), curve.squash(-99_999), curve.squash(99_999)), (32_768, 1, 65_535));
        // 1 / (1 + e^-1) and e^-3 / (1 + e^-3).
        assert_eq!((curve.squash(256), curve.squash(-768)), (47_910, 3109));
        for x in -FAR..=FAR {
            let chance = Chance(curve.squash(x) << 16 ^ MIDDLE);
            assert_eq!(curve.squash(i32::from(curve.stretch(chance))), curve.squash(x));
        }
    }

    #[test]
    fn a_chance_is_a_mean_at_first() {
        let mut chance = Chance::default();
        assert_eq!((chance.seen(), chance.probability()), (0, 32_768));
        (0..300).for_each(|n| chance.learn(n % 4 == 0, 255));
        assert!((15_500..17_500).contains(&chance.probability()), "{}", chance.probability());
        (0..3000).for_each(|_| chance.learn(true, 255));
        assert!(chance.probability() > 65_400 && chance.seen() == 255);
    }

    #[test]
    fn a_mixer_learns_whom_to_believe() {
        let (curve, mut mixer) = (Curve::new(), Mixer::new(1, 1 << 14, 6));
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..5000 {
            let one = random.bool();
            let mut inputs = [0; INPUTS];
            inputs[0] = if one { 500 } else { -500 };
            inputs[1] = if random.bool() { 500 } else { -500 };
            let said = curve.squash(mixer.mix(&inputs, 0));
            mixer.learn(&inputs, 0, error(one, said));
        }
        let [first, second, ..] = mixer.weights[0];
        assert!(first > 4 * second.abs(), "{first} {second}");
    }
}
