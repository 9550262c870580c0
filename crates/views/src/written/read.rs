//! The text back into a trace. Nothing in it is believed: what is read is validated as a file would be.

use std::str::FromStr;

use refrain_fold::bundle::classes::Kind;
use refrain_fold::bundle::sites::{Frame, Module, NO_MODULE, Stack};
use refrain_fold::bundle::{
    Bundle, Class, Classes, Cohort, Lane, Number, Structure, SymbolEntry, Tally, Variant,
};
use refrain_fold::grammar::{Grammar, Item, Symbol};
use refrain_fold::loops::{Loops, Node};
use refrain_fold::ranks::{Dim, MapPart, Part, RankList, RankMap, View};
use refrain_fold::stream::{Block, DEEPEST, Rows, Stream, Term};
use refrain_times::paths::{Before, Histogram, Path, Paths};
use refrain_tracefile::clocks::{Clock, Clocks, Point};
use refrain_tracefile::profile::{Row, Spent};
use refrain_tracefile::{Cores, Memory, Profile, Trace};

use super::VERSION;
use super::flight;
use crate::timed::time_of;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", place(*.line))]
pub struct BadText {
    /// From 1; 0 where all of it together does not make a trace.
    pub line: usize,
    pub what: String,
}

fn place(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

pub(super) type Read<T> = Result<T, String>;

/// What a trace that was made from text says of itself.
pub const WITHOUT_TIMES: &str = "made from text, which has no times of single calls, only their sums";

/// A text has no times of single calls, so what is made of it keeps none.
fn without_times(trace: &mut Trace) {
    if time_of(trace).is_ok_and(|time| time.of_every_call()) {
        trace.meta.options.retain(|(name, _)| name != "time");
        trace.meta.clocks = None;
        trace.meta.notes.push(WITHOUT_TIMES.to_owned());
    }
}

pub fn read(text: &str) -> Result<Trace, BadText> {
    let mut reader = Reader::default();
    let mut begun = false;
    for (number, line) in (1..).zip(text.lines()) {
        let bad = |what: String| BadText { line: number, what };
        let words = words(line).map_err(bad)?;
        let Some((first, rest)) = words.split_first() else { continue };
        let mut words = Words { rest };
        if !begun {
            let version = (first.text == "refrain-text").then(|| words.number::<u32>("a version"));
            match version {
                Some(Ok(VERSION)) => begun = true,
                Some(Ok(other)) => {
                    return Err(bad(format!("version {other} of the text is not known, only {VERSION}")));
                }
                _ => {
                    return Err(bad(
                        "this is no text of a trace: it does not begin with `refrain-text 1`".into()
                    ));
                }
            }
        } else {
            reader.line(&first.text, &mut words).map_err(bad)?;
        }
        if let Some(word) = words.rest.first() {
            return Err(bad(format!("`{}` is one word too many", word.text)));
        }
    }
    if !begun {
        return Err(BadText { line: 0, what: "this is no text of a trace: it is empty".into() });
    }
    let mut trace = reader.trace;
    without_times(&mut trace);
    trace.bundle.world = trace.meta.ranks;
    if trace.meta.profile.as_ref().is_some_and(|profile| !profile.is_valid()) {
        return Err(BadText { line: 0, what: "the times by rank do not hold together".into() });
    }
    let symbols = trace.bundle.symbols.len() as u64;
    if let Some(paths) = &mut trace.meta.paths {
        let known = |&(symbol, before): &(u64, Before)| {
            symbol < symbols && !matches!(before, Before::Call(symbol) if symbol >= symbols)
        };
        if !paths.0.keys().all(known) {
            return Err(BadText { line: 0, what: "a path of a symbol that is not there".into() });
        }
        refrain_tracefile::settle(paths);
    }
    match trace.bundle.validate() {
        Ok(()) => Ok(trace),
        Err(error) => Err(BadText { line: 0, what: error.to_string() }),
    }
}

struct Word {
    text: String,
    quoted: bool,
}

/// Up to `#`.
fn words(line: &str) -> Read<Vec<Word>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        if let Some(inside) = rest.strip_prefix('"') {
            let (text, after) = unquoted(inside)?;
            words.push(Word { text, quoted: true });
            rest = after.trim_start();
        } else {
            let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
            words.push(Word { text: word.into(), quoted: false });
            rest = after.trim_start();
        }
    }
    Ok(words)
}

