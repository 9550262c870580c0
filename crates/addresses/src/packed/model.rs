//! How a reference is told from those before it. Most are guessed whole, and only their number is told; the others say what
//! is different. The same code packs and unpacks: see [`Columns`].

use super::columns::{ADDRESS, Columns, FLAG, KIND, MISS, PC, SIZE, SURE, TIME, UNSURE, WORD};
use super::tables::*;
use crate::kind::is_fetch;
use crate::{Fields, Reference};

const SLOT_BITS: u32 = 14;
const NEXT_BITS: u32 = 14;
const AFTER_BITS: u32 = 16;
const WORD_BITS: u32 = 15;

/// A guess that is trusted so far is not compared with others.
const TRUSTED: u8 = 150;

/// After so many references that happened before, the next act is what came then.
const SAME: u32 = 2;

/// What a byte of the column of misses says, besides which guess is right: of kind, pc and size, whether they are those
/// expected, the second choice, or told.
const EXPECTED: u8 = 0;
const SECOND: u8 = 1 << 4;
const TOLD: u8 = 2 << 4;

pub(crate) struct Model {
    fields: Fields,
    slots: Box<[Slot]>,
    /// By the last few acts, and by the last.
    long: Box<[Next]>,
    short: Box<[Next]>,
    /// As [`Stretches`] names addresses.
    after: Box<[u32]>,
    past: Past,
    stretches: Stretches,
    regions: Regions,
    words: Box<[u32]>,
    /// By slot, how much time passes.
    times: Box<[u64]>,
    /// Of the last reference; not a [`Reference`], as it would have to be put together first.
    address: u64,
    pc: u64,
    time: u64,
    flag: bool,
    /// The address before that.
    earlier: u64,
    /// What the last references were, each as a hash.
    acts: [u64; 4],
    /// Hashes of the last of them and of all.
    near: u64,
    far: u64,
    /// The last fetch and how many references since, where fetches are in the trace.
    fetch: Option<u64>,
    ordinal: u64,
}

impl Model {
    pub(crate) fn new(fields: Fields) -> Model {
        let size = |there: bool, bits: u32| if there { 1 << bits } else { 1 };
        Model {
            fields,
            slots: vec![NO_SLOT; 1 << SLOT_BITS].into(),
            long: vec![Next::default(); 1 << NEXT_BITS].into(),
            short: vec![Next::default(); 1 << NEXT_BITS].into(),
            after: vec![0; 1 << AFTER_BITS].into(),
            past: Past::new(),
            stretches: Stretches::default(),
            regions: Regions::new(),
            words: vec![0; size(fields.words, WORD_BITS)].into(),
            times: vec![0; size(fields.times, SLOT_BITS)].into(),
            address: 0,
            pc: 0,
            time: 0,
            flag: false,
            earlier: 0,
            acts: [0; 4],
            near: 0,
            far: 0,
            fetch: None,
            ordinal: 0,
        }
    }

    /// As it was made: nothing is known.
    pub(crate) fn forget(&mut self) {
        self.past.clear();
        self.slots.fill(NO_SLOT);
        self.long.fill(Next::default());
        self.short.fill(Next::default());
        self.after.fill(0);
        self.words.fill(0);
        self.times.fill(0);
        self.regions.clear();
        self.stretches = Stretches::default();
        (self.address, self.pc, self.time, self.flag, self.earlier) = (0, 0, 0, false, 0);
        (self.acts, self.near, self.far, self.fetch, self.ordinal) = ([0; 4], 0, 0, None, 0);
    }

