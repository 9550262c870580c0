//! The statistics of an address trace, for people and for programs.

use refrain_addresses::stats::{LINE, PAGE, Report, Stream, TIME_CLASSES, Touched, WIDTHS};
use refrain_addresses::{Format, kind};
use refrain_views::human::{plural, size, thousands};
use refrain_views::json;
use refrain_views::table::Table;
use serde::{Serialize, Serializer};

/// Kinds that occur, with their streams.
fn streams(report: &Report) -> Vec<(usize, &Stream)> {
    report.streams.iter().enumerate().filter(|(_, stream)| stream.count > 0).collect()
}

fn label(number: usize) -> String {
    format!("{number} {}", kind::NAMES[number])
}

fn share(n: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { n as f64 / of as f64 }
}

fn fraction(n: u64, of: u64) -> String {
    format!("{:.4}", share(n, of))
}

fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}

pub fn table(report: &Report, format: Format) -> String {
    let all = &report.all;
    let mut out = format!(
        "{} as {}, {}",
        plural(all.count, "reference"),
        format.name(),
        size(report.packing.original.into())
    );
    match report.fields.names() {
        names if names.is_empty() => out.push('\n'),
        names => out.push_str(&format!(", with {}\n", names.join(" and "))),
    }
    if all.count == 0 {
        return out;
    }
    let rows: Vec<(String, &Stream)> =
        streams(report).into_iter().map(|(n, s)| (label(n), s)).chain([("all".to_owned(), all)]).collect();
    out.push_str(&counts(report, &rows));
    out.push_str(&footprint(report));
    out.push_str(&offsets(report, &rows));
    out.push_str(&repeats(report));
    if report.fields.times {
        out.push_str("\ntime after the reference before, as a share of each kind\n");
        let mut table = Table::of([&["kind"], &TIME_CLASSES[..]].concat());
        for (name, stream) in &rows {
            table.push(
                [name.clone()].into_iter().chain(stream.times.map(|n| fraction(n, stream.count))).collect(),
            );
        }
        out.push_str(&table.render());
    }
    if report.words.total() > 0 {
        let common: u64 = report.words.most_common().iter().map(|(_, count)| count).sum();
        out.push_str(&format!(
            "\n{} different instruction words; the 256 most common are {} of all\n",
            thousands(report.words.distinct() as u64),
            percent(share(common, report.words.total()))
        ));
    }
    out.push_str(&packing(report));
    out
}

fn counts(report: &Report, rows: &[(String, &Stream)]) -> String {
    let exact = format!("{:+}", report.step);
    let adjacent = if report.fields.sizes { "adjacent" } else { "" };
    let mut table =
        Table::of(vec!["kind", "references", "bits", "bytes", &exact, "steady", "repeated", adjacent]);
    for (name, stream) in rows {
        table.push(vec![
            name.clone(),
            thousands(stream.count),
            format!("{:.2}", stream.locality_bits()),
            format!("{:.2}", stream.locality_bytes()),
            fraction(stream.exact, stream.count),
            fraction(stream.steady, stream.count),
            fraction(stream.count - stream.repeats.runs(), stream.count),
            if report.fields.sizes { fraction(stream.adjacent, stream.count) } else { String::new() },
        ]);
    }
    let sizes = if report.fields.sizes { "; adjacent: begin where the one before ends" } else { "" };
    format!(
        "\n{}bits, bytes: mean distance to the one before of its kind; {exact}: exactly that far; steady: as far as the one\n\
         before it; repeated: of the kind of the reference right before, and as far on{sizes}\n",
        table.render()
    )
}

