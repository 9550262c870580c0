//! Where one turn of a loop ends and the next begins, from the order of the calls.
//!
//! The code of a loop says which call may come after which within one turn. If a call could not follow the one before it
//! without going around, a new turn has begun. That tells turns apart whatever each of them does, also where no call is
//! made in all of them. Turns without any call leave no trace, and two that look like one are taken for one.
//!
//! Compilers peel: the first turn of a loop, or the last, is a copy of its body beside it. Where a call beside a loop is of
//! the same line as one in it, it is taken for that one ([`twins`]).

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use refrain_fold::bundle::sites::Frame;
use refrain_sites::{Goes, Location, Names, Order, Turn};

use super::follows::Pair;

/// Code that calls were made from: a loop of a function, or all of it.
type Key = (u64, u64, Option<Vec<Range<u64>>>);

struct Part {
    turn: Option<Turn>,
    /// The calls in it, sorted.
    calls: Vec<Frame>,
    order: OnceCell<Option<Order>>,
    /// The lines of the calls, if the code goes around elsewhere than the source.
    turned: OnceCell<Option<Vec<u32>>>,
}

/// Which calls may follow which.
pub struct Ways<'n> {
    names: &'n dyn Names,
    parts: Vec<Part>,
    known: HashMap<Key, usize>,
    /// By module and function.
    calls: HashMap<(u64, u64), Vec<Frame>>,
}

/// A call as it is asked for: its stack, and the function of MPI that it calls.
#[derive(Clone, Copy)]
pub struct Made<'s> {
    pub stack: &'s [Frame],
    pub function: u16,
}

impl<'n> Ways<'n> {
    /// `stacks`: those of all calls.
    pub fn new<'s>(names: &'n dyn Names, stacks: impl Iterator<Item = &'s [Frame]>) -> Ways<'n> {
        let mut calls: HashMap<(u64, u64), Vec<Frame>> = HashMap::new();
        for &frame in stacks.flatten() {
            if let Some(function) = names.function(frame) {
                calls.entry((frame.module, function)).or_default().push(frame);
            }
        }
        for calls in calls.values_mut() {
            calls.sort_unstable();
            calls.dedup();
        }
        let mut ways = Ways { names, parts: Vec::new(), known: HashMap::new(), calls };
        let functions: Vec<(u64, u64)> = ways.calls.keys().copied().collect();
        for function in functions {
            ways.part(function, None);
        }
        ways
    }

    /// The loop of the function of a frame.
    pub fn of_loop(&mut self, frame: Frame, turn: &Turn) -> Option<usize> {
        let function = (frame.module, self.names.function(frame)?);
        Some(self.part(function, Some(turn)))
    }

    fn part(&mut self, function: (u64, u64), turn: Option<&Turn>) -> usize {
        let key = (function.0, function.1, turn.map(|turn| turn.code.clone()));
        let next = self.parts.len();
        let this = *self.known.entry(key).or_insert(next);
        if this == next {
            let is_in = |frame: &&Frame| {
                let address = frame.offset.saturating_sub(1);
                turn.is_none_or(|turn| turn.code.iter().any(|range| range.contains(&address)))
            };
            let calls = self.calls.get(&function).into_iter().flatten().filter(is_in).copied().collect();
            self.parts.push(Part {
                turn: turn.cloned(),
                calls,
                order: OnceCell::new(),
                turned: OnceCell::new(),
            });
        }
        this
    }

    /// Whether a loop that both calls are in has gone around between them, for sure. `depth`: that of its function.
    pub fn is_new_turn(&self, part: usize, depth: usize, before: Made, call: Made) -> bool {
        let (Some(&first), Some(&second)) = (before.stack.get(depth), call.stack.get(depth)) else {
            return false;
        };
        let may_follow =
            self.by_line(part, first, second).unwrap_or_else(|| self.may_follow(part, first, second));
        !may_follow && (first != second || !self.in_one_call(depth + 1, before, call))
    }

    fn order(&self, part: usize) -> Option<&Order> {
        let part = &self.parts[part];
        part.order.get_or_init(|| self.names.order(&part.calls, part.turn.as_ref())).as_ref()
    }

    /// Whether compilers turned a loop, so that its code begins in the middle of the source's: a call comes before one of
    /// an earlier line without going around.
    pub fn is_turned(&self, part: usize) -> bool {
        self.lines(part).is_some()
    }

    fn lines(&self, part: usize) -> Option<&[u32]> {
        let lines = || {
            let (order, part) = (self.order(part)?, &self.parts[part]);
            let turn = part.turn.as_ref()?;
            let (begins, _) = turn.lines?;
            let line = |frame: &Frame| {
                let places = self.names.places(*frame);
                let own = places.iter().find(|place| place.function == turn.function)?;
                // What stands with `for` or `while` may be done at either end.
                own.source.as_ref().map(|source| source.line).filter(|line| *line > begins)
            };
            let lines: Vec<u32> = part.calls.iter().map(line).collect::<Option<_>>()?;
            let all = 0..lines.len();
            let is_back = |i: usize, j: usize| {
                lines[j] < lines[i]
                    && !order.in_loop[i]
                    && !order.in_loop[j]
                    && order.may_follow(i, j)
                    && !order.may_follow(j, i)
            };
            all.clone().any(|i| all.clone().any(|j| is_back(i, j))).then_some(lines)
        };
        self.parts[part].turned.get_or_init(lines).as_deref()
    }

