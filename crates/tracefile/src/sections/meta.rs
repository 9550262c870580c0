//! Section `meta`: what ran, where, when and how it was traced.

use refrain_fold::bundle::MOST_RANKS;

use crate::get::{Bad, Get};
use crate::sections::{read_ranks, write_ranks};
use crate::token::{Field, Put};
use crate::{Memory, Meta};

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

// What follows the notes.
const HAS_MEMORY: u64 = 2;

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
    put.put(Field::Count, 15, if meta.memory.is_some() { HAS_MEMORY } else { 0 });
    if let Some(memory) = &meta.memory {
        let least = memory.min >> 10;
        put.measure(Field::Magnitude, MEMORY, least);
        for more in [memory.mean, memory.max, memory.root] {
            put.measure(Field::Magnitude, MORE_MEMORY, (more >> 10).wrapping_sub(least));
        }
    }
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
    if follows & !HAS_MEMORY != 0 {
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
    Ok(Meta {
        refrain_version,
        command,
        library,
        abi,
        ranks,
        hosts,
        started,
        wall_ns,
        options,
        notes,
        memory,
        ..Meta::default()
    })
}

fn texts(get: &mut Get, count: u64, hint: u64) -> Result<Vec<String>, Bad> {
    (0..get.count(Field::Count, count)?).map(|_| get.text(hint)).collect()
}
