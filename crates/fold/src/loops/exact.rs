//! Loops whose iterations are equal (ScalaTrace, figure 2): regular section descriptors, nested by folding them again.
//!
//! A queue of events, each with the loops it is the head of. When the last so many events equal those just before them,
//! in their loops and trip counts too, they are dropped and the others become a loop, or run once more if they are one.
//! The shortest such repetition counts. Lengths up to [`GRAM`] are simply tried, by comparing hashes of stretches of the
//! queue; longer ones must end in [`GRAM`] events that stood at the end before, and an index knows where. So it takes
//! constant time to see that nothing repeats.
//!
//! As in the grammar's folder, symbols that keep to the last loop are only compared and counted.

use super::{Folded, Loops, Node};
use crate::FastMap;
use crate::round::Round;
use crate::stream::Stream;

const GRAM: usize = 8;
/// Longest iteration that is kept expanded for comparison.
const LONGEST_ROUND: u64 = 1 << 16;
const BASE: u64 = 0x5851_f42d_4c95_7f2d;

#[derive(Debug, Clone)]
pub(super) struct Exact {
    queue: Queue,
    /// What lies too far back to change, and how often each node runs.
    done: Vec<(Node, u64)>,
    len: u64,
    /// One iteration of the loop at the end of the queue, and how much of it was seen that the queue does not know of.
    round: Round<u32>,
    /// Where that loop begins in the queue.
    head: usize,
}

#[derive(Debug, Clone)]
struct Queue {
    items: Vec<Item>,
    /// Where the last [`GRAM`] events, by hash, last ended.
    index: FastMap<u64, u32>,
    /// Of `BASE`, as far as they were needed.
    powers: Vec<u64>,
    window: usize,
}

#[derive(Debug, Clone)]
struct Item {
    symbol: u32,
    /// Where the same events last ended before.
    prev: u32,
    /// Within a loop, and not its head.
    inner: bool,
    /// The loops it is the head of, as length and trip count, the innermost first.
    loops: Vec<(u32, u64)>,
    /// Of all items up to this one.
    sum: u64,
}

const NONE: u32 = u32::MAX;

impl Exact {
    pub fn new(window: usize) -> Exact {
        let window = window.clamp(1, 1 << 24);
        let queue = Queue { items: Vec::new(), index: FastMap::default(), powers: vec![1], window };
        Exact { queue, done: Vec::new(), len: 0, round: Round::default(), head: 0 }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    pub fn push(&mut self, symbol: u32) {
        self.len += 1;
        if !self.round.step(symbol) {
            self.push_unexpected(symbol);
        }
    }

    /// The same symbol several times over. What is not expected is appended one by one: each may end an iteration.
    pub fn push_n(&mut self, symbol: u32, mut count: u64) {
        while count > 0 {
            let taken = self.round.step_n(symbol, count);
            (self.len, count) = (self.len + taken, count - taken);
            if count > 0 {
                self.push(symbol);
                count -= 1;
            }
        }
    }

    #[inline]
    pub fn predicted(&self) -> Option<u32> {
        self.round.next()
    }

    pub fn finish(&self) -> Folded {
        // What is done need not be copied.
        let (queue, round) = (self.queue.clone(), self.round.clone());
        let mut rest = Exact { queue, done: Vec::new(), len: self.len, round, head: self.head };
        rest.tell_queue();
        unroll(&rest.queue.items, &mut rest.done);
        folded(self.done.iter().chain(&rest.done))
    }

    pub fn restart(&mut self) {
        *self = Exact::new(self.queue.window);
    }

    pub fn memory(&self) -> usize {
        let loops: usize = self.queue.items.iter().map(|item| item.loops.capacity() * 16).sum();
        self.queue.items.capacity() * size_of::<Item>()
            + loops
            + self.queue.index.capacity() * 17
            + self.queue.powers.capacity() * 8
            + self.done.capacity() * size_of::<(Node, u64)>()
            + self.round.memory()
    }

    #[inline(never)]
    fn push_unexpected(&mut self, symbol: u32) {
        let outer = self.tell_queue();
        self.round.surprise();
        if let Some(head) = outer.filter(|&head| self.queue.items[head].symbol == symbol) {
            self.expect(head);
            if self.round.step(symbol) {
                return;
            }
        }
        if let Some(head) = self.append(symbol) {
            self.expect(head);
        }
    }

    /// Another iteration of the loop that begins there.
    fn expect(&mut self, head: usize) {
        let length = self.queue.length_of(head);
        if self.round.afford(length, LONGEST_ROUND) {
            self.head = head;
            self.queue.expand(head, &mut self.round);
        }
    }

    /// Ends the expectation: what was only counted goes into the queue. Says where the loop begins that ends with the
    /// queue, if the trip count that is known now ended an iteration of one.
    fn tell_queue(&mut self) -> Option<usize> {
        let seen = self.round.end()?;
        let mut outer = None;
        if seen.laps > 0 {
            self.queue.raise(self.head, seen.laps);
            outer = self.queue.fold_all();
        }
        for (symbol, count) in seen.part() {
            outer = None;
            for _ in 0..count {
                self.append(symbol);
            }
        }
        self.round.reuse(seen);
        outer
    }

    /// Says where the loop begins that the event ends an iteration of.
    fn append(&mut self, symbol: u32) -> Option<usize> {
        if self.queue.items.len() > 8 * self.queue.window + 1024 {
            self.queue.hand_over(&mut self.done);
        }
        self.queue.push(Item { symbol, prev: NONE, inner: false, loops: Vec::new(), sum: 0 });
        self.queue.fold_all()
    }
}

impl Queue {
    fn sum(&self, before: usize) -> u64 {
        before.checked_sub(1).map_or(0, |at| self.items[at].sum)
    }

