//! What each rank of a trace did, call by call: a tree of loops, and for each call in it the numbers of its lanes.

use std::collections::HashMap;
use std::rc::Rc;

use refrain_encode::{Decoder, Layout, hash_symbol};
use refrain_fold::bundle::{Bundle, Index, SymbolEntry, Walk};
use refrain_fold::loops::Loops;

use crate::Error;
use crate::tree::{Tree, around, each};

/// The symbols of all traces, each once.
#[derive(Default)]
pub struct Symbols {
    pub all: Vec<Known>,
    by_content: HashMap<(Box<[u8]>, u64), u32>,
}

pub struct Known {
    pub bytes: Box<[u8]>,
    pub site: u64,
    pub layout: Layout,
    pub hash: u64,
}

impl Symbols {
    /// What the bytes of a symbol of one of the traces say.
    pub fn layout(&self, entry: &SymbolEntry) -> Option<&Layout> {
        let known = self.by_content.get(&(entry.bytes.clone(), entry.site))?;
        Some(&self.all[*known as usize].layout)
    }

    fn number(&mut self, entry: &SymbolEntry) -> Result<u32, Error> {
        let key = (entry.bytes.clone(), entry.site);
        if let Some(known) = self.by_content.get(&key) {
            return Ok(*known);
        }
        let layout = Layout::parse(&entry.bytes).map_err(Error::Calls)?;
        let hash = hash_symbol(&entry.bytes, entry.site);
        self.all.push(Known { bytes: entry.bytes.clone(), site: entry.site, layout, hash });
        let number = self.all.len() as u32 - 1;
        self.by_content.insert(key, number);
        Ok(number)
    }
}

/// The calls of one thread of one rank.
#[derive(Debug, PartialEq)]
pub struct Member {
    pub loops: Rc<Loops>,
    pub counts: Vec<u64>,
    /// By node of the tree, then by lane of its symbol; nothing for loops.
    pub lanes: Vec<Vec<Seen>>,
}

/// The numbers that one place in the program has in one lane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// How many numbers a call takes at most; those that a call does not have are 0.
    pub per: u32,
    /// What they depend on: the nodes around the call, by depth; one more for the place among the numbers of the call.
    pub kept: Vec<usize>,
    /// After how many turns of each of these they come again; as many as it has turns where they do not.
    pub sizes: Vec<usize>,
    /// In order, without what they do not depend on.
    pub values: Vec<i64>,
}

/// All threads of all ranks of a trace.
pub struct Reading<'a> {
    bundle: &'a Bundle,
    index: Index<'a>,
    /// By symbol of the trace.
    numbers: Vec<u32>,
    trees: HashMap<u32, Tree>,
    /// Cohorts in which all did the same.
    uniform: HashMap<usize, Rc<Member>>,
}

