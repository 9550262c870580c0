//! How a reference is told from those before it. Most are guessed whole, and only their number is told; the others say what
//! is different, or that several come again as they came before. The same code packs and unpacks: see [`Columns`].

use super::columns::{
    Columns, DISTANCE, FLAG, Filling, KIND, LENGTH, MISS, SIZE, SURE, TIME, Taking, UNSURE, WHOLE_ADDRESS,
    WHOLE_PC, WORD,
};
use super::finder::{Again, Finder};
use super::tables::*;
use crate::kind::is_fetch;
use crate::{Batch, Fields, Reference};

const SLOT_BITS: u32 = 16;
const NEXT_BITS: u32 = 15;
const AFTER_BITS: u32 = 16;
const WORD_BITS: u32 = 15;

/// A guess that is trusted so far is not compared with others.
const TRUSTED: u8 = 150;

/// Distances that are told by their number, the last first.
const RECENT: usize = 3;

/// So many of the references that came again are learned from, the last of them: what comes next depends on these.
const LEARNED: usize = 4;

/// What a byte of the column of misses says, besides which guess is right: of kind, pc and size, whether they are those
/// expected, the second choice, or told. Or that references come again, besides from which of the last distances.
const EXPECTED: u8 = 0;
const SECOND: u8 = 1 << 4;
const TOLD: u8 = 2 << 4;
const SEVERAL: u8 = 3 << 4;

pub(crate) struct Model {
    fields: Fields,
    slots: Box<[Slot]>,
    /// By the last few acts, and by the last.
    long: Box<[Next]>,
    short: Box<[Next]>,
    /// As [`Stretches`] names addresses.
    after: Box<[u32]>,
    past: Past,
    names: Stretches,
    regions: Regions,
    words: Box<[u32]>,
    /// By slot, how much time passes.
    times: Box<[u64]>,
    /// Of the last reference; not a [`Reference`], as it would have to be put together first.
    address: u64,
    pc: u64,
    time: u64,
    flag: bool,
    /// What the last references were, each as a hash.
    acts: [u64; 4],
    /// Hashes of the last of them and of all.
    near: u64,
    far: u64,
    /// The last fetch and how many references since, where fetches are in the trace.
    fetch: Option<u64>,
    ordinal: u64,
    /// From how far back references came again.
    recent: [u32; RECENT],
    /// Of those that come again now: how many there are, and of these not read yet.
    several: u32,
    left: u32,
}

/// Where a reference is learned: what followed the last few acts and the last one, and of the first its tag.
#[derive(Clone, Copy)]
struct Entries {
    long: usize,
    short: usize,
    tag: u8,
}

/// A reference that is not as expected.
struct Missed {
    expected: Act,
    /// By the short history.
    by_short: bool,
}

impl Model {
    /// What came before up to 2^`past` references ago may come again.
    pub(crate) fn new(fields: Fields, past: u32) -> Model {
        let size = |there: bool, bits: u32| if there { 1 << bits } else { 1 };
        Model {
            fields,
            slots: vec![NO_SLOT; 1 << SLOT_BITS].into(),
            long: vec![Next::default(); 1 << NEXT_BITS].into(),
            short: vec![Next::default(); 1 << NEXT_BITS].into(),
            after: vec![0; 1 << AFTER_BITS].into(),
            past: Past::new(fields, if has_several(fields) { past } else { 0 }),
            names: Stretches::default(),
            regions: Regions::new(),
            words: vec![0; size(fields.words, WORD_BITS)].into(),
            times: vec![0; size(fields.times, SLOT_BITS)].into(),
            address: 0,
            pc: 0,
            time: 0,
            flag: false,
            acts: [0; 4],
            near: 0,
            far: 0,
            fetch: None,
            ordinal: 0,
            recent: [0; RECENT],
            several: 0,
            left: 0,
        }
    }

