//! Going to a call without reading those before it: how many numbers they took follows from the folded form.

use std::borrow::Cow;
use std::collections::HashMap;

use refrain_fold::bundle::Bundle;
use refrain_fold::stream::Stream;

use crate::decoder::Decoder;
use crate::error::Error;
use crate::facts::STATUS_MARK;
use crate::layout::{Layout, NewGroup, Slot};
use crate::shape::{Length, Shape};
use refrain_model::Cond;

/// By lane of a symbol: how many numbers its first `times` events took. Where what says so (lengths, flags, what is
/// defined of a status) is the same in all of them, one is read; otherwise all are.
pub(crate) fn taken(
    (bundle, layout): (&Bundle, &Layout),
    lanes: &[Option<Cow<'_, Stream>>],
    times: u64,
    read: &mut u64,
) -> Result<Vec<u64>, Error> {
    let mut reading = Reading::new((bundle, layout), lanes);
    if times == 0 || lanes.is_empty() {
        return Ok(reading.taken);
    }
    if reading.is_steady(lanes, times)? {
        *read += 1;
        return Ok(reading.taken.iter().map(|one| one.saturating_mul(times)).collect());
    }
    for _ in 1..times {
        reading.event()?;
    }
    *read += times;
    Ok(reading.taken)
}

/// The numbers of a symbol's events, as far as the folded form tells which event each belongs to.
pub struct Taken<'a> {
    bundle: &'a Bundle,
    layout: &'a Layout,
    lanes: &'a [Option<Cow<'a, Stream>>],
    times: u64,
    /// By lane, of one event, where all take as many.
    steady: Option<Vec<u64>>,
}

impl<'a> Taken<'a> {
    /// Of the first `times` events of a symbol. `lanes` are what one thread has in the symbol's lanes.
    pub fn new(
        (bundle, layout): (&'a Bundle, &'a Layout),
        lanes: &'a [Option<Cow<'a, Stream>>],
        times: u64,
    ) -> Result<Taken<'a>, Error> {
        let mut reading = Reading::new((bundle, layout), lanes);
        let steady = times == 0 || lanes.is_empty() || reading.is_steady(lanes, times)?;
        Ok(Taken { bundle, layout, lanes, times, steady: steady.then_some(reading.taken) })
    }

    /// Whether all events take as many numbers as the first: otherwise it takes reading them to know more.
    pub fn is_steady(&self) -> bool {
        self.steady.is_some()
    }

    /// By lane, how many numbers these events take. Reads them all where they are not steady; `each` is told now and then.
    pub fn all(&self, each: &mut dyn FnMut()) -> Result<Vec<u64>, Error> {
        if let Some(steady) = &self.steady {
            return Ok(steady.iter().map(|one| one.saturating_mul(self.times)).collect());
        }
        let mut reading = Reading::new((self.bundle, self.layout), self.lanes);
        for done in 0..self.times {
            reading.event()?;
            if done % 4096 == 4095 {
                each();
            }
        }
        Ok(reading.taken)
    }

    /// Which of the events, counted from 0, takes number `place` of a lane.
    pub fn event_of(&self, lane: u16, place: u64, each: &mut dyn FnMut()) -> Result<Option<u64>, Error> {
        let lane = usize::from(lane);
        if let Some(steady) = &self.steady {
            let event = steady.get(lane).and_then(|one| place.checked_div(*one));
            return Ok(event.filter(|event| *event < self.times));
        }
        let mut reading = Reading::new((self.bundle, self.layout), self.lanes);
        for event in 0..self.times {
            reading.event()?;
            if reading.taken.get(lane).is_some_and(|taken| *taken > place) {
                return Ok(Some(event));
            }
            if event % 4096 == 4095 {
                each();
            }
        }
        Ok(None)
    }
}

/// The events of one symbol alone.
struct Reading<'a> {
    layout: &'a Layout,
    decoder: Decoder,
    numbers: Vec<Option<refrain_fold::stream::Iter<'a>>>,
    taken: Vec<u64>,
}

