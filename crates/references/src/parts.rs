//! What the processes of a run leave in the directory of its parts, for the one who makes a trace of it.
//!
//! A process has a note, `RANK-PID.process`, which says how it ended, and a part for each thread, `RANK-PID-THREAD.thread`,
//! which is a trace of that thread alone, with what does not fold beside it, in `RANK-PID-THREAD.chunks`. The others are written
//! under another name and renamed: what is there is whole. A process that becomes another program (exec) is a new one here, with
//! `PIDxN` for the N-th time.

use std::fmt::Write as _;

/// By which recording goes on and off while processes run: a file of 32-bit words, of the machine's own byte order, each 0 (off)
/// or 1 (on) where nothing else is said.
pub mod switch {
    pub const NAME: &str = "all.switch";
    /// What a process begins with.
    pub const FIRST: usize = 0;
    /// How many processes have taken a word of their own, which is a number.
    pub const NEXT: usize = 1;
    /// How often somebody switched from outside, a number.
    pub const TIMES: usize = 2;
    /// The words of processes, in the order in which they began. Those that come too late for one cannot be switched from outside.
    pub const OWN: usize = 16;
    /// A page.
    pub const WORDS: usize = 1 << 10;
}

/// How a process ended, as far as it could tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// It did not come to its end, or is not there yet.
    #[default]
    Running,
    Exited,
    /// It became another program, which is not traced.
    Replaced,
    /// It became another program, which is traced: a process of its own here.
    Continued,
    /// It died of a signal.
    Signalled,
}

impl State {
    const NAMES: [(State, &'static str); 5] = [
        (State::Running, "running"),
        (State::Exited, "exited"),
        (State::Replaced, "replaced"),
        (State::Continued, "continued"),
        (State::Signalled, "signalled"),
    ];
}

/// A process of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    pub rank: u32,
    pub world: u32,
    pub pid: u32,
    /// How often it had become another program before.
    pub image: u32,
    /// It is what the command or its launcher started, whatever it has become since.
    pub is_first: bool,
    /// The program's file.
    pub program: String,
    /// The process that it was forked from, 0 if it was started.
    pub parent: u32,
    pub host: String,
    /// Unix seconds.
    pub started: u64,
    /// Unix nanoseconds: who was there before whom.
    pub began: u64,
    pub state: State,
    /// Of one that became another program: which one, and why that is not traced.
    pub became: String,
    /// How many threads it had.
    pub threads: u32,
    /// What a reader of the trace should know.
    pub notes: Vec<String>,
}

impl Process {
    /// How the names of its files begin.
    pub fn stem(&self) -> String {
        match self.image {
            0 => format!("{}-{}", self.rank, self.pid),
            image => format!("{}-{}x{image}", self.rank, self.pid),
        }
    }

    /// The name of its note.
    pub fn name(&self) -> String {
        format!("{}.process", self.stem())
    }

    /// The name of the part of one of its threads.
    pub fn part(&self, thread: u32) -> String {
        format!("{}-{thread}.thread", self.stem())
    }

    /// The name of what of one of its threads does not fold.
    pub fn chunks(&self, thread: u32) -> String {
        format!("{}-{thread}.chunks", self.stem())
    }

    pub fn to_text(&self) -> String {
        let state = State::NAMES.iter().find(|(state, _)| *state == self.state).map_or("", |(_, name)| name);
        let mut text = String::new();
        let numbers = [
            ("rank", u64::from(self.rank)),
            ("world", self.world.into()),
            ("pid", self.pid.into()),
            ("parent", self.parent.into()),
            ("image", self.image.into()),
            ("first", self.is_first.into()),
            ("started", self.started),
            ("began", self.began),
            ("threads", self.threads.into()),
        ];
        for (name, number) in numbers {
            let _ = writeln!(text, "{name} {number}");
        }
        let _ = writeln!(text, "host {}\nstate {state}", self.host);
        for (name, value) in [("program", &self.program), ("became", &self.became)] {
            let _ = writeln!(text, "{name} {}", value.replace('\n', " "));
        }
        for note in &self.notes {
            let _ = writeln!(text, "note {}", note.replace('\n', " "));
        }
        text
    }

    /// `None` where something is not understood or lacks.
    pub fn from_text(text: &str) -> Option<Process> {
        let mut process = Process::default();
        for line in text.lines() {
            let (name, value) = line.split_once(' ')?;
            let number = || value.parse::<u32>().ok();
            match name {
                "rank" => process.rank = number()?,
                "world" => process.world = number()?,
                "pid" => process.pid = number()?,
                "parent" => process.parent = number()?,
                "image" => process.image = number()?,
                "first" => process.is_first = number()? != 0,
                "program" => process.program = value.to_owned(),
                "became" => process.became = value.to_owned(),
                "began" => process.began = value.parse().ok()?,
                "started" => process.started = value.parse().ok()?,
                "threads" => process.threads = number()?,
                "host" => process.host = value.to_owned(),
                "state" => process.state = State::NAMES.iter().find(|(_, name)| *name == value)?.0,
                "note" => process.notes.push(value.to_owned()),
                _ => return None,
            }
        }
        (process.rank < process.world).then_some(process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back() {
        let process = Process {
            rank: 3,
            world: 4,
            pid: 77,
            image: 2,
            is_first: true,
            program: "/a b".into(),
            parent: 5,
            host: "node 1".into(),
            started: 1 << 40,
            began: 1 << 60,
            state: State::Replaced,
            became: "/c: why".into(),
            threads: 2,
            notes: vec!["one thing".into(), "another".into()],
        };
        assert_eq!(Process::from_text(&process.to_text()), Some(process.clone()));
        assert_eq!((process.name(), process.part(1)), ("3-77x2.process".into(), "3-77x2-1.thread".into()));
        let process = Process { image: 0, ..process };
        assert_eq!((process.name(), process.part(1)), ("3-77.process".into(), "3-77-1.thread".into()));
        for wrong in ["", "rank 1\n", "rank x\nworld 2\n", "world 1\nstate gone\n", "world 1\nwhat 3\n"] {
            assert_eq!(Process::from_text(wrong), None, "{wrong}");
        }
    }
}
