//! Caches beside cases worked out by hand, a plain model of them, and the curve for all sizes.

use crate::common;

use std::collections::HashMap;

use common::{Bounds, pick, references};
use fastrand::Rng;
use refrain_addresses::simulate::{
    Class, Config, Counts, Curve, Geometry, Hierarchy, Level, Memory, Misplaced, Policy, Region, Streams,
    System, Tallies, Tally, Type, Write,
};
use refrain_addresses::{Batch, Fields, Reference};

fn config(size: u64, ways: u64, line: u64) -> Config {
    let geometry = Geometry::new(size, ways, line).unwrap();
    Config::new(geometry)
}

fn batch(references: &[Reference]) -> Batch {
    let mut batch = Batch::new();
    let fields = Fields { sizes: true, ..Fields::NONE };
    references.iter().for_each(|reference| batch.push(fields, *reference));
    batch
}

/// `r10 w2f:4 f100`: read, write, fetch; address and, after the colon, size in hexadecimal.
fn trace(text: &str) -> Vec<Reference> {
    text.split_whitespace()
        .map(|word| {
            let (kind, rest) = word.split_at(1);
            let (address, size) = rest.split_once(':').unwrap_or((rest, "1"));
            Reference {
                kind: "rwfe".find(kind).unwrap() as u8,
                address: u64::from_str_radix(address, 16).unwrap(),
                size: u16::from_str_radix(size, 16).unwrap(),
                ..Reference::default()
            }
        })
        .collect()
}

/// Each cache in a line: misses/accesses of reads, writes, fetches and what is written from above, where there are any;
/// evictions, write-backs, writes passed on and dirty lines, where not 0. Then the memory.
fn summary(caches: &Hierarchy) -> String {
    let mut out = String::new();
    for (name, cache) in caches.caches() {
        let counts = cache.counts();
        out.push_str(&name);
        for (at, letter) in "rwfd".chars().enumerate() {
            if counts.accesses[at] > 0 {
                out.push_str(&format!(" {letter}{}/{}", counts.misses[at], counts.accesses[at]));
            }
        }
        for (n, what) in [
            (counts.straddling, "straddling"),
            (counts.evictions, "out"),
            (counts.write_backs, "back"),
            (counts.writes_through, "on"),
            (cache.dirty(), "dirty"),
        ] {
            if n > 0 {
                out.push_str(&format!(" {what} {n}"));
            }
        }
        out.push_str("; ");
    }
    let Memory { lines_read, writes, .. } = caches.memory();
    out + &format!("memory {lines_read} {writes}")
}

#[track_caller]
fn check(first: Level, below: &[Config], references: &str, expected: &str) {
    let mut caches = Hierarchy::new(first, below, 0).unwrap();
    caches.add(&batch(&trace(references)));
    assert_eq!(summary(&caches), expected, "{references}");
}

#[test]
fn one_level_by_hand() {
    // Two sets of one way, lines of 16: 00 and 20 want the same place, 10 another.
    let small = Level::Unified(config(32, 1, 16));
    check(small, &[], "", "l1; memory 0 0");
    check(small, &[], "r0 rf r10 f4", "l1 r2/3 f0/1; memory 2 0");
    check(small, &[], "r0 r20 r0 r10", "l1 r4/4 out 2; memory 4 0");
    check(small, &[], "w0 r20 r0", "l1 r2/2 w1/1 out 2 back 1; memory 3 1");
    check(small, &[], "r0 w5 w6", "l1 r1/1 w0/2 dirty 1; memory 1 0");
    // With two ways both stay.
    check(Level::Unified(config(32, 2, 16)), &[], "w0 r20 r0", "l1 r1/2 w1/1 dirty 1; memory 2 0");
}

#[test]
fn references_over_several_lines_by_hand() {
    let small = Level::Unified(config(64, 4, 16));
    // A reference, two lines, one miss; then one line of two is there.
    check(small, &[], "re:4 rf r1e:2", "l1 r1/3 straddling 1; memory 2 0");
    check(small, &[], "re:4 w1e:3", "l1 r1/1 w1/1 straddling 2 dirty 2; memory 3 0");
    // Three lines; a size of nothing is one byte.
    check(small, &[], "r8:20 r20:0", "l1 r1/2 straddling 1; memory 3 0");
    // Over the last address: the first line follows.
    check(small, &[], "rfffffffffffffffe:4 r0 rfffffffffffffff0", "l1 r1/3 straddling 1; memory 2 0");
}

