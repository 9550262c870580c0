//! Rows as aligned text.

use crate::row::{Row, Value};

#[derive(Debug, Default)]
pub struct Table {
    pub name: String,
    pub title: String,
    /// These keys become columns: rows that differ in nothing else stand in one line.
    pub across: Vec<&'static str>,
    /// These keys are in the title: they identify a row, and are no column.
    pub fixed: Vec<(&'static str, String)>,
    pub rows: Vec<Row>,
}

/// A line of text: the keys that are shown, and a value or none for each column.
struct Line {
    names: Vec<String>,
    values: Vec<Option<Value>>,
}

impl Table {
    pub fn new(name: &str, title: &str) -> Table {
        Table { name: name.to_owned(), title: title.to_owned(), ..Table::default() }
    }

    pub fn across(mut self, keys: &[&'static str]) -> Table {
        self.across = keys.to_vec();
        self
    }

    pub fn with(mut self, key: &'static str, value: impl ToString) -> Table {
        self.fixed.push((key, value.to_string()));
        self
    }

    pub fn text(&self) -> String {
        let (columns, lines) = self.grid();
        let keys: Vec<&String> =
            self.rows.first().map_or_else(Vec::new, |row| self.shown(row).map(|(name, _)| name).collect());
        let mut cells =
            vec![keys.iter().map(|name| (*name).clone()).chain(columns.iter().cloned()).collect::<Vec<_>>()];
        for Line { names, values } in &lines {
            let values = values.iter().map(|value| value.map_or_else(String::new, |value| value.text()));
            cells.push(names.iter().cloned().chain(values).collect());
        }
        let mut text = format!("{}\n", self.title);
        if !self.rows.is_empty() {
            text += &aligned(&cells, keys.len());
        }
        text
    }

    /// The keys of a row that are columns of names.
    fn shown<'r>(&'r self, row: &'r Row) -> impl Iterator<Item = (&'r String, &'r String)> {
        let hidden =
            |name: &str| self.across.contains(&name) || self.fixed.iter().any(|(fixed, _)| *fixed == name);
        row.keys.iter().filter(move |(name, _)| !hidden(name))
    }

    /// Names of the columns, and the lines.
    fn grid(&self) -> (Vec<String>, Vec<Line>) {
        let mut columns: Vec<String> = Vec::new();
        let mut lines: Vec<Line> = Vec::new();
        for row in &self.rows {
            let names: Vec<String> = self.shown(row).map(|(_, key)| key.clone()).collect();
            let at = match lines.iter().position(|line| !self.across.is_empty() && line.names == names) {
                Some(at) => at,
                None => {
                    lines.push(Line { names, values: Vec::new() });
                    lines.len() - 1
                }
            };
            for (name, value) in &row.values {
                let heading = self.heading(row, name);
                let column = columns.iter().position(|column| *column == heading).unwrap_or_else(|| {
                    columns.push(heading);
                    columns.len() - 1
                });
                let values = &mut lines[at].values;
                values.resize(values.len().max(column + 1), None);
                values[column] = Some(*value);
            }
        }
        (columns, lines)
    }

    fn heading(&self, row: &Row, value: &str) -> String {
        let across: Vec<&str> =
            self.across.iter().filter_map(|key| row.keys.get(*key)).map(String::as_str).collect();
        match (across.is_empty(), row.values.len()) {
            (true, _) => value.to_owned(),
            (false, 1) => across.join(" x "),
            (false, _) => format!("{} {value}", across.join(" x ")),
        }
    }
}

/// Columns of equal width, the first `left` of them left-aligned, the others right.
fn aligned(cells: &[Vec<String>], left: usize) -> String {
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        cells.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in cells {
        let mut out = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            match column < left {
                true => out += &format!("{cell:<width$}  "),
                false => out += &format!("{cell:>width$}  "),
            }
        }
        text += out.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Unit;
    use crate::row::tests::row;

    fn check(table: Table, lines: &[&str]) {
        let text = table.text();
        assert_eq!(text.lines().collect::<Vec<_>>(), lines, "\n{text}");
    }

    #[test]
    fn names_stand_left_and_numbers_right() {
        let mut table = Table::new("t", "Title");
        table.rows.push(row(
            "t",
            &[("program", "ring")],
            &[("B", Unit::Bytes.of(7)), ("ns", Unit::Ns.of(1.25))],
        ));
        table.rows.push(row(
            "t",
            &[("program", "a")],
            &[("B", Unit::Bytes.of(12345)), ("ns", Unit::Ns.of(None::<f64>))],
        ));
        check(table, &["Title", "program      B   ns", "ring         7  1.2", "a        12345    -"]);
    }

    #[test]
    fn a_key_may_go_across() {
        let mut table = Table::new("t", "Title").across(&["ranks", "steps"]).with("library", "mpich");
        for (program, ranks, bytes) in [("ring", "4", 10), ("ring", "16", 11), ("tree", "16", 13)] {
            let keys = [("library", "mpich"), ("program", program), ("ranks", ranks), ("steps", "9")];
            table.rows.push(row("t", &keys, &[("trace", Unit::Bytes.of(bytes))]));
        }
        check(
            table,
            &["Title", "program  4 x 9  16 x 9", "ring        10      11", "tree                13"],
        );
    }

    #[test]
    fn several_values_across_have_their_names() {
        let mut table = Table::new("t", "Title").across(&["steps"]);
        let values = [("trace", Unit::Bytes.of(10)), ("xz", Unit::Bytes.of(9))];
        table.rows.push(row("t", &[("ranks", "4"), ("steps", "10")], &values));
        check(table, &["Title", "ranks  10 trace  10 xz", "4            10      9"]);
    }

    #[test]
    fn a_table_without_rows_is_its_title() {
        check(Table::new("t", "Title"), &["Title"]);
    }
}
