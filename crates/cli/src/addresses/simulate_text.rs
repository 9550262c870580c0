//! What a simulation came to, for people and for programs.

use refrain_addresses::simulate::{ALL, Cache, Curve, Distances, Hierarchy, Type, Write, short_size};
use refrain_addresses::{Format, KINDS, kind};
use refrain_views::human::{plural, thousands};
use refrain_views::json;
use refrain_views::table::Table;
use serde::Serialize;

fn percent(n: u64, of: u64) -> String {
    match of {
        0 => String::new(),
        of => format!("{:.3}%", 100.0 * n as f64 / of as f64),
    }
}

pub fn table(caches: &Hierarchy, format: Format, sizes: bool) -> String {
    let mut out = format!("{} as {}\n", plural(caches.references(), "reference"), format.name());
    if !sizes {
        out.push_str("the trace has no sizes: each reference is taken to be in one line\n");
    }
    for (n, count) in caches.passed_over().into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let of = format!("{} of kind {n}, {}", plural(count, "reference"), kind::NAMES[n]);
        out.push_str(&format!("passed over, for there is no cache for them: {of}\n"));
    }
    out.push('\n');
    let mut table = Table::new(["", "accesses", "misses", "miss ratio"]);
    for (name, cache) in caches.caches() {
        let counts = cache.counts();
        let types = caches.types(&name);
        let mut all = (0, 0);
        for kind in &types {
            let (accesses, misses) = (counts.accesses[*kind as usize], counts.misses[*kind as usize]);
            all = (all.0 + accesses, all.1 + misses);
            if accesses > 0 {
                row(&mut table, format!("{name} {}", kind.name()), accesses, misses);
            }
        }
        if types.len() > 1 || all.0 == 0 {
            row(&mut table, format!("{name} all"), all.0, all.1);
        }
    }
    out.push_str(&table.render());
    out.push('\n');
    let mut table =
        Table::new(["", "straddling", "evictions", "write-backs", "passed on", "dirty at the end"]);
    for (name, cache) in caches.caches() {
        let counts = cache.counts();
        let straddling = if name.starts_with("l1") { thousands(counts.straddling) } else { String::new() };
        table.row([
            format!("{name}: {}", described(cache)),
            straddling,
            thousands(counts.evictions),
            thousands(counts.write_backs),
            thousands(counts.writes_through),
            thousands(cache.dirty()),
        ]);
    }
    out.push_str(&table.render());
    let memory = caches.memory();
    out.push_str(&format!(
        "\nmemory: {} read, {}\n",
        plural(memory.lines_read, "line"),
        plural(memory.writes, "write")
    ));
    out
}

fn row(table: &mut Table, name: String, accesses: u64, misses: u64) {
    table.row([name, thousands(accesses), thousands(misses), percent(misses, accesses)]);
}

