//! What a reference depends on. The same code packs and unpacks: see [`Coder`].

use super::super::tables::Stretches;
use super::bits::Bits;
use super::chain::{Chain, Context, Guess, from, of};
use super::coder::Coder;
use super::logistic::Curve;
use super::matches::{Kept, Match, Ring};
use super::{mix, spread};
use crate::kind::{FETCH, WRITE, is_fetch};
use crate::{Fields, Reference};

/// Entries of small tables, to the power of two.
const REST_BITS: u32 = 16;
const KIND_BITS: u32 = 17;
/// Of pages and of what is in them.
const NEAR_BITS: u32 = 18;
/// Of what is known of a place, of a page, and of who wrote to an address.
const PLACE_BITS: u32 = 18;
const PAGE_BITS: u32 = 16;
const WRITER_BITS: u32 = 18;
/// A page has 2^12 bytes.
const OFFSET_BITS: u32 = 12;
/// Of which so many are the lowest.
const LOW_BITS: u32 = 9;

/// Acts, addresses and pages that are remembered.
const ACTS: usize = 18;
const ADDRESSES: usize = 12;

/// What words, times and sizes are told from; not 0, as they are no addresses.
const NUMBERS: u64 = 1;

pub(crate) struct Model {
    fields: Fields,
    bits: u8,
    curve: Curve,
    names: Stretches,
    /// Instructions: pcs, or the addresses of fetches.
    instructions: Chain,
    told_instructions: Bits,
    kinds: Bits,
    /// Addresses where the place in the program is known, and where it is not.
    placed: Chain,
    loose: Chain,
    /// Of addresses that did not follow anything: the page, and what is in it.
    pages: Chain,
    told_pages: Bits,
    offsets: Chain,
    told_offsets: Bits,
    sizes: Chain,
    told_sizes: Bits,
    rest: Rest,
    past: Past,
    matches: Matches,
    expected: Expected,
}

/// Where the same happened before: long and short matches of references, and of instructions alone.
struct Matches {
    ring: Ring,
    long: Match,
    short: Match,
    instructions: Match,
}

impl Matches {
    fn new(table: u32, pcs: bool) -> Matches {
        Matches {
            ring: Ring::new(table + 4, pcs),
            long: Match::new(table + 2, 3),
            short: Match::new(table + 2, 16),
            instructions: Match::new(table + 1, 2),
        }
    }
}

/// What matches expect of a reference.
#[derive(Default)]
struct Expected {
    long: (Kept, u8),
    short: (Kept, u8),
    instruction: (Kept, u8),
}

impl Expected {
    fn instructions(&self) -> [Guess; 3] {
        [self.long, self.short, self.instruction].map(|(kept, worth)| (kept.instruction, worth))
    }

    fn addresses(&self) -> [Guess; 2] {
        [self.long, self.short].map(|(kept, worth)| (kept.address, worth))
    }

    fn kinds(&self) -> [u64; 2] {
        [self.long, self.short].map(|(kept, worth)| u64::from(kept.kind) << 8 | u64::from(worth))
    }
}

/// Of words, times and flags.
struct Rest {
    words: Chain,
    told_words: Bits,
    times: Chain,
    told_times: Bits,
    flags: Bits,
}

/// What happened.
struct Past {
    /// Instructions with the kind of what they did, the last first; and how far the last is from the one before.
    acts: [u64; ACTS],
    step: u64,
    /// Addresses of what is no fetch, and their pages.
    addresses: [u64; ADDRESSES],
    pages: [u64; 3],
    /// Three bits each.
    kinds: u64,
    /// By place, the last addresses; by page likewise; by address, the last instruction that wrote there.
    places: Box<[[u64; 3]]>,
    in_pages: Box<[[u64; 4]]>,
    writers: Box<[u64]>,
    /// Who wrote last to the last address.
    writer: u64,
    /// There was a fetch; how many references since.
    fetched: bool,
    /// There was something that is neither a read nor a write.
    others: bool,
    ordinal: u64,
    size: u16,
    time: u64,
    passed: u64,
    flag: bool,
    since: u64,
}

