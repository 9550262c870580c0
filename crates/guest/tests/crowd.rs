//! The switch from one thread to several, and the end, in every order of steps that the memory model allows.
//!
//! The kernel's barrier on behalf of other threads (`membarrier`) is not in the model: both sides have fences here, which
//! is the weaker of the two ways in which the library runs. What the library takes from the kernel's is that it orders at
//! least as much.

mod atomics {
    pub use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering, fence};
}

#[path = "../src/streams/crowd.rs"]
mod crowd;

use atomics::{AtomicBool, AtomicU8, AtomicU32, Ordering, fence};
use crowd::{Crowd, Machine, ONE, Out, SEVERAL, Way};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};

struct Fences {
    light: bool,
    firm: bool,
    heavy: bool,
}

impl Machine for Fences {
    fn light(&self) {
        if self.light {
            fence(Ordering::SeqCst);
        }
    }

    fn firm(&self) {
        if self.firm {
            fence(Ordering::SeqCst);
        }
    }

    fn heavy(&self) {
        if self.heavy {
            fence(Ordering::SeqCst);
        }
    }

    fn wait(&self) -> bool {
        loom::thread::yield_now();
        true
    }
}

const BOTH: Fences = Fences { light: true, firm: false, heavy: true };
/// A kernel without a barrier for others: nobody is alone, and who enters has one of its own.
const OLD_KERNEL: Fences = Fences { light: false, firm: true, heavy: true };

struct World {
    crowd: Crowd,
    machine: Fences,
    busy: [AtomicBool; 3],
    lock: Mutex<()>,
    /// What all threads share, touched without the lock by a thread that is alone.
    shared: UnsafeCell<u32>,
    /// What a thread has for itself, until the one that ends the recording takes it.
    own: [UnsafeCell<u32>; 3],
}

// SAFETY: the model itself says whether two threads touch a cell at the same time: that is the test.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

impl World {
    fn new(machine: Fences) -> Arc<World> {
        Arc::new(World {
            crowd: Crowd {
                may: AtomicU8::new(if machine.firm { SEVERAL } else { ONE }),
                first: AtomicU32::new(0),
            },
            machine,
            busy: [AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false)],
            lock: Mutex::new(()),
            shared: UnsafeCell::new(0),
            own: [UnsafeCell::new(0), UnsafeCell::new(0), UnsafeCell::new(0)],
        })
    }

    /// Counts a call of that thread; false where the recording is over.
    fn call(&self, thread: u32) -> bool {
        let busy = &self.busy[thread as usize];
        self.crowd.arrive(thread);
        loop {
            match self.crowd.enter(&self.machine, thread, busy) {
                Ok(way) => {
                    self.count(&self.own[thread as usize]);
                    match way {
                        Way::Alone => self.count(&self.shared),
                        Way::Among => {
                            let _held = self.lock.lock().unwrap();
                            self.count(&self.shared);
                        }
                    }
                    // A handler that interrupts it here is not let in.
                    assert_eq!(self.crowd.enter(&self.machine, thread, busy), Err(Out::Again));
                    self.crowd.leave(busy);
                    return true;
                }
                Err(Out::Over) => return false,
                Err(_) => self
                    .crowd
                    .open(&self.machine, |first| self.busy.get(first.wrapping_sub(1) as usize))
                    .unwrap(),
            }
        }
    }

    fn count(&self, cell: &UnsafeCell<u32>) {
        // SAFETY: loom fails the test where another thread is at it.
        cell.with_mut(|count| unsafe { *count += 1 });
    }

    /// Ends the recording, and takes all there is: what is shared, and the sum of what each thread has.
    fn take(&self) -> Option<(u32, u32)> {
        if !self.crowd.end() {
            return None;
        }
        self.crowd.all_out(&self.machine, || self.busy.iter()).unwrap();
        // SAFETY: as above.
        let read = |cell: &UnsafeCell<u32>| cell.with_mut(|count| unsafe { *count });
        Some((read(&self.shared), self.own.iter().map(read).sum()))
    }
}

/// Explores with a bound on how often a thread is interrupted: the protocol has a handful of steps.
fn explore(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(run);
}

fn join_and_take(machine: fn() -> Fences) {
    explore(4, move || {
        let world = World::new(machine());
        let other = world.clone();
        let second = loom::thread::spawn(move || u32::from(other.call(1)));
        let first = u32::from(world.call(0)) + u32::from(world.call(0));
        let second = second.join().unwrap();
        assert_eq!(world.take(), Some((first + second, first + second)));
        assert_eq!(world.take(), None);
        assert!(!world.call(0));
    });
}

#[test]
fn a_second_thread_comes_while_the_first_records() {
    join_and_take(|| BOTH);
}

#[test]
fn the_same_without_a_barrier_of_the_kernel() {
    join_and_take(|| OLD_KERNEL);
}

/// The model can fail: without one of the barriers two threads are in what they share at the same time.
#[test]
#[should_panic]
fn the_barrier_of_who_enters_is_needed() {
    join_and_take(|| Fences { light: false, firm: false, heavy: true });
}

/// Two come at once: both make room, and neither gets in before the first is out.
#[test]
fn three_threads() {
    explore(2, || {
        let world = World::new(BOTH);
        assert!(world.call(0));
        let threads = [1, 2].map(|number| {
            let world = world.clone();
            loom::thread::spawn(move || assert!(world.call(number)))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(world.take(), Some((3, 3)));
    });
}

/// One thread ends the recording while another one calls: its call is in what was taken, or it was told that it is over.
fn end_while_others_record(machine: fn() -> Fences) {
    explore(4, move || {
        let world = World::new(machine());
        let other = world.clone();
        let second = loom::thread::spawn(move || u32::from(other.call(1)));
        world.call(0);
        let (shared, own) = world.take().unwrap();
        let second = second.join().unwrap();
        assert_eq!((shared, own), (1 + second, 1 + second));
    });
}

#[test]
fn the_end_while_others_record() {
    end_while_others_record(|| BOTH);
    end_while_others_record(|| OLD_KERNEL);
}

#[test]
#[should_panic]
fn the_barrier_is_needed_also_where_all_take_locks() {
    end_while_others_record(|| Fences { light: false, firm: true, heavy: false });
}

/// Two threads end it: one of them takes it.
#[test]
fn two_ends() {
    explore(4, || {
        let world = World::new(BOTH);
        world.call(0);
        let other = world.clone();
        let second = loom::thread::spawn(move || other.take());
        let taken = [world.take(), second.join().unwrap()];
        assert_eq!(taken.iter().flatten().collect::<Vec<_>>(), [&(1, 1)]);
    });
}
