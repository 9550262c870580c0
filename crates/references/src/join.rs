//! Threads of a process, and processes, as one.

use refrain_fold::bundle::{Bundle, merge};

use crate::Error;

/// Joins what threads or processes recorded while it comes, pair by pair: like a binary counter it holds one bundle of each
/// size, so a thousand that are alike take the room of ten.
///
/// ```
/// use refrain_fold::bundle::Bundle;
/// use refrain_references::Joining;
/// let mut joining = Joining::default();
/// for _ in 0..5 {
///     joining.add(Bundle::default()).unwrap();
/// }
/// assert!(joining.finish().unwrap().is_some());
/// ```
#[derive(Default)]
pub struct Joining {
    /// How many were joined into each, and what they are; every one has more than the next.
    held: Vec<(u64, Bundle)>,
}

impl Joining {
    pub fn add(&mut self, bundle: Bundle) -> Result<(), Error> {
        let (mut count, mut bundle) = (1, bundle);
        while let Some((_, before)) = self.held.pop_if(|(held, _)| *held == count) {
            bundle = merge(before, bundle)?;
            count *= 2;
        }
        self.held.push((count, bundle));
        Ok(())
    }

    /// All of them, in their final form, if there were any.
    pub fn finish(mut self) -> Result<Option<Bundle>, Error> {
        let Some((_, mut all)) = self.held.pop() else { return Ok(None) };
        while let Some((_, before)) = self.held.pop() {
            all = merge(before, all)?;
        }
        all.canonical()?;
        Ok(Some(all))
    }
}

/// Joins those of a whole run.
pub fn join(bundles: impl IntoIterator<Item = Bundle>) -> Result<Bundle, Error> {
    let mut joining = Joining::default();
    for bundle in bundles {
        joining.add(bundle)?;
    }
    Ok(joining.finish()?.unwrap_or_default())
}
