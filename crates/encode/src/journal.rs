//! Calls since the last snapshot, written as they come, so that they survive the process.
//!
//! A call is written against the last one with the same symbol: a bit for each number that changed, and those numbers.
//! Nothing is folded or packed: the bytes are read back only after a crash, and written over after the next snapshot.

use refrain_fold::FastSet;
use refrain_fold::bundle;
use refrain_fold::bundle::codec::{In, Out as Codec};
use refrain_fold::bundle::sites::{Module, Stack};

use crate::error::Error;
use crate::layout::Layout;
use crate::polls::Pending;
use crate::record::Values;
use crate::tape::Tape;
use crate::wire::Bytes;

/// What follows the symbol's number plus one, in its two lowest bits. So no entry begins with a zero, and memory that was
/// never written is none.
const CHANGES: u64 = 0;
const ALL: u64 = 1;
const NEW_SYMBOL: u64 = 2;
const REPEATED: u64 = 3;

/// So many numbers fit a mask of changes.
const MASKED: usize = 64;
/// A varint's longest form.
const VARINT: usize = 10;

/// Writes entries; remembers what the reader will know.
#[derive(Debug, Default)]
pub struct Journal {
    /// By symbol: the values of its last call since the snapshot, if there was one.
    last: Vec<Last>,
    /// Symbols that a reader knows: those of the snapshot, and those told since.
    known: u32,
    /// Sites and modules that it knows.
    told: FastSet<u64>,
}

/// The values of a symbol's last call.
#[derive(Debug, Default, Clone)]
struct Last {
    /// None if there was no call.
    values: Option<Vec<(u16, i64)>>,
    /// As in [`Values`].
    mark: u32,
}

/// A place for bytes that is known to be large enough.
struct Out<'a> {
    to: &'a mut [u8],
    at: usize,
}

impl Out<'_> {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.to[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    #[inline]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes(&[number as u8 | 0x80]);
            number >>= 7;
        }
        self.bytes(&[number as u8]);
    }
}

impl Journal {
    /// A snapshot of `tape` was taken: entries begin anew. Comes with those for what the snapshot leaves out.
    pub fn restart(&mut self, tape: &Tape) -> Vec<u8> {
        self.last.clear();
        self.known = tape.symbols();
        let sites = tape.sites();
        self.told = sites.stacks.keys().chain(sites.modules.keys()).copied().collect();
        let Some(Pending { symbol, values, count, .. }) = tape.waiting() else { return Vec::new() };
        let mut bytes = vec![0; room(values.len(), 0)];
        let mut out = Out { to: &mut bytes, at: 0 };
        out.number(head(*symbol) | REPEATED);
        out.number(*count);
        all(&mut out, values);
        // Their time is in the snapshot.
        out.number(0);
        let length = out.at;
        bytes.truncate(length);
        bytes
    }

