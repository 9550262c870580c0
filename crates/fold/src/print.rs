//! Fingerprints of sequences, joined as the sequences are: what a rule stands for has one without being expanded.
//!
//! A sequence is read as the digits of a number in a base that nobody would choose, modulo two primes of 61 bits. Integers
//! of 64 bits differ modulo one of the two at least; two sequences of n that differ have one print with a chance of about
//! (n / 2^61)^2. Neighbouring numbers at one distance, and running sums, have prints in closed form, as long as they stay
//! within 64 bits: what wraps is not linear.

use std::sync::LazyLock;

use crate::grammar::Grammar;
use crate::stream::summary::{Join, of_first, of_rules};

/// The primes are 2^61 less these.
const LESS: [u64; FIELDS] = [1, 31];
const BASES: [u64; FIELDS] = [0x0a3b_195f_4c7d_2e91, 0x1357_9bdf_0246_8ace];
const FIELDS: usize = 2;

fn prime(field: usize) -> u64 {
    (1 << 61) - LESS[field]
}

fn add(field: usize, a: u64, b: u64) -> u64 {
    let sum = a + b;
    if sum >= prime(field) { sum - prime(field) } else { sum }
}

fn subtract(field: usize, a: u64, b: u64) -> u64 {
    if a >= b { a - b } else { a + prime(field) - b }
}

fn multiply(field: usize, a: u64, b: u64) -> u64 {
    // 2^61 is as much as `LESS`: twice, and what is left has 61 bits and a little.
    let product = u128::from(a) * u128::from(b);
    let folded = (product >> 61) * u128::from(LESS[field]) + (product & ((1 << 61) - 1));
    let folded = (folded >> 61) as u64 * LESS[field] + (folded as u64 & ((1 << 61) - 1));
    if folded >= prime(field) { folded - prime(field) } else { folded }
}

fn power(field: usize, mut base: u64, mut exponent: u64) -> u64 {
    let mut out = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            out = multiply(field, out, base);
        }
        base = multiply(field, base, base);
        exponent >>= 1;
    }
    out
}

fn of_integer(field: usize, n: i64) -> u64 {
    i128::from(n).rem_euclid(prime(field).into()) as u64
}

/// Of a sequence of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Print {
    len: u64,
    /// The base to the power of the length.
    power: [u64; FIELDS],
    digits: [u64; FIELDS],
}

impl Default for Print {
    fn default() -> Print {
        Print { len: 0, power: [1; FIELDS], digits: [0; FIELDS] }
    }
}

fn each(of: impl Fn(usize) -> u64) -> [u64; FIELDS] {
    std::array::from_fn(of)
}

impl Print {
    pub fn of(value: i64) -> Print {
        Print { len: 1, power: BASES, digits: each(|field| of_integer(field, value)) }
    }

    /// Of `start, start + step, ...`, `n` numbers that do not wrap.
    pub fn progression(start: i64, step: i64, n: u64) -> Print {
        let power = each(|field| power(field, BASES[field], n));
        let digits = each(|field| {
            let (ones, counted) = ones(field, power[field], n);
            let start = multiply(field, of_integer(field, start), ones);
            add(field, start, multiply(field, of_integer(field, step), counted))
        });
        Print { len: n, power, digits }
    }

    /// Of numbers that have no print in closed form: two are equal if they are told in the same words.
    pub fn of_words(words: &[u64], n: u64) -> Print {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let digits = each(|field| crate::xxh64(&bytes, 1 + field as u64) % prime(field));
        Print { len: n, power: each(|field| power(field, BASES[field], n)), digits }
    }

    /// Without what comes first, of which this is the print.
    pub fn without(self, first: Print) -> Print {
        let len = self.len - first.len;
        let power = each(|field| power(field, BASES[field], len));
        let digits = each(|field| {
            subtract(field, self.digits[field], multiply(field, first.digits[field], power[field]))
        });
        Print { len, power, digits }
    }
}

