//! Reading is safe on any bytes, and damage is always found and named.

use crate::seal;
use crate::stencil;
use crate::torus;

use fastrand::Rng;
use refrain_fold::bundle::classes::Kind;
use refrain_fold::bundle::sites::{Frame, Module, Sites, Stack};
use refrain_fold::bundle::{Bundle, Class, Classes, SymbolEntry, Tally, ThreadPart};
use refrain_fold::grammar::{Grammar, Item, Symbol};
use refrain_fold::ranks::{Part, RankList};
use refrain_times::paths::{Before, Paths};
use refrain_tracefile::clocks::{Clock, Clocks, Point};
use refrain_tracefile::settle;
use refrain_tracefile::{
    Arg, CodeAddress, Contents, Cores, Error, InFlight, Meta, Profile, Trace, Waited, open, outline, read,
    save, sections, write, write_plain,
};
use seal::{crc, reseal};

fn small() -> Trace {
    stencil::trace(3, 20)
}

#[test]
fn every_flipped_byte_is_found_in_its_section() {
    let torus = torus::trace(&[3, 3], 4);
    for good in [write(&small()), write_plain(&small()), write(&torus)] {
        let sections = sections(&good).unwrap();
        for at in 0..good.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                let error = read(&bad).unwrap_err();
                let place = sections.iter().find(|s| (s.offset..s.offset + s.stored).contains(&at)).unwrap();
                let message = error.to_string();
                assert!(message.contains("offset"), "{message}");
                match error {
                    Error::Damaged { section, start, end } => {
                        let pieces = section == "packed" && place.stored != place.raw;
                        assert!(pieces || section == place.name, "{section} for {}", place.name);
                        assert!((start..end).contains(&at));
                    }
                    Error::Foreign { .. } => assert!(at < 4),
                    Error::Version { .. } => assert_eq!(at, 4),
                    Error::Truncated { .. } => assert_eq!(place.name, "header"),
                    other => panic!("byte {at}: {other}"),
                }
            }
        }
    }
}

#[test]
fn every_cut_is_found() {
    let good = write(&small());
    for len in 0..good.len() {
        match read(&good[..len]) {
            Err(Error::Foreign { len: 0 }) => assert_eq!(len, 0),
            Err(Error::Truncated { len: at, need }) => assert!(at == len && need > len),
            other => panic!("cut at {len}: {other:?}"),
        }
    }
    let longer = [&good[..], b"x"].concat();
    assert!(matches!(read(&longer), Err(Error::Trailing { start, end }) if start + 1 == end));
}

#[test]
fn foreign_files_are_named_as_such() {
    for bytes in [&b""[..], b"x", b"\x7fELF\x02\x01\x01", b"RFN", &[0; 1000]] {
        assert!(matches!(read(bytes), Err(Error::Foreign { .. })));
    }
}

/// A file with these flags, announced plain length and sections (head bytes, content), and right checksums.
fn file(flags: u8, plain_len: &[u8], sections: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut bytes = [&b"\x93RFN\x03"[..], &[flags, sections.len() as u8], plain_len].concat();
    for (head, content) in sections {
        assert!(content.len() < 0x80);
        bytes.extend_from_slice(head);
        bytes.push(content.len() as u8);
        bytes.extend(crc(content));
    }
    let sum = crc(&bytes);
    bytes.extend(sum);
    sections.iter().for_each(|(_, content)| bytes.extend_from_slice(content));
    bytes
}

