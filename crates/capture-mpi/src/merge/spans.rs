//! The times of every call: packed by each rank, brought to rank 0 one rank after the other, and joined there.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
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

/// A file in the directory of the parts, which goes when it is dropped.
pub struct Scratch {
    directory: PathBuf,
    name: OsString,
    pub file: File,
}

impl Scratch {
    fn new(parts: &Path, name: &str) -> io::Result<Scratch> {
        apart(|| {
            let directory = Private::make(parts)?;
            let name = OsString::from(format!("{name}-{}.part.spans", std::process::id()));
            // Of an earlier process with the same number.
            let _ = directory.remove(&name);
            let file = directory.create(&name)?;
            Ok(Scratch { directory: parts.to_owned(), name, file })
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is only in the way.
        let _ = Private::open(&self.directory).and_then(|directory| directory.remove(&self.name));
    }
}

/// The times of this rank, packed, and how many of its calls have none.
pub fn packed(
    config: &Config,
    rank: u32,
    (streams, bundle): (&[(u32, &mut Own)], &Bundle),
    clock: Converter,
    parts: &Path,
) -> io::Result<(Scratch, u64)> {
    let index = Index::new(bundle);
    let mut without = 0;
    let mut scratch = Scratch::new(parts, &format!("packed-{rank}"))?;
    let mut writer = Writer::new(BufWriter::new(&mut scratch.file), Settings::default());
    for (thread, own) in streams {
        let Some((cohort, member)) = index.cohort_of(rank, *thread) else { continue };
        let calls = calls_of(bundle, &bundle.cohorts[cohort], member);
        let Some(safe) = &own.safe else {
            without += calls;
            continue;
        };
        let Some(mut packer) = Packer::new(&config.time) else { continue };
        let key = Key { member: member.into(), lane: 0 };
        let nanoseconds = |ticks| clock.nanoseconds(ticks) as i64;
        if let (Some(prefix), Some(given)) = (&config.test_spans, safe.given()) {
            let lines = given.iter().map(|t| format!("{} {}\n", nanoseconds(t.start), nanoseconds(t.end)));
            std::fs::write(format!("{prefix}.{rank}.{thread}"), lines.collect::<String>())?;
        }
        let about = own.tape.about();
        let timed = pack(&mut writer, key, &mut packer, safe.spans()?, &about, nanoseconds)?;
        // Times that belong to other calls are worse than none.
        if timed > calls || timed < calls && safe.spans_are_whole() {
            return Err(io::Error::other(format!("there are {timed} for {calls} calls of thread {thread}")));
        }
        without += calls - timed;
    }
    writer.finish()?.flush()?;
    Ok((scratch, without))
}

/// Puts the times of a rank to the others.
fn add(all: &mut io::Result<(Scratch, Merger<BufWriter<File>>)>, from: io::Result<&mut File>) {
    let Ok((_, merger)) = all else { return };
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

fn empty(file: &mut File) -> io::Result<&mut File> {
    file.set_len(0)?;
    file.rewind()?;
    Ok(file)
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
            let _ = own.file.rewind();
            let mut piece = Vec::with_capacity(MESSAGE);
            loop {
                piece.clear();
                // What cannot be read is not there.
                let read = Read::by_ref(&mut own.file).take(MESSAGE as u64).read_to_end(&mut piece);
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
    let mut all = Scratch::new(parts, "all").and_then(|mut all| {
        let file = all.file.try_clone()?;
        all.file.rewind()?;
        Ok((all, Merger::new(BufWriter::new(file))))
    });
    if let Some(mut own) = own {
        apart(|| add(&mut all, Ok(&mut own.file)));
    }
    let mut arrived = (size > 1).then(|| Scratch::new(parts, "arrived"));
    for from in 1..size {
        let mut file = match &mut arrived {
            Some(Ok(scratch)) => apart(|| empty(&mut scratch.file)),
            _ => Err(io::Error::other("there is no room for what arrives")),
        };
        link.send(from, b"go")?;
        loop {
            let piece = link.recv(from)?;
            if piece.is_empty() {
                break;
            }
            if let Ok(open) = &mut file
                && let Err(error) = apart(|| open.write_all(&piece))
            {
                file = Err(error);
            }
        }
        apart(|| add(&mut all, file));
    }
    let Ok((all, merger)) = all else { return Ok(None) };
    let finished = apart(|| merger.finish().and_then(|mut sink| sink.flush()));
    Ok(finished.is_ok().then_some(all))
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
        let mut scratch = Scratch::new(parts, &format!("packed-{rank}")).unwrap();
        let mut writer = Writer::new(&mut scratch.file, Settings::default());
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
        all.file.rewind().unwrap();
        let section = Section::open(&mut all.file).unwrap();
        let members: Vec<u64> = section.streams().map(|stream| stream.key.member).collect();
        assert_eq!(members, [0, 1]);
        drop(all);
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
