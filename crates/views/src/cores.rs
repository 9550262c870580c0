//! The cores that ranks had, and whether these were enough.

use refrain_fold::ranks::RankList;
use refrain_tracefile::{Cores, Meta};
use serde::Serialize;

use crate::human::{plural, ranks, thousands};

/// Groups of ranks that are named.
const MOST: usize = 4;

/// `1 core for 3 ranks; oversubscribed`, a line for each group of ranks.
pub fn lines(meta: &Meta) -> Vec<String> {
    let mut groups: Vec<&Cores> = meta.cores.iter().collect();
    // Who has least comes first.
    groups.sort_by_key(|one| u128::from(one.thousandths) * 1000 / u128::from(one.sharing.max(1)));
    let more = groups.len().saturating_sub(MOST);
    let line = |one: &&Cores| {
        let whose = match groups.len() {
            1 => String::new(),
            _ => format!("{}: ", who(&one.ranks)),
        };
        let short = if one.are_short() { "; oversubscribed" } else { "" };
        format!("{whose}{} for {}{short}", told(one.thousandths), plural(one.sharing.into(), "rank"))
    };
    let mut lines: Vec<String> = groups.iter().take(MOST).map(line).collect();
    if more > 0 {
        lines.push(format!("and {} of ranks that have more", plural(more as u64, "group")));
    }
    lines
}

/// The ranks with the least, where they are more than their cores.
pub fn shortest(meta: &Meta) -> Option<&Cores> {
    let least = |one: &&Cores| u128::from(one.thousandths) * 1000 / u128::from(one.sharing.max(1));
    meta.cores.iter().filter(|one| one.are_short()).min_by_key(least)
}

/// Said before a rank is blamed: `3 ranks shared 1 core: ...`
pub fn crowded(meta: &Meta) -> Option<String> {
    let short = shortest(meta)?;
    let (sharing, have) = (plural(short.sharing.into(), "rank"), told(short.thousandths));
    Some(format!("{sharing} shared {have}: one that seems slow or late may only have waited for a core."))
}

fn who(list: &RankList) -> String {
    let all: Vec<u32> = list.iter().collect();
    format!("{} {}", if all.len() == 1 { "rank" } else { "ranks" }, ranks(&all))
}

/// `2 cores`, `1.5 cores`.
pub fn told(thousandths: u64) -> String {
    let (whole, rest) = (thousandths / 1000, thousandths % 1000);
    match rest {
        0 => plural(whole, "core"),
        _ => format!("{}.{} cores", thousands(whole), format!("{rest:03}").trim_end_matches('0')),
    }
}

#[derive(Serialize)]
pub struct Document {
    ranks: String,
    each: u32,
    sharing: u32,
    cores: f64,
    oversubscribed: bool,
}

pub fn documents(meta: &Meta) -> Vec<Document> {
    let one = |one: &Cores| Document {
        ranks: ranks(&one.ranks.iter().collect::<Vec<_>>()),
        each: one.each,
        sharing: one.sharing,
        cores: one.thousandths as f64 / 1000.0,
        oversubscribed: one.are_short(),
    };
    meta.cores.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(groups: &[(&[u32], u32, u64)], expected: &[&str]) {
        let one = |&(ranks, sharing, thousandths): &(&[u32], u32, u64)| Cores {
            ranks: RankList::from_sorted(ranks),
            each: 1,
            sharing,
            thousandths,
        };
        let meta = Meta { cores: groups.iter().map(one).collect(), ..Meta::default() };
        assert_eq!(lines(&meta), expected);
    }

    #[test]
    fn the_least_comes_first() {
        check(&[], &[]);
        check(&[(&[0, 1, 2], 3, 1000)], &["1 core for 3 ranks; oversubscribed"]);
        check(&[(&[0, 1], 2, 2000)], &["2 cores for 2 ranks"]);
        check(&[(&[0, 1], 2, 1500)], &["1.5 cores for 2 ranks; oversubscribed"]);
        check(
            &[(&[2, 3], 2, 8000), (&[0, 1], 2, 1000)],
            &["ranks 0-1: 1 core for 2 ranks; oversubscribed", "ranks 2-3: 8 cores for 2 ranks"],
        );
    }
}
