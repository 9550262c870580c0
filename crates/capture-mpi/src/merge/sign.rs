//! Rank 0 may be at the trace for minutes after all others have given it what they had, and wait for its word. It gives a sign
//! of life meanwhile, so that they need not wait for a rank that is dead or stands still.
//!
//! The sign is a word where the ranks have met, which a thread changes. A message would have to be received by ranks that wait
//! for another one.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use refrain_guest::ends::signals::held_off;
use refrain_tracefile::private::Private;

use super::arrival::Meeting;

/// Between two signs.
const OFTEN: Duration = Duration::from_secs(2);
/// A rank that is silent for less may be on a machine under load.
const LEAST: Duration = Duration::from_secs(10);
/// Instead of a number: there will be no sign, since no thread could be made.
const NONE: &str = "none";

/// Signs are given until this is dropped.
pub struct Signs {
    until: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Signs {
    pub fn begin(meeting: &Meeting) -> Signs {
        let (place, name) = meeting.place_of_sign();
        let (until, over) = channel();
        let signs = {
            let (place, name) = (place.clone(), name.clone());
            move || give(&place, &name, &over)
        };
        // A signal for the process is for a thread of the program's.
        let thread = held_off(|| Builder::new().name("refrain".into()).spawn(signs)).ok();
        if thread.is_none() {
            // Whoever does not see it either gives up early, and keeps its parts.
            let _ = leave(&place, &name, NONE);
        }
        Signs { until: Some(until), thread }
    }
}

impl Drop for Signs {
    fn drop(&mut self) {
        drop(self.until.take());
        if let Some(thread) = self.thread.take() {
            // It does not panic, and if it did, would have been of use before.
            let _ = thread.join();
        }
    }
}

fn give(place: &Path, name: &OsStr, over: &Receiver<()>) {
    for number in 0u64.. {
        match over.recv_timeout(OFTEN) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
        // Where it cannot be left now, it may be in a while.
        let _ = leave(place, name, &number.to_string());
    }
}

fn leave(place: &Path, name: &OsStr, word: &str) -> io::Result<()> {
    let directory = Private::open(place)?;
    // Whoever looks in between finds none, and looks again.
    let _ = directory.remove(name);
    directory.leave(name, word)
}

/// What a rank that waits knows of the signs of rank 0.
pub struct Watch {
    patience: Duration,
    seen: RefCell<Seen>,
}

#[derive(Default)]
struct Seen {
    last: Option<String>,
    /// When it was first seen, in the time that the message at hand was waited for.
    since: Duration,
    silent: Option<Duration>,
}

impl Watch {
    pub fn new(patience: Duration) -> Watch {
        Watch { patience: patience.max(LEAST), seen: RefCell::default() }
    }

    /// Whether rank 0 has given no sign for too long, after so long a wait for one message.
    pub fn is_silent(&self, waited: Duration, look: impl FnOnce() -> io::Result<Option<String>>) -> bool {
        let mut seen = self.seen.borrow_mut();
        // Another message.
        seen.since = seen.since.min(waited);
        match look() {
            // Who cannot look knows nothing.
            Err(_) => return false,
            Ok(Some(word)) if word == NONE => return false,
            Ok(Some(word)) if seen.last.as_ref() != Some(&word) => {
                *seen = Seen { last: Some(word), since: waited, silent: None };
            }
            Ok(_) => {}
        }
        let silent = waited - seen.since;
        seen.silent = (silent >= self.patience).then_some(silent);
        seen.silent.is_some()
    }

    /// For how many seconds it was silent, if that is why this rank has given up.
    pub fn gave_up_after(&self) -> Option<u64> {
        self.seen.borrow().silent.map(|silent| silent.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn silent(watch: &Watch, waited: u64, word: Option<&str>) -> bool {
        watch.is_silent(at(waited), || Ok(word.map(str::to_owned)))
    }

    #[test]
    fn who_is_silent_for_longer_than_patience_is_given_up() {
        let watch = Watch::new(at(30));
        for (waited, word) in [(5, None), (29, None), (35, Some("0")), (60, Some("0")), (64, None)] {
            assert!(!silent(&watch, waited, word), "after {waited} s");
        }
        assert_eq!(watch.gave_up_after(), None);
        assert!(silent(&watch, 65, Some("0")));
        assert_eq!(watch.gave_up_after(), Some(30));
        // One that goes on is waited for.
        assert!(!silent(&watch, 66, Some("1")));
        assert_eq!(watch.gave_up_after(), None);
        // Another message is waited for anew.
        assert!(!silent(&watch, 0, Some("1")) && !silent(&watch, 29, Some("1")));
        assert!(silent(&watch, 30, Some("1")));
    }

    #[test]
    fn no_rank_is_given_up_in_haste_or_without_knowing() {
        let watch = Watch::new(Duration::ZERO);
        assert!(!silent(&watch, 9, None));
        assert!(!silent(&watch, 1000, Some(NONE)));
        assert!(!watch.is_silent(at(1000), || Err(io::ErrorKind::PermissionDenied.into())));
        assert!(silent(&watch, 1000, None));
    }
}
