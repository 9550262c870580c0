//! Times to the nanosecond: of each call how long after the end of the one before it began, and how long it took.

use std::collections::HashMap;

use refrain_fold::entropy::range::Coder;

use crate::model::{Model, hash, plain};
use crate::{Damaged, Span, Told};

/// Kinds of numbers.
const GAP: usize = 0;
const DURATION: usize = 1;

#[derive(Debug, Clone)]
pub struct Exact {
    model: Model,
    /// When the call before ended.
    before: i64,
    signature: u64,
    last: Numbers,
    /// The last call of each signature.
    seen: HashMap<u64, Numbers>,
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

fn with(context: u64, more: u64) -> u64 {
    hash(context, more)
}

impl Exact {
    pub fn new(coder: &mut impl Coder, calls: u32, first: i64) -> Exact {
        Exact {
            model: Model::new(2, calls),
            before: plain(coder, first as u64, 64) as i64,
            signature: 0,
            last: Numbers::default(),
            seen: HashMap::new(),
        }
    }

    pub fn call(
        &mut self,
        coder: &mut impl Coder,
        signature: u64,
        function: u16,
        span: Span,
    ) -> Result<Told, Damaged> {
        let own = self.seen.entry(signature).or_default();
        let pair = with(signature, self.signature);
        let (last, before) = (self.last, self.before);
        self.model.start(
            GAP,
            [
                pair,
                with(pair, size(last.duration, 2)),
                with(signature, size(own.gap, 1)),
                function.into(),
                with(pair, size(last.gap, 1)),
                with(with(pair, size(own.gap, 1)), size(last.duration, 1)),
            ],
        );
        let gap = self.model.number(coder, span.start.wrapping_sub(before));
        self.model.start(
            DURATION,
            [
                pair,
                with(signature, size(gap, 2)),
                with(signature, size(own.duration, 1)),
                function.into(),
                with(pair, size(last.duration, 2)),
                with(with(signature, size(own.duration, 1)), size(gap, 1)),
            ],
        );
        let duration = self.model.number(coder, span.end.wrapping_sub(span.start));
        let start = before.wrapping_add(gap);
        let end = start.wrapping_add(duration);
        self.last = Numbers { gap, duration };
        *own = self.last;
        (self.before, self.signature) = (end, signature);
        Ok(Told { span: Span { start, end }, start_error: 0, end_error: 0 })
    }
}
