//! Section `streams`: the distinct streams, terms where they are first met in the shape.

use std::collections::HashMap;
use std::convert::Infallible;

use refrain_fold::bundle::{Bundle, Cohort, Structure, SymbolEntry, normal};
use refrain_fold::grammar::{Grammar, Item, Symbol};
use refrain_fold::stream::{Block, DEEPEST, Rows, Stream, Term};

use crate::container::{Apart, Kind};
use crate::get::{Bad, Get};
use crate::sections::cohorts::layouts;
use crate::sections::pools::{self, Pools, Uses};
use crate::token::{Field, Put, pair, two};

// Steps. Known terms and rules take turns from `KNOWN` on, or from `KNOWN_WITH_BLOCKS` if the file has blocks.
const END: u64 = 0;
const NEW_VALUE: u64 = 1;
const NEW_STRIDE: u64 = 2;
const NEW_RULE: u64 = 3;
const KNOWN: u64 = 4;
const NEW_PACKED: u64 = 4;
/// So many packed numbers are none: they are rows.
const ROWS: u64 = 0;
const NEW_RUNNING: u64 = 5;
const KNOWN_WITH_BLOCKS: u64 = 6;

/// The first place that uses a stream.
#[derive(Clone, Copy)]
struct Use {
    hint: u64,
    symbol: u32,
    lane: u16,
}

/// For each stream, where it is used first.
fn uses(count: usize, cohorts: &[Cohort], structures: &[Structure], symbols: &[SymbolEntry]) -> Vec<Use> {
    let layouts = layouts(structures, symbols);
    let mut uses = vec![Use { hint: 0, symbol: u32::MAX, lane: 0 }; count];
    for cohort in cohorts {
        let Some(layout) = layouts.get(cohort.structure as usize) else { continue };
        for (place, streams) in layout.places(symbols).zip(&cohort.lanes) {
            for stream in streams.streams() {
                if let Some(slot) = uses.get_mut(stream as usize).filter(|slot| slot.hint == 0) {
                    let hint = two(pair(place.head, place.lane.into()), place.head);
                    *slot = Use { hint, symbol: place.symbol, lane: place.lane };
                }
            }
        }
    }
    uses
}

/// What streams begin near: calls that differ in nothing but their place in the program mostly have numbers near each other.
struct Near<'a> {
    symbols: &'a [SymbolEntry],
    /// By the bytes of a symbol and its lane.
    last: HashMap<(&'a [u8], u16), Last>,
}

/// The last stream of a lane.
struct Last {
    symbol: u32,
    /// If it has but one.
    number: Option<i64>,
}

