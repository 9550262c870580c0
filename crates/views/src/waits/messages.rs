//! Which send meets which receive.
//!
//! Messages between two ranks on one communicator with one tag meet receives in the order in which both were posted. A
//! receive from any source or with any tag is held until its status tells what it met; receives that were posted after it
//! and could have met the same wait for that. If no status was kept, nobody can tell any more: such messages are counted
//! and left out.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::Pattern;
use super::blocked::{BlockedRef, Cause, Moment};
use super::path::Path;

/// A communicator and the rank that receives.
type Address = (u64, u32);

/// One side of a message.
#[derive(Debug)]
pub(super) struct Side {
    rank: u32,
    at: Moment,
    path: Path,
    to: Address,
    /// In the order in which receives were posted.
    number: u64,
    /// It looks at the message and leaves it there.
    probe: bool,
    matched: bool,
    /// The call that waits for it.
    blocked: Option<BlockedRef>,
    /// When a call said that it was over.
    over: Option<Moment>,
}

pub(super) type SideRef = Rc<RefCell<Side>>;

/// What a receive takes; `None` stands for anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) source: Option<u32>,
    pub(super) tag: Option<i64>,
}

impl Wanted {
    fn takes(&self, source: u32, tag: i64) -> bool {
        self.source.is_none_or(|wanted| wanted == source) && self.tag.is_none_or(|wanted| wanted == tag)
    }
}

/// Of more kinds of messages that nobody can tell apart, all that go to that rank count as such.
const MOST_UNCLEAR: usize = 64;

/// Sends and receives of one source and tag that have not met.
#[derive(Default)]
struct Lane {
    sends: VecDeque<SideRef>,
    receives: VecDeque<SideRef>,
}

/// What is on its way to one rank on one communicator.
#[derive(Default)]
struct Mailbox {
    lanes: HashMap<(u32, i64), Lane>,
    /// Receives of which it is not known yet what they met.
    held: Vec<(SideRef, Wanted)>,
    /// Some receive took one of these, and nobody knows which.
    unclear: Vec<Wanted>,
}

#[derive(Default)]
pub(super) struct Messages {
    mailboxes: HashMap<Address, Mailbox>,
    posted: u64,
    /// Sends and receives that nobody can match.
    pub(super) unclear: u64,
    /// Messages that were received before they were sent.
    pub(super) reversed: u64,
    /// Calls of which everything is known now.
    over: Vec<BlockedRef>,
}

impl Messages {
    pub(super) fn side(&mut self, rank: u32, at: Moment, path: Path, to: Address, probe: bool) -> SideRef {
        self.posted += 1;
        let number = self.posted;
        let side = Side { rank, at, path, to, number, probe, matched: false, blocked: None, over: None };
        Rc::new(RefCell::new(side))
    }

    pub(super) fn send(&mut self, side: &SideRef, source: u32, tag: i64) {
        let to = side.borrow().to;
        let mailbox = self.mailboxes.entry(to).or_default();
        if mailbox.unclear.iter().any(|wanted| wanted.takes(source, tag)) {
            self.leave(side);
            return;
        }
        mailbox.lanes.entry((source, tag)).or_default().sends.push_back(side.clone());
        self.meet(to, Wanted { source: Some(source), tag: Some(tag) });
    }

    pub(super) fn receive(&mut self, side: &SideRef, wanted: Wanted) {
        match (wanted.source, wanted.tag) {
            (Some(source), Some(tag)) => self.expect(side, source, tag),
            _ => {
                let to = side.borrow().to;
                self.mailboxes.entry(to).or_default().held.push((side.clone(), wanted));
            }
        }
    }

    /// A receive that could take several met this one.
    pub(super) fn met(&mut self, side: &SideRef, source: u32, tag: i64) {
        if let Some(wanted) = self.let_go(side) {
            self.expect(side, source, tag);
            self.meet(side.borrow().to, wanted);
        }
    }

