//! Many ranks become one, on all cores. At any time there is what is being read on each core, and what was merged of ranks that
//! still wait for their neighbours: so memory goes with the result, not with the parts.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use refrain_fold::bundle::{Bundle, merge};

/// Deep trees are merged by recursion.
const STACK: usize = 64 << 20;

/// What is merged and waits for its neighbour: by level, and which one there.
type Waiting = HashMap<(u32, usize), Bundle>;

struct Merging<T> {
    waiting: Waiting,
    /// What else is known of each.
    told: Vec<Option<T>>,
    failed: Option<String>,
    done: u64,
}

/// How many steps of [`merge_all`] are told: to read each, and to merge it with others.
pub fn steps(processes: usize) -> u64 {
    (2 * processes as u64).saturating_sub(1)
}

/// Reads all of them, each once, and merges neighbours in pairs of about the same size, as the ranks themselves would: the result
/// does not depend on who was faster. `one` gives what was recorded, and what else there is to tell.
pub fn merge_all<P: Sync, T: Send>(
    processes: &[P],
    one: impl Fn(&P) -> (Option<Bundle>, T) + Sync,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<(Bundle, Vec<T>), String> {
    let next = AtomicUsize::new(0);
    let told = processes.iter().map(|_| None).collect();
    let state = Mutex::new((Merging { waiting: HashMap::new(), told, failed: None, done: 0 }, progress));
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let step = |change: &mut dyn FnMut(&mut Merging<T>)| {
        let (merging, progress) = &mut *lock();
        change(merging);
        merging.done += 1;
        progress(merging.done);
    };
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(process) = processes.get(at).filter(|_| lock().0.failed.is_none()) else { return };
            let (bundle, told) = one(process);
            let mut told = Some(told);
            step(&mut |merging| merging.told[at] = told.take());
            let (mut level, mut at, mut bundle) = (0u32, at, bundle.unwrap_or_default());
            // The last one of an odd number goes up alone.
            while last(processes.len(), level) > 0 {
                if at % 2 == 0 && at == last(processes.len(), level) {
                    (level, at) = (level + 1, at / 2);
                    continue;
                }
                let other = {
                    let (merging, _) = &mut *lock();
                    match merging.waiting.remove(&(level, at ^ 1)) {
                        Some(other) => other,
                        None => {
                            merging.waiting.insert((level, at), bundle);
                            bundle = Bundle::default();
                            break;
                        }
                    }
                };
                let merged = if at % 2 == 0 { merge(bundle, other) } else { merge(other, bundle) };
                step(&mut |_| ());
                match merged {
                    Ok(merged) => (level, at, bundle) = (level + 1, at / 2, merged),
                    Err(error) => {
                        lock().0.failed = Some(error.to_string());
                        return;
                    }
                }
            }
            if last(processes.len(), level) == 0 {
                lock().0.waiting.insert((u32::MAX, 0), bundle);
            }
        }
    };
    on_all_cores(processes.len(), &work)?;
    let (merging, _) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(failed) = merging.failed {
        return Err(failed);
    }
    let mut waiting = merging.waiting;
    let bundle = waiting.remove(&(u32::MAX, 0)).unwrap_or_default();
    Ok((bundle, merging.told.into_iter().flatten().collect()))
}

/// What `one` makes of each, in their order.
pub fn each<P: Sync, T: Send>(
    processes: &[P],
    one: impl Fn(&P) -> T + Sync,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let made: Vec<Option<T>> = processes.iter().map(|_| None).collect();
    let state = Mutex::new((made, 0, progress));
    let work = || {
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(process) = processes.get(at)
        {
            let one = one(process);
            let (made, done, progress) = &mut *state.lock().unwrap_or_else(PoisonError::into_inner);
            made[at] = Some(one);
            *done += 1;
            progress(*done);
        }
    };
    on_all_cores(processes.len(), &work)?;
    let (made, ..) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(made.into_iter().flatten().collect())
}

/// Does the work on as many threads as there are cores, but no more than there is work for. This thread does nothing of it: its
/// stack may be too small. With fewer threads than cores it only takes longer.
fn on_all_cores(most: usize, work: &(impl Fn() + Sync)) -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get).min(most).max(1);
    std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).map(drop);
        let started: Vec<std::io::Result<()>> = (0..cores).map(start).collect();
        started.into_iter().reduce(|one, other| one.or(other)).unwrap_or(Ok(()))
    })
    .map_err(|error| format!("no thread can be started: {error}"))
}

