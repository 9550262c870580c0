//! Tags that do not matter.
//!
//! A tag matters where it decides which message meets which receive. Messages between two ranks on one communicator
//! arrive in the order in which they were sent; so if the receives were posted with the same tags in the same order,
//! they would have met the same messages without any tags. Each rank hashes the tags it sent to each other one and those
//! it expected from each, in order; sent ones are added up and expected ones taken away, over all ranks, so that a
//! communicator whose sum is zero is one whose tags do not matter. No rank needs to hear of another's pairs.
//!
//! This says nothing of receives from any source or with any tag, of probes, of persistent and partitioned operations, of
//! several threads on one communicator, and of inter-communicators: there tags stay, unless all of the communicator's
//! are the same one. Where a call was left out, was cancelled or failed, or a rank is missing, they stay too.
//!
//! What is dropped reads as 0. Statuses of calls without a communicator (`MPI_Waitall`) lose their tags where all
//! communicators do.

use std::collections::{BTreeMap, HashMap, HashSet};

use refrain_fold::bundle::{Bundle, SymbolEntry};
use refrain_fold::stream::Stream;
use refrain_fold::xxh64;
use refrain_model::{Call, Class, Dir, Kind, Value};

use crate::error::Error;
use crate::hash::mix;
use crate::layout::{Layout, Outcome, Slot};
use crate::params::{Message, comm_param, speaks_of_a_file};
use crate::reader::Reader;

/// What is known of the tags of a rank, or of several together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tags {
    comms: BTreeMap<String, Use>,
    /// Some rank cannot tell.
    unknown: bool,
}

/// Of one communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Use {
    /// Of what was sent, less what was expected.
    sum: u64,
    /// Order alone does not decide.
    wild: bool,
    tags: Different,
}

/// Different tags that were met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Different {
    #[default]
    None,
    One(i64),
    Many,
}

impl Different {
    fn join(self, other: Different) -> Different {
        match (self, other) {
            (Different::None, tags) | (tags, Different::None) => tags,
            (a, b) if a == b => a,
            _ => Different::Many,
        }
    }
}

impl Use {
    fn matters(&self) -> bool {
        let one = matches!(self.tags, Different::None | Different::One(_));
        !one && (self.wild || self.sum != 0)
    }
}

/// Tags between the caller and another rank, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    To(i64),
    From(i64),
}

/// Of one communicator of one rank, while its calls are read.
#[derive(Debug, Default)]
struct Reading {
    own_rank: i64,
    group: u64,
    ways: HashMap<Way, u64>,
    known: Use,
    thread: Option<u32>,
}

impl Tags {
    /// A rank that cannot say anything: all tags stay.
    pub fn unknown() -> Tags {
        Tags { unknown: true, ..Tags::default() }
    }

    /// Those of one rank, whose own bundle this is.
    pub fn of(bundle: &Bundle, rank: u32) -> Result<Tags, Error> {
        let mut comms: HashMap<String, Reading> = HashMap::new();
        let mut unknown = false;
        // By communicator: a hash of its group, or none where it has two.
        let mut groups: HashMap<String, Option<u64>> = HashMap::new();
        let message = |symbol: &SymbolEntry| Message::of(Layout::parse(&symbol.bytes).ok()?.function);
        let messages: Vec<Option<Message>> = bundle.symbols.iter().map(message).collect();
        let reader = Reader::new(bundle);
        for thread in reader.threads(rank) {
            let mut events = reader.events(rank, thread)?;
            while let Some(event) = events.next_event()? {
                let call = &event.call;
                learn_group(call, &mut groups);
                unknown |= call.function.name == "MPI_Cancel";
                let Some(message) = messages[event.symbol as usize] else { continue };
                let Value::Comm(name) = &call.args[message.comm] else {
                    unknown = true;
                    continue;
                };
                let reading = comms.entry(name.clone()).or_insert_with(|| Reading {
                    own_rank: events.base_rank(event.symbol, message.comm),
                    group: groups.get(name).copied().flatten().unwrap_or(0),
                    ..Reading::default()
                });
                let failed = events.layout(event.symbol).is_none_or(|l| l.outcome != Outcome::Success);
                let crowded = *reading.thread.get_or_insert(thread) != thread;
                reading.known.wild |= message.wild || failed || crowded || groups.get(name) == Some(&None);
                reading.meet(call, &message);
            }
        }
        Ok(Tags {
            comms: comms.into_iter().map(|(name, reading)| (name, reading.finish())).collect(),
            unknown,
        })
    }

    pub fn absorb(&mut self, other: Tags) {
        self.unknown |= other.unknown;
        for (name, other) in other.comms {
            let known = self.comms.entry(name).or_default();
            known.sum = known.sum.wrapping_add(other.sum);
            known.wild |= other.wild;
            known.tags = known.tags.join(other.tags);
        }
    }

    /// Whether the tags of this communicator decide anything, as far as is known.
    pub fn matter(&self, comm: &str) -> bool {
        self.unknown || self.comms.get(comm).is_none_or(Use::matters)
    }

