//! Where symbols come from: call stacks and the modules that their frames lie in, by the hash of their content.
//!
//! Stacks are a tree: each is a frame called from another stack, so that what many have in common, or one deep recursion
//! after the other repeats, is there once. A symbol refers to its stack by one number, its *site*, which is the same in
//! every process that runs the same code, wherever that was loaded; 0 is the empty stack. Merging is a union.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use super::codec::{In, Out};
use super::{Error, SymbolEntry};
use crate::loops::Spot;
use crate::xxh64;

/// What [`Frame::module`] says of code that lies in no module: nothing is known of it, and its offset is 0.
pub const NO_MODULE: u64 = 0;

/// What [`Module::path`] begins with where it is a function of Python and no file that was loaded: see [`Module::python`].
pub const PYTHON: &str = "python:";

/// Seeds of [`Module::key`], so that no path stands for a build-id.
const OF_BUILD_ID: u64 = 1;
const OF_PATH: u64 = 2;

/// Where a call returns to; of a function of Python, its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// [`Module::key`] of the module, or [`NO_MODULE`].
    pub module: u64,
    /// Of the return address, from where the module's addresses begin.
    pub offset: u64,
}

impl From<Frame> for Spot {
    fn from(frame: Frame) -> Spot {
        Spot { area: frame.module, at: frame.offset }
    }
}

/// A stack: its innermost frame, and the stack that this was called from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack {
    /// The site of the rest, 0 where there is none.
    pub outer: u64,
    /// Where the innermost call returns to.
    pub frame: Frame,
}

impl Stack {
    /// Never 0.
    pub fn site(&self) -> u64 {
        let mut bytes = [0; 24];
        for (to, word) in bytes.chunks_exact_mut(8).zip([self.outer, self.frame.module, self.frame.offset]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        xxh64(&bytes, 0).max(1)
    }
}

/// A program or a library, as it was found in a process; or a function of Python.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Module {
    /// Where its file lay.
    pub path: String,
    /// Empty where it has none.
    pub build_id: Box<[u8]>,
}

impl Module {
    /// Of a function of Python: its file, and its name. The offsets of its frames are lines.
    pub fn python(&self) -> Option<(&str, &str)> {
        let named = self.path.strip_prefix(PYTHON).filter(|_| self.build_id.is_empty())?;
        // The name of a function has no colon; that of a file may have one.
        named.rsplit_once(':')
    }

    /// Two modules with one build-id are the same code, whatever their paths; without one the path must do.
    pub fn is_same(&self, other: &Module) -> bool {
        self.build_id == other.build_id && (!self.build_id.is_empty() || self.path == other.path)
    }

    /// Equal for those that are the same. Never 0.
    pub fn key(&self) -> u64 {
        let key = match self.build_id.is_empty() {
            true => xxh64(self.path.as_bytes(), OF_PATH),
            false => xxh64(&self.build_id, OF_BUILD_ID),
        };
        key.max(1)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
/// The call stacks that symbols refer to, and the modules that these are in.
pub struct Sites {
    /// By site. With a stack all that it was called from is there.
    pub stacks: BTreeMap<u64, Stack>,
    /// By key.
    pub modules: BTreeMap<u64, Module>,
    /// Two of them have one hash of 64 bits, and one of the two is not here: with 100,000 stacks the chance is 3 in 10^10.
    /// What has met this is neither merged nor written: [`Error::Clash`].
    pub(super) clashed: bool,
}

impl Sites {
    /// There is neither a stack nor a module.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty() && self.modules.is_empty()
    }

    /// Adds a stack, outermost frame first, and gives its site. The frames' modules are for [`Sites::add_module`].
    pub fn add(&mut self, frames: &[Frame]) -> u64 {
        frames.iter().fold(0, |outer, &frame| self.add_stack(Stack { outer, frame }))
    }

    /// The same, and the modules of its frames as `module` has them by key. What is there already costs nothing but its hash.
    pub fn add_with<'a>(&mut self, frames: &[Frame], module: impl Fn(u64) -> Option<&'a Module>) -> u64 {
        let mut stacks = Vec::with_capacity(frames.len());
        let site = frames.iter().fold(0, |outer, &frame| {
            let stack = Stack { outer, frame };
            let site = stack.site();
            stacks.push((site, stack));
            site
        });
        // With a stack all that it was called from is there.
        for (site, stack) in stacks.into_iter().rev() {
            match self.stacks.entry(site) {
                Entry::Vacant(entry) => drop(entry.insert(stack)),
                Entry::Occupied(known) => {
                    self.clashed |= *known.get() != stack;
                    break;
                }
            }
            if let Some(module) = module(stack.frame.module) {
                match self.modules.get(&stack.frame.module) {
                    Some(known) if known == module => {}
                    _ => self.add_module(module.clone()),
                }
            }
        }
        site
    }

