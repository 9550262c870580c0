//! Private caches that hear of each other: textbook examples by hand, a plain model, and what must always hold.

use std::collections::{HashMap, HashSet};

use fastrand::Rng;
use refrain_addresses::simulate::{
    Class, Config, Geometry, Hierarchy, Inclusion, Level, Memory, Misplaced, Part, Prefetch, Protocol, State,
    System, Traffic, Type, Write,
};
use refrain_addresses::{Batch, Fields, Reference};

fn config(size: u64, ways: u64, line: u64) -> Config {
    Config::new(Geometry::new(size, ways, line).unwrap())
}

fn system(levels: &[Config], cores: usize, private: usize, protocol: Protocol) -> System {
    let levels = levels.iter().copied().map(Level::Unified).collect();
    System { cores, private, coherence: Some(protocol), ..System::new(levels) }
}

/// What a core does: read or write, address, size.
#[derive(Debug, Clone, Copy)]
struct Step {
    core: usize,
    write: bool,
    address: u64,
    size: u16,
}

impl Step {
    fn go(&self, caches: &mut Hierarchy) {
        let mut batch = Batch::new();
        let reference = Reference {
            kind: u8::from(self.write),
            address: self.address,
            size: self.size,
            ..Reference::default()
        };
        batch.push(Fields { sizes: true, ..Fields::NONE }, reference);
        caches.add_of(self.core, &batch);
    }
}

/// `0r40 1w44:8`: the core, read or write, address and size in hexadecimal; 4 bytes if none is said.
fn steps(text: &str) -> Vec<Step> {
    text.split_whitespace()
        .map(|word| {
            let (address, size) = word[2..].split_once(':').unwrap_or((&word[2..], "4"));
            Step {
                core: word[..1].parse().unwrap(),
                write: &word[1..2] == "w",
                address: u64::from_str_radix(address, 16).unwrap(),
                size: u16::from_str_radix(size, 16).unwrap(),
            }
        })
        .collect()
}

/// The same with fetches: `0f40`. Each is of one byte.
fn play(caches: &mut Hierarchy, text: &str) {
    for word in text.split_whitespace() {
        let mut batch = Batch::new();
        let kind = "rwf".find(&word[1..2]).unwrap() as u8;
        let address = u64::from_str_radix(&word[2..], 16).unwrap();
        batch.push(Fields::NONE, Reference { kind, address, ..Reference::default() });
        caches.add_of(word[..1].parse().unwrap(), &batch);
    }
}

/// First-level caches for fetches and for data, and unified ones behind them.
fn split(first: Config, below: &[Config], private: usize, protocol: Protocol) -> System {
    let first = Level::Split { instructions: Some(first), data: Some(first) };
    let levels = [first].into_iter().chain(below.iter().copied().map(Level::Unified)).collect();
    System { cores: 2, private, coherence: Some(protocol), ..System::new(levels) }
}

fn letter(state: State) -> char {
    match state {
        State::Modified => 'M',
        State::Owned => 'O',
        State::Exclusive => 'E',
        State::Shared => 'S',
        State::Invalid => '-',
    }
}

fn sum(traffic: &[Traffic]) -> Traffic {
    let mut sum = Traffic::default();
    traffic.iter().for_each(|more| sum.add(*more));
    sum
}

/// In words, what is not 0.
fn told(traffic: Traffic) -> String {
    let Traffic {
        reads,
        reads_to_write,
        upgrades,
        silent_upgrades,
        invalidations_sent,
        invalidations_received,
        true_sharing,
        false_sharing,
        transfers_in,
        transfers_out,
        write_backs,
    } = traffic;
    let all = [
        (reads, "rd"),
        (reads_to_write, "rdx"),
        (upgrades, "up"),
        (silent_upgrades, "silent"),
        (invalidations_sent, "sent"),
        (invalidations_received, "received"),
        (true_sharing, "true"),
        (false_sharing, "false"),
        (transfers_in, "in"),
        (transfers_out, "out"),
        (write_backs, "back"),
    ];
    let there = all.into_iter().filter(|(count, _)| *count > 0);
    there.map(|(count, name)| format!("{name}{count}")).collect::<Vec<_>>().join(" ")
}

/// The states of the first line in all cores after each step, what each core counted, and memory's reads and writes.
#[track_caller]
fn check(protocol: Protocol, cores: usize, text: &str, states: &str, traffic: &[&str], memory: (u64, u64)) {
    let steps = steps(text);
    let line = steps[0].address;
    let mut caches = system(&[config(256, 2, 64)], cores, 1, protocol).build().unwrap();
    let mut found = Vec::new();
    for step in &steps {
        step.go(&mut caches);
        found.push((0..cores).map(|core| letter(caches.state(core, line))).collect::<String>());
    }
    assert_eq!(found.join(" "), states, "{} {text}", protocol.name());
    let counted: Vec<String> = caches.traffic().iter().copied().map(told).collect();
    assert_eq!(counted, traffic, "{} {text}", protocol.name());
    let Memory { lines_read, writes, .. } = caches.memory();
    assert_eq!((lines_read, writes), memory, "{} {text}", protocol.name());
}

