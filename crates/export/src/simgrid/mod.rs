//! SimGrid's time-independent traces: one file of actions for each rank, for `smpirun -replay`.
//!
//! A replay has one communicator and blocking collectives on it. So ranks are those of the world, collectives on all ranks are
//! its own actions, and all others become the messages of a simple algorithm (`apart`). Sizes are bytes. What happens between
//! two actions is computation: a nanosecond of it is a flop, and the platform that is written computes a billion in a second.

mod apart;
mod collective;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use refrain_views::happenings::{self, Happening, Meaning, Message, Moment, Walk, When, chosen};
use refrain_views::human::plural;

use crate::out::written;
use crate::{Error, Input, Output, Report};

/// Messages of decomposed collectives have tags from here on.
const APART: i64 = 1 << 30;
/// Messages of the world have tags below this as the program has them; all others are numbered from here on.
const OTHERS: i64 = 1 << 20;

pub fn write(input: &mut Input, out: &Output) -> Result<Report, Error> {
    let trace = input.trace;
    let refused = |what: &str, help: &str| Err(Error::Refused { what: what.into(), help: help.into() });
    if input.ranks.is_some() || input.between.is_some() {
        return refused(
            "a SimGrid replay needs all calls of all ranks: whoever waits for one that is left out waits for ever",
            "leave out --ranks and --between",
        );
    }
    if trace.bundle.most_threads() > 1 {
        return refused(
            "several threads of a rank called MPI, and a rank of a SimGrid replay has one",
            "--to otf2 has threads",
        );
    }
    let ranks = chosen(trace, None)?;
    if ranks.len() != trace.meta.ranks as usize {
        return refused(
            "a SimGrid replay needs all ranks, and some are not in the trace",
            "record the run without --ranks",
        );
    }
    let when = When::of(trace, input.times)?;
    let folder = out.folder()?;
    let mut report = Report { notes: when.note().into_iter().collect(), ..Report::default() };
    if !trace.meta.complete {
        report.notes.push("the trace is partial: a replay may wait for messages that are not in it".into());
    }
    let mut counted = Counted::default();
    let mut read = 0;
    for &rank in &ranks {
        let path = folder.join(format!("rank-{rank}.txt"));
        let mut actions = Actions::new(rank, out.beside(&path)?);
        let mut walk = Walk::new(trace, &when, &[rank], None)?;
        while let Some(moment) = walk.next()? {
            actions.moment(&moment, &walk, &mut counted).map_err(written(&path))?;
            if walk.read() % (1 << 12) == 0 {
                (input.progress)(read + walk.read());
            }
        }
        read += walk.read();
        counted.unclear += walk.unclear();
        counted.bounded += walk.bounded();
        counted.lost += walk.lost();
        actions.finish().map_err(written(&path))?;
    }
    report.calls = read;
    report.notes.extend(counted.notes());
    surroundings(&folder, out, trace.meta.ranks)?;
    let shown = out.final_path().display();
    report.notes.push(format!(
        "to replay it: smpirun -np {0} -platform {shown}/platform.xml -hostfile {shown}/hosts.txt -replay {shown}/list.txt",
        trace.meta.ranks
    ));
    Ok(report)
}

/// The list of the files, and a small platform to begin with.
fn surroundings(folder: &Path, out: &Output, ranks: u32) -> Result<(), Error> {
    let put = |name: &str, text: String| {
        let path = folder.join(name);
        let mut file = out.beside(&path)?;
        file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(written(&path))
    };
    // As it will be found. The folder that it lies in is there; the folder itself may be a link that is to be replaced.
    let path = std::path::absolute(out.final_path()).map_err(written(out.final_path()))?;
    let outer = path.parent().unwrap_or(Path::new("/"));
    let found = outer.canonicalize().map_err(written(outer))?.join(path.file_name().unwrap_or_default());
    let each = |line: &dyn Fn(u32) -> String| (0..ranks).map(|rank| line(rank) + "\n").collect::<String>();
    put("list.txt", each(&|rank| found.join(format!("rank-{rank}.txt")).display().to_string()))?;
    put("hosts.txt", each(&|rank| format!("host-{rank}")))?;
    let last = ranks.saturating_sub(1);
    put(
        "platform.xml",
        format!(
            r#"<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <!-- A host a rank. 1 Gf: a nanosecond of the recorded computation takes a nanosecond. -->
  <cluster id="cluster" prefix="host-" suffix="" radical="0-{last}" speed="1Gf" bw="1.25GBps" lat="1us" bb_bw="12.5GBps" bb_lat="1us"/>
</platform>
"#
        ),
    )
}

/// What is not as it was.
#[derive(Default)]
struct Counted {
    /// Calls that became something else, by what is said of them and function.
    other: BTreeMap<(&'static str, &'static str), u64>,
    unclear: u64,
    collisions: u64,
    bounded: u64,
    lost: u64,
    /// Tags by communicator and the program's tag: the same on all ranks.
    tags: HashMap<(u64, i64), i64>,
    /// Numbers of communicators.
    comms: HashMap<u64, i64>,
}

