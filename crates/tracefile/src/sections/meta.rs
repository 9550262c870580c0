//! Section `meta`: what ran, where, when and how it was traced.

use refrain_fold::bundle::MOST_RANKS;

use crate::clocks::{Clock, Clocks, Point};
use crate::get::{Bad, Get};
use crate::sections::{flight, read_ranks, write_ranks};
use crate::token::{Field, Put, unzigzag, zigzag};
use crate::{Cores, Memory, Meta};

// Hints: what a text is about.
const VERSION: u64 = 1;
const COMMAND: u64 = 2;
const LIBRARY: u64 = 3;
const ABI: u64 = 4;
const HOST: u64 = 5;
const OPTION: u64 = 6;
const SETTING: u64 = 7;
const NOTE: u64 = 8;

// Hints: what a quantity is.
const STARTED: u64 = 1;
const WALL: u64 = 2;
const MEMORY: u64 = 5;
const MORE_MEMORY: u64 = 6;
const WANDER: u64 = 7;
const RESIDUAL: u64 = 8;
const MOMENT: u64 = 9;
const OFFSET: u64 = 10;
const ERROR: u64 = 11;
const MERGE: u64 = 15;
const SHARE: u64 = 17;

// What follows the notes.
const HAS_MEMORY: u64 = 2;
const HAS_CLOCKS: u64 = 4;
const HAS_FLIGHT: u64 = 8;
const HAS_MERGE: u64 = 16;
const HAS_CORES: u64 = 32;

// What is true of a clock.
const COUNTER: u64 = 1;
const MONOTONIC: u64 = 2;
const COMPARED_TWICE: u64 = 4;

/// The three truth values of `Meta` are flags of the header.
pub fn write(put: &mut Put, meta: &Meta) {
    put.text(VERSION, &meta.refrain_version);
    put.put(Field::Count, 10, meta.command.len() as u64);
    meta.command.iter().for_each(|word| put.text(COMMAND, word));
    put.text(LIBRARY, &meta.library);
    put.text(ABI, &meta.abi);
    put.put(Field::Count, 11, meta.ranks.into());
    put.put(Field::Count, 12, meta.hosts.len() as u64);
    for (host, ranks) in &meta.hosts {
        put.text(HOST, host);
        write_ranks(put, ranks, 0);
    }
    put.measure(Field::Magnitude, STARTED, meta.started);
    put.measure(Field::Magnitude, WALL, meta.wall_ns);
    put.put(Field::Count, 13, meta.options.len() as u64);
    for (option, setting) in &meta.options {
        put.text(OPTION, option);
        put.text(SETTING, setting);
    }
    put.put(Field::Count, 14, meta.notes.len() as u64);
    meta.notes.iter().for_each(|note| put.text(NOTE, note));
    let memory = if meta.memory.is_some() { HAS_MEMORY } else { 0 };
    let clocks = if meta.clocks.is_some() { HAS_CLOCKS } else { 0 };
    let flying = if meta.flight.is_empty() { 0 } else { HAS_FLIGHT };
    let merge = if meta.merge_ms.is_some() { HAS_MERGE } else { 0 };
    let cores = if meta.cores.is_empty() { 0 } else { HAS_CORES };
    put.put(Field::Count, 15, memory | clocks | flying | merge | cores);
    if let Some(memory) = &meta.memory {
        let least = memory.min >> 10;
        put.measure(Field::Magnitude, MEMORY, least);
        for more in [memory.mean, memory.max, memory.root] {
            put.measure(Field::Magnitude, MORE_MEMORY, (more >> 10).wrapping_sub(least));
        }
    }
    if let Some(Clocks { clocks }) = &meta.clocks {
        put.put(Field::Count, 16, clocks.len() as u64);
        clocks.iter().for_each(|clock| write_clock(put, clock));
    }
    if !meta.flight.is_empty() {
        flight::write(put, &meta.flight);
    }
    if let Some(milliseconds) = meta.merge_ms {
        put.measure(Field::Magnitude, MERGE, milliseconds);
    }
    if !meta.cores.is_empty() {
        put.put(Field::Count, 36, meta.cores.len() as u64);
        for Cores { ranks, each, sharing, thousandths } in &meta.cores {
            write_ranks(put, ranks, 0);
            put.put(Field::Count, 37, u64::from(*each));
            put.put(Field::Count, 38, u64::from(*sharing));
            put.measure(Field::Magnitude, SHARE, *thousandths);
        }
    }
}

fn write_clock(put: &mut Put, clock: &Clock) {
    let Clock { ranks, counter, monotonic, wander, residual, start, end } = clock;
    write_ranks(put, ranks, 0);
    let flags = [(*counter, COUNTER), (*monotonic, MONOTONIC), (start != end, COMPARED_TWICE)];
    put.put(Field::Count, 17, flags.iter().filter(|(on, _)| *on).map(|(_, flag)| flag).sum());
    put.measure(Field::Magnitude, WANDER, *wander);
    put.measure(Field::Magnitude, RESIDUAL, *residual);
    // The second point as what has changed since the first.
    let mut before = Point::default();
    for point in [start, end].into_iter().take(if start == end { 1 } else { 2 }) {
        let offset = |point: &Point| point.common.wrapping_sub(point.at);
        let change = offset(point).wrapping_sub(offset(&before));
        put.measure(Field::Magnitude, MOMENT, point.at.wrapping_sub(before.at));
        put.measure(Field::Magnitude, OFFSET, zigzag(change as i64));
        put.measure(Field::Magnitude, ERROR, point.error);
        before = *point;
    }
}

