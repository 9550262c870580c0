//! Where a call was made: its stack as a *site*, one number that is the same in every process that runs the same code.
//!
//! `cache` recognises stacks that come again and again, `unwind` finds the frames of any other, with the help of `cfi` and of
//! what `places` remembers of it, and `modules` says what counts of it and gives it a form that does not depend on where
//! things were loaded. Where a stack goes through Python's interpreter, `python` says what it runs. Of a stack that was unwound,
//! only the sum of its return addresses is kept.

mod cache;
mod cfi;
mod modules;
mod places;
mod python;
mod unwind;

use std::sync::atomic::Ordering::Acquire;

use refrain_encode::{FastMap, Tape};
use refrain_fold::bundle::sites::Frame;
use refrain_model::Code;

use crate::config::{Config, Kept};
use crate::memory::stack;
use crate::state;
use cache::Cache;
use modules::Owner;
use places::Places;
use python::Python;
use unwind::{By, Raw, Stop};

/// Where a wrapper was called from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// Where on the stack it is written where it returns to; 0 where that is not known.
    pub slot: usize,
    /// The caller's frame pointer, or whatever else it has in that register.
    pub pointer: usize,
}

/// More than a program calls MPI from; where there are more, they are taken for new ones.
const MOST_SEEN: usize = 1 << 17;

#[derive(Debug, Clone, Copy)]
struct Seen {
    /// Where it goes through Python's interpreter: the sum.
    site: u64,
    /// Of the cache, if it came again.
    piece: u32,
}

/// A stack that was not recognised.
struct Unwound {
    /// Innermost first.
    frames: Vec<Raw>,
    /// The piece of the cache that these were called from.
    known: Option<usize>,
    /// Nothing more can be said of it.
    whole: bool,
}

/// What one thread knows.
#[derive(Debug, Default)]
pub struct Stacks {
    cache: Cache,
    places: Places,
    /// Stacks that were unwound, by the sum of their return addresses.
    seen: FastMap<u64, Seen>,
    /// Where Python's interpreter was met.
    python: Option<Box<Python>>,
    /// It was met, but lacks functions that are needed.
    python_is_mute: bool,
    /// That a stack is recognised is not all: Python was met, or everything is tested.
    looks_again: bool,
    /// How many libraries were closed when the cache was begun.
    closed: u64,
}

impl Stacks {
    /// The site of a call; a new one is told to the tape.
    #[inline]
    pub fn site(&mut self, place: Place, config: &Config, tape: &mut Tape) -> u64 {
        // SAFETY: the wrapper has not returned yet, so what it returns to stands there.
        let returns = if place.slot == 0 { 0 } else { unsafe { (place.slot as *const usize).read() } };
        if state::CLOSED.load(Acquire) == self.closed
            && !self.looks_again
            && let Some(site) = self.cache.recall(returns, place)
        {
            return site;
        }
        self.look(returns, place, config, tape)
    }

    /// Where words on the stack do not say it all.
    #[cold]
    #[inline(never)]
    fn look(&mut self, returns: usize, place: Place, config: &Config, tape: &mut Tape) -> u64 {
        let closed = state::CLOSED.load(Acquire);
        if closed != self.closed {
            self.closed = closed;
            self.forget_code();
        }
        // Otherwise it was asked already, and knows nothing.
        let known = self.looks_again.then(|| self.cache.recall(returns, place)).flatten();
        let site = known.unwrap_or_else(|| self.look_outwards(returns, place, config, tape));
        self.looks_again = config.test_stacks || self.python.is_some();
        let site = if self.python.is_some() { self.through_python(site, config, tape) } else { site };
        if config.test_stacks {
            assert_eq!(site, self.look_afresh(place, config, tape), "a call stack was taken for another");
        }
        site
    }

    /// Another thread goes on here.
    pub fn forget(&mut self) {
        self.cache.forget();
    }

    /// Other code may have come to lie where some was.
    fn forget_code(&mut self) {
        self.cache.forget();
        self.places.forget();
        self.seen = FastMap::default();
        self.python_is_mute = false;
        if let Some(python) = &mut self.python {
            python.forget_stacks();
        }
    }

    fn look_outwards(&mut self, returns: usize, place: Place, config: &Config, tape: &mut Tape) -> u64 {
        let site_only = config.stacks == Kept::Site;
        let tells = |owner| !matches!(owner, Owner::Mpi | Owner::Interpreter);
        if site_only && place.slot != 0 && tells(self.places.at(returns).owner) {
            let site = self.note(&[returns], &python::Frames::default(), config, tape);
            self.cache.insert_anywhere(returns, site);
            return site;
        }
        let bounds = stack::current();
        let mut found = self.unwind(place, site_only);
        if self.places.lost_some() {
            // Places that were known may be others now.
            self.forget_code();
            found = self.unwind(place, site_only);
        }
        let outer = self.cache.sum(found.known);
        let sum = found.frames.iter().rev().fold(outer, |sum, frame| cache::add(sum, frame.returns));
        let keep = place.slot != 0 && found.whole;
        match self.seen.get(&sum).copied() {
            Some(Seen { site, piece }) => {
                // It comes again, and so will be recognised from here on.
                if keep
                    && !self.cache.meets(piece, sum, place)
                    && let Some(piece) = self.cache.insert(&found.frames, found.known, &bounds, site)
                {
                    self.seen.insert(sum, Seen { site, piece });
                }
                site
            }
            None => {
                let mut addresses: Vec<usize> = found.frames.iter().map(|frame| frame.returns).collect();
                addresses.extend(self.cache.addresses(found.known));
                let site = match self.goes_through_python(&addresses) {
                    Some(python) => {
                        if python.add_native(sum, &addresses) {
                            // What was known is not told from other stacks any more.
                            self.seen = FastMap::default();
                            self.cache.forget();
                        }
                        sum
                    }
                    None => self.note(&addresses, &python::Frames::default(), config, tape),
                };
                if self.seen.len() >= MOST_SEEN {
                    self.seen = FastMap::default();
                }
                self.seen.insert(sum, Seen { site, piece: u32::MAX });
                site
            }
        }
    }

