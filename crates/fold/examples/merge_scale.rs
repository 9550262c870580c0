//! How long it takes to bring many ranks together, all in one process: `merge_scale SIDE DIMENSIONS`.
//! Each rank of a periodic grid calls with its coordinates, its neighbours, a tag of its own and its row's members.

use std::time::Instant;

use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart, merge};
use refrain_fold::grammar::Grammar;
use refrain_fold::stream::Folder;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u32>().expect("two numbers"));
    let (side, dimensions) = (arguments.next().unwrap_or(16), arguments.next().unwrap_or(3));
    let ranks = side.pow(dimensions);
    let one = |rank: u32| {
        let n = i64::from(side);
        let at = |d: u32| i64::from(rank / side.pow(d) % side);
        let mut lanes: Vec<Vec<i64>> =
            vec![(0..dimensions).map(at).collect(), vec![i64::from(rank)], vec![8]];
        for d in 0..dimensions {
            let far = n.pow(d);
            lanes.push(vec![if at(d) + 1 == n { far * (1 - n) } else { far }]);
        }
        lanes.push((0..n).map(|x| i64::from(rank) - at(0) + x).collect());
        let fold = |numbers: &Vec<i64>| {
            let mut folder = Folder::new();
            numbers.iter().for_each(|&n| folder.push(n));
            folder.finish()
        };
        let tally = Tally { total: 1, min: 1, max: 1 };
        let part = ThreadPart {
            thread: 0,
            structure: [0].into_iter().collect::<Grammar>().into(),
            times: Vec::new(),
            lanes: vec![lanes.iter().map(fold).collect()],
            lengths: vec![lanes.iter().map(|l| l.len() as u64).collect()],
            digest: rank.into(),
        };
        let symbol = SymbolEntry {
            bytes: [1].into(),
            site: 0,
            lanes: lanes.len() as u16,
            tally,
            classes: Default::default(),
        };
        Bundle::of_rank((rank, 0), vec![symbol], vec![part]).expect("a sound recording")
    };
    let start = Instant::now();
    // As a tree, without ever holding more than one bundle a level.
    let mut levels: Vec<(u32, Bundle)> = Vec::new();
    for rank in 0..ranks {
        let mut new = (0, one(rank));
        while let Some((level, before)) = levels.pop_if(|last| last.0 == new.0) {
            new = (level + 1, merge(before, new.1).expect("no rank twice"));
        }
        levels.push(new);
    }
    let merged = levels.into_iter().rev().map(|l| l.1).reduce(|a, b| merge(b, a).expect("no rank twice"));
    let mut all = merged.unwrap_or_default();
    let (merging, start) = (start.elapsed(), Instant::now());
    all.canonical().expect("a sound bundle");
    let (merging, canonical) = (merging.as_secs_f64(), start.elapsed().as_secs_f64());
    println!("{ranks} ranks: merged in {merging:.4} s, final form in {canonical:.4} s");
    println!("{} cohorts, {} streams, {} bytes", all.cohorts.len(), all.streams.len(), all.to_bytes().len());
}
