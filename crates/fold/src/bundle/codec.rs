//! Bytes for transport between the ranks of one run: plain varints, no entropy coding, no versions (both ends are the
//! same build). Files have a format of their own.

use crate::grammar::{Grammar, Item, Symbol};
use crate::loops::{Loops, Node};
use crate::ranks::{Dim, MapPart, Part, RankList, RankMap};
use crate::stream::{Block, DEEPEST, Rows, Stream, Term};

use super::rules::Sealed;
use super::{Error, Structure};

/// Appends values to a byte string.
#[derive(Debug, Default)]
pub struct Out {
    /// What was written until now.
    pub bytes: Vec<u8>,
}

impl Out {
    /// Seven bits a byte, lowest first, the top bit set on all but the last.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// A number that may be negative: zigzag, then as [`Out::number`].
    pub fn signed(&mut self, number: i64) {
        self.number(zigzag(number));
    }

    /// Sixteen bytes, little-endian.
    pub fn wide(&mut self, number: u128) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// The length, then the bytes.
    pub fn block(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// The length, then each element.
    pub fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Out, &T)) {
        self.number(list.len() as u64);
        for entry in list {
            each(self, entry);
        }
    }

    /// Numbers that tend to grow by one: each as its distance from the one expected.
    pub fn indices(&mut self, list: &[u32]) {
        let mut expected = 0;
        self.list(list, |out, &index| {
            out.signed(i64::from(index) - expected);
            expected = i64::from(index) + 1;
        });
    }

    /// Rules of items.
    pub fn grammar(&mut self, grammar: &Grammar) {
        self.list(&grammar.rules, |out, rule| {
            out.list(rule, |out, item| {
                let (kind, index) = match item.symbol {
                    Symbol::Terminal(t) => (0, t),
                    Symbol::Rule(r) => (1, r),
                };
                out.number(u64::from(index) << 1 | kind);
                out.number(item.count);
            });
        });
    }

    /// Rules or loops, with a byte that says which.
    pub fn structure(&mut self, structure: &Structure) {
        match structure {
            Structure::Rules(rules) => match rules.sealed() {
                None => {
                    self.number(0);
                    self.grammar(rules);
                }
                Some(sealed) => {
                    self.number(2);
                    sealed.put(self);
                }
            },
            Structure::Loops(loops) => {
                self.number(1);
                self.list(&loops.nodes, |out, node| match *node {
                    Node::Event(symbol) => out.number(u64::from(symbol) << 1),
                    Node::Loop { inside } => out.number(u64::from(inside) << 1 | 1),
                });
            }
        }
    }

    /// Terms, shape and blocks.
    pub fn stream(&mut self, stream: &Stream) {
        self.list(&stream.terms, |out, term| match *term {
            Term::Value(value) => {
                out.number(0);
                out.signed(value);
            }
            Term::Stride { start, step, count } => {
                out.number(1);
                out.signed(start);
                out.signed(step);
                out.number(count);
            }
            Term::Block(block) => {
                out.number(2);
                out.number(block.into());
            }
        });
        self.grammar(&stream.shape);
        self.list(&stream.blocks, |out, block| match block {
            Block::Packed { count, bytes } => {
                out.number(u64::from(*count) << 1);
                out.block(bytes);
            }
            Block::Running { count, steps } => {
                out.number(1);
                out.number(*count);
                out.stream(steps);
            }
            Block::Rows { count, rows } => {
                out.number(3);
                out.number(*count);
                out.signed(rows.step);
                out.stream(&rows.starts);
                out.stream(&rows.counts);
            }
        });
    }

    /// The parts of the list.
    pub fn ranks(&mut self, ranks: &RankList) {
        self.list(&ranks.parts, |out, part| {
            out.number(part.start.into());
            out.list(&part.dims, |out, &(count, stride)| {
                out.number(count.into());
                out.number(stride.into());
            });
        });
    }
}

impl Out {
    /// The parts of the function, of ranks as they are.
    pub fn rank_map(&mut self, map: &RankMap) {
        self.list(&map.plain().parts, |out, part| {
            out.number(part.start.into());
            out.signed(part.value);
            out.list(&part.dims, |out, dim| {
                out.number(dim.count.into());
                out.number(dim.stride.into());
                out.signed(dim.step);
            });
        });
    }
}