fn described(cache: &Cache) -> String {
    let config = cache.config();
    let geometry = &config.geometry;
    let ways = match (geometry.sets(), geometry.ways()) {
        (1, ways) if ways > 1 => "fully associative".to_owned(),
        (_, 1) => "direct-mapped".to_owned(),
        (_, ways) => format!("{ways} ways"),
    };
    let allocate = if config.allocate { "" } else { ", no allocation" };
    let write = if config.write == Write::Back { "" } else { ", write-through" };
    format!(
        "{}, {ways}, lines of {}, {}{write}{allocate}",
        short_size(geometry.size()),
        geometry.line(),
        config.policy.name()
    )
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    format: &'static str,
    references: u64,
    #[serde(serialize_with = "json::pairs")]
    passed_over: Vec<(&'static str, u64)>,
    caches: Vec<OfCache>,
    memory: Memory,
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
    #[serde(flatten)]
    types: Types,
    #[serde(skip_serializing_if = "Option::is_none")]
    straddling: Option<u64>,
    evictions: u64,
    write_backs: u64,
    passed_on: u64,
    dirty_at_end: u64,
}

/// Those that come to a cache.
#[derive(Serialize)]
struct Types {
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<Counted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write: Option<Counted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fetch: Option<Counted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<Counted>,
}

#[derive(Serialize)]
struct Counted {
    accesses: u64,
    misses: u64,
}

#[derive(Serialize)]
struct Memory {
    lines_read: u64,
    writes: u64,
}

/// References that no cache takes, by the name of their kind.
fn passed_over(counts: [u64; KINDS]) -> Vec<(&'static str, u64)> {
    kind::NAMES.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
}

impl OfCache {
    fn of(caches: &Hierarchy, name: String, cache: &Cache) -> OfCache {
        let (config, counts, types) = (cache.config(), cache.counts(), caches.types(&name));
        let counted = |kind: Type| {
            let (accesses, misses) = (counts.accesses[kind as usize], counts.misses[kind as usize]);
            types.contains(&kind).then_some(Counted { accesses, misses })
        };
        let [read, write, fetch, written] = ALL.map(counted);
        OfCache {
            size: config.geometry.size(),
            ways: config.geometry.ways(),
            line: config.geometry.line(),
            sets: config.geometry.sets(),
            policy: config.policy.name(),
            write_policy: config.write.name(),
            allocate: config.allocate,
            types: Types { read, write, fetch, written },
            straddling: name.starts_with("l1").then_some(counts.straddling),
            evictions: counts.evictions,
            write_backs: counts.write_backs,
            passed_on: counts.writes_through,
            dirty_at_end: cache.dirty(),
            name,
        }
    }
}

pub fn json(caches: &Hierarchy, format: Format) -> String {
    let memory = caches.memory();
    let document = Document {
        schema: "refrain-caches-1",
        format: format.name(),
        references: caches.references(),
        passed_over: passed_over(caches.passed_over()),
        caches: caches.caches().into_iter().map(|(name, cache)| OfCache::of(caches, name, cache)).collect(),
        memory: Memory { lines_read: memory.lines_read, writes: memory.writes },
    };
    json::text(&document) + "\n"
}

/// Types that a cache of the curve has references of, and all of them if there are several.
fn columns(name: &str, distances: &Distances) -> Vec<(String, Vec<Type>)> {
    let there: Vec<Type> =
        ALL[..3].iter().copied().filter(|kind| distances.references()[*kind as usize] > 0).collect();
    let mut out: Vec<_> = there.iter().map(|kind| (kind.name().to_owned(), vec![*kind])).collect();
    if there.len() > 1 {
        out.push((name.to_owned(), there));
    }
    out
}

fn sum(counts: &[u64; 3], types: &[Type]) -> u64 {
    types.iter().map(|kind| counts[*kind as usize]).sum()
}

/// Powers of two, up to where only first uses miss.
fn sizes(distances: &[(&str, &Distances)]) -> Vec<u64> {
    let lines = distances.iter().map(|(_, distances)| distances.lines()).max().unwrap_or(0);
    (0..=lines.max(1).next_power_of_two().trailing_zeros()).map(|shift| 1 << shift).collect()
}

pub fn curve_table(curve: &Curve, format: Format) -> String {
    let caches = curve.caches();
    let mut out = format!("{} as {}", plural(curve.references(), "reference"), format.name());
    let passed_over: u64 = curve.passed_over().iter().sum();
    if passed_over > 0 {
        out.push_str(&format!(", {} of unknown type passed over", thousands(passed_over)));
    }
    out.push_str(&format!(
        "\nmiss ratios of fully associative LRU caches with lines of {} bytes\n\n",
        curve.line()
    ));
    let sizes = sizes(&caches);
    let mut heading = vec!["size".to_owned(), "lines".to_owned()];
    let mut rows: Vec<Vec<String>> =
        sizes.iter().map(|size| vec![short_size(size * curve.line()), thousands(*size)]).collect();
    let mut references = vec!["references".to_owned(), String::new()];
    let mut first = vec!["first use".to_owned(), String::new()];
    let mut lines = vec!["lines".to_owned(), String::new()];
    for (name, distances) in &caches {
        let misses = distances.misses(sizes.iter().copied());
        let columns = columns(name, distances);
        for (at, (heading_of, types)) in columns.iter().enumerate() {
            heading.push(heading_of.clone());
            let all = sum(&distances.references(), types);
            for (row, misses) in rows.iter_mut().zip(&misses) {
                row.push(percent(sum(misses, types), all));
            }
            references.push(thousands(all));
            first.push(thousands(sum(&distances.first(), types)));
            let last = at + 1 == columns.len();
            lines.push(if last { thousands(distances.lines()) } else { String::new() });
        }
    }
    let mut table = Table::of(heading);
    rows.into_iter().chain([references, first, lines]).for_each(|row| table.push(row));
    out.push_str(&table.render());
    out.push_str("\nfirst use: references to a line for the first time, which miss in any size; lines: how many there are\n");
    out
}

#[derive(Serialize)]
struct CurveDocument {
    schema: &'static str,
    format: &'static str,
    references: u64,
    #[serde(serialize_with = "json::pairs")]
    passed_over: Vec<(&'static str, u64)>,
    line: u64,
    caches: Vec<OfDistances>,
}

#[derive(Serialize)]
struct OfDistances {
    name: &'static str,
    lines: u64,
    references: ByType,
    first_uses: ByType,
    curve: Vec<OfSize>,
    /// Each with its reads, writes and fetches.
    distances: Vec<[u64; 4]>,
}

#[derive(Serialize)]
struct OfSize {
    size: u64,
    lines: u64,
    miss_ratio: f64,
    misses: ByType,
}

#[derive(Serialize)]
struct ByType {
    read: u64,
    write: u64,
    fetch: u64,
}

impl From<[u64; 3]> for ByType {
    fn from([read, write, fetch]: [u64; 3]) -> ByType {
        ByType { read, write, fetch }
    }
}

impl OfDistances {
    fn of(name: &'static str, distances: &Distances, line: u64, sizes: &[u64]) -> OfDistances {
        let all: u64 = distances.references().iter().sum();
        let of_size = |(&lines, misses): (&u64, [u64; 3])| OfSize {
            size: lines * line,
            lines,
            miss_ratio: if all == 0 { 0.0 } else { misses.iter().sum::<u64>() as f64 / all as f64 },
            misses: misses.into(),
        };
        let rows = distances.rows().map(|(distance, [read, write, fetch])| [distance, read, write, fetch]);
        OfDistances {
            name,
            lines: distances.lines(),
            references: distances.references().into(),
            first_uses: distances.first().into(),
            curve: sizes.iter().zip(distances.misses(sizes.iter().copied())).map(of_size).collect(),
            distances: rows.collect(),
        }
    }
}

pub fn curve_json(curve: &Curve, format: Format) -> String {
    let caches = curve.caches();
    let (sizes, line) = (sizes(&caches), curve.line());
    let of_cache = |(name, distances)| OfDistances::of(name, distances, line, &sizes);
    let document = CurveDocument {
        schema: "refrain-curve-1",
        format: format.name(),
        references: curve.references(),
        passed_over: passed_over(curve.passed_over()),
        line,
        caches: caches.into_iter().map(of_cache).collect(),
    };
    json::text(&document) + "\n"
}
