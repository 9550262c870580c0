//! By which calls a thread got where it is: a stack of calls, kept by the stack slots that calls store to and returns load from.
//!
//! A call whose slot is not below the ones before ends those: so nothing has to match, and `longjmp`, tail calls and returns
//! that nobody called for mend themselves. A call that is in the path already goes back to where it was made first, so that a
//! recursion has one path.

use refrain_fold::FastMap;
use refrain_fold::bundle::sites::{Frame, Module, NO_MODULE, Sites, Stack};

/// A path, by its number. The first is the empty one.
pub type Path = u32;

/// Longer ones are cut: calls further in have the path of the one that is so deep.
const DEEPEST: u32 = 500;

#[derive(Debug)]
struct Node {
    outer: Path,
    depth: u32,
    frame: Frame,
    site: u64,
}

/// A call that has not come back.
#[derive(Debug)]
struct Call {
    slot: u64,
    mark: u64,
    /// The path from before.
    before: Path,
}

#[derive(Debug)]
pub struct Paths {
    nodes: Vec<Node>,
    /// By path and the frame that it is called from.
    inner: FastMap<(Path, Frame), Path>,
    /// The outermost and highest first.
    calls: Vec<Call>,
    current: Path,
    sites: Sites,
}

impl Default for Paths {
    fn default() -> Paths {
        let root = Node { outer: 0, depth: 0, frame: Frame { module: NO_MODULE, offset: 0 }, site: 0 };
        let (inner, calls, sites) = (FastMap::default(), Vec::new(), Sites::default());
        Paths { nodes: vec![root], inner, calls, current: 0, sites }
    }
}

impl Paths {
    pub fn current(&self) -> Path {
        self.current
    }

    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    /// The site of that path, as of something that lies in no module.
    pub fn site(&self, path: Path) -> u64 {
        self.nodes[path as usize].site
    }

    /// The site of a block that is reached by that path.
    pub fn site_of(&mut self, path: Path, frame: Frame, module: Option<&Module>) -> u64 {
        module.into_iter().for_each(|module| self.sites.add_module(module.clone()));
        self.sites.add_stack(Stack { outer: self.site(path), frame })
    }

