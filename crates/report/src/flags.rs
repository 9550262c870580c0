//! Red flags: what stands out, in plain sentences, and what to do about it. The worst first.

use std::cmp::Reverse;

use refrain_sites::printable;
use refrain_views::flight::picture;
use refrain_views::human::{capital, plural, size, thousands};
use refrain_views::length::{Length, Told};
use refrain_views::loops::Outline;
use refrain_views::stats::{self, FunctionRow, Matrix, RankTimes, SiteRow, Stats, Times};
use refrain_views::waits::{CallSite, Pattern, Row, Waits};
use refrain_views::{Receives, cores, info, receives};
use serde_json::{Value, json};

use crate::{Input, waits};

/// All that is known.
pub struct Facts<'a> {
    pub input: &'a Input<'a>,
    pub stats: &'a Stats,
    pub matrix: &'a Matrix,
    pub sites: &'a [SiteRow],
    pub waits: Option<&'a Waits>,
    pub outlines: &'a [Outline],
}

impl Facts<'_> {
    /// The waits of a trace tell it exactly where its times do.
    fn length(&self) -> Option<Length> {
        self.waits.map(|waits| waits.length).or_else(|| Length::of(self.input.trace))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Bad,
    Warning,
    Note,
    Good,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    pub level: Level,
    /// Of flags of a level, those with more are first.
    weight: u64,
    /// In a few words.
    pub head: String,
    pub text: String,
    /// What can be done about it.
    pub help: String,
    /// The part of the page that shows it.
    pub see: &'static str,
}

/// Parts of all time, in thousandths: from here on something is worth a word.
const BARRIER: u64 = 50;
const MPI: u64 = 300;
const MUCH_MPI: u64 = 500;
const SETUP: u64 = 200;
const WAITS: u64 = 30;
/// Messages of fewer bits than these have less than 1 KiB.
const SMALL_BITS: u32 = 11;
/// So many of a hundred messages are small.
const MOSTLY_SMALL: u64 = 70;
/// Fewer messages a rank than these are no matter.
const FEW_MESSAGES: u64 = 100;
/// Of so many ranks it is told what they were doing, and so many sentences about that.
const MOST_DOING: usize = 4;
/// So much longer than others, in percent.
const SLOWER: u64 = 20;

pub fn flags(facts: &Facts<'_>) -> Value {
    let mut found = Vec::new();
    found.extend(extrapolated(facts));
    found.extend(died(facts));
    found.extend(oversubscribed(facts));
    found.extend(a_part(facts));
    found.extend(imbalance(facts));
    found.extend(shares(facts));
    found.extend(waiting(facts));
    found.extend(small_messages(facts));
    found.extend(polls(facts));
    found.extend(growing(facts));
    if !found.iter().any(|flag| flag.level <= Level::Warning) {
        found.push(nothing(facts));
    }
    found.sort_by_key(|flag| (flag.level, Reverse(flag.weight)));
    let value = |flag: &Flag| {
        let level = ["bad", "warning", "note", "good"][flag.level as usize];
        json!({ "level": level, "head": flag.head, "text": flag.text, "help": flag.help, "see": flag.see })
    };
    found.iter().map(value).collect()
}

fn flag(
    level: Level,
    weight: u64,
    head: impl Into<String>,
    text: String,
    help: &str,
    see: &'static str,
) -> Flag {
    Flag { level, weight, head: head.into(), text, help: help.to_owned(), see }
}

fn extrapolated(facts: &Facts<'_>) -> Option<Flag> {
    let meta = &facts.input.trace.meta;
    let from = meta.extrapolated()?;
    let doubts = meta.notes.iter().filter(|note| !note.starts_with("extrapolated"));
    let doubts: String =
        doubts.take(MOST_DOING).map(|note| format!(" {}.", capital(&printable(note)))).collect();
    Some(flag(
        Level::Warning,
        u64::MAX,
        "Predicted: nobody recorded this run",
        format!("Extrapolated {}.{doubts}", printable(from)),
        "What stands here is what laws say that fit the traces it was worked out from. A law may fit by chance; more traces \
         make that less likely.",
        "run",
    ))
}

