//! Content hashes, for finding equal things without sending them. Not against an adversary: ranks of one run trust
//! each other, and what is read from a file is validated, not hashed. None of these hashes is in a file.

use crate::grammar::{Grammar, Symbol};
use crate::loops::Node;
use crate::stream::{Block, Stream, Term};

use super::sites::{Module, Stack};
use super::{Structure, SymbolEntry};

/// 128 bits: with a million distinct entries the chance of two being taken for one is below 10^-26.
pub type Hash = u128;

const A: u64 = 0x9e37_79b9_7f4a_7c15;
const B: u64 = 0xd6e8_feb8_6659_fd93;

/// Two 64-bit lanes, each a multiplication whose halves are folded together.
struct Mixer {
    a: u64,
    b: u64,
}

fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    (product as u64) ^ ((product >> 64) as u64)
}

impl Mixer {
    fn new(seed: u64) -> Mixer {
        Mixer { a: seed ^ A, b: seed.rotate_left(32) ^ B }
    }

    fn word(&mut self, word: u64) {
        self.a = fold(self.a ^ word, A).wrapping_add(self.b);
        self.b = fold(self.b.rotate_left(23) ^ word, B) ^ self.a.rotate_left(41);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        self.word(bytes.len() as u64);
    }

    fn finish(mut self) -> Hash {
        self.word(A);
        self.word(B);
        u128::from(self.a) << 64 | u128::from(self.b)
    }
}

pub fn of_symbol(symbol: &SymbolEntry) -> Hash {
    let mut mixer = Mixer::new(1);
    mixer.word(symbol.lanes.into());
    mixer.bytes(&symbol.bytes);
    mixer.word(symbol.site);
    mixer.finish()
}

pub fn of_stack(stack: &Stack) -> Hash {
    let mut mixer = Mixer::new(6);
    [stack.outer, stack.frame.module, stack.frame.offset].into_iter().for_each(|word| mixer.word(word));
    mixer.finish()
}

/// Of what makes it the module it is: [`Module::is_same`].
pub fn of_module(module: &Module) -> Hash {
    let named = module.build_id.is_empty();
    let mut mixer = Mixer::new(5);
    mixer.word(named.into());
    mixer.bytes(if named { module.path.as_bytes() } else { &module.build_id });
    mixer.finish()
}

/// Of ranks and their numbers.
pub fn of_pairs(pairs: &[(u32, i64)]) -> Hash {
    let mut mixer = Mixer::new(7);
    for &(rank, number) in pairs {
        mixer.word(rank.into());
        mixer.word(number as u64);
    }
    mixer.finish()
}

pub fn of_stream(stream: &Stream) -> Hash {
    let mut mixer = Mixer::new(2);
    hash_stream(&mut mixer, stream);
    mixer.finish()
}

fn hash_stream(mixer: &mut Mixer, stream: &Stream) {
    for term in &stream.terms {
        match *term {
            Term::Block(block) => {
                mixer.word(3);
                mixer.word(block.into());
            }
            Term::Value(v) => {
                mixer.word(0);
                mixer.word(v as u64);
            }
            Term::Stride { start, step, count } => {
                mixer.word(1);
                mixer.word(start as u64);
                mixer.word(step as u64);
                mixer.word(count);
            }
        }
    }
    mixer.word(2);
    for rule in &stream.shape.rules {
        for item in rule {
            let (kind, index) = match item.symbol {
                Symbol::Terminal(t) => (0, t),
                Symbol::Rule(r) => (1, r),
            };
            mixer.word(kind << 32 | u64::from(index));
            mixer.word(item.count);
        }
        mixer.word(u64::MAX);
    }
    for block in &stream.blocks {
        match block {
            Block::Packed { count, bytes } => {
                mixer.word((*count).into());
                mixer.bytes(bytes);
            }
            Block::Running { count, steps } => {
                mixer.word(!*count);
                hash_stream(mixer, steps);
            }
            Block::Rows { count, rows } => {
                mixer.word(!*count);
                mixer.word(4);
                mixer.word(rows.step as u64);
                hash_stream(mixer, &rows.starts);
                hash_stream(mixer, &rows.counts);
            }
        }
    }
}

/// The structure must be valid; `symbols` are the hashes of what its terminals stand for.
pub fn of_structure(structure: &Structure, symbols: &[Hash]) -> Hash {
    let loops = match structure {
        Structure::Rules(rules) => return rules.hash(symbols),
        Structure::Loops(loops) => loops,
    };
    let mut mixer = Mixer::new(4);
    for node in &loops.nodes {
        match *node {
            Node::Event(symbol) => {
                let symbol = symbols.get(symbol as usize).copied().unwrap_or(0);
                mixer.word(symbol as u64);
                mixer.word((symbol >> 64) as u64);
            }
            Node::Loop { inside } => mixer.word(inside.into()),
        }
    }
    mixer.finish()
}

