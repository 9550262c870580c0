//! What a curve of all sizes came to, for people and for programs.

use refrain_addresses::Format;
use refrain_addresses::simulate::{ALL, Curve, Distances, Type, short_size};
use refrain_views::human::{plural, thousands};
use refrain_views::json;
use refrain_views::table::Table;
use serde::Serialize;

use super::json::{ByType, passed_over};
use super::text::percent;

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

pub fn table(curve: &Curve, format: Format) -> String {
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

pub fn json(curve: &Curve, format: Format) -> String {
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