use Protocol::{Mesi, Moesi, Msi};

/// The example of the textbooks: two read, one of them writes, the other reads again, a third reads.
#[test]
fn two_readers_and_a_writer() {
    let text = "0r0 2r0 2w0 0r0 1r0";
    // What 2 has written goes to memory when 0 reads it, and 0 has it from 2. 1 has it from memory.
    let zero = "rd2 received1 true1 in1";
    check(Msi, 3, text, "S-- S-S --M S-S SSS", &[zero, "rd1", "rd1 up1 sent1 out1 back1"], (3, 1));
    // The first reader is alone and so gives its line to the second.
    let zero = "rd2 received1 true1 in1 out1";
    check(Mesi, 3, text, "E-- S-S --M S-S SSS", &[zero, "rd1", "rd1 up1 sent1 in1 out1 back1"], (2, 1));
    // 2 stays the owner, gives its line to both, and memory is not written to.
    check(Moesi, 3, text, "E-- S-S --M S-O SSO", &[zero, "rd1 in1", "rd1 up1 sent1 in1 out2"], (1, 0));
}

/// Read and then written by one alone: MSI must ask, the others need not.
#[test]
fn who_is_alone_writes_in_silence() {
    check(Msi, 2, "0r0 0w0 0w0", "S- M- M-", &["rd1 up1", ""], (1, 0));
    check(Mesi, 2, "0r0 0w0 0w0", "E- M- M-", &["rd1 silent1", ""], (1, 0));
    check(Moesi, 2, "0r0 0w0 0w0", "E- M- M-", &["rd1 silent1", ""], (1, 0));
}

/// Writes in turn: the line goes from core to core and memory never sees it.
#[test]
fn a_line_that_migrates() {
    for protocol in Protocol::ALL {
        let zero = "rdx2 sent1 received1 true1 in1 out1";
        check(protocol, 2, "0w0 1w0 0w0", "M- -M M-", &[zero, "rdx1 sent1 received1 in1 out1"], (1, 0));
    }
}

/// The owner writes again: all others lose the line, and it is modified, not owned.
#[test]
fn an_owner_writes_again() {
    let (zero, one) = ("rdx1 up1 sent2 out2", "rd1 received1 in1");
    check(Moesi, 3, "0w0 1r0 2r0 0w0", "M-- OS- OSS M--", &[zero, one, one], (1, 0));
    // Another than the owner does: what the owner had not written back is the writer's now.
    let (zero, one) = ("rdx1 received1 out1", "rd1 up1 sent1 in1");
    check(Moesi, 2, "0w0 1r0 1w0", "M- OS -M", &[zero, one], (1, 0));
    // MESI has written it back by then.
    let (zero, one) = ("rdx1 received1 out1 back1", "rd1 up1 sent1 in1");
    check(Mesi, 2, "0w0 1r0 1w0", "M- SS -M", &[zero, one], (1, 1));
}

/// Lines that leave for others are not lost to anybody: 0, 80 and 100 share two ways.
#[test]
fn lines_that_leave_are_no_coherence_misses() {
    // 1 writes what 0 has let go: nobody is told, and 0 then misses for want of room.
    let zero = "rd4 in1";
    check(Mesi, 2, "0r0 0r80 0r100 1w0 0r0", "E- E- -- -M SS", &[zero, "rdx1 out1 back1"], (4, 1));
    // An owner that loses its line has written it back; the others stay as they are, and the next reader asks memory.
    let zero = "rd2 rdx1 out1";
    check(Moesi, 3, "0w0 1r0 0r80 0r100 2r0", "M-- OS- OS- -S- -SS", &[zero, "rd1 in1", "rd1"], (4, 1));
}

/// Two write neighbouring words: false sharing. One word: true sharing. Words on lines of their own: neither.
#[test]
fn true_and_false_sharing() {
    let of = |text: &str| {
        let mut caches = system(&[config(256, 2, 64)], 3, 1, Mesi).build().unwrap();
        steps(text).iter().for_each(|step| step.go(&mut caches));
        let sum = sum(caches.traffic());
        (sum.true_sharing, sum.false_sharing)
    };
    assert_eq!(of("0w0 1w4 0w0 1w4 0w0 1w4"), (0, 4));
    assert_eq!(of("0w0 1w0 0w0 1w0 0w0 1w0"), (4, 0));
    assert_eq!(of("0w0 1w40 0w0 1w40 0w0 1w40"), (0, 0));
    // What a third one writes since counts too: 1 takes the line, 2 writes the word that 0 then reads.
    assert_eq!(of("0r8 1w0 2w8 0r8"), (1, 0));
    assert_eq!(of("0r8 1w0 2wc 0r8"), (0, 1));
    // Later writes of the one who has it count as well, and part of a word is enough.
    assert_eq!(of("0r8 1w0 1wb:1 0r8"), (1, 0));
    assert_eq!(of("0r8 1w0 1wc:1 0r8"), (0, 1));
    // Across two lines: both are lost, one for what was written, the other for its neighbour.
    assert_eq!(of("0r3e 1w3c 1w44 0r3e"), (1, 1));
    // Long lines are told apart in 64 parts: here of four bytes.
    let long = |text: &str| {
        let mut caches = system(&[config(512, 1, 256)], 2, 1, Mesi).build().unwrap();
        steps(text).iter().for_each(|step| step.go(&mut caches));
        let sum = sum(caches.traffic());
        (sum.true_sharing, sum.false_sharing)
    };
    assert_eq!(long("0r4 1wfc 0r4"), (0, 1));
    assert_eq!(long("0r4 1w6:1 0r4:1"), (1, 0));
}

