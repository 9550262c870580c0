//! What is recorded, kept where it survives this process: each thread's part file, written through a shared mapping.
//!
//! A call costs a few stores. When the tail is full the folded state is written beside it, and the tail begins anew; it
//! grows with the folded state, so that all snapshots together cost no more than a fixed share of what is recorded.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use refrain_encode::{Journal, Tape, Values};
use refrain_guest::ends::{shield, words};
use refrain_guest::objects::footprint;
use refrain_guest::process::apart::apart;
use refrain_guest::process::clock::Moment;
use refrain_guest::process::host;
use refrain_guest::process::say::say;
use refrain_guest::threads::marks;
use refrain_tracefile::flight::{Mapped, introduce};
use refrain_tracefile::part::{self, BEHIND, FIRST_BEHIND, HEADER, IN_TAIL, Lost, Word};
use refrain_tracefile::private::Private;
use refrain_tracefile::spans::{Entry, log_name};

use crate::config;
use crate::files::{LOCAL_RANKS, launcher_says, said_name};
use crate::held::Held;
use crate::hooks::Ticks;
use crate::log::Spans;
use crate::tail::Tail;
pub use crate::tail::Words;

/// The tail's first size, unless a test says otherwise. So much of it has room on disk at first, and twice as much each time
/// that this is full.
pub const ROOM: usize = 1 << 20;
const FIRST_ROOM: usize = 60 << 10;
/// The times of so many calls of a thread wait for its part at most: MPI is not up yet.
pub const MOST_EARLY: usize = 1 << 12;
/// The tail is so many times larger than the last snapshot, if that is more, up to what a reader takes.
const SHARE: usize = 4;
/// The clocks are compared after 1, 2, 4, ... calls, and then after so many.
const COMPARED: u64 = 4096;
/// So many nanoseconds between two comparisons are no hurry.
const UNHURRIED: u64 = 10_000_000;
/// After so many calls, twice as many and so on, what was needed for new calls is let go of.
const SETTLED: u64 = 16;
/// After a snapshot that failed, the next one is tried so many calls later, then after twice as many, and so on.
const PAUSE: u64 = 1 << 16;

/// Where a process keeps its parts, and what all of them say.
pub struct Parts {
    pub directory: PathBuf,
    pub rank: u32,
    /// Of a new tail.
    pub room: usize,
    pub words: Vec<(Word, u64)>,
    pub text: String,
    /// Times of every call are asked for.
    pub spans: bool,
    /// What the first part says of the process.
    pub about: About,
}

/// What is needed to understand the call in flight: what the library's constants are, and where the modules lie.
#[derive(Debug, Default)]
pub struct About {
    pub constants: Vec<(u64, u16)>,
    pub modules: Vec<Mapped>,
    /// It is in a part already.
    pub told: AtomicBool,
}

impl Parts {
    /// A part for the calling thread, which has recorded `tape` so far; `None`, and a line that says so, where it cannot be had.
    pub fn part(&self, thread: usize, tape: &mut Tape, early: &[Early]) -> Option<Safe> {
        let mut safe = match apart(|| Safe::new(self, thread, tape)) {
            Ok(safe) => safe,
            Err(error) => {
                self.complain(&error);
                // Times would be nowhere else.
                self.spans.then(|| Safe::nowhere(self, thread)).and_then(Result::ok)?
            }
        };
        for &Early { symbol, ticks, returned } in early {
            safe.returned = returned;
            safe.span(symbol, ticks);
        }
        if early.len() >= MOST_EARLY {
            // Some of them were not kept.
            safe.end_spans(&io::Error::other("too many calls came before MPI was up"));
        }
        Some(safe)
    }

    fn complain(&self, error: &io::Error) {
        if self.speaks(error) {
            let (rank, directory) = (self.rank, self.directory.display());
            let host = host::name();
            say(&format!(
                "what is recorded would not survive a crash, the program goes on: rank {rank} on {host}: {directory}: {error}"
            ));
        }
    }

    /// All ranks of a host keep their parts in one place and would mostly say the same of it: the first that can leave a
    /// word there speaks. Where none can, nor could any other, it is the one that the launcher calls the host's first.
    fn speaks(&self, error: &io::Error) -> bool {
        // Of this process alone: too many open files, no memory.
        let of_its_own = [libc::EMFILE, libc::ENOMEM].map(Some).contains(&error.raw_os_error());
        let name = config::asked().map(said_name).unwrap_or_default();
        let left = Private::open(&self.directory).and_then(|directory| directory.leave(&name, "said"));
        match left {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => of_its_own,
            Err(_) => of_its_own || launcher_says(&LOCAL_RANKS).is_none_or(|rank| rank == 0),
        }
    }
}

