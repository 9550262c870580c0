//! The times of every call: packed by each rank, brought to rank 0 one rank after the other, and joined there.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use refrain_encode::calls_of;
use refrain_fold::bundle::{Bundle, Index, Link};
use refrain_guest::process::apart::apart;
use refrain_mpi::{Transport, TransportError};
use refrain_times::Packer;
use refrain_tracefile::chunks::{Key, Merger, Section, Settings, Writer};
use refrain_tracefile::clocks::Converter;
use refrain_tracefile::private::Private;
use refrain_tracefile::spans::pack;

use super::together::{LONG_PATIENCE, MOST_PATIENCE, Wire};
use crate::config::Config;
use crate::recording::Own;

/// A message has so many bytes at most.
const MESSAGE: usize = 1 << 20;

/// So much is kept in memory where there is no room on disk.
const MOST_IN_MEMORY: usize = 256 << 20;

/// All times together take no room on disk if they are no more.
const SMALL: u64 = 4 << 20;

/// A file in the directory of the parts, which goes when it is dropped; or, where there is no room for it, memory.
pub struct Scratch(Place);

enum Place {
    File { directory: PathBuf, name: OsString, file: File },
    Memory(Cursor<Vec<u8>>),
}

impl Scratch {
    fn new(parts: &Path, name: &str) -> Scratch {
        let name = OsString::from(format!("{name}-{}.part.spans", std::process::id()));
        let file = apart(|| Private::make(parts)?.create_anew(&name));
        Scratch(match file {
            Ok(file) => Place::File { directory: parts.to_owned(), name, file },
            Err(_) => Place::Memory(Cursor::default()),
        })
    }

    fn empty(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Place::File { file, .. } => file.set_len(0)?,
            Place::Memory(bytes) => bytes.get_mut().clear(),
        }
        self.rewind()
    }

    /// There is no room for `more` bytes in the file: what it has is in memory from now on.
    fn move_to_memory(&mut self, more: usize, why: io::Error) -> io::Result<()> {
        if let Place::Memory(_) = self.0 {
            return Ok(());
        }
        let at = self.stream_position()?;
        let length = self.seek(SeekFrom::End(0))?;
        let mut bytes = Vec::new();
        let room = usize::try_from(length).ok().and_then(|length| length.checked_add(more));
        let fits = |room: usize| room <= MOST_IN_MEMORY && bytes.try_reserve_exact(room).is_ok();
        if !room.is_some_and(fits) {
            return Err(why);
        }
        self.rewind()?;
        self.read_to_end(&mut bytes)?;
        let mut memory = Cursor::new(bytes);
        memory.set_position(at);
        *self = Scratch(Place::Memory(memory));
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Place::File { directory, name, .. } = &self.0 {
            // What cannot be removed is only in the way.
            let _ = Private::open(directory).and_then(|directory| directory.remove(name));
        }
    }
}

impl Read for Scratch {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Place::File { file, .. } => file.read(to),
            Place::Memory(bytes) => bytes.read(to),
        }
    }
}

impl Seek for Scratch {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.0 {
            Place::File { file, .. } => file.seek(to),
            Place::Memory(bytes) => bytes.seek(to),
        }
    }
}

impl Write for Scratch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Place::File { file, .. } = &mut self.0 {
            match apart(|| file.write(bytes)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    self.move_to_memory(bytes.len(), error)?;
                }
                written => return written,
            }
        }
        let Place::Memory(memory) = &mut self.0 else { return Err(io::ErrorKind::WriteZero.into()) };
        let room = memory.get_ref().len() + bytes.len() <= MOST_IN_MEMORY;
        if !room || memory.get_mut().try_reserve(bytes.len()).is_err() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        memory.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The times of this rank, packed, and how many of its calls have none.
