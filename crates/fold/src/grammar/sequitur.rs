//! The grammar while it grows: Sequitur with repeat counts.
//!
//! Bodies of rules are rings of nodes through a guard node. What a change may have broken is put on two lists, digrams
//! to look at and rules to look at, and `settle` works until both are empty. Then
//!
//! * P1: no digram (two neighbours with their counts) stands twice, and neighbours have different symbols;
//! * P2: every rule is used twice or more, counting repeats and, in a forest, the starts;
//! * every digram is in the index, at the node of its left half.
//!
//! Every step lowers `2 * nodes - rules` and an append raises it by two, so the whole takes linear time. Neighbours
//! being different, two equal digrams never overlap.

use super::index::{Index, digram_hash};
use super::{Item, Symbol};
use crate::round::Round;

pub(super) const NIL: u32 = u32::MAX;

/// A symbol in one word: terminals as they are, rules and guards above them.
const RULE: u64 = 1 << 32;
const GUARD: u64 = 2 << 32;
const FREE: u64 = 3 << 32;

#[derive(Debug, Clone, Copy)]
struct Node {
    symbol: u64,
    count: u64,
    prev: u32,
    next: u32,
    /// Neighbours in the list of all uses of the same rule.
    use_prev: u32,
    use_next: u32,
}

#[derive(Debug, Clone, Copy)]
struct Rule {
    guard: u32,
    first_use: u32,
    /// How many starts it is.
    pins: u32,
    /// Terminals in its expansion.
    length: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Sequitur {
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    rules: Vec<Rule>,
    free_rules: Vec<u32>,
    starts: Vec<u32>,
    index: Index,
    /// Left halves of digrams to look at; stale entries do no harm.
    digrams: Vec<u32>,
    /// Rules that may have become useless.
    suspects: Vec<u32>,
    /// Scratch for `expand_tail`: nodes and how often each is still to come.
    stack: Vec<(u32, u64)>,
}

impl Sequitur {
    /// Items, and one for each rule.
    pub fn size(&self) -> usize {
        self.nodes.len() - self.free_nodes.len()
    }

    /// Bytes held beyond the struct itself.
    pub fn memory(&self) -> usize {
        let lists = [&self.free_nodes, &self.free_rules, &self.starts, &self.digrams, &self.suspects];
        self.nodes.capacity() * size_of::<Node>()
            + self.rules.capacity() * size_of::<Rule>()
            + self.index.memory()
            + lists.iter().map(|list| list.capacity() * 4).sum::<usize>()
            + self.stack.capacity() * size_of::<(u32, u64)>()
    }

    /// Puts a symbol at the end of the first start.
    pub fn append(&mut self, terminal: u32, count: u64) {
        if self.starts.is_empty() {
            let start = self.add_rule();
            self.pin(start);
        }
        let guard = self.rules[self.starts[0] as usize].guard;
        let last = self.node(guard).prev;
        if last != guard && self.node(last).symbol == u64::from(terminal) {
            self.raise(last, count);
        } else {
            self.push_node(guard, u64::from(terminal), count);
            self.digrams.push(last);
        }
        self.settle();
    }

    /// The last item of the first start repeats that many times more.
    pub fn repeat_tail(&mut self, times: u64) {
        if let Some(&start) = self.starts.first() {
            let guard = self.rules[start as usize].guard;
            let last = self.node(guard).prev;
            if last != guard {
                self.raise(last, times);
                self.settle();
            }
        }
    }

    /// How often the first start's last item repeats and how long one repetition is.
    pub fn tail(&self) -> Option<(u64, u64)> {
        let guard = self.rules[*self.starts.first()? as usize].guard;
        let last = self.node(guard).prev;
        (last != guard).then(|| (self.node(last).count, self.symbol_length(self.node(last).symbol)))
    }

    /// Fills in one repetition of the first start's last item.
    pub fn expand_tail(&mut self, out: &mut Round<u32>) {
        let Some(&start) = self.starts.first() else { return };
        let last = self.node(self.rules[start as usize].guard).prev;
        if self.node(last).symbol < RULE {
            out.fill(self.node(last).symbol as u32, 1);
            return;
        }
        let mut stack = std::mem::take(&mut self.stack);
        stack.push((last, 1));
        while let Some((node, left)) = stack.pop() {
            let Node { symbol, next, .. } = *self.node(node);
            if symbol >= GUARD {
                continue;
            }
            if symbol < RULE {
                out.fill(symbol as u32, left);
                stack.push((next, self.node(next).count));
                continue;
            }
            if left > 1 {
                stack.push((node, left - 1));
            } else if node != last {
                stack.push((next, self.node(next).count));
            }
            let first = self.first(symbol as u32);
            stack.push((first, self.node(first).count));
        }
        self.stack = stack;
    }

