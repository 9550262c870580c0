//! Where the files of a run are, and what they are called.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use refrain_fold::xxh64;
use refrain_guest::process::host;
use refrain_tracefile::claim::Job;
use refrain_tracefile::is_device;
use refrain_tracefile::part::{KEPT, MEETING, directory, local_directory};
use refrain_tracefile::private::Private;

use crate::config::Config;

/// A program that another one started has a world of its own, and so a trace of its own beside the other's.
pub fn path(config: &Config, spawned: bool, alone: Option<u32>, job: Option<&Job>) -> PathBuf {
    match alone {
        Some(rank) => path_alone(config, rank),
        None if spawned => path_beside(config, &format!("spawned-{}", std::process::id())),
        None => job.map_or_else(|| config.out.clone(), |job| job.trace.clone()),
    }
}

pub fn path_alone(config: &Config, rank: u32) -> PathBuf {
    path_beside(config, &format!("process-{rank}"))
}

fn path_beside(config: &Config, mark: &str) -> PathBuf {
    // Devices have no neighbours of ours.
    if is_device(&config.out) {
        return config.out.clone();
    }
    let name = config.out.file_stem().unwrap_or_default().to_string_lossy();
    config.out.with_file_name(format!("{name}.{mark}.rfn"))
}

/// Where parts are kept until that file is written. A program that another one started ends on its own, and so does
/// each of several.
pub fn parts(config: &Config, spawned: bool, alone: Option<u32>, job: Option<&Job>) -> PathBuf {
    match alone {
        Some(rank) => directory(&path_alone(config, rank)),
        None if spawned => {
            let parent = || std::os::unix::process::parent_id().to_string();
            let launchers = Some(config.job.clone()).filter(|job| !job.is_empty()).unwrap_or_else(parent);
            let job = std::env::var("PMIX_NAMESPACE").unwrap_or(launchers);
            directory(&config.out).with_extension(format!("{}.parts", job.replace(['/', '.'], "_")))
        }
        None => job.map_or_else(|| directory(&config.out), Job::parts),
    }
}

/// Where this process keeps its own parts, if the ranks meet there.
pub fn own_parts(config: &Config, place: &Path) -> PathBuf {
    config.parts.as_ref().map_or_else(|| place.to_owned(), |storage| local_directory(storage, place))
}

/// Left in a directory of parts by the one process of a host that complains of it.
pub fn said_name(config: &Config) -> OsString {
    format!("{}said.{}", meeting_prefix(config), word(&host::name())).into()
}

/// Left where the ranks meet by a host that keeps its parts elsewhere.
pub fn kept_name(config: &Config) -> OsString {
    let prefix = meeting_prefix(config);
    format!("{}{KEPT}{}", prefix.trim_end_matches('.'), word(&host::name())).into()
}

fn word(text: &str) -> String {
    text.replace('/', "_")
}

/// What tells the meeting of this job from all others.
fn meeting_name(config: &Config) -> String {
    format!("{}\n{}", config.run, config.job)
}

/// What the files of this job's meeting are called.
pub fn meeting_prefix(config: &Config) -> String {
    prefix(&meeting_name(config))
}

/// What those of the meeting in `MPI_Init` are called. They go with the others, if not before.
pub fn start_prefix(config: &Config) -> String {
    format!("{}start.", meeting_prefix(config))
}

/// What the files of a meeting of that name are called.
pub fn prefix(run: &str) -> String {
    // The name of a run may be long, and have characters that no file name can.
    format!("{MEETING}{:016x}.", xxh64(run.as_bytes(), 0))
}

/// Where the ranks meet: where their parts are. A device has no such place, and another user may have taken it. Then it is
/// the directory for temporary files, which only the ranks of one host share. What is refused to one rank of a host is
/// refused to all that are the same user's, so that they all go to the same place.
pub fn meeting_place(config: &Config, parts: &Path, prefix: &str) -> PathBuf {
    if is_device(&config.out) {
        return temporary_place(prefix);
    }
    match Private::make(parts) {
        // Who has no descriptor left has none elsewhere.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotADirectory) => {
            temporary_place(prefix)
        }
        _ => parts.to_owned(),
    }
}

pub fn temporary_place(prefix: &str) -> PathBuf {
    // SAFETY: takes and touches nothing.
    let user = unsafe { libc::geteuid() };
    std::env::temp_dir().join(format!("refrain-{user}-{}", prefix.trim_end_matches('.')))
}

/// The rank and the number of ranks, as launchers tell them.
pub const RANKS: [&str; 4] = ["PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];
pub const SIZES: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_NTASKS"];

/// The first of these variables that is a number.
pub fn launcher_says(variables: &[&str]) -> Option<u32> {
    variables.iter().find_map(|variable| std::env::var(variable).ok()?.parse().ok())
}

/// The number of a process among those of its host, as launchers tell it.
pub const LOCAL_RANKS: [&str; 6] = [
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "FLUX_TASK_LOCAL_ID",
    "SLURM_LOCALID",
];

/// How many ranks of the world are on this host, as launchers tell it.
pub fn ranks_beside(size: u32) -> Option<u32> {
    const LOCAL_SIZES: [&str; 4] =
        ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE"];
    let one_node = || launcher_says(&["SLURM_STEP_NUM_NODES"]).filter(|nodes| *nodes == 1).map(|_| size);
    launcher_says(&LOCAL_SIZES).or_else(one_node)
}
