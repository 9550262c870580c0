//! Which ranks, functions and call sites became slower or faster, beyond what chance does.
//!
//! Of each kind of calls a trace has their number n, their mean m, the shortest and the longest. However they are spread,
//! their variance is at most (longest - m)(m - shortest), so that the mean is uncertain by no more than the root of that over
//! n. Where a trace tells the time of a function by rank, its spread over ranks says so too: the larger of both counts. Noise
//! is twice the uncertainty of the difference of both means (of less than ten calls more, about as Student's t has it; of one
//! call nothing is known), and what the file leaves open: tallies are kept to within 1/32. Call sites that share a tally with
//! others, in one of the traces, are compared as one.
//! What two runs have not in common, such as a busy machine, no trace of one run can show: that is told as a change.

use std::collections::{BTreeMap, HashMap};

use refrain_model::{Function, function, function_by_id};
use refrain_tracefile::Trace;
use refrain_tracefile::profile::Spent;

use super::lasted::Lasted;
use super::{Sources, Unread, Which};
use crate::length::Told;
use crate::stats::{self, Spent as Time, kept};

/// The time of calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spell {
    pub calls: u64,
    pub time: Time,
}

impl Spell {
    pub fn mean(&self) -> f64 {
        self.time.total as f64 / self.calls.max(1) as f64
    }

    /// The mean, and by how much it may be wrong.
    pub fn told(&self) -> Told {
        self.time.mean(self.calls)
    }

    /// The variance of the mean.
    fn variance(&self, by_rank: f64) -> f64 {
        let mean = self.mean();
        let spread = (self.time.max as f64 - mean).max(0.0) * (mean - self.time.min as f64).max(0.0);
        (spread / self.calls.max(1) as f64).max(by_rank)
    }
}

/// Calls whose mean time changed by more than noise.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    pub function: &'static str,
    pub at: Option<String>,
    /// Of so many call sites together, where times of single ones are not known.
    pub together: Option<usize>,
    pub a: Spell,
    pub b: Spell,
    /// Of the difference of the means, in nanoseconds.
    pub noise: f64,
}

impl Slower {
    /// Nothing changed beyond noise.
    pub fn is_none(&self) -> bool {
        self.moved.is_empty() && self.lasted.as_ref().is_none_or(|lasted| lasted.moved.is_empty())
    }
}