/// Reads them back; safe on any bytes.
#[derive(Debug)]
pub struct In<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> In<'a> {
    /// From the first byte on.
    pub fn new(bytes: &'a [u8]) -> In<'a> {
        In { bytes, at: 0 }
    }

    /// All was read: bytes that are left are an error.
    pub fn end(self) -> Result<(), Error> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(Error::Trailing { at: self.at }) }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or(Error::Truncated { at: self.bytes.len() })?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// What [`Out::number`] wrote.
    pub fn number(&mut self) -> Result<u64, Error> {
        let at = self.at;
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(Error::Number { at });
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Error::Number { at })
    }

    /// The same for a smaller type; too large is an error.
    pub fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Error> {
        let at = self.at;
        T::try_from(self.number()?).map_err(|_| Error::Number { at })
    }

    /// What [`Out::signed`] wrote.
    pub fn signed(&mut self) -> Result<i64, Error> {
        self.number().map(unzigzag)
    }

    /// What [`Out::wide`] wrote.
    pub fn wide(&mut self) -> Result<u128, Error> {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(self.take(16)?);
        Ok(u128::from_le_bytes(bytes))
    }

    /// What [`Out::block`] wrote, lent.
    pub fn block(&mut self) -> Result<&'a [u8], Error> {
        let len = self.count(1)?;
        self.take(len)
    }

    /// How many elements follow, at least `least` bytes each: never more than can be there.
    fn count(&mut self, least: usize) -> Result<usize, Error> {
        let at = self.at;
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(n) if n <= (self.bytes.len() - self.at) / least => Ok(n),
            _ => Err(Error::Count { at, count }),
        }
    }

    /// What [`Out::list`] wrote. The length is held against the bytes that are left before room is made.
    pub fn list<T>(
        &mut self,
        mut each: impl FnMut(&mut In<'a>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let count = self.count(1)?;
        (0..count).map(|_| each(self)).collect()
    }

    /// What [`Out::indices`] wrote.
    pub fn indices(&mut self) -> Result<Vec<u32>, Error> {
        let mut expected = 0i64;
        self.list(|from| {
            let at = from.at;
            let index = from.signed()?.checked_add(expected).and_then(|i| u32::try_from(i).ok());
            let index = index.ok_or(Error::Number { at })?;
            expected = i64::from(index) + 1;
            Ok(index)
        })
    }

    /// What [`Out::grammar`] wrote. It is not yet validated.
    pub fn grammar(&mut self) -> Result<Grammar, Error> {
        let rules = self.list(|from| {
            from.list(|from| {
                let at = from.at;
                let head = from.number()?;
                let index = u32::try_from(head >> 1).map_err(|_| Error::Number { at })?;
                let symbol = if head & 1 == 0 { Symbol::Terminal(index) } else { Symbol::Rule(index) };
                Ok(Item { symbol, count: from.number()? })
            })
        })?;
        Ok(Grammar { rules })
    }

    /// What [`Out::structure`] wrote. It is not yet validated.
    pub fn structure(&mut self) -> Result<Structure, Error> {
        let at = self.at;
        match self.number()? {
            0 => Ok(self.grammar()?.into()),
            2 => Ok(Structure::Rules(Sealed::take(self)?.into())),
            1 => {
                let nodes = self.list(|from| {
                    let at = from.at;
                    let head = from.number()?;
                    let number = u32::try_from(head >> 1).map_err(|_| Error::Number { at })?;
                    Ok(if head & 1 == 0 { Node::Event(number) } else { Node::Loop { inside: number } })
                })?;
                Ok(Structure::Loops(Loops { nodes }))
            }
            other => Err(Error::Variant { at, byte: other as u8 }),
        }
    }

    /// What [`Out::stream`] wrote. It is not yet validated.
    pub fn stream(&mut self) -> Result<Stream, Error> {
        self.nested_stream(0)
    }

    /// Blocks are made of streams that have no deep nest of blocks.
    fn nested_stream(&mut self, depth: usize) -> Result<Stream, Error> {
        let terms = self.list(|from| {
            let at = from.at;
            match from.number()? {
                0 => Ok(Term::Value(from.signed()?)),
                1 => Ok(Term::Stride { start: from.signed()?, step: from.signed()?, count: from.number()? }),
                2 => Ok(Term::Block(from.small()?)),
                other => Err(Error::Variant { at, byte: other as u8 }),
            }
        })?;
        let shape = self.grammar()?;
        let blocks = self.list(|from| {
            let at = from.at;
            let head = from.number()?;
            if head & 1 == 0 {
                let count = u32::try_from(head >> 1).map_err(|_| Error::Number { at })?;
                return Ok(Block::Packed { count, bytes: from.block()?.into() });
            }
            if head > 3 || depth >= DEEPEST {
                return Err(Error::Variant { at, byte: head as u8 });
            }
            let count = from.number()?;
            if head == 1 {
                return Ok(Block::Running { count, steps: Box::new(from.nested_stream(depth + 1)?) });
            }
            let step = from.signed()?;
            let (starts, counts) = (from.nested_stream(depth + 1)?, from.nested_stream(depth + 1)?);
            Ok(Block::Rows { count, rows: Box::new(Rows { step, starts, counts }) })
        })?;
        Ok(Stream { terms, shape, blocks })
    }

    /// What [`Out::ranks`] wrote. It is not yet validated.
    pub fn ranks(&mut self) -> Result<RankList, Error> {
        let parts = self.list(|from| {
            let start = from.small()?;
            let dims = from.list(|from| Ok((from.small()?, from.small()?)))?;
            Ok(Part { start, dims })
        })?;
        Ok(RankList { parts })
    }
}

impl In<'_> {
    /// What [`Out::rank_map`] wrote. It is not yet validated.
    pub fn rank_map(&mut self) -> Result<RankMap, Error> {
        let parts = self.list(|from| {
            let (start, value) = (from.small()?, from.signed()?);
            let dim =
                |from: &mut In| Ok(Dim { count: from.small()?, stride: from.small()?, step: from.signed()? });
            Ok(MapPart { start, value, dims: from.list(dim)? })
        })?;
        Ok(RankMap::plainly(parts))
    }
}

/// Small numbers of either sign as small numbers: 0, -1, 1, -2, 2, ...
pub fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// The number that [`zigzag`] was given.
pub fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
