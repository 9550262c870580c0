//! What is lost on purpose.

use std::panic::{AssertUnwindSafe, catch_unwind};

use refrain_encode::{Agreed, hash_symbol};
use refrain_fold::FastMap;
use refrain_fold::bundle::{Bundle, Link};

use super::agreement::agree;
use super::summary::Summary;
use crate::config::Config;

/// What may be lost of a finished recording, and what there is to say of that. All ranks take part, also those that have
/// none.
pub fn lose_on_purpose<L: Link>(
    config: &Config,
    link: &mut L,
    (rank, size): (u32, u32),
    bundle: Bundle,
    own: &mut Summary,
) -> (Bundle, Vec<String>) {
    let lossy = &config.lossy;
    if !lossy.at_the_end() {
        return (bundle, Vec::new());
    }
    let agreed = if lossy.needs_agreement() {
        let read = || Agreed::of(&bundle, rank, size, own.missing, lossy);
        let known = catch_unwind(AssertUnwindSafe(read)).ok().and_then(Result::ok);
        agree(link, rank, size, known.unwrap_or_else(Agreed::unknown))
    } else {
        Agreed::default()
    };
    own.notes.extend(agreed.failed(lossy).into_iter().map(str::to_owned));
    let mut changed = bundle.clone();
    let change = || refrain_encode::lose(&mut changed, (rank, size), (lossy, config.fold), &agreed);
    let bundle = match catch_unwind(AssertUnwindSafe(change)) {
        Ok(Ok(became)) => {
            let old = bundle.symbols.iter().map(|symbol| hash_symbol(&symbol.bytes, symbol.site));
            let became: FastMap<u64, u64> = old.zip(became).collect();
            own.paths = own.paths.take().map(|paths| paths.renamed(|was| became.get(&was).copied()));
            changed
        }
        failed => {
            let why = match failed {
                Ok(Err(error)) => error.to_string(),
                _ => "an internal error".to_owned(),
            };
            own.notes.push(format!("rank {rank}: nothing was lost, as it could not be read back ({why})"));
            bundle
        }
    };
    (bundle, agreed.notes())
}
