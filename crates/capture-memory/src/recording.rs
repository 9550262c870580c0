//! One thread's recording: from accesses to executions of blocks.
//!
//! Which block runs follows from the numbers of the instructions. Those of a block come in order; anything else ends it. What
//! an execution looked like is kept as a *plan*, so that the next one is a comparison. An execution that ends early, in a
//! fault or because nothing had to be done, has a plan of its own.

use std::sync::Arc;

use refrain_fold::FastMap;
use refrain_fold::bundle::Bundle;
use refrain_references::{Access, Block as Symbol, Error, MOST_OF_BLOCK, Reference, Thread};

use crate::code::Block;
use crate::decode::Flow;
use crate::paths::{Path, Paths};
use crate::record::{CALL, OFF, Record, START, THREAD};

/// The size of an access, and whether it stores, of [`Record::info`].
pub type Meaning = fn(u32) -> (u32, bool);

/// Accesses of an instruction of which nobody knows how many it has: more than these are another execution.
const MANY: usize = 64;

/// [`Step::delta`] of an access that begins a reference, and of one that is not recorded.
const NEW: u32 = u32::MAX;
const SKIPPED: u32 = u32::MAX - 1;

/// One access of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    insn: u32,
    info: u32,
    /// How far it is from where its reference begins.
    delta: u32,
}

/// An execution of a block.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    steps: Box<[Step]>,
    references: Vec<Reference>,
    /// Which step's address is the slot of a call or return.
    flow: Option<(Flow, usize)>,
    /// The instruction of the last step has done all that it does.
    is_done: bool,
    /// Fetches: the first is of an instruction that runs any number of times; and so is the last, which is so far into the block.
    from_repeated: bool,
    to_repeated: Option<u32>,
    block: u32,
    /// The last symbol that it was, and by which path; that of no path at first.
    path: Path,
    symbol: u32,
}

const NO_PATH: Path = Path::MAX;

impl Plan {
    /// Whether the next records are an execution by this plan, and one more record says that it is over.
    #[inline]
    fn fits(&self, block: &Block, records: &[Record], addresses: &mut Vec<u64>) -> bool {
        let Some(after) = records.get(self.steps.len()) else { return false };
        addresses.clear();
        let mut base = 0;
        for (step, record) in self.steps.iter().zip(records) {
            if step.insn != record.insn || step.info != record.info {
                return false;
            }
            match step.delta {
                NEW => {
                    base = record.address;
                    addresses.push(base);
                }
                SKIPPED => {}
                delta if record.address == base.wrapping_add(delta.into()) => {}
                _ => return false,
            }
        }
        let last = self.steps.last().map_or(0, |step| step.insn);
        let is_of_block = (after.insn.wrapping_sub(block.first) as usize) < block.insns.len();
        !is_of_block || after.insn < last || (after.insn == last && self.is_done)
    }

    /// The addresses of the references of an execution.
    fn addresses(&self, records: &[Record], addresses: &mut Vec<u64>) {
        addresses.clear();
        let new = self.steps.iter().zip(records).filter(|(step, _)| step.delta == NEW);
        addresses.extend(new.map(|(_, record)| record.address));
    }
}

#[derive(Debug)]
pub struct Recording {
    thread: Thread,
    /// Copies of what all threads share.
    blocks: Vec<Arc<Block>>,
    of: Vec<u32>,
    /// Of each block, the plans, the last one that fitted first.
    fitting: Vec<Vec<u32>>,
    plans: Vec<Plan>,
    symbols: FastMap<(u32, Path), u32>,
    paths: Paths,
    addresses: Vec<u64>,
    /// The instruction that ran last, if it runs any number of times: QEMU begins a block for each of them, and it is fetched once.
    repeating: Option<u64>,
    meaning: Meaning,
    limit: u64,
    has_stacks: bool,
    /// What it is called by the library that records calls.
    number: u32,
}

