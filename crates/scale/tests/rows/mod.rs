use std::collections::HashMap;

use refrain_fold::bundle::{Lane, Variant};
use refrain_fold::ranks::RankList;
use refrain_fold::stream::{Flat, Stream};
use refrain_tracefile::Trace;

/// More numbers of a stream are compared by the digests of their calls.
const COMPARED: usize = 4096;

/// Streams that are told together, and those of neighbours, come back as rows of numbers. So each rank has a row of its own here.
pub fn as_rows(mut trace: Trace) -> Trace {
    let before = trace.bundle.clone();
    let mut known: HashMap<Vec<i64>, u32> = HashMap::new();
    let mut streams: Vec<Stream> = Vec::new();
    let row_of = |stream: &Stream| stream.iter().take(COMPARED).collect::<Vec<i64>>();
    let stored: Vec<Vec<i64>> = before.streams.iter().map(row_of).collect();
    for cohort in &mut trace.bundle.cohorts {
        for lane in &mut cohort.lanes {
            let mut variants: Vec<(u32, Vec<u32>)> = Vec::new();
            for rank in &cohort.ranks {
                let Some((stream, own)) = lane.of_rank(rank) else { continue };
                let row = match own.is_empty() {
                    true => stored[stream as usize].clone(),
                    false => row_of(before.stream_of(lane, rank).unwrap().as_ref()),
                };
                let stream = *known.entry(row.clone()).or_insert_with(|| {
                    streams.push(Flat { numbers: row, tail: 1 }.stream().unwrap());
                    streams.len() as u32 - 1
                });
                match variants.iter_mut().find(|variant| variant.0 == stream) {
                    Some((_, ranks)) => ranks.push(rank),
                    None => variants.push((stream, vec![rank])),
                }
            }
            let variant = |(stream, ranks): (u32, Vec<u32>)| Variant {
                ranks: RankList::from_sorted(&ranks),
                stream,
                used: 0,
                numbers: Vec::new(),
            };
            *lane = Lane::Varied(variants.into_iter().map(variant).collect());
        }
    }
    trace.bundle.streams = streams;
    trace
}
