//! One rank of a replay. `refrain replay` starts it under a launcher: `refrain-replay TRACE LIBRARY REPORTS [check]`.

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use refrain_model::Returns;
use refrain_replay::issue::{Report, instead, instead_of_clock};
use refrain_replay::{load, replay, told_by};

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
    let check = rest.iter().any(|word| word == "check");
    let rank = told_by(&RANKS).unwrap_or(0);
    let files = Path::new(reports).join("files");
    // Whichever rank comes first makes it.
    let _ = std::fs::create_dir(&files);
    match run(Path::new(trace), Path::new(library), rank, check, &files) {
        Ok(report) => {
            let told = report.first_different.iter().map(|line| format!("different {line}\n"));
            let text = format!(
                "made {}\npolls {}\nunmatched {}\ndifferences {}\n{}",
                report.made,
                report.failed_polls,
                report.unmatched,
                report.different,
                told.collect::<String>()
            );
            let file: PathBuf = Path::new(reports).join(format!("rank-{rank}"));
            if let Err(error) = std::fs::write(&file, text) {
                eprintln!("refrain-replay: {}: {error}", file.display());
            }
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("refrain: rank {rank}: {why}");
            // The others would wait for this one for ever: the launcher ends them.
            // SAFETY: ends the process at once; nothing of it is needed any more.
            unsafe { libc::_exit(2) }
        }
    }
}

fn run(path: &Path, library: &Path, rank: u32, check: bool, files: &Path) -> Result<Report, String> {
    let at = |why: String| format!("{}: {why}", path.display());
    let file = std::fs::File::open(path).map_err(|error| at(error.to_string()))?;
    let loaded = refrain_tracefile::load(file).map_err(|error| at(error.to_string()))?;
    let trace = refrain_tracefile::read(&loaded.bytes).map_err(|error| at(error.to_string()))?;
    let world = told_by(&SIZES).unwrap_or(1);
    if world != trace.meta.ranks {
        return Err(format!("the launcher started {world} ranks, the trace has {}", trace.meta.ranks));
    }
    let library = load(library).map_err(|why| format!("{}: {why}", library.display()))?;
    replay(&trace, library, (rank, world), check, files)
}
