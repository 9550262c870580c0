//! What one thread has recorded so far: its symbols, folded structure, streams and digest.

use std::collections::BTreeMap;

use refrain_fold::FastMap;
use refrain_fold::bundle::classes::Kind;
use refrain_fold::bundle::sites::{Frame, Module, Sites, Stack};
use refrain_fold::bundle::{self, Bundle, Class, Classes, SymbolEntry, Tally, ThreadPart};
use refrain_fold::stream;

use crate::classes::ClassLanes;
use crate::digest::Digest;
use crate::error::Error;
use crate::hash::{hash_symbol, lookup};
use crate::layout::Layout;
use crate::lossy::waits::{Held, Joined};
use crate::polls::{Failed, Pending};
use crate::reader::Reader;
use crate::record::{Record, Values};
use crate::structure::{Folding, Structure};
use crate::wire::Bytes;

/// Folds records as they come.
#[derive(Default)]
pub struct Tape {
    symbols: Vec<Symbol>,
    /// By hash of bytes and site: the latest symbol with it. Others follow by `Symbol::same_hash`.
    by_hash: FastMap<u64, u32>,
    structure: Structure,
    digest: Digest,
    pending: Pending,
    /// The stacks of all symbols' sites.
    sites: Sites,
    /// Calls that complete some requests are one with those that go on with the rest (`Lossy::waits`).
    joins: bool,
    held: Held,
}

/// Ticks that a thread spent in MPI.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spent {
    pub all: u64,
    /// In the calls that start MPI.
    pub starting: u64,
    /// By number.
    pub functions: BTreeMap<u16, u64>,
}

struct Symbol {
    bytes: Box<[u8]>,
    site: u64,
    /// What it is in the digest.
    content: u64,
    lanes: u16,
    same_hash: Option<u32>,
    /// Ticks. Where calls are told apart, of those since another class came.
    tally: Tally,
    apart: Option<Box<ToldApart>>,
    /// Where its calls may be failed polls: how those look.
    failed: Option<Box<Failed>>,
    /// Where its calls may be one with others.
    joined: Option<Joined>,
    /// By lane; none until there is a call.
    streams: Vec<stream::Folder>,
    again: Again,
}

/// The times of a symbol's calls by class.
struct ToldApart {
    lanes: ClassLanes,
    /// Of the last call.
    kind: Kind,
    /// How many calls the symbol's tally is of.
    count: u64,
    /// All before these.
    classes: Classes,
}

impl ToldApart {
    /// A call with numbers that may be others than those of the last one, before its time is told.
    fn see(&mut self, numbers: &[(u16, i64)], tally: &mut Tally) {
        let kind = self.lanes.kind(numbers);
        if kind != self.kind {
            self.close(tally);
            self.kind = kind;
        }
        self.count += 1;
    }

    /// The calls that the symbol's tally is of belong to the others from here on.
    fn close(&mut self, tally: &mut Tally) {
        let (count, tally) = (std::mem::take(&mut self.count), std::mem::replace(tally, Tally::NONE));
        if count > 0 {
            self.classes.add(Class { kind: self.kind, count, tally });
        }
    }
}

/// The values of a symbol's last call, and how often they came again since. The streams are told when other values come:
/// a loop body that repeats itself costs the streams nothing.
#[derive(Default)]
struct Again {
    /// As in [`Values`].
    mark: u32,
    /// What the mark stands for: known once it has come twice, and only if no lane has several numbers.
    values: Option<Vec<(u16, i64)>>,
    count: u64,
}

impl Symbol {
    #[inline]
    fn is(&self, record: &Record) -> bool {
        self.site == record.site && *self.bytes == *record.symbol
    }

    /// Of all its calls.
    fn whole(&self) -> Tally {
        let mut whole = self.apart.as_ref().and_then(|apart| apart.classes.whole()).unwrap_or(Tally::NONE);
        whole.add(self.tally);
        whole
    }

    #[inline]
    fn put(&mut self, values: Values<'_>) {
        let again = &mut self.again;
        let same = values.mark != 0 && values.mark == again.mark;
        if same && again.values.is_some() {
            again.count += 1;
        } else {
            self.put_other(values, same);
        }
    }