fn died(facts: &Facts<'_>) -> Option<Flag> {
    let meta = &facts.input.trace.meta;
    if meta.complete {
        return None;
    }
    let told = |note: &&String| note.starts_with("rank");
    let mut notes: Vec<&String> = meta.notes.iter().filter(told).collect();
    // Those that were ended by a signal say why; those inside MPI were waiting, mostly.
    notes.sort_by_key(|note| note.contains("inside"));
    let picture = picture(facts.input.trace, facts.input.names);
    let mut told = picture.conclusions.clone();
    told.truncate(MOST_DOING);
    told.extend(picture.lines().into_iter().take(MOST_DOING));
    if told.is_empty() {
        told = notes.iter().take(MOST_DOING).map(|note| printable(note).into_owned()).collect();
    }
    let who = told.iter().map(|one| capital(one)).collect::<Vec<_>>().join(". ");
    let text = match who.is_empty() {
        true => "The trace has what was recorded until the end came.".to_owned(),
        false => format!("{who}."),
    };
    Some(flag(
        Level::Bad,
        u64::MAX,
        "The run did not finish",
        text,
        "Everything up to the last call that returned is here, and no time is in it of calls that did not return. `refrain dump` \
         with `--ranks R` shows what a rank did last.",
        "run",
    ))
}

/// Said first: whatever else takes long may do so because of it.
fn oversubscribed(facts: &Facts<'_>) -> Option<Flag> {
    let short = cores::shortest(&facts.input.trace.meta)?;
    let ranks: Vec<u32> = short.ranks.iter().collect();
    let (sharing, have) = (plural(short.sharing.into(), "rank"), cores::told(short.thousandths));
    let many = ranks.len() > short.sharing as usize;
    let who = format!(
        "{} {}",
        if ranks.len() == 1 { "Rank" } else { "Ranks" },
        refrain_views::human::ranks(&ranks)
    );
    let twice = u64::from(short.sharing) * 1000 >= short.thousandths.saturating_mul(2);
    Some(flag(
        if twice { Level::Bad } else { Level::Warning },
        u64::MAX - 1,
        format!("Oversubscribed: {sharing} share {have}{}", if many { ", and others do too" } else { "" }),
        format!(
            "{who}: they cannot all compute at once. One that seems to wait for a message may stand still because another computes."
        ),
        "Run no more ranks than cores, or bind ranks to cores of their own, before you look at waits and at ranks that compute longer.",
        "run",
    ))
}

/// What to do about ranks that wait: it is no advice for a program where ranks had no cores of their own.
fn unless_crowded(facts: &Facts<'_>, help: &str) -> String {
    match cores::shortest(&facts.input.trace.meta) {
        Some(_) => {
            "Ranks shared cores. A run in which each has one shows whether this is the program's fault."
                .to_owned()
        }
        None => help.to_owned(),
    }
}

/// What is left to do for a program in which receives come late.
fn post_earlier(facts: &Facts<'_>) -> String {
    let calls = |how: Receives| -> u64 {
        let rows = facts.stats.functions.iter().filter(|row| receives(row.name) == Some(how));
        rows.map(|row| row.calls).sum()
    };
    let (waiting, posting) = (calls(Receives::Waiting), calls(Receives::Posting));
    match waiting.saturating_mul(10) < waiting.saturating_add(posting) {
        true => format!(
            "{} of {} receives are posted with MPI_Irecv or its like already. A rank whose receives come late has more to do before: \
             look at the times by rank.",
            thousands(posting),
            thousands(waiting + posting)
        ),
        false => {
            "Post receives earlier (MPI_Irecv before the computation), or send with MPI_Isend.".to_owned()
        }
    }
}

/// Ranks of which there are calls.
fn recorded(facts: &Facts<'_>) -> u64 {
    facts.stats.ranks.iter().filter(|rank| rank.calls > 0).count() as u64
}

