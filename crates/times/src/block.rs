//! One block: the times of calls that follow each other.

use refrain_fold::entropy::range::{Coder, Decoder, Encoder};
use refrain_model::time::Time;

use crate::binned::{Binned, Tables};
use crate::exact::{Exact, is_clock};
use crate::model::direct;
use crate::{Block, CALLS, CallTime, Damaged, Span};

/// Bytes of a bare number.
const BARE: usize = 8;

/// So many bytes of a block say when its first call began.
pub const FIRST_BYTES: usize = 24;

/// How times are told. Both sides go through the same steps.
#[derive(Debug, Clone)]
enum Form {
    Exact,
    Binned(Tables),
}

/// Where in a block one is.
#[derive(Debug, Clone)]
enum State {
    Exact(Box<Exact>),
    Binned(Box<Binned>),
}

impl Form {
    fn new(time: &Time) -> Option<Form> {
        match time {
            Time::Exact => Some(Form::Exact),
            Time::Binned(bases) => Some(Form::Binned(Tables::new(bases.clone()))),
            Time::Off | Time::Mean | Time::Histogram => None,
        }
    }

    /// How many numbers are told of a call: its start, its end, and what it returned.
    fn numbers(&self) -> usize {
        match self {
            Form::Exact => 3,
            Form::Binned(_) => 2,
        }
    }

    /// Before the first call of a block, which begins at `first`.
    fn begin(&self, coder: &mut impl Coder, calls: u32, first: i64) -> State {
        match self {
            Form::Exact => State::Exact(Box::new(Exact::new(coder, calls, first))),
            Form::Binned(_) => State::Binned(Box::new(Binned::new(coder, calls, first))),
        }
    }

    fn call(
        &mut self,
        place: &mut State,
        coder: &mut impl Coder,
        signature: u64,
        function: u16,
        (span, result): (Span, u64),
    ) -> Result<CallTime, Damaged> {
        match (self, place) {
            (Form::Binned(tables), State::Binned(binned)) => {
                binned.call(coder, tables, signature, function, span)
            }
            (_, State::Exact(exact)) => Ok(exact.call(coder, (signature, function), span, result)),
            (Form::Exact, State::Binned(_)) => Err(Damaged),
        }
    }
}

/// Takes the times of a thread's calls as they come.
#[derive(Debug, Clone)]
pub struct Packer {
    form: Form,
    first: u64,
    calls: Vec<(u64, u16, (Span, u64))>,
}

impl Packer {
    /// How many numbers are told of a call.
    pub fn numbers(&self) -> u32 {
        self.form.numbers() as u32
    }

    /// `None` where times of single calls are not kept.
    pub fn new(time: &Time) -> Option<Packer> {
        Form::new(time).map(|form| Packer { form, first: 0, calls: Vec::new() })
    }

    /// The next call. `result` is the `double` that it returned, if its function is a clock, by its bits. A block that
    /// it fills.
    pub fn push(&mut self, signature: u64, function: u16, span: Span, result: u64) -> Option<Block> {
        self.calls.push((signature, function, (span, result)));
        if self.calls.len() as u32 == CALLS { self.finish() } else { None }
    }

    /// What is left, if anything is.
    pub fn finish(&mut self) -> Option<Block> {
        let calls = self.calls.len();
        let mut encoder = Encoder::default();
        let mut place = self.form.begin(&mut encoder, calls as u32, self.calls.first()?.2.0.start);
        for &(signature, function, told) in &self.calls {
            // Who packs knows its own bins.
            let _ = self.form.call(&mut place, &mut encoder, signature, function, told);
        }
        let mut bytes = encoder.finish();
        let numbers = self.form.numbers();
        if bytes.len() >= BARE * numbers * calls {
            let of_call = |&(_, _, (span, result)): &(u64, u16, (Span, u64))| {
                [span.start as u64, span.end as u64, result].into_iter().take(numbers)
            };
            bytes = self.calls.iter().flat_map(of_call).flat_map(u64::to_le_bytes).collect();
        }
        let block = Block { first: self.first, calls: calls as u32, bytes };
        self.first += u64::from(block.calls);
        self.calls.clear();
        Some(block)
    }
}

/// When the first call of a block began, which is told exactly. Needs the first bytes of the block alone.
/// `length` is that of all, `numbers` how many numbers it tells.
pub fn first_start(bytes: &[u8], length: usize, numbers: u32) -> Option<i64> {
    if length as u64 == BARE as u64 * u64::from(numbers) {
        return Some(i64::from_le_bytes(*bytes.first_chunk()?));
    }
    Some(direct(&mut Decoder::new(bytes.to_vec()), 0, 64) as i64)
}

/// Gives the times of a block's calls again.
#[derive(Debug, Clone)]
pub struct Unpacker {
    form: Form,
    open: Option<Open>,
    left: u32,
}

/// A block that is read.
#[derive(Debug, Clone)]
enum Open {
    Bare { bytes: Vec<u8>, at: usize },
    Packed { place: State, decoder: Decoder<Vec<u8>> },
}

impl Unpacker {
    /// `None` where times of single calls are not kept.
    pub fn new(time: &Time) -> Option<Unpacker> {
        Form::new(time).map(|form| Unpacker { form, open: None, left: 0 })
    }

    /// Turns to a block.
    pub fn begin(&mut self, bytes: &[u8], calls: u32) -> Result<(), Damaged> {
        (self.open, self.left) = (None, 0);
        let bare = (BARE * self.form.numbers()) as u64 * u64::from(calls);
        if calls == 0 || calls > CALLS || bytes.len() as u64 > bare {
            return Err(Damaged);
        }
        let bytes = bytes.to_vec();
        self.open = Some(if bytes.len() as u64 == bare {
            Open::Bare { bytes, at: 0 }
        } else {
            let mut decoder = Decoder::new(bytes);
            Open::Packed { place: self.form.begin(&mut decoder, calls, 0), decoder }
        });
        self.left = calls;
        Ok(())
    }

    /// How many numbers are told of a call.
    pub fn numbers(&self) -> u32 {
        self.form.numbers() as u32
    }

    /// Calls of the block that are still to come.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// The next call, which is of this signature and function.
    pub fn next(&mut self, signature: u64, function: u16) -> Result<CallTime, Damaged> {
        self.left = self.left.checked_sub(1).ok_or(Damaged)?;
        match self.open.as_mut().ok_or(Damaged)? {
            Open::Bare { bytes, at } => {
                let mut take = || {
                    let number = bytes.get(*at..*at + 8).ok_or(Damaged)?;
                    *at += 8;
                    Ok(i64::from_le_bytes(number.try_into().map_err(|_| Damaged)?))
                };
                let span = Span { start: take()?, end: take()? };
                let result = (self.form.numbers() > 2).then(&mut take).transpose()?;
                let result = result.filter(|_| is_clock(function)).map(|bits| bits as u64);
                Ok(CallTime { span, start_error: 0, end_error: 0, result })
            }
            Open::Packed { place, decoder } => {
                let told = self.form.call(place, decoder, signature, function, (Span::default(), 0))?;
                // Bytes that no call needs are not those of this block.
                if self.left == 0 && decoder.overrun() { Err(Damaged) } else { Ok(told) }
            }
        }
    }
}
