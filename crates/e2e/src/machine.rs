//! How many ranks run at once, of all tests together: never more than this machine bears. Tests run side by side, many more
//! than there are cores, because most of them wait most of the time.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use crate::account;

/// Ranks for each core. They wait for each other more than they compute.
const EACH: usize = 6;

/// Who comes first is served first: a run of many ranks is not passed by small ones for ever.
struct Queue {
    /// Numbers that were given out, and the one whose turn it is.
    given: u64,
    turn: u64,
    running: u32,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { given: 0, turn: 0, running: 0 });
static MOVED: Condvar = Condvar::new();

thread_local! {
    /// What this thread's test has room for already. What it starts beside that must not wait: it would wait for itself.
    static OWN: Cell<u32> = const { Cell::new(0) };
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn most() -> u32 {
    static MOST: OnceLock<u32> = OnceLock::new();
    *MOST.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        u32::try_from(cores * EACH).unwrap_or(u32::MAX)
    })
}

/// Who waits for a run that another test makes must not hold room: that run may wait for it.
pub fn has_no_room() {
    assert_eq!(OWN.get(), 0, "a test that has room for its ranks waits for the run of another test");
}

/// Room for so many ranks, until it is dropped.
#[derive(Debug)]
pub struct Room(u32);

impl Room {
    /// Waits until there is room. More ranks than the machine bears run alone.
    pub fn for_ranks(ranks: u32) -> Room {
        if ranks == 0 || OWN.get() > 0 {
            return Room(0);
        }
        let ranks = ranks.min(most());
        let began = Instant::now();
        let mut queue = queue();
        let own = queue.given;
        queue.given += 1;
        while queue.turn != own || queue.running + ranks > most() {
            queue = MOVED.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        queue.turn += 1;
        queue.running += ranks;
        MOVED.notify_all();
        OWN.set(ranks);
        account::waited(began.elapsed());
        Room(ranks)
    }

    /// What the calling thread, a test's helper, starts from here on is what this is for: it does not wait for more.
    pub fn is_for_this_thread(&self) {
        OWN.set(self.0.max(1));
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.0 > 0 {
            queue().running -= self.0;
            OWN.set(0);
            MOVED.notify_all();
        }
    }
}

/// The ranks that a command starts: the number behind `-n`, wherever a launcher or a shell's words have it. Of several launchers
/// their sum.
pub fn ranks(words: &[String]) -> u32 {
    let all: Vec<&str> = words.iter().flat_map(|word| word.split_whitespace()).collect();
    let numbers = all.windows(2).filter(|pair| matches!(pair[0], "-n" | "-np"));
    numbers.filter_map(|pair| pair[1].parse::<u32>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expected: u32) {
        assert_eq!(ranks(&crate::run::words(words)), expected, "{words:?}");
    }

    #[test]
    fn ranks_of_commands() {
        check(&["refrain", "run", "--", "mpiexec", "-n", "4", "./ring"], 4);
        check(&["sh", "-c", "mpiexec -n 3 ./a & mpiexec -n 2 ./b"], 5);
        check(&["refrain", "dump", "x.rfn"], 0);
        check(&["sh", "-c", "[ -n \"$a\" ]"], 0);
    }

    #[test]
    fn never_more_than_there_is_room_for() {
        use std::sync::atomic::{AtomicU32, Ordering};
        let (now, most_seen) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for thread in 0..24 {
                let (now, most_seen) = (&now, &most_seen);
                scope.spawn(move || {
                    for turn in 0..20 {
                        let room = Room::for_ranks(1 + (thread + turn) % 7);
                        let nested = Room::for_ranks(1000);
                        assert_eq!(nested.0, 0, "what a test starts beside its own run does not wait");
                        most_seen
                            .fetch_max(now.fetch_add(room.0, Ordering::SeqCst) + room.0, Ordering::SeqCst);
                        std::thread::yield_now();
                        now.fetch_sub(room.0, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most_seen.into_inner() <= most());
        assert_eq!(Room::for_ranks(1000).0, most());
    }
}