impl Counted {
    fn add(&mut self, what: &'static str, function: &'static str) {
        *self.other.entry((what, function)).or_default() += 1;
    }

    /// The tag of a message: a replay has one communicator, so each pair of communicator and tag has one of its own.
    fn tag(&mut self, message: &Message) -> i64 {
        if message.comm.name == "world" && (0..OTHERS).contains(&message.tag) {
            return message.tag;
        }
        let next = OTHERS + self.tags.len() as i64;
        *self.tags.entry((message.comm.number, message.tag)).or_insert(next)
    }

    /// The tag of the `nth` decomposed collective on a communicator. Those of one tag are in order.
    fn apart(&mut self, comm: u64, nth: i64) -> i64 {
        let next = self.comms.len() as i64;
        let comm = *self.comms.entry(comm).or_insert(next);
        APART + (comm % (1 << 18)) * (1 << 12) + nth % (1 << 12)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = happenings::notes(self.bounded, self.lost);
        let kinds: std::collections::BTreeSet<&str> = self.other.keys().map(|(what, _)| *what).collect();
        for kind in kinds {
            let of = self.other.iter().filter(|((what, _), _)| *what == kind);
            let all: Vec<String> = of.map(|((_, function), count)| format!("{count} {function}")).collect();
            notes.push(format!("{kind}: {}", all.join(", ")));
        }
        if self.unclear > 0 {
            notes.push(format!(
                "{} left out: the trace does not say who sent the message",
                plural(self.unclear, "receive")
            ));
        }
        if self.collisions > 0 {
            notes.push(format!(
                "{} not waited for: SimGrid knows requests by source, destination and tag, and another one had the same",
                plural(self.collisions, "request")
            ));
        }
        notes
    }
}

const TO_MESSAGES: &str = "calls that became messages of a simple algorithm, since they are on some of the ranks or SimGrid has \
                           no action for them";
const LEFT_OUT: &str = "calls whose time counts as computation";
const AT_ONCE: &str = "collectives that are waited for where they were begun, since SimGrid's actions block";

/// A line that is written, or one of which not all is known.
enum Line {
    Text(String),
    /// Of a request: known when it is complete.
    Open(u64),
}

/// The actions of a rank.
struct Actions {
    rank: u32,
    out: BufWriter<File>,
    /// In order: those before the first one that is open are written.
    lines: VecDeque<Line>,
    /// What open lines are, once they are known.
    known: HashMap<u64, Option<String>>,
    /// Sends with a request that are not complete: their lines.
    sends: HashMap<u64, (String, (u32, u32, i64))>,
    /// Requests that SimGrid has: source, destination and tag.
    requests: HashSet<(u32, u32, i64)>,
    /// The end of the last action.
    ended: i64,
    begun: bool,
    /// The call at hand has an action.
    wrote: bool,
    /// Decomposed collectives so far, by communicator.
    apart: HashMap<u64, i64>,
}

/// SimGrid asks who sends where a size is 0.
fn size(bytes: u64) -> u64 {
    bytes.max(1)
}

impl Actions {
    fn new(rank: u32, out: BufWriter<File>) -> Actions {
        Actions {
            rank,
            out,
            lines: VecDeque::new(),
            known: HashMap::new(),
            sends: HashMap::new(),
            requests: HashSet::new(),
            ended: 0,
            begun: false,
            wrote: false,
            apart: HashMap::new(),
        }
    }

    fn line(&mut self, text: String) {
        self.lines.push_back(Line::Text(format!("{} {text}", self.rank)));
        self.wrote = true;
    }

    /// A line that is known when the request is complete.
    fn open(&mut self, request: u64) {
        self.lines.push_back(Line::Open(request));
        self.wrote = true;
    }

    /// Something that is an action begins: before it the rank computed.
    fn computed(&mut self, until: i64) {
        let flops = until.saturating_sub(self.ended);
        if self.begun && flops > 0 {
            self.line(format!("compute {flops}"));
        }
        self.ended = self.ended.max(until);
    }

    fn moment(&mut self, moment: &Moment, walk: &Walk, counted: &mut Counted) -> std::io::Result<()> {
        match moment {
            Moment::Begins(call) => self.begins(call, walk, counted),
            Moment::Ends(call, meanings) => self.ends(call, meanings, walk, counted),
        }
        while let Some(line) = self.lines.front() {
            let text = match line {
                Line::Text(text) => Some(text.clone()),
                Line::Open(request) => match self.known.remove(request) {
                    Some(text) => text,
                    None => break,
                },
            };
            self.lines.pop_front();
            if let Some(text) = text {
                writeln!(self.out, "{text}")?;
            }
        }
        Ok(())
    }

