//! Colour on a terminal. Views write plain text; what is on its way to a terminal is painted here, line by line, as an editor
//! paints a program. Painted text without its escapes is the plain text.

use std::io::{self, Write};
use std::ops::Range;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use refrain_views::plot::Canvas;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set; with CLICOLOR_FORCE everywhere
    #[default]
    Auto,
    Always,
    Never,
}

impl From<Color> for ColorChoice {
    fn from(color: Color) -> ColorChoice {
        match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
    }
}

pub fn stdout_is_painted() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

pub fn stderr_is_painted() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// The whole process has one choice; `AutoStream` asks for it.
pub fn choose(color: Color) {
    ColorChoice::from(color).write_global();
}

/// What pictures are drawn on: as wide as the terminal is, or as `COLUMNS` says; in blocks if the locale has them.
pub fn canvas() -> Canvas {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let columns = || variable("COLUMNS").and_then(|columns| columns.parse().ok());
    let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable).unwrap_or_default();
    Canvas { width: width.or_else(columns).unwrap_or(80).clamp(40, 200), unicode: is_utf8(&locale) }
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// What kind of text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// JSON, and what is not for a terminal.
    Plain,
    /// A name and what there is to say about it in each line: `info`, `doctor`.
    Facts,
    /// Tables with headings, and sentences below them: `stats`.
    Tables,
    /// Loops within loops, and calls: `loops`.
    Tree,
    /// Yes or no, and why: `verify`, `diff`.
    Answer,
    /// On stderr.
    Message,
}

const BOLD: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const NAME: Style = AnsiColor::Cyan.on_default();
const KEY: Style = AnsiColor::Blue.on_default().bold();
const BAR: Style = AnsiColor::Blue.on_default();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const CARE: Style = AnsiColor::Yellow.on_default().bold();

/// A share of the time from which on it is set off, in percent.
const MUCH: f64 = 20.0;

type Span = (Range<usize>, Style);

/// Paints whole lines as they come.
pub struct Painted<W: Write> {
    out: W,
    look: Look,
    line: Vec<u8>,
    /// Nothing came before this line, or an empty one.
    begins: bool,
}

impl<W: Write> Painted<W> {
    pub fn new(out: W, look: Look) -> Painted<W> {
        Painted { out, look, line: Vec::new(), begins: true }
    }

    fn put_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match std::str::from_utf8(&line) {
            Ok(text) => {
                let body = text.trim_end_matches('\n');
                self.out.write_all(apply(text, &spans(self.look, body, self.begins)).as_bytes())?;
                self.begins = body.is_empty();
            }
            Err(_) => self.out.write_all(&line)?,
        }
        Ok(())
    }
}

impl<W: Write> Write for Painted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.look == Look::Plain {
            return self.out.write(bytes);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.put_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Drop for Painted<W> {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            // Who does not listen misses nothing else.
            let _ = self.put_line();
        }
    }
}

/// A whole text, painted if stdout is.
pub fn text(look: Look, text: &str) -> String {
    if stdout_is_painted() { painted(look, text) } else { text.to_owned() }
}

pub fn painted(look: Look, text: &str) -> String {
    let mut begins = true;
    let line = |line: &str| {
        let body = line.trim_end_matches('\n');
        let painted = apply(line, &spans(look, body, begins));
        begins = body.is_empty();
        painted
    };
    text.split_inclusive('\n').map(line).collect()
}

fn apply(line: &str, spans: &[Span]) -> String {
    let mut out = String::with_capacity(line.len() + spans.len() * 12);
    let mut done = 0;
    for (range, style) in spans.iter().filter(|(range, _)| !range.is_empty()) {
        out.push_str(&line[done..range.start]);
        out.push_str(&format!("{style}{}{style:#}", &line[range.clone()]));
        done = range.end;
    }
    out.push_str(&line[done..]);
    out
}

/// What is set off in a line, in order and apart from each other.
fn spans(look: Look, line: &str, begins: bool) -> Vec<Span> {
    let mut spans = match look {
        Look::Plain => Vec::new(),
        Look::Facts => facts(line),
        Look::Tables => tables(line, begins),
        Look::Tree => tree(line),
        Look::Answer => answer(line, begins),
        Look::Message => message(line),
    };
    spans.sort_by_key(|(range, _)| range.start);
    let mut end = 0;
    spans.retain(|(range, _)| {
        let free = range.start >= end;
        end = if free { range.end } else { end };
        free
    });
    spans
}