    /// Packs the reference, or puts what was packed in its place.
    #[inline(always)]
    pub(crate) fn code<C: Columns>(&mut self, columns: &mut C, it: &mut Reference) {
        let (long, short) = (spread::<NEXT_BITS>(self.far), spread::<NEXT_BITS>(self.near));
        let tag = (self.far >> 40) as u8;
        let (act, by_short) = self.expect(long, short, tag);
        let place = self.place(act);
        let at = spread::<SLOT_BITS>(place);
        let slot = &self.slots[at];
        let anchor = slot.last;
        let best = usize::from(slot.best & 7);
        let said = Act { pc: it.pc, size: it.size, kind: it.kind };
        let (at, anchor) = if slot.trust[best] >= TRUSTED {
            // Nothing else is looked at for a guess that is as good as certain, nor learned if it is right.
            let guess = self.guess(best, slot, self.entry(place));
            if columns.right(SURE, said == act && it.address == guess) {
                it.address = guess;
                (it.pc, it.size, it.kind) = (act.pc, act.size, act.kind);
                let slot = &mut self.slots[at];
                slot.trust[best] += (255 - slot.trust[best]) >> 2;
                slot.advance(guess, self.address);
                self.past.push(self.stretches.name(guess), sort(it));
                (at, anchor)
            } else {
                self.miss(columns, it, act, short, by_short)
            }
        } else {
            let entry = self.entry(place);
            let guesses = self.guesses(slot, entry);
            if columns.right(UNSURE, said == act && it.address == guesses[best]) {
                it.address = guesses[best];
                (it.pc, it.size, it.kind) = (act.pc, act.size, act.kind);
                self.learn(at, entry, &guesses, it);
                (at, anchor)
            } else {
                self.miss(columns, it, act, short, by_short)
            }
        };
        self.rest(columns, at, it);

        let act = Act { pc: it.pc, size: it.size, kind: it.kind };
        self.long[long].learn(act, tag);
        self.short[short].learn(act, 0);
        self.remember(it, anchor);
    }

    /// A reference that was not guessed whole: its slot, and where that referred to before.
    #[inline(never)]
    fn miss<C: Columns>(
        &mut self,
        columns: &mut C,
        it: &mut Reference,
        expected: Act,
        short: usize,
        by_short: bool,
    ) -> (usize, u64) {
        let said = Act { pc: it.pc, size: it.size, kind: it.kind };
        let second = Some(self.short[short].act(self.pc)).filter(|second| !by_short && *second != expected);
        // One byte says what act it is and which of the act's guesses is right, so that a reader must have it before it
        // knows what a writer says in it.
        let read = if C::WRITES { 0 } else { columns.byte(MISS, 0) };
        let act = match (read & !15, second) {
            _ if C::WRITES => said,
            (EXPECTED, _) => expected,
            (SECOND, Some(second)) => second,
            _ => self.corrected(columns, said),
        };
        let place = self.place(act);
        let at = spread::<SLOT_BITS>(place);
        let slot = &self.slots[at];
        let anchor = slot.last;
        let entry = self.entry(place);
        let guesses = self.guesses(slot, entry);
        let mut which = usize::from(read & 15);
        if C::WRITES {
            which = slot.which(&guesses, it.address);
            let how = match said {
                _ if said == expected => EXPECTED,
                _ if Some(said) == second => SECOND,
                _ => TOLD,
            };
            columns.byte(MISS, how | which as u8);
            if how == TOLD {
                self.corrected(columns, said);
            }
        }
        it.address = match guesses.get(which) {
            Some(guess) => *guess,
            None => {
                let base = if anchor == 0 { self.address } else { anchor };
                literal(columns, ADDRESS, base, it.address)
            }
        };
        (it.pc, it.size, it.kind) = (act.pc, act.size, act.kind);
        self.learn(at, entry, &guesses, it);
        (at, anchor)
    }

    /// The act that comes next, and whether the short history said so.
    #[inline(always)]
    fn expect(&self, long: usize, short: usize, tag: u8) -> (Act, bool) {
        if !self.fields.pcs && self.past.same >= SAME {
            let sort = self.past.sort();
            return (Act { pc: 0, size: (sort >> 8) as u16, kind: sort as u8 & 7 }, false);
        }
        let next = &self.long[long];
        if next.tag == tag {
            return (next.act(self.pc), false);
        }
        (self.short[short].act(self.pc), true)
    }

    /// Where in the program an act happens: its instruction, the fetch before it and how many references ago that was, or
    /// as a makeshift what was referred to before it.
    #[inline(always)]
    fn place(&self, act: Act) -> u64 {
        let base = if self.fields.pcs {
            act.pc
        } else if self.fetch.is_some() {
            self.near
        } else {
            self.far
        };
        base.rotate_left(3) ^ u64::from(act.kind)
    }

