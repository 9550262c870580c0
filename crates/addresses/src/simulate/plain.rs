//! How lines come up and go down where caches have nothing beside them: no prefetcher, sectors or victims, no classes, no
//! inclusion, and nobody who asks whose misses they are. It is what [`super::flow`] does, less all of that: most runs are
//! such, and a trace that misses often spends its time here.

use super::Type;
use super::cache::Inclusion;
use super::counts::Memory;
use super::hierarchy::each;
use super::unit::{Cache, Piece, each_line};
use crate::Batch;

/// Whether these caches are so.
pub(super) fn are(caches: &[Cache]) -> bool {
    caches.iter().all(|cache| cache.extras.is_none() && cache.config.inclusion == Inclusion::Free)
}

/// A cache, and those that can be behind it: they were built before it.
#[inline(always)]
fn split(caches: &mut [Cache], at: usize) -> Option<(&mut Cache, &mut [Cache])> {
    let (below, rest) = caches.split_at_mut_checked(at)?;
    Some((rest.first_mut()?, below))
}

/// The references of a batch, in order. By itself, so that what it needs stays in registers.
#[inline(never)]
pub(super) fn add(caches: &mut [Cache], memory: &mut Memory, route: &[usize; 3], batch: &Batch) {
    each(batch, |kind, address, size| {
        let Some(kind) = Type::of(kind) else { return };
        let at = route[kind as usize];
        let Some(cache) = caches.get_mut(at) else { return };
        if !cache.is_front(address, kind, size) {
            refer(caches, memory, at, address, kind, size);
        }
    });
}

/// A reference, at the first level.
#[inline(never)]
fn refer(caches: &mut [Cache], memory: &mut Memory, at: usize, address: u64, kind: Type, size: u64) {
    let Some((cache, below)) = split(caches, at) else { return };
    let (shift, length) = (cache.shift, cache.length());
    let (several, missed) =
        each_line(address, kind, size, shift, length, |piece| refer_line(cache, below, memory, piece));
    cache.counts.straddling += u64::from(several);
    cache.counts.misses[kind as usize] += u64::from(missed);
}

/// Whether the line was missing.
#[inline(always)]
fn refer_line(cache: &mut Cache, below: &mut [Cache], memory: &mut Memory, piece: Piece) -> bool {
    let write = piece.kind == Type::Write;
    let dirty = write && cache.back();
    let (allocate, fetch) = (!write || cache.config.allocate, !write || cache.config.fetch);
    let hit = match allocate {
        true => bring(cache, below, memory, piece.line, fetch.then_some(piece.kind), dirty),
        false => cache.lines.find(piece.line, dirty),
    };
    if write && !(dirty && (hit || allocate)) {
        pass_on(cache, below, memory, piece.address, piece.bytes);
    }
    !hit
}

/// Puts in a line if it is missing, and fetches it if that is needed; another may have to leave. Whether the line was there.
#[inline(always)]
fn bring(
    cache: &mut Cache,
    below: &mut [Cache],
    memory: &mut Memory,
    line: u64,
    fetch: Option<Type>,
    dirty: bool,
) -> bool {
    // Those below know nothing of what happens here, so that the line may come in before it is asked for.
    let Some(left) = cache.lines.find_or_insert(line, dirty) else { return true };
    let length = cache.length();
    if let Some(kind) = fetch {
        cache.counts.bytes_in += length;
        ask(below, memory, cache.below, line << cache.shift, length, kind);
    }
    if let Some((old, dirty)) = left {
        cache.counts.evictions += 1;
        if dirty {
            cache.counts.write_backs += 1;
            cache.counts.bytes_out += length;
            put(below, memory, cache.below, old << cache.shift, length);
        }
    }
    false
}

/// A line is missing above.
fn ask(caches: &mut [Cache], memory: &mut Memory, at: usize, address: u64, bytes: u64, kind: Type) {
    let Some((cache, below)) = split(caches, at) else {
        memory.lines_read += 1;
        memory.bytes_read += bytes;
        return;
    };
    cache.counts.accesses[kind as usize] += 1;
    if !bring(cache, below, memory, address >> cache.shift, Some(kind), false) {
        cache.counts.misses[kind as usize] += 1;
    }
}

