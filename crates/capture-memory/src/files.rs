//! Files among the parts, whichever engine records.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use refrain_fold::bundle::Bundle;
use refrain_process::apart::apart;
use refrain_tracefile::{Meta, Trace};

/// How long after a thread began what it recorded is first written; then after twice as long each time, up to the longest
/// pause. Writing may take one part of `SHARE` of the time.
const FIRST: Duration = Duration::from_millis(30);
const LONGEST: Duration = Duration::from_secs(1);
const SHARE: u32 = 20;

/// One line on stderr; a closed one is no reason to fail.
pub fn say(line: &str) {
    let _ = apart(|| writeln!(std::io::stderr(), "refrain: {line}"));
}

/// When to write next, and how long after the last time that is.
#[derive(Debug)]
pub struct Pace {
    next: Instant,
    pause: Duration,
}

impl Pace {
    pub fn new() -> Pace {
        Pace { next: Instant::now() + FIRST, pause: FIRST }
    }

    pub fn is_time(&self) -> bool {
        Instant::now() >= self.next
    }

    /// It was written, from then until now.
    pub fn written(&mut self, began: Instant) {
        self.pause = (self.pause * 2).min(LONGEST);
        self.next = Instant::now() + self.pause.max(began.elapsed() * SHARE);
    }
}

/// The part of a thread: what it recorded so far, so many references, and why recording stopped if it did.
pub fn part(bundle: Bundle, world: u32, references: u64, complete: bool, stopped: Option<String>) -> Vec<u8> {
    let options = vec![("references".into(), references.to_string())];
    let notes = stopped.into_iter().collect();
    let meta = Meta { ranks: world, complete, options, notes, ..Meta::default() };
    refrain_tracefile::write_plain(&Trace { meta, bundle })
}

/// Writes a file, all or nothing. An error says which and why.
pub fn leave(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    let (path, new) = (folder.join(name), folder.join(format!("{name}.new")));
    apart(|| fs::write(&new, bytes)).and_then(|()| fs::rename(&new, &path)).map_err(|error| {
        let _ = fs::remove_file(&new);
        format!("{} cannot be written: {error}", path.display())
    })
}

/// A file that is open only while it is written to: descriptors are the program's.
pub struct Chunks(pub PathBuf);

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.0)?;
        let before = file.metadata()?.len();
        // All or nothing: what is tried again must not follow a piece of itself.
        match apart(|| file.write_all(bytes)) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                let _ = file.set_len(before);
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
