//! The same rows of two runs, side by side.

use crate::row::{Row, Value};
use crate::store::Stored;

/// Times that changed by less say nothing: so many percent.
pub const THRESHOLD: f64 = 10.0;

/// What a comparison found, as text.
pub fn compare(was: &Stored, now: &Stored, threshold: f64) -> String {
    let another = (was.run.cpu != now.run.cpu || was.run.cores != now.run.cores).then_some(&was.run);
    let mut counted = Counted::default();
    let mut lines = Vec::new();
    for row in &now.rows {
        let Some(before) = was.rows.iter().find(|before| same(before, row)) else {
            counted.new += 1;
            continue;
        };
        for (name, now) in &row.values {
            if let Some(was) = before.values.get(name)
                && (another.is_none() || !now.noisy())
            {
                counted.values += 1;
                lines.extend(
                    changed(was, now, threshold).map(|change| (now.noisy(), line(row, name, &change))),
                );
            }
        }
    }
    counted.gone = was.rows.iter().filter(|before| !now.rows.iter().any(|row| same(row, before))).count();
    report(was, &counted, lines, threshold, another.map(|run| run.cpu.as_str()))
}

pub fn same(one: &Row, other: &Row) -> bool {
    one.part == other.part && one.table == other.table && one.keys == other.keys
}

#[derive(Default)]
struct Counted {
    values: usize,
    new: usize,
    gone: usize,
}

fn report(
    was: &Stored,
    counted: &Counted,
    mut lines: Vec<(bool, String)>,
    threshold: f64,
    cpu: Option<&str>,
) -> String {
    let Counted { values, new, gone } = counted;
    let mut text = format!("Against {} of {}: {values} values compared", was.run.commit, was.run.date);
    for (count, what) in [(new, "new"), (gone, "not measured this time")] {
        if *count > 0 {
            text += &format!(", {count} rows {what}");
        }
    }
    if let Some(cpu) = cpu {
        text += &format!(". That was another machine ({cpu}): only sizes are compared");
    }
    if lines.is_empty() {
        return text + &format!(". No size changed, no time by more than {threshold} %\n");
    }
    text.push('\n');
    // Sizes first: they do not change by chance.
    lines.sort_by_key(|(noisy, _)| *noisy);
    let noisy = lines.iter().any(|(noisy, _)| *noisy);
    for (_, line) in lines {
        text += &format!("  {line}\n");
    }
    if noisy {
        text += &format!("~: time, memory or what differs from run to run, shown beyond {threshold} %\n");
    }
    text
}

fn line(row: &Row, name: &str, change: &str) -> String {
    let keys: Vec<String> = row.keys.iter().map(|(key, value)| named(key, value)).collect();
    format!("{}: {}: {name} {change}", row.table, keys.join(", "))
}

/// A number says nothing without the name of its key; a word does.
fn named(key: &str, value: &str) -> String {
    match value.parse::<f64>() {
        Ok(_) => format!("{key} {value}"),
        Err(_) => value.to_owned(),
    }
}

/// `was X, now Y, +Z %`, if that is worth a line.
fn changed(was: &Value, now: &Value, threshold: f64) -> Option<String> {
    let mark = if now.noisy() { "~ " } else { "" };
    let (Some(before), Some(after)) = (was.amount, now.amount) else {
        return (was.amount != now.amount).then(|| format!("{mark}was {}, now {}", was.words(), now.words()));
    };
    let percent = 100.0 * (after - before) / before.abs();
    let worth = before != after && (before == 0.0 || percent.abs() > now.least_change(threshold));
    let by = if before == 0.0 { String::new() } else { format!(", {percent:+.1} %") };
    worth.then(|| format!("{mark}was {}, now {}{by}", was.words(), now.words()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Unit;
    use crate::row::tests::row;
    use crate::store::tests::stored;

    fn change(was: Value, now: Value) -> Option<String> {
        changed(&was, &now, THRESHOLD)
    }

    #[test]
    fn sizes_are_compared_exactly() {
        assert_eq!(change(Unit::Bytes.of(1000), Unit::Bytes.of(1000)), None);
        assert_eq!(
            change(Unit::Bytes.of(1000), Unit::Bytes.of(1001)).unwrap(),
            "was 1000 B, now 1001 B, +0.1 %"
        );
    }

    #[test]
    fn times_are_compared_beyond_a_threshold() {
        assert_eq!(change(Unit::Ns.of(100.0), Unit::Ns.of(109.0)), None);
        assert_eq!(
            change(Unit::Ns.of(100.0), Unit::Ns.of(85.0)).unwrap(),
            "~ was 100.0 ns, now 85.0 ns, -15.0 %"
        );
    }

    #[test]
    fn what_varies_is_compared_as_a_time_is() {
        let polls = |polls| Unit::Count.of(polls).varies();
        assert_eq!(change(polls(100), polls(109)), None);
        assert_eq!(change(polls(100), polls(120)).unwrap(), "~ was 100, now 120, +20.0 %");
        let share = |percent: f64| Unit::Share.of(percent);
        assert_eq!(
            change(share(50.0), share(51.0)).unwrap(),
            "was 50.00 % of all, now 51.00 % of all, +2.0 %"
        );
    }

    #[test]
    fn what_swings_a_little_is_compared_beyond_a_few_percent() {
        assert_eq!(change(Unit::TimedBytes.of(100), Unit::TimedBytes.of(105)), None);
        assert_eq!(change(Unit::Instructions.of(100), Unit::Instructions.of(102)), None);
        let told = change(Unit::Instructions.of(100), Unit::Instructions.of(103)).unwrap();
        assert_eq!(told, "was 100 instructions, now 103 instructions, +3.0 %");
    }

    #[test]
    fn what_was_not_there_is_told() {
        let none = Unit::Bytes.of(None::<u64>);
        assert_eq!(change(none, none), None);
        assert_eq!(change(none, Unit::Bytes.of(5)).unwrap(), "was none, now 5 B");
        assert_eq!(change(Unit::Count.of(0), Unit::Count.of(5)).unwrap(), "was 0, now 5");
    }

    #[test]
    fn rows_are_found_by_their_keys() {
        let sizes = |ranks: &str, bytes| {
            row("sizes", &[("program", "ring"), ("ranks", ranks)], &[("trace", Unit::Bytes.of(bytes))])
        };
        let was = stored("x", vec![sizes("4", 100), sizes("8", 110)]);
        let now = stored("x", vec![sizes("16", 130), sizes("4", 90)]);
        assert_eq!(
            compare(&was, &now, THRESHOLD),
            "Against abc of 20260101T000000Z: 1 values compared, 1 rows new, 1 rows not measured this time\n  \
             sizes: ring, ranks 4: trace was 100 B, now 90 B, -10.0 %\n"
        );
    }

    #[test]
    fn times_of_another_machine_are_not_compared() {
        let of = |bytes, ns| row("t", &[], &[("B", Unit::Bytes.of(bytes)), ("ns", Unit::Ns.of(ns))]);
        let text = compare(&stored("x", vec![of(5, 1.0)]), &stored("y", vec![of(6, 9.0)]), THRESHOLD);
        assert!(
            text.contains("another machine (x)")
                && text.contains("was 5 B, now 6 B")
                && !text.contains("ns was"),
            "{text}"
        );
    }
}
