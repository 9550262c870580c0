//! What is known of the places that calls return to: how their frames are unwound, and what they are called in a site.
//! Looked up once for each place. A new stack is mostly made of places that others had too.

use refrain_fold::FastMap;
use refrain_fold::bundle::sites::Frame;

use super::cfi::{self, Cfa, Rule, Saved};
use super::modules::{Modules, Owner};
use super::python;

/// A place that a call returns to.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// By the compiler's tables, or where there are none by the frame pointer.
    pub rule: Rule,
    pub has_tables: bool,
    pub owner: Owner,
    pub frame: Frame,
}

/// Of code without tables.
const BY_POINTER: Rule = Rule { cfa: Cfa::Frame(16), saved: Saved::At(-16) };

/// More than programs have; where there are more, all are looked up again.
const MOST: usize = 1 << 17;

#[derive(Debug, Default)]
pub struct Places {
    known: FastMap<usize, Known>,
    modules: Modules,
    /// Modules went away since this was last asked.
    gone: bool,
}

impl Places {
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    #[inline]
    pub fn at(&mut self, returns: usize) -> Known {
        match self.known.get(&returns) {
            Some(known) => *known,
            None => self.look(returns),
        }
    }

    #[cold]
    fn look(&mut self, returns: usize) -> Known {
        if self.modules.refresh() {
            self.known.clear();
            self.gone = true;
        }
        let rule = if cfg!(target_arch = "x86_64") { cfi::rule(returns) } else { Some(cfi::UNKNOWN) };
        let known = Known {
            rule: rule.unwrap_or(BY_POINTER),
            has_tables: rule.is_some(),
            owner: self.modules.owner(returns),
            frame: self.modules.frame(returns),
        };
        // Code in no module may be gone tomorrow, and nobody tells.
        if self.modules.find(returns.wrapping_sub(1)).is_some() {
            if self.known.len() >= MOST {
                self.known = FastMap::default();
            }
            self.known.insert(returns, known);
        }
        known
    }

    /// Whether modules went away since this was last asked: then places may be others than they were.
    pub fn lost_some(&mut self) -> bool {
        std::mem::take(&mut self.gone)
    }

    /// Other code may have come to lie at known places.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// The frames that count of a stack of return addresses (innermost first), outermost first. Python's stand in the place
    /// of its interpreter's, if there are any.
    pub fn counted(&mut self, stack: &[usize], python: &python::Frames) -> Vec<Frame> {
        let mut insteads = self.insteads(stack, python);
        let mut frames = Vec::with_capacity(stack.len());
        let mut begun = false;
        for (index, &returns) in stack.iter().enumerate().rev() {
            let Known { owner, frame, .. } = self.at(returns);
            begun = begun || owner != Owner::System && !Modules::starts_program(returns);
            if owner == Owner::Interpreter && !python.frames.is_empty() {
                // The outermost are last.
                while let Some((_, instead)) = insteads.pop_if(|(at, _)| *at == index) {
                    frames.extend(instead.iter().rev());
                }
            } else if begun && owner != Owner::LeftOut {
                frames.push(frame);
            }
        }
        frames
    }

    /// Which of Python's frames stand where in a stack of return addresses, both innermost first: in the place of the
    /// function that ran them, where all of its runs are known, and otherwise all in the place of the innermost frame of the
    /// interpreter.
    fn insteads<'a>(&mut self, stack: &[usize], python: &'a python::Frames) -> Vec<(usize, &'a [Frame])> {
        if python.frames.is_empty() {
            return Vec::new();
        }
        let interpreted =
            |places: &mut Places, index: &usize| places.at(stack[*index]).owner == Owner::Interpreter;
        let interpreted: Vec<usize> = (0..stack.len()).filter(|index| interpreted(self, index)).collect();
        let evaluator = python::evaluator();
        let evaluates = |index: &usize| evaluator.is_some() && cfi::function(stack[*index]) == evaluator;
        let runs: Vec<usize> = interpreted.iter().copied().filter(evaluates).collect();
        let each = vec![1; python.frames.len()];
        let lengths = if python.runs.is_empty() { &each } else { &python.runs };
        if runs.len() != lengths.len() || lengths.iter().sum::<usize>() != python.frames.len() {
            let innermost = interpreted.first().map(|&index| (index, &python.frames[..]));
            return innermost.into_iter().collect();
        }
        let mut left = &python.frames[..];
        let mut take = |length: usize| {
            let (first, rest) = left.split_at(length);
            left = rest;
            first
        };
        runs.into_iter().zip(lengths).map(|(index, &length)| (index, take(length))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_what_its_module_and_its_tables_say() {
        let mut places = Places::default();
        let here = a_place_is_what_its_module_and_its_tables_say as *const () as usize + 40;
        let first = places.at(here);
        assert_eq!(places.known.len(), 1);
        assert_eq!((first.owner, first.frame), (places.modules.owner(here), places.modules.frame(here)));
        assert_eq!(Some(first.rule), cfi::rule(here).filter(|_| first.has_tables).or(Some(BY_POINTER)));
        assert_eq!(places.at(here).frame, first.frame);
        // In no module: not kept.
        assert!(!places.at(16).has_tables || cfg!(not(target_arch = "x86_64")));
        assert_eq!(places.known.len(), 1);
        assert!(!places.lost_some());
        places.forget();
        assert!(places.known.is_empty());
    }
}