/// A call that was recorded before its thread had a part.
#[derive(Debug, Clone, Copy)]
pub struct Early {
    pub symbol: u32,
    pub ticks: Ticks,
    /// What it returned, if it asked a clock of MPI.
    pub returned: Option<u64>,
}

/// One thread's part.
pub struct Safe {
    file: Held,
    words: Words,
    tail: Tail,
    /// The journal begins so far into the tail, behind the first snapshot.
    base: usize,
    /// Bytes of the journal.
    used: usize,
    /// The pair of words that counts.
    tail_word: Word,
    snapshot: u64,
    /// A snapshot that does not count any more and could not be removed.
    left: Option<u64>,
    journal: Journal,
    calls: u64,
    /// There was no room: nothing is kept until so many calls, when it is tried again; and the next pause.
    waits: Option<(u64, u64)>,
    said: bool,
    /// Where times of every call are asked for.
    spans: Option<Spans>,
    /// There was no room for more of them.
    spans_ended: bool,
    /// What a clock of MPI returned in the call that comes next, by its bits.
    pub returned: Option<u64>,
}

/// What the system calls the calling thread.
pub fn task() -> u64 {
    // SAFETY: takes nothing and cannot fail.
    u64::from(unsafe { libc::syscall(libc::SYS_gettid) } as u32)
}

impl Parts {
    /// What the part of a thread is called.
    fn name(&self, thread: usize) -> String {
        let host = host::name().replace('/', "_");
        format!("{}-{host}-{}-{thread}.{}", self.rank, std::process::id(), part::EXTENSION)
    }
}

impl Safe {
    fn new(parts: &Parts, thread: usize, tape: &mut Tape) -> io::Result<Safe> {
        let directory = Private::make(&parts.directory)?;
        let name = parts.name(thread);
        let name = OsStr::new(&name);
        let made = Safe::in_file(parts, thread, tape, &directory, name);
        made.inspect_err(|_| {
            remove(&directory, name);
            remove(&directory, &part::begun_name(name));
            remove(&directory, &part::snapshot_name(name, 1));
            remove(&directory, &log_name(name));
        })
    }

    fn in_file(
        parts: &Parts,
        thread: usize,
        tape: &mut Tape,
        directory: &Private,
        name: &OsStr,
    ) -> io::Result<Safe> {
        // Whoever finds it by its name finds a whole header, in the memory of a process that lives.
        let begun = part::begun_name(name);
        let mut file = directory.create_anew(&begun)?;
        let now = Moment::now();
        let mut words = parts.words.clone();
        words.extend([
            (Word::Thread, thread as u64),
            (Word::Task, task()),
            (Word::Ticks, now.ticks),
            (Word::Nanoseconds, now.nanoseconds),
        ]);
        let mut header = part::header(&words, &parts.text);
        if !parts.about.told.swap(true, Relaxed) {
            introduce(&mut header, &parts.about.constants, &parts.about.modules);
        }
        file.write_all(&header)?;
        let tail = Tail::map(&file, HEADER, parts.room, (0, FIRST_ROOM))?;
        let own = Words::map(&file)?;
        // There may be one of an earlier process with the same number. Whoever has it mapped keeps the file, without its name.
        directory.rename(&begun, name)?;
        let spans = parts.spans.then(|| {
            Spans::new(directory, name).unwrap_or_else(|error| {
                let spans = Spans::nowhere(&parts.directory, name);
                say_in_memory(&spans.path(), &error);
                spans
            })
        });
        let mut safe = Safe {
            file: Held::new(parts.directory.clone(), name.to_owned(), &file),
            words: own,
            tail,
            base: 0,
            used: 0,
            tail_word: Word::Tail,
            snapshot: 0,
            left: None,
            journal: Journal::default(),
            calls: 0,
            waits: None,
            said: false,
            spans,
            spans_ended: false,
            returned: None,
        };
        safe.snapshot(tape)?;
        marks::set_inside(safe.word(Word::Inside));
        Ok(safe)
    }

    /// Where there can be no part, and times of every call are asked for: these, in memory.
    fn nowhere(parts: &Parts, thread: usize) -> io::Result<Safe> {
        let name = parts.name(thread);
        Ok(Safe {
            spans: Some(Spans::nowhere(&parts.directory, OsStr::new(&name))),
            file: Held::nothing(parts.directory.clone(), name.into()),
            words: Words::nowhere()?,
            tail: Tail::nowhere(),
            base: 0,
            used: 0,
            tail_word: Word::Tail,
            snapshot: 0,
            left: None,
            journal: Journal::default(),
            calls: 0,
            waits: Some((u64::MAX, u64::MAX)),
            said: true,
            spans_ended: false,
            returned: None,
        })
    }

