//! One thread's recording: from records to blocks of references.
//!
//! Nobody tells of blocks here, but the code does: between two references without a jump between them, the second always
//! follows the first. So after a reference the machine code is read up to the next call; if that is what notes the next
//! record, the two are in one block. What a block looked like is kept as a *plan*, and which plan followed it last time: the
//! next one is mostly a comparison.

use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use refrain_fold::FastMap;
use refrain_fold::bundle::Bundle;
use refrain_fold::bundle::sites::{Frame, Module};
use refrain_references::{Access, Block as Symbol, Error, MOST_OF_BLOCK, Reference, Thread};

use super::kinds::{BOTH, ENTERED, LEFT, PC, PIECE};
use super::own::Record;
use crate::modules::{Modules, NOWHERE};
use crate::paths::{Path, Paths};

/// More references than this are in several blocks: half of what a block may have, since one record may be two.
const MOST: usize = MOST_OF_BLOCK / 2;
/// Code of more bytes than this without a jump is not read.
const FAR: usize = 1024;

/// Where code is: `None` in no module.
type Where = Option<(Frame, Arc<Module>)>;

/// A block, by its words.
#[derive(Debug)]
struct Plan {
    words: Box<[u64]>,
    /// A record that comes from here would be in it too; 0: none would.
    follow: u64,
    references: Vec<Reference>,
    /// Some records are two references.
    has_both: bool,
    /// What came after it last time.
    next: u32,
    /// The last symbol that it was, and by which path.
    path: Path,
    symbol: u32,
}

impl Plan {
    /// Whether the next records are this block, and it is over then.
    #[inline]
    fn fits(&self, records: &[Record], end: bool) -> bool {
        let count = self.words.len();
        if records.len() < count || self.words.iter().zip(records).any(|(word, record)| *word != record.word)
        {
            return false;
        }
        match records.get(count) {
            Some(after) => {
                self.follow == 0 || after.word & PC != self.follow || after.word & (ENTERED | LEFT) != 0
            }
            None => end || self.follow == 0,
        }
    }
}

const NO_PATH: Path = Path::MAX;

#[derive(Debug)]
pub struct Recording {
    thread: Thread,
    paths: Paths,
    plans: Vec<Plan>,
    /// By the first word: those that begin so, the last one that fitted first.
    fitting: FastMap<u64, Vec<u32>>,
    /// The last plan.
    last: usize,
    symbols: FastMap<(u32, Path), u32>,
    places: FastMap<u64, Where>,
    addresses: Vec<u64>,
    limit: u64,
}

