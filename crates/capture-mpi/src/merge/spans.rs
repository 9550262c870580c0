//! The times of every call: packed by each rank, brought to rank 0 one rank after the other, and joined there.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use refrain_fold::bundle::{Link, member};
use refrain_guest::process::apart::apart;
use refrain_guest::process::clock::{Moment, Rate};
use refrain_times::Packer;
use refrain_tracefile::chunks::{Key, Merger, Section, Settings, Writer};
use refrain_tracefile::private::Private;
use refrain_tracefile::spans::pack;

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

/// The times of this rank, packed.
pub fn packed(
    config: &Config,
    (rank, size): (u32, u32),
    streams: &[(u32, &mut Own)],
    (start, rate): (Moment, Rate),
    parts: &Path,
) -> io::Result<Scratch> {
    let mut scratch = Scratch::new(parts, &format!("packed-{rank}"))?;
    let mut writer = Writer::new(BufWriter::new(&mut scratch.file), Settings::default());
    for (thread, own) in streams {
        let (Some(safe), Some(member)) = (&own.safe, member(size, rank, *thread)) else { continue };
        let Some(mut packer) = Packer::new(&config.time) else { continue };
        let about: Vec<_> = (0..own.tape.symbols()).map(|symbol| own.tape.about(symbol)).collect();
        let key = Key { member: member.into(), lane: 0 };
        let nanoseconds = |ticks| start.nanoseconds_of(ticks, rate);
        if let (Some(prefix), Some(given)) = (&config.test_spans, safe.given()) {
            let lines = given.iter().map(|t| format!("{} {}\n", nanoseconds(t.start), nanoseconds(t.end)));
            apart(|| std::fs::write(format!("{prefix}.{rank}.{thread}"), lines.collect::<String>()))?;
        }
        let entries = apart(|| safe.spans())?;
        let about = |symbol: u32| about.get(symbol as usize).copied().flatten();
        pack(&mut writer, key, &mut packer, entries, about, nanoseconds)?;
    }
    writer.finish()?.flush()?;
    Ok(scratch)
}

/// Brings them all to rank 0, where they are one section. Each rank waits for its turn, so that rank 0 holds one message at a
/// time, whatever the length of the run.
pub fn gather<L: Link>(
    link: &mut L,
    (rank, size): (u32, u32),
    own: Option<Scratch>,
    parts: &Path,
) -> Result<Option<Scratch>, L::Error> {
    if rank != 0 {
        link.recv(0)?;
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
    let mut all = Scratch::new(parts, "all").and_then(|mut all| {
        let file = all.file.try_clone()?;
        all.file.rewind()?;
        Ok((all, Merger::new(BufWriter::new(file))))
    });
    let mut add = |from: &mut File| {
        let Ok((_, merger)) = &mut all else { return };
        let section = from.rewind().map_err(Into::into).and_then(|()| Section::open(&mut *from));
        // Of a rank that fails here the times are missing; the reader says so.
        let _ = section.and_then(|mut section| merger.add(&mut section, Some));
    };
    if let Some(mut own) = own {
        add(&mut own.file);
    }
    for from in 1..size {
        let mut scratch = Scratch::new(parts, "arrived");
        link.send(from, b"go")?;
        loop {
            let piece = link.recv(from)?;
            if piece.is_empty() {
                break;
            }
            if let Ok(open) = &mut scratch
                && let Err(error) = open.file.write_all(&piece)
            {
                scratch = Err(error);
            }
        }
        if let Ok(mut scratch) = scratch {
            add(&mut scratch.file);
        }
    }
    let Ok((all, merger)) = all else { return Ok(None) };
    let finished = merger.finish().and_then(|mut sink| sink.flush());
    Ok(finished.is_ok().then_some(all))
}
