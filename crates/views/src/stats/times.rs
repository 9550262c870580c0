//! How ranks spent their time, and which of them the others wait for.

use std::cmp::Reverse;

use refrain_model::function_by_id;
use refrain_tracefile::Trace;
use refrain_tracefile::profile::{Profile, Spent};
use serde::Serialize;

use super::Stats;
use crate::cores;
use crate::human::{duration, plural, ranks as rank_list};
use crate::length::Told;
use crate::table::Table;

/// The time of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankTimes {
    pub rank: u32,
    /// By the main thread, in no call that was recorded, in nanoseconds.
    pub outside: u64,
    /// By the main thread, in all calls together.
    pub inside: u64,
    /// By all threads, in each function that is told by rank: as many as there are such functions.
    pub functions: Vec<u64>,
    /// How wrong these may be, in the same order.
    errors: (u64, u64, Vec<u64>),
}

impl RankTimes {
    pub fn told_outside(&self) -> Told {
        Told { ns: self.outside, error: self.errors.0 }
    }

    pub fn told_inside(&self) -> Told {
        Told { ns: self.inside, error: self.errors.1 }
    }

    fn wall(&self) -> Told {
        self.told_outside().plus(self.told_inside())
    }

    /// In a function.
    pub fn told(&self, function: usize) -> Told {
        Told { ns: self.functions[function], error: self.errors.2[function] }
    }
}

