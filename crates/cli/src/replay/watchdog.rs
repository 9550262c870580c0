//! Whether ranks of a replay get on: each leaves the number of its call in a file.

use std::path::Path;
use std::time::{Duration, Instant};

use refrain_tracefile::Trace;
use refrain_tracefile::claim::processes_seen;
use refrain_views::waiting;

/// So many ranks are told of.
const MOST_TOLD: usize = 16;

/// What a rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has not said anything.
    Silent,
    /// It is in the call with this number; so many calls other threads of it have begun.
    Inside(u64, u64),
    /// It waits for another of its threads; so many calls were made, and by others so many begun.
    Waits(u64, u64),
    /// It computes; so many calls were made.
    Computes(u64),
    /// Its process has ended, in the call with that number if it was in one.
    Gone(Option<u64>),
    /// It has said why it gave up.
    Failed,
    /// It has come to its end.
    Done,
}

impl State {
    /// It has begun and has not come to its end.
    pub fn is_amid(&self) -> bool {
        matches!(self, State::Inside(..) | State::Waits(..) | State::Computes(_) | State::Gone(_))
    }
}

/// When a rank is gone, a launcher may take so long to end the others.
const AFTER_A_LOSS: Duration = Duration::from_secs(5);

/// What all ranks do.
pub fn states(reports: &Path, ranks: &[u32]) -> Vec<State> {
    ranks.iter().map(|rank| state(reports, *rank)).collect()
}

/// What stands in the file of a rank: `refrain-replay` says in `watch.rs` which word is what.
fn state(reports: &Path, rank: u32) -> State {
    let there = |word: &str| reports.join(format!("{word}-{rank}")).exists();
    if there("failed") {
        return State::Failed;
    }
    if there("rank") {
        return State::Done;
    }
    let bytes = std::fs::read(reports.join(format!("state-{rank}"))).unwrap_or_default();
    let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (Some(begun), Some(ended), Some(process)) = (word(0), word(8), word(16)) else {
        return State::Silent;
    };
    let inside = (begun != ended).then(|| begun.saturating_sub(1));
    let [others, computing, waits, seen] = [24, 32, 40, 48].map(|at| word(at).unwrap_or(0));
    // On another machine, or in another namespace, that number is another process.
    let visible = seen != 0 && seen == processes_seen();
    match inside {
        _ if visible && !Path::new("/proc").join(process.to_string()).exists() => State::Gone(inside),
        _ if computing > 0 => State::Computes(ended),
        Some(number) => State::Inside(number, others),
        None if waits != 0 => State::Waits(ended, others),
        None => State::Computes(ended),
    }
}

