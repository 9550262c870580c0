use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::grammar::Item;
use crate::testing::Random;

/// `prefix rest^count`, as a program with a start-up and a loop would give.
fn grammar(random: &mut Random, symbols: u64) -> Grammar {
    let mut rule = |len: u64| -> Vec<Item> {
        let items = 1 + random.below(len);
        let mut item =
            || Item { symbol: Symbol::Terminal(random.below(symbols) as u32), count: 1 + random.below(3) };
        (0..items).map(|_| item()).collect()
    };
    let (mut start, body) = (rule(3), rule(5));
    start.push(Item { symbol: Symbol::Rule(1), count: 1 + random.below(4) });
    Grammar { rules: vec![start, body] }
}

/// Few choices, so that ranks often agree in part or in all.
fn recording(random: &mut Random, rank: u32) -> Bundle {
    let kinds = 4;
    let offset = random.below(kinds);
    let symbols: Vec<SymbolEntry> = (0..kinds)
        .map(|i| {
            // Every rank numbers its symbols differently.
            let kind = (i + offset) % kinds;
            let time = 1 + random.below(100);
            SymbolEntry {
                bytes: vec![kind as u8; kind as usize].into(),
                lanes: kind as u16,
                tally: Tally { total: 3 * time, min: time / 2, max: time },
            }
        })
        .collect();
    let threads = 1 + random.below(2) as u32;
    let same = random.below(3);
    let parts = (0..threads)
        .map(|thread| {
            let structure = match same {
                0 => grammar(random, kinds),
                _ => {
                    let fixed = grammar(&mut Random(77 + u64::from(thread)), kinds);
                    fixed.map_terminals(|t| (u64::from(t) + kinds - offset) as u32 % kinds as u32)
                }
            };
            let mut stream = || Stream::constant(random.below(3) as i64 - 1);
            let lanes: Vec<Vec<Stream>> =
                symbols.iter().map(|s| (0..s.lanes).map(|_| stream()).collect()).collect();
            ThreadPart { thread, structure, lanes, digest: random.below(2) }
        })
        .collect();
    Bundle::of_rank(rank, symbols, parts).unwrap()
}

type Calls = Vec<(Vec<u8>, Vec<i64>)>;

/// Everything every thread of every rank did, written out.
fn expand(bundle: &Bundle) -> BTreeMap<(u32, u32), (Calls, u64)> {
    let mut all = BTreeMap::new();
    for group in &bundle.groups {
        for rank in group.ranks.iter() {
            assert!(bundle.threads(rank).contains(&group.thread));
            assert_eq!(bundle.group_of(rank, group.thread), Some(group));
            let mut walk = Walk::new(bundle, group).unwrap();
            let mut calls = Vec::new();
            while let Some(symbol) = walk.next_symbol() {
                let entry = &bundle.symbols[symbol as usize];
                assert_eq!(walk.value(entry.lanes), None);
                let values = (0..entry.lanes).map(|lane| walk.value(lane).unwrap()).collect();
                calls.push((entry.bytes.to_vec(), values));
            }
            assert_eq!(all.insert((rank, group.thread), (calls, group.digest)), None);
        }
    }
    all
}

fn shuffled(random: &mut Random, len: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    for i in (1..len).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
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
    let mut random = Random(3);
    for _ in 0..60 {
        let size = 1 + random.below(9) as u32;
        let ranks: Vec<Bundle> = (0..size).map(|rank| recording(&mut random, rank)).collect();
        let mut expected = BTreeMap::new();
        for rank in &ranks {
            expected.extend(expand(rank));
        }
        let all = merged(ranks.iter().cloned());
        all.validate().unwrap();
        assert_eq!(expand(&all), expected);
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
        assert_eq!(expand(&again), expected);
        assert_eq!(Bundle::from_bytes(&all.to_bytes()).unwrap(), all);
    }
}

#[test]
fn ranks_that_did_the_same_are_one_group() {
    let mut random = Random(9);
    let one = recording(&mut random, 0);
    let like = |rank: u32| {
        let mut copy = one.clone();
        copy.groups.iter_mut().for_each(|g| g.ranks = RankList::single(rank));
        copy
    };
    let all = merged((0..20).map(like));
    assert_eq!(all.groups.len(), one.groups.len());
    assert_eq!(all.groups[0].ranks, RankList::from_sorted(&(0..20).collect::<Vec<_>>()));
    assert_eq!(all.symbols.len(), one.symbols.len());
    assert_eq!(all.symbols[0].tally.total % 20, 0);
}

#[test]
fn only_what_is_new_travels() {
    let mut random = Random(21);
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
        let mut random = Random(100 + u64::from(size));
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
    let mut random = Random(5);
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
    let mut random = Random(42);
    let whole = merged((0..6).map(|rank| recording(&mut Random(500 + u64::from(rank)), rank)));
    let bytes = whole.to_bytes();
    for len in 0..bytes.len() {
        assert!(Bundle::from_bytes(&bytes[..len]).is_err(), "cut at {len}");
    }
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = random.below(256) as u8;
        }
        // Whatever comes out must be usable.
        if let Ok(bundle) = Bundle::from_bytes(&damaged) {
            bundle.validate().unwrap();
        }
        let noise: Vec<u8> = (0..random.below(40)).map(|_| random.below(256) as u8).collect();
        let _ = (Manifest::from_bytes(&noise), Want::from_bytes(&noise), Parcel::from_bytes(&noise));
    }
}

/// Breaks one thing in a good bundle and names the error that must be found.
fn check(breaking: impl FnOnce(&mut Bundle), error: Error) {
    let mut bundle = Bundle::of_rank(
        3,
        vec![SymbolEntry { bytes: [1].into(), lanes: 1, tally: Tally { total: 1, min: 1, max: 1 } }],
        vec![ThreadPart {
            thread: 0,
            structure: Grammar { rules: vec![vec![Item { symbol: Symbol::Terminal(0), count: 2 }]] },
            lanes: vec![vec![Stream::constant(4)]],
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
    check(|b| b.groups[0].structure = 1, Error::Index { what: "structure", index: 1, len: 1 });
    check(|b| b.groups[0].lanes[0] = 7, Error::Index { what: "stream", index: 7, len: 1 });
    check(|b| b.groups[0].lanes.push(0), Error::Lanes { group: 0, have: 2, need: 1 });
    check(|b| b.groups.push(b.groups[0].clone()), Error::Overlap { thread: 0, rank: 3 });
    check(|b| b.groups[0].ranks.parts.clear(), Error::Ranks { group: 0 });
    check(|b| b.streams[0].terms.clear(), Error::Stream { index: 0 });
    check(|b| b.structures[0].rules[0].push(item(Symbol::Rule(0))), Error::Structure { index: 0 });
    check(
        |b| b.structures[0].rules[0].push(item(Symbol::Terminal(5))),
        Error::Index { what: "symbol", index: 5, len: 1 },
    );
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