    fn put_other(&mut self, values: Values<'_>, same: bool) {
        self.tell_again();
        if let Some(apart) = &mut self.apart {
            apart.see(values.numbers, &mut self.tally);
        }
        if self.streams.len() < usize::from(self.lanes) {
            self.streams.resize_with(usize::from(self.lanes), stream::Folder::new);
        }
        for &(lane, value) in values.numbers {
            self.streams[usize::from(lane)].push(value);
        }
        self.again.mark = values.mark;
        let apart = |values: &[(u16, i64)]| values.is_sorted_by(|a, b| a.0 < b.0);
        self.again.values = (same && apart(values.numbers)).then(|| values.numbers.to_vec());
    }

    /// Gives the streams, and the class, what came again.
    fn tell_again(&mut self) {
        let count = std::mem::take(&mut self.again.count);
        if count > 0 {
            for &(lane, value) in self.again.values.iter().flatten() {
                self.streams[usize::from(lane)].push_n(value, count);
            }
            if let Some(apart) = &mut self.apart {
                apart.count += count;
            }
        }
    }
}

impl Tape {
    pub fn new(folding: Folding) -> Tape {
        Tape { structure: Structure::new(folding), ..Tape::default() }
    }

    /// Adds a finished call, and gives its symbol's number. `ticks` is how long it took.
    pub fn push(&mut self, record: &Record, ticks: u64) -> u32 {
        let symbol = self.symbol(record);
        self.push_known(symbol, &record.values, ticks);
        symbol
    }

    /// The values of each call's streams are told: nothing came again since.
    fn tell_streams(&mut self) {
        self.symbols.iter_mut().for_each(Symbol::tell_again);
    }

