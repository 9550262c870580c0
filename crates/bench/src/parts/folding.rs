//! Folding and merging by themselves: the examples of `fold` and `references` that measure one long run.

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::Bench;
use crate::readings::{number_after, number_before, numbers};
use crate::row::Unit::{Bytes, BytesEach, Count, Ms, Ns, Seconds, Share};
use crate::table::Table;
use crate::task::Task;

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
        values.extend(number(foreseen).map(|percent| ("foreseen", Share.of(percent))));
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

/// How wide `examples/loops_growth.rs` prints its three numbers.
const GROWTH: usize = 36;

/// Whether folding into loops stays linear.
pub fn growth(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let events = given.number(0, 25_000)?;
    let example = bench.example("refrain-fold", "loops_growth")?;
    let said = Task::new(example).arg(events.to_string()).args(given.rest(1)).limit(3600).run()?.out;
    let title = "Nanoseconds a push into loops takes, for sequences whose alphabet or bodies grow with them, by events";
    bench.table(Table::new("growth", title).across(&["events"]));
    let mut name = String::new();
    for line in said.lines().skip(1) {
        let (named, figures) = line.split_at(line.len().saturating_sub(GROWTH));
        let paths = if named.trim().is_empty() { "with" } else { "without" };
        name = if named.trim().is_empty() { name } else { named.trim().to_owned() };
        for (times, each) in [1, 2, 4].into_iter().zip(numbers(figures)) {
            let keys: [(&str, &dyn std::fmt::Display); 3] =
                [("sequence", &name), ("call paths", &paths), ("events", &(times * events))];
            bench.row(&keys, &[("push", Ns.of(each))])?;
        }
    }
    Ok(())
}

/// Bringing the ranks of a periodic grid together.
pub fn merge(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let (side, dimensions) = (given.number(0, 16)?, given.number(1, 3)?);
    let example = bench.example("refrain-fold", "merge_scale")?;
    let said = Task::new(example).args([side.to_string(), dimensions.to_string()]).limit(3600).run()?.out;
    bench.table(Table::new("merge", "The ranks of a periodic grid, merged in one process"));
    let values = [
        ("ranks", Count.of(number_before(&said, " ranks"))),
        ("merged", Seconds.of(number_after(&said, "merged in "))),
        ("final form", Seconds.of(number_after(&said, "final form in "))),
        ("cohorts", Count.of(number_before(&said, " cohorts"))),
        ("streams", Count.of(number_before(&said, " streams"))),
        ("bytes", Bytes.of(number_before(&said, " bytes"))),
    ];
    bench.row(&[("side", &side), ("dimensions", &dimensions)], &values)
}

/// Kernels whose references are known, recorded on several threads.
pub fn kernels(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let (size, folding) = (given.number(0, 128)?, given.word(1, "rules").to_owned());
    let example = bench.example("refrain-references", "kernels")?;
    let said = Task::new(example).args([&size.to_string(), &folding]).limit(3600).run()?.out;
    let title =
        format!("Kernels whose references are known, folded into {folding}: bytes, nanoseconds a reference");
    bench.table(Table::new("kernels", &title).with("size", size).with("folding", &folding));
    for line in said.lines().skip(1) {
        let (Some(kernel), Some(figures)) = (line.get(..12), line.get(12..)) else { continue };
        let [threads, references, bytes, fold, ref others @ ..] = numbers(figures)[..] else {
            return Err(format!("no row: {line}").into());
        };
        let mut values =
            vec![("references", Count.of(references)), ("bytes", Bytes.of(bytes)), ("fold", Ns.of(fold))];
        // What did not fit into memory went aside, and is not joined.
        if let [join, check] = others {
            values.extend([("join", Ms.of(*join)), ("check", Ns.of(*check))]);
        }
        bench.row(&[("kernel", &kernel.trim()), ("threads", &threads)], &values)?;
    }
    Ok(())
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
