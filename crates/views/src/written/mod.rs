//! A whole trace as text that people can read, and that can be read back.
//!
//! One thing a line, words between blanks, texts in quotes as in JSON; what is behind `#` is for people alone, and so are
//! blanks at the beginning of a line.
//!
//! ```text
//! refrain-text 1
//! ranks 4                                    and the rest of what ran: command, library, host, option, note ...
//! profile 0x4:1 unit 20                      how these ranks spent their time: on what (0 outside
//! spent 0 least 2 5 most 0 9 levels 9 1 5 3  MPI, 1 in MPI, 2 + a function's number): the extremes, and levels (see FORMAT.md)
//! paths                                      how times are distributed:
//! path 3 2 durations 90 4 0 1 total 512 gaps    calls of symbol 3 after those of 2 (`first`: none, `others`): of durations and
//!                                            of gaps the first level, how many calls have it and the next ones, the sum
//! flight 2 0 inside function 97 arg - ...   what a thread was doing when its recording was found, of a run that died
//! module 0 1f2e3d4c "/home/me/app"           number, build-id (or -), path
//! stack 1 - 0 0x1234                         number, the stack it was called from, module (or -), offset
//! symbol 0 lanes 4 stack 1 time 400 90 110 bytes 2e00...    # MPI_Send(datatype=MPI_INT, comm=world)
//!   class bits 4 peer 1 calls 3 time 290 90 100             some of its calls: bits of the count, peer (or all), time
//! stream 0 terms 5 shape t0                  a value for ever
//! stream 1 terms 0:4:3 7 shape r1x2 t1 | t0  rules: the first is the start; 0:4:3 is 0 4 8; the last item never ends
//!   block running 9 terms 0 1 8 shape t0 r1 | t1x2 t2       what [0] among the terms stands for: running sums
//!   block packed 17 3x8 99                   or just numbers, 3 eight times
//! structure 0 loops l2 e0 e1                 a loop with two nodes in it: symbols 0 and 1
//! structure 1 rules e0 r1x9 | e1x2 e2        a grammar
//! cohort members 0x4:1 structure 0 digest 00f1...    threads * ranks + rank: 0 to 3; 0x2:8x4:1 is 0-3,8-11
//!   lane 0                                   the stream of all ranks: the times of each node, then the symbols' lanes
//!   lane by-rank                             or variants: ranks, their stream, and its numbers that depend on the rank
//!     variant ranks 0x4:1 stream 1 number 0 0=7x4:1:1       in place 0 rank 0 has 7, rank 1 has 8 ...
//! ```

mod flight;
mod read;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;

use refrain_encode::{Layout, Slot};
use refrain_fold::bundle::sites::NO_MODULE;
use refrain_fold::bundle::{Cohort, Lane, Structure, Tally};
use refrain_fold::grammar::{Grammar, Symbol};
use refrain_fold::loops::Node;
use refrain_fold::ranks::{RankList, RankMap};
use refrain_fold::stream::{Block, Stream, Term};
use refrain_times::paths::{Before, Histogram};
use refrain_tracefile::clocks::{Clock, Clocks, Point};
use refrain_tracefile::profile::Row;
use refrain_tracefile::{Cores, Meta, Trace};

use crate::error::Error;
use crate::timed::time_of;
use crate::{json, value};

pub use read::{BadText, WITHOUT_TIMES, read};

const VERSION: u32 = 1;

