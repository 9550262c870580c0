//! JSON trace events, which Perfetto's viewer and Chrome's `chrome://tracing` open: a process for each rank, a complete event for each
//! call, a flow for each message.

use std::collections::HashMap;
use std::io::{self, Write};

use refrain_views::happenings::{Happening, Meaning};
use refrain_views::{json, value};

use crate::out::written;
use crate::timeline::{self, Sites, Timeline, Track};
use crate::{Error, Input, Output, Report};

pub fn write(input: &mut Input, out: &Output) -> Result<Report, Error> {
    let places = timeline::places(input)?;
    let mut chrome = Chrome {
        file: out.file()?,
        sites: Sites::new(input),
        any: false,
        line: String::new(),
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
    line: String,
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
fn micros(ns: i64, out: &mut String) {
    let sign = if ns < 0 { "-" } else { "" };
    out.push_str(&format!("{sign}{}.{:03}", ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000));
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
            self.begin();
            let (pid, _) = numbers(threads[0]);
            self.line.push_str(&format!(
                r#"{{"ph":"M","name":"process_sort_index","pid":{pid},"args":{{"sort_index":{rank}}}}}"#
            ));
            self.put()?;
        }
        Ok(())
    }

    fn metadata(&mut self, place: Track, what: &str, name: &str) -> io::Result<()> {
        self.begin();
        let (pid, tid) = numbers(place);
        let mut event = json::Object::new(&mut self.line);
        event.text("ph", "M").text("name", what).plain("pid", pid).plain("tid", tid);
        let mut args = json::Object::new(event.key("args"));
        args.text("name", name);
        args.end();
        event.end();
        self.put()
    }

    fn begin(&mut self) {
        self.line.clear();
        self.line.push_str(if self.any { ",\n" } else { "\n" });
        self.any = true;
    }

    fn put(&mut self) -> io::Result<()> {
        self.file.write_all(self.line.as_bytes())
    }

    /// One end of a line from a send to its receive.
    fn flow(&mut self, phase: &str, id: u64, place: Track, ns: i64) -> io::Result<()> {
        self.begin();
        let (pid, tid) = numbers(place);
        let mut event = json::Object::new(&mut self.line);
        event.text("ph", phase).text("cat", "message").text("name", "message").plain("id", id);
        event.plain("pid", pid).plain("tid", tid);
        micros(ns, event.key("ts"));
        if phase == "f" {
            // It belongs to the event around it, not to the next one.
            event.text("bp", "e");
        }
        event.end();
        self.put()
    }

    fn tail(&mut self, report: &Report) -> io::Result<()> {
        self.line.clear();
        self.line.push_str("\n],\"otherData\":");
        let mut about = json::Object::new(&mut self.line);
        about.text("writer", "Refrain").plain("calls", report.calls);
        json::array(&report.notes, about.key("notes"), |note, out| json::string(note, out));
        about.end();
        self.line.push_str("}\n");
        self.put()?;
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
        self.begin();
        let (pid, tid) = numbers(place);
        let mut event = json::Object::new(&mut self.line);
        event.text("ph", "X").text("cat", call.function.families.first().unwrap_or(&"mpi"));
        event.text("name", call.function.name).plain("pid", pid).plain("tid", tid);
        micros(span.start, event.key("ts"));
        micros(span.end - span.start, event.key("dur"));
        let mut args = json::Object::new(event.key("args"));
        args.plain("number", number);
        for (param, argument) in call.function.params.iter().zip(&call.args) {
            value::json(argument, args.key(param.name));
        }
        value::json(&call.result, args.key("result"));
        if let Some(site) = site {
            args.text("at", &site);
        }
        args.end();
        event.end();
        self.put()?;
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

    #[test]
    fn microseconds_have_nanoseconds() {
        for (ns, text) in [(0, "0.000"), (1, "0.001"), (1_234_567, "1234.567"), (-5, "-0.005")] {
            let mut out = String::new();
            micros(ns, &mut out);
            assert_eq!(out, text);
        }
    }
}
