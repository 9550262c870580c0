//! What is recorded, kept where it survives this process: each thread's part file, written through a shared mapping.
//!
//! A call costs a few stores. When the tail is full the folded state is written beside it, and the tail begins anew; it
//! grows with the folded state, so that all snapshots together cost no more than a fixed share of what is recorded.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use refrain_encode::{Journal, Tape, Values};
use refrain_guest::ends::{shield, words};
use refrain_guest::objects::footprint;
use refrain_guest::process::apart::apart;
use refrain_guest::process::clock::Moment;
use refrain_guest::process::say::say;
use refrain_guest::process::{host, pages};
use refrain_guest::threads::marks;
use refrain_model::time::Time;
use refrain_tracefile::flight::{Mapped, introduce};
use refrain_tracefile::part::{self, HEADER, Lost, Word};
use refrain_tracefile::private::Private;
use refrain_tracefile::spans::{ENTRY, Entries, Entry, Log, log_name};

use crate::config;
use crate::files::{LOCAL_RANKS, launcher_says, said_name};
use crate::hooks::Ticks;

/// The tail's first size, unless a test says otherwise. So much of it has room on disk at first, and twice as much each time
/// that this is full.
pub const ROOM: usize = 1 << 20;
const FIRST_ROOM: usize = 60 << 10;
/// The times of so many calls of a thread wait for its part at most: MPI is not up yet.
pub const MOST_EARLY: usize = 1 << 12;
/// So much of the log of times is mapped at once; and at first.
const WINDOW: usize = 1 << 20;
const FIRST_WINDOW: usize = 64 << 10;
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

/// Room on disk is taken before anything is stored there: a store to a page that has none would be the end of the program.
/// Where the file system cannot take it by a word, zeros are written: `posix_fallocate` would do so block by block.
fn allocate(file: &File, offset: usize, length: usize) -> io::Result<()> {
    const BLOCK: usize = 64 << 10;
    loop {
        // SAFETY: takes numbers only.
        let code =
            unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as libc::off_t, length as libc::off_t) };
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            _ if code == 0 => return Ok(()),
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => break,
            _ => return Err(error),
        }
    }
    // What is there already stays: only what is behind it is new.
    let end = offset + length;
    let mut at = (file.metadata()?.len() as usize).max(offset);
    let zeros = vec![0; BLOCK.min(end.saturating_sub(at))];
    while at < end {
        let block = zeros.len().min(end - at);
        file.write_all_at(&zeros[..block], at as u64)?;
        at += block;
    }
    Ok(())
}

/// A shared mapping of some of a part file, which has room for it.
fn map(file: &File, offset: usize, length: usize) -> io::Result<*mut u8> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    let (file, offset) = (file.as_raw_fd(), offset as libc::off_t);
    // SAFETY: a new mapping wherever there is room.
    let start = unsafe { pages::map_as(null_mut(), length, protection, flags, file, offset) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start.cast()) }
}

/// The words of a part. Their page stays mapped as long as the process lives: a signal handler on any thread may be on
/// its way to them.
#[derive(Clone, Copy)]
pub struct Words(&'static [AtomicU64; HEADER / 8]);

impl Words {
    fn map(file: &File) -> io::Result<Words> {
        let start = map(file, 0, HEADER)?;
        shield::shield(start as usize, HEADER);
        // SAFETY: a page that is never unmapped, and is only used as these.
        Ok(Words(unsafe { &*start.cast() }))
    }

    #[inline]
    pub fn word(self, word: Word) -> &'static AtomicU64 {
        &self.0[word as usize]
    }

    /// One by its number, of those that are no `Word` ([`refrain_tracefile::flight`]).
    pub fn at(self, number: usize) -> &'static AtomicU64 {
        &self.0[number.min(HEADER / 8 - 1)]
    }
}

/// A place in a file: of the journal, or of the log of times. Unmapped when dropped.
struct Tail {
    start: *mut u8,
    length: usize,
    /// So much of it has room on disk.
    ready: usize,
}

// SAFETY: plain memory that only its owner refers to.
unsafe impl Send for Tail {}

impl Tail {
    /// With room for its first `ready` bytes.
    fn map(file: &File, offset: usize, length: usize, ready: usize) -> io::Result<Tail> {
        let ready = ready.min(length);
        allocate(file, offset, ready)?;
        let start = map(file, offset, length)?;
        shield::shield(start as usize, length);
        Ok(Tail { start, length, ready })
    }

    /// Takes more room on disk. Whether there is more than before.
    fn go_on(&mut self, file: &File, offset: usize) -> io::Result<bool> {
        let ready = (self.ready * 2).next_multiple_of(HEADER).min(self.length);
        allocate(file, offset + self.ready, ready - self.ready)?;
        Ok(std::mem::replace(&mut self.ready, ready) < ready)
    }