    pub fn words(&self) -> Words {
        self.words
    }

    #[inline]
    pub fn word(&self, word: Word) -> &AtomicU64 {
        self.words.word(word)
    }

    /// Keeps the call that `tape` was just given.
    #[inline]
    pub fn call(&mut self, tape: &mut Tape, symbol: u32, values: Values<'_>, ticks: Ticks) {
        self.calls += 1;
        if self.spans.is_some() {
            self.span(symbol, ticks);
        }
        let ticks = ticks.length();
        if self.waits.is_some() {
            self.try_again(tape);
            return;
        }
        loop {
            let used = self.base + self.used;
            match self.journal.write(&mut self.tail.bytes()[used..], tape, symbol, values, ticks) {
                Some(bytes) => {
                    self.used += bytes;
                    // From here on the entry counts.
                    self.word(self.tail_word).store(self.used as u64, Release);
                    break;
                }
                None if self.more_room() => {}
                None => {
                    self.begin_anew(tape, PAUSE);
                    break;
                }
            }
        }
        if self.calls.is_power_of_two() || self.calls.is_multiple_of(COMPARED) {
            self.compare_clocks();
        }
    }

    /// More of the tail can be written to. If not, there is a snapshot earlier.
    #[cold]
    fn more_room(&mut self) -> bool {
        if self.tail.ready == self.tail.length {
            return false;
        }
        apart(|| self.file.with(|file| self.tail.go_on(file, HEADER))).unwrap_or(false)
    }

    /// Keeps when a call began and ended.
    fn span(&mut self, symbol: u32, ticks: Ticks) {
        let Some(spans) = self.spans.as_mut().filter(|_| !self.spans_ended) else { return };
        if spans.is_full() {
            match spans.go_on() {
                Ok(None) => {}
                Ok(Some(error)) => say_in_memory(&spans.path(), &error),
                Err(error) => {
                    self.end_spans(&error);
                    return;
                }
            }
        }
        if let Some(written) = spans.keep(symbol, ticks, self.returned.take()) {
            // From here on the entry counts.
            self.word(Word::Spans).store(written, Release);
        }
    }

    /// What comes after a gap could not be told from what belongs there.
    #[cold]
    fn end_spans(&mut self, error: &io::Error) {
        if let Some(spans) = self.spans.as_ref().filter(|_| !self.spans_ended) {
            self.spans_ended = true;
            let path = spans.path();
            say(&format!(
                "the times of further calls are not kept, the program goes on: {}: {error}",
                path.display()
            ));
        }
    }

    /// Whether the log of times has every call.
    pub fn spans_are_whole(&self) -> bool {
        self.spans.is_some() && !self.spans_ended
    }

    /// What the log of times was given, where a test asked for it.
    pub fn given(&self) -> Option<&[Ticks]> {
        self.spans.as_ref()?.given()
    }

    /// The log of times as far as it was written.
    pub fn spans(&mut self) -> io::Result<impl Iterator<Item = Entry> + use<'_>> {
        if shield::torn() {
            // What was written since is in no file.
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let in_file = self.word(Word::Spans).load(Relaxed);
        Ok(self.spans.as_mut().map(|spans| spans.entries(in_file)).into_iter().flatten())
    }

    #[cold]
    fn compare_clocks(&mut self) {
        let now = Moment::now();
        // Pages that come back cost a microsecond each: nothing to speak of, unless calls follow each other that fast.
        let before = self.word(Word::LaterNanoseconds).load(Relaxed);
        if now.nanoseconds.saturating_sub(before) >= UNHURRIED {
            self.tail.let_go(self.base + self.used);
        }
        if self.calls.is_power_of_two() && self.calls >= SETTLED {
            footprint::let_go_of_code();
        }
        self.word(Word::LaterTicks).store(now.ticks, Relaxed);
        self.word(Word::LaterNanoseconds).store(now.nanoseconds, Relaxed);
        if self.word(Word::Fault).load(Relaxed) != 0 {
            words::fault(0);
        }
        if shield::torn() {
            // What is written from here on reaches no file, now or later.
            self.end_spans(&io::Error::from_raw_os_error(libc::EIO));
            self.pause(u64::MAX, u64::MAX, &io::Error::from_raw_os_error(libc::EIO));
        }
    }

    #[cold]
    fn try_again(&mut self, tape: &mut Tape) {
        if let Some((when, pause)) = self.waits
            && self.calls >= when
        {
            self.begin_anew(tape, pause.saturating_mul(2));
        }
    }

