//! Parts of a stream that are written down another way.

use super::rows::{self, DEEPEST};
use super::summary::{Climb, Join, Summary, summary};
use super::{Error, Inside, Iter, Stream, Term};
use crate::entropy;
use std::fmt;

/// Numbers that are not told by values and strides.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Block {
    /// Numbers without a shape, entropy coded ([`entropy::encode`]). At most [`entropy::LONGEST`], equal neighbours
    /// taken once.
    Packed {
        /// How many numbers.
        count: u32,
        /// What they were packed into.
        bytes: Box<[u8]>,
    },
    /// Running sums: each number is the one before (zero at first) and the next of `steps`, a stream of values without
    /// strides or blocks. Nested strides are of this kind: 0 1 2 10 11 12 20 21 22 are steps of 0, then 1 1 8 over and
    /// over. `count` numbers; where it is the last item of the stream it goes on for ever, and `count` is zero.
    Running {
        /// How many numbers; 0 for ever.
        count: u64,
        /// From each number to the next.
        steps: Box<Stream>,
    },
    /// Rows of numbers at one distance: see [`Rows`]. `count` is as above.
    Rows {
        /// How many numbers; 0 for ever.
        count: u64,
        /// The rows.
        rows: Box<Rows>,
    },
}

/// Row after row: each begins with the next of `starts` and has as many numbers, `step` apart, as the next of `counts`
/// says, but at least one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rows {
    /// From one number of a row to the next.
    pub step: i64,
    /// The first number of each row.
    pub starts: Stream,
    /// How many numbers each row has.
    pub counts: Stream,
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Block::Packed { count, bytes } => write!(f, "Packed({count} in {} bytes)", bytes.len()),
            Block::Running { count, steps } => write!(f, "Running({count} of {steps:?})"),
            Block::Rows { count, rows } => write!(f, "Rows({count} of {rows:?})"),
        }
    }
}

impl Block {
    /// Of numbers with how often each stands in a row: at most [`entropy::LONGEST`], for less than 2^32 numbers.
    pub fn pack(runs: &[(i64, u64)]) -> Block {
        debug_assert!(runs.len() <= entropy::LONGEST);
        let count: u64 = runs.iter().map(|run| run.1).sum();
        debug_assert!(u32::try_from(count).is_ok());
        Block::Packed { count: count as u32, bytes: entropy::encode(runs).into() }
    }

    /// The numbers of a packed block, with how often each stands in a row; none if it is damaged.
    pub fn unpack(&self) -> Vec<(i64, u64)> {
        match self {
            Block::Packed { count, bytes } => entropy::decode(bytes, (*count).into()).unwrap_or_default(),
            Block::Running { .. } | Block::Rows { .. } => Vec::new(),
        }
    }

    /// How many numbers.
    pub fn len(&self) -> u64 {
        match *self {
            Block::Packed { count, .. } => count.into(),
            Block::Running { count, .. } | Block::Rows { count, .. } => count,
        }
    }

    /// It has no numbers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let inside = match self {
            Block::Packed { bytes, .. } => bytes.len(),
            Block::Running { steps, .. } => memory_of(steps),
            Block::Rows { rows, .. } => 8 + memory_of(&rows.starts) + memory_of(&rows.counts),
        };
        size_of::<Block>() + inside
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            Block::Packed { count, bytes } => {
                let numbers = entropy::decode(bytes, (*count).into());
                if *count == 0 || numbers.is_err() { Err(Error::BadBlock) } else { Ok(()) }
            }
            Block::Running { .. } => self.check_but_packed(),
            Block::Rows { rows, .. } => {
                self.check_but_packed()?;
                rows.starts.validate()?;
                rows.counts.validate()
            }
        }
    }

    pub(super) fn check_but_packed(&self) -> Result<(), Error> {
        match self {
            Block::Packed { count: 0, .. } => Err(Error::BadBlock),
            Block::Packed { .. } => Ok(()),
            Block::Running { steps, .. } => {
                let plain = steps.terms.iter().all(|term| matches!(term, Term::Value(_)));
                if !plain || !steps.blocks.is_empty() {
                    return Err(Error::BadBlock);
                }
                steps.validate()
            }
            Block::Rows { rows, .. } => {
                if self.depth() > DEEPEST {
                    return Err(Error::BadBlock);
                }
                rows.starts.validate_but_blocks()?;
                rows.counts.validate_but_blocks()
            }
        }
    }

    /// Of its first `n` numbers; a running one goes on beyond its count.
    pub(super) fn summary(&self, n: u64) -> Summary {
        match self {
            Block::Packed { .. } => {
                let mut left = n;
                self.unpack().into_iter().fold(Summary::default(), |all, (value, count)| {
                    let taken = count.min(left);
                    left -= taken;
                    all.then(Summary::of(value).times(taken))
                })
            }
            Block::Running { steps, .. } => climb(steps, n).summary().unwrap_or_else(|| wrapping(steps, n)),
            Block::Rows { rows, .. } => rows.summary(n),
        }
    }
}