impl<'a> Reading<'a> {
    fn new((bundle, layout): (&Bundle, &'a Layout), lanes: &'a [Option<Cow<'_, Stream>>]) -> Reading<'a> {
        let numbers = lanes.iter().map(|lane| lane.as_ref().map(|stream| stream.iter())).collect();
        Reading { layout, decoder: Decoder::allowing(bundle), numbers, taken: vec![0; lanes.len()] }
    }

    /// Reads the first event. Whether the other ones, of so many, take as many numbers.
    fn is_steady(&mut self, lanes: &[Option<Cow<'_, Stream>>], times: u64) -> Result<bool, Error> {
        self.event()?;
        Ok(self.layout.drivers().into_iter().all(|lane| {
            let lane = usize::from(lane);
            let (Some(one), Some(stream)) = (self.taken.get(lane), lanes.get(lane)) else { return false };
            let all = one.saturating_mul(times);
            let extremes = stream.as_ref().and_then(|stream| stream.min_max(all));
            extremes.is_none_or(|(min, max)| min == max)
        }))
    }

    fn event(&mut self) -> Result<(), Error> {
        let (numbers, taken) = (&mut self.numbers, &mut self.taken);
        let mut missing = false;
        let mut next = |lane: u16| {
            let lane = usize::from(lane);
            let value = numbers.get_mut(lane).and_then(|numbers| numbers.as_mut()?.next());
            missing |= value.is_none();
            if let Some(taken) = taken.get_mut(lane) {
                *taken += 1;
            }
            value.unwrap_or(0)
        };
        self.decoder.call(self.layout, &mut next)?;
        self.layout.polls.map(next);
        if missing { Err(Error::BadSymbol { function: self.layout.function.name, at: 0 }) } else { Ok(()) }
    }
}

impl Layout {
    /// For each array, the lane with its length, as far as there is one.
    pub(crate) fn lengths(&self) -> Vec<u16> {
        let mut lengths = Vec::new();
        for (slot, step) in self.slots.iter().zip(&Shape::of(self.function).steps) {
            match *slot {
                Slot::List { len, .. }
                | Slot::ListInOut { len, .. }
                | Slot::Codes { len, .. }
                | Slot::Statuses { len, .. } => {
                    let said = match step.length {
                        Length::Said(j) => self.slots.get(usize::from(j)),
                        _ => None,
                    };
                    let said = if let Some(&Slot::Number { lane }) = said { Some(lane) } else { None };
                    lengths.extend(len.or(said));
                }
                Slot::NewComm(ref new) => match new.group {
                    NewGroup::List(len) => lengths.push(len),
                    NewGroup::Inter(local, remote) => lengths.extend([local, remote]),
                    NewGroup::None | NewGroup::SameAsParent => {}
                },
                _ => {}
            }
        }
        lengths
    }

    /// The lanes whose numbers say how many numbers others have.
    fn drivers(&self) -> Vec<u16> {
        let mut drivers = Vec::new();
        for (slot, step) in self.slots.iter().zip(&Shape::of(self.function).steps) {
            match *slot {
                Slot::List { len, .. } | Slot::ListInOut { len, .. } | Slot::Codes { len, .. } => {
                    drivers.extend(len);
                }
                Slot::Status { lane } => drivers.push(lane + STATUS_MARK),
                Slot::Statuses { len, lane } => drivers.extend(len.into_iter().chain([lane + STATUS_MARK])),
                Slot::Text { lane, .. } => drivers.push(lane),
                Slot::NewComm(ref new) => match new.group {
                    NewGroup::List(len) => drivers.push(len),
                    NewGroup::Inter(local, remote) => drivers.extend([local, remote]),
                    NewGroup::None | NewGroup::SameAsParent => {}
                },
                _ => {}
            }
            let condition = match step.dynamic {
                Some(Cond::Flag(j) | Cond::Defined(j)) => Some(j),
                _ => None,
            };
            let length = if let Length::Said(j) = step.length { Some(j) } else { None };
            for j in length.into_iter().chain(condition) {
                match self.slots.get(usize::from(j)) {
                    Some(&Slot::Number { lane }) => drivers.push(lane),
                    Some(&Slot::InOut { before, after }) => drivers.extend([before].into_iter().chain(after)),
                    _ => {}
                }
            }
        }
        drivers
    }
}

/// How often each symbol came.
pub(crate) type Counts = HashMap<u32, u64>;

/// The largest number up to `most` for which `calls` are at most `n`; `calls` grows with it.
pub(crate) fn last_within(
    n: u64,
    most: u64,
    mut calls: impl FnMut(u64) -> Result<u64, Error>,
) -> Result<u64, Error> {
    let (mut low, mut high) = (0, most.saturating_add(1));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        *(if calls(middle)? <= n { &mut low } else { &mut high }) = middle;
    }
    Ok(low)
}