    /// As it was made: nothing is known.
    pub(crate) fn forget(&mut self) {
        self.past.clear();
        self.names = Stretches::default();
        self.slots.fill(NO_SLOT);
        self.long.fill(Next::default());
        self.short.fill(Next::default());
        self.after.fill(0);
        self.words.fill(0);
        self.times.fill(0);
        self.regions.clear();
        (self.address, self.pc, self.time, self.flag) = (0, 0, 0, false);
        (self.acts, self.near, self.far, self.fetch, self.ordinal) = ([0; 4], 0, 0, None, 0);
        (self.recent, self.several, self.left) = ([0; RECENT], 0, 0);
    }

    /// Packs a piece of a trace.
    pub(crate) fn pack(&mut self, columns: &mut Filling, finder: &mut Finder, piece: &[Reference]) {
        let several = has_several(self.fields);
        if several {
            finder.begin(piece);
        }
        let (mut at, mut since) = (0, 0);
        while at < piece.len() {
            let mut it = piece[at];
            let entries = self.entries();
            let (slot, anchor) = match self.guessed(columns, &mut it, entries) {
                Ok(known) => known,
                Err(missed) => {
                    if several {
                        finder.pass(at);
                        if let Some(again) = finder.find(self, piece, at, &self.recent) {
                            at += again.length;
                            since = at;
                            self.tell(columns, &again);
                            continue;
                        }
                    }
                    let before = columns.cost();
                    let known = self.miss(columns, &mut it, entries, missed, 0);
                    if several {
                        finder.told(at + 1 - since, columns.cost() - before);
                    }
                    since = at + 1;
                    known
                }
            };
            self.finish(columns, &mut it, entries, slot, anchor);
            at += 1;
        }
        if several {
            finder.pass(at);
        }
    }

    /// So many references, behind the batch. Less where the columns lack what no writer leaves out.
    pub(crate) fn unpack(&mut self, columns: &mut Taking, count: usize, batch: &mut Batch) {
        // Not read again for each: it lies beside what is written for each, and a load of both would wait for that.
        let (fields, end) = (self.fields, batch.len() + count);
        while batch.len() < end && !columns.lacking {
            if self.left > 0 {
                let some = self.left.min((end - batch.len()) as u32);
                self.past.repeat(self.recent[0] as usize, some as usize, Some(&mut *batch));
                self.left -= some;
                if self.left == 0 {
                    self.catch_up(self.several as usize);
                }
                continue;
            }
            let mut it = Reference::default();
            let entries = self.entries();
            let (slot, anchor) = match self.guessed(columns, &mut it, entries) {
                Ok(known) => known,
                Err(missed) => {
                    let byte = columns.byte(MISS, 0);
                    let which = usize::from(byte & 15);
                    if byte & !15 == SEVERAL {
                        columns.lacking |= !has_several(fields) || which > RECENT;
                        self.hear(columns, which);
                        continue;
                    }
                    columns.lacking |= byte > TOLD | GUESSES as u8 || which > GUESSES;
                    self.miss(columns, &mut it, entries, missed, byte)
                }
            };
            self.finish(columns, &mut it, entries, slot, anchor);
            batch.push(fields, it);
        }
    }

    /// Nothing of what comes again is left, as after the last reference of a block.
    pub(crate) fn settled(&self) -> bool {
        self.left == 0
    }

    /// Says that references come again.
    fn tell(&mut self, columns: &mut Filling, again: &Again) {
        let distance = again.distance as u32;
        let which = self.recent.iter().position(|recent| *recent == distance).unwrap_or(RECENT);
        columns.byte(MISS, SEVERAL | which as u8);
        columns.number(LENGTH, again.length as u32);
        if which == RECENT {
            for (at, byte) in distance.to_le_bytes()[..3].iter().enumerate() {
                columns.byte(DISTANCE + at, *byte);
            }
        }
        self.prefer(which, distance);
        self.past.repeat(again.distance, again.length, None);
        self.catch_up(again.length);
    }

    /// And what was said, but for the byte of the column of misses.
    fn hear(&mut self, columns: &mut Taking, which: usize) {
        let length = columns.number(LENGTH);
        let distance = match self.recent.get(which) {
            Some(distance) => *distance,
            None => (0..3).rev().fold(0, |sum, at| sum << 8 | u32::from(columns.byte(DISTANCE + at, 0))),
        };
        columns.lacking |= length == 0 || !self.past.reaches(distance as usize);
        self.prefer(which, distance);
        if !columns.lacking {
            (self.several, self.left) = (length, length);
        }
    }

