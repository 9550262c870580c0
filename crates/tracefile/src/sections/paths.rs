//! Section `paths`: how the times of each call after another are distributed. It is packed by itself, so that the other
//! sections are the same with it and without.

use refrain_times::paths::{Before, HIGHEST, Histogram, Path, Paths};

use crate::get::{Bad, Get, varint};
use crate::pack::{Decoder, Encoder};
use crate::sections::tallies::{get_digits, near, put_digits};
use crate::token::{Field, Put, bits, plain_len};
use crate::{MARGIN, RATIO};

/// So many bits below the highest are kept of a count: it is wrong by at most one part in 16.
const KEPT: u32 = 3;
/// The total is told as what the levels say and so many parts in this more or less.
const PARTS: i128 = 128;

// Hints of what came before: how many paths a symbol has, the first of them, and the others.
const PATHS: u64 = 0;
const FIRST: u64 = 1;
const OTHER: u64 = 2;

// Of a level: how many there are, and the first, of durations and of gaps.
const LEVELS: u64 = 0;
const LOWEST: u64 = 2;

/// Paths as they can be written.
pub fn settle(paths: &mut Paths) {
    for path in paths.0.values_mut() {
        for histogram in [&mut path.duration, &mut path.gap] {
            histogram.counts.iter_mut().for_each(|count| *count = near(*count, KEPT));
            let told = histogram.estimate();
            histogram.total = total(told, parts(told, histogram.total));
        }
    }
}

/// How far a total is from what its levels say.
fn parts(told: u64, total: u64) -> i64 {
    let told = i128::from(told.max(1));
    let (more, half) = ((i128::from(total) - told) * PARTS, told / 2);
    let nearest = (more + if more < 0 { -half } else { half }) / told;
    nearest.clamp(-PARTS, 1 << 40) as i64
}

fn total(told: u64, parts: i64) -> u64 {
    let more = i128::from(told.max(1)) * i128::from(parts);
    let more = (more + if more < 0 { -PARTS / 2 } else { PARTS / 2 }) / PARTS;
    u64::try_from(i128::from(told.max(1)) + more).unwrap_or(u64::MAX)
}

pub fn write(paths: &Paths, symbols: usize) -> Vec<u8> {
    let put = tokens(paths, symbols);
    let length: usize = put.tokens.iter().map(|token| plain_len(token.field, token.value)).sum();
    let mut bytes = Vec::new();
    crate::container::number(&mut bytes, length as u64);
    let mut encoder = Encoder::new(crate::primed(length));
    put.tokens.iter().for_each(|token| encoder.token(token));
    bytes.extend(encoder.finish());
    let least = length.saturating_sub(MARGIN).div_ceil(RATIO);
    bytes.resize(bytes.len().max(least), 0);
    bytes
}

/// What came before as a number: nothing, the symbols, others.
fn number(before: Before, symbols: usize) -> u64 {
    match before {
        Before::Nothing => 0,
        Before::Call(symbol) => symbol + 1,
        Before::Others => symbols as u64 + 1,
    }
}

fn tokens(paths: &Paths, symbols: usize) -> Put {
    let mut put = Put::default();
    let mut near = [0; 2];
    for symbol in 0..symbols as u64 {
        let of_symbol = paths.0.range((symbol, Before::Nothing)..=(symbol, Before::Others));
        put.put(Field::PathBefore, PATHS, of_symbol.clone().count() as u64);
        let mut last = None;
        for ((_, before), path) in of_symbol {
            let before = number(*before, symbols);
            match last {
                None => put.signed(Field::PathBefore, FIRST, before as i64 - symbol as i64),
                Some(last) => put.put(Field::PathBefore, OTHER, before - last - 1),
            }
            last = Some(before);
            for (kind, histogram) in [&path.duration, &path.gap].into_iter().enumerate() {
                write_one(&mut put, kind as u64, &mut near[kind], histogram);
            }
        }
    }
    put
}

fn write_one(put: &mut Put, kind: u64, near: &mut u16, histogram: &Histogram) {
    put.put(Field::PathLevel, LEVELS + kind, histogram.counts.len() as u64);
    if histogram.counts.is_empty() {
        return;
    }
    put.signed(Field::PathLevel, LOWEST + kind, i64::from(histogram.first) - i64::from(*near));
    *near = histogram.first;
    for &count in &histogram.counts {
        put.put(Field::PathCount, kind, bits(count).into());
        put_digits(put, count, KEPT);
    }
    put.signed(Field::PathTotal, kind, parts(histogram.estimate(), histogram.total));
}

