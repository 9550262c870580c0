//! A bar on the terminal for what takes longer than a second.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_millis(100);
const WIDTH: usize = 40;

pub struct Bar {
    what: &'static str,
    start: Instant,
    last: Option<Instant>,
    enabled: bool,
}

impl Bar {
    pub fn new(what: &'static str) -> Bar {
        Bar { what, start: Instant::now(), last: None, enabled: std::io::stderr().is_terminal() }
    }

    pub fn show(&mut self, done: u64, all: u64) {
        let now = Instant::now();
        let soon = self.last.is_some_and(|last| now - last < BETWEEN);
        if !self.enabled || now - self.start < PATIENCE || soon {
            return;
        }
        self.last = Some(now);
        let _ = write!(std::io::stderr(), "\r{} {}", self.what, bar(done, all));
    }

    /// What is done now, where nobody knows how far it is.
    pub fn say(&mut self, doing: &str) {
        let now = Instant::now();
        if self.enabled && now - self.start >= PATIENCE {
            self.last = Some(now);
            let _ = write!(std::io::stderr(), "\r\x1b[K{}: {doing}", self.what);
        }
    }

    /// Leaves the line as if nothing had been there.
    pub fn clear(&mut self) {
        if self.last.take().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn bar(done: u64, all: u64) -> String {
    let part = if all == 0 { 1.0 } else { (done as f64 / all as f64).min(1.0) };
    let full = (part * WIDTH as f64) as usize;
    format!("[{}{}] {:3.0}%", "#".repeat(full), " ".repeat(WIDTH - full), (part * 100.0).floor())
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars() {
        assert_eq!(bar(0, 10), format!("[{}]   0%", " ".repeat(40)));
        assert_eq!(bar(5, 10), format!("[{}{}]  50%", "#".repeat(20), " ".repeat(20)));
        assert_eq!(bar(999, 1000), format!("[{}{}]  99%", "#".repeat(39), " "));
        assert_eq!(bar(10, 10), format!("[{}] 100%", "#".repeat(40)));
        assert_eq!(bar(0, 0), bar(10, 10));
        assert_eq!(bar(11, 10), bar(10, 10));
    }
}