    /// A distance becomes the last one.
    fn prefer(&mut self, which: usize, distance: u32) {
        self.recent.copy_within(..which.min(RECENT - 1), 1);
        self.recent[0] = distance;
    }

    /// Learns from the last of so many references that came again, in [`Past`] already.
    fn catch_up(&mut self, count: usize) {
        let learned = count.min(LEARNED);
        if !self.fields.pcs && count > learned {
            let fetch = (learned + 1..=count).find(|back| is_fetch(self.past.back(*back).kind));
            match fetch {
                Some(back) => {
                    self.fetch = Some(self.past.back(back).address);
                    self.ordinal = (back - learned - 1) as u64;
                }
                None => self.ordinal += (count - learned) as u64,
            }
        }
        for back in (1..=learned).rev() {
            self.remember(&self.past.back(back), 0);
        }
    }

    /// How many references of a piece, from one on, are as those so far back.
    pub(crate) fn alike(&self, piece: &[Reference], at: usize, distance: usize) -> usize {
        if !self.past.reaches(distance) {
            return 0;
        }
        let same = |length: usize| {
            let it = piece[at + length];
            // What comes again may do so at once.
            it == if length < distance {
                self.past.back(distance - length)
            } else {
                piece[at + length - distance]
            }
        };
        (0..piece.len() - at).find(|length| !same(*length)).unwrap_or(piece.len() - at)
    }

    #[inline(always)]
    fn entries(&self) -> Entries {
        Entries {
            long: spread::<NEXT_BITS>(self.far),
            short: spread::<NEXT_BITS>(self.near),
            tag: (self.far >> 40) as u8,
        }
    }

    /// The reference, if it is as expected: its slot, and where that referred to before.
    #[inline(always)]
    fn guessed<C: Columns>(
        &mut self,
        columns: &mut C,
        it: &mut Reference,
        entries: Entries,
    ) -> Result<(usize, u64), Missed> {
        let (act, by_short) = self.expect(entries);
        let missed = Missed { expected: act, by_short };
        let place = self.place(act);
        let at = spread::<SLOT_BITS>(place);
        let slot = &self.slots[at];
        let anchor = slot.last;
        let best = usize::from(slot.best) % GUESSES;
        let said = Act { pc: it.pc, size: it.size, kind: it.kind };
        if slot.trust[best] >= TRUSTED {
            // Nothing else is looked at for a guess that is as good as certain, nor learned if it is right.
            let guess = self.guess(best, slot, self.entry(place));
            if !columns.right(SURE, said == act && it.address == guess) {
                return Err(missed);
            }
            it.address = guess;
            (it.pc, it.size, it.kind) = (act.pc, act.size, act.kind);
            let slot = &mut self.slots[at];
            slot.trust[best] += (255 - slot.trust[best]) >> 2;
            slot.advance(guess, self.address);
            self.push(it);
        } else {
            let entry = self.entry(place);
            let guesses = self.guesses(slot, entry);
            if !columns.right(UNSURE, said == act && it.address == guesses[best]) {
                return Err(missed);
            }
            it.address = guesses[best];
            (it.pc, it.size, it.kind) = (act.pc, act.size, act.kind);
            self.learn(at, entry, &guesses, it);
        }
        Ok((at, anchor))
    }

    #[inline(always)]
    fn push(&mut self, it: &Reference) {
        if has_several(self.fields) {
            self.past.push(it);
        }
    }

    /// What follows from a reference, once it is known but for times, words and flags.
    #[inline(always)]
    fn finish<C: Columns>(
        &mut self,
        columns: &mut C,
        it: &mut Reference,
        Entries { long, short, tag }: Entries,
        at: usize,
        anchor: u64,
    ) {
        self.rest(columns, at, it);
        let act = Act { pc: it.pc, size: it.size, kind: it.kind };
        self.long[long].learn(act, tag);
        self.short[short].learn(act, 0);
        self.remember(it, anchor);
    }

