//! Which calls are kept. A call reads one byte of its function, `FATES`, beside the real function's address; all
//! that can change that byte is here: the rank, once it is known, `MPI_Pcontrol`, and the time.
//!
//! A call that is not kept may still make or end objects which calls that are kept will name, so it is *followed*:
//! encoded, and not written down.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::{Mutex, OnceLock, PoisonError};

use refrain_guest::memory::live;
use refrain_guest::process::say::say;
use refrain_model::FUNCTION_COUNT;
use refrain_model::choice::{Choice, Role, Window, has_effects};

use crate::hooks::Observed;

/// What becomes of each function's calls, by its position in the call table.
static FATES: Fates = [const { AtomicU8::new(RECORD) }; FUNCTION_COUNT];
/// What decides that. Written once, in the constructor.
static GATE: OnceLock<Gate> = OnceLock::new();

/// Nothing special: the call is recorded.
pub const RECORD: u8 = 0;
/// Observed, not recorded; now and then recorded.
const FOLLOW: u8 = 1;
/// Observed, and never recorded in this run.
const FOLLOW_ALWAYS: u8 = 2;
/// Straight to MPI.
const PASS: u8 = 3;
const FATE: u8 = 3;
/// It may be time to change all of this.
const TIMED: u8 = 4;
/// This is `MPI_Pcontrol`.
const CONTROL: u8 = 8;

pub type Fates = [AtomicU8; FUNCTION_COUNT];

/// What becomes of a call that was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Record,
    /// Its objects are kept up with. `always`: no call of this function is recorded in this run.
    Follow {
        always: bool,
    },
    Pass,
}

/// What decides.
#[derive(Debug)]
pub struct Gate {
    choice: Choice,
    roles: Vec<Role>,
    now: Mutex<Now>,
    /// The next moment that changes something, in nanoseconds of the clock.
    edge: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct Now {
    /// This rank is recorded, as far as is known.
    rank: bool,
    /// As the program said last.
    on: bool,
    /// The clock when `MPI_Init` returned.
    zero: Option<u64>,
    /// Nanoseconds since then.
    elapsed: u64,
}

impl Gate {
    pub fn new(choice: &Choice) -> Gate {
        Gate {
            roles: choice.roles(),
            choice: choice.clone(),
            now: Mutex::new(Now { rank: true, on: true, zero: None, elapsed: 0 }),
            edge: AtomicU64::new(u64::MAX),
        }
    }

    /// Changes what there is to know, and writes the byte of every function accordingly.
    fn change(&self, fates: &Fates, change: impl FnOnce(&mut Now)) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut now);
        let window = self.choice.window.unwrap_or(Window { from: 0, until: u64::MAX });
        let next =
            [window.from, window.until].into_iter().find(|&edge| now.elapsed < edge && edge != u64::MAX);
        let edge = next.and_then(|next| now.zero?.checked_add(next)).unwrap_or(u64::MAX);
        self.edge.store(edge, Relaxed);
        let timed = if next.is_some() { TIMED } else { 0 };
        let open = now.on && (window.from..window.until).contains(&now.elapsed);
        for ((f, role), byte) in refrain_model::functions().iter().zip(&self.roles).zip(fates) {
            let fate = match role {
                _ if !now.rank => PASS,
                Role::Needed if f.name == "MPI_Pcontrol" => RECORD | CONTROL,
                Role::Needed => RECORD,
                Role::Chosen if open => RECORD | timed,
                Role::Chosen if has_effects(f) => FOLLOW | timed,
                Role::Chosen => PASS | timed,
                Role::Followed => FOLLOW_ALWAYS,
                Role::Ignored => PASS,
            };
            byte.store(fate, Relaxed);
        }
    }

    /// MPI is not up yet; it may be asked a few things.
    pub fn open(&self, fates: &Fates) {
        self.change(fates, |_| {});
    }

    fn start(&self, rank: u32, clock: u64, fates: &Fates) {
        self.change(fates, |now| (now.rank, now.zero) = (self.choice.has_rank(rank), Some(clock)));
    }

    fn control(&self, level: i32, fates: &Fates) {
        if self.choice.pcontrol {
            self.change(fates, |now| now.on = level != 0);
        }
    }

    fn look(&self, clock: u64, fates: &Fates) {
        if clock >= self.edge.load(Relaxed) {
            self.change(fates, |now| now.elapsed = clock.saturating_sub(now.zero.unwrap_or(clock)));
        }
    }
}

/// Nanoseconds, a few milliseconds behind: cheap enough for every call while a window is still to open or close.
fn clock() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result; this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// What was chosen holds from here on. Called by the constructor.
pub fn choose(choice: &Choice) {
    GATE.get_or_init(|| Gate::new(choice)).open(&FATES);
}