#[test]
fn writes_by_hand() {
    let with = |write, allocate| Level::Unified(Config { write, allocate, ..config(32, 1, 16) });
    // One write that misses, one that hits after a read, then the line leaves.
    let trace = "w0 r0 w4 r20";
    check(with(Write::Back, true), &[], trace, "l1 r1/2 w1/2 out 1 back 1; memory 2 1");
    check(with(Write::Back, false), &[], trace, "l1 r2/2 w1/2 out 1 back 1 on 1; memory 2 2");
    check(with(Write::Through, true), &[], trace, "l1 r1/2 w1/2 out 1 on 2; memory 2 2");
    check(with(Write::Through, false), &[], trace, "l1 r2/2 w1/2 out 1 on 2; memory 2 2");
}

#[test]
fn two_levels_by_hand() {
    let first = Level::Unified(config(16, 1, 16));
    // w0 asks l2 for its line; r10 too, and sends 0 down, which is there; then r0 finds it in l2, dirty.
    let second = [config(64, 4, 16)];
    check(first, &second, "w0 r10 r0", "l1 r2/2 w1/1 out 2 back 1; l2 r1/2 w1/1 d0/1 dirty 1; memory 2 0");
    // An l2 of one line: r10 takes the place of 0 before it comes down, whole, and takes its place again.
    let second = [config(16, 1, 16)];
    check(first, &second, "w0 r10", "l1 r1/1 w1/1 out 1 back 1; l2 r1/1 w1/1 d1/1 out 2 dirty 1; memory 2 0");
    // With lines of 32 in l2, what comes down is half a line, and the other half is fetched.
    let second = [config(32, 1, 32)];
    check(first, &second, "w0 r20", "l1 r1/1 w1/1 out 1 back 1; l2 r1/1 w1/1 d1/1 out 2 dirty 1; memory 3 0");
    // Passed through l1 and held in l2; the write brings the line into both.
    let through = Level::Unified(Config { write: Write::Through, ..config(16, 1, 16) });
    check(through, &second, "w0 w4", "l1 w1/2 on 2; l2 w1/1 d0/2 dirty 1; memory 1 0");
}

#[test]
fn split_by_hand() {
    let (instructions, data) = (Some(config(16, 1, 16)), Some(config(32, 2, 16)));
    let split = Level::Split { instructions, data };
    check(split, &[], "f0 r0 f0 w10 f10", "l1i f2/3 out 1; l1d r1/1 w1/1 dirty 1; memory 4 0");
    check(split, &[config(64, 4, 16)], "f0 r0", "l1i f1/1; l1d r1/1; l2 r0/1 f1/1; memory 1 0");
    // What no cache is for is passed over.
    let mut caches = Hierarchy::new(Level::Split { instructions: None, data }, &[], 0).unwrap();
    let mut references = trace("f0 r0 e0");
    references.push(Reference { kind: 4, size: 1, ..Reference::default() });
    caches.add(&batch(&references));
    assert_eq!(summary(&caches), "l1d r1/2; memory 1 0");
    assert_eq!(caches.passed_over(), [0, 0, 1, 1, 0, 0, 0, 0]);
    assert_eq!(caches.references(), 4);
}

#[test]
fn lines_do_not_get_shorter() {
    let first = Level::Split { instructions: Some(config(64, 1, 64)), data: Some(config(32, 1, 32)) };
    let wrong = Hierarchy::new(first, &[config(64, 1, 64), config(64, 1, 32)], 0).err();
    assert_eq!(wrong, Some(Misplaced::SmallerLines { above: 2, below: 3 }));
    let wrong = Hierarchy::new(first, &[config(64, 1, 32)], 0).err();
    assert_eq!(wrong, Some(Misplaced::SmallerLines { above: 1, below: 2 }));
}

/// A cache as one would describe it: each line with when it came, when it was last used, and whether it is dirty.
struct Plain {
    config: Config,
    lines: HashMap<u64, (u64, u64, bool)>,
    counts: Counts,
}

/// Caches as a path from the first to the last, and a clock.
#[derive(Default)]
struct Model {
    caches: Vec<Plain>,
    clock: u64,
    memory: Memory,
}

