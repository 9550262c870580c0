//! Calls and time by how much data a call is about, and by peer.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use refrain_encode::{Apart, ClassLanes, Decoder, Layout, Slot};
use refrain_fold::bundle::{Tally, classes::Kind};
use refrain_model::Value;
use refrain_tracefile::Trace;
use serde::Serialize;

use super::folded;
use super::kept::{self, Piece, Spent, Timing};
use super::sizes::named_type;
use crate::error::Error;
use crate::human::{plural, size, thousands};
use crate::json;
use crate::length::Length;
use crate::table::Table;

/// What calls are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Size,
    Peer,
}

/// The least and the most of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Size {
    Bytes(u128, u128),
    /// Where the datatype's size is not known.
    Elements(u128, u128),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// By how much it is more than the caller.
    Relative(i64),
    /// `MPI_ANY_SOURCE` and others.
    Named(&'static str),
    /// There are too many to tell them apart.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Size(Size),
    Peer(Peer),
}

/// The calls of one function that are alike.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassRow {
    pub function: &'static str,
    pub what: What,
    pub calls: u64,
    /// Over all calls on all ranks.
    pub time: Spent,
}

impl Size {
    /// Numbers of so many bits, of elements of so many bytes.
    fn of(bits: u8, bytes: Option<u64>) -> Size {
        let most = (1u128 << bits.min(64)) - 1;
        let least = most - most / 2;
        match bytes {
            Some(bytes) => Size::Bytes(least * u128::from(bytes), most * u128::from(bytes)),
            None => Size::Elements(least, most),
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Size::Bytes(least, most) if least == most => write!(f, "{}", size(least)),
            Size::Bytes(least, most) => write!(f, "{} - {}", size(least), size(most)),
            Size::Elements(least, most) if least == most => {
                write!(f, "{}", plural(u64::try_from(least).unwrap_or(u64::MAX), "element"))
            }
            Size::Elements(least, most) => write!(f, "{least} - {most} elements"),
        }
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Relative(0) => write!(f, "itself"),
            Peer::Relative(by) => write!(f, "{by:+}"),
            Peer::Named(name) => write!(f, "{name}"),
            Peer::All => write!(f, "all"),
        }
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            What::Size(size) => size.fmt(f),
            What::Peer(peer) => peer.fmt(f),
        }
    }
}

/// What is told of a symbol beside its classes.
struct About<'a> {
    layout: &'a Layout,
    apart: Apart,
    /// Its calls are in classes, or all in one that their numbers tell.
    lanes: Option<ClassLanes>,
    /// Of one element.
    bytes: Option<u64>,
}

impl About<'_> {
    fn what(&self, by: By, kind: Kind, together: bool) -> Option<What> {
        match by {
            By::Size => self.apart.count.map(|_| What::Size(Size::of(kind.bits, self.bytes))),
            By::Peer => {
                let at = self.apart.peer?;
                Some(What::Peer(match &self.layout.slots[at] {
                    Slot::Fixed(Value::Name(name)) => Peer::Named(name),
                    Slot::Absent => return None,
                    _ if together => Peer::All,
                    _ => Peer::Relative(kind.value),
                }))
            }
        }
    }

    /// The class of all calls, from those of one rank.
    fn only(&self, occurrence: &folded::Occurrence<'_>) -> Kind {
        if self.layout.inline.is_some() {
            let call = Decoder::new(0).call(self.layout, &mut |_| 0).ok();
            let number = |at: Option<usize>| match call.as_ref().and_then(|call| call.args.get(at?)) {
                Some(Value::Int(number)) => *number,
                _ => 0,
            };
            return Kind::new(number(self.apart.count), number(self.apart.peer));
        }
        let first = |lane: Option<u16>| lane.and_then(|lane| occurrence.first(lane)).unwrap_or(0);
        self.lanes.map_or(Kind::default(), |lanes| Kind::new(first(lanes.count), first(lanes.peer)))
    }
}

