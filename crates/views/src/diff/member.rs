//! One thread of one rank in one of the traces, as it is folded.

use std::borrow::Cow;
use std::collections::HashMap;

use refrain_fold::bundle::{self, Bundle, Cohort, Structure, Walk};
use refrain_fold::stream::Stream;

use super::faces::Face;
use super::{Unread, Which};
use crate::error::Error;

/// Which call it is, is not known: the folded form was looked at.
fn unread(which: Which, (rank, thread): (u32, u32), error: refrain_encode::Error) -> Unread {
    Unread { which, error: Error::Call { rank, thread, position: 0, error } }
}

/// A cohort of one of the two.
#[derive(Clone, Copy)]
pub(super) struct Kind<'t> {
    pub which: Which,
    pub bundle: &'t Bundle,
    pub at: usize,
    pub cohort: &'t Cohort,
    pub structure: &'t Structure,
}

impl<'t> Kind<'t> {
    pub fn new(which: Which, bundle: &'t Bundle, at: usize) -> Result<Kind<'t>, Unread> {
        let missing = |what| {
            let error = bundle::Error::Index { what, index: at as u64, len: bundle.cohorts.len() };
            unread(which, (0, 0), refrain_encode::Error::Trace(error))
        };
        let cohort = bundle.cohorts.get(at).ok_or_else(|| missing("cohort"))?;
        let structure =
            bundle.structures.get(cohort.structure as usize).ok_or_else(|| missing("structure"))?;
        Ok(Kind { which, bundle, at, cohort, structure })
    }

    /// Its symbols in the order of its lanes, with the place of the first lane of each.
    pub fn symbols(&self) -> Vec<(u32, usize)> {
        let mut start = self.structure.own_lanes();
        let symbols = self.structure.symbols().into_iter().map(|symbol| {
            let first = start;
            start += self.bundle.symbols.get(symbol as usize).map_or(0, |entry| usize::from(entry.lanes));
            (symbol, first)
        });
        symbols.collect()
    }

    pub fn stream(&self, lane: usize, member: u32) -> Option<Cow<'t, Stream>> {
        self.bundle.stream_of(self.cohort.lanes.get(lane)?, member)
    }

    /// What a member has in the lanes of a symbol.
    pub fn streams(&self, symbol: u32, first: usize, member: u32) -> Vec<Option<Cow<'t, Stream>>> {
        let lanes = self.bundle.symbols.get(symbol as usize).map_or(0, |entry| usize::from(entry.lanes));
        (first..first + lanes).map(|lane| self.stream(lane, member)).collect()
    }

    /// Something is wrong with a member.
    pub fn failed(&self, member: u32) -> impl Fn(refrain_encode::Error) -> Unread {
        let (which, place) = (self.which, self.bundle.place_of(member));
        move |error| unread(which, place, error)
    }

    fn broken(&self, member: u32) -> impl Fn(bundle::Error) -> Unread {
        let failed = self.failed(member);
        move |error| failed(refrain_encode::Error::Trace(error))
    }

    /// How often each symbol comes among the first `n` events of a member.
    pub fn before(&self, member: u32, n: u64) -> Result<HashMap<u32, u64>, Unread> {
        let counts = Walk::before(self.bundle, self.at, member, n).map_err(self.broken(member))?;
        Ok(counts.into_iter().collect())
    }

    /// The symbols of a member from event `n` on.
    pub fn walk(&self, member: u32, n: u64) -> Result<Walk<'t>, Unread> {
        // Only its symbols are asked for, so that it does not matter which numbers they would have.
        Walk::from(self.bundle, self.at, member, n, |_, _| 0, |_| 0).map_err(self.broken(member))
    }

    /// How many events a member has.
    pub fn events(&self, member: u32) -> u64 {
        self.bundle.counts(self.cohort, member).iter().fold(0, |sum: u64, count| sum.saturating_add(count.1))
    }

    /// The number of the first call of event `n`: failed polls before others are calls too.
    pub fn first_call(&self, faces: &[Face], member: u32, n: u64) -> Result<u64, Unread> {
        let before = self.before(member, n)?;
        let mut calls = n.min(self.events(member));
        for (symbol, first) in self.symbols() {
            let polls = faces.get(symbol as usize).and_then(|face| face.layout.polls);
            if let (Some(lane), Some(times)) = (polls, before.get(&symbol))
                && let Some(stream) = self.stream(first + usize::from(lane), member)
            {
                let failed = u64::try_from(stream.sum(*times).max(0)).unwrap_or(u64::MAX);
                calls = calls.saturating_add(failed);
            }
        }
        Ok(calls)
    }

    /// The event of a member that is a symbol's one after `before` others.
    pub fn event_of(&self, symbol: u32, before: u64, member: u32) -> Result<Option<u64>, Unread> {
        if let Some(rules) = self.structure.rules() {
            return Ok(rules.place_of(symbol, before));
        }
        // Among the first `low` events there are not enough of it; among the first `high` there are.
        let (mut low, mut high) = (0, self.events(member));
        let enough = |n: u64| -> Result<bool, Unread> {
            Ok(self.before(member, n)?.get(&symbol).copied().unwrap_or(0) > before)
        };
        if !enough(high)? {
            return Ok(None);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            *(if enough(middle)? { &mut high } else { &mut low }) = middle;
        }
        Ok(Some(low))
    }
}