impl Model {
    fn new(configs: &[Config]) -> Model {
        let plain =
            |config: &Config| Plain { config: *config, lines: HashMap::new(), counts: Counts::default() };
        Model { caches: configs.iter().map(plain).collect(), ..Model::default() }
    }

    fn use_line(&mut self, level: usize, line: u64, dirty: bool) -> bool {
        self.clock += 1;
        let entry = self.caches[level].lines.get_mut(&line);
        entry.map(|entry| *entry = (entry.0, self.clock, entry.2 || dirty)).is_some()
    }

    fn bring(&mut self, level: usize, line: u64, dirty: bool) {
        self.clock += 1;
        let cache = &mut self.caches[level];
        let sets = cache.config.geometry.sets();
        let in_set = cache.lines.iter().filter(|(other, _)| *other % sets == line % sets);
        let full = in_set.clone().count() as u64 == cache.config.geometry.ways();
        let leaves = in_set.min_by_key(|(_, (came, used, _))| match cache.config.policy {
            Policy::Fifo => *came,
            _ => *used,
        });
        let leaves = leaves.map(|(line, _)| *line).filter(|_| full);
        cache.lines.insert(line, (self.clock, self.clock, dirty));
        if let Some(old) = leaves {
            let (_, _, dirty) = cache.lines.remove(&old).unwrap();
            cache.counts.evictions += 1;
            if dirty {
                cache.counts.write_backs += 1;
                let length = cache.config.geometry.line();
                self.write(level + 1, old * length, length);
            }
        }
    }

    fn read(&mut self, level: usize, address: u64, kind: Type) {
        let above = self.caches[level - 1].config.geometry.line();
        self.caches[level - 1].counts.bytes_in += above;
        if level == self.caches.len() {
            self.memory.lines_read += 1;
            self.memory.bytes_read += above;
            return;
        }
        let line = address / self.caches[level].config.geometry.line();
        self.caches[level].counts.accesses[kind as usize] += 1;
        if !self.use_line(level, line, false) {
            self.caches[level].counts.misses[kind as usize] += 1;
            self.read(level + 1, address, kind);
            self.bring(level, line, false);
        }
    }

    fn write(&mut self, level: usize, address: u64, bytes: u64) {
        self.caches[level - 1].counts.bytes_out += bytes;
        if level == self.caches.len() {
            self.memory.writes += 1;
            self.memory.bytes_written += bytes;
            return;
        }
        self.caches[level].counts.accesses[Type::Written as usize] += 1;
        if !self.write_at(level, address, bytes, bytes < self.caches[level].config.geometry.line()) {
            self.caches[level].counts.misses[Type::Written as usize] += 1;
        }
    }

    /// A write to one line: whether it was there. If it is brought in, it is also read if it must be.
    fn write_at(&mut self, level: usize, address: u64, bytes: u64, read: bool) -> bool {
        let Config { geometry, write, allocate, .. } = self.caches[level].config;
        let line = address / geometry.line();
        let back = write == Write::Back;
        let hit = self.use_line(level, line, back);
        if !hit && allocate {
            if read {
                self.read(level + 1, address, Type::Write);
            }
            self.bring(level, line, back);
        }
        let stays = back && (hit || allocate);
        if !stays {
            self.caches[level].counts.writes_through += 1;
            self.write(level + 1, address, bytes);
        }
        hit
    }

    fn reference(&mut self, reference: &Reference) {
        let Some(kind) = Type::of(reference.kind) else { return };
        let length = self.caches[0].config.geometry.line();
        // Byte by byte, which is slow and cannot be wrong.
        let mut lines: Vec<(u64, u64)> = Vec::new();
        for byte in 0..u64::from(reference.size.max(1)) {
            let line = reference.address.wrapping_add(byte) / length;
            match lines.last_mut() {
                Some((last, bytes)) if *last == line => *bytes += 1,
                _ => lines.push((line, 1)),
            }
        }
        let counts = &mut self.caches[0].counts;
        counts.accesses[kind as usize] += 1;
        counts.straddling += u64::from(lines.len() > 1);
        let mut missed = false;
        for (line, bytes) in lines {
            let address = line * length;
            missed |= match kind {
                Type::Write => !self.write_at(0, address, bytes, true),
                _ if self.use_line(0, line, false) => false,
                _ => {
                    self.read(1, address, kind);
                    self.bring(0, line, false);
                    true
                }
            };
        }
        self.caches[0].counts.misses[kind as usize] += u64::from(missed);
    }
}

