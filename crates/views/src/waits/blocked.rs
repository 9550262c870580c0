//! A call that may have to wait, and what it waits for.

use std::cell::RefCell;
use std::rc::Rc;

use super::Pattern;
use super::path::Path;

/// A moment of a rank, and by how much it may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) time: i64,
    pub(super) error: u64,
}

/// A rank came at this moment, and somebody may have waited for it.
#[derive(Debug, Clone)]
pub(super) struct Cause {
    pub(super) at: Moment,
    pub(super) rank: u32,
    pub(super) pattern: Pattern,
    /// That of the rank until then.
    pub(super) path: Path,
}

/// A call from when it began until everything is known that it waited for.
#[derive(Debug)]
pub(super) struct Blocked {
    pub(super) rank: u32,
    pub(super) place: u32,
    pub(super) start: Moment,
    pub(super) end: Option<i64>,
    /// By how much that may be wrong.
    pub(super) end_error: u64,
    /// It goes on as soon as one has come (`MPI_Waitsome`), not when all have.
    first: bool,
    /// What it certainly had to wait for.
    sure: Option<Cause>,
    /// What it may have waited for: a receive, without which a send need not end.
    possible: Option<Cause>,
    /// So many have not come yet.
    open: u32,
    told: bool,
}

pub(super) type BlockedRef = Rc<RefCell<Blocked>>;

impl Blocked {
    pub(super) fn new(rank: u32, place: u32, start: Moment, first: bool) -> BlockedRef {
        let (sure, possible) = (None, None);
        let blocked = Blocked {
            rank,
            place,
            start,
            end: None,
            end_error: 0,
            first,
            sure,
            possible,
            open: 0,
            told: false,
        };
        Rc::new(RefCell::new(blocked))
    }

    /// It waits for one more.
    pub(super) fn wait(&mut self) {
        self.open += 1;
    }

    /// Of those it waits for one has come, or nobody knows when it did.
    pub(super) fn come(&mut self, cause: Option<Cause>) {
        self.open = self.open.saturating_sub(1);
        let Some(cause) = cause else { return };
        // Who came after the call's end did not let it end, unless both may be wrong by so much.
        let error = cause.at.error.saturating_add(self.end_error);
        if self.end.is_some_and(|end| cause.at.time.saturating_sub_unsigned(error) > end) {
            return;
        }
        let kept = match cause.pattern {
            Pattern::LateReceiver => &mut self.possible,
            _ => &mut self.sure,
        };
        let better = |kept: &Cause| match self.first {
            true => cause.at.time < kept.at.time,
            false => cause.at.time > kept.at.time,
        };
        if kept.as_ref().is_none_or(better) {
            *kept = Some(cause);
        }
    }

    /// What it waited for, as far as that is known. Both sides of an exchange come late together: a receiver is
    /// named only where the call ended soon after the receive was there, and long after the last message was sent.
    pub(super) fn cause(&self) -> Option<&Cause> {
        let end = self.end?;
        let late = |cause: &&Cause| cause.at.time > self.start.time;
        match (self.sure.as_ref().filter(late), self.possible.as_ref().filter(late)) {
            (Some(sure), Some(possible)) => {
                let (from, until) = (sure.at.time, possible.at.time);
                let (between, after) = (until.saturating_sub(from), end.saturating_sub(until));
                Some(if between > after { possible } else { sure })
            }
            (sure, possible) => sure.or(possible),
        }
    }

    /// How long that was.
    pub(super) fn waited(&self, cause: &Cause) -> u64 {
        let until = cause.at.time.min(self.end.unwrap_or(i64::MAX));
        u64::try_from(until.saturating_sub(self.start.time)).unwrap_or(0)
    }

    /// Whether it is over and nothing more will be known of it. Says so once.
    pub(super) fn is_over(&mut self) -> bool {
        let over = self.end.is_some() && self.open == 0 && !self.told;
        self.told |= over;
        over
    }

    /// Nothing more will come.
    pub(super) fn give_up(&mut self) {
        self.open = 0;
    }
}