    #[cold]
    fn begin_anew(&mut self, tape: &mut Tape, pause: u64) {
        match self.snapshot(tape) {
            // It holds everything, also what was not kept in the meantime.
            Ok(()) if self.waits.take().is_some() => {
                // Calls that are missing for another reason still are.
                let (before, now) = (Lost::NoRoom as u64, Lost::Nothing as u64);
                let _ = self.word(Word::Lost).compare_exchange(before, now, Release, Relaxed);
            }
            Ok(()) => {}
            Err(error) => self.pause(self.calls.saturating_add(pause), pause, &error),
        }
    }

    /// There is no room: nothing is kept until so many calls.
    fn pause(&mut self, when: u64, pause: u64, error: &io::Error) {
        self.waits = Some((when, pause));
        let (before, now) = (Lost::Nothing as u64, Lost::NoRoom as u64);
        let _ = self.word(Word::Lost).compare_exchange(before, now, Release, Relaxed);
        if !std::mem::replace(&mut self.said, true) {
            let path = self.file.path();
            let path = path.display();
            say(&format!(
                "what is recorded from here on would not survive a crash, the program goes on: {path}: {error}"
            ));
        }
    }

    /// Writes the folded state and begins the tail anew.
    fn snapshot(&mut self, tape: &mut Tape) -> io::Result<()> {
        apart(|| self.write_snapshot(tape))
    }

    fn write_snapshot(&mut self, tape: &mut Tape) -> io::Result<()> {
        let bundle = tape.snapshot().map_err(io::Error::other)?;
        let lead = self.journal.restart(tape);
        let bytes = part::snapshot_bytes(&bundle, &lead);
        if self.snapshot == 0 && bytes.len() <= self.tail.ready / 2 {
            self.tail.bytes()[..bytes.len()].copy_from_slice(&bytes);
            self.base = bytes.len();
            self.count_from(IN_TAIL | bytes.len() as u64);
            return Ok(());
        }
        // Behind the tail where no file can be made any more.
        let number = self.beside(&bytes).or_else(|error| self.behind(&bytes).map_err(|_| error))?;
        self.grow((bytes.len() * SHARE).min(part::MOST_TAIL));
        self.base = 0;
        let before = self.snapshot;
        self.count_from(number);
        self.over(before);
        Ok(())
    }

    /// Writes a snapshot to a file of its own; its number.
    fn beside(&self, bytes: &[u8]) -> io::Result<u64> {
        let before = if self.snapshot & (IN_TAIL | BEHIND) == 0 { self.snapshot } else { 0 };
        let number = before + 1;
        let name = part::snapshot_name(&self.file.name, number);
        let directory = Private::open(&self.file.directory)?;
        // There may be one of an earlier process with the same number, or of a try that failed.
        let written = directory.create_anew(&name).and_then(|mut file| file.write_all(bytes));
        written.inspect_err(|_| remove(&directory, &name))?;
        Ok(number)
    }

    /// Writes a snapshot behind the tail, where the one that counts is not; what stands for it in place of a number.
    fn behind(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let length = bytes.len() as u64;
        let start = match self.place_behind() {
            Some(now) if FIRST_BEHIND + 8 + length > now.start => now.end.next_multiple_of(HEADER as u64),
            _ => FIRST_BEHIND,
        };
        self.file.with(|file| {
            file.write_all_at(bytes, start + 8)?;
            file.write_all_at(&length.to_le_bytes(), start)
        })?;
        Ok(BEHIND | start)
    }

    /// Where the snapshot that counts is, if that is behind the tail.
    fn place_behind(&mut self) -> Option<Range<u64>> {
        let start = self.snapshot & !BEHIND;
        (start != self.snapshot && self.snapshot & IN_TAIL == 0).then(|| {
            let mut length = [0; 8];
            let read = self.file.with(|file| file.read_exact_at(&mut length, start));
            // What cannot be read could not be written over either.
            start..start + 8 + read.map_or(0, |()| u64::from_le_bytes(length))
        })
    }

    /// That snapshot does not count any more.
    fn over(&mut self, before: u64) {
        if before & (IN_TAIL | BEHIND) == 0 && before > 0 {
            match Private::open(&self.file.directory) {
                Ok(directory) => remove(&directory, &part::snapshot_name(&self.file.name, before)),
                Err(_) => self.left = Some(before),
            }
        }
        // What is longer than what counts goes.
        if before & (IN_TAIL | BEHIND) == BEHIND {
            let end = self.place_behind().map_or(FIRST_BEHIND, |now| now.end);
            let _ = self.file.with(|file| file.set_len(end));
        }
    }

