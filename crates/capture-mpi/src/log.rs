//! The log of a thread's times: the part of its file that is being written is mapped. Where there is no room for the file, what
//! comes is kept in memory.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use refrain_guest::process::apart::apart;
use refrain_model::time::Time;
use refrain_tracefile::part::HEADER;
use refrain_tracefile::private::Private;
use refrain_tracefile::spans::{ENTRY, Entries, Entry, Log, log_name};

use crate::config;
use crate::held::Held;
use crate::hooks::Ticks;
use crate::tail::Tail;

/// So much of the log of times is mapped at once; and at first.
pub const WINDOW: usize = 1 << 20;
pub const FIRST_WINDOW: usize = 64 << 10;
/// So much of it is kept in memory at most.
const MOST_IN_MEMORY: usize = 64 << 20;

pub struct Spans {
    file: Held,
    window: Tail,
    /// Where in the file the window begins.
    offset: usize,
    /// How much is written of the window, or of the last piece of memory.
    used: usize,
    /// What came when the file had no room any more.
    memory: Vec<Vec<u8>>,
    log: Log,
    /// What clocks of MPI return is kept too.
    results: bool,
    /// What it was given, for tests.
    given: Option<Vec<Ticks>>,
}

impl Spans {
    fn with(file: Held, window: Tail) -> Spans {
        let asked = config::asked();
        let given = asked.and_then(|config| config.tests().spans.as_ref()).map(|_| Vec::new());
        let results = asked.is_some_and(|config| config.time == Time::Exact);
        Spans { file, window, offset: 0, used: 0, memory: Vec::new(), log: Log::default(), results, given }
    }

    pub fn new(directory: &Private, part: &OsStr) -> io::Result<Spans> {
        let name = log_name(part);
        // There may be one of an earlier process with the same number.
        let file = directory.create_anew(&name)?;
        match Tail::map(&file, 0, FIRST_WINDOW, (0, FIRST_WINDOW)) {
            Ok(window) => Ok(Spans::with(Held::new(directory.path().to_owned(), name, &file), window)),
            Err(error) => {
                let _ = directory.remove(&name);
                Err(error)
            }
        }
    }

    /// In memory alone.
    pub fn nowhere(directory: &Path, part: &OsStr) -> Spans {
        Spans::with(Held::nothing(directory.to_owned(), log_name(part)), Tail::nowhere())
    }

    pub fn path(&self) -> PathBuf {
        self.file.path()
    }

    #[inline]
    fn room(&mut self) -> &mut [u8] {
        let all = match self.memory.last_mut() {
            Some(last) => last,
            None => self.window.bytes(),
        };
        &mut all[self.used..]
    }

    #[inline]
    pub fn is_full(&mut self) -> bool {
        self.room().len() < ENTRY
    }

    /// Makes room for more. Where it is in memory from now on, the reason.
    #[cold]
    pub fn go_on(&mut self) -> io::Result<Option<io::Error>> {
        let mut why = None;
        match self.memory.last_mut() {
            Some(last) => last.truncate(self.used),
            None => match apart(|| self.next_window()) {
                Ok(()) => return Ok(None),
                Err(error) => why = Some(error),
            },
        }
        let mut more = Vec::new();
        if self.memory.len() * WINDOW >= MOST_IN_MEMORY || more.try_reserve_exact(WINDOW).is_err() {
            return Err(why.unwrap_or_else(|| io::ErrorKind::OutOfMemory.into()));
        }
        more.resize(WINDOW, 0);
        self.memory.push(more);
        self.used = 0;
        Ok(why)
    }

    /// The next window begins with the page that this one was written up to.
    fn next_window(&mut self) -> io::Result<()> {
        let written = self.offset + self.used;
        let offset = written / HEADER * HEADER;
        let there = self.offset + self.window.ready - offset;
        self.window = self.file.with(|file| Tail::map(file, offset, WINDOW, (there, WINDOW)))?;
        (self.offset, self.used) = (offset, written - offset);
        Ok(())
    }

    /// Keeps a call, with what it returned if it asked a clock of MPI. There is room. How long the file is by now, if it is there.
    #[inline]
    pub fn keep(&mut self, symbol: u32, ticks: Ticks, result: Option<u64>) -> Option<u64> {
        if let Some(given) = &mut self.given {
            given.push(ticks);
        }
        let Ticks { start, end } = ticks;
        let call = Entry { symbol, start, end, result: result.filter(|_| self.results) };
        let mut log = self.log;
        let bytes = log.write(self.room(), call);
        self.log = log;
        self.used += bytes;
        self.memory.is_empty().then_some((self.offset + self.used) as u64)
    }

    /// What it was given, where a test asked for it.
    pub fn given(&self) -> Option<&[Ticks]> {
        self.given.as_deref()
    }

    /// All that was kept, of which so much is in the file.
    pub fn entries(&mut self, in_file: u64) -> impl Iterator<Item = Entry> + use<'_> {
        let file = BufReader::new(Written { file: &mut self.file, at: 0 }.take(in_file));
        let (last, used) = (self.memory.len().wrapping_sub(1), self.used);
        let length = |at: usize, piece: &[u8]| if at == last { used } else { piece.len() };
        let memory = self.memory.iter().enumerate().map(|(at, piece)| &piece[..length(at, piece)]);
        let file: Box<dyn BufRead> = Box::new(file);
        Entries::new(memory.fold(file, |before, piece| Box::new(before.chain(piece))))
    }
}

/// The file from its beginning, however it is found.
struct Written<'a> {
    file: &'a mut Held,
    at: u64,
}

impl Read for Written<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.file.with(|file| file.read_at(to, self.at))?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file has no room from the beginning on, or from its second window on: what comes is there all the same.
    #[test]
    fn what_has_no_room_in_the_file_is_in_memory() {
        let place = std::env::temp_dir().join(format!("refrain-log-{}", std::process::id()));
        let private = Private::make(&place).unwrap();
        let call = |n: u64| ((n % 300) as u32, 1_000 * n + n % 7, 1_000 * n + 300 + n % 11);
        let calls = 3 * WINDOW as u64 / 4;
        for begins in [false, true] {
            let name = OsStr::new("a.part");
            let mut spans =
                if begins { Spans::new(&private, name).unwrap() } else { Spans::nowhere(&place, name) };
            let (file, elsewhere) = (spans.path(), place.join("elsewhere"));
            if begins {
                // Nobody finds it for a while.
                spans.file = Held::nothing(place.clone(), log_name(name));
                std::fs::rename(&file, &elsewhere).unwrap();
            }
            let (mut in_file, mut moved) = (0, 0);
            for (symbol, start, end) in (0..calls).map(call) {
                if spans.is_full() {
                    moved += u32::from(spans.go_on().unwrap().is_some());
                }
                in_file = spans.keep(symbol, Ticks { start, end }, None).unwrap_or(in_file);
            }
            assert_eq!((moved, in_file > 0), (1, begins));
            if begins {
                std::fs::rename(&elsewhere, &file).unwrap();
            }
            let read = spans.entries(in_file).map(|entry| (entry.symbol, entry.start, entry.end));
            assert!(read.eq((0..calls).map(call)));
        }
        std::fs::remove_dir_all(place).unwrap();
    }
}