    /// Its frames, outermost first.
    pub fn frames(&self, path: Path) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut at = path;
        while at != 0 {
            frames.push(self.nodes[at as usize].frame);
            at = self.nodes[at as usize].outer;
        }
        frames.reverse();
        frames
    }

    /// A call has stored to this slot where it returns to, which is `frame`.
    pub fn call(&mut self, slot: u64, frame: Frame, module: Option<&Module>) {
        self.enter_at(slot, u64::MAX, frame, module);
    }

    /// A function is entered that returns to `frame`, with the stack at this slot and a mark to know it by.
    pub fn enter_at(&mut self, slot: u64, mark: u64, frame: Frame, module: Option<&Module>) {
        self.drop_to(slot);
        self.calls.push(Call { slot, mark, before: self.current });
        self.current = match self.inner.get(&(self.current, frame)) {
            Some(&path) => path,
            None => self.enter(frame, module),
        };
    }

    /// A return has loaded from this slot where it goes to.
    pub fn ret(&mut self, slot: u64) {
        self.drop_to(slot);
    }

    /// A function is left that was entered with a slot at or near this one, where the stack is now: the one that was entered
    /// last, unless others that nobody left are below it. If its mark is that of an entry, it is that one: after its frame is
    /// gone, a function is where its caller was.
    pub fn leave(&mut self, slot: u64, mark: u64) {
        let below = self.calls.iter().rev().take_while(|call| call.slot <= slot);
        let marked = below.take(8).position(|call| call.mark == mark);
        let before = self.calls.len();
        let count = marked.map(|nth| nth + 1).unwrap_or_else(|| {
            let below = self.calls.iter().rev().take_while(|call| call.slot < slot).count();
            let is_its = before.checked_sub(below + 1).is_some_and(|at| self.calls[at].slot == slot);
            if is_its || below == 0 { below + 1 } else { below }
        });
        let left = before.saturating_sub(count);
        if let Some(call) = self.calls.get(left) {
            self.current = call.before;
        }
        self.calls.truncate(left);
    }

    fn drop_to(&mut self, slot: u64) {
        while let Some(call) = self.calls.last()
            && call.slot <= slot
        {
            self.current = call.before;
            self.calls.pop();
        }
    }

    fn enter(&mut self, frame: Frame, module: Option<&Module>) -> Path {
        let from = self.current;
        let mut at = from;
        while at != 0 && self.nodes[at as usize].frame != frame {
            at = self.nodes[at as usize].outer;
        }
        let depth = self.nodes[from as usize].depth + 1;
        let path = match at {
            0 if depth > DEEPEST => from,
            0 => {
                let site = self.site_of(from, frame, module);
                self.nodes.push(Node { outer: from, depth, frame, site });
                (self.nodes.len() - 1) as Path
            }
            again => again,
        };
        self.inner.insert((from, frame), path);
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(offset: u64) -> Frame {
        Frame { module: 1, offset }
    }

    #[track_caller]
    fn check(paths: &Paths, expected: &[u64]) {
        let frames: Vec<u64> = paths.frames(paths.current()).iter().map(|frame| frame.offset).collect();
        assert_eq!(frames, expected);
    }

    #[test]
    fn calls_and_returns() {
        let mut paths = Paths::default();
        paths.call(100, frame(1), None);
        paths.call(90, frame(2), None);
        check(&paths, &[1, 2]);
        let second = paths.current();
        paths.ret(90);
        check(&paths, &[1]);
        paths.call(80, frame(2), None);
        assert_eq!(paths.current(), second);
        paths.ret(80);
        paths.ret(100);
        check(&paths, &[]);
        paths.ret(100);
        check(&paths, &[]);
    }

    #[test]
    fn a_jump_over_frames_mends_itself() {
        let mut paths = Paths::default();
        paths.call(100, frame(1), None);
        paths.call(90, frame(2), None);
        paths.call(80, frame(3), None);
        // Back in the first function, which calls something else.
        paths.call(90, frame(4), None);
        check(&paths, &[1, 4]);
        paths.call(70, frame(5), None);
        paths.ret(100);
        check(&paths, &[]);
    }

    #[test]
    fn functions_are_left() {
        let mut paths = Paths::default();
        paths.enter_at(100, 1, frame(1), None);
        paths.enter_at(90, 2, frame(2), None);
        paths.leave(90, 77);
        check(&paths, &[1]);
        // One that has moved its stack meanwhile.
        paths.enter_at(90, 3, frame(3), None);
        paths.leave(60, 77);
        check(&paths, &[1]);
        // One whose frame is gone already: where its caller was, and known by its mark.
        paths.enter_at(80, 4, frame(4), None);
        paths.leave(100, 4);
        check(&paths, &[1]);
        // Two that were jumped out of.
        paths.enter_at(90, 2, frame(2), None);
        paths.enter_at(80, 5, frame(5), None);
        paths.leave(100, 77);
        check(&paths, &[]);
        paths.leave(100, 77);
        check(&paths, &[]);
    }

    #[test]
    fn a_recursion_has_one_path() {
        let mut paths = Paths::default();
        paths.call(1000, frame(1), None);
        for depth in 0..100 {
            paths.call(900 - 2 * depth, frame(2), None);
            paths.call(899 - 2 * depth, frame(3), None);
        }
        check(&paths, &[1, 2, 3]);
        assert_eq!(paths.nodes.len(), 4);
        paths.ret(900);
        check(&paths, &[1]);
    }

    #[test]
    fn a_path_is_as_deep_as_may_be() {
        let mut paths = Paths::default();
        for depth in 0..5000 {
            paths.call(10_000 - depth, frame(depth), None);
        }
        assert_eq!(paths.frames(paths.current()).len(), DEEPEST as usize);
        paths.ret(10_000);
        check(&paths, &[]);
    }
}