impl<'a> Reading<'a> {
    pub fn new(bundle: &'a Bundle, symbols: &mut Symbols) -> Result<Reading<'a>, Error> {
        let numbers = bundle.symbols.iter().map(|entry| symbols.number(entry)).collect::<Result<_, _>>()?;
        let index = Index::new(bundle);
        Ok(Reading { bundle, index, numbers, trees: HashMap::new(), uniform: HashMap::new() })
    }

    pub fn threads(&self, rank: u32) -> Vec<u32> {
        self.index.threads(rank).collect()
    }

    pub fn member(&mut self, rank: u32, thread: u32, symbols: &Symbols) -> Result<Option<Rc<Member>>, Error> {
        let Some((cohort, member)) = self.index.cohort_of(rank, thread) else { return Ok(None) };
        if let Some(known) = self.uniform.get(&cohort) {
            return Ok(Some(Rc::clone(known)));
        }
        let tree = self.tree(cohort, member)?;
        let read = Rc::new(self.read(cohort, member, tree, symbols)?);
        if self.bundle.cohorts[cohort].is_uniform() {
            self.uniform.insert(cohort, Rc::clone(&read));
        }
        Ok(Some(read))
    }

    fn tree(&mut self, cohort: usize, member: u32) -> Result<Tree, Error> {
        let structure = self.bundle.cohorts[cohort].structure;
        let is_rules = self.bundle.structures[structure as usize].rules().is_some();
        if let Some(known) = self.trees.get(&structure).filter(|_| is_rules) {
            return Ok(known.clone());
        }
        let mut walk = Walk::of(self.bundle, cohort, member).map_err(Error::Bundle)?;
        let tree = Tree::of(std::iter::from_fn(|| Some(self.numbers[walk.pass_symbol()? as usize])));
        if is_rules {
            self.trees.insert(structure, tree.clone());
        }
        Ok(tree)
    }

    fn read(&self, cohort: usize, member: u32, tree: Tree, symbols: &Symbols) -> Result<Member, Error> {
        let mut walk = Walk::of(self.bundle, cohort, member).map_err(Error::Bundle)?;
        let mut decoder = Decoder::new(self.bundle.place_of(member).0);
        let mut raw: Vec<Vec<Raw>> = tree.loops.nodes.iter().map(|_| Vec::new()).collect();
        let mut taken: Vec<u32> = Vec::new();
        each(&tree.loops, &tree.counts, &mut |node, _| {
            let ended = || Error::Calls(refrain_encode::Error::BadSymbol { function: "?", at: 0 });
            let symbol = walk.next_symbol().ok_or_else(ended)?;
            let layout = &symbols.all[self.numbers[symbol as usize] as usize].layout;
            let lanes = &mut raw[node];
            lanes.resize_with(layout.lanes.into(), Raw::default);
            taken.clear();
            taken.resize(layout.lanes.into(), 0);
            let mut next = |lane: u16| {
                let value = walk.value(lane).unwrap_or(0);
                if let Some(raw) = lanes.get_mut(usize::from(lane)) {
                    raw.values.push(value);
                    taken[usize::from(lane)] += 1;
                }
                value
            };
            decoder.call(layout, &mut next).map_err(Error::Calls)?;
            layout.polls.map(&mut next);
            lanes.iter_mut().zip(&taken).for_each(|(lane, taken)| lane.call(*taken));
            Ok::<(), Error>(())
        })?;
        let around = around(&tree.loops);
        let lanes = raw.into_iter().zip(&around).map(|(lanes, around)| {
            let turns: Vec<u64> = around.iter().map(|node| tree.counts[*node]).collect();
            lanes.into_iter().map(|raw| raw.seen(&turns)).collect()
        });
        Ok(Member { lanes: lanes.collect(), loops: Rc::new(tree.loops), counts: tree.counts })
    }
}

/// Numbers as they come.
#[derive(Default)]
struct Raw {
    values: Vec<i64>,
    calls: usize,
    per: u32,
    /// By call, where not all take as many.
    lengths: Vec<u32>,
}

impl Raw {
    fn call(&mut self, taken: u32) {
        if self.calls == 0 {
            self.per = taken;
        } else if taken != self.per && self.lengths.is_empty() {
            self.lengths = vec![self.per; self.calls];
        }
        self.calls += 1;
        if !self.lengths.is_empty() {
            self.lengths.push(taken);
            self.per = self.per.max(taken);
        }
    }

    /// As many of each call.
    fn padded(self) -> (Vec<i64>, u32) {
        if self.lengths.is_empty() {
            return (self.values, self.per);
        }
        let mut values = Vec::with_capacity(self.lengths.len() * self.per as usize);
        let mut rest = &self.values[..];
        for length in self.lengths {
            let (own, after) = rest.split_at(length as usize);
            values.extend(own);
            values.resize(values.len() + (self.per - length) as usize, 0);
            rest = after;
        }
        (values, self.per)
    }

