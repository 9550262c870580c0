//! How a reference is told from those before it. Most are guessed whole, and one bit says so; the others say what is
//! different. The same code packs and unpacks: see [`Coder`].

use super::coder::{Chance, Coder, EVEN, FLAT, Sums};
use super::tables::*;
use crate::kind::is_fetch;
use crate::{Fields, KINDS, Reference};

const SLOT_BITS: u32 = 14;
const NEXT_BITS: u32 = 14;
const OFFSET_BITS: u32 = 15;
const ADDRESS_BITS: u32 = 16;

/// A guess that costs little and is trusted so far is not compared with others.
const SURE: u8 = 200;

/// After so many references that happened before, the next act is what came then.
const SAME: u32 = 2;

/// Tells places apart that literal bytes are learned for.
const PLACE_BITS: u32 = 8;
const PLACES: usize = 1 << PLACE_BITS;

/// What literals are of.
const PC: usize = 0;
const ADDRESS: usize = 1;
const SIZE: usize = 2;
const WORD: usize = 3;
const TIME: usize = 4;
const LITERALS: usize = 5;

/// Contexts of one literal's symbols: how many bytes, then for three sorts of bytes the upper half, then the lower by it.
const SYMBOLS: usize = 1 + 3 * 17;

/// Where the guesses of a slot are.
struct Entries {
    offset: usize,
    after: usize,
    chain: usize,
    pattern: usize,
}

pub(crate) struct Model {
    fields: Fields,
    slots: Box<[Slot]>,
    /// By the last few acts, and by the last.
    long: Box<[Next]>,
    short: Box<[Next]>,
    offsets: Box<[u64]>,
    patterns: Box<[u64]>,
    after: Box<[u64]>,
    chains: Box<[u64]>,
    past: Past,
    regions: Regions,
    words: Box<[u32]>,
    /// By slot, how much time passes.
    times: Box<[u64]>,
    last: Reference,
    /// The address before that.
    earlier: u64,
    /// What the last references were, each as a hash.
    acts: [u64; 4],
    /// Of each of the last references to the next.
    steps: [u64; 3],
    /// The last fetch and how many references since, where fetches are in the trace.
    fetch: Option<u64>,
    ordinal: u64,
    whole: Box<[Chance]>,
    same_act: Box<[Chance]>,
    short_act: Box<[Chance]>,
    right: [[Chance; 4]; 3],
    flags: [Chance; 2],
    /// Which guess is right if not the best, by place and best guess.
    which: Box<[Sums]>,
    which_anywhere: [Sums; GUESSES << 3],
    literals: Box<[Sums]>,
    /// The same, whatever the place.
    common: Box<[Sums]>,
    /// Kinds that were not expected, by the kind before.
    kinds: [Sums; KINDS],
    any_kind: Sums,
}

impl Model {
    pub(crate) fn new(fields: Fields) -> Model {
        Model::with(fields, Past::new())
    }

    fn with(fields: Fields, past: Past) -> Model {
        let size = |there: bool, bits: u32| if there { 1 << bits } else { 1 };
        Model {
            fields,
            slots: vec![NO_SLOT; 1 << SLOT_BITS].into(),
            long: vec![Next::default(); 1 << NEXT_BITS].into(),
            short: vec![Next::default(); 1 << NEXT_BITS].into(),
            offsets: vec![0; 1 << OFFSET_BITS].into(),
            patterns: vec![0; 1 << OFFSET_BITS].into(),
            after: vec![0; 1 << ADDRESS_BITS].into(),
            chains: vec![0; 1 << ADDRESS_BITS].into(),
            past,
            regions: Regions::new(),
            words: vec![0; size(fields.words, OFFSET_BITS)].into(),
            times: vec![0; size(fields.times, SLOT_BITS)].into(),
            last: Reference::default(),
            earlier: 0,
            acts: [0; 4],
            steps: [0; 3],
            fetch: None,
            ordinal: 0,
            whole: vec![EVEN; 1 << 14].into(),
            same_act: vec![EVEN; 1 << 7].into(),
            short_act: vec![EVEN; 1 << 2].into(),
            right: [[EVEN; 4]; 3],
            flags: [EVEN; 2],
            which: vec![FLAT; PLACES * GUESSES].into(),
            which_anywhere: [FLAT; GUESSES << 3],
            literals: vec![FLAT; LITERALS * PLACES * SYMBOLS].into(),
            common: vec![FLAT; LITERALS * 8 * SYMBOLS].into(),
            kinds: [FLAT; KINDS],
            any_kind: FLAT,
        }
    }