    fn begins(&mut self, call: &Happening, walk: &Walk, counted: &mut Counted) {
        self.wrote = false;
        let name = call.call.function.name;
        if matches!(name, "MPI_Init" | "MPI_Init_thread" | "MPI_Session_init") && !self.begun {
            self.line("init".into());
            self.begun = true;
            self.ended = call.span.end;
            return;
        }
        if call.begins.is_empty() {
            return;
        }
        self.computed(call.span.start);
        self.wrote = false;
        let receives = call.call.function.index_of("source").is_some();
        for meaning in &call.begins {
            match meaning {
                Meaning::Send(message) => {
                    let (to, tag, bytes) = (message.peer, counted.tag(message), size(message.bytes));
                    let key = (self.rank, to, tag);
                    match message.request {
                        Some(request) => {
                            self.open(request);
                            self.sends
                                .insert(request, (format!("{} isend {to} {tag} {bytes}", self.rank), key));
                        }
                        // Both ways at once, or nobody need be there.
                        None if receives || name.contains("Bsend") => {
                            counted.collisions += u64::from(!self.requests.insert(key));
                            self.line(format!("isend {to} {tag} {bytes}"));
                        }
                        None => self.line(format!("send {to} {tag} {bytes}")),
                    }
                }
                Meaning::ReceivePosted { request } => self.open(*request),
                // All ranks begin them in the same order.
                Meaning::Collective(collective) if collective.request.is_some() => {
                    counted.add(AT_ONCE, collective.function.name);
                    self.collective(collective, call, walk, counted);
                }
                _ => {}
            }
        }
    }

    fn ends(&mut self, call: &Happening, meanings: &[Meaning], walk: &Walk, counted: &mut Counted) {
        let mut completed = Vec::new();
        // What a nonblocking collective did was done where it began.
        let nothing = |meaning: &Meaning| match meaning {
            Meaning::Tested { .. } | Meaning::Cancelled { .. } => true,
            Meaning::CollectiveDone(collective) => collective.request.is_some(),
            _ => false,
        };
        if call.begins.is_empty() && !meanings.iter().all(nothing) {
            self.computed(call.span.start);
            self.wrote = false;
        }
        for meaning in meanings {
            match meaning {
                Meaning::Received(message) => {
                    let (from, tag, bytes) = (message.peer, counted.tag(message), size(message.bytes));
                    let Some(request) = message.request else {
                        self.line(format!("recv {from} {tag} {bytes}"));
                        continue;
                    };
                    let key = (from, self.rank, tag);
                    self.known.insert(request, Some(format!("{} irecv {from} {tag} {bytes}", self.rank)));
                    completed.push(key);
                }
                Meaning::SendDone { request } => {
                    if let Some((line, key)) = self.sends.remove(request) {
                        self.known.insert(*request, Some(line));
                        completed.push(key);
                    }
                }
                Meaning::Cancelled { request } => {
                    self.sends.remove(request);
                    self.known.insert(*request, None);
                }
                Meaning::CollectiveDone(collective) if collective.request.is_none() => {
                    self.collective(collective, call, walk, counted);
                }
                _ => {}
            }
        }
        // A send that was made together with a receive.
        for meaning in &call.begins {
            if let Meaning::Send(message) = meaning
                && message.request.is_none()
                && call.call.function.index_of("source").is_some()
            {
                let key = (self.rank, message.peer, counted.tag(message));
                self.requests.remove(&key);
                self.line(format!("wait {} {} {}", key.0, key.1, key.2));
            }
        }
        let mut seen = HashSet::new();
        for (from, to, tag) in completed {
            // Of several with one name SimGrid has one.
            if seen.insert((from, to, tag)) {
                self.line(format!("wait {from} {to} {tag}"));
            } else {
                counted.collisions += 1;
            }
        }
        if self.wrote {
            self.ended = self.ended.max(call.span.end);
        } else {
            let function = call.call.function;
            let matters = ["rma", "io"].iter().any(|family| function.families.contains(family))
                || (function.families.contains(&"coll") && function.name.contains("eighbor"));
            if matters {
                counted.add(LEFT_OUT, function.name);
            }
        }
    }

    fn finish(mut self) -> std::io::Result<()> {
        let mut text = String::new();
        for line in std::mem::take(&mut self.lines) {
            let line = match line {
                Line::Text(line) => Some(line),
                // What was sent may have been received, whether or not anybody asked.
                Line::Open(request) => {
                    self.known.remove(&request).unwrap_or_else(|| Some(self.sends.remove(&request)?.0))
                }
            };
            if let Some(line) = line {
                text += &line;
                text.push('\n');
            }
        }
        self.out.write_all(text.as_bytes())?;
        writeln!(self.out, "{} finalize", self.rank)?;
        self.out.flush()
    }
}