/// What is before the closing quote, and what is after it.
fn unquoted(text: &str) -> Read<(String, &str)> {
    let mut out = String::new();
    let mut rest = text.chars();
    loop {
        let bad = || "a text in quotes has no end".to_string();
        match rest.next().ok_or_else(bad)? {
            '"' => return Ok((out, rest.as_str())),
            '\\' => match rest.next().ok_or_else(bad)? {
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'u' => {
                    let digits: String = rest.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                    out.push(code.ok_or_else(|| format!("`\\u{digits}` is no character"))?);
                }
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
}

pub(super) struct Words<'w> {
    rest: &'w [Word],
}

impl<'w> Words<'w> {
    fn next(&mut self, what: &str) -> Read<&'w Word> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| format!("{what} is missing"))?;
        self.rest = rest;
        Ok(first)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn word(&mut self, what: &str) -> Read<&'w str> {
        self.next(what).map(|word| &*word.text)
    }

    pub(super) fn text(&mut self, what: &str) -> Read<String> {
        let word = self.next(what)?;
        if word.quoted { Ok(word.text.clone()) } else { Err(format!("{what} has to be in quotes")) }
    }

    pub(super) fn number<T: FromStr>(&mut self, what: &str) -> Read<T> {
        number(self.word(what)?, what)
    }

    fn keyword(&mut self, wanted: &str) -> Read<()> {
        match self.word(&format!("`{wanted}`"))? {
            word if word == wanted => Ok(()),
            other => Err(format!("`{other}` stands where `{wanted}` belongs")),
        }
    }

    /// The rest, or up to a keyword.
    fn until(&mut self, end: Option<&str>) -> Read<&'w [Word]> {
        let at = match end {
            None => self.rest.len(),
            Some(end) => {
                let found = self.rest.iter().position(|word| word.text == end);
                found.ok_or_else(|| format!("`{end}` is missing"))?
            }
        };
        let (before, rest) = self.rest.split_at(at);
        self.rest = rest;
        Ok(before)
    }

    /// Up to a bracket or the end.
    fn until_bracket(&mut self) -> &'w [Word] {
        let bracket = |word: &Word| ["(", ")", "{", "}"].contains(&&*word.text);
        let at = self.rest.iter().position(bracket).unwrap_or(self.rest.len());
        let (before, rest) = self.rest.split_at(at);
        self.rest = rest;
        before
    }
}

pub(super) fn number<T: FromStr>(text: &str, what: &str) -> Read<T> {
    text.parse().map_err(|_| format!("`{text}` is not {what}"))
}

pub(super) fn hex(text: &str) -> Read<Box<[u8]>> {
    let bad = || format!("`{text}` is not bytes in hexadecimal");
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return Err(bad());
    }
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| bad());
    (0..text.len()).step_by(2).map(byte).collect()
}

/// How ranks spent one kind of time.
fn spent(words: &mut Words) -> Read<Row> {
    let number: u32 = words.number("a kind of time")?;
    let spent = Spent::from_number(number).ok_or_else(|| format!("`{number}` is no kind of time"))?;
    let extreme = |words: &mut Words, which: &str| -> Read<(u32, u64)> {
        words.keyword(which)?;
        Ok((words.number("a rank")?, words.number("a time")?))
    };
    let (least, most) = (extreme(words, "least")?, extreme(words, "most")?);
    words.keyword("levels")?;
    let mut runs = Vec::new();
    while !words.rest.is_empty() {
        runs.push((words.number("a level")?, words.number("a number of ranks")?));
    }
    Ok(Row { spent, least, most, runs, single: Vec::new() })
}

fn path(words: &mut Words) -> Read<((u64, Before), Path)> {
    let symbol = words.number("a symbol")?;
    let before = match words.word("what came before")? {
        "first" => Before::Nothing,
        "others" => Before::Others,
        call => Before::Call(number(call, "a symbol")?),
    };
    words.keyword("durations")?;
    let duration = histogram(&mut Words { rest: words.until(Some("gaps"))? })?;
    words.keyword("gaps")?;
    let gap = histogram(words)?;
    Ok(((symbol, before), Path { duration, gap }))
}

fn histogram(words: &mut Words) -> Read<Histogram> {
    if words.rest.is_empty() {
        return Ok(Histogram::default());
    }
    let first = words.number("a level")?;
    let counts = words.until(Some("total"))?.iter().map(|word| number(&word.text, "a count"));
    let counts = counts.collect::<Read<_>>()?;
    words.keyword("total")?;
    let histogram = Histogram { first, counts, total: words.number("a time")? };
    if histogram.is_valid() { Ok(histogram) } else { Err("the times are not well formed".into()) }
}

