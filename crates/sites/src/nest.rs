//! In which loops of the source a set of calls is, from their stacks.

use std::ops::Range;

use refrain_fold::bundle::sites::Frame;

use crate::{Location, Names};

/// One loop of a function's code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Turn {
    /// The function that it is written in, which may be inlined in that of the frame.
    pub function: Option<String>,
    pub file: Option<String>,
    /// The line of `for`, mostly, and the last one that some code in it is of, within that function.
    pub lines: Option<(u32, u32)>,
    /// The module that its code is in, and the addresses there.
    pub module: u64,
    pub code: Vec<Range<u64>>,
}

impl Turn {
    /// From what every piece of its code is called, outermost first, and the same of calls in it and in other loops.
    pub(crate) fn of(chains: &[Vec<Location>], calls: &[Vec<Location>], others: &[Vec<Location>]) -> Turn {
        let chains = chains.iter().filter(|chain| !chain.is_empty());
        let Some(first) = chains.clone().next() else { return Turn::default() };
        // What is inlined into the loop is no part of where it is written; what all of it is inlined into is.
        let mut common = first.len();
        for chain in chains.clone() {
            let same = |(a, b): &(&Location, &Location)| a.function == b.function;
            let depth = first.iter().zip(chain).take_while(same).count();
            // Two pieces may be inlined at different places of the outer function, which is then where they meet.
            let apart = first.iter().zip(chain).take(depth).position(|(a, b)| a.source != b.source);
            common = common.min(depth).min(apart.map_or(depth, |at| at + 1));
        }
        let Some(depth) = common.checked_sub(1) else { return Turn::default() };
        let place = &first[depth];
        let file = place.source.as_ref().map(|source| source.file.clone());
        // Line 0 is code of no line.
        let line = |chain: &Vec<Location>| {
            let source = chain.get(depth)?.source.as_ref()?;
            (Some(&source.file) == file.as_ref() && source.line > 0).then_some(source.line)
        };
        let all: Vec<u32> = chains.filter_map(line).collect();
        // Optimizers bring code of other lines into a loop. It begins before its calls, and behind those of the loops
        // before it.
        let called = calls.iter().filter_map(line).min();
        let is_here = |chain: &&Vec<Location>| {
            let alike = |(a, b): (&Location, &Location)| a.function == b.function && a.source == b.source;
            chain.get(depth).is_some_and(|own| own.function == place.function)
                && chain.iter().zip(first).take(depth).all(alike)
        };
        let others = others.iter().filter(is_here).filter_map(line);
        let before = others.filter(|line| called.is_some_and(|called| *line < called)).max();
        let begins = all.iter().copied().filter(|line| before.is_none_or(|before| *line > before)).min();
        let lines = begins.or(all.iter().min().copied()).zip(all.iter().max().copied());
        Turn { function: place.function.clone(), file, lines, ..Turn::default() }
    }
}

/// A loop of the source around calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Around {
    /// In the function of the frames at this depth of the stacks, 0 being the outermost.
    Loop { depth: usize, turn: Turn },
    /// No loop: the function of the frame at this depth calls itself there.
    Recursion { depth: usize, place: Location },
}

/// The loops that calls with these stacks (outermost frame first) have in common, the innermost first. Where they share
/// no frame, or the code cannot be read, there are none.
pub fn nest(names: &dyn Names, stacks: &[Vec<Frame>]) -> Vec<Around> {
    let Some(first) = stacks.first().filter(|first| !first.is_empty()) else { return Vec::new() };
    let shared = |stack: &Vec<Frame>| first.iter().zip(stack).take_while(|(a, b)| a == b).count();
    let common = stacks.iter().map(shared).min().unwrap_or(0);
    let mut found = Vec::new();
    // Calls from one function, at several places of it.
    let mut calls: Vec<Frame> = stacks.iter().filter_map(|stack| stack.get(common).copied()).collect();
    if calls.len() == stacks.len() {
        calls.sort_unstable();
        calls.dedup();
        let function = |call: &Frame| names.function(*call).map(|start| (call.module, start));
        let of = calls.first().and_then(function);
        if of.is_some() && calls.iter().all(|call| function(call) == of) {
            let turns = names.loops(&calls);
            found.extend(turns.into_iter().map(|turn| Around::Loop { depth: common, turn }));
        }
    }
    for depth in (0..common).rev() {
        let frame = first[depth];
        let function = |frame: Frame| names.function(frame).map(|start| (frame.module, start));
        let below = first.get(depth + 1..).unwrap_or_default();
        let own = function(frame);
        if own.is_some() && below.iter().any(|&inner| function(inner) == own) {
            let place = names.places(frame).last().cloned().unwrap_or_default();
            found.push(Around::Recursion { depth, place });
        }
        found.extend(names.loops(&[frame]).into_iter().map(|turn| Around::Loop { depth, turn }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    fn chain(text: &str) -> Vec<Location> {
        let place = |word: &str| {
            let (function, line) = word.split_once(':').unwrap();
            let source = Source { file: "a.c".into(), line: line.parse().unwrap() };
            Location { function: Some(function.into()), source: Some(source), ..Location::default() }
        };
        text.split_whitespace().map(place).collect()
    }

    #[track_caller]
    fn check(chains: &[&str], function: &str, lines: (u32, u32)) {
        let chains: Vec<Vec<Location>> = chains.iter().map(|text| chain(text)).collect();
        let function = Some(function.into());
        let expected = Turn { function, file: Some("a.c".into()), lines: Some(lines), ..Turn::default() };
        assert_eq!(Turn::of(&chains, &[], &[]), expected);
    }

    #[test]
    fn a_loop_is_where_all_of_its_code_is() {
        check(&["main:12", "main:10", "main:14"], "main", (10, 14));
        // A function that is inlined into the loop, and one that the loop is inlined with.
        check(&["main:10", "main:12 see:3", "main:13"], "main", (10, 13));
        check(&["main:40 run:5", "main:40 run:7 see:3", "main:40 run:4"], "run", (4, 7));
        // Inlined twice in one loop: the loop is outside.
        check(&["main:40 run:5", "main:41 run:7"], "main", (40, 41));
        check(&["main:10", "main:0"], "main", (10, 10));
        assert_eq!(Turn::of(&[], &[], &[]), Turn::default());
    }

    /// Line 5 was moved into the loop from another one, line 14 is the last of it.
    #[test]
    fn a_loop_begins_behind_those_before_it() {
        let chains = ["main:5", "main:10", "main:12", "main:14 see:3"].map(chain);
        let first = |calls: &[&str], others: &[&str]| {
            let [calls, others] =
                [calls, others].map(|all| all.iter().map(|text| chain(text)).collect::<Vec<_>>());
            Turn::of(&chains, &calls, &others).lines
        };
        assert_eq!(first(&["main:12"], &["main:4", "main:7", "main:20"]), Some((10, 14)));
        assert_eq!(first(&["main:14 see:3"], &["main:7", "other:11", "main:0"]), Some((10, 14)));
        assert_eq!(first(&["main:12"], &["main:20"]), Some((5, 14)));
        assert_eq!(first(&["main:12"], &[]), Some((5, 14)));
    }
}