/// A shared level behind: what comes from another core is not asked of it, what is written back goes there.
#[test]
fn a_shared_level() {
    let mut caches = system(&[config(128, 2, 64), config(1024, 4, 64)], 2, 1, Mesi).build().unwrap();
    steps("0w0 1r0 0r40 1r40").iter().for_each(|step| step.go(&mut caches));
    let all = caches.caches();
    let second = all[1].1.counts();
    // 0 and 40 once each, as 1 has both from 0; and the line that 0 had written.
    assert_eq!(second.accesses, [1, 1, 0, 1, 0]);
    assert_eq!(second.misses, [1, 1, 0, 0, 0]);
    assert_eq!((caches.memory().lines_read, caches.memory().writes, all[1].1.dirty()), (2, 0, 1));
    assert_eq!(sum(caches.traffic()).transfers_in, 2);
    // Each core's own numbers: 0 has a write and a read, 1 two reads, all of which miss.
    let own = |core: usize| caches.caches_of(core)[0].1.counts().misses;
    assert_eq!((own(0), own(1)), ([1, 1, 0, 0, 0], [2, 0, 0, 0, 0]));
    // With longer lines, of a shared level that has lost the line, the rest is asked of memory, not of the core.
    let levels = [config(128, 2, 64), config(128, 1, 128)];
    let mut caches = system(&levels, 2, 1, Mesi).build().unwrap();
    steps("0w0 0r80 1r0").iter().for_each(|step| step.go(&mut caches));
    assert_eq!(caches.memory().lines_read, 3);
    assert_eq!(sum(caches.traffic()).transfers_in, 1);
}

/// A program's code and data: a fetch is a read to others, and a write takes lines from caches of fetches too.
#[test]
fn split_caches_and_two_private_levels() {
    let mut caches = split(config(128, 2, 64), &[config(512, 4, 64)], 2, Mesi).build().unwrap();
    let mut go = |core, kind, address| {
        let mut batch = Batch::new();
        batch.push(Fields::NONE, Reference { kind, address, ..Reference::default() });
        caches.add_of(core, &batch);
        (caches.state(0, address), caches.state(1, address))
    };
    use State::{Exclusive, Invalid, Modified, Shared};
    assert_eq!(go(0, 2, 0), (Exclusive, Invalid));
    assert_eq!(go(1, 1, 0), (Invalid, Modified));
    assert_eq!(go(0, 2, 0), (Shared, Shared));
    // Both private levels of 0 lost the line: its second fetch misses in both.
    let misses: Vec<u64> = caches.caches_of(0).iter().map(|(_, part)| part.counts().misses[2]).collect();
    assert_eq!(misses, [2, 0, 2]);
}

/// Caches of one core do not hear of each other: a write leaves the line in the core's own instruction cache, and a fetch does not
/// see what its data cache has.
#[test]
fn caches_of_one_core_do_not_hear_of_each_other() {
    let of = |text: &str| {
        let mut caches = split(config(256, 2, 64), &[], 1, Mesi).build().unwrap();
        play(&mut caches, text);
        let fetches = caches.caches_of(0)[0].1.counts().misses[Type::Fetch as usize];
        (fetches, caches.memory().lines_read, caches.memory().writes, told(caches.traffic()[0]))
    };
    // The fetch goes to memory, and nothing is written back for it.
    assert_eq!(of("0w0 0f0"), (1, 2, 0, "rdx1".into()));
    // The second fetch finds what the first brought.
    assert_eq!(of("0f0 0w0 0f0"), (1, 2, 0, "rd1 silent1".into()));
    // A write of another core takes the line out of both, once.
    assert_eq!(of("0f0 0r0 1w0 0f0 0r0"), (2, 3, 1, "rd2 received1 true1 in1 out1".into()));
}

