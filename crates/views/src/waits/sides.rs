//! What a side of a message tells the call that waits for the other one.

use super::Pattern;
use super::blocked::{BlockedRef, Cause, Moment};
use super::path::Path;
use crate::meaning::messages::{News, SideRef};

/// A send or a receive, as it was posted.
#[derive(Debug)]
pub(super) struct Post {
    rank: u32,
    at: Moment,
    path: Path,
    /// The call that waits for it.
    pub(super) blocked: Option<BlockedRef>,
    /// When a call said that it was over.
    pub(super) over: Option<Moment>,
}

impl Post {
    pub(super) fn new(rank: u32, at: Moment, path: Path) -> Post {
        Post { rank, at, path, blocked: None, over: None }
    }

    fn cause(&self, pattern: Pattern) -> Option<Cause> {
        Some(Cause { at: self.at, rank: self.rank, pattern, path: self.path.clone() })
    }
}

/// A call begins that waits for it.
pub(super) fn wait(side: &SideRef<Post>, blocked: &BlockedRef) {
    let mut side = side.borrow_mut();
    if !side.matched {
        blocked.borrow_mut().wait();
        side.what.blocked = Some(blocked.clone());
    }
}

/// Lets those hear of it that wait for it. The calls of which more is known; messages that were received before they were
/// sent are counted.
pub(super) fn hear(news: News<Post>, reversed: &mut u64) -> Vec<BlockedRef> {
    let come = |side: &SideRef<Post>, cause: Option<Cause>| {
        let blocked = side.borrow_mut().what.blocked.take();
        if let Some(blocked) = &blocked {
            blocked.borrow_mut().come(cause);
        }
        blocked
    };
    let (send, receive) = match news {
        News::Left(side) => return come(&side, None).into_iter().collect(),
        News::Met { send, receive } => (send, receive),
    };
    let sender = send.borrow().what.cause(Pattern::LateSender);
    let receiver = receive.borrow().what.cause(Pattern::LateReceiver);
    let early = receive.borrow().what.over.is_some_and(|over| {
        let sent = send.borrow().what.at;
        sent.time.saturating_sub_unsigned(sent.error.saturating_add(over.error)) > over.time
    });
    *reversed += u64::from(early);
    let probe = receive.borrow().probe;
    let mut heard: Vec<BlockedRef> = come(&receive, sender).into_iter().collect();
    if !probe {
        heard.extend(come(&send, receiver));
    }
    heard
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meaning::messages::{Messages, Wanted};
    use crate::waits::blocked::Blocked;

    fn at(time: i64) -> Moment {
        Moment { time, error: 0 }
    }

    #[test]
    fn both_sides_hear_of_each_other() {
        let mut messages = Messages::default();
        let receive = messages.side(Post::new(1, at(5), Path::default()), (7, 1), false);
        messages.receive(&receive, Wanted { source: Some(0), tag: Some(9) });
        let blocked = Blocked::new(1, 0, at(5), false);
        wait(&receive, &blocked);
        receive.borrow_mut().what.over = Some(at(20));
        let send = messages.side(Post::new(0, at(30), Path::default()), (7, 1), false);
        messages.send(&send, 0, 9);
        let mut reversed = 0;
        let heard: Vec<_> =
            messages.take_news().into_iter().flat_map(|news| hear(news, &mut reversed)).collect();
        assert_eq!((heard.len(), reversed), (1, 1));
        blocked.borrow_mut().end = Some(40);
        assert_eq!(blocked.borrow().cause().map(|cause| (cause.rank, cause.at.time)), Some((0, 30)));
    }
}
