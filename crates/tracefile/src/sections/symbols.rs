//! Section `symbols`: what the structures' terminals stand for.

use refrain_fold::bundle::{SymbolEntry, Tally};

use crate::get::{Bad, Get};
use crate::token::{Field, Put, pair, two};

pub fn write(put: &mut Put, symbols: &[SymbolEntry]) {
    put.put(Field::Count, 2, symbols.len() as u64);
    for symbol in symbols {
        put.put(Field::SymbolLength, 0, symbol.bytes.len() as u64);
        for (at, &byte) in symbol.bytes.iter().enumerate() {
            put.put(Field::SymbolByte, place(at, &symbol.bytes), byte.into());
        }
        put.put(Field::SymbolLanes, head(&symbol.bytes).into(), symbol.lanes.into());
    }
}

/// Tallies and sites are in sections of their own and still zero.
pub fn read(get: &mut Get) -> Result<Vec<SymbolEntry>, Bad> {
    let count = get.count(Field::Count, 2)?;
    let mut symbols = Vec::new();
    for _ in 0..count {
        let len = get.count(Field::SymbolLength, 0)?;
        let mut bytes = Vec::new();
        for at in 0..len {
            bytes.push(get.small(Field::SymbolByte, place(at, &bytes))?);
        }
        let lanes = get.small(Field::SymbolLanes, head(&bytes).into())?;
        let tally = Tally { total: 0, min: 0, max: 0 };
        symbols.push(SymbolEntry { bytes: bytes.into(), site: 0, lanes, tally, classes: Default::default() });
    }
    Ok(symbols)
}

/// Symbols that begin alike tend to go on alike: a byte depends on how far in it is, and on the first one.
fn place(at: usize, before: &[u8]) -> u64 {
    two(pair(at.min(0xffff) as u32, if at == 0 { 0 } else { before[0].into() }), at.min(0xffff) as u32)
}

pub fn head(bytes: &[u8]) -> u32 {
    bytes.iter().take(2).fold(1, |sum, &b| sum << 8 | u32::from(b))
}