/// Functions with the most time first, their classes in order. A trace without times has none.
pub fn classes(trace: &Trace, by: By) -> Result<Vec<ClassRow>, Error> {
    let bundle = &trace.bundle;
    if !trace.meta.timed {
        return Ok(Vec::new());
    }
    let layouts = super::layouts(bundle)?;
    let cohorts = bundle.of_threads();
    // The sizes of types that the program made: those that have one size on all ranks.
    let mut types = Vec::new();
    for cohort in &cohorts {
        let rank = cohort.ranks.first().unwrap_or(0);
        let counts = bundle.counts(cohort, rank);
        let occurrences = folded::occurrences(bundle, cohort, rank, &counts, &layouts);
        types.push(folded::Types::of_all(&occurrences, rank, bundle.counts_differ(cohort)));
    }
    let made = |id: u32| {
        let mut sizes = types.iter().filter_map(|types| types.get(id));
        let first = sizes.next()??;
        sizes.all(|size| size == Some(first)).then_some(first)
    };
    let about = |layout| {
        let apart = Apart::of(layout);
        let bytes = match apart.count.and_then(|count| layout.slots.get(count + 1)) {
            Some(Slot::Fixed(Value::Name(name))) => Some(named_type(name)),
            Some(Slot::Object(_, id)) => made(*id),
            _ => None,
        };
        About { layout, apart, lanes: ClassLanes::of(layout), bytes }
    };
    let about: Vec<About<'_>> = layouts.iter().map(about).collect();

    // Also those that are in no row: they may be told together with others.
    let mut pieces: Vec<Piece<Option<What>>> = Vec::new();
    let mut add = |about: &About<'_>, row: Option<What>, calls: u64, tally: Tally| {
        if calls > 0 {
            pieces.push(Piece { row, function: about.layout.function.id, calls, tally });
        }
    };
    for (symbol, about) in bundle.symbols.iter().zip(&about) {
        for class in symbol.classes.list() {
            add(about, about.what(by, class.kind, symbol.classes.together), class.count, class.tally);
        }
    }
    // Symbols whose calls are all alike: how many there are, and what their numbers are.
    let mut alone: BTreeMap<u32, (Kind, u64)> = BTreeMap::new();
    for cohort in &cohorts {
        let all: Vec<u32> = cohort.ranks.iter().collect();
        let differ = bundle.counts_differ(cohort);
        for &rank in if differ { &all[..] } else { all.get(..1).unwrap_or_default() } {
            let here = if differ { &[rank][..] } else { &all[..] };
            for occurrence in
                folded::occurrences(bundle, cohort, rank, &bundle.counts(cohort, rank), &layouts)
            {
                let symbol = &bundle.symbols[occurrence.symbol as usize];
                if !symbol.classes.is_empty() {
                    continue;
                }
                let (calls, varied) = (occurrence.calls(), occurrence.varied.get());
                // How often a poll failed is each rank's own.
                let calls = match varied {
                    true => here.iter().fold(0, |sum: u64, &r| sum.saturating_add(occurrence.at(r).calls())),
                    false => calls.saturating_mul(here.len() as u64),
                };
                let known = alone.entry(occurrence.symbol);
                let kind = || about[occurrence.symbol as usize].only(&occurrence);
                let sum = &mut known.or_insert_with(|| (kind(), 0)).1;
                *sum = sum.saturating_add(calls);
            }
        }
    }
    for (symbol, (kind, calls)) in alone {
        let about = &about[symbol as usize];
        // Of polls nothing is told by peer.
        let together = about.lanes.is_none() && about.layout.inline.is_none();
        add(about, about.what(by, kind, together), calls, bundle.symbols[symbol as usize].tally);
    }

    let mut rows: BTreeMap<(u16, What), (u64, Option<Spent>)> = BTreeMap::new();
    for (piece, spent) in pieces.iter().zip(kept::spent(trace, &pieces)) {
        let Some(what) = piece.row else { continue };
        let row = rows.entry((piece.function, what)).or_default();
        row.0 = row.0.saturating_add(piece.calls);
        kept::add(&mut row.1, spent);
    }
    let rows = rows.into_iter().filter_map(|(key, (calls, time))| Some((key, (calls, time?.settled(calls)))));
    let rows: BTreeMap<(u16, What), (u64, Spent)> = rows.collect();

    let mut of_function: HashMap<u16, u64> = HashMap::new();
    for ((function, _), (_, time)) in &rows {
        let sum = of_function.entry(*function).or_default();
        *sum = sum.saturating_add(time.total);
    }
    let name = |id: u16| refrain_model::function_by_id(id).map_or("?", |f| f.name);
    let mut sorted: Vec<_> = rows.into_iter().collect();
    sorted.sort_by_key(|((id, what), _)| (std::cmp::Reverse(of_function[id]), name(*id), *what));
    let row = |((id, what), (calls, time))| ClassRow { function: name(id), what, calls, time };
    Ok(sorted.into_iter().map(row).collect())
}

