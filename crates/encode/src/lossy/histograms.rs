//! Histograms: of peers and counts how often each came, not in which order.

use std::collections::BTreeMap;

use refrain_fold::bundle::Bundle;
use refrain_fold::stream::{Block, Folder, Stream, Term};
use refrain_model::{Cond, Dir, Function, Histograms, Kind, Len};

use crate::layout::{Layout, Slot};
use crate::wire;

/// What the numbers of a lane are, and so what stands for many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Ranks: the frequent ones, each also for the rare ones near it.
    Peer,
    /// Amounts: means.
    Count,
}

/// `MPI_UNDEFINED`, the same in all ABIs.
const UNDEFINED: i64 = -32766;

/// Lanes of peers and counts that take more numbers to tell than the trigger become histograms. Whether there were any.
pub(super) fn make(bundle: &mut Bundle, Histograms { trigger, bins }: Histograms) -> bool {
    let roles = |bytes: &[u8]| Layout::parse(bytes).map_or_else(|_| Vec::new(), |layout| roles(&layout));
    let roles: Vec<_> = bundle.symbols.iter().map(|symbol| roles(&symbol.bytes)).collect();
    bundle.change_lanes(|place| {
        let (_, role) = roles.get(place.symbol as usize)?.iter().find(|(lane, _)| *lane == place.lane)?;
        let long = numbers(place.stream) > trigger as usize;
        long.then(|| histogram(place.stream.iter().take(place.used as usize), *role, bins as usize))
    })
}

/// The lanes that may become histograms: none that a reader needs to find its way.
pub(crate) fn roles(layout: &Layout) -> Vec<(u16, Role)> {
    let f = layout.function;
    let mut roles = Vec::new();
    if layout.inline.is_some() || !f.families.iter().any(|family| ["p2p", "coll", "rma"].contains(family)) {
        return roles;
    }
    for (i, (p, slot)) in f.params.iter().zip(&layout.slots).enumerate() {
        let role = match p.kind {
            Kind::Peer(_) => Role::Peer,
            // How much `MPI_Get_count` found; but not how many requests there are.
            Kind::Int | Kind::Undefinable if is_count(p.name) && !decides(f, i) => Role::Count,
            Kind::Status => Role::Peer,
            _ => continue,
        };
        match *slot {
            Slot::Number { lane } | Slot::List { lane, .. } if p.dir != Dir::InOut => {
                roles.push((lane, role))
            }
            Slot::Status { lane } | Slot::Statuses { lane, .. } => {
                roles.extend([(lane, Role::Peer), (lane + 2, Role::Count)]);
            }
            _ => {}
        }
    }
    roles
}

fn is_count(name: &str) -> bool {
    let name = name.strip_suffix('s').unwrap_or(name);
    matches!(name, "count" | "sendcount" | "recvcount" | "origin_count" | "target_count" | "result_count")
}

/// Whether parameter `i` says how long another one is, or whether it is there.
fn decides(f: &Function, i: usize) -> bool {
    let is = |j: u8| usize::from(j) == i;
    f.params.iter().any(|p| {
        let length = p.len.iter().any(|len| match *len {
            Len::Param(j) | Len::Triple(j) | Len::Sum(j) | Len::Last(j) => is(j),
            _ => false,
        });
        length || p.when.iter().any(|cond| matches!(*cond, Cond::Flag(j) | Cond::Defined(j) if is(j)))
    })
}

/// How many numbers it takes to tell a stream: one for a constant, more for anything else.
fn numbers(stream: &Stream) -> usize {
    let blocks = stream.terms.iter().filter_map(|term| match term {
        Term::Block(block) => stream.blocks.get(*block as usize),
        _ => None,
    });
    let inside = blocks.map(|block| match block {
        Block::Packed { count, .. } => *count as usize,
        Block::Running { steps, .. } => numbers(steps),
        Block::Rows { rows, .. } => 1 + numbers(&rows.starts) + numbers(&rows.counts),
    });
    // Where a stride begins is one number, its step another.
    let steps = stream.terms.iter().filter(|term| matches!(term, Term::Stride { .. })).count();
    inside.sum::<usize>() + steps + stream.shape.rules.iter().map(Vec::len).sum::<usize>()
}

/// As many numbers as there are, sorted, of at most `most` different ones. Names among them keep theirs beside these.
fn histogram(numbers: impl Iterator<Item = i64>, role: Role, most: usize) -> Stream {
    let mut often: BTreeMap<i64, u64> = BTreeMap::new();
    numbers.for_each(|number| *often.entry(number).or_default() += 1);
    let is_name =
        |number: i64| wire::as_named(number).is_some() || number == UNDEFINED && role == Role::Count;
    let (named, plain): (Vec<_>, Vec<_>) = often.into_iter().partition(|(number, _)| is_name(*number));
    let mut bins = match role {
        _ if plain.len() <= most => plain,
        Role::Peer => nearest(&plain, most),
        Role::Count => means(&plain, most),
    };
    bins.extend(named);
    bins.sort_unstable();
    let mut folder = Folder::new();
    bins.into_iter().for_each(|(number, times)| folder.push_n(number, times));
    folder.finish()
}