/// What was not recorded cannot be judged.
fn a_part(facts: &Facts<'_>) -> Option<Flag> {
    let (meta, recorded) = (&facts.input.trace.meta, recorded(facts));
    let kept = || info::recorded(&meta.options).first().map_or(String::new(), |line| capital(line));
    if recorded == 0 {
        let text = format!("No rank has a call in this trace. {}.", kept());
        let help = "`refrain run` without `--only`, `--skip`, `--ranks` and `--window` records everything.";
        return Some(flag(Level::Warning, u64::MAX, "Nothing was recorded", text, help, "run"));
    }
    if stats::is_chosen(facts.input.trace) {
        return Some(flag(
            Level::Note,
            u64::MAX,
            "Only some calls were recorded",
            format!("{}. Time in the others counts as computation.", kept()),
            "So nothing is said here about how much of the time is spent in MPI, nor about ranks that compute longer.",
            "run",
        ));
    }
    (meta.complete && recorded < u64::from(meta.ranks)).then(|| {
        flag(
            Level::Note,
            u64::MAX,
            format!("{} of {} were recorded", thousands(recorded), plural(meta.ranks.into(), "rank")),
            format!("{}. \"All ranks\" means those.", kept()),
            "Messages from and to the others have one side only, so waits for them are not seen.",
            "run",
        )
    })
}

/// In thousandths.
fn part(some: u64, all: u128) -> u64 {
    u64::try_from(u128::from(some) * 1000 / all.max(1)).unwrap_or(0)
}

fn percent(thousandths: u64) -> String {
    match thousandths {
        0..=99 => format!("{}.{} %", thousandths / 10, thousandths % 10),
        _ => format!("{} %", (thousandths + 5) / 10),
    }
}

/// A share of the run: its thousandths, and in words.
fn of_run(facts: &Facts<'_>, part: Told) -> Option<(u64, String)> {
    let length = facts.length()?;
    let share = (length.share(part)? * 1000.0) as u64;
    let marked = if length.is_exact() && part.error == 0 { "" } else { "~" };
    Some((share, format!("{marked}{}", percent(share))))
}

/// ` at solver.c:97`, where most of a function's time is spent.
fn at(facts: &Facts<'_>, function: &str) -> String {
    let place = facts.sites.iter().find(|row| row.function == function).and_then(|row| row.place.as_ref());
    place.map_or(String::new(), |place| format!(" at {place}"))
}

fn time_of(row: &FunctionRow) -> Told {
    row.time.filter(|time| time.max > 0).map_or(Told::default(), |time| time.total())
}

fn is_setup(name: &str) -> bool {
    name.starts_with("MPI_Init") || name == "MPI_Finalize"
}

/// Of the rank that has the most.
fn threads(facts: &Facts<'_>) -> u64 {
    u64::from(facts.input.trace.bundle.most_threads())
}

/// Slow ranks that are waited for at different places are slow for different reasons: each place has a flag of its own.
fn imbalance(facts: &Facts<'_>) -> Vec<Flag> {
    let chosen = stats::is_chosen(facts.input.trace);
    let Some(times) = Times::of(facts.input.trace, facts.stats).filter(|_| !chosen) else {
        return Vec::new();
    };
    let wall = times.ranks.iter().map(|rank| rank.outside.saturating_add(rank.inside)).max().unwrap_or(0);
    let mut by: Vec<&RankTimes> = times.ranks.iter().collect();
    by.sort_by_key(|rank| (rank.outside, rank.rank));
    let Some((slowest, usual)) = by.last().map(|last| (*last, by[(by.len() - 1) / 2])) else {
        return Vec::new();
    };
    let gap = slowest.outside.saturating_sub(usual.outside);
    let percent_more = gap.saturating_mul(100).checked_div(usual.outside).unwrap_or(u64::MAX);
    if by.len() < 2 || part(gap, wall.into()) < 50 || percent_more < SLOWER {
        return Vec::new();
    }
    let beyond = usual.outside + gap / 2;
    let slow: Vec<&RankTimes> = by.iter().copied().filter(|rank| rank.outside > beyond).collect();
    let mut groups: Vec<(Option<&Row>, Vec<&RankTimes>)> = Vec::new();
    for rank in &slow {
        let place = facts.waits.and_then(|waits| waited_for(waits, rank.rank));
        match groups.iter_mut().find(|(known, _)| known.map(same) == place.map(same)) {
            Some((_, group)) => group.push(rank),
            None => groups.push((place, vec![rank])),
        }
    }
    let others =
        (slow.len() == 1 && facts.waits.is_none()).then(|| longer_elsewhere(facts, &times, slowest, gap));
    let others = others.flatten().unwrap_or_default();
    groups.iter().map(|(place, group)| slow_ranks(facts, *place, group, usual, &others)).collect()
}

