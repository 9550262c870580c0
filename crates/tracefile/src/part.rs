//! Part files: what one thread of a running process has recorded so far, kept where it survives the process.
//!
//! A part is a file of [`HEADER`] bytes, which is a table of little-endian words ([`Word`]) and a text, and after it the
//! *tail*: the journal of the calls since the last snapshot. The first snapshot is at the beginning of the tail, so that most
//! threads have one file; later ones are files beside it (`NAME.1`, `NAME.2`, ...).
//! The process writes through a shared mapping; every change that counts is one aligned store of a word, so that what is
//! there at any moment is whole: an entry counts when the tail's length does, a snapshot and the tail that begins with
//! it count when [`Word::Current`] points to their pair of words.
//!
//! The header also has what a thread is doing right now ([`crate::flight`]): the call that it has entered and not left.
//!
//! Parts are read by the build that wrote them, and live as long as a run: this is no format for keeping.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use refrain_fold::bundle::Bundle;
use refrain_fold::xxh64;

use crate::claim::{host_name, processes_seen};
use crate::flight::{self, Doing};
use crate::private::Private;
use crate::spans::is_log;
use crc32fast::hash as crc32;

/// Bytes before the tail: a page of words and text, one of [`crate::flight`], two of the modules of the process.
pub const HEADER: usize = 4 * PAGE;
/// What each of these has.
pub(crate) const PAGE: usize = 4096;
/// Where the text begins, to its page's end.
const TEXT: usize = 1024;
const MAGIC: u64 = u64::from_le_bytes(*b"\x93RFNpart");
/// How the words, the journal and the snapshots are written. Changes with any of them.
const VERSION: u64 = 5;
/// No tail is longer. It bounds what a reader allocates, as does the next.
pub const MOST_TAIL: usize = 256 << 20;
/// No snapshot is longer.
const MOST_SNAPSHOT: u64 = 4 << 30;
/// File names end so.
pub const EXTENSION: &str = "part";

/// Positions in the header's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Word {
    Magic,
    Version,
    /// In the world, plus one; 0 until MPI is up.
    Rank,
    /// Of the world.
    Size,
    Thread,
    Pid,
    /// Unix seconds.
    Started,
    Flags,
    /// One moment on the clock of the ticks, and the same in nanoseconds; and a later one.
    Ticks,
    Nanoseconds,
    LaterTicks,
    LaterNanoseconds,
    /// The function that the thread has entered and not left: its position in the call table plus one.
    Inside,
    /// How the process ended ([`End`]), and the code or signal that goes with it.
    End,
    EndCode,
    /// A signal that a handler of the program, or of a library, was given and may have survived. 0: none.
    Fault,
    /// Calls are missing at the end ([`Lost`]).
    Lost,
    /// Which of the two pairs below counts.
    Current,
    /// The snapshot's number, 0 for none, or [`IN_TAIL`] and its length; and how many bytes of the tail belong to it.
    Snapshot,
    Tail,
    OtherSnapshot,
    OtherTail,
    TextLength,
    /// So many bytes of the log of times count (see [`crate::spans`]).
    Spans,
    /// What the system calls the thread. 0: not known.
    Task,
}

/// How many of these there are. Room is left for more.
const WORDS: usize = Word::Task as usize + 1;

/// With the length of a snapshot: it is in the tail, and the journal comes after it.
pub const IN_TAIL: u64 = 1 << 63;

/// With an offset in the part: a snapshot is there, behind the longest tail, and its length in eight bytes before it. So it is
/// where its process could make no file any more.
pub const BEHIND: u64 = 1 << 62;
/// No snapshot begins before this.
pub const FIRST_BEHIND: u64 = (HEADER + MOST_TAIL) as u64;

/// Bits of [`Word::Flags`].
pub const SPLIT: u64 = 1;
pub const TIMED: u64 = 2;