impl<'a> Near<'a> {
    fn new(symbols: &'a [SymbolEntry]) -> Near<'a> {
        Near { symbols, last: HashMap::new() }
    }

    fn key(&self, of: Use) -> Option<(&'a [u8], u16)> {
        Some((&self.symbols.get(of.symbol as usize)?.bytes, of.lane))
    }

    /// What the first number of a stream is told from; 0 where nothing is near.
    fn to(&self, of: Use) -> i64 {
        match self.key(of).and_then(|key| self.last.get(&key)) {
            Some(&Last { symbol, number: Some(number) }) if symbol != of.symbol => number,
            _ => 0,
        }
    }

    fn next(&mut self, of: Use, stream: &Stream) {
        if let Some(key) = self.key(of) {
            self.last.insert(key, Last { symbol: of.symbol, number: stream.as_constant() });
        }
    }
}

/// Adds to a stream's first term, if that is a value.
fn shift(stream: &mut Stream, by: i64) {
    if let Some(Term::Value(value)) = stream.terms.first_mut() {
        *value = value.wrapping_add(by);
    }
}

fn known(with_blocks: bool) -> u64 {
    if with_blocks { KNOWN_WITH_BLOCKS } else { KNOWN }
}

fn has_blocks(bundle: &Bundle, pools: &Pools) -> bool {
    alone_of(bundle, pools).any(|stream| !stream.blocks.is_empty())
}

/// Those that are not told with others.
fn alone_of<'a>(bundle: &'a Bundle, pools: &'a Pools) -> impl Iterator<Item = &'a Stream> {
    of_calls(bundle).iter().enumerate().filter(|(at, _)| !pools.has(*at)).map(|(_, stream)| stream)
}

/// How many of the streams, the first ones, are not of side lanes alone.
fn used_by_calls(bundle: &Bundle) -> usize {
    if bundle.cohorts.iter().all(|cohort| cohort.sides.is_empty()) {
        return bundle.streams.len();
    }
    let used = bundle.cohorts.iter().flat_map(|cohort| &cohort.lanes).flat_map(|lane| lane.streams());
    used.max().map_or(0, |last| (last as usize + 1).min(bundle.streams.len()))
}

fn of_calls(bundle: &Bundle) -> &[Stream] {
    &bundle.streams[..used_by_calls(bundle)]
}

/// Those of side lanes alone, and the bytes of what is packed in them.
pub fn write_rest(put: &mut Put, bundle: &Bundle) -> Vec<u8> {
    let rest = &bundle.streams[used_by_calls(bundle)..];
    let mut bytes = Vec::new();
    put.put(Field::Count, 20, rest.len() as u64);
    for stream in rest {
        let stream = normal(stream);
        write_one(put, &stream, 0, known(true));
        let Ok(()) = put_packed(&stream, &mut |packed: &[u8]| {
            bytes.extend_from_slice(packed);
            Ok::<(), Infallible>(())
        });
    }
    bytes
}

/// Reads these; all of `packed` must be theirs.
pub fn read_rest(get: &mut Get, packed: &[u8]) -> Result<Vec<Stream>, Bad> {
    let mut packed = Some(packed);
    let count = get.count(Field::Count, 20)?;
    let streams = (0..count).map(|_| read_one(get, 0, &mut packed, 0)).collect::<Result<_, Bad>>()?;
    match packed {
        Some([]) => Ok(streams),
        _ => Err(Bad::new("there are more blocks than its streams have")),
    }
}

/// Section `blocks`: the packed numbers of all streams in the order in which the streams mention them. `None` if it is
/// not there.
pub fn about_blocks(bundle: &Bundle, pools: &Pools) -> Option<Apart> {
    has_blocks(bundle, pools).then(|| {
        let (mut length, mut crc) = (0, crc32fast::Hasher::new());
        let Ok(()) = blocks(bundle, pools, &mut |bytes: &[u8]| {
            length += bytes.len();
            crc.update(bytes);
            Ok::<(), Infallible>(())
        });
        Apart { kind: Kind::Blocks, length, crc: crc.finalize() }
    })
}

/// Its bytes, piece by piece.
pub fn blocks<E>(
    bundle: &Bundle,
    pools: &Pools,
    out: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let with = alone_of(bundle, pools).filter(|stream| !stream.blocks.is_empty());
    with.into_iter().try_for_each(|stream| put_packed(&normal(stream), out))
}

fn put_packed<E>(stream: &Stream, out: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    stream.blocks.iter().try_for_each(|block| match block {
        Block::Packed { bytes, .. } => out(bytes),
        Block::Running { .. } => Ok(()),
        Block::Rows { rows, .. } => {
            put_packed(&normal(&rows.starts), out)?;
            put_packed(&normal(&rows.counts), out)
        }
    })
}

pub fn write(put: &mut Put, bundle: &Bundle, pools: &Pools) {
    let streams = of_calls(bundle);
    put.put(Field::Count, 5, streams.len() as u64);
    let known = known(has_blocks(bundle, pools));
    let uses = uses(streams.len(), &bundle.cohorts, &bundle.structures, &bundle.symbols);
    let mut near = Near::new(&bundle.symbols);
    for (at, (stream, of)) in streams.iter().zip(uses).enumerate() {
        if pools.has(at) {
            put.put(Field::Shape, of.hint, END);
            continue;
        }
        let mut told = normal(stream);
        let by = near.to(of).wrapping_neg();
        near.next(of, &told);
        shift(&mut told, by);
        write_one(put, &told, of.hint, known);
    }
    pools.write(put, bundle);
}

pub fn read(
    get: &mut Get,
    blocks: &mut Option<&[u8]>,
    cohorts: &[Cohort],
    structures: &[Structure],
    symbols: &[SymbolEntry],
) -> Result<Vec<Stream>, Bad> {
    let count = get.count(Field::Count, 5)?;
    let uses = uses(count, cohorts, structures, symbols);
    let mut near = Near::new(symbols);
    let mut streams = Vec::with_capacity(uses.len());
    for of in uses {
        let mut stream = read_one(get, of.hint, blocks, 0)?;
        if !pools::is_elsewhere(&stream) {
            shift(&mut stream, near.to(of));
            near.next(of, &stream);
        }
        streams.push(stream);
    }
    pools::read(get, &mut streams, &Uses { cohorts, structures, symbols })?;
    Ok(streams)
}

fn write_one(put: &mut Put, stream: &Stream, hint: u64, known: u64) {
    let (mut terms, mut rules) = (0, 1);
    let mut open = vec![(0usize, 0usize)];
    while let Some((rule, at)) = open.last_mut() {
        let Some(item) = stream.shape.rules.get(*rule).and_then(|r| r.get(*at)) else {
            put.put(Field::Shape, hint, END);
            open.pop();
            continue;
        };
        *at += 1;
        let mut inner = None;
        match item.symbol {
            Symbol::Terminal(t) if t == terms => {
                terms += 1;
                match stream.terms[t as usize] {
                    Term::Value(value) => {
                        put.put(Field::Shape, hint, NEW_VALUE);
                        put.signed(Field::Value, hint, value);
                    }
                    Term::Stride { start, step, count } => {
                        put.put(Field::Shape, hint, NEW_STRIDE);
                        put.signed(Field::Value, hint, start);
                        put.signed(Field::Step, hint, step);
                        put.put(Field::StrideCount, hint, count);
                    }
                    Term::Block(block) => match &stream.blocks[block as usize] {
                        Block::Packed { count, bytes } => {
                            put.put(Field::Shape, hint, NEW_PACKED);
                            put.put(Field::Count, 6, (*count).into());
                            put.put(Field::Count, 7, bytes.len() as u64);
                        }
                        Block::Running { count, steps } => {
                            put.put(Field::Shape, hint, NEW_RUNNING);
                            put.put(Field::Count, 8, *count);
                            write_one(put, &normal(steps), hint, known);
                        }
                        Block::Rows { count, rows } => {
                            put.put(Field::Shape, hint, NEW_PACKED);
                            put.put(Field::Count, 6, ROWS);
                            put.put(Field::Count, 8, *count);
                            put.signed(Field::Step, hint, rows.step);
                            write_one(put, &normal(&rows.starts), hint, known);
                            write_one(put, &normal(&rows.counts), hint, known);
                        }
                    },
                }
            }
            Symbol::Terminal(t) => put.put(Field::Shape, hint, known + 2 * u64::from(t)),
            Symbol::Rule(r) if r == rules => {
                rules += 1;
                put.put(Field::Shape, hint, NEW_RULE);
                inner = Some(r as usize);
            }
            Symbol::Rule(r) => put.put(Field::Shape, hint, known + 1 + 2 * u64::from(r)),
        }
        put.put(Field::ShapeCount, hint, item.count.wrapping_sub(1));
        if let Some(rule) = inner {
            open.push((rule, 0));
        }
    }
}

/// A stream by itself, plainly; none if it has packed numbers.
pub fn alone(stream: &Stream) -> Option<Vec<u8>> {
    (!has_packed(stream)).then(|| {
        let mut put = Put::default();
        write_one(&mut put, &normal(stream), 0, KNOWN_WITH_BLOCKS);
        crate::plain(&put.tokens)
    })
}

fn has_packed(stream: &Stream) -> bool {
    stream.blocks.iter().any(|block| match block {
        Block::Packed { .. } => true,
        Block::Running { steps, .. } => has_packed(steps),
        Block::Rows { rows, .. } => has_packed(&rows.starts) || has_packed(&rows.counts),
    })
}

/// The same back, validated.
pub fn from_alone(bytes: &[u8]) -> Result<Stream, Bad> {
    let mut get = Get::plain(bytes);
    let stream = read_one(&mut get, 0, &mut Some(&[]), 0)?;
    if get.left() > 0 {
        return Err(Bad::new("a stream goes on after its end"));
    }
    stream.validate().map_err(|error| Bad(error.to_string()))?;
    Ok(stream)
}

/// Blocks are made of streams that have no deep nest of blocks.
fn read_one(get: &mut Get, hint: u64, packed: &mut Option<&[u8]>, depth: usize) -> Result<Stream, Bad> {
    let known = known(packed.is_some());
    let (mut terms, mut blocks) = (Vec::new(), Vec::new());
    let mut rules: Vec<Vec<Item>> = vec![Vec::new()];
    let mut open = vec![0usize];
    while let Some(&rule) = open.last() {
        let symbol = match get.get(Field::Shape, hint)? {
            END => {
                open.pop();
                continue;
            }
            NEW_VALUE => {
                terms.push(Term::Value(get.signed(Field::Value, hint)?));
                Symbol::Terminal(terms.len() as u32 - 1)
            }
            NEW_STRIDE => {
                terms.push(Term::Stride {
                    start: get.signed(Field::Value, hint)?,
                    step: get.signed(Field::Step, hint)?,
                    count: get.get(Field::StrideCount, hint)?,
                });
                Symbol::Terminal(terms.len() as u32 - 1)
            }
            NEW_RULE => {
                rules.push(Vec::new());
                open.push(rules.len() - 1);
                Symbol::Rule(rules.len() as u32 - 1)
            }
            NEW_PACKED | NEW_RUNNING if packed.is_some() && depth >= DEEPEST => {
                return Err(Bad::new("blocks inside blocks inside blocks"));
            }
            NEW_PACKED if packed.is_some() => {
                let count: u32 = get.small(Field::Count, 6)?;
                if u64::from(count) == ROWS {
                    let count = get.get(Field::Count, 8)?;
                    let step = get.signed(Field::Step, hint)?;
                    let starts = read_one(get, hint, packed, depth + 1)?;
                    let counts = read_one(get, hint, packed, depth + 1)?;
                    blocks.push(Block::Rows { count, rows: Box::new(Rows { step, starts, counts }) });
                    terms.push(Term::Block(blocks.len() as u32 - 1));
                    let count = get.get(Field::ShapeCount, hint)?.wrapping_add(1);
                    let symbol = Symbol::Terminal(terms.len() as u32 - 1);
                    rules[rule].push(Item { symbol, count });
                    continue;
                }
                let length = get.small(Field::Count, 7)?;
                let taken = packed.as_mut().and_then(|bytes| bytes.split_off(..length));
                let bytes = taken.ok_or_else(|| Bad::new("a stream has more blocks than there are"))?.into();
                blocks.push(Block::Packed { count, bytes });
                terms.push(Term::Block(blocks.len() as u32 - 1));
                Symbol::Terminal(terms.len() as u32 - 1)
            }
            NEW_RUNNING if packed.is_some() => {
                let count = get.get(Field::Count, 8)?;
                let steps = Box::new(read_one(get, hint, packed, depth + 1)?);
                blocks.push(Block::Running { count, steps });
                terms.push(Term::Block(blocks.len() as u32 - 1));
                Symbol::Terminal(terms.len() as u32 - 1)
            }
            step => {
                let number = (step - known) / 2;
                let (list, symbol) = match (step - known) % 2 {
                    0 => (terms.len(), Symbol::Terminal(number as u32)),
                    _ => (rules.len(), Symbol::Rule(number as u32)),
                };
                if number >= list as u64 {
                    return Err(Bad::new("a stream uses a term or rule before it is there"));
                }
                symbol
            }
        };
        let count = get.get(Field::ShapeCount, hint)?.wrapping_add(1);
        rules[rule].push(Item { symbol, count });
    }
    Ok(Stream { terms, shape: Grammar { rules }, blocks })
}