    /// The hash of the items `from..to`.
    fn hash(&self, from: usize, to: usize) -> u64 {
        self.sum(to).wrapping_sub(self.sum(from).wrapping_mul(self.powers[to - from]))
    }

    fn push(&mut self, mut item: Item) {
        let at = self.items.len();
        if self.powers.len() <= (at + 1).min(self.window.max(GRAM)) {
            self.powers.push(self.powers[at].wrapping_mul(BASE));
        }
        let own = item.loops.iter().fold(u64::from(item.symbol) + 1, |hash, &(length, trips)| {
            (hash ^ u64::from(length) << 32 ^ trips).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
        });
        let own = (own ^ own >> 31).wrapping_mul(0xd6e8_feb8_6659_fd93);
        item.sum = self.sum(at).wrapping_mul(BASE).wrapping_add(own);
        item.prev = NONE;
        self.items.push(item);
        if at + 1 >= GRAM {
            let gram = self.hash(at + 1 - GRAM, at + 1);
            self.items[at].prev = self.index.insert(gram, at as u32).unwrap_or(NONE);
        }
    }

    fn pop(&mut self) -> Option<Item> {
        let at = self.items.len().checked_sub(1)?;
        if at + 1 >= GRAM {
            let gram = self.hash(at + 1 - GRAM, at + 1);
            match self.items[at].prev {
                NONE => self.index.remove(&gram),
                prev => self.index.insert(gram, prev),
            };
        }
        self.items.pop()
    }

    /// The least number of events at the end that equal those before.
    fn repetition(&self) -> Option<usize> {
        let n = self.items.len();
        let short = (1..=GRAM.min(n / 2).min(self.window)).find(|&length| self.repeats(length));
        if short.is_some() {
            return short;
        }
        let mut at = self.items[n - 1].prev;
        while at != NONE {
            let length = n - 1 - at as usize;
            if length > self.window || 2 * length > n {
                break;
            }
            if length > GRAM && self.repeats(length) {
                return Some(length);
            }
            at = self.items[at as usize].prev;
        }
        None
    }

    fn repeats(&self, length: usize) -> bool {
        let n = self.items.len();
        let (first, second) = (n - 2 * length, n - length);
        let (a, b) = (&self.items[first], &self.items[second]);
        if a.symbol != b.symbol || a.inner || b.inner {
            return false;
        }
        (a.loops == b.loops || a.is_loop(length) && a.loops[..a.loops.len() - 1] == b.loops)
            && self.hash(first + 1, second) == self.hash(second + 1, n)
            && (self.items[first + 1..second].iter().zip(&self.items[second + 1..n]))
                .all(|(a, b)| a.symbol == b.symbol && a.loops == b.loops)
    }

    /// Says where the loop begins that the queue now ends with, if it did not before.
    fn fold_all(&mut self) -> Option<usize> {
        let mut head = None;
        // A loop that has come to its trip count may end an iteration of another.
        while let Some(length) = self.repetition() {
            head = Some(self.fold(length));
        }
        head
    }

