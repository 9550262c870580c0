//! What is known of the run beside its calls, merged up the same tree as the calls.

use std::collections::BTreeMap;

use refrain_encode::Extremes;
use refrain_fold::bundle::Link;
use refrain_fold::ranks::RankList;
use refrain_tracefile::RankTime;

/// Of one rank, or of several.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    pub hosts: Vec<(String, RankList)>,
    pub time: Option<RankTime>,
    /// The most that the tracer held while the program ran, over ranks.
    pub memory: Option<Spread>,
    pub notes: Vec<String>,
    /// Calls that were recorded are not among those merged.
    pub missing: bool,
    /// What averages stand for, by function and parameter.
    pub extremes: BTreeMap<(&'static str, &'static str), Extremes>,
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

/// One line each: `host NAME RANKS`, `time TOTAL RANK NS RANK NS`, `memory RANKS TOTAL MIN MAX`, `note TEXT`,
/// `missing calls`, and `extremes FUNCTION PARAMETER` with count, entry and rank of the least and of the most.
impl Summary {
    pub fn absorb(&mut self, other: Summary) {
        for (name, ranks) in other.hosts {
            match self.hosts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = known.union(&ranks),
                None => self.hosts.push((name, ranks)),
            }
        }
        self.time = match (self.time, other.time) {
            (Some(a), Some(b)) => Some(RankTime {
                total_ns: a.total_ns.saturating_add(b.total_ns),
                min: if b.min.1 < a.min.1 { b.min } else { a.min },
                max: if b.max.1 > a.max.1 { b.max } else { a.max },
            }),
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
        self.notes.extend(other.notes);
        self.missing |= other.missing;
        for (of, other) in other.extremes {
            self.add_extremes(of, other);
        }
    }

    pub fn add_extremes(&mut self, of: (&'static str, &'static str), met: Extremes) {
        self.extremes.entry(of).and_modify(|known| known.absorb(met)).or_insert(met);
    }

    /// For people.
    pub fn told_extremes(&self) -> impl Iterator<Item = String> {
        let place = |(count, entry, rank): (i64, u32, u32)| format!("{count} (entry {entry} on rank {rank})");
        self.extremes.iter().map(move |((function, parameter), met)| {
            let (least, most) = (place(met.least), place(met.most));
            format!("averages: {parameter} of {function} were from {least} to {most}")
        })
    }

    fn to_text(&self) -> String {
        let mut out = String::new();
        for (name, ranks) in &self.hosts {
            let ranks: Vec<String> = ranks.iter().map(|rank| rank.to_string()).collect();
            out.push_str(&format!("host {} {}\n", name, ranks.join(",")));
        }
        if let Some(t) = self.time {
            out.push_str(&format!("time {} {} {} {} {}\n", t.total_ns, t.min.0, t.min.1, t.max.0, t.max.1));
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
        for ((function, parameter), Extremes { least: a, most: b }) in &self.extremes {
            let numbers = format!("{} {} {} {} {} {}", a.0, a.1, a.2, b.0, b.1, b.2);
            out.push_str(&format!("extremes {function} {parameter} {numbers}\n"));
        }
        out
    }

    fn from_text(text: &str) -> Summary {
        let mut summary = Summary::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("host", rest)) => {
                    if let Some((name, ranks)) = rest.rsplit_once(' ') {
                        let mut ranks: Vec<u32> = ranks.split(',').filter_map(|r| r.parse().ok()).collect();
                        ranks.sort_unstable();
                        summary.hosts.push((name.to_owned(), RankList::from_sorted(&ranks)));
                    }
                }
                Some(("time", rest)) => {
                    let numbers: Vec<u64> = rest.split(' ').filter_map(|n| n.parse().ok()).collect();
                    if let [total_ns, min_rank, min, max_rank, max] = numbers[..] {
                        let (min, max) = ((min_rank as u32, min), (max_rank as u32, max));
                        summary.time = Some(RankTime { total_ns, min, max });
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
                Some(("extremes", rest)) => {
                    let words: Vec<&str> = rest.split(' ').collect();
                    let number = |at: usize| words.get(at)?.parse::<i64>().ok();
                    let small = |at: usize| u32::try_from(number(at)?).ok();
                    let place = |at: usize| Some((number(at)?, small(at + 1)?, small(at + 2)?));
                    let names = |names: &[&str]| Extremes::names(names.first()?, names.get(1)?);
                    if let (Some(of), Some(least), Some(most)) = (names(&words), place(2), place(5)) {
                        summary.add_extremes(of, Extremes { least, most });
                    }
                }
                _ => {}
            }
        }
        summary
    }
}

/// Up the tree of `fold::bundle::gather`, so that every rank talks to few others. All of it, on rank 0.
pub fn gather<L: Link>(link: &mut L, rank: u32, size: u32, mut own: Summary) -> Result<Summary, L::Error> {
    let mut bit = 1;
    while bit < size {
        if rank & bit != 0 {
            link.send(rank - bit, own.to_text().as_bytes())?;
            break;
        }
        if rank + bit < size {
            let bytes = link.recv(rank + bit)?;
            own.absorb(Summary::from_text(&String::from_utf8_lossy(&bytes)));
        }
        bit *= 2;
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_survives_the_journey() {
        let mut a = Summary {
            hosts: vec![("node 1".into(), RankList::from_sorted(&[0, 1, 2]))],
            time: Some(RankTime { total_ns: 10, min: (0, 3), max: (2, 4) }),
            memory: Some(Spread { ranks: 3, total: 30, min: 9, max: 11 }),
            notes: vec!["rank 1: lost".into()],
            missing: false,
            extremes: BTreeMap::new(),
        };
        let sent = ("MPI_Alltoallv", "sendcounts");
        a.add_extremes(sent, Extremes { least: (0, 2, 1), most: (9, 3, 1) });
        let b = Summary {
            hosts: vec![("n2".into(), RankList::single(4)), ("node 1".into(), RankList::single(3))],
            time: Some(RankTime { total_ns: 5, min: (3, 1), max: (4, 4) }),
            memory: Some(Spread::one(20)),
            notes: vec![],
            missing: true,
            extremes: [(sent, Extremes { least: (1, 0, 4), most: (12, 1, 4) })].into(),
        };
        a.absorb(b);
        let back = Summary::from_text(&a.to_text());
        assert_eq!(back, a);
        assert!(back.missing);
        assert_eq!(back.memory, Some(Spread { ranks: 4, total: 50, min: 9, max: 20 }));
        let told: Vec<String> = back.told_extremes().collect();
        assert_eq!(
            told,
            [
                "averages: sendcounts of MPI_Alltoallv were from 0 (entry 2 on rank 1) to 12 (entry 1 on rank 4)"
            ]
        );
        assert_eq!(back.hosts[0].1, RankList::from_sorted(&[0, 1, 2, 3]));
        assert_eq!(back.time, Some(RankTime { total_ns: 15, min: (3, 1), max: (2, 4) }));
    }
}
