//! Pictures made of characters: bars and shades, as wide as a terminal. They are readable without colour.

mod calls;
mod references;

use std::fmt::Write as _;

pub use calls::calls;
pub use references::references;

/// What can be drawn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canvas {
    /// Columns.
    pub width: usize,
    /// Otherwise ASCII alone.
    pub unicode: bool,
}

/// A bar is not shorter than this, however narrow the terminal.
const LEAST: usize = 8;
/// Rows of a picture; the rest is one row, or several are one.
const MOST: usize = 16;

impl Canvas {
    /// A part of `width` columns, to an eighth of a column where characters allow it.
    fn bar(&self, part: f64, width: usize) -> String {
        const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
        let part = part.clamp(0.0, 1.0);
        if !self.unicode {
            let full = (part * width as f64).round() as usize;
            // What is there is seen.
            return "#".repeat(full.max(usize::from(part > 0.0)));
        }
        let eighths = ((part * width as f64 * 8.0).round() as usize).max(usize::from(part > 0.0));
        let mut bar = "█".repeat(eighths / 8);
        if !eighths.is_multiple_of(8) {
            bar.push(EIGHTHS[eighths % 8]);
        }
        bar
    }

    /// Two parts of `width` columns one after the other.
    fn stacked(&self, first: f64, second: f64, width: usize) -> String {
        let columns = |part: f64| (part.clamp(0.0, 1.0) * width as f64).round() as usize;
        let all = columns(first + second);
        let first = columns(first).min(all);
        let [one, other] = self.pair();
        format!("{}{}", one.repeat(first), other.repeat(all - first))
    }

    /// What the two parts are made of.
    fn pair(&self) -> [&'static str; 2] {
        if self.unicode { ["█", "░"] } else { ["#", "."] }
    }

    /// Darker is more; what is there is never the lightest.
    fn shade(&self, part: f64) -> char {
        let shades = self.shades();
        let steps = shades.len() - 1;
        let step = (part.clamp(0.0, 1.0) * steps as f64).ceil() as usize;
        shades[step]
    }

    fn shades(&self) -> [char; 5] {
        if self.unicode { ['·', '░', '▒', '▓', '█'] } else { ['.', ':', '+', '%', '#'] }
    }
}

/// A line of a picture with bars.
struct Row {
    name: String,
    /// Of the most.
    parts: [f64; 2],
    told: Vec<String>,
}

impl Row {
    fn new(name: impl Into<String>, part: f64, told: Vec<String>) -> Row {
        Row { name: name.into(), parts: [part, 0.0], told }
    }
}

/// Names to the left, bars, numbers to the right.
fn bars(canvas: &Canvas, title: &str, rows: &[Row], out: &mut String) {
    let _ = writeln!(out, "{title}");
    let names = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let columns = rows.iter().map(|row| row.told.len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| rows.iter().filter_map(|row| row.told.get(at)).map(|told| told.chars().count()).max())
        .map(|width| width.unwrap_or(0))
        .collect();
    let numbers: usize = widths.iter().map(|width| width + 2).sum();
    let bar = canvas.width.saturating_sub(names + numbers + 4).max(LEAST);
    for row in rows {
        let drawn = match row.parts[1] > 0.0 {
            true => canvas.stacked(row.parts[0], row.parts[1], bar),
            false => canvas.bar(row.parts[0], bar),
        };
        let mut line = format!("  {:<names$}  {drawn}", row.name);
        let filled = bar.saturating_sub(drawn.chars().count());
        line.push_str(&" ".repeat(filled));
        for (told, width) in row.told.iter().zip(&widths) {
            let _ = write!(line, "  {told:>width$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// A part of the whole, or of nothing.
fn part(n: f64, of: f64) -> f64 {
    if of > 0.0 { n / of } else { 0.0 }
}

fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}

/// At most `MOST` rows: those with the most, and one for the rest, if it has a name.
fn longest<T>(mut all: Vec<T>, amount: impl Fn(&T) -> u64) -> (Vec<T>, Option<(usize, u64)>) {
    all.sort_by_key(|one| std::cmp::Reverse(amount(one)));
    if all.len() <= MOST {
        return (all, None);
    }
    let rest = all.split_off(MOST - 1);
    let sum = rest.iter().map(&amount).fold(0u64, u64::saturating_add);
    (all, Some((rest.len(), sum)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Canvas = Canvas { width: 40, unicode: true };
    const PLAIN: Canvas = Canvas { width: 40, unicode: false };

    #[test]
    fn bars_are_to_an_eighth() {
        assert_eq!(WIDE.bar(0.0, 4), "");
        assert_eq!(WIDE.bar(0.001, 4), "▏");
        assert_eq!(WIDE.bar(0.5, 4), "██");
        assert_eq!(WIDE.bar(0.53125, 4), "██▏");
        assert_eq!(WIDE.bar(7.0, 4), "████");
        assert_eq!(PLAIN.bar(0.5, 4), "##");
        assert_eq!(PLAIN.bar(0.001, 4), "#");
        assert_eq!(WIDE.stacked(0.5, 0.25, 8), "████░░");
        assert_eq!(PLAIN.stacked(0.5, 0.5, 8), "####....");
    }

    #[test]
    fn shades_tell_nothing_from_little() {
        assert_eq!([0.0, 0.001, 0.3, 0.6, 1.0].map(|part| WIDE.shade(part)), ['·', '░', '▒', '▓', '█']);
        assert_eq!([0.0, 0.001, 0.3, 0.6, 1.0].map(|part| PLAIN.shade(part)), ['.', ':', '+', '%', '#']);
    }

    #[test]
    fn bars_line_up_and_fit() {
        let rows = [
            Row::new("MPI_Send", 1.0, vec!["10 s".into(), "90.0%".into()]),
            Row::new("x", 0.1, vec!["1 s".into(), "10.0%".into()]),
        ];
        let mut text = String::new();
        bars(&PLAIN, "time", &rows, &mut text);
        assert_eq!(
            text,
            "time\n  MPI_Send  ###############  10 s  90.0%\n  x         ##                1 s  10.0%\n"
        );
        assert!(text.lines().all(|line| line.len() <= 40));
    }
}