    /// Adds a stack whose outer part is there, and says its site.
    pub fn add_stack(&mut self, stack: Stack) -> u64 {
        let site = stack.site();
        self.clashed |= *self.stacks.entry(site).or_insert(stack) != stack;
        site
    }

    /// Of several paths of the same code the lowest is kept, so that the order of adding leaves no mark.
    pub fn add_module(&mut self, module: Module) {
        let known = self.modules.entry(module.key()).or_insert_with(|| module.clone());
        self.clashed |= !known.is_same(&module);
        if module < *known {
            *known = module;
        }
    }

    /// Whether something here and something there would be taken for one another.
    fn clashes_with(&self, other: &Sites) -> bool {
        let stacks =
            other.stacks.iter().any(|(site, stack)| self.stacks.get(site).is_some_and(|s| s != stack));
        let modules = other
            .modules
            .iter()
            .any(|(key, module)| self.modules.get(key).is_some_and(|m| !m.is_same(module)));
        stacks || modules
    }

    /// `other` can be joined with this, and what comes of it says where every call was made.
    pub(super) fn check_join(&self, other: &Sites) -> Result<(), Error> {
        if self.clashed || other.clashed || self.clashes_with(other) { Err(Error::Clash) } else { Ok(()) }
    }

    /// The stack of a site and all that it was called from, innermost first, each with its own site.
    pub fn outwards(&self, site: u64) -> impl Iterator<Item = (u64, Stack)> {
        let with_site = |site: u64| Some((site, *self.stacks.get(&site)?));
        // No stack is deeper than there are stacks: one that seems to be called from itself ends too.
        let all = std::iter::successors(with_site(site), move |(_, stack)| with_site(stack.outer));
        all.take(self.stacks.len())
    }

    /// The frames of a site, outermost first; none for 0.
    pub fn frames(&self, site: u64) -> Vec<Frame> {
        let mut frames: Vec<Frame> = self.outwards(site).map(|(_, stack)| stack.frame).collect();
        frames.reverse();
        frames
    }

    /// All of `other` too.
    pub fn join(&mut self, other: &Sites) {
        self.clashed |= other.clashed || self.clashes_with(other);
        for (site, stack) in &other.stacks {
            self.stacks.entry(*site).or_insert(*stack);
        }
        other.modules.values().cloned().for_each(|module| self.add_module(module));
    }

    /// Drops the stacks that none of these symbols has, and modules without a frame.
    pub(super) fn keep_used(&mut self, symbols: &[SymbolEntry]) {
        let mut used = HashSet::new();
        for symbol in symbols {
            let new = self.outwards(symbol.site).take_while(|(site, _)| !used.contains(site));
            let new: Vec<u64> = new.map(|(site, _)| site).collect();
            used.extend(new);
        }
        self.stacks.retain(|site, _| used.contains(site));
        let used: HashSet<u64> = self.stacks.values().map(|stack| stack.frame.module).collect();
        self.modules.retain(|key, _| used.contains(key));
    }

    /// Every symbol's stack is there with all that it was called from, every frame's module, and all of them are what
    /// they are called.
    pub(super) fn validate(&self, symbols: &[SymbolEntry]) -> Result<(), Error> {
        if self.clashed {
            return Err(Error::Clash);
        }
        let there = |site: u64| site == 0 || self.stacks.contains_key(&site);
        let sound = |(site, stack): (&u64, &Stack)| {
            let module = match stack.frame.module {
                NO_MODULE => stack.frame.offset == 0,
                module => self.modules.contains_key(&module),
            };
            *site == stack.site() && there(stack.outer) && module
        };
        let told = self.stacks.iter().all(sound) && self.modules.iter().all(|(key, m)| *key == m.key());
        match symbols.iter().position(|symbol| !there(symbol.site)) {
            Some(symbol) => Err(Error::Site { symbol: Some(symbol) }),
            None if told => Ok(()),
            None => Err(Error::Site { symbol: None }),
        }
    }
}

impl Out {
    /// Three numbers.
    pub fn stack(&mut self, stack: &Stack) {
        [stack.outer, stack.frame.module, stack.frame.offset].into_iter().for_each(|word| self.number(word));
    }

    /// Path and build-id.
    pub fn module(&mut self, module: &Module) {
        self.block(module.path.as_bytes());
        self.block(&module.build_id);
    }
}

