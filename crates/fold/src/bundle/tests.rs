use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::grammar::Item;
use crate::ranks::RankMap;
use crate::testing::probes;
use fastrand::Rng;

/// `prefix rest^count`, as a program with a start-up and a loop would give.
fn grammar(random: &mut Rng, symbols: u64) -> Grammar {
    let mut rule = |len: u64| -> Vec<Item> {
        let items = 1 + random.u64(..len);
        let mut item =
            || Item { symbol: Symbol::Terminal(random.u64(..symbols) as u32), count: 1 + random.u64(..3) };
        (0..items).map(|_| item()).collect()
    };
    let (mut start, body) = (rule(3), rule(5));
    start.push(Item { symbol: Symbol::Rule(1), count: 1 + random.u64(..4) });
    Grammar { rules: vec![start, body] }
}

/// More ranks than any test has.
const WORLD: u32 = 100;

/// Few choices, so that ranks often agree in part or in all.
fn recording(random: &mut Rng, rank: u32) -> Bundle {
    let kinds = 4;
    let offset = random.u64(..kinds);
    let mut sites = Sites::default();
    let symbols: Vec<SymbolEntry> = (0..kinds)
        .map(|i| {
            // Every rank numbers its symbols differently.
            let kind = (i + offset) % kinds;
            let time = 1 + random.u64(..100);
            let class = |_| Class {
                kind: classes::Kind::new(random.u64(..100) as i64, random.u64(..4) as i64 - 1),
                count: 1 + random.u64(..3),
                tally: Tally { total: 3 * time, min: time / 2, max: time },
            };
            let classes = Classes::new(false, (0..kind * 4).map(class));
            SymbolEntry {
                bytes: vec![kind as u8; kind as usize].into(),
                site: site(&mut Rng::with_seed(kind + 10 * u64::from(rank % 4 == 3)), &mut sites),
                lanes: kind as u16,
                tally: classes.whole().unwrap_or(Tally { total: 3 * time, min: time / 2, max: time }),
                classes,
            }
        })
        .collect();
    let threads = 1 + random.u64(..2) as u32;
    let same = random.u64(..3);
    let parts = (0..threads)
        .map(|thread| {
            let structure = match same {
                0 => grammar(random, kinds),
                _ => {
                    let fixed = grammar(&mut Rng::with_seed(77 + u64::from(thread)), kinds);
                    fixed.map_terminals(|t| (u64::from(t) + kinds - offset) as u32 % kinds as u32)
                }
            };
            let mut stream = || Stream::constant(random.u64(..3) as i64 - 1);
            let lanes: Vec<Vec<Stream>> =
                symbols.iter().map(|s| (0..s.lanes).map(|_| stream()).collect()).collect();
            ThreadPart {
                thread,
                structure: structure.into(),
                times: Vec::new(),
                lanes,
                lengths: Vec::new(),
                digest: random.u64(..2),
            }
        })
        .collect();
    Bundle { sites, ..Bundle::of_rank((rank, WORLD), symbols, parts).unwrap() }
}

/// None, or one of a few stacks, some of which go on from others.
fn site(random: &mut Rng, sites: &mut Sites) -> u64 {
    let frames: Vec<sites::Frame> = (0..random.u64(..4))
        .map(|i| {
            let path = format!("/bin/{}", i % 2);
            let module = sites::Module { path, build_id: [].into() };
            let frame = sites::Frame { module: module.key(), offset: random.u64(..2) };
            sites.add_module(module);
            frame
        })
        .collect();
    sites.add(&frames)
}

/// Bytes and stack of each call, and its numbers.
type Calls = Vec<((Vec<u8>, Vec<sites::Frame>), Vec<i64>)>;