/// A core that has a line in one of its caches may lack it in another. If another core owns it, what is below is stale, and the
/// line comes from the owner.
#[test]
fn an_owner_gives_to_caches_that_lack_the_line() {
    let accesses = |caches: &Hierarchy, cache: usize, of: Type| {
        let all = caches.caches();
        all[cache].1.counts().accesses[of as usize]
    };
    // Caches side by side: 1 owns what 0 fetches and then reads.
    let mut caches = split(config(256, 4, 64), &[], 1, Moesi).build().unwrap();
    play(&mut caches, "1w0 0f0 0r0");
    assert_eq!((caches.memory().lines_read, caches.traffic()[0].transfers_in), (1, 2));
    assert_eq!((caches.state(0, 0), caches.state(1, 0)), (State::Shared, State::Owned));
    // An owner that has let its lines go has written them back: memory has them.
    play(&mut caches, "1w400 0f400 1r500 1r600 1r700 1r800 0r400");
    assert_eq!((caches.memory().lines_read, caches.memory().writes), (1 + 6, 2));
    assert_eq!(caches.traffic()[0].transfers_in, 3);

    // A write goes through a cache that has the line to one that has lost it.
    let through = Config { write: Write::Through, ..config(256, 4, 64) };
    let levels = [through, config(256, 4, 64), config(4096, 4, 64)];
    let mut caches = system(&levels, 2, 2, Moesi).build().unwrap();
    play(&mut caches, "1w0 0r0 0r40 0r0 0r80 0r0 0rc0 0r0 0r100 0r0");
    assert_eq!((accesses(&caches, 2, Type::Write), caches.traffic()[0].transfers_in), (1, 1));
    play(&mut caches, "0w0");
    assert_eq!((accesses(&caches, 2, Type::Write), caches.traffic()[0].transfers_in), (1, 2));
    assert_eq!((caches.state(0, 0), caches.state(1, 0)), (State::Modified, State::Invalid));

    // The second level prefetches what the first still has.
    let ahead = Config { prefetch: Some(Prefetch::Miss), ..config(256, 1, 64) };
    let levels = [config(256, 4, 64), ahead, config(64 << 10, 4, 64)];
    let mut caches = system(&levels, 2, 2, Moesi).build().unwrap();
    play(&mut caches, "1w400 0r400 0r1000 0r400 0r2000 0r400 0r3000 0r400");
    let before = (accesses(&caches, 2, Type::Prefetch), caches.traffic()[0].transfers_in);
    assert_eq!((caches.state(0, 0x400), caches.state(1, 0x400)), (State::Shared, State::Owned));
    play(&mut caches, "0r3c0");
    let after = (accesses(&caches, 2, Type::Prefetch), caches.traffic()[0].transfers_in);
    assert_eq!(after, (before.0, before.1 + 1));
}

/// Who gives a line gives that line alone: what must leave for it may have the shared level ask memory for another.
#[test]
fn an_owner_gives_no_other_line() {
    // Core 0 has 40 in the first level, dirty, and 0, which 1 owns, in the second, beside c0, which is dirty.
    let second = Config { inclusion: Inclusion::Exclusive, ..config(128, 1, 64) };
    let levels = [config(64, 1, 64), second, config(128, 1, 128)];
    let mut caches = system(&levels, 2, 2, Moesi).build().unwrap();
    play(&mut caches, "1w0 0wc0 0r0 0w40");
    let states = [0, 0x40, 0xc0].map(|address| letter(caches.state(0, address)));
    assert_eq!((states, letter(caches.state(1, 0))), (['S', 'M', 'M'], 'O'));
    let of_0 = |caches: &Hierarchy| (caches.traffic()[0].transfers_in, caches.memory().lines_read);
    let (transfers, lines) = of_0(&caches);
    // Now 0 is written: 40 takes the place of c0, for which the third level needs the other half of a line.
    play(&mut caches, "0w0");
    assert_eq!(letter(caches.state(0, 0xc0)), '-');
    assert_eq!(of_0(&caches), (transfers, lines + 1));
}

/// What goes down for a reader is a write-back of the last cache that the core has for itself.
#[test]
fn write_backs_for_a_reader() {
    let counts = |levels: &[Config], private, text: &str| {
        let mut caches = system(levels, 2, private, Mesi).build().unwrap();
        play(&mut caches, text);
        let of = |(_, part): &(String, _)| {
            let counts = Part::counts(part);
            (counts.write_backs, counts.bytes_out, counts.accesses[Type::Written as usize])
        };
        caches.caches().iter().map(of).collect::<Vec<_>>()
    };
    let levels = [config(1024, 2, 64), config(4096, 4, 64)];
    assert_eq!(counts(&levels, 1, "0r0 1r0 1w0 0r0 0w8 1r0"), [(2, 128, 0), (0, 0, 2)]);
    // The dirt is in the first level, and goes down from the second.
    assert_eq!(counts(&levels, 2, "0w0 1r0"), [(0, 0, 0), (1, 64, 0)]);
}

/// What the model counts of lines that leave or go down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct SentDown {
    evictions: u64,
    write_backs: u64,
}

/// The same in other words, slowly: private caches are lists of lines by last use, everything else is in maps.
struct Model {
    protocol: Protocol,
    sets: u64,
    ways: usize,
    line: u64,
    /// By core and set: lines by last use.
    caches: Vec<HashMap<u64, Vec<u64>>>,
    states: HashMap<(usize, u64), char>,
    dirty: HashSet<(usize, u64)>,
    /// Bytes that others wrote since a core lost a line.
    lost: HashMap<(usize, u64), HashSet<u64>>,
    traffic: Vec<Traffic>,
    misses: Vec<[u64; 2]>,
    sent_down: Vec<SentDown>,
    /// A level for all, of so many lines, fully associative; with whether they are dirty.
    shared: Option<usize>,
    below: Vec<(u64, bool)>,
    memory: (u64, u64),
}