impl Past {
    fn new() -> Past {
        Past {
            acts: [0; ACTS],
            step: 0,
            addresses: [0; ADDRESSES],
            pages: [0; 3],
            kinds: 0,
            places: vec![[0; 3]; 1 << PLACE_BITS].into(),
            in_pages: vec![[0; 4]; 1 << PAGE_BITS].into(),
            writers: vec![0; 1 << WRITER_BITS].into(),
            writer: 0,
            fetched: false,
            others: false,
            ordinal: 0,
            size: 0,
            time: 0,
            passed: 0,
            flag: false,
            since: 0,
        }
    }

    fn instruction(&self) -> u64 {
        self.acts[0] >> 3
    }

    fn acted(&mut self, instruction: u64, kind: u8) {
        self.step = instruction.wrapping_sub(self.instruction());
        self.acts.rotate_right(1);
        self.acts[0] = instruction << 3 | u64::from(kind);
    }

    fn referred(&mut self, place: u64, kind: u8, address: u64) {
        let [last, before, _] = self.places[spread(place, PLACE_BITS)];
        self.places[spread(place, PLACE_BITS)] = [address, last, before];
        self.addresses.rotate_right(1);
        self.addresses[0] = address;
        let page = address >> OFFSET_BITS;
        let in_page = &mut self.in_pages[spread(page, PAGE_BITS)];
        let [last, before, earlier, _] = *in_page;
        *in_page = [address, last, before, earlier];
        self.pages = [page, self.pages[0], self.pages[1]];
        let writer = &mut self.writers[spread(address, WRITER_BITS)];
        self.writer = *writer;
        if kind & 3 == WRITE {
            *writer = self.acts[0] >> 3;
        }
    }
}

/// A hash of the first few.
fn hash(numbers: &[u64], seed: u64) -> u64 {
    numbers.iter().fold(seed + numbers.len() as u64 * 8, |hash, number| mix(hash, *number))
}

impl Model {
    /// With tables of 2^`bits` entries.
    pub(crate) fn new(fields: Fields, bits: u8) -> Model {
        let table = u32::from(bits);
        Model {
            fields,
            bits,
            curve: Curve::new(),
            names: Stretches::default(),
            instructions: Chain::new(9, 3, 4, table),
            told_instructions: Bits::new(4, table),
            kinds: Bits::new(9, KIND_BITS),
            placed: Chain::new(14, 2, 4, table),
            loose: Chain::new(16, 2, 4, table),
            pages: Chain::new(10, 0, 3, NEAR_BITS),
            told_pages: Bits::new(4, table),
            offsets: Chain::new(9, 0, 4, NEAR_BITS),
            told_offsets: Bits::new(11, table),
            sizes: Chain::new(3, 0, 2, REST_BITS),
            told_sizes: Bits::new(1, REST_BITS),
            rest: Rest {
                words: Chain::new(2, 0, 2, REST_BITS),
                told_words: Bits::new(2, table),
                times: Chain::new(4, 0, 3, REST_BITS),
                told_times: Bits::new(3, REST_BITS),
                flags: Bits::new(2, REST_BITS),
            },
            past: Past::new(),
            matches: Matches::new(table, fields.pcs),
            expected: Expected::default(),
        }
    }

    /// As it was made: nothing is known.
    pub(crate) fn forget(&mut self) {
        *self = Model::new(self.fields, self.bits);
    }

    /// Packs the reference, or puts what was packed in its place.
    pub(crate) fn code<C: Coder>(&mut self, coder: &mut C, it: &mut Reference) {
        let place = if self.fields.pcs {
            it.pc = self.instruction(coder, it.pc);
            it.kind = self.kind(coder, self.kind_by_instruction(it.pc), it.kind);
            mix(it.pc, u64::from(it.kind))
        } else if self.past.fetched {
            let place = mix(self.past.instruction(), self.past.ordinal);
            it.kind = self.kind(coder, self.kind_by_fetch(place), it.kind);
            mix(place, u64::from(it.kind))
        } else {
            it.kind = self.kind(coder, self.kind_by_addresses(), it.kind);
            mix(hash(&self.past.pages[..2], self.past.kinds & 63), u64::from(it.kind))
        };
        let fetch = is_fetch(it.kind);
        it.address = if fetch && !self.fields.pcs {
            self.instruction(coder, it.address)
        } else {
            self.address(coder, place, it)
        };
        self.size(coder, place, it);
        self.words_times_flags(coder, place, it);
        self.remember(place, it);
    }