    /// What followed the reference before, at this place.
    #[inline(always)]
    fn entry(&self, place: u64) -> usize {
        spread::<AFTER_BITS>(mix(place, self.address))
    }

    #[inline(always)]
    fn guesses(&self, slot: &Slot, entry: usize) -> [u64; GUESSES] {
        // Not `map`, whose closure may not be inlined, and then chooses among them for each.
        let guess = |which| self.guess(which, slot, entry);
        [guess(STRIDE), guess(LAST), guess(NEAR), guess(AFTER), guess(AGAIN)]
    }

    #[inline(always)]
    fn guess(&self, which: usize, slot: &Slot, entry: usize) -> u64 {
        match which {
            STRIDE => slot.last.wrapping_add_signed(i64::from(slot.stride)),
            LAST => slot.last,
            NEAR => {
                let base = if slot.last == 0 { self.address } else { slot.last };
                widen(base, (self.address as u32).wrapping_add(slot.near))
            }
            AFTER => self.stretches.address(self.after[entry]),
            _ => self.stretches.address(self.past.address),
        }
    }

    /// An act that is neither the one expected nor the second choice.
    fn corrected<C: Columns>(&self, columns: &mut C, said: Act) -> Act {
        let mut act = Act { kind: columns.byte(KIND, said.kind) & 7, ..Act::default() };
        if self.fields.pcs {
            act.pc = literal(columns, PC, self.pc, said.pc);
        }
        if self.fields.sizes {
            let [low, high] = said.size.to_le_bytes();
            act.size = u16::from_le_bytes([columns.byte(SIZE, low), columns.byte(SIZE, high)]);
        }
        act
    }

    /// Times, words and flags, which follow from the rest or are told.
    #[inline(always)]
    fn rest<C: Columns>(&mut self, columns: &mut C, at: usize, it: &mut Reference) {
        if self.fields.words {
            let key = if is_fetch(it.kind) { it.address } else { 0 };
            let entry = spread::<WORD_BITS>(mix(key, u64::from(it.kind)));
            let expected = self.words[entry];
            it.word = if columns.right(WORD, it.word == expected) {
                expected
            } else {
                u32::from_le_bytes(it.word.to_le_bytes().map(|byte| columns.byte(WORD, byte)))
            };
            self.words[entry] = it.word;
        }
        if self.fields.times {
            let expected = self.times[at];
            let passed = it.time.wrapping_sub(self.time);
            let passed = if columns.right(TIME, passed == expected) {
                expected
            } else {
                told_number(columns, TIME, passed)
            };
            self.times[at] = passed;
            it.time = self.time.wrapping_add(passed);
        }
        if self.fields.flags {
            it.flag = self.flag == columns.right(FLAG, it.flag == self.flag);
        }
    }

    /// What all the guesses would have been, and what they should be next time.
    #[inline(always)]
    fn learn(&mut self, at: usize, entry: usize, guesses: &[u64; GUESSES], it: &Reference) {
        let address = it.address;
        let slot = &mut self.slots[at];
        slot.judge(guesses, address);
        let name = self.stretches.name(address);
        self.after[entry] = name;
        slot.advance(address, self.address);
        self.past.push(name, sort(it));
        self.past.mark(mix(address, mix(self.address, self.earlier)));
    }

    #[inline(always)]
    fn remember(&mut self, it: &Reference, anchor: u64) {
        let act = if self.fields.pcs {
            mix(it.pc, u64::from(it.kind))
        } else {
            if is_fetch(it.kind) {
                (self.fetch, self.ordinal) = (Some(it.address), 0);
            } else {
                self.ordinal += 1;
            }
            self.regions.name(it.address, anchor) << 3 | u64::from(it.kind)
        };
        let [b, c, d, _] = self.acts;
        self.acts = [act, b, c, d];
        (self.near, self.far) = if self.fields.pcs {
            (act, mix(act, mix(b, mix(c, d))))
        } else if let Some(fetch) = self.fetch {
            let place = fetch.wrapping_add(self.ordinal << 48);
            (place, mix(place, act))
        } else {
            let near = mix(act, b);
            (near, mix(near, mix(c, d)))
        };
        self.earlier = self.address;
        self.address = it.address;
        if self.fields.pcs {
            self.pc = it.pc;
        }
        if self.fields.times {
            self.time = it.time;
        }
        self.flag = it.flag;
    }
}