/// How a process ended, as far as it could still say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u64)]
pub enum End {
    /// It said nothing: it still runs, or it was killed.
    #[default]
    Silent = 0,
    /// `exit`, with its code.
    Exit = 1,
    /// `MPI_Abort`, with its code.
    Abort = 2,
    /// A signal that ended it.
    Signal = 3,
    /// `MPI_Finalize` was reached, and what was recorded handed over.
    Finalized = 4,
}

impl End {
    fn from_word(word: u64) -> End {
        [End::Exit, End::Abort, End::Signal, End::Finalized]
            .into_iter()
            .find(|end| *end as u64 == word)
            .unwrap_or_default()
    }
}

/// The directory for the parts of a trace that is being recorded: beside it, and named after it.
pub fn directory(trace: &Path) -> PathBuf {
    let mut name = trace.file_name().unwrap_or_default().to_owned();
    name.push(".parts");
    trace.with_file_name(name)
}

/// The directory for the parts on one host, where they are kept elsewhere than in `parts`, beside the trace. Traces of the same
/// name in other places have others.
pub fn local_directory(storage: &Path, parts: &Path) -> PathBuf {
    let hash = xxh64(parts.as_os_str().as_encoded_bytes(), 0) as u32;
    let mut name = parts.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{hash:08x}.parts"));
    storage.join(name)
}

/// In the name of a note that says where a host keeps its parts, if that is not the directory it lies in: `meet-*.kept.HOST`.
pub const KEPT: &str = ".kept.";

/// The hosts that keep the parts of a run elsewhere, and where.
pub fn kept_elsewhere(directory: &Private) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for name in directory.names().unwrap_or_default() {
        let Some(host) = kept_by(&name) else { continue };
        if let Ok(Some(place)) = directory.word(&name) {
            found.push((host.to_owned(), PathBuf::from(place)));
        }
    }
    found.sort();
    found
}

/// Removes what hosts have said of where they keep parts: none are left.
pub fn forget_kept(directory: &Private) {
    for name in directory.names().unwrap_or_default().iter().filter(|name| kept_by(name).is_some()) {
        let _ = directory.remove(name);
    }
}

fn kept_by(name: &OsStr) -> Option<&str> {
    let name = name.to_str().filter(|name| name.starts_with(MEETING))?;
    name.split_once(KEPT).map(|(_, host)| host)
}

/// There is no such process.
fn gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Whether a directory has parts, or says that hosts have some.
pub fn has_any(names: &[OsString]) -> bool {
    names.iter().any(|name| is_part(name) || kept_by(name).is_some())
}

/// Why calls are missing at the end of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u64)]
pub enum Lost {
    /// None are.
    #[default]
    Nothing = 0,
    /// There was no room to keep them.
    NoRoom = 1,
    /// A fault of ours, or no memory.
    Stopped = 2,
    /// The program left an MPI call by a jump.
    Jumped = 3,
    /// A signal handler called `MPI_Finalize` in the middle of another call.
    Interrupted = 4,
}

impl Lost {
    fn from_word(word: u64) -> Lost {
        match word {
            0 => Lost::Nothing,
            1 => Lost::NoRoom,
            3 => Lost::Jumped,
            4 => Lost::Interrupted,
            _ => Lost::Stopped,
        }
    }
}

/// Whether a file in a directory of parts is called like a part.
pub fn is_part(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == EXTENSION)
}

/// Whether it is called like a part, a snapshot of one or its log of times.
pub fn is_part_or_snapshot(name: &OsStr) -> bool {
    let path = Path::new(name);
    let is_number = |text: &OsStr| text.to_str().is_some_and(|text| text.parse::<u64>().is_ok());
    is_part(name)
        || is_log(name)
        || (path.extension().is_some_and(is_number) && path.file_stem().is_some_and(is_part))
}

