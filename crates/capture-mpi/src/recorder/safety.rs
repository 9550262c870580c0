//! What is recorded, kept where it survives this process: each thread's part file, written through a shared mapping.
//!
//! A call costs a few stores. When the tail is full the folded state is written beside it, and the tail begins anew; it
//! grows with the folded state, so that all snapshots together cost no more than a fixed share of what is recorded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use refrain_encode::{Journal, Tape};
use refrain_tracefile::part::{self, HEADER, Word};

use crate::clock::Moment;
use crate::guard::say;
use crate::state;

/// The tail's first size.
const ROOM: usize = 1 << 20;
/// The tail is so many times larger than the last snapshot, if that is more.
const SHARE: usize = 4;
/// The clocks are compared after 1, 2, 4, ... calls, and then after so many.
const COMPARED: u64 = 4096;

/// A shared mapping of a part file. Unmapped when dropped.
struct Mapping {
    start: *mut u8,
    length: usize,
}

// SAFETY: plain memory that only its owner writes, but for the words of how the process ends, which are atomic.
unsafe impl Send for Mapping {}

impl Mapping {
    /// All of the file, which is made that long. Room on disk is taken now: a store to a page that has none would be
    /// the end of the program.
    fn new(file: &File, length: usize) -> io::Result<Mapping> {
        // SAFETY: takes numbers only.
        let code = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length as libc::off_t) };
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping wherever there is room.
        let start = unsafe { libc::mmap(null_mut(), length, protection, flags, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start: start.cast(), length })
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        // SAFETY: the header's words lie at its start, which is aligned to a page; others only write them atomically.
        unsafe { &*self.start.cast::<AtomicU64>().add(word as usize) }
    }

    fn tail(&mut self) -> &mut [u8] {
        // SAFETY: within the mapping, and nobody else's.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(HEADER), self.length - HEADER) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and `self` was the only way to it.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// Where a process keeps its parts, and what all of them say.
pub struct Place {
    pub directory: PathBuf,
    pub words: Vec<(Word, u64)>,
    pub text: String,
}

impl Place {
    /// A part for the calling thread, which has recorded `tape` so far; `None`, and a line that says so, where it cannot be had.
    pub fn part(&self, thread: usize, tape: &mut Tape) -> Option<Safe> {
        match Safe::new(self, thread, tape) {
            Ok(safe) => Some(safe),
            Err(error) => {
                say(&format!(
                    "what is recorded would not survive a crash: {}: {error}",
                    self.directory.display()
                ));
                None
            }
        }
    }
}

/// One thread's part.
pub struct Safe {
    path: PathBuf,
    mapping: Mapping,
    used: usize,
    /// The pair of words that counts.
    tail_word: Word,
    snapshot: u64,
    journal: Journal,
    calls: u64,
    full: bool,
}

impl Safe {
    fn new(place: &Place, thread: usize, tape: &mut Tape) -> io::Result<Safe> {
        fs::create_dir_all(&place.directory)?;
        let host = super::finalize::host_name();
        let name = format!("{host}-{}-{thread}.{}", std::process::id(), part::EXTENSION);
        let path = place.directory.join(name);
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        let now = Moment::now();
        let mut words = place.words.clone();
        words.extend([
            (Word::Thread, thread as u64),
            (Word::Ticks, now.ticks),
            (Word::Nanoseconds, now.nanoseconds),
        ]);
        file.write_all(&part::header(&words, &place.text))?;
        let mapping = Mapping::new(&file, HEADER + ROOM)?;
        let mut safe = Safe {
            path,
            mapping,
            used: 0,
            tail_word: Word::Tail,
            snapshot: 0,
            journal: Journal::default(),
            calls: 0,
            full: false,
        };
        safe.snapshot(tape)?;
        state::set_inside(safe.word(Word::Inside));
        Ok(safe)
    }

    /// The words of the header, valid until the process ends or the tail grows.
    pub fn word(&self, word: Word) -> &AtomicU64 {
        self.mapping.word(word)
    }

    /// Keeps the call that `tape` was just given.
    #[inline]
    pub fn call(&mut self, tape: &mut Tape, symbol: u32, values: &[(u16, i64)], ticks: u64) {
        if self.full {
            return;
        }
        let used = self.used;
        match self.journal.write(&mut self.mapping.tail()[used..], tape, symbol, values, ticks) {
            Some(bytes) => {
                self.used += bytes;
                // From here on the entry counts.
                self.word(self.tail_word).store(self.used as u64, Release);
            }
            None => self.make_room(tape),
        }
        self.calls += 1;
        if self.calls.is_power_of_two() || self.calls.is_multiple_of(COMPARED) {
            self.compare_clocks();
        }
    }

    #[cold]
    fn compare_clocks(&self) {
        let now = Moment::now();
        self.word(Word::LaterTicks).store(now.ticks, Relaxed);
        self.word(Word::LaterNanoseconds).store(now.nanoseconds, Relaxed);
    }

    #[cold]
    fn make_room(&mut self, tape: &mut Tape) {
        if let Err(error) = self.snapshot(tape) {
            self.full = true;
            self.word(Word::Lost).store(1, Release);
            say(&format!(
                "what is recorded from here on would not survive a crash: {}: {error}",
                self.path.display()
            ));
        }
    }

    /// Writes the folded state and begins the tail anew.
    fn snapshot(&mut self, tape: &mut Tape) -> io::Result<()> {
        let bundle = tape.snapshot().map_err(io::Error::other)?;
        let lead = self.journal.restart(tape);
        let bytes = part::snapshot_bytes(&bundle, &lead);
        let before = (self.snapshot > 0).then(|| part::snapshot_path(&self.path, self.snapshot));
        self.snapshot += 1;
        let path = part::snapshot_path(&self.path, self.snapshot);
        fs::write(&path, &bytes).inspect_err(|_| remove(&path))?;
        if bytes.len() * SHARE > self.mapping.length {
            let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
            let length = (HEADER + bytes.len() * SHARE).next_multiple_of(HEADER);
            // Both are the same file. The old mapping stays: a signal handler of another thread may be on its way there.
            let old = std::mem::replace(&mut self.mapping, Mapping::new(&file, length)?);
            super::endings::moved(old.word(Word::Magic), self.word(Word::Magic));
            state::set_inside(self.word(Word::Inside));
            std::mem::forget(old);
        }
        let (snapshot_word, tail_word) = match self.tail_word {
            Word::Tail => (Word::OtherSnapshot, Word::OtherTail),
            _ => (Word::Snapshot, Word::Tail),
        };
        self.word(snapshot_word).store(self.snapshot, Relaxed);
        self.word(tail_word).store(0, Relaxed);
        // From here on they count.
        self.word(Word::Current).store(u64::from(tail_word == Word::OtherTail), Release);
        self.tail_word = tail_word;
        self.used = 0;
        if let Some(before) = before {
            remove(&before);
        }
        Ok(())
    }
}

/// What cannot be removed is only in the way.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}