/// A hash of the *expansion*: two grammars for the same sequence of symbols agree, however they are numbered or cut
/// into rules. Each rule is a polynomial in a fixed base with the symbols' hashes as coefficients, so that joining
/// and repeating sequences costs a few multiplications instead of an expansion.
pub(super) fn of_rules(grammar: &Grammar, symbols: &[Hash]) -> Hash {
    let mut done: Vec<Option<Sequence>> = vec![None; grammar.rules.len()];
    let mut open: Vec<u32> = if grammar.rules.is_empty() { Vec::new() } else { vec![0] };
    while let Some(&rule) = open.last() {
        if done[rule as usize].is_some() {
            open.pop();
            continue;
        }
        let mut sum = Sequence::EMPTY;
        let mut waiting = false;
        for item in &grammar.rules[rule as usize] {
            let part = match item.symbol {
                Symbol::Terminal(t) => Some(Sequence::of(symbols.get(t as usize).copied().unwrap_or(0))),
                Symbol::Rule(r) => done[r as usize],
            };
            match (part, item.symbol) {
                (Some(part), _) => sum = sum.then(part.times(item.count)),
                (None, Symbol::Rule(r)) => {
                    open.push(r);
                    waiting = true;
                }
                (None, Symbol::Terminal(_)) => {}
            }
        }
        if !waiting {
            done[rule as usize] = Some(sum);
            open.pop();
        }
    }
    let whole = done.first().copied().flatten().unwrap_or(Sequence::EMPTY);
    let mut mixer = Mixer::new(3);
    for lane in 0..2 {
        mixer.word(whole.value[lane]);
        mixer.word(whole.power[lane]);
    }
    mixer.finish()
}

const PRIME: u64 = (1 << 61) - 1;
const BASE: [u64; 2] = [0x0b4f_91c6_35d2_7a83, 0x17a3_68e0_94cb_d125];

fn times(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    reduce((product as u64 & PRIME) + (product >> 61) as u64)
}

fn reduce(x: u64) -> u64 {
    let x = (x & PRIME) + (x >> 61);
    if x >= PRIME { x - PRIME } else { x }
}

/// The polynomial of a sequence and BASE to the power of its length, both modulo 2^61 - 1, for two bases.
#[derive(Clone, Copy)]
struct Sequence {
    value: [u64; 2],
    power: [u64; 2],
}

impl Sequence {
    const EMPTY: Sequence = Sequence { value: [0, 0], power: [1, 1] };

    fn of(symbol: Hash) -> Sequence {
        Sequence { value: [reduce(symbol as u64), reduce((symbol >> 64) as u64)], power: BASE }
    }

    fn then(self, next: Sequence) -> Sequence {
        let join = |i: usize| reduce(times(self.value[i], next.power[i]) + next.value[i]);
        Sequence {
            value: [join(0), join(1)],
            power: [times(self.power[0], next.power[0]), times(self.power[1], next.power[1])],
        }
    }

    fn times(self, mut count: u64) -> Sequence {
        let (mut sum, mut square) = (Sequence::EMPTY, self);
        while count > 0 {
            if count & 1 == 1 {
                sum = sum.then(square);
            }
            square = square.then(square);
            count >>= 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::Item;

    fn grammar(rules: &[&[(i32, u64)]]) -> Grammar {
        // Negative numbers are rules.
        let item = |&(symbol, count): &(i32, u64)| Item {
            symbol: match u32::try_from(symbol) {
                Ok(t) => Symbol::Terminal(t),
                Err(_) => Symbol::Rule(symbol.unsigned_abs()),
            },
            count,
        };
        Grammar { rules: rules.iter().map(|r| r.iter().map(item).collect()).collect() }
    }

    #[test]
    fn structures_hash_by_expansion() {
        let names = [11u128 << 64 | 5, 7 << 64 | 9, 1 << 64 | 1];
        let flat = of_rules(&grammar(&[&[(0, 1), (1, 2), (0, 1), (1, 2), (2, 1)]]), &names);
        assert_eq!(flat, of_rules(&grammar(&[&[(-1, 2), (2, 1)], &[(0, 1), (1, 2)]]), &names));
        assert_eq!(
            flat,
            of_rules(
                &grammar(&[&[(1, 1), (0, 2), (1, 1), (0, 2), (2, 1)]]),
                &[7 << 64 | 9, 11 << 64 | 5, names[2]]
            )
        );
        for other in [
            &[&[(0, 1), (1, 2), (0, 1), (1, 2), (2, 2)][..]][..],
            &[&[(0, 1), (1, 1), (0, 1), (1, 3), (2, 1)]],
            &[&[(0, 1), (1, 2), (0, 1), (1, 2)]],
            &[&[]],
        ] {
            assert_ne!(flat, of_rules(&grammar(other), &names));
        }
    }

    #[test]
    fn every_bit_of_a_symbol_matters() {
        let entry = |bytes: &[u8], lanes| SymbolEntry {
            bytes: bytes.into(),
            site: 0,
            lanes,
            tally: super::super::Tally { total: 0, min: 0, max: 0 },
            classes: Default::default(),
        };
        let mut seen = std::collections::HashSet::new();
        for length in 0..20 {
            let mut bytes = vec![0u8; length];
            assert!(seen.insert(of_symbol(&entry(&bytes, 0))));
            assert!(seen.insert(of_symbol(&entry(&bytes, 1))));
            assert!(seen.insert(of_symbol(&SymbolEntry { site: 1, ..entry(&bytes, 1) })));
            for bit in 0..8 * length {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(seen.insert(of_symbol(&entry(&bytes, 0))));
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