    /// Writes the call that `tape` was just given: how many bytes of `to` it took, or `None` where they do not suffice.
    #[inline]
    pub fn write<'v>(
        &mut self,
        to: &mut [u8],
        tape: &Tape,
        symbol: u32,
        values: impl Into<Values<'v>>,
        ticks: u64,
    ) -> Option<usize> {
        let Values { numbers, mark } = values.into();
        let same = |last: &&Last| mark != 0 && last.mark == mark && numbers.len() <= MASKED;
        if self.last.get(symbol as usize).filter(same).is_none() {
            return self.write_other(to, tape, symbol, Values { numbers, mark }, ticks);
        }
        if to.len() < room(0, 0) {
            return None;
        }
        let mut out = Out { to, at: 0 };
        out.number(head(symbol) | CHANGES);
        // A mask without changes, of as many bytes as one has: what is written behind it comes later.
        out.to[out.at..out.at + MASKED / 8].fill(0);
        out.at += numbers.len().div_ceil(8);
        out.number(ticks);
        Some(out.at)
    }

    /// Values that are not those of the symbol's last call, or may not be.
    fn write_other(
        &mut self,
        to: &mut [u8],
        tape: &Tape,
        symbol: u32,
        Values { numbers: values, mark: mark_of_all }: Values<'_>,
        ticks: u64,
    ) -> Option<usize> {
        let known = self.last.get_mut(symbol as usize);
        let last = known.and_then(|last| {
            // Whatever comes of it, the values are others now.
            last.mark = 0;
            let fits = |last: &Vec<(u16, i64)>| last.len() == values.len() && last.len() <= MASKED;
            last.values.as_mut().filter(|last| fits(last)).map(|values| (values, &mut last.mark))
        });
        let Some((last, last_mark)) = last else {
            return self.write_all(to, tape, symbol, values, ticks);
        };
        if to.len() < room(values.len(), 0) {
            return None;
        }
        let mut out = Out { to, at: 0 };
        out.number(head(symbol) | CHANGES);
        let mask_at = out.at;
        let width = values.len().div_ceil(8);
        out.at += width;
        let mut mask = 0u64;
        for (k, (known, now)) in last.iter_mut().zip(values).enumerate() {
            if known.0 != now.0 {
                // Lists of other lengths that add up to the same: all of it again.
                return self.write_all(to, tape, symbol, values, ticks);
            }
            if known.1 != now.1 {
                mask |= 1 << k;
                out.bytes(&now.1.to_le_bytes());
                known.1 = now.1;
            }
        }
        *last_mark = mark_of_all;
        out.to[mask_at..mask_at + width].copy_from_slice(&mask.to_le_bytes()[..width]);
        out.number(ticks);
        Some(out.at)
    }

    #[cold]
    #[inline(never)]
    fn write_all(
        &mut self,
        to: &mut [u8],
        tape: &Tape,
        symbol: u32,
        values: &[(u16, i64)],
        ticks: u64,
    ) -> Option<usize> {
        let new = if symbol >= self.known { tape.symbol_of(symbol) } else { None };
        let (site, origin) = new.map_or((0, Vec::new()), |(_, site, _)| (site, self.origin(tape, site)));
        if to.len() < room(values.len(), new.map_or(0, |(bytes, ..)| bytes.len()) + origin.len()) {
            return None;
        }
        let mut out = Out { to, at: 0 };
        match new {
            Some((bytes, _, lanes)) => {
                out.number(head(symbol) | NEW_SYMBOL);
                out.number(lanes.into());
                out.number(bytes.len() as u64);
                out.bytes(bytes);
                out.number(origin.len() as u64);
                out.bytes(&origin);
                self.known = symbol + 1;
                self.tell(tape, site);
            }
            None => out.number(head(symbol) | ALL),
        }
        all(&mut out, values);
        out.number(ticks);
        let at = out.at;
        if self.last.len() <= symbol as usize {
            self.last.resize(symbol as usize + 1, Last::default());
        }
        let last = self.last[symbol as usize].values.get_or_insert_default();
        last.clear();
        last.extend_from_slice(values);
        Some(at)
    }

    /// A new symbol's site, with its stack and modules as far as the reader does not know them. Nothing for none.
    fn origin(&self, tape: &Tape, site: u64) -> Vec<u8> {
        let mut out = Codec::default();
        if site != 0 {
            let sites = tape.sites();
            out.number(site);
            let stacks: Vec<Stack> = self.untold(tape, site).map(|(_, stack)| stack).collect();
            out.list(&stacks, Codec::stack);
            let mut keys: Vec<u64> = stacks.iter().map(|stack| stack.frame.module).collect();
            keys.retain(|key| !self.told.contains(key));
            keys.sort_unstable();
            keys.dedup();
            let modules: Vec<&Module> = keys.iter().filter_map(|key| sites.modules.get(key)).collect();
            out.list(&modules, |out, module| out.module(module));
        }
        out.bytes
    }

    /// Of a stack what the reader does not know, innermost first.
    fn untold<'a>(&self, tape: &'a Tape, site: u64) -> impl Iterator<Item = (u64, Stack)> + use<'a, '_> {
        tape.sites().outwards(site).take_while(|(site, _)| !self.told.contains(site))
    }

    fn tell(&mut self, tape: &Tape, site: u64) {
        let new: Vec<(u64, Stack)> = self.untold(tape, site).collect();
        self.told.extend(new.iter().flat_map(|(site, stack)| [*site, stack.frame.module]));
    }
}

