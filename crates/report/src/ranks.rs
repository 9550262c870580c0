//! How ranks spent their time, and which of them did the same.

use refrain_fold::ranks::RankList;
use refrain_tracefile::Trace;
use refrain_views::cores;
use refrain_views::stats::{Stats, Times};
use serde_json::{Value, json};

use crate::number;

/// More ranks than these share a bar.
const MOST_BARS: usize = 512;
/// Functions that are told by rank.
const MOST_FUNCTIONS: usize = 8;
/// Kinds that are described.
const MOST_KINDS: usize = 200;

/// For each bar: the ranks in it, the mean time outside MPI, the most on one of them, the mean in MPI, and in each function.
pub fn times(trace: &Trace, stats: &Stats) -> Value {
    let Some(times) = Times::of(trace, stats) else { return Value::Null };
    let total = |at: usize| times.ranks.iter().fold(0u128, |sum, rank| sum + u128::from(rank.functions[at]));
    let mut chosen: Vec<usize> = (0..times.functions.len()).collect();
    chosen.sort_by_key(|&at| std::cmp::Reverse(total(at)));
    chosen.truncate(MOST_FUNCTIONS);
    let each = times.ranks.len().div_ceil(MOST_BARS).max(1);
    let bars = times.ranks.chunks(each).map(|chunk| {
        let n = chunk.len() as u128;
        let mean = |of: &dyn Fn(&refrain_views::stats::RankTimes) -> u64| {
            number(chunk.iter().map(|rank| u128::from(of(rank))).sum::<u128>() / n)
        };
        let functions: Vec<Value> = chosen.iter().map(|&at| mean(&|rank| rank.functions[at])).collect();
        let slowest = chunk.iter().max_by_key(|rank| rank.outside);
        json!([
            chunk[0].rank,
            chunk[chunk.len() - 1].rank,
            mean(&|rank| rank.outside),
            mean(&|rank| rank.inside),
            functions,
            slowest.map(|rank| [u64::from(rank.rank), rank.outside]),
        ])
    });
    json!({
        "functions": chosen.iter().map(|&at| times.functions[at]).collect::<Vec<_>>(),
        "bars": bars.collect::<Vec<_>>(),
        "each": each,
        "verdict": times.verdict().map(|verdict| match cores::crowded(&trace.meta) {
            Some(crowded) => format!("{crowded} {verdict}"),
            None => verdict,
        }),
    })
}

/// Kinds of ranks, each with the least and the most calls and payload of a rank; and over the ranks which kind each is: pairs of a kind and how many ranks in a row are of it.
pub fn kinds(trace: &Trace, stats: &Stats) -> Value {
    let bundle = &trace.bundle;
    let mut of_rank: Vec<Vec<usize>> = vec![Vec::new(); trace.meta.ranks as usize];
    for (at, cohort) in bundle.of_threads().iter().enumerate() {
        for rank in cohort.ranks.iter() {
            if let Some(own) = of_rank.get_mut(rank as usize) {
                own.push(at);
            }
        }
    }
    let mut known: Vec<(Vec<usize>, Vec<u32>)> = Vec::new();
    let mut at: std::collections::HashMap<Vec<usize>, usize> = std::collections::HashMap::new();
    let mut row: Vec<(usize, u32)> = Vec::new();
    for (rank, own) in (0u32..).zip(of_rank) {
        let kind = *at.entry(own.clone()).or_insert_with(|| {
            known.push((own, Vec::new()));
            known.len() - 1
        });
        known[kind].1.push(rank);
        match row.last_mut() {
            Some((last, count)) if *last == kind => *count += 1,
            _ => row.push((kind, 1)),
        }
    }
    let described = known.iter().take(MOST_KINDS).map(|(own, ranks)| {
        // Ranks of a kind make the same calls, but not always as often.
        let each = ranks.iter().map(|rank| stats.ranks.get(*rank as usize).copied().unwrap_or_default());
        let calls = each.clone().map(|rank| rank.calls);
        let bytes = each.map(|rank| rank.payload.bytes);
        let text = match own.is_empty() {
            true => format!("{} (nothing recorded)", RankList::from_sorted(ranks)),
            false => RankList::from_sorted(ranks).to_string(),
        };
        json!([
            shortened(&text),
            ranks.len(),
            calls.clone().min(),
            calls.max(),
            bytes.clone().min().map(number),
            bytes.max().map(number)
        ])
    });
    // A map of 65,536 stretches would be most of the page.
    let row = if row.len() > 16_384 { None } else { Some(row) };
    json!({ "count": known.len(), "described": described.collect::<Vec<_>>(), "row": row })
}

/// A list of ranks that fits in a line.
pub fn shortened(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}...", &text[..at]),
    }
}
