//! A recorder for tests: calls are written down field by field, folded and merged as in a real run.

#![allow(dead_code)]

use std::io::Cursor;

use refrain_encode::{ClassLanes, Digest, Layout, Reader, hash_symbol};
use refrain_fold::bundle::sites::{Frame, Module};
use refrain_fold::bundle::{Bundle, Class, Sites, Structure, SymbolEntry, Tally, ThreadPart, merge};
use refrain_fold::pack::Kind;
use refrain_fold::pack::number::SPANS;
use refrain_fold::stream::Stream;
use refrain_fold::{grammar, loops, stream};
use refrain_model::time::Time;
use refrain_model::{constant, function};
use refrain_times::{Block, Packer, Span};
use refrain_tracefile::chunks::{Key, Settings, Writer};
use refrain_tracefile::{Meta, Profile, Trace};
use refrain_views::timed::Times;

const LANE: u8 = 1;
const NAMED: u8 = 3;
const UNKEPT: u8 = 4;
const STATUS: u8 = 7;
const HEAP: u8 = 8;
const GROUP_SAME: u8 = 1;
const GROUP_LIST: u8 = 2;

/// One call as it is encoded: what is fixed in `symbol`, the numbers beside it.
#[derive(Clone)]
pub struct Encoded {
    symbol: Vec<u8>,
    values: Vec<(u16, i64)>,
    lanes: u16,
    /// Return addresses, outermost first.
    stack: Vec<u64>,
    /// Nanoseconds.
    took: u64,
}

/// The program that the calls are made from.
pub fn program() -> Module {
    Module { path: "/home/me/app".into(), build_id: [1, 2, 3].into() }
}

fn varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn number_of(name: &str) -> u64 {
    constant(name).unwrap_or_else(|| panic!("no constant {name}")).id.into()
}

pub fn call(name: &str) -> Encoded {
    let mut symbol = Vec::new();
    varint(function(name).unwrap().id.into(), &mut symbol);
    symbol.push(0);
    Encoded { symbol, values: vec![], lanes: 0, stack: vec![], took: 100 }
}

impl Encoded {
    /// How long it took.
    pub fn took(self, took: u64) -> Self {
        Encoded { took, ..self }
    }

    /// After the function's number: the call failed, so it has a result lane and no outputs.
    pub fn failed(mut self) -> Self {
        *self.symbol.last_mut().unwrap() = 1;
        self
    }

    /// Made at the last of these addresses of the program, called from the others.
    pub fn from(mut self, stack: &[u64]) -> Self {
        self.stack = stack.to_vec();
        self
    }

    fn lane(&mut self, values: &[i64]) {
        self.values.extend(values.iter().map(|v| (self.lanes, *v)));
        self.lanes += 1;
    }

    /// A number that is always there.
    pub fn number(mut self, value: i64) -> Self {
        self.lane(&[value]);
        self
    }

    /// A number that could have been something else.
    pub fn tagged(mut self, value: i64) -> Self {
        self.symbol.push(LANE);
        self.number(value)
    }

    pub fn list(mut self, values: &[i64]) -> Self {
        self.symbol.push(LANE);
        self.lane(&[values.len() as i64]);
        self.lane(values);
        self
    }

    /// Displacements that are sums of so many counts, from 0 on.
    pub fn sums(mut self, counts: usize) -> Self {
        self.symbol.push(LANE);
        self.lane(&[-1 - counts as i64]);
        self.lane(&[0; 3]);
        self
    }

    /// A list whose length another parameter says.
    pub fn elements(mut self, values: &[i64]) -> Self {
        self.symbol.push(LANE);
        self.lane(values);
        self
    }

    pub fn types(self, names: &[&str]) -> Self {
        let codes: Vec<i64> = names.iter().map(|n| code(n)).collect();
        self.list(&codes)
    }

    pub fn named(mut self, name: &str) -> Self {
        self.symbol.push(NAMED);
        varint(number_of(name), &mut self.symbol);
        self
    }

    pub fn buffer(mut self) -> Self {
        self.symbol.push(UNKEPT);
        self
    }

    pub fn absent(mut self) -> Self {
        self.symbol.push(0);
        self
    }

    /// A constant by its name, an object of ours by its id: `#3`.
    pub fn object(mut self, name: &str) -> Self {
        varint(code(name) as u64 + 1, &mut self.symbol);
        self
    }