    /// A reference that was not guessed whole: its slot, and where that referred to before. A reader has read the byte that says what
    /// it is.
    #[inline(never)]
    fn miss<C: Columns>(
        &mut self,
        columns: &mut C,
        it: &mut Reference,
        entries: Entries,
        Missed { expected, by_short }: Missed,
        read: u8,
    ) -> (usize, u64) {
        let said = Act { pc: it.pc, size: it.size, kind: it.kind };
        let second =
            Some(self.short[entries.short].act(self.pc)).filter(|second| !by_short && *second != expected);
        // The byte says what act it is and which of the act's guesses is right, so that a reader must have it before it knows what
        // a writer says in it.
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
            None => columns.whole(WHOLE_ADDRESS, it.address),
        };
        (it.pc, it.size, it.kind) = (act.pc, act.size, act.kind);
        self.learn(at, entry, &guesses, it);
        (at, anchor)
    }

    /// The act that comes next, and whether the short history said so.
    #[inline(always)]
    fn expect(&self, Entries { long, short, tag }: Entries) -> (Act, bool) {
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
        [guess(STRIDE), guess(LAST), guess(NEAR), guess(AFTER)]
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
            _ => self.names.address(self.after[entry]),
        }
    }

    /// An act that is neither the one expected nor the second choice.
    fn corrected<C: Columns>(&self, columns: &mut C, said: Act) -> Act {
        let mut act = Act { kind: columns.byte(KIND, said.kind) & 7, ..Act::default() };
        if self.fields.pcs {
            act.pc = columns.whole(WHOLE_PC, said.pc);
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
        slot.advance(address, self.address);
        self.after[entry] = self.names.name(address);
        self.push(it);
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
        self.address = it.address;
        if self.fields.pcs {
            self.pc = it.pc;
        }
        if self.fields.times {
            self.time = it.time;
        }
        if self.fields.flags {
            self.flag = it.flag;
        }
    }
}

/// Times, words and flags are told of each reference, so that none come again together.
fn has_several(fields: Fields) -> bool {
    !(fields.times || fields.words || fields.flags)
}