pub fn read(bytes: &[u8], symbols: usize) -> Result<Paths, Bad> {
    let mut rest = bytes;
    let length = usize::try_from(varint(&mut rest)?).unwrap_or(usize::MAX);
    if length > bytes.len().saturating_mul(RATIO).saturating_add(MARGIN) {
        return Err(Bad::new("it announces more than it could hold"));
    }
    let mut get = Get::packed(Decoder::new(crate::primed(length), rest.to_vec()), length);
    let get = &mut get;
    let mut paths = Paths::default();
    let mut near = [0; 2];
    for symbol in 0..symbols as u64 {
        let mut last = None;
        for _ in 0..get.count(Field::PathBefore, PATHS)? {
            let before = match last {
                None => get.signed(Field::PathBefore, FIRST)?.checked_add(symbol as i64),
                Some(last) => i64::try_from(get.get(Field::PathBefore, OTHER)?)
                    .ok()
                    .and_then(|more| more.checked_add(last)?.checked_add(1)),
            };
            let before = before.filter(|before| (0..=symbols as i64 + 1).contains(before));
            let before = before.ok_or_else(|| Bad::new("a path from a call that is not there"))?;
            last = Some(before);
            let before = match before as u64 {
                0 => Before::Nothing,
                number if number == symbols as u64 + 1 => Before::Others,
                number => Before::Call(number - 1),
            };
            let duration = read_one(get, 0, &mut near[0])?;
            let gap = read_one(get, 1, &mut near[1])?;
            paths.0.insert((symbol, before), Path { duration, gap });
        }
    }
    if get.left() > 0 {
        return Err(Bad::new("it is shorter than announced"));
    }
    Ok(paths)
}

fn read_one(get: &mut Get, kind: u64, near: &mut u16) -> Result<Histogram, Bad> {
    let bad = || Bad::new("times that are not well formed");
    let levels = get.count(Field::PathLevel, LEVELS + kind)?;
    if levels == 0 {
        return Ok(Histogram::default());
    }
    let first = get.signed(Field::PathLevel, LOWEST + kind)?.checked_add((*near).into());
    let first = first.and_then(|first| u16::try_from(first).ok()).ok_or_else(bad)?;
    if levels > usize::from(HIGHEST) + 1 {
        return Err(bad());
    }
    *near = first;
    let mut counts = Vec::with_capacity(levels);
    for _ in 0..levels {
        let length = get.get(Field::PathCount, kind)?;
        counts.push(get_digits(get, length, KEPT)?);
    }
    let mut histogram = Histogram { first, counts, total: 0 };
    if !histogram.is_valid() {
        return Err(bad());
    }
    histogram.total = total(histogram.estimate(), get.signed(Field::PathTotal, kind)?);
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_times::paths::Recorder;

    /// One time in so many is long.
    fn some(symbols: u32, turns: u64, rarely: u64) -> Paths {
        let (mut recorder, mut random, mut now) = (Recorder::default(), fastrand::Rng::with_seed(9), 0);
        let mut draw = |below: u64| random.u64(..below);
        for _ in 0..turns {
            for symbol in 0..symbols {
                let start = now + 500 + draw(400);
                now = start + draw(60) + if draw(rarely) == rarely - 1 { draw(100_000) } else { 1000 };
                recorder.add(symbol, start, now);
            }
        }
        recorder.paths(|symbol| Some(symbol.into()), |ticks| ticks)
    }

    #[test]
    fn what_is_settled_is_read_back() {
        for (symbols, turns) in [(0, 0), (1, 1), (1, 5), (6, 1000)] {
            let mut paths = some(symbols, turns, 20);
            let before = paths.clone();
            settle(&mut paths);
            let once = paths.clone();
            settle(&mut paths);
            assert_eq!(paths, once);
            let bytes = write(&paths, symbols as usize);
            assert_eq!(read(&bytes, symbols as usize).unwrap(), paths);
            for (told, exact) in paths.0.values().zip(before.0.values()) {
                for (told, exact) in [(&told.duration, &exact.duration), (&told.gap, &exact.gap)] {
                    assert!(told.total.abs_diff(exact.total) <= exact.total / 100 + 1, "{told:?} {exact:?}");
                }
            }
        }
    }

    /// Ranks merge up a tree whose shape depends on how many there are.
    #[test]
    fn in_whatever_order_they_are_joined_the_bytes_are_the_same() {
        let ranks: Vec<Paths> = [(6, 10), (4, 200), (6, 77), (2, 5), (5, 1)]
            .map(|(symbols, turns)| some(symbols, turns, 20))
            .into();
        let bytes = |all: Paths| {
            let mut all = all;
            settle(&mut all);
            write(&all, 6)
        };
        let forwards = bytes(ranks.iter().cloned().fold(Paths::default(), Paths::join));
        let backwards = bytes(ranks.iter().rev().cloned().fold(Paths::default(), Paths::join));
        let [a, b, c, d, e] = <[Paths; 5]>::try_from(ranks).unwrap();
        let tree = bytes(d.join(b).join(e.join(a.join(c))));
        assert!(forwards.len() > 100 && forwards == backwards && forwards == tree);
    }

    #[test]
    fn it_does_not_grow_with_the_run() {
        let size = |turns| {
            let mut paths = some(6, turns, u64::MAX);
            settle(&mut paths);
            write(&paths, 6).len()
        };
        let (short, long) = (size(1000), size(50_000));
        assert!(long < short + short / 8, "{short} {long}");
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut paths = some(4, 50, 20);
        settle(&mut paths);
        let bytes = write(&paths, 4);
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                if let Ok(read) = read(&bytes, 4) {
                    assert!(read.0.values().all(|path| path.duration.is_valid() && path.gap.is_valid()));
                }
            }
            let _ = read(&bytes[..at], 4);
        }
    }
}