    /// Up to `used` it is written and not looked at again: the file has it, and it need not lie in this process's memory.
    /// Where it is written anew, the pages come back.
    fn let_go(&self, used: usize) {
        // SAFETY: advice about our own mapping of a file, whose contents stay; whole pages of it.
        unsafe { pages::let_go(self.start.cast(), used / HEADER * HEADER) };
    }

    /// As far as there is room on disk.
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: a part of the mapping, which is nobody else's.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.ready) }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        shield::unshield(self.start as usize);
        // SAFETY: mapped by `map`, and `self` was the only way to it.
        unsafe { libc::syscall(libc::SYS_munmap, self.start, self.length) };
    }
}

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
        match apart(|| Safe::new(self, thread, tape)) {
            Ok(mut safe) => {
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
            Err(error) => {
                self.complain(&error);
                None
            }
        }
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

/// The log of a thread's times: the part of its file that is being written is mapped.
struct Spans {
    name: OsString,
    window: Tail,
    /// Where in the file the window begins, and how much of it is written.
    offset: usize,
    used: usize,
    log: Log,
    /// What clocks of MPI return is kept too.
    results: bool,
    /// What it was given, for tests.
    given: Option<Vec<Ticks>>,
}

impl Spans {
    fn new(directory: &Private, part: &OsStr) -> io::Result<Spans> {
        let name = log_name(part);
        remove(directory, &name);
        let window =
            directory.create(&name).and_then(|file| Tail::map(&file, 0, FIRST_WINDOW, FIRST_WINDOW))?;
        let given = config::asked().and_then(|config| config.test_spans.as_ref()).map(|_| Vec::new());
        let results = config::asked().is_some_and(|config| config.time == Time::Exact);
        Ok(Spans { name, window, offset: 0, used: 0, log: Log::default(), results, given })
    }

    /// The next window begins with the page that this one was written up to.
    #[cold]
    fn go_on(&mut self, directory: &Path) -> io::Result<()> {
        let written = self.offset + self.used;
        let offset = written / HEADER * HEADER;
        self.window = apart(|| {
            let file = Private::open(directory)?.reopen(&self.name)?;
            Tail::map(&file, offset, WINDOW, WINDOW)
        })?;
        (self.offset, self.used) = (offset, written - offset);
        Ok(())
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
    /// Opened for each of the few times that something is done in it: no file of ours is open while the program runs.
    directory: PathBuf,
    name: OsString,
    words: Words,
    tail: Tail,
    /// The journal begins so far into the tail, behind the first snapshot.
    base: usize,
    /// Bytes of the journal.
    used: usize,
    /// The pair of words that counts.
    tail_word: Word,
    snapshot: u64,
    journal: Journal,
    calls: u64,
    /// There was no room: nothing is kept until so many calls, when it is tried again; and the next pause.
    waits: Option<(u64, u64)>,
    said: bool,
    /// Where times of every call are asked for, and there is room.
    spans: Option<Spans>,
    /// There is a log of times, also where it ended early.
    spanned: bool,
    /// What a clock of MPI returned in the call that comes next, by its bits.
    pub returned: Option<u64>,
}

impl Safe {
    fn new(parts: &Parts, thread: usize, tape: &mut Tape) -> io::Result<Safe> {
        let directory = Private::make(&parts.directory)?;
        let host = host::name().replace('/', "_");
        let name = format!("{}-{host}-{}-{thread}.{}", parts.rank, std::process::id(), part::EXTENSION);
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
            (Word::Ticks, now.ticks),
            (Word::Nanoseconds, now.nanoseconds),
        ]);
        let mut header = part::header(&words, &parts.text);
        if !parts.about.told.swap(true, Relaxed) {
            introduce(&mut header, &parts.about.constants, &parts.about.modules);
        }
        file.write_all(&header)?;
        let tail = Tail::map(&file, HEADER, parts.room, FIRST_ROOM)?;
        let own = Words::map(&file)?;
        // There may be one of an earlier process with the same number. Whoever has it mapped keeps the file, without its name.
        directory.rename(&begun, name)?;
        let spans = if parts.spans { Some(Spans::new(directory, name)?) } else { None };
        let mut safe = Safe {
            directory: parts.directory.clone(),
            name: name.to_owned(),
            words: own,
            tail,
            base: 0,
            used: 0,
            tail_word: Word::Tail,
            snapshot: 0,
            journal: Journal::default(),
            calls: 0,
            waits: None,
            said: false,
            spanned: spans.is_some(),
            spans,
            returned: None,
        };
        safe.snapshot(tape)?;
        marks::set_inside(safe.word(Word::Inside));
        Ok(safe)
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
        let more = || {
            let file = Private::open(&self.directory)?.reopen(&self.name)?;
            self.tail.go_on(&file, HEADER)
        };
        apart(more).unwrap_or(false)
    }

    /// Keeps when a call began and ended.
    fn span(&mut self, symbol: u32, ticks: Ticks) {
        let Some(spans) = &mut self.spans else { return };
        if spans.window.length - spans.used < ENTRY
            && let Err(error) = spans.go_on(&self.directory)
        {
            self.end_spans(&error);
            return;
        }
        if let Some(given) = &mut spans.given {
            given.push(ticks);
        }
        let used = spans.used;
        let Ticks { start, end } = ticks;
        let call = Entry { symbol, start, end, result: self.returned.take().filter(|_| spans.results) };
        spans.used += spans.log.write(&mut spans.window.bytes()[used..], call);
        let written = (spans.offset + spans.used) as u64;
        // From here on the entry counts.
        self.word(Word::Spans).store(written, Release);
    }

    /// What comes after a gap could not be told from what belongs there.
    #[cold]
    fn end_spans(&mut self, error: &io::Error) {
        if let Some(spans) = self.spans.take() {
            let path = self.directory.join(&spans.name);
            say(&format!(
                "the times of further calls are not kept, the program goes on: {}: {error}",
                path.display()
            ));
        }
    }

    /// Whether the log of times has every call.
    pub fn spans_are_whole(&self) -> bool {
        self.spans.is_some()
    }

    /// What the log of times was given, where a test asked for it.
    pub fn given(&self) -> Option<&[Ticks]> {
        self.spans.as_ref()?.given.as_deref()
    }

    /// The log of times as far as it was written.
    pub fn spans(&self) -> io::Result<impl Iterator<Item = Entry> + use<>> {
        if shield::torn() {
            // What was written since is in no file.
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let file = Private::open(&self.directory)?.read(&log_name(&self.name))?;
        Ok(Entries::new(BufReader::new(file.take(self.word(Word::Spans).load(Relaxed)))))
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
            let path = self.directory.join(&self.name);
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
            self.count_from(part::IN_TAIL | bytes.len() as u64);
            return Ok(());
        }
        let number = self.snapshot.checked_add(1).filter(|number| number & part::IN_TAIL == 0).unwrap_or(1);
        let before = (number > 1).then(|| part::snapshot_name(&self.name, self.snapshot));
        let name = part::snapshot_name(&self.name, number);
        let directory = Private::open(&self.directory)?;
        // There may be one of an earlier process with the same number, or of a try that failed.
        let written = directory.create_anew(&name).and_then(|mut file| file.write_all(&bytes));
        written.inspect_err(|_| remove(&directory, &name))?;
        self.grow(&directory, (bytes.len() * SHARE).min(part::MOST_TAIL));
        self.base = 0;
        self.count_from(number);
        if let Some(before) = before {
            remove(&directory, &before);
        }
        Ok(())
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

    /// Removes its files: the trace has what they say. Their words are still there for who has them mapped.
    pub fn remove(&self) {
        let Ok(directory) = Private::open(&self.directory) else { return };
        remove(&directory, &self.name);
        if self.snapshot > 0 && self.snapshot & part::IN_TAIL == 0 {
            remove(&directory, &part::snapshot_name(&self.name, self.snapshot));
        }
        if self.spanned {
            remove(&directory, &log_name(&self.name));
        }
    }

    /// A longer tail, if there is room for it; otherwise there are more snapshots.
    fn grow(&mut self, directory: &Private, length: usize) {
        let length = length.next_multiple_of(HEADER);
        if length <= self.tail.length {
            return;
        }
        if let Ok(tail) =
            directory.reopen(&self.name).and_then(|file| Tail::map(&file, HEADER, length, self.tail.ready))
        {
            self.tail = tail;
        }
    }
}

/// What cannot be removed is only in the way.
fn remove(directory: &Private, name: &OsStr) {
    let _ = directory.remove(name);
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let read = safe.spans().unwrap().map(|entry| (entry.symbol, entry.start, entry.end));
        assert!(read.eq((0..calls).map(call)));
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
        assert_eq!(names(), [safe.name.clone()]);
        for number in 1..5 {
            safe.begin_anew(&mut tape, PAUSE);
            assert_eq!(names(), [safe.name.clone(), part::snapshot_name(&safe.name, number)]);
        }
        safe.remove();
        std::fs::remove_dir(directory).unwrap();
    }
}