fn same(row: &Row) -> (Pattern, CallSite) {
    (row.pattern, row.place)
}

/// Where others wait for a rank the longest.
fn waited_for(waits: &Waits, rank: u32) -> Option<&Row> {
    let longest = waits.rows.iter().map(|row| (waited_at(row, rank), row));
    longest.filter(|(time, _)| *time > 0).max_by_key(|(time, _)| *time).map(|(_, row)| row)
}

fn waited_at(row: &Row, rank: u32) -> u64 {
    row.causes().iter().find(|(cause, _)| *cause == rank).map_or(0, |(_, sum)| sum.total)
}

/// Where the others spend more time than the slow one does.
fn longer_elsewhere(facts: &Facts<'_>, times: &Times, slow: &RankTimes, gap: u64) -> Option<String> {
    let others = || times.ranks.iter().filter(|rank| rank.rank != slow.rank);
    let more = |at: usize| {
        let all: u128 = others().map(|rank| u128::from(rank.functions[at])).sum();
        let mean = u64::try_from(all / others().count().max(1) as u128).unwrap_or(u64::MAX);
        let error = Told::sum(others().map(|rank| rank.told(at))).mean(others().count() as u64).error;
        Told { ns: mean.saturating_sub(slow.functions[at]), error: error.saturating_add(slow.told(at).error) }
    };
    let all = (0..times.functions.len()).map(|at| (more(at), times.functions[at]));
    let (more, function) = all
        .max_by_key(|(more, name)| (more.ns, Reverse(*name)))
        .filter(|(more, _)| more.ns > gap / 4 && threads(facts) == 1)?;
    Some(format!(" The others wait in {function}{}, {more} longer on average.", at(facts, function)))
}

fn slow_ranks(
    facts: &Facts<'_>,
    place: Option<&Row>,
    group: &[&RankTimes],
    usual: &RankTimes,
    others: &str,
) -> Flag {
    let least = group.iter().min_by_key(|rank| rank.outside).map_or(usual, |rank| rank);
    let most = group.iter().max_by_key(|rank| rank.outside).map_or(usual, |rank| rank);
    let ratio = most.outside as f64 / usual.outside.max(1) as f64;
    let mark = if most.told_outside().error + usual.told_outside().error > 0 { "~" } else { "" };
    let ratio = if ratio < 100.0 { format!("{mark}{ratio:.1} times") } else { "more than 100 times".into() };
    let mut slow: Vec<u32> = group.iter().map(|rank| rank.rank).collect();
    slow.sort_unstable();
    let who = refrain_views::human::ranks(&slow);
    let (head, who) = match slow.len() {
        1 => (format!("Rank {who} computes {ratio} as long as the median rank"), format!("Rank {who}")),
        n if n <= 16 => {
            (format!("Ranks {who} compute up to {ratio} as long as the median rank"), format!("Ranks {who}"))
        }
        n => (format!("{n} ranks compute up to {ratio} as long as the median rank"), format!("{n} ranks")),
    };
    let (least, most_told) = (least.told_outside().to_string(), most.told_outside().to_string());
    let spent = if least == most_told { least } else { format!("{least} to {most_told}") };
    let waited = place.map_or(String::new(), |row| {
        let time = slow.iter().map(|rank| waited_at(row, *rank)).fold(0, u64::saturating_add);
        let at = waits::place(facts.input, &row.place).map_or(String::new(), |place| format!(" at {place}"));
        let it = if slow.len() == 1 { "it" } else { "them" };
        let time = facts.waits.map_or(Told::exactly(time), |waits| waits.told(time));
        format!(" Others wait for {it} the longest in {}{at}: {time}.", row.place.function)
    });
    let text = format!(
        "{who} spent {spent} outside MPI; half of the ranks spent {} or less.{waited}{others}",
        usual.told_outside()
    );
    let help = "Look at how the work is divided: does this rank have more cells, a boundary, file output, a slower or a shared \
                core?";
    Flag {
        level: Level::Bad,
        weight: most.outside.saturating_sub(usual.outside),
        head,
        text,
        help: unless_crowded(facts, help),
        see: "by-rank",
    }
}