    /// From here on that snapshot counts, and the tail begins anew.
    fn count_from(&mut self, number: u64) {
        let (snapshot_word, tail_word) = match self.tail_word {
            Word::Tail => (Word::OtherSnapshot, Word::OtherTail),
            _ => (Word::Snapshot, Word::Tail),
        };
        self.word(snapshot_word).store(number, Relaxed);
        self.word(tail_word).store(0, Relaxed);
        // From here on they count.
        self.word(Word::Current).store(u64::from(tail_word == Word::OtherTail), Release);
        self.snapshot = number;
        self.tail_word = tail_word;
        self.used = 0;
    }

    /// The run is over: what there was no room for is tried once more.
    pub fn settle(&mut self, tape: &mut Tape) {
        if self.waits.is_some_and(|(when, _)| when != u64::MAX) {
            self.begin_anew(tape, PAUSE);
        }
    }

    /// Removes its files: the trace has what they say. Their words are still there for who has them mapped.
    pub fn remove(&self) {
        let Ok(directory) = Private::open(&self.file.directory) else { return };
        remove(&directory, &self.file.name);
        let named = (self.snapshot > 0 && self.snapshot & (IN_TAIL | BEHIND) == 0).then_some(self.snapshot);
        for number in named.into_iter().chain(self.left) {
            remove(&directory, &part::snapshot_name(&self.file.name, number));
        }
        if self.spans.is_some() {
            remove(&directory, &log_name(&self.file.name));
        }
    }

    /// A longer tail, if there is room for it; otherwise there are more snapshots.
    fn grow(&mut self, length: usize) {
        let length = length.next_multiple_of(HEADER);
        if length <= self.tail.length {
            return;
        }
        let ready = self.tail.ready;
        if let Ok(tail) = self.file.with(|file| Tail::map(file, HEADER, length, (ready, ready))) {
            self.tail = tail;
        }
    }
}

/// There is no room in the file.
fn say_in_memory(path: &Path, error: &io::Error) {
    let path = path.display();
    say(&format!(
        "the times of calls are kept in memory from here on, and would not survive a crash; the program goes on: {path}: {error}"
    ));
}

/// What cannot be removed is only in the way.
fn remove(directory: &Private, name: &OsStr) {
    let _ = directory.remove(name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{FIRST_WINDOW, WINDOW};
    use refrain_tracefile::spans::ENTRY;
    use std::ffi::OsString;

    #[test]
    fn a_log_of_times_goes_on_from_window_to_window() {
        let directory = std::env::temp_dir().join(format!("refrain-windows-{}", std::process::id()));
        let parts = Parts {
            directory: directory.clone(),
            rank: 0,
            room: ROOM,
            words: Vec::new(),
            text: String::new(),
            spans: true,
            about: About::default(),
        };
        let mut safe = parts.part(0, &mut Tape::default(), &[]).unwrap();
        let call = |n: u64| ((n % 300) as u32, 1_000 * n + n % 7, 1_000 * n + 300 + n % 11);
        // Beyond the first window, which is short, and one more.
        let calls = 4 * WINDOW as u64 / ENTRY as u64 * 4;
        for (symbol, start, end) in (0..calls).map(call) {
            safe.span(symbol, Ticks { start, end });
        }
        assert!(safe.word(Word::Spans).load(Relaxed) > (FIRST_WINDOW + WINDOW) as u64);
        let read: Vec<_> =
            safe.spans().unwrap().map(|entry| (entry.symbol, entry.start, entry.end)).collect();
        assert!(read.into_iter().eq((0..calls).map(call)));
        safe.remove();
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn snapshots_that_do_not_count_any_more_are_removed() {
        let directory = std::env::temp_dir().join(format!("refrain-snapshots-{}", std::process::id()));
        let parts = Parts {
            directory: directory.clone(),
            rank: 0,
            room: ROOM,
            words: Vec::new(),
            text: String::new(),
            spans: false,
            about: About::default(),
        };
        let mut tape = Tape::default();
        let mut safe = parts.part(0, &mut tape, &[]).unwrap();
        let names = || {
            let names = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<OsString> = names.collect();
            names.sort();
            names
        };
        // The first lies in the part.
        assert_eq!(names(), [safe.file.name.clone()]);
        for number in 1..5 {
            safe.begin_anew(&mut tape, PAUSE);
            assert_eq!(names(), [safe.file.name.clone(), part::snapshot_name(&safe.file.name, number)]);
        }
        safe.remove();
        std::fs::remove_dir(directory).unwrap();
    }
}
