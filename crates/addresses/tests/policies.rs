//! What caches may have beside lines and levels, each with numbers that are worked out by hand.

use crate::common;

use common::{pick, small};
use fastrand::Rng;
use refrain_addresses::simulate::{
    Config, Counts, Geometry, Hierarchy, Inclusion, Level, Memory, Misplaced, Policy, Prefetch, System, Type,
    Write,
};
use refrain_addresses::{Batch, Fields, Reference, kind};

fn config(size: u64, ways: u64, line: u64) -> Config {
    Config::new(Geometry::new(size, ways, line).unwrap())
}

/// `r10 w2f:4 f100 c0 v0`: read, write, fetch, copy back, invalidate; address and, after the colon, size in hexadecimal.
fn batch(text: &str) -> Batch {
    let mut batch = Batch::new();
    for word in text.split_whitespace() {
        let (kind, rest) = word.split_at(1);
        let (address, size) = rest.split_once(':').unwrap_or((rest, "1"));
        let reference = Reference {
            kind: [0, 1, 2, kind::COPY_BACK, kind::INVALIDATE]["rwfcv".find(kind).unwrap()],
            address: u64::from_str_radix(address, 16).unwrap(),
            size: u16::from_str_radix(size, 16).unwrap(),
            ..Reference::default()
        };
        batch.push(Fields { sizes: true, ..Fields::NONE }, reference);
    }
    batch
}

fn run(levels: &[Config], references: &str) -> (Vec<Counts>, Memory) {
    let mut caches = Hierarchy::new(Level::Unified(levels[0]), &levels[1..], 0).unwrap();
    caches.add(&batch(references));
    (caches.caches().iter().map(|(_, part)| part.counts().clone()).collect(), caches.memory())
}

fn misses(counts: &Counts) -> u64 {
    counts.misses[..3].iter().sum()
}

#[test]
fn traffic_in_bytes() {
    // Two sets of one way, lines of 16. w0 fetches 16 bytes; r20 fetches 16 and sends 16 down; r0 fetches 16.
    let (counts, memory) = run(&[config(32, 1, 16)], "w0 r20 r0");
    assert_eq!((counts[0].bytes_in, counts[0].bytes_out), (48, 16));
    assert_eq!((memory.bytes_read, memory.bytes_written), (48, 16));
    // Passed on at once, a write is as large as it is: 4 and 2 bytes.
    let through = Config { write: Write::Through, ..config(32, 1, 16) };
    let (counts, memory) = run(&[through], "w0:4 w6:2");
    assert_eq!((counts[0].bytes_in, counts[0].bytes_out), (16, 6));
    assert_eq!((memory.bytes_read, memory.bytes_written), (16, 6));
    // Behind it lines of 64: 16 bytes go up, 64 come from memory.
    let (counts, memory) = run(&[config(32, 1, 16), config(256, 4, 64)], "r0 r10 w20");
    assert_eq!((counts[0].bytes_in, counts[1].bytes_in, memory.bytes_read), (48, 64, 64));
    // 20 takes the place of 0; the dirty line of 20 leaves for 40, and l2 has its line.
    let (counts, memory) = run(&[config(32, 1, 16), config(256, 4, 64)], "r0 w20 r40");
    assert_eq!((counts[0].bytes_out, counts[1].bytes_out, memory.bytes_written), (16, 0, 0));
}

#[test]
fn writes_that_bring_a_line_in_and_fetch_nothing() {
    let no_fetch = Config { fetch: false, ..config(32, 1, 16) };
    // w0 puts the line in; r4 finds it. r20 fetches its own, and 0 leaves whole.
    let (counts, memory) = run(&[no_fetch], "w0 r4 r20");
    assert_eq!(
        (counts[0].misses[..3].to_vec(), counts[0].bytes_in, counts[0].bytes_out),
        (vec![1, 1, 0], 16, 16)
    );
    assert_eq!((memory.lines_read, memory.writes), (1, 1));
    // Below, a part of a line needs nothing either.
    let second = Config { fetch: false, ..config(64, 2, 32) };
    let (counts, memory) = run(&[Config { fetch: false, ..config(16, 1, 16) }, second], "w0 w10");
    assert_eq!((counts[1].accesses[Type::Written as usize], memory.lines_read), (1, 0));
}

