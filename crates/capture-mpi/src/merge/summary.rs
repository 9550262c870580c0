//! What is known of the run beside its calls, merged up the same tree as the calls.

use std::collections::{BTreeMap, BTreeSet};

use refrain_fold::bundle::{Link, RankTree};
use refrain_fold::ranks::RankList;
use refrain_guest::process::cores::{Allowed, numbers};
use refrain_times::paths::{Before, Histogram, Path, Paths};
use refrain_tracefile::profile::{Row, Spent};
use refrain_tracefile::{Cores, Profile};

/// Of one rank, or of several.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    pub hosts: Vec<(String, RankList)>,
    /// Ranks of a host that may use the same, by the host's name.
    pub shares: BTreeMap<(String, Allowed), RankList>,
    /// How they spent their time.
    pub profile: Option<Profile>,
    /// How the times of their calls are distributed, by signature.
    pub paths: Option<Paths>,
    /// The most that the tracer held while the program ran, over ranks.
    pub memory: Option<Spread>,
    pub notes: Vec<String>,
    /// Calls that were recorded are not among those merged.
    pub missing: bool,
}

/// A quantity over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    pub ranks: u64,
    pub total: u64,
    pub min: u64,
    pub max: u64,
}

impl Spread {
    pub fn one(value: u64) -> Spread {
        Spread { ranks: 1, total: value, min: value, max: value }
    }
}

