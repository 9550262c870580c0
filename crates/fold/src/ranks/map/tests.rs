use super::*;
use crate::ranks::Checks;
use fastrand::Rng;

fn map(ranks: impl IntoIterator<Item = u32>, f: impl Fn(u32) -> i64) -> RankMap {
    let pairs: Vec<(u32, i64)> = ranks.into_iter().map(|rank| (rank, f(rank))).collect();
    let map = RankMap::from_pairs(pairs.clone());
    assert_eq!(map.pairs(), pairs);
    assert_eq!(map.len(), pairs.len() as u64);
    let list = pairs.iter().map(|p| p.0).collect();
    assert_eq!(Checks::unbounded().is_over(&map, &list), Ok(true));
    for &(rank, value) in pairs.iter().take(500) {
        assert_eq!(map.get(rank), Some(value));
    }
    map
}

/// At most this many parts, on `ranks` ranks.
fn check(most: usize, ranks: u32, name: &str, f: impl Fn(u32) -> i64) {
    let map = map(0..ranks, f);
    assert!(map.parts.len() <= most, "{name} on {ranks} ranks: {:#?}", map.parts);
}

#[test]
fn simple_functions() {
    for ranks in [1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 64, 100, 1000, 4096] {
        check(1, ranks, "constant", |_| 5);
        check(1, ranks, "the rank", i64::from);
        check(1, ranks, "affine", |rank| 3 - 7 * i64::from(rank));
        check(2, ranks, "ring", |rank| if rank + 1 == ranks { 1 - i64::from(ranks) } else { 1 });
        check(2, ranks, "root", |rank| i64::from(rank == 0));
        check(3, ranks, "parent in a heap", |rank| (i64::from(rank) - 1).div_euclid(2) - i64::from(rank));
        check(1, ranks & !1, "parity", |rank| i64::from(rank % 2));
    }
    for bits in 1..12 {
        for bit in 0..bits {
            check(1, 1 << bits, "xor", |rank| i64::from(rank ^ 1 << bit) - i64::from(rank));
        }
    }
}

/// Every coordinate and both neighbours in every direction, of a grid with these sides (the last varies fastest).
fn grid(sides: &[u32], most: usize) {
    let ranks = sides.iter().product();
    for (d, &side) in sides.iter().enumerate() {
        let far: u32 = sides[d + 1..].iter().product();
        let at = |rank: u32| rank / far % side;
        let name = format!("{sides:?} {d}");
        check(1, ranks, &format!("coordinate {name}"), |rank| at(rank).into());
        let (n, far) = (i64::from(side), i64::from(far));
        let up = |rank| if at(rank) + 1 == side { far * (1 - n) } else { far };
        let down = |rank| if at(rank) == 0 { far * (n - 1) } else { -far };
        check(most, ranks, &format!("up {name}"), up);
        check(most, ranks, &format!("down {name}"), down);
        check(most, ranks, &format!("absolute {name}"), |rank| i64::from(rank) + up(rank));
        check(most, ranks, &format!("open {name}"), |rank| if at(rank) == 0 { -1 } else { -far });
    }
}

#[test]
fn grids_of_any_size_fold_alike() {
    for a in 1..9 {
        for b in 1..9 {
            grid(&[a, b], 2);
            for c in 1..7 {
                grid(&[a, b, c], 2);
            }
        }
    }
    for sides in [[2, 2, 2, 2], [3, 4, 5, 6], [5, 2, 3, 2], [3, 3, 3, 3], [4, 4, 2, 7]] {
        grid(&sides, 2);
    }
    grid(&[100, 30], 2);
    grid(&[13, 17, 19], 2);
}

#[test]
fn transposes() {
    for (rows, columns) in [(2, 2), (3, 3), (4, 4), (5, 3), (3, 7), (16, 16), (30, 20), (64, 64)] {
        let ranks = rows * columns;
        check(1, ranks, "transpose", |rank| i64::from(rank % columns * rows + rank / columns));
        check(1, ranks, "relative", |rank| {
            i64::from(rank % columns * rows + rank / columns) - i64::from(rank)
        });
    }
}