    /// As it was made: nothing is known.
    pub(crate) fn forget(&mut self) {
        // The largest part by far is cleared, not made again.
        let mut past = std::mem::replace(&mut self.past, Past::none());
        past.clear();
        *self = Model::with(self.fields, past);
    }

    /// Packs the reference, or puts what was packed in its place.
    pub(crate) fn code<C: Coder>(&mut self, coder: &mut C, it: &mut Reference) {
        let (near, far) = self.histories();
        let (long, short) = (spread::<NEXT_BITS>(far), spread::<NEXT_BITS>(near));
        let tag = (far >> 40) as u16;
        let (act, act_trust, by_short) = self.expect(long, short, tag);
        let mut place = self.place(act);
        let mut at = spread::<SLOT_BITS>(place);
        let mut slot = self.slots[at];
        let mut anchor = slot.last;
        let best = usize::from(slot.best) % GUESSES;
        let trust = slot.trust[best];
        let mut entries = self.entries(&slot, place);
        let sure = trust >= SURE && CHEAP >> best & 1 != 0;
        // Nothing that may be far away is looked at for a guess that is as good as certain.
        let mut guesses = [0; GUESSES];
        let guess = if sure {
            let bases = [
                slot.last.wrapping_add(slot.stride),
                slot.last,
                0,
                self.last.address.wrapping_add(slot.near),
            ];
            bases[best & 3]
        } else {
            guesses = self.guesses(&slot, &entries);
            guesses[best]
        };

        let said = Act { pc: it.pc, size: it.size, kind: it.kind };
        let same = if best == AGAIN { self.past.same.min(15) as usize } else { 0 };
        let context = usize::from(trust >> 4) << 3 | act_trust | best << 7 | same << 10;
        let hit =
            coder.bit_of_two(&mut self.whole[context], &mut slot.chance, said == act && it.address == guess);
        let sort;
        if hit && sure {
            it.address = guess;
            (it.pc, it.size, it.kind) = (act.pc, act.size, act.kind);
            slot.trust[best] = trust + ((255 - trust) >> 2);
            slot.advance(it.address, self.last.address);
            self.slots[at] = slot;
            sort = u32::from(it.size) << 8 | u32::from(it.kind);
            self.past.push(it.address, sort);
        } else {
            let mut now = act;
            if hit {
                it.address = guess;
            } else {
                let context = act_trust << 4 | usize::from(trust >> 4);
                let right = coder.bit(&mut self.same_act[context], said == act);
                if !right {
                    self.slots[at].chance = slot.chance;
                    now = self.other_act(coder, act, short, by_short, said);
                    place = self.place(now);
                    at = spread::<SLOT_BITS>(place);
                    slot = self.slots[at];
                    anchor = slot.last;
                    entries = self.entries(&slot, place);
                }
                if sure || !right {
                    guesses = self.guesses(&slot, &entries);
                }
                self.address(coder, &slot, place, &guesses, right, it);
            }
            (it.pc, it.size, it.kind) = (now.pc, now.size, now.kind);
            sort = u32::from(it.size) << 8 | u32::from(it.kind);
            self.learn(at, slot, &entries, &guesses, it.address, sort);
        }
        self.rest(coder, at, place, it);

        let act = Act { pc: it.pc, size: it.size, kind: it.kind };
        self.long[long].learn(act, tag);
        self.short[short].learn(act, 0);
        self.remember(it, anchor);
    }

    /// Hashes of what happened last and of what happened lately, which say what comes next.
    #[inline(always)]
    fn histories(&self) -> (u64, u64) {
        let [a, b, c, d] = self.acts;
        if self.fields.pcs {
            (a, mix(a, mix(b, mix(c, d))))
        } else if let Some(fetch) = self.fetch {
            let place = fetch.wrapping_add(self.ordinal << 48);
            (place, mix(place, a))
        } else {
            let place = mix(a, b);
            (place, mix(place, mix(c, d)))
        }
    }

