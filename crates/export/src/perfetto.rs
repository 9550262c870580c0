//! Perfetto's own format: packets of protobuf with a track for each thread, a slice for each call, a flow for each message.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use refrain_model::Value;
use refrain_views::happenings::{Happening, Meaning};
use refrain_views::value;

use crate::out::written;
use crate::protobuf::Message;
use crate::timeline::{self, Sites, Timeline, Track};
use crate::{Error, Input, Output, Report};

/// Numbers of fields, by message.
mod field {
    pub const TRACE_PACKET: u32 = 1;
    pub mod packet {
        pub const TIMESTAMP: u32 = 8;
        pub const SEQUENCE: u32 = 10;
        pub const TRACK_EVENT: u32 = 11;
        pub const INTERNED: u32 = 12;
        pub const FLAGS: u32 = 13;
        pub const TRACK: u32 = 60;
    }
    pub mod track {
        pub const UUID: u32 = 1;
        pub const PROCESS: u32 = 3;
        pub const THREAD: u32 = 4;
        pub const PARENT: u32 = 5;
    }
    pub mod process {
        pub const PID: u32 = 1;
        pub const NAME: u32 = 6;
    }
    pub mod thread {
        pub const PID: u32 = 1;
        pub const TID: u32 = 2;
        pub const NAME: u32 = 5;
    }
    pub mod event {
        pub const CATEGORY_IDS: u32 = 3;
        pub const ANNOTATIONS: u32 = 4;
        pub const TYPE: u32 = 9;
        pub const NAME_ID: u32 = 10;
        pub const TRACK: u32 = 11;
        pub const FLOWS: u32 = 47;
        pub const ENDING_FLOWS: u32 = 48;
    }
    pub mod annotation {
        pub const NAME_ID: u32 = 1;
        pub const BOOL: u32 = 2;
        pub const INT: u32 = 4;
        pub const TEXT: u32 = 6;
    }
    pub mod interned {
        pub const CATEGORIES: u32 = 1;
        pub const NAMES: u32 = 2;
        pub const ANNOTATION_NAMES: u32 = 3;
        pub const ID: u32 = 1;
        pub const NAME: u32 = 2;
    }
}

/// Types of events.
const BEGIN: u64 = 1;
const END: u64 = 2;
/// What was interned before counts no more, and this packet needs what is interned.
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;
/// All packets are of one writer.
const SEQUENCE: u64 = 1;

pub fn write(input: &mut Input, out: &Output) -> Result<Report, Error> {
    let places = timeline::places(input)?;
    let mut perfetto = Perfetto {
        file: out.file()?,
        sites: Sites::new(input),
        ranks: u64::from(input.trace.meta.ranks),
        functions: HashSet::new(),
        categories: Names::default(),
        annotations: Names::default(),
    };
    let failed = written(&out.path);
    perfetto.head(&places).map_err(&failed)?;
    let report = timeline::walk(input, &out.path, &mut perfetto)?;
    perfetto.file.flush().map_err(&failed)?;
    Ok(report)
}

/// Names that were written once and have numbers.
#[derive(Default)]
struct Names(HashMap<&'static str, u64>);

impl Names {
    /// The number of a name, which is written into `interned` if it is new.
    fn of(&mut self, name: &'static str, field: u32, interned: &mut Message) -> u64 {
        let next = self.0.len() as u64 + 1;
        *self.0.entry(name).or_insert_with(|| {
            interned.message(field, &entry(next, name));
            next
        })
    }
}

fn entry(id: u64, name: &str) -> Message {
    let mut entry = Message::new();
    entry.uint(field::interned::ID, id).text(field::interned::NAME, name);
    entry
}

struct Perfetto<'a, W: Write> {
    file: W,
    sites: Sites<'a>,
    ranks: u64,
    functions: HashSet<u16>,
    categories: Names,
    annotations: Names,
}

