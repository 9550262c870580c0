//! Times in bins: each to a part of the time that it is measured from.
//!
//! A duration is told by its bin. A start is told by the bin of its distance from the last start of the same signature,
//! as a reader knows that one, so that errors do not add up. A reader also knows when the call before ended, more or
//! less. That is when this one is guessed to begin, and the bins of its start lie around the guess.

use refrain_fold::FastMap;
use refrain_fold::entropy::range::Coder;
use refrain_model::time::{Base, Bases};

use crate::bins::{Bin, Bins, NEAR};
use crate::model::{Model, direct, hash};
use crate::{CallTime, Damaged, Span};

/// Kinds of numbers.
const START: usize = 0;
const FAR: usize = 1;
const DURATION: usize = 2;

/// How a start is told: so many bins from its guess, less [`NEAR`]; or one of these.
const START_BITS: u32 = 4;
const SAME: u64 = 2 * NEAR as u64 + 1;
/// By its bin, on the side of the last start on which the guess is.
const FAR_AWAY: u64 = SAME + 1;
const OTHER_SIDE: u64 = SAME + 2;

/// The bins of all bases that came up. They outlive blocks.
#[derive(Debug, Clone)]
pub struct Tables {
    bases: Bases,
    known: Vec<(Base, Bins)>,
}

impl Tables {
    pub fn new(bases: Bases) -> Tables {
        Tables { bases, known: Vec::new() }
    }

    fn of(&mut self, function: u16) -> &Bins {
        let base = self.bases.of(function);
        let at = self.known.iter().position(|known| known.0 == base).unwrap_or_else(|| {
            self.known.push((base, Bins::new(base)));
            self.known.len() - 1
        });
        &self.known[at].1
    }
}

#[derive(Debug, Clone)]
pub struct Binned {
    model: Model,
    first: i64,
    signature: u64,
    /// The call before.
    before: CallTime,
    last: Symbols,
    /// The last call of each signature.
    seen: FastMap<u64, (i64, Symbols)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Symbols {
    start: u64,
    duration: i64,
}

fn length(number: u64) -> u64 {
    u64::from(64 - number.leading_zeros())
}

impl Binned {
    pub fn new(coder: &mut impl Coder, calls: u32, first: i64) -> Binned {
        let first = direct(coder, first as u64, 64) as i64;
        let before = CallTime { span: Span { start: first, end: first }, ..CallTime::default() };
        Binned {
            model: Model::new(3, calls),
            first,
            signature: 0,
            before,
            last: Symbols::default(),
            seen: FastMap::default(),
        }
    }

    pub fn call(
        &mut self,
        coder: &mut impl Coder,
        tables: &mut Tables,
        signature: u64,
        function: u16,
        span: Span,
    ) -> Result<CallTime, Damaged> {
        let bins = tables.of(function);
        let (since, own) = *self.seen.entry(signature).or_insert((self.first, Symbols::default()));
        let pair = hash(signature, self.signature);

        let guess = self.before.span.end.wrapping_sub(since);
        let around = guess.unsigned_abs().max(1);
        let distance = span.start.wrapping_sub(since);
        let same_side = (distance < 0) == (guess < 0);
        let near = bins.distance(around, distance.unsigned_abs()).filter(|_| same_side && distance != 0);
        let symbol = match near {
            _ if distance == 0 => SAME,
            Some(near) => (near + NEAR) as u64,
            None if same_side => FAR_AWAY,
            None => OTHER_SIDE,
        };
        self.model.start(
            START,
            [
                pair,
                hash(pair, length(around)),
                hash(hash(pair, self.last.start), own.start),
                hash(signature, length(around) << 8 | length(self.before.end_error)),
            ],
        );
        let symbol = self.model.tree(coder, 0, START_BITS, symbol);
        let bin = match symbol {
            SAME => Bin::default(),
            FAR_AWAY | OTHER_SIDE => {
                self.model.start(FAR, [signature, pair, hash(signature, length(around)), function.into()]);
                let bin = self.model.number(coder, bins.of(distance.unsigned_abs()) as i64);
                usize::try_from(bin).ok().and_then(|bin| bins.get(bin)).ok_or(Damaged)?
            }
            near => bins.near(around, near as i64 - NEAR).ok_or(Damaged)?,
        };
        let far = bin.middle() as i64;
        let back = (guess < 0) != (symbol == OTHER_SIDE);
        let start = since.wrapping_add(if back { far.wrapping_neg() } else { far });
        let start_error = bin.error();

        // One below 0 stands for itself.
        let duration = span.end.wrapping_sub(span.start);
        let symbol_of_duration = if duration < 0 { duration } else { bins.of(duration as u64) as i64 };
        self.model.start(
            DURATION,
            [
                pair,
                hash(signature, own.duration as u64),
                hash(pair, self.last.duration as u64),
                hash(hash(pair, own.duration as u64), symbol),
            ],
        );
        let told = self.model.number(coder, symbol_of_duration);
        let (took, took_error) = match usize::try_from(told) {
            Err(_) => (told, 0),
            Ok(bin) => {
                let bin = bins.get(bin).ok_or(Damaged)?;
                (bin.middle() as i64, bin.error())
            }
        };
        let span = Span { start, end: start.wrapping_add(took) };
        let end_error = start_error.saturating_add(took_error);
        self.before = CallTime { span, start_error, end_error, result: None };
        self.last = Symbols { start: symbol, duration: told };
        self.signature = signature;
        self.seen.insert(signature, (start, self.last));
        Ok(self.before)
    }
}
