//! A program that makes the same call at many places: what that takes, and what is kept of its times.

use refrain_fold::bundle::sites::{Frame, Module};
use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart};
use refrain_fold::grammar::Grammar;
use refrain_fold::stream::Stream;
use refrain_tracefile::{Meta, Trace, read, sections, write, write_plain};

/// Settings are read at so many places, one after the other; then comes a loop.
const PLACES: u32 = 300;
const TURNS: u32 = 50;

/// `time` is what a call at a place takes.
fn settings(time: impl Fn(u32) -> u64) -> Trace {
    let program = Module { path: "/home/a/model".into(), build_id: (0..20).collect() };
    let frame = |offset: u64| Frame { module: program.key(), offset };
    let mut sites = refrain_fold::bundle::sites::Sites::default();
    // One place in three is in another function, which calls on from elsewhere.
    let mut symbols: Vec<SymbolEntry> = (0..PLACES)
        .map(|place| {
            let inner = if place % 3 == 2 { 0x4060 } else { 0x4020 };
            let frames = [frame(0x1100), frame(0x2000 + 12 * u64::from(place)), frame(inner)];
            let once = time(place);
            SymbolEntry {
                bytes: [98, 0, 9, 1].into(),
                site: sites.add(&frames),
                lanes: 1,
                tally: Tally { total: once, min: once, max: once },
                classes: Default::default(),
            }
        })
        .collect();
    let loop_time = 1 << 30;
    symbols.push(SymbolEntry {
        bytes: [90, 0, 8].into(),
        site: sites.add(&[frame(0x1200)]),
        lanes: 0,
        tally: Tally { total: loop_time * u64::from(TURNS), min: loop_time, max: loop_time },
        classes: Default::default(),
    });
    let order = (0..PLACES).chain(std::iter::repeat_n(PLACES, TURNS as usize));
    let lane = |place: u32| vec![Stream::constant(i64::from(5000 + 8 * place))];
    let part = ThreadPart {
        thread: 0,
        structure: order.collect::<Grammar>().into(),
        times: Vec::new(),
        lanes: (0..PLACES).map(lane).chain([Vec::new()]).collect(),
        lengths: (0..PLACES).map(|_| vec![1]).chain([Vec::new()]).collect(),
        digest: 7,
    };
    let mut bundle = Bundle::of_rank((0, 1), symbols, vec![part]).unwrap();
    bundle.sites = sites;
    bundle.sites.add_module(program);
    bundle.canonical().unwrap();
    let meta = Meta { ranks: 1, complete: true, split: true, timed: true, ..Meta::default() };
    Trace { meta, bundle }
}

fn stored(bytes: &[u8], name: &str) -> usize {
    sections(bytes).unwrap().iter().find(|section| section.name == name).unwrap().stored
}

fn is_setting(symbol: &&SymbolEntry) -> bool {
    symbol.bytes[0] == 98
}

#[test]
fn places_alike_take_a_few_bits_each() {
    let bytes = write(&settings(|place| 1000 + u64::from(place * 37 % 101)));
    for (section, most) in [("sites", 100), ("streams", 60), ("tallies", 30)] {
        let stored = stored(&bytes, section);
        assert!(stored < most, "{section}: {stored} bytes for {PLACES} places");
    }
}

#[test]
fn all_but_light_times_come_back() {
    let trace = settings(|place| 1000 + u64::from(place * 37 % 101));
    let told = read(&write(&trace)).unwrap();
    assert_eq!(read(&write_plain(&trace)).unwrap(), told);
    assert_eq!(write(&told), write(&trace), "written again it is the same");
    let mut but_times = told.clone();
    for (symbol, was) in but_times.bundle.symbols.iter_mut().zip(&trace.bundle.symbols) {
        symbol.tally = was.tally;
    }
    assert_eq!(but_times, trace);
    // Light ones have the mean, the least and the most of all; the sum stays.
    let sum = |trace: &Trace| {
        trace.bundle.symbols.iter().filter(is_setting).map(|symbol| symbol.tally.total).sum::<u64>()
    };
    assert!(sum(&told).abs_diff(sum(&trace)) < sum(&trace) / 64);
    for symbol in told.bundle.symbols.iter().filter(is_setting) {
        let mean = sum(&told) / u64::from(PLACES);
        assert!(symbol.tally.total.abs_diff(mean) < 2, "{}", symbol.tally.total);
        assert!(symbol.tally.min.abs_diff(1000) < 32 && symbol.tally.max.abs_diff(1100) < 35);
    }
}

/// A place that took long is told for itself, to within 1/32.
#[test]
fn what_took_long_is_not_light() {
    let long = 1 << 27;
    let trace = settings(|place| if place == 77 { long } else { 1000 });
    let told = read(&write(&trace)).unwrap();
    let most = told.bundle.symbols.iter().filter(is_setting).map(|symbol| symbol.tally.total).max().unwrap();
    assert!(most.abs_diff(long) < long / 32, "{most}");
    let others = told.bundle.symbols.iter().filter(is_setting).filter(|symbol| symbol.tally.total < 1100);
    assert_eq!(others.count(), PLACES as usize - 1);
}