    /// A new rule with this body, neither used nor pinned yet; nothing is settled.
    pub fn load(&mut self, body: &[Item]) -> u32 {
        let rule = self.add_rule();
        let guard = self.rules[rule as usize].guard;
        let mut length = 0u64;
        for item in body {
            let symbol = match item.symbol {
                Symbol::Terminal(t) => u64::from(t),
                Symbol::Rule(r) => RULE | u64::from(r),
            };
            self.push_node(guard, symbol, item.count);
            length = length.saturating_add(item.count.saturating_mul(self.symbol_length(symbol)));
        }
        self.rules[rule as usize].length = length;
        rule
    }

    /// One more start.
    pub fn pin(&mut self, rule: u32) {
        self.rules[rule as usize].pins += 1;
        self.starts.push(rule);
    }

    /// Looks at everything that was loaded, first rule first.
    pub fn settle_all(&mut self) {
        for rule in (0..self.rules.len()).rev() {
            let guard = self.rules[rule].guard;
            let mut node = self.node(guard).prev;
            while node != guard {
                self.digrams.push(node);
                node = self.node(node).prev;
            }
            self.suspects.push(rule as u32);
        }
        self.settle();
    }

    /// The rules reachable from the starts, numbered by first use in a depth-first walk, and the starts' numbers.
    pub fn extract(&self) -> (Vec<Vec<Item>>, Vec<u32>) {
        let mut number = vec![NIL; self.rules.len()];
        let mut bodies: Vec<Vec<Item>> = Vec::new();
        let mut starts = Vec::with_capacity(self.starts.len());
        let mut stack: Vec<(u32, u32)> = Vec::new();
        for &start in &self.starts {
            if number[start as usize] == NIL {
                number[start as usize] = bodies.len() as u32;
                stack.push((bodies.len() as u32, self.rules[start as usize].guard));
                bodies.push(Vec::new());
            }
            starts.push(number[start as usize]);
            while let Some((body, at)) = stack.pop() {
                let next = self.node(at).next;
                let Node { symbol, count, .. } = *self.node(next);
                if symbol >= GUARD {
                    continue;
                }
                stack.push((body, next));
                let symbol = if symbol < RULE {
                    Symbol::Terminal(symbol as u32)
                } else {
                    let rule = &mut number[symbol as u32 as usize];
                    if *rule == NIL {
                        *rule = bodies.len() as u32;
                        stack.push((*rule, self.rules[symbol as u32 as usize].guard));
                        bodies.push(Vec::new());
                    }
                    Symbol::Rule(*rule)
                };
                bodies[body as usize].push(Item { symbol, count });
            }
        }
        (bodies, starts)
    }

    fn settle(&mut self) {
        loop {
            if let Some(node) = self.digrams.pop() {
                self.check_digram(node);
            } else if let Some(rule) = self.suspects.pop() {
                self.check_rule(rule);
            } else {
                return;
            }
        }
    }

    fn check_digram(&mut self, left: u32) {
        if self.node(left).symbol >= GUARD {
            return;
        }
        let right = self.node(left).next;
        if self.node(right).symbol >= GUARD {
            return;
        }
        if self.node(left).symbol == self.node(right).symbol {
            let count = self.node(right).count;
            self.forget(right);
            self.unlink(right);
            self.raise(left, count);
            self.digrams.push(left);
            self.suspect_if_short(left);
            return;
        }
        let key = self.digram(left);
        let hash = digram_hash(key);
        match self.index.find(hash, |node| self.digram(node) == key) {
            None => self.index.insert(hash, left),
            Some(other) if other != left => self.join(other, left),
            Some(_) => {}
        }
    }

    /// Makes one of two equal digrams, of which only `old` is in the index.
    fn join(&mut self, old: u32, new: u32) {
        if let Some(rule) = self.whole_body(old) {
            self.substitute(new, rule);
        } else if let Some(rule) = self.whole_body(new) {
            self.substitute(old, rule);
            self.digrams.push(new);
        } else if let Some(rule) = self.used_only_in(old) {
            self.lengthen(rule, old, new);
        } else {
            let rule = self.add_rule();
            let guard = self.rules[rule as usize].guard;
            let Node { symbol, count, next, .. } = *self.node(old);
            let mut length = count.saturating_mul(self.symbol_length(symbol));
            let first = self.push_node(guard, symbol, count);
            let Node { symbol, count, .. } = *self.node(next);
            length = length.saturating_add(count.saturating_mul(self.symbol_length(symbol)));
            self.push_node(guard, symbol, count);
            self.rules[rule as usize].length = length;
            self.substitute(old, rule);
            self.substitute(new, rule);
            self.digrams.push(first);
        }
    }