/// `name   text`; lines without a name go on with the one before.
fn facts(line: &str) -> Vec<Span> {
    let Some(end) = line.find("  ").filter(|end| *end > 0) else { return names(line) };
    let text = end + (line.len() - end) - line[end..].trim_start().len();
    let mut spans = vec![match &line[..end] {
        "problem" | "lost" => (0..end, BAD),
        "note" | "notes" => (0..end, CARE),
        _ => (0..end, KEY),
    }];
    let word = |word: &str, style| line.find(word).map(|at| (at..at + word.len(), style));
    match &line[..end] {
        "file" => {
            spans.extend(
                line.ends_with(", complete").then(|| (line.len() - "complete".len()..line.len(), GOOD)),
            );
            spans.extend(word("partial: the run did not finish", CARE));
        }
        "problems" => spans.push((text..line.len(), GOOD)),
        "problem" => spans.push((text..line.len(), BOLD)),
        "ranks" | "calls" | "references" | "run" | "wall time" => {
            let ends = [", ", " of ", " after "].iter().filter_map(|end| line[text..].find(end));
            spans.push((text..ends.min().map_or(line.len(), |at| text + at), BOLD));
        }
        _ => {}
    }
    spans.extend(names(line));
    spans
}

/// Columns are two spaces apart or more; sentences have no such gap.
fn is_row(line: &str) -> bool {
    line.trim_start().contains("  ")
}

fn is_heading(line: &str, begins: bool) -> bool {
    begins && is_row(line) && !line.contains(|c: char| c.is_ascii_digit())
}

fn tables(line: &str, begins: bool) -> Vec<Span> {
    if is_heading(line, begins) {
        return vec![(0..line.len(), BOLD)];
    }
    if !is_row(line) {
        // Who stands out is said in a sentence of its own.
        let verdict = ["Rank ", "Ranks ", "All ranks "].iter().any(|word| line.starts_with(word));
        // Titles begin with a small letter or a number, paragraphs with a capital.
        let title = begins && !line.starts_with(|c: char| c.is_uppercase());
        let style = if verdict || title { BOLD } else { FAINT };
        return vec![(0..line.len(), style)];
    }
    let mut spans = names(line);
    spans.extend(shares(line));
    spans.extend(bars(line));
    spans
}

/// Full blocks and parts of one; lighter ones are the rest.
fn bars(line: &str) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (at, letter) in line.char_indices().filter(|(_, letter)| ('▁'..='▏').contains(letter)) {
        let end = at + letter.len_utf8();
        match spans.last_mut() {
            Some((range, _)) if range.end == at => range.end = end,
            _ => spans.push((at..end, BAR)),
        }
    }
    spans
}

/// Percentages that are much.
fn shares(line: &str) -> Vec<Span> {
    let share = |(end, _): (usize, &str)| {
        let start = line[..end].rfind(' ').map_or(0, |at| at + 1);
        let number: f64 = line[start..end].parse().ok()?;
        (number >= MUCH).then_some((start..end + 1, BOLD))
    };
    line.match_indices('%').filter_map(share).collect()
}

fn tree(line: &str) -> Vec<Span> {
    let body = line.trim_start();
    let start = line.len() - body.len();
    if start == 0 {
        return match line.split_once(':') {
            Some(("red flag", _)) => vec![(0..line.len(), BAD)],
            Some((name @ ("time-step loop" | "largest repetition"), _)) => {
                vec![(0..name.len(), KEY), (name.len() + 1..line.len(), BOLD)]
            }
            None if is_who(line) => vec![(0..line.len(), BOLD)],
            _ => names(line),
        };
    }
    let place = body.find("  at ").map(|at| start + at);
    let mut spans: Vec<Span> = place.map(|at| (at..line.len(), FAINT)).into_iter().collect();
    if let Some(times) = body.strip_prefix("loop ") {
        let number = times.find(' ').unwrap_or(times.len());
        spans.extend([(start..start + 4, CARE), (start + 5..start + 5 + number, BOLD)]);
    } else if body.starts_with("...") {
        spans = vec![(start..line.len(), FAINT)];
    }
    spans.extend(names(&line[..place.unwrap_or(line.len())]));
    spans
}

fn is_who(line: &str) -> bool {
    ["all ", "rank ", "ranks ", "1 rank"].iter().any(|word| line.starts_with(word))
}