/// Everything every thread of every rank did, written out.
fn expand(bundle: &Bundle) -> BTreeMap<(u32, u32), Calls> {
    let mut all = BTreeMap::new();
    for cohort in &bundle.cohorts {
        for member in cohort.ranks.iter() {
            let (rank, thread) = bundle.place_of(member);
            assert!(bundle.threads(rank).contains(&thread));
            assert_eq!(bundle.cohort_of(rank, thread), Some(cohort));
            let mut walk = Walk::new(bundle, rank, thread).unwrap().unwrap();
            let mut calls = Vec::new();
            while let Some(symbol) = walk.next_symbol() {
                let entry = &bundle.symbols[symbol as usize];
                assert_eq!(walk.value(entry.lanes), None);
                let values = (0..entry.lanes).map(|lane| walk.value(lane).unwrap()).collect();
                calls.push(((entry.bytes.to_vec(), bundle.sites.frames(entry.site)), values));
            }
            check_seeking(bundle, rank, thread, &calls);
            // The stream of a lane says the same as a walk.
            for lane in &cohort.lanes {
                assert_eq!(bundle.stream_of(lane, member).unwrap().validate(), Ok(()));
            }
            assert_eq!(all.insert((rank, thread), calls), None);
        }
    }
    all
}

/// What is read from anywhere on is what is read when all before it was read too.
fn check_seeking(bundle: &Bundle, rank: u32, thread: u32, calls: &Calls) {
    let (cohort, member) = Index::new(bundle).cohort_of(rank, thread).unwrap();
    for n in probes(calls.len()) {
        let before: BTreeMap<u32, u64> =
            Walk::before(bundle, cohort, member, n).unwrap().into_iter().collect();
        assert_eq!(before.values().sum::<u64>(), n.min(calls.len() as u64));
        // Each call takes one number of each of its lanes.
        let taken = |symbol, _: u16| before.get(&symbol).copied().unwrap_or(0);
        let made = |symbol| taken(symbol, 0);
        let mut walk = Walk::from(bundle, cohort, member, n, taken, made).unwrap();
        for (_, expected) in calls.iter().skip(n as usize) {
            let symbol = walk.next_symbol().unwrap();
            let lanes = bundle.symbols[symbol as usize].lanes;
            let values: Vec<i64> = (0..lanes).map(|lane| walk.value(lane).unwrap()).collect();
            assert_eq!(values, *expected, "rank {rank}, from {n}");
        }
        assert_eq!(walk.next_symbol(), None);
    }
}

/// Of all cohorts together.
fn digest(bundle: &Bundle) -> u64 {
    bundle.cohorts.iter().fold(0, |sum, cohort| sum.wrapping_add(cohort.digest))
}

fn shuffled(random: &mut Rng, len: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    for i in (1..len).rev() {
        order.swap(i, random.u64(..i as u64 + 1) as usize);
    }
    order
}

fn merged(parts: impl Iterator<Item = Bundle>) -> Bundle {
    let mut all = parts.fold(Bundle::default(), |a, b| merge(a, b).unwrap());
    all.canonical().unwrap();
    all
}

#[test]
fn the_order_of_merging_changes_nothing() {
    let mut random = Rng::with_seed(3);
    for _ in 0..60 {
        let size = 1 + random.u64(..9) as u32;
        let ranks: Vec<Bundle> = (0..size).map(|rank| recording(&mut random, rank)).collect();
        let mut expected = BTreeMap::new();
        for rank in &ranks {
            expected.extend(expand(rank));
        }
        let all = merged(ranks.iter().cloned());
        all.validate().unwrap();
        assert_eq!(expand(&all), expected);
        assert_eq!(digest(&all), ranks.iter().fold(0, |sum, rank| digest(rank).wrapping_add(sum)));
        let total: u64 = ranks.iter().flat_map(|b| &b.symbols).map(|s| s.tally.total).sum();
        assert_eq!(all.symbols.iter().map(|s| s.tally.total).sum::<u64>(), total);

        let order = shuffled(&mut random, ranks.len());
        assert_eq!(merged(order.iter().map(|&i| ranks[i].clone())), all);
        // As a tree, from the right.
        let mut tree: Vec<Bundle> = order.iter().map(|&i| ranks[i].clone()).collect();
        while let (Some(b), Some(a)) = (tree.pop(), tree.pop()) {
            tree.insert(0, merge(a, b).unwrap());
            if tree.len() == 1 {
                break;
            }
        }
        let mut root = tree.pop().unwrap_or_default();
        if size > 1 {
            root.canonical().unwrap();
            assert_eq!(root, all);
        }
        let mut again = all.clone();
        again.canonical().unwrap();
        assert_eq!(again, all);
        assert_eq!(Bundle::from_bytes(&all.to_bytes()).unwrap(), all);
    }
}

