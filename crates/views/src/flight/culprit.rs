//! Who is to be looked at first, in one sentence: who crashed, calls that do not match, a circle, or those whom the others wait
//! for while they wait for nobody.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::conclude::{All, LONG, ON_ITS_WAY};
use super::meetings::Mismatch;
use super::of_ranks;
use crate::human::{capital, duration};

/// So many ranks of a circle are named in their order.
const MOST_IN_CIRCLE: usize = 16;
/// So many ways to end are told in the first sentence.
const MOST_ENDS: usize = 3;

/// Who is to be looked at first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Culprit {
    pub kind: Kind,
    pub ranks: Vec<u32>,
    /// Those who wait for them, directly or for others who do.
    pub waiting: Vec<u32>,
    /// For how long all of `ranks` have been where they are, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns: Option<u64>,
    /// The same as a sentence.
    pub told: String,
}

/// Why it is they.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A signal, an error of MPI, `MPI_Abort`, an exit code, or a kill.
    Ended,
    /// They are in calls that do not match.
    Mismatch,
    /// They wait for each other.
    Circle,
    /// They are waited for, and are outside MPI.
    Outside,
    /// They are waited for, and ask again and again for what does not come.
    Polling,
    /// They are waited for, and have sent another message than the one that is waited for.
    OtherMessage,
    /// They are waited for, and have finished.
    Finished,
    /// They are waited for, and are in a call of which it is not known whom it waits for.
    Inside,
    /// They wait for anybody.
    Anybody,
}

/// How a rank ended that ended neither by a signal nor by an error of MPI, as the notes of a trace say it.
pub(super) struct Ending {
    pub told: String,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// By its own word, or it was killed while others went on.
    Failed,
    /// It called `exit(0)` without `MPI_Finalize`.
    Left,
    Finished,
    /// It was killed or crashed as all who had not ended were: who was first is not known.
    WithAll,
}

impl Ending {
    /// It was no longer there when others were.
    pub(super) fn is_gone(&self) -> bool {
        self.how != How::WithAll
    }

    /// And had not come to MPI_Finalize.
    pub(super) fn is_early(&self) -> bool {
        matches!(self.how, How::Failed | How::Left)
    }
}

/// The endings in notes such as `ranks 0,2-3: exit(1) without MPI_Finalize`.
pub(super) fn endings(notes: &[String], ranks: u32) -> BTreeMap<u32, Ending> {
    let others_run = notes.iter().any(|note| note.contains(": was still running"));
    let mut all = BTreeMap::new();
    // Each rank ends once, whatever the notes of a bad file say.
    let mut left = ranks as usize;
    for note in notes {
        let Some((who, how)) = note.split_once(": ").filter(|(who, _)| who.starts_with("rank")) else {
            continue;
        };
        let how = how.split("; ").next().unwrap_or(how);
        let killed = how.starts_with("killed or crashed") && !how.contains("still running");
        let (told, how) = if how.starts_with("exit(0)") {
            (format!("called {how}"), How::Left)
        } else if how.starts_with("exit(") || how.starts_with("MPI_Abort ") {
            (format!("called {how}"), How::Failed)
        } else if how.starts_with("reached MPI_Finalize") {
            ("reached MPI_Finalize".into(), How::Finished)
        } else if killed && others_run {
            (format!("is gone: it was {how}"), How::Failed)
        } else if killed {
            ("was killed or crashed".into(), How::WithAll)
        } else {
            continue;
        };
        let who = who.trim_start_matches("ranks").trim_start_matches("rank").trim();
        for rank in numbers(who).take_while(|rank| *rank < ranks).take(left) {
            left -= 1;
            all.insert(rank, Ending { told: told.clone(), how });
        }
    }
    all
}

