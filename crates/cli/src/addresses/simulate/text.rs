//! What a simulation came to, for people.

use refrain_addresses::kind;
use refrain_addresses::simulate::{Class, Hierarchy, Inclusion, Lookups, Part, Write, short_size};
use refrain_views::human::{plural, thousands};
use refrain_views::table::Table;

use super::caches::{inclusion, written};
use super::runs::{Run, Runs, all_traffic};
use super::{Order, Traced, Whose, places};

pub fn percent(n: u64, of: u64) -> String {
    match of {
        0 => String::new(),
        of => format!("{:.3}%", 100.0 * n as f64 / of as f64),
    }
}

pub fn table(runs: &Runs, traced: Traced, whose: Option<&mut Whose<'_>>) -> String {
    let Some(first) = runs.all.first() else { return String::new() };
    let mut out = heading(&first.caches, traced);
    match &runs.all[..] {
        [run] => out.push_str(&one(&run.caches)),
        several => out.push_str(&all(several)),
    }
    if !first.intervals.is_empty() {
        out.push_str(&intervals(&runs.all));
    }
    out.push_str(&tlbs(runs));
    if let Some(Whose { by, places, sources }) = whose {
        for run in &runs.all {
            if runs.all.len() > 1 {
                out.push_str(&format!("\n{}\n", shown(&run.caches)));
            }
            out.push_str(&places::table(&run.caches, *by, places, sources));
        }
    }
    out
}

fn tlbs(runs: &Runs) -> String {
    let lookups = runs.lookups();
    if lookups.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["", "look-ups", "misses", "miss ratio"]);
    for (name, pages, Lookups { accesses, misses }) in lookups {
        let what = format!(
            "{name}: {} entries, {} ways, pages of {}",
            pages.entries,
            pages.ways,
            short_size(pages.page)
        );
        row(&mut table, what, accesses.iter().sum(), misses.iter().sum());
    }
    format!("\n{}", table.render())
}

/// `l1d 32K,8,64, l2 1M,16,64`
fn shown(caches: &Hierarchy) -> String {
    let shown = caches.caches().into_iter().map(|(name, part)| format!("{name} {}", written(part.config())));
    shown.collect::<Vec<String>>().join(", ")
}

/// Misses by class, where they are told apart.
fn classes(caches: &Hierarchy) -> String {
    let shown = shown_classes(caches);
    let heading = ["misses"].into_iter().chain(shown.iter().map(|class| class.name()));
    let mut table = Table::of(heading.map(str::to_owned).collect());
    let mut any = false;
    for (name, part) in caches.caches() {
        any |= part.is_classified();
        let counts = shown.iter().map(|class| thousands(part.counts().classes[*class as usize]));
        table.push([name].into_iter().chain(counts).collect());
    }
    if any { format!("\n{}", table.render()) } else { String::new() }
}

/// The classes that these caches can have.
fn shown_classes(caches: &Hierarchy) -> Vec<Class> {
    Class::ALL.into_iter().chain(caches.protocol().map(|_| Class::Coherence)).collect()
}

fn heading(caches: &Hierarchy, traced: Traced) -> String {
    let mut out = format!("{} as {}\n", plural(caches.references(), "reference"), traced.format.name());
    if !traced.sizes {
        out.push_str("the trace has no sizes: each reference is taken to be in one line\n");
    }
    let cores = plural(caches.cores() as u64, "core");
    match traced.order {
        Some(Order::Turns { threads, turn }) => out.push_str(&format!(
            "{} on {cores}, in turns of {}\n",
            plural(threads as u64, "thread"),
            plural(turn, "reference")
        )),
        Some(Order::Trace) => out.push_str(&format!("threads on {cores}, in the order of the trace\n")),
        None => {}
    }
    for (n, count) in caches.passed_over().into_iter().enumerate().filter(|(_, count)| *count > 0) {
        let of = format!("{} of kind {n}, {}", plural(count, "reference"), kind::NAMES[n]);
        out.push_str(&format!("passed over, for there is no cache for them: {of}\n"));
    }
    out.push('\n');
    out
}

/// Of all types together.
fn total(part: &Part) -> (u64, u64) {
    let counts = part.counts();
    let of = |counts: &[u64]| part.types().iter().map(|kind| counts[*kind as usize]).sum();
    (of(&counts.accesses), of(&counts.misses))
}