/// References that meet each other often, of small sizes.
fn near(random: &mut Rng, count: usize) -> Vec<Reference> {
    let mut base = 0;
    (0..count)
        .map(|_| {
            if random.u64(..10) == 0 {
                base = pick(random, &[0, 0x400, 0x7f0, u64::MAX - 0x40]) + random.u64(..64);
            }
            base = base.wrapping_add(pick(random, &[0, 1, 4, 8, 64]));
            Reference {
                kind: random.u64(..8) as u8,
                address: base,
                size: pick(random, &[0, 1, 2, 4, 8, 16, 32, 70]),
                ..Reference::default()
            }
        })
        .collect()
}

#[test]
fn any_caches_as_the_model() {
    let mut random = Rng::with_seed(0x5eed_1234_5678_9abc);
    for round in 0..400 {
        let mut line = pick(&mut random, &[4, 8, 16]);
        let configs: Vec<Config> = (0..1 + random.u64(..3))
            .map(|_| {
                line *= pick(&mut random, &[1, 1, 2]);
                let (ways, sets) = (pick(&mut random, &[1, 2, 3, 4, 8]), pick(&mut random, &[1, 2, 4]));
                Config {
                    policy: pick(&mut random, &[Policy::Lru, Policy::Fifo]),
                    write: pick(&mut random, &[Write::Back, Write::Through]),
                    allocate: random.u64(..3) > 0,
                    ..config(line * ways * sets, ways, line)
                }
            })
            .collect();
        let references = near(&mut random, 1000);
        let mut caches = Hierarchy::new(Level::Unified(configs[0]), &configs[1..], 0).unwrap();
        references.chunks(77).for_each(|piece| caches.add(&batch(piece)));
        let mut model = Model::new(&configs);
        references.iter().for_each(|reference| model.reference(reference));
        for ((name, cache), plain) in caches.caches().iter().zip(&model.caches) {
            assert_eq!(cache.counts(), &plain.counts, "round {round}, {name} of {configs:?}");
            let dirty = plain.lines.values().filter(|(_, _, dirty)| *dirty).count() as u64;
            assert_eq!(cache.dirty(), dirty, "round {round}, {name}");
        }
        assert_eq!(caches.memory(), model.memory, "round {round} {configs:?}");
    }
}

/// Random replacement has no one answer, but these hold.
#[test]
fn random_replacement_keeps_the_books() {
    let mut random = Rng::with_seed(77);
    for round in 0..50 {
        let level = |size, ways| Config { policy: Policy::Random, ..config(size, ways, 16) };
        let references = near(&mut random, 2000);
        let run = |seed| {
            let mut caches = Hierarchy::new(Level::Unified(level(256, 4)), &[level(1024, 8)], seed).unwrap();
            caches.add(&batch(&references));
            caches
        };
        let caches = run(round);
        assert_eq!(summary(&caches), summary(&run(round)), "the same dice, the same numbers");
        let counts: Vec<Counts> = caches.caches().iter().map(|(_, cache)| cache.counts().clone()).collect();
        assert_eq!(counts[1].accesses[Type::Written as usize], counts[0].write_backs);
        assert_eq!(caches.memory().writes, counts[1].write_backs);
        // A cache of one set with a way for every line loses none, whatever the dice.
        let whole = Geometry::fully_associative(1 << 16, 16).unwrap();
        let never = |policy| {
            let config = Config { policy, geometry: whole, ..level(256, 4) };
            let mut caches = Hierarchy::new(Level::Unified(config), &[], round).unwrap();
            caches.add(&batch(&references));
            summary(&caches)
        };
        assert_eq!(never(Policy::Random), never(Policy::Lru));
    }
}