    /// The act that comes next, how far it is to be trusted, and whether the short history said so.
    #[inline(always)]
    fn expect(&self, long: usize, short: usize, tag: u16) -> (Act, usize, bool) {
        if !self.fields.pcs && self.past.same >= SAME {
            let sort = self.past.sort();
            return (Act { pc: 0, size: (sort >> 8) as u16, kind: sort as u8 & 7 }, 7, false);
        }
        let next = &self.long[long];
        if next.tag == tag {
            return (next.act, 4 + usize::from(next.trust), false);
        }
        let next = &self.short[short];
        (next.act, usize::from(next.trust), true)
    }

    /// Where in the program an act happens: its instruction, the fetch before it and how many references ago that was, or
    /// as a makeshift what was referred to before it.
    #[inline(always)]
    fn place(&self, act: Act) -> u64 {
        let base = if self.fields.pcs {
            act.pc
        } else if let Some(fetch) = self.fetch {
            fetch.wrapping_add(self.ordinal << 48)
        } else {
            let [a, b, c, d] = self.acts;
            mix(a, mix(b, mix(c, d)))
        };
        base.rotate_left(3) ^ u64::from(act.kind)
    }

    #[inline(always)]
    fn entries(&self, slot: &Slot, place: u64) -> Entries {
        let [a, b, c] = self.steps;
        Entries {
            offset: spread::<OFFSET_BITS>(mix(place, u64::from(slot.history))),
            after: spread::<ADDRESS_BITS>(mix(place, self.last.address)),
            chain: spread::<ADDRESS_BITS>(mix(place, slot.last)),
            pattern: spread::<OFFSET_BITS>(mix(a, mix(b, mix(c, place & 7)))),
        }
    }

    #[inline(always)]
    fn guesses(&self, slot: &Slot, entries: &Entries) -> [u64; GUESSES] {
        let mut guesses = [0; GUESSES];
        guesses[STRIDE] = slot.last.wrapping_add(slot.stride);
        guesses[LAST] = slot.last;
        guesses[OFFSETS] = slot.last.wrapping_add(self.offsets[entries.offset]);
        guesses[NEAR] = self.last.address.wrapping_add(slot.near);
        guesses[AFTER] = self.after[entries.after];
        guesses[AGAIN] = self.past.address();
        guesses[CHAIN] = self.chains[entries.chain];
        guesses[PATTERN] = self.last.address.wrapping_add(self.patterns[entries.pattern]);
        guesses
    }

    /// An act that is not the one expected.
    fn other_act<C: Coder>(
        &mut self,
        coder: &mut C,
        expected: Act,
        short: usize,
        by_short: bool,
        said: Act,
    ) -> Act {
        let next = self.short[short];
        if !by_short
            && next.act != expected
            && coder.bit(&mut self.short_act[usize::from(next.trust & 3)], next.act == said)
        {
            return next.act;
        }
        let mut act = Act::default();
        let (one, other) = (&mut self.kinds[usize::from(self.last.kind & 7)], &mut self.any_kind);
        act.kind = coder.symbol(one, other, usize::from(said.kind)) as u8 & 7;
        if self.fields.pcs {
            act.pc = self.literal(coder, PC, u64::from(act.kind), self.last.pc, said.pc);
        }
        if self.fields.sizes {
            let size = self.literal(
                coder,
                SIZE,
                u64::from(act.kind),
                u64::from(expected.size),
                u64::from(said.size),
            );
            act.size = size as u16;
        }
        act
    }

    /// An address that is not the best guess, if that one was made for the right place.
    fn address<C: Coder>(
        &mut self,
        coder: &mut C,
        slot: &Slot,
        place: u64,
        guesses: &[u64; GUESSES],
        wrong: bool,
        it: &mut Reference,
    ) {
        let best = usize::from(slot.best) % GUESSES;
        // The most trusted of those that are right, so that few symbols are common.
        let mut which = GUESSES;
        let mut trust = 0;
        for (at, guess) in guesses.iter().enumerate() {
            if *guess == it.address && (which == GUESSES || slot.trust[at] > trust) {
                (which, trust) = (at, slot.trust[at]);
            }
        }
        let known = usize::from(slot.trust[best] >> 6) << 1 | usize::from(wrong);
        let local = &mut self.which[spread::<PLACE_BITS>(place) * GUESSES + best];
        which = coder.symbol(local, &mut self.which_anywhere[best << 3 | known], which);
        it.address = match guesses.get(which) {
            Some(guess) => *guess,
            None => {
                let base = if slot.last == 0 { self.last.address } else { slot.last };
                self.literal(coder, ADDRESS, place, base, it.address)
            }
        };
    }

