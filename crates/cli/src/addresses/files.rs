//! Where traces come from and go to: files, pipes, `-`.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use refrain_addresses::{Batch, Error, Format, Reader, open, open_after};
use refrain_tracefile::{End, FileType};

use crate::ahead::{self, Work};
use crate::failure::{Failure, not_read, not_saved};
use crate::{references, say};

/// Whether it is a trace of memory references.
pub fn is_recorded(path: &Path, format: Option<Format>) -> bool {
    format.is_none() && !is_dash(path) && references::are_in(path)
}

pub fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A trace to read.
pub struct Source {
    pub reader: Reader,
    read: Arc<AtomicU64>,
    /// Of the file, if it is one.
    size: Option<u64>,
    path: PathBuf,
    /// It was said that there are many references.
    told: bool,
    /// What the reader has to say is another's to tell.
    quiet: bool,
}

/// At its end, however that comes: labels with two meanings and text that was left out are worth a word.
impl Drop for Source {
    fn drop(&mut self) {
        let notes = if self.quiet { Vec::new() } else { self.reader.notes() };
        for note in notes {
            let name =
                if is_dash(&self.path) { "standard input".into() } else { self.path.display().to_string() };
            say(&format!("{name}: {note}"));
        }
    }
}

/// A byte that stands for more references than this is worth a word.
const MANY_A_BYTE: u64 = 100;

impl Source {
    /// Of a trace of memory references, those of one thread of one rank.
    pub fn of_thread(
        path: &Path,
        format: Option<Format>,
        rank: Option<u32>,
        thread: Option<u32>,
    ) -> Result<Source, Failure> {
        if is_recorded(path, format) {
            return Ok(Source {
                reader: references::reader(path, rank, thread)?,
                read: Arc::default(),
                size: None,
                path: path.to_owned(),
                told: false,
                quiet: false,
            });
        }
        if rank.or(thread).is_some() {
            let failure = Failure::new(format!("{} is not a trace of memory references", path.display()));
            return Err(failure.help("`--rank` and `--thread` choose among the threads of such a trace"));
        }
        Source::open(path, format)
    }

    pub fn open(path: &Path, format: Option<Format>) -> Result<Source, Failure> {
        let cannot = |error: io::Error| not_read(path, &error);
        let read = Arc::new(AtomicU64::new(0));
        let (from, size): (Box<dyn Read + Send>, _) = if is_dash(path) {
            (Box::new(io::stdin()), None)
        } else {
            let mut file = File::open(path).map_err(cannot)?;
            let about = file.metadata().map_err(cannot)?;
            if about.is_dir() {
                return Err(Failure::new(format!("{} is a directory", path.display())));
            }
            if format.is_none() && about.is_file() {
                let mut mark = [0; 4];
                let of_calls = file.read_exact(&mut mark).is_ok() && mark == refrain_tracefile::MAGIC;
                if of_calls {
                    let failure = Failure::new(format!("{} is a trace of MPI calls", path.display()));
                    return Err(failure.help("`refrain info`, `dump`, `stats` and `loops` read it"));
                }
                file.rewind().map_err(cannot)?;
            }
            (Box::new(file), about.is_file().then_some(about.len()))
        };
        let counted = Counted { from, read: read.clone() };
        let reader =
            open(Box::new(counted), &path.to_string_lossy(), format).map_err(|error| said(path, &error))?;
        Ok(Source { reader, read, size, path: path.to_owned(), told: false, quiet: false })
    }

    /// One that is read a second time, which tells what there is to tell.
    pub fn quiet(mut self) -> Source {
        self.quiet = true;
        self
    }

    /// The next references, as [`Reader::read`]. Where a few bytes stand for many, that is said before they come.
    pub fn next(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        let more = self.reader.read(batch)?;
        let references = self.known();
        if !self.told && self.reader.ahead() > 0 && references / MANY_A_BYTE > self.reader.offset() {
            let work = Work { items: references, elements: 0 };
            self.told = ahead::tell(&self.path, work, "reference", 0, "--limit N stops after N of them");
        }
        Ok(more)
    }

    /// References that were read, or are known to come.
    pub fn known(&self) -> u64 {
        self.reader.records().saturating_add(self.reader.ahead())
    }

    /// Passes over so many references, without reading them where the format has an index.
    pub fn skip(&mut self, path: &Path, references: u64) -> Result<(), Failure> {
        if self.reader.format() == Format::Rfa && self.is_file() {
            let file = File::open(path);
            let file = file.map_err(|error| not_read(path, &error))?;
            // Compressed it has no index, damaged perhaps none: then there is the long way.
            if let Ok(reader) = open_after(Counted { from: file, read: self.read.clone() }, references) {
                self.reader = reader;
                return Ok(());
            }
        }
        self.reader.skip(references);
        Ok(())
    }

    /// Bytes of the file read so far, and all of them; nothing for what is no file.
    pub fn progress(&self) -> Option<(u64, u64)> {
        Some((self.read.load(Ordering::Relaxed), self.size?))
    }

    /// Whether it can be read a second time.
    pub fn is_file(&self) -> bool {
        self.size.is_some()
    }
}

