use super::*;
use crate::ranks::{Checks, RankMap};
use fastrand::Rng;

/// The loose form says the same of all ranks that are there, and takes at most so many parts.
fn check(most: usize, ranks: &[u32], name: &str, f: impl Fn(u32) -> i64) {
    let pairs: Vec<Point> = ranks.iter().map(|&rank| (rank, f(rank))).collect();
    let list = RankList::from_sorted(ranks);
    let map = RankMap::loose(pairs.clone());
    assert_eq!(Checks::unbounded().is_over(&map, &list), Ok(true), "{name}: {map:?}");
    assert!(map.cost() <= RankMap::from_pairs(pairs.clone()).cost(), "{name}");
    assert_eq!(map.pairs_of(&list), pairs, "{name}");
    assert!(pairs.iter().all(|&(rank, value)| map.get(rank) == Some(value)), "{name}");
    assert_eq!(map.clone().only(&list).pairs(), pairs, "{name}");
    assert!(map.parts.len() <= most, "{name} on {} ranks: {:#?}", ranks.len(), map.parts);
}

/// At most so many parts, box and missing ranks together.
fn check_list(most: usize, ranks: &[u32], name: &str) {
    let list = RankList::from_sorted(ranks);
    let parts = match list.all_but() {
        None => list.parts.len(),
        Some((whole, missing)) => {
            assert_eq!((whole.validate(), missing.validate()), (Ok(()), Ok(())));
            assert_eq!(whole.without(&missing), list, "{name}");
            assert!(whole.len() <= MOST_HOLES * list.len(), "{name}");
            whole.parts.len() + missing.parts.len()
        }
    };
    assert!(parts <= most, "{name} on {} ranks: {:?} {list}", ranks.len(), list.all_but());
}

#[test]
fn a_grid_without_its_diagonal() {
    for side in [7, 8, 13, 32, 100] {
        let (row, column) = (|rank: u32| rank / side, |rank: u32| rank % side);
        let off = |rank: &u32| row(*rank) != column(*rank);
        let inside =
            |rank: &u32| (1..side - 1).contains(&row(*rank)) && (1..side - 1).contains(&column(*rank));
        let all: Vec<u32> = (0..side * side).filter(off).collect();
        let inner: Vec<u32> = all.iter().copied().filter(inside).collect();
        let wrap = |rank: u32| if column(rank) + 1 == side { 1 - i64::from(side) } else { 1 };
        for (ranks, name) in [(&all, "all"), (&inner, "inside")] {
            let transposed = |rank: u32| i64::from(column(rank) * side + row(rank));
            check(1, ranks, &format!("transpose {name}"), transposed);
            check(1, ranks, &format!("relative {name}"), |rank| transposed(rank) - i64::from(rank));
            check(1, ranks, &format!("row {name}"), |rank| row(rank).into());
            check(4, ranks, &format!("right {name}"), wrap);
            check_list(2, ranks, name);
        }
    }
}

#[test]
fn a_cube_without_its_diagonal() {
    for side in [6, 9, 16] {
        let at = |rank: u32| [rank / side / side, rank / side % side, rank % side];
        let inside = |x: u32| (1..side - 1).contains(&x);
        let off = |rank: &u32| at(*rank).windows(2).any(|pair| pair[0] != pair[1]);
        let all: Vec<u32> = (0..side * side * side).filter(off).collect();
        let inner: Vec<u32> = all.iter().copied().filter(|&rank| at(rank).into_iter().all(inside)).collect();
        for ranks in [&all, &inner] {
            check(2, ranks, "turned", |rank| {
                let [x, y, z] = at(rank);
                i64::from((z * side + x) * side + y)
            });
            check_list(side as usize, ranks, "cube");
        }
        check_list(2, &all, "all");
        check_list(2, &inner, "inside");
    }
}

/// Whatever is missing, and whatever the numbers, all that is there comes back.
#[test]
fn any_holes_in_anything() {
    let mut random = Rng::with_seed(9);
    for round in 0..600u64 {
        let (first, side) = (random.u64(..50) as u32, 2 + random.u64(..9) as u32);
        let rows = 2 + random.u64(..9) as u32;
        let holes = [1, 4, 20, 2][round as usize % 4];
        let ranks: Vec<u32> = (0..side * rows)
            .filter(|_| random.u64(..holes + 1) > 0)
            .map(|at| first + at / side * (side + 3) + at % side)
            .collect();
        if ranks.is_empty() {
            continue;
        }
        let noise = random.u64(..);
        check(ranks.len(), &ranks, "columns", |rank| i64::from(rank % (side + 3)));
        check(ranks.len(), &ranks, "extremes", |rank| i64::MAX.wrapping_mul(i64::from(rank)));
        check(ranks.len(), &ranks, "noise", |rank| (noise >> (rank % 60)) as i64 & 3);
        check_list(ranks.len(), &ranks, "holes");
    }
    let far: Vec<u32> = (0..40).filter(|at| at % 9 != 4).map(|at| u32::MAX - 39 + at).collect();
    check(far.len(), &far, "the last ranks there can be", |rank| i64::from(rank % 7));
    check_list(far.len(), &far, "the last ranks there can be");
}
