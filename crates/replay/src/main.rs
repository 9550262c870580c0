//! One rank of a replay. `refrain replay` starts it under a launcher: `refrain-replay TRACE LIBRARY REPORTS [OPTION...]`.

use std::ffi::{CStr, c_char};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use refrain_model::Returns;
use refrain_replay::issue::{Report, instead, instead_of_clock};
use refrain_replay::options::Options;
use refrain_replay::watch::{Doing, Watch};
use refrain_replay::{Done, Setting, load, replay, told_by};
use refrain_tracefile::Trace;
use refrain_views::timed::Times;
use refrain_views::waiting;

/// What launchers call a process's number, and how many there are.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
const SIZES: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_NTASKS"];

/// For a tracer that is preloaded: what to call in place of that function of MPI.
///
/// # Safety
/// The name is terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn refrain_instead(name: *const c_char) -> *const () {
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default();
    match refrain_model::function(name) {
        Some(function) if function.returns == Returns::Clock => instead_of_clock as *const (),
        Some(function) if !function.silent => instead as *const (),
        _ => std::ptr::null(),
    }
}

fn main() -> ExitCode {
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let [trace, library, reports, rest @ ..] = &words[..] else {
        eprintln!("refrain-replay: `refrain replay` starts this program");
        return ExitCode::from(2);
    };
    // A file that may grow no more is an error that MPI returns.
    // SAFETY: no function of ours is called.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let started = told_by(&RANKS).unwrap_or(0);
    let (trace, library, reports) = (Path::new(trace), Path::new(library), Path::new(reports));
    let rest: Vec<&str> = rest.iter().map(|word| word.to_str().unwrap_or("?")).collect();
    let mut rank = started;
    let done = Options::read(rest).and_then(|options| {
        if let Some(elements) = options.elements {
            refrain_encode::allow_elements(usize::try_from(elements).unwrap_or(usize::MAX));
        }
        run(trace, library, &mut rank, reports, &options)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => give_up(reports, rank, &why),
    }
}

/// Ends this rank. The others would wait for it for ever: the launcher ends them.
fn give_up(reports: &Path, rank: u32, why: &str) -> ! {
    // In one piece: other ranks speak at the same time.
    let _ = std::io::stderr().write_all(format!("refrain: rank {rank}: {why}\n").as_bytes());
    let _ = std::fs::write(reports.join(format!("failed-{rank}")), "");
    // SAFETY: ends the process at once; nothing of it is needed any more.
    unsafe { libc::_exit(2) }
}

/// For `refrain replay`, which adds up what all ranks say.
fn summary(done: &Done) -> String {
    let Report { made, failed_polls, unmatched, different, first_different } = &done.report;
    let mut text =
        format!("made {made}\npolls {failed_polls}\nunmatched {unmatched}\ndifferences {different}\n");
    text += &format!("left-out {}\ngaps {}\nmemory {}\n", done.left_out, done.gaps, peak_memory());
    text.extend(done.wall.map(|wall| format!("wall {}\n", wall.as_nanos())));
    text.extend(first_different.iter().map(|line| format!("different {line}\n")));
    text
}

/// The most memory that this process ever had, in bytes.
fn peak_memory() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: it is filled in.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: zeros are a value of it too.
    let usage = unsafe { usage.assume_init() };
    u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024)
}