/// Of a reference as [`Past`] keeps it.
fn sort(it: &Reference) -> u32 {
    u32::from(it.size) << 8 | u32::from(it.kind)
}

/// A number: how many of its lower bytes differ from another's, and these.
fn literal<C: Columns>(columns: &mut C, column: usize, base: u64, value: u64) -> u64 {
    let differ = (71 - (base ^ value).leading_zeros() as u8) / 8;
    let count = usize::from(columns.byte(column, differ).min(8));
    let (mut found, bytes) = (base.to_le_bytes(), value.to_le_bytes());
    for at in 0..count {
        found[at] = columns.byte(column + 1 + at.min(2), bytes[at]);
    }
    u64::from_le_bytes(found)
}

/// Likewise, all in one column and of nothing else.
fn told_number<C: Columns>(columns: &mut C, column: usize, value: u64) -> u64 {
    let count = usize::from(columns.byte(column, (71 - value.leading_zeros() as u8) / 8).min(8));
    let (mut found, bytes) = ([0; 8], value.to_le_bytes());
    for at in 0..count {
        found[at] = columns.byte(column, bytes[at]);
    }
    u64::from_le_bytes(found)
}

#[cfg(test)]
mod tests {
    use super::super::columns::{Filling, Taking};
    use super::*;

    /// A loop over arrays, a list, and now and then anything.
    fn trace(count: u64, fields: Fields) -> Vec<Reference> {
        // Of its own: what was written of these numbers is held by the test.
        let mut state = 7u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        let each = |i: u64| {
            let (any, rare) = (draw(), draw() % 50 == 0);
            let address = match i % 4 {
                _ if rare => any << 13,
                0 => 0x1000_0000 + 8 * i,
                1 => 0x7fff_0000_1000 + any % 64 * 8,
                2 => 0x5555_0000 + (i * i % 701) * 48,
                _ => 0x2000_0000 + i * 8 % 4096,
            };
            Reference {
                kind: if rare { (any % 8) as u8 } else { u8::from(i % 4 == 3) },
                address,
                time: if fields.times { 3 * i + any % 2 } else { 0 },
                word: if fields.words { (any % 3) as u32 } else { 0 },
                size: if fields.sizes { 1 << (i % 4) } else { 0 },
                flag: fields.flags && i.is_multiple_of(1000),
                pc: if fields.pcs { 0x40_1000 + i % 4 * 5 + u64::from(rare) } else { 0 },
            }
        };
        (0..count).map(each).collect()
    }

    /// What version 3 says of a trace in columns. If this fails, files written before cannot be read, and the version must be another.
    #[test]
    fn the_columns_of_version_3() {
        let all = Fields { times: true, words: true, sizes: true, flags: true, pcs: true };
        let hashes = [Fields::NONE, Fields { pcs: true, ..Fields::NONE }, all].map(|fields| {
            let trace = trace(30_000, fields);
            let (mut model, mut filling) = (Model::new(fields), Filling::default());
            trace.iter().for_each(|it| model.code(&mut filling, &mut it.clone()));
            let hash = filling.columns.iter().flatten().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
            });
            let mut taking = Taking::default();
            filling.columns.swap_with_slice(&mut taking.columns);
            model.forget();
            for it in &trace {
                let mut read = Reference::default();
                model.code(&mut taking, &mut read);
                assert_eq!(read, *it, "{fields:?}");
            }
            hash
        });
        assert_eq!(
            hashes,
            [18_014_210_723_844_896_128, 12_889_252_493_621_661_002, 11_167_553_944_815_235_298]
        );
    }
}
