//! A rank of the world that is asked for, as a recorder would have folded it.

use std::collections::HashMap;

use refrain_encode::{Decoder, Digest, Folding};
use refrain_fold::bundle::sites::Sites;
use refrain_fold::bundle::{Bundle, Classes, Structure, SymbolEntry, Tally, ThreadPart};
use refrain_fold::loops::Node;
use refrain_fold::stream::{self, Stream};
use refrain_fold::{grammar, loops};

use crate::Error;
use crate::learn::{Kind, Model, Size};
use crate::place::Place;
use crate::read::Symbols;
use crate::tree::each;

pub struct Predictor<'a> {
    pub symbols: &'a Symbols,
    pub sites: &'a Sites,
    pub folding: Folding,
    /// By thread.
    pub models: &'a [(u32, Model)],
}

/// The numbers of a lane on one rank.
struct Filled {
    /// The depth of a loop around (one more: the place in the call), after how many of its turns numbers come again, and how
    /// far apart those of two turns are.
    steps: Vec<(usize, usize, usize)>,
    values: Vec<i64>,
}

enum Folder {
    Grammar(Box<grammar::Folder>),
    Loops(Box<loops::Folder>),
}

impl Predictor<'_> {
    pub fn rank(&self, place: &Place) -> Result<Bundle, Error> {
        let mut symbols: Vec<SymbolEntry> = Vec::new();
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut threads = Vec::new();
        for (thread, model) in self.models {
            let kind = model.kind(place).ok_or_else(|| no_law(place, "the order of calls"))?;
            if let Some(kind) = kind {
                threads.push(self.thread(place, *thread, kind, &mut symbols, &mut numbers)?);
            }
        }
        let ranks = (place.rank as u32, place.ranks as u32);
        Bundle::of_rank(ranks, symbols, threads).map_err(Error::Bundle)
    }

    fn thread(
        &self,
        place: &Place,
        thread: u32,
        kind: &Kind,
        symbols: &mut Vec<SymbolEntry>,
        numbers: &mut HashMap<u32, u32>,
    ) -> Result<ThreadPart, Error> {
        let counts = kind.counts(place).ok_or_else(|| no_law(place, "how often loops run"))?;
        let lanes = self.filled(place, kind, &counts)?;
        let mut folder = match self.folding {
            Folding::Grammar => Folder::Grammar(Box::default()),
            Folding::Loops { matching, .. } => Folder::Loops(Box::new(loops::Folder::new(matching))),
        };
        let mut decoder = Decoder::new(place.rank as u32);
        let mut digest = Digest::default();
        let mut streams: Vec<Vec<stream::Folder>> = Vec::new();
        let mut asked: Vec<usize> = Vec::new();
        each(&kind.loops, &counts, &mut |node, turns| {
            let Node::Event(symbol) = kind.loops.nodes[node] else { return Ok(()) };
            let known = &self.symbols.all[symbol as usize];
            let own = *numbers.entry(symbol).or_insert_with(|| {
                symbols.push(SymbolEntry {
                    bytes: known.bytes.clone(),
                    site: known.site,
                    lanes: known.layout.lanes,
                    tally: Tally { total: 0, min: 0, max: 0 },
                    classes: Classes::default(),
                });
                symbols.len() as u32 - 1
            });
            streams.resize_with(streams.len().max(own as usize + 1), Vec::new);
            let streams = &mut streams[own as usize];
            if streams.is_empty() {
                streams.resize_with(known.layout.lanes.into(), stream::Folder::new);
                if let Folder::Loops(folder) = &mut folder {
                    folder.define(own, self.sites.frames(known.site));
                }
            }
            match &mut folder {
                Folder::Grammar(folder) => folder.push(own),
                Folder::Loops(folder) => folder.push(own),
            }
            digest.symbol(known.hash);
            asked.clear();
            asked.resize(known.layout.lanes.into(), 0);
            let mut missing = false;
            let mut next = |lane: u16| {
                let lane = usize::from(lane);
                let value = lanes[node].get(lane).and_then(|filled| filled.at(turns, asked[lane]));
                missing |= value.is_none();
                let value = value.unwrap_or(0);
                asked[lane] += 1;
                streams[lane].push(value);
                digest.value(value);
                value
            };
            decoder.call(&known.layout, &mut next).map_err(Error::Calls)?;
            known.layout.polls.map(&mut next);
            match missing {
                true => Err(no_law(place, known.layout.function.name)),
                false => Ok(()),
            }
        })?;
        let (structure, times): (Structure, Vec<(Stream, u64)>) = match folder {
            Folder::Grammar(folder) => (folder.into_grammar().into(), Vec::new()),
            Folder::Loops(folder) => {
                let folded = folder.finish();
                (folded.loops.into(), folded.times.into_iter().zip(folded.lengths).collect())
            }
        };
        let lengths = streams.iter().map(|lanes| lanes.iter().map(stream::Folder::len).collect()).collect();
        let lanes = streams.iter().map(|lanes| lanes.iter().map(stream::Folder::finish).collect()).collect();
        Ok(ThreadPart { thread, structure, times, lanes, lengths, digest: digest.get() })
    }

    /// By node, then by lane.
    fn filled(&self, place: &Place, kind: &Kind, counts: &[u64]) -> Result<Vec<Vec<Filled>>, Error> {
        let mut all = Vec::with_capacity(kind.lanes.len());
        for (node, lanes) in kind.lanes.iter().enumerate() {
            let around = &kind.around[node];
            let mut of_node = Vec::with_capacity(lanes.len());
            for lane in lanes {
                let failed = || no_law(place, self.name(kind, node));
                let turns = |depth: usize| around.get(depth).map_or(0, |node| counts[*node] as i64);
                let size =
                    |(depth, size): &(usize, Size)| size.of(place, turns(*depth)).filter(|size| *size > 0);
                let sizes: Vec<i64> = lane.kept.iter().map(size).collect::<Option<_>>().ok_or_else(failed)?;
                let values = lane.of(place, &sizes).ok_or_else(failed)?;
                let mut steps = Vec::with_capacity(sizes.len());
                for (at, (depth, _)) in lane.kept.iter().enumerate() {
                    let step = sizes[at + 1..].iter().map(|size| *size as usize).product();
                    steps.push((*depth, sizes[at] as usize, step));
                }
                of_node.push(Filled { steps, values });
            }
            all.push(of_node);
        }
        Ok(all)
    }

    fn name(&self, kind: &Kind, node: usize) -> &'static str {
        match kind.loops.nodes[node] {
            Node::Event(symbol) => self.symbols.all[symbol as usize].layout.function.name,
            Node::Loop { .. } => "",
        }
    }
}

impl Filled {
    fn at(&self, turns: &[u64], in_call: usize) -> Option<i64> {
        let place = |(depth, size, step): &(usize, usize, usize)| {
            turns.get(*depth).map_or(in_call, |turn| *turn as usize) % size * step
        };
        self.values.get(self.steps.iter().map(place).sum::<usize>()).copied()
    }
}

fn no_law(place: &Place, what: &str) -> Error {
    Error::NoLaw { rank: place.rank as u32, what: what.to_owned() }
}