fn ranks(text: &str) -> Read<RankList> {
    let part = |text: &str| -> Read<Part> {
        let mut pieces = text.split('x');
        let start = number(pieces.next().unwrap_or_default(), "a rank")?;
        let dim = |piece: &str| -> Read<(u32, u32)> {
            let (count, stride) =
                piece.split_once(':').ok_or_else(|| format!("`{text}` is no list of ranks"))?;
            Ok((number(count, "a count")?, number(stride, "a stride")?))
        };
        Ok(Part { start, dims: pieces.map(dim).collect::<Read<_>>()? })
    };
    let list = RankList { parts: text.split(',').map(part).collect::<Read<_>>()? };
    list.validate().map_err(|error| error.to_string())?;
    Ok(list)
}

fn view(text: &str) -> Read<View> {
    let columns = text.contains('c');
    let bad = || format!("`{text}` is no order of ranks");
    let (side, rest) = text.split_once(['r', 'c']).ok_or_else(bad)?;
    let (skew, turn) = match rest.split('+').collect::<Vec<_>>()[..] {
        [skew] => (skew, [0; 2]),
        [skew, a, b] => (skew, [number(a, "a turn")?, number(b, "a turn")?]),
        _ => return Err(bad()),
    };
    Ok(View { side: number(side, "a side")?, skew: number(skew, "a skew")?, columns, turn })
}

fn map(text: &str) -> Read<RankMap> {
    match text.split_once(';') {
        // No text takes this deeper.
        Some((_, plus)) if plus.contains(';') => Err("a sum has two functions of the rank".into()),
        Some((first, plus)) => {
            Ok(RankMap { plus: Some(Box::new(map_of_parts(plus)?)), ..map_of_parts(first)? })
        }
        None => map_of_parts(text),
    }
}

fn map_of_parts(text: &str) -> Read<RankMap> {
    let (seen, text) = text.split_once('@').map_or((None, text), |(seen, text)| (Some(seen), text));
    let part = |text: &str| -> Read<MapPart> {
        let bad = || format!("`{text}` is no function of the rank");
        let (start, rest) = text.split_once('=').ok_or_else(bad)?;
        let mut pieces = rest.split('x');
        let value = number(pieces.next().unwrap_or_default(), "a number")?;
        let dim = |piece: &str| -> Read<Dim> {
            let numbers: Vec<&str> = piece.split(':').collect();
            let [count, stride, step] = numbers[..] else { return Err(bad()) };
            let (count, stride) = (number(count, "a count")?, number(stride, "a stride")?);
            Ok(Dim { count, stride, step: number(step, "a step")? })
        };
        Ok(MapPart { start: number(start, "a rank")?, value, dims: pieces.map(dim).collect::<Read<_>>()? })
    };
    let parts = text.split(',').map(part).collect::<Read<_>>()?;
    Ok(RankMap { parts, view: seen.map(view).transpose()?, plus: None })
}

fn rules(words: &[Word], terminal: char) -> Read<Grammar> {
    let item = |word: &Word| -> Read<Item> {
        let (symbol, count) = word.text.split_once('x').unwrap_or((&word.text, "1"));
        let bad = || format!("`{}` is no item of a rule", word.text);
        let (kind, at) = symbol.split_at_checked(1).ok_or_else(bad)?;
        let at = number(at, "the number of a symbol or rule")?;
        let symbol = match kind {
            "r" => Symbol::Rule(at),
            kind if kind.starts_with(terminal) => Symbol::Terminal(at),
            _ => return Err(bad()),
        };
        Ok(Item { symbol, count: number(count, "a count")? })
    };
    let rules = words.split(|word| word.text == "|");
    Ok(Grammar { rules: rules.map(|rule| rule.iter().map(item).collect()).collect::<Read<_>>()? })
}

fn stream(words: &mut Words) -> Read<Stream> {
    let term = |word: &Word| -> Read<Term> {
        if let Some(block) = word.text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            return Ok(Term::Block(number(block, "the number of a block")?));
        }
        match word.text.split(':').collect::<Vec<_>>()[..] {
            [value] => Ok(Term::Value(number(value, "a number")?)),
            [start, step, count] => Ok(Term::Stride {
                start: number(start, "a number")?,
                step: number(step, "a step")?,
                count: number(count, "a count")?,
            }),
            _ => Err(format!("`{}` is no term of a stream", word.text)),
        }
    };
    words.keyword("terms")?;
    let terms = words.until(Some("shape"))?.iter().map(term).collect::<Read<_>>()?;
    words.keyword("shape")?;
    Ok(Stream { terms, shape: rules(words.until_bracket(), 't')?, blocks: Vec::new() })
}

