//! References to memory, many at a time.

/// References a batch holds at most. Its columns then fit in a first-level cache, or nearly.
pub const BATCH: usize = 4096;

/// What kind of access a reference is: the eight types of PDATS, whose first three are those of dinero.
pub mod kind {
    pub const READ: u8 = 0;
    pub const WRITE: u8 = 1;
    pub const FETCH: u8 = 2;
    /// Of unknown type.
    pub const ESCAPE: u8 = 3;
    pub const SUPERVISOR_READ: u8 = 4;
    pub const SUPERVISOR_WRITE: u8 = 5;
    pub const SUPERVISOR_FETCH: u8 = 6;
    /// Interrupt acknowledge, coprocessor and so on.
    pub const OTHER: u8 = 7;

    /// DineroIV's copy-back and invalidation. Only [`crate::Reader::tell_caches`] makes them. To all others they are [`OTHER`], and no
    /// format keeps them. Like the kinds of no type, they end in two bits set.
    pub const COPY_BACK: u8 = 11;
    pub const INVALIDATE: u8 = 15;

    pub const NAMES: [&str; 8] = [
        "read",
        "write",
        "fetch",
        "escape",
        "supervisor read",
        "supervisor write",
        "supervisor fetch",
        "other",
    ];

    pub fn is_fetch(kind: u8) -> bool {
        kind & 3 == FETCH
    }
}

/// There are so many kinds; they are numbered from 0.
pub const KINDS: usize = 8;

/// What a trace says of each reference besides its kind and address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fields {
    pub times: bool,
    /// Instruction words; 0 for what is not a fetch.
    pub words: bool,
    /// Bytes accessed.
    pub sizes: bool,
    /// RATCHET's mark, set every 65,536 references of the trace before it was filtered.
    pub flags: bool,
    /// Addresses of the instructions that make the references.
    pub pcs: bool,
}

impl Fields {
    pub const NONE: Fields = Fields { times: false, words: false, sizes: false, flags: false, pcs: false };
    pub const NAMES: [&str; 5] = ["times", "words", "sizes", "flags", "pcs"];

    fn array(self) -> [bool; 5] {
        [self.times, self.words, self.sizes, self.flags, self.pcs]
    }

    fn zip(self, other: Fields, both: impl Fn(bool, bool) -> bool) -> Fields {
        let (a, b) = (self.array(), other.array());
        let [times, words, sizes, flags, pcs] = std::array::from_fn(|i| both(a[i], b[i]));
        Fields { times, words, sizes, flags, pcs }
    }

    pub fn and(self, other: Fields) -> Fields {
        self.zip(other, |a, b| a && b)
    }

    pub fn or(self, other: Fields) -> Fields {
        self.zip(other, |a, b| a || b)
    }

    pub fn without(self, other: Fields) -> Fields {
        self.zip(other, |a, b| a && !b)
    }

    pub fn names(self) -> Vec<&'static str> {
        Fields::NAMES
            .into_iter()
            .zip(self.array())
            .filter_map(|(name, there)| there.then_some(name))
            .collect()
    }

    pub fn named(name: &str) -> Option<Fields> {
        let at = Fields::NAMES.iter().position(|known| *known == name)?;
        let [times, words, sizes, flags, pcs] = std::array::from_fn(|i| i == at);
        Some(Fields { times, words, sizes, flags, pcs })
    }
}

/// One reference, where a single one is handy. What a trace does not have is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reference {
    pub kind: u8,
    pub address: u64,
    pub time: u64,
    pub word: u32,
    pub size: u16,
    pub flag: bool,
    pub pc: u64,
}