    /// A receive is over, and nobody knows what it met, if it could take several.
    pub(super) fn met_unknown(&mut self, side: &SideRef) {
        let Some(wanted) = self.let_go(side) else { return };
        self.leave(side);
        if side.borrow().probe {
            return;
        }
        let to = side.borrow().to;
        let mailbox = self.mailboxes.entry(to).or_default();
        if !mailbox.unclear.contains(&wanted) {
            mailbox.unclear.push(wanted);
        }
        // Every message is held against them.
        let wanted = if mailbox.unclear.len() > MOST_UNCLEAR {
            let all = Wanted { source: None, tag: None };
            mailbox.unclear = vec![all];
            all
        } else {
            wanted
        };
        let mut left = Vec::new();
        mailbox.lanes.retain(|(source, tag), lane| {
            let stays = !wanted.takes(*source, *tag);
            if !stays {
                left.extend(lane.sends.drain(..).chain(lane.receives.drain(..)));
            }
            stays
        });
        left.iter().for_each(|side| self.leave(side));
    }

    /// A message or receive was cancelled.
    pub(super) fn cancelled(&mut self, side: &SideRef) {
        self.let_go(side);
        let to = side.borrow().to;
        if let Some(mailbox) = self.mailboxes.get_mut(&to) {
            for lane in mailbox.lanes.values_mut() {
                lane.sends.retain(|other| !Rc::ptr_eq(side, other));
                lane.receives.retain(|other| !Rc::ptr_eq(side, other));
            }
        }
        self.come(side, None);
        self.meet(to, Wanted { source: None, tag: None });
    }

    /// A call begins that waits for it.
    pub(super) fn wait(&mut self, side: &SideRef, blocked: &BlockedRef) {
        let mut side = side.borrow_mut();
        if !side.matched {
            blocked.borrow_mut().wait();
            side.blocked = Some(blocked.clone());
        }
    }

    /// A call says that it is over.
    pub(super) fn over(&mut self, side: &SideRef, at: Moment) {
        side.borrow_mut().over = Some(at);
    }

    /// Calls of which everything is known since this was asked last.
    pub(super) fn take_over(&mut self) -> Vec<BlockedRef> {
        std::mem::take(&mut self.over)
    }

    /// What is left: calls that still wait, how many sends and how many receives.
    pub(super) fn finish(self) -> (Vec<BlockedRef>, u64, u64) {
        let (mut blocked, mut sends, mut receives) = (self.over, 0, 0);
        for mailbox in self.mailboxes.into_values() {
            let held = mailbox.held.into_iter().map(|(side, _)| side);
            let (mut sent, mut expected) = (Vec::new(), held.collect::<Vec<_>>());
            for lane in mailbox.lanes.into_values() {
                sent.extend(lane.sends);
                expected.extend(lane.receives);
            }
            sends += sent.len() as u64;
            receives += expected.len() as u64;
            blocked.extend(sent.iter().chain(&expected).filter_map(|side| side.borrow_mut().blocked.take()));
        }
        (blocked, sends, receives)
    }