/// Reads [`Journal::origin`] and gives the tape what is new in it.
fn read_origin(bytes: &[u8], tape: &mut Tape) -> Result<u64, bundle::Error> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let mut from = In::new(bytes);
    let site = from.number()?;
    let (stacks, modules) = (from.list(In::stack)?, from.list(In::module)?);
    from.end()?;
    tape.note_stacks(stacks, modules);
    let known = tape.sites().stacks.contains_key(&site);
    if known { Ok(site) } else { Err(bundle::Error::Site { symbol: None }) }
}

#[inline]
fn head(symbol: u32) -> u64 {
    (u64::from(symbol) + 1) << 2
}

/// The most bytes that an entry takes.
fn room(values: usize, symbol: usize) -> usize {
    5 * VARINT + symbol + values * (size_of::<u16>() + size_of::<i64>()) + VARINT + MASKED / 8
}

fn all(out: &mut Out<'_>, values: &[(u16, i64)]) {
    out.number(values.len() as u64);
    for (lane, value) in values {
        out.bytes(&lane.to_le_bytes());
        out.bytes(&value.to_le_bytes());
    }
}

/// Gives the calls of a journal's bytes to the tape whose snapshot came before them. Of one that is damaged it has got
/// those before the damage.
pub fn replay(bytes: &[u8], tape: &mut Tape) -> Result<(), Error> {
    let mut read = Reading { bytes: Bytes::new(bytes), last: Vec::new() };
    while read.bytes.at < bytes.len() {
        let at = read.bytes.at;
        read.entry(tape).ok_or(Error::Journal { at })?;
    }
    Ok(())
}

struct Reading<'a> {
    bytes: Bytes<'a>,
    last: Vec<Vec<(u16, i64)>>,
}

impl Reading<'_> {
    fn entry(&mut self, tape: &mut Tape) -> Option<()> {
        let head = self.bytes.get()?;
        let symbol = u32::try_from((head >> 2).checked_sub(1)?).ok()?;
        let mut repeat = 1;
        match head & 3 {
            CHANGES => self.changes(symbol)?,
            ALL => self.all(symbol, tape)?,
            NEW_SYMBOL => {
                let lanes = u16::try_from(self.bytes.get()?).ok()?;
                let text = self.bytes.text()?;
                // Memory is taken by lanes.
                (Layout::parse(text).ok()?.lanes == lanes).then_some(())?;
                let site = read_origin(self.bytes.text()?, tape).ok()?;
                (tape.define(text, site, lanes) == symbol).then_some(())?;
                self.all(symbol, tape)?;
            }
            _ => {
                repeat = self.bytes.get()?;
                (i64::try_from(repeat).is_ok_and(|n| n < i64::MAX) && tape.polls(symbol)).then_some(())?;
                self.all(symbol, tape)?;
            }
        }
        let ticks = self.bytes.get()?;
        let values = self.last.get(symbol as usize)?;
        if head & 3 == REPEATED {
            tape.wait_again(symbol, values, repeat);
        } else {
            tape.push_known(symbol, values, ticks);
        }
        Some(())
    }

    fn changes(&mut self, symbol: u32) -> Option<()> {
        let last = self.last.get_mut(symbol as usize)?;
        let mut mask = 0u64;
        for k in 0..last.len().div_ceil(8) {
            mask |= u64::from(self.bytes.byte()?).checked_shl(8 * k as u32)?;
        }
        for (k, (_, value)) in last.iter_mut().enumerate() {
            if k < MASKED && mask >> k & 1 != 0 {
                *value = i64::from_le_bytes(self.bytes.array()?);
            }
        }
        Some(())
    }

    fn all(&mut self, symbol: u32, tape: &Tape) -> Option<()> {
        let (_, _, lanes) = tape.symbol_of(symbol)?;
        if self.last.len() <= symbol as usize {
            self.last.resize_with(symbol as usize + 1, Vec::new);
        }
        let count = self.bytes.get()?;
        let last = &mut self.last[symbol as usize];
        last.clear();
        for _ in 0..count {
            let lane = u16::from_le_bytes(self.bytes.array()?);
            let value = i64::from_le_bytes(self.bytes.array()?);
            (lane < lanes).then_some(())?;
            last.push((lane, value));
        }
        Some(())
    }
}