const ABOUT_SIZES: &str = "\
Size is what the call names: count x size of the datatype, of a receive what it has room for, of a call that sends and
receives what it sends. Counts from one power of two to the next share a line. Calls that name no size, or an array of
sizes, are not here.";

const ABOUT_PEERS: &str = "\
A peer is told relative to the caller: +1 is the next rank, and of the last rank of a ring of 16 its neighbour is -15. A call that
sends and receives is told by where it sends. `all`: these calls have more than 16 pairs of size and peer, or are polls. Calls
that name no peer are not here.";

pub fn write_classes_text(
    trace: &Trace,
    by: By,
    rows: &[ClassRow],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (name, about) = match by {
        By::Size => ("size", ABOUT_SIZES),
        By::Peer => ("peer", ABOUT_PEERS),
    };
    let length = Length::of(trace);
    let mut table = Table::new(["function", name, "calls", "time", "mean", "min", "max", "of run"]);
    let mut push = |function: &str, what: String, calls: u64, spent: Spent| {
        let [time, mean, min, max, share] = kept::cells(Some(spent), calls, length.as_ref());
        table.row([function.into(), what, thousands(calls), time, mean, min, max, share]);
    };
    for row in rows {
        push(row.function, row.what.to_string(), row.calls, row.time);
    }
    for (function, calls, spent) in kept::together(rows.iter().map(|row| (row.function, row.calls, row.time)))
    {
        push(function, kept::ALL_TOGETHER.into(), calls, spent);
    }
    let table = table.render();
    match rows.is_empty() {
        true => writeln!(out, "No call that was recorded names a {name}.\n")?,
        false => writeln!(out, "{table}\n{}\n", kept::legend(&table, length.as_ref()))?,
    }
    writeln!(out, "{about}")?;
    Ok(out.flush()?)
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    ranks: u32,
    per: &'static str,
    classes: Vec<Class>,
}

#[derive(Serialize)]
struct Class {
    function: &'static str,
    #[serde(flatten)]
    what: ClassKey,
    calls: u64,
    #[serde(flatten)]
    time: Option<Timing>,
}

/// What a class is told by.
#[derive(Serialize)]
#[serde(untagged)]
enum ClassKey {
    Bytes {
        min_bytes: u128,
        max_bytes: u128,
    },
    Elements {
        min_elements: u128,
        max_elements: u128,
    },
    Peer {
        #[serde(serialize_with = "json::shown")]
        peer: Peer,
        #[serde(skip_serializing_if = "Option::is_none")]
        relative: Option<i64>,
    },
}

impl ClassKey {
    fn of(what: What) -> ClassKey {
        match what {
            What::Size(Size::Bytes(min_bytes, max_bytes)) => ClassKey::Bytes { min_bytes, max_bytes },
            What::Size(Size::Elements(min_elements, max_elements)) => {
                ClassKey::Elements { min_elements, max_elements }
            }
            What::Peer(peer @ Peer::Relative(by)) => ClassKey::Peer { peer, relative: Some(by) },
            What::Peer(peer) => ClassKey::Peer { peer, relative: None },
        }
    }
}

pub fn write_classes_json(
    trace: &Trace,
    by: By,
    rows: &[ClassRow],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let class = |row: &ClassRow| Class {
        function: row.function,
        what: ClassKey::of(row.what),
        calls: row.calls,
        time: Timing::of(Some(row.time), row.calls),
    };
    let document = Document {
        schema: "refrain-classes-1",
        ranks: trace.meta.ranks,
        per: if by == By::Size { "size" } else { "peer" },
        classes: rows.iter().map(class).collect(),
    };
    Ok(json::document(&document, out)?)
}