/// Of each rank that is not done what it does, in a line.
pub fn lines(trace: &Trace, ranks: &[u32], states: &[State]) -> Vec<String> {
    let mut lines = Vec::new();
    for (&rank, state) in ranks.iter().zip(states) {
        let what = match *state {
            State::Done | State::Failed => continue,
            State::Silent => "has not started".to_owned(),
            State::Inside(number, _) => format!("in {}", waiting::for_what(trace, rank, number)),
            State::Gone(Some(number)) => format!("gone, in {}", waiting::for_what(trace, rank, number)),
            State::Gone(None) => "gone, between calls".to_owned(),
            State::Waits(calls, _) => format!("waiting for another of its threads, after {calls} calls"),
            State::Computes(calls) => format!("computing, after {calls} calls"),
        };
        lines.push(format!("rank {rank}: {what}"));
    }
    if lines.len() > MOST_TOLD {
        let more = lines.len() - MOST_TOLD;
        lines.truncate(MOST_TOLD);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Whether one of them is gone.
pub fn some_lost(states: &[State]) -> bool {
    states.iter().any(|state| matches!(state, State::Gone(_) | State::Failed))
}

/// Notices when no rank gets on any more.
pub struct Watchdog<'a> {
    reports: &'a Path,
    ranks: &'a [u32],
    patience: Option<Duration>,
    seen: Vec<State>,
    since: Instant,
    /// Since when a rank has been gone.
    lost: Option<Instant>,
}

impl<'a> Watchdog<'a> {
    /// With so many seconds of patience; 0 is without end.
    pub fn new(reports: &'a Path, ranks: &'a [u32], patience: u64) -> Watchdog<'a> {
        let patience = (patience > 0).then(|| Duration::from_secs(patience));
        Watchdog { reports, ranks, patience, seen: Vec::new(), since: Instant::now(), lost: None }
    }

    /// What ranks do, if all of them have done the same for too long, and none computes; or if one is gone, and others wait
    /// for it.
    pub fn stuck(&mut self) -> Option<Vec<State>> {
        let now = states(self.reports, self.ranks);
        self.lost = some_lost(&now).then(|| self.lost.unwrap_or_else(Instant::now));
        if self.lost.is_some_and(|lost| lost.elapsed() >= AFTER_A_LOSS) {
            return Some(now);
        }
        let patience = self.patience?;
        // One that has not started may wait for its turn in a queue.
        let gets_on = |state: &State| matches!(state, State::Computes(_) | State::Silent);
        if now != self.seen || now.iter().any(gets_on) {
            (self.seen, self.since) = (now, Instant::now());
            return None;
        }
        (self.since.elapsed() >= patience).then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn only_those_who_wait_are_stuck() {
        let dir = Scratch::new("watchdog");
        let put_all = |rank: u32, words: [u64; 7]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            std::fs::write(dir.path(format!("state-{rank}")), bytes).unwrap();
        };
        let put = |rank, [begun, ended, process]: [u64; 3]| {
            put_all(rank, [begun, ended, process, 0, 0, 0, processes_seen()])
        };
        let own = u64::from(std::process::id());
        let place = dir.path("");
        put(0, [5, 4, own]);
        put(1, [7, 7, own]);
        // No process has this number.
        put(2, [3, 2, u64::MAX]);
        std::fs::write(dir.path("rank-3"), "").unwrap();
        let expected =
            [State::Inside(4, 0), State::Computes(7), State::Gone(Some(2)), State::Done, State::Silent];
        assert_eq!(states(&place, &[0, 1, 2, 3, 4]), expected);

        // One is gone, which is told soon whatever the patience.
        let mut watchdog = Watchdog::new(&place, &[0, 1, 2, 3], 1000);
        assert_eq!(watchdog.stuck(), None);
        watchdog.lost = watchdog.lost.map(|lost| lost - AFTER_A_LOSS);
        assert_eq!(watchdog.stuck().map(|all| all[2]), Some(State::Gone(Some(2))));

        put(2, [3, 2, own]);
        let mut watchdog = Watchdog::new(&place, &[0, 1, 2, 3], 1);
        assert_eq!(watchdog.stuck(), None);
        watchdog.since -= Duration::from_secs(2);
        // Rank 1 computes.
        assert_eq!(watchdog.stuck(), None);
        put(1, [8, 7, own]);
        assert_eq!(watchdog.stuck(), None);
        assert_eq!(watchdog.stuck(), None);
        watchdog.since -= Duration::from_secs(2);
        assert_eq!(watchdog.stuck().map(|all| all[1]), Some(State::Inside(7, 0)));
        let mut patient = Watchdog::new(&place, &[0, 1, 2, 3], 0);
        patient.since -= Duration::from_secs(1000);
        assert_eq!((patient.stuck(), patient.stuck()), (None, None));

        // Of several threads: one computes while the first is in a call; the first waits for others.
        put_all(0, [5, 4, own, 9, 1, 0, processes_seen()]);
        put_all(1, [5, 5, own, 9, 0, 1, processes_seen()]);
        // Processes of another machine, of which that number says nothing here.
        put_all(2, [5, 4, u64::MAX, 0, 0, 0, processes_seen() ^ 1]);
        put_all(3, [5, 4, u64::MAX, 0, 0, 0, 0]);
        std::fs::remove_file(dir.path("rank-3")).unwrap();
        let expected = [State::Computes(4), State::Waits(5, 9), State::Inside(4, 0), State::Inside(4, 0)];
        assert_eq!(states(&place, &[0, 1, 2, 3]), expected);
        let mut watchdog = Watchdog::new(&place, &[1, 2, 3], 1);
        assert_eq!(watchdog.stuck(), None);
        watchdog.since -= Duration::from_secs(2);
        assert!(watchdog.stuck().is_some());
    }
}
