//! How ranks spent their time, and which of them the others wait for.

use std::cmp::Reverse;

use refrain_model::function_by_id;
use refrain_tracefile::Trace;
use refrain_tracefile::profile::{Profile, Spent};
use serde::Serialize;

use crate::human::{duration, plural, ranks as rank_list};
use crate::table::Table;

/// The time of one rank, to within 1/32 or some part of the wall time; outside and inside exact where it is the least or the most
/// of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankTimes {
    pub rank: u32,
    /// By the main thread, in no call that was recorded, in nanoseconds.
    pub outside: u64,
    /// By the main thread, in all calls together.
    pub inside: u64,
    /// By all threads, in each function that is told by rank: as many as there are such functions.
    pub functions: Vec<u64>,
}

impl RankTimes {
    fn wall(&self) -> u64 {
        self.outside.saturating_add(self.inside)
    }

    fn share(&self) -> f64 {
        self.inside as f64 / self.wall().max(1) as f64
    }
}

/// By rank, and the functions that are told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Times {
    pub functions: Vec<&'static str>,
    pub ranks: Vec<RankTimes>,
}

/// Fewer ranks than this are all shown.
const FEW: usize = 16;
/// Of more, so many of those that were outside the most, and of those that were there the least.
const SHOWN: usize = 4;
/// Ranks stand out from others if they differ by more than one part in so many of the wall time.
const MATTERS: u64 = 20;

impl Times {
    pub fn of(profile: &Profile) -> Times {
        let (outside, inside) = (profile.by_rank(Spent::Outside), profile.by_rank(Spent::Inside));
        let told = profile.rows.iter().filter_map(|row| match row.spent {
            Spent::Function(id) => Some((function_by_id(id)?.name, profile.by_rank(row.spent))),
            _ => None,
        });
        let (functions, columns): (Vec<_>, Vec<_>) = told.unzip();
        let ranks = outside.iter().zip(&inside).enumerate().map(|(at, (&(rank, outside), &(_, inside)))| {
            let functions = columns.iter().map(|column| column.get(at).map_or(0, |one| one.1)).collect();
            RankTimes { rank, outside, inside, functions }
        });
        Times { ranks: ranks.collect(), functions }
    }

    fn mean(&self, of: impl Fn(&RankTimes) -> u64) -> u64 {
        mean(self.ranks.iter().map(of))
    }

    /// Where a rank spent the most of its time in MPI.
    fn most(&self, rank: &RankTimes) -> Option<(&'static str, u64)> {
        let all = self.functions.iter().copied().zip(rank.functions.iter().copied());
        all.max_by_key(|(name, ns)| (*ns, Reverse(*name))).filter(|(_, ns)| *ns > 0)
    }

    /// In plain words: who stands out, and who waits for whom.
    pub fn verdict(&self) -> Option<String> {
        let mut by_outside: Vec<&RankTimes> = self.ranks.iter().collect();
        by_outside.sort_by_key(|rank| (rank.outside, rank.rank));
        let (first, last) = (by_outside.first()?.outside, by_outside.last()?.outside);
        if by_outside.len() < 2 {
            return None;
        }
        // Of two ranks the quicker one is what is usual.
        let usual = by_outside[(by_outside.len() - 1) / 2].outside;
        let matters = self.mean(RankTimes::wall) / MATTERS;
        if last - usual > matters && last - usual >= usual - first {
            let beyond = usual + (last - usual) / 2;
            let (others, slow) =
                by_outside.split_at(by_outside.partition_point(|rank| rank.outside <= beyond));
            return Some(self.slow(slow, others));
        }
        if usual - first > matters {
            let below = first + (usual - first) / 2;
            let (quick, others) =
                by_outside.split_at(by_outside.partition_point(|rank| rank.outside <= below));
            return Some(self.quick(quick, others));
        }
        let share = 100.0 * (last - first) as f64 / self.mean(RankTimes::wall).max(1) as f64;
        Some(format!(
            "Ranks spent {} to {} outside MPI: they are {} apart, {share:.1}% of the wall time.",
            duration(first),
            duration(last),
            duration(last - first)
        ))
    }

    fn slow(&self, slow: &[&RankTimes], others: &[&RankTimes]) -> String {
        let (who, it) = named(slow);
        let gap = outside(slow).saturating_sub(outside(others));
        let told = format!(
            "{who} {} outside MPI, {} {}{}",
            spent("", slow),
            the_others(others),
            duration(outside(others)),
            if others.len() > 1 { " on average" } else { "" },
        );
        let (they, wait) = if others.len() > 1 { ("they", "wait") } else { ("it", "waits") };
        match self.differs(others, slow) {
            Some((function, ns, rank)) if ns > gap / 4 => {
                let at = if others.len() > 1 { format!(", most on rank {rank}") } else { String::new() };
                format!("{told}: {they} {wait} for {it} in {function} ({}{at}).", duration(ns))
            }
            _ => format!("{told}. No function shows that others wait for {it}."),
        }
    }

