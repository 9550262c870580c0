//! What becomes of the parts when the trace is written, or is not.

use std::path::Path;

use refrain_guest::process::say::say;
use refrain_tracefile::Stamp;
use refrain_tracefile::claim::{Done, Job};
use refrain_tracefile::part;
use refrain_tracefile::private::Private;

use crate::config::Config;

/// Parts that the trace makes superfluous go; others are spoken of.
pub fn settle(config: &Config, parts: &Path, job: Option<&Job>, started: u64, written: bool, missing: bool) {
    if let Some(job) = job {
        job.end(match Stamp::of(&job.trace).filter(|_| written) {
            Some(stamp) if missing => Done::Lacking(stamp),
            Some(stamp) => Done::Whole(stamp),
            None => Done::Nothing,
        });
    }
    if written && !missing {
        if let Ok(directory) = Private::open(parts) {
            for name in part::of_run(&directory, &config.run, started) {
                // What cannot be removed is only in the way.
                let _ = directory.remove(&name);
            }
            let _ = directory.remove_itself();
        }
        // Nobody else does it.
        if let Some(job) = job.filter(|_| !config.held) {
            job.release();
        }
    } else if config.summary && config.safe && parts.is_dir() {
        // Nobody is left to do it.
        let shown = parts.display();
        say(&format!("what was recorded is kept: `refrain recover {shown} --out FILE` makes a trace of it"));
    }
}