impl In<'_> {
    /// What [`Out::stack`] wrote.
    pub fn stack(&mut self) -> Result<Stack, Error> {
        let outer = self.number()?;
        Ok(Stack { outer, frame: Frame { module: self.number()?, offset: self.number()? } })
    }

    /// What [`Out::module`] wrote.
    pub fn module(&mut self) -> Result<Module, Error> {
        let path = String::from_utf8_lossy(self.block()?).into_owned();
        Ok(Module { path, build_id: self.block()?.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(offset: u64) -> Frame {
        Frame { module: program("/p").key(), offset }
    }

    fn program(path: &str) -> Module {
        Module { path: path.into(), build_id: [1, 2, 3].into() }
    }

    #[test]
    fn stacks_share_what_they_have_in_common() {
        let mut sites = Sites::default();
        let a = sites.add(&[frame(1), frame(2), frame(3)]);
        let b = sites.add(&[frame(1), frame(2), frame(4)]);
        assert_eq!(
            (a, sites.add(&[]), sites.stacks.len()),
            (sites.add(&[frame(1), frame(2), frame(3)]), 0, 4)
        );
        assert_ne!(a, b);
        assert_eq!(sites.frames(b), [frame(1), frame(2), frame(4)]);
        assert_eq!(sites.frames(0), []);
        assert_ne!(sites.add(&[frame(2), frame(1)]), sites.add(&[frame(1), frame(2)]));
    }

    #[test]
    fn one_build_id_is_one_module() {
        let mut sites = Sites::default();
        for path in ["/b", "/a", "/c"] {
            sites.add_module(program(path));
        }
        assert_eq!(sites.modules.values().collect::<Vec<_>>(), [&program("/a")]);
        let unnamed = |path: &str| Module { path: path.into(), build_id: [].into() }.key();
        assert_ne!(unnamed("/a"), unnamed("/b"));
    }

    /// Nobody can make two stacks of one hash, so one is put where another belongs.
    #[test]
    fn two_with_one_hash_are_noticed() {
        let other = Stack { outer: 0, frame: frame(9) };
        let stack = Stack { outer: 0, frame: frame(1) };
        let mut forged = Sites::default();
        forged.stacks.insert(stack.site(), other);
        forged.add_module(program("/a"));
        let mut sound = Sites::default();
        sound.add_stack(stack);
        sound.add_module(program("/a"));
        assert_eq!(sound.check_join(&forged), Err(Error::Clash));
        assert_eq!(sound.check_join(&sound), Ok(()));
        for add in [
            |sites: &mut Sites, stack: Stack| {
                sites.add_stack(stack);
            },
            |sites: &mut Sites, stack: Stack| {
                sites.add_with(&[stack.frame], |_| None);
            },
            |sites: &mut Sites, stack: Stack| {
                let mut one = Sites::default();
                one.add_stack(stack);
                sites.join(&one);
            },
        ] {
            let mut sites = forged.clone();
            add(&mut sites, other);
            assert!(!sites.clashed);
            add(&mut sites, stack);
            assert_eq!(sites.validate(&[]), Err(Error::Clash));
        }
        let lonely = Module { path: "/b".into(), build_id: [].into() };
        let mut sites = Sites::default();
        sites.modules.insert(lonely.key(), program("/a"));
        sites.add_module(lonely);
        assert_eq!(sites.validate(&[]), Err(Error::Clash));
    }

    #[test]
    fn functions_of_python_have_a_file_and_a_name() {
        let module = |path: &str| Module { path: path.into(), build_id: [].into() };
        let step = module("python:/home/me/a:b.py:Solver.step");
        assert_eq!(step.python(), Some(("/home/me/a:b.py", "Solver.step")));
        assert_eq!(module("/usr/bin/python:3").python(), None);
        assert_eq!(program("python:/a.py:f").python(), None, "it has a build-id");
    }

    #[test]
    fn what_is_missing_is_noticed() {
        let symbol = |site| SymbolEntry {
            bytes: [1].into(),
            site,
            lanes: 0,
            tally: super::super::Tally { total: 0, min: 0, max: 0 },
            classes: Default::default(),
        };
        let mut sites = Sites::default();
        let site = sites.add(&[frame(1), frame(2)]);
        assert_eq!(sites.validate(&[]), Err(Error::Site { symbol: None }), "no module");
        sites.add_module(program("/a"));
        assert_eq!(sites.validate(&[symbol(0), symbol(site)]), Ok(()));
        assert_eq!(sites.validate(&[symbol(0), symbol(site + 1)]), Err(Error::Site { symbol: Some(1) }));
        let mut cut = sites.clone();
        cut.stacks.retain(|known, _| *known == site);
        assert_eq!(cut.validate(&[]), Err(Error::Site { symbol: None }), "called from nowhere");
        sites.add(&[frame(1), frame(3)]);
        sites.keep_used(&[symbol(site)]);
        assert_eq!((sites.stacks.len(), sites.modules.len()), (2, 1));
        sites.keep_used(&[]);
        assert!(sites.is_empty());
    }
}