/// The digits of `n` ones, and those of 0, 1, 2, ..., given the base to the power of `n`.
fn ones(field: usize, power_of_n: u64, n: u64) -> (u64, u64) {
    /// Of the bases less one.
    static INVERSES: LazyLock<[u64; FIELDS]> =
        LazyLock::new(|| each(|field| power(field, subtract(field, BASES[field], 1), prime(field) - 2)));
    let inverse = INVERSES[field];
    let ones = multiply(field, subtract(field, power_of_n, 1), inverse);
    let counted = multiply(field, subtract(field, ones, n % prime(field)), inverse);
    (ones, counted)
}

/// The base to the power of the length times `count`, and the sum of the powers of the one before, so many of them.
fn repeated(field: usize, mut one: u64, mut count: u64) -> (u64, u64) {
    // (power, sum) of what is done, and of blocks that double.
    let (mut done, mut block) = ((1, 0), (one, 1));
    while count > 0 {
        if count & 1 == 1 {
            done = (multiply(field, done.0, block.0), add(field, multiply(field, done.1, block.0), block.1));
        }
        block.1 = add(field, multiply(field, block.1, one), block.1);
        one = multiply(field, one, one);
        block.0 = one;
        count >>= 1;
    }
    done
}

impl Join for Print {
    fn len(&self) -> u64 {
        self.len
    }

    fn then(self, next: Print) -> Print {
        Print {
            len: self.len.saturating_add(next.len),
            power: each(|field| multiply(field, self.power[field], next.power[field])),
            digits: each(|field| {
                add(field, multiply(field, self.digits[field], next.power[field]), next.digits[field])
            }),
        }
    }

    fn times(self, count: u64) -> Print {
        match count {
            0 => Print::default(),
            1 => self,
            _ => {
                let both: [(u64, u64); FIELDS] =
                    std::array::from_fn(|field| repeated(field, self.power[field], count));
                Print {
                    len: self.len.saturating_mul(count),
                    power: each(|field| both[field].0),
                    digits: each(|field| multiply(field, self.digits[field], both[field].1)),
                }
            }
        }
    }
}

/// The same of running sums: the print is that of the sums, given the steps; where the sums begin is known later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rising {
    /// If they begin at nought.
    sums: Print,
    /// What each more at the beginning adds.
    ones: [u64; FIELDS],
    total: [u64; FIELDS],
}

impl Rising {
    pub fn of(step: i64) -> Rising {
        let sums = Print::of(step);
        Rising { sums, ones: [1; FIELDS], total: sums.digits }
    }

    pub fn print(self) -> Print {
        self.sums
    }
}

impl Join for Rising {
    fn len(&self) -> u64 {
        self.sums.len
    }

    fn then(self, next: Rising) -> Rising {
        let mut sums = self.sums.then(next.sums);
        sums.digits = each(|field| {
            let lift = multiply(field, self.total[field], next.ones[field]);
            add(field, sums.digits[field], lift)
        });
        let power = |field: usize| next.sums.power[field];
        Rising {
            sums,
            ones: each(|f| add(f, multiply(f, self.ones[f], power(f)), next.ones[f])),
            total: each(|f| add(f, self.total[f], next.total[f])),
        }
    }

    fn times(self, mut count: u64) -> Rising {
        let (mut done, mut block) = (Rising::default(), self);
        while count > 0 {
            if count & 1 == 1 {
                done = done.then(block);
            }
            block = block.then(block);
            count >>= 1;
        }
        done
    }
}

/// The first place at which two sequences differ, given what their beginnings look like; `None` if the first `n` are equal.
pub(crate) fn first_difference(n: u64, a: impl Fn(u64) -> Print, b: impl Fn(u64) -> Print) -> Option<u64> {
    if a(n) == b(n) {
        return None;
    }
    let (mut equal, mut differ) = (0, n);
    while differ - equal > 1 {
        let middle = equal + (differ - equal) / 2;
        *(if a(middle) == b(middle) { &mut equal } else { &mut differ }) = middle;
    }
    Some(equal)
}