fn memory_of(stream: &Stream) -> usize {
    let items = stream.shape.rules.iter().map(|rule| rule.len() * 16).sum::<usize>();
    let blocks = stream.blocks.iter().map(Block::memory).sum::<usize>();
    size_of::<Stream>() + stream.terms.len() * size_of::<Term>() + items + blocks
}

pub(super) fn climb(steps: &Stream, n: u64) -> Climb {
    let whole = |t: u32| match steps.terms.get(t as usize) {
        Some(&Term::Value(step)) => Climb::of(step),
        _ => Climb::default(),
    };
    summary(&steps.shape.rules, n, whole, |_, _| Climb::default(), |_, _| None)
}

/// Running sums that wrap are looked at one by one, the first so many.
const MOST_WALKED: u64 = 1 << 20;

/// Of running sums that wrap. Beyond [`MOST_WALKED`] numbers, the others are taken to be like these.
fn wrapping(steps: &Stream, n: u64) -> Summary {
    let mut sum = 0i64;
    let numbers = steps.iter().take(n.min(MOST_WALKED) as usize).map(|step| {
        sum = sum.wrapping_add(step);
        Summary::of(sum)
    });
    let seen = numbers.fold(Summary::default(), Summary::then);
    if seen.len == 0 || seen.len == n {
        return seen;
    }
    let each = seen.sum / i128::from(seen.len);
    let rest = each.saturating_mul((n - seen.len).into());
    Summary { len: n, sum: seen.sum.saturating_add(rest), ..seen }
}

/// The numbers of a block, one after the other.
#[derive(Debug, Clone)]
pub(super) enum Play<'a> {
    Packed { runs: Vec<(i64, u64)>, at: usize, done: u64 },
    Running { count: u64, start: Box<Iter<'a>>, steps: Box<Iter<'a>>, sum: i64, left: u64 },
    Rows { count: u64, start: Box<rows::Walk<'a>>, walk: Box<rows::Walk<'a>>, left: u64 },
}

impl<'a> Play<'a> {
    /// `endless` lets a running one go on beyond its count, and `own` are its steps where they are not those of the
    /// block. `None` if no number would come.
    pub fn new(block: &'a Block, endless: bool, own: &Inside) -> Option<Play<'a>> {
        match block {
            Block::Packed { .. } => {
                let runs = block.unpack();
                (!runs.is_empty()).then_some(Play::Packed { runs, at: 0, done: 0 })
            }
            Block::Running { count, steps } => {
                let own = if let Inside::Running(own) = own { Some(own.clone()) } else { None };
                let start = Box::new(steps.iter_with(own));
                start.clone().next()?;
                let count = if endless { u64::MAX } else { *count };
                (count > 0).then(|| Play::Running { count, steps: start.clone(), start, sum: 0, left: count })
            }
            Block::Rows { count, rows } => {
                let (step, starts, counts) = match own {
                    Inside::Rows { step, starts, counts } => {
                        (*step, Some(starts.clone()), Some(counts.clone()))
                    }
                    _ => (rows.step, None, None),
                };
                let (starts, counts) = (rows.starts.iter_with(starts), rows.counts.iter_with(counts));
                let start = Box::new(rows::Walk::new(step, starts, counts));
                start.clone().next()?;
                let count = if endless { u64::MAX } else { *count };
                (count > 0).then(|| Play::Rows { count, walk: start.clone(), start, left: count })
            }
        }
    }

    /// From the beginning.
    pub fn again(&mut self) {
        match self {
            Play::Packed { at, done, .. } => (*at, *done) = (0, 0),
            Play::Running { count, start, steps, sum, left } => {
                (*sum, *left) = (0, *count);
                steps.clone_from(start);
            }
            Play::Rows { count, start, walk, left } => {
                *left = *count;
                walk.clone_from(start);
            }
        }
    }

    /// Passes over `n` numbers, none of which has been taken.
    pub fn pass(&mut self, n: u64) {
        match self {
            Play::Packed { runs, at, done } => {
                let mut left = n;
                while let Some(&(_, count)) = runs.get(*at).filter(|run| run.1 <= left) {
                    left -= count;
                    *at += 1;
                }
                *done = left;
            }
            Play::Running { start, steps, sum, left, .. } => {
                // Sums wrap, so that of the steps is enough.
                (*sum, *left) = (start.total(n), left.saturating_sub(n));
                **steps = start.from(n);
            }
            Play::Rows { walk, left, .. } => {
                *left = left.saturating_sub(n);
                walk.pass(n);
            }
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<i64> {
        match self {
            Play::Packed { runs, at, done } => {
                let &(value, count) = runs.get(*at)?;
                *done += 1;
                if *done >= count {
                    (*at, *done) = (*at + 1, 0);
                }
                Some(value)
            }
            Play::Running { steps, sum, left, .. } => {
                *left = left.checked_sub(1)?;
                *sum = sum.wrapping_add(steps.next()?);
                Some(*sum)
            }
            Play::Rows { walk, left, .. } => {
                *left = left.checked_sub(1)?;
                walk.next()
            }
        }
    }
}