impl Recording {
    pub fn new(thread: Thread, limit: u64, has_stacks: bool, meaning: Meaning) -> Recording {
        Recording {
            thread,
            blocks: Vec::new(),
            of: Vec::new(),
            fitting: Vec::new(),
            plans: Vec::new(),
            symbols: FastMap::default(),
            paths: Paths::default(),
            addresses: Vec::new(),
            repeating: None,
            meaning,
            limit,
            has_stacks,
            number: 0,
        }
    }

    pub fn is_full(&self) -> bool {
        self.thread.len() >= self.limit
    }

    /// References so far.
    pub fn len(&self) -> u64 {
        self.thread.len()
    }

    pub fn bundle(&mut self) -> Result<Bundle, Error> {
        self.thread.bundle(self.paths.sites())
    }

    /// Why recording has ended before the thread has.
    pub fn stopped(&self) -> Option<&std::io::Error> {
        self.thread.stopped()
    }

    /// After the last [`Recording::bundle`].
    pub fn close(self) -> std::io::Result<()> {
        self.thread.close()
    }

    /// Takes records in; returns how many. With `end` all of them: otherwise an execution that may go on is left.
    /// `tell` brings the copies of the shared tables up to date.
    pub fn take(
        &mut self,
        records: &[Record],
        end: bool,
        tell: impl Fn(&mut Vec<Arc<Block>>, &mut Vec<u32>),
    ) -> usize {
        let mut at = 0;
        while let Some(first) = records.get(at) {
            if first.insn as usize >= self.of.len() {
                if self.take_mark(first) {
                    at += 1;
                    continue;
                }
                tell(&mut self.blocks, &mut self.of);
                self.fitting.resize_with(self.blocks.len(), Vec::new);
            }
            let Some(&block) = self.of.get(first.insn as usize) else {
                // Nobody has translated it: it cannot have run.
                at += 1;
                continue;
            };
            let rest = &records[at..];
            let plan = match self.fit(block, rest) {
                Some(plan) => plan,
                None => match self.plan(block, rest, end) {
                    Some(plan) => {
                        self.plans[plan as usize].addresses(rest, &mut self.addresses);
                        plan
                    }
                    None => break,
                },
            };
            at += self.plans[plan as usize].steps.len();
            self.run(plan, rest);
        }
        at
    }

    /// Takes in what is no access, and says whether it is that.
    #[cold]
    fn take_mark(&mut self, record: &Record) -> bool {
        match record.insn {
            CALL => self.thread.mark(self.number),
            THREAD => self.number = record.address as u32,
            _ => return false,
        }
        true
    }

    /// Of records that are not wanted any more, takes in those that are no accesses.
    pub fn take_marks(&mut self, records: &[Record]) {
        for record in records {
            self.take_mark(record);
        }
    }

    /// The plan of a block that the next records are, if one more record says that the execution is over. The addresses of its
    /// references are then taken.
    #[inline]
    fn fit(&mut self, block: u32, records: &[Record]) -> Option<u32> {
        let Recording { plans, blocks, fitting, addresses, .. } = self;
        let fitting = &mut fitting[block as usize];
        let block = &blocks[block as usize];
        let found = fitting.iter().position(|&plan| plans[plan as usize].fits(block, records, addresses))?;
        // It is the first nearly always.
        if found > 0 {
            fitting[..=found].rotate_right(1);
        }
        Some(fitting[0])
    }

    /// A plan for the execution that the next records begin with; `None` if it may go on after them.
    fn plan(&mut self, number: u32, records: &[Record], end: bool) -> Option<u32> {
        let plan = parse(number, &self.blocks[number as usize], records, end, self.meaning)?;
        let fitting = &mut self.fitting[number as usize];
        let same = |&known: &u32| self.plans[known as usize].steps == plan.steps;
        if let Some(known) = fitting.iter().position(same) {
            fitting[..=known].rotate_right(1);
            return Some(fitting[0]);
        }
        let new = self.plans.len() as u32;
        self.plans.push(plan);
        // The last of many never fit again.
        fitting.truncate(15);
        fitting.insert(0, new);
        Some(new)
    }