impl Model {
    fn state(&self, core: usize, line: u64) -> char {
        self.states.get(&(core, line)).copied().unwrap_or('-')
    }

    fn others(&self, core: usize, line: u64) -> Vec<usize> {
        (0..self.caches.len()).filter(|&other| other != core && self.state(other, line) != '-').collect()
    }

    fn ask_below(&mut self, line: u64) {
        match (self.shared, self.below.iter().position(|(there, _)| *there == line)) {
            (None, _) => self.memory.0 += 1,
            (Some(_), Some(at)) => {
                let found = self.below.remove(at);
                self.below.push(found);
            }
            (Some(_), None) => {
                self.memory.0 += 1;
                self.put_below(line, false);
            }
        }
    }

    fn put_below(&mut self, line: u64, dirty: bool) {
        let Some(room) = self.shared else {
            self.memory.1 += u64::from(dirty);
            return;
        };
        let was_dirty = match self.below.iter().position(|(there, _)| *there == line) {
            Some(at) => self.below.remove(at).1,
            None => false,
        };
        self.below.push((line, dirty || was_dirty));
        if self.below.len() > room {
            let (_, dirty) = self.below.remove(0);
            self.memory.1 += u64::from(dirty);
        }
    }

    fn go(&mut self, step: &Step) {
        let (first, last) = (step.address, step.address + u64::from(step.size) - 1);
        let mut missed = false;
        for line in first / self.line..=last / self.line {
            let bytes = first.max(line * self.line)..=last.min(line * self.line + self.line - 1);
            missed |= self.touch(step.core, step.write, line, bytes.collect());
        }
        self.misses[step.core][usize::from(step.write)] += u64::from(missed);
    }

    fn touch(&mut self, core: usize, write: bool, line: u64, bytes: Vec<u64>) -> bool {
        let before = self.state(core, line);
        let others = self.others(core, line);
        let owner = others.iter().copied().find(|other| "MOE".contains(self.state(*other, line)));
        if before == '-'
            && let Some(written) = self.lost.remove(&(core, line))
        {
            let sharing = bytes.iter().any(|byte| written.contains(byte));
            self.traffic[core].true_sharing += u64::from(sharing);
            self.traffic[core].false_sharing += u64::from(!sharing);
        }
        if before == '-' {
            match owner {
                Some(owner) => {
                    self.traffic[core].transfers_in += 1;
                    self.traffic[owner].transfers_out += 1;
                    if !write && self.protocol != Moesi && self.dirty.remove(&(owner, line)) {
                        self.traffic[owner].write_backs += 1;
                        self.sent_down[owner].write_backs += 1;
                        self.put_below(line, true);
                    }
                }
                None => self.ask_below(line),
            }
        }
        if write {
            match before {
                '-' => self.traffic[core].reads_to_write += 1,
                'E' => self.traffic[core].silent_upgrades += 1,
                'S' | 'O' => self.traffic[core].upgrades += 1,
                _ => {}
            }
            for other in others {
                self.traffic[core].invalidations_sent += 1;
                self.traffic[other].invalidations_received += 1;
                self.states.remove(&(other, line));
                self.dirty.remove(&(other, line));
                self.caches[other].get_mut(&(line % self.sets)).unwrap().retain(|there| *there != line);
                self.lost.insert((other, line), HashSet::new());
            }
            for ((loser, of), written) in &mut self.lost {
                if *of == line && *loser != core {
                    written.extend(&bytes);
                }
            }
            self.states.insert((core, line), 'M');
        } else if before == '-' {
            self.traffic[core].reads += 1;
            if let Some(owner) = owner {
                let state = if self.dirty.contains(&(owner, line)) { 'O' } else { 'S' };
                self.states.insert((owner, line), state);
            }
            let alone = others.is_empty() && self.protocol != Msi;
            self.states.insert((core, line), if alone { 'E' } else { 'S' });
        }
        let set = self.caches[core].entry(line % self.sets).or_default();
        set.retain(|there| *there != line);
        set.push(line);
        if write {
            self.dirty.insert((core, line));
        }
        let set = self.caches[core].get_mut(&(line % self.sets)).unwrap();
        if set.len() > self.ways {
            let old = set.remove(0);
            self.states.remove(&(core, old));
            self.sent_down[core].evictions += 1;
            if self.dirty.remove(&(core, old)) {
                self.sent_down[core].write_backs += 1;
                self.put_below(old, true);
            }
        }
        before == '-'
    }
}