    /// Sends and receives that have not met, and mailboxes for them.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let lanes = self.mailboxes.values().flat_map(|mailbox| mailbox.lanes.values());
        self.mailboxes.len() + lanes.map(|lane| lane.sends.len() + lane.receives.len()).sum::<usize>()
    }

    fn expect(&mut self, side: &SideRef, source: u32, tag: i64) {
        let to = side.borrow().to;
        let mailbox = self.mailboxes.entry(to).or_default();
        if mailbox.unclear.iter().any(|wanted| wanted.takes(source, tag)) {
            self.leave(side);
            return;
        }
        let receives = &mut mailbox.lanes.entry((source, tag)).or_default().receives;
        let number = side.borrow().number;
        let at = receives.partition_point(|other| other.borrow().number < number);
        receives.insert(at, side.clone());
        self.meet(to, Wanted { source: Some(source), tag: Some(tag) });
    }

    fn let_go(&mut self, side: &SideRef) -> Option<Wanted> {
        let held = &mut self.mailboxes.get_mut(&side.borrow().to)?.held;
        let at = held.iter().position(|(other, _)| Rc::ptr_eq(side, other))?;
        Some(held.remove(at).1)
    }

    fn leave(&mut self, side: &SideRef) {
        self.unclear += 1;
        side.borrow_mut().matched = true;
        self.come(side, None);
    }

    fn come(&mut self, side: &SideRef, cause: Option<Cause>) {
        if let Some(blocked) = side.borrow_mut().blocked.take() {
            blocked.borrow_mut().come(cause);
            self.over.push(blocked);
        }
    }

    /// Lets those meet that can, among what such a receive would take.
    fn meet(&mut self, to: Address, among: Wanted) {
        let Some(mailbox) = self.mailboxes.get_mut(&to) else { return };
        let mut met = Vec::new();
        let held = &mailbox.held;
        let mut lane_meets = |(source, tag): (u32, i64), lane: &mut Lane| {
            while let (Some(send), Some(receive)) = (lane.sends.front(), lane.receives.front()) {
                let number = receive.borrow().number;
                let before = |(other, wanted): &(SideRef, Wanted)| {
                    other.borrow().number < number && wanted.takes(source, tag)
                };
                if held.iter().any(before) {
                    break;
                }
                met.push((send.clone(), receive.clone()));
                if !receive.borrow().probe {
                    lane.sends.pop_front();
                }
                lane.receives.pop_front();
            }
            !(lane.sends.is_empty() && lane.receives.is_empty())
        };
        match (among.source, among.tag) {
            (Some(source), Some(tag)) => {
                let lane = mailbox.lanes.get_mut(&(source, tag));
                if lane.is_some_and(|lane| !lane_meets((source, tag), lane)) {
                    mailbox.lanes.remove(&(source, tag));
                }
            }
            _ => mailbox
                .lanes
                .retain(|&(source, tag), lane| !among.takes(source, tag) || lane_meets((source, tag), lane)),
        }
        if mailbox.lanes.is_empty() && mailbox.held.is_empty() && mailbox.unclear.is_empty() {
            self.mailboxes.remove(&to);
        }
        for (send, receive) in met {
            self.join(&send, &receive);
        }
    }

    fn join(&mut self, send: &SideRef, receive: &SideRef) {
        let cause = |side: &Side, pattern| {
            Some(Cause { at: side.at, rank: side.rank, pattern, path: side.path.clone() })
        };
        let sender = cause(&send.borrow(), Pattern::LateSender);
        let receiver = cause(&receive.borrow(), Pattern::LateReceiver);
        let reversed = receive.borrow().over.is_some_and(|over| {
            let sent = send.borrow().at;
            sent.time.saturating_sub_unsigned(sent.error.saturating_add(over.error)) > over.time
        });
        self.reversed += u64::from(reversed);
        let probe = receive.borrow().probe;
        receive.borrow_mut().matched = true;
        self.come(receive, sender);
        if !probe {
            send.borrow_mut().matched = true;
            self.come(send, receiver);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::blocked::Blocked;

    const TO: Address = (7, 1);
    const ANY: Wanted = Wanted { source: None, tag: None };

    fn at(time: i64) -> Moment {
        Moment { time, error: 0 }
    }

    /// Sides of messages between ranks 0, 2 and 1, which receives, at times 1, 2, ...
    #[derive(Default)]
    struct World {
        messages: Messages,
        now: i64,
    }

    impl World {
        fn send(&mut self, source: u32, tag: i64) -> SideRef {
            self.now += 1;
            let side = self.messages.side(source, at(self.now), Path::default(), TO, false);
            self.messages.send(&side, source, tag);
            side
        }

        /// A receive, and a call that waits for it.
        fn receive(&mut self, wanted: Wanted, probe: bool) -> (SideRef, BlockedRef) {
            self.now += 1;
            let side = self.messages.side(1, at(self.now), Path::default(), TO, probe);
            self.messages.receive(&side, wanted);
            let blocked = Blocked::new(1, 0, at(0), false);
            self.messages.wait(&side, &blocked);
            (side, blocked)
        }

        fn from(&mut self, source: u32, tag: i64) -> BlockedRef {
            self.receive(Wanted { source: Some(source), tag: Some(tag) }, false).1
        }
    }

    /// When the message was sent that ended the wait.
    fn sent(blocked: &BlockedRef) -> Option<i64> {
        let mut blocked = blocked.borrow_mut();
        blocked.end = Some(1000);
        blocked.cause().map(|cause| cause.at.time)
    }

    #[test]
    fn in_order_for_each_source_and_tag() {
        let mut world = World::default();
        let (a, b, c) = (world.from(0, 5), world.from(0, 6), world.from(0, 5));
        let other = world.from(2, 5);
        world.send(0, 5);
        world.send(0, 5);
        world.send(2, 5);
        world.send(0, 6);
        assert_eq!([sent(&a), sent(&b), sent(&c), sent(&other)], [Some(5), Some(8), Some(6), Some(7)]);
        assert_eq!(world.messages.held(), 0);
    }

    /// The first receive takes anything: what the second one met is not known before the first one's status is.
    #[test]
    fn a_receive_of_anything_comes_before_those_after_it() {
        let mut world = World::default();
        let (any, first) = world.receive(ANY, false);
        let second = world.from(0, 5);
        world.send(0, 5);
        world.send(0, 5);
        assert_eq!((sent(&first), sent(&second)), (None, None));
        second.borrow_mut().end = None;
        first.borrow_mut().end = None;
        world.messages.met(&any, 0, 5);
        assert_eq!((sent(&first), sent(&second)), (Some(3), Some(4)));
        assert_eq!(world.messages.held(), 0);
    }

    #[test]
    fn a_probe_leaves_the_message() {
        let mut world = World::default();
        let (_, probe) = world.receive(Wanted { source: Some(0), tag: Some(5) }, true);
        let receive = world.from(0, 5);
        world.send(0, 5);
        assert_eq!((sent(&probe), sent(&receive)), (Some(3), Some(3)));
        assert_eq!(world.messages.held(), 0);
    }

    #[test]
    fn without_a_status_nothing_is_guessed() {
        let mut world = World::default();
        let (any, first) = world.receive(Wanted { source: None, tag: Some(5) }, false);
        world.send(0, 5);
        world.messages.met_unknown(&any);
        let (second, other) = (world.from(2, 5), world.from(2, 6));
        world.send(2, 5);
        world.send(2, 6);
        assert_eq!((sent(&first), sent(&second)), (None, None));
        // Another tag is as clear as ever.
        assert_eq!(sent(&other), Some(6));
        assert_eq!(world.messages.unclear, 4);
    }

    /// With another tag in every step, what is unclear does not grow with the run.
    #[test]
    fn many_kinds_that_are_unclear_are_all() {
        let mut world = World::default();
        for tag in 0..1000 {
            let (any, _) = world.receive(Wanted { source: None, tag: Some(tag) }, false);
            world.send(0, tag);
            world.messages.met_unknown(&any);
            assert!(world.messages.mailboxes.values().all(|mailbox| mailbox.unclear.len() <= MOST_UNCLEAR));
        }
        assert_eq!((world.messages.unclear, world.messages.held()), (2000, 1));
    }

    #[test]
    fn what_is_cancelled_meets_nobody() {
        let mut world = World::default();
        let (cancelled, _) = world.receive(Wanted { source: Some(0), tag: Some(5) }, false);
        let other = world.from(0, 5);
        world.messages.cancelled(&cancelled);
        world.send(0, 5);
        assert_eq!(sent(&other), Some(3));
    }

    #[test]
    fn received_before_it_was_sent() {
        let mut world = World::default();
        let (side, _) = world.receive(Wanted { source: Some(0), tag: Some(5) }, false);
        world.messages.over(&side, at(1));
        world.send(0, 5);
        assert_eq!(world.messages.reversed, 1);
    }

    /// Many messages, of which a few are in flight at a time.
    #[test]
    fn what_has_met_is_gone() {
        let mut world = World::default();
        let mut most = 0;
        for step in 0..100_000 {
            world.send(0, step % 7);
            if step >= 10 {
                world.from(0, (step - 10) % 7);
            }
            most = most.max(world.messages.held());
        }
        assert!(most < 20, "{most}");
    }
}