/// The most frequent numbers, each with those that are nearest to it.
fn nearest(often: &[(i64, u64)], most: usize) -> Vec<(i64, u64)> {
    let mut kept = often.to_vec();
    kept.sort_by_key(|(number, times)| (std::cmp::Reverse(*times), *number));
    kept.truncate(most);
    kept.sort_unstable();
    let mut bins: Vec<(i64, u64)> = kept.iter().map(|(number, _)| (*number, 0)).collect();
    for (number, times) in often {
        let after = kept.partition_point(|(kept, _)| kept < number);
        let candidates = after.saturating_sub(1)..(after + 1).min(kept.len());
        let near = candidates.min_by_key(|at| kept[*at].0.abs_diff(*number)).unwrap_or(0);
        bins[near].1 += times;
    }
    bins
}

/// Bins that were met about equally often, each as the mean of what is in it.
fn means(often: &[(i64, u64)], most: usize) -> Vec<(i64, u64)> {
    let mut bins: Vec<(i64, u64)> = Vec::new();
    let mut left: u64 = often.iter().map(|(_, times)| times).sum();
    let (mut sum, mut met) = (0i128, 0u64);
    for &(number, times) in often {
        sum += i128::from(number) * i128::from(times);
        met += times;
        let share = left.div_ceil((most - bins.len()) as u64);
        if met >= share || met == left {
            let mean = (sum + i128::from(met / 2)).div_euclid(met.into());
            // Between the smallest and the largest of its numbers.
            bins.push((mean as i64, met));
            left -= met;
            (sum, met) = (0, 0);
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `value x times` of the runs of a histogram.
    fn check(numbers: &[i64], role: Role, most: usize, expected: &str) {
        let stream = histogram(numbers.iter().copied(), role, most);
        let mut runs: Vec<(i64, u64)> = Vec::new();
        for number in stream.iter().take(numbers.len()) {
            match runs.last_mut() {
                Some((last, times)) if *last == number => *times += 1,
                _ => runs.push((number, 1)),
            }
        }
        let name = |number: i64| match wire::as_named(number) {
            Some(_) => "name".into(),
            None => number.to_string(),
        };
        let shown: Vec<String> = runs.iter().map(|(v, n)| format!("{}x{n}", name(*v))).collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn only_a_constant_takes_one_number() {
        let told = |values: &[i64]| {
            let mut folder = Folder::new();
            values.iter().for_each(|value| folder.push(*value));
            numbers(&folder.finish())
        };
        assert_eq!((told(&[7]), told(&[7; 1000])), (1, 1));
        let stride: Vec<i64> = (0..100).collect();
        let drawn: Vec<i64> = (0..5000).map(|k| (crate::hash::mix(k, 3) % 1_000_003) as i64).collect();
        for more in [&[7, 8][..], &[7, 8, 7, 8, 7, 8], &stride, &drawn] {
            assert!(told(more) > 1, "{more:?}");
        }
        assert!(told(&drawn) > 1000);
    }

    #[test]
    fn few_different_numbers_are_kept_as_they_are() {
        check(&[3, 1, 3, 2, 1, 3], Role::Peer, 3, "1x2 2x1 3x3");
        check(&[3, 1, 3, 2, 1, 3], Role::Count, 3, "1x2 2x1 3x3");
    }

    #[test]
    fn rare_peers_are_taken_for_the_nearest_frequent_one() {
        check(&[-4, 7, 7, 7, 1, 1, 2, 8, 0], Role::Peer, 2, "1x5 7x4");
        let null = wire::named_value(2);
        check(&[5, null, 5, 6, 7, 7, 7, null], Role::Peer, 1, "namex2 7x6");
    }

    #[test]
    fn counts_are_means_of_bins_and_as_many_as_before() {
        check(&[1, 2, 3, 4, 100, 200], Role::Count, 3, "2x2 4x2 150x2");
        check(&[0, 0, 0, 0, 9, 10], Role::Count, 2, "0x4 10x2");
        check(&[5, UNDEFINED, 6, 7], Role::Count, 1, "-32766x1 6x3");
        check(&[-3, -2, -1], Role::Count, 1, "-2x3");
        // Every size of bins, and one number that outweighs all others.
        let mut numbers: Vec<i64> = (0..100).collect();
        numbers.extend([50; 400]);
        for most in 1..=100 {
            let bins = histogram(numbers.iter().copied(), Role::Count, most);
            let mut seen: Vec<i64> = bins.iter().take(numbers.len()).collect();
            assert!(seen.is_sorted());
            seen.dedup();
            assert!(seen.len() <= most, "{} for {most}", seen.len());
        }
    }
}