/// `0,3-5,100-9900 by 100`
fn numbers(list: &str) -> impl Iterator<Item = u32> {
    let entry = |entry: &'_ str| {
        let (range, step) = entry.split_once(" by ").unwrap_or((entry, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some((first..=last).step_by(step.parse::<usize>().ok().filter(|step| *step > 0)?))
    };
    list.split(',').filter_map(entry).flatten()
}

impl All<'_> {
    pub(super) fn culprit(&self, mismatches: &[Mismatch]) -> Option<Culprit> {
        let mismatch = || {
            let Mismatch { ranks, told } = mismatches.first()?;
            Some(self.of(Kind::Mismatch, ranks.clone(), capital(told)))
        };
        let circle = || {
            let circle = self.circle()?;
            // A message that nobody asks for is why they wait, wherever it is from.
            let other = self.other_message(&|rank, _| circle.contains(&rank));
            Some(other.unwrap_or_else(|| self.tell_circle(&circle)))
        };
        // Launchers end a run of which a rank leaves without MPI_Finalize: the others wait no longer.
        let all_over = self.endings.values().any(|ending| ending.how == How::WithAll);
        self.ended(How::Failed)
            .or_else(mismatch)
            .or_else(circle)
            .or_else(|| self.ended(How::Left).filter(|_| all_over))
            .or_else(|| self.waited_for())
            .or_else(|| self.ended(How::Left))
    }

    fn of(&self, kind: Kind, ranks: Vec<u32>, told: String) -> Culprit {
        let waiting = self.waiting(&ranks);
        let ns = ranks.iter().map(|rank| self.doing.get(rank)?.ns).min().flatten();
        Culprit { kind, ranks, waiting, ns, told }
    }

    /// Those who wait for one of these, directly or for others who do.
    fn waiting(&self, ranks: &[u32]) -> Vec<u32> {
        let mut waiting: BTreeSet<u32> = BTreeSet::new();
        let mut by: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        self.needs
            .keys()
            .for_each(|rank| self.peers(*rank).for_each(|peer| by.entry(peer).or_default().push(*rank)));
        let mut left = ranks.to_vec();
        while let Some(rank) = left.pop() {
            left.extend(by.get(&rank).into_iter().flatten().filter(|one| waiting.insert(**one)));
        }
        waiting.into_iter().filter(|rank| !ranks.contains(rank)).collect()
    }

    /// Who was ended by a signal, an error or its own word; or who has left.
    fn ended(&self, how: How) -> Option<Culprit> {
        let mut by: BTreeMap<(String, u32), Vec<u32>> = BTreeMap::new();
        let over = self.over.iter().filter(|_| how == How::Failed);
        let over = over.map(|one| ((format!("was ended by {}", one.end()), one.thread), one.rank));
        let failed = self.endings.iter().filter(|(_, ending)| ending.how == how);
        let failed = failed.filter(|(rank, _)| self.over.iter().all(|one| one.rank != **rank));
        let failed = failed.map(|(rank, ending)| {
            let last =
                self.doing.get(rank).and_then(|one| one.call.is_some().then(|| (one.inside, one.short())));
            let last = match last {
                Some((false, call)) => format!(", after {call}"),
                Some((true, call)) if !call.starts_with("MPI_Abort") => format!(", in {call}"),
                Some((true, call)) => call.strip_prefix("MPI_Abort").unwrap_or_default().to_owned(),
                None => String::new(),
            };
            // The call in flight says it with its place.
            let how = ending.told.split(" inside MPI_").next().unwrap_or_default();
            ((format!("{how}{last}"), 0), *rank)
        });
        over.chain(failed).for_each(|(key, rank)| by.entry(key).or_default().push(rank));
        let mut ways: Vec<((String, u32), Vec<u32>)> = by.into_iter().collect();
        ways.sort_by_key(|(_, ranks)| ranks[0]);
        let mut ranks: Vec<u32> = ways.iter().flat_map(|(_, ranks)| ranks).copied().collect();
        ranks.sort_unstable();
        ranks.dedup();
        let tell = |((how, thread), ranks): &((String, u32), Vec<u32>)| {
            let thread = if *thread > 0 { format!(", thread {thread},") } else { String::new() };
            let how = match (ranks.len(), how.strip_prefix("was ")) {
                (2.., Some(how)) => format!("were {how}"),
                _ => how.clone(),
            };
            format!("{}{thread} {how}", of_ranks(ranks))
        };
        let told = match &ways[..] {
            [] => return None,
            [one] => capital(&tell(one)),
            _ => {
                let each: Vec<String> = ways.iter().take(MOST_ENDS).map(tell).collect();
                let more = if ways.len() > MOST_ENDS { "; and more" } else { "" };
                let (who, each) = (capital(&of_ranks(&ranks)), each.join("; "));
                format!("{who} were ended, which of them first is not known: {each}{more}")
            }
        };
        Some(self.of(Kind::Ended, ranks, told))
    }

    fn tell_circle(&self, circle: &[u32]) -> Culprit {
        let mut ranks = circle.to_vec();
        ranks.sort_unstable();
        let each = |rank: &u32| self.inside.get(rank).and_then(|one| one.ns);
        let least = circle.iter().map(each).min().flatten();
        let unless = match least {
            Some(LONG..) => "",
            _ => ", unless something is still on its way",
        };
        let for_long = least.map_or_else(String::new, |least| format!(" for {}", duration(least)));
        let (who, have) = (capital(&of_ranks(&ranks)), if least.is_some() { "have waited" } else { "wait" });
        let certain = circle.iter().all(|rank| self.needs.get(rank).is_some_and(|need| need.any.is_none()));
        let told = match circle {
            [one] => {
                let waits = if least.is_some() { "has waited" } else { "waits" };
                format!("{who} {waits} for itself{for_long}, in {}{unless}", self.inside[one].short())
            }
            _ if certain => {
                let more = if circle.len() > MOST_IN_CIRCLE { " ... ->" } else { "" };
                let each: String =
                    circle.iter().take(MOST_IN_CIRCLE).map(|rank| format!("{rank} -> ")).collect();
                let each = format!("{}{more} {}", each.trim_end(), circle[0]);
                format!("{who} {have} for each other in a circle{for_long}: {each}{unless}")
            }
            // Somebody of it waits for anybody, and all of these are stuck too.
            _ => {
                let mut all: BTreeSet<u32> = ranks.iter().copied().collect();
                let mut left = ranks.clone();
                while let Some(rank) = left.pop() {
                    left.extend(self.peers(rank).filter(|peer| all.insert(*peer)));
                }
                ranks = all.into_iter().filter(|rank| self.stuck.contains(rank)).collect();
                let who = capital(&of_ranks(&ranks));
                format!("{who} {have} for each other{for_long}, and nobody is left who could help{unless}")
            }
        };
        self.of(Kind::Circle, ranks, told)
    }

    /// Those for whom most wait, and who wait for nobody for certain.
    fn waited_for(&self) -> Option<Culprit> {
        let mut ends: BTreeSet<u32> = self.needs.keys().flat_map(|rank| self.peers(*rank)).collect();
        let anybody = |rank: &u32| !self.stuck.contains(rank) && self.needs[rank].any.is_some();
        ends.retain(|rank| !self.needs.contains_key(rank));
        ends.extend(self.needs.keys().copied().filter(anybody));
        let mut alike: BTreeMap<(Kind, String), Vec<u32>> = BTreeMap::new();
        for rank in ends {
            let what = self.doing.get(&rank).map_or_else(String::new, |one| one.short());
            alike.entry((self.kind(rank), what)).or_default().push(rank);
        }
        let told = alike.into_iter().map(|((kind, _), ranks)| self.tell(kind, ranks));
        told.max_by(|one, other| {
            let key = |culprit: &Culprit| (culprit.kind != Kind::Anybody, culprit.waiting.len());
            // Of equals the first.
            key(one).cmp(&key(other)).then_with(|| other.ranks.cmp(&one.ranks))
        })
    }

    fn kind(&self, rank: u32) -> Kind {
        match self.doing.get(&rank) {
            _ if self.is_gone(rank) => Kind::Finished,
            _ if self.needs.contains_key(&rank) => Kind::Anybody,
            Some(one) if one.polls => Kind::Polling,
            Some(one) if one.inside => Kind::Inside,
            _ => Kind::Outside,
        }
    }

    fn tell(&self, kind: Kind, ranks: Vec<u32>) -> Culprit {
        let waiting = self.waiting(&ranks);
        let others = match waiting.len() + ranks.len() == self.trace.meta.ranks as usize && waiting.len() > 1
        {
            true => "the others".to_owned(),
            false => of_ranks(&waiting),
        };
        let (who, many, one) = (of_ranks(&ranks), ranks.len() > 1, waiting.len() == 1);
        let (been, waits) = (self.been(&ranks), if one { "waits" } else { "wait" });
        let other = match kind {
            Kind::Anybody => self.other_message(&|rank, _| ranks.contains(&rank)),
            Kind::Outside | Kind::Polling | Kind::Finished => {
                self.other_message(&|_, from| ranks.contains(&from))
            }
            _ => None,
        };
        if let Some(other) = other {
            return other;
        }
        let told = match kind {
            Kind::Outside | Kind::Polling => {
                let (hold, it) = if many { ("hold", "they") } else { ("holds", "it") };
                let were = if many { "were" } else { "was" };
                match self.died_with_all(&ranks) {
                    true => {
                        format!(
                            "{who} held up {others}: {it} {been}, or {were} killed or crashed before that"
                        )
                    }
                    false => format!("{who} {hold} up {others}: {it} {been}"),
                }
            }
            Kind::Finished => format!("{others} {waits} in vain for {who}, which {been}"),
            Kind::Anybody if waiting.is_empty() => {
                let Some(any) = self.needs[&ranks[0]].any.as_ref() else { unreachable!("by its kind") };
                let may = any
                    .peers
                    .iter()
                    .copied()
                    .filter(|peer| !self.stuck.contains(peer) && !self.is_gone(*peer));
                let mut may: Vec<u32> = may.collect();
                may.sort_unstable();
                let wait = if many { "wait" } else { "waits" };
                format!("{who} {wait} for somebody {}: {} may still do so", any.what, of_ranks(&may))
            }
            Kind::Anybody => format!(
                "{others} {waits} for {who}, which {been} and {} for somebody to send something",
                if many { "wait" } else { "waits" }
            ),
            _ => format!("{others} {waits} for {who}, which {been}; whom that call waits for is not known"),
        };
        self.of(kind, ranks, capital(&told))
    }

    /// If one rank waits for messages of another that has sent it others: a sentence that blames neither. Of those ranks and
    /// senders.
    fn other_message(&self, of: &dyn Fn(u32, u32) -> bool) -> Option<Culprit> {
        self.needs.iter().find_map(|(&rank, need)| {
            need.all.iter().chain(&need.any).find_map(|wait| {
                let strays = self.strays(rank, wait);
                let from: Vec<u32> =
                    strays.iter().map(|stray| stray.from).filter(|from| of(rank, *from)).collect();
                let mut peers = wait.peers.to_vec();
                peers.sort_unstable();
                let told = || format!("Rank {rank} waits for {} {}", of_ranks(&peers), self.what(rank, wait));
                (!from.is_empty()).then(|| self.of(Kind::OtherMessage, from, told()))
            })
        })
    }

    /// They are dead as all are, and nobody knows who died first.
    fn died_with_all(&self, ranks: &[u32]) -> bool {
        ranks.iter().all(|rank| self.endings.get(rank).is_some_and(|ending| ending.how == How::WithAll))
    }

    /// Where ranks outside MPI are now, if they could be looked at and are all there: ` (now in kernel at heat.c:41)`
    fn now(&self, ranks: &[u32]) -> String {
        let of = |rank: &u32| self.doing.get(rank).and_then(|one| one.now_at());
        let first = of(&ranks[0]);
        match first.filter(|first| ranks.iter().all(|rank| of(rank).as_ref() == Some(first))) {
            Some(place) => format!(" (now in {place})"),
            None => String::new(),
        }
    }

    /// Where ranks that are alike have been, and for how long: `has been outside MPI for 12.3 s, since MPI_Barrier at heat.c:57`
    fn been(&self, ranks: &[u32]) -> String {
        let many = ranks.len() > 1;
        let (have, are, their) = if many { ("have", "are", "their") } else { ("has", "is", "its") };
        let past = self.died_with_all(ranks);
        let were = if many { "were" } else { "was" };
        let are_outside = if past { were } else { are };
        let been_outside = if past { were.to_owned() } else { format!("{have} been") };
        let Some(one) = self.doing.get(&ranks[0]) else {
            return match self.endings.get(&ranks[0]) {
                Some(ending) => ending.told.clone(),
                None => format!("{have} come to {their} end"),
            };
        };
        let times = || ranks.iter().filter_map(|rank| self.doing.get(rank)?.ns);
        let for_long = match (times().min(), times().max()) {
            (Some(least), Some(most)) if duration(least) == duration(most) => Some((least, duration(least))),
            (Some(least), Some(most)) => Some((least, format!("{} to {}", duration(least), duration(most)))),
            _ => None,
        };
        if let Some(gone) = &one.gone {
            return gone.clone();
        }
        if one.polls {
            let poll = if past {
                "polled"
            } else if many {
                "poll"
            } else {
                "polls"
            };
            let call = if many { one.short() } else { one.call_text() };
            return format!("{poll} with {call}, and nothing {}", if past { "came" } else { "comes" });
        }
        let call = one.short();
        match (one.inside, one.call.is_some(), for_long) {
            (true, _, Some((least, _))) if least < ON_ITS_WAY => format!("{have} just come to {call}"),
            (true, _, Some((_, long))) => format!("{have} been in {call} for {long}"),
            (true, _, None) => format!("{are} in {call}"),
            (false, true, Some((0, _))) => {
                format!("{are_outside} at work outside MPI; {their} last call was {call}")
            }
            (false, true, Some((_, long))) => {
                format!("{been_outside} outside MPI for {long}{}, since {call}", self.now(ranks))
            }
            (false, true, None) => format!("{are_outside} outside MPI, since {call}"),
            (false, false, _) => format!("{are_outside} outside MPI"),
        }
    }
}
