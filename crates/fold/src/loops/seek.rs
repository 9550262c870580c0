//! Finding a place in a tree of loops by counts.

use std::ops::Range;

use super::cursor::Body;
use super::{Loops, Node};

/// Where a sequence goes on.
#[derive(Debug, Clone)]
pub struct Resume {
    pub(super) open: Vec<Body>,
    pub(super) symbol: u32,
    pub(super) left: u64,
    /// By node: how many of its times are used up.
    pub used: Vec<u64>,
    /// By node: how often it ran before.
    pub runs: Vec<u64>,
}

/// What a body that is passed over, or being walked, says of its nodes: how often their places were reached.
enum Reached {
    /// So often, all of them.
    All(u64),
    /// So often, and once more those before this node.
    Before { rounds: u64, node: usize },
}

impl Loops {
    /// The place of symbol `n`. `sum` adds up the first so many times of a node. Takes time in the size of the tree and
    /// of its times, and in the logarithm of the iterations. The tree must be valid.
    pub fn seek(&self, mut n: u64, sum: impl Fn(usize, u64) -> u64) -> Resume {
        let end = self.nodes.len();
        let root = Body { start: 0, end, at: 0, again: 0, alive: false };
        // Each with how many of its iterations lie before.
        let mut open: Vec<(Body, u64)> = vec![(root, 0)];
        let (mut symbol, mut left, mut here) = (0, 0, end);
        while let Some((body, rounds)) = open.last_mut().filter(|(body, _)| body.at < body.end) {
            let at = body.at;
            let before = sum(at, *rounds);
            let times = sum(at, rounds.saturating_add(1)).saturating_sub(before);
            let Node::Loop { inside } = self.nodes[at] else {
                body.at += 1;
                if n < times {
                    if let Node::Event(event) = self.nodes[at] {
                        symbol = event;
                    }
                    (left, here, body.alive) = (times - n, at, true);
                    break;
                }
                n -= times;
                continue;
            };
            let inner = at + 1..at + 1 + inside as usize;
            body.at = inner.end;
            let passed = self.events(inner.clone(), before, &sum);
            let events = |rounds: u64| {
                self.events(inner.clone(), before.saturating_add(rounds), &sum).saturating_sub(passed)
            };
            let all = events(times);
            if n >= all {
                n -= all;
                continue;
            }
            let (mut low, mut high) = (0, times);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                *(if events(middle) <= n { &mut low } else { &mut high }) = middle;
            }
            n -= events(low);
            let again = times - 1 - low;
            let body = Body { start: inner.start, end: inner.end, at: inner.start, again, alive: false };
            open.push((body, before.saturating_add(low)));
        }
        let used = self.used(&open, &sum);
        let mut runs: Vec<u64> = used.iter().enumerate().map(|(node, &used)| sum(node, used)).collect();
        if let Some(runs) = runs.get_mut(here) {
            *runs = runs.saturating_sub(left);
        }
        let open = if left > 0 { open.into_iter().map(|(body, _)| body).collect() } else { Vec::new() };
        Resume { open, symbol, left, used, runs }
    }

    /// How many symbols the first so many iterations of a body have, from the beginning of all.
    fn events(&self, body: Range<usize>, rounds: u64, sum: &impl Fn(usize, u64) -> u64) -> u64 {
        let mut open: Vec<(usize, u64)> = vec![(body.end, rounds)];
        let mut events = 0u64;
        for at in body {
            while open.len() > 1 && open.last().is_some_and(|&(end, _)| end <= at) {
                open.pop();
            }
            let runs = open.last().map_or(0, |&(_, rounds)| sum(at, rounds));
            match self.nodes[at] {
                Node::Event(_) => events = events.saturating_add(runs),
                Node::Loop { inside } => open.push((at + 1 + inside as usize, runs)),
            }
        }
        events
    }

    fn used(&self, path: &[(Body, u64)], sum: &impl Fn(usize, u64) -> u64) -> Vec<u64> {
        let mut used = Vec::with_capacity(self.nodes.len());
        let mut open: Vec<(usize, Reached)> = Vec::new();
        let mut path = path.iter().peekable();
        let mut enter = |start: usize| {
            let (body, rounds) = path.next_if(|(body, _)| body.start == start)?;
            Some((body.end, Reached::Before { rounds: *rounds, node: body.at }))
        };
        open.extend(enter(0));
        for (at, node) in self.nodes.iter().enumerate() {
            while open.len() > 1 && open.last().is_some_and(|(end, _)| *end <= at) {
                open.pop();
            }
            let reached = match open.last() {
                Some((_, Reached::All(rounds))) => *rounds,
                Some((_, Reached::Before { rounds, node })) => rounds + u64::from(at < *node),
                None => 0,
            };
            used.push(reached);
            if let Node::Loop { inside } = *node {
                let passed = || (at + 1 + inside as usize, Reached::All(sum(at, reached)));
                open.push(enter(at + 1).unwrap_or_else(passed));
            }
        }
        used
    }
}