/// `MPI_Init` has returned, on this rank of so many.
pub fn start(rank: u32, size: u32) {
    let Some(gate) = GATE.get() else { return };
    gate.start(rank, clock(), &FATES);
    if !gate.choice.has_rank(rank) {
        live::track(false);
    }
    let missing = gate.choice.ranks.as_ref().and_then(|ranks| ranks.beyond(size));
    if let (0, Some(missing)) = (rank, missing) {
        say(&format!("rank {missing} was chosen, but the ranks are 0 to {}", size.saturating_sub(1)));
    }
}

/// Whether nobody wants to see a call that is about to be made.
#[inline]
pub fn passes(index: usize) -> bool {
    let byte = FATES[index].load(Relaxed);
    byte != RECORD && decide(index, byte)
}

#[cold]
#[inline(never)]
fn decide(index: usize, byte: u8) -> bool {
    if byte & TIMED != 0
        && let Some(gate) = GATE.get()
    {
        gate.look(clock(), &FATES);
    }
    FATES[index].load(Relaxed) & FATE == PASS
}

/// What becomes of a call that was made.
#[inline]
pub fn fate(call: Observed<'_>) -> Fate {
    match FATES[call.index].load(Relaxed) {
        RECORD => Fate::Record,
        byte => rare(byte, call),
    }
}

#[cold]
#[inline(never)]
fn rare(byte: u8, call: Observed<'_>) -> Fate {
    if byte & CONTROL != 0
        && let (Some(gate), Some(&level)) = (GATE.get(), call.args.first())
    {
        gate.control(level as i32, &FATES);
    }
    match byte & FATE {
        RECORD => Fate::Record,
        PASS => Fate::Pass,
        follow => Fate::Follow { always: follow == FOLLOW_ALWAYS },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::choice::Words;

    fn gate(words: Words<'_>) -> (Gate, Box<Fates>) {
        let fates = Box::new([const { AtomicU8::new(99) }; FUNCTION_COUNT]);
        let gate = Gate::new(&Choice::read(words).unwrap());
        gate.open(&fates);
        (gate, fates)
    }

    #[track_caller]
    fn check(fates: &Fates, expected: &str) {
        for part in expected.split(", ") {
            let (name, fate) = part.split_once(' ').unwrap();
            let at = refrain_model::functions().iter().position(|f| f.name == format!("MPI_{name}")).unwrap();
            let byte = fates[at].load(Relaxed);
            let said = ["record", "follow", "never", "pass"][usize::from(byte & FATE)];
            let timed = if byte & TIMED != 0 { " timed" } else { "" };
            assert_eq!(format!("{said}{timed}"), fate, "{name}");
        }
    }

    #[test]
    fn everything_is_recorded_on_the_short_path() {
        let (gate, fates) = gate(Words::default());
        gate.start(3, 1000, &fates);
        let special = refrain_model::functions().iter().zip(fates.iter());
        let special: Vec<&str> = special
            .filter(|(f, byte)| byte.load(Relaxed) != RECORD && !f.silent)
            .map(|(f, _)| f.name)
            .collect();
        assert_eq!(special, ["MPI_Pcontrol"]);
    }

    #[test]
    fn the_program_switches() {
        let (gate, fates) = gate(Words { only: Some("p2p"), ..Words::default() });
        gate.start(0, 1000, &fates);
        check(
            &fates,
            "Send record, Isend record, Bcast pass, Ibcast never, Comm_dup record, Comm_free never",
        );
        gate.control(0, &fates);
        check(&fates, "Send pass, Isend follow, Bcast pass, Ibcast never, Comm_dup record, Pcontrol record");
        gate.control(2, &fates);
        check(&fates, "Send record, Isend record, Bcast pass");
        let (gate, fates) = self::gate(Words { pcontrol: Some("off"), ..Words::default() });
        gate.control(0, &fates);
        check(&fates, "Send record");
    }

    #[test]
    fn time_opens_and_closes() {
        const S: u64 = 1_000_000_000;
        let (gate, fates) = gate(Words { window: Some("10s..20s"), ..Words::default() });
        check(&fates, "Send pass timed, Init record, Finalize record");
        gate.start(0, 5 * S, &fates);
        gate.look(14 * S, &fates);
        check(&fates, "Send pass timed, Isend follow timed, Comm_dup record");
        gate.look(15 * S, &fates);
        check(&fates, "Send record timed, Isend record timed");
        gate.control(0, &fates);
        check(&fates, "Send pass timed");
        gate.control(1, &fates);
        gate.look(26 * S, &fates);
        check(&fates, "Send pass, Isend follow, Finalize record");
        let (gate, fates) = self::gate(Words { window: Some("1s.."), ..Words::default() });
        gate.start(0, 0, &fates);
        gate.look(S, &fates);
        check(&fates, "Send record, Isend record");
    }

    #[test]
    fn a_rank_that_was_not_chosen_passes() {
        let (gate, fates) = gate(Words { ranks: Some("0,2"), ..Words::default() });
        check(&fates, "Initialized record");
        gate.start(1, 0, &fates);
        assert!(fates.iter().all(|byte| byte.load(Relaxed) == PASS));
        gate.start(2, 0, &fates);
        check(&fates, "Send record, Pcontrol record");
    }
}
