//! A number told as one of those that came before: each context has two that followed it, the likeliest is asked for first.

use super::super::tables::Stretches;
use super::coder::Coder;
use super::logistic::{Chances, Curve, INPUTS, Inputs, Mixer, error};
use super::{mix, spread};

/// What a number may depend on: the hash of it, and what the number is told from. From 0 it is an address.
#[derive(Clone, Copy, Default)]
pub(crate) struct Context {
    pub hash: u64,
    pub base: u64,
}

/// The number itself.
pub(crate) fn of(hash: u64) -> Context {
    Context { hash, base: 0 }
}

/// How far it is from another.
pub(crate) fn from(base: u64, hash: u64) -> Context {
    Context { hash, base }
}

/// A number that is expected, by its name, and what that is worth: 1 to 127, or 0 if there is none.
pub(crate) type Guess = (u32, Record);

/// Inputs that are no context's.
const OWN: usize = 3;
/// Contexts at most.
const MOST: usize = INPUTS - OWN;

const OWN_BITS: u32 = 18;
/// How much an input weighs at first, and how fast that changes.
const WEIGHT: i32 = 1 << 14;
const RATE: i32 = 14;
/// Chances of contexts, and own ones, are means of so many.
const SEEN: u32 = 1000;
const OWN_SEEN: u32 = 250;
/// A number that nothing speaks for but itself is still asked for.
const LEAST: i32 = 2200;

/// Whether a number came, the last six times: bits behind a leading 1; 0 if there is none.
pub(crate) type Record = u8;
pub(crate) const RECORDS: usize = 128;

pub(crate) fn recorded(record: Record, came: bool) -> Record {
    let longer = u32::from(record) << 1 | u32::from(came);
    if longer >= 128 { 64 | longer as u8 & 63 } else { longer as u8 }
}

/// Numbers that followed a context, as 32 bits, the likelier one first.
#[derive(Clone, Copy, Default)]
struct Entry {
    numbers: [u32; 2],
    records: [Record; 2],
    tag: u16,
}

/// An entry in its table: numbers, of which all zeros cost nothing until they are used.
type Stored = [u32; 3];

impl Entry {
    fn of([first, second, rest]: Stored) -> Entry {
        let [one, other, low, high] = rest.to_le_bytes();
        Entry { numbers: [first, second], records: [one, other], tag: u16::from_le_bytes([low, high]) }
    }

    fn stored(self) -> Stored {
        let ([first, second], [one, other]) = (self.numbers, self.records);
        let [low, high] = self.tag.to_le_bytes();
        [first, second, u32::from_le_bytes([one, other, low, high])]
    }

    fn learn(&mut self, number: u32) {
        let [first, second] = self.records;
        if first == 0 {
            (self.numbers[0], self.records[0]) = (number, 1);
        } else if self.numbers[0] == number {
            self.records[0] = recorded(first, true);
            if second != 0 {
                self.records[1] = recorded(second, false);
            }
        } else if second != 0 && self.numbers[1] == number {
            self.records = [recorded(first, false), recorded(second, true)];
            if self.records[1] >= self.records[0] || self.records[1] & 3 == 3 {
                self.numbers.swap(0, 1);
                self.records.swap(0, 1);
            }
        } else {
            let first = recorded(first, false);
            if first & 3 == 0 || first < 8 {
                self.numbers = [number, self.numbers[0]];
                self.records = [1, first];
            } else {
                self.numbers[1] = number;
                self.records = [first, 1];
            }
        }
    }
}

/// What a context says of the number asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    First = 0,
    Second = 1,
    Another = 2,
}

/// Whether it is this number.
struct Question {
    candidate: u64,
    attempt: usize,
    place: u64,
}

pub(crate) struct Chain {
    contexts: usize,
    guesses: usize,
    tries: usize,
    bits: u32,
    tables: Box<[Stored]>,
    /// By context, record, what it says, and try.
    chances: Chances,
    own: Chances,
    by_count: Mixer,
    by_set: Mixer,
    /// What was looked up last.
    places: [usize; MOST],
    found: [Entry; MOST],
    widened: [[u64; 2]; MOST],
    asked: [Context; MOST],
}

impl Chain {
    /// Of so many contexts, each with a table of 2^`bits`, and of so many guesses. So many numbers are asked for at most.
    pub(crate) fn new(contexts: usize, guesses: usize, tries: usize, bits: u32) -> Chain {
        assert!(contexts + guesses <= MOST);
        Chain {
            contexts,
            guesses,
            tries,
            bits,
            tables: vec![Stored::default(); contexts << bits].into(),
            chances: Chances::new((contexts + guesses) * RECORDS * 3 * tries),
            own: Chances::new(OWN << OWN_BITS),
            by_count: Mixer::new(tries * (MOST + 1), WEIGHT, RATE),
            by_set: Mixer::new(tries << 8, WEIGHT, RATE),
            places: [0; MOST],
            found: [Entry::default(); MOST],
            widened: [[0; 2]; MOST],
            asked: [Context::default(); MOST],
        }
    }

    /// What is expected of the number that is asked for next.
    pub(crate) fn guess(&mut self, guesses: &[Guess]) {
        for (found, (number, record)) in self.found[self.contexts..].iter_mut().zip(guesses) {
            *found = Entry { numbers: [*number, 0], records: [*record, 0], tag: 0 };
        }
    }