#[test]
fn as_a_plain_model() {
    let mut seen = Traffic::default();
    for seed in 0..3000 {
        let mut rng = Rng::with_seed(seed);
        let protocol = Protocol::ALL[rng.usize(..3)];
        let (cores, sets, ways) = (rng.usize(2..=4), 1 << rng.u64(..3), rng.u64(1..=3));
        let line = 1 << rng.u64(3..=6);
        let shared = rng.bool().then(|| rng.u64(1..=8));
        let levels: Vec<Config> = [config(sets * ways * line, ways, line)]
            .into_iter()
            .chain(shared.map(|lines| config(lines * line, lines, line)))
            .collect();
        let mut caches = system(&levels, cores, 1, protocol).build().unwrap();
        let mut model = Model {
            protocol,
            sets,
            ways: ways as usize,
            line,
            caches: vec![HashMap::new(); cores],
            states: HashMap::new(),
            dirty: HashSet::new(),
            lost: HashMap::new(),
            traffic: vec![Traffic::default(); cores],
            misses: vec![[0; 2]; cores],
            sent_down: vec![SentDown::default(); cores],
            shared: shared.map(|lines| lines as usize),
            below: Vec::new(),
            memory: (0, 0),
        };
        let lines = rng.u64(2..=16);
        for n in 0..200 {
            let step = Step {
                core: rng.usize(..cores),
                write: rng.u8(..3) == 0,
                address: rng.u64(..lines * line),
                size: 1 << rng.u16(..4),
            };
            step.go(&mut caches);
            model.go(&step);
            for core in 0..cores {
                for at in 0..=lines {
                    let found = letter(caches.state(core, at * line));
                    assert_eq!(found, model.state(core, at), "seed {seed}, step {n}, core {core}, line {at}");
                }
            }
        }
        assert_eq!(caches.traffic(), model.traffic, "seed {seed}");
        let Memory { lines_read, writes, .. } = caches.memory();
        assert_eq!((lines_read, writes), model.memory, "seed {seed}");
        for core in 0..cores {
            let all = caches.caches_of(core);
            let (counts, own) = (all[0].1.counts(), &model.sent_down[core]);
            assert_eq!(counts.misses[..2], model.misses[core], "seed {seed}, core {core}");
            let found = SentDown { evictions: counts.evictions, write_backs: counts.write_backs };
            assert_eq!(found, *own, "seed {seed}, core {core}");
            assert_eq!(counts.bytes_out, own.write_backs * line, "seed {seed}, core {core}");
            assert_eq!(all[0].1.dirty(), model.dirty.iter().filter(|(of, _)| *of == core).count() as u64);
        }
        seen.add(sum(caches.traffic()));
    }
    // All of it happens, often.
    let least =
        [seen.true_sharing, seen.false_sharing, seen.upgrades, seen.silent_upgrades, seen.write_backs];
    assert!(least.into_iter().all(|count| count > 1000), "{}", told(seen));
}

/// Whatever stands between: one writer or many readers, and what one sends another receives.
#[test]
fn one_writer_or_many_readers() {
    for seed in 0..600 {
        let mut rng = Rng::with_seed(seed);
        let protocol = Protocol::ALL[rng.usize(..3)];
        let first = match rng.u8(..4) {
            0 => Config { prefetch: Some(Prefetch::Miss), ..config(128, 2, 16) },
            1 => Config { victims: 2, ..config(64, 1, 16) },
            2 => Config { write: Write::Through, allocate: rng.bool(), ..config(128, 2, 16) },
            _ => config(128, 2, 16),
        };
        let inclusion = [Inclusion::Free, Inclusion::Inclusive, Inclusion::Exclusive][rng.usize(..3)];
        let inclusion = if first.write == Write::Through { Inclusion::Free } else { inclusion };
        let second = Config { inclusion, ..config(256, 4, 16) };
        let third = Config {
            inclusion: if rng.bool() { Inclusion::Inclusive } else { Inclusion::Free },
            ..config(1024, 4, 32)
        };
        let cores = rng.usize(2..=4);
        let mut caches = system(&[first, second, third], cores, 2, protocol).build().unwrap();
        let lines = rng.u64(8..=64);
        for n in 0..300 {
            let step = Step {
                core: rng.usize(..cores),
                write: rng.u8(..3) == 0,
                address: rng.u64(..lines * 16),
                size: 1 << rng.u16(..4),
            };
            step.go(&mut caches);
            let last = step.address + u64::from(step.size) - 1;
            let (own, of_all) = (caches.state(step.core, last), |line: u64| {
                (0..cores).map(|core| letter(caches.state(core, line * 16))).collect::<String>()
            });
            assert!(own == State::Modified || !step.write, "seed {seed}, step {n}: {own:?}");
            assert_ne!(own, State::Invalid, "seed {seed}, step {n}");
            for line in 0..lines + 2 {
                let all = of_all(line);
                let count = |which: &str| all.chars().filter(|state| which.contains(*state)).count();
                assert!(count("MOE") <= 1, "seed {seed}, step {n}: {all}");
                assert!(count("ME") == 0 || count("-") == cores - 1, "seed {seed}, step {n}: {all}");
                assert!(protocol == Moesi || count("O") == 0, "{all}");
                assert!(protocol != Msi || count("E") == 0, "{all}");
            }
        }
        let sum = sum(caches.traffic());
        assert_eq!(sum.invalidations_sent, sum.invalidations_received, "seed {seed}");
        assert_eq!(sum.transfers_in, sum.transfers_out, "seed {seed}");
        assert!(sum.coherence_misses() <= sum.invalidations_received, "seed {seed}");
        assert!(protocol != Moesi || sum.write_backs == 0);
    }
}