/// A number: how many bytes it has, and these.
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
    use super::super::sorted::Order;
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

    /// What version 3 says of a trace in columns in which nothing comes again. If this fails, files written before cannot be read, and the
    /// version must be another.
    #[test]
    fn the_columns_of_version_3() {
        let all = Fields { times: true, words: true, sizes: true, flags: true, pcs: true };
        let hashes = [Fields::NONE, Fields { pcs: true, ..Fields::NONE }, all].map(|fields| {
            let trace = trace(30_000, fields);
            let (mut model, mut filling) = (Model::new(fields, 22), Filling::default());
            model.pack(&mut filling, &mut Finder::new(6, 22), &trace);
            filling.sort(&mut Order::default());
            let hash = filling.columns.iter().flatten().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
            });
            let mut taking = Taking::default();
            filling.columns.swap_with_slice(&mut taking.columns);
            assert!(taking.unsort(&mut Order::default()));
            model.forget();
            let mut batch = Batch::new();
            model.unpack(&mut taking, trace.len(), &mut batch);
            assert!(!taking.lacking && taking.spent() && model.settled());
            assert_eq!(batch.iter().collect::<Vec<Reference>>(), trace, "{fields:?}");
            hash
        });
        assert_eq!(
            hashes,
            [4_515_289_093_492_251_188, 9_500_148_108_743_558_323, 17_290_857_628_361_730_455]
        );
    }

    /// A program that does one of several things after the other, each the same way: what it refers to at random repeats.
    fn repeated(fields: Fields) -> Vec<Reference> {
        let mut random = fastrand::Rng::with_seed(11);
        let things: Vec<Vec<Reference>> = (0..20)
            .map(|thing| {
                let each = |at: u64| Reference {
                    kind: if at.is_multiple_of(5) { 2 } else { (at % 2) as u8 },
                    address: 0x7000_0000 + random.u64(..1 << 22) * 8,
                    size: if fields.sizes { 4 << (at % 2) } else { 0 },
                    pc: if fields.pcs { 0x40_0000 + thing * 4096 + at } else { 0 },
                    ..Reference::default()
                };
                (0..3 + thing * 17).map(each).collect()
            })
            .collect();
        (0..400).flat_map(|_| things[random.usize(..things.len())].clone()).collect()
    }

    #[test]
    fn what_comes_again_is_told_once() {
        for fields in [Fields::NONE, Fields { pcs: true, sizes: true, ..Fields::NONE }] {
            let trace = repeated(fields);
            let (mut model, mut finder) = (Model::new(fields, 22), Finder::new(6, 22));
            let (mut reader, mut order) = (Model::new(fields, 22), Order::default());
            for (some, piece) in trace.chunks(trace.len().div_ceil(3)).enumerate() {
                let (mut filling, mut taking) = (Filling::default(), Taking::default());
                model.pack(&mut filling, &mut finder, piece);
                let told = filling.bytes();
                assert!(some == 0 || told < piece.len() / 8, "{told} bytes of {}", piece.len());
                filling.sort(&mut order);
                assert!(!filling.columns[LENGTH].is_empty());
                filling.columns.swap_with_slice(&mut taking.columns);
                assert!(taking.unsort(&mut order));
                // Batches end in the midst of what comes again.
                let (mut read, mut batch) = (Vec::new(), Batch::new());
                while read.len() < piece.len() {
                    batch.clear();
                    reader.unpack(&mut taking, (piece.len() - read.len()).min(7), &mut batch);
                    assert!(!taking.lacking);
                    read.extend(batch.iter());
                }
                assert!(read == piece && taking.spent() && reader.settled());
            }
        }
    }

    /// What comes of columns that chance fills: every way to say something, in every order. If this fails, what version 3 says is read
    /// as something else.
    #[test]
    fn what_version_3_is_read_as() {
        let fields = [Fields::NONE, Fields { pcs: true, sizes: true, ..Fields::NONE }];
        let hashes = fields.map(|fields| {
            let mut state = 3u64;
            let mut draw = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut model = Model::new(fields, 10);
            let (mut hash, mut several) = (0xcbf2_9ce4_8422_2325u64, 0);
            for _ in 0..200 {
                let (mut taking, mut batch) = (Taking::default(), Batch::new());
                for _ in 0..40 {
                    taking.columns[SURE].push(draw(4) as u8);
                    taking.columns[UNSURE].push(draw(3) as u8);
                    let said = [EXPECTED, TOLD, TOLD, SEVERAL][draw(4) as usize];
                    taking.columns[MISS].push(said | draw(if said == SEVERAL { 4 } else { 5 }) as u8);
                    taking.columns[KIND].push(draw(3) as u8);
                    taking.columns[SIZE].extend([4 << draw(2), 0]);
                    taking.columns[LENGTH].push(1 + draw(20) as u8);
                    taking.columns[DISTANCE].push(1 + draw(60) as u8);
                    taking.columns[DISTANCE + 1].push(u8::from(draw(9) == 0));
                    taking.columns[DISTANCE + 2].push(0);
                    taking.tell_whole(WHOLE_ADDRESS, (draw(40) << 27) + draw(64) * 8);
                    taking.tell_whole(WHOLE_PC, 0x40_0000 + draw(64));
                }
                while !taking.lacking && batch.len() < 600 {
                    model.unpack(&mut taking, 7, &mut batch);
                    several += usize::from(!model.settled());
                }
                for it in batch.iter() {
                    for part in [u64::from(it.kind), it.address, u64::from(it.size), it.pc] {
                        hash = (hash ^ part).wrapping_mul(0x100_0000_01b3);
                    }
                }
                if taking.lacking {
                    // A reader ends here; to see more, nothing is left to come again.
                    model.left = 0;
                }
            }
            assert!(several > 100, "{several}");
            hash
        });
        assert_eq!(hashes, [9_679_079_202_963_229_311, 10_659_801_545_818_407_502]);
    }

    #[test]
    fn what_comes_again_may_do_so_at_once_and_never_from_before_the_first() {
        let mut past = Past::new(Fields::NONE, 4);
        assert!(!past.reaches(1));
        for address in [8, 16, 24] {
            past.push(&Reference { address, ..Reference::default() });
        }
        assert!(past.reaches(3) && !past.reaches(0) && !past.reaches(4));
        let mut batch = Batch::new();
        past.repeat(2, 5, Some(&mut batch));
        assert_eq!(batch.addresses, [16, 24, 16, 24, 16]);
        assert!(past.reaches(8) && past.back(8).address == 8);
        // The ring has room for 16: it is full, and begins anew.
        past.repeat(7, 20, Some(&mut batch));
        assert_eq!(batch.addresses[5..], [16, 24, 16, 24, 16, 24, 16].repeat(3)[..20]);
        assert!(past.reaches(15) && !past.reaches(16));
    }

    /// One reference, of a model that knows none, from what a column of misses, of lengths and of distances says.
    fn said(miss: u8, length: u8, distance: u8, fields: Fields) -> (Taking, Model, Batch) {
        let (mut taking, mut model, mut batch) = (Taking::default(), Model::new(fields, 10), Batch::new());
        taking.columns[UNSURE] = vec![0, 0];
        taking.columns[MISS] = vec![TOLD | GUESSES as u8, miss];
        taking.columns[KIND] = vec![0];
        taking.columns[LENGTH] = vec![length];
        (0..3).for_each(|at| taking.columns[DISTANCE + at] = vec![if at == 0 { distance } else { 0 }]);
        taking.tell_whole(WHOLE_ADDRESS, 8);
        model.unpack(&mut taking, 3, &mut batch);
        (taking, model, batch)
    }

    #[test]
    fn what_no_writer_says() {
        let new = SEVERAL | RECENT as u8;
        let (taking, model, batch) = said(new, 2, 1, Fields::NONE);
        assert!(!taking.lacking && taking.spent() && model.settled() && batch.addresses == [8; 3]);
        let flags = Fields { flags: true, ..Fields::NONE };
        for (miss, length, distance, fields) in [
            (new, 0, 1, Fields::NONE),
            (new, 2, 2, Fields::NONE),
            (new, 2, 0, Fields::NONE),
            (SEVERAL, 2, 1, Fields::NONE),
            (new + 1, 2, 1, Fields::NONE),
            (new, 2, 1, flags),
            (EXPECTED | 5, 2, 1, Fields::NONE),
            (4 << 4, 2, 1, Fields::NONE),
        ] {
            let (taking, _, batch) = said(miss, length, distance, fields);
            assert!(taking.lacking && batch.len() < 3, "{miss} {length} {distance}");
        }
        // More than there are references left.
        let (taking, model, _) = said(new, 3, 1, Fields::NONE);
        assert!(!taking.lacking && !model.settled());
    }

    /// More stretches of memory than names have room for, and a ring that is full again and again.
    #[test]
    fn far_apart_and_long_ago() {
        let mut random = fastrand::Rng::with_seed(4);
        let walk: Vec<u64> = (0..700).map(|_| random.u64(..1 << 47)).collect();
        let of = |address: &u64| Reference { address: *address, ..Reference::default() };
        let trace: Vec<Reference> = walk.repeat(9).iter().map(of).collect();
        let (mut model, mut finder) = (Model::new(Fields::NONE, 10), Finder::new(6, 10));
        let (mut reader, mut order) = (Model::new(Fields::NONE, 10), Order::default());
        for (at, piece) in trace.chunks(300).enumerate() {
            let (mut filling, mut taking, mut batch) = (Filling::default(), Taking::default(), Batch::new());
            model.pack(&mut filling, &mut finder, piece);
            assert!(at < 3 || filling.bytes() < 30, "{at}: {}", filling.bytes());
            filling.sort(&mut order);
            filling.columns.swap_with_slice(&mut taking.columns);
            assert!(taking.unsort(&mut order));
            reader.unpack(&mut taking, piece.len(), &mut batch);
            assert!(!taking.lacking && taking.spent() && reader.settled());
            assert!(batch.iter().eq(piece.iter().copied()));
        }
    }
}