    fn instruction<C: Coder>(&mut self, coder: &mut C, instruction: u64) -> u64 {
        let Model { curve, names, past, .. } = self;
        let acts = |count: usize| hash(&past.acts[..count], 0);
        let last = acts(1);
        let contexts = [
            of(last),
            of(acts(2)),
            of(acts(3)),
            of(acts(4)),
            of(acts(6)),
            of(acts(10)),
            of(acts(18)),
            of(mix(last, past.writer)),
            of(mix(last, past.addresses[0])),
        ];
        self.instructions.guess(&self.expected.instructions());
        let found = self.instructions.find(curve, coder, names, &contexts, last, instruction);
        let instruction = found.unwrap_or_else(|| {
            let (before, step) = (past.instruction(), past.step);
            let contexts = [step & 3, 1 << 12 | step & 255, 2 << 12 | before & 15, 3 << 12 | before & 0xfff];
            self.told_instructions.near(curve, coder, &contexts, before, instruction)
        });
        self.instructions.learn(names, instruction);
        instruction
    }

    fn kind_by_instruction(&self, pc: u64) -> [u64; 7] {
        let (kinds, [long, short]) = (self.past.kinds, self.expected.kinds());
        [pc, mix(pc, kinds & 7), kinds & 63, mix(pc, kinds & 511), mix(kinds & 0xff_ffff, 5), long, short]
    }

    fn kind_by_fetch(&self, place: u64) -> [u64; 7] {
        let (kinds, [long, short]) = (self.past.kinds, self.expected.kinds());
        [
            place,
            mix(place, kinds & 7),
            1 << 20 | kinds & 511,
            mix(place, self.past.acts[1]),
            mix(kinds & 0xff_ffff, 5),
            long,
            short,
        ]
    }

    fn kind_by_addresses(&self) -> [u64; 9] {
        let Past { kinds, addresses, pages, .. } = &self.past;
        let [long, short] = self.expected.kinds();
        [
            mix(addresses[0], kinds & 7),
            hash(&addresses[..2], 0),
            hash(&addresses[..3], 0),
            mix(hash(&pages[..2], 0), kinds & 63),
            mix(kinds & 0x7fff, 5),
            mix(kinds & 0xfff_ffff_ffff, 6),
            mix(hash(&pages[..1], 0), kinds & 0xff_ffff),
            long,
            short,
        ]
    }

    /// Reads and writes take two decisions, and so do fetches.
    fn kind<C: Coder, const N: usize>(&mut self, coder: &mut C, contexts: [u64; N], kind: u8) -> u8 {
        let Model { curve, kinds, past, .. } = self;
        let mut told = |step: u64, bits: u32, number: u8| {
            let contexts = contexts.map(|context| mix(context, step));
            // As long as there are only reads and writes nothing else needs to be known.
            let contexts = if step == 1 && !past.others { &[step] } else { &contexts[..] };
            kinds.code(curve, coder, contexts, bits, u64::from(number)) as u8
        };
        if told(1, 1, u8::from(kind > WRITE)) == 0 {
            told(2, 1, kind)
        } else if told(3, 1, u8::from(kind != FETCH)) == 0 {
            FETCH
        } else {
            told(4, 3, kind)
        }
    }