    pub fn new_type(self, id: i64, size: i64) -> Self {
        self.tagged(id * 2).number(size).number(0).number(size)
    }

    /// A new communicator: id, which of its parent's, the members.
    pub fn new_comm(mut self, id: i64, order: i64, group: &[i64]) -> Self {
        self.symbol.extend([LANE, GROUP_LIST]);
        self.lane(&[id * 2]);
        self.lane(&[order]);
        self.lane(&[group.len() as i64]);
        self.lane(group);
        self
    }

    /// A new communicator of its parent's members.
    pub fn comm_as_parent(mut self, id: i64, order: i64) -> Self {
        self.symbol.extend([LANE, GROUP_SAME]);
        self.number(id * 2).number(order)
    }

    /// A new communicator that is named by its members: id, which of theirs, the caller's rank in it, who they are.
    pub fn comm_of_members(mut self, id: i64, order: i64, rank: i64, group: &[i64]) -> Self {
        self.symbol.extend([LANE, GROUP_LIST]);
        self = self.number(id * 2).number(order).number(rank).number(group.len() as i64);
        self.lane(group);
        self
    }

    /// A status all of which is defined, of a message from so far away.
    pub fn status(mut self, source: i64, tag: i64, bytes: i64) -> Self {
        self.symbol.push(STATUS);
        let first = self.lanes;
        self.lanes += 4;
        self.values.extend([(first + 3, 0), (first, source), (first + 1, tag), (first + 2, bytes)]);
        self
    }

    /// Of a call that returned `MPI_ERR_IN_STATUS`, whose array is as long as its requests: source, tag, bytes and error.
    pub fn statuses_with_errors(mut self, all: &[(i64, i64, i64, i64)]) -> Self {
        let at = self.symbol.iter().position(|b| b & 0x80 == 0).unwrap() + 1;
        self.symbol[at] = 2;
        self.symbol.push(STATUS);
        let first = self.lanes;
        self.lanes += 5;
        for (source, tag, bytes, error) in all {
            let values = [(first + 3, 0), (first, *source), (first + 1, *tag), (first + 2, *bytes)];
            self.values.extend(values);
            self.values.push((first + 4, *error));
        }
        self.lane(&[17]);
        self
    }

    /// The same of a call that did not write it: its lanes are there.
    pub fn no_status(mut self) -> Self {
        self.symbol.push(STATUS);
        self.lanes += 4;
        self
    }

    /// An address in the heap.
    pub fn heap(mut self, segment: i64, offset: i64) -> Self {
        self.symbol.push(HEAP);
        self.number(segment).number(offset)
    }

    /// How many numbers it has.
    pub fn numbers(&self) -> usize {
        self.values.len()
    }

    /// The same call with another number in one place.
    pub fn changed(mut self, number: usize, by: i64) -> Self {
        self.values[number].1 += by;
        self
    }

    /// An address on the stack.
    pub fn stack_place(mut self, segment: i64, offset: i64) -> Self {
        self.symbol.push(HEAP + 2);
        self.number(segment).number(offset)
    }

    /// Everything in the symbol, as with `--split off`.
    pub fn inline(mut self) -> Self {
        let at = self.symbol.iter().position(|b| b & 0x80 == 0).unwrap() + 1;
        self.symbol[at] |= 4;
        varint(self.values.len() as u64, &mut self.symbol);
        for (_, value) in self.values.drain(..) {
            varint(((value << 1) ^ (value >> 63)) as u64, &mut self.symbol);
        }
        self.lanes = 0;
        self
    }
}

fn code(name: &str) -> i64 {
    match name.strip_prefix('#') {
        Some(id) => id.parse::<i64>().unwrap() * 2,
        None => number_of(name) as i64 * 2 + 1,
    }
}

pub fn send(count: i64, datatype: &str) -> Encoded {
    call("MPI_Send").buffer().number(count).object(datatype).tagged(1).tagged(9).object("MPI_COMM_WORLD")
}

pub fn contiguous(count: i64, id: i64, size: i64) -> Encoded {
    call("MPI_Type_contiguous").number(count).object("MPI_INT").new_type(id, size)
}

