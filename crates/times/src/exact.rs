//! Times to the nanosecond: of each call how long after the end of the one before it began, and how long it took. And what
//! the clocks of MPI returned, to the last bit.

use refrain_fold::FastMap;
use refrain_fold::entropy::range::Coder;

use crate::model::{CONTEXTS, Model, direct, hash};
use crate::{CallTime, Span};

/// Kinds of numbers.
const GAP: usize = 0;
const DURATION: usize = 1;
const RESULT: usize = 2;
const REST: usize = 3;
const KINDS: usize = 4;

/// The functions that return what a clock shows: their numbers in the call table.
const WTICK: u16 = 260;
const WTIME: u16 = 261;

#[derive(Debug, Clone)]
pub struct Exact {
    model: Model,
    /// When the call before ended.
    before: i64,
    signature: u64,
    last: Numbers,
    /// The last call of each signature.
    seen: FastMap<u64, Numbers>,
    clock: Clock,
}

/// What the last calls that asked a clock were told.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    /// By how much the time that `MPI_Wtime` returned is more than when the call ended.
    ahead: i64,
    /// How far that was from what the call before it let expect.
    off: i64,
    /// What was left over.
    rest: i64,
    /// What `MPI_Wtick` returned.
    tick: u64,
}

/// Whether a call of this function has a result to tell.
pub fn is_clock(function: u16) -> bool {
    function == WTIME || function == WTICK
}

/// A number of seconds in whole nanoseconds. What is none, or too large, has what it is in the rest.
fn nanoseconds(seconds: u64) -> i64 {
    let scaled = f64::from_bits(seconds) * 1e9;
    // Up to there all of them are numbers of their own.
    if scaled.abs() < 9e18 { scaled.round() as i64 } else { 0 }
}

/// The number of seconds that is nearest to so many nanoseconds.
fn seconds(nanoseconds: i64) -> u64 {
    (nanoseconds as f64 / 1e9).to_bits()
}

#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    gap: i64,
    duration: i64,
}

/// The size of a number: its sign, its length and `fine` bits below the highest.
fn size(number: i64, fine: u32) -> u64 {
    let far = number.unsigned_abs();
    let length = 64 - far.leading_zeros();
    let below = if length > fine { far >> (length - 1 - fine) & ((1 << fine) - 1) } else { far };
    u64::from(number < 0) << 32 | u64::from(length) << 8 | below
}

impl Exact {
    pub fn new(coder: &mut impl Coder, calls: u32, first: i64) -> Exact {
        Exact {
            model: Model::new(KINDS, calls),
            before: direct(coder, first as u64, 64) as i64,
            signature: 0,
            last: Numbers::default(),
            seen: FastMap::default(),
            clock: Clock::default(),
        }
    }

    pub fn call(
        &mut self,
        coder: &mut impl Coder,
        (signature, function): (u64, u16),
        span: Span,
        result: u64,
    ) -> CallTime {
        let own = self.seen.entry(signature).or_default();
        let pair = hash(signature, self.signature);
        let (last, before) = (self.last, self.before);
        self.model.start(
            GAP,
            [
                pair,
                hash(pair, size(last.duration, 2)),
                hash(hash(pair, size(own.gap, 1)), size(last.duration, 1)),
                hash(pair, size(last.gap, 1)),
            ],
        );
        let gap = self.model.number(coder, span.start.wrapping_sub(before));
        self.model.start(
            DURATION,
            [
                pair,
                hash(pair, size(last.duration, 2)),
                hash(signature, size(gap, 2)),
                hash(hash(signature, size(own.duration, 1)), size(gap, 1)),
            ],
        );
        let duration = self.model.number(coder, span.end.wrapping_sub(span.start));
        let start = before.wrapping_add(gap);
        let end = start.wrapping_add(duration);
        self.last = Numbers { gap, duration };
        *own = self.last;
        (self.before, self.signature) = (end, signature);
        let result = is_clock(function).then(|| match function {
            WTIME => self.time(coder, signature, (end, duration), result),
            _ => self.tick(coder, signature, result),
        });
        CallTime { span: Span { start, end }, start_error: 0, end_error: 0, result }
    }

    /// What `MPI_Wtime` returned: libraries read a clock that keeps step with ours, in nanoseconds, and divide. What they do
    /// after reading it takes always as long, so it is told from the end of the call.
    fn time(&mut self, coder: &mut impl Coder, signature: u64, span: (i64, i64), result: u64) -> u64 {
        let (end, duration) = span;
        let clock = self.clock;
        let (long, off) = (hash(signature, duration as u64), size(clock.off, 1));
        self.model.start(
            RESULT,
            [hash(signature, off), long, hash(long, off), hash(hash(signature, size(duration, 2)), off)],
        );
        let expected = end.wrapping_add(clock.ahead);
        let off = self.model.number(coder, nanoseconds(result).wrapping_sub(expected));
        let told = expected.wrapping_add(off);
        let rest = hash(signature, clock.rest as u64);
        self.model.start(REST, [signature, rest, hash(rest, size(off, 2)), long]);
        let rest = self.model.number(coder, result.wrapping_sub(seconds(told)) as i64);
        self.clock = Clock { ahead: told.wrapping_sub(end), off, rest, ..clock };
        seconds(told).wrapping_add(rest as u64)
    }

    /// What `MPI_Wtick` returned: the same each time.
    fn tick(&mut self, coder: &mut impl Coder, signature: u64, result: u64) -> u64 {
        self.model.start(RESULT, [signature; CONTEXTS]);
        let more = self.model.number(coder, result.wrapping_sub(self.clock.tick) as i64);
        self.clock.tick = self.clock.tick.wrapping_add(more as u64);
        self.clock.tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::Returns;

    #[test]
    fn clocks_are_those_of_the_call_table() {
        for function in refrain_model::functions() {
            assert_eq!(is_clock(function.id), function.returns == Returns::Clock, "{}", function.name);
        }
        assert_eq!(refrain_model::function("MPI_Wtime").unwrap().id, WTIME);
    }

    /// What libraries compute has no rest, or a last bit.
    #[test]
    fn seconds_are_nanoseconds() {
        for (second, nanosecond) in [(0, 0), (0, 1), (1, 999_999_999), (51_234, 123_456_789), (4_000_000, 7)]
        {
            let whole = second * 1_000_000_000 + nanosecond;
            let sum = second as f64 + 1e-9 * nanosecond as f64;
            let (told, rest) =
                (nanoseconds(sum.to_bits()), sum.to_bits().wrapping_sub(seconds(whole)) as i64);
            assert_eq!(told, whole);
            assert!(rest.abs() <= 1, "{sum}");
        }
        assert_eq!(nanoseconds(f64::NAN.to_bits()), 0);
        assert_eq!(nanoseconds(f64::INFINITY.to_bits()), 0);
    }
}
