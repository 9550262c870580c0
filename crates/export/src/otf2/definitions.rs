//! What the events of an archive refer to.

use std::collections::HashMap;
use std::rc::Rc;

use refrain_model::{Function, function_by_id};
use refrain_sites::Names;
use refrain_tracefile::Trace;
use refrain_views::happenings::Comm;

use super::library::{Archive, Definition, Definitions, UNDEFINED, number};
use super::location;
use crate::Error;

/// Where a function is called: its number, and file and line.
type CallSite = (u16, Option<(String, u32)>);

/// Functions at their call sites.
pub struct Regions<'a> {
    trace: &'a Trace,
    names: &'a dyn Names,
    /// By symbol.
    of: HashMap<(Option<u32>, u16), u32>,
    numbers: HashMap<CallSite, u32>,
    all: Vec<CallSite>,
}

impl<'a> Regions<'a> {
    pub fn new(trace: &'a Trace, names: &'a dyn Names) -> Regions<'a> {
        Regions { trace, names, of: HashMap::new(), numbers: HashMap::new(), all: Vec::new() }
    }

    pub fn of(&mut self, symbol: Option<u32>, function: &Function) -> u32 {
        if let Some(known) = self.of.get(&(symbol, function.id)) {
            return *known;
        }
        let bundle = &self.trace.bundle;
        let entry = symbol.and_then(|symbol| bundle.symbols.get(symbol as usize));
        let frame = entry.and_then(|entry| bundle.sites.frames(entry.site).last().copied());
        let place = frame.and_then(|frame| self.names.places(frame).last().cloned());
        let source = place.and_then(|place| place.source).map(|source| (source.file, source.line));
        let place = (function.id, source);
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(place.clone()).or_insert(next);
        if number == next {
            self.all.push(place);
        }
        self.of.insert((symbol, function.id), number);
        number
    }
}

/// Communicators that events name. The world comes first.
#[derive(Default)]
pub struct Comms {
    numbers: HashMap<u64, u32>,
    all: Vec<Rc<Comm>>,
    /// All that have one member are one: the format has a name for them.
    alone: Option<u32>,
}

impl Comms {
    pub fn number(&mut self, comm: &Rc<Comm>) -> u32 {
        let alone = comm.remote().is_none() && comm.group().len() == 1 && comm.name == "self";
        if let Some(known) = self.numbers.get(&comm.number).copied().or(self.alone.filter(|_| alone)) {
            return known;
        }
        let number = self.all.len() as u32;
        if alone {
            self.alone = Some(number);
        } else {
            self.numbers.insert(comm.number, number);
        }
        self.all.push(comm.clone());
        number
    }
}

/// Texts by number; each is written once.
struct Strings<'a> {
    archive: &'a Archive,
    global: Definitions,
    numbers: HashMap<String, u32>,
}

impl Strings<'_> {
    fn number(&mut self, text: &str) -> Result<u32, Error> {
        if let Some(known) = self.numbers.get(text) {
            return Ok(*known);
        }
        let number = self.numbers.len() as u32;
        self.archive.define(self.global, Definition::String { number, text })?;
        self.numbers.insert(text.to_owned(), number);
        Ok(number)
    }
}

