//! One score for all: cohorts whose trees of loops are alike become one, in which each rank has times of its own.
//!
//! A rank that has no such event, or no such loop, has nought or one as its times there, so that the ranks that take part
//! in an event are a lane like any other: a function of the rank, or a list of ranks for each number.

use std::collections::{BTreeSet, HashSet};

use crate::loops::merge::{DEEPEST, Kinds, Merged, Source, depth, merge};
use crate::loops::{Loops, Node};
use crate::stream::Stream;

use super::lanes::StreamSet;
use super::{Bundle, Cohort, Error, Lane, Structure};

/// Kinds of ranks that are brought together. With more, most of what is there is not pattern.
const MOST_KINDS: usize = 512;
/// Nodes of all kinds together.
const MOST_NODES: usize = 1 << 18;

/// Trees that were merged, and for each cohort among them where its times come from.
struct Score {
    threads: BTreeSet<u32>,
    loops: Loops,
    symbols: HashSet<u32>,
    /// (cohort, by node of the score).
    members: Vec<(usize, Vec<Source>)>,
    /// By node, by member: it has this node.
    who: Vec<Kinds>,
}

impl Bundle {
    /// Brings together the cohorts of loops that have half of their symbols, or more, and a thread in common.
    pub fn score(&mut self) -> Result<(), Error> {
        self.validate()?;
        let mut scores: Vec<Score> = Vec::new();
        let mut nodes = 0;
        let mut order: Vec<usize> = (0..self.cohorts.len()).collect();
        // The richest first: others are mostly parts of it.
        let size = |c: usize| self.structures[self.cohorts[c].structure as usize].own_lanes();
        order.sort_by_key(|&c| (std::cmp::Reverse(size(c)), self.cohorts[c].ranks.iter().next()));
        for cohort in order {
            let Cohort { structure, ref sides, .. } = self.cohorts[cohort];
            let Some(loops) = self.structures[structure as usize].loops() else { continue };
            // Side lanes go by the symbols of one structure.
            if !sides.is_empty() {
                continue;
            }
            nodes += loops.nodes.len();
            if nodes > MOST_NODES || depth(loops) > DEEPEST {
                continue;
            }
            let symbols: HashSet<u32> = loops.symbols().into_iter().collect();
            let threads = self.threads_in(&self.cohorts[cohort].ranks).into_iter().collect();
            let alike = |score: &&mut Score| {
                let common = symbols.intersection(&score.symbols).count();
                !score.threads.is_disjoint(&threads)
                    && score.members.len() < MOST_KINDS
                    && depth(&score.loops) < DEEPEST
                    && 2 * common >= symbols.len().min(score.symbols.len())
            };
            match scores.iter_mut().find(alike) {
                Some(score) => score.add(threads, cohort, loops, symbols),
                None => scores.push(Score::new(threads, cohort, loops, symbols)),
            }
        }
        scores.retain(|score| score.members.len() > 1);
        if scores.is_empty() {
            return Ok(());
        }
        let mut table = StreamSet::new(std::mem::take(&mut self.streams));
        let mut gone = HashSet::new();
        for score in scores {
            let mut all: Vec<Cohort> = Vec::new();
            for (cohort, sources) in &score.members {
                let lanes = self.lanes_in(&self.cohorts[*cohort], &score.loops, sources, &mut table);
                let old = self.cohorts[*cohort].clone();
                all.push(Cohort { lanes, structure: self.structures.len() as u32, ..old });
            }
            // In pairs, and pairs of these: what is joined goes by the ranks in it.
            while all.len() > 1 {
                let mut rest = std::mem::take(&mut all).into_iter();
                while let Some(mut one) = rest.next() {
                    if let Some(other) = rest.next() {
                        one.take_in(other, &mut table);
                    }
                    all.push(one);
                }
            }
            gone.extend(score.members.iter().skip(1).map(|member| member.0));
            if let (Some(whole), Some(member)) = (all.pop(), score.members.first()) {
                self.cohorts[member.0] = whole;
            }
            self.structures.push(Structure::Loops(score.loops));
        }
        self.streams = table.streams;
        let mut at = 0;
        self.cohorts.retain(|_| {
            at += 1;
            !gone.contains(&(at - 1))
        });
        Ok(())
    }

    /// A cohort's lanes as they are under the score.
    fn lanes_in(
        &self,
        cohort: &Cohort,
        score: &Loops,
        sources: &[Source],
        table: &mut StreamSet,
    ) -> Vec<Lane> {
        let structure = &self.structures[cohort.structure as usize];
        let mut lanes: Vec<Lane> = sources
            .iter()
            .map(|source| match *source {
                Source::Node(node) => cohort.lanes[node as usize].clone(),
                Source::Never => Lane::same(table.add(Stream::constant(0))),
                Source::Once => Lane::same(table.add(Stream::constant(1))),
                Source::Absent => Lane::nobody(),
            })
            .collect();
        let mut starts = std::collections::HashMap::new();
        let mut start = structure.own_lanes();
        for symbol in structure.symbols() {
            starts.insert(symbol, start);
            start += usize::from(self.symbols[symbol as usize].lanes);
        }
        for symbol in score.symbols() {
            let count = usize::from(self.symbols[symbol as usize].lanes);
            match starts.get(&symbol) {
                Some(&start) => lanes.extend_from_slice(&cohort.lanes[start..start + count]),
                None => lanes.extend((0..count).map(|_| Lane::nobody())),
            }
        }
        lanes
    }
}

impl Score {
    fn new(threads: BTreeSet<u32>, cohort: usize, loops: &Loops, symbols: HashSet<u32>) -> Score {
        let sources = (0..loops.nodes.len() as u32).map(Source::Node).collect();
        let who = vec![vec![1]; loops.nodes.len()];
        Score { threads, loops: loops.clone(), symbols, members: vec![(cohort, sources)], who }
    }

    fn add(&mut self, threads: BTreeSet<u32>, cohort: usize, loops: &Loops, symbols: HashSet<u32>) {
        let Merged { loops, first, second } = merge(&self.loops, loops, &self.who);
        let (word, bit) = (self.members.len() / 64, 1u64 << (self.members.len() % 64));
        let mut who: Vec<Kinds> = vec![vec![0; word + 1]; first.len()];
        for (who, (first, second)) in who.iter_mut().zip(first.iter().zip(&second)) {
            if let Source::Node(node) = first {
                who.iter_mut().zip(&self.who[*node as usize]).for_each(|(new, old)| *new = *old);
            }
            if matches!(second, Source::Node(_)) {
                who[word] |= bit;
            }
        }
        self.who = who;
        for (_, sources) in &mut self.members {
            *sources = through(&loops, &first, sources);
        }
        self.members.push((cohort, second));
        self.threads.extend(threads);
        self.loops = loops;
        self.symbols.extend(symbols);
    }
}

/// Where a member's times come from once the tree it was merged into has been merged again.
fn through(loops: &Loops, first: &[Source], member: &[Source]) -> Vec<Source> {
    let mut sources = Vec::with_capacity(first.len());
    // Up to here nothing is reached.
    let mut hidden = 0;
    for (at, source) in first.iter().enumerate() {
        let source = match *source {
            _ if at < hidden => Source::Absent,
            Source::Node(node) => member[node as usize],
            other => other,
        };
        if let (Source::Never | Source::Absent, Node::Loop { inside }) = (source, loops.nodes[at]) {
            hidden = hidden.max(at + 1 + inside as usize);
        }
        sources.push(source);
    }
    sources
}