    fn quick(&self, quick: &[&RankTimes], others: &[&RankTimes]) -> String {
        let (who, it) = named(quick);
        let told = format!(
            "{who} {} outside MPI, {} {} on average",
            spent("only ", quick),
            the_others(others),
            duration(outside(others))
        );
        match self.differs(quick, others) {
            Some((function, ns, _)) => {
                let has = if it == "it" { "it has" } else { "they have" };
                format!("{told}: {has} less to do, and up to {} more time in {function}.", duration(ns))
            }
            None => format!("{told}."),
        }
    }

    /// The function in which these ranks spent more than those, by how much the most did, and which.
    fn differs(&self, these: &[&RankTimes], those: &[&RankTimes]) -> Option<(&'static str, u64, u32)> {
        let of_function = |(at, name): (usize, &&'static str)| {
            let base = mean(those.iter().map(|rank| rank.functions[at]));
            let more = |rank: &RankTimes| rank.functions[at].saturating_sub(base);
            let all = these.iter().fold(0u64, |sum, rank| sum.saturating_add(more(rank)));
            let most = these.iter().max_by_key(|rank| (more(rank), Reverse(rank.rank)))?;
            Some((all, *name, more(most), most.rank))
        };
        let functions = self.functions.iter().enumerate().filter_map(of_function);
        let (_, name, ns, rank) = functions.max_by_key(|(all, name, ..)| (*all, Reverse(*name)))?;
        (ns > 0).then_some((name, ns, rank))
    }
}

fn mean(times: impl ExactSizeIterator<Item = u64>) -> u64 {
    let count = times.len().max(1) as u128;
    u64::try_from(times.map(u128::from).sum::<u128>() / count).unwrap_or(u64::MAX)
}

fn outside(ranks: &[&RankTimes]) -> u64 {
    mean(ranks.iter().map(|rank| rank.outside))
}

/// `spent 688 ms to 790 ms`: several ranks are no mean.
fn spent(only: &str, ranks: &[&RankTimes]) -> String {
    let times = || ranks.iter().map(|rank| rank.outside);
    let [least, most] = [times().min(), times().max()].map(|ns| duration(ns.unwrap_or(0)));
    match ranks.len() {
        1 => format!("spent {only}{least}"),
        _ if least == most => format!("each spent {only}{least}"),
        _ => format!("spent {only}{least} to {most}"),
    }
}

/// `rank 2` and what it is called afterwards.
fn named(ranks: &[&RankTimes]) -> (String, &'static str) {
    let mut numbers: Vec<u32> = ranks.iter().map(|rank| rank.rank).collect();
    numbers.sort_unstable();
    match numbers.as_slice() {
        [rank] => (format!("Rank {rank}"), "it"),
        many if many.len() <= FEW => (format!("Ranks {}", rank_list(many)), "them"),
        [first, .., last] => {
            (format!("{} from {first} to {last}", plural(numbers.len() as u64, "rank")), "them")
        }
        [] => (String::new(), "them"),
    }
}

fn the_others(others: &[&RankTimes]) -> String {
    match others {
        [one] => format!("rank {}", one.rank),
        _ => "the others".into(),
    }
}

/// Whether some calls of the ranks that were recorded are not.
pub fn is_chosen(trace: &Trace) -> bool {
    let chooses = |name: &str| ["only", "skip", "window", "pcontrol"].contains(&name);
    trace.meta.options.iter().any(|(name, _)| chooses(name))
}

/// The table by rank, and what it says.
pub(super) fn text(trace: &Trace, profile: &Profile, all: bool, text: &mut String) {
    let times = Times::of(profile);
    let mut shown: Vec<&RankTimes> = times.ranks.iter().collect();
    let some = !all && shown.len() > FEW;
    if some {
        shown.sort_by_key(|rank| (Reverse(rank.outside), rank.rank));
        shown.drain(SHOWN..shown.len() - SHOWN);
    }
    let mut table = Table::new(["rank", "wall", "outside MPI", "in MPI", "share", "most of it in", ""]);
    for rank in shown {
        let (most, ns) =
            times.most(rank).map_or((String::new(), String::new()), |(n, ns)| (n.into(), duration(ns)));
        let share = format!("{:.1}%", rank.share() * 100.0);
        let (outside, inside) = (duration(rank.outside), duration(rank.inside));
        table.row([rank.rank.to_string(), duration(rank.wall()), outside, inside, share, most, ns]);
    }
    if times.ranks.len() > 1 {
        let (outside, inside) = (times.mean(|rank| rank.outside), times.mean(|rank| rank.inside));
        let mean = RankTimes { rank: 0, outside, inside, functions: Vec::new() };
        let share = format!("{:.1}%", mean.share() * 100.0);
        let [wall, outside, inside] = [mean.wall(), outside, inside].map(duration);
        table.row(["mean".into(), wall, outside, inside, share, String::new(), String::new()]);
    }
    text.push_str(&table.render());
    if some {
        let shown = format!(
            "\nThe {SHOWN} ranks that were outside MPI the most and the {SHOWN} that were there the least; --per rank \
             shows all.\n"
        );
        text.push_str(&shown);
    }
    if let Some(verdict) = times.verdict() {
        text.push_str(&format!("\n{verdict}\n"));
    }
    text.push_str(
        "\nWall time is from the start of MPI_Init to MPI_Finalize. Times are rounded: the largest and the smallest are exact, the\n\
         others are right to within 3.2% or 0.1% of the wall time, those of functions to within 3.2% or 0.8% of it.",
    );
    if is_chosen(trace) {
        text.push_str(" Calls that were not recorded count as time outside MPI.");
    }
    text.push('\n');
}