#[test]
fn ranks_that_did_the_same_are_one_cohort() {
    let mut random = Rng::with_seed(9);
    let one = recording(&mut random, 0);
    let like = |rank: u32| {
        let mut copy = one.clone();
        for cohort in &mut copy.cohorts {
            let thread = one.place_of(cohort.ranks.first().unwrap()).1;
            cohort.ranks = RankList::single(one.member(rank, thread).unwrap());
        }
        copy
    };
    let all = merged((0..20).map(like));
    assert_eq!(all.cohorts.len(), one.cohorts.len());
    assert!(all.cohorts.iter().all(Cohort::is_uniform));
    assert_eq!(all.cohorts[0].ranks, RankList::from_sorted(&(0..20).collect::<Vec<_>>()));
    assert_eq!(all.symbols.len(), one.symbols.len());
    assert_eq!(all.symbols[0].tally.total % 20, 0);
}

/// A rank that makes one call `times` times, with these numbers in its lanes each time.
fn caller(rank: u32, times: u64, lanes: &[Vec<i64>]) -> Bundle {
    let tally = Tally { total: 1, min: 1, max: 1 };
    let symbol = SymbolEntry {
        bytes: [7].into(),
        site: 0,
        lanes: lanes.len() as u16,
        tally,
        classes: Default::default(),
    };
    let item = Item { symbol: Symbol::Terminal(0), count: times };
    let stream = |numbers: &Vec<i64>| {
        let mut folder = crate::stream::Folder::new();
        numbers.iter().cycle().take(numbers.len() * times as usize).for_each(|&n| folder.push(n));
        folder.finish()
    };
    let part = ThreadPart {
        thread: 0,
        structure: Grammar { rules: vec![vec![item]] }.into(),
        times: Vec::new(),
        lanes: vec![lanes.iter().map(stream).collect()],
        lengths: vec![lanes.iter().map(|numbers| numbers.len() as u64 * times).collect()],
        digest: u64::from(rank) * 77,
    };
    Bundle::of_rank((rank, 0), vec![symbol], vec![part]).unwrap()
}

/// One cohort, whose lanes take no more than `most` in all; and everything comes back.
fn check_patterns(ranks: u32, times: u64, most: u64, lanes: impl Fn(u32) -> Vec<Vec<i64>>) {
    let mut parts: Vec<Bundle> = (0..ranks).map(|rank| caller(rank, times, &lanes(rank))).collect();
    while parts.len() > 1 {
        let mut pairs = parts.into_iter();
        parts = Vec::new();
        while let Some(a) = pairs.next() {
            parts.push(pairs.next().map_or(a.clone(), |b| merge(a, b).unwrap()));
        }
    }
    let mut all = parts.pop().unwrap();
    all.canonical().unwrap();
    all.validate().unwrap();
    assert_eq!(merged((0..ranks).rev().map(|rank| caller(rank, times, &lanes(rank)))), all);
    assert_eq!(all.cohorts.len(), 1);
    let sum = (0..ranks).fold(0u64, |sum, rank| sum.wrapping_add(blend(rank, u64::from(rank) * 77)));
    assert_eq!(all.cohorts[0].digest, sum);
    let mut cost = all.streams.len() as u64;
    for lane in &all.cohorts[0].lanes {
        if let Lane::Varied(variants) = lane {
            cost += choice(variants, &StreamSet::default()).cost();
            cost += variants.iter().flat_map(|v| &v.numbers).map(|n| n.values.cost()).sum::<u64>();
        }
    }
    assert!(cost <= most, "{ranks} ranks: {cost} for {:#?}", all.cohorts);
    for rank in 0..ranks {
        for (lane, numbers) in all.cohorts[0].lanes.iter().zip(lanes(rank)) {
            let stream = all.stream_of(lane, rank).unwrap();
            let count = numbers.len() * times as usize;
            assert!(stream.iter().take(count).eq(numbers.iter().cycle().take(count).copied()));
        }
        let mut walk = Walk::new(&all, rank, 0).unwrap().unwrap();
        let numbers = lanes(rank);
        for _ in 0..times {
            walk.next_symbol();
            for (lane, numbers) in (0u16..).zip(&numbers) {
                assert!(numbers.iter().all(|&number| walk.value(lane) == Some(number)));
            }
        }
    }
}