fn shares(facts: &Facts<'_>) -> Vec<Flag> {
    let mut found = Vec::new();
    let sum = |setup: bool| {
        Told::sum(facts.stats.functions.iter().filter(|row| is_setup(row.name) == setup).map(time_of))
    };
    let (setup, inside) = (sum(true), sum(false));
    // Times of several threads at once are no parts of the time that passed.
    let (Some((share, in_mpi)), Some((starting, in_setup))) = (of_run(facts, inside), of_run(facts, setup))
    else {
        return found;
    };
    let others = || facts.stats.functions.iter().filter(|row| !is_setup(row.name));
    let barrier = others().find(|row| row.name == "MPI_Barrier").map_or(Told::default(), time_of);
    if let Some((_, of_barrier)) = of_run(facts, barrier).filter(|(share, _)| *share >= BARRIER) {
        found.push(flag(
            Level::Warning,
            barrier.ns,
            format!("MPI_Barrier takes {of_barrier} of the time"),
            format!("All ranks together spent {barrier} in it{}.", at(facts, "MPI_Barrier")),
            &unless_crowded(
                facts,
                "Is it needed? Most barriers stand where messages or collective calls wait anyway. If it is, it waits for the \
                 slowest rank: look at the times by rank.",
            ),
            "functions",
        ));
    }
    if share >= MPI && !stats::is_chosen(facts.input.trace) {
        let top = others().max_by_key(|row| time_of(row).ns);
        let told = top.and_then(|row| Some((row, of_run(facts, time_of(row))?.1)));
        let told = told.map_or(String::new(), |(row, of)| {
            let at = at(facts, row.name);
            let most = if at.is_empty() { String::new() } else { format!(", the most{at}") };
            format!(" {} has {of}{most}.", row.name)
        });
        let (level, help) = match share >= MUCH_MPI {
            true => (
                Level::Warning,
                "The ranks communicate or wait more than they compute. Waits are not the network's fault: look at the times by \
                 rank first, then at sizes of messages.",
            ),
            false => {
                (Level::Note, "Where the time in MPI is spent stands below, by function and by call site.")
            }
        };
        let all = facts.length().map_or(Told::default(), |length| length.all);
        let text = format!("{inside} of {all}, all ranks together, and {setup} in MPI_Init.{told}");
        let head = format!("{in_mpi} of the time is spent in MPI");
        found.push(flag(level, inside.ns, head, text, &unless_crowded(facts, help), "functions"));
    }
    if starting >= SETUP && facts.input.trace.meta.complete {
        found.push(flag(
            Level::Note,
            setup.ns,
            format!("Starting MPI takes {in_setup} of the run"),
            format!("{} a rank in MPI_Init.", setup.mean(recorded(facts).max(1))),
            "The run is short: shares of the time say more about a longer one.",
            "functions",
        ));
    }
    found
}

fn waiting(facts: &Facts<'_>) -> Vec<Flag> {
    let Some(waits) = facts.waits else { return Vec::new() };
    let mut found = Vec::new();
    for pattern in [Pattern::LateSender, Pattern::LateReceiver] {
        let rows: Vec<_> = waits.rows.iter().filter(|row| row.pattern == pattern).collect();
        let total = rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.all.total));
        let of_all = part(total, waits.length.all.ns.into());
        let Some(first) = rows.first().filter(|_| of_all >= WAITS) else { continue };
        let place =
            waits::place(facts.input, &first.place).map_or(String::new(), |place| format!(" at {place}"));
        let causes = first.causes();
        let cause = causes.first().map_or(String::new(), |(rank, sum)| {
            format!(" There rank {rank} is waited for the longest ({}).", waits.told(sum.total))
        });
        let (what, help) = match pattern {
            Pattern::LateSender => (
                "Late senders: receives wait for messages that are not sent yet",
                "Send earlier, or compute something else before the wait. If one rank is always late, it has more to do."
                    .to_owned(),
            ),
            _ => (
                "Late receivers: sends wait for receives that are not posted yet",
                post_earlier(facts),
            ),
        };
        let text = format!(
            "They take {}; the most in {}{place}.{cause}",
            match of_run(facts, waits.told(total)) {
                Some((_, share)) => format!("{share} of the time of all ranks, {} in all", waits.told(total)),
                None => format!("{}, all threads together", waits.told(total)),
            },
            first.place.function
        );
        found.push(flag(Level::Warning, total, what, text, &unless_crowded(facts, &help), "waits"));
    }
    found
}