/// What the curve says of a size is what a fully associative LRU cache of that size does.
#[test]
fn the_curve_is_the_caches() {
    let mut random = Rng::with_seed(0xc0ffee);
    for round in 0..60 {
        let references = match round % 2 {
            0 => near(&mut random, 3000),
            _ => references(
                &mut random,
                3000,
                Fields { sizes: true, ..Fields::NONE },
                Bounds { address: 0xffff, ..Bounds::NONE },
            ),
        };
        let line = pick(&mut random, &[4, 16, 64]);
        let references: Vec<Reference> =
            references.into_iter().map(|r| Reference { size: r.size.min(100), ..r }).collect();
        let streams = pick(&mut random, &[Streams::Split, Streams::Unified]);
        let mut curve = Curve::new(line, streams);
        references.chunks(100).for_each(|piece| curve.add(&batch(piece)));
        let sizes = [1, 2, 3, 5, 8, 16, 33, 64, 256];
        let misses: Vec<Vec<[u64; 3]>> =
            curve.caches().iter().map(|(_, distances)| distances.misses(sizes)).collect();
        for (at, size) in sizes.into_iter().enumerate() {
            let config = config(size * line, size, line);
            let first = match streams {
                Streams::Unified => Level::Unified(config),
                Streams::Split => Level::Split { instructions: Some(config), data: Some(config) },
            };
            let mut caches = Hierarchy::new(first, &[], 0).unwrap();
            caches.add(&batch(&references));
            for ((name, cache), misses) in caches.caches().iter().zip(&misses) {
                assert_eq!(cache.counts().misses[..3], misses[at], "round {round}, {name} of {size} lines");
            }
        }
        let rows: u64 =
            curve.caches().iter().flat_map(|(_, d)| d.rows()).flat_map(|(_, row)| row).sum::<u64>();
        let first: u64 = curve.caches().iter().flat_map(|(_, d)| d.first()).sum();
        assert_eq!(rows + first + curve.passed_over().iter().sum::<u64>(), curve.references());
    }
}

/// Threads with caches of their own and nothing shared are as many hierarchies; what they share sees all of them.
#[test]
fn threads_have_their_own_caches_and_one_in_common() {
    let first = Level::Unified(config(64, 1, 16));
    let one = trace("r0 r10 r0 w40 r0");
    let two = trace("r0 r40 r0 w80 r0");
    let run = |shared: Option<Config>| {
        let levels: Vec<Level> = [first].into_iter().chain(shared.map(Level::Unified)).collect();
        let mut threads = System { cores: 2, private: 1, ..System::new(levels) }.build().unwrap();
        threads.add_of(0, &batch(&one));
        threads.add_of(1, &batch(&two));
        threads
    };
    let alone = |references: &[Reference]| {
        let mut caches = Hierarchy::new(first, &[], 0).unwrap();
        caches.add(&batch(references));
        caches.caches()[0].1.counts().clone()
    };
    let (all, a, b) = (run(None), alone(&one), alone(&two));
    let counts = all.caches()[0].1.counts().clone();
    for at in 0..4 {
        assert_eq!(counts.accesses[at], a.accesses[at] + b.accesses[at]);
        assert_eq!(counts.misses[at], a.misses[at] + b.misses[at]);
    }
    // The second thread finds lines in the shared cache that the first has brought there.
    let all = run(Some(config(1024, 4, 16)));
    let names: Vec<String> = all.caches().iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names, ["l1", "l2"]);
    let shared = all.caches()[1].1.counts().clone();
    assert_eq!(shared.accesses[..3].iter().sum::<u64>(), counts.misses.iter().sum());
    // 0, 10, 40 and 80, once each.
    assert_eq!(all.memory().lines_read, 4);
}

/// Misses of the first cache by class: compulsory, capacity, conflict.
fn classes(level: Config, references: &[Reference]) -> [u64; 3] {
    let system = System { classify: true, ..System::new(vec![Level::Unified(level)]) };
    let mut caches = system.build().unwrap();
    caches.add(&batch(references));
    let counts = caches.caches()[0].1.counts().clone();
    assert_eq!(counts.classes.iter().sum::<u64>(), counts.misses.iter().sum::<u64>());
    Class::ALL.map(|class| counts.classes[class as usize])
}