#[test]
fn sectors() {
    // One set of two lines of 32 in sectors of 8.
    let sectored = Config { sector: Some(8), ..config(64, 2, 32) };
    // r0 fetches a sector; r4 is in it; r8 and r1e:4, the fourth of this line and the first of the next, are not.
    let (counts, memory) = run(&[sectored], "r0 r4 r8 r1e:4");
    assert_eq!((misses(&counts[0]), counts[0].bytes_in), (3, 8 + 8 + 16));
    assert_eq!((memory.lines_read, memory.bytes_read), (4, 32));
    // Two sectors of a line are written to, one is only read. When 40 and 80 take the places, 16 bytes go down, in two.
    let (counts, memory) = run(&[sectored], "w0 w8 r10 r40 r80");
    assert_eq!((counts[0].evictions, counts[0].write_backs, counts[0].bytes_out), (1, 1, 16));
    assert_eq!((memory.writes, memory.bytes_written), (2, 16));
    // One sector a line is a plain cache.
    let references = "r0 w20 r1e:4 w44:3 r80 r0 wc0";
    let whole = Config { sector: Some(32), ..config(64, 2, 32) };
    assert_eq!(run(&[whole], references), run(&[config(64, 2, 32)], references));
    // A write that fetches nothing fills its sector.
    let (counts, _) = run(&[Config { fetch: false, ..sectored }], "w0 r4 r8");
    assert_eq!((misses(&counts[0]), counts[0].bytes_in), (2, 8));
    // A level below is asked for a sector at a time.
    let (counts, memory) = run(&[sectored, config(128, 2, 64)], "r0 r8 r20");
    assert_eq!((counts[1].accesses[0], counts[1].misses[0], memory.bytes_read), (3, 1, 64));
}

#[test]
fn prefetching_the_next_line() {
    let with = |prefetch| Config { prefetch: Some(prefetch), ..config(256, 16, 16) };
    let of = |prefetch, references| {
        let (counts, memory) = run(&[with(prefetch)], references);
        let counts = &counts[0];
        (misses(counts), counts.prefetches, counts.prefetches_used, memory.lines_read)
    };
    // Six lines in a row. After a miss the next one comes: every second misses.
    let row = "r0 r10 r20 r30 r40 r50";
    assert_eq!(of(Prefetch::Miss, row), (3, 3, 3, 6));
    // Tagged, the first use of what was prefetched fetches the next: only the first misses, and 60 comes for nothing.
    assert_eq!(of(Prefetch::Tagged, row), (1, 6, 5, 7));
    assert_eq!(of(Prefetch::Always, row), (1, 6, 5, 7));
    // Used again, a line fetches nothing if tagged; always, it would, but the next is there.
    assert_eq!(of(Prefetch::Tagged, "r0 r10 r10 r10"), (1, 2, 1, 3));
    assert_eq!(of(Prefetch::Always, "r0 r0 r0"), (1, 1, 0, 2));
    // What leaves unused is counted: with two lines, 0 brings 10, which is older than 0 and leaves for 40.
    let small = Config { prefetch: Some(Prefetch::Miss), ..config(32, 2, 16) };
    let (counts, _) = run(&[small], "r0 r0 r40");
    assert_eq!((counts[0].prefetches, counts[0].prefetches_used, counts[0].prefetches_unused), (2, 0, 1));
    // The level below hears of it as a prefetch, and its demand misses are of the others.
    let (counts, _) = run(&[with(Prefetch::Miss), config(1024, 4, 16)], row);
    assert_eq!((counts[1].accesses, counts[1].misses), ([3, 0, 0, 0, 3], [3, 0, 0, 0, 3]));
}