    /// Adds a call whose symbol has been pushed before.
    #[inline]
    pub fn push_known<'v>(&mut self, symbol: u32, values: impl Into<Values<'v>>, ticks: u64) {
        let values = values.into();
        let time = Tally { total: ticks, min: ticks, max: ticks };
        if self.pending.count > 0 {
            if self.pending.symbol == symbol {
                self.symbols[symbol as usize].tally.add(time);
                self.poll_again(symbol, values);
                return;
            }
            self.flush();
        }
        let polls = self.symbols[symbol as usize].failed.is_some();
        if polls {
            self.poll(symbol, values)
        } else {
            self.event(symbol, values)
        }
        // Only now it is known which calls it is like.
        self.symbols[symbol as usize].tally.add(time);
    }

    #[inline]
    fn event(&mut self, symbol: u32, values: Values<'_>) {
        if self.joins { self.hold(symbol, values.numbers) } else { self.write(symbol, values) }
    }

    /// An event that the next one may belong to is not written yet.
    fn hold(&mut self, symbol: u32, values: &[(u16, i64)]) {
        let joined = self.symbols[symbol as usize].joined;
        if let Some(joined) = joined.filter(|_| self.held.some && self.held.symbol == symbol)
            && joined.goes_on(&self.held.values, values)
        {
            self.held.values = joined.join(&self.held.values, values);
            return;
        }
        self.let_go();
        match joined {
            Some(_) => self.held = Held { symbol, values: values.to_vec(), some: true },
            None => self.write(symbol, values.into()),
        }
    }

    fn let_go(&mut self) {
        let held = std::mem::take(&mut self.held);
        if held.some {
            self.write(held.symbol, (&held.values).into());
        }
    }

    #[inline]
    fn write(&mut self, symbol: u32, values: Values<'_>) {
        self.structure.push(symbol);
        let entry = &mut self.symbols[symbol as usize];
        let mut digest = self.digest;
        digest.symbol(entry.content);
        for &(_, value) in values.numbers {
            digest.value(value);
        }
        self.digest = digest;
        entry.put(values);
    }

    /// A poll, with no other before it.
    fn poll(&mut self, symbol: u32, values: Values<'_>) {
        if self.is_failed_before(symbol, values.numbers, values.numbers) {
            let pending = &mut self.pending;
            (pending.symbol, pending.count, pending.mark) = (symbol, 1, values.mark);
            pending.values.clear();
            pending.values.extend_from_slice(values.numbers);
        } else {
            self.event(symbol, values);
        }
    }

    /// A call with the symbol of the failed polls that are waiting.
    #[inline]
    fn poll_again(&mut self, symbol: u32, values: Values<'_>) {
        if values.mark != 0 && self.pending.mark == values.mark {
            self.pending.count += 1;
            return;
        }
        self.poll_other(symbol, values);
    }

    fn poll_other(&mut self, symbol: u32, values: Values<'_>) {
        if self.pending.values == values.numbers {
            self.pending.mark = values.mark;
            self.pending.count += 1;
            return;
        }
        if self.is_failed_before(symbol, &self.pending.values, values.numbers) {
            // It tells how they looked: all that is left of them is their number.
            let mut pending = std::mem::take(&mut self.pending);
            pending.values.clear();
            pending.values.extend_from_slice(values.numbers);
            if let Some((_, polls)) = pending.values.last_mut() {
                *polls = pending.count as i64;
            }
            self.event(symbol, (&pending.values).into());
            pending.count = 0;
            self.pending = pending;
        } else {
            self.flush();
            self.poll(symbol, values);
        }
    }

    /// Whether `values` are those of a failed poll that may stand before a call with the values `next`.
    fn is_failed_before(&self, symbol: u32, values: &[(u16, i64)], next: &[(u16, i64)]) -> bool {
        // The last value counts polls and is zero in both.
        let all_but_last = &values[..values.len().saturating_sub(1)];
        let failed = self.symbols[symbol as usize].failed.as_ref();
        failed.is_some_and(|failed| failed.before(next).eq(all_but_last.iter().copied()))
    }

    /// Failed polls that are followed by something else are an event of their own.
    fn flush(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        if pending.count > 0 {
            if let Some((_, polls)) = pending.values.last_mut() {
                *polls = (pending.count - 1) as i64;
            }
            self.event(pending.symbol, (&pending.values).into());
        }
        pending.count = 0;
        self.pending = pending;
    }

    /// The symbol's number. In a loop the structure already expects it, and its bytes are compared only.
    fn symbol(&mut self, record: &Record) -> u32 {
        if let Some(expected) = self.structure.predicted()
            && self.symbols[expected as usize].is(record)
        {
            return expected;
        }
        let hash = lookup(&record.symbol, record.site);
        let mut candidate = self.by_hash.get(&hash).copied();
        while let Some(known) = candidate {
            let symbol = &self.symbols[known as usize];
            if symbol.is(record) {
                return known;
            }
            candidate = symbol.same_hash;
        }
        self.new_symbol(&record.symbol, record.site, hash, record.lanes())
    }

    /// From here on, calls of `MPI_Waitsome` or `MPI_Testsome` that follow one another for the same requests are one.
    pub fn join_waits(&mut self, joins: bool) {
        self.joins = joins;
    }

    fn new_symbol(&mut self, bytes: &[u8], site: u64, hash: u64, lanes: u16) -> u32 {
        let layout = Layout::parse(bytes).ok();
        let number = u32::try_from(self.symbols.len()).expect("fewer than 2^32 distinct symbols");
        let same_hash = self.by_hash.insert(hash, number);
        self.symbols.push(Symbol {
            bytes: bytes.into(),
            site,
            content: hash_symbol(bytes, site),
            lanes,
            same_hash,
            tally: Tally::NONE,
            apart: layout.as_ref().and_then(ClassLanes::of).map(|lanes| {
                Box::new(ToldApart { lanes, kind: Kind::default(), count: 0, classes: Classes::default() })
            }),
            failed: layout.as_ref().and_then(Failed::of).map(Box::new),
            joined: layout.as_ref().and_then(Joined::of),
            streams: Vec::new(),
            again: Again::default(),
        });
        let sites = &self.sites;
        self.structure.define(number, || sites.frames(site));
        number
    }

    /// By symbol, what its calls are beside their times: their signature, as digests have it, and their function.
    pub fn about(&self) -> Vec<Option<(u64, u16)>> {
        let about = |symbol: &Symbol| Some((symbol.content, Layout::parse(&symbol.bytes).ok()?.function.id));
        self.symbols.iter().map(about).collect()
    }

    /// What the calls of a symbol are in digests.
    pub fn signature(&self, symbol: u32) -> u64 {
        self.symbols[symbol as usize].content
    }

    /// How many symbols there are.
    pub(crate) fn symbols(&self) -> u32 {
        self.symbols.len() as u32
    }

    /// What its calls took.
    pub fn spent(&self) -> Spent {
        const STARTING: [&str; 3] = ["MPI_Init", "MPI_Init_thread", "MPI_Session_init"];
        let mut spent = Spent::default();
        for symbol in &self.symbols {
            let id = Bytes::new(&symbol.bytes).get().and_then(|id| u16::try_from(id).ok());
            let Some(function) = id.and_then(refrain_model::function_by_id) else { continue };
            let ticks = symbol.whole().total;
            let sums = [&mut spent.all, spent.functions.entry(function.id).or_default()];
            let starting = STARTING.contains(&function.name).then_some(&mut spent.starting);
            sums.into_iter().chain(starting).for_each(|sum| *sum = sum.saturating_add(ticks));
        }
        spent
    }

    /// Everything but polls that still wait, as part of a process whose symbols are `symbols`; new ones are added.
    fn part(&mut self, thread: u32, symbols: &mut Union, nanoseconds: impl Fn(u64) -> u64) -> ThreadPart {
        let mut lanes = Vec::new();
        let mut lengths = Vec::new();
        let mut numbers = Vec::with_capacity(self.symbols.len());
        self.tell_streams();
        for symbol in &mut self.symbols {
            let number = symbols.add(symbol, &nanoseconds);
            numbers.push(number);
            let number = number as usize;
            if lanes.len() <= number {
                lanes.resize_with(number + 1, Vec::new);
                lengths.resize_with(number + 1, Vec::new);
            }
            if symbol.streams.is_empty() {
                continue;
            }
            let streams = &symbol.streams;
            lengths[number] = streams.iter().map(stream::Folder::len).collect();
            lanes[number] = streams.iter().map(stream::Folder::finish).collect();
        }
        let (structure, times) = self.structure.finish();
        let structure = structure.map_symbols(|symbol| numbers[symbol as usize]);
        ThreadPart { thread, structure, times, lanes, lengths, digest: self.digest.get() }
    }

    /// How things stand, with times in ticks, and what to [`Tape::resume`] from. The failed polls that still wait for
    /// what follows them are not in it: see [`crate::Journal::restart`].
    pub fn snapshot(&mut self) -> Result<Bundle, bundle::Error> {
        // All that was pushed is in it: what follows does not belong to it any more.
        self.let_go();
        let mut symbols = Union::default();
        let part = self.part(0, &mut symbols, |ticks| ticks);
        let bundle = Bundle::of_rank((0, 1), symbols.entries, vec![part])?;
        Ok(Bundle { sites: self.sites.clone(), ..bundle })
    }

    /// What a record's site stands for: its frames, outermost first. Told before its first call is pushed. `module` says
    /// what a key stands for; it is asked for frames that are new.
    pub fn note_site<'a>(&mut self, frames: &[Frame], module: impl Fn(u64) -> Option<&'a Module>) -> u64 {
        self.sites.add_with(frames, module)
    }

    pub(crate) fn note_stacks(&mut self, stacks: Vec<Stack>, modules: Vec<Module>) {
        for stack in stacks {
            self.sites.add_stack(stack);
        }
        modules.into_iter().for_each(|module| self.sites.add_module(module));
    }

    pub(crate) fn sites(&self) -> &Sites {
        &self.sites
    }

    /// Nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The failed polls that are not folded yet.
    pub(crate) fn waiting(&self) -> Option<&Pending> {
        Some(&self.pending).filter(|pending| pending.count > 0)
    }

    /// Goes on where a [`Tape::snapshot`] was taken.
    pub fn resume(snapshot: &Bundle, folding: Folding) -> Result<Tape, Error> {
        let mut tape = Tape { sites: snapshot.sites.clone(), ..Tape::new(folding) };
        for symbol in &snapshot.symbols {
            tape.define(&symbol.bytes, symbol.site, symbol.lanes);
        }
        let mut events = Reader::new(snapshot).events(0, 0)?;
        while let Some(event) = events.next_event()? {
            tape.read_event(event.symbol, &events.values);
        }
        tape.without_times();
        (0..).zip(&snapshot.symbols).for_each(|(number, symbol)| tape.add_times(number, symbol));
        let digest = snapshot.cohorts.first().map_or(0, |cohort| cohort.digest);
        if digest != bundle::blend(0, tape.digest.get()) {
            return Err(Error::Digest);
        }
        Ok(tape)
    }

    /// Failed polls that a snapshot left out.
    pub(crate) fn wait_again(&mut self, symbol: u32, values: &[(u16, i64)], count: u64) {
        self.pending = Pending { symbol, values: values.to_vec(), mark: 0, count };
    }

    /// Whether calls of this symbol may be failed polls.
    pub(crate) fn polls(&self, symbol: u32) -> bool {
        self.symbols.get(symbol as usize).is_some_and(|symbol| symbol.failed.is_some())
    }

    /// A symbol that is told before its first call.
    pub(crate) fn define(&mut self, bytes: &[u8], site: u64, lanes: u16) -> u32 {
        self.new_symbol(bytes, site, lookup(bytes, site), lanes)
    }

    /// A call as a reader finds it, with the polls that failed before it counted.
    #[inline(never)]
    pub(crate) fn read_event(&mut self, symbol: u32, values: &[(u16, i64)]) {
        self.event(symbol, values.into());
    }

    /// The calls so far were read, not timed: what they took, by class, is told apart ([`Tape::add_times`]).
    pub(crate) fn without_times(&mut self) {
        self.let_go();
        self.tell_streams();
        for symbol in &mut self.symbols {
            symbol.tally = Tally::NONE;
            if let Some(apart) = &mut symbol.apart {
                (apart.count, apart.classes) = (0, Classes::default());
            }
        }
    }

    /// Time that was spent in calls of a symbol.
    pub(crate) fn add_times(&mut self, symbol: u32, of: &SymbolEntry) {
        let symbol = &mut self.symbols[symbol as usize];
        match &mut symbol.apart {
            Some(apart) if !of.classes.is_empty() => match apart.classes.is_empty() {
                true => apart.classes = of.classes.clone(),
                false => apart.classes.join(&of.classes),
            },
            _ => {
                symbol.tally = symbol.whole();
                symbol.tally.add(of.tally);
                symbol.apart = None;
            }
        }
    }

    /// The bytes, site and lanes of a symbol, of those that were pushed.
    pub(crate) fn symbol_of(&self, number: u32) -> Option<(&[u8], u64, u16)> {
        self.symbols.get(number as usize).map(|symbol| (&*symbol.bytes, symbol.site, symbol.lanes))
    }

    /// What the threads of one of `size` ranks recorded, as the rank's part of the trace. `nanoseconds` turns ticks into
    /// time.
    pub fn bundle<'a>(
        (rank, size): (u32, u32),
        tapes: impl IntoIterator<Item = (u32, &'a mut Tape)>,
        nanoseconds: impl Fn(u64) -> u64,
    ) -> Result<Bundle, bundle::Error> {
        let mut symbols = Union::default();
        let mut sites = Sites::default();
        let parts = tapes.into_iter().map(|(thread, tape)| {
            tape.flush();
            tape.let_go();
            sites.join(&tape.sites);
            tape.part(thread, &mut symbols, &nanoseconds)
        });
        let parts = parts.collect();
        Ok(Bundle { sites, ..Bundle::of_rank((rank, size), symbols.entries, parts)? })
    }
}