/// The sections of an empty trace, stored plainly.
const EMPTY: [(&[u8], &[u8]); 6] = [
    (&[1], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    (&[2], &[0]),
    (&[3], &[0, 0]),
    (&[4], &[0, 0]),
    (&[5], &[0]),
    (&[6], &[0, 0, 0, 0, 0]),
];

#[test]
fn a_file_made_by_hand_from_the_format_document() {
    let trace = read(&file(0, &[0], &EMPTY)).unwrap();
    assert_eq!(trace, Trace::default());
    assert_eq!(write_plain(&trace), file(0, &[0], &EMPTY));
    assert!(read(&file(7, &[0], &EMPTY)).unwrap().meta.complete);
}

#[test]
fn unknown_sections() {
    let with = |extra: (&'static [u8], &'static [u8])| file(0, &[0], &[&EMPTY[..], &[extra]].concat());
    assert!(read(&with((&[0x40 | 9], b"whatever"))).is_ok(), "optional: passed over");
    assert!(sections(&with((&[0x40 | 9], b"whatever"))).unwrap().iter().any(|s| s.name == "unknown"));
    let error = read(&with((&[9], b"whatever"))).unwrap_err();
    assert!(matches!(error, Error::Unknown { kind: 9, version: 1, .. }), "{error}");
    let error = read(&with((&[0x80 | 2, 5], b""))).unwrap_err();
    assert!(matches!(error, Error::Unknown { kind: 2, version: 5, .. }), "{error}");
    let error = read(&with((&[0x60 | 9], b""))).unwrap_err();
    assert!(matches!(error, Error::Unknown { kind: 9, .. }), "packed, so it cannot be passed over: {error}");
}

#[test]
fn headers_that_make_no_sense() {
    let malformed = |bytes: Vec<u8>| matches!(read(&bytes), Err(Error::Malformed { section: "header", .. }));
    assert!(malformed(file(0x80, &[0], &EMPTY)), "unknown flag");
    assert!(malformed(file(0, &[0xff, 0xff, 0xff, 0x7f], &EMPTY)), "a huge plain length");
    let mut swapped = EMPTY;
    swapped.swap(2, 3);
    assert!(malformed(file(0, &[0], &swapped)), "out of order");
    assert!(matches!(read(&file(0, &[0], &EMPTY[..5])), Err(Error::Missing { section: "tallies" })));
}

/// A trace of one rank whose only lane holds these numbers.
fn of_numbers(values: &[i64]) -> Trace {
    let tally = Tally { total: 0, min: 0, max: 0 };
    let symbols =
        vec![SymbolEntry { bytes: [7].into(), site: 0, lanes: 1, tally, classes: Default::default() }];
    let structure =
        Grammar { rules: vec![vec![Item { symbol: Symbol::Terminal(0), count: values.len() as u64 }]] };
    let lanes = vec![vec![stencil::stream(values)]];
    let structure = structure.into();
    let part = ThreadPart { thread: 0, structure, times: Vec::new(), lanes, lengths: Vec::new(), digest: 1 };
    Trace { bundle: Bundle::of_rank((0, 0), symbols, vec![part]).unwrap(), ..Trace::default() }
}

/// An overview is the same trace without times, and blocks are not unpacked for it: damage there is not noticed.
#[test]
fn an_outline_is_the_trace_without_what_it_does_not_need() {
    let mut random = Rng::with_seed(77);
    let values: Vec<i64> = (0..5000).map(|_| random.u64(..1000) as i64).collect();
    for trace in [small(), torus::trace(&[3, 3], 4), of_numbers(&values), any_trace(&mut random)] {
        for bytes in [write(&trace), write_plain(&trace)] {
            let Contents { trace: mut seen, sections: stored, .. } = outline(&bytes).unwrap();
            let mut all = read(&bytes).unwrap();
            let stored = stored.into_iter().map(|s| (s.name, s.stored));
            assert!(stored.eq(sections(&bytes).unwrap().into_iter().map(|s| (s.name, s.stored))));
            for symbol in seen.bundle.symbols.iter_mut().chain(&mut all.bundle.symbols) {
                symbol.tally = Tally { total: 0, min: 0, max: 0 };
                symbol.classes = Classes::default();
            }
            (all.meta.profile, all.meta.paths) = (None, None);
            assert_eq!(seen, all);
        }
    }
    let mut bytes = write(&of_numbers(&values));
    let places = sections(&bytes).unwrap();
    let blocks = places.iter().find(|s| s.name == "blocks").unwrap();
    bytes[blocks.offset..blocks.offset + blocks.stored].fill(0xff);
    reseal(&mut bytes, &places);
    assert!(matches!(read(&bytes), Err(Error::Malformed { .. })));
    let trace = outline(&bytes).unwrap().trace;
    // What is not there sums up to nothing.
    assert_eq!(trace.bundle.streams.iter().map(|stream| stream.sum(5000)).sum::<i128>(), 0);
}

/// Numbers without a shape are stored as they were packed: nothing is gained by packing them again.
#[test]
fn irregular_numbers_are_a_section_of_their_own() {
    let mut random = Rng::with_seed(31);
    let values: Vec<i64> = (0..100_000).map(|_| random.u64(..1000) as i64).collect();
    let trace = of_numbers(&values);
    let bytes = write(&trace);
    let blocks = sections(&bytes).unwrap().into_iter().find(|s| s.name == "blocks").unwrap();
    assert_eq!(blocks.stored, blocks.raw);
    assert!(bytes.len() - blocks.stored < 400, "{} {}", bytes.len(), blocks.stored);
    assert!(bytes.len() * 8 < 100_000 * 1025 / 100, "{}", bytes.len());
    assert_eq!(read(&bytes).unwrap(), trace);
    assert_eq!(read(&write_plain(&trace)).unwrap(), trace);
    for values in [(0..300).map(|i| i % 9 + i / 9 * 100).collect(), vec![5; 9]] {
        let bytes = write(&of_numbers(&values));
        assert!(bytes.len() < 130, "{}", bytes.len());
        assert!(read(&bytes).unwrap().bundle.streams[0].iter().take(values.len()).eq(values));
    }
}

/// Damage under a right checksum, as a hostile writer would do it.
#[test]
fn nonsense_under_a_right_checksum() {
    let mut random = Rng::with_seed(17);
    let mut refused = 0;
    let noise: Vec<i64> = (0..600).map(|_| random.u64(..99) as i64).collect();
    let nest: Vec<i64> = (0..300).map(|i| i % 9 + i / 9 * 100).collect();
    let mut sited = any_trace(&mut random);
    while sited.bundle.sites.stacks.len() < 10 {
        sited = any_trace(&mut random);
    }
    let traces = [small(), torus::trace(&[3, 4], 5), of_numbers(&noise), of_numbers(&nest), called(&sited)];
    let files: Vec<Vec<u8>> =
        traces.iter().flat_map(|t| [write(t), write_plain(t), write_plain(t)]).collect();
    let places: Vec<_> = files.iter().map(|file| sections(file).unwrap()).collect();
    for round in 0..750 {
        let (good, places) = (&files[round % 15], &places[round % 15]);
        let mut bad = good.clone();
        for _ in 0..1 + random.u64(..3) {
            let at = places[0].stored as u64 + random.u64(..(good.len() - places[0].stored) as u64);
            bad[at as usize] = random.u64(..256) as u8;
        }
        reseal(&mut bad, places);
        match read(&bad) {
            Ok(trace) => trace.bundle.validate().unwrap(),
            Err(Error::Malformed { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 100);
}

/// Little but call stacks, so that damage hits them.
fn called(trace: &Trace) -> Trace {
    let mut bundle = Bundle { symbols: trace.bundle.symbols.clone(), ..Bundle::default() };
    bundle.sites = trace.bundle.sites.clone();
    Trace { bundle, ..Trace::default() }
}

/// A recursion a hundred thousand deep, all of it recorded: small, and read without recursing.
#[test]
fn deep_call_stacks() {
    let mut trace = Trace::default();
    let module = Module { path: "/bin/deep".into(), build_id: [].into() };
    let tally = Tally { total: 0, min: 0, max: 0 };
    let (mut outer, sites) = (0, &mut trace.bundle.sites);
    for depth in 0..100_000 {
        outer = sites.add_stack(Stack { outer, frame: Frame { module: module.key(), offset: 64 } });
        if depth % 1000 == 0 {
            trace.bundle.symbols.push(SymbolEntry {
                bytes: [7].into(),
                site: outer,
                lanes: 0,
                tally,
                classes: Default::default(),
            });
        }
    }
    sites.add_module(module);
    let bytes = write(&trace);
    assert_eq!(read(&bytes).unwrap(), trace);
    assert!(bytes.len() < 4000, "{}", bytes.len());
}

/// A small file must not make its reader fill the memory: ranks in the run, ranks on hosts, lanes of symbols.
#[test]
fn giants_are_refused() {
    let mut trace = Trace { meta: Meta { ranks: 1 << 24, ..Meta::default() }, ..Trace::default() };
    trace.bundle.world = 1 << 24;
    assert!(read(&write(&trace)).is_ok());
    trace.meta.ranks += 1;
    assert!(matches!(read(&write(&trace)), Err(Error::Malformed { section: "meta", .. })));
    let all = RankList { parts: vec![Part { start: 0, dims: vec![(u32::MAX, 1)] }] };
    trace.meta = Meta { hosts: vec![("a".into(), all)], ..Meta::default() };
    assert!(matches!(read(&write(&trace)), Err(Error::Malformed { section: "meta", .. })));

    // 2000 structures that nobody has, of 200 symbols with 65535 lanes each: 26 thousand million lanes.
    let symbol = |i: u8| SymbolEntry {
        bytes: [i].into(),
        site: 0,
        lanes: u16::MAX,
        tally: Tally { total: 0, min: 0, max: 0 },
        classes: Default::default(),
    };
    let start: Vec<Item> = (0..200).map(|t| Item { symbol: Symbol::Terminal(t), count: 1 }).collect();
    (trace.meta, trace.bundle.world) = (Meta::default(), 0);
    trace.bundle.symbols = (0..200).map(symbol).collect();
    trace.bundle.structures = vec![Grammar { rules: vec![start] }.into(); 2000];
    assert_eq!(read(&write_plain(&trace)).unwrap(), trace);
}

#[test]
fn random_bytes_after_a_good_start() {
    let mut random = Rng::with_seed(5);
    for _ in 0..20_000 {
        let mut bytes = b"\x93RFN\x01".to_vec();
        bytes.extend((0..random.u64(..80)).map(|_| random.u64(..256) as u8));
        assert!(read(&bytes).is_err());
    }
}

fn any_text(random: &mut Rng) -> String {
    let letters = ['a', 'Z', ' ', '\0', '\u{1}', '/', 'é', '日', '\u{10ffff}', '0'];
    (0..random.u64(..12)).map(|_| letters[random.u64(..letters.len() as u64) as usize]).collect()
}

fn any_number(random: &mut Rng) -> u64 {
    let bits = random.u64(..65) as u32;
    random.u64(..u64::MAX).checked_shr(64 - bits).unwrap_or(0) | u64::from(bits == 64) << 63
}

fn any_site(random: &mut Rng, sites: &mut Sites) -> u64 {
    let mut outer = 0;
    for _ in 0..random.u64(..5) {
        let build_id = (0..random.u64(..2) * 20).map(|_| random.u64(..256) as u8).collect();
        let module = Module { path: any_text(random), build_id };
        let unknown = random.u64(..6) == 0;
        let frame = match unknown {
            true => Frame { module: 0, offset: 0 },
            false => Frame { module: module.key(), offset: any_number(random) },
        };
        if !unknown {
            sites.add_module(module);
        }
        // Some go on from others.
        let known = sites.stacks.keys().nth(random.u64(..4) as usize).copied();
        outer = known.filter(|_| random.u64(..2) == 0).unwrap_or(outer);
        outer = sites.add_stack(Stack { outer, frame });
    }
    outer
}

/// Ranks of the traces below.
const WORLD: u32 = 20;

fn any_profile(random: &mut Rng) -> Profile {
    let ranks: Vec<u32> = (0..WORLD).filter(|_| random.u64(..4) > 0).collect();
    let alike = random.u64(..2) == 0;
    let usual = any_number(random) >> 20;
    let mut profile = Profile::default();
    for rank in ranks {
        let mut time = || if alike { usual } else { any_number(random) >> 8 };
        let functions = (0..5).map(|function| (function * 100, time())).collect::<Vec<_>>();
        profile = profile.join(&Profile::of_rank(rank, (time(), time()), functions));
    }
    profile.settle();
    profile
}

fn any_trace(random: &mut Rng) -> Trace {
    let texts = |random: &mut Rng| (0..random.u64(..4)).map(|_| any_text(random)).collect::<Vec<_>>();
    let mut bundle = Bundle::default();
    for rank in 0..random.u64(..6) as u32 {
        let lanes = |i: u64| (i % 3) as u16;
        let mut sites = Sites::default();
        let symbols = (0..1 + random.u64(..6)).map(|i| {
            let any_tally = |random: &mut Rng| {
                let [total, min, max] = [0; 3].map(|_| any_number(random));
                Tally { total, min, max }
            };
            let kinds = if lanes(i) > 0 { random.u64(..4) * random.u64(..8) } else { 0 };
            let class = |_| Class {
                kind: Kind::new(any_number(random) as i64, any_number(random) as i64),
                count: any_number(random),
                tally: any_tally(random),
            };
            let classes = Classes::new(false, (0..kinds).map(class));
            let tally = classes.whole().unwrap_or_else(|| any_tally(random));
            SymbolEntry {
                bytes: any_text(random).into_bytes().into_iter().chain([i as u8]).collect(),
                site: any_site(random, &mut sites),
                lanes: lanes(i),
                tally,
                classes,
            }
        });
        let symbols: Vec<SymbolEntry> = symbols.collect();
        let count = symbols.len() as u64;
        let calls = 1 + random.u64(..50);
        let mut structure: Grammar = (0..calls).map(|_| random.u64(..count) as u32).collect();
        structure.rules[0][0].count += random.u64(..2) * any_number(random) % (1 << 50);
        let mut stream = || {
            let values: Vec<i64> = match random.u64(..4) {
                0 => (0..1 + random.u64(..6000)).map(|_| any_number(random) as i64).collect(),
                1 => (0..300 + random.u64(..50) as i64).map(|i| i % 9 + i / 9 * 100).collect(),
                _ => (0..1 + random.u64(..6)).map(|_| any_number(random) as i64).collect(),
            };
            stencil::stream(&values)
        };
        let lanes = (0..count).map(|i| (0..lanes(i)).map(|_| stream()).collect()).collect();
        let part = ThreadPart {
            thread: random.u64(..3) as u32,
            structure: structure.into(),
            times: Vec::new(),
            lanes,
            lengths: Vec::new(),
            digest: any_number(random),
        };
        let one = Bundle { sites, ..Bundle::of_rank((rank * 3, WORLD), symbols, vec![part]).unwrap() };
        bundle = refrain_fold::bundle::merge(bundle, one).unwrap();
    }
    bundle.canonical().unwrap();
    bundle.world = WORLD;
    let symbols = bundle.symbols.len() as u64;
    let meta = Meta {
        refrain_version: any_text(random),
        command: texts(random),
        library: any_text(random),
        abi: any_text(random),
        ranks: WORLD,
        hosts: texts(random).into_iter().zip(bundle.cohorts.iter().map(|c| c.ranks.clone())).collect(),
        cores: (0..random.u64(..3)).map(|_| any_cores(random)).collect(),
        started: any_number(random),
        wall_ns: any_number(random),
        options: texts(random).into_iter().zip(texts(random)).collect(),
        split: random.u64(..2) == 0,
        timed: random.u64(..2) == 0,
        complete: random.u64(..2) == 0,
        notes: texts(random),
        memory: (random.u64(..2) == 0).then(|| refrain_tracefile::Memory {
            min: random.u64(..1 << 40) << 10,
            mean: random.u64(..1 << 40) << 10,
            max: random.u64(..1 << 40) << 10,
            root: random.u64(..1 << 40) << 10,
        }),
        merge_ms: (random.u64(..2) == 0).then(|| any_number(random)),
        clocks: (random.u64(..2) == 0).then(|| any_clocks(random)),
        flight: (0..random.u64(..4)).map(|_| any_flight(random)).collect(),
        paths: (random.u64(..2) == 0).then(|| any_paths(random, symbols)),
        profile: (random.u64(..2) == 0).then(|| any_profile(random)),
    };
    Trace { meta, bundle }
}

fn any_cores(random: &mut Rng) -> Cores {
    let ranks: Vec<u32> = (0..WORLD).filter(|_| random.u64(..2) == 0).collect();
    Cores {
        ranks: RankList::from_sorted(&ranks),
        each: any_number(random) as u32,
        sharing: any_number(random) as u32,
        thousandths: any_number(random),
    }
}

fn any_paths(random: &mut Rng, symbols: u64) -> Paths {
    let mut paths = Paths::default();
    for _ in 0..if symbols == 0 { 0 } else { random.u64(..20) } {
        let before = match random.u64(..4) {
            0 => Before::Nothing,
            1 => Before::Others,
            _ => Before::Call(random.u64(..symbols)),
        };
        let path = paths.0.entry((random.u64(..symbols), before)).or_default();
        for _ in 0..random.u64(..30) {
            path.duration.add(any_number(random) >> random.u64(..64));
            path.gap.add(random.u64(..100_000));
        }
    }
    settle(&mut paths);
    paths
}

fn any_flight(random: &mut Rng) -> InFlight {
    let place = |random: &mut Rng| {
        let path = any_text(random);
        let build_id = (0..random.u64(..3)).map(|byte| byte as u8 + 200).collect();
        (random.u64(..2) == 0)
            .then(|| CodeAddress { module: Module { path, build_id }, offset: any_number(random) })
    };
    let arg = |random: &mut Rng| match random.u64(..4) {
        0 => Arg::Unknown,
        1 => Arg::Number(any_number(random) as i64),
        2 => Arg::Constant(any_number(random) as u16),
        _ => Arg::Object(any_number(random) as u32),
    };
    InFlight {
        rank: any_number(random) as u32,
        thread: random.u64(..3) as u32,
        inside: random.u64(..2) == 0,
        function: (random.u64(..2) == 0).then(|| any_number(random) as u16),
        args: (0..random.u64(..5)).map(|_| arg(random)).collect(),
        waits_for: any_number(random),
        requests: (0..random.u64(..3))
            .map(|thread| Waited { thread: thread as u32, back: any_number(random) })
            .collect(),
        ns: (random.u64(..2) == 0).then(|| any_number(random)),
        place: place(random),
        error: (random.u64(..2) == 0).then(|| (any_number(random) as u16, any_text(random))),
        fault: (random.u64(..2) == 0).then(|| any_number(random) as u32),
        fault_place: place(random),
    }
}

fn any_clocks(random: &mut Rng) -> Clocks {
    let point = |random: &mut Rng| Point {
        at: any_number(random),
        common: any_number(random),
        error: any_number(random),
    };
    let clock = |random: &mut Rng| {
        let start = point(random);
        Clock {
            ranks: (0..32).filter(|_| random.u64(..3) == 0).collect(),
            counter: random.u64(..2) == 0,
            monotonic: random.u64(..2) == 0,
            wander: any_number(random),
            residual: any_number(random),
            start,
            end: if random.u64(..2) == 0 { start } else { point(random) },
        }
    };
    Clocks { clocks: (0..random.u64(..4)).map(|_| clock(random)).collect() }
}

#[test]
fn what_is_written_is_read() {
    let mut random = Rng::with_seed(2024);
    for _ in 0..crate::rounds(48) {
        let trace = stencil::told(any_trace(&mut random));
        assert_eq!(read(&write(&trace)).unwrap(), trace);
        assert_eq!(read(&write_plain(&trace)).unwrap(), trace);
        assert_eq!(write(&read(&write(&trace)).unwrap()), write(&trace));
    }
}

/// Nesting fifty thousand rules deep: nothing may recurse.
#[test]
fn deep_rules_do_not_overflow_the_stack() {
    let depth = 50_000u32;
    let item = |symbol| Item { symbol, count: 1 };
    let mut rules: Vec<Vec<Item>> =
        (1..depth).map(|r| vec![item(Symbol::Rule(r)), item(Symbol::Terminal(0))]).collect();
    rules.push(vec![item(Symbol::Terminal(0))]);
    let mut trace = Trace::default();
    trace.bundle.symbols = vec![SymbolEntry {
        bytes: [1].into(),
        site: 0,
        lanes: 0,
        tally: Tally { total: 0, min: 0, max: 0 },
        classes: Default::default(),
    }];
    trace.bundle.structures = vec![Grammar { rules }.into()];
    let bytes = write(&trace);
    assert_eq!(read(&bytes).unwrap(), trace);
    assert!(bytes.len() < 10_000, "{}", bytes.len());
}

#[test]
fn files_are_never_overwritten_unasked() {
    let directory = std::env::temp_dir().join(format!("refrain-tracefile-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("a.rfn");
    let (one, two) = (small(), Trace::default());
    let size = save(&one, &path, false).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), size);
    assert!(matches!(save(&two, &path, false), Err(Error::Exists { .. })));
    assert_eq!(open(&path).unwrap(), one);
    save(&two, &path, true).unwrap();
    assert_eq!(open(&path).unwrap(), two);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "no temporary file is left");
    assert!(matches!(open(directory.join("b.rfn")), Err(Error::Io { action: "read", .. })));
    assert!(matches!(save(&one, directory.join("no/such/b.rfn"), false), Err(Error::Io { .. })));
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A run as root with `--out /dev/null --force` once left a file where the device had been.
#[test]
fn only_files_are_replaced() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let directory = std::env::temp_dir().join(format!("refrain-tracefile-kinds-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("sub")).unwrap();
    let path = |name: &str| directory.join(name);
    let kind = |name: &str| std::fs::symlink_metadata(path(name)).unwrap().file_type();

    // Links stay, and what they lead to is replaced, or made.
    save(&small(), path("sub/a.rfn"), false).unwrap();
    symlink("sub/a.rfn", path("first")).unwrap();
    symlink("first", path("second")).unwrap();
    symlink("sub/new.rfn", path("nowhere")).unwrap();
    for (link, file, old) in [("second", "sub/a.rfn", true), ("nowhere", "sub/new.rfn", false)] {
        assert!(matches!(save(&Trace::default(), path(link), false), Err(Error::Exists { .. })), "{link}");
        assert_eq!(path(file).exists(), old);
        save(&Trace::default(), path(link), true).unwrap();
        assert!(kind(link).is_symlink());
        assert_eq!(open(path(file)).unwrap(), Trace::default());
    }

    // A device of our own, where we may make one: a mistake here would take the real one away.
    let made = |words: &[&str]| {
        let status = std::process::Command::new(words[0]).args(&words[1..]).current_dir(&directory).status();
        status.is_ok_and(|status| status.success())
    };
    if made(&["mknod", "null", "c", "1", "3"]) && std::fs::write(path("null"), "x").is_ok() {
        symlink("null", path("to-null")).unwrap();
        for name in ["null", "to-null"] {
            assert!(save(&small(), path(name), true).unwrap() > 0);
            assert!(save(&small(), path(name), false).is_ok());
            assert!(kind("null").is_char_device() && refrain_tracefile::is_device(&path(name)));
        }
    }
    assert!(made(&["mkfifo", "pipe"]));
    let socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    for (name, what) in [("pipe", "a pipe"), ("socket", "a socket"), ("sub", "a directory")] {
        for force in [false, true] {
            let error = save(&small(), path(name), force).unwrap_err().to_string();
            assert!(error.contains(&format!("{name} is {what}")), "{error}");
        }
    }
    assert!(kind("pipe").is_fifo() && kind("socket").is_socket());
    drop(socket);
    let left = std::fs::read_dir(&directory).unwrap();
    assert!(left.flatten().all(|entry| !entry.file_name().to_string_lossy().contains("part")));
    std::fs::remove_dir_all(&directory).unwrap();
}

/// What a link to nowhere leads to is made where replacing is allowed and nothing was there; what came since stays.
#[test]
fn a_link_to_nowhere_is_followed_with_leave() {
    use refrain_tracefile::{Replace, Stamp, save_as};
    use std::os::unix::fs::symlink;
    let directory = std::env::temp_dir().join(format!("refrain-tracefile-nowhere-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (link, file) = (directory.join("link"), directory.join("file"));
    symlink("file", &link).unwrap();
    let old = Stamp::of(&link);
    assert_eq!(old, None);
    let refused = save_as(&small(), &link, Replace::old(false, old));
    assert!(matches!(refused, Err(Error::Exists { .. })) && !file.exists());
    save_as(&small(), &link, Replace::old(true, old)).unwrap();
    assert!(link.is_symlink() && open(&file).unwrap() == small());
    // By now there is a file, which was not there before.
    for shown in [&link, &file] {
        let refused = save_as(&Trace::default(), shown, Replace::old(true, old));
        assert!(matches!(refused, Err(Error::Exists { .. })) && open(&file).unwrap() == small());
    }
    save_as(&Trace::default(), &link, Replace::old(true, Stamp::of(&link))).unwrap();
    assert!(link.is_symlink() && open(&file).unwrap() == Trace::default());
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Another user exchanges a file and a link of the same directory all the time: what the link leads to is never touched.
#[test]
fn a_name_that_changes_while_it_is_looked_at() {
    use rustix::fs::{CWD, Mode, RenameFlags, renameat_with};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let directory = std::env::temp_dir().join(format!("refrain-tracefile-swap-{}", std::process::id()));
    let home = directory.join("home");
    fs::create_dir_all(&home).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(Mode::SVTX.as_raw_mode() | 0o777)).unwrap();
    let precious = home.join("precious");
    fs::write(&precious, "years of work").unwrap();
    let (name, other) = (directory.join("x.rfn"), directory.join("other"));
    let over = AtomicBool::new(false);
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let mut saved = 0;
    std::thread::scope(|scope| {
        let _over = Over(&over);
        scope.spawn(|| {
            let nobody = rustix::thread::Uid::from_raw(NOBODY);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            while !over.load(Ordering::Relaxed) {
                // They are not always both there.
                let _ = renameat_with(CWD, &name, CWD, &other, RenameFlags::EXCHANGE);
            }
        });
        for round in 0..crate::rounds(400) {
            let leads_to = if round % 3 == 0 { home.join("new") } else { precious.clone() };
            fs::write(&name, "the attacker's").unwrap();
            lchown(&name, Some(NOBODY), Some(NOBODY)).unwrap();
            symlink(leads_to, &other).unwrap();
            lchown(&other, Some(NOBODY), Some(NOBODY)).unwrap();
            saved += usize::from(save(&small(), &name, round % 5 != 0).is_ok());
            assert_eq!(fs::read_to_string(&precious).unwrap(), "years of work", "round {round}");
            assert_eq!(fs::read_dir(&home).unwrap().count(), 1, "round {round}");
            let _ = (fs::remove_file(&name), fs::remove_file(&other));
        }
    });
    assert!(saved > 0);
    fs::remove_dir_all(&directory).unwrap();
}