/// One line each: `host NAME RANKS`, `cores LIST THOUSANDTHS RANKS GROUP` and after it `on HOST`, `profile RANKS` and after it `row SPENT RANK NS RANK NS LEVEL*RANKS...`, `paths` and after it
/// `path SIGNATURE BEFORE DURATIONS GAPS`, `memory RANKS TOTAL MIN MAX`, `note TEXT`, `missing calls`.
impl Summary {
    pub fn absorb(&mut self, other: Summary) {
        for (name, ranks) in other.hosts {
            match self.hosts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = known.union(&ranks),
                None => self.hosts.push((name, ranks)),
            }
        }
        for (share, ranks) in other.shares {
            let known = self.shares.entry(share).or_default();
            *known = known.union(&ranks);
        }
        self.profile = match (self.profile.take(), other.profile) {
            (Some(a), Some(b)) => Some(a.join(&b)),
            (a, b) => a.or(b),
        };
        self.paths = match (self.paths.take(), other.paths) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (a, b) => a.or(b),
        };
        self.memory = match (self.memory, other.memory) {
            (Some(a), Some(b)) => Some(Spread {
                ranks: a.ranks + b.ranks,
                total: a.total.saturating_add(b.total),
                min: a.min.min(b.min),
                max: a.max.max(b.max),
            }),
            (a, b) => a.or(b),
        };
        for note in other.notes {
            // What concerns all of them is said once.
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.missing |= other.missing;
    }

    /// What ranks may use and with how many others, by what they have least of: cores of their own set, cores of all sets that overlap with it,
    /// or time of a group that is limited.
    pub fn cores(&self) -> Vec<Cores> {
        struct Pool {
            ranks: u64,
            thousandths: u64,
        }
        impl Pool {
            /// Others have less for each rank.
            fn is_wider(&self, other: &Pool) -> bool {
                u128::from(self.thousandths) * u128::from(other.ranks)
                    > u128::from(other.thousandths) * u128::from(self.ranks)
            }
        }
        let mut found: BTreeMap<(u32, u32, u64), RankList> = BTreeMap::new();
        let shares: Vec<(&(String, Allowed), &RankList)> = self.shares.iter().collect();
        for shares in shares.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            let set = |allowed: &Allowed| numbers(&allowed.list).into_iter().flatten().collect();
            let sets: Vec<BTreeSet<u32>> = shares.iter().map(|((_, allowed), _)| set(allowed)).collect();
            // Of sets that overlap, even by way of others, one stands for all.
            let mut leader: Vec<usize> = (0..shares.len()).collect();
            let mut users: BTreeMap<u32, usize> = BTreeMap::new();
            for (at, set) in sets.iter().enumerate() {
                for core in set {
                    let (a, b) = (leader[*users.entry(*core).or_insert(at)], leader[at]);
                    if a != b {
                        leader.iter_mut().filter(|one| **one == b).for_each(|one| *one = a);
                    }
                }
            }
            let together = |of: &dyn Fn(usize) -> bool| {
                let chosen: Vec<usize> = (0..shares.len()).filter(|at| of(*at)).collect();
                let cores: BTreeSet<u32> = chosen.iter().flat_map(|at| &sets[*at]).copied().collect();
                let ranks = chosen.iter().map(|at| shares[*at].1.len()).sum();
                Pool { ranks, thousandths: cores.len() as u64 * 1000 }
            };
            for (at, ((_, allowed), ranks)) in shares.iter().enumerate() {
                let mut pools = vec![
                    together(&|other| sets[other] == sets[at]),
                    together(&|other| leader[other] == leader[at]),
                ];
                if let Some((thousandths, _)) = allowed.limit {
                    let limited = together(&|other| shares[other].0.1.limit == allowed.limit);
                    pools.push(Pool { thousandths, ..limited });
                }
                let scarcest = pools.into_iter().reduce(|a, b| if a.is_wider(&b) { b } else { a });
                if let Some(Pool { ranks: sharing, thousandths }) = scarcest.filter(|_| !sets[at].is_empty())
                {
                    let key =
                        (sets[at].len() as u32, u32::try_from(sharing).unwrap_or(u32::MAX), thousandths);
                    let known = found.entry(key).or_default();
                    *known = known.union(ranks);
                }
            }
        }
        let cores = |((each, sharing, thousandths), ranks)| Cores { ranks, each, sharing, thousandths };
        found.into_iter().map(cores).collect()
    }

    fn to_text(&self) -> String {
        let mut out = String::new();
        let numbers =
            |ranks: &RankList| ranks.iter().map(|rank| rank.to_string()).collect::<Vec<_>>().join(",");
        for (name, ranks) in &self.hosts {
            out.push_str(&format!("host {name} {}\n", numbers(ranks)));
        }
        for ((host, Allowed { list, limit }), ranks) in &self.shares {
            let (limit, group) =
                limit.as_ref().map_or(("-".to_owned(), ""), |(limit, group)| (limit.to_string(), group));
            out.push_str(&format!("cores {list} {limit} {} {group}\non {host}\n", numbers(ranks)));
        }
        if let Some(profile) = &self.profile {
            let ranks: Vec<String> = profile.ranks.iter().map(|rank| rank.to_string()).collect();
            out.push_str(&format!("profile {}\n", ranks.join(",")));
            for Row { spent, least, most, runs, .. } in &profile.rows {
                let spent = spent.number();
                out.push_str(&format!("row {spent} {} {} {} {}", least.0, least.1, most.0, most.1));
                runs.iter().for_each(|(level, ranks)| out.push_str(&format!(" {level}*{ranks}")));
                out.push('\n');
            }
        }
        if let Some(paths) = &self.paths {
            out.push_str("paths\n");
            for ((signature, before), path) in &paths.0 {
                let before = match before {
                    Before::Nothing => "-".to_owned(),
                    Before::Call(signature) => format!("{signature:x}"),
                    Before::Others => "*".to_owned(),
                };
                let told = [&path.duration, &path.gap].map(histogram_text);
                out.push_str(&format!("path {signature:x} {before} {} {}\n", told[0], told[1]));
            }
        }
        if let Some(m) = self.memory {
            out.push_str(&format!("memory {} {} {} {}\n", m.ranks, m.total, m.min, m.max));
        }
        for note in &self.notes {
            out.push_str(&format!("note {}\n", note.replace('\n', " ")));
        }
        if self.missing {
            out.push_str("missing calls\n");
        }
        out
    }

    fn from_text(text: &str) -> Summary {
        let mut summary = Summary::default();
        let mut share = None;
        for line in text.lines() {
            if line == "paths" {
                summary.paths = Some(Paths::default());
            }
            match line.split_once(' ') {
                Some(("host", rest)) => {
                    if let Some((name, ranks)) = rest.rsplit_once(' ') {
                        summary.hosts.push((name.to_owned(), rank_list(ranks)));
                    }
                }
                Some(("cores", rest)) => share = allowed(rest),
                Some(("on", host)) => {
                    if let Some((allowed, ranks)) = share.take() {
                        summary.shares.insert((host.to_owned(), allowed), ranks);
                    }
                }
                Some(("profile", rest)) => {
                    summary.profile = Some(Profile { ranks: rank_list(rest), unit: 0, rows: Vec::new() });
                }
                Some(("row", rest)) => {
                    if let Some(profile) = &mut summary.profile {
                        profile.rows.extend(row(rest));
                    }
                }
                Some(("path", rest)) => {
                    if let (Some(paths), Some((key, path))) = (&mut summary.paths, path(rest)) {
                        paths.0.insert(key, path);
                    }
                }
                Some(("memory", rest)) => {
                    let numbers: Vec<u64> = rest.split(' ').filter_map(|n| n.parse().ok()).collect();
                    if let [ranks, total, min, max] = numbers[..] {
                        summary.memory = Some(Spread { ranks, total, min, max });
                    }
                }
                Some(("note", rest)) => summary.notes.push(rest.to_owned()),
                Some(("missing", _)) => summary.missing = true,
                _ => {}
            }
        }
        summary
    }
}

