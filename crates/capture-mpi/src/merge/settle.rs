//! What becomes of the parts when the trace is written, or is not: rank 0 gives its word, and each process removes its own.
//!
//! The parts of a process may lie where only its host sees them. And of ten thousand files each is removed by another process,
//! not all of them by one while all others wait.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use refrain_fold::bundle::{Link, RankTree};
use refrain_guest::process::host;
use refrain_guest::process::say::say;
use refrain_tracefile::Stamp;
use refrain_tracefile::claim::{Done, Job};
use refrain_tracefile::part::{self, HEADER};
use refrain_tracefile::private::Private;

use crate::config::Config;
use crate::files::said_name;
use crate::recording::Own;

/// On rank 0: writes down what came of the program.
pub fn note(job: Option<&Job>, written: bool, missing: bool) {
    if let Some(job) = job {
        job.end(match Stamp::of(&job.trace).filter(|_| written) {
            Some(stamp) if missing => Done::Lacking(stamp),
            Some(stamp) => Done::Whole(stamp),
            None => Done::Nothing,
        });
    }
}

/// Whether the trace has everything, so that parts may go: rank 0 knows, and tells all others. `None`: the word was lost.
pub fn word<L: Link>(link: &mut L, (rank, size): (u32, u32), own: Option<bool>) -> Option<bool> {
    let RankTree { below, above } = RankTree::of(rank, size);
    let whole = match above {
        None => own.unwrap_or(false),
        Some(above) => link.recv(above).ok()? == [1],
    };
    for &to in below.iter().rev() {
        link.send(to, &[u8::from(whole)]).ok()?;
    }
    Some(whole)
}

/// All ranks below this one have done as they were told. Whether that is so of all.
pub fn all_did<L: Link>(link: &mut L, (rank, size): (u32, u32)) -> bool {
    let RankTree { below, above } = RankTree::of(rank, size);
    below.iter().all(|&from| link.recv(from).is_ok())
        && above.is_none_or(|above| link.send(above, &[]).is_ok())
}

/// Removes the parts of this process, and the directory they were in, if that is this host's alone and empty by now.
pub fn remove_own(config: &Config, streams: &[(u32, &mut Own)], own: &Path, place: &Path) {
    streams.iter().filter_map(|(_, stream)| stream.safe.as_ref()).for_each(|safe| safe.remove());
    if own != place
        && let Ok(directory) = Private::open(own)
    {
        // The last of the host succeeds with both.
        let _ = directory.remove(&said_name(config));
        let _ = directory.remove_itself();
    }
}

/// On rank 0: makes room for a trace of so many bytes, which has all that the parts of the run have, by cutting these down to what
/// living processes still write to. Whether that was enough; where it would not be, they stay.
pub fn make_room(config: &Config, parts: &Path, trace: &Path, bytes: u64) -> bool {
    // What a file system needs besides.
    const MORE: u64 = 64 << 10;
    let beside = trace.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Ok(directory), Some(free)) = (Private::open(parts), free(beside)) else { return false };
    let device = |path: &Path| std::fs::metadata(path).map(|about| about.dev()).ok();
    if device(parts) != device(beside) {
        return false;
    }
    let least = |name: &OsStr| if part::is_part(name) { HEADER as u64 } else { 0 };
    let files = part::of_run(&directory, &config.run).into_iter().filter_map(|name| {
        let file = directory.reopen(&name).ok()?;
        let about = file.metadata().ok()?;
        Some((file, about.len().min(least(&name)), (about.blocks() * 512).saturating_sub(least(&name))))
    });
    let files: Vec<(File, u64, u64)> = files.collect();
    let held: u64 = files.iter().map(|(.., held)| held).sum();
    if free + held < bytes + bytes / 8 + MORE {
        return false;
    }
    files.iter().for_each(|(file, left, _)| drop(file.set_len(*left)));
    true
}

/// Bytes that a disk has left for this user.
fn free(place: &Path) -> Option<u64> {
    let place = CString::new(place.as_os_str().as_bytes()).ok()?;
    let mut about = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: a terminated name, and room for the answer, which zeros are too.
    unsafe { (libc::statvfs(place.as_ptr(), about.as_mut_ptr()) == 0).then(|| about.assume_init()) }
        .map(|about| about.f_bavail * about.f_frsize)
}

