//! How much data each call gave, for those who read calls one by one.

use std::rc::Rc;

use refrain_model::{Call, Value, functions};
use refrain_tracefile::Trace;

use super::Amount;
use super::folded;
use super::payload::{Payload, payload};
use super::sizes::{CommSize, Made};
use super::walked::{Sizes, of_call};
use crate::error::Error;

/// What all threads of a trace need.
pub struct Payloads {
    world: u32,
    /// By function number.
    rules: Vec<Option<Payload>>,
    /// By thread, the sizes of datatypes that it made. Nothing where there is one thread only.
    types: Vec<(u32, folded::Types)>,
}

/// The calls of one thread, which have to be shown in order and from the first on.
pub struct Given {
    payloads: Rc<Payloads>,
    thread: u32,
    made: Made,
}

impl Payloads {
    pub fn new(trace: &Trace) -> Result<Payloads, Error> {
        let bundle = &trace.bundle;
        let mut types = Vec::new();
        if bundle.most_threads() > 1 {
            let layouts = super::layouts(bundle)?;
            for cohort in &bundle.of_threads() {
                let rank = cohort.ranks.first().unwrap_or(0);
                let counts = bundle.counts(cohort, rank);
                let occurrences = folded::occurrences(bundle, cohort, rank, &counts, &layouts);
                let made = folded::Types::of_all(&occurrences, rank, bundle.counts_differ(cohort));
                types.push((cohort.thread, made));
            }
        }
        let mut rules = Vec::new();
        for function in functions() {
            let at = usize::from(function.id);
            rules.resize(rules.len().max(at + 1), None);
            rules[at] = payload(function);
        }
        Ok(Payloads { world: trace.meta.ranks, rules, types })
    }

    pub fn of_thread(self: &Rc<Payloads>, thread: u32) -> Given {
        Given { payloads: self.clone(), thread, made: Made::new(self.world) }
    }
}

impl Given {
    /// Takes in what the call made.
    pub fn see(&mut self, call: &Call) {
        self.made.take_in(call);
    }

    /// What a call gave that was seen last; `None` of functions that give no data. As [`super::DEFINITION`] says.
    pub fn amount(&self, call: &Call) -> Option<Amount> {
        let rule = self.payloads.rules.get(usize::from(call.function.id))?.as_ref()?;
        Some(of_call(call, rule, self))
    }
}

impl Sizes for Given {
    fn datatype(&self, id: u32) -> Option<u64> {
        let elsewhere = || {
            // A type that another thread made has one size, or none that we can tell.
            let others = self.payloads.types.iter().filter(|(thread, _)| *thread != self.thread);
            let mut sizes = others.filter_map(|(_, types)| types.get(id));
            let first = sizes.next()??;
            sizes.all(|size| size == Some(first)).then_some(first)
        };
        self.made.types.get(&id).copied().or_else(elsewhere)
    }

    fn comm(&self, value: &Value) -> Option<CommSize> {
        self.made.comm(value)
    }
}