    /// Of what is no fetch, or of a fetch whose pc was told.
    fn address<C: Coder>(&mut self, coder: &mut C, place: u64, it: &Reference) -> u64 {
        let Model { curve, names, past, .. } = self;
        if self.fields.pcs || past.fetched {
            let near = if is_fetch(it.kind) { it.pc } else { past.addresses[0] };
            let contexts = placed(past, place, u64::from(it.kind), near);
            self.placed.guess(&self.expected.addresses());
            let found = self.placed.find(curve, coder, names, &contexts, place, it.address);
            let address = found.unwrap_or_else(|| self.told_address(coder, place, it));
            self.placed.learn(&mut self.names, address);
            address
        } else {
            let kind = u64::from(it.kind);
            let contexts = loose(past, kind);
            let page = mix(past.pages[0], kind);
            self.loose.guess(&self.expected.addresses());
            let found = self.loose.find(curve, coder, names, &contexts, page, it.address);
            let address = found.unwrap_or_else(|| self.told_address(coder, place, it));
            self.loose.learn(&mut self.names, address);
            address
        }
    }

    /// First its page, then where in it: what comes next there is another matter than what comes next.
    fn told_address<C: Coder>(&mut self, coder: &mut C, place: u64, it: &Reference) -> u64 {
        let Model { curve, names, past, .. } = self;
        let kind = u64::from(it.kind);
        let [last, before, earlier] = past.pages;
        let two = mix(last, before);
        let [_, b, c, d, _, f, _, _, i, ..] = past.addresses;
        let step = |to: u64, from: u64| (to >> OFFSET_BITS).wrapping_sub(from >> OFFSET_BITS);
        let contexts = [
            of(mix(last, kind)),
            of(two),
            of(mix(two, earlier)),
            of(place),
            of(mix(place, last)),
            of(mix(past.addresses[0], 9)),
            from(last << OFFSET_BITS, mix(place, 10)),
            from(last << OFFSET_BITS, mix(kind, 11)),
            from(c & !OFFSET, mix(mix(step(c, f), step(f, i)), 12)),
            from(b & !OFFSET, mix(mix(step(b, d), step(d, f)), 13)),
        ];
        let start = it.address & !OFFSET;
        let start = self.pages.find(curve, coder, names, &contexts, place, start).unwrap_or_else(|| {
            let contexts = [kind, mix(place, 1), mix(last, 2), mix(before, 3)];
            told_page(&mut self.told_pages, curve, coder, names, &contexts, start)
        }) & !OFFSET;
        self.pages.learn(names, start);

        let page = start >> OFFSET_BITS;
        let [last, before, earlier, first] = past.in_pages[spread(page, PAGE_BITS)];
        let (step, step_before) = (last.wrapping_sub(before), before.wrapping_sub(earlier));
        let contexts = [
            of(mix(page, last)),
            of(mix(mix(page, last), before)),
            of(mix(mix(page, last), past.addresses[0])),
            from(last, mix(place, step)),
            from(last, mix(place, 7)),
            of(mix(page, place)),
            from(last, mix(step, 8)),
            from(last, mix(mix(step, step_before), 9)),
            from(last, mix(mix(mix(step, step_before), earlier.wrapping_sub(first)), 10)),
        ];
        let address = self.offsets.find(curve, coder, names, &contexts, place ^ 1, it.address);
        let address = address.unwrap_or_else(|| {
            let contexts = [
                page,
                place,
                mix(page, last & OFFSET),
                mix(past.addresses[0] & OFFSET, kind),
                mix(place, last & OFFSET),
                mix(page, place),
            ];
            let bits = &mut self.told_offsets;
            let upper = bits.part(curve, coder, &contexts, LOW_BITS..OFFSET_BITS, it.address);
            let [p, q, r, s, t, u] = contexts.map(|context| mix(context, upper));
            // The lowest bits may come again whatever the others are.
            let low = |number: u64| number & ((1 << LOW_BITS) - 1);
            let [a, b, c, d, e, f, _, _, i, ..] = past.addresses.map(low);
            let [l, m, n] = past.places[spread(place, PLACE_BITS)].map(low);
            let contexts = [
                p,
                q,
                r,
                s,
                t,
                u,
                hash(&[l, m, n], 1),
                hash(&[a, b, c, d, e, f], 2),
                hash(&[c, f, i], 3),
                mix(l, place),
                hash(&[b, d, f], 4),
            ];
            start | upper | bits.part(curve, coder, &contexts, 0..LOW_BITS, it.address)
        });
        self.offsets.learn(names, address);
        address
    }