#[test]
fn functions_of_the_rank_cost_no_more_on_more_ranks() {
    for (a, b, c) in [(2, 2, 2), (3, 3, 3), (4, 3, 5), (2, 7, 4), (6, 6, 6), (8, 4, 16)] {
        let ranks = a * b * c;
        let n = |x: u32| i64::from(x);
        for times in [1, 3, 100] {
            // Coordinates: some equal, some a stride.
            check_patterns(ranks, times, 40, |r| vec![vec![n(r / (b * c)), n(r / c % b), n(r % c)]]);
            // Periodic neighbours, absolute tags, a colour, the members of a row.
            let wrap = |r: u32| if r % c + 1 == c { 1 - n(c) } else { 1 };
            let row = |r: u32| (0..n(c)).map(|x| n(r / c * c) + x).collect();
            check_patterns(ranks, times, 60, |r| {
                vec![vec![wrap(r)], vec![n(r) + 100], vec![n(r / c)], row(r), vec![8, 3]]
            });
        }
    }
    for bits in 1..8 {
        check_patterns(1 << bits, 5, 20 * bits, |r| {
            (0..bits).map(|k| vec![i64::from(r ^ 1 << k) - i64::from(r)]).collect()
        });
    }
}

/// Nested strides become running sums. Where they begin and how far they go at each level may be the rank's own.
#[test]
fn functions_of_the_rank_in_nested_strides() {
    let nest = |r: u32, rows: i64| -> Vec<i64> {
        let (base, row) = (4096 + 65536 * i64::from(r), 800 + 8 * i64::from(r % 4));
        (0..rows * 12).map(|i| base + i / 12 * row + i % 12 * 8).collect()
    };
    for ranks in [2, 16, 60] {
        for rows in [10, 40] {
            check_patterns(ranks, 1, 24, |r| vec![nest(r, rows)]);
        }
    }
    let rank = caller(0, 1, &[nest(0, 40)]);
    assert!(matches!(rank.streams[0].blocks[..], [crate::stream::Block::Running { .. }]));
}

/// Of a long list the first numbers may be functions of the rank.
#[test]
fn functions_of_the_rank_in_long_lists() {
    let list = |r: u32| -> Vec<i64> {
        let noise = (1..200).map(|at| (Rng::with_seed(at).u64(..) >> 40) as i64);
        std::iter::once(i64::from(r) * 3 - 1).chain(noise).collect()
    };
    check_patterns(24, 1, 24, |r| vec![list(r)]);
}

/// Threads are to ranks as ranks are to each other: one cohort, and numbers that are functions of both.
#[test]
fn threads_of_all_ranks_are_one_cohort() {
    for (ranks, threads) in [(1, 1), (1, 5), (4, 1), (4, 3), (16, 16)] {
        let base = |rank: u32, thread: u32| 1 << 20 | i64::from(rank) << 12 | i64::from(thread) << 6;
        let one = |rank: u32| {
            let part = |thread: u32| {
                let one = caller(rank, 7, &[vec![base(rank, thread), 5]]);
                let item = Item { symbol: Symbol::Terminal(0), count: 7 };
                ThreadPart {
                    thread,
                    structure: Grammar { rules: vec![vec![item]] }.into(),
                    times: Vec::new(),
                    lanes: vec![vec![one.streams[0].clone()]],
                    lengths: vec![vec![14]],
                    digest: u64::from(rank * 100 + thread),
                }
            };
            let symbols = caller(rank, 1, &[vec![0]]).symbols;
            Bundle::of_rank((rank, ranks), symbols, (0..threads).map(part).collect()).unwrap()
        };
        let all = merged((0..ranks).map(one));
        assert_eq!(merged((0..ranks).rev().map(one)), all);
        assert_eq!((all.cohorts.len(), all.streams.len()), (1, 1));
        assert_eq!(all.cohorts[0].ranks.parts.len(), 1);
        if let Lane::Varied(variants) = &all.cohorts[0].lanes[0] {
            assert_eq!(variants.len(), 1);
            assert!(variants[0].numbers.iter().all(|number| number.values.parts.len() == 1));
        }
        let mut sum = 0u64;
        for (rank, thread) in (0..ranks).flat_map(|rank| (0..threads).map(move |thread| (rank, thread))) {
            let mut walk = Walk::new(&all, rank, thread).unwrap().unwrap();
            walk.next_symbol();
            assert_eq!([walk.value(0), walk.value(0)], [Some(base(rank, thread)), Some(5)]);
            sum = sum.wrapping_add(blend(thread * ranks + rank, u64::from(rank * 100 + thread)));
        }
        assert_eq!(all.cohorts[0].digest, sum);
        assert_eq!(all.threads(ranks - 1), (0..threads).collect::<Vec<_>>());
        // One by one they are as if there were no other threads.
        let apart = all.of_threads();
        assert_eq!(apart.iter().map(|one| one.thread).collect::<Vec<_>>(), (0..threads).collect::<Vec<_>>());
        for one in apart {
            assert_eq!(one.ranks, (0..ranks).collect());
            for rank in 0..ranks {
                let stream = all.stream_of(&one.lanes[0], rank).unwrap();
                assert!(stream.iter().take(3).eq([base(rank, one.thread), 5, base(rank, one.thread)]));
            }
        }
    }
}