/// One with its blocks on the same line.
fn inner_stream(words: &mut Words, depth: usize) -> Read<Stream> {
    let mut one = stream(words)?;
    while words.rest.first().is_some_and(|word| word.text == "(") {
        words.keyword("(")?;
        one.blocks.push(block(words, depth)?);
        words.keyword(")")?;
    }
    Ok(one)
}

fn block(words: &mut Words, depth: usize) -> Read<Block> {
    if depth > DEEPEST {
        return Err("blocks are too deep inside blocks".into());
    }
    match words.word("`packed`, `running` or `rows`")? {
        "packed" => {
            let mut runs: Vec<(i64, u64)> = Vec::new();
            for word in words.until_bracket() {
                let (value, count) = word.text.split_once('x').unwrap_or((&word.text, "1"));
                let count: u32 = number(count, "how often a number stands there")?;
                if count == 0 {
                    return Err(format!("`{}` stands there no time", word.text));
                }
                runs.push((number(value, "a number")?, count.into()));
            }
            let most = refrain_fold::entropy::LONGEST;
            if runs.len() > most || runs.iter().map(|run| run.1).sum::<u64>() > u32::MAX.into() {
                return Err(format!("a block has at most {most} numbers, equal ones in a row taken once"));
            }
            Ok(Block::pack(&runs))
        }
        "running" => {
            let count = words.number("a count")?;
            Ok(Block::Running { count, steps: Box::new(inner_stream(words, depth + 1)?) })
        }
        "rows" => {
            let (count, step) = (words.number("a count")?, words.number("a step")?);
            let mut inside = || {
                words.keyword("{")?;
                let one = inner_stream(words, depth + 1)?;
                words.keyword("}")?;
                Read::Ok(one)
            };
            let (starts, counts) = (inside()?, inside()?);
            Ok(Block::Rows { count, rows: Box::new(Rows { step, starts, counts }) })
        }
        other => Err(format!("`{other}` is neither packed, running nor rows")),
    }
}

fn clock(words: &mut Words) -> Read<Clock> {
    words.keyword("ranks")?;
    let ranks = ranks(words.word("a list of ranks")?)?;
    words.keyword("counter")?;
    let counter = yes(words)?;
    words.keyword("monotonic")?;
    let monotonic = yes(words)?;
    words.keyword("wander")?;
    let wander = words.number("a change of rate")?;
    words.keyword("residual")?;
    let residual = words.number("a time")?;
    let mut point = || {
        words.keyword("point")?;
        let (at, common) = (words.number("a time")?, words.number("a time")?);
        Read::Ok(Point { at, common, error: words.number("a time")? })
    };
    let (start, end) = (point()?, point()?);
    Ok(Clock { ranks, counter, monotonic, wander, residual, start, end })
}

#[derive(Default)]
struct Reader {
    trace: Trace,
    /// By the numbers they have in the text.
    modules: Vec<u64>,
    stacks: Vec<u64>,
}

