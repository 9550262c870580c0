//! Paraver: the trace (.prv), what its numbers mean (.pcf), and how its lines are called (.row).
//!
//! Calls are events of the types that Extrae gives MPI (50000001 and so on), with its values where it has one, so that the
//! configurations that come with Paraver work. Records are in the order of time; those that are known late (states, messages) are
//! sorted in files beside the trace until the end.

mod labels;
mod sort;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use refrain_model::Function;
use refrain_tracefile::Trace;
use refrain_views::happenings::{Happening, Meaning};
use refrain_views::human::date;

use crate::out::written;
use crate::timeline::{self, Timeline, Track};
use crate::{Error, Input, Output, Report};
use labels::{State, kind, state, value};
use sort::Sorter;

/// How much a collective call sends and receives.
const SENT: u32 = 50_100_001;
const RECEIVED: u32 = 50_100_002;

/// Whether Paraver would know the output for a trace.
pub fn check(out: &Output) -> Result<(), Error> {
    if out.path.extension().is_none_or(|extension| extension != "prv") {
        return Err(Error::Refused {
            what: format!("{} does not end in .prv, by which Paraver knows its traces", out.path.display()),
            help: format!("-o {}.prv; .pcf and .row are written beside it", out.path.display()),
        });
    }
    Ok(())
}

pub fn write(input: &mut Input, out: &Output) -> Result<Report, Error> {
    let places = timeline::places(input)?;
    let (pcf, row) = (out.path.with_extension("pcf"), out.path.with_extension("row"));
    // Both are asked for first, so that nothing is written where one is in the way.
    let (mut pcf_file, mut row_file) = (out.beside(&pcf)?, out.beside(&row)?);
    let mut file = out.file()?;
    let nodes = nodes(input.trace, &places);
    let mut paraver = Paraver::new(&places, &nodes, Sorter::new(&out.path));
    let report = timeline::walk(input, &out.path, &mut paraver)?;
    let failed = written(&out.path);
    paraver.close().map_err(&failed)?;
    header(&mut file, input.trace, &places, &nodes, paraver.last).map_err(&failed)?;
    paraver.sorter.merge(&mut file).and_then(|()| file.flush()).map_err(&failed)?;
    meanings(&mut pcf_file, &paraver.functions).map_err(written(&pcf))?;
    names(&mut row_file, &places, &nodes).map_err(written(&row))?;
    Ok(report)
}

/// A side of a message that waits for the other.
struct Sent {
    who: usize,
    time: i64,
    bytes: u64,
    tag: i64,
}

struct Paraver {
    /// By place: its number from 0.
    lines: HashMap<Track, usize>,
    /// How each is called in a record: `cpu:application:task:thread`.
    objects: Vec<String>,
    /// Until when states are written.
    reached: Vec<i64>,
    sent: HashMap<u64, Sent>,
    /// When a receive with a request was posted, by rank and request.
    posted: HashMap<(u32, u64), i64>,
    functions: BTreeMap<u16, &'static Function>,
    sorter: Sorter,
    last: i64,
}

impl Paraver {
    /// Processors are numbered node by node, as the header counts them.
    fn new(places: &[Track], nodes: &[(String, Vec<usize>)], sorter: Sorter) -> Paraver {
        let mut cpus = vec![0; places.len()];
        for (cpu, line) in nodes.iter().flat_map(|(_, lines)| lines).enumerate() {
            cpus[*line] = cpu + 1;
        }
        let mut objects = Vec::new();
        let (mut task, mut thread) = (0, 0);
        for (at, place) in places.iter().enumerate() {
            if at == 0 || places[at - 1].0 != place.0 {
                (task, thread) = (task + 1, 0);
            }
            thread += 1;
            objects.push(format!("{}:1:{task}:{thread}", cpus[at]));
        }
        Paraver {
            lines: places.iter().enumerate().map(|(at, place)| (*place, at)).collect(),
            objects,
            reached: vec![0; places.len()],
            sent: HashMap::new(),
            posted: HashMap::new(),
            functions: BTreeMap::new(),
            sorter,
            last: 0,
        }
    }

    fn line(&self, call: &Happening) -> usize {
        self.lines.get(&(call.rank, call.thread)).copied().unwrap_or(0)
    }

    fn state(&mut self, line: usize, from: i64, to: i64, state: State) -> io::Result<()> {
        if from >= to {
            return Ok(());
        }
        self.sorter.put(from, format!("1:{}:{from}:{to}:{}", self.objects[line], state as u32))
    }

    /// All threads run until the end.
    fn close(&mut self) -> io::Result<()> {
        for line in 0..self.objects.len() {
            self.state(line, self.reached[line], self.last, State::Idle)?;
        }
        Ok(())
    }
}

impl Timeline for Paraver {
    fn begins(&mut self, call: &Happening) -> io::Result<()> {
        let (line, start, function) = (self.line(call), call.span.start.max(0), call.call.function);
        self.functions.entry(function.id).or_insert(function);
        self.state(line, self.reached[line], start, State::Running)?;
        let mut record = format!("2:{}:{start}:{}:{}", self.objects[line], kind(function).0, value(function));
        for meaning in &call.begins {
            match meaning {
                Meaning::Send(message) => {
                    if let Some(id) = message.id {
                        let sent = Sent { who: line, time: start, bytes: message.bytes, tag: message.tag };
                        self.sent.insert(id, sent);
                    }
                }
                Meaning::ReceivePosted { request } => {
                    self.posted.insert((call.rank, *request), start);
                }
                Meaning::Collective(collective) => {
                    record
                        .push_str(&format!(":{SENT}:{}:{RECEIVED}:{}", collective.sent, collective.received));
                }
                _ => {}
            }
        }
        self.sorter.put(start, record)
    }

