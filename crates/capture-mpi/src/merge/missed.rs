//! Who did not come to the end, and why that is so, as far as one can tell from the directory where the others are.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use refrain_fold::ranks::RankList;
use refrain_guest::process::host;
use refrain_tracefile::part::{self, EXTENSION};

/// What is known of ranks that did not come.
#[derive(Debug, PartialEq, Eq)]
pub struct Missed {
    pub ranks: RankList,
    /// Rank 0 has been here.
    shared: bool,
    /// Parts are kept here: a rank that has none here was never here.
    parts: bool,
    /// Of those that have some, by host.
    begun: BTreeMap<String, BTreeSet<u32>>,
    /// The hosts of all others that have.
    hosts: BTreeSet<String>,
}

/// Rank and host of a process that has a part of that name.
fn of_part(name: &OsStr) -> Option<(u32, &str)> {
    let name = name.to_str().filter(|_| part::is_part(name))?;
    let name = name.strip_suffix(EXTENSION)?;
    let (rank, rest) = name.split_once('-')?;
    let (rest, _thread) = rest.rsplit_once('-')?;
    let (host, _process) = rest.rsplit_once('-')?;
    Some((rank.parse().ok()?, host))
}

pub fn these(ranks: &RankList, one: &str, many: &str) -> String {
    if ranks.len() == 1 { format!("rank {ranks} {one}") } else { format!("ranks {ranks} {many}") }
}

impl Missed {
    /// `names` are in the directory; `shared`: and so is the token of rank 0.
    pub fn new(ranks: RankList, names: &[OsString], shared: bool) -> Missed {
        let (mut begun, mut hosts) = (BTreeMap::<_, BTreeSet<u32>>::new(), BTreeSet::new());
        let found: Vec<(u32, &str)> = names.iter().filter_map(|name| of_part(name)).collect();
        for &(rank, host) in &found {
            if ranks.contains(rank) {
                begun.entry(host.to_owned()).or_default().insert(rank);
            } else {
                hosts.insert(host.to_owned());
            }
        }
        Missed { ranks, shared, parts: !found.is_empty(), begun, hosts }
    }

    /// Why there is no trace.
    pub fn message(&self, patience: Duration, place: &Path) -> String {
        let (seconds, place) = (patience.as_secs_f64(), place.display());
        if !self.shared && self.ranks.contains(0) {
            return format!(
                "{} not come within {seconds} s to {place} of host {}: that directory is not shared with rank 0's host, or \
                 rank 0 is not traced",
                these(&self.ranks, "has", "have"),
                host::name(),
            );
        }
        let late =
            format!("{} not come to MPI_Finalize within {seconds} s", these(&self.ranks, "has", "have"));
        if !self.parts {
            return format!(
                "{late}: still at work or stopped (--patience waits longer), not traced, or on a host that has another {place}"
            );
        }
        let mut why = Vec::new();
        for (host, ranks) in &self.begun {
            let ranks: RankList = ranks.iter().copied().collect();
            let these = these(&ranks, "is", "are");
            why.push(format!("{these} on {host}, still at work or stopped (--patience waits longer)"));
        }
        let begun = |rank: &u32| self.begun.values().any(|ranks| ranks.contains(rank));
        let never: RankList = self.ranks.iter().filter(|rank| !begun(rank)).collect();
        if !never.is_empty() {
            let they =
                if never == self.ranks { "they have".to_owned() } else { these(&never, "has", "have") };
            why.push(format!(
                "{they} left nothing in {place}: not traced (LD_PRELOAD or the capture library did not get to that host), or on a \
                 host that has another {place}"
            ));
        }
        let hosts: Vec<&str> = self.hosts.iter().map(String::as_str).collect();
        if !hosts.is_empty() {
            why.push(format!("those that came are on {}", hosts.join(", ")));
        }
        format!("{late}: {}", why.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(ranks: &[u32], names: &str, shared: bool) -> String {
        let names: Vec<OsString> = names.split_whitespace().map(OsString::from).collect();
        let missed = Missed::new(RankList::from_sorted(ranks), &names, shared);
        missed.message(Duration::from_secs(5), Path::new("/o.parts"))
    }

    #[test]
    fn hosts_and_ranks_are_named_and_the_usual_reason() {
        let here = "0-a-7-0.part 1-b-c-8-0.part 1-b-c-8-1.part 1-b-c-8-0.part.2 claim";
        assert_eq!(
            message(&[1, 2], here, true),
            "ranks 1-2 have not come to MPI_Finalize within 5 s: rank 1 is on b-c, still at work or stopped (--patience waits \
             longer); rank 2 has left nothing in /o.parts: not traced (LD_PRELOAD or the capture library did not get to that \
             host), or on a host that has another /o.parts; those that came are on a"
        );
        assert!(message(&[2], "claim", true).contains("not traced, or on a host that has another /o.parts"));
        let apart = message(&[0, 1], "2-b-8-0.part", false);
        assert!(apart.contains("not shared with rank 0's host") && apart.contains(&host::name()), "{apart}");
    }
}
