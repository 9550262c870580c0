//! Where in the source things are: the calls, and the loops around them.

use std::fmt;
use std::rc::Rc;

use refrain_fold::bundle::Bundle;
use refrain_fold::bundle::sites::Frame;
use refrain_sites::{Around, Location, Names, Turn, nest};
use serde::Serialize;

use super::tree::Tree;

/// Where a loop is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Where {
    pub how: How,
    pub function: Option<String>,
    pub file: Option<String>,
    pub lines: Option<(u32, u32)>,
    /// Of a loop: how deep on the stack its function is, and its code.
    pub code: Option<(usize, Turn)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// The lines of the loop, `for` and all.
    Loop,
    /// No loop, but a function that calls itself at that line.
    Recursion,
    /// The lines of the calls: the loop is around them.
    Calls,
}

impl Where {
    /// Of a loop around a call with that stack, whose function is so deep on it.
    pub fn of_loop(names: &dyn Names, stack: &[Frame], depth: usize, turn: &Turn) -> Where {
        let Turn { function, file, lines, .. } = turn.clone();
        let bare = || {
            let places = names.places(*stack.get(depth)?);
            Some(format!("{}+{:#x}", places.first()?.module, turn.code.first()?.start))
        };
        let code = Some((depth, turn.clone()));
        Where { how: How::Loop, function: function.or_else(bare), file, lines, code }
    }

    pub fn file_name(&self) -> &str {
        self.file.as_deref().and_then(|file| file.rsplit('/').next()).unwrap_or("?")
    }
}

/// `bt.c:44 in simulate`
impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.function.as_deref().unwrap_or("?");
        let Some((first, last)) = self.lines else {
            return match self.how {
                How::Loop => write!(f, "{function}"),
                How::Recursion => write!(f, "{function}, which calls itself"),
                How::Calls => write!(f, "around {function}"),
            };
        };
        let file = self.file_name();
        match self.how {
            How::Loop => write!(f, "{file}:{first} in {function}"),
            How::Recursion => write!(f, "{file}:{first}, where {function} calls itself"),
            How::Calls if first == last => write!(f, "around {file}:{first} in {function}"),
            How::Calls => write!(f, "around {file}:{first}-{last} in {function}"),
        }
    }
}

/// The frames of a symbol, outermost first.
pub fn stack(bundle: &Bundle, symbol: u32) -> Vec<Frame> {
    bundle.symbols.get(symbol as usize).map_or(Vec::new(), |entry| bundle.sites.frames(entry.site))
}

/// Where a symbol is called: what the innermost frame is called, with all that is inlined there.
pub fn call_site(bundle: &Bundle, names: &dyn Names, symbol: u32) -> Option<Rc<[Location]>> {
    stack(bundle, symbol).last().map(|frame| names.places(*frame))
}

/// For every node that repeats, where its loop is; `None` for others and where nothing is known.
pub fn locate(bundle: &Bundle, names: &dyn Names, tree: &Tree) -> Vec<Option<Where>> {
    let mut chosen: Vec<Option<Around>> = vec![None; tree.nodes.len()];
    let mut found: Vec<Option<Where>> = vec![None; tree.nodes.len()];
    // From the inside out.
    for node in (0..tree.nodes.len()).rev().filter(|&node| tree.nodes[node].repeats()) {
        let mut symbols: Vec<u32> = tree
            .events(node)
            .filter(|&(at, _)| tree.nodes[at].runs() > 0)
            .map(|(_, symbol)| symbol)
            .collect();
        symbols.sort_unstable();
        symbols.dedup();
        let stacks: Vec<Vec<Frame>> = symbols.iter().map(|&symbol| stack(bundle, symbol)).collect();
        if stacks.iter().any(Vec::is_empty) {
            continue;
        }
        let around = nest(names, &stacks);
        // A loop with nothing but a loop in it is one further out.
        let inner = inside(tree, node).and_then(|inner| chosen[inner].as_ref());
        let past = inner.and_then(|inner| around.iter().position(|a| a == inner)).map_or(0, |at| at + 1);
        chosen[node] = around.get(past).or_else(|| around.first()).cloned();
        found[node] = match &chosen[node] {
            Some(Around::Loop { turn, depth }) => Some(Where::of_loop(names, &stacks[0], *depth, turn)),
            Some(Around::Recursion { place, .. }) => Some(Where {
                how: How::Recursion,
                function: place.function.clone(),
                file: place.source.as_ref().map(|source| source.file.clone()),
                lines: place.source.as_ref().map(|source| (source.line, source.line)),
                code: None,
            }),
            None => None,
        }
        .or_else(|| calls(names, &stacks));
    }
    found
}

/// The only node in a loop's body, through such as run at most once.
fn inside(tree: &Tree, node: usize) -> Option<usize> {
    let mut at = node;
    loop {
        if !tree.nodes[at].is_loop() {
            return None;
        }
        let mut body = tree.body(Some(at));
        let (only, None) = (body.next()?, body.next()) else { return None };
        if tree.nodes[only].repeats() {
            return Some(only);
        }
        at = only;
    }
}

/// The innermost function that all the calls come from, and the lines in it that they come from.
fn calls(names: &dyn Names, stacks: &[Vec<Frame>]) -> Option<Where> {
    let chains: Vec<Vec<Location>> = stacks
        .iter()
        .map(|stack| stack.iter().flat_map(|frame| names.places(*frame).to_vec()).collect())
        .collect();
    let first = chains.first()?;
    let mut depth = first.len().checked_sub(1)?;
    for chain in &chains {
        let differs = |(a, b): (&Location, &Location)| a != b;
        let apart = first.iter().zip(chain).position(differs);
        let apart = apart.unwrap_or(first.len().min(chain.len()).checked_sub(1)?);
        let same_function = first.get(apart).and_then(|p| p.function.as_ref())
            == chain.get(apart).and_then(|p| p.function.as_ref());
        depth = depth.min(if same_function { apart } else { apart.checked_sub(1)? });
    }
    let place = &first[depth];
    let sources: Vec<_> = chains.iter().filter_map(|chain| chain.get(depth)?.source.as_ref()).collect();
    let lines = sources.iter().map(|source| source.line);
    Some(Where {
        how: How::Calls,
        function: Some(place.function.clone().unwrap_or_else(|| place.to_string())),
        file: place.source.as_ref().map(|source| source.file.clone()),
        lines: lines.clone().min().zip(lines.max()),
        code: None,
    })
}