    /// Puts a rule in the place of the digram at `left`.
    fn substitute(&mut self, left: u32, rule: u32) {
        let Node { prev, next: right, .. } = *self.node(left);
        self.forget(prev);
        self.forget(left);
        self.forget(right);
        self.unlink(right);
        self.set_symbol(left, RULE | u64::from(rule), 1);
        self.digrams.push(left);
        self.digrams.push(prev);
        self.suspect_if_short(left);
    }

    /// The rule that two equal digrams begin with, if it is used nowhere else.
    fn used_only_in(&self, digram: u32) -> Option<u32> {
        let Node { symbol, count, .. } = *self.node(digram);
        if symbol < RULE || count != 1 || self.rules[symbol as u32 as usize].pins > 0 {
            return None;
        }
        let first = self.rules[symbol as u32 as usize].first_use;
        let second = self.node(first).use_next;
        (second != NIL && self.node(second).use_next == NIL).then_some(symbol as u32)
    }

    /// What follows both uses of a rule becomes part of it. A new rule would swallow the old one anyway; this is the
    /// short way, and the common one: every symbol of a round that has been seen before but once comes along here.
    fn lengthen(&mut self, rule: u32, old: u32, new: u32) {
        let Rule { guard, length, .. } = self.rules[rule as usize];
        let Node { symbol, count, .. } = *self.node(self.node(old).next);
        let more = count.saturating_mul(self.symbol_length(symbol));
        self.rules[rule as usize].length = length.saturating_add(more);
        let last = self.node(guard).prev;
        self.push_node(guard, symbol, count);
        self.digrams.push(last);
        for left in [old, new] {
            let right = self.node(left).next;
            self.forget(left);
            self.forget(right);
            self.unlink(right);
            self.digrams.push(left);
            self.suspect_if_short(left);
        }
    }

    fn check_rule(&mut self, rule: u32) {
        let Rule { guard, first_use, pins, .. } = self.rules[rule as usize];
        if guard == NIL {
            return;
        }
        let first = self.node(guard).next;
        if first == guard {
            return;
        }
        if self.node(first).next == guard {
            self.dissolve(rule, first);
        } else if pins == 0 && first_use == NIL {
            while self.node(guard).next != guard {
                let node = self.node(guard).next;
                self.forget(node);
                self.unlink(node);
            }
            self.free_rule(rule);
        } else if pins == 0 && self.node(first_use).use_next == NIL && self.node(first_use).count == 1 {
            self.inline(rule, first_use);
        }
    }

    /// A rule of a single item: the item itself stands wherever the rule did.
    fn dissolve(&mut self, rule: u32, item: u32) {
        let Node { symbol, count, .. } = *self.node(item);
        while self.rules[rule as usize].first_use != NIL {
            let node = self.rules[rule as usize].first_use;
            let Node { prev, count: times, .. } = *self.node(node);
            self.forget(prev);
            self.forget(node);
            self.set_symbol(node, symbol, count.saturating_mul(times));
            self.digrams.push(node);
            self.digrams.push(prev);
            self.suspect_if_short(node);
        }
        let renamed = (RULE..GUARD).contains(&symbol) && count == 1;
        if self.rules[rule as usize].pins > 0 && !renamed {
            return;
        }
        if renamed {
            let other = symbol as u32;
            self.rules[other as usize].pins += self.rules[rule as usize].pins;
            for start in self.starts.iter_mut().filter(|start| **start == rule) {
                *start = other;
            }
        }
        self.unlink(item);
        self.free_rule(rule);
    }

    /// The rule's only use gives way to its body.
    fn inline(&mut self, rule: u32, node: u32) {
        let Node { prev, next, .. } = *self.node(node);
        self.forget(prev);
        self.forget(node);
        let guard = self.rules[rule as usize].guard;
        let Node { prev: last, next: first, .. } = *self.node(guard);
        self.link(guard, guard);
        self.unlink(node);
        self.link(prev, first);
        self.link(last, next);
        self.free_rule(rule);
        self.digrams.push(last);
        self.digrams.push(prev);
    }

    /// Adds to a count; the digrams it is part of change with it.
    fn raise(&mut self, node: u32, by: u64) {
        let prev = self.node(node).prev;
        self.forget(prev);
        self.forget(node);
        let count = &mut self.nodes[node as usize].count;
        *count = count.saturating_add(by);
        self.digrams.push(node);
        self.digrams.push(prev);
    }

