//! The critical path: which chain of computing, calls and messages the run took as long as.
//!
//! A thread's path at some moment is where the time until then went: on this thread, but for waits; a wait is replaced by
//! the path of the one that was waited for, up to the moment at which it came. The path of the thread that is the last to
//! end is the critical one. Only where the time went is kept, not its order, so a path is a table.
//!
//! A message carries the path of its sender, so tables share what they have in common: a path is a table and the path
//! before it. A path before that nobody else holds any more is added to what comes after it, so there are about as many
//! tables as threads and messages in flight.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// What time was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) rank: u32,
    /// The call, or the call before which it was computed.
    pub(super) place: u32,
    pub(super) computing: bool,
}

type TimeBySteps = HashMap<Step, u64>;

/// Where the time until some moment went.
#[derive(Debug, Clone, Default)]
pub(super) struct Path(Option<Rc<Node>>);

#[derive(Debug, Default)]
struct Node {
    own: RefCell<TimeBySteps>,
    before: RefCell<Path>,
}

impl Drop for Node {
    /// One after the other, not one within the other: there may be many.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(node) = next.0.take().and_then(|node| Rc::try_unwrap(node).ok()) {
            next = node.before.take();
        }
    }
}

/// A file may say anything of how long that was.
fn spend(table: &mut TimeBySteps, step: Step, time: u64) {
    let spent = table.entry(step).or_default();
    *spent = spent.saturating_add(time);
}

fn add(into: &mut TimeBySteps, mut other: TimeBySteps) {
    if into.len() < other.len() {
        std::mem::swap(into, &mut other);
    }
    for (step, time) in other {
        spend(into, step, time);
    }
}

impl Node {
    /// Adds what is before and nobody else holds.
    fn shorten(&self) {
        loop {
            let before = self.before.take();
            match before.0.map(Rc::try_unwrap) {
                Some(Ok(node)) => {
                    add(&mut self.own.borrow_mut(), node.own.take());
                    self.before.replace(node.before.take());
                }
                Some(Err(shared)) => {
                    self.before.replace(Path(Some(shared)));
                    return;
                }
                None => return,
            }
        }
    }
}

impl Path {
    /// All of it.
    pub(super) fn table(&self) -> TimeBySteps {
        let mut all = TimeBySteps::new();
        let mut next = self.clone();
        while let Some(node) = next.0 {
            for (step, time) in node.own.borrow().iter() {
                spend(&mut all, *step, *time);
            }
            next = node.before.borrow().clone();
        }
        all
    }

    /// How many tables it is made of.
    #[cfg(test)]
    fn len(&self) -> usize {
        let mut next = self.clone();
        let mut len = 0;
        while let Some(node) = next.0 {
            len += 1;
            next = node.before.borrow().clone();
        }
        len
    }
}

/// The path of a thread as it grows.
#[derive(Debug, Default)]
pub(super) struct Walked {
    path: Path,
    since: TimeBySteps,
}

impl Walked {
    pub(super) fn spend(&mut self, step: Step, time: u64) {
        if time > 0 {
            spend(&mut self.since, step, time);
        }
    }

    /// The path until now.
    pub(super) fn until_now(&mut self) -> Path {
        let since = std::mem::take(&mut self.since);
        if since.is_empty() && self.path.0.is_some() {
            return self.path.clone();
        }
        match &mut self.path.0 {
            // Nobody else holds it.
            Some(node) if Rc::strong_count(node) == 1 => {
                add(&mut node.own.borrow_mut(), since);
                node.shorten();
            }
            path => {
                let before = Path(path.take());
                before.0.iter().for_each(|node| node.shorten());
                *path = Some(Rc::new(Node { own: RefCell::new(since), before: RefCell::new(before) }));
            }
        }
        self.path.clone()
    }

    /// Goes on from where another one was.
    pub(super) fn follow(&mut self, path: &Path) {
        self.since.clear();
        self.path = path.clone();
    }

    /// Forgets everything.
    pub(super) fn begin(&mut self) {
        *self = Walked::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rank: u32) -> Step {
        Step { rank, place: 0, computing: true }
    }

    fn told(path: &Path) -> Vec<(u32, u64)> {
        let mut all: Vec<_> = path.table().into_iter().map(|(step, time)| (step.rank, time)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn one_follows_another() {
        let (mut a, mut b) = (Walked::default(), Walked::default());
        a.spend(step(0), 5);
        let sent = a.until_now();
        a.spend(step(0), 7);
        b.spend(step(1), 2);
        b.follow(&sent);
        b.spend(step(1), 1);
        assert_eq!(told(&b.until_now()), [(0, 5), (1, 1)]);
        assert_eq!(told(&a.until_now()), [(0, 12)]);
        assert_eq!(told(&sent), [(0, 5)]);
    }

    /// A barrier a step, each with another one last, and messages that nobody takes: tables do not pile up.
    #[test]
    fn paths_stay_short() {
        let mut ranks: Vec<Walked> = (0..4).map(|_| Walked::default()).collect();
        for round in 0..10_000u32 {
            for (rank, walked) in (0..).zip(&mut ranks) {
                walked.spend(step(rank), 1);
                drop(walked.until_now());
            }
            let last = ranks[(round % 3) as usize].until_now();
            ranks.iter_mut().for_each(|walked| walked.follow(&last));
        }
        let all = ranks[0].until_now();
        assert_eq!(told(&all), [(0, 3334), (1, 3333), (2, 3333)]);
        assert!(all.len() < 5, "{}", all.len());
    }

    /// As many as messages in flight, and no stack overflow when they go.
    #[test]
    fn messages_that_stay_in_flight() {
        let mut a = Walked::default();
        let mut sent = Vec::new();
        for _ in 0..200_000 {
            a.spend(step(0), 1);
            sent.push(a.until_now());
        }
        assert_eq!(told(&sent[99]), [(0, 100)]);
        drop(sent);
        assert_eq!(told(&a.until_now()), [(0, 200_000)]);
    }
}