fn rank_list(text: &str) -> RankList {
    let mut ranks: Vec<u32> = text.split(',').filter_map(|rank| rank.parse().ok()).collect();
    ranks.sort_unstable();
    RankList::from_sorted(&ranks)
}

fn allowed(text: &str) -> Option<(Allowed, RankList)> {
    let mut words = text.splitn(4, ' ');
    let (list, limit, ranks, group) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let limit = limit.parse().ok().map(|limit| (limit, group.to_owned()));
    Some((Allowed { list: list.to_owned(), limit }, rank_list(ranks)))
}

/// The first level, the total, and the counts.
fn histogram_text(histogram: &Histogram) -> String {
    let counts: Vec<String> = histogram.counts.iter().map(u64::to_string).collect();
    format!("{}:{}:{}", histogram.first, histogram.total, counts.join(","))
}

fn histogram(text: &str) -> Option<Histogram> {
    let mut pieces = text.split(':');
    let (first, total) = (pieces.next()?.parse().ok()?, pieces.next()?.parse().ok()?);
    let counts = pieces.next()?.split(',').filter(|count| !count.is_empty()).map(|count| count.parse().ok());
    let histogram = Histogram { first, counts: counts.collect::<Option<_>>()?, total };
    histogram.is_valid().then_some(histogram)
}

fn path(text: &str) -> Option<((u64, Before), Path)> {
    let mut words = text.split(' ');
    let hex = |word: &str| u64::from_str_radix(word, 16).ok();
    let signature = hex(words.next()?)?;
    let before = match words.next()? {
        "-" => Before::Nothing,
        "*" => Before::Others,
        word => Before::Call(hex(word)?),
    };
    let (duration, gap) = (histogram(words.next()?)?, histogram(words.next()?)?);
    Some(((signature, before), Path { duration, gap }))
}