#[test]
fn the_highest_thread_of_any_rank_and_structure_counts() {
    // Thread n makes n + 1 calls, so each has its own structure; the last rank alone has several.
    let one = |rank: u32| {
        let part = |thread: u32| ThreadPart {
            thread,
            structure: Grammar {
                rules: vec![vec![Item { symbol: Symbol::Terminal(0), count: u64::from(thread) + 1 }]],
            }
            .into(),
            times: Vec::new(),
            lanes: vec![vec![caller(rank, u64::from(thread) + 1, &[vec![0]]).streams[0].clone()]],
            lengths: vec![vec![u64::from(thread) + 1]],
            digest: thread.into(),
        };
        let threads = if rank == 2 { 0..4 } else { 0..1 };
        Bundle::of_rank((rank, 3), caller(rank, 1, &[vec![0]]).symbols, threads.map(part).collect()).unwrap()
    };
    let all = merged((0..3).map(one));
    assert_eq!((all.cohorts.len(), all.most_threads()), (4, 4));
    assert_eq!((all.threads(0), all.threads(2)), (vec![0], vec![0, 1, 2, 3]));
    assert_eq!((merged((0..2).map(one)).most_threads(), Bundle::default().most_threads()), (1, 0));
}

/// Where recordings do not agree it is not known.
#[test]
fn how_many_numbers_count_is_known_where_all_agree() {
    let lane = |used| Lane::Same { stream: 0, used };
    let joined = |a, b| {
        let mut table = StreamSet::new(vec![Stream::constant(3)]);
        lane(a).join(&RankList::single(0), lane(b), &RankList::single(1), &mut table)
    };
    assert_eq!([joined(5, 5), joined(5, 9), joined(9, 5), joined(0, 5)], [5, 0, 0, 0].map(lane));
}

#[test]
fn threads_that_have_no_number_are_refused() {
    let part = |thread| ThreadPart {
        thread,
        structure: Grammar { rules: vec![Vec::new()] }.into(),
        times: Vec::new(),
        lanes: Vec::new(),
        lengths: Vec::new(),
        digest: 0,
    };
    let of = |rank, world, thread| Bundle::of_rank((rank, world), Vec::new(), vec![part(thread)]).map(|_| ());
    let refused = |rank, world, thread| Err(Error::Member { thread, rank, world });
    assert_eq!(of(7, 0, 0), Ok(()));
    assert_eq!(of(7, 0, 1), refused(7, 0, 1));
    assert_eq!(of(7, 7, 0), refused(7, 7, 0));
    assert_eq!(of((1 << 20) - 1, 1 << 20, 4095), Ok(()));
    assert_eq!(of(0, 1 << 20, 4096), refused(0, 1 << 20, 4096));
    let (a, b) = (Bundle { world: 2, ..Bundle::default() }, Bundle { world: 3, ..Bundle::default() });
    assert_eq!(merge(a, b).unwrap_err(), Error::Worlds { mine: 2, theirs: 3 });
}