    fn seen(self, turns: &[u64]) -> Seen {
        let (mut values, per) = self.padded();
        let mut sizes: Vec<usize> = turns.iter().map(|turns| *turns as usize).chain([per as usize]).collect();
        let mut kept = Vec::new();
        for depth in 0..sizes.len() {
            let inner: usize = sizes[depth + 1..].iter().product();
            if values.is_empty() {
                break;
            }
            let size = period(&values, sizes[depth], inner);
            let whole = inner * sizes[depth];
            if size < sizes[depth] {
                let first = values.chunks_exact(whole).flat_map(|block| &block[..inner * size]);
                values = first.copied().collect();
                sizes[depth] = size;
            }
            if size > 1 {
                kept.push(depth);
            }
        }
        let sizes = kept.iter().map(|depth| sizes[*depth]).collect();
        Seen { per, kept, sizes, values }
    }
}

/// After how many turns all numbers come again: rows of `inner` numbers, `turns` of them at a time.
fn period(values: &[i64], turns: usize, inner: usize) -> usize {
    let blocks = || values.chunks_exact(turns * inner);
    let again = |by: usize| blocks().all(|block| block[by * inner..] == block[..(turns - by) * inner]);
    if turns < 2 || again(1) {
        return turns.min(1);
    }
    // The failure function of Knuth, Morris and Pratt, over what all rows of a turn say.
    let mut sums = vec![0u64; turns];
    for block in blocks() {
        for (sum, row) in sums.iter_mut().zip(block.chunks_exact(inner)) {
            let mix = |sum: u64, value: &i64| {
                (sum ^ *value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
            };
            *sum = row.iter().fold(*sum, mix);
        }
    }
    let mut border = vec![0usize; turns];
    let mut length = 0;
    for at in 1..turns {
        while length > 0 && sums[at] != sums[length] {
            length = border[length - 1];
        }
        length += usize::from(sums[at] == sums[length]);
        border[at] = length;
    }
    let by = turns - length;
    if 2 * by <= turns && again(by) { by } else { turns }
}

impl Seen {
    /// The one number that it is in every turn.
    pub fn only(&self) -> Option<i64> {
        (self.per == 1 && self.kept.is_empty() && self.values.len() == 1).then(|| self.values[0])
    }

    /// The number at these turns, of which those of `depths` are told.
    pub fn at(&self, depths: &[usize], turns: &[i64]) -> Option<i64> {
        let mut at = 0usize;
        for (kept, size) in self.kept.iter().zip(&self.sizes) {
            let dim = depths.iter().position(|depth| depth == kept)?;
            at = at * size + usize::try_from(turns[dim]).ok()? % size;
        }
        self.values.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lists: &[&[i64]], turns: &[u64]) -> Seen {
        let mut raw = Raw::default();
        for list in lists {
            raw.values.extend(*list);
            raw.call(list.len() as u32);
        }
        raw.seen(turns)
    }

    #[test]
    fn what_does_not_matter_is_left_out() {
        let same = seen(&[&[7], &[7], &[7], &[7]], &[2, 2]);
        assert_eq!((same.kept.len(), &same.values[..]), (0, &[7][..]));
        let inner = seen(&[&[1], &[2], &[3], &[1], &[2], &[3]], &[2, 3]);
        assert_eq!((&inner.kept[..], &inner.values[..]), (&[1][..], &[1, 2, 3][..]));
        let lists = seen(&[&[1, 5], &[1, 5]], &[2]);
        assert_eq!((&lists.kept[..], &lists.values[..]), (&[1][..], &[1, 5][..]));
    }

    #[test]
    fn what_comes_again_is_told_once() {
        let again = seen(&[&[1], &[2], &[3], &[1], &[2], &[3], &[1]], &[7]);
        assert_eq!((&again.sizes[..], &again.values[..]), (&[3][..], &[1, 2, 3][..]));
        assert_eq!(again.at(&[0], &[4]), Some(2));
        let once = seen(&[&[1], &[2], &[1], &[3]], &[4]);
        assert_eq!(once.sizes, [4]);
    }

    #[test]
    fn lists_of_several_lengths() {
        let padded = seen(&[&[1, 2], &[], &[1, 2], &[]], &[4]);
        assert_eq!((padded.per, &padded.sizes[..], &padded.values[..]), (2, &[2, 2][..], &[1, 2, 0, 0][..]));
    }
}
