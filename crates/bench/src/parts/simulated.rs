//! Simulated ranks (`examples/scale.rs` of the crate `scale`), and orders that no folder likes.

use std::path::PathBuf;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::Bench;
use crate::parts::patterns::simulation_limit;
use crate::readings::numbers;
use crate::row::Unit::{self, Bytes, BytesEach, Count, MiB, Ns, Percent, Seconds};
use crate::table::Table;
use crate::task::Task;

/// The columns of `scale` behind the pattern, ranks and steps.
const COLUMNS: [(&str, Unit); 11] = [
    ("calls", Count),
    ("bytes", Bytes),
    ("symbols", Count),
    ("structs", Count),
    ("streams", Count),
    ("kinds", Count),
    ("ranks s", Seconds),
    ("merge s", Seconds),
    ("path s", Seconds),
    ("write s", Seconds),
    ("peak MiB", MiB),
];

pub fn simulator(bench: &Bench) -> Result<PathBuf> {
    bench.example("refrain-scale", "scale")
}

/// What `scale` printed, as rows. Lines that are none (`--sections`) come back.
pub fn scale_rows(bench: &mut Bench, said: &str) -> Result<Vec<String>> {
    let mut others = Vec::new();
    for line in said.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with(' ') || words.len() != 3 + COLUMNS.len() {
            others.push(line.to_owned());
            continue;
        }
        let amounts = words[3..].iter().map(|word| word.parse::<f64>().ok());
        let values: Vec<_> =
            COLUMNS.iter().zip(amounts).map(|((name, unit), amount)| (*name, unit.of(amount))).collect();
        bench.row(&[("pattern", &words[0]), ("ranks", &words[1]), ("steps", &words[2])], &values)?;
    }
    Ok(others)
}

pub fn scale(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let scale = simulator(bench)?;
    let ran = Task::new(scale).args(["--threads", "2"]).args(given.0).limit(36_000).run()?;
    bench.table(Table::new("scale", "Simulated ranks, on 2 threads"));
    let others = scale_rows(bench, &ran.out)?;
    others.iter().for_each(|line| bench.note(line));
    Ok(())
}

pub fn finalize(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let (most, limit) = (given.number(0, 65_536)?, simulation_limit());
    let scale = simulator(bench)?;
    bench.table(Table::new(
        "finalize",
        "Merging simulated ranks of so many kinds (4 steps): behaviours differ in structure and numbers, values in numbers only\n\
         path: processor time of the merges on the longest way up the tree; peak: memory at rank 0",
    ));
    let mut late = Vec::new();
    for ranks in [1024, 16_384, 65_536].into_iter().filter(|ranks| *ranks <= most) {
        let kinds = [1, 9, 27, 500, ranks].map(|kinds| format!("behaviours:{kinds}"));
        for kind in kinds.into_iter().chain([format!("values:{ranks}")]) {
            let ran = Task::new(&scale).args([&kind, &ranks.to_string(), "4"]).limit(limit).attempt()?;
            match ran.code {
                Some(0) => drop(scale_rows(bench, &ran.out)?),
                _ => late.push(format!("{kind} on {ranks} ranks: not within {limit} s")),
            }
        }
    }
    late.iter().for_each(|line| bench.note(line));
    Ok(())
}

/// Widths of the first two columns that `examples/hostile.rs` prints.
const ORDER: usize = 46;
const FOLDER: usize = 11;

pub fn hostile(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let hostile = bench.example("refrain-fold", "hostile")?;
    let said = Task::new(hostile).args(given.0).limit(36_000).run()?.out;
    let mut lines = said.lines().skip(1);
    let lengths = numbers(lines.next().unwrap_or_default());
    bench.table(Table::new("hostile", "ns an event: push, and finish").across(&["events"]));
    let mut order = String::new();
    let mut held = Vec::new();
    for line in lines {
        let Some((named, folder, figures)) = fields(line) else {
            return Err(format!("no row: {line}").into());
        };
        order = if named.is_empty() { order } else { named };
        for (events, pair) in lengths.iter().zip(figures.chunks(2)) {
            let [push, finish] = pair[..] else { break };
            bench.row(
                &[("order", &order), ("folder", &folder), ("events", &events)],
                &[("push", Ns.of(push)), ("finish", Ns.of(finish))],
            )?;
        }
        held.push((order.clone(), folder, figures.last().copied()));
    }
    bench.table(
        Table::new("memory", "Bytes an event that the folder holds, of the longest").across(&["folder"]),
    );
    for (order, folder, bytes) in held {
        bench.row(&[("order", &order), ("folder", &folder)], &[("held", BytesEach.of(bytes))])?;
    }
    Ok(())
}

/// What comes out of each folder for sequences from regular to random: no chance in it, so that every change shows.
pub fn folders(bench: &mut Bench, _: &Arguments) -> Result<()> {
    let said = Task::new(bench.example("refrain-fold", "folded")?).limit(3600).run()?.out;
    bench.table(Table::new(
        "folders",
        "What a million symbols or numbers become: items, bytes packed and held, percent foreseen",
    ));
    for line in said.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [sequence, folder, items, terms, packed, held, foreseen] = fields[..] else {
            return Err(format!("no row: {line}").into());
        };
        let number = |text: &str| text.parse::<f64>().ok();
        let mut values = vec![
            ("items", Count.of(number(items))),
            ("terms", Count.of(number(terms))),
            ("packed", Bytes.of(number(packed))),
            ("held", Bytes.of(number(held))),
        ];
        values.extend(number(foreseen).map(|percent| ("foreseen", Percent.of(percent))));
        bench.row(&[("sequence", &sequence), ("folder", &folder)], &values)?;
    }
    Ok(())
}

/// The order (empty where it is the one before), the folder, and the numbers of a line.
fn fields(line: &str) -> Option<(String, String, Vec<f64>)> {
    let chars: Vec<char> = line.chars().collect();
    let text = |range: &[char]| range.iter().collect::<String>();
    let order = text(chars.get(..ORDER)?).trim().to_owned();
    let folder = text(chars.get(ORDER + 1..ORDER + 1 + FOLDER)?).trim().to_owned();
    Some((order, folder, numbers(&text(chars.get(ORDER + 1 + FOLDER..)?))))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_of_hostile_orders_is_understood() {
        let line = format!(
            "{:46} {:11}{:9.0} + {:6.0}{:9.0} + {:6.0}{:8.1}",
            "all different, twice", "grammar", 50, 1, 60, 2, 3.5
        );
        let (order, folder, numbers) = super::fields(&line).unwrap();
        assert_eq!((order.as_str(), folder.as_str()), ("all different, twice", "grammar"));
        assert_eq!(numbers, [50.0, 1.0, 60.0, 2.0, 3.5]);
    }
}