impl Reader {
    fn line(&mut self, first: &str, words: &mut Words) -> Read<()> {
        let meta = &mut self.trace.meta;
        match first {
            "version" => meta.refrain_version = words.text("a version")?,
            "command" => {
                while !words.rest.is_empty() {
                    meta.command.push(words.text("a word of the command")?);
                }
            }
            "library" => meta.library = words.text("the library")?,
            "abi" => meta.abi = words.text("the ABI")?,
            "ranks" => meta.ranks = words.number("a number of ranks")?,
            "started" => meta.started = words.number("a time")?,
            "wall" => meta.wall_ns = words.number("a time")?,
            "host" => {
                let host = words.text("a host")?;
                meta.hosts.push((host, ranks(words.word("a list of ranks")?)?));
            }
            "cores" => {
                let ranks = ranks(words.word("a list of ranks")?)?;
                words.keyword("each")?;
                let each = words.number("a number of cores")?;
                words.keyword("sharing")?;
                let sharing = words.number("a number of ranks")?;
                words.keyword("thousandths")?;
                let thousandths = words.number("a number of thousandths")?;
                meta.cores.push(Cores { ranks, each, sharing, thousandths });
            }
            "option" => {
                let name = words.text("an option")?;
                meta.options.push((name, words.text("its setting")?));
            }
            "split" => meta.split = yes(words)?,
            "timed" => meta.timed = yes(words)?,
            "complete" => meta.complete = yes(words)?,
            "note" => meta.notes.push(words.text("a note")?),
            "profile" => {
                let ranks = ranks(words.word("a list of ranks")?)?;
                words.keyword("unit")?;
                let unit = words.number("a number of bits")?;
                meta.profile = Some(Profile { ranks, unit, rows: Vec::new() });
            }
            "spent" => {
                let row = spent(words)?;
                meta.profile.as_mut().ok_or("times of ranks that were not told")?.rows.push(row);
            }
            "paths" => meta.paths = Some(Paths::default()),
            "path" => {
                let (key, path) = path(words)?;
                meta.paths.as_mut().ok_or("a path before `paths`")?.0.insert(key, path);
            }
            "memory" => {
                let mut bytes = || words.number("a number of bytes");
                let (min, mean, max, root) = (bytes()?, bytes()?, bytes()?, bytes()?);
                meta.memory = Some(Memory { min, mean, max, root });
            }
            "merge" => meta.merge_ms = Some(words.number("a number of milliseconds")?),
            "flight" => meta.flight.push(flight::read(words)?),
            "clocks" => meta.clocks = Some(Clocks::default()),
            "clock" => {
                let clocks = meta.clocks.as_mut().ok_or("a clock before `clocks`")?;
                clocks.clocks.push(clock(words)?);
            }
            "module" => self.module(words)?,
            "stack" => self.stack(words)?,
            "symbol" => self.symbol(words)?,
            "class" => self.class(words)?,
            "stream" => {
                in_order(words, self.trace.bundle.streams.len())?;
                self.trace.bundle.streams.push(stream(words)?);
            }
            "block" => self.block(words)?,
            "structure" => self.structure(words)?,
            "cohort" => self.cohort(words)?,
            "lane" => self.lane(words)?,
            "variant" => self.variant(words)?,
            other => return Err(format!("`{other}` is nothing a trace has")),
        }
        Ok(())
    }

    fn module(&mut self, words: &mut Words) -> Read<()> {
        in_order(words, self.modules.len())?;
        let build_id = match words.word("a build-id")? {
            "-" => Box::default(),
            id => hex(id)?,
        };
        let module = Module { path: words.text("a path")?, build_id };
        self.modules.push(module.key());
        self.trace.bundle.sites.add_module(module);
        Ok(())
    }

    /// A stack that was told before, by its number.
    fn site(&self, word: &str) -> Read<u64> {
        if word == "-" {
            return Ok(0);
        }
        let at: usize = number(word, "the number of a stack")?;
        let known = at.checked_sub(1).and_then(|at| self.stacks.get(at));
        known.copied().ok_or_else(|| format!("stack {at} comes later, or not at all"))
    }

    fn stack(&mut self, words: &mut Words) -> Read<()> {
        in_order(words, self.stacks.len() + 1)?;
        let outer = self.site(words.word("a stack")?)?;
        let module = match words.word("a module")? {
            "-" => NO_MODULE,
            at => {
                let at: usize = number(at, "the number of a module")?;
                *self.modules.get(at).ok_or_else(|| format!("there is no module {at}"))?
            }
        };
        let offset = words.word("an offset")?;
        let digits = offset.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let offset = digits.ok_or_else(|| format!("`{offset}` is not an offset like 0x12"))?;
        let stack = Stack { outer, frame: Frame { module, offset } };
        self.stacks.push(self.trace.bundle.sites.add_stack(stack));
        Ok(())
    }

    fn symbol(&mut self, words: &mut Words) -> Read<()> {
        in_order(words, self.trace.bundle.symbols.len())?;
        words.keyword("lanes")?;
        let lanes = words.number("a number of lanes")?;
        words.keyword("stack")?;
        let site = self.site(words.word("a stack")?)?;
        words.keyword("time")?;
        let mut time = || words.number("a time");
        let tally = Tally { total: time()?, min: time()?, max: time()? };
        words.keyword("bytes")?;
        let bytes = hex(words.word("bytes")?)?;
        let classes = Classes::default();
        self.trace.bundle.symbols.push(SymbolEntry { bytes, site, lanes, tally, classes });
        Ok(())
    }

