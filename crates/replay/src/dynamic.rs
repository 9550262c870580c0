//! Dynamic windows: who accesses one names an address in the memory of another rank, which is another one in this run. Each rank
//! leaves in a file which addresses it has asked MPI for, as they were and as they are, and what it has attached. Who names an
//! address waits until it is there: what told the program of it may have been in memory, which is not in a trace.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use refrain_model::{Call, Value};
use refrain_tracefile::Trace;

use crate::issue::{Around, Process};
use crate::memory::LEAST_ADDRESS;
use crate::reach::{self, Reach};
use crate::windows;

thread_local! {
    /// The displacement that the next call of this thread has in this run: the parameter, and what it is. A tracer sees the
    /// recorded one.
    static FAR: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// How long is looked for an address before it is said that somebody waits for it.
const SILENT: Duration = Duration::from_secs(5);

/// What another rank has told.
#[derive(Debug, Default)]
struct Known {
    /// So much of the file was read.
    read: u64,
    /// Behind it: a line that was not whole.
    rest: String,
    /// By where a segment began in the recorded run: where it begins now.
    bases: BTreeMap<i64, i64>,
    /// What was attached, as it is now: first address, and the last one + 1.
    attached: BTreeMap<i64, i64>,
}

impl Known {
    fn learn(&mut self, text: &str) {
        self.rest.push_str(text);
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let rest = self.rest.split_off(whole);
        for line in std::mem::replace(&mut self.rest, rest).lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok());
            match (words.first(), number(1), number(2)) {
                (Some(&"base"), Some(then), Some(now)) => _ = self.bases.insert(then, now),
                (Some(&"attached"), Some(first), Some(bytes)) => {
                    let end = self.attached.entry(first).or_default();
                    *end = (*end).max(first.saturating_add(bytes));
                }
                _ => {}
            }
        }
    }

    /// An address as it is now, if what is touched there is attached.
    fn now(&self, then: i64, touched: Reach) -> Option<i64> {
        // Addresses of a segment may be below those of where it is counted from.
        const NEAR: usize = 64;
        let below = self.bases.range(..=then).rev().take(NEAR);
        let above = self.bases.range(then..).take(NEAR);
        below.chain(above).find_map(|(base, now)| {
            let now = now.checked_add(then.checked_sub(*base)?)?;
            let Reach { lo, hi } = touched.moved(now.into());
            let first = i64::try_from(lo).ok()?;
            let (_, end) = self.attached.range(..=first).next_back()?;
            (hi <= i128::from(*end)).then_some(now)
        })
    }
}

/// The addresses of all ranks.
#[derive(Debug)]
pub struct Places {
    folder: PathBuf,
    own: Mutex<File>,
    others: Mutex<BTreeMap<u32, Known>>,
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
        self.say(&format!("base {then} {now}\n"))
    }

    /// So many bytes are attached from there on.
    fn tell_attached(&self, first: i64, bytes: i64) -> std::io::Result<()> {
        self.say(&format!("attached {first} {bytes}\n"))
    }

    fn say(&self, line: &str) -> std::io::Result<()> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.write_all(line.as_bytes())
    }

    /// An address of another rank as it is now, if what is touched there is attached.
    fn now(&self, rank: u32, then: i64, touched: Reach) -> Option<i64> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let known = others.entry(rank).or_default();
        if let Some(now) = known.now(then, touched) {
            return Some(now);
        }
        let mut file = File::open(file_of(&self.folder, rank)).ok()?;
        let mut text = String::new();
        file.seek(SeekFrom::Start(known.read)).ok()?;
        known.read += file.read_to_string(&mut text).ok()? as u64;
        known.learn(&text);
        known.now(then, touched)
    }
}

impl Process {
    /// Memory was attached to a window: others may name its addresses.
    pub(crate) fn attached(&self, call: &Call, words: &[usize]) {
        if let (Some(places), [_, base, bytes]) = (&self.places, words)
            && call.result == Value::Int(0)
        {
            // Who needs it says that it is not there.
            let _ = places.tell_attached(*base as i64, *bytes as i64);
        }
    }

    /// Before a call that accesses the memory of another rank by its address.
    pub(crate) fn finds_address(&self, call: &Call, words: &[usize]) -> Result<(), String> {
        let named = |name: &str| call.function.index_of(name).map(|at| (at, &call.args[at]));
        let (Some((at, _)), Some((_, target)), Some((win, _))) =
            (named("target_disp"), named("target_rank"), named("win"))
        else {
            return Ok(());
        };
        if !self.is_dynamic(words[win]) {
            return Ok(());
        }
        let Ok(Some(target)) = windows::target_of(target) else { return Ok(()) };
        let then = i64::try_from(reach::number(call, at)).unwrap_or(0);
        let touched = reach::in_window(call, &Around { process: self }).map_err(|why| why.to_string())?;
        let touched = touched.unwrap_or(Reach::NOTHING);
        if touched.is_empty() {
            return Ok(());
        }
        let Some(places) = self.places.as_ref().filter(|_| then >= LEAST_ADDRESS) else {
            return Err(format!("target_disp cannot be {then}: in this window it is an address"));
        };
        let rank = self.in_world(words[win], target).ok_or("the ranks of the window are not known")?;
        let since = Instant::now();
        let mut said = false;
        loop {
            if let Some(now) = places.now(rank, then, touched) {
                FAR.set(Some((at, now as usize)));
                return Ok(());
            }
            // That rank may wait for this one.
            self.lets_others_go_on();
            std::thread::sleep(Duration::from_micros(if said { 10_000 } else { 100 }));
            if since.elapsed() > SILENT && !said {
                said = true;
                let folder = places.folder.display();
                eprintln!(
                    "refrain: a rank waits until rank {rank} has said in {folder} where {then:#x} is now: all ranks need \
                     one --scratch"
                );
            }
        }
    }

    /// MPI looks after messages, and what other ranks do in windows.
    pub(crate) fn lets_others_go_on(&self) {
        let mut flag = 0i32;
        let (source, tag) = (self.abi.any_source as usize, self.abi.any_tag as usize);
        let words = [source, tag, self.abi.comm_self as usize, std::ptr::from_mut(&mut flag) as usize];
        self.real_call("MPI_Iprobe", &[&words[..], &[self.abi.status_ignore]].concat());
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
        let now = |rank, then| one.now(rank, then, Reach::bytes(8));
        assert_eq!(now(1, 1000), None);
        other.tell(1000, 5000).unwrap();
        // Only what is attached is touched.
        assert_eq!(now(1, 1000), None);
        other.tell_attached(5000, 16).unwrap();
        assert_eq!(
            (now(1, 1000), now(1, 1008), now(1, 1009), now(1, 999)),
            (Some(5000), Some(5008), None, None)
        );
        other.tell(2000, 108).unwrap();
        other.say("attached 1").unwrap();
        assert_eq!(now(1, 2000), None);
        other.say("00 16\n").unwrap();
        assert_eq!((now(1, 2000), now(1, 1992)), (Some(108), Some(100)));
        assert_eq!(now(2, 2000), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