    /// The number, if it is one of those that followed these contexts, or of the guesses. `place` is where in the program this is.
    pub(crate) fn find<C: Coder>(
        &mut self,
        curve: &Curve,
        coder: &mut C,
        names: &Stretches,
        contexts: &[Context],
        place: u64,
        number: u64,
    ) -> Option<u64> {
        let mut candidates = self.look_up(curve, names, contexts);
        for attempt in 0..self.tries {
            let candidate = candidates.likeliest()?;
            if self.ask(curve, coder, Question { candidate, attempt, place }, candidate == number) {
                return Some(candidate);
            }
        }
        None
    }

    fn look_up(&mut self, curve: &Curve, names: &Stretches, contexts: &[Context]) -> Candidates {
        let mut candidates = Candidates { count: 0, numbers: [0; 2 * MOST], scores: [0; 2 * MOST] };
        for (at, context) in contexts.iter().enumerate() {
            let hash = mix(context.hash, at as u64 + 1);
            let place = at << self.bits | spread(hash, self.bits);
            let tag = (hash >> 24) as u16;
            let mut entry = Entry::of(self.tables[place]);
            if entry.tag != tag {
                entry = Entry { tag, ..Entry::default() };
            }
            (self.places[at], self.found[at], self.asked[at]) = (place, entry, *context);
        }
        (0..self.contexts + self.guesses).for_each(|at| self.propose(curve, names, at, &mut candidates));
        candidates
    }

    #[inline(always)]
    fn propose(&mut self, curve: &Curve, names: &Stretches, at: usize, candidates: &mut Candidates) {
        let (entry, base) = (&self.found[at], self.asked[at].base);
        for (says, (&number, &record)) in entry.numbers.iter().zip(&entry.records).enumerate() {
            if record != 0 {
                let chance = self.chances.at(((at * RECORDS + usize::from(record)) * 3 + says) * self.tries);
                let number = widened(names, base, number);
                self.widened[at][says] = number;
                candidates.add(number, (i32::from(curve.stretch(chance)) + LEAST).max(1));
            }
        }
    }

    fn ask<C: Coder>(&mut self, curve: &Curve, coder: &mut C, question: Question, right: bool) -> bool {
        let Question { candidate: number, attempt, place } = question;
        let mut inputs: Inputs = [0; INPUTS];
        let mut used = [0; MOST];
        let (mut count, mut set) = (0, 0);
        let inputs_used = self.contexts + self.guesses;
        for at in 0..inputs_used {
            let entry = &self.found[at];
            let is = |which: usize| entry.records[which] != 0 && self.widened[at][which] == number;
            let says = if is(0) {
                Says::First
            } else if is(1) {
                Says::Second
            } else {
                Says::Another
            };
            let record = entry.records[usize::from(says == Says::Second)];
            used[at] = ((at * RECORDS + usize::from(record)) * 3 + says as usize) * self.tries + attempt;
            inputs[at] = if record == 0 { 0 } else { curve.stretch(self.chances.at(used[at])) };
            if says == Says::First {
                count += 1;
                // The first guesses, then the first contexts.
                let bit = if at >= self.contexts { at - self.contexts } else { at + self.guesses };
                set |= 1 << bit.min(8);
            }
        }
        set &= 255;
        let own = [place, mix(place, set as u64), mix(self.asked[0].hash, count as u64)];
        let own: [usize; OWN] =
            std::array::from_fn(|at| at << OWN_BITS | spread(mix(own[at], attempt as u64), OWN_BITS));
        for (at, own) in own.iter().enumerate() {
            let chance = self.own.at(*own);
            inputs[MOST + at] = if chance.seen() == 0 { 0 } else { curve.stretch(chance) };
        }
        let sets = (attempt * (MOST + 1) + count, attempt << 8 | set);
        let mixed = (self.by_count.mix(&inputs, sets.0), self.by_set.mix(&inputs, sets.1));
        let right = coder.decide(curve.squash((mixed.0 + mixed.1) >> 1), right);
        self.by_count.learn(&inputs, sets.0, error(right, curve.squash(mixed.0)));
        self.by_set.learn(&inputs, sets.1, error(right, curve.squash(mixed.1)));
        used[..inputs_used].iter().for_each(|at| self.chances.learn(*at, right, SEEN));
        own.iter().for_each(|at| self.own.learn(*at, right, OWN_SEEN));
        right
    }

    /// What the number was, that was or was not found.
    pub(crate) fn learn(&mut self, names: &mut Stretches, number: u64) {
        let name = names.name(number);
        for at in 0..self.contexts {
            let base = self.asked[at].base;
            let number = if base == 0 { name } else { number.wrapping_sub(base) as u32 };
            let mut entry = self.found[at];
            entry.learn(number);
            self.tables[self.places[at]] = entry.stored();
        }
    }
}

fn widened(names: &Stretches, base: u64, number: u32) -> u64 {
    if base == 0 { names.address(number) } else { base.wrapping_add_signed(i64::from(number as i32)) }
}

/// Different numbers, and how much speaks for each.
struct Candidates {
    count: usize,
    numbers: [u64; 2 * MOST],
    scores: [i32; 2 * MOST],
}

impl Candidates {
    fn add(&mut self, number: u64, score: i32) {
        let known = self.numbers[..self.count].iter().position(|known| *known == number);
        let at = known.unwrap_or(self.count);
        self.count = self.count.max(at + 1);
        self.numbers[at] = number;
        self.scores[at] += score;
    }

    /// Takes it away. Of those alike the first.
    fn likeliest(&mut self) -> Option<u64> {
        let mut best = 0;
        for at in 1..self.count {
            if self.scores[at] > self.scores[best] {
                best = at;
            }
        }
        let left = self.scores[best] > 0;
        self.scores[best] = 0;
        left.then_some(self.numbers[best])
    }
}