pub fn alltoall(count: i64, datatype: &str, comm: &str) -> Encoded {
    let sent = call("MPI_Alltoall").buffer().tagged(count).object(datatype);
    sent.buffer().number(count).object(datatype).object(comm)
}

pub fn split(id: i64, order: i64, group: &[i64]) -> Encoded {
    call("MPI_Comm_split").object("MPI_COMM_WORLD").number(0).number(0).new_comm(id, order, group)
}

enum Order {
    Rules(Box<grammar::Folder>),
    Loops(Box<loops::Folder>),
}

impl Order {
    fn push(&mut self, symbol: u32) {
        match self {
            Order::Rules(folder) => folder.push(symbol),
            Order::Loops(folder) => folder.push(symbol),
        }
    }

    fn finish(self) -> (Structure, Vec<(Stream, u64)>) {
        match self {
            Order::Rules(folder) => (folder.finish().into(), Vec::new()),
            Order::Loops(folder) => {
                let folded = folder.finish();
                (folded.loops.into(), folded.times.into_iter().zip(folded.lengths).collect())
            }
        }
    }
}

pub fn rank_bundle_as((rank, world): (u32, u32), threads: &[Vec<Encoded>], in_loops: bool) -> Bundle {
    let mut symbols: Vec<SymbolEntry> = Vec::new();
    let mut parts = Vec::new();
    let mut sites = Sites::default();
    for (thread, calls) in (0u32..).zip(threads) {
        let mut structure = match in_loops {
            false => Order::Rules(Box::new(grammar::Folder::new())),
            true => Order::Loops(Box::new(loops::Folder::new(loops::Matching::Elastic))),
        };
        let mut lanes: Vec<Vec<stream::Folder>> = Vec::new();
        let mut digest = Digest::default();
        for call in calls {
            let frame = |offset: &u64| Frame { module: program().key(), offset: *offset };
            let frames: Vec<Frame> = call.stack.iter().map(frame).collect();
            let site = sites.add(&frames);
            let known = symbols.iter().position(|s| *s.bytes == *call.symbol && s.site == site);
            let index = known.unwrap_or_else(|| {
                let tally = Tally { total: 0, min: u64::MAX, max: 0 };
                symbols.push(SymbolEntry {
                    bytes: call.symbol.clone().into(),
                    site,
                    lanes: call.lanes,
                    tally,
                    classes: Default::default(),
                });
                if let Order::Loops(folder) = &mut structure {
                    folder.define(symbols.len() as u32 - 1, sites.frames(site));
                }
                symbols.len() - 1
            });
            lanes.resize_with(symbols.len(), Vec::new);
            lanes[index].resize_with(call.lanes.into(), stream::Folder::new);
            let tally = Tally { total: call.took, min: call.took, max: call.took };
            symbols[index].tally.add(tally);
            let lanes_of_class = Layout::parse(&call.symbol).ok().and_then(|layout| ClassLanes::of(&layout));
            if let Some(lanes) = lanes_of_class {
                symbols[index].classes.add(Class { kind: lanes.kind(&call.values), count: 1, tally });
            }
            structure.push(index as u32);
            digest.symbol(hash_symbol(&call.symbol, site));
            for &(lane, value) in &call.values {
                lanes[index][usize::from(lane)].push(value);
                digest.value(value);
            }
        }
        let (structure, times) = structure.finish();
        parts.push(ThreadPart {
            thread,
            structure,
            times,
            lanes: lanes.iter().map(|l| l.iter().map(|f| f.finish()).collect()).collect(),
            lengths: lanes.iter().map(|l| l.iter().map(stream::Folder::len).collect()).collect(),
            digest: digest.get(),
        });
    }
    if !sites.stacks.is_empty() {
        sites.add_module(program());
    }
    let mut bundle = Bundle::of_rank((rank, world), symbols, parts).unwrap();
    bundle.sites = sites;
    bundle
}

/// By rank, by thread, the calls.
pub fn trace_of(ranks: &[Vec<Vec<Encoded>>]) -> Trace {
    trace_as(ranks, false)
}

/// The same with their order kept as loops.
pub fn looped(ranks: &[Vec<Vec<Encoded>>]) -> Trace {
    trace_as(ranks, true)
}

fn trace_as(ranks: &[Vec<Vec<Encoded>>], in_loops: bool) -> Trace {
    merged_in(0..ranks.len(), ranks, in_loops)
}

