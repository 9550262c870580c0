//! Collective calls: who has come, and who waits for whom.

use std::cell::RefCell;
use std::rc::Rc;

use super::Pattern;
use super::blocked::{BlockedRef, Cause, Moment};
use super::path::Path;

/// Whom members need before they can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Barrier,
    Everybody,
    /// The root, a rank of the world.
    From(u32),
    /// The root needs everybody.
    To(u32),
    Lower,
}

impl Shape {
    fn pattern(self) -> Pattern {
        match self {
            Shape::Barrier => Pattern::Barrier,
            Shape::Everybody => Pattern::AllToAll,
            Shape::From(_) => Pattern::OneToAll,
            Shape::To(_) => Pattern::AllToOne,
            Shape::Lower => Pattern::Scan,
        }
    }
}

/// One collective call of all members of a communicator.
#[derive(Debug)]
pub(super) struct Together {
    shape: Shape,
    members: usize,
    came: usize,
    last: Option<Cause>,
    root: Option<Cause>,
    /// For scans: who has come, by rank in the communicator.
    by_rank: Vec<Option<Cause>>,
    waiting: Vec<(usize, BlockedRef)>,
    /// What members computed since the last such call: the sum, the most, by whom and before which call.
    pub(super) computed: u64,
    pub(super) most: (u64, u32, u32),
}

pub(super) type TogetherRef = Rc<RefCell<Together>>;

impl Together {
    pub(super) fn new(shape: Shape, members: usize) -> Together {
        let by_rank = if shape == Shape::Lower { vec![None; members] } else { Vec::new() };
        Together {
            shape,
            members,
            came: 0,
            last: None,
            root: None,
            by_rank,
            waiting: Vec::new(),
            computed: 0,
            most: (0, 0, 0),
        }
    }

    /// A member has come, the one with rank `index` in the communicator. Gives those of which everything is known now.
    pub(super) fn come(&mut self, index: usize, rank: u32, at: Moment, path: Path) -> Vec<BlockedRef> {
        let cause = Cause { at, rank, pattern: self.shape.pattern(), path };
        self.came += 1;
        if let Some(place) = self.by_rank.get_mut(index) {
            *place = Some(cause.clone());
        }
        if matches!(self.shape, Shape::From(root) if root == rank) {
            self.root = Some(cause.clone());
        }
        if self.last.as_ref().is_none_or(|last| at.time > last.at.time) {
            self.last = Some(cause);
        }
        // Those that wait are looked at only when that may help one of them.
        let ready = match self.shape {
            Shape::From(root) => root == rank,
            Shape::Lower => true,
            _ => self.is_whole(),
        };
        let mut over = Vec::new();
        if !ready {
            return over;
        }
        for (index, blocked) in std::mem::take(&mut self.waiting) {
            match self.needed(index) {
                Some(cause) => {
                    blocked.borrow_mut().come(cause);
                    over.push(blocked);
                }
                None => self.waiting.push((index, blocked)),
            }
        }
        over
    }

    /// A call of this member begins that waits for it to end.
    pub(super) fn wait(&mut self, index: usize, rank: u32, blocked: &BlockedRef) {
        let needs_others = match self.shape {
            Shape::From(root) => root != rank,
            Shape::To(root) => root == rank,
            _ => true,
        };
        if needs_others && self.needed(index).is_none() {
            blocked.borrow_mut().wait();
            self.waiting.push((index, blocked.clone()));
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.came == self.members
    }

    /// How unevenly members computed before it, beyond the mean.
    pub(super) fn imbalance(&self) -> u64 {
        self.most.0.saturating_sub(self.computed / self.members.max(1) as u64)
    }

    /// Those that still wait.
    pub(super) fn left(&mut self) -> impl Iterator<Item = BlockedRef> {
        std::mem::take(&mut self.waiting).into_iter().map(|(_, blocked)| blocked)
    }

    /// The last of those that a member needs, if all have come.
    fn needed(&self, index: usize) -> Option<Option<Cause>> {
        match self.shape {
            Shape::From(_) => self.root.clone().map(Some),
            Shape::Lower => {
                let lower = self.by_rank.get(..index)?;
                let all: Option<Vec<&Cause>> = lower.iter().map(Option::as_ref).collect();
                Some(all?.into_iter().max_by_key(|cause| cause.at.time).cloned())
            }
            _ => self.is_whole().then(|| self.last.clone()),
        }
    }
}