fn footprint(report: &Report) -> String {
    let touched = &report.footprint;
    let mut table = Table::of(vec!["kind", "lines", "", "pages", ""]);
    let kinds = streams(report).into_iter().map(|(n, _)| (label(n), touched.kinds[n]));
    for (name, Touched { lines, pages }) in kinds.chain([("all".to_owned(), touched.all)]) {
        table.push(vec![
            name,
            thousands(lines),
            size(u128::from(lines) * u128::from(LINE)),
            thousands(pages),
            size(u128::from(pages) * u128::from(PAGE)),
        ]);
    }
    let least = if touched.exact { "" } else { "; at least: these are the first pages, and there are more" };
    let sizes = if report.fields.sizes { "" } else { "; no sizes: each reference is in one line" };
    format!(
        "\nmemory touched: different lines of {LINE} bytes and pages of {}{least}{sizes}\n{}",
        size(PAGE.into()),
        table.render()
    )
}

fn offsets(report: &Report, rows: &[(String, &Stream)]) -> String {
    let wide = report.all.by_width()[3] > 0;
    let widths = if wide { 4 } else { 3 };
    let names: Vec<String> = WIDTHS[..widths]
        .iter()
        .map(|n| if *n == 1 { "1 byte".into() } else { format!("{n} bytes") })
        .collect();
    let exact = format!("{:+}", report.step);
    let mut heading = vec!["kind".to_owned()];
    heading.extend(names.iter().rev().map(|name| format!("-{name}")));
    heading.push(exact);
    heading.extend(names.iter().map(|name| format!("+{name}")));
    let mut table = Table::of(heading);
    for (name, stream) in rows {
        let mut cells = vec![name.clone()];
        cells.extend(stream.negative[..widths].iter().rev().map(|n| fraction(*n, stream.count)));
        cells.push(fraction(stream.exact, stream.count));
        cells.extend(stream.positive[..widths].iter().map(|n| fraction(*n, stream.count)));
        table.push(cells);
    }
    format!(
        "\noffsets from the one before of the kind, by sign and bytes, as a share of each kind\n{}",
        table.render()
    )
}

fn repeats(report: &Report) -> String {
    let kinds = streams(report);
    let mut heading = vec!["repeats".to_owned()];
    heading.extend(kinds.iter().map(|(n, _)| label(*n)));
    let mut table = Table::of(heading);
    for (from, to, _) in report.all.repeats.rows() {
        let mut cells = vec![if from == to { from.to_string() } else { format!("{from}..{to}") }];
        for (_, stream) in &kinds {
            let count = stream.repeats.rows().iter().find(|row| row.0 == from).map(|row| row.2);
            cells.push(count.map(thousands).unwrap_or_default());
        }
        table.push(cells);
    }
    format!("\nhow often a reference is repeated at once, by kind\n{}", table.render())
}

fn packing(report: &Report) -> String {
    let packing = &report.packing;
    let mut table = Table::of(vec!["packed as", "bytes", "bytes/reference", ""]);
    let mut row = |name: &str, bytes: u64, what: String| {
        let each = format!("{:.3}", bytes as f64 / report.all.count as f64);
        table.push(vec![name.to_owned(), thousands(bytes), each, what]);
    };
    row("original", packing.original, String::new());
    row("binary", packing.binary, format!("overhead {}", percent(packing.overhead())));
    row("no repeats", packing.no_repeats, format!("locality {}", percent(packing.locality())));
    row(packing.format.name(), packing.pdats, format!("sequentiality {}", percent(packing.sequentiality())));
    if let Some(lz) = packing.lz {
        row(&format!("{}.gz", packing.format.name()), lz, String::new());
    }
    let mut out = format!(
        "\n{}overhead: of the format beside kind and address; locality: saved by offsets in place of addresses;\n\
         sequentiality: saved by counting what is repeated\ncompression {:.2}",
        table.render(),
        packing.compression()
    );
    if let Some(lz) = packing.lz_compression() {
        out.push_str(&format!(", with gzip {lz:.2}"));
    }
    out.push('\n');
    out
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    format: &'static str,
    references: u64,
    step: i64,
    fields: Vec<&'static str>,
    kinds: Vec<OfKind>,
    all: OfStream,
    footprint: Footprint,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Words>,
    packing: Packing,
}