/// The same with ranks that come together in some order.
pub fn merged_in(order: impl Iterator<Item = usize>, ranks: &[Vec<Vec<Encoded>>], in_loops: bool) -> Trace {
    let mut bundle = Bundle::default();
    for rank in order {
        let own = rank_bundle_as((rank as u32, ranks.len() as u32), &ranks[rank], in_loops);
        bundle = merge(bundle, own).unwrap();
    }
    if in_loops {
        bundle.score().unwrap();
    }
    bundle.canonical().unwrap();
    let meta = Meta {
        refrain_version: "0.1.0".into(),
        command: vec!["mpiexec".into(), "./my app".into()],
        library: "Fake MPI 1.0\nbuilt yesterday".into(),
        abi: "none".into(),
        ranks: ranks.len() as u32,
        started: 951_782_400,
        wall_ns: 1_500_000_000,
        split: true,
        timed: true,
        complete: true,
        profile: Some(profile(ranks.len() as u32)),
        ..Meta::default()
    };
    Trace { meta, bundle }
}

/// All ranks compute for as long; the first is in MPI the longest, the second the shortest.
fn profile(ranks: u32) -> Profile {
    let send = refrain_model::function("MPI_Send").unwrap().id;
    let one = |rank: u32| {
        let inside = [900, 100].get(rank as usize).copied().unwrap_or(500);
        Profile::of_rank(rank, (1000, inside), [(send, inside)])
    };
    let mut all = (0..ranks).map(one).fold(Profile::default(), |all, one| all.join(&one));
    all.settle();
    all
}

/// One thread a rank, all ranks doing the same.
pub fn alike(ranks: usize, calls: &[Encoded]) -> Trace {
    trace_of(&vec![vec![calls.to_vec()]; ranks])
}

/// The calls of a thread, and when each began and ended.
pub type TimedCalls = Vec<(Encoded, i64, i64)>;

/// What clocks of MPI return in these files, by its bits.
pub fn result_of(start: i64) -> u64 {
    (start as f64 * 1e-9 + 0.25).to_bits()
}

/// A trace file with the times of its calls, by rank, by thread.
pub fn timed_file(ranks: &[Vec<TimedCalls>], time: &str) -> Vec<u8> {
    let calls: Vec<Vec<Vec<Encoded>>> = ranks
        .iter()
        .map(|threads| {
            threads.iter().map(|calls| calls.iter().map(|call| call.0.clone()).collect()).collect()
        })
        .collect();
    let mut trace = trace_of(&calls);
    trace.meta.options.push(("time".into(), time.into()));
    let time = Time::read(time).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), Settings::default());
    let reader = Reader::new(&trace.bundle);
    for (rank, threads) in (0u32..).zip(ranks) {
        for (thread, spans) in (0u32..).zip(threads) {
            let member = trace.bundle.member(rank, thread).unwrap();
            let key = Key { member: member.into(), lane: 0 };
            let mut packer = Packer::new(&time).unwrap();
            let each = u64::from(packer.numbers());
            let mut put = |block: Option<Block>| {
                let Some(block) = block else { return };
                let numbers = (each * block.first, each as u32 * block.calls);
                writer.put_packed((key, Kind::TIME), SPANS, numbers, &block.bytes).unwrap();
            };
            let mut calls = reader.calls(rank, thread).unwrap();
            for (_, start, end) in spans {
                let function = calls.next().unwrap().unwrap().function.id;
                let symbol = &trace.bundle.symbols[calls.symbol().unwrap() as usize];
                let signature = hash_symbol(&symbol.bytes, symbol.site);
                put(packer.push(signature, function, Span { start: *start, end: *end }, result_of(*start)));
            }
            put(packer.finish());
        }
    }
    let chunks = writer.finish().unwrap();
    let mut file = Vec::new();
    refrain_tracefile::append(&refrain_tracefile::write(&trace), chunks, &mut file).unwrap();
    file
}

/// What a file has of calls, and of their times.
pub fn open_timed(file: Vec<u8>) -> (Trace, Option<Times>) {
    let loaded = refrain_tracefile::load(Cursor::new(&file)).unwrap();
    let trace = refrain_tracefile::read(&loaded.bytes).unwrap();
    let times = Times::open(&trace, Cursor::new(file), loaded.chunks).unwrap();
    (trace, times)
}
