//! What is known of the run beside its calls, merged up the same tree as the calls.

use refrain_fold::bundle::{Link, RankTree};
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
/// `missing calls`.
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
        for note in other.notes {
            // What concerns all of them is said once.
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.missing |= other.missing;
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
                _ => {}
            }
        }
        summary
    }
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

    #[test]
    fn a_summary_survives_the_journey() {
        let mut a = Summary {
            hosts: vec![("node 1".into(), RankList::from_sorted(&[0, 1, 2]))],
            time: Some(RankTime { total_ns: 10, min: (0, 3), max: (2, 4) }),
            memory: Some(Spread { ranks: 3, total: 30, min: 9, max: 11 }),
            notes: vec!["rank 1: lost".into()],
            missing: false,
        };
        let b = Summary {
            hosts: vec![("n2".into(), RankList::single(4)), ("node 1".into(), RankList::single(3))],
            time: Some(RankTime { total_ns: 5, min: (3, 1), max: (4, 4) }),
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
        assert_eq!(back.time, Some(RankTime { total_ns: 15, min: (3, 1), max: (2, 4) }));
    }
}