/// Numbers that follow nothing come back all the same, and as whole streams, not as functions.
#[test]
fn irregular_numbers_stay_streams() {
    let noise = |rank: u32, at: u64| (Rng::with_seed(u64::from(rank) * 1000 + at + 1).u64(..) >> 40) as i64;
    for length in [1, 5, 40, 200] {
        check_patterns(24, 1, 24 * 4 + 40, |rank| vec![(0..length).map(|at| noise(rank, at)).collect()]);
    }
    check_patterns(24, 2, 24 * 4 + 40, |rank| {
        vec![(0..1 + u64::from(rank % 5)).map(|at| noise(rank, at)).collect()]
    });
}

#[test]
fn only_what_is_new_travels() {
    let mut random = Rng::with_seed(21);
    let (a, mut b) = (recording(&mut random, 0), recording(&mut random, 1));
    b = merge(b, a.clone()).unwrap();
    assert_eq!(b.missing(&a.manifest()), Want::default());
    let want = Bundle::default().missing(&a.manifest());
    assert_eq!(want.symbols.len(), a.symbols.len());
    assert_eq!(want.streams.len(), a.streams.len());
}

struct Channels {
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
    spoil: bool,
}

impl Link for Channels {
    type Error = String;
    fn send(&mut self, to: u32, bytes: &[u8]) -> Result<(), String> {
        let mut bytes = bytes.to_vec();
        if self.spoil {
            bytes.push(0xff);
        }
        self.to[to as usize].send(bytes).map_err(|e| e.to_string())
    }
    fn recv(&mut self, from: u32) -> Result<Vec<u8>, String> {
        self.from[from as usize].recv().map_err(|e| e.to_string())
    }
}