/// The number of the last one on a level.
fn last(all: usize, level: u32) -> usize {
    all.saturating_sub(1).checked_shr(level).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use refrain_encode::{Folding, Reader, Tape};
    use refrain_model::Call;

    use super::*;

    fn own(rank: u32, ranks: u32) -> Bundle {
        let mut tape = Tape::new(Folding::default());
        Tape::bundle((rank, ranks), [(0, &mut tape)], |ticks| ticks).unwrap()
    }

    #[test]
    fn every_rank_is_there_once_however_many_there_are() {
        for ranks in [1, 2, 3, 4, 5, 7, 8, 9, 33, 100] {
            let all: Vec<u32> = (0..ranks).collect();
            let mut seen = 0;
            let one = |rank: &u32| (Some(own(*rank, ranks)), *rank);
            let (bundle, told) = merge_all(&all, one, &mut |done| seen = done).unwrap();
            assert_eq!((told, seen), (all, steps(ranks as usize)));
            let members: u64 = bundle.cohorts.iter().map(|cohort| cohort.ranks.len()).sum();
            assert_eq!(members, u64::from(ranks));
        }
        let (bundle, told) = merge_all(&[] as &[u32], |_| (None, ()), &mut |_| ()).unwrap();
        assert!(bundle.cohorts.is_empty() && told.is_empty());
    }

    #[test]
    fn each_comes_in_its_place() {
        for count in [0, 1, 2, 33] {
            let all: Vec<u32> = (0..count).collect();
            let mut seen = 0;
            let made = each(&all, |number| number * number, &mut |done| seen = done).unwrap();
            assert_eq!(made, all.iter().map(|number| number * number).collect::<Vec<_>>());
            assert_eq!(seen, u64::from(count));
        }
    }

    /// What a rank of a program might have done: sends and barriers in turn, as often and as long as others here and there.
    fn recorded(rank: u32, ranks: u32) -> Bundle {
        let (turns, length) = (20 + rank % 3, if rank % 4 == 1 { rank } else { 9 });
        let text = format!(
            "refrain-text 1\nversion \"0.1.0\"\ncommand \"./app\"\nlibrary \"MPICH 4.0.2\"\nabi \"MPICH ABI\"\nranks {ranks}\n\
             split yes\ntimed no\ncomplete yes\n\
             symbol 0 lanes 3 stack - time 0 0 0 bytes 15000420010106\n\
             symbol 1 lanes 0 stack - time 0 0 0 bytes 610006\n\
             stream 0 terms {length} shape t0\nstream 1 terms 1 shape t0\nstream 2 terms 7 shape t0\n\
             structure 0 rules r1x{turns} | e0 e1\n\
             cohort members {rank} structure 0 digest 0\n  lane 0\n  lane 1\n  lane 2\n"
        );
        refrain_views::written::read(&text).unwrap().bundle
    }

    /// One after the other, by neighbours.
    #[test]
    fn the_result_is_that_of_one_thread() {
        for ranks in [1, 2, 3, 5, 8, 13, 32] {
            let mut level: Vec<Bundle> = (0..ranks).map(|rank| recorded(rank, ranks)).collect();
            while level.len() > 1 {
                let mut next = Vec::new();
                let mut bundles = level.into_iter();
                while let Some(left) = bundles.next() {
                    next.push(match bundles.next() {
                        Some(right) => merge(left, right).unwrap(),
                        None => left,
                    });
                }
                level = next;
            }
            let all: Vec<u32> = (0..ranks).collect();
            let one = |rank: &u32| (Some(recorded(*rank, ranks)), ());
            let (merged, _) = merge_all(&all, one, &mut |_| ()).unwrap();
            assert_eq!(merged, level[0], "{ranks} ranks");
            for rank in 0..ranks {
                let own = recorded(rank, ranks);
                let calls = |bundle: &Bundle| -> Vec<Call> {
                    Reader::new(bundle).calls(rank, 0).unwrap().collect::<Result<_, _>>().unwrap()
                };
                assert_eq!(calls(&merged), calls(&own));
                assert_eq!(calls(&own).len() as u32, 2 * (20 + rank % 3));
            }
        }
    }

    /// Ranks whose parts cannot be read are left out, and the others are merged.
    #[test]
    fn ranks_that_are_missing_are_in_nobodys_way() {
        let all: Vec<u32> = (0..9).collect();
        let one = |rank: &u32| ((rank % 3 != 1).then(|| own(*rank, 9)), ());
        let (bundle, _) = merge_all(&all, one, &mut |_| ()).unwrap();
        let members: Vec<u32> = bundle.cohorts.iter().flat_map(|cohort| cohort.ranks.iter()).collect();
        assert_eq!(members, [0, 2, 3, 5, 6, 8]);
    }
}