#[test]
fn classes_by_hand() {
    // Two sets of one way: 0, 20 and 40 want the same place. A full cache has two lines.
    let direct = config(32, 1, 16);
    // 0 and 20 are new. Then both were among the last two: only the sets are to blame.
    assert_eq!(classes(direct, &trace("r0 r20 r0 r20")), [2, 0, 2]);
    // Three lines in turn are too many for two, whatever the sets.
    assert_eq!(classes(direct, &trace("r0 r20 r40 r0 r20 r40")), [3, 3, 0]);
    // 10 is in a set of its own and stays; a full LRU cache would have lost it, so a hit is in no class.
    assert_eq!(classes(direct, &trace("r10 r0 r20 r10 r0")), [3, 1, 0]);
    // Fully associative LRU caches have no conflicts; FIFO ones do: after abac, FIFO has lost a, which LRU keeps.
    let full = config(32, 2, 16);
    assert_eq!(classes(full, &trace("r0 r10 r0 r20 r0")), [3, 0, 0]);
    assert_eq!(classes(Config { policy: Policy::Fifo, ..full }, &trace("r0 r10 r0 r20 r0")), [3, 0, 1]);
    // A reference to two lines misses once. 0 is there, and 10 is new.
    assert_eq!(classes(full, &trace("r0 re:4 re:4")), [2, 0, 0]);
    // Writes around the cache bring nothing: both are compulsory, and so is the read.
    let around = Config { allocate: false, ..direct };
    assert_eq!(classes(around, &trace("w0 w0 r0 w0")), [3, 0, 0]);
}

/// A fully associative LRU cache has no conflicts, and as many compulsory misses as the curve has first uses.
#[test]
fn classes_as_the_curve_says() {
    let mut random = Rng::with_seed(31);
    for round in 0..40 {
        let references: Vec<Reference> = near(&mut random, 2000);
        let mut curve = Curve::new(16, Streams::Unified);
        curve.add(&batch(&references));
        let first: u64 = curve.caches()[0].1.first().iter().sum();
        let misses: u64 = curve.caches()[0].1.misses([32])[0].iter().sum();
        assert_eq!(classes(config(512, 32, 16), &references), [first, misses - first, 0], "round {round}");
        // With sets there are as many compulsory ones.
        assert_eq!(classes(config(512, 2, 16), &references)[0], first, "round {round}");
    }
}

#[test]
fn whose_misses_by_hand() {
    let mut caches = Hierarchy::new(Level::Unified(config(32, 1, 16)), &[config(64, 4, 16)], 0).unwrap();
    let regions =
        [("a", 0x0, 0x20), ("b", 0x20, 0x40)].map(|(name, from, to)| Region { name: name.into(), from, to });
    caches.tally(Tallies::new(true, &regions));
    let mut some = Batch::new();
    let fields = Fields { pcs: true, ..Fields::NONE };
    // 0 and 20 take each other's place in l1, and l2 has both from their second time on. 10 is new, and so is 1000.
    for (kind, address, pc) in
        [(0, 0x0, 7), (1, 0x20, 8), (0, 0x0, 7), (1, 0x20, 8), (0, 0x4, 9), (0, 0x10, 7), (2, 0x1000, 5)]
    {
        some.push(fields, Reference { kind, address, pc, ..Reference::default() });
    }
    caches.add(&some);
    let tally = |references, l1, l2| {
        let mut tally = Tally { references, ..Tally::default() };
        (tally.misses[0], tally.misses[1]) = (l1, l2);
        tally
    };
    let tallies = caches.tallies().unwrap();
    let expected = [
        (5, tally([0, 0, 1], [0, 0, 1], [0, 0, 1])),
        (7, tally([3, 0, 0], [3, 0, 0], [2, 0, 0])),
        (8, tally([0, 2, 0], [0, 2, 0], [0, 1, 0])),
        (9, tally([1, 0, 0], [1, 0, 0], [0, 0, 0])),
    ];
    assert_eq!(tallies.pcs(), expected.each_ref().map(|(pc, tally)| (*pc, tally)));
    let (regions, elsewhere) = tallies.regions();
    assert_eq!(regions[0].1, tally([4, 0, 0], [4, 0, 0], [2, 0, 0]));
    assert_eq!(regions[1].1, tally([0, 2, 0], [0, 2, 0], [0, 1, 0]));
    assert_eq!(*elsewhere, tally([0, 0, 1], [0, 0, 1], [0, 0, 1]));
    // Without instructions of their own, references are of the fetch before them.
    let mut caches = Hierarchy::new(Level::Unified(config(32, 1, 16)), &[], 0).unwrap();
    caches.tally(Tallies::new(true, &[]));
    caches.add(&batch(&trace("f100 r0 w4 f104 r8")));
    let pcs: Vec<(u64, [u64; 3])> =
        caches.tallies().unwrap().pcs().into_iter().map(|(pc, tally)| (pc, tally.references)).collect();
    assert_eq!(pcs, [(0x100, [1, 1, 1]), (0x104, [1, 0, 1])]);
}
