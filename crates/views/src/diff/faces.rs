//! Symbols as far as they count: those of two traces that look alike have one number.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use refrain_encode::{Layout, Slot};
use refrain_fold::bundle::Bundle;
use refrain_fold::stream::Stream;
use refrain_model::{Area, Class, Kind, Param, Returns, Value};

use super::settings::{Ignore, Settings};
use super::{Unread, Which};
use crate::error::Error;

/// What counts of a symbol.
#[derive(Debug)]
pub(super) struct Face {
    /// The same for symbols of both traces whose fixed parts that count are equal.
    pub key: u32,
    /// The same for symbols of both traces that are equal, whether it counts or not.
    pub content: u32,
    /// The lanes that count. Faces with one key have as many, and they mean the same.
    pub lanes: Vec<u16>,
    pub layout: Layout,
}

#[derive(Debug)]
pub(super) struct Faces {
    pub a: Vec<Face>,
    pub b: Vec<Face>,
    /// By stream of A, the one of B that is equal.
    streams: Vec<Option<u32>>,
}

/// What a symbol looks like.
type Look<'a> = (Cow<'a, [u8]>, u64);

impl Faces {
    pub fn of(a: &Bundle, b: &Bundle, settings: &Settings) -> Result<Faces, Unread> {
        let mut keys: HashMap<Look<'_>, u32> = HashMap::new();
        let mut contents: HashMap<(&[u8], u64), u32> = HashMap::new();
        let known: HashMap<&Stream, u32> = b.streams.iter().zip(0..).collect();
        let streams = a.streams.iter().map(|stream| known.get(stream).copied()).collect();
        let [a, b] = [(Which::A, a), (Which::B, b)].map(|(which, bundle)| {
            let mut faces = Vec::with_capacity(bundle.symbols.len());
            for (index, symbol) in (0..).zip(&bundle.symbols) {
                let layout = Layout::parse(&symbol.bytes)
                    .map_err(|error| Unread { which, error: Error::Symbol { index, error } })?;
                let looks = match settings.ignore {
                    Ignore { pointers: false, requests: false, .. } => Cow::Borrowed(&*symbol.bytes),
                    ignore => Cow::Owned(looks(&layout, ignore).into_bytes()),
                };
                let site = if settings.ignore.sites { 0 } else { symbol.site };
                let next = keys.len() as u32;
                let key = *keys.entry((looks, site)).or_insert(next);
                let next = contents.len() as u32;
                let content = *contents.entry((&*symbol.bytes, symbol.site)).or_insert(next);
                if layout.lanes != symbol.lanes {
                    let error = refrain_encode::Error::BadSymbol { function: layout.function.name, at: 0 };
                    return Err(Unread { which, error: Error::Symbol { index, error } });
                }
                // Where values stand in the symbol, it is they that are compared.
                let lanes = if layout.inline.is_some() { Vec::new() } else { lanes(&layout, settings) };
                faces.push(Face { key, content, lanes, layout });
            }
            Ok(faces)
        });
        Ok(Faces { a: a?, b: b?, streams })
    }

    /// Whether a stream of A is equal to one of B.
    pub fn is_same_stream(&self, a: u32, b: u32) -> bool {
        self.streams.get(a as usize) == Some(&Some(b))
    }
}

/// Whether an argument is a place in memory, and whether the number in its stead would count: an attribute's value may be
/// no address at all.
pub(super) fn is_place(p: &Param) -> Option<bool> {
    match p.kind {
        Kind::Buffer => Some(false),
        Kind::Value | Kind::OutPointer | Kind::OutAttribute => Some(true),
        _ => None,
    }
}

/// Whether an argument says which request it is, or which requests.
pub(super) fn is_request(p: &Param) -> bool {
    p.kind == Kind::Handle(Class::Request)
}

fn is_number(slot: &Slot) -> bool {
    matches!(slot, Slot::Address { area: Area::Number, .. })
}

fn lanes(layout: &Layout, settings: &Settings) -> Vec<u16> {
    let mut lanes: Vec<u16> = Vec::new();
    for (i, (p, slot)) in layout.function.params.iter().zip(&layout.slots).enumerate() {
        let ignored = match is_place(p) {
            Some(numbers_count) => settings.ignore.pointers && !(numbers_count && is_number(slot)),
            None => settings.ignore.requests && is_request(p),
        };
        if !ignored {
            lanes.extend(layout.lanes_of(i));
        }
    }
    lanes.extend(layout.result.filter(|_| layout.function.returns != Returns::Clock));
    lanes.extend(layout.polls.filter(|_| !settings.ignore.polls));
    lanes
}

/// What is fixed about calls with this symbol, without what is ignored of where things lie in memory and which requests they are.
/// Equal ones have the same lanes, but for those.
fn looks(layout: &Layout, ignore: Ignore) -> String {
    let mut out = format!("{} {:?} {}", layout.function.id, layout.outcome, layout.ignored);
    for (i, (p, slot)) in layout.function.params.iter().zip(&layout.slots).enumerate() {
        out.push(';');
        if ignore.requests && is_request(p) {
            out.push_str("request");
            continue;
        }
        let in_memory = ignore.pointers && matches!(slot, Slot::Address { .. } | Slot::Absent);
        let place = is_place(p).filter(|_| in_memory);
        let _ = match (place, slot) {
            (Some(true), slot) if is_number(slot) => write!(out, "number"),
            (Some(_), _) => write!(out, "place"),
            (None, Slot::Absent) => write!(out, "-"),
            // A function of the program's, by its place in the file.
            (None, Slot::Fixed(Value::Text(_))) if ignore.pointers && p.kind == Kind::Function => {
                write!(out, "function")
            }
            (None, Slot::Fixed(value)) => write!(out, "{value:?}"),
            (None, Slot::Object(class, id)) => write!(out, "{class:?} {id}"),
            (None, Slot::Text { places, .. }) => write!(out, "text {places}"),
            (None, Slot::Address { area, .. }) => write!(out, "{area:?}"),
            (None, Slot::NewComm(new)) => {
                let (code, len) = new.size_lanes();
                write!(out, "comm {} {:?}", new.is_like_parent(), len.map(|len| len - code))
            }
            (None, _) => write!(out, "in lanes"),
        };
        // How many there are tells lengths and results apart from what has none.
        if place.is_none() {
            let _ = write!(out, " {}", layout.lanes_of(i).len());
        }
    }
    if let Some(inline) = &layout.inline {
        let _ = write!(out, "{inline:?}");
    }
    out
}