#[test]
fn prefetching_by_strides() {
    let strided = Config { prefetch: Some(Prefetch::Stride), ..config(1024, 64, 16) };
    let mut caches = Hierarchy::new(Level::Unified(strided), &[], 0).unwrap();
    let mut some = Batch::new();
    // Two instructions in turn, by 40 and by 100: the third of each tells that it goes on, so three of five miss.
    for n in 0..5 {
        for (pc, address) in [(7, 0x1000 + 0x40 * n), (8, 0x8000 + 0x100 * n)] {
            some.push(
                Fields { pcs: true, ..Fields::NONE },
                Reference { address, pc, ..Reference::default() },
            );
        }
    }
    caches.add(&some);
    let counts = caches.caches()[0].1.counts().clone();
    assert_eq!((counts.misses[0], counts.prefetches, counts.prefetches_used), (6, 6, 4));
}

/// The same references from a trace without instructions: each page is a stream, as the two are in different ones.
#[test]
fn prefetching_by_strides_of_pages() {
    let strided = Config { prefetch: Some(Prefetch::Stride), ..config(1024, 64, 16) };
    let mut caches = Hierarchy::new(Level::Unified(strided), &[], 0).unwrap();
    let mut some = Batch::new();
    for n in 0..5 {
        for address in [0x1000 + 0x40 * n, 0x8000 + 0x100 * n] {
            some.push(Fields::NONE, Reference { address, ..Reference::default() });
        }
    }
    caches.add(&some);
    let counts = caches.caches()[0].1.counts().clone();
    assert_eq!((counts.misses[0], counts.prefetches, counts.prefetches_used), (6, 6, 4));
    // Once there is a fetch, it is the instruction: one for both streams, whose distances never come twice.
    let mut fetched = Batch::new();
    fetched.push(Fields::NONE, Reference { kind: 2, address: 0x40_0000, ..Reference::default() });
    some.iter().for_each(|reference| fetched.push(Fields::NONE, reference));
    let mut caches = Hierarchy::new(Level::Unified(strided), &[], 0).unwrap();
    caches.add(&fetched);
    assert_eq!(caches.caches()[0].1.counts().prefetches, 0);
}

/// DineroIV's labels 4 and 5: a line is sent down and stays, or leaves with what was written to it.
#[test]
fn lines_copied_back_and_invalidated() {
    let of = |levels: &[Config], references: &str| {
        let (counts, memory) = run(levels, references);
        let own: Vec<_> = counts.iter().map(|counts| (counts.copied_back, counts.dropped)).collect();
        (own, misses(&counts[0]), memory.lines_read, memory.writes)
    };
    let one = [config(32, 1, 16)];
    // Copied back, the line is clean: nothing goes down when 20 takes its place. Written again, it is dirty again.
    assert_eq!(of(&one, "w0 c4 r20"), (vec![(1, 0)], 2, 2, 1));
    assert_eq!(of(&one, "w0 c0 c0 r0"), (vec![(1, 0)], 1, 1, 1));
    assert_eq!(of(&one, "w0 c0 w0 r20"), (vec![(1, 0)], 2, 2, 2));
    let (counts, memory) = run(&one, "w0 c0 r20");
    assert_eq!((counts[0].write_backs, counts[0].bytes_out, memory.bytes_written), (0, 16, 16));
    // What is clean or not there is let alone.
    assert_eq!(of(&one, "r0 c0 c10"), (vec![(0, 0)], 1, 1, 0));
    // Invalidated, it is lost as it is, and has to be fetched again.
    assert_eq!(of(&one, "w0 v0 r0 v10"), (vec![(0, 1)], 2, 2, 0));
    assert_eq!(of(&one, "w0 c0 v0 r0"), (vec![(1, 1)], 2, 2, 1));
    // One line each, however long the command is; of size 0 it is all lines.
    assert_eq!(of(&one, "w0 w10 c0:20 v0:20 r0 r10"), (vec![(1, 1)], 3, 3, 1));
    assert_eq!(of(&one, "w0 w10 c0:0 v0:0 r0 r10"), (vec![(2, 2)], 4, 4, 2));
    // Down through all levels: what the first sends down, the second sends on.
    let two = [config(32, 1, 16), config(128, 4, 32)];
    assert_eq!(of(&two, "w0 c0"), (vec![(1, 0), (1, 0)], 1, 1, 1));
    assert_eq!(of(&two, "w0 v0 r0"), (vec![(0, 1), (0, 1)], 2, 2, 0));
    let (counts, memory) = run(&two, "w0 c0");
    assert_eq!((counts[1].accesses[Type::Written as usize], memory.bytes_written), (1, 32));
    // An exclusive level gets no copy of what stays above it.
    let exclusive = Config { inclusion: Inclusion::Exclusive, ..config(64, 4, 16) };
    let (counts, memory) = run(&[config(32, 1, 16), exclusive], "w0 c0 r0");
    assert_eq!((counts[1].accesses[Type::Written as usize], memory.writes), (0, 1));
    // Only dirty sectors go down.
    let sectored = Config { sector: Some(8), ..config(64, 2, 32) };
    assert_eq!(of(&[sectored], "w0 r8 w18 c0 v0 r0"), (vec![(1, 1)], 4, 4, 2));
    // A victim is a line of the cache.
    let kept = Config { victims: 1, ..config(32, 1, 16) };
    assert_eq!(of(&[kept], "w0 r20 c0 v0 r0"), (vec![(1, 1)], 3, 3, 1));
}

