//! How long somebody has waited.

use std::time::{Duration, Instant};

/// Time that was waited, without that in which the process was stopped: suspended, or held by a debugger.
#[derive(Debug)]
pub struct Waited {
    looked: Instant,
    waited: Duration,
}

impl Default for Waited {
    fn default() -> Self {
        Waited { looked: Instant::now(), waited: Duration::ZERO }
    }
}

impl Waited {
    /// Called again and again; more than a second between two times is a process that did not run.
    pub fn so_far(&mut self) -> Duration {
        const GAP: Duration = Duration::from_secs(1);
        let now = Instant::now();
        self.waited += now.duration_since(self.looked).min(GAP);
        self.looked = now;
        self.waited
    }
}