pub fn write(trace: &Trace, out: &mut dyn Write) -> Result<(), Error> {
    let mut text = String::new();
    meta(trace, &mut text);
    let bundle = &trace.bundle;
    let modules: Vec<u64> = bundle.sites.modules.keys().copied().collect();
    for (number, module) in bundle.sites.modules.values().enumerate() {
        let id = if module.build_id.is_empty() { "-".to_string() } else { hex(&module.build_id) };
        let _ = writeln!(text, "module {number} {id} {}", quoted(&module.path));
    }
    // Stacks after those they were called from; what is in no such chain would not be valid.
    let mut stacks: Vec<u64> = Vec::new();
    let mut numbers: HashMap<u64, usize> = HashMap::new();
    for site in bundle.sites.stacks.keys() {
        let outwards = bundle.sites.outwards(*site).map(|(site, _)| site);
        let mut new: Vec<u64> = outwards.take_while(|site| !numbers.contains_key(site)).collect();
        new.reverse();
        for site in new {
            stacks.push(site);
            numbers.insert(site, stacks.len());
        }
    }
    let stack_number = |site: u64| numbers.get(&site).map_or("-".to_string(), usize::to_string);
    for (number, site) in stacks.iter().enumerate() {
        let stack = bundle.sites.stacks[site];
        let module = match stack.frame.module {
            NO_MODULE => "-".to_string(),
            key => modules.iter().position(|known| *known == key).map_or("-".into(), |at| at.to_string()),
        };
        let (outer, offset) = (stack_number(stack.outer), stack.frame.offset);
        let _ = writeln!(text, "stack {} {outer} {module} {offset:#x}", number + 1);
    }
    for (number, symbol) in bundle.symbols.iter().enumerate() {
        let tally = symbol.tally;
        let _ = write!(
            text,
            "symbol {number} lanes {} stack {} time {} {} {} bytes {}",
            symbol.lanes,
            stack_number(symbol.site),
            tally.total,
            tally.min,
            tally.max,
            hex(&symbol.bytes)
        );
        if let Ok(layout) = Layout::parse(&symbol.bytes) {
            let _ = write!(text, "    # {}", described(&layout));
        }
        text.push('\n');
        for class in symbol.classes.list() {
            let Tally { total, min, max } = class.tally;
            let peer = if symbol.classes.together { "all".into() } else { class.kind.value.to_string() };
            let (bits, calls) = (class.kind.bits, class.count);
            let _ = writeln!(text, "  class bits {bits} peer {peer} calls {calls} time {total} {min} {max}");
        }
    }
    for (number, one) in bundle.streams.iter().enumerate() {
        let _ = write!(text, "stream {number} ");
        stream(one, &mut text);
        text.push('\n');
        for block in &one.blocks {
            text.push_str("  block ");
            written_block(block, &mut text);
            text.push('\n');
        }
    }
    for (number, structure) in bundle.structures.iter().enumerate() {
        let _ = write!(text, "structure {number} ");
        match structure {
            Structure::Rules(grammar) => {
                text.push_str("rules");
                rules(grammar, 'e', &mut text);
            }
            Structure::Loops(loops) => {
                text.push_str("loops");
                for node in &loops.nodes {
                    let _ = match node {
                        Node::Event(symbol) => write!(text, " e{symbol}"),
                        Node::Loop { inside } => write!(text, " l{inside}"),
                    };
                }
            }
        }
        text.push('\n');
    }
    bundle.cohorts.iter().for_each(|one| cohort(one, &mut text));
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn meta(trace: &Trace, text: &mut String) {
    // Every field by name, so that a new one cannot be forgotten.
    let Meta {
        refrain_version,
        command,
        library,
        abi,
        ranks: count,
        hosts,
        cores,
        started,
        wall_ns,
        options,
        split,
        timed,
        complete,
        notes,
        profile,
        paths,
        memory,
        merge_ms,
        clocks,
        flight: flying,
    } = &trace.meta;
    let _ = write!(text, "refrain-text {VERSION}");
    if time_of(trace).is_ok_and(|time| time.of_every_call()) {
        let _ = write!(text, "    # without the times of single calls: only their sums are here");
    }
    text.push('\n');
    let _ = writeln!(text, "version {}", quoted(refrain_version));
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let _ = writeln!(text, "command {}", command.join(" "));
    let _ = writeln!(text, "library {}\nabi {}", quoted(library), quoted(abi));
    let _ = writeln!(text, "ranks {count}\nstarted {started}\nwall {wall_ns}");
    for (host, list) in hosts {
        let _ = writeln!(text, "host {} {}", quoted(host), ranks(list));
    }
    for Cores { ranks: list, each, sharing, thousandths } in cores {
        let _ =
            writeln!(text, "cores {} each {each} sharing {sharing} thousandths {thousandths}", ranks(list));
    }
    for (name, setting) in options {
        let _ = writeln!(text, "option {} {}", quoted(name), quoted(setting));
    }
    for (flag, on) in [("split", split), ("timed", timed), ("complete", complete)] {
        let _ = writeln!(text, "{flag} {}", if *on { "yes" } else { "no" });
    }
    for note in notes {
        let _ = writeln!(text, "note {}", quoted(note));
    }
    if let Some(profile) = profile {
        let _ = writeln!(text, "profile {} unit {}", ranks(&profile.ranks), profile.unit);
        for Row { spent, least, most, runs, .. } in &profile.rows {
            let spent = spent.number();
            let _ =
                write!(text, "spent {spent} least {} {} most {} {} levels", least.0, least.1, most.0, most.1);
            runs.iter().for_each(|(level, ranks)| {
                let _ = write!(text, " {level} {ranks}");
            });
            text.push('\n');
        }
    }
    if paths.is_some() {
        text.push_str("paths\n");
    }
    for ((symbol, before), path) in paths.iter().flat_map(|paths| &paths.0) {
        let before = match before {
            Before::Nothing => "first".to_owned(),
            Before::Call(symbol) => symbol.to_string(),
            Before::Others => "others".to_owned(),
        };
        let _ = write!(text, "path {symbol} {before} durations");
        histogram(&path.duration, text);
        text.push_str(" gaps");
        histogram(&path.gap, text);
        text.push('\n');
    }
    if let Some(memory) = memory {
        let _ = writeln!(text, "memory {} {} {} {}", memory.min, memory.mean, memory.max, memory.root);
    }
    if let Some(merge) = merge_ms {
        let _ = writeln!(text, "merge {merge}");
    }
    if let Some(Clocks { clocks }) = clocks {
        let _ = writeln!(text, "clocks");
        clocks.iter().for_each(|one| clock(one, text));
    }
    flying.iter().for_each(|one| flight::write(one, text));
}

fn histogram(histogram: &Histogram, text: &mut String) {
    if !histogram.counts.is_empty() {
        let _ = write!(text, " {}", histogram.first);
        histogram.counts.iter().for_each(|count| {
            let _ = write!(text, " {count}");
        });
        let _ = write!(text, " total {}", histogram.total);
    }
}

fn clock(clock: &Clock, text: &mut String) {
    let Clock { ranks: list, counter, monotonic, wander, residual, start, end } = clock;
    let yes = |on: bool| if on { "yes" } else { "no" };
    let _ = write!(text, "clock ranks {} counter {}", ranks(list), yes(*counter));
    let _ = write!(text, " monotonic {} wander {wander} residual {residual}", yes(*monotonic));
    for Point { at, common, error } in [start, end] {
        let _ = write!(text, " point {at} {common} {error}");
    }
    text.push('\n');
}

fn quoted(text: &str) -> String {
    json::text(text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is the same in all calls of a symbol.
fn described(layout: &Layout) -> String {
    let mut params = Vec::new();
    for (param, slot) in layout.function.params.iter().zip(&layout.slots) {
        let mut text = String::new();
        match slot {
            Slot::Fixed(fixed) => value::text(fixed, &mut text),
            Slot::Object(class, id) => value::text(&refrain_model::Value::Object(*class, *id), &mut text),
            _ => continue,
        }
        params.push(format!("{}={text}", param.name));
    }
    format!("{}({})", layout.function.name, params.join(", "))
}

/// `0x2:8x4:1,40`
fn ranks(list: &RankList) -> String {
    let part = |part: &refrain_fold::ranks::Part| {
        let dims = part.dims.iter().map(|(count, stride)| format!("x{count}:{stride}"));
        dims.fold(part.start.to_string(), |all, one| all + &one)
    };
    list.parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// `0=7x4:1:1`, where the ranks are seen in another order `8r1@0=7x4:1:1`, and a sum of two such functions `0=1;8r1@0=7x4:1:1`.
fn map(map: &RankMap) -> String {
    let part = |part: &refrain_fold::ranks::MapPart| {
        let dims = part.dims.iter().map(|dim| format!("x{}:{}:{}", dim.count, dim.stride, dim.step));
        dims.fold(format!("{}={}", part.start, part.value), |all, one| all + &one)
    };
    let view = map.view.map_or_else(String::new, |view| format!("{view}@"));
    let plus = map.plus.as_ref().map_or_else(String::new, |plus| format!(";{}", self::map(plus)));
    view + &map.parts.iter().map(part).collect::<Vec<_>>().join(",") + &plus
}

fn rules(grammar: &Grammar, terminal: char, text: &mut String) {
    for (at, rule) in grammar.rules.iter().enumerate() {
        text.push_str(if at > 0 { " |" } else { "" });
        for item in rule {
            let _ = match item.symbol {
                Symbol::Terminal(number) => write!(text, " {terminal}{number}"),
                Symbol::Rule(number) => write!(text, " r{number}"),
            };
            if item.count != 1 {
                let _ = write!(text, "x{}", item.count);
            }
        }
    }
}

fn written_block(block: &Block, text: &mut String) {
    match block {
        Block::Packed { .. } => {
            text.push_str("packed");
            for (number, count) in block.unpack() {
                let _ = write!(text, " {number}");
                if count > 1 {
                    let _ = write!(text, "x{count}");
                }
            }
        }
        Block::Running { count, steps } => {
            let _ = write!(text, "running {count} ");
            inner_stream(steps, text);
        }
        Block::Rows { count, rows } => {
            let _ = write!(text, "rows {count} {} {{ ", rows.step);
            inner_stream(&rows.starts, text);
            text.push_str(" } { ");
            inner_stream(&rows.counts, text);
            text.push_str(" }");
        }
    }
}

/// One with its blocks on the same line.
fn inner_stream(one: &Stream, text: &mut String) {
    stream(one, text);
    for block in &one.blocks {
        text.push_str(" ( ");
        written_block(block, text);
        text.push_str(" )");
    }
}

fn stream(stream: &Stream, text: &mut String) {
    text.push_str("terms");
    for term in &stream.terms {
        let _ = match term {
            Term::Value(value) => write!(text, " {value}"),
            Term::Stride { start, step, count } => write!(text, " {start}:{step}:{count}"),
            Term::Block(block) => write!(text, " [{block}]"),
        };
    }
    text.push_str(" shape");
    rules(&stream.shape, 't', text);
}

fn cohort(cohort: &Cohort, text: &mut String) {
    let _ = writeln!(
        text,
        "cohort members {} structure {} digest {:016x}",
        ranks(&cohort.ranks),
        cohort.structure,
        cohort.digest
    );
    for lane in &cohort.lanes {
        match lane {
            Lane::Same { stream, .. } => {
                let _ = writeln!(text, "  lane {stream}");
            }
            Lane::Varied(variants) => {
                text.push_str("  lane by-rank\n");
                for variant in variants {
                    let _ =
                        write!(text, "    variant ranks {} stream {}", ranks(&variant.ranks), variant.stream);
                    for number in &variant.numbers {
                        let _ = write!(text, " number {} {}", number.place, map(&number.values));
                    }
                    text.push('\n');
                }
            }
        }
    }
}