/// Cores that never meet count as they do without a protocol.
#[test]
fn without_sharing_nothing_changes() {
    let levels = [config(256, 2, 32), config(1024, 4, 32)];
    let mut rng = Rng::with_seed(5);
    let steps: Vec<Step> = (0..5000)
        .map(|n| Step {
            core: n % 2,
            write: rng.u8(..3) == 0,
            address: rng.u64(..512) * 4 + (n as u64 % 2) * 4096,
            size: 4,
        })
        .collect();
    let without = System { coherence: None, ..system(&levels, 2, 1, Mesi) };
    let mut plain = without.build().unwrap();
    steps.iter().for_each(|step| step.go(&mut plain));
    assert!(plain.traffic().is_empty());
    for protocol in Protocol::ALL {
        let mut caches = system(&levels, 2, 1, protocol).build().unwrap();
        steps.iter().for_each(|step| step.go(&mut caches));
        assert_eq!(caches.memory(), plain.memory());
        for ((_, with), (_, without)) in caches.caches().iter().zip(plain.caches()) {
            assert_eq!(with.counts(), without.counts());
        }
        let sum = sum(caches.traffic());
        assert_eq!((sum.invalidations_sent, sum.transfers_in, sum.coherence_misses()), (0, 0, 0));
        let first = caches.caches()[0].1.counts().clone();
        assert_eq!(sum.reads, first.misses[Type::Read as usize]);
        // What was counted is forgotten, the lines are not.
        caches.reset();
        assert!(caches.traffic().iter().all(|traffic| *traffic == Traffic::default()));
        assert_ne!(caches.state(steps[4999].core, steps[4999].address), State::Invalid);
    }
}

#[test]
fn what_cannot_be_coherent() {
    let plain = config(256, 2, 64);
    let refused = |levels: &[Config], cores, private| system(levels, cores, private, Mesi).build().err();
    assert_eq!(refused(&[plain], 2, 1), None);
    assert_eq!(refused(&[plain], 64, 1), None);
    for cores in [1, 65] {
        assert_eq!(refused(&[plain], cores, 1), Some(Misplaced::Cores(cores)));
    }
    let sectors = Config { sector: Some(32), ..plain };
    let through = Config { write: Write::Through, ..plain };
    let around = Config { allocate: false, ..plain };
    let blind = Config { fetch: false, ..plain };
    let said = |config: Config| refused(&[config], 2, 1).unwrap().to_string();
    assert_eq!(
        said(sectors),
        "coherence: level 1 has sectors, which caches that hear of each other cannot have"
    );
    assert!(said(blind).starts_with("coherence: level 1 has writes that fetch nothing (no-fetch), which"));
    assert_eq!(said(through), "coherence: level 1 is the last private level, and must be back, not through");
    assert_eq!(
        said(around),
        "coherence: level 1 is the last private level, and must be allocate, not no-allocate"
    );
    for config in [sectors, through, around, blind] {
        // In a level for all they do no harm.
        let behind = Config { sector: config.sector.map(|_| 64), ..config };
        assert_eq!(refused(&[plain, behind], 2, 1), None, "{config:?}");
    }
    // Before another that cores have for themselves, writes may be passed on.
    assert_eq!(refused(&[through, plain], 2, 2), None);
    assert_eq!(refused(&[around, plain], 2, 2), None);
    let lines = |one: &str, other: &str| {
        format!("coherence: private caches have lines of one length, and those of {one} and {other} differ")
    };
    let longer = config(1024, 2, 128);
    let said = |levels: &[Config], private| refused(levels, 2, private).unwrap().to_string();
    assert_eq!(said(&[plain, longer], 2), lines("l1", "l2"));
    assert_eq!(said(&[plain, plain, longer], 3), lines("l2", "l3"));
    let apart = Level::Split { instructions: Some(config(256, 2, 32)), data: Some(plain) };
    let apart = System { cores: 2, coherence: Some(Mesi), ..System::new(vec![apart]) };
    assert_eq!(apart.build().err().unwrap().to_string(), lines("l1d", "l1i"));
    // Those that get shorter are wrong with and without coherence, and the reason is the same.
    let shorter = [plain, config(256, 2, 32)];
    let deaf = System { coherence: None, ..system(&shorter, 2, 2, Mesi) };
    assert_eq!(refused(&shorter, 2, 2), Some(Misplaced::SmallerLines { above: 1, below: 2 }));
    assert_eq!(refused(&shorter, 2, 2), deaf.build().err());
    assert_eq!(refused(&[plain, config(1024, 2, 128)], 2, 1), None);
    let exclusive = Config { inclusion: Inclusion::Exclusive, ..config(1024, 2, 64) };
    assert!(matches!(refused(&[plain, exclusive], 2, 1), Some(Misplaced::Incoherent { level: 2, .. })));
    assert_eq!(refused(&[plain, exclusive], 2, 2), None);
    let fetches = Level::Split { instructions: Some(plain), data: None };
    let system = System { cores: 2, coherence: Some(Mesi), ..System::new(vec![fetches]) };
    assert_eq!(system.build().err(), Some(Misplaced::NoData));
}

