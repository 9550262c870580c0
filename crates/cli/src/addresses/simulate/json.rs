//! What a simulation came to, for programs: `schemas/caches.json`.

use refrain_addresses::simulate::{
    ALL, Class, Counts, Hierarchy, Inclusion, Lookups, Pages, Part, Prefetch, Traffic, Type,
};
use refrain_addresses::{KINDS, kind};
use refrain_views::json;
use serde::Serialize;

use super::caches::inclusion;
use super::places::{self, Row};
use super::runs::{Interval, Run, Runs, all_traffic};
use super::{Order, Traced, Whose};

/// One configuration has its caches here, of several each has its own.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    format: &'static str,
    references: u64,
    #[serde(serialize_with = "json::pairs")]
    passed_over: Vec<(&'static str, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<Threads>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tlbs: Vec<OfTlb>,
    #[serde(flatten)]
    results: Results,
}

/// In which order several threads came to the caches.
#[derive(Serialize)]
#[serde(tag = "order", rename_all = "lowercase")]
enum Threads {
    Turns { count: usize, turn: u64 },
    Trace,
}

/// Of all threads together.
#[derive(Serialize)]
struct OfTlb {
    name: &'static str,
    entries: u64,
    ways: u64,
    page: u64,
    lookups: ByType,
    misses: ByType,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Results {
    One(Box<OfRun>),
    Several { configurations: Vec<OfRun> },
}

#[derive(Serialize)]
struct OfRun {
    caches: Vec<OfCache>,
    memory: Memory,
    #[serde(skip_serializing_if = "Option::is_none")]
    coherence: Option<Coherence>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cores: Vec<OfCore>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    intervals: Vec<OfInterval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    misses_by: Option<Vec<OfPlace>>,
}

#[derive(Serialize)]
struct Coherence {
    protocol: &'static str,
    #[serde(flatten)]
    traffic: OfTraffic,
}

/// One of several cores: its own caches, and what coherence cost it.
#[derive(Serialize)]
struct OfCore {
    core: usize,
    caches: Vec<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coherence: Option<OfTraffic>,
}

#[derive(Serialize)]
struct OfTraffic {
    reads: u64,
    reads_to_write: u64,
    upgrades: u64,
    silent_upgrades: u64,
    invalidations_sent: u64,
    invalidations_received: u64,
    true_sharing: u64,
    false_sharing: u64,
    transfers_in: u64,
    transfers_out: u64,
    write_backs: u64,
}

impl From<Traffic> for OfTraffic {
    fn from(traffic: Traffic) -> OfTraffic {
        OfTraffic {
            reads: traffic.reads,
            reads_to_write: traffic.reads_to_write,
            upgrades: traffic.upgrades,
            silent_upgrades: traffic.silent_upgrades,
            invalidations_sent: traffic.invalidations_sent,
            invalidations_received: traffic.invalidations_received,
            true_sharing: traffic.true_sharing,
            false_sharing: traffic.false_sharing,
            transfers_in: traffic.transfers_in,
            transfers_out: traffic.transfers_out,
            write_backs: traffic.write_backs,
        }
    }
}

/// Lines that were missing because other cores wrote to them.
#[derive(Serialize)]
struct Sharing {
    r#true: u64,
    r#false: u64,
}

/// An instruction, function, line or region.
#[derive(Serialize)]
struct OfPlace {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    references: ByType,
    /// From the first level on.
    misses: Vec<ByType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sharing: Option<Sharing>,
}

#[derive(Serialize)]
pub struct ByType {
    read: u64,
    write: u64,
    fetch: u64,
}

impl From<[u64; 3]> for ByType {
    fn from([read, write, fetch]: [u64; 3]) -> ByType {
        ByType { read, write, fetch }
    }
}

impl OfPlace {
    fn of(row: Row, levels: usize, coherent: bool) -> OfPlace {
        let (file, line) = row.line.unzip();
        OfPlace {
            name: row.name,
            file,
            line,
            references: row.tally.references.into(),
            misses: row.tally.misses[..levels].iter().map(|misses| ByType::from(*misses)).collect(),
            sharing: coherent.then(|| {
                let [r#true, r#false] = row.tally.sharing;
                Sharing { r#true, r#false }
            }),
        }
    }
}

/// Misses by what was to blame.
#[derive(Serialize)]
struct Classes {
    compulsory: u64,
    capacity: u64,
    conflict: u64,
    /// Of caches that hear of each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    coherence: Option<u64>,
}

#[derive(Serialize)]
struct OfCache {
    name: String,
    size: u64,
    ways: u64,
    line: u64,
    sets: u64,
    policy: &'static str,
    write_policy: &'static str,
    allocate: bool,
    write_fetch: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    sector: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefetch_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    victims: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inclusion: Option<&'static str>,
    #[serde(flatten)]
    counted: Counted,
    dirty_at_end: u64,
}

/// What a cache has counted, in all or in an interval.
#[derive(Serialize)]
struct Counted {
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<OfType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write: Option<OfType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fetch: Option<OfType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<OfType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefetch: Option<OfType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    straddling: Option<u64>,
    evictions: u64,
    write_backs: u64,
    passed_on: u64,
    bytes_in: u64,
    bytes_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefetches: Option<Prefetches>,
    #[serde(skip_serializing_if = "Option::is_none")]
    victim_hits: Option<u64>,
    /// Lines that an inclusive level below took away.
    invalidated: u64,
    /// What the trace told it to do.
    #[serde(skip_serializing_if = "is_zero")]
    copied_back: u64,
    #[serde(skip_serializing_if = "is_zero")]
    dropped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<Classes>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct Prefetches {
    lines: u64,
    used: u64,
    unused: u64,
}

#[derive(Serialize)]
struct OfType {
    accesses: u64,
    misses: u64,
}

#[derive(Serialize)]
struct Memory {
    lines_read: u64,
    writes: u64,
    bytes_read: u64,
    bytes_written: u64,
}

#[derive(Serialize)]
struct OfInterval {
    from: u64,
    references: u64,
    caches: Vec<Named>,
    memory: Memory,
    #[serde(skip_serializing_if = "Option::is_none")]
    coherence: Option<OfTraffic>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tlbs: Vec<NamedTlb>,
}

/// What a TLB has counted in an interval.
#[derive(Serialize)]
struct NamedTlb {
    name: &'static str,
    lookups: ByType,
    misses: ByType,
}

#[derive(Serialize)]
struct Named {
    name: String,
    #[serde(flatten)]
    counted: Counted,
}

/// References that no cache takes, by the name of their kind.
pub fn passed_over(counts: [u64; KINDS]) -> Vec<(&'static str, u64)> {
    kind::NAMES.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
}

impl Counted {
    fn of(part: &Part, counts: &Counts) -> Counted {
        let types = part.types();
        let of_type = |kind: Type| {
            let (accesses, misses) = (counts.accesses[kind as usize], counts.misses[kind as usize]);
            types.contains(&kind).then_some(OfType { accesses, misses })
        };
        let [read, write, fetch, written, prefetch] = ALL.map(of_type);
        let config = part.config();
        Counted {
            read,
            write,
            fetch,
            written,
            prefetch,
            straddling: (part.level() == 1).then_some(counts.straddling),
            evictions: counts.evictions,
            write_backs: counts.write_backs,
            passed_on: counts.writes_through,
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            prefetches: config.prefetch.map(|_| Prefetches {
                lines: counts.prefetches,
                used: counts.prefetches_used,
                unused: counts.prefetches_unused,
            }),
            victim_hits: (config.victims > 0).then_some(counts.victim_hits),
            invalidated: counts.invalidated,
            copied_back: counts.copied_back,
            dropped: counts.dropped,
            classes: part.is_classified().then(|| {
                let [compulsory, capacity, conflict] = Class::ALL.map(|class| counts.classes[class as usize]);
                let coherence = part.is_coherent().then_some(counts.classes[Class::Coherence as usize]);
                Classes { compulsory, capacity, conflict, coherence }
            }),
        }
    }
}

impl OfCache {
    fn of(name: String, part: &Part) -> OfCache {
        let config = part.config();
        OfCache {
            name,
            size: config.geometry.size(),
            ways: config.geometry.ways(),
            line: config.geometry.line(),
            sets: config.geometry.sets(),
            policy: config.policy.name(),
            write_policy: config.write.name(),
            allocate: config.allocate,
            write_fetch: config.fetch,
            sector: config.sector,
            prefetch_policy: config.prefetch.map(Prefetch::name),
            victims: (config.victims > 0).then_some(config.victims),
            inclusion: (config.inclusion != Inclusion::Free).then(|| inclusion(config.inclusion)),
            counted: Counted::of(part, part.counts()),
            dirty_at_end: part.dirty(),
        }
    }
}

impl Memory {
    fn of(memory: &refrain_addresses::simulate::Memory) -> Memory {
        Memory {
            lines_read: memory.lines_read,
            writes: memory.writes,
            bytes_read: memory.bytes_read,
            bytes_written: memory.bytes_written,
        }
    }
}

impl OfRun {
    fn of(run: &Run, whose: Option<&Whose<'_>>) -> OfRun {
        let mut from = 0;
        let intervals = run.intervals.iter().map(|interval| {
            let begins = from;
            from += interval.references;
            OfInterval::of(&run.caches, interval, begins)
        });
        OfRun {
            intervals: intervals.collect(),
            caches: run.caches.caches().into_iter().map(|(name, part)| OfCache::of(name, &part)).collect(),
            memory: Memory::of(&run.caches.memory()),
            coherence: run.caches.protocol().map(|protocol| Coherence {
                protocol: protocol.name(),
                traffic: all_traffic(&run.caches).into(),
            }),
            cores: match run.caches.cores() {
                1 => Vec::new(),
                count => (0..count).map(|core| OfCore::of(&run.caches, core)).collect(),
            },
            misses_by: whose.zip(run.caches.tallies()).map(|(whose, tallies)| {
                let levels = run.caches.levels();
                let rows = places::rows(tallies, whose.by, whose.places, levels);
                rows.into_iter()
                    .map(|row| OfPlace::of(row, levels, run.caches.protocol().is_some()))
                    .collect()
            }),
        }
    }
}

impl OfCore {
    fn of(caches: &Hierarchy, core: usize) -> OfCore {
        let own = caches.caches_of(core).into_iter();
        OfCore {
            core,
            caches: own
                .map(|(name, part)| Named { name, counted: Counted::of(&part, part.counts()) })
                .collect(),
            coherence: caches.traffic().get(core).copied().map(OfTraffic::from),
        }
    }
}

impl OfInterval {
    fn of(caches: &Hierarchy, interval: &Interval, from: u64) -> OfInterval {
        let parts = caches.caches().into_iter().zip(&interval.caches);
        let named = |((name, part), counts)| Named { name, counted: Counted::of(&part, counts) };
        OfInterval {
            from,
            references: interval.references,
            caches: parts.map(named).collect(),
            memory: Memory::of(&interval.memory),
            coherence: interval.coherence.map(OfTraffic::from),
            tlbs: interval
                .tlbs
                .iter()
                .map(|(name, Lookups { accesses, misses })| NamedTlb {
                    name,
                    lookups: (*accesses).into(),
                    misses: (*misses).into(),
                })
                .collect(),
        }
    }
}

pub fn json(runs: &Runs, traced: Traced, whose: Option<&Whose<'_>>) -> String {
    let first = runs.all.first().map(|run| &run.caches);
    let document = Document {
        schema: "refrain-caches-1",
        format: traced.format.name(),
        references: first.map_or(0, Hierarchy::references),
        threads: traced.order.map(|order| match order {
            Order::Turns { threads, turn } => Threads::Turns { count: threads, turn },
            Order::Trace => Threads::Trace,
        }),
        passed_over: passed_over(first.map_or([0; KINDS], Hierarchy::passed_over)),
        tlbs: runs
            .lookups()
            .into_iter()
            .map(|(name, Pages { entries, ways, page }, Lookups { accesses, misses })| OfTlb {
                name,
                entries,
                ways,
                page,
                lookups: accesses.into(),
                misses: misses.into(),
            })
            .collect(),
        results: match &runs.all[..] {
            [run] => Results::One(Box::new(OfRun::of(run, whose))),
            several => {
                Results::Several { configurations: several.iter().map(|run| OfRun::of(run, whose)).collect() }
            }
        },
    };
    json::text(&document) + "\n"
}
