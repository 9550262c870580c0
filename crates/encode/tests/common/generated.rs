//! Made-up calls of any function of the call table.

use std::collections::HashMap;
use std::sync::LazyLock;

use fastrand::Rng;
use refrain_model::{Class, Dir, Function, Kind, Param, constants};

use super::{
    ANY_SOURCE, ANY_TAG, FakeStatus, IN_PLACE, PROC_NULL, ROOT, STATUS_IGNORE, UNDEFINED, constant_value,
    handle,
};

pub fn one<T: Copy>(random: &mut Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

/// More elements than any array of these calls has.
const ELEMENTS: usize = 32;
const WORDS: usize = ELEMENTS * size_of::<FakeStatus>() / 8;

/// A call's arguments, and the memory that they point into: one block for each parameter.
pub struct Arguments {
    pub words: Vec<usize>,
    pub blocks: Vec<Box<[u64]>>,
    /// What blocks of strings point to.
    lists: Vec<usize>,
}

/// What the constants of a set are.
fn values_of(set: &str) -> &'static [i64] {
    static VALUES: LazyLock<HashMap<&'static str, Vec<i64>>> = LazyLock::new(|| {
        let mut values: HashMap<_, Vec<i64>> = HashMap::new();
        constants().iter().for_each(|c| values.entry(c.set).or_default().push(constant_value(c.name)));
        values
    });
    VALUES.get(set).map_or(&[], Vec::as_slice)
}

fn is_input_scalar(p: &Param) -> bool {
    p.dir == Dir::In && p.len.is_empty()
}

/// An object that a program may pass: a constant, or one of a few others. Communicators are asked about: they are there.
fn object(random: &mut Rng, class: Class) -> u64 {
    if class == Class::Comm {
        return handle(one(random, &["MPI_COMM_WORLD", "MPI_COMM_WORLD", "MPI_COMM_SELF"])) as u64;
    }
    match values_of(class.set()) {
        values @ [_, ..] if random.usize(..2) == 0 => one(random, values) as u64,
        _ => 0x700 + random.usize(..4) as u64,
    }
}

fn number(random: &mut Rng, kind: Kind) -> i64 {
    match kind {
        Kind::Peer(_) | Kind::Root(_) | Kind::Rank if random.usize(..3) == 0 => {
            i64::from(one(random, &[ANY_SOURCE, PROC_NULL, ROOT]) as i32)
        }
        Kind::Tag if random.usize(..3) == 0 => i64::from(ANY_TAG as i32),
        Kind::Undefinable | Kind::Rank if random.usize(..4) == 0 => UNDEFINED.into(),
        Kind::Logical => random.usize(..2) as i64,
        Kind::Mask(_) if random.usize(..2) == 0 => ["MPI_MODE_NOCHECK", "MPI_MODE_CREATE", "MPI_MODE_RDWR"]
            .into_iter()
            .filter(|_| random.usize(..2) == 0)
            .fold(0, |bits, name| bits | constant_value(name)),
        Kind::Enum(set) if random.usize(..2) == 0 => {
            let values = values_of(set);
            if values.is_empty() { 3 } else { one(random, values) }
        }
        _ => random.usize(..6) as i64,
    }
}

impl Arguments {
    pub fn new(random: &mut Rng, f: &'static Function, narrow: bool) -> Arguments {
        let strings = [c"one".as_ptr() as usize, c"two".as_ptr() as usize, 0];
        let mut lists = vec![0; ELEMENTS];
        lists[..3].copy_from_slice(&strings);
        let mut arguments = Arguments { words: Vec::new(), blocks: Vec::new(), lists };
        for (i, p) in f.params.iter().enumerate() {
            arguments.blocks.push(vec![0; WORDS].into());
            arguments.write(random, p, i, narrow);
            let block = arguments.blocks[i].as_ptr() as usize;
            let pointer = if random.usize(..8) == 0 { 0 } else { block };
            let word = match p.kind {
                Kind::Handle(class) if is_input_scalar(p) => object(random, class) as usize,
                Kind::Status => one(random, &[block, block, STATUS_IGNORE]),
                Kind::Buffer => one(random, &[0, IN_PLACE, block]),
                Kind::Value => one(random, &[0, block]),
                Kind::Function => one(random, &[0, 0x4000]),
                Kind::String if p.dir == Dir::In => block,
                _ if p.len.is_empty() && p.dir == Dir::In && p.kind.is_number() => {
                    number(random, p.kind) as usize
                }
                // Names that stand for arrays.
                Kind::Int if p.name.ends_with("weights") && random.usize(..3) == 0 => one(random, &[3, 4]),
                _ => pointer,
            };
            arguments.words.push(word);
        }
        arguments
    }

    /// Other contents for parameter `i`, as the program or the call may write them.
    pub fn write(&mut self, random: &mut Rng, p: &Param, i: usize, narrow: bool) {
        let block = &mut self.blocks[i][..];
        let mut put = |k: usize, width: usize, value: u64| {
            let bytes = &mut block[k * width / 8];
            let shift = k * width % 8 * 8;
            *bytes = match width {
                8 => value,
                _ => *bytes & !(u64::from(u32::MAX) << shift) | (value & u64::from(u32::MAX)) << shift,
            };
        };
        match p.kind {
            Kind::Handle(class) => {
                let width = if narrow || class == Class::Keyval { 4 } else { 8 };
                // A call makes or frees no communicator that was there from the start.
                let own = class == Class::Comm && p.dir != Dir::In;
                for k in 0..ELEMENTS {
                    let some = match random.usize(..4) {
                        0 if own => handle("MPI_COMM_NULL") as u64,
                        some if own => 0x700 + some as u64,
                        _ => object(random, class),
                    };
                    put(k, width, some);
                }
            }
            Kind::Status => {
                for k in 0..ELEMENTS {
                    let source = one(random, &[0, 1, 4, PROC_NULL as u64, ANY_SOURCE as u64]);
                    put(6 * k, 4, source);
                    put(6 * k + 1, 4, one(random, &[3, 9, ANY_TAG as u64]));
                    put(3 * k + 1, 8, random.usize(..100) as u64);
                    put(6 * k + 4, 4, one(random, &[0, 0, 5]));
                    put(6 * k + 5, 4, one(random, &[0, 0, 1]));
                }
            }
            Kind::String => {
                put(0, 8, u64::from_le_bytes(one(random, &[*b"abc\0    ", *b"abcdef\0 ", *b"\0       "])))
            }
            Kind::Strings => (0..ELEMENTS).for_each(|k| put(k, 8, self.lists[k] as u64)),
            Kind::StringsOfStrings => {
                let list = self.lists.as_ptr() as u64;
                (0..ELEMENTS).for_each(|k| put(k, 8, list));
            }
            Kind::ArgVector => put(0, 8, one(random, &[0, self.lists.as_ptr() as u64])),
            Kind::OutPointer | Kind::OutAttribute => put(0, 8, one(random, &[0, 1, 0x5000])),
            kind if kind.is_number() => {
                let width = if p.ctype.is_wide() { 8 } else { 4 };
                (0..ELEMENTS).for_each(|k| put(k, width, number(random, kind) as u64));
            }
            _ => {}
        }
    }
}