/// On rank 0, when all others have removed theirs, or not all could be told to.
pub fn end(config: &Config, place: &Path, job: Option<&Job>, all_did: bool) {
    if let Ok(directory) = Private::open(place) {
        if !all_did {
            for name in part::of_run(&directory, &config.run) {
                // What cannot be removed is only in the way.
                let _ = directory.remove(&name);
            }
        }
        // Nothing is left that they could tell of.
        part::forget_kept(&directory);
        let _ = directory.remove_itself();
    }
    // Nobody else does it.
    if let Some(job) = job.filter(|job| !job.held) {
        job.release();
    }
}

/// On rank 0: there is no trace, or it lacks something that the parts have.
pub fn say_kept(config: &Config, own: &Path, place: &Path) {
    // Otherwise whoever waits for the run's end makes the best of it.
    if config.summary && config.safe && own.is_dir() {
        let shown = place.display();
        say(&format!(
            "what was recorded is kept on {}: `refrain recover {shown} --out FILE` makes a trace of it",
            host::name()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::testing::Wire;
    use refrain_mpi::local;
    use refrain_tracefile::claim::Claim;
    use std::io::Write;

    #[test]
    fn what_came_of_a_program_is_written_down() {
        let place = std::env::temp_dir().join(format!("refrain-came-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let came = |name: &str, is_there: bool, (written, missing): (bool, bool)| {
            let job = Job::take(&place.join(name), "run", "program").unwrap();
            if is_there {
                std::fs::write(&job.trace, name).unwrap();
            }
            note(Some(&job), written, missing);
            let base = Private::open(&job.parts()).unwrap();
            let all = Job::all(&base, &place.join(name), &Claim::of(&base).unwrap());
            (all[0].done, Stamp::of(&job.trace))
        };
        let (whole, stamp) = came("a.rfn", true, (true, false));
        assert_eq!(whole, stamp.map(Done::Whole));
        let (lacking, stamp) = came("b.rfn", true, (true, true));
        assert_eq!(lacking, stamp.map(Done::Lacking));
        assert!(whole.is_some() && lacking.is_some());
        assert_eq!(came("c.rfn", true, (false, false)).0, Some(Done::Nothing));
        assert_eq!(came("d.rfn", false, (true, false)).0, Some(Done::Nothing));
        std::fs::remove_dir_all(place).unwrap();
    }

    /// Parts give way where that makes room for the trace, and only there.
    #[test]
    fn parts_give_way_to_a_trace_that_fits() {
        let place = std::env::temp_dir().join(format!("refrain-room-{}", std::process::id()));
        let (parts, trace) = (place.join("parts"), place.join("t.rfn"));
        std::fs::create_dir_all(&place).unwrap();
        let directory = Private::make(&parts).unwrap();
        let config = |run: &str| {
            let look_up = |name: &str| {
                [("REFRAIN_OUT", "t.rfn"), ("REFRAIN_RUN", run)]
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, v)| v.into())
            };
            Config::read(look_up).unwrap().unwrap()
        };
        let header = part::header(&[(part::Word::End, part::End::Finalized as u64)], "run one\n");
        for (name, bytes) in
            [("a.part", [&header[..], &[7; 1 << 20]].concat()), ("a.part.1", vec![7; 1 << 20])]
        {
            directory.create(OsStr::new(name)).unwrap().write_all(&bytes).unwrap();
        }
        let lengths = || ["a.part", "a.part.1"].map(|name| parts.join(name).metadata().unwrap().len());
        let before = lengths();
        for (run, bytes) in [("two", u64::MAX / 4), ("one", u64::MAX / 4)] {
            assert!(!make_room(&config(run), &parts, &trace, bytes));
            assert_eq!(lengths(), before);
        }
        assert!(make_room(&config("one"), &parts, &trace, 1 << 20));
        assert_eq!(lengths(), [HEADER as u64, 0]);
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn all_ranks_hear_the_word_of_rank_0() {
        for (size, whole) in [(1, true), (2, false), (3, true), (7, false), (16, true)] {
            let heard: Vec<_> = std::thread::scope(|scope| {
                let ranks = (0..).zip(local(size)).map(|(rank, transport)| {
                    let mut link = Wire(transport);
                    scope.spawn(move || {
                        let own = (rank == 0).then_some(whole);
                        (word(&mut link, (rank, size), own), all_did(&mut link, (rank, size)))
                    })
                });
                let ranks: Vec<_> = ranks.collect();
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
            });
            assert_eq!(heard, vec![(Some(whole), true); size as usize]);
        }
    }
}