    /// These records are an execution by that plan; the addresses of its references were taken.
    #[inline]
    fn run(&mut self, number: u32, records: &[Record]) {
        let plan = &self.plans[number as usize];
        let (block, flow) = (plan.block, plan.flow);
        if !self.addresses.is_empty() {
            let left = self.limit.saturating_sub(self.thread.len());
            let address = self.blocks[block as usize].address;
            let again = plan.from_repeated && self.repeating == Some(address);
            self.repeating = plan.to_repeated.map(|at| address.wrapping_add(at.into()));
            if again {
                self.run_again(number);
            } else if (plan.references.len() as u64) <= left {
                let path = self.paths.current();
                let symbol = if plan.path == path { plan.symbol } else { self.symbol(number, path) };
                self.thread.push(symbol, &self.addresses);
            } else if left > 0 {
                self.run_part(block, plan.references[..left as usize].to_vec(), 0);
            }
        }
        if let Some((flow, at)) = flow
            && self.has_stacks
        {
            let block = &self.blocks[block as usize];
            let (slot, insn) = (records[at].address, &block.insns[(records[at].insn - block.first) as usize]);
            match flow {
                Flow::Call => self.paths.call(slot, block.frame(insn.at + insn.len), block.module()),
                Flow::Return => self.paths.ret(slot),
                Flow::On => {}
            }
        }
    }

    /// The first instruction of a block runs once more, and is not fetched again.
    fn run_again(&mut self, number: u32) {
        let plan = &self.plans[number as usize];
        let mut references = plan.references.clone();
        references.remove(0);
        let left = self.limit.saturating_sub(self.thread.len());
        references.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        self.run_part(plan.block, references, 1);
    }

    /// Only these references of an execution, with the addresses from there on.
    fn run_part(&mut self, block: u32, references: Vec<Reference>, from: usize) {
        if references.is_empty() {
            return;
        }
        let part = Symbol { pc: 0, references };
        let lanes = part.lanes().filter(|has| *has).count();
        let symbol = self.named(block, part.references, self.paths.current());
        self.thread.push(symbol, &self.addresses[from..from + lanes]);
    }

    /// The symbol of a plan on that path.
    fn symbol(&mut self, number: u32, path: Path) -> u32 {
        let symbol = match self.symbols.get(&(number, path)) {
            Some(&symbol) => symbol,
            None => {
                let plan = &self.plans[number as usize];
                let symbol = self.named(plan.block, plan.references.clone(), path);
                self.symbols.insert((number, path), symbol);
                symbol
            }
        };
        let plan = &mut self.plans[number as usize];
        (plan.path, plan.symbol) = (path, symbol);
        symbol
    }

    fn named(&mut self, block: u32, references: Vec<Reference>, path: Path) -> u32 {
        let block = &self.blocks[block as usize];
        let (pc, site) = match &block.place {
            Some((frame, module)) => (0, self.paths.site_of(path, *frame, Some(module))),
            None => (block.address, self.paths.site(path)),
        };
        let symbol = self.thread.symbol(&Symbol { pc, references }, site);
        let mut frames = self.paths.frames(path);
        frames.push(block.frame(0));
        self.thread.define(symbol, frames);
        symbol
    }
}