#[derive(Serialize)]
struct OfKind {
    kind: usize,
    name: &'static str,
    #[serde(flatten)]
    stream: OfStream,
}

#[derive(Serialize)]
struct OfStream {
    references: u64,
    lines: u64,
    pages: u64,
    locality_bits: f64,
    locality_bytes: f64,
    exact: u64,
    steady: u64,
    repeated: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    adjacent: Option<u64>,
    /// Offsets by the bytes that they take.
    #[serde(serialize_with = "json::pairs")]
    negative: Vec<(String, u64)>,
    #[serde(serialize_with = "json::pairs")]
    positive: Vec<(String, u64)>,
    repeats: Vec<Repeats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<Times>,
}

#[derive(Serialize)]
struct Repeats {
    from: u64,
    to: u64,
    runs: u64,
}

/// By class.
struct Times([u64; TIME_CLASSES.len()]);

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(TIME_CLASSES.iter().zip(&self.0))
    }
}

#[derive(Serialize)]
struct Footprint {
    line: u64,
    page: u64,
    exact: bool,
}

#[derive(Serialize)]
struct Words {
    fetches: u64,
    different: usize,
    most_common: Vec<(String, u64)>,
}

#[derive(Serialize)]
struct Packing {
    format: &'static str,
    original: u64,
    binary: u64,
    no_repeats: u64,
    pdats: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pdats_gzip: Option<u64>,
    overhead: f64,
    locality: f64,
    sequentiality: f64,
    compression: f64,
}

impl OfStream {
    fn of(report: &Report, stream: &Stream, touched: Touched) -> OfStream {
        let by_width =
            |counts: &[u64]| WIDTHS.iter().zip(counts).map(|(bytes, n)| (bytes.to_string(), *n)).collect();
        let repeats = stream.repeats.rows().into_iter().map(|(from, to, runs)| Repeats { from, to, runs });
        OfStream {
            references: stream.count,
            lines: touched.lines,
            pages: touched.pages,
            locality_bits: stream.locality_bits(),
            locality_bytes: stream.locality_bytes(),
            exact: stream.exact,
            steady: stream.steady,
            repeated: stream.count - stream.repeats.runs(),
            adjacent: report.fields.sizes.then_some(stream.adjacent),
            negative: by_width(&stream.negative),
            positive: by_width(&stream.positive),
            repeats: repeats.collect(),
            times: report.fields.times.then_some(Times(stream.times)),
        }
    }
}

pub fn json(report: &Report, format: Format) -> String {
    let (packing, words) = (&report.packing, &report.words);
    let kind = |(number, stream): (usize, &Stream)| OfKind {
        kind: number,
        name: kind::NAMES[number],
        stream: OfStream::of(report, stream, report.footprint.kinds[number]),
    };
    let most_common = || words.most_common().into_iter().map(|(word, count)| (format!("{word:08x}"), count));
    let document = Document {
        schema: "refrain-addresses-1",
        format: format.name(),
        references: report.all.count,
        step: report.step,
        fields: report.fields.names(),
        kinds: streams(report).into_iter().map(kind).collect(),
        all: OfStream::of(report, &report.all, report.footprint.all),
        footprint: Footprint { line: LINE, page: PAGE, exact: report.footprint.exact },
        words: (words.total() > 0).then(|| Words {
            fetches: words.total(),
            different: words.distinct(),
            most_common: most_common().collect(),
        }),
        packing: Packing {
            format: packing.format.name(),
            original: packing.original,
            binary: packing.binary,
            no_repeats: packing.no_repeats,
            pdats: packing.pdats,
            pdats_gzip: packing.lz,
            overhead: packing.overhead(),
            locality: packing.locality(),
            sequentiality: packing.sequentiality(),
            compression: packing.compression(),
        },
    };
    json::text(&document) + "\n"
}