/// One configuration a row.
fn all(runs: &[Run]) -> String {
    // Configurations differ in their numbers, not in which caches there are.
    let names = runs[0].caches.caches();
    let classified = names.iter().any(|(_, part)| part.is_classified());
    let shown = if classified { shown_classes(&runs[0].caches) } else { Vec::new() };
    let mut heading: Vec<String> = names
        .iter()
        .flat_map(|(name, _)| {
            let plain = [name.as_str(), "accesses", "misses", "miss ratio"];
            plain.into_iter().chain(shown.iter().map(|class| class.name()))
        })
        .map(str::to_owned)
        .collect();
    heading.extend(["memory lines read".to_owned(), "memory writes".to_owned()]);
    let coherent = runs[0].caches.protocol().is_some();
    if coherent {
        heading.extend(["invalidations", "true sharing", "false sharing"].map(str::to_owned));
    }
    let mut table = Table::of(heading);
    for run in runs {
        let mut row = Vec::new();
        for (_, part) in run.caches.caches() {
            let (accesses, misses) = total(&part);
            row.extend([
                written(part.config()),
                thousands(accesses),
                thousands(misses),
                percent(misses, accesses),
            ]);
            row.extend(shown.iter().map(|class| thousands(part.counts().classes[*class as usize])));
        }
        let memory = run.caches.memory();
        row.extend([thousands(memory.lines_read), thousands(memory.writes)]);
        if coherent {
            let traffic = all_traffic(&run.caches);
            let own = [traffic.invalidations_sent, traffic.true_sharing, traffic.false_sharing];
            row.extend(own.map(thousands));
        }
        table.push(row);
    }
    table.render()
}

/// One interval a row; the configurations one after the other.
fn intervals(runs: &[Run]) -> String {
    let mut out = String::new();
    for run in runs {
        let caches = run.caches.caches();
        out.push_str("\nmisses and miss ratio over time");
        if runs.len() > 1 {
            out.push_str(&format!(", {}", shown(&run.caches)));
        }
        out.push('\n');
        let mut heading = vec!["from".to_owned(), "references".to_owned()];
        heading.extend(caches.iter().flat_map(|(name, _)| [name.clone(), String::new()]));
        heading.push("memory lines read".to_owned());
        let tlbs = run.intervals.first().map_or(&[][..], |interval| &interval.tlbs);
        heading.extend(tlbs.iter().flat_map(|(name, _)| [(*name).to_owned(), String::new()]));
        if run.caches.protocol().is_some() {
            heading.extend(["invalidations", "true sharing", "false sharing"].map(str::to_owned));
        }
        let mut table = Table::of(heading);
        let mut from = 0;
        for interval in &run.intervals {
            let mut row = vec![thousands(from), thousands(interval.references)];
            for counts in &interval.caches {
                let (accesses, misses) = (counts.accesses.iter().sum(), counts.misses.iter().sum());
                row.extend([thousands(misses), percent(misses, accesses)]);
            }
            row.push(thousands(interval.memory.lines_read));
            for (_, Lookups { accesses, misses }) in &interval.tlbs {
                let (lookups, misses) = (accesses.iter().sum(), misses.iter().sum());
                row.extend([thousands(misses), percent(misses, lookups)]);
            }
            if let Some(traffic) = interval.coherence {
                let own = [traffic.invalidations_sent, traffic.true_sharing, traffic.false_sharing];
                row.extend(own.map(thousands));
            }
            table.push(row);
            from += interval.references;
        }
        out.push_str(&table.render());
    }
    out
}

fn one(caches: &Hierarchy) -> String {
    let mut out = String::new();
    let mut table = Table::new(["", "accesses", "misses", "miss ratio"]);
    for (name, part) in caches.caches() {
        let counts = part.counts();
        let types = part.types();
        for kind in &types {
            let (accesses, misses) = (counts.accesses[*kind as usize], counts.misses[*kind as usize]);
            if accesses > 0 {
                row(&mut table, format!("{name} {}", kind.name()), accesses, misses);
            }
        }
        let all = total(&part);
        if types.len() > 1 || all.0 == 0 {
            row(&mut table, format!("{name} all"), all.0, all.1);
        }
    }
    out.push_str(&table.render());
    out.push('\n');
    let mut table =
        Table::new(["", "straddling", "evictions", "write-backs", "passed on", "dirty at the end"]);
    for (name, part) in caches.caches() {
        let counts = part.counts();
        let straddling = if part.level() == 1 { thousands(counts.straddling) } else { String::new() };
        table.row([
            format!("{name}: {}", described(&part)),
            straddling,
            thousands(counts.evictions),
            thousands(counts.write_backs),
            thousands(counts.writes_through),
            thousands(part.dirty()),
        ]);
    }
    out.push_str(&table.render());
    out.push_str(&traffic(caches));
    out.push_str(&classes(caches));
    out.push_str(&specials(caches));
    out.push_str(&cores(caches));
    out.push_str(&coherence(caches));
    let memory = caches.memory();
    out.push_str(&format!(
        "\nmemory: {} read, {}\n",
        plural(memory.lines_read, "line"),
        plural(memory.writes, "write")
    ));
    out
}

