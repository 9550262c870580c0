//! Messages that come to a rank, and those that its calls have not received yet.

use std::collections::BTreeMap;

use super::clock::Time;

/// In the order in which they are sent.
#[derive(Debug)]
pub struct Owed<M> {
    coming: BTreeMap<(Time, u64), M>,
    next: u64,
    /// So many messages calls have received, and were not given yet.
    owed: u64,
}

impl<M> Default for Owed<M> {
    fn default() -> Owed<M> {
        Owed { coming: BTreeMap::new(), next: 0, owed: 0 }
    }
}

impl<M> Owed<M> {
    /// A message is sent at that time.
    pub fn expect(&mut self, time: Time, message: M) {
        self.coming.insert((time, self.next), message);
        self.next += 1;
    }

    /// A call receives so many.
    pub fn receive(&mut self, messages: u64) {
        self.owed = self.owed.saturating_add(messages);
    }

    /// The first one, if one is owed and it is sent before that time: it may be waited for.
    pub fn due(&mut self, before: Time) -> Option<M> {
        let first = self.coming.first_entry().filter(|first| self.owed > 0 && first.key().0 < before)?;
        self.owed -= 1;
        Some(first.remove())
    }

    /// The first one, if one is owed and `is_there` says so.
    pub fn due_if(&mut self, is_there: impl FnOnce(&mut M) -> bool) -> Option<M> {
        let mut first = self.coming.first_entry().filter(|_| self.owed > 0)?;
        if !is_there(first.get_mut()) {
            return None;
        }
        self.owed -= 1;
        Some(first.remove())
    }

    /// Whatever is left.
    pub fn next(&mut self) -> Option<M> {
        self.coming.pop_first().map(|(_, message)| message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64, rank: u32) -> Time {
        Time { phase: 0, ns, rank }
    }

    #[test]
    fn what_is_sent_later_stays_owed() {
        let mut owed = Owed::default();
        owed.expect(at(30, 1), "c");
        owed.expect(at(10, 2), "a");
        owed.expect(at(10, 3), "b");
        assert_eq!(owed.due(at(100, 0)), None, "nobody asked");
        owed.receive(3);
        assert_eq!(owed.due(at(10, 2)), None);
        assert_eq!(
            (owed.due(at(10, 4)), owed.due(at(10, 4)), owed.due(at(10, 4))),
            (Some("a"), Some("b"), None)
        );
        assert_eq!(owed.due_if(|_| false), None);
        assert_eq!(owed.due_if(|_| true), Some("c"));
        owed.expect(at(40, 1), "d");
        assert_eq!((owed.due_if(|_| true), owed.next()), (None, Some("d")));
    }
}
