//! JSON trace events, which Perfetto's viewer and Chrome's `chrome://tracing` open: a process for each rank, a complete event for each
//! call, a flow for each message.

use std::collections::HashMap;
use std::io::{self, Write};

use refrain_model::Call;
use refrain_views::happenings::{Happening, Meaning};
use refrain_views::{json, value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::out::written;
use crate::timeline::{self, Sites, Timeline, Track};
use crate::{Error, Input, Output, Report};

pub fn write(input: &mut Input, out: &Output) -> Result<Report, Error> {
    let places = timeline::places(input)?;
    let mut chrome = Chrome {
        file: out.file()?,
        sites: Sites::new(input),
        any: false,
        line: Vec::new(),
        sent: HashMap::new(),
        sends: HashMap::new(),
    };
    let failed = written(&out.path);
    chrome.head(&places).map_err(&failed)?;
    let report = timeline::walk(input, &out.path, &mut chrome)?;
    chrome.tail(&report).map_err(&failed)?;
    Ok(report)
}

struct Chrome<'a, W: Write> {
    file: W,
    sites: Sites<'a>,
    any: bool,
    line: Vec<u8>,
    /// When messages on their way were sent.
    sent: HashMap<u64, i64>,
    /// What the call that a thread is in sends. It is written behind the call, so that viewers find that one.
    sends: HashMap<Track, Vec<u64>>,
}

/// Numbers of processes and threads begin at 1: viewers take 0 for the kernel's own.
fn numbers((rank, thread): Track) -> (u64, u64) {
    (u64::from(rank) + 1, u64::from(thread) + 1)
}

/// Microseconds, to the nanosecond.
fn micros(ns: i64) -> Box<RawValue> {
    let sign = if ns < 0 { "-" } else { "" };
    json::number(format!("{sign}{}.{:03}", ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000))
}

/// One event, as far as its phase has these members.
#[derive(Serialize)]
struct Event<'a> {
    ph: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    pid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Args<'a>>,
}

impl<'a> Event<'a> {
    fn new(ph: &'a str, name: &'a str, pid: u64) -> Event<'a> {
        Event { ph, cat: None, name, id: None, pid, tid: None, ts: None, dur: None, bp: None, args: None }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Args<'a> {
    Name { name: &'a str },
    SortIndex { sort_index: u32 },
    Call(OfCall<'a>),
}

/// The arguments of a call by name, between its number and what it returned. Some calls have a parameter `result`.
struct OfCall<'a> {
    number: u64,
    call: &'a Call,
    at: Option<&'a str>,
}

impl Serialize for OfCall<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut args = to.serialize_map(None)?;
        args.serialize_entry("number", &self.number)?;
        for (name, value) in value::args(self.call) {
            args.serialize_entry(name, &value::Json(value))?;
        }
        args.serialize_entry("returned", &value::Json(&self.call.result))?;
        if let Some(at) = self.at {
            args.serialize_entry("at", at)?;
        }
        args.end()
    }
}

/// What stands behind the events.
#[derive(Serialize)]
struct About<'a> {
    writer: &'static str,
    calls: u64,
    notes: &'a [String],
}

impl<W: Write> Chrome<'_, W> {
    fn head(&mut self, places: &[Track]) -> io::Result<()> {
        self.file.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let ranks = places.chunk_by(|a, b| a.0 == b.0);
        for threads in ranks {
            let rank = threads[0].0;
            self.metadata(threads[0], "process_name", &format!("rank {rank}"))?;
            for &place in threads {
                let name = if place.1 == 0 { "main".into() } else { format!("thread {}", place.1) };
                self.metadata(place, "thread_name", &name)?;
            }
            let (pid, _) = numbers(threads[0]);
            let args = Args::SortIndex { sort_index: rank };
            self.put(&Event { args: Some(args), ..Event::new("M", "process_sort_index", pid) })?;
        }
        Ok(())
    }

    fn metadata(&mut self, place: Track, what: &str, name: &str) -> io::Result<()> {
        let (pid, tid) = numbers(place);
        let args = Some(Args::Name { name });
        self.put(&Event { tid: Some(tid), args, ..Event::new("M", what, pid) })
    }

    fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.line.clear();
        self.line.extend_from_slice(if self.any { b",\n" } else { b"\n" });
        self.any = true;
        json::write(event, &mut self.line)?;
        self.file.write_all(&self.line)
    }

    /// One end of a line from a send to its receive.
    fn flow(&mut self, phase: &str, id: u64, place: Track, ns: i64) -> io::Result<()> {
        let (pid, tid) = numbers(place);
        self.put(&Event {
            cat: Some("message"),
            id: Some(id),
            tid: Some(tid),
            ts: Some(micros(ns)),
            // It belongs to the event around it, not to the next one.
            bp: (phase == "f").then_some("e"),
            ..Event::new(phase, "message", pid)
        })
    }

    fn tail(&mut self, report: &Report) -> io::Result<()> {
        self.file.write_all(b"\n],\"otherData\":")?;
        json::write(&About { writer: "Refrain", calls: report.calls, notes: &report.notes }, &mut self.file)?;
        self.file.write_all(b"}\n")?;
        self.file.flush()
    }
}

impl<W: Write> Timeline for Chrome<'_, W> {
    fn begins(&mut self, happening: &Happening) -> io::Result<()> {
        for meaning in &happening.begins {
            if let Meaning::Send(message) = meaning
                && let Some(id) = message.id
            {
                self.sent.insert(id, happening.span.start);
                self.sends.entry((happening.rank, happening.thread)).or_default().push(id);
            }
        }
        Ok(())
    }

    fn ends(&mut self, happening: &Happening, means: &[Meaning]) -> io::Result<()> {
        let Happening { rank, thread, number, call, symbol, span, .. } = happening;
        let place = (*rank, *thread);
        let site = self.sites.of(*symbol);
        let (pid, tid) = numbers(place);
        self.put(&Event {
            cat: Some(call.function.families.first().unwrap_or(&"mpi")),
            tid: Some(tid),
            ts: Some(micros(span.start)),
            dur: Some(micros(span.end - span.start)),
            args: Some(Args::Call(OfCall { number: *number, call, at: site.as_deref() })),
            ..Event::new("X", call.function.name, pid)
        })?;
        for id in self.sends.remove(&place).unwrap_or_default() {
            self.flow("s", id, place, span.start)?;
        }
        for meaning in means {
            if let Meaning::Received(message) = meaning
                && let Some(id) = message.id
                && let Some(sent) = self.sent.remove(&id)
            {
                // Within the call, which is over at its end, but not before it was sent.
                self.flow("f", id, place, (span.end - 1).max(span.start).max(sent))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::Value;
    use serde_json::{Map, Value as Json};

    #[test]
    fn microseconds_have_nanoseconds() {
        for (ns, text) in [(0, "0.000"), (1, "0.001"), (1_234_567, "1234.567"), (-5, "-0.005")] {
            assert_eq!(micros(ns).get(), text);
        }
    }

    #[test]
    fn no_call_has_two_members_of_one_name() {
        for function in refrain_model::functions() {
            let args = vec![Value::Int(1); function.params.len()];
            let call = Call { function, args, result: Value::Int(0), facts: Vec::new() };
            let text = json::text(&OfCall { number: 1, call: &call, at: Some("main") });
            let members: Map<String, Json> = serde_json::from_str(&text).unwrap();
            assert_eq!(members.len(), function.params.len() + 3, "{text}");
        }
    }
}
