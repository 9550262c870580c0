//! What may be lost (`--lossy`, [`Lossy`]): a recording made smaller by forgetting what a user said is not needed.
//!
//! `waits` changes calls as they come and is part of the tape. Everything else needs all of a rank's calls, and most of it
//! those of all ranks: what each of them knows is brought together in [`Agreed`], then [`lose`] changes each rank's finished
//! recording, whose digest is that of what is left, so that a reader can still tell it from anything else.

mod agreed;
mod anew;
mod averages;
pub(crate) mod histograms;
mod near;
mod tags;
pub(crate) mod waits;

pub use agreed::Agreed;
pub use tags::Tags;

use refrain_fold::bundle::{Bundle, Cohort, blend};
use refrain_model::Lossy;

use crate::error::Error;
use crate::hash::hash_symbol;
use crate::reader::{Reader, digest_of};
use crate::structure::Folding;
use anew::Anew;

/// Loses what the words allow in a bundle that is the own one of one of `size` ranks. `agreed` is what all ranks know
/// together. Gives, for each symbol that there was, the signature ([`hash_symbol`]) of the one that its calls have now, or the
/// first of them.
pub fn lose(
    bundle: &mut Bundle,
    (rank, size): (u32, u32),
    (lossy, folding): (&Lossy, Folding),
    agreed: &Agreed,
) -> Result<Vec<u64>, Error> {
    let mut changed = false;
    // First, since which communicator a call is on has to be read from all of it.
    if lossy.tags {
        changed |= agreed.tags.drop_from(bundle, rank)?;
    }
    let mut became: Vec<u64> = bundle.symbols.iter().map(|s| hash_symbol(&s.bytes, s.site)).collect();
    let filling = if lossy.averages { agreed.averages.filling(bundle, rank, size)? } else { None };
    let near = lossy.sites > 0 && !agreed.sites.unknown;
    let own: Vec<u64> = bundle.symbols.iter().map(|symbol| symbol.site).collect();
    let sites = if near { agreed.sites.sites(bundle, lossy.sites) } else { own.clone() };
    if filling.is_some() || sites != own {
        let mut stacks = bundle.sites.clone();
        stacks.join(agreed.sites.stacks());
        let anew = Anew { folding, joins: lossy.waits, sites: &sites, stacks };
        *bundle = anew.make(bundle, rank, filling, &mut became)?;
    }
    if let Some(histograms) = lossy.histograms {
        changed |= histograms::make(bundle, histograms);
    }
    if changed {
        let reader = Reader::new(bundle);
        // Each of its threads is still a cohort of its own.
        let digest = |cohort: &Cohort| {
            let Some(member) = cohort.ranks.first() else { return Ok(None) };
            let (_, thread) = bundle.place_of(member);
            Ok(Some(blend(member, digest_of(&reader, rank, thread)?)))
        };
        let digests = bundle.cohorts.iter().map(digest).collect::<Result<Vec<Option<u64>>, Error>>()?;
        for (cohort, digest) in bundle.cohorts.iter_mut().zip(digests) {
            cohort.digest = digest.unwrap_or(cohort.digest);
        }
    }
    Ok(became)
}