/// The symbols of several threads, each once.
#[derive(Default)]
struct Union {
    entries: Vec<SymbolEntry>,
    known: FastMap<(Box<[u8]>, u64), u32>,
}

impl Union {
    fn add(&mut self, symbol: &mut Symbol, nanoseconds: impl Fn(u64) -> u64) -> u32 {
        let classes = match &mut symbol.apart {
            Some(apart) => {
                apart.close(&mut symbol.tally);
                apart.classes.map_times(&nanoseconds)
            }
            None => Classes::default(),
        };
        let Tally { total, min, max } = symbol.tally;
        let alone = || Tally { total: nanoseconds(total), min: nanoseconds(min), max: nanoseconds(max) };
        let tally = classes.whole().unwrap_or_else(alone);
        let key = (symbol.bytes.clone(), symbol.site);
        match self.known.get(&key) {
            Some(&number) => {
                let known = &mut self.entries[number as usize];
                known.tally.add(tally);
                known.classes.join(&classes);
                number
            }
            None => {
                let number = self.entries.len() as u32;
                self.known.insert(key, number);
                let Symbol { bytes, site, lanes, .. } = symbol;
                let (bytes, site, lanes) = (bytes.clone(), *site, *lanes);
                self.entries.push(SymbolEntry { bytes, site, lanes, tally, classes });
                number
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;
    use refrain_model::{constant, function};

    /// A tape that knows `MPI_Send` of integers in the world: a buffer in two lanes, then count, destination and tag.
    fn sends() -> (Tape, u32) {
        let code = |name: &str| 2 * u64::from(constant(name).unwrap().id) + 2;
        let mut bytes = Vec::new();
        wire::put(&mut bytes, function("MPI_Send").unwrap().id.into());
        bytes.extend([wire::SUCCESS, wire::AREA + refrain_model::Area::Heap as u8]);
        wire::put(&mut bytes, code("MPI_INT"));
        bytes.extend([wire::LANE, wire::LANE]);
        wire::put(&mut bytes, code("MPI_COMM_WORLD"));
        let mut tape = Tape::default();
        let symbol = tape.define(&bytes, 0, 5);
        (tape, symbol)
    }

    fn values(count: i64, peer: i64) -> [(u16, i64); 5] {
        [(0, 1), (1, 0), (2, count), (3, peer), (4, 9)]
    }

    fn classes(tape: &mut Tape) -> Vec<String> {
        let bundle = tape.snapshot().unwrap();
        let symbol = &bundle.symbols[0];
        assert_eq!(symbol.classes.whole(), Some(symbol.tally));
        let show = |class: &Class| {
            let (Kind { bits, value }, Tally { total, min, max }) = (class.kind, class.tally);
            format!("{bits} {value}: {}x {total} {min}..{max}", class.count)
        };
        symbol.classes.list().iter().map(show).collect()
    }

    /// Also where marks say that values are the same, and where a snapshot is taken in between.
    #[test]
    fn calls_are_timed_by_size_and_peer() {
        let (mut tape, symbol) = sends();
        let (small, large) = (values(2, 1), values(1 << 20, -1));
        for (numbers, mark, ticks) in [
            (small, 1, 10),
            (small, 1, 11),
            (small, 1, 12),
            (large, 2, 500),
            (small, 1, 10),
            (values(3, 1), 0, 20),
            (values(3, 1), 0, 5),
            (small, 1, 13),
            (large, 2, 400),
            (large, 2, 600),
        ] {
            tape.push_known(symbol, Values { numbers: &numbers, mark }, ticks);
        }
        let expected = ["2 1: 7x 81 5..20", "21 -1: 3x 1500 400..600"];
        assert_eq!(classes(&mut tape), expected);
        assert_eq!(classes(&mut tape), expected, "a second snapshot");
        tape.push_known(symbol, Values { numbers: &large, mark: 2 }, 1);
        assert_eq!(classes(&mut tape), ["2 1: 7x 81 5..20", "21 -1: 4x 1501 1..600"]);
        assert_eq!(tape.spent().all, 1582);
    }

    #[test]
    fn many_peers_share_their_sizes() {
        let (mut tape, symbol) = sends();
        for peer in 0..100 {
            tape.push_known(symbol, &values(1 << (peer % 3), peer)[..], 7);
        }
        assert_eq!(classes(&mut tape), ["1 0: 34x 238 7..7", "2 0: 33x 231 7..7", "3 0: 33x 231 7..7"]);
    }
}