/// Bytes of one line come down from above.
fn put(caches: &mut [Cache], memory: &mut Memory, at: usize, address: u64, bytes: u64) {
    let Some((cache, below)) = split(caches, at) else {
        memory.writes += 1;
        memory.bytes_written += bytes;
        return;
    };
    let line = address >> cache.shift;
    let (back, allocate) = (cache.back(), cache.config.allocate);
    cache.counts.accesses[Type::Written as usize] += 1;
    // What is whole needs nothing from below.
    let fetch = bytes < cache.length() && cache.config.fetch;
    let hit = match allocate {
        true => bring(cache, below, memory, line, fetch.then_some(Type::Write), back),
        false => cache.lines.find(line, back),
    };
    if !hit {
        cache.counts.misses[Type::Written as usize] += 1;
    }
    if !(back && (hit || allocate)) {
        pass_on(cache, below, memory, address, bytes);
    }
}

/// A write goes down at once.
fn pass_on(cache: &mut Cache, below: &mut [Cache], memory: &mut Memory, address: u64, bytes: u64) {
    cache.counts.writes_through += 1;
    cache.counts.bytes_out += bytes;
    put(below, memory, cache.below, address, bytes);
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Geometry, Level, Policy, System, Write};
    use crate::{Batch, kind};

    /// References that are near each other, far away, and at the end of all addresses; some are to several lines.
    fn batch() -> Batch {
        let mut batch = Batch::new();
        let mut state = 1u64;
        for n in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let dice = state >> 33;
            batch.kinds.push([kind::READ, kind::WRITE, kind::FETCH][(dice % 3) as usize]);
            batch.addresses.push(match dice % 7 {
                0..=3 => n / 4 % 0x800 * 4,
                4 | 5 => dice % 0x2000,
                _ => u64::MAX - dice % 0x40,
            });
            batch.sizes.push(1 << (dice / 7 % 7));
        }
        batch
    }

    /// The short way and the long one come to the same.
    #[track_caller]
    fn check(system: &System, batch: &Batch) {
        let [mut short, mut long] = [(); 2].map(|()| system.build().unwrap());
        assert!(short.plain, "{system:?}");
        long.plain = false;
        for core in [0, system.cores - 1] {
            short.add_of(core, batch);
            long.add_of(core, batch);
        }
        assert!(short.memory().lines_read > 0);
        assert_eq!(short.memory(), long.memory(), "{system:?}");
        for ((name, short), (_, long)) in short.caches().into_iter().zip(long.caches()) {
            assert_eq!(short.counts(), long.counts(), "{name} of {system:?}");
            assert_eq!(short.dirty(), long.dirty(), "{name} of {system:?}");
        }
    }

    #[test]
    fn as_the_long_way() {
        let batch = batch();
        let config = |size, ways, line| Config::new(Geometry::new(size, ways, line).unwrap());
        for policy in Policy::ALL {
            for write in Write::ALL {
                for (allocate, fetch) in [(true, true), (true, false), (false, true)] {
                    let like = |config| Config { policy, write, allocate, fetch, ..config };
                    let first = like(config(256, 2, 16));
                    let [second, third] = [like(config(1024, 4, 32)), config(2048, 8, 64)];
                    let split = Level::Split { instructions: Some(first), data: Some(first) };
                    check(&System::new(vec![Level::Unified(first)]), &batch);
                    check(&System::new(vec![split, Level::Unified(third)]), &batch);
                    let levels = vec![split, Level::Unified(second), Level::Unified(third)];
                    check(&System { cores: 2, private: 2, ..System::new(levels) }, &batch);
                    // The second writes back where the first does not, and the other way round.
                    let levels = vec![Level::Unified(config(256, 1, 16)), Level::Unified(second)];
                    check(&System::new(levels), &batch);
                }
            }
        }
    }
}