fn answer(line: &str, begins: bool) -> Vec<Span> {
    for (word, style) in
        [("yes:", GOOD), ("equal:", GOOD), ("no:", BAD), ("different:", BAD), ("note:", CARE)]
    {
        if line.starts_with(word) {
            return vec![(0..word.len(), style)];
        }
    }
    if is_heading(line, begins) {
        return vec![(0..line.len(), BOLD)];
    }
    let mut spans = names(line);
    if begins && is_who(line) {
        spans.push((0..line.find(':').unwrap_or(line.len()), BOLD));
    } else if let Some(values) = line.strip_prefix("  ")
        && !values.starts_with(' ')
        && values.ends_with(" in B")
    {
        spans.push((2..2 + values.find(':').unwrap_or(0), BOLD));
    } else if line.starts_with("...") {
        spans = vec![(0..line.len(), FAINT)];
    }
    spans
}

/// What went wrong; what to do about it is in the lines below.
fn message(line: &str) -> Vec<Span> {
    match line.find(": ") {
        Some(end) if line.starts_with("refrain: ") => vec![(0..end + 1, BAD)],
        _ => Vec::new(),
    }
}

/// Functions of MPI.
fn names(line: &str) -> Vec<Span> {
    let name = |(start, _): (usize, &str)| {
        let rest = &line[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        // Constants are in capitals: MPI_DOUBLE, MPI_COMM_WORLD.
        let is_function = rest[4..end].contains(|c: char| c.is_ascii_lowercase());
        is_function.then_some((start..start + end, NAME))
    };
    line.match_indices("MPI_").filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The style of each piece that has one, as `<style|text>`.
    fn check(look: Look, text: &str, expected: &str) {
        let named = [
            (FAINT, "faint"),
            (NAME, "name"),
            (KEY, "key"),
            (GOOD, "good"),
            (BAD, "bad"),
            (CARE, "care"),
            // Others begin with it.
            (BOLD, "bold"),
        ];
        let mut shown = painted(look, text);
        assert_eq!(anstream::adapter::strip_str(&shown).to_string(), text);
        for (style, name) in named {
            shown = shown.replace(&style.to_string(), &format!("<{name}|"));
        }
        assert_eq!(shown.replace(&format!("{BOLD:#}"), ">"), expected);
    }

    #[test]
    fn facts_have_names() {
        check(
            Look::Facts,
            "file     a.rfn, 3 bytes, complete\nranks    9\ncalls    6,645, 0.055 bytes\n         MPI_Init only\n",
            "<key|file>     a.rfn, 3 bytes, <good|complete>\n<key|ranks>    <bold|9>\n\
             <key|calls>    <bold|6,645>, 0.055 bytes\n         <name|MPI_Init> only\n",
        );
        check(
            Look::Facts,
            "problem   it is static\n          link it\n",
            "<bad|problem>   <bold|it is static>\n          link it\n",
        );
        check(Look::Facts, "problems  none\n", "<key|problems>  <good|none>\n");
    }

    #[test]
    fn tables_have_headings() {
        check(
            Look::Tables,
            "function   share\nMPI_Wait   63.2%\nMPI_Isend   0.1%\n\nRank 2 spent 1 s.\n\nPayload is data.\n",
            "<bold|function   share>\n<name|MPI_Wait>   <bold|63.2%>\n<name|MPI_Isend>   0.1%\n\n\
             <bold|Rank 2 spent 1 s.>\n\n<faint|Payload is data.>\n",
        );
    }

    #[test]
    fn loops_and_calls() {
        check(
            Look::Tree,
            "all 4 ranks\ntime-step loop: none\n\n  loop 20 times  at a.c:1 in main\n    MPI_Send(comm=MPI_COMM_WORLD)  at f (a.c:2)\n",
            "<bold|all 4 ranks>\n<key|time-step loop>:<bold| none>\n\n  <care|loop> <bold|20> times<faint|  at a.c:1 in main>\n    \
             <name|MPI_Send>(comm=MPI_COMM_WORLD)<faint|  at f (a.c:2)>\n",
        );
    }

    #[test]
    fn answers() {
        check(Look::Answer, "yes: all\n", "<good|yes:> all\n");
        check(
            Look::Answer,
            "different: on 1\n\nrank 2, call 5: MPI_Send at f\n  count: 8 in A, 9 in B\n",
            "<bad|different:> on 1\n\n<bold|rank 2, call 5>: <name|MPI_Send> at f\n  <bold|count>: 8 in A, 9 in B\n",
        );
    }

    #[test]
    fn pieces_of_lines_are_lines() {
        let mut out = Vec::new();
        let mut painted = Painted::new(&mut out, Look::Answer);
        for piece in ["ye", "s: a", "ll\nno: ", "b"] {
            painted.write_all(piece.as_bytes()).unwrap();
        }
        drop(painted);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), "yes: all\nno: b");
        assert!(text.contains(&format!("{BAD}no:")), "{text:?}");
    }
}