    fn ends(&mut self, call: &Happening, means: &[Meaning]) -> io::Result<()> {
        let (line, start, end) = (self.line(call), call.span.start.max(0), call.span.end.max(0));
        let function = call.call.function;
        self.state(line, start, end, state(function))?;
        (self.reached[line], self.last) = (end, self.last.max(end));
        self.sorter.put(end, format!("2:{}:{end}:{}:0", self.objects[line], kind(function).0))?;
        for meaning in means {
            let request = match meaning {
                Meaning::Received(message) => message.request,
                Meaning::Cancelled { request } => Some(*request),
                _ => continue,
            };
            let posted = request.and_then(|request| self.posted.remove(&(call.rank, request)));
            if let Meaning::Received(message) = meaning
                && let Some(sent) = message.id.and_then(|id| self.sent.remove(&id))
            {
                let (from, to, time) = (&self.objects[sent.who], &self.objects[line], sent.time);
                let wanted = posted.unwrap_or(start);
                let record =
                    format!("3:{from}:{time}:{time}:{to}:{wanted}:{end}:{}:{}", sent.bytes, sent.tag);
                self.sorter.put(time, record)?;
            }
        }
        Ok(())
    }
}

/// The hosts, and how many threads each has; of a trace that does not say, one for all.
fn nodes(trace: &Trace, places: &[Track]) -> Vec<(String, Vec<usize>)> {
    let host = |rank: u32| trace.meta.hosts.iter().position(|(_, ranks)| ranks.iter().any(|r| r == rank));
    let mut nodes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut known: HashMap<u32, usize> = HashMap::new();
    for (line, (rank, _)) in places.iter().enumerate() {
        let node = *known.entry(*rank).or_insert_with(|| host(*rank).unwrap_or(0));
        nodes.entry(node).or_default().push(line);
    }
    let name = |node: usize| trace.meta.hosts.get(node).map_or("host".into(), |(name, _)| name.clone());
    nodes.into_iter().map(|(node, lines)| (name(node), lines)).collect()
}

fn header(
    out: &mut dyn Write,
    trace: &Trace,
    places: &[Track],
    nodes: &[(String, Vec<usize>)],
    last: i64,
) -> io::Result<()> {
    // 2026-03-14T15:09:26Z
    let started = date(i64::try_from(trace.meta.started).unwrap_or(0));
    let part = |range: std::ops::Range<usize>| started.get(range).unwrap_or("00").to_owned();
    let when = format!("{}/{}/{} at {}:{}", part(8..10), part(5..7), part(0..4), part(11..13), part(14..16));
    let cpus: Vec<String> = nodes.iter().map(|(_, lines)| lines.len().to_string()).collect();
    let node_of = |line: usize| nodes.iter().position(|(_, lines)| lines.contains(&line)).unwrap_or(0) + 1;
    let mut first = 0;
    let mut tasks = Vec::new();
    for threads in places.chunk_by(|a, b| a.0 == b.0) {
        tasks.push(format!("{}:{}", threads.len(), node_of(first)));
        first += threads.len();
    }
    let (nodes, cpus, count) = (nodes.len(), cpus.join(","), tasks.len());
    writeln!(out, "#Paraver ({when}):{last}_ns:{nodes}({cpus}):1:{count}({}),1", tasks.join(","))?;
    // The communicator of all tasks.
    write!(out, "c:1:1:{count}")?;
    (1..=count).try_for_each(|task| write!(out, ":{task}"))?;
    writeln!(out)
}

fn meanings(out: &mut dyn Write, functions: &BTreeMap<u16, &'static Function>) -> io::Result<()> {
    writeln!(out, "DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\n")?;
    writeln!(out, "DEFAULT_SEMANTIC\n\nTHREAD_FUNC         State As Is\n")?;
    writeln!(out, "STATES")?;
    for (state, name, _) in labels::STATES {
        writeln!(out, "{:<5}{name}", *state as u32)?;
    }
    writeln!(out, "\nSTATES_COLOR")?;
    for (state, _, [red, green, blue]) in labels::STATES {
        writeln!(out, "{:<5}{{{red},{green},{blue}}}", *state as u32)?;
    }
    let mut kinds: BTreeMap<(u32, &str), Vec<(u32, &str)>> = BTreeMap::new();
    for function in functions.values() {
        kinds.entry(kind(function)).or_default().push((value(function), function.name));
    }
    for ((number, name), mut values) in kinds {
        writeln!(out, "\nEVENT_TYPE\n9    {number}    {name}\nVALUES")?;
        values.sort_unstable();
        for (value, name) in values {
            writeln!(out, "{value:<5}{name}")?;
        }
        writeln!(out, "0    Outside MPI")?;
    }
    writeln!(out, "\nEVENT_TYPE\n0    {SENT}    Send Size in MPI Global OP")?;
    writeln!(out, "0    {RECEIVED}    Recv Size in MPI Global OP")?;
    out.flush()
}

fn names(out: &mut dyn Write, places: &[Track], nodes: &[(String, Vec<usize>)]) -> io::Result<()> {
    writeln!(out, "LEVEL CPU SIZE {}", places.len())?;
    for (at, _) in places.iter().enumerate() {
        writeln!(out, "cpu {}", at + 1)?;
    }
    writeln!(out, "\nLEVEL NODE SIZE {}", nodes.len())?;
    for (name, _) in nodes {
        // A name is a line.
        writeln!(out, "{}", name.replace(char::is_control, " "))?;
    }
    writeln!(out, "\nLEVEL THREAD SIZE {}", places.len())?;
    for (rank, thread) in places {
        match thread {
            0 => writeln!(out, "rank {rank}")?,
            _ => writeln!(out, "rank {rank} thread {thread}")?,
        }
    }
    out.flush()
}