    /// In one turn of a loop that was turned: in the order of the lines.
    fn by_line(&self, part: usize, first: Frame, second: Frame) -> Option<bool> {
        let lines = self.lines(part)?;
        let at = |frame| self.parts[part].calls.binary_search(&frame).ok();
        let (first, second) = (lines[at(first)?], lines[at(second)?]);
        (first != second).then_some(first < second)
    }

    /// In one turn, or one run of the function. What is not known may be.
    fn may_follow(&self, part: usize, first: Frame, second: Frame) -> bool {
        let Some(order) = self.order(part) else { return true };
        let part = &self.parts[part];
        let at = |frame| part.calls.binary_search(&frame).ok();
        let (Some(i), Some(j)) = (at(first), at(second)) else { return true };
        order.may_follow(i, j)
    }

    /// Whether both may come from one and the same call of what is at a depth of their stacks, which are alike up to there.
    fn in_one_call(&self, depth: usize, before: Made, call: Made) -> bool {
        let from = || call.stack.get(depth.checked_sub(1)?).map(|frame| self.names.goes_to(*frame));
        match (before.stack.get(depth), call.stack.get(depth)) {
            // One call calls one function, but for a pointer; what it calls may end with a jump to another.
            (None, None) => before.function != call.function && from() != Some(Goes::Anywhere),
            (None, Some(_)) => false,
            (Some(_), None) => true,
            (Some(&first), Some(&second)) => {
                let function = |frame: Frame| Some((frame.module, self.names.function(frame)?));
                match (function(first), function(second)) {
                    (Some(one), Some(other)) if one == other => {
                        let part = self.known.get(&(one.0, one.1, None));
                        part.is_none_or(|part| self.may_follow(*part, first, second))
                            || first == second && self.in_one_call(depth + 1, before, call)
                    }
                    (Some(_), Some(_)) => {
                        matches!(from(), Some(Goes::Own(_))) || self.names.jumps_to(first, second)
                    }
                    _ => true,
                }
            }
        }
    }
}

/// Calls that are copies of calls in a loop, and which these are.
pub fn twins<'s>(names: &dyn Names, stacks: impl Iterator<Item = &'s [Frame]>) -> HashMap<Frame, Frame> {
    type Line = (u64, u64, Vec<(Option<String>, u32)>);
    let mut alike: HashMap<Line, Vec<Frame>> = HashMap::new();
    let mut frames: Vec<Frame> = stacks.flatten().copied().collect();
    frames.sort_unstable();
    frames.dedup();
    for frame in frames {
        let places = names.places(frame);
        let line = |place: &Location| Some((place.function.clone(), place.source.as_ref()?.line));
        let lines: Option<Vec<_>> = places.iter().map(line).collect();
        let lines = lines.filter(|lines| lines.iter().all(|(_, line)| *line > 0));
        if let (Some(function), Some(lines)) = (names.function(frame), lines) {
            alike.entry((frame.module, function, lines)).or_default().push(frame);
        }
    }
    let mut twins = HashMap::new();
    for frames in alike.into_values().filter(|frames| frames.len() > 1) {
        let code = |frame: &Frame| -> Vec<Vec<Range<u64>>> {
            names.loops(&[*frame]).into_iter().map(|turn| turn.code).collect()
        };
        let all: Vec<(Frame, Vec<_>)> = frames.iter().map(|frame| (*frame, code(frame))).collect();
        // The first of those in most loops.
        let Some((deepest, loops)) = all.iter().rev().max_by_key(|(_, loops)| loops.len()) else { continue };
        let is_copy = |(frame, around): &&(Frame, Vec<_>)| {
            around.len() < loops.len()
                && loops.ends_with(around)
                && names.goes_to(*frame) == names.goes_to(*deepest)
        };
        twins.extend(all.iter().filter(is_copy).map(|(frame, _)| (*frame, *deepest)));
    }
    twins
}

/// What two calls, one directly after the other, say of the loops around the second, from the outermost in: for each
/// whether it was entered, and whether it began a turn.
pub fn begun<'p>(
    paths: &'p HashMap<u32, Vec<usize>>,
    (before, call): Pair,
    is_new_turn: &dyn Fn(usize, u32, u32) -> bool,
) -> impl Iterator<Item = (usize, bool)> + 'p {
    let path = paths.get(&call).map_or(&[][..], Vec::as_slice);
    let old = before.and_then(|before| paths.get(&before)).map_or(&[][..], Vec::as_slice);
    let shared = path.iter().zip(old).take_while(|(one, other)| one == other).count();
    // The outermost that has gone around, if one has.
    let turned = before.and_then(|before| (0..shared).find(|&at| is_new_turn(path[at], before, call)));
    let first = turned.unwrap_or(shared);
    let entered = move |at: usize| turned != Some(at);
    path.iter().enumerate().skip(first).map(move |(at, &this)| (this, entered(at)))
}