    fn size<C: Coder>(&mut self, coder: &mut C, place: u64, it: &mut Reference) {
        if !self.fields.sizes {
            return;
        }
        let Model { curve, names, past, .. } = self;
        // A fetch is as long as its instruction, whatever came before.
        let place = if is_fetch(it.kind) { mix(it.address, 1) } else { place };
        let contexts = [
            from(NUMBERS, place),
            from(NUMBERS, mix(it.address, u64::from(it.kind))),
            from(NUMBERS, mix(u64::from(past.size), u64::from(it.kind))),
        ];
        let size = u64::from(it.size);
        let size = self
            .sizes
            .find(curve, coder, names, &contexts, place, size)
            .unwrap_or_else(|| self.told_sizes.code(curve, coder, &[u64::from(it.kind)], 16, size));
        self.sizes.learn(names, size);
        it.size = size as u16;
        past.size = it.size;
    }

    /// What follows from the rest, or nearly.
    fn words_times_flags<C: Coder>(&mut self, coder: &mut C, place: u64, it: &mut Reference) {
        if self.fields.words {
            self.word(coder, it);
        }
        if self.fields.times {
            self.time(coder, place, it);
        }
        if self.fields.flags {
            self.flag(coder, it);
        }
    }

    fn word<C: Coder>(&mut self, coder: &mut C, it: &mut Reference) {
        let Model { curve, names, rest, .. } = self;
        let kind = u64::from(it.kind);
        let key = if is_fetch(it.kind) { it.address } else { 0 };
        let contexts = [from(NUMBERS, mix(key, kind)), from(NUMBERS, kind)];
        let word = i64::from(it.word as i32) as u64;
        let word = rest.words.find(curve, coder, names, &contexts, kind, word).unwrap_or_else(|| {
            let told = rest.told_words.code(curve, coder, &[kind, mix(key, kind)], 32, u64::from(it.word));
            i64::from(told as i32) as u64
        });
        rest.words.learn(names, word);
        it.word = word as u32;
    }

    fn time<C: Coder>(&mut self, coder: &mut C, place: u64, it: &mut Reference) {
        let Model { curve, names, rest, past, .. } = self;
        let kind = u64::from(it.kind);
        let contexts = [
            from(NUMBERS, place),
            from(NUMBERS, mix(place, past.passed)),
            from(NUMBERS, mix(kind, past.passed)),
            from(NUMBERS, kind),
        ];
        let passed = it.time.wrapping_sub(past.time);
        let found = rest.times.find(curve, coder, names, &contexts, place, passed);
        let passed = found.unwrap_or_else(|| {
            rest.told_times.short(curve, coder, &[kind, mix(place, 1), mix(past.passed, 2)], passed)
        });
        rest.times.learn(names, passed);
        past.passed = passed;
        past.time = past.time.wrapping_add(passed);
        it.time = past.time;
    }

    fn flag<C: Coder>(&mut self, coder: &mut C, it: &mut Reference) {
        let Model { curve, rest, past, .. } = self;
        let contexts = [u64::from(past.flag), mix(u64::from(past.flag), past.since)];
        it.flag = rest.flags.code(curve, coder, &contexts, 1, u64::from(it.flag)) != 0;
        past.since = if it.flag == past.flag { past.since + 1 } else { 0 };
        past.flag = it.flag;
    }

    fn remember(&mut self, place: u64, it: &Reference) {
        let past = &mut self.past;
        let fetch = is_fetch(it.kind);
        past.others |= it.kind > WRITE;
        past.kinds = past.kinds << 3 | u64::from(it.kind);
        if self.fields.pcs {
            past.acted(it.pc, it.kind);
        } else if fetch {
            past.acted(it.address, 0);
            (past.fetched, past.ordinal) = (true, 0);
        } else {
            past.ordinal += 1;
        }
        if self.fields.pcs || !fetch {
            past.referred(place, it.kind, it.address);
        }
        let Matches { ring, long, short, instructions } = &mut self.matches;
        let instruction = if self.fields.pcs { it.pc } else { it.address };
        ring.push(Kept {
            address: self.names.name(it.address),
            instruction: self.names.name(instruction),
            kind: it.kind,
        });
        let hash = mix(mix(it.address, instruction), u64::from(it.kind));
        let same = |one: Kept, other: Kept| one == other;
        long.follow(ring, hash, same);
        short.follow(ring, hash, same);
        self.expected.long = long.expected(ring);
        self.expected.short = short.expected(ring);
        if self.fields.pcs {
            let hash = mix(instruction, u64::from(it.kind));
            instructions.follow(ring, hash, |one, other| one.instruction == other.instruction);
            self.expected.instruction = instructions.expected(ring);
        }
    }
}

