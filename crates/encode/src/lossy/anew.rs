//! A recording made again from its calls, some of them with other numbers or at other sites: what becomes equal then is
//! folded as if it had been recorded so.

use std::collections::HashMap;

use refrain_fold::bundle::sites::Sites;
use refrain_fold::bundle::{Bundle, SymbolEntry};

use crate::error::Error;
use crate::layout::Layout;
use crate::reader::Reader;
use crate::structure::Folding;
use crate::tape::Tape;
use crate::wire;

use super::averages::Filling;

/// How calls are made again.
pub(super) struct Anew<'a> {
    pub folding: Folding,
    /// `Lossy::waits`.
    pub joins: bool,
    /// By symbol: the site that stands for its own.
    pub sites: &'a [u64],
    /// The stacks of these.
    pub stacks: Sites,
}

impl Anew<'_> {
    /// All of one rank's own bundle, with the means that `filling` has. `became` has, by symbol, the signature of the first
    /// that its calls have now.
    pub fn make(
        self,
        bundle: &Bundle,
        rank: u32,
        mut filling: Option<Filling>,
        became: &mut [u64],
    ) -> Result<Bundle, Error> {
        let mut tapes = Vec::new();
        // A symbol's time is that of all threads.
        let mut timed = vec![false; bundle.symbols.len()];
        let reader = Reader::new(bundle);
        for thread in reader.threads(rank) {
            let mut copy = Copy::new(self.folding, self.joins, &self.stacks, bundle.symbols.len());
            let mut events = reader.events(rank, thread)?;
            let mut times = Vec::new();
            while let Some(event) = events.next_event()? {
                let (at, Some(layout)) = (event.symbol as usize, events.layout(event.symbol)) else {
                    continue;
                };
                let (old, site) = (&bundle.symbols[at], self.sites[at]);
                let values = if layout.inline.is_some() { &events.inline } else { &events.values };
                let filled = filling
                    .as_mut()
                    .and_then(|filling| filling.fill(&event.call, layout, thread, old.site, values));
                let number = match (filled, layout.inline.is_some()) {
                    (None, _) => {
                        let number = copy.known(at, old, site);
                        copy.tape.read_event(number, &events.values);
                        number
                    }
                    (Some(values), false) => {
                        let number = copy.known(at, old, site);
                        copy.tape.read_event(number, &values);
                        number
                    }
                    (Some(values), true) => {
                        let number = copy.symbol(&with_inline(&old.bytes, layout, &values), site, old.lanes);
                        copy.tape.read_event(number, &events.values);
                        number
                    }
                };
                if !std::mem::replace(&mut timed[at], true) {
                    times.push((number, old));
                    became[at] = copy.tape.signature(number);
                }
            }
            copy.tape.without_times();
            times.into_iter().for_each(|(number, old)| copy.tape.add_times(number, old));
            tapes.push((thread, copy.tape));
        }
        let tapes = tapes.iter_mut().map(|(thread, tape)| (*thread, tape));
        Tape::bundle((rank, bundle.world), tapes, |time| time).map_err(Error::Trace)
    }
}

/// One thread's calls, as far as they are made again.
struct Copy {
    tape: Tape,
    symbols: HashMap<(Box<[u8]>, u64), u32>,
    /// By the number that the symbol had.
    known: Vec<Option<u32>>,
}

impl Copy {
    fn new(folding: Folding, joins: bool, stacks: &Sites, symbols: usize) -> Copy {
        let mut tape = Tape::new(folding);
        tape.join_waits(joins);
        tape.note_stacks(
            stacks.stacks.values().copied().collect(),
            stacks.modules.values().cloned().collect(),
        );
        Copy { tape, symbols: HashMap::new(), known: vec![None; symbols] }
    }

    fn known(&mut self, at: usize, old: &SymbolEntry, site: u64) -> u32 {
        match self.known[at] {
            Some(number) => number,
            None => {
                let number = self.symbol(&old.bytes, site, old.lanes);
                self.known[at] = Some(number);
                number
            }
        }
    }

    fn symbol(&mut self, bytes: &[u8], site: u64, lanes: u16) -> u32 {
        let tape = &mut self.tape;
        *self.symbols.entry((bytes.into(), site)).or_insert_with(|| tape.define(bytes, site, lanes))
    }
}

/// A symbol that has its values, with others.
fn with_inline(bytes: &[u8], layout: &Layout, values: &[(u16, i64)]) -> Vec<u8> {
    let write = |values: &mut dyn ExactSizeIterator<Item = i64>| {
        let mut out = Vec::new();
        wire::put(&mut out, values.len() as u64);
        values.for_each(|value| wire::put(&mut out, wire::zigzag(value)));
        out
    };
    let old = write(&mut layout.inline.iter().flatten().copied().collect::<Vec<_>>().into_iter());
    let mut bytes = bytes[..bytes.len().saturating_sub(old.len())].to_vec();
    bytes.extend(write(&mut values.iter().map(|(_, value)| *value)));
    bytes
}