    fn unwind(&mut self, place: Place, site_only: bool) -> Unwound {
        let (cache, mut known) = (&self.cache, None);
        let stop = &mut |frame: &Raw, owner: Owner| {
            if site_only {
                return if owner == Owner::Mpi { Stop::Not } else { Stop::After };
            }
            known = cache.known(frame);
            if known.is_some() { Stop::Before } else { Stop::Not }
        };
        let (frames, whole) =
            unwind::frames(By::best(place), place, &stack::current(), &mut self.places, stop);
        Unwound { frames, known, whole }
    }

    /// The site by the unwinder that exceptions use and by nothing that was remembered: for tests.
    #[cold]
    fn look_afresh(&mut self, place: Place, config: &Config, tape: &mut Tape) -> u64 {
        self.places.forget();
        let site_only = config.stacks == Kept::Site;
        let stop = &mut |_: &Raw, owner: Owner| match site_only && owner != Owner::Mpi {
            true => Stop::After,
            false => Stop::Not,
        };
        let (frames, _) = unwind::frames(By::Unwinder, place, &stack::current(), &mut self.places, stop);
        let addresses: Vec<usize> = frames.iter().map(|frame| frame.returns).collect();
        let python = self.goes_through_python(&addresses).map(|python| python.ask()).unwrap_or_default();
        self.note(&addresses, &python, config, tape)
    }

    fn goes_through_python(&mut self, addresses: &[usize]) -> Option<&mut Python> {
        let mut owners = addresses.iter().map(|&returns| self.places.at(returns).owner);
        if !owners.any(|owner| owner == Owner::Interpreter) {
            return None;
        }
        if self.python.is_none() && !self.python_is_mute {
            self.python = Python::find().map(Box::new);
            self.python_is_mute = self.python.is_none();
        }
        self.python.as_deref_mut()
    }

    /// The site of a stack that goes through Python's interpreter, with Python's own frames. Of any other, what is given.
    fn through_python(&mut self, native: u64, config: &Config, tape: &mut Tape) -> u64 {
        let Some(python) = self.python.as_deref_mut() else { return native };
        if python.native(native).is_none() {
            return native;
        }
        if let Some(site) = python.recall(native) {
            return site;
        }
        let addresses: Vec<usize> = python.native(native).unwrap_or_default().into();
        let frames = python.ask();
        let site = self.note(&addresses, &frames, config, tape);
        if let Some(python) = self.python.as_deref_mut() {
            python.remember(native, &frames, site);
        }
        site
    }

    /// The site of a stack of return addresses, innermost first.
    fn note(
        &mut self,
        addresses: &[usize],
        python: &python::Frames,
        config: &Config,
        tape: &mut Tape,
    ) -> u64 {
        let mut frames = self.places.counted(addresses, python);
        if config.stacks == Kept::Site {
            // What called the first frame that counts may count too, but was not asked for.
            frames.drain(..frames.len().saturating_sub(1));
        }
        for frame in &mut frames {
            self.blur(frame, &config.lossy.sites_in);
        }
        if config.fold_recursion {
            frames = fold(&frames);
        }
        let (modules, python) = (self.places.modules(), self.python.as_deref());
        let module = |key: u64| match modules.by_key(key) {
            Some(loaded) => Some(&loaded.module),
            None => python?.module(key),
        };
        tape.note_site(&frames, module)
    }

    /// All frames in the same of these pieces of code become one.
    fn blur(&self, frame: &mut Frame, codes: &[Code]) {
        // The call, not what comes after it, lies in the code.
        let within = |code: &&Code| code.start < frame.offset && frame.offset <= code.end;
        for code in codes.iter().filter(within) {
            if self.places.modules().by_key(frame.module).is_some_and(|loaded| loaded.name() == code.module) {
                frame.offset = code.start + 1;
                return;
            }
        }
    }
}

/// Repeated subsequences of a stack (outermost first) folded into their first occurrence, as soon as they are complete:
/// a call has the same stack at every depth of a recursion, direct or through others.
fn fold(frames: &[Frame]) -> Vec<Frame> {
    let mut folded: Vec<Frame> = Vec::new();
    for &frame in frames {
        folded.push(frame);
        let length = folded.len();
        // Mostly the last frame tells.
        let twice = |&n: &usize| {
            folded[length - 1 - n] == frame && folded[length - 2 * n..length - n] == folded[length - n..]
        };
        if let Some(again) = (1..=length / 2).find(twice) {
            folded.truncate(length - again);
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stack: &str, folded: &str) {
        let frames: Vec<Frame> = stack.bytes().map(|b| Frame { module: 1, offset: b.into() }).collect();
        let text: String = fold(&frames).iter().map(|frame| frame.offset as u8 as char).collect();
        assert_eq!(text, folded, "{stack}");
    }

    #[test]
    fn recursion_is_folded_into_its_first_occurrence() {
        check("", "");
        check("mabc", "mabc");
        check("mffff", "mf");
        check("mffffs", "mfs");
        check("mfgfgfgs", "mfgs");
        check("mfgfgfs", "mfgfs");
        check("mffgffgffgs", "mfgs");
        check("mffghhffghs", "mfghs");
        check(&format!("m{}s", "abc".repeat(1000)), "mabcs");
        check("mabcabds", "mabcabds");
    }
}
