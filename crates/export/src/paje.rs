//! Paje, which ViTE opens: a container for each thread, a state for each call, a link for each message.

use std::collections::HashSet;
use std::io::{self, Write};

use refrain_model::Function;
use refrain_views::happenings::{Happening, Meaning};

use crate::out::written;
use crate::timeline::{self, Timeline, Track};
use crate::{Error, Input, Output, Report};

/// A kind of line: its name, its number and its fields.
type Definition = (&'static str, u32, &'static [(&'static str, &'static str)]);

const DEFINITIONS: [Definition; 9] = [
    ("PajeDefineContainerType", 0, &[("Alias", "string"), ("Type", "string"), ("Name", "string")]),
    ("PajeDefineStateType", 1, &[("Alias", "string"), ("Type", "string"), ("Name", "string")]),
    (
        "PajeDefineLinkType",
        2,
        &[
            ("Alias", "string"),
            ("Type", "string"),
            ("StartContainerType", "string"),
            ("EndContainerType", "string"),
            ("Name", "string"),
        ],
    ),
    (
        "PajeDefineEntityValue",
        3,
        &[("Alias", "string"), ("Type", "string"), ("Name", "string"), ("Color", "color")],
    ),
    (
        "PajeCreateContainer",
        4,
        &[
            ("Time", "date"),
            ("Alias", "string"),
            ("Type", "string"),
            ("Container", "string"),
            ("Name", "string"),
        ],
    ),
    ("PajeDestroyContainer", 5, &[("Time", "date"), ("Type", "string"), ("Name", "string")]),
    (
        "PajeSetState",
        6,
        &[("Time", "date"), ("Type", "string"), ("Container", "string"), ("Value", "string")],
    ),
    (
        "PajeStartLink",
        7,
        &[
            ("Time", "date"),
            ("Type", "string"),
            ("Container", "string"),
            ("StartContainer", "string"),
            ("Value", "string"),
            ("Key", "string"),
        ],
    ),
    (
        "PajeEndLink",
        8,
        &[
            ("Time", "date"),
            ("Type", "string"),
            ("Container", "string"),
            ("EndContainer", "string"),
            ("Value", "string"),
            ("Key", "string"),
        ],
    ),
];

pub fn write(input: &mut Input, out: &Output) -> Result<Report, Error> {
    let places = timeline::places(input)?;
    let mut paje = Paje { file: out.file()?, functions: HashSet::new(), open: HashSet::new(), last: 0 };
    let failed = written(&out.path);
    paje.head(&places).map_err(&failed)?;
    let report = timeline::walk(input, &out.path, &mut paje)?;
    paje.tail(&places).map_err(&failed)?;
    Ok(report)
}

struct Paje<W: Write> {
    file: W,
    /// Those that are defined.
    functions: HashSet<u16>,
    /// Links whose beginning is written.
    open: HashSet<u64>,
    last: i64,
}

/// Seconds, to the nanosecond.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}.{:09}", ns.unsigned_abs() / 1_000_000_000, ns.unsigned_abs() % 1_000_000_000)
}

fn container((rank, thread): Track) -> String {
    format!("r{rank}t{thread}")
}

/// By what a call does. Those of one kind differ a little in brightness.
fn colour(function: &Function) -> [f64; 3] {
    let is = |family: &str| function.families.contains(&family);
    let base = match () {
        () if is("wait") => [0.85, 0.25, 0.20],
        () if is("coll") => [0.95, 0.60, 0.10],
        () if is("p2p") => [0.20, 0.45, 0.85],
        () if is("rma") => [0.55, 0.30, 0.75],
        () if is("io") => [0.20, 0.65, 0.35],
        () => [0.55, 0.55, 0.55],
    };
    let bright = 0.85 + 0.15 * f64::from(function.id % 5) / 4.0;
    base.map(|part| part * bright)
}

impl<W: Write> Paje<W> {
    fn head(&mut self, places: &[Track]) -> io::Result<()> {
        let out = &mut self.file;
        for (name, number, fields) in DEFINITIONS {
            writeln!(out, "%EventDef {name} {number}")?;
            for (field, kind) in fields {
                writeln!(out, "%  {field} {kind}")?;
            }
            writeln!(out, "%EndEventDef")?;
        }
        writeln!(out, "0 Program 0 \"Program\"")?;
        writeln!(out, "0 Rank Program \"Rank\"")?;
        writeln!(out, "0 Thread Rank \"Thread\"")?;
        writeln!(out, "1 Call Thread \"MPI call\"")?;
        writeln!(out, "2 Message Program Thread Thread \"Message\"")?;
        writeln!(out, "3 Outside Call \"outside MPI\" \"0.930000 0.930000 0.930000\"")?;
        writeln!(out, "4 {} P Program 0 \"program\"", seconds(0))?;
        for threads in places.chunk_by(|a, b| a.0 == b.0) {
            let rank = threads[0].0;
            writeln!(out, "4 {} r{rank} Rank P \"rank {rank}\"", seconds(0))?;
            for &place in threads {
                let name = if place.1 == 0 { "main".into() } else { format!("thread {}", place.1) };
                writeln!(out, "4 {} {} Thread r{rank} \"{name}\"", seconds(0), container(place))?;
                writeln!(out, "6 {} Call {} Outside", seconds(0), container(place))?;
            }
        }
        Ok(())
    }

    fn tail(&mut self, places: &[Track]) -> io::Result<()> {
        let end = seconds(self.last);
        for threads in places.chunk_by(|a, b| a.0 == b.0) {
            for &place in threads {
                writeln!(self.file, "5 {end} Thread {}", container(place))?;
            }
            writeln!(self.file, "5 {end} Rank r{}", threads[0].0)?;
        }
        writeln!(self.file, "5 {end} Program P")?;
        self.file.flush()
    }
}

impl<W: Write> Timeline for Paje<W> {
    fn begins(&mut self, happening: &Happening) -> io::Result<()> {
        let function = happening.call.function;
        if self.functions.insert(function.id) {
            let [red, green, blue] = colour(function);
            let name = function.name;
            writeln!(self.file, "3 {name} Call \"{name}\" \"{red:.6} {green:.6} {blue:.6}\"")?;
        }
        let (time, own) = (seconds(happening.span.start), container((happening.rank, happening.thread)));
        writeln!(self.file, "6 {time} Call {own} {}", function.name)?;
        for meaning in &happening.begins {
            if let Meaning::Send(message) = meaning
                && let Some(id) = message.id
                && self.open.insert(id)
            {
                writeln!(self.file, "7 {time} Message P {own} message m{id}")?;
            }
        }
        Ok(())
    }

    fn ends(&mut self, happening: &Happening, means: &[Meaning]) -> io::Result<()> {
        let (time, own) = (seconds(happening.span.end), container((happening.rank, happening.thread)));
        self.last = self.last.max(happening.span.end);
        for meaning in means {
            if let Meaning::Received(message) = meaning
                && let Some(id) = message.id
                && self.open.remove(&id)
            {
                writeln!(self.file, "8 {time} Message P {own} message m{id}")?;
            }
        }
        writeln!(self.file, "6 {time} Call {own} Outside")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_nanoseconds() {
        assert_eq!(seconds(1), "0.000000001");
        assert_eq!(seconds(12_345_678_901), "12.345678901");
        assert_eq!(seconds(-1), "-0.000000001");
    }

    #[test]
    fn colours_are_parts_of_one() {
        for function in refrain_model::functions() {
            assert!(colour(function).iter().all(|part| (0.0..=1.0).contains(part)), "{}", function.name);
        }
    }
}
