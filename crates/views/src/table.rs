//! Columns that line up.

/// Rows of cells below a heading; the first column to the left, the others to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(heading: [&str; N]) -> Table {
        Table::of(heading.to_vec())
    }

    /// With a heading whose length is known only now.
    pub fn of<S: Into<String>>(heading: Vec<S>) -> Table {
        Table { rows: vec![heading.into_iter().map(Into::into).collect()] }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.push(cells.to_vec());
    }

    pub fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                if column == 0 {
                    line.push_str(&format!("{cell:<width$}"));
                } else {
                    line.push_str(&format!("  {cell:>width$}"));
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
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
}