/// What a write of another core took away is a class of misses; others are as they would be.
#[test]
fn a_class_of_misses() {
    let of = |levels: &[Config], text: &str| {
        let mut caches = System { classify: true, ..system(levels, 2, 1, Mesi) }.build().unwrap();
        steps(text).iter().for_each(|step| step.go(&mut caches));
        let sum = sum(caches.traffic());
        let classes: Vec<[u64; 4]> = caches.caches().iter().map(|(_, part)| part.counts().classes).collect();
        let [conflict, capacity, compulsory, coherence] = classes[0];
        assert_eq!(coherence, sum.coherence_misses(), "{text}");
        let shared = classes.get(1).map(|classes| classes[Class::Coherence as usize]);
        assert_eq!(shared.unwrap_or(0), 0, "{text}");
        (compulsory, capacity, conflict, coherence)
    };
    // Two sets of one way. 0 is new to both; 1 takes it from 0.
    let one = [config(128, 1, 64)];
    assert_eq!(of(&one, "0r0 1w0 0r0 0r0"), (2, 0, 0, 1));
    // 80 takes the place of 0, in core 0 alone: then 0 is missing for the set, whoever has written to it.
    assert_eq!(of(&one, "0r0 0r80 1w0 0r0"), (3, 0, 1, 0));
    // Used since it came back, the line is lost to nobody.
    assert_eq!(of(&one, "0r0 1w0 0r0 0r80 0r0"), (3, 0, 1, 1));
    assert_eq!(of(&[one[0], config(1024, 4, 64)], "0r0 1w0 0r0 1w0 1r40 0r0"), (3, 0, 0, 2));
    // A prefetch brings 40 back, and c0 then takes its place: it is missing for want of room, as two others were used since.
    let ahead = [Config { prefetch: Some(Prefetch::Miss), ..one[0] }];
    assert_eq!(of(&ahead, "0r40 1w40 0r0 0rc0 0r40"), (4, 1, 0, 0));
    // Without c0 the line is there when it is used.
    assert_eq!(of(&ahead, "0r40 1w40 0r0 0r40"), (3, 0, 0, 0));
    // Lost again after the prefetch, it is lost.
    assert_eq!(of(&ahead, "0r40 1w40 0r0 1w40 0r40"), (3, 0, 0, 1));
}

/// The class and the count of sharing are found apart, and agree with every prefetcher. References are within one line: one that
/// lacks two has one class.
#[test]
fn the_class_is_the_sharing_with_every_prefetcher() {
    for prefetch in Prefetch::ALL {
        let mut seen = (0, 0);
        for seed in 0..60 {
            let mut rng = Rng::with_seed(seed);
            let first = Config { prefetch: Some(prefetch), ..config(16 << rng.u32(1..=4), 1, 16) };
            let protocol = Protocol::ALL[rng.usize(..3)];
            let cores = rng.usize(2..=3);
            let mut caches =
                System { classify: true, ..system(&[first], cores, 1, protocol) }.build().unwrap();
            for at in 0..600 {
                // Now by steps, which a stride is, now anywhere.
                let line = if at % 12 < 6 { at % 12 } else { rng.u64(..24) };
                let core = if at % 12 < 6 { 0 } else { rng.usize(..cores) };
                let (write, address) = (rng.u8(..3) == 0, line * 16 + rng.u64(..4) * 4);
                Step { core, write, address, size: 4 }.go(&mut caches);
            }
            for core in 0..cores {
                let (counts, traffic) =
                    (caches.caches_of(core)[0].1.counts().clone(), caches.traffic()[core]);
                let class = counts.classes[Class::Coherence as usize];
                assert_eq!(class, traffic.coherence_misses(), "{}, seed {seed}", prefetch.name());
                seen = (seen.0 + class, seen.1 + counts.prefetches);
            }
        }
        assert!(seen.0 > 500 && seen.1 > 500, "{}: {seen:?}", prefetch.name());
    }
}

/// What prefetches of the first level bring back to the second is not lost there either.
#[test]
fn a_prefetch_through_a_second_private_level() {
    let first = Config { prefetch: Some(Prefetch::Miss), ..config(128, 1, 64) };
    for inclusion in [Inclusion::Free, Inclusion::Exclusive] {
        let second = Config { inclusion, ..config(256, 2, 64) };
        let mut caches = System { classify: true, ..system(&[first, second], 2, 2, Mesi) }.build().unwrap();
        // c0 takes the place of 40 in the first level. 1 takes it from the second, a prefetch brings it back, others take its place.
        steps("0r40 0rc0 1w40 0r0 0rc0 0r140 0r1c0 0r40").iter().for_each(|step| step.go(&mut caches));
        for (name, part) in caches.caches_of(0) {
            assert_eq!(part.counts().classes[Class::Coherence as usize], 0, "{name}, {inclusion:?}");
        }
        assert_eq!(caches.traffic()[0].invalidations_received, 1, "{inclusion:?}");
        assert_eq!(caches.traffic()[0].coherence_misses(), 0, "{inclusion:?}");
    }
}