const OFFSET: u64 = (1 << OFFSET_BITS) - 1;

/// Where a page begins, by the name of its address where that has one.
fn told_page<C: Coder>(
    bits: &mut Bits,
    curve: &Curve,
    coder: &mut C,
    names: &Stretches,
    contexts: &[u64; 4],
    start: u64,
) -> u64 {
    let name = names.known(start);
    let named =
        bits.code(curve, coder, &contexts.map(|context| mix(context, 1)), 1, u64::from(name.is_some()));
    if named != 0 {
        let page = u64::from(name.unwrap_or(0) >> OFFSET_BITS);
        let page = bits.code(curve, coder, &contexts.map(|context| mix(context, 2)), 32 - OFFSET_BITS, page);
        names.address((page as u32) << OFFSET_BITS)
    } else {
        bits.code(curve, coder, contexts, 64 - OFFSET_BITS, start >> OFFSET_BITS) << OFFSET_BITS
    }
}

/// What an address may depend on where the place in the program is known.
fn placed(past: &Past, place: u64, kind: u64, near: u64) -> [Context; 14] {
    let [last, before, earlier] = past.places[spread(place, PLACE_BITS)];
    let (step, step_before) = (last.wrapping_sub(before), before.wrapping_sub(earlier));
    let [a, b, c, ..] = past.addresses;
    [
        of(place),
        from(last, mix(place, 1)),
        from(near, mix(place, 2)),
        of(mix(place, a)),
        of(mix(mix(place, last), 3)),
        of(mix(mix(place, last), before)),
        from(last, mix(mix(place, step), 4)),
        from(last, mix(mix(place, step), step_before)),
        of(mix(mix(place, a), b)),
        from(b, mix(place, 5)),
        from(c, mix(place, 6)),
        of(hash(&past.addresses[..3], kind)),
        from(a, mix(place, past.acts[1])),
        // What follows it, whoever goes from one to the next.
        of(mix(last, 14)),
    ]
}

/// And where it is not.
fn loose(past: &Past, kind: u64) -> [Context; 16] {
    let addresses = |count: usize| hash(&past.addresses[..count], kind);
    let [a, b, c, d, _, f, _, h, i, ..] = past.addresses;
    let l = past.addresses[11];
    let page = mix(past.pages[0], kind);
    // Streams that take turns, whatever page they are on.
    let turns = past.kinds & 63 | kind << 6;
    let (step, step_before) = (a.wrapping_sub(b), b.wrapping_sub(c));
    [
        of(addresses(1)),
        of(addresses(2)),
        of(addresses(3)),
        of(addresses(4)),
        of(addresses(6)),
        of(mix(addresses(1), past.kinds & 63)),
        from(a, mix(page, step)),
        from(a, mix(mix(page, step), step_before)),
        from(b, mix(page, step_before)),
        from(a, mix(mix(turns, step), step_before)),
        from(b, mix(mix(turns, b.wrapping_sub(d)), 2)),
        from(c, mix(mix(turns, c.wrapping_sub(f)), 3)),
        from(d, mix(mix(turns, d.wrapping_sub(h)), 4)),
        // The same way again, wherever it begins: two steps of a stream tell the third.
        from(b, mix(mix(b.wrapping_sub(d), d.wrapping_sub(f)), 5)),
        from(c, mix(mix(c.wrapping_sub(f), f.wrapping_sub(i)), 6)),
        from(d, mix(mix(d.wrapping_sub(h), h.wrapping_sub(l)), 7)),
    ]
}
