//! Columns that line up.

use comfy_table::{CellAlignment, presets};

/// Rows of cells below a heading; the first column to the left, the others to the right.
pub struct Table {
    table: comfy_table::Table,
    /// The last column is prose.
    prose: bool,
}

impl Table {
    pub fn new<const N: usize>(heading: [&str; N]) -> Table {
        Table::of(heading.to_vec())
    }

    /// With a heading whose length is known only now.
    pub fn of<S: Into<String>>(heading: Vec<S>) -> Table {
        let mut table = Table { table: comfy_table::Table::new(), prose: false };
        table.table.load_style(presets::NOTHING);
        table.push(heading.into_iter().map(Into::into).collect());
        table
    }

    /// The last column stands to the left, too.
    pub fn with_prose(mut self) -> Table {
        self.prose = true;
        self
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.push(cells.to_vec());
    }

    pub fn push(&mut self, cells: Vec<String>) {
        self.table.add_row(cells);
    }

    pub fn render(&mut self) -> String {
        let last = self.table.column_count().saturating_sub(1);
        for (at, column) in self.table.column_iter_mut().enumerate() {
            let left = at == 0 || self.prose && at == last;
            let side = if left { CellAlignment::Left } else { CellAlignment::Right };
            column.set_padding((if at == 0 { 0 } else { 2 }, 0)).set_cell_alignment(side);
        }
        self.table.trim_fmt() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["name", "calls"]);
        table.row(["MPI_Send".into(), "1".into()]);
        table.row(["x".into(), "123,456".into()]);
        assert_eq!(table.render(), "name        calls\nMPI_Send        1\nx         123,456\n");
    }

    #[test]
    fn prose_stands_to_the_left() {
        let mut table = Table::new(["name", "about"]).with_prose();
        table.row(["x".into(), "a".into()]);
        assert_eq!(table.render(), "name  about\nx     a\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = Table::new(["\u{540d}\u{524d}", "n"]);
        table.row(["abcd".into(), "1".into()]);
        assert_eq!(table.render(), "\u{540d}\u{524d}  n\nabcd  1\n");
    }

    /// As a list of ranks may be.
    #[test]
    fn a_cell_may_be_very_long() {
        let mut table = Table::new(["ranks", "number"]);
        table.row(["1,".repeat(100_000), "1".into()]);
        assert_eq!(table.render().matches(',').count(), 100_000);
    }
}