pub fn packed(
    config: &Config,
    rank: u32,
    (streams, bundle): (&mut [(u32, &mut Own)], &Bundle),
    clock: Converter,
    parts: &Path,
) -> io::Result<(Scratch, u64)> {
    let index = Index::new(bundle);
    let mut without = 0;
    let mut scratch = Scratch::new(parts, &format!("packed-{rank}"));
    let mut writer = Writer::new(BufWriter::new(&mut scratch), Settings::default());
    for (thread, own) in streams {
        let Some((cohort, member)) = index.cohort_of(rank, *thread) else { continue };
        let calls = calls_of(bundle, &bundle.cohorts[cohort], member);
        let Some(safe) = &mut own.safe else {
            without += calls;
            continue;
        };
        let Some(mut packer) = Packer::new(&config.time) else { continue };
        let key = Key { member: member.into(), lane: 0 };
        let nanoseconds = |ticks| clock.nanoseconds(ticks) as i64;
        if let (Some(prefix), Some(given)) = (&config.tests().spans, safe.given()) {
            let lines = given.iter().map(|t| format!("{} {}\n", nanoseconds(t.start), nanoseconds(t.end)));
            std::fs::write(format!("{prefix}.{rank}.{thread}"), lines.collect::<String>())?;
        }
        let about = own.tape.about();
        let whole = safe.spans_are_whole();
        let timed = pack(&mut writer, key, &mut packer, safe.spans()?, &about, nanoseconds)?;
        // Times that belong to other calls are worse than none.
        if timed > calls || timed < calls && whole {
            return Err(io::Error::other(format!("there are {timed} for {calls} calls of thread {thread}")));
        }
        without += calls - timed;
    }
    writer.finish()?.flush()?;
    Ok((scratch, without))
}

/// Puts the times of a rank to the others.
fn add(all: &mut io::Result<Merger<BufWriter<Scratch>>>, from: io::Result<&mut Scratch>) {
    let Ok(merger) = all else { return };
    let added = from.and_then(|from| {
        from.rewind()?;
        let mut section = Section::open(from).map_err(io::Error::other)?;
        merger.add(&mut section, Some).map_err(io::Error::other)
    });
    if let Err(error) = added {
        // Half a chunk may be there.
        *all = Err(error);
    }
}