/// Copy-backs are for data; invalidations are for fetches too. What was invalidated is as new as before.
#[test]
fn commands_to_split_caches() {
    let split = Level::Split { instructions: Some(config(32, 1, 16)), data: Some(config(32, 1, 16)) };
    let mut caches = System { classify: true, ..System::new(vec![split]) }.build().unwrap();
    caches.add(&batch("f0 w0 c0 v0 f0 r0"));
    let all = caches.caches();
    let counts = |at: usize| all[at].1.counts();
    assert_eq!((counts(0).misses[2], counts(0).dropped, counts(0).copied_back), (2, 1, 0));
    assert_eq!(
        (counts(1).misses[..2].to_vec(), counts(1).dropped, counts(1).copied_back),
        (vec![1, 1], 1, 1)
    );
    assert_eq!((counts(0).classes, counts(1).classes), ([0, 0, 2, 0], [0, 0, 2, 0]));
    assert_eq!((caches.references(), caches.passed_over()), (6, [0; 8]));
}

#[test]
fn victims() {
    // Two sets of one way and one victim. 0 and 20 want one place: from then on each finds the other kept.
    let kept = Config { victims: 1, ..config(32, 1, 16) };
    let (counts, memory) = run(&[kept], "r0 r20 r0 r20");
    assert_eq!((misses(&counts[0]), counts[0].victim_hits, memory.lines_read), (4, 2, 2));
    assert_eq!(counts[0].evictions, 0);
    // 40 is one too many: 0 is kept for 20, which is kept for 40, and 0 leaves, dirty.
    let (counts, memory) = run(&[kept], "w0 r20 r40");
    assert_eq!((counts[0].evictions, counts[0].write_backs, memory.writes), (1, 1, 1));
    // Dirt comes back with the line: 0, written to, kept and back, leaves dirty in the end.
    let (counts, memory) = run(&[kept], "w0 r20 r0 r20 r40 r60");
    assert_eq!((counts[0].victim_hits, counts[0].evictions, memory.writes), (2, 2, 1));
    // A write that brings nothing in finds the kept line all the same.
    let (counts, memory) = run(&[Config { allocate: false, ..kept }], "r0 r20 w0");
    assert_eq!((counts[0].victim_hits, counts[0].writes_through, memory.writes), (1, 0, 0));
}