impl<W: Write> Perfetto<'_, W> {
    /// Process 0 is the kernel's, so ranks begin at 1. The main thread has its process's number, as on Linux.
    fn numbers(&self, (rank, thread): Track) -> (u64, u64) {
        let pid = u64::from(rank) + 1;
        (pid, pid + u64::from(thread) * self.ranks)
    }

    /// Tracks of processes have even numbers, those of threads odd ones; 0 is none.
    fn process_track(&self, rank: u32) -> u64 {
        (u64::from(rank) + 1) * 2
    }

    fn thread_track(&self, place: Track) -> u64 {
        self.numbers(place).1 * 2 + 1
    }

    fn head(&mut self, places: &[Track]) -> io::Result<()> {
        for (at, &place) in places.iter().enumerate() {
            let (pid, tid) = self.numbers(place);
            if at == 0 || places[at - 1].0 != place.0 {
                let mut process = Message::new();
                process
                    .uint(field::process::PID, pid)
                    .text(field::process::NAME, &format!("rank {}", place.0));
                let mut track = Message::new();
                track.uint(field::track::UUID, self.process_track(place.0));
                track.message(field::track::PROCESS, &process);
                self.track(&track, at == 0)?;
            }
            let name = if place.1 == 0 { "main".into() } else { format!("thread {}", place.1) };
            let mut thread = Message::new();
            thread
                .uint(field::thread::PID, pid)
                .uint(field::thread::TID, tid)
                .text(field::thread::NAME, &name);
            let mut track = Message::new();
            track.uint(field::track::UUID, self.thread_track(place));
            track.uint(field::track::PARENT, self.process_track(place.0));
            track.message(field::track::THREAD, &thread);
            self.track(&track, false)?;
        }
        Ok(())
    }

    fn track(&mut self, track: &Message, first: bool) -> io::Result<()> {
        let mut packet = Message::new();
        packet.uint(field::packet::SEQUENCE, SEQUENCE);
        if first {
            packet.uint(field::packet::FLAGS, CLEARED);
        }
        packet.message(field::packet::TRACK, track);
        self.put(&packet)
    }

    fn event(&mut self, ns: i64, event: &Message, interned: &Message) -> io::Result<()> {
        let mut packet = Message::new();
        packet.uint(field::packet::TIMESTAMP, u64::try_from(ns).unwrap_or(0));
        packet.uint(field::packet::SEQUENCE, SEQUENCE).uint(field::packet::FLAGS, NEEDED);
        if !interned.is_empty() {
            packet.message(field::packet::INTERNED, interned);
        }
        packet.message(field::packet::TRACK_EVENT, event);
        self.put(&packet)
    }

    fn put(&mut self, packet: &Message) -> io::Result<()> {
        let mut trace = Message::new();
        trace.message(field::TRACE_PACKET, packet);
        self.file.write_all(trace.as_bytes())
    }

    fn annotation(&mut self, name: &'static str, value: &Value, interned: &mut Message) -> Message {
        let mut annotation = Message::new();
        let id = self.annotations.of(name, field::interned::ANNOTATION_NAMES, interned);
        annotation.uint(field::annotation::NAME_ID, id);
        match value {
            Value::Int(number) => annotation.int(field::annotation::INT, *number),
            Value::Bool(yes) => annotation.uint(field::annotation::BOOL, u64::from(*yes)),
            other => {
                let mut text = String::new();
                value::text(other, &mut text);
                annotation.text(field::annotation::TEXT, &text)
            }
        };
        annotation
    }
}

impl<W: Write> Timeline for Perfetto<'_, W> {
    fn begins(&mut self, happening: &Happening) -> io::Result<()> {
        let Happening { rank, thread, call, symbol, span, begins, .. } = happening;
        let (mut event, mut interned) = (Message::new(), Message::new());
        event.uint(field::event::TYPE, BEGIN).uint(field::event::TRACK, self.thread_track((*rank, *thread)));
        let function = call.function;
        // Numbers of functions begin at 0, those of names at 1.
        let id = u64::from(function.id) + 1;
        if self.functions.insert(function.id) {
            interned.message(field::interned::NAMES, &entry(id, function.name));
        }
        event.uint(field::event::NAME_ID, id);
        let family = function.families.first().copied().unwrap_or("mpi");
        event.uint(
            field::event::CATEGORY_IDS,
            self.categories.of(family, field::interned::CATEGORIES, &mut interned),
        );
        for (param, value) in function.params.iter().zip(&call.args) {
            let annotation = self.annotation(param.name, value, &mut interned);
            event.message(field::event::ANNOTATIONS, &annotation);
        }
        if let Some(site) = self.sites.of(*symbol) {
            let id = self.annotations.of("at", field::interned::ANNOTATION_NAMES, &mut interned);
            let mut annotation = Message::new();
            annotation.uint(field::annotation::NAME_ID, id).text(field::annotation::TEXT, &site);
            event.message(field::event::ANNOTATIONS, &annotation);
        }
        for meaning in begins {
            if let Meaning::Send(message) = meaning
                && let Some(id) = message.id
            {
                event.fixed64(field::event::FLOWS, id + 1);
            }
        }
        self.event(span.start, &event, &interned)
    }

    fn ends(&mut self, happening: &Happening, means: &[Meaning]) -> io::Result<()> {
        let mut event = Message::new();
        event.uint(field::event::TYPE, END);
        event.uint(field::event::TRACK, self.thread_track((happening.rank, happening.thread)));
        // A message has come when the call ends: that of its receiver may have begun before it was sent.
        for meaning in means {
            if let Meaning::Received(message) = meaning
                && let Some(id) = message.id
            {
                event.fixed64(field::event::ENDING_FLOWS, id + 1);
            }
        }
        self.event(happening.span.end, &event, &Message::new())
    }
}