    /// The times of classes are what counts; that of the symbol is for people then.
    fn class(&mut self, words: &mut Words) -> Read<()> {
        words.keyword("bits")?;
        let bits = words.number("a number of bits")?;
        words.keyword("peer")?;
        let (together, value) = match words.word("a peer, or `all`")? {
            "all" => (true, 0),
            peer => (false, number(peer, "a peer")?),
        };
        words.keyword("calls")?;
        let count = words.number("a number of calls")?;
        words.keyword("time")?;
        let mut time = || words.number("a time");
        let tally = Tally { total: time()?, min: time()?, max: time()? };
        let symbol = self.trace.bundle.symbols.last_mut().ok_or("a class belongs to a symbol")?;
        if symbol.lanes == 0 || bits > 64 {
            return Err("a class that its symbol cannot have".into());
        }
        let known = std::mem::take(&mut symbol.classes);
        let class = Class { kind: Kind { bits, value }, count, tally };
        let list = known.list().iter().copied().chain([class]);
        symbol.classes = Classes::new(together || known.together, list);
        symbol.tally = symbol.classes.whole().unwrap_or(tally);
        Ok(())
    }

    fn block(&mut self, words: &mut Words) -> Read<()> {
        let block = block(words, 1)?;
        let of = self.trace.bundle.streams.last_mut().ok_or("a block belongs to a stream")?;
        of.blocks.push(block);
        Ok(())
    }

    fn structure(&mut self, words: &mut Words) -> Read<()> {
        in_order(words, self.trace.bundle.structures.len())?;
        let structure = match words.word("`rules` or `loops`")? {
            "rules" => rules(words.until(None)?, 'e')?.into(),
            "loops" => {
                let node = |word: &Word| match word.text.split_at_checked(1) {
                    Some(("e", symbol)) => Ok(Node::Event(number(symbol, "the number of a symbol")?)),
                    Some(("l", inside)) => Ok(Node::Loop { inside: number(inside, "a number of nodes")? }),
                    _ => Err(format!("`{}` is neither an event nor a loop", word.text)),
                };
                let nodes = words.until(None)?.iter().map(node).collect::<Read<_>>()?;
                Structure::Loops(Loops { nodes })
            }
            other => return Err(format!("`{other}` is neither rules nor loops")),
        };
        self.trace.bundle.structures.push(structure);
        Ok(())
    }

    fn cohort(&mut self, words: &mut Words) -> Read<()> {
        words.keyword("members")?;
        let ranks = ranks(words.word("a list of members")?)?;
        words.keyword("structure")?;
        let structure = words.number("the number of a structure")?;
        words.keyword("digest")?;
        let digest = words.word("a digest")?;
        let digest = u64::from_str_radix(digest, 16).map_err(|_| format!("`{digest}` is no digest"))?;
        let cohort = Cohort { ranks, structure, lanes: Vec::new(), sides: Vec::new(), digest };
        self.trace.bundle.cohorts.push(cohort);
        Ok(())
    }

    fn lanes(bundle: &mut Bundle) -> Read<&mut Vec<Lane>> {
        Ok(&mut bundle.cohorts.last_mut().ok_or("a lane belongs to a cohort")?.lanes)
    }

    fn lane(&mut self, words: &mut Words) -> Read<()> {
        let lane = match words.word("the number of a stream, or `by-rank`")? {
            "by-rank" => Lane::Varied(Vec::new()),
            stream => Lane::same(number(stream, "the number of a stream")?),
        };
        Reader::lanes(&mut self.trace.bundle)?.push(lane);
        Ok(())
    }

    fn variant(&mut self, words: &mut Words) -> Read<()> {
        words.keyword("ranks")?;
        let ranks = ranks(words.word("a list of ranks")?)?;
        words.keyword("stream")?;
        let stream = words.number("the number of a stream")?;
        let mut numbers = Vec::new();
        while !words.rest.is_empty() {
            words.keyword("number")?;
            let place = words.number("a place in the stream")?;
            numbers.push(Number { place, values: map(words.word("a function of the rank")?)? });
        }
        match Reader::lanes(&mut self.trace.bundle)?.last_mut() {
            Some(Lane::Varied(variants)) => variants.push(Variant { ranks, stream, used: 0, numbers }),
            _ => return Err("a variant belongs to a `lane by-rank`".into()),
        }
        Ok(())
    }
}

fn yes(words: &mut Words) -> Read<bool> {
    match words.word("yes or no")? {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(format!("`{other}` is neither yes nor no")),
    }
}

/// Things are numbered as they come, so that a line that was lost is noticed.
fn in_order(words: &mut Words, expected: usize) -> Read<()> {
    match words.number::<usize>("a number")? {
        number if number == expected => Ok(()),
        other => Err(format!("number {other} stands where {expected} belongs")),
    }
}