#[test]
fn inclusive_levels() {
    let second = Config { inclusion: Inclusion::Inclusive, ..config(32, 2, 16) };
    // l1 has room for four lines, l2 for two. r0 w10 r20: l2 loses 0, so l1 does, and r0 misses again.
    let (counts, memory) = run(&[config(64, 4, 16), second], "r0 w10 r20 r0");
    assert_eq!((misses(&counts[0]), counts[0].invalidated), (4, 2));
    // For 0, l2 has lost 10, which l1 had dirty: it goes to memory.
    assert_eq!((counts[1].write_backs, memory.writes), (1, 1));
    // Without inclusion l1 keeps all of them.
    let (counts, memory) = run(&[config(64, 4, 16), config(32, 2, 16)], "r0 w10 r20 r0");
    assert_eq!((misses(&counts[0]), counts[0].invalidated, memory.writes), (3, 0, 0));
    // Lines twice as long below: two leave above.
    let longer = Config { inclusion: Inclusion::Inclusive, ..config(32, 1, 32) };
    let (counts, _) = run(&[config(64, 4, 16), longer], "r0 r10 r20");
    assert_eq!(counts[0].invalidated, 2);
    // Over two levels: what l3 loses, l1 loses, whether l2 has it or not.
    let (counts, _) = run(&[config(64, 4, 16), config(16, 1, 16), second], "r0 r10 r20");
    assert_eq!((counts[0].invalidated, counts[1].invalidated), (1, 0));
}

#[test]
fn exclusive_levels() {
    let second = Config { inclusion: Inclusion::Exclusive, ..config(32, 2, 16) };
    // l1 has one line, l2 two: together three. r0 r10 r20 are new, and then r0 is in l2, which gives it away for 20.
    let (counts, memory) = run(&[config(16, 1, 16), second], "r0 r10 r20 r0 r10 r20");
    assert_eq!((misses(&counts[0]), misses(&counts[1]), memory.lines_read), (6, 3, 3));
    // Not so without exclusion: three lines in turn are too many for two.
    let (_, memory) = run(&[config(16, 1, 16), config(32, 2, 16)], "r0 r10 r20 r0 r10 r20");
    assert_eq!(memory.lines_read, 6);
    // Dirt goes down and comes back: 0 is written to, goes to l2, comes back and goes again; then two others push it out.
    let (counts, memory) = run(&[config(16, 1, 16), second], "w0 r10 r0 r10 r20 r30");
    assert_eq!((counts[0].write_backs, counts[1].write_backs, memory.writes), (2, 1, 1));
}

#[test]
fn pseudo_lru() {
    // Four ways, a b c d a b c e a: the tree has e take the place of a, where LRU takes d's. So a misses.
    let text = "r0 r10 r20 r30 r0 r10 r20 r40 r0";
    let (tree, _) = run(&[Config { policy: Policy::Plru, ..config(64, 4, 16) }], text);
    let (lru, _) = run(&[config(64, 4, 16)], text);
    assert_eq!((misses(&tree[0]), misses(&lru[0])), (6, 5));
}

#[test]
fn what_does_not_fit_together() {
    let plain = config(1024, 4, 16);
    let refused = |levels: &[Config]| {
        let levels = levels.iter().copied().map(Level::Unified).collect();
        System::new(levels).build().err().expect("it does not fit").to_string()
    };
    for (levels, why) in [
        (vec![Config { policy: Policy::Plru, ..config(768, 3, 16) }], "power of two of ways"),
        (vec![Config { sector: Some(32), ..plain }], "level 1 has others"),
        (vec![Config { sector: Some(6), ..plain }], "power of two"),
        (vec![Config { inclusion: Inclusion::Inclusive, ..plain }], "level 1 is inclusive"),
        (vec![Config { sector: Some(8), victims: 4, ..plain }], "both sectors and victims"),
        (vec![plain, Config { sector: Some(8), ..plain }], "sectors of level 2 are smaller"),
        (
            vec![plain, Config { inclusion: Inclusion::Exclusive, ..config(4096, 4, 32) }],
            "level 2 is exclusive",
        ),
        (
            vec![
                Config { write: Write::Through, ..plain },
                Config { inclusion: Inclusion::Exclusive, ..plain },
            ],
            "writes back",
        ),
        (vec![plain; 6], "6 levels"),
        (vec![], "no first-level"),
    ] {
        let error = refused(&levels);
        assert!(error.contains(why), "{error}");
    }
    let split = |instructions, data| Level::Split { instructions, data };
    let wrong = |levels: Vec<Level>| System::new(levels).build().err();
    let (some, one) = (Some(plain), Level::Unified(plain));
    assert_eq!(wrong(vec![one, split(some, some)]), Some(Misplaced::SplitAgain(2)));
    assert_eq!(wrong(vec![split(None, some), split(some, some)]), Some(Misplaced::Unreached(2)));
    assert_eq!(wrong(vec![split(some, some), split(some, None), one]), None);
}