/// References in columns. `kinds` and `addresses` are as long as the batch; each of the others is so too if the trace
/// has that field, and empty if not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    pub kinds: Vec<u8>,
    pub addresses: Vec<u64>,
    pub times: Vec<u64>,
    pub words: Vec<u32>,
    pub sizes: Vec<u16>,
    pub flags: Vec<bool>,
    pub pcs: Vec<u64>,
    /// Threads, numbered as they come. Only [`crate::Reader::tell_caches`] has them told, and only some formats can.
    pub threads: Vec<u32>,
}

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    pub fn clear(&mut self) {
        self.resize(Fields::NONE, 0);
    }

    /// So many references with these fields; what is new is zeros. Decoders write into the columns, then shorten them.
    pub fn resize(&mut self, fields: Fields, len: usize) {
        let of = |there: bool| if there { len } else { 0 };
        self.kinds.resize(len, 0);
        self.addresses.resize(len, 0);
        self.times.resize(of(fields.times), 0);
        self.words.resize(of(fields.words), 0);
        self.sizes.resize(of(fields.sizes), 0);
        self.flags.resize(of(fields.flags), false);
        self.pcs.resize(of(fields.pcs), 0);
        self.threads.clear();
    }

    /// What a simulation needs of some of the references, in the place of what is in the other batch.
    pub fn copy_part(&self, part: std::ops::Range<usize>, into: &mut Batch) {
        into.clear();
        into.kinds.extend_from_slice(&self.kinds[part.clone()]);
        into.addresses.extend_from_slice(&self.addresses[part.clone()]);
        if !self.sizes.is_empty() {
            into.sizes.extend_from_slice(&self.sizes[part.clone()]);
        }
        if !self.pcs.is_empty() {
            into.pcs.extend_from_slice(&self.pcs[part]);
        }
    }

    pub fn truncate(&mut self, len: usize) {
        self.kinds.truncate(len);
        self.addresses.truncate(len);
        self.times.truncate(len);
        self.words.truncate(len);
        self.sizes.truncate(len);
        self.flags.truncate(len);
        self.pcs.truncate(len);
        self.threads.truncate(len);
    }

    pub(crate) fn remove_first(&mut self, count: usize) {
        if count > 0 {
            self.kinds.drain(..count);
            self.addresses.drain(..count);
            self.times.drain(..count.min(self.times.len()));
            self.words.drain(..count.min(self.words.len()));
            self.sizes.drain(..count.min(self.sizes.len()));
            self.flags.drain(..count.min(self.flags.len()));
            self.pcs.drain(..count.min(self.pcs.len()));
            self.threads.drain(..count.min(self.threads.len()));
        }
    }

    #[inline]
    pub fn push(&mut self, fields: Fields, reference: Reference) {
        self.kinds.push(reference.kind);
        self.addresses.push(reference.address);
        if fields.times {
            self.times.push(reference.time);
        }
        if fields.words {
            self.words.push(reference.word);
        }
        if fields.sizes {
            self.sizes.push(reference.size);
        }
        if fields.flags {
            self.flags.push(reference.flag);
        }
        if fields.pcs {
            self.pcs.push(reference.pc);
        }
    }

    pub fn get(&self, at: usize) -> Reference {
        Reference {
            kind: self.kinds[at],
            address: self.addresses[at],
            time: self.times.get(at).copied().unwrap_or(0),
            word: self.words.get(at).copied().unwrap_or(0),
            size: self.sizes.get(at).copied().unwrap_or(0),
            flag: self.flags.get(at).copied().unwrap_or(false),
            pc: self.pcs.get(at).copied().unwrap_or(0),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Reference> + '_ {
        (0..self.len()).map(|at| self.get(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_name() {
        for name in Fields::NAMES {
            assert_eq!(Fields::named(name).unwrap().names(), [name]);
        }
        assert_eq!(Fields::named("time"), None);
        let (times, sizes) = (Fields::named("times").unwrap(), Fields::named("sizes").unwrap());
        assert_eq!(times.or(sizes).names(), ["times", "sizes"]);
        assert_eq!(times.or(sizes).without(times), sizes);
        assert_eq!(times.and(sizes), Fields::NONE);
    }

    #[test]
    fn what_is_pushed_comes_back() {
        let fields = Fields { times: true, flags: true, ..Fields::NONE };
        let reference = Reference { kind: 7, address: u64::MAX, time: 5, flag: true, ..Reference::default() };
        let mut batch = Batch::new();
        batch.push(fields, reference);
        assert_eq!(batch.iter().collect::<Vec<_>>(), [reference]);
        assert!(batch.sizes.is_empty());
    }
}