impl Moved {
    /// How much longer a call of B takes on the mean, in nanoseconds.
    pub fn by(&self) -> f64 {
        self.b.mean() - self.a.mean()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Slower {
    /// None where a trace does not tell times by rank.
    pub lasted: Option<Lasted>,
    /// Those that cost the most, or saved the most, first.
    pub moved: Vec<Moved>,
    /// Kinds of calls that both have and whose times are within noise.
    pub within: usize,
    /// Call sites that share a time with others, not all of which both have: these are not compared.
    pub left: usize,
}

/// What tallies leave open.
const OPEN: f64 = 1.0 / 32.0;

/// By call site where both traces have them, otherwise by function. Both must have times.
pub fn slower(a: Sources<'_>, b: Sources<'_>) -> Result<Slower, Unread> {
    let by_site = !a.0.bundle.sites.is_empty() && !b.0.bundle.sites.is_empty();
    let (mut of_a, mut of_b) = (spells(Which::A, a, by_site)?, spells(Which::B, b, by_site)?);
    let lasted = Lasted::of(a.0.meta.profile.as_ref(), b.0.meta.profile.as_ref());
    let mut found = Slower { lasted, moved: Vec::new(), within: 0, left: 0 };
    let (pooled, left) = pool(&mut of_a, &mut of_b);
    found.left = left;
    let alone = of_a.into_iter().filter_map(|(key, a)| {
        let b = *of_b.get(&key)?;
        Some((key, None, a, b))
    });
    for (key, together, a_spell, b_spell) in alone.chain(pooled) {
        let sites = together.unwrap_or(1);
        let ranks = |trace: &Trace, spell: &Spell| match (by_site, function(key.0)) {
            (false, Some(f)) => by_rank(trace, f, spell),
            _ => 0.0,
        };
        let variance = a_spell.variance(ranks(a.0, &a_spell)) + b_spell.variance(ranks(b.0, &b_spell));
        let free = a_spell.calls.min(b_spell.calls).saturating_sub(1) as f64;
        if free == 0.0 {
            found.within += sites;
            continue;
        }
        let noise =
            2.0 * (1.0 + 6.0 / (free * free)) * variance.sqrt() + OPEN * (a_spell.mean() + b_spell.mean());
        let moved = Moved { function: key.0, at: key.1, together, a: a_spell, b: b_spell, noise };
        if moved.by().abs() > noise {
            found.moved.push(moved);
        } else {
            found.within += sites;
        }
    }
    let weight = |moved: &Moved| moved.by().abs() * moved.a.calls.max(moved.b.calls) as f64;
    found.moved.sort_by(|x, y| {
        weight(y).total_cmp(&weight(x)).then_with(|| (x.function, &x.at).cmp(&(y.function, &y.at)))
    });
    Ok(found)
}

type Key = (&'static str, Option<String>);
type Spells = HashMap<Key, Spell>;
/// A function, of how many call sites, and their time in A and in B.
type Pooled = (Key, Option<usize>, Spell, Spell);

/// Takes out the call sites that share a tally in A or in B. Of each function they are one, if both runs have all of them; otherwise they are
/// counted.
fn pool(of_a: &mut Spells, of_b: &mut Spells) -> (Vec<Pooled>, usize) {
    let mut shared: BTreeMap<&'static str, Vec<Key>> = BTreeMap::new();
    for (key, spell) in of_a.iter().chain(of_b.iter()) {
        let keys = shared.entry(key.0).or_default();
        if spell.time.together && !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    let (mut pooled, mut left) = (Vec::new(), 0);
    for (function, keys) in shared {
        let whole = keys.iter().all(|key| of_a.contains_key(key) && of_b.contains_key(key));
        let take = |of: &mut Spells| {
            let spells: Vec<Spell> = keys.iter().filter_map(|key| of.remove(key)).collect();
            let (calls, time) = kept::joined(spells.iter().map(|spell| (spell.calls, spell.time)))?;
            Some(Spell { calls, time })
        };
        match (take(of_a), take(of_b)) {
            (Some(a), Some(b)) if whole => pooled.push(((function, None), Some(keys.len()), a, b)),
            _ => left += keys.len(),
        }
    }
    (pooled, left)
}

/// Calls that have a time: `MPI_Finalize` has none.
fn spells(which: Which, (trace, names): Sources<'_>, by_site: bool) -> Result<Spells, Unread> {
    let unread = |error| Unread { which, error };
    let mut spells = HashMap::new();
    if by_site {
        for row in stats::sites(trace, names).map_err(unread)? {
            if let Some(time) = kept::measured(row.time, row.calls) {
                let at = row.place.map(|place| place.to_string());
                spells.insert((row.function, at), Spell { calls: row.calls, time });
            }
        }
        return Ok(spells);
    }
    let layouts = stats::layouts(&trace.bundle).map_err(unread)?;
    let calls = stats::symbol_calls(&trace.bundle, &layouts);
    for (id, (calls, time)) in stats::function_times(trace, &layouts, &calls) {
        if let (Some(f), Some(time)) = (function_by_id(id), kept::measured(Some(time), calls)) {
            spells.insert((f.name, None), Spell { calls, time });
        }
    }
    Ok(spells)
}

/// The variance of the mean time of a call, by how it spreads over ranks.
fn by_rank(trace: &Trace, f: &Function, spell: &Spell) -> f64 {
    let Some(profile) = &trace.meta.profile else { return 0.0 };
    let times = profile.by_rank(Spent::Function(f.id));
    let times: Vec<f64> = times.iter().map(|&(_, ns)| ns as f64).collect();
    let n = times.len() as f64;
    let mean = times.iter().sum::<f64>() / n.max(1.0);
    if times.len() < 2 || mean <= 0.0 {
        return 0.0;
    }
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (n - 1.0) / n;
    variance * (spell.mean() / mean).powi(2)
}