    /// Drops that many events, which equal those before.
    fn fold(&mut self, length: usize) -> usize {
        let head = self.items.len() - 2 * length;
        let equal = self.items[head].loops == self.items[head + length].loops;
        (0..length).for_each(|_| drop(self.pop()));
        if equal {
            self.change(head, |item| item.loops.push((length as u32, 2)));
        } else {
            self.raise(head, 1);
        }
        head
    }

    /// The loop that begins there, and ends with the queue, runs that many times more.
    fn raise(&mut self, head: usize, laps: u64) {
        self.change(head, |item| {
            if let Some((_, trips)) = item.loops.last_mut() {
                *trips += laps;
            }
        });
    }

    fn change(&mut self, head: usize, change: impl FnOnce(&mut Item)) {
        let mut behind: Vec<Item> = Vec::with_capacity(self.items.len() - head - 1);
        while self.items.len() > head + 1 {
            behind.extend(self.pop());
        }
        let Some(mut item) = self.pop() else { return };
        change(&mut item);
        self.push(item);
        while let Some(mut item) = behind.pop() {
            item.inner = true;
            self.push(item);
        }
    }

    /// Events in one iteration of the loop that begins there.
    fn length_of(&self, head: usize) -> u64 {
        let mut nodes = Vec::new();
        unroll(&self.items[head..], &mut nodes);
        // The event that runs several times is a loop, too.
        if nodes.len() == 1 {
            return 1;
        }
        let events = reached(nodes[1..].iter()).zip(&nodes[1..]);
        let events = events.filter(|(_, (node, _))| matches!(node, Node::Event(_)));
        events.fold(0u64, |sum, (reached, (_, times))| sum.saturating_add(reached.saturating_mul(*times)))
    }

    /// One iteration of the loop that begins there.
    fn expand(&self, head: usize, out: &mut Round<u32>) {
        let mut nodes = Vec::new();
        unroll(&self.items[head..], &mut nodes);
        if let [(Node::Event(symbol), _)] = nodes[..] {
            return out.fill(symbol, 1);
        }
        folded(nodes[1..].iter()).iter().for_each(|symbol| out.fill(symbol, 1));
    }

    /// What lies too far back for any repetition leaves the queue.
    fn hand_over(&mut self, done: &mut Vec<(Node, u64)>) {
        let keep = self.items.len() - 2 * self.window - GRAM;
        let Some(cut) = (0..=keep).rev().find(|&at| !self.items[at].inner) else { return };
        unroll(&self.items[..cut], done);
        let rest = self.items.split_off(cut);
        self.items.clear();
        self.index.clear();
        rest.into_iter().for_each(|item| self.push(item));
    }
}

impl Item {
    fn is_loop(&self, length: usize) -> bool {
        self.loops.last().is_some_and(|&(own, _)| own as usize == length)
    }
}

/// From heads with loops to nodes with how often each runs whenever it is reached.
fn unroll(items: &[Item], out: &mut Vec<(Node, u64)>) {
    // Where loops end, in items, and which nodes they are.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let (own, times) = match item.loops.first() {
            Some(&(1, trips)) => (1, trips),
            _ => (0, 1),
        };
        for &(length, trips) in item.loops[own..].iter().rev() {
            open.push((at + length as usize, out.len()));
            out.push((Node::Loop { inside: 0 }, trips));
        }
        out.push((Node::Event(item.symbol), times));
        while let Some((_, node)) = open.pop_if(|&mut (end, _)| end == at + 1) {
            let inside = (out.len() - node - 1) as u32;
            out[node].0 = Node::Loop { inside };
        }
    }
}

/// How often each node is reached.
fn reached<'a>(nodes: impl Iterator<Item = &'a (Node, u64)>) -> impl Iterator<Item = u64> {
    let mut open: Vec<(usize, u64)> = vec![(usize::MAX, 1)];
    nodes.enumerate().map(move |(at, &(node, times))| {
        while open.pop_if(|&mut (end, _)| end <= at).is_some() {}
        let reached = open.last().map_or(1, |&(_, runs)| runs);
        if let Node::Loop { inside } = node {
            open.push((at + 1 + inside as usize, reached.saturating_mul(times)));
        }
        reached
    })
}

fn folded<'a>(nodes: impl Iterator<Item = &'a (Node, u64)> + Clone) -> Folded {
    Folded {
        loops: Loops { nodes: nodes.clone().map(|&(node, _)| node).collect() },
        times: nodes.clone().map(|&(_, times)| Stream::constant(times as i64)).collect(),
        lengths: reached(nodes).collect(),
    }
}
