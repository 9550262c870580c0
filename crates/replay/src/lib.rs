//! A recorded run, made again: each rank walks its own calls straight from the folded form and makes them on whatever MPI
//! library it is started under.
//!
//! Owns: arguments as C has them, live objects, memory, who matches whom. Does not own: what a trace is, starting ranks.
//!
//! Of each call the arguments are those of the trace, with the live objects in place of the recorded ones. Buffers are
//! where the trace says, in segments of this process. What the library decided then is decided again: a receive from any
//! source gets the message of the recorded sender, and calls that complete some of several requests complete those that
//! were complete then. Polls that found nothing are left out. Between calls the rank computes for as long as the program did
//! (`refrain_views::gaps`: how long that was, `pace`: waiting until it is over).
//!
//! The replay can be traced. A preloaded tracer then sees the calls of the trace, also where another one is made for it:
//! it finds `refrain_instead` in this program and calls that in place of MPI.

mod able;
pub mod ahead;
mod check;
mod drawn;
mod dynamic;
mod errors;
mod inputs;
pub mod issue;
mod memory;
mod objects;
pub mod options;
pub mod pace;
mod payload;
pub mod perform;
mod polls;
mod reach;
mod recorded;
mod several;
mod sound;
mod stand_ins;
pub mod subset;
mod walk;
pub mod watch;
pub mod what_if;
mod wild;
mod windows;
pub mod words;

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use refrain_encode::Reader;
use refrain_mpi::{Dlsym, Library};
use refrain_tracefile::Trace;
use refrain_views::replayable::draws;
use refrain_views::timed::Times;

use issue::{Process, Report, Traced};
use options::Options;
use watch::Watch;

/// `dlsym` of the C library itself, whatever comes before it.
fn plain_dlsym() -> Option<Dlsym> {
    for (library, version) in
        [(c"libc.so.6", c"GLIBC_2.34"), (c"libc.so.6", c"GLIBC_2.2.5"), (c"libdl.so.2", c"GLIBC_2.2.5")]
    {
        // SAFETY: only looks among what is loaded.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if handle.is_null() {
            continue;
        }
        // SAFETY: an open handle and two terminated names.
        let found = unsafe { dlvsym(handle, c"dlsym".as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            // SAFETY: that is its type.
            return Some(unsafe { std::mem::transmute::<*mut c_void, Dlsym>(found) });
        }
    }
    None
}

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// Loads an MPI library, so that all of the process sees it.
pub fn load(path: &Path) -> Result<Library, String> {
    let name =
        CString::new(path.as_os_str().as_bytes()).map_err(|_| "a name with a zero in it".to_owned())?;
    // SAFETY: loading an MPI library runs nothing but its constructors.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        // SAFETY: what `dlerror` gives is terminated, and ours until the next call.
        let why = unsafe { libc::dlerror() };
        if why.is_null() {
            return Err("it cannot be loaded".into());
        }
        // SAFETY: as above.
        let why = unsafe { CStr::from_ptr(why) };
        return Err(why.to_string_lossy().into_owned());
    }
    let found = match plain_dlsym() {
        // SAFETY: it is the C library's.
        Some(dlsym) => unsafe { Library::find_with(dlsym) },
        None => Library::find(),
    };
    found.ok_or_else(|| "it is no MPI library".to_owned())
}

/// The function as the rest of the process sees it, where a tracer stands before the library.
fn traced(name: &str) -> Option<*const ()> {
    let name = CString::new(name).ok()?;
    // SAFETY: a terminated name.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found.cast_const().cast())
}

/// Where a rank is, and what it is asked for.
pub struct Setting<'a> {
    /// In the recorded run.
    pub rank: u32,
    /// Those of the recorded run that were started.
    pub ranks: &'a [u32],
    pub options: &'a Options,
    /// Where the program's files are put.
    pub files: &'a Path,
    pub watch: Watch,
    /// The times of single calls, where the trace has them: for each thread anew.
    pub times: &'a (dyn Fn() -> Result<Option<Times>, String> + Sync),
    /// Ends the process, and says why: one of its threads cannot go on, and others are in calls that never end.
    pub give_up: &'a (dyn Fn(&str) + Sync),
}

/// What a rank has done.
#[derive(Debug, Default)]
pub struct Done {
    pub report: Report,
    /// Where the computation between calls was taken from, if any was done.
    pub gaps: &'static str,
    /// From the end of `MPI_Init` to the beginning of `MPI_Finalize`.
    pub wall: Option<Duration>,
    /// Calls that were left out with the files.
    pub left_out: u64,
}

impl Done {
    /// What another thread of the rank has done.
    fn add(&mut self, other: Done) {
        self.report.add(other.report);
        self.wall = self.wall.or(other.wall);
        self.left_out += other.left_out;
    }
}

/// Makes the calls of a rank.
pub fn replay(trace: &Trace, library: Library, setting: &Setting<'_>) -> Result<Done, String> {
    let Setting { rank, options, files, .. } = *setting;
    let abi = library.abi().map_err(|missing| missing.to_string())?;
    if let Some(why) = able::lacks(trace, &library, &abi) {
        return Err(why);
    }
    if let Some(mib) = options.memory {
        sound::allow_memory(mib);
    }
    let foreign = able::is_foreign(trace, &abi);
    let is_traced = traced("refrain_traces_replays").is_some();
    let mut process = Process::new(library, abi, trace.meta.ranks);
    process.check = options.check;
    process.polls = options.polls;
    process.foreign = foreign;
    process.cancels = ahead::has_cancels(trace);
    if let Some(folder) = files.parent() {
        process.places = dynamic::Places::new(trace, folder, rank)?;
    }
    process.files = files.to_owned();
    process.traced = is_traced.then_some(Traced { function: traced });
    process.set_seed(options.seed);
    process.drawn = draws(trace, options.seed).is_some().then(Default::default);
    let threads = Reader::new(&trace.bundle).threads(rank).len();
    if threads > several::MOST {
        return Err(format!("it has {threads} threads: a replay makes at most {}", several::MOST));
    }
    if threads > 1 {
        let join = traced("refrain_joins");
        // SAFETY: only a tracer of ours has this name, with this type.
        let join = join.map(|join| unsafe { std::mem::transmute::<*const (), extern "C" fn()>(join) });
        return several::replay(&mut process, trace, setting, join);
    }
    walk::calls(&process, trace, setting, 0)
}

/// The value of the first of these environment variables that is a number.
pub fn told_by(variables: &[&str]) -> Option<u32> {
    variables.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}
