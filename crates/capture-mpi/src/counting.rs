//! A recorder for tests (feature `count-calls`): how often each function returned, written as text, one file a process,
//! beside `REFRAIN_OUT`.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use crate::hooks::{Observed, Recorder};
use crate::state;

#[derive(Debug)]
pub struct Counting;

impl Recorder for Counting {
    fn init(_: Observed<'_>) {}

    fn before(_: Observed<'_>) {}

    fn after(call: Observed<'_>, _: i64, _: u64, _: u64) {
        state::COUNTS[call.index].fetch_add(1, Relaxed);
    }

    fn finalize(call: Observed<'_>, whole: bool) {
        state::COUNTS[call.index].fetch_add(1, Relaxed);
        let mut text = format!("whole {whole}\n");
        for (count, function) in state::COUNTS.iter().zip(refrain_model::functions()) {
            let count = count.load(Relaxed);
            if count > 0 {
                writeln!(text, "{} {count}", function.name).expect("a String takes any text");
            }
        }
        if let Some(config) = state::CONFIG.get() {
            let path = format!("{}.{}", config.out.display(), std::process::id());
            std::fs::write(path, text).expect("the test's folder is writable");
        }
    }
}
