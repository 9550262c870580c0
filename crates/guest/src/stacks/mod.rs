//! Where a call was made: its stack as a *site*, one number that is the same in every process that runs the same code.
//!
//! `cache` recognises stacks that come again and again, `unwind` finds the frames of any other, with the help of `cfi` and of
//! what `places` remembers of it, and `modules` says what counts of it and gives it a form that does not depend on where
//! things were loaded. Where a stack goes through Python's interpreter, `python` says what it runs. Of a stack that was unwound,
//! only the sum of its return addresses is kept.

mod cache;
mod cfi;
pub mod modules;
mod places;
mod python;
mod unwind;

use refrain_fold::FastMap;
use refrain_fold::bundle::sites::{Frame, Module};

use crate::objects::closed;
use crate::process::hash::add;
use crate::process::stack;
use crate::threads::marks::Caller;
use cache::Cache;
use modules::Owner;
use places::Places;
use python::Python;
pub use unwind::is_mapped;
use unwind::{By, Raw, Stop};

/// Who asks for sites: what counts of a stack, and where new sites go.
pub trait Asker {
    /// Of a stack only the place in the program counts that calls what is traced.
    fn site_only(&self) -> bool;

    /// Calls at all depths of a recursion have the same stack.
    fn folds_recursion(&self) -> bool;

    /// What is recognised is unwound too and compared, for tests.
    fn compares(&self) -> bool;

    /// The offset that stands for this one, and others, in a file of that name.
    fn blurred(&self, file: &str, offset: u64) -> Option<u64>;

    /// The number of a stack, outermost frame first. `module` tells of the modules that its frames are in.
    fn note<'a>(&mut self, frames: &[Frame], module: impl Fn(u64) -> Option<&'a Module>) -> u64;
}

/// More than a program makes traced calls from; where there are more, they are taken for new ones.
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
    /// The site of a call; a new one is told to who asks.
    #[inline]
    pub fn site(&mut self, place: Caller, asker: &mut impl Asker) -> u64 {
        // SAFETY: the wrapper has not returned yet, so what it returns to stands there.
        let returns = if place.slot == 0 { 0 } else { unsafe { (place.slot as *const usize).read() } };
        if closed::count() == self.closed
            && !self.looks_again
            && let Some(site) = self.cache.recall(returns, place)
        {
            return site;
        }
        self.look(returns, place, asker)
    }

    /// Where words on the stack do not say it all.
    #[cold]
    #[inline(never)]
    fn look(&mut self, returns: usize, place: Caller, asker: &mut impl Asker) -> u64 {
        let closed = closed::count();
        if closed != self.closed {
            self.closed = closed;
            self.forget_code();
        }
        // Otherwise it was asked already, and knows nothing.
        let known = self.looks_again.then(|| self.cache.recall(returns, place)).flatten();
        let site = known.unwrap_or_else(|| self.look_outwards(returns, place, asker));
        self.looks_again = asker.compares() || self.python.is_some();
        let site = if self.python.is_some() { self.through_python(site, asker) } else { site };
        if asker.compares() {
            assert_eq!(site, self.look_afresh(place, asker), "a call stack was taken for another");
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

    fn look_outwards(&mut self, returns: usize, place: Caller, asker: &mut impl Asker) -> u64 {
        let site_only = asker.site_only();
        let tells = |owner| !matches!(owner, Owner::LeftOut | Owner::Interpreter);
        if site_only && place.slot != 0 && tells(self.places.at(returns).owner) {
            let site = self.note(&[returns], &python::Frames::default(), asker);
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
        let sum = found.frames.iter().rev().fold(outer, |sum, frame| add(sum, frame.returns));
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
                    None => self.note(&addresses, &python::Frames::default(), asker),
                };
                if self.seen.len() >= MOST_SEEN {
                    self.seen = FastMap::default();
                }
                self.seen.insert(sum, Seen { site, piece: u32::MAX });
                site
            }
        }
    }

    fn unwind(&mut self, place: Caller, site_only: bool) -> Unwound {
        let (cache, mut known) = (&self.cache, None);
        let stop = &mut |frame: &Raw, owner: Owner| {
            if site_only {
                return if owner == Owner::LeftOut { Stop::Not } else { Stop::After };
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
    fn look_afresh(&mut self, place: Caller, asker: &mut impl Asker) -> u64 {
        self.places.forget();
        let site_only = asker.site_only();
        let stop = &mut |_: &Raw, owner: Owner| match site_only && owner != Owner::LeftOut {
            true => Stop::After,
            false => Stop::Not,
        };
        let (frames, _) = unwind::frames(By::Unwinder, place, &stack::current(), &mut self.places, stop);
        let addresses: Vec<usize> = frames.iter().map(|frame| frame.returns).collect();
        let python = self.goes_through_python(&addresses).map(|python| python.ask()).unwrap_or_default();
        self.note(&addresses, &python, asker)
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
    fn through_python(&mut self, native: u64, asker: &mut impl Asker) -> u64 {
        let Some(python) = self.python.as_deref_mut() else { return native };
        if python.native(native).is_none() {
            return native;
        }
        if let Some(site) = python.recall(native) {
            return site;
        }
        let addresses: Vec<usize> = python.native(native).unwrap_or_default().into();
        let frames = python.ask();
        let site = self.note(&addresses, &frames, asker);
        if let Some(python) = self.python.as_deref_mut() {
            python.remember(native, &frames, site);
        }
        site
    }

    /// The site of a stack of return addresses, innermost first.
    fn note(&mut self, addresses: &[usize], python: &python::Frames, asker: &mut impl Asker) -> u64 {
        let mut frames = self.places.counted(addresses, python);
        if asker.site_only() {
            // What called the first frame that counts may count too, but was not asked for.
            frames.drain(..frames.len().saturating_sub(1));
        }
        for frame in &mut frames {
            self.blur(frame, asker);
        }
        if asker.folds_recursion() {
            frames = fold(&frames);
        }
        let (modules, python) = (self.places.modules(), self.python.as_deref());
        let module = |key: u64| match modules.by_key(key) {
            Some(loaded) => Some(&loaded.module),
            None => python?.module(key),
        };
        asker.note(&frames, module)
    }

    /// All frames in the same piece of code become one, where the asker says so.
    fn blur(&self, frame: &mut Frame, asker: &impl Asker) {
        if let Some(loaded) = self.places.modules().by_key(frame.module)
            && let Some(offset) = asker.blurred(loaded.name(), frame.offset)
        {
            frame.offset = offset;
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
