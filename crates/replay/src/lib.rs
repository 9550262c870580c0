//! A recorded run, made again: each rank walks its own calls straight from the folded form and makes them on whatever MPI
//! library it is started under.
//!
//! Owns: arguments as C has them, live objects, memory, who matches whom. Does not own: what a trace is, starting ranks.
//!
//! Of each call the arguments are those of the trace, with the live objects in place of the recorded ones. Buffers are
//! where the trace says, in segments of this process. What the library decided then is decided again: a receive from any
//! source gets the message of the recorded sender, and calls that complete some of several requests complete those that
//! were complete then. Polls that found nothing are left out. Between calls the rank computes for as long as the program did
//! (`gaps`: how long that was, `pace`: waiting until it is over).
//!
//! The replay can be traced. A preloaded tracer then sees the calls of the trace, also where another one is made for it:
//! it finds `refrain_instead` in this program and calls that in place of MPI.

pub mod ahead;
mod errors;
pub mod gaps;
pub mod issue;
mod memory;
mod objects;
pub mod options;
pub mod pace;
mod payload;
mod polls;
mod stand_ins;
pub mod watch;
pub mod what_if;
pub mod words;

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use refrain_encode::Reader;
use refrain_mpi::{Dlsym, Library};
use refrain_tracefile::Trace;
use refrain_views::timed::{Timed, Times};

use ahead::Ahead;
use gaps::Gaps;
use issue::{Process, Report, Thread, Traced};
use options::Options;
use pace::Pace;
use watch::Watch;
use what_if::{NoFiles, Without};

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
#[derive(Debug)]
pub struct Setting<'a> {
    pub rank: u32,
    /// So many were started.
    pub world: u32,
    pub options: &'a Options,
    /// Where the program's files are put.
    pub files: &'a Path,
    pub watch: Watch,
}

/// What a rank has done.
#[derive(Debug)]
pub struct Done {
    pub report: Report,
    /// Where the computation between calls was taken from, if any was done.
    pub gaps: &'static str,
    /// From the end of `MPI_Init` to the beginning of `MPI_Finalize`.
    pub wall: Option<Duration>,
    /// Calls that were left out with the files.
    pub left_out: u64,
}

/// Makes the calls of a rank. `times` are those of single calls, where the trace has them.
pub fn replay(
    trace: &Trace,
    times: Option<&Times>,
    library: Library,
    setting: &Setting<'_>,
) -> Result<Done, String> {
    let Setting { rank, world, options, files, watch } = *setting;
    let abi = library.abi().map_err(|missing| missing.to_string())?;
    let is_traced = traced("refrain_traces_replays").is_some();
    let mut process = Process::new(library, abi, world);
    process.check = options.check;
    process.polls = options.polls;
    process.files = files.to_owned();
    process.traced = is_traced.then_some(Traced { function: traced });
    process.set_seed(options.seed);
    let reader = Reader::new(&trace.bundle);
    // Which thread called first is not in a trace.
    let [0] = reader.threads(rank)[..] else {
        return Err(format!("rank {rank} has not just one thread in the trace"));
    };
    let factor = options.factor();
    let mut gaps = if factor > 0.0 { Gaps::of(trace, rank, times.is_some()) } else { Gaps::Unknown };
    let factor = if matches!(gaps, Gaps::Unknown) { 0.0 } else { factor };
    let times = times.filter(|_| factor > 0.0);
    let ahead = Ahead::new(reader.calls(rank, 0).map_err(|error| error.to_string())?);
    let mut calls =
        Timed::new(&trace.bundle, &reader, times, (rank, 0), 0).map_err(|error| error.to_string())?;
    let mut issuing = Thread::new(&process, ahead);
    issuing.pace = Pace::new(factor, options.sleep, watch);
    let mut no_files = options.no_io.then(NoFiles::default);
    let (mut began, mut wall, mut left_out) = (None, None, 0);
    loop {
        let number = calls.number();
        let Some((mut call, told)) = calls.next_call().map_err(|error| error.to_string())? else { break };
        // Polls that failed are part of the call that found something at last.
        let symbol = calls.symbol().filter(|_| !issue::is_failed_poll(&call));
        issuing.pace.owe(number, gaps.next(symbol, told.as_ref()));
        let name = call.function.name;
        let without = no_files.as_mut().map_or(Without::Nothing, |files| files.of(&call));
        if without == Without::All {
            NoFiles::requests(&call).into_iter().for_each(|request| process.never_made(request));
            left_out += 1;
            continue;
        }
        if options.message_size != 1.0 {
            what_if::sized(&mut call, options.message_size);
        }
        let now = Instant::now;
        let ends = matches!(name, "MPI_Finalize").then(now);
        let before = (without == Without::Outcome).then(|| issuing.report.clone());
        issuing.issue(&call).map_err(|why| format!("call {number}, {name}: {why}"))?;
        if let Some(Report { different, first_different, .. }) = before {
            (issuing.report.different, issuing.report.first_different) = (different, first_different);
        }
        match name {
            "MPI_Init" | "MPI_Init_thread" => {
                has_that_many_ranks(&process, world)?;
                began = Some(now());
            }
            "MPI_Finalize" => {
                let ended = issuing.pace.began().or(ends);
                wall = began.zip(ended).map(|(began, ended)| ended.saturating_duration_since(began));
            }
            _ => {}
        }
    }
    Ok(Done { report: issuing.report, gaps: gaps.word(), wall, left_out })
}

/// A library that belongs to another launcher makes a world of one rank of each process.
fn has_that_many_ranks(process: &Process, world: u32) -> Result<(), String> {
    let mut size = 0i32;
    let words = [process.abi.comm_world as usize, std::ptr::from_mut(&mut size) as usize];
    if process.real_call("MPI_Comm_size", &words) == 0 && u32::try_from(size) != Ok(world) {
        return Err(format!(
            "the launcher started {world} ranks, but this MPI library has a world of {size}: it belongs to another \
             launcher (--library names one)"
        ));
    }
    Ok(())
}

/// The value of the first of these environment variables that is a number.
pub fn told_by(variables: &[&str]) -> Option<u32> {
    variables.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}
