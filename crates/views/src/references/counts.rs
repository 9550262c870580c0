//! How much was referred to, from the folded form.

use refrain_references::{Access, Error, Symbol, symbols};
use serde::Serialize;

use super::{Recorded, lanes};

/// Of some threads together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    pub references: u64,
    pub loads: u64,
    pub stores: u64,
    pub updates: u64,
    pub fetches: u64,
    /// Bytes.
    pub loaded: u64,
    pub stored: u64,
    pub fetched: u64,
    /// Those of which only the number is known here: they did not fold and are in chunks.
    pub unfolded: u64,
}

impl Counts {
    pub fn add(&mut self, access: Access, size: u32, times: u64) {
        let bytes = times.saturating_mul(size.into());
        let grow = |number: &mut u64, by: u64| *number = number.saturating_add(by);
        grow(&mut self.references, times);
        match access {
            Access::Load => {
                grow(&mut self.loads, times);
                grow(&mut self.loaded, bytes);
            }
            Access::Store => {
                grow(&mut self.stores, times);
                grow(&mut self.stored, bytes);
            }
            Access::Update => {
                grow(&mut self.updates, times);
                grow(&mut self.loaded, bytes);
                grow(&mut self.stored, bytes);
            }
            Access::Fetch => {
                grow(&mut self.fetches, times);
                grow(&mut self.fetched, bytes);
            }
        }
    }
}

/// Of all threads, in time of the file's size.
pub fn counts(recorded: &Recorded) -> Result<Counts, Error> {
    let bundle = &recorded.trace.bundle;
    let symbols = symbols(bundle)?;
    let mut all = Counts::default();
    for cohort in &bundle.cohorts {
        let lanes = lanes::by_symbol(bundle, cohort);
        for member in cohort.ranks.iter() {
            for (symbol, times) in bundle.counts(cohort, member) {
                match symbols.get(symbol as usize) {
                    Some(Symbol::Block { block, .. }) => {
                        block.references.iter().for_each(|r| all.add(r.access, r.size, times));
                    }
                    Some(Symbol::Stretch) => {
                        let lane = lanes.get(&symbol).and_then(|lanes| lanes.first());
                        let stream = lane.and_then(|lane| bundle.stream_of(lane, member));
                        let sum = stream.map_or(0, |stream| stream.sum(times));
                        let sum = u64::try_from(sum).unwrap_or(u64::MAX);
                        all.references = all.references.saturating_add(sum);
                        all.unfolded = all.unfolded.saturating_add(sum);
                    }
                    Some(Symbol::Mark) | None => {}
                }
            }
        }
    }
    Ok(all)
}
