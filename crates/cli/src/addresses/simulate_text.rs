//! What a simulation came to, for people and for programs.

use refrain_addresses::simulate::{ALL, Cache, Curve, Distances, Hierarchy, Type, Write, short_size};
use refrain_addresses::{Format, kind};
use refrain_views::human::{plural, thousands};
use refrain_views::json::{Object, array};
use refrain_views::table::Table;

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

pub fn json(caches: &Hierarchy, format: Format) -> String {
    let mut out = String::new();
    let mut object = Object::document(&mut out, "caches");
    object.text("format", format.name()).plain("references", caches.references());
    let mut passed = Object::new(object.key("passed_over"));
    for (n, count) in caches.passed_over().into_iter().enumerate().filter(|(_, count)| *count > 0) {
        passed.plain(kind::NAMES[n], count);
    }
    passed.end();
    array(caches.caches(), object.key("caches"), |(name, cache), out| {
        let (config, counts) = (cache.config(), cache.counts());
        let mut object = Object::new(out);
        object
            .text("name", &name)
            .plain("size", config.geometry.size())
            .plain("ways", config.geometry.ways())
            .plain("line", config.geometry.line())
            .plain("sets", config.geometry.sets())
            .text("policy", config.policy.name())
            .text("write_policy", config.write.name())
            .plain("allocate", config.allocate);
        for kind in caches.types(&name) {
            let mut counted = Object::new(object.key(kind.name()));
            counted
                .plain("accesses", counts.accesses[kind as usize])
                .plain("misses", counts.misses[kind as usize]);
            counted.end();
        }
        if name.starts_with("l1") {
            object.plain("straddling", counts.straddling);
        }
        object
            .plain("evictions", counts.evictions)
            .plain("write_backs", counts.write_backs)
            .plain("passed_on", counts.writes_through)
            .plain("dirty_at_end", cache.dirty());
        object.end();
    });
    let mut memory = Object::new(object.key("memory"));
    memory.plain("lines_read", caches.memory().lines_read).plain("writes", caches.memory().writes);
    memory.end();
    object.end();
    out.push('\n');
    out
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
    if curve.passed_over() > 0 {
        out.push_str(&format!(", {} of unknown type passed over", thousands(curve.passed_over())));
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

pub fn curve_json(curve: &Curve, format: Format) -> String {
    let caches = curve.caches();
    let sizes = sizes(&caches);
    let mut out = String::new();
    let mut object = Object::document(&mut out, "curve");
    object
        .text("format", format.name())
        .plain("references", curve.references())
        .plain("passed_over", curve.passed_over())
        .plain("line", curve.line());
    array(&caches, object.key("caches"), |(name, distances), out| {
        let mut object = Object::new(out);
        object.text("name", name).plain("lines", distances.lines());
        by_type(object.key("references"), &distances.references());
        by_type(object.key("first_uses"), &distances.first());
        let misses = distances.misses(sizes.iter().copied());
        array(sizes.iter().zip(&misses), object.key("curve"), |(size, misses), out| {
            let all: u64 = distances.references().iter().sum();
            let ratio = if all == 0 { 0.0 } else { misses.iter().sum::<u64>() as f64 / all as f64 };
            let mut row = Object::new(out);
            row.plain("size", size * curve.line()).plain("lines", size).plain("miss_ratio", ratio);
            by_type(row.key("misses"), misses);
            row.end();
        });
        array(distances.rows(), object.key("distances"), |(distance, [read, write, fetch]), out| {
            out.push_str(&format!("[{distance},{read},{write},{fetch}]"));
        });
        object.end();
    });
    object.end();
    out.push('\n');
    out
}

fn by_type(out: &mut String, counts: &[u64; 3]) {
    let mut object = Object::new(out);
    for kind in &ALL[..3] {
        object.plain(kind.name(), counts[*kind as usize]);
    }
    object.end();
}