/// Whether Refrain calls files in a directory of parts so: parts, their snapshots, and the small files by which the ranks
/// of a job and the jobs of a run agree.
pub fn is_known(name: &OsStr) -> bool {
    let path = Path::new(name);
    let is_number = |text: &OsStr| text.to_str().is_some_and(|text| text.parse::<u64>().is_ok());
    is_part_or_snapshot(name)
        || name.as_encoded_bytes().starts_with(MEETING.as_bytes())
        || match path.extension() {
            None => name == "claim",
            Some(extension) if is_number(extension) => {
                let stem = path.file_stem().unwrap_or_default();
                stem == "job" || stem == "done"
            }
            Some(_) => false,
        }
}

/// Files by which the ranks meet in `MPI_Finalize` are called so at first.
pub const MEETING: &str = "meet-";

/// The parts in a directory of processes that have reached the end of the run of that name, and what belongs to them. What
/// another run left behind stays, and so does all where the run has no name.
pub fn of_run(directory: &Private, run: &str) -> Vec<OsString> {
    let names = directory.names().unwrap_or_default();
    let is_own = |name: &&OsString| {
        is_part(name)
            && Part::peek(directory, name).is_ok_and(|part| {
                !run.is_empty() && part.text("run") == Some(run) && part.end() == End::Finalized
            })
    };
    let own: HashSet<&OsStr> = names.iter().filter(is_own).map(OsString::as_os_str).collect();
    let of_own = |name: &OsString| {
        own.contains(name.as_os_str()) || Path::new(name).file_stem().is_some_and(|stem| own.contains(stem))
    };
    names.iter().filter(|name| of_own(name)).cloned().collect()
}