#[test]
fn the_interior_of_a_grid() {
    for side in 3..20 {
        let inside =
            |rank: &u32| (1..side - 1).contains(&(rank % side)) && (1..side - 1).contains(&(rank / side));
        let column = map((0..side * side).filter(inside), |rank| i64::from(rank % side));
        assert_eq!(column.parts.len(), 1, "{side}");
    }
}

#[test]
fn joining_in_any_order() {
    let mut random = Rng::with_seed(5);
    for round in 0..300u64 {
        let kind = round % 4;
        let mut pairs: Vec<(u32, i64)> = Vec::new();
        let mut rank = 0;
        for _ in 0..random.u64(..200) {
            rank += if kind == 0 { 1 } else { 1 + random.u64(..kind) as u32 };
            let value =
                [i64::from(rank % 7), random.u64(..3) as i64, random.u64(..) as i64, 4][kind as usize];
            pairs.push((rank, value));
        }
        let whole = RankMap::from_pairs(pairs.clone());
        assert_eq!(whole.pairs(), pairs);
        let mut pieces: Vec<Vec<(u32, i64)>> = vec![Vec::new(); 1 + random.u64(..90) as usize];
        for &pair in &pairs {
            let to = random.u64(..pieces.len() as u64) as usize;
            pieces[to].push(pair);
        }
        let joined = pieces.into_iter().map(RankMap::from_pairs).fold(RankMap::default(), RankMap::union);
        assert_eq!(joined.folded(), whole);
    }
}

#[test]
fn bad_maps_are_refused() {
    let dim = |count, stride| Dim { count, stride, step: 1 };
    let over = |parts: &[(u32, &[Dim])], ranks: &[u32]| {
        let part = |&(start, dims): &(u32, &[Dim])| MapPart { start, value: 0, dims: dims.to_vec() };
        let map = RankMap::plainly(parts.iter().map(part).collect());
        Checks::unbounded().is_over(&map, &RankList::from_sorted(ranks)) == Ok(true)
    };
    assert!(over(&[(0, &[dim(2, 2)]), (1, &[])], &[0, 1, 2]));
    assert!(!over(&[(0, &[dim(2, 2)]), (2, &[])], &[0, 1, 2]), "one twice");
    assert!(!over(&[(1, &[]), (0, &[dim(2, 2)])], &[0, 1, 2]), "out of order");
    assert!(!over(&[(0, &[dim(1, 2)])], &[0]), "a short dimension");
    assert!(!over(&[(0, &[dim(2, 1), dim(3, 1)])], &[0, 1, 2, 3, 4, 5]), "a stride too short");
    assert!(!over(&[(5, &[dim(2, u32::MAX)])], &[5, 6]), "beyond the last rank");
    assert!(!over(&[(0, &[dim(u32::MAX, 1)])], &[0, 1]), "too many");
    assert!(over(&[(0, &[dim(4, 1)])], &[0, 3]), "others may have numbers too");
    assert!(!over(&[(0, &[dim(5, 1)])], &[0, 3]), "but not many");
    assert!(!over(&[(0, &[dim(3, 1)])], &[0, 3]), "and one is missing");
    assert!(!over(&[(0, &[dim(2, 1)]), (1, &[dim(2, 2)])], &[0, 1, 3]), "one twice, another not needed");
}

/// Time is near linear: this takes about a second where it is, minutes where it is not.
#[test]
fn many_ranks() {
    let ranks = 1 << 16;
    check(2, ranks, "ring", |rank| if rank + 1 == ranks { 1 - i64::from(ranks) } else { 1 });
    check(2, ranks, "torus", |rank| if rank / 32 % 64 == 63 { -63 * 32 } else { 32 });
    check(1, ranks, "column", |rank| i64::from(rank % 32));
    let noise = |rank: u32| i64::from(rank.wrapping_mul(2654435761).rotate_left(7) ^ rank);
    check(ranks as usize, ranks, "noise", noise);
    check(ranks as usize, ranks, "few values", |rank| noise(rank) & 3);
}