fn small_messages(facts: &Facts<'_>) -> Option<Flag> {
    let matrix = facts.matrix;
    let sum = |small: bool| {
        let chosen = matrix.sizes.iter().filter(|(bits, _)| !small || **bits < SMALL_BITS);
        chosen.fold(0u64, |sum, (_, sent)| sum.saturating_add(sent.messages))
    };
    let (small, all) = (sum(true), sum(false));
    let share = (u128::from(small) * 100 / u128::from(all.max(1))) as u64;
    if share < MOSTLY_SMALL || all / u64::from(matrix.ranks.max(1)) < FEW_MESSAGES {
        return None;
    }
    let bytes =
        matrix.sizes.iter().filter(|(bits, _)| **bits < SMALL_BITS).fold(0u128, |sum, (_, s)| sum + s.bytes);
    let mean = bytes.checked_div(u128::from(small)).unwrap_or(0);
    Some(flag(
        Level::Note,
        small,
        format!("{share} % of messages have less than 1 KiB"),
        format!("{} of {}, {} on average.", thousands(small), plural(all, "message"), size(mean)),
        &unless_crowded(
            facts,
            "Small messages cost latency, not bandwidth: join those that go to the same rank in the same step.",
        ),
        "sizes",
    ))
}

fn polls(facts: &Facts<'_>) -> Option<Flag> {
    let is_poll = |name: &str| name.starts_with("MPI_Test") || name.contains("probe");
    let all: u64 = facts.stats.functions.iter().map(|row| row.calls).sum();
    let polls: u64 = facts.stats.functions.iter().filter(|row| is_poll(row.name)).map(|row| row.calls).sum();
    (polls * 2 > all && polls > 10_000).then(|| {
        flag(
            Level::Note,
            polls,
            format!("{} of all calls are polls", percent(part(polls, all.into()))),
            format!("{} of MPI_Test, MPI_Iprobe and their like.", plural(polls, "call")),
            &unless_crowded(
                facts,
                "If there is nothing else to do meanwhile, MPI_Wait or MPI_Recv leave the waiting to the library.",
            ),
            "functions",
        )
    })
}

/// What the loops say will grow with the number of ranks.
fn growing(facts: &Facts<'_>) -> Option<Flag> {
    let mut told: Vec<&str> = Vec::new();
    let lines = facts.outlines.iter().flat_map(|outline| &outline.heading);
    for text in lines.filter_map(|line| line.strip_prefix("red flag: ")) {
        if !told.contains(&text) {
            told.push(text);
        }
    }
    let first = told.first()?;
    let more = match told.len() - 1 {
        0 => String::new(),
        n => format!(" And {} like it.", thousands(n as u64)),
    };
    // Of few ranks, a number that is like theirs is so by chance more often.
    let level = if facts.input.trace.meta.ranks < 32 { Level::Note } else { Level::Warning };
    Some(flag(
        level,
        0,
        "Something may grow with the number of ranks",
        format!("{}.{more}", capital(first.trim_end_matches('.'))),
        "If it does, ten times the ranks make it ten times as much on each of them, and the program stops scaling.",
        "loops",
    ))
}

