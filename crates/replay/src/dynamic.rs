//! Dynamic windows: who accesses one names an address in the memory of another rank, which is another one in this run. Each rank
//! leaves in a file which addresses it has asked MPI for, as they were and as they are. Who has been told of an address finds
//! it there, since the message that told it comes later.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use refrain_model::{Call, Value};
use refrain_tracefile::Trace;

use crate::issue::Process;
use crate::memory::LEAST_ADDRESS;

thread_local! {
    /// The displacement that the next call of this thread has in this run: the parameter, and what it is. A tracer sees the
    /// recorded one.
    static FAR: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// By where a segment of another rank began in the recorded run: where it begins now.
type Known = BTreeMap<i64, i64>;

/// The addresses of all ranks.
#[derive(Debug)]
pub struct Places {
    folder: PathBuf,
    own: Mutex<File>,
    /// Of other ranks, with how long the file was when it was read.
    others: Mutex<BTreeMap<u32, (u64, Known)>>,
}

fn file_of(folder: &Path, rank: u32) -> PathBuf {
    folder.join(format!("places-{rank}"))
}

impl Places {
    /// For the ranks that share this folder, if the trace has dynamic windows.
    pub fn new(trace: &Trace, folder: &Path, rank: u32) -> Result<Option<Places>, String> {
        if !refrain_views::replayable::functions(trace).contains("MPI_Win_create_dynamic") {
            return Ok(None);
        }
        let path = file_of(folder, rank);
        let own = OpenOptions::new().create(true).append(true).open(&path);
        let own = own.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Some(Places { folder: folder.to_owned(), own: Mutex::new(own), others: Mutex::default() }))
    }

    /// What began there then begins here now.
    pub fn tell(&self, then: i64, now: i64) -> std::io::Result<()> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.write_all(format!("{then} {now}\n").as_bytes())
    }

    /// An address of another rank, as it is now.
    pub fn now(&self, rank: u32, then: i64) -> Option<i64> {
        let path = file_of(&self.folder, rank);
        let length = std::fs::metadata(&path).ok()?.len();
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let (read, known) = others.entry(rank).or_default();
        if *read != length {
            let text = std::fs::read_to_string(&path).ok()?;
            let pair = |line: &str| {
                let (then, now) = line.split_once(' ')?;
                Some((then.parse().ok()?, now.parse().ok()?))
            };
            *known = text.lines().filter_map(pair).collect();
            *read = text.len() as u64;
        }
        let (base, now) = known.range(..=then).next_back()?;
        now.checked_add(then - base)
    }
}

impl Process {
    /// Before a call that accesses the memory of another rank by its address.
    pub(crate) fn finds_address(&self, call: &Call, words: &[usize]) -> Result<(), String> {
        let Some(places) = &self.places else { return Ok(()) };
        let named = |name: &str| call.function.index_of(name).map(|at| (at, &call.args[at]));
        let (Some((at, Value::Int(then))), Some((_, Value::Int(target))), Some((win, _))) =
            (named("target_disp"), named("target_rank"), named("win"))
        else {
            return Ok(());
        };
        if *then < LEAST_ADDRESS {
            return Ok(());
        }
        let rank = self.in_world(words[win], *target).ok_or("the ranks of the window are not known")?;
        let now = places.now(rank, *then).ok_or_else(|| {
            format!(
                "rank {rank} has left no word in {} of where {then:#x} is now: all ranks need one --scratch",
                places.folder.display()
            )
        })?;
        FAR.set(Some((at, now as usize)));
        Ok(())
    }

    /// The displacement that was found, in place of the recorded one.
    pub(crate) fn with_address(words: &mut [usize]) {
        if let Some((at, now)) = FAR.take() {
            words[at] = now;
        }
    }

    /// A rank of a window, as the world calls it.
    fn in_world(&self, win: usize, rank: i64) -> Option<u32> {
        let (mut group, mut world) = (0u64, 0u64);
        let (own, mut found) = (i32::try_from(rank).ok()?, -1i32);
        let place = |cell: &mut u64| std::ptr::from_mut(cell) as usize;
        let of_world = [self.abi.comm_world as usize, place(&mut world)];
        if self.real_call("MPI_Win_get_group", &[win, place(&mut group)]) != 0
            || self.real_call("MPI_Comm_group", &of_world) != 0
        {
            return None;
        }
        let (from, to) = (std::ptr::from_ref(&own) as usize, std::ptr::from_mut(&mut found) as usize);
        let code =
            self.real_call("MPI_Group_translate_ranks", &[group as usize, 1, from, world as usize, to]);
        self.real_call("MPI_Group_free", &[place(&mut group)]);
        self.real_call("MPI_Group_free", &[place(&mut world)]);
        u32::try_from(found).ok().filter(|_| code == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_others_are_found_as_they_are_told() {
        let folder = std::env::temp_dir().join(format!("refrain-places-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let of = |rank| Places {
            folder: folder.clone(),
            own: Mutex::new(
                OpenOptions::new().create(true).append(true).open(file_of(&folder, rank)).unwrap(),
            ),
            others: Mutex::default(),
        };
        let (one, other) = (of(0), of(1));
        assert_eq!(one.now(1, 1000), None);
        other.tell(1000, 5000).unwrap();
        assert_eq!((one.now(1, 1000), one.now(1, 1008), one.now(1, 999)), (Some(5000), Some(5008), None));
        other.tell(2000, 100).unwrap();
        // What came to lie there later.
        other.tell(1000, 7000).unwrap();
        assert_eq!((one.now(1, 1008), one.now(1, 2001), one.now(2, 1000)), (Some(7008), Some(101), None));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