fn read_clock(get: &mut Get, left: &mut u64) -> Result<Clock, Bad> {
    let ranks = read_ranks(get, 0, left)?.ranks;
    let flags = get.get(Field::Count, 17)?;
    if flags > (COUNTER | MONOTONIC | COMPARED_TWICE) {
        return Err(Bad::new("a clock with something unknown"));
    }
    let wander = get.measure(Field::Magnitude, WANDER)?;
    let residual = get.measure(Field::Magnitude, RESIDUAL)?;
    let mut point = |before: Point| -> Result<Point, Bad> {
        let at = before.at.wrapping_add(get.measure(Field::Magnitude, MOMENT)?);
        let change = unzigzag(get.measure(Field::Magnitude, OFFSET)?) as u64;
        let common = at.wrapping_add(before.common.wrapping_sub(before.at)).wrapping_add(change);
        Ok(Point { at, common, error: get.measure(Field::Magnitude, ERROR)? })
    };
    let start = point(Point::default())?;
    let end = if flags & COMPARED_TWICE == 0 { start } else { point(start)? };
    let (counter, monotonic) = (flags & COUNTER != 0, flags & MONOTONIC != 0);
    Ok(Clock { ranks, counter, monotonic, wander, residual, start, end })
}

pub fn read(get: &mut Get) -> Result<Meta, Bad> {
    let refrain_version = get.text(VERSION)?;
    let command = texts(get, 10, COMMAND)?;
    let library = get.text(LIBRARY)?;
    let abi = get.text(ABI)?;
    let ranks: u32 = get.small(Field::Count, 11)?;
    let mut hosts = Vec::new();
    let mut left = MOST_RANKS;
    for _ in 0..get.count(Field::Count, 12)? {
        hosts.push((get.text(HOST)?, read_ranks(get, 0, &mut left)?.ranks));
    }
    // Readers have a table row for each; a file of a hundred bytes must not make them fill the memory.
    if u64::from(ranks) > MOST_RANKS {
        return Err(Bad(format!("more than {MOST_RANKS} ranks")));
    }
    let started = get.measure(Field::Magnitude, STARTED)?;
    let wall_ns = get.measure(Field::Magnitude, WALL)?;
    let mut options = Vec::new();
    for _ in 0..get.count(Field::Count, 13)? {
        options.push((get.text(OPTION)?, get.text(SETTING)?));
    }
    let notes = texts(get, 14, NOTE)?;
    let follows = get.get(Field::Count, 15)?;
    if follows & !(HAS_MEMORY | HAS_CLOCKS | HAS_FLIGHT | HAS_MERGE | HAS_CORES) != 0 {
        return Err(Bad::new("it goes on with something unknown"));
    }
    let mut memory = None;
    if follows & HAS_MEMORY != 0 {
        let least = get.measure(Field::Magnitude, MEMORY)?;
        let mut more = || -> Result<_, Bad> {
            let more = get.measure(Field::Magnitude, MORE_MEMORY)?;
            Ok(least.wrapping_add(more).wrapping_mul(1 << 10))
        };
        let min = least.wrapping_mul(1 << 10);
        memory = Some(Memory { min, mean: more()?, max: more()?, root: more()? });
    }
    let mut clocks = None;
    if follows & HAS_CLOCKS != 0 {
        let mut left = MOST_RANKS;
        let count = get.count(Field::Count, 16)?;
        let list: Result<_, Bad> = (0..count).map(|_| read_clock(get, &mut left)).collect();
        clocks = Some(Clocks { clocks: list? });
    }
    let flight = if follows & HAS_FLIGHT != 0 { flight::read(get)? } else { Vec::new() };
    let merge_ms = if follows & HAS_MERGE != 0 { Some(get.measure(Field::Magnitude, MERGE)?) } else { None };
    let mut cores = Vec::new();
    if follows & HAS_CORES != 0 {
        let mut left = MOST_RANKS;
        for _ in 0..get.count(Field::Count, 36)? {
            let ranks = read_ranks(get, 0, &mut left)?.ranks;
            let (each, sharing) = (get.small(Field::Count, 37)?, get.small(Field::Count, 38)?);
            cores.push(Cores { ranks, each, sharing, thousandths: get.measure(Field::Magnitude, SHARE)? });
        }
    }
    Ok(Meta {
        refrain_version,
        command,
        library,
        abi,
        ranks,
        hosts,
        cores,
        started,
        wall_ns,
        options,
        notes,
        memory,
        merge_ms,
        clocks,
        flight,
        ..Meta::default()
    })
}

fn texts(get: &mut Get, count: u64, hint: u64) -> Result<Vec<String>, Bad> {
    (0..get.count(Field::Count, count)?).map(|_| get.text(hint)).collect()
}
