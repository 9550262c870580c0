//! Numbers as bytes, each stretch in the way that suits it best.
//!
//! A [`Method`] turns numbers into bytes and back. A [`Methods`] has several, tries them on each stretch and keeps the
//! shortest result with the method's number. Whoever knows a better way for some kind of numbers adds it, under a number
//! of its own.
//!
//! ```
//! use refrain_fold::pack::{Kind, Methods};
//! let mut methods = Methods::quick();
//! let times: Vec<i64> = (0..1000).map(|i: i64| 5000 * i + i * i % 97).collect();
//! let (method, bytes) = methods.pack(Kind::TIME, &times);
//! assert!(bytes.len() < 1300);
//! let mut again = Vec::new();
//! methods.unpack(method, &bytes, times.len(), &mut again).unwrap();
//! assert_eq!(again, times);
//! ```

use crate::entropy::{self, bins};
use std::fmt;

pub use crate::entropy::Damaged;

/// What numbers mean. The numbers of kinds are in files; a reader passes on those it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(pub u8);

impl Kind {
    /// Any number.
    pub const NUMBER: Kind = Kind(0);
    /// Nanoseconds since some beginning.
    pub const TIME: Kind = Kind(1);
    /// Nanoseconds.
    pub const DURATION: Kind = Kind(2);
    /// In memory; negative numbers are the upper half.
    pub const ADDRESS: Kind = Kind(3);
    /// References in pairs: which instruction, and the address.
    pub const REFERENCE: Kind = Kind(4);
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Kind::NUMBER => write!(f, "number"),
            Kind::TIME => write!(f, "time"),
            Kind::DURATION => write!(f, "duration"),
            Kind::ADDRESS => write!(f, "address"),
            Kind::REFERENCE => write!(f, "reference"),
            Kind(other) => write!(f, "kind {other}"),
        }
    }
}

/// The numbers of methods, which are in files.
pub mod number {
    /// Eight bytes each.
    pub const PLAIN: u8 = 0;
    /// The shape of a stream, as section `streams` has it.
    pub const SHAPE: u8 = 1;
    /// [`crate::entropy::bins`].
    pub const BINS: u8 = 2;
    /// Blocks of [`crate::entropy`].
    pub const BLOCKS: u8 = 3;
    /// Guessed by what came before, as address traces are.
    pub const GUESSED: u8 = 4;
    /// The starts and ends of calls, packed beside the calls: crate `times`.
    pub const SPANS: u8 = 5;
    /// As `GUESSED`, of pairs.
    pub const FOLLOWED: u8 = 6;
}

/// One way to write numbers down.
pub trait Method {
    /// As in files.
    fn number(&self) -> u8;

    /// The bytes, if they are fewer than `most` or may be: a method need not go on when it sees that they are not.
    fn pack(&mut self, kind: Kind, numbers: &[i64], most: usize) -> Option<Vec<u8>>;

    /// The numbers again, behind what is there. Whatever the bytes, at most `count` of them.
    fn unpack(&mut self, bytes: &[u8], count: usize, into: &mut Vec<i64>) -> Result<(), Damaged>;

    /// Takes so long that a running program should not pay for it.
    fn is_slow(&self) -> bool {
        false
    }
}

/// Several methods, in the order in which they are tried.
pub struct Methods {
    list: Vec<Box<dyn Method + Send>>,
    /// Whether slow ones pack.
    slow: bool,
}

impl Methods {
    /// For a program that runs: tens of nanoseconds a number.
    pub fn quick() -> Methods {
        Methods { list: vec![Box::new(Plain), Box::new(Bins), Box::new(Blocks)], slow: false }
    }

    /// For files that are to be small.
    pub fn small() -> Methods {
        Methods { slow: true, ..Methods::quick() }
    }

    /// One alone.
    pub fn only(method: impl Method + Send + 'static) -> Methods {
        Methods { list: vec![Box::new(method), Box::new(Plain)], slow: true }
    }

    /// One more, which is tried before the others: one that is cheap where it is of use.
    pub fn first(mut self, method: impl Method + Send + 'static) -> Methods {
        self.list.insert(0, Box::new(method));
        self
    }

    /// One more, which is tried after the others.
    pub fn with(mut self, method: impl Method + Send + 'static) -> Methods {
        self.list.push(Box::new(method));
        self
    }

    /// The shortest bytes, and the method that made them.
    pub fn pack(&mut self, kind: Kind, numbers: &[i64]) -> (u8, Vec<u8>) {
        let mut best: Option<(u8, Vec<u8>)> = None;
        for method in self.list.iter_mut().filter(|method| self.slow || !method.is_slow()) {
            let most = best.as_ref().map_or(numbers.len() * 8 + 1, |best| best.1.len());
            // Less than half a bit each: there is nothing left to gain.
            if most <= numbers.len() / 16 {
                break;
            }
            if let Some(bytes) = method.pack(kind, numbers, most).filter(|bytes| bytes.len() < most) {
                best = Some((method.number(), bytes));
            }
        }
        best.unwrap_or_else(|| (number::PLAIN, plain(numbers)))
    }