/// The header of a new part. `text` is lines of `key value`, cut where it is too long.
pub fn header(words: &[(Word, u64)], text: &str) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    let mut length = text.len().min(PAGE - TEXT);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    bytes[TEXT..TEXT + length].copy_from_slice(&text.as_bytes()[..length]);
    let own = [(Word::Magic, MAGIC), (Word::Version, VERSION), (Word::TextLength, length as u64)];
    for (word, value) in own.iter().chain(words) {
        bytes[*word as usize * 8..][..8].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// A snapshot's file: a checksum of the rest, the length of `lead` and `lead`, which is journal that comes before the
/// tail, then the recording.
pub fn snapshot_bytes(bundle: &Bundle, lead: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&(lead.len() as u32).to_le_bytes());
    bytes.extend_from_slice(lead);
    bytes.extend_from_slice(&bundle.to_bytes());
    let sum = crc32(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// What the snapshots of the part of that name are called.
pub fn snapshot_name(part: &OsStr, number: u64) -> OsString {
    let mut name = part.to_owned();
    name.push(format!(".{number}"));
    name
}

/// What the part of that name is called until there is something in it. No snapshot has this number.
pub fn begun_name(part: &OsStr) -> OsString {
    snapshot_name(part, 0)
}

/// Whether a process still adds to its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Life {
    Ended,
    /// It is, or was, on another machine.
    Unseen,
    Running,
}

/// Removes a part, its snapshots and its log.
pub fn remove(directory: &Private, part: &OsStr) {
    let is_of_part = |name: &OsString| is_part_or_snapshot(name) && Path::new(name).file_stem() == Some(part);
    for name in directory.names().unwrap_or_default().iter().filter(|name| *name == part || is_of_part(name))
    {
        // What cannot be removed is only in the way.
        let _ = directory.remove(name);
    }
}

/// Removes the parts of other runs than that one, if all their processes have ended. Whether none is left.
pub fn clear_of_others(directory: &Private, run: &str) -> bool {
    let Ok(mut names) = directory.names() else { return false };
    names.retain(|name| is_part(name));
    let mut ended = true;
    names.retain(|name| match Part::peek(directory, name) {
        Ok(part) if part.text("run") == Some(run) && !run.is_empty() => false,
        Ok(part) => {
            ended &= part.life(name) == Life::Ended;
            true
        }
        // Nobody could make anything of it.
        Err(_) => true,
    });
    if ended {
        names.iter().for_each(|name| remove(directory, name));
    }
    ended
}

/// A part as it was found.
#[derive(Debug, Clone)]
pub struct Part {
    words: Vec<u64>,
    text: String,
    /// What its thread was doing.
    pub doing: Doing,
    pub snapshot: Option<Bundle>,
    /// The journal of what came after it.
    pub journal: Vec<u8>,
}

impl Part {
    pub fn word(&self, word: Word) -> u64 {
        self.words[word as usize]
    }

    /// The rank in the world, once MPI was up.
    pub fn rank(&self) -> Option<u32> {
        self.word(Word::Rank).checked_sub(1).and_then(|rank| u32::try_from(rank).ok())
    }

    pub fn end(&self) -> End {
        End::from_word(self.word(Word::End))
    }

    /// The rest of the text's line that begins with this word.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
    }

    /// What was asked for, where it differs from what one gets without asking.
    pub fn options(&self) -> Vec<(String, String)> {
        let options = self.text.lines().filter_map(|line| line.strip_prefix("option ")?.split_once(' '));
        options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    pub fn lost(&self) -> Lost {
        Lost::from_word(self.word(Word::Lost))
    }

    /// The header alone. Its process may be at work: what it says of the call in flight is of one call.
    pub fn peek(directory: &Private, name: &OsStr) -> Result<Part, String> {
        let file = directory.read(name).map_err(|error| error.to_string())?;
        let header = flight::steady(|| {
            let mut header = [0; HEADER];
            file.read_exact_at(&mut header, 0).map(|()| header)
        });
        Part::of_header(&header.map_err(|_| "it is too short")?)
    }

    fn of_header(header: &[u8; HEADER]) -> Result<Part, String> {
        let words = header[..TEXT].as_chunks::<8>().0.iter().take(WORDS);
        let words: Vec<u64> = words.map(|word| u64::from_le_bytes(*word)).collect();
        if words[Word::Magic as usize] != MAGIC {
            return Err("it is no part of a trace".into());
        }
        if words[Word::Version as usize] != VERSION {
            return Err("it was written by another version of Refrain; recover it with that one".into());
        }
        let length = usize::try_from(words[Word::TextLength as usize]).unwrap_or(usize::MAX);
        let text = String::from_utf8_lossy(header[TEXT..PAGE].get(..length).unwrap_or_default()).into_owned();
        Ok(Part { words, text, doing: Doing::read(header), snapshot: None, journal: Vec::new() })
    }

    /// The snapshot and the length of the tail that count.
    fn current(&self) -> (u64, u64) {
        match self.word(Word::Current) {
            0 => (self.word(Word::Snapshot), self.word(Word::Tail)),
            _ => (self.word(Word::OtherSnapshot), self.word(Word::OtherTail)),
        }
    }

    /// Whether the process that wrote it still adds to it. It has not said that it ends, and has the file mapped: its number
    /// alone may be another's by now.
    pub fn life(&self, name: &OsStr) -> Life {
        if self.end() != End::Silent {
            return Life::Ended;
        }
        // Numbers of processes mean something on that machine and in that namespace alone.
        let seen = self
            .text("seen")
            .and_then(|seen| seen.parse::<u64>().ok())
            .is_none_or(|seen| seen == processes_seen());
        if self.text("host") != Some(host_name().as_str()) || !seen {
            return Life::Unseen;
        }
        match self.maps() {
            Ok(maps) if maps.contains(&*name.to_string_lossy()) => Life::Running,
            Ok(_) => Life::Ended,
            Err(error) if gone(&error) => Life::Ended,
            Err(_) => Life::Unseen,
        }
    }

    fn maps(&self) -> io::Result<String> {
        std::fs::read_to_string(format!("/proc/{}/maps", self.word(Word::Pid)))
    }

    /// A process of this machine has the part in its memory, whatever it has said of its end.
    pub fn is_mapped(&self, name: &OsStr) -> bool {
        self.maps().is_ok_and(|maps| maps.contains(&*name.to_string_lossy()))
    }

    /// Reads a part and the snapshot that counts. The process may still be at work: then it is as of some moment.
    pub fn read(directory: &Private, name: &OsStr) -> Result<Part, String> {
        const TRIES: u32 = 10;
        let mut read = Part::read_once(directory, name);
        for _ in 1..TRIES {
            let moved = |part: &Part| {
                Part::peek(directory, name).is_ok_and(|now| now.current().0 != part.current().0)
            };
            match &read {
                // The next snapshot came meanwhile, and its journal over what was being read.
                Ok((part, _)) if moved(part) => read = Part::read_once(directory, name),
                Ok(_) => break,
                Err(_) => read = Part::read_once(directory, name),
            }
        }
        let (mut part, snapshot) = read?;
        if let Some(snapshot) = snapshot {
            let (bundle, mut journal) = decode_snapshot(&part, name, &snapshot)?;
            journal.append(&mut part.journal);
            (part.snapshot, part.journal) = (Some(bundle), journal);
        }
        Ok(part)
    }

    /// A part with the journal since its snapshot, and that one's bytes. To decode them may take longer than the process
    /// needs for the next one, so that comes later.
    fn read_once(directory: &Private, name: &OsStr) -> Result<(Part, Option<Vec<u8>>), String> {
        let mut part = Part::peek(directory, name)?;
        let (number, length) = part.current();
        if length > MOST_TAIL as u64 {
            return Err(format!("its journal would have {length} bytes, which none has"));
        }
        let mut file = directory.read(name).map_err(|error| error.to_string())?;
        file.seek(SeekFrom::Start(HEADER as u64)).map_err(|error| error.to_string())?;
        let snapshot = match (number, number ^ IN_TAIL) {
            (0, _) => None,
            (_, inside) if inside <= MOST_TAIL as u64 => {
                let mut bytes = Vec::new();
                let read = file.by_ref().take(inside).read_to_end(&mut bytes);
                read.map_err(|error| error.to_string())?;
                Some(bytes)
            }
            _ if number & (IN_TAIL | BEHIND) == BEHIND => Some(read_behind(&file, name, number & !BEHIND)?),
            _ => Some(read_snapshot(directory, name, number)?),
        };
        file.take(length).read_to_end(&mut part.journal).map_err(|error| error.to_string())?;
        if (part.journal.len() as u64) < length {
            return Err("its end is missing".into());
        }
        Ok((part, snapshot))
    }
}

fn read_snapshot(directory: &Private, part: &OsStr, number: u64) -> Result<Vec<u8>, String> {
    let name = snapshot_name(part, number);
    let damaged = |what: &dyn std::fmt::Display| damaged(&name, what);
    let file = directory.read(&name).map_err(|error| damaged(&error))?;
    if file.metadata().map_err(|error| damaged(&error))?.len() > MOST_SNAPSHOT {
        return Err(damaged(&"it is larger than any"));
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(MOST_SNAPSHOT).read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
    Ok(bytes)
}

/// A snapshot that lies in the part, at that offset.
fn read_behind(file: &File, name: &OsStr, offset: u64) -> Result<Vec<u8>, String> {
    let damaged = |what: &dyn std::fmt::Display| damaged(name, what);
    let mut length = [0; 8];
    file.read_exact_at(&mut length, offset).map_err(|error| damaged(&error))?;
    let length = u64::from_le_bytes(length);
    let there = file.metadata().map_err(|error| damaged(&error))?.len().saturating_sub(offset + 8);
    if offset < FIRST_BEHIND || length > there.min(MOST_SNAPSHOT) {
        return Err(damaged(&"it is not all there"));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset + 8).map_err(|error| damaged(&error))?;
    Ok(bytes)
}

fn damaged(name: &OsStr, what: &dyn std::fmt::Display) -> String {
    format!("its snapshot {}: {what}", name.display())
}

fn decode_snapshot(part: &Part, name: &OsStr, bytes: &[u8]) -> Result<(Bundle, Vec<u8>), String> {
    let name = match part.current().0 {
        number if number & (IN_TAIL | BEHIND) != 0 => name.to_owned(),
        number => snapshot_name(name, number),
    };
    let damaged = |what: &dyn std::fmt::Display| damaged(&name, what);
    let whole = || {
        let (sum, rest) = bytes.split_first_chunk::<4>()?;
        let (lead, content) = rest.split_first_chunk::<4>()?;
        let (lead, content) = content.split_at_checked(u32::from_le_bytes(*lead) as usize)?;
        (crc32(rest) == u32::from_le_bytes(*sum)).then_some((lead, content))
    };
    let (lead, content) = whole().ok_or_else(|| damaged(&"it is damaged"))?;
    let bundle = Bundle::from_bytes(content).map_err(|error| damaged(&error))?;
    Ok((bundle, lead.to_vec()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_the_files_of_a_run_are_its_own() {
        let directory = std::env::temp_dir().join(format!("refrain-runs-{}", std::process::id()));
        let private = Private::make(&directory).unwrap();
        let finalized = End::Finalized as u64;
        for (name, run, end) in
            [("a", "x", finalized), ("b", "y", finalized), ("c", "", finalized), ("d", "x", 0)]
        {
            let name = format!("{name}.part");
            let header = header(&[(Word::End, end)], &format!("run {run}\nhost elsewhere\n"));
            fs::write(directory.join(&name), header).unwrap();
            fs::write(directory.join(snapshot_name(OsStr::new(&name), 3)), "").unwrap();
        }
        fs::write(directory.join("note"), "").unwrap();
        // One that is being made, by whichever process.
        let begun = begun_name(OsStr::new("e.part"));
        fs::write(directory.join(&begun), "").unwrap();
        let told = |names: &[OsString]| {
            let mut names: Vec<String> = names.iter().map(|n| n.to_string_lossy().into_owned()).collect();
            names.sort();
            names.join(" ")
        };
        let names = |run: &str| told(&of_run(&private, run));
        assert_eq!((names("x"), names(""), names("z")), ("a.part a.part.3".into(), "".into(), "".into()));
        // Nobody can tell whether the process of d still runs.
        assert!(!clear_of_others(&private, "y"));
        remove(&private, OsStr::new("d.part"));
        assert!(clear_of_others(&private, "y"));
        assert_eq!(told(&private.names().unwrap()), "b.part b.part.3 e.part.0 note");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_first_snapshot_is_in_the_tail() {
        let directory = std::env::temp_dir().join(format!("refrain-tail-{}", std::process::id()));
        let private = Private::make(&directory).unwrap();
        let name = OsStr::new("a.part");
        let snapshot = snapshot_bytes(&Bundle::default(), b"xy");
        let words = [(Word::Snapshot, IN_TAIL | snapshot.len() as u64), (Word::Tail, 3)];
        let bytes = [header(&words, ""), snapshot, b"abcdef".to_vec()].concat();
        fs::write(directory.join(name), &bytes).unwrap();
        let part = Part::read(&private, name).unwrap();
        assert_eq!((part.snapshot, part.journal.as_slice()), (Some(Bundle::default()), &b"xyabc"[..]));
        fs::write(directory.join(name), &bytes[..bytes.len() - 7]).unwrap();
        assert!(Part::read(&private, name).is_err());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_snapshot_may_lie_behind_the_tail() {
        let directory = std::env::temp_dir().join(format!("refrain-behind-{}", std::process::id()));
        let private = Private::make(&directory).unwrap();
        let name = OsStr::new("a.part");
        let file = private.create(name).unwrap();
        let snapshot = snapshot_bytes(&Bundle::default(), b"xy");
        let words = [(Word::Snapshot, BEHIND | FIRST_BEHIND), (Word::Tail, 3)];
        file.write_all_at(&[header(&words, ""), b"abcdef".to_vec()].concat(), 0).unwrap();
        let length = (snapshot.len() as u64).to_le_bytes();
        file.write_all_at(&[&length[..], &snapshot].concat(), FIRST_BEHIND).unwrap();
        let part = Part::read(&private, name).unwrap();
        assert_eq!((part.snapshot, part.journal.as_slice()), (Some(Bundle::default()), &b"xyabc"[..]));
        for (at, byte) in [(FIRST_BEHIND, 0xff), (FIRST_BEHIND + 4, 1), (FIRST_BEHIND + 12, 7)] {
            let mut before = [0];
            file.read_exact_at(&mut before, at).unwrap();
            file.write_all_at(&[byte], at).unwrap();
            assert!(Part::read(&private, name).is_err(), "{at}");
            file.write_all_at(&before, at).unwrap();
        }
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn hosts_say_where_their_parts_are() {
        let directory = std::env::temp_dir().join(format!("refrain-kept-{}", std::process::id()));
        let private = Private::make(&directory).unwrap();
        let own = local_directory(Path::new("/local"), Path::new("/a/x.rfn.parts"));
        assert!(own.starts_with("/local") && own.to_string_lossy().ends_with(".parts"));
        assert_ne!(own, local_directory(Path::new("/local"), Path::new("/b/x.rfn.parts")));
        assert!(!has_any(&private.names().unwrap()));
        private.leave(OsStr::new("meet-0.kept.b"), own.to_str().unwrap()).unwrap();
        private.leave(OsStr::new("meet-0.kept.a"), "/other").unwrap();
        assert!(has_any(&private.names().unwrap()));
        let expected = vec![("a".to_owned(), PathBuf::from("/other")), ("b".to_owned(), own)];
        assert_eq!(kept_elsewhere(&private), expected);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn names_that_are_ours() {
        let known = "0-host-12-0.part 3-a.b-1-2.part.17 meet-0123456789abcdef.decision claim job.2 done.1";
        let unknown = "note a.part.x x.here decision claims job .part.d 7";
        assert!(known.split(' ').all(|name| is_known(OsStr::new(name))));
        assert_eq!(unknown.split(' ').find(|name| is_known(OsStr::new(name))), None);
    }

    #[test]
    fn a_part_is_read_as_it_was_written() {
        let directory = std::env::temp_dir().join(format!("refrain-part-{}", std::process::id()));
        let private = Private::make(&directory).unwrap();
        let name = OsStr::new("a.part");
        let path = directory.join(name);
        let words = [(Word::Rank, 4), (Word::Current, 1), (Word::OtherSnapshot, 2), (Word::OtherTail, 3)];
        let mut bytes = header(&words, "host here and there\nlibrary L\n");
        bytes.extend_from_slice(b"abcdef");
        fs::write(&path, &bytes).unwrap();
        assert!(Part::read(&private, name).unwrap_err().contains("a.part.2"));
        fs::write(directory.join(snapshot_name(name, 2)), snapshot_bytes(&Bundle::default(), b"xy")).unwrap();
        let part = Part::read(&private, name).unwrap();
        assert_eq!((part.rank(), part.end(), part.journal.as_slice()), (Some(3), End::Silent, &b"xyabc"[..]));
        assert_eq!(
            (part.text("host"), part.text("host here"), part.text("abi")),
            (Some("here and there"), Some("and there"), None)
        );
        for damage in [0, 8, 200] {
            let mut bytes = bytes.clone();
            bytes.truncate(damage.max(1) * 20);
            bytes[0] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert!(Part::read(&private, name).is_err());
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