impl Grammar {
    /// The first place at which what two grammars stand for differs, or one of them ends; `None` if it is the same. What
    /// terminals are is told by numbers, equal ones for equal ones. Takes time in the size of the grammars.
    pub fn first_difference(
        &self,
        of: impl Fn(u32) -> u32,
        other: &Grammar,
        of_other: impl Fn(u32) -> u32,
    ) -> Option<u64> {
        let (len, other_len) = (self.len(), other.len());
        let shorter = len.min(other_len);
        let (a, b) = (Prints::new(self, of), Prints::new(other, of_other));
        let found = first_difference(shorter, |n| a.first(n), |n| b.first(n));
        found.or((len != other_len).then_some(shorter))
    }

    /// The place at which a terminal comes for the time after `before` others. Takes time in the size of the grammar.
    pub fn place_of(&self, terminal: u32, before: u64) -> Option<u64> {
        use crate::grammar::{Symbol, bottom_up, lengths};
        let lengths = lengths(&self.rules, |_| 1);
        let mut counts = vec![0u64; self.rules.len()];
        let one = |counts: &[u64], symbol| match symbol {
            Symbol::Terminal(t) => u64::from(t == terminal),
            Symbol::Rule(rule) => counts.get(rule as usize).copied().unwrap_or(0),
        };
        for rule in bottom_up(&self.rules, [0]) {
            counts[rule as usize] = self.rules[rule as usize].iter().fold(0, |sum: u64, item| {
                sum.saturating_add(one(&counts, item.symbol).saturating_mul(item.count))
            });
        }
        let (mut left, mut place) = (before, 0u64);
        let mut items: &[crate::grammar::Item] = self.rules.first()?;
        loop {
            let mut found = None;
            for item in items {
                let have = one(&counts, item.symbol);
                let length = match item.symbol {
                    Symbol::Terminal(_) => 1,
                    Symbol::Rule(rule) => lengths.get(rule as usize).copied().unwrap_or(0),
                };
                if left < have.saturating_mul(item.count) {
                    let whole = left / have;
                    left -= whole * have;
                    place = place.saturating_add(whole.saturating_mul(length));
                    found = Some(item.symbol);
                    break;
                }
                left -= have.saturating_mul(item.count);
                place = place.saturating_add(length.saturating_mul(item.count));
            }
            match found? {
                Symbol::Terminal(_) => return Some(place),
                Symbol::Rule(rule) => items = self.rules.get(rule as usize)?,
            }
        }
    }
}

/// Of all rules of a grammar.
struct Prints<'a, F> {
    grammar: &'a Grammar,
    rules: Vec<Print>,
    of: F,
}