/// `33.4%`, of the time of a rank.
pub fn of_wall(inside: Told, wall: Told) -> String {
    let marked = if inside.error > 0 || wall.error > 0 { "~" } else { "" };
    format!("{marked}{:.1}%", inside.ns as f64 / wall.ns.max(1) as f64 * 100.0)
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
    /// Nothing where the trace does not tell.
    pub fn of(trace: &Trace, stats: &Stats) -> Option<Times> {
        let profile = trace.meta.profile.as_ref()?;
        let mut times = Times::of_profile(profile);
        // What a function took on the only rank is what it took.
        if let [rank] = &mut times.ranks[..] {
            let told = stats.functions.iter().filter_map(|row| Some((row.name, row.time?.total())));
            let told: Vec<(&'static str, Told)> = told.filter(|(_, time)| time.ns > 0).collect();
            times.functions = told.iter().map(|(name, _)| *name).collect();
            rank.functions = told.iter().map(|(_, time)| time.ns).collect();
            rank.errors.2 = told.iter().map(|(_, time)| time.error).collect();
        }
        Some(times)
    }

    fn of_profile(profile: &Profile) -> Times {
        let told = |spent| profile.by_rank_within(spent);
        let (outside, inside) = (told(Spent::Outside), told(Spent::Inside));
        let columns = profile.rows.iter().filter_map(|row| match row.spent {
            Spent::Function(id) => Some((function_by_id(id)?.name, told(row.spent))),
            _ => None,
        });
        let (functions, columns): (Vec<_>, Vec<_>) = columns.unzip();
        let ranks = outside.iter().zip(&inside).enumerate().map(|(at, (&(rank, outside), &(_, inside)))| {
            let of_functions = columns.iter().map(|column| column.get(at).map_or((0, 0), |one| one.1));
            let (functions, errors) = of_functions.unzip();
            let errors = (outside.1, inside.1, errors);
            RankTimes { rank, outside: outside.0, inside: inside.0, functions, errors }
        });
        Times { ranks: ranks.collect(), functions }
    }

    fn mean(&self, of: impl Fn(&RankTimes) -> Told) -> Told {
        mean(self.ranks.iter().map(of))
    }

    /// Where a rank spent the most of its time in MPI.
    fn most(&self, rank: &RankTimes) -> Option<(&'static str, Told)> {
        let all = self.functions.iter().copied().zip((0..rank.functions.len()).map(|at| rank.told(at)));
        all.max_by_key(|(name, told)| (told.ns, Reverse(*name))).filter(|(_, told)| told.ns > 0)
    }

    /// In plain words: who stands out, and who waits for whom.
    pub fn verdict(&self) -> Option<String> {
        let mut by_outside: Vec<&RankTimes> = self.ranks.iter().collect();
        by_outside.sort_by_key(|rank| (rank.outside, rank.rank));
        let (first, last) = (by_outside.first()?.told_outside(), by_outside.last()?.told_outside());
        if by_outside.len() < 2 {
            return None;
        }
        // Of two ranks the quicker one is what is usual.
        let usual = by_outside[(by_outside.len() - 1) / 2].outside;
        let wall = self.mean(RankTimes::wall);
        let matters = wall.ns / MATTERS;
        if last.ns - usual > matters && last.ns - usual >= usual - first.ns {
            let beyond = usual + (last.ns - usual) / 2;
            let (others, slow) =
                by_outside.split_at(by_outside.partition_point(|rank| rank.outside <= beyond));
            return Some(self.slow(slow, others));
        }
        if usual - first.ns > matters {
            let below = first.ns + (usual - first.ns) / 2;
            let (quick, others) =
                by_outside.split_at(by_outside.partition_point(|rank| rank.outside <= below));
            return Some(self.quick(quick, others));
        }
        let apart = Told { ns: last.ns - first.ns, error: first.error.saturating_add(last.error) };
        Some(format!(
            "Ranks spent {first} to {last} outside MPI: they are {apart} apart, {} of the wall time.",
            of_wall(apart, wall)
        ))
    }

    fn slow(&self, slow: &[&RankTimes], others: &[&RankTimes]) -> String {
        let (who, it) = named(slow);
        let gap = outside(slow).ns.saturating_sub(outside(others).ns);
        let told = format!(
            "{who} {} outside MPI, {} {}{}",
            spent("", slow),
            the_others(others),
            outside(others),
            if others.len() > 1 { " on average" } else { "" },
        );
        let most = |rank| if others.len() > 1 { format!(", most on rank {rank}") } else { String::new() };
        let (they, wait) = if others.len() > 1 { ("they", "wait") } else { ("it", "waits") };
        match self.differs(others, slow) {
            Some((function, more, rank)) if more.ns > gap / 4 => {
                let at = most(rank);
                match slow.len() {
                    1 => format!("{told}: {they} {wait} for {it} in {function} ({more}{at})."),
                    // Each of several may be slow for a reason of its own, and be waited for in another place.
                    _ => format!("{told}. Those were up to {more} longer in {function}{at}."),
                }
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
            outside(others)
        );
        match self.differs(quick, others) {
            Some((function, more, _)) => {
                let has = if it == "it" { "it has" } else { "they have" };
                format!("{told}: {has} less to do, and up to {more} more time in {function}.")
            }
            None => format!("{told}."),
        }
    }

    /// The function in which these ranks spent more than those, by how much the most did, and which.
    fn differs(&self, these: &[&RankTimes], those: &[&RankTimes]) -> Option<(&'static str, Told, u32)> {
        let of_function = |(at, name): (usize, &&'static str)| {
            let base = mean(those.iter().map(|rank| rank.told(at)));
            let more = |rank: &RankTimes| rank.functions[at].saturating_sub(base.ns);
            let all = these.iter().fold(0u64, |sum, rank| sum.saturating_add(more(rank)));
            let most = these.iter().max_by_key(|rank| (more(rank), Reverse(rank.rank)))?;
            let told = Told { ns: more(most), error: base.error.saturating_add(most.told(at).error) };
            Some((all, *name, told, most.rank))
        };
        let functions = self.functions.iter().enumerate().filter_map(of_function);
        let (_, name, told, rank) = functions.max_by_key(|(all, name, ..)| (*all, Reverse(*name)))?;
        (told.ns > 0).then_some((name, told, rank))
    }
}

fn mean(times: impl ExactSizeIterator<Item = Told>) -> Told {
    let count = times.len() as u64;
    Told::sum(times).mean(count)
}

fn outside(ranks: &[&RankTimes]) -> Told {
    mean(ranks.iter().map(|rank| rank.told_outside()))
}

/// `spent 688 ms to 790 ms`: several ranks are no mean.
fn spent(only: &str, ranks: &[&RankTimes]) -> String {
    let times = || ranks.iter().map(|rank| rank.told_outside());
    let least = times().min_by_key(|told| told.ns).unwrap_or_default();
    let most = times().max_by_key(|told| told.ns).unwrap_or_default();
    match ranks.len() {
        1 => format!("spent {only}{least}"),
        _ if duration(least.ns) == duration(most.ns) => format!("each spent {only}{least}"),
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

/// What `~` stands for at the times of ranks.
pub const TIMES_OF_RANKS: &str = "right to within 3.2% or 0.2% of the wall time";

/// Whether some calls of the ranks that were recorded are not.
pub fn is_chosen(trace: &Trace) -> bool {
    let chooses = |name: &str| ["only", "skip", "window", "pcontrol"].contains(&name);
    trace.meta.options.iter().any(|(name, _)| chooses(name))
}

/// The table by rank, and what it says.
pub(super) fn text(trace: &Trace, times: &Times, all: bool, text: &mut String) {
    let mut shown: Vec<&RankTimes> = times.ranks.iter().collect();
    let some = !all && shown.len() > FEW;
    if some {
        shown.sort_by_key(|rank| (Reverse(rank.outside), rank.rank));
        shown.drain(SHOWN..shown.len() - SHOWN);
    }
    let mut table = Table::new(["rank", "wall", "outside MPI", "in MPI", "of wall", "most of it in", ""]);
    let mut push = |rank: String, [outside, inside]: [Told; 2], most: Option<(&'static str, Told)>| {
        let wall = outside.plus(inside);
        let (most, ns) = most.map_or((String::new(), String::new()), |(n, ns)| (n.into(), ns.to_string()));
        let [told, outside, of] = [wall, outside, inside].map(|told| told.to_string());
        table.row([rank, told, outside, of, of_wall(inside, wall), most, ns]);
    };
    for rank in shown {
        push(rank.rank.to_string(), [rank.told_outside(), rank.told_inside()], times.most(rank));
    }
    if times.ranks.len() > 1 {
        let (outside, inside) = (times.mean(RankTimes::told_outside), times.mean(RankTimes::told_inside));
        push("mean".into(), [outside, inside], None);
    }
    let table = table.render();
    text.push_str(&table);
    if some {
        let shown = format!(
            "\nThe {SHOWN} ranks that were outside MPI the most and the {SHOWN} that were there the least; --per rank \
             shows all.\n"
        );
        text.push_str(&shown);
    }
    if let (Some(verdict), crowded) = (times.verdict(), cores::crowded(&trace.meta)) {
        text.extend(crowded.map(|crowded| format!("\n{crowded}")));
        text.push_str(&format!("\n{verdict}\n"));
    }
    let end = if trace.meta.complete { "MPI_Finalize" } else { "the last call that returned" };
    text.push_str(&format!("\nWall time is from the start of MPI_Init to {end}."));
    if table.contains('~') {
        text.push_str(&format!(" ~: {TIMES_OF_RANKS}, times of\nfunctions to within 3.2% or 1.6% of it."));
    }
    if is_chosen(trace) {
        text.push_str(" Calls that were not recorded count as time outside MPI.");
    }
    text.push('\n');
}

/// The members of a rank's object.
#[derive(Serialize)]
pub(super) struct RankTimesRow {
    wall_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_error_ns: Option<u64>,
    outside_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    outside_error_ns: Option<u64>,
    mpi_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mpi_error_ns: Option<u64>,
    functions: Vec<FunctionTimeRow>,
}

#[derive(Serialize)]
struct FunctionTimeRow {
    function: &'static str,
    time_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_error_ns: Option<u64>,
}

impl RankTimesRow {
    pub(super) fn of(functions: &[&'static str], rank: &RankTimes) -> RankTimesRow {
        let row = |(at, &function): (usize, &&'static str)| FunctionTimeRow {
            function,
            time_ns: rank.functions[at],
            time_error_ns: rank.told(at).open(),
        };
        RankTimesRow {
            wall_ns: rank.wall().ns,
            wall_error_ns: rank.wall().open(),
            outside_ns: rank.outside,
            outside_error_ns: rank.told_outside().open(),
            mpi_ns: rank.inside,
            mpi_error_ns: rank.told_inside().open(),
            functions: functions.iter().enumerate().map(row).filter(|row| row.time_ns > 0).collect(),
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
        assert_eq!(Times::of_profile(&profile).verdict().unwrap_or_default(), expected);
    }

    #[test]
    fn the_rank_that_others_wait_for_is_named() {
        let ms = SECOND / 1000;
        check(
            "MPI_Allreduce",
            &[300 * ms, 300 * ms, 1200 * ms, 300 * ms],
            1250 * ms,
            "Rank 2 spent 1.20 s outside MPI, the others ~300 ms on average: they wait for it in MPI_Allreduce (~914 ms, \
             most on rank 0).",
        );
        check(
            "MPI_Recv",
            &[10 * ms, 1000 * ms],
            1000 * ms,
            "Rank 1 spent 1.00 s outside MPI, rank 0 10.0 ms: it waits for it in MPI_Recv (~990 ms).",
        );
        check(
            "MPI_Barrier",
            &[880 * ms, 880 * ms, 880 * ms, 100 * ms],
            1000 * ms,
            "Rank 3 spent only 100 ms outside MPI, the others ~880 ms on average: it has less to do, and up to ~768 ms \
             more time in MPI_Barrier.",
        );
        check(
            "MPI_Barrier",
            &[880 * ms, 100 * ms, 880 * ms, 100 * ms, 100 * ms, 100 * ms],
            1000 * ms,
            "Ranks 0,2 each spent 880 ms outside MPI, the others ~100 ms on average. Those were up to ~768 ms \
             longer in MPI_Barrier, most on rank 1.",
        );
        // Several are no mean.
        check(
            "MPI_Barrier",
            &[100 * ms, 688 * ms, 790 * ms, 100 * ms, 100 * ms],
            1000 * ms,
            "Ranks 1-2 spent ~688 ms to 790 ms outside MPI, the others ~100 ms on average. Those were up to ~627 ms longer \
             in MPI_Barrier, most on rank 0.",
        );
    }

    #[test]
    fn ranks_that_are_alike_are_not_blamed() {
        let all = "Ranks spent 900 ms to 910 ms outside MPI: they are 10.0 ms apart, ~1.0% of the wall time.";
        check("MPI_Barrier", &[900_000_000, 910_000_000, 905_000_000], SECOND, all);
        // Six times as long, and no matter for the run.
        let ms = SECOND / 1000;
        let far =
            "Ranks spent 16.7 ms to 100 ms outside MPI: they are 83.3 ms apart, ~8.3% of the wall time.";
        check("MPI_Barrier", &[16_700_000, 60 * ms, 100 * ms], SECOND, far);
        check("MPI_Barrier", &[5], SECOND, "");
    }
}