/// What the execution that the next records begin with looks like. `None` if it may go on after the last of them, unless that is
/// the `end`.
fn parse(number: u32, block: &Block, records: &[Record], end: bool, meaning: Meaning) -> Option<Plan> {
    let (mut steps, mut references): (Vec<Step>, Vec<Reference>) = (Vec::new(), Vec::new());
    let mut flow = None;
    let mut last = u32::MAX;
    // Of the instruction: bytes so far, and accesses.
    let (mut loads, mut stores, mut count) = (0, 0, 0);
    // Of the reference: where it begins, and whether the next access may be a part of it.
    let (mut base, mut open) = (0u64, false);
    let mut is_done = true;
    // Instructions whose fetches are among the references, and references that have lanes.
    let (mut fetched, mut lanes) = (None, 0);
    loop {
        let Some(record) = records.get(steps.len()) else {
            if !end {
                return None;
            }
            break;
        };
        let nth = record.insn.wrapping_sub(block.first);
        let Some(insn) = block.insns.get(nth as usize) else { break };
        if record.info == START {
            if !steps.is_empty() {
                break;
            }
            steps.push(Step { insn: record.insn, info: record.info, delta: NEW });
            last = nth;
            fetched = Some(fetch(block, 0, 0, &mut references));
            lanes += 1;
            continue;
        }
        let (size, is_store) = meaning(record.info & !OFF);
        if last != u32::MAX {
            if nth < last || (nth == last && is_done) || lanes == MOST_OF_BLOCK {
                break;
            }
            if nth == last && !insn.is_atomic && !insn.varies {
                let (so_far, whole) = if is_store { (stores, insn.stores) } else { (loads, insn.loads) };
                if so_far + size > whole {
                    break;
                }
            }
        }
        fetched = fetched.map(|fetched| fetch(block, fetched, insn.at, &mut references));
        if nth != last {
            (loads, stores, count, open) = (0, 0, 0, false);
            last = nth;
        }
        let is_recorded = block.is_recorded && record.info & OFF == 0;
        let whole = match (insn.varies && !insn.is_atomic, is_store) {
            (true, _) => 0,
            (_, true) => insn.store,
            (_, false) => insn.load,
        };
        let offset = record.address.wrapping_sub(base);
        let delta = if !is_recorded {
            SKIPPED
        } else if insn.is_atomic {
            let whole = insn.load.max(insn.store).max(size);
            if open && offset < whole.into() {
                offset as u32
            } else {
                references.push(Reference { at: insn.at, access: Access::Update, size: whole });
                NEW
            }
        } else {
            let access = if is_store { Access::Store } else { Access::Load };
            match references.last_mut() {
                Some(reference)
                    if open
                        && reference.access == access
                        && offset == u64::from(reference.size)
                        && reference.size + size <= whole =>
                {
                    reference.size += size;
                    offset as u32
                }
                _ => {
                    references.push(Reference { at: insn.at, access, size });
                    NEW
                }
            }
        };
        if delta == NEW {
            base = record.address;
            open = true;
            lanes += 1;
        }
        // An atomic operation that begins with a store is told as one access, both of which it is.
        let whole_update = insn.is_atomic && is_store && loads == 0;
        if is_store {
            stores += size
        } else {
            loads += size
        }
        count += 1;
        is_done = match (insn.is_atomic, insn.varies) {
            (true, _) => whole_update || stores >= insn.stores,
            // Where the start of a block is noted, it is known when it runs again.
            (_, true) => count >= MANY && fetched.is_none(),
            _ => loads >= insn.loads && stores >= insn.stores,
        };
        if (insn.flow == Flow::Call && is_store) || (insn.flow == Flow::Return && !is_store && flow.is_none())
        {
            flow = Some((insn.flow, steps.len()));
        }
        steps.push(Step { insn: record.insn, info: record.info, delta });
    }
    // What follows the last access has run too, unless something that must refer to memory has not.
    let fetched = fetched.map(|fetched| {
        let rest = block.fetches[fetched..].iter().take_while(|next| !next.refers);
        rest.last().map_or(fetched, |last| fetch(block, fetched, last.at, &mut references))
    });
    let of = |at: usize| block.fetches.get(at).filter(|fetch| fetch.is_repeated);
    Some(Plan {
        from_repeated: fetched.is_some() && of(0).is_some(),
        to_repeated: fetched.and_then(|fetched| of(fetched.checked_sub(1)?)).map(|fetch| fetch.at),
        steps: steps.into(),
        references,
        flow,
        is_done,
        block: number,
        path: NO_PATH,
        symbol: 0,
    })
}

/// Adds the fetches of a block up to that of the instruction so far into it; how many there are then.
fn fetch(block: &Block, from: usize, at: u32, references: &mut Vec<Reference>) -> usize {
    let next = block.fetches[from..].iter().take_while(|fetch| fetch.at <= at);
    let next = next.map(|fetch| Reference { at: fetch.at, access: Access::Fetch, size: fetch.len });
    let before = references.len();
    references.extend(next);
    from + references.len() - before
}

#[cfg(test)]
mod tests;