/// Each core's own caches, where there are several.
fn cores(caches: &Hierarchy) -> String {
    if caches.cores() == 1 {
        return String::new();
    }
    let names = caches.caches_of(0);
    let mut heading = vec![String::new()];
    for (name, _) in &names {
        heading.extend([format!("{name} accesses"), "misses".to_owned(), "miss ratio".to_owned()]);
    }
    let mut table = Table::of(heading);
    for core in 0..caches.cores() {
        let mut cells = vec![format!("core {core}")];
        for (_, part) in caches.caches_of(core) {
            let (accesses, misses) = total(&part);
            cells.extend([thousands(accesses), thousands(misses), percent(misses, accesses)]);
        }
        table.push(cells);
    }
    format!("\n{}", table.render())
}

/// What it costs that cores hear of each other.
fn coherence(caches: &Hierarchy) -> String {
    let Some(protocol) = caches.protocol() else { return String::new() };
    let mut misses =
        Table::new(["", "lines asked for", "true sharing", "false sharing", "from a core", "to a core"]);
    let mut writes =
        Table::new(["", "upgrades", "silent", "invalidations", "received", "written back for a reader"]);
    let traffic = caches.traffic().iter().copied().enumerate();
    let each = traffic.map(|(core, traffic)| (format!("core {core}"), traffic));
    for (name, traffic) in each.chain([("all".to_owned(), all_traffic(caches))]) {
        misses.row([
            name.clone(),
            thousands(traffic.reads + traffic.reads_to_write),
            thousands(traffic.true_sharing),
            thousands(traffic.false_sharing),
            thousands(traffic.transfers_in),
            thousands(traffic.transfers_out),
        ]);
        writes.row([
            name,
            thousands(traffic.upgrades),
            thousands(traffic.silent_upgrades),
            thousands(traffic.invalidations_sent),
            thousands(traffic.invalidations_received),
            thousands(traffic.write_backs),
        ]);
    }
    format!("\ncoherence: {}\n{}\n{}", protocol.name(), misses.render(), writes.render())
}

fn row(table: &mut Table, name: String, accesses: u64, misses: u64) {
    table.row([name, thousands(accesses), thousands(misses), percent(misses, accesses)]);
}

/// Bytes in and out of each, and of memory.
fn traffic(caches: &Hierarchy) -> String {
    let mut table = Table::new(["bytes", "from below", "to below"]);
    for (name, part) in caches.caches() {
        table.row([name, thousands(part.counts().bytes_in), thousands(part.counts().bytes_out)]);
    }
    let memory = caches.memory();
    table.row([
        "memory, read and written".into(),
        thousands(memory.bytes_read),
        thousands(memory.bytes_written),
    ]);
    format!("\n{}", table.render())
}

/// What only some caches do.
fn specials(caches: &Hierarchy) -> String {
    let mut out = String::new();
    for (name, part) in caches.caches() {
        let (config, counts) = (part.config(), part.counts());
        if let Some(prefetch) = config.prefetch {
            let (all, used, unused) = (counts.prefetches, counts.prefetches_used, counts.prefetches_unused);
            out.push_str(&format!(
                "{name}: {}: {} fetched, {} then used, {} left unused\n",
                prefetch.name(),
                plural(all, "line"),
                thousands(used),
                thousands(unused)
            ));
        }
        if config.victims > 0 {
            let hits = thousands(counts.victim_hits);
            out.push_str(&format!("{name}: {hits} of its misses found their line among the victims\n"));
        }
        if counts.invalidated > 0 {
            let lines = plural(counts.invalidated, "line");
            out.push_str(&format!("{name}: {lines} left because an inclusive level lost them\n"));
        }
        if counts.copied_back + counts.dropped > 0 {
            let (copied, dropped) = (plural(counts.copied_back, "line"), thousands(counts.dropped));
            out.push_str(&format!("{name}: the trace had {copied} copied back, and {dropped} invalidated\n"));
        }
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}

fn described(part: &Part) -> String {
    let config = part.config();
    let geometry = &config.geometry;
    let ways = match (geometry.sets(), geometry.ways()) {
        (1, ways) if ways > 1 => "fully associative".to_owned(),
        (_, 1) => "direct-mapped".to_owned(),
        (_, ways) => format!("{ways} ways"),
    };
    let allocate = if config.allocate { "" } else { ", no allocation" };
    let write = if config.write == Write::Back { "" } else { ", write-through" };
    let mut out = format!(
        "{}, {ways}, lines of {}, {}{write}{allocate}",
        short_size(geometry.size()),
        geometry.line(),
        config.policy.name()
    );
    if config.allocate && !config.fetch {
        out.push_str(", allocation without fetch");
    }
    if let Some(sector) = config.sector {
        out.push_str(&format!(", sectors of {sector}"));
    }
    if config.victims > 0 {
        out.push_str(&format!(", {}", plural(config.victims, "victim")));
    }
    if config.inclusion != Inclusion::Free {
        out.push_str(&format!(", {}", inclusion(config.inclusion)));
    }
    out
}