fn nothing(facts: &Facts<'_>) -> Flag {
    let timed = facts.input.trace.meta.timed;
    if stats::is_chosen(facts.input.trace) {
        let text = "Sizes and counts of what was recorded were looked at.".to_owned();
        return flag(Level::Note, 0, "Nothing stands out in what was recorded", text, "", "functions");
    }
    let text = match timed {
        true if threads(facts) > 1 => {
            "No rank computes much longer than the others. Shares of the time are not looked at: there are several threads a rank."
        }
        true => {
            "No rank computes much longer than the others, MPI does not dominate, and no barrier stands in the way."
        }
        false => "Times were not kept, so only counts and sizes were looked at.",
    };
    let help = match facts.input.times.is_some() {
        true => "",
        false => {
            "`refrain run --time exact --stacks site` keeps when each call was and where it stands: then waits are found too."
        }
    };
    let (level, head) = match timed {
        true => (Level::Good, "Nothing stands out"),
        false => (Level::Note, "Nothing stands out in counts and sizes"),
    };
    flag(level, 0, head, text.to_owned(), help, "functions")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use refrain_tracefile::profile::Profile;
    use refrain_tracefile::{Cores, Trace};
    use refrain_views::waits::{Sum, Waiter};

    use super::*;

    /// The heads of what is said about shares of the time, if half of it is spent in barriers.
    fn told(seed: &[u8]) -> Vec<String> {
        let mut trace = refrain_tracefile::read(seed).unwrap();
        let one = |rank| Profile::of_rank(rank, (500_000_000, 500_000_000), []);
        let mut profile = (0..trace.meta.ranks).map(one).fold(Profile::default(), |all, one| all.join(&one));
        profile.settle();
        trace.meta.profile = Some(profile);
        let mut stats = refrain_views::stats::stats(&trace).unwrap();
        let row = stats.functions.iter_mut().find(|row| !is_setup(row.name)).unwrap();
        let all = 500_000_000 * u64::from(trace.meta.ranks);
        row.name = "MPI_Barrier";
        row.time = row.time.map(|time| time.of_single(all));
        let matrix = refrain_views::stats::matrix(&trace).unwrap();
        let names = refrain_sites::Binaries::new(&trace.bundle.sites, &[]);
        let input =
            Input { trace: &trace, times: None, names: &names, file: "app.rfn", bytes: 367, between: None };
        let facts =
            Facts { input: &input, stats: &stats, matrix: &matrix, sites: &[], waits: None, outlines: &[] };
        shares(&facts).into_iter().map(|flag| flag.head).collect()
    }

    /// What is said about receives, if there are so many of these functions.
    fn advice(calls: &[(&'static str, u64)]) -> String {
        let trace = refrain_tracefile::read(include_bytes!("../../views/tests/seeds/ring.rfn")).unwrap();
        let mut stats = refrain_views::stats::stats(&trace).unwrap();
        let row =
            |&(name, calls): &(&'static str, u64)| FunctionRow { name, calls, payload: None, time: None };
        stats.functions = calls.iter().map(row).collect();
        let matrix = refrain_views::stats::matrix(&trace).unwrap();
        let names = refrain_sites::Binaries::new(&trace.bundle.sites, &[]);
        let input =
            Input { trace: &trace, times: None, names: &names, file: "app.rfn", bytes: 367, between: None };
        post_earlier(&Facts {
            input: &input,
            stats: &stats,
            matrix: &matrix,
            sites: &[],
            waits: None,
            outlines: &[],
        })
    }

    #[test]
    fn nobody_is_told_to_post_what_is_posted() {
        let early = "Post receives earlier";
        assert!(advice(&[("MPI_Recv", 10), ("MPI_Send", 10)]).starts_with(early));
        assert!(advice(&[("MPI_Recv", 10), ("MPI_Irecv", 50)]).starts_with(early));
        let posted = advice(&[("MPI_Irecv", 5000), ("MPI_Sendrecv", 10), ("MPI_Probe", 9000)]);
        assert!(posted.starts_with("5,000 of 5,010 receives are posted with MPI_Irecv"), "{posted}");
    }

    /// What a call costs where ranks wait for cores is not the program's.
    #[test]
    fn ranks_that_shared_cores_are_told_nothing_else_to_do() {
        let mut trace = refrain_tracefile::read(include_bytes!("../../views/tests/seeds/ring.rfn")).unwrap();
        let told = |trace: &Trace| {
            let mut stats = refrain_views::stats::stats(trace).unwrap();
            stats.functions =
                vec![FunctionRow { name: "MPI_Test", calls: 20_000, payload: None, time: None }];
            let mut matrix = refrain_views::stats::matrix(trace).unwrap();
            matrix.sizes = [(4, stats::Sent { messages: 1_000_000, bytes: 8_000_000 })].into();
            let names = refrain_sites::Binaries::new(&trace.bundle.sites, &[]);
            let input =
                Input { trace, times: None, names: &names, file: "app.rfn", bytes: 367, between: None };
            let (waits, outlines) = (None, &[][..]);
            let facts = Facts { input: &input, stats: &stats, matrix: &matrix, sites: &[], waits, outlines };
            [small_messages(&facts), polls(&facts)].map(|flag| flag.unwrap().help)
        };
        trace.meta.cores.clear();
        let [small, polls] = told(&trace);
        assert!(small.contains("cost latency") && polls.contains("MPI_Wait"), "{small} {polls}");
        let ranks = trace.meta.ranks;
        let cores = Cores { ranks: (0..ranks).collect(), each: 1, sharing: ranks, thousandths: 1000 };
        trace.meta.cores = vec![cores];
        for help in told(&trace) {
            assert!(help.starts_with("Ranks shared cores."), "{help}");
        }
    }

    #[test]
    fn barriers_of_threads_are_no_share_of_the_time() {
        let one = told(include_bytes!("../../views/tests/seeds/ring.rfn"));
        assert!(one.iter().any(|head| head.starts_with("MPI_Barrier takes ")), "{one:?}");
        let several = told(include_bytes!("../../views/tests/seeds/threads.rfn"));
        assert!(several.iter().all(|head| !head.contains("of the time")), "{several:?}");
    }

    /// A slow step on one rank and a late sender on another are two findings; two ranks that are late at one place are one.
    #[test]
    fn what_has_two_causes_has_two_flags() {
        let ms = 1_000_000;
        let mut trace = Trace::default();
        (trace.meta.ranks, trace.meta.timed) = (6, true);
        let one =
            |(rank, outside): (u32, u64)| (rank, (outside * ms, (1000 - outside) * ms), BTreeMap::new());
        let all: Vec<_> = (0..).zip([100, 688, 790, 100, 100, 100]).map(one).collect();
        trace.meta.profile = Some(Profile::of_single(&all));
        let sum = |total| Sum { count: 10, total, error: 0, longest: total };
        let row = |pattern, function, causes: &[(u32, u64)]| Row {
            pattern,
            place: CallSite { function, frame: None },
            all: sum(600 * ms),
            ranks: vec![Waiter {
                rank: 0,
                all: sum(600 * ms),
                causes: causes.iter().map(|&(rank, total)| (rank, sum(total))).collect(),
            }],
        };
        let heads_and_texts = |rows: Vec<Row>| {
            let waits = Waits { rows, ..Waits::default() };
            let stats = refrain_views::stats::stats(&trace).unwrap();
            let matrix = refrain_views::stats::matrix(&trace).unwrap();
            let names = refrain_sites::Binaries::new(&trace.bundle.sites, &[]);
            let input = Input {
                trace: &trace,
                times: None,
                names: &names,
                file: "app.rfn",
                bytes: 367,
                between: None,
            };
            let (waits, outlines) = (Some(&waits), &[][..]);
            let facts = Facts { input: &input, stats: &stats, matrix: &matrix, sites: &[], waits, outlines };
            imbalance(&facts)
                .into_iter()
                .map(|flag| format!("{}. {}", flag.head, flag.text))
                .collect::<Vec<_>>()
        };
        let sender = row(Pattern::LateSender, "MPI_Recv", &[(2, 600 * ms)]);
        let step = row(Pattern::AllToAll, "MPI_Allreduce", &[(1, 500 * ms), (2, 100 * ms)]);
        assert_eq!(
            heads_and_texts(vec![sender, step]),
            [
                "Rank 1 computes 6.9 times as long as the median rank. Rank 1 spent 688 ms outside MPI; half of the ranks spent \
                 100 ms or less. Others wait for it the longest in MPI_Allreduce: 500 ms.",
                "Rank 2 computes 7.9 times as long as the median rank. Rank 2 spent 790 ms outside MPI; half of the ranks spent \
                 100 ms or less. Others wait for it the longest in MPI_Recv: 600 ms.",
            ]
        );
        let both = row(Pattern::AllToAll, "MPI_Allreduce", &[(1, 500 * ms), (2, 100 * ms)]);
        assert_eq!(
            heads_and_texts(vec![both]),
            [
                "Ranks 1-2 compute up to 7.9 times as long as the median rank. Ranks 1-2 spent 688 ms to 790 ms outside MPI; half \
                 of the ranks spent 100 ms or less. Others wait for them the longest in MPI_Allreduce: 600 ms."
            ]
        );
    }
}