    /// What [`Methods::pack`] made, behind what is in `into` already. Safe on any bytes.
    pub fn unpack(
        &mut self,
        method: u8,
        bytes: &[u8],
        count: usize,
        into: &mut Vec<i64>,
    ) -> Result<(), Damaged> {
        let begin = into.len();
        let found = self.list.iter_mut().find(|known| known.number() == method).ok_or(Damaged)?;
        let done = found.unpack(bytes, count, into);
        if done.is_err() || into.len() - begin != count {
            into.truncate(begin);
            return Err(Damaged);
        }
        Ok(())
    }

    /// Whether this method is among them.
    pub fn know(&self, method: u8) -> bool {
        self.list.iter().any(|known| known.number() == method)
    }
}

struct Plain;

fn plain(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

impl Method for Plain {
    fn number(&self) -> u8 {
        number::PLAIN
    }

    /// It is what is left if nothing else does better.
    fn pack(&mut self, _: Kind, _: &[i64], _: usize) -> Option<Vec<u8>> {
        None
    }

    fn unpack(&mut self, bytes: &[u8], count: usize, into: &mut Vec<i64>) -> Result<(), Damaged> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        if numbers.len() != count || !rest.is_empty() {
            return Err(Damaged);
        }
        into.extend(numbers.iter().map(|number| i64::from_le_bytes(*number)));
        Ok(())
    }
}

struct Bins;

impl Method for Bins {
    fn number(&self) -> u8 {
        number::BINS
    }

    fn pack(&mut self, _: Kind, numbers: &[i64], _: usize) -> Option<Vec<u8>> {
        (numbers.len() <= bins::LONGEST).then(|| bins::encode(numbers))
    }

    fn unpack(&mut self, bytes: &[u8], count: usize, into: &mut Vec<i64>) -> Result<(), Damaged> {
        bins::decode(bytes, count, into)
    }
}

/// Equal neighbours counted.
fn runs(numbers: &[i64]) -> Vec<(i64, u64)> {
    numbers.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect()
}

/// Blocks of [`entropy::LONGEST`] numbers, the last shorter; each but the last with its length before it, in four bytes.
struct Blocks;

impl Method for Blocks {
    fn number(&self) -> u8 {
        number::BLOCKS
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn pack(&mut self, _: Kind, numbers: &[i64], most: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut blocks = numbers.chunks(entropy::LONGEST).peekable();
        while let Some(block) = blocks.next() {
            let packed = entropy::encode(&runs(block));
            if blocks.peek().is_some() {
                bytes.extend((packed.len() as u32).to_le_bytes());
            }
            bytes.extend(packed);
            if bytes.len() >= most {
                return None;
            }
        }
        Some(bytes)
    }

    fn unpack(&mut self, mut bytes: &[u8], count: usize, into: &mut Vec<i64>) -> Result<(), Damaged> {
        let mut left = count;
        while left > 0 {
            let here = left.min(entropy::LONGEST);
            let mut block = bytes;
            if left > here {
                let (length, rest) = bytes.split_first_chunk().ok_or(Damaged)?;
                (block, bytes) =
                    rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(Damaged)?;
            }
            for (value, count) in entropy::decode(block, here as u64)? {
                into.extend(std::iter::repeat_n(value, count as usize));
            }
            left -= here;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn every_method_gives_the_numbers_back() {
        let mut random = Rng::with_seed(3);
        for count in [0usize, 1, 100, entropy::LONGEST, entropy::LONGEST + 1, 3 * entropy::LONGEST + 5] {
            let numbers: Vec<i64> = (0..count as i64).map(|i| i * 100 + random.u64(..50) as i64).collect();
            for mut methods in [Methods::quick(), Methods::small()] {
                let (method, bytes) = methods.pack(Kind::NUMBER, &numbers);
                let mut again = vec![5];
                methods.unpack(method, &bytes, count, &mut again).unwrap();
                assert!(again[0] == 5 && again[1..] == numbers);
                assert!(methods.unpack(99, &bytes, count, &mut again).is_err() && !methods.know(99));
            }
            for method in [&mut Plain as &mut dyn Method, &mut Bins, &mut Blocks] {
                let bytes =
                    method.pack(Kind::NUMBER, &numbers, usize::MAX).unwrap_or_else(|| plain(&numbers));
                let mut again = Vec::new();
                method.unpack(&bytes, count, &mut again).unwrap();
                assert_eq!(again, numbers);
            }
        }
    }

    #[test]
    fn the_slow_one_is_asked_only_where_size_is_all() {
        // What followed four numbers before follows again: only the slow method sees that.
        let mut random = Rng::with_seed(4);
        let round: Vec<i64> = (0..500).map(|_| random.u64(..) as i64 >> 20).collect();
        let numbers = round.repeat(8);
        let quick = Methods::quick().pack(Kind::NUMBER, &numbers);
        let small = Methods::small().pack(Kind::NUMBER, &numbers);
        assert_eq!((quick.0, small.0), (number::BINS, number::BLOCKS));
        assert!(small.1.len() * 4 < quick.1.len());
    }
}
