//! Threads of a process, and processes, as one.

use refrain_fold::bundle::{Bundle, merge};

use crate::Error;

/// Joins what threads or processes recorded, pair by pair, and puts it into its final form.
pub fn join(mut bundles: Vec<Bundle>) -> Result<Bundle, Error> {
    while bundles.len() > 1 {
        let mut next = Vec::with_capacity(bundles.len().div_ceil(2));
        let mut pairs = bundles.into_iter();
        while let Some(first) = pairs.next() {
            next.push(match pairs.next() {
                Some(second) => merge(first, second)?,
                None => first,
            });
        }
        bundles = next;
    }
    let mut bundle = bundles.pop().unwrap_or_default();
    bundle.canonical()?;
    Ok(bundle)
}