/// The members of a rank's object.
#[derive(Serialize)]
pub(super) struct RankTimesRow {
    wall_ns: u64,
    outside_ns: u64,
    mpi_ns: u64,
    functions: Vec<FunctionTimeRow>,
}

#[derive(Serialize)]
struct FunctionTimeRow {
    function: &'static str,
    time_ns: u64,
}

impl RankTimesRow {
    pub(super) fn of(functions: &[&'static str], rank: &RankTimes) -> RankTimesRow {
        let all = functions.iter().zip(&rank.functions);
        let all = all.map(|(&function, &time_ns)| FunctionTimeRow { function, time_ns });
        RankTimesRow {
            wall_ns: rank.wall(),
            outside_ns: rank.outside,
            mpi_ns: rank.inside,
            functions: all.filter(|one| one.time_ns > 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::function;

    const SECOND: u64 = 1_000_000_000;

    /// Ranks that were outside MPI for so long, and for the rest of the time in one function.
    #[track_caller]
    fn check(name: &str, outside: &[u64], wall: u64, expected: &str) {
        let id = function(name).unwrap().id;
        let one = |(rank, &outside): (u32, &u64)| {
            Profile::of_rank(rank, (outside, wall - outside), [(id, wall - outside), (1, 50)])
        };
        let mut profile = (0..).zip(outside).map(one).fold(Profile::default(), |all, one| all.join(&one));
        profile.settle();
        assert_eq!(Times::of(&profile).verdict().unwrap_or_default(), expected);
    }

    #[test]
    fn the_rank_that_others_wait_for_is_named() {
        let ms = SECOND / 1000;
        check(
            "MPI_Allreduce",
            &[300 * ms, 300 * ms, 1200 * ms, 300 * ms],
            1250 * ms,
            "Rank 2 spent 1.20 s outside MPI, the others 300 ms on average: they wait for it in MPI_Allreduce (914 ms, \
             most on rank 0).",
        );
        check(
            "MPI_Recv",
            &[10 * ms, 1000 * ms],
            1000 * ms,
            "Rank 1 spent 1.00 s outside MPI, rank 0 10.0 ms: it waits for it in MPI_Recv (990 ms).",
        );
        check(
            "MPI_Barrier",
            &[880 * ms, 880 * ms, 880 * ms, 100 * ms],
            1000 * ms,
            "Rank 3 spent only 100 ms outside MPI, the others 880 ms on average: it has less to do, and up to 768 ms \
             more time in MPI_Barrier.",
        );
        check(
            "MPI_Barrier",
            &[880 * ms, 100 * ms, 880 * ms, 100 * ms, 100 * ms, 100 * ms],
            1000 * ms,
            "Ranks 0,2 each spent 880 ms outside MPI, the others 100 ms on average: they wait for them in MPI_Barrier \
             (768 ms, most on rank 1).",
        );
        // Several are no mean.
        check(
            "MPI_Barrier",
            &[100 * ms, 688 * ms, 790 * ms, 100 * ms, 100 * ms],
            1000 * ms,
            "Ranks 1-2 spent 688 ms to 790 ms outside MPI, the others 100 ms on average: they wait for them in MPI_Barrier \
             (627 ms, most on rank 0).",
        );
    }

    #[test]
    fn ranks_that_are_alike_are_not_blamed() {
        let all = "Ranks spent 900 ms to 910 ms outside MPI: they are 10.0 ms apart, 1.0% of the wall time.";
        check("MPI_Barrier", &[900_000_000, 910_000_000, 905_000_000], SECOND, all);
        // Six times as long, and no matter for the run.
        let ms = SECOND / 1000;
        let far = "Ranks spent 16.7 ms to 100 ms outside MPI: they are 83.3 ms apart, 8.3% of the wall time.";
        check("MPI_Barrier", &[16_700_000, 60 * ms, 100 * ms], SECOND, far);
        check("MPI_Barrier", &[5], SECOND, "");
    }
}