/// `threads`: rank, thread and how many events each has.
pub fn define(
    archive: &Archive,
    global: Definitions,
    trace: &Trace,
    threads: &[(u32, u32, u64)],
    last: u64,
    (regions, comms): (&Regions, Comms),
) -> Result<(), Error> {
    let put = |definition: Definition<'_>| archive.define(global, definition);
    let mut strings = Strings { archive, global, numbers: HashMap::new() };
    let empty = strings.number("")?;
    let started = match trace.meta.started {
        0 => u64::MAX,
        seconds => seconds.saturating_mul(1_000_000_000),
    };
    put(Definition::Clock { ticks_per_second: 1_000_000_000, offset: 0, length: last + 1, started })?;
    let name = strings.number("MPI")?;
    let class = number::PARADIGM_CLASS_PROCESS;
    put(Definition::Paradigm { paradigm: number::PARADIGM_MPI, name, class })?;

    let (machine, class) = (strings.number("machine")?, strings.number("node")?);
    put(Definition::Node { number: 0, name: machine, class: machine, parent: UNDEFINED })?;
    let mut hosts: Vec<&str> = trace.meta.hosts.iter().map(|(host, _)| host.as_str()).collect();
    if hosts.is_empty() {
        hosts.push("?");
    }
    for (node, host) in (1..).zip(&hosts) {
        let name = strings.number(host)?;
        put(Definition::Node { number: node, name, class, parent: 0 })?;
    }
    let host_of = |rank: u32| {
        let at = trace.meta.hosts.iter().position(|(_, ranks)| ranks.contains(rank)).unwrap_or(0);
        at as u32 + 1
    };
    for rank in 0..trace.meta.ranks {
        let name = strings.number(&format!("MPI Rank {rank}"))?;
        put(Definition::Process { number: rank, name, node: host_of(rank) })?;
    }
    for &(rank, thread, events) in threads {
        let name = match thread {
            0 => strings.number("Master thread")?,
            more => strings.number(&format!("Thread {more}"))?,
        };
        put(Definition::Location { number: location(rank, thread), name, events, process: rank })?;
    }
    for (at, (function, source)) in (0u32..).zip(&regions.all) {
        let Some(function) = function_by_id(*function) else { continue };
        let name = strings.number(function.name)?;
        let (file, line) = match source {
            Some((file, line)) => (strings.number(file)?, *line),
            None => (UNDEFINED, 0),
        };
        put(Definition::Region { number: at, name, about: empty, role: role(function), file, line })?;
    }
    // All ranks first: other groups are made of places in it.
    let name = strings.number("MPI locations")?;
    let members: Vec<u64> = (0..trace.meta.ranks).map(|rank| location(rank, 0)).collect();
    put(Definition::Group { number: 0, name, kind: number::GROUP_COMM_LOCATIONS, members: &members })?;
    let mut groups = 1;
    let mut group = |kind: u8, members: &[u32]| {
        let members: Vec<u64> = members.iter().map(|rank| u64::from(*rank)).collect();
        let number = groups;
        groups += 1;
        put(Definition::Group { number, name: empty, kind, members: &members })?;
        Ok::<u32, Error>(number)
    };
    for (at, comm) in (0u32..).zip(&comms.all) {
        let name = match &comm.name[..] {
            "world" => strings.number("MPI_COMM_WORLD")?,
            "self" => strings.number("MPI_COMM_SELF")?,
            name => strings.number(name)?,
        };
        match comm.remote() {
            None if comms.alone == Some(at) => {
                let group = group(number::GROUP_COMM_SELF, &[])?;
                put(Definition::Comm { number: at, name, group })?;
            }
            None => {
                let group = group(number::GROUP_COMM_GROUP, comm.group())?;
                put(Definition::Comm { number: at, name, group })?;
            }
            Some(remote) => {
                let groups = (
                    group(number::GROUP_COMM_GROUP, comm.group())?,
                    group(number::GROUP_COMM_GROUP, remote)?,
                );
                put(Definition::InterComm { number: at, name, groups })?;
            }
        }
    }
    Ok(())
}

/// What the format calls what a function does.
fn role(function: &Function) -> u8 {
    const FUNCTION: u8 = 1;
    const BARRIER: u8 = 15;
    const ONE_TO_ALL: u8 = 23;
    const ALL_TO_ONE: u8 = 24;
    const ALL_TO_ALL: u8 = 25;
    const OTHER_COLLECTIVE: u8 = 26;
    const FILE: u8 = 27;
    const POINT_TO_POINT: u8 = 28;
    const RMA: u8 = 29;
    let name = function.name.to_ascii_lowercase();
    let family = |name: &str| function.families.contains(&name);
    match () {
        () if name.contains("barrier") => BARRIER,
        () if family("coll") => match function.index_of("root") {
            Some(_) if name.contains("reduce") || name.contains("gather") => ALL_TO_ONE,
            Some(_) => ONE_TO_ALL,
            None if name.contains("scan") => OTHER_COLLECTIVE,
            None => ALL_TO_ALL,
        },
        () if family("io") => FILE,
        () if family("rma") => RMA,
        () if family("p2p") => POINT_TO_POINT,
        () => FUNCTION,
    }
}