    /// Drops those of a rank that do not matter. Whether there were any.
    pub(super) fn drop_from(&self, bundle: &mut Bundle, rank: u32) -> Result<bool, Error> {
        if self.unknown {
            return Ok(false);
        }
        // A symbol's communicator is a number that may stand for several, one after the other.
        let mut kept: HashSet<u32> = HashSet::new();
        let reader = Reader::new(bundle);
        for thread in reader.threads(rank) {
            let mut events = reader.events(rank, thread)?;
            while let Some(event) = events.next_event()? {
                let Some(comm) = comm_param(event.call.function) else { continue };
                let drops = matches!(&event.call.args[comm], Value::Comm(name) if !self.matter(name));
                if !drops {
                    kept.insert(event.symbol);
                }
            }
        }
        let all = !self.comms.values().any(Use::matters);
        let lanes = |(number, symbol): (u32, &SymbolEntry)| {
            let Ok(layout) = Layout::parse(&symbol.bytes) else { return Vec::new() };
            let dropped = match comm_param(layout.function) {
                Some(_) => !kept.contains(&number),
                None => all,
            };
            if dropped { tag_lanes(&layout) } else { Vec::new() }
        };
        let lanes: Vec<Vec<u16>> = (0..).zip(&bundle.symbols).map(lanes).collect();
        Ok(bundle.change_lanes(|place| {
            let dropped = lanes.get(place.symbol as usize)?.contains(&place.lane);
            (dropped && place.stream.as_constant() != Some(0)).then(|| Stream::constant(0))
        }))
    }
}

/// The lanes of a symbol that hold tags of messages.
fn tag_lanes(layout: &Layout) -> Vec<u16> {
    let f = layout.function;
    let mut lanes = Vec::new();
    if layout.inline.is_some() || speaks_of_a_file(f) {
        return lanes;
    }
    let message = Message::of(f).is_some();
    for (p, slot) in f.params.iter().zip(&layout.slots) {
        match *slot {
            Slot::Number { lane } if p.kind == Kind::Tag && message => lanes.push(lane),
            Slot::Status { lane } | Slot::Statuses { lane, .. } => lanes.push(lane + 1),
            _ => {}
        }
    }
    lanes
}

impl Reading {
    fn meet(&mut self, call: &Call, message: &Message) {
        if let Some((rank, tag)) = message.sent {
            self.message(&call.args[rank], &call.args[tag], Way::To);
        }
        if let Some((rank, tag)) = message.expected {
            self.message(&call.args[rank], &call.args[tag], Way::From);
        }
    }

    fn message(&mut self, rank: &Value, tag: &Value, way: impl Fn(i64) -> Way) {
        if *rank == Value::Name("MPI_PROC_NULL") {
            return;
        }
        match tag {
            Value::Int(tag) => self.known.tags = self.known.tags.join(Different::One(*tag)),
            _ => self.known.wild = true,
        }
        match (rank, tag) {
            (Value::Int(rank), Value::Int(tag)) => {
                let sequence = self.ways.entry(way(*rank)).or_insert(0);
                *sequence = mix(sequence.rotate_left(17), *tag as u64);
            }
            // From any source.
            _ => self.known.wild = true,
        }
    }

    fn finish(self) -> Use {
        let mut known = self.known;
        for (way, sequence) in self.ways {
            let (from, to) = match way {
                Way::To(rank) => (self.own_rank, rank),
                Way::From(rank) => (rank, self.own_rank),
            };
            let pair = [from as u64, to as u64, sequence].into_iter().fold(self.group, mix);
            known.sum = match way {
                Way::To(_) => known.sum.wrapping_add(pair),
                Way::From(_) => known.sum.wrapping_sub(pair),
            };
        }
        known
    }
}

/// Communicators that one call makes for several groups have one name: their members tell them apart.
fn learn_group(call: &Call, groups: &mut HashMap<String, Option<u64>>) {
    let made = call.function.params.iter().zip(&call.args).find_map(|(p, value)| match value {
        Value::Comm(name) if p.kind == Kind::Handle(Class::Comm) && p.dir != Dir::In => Some(name),
        _ => None,
    });
    let Some(made) = made else { return };
    let fact = |name: &str| call.facts.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
    let group = match (fact("group"), fact("remote_group")) {
        (_, Some(_)) => None,
        (Some(Value::List(members)), None) => Some(members.iter().fold(1, |hash, member| match member {
            Value::Int(rank) => mix(hash, *rank as u64),
            _ => hash,
        })),
        // As its parent's.
        (Some(Value::Text(text)), None) => {
            let parent = text.strip_prefix("as ").unwrap_or(text);
            groups.get(parent).copied().unwrap_or(Some(xxh64(parent.as_bytes(), 0)))
        }
        _ => Some(0),
    };
    groups.insert(made.clone(), group);
}

/// How they travel from rank to rank: a line for each communicator.
impl Tags {
    pub fn to_text(&self) -> String {
        let mut out = String::from(if self.unknown { "unknown\n" } else { "known\n" });
        for (name, known) in &self.comms {
            let tags = match known.tags {
                Different::None => "none".into(),
                Different::One(tag) => tag.to_string(),
                Different::Many => "many".to_owned(),
            };
            out += &format!("{} {} {tags} {name}\n", known.sum, u8::from(known.wild));
        }
        out
    }

    /// What cannot be read says nothing, so that tags stay.
    pub fn from_text(text: &str) -> Tags {
        let mut lines = text.lines();
        let mut tags = Tags { unknown: lines.next() != Some("known"), ..Tags::default() };
        for line in lines {
            let mut words = line.splitn(4, ' ');
            let mut word = || words.next();
            let known = (|| {
                let (sum, wild) = (word()?.parse().ok()?, word()? != "0");
                let tags = match word()? {
                    "none" => Different::None,
                    "many" => Different::Many,
                    tag => Different::One(tag.parse().ok()?),
                };
                Some((word()?.to_owned(), Use { sum, wild, tags }))
            })();
            match known {
                Some((name, known)) => drop(tags.comms.insert(name, known)),
                None => tags.unknown = true,
            }
        }
        tags
    }
}