/// `rank` is the number that the launcher gave, and becomes that of the recorded run.
fn run(path: &Path, library: &Path, rank: &mut u32, reports: &Path, options: &Options) -> Result<(), String> {
    let at = |why: String| format!("{}: {why}", path.display());
    let open = || std::fs::File::open(path).map_err(|error| at(error.to_string()));
    let loaded = refrain_tracefile::load(open()?).map_err(|error| at(error.to_string()))?;
    let trace = refrain_tracefile::read(&loaded.bytes).map_err(|error| at(error.to_string()))?;
    let chosen = |rank: &u32| options.ranks.as_ref().is_none_or(|ranks| ranks.contains(*rank));
    let ranks: Vec<u32> = (0..trace.meta.ranks).filter(chosen).collect();
    let world = told_by(&SIZES).unwrap_or(1);
    if world as usize != ranks.len() {
        let whose = if options.ranks.is_some() { "--ranks names" } else { "the trace has" };
        return Err(format!("the launcher started {world} ranks, {whose} {}", ranks.len()));
    }
    *rank = *ranks.get(*rank as usize).ok_or("the launcher gives ranks numbers that are too high")?;
    let rank = *rank;
    let refrain_tracefile::Loaded { bytes, chunks, .. } = loaded;
    drop(bytes);
    let times = || {
        let opened = Times::open(&trace, std::io::BufReader::new(open()?), chunks.clone());
        opened.map_err(|error| at(error.to_string()))
    };
    let library = load(library).map_err(|why| format!("{}: {why}", library.display()))?;
    let files = reports.join("files");
    // Whichever rank comes first makes it.
    let _ = std::fs::create_dir_all(&files);
    // Who is started on another machine has no such directory there, and nobody else to watch over it.
    let here = reports.is_dir();
    let watch = here.then(|| Watch::in_file(&reports.join(format!("state-{rank}")))).transpose();
    let room = here.then(|| Room::new(reports, rank)).transpose();
    let no_room =
        |error: std::io::Error| format!("{}: {error} (--scratch names another place)", reports.display());
    let (watch, room) = (watch.map_err(no_room)?, room.map_err(no_room)?);
    let watched = watch.unwrap_or_else(Watch::nobody);
    let give_up = |why: &str| -> () { give_up(reports, rank, why) };
    let setting = Setting {
        rank,
        ranks: &ranks,
        options,
        files: &files,
        watch: watched,
        times: &times,
        give_up: &give_up,
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if watch.is_none() && options.patience > 0 {
            let (trace, watch, over) = (&trace, setting.watch, &over);
            scope.spawn(move || alone(trace, rank, watch, options.patience, over));
        }
        let done = replay(&trace, library, &setting);
        over.store(true, Relaxed);
        room.zip(done.as_ref().ok())
            .map_or(Ok(()), |(room, done)| room.say(&summary(done)))
            .map_err(no_room)?;
        done.map(|_| ())
    })
}

/// A file for what a rank says in the end. It has its room before there is anything to say.
struct Room {
    file: std::fs::File,
    now: PathBuf,
    then: PathBuf,
}

impl Room {
    const BYTES: usize = 4096;

    fn new(reports: &Path, rank: u32) -> std::io::Result<Room> {
        let (now, then) = (reports.join(format!("room-{rank}")), reports.join(format!("rank-{rank}")));
        let mut file = std::fs::File::create(&now)?;
        file.write_all(&[b'\n'; Room::BYTES])?;
        Ok(Room { file, now, then })
    }

    fn say(mut self, text: &str) -> std::io::Result<()> {
        // Only differences may be more, and the first ones do.
        let bytes = &text.as_bytes()[..text.len().min(Room::BYTES)];
        let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        self.file.rewind()?;
        self.file.write_all(&bytes[..end])?;
        std::fs::rename(self.now, self.then)
    }
}

/// Ends this rank, and so the others, when it has been in one call for too long.
fn alone(trace: &Trace, rank: u32, watch: Watch, seconds: u64, over: &AtomicBool) {
    let (mut seen, mut since) = (watch.doing(), Instant::now());
    while !over.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        let now = watch.doing();
        if now != seen || now == Doing::Computes {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() >= Duration::from_secs(seconds) {
            let what = match now {
                Doing::Inside(number, _) => waiting::for_what(trace, rank, number),
                _ => "its first thread waits for others".to_owned(),
            };
            eprintln!("refrain: rank {rank} has made no call for {seconds} s (--patience): {what}");
            // SAFETY: ends the process at once; nothing of it is needed any more.
            unsafe { libc::_exit(2) };
        }
    }
}
