//! What the numbers of a trace are told by: `lanes FILE`. One row for each parameter of each function, those that take most
//! first: how many lanes there are of it in all kinds of ranks, how many variants of streams they have, how many numbers in these
//! depend on the rank, how many parts the functions have that tell them and which rank has which variant, and how many terms
//! and steps are in the streams, each counted where it is used first. `structures` has the kinds of ranks.

use std::collections::{BTreeMap, HashSet};
use std::process::ExitCode;

use refrain_encode::Layout;
use refrain_fold::bundle::{Bundle, Lane, Variant};
use refrain_fold::ranks::RankMap;

#[derive(Default)]
struct Row {
    lanes: usize,
    variants: usize,
    numbers: usize,
    parts: usize,
    terms: usize,
}

/// Of the function that says which rank has which variant.
fn parts_of(variants: &[Variant]) -> usize {
    let pairs = (0i64..).zip(variants).flat_map(|(at, v)| v.ranks.iter().map(move |rank| (rank, at)));
    RankMap::loose(pairs.collect()).parts.len()
}

struct Rows<'a> {
    bundle: &'a Bundle,
    seen: HashSet<u32>,
    rows: BTreeMap<String, Row>,
}

impl Rows<'_> {
    fn add(&mut self, name: String, lane: &Lane) {
        let row = self.rows.entry(name).or_default();
        row.lanes += 1;
        for stream in lane.streams() {
            if self.seen.insert(stream)
                && let Some(stream) = self.bundle.streams.get(stream as usize)
            {
                let steps: usize = stream.shape.rules.iter().map(Vec::len).sum();
                row.terms += stream.terms.len() + steps;
            }
        }
        if let Lane::Varied(variants) = lane {
            row.variants += variants.len();
            row.parts += if variants.len() > 1 { parts_of(variants) } else { 0 };
            for number in variants.iter().flat_map(|variant| &variant.numbers) {
                row.numbers += 1;
                row.parts += number.values.parts.len();
            }
        }
    }

    fn cohorts(&mut self) -> Result<(), String> {
        for cohort in &self.bundle.cohorts {
            let structure = &self.bundle.structures[cohort.structure as usize];
            let mut lanes = cohort.lanes.iter();
            for lane in lanes.by_ref().take(structure.own_lanes()) {
                self.add("times of loops".to_owned(), lane);
            }
            for symbol in structure.symbols() {
                let symbol = &self.bundle.symbols[symbol as usize];
                let layout = Layout::parse(&symbol.bytes).map_err(|error| error.to_string())?;
                for (number, lane) in (0..symbol.lanes).zip(lanes.by_ref()) {
                    let parameters = layout.function.params.iter().enumerate();
                    let named = |(at, _): &(usize, _)| layout.lanes_of(*at).contains(&number);
                    let of = parameters.into_iter().find(named);
                    let (name, first) =
                        of.map_or(("", number), |(at, p)| (p.name, layout.lanes_of(at).start));
                    self.add(format!("{}.{name}+{}", layout.function.name, number - first), lane);
                }
            }
        }
        Ok(())
    }
}

fn show(file: &str) -> Result<(), String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let trace = refrain_tracefile::read(&bytes).map_err(|error| format!("{file}: {error}"))?;
    let mut rows = Rows { bundle: &trace.bundle, seen: HashSet::new(), rows: BTreeMap::new() };
    rows.cohorts()?;
    let mut sorted: Vec<(String, Row)> = rows.rows.into_iter().collect();
    sorted.sort_by_key(|(_, row)| usize::MAX - (row.parts + row.terms + row.numbers));
    let Bundle { cohorts, structures, .. } = &trace.bundle;
    println!("structures {} kinds of ranks {}", structures.len(), cohorts.len());
    println!(
        "{:<40} {:>7} {:>8} {:>8} {:>7} {:>7}",
        "parameter", "lanes", "variants", "numbers", "parts", "terms"
    );
    for (name, Row { lanes, variants, numbers, parts, terms }) in sorted {
        println!("{name:<40} {lanes:>7} {variants:>8} {numbers:>8} {parts:>7} {terms:>7}");
    }
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file] = &words[..] else {
        eprintln!("usage: lanes FILE");
        return ExitCode::from(2);
    };
    match show(file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