#[test]
fn levels_that_are_split_below() {
    let split = Level::Split { instructions: Some(config(32, 1, 16)), data: Some(config(32, 1, 16)) };
    let second = Level::Split { instructions: Some(config(64, 4, 16)), data: Some(config(64, 4, 16)) };
    let mut caches = System::new(vec![split, second, Level::Unified(config(256, 4, 16))]).build().unwrap();
    // Fetches and data never meet before l3: f0 brings 0 there, where r0 finds it. w20 takes its place in l1d, r0 that of 20.
    caches.add(&batch("f0 r0 w20 r0 f20"));
    let parts = caches.caches();
    let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["l1i", "l1d", "l2i", "l2d", "l3"]);
    let of = |at: usize| (parts[at].1.counts().accesses, parts[at].1.counts().misses);
    assert_eq!(of(2), ([0, 0, 2, 0, 0], [0, 0, 2, 0, 0]));
    // l2d: r0 misses, w20 misses, r0 hits, and 20 comes down dirty, which l2d has.
    assert_eq!(of(3), ([2, 1, 0, 1, 0], [1, 1, 0, 0, 0]));
    // l3: f0 and w20 miss; r0 and f20 hit.
    assert_eq!(of(4), ([1, 1, 2, 0, 0], [0, 1, 1, 0, 0]));
    assert_eq!(caches.memory().lines_read, 2);
}

/// Whatever there is, the books hold: what one level sends, the next has, and nothing dirty is lost.
#[test]
fn the_books_hold_whatever_there_is() {
    let mut random = Rng::with_seed(0xb00c5);
    for round in 0..300 {
        let first = Config {
            policy: pick(&mut random, &Policy::ALL),
            prefetch: pick(&mut random, &[None, Some(Prefetch::Tagged), Some(Prefetch::Miss)]),
            victims: pick(&mut random, &[0, 0, 2]),
            fetch: random.bool(),
            ..config(128, 4, 16)
        };
        let second = Config {
            policy: pick(&mut random, &Policy::ALL),
            inclusion: pick(&mut random, &[Inclusion::Free, Inclusion::Inclusive, Inclusion::Exclusive]),
            ..config(512, 4, 16)
        };
        let mut caches = Hierarchy::new(Level::Unified(first), &[second], round).unwrap();
        let mut some = Batch::new();
        let mut written = std::collections::HashSet::new();
        for reference in small(&mut random, 1500) {
            if reference.kind == 1 {
                written.insert(reference.address / 16);
            }
            some.push(Fields::NONE, reference);
        }
        caches.add(&some);
        let parts = caches.caches();
        let [one, two] = [0, 1].map(|at| parts[at].1.counts().clone());
        let down = one.bytes_out / 16;
        assert_eq!(two.accesses[Type::Written as usize], down, "round {round}");
        let asked: u64 = two.accesses[..3].iter().sum::<u64>() + two.accesses[4];
        assert_eq!(asked * 16, one.bytes_in, "round {round}");
        assert_eq!(caches.memory().bytes_read, caches.memory().lines_read * 16);
        if second.inclusion != Inclusion::Exclusive {
            assert_eq!(two.bytes_in, caches.memory().bytes_read, "round {round}");
        }
        assert_eq!(one.prefetches, two.accesses[4]);
        assert!(one.prefetches_used + one.prefetches_unused <= one.prefetches);
        // Each line that was written to is dirty somewhere, or has gone to memory.
        let dirty: u64 = parts.iter().map(|(_, part)| part.dirty()).sum();
        assert!(dirty + caches.memory().writes >= written.len() as u64, "round {round}");
    }
}