/// Runs `gather` on one thread a rank; `spoiled` sends damaged messages.
fn gathered(bundles: &[Bundle], spoiled: Option<usize>) -> Vec<Gathered> {
    let size = bundles.len();
    let mut to: Vec<Vec<Sender<Vec<u8>>>> = (0..size).map(|_| Vec::new()).collect();
    let mut from: Vec<Vec<Receiver<Vec<u8>>>> = (0..size).map(|_| Vec::new()).collect();
    for sender in &mut to {
        for receiver in &mut from {
            let (tx, rx) = channel();
            sender.push(tx);
            receiver.push(rx);
        }
    }
    let links = to.into_iter().zip(from).enumerate();
    let links = links.map(|(rank, (to, from))| Channels { to, from, spoil: spoiled == Some(rank) });
    std::thread::scope(|scope| {
        let threads: Vec<_> = links
            .zip(bundles)
            .enumerate()
            .map(|(rank, (mut link, bundle))| {
                scope.spawn(move || gather(&mut link, rank as u32, size as u32, bundle.clone()).unwrap())
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

#[test]
fn gathering_equals_merging_one_by_one() {
    for size in [1, 2, 3, 5, 8, 13] {
        let mut random = Rng::with_seed(100 + u64::from(size));
        let mut ranks: Vec<Bundle> = (0..size).map(|rank| recording(&mut random, rank)).collect();
        if size > 2 {
            // Its tracing failed.
            ranks[size as usize / 2] = Bundle::default();
        }
        let mut results = gathered(&ranks, None);
        assert!(results.iter().all(|r| r.lost.is_empty()));
        assert!(results[1..].iter().all(|r| r.bundle.is_none()));
        let mut root = results[0].bundle.take().unwrap();
        root.canonical().unwrap();
        assert_eq!(root, merged(ranks.into_iter()), "{size} ranks");
    }
}

#[test]
fn bad_data_from_one_rank_costs_only_its_part() {
    let mut random = Rng::with_seed(5);
    let ranks: Vec<Bundle> = (0..5).map(|rank| recording(&mut random, rank)).collect();
    let mut results = gathered(&ranks, Some(3));
    assert_eq!(results[2].lost.len(), 1);
    let mut root = results[0].bundle.take().unwrap();
    root.canonical().unwrap();
    let rest = ranks.iter().enumerate().filter(|(i, _)| *i != 3).map(|(_, b)| b.clone());
    assert_eq!(expand(&root), expand(&merged(rest)));
}

#[test]
fn reading_any_bytes_is_safe() {
    let mut random = Rng::with_seed(42);
    let whole = merged((0..6).map(|rank| recording(&mut Rng::with_seed(500 + u64::from(rank)), rank)));
    let bytes = whole.to_bytes();
    for len in 0..bytes.len() {
        assert!(Bundle::from_bytes(&bytes[..len]).is_err(), "cut at {len}");
    }
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + random.u64(..3) {
            let at = random.u64(..damaged.len() as u64) as usize;
            damaged[at] = random.u64(..256) as u8;
        }
        // Whatever comes out must be usable.
        if let Ok(bundle) = Bundle::from_bytes(&damaged) {
            bundle.validate().unwrap();
        }
        let noise: Vec<u8> = (0..random.u64(..40)).map(|_| random.u64(..256) as u8).collect();
        let _ = (Manifest::from_bytes(&noise), Want::from_bytes(&noise), Parcel::from_bytes(&noise));
    }
}

/// Breaks one thing in a good bundle and names the error that must be found.
fn check(breaking: impl FnOnce(&mut Bundle), error: Error) {
    let mut bundle = Bundle::of_rank(
        (3, 4),
        vec![SymbolEntry {
            bytes: [1].into(),
            site: 0,
            lanes: 1,
            tally: Tally { total: 1, min: 1, max: 1 },
            classes: Default::default(),
        }],
        vec![ThreadPart {
            thread: 0,
            structure: Grammar { rules: vec![vec![Item { symbol: Symbol::Terminal(0), count: 2 }]] }.into(),
            times: Vec::new(),
            lanes: vec![vec![Stream::constant(4)]],
            lengths: Vec::new(),
            digest: 0,
        }],
    )
    .unwrap();
    bundle.validate().unwrap();
    breaking(&mut bundle);
    assert_eq!(bundle.validate(), Err(error));
}

#[test]
fn validation_names_what_is_wrong() {
    let item = |symbol| Item { symbol, count: 1 };
    check(|b| b.cohorts[0].structure = 1, Error::Index { what: "structure", index: 1, len: 1 });
    check(|b| b.cohorts[0].lanes[0] = Lane::same(7), Error::Index { what: "stream", index: 7, len: 1 });
    check(|b| b.cohorts[0].lanes.push(Lane::same(0)), Error::Lanes { cohort: 0, have: 2, need: 1 });
    check(|b| b.cohorts.push(b.cohorts[0].clone()), Error::Overlap { thread: 0, rank: 3 });
    check(|b| b.cohorts[0].ranks.parts.clear(), Error::Ranks { cohort: 0 });
    let varied = |rank: u32, place: u32, over: u32| {
        let values = RankMap::constant(&RankList::single(over), 5);
        let numbers = vec![Number { place, values }];
        Lane::Varied(vec![Variant { ranks: RankList::single(rank), stream: 0, used: 0, numbers }])
    };
    let wrong = Error::Numbers { cohort: 0, lane: 0 };
    check(|b| b.cohorts[0].lanes[0] = Lane::Varied(Vec::new()), wrong.clone());
    check(|b| b.cohorts[0].lanes[0] = varied(4, 0, 4), wrong.clone());
    check(|b| b.cohorts[0].lanes[0] = varied(3, 0, 4), wrong.clone());
    check(|b| b.cohorts[0].lanes[0] = varied(3, 1, 3), wrong);
    check(|b| b.streams[0].terms.clear(), Error::Stream { index: 0 });
    let also = |symbol| {
        move |b: &mut Bundle| {
            let mut grammar = b.structures[0].rules().unwrap().open().into_owned();
            grammar.rules[0].push(item(symbol));
            b.structures[0] = grammar.into();
        }
    };
    check(also(Symbol::Rule(0)), Error::Structure { index: 0 });
    check(also(Symbol::Terminal(5)), Error::Index { what: "symbol", index: 5, len: 1 });
}

#[test]
fn preorder_follows_the_reader() {
    let rule = |r| Item { symbol: Symbol::Rule(r), count: 1 };
    let leaf = |t| Item { symbol: Symbol::Terminal(t), count: 1 };
    let grammar =
        Grammar { rules: vec![vec![rule(3), rule(1)], vec![leaf(1)], vec![], vec![rule(1), leaf(2)]] };
    let expected = Grammar { rules: vec![vec![rule(1), rule(2)], vec![rule(2), leaf(2)], vec![leaf(1)]] };
    assert_eq!(preorder(&grammar), expected);
}
