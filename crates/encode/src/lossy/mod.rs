//! What may be lost (`--lossy`, [`Lossy`]): a recording made smaller by forgetting what a user said is not needed.
//!
//! `averages` and `waits` change calls as they come: [`Averages`] looks at records before they are folded, [`waits`] is
//! part of the tape. `histograms` and `tags` need all of a rank's calls: [`lose`] changes its finished recording, and
//! then takes the digest of what is left, so that a reader can still tell it from anything else.

mod averages;
mod histograms;
mod tags;
pub(crate) mod waits;

pub use averages::{Averages, Extremes};
pub use tags::Tags;

use refrain_fold::bundle::{Bundle, blend};
use refrain_model::Lossy;

use crate::error::Error;
use crate::reader::digest_of;

/// Loses what the words allow in a bundle that is one rank's own. `tags` are those of all ranks together; without them
/// every tag stays.
pub fn lose(bundle: &mut Bundle, rank: u32, lossy: &Lossy, tags: Option<&Tags>) -> Result<(), Error> {
    let mut changed = false;
    // First, since which communicator a call is on has to be read from all of it.
    if let Some(tags) = tags.filter(|_| lossy.tags) {
        changed |= tags.drop_from(bundle, rank)?;
    }
    if lossy.histograms > 0 {
        changed |= histograms::make(bundle, lossy.histograms as usize);
    }
    if changed {
        let threads = bundle.threads(rank);
        let digests = threads.iter().map(|&thread| Ok((thread, digest_of(bundle, rank, thread)?)));
        let digests = digests.collect::<Result<Vec<(u32, u64)>, Error>>()?;
        for cohort in &mut bundle.cohorts {
            let own = digests.iter().find(|(thread, _)| *thread == cohort.thread);
            if let Some(&(_, digest)) = own {
                cohort.digest = blend(rank, digest);
            }
        }
    }
    Ok(())
}