struct Counted<R> {
    from: R,
    read: Arc<AtomicU64>,
}

impl<R: Seek> Seek for Counted<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = self.from.seek(to)?;
        self.read.store(at, Ordering::Relaxed);
        Ok(at)
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.from.read(into)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// What went wrong with a trace that is read, in words.
pub fn said(path: &Path, error: &Error) -> Failure {
    of(path, "standard input", error)
}

/// What went wrong with one that is written.
pub fn said_of_output(path: &Path, error: &Error) -> Failure {
    of(path, "standard output", error)
}

fn of(path: &Path, dash: &str, error: &Error) -> Failure {
    let name = if is_dash(path) { dash.to_owned() } else { path.display().to_string() };
    Failure::new(format!("{name}: {error}"))
}

/// Prints what was found out about a trace. Damage is an error, though what stands before it counts; a reader that has
/// seen enough is none.
pub fn print(path: &Path, text: &str, damage: Option<Error>) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        return Err(Failure::new(format!("the output could not be written: {error}")));
    }
    match damage {
        Some(error) => Err(said(path, &error).help("the numbers are of what stands before it")),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Where a trace is written. A file gets its name when it is finished; what was there before stays until then.
pub enum Target {
    Stdout(io::StdoutLock<'static>),
    /// A pipe or a device, which has its name already.
    Special(File),
    File {
        file: File,
        part: PathBuf,
        /// Where links lead.
        path: PathBuf,
        /// As the user calls it.
        shown: PathBuf,
        /// What was there may be replaced.
        force: bool,
    },
}

impl Target {
    /// Free bytes where it is written, if it is a file.
    pub fn free(&self) -> Option<u64> {
        let Target::File { file, .. } = self else { return None };
        let mut about = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: the descriptor is open, and there is room for the answer.
        if unsafe { libc::fstatvfs(file.as_raw_fd(), about.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: the call has filled it.
        let about = unsafe { about.assume_init() };
        Some(about.f_bavail.saturating_mul(about.f_frsize))
    }

    pub fn create(path: &Path, force: bool, text: bool) -> Result<Target, Failure> {
        if is_dash(path) {
            let out = io::stdout();
            if !text && out.is_terminal() {
                let failure = Failure::new("packed bytes are nothing for a terminal");
                return Err(failure.help("send them to a file or a program, or write text: `--to din`"));
            }
            return Ok(Target::Stdout(out.lock()));
        }
        let cannot =
            |error: io::Error| Failure::new(format!("{} cannot be written: {error}", path.display()));
        // Looked at once: others may change what the name means.
        let end = End::of(path).map_err(|error| not_saved(&error))?;
        match end.kind() {
            Some(FileType::Directory) => {
                return Err(Failure::new(format!("{} is a directory", path.display())));
            }
            Some(FileType::RegularFile) | None => {}
            Some(_) => return end.open().map(Target::Special).map_err(cannot),
        }
        if end.unless_taken(path, force).is_err() {
            let failure = Failure::new(format!("{} exists already", path.display()));
            return Err(failure.help("`--force` replaces it"));
        }
        let (path, shown) = (end.path().to_owned(), path.to_owned());
        let (file, part) = beside(&path, &format!(".{}", std::process::id())).map_err(cannot)?;
        Ok(Target::File { file, part, path, shown, force })
    }

    /// Gives the file its name. A fragment takes the place of no file: it is then beside it, under the name that is
    /// returned.
    pub fn finish(mut self, whole: bool) -> io::Result<Option<PathBuf>> {
        match &mut self {
            Target::Stdout(out) => out.flush().map(|()| None),
            Target::Special(_) => Ok(None),
            Target::File { part, path, force, .. } if whole || !path.exists() => {
                refrain_tracefile::put_in_place(part, path, *force).map(|()| None).map_err(io::Error::other)
            }
            Target::File { part, path, shown, .. } => match put_beside(part, shown) {
                // A link that leads to another disk: then beside what it leads to.
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => put_beside(part, path),
                done => done,
            }
            .map(Some),
        }
    }
}

/// A new file, `OUT.part` or the first of `OUT.1.part`, `OUT.2.part` and so on that is not there: what others left is theirs.
fn beside(path: &Path, mark: &str) -> io::Result<(File, PathBuf)> {
    let mut number = 0u32;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(mark);
        if number > 0 {
            name.push(format!(".{number}"));
        }
        name.push(".part");
        match File::options().write(true).create_new(true).open(&name) {
            Ok(file) => return Ok((file, name.into())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn put_beside(part: &Path, path: &Path) -> io::Result<PathBuf> {
    // The name is ours once there is a file of it.
    let (_, name) = beside(path, "")?;
    std::fs::rename(part, &name).inspect_err(|_| drop(std::fs::remove_file(&name)))?;
    Ok(name)
}

impl Drop for Target {
    /// A file that was not finished is of no use; one that was has another name.
    fn drop(&mut self) {
        if let Target::File { part, .. } = self {
            let _ = std::fs::remove_file(part);
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Stdout(out) => out.write(bytes),
            Target::Special(file) | Target::File { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Stdout(out) => out.flush(),
            Target::Special(file) | Target::File { file, .. } => file.flush(),
        }
    }
}
