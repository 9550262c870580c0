//! A trace as a periodic grid of ranks would give it: coordinates, neighbours, a tag of each rank's own, the members of
//! its row and column, and sizes that follow nothing on the first few ranks.

use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart, merge};
use refrain_fold::grammar::Grammar;
use refrain_fold::stream::{Folder, Stream};
use refrain_tracefile::{Meta, Trace};

fn rank(rank: u32, sides: &[u32], irregular: u32) -> Bundle {
    let n = |x: u32| i64::from(x);
    let far = |d: usize| sides[d + 1..].iter().product::<u32>();
    let at = |d: usize| rank / far(d) % sides[d];
    let coordinates: Vec<i64> = (0..sides.len()).map(|d| n(at(d))).collect();
    let last = sides.len() - 1;
    let first_of_row = rank - at(last);
    let row = (0..sides[last]).map(|x| n(first_of_row + x)).collect();
    let column = (0..sides[0]).map(|y| n(rank % far(0) + y * far(0))).collect();
    let mut calls: Vec<Vec<Vec<i64>>> = vec![
        vec![coordinates, vec![0]],
        vec![vec![n(at(0))], vec![n(rank)], vec![2], vec![n(sides[last])], row],
        vec![vec![n(at(last))], vec![n(rank)], vec![4], vec![n(sides[0])], column],
    ];
    for (d, &side) in sides.iter().enumerate() {
        let (side, far) = (n(side), n(far(d)));
        let up = if n(at(d)) + 1 == side { far * (1 - side) } else { far };
        let down = if at(d) == 0 { far * (side - 1) } else { -far };
        calls.push(vec![vec![64], vec![up], vec![n(rank) + 100], vec![64], vec![down], vec![9]]);
    }
    let noise =
        if rank < irregular { i64::from(rank.wrapping_add(3).wrapping_mul(2_654_435_761) >> 12) } else { 5 };
    calls.push(vec![vec![noise], vec![3, noise & 7, 1]]);
    let stream = |numbers: &Vec<i64>| -> Stream {
        let mut folder = Folder::new();
        numbers.iter().for_each(|&number| folder.push(number));
        folder.finish()
    };
    let symbols = (0u8..).zip(&calls).map(|(function, lanes)| SymbolEntry {
        bytes: [30 + function, 0, 1].into(),
        site: 0,
        lanes: lanes.len() as u16,
        tally: Tally { total: 300, min: 100, max: 200 },
        classes: Default::default(),
    });
    let part = ThreadPart {
        thread: 0,
        structure: (0..calls.len() as u32).collect::<Grammar>().into(),
        times: Vec::new(),
        lanes: calls.iter().map(|lanes| lanes.iter().map(stream).collect()).collect(),
        lengths: calls.iter().map(|lanes| lanes.iter().map(|l| l.len() as u64).collect()).collect(),
        digest: u64::from(rank) + 12345,
    };
    Bundle::of_rank((rank, sides.iter().product()), symbols.collect(), vec![part]).unwrap()
}

pub fn trace(sides: &[u32], irregular: u32) -> Trace {
    let ranks: u32 = sides.iter().product();
    let one = |all, r| merge(all, rank(r, sides, irregular)).unwrap();
    let mut bundle = (0..ranks).fold(Bundle::default(), one);
    bundle.canonical().unwrap();
    crate::stencil::told(Trace {
        meta: Meta { ranks, complete: true, split: true, ..Meta::default() },
        bundle,
    })
}
