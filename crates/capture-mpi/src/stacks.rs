//! Where a call was made: its stack as a *site*, one number that is the same in every process that runs the same code.
//!
//! `cache` recognises stacks that were seen before, `unwind` finds the frames of one that was not, with the help of `cfi`
//! as to what can be recognised again, and `modules` says what counts of it and gives it a form that does not depend on
//! where things were loaded.

mod cache;
mod cfi;
mod modules;
mod unwind;

use std::sync::atomic::Ordering::Acquire;

use refrain_encode::Tape;
use refrain_fold::bundle::sites::Frame;
use refrain_model::Code;

use crate::config::{Config, Kept};
use crate::memory::stack;
use crate::state;
use cache::Cache;
use modules::{Modules, Owner};
use unwind::Stop;

/// Where a wrapper was called from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// Where on the stack it is written where it returns to; 0 where that is not known.
    pub slot: usize,
    /// The caller's frame pointer, or whatever else it has in that register.
    pub pointer: usize,
}

/// What one thread knows.
#[derive(Debug, Default)]
pub struct Stacks {
    cache: Cache,
    modules: Modules,
    /// How many libraries were closed when the cache was begun.
    closed: u64,
}

impl Stacks {
    /// The site of a call; a new one is told to the tape.
    #[inline]
    pub fn site(&mut self, place: Place, config: &Config, tape: &mut Tape) -> u64 {
        // SAFETY: the wrapper has not returned yet, so what it returns to stands there.
        let returns = if place.slot == 0 { 0 } else { unsafe { (place.slot as *const usize).read() } };
        let closed = state::CLOSED.load(Acquire);
        if closed != self.closed {
            self.closed = closed;
            self.cache.forget();
        }
        match self.cache.recall(returns, place) {
            Some(site) if !config.test_stacks => site,
            Some(site) => {
                let cache = std::mem::take(&mut self.cache);
                let unwound = self.look(returns, place, config, tape);
                self.cache = cache;
                assert_eq!(site, unwound, "a call stack was taken for another");
                site
            }
            None => self.look(returns, place, config, tape),
        }
    }

    /// Another thread goes on here.
    pub fn forget(&mut self) {
        self.cache.forget();
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, returns: usize, place: Place, config: &Config, tape: &mut Tape) -> u64 {
        self.modules.refresh();
        let site_only = config.stacks == Kept::Site;
        if site_only && place.slot != 0 && self.modules.owner(returns) != Owner::Mpi {
            let site = self.note(&[returns], config, tape);
            self.cache.insert_anywhere(returns, site);
            return site;
        }
        let bounds = stack::current();
        let (cache, modules) = (&self.cache, &self.modules);
        let mut known = None;
        let (frames, whole) = unwind::frames(place, &bounds, modules, &mut |frame| {
            if site_only {
                return if modules.owner(frame.returns) == Owner::Mpi { Stop::Not } else { Stop::After };
            }
            known = cache.known(frame);
            if known.is_some() { Stop::Before } else { Stop::Not }
        });
        let mut addresses: Vec<usize> = frames.iter().map(|frame| frame.returns).collect();
        addresses.extend(cache.addresses(known));
        let site = self.note(&addresses, config, tape);
        if place.slot != 0 && whole {
            self.cache.insert(&frames, known, &bounds, site);
        }
        site
    }

    /// The site of a stack of return addresses, innermost first.
    fn note(&self, addresses: &[usize], config: &Config, tape: &mut Tape) -> u64 {
        let mut frames = self.modules.frames(addresses);
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
        let module = |frame: &Frame| self.modules.by_key(frame.module).map(|loaded| loaded.module.clone());
        tape.note_site(&frames, frames.iter().filter_map(module))
    }

    /// All frames in the same of these pieces of code become one.
    fn blur(&self, frame: &mut Frame, codes: &[Code]) {
        // The call, not what comes after it, lies in the code.
        let within = |code: &&Code| code.start < frame.offset && frame.offset <= code.end;
        for code in codes.iter().filter(within) {
            if self.modules.by_key(frame.module).is_some_and(|loaded| loaded.name() == code.module) {
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
        let twice = |&n: &usize| folded[length - 2 * n..length - n] == folded[length - n..];
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
