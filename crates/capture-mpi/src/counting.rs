//! A recorder for tests (feature `count-calls`): how often each function returned, and where the pointers shown to
//! `MPI_Get_address` lie, written as text, one file a process, beside `REFRAIN_OUT`.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use crate::hooks::{Observed, Recorder};
use crate::memory::{Place, Segments};
use crate::state;

#[derive(Debug)]
pub struct Counting;

impl Recorder for Counting {
    fn init(_: Observed<'_>) {
        *state::PLACES.lock().expect("nobody panicked here") = Some((Segments::new(), Vec::new()));
    }

    fn before(_: Observed<'_>) {}

    fn after(call: Observed<'_>, _: i64, _: u64, _: u64) {
        state::COUNTS[call.index].fetch_add(1, Relaxed);
        if call.function.name == "MPI_Get_address" {
            let mut places = state::PLACES.lock().expect("nobody panicked here");
            if let Some((segments, seen)) = places.as_mut() {
                seen.push(segments.locate(call.args[0]));
            }
        }
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
        if let Some((_, seen)) = &*state::PLACES.lock().expect("nobody panicked here") {
            for Place { area, segment, offset } in seen {
                writeln!(text, "{area:?}#{segment}+{offset}").expect("a String takes any text");
            }
        }
        if let Some(config) = state::CONFIG.get() {
            let path = format!("{}.{}", config.out.display(), std::process::id());
            std::fs::write(path, text).expect("the test's folder is writable");
        }
    }
}