fn row(text: &str) -> Option<Row> {
    let mut words = text.split(' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let spent = Spent::from_number(u32::try_from(number()?).ok()?)?;
    let mut extreme = || Some((u32::try_from(number()?).ok()?, number()?));
    let (least, most) = (extreme()?, extreme()?);
    let run = |word: &str| {
        let (level, ranks) = word.split_once('*')?;
        Some((level.parse().ok()?, ranks.parse().ok()?))
    };
    Some(Row { spent, least, most, runs: words.filter_map(run).collect(), single: Vec::new() })
}

/// Up the tree, so that every rank talks to few others. All of it, on rank 0.
pub fn gather<L: Link>(link: &mut L, rank: u32, size: u32, mut own: Summary) -> Result<Summary, L::Error> {
    let RankTree { below, above } = RankTree::of(rank, size);
    for from in below {
        let bytes = link.recv(from)?;
        own.absorb(Summary::from_text(&String::from_utf8_lossy(&bytes)));
    }
    if let Some(to) = above {
        link.send(to, own.to_text().as_bytes())?;
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_times::paths::Recorder;

    /// Ranks that spent so much in one function, and in MPI.
    fn spent(ranks: &[(u32, u64)]) -> Profile {
        let one = |&(rank, ns): &(u32, u64)| Profile::of_rank(rank, (100, ns), [(7, ns)]);
        ranks.iter().map(one).fold(Profile::default(), |all, one| all.join(&one))
    }

    fn took(ticks: &[u64]) -> Paths {
        let mut recorder = Recorder::default();
        for &ticks in ticks {
            recorder.add(0, 0, ticks);
            recorder.add(1, ticks + 5, 2 * ticks);
        }
        recorder.paths(|symbol| Some(u64::MAX - u64::from(symbol)), |ticks| ticks)
    }

    type Row<'a> = (&'a str, &'a str, Option<u64>, &'a [u32]);

    fn shares(rows: &[Row<'_>]) -> BTreeMap<(String, Allowed), RankList> {
        let share = |&(host, list, limit, ranks): &Row<'_>| {
            let limit = limit.map(|limit| (limit, "/a group".to_owned()));
            ((host.to_owned(), Allowed { list: list.to_owned(), limit }), RankList::from_sorted(ranks))
        };
        rows.iter().map(share).collect()
    }

    #[track_caller]
    fn check_cores(rows: &[Row<'_>], expected: &[(&[u32], u32, u32, u64)]) {
        let told = Summary { shares: shares(rows), ..Summary::default() }.cores();
        let told: Vec<(Vec<u32>, u32, u32, u64)> = told
            .iter()
            .map(|one| (one.ranks.iter().collect(), one.each, one.sharing, one.thousandths))
            .collect();
        let expected: Vec<(Vec<u32>, u32, u32, u64)> = expected
            .iter()
            .map(|(ranks, each, sharing, all)| (ranks.to_vec(), *each, *sharing, *all))
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn ranks_share_what_they_have_least_of() {
        // Bound to cores of their own, on two hosts: all the same.
        check_cores(
            &[("a", "0", None, &[0]), ("a", "1", None, &[1]), ("b", "0", None, &[2]), ("b", "1", None, &[3])],
            &[(&[0, 1, 2, 3], 1, 1, 1000)],
        );
        check_cores(&[("a", "0-1", None, &[0, 1, 2])], &[(&[0, 1, 2], 2, 3, 2000)]);
        // Ranks 0 and 1 have a core; rank 2 may use another, too.
        check_cores(
            &[("a", "0", None, &[0, 1]), ("a", "0-1", None, &[2])],
            &[(&[0, 1], 1, 2, 1000), (&[2], 2, 3, 2000)],
        );
        // Sets that overlap by way of a third.
        check_cores(
            &[("a", "0-1", None, &[0]), ("a", "1-2", None, &[1]), ("a", "2-3", None, &[2, 3, 4])],
            &[(&[2, 3, 4], 2, 3, 2000), (&[0, 1], 2, 5, 4000)],
        );
        check_cores(&[("a", "0-7", Some(1500), &[0, 1])], &[(&[0, 1], 8, 2, 1500)]);
        check_cores(&[("a", "", Some(1500), &[0, 1])], &[]);
    }

    #[test]
    fn a_summary_survives_the_journey() {
        let mut a = Summary {
            hosts: vec![("node 1".into(), RankList::from_sorted(&[0, 1, 2]))],
            shares: shares(&[("node 1", "0-1", None, &[0, 1]), ("node 1", "2", Some(500), &[2])]),
            profile: Some(spent(&[(0, 3), (1, 3), (2, 4)])),
            paths: Some(took(&[100, 200])),
            memory: Some(Spread { ranks: 3, total: 30, min: 9, max: 11 }),
            notes: vec!["rank 1: lost".into()],
            missing: false,
        };
        let b = Summary {
            hosts: vec![("n2".into(), RankList::single(4)), ("node 1".into(), RankList::single(3))],
            shares: shares(&[("n2", "0-1", None, &[4]), ("node 1", "0-1", None, &[3])]),
            profile: Some(spent(&[(4, 4), (3, 1)])),
            paths: Some(took(&[70_000])),
            memory: Some(Spread::one(20)),
            notes: vec!["rank 1: lost".into(), "rank 4: lost".into()],
            missing: true,
        };
        a.absorb(b);
        let back = Summary::from_text(&a.to_text());
        assert_eq!(back, a);
        assert!(back.missing);
        assert_eq!(back.notes, ["rank 1: lost", "rank 4: lost"]);
        assert_eq!(back.memory, Some(Spread { ranks: 4, total: 50, min: 9, max: 20 }));
        assert_eq!(back.hosts[0].1, RankList::from_sorted(&[0, 1, 2, 3]));
        let path = &back.paths.unwrap().0[&(u64::MAX - 1, Before::Call(u64::MAX))];
        assert_eq!((path.duration.count(), path.gap.total), (3, 15));
        let profile = back.profile.unwrap();
        let inside = profile.row(Spent::Inside).unwrap();
        assert_eq!((inside.least, inside.most), ((3, 1), (2, 4)));
    }
}
