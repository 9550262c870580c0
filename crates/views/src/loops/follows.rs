//! Which call directly followed which, and how often: what the order of all calls comes to. Told from the folded form,
//! where whatever repeats without change is looked at once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use refrain_fold::loops::{Loops, Node};
use refrain_fold::stream::{Iter, Stream};

/// A call and the one before it; none before the first.
pub type Pair = (Option<u32>, u32);
pub type Follows = HashMap<Pair, u64>;

/// Bodies that change are gone through run by run, so many nodes in all: that takes a fraction of a second.
pub const MOST: u64 = 1 << 22;
/// Loops within loops: no program has more.
const DEEPEST: usize = 256;

/// What a node is each time it runs.
#[derive(Debug, Clone, Copy)]
enum Ends {
    /// Its first and last call, always the same, as is all between them.
    Fixed(u32, u32),
    /// No call at all.
    Empty,
    /// Not the same each time.
    Varies,
}

/// Of ranks with these times of the nodes. `left` are the nodes that may still be gone through; `None` where it takes more.
pub fn follows(loops: &Loops, times: &[Option<Cow<Stream>>], left: &mut u64) -> Option<Follows> {
    let stream = |node: usize| times.get(node)?.as_deref();
    let totals = loops.totals(stream);
    let ends: Vec<usize> = loops.nodes.iter().enumerate().map(|(at, node)| end(at, node)).collect();
    let constant = |node: usize| {
        let (reached, _) = totals[node];
        let range = stream(node).and_then(|stream| stream.min_max(reached));
        let (low, high) = range.unwrap_or((0, 0));
        (low == high).then_some(u64::try_from(low).unwrap_or(0))
    };
    let mut walk = Walk { ends, shapes: Vec::new(), streams: Vec::new(), found: HashMap::new() };
    walk.shapes = vec![(Ends::Empty, None); loops.nodes.len()];
    // What is inside first.
    for node in (0..loops.nodes.len()).rev() {
        let own = match loops.nodes[node] {
            Node::Event(symbol) => Ends::Fixed(symbol, symbol),
            Node::Loop { .. } => walk.body(node, totals[node].1),
        };
        walk.shapes[node] = (own, constant(node));
    }
    walk.streams = (0..loops.nodes.len()).map(|node| stream(node).map(Stream::iter)).collect();
    let mut last = None;
    walk.run(0..loops.nodes.len(), 0, &mut last, left)?;
    Some(walk.found)
}

fn end(at: usize, node: &Node) -> usize {
    match node {
        Node::Loop { inside } => at + 1 + *inside as usize,
        Node::Event(_) => at + 1,
    }
}

struct Walk<'l> {
    /// By node, the one behind it and all that is in it.
    ends: Vec<usize>,
    /// By node: what it is, and how often it runs where that is always the same.
    shapes: Vec<(Ends, Option<u64>)>,
    streams: Vec<Option<Iter<'l>>>,
    found: Follows,
}

impl Walk<'_> {
    fn add(&mut self, before: Option<u32>, call: u32, times: u64) {
        if times > 0 {
            let known = self.found.entry((before, call)).or_insert(0);
            *known = known.saturating_add(times);
        }
    }

    /// A loop's body. One that is always the same is done with here, for all its runs.
    fn body(&mut self, node: usize, runs: u64) -> Ends {
        let mut pairs: Vec<(u32, u32, u64)> = Vec::new();
        let mut whole: Option<(u32, u32)> = None;
        let mut at = node + 1;
        while at < self.ends[node] {
            let (own, times) = self.shapes[at];
            at = self.ends[at];
            let Some(times) = times else { return Ends::Varies };
            match own {
                Ends::Varies if times > 0 => return Ends::Varies,
                Ends::Fixed(first, last) if times > 0 => {
                    pairs.extend(whole.map(|(_, before)| (before, first, 1)));
                    pairs.push((last, first, times - 1));
                    whole = Some((whole.map_or(first, |(first, _)| first), last));
                }
                _ => {}
            }
        }
        for (before, call, times) in pairs {
            self.add(Some(before), call, times.saturating_mul(runs));
        }
        whole.map_or(Ends::Empty, |(first, last)| Ends::Fixed(first, last))
    }

    /// One run of the nodes from one to another.
    fn run(
        &mut self,
        nodes: Range<usize>,
        depth: usize,
        last: &mut Option<u32>,
        left: &mut u64,
    ) -> Option<()> {
        let mut at = nodes.start;
        while at < nodes.end {
            *left = left.checked_sub(1)?;
            let (own, times) = self.shapes[at];
            let next = || u64::try_from(self.streams[at].as_mut()?.next()?).ok();
            let times = times.or_else(next).unwrap_or(0);
            match own {
                Ends::Fixed(first, end) if times > 0 => {
                    self.add(*last, first, 1);
                    self.add(Some(end), first, times - 1);
                    *last = Some(end);
                }
                Ends::Varies if times > 0 && depth == DEEPEST => return None,
                Ends::Varies => {
                    for _ in 0..times {
                        self.run(at + 1..self.ends[at], depth + 1, last, left)?;
                    }
                }
                _ => {}
            }
            at = self.ends[at];
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use refrain_fold::loops::{Folder, Matching};

    use super::*;

    /// Held against the plain sequence.
    #[track_caller]
    fn check(calls: &[u32]) -> u64 {
        let mut folder = Folder::new(Matching::Elastic);
        let mut expected = Follows::new();
        let mut before = None;
        for &call in calls {
            folder.push(call);
            *expected.entry((before, call)).or_insert(0) += 1;
            before = Some(call);
        }
        let folded = folder.finish();
        let times: Vec<Option<Cow<Stream>>> =
            folded.times.iter().map(|times| Some(Cow::Borrowed(times))).collect();
        let mut left = MOST;
        assert_eq!(follows(&folded.loops, &times, &mut left), Some(expected), "{calls:?}");
        MOST - left
    }

    #[test]
    fn pairs_of_calls() {
        check(&[]);
        check(&[1]);
        check(&[1, 1, 1, 2, 2, 1, 2]);
        let steps = |turn: fn(u32) -> Vec<u32>| (0..300).flat_map(turn).collect::<Vec<u32>>();
        check(&steps(|step| vec![1, 2, 2, 3, step % 7]));
        check(&steps(|step| [vec![1; 1 + step as usize % 4], vec![2, 3, 2, 3]].concat()));
        let mut random = fastrand::Rng::with_seed(1);
        check(&(0..20_000).map(|_| random.u32(..8)).collect::<Vec<u32>>());
    }

    #[test]
    fn what_does_not_change_is_looked_at_once() {
        let calls: Vec<u32> = (0..50_000).flat_map(|_| [1, 2, 2, 3, 4, 3, 4]).collect();
        assert!(check(&calls) < 100);
    }
}