/// Brings them all to rank 0, where they are one section. Each rank waits for its turn, so that rank 0 holds one message at a
/// time, whatever the length of the run.
pub fn gather<T: Transport>(
    link: &mut Wire<T>,
    (rank, size): (u32, u32),
    own: Option<Scratch>,
    parts: &Path,
) -> Result<Option<Scratch>, TransportError> {
    if rank != 0 {
        // As long as all before it take together.
        link.wait_at_most(LONG_PATIENCE);
        link.recv(0)?;
        link.wait_at_most(MOST_PATIENCE);
        if let Some(mut own) = own {
            let _ = own.rewind();
            let mut piece = Vec::with_capacity(MESSAGE);
            loop {
                piece.clear();
                // What cannot be read is not there.
                let read = Read::by_ref(&mut own).take(MESSAGE as u64).read_to_end(&mut piece);
                if read.is_err() || piece.is_empty() {
                    break;
                }
                link.send(0, &piece)?;
            }
        }
        link.send(0, &[])?;
        return Ok(None);
    }
    link.wait_at_most(MOST_PATIENCE);
    let mut all = Ok(Merger::new(BufWriter::new(Scratch::new(parts, "all"))));
    if let Some(mut own) = own {
        apart(|| add(&mut all, Ok(&mut own)));
    }
    let mut arrived = Scratch::new(parts, "arrived");
    for from in 1..size {
        let mut kept = apart(|| arrived.empty());
        link.send(from, b"go")?;
        loop {
            let piece = link.recv(from)?;
            if piece.is_empty() {
                break;
            }
            if kept.is_ok() {
                kept = apart(|| arrived.write_all(&piece));
            }
        }
        apart(|| add(&mut all, kept.map(|()| &mut arrived)));
    }
    let finished = all.and_then(|merger| apart(|| merger.finish()?.into_inner().map_err(io::Error::from)));
    Ok(finished.ok().map(|mut all| {
        // The room is the trace's.
        if all.seek(SeekFrom::End(0)).is_ok_and(|length| length <= SMALL) {
            let _ = all.move_to_memory(0, io::ErrorKind::StorageFull.into());
        }
        all
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_fold::pack::Kind;
    use refrain_mpi::{LocalTransport, local};
    use std::thread;
    use std::time::Duration;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("refrain-spans-{name}-{}", std::process::id()))
    }

    /// A few numbers of that rank.
    fn own(parts: &Path, rank: u32) -> Scratch {
        let mut scratch = Scratch::new(parts, &format!("packed-{rank}"));
        let mut writer = Writer::new(&mut scratch, Settings::default());
        let stream = writer.stream(Key { member: rank.into(), lane: 0 }, Kind::TIME);
        writer.push(stream, &[rank.into(), 7]).unwrap();
        writer.finish().unwrap();
        scratch
    }

    fn wire(transport: LocalTransport) -> Wire<LocalTransport> {
        Wire { transport: Some(transport), broken: false, dies: false }
    }

    /// Rank 0 is at work on the others for as long as a message may not take.
    #[test]
    fn a_rank_waits_longer_for_its_turn_than_for_a_message() {
        let parts = place("turns");
        let mut ranks = local(2);
        let mut second = ranks.pop().unwrap();
        second.wait_at_most(Duration::ZERO);
        let mut first = wire(ranks.pop().unwrap());
        let gathered = thread::scope(|scope| {
            let waits =
                scope.spawn(|| gather(&mut wire(second), (1, 2), Some(own(&parts, 1)), &parts).is_ok());
            thread::sleep(Duration::from_millis(50));
            let gathered = gather(&mut first, (0, 2), Some(own(&parts, 0)), &parts);
            assert!(waits.join().unwrap(), "rank 1 did not wait for its turn");
            gathered
        });
        let mut all = gathered.unwrap().unwrap();
        all.rewind().unwrap();
        let section = Section::open(&mut all).unwrap();
        let members: Vec<u64> = section.streams().map(|stream| stream.key.member).collect();
        assert_eq!(members, [0, 1]);
        drop(all);
        std::fs::remove_dir_all(&parts).unwrap();
    }

    #[test]
    fn what_has_no_room_on_disk_is_in_memory() {
        let parts = place("memory");
        let mut whole = Scratch::new(&parts, "whole");
        let mut nowhere = Scratch::new(Path::new("/proc/no/such"), "nowhere");
        for scratch in [&mut whole, &mut nowhere] {
            scratch.write_all(b"abcdef").unwrap();
            scratch.seek(SeekFrom::Start(2)).unwrap();
            scratch.move_to_memory(4, io::ErrorKind::StorageFull.into()).unwrap();
            scratch.write_all(b"XY").unwrap();
            scratch.rewind().unwrap();
            let mut text = String::new();
            scratch.read_to_string(&mut text).unwrap();
            assert_eq!(text, "abXYef");
            scratch.empty().unwrap();
            assert_eq!(scratch.seek(SeekFrom::End(0)).unwrap(), 0);
        }
        // Nothing of it is left on disk.
        assert_eq!(std::fs::read_dir(&parts).unwrap().count(), 0);
        std::fs::remove_dir_all(&parts).unwrap();
    }

    #[test]
    fn a_rank_that_is_gone_breaks_the_link_and_no_more() {
        let parts = place("gone");
        let mut ranks = local(3);
        ranks.remove(1);
        let mut first = wire(ranks.remove(0));
        assert!(gather(&mut first, (0, 3), Some(own(&parts, 0)), &parts).is_err());
        assert!(first.broken);
        std::fs::remove_dir_all(&parts).unwrap();
    }
}