impl<'a, F: Fn(u32) -> u32> Prints<'a, F> {
    fn new(grammar: &'a Grammar, of: F) -> Prints<'a, F> {
        let rules = of_rules(&grammar.rules, |t| Print::of(of(t).into()));
        Prints { grammar, rules, of }
    }

    /// Of the first `n`, which must be there.
    fn first(&self, n: u64) -> Print {
        let whole = |t: u32| Print::of((self.of)(t).into());
        of_first(&self.grammar.rules, &self.rules, n, whole, |_, _| Print::default(), |_, _| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::loops;
    use fastrand::Rng;

    fn print_of(values: &[i64]) -> Print {
        values.iter().fold(Print::default(), |all, value| all.then(Print::of(*value)))
    }

    #[test]
    fn the_primes_are_primes() {
        for (field, base) in BASES.into_iter().enumerate() {
            let prime = prime(field);
            let odd = (prime - 1) >> (prime - 1).trailing_zeros();
            // Miller and Rabin: these witnesses do for all numbers of 64 bits.
            for witness in [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37] {
                let mut x = power(field, witness, odd);
                let mut rounds = (prime - 1).trailing_zeros() - 1;
                while x != 1 && x != prime - 1 && rounds > 0 {
                    x = multiply(field, x, x);
                    rounds -= 1;
                }
                assert!(x == prime - 1 || x == 1, "{prime} {witness}");
            }
            assert!(base < prime);
        }
    }

    #[test]
    fn closed_forms_are_what_they_stand_for() {
        let mut random = Rng::with_seed(3);
        for _ in 0..300 {
            let (start, step) = (random.u64(..) as i64 >> 20, random.u64(..) as i64 >> 40);
            let n = random.u64(..40);
            let values: Vec<i64> = (0..n as i64).map(|i| start + step * i).collect();
            assert_eq!(Print::progression(start, step, n), print_of(&values));
            let steps: Vec<i64> = (0..random.u64(..9)).map(|_| random.u64(..) as i64 >> 30).collect();
            let one = steps.iter().fold(Rising::default(), |all, step| all.then(Rising::of(*step)));
            let count = random.u64(..12);
            let mut sum = 0;
            let sums: Vec<i64> = (0..count)
                .flat_map(|_| &steps)
                .map(|step| {
                    sum += step;
                    sum
                })
                .collect();
            assert_eq!(one.times(count).print(), print_of(&sums));
            assert_eq!(print_of(&values).times(count), print_of(&values.repeat(count as usize)));
            let cut = random.u64(..n + 1) as usize;
            assert_eq!(print_of(&values).without(print_of(&values[..cut])), print_of(&values[cut..]));
        }
        assert_ne!(Print::of(i64::MIN), Print::of(i64::MAX));
        assert_ne!(Print::of(0), Print::of(prime(0) as i64));
    }

    #[test]
    fn the_first_difference_of_grammars_is_found() {
        let mut random = Rng::with_seed(11);
        for round in 0..300 {
            let length = 1 + random.u64(..400) as usize;
            let sequence = loops(&mut random, 5, length);
            let mut other = sequence.clone();
            match random.u64(..4) {
                0 => {}
                1 => other.truncate(random.u64(..other.len() as u64 + 1) as usize),
                2 => other.insert(random.u64(..other.len() as u64 + 1) as usize, random.u64(..6) as u32),
                _ => {
                    let at = random.u64(..other.len() as u64) as usize;
                    other[at] = random.u64(..6) as u32;
                }
            }
            let (a, b): (Grammar, Grammar) =
                (sequence.iter().copied().collect(), other.iter().map(|symbol| symbol + 7).collect());
            let common = sequence.iter().zip(&other).take_while(|(a, b)| a == b).count();
            let expected = (sequence != other).then_some(common as u64);
            assert_eq!(a.first_difference(|t| t, &b, |t| t - 7), expected, "{round}");
            for symbol in 0..6 {
                let places = (0..).zip(&sequence).filter(|(_, s)| **s == symbol).map(|(at, _)| at);
                let places: Vec<u64> = places.collect();
                for (before, place) in (0..).zip(&places) {
                    assert_eq!(a.place_of(symbol, before), Some(*place));
                }
                assert_eq!(a.place_of(symbol, places.len() as u64), None);
            }
        }
    }

    #[test]
    fn long_sequences_cost_no_more() {
        use crate::grammar::{Item, Symbol};
        let grammar = |count: u64, last: u32| {
            let item = |symbol, count| Item { symbol, count };
            let inner = vec![item(Symbol::Terminal(0), 3), item(Symbol::Terminal(1), 1)];
            Grammar {
                rules: vec![vec![item(Symbol::Rule(1), count), item(Symbol::Terminal(last), 1)], inner],
            }
        };
        let (a, b) = (grammar(1 << 60, 2), grammar(1 << 60, 3));
        assert_eq!(a.first_difference(|t| t, &a, |t| t), None);
        assert_eq!(a.first_difference(|t| t, &b, |t| t), Some(1 << 62));
        assert_eq!(a.first_difference(|t| t, &grammar((1 << 60) - 1, 0), |t| t), Some((1 << 62) - 3));
        assert_eq!(a.place_of(1, 1 << 59), Some((1 << 61) + 3));
    }
}