impl Recording {
    pub fn new(thread: Thread, limit: u64) -> Recording {
        Recording {
            thread,
            paths: Paths::default(),
            plans: Vec::new(),
            fitting: FastMap::default(),
            last: 0,
            symbols: FastMap::default(),
            places: FastMap::default(),
            addresses: Vec::new(),
            limit,
        }
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

    /// Takes records in; returns how many. With `end` all of them: otherwise a block that may go on is left. `modules` says
    /// where code lies.
    pub fn take(&mut self, records: &[Record], end: bool, mut modules: impl FnMut(u64) -> Found) -> usize {
        if self.thread.len() >= self.limit {
            return records.len();
        }
        let mut at = 0;
        while let Some(first) = records.get(at) {
            let rest = &records[at..];
            if first.word & (ENTERED | LEFT) != 0 {
                match first.word & ENTERED {
                    0 => self.paths.leave(first.address, first.word & PC),
                    _ => self.enter(*first, &mut modules),
                }
                at += 1;
                continue;
            }
            if first.word == 0 {
                at += 1;
                continue;
            }
            let guess = self.plans.get(self.last).map(|last| last.next);
            let plan = match guess {
                Some(plan) if self.plans[plan as usize].fits(rest, end) => plan,
                _ => match self.find(rest, end, &mut modules) {
                    Some(plan) => plan,
                    None => break,
                },
            };
            at += self.plans[plan as usize].words.len();
            self.run(plan, rest, &mut modules);
        }
        at
    }

    fn enter(&mut self, record: Record, modules: &mut impl FnMut(u64) -> Found) {
        let pc = record.word & PC;
        let place = self.places.entry(pc).or_insert_with(|| modules(pc).place);
        let (frame, module) = match place {
            Some((frame, module)) => (*frame, Some(&**module)),
            None => (NOWHERE, None),
        };
        self.paths.enter_at(record.address, pc, frame, module);
    }

    /// The plan of the block that the next records begin with; `None` if it may go on after them.
    fn find(&mut self, records: &[Record], end: bool, modules: &mut impl FnMut(u64) -> Found) -> Option<u32> {
        let first = records[0].word;
        let fitting = self.fitting.entry(first).or_default();
        let known = fitting.iter().position(|&plan| self.plans[plan as usize].fits(records, end));
        if let Some(known) = known {
            fitting[..=known].rotate_right(1);
        } else {
            let plan = parse(records, end, modules)?;
            let new = self.plans.len() as u32;
            self.plans.push(Plan { next: new, ..plan });
            // The last of many never fit again.
            fitting.truncate(15);
            fitting.insert(0, new);
        }
        let plan = fitting[0];
        if let Some(last) = self.plans.get_mut(self.last) {
            last.next = plan;
        }
        Some(plan)
    }

    #[inline]
    fn run(&mut self, number: u32, records: &[Record], modules: &mut impl FnMut(u64) -> Found) {
        self.last = number as usize;
        let plan = &self.plans[number as usize];
        self.addresses.clear();
        let records = &records[..plan.words.len()];
        if plan.has_both {
            for record in records {
                let times = if record.word & BOTH != 0 { 2 } else { 1 };
                self.addresses.extend(std::iter::repeat_n(record.address, times));
            }
        } else {
            self.addresses.extend(records.iter().map(|record| record.address));
        }
        let left = self.limit.saturating_sub(self.thread.len());
        let path = self.paths.current();
        if (self.addresses.len() as u64) <= left {
            let symbol = if plan.path == path { plan.symbol } else { self.symbol(number, path, modules) };
            self.thread.push(symbol, &self.addresses);
        } else if left > 0 {
            let references = plan.references[..left as usize].to_vec();
            let symbol = self.named(number, references, path, modules);
            self.thread.push(symbol, &self.addresses[..left as usize]);
        }
    }

    /// The symbol of a plan on that path.
    fn symbol(&mut self, number: u32, path: Path, modules: &mut impl FnMut(u64) -> Found) -> u32 {
        let symbol = match self.symbols.get(&(number, path)) {
            Some(&symbol) => symbol,
            None => {
                let references = self.plans[number as usize].references.clone();
                let symbol = self.named(number, references, path, modules);
                self.symbols.insert((number, path), symbol);
                symbol
            }
        };
        let plan = &mut self.plans[number as usize];
        (plan.path, plan.symbol) = (path, symbol);
        symbol
    }

    fn named(
        &mut self,
        number: u32,
        references: Vec<Reference>,
        path: Path,
        modules: &mut impl FnMut(u64) -> Found,
    ) -> u32 {
        let pc = at(self.plans[number as usize].words[0]);
        let place = self.places.entry(pc).or_insert_with(|| modules(pc).place);
        let (pc, frame, site) = match place {
            Some((frame, module)) => (0, *frame, self.paths.site_of(path, *frame, Some(module))),
            None => (pc, NOWHERE, self.paths.site(path)),
        };
        let symbol = self.thread.symbol(&Symbol { pc, references }, site);
        let mut frames = self.paths.frames(path);
        frames.push(frame);
        self.thread.define(symbol, frames);
        symbol
    }
}

/// Where the code of a reference is: the last byte of the call that notes it, which is on the line of the reference, as what
/// the call returns to may not be.
fn at(word: u64) -> u64 {
    (word & PC).wrapping_sub(1)
}

/// What is known of an address of code.
#[derive(Debug, Default)]
pub struct Found {
    pub place: Where,
    /// The machine code from there on; none where it is not mapped any more.
    pub code: Vec<u8>,
}

impl Found {
    pub fn new(modules: &mut Modules, pc: u64) -> Found {
        let Some(piece) = modules.find(pc) else { return Found::default() };
        let length = (piece.memory.end - pc).min(FAR as u64) as usize;
        let mut code = vec![0u8; length];
        let into = libc::iovec { iov_base: code.as_mut_ptr().cast(), iov_len: length };
        let from = libc::iovec { iov_base: pc as *mut _, iov_len: length };
        // The library may have been closed since: then the kernel says so.
        // SAFETY: it writes to our memory, so many bytes.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &into, 1, &from, 1, 0) };
        code.truncate(usize::try_from(read).unwrap_or(0));
        Found { place: Some((piece.frame(pc), Arc::new(piece.module.clone()))), code }
    }
}

/// Where the next call after that address returns to, if nothing jumps before it; 0 otherwise.
fn follow(code: &[u8], pc: u64) -> u64 {
    let mut decoder = Decoder::with_ip(64, code, pc, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall => return instruction.next_ip(),
            _ => return 0,
        }
    }
    0
}

/// The block that the next records begin with. `None` if it may go on after the last of them, unless that is the `end`.
fn parse(records: &[Record], end: bool, modules: &mut impl FnMut(u64) -> Found) -> Option<Plan> {
    let mut words: Vec<u64> = Vec::new();
    let mut references: Vec<Reference> = Vec::new();
    let start = records[0].word & PC;
    let mut expected = start;
    loop {
        let Some(record) = records.get(words.len()) else {
            if expected != 0 && !end {
                return None;
            }
            break;
        };
        let word = record.word;
        if word & (ENTERED | LEFT) != 0 || word & PC != expected || words.len() == MOST {
            break;
        }
        let is_piece = word & PIECE != 0;
        if is_piece && !words.is_empty() {
            break;
        }
        words.push(word);
        let (access, size) = Record::meaning(word);
        let reference = Reference { at: expected.wrapping_sub(start) as u32, access, size };
        references.push(reference);
        if word & BOTH != 0 {
            references.push(Reference { access: Access::Store, ..reference });
        }
        expected = if is_piece { 0 } else { follow(&modules(expected).code, expected) };
        if expected == 0 {
            break;
        }
    }
    let has_both = references.len() > words.len();
    let follow = if words.len() == MOST { 0 } else { expected };
    Some(Plan { words: words.into(), follow, references, has_both, next: 0, path: NO_PATH, symbol: 0 })
}

#[cfg(test)]
mod tests;