    /// Times, words and flags, which follow from the rest or are told.
    #[inline(always)]
    fn rest<C: Coder>(&mut self, coder: &mut C, at: usize, place: u64, it: &mut Reference) {
        if self.fields.words {
            let key = if is_fetch(it.kind) { it.address } else { 0 };
            let entry = spread::<OFFSET_BITS>(mix(key, u64::from(it.kind)));
            let expected = self.words[entry];
            let known = usize::from(is_fetch(it.kind)) << 1 | usize::from(expected != 0);
            if coder.bit(&mut self.right[0][known], it.word == expected) {
                it.word = expected;
            } else {
                it.word = self.literal(coder, WORD, 0, 0, u64::from(it.word)) as u32;
            }
            self.words[entry] = it.word;
        }
        if self.fields.times {
            let expected = self.times[at];
            let passed = it.time.wrapping_sub(self.last.time);
            let known = usize::from(expected < 2) << 1 | usize::from(is_fetch(it.kind));
            let passed = if coder.bit(&mut self.right[1][known], passed == expected) {
                expected
            } else {
                self.literal(coder, TIME, place, 0, passed)
            };
            self.times[at] = passed;
            it.time = self.last.time.wrapping_add(passed);
        }
        if self.fields.flags {
            it.flag = coder.bit(&mut self.flags[usize::from(self.last.flag)], it.flag);
        }
    }

    /// A number: how many of its lower bytes differ from another, and these.
    fn literal<C: Coder>(&mut self, coder: &mut C, what: usize, place: u64, base: u64, value: u64) -> u64 {
        let differ = (71 - (base ^ value).leading_zeros() as usize) / 8;
        let place = (what * PLACES + spread::<PLACE_BITS>(place)) * SYMBOLS;
        let common = what * 8 * SYMBOLS;
        let count = coder.symbol(&mut self.literals[place], &mut self.common[common], differ).min(8);
        let mut found = if count == 8 { 0 } else { base >> (8 * count) << (8 * count) };
        for at in (0..count).rev() {
            let sort = if at + 1 == count { 0 } else { 1 + usize::from(at == 0) };
            let mut symbol = |context: usize, symbol: u64| {
                let (one, other) =
                    (place + 1 + sort * 17 + context, common + at * SYMBOLS + 1 + sort * 17 + context);
                coder.symbol(&mut self.literals[one], &mut self.common[other], symbol as usize & 15)
            };
            let upper = symbol(0, value >> (8 * at + 4));
            let lower = symbol(1 + upper, value >> (8 * at));
            found |= ((upper << 4 | lower) as u64) << (8 * at);
        }
        found
    }

    /// What all the guesses would have been, and what they should be next time.
    #[inline(always)]
    fn learn(
        &mut self,
        at: usize,
        mut slot: Slot,
        entries: &Entries,
        guesses: &[u64; GUESSES],
        address: u64,
        sort: u32,
    ) {
        slot.judge(guesses, address);
        let offset = address.wrapping_sub(slot.last);
        self.offsets[entries.offset] = offset;
        self.after[entries.after] = address;
        self.chains[entries.chain] = address;
        self.patterns[entries.pattern] = address.wrapping_sub(self.last.address);
        slot.history = slot.history << 12 ^ (mix(offset, 0) >> 40) as u32;
        slot.advance(address, self.last.address);
        self.slots[at] = slot;
        self.past.push(address, sort);
        self.past.mark(mix(address, mix(self.last.address, self.earlier)));
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
        self.acts = [act, self.acts[0], self.acts[1], self.acts[2]];
        self.steps = [it.address.wrapping_sub(self.last.address), self.steps[0], self.steps[1]];
        self.earlier = self.last.address;
        self.last = *it;
    }
}