    /// Takes the digram at `left` out of the index before it changes.
    fn forget(&mut self, left: u32) {
        if self.node(left).symbol < GUARD && self.node(self.node(left).next).symbol < GUARD {
            self.index.remove(digram_hash(self.digram(left)), left);
        }
    }

    fn digram(&self, left: u32) -> [u64; 4] {
        let a = self.node(left);
        let b = self.node(a.next);
        [a.symbol, a.count, b.symbol, b.count]
    }

    /// The rule whose body is exactly the digram at `left`.
    fn whole_body(&self, left: u32) -> Option<u32> {
        let before = self.node(self.node(left).prev);
        let after = self.node(self.node(self.node(left).next).next);
        (before.symbol >= GUARD && after.symbol >= GUARD).then_some(before.symbol as u32)
    }

    fn suspect_if_short(&mut self, node: u32) {
        let Node { prev, next, .. } = *self.node(node);
        if prev == next {
            self.suspects.push(self.node(prev).symbol as u32);
        }
    }

    fn symbol_length(&self, symbol: u64) -> u64 {
        if symbol < RULE { 1 } else { self.rules[symbol as u32 as usize].length }
    }

    fn first(&self, rule: u32) -> u32 {
        self.node(self.rules[rule as usize].guard).next
    }

    fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    fn link(&mut self, left: u32, right: u32) {
        self.nodes[left as usize].next = right;
        self.nodes[right as usize].prev = left;
    }

    fn add_node(&mut self, symbol: u64, count: u64) -> u32 {
        let node = Node { symbol, count, prev: NIL, next: NIL, use_prev: NIL, use_next: NIL };
        if let Some(free) = self.free_nodes.pop() {
            self.nodes[free as usize] = node;
            free
        } else {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        }
    }

    /// A new last node of the body with this guard.
    fn push_node(&mut self, guard: u32, symbol: u64, count: u64) -> u32 {
        let node = self.add_node(symbol, count);
        self.add_use(node);
        let last = self.node(guard).prev;
        self.link(last, node);
        self.link(node, guard);
        node
    }

    /// Takes a node out of its ring; its digrams must be forgotten already.
    fn unlink(&mut self, node: u32) {
        let Node { prev, next, .. } = *self.node(node);
        self.link(prev, next);
        self.drop_use(node);
        self.nodes[node as usize].symbol = FREE;
        self.free_nodes.push(node);
    }

    fn set_symbol(&mut self, node: u32, symbol: u64, count: u64) {
        self.drop_use(node);
        self.nodes[node as usize].symbol = symbol;
        self.nodes[node as usize].count = count;
        self.add_use(node);
    }

    fn add_use(&mut self, node: u32) {
        let symbol = self.node(node).symbol;
        if (RULE..GUARD).contains(&symbol) {
            let first = std::mem::replace(&mut self.rules[symbol as u32 as usize].first_use, node);
            self.nodes[node as usize].use_prev = NIL;
            self.nodes[node as usize].use_next = first;
            if first != NIL {
                self.nodes[first as usize].use_prev = node;
            }
        }
    }

    fn drop_use(&mut self, node: u32) {
        let Node { symbol, use_prev, use_next, .. } = *self.node(node);
        if !(RULE..GUARD).contains(&symbol) {
            return;
        }
        if use_next != NIL {
            self.nodes[use_next as usize].use_prev = use_prev;
        }
        if use_prev == NIL {
            self.rules[symbol as u32 as usize].first_use = use_next;
        } else {
            self.nodes[use_prev as usize].use_next = use_next;
        }
        let first = self.rules[symbol as u32 as usize].first_use;
        if first == NIL || self.node(first).use_next == NIL {
            self.suspects.push(symbol as u32);
        }
    }

    fn add_rule(&mut self) -> u32 {
        let number = self.free_rules.pop().unwrap_or(self.rules.len() as u32);
        let guard = self.add_node(GUARD | u64::from(number), 0);
        self.link(guard, guard);
        let rule = Rule { guard, first_use: NIL, pins: 0, length: 0 };
        match self.rules.get_mut(number as usize) {
            Some(free) => *free = rule,
            None => self.rules.push(rule),
        }
        number
    }

    fn free_rule(&mut self, rule: u32) {
        let guard = std::mem::replace(&mut self.rules[rule as usize].guard, NIL);
        self.nodes[guard as usize].symbol = FREE;
        self.free_nodes.push(guard);
        self.free_rules.push(rule);
    }
}
