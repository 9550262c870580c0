//! Which send meets which receive.
//!
//! Messages between two ranks on one communicator with one tag meet receives in the order in which both were posted. A
//! receive from any source or with any tag is held until its status tells what it met; receives that were posted after it
//! and could have met the same wait for that. If no status was kept, nobody can tell any more: such messages are counted
//! and left out.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// A communicator and the rank that receives.
type Address = (u64, u32);

/// One side of a message.
#[derive(Debug)]
pub(crate) struct Side<T> {
    /// What whoever posted it wants to know of it when it has met the other side.
    pub(crate) what: T,
    to: Address,
    /// In the order in which receives were posted.
    number: u64,
    /// It looks at the message and leaves it there.
    pub(crate) probe: bool,
    /// It has met the other side, or nobody can tell that any more.
    pub(crate) matched: bool,
}

pub(crate) type SideRef<T> = Rc<RefCell<Side<T>>>;

/// What a receive takes; `None` stands for anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) source: Option<u32>,
    pub(crate) tag: Option<i64>,
}

impl Wanted {
    fn takes(&self, source: u32, tag: i64) -> bool {
        self.source.is_none_or(|wanted| wanted == source) && self.tag.is_none_or(|wanted| wanted == tag)
    }
}

/// Of more kinds of messages that nobody can tell apart, all that go to that rank count as such.
const MOST_UNCLEAR: usize = 64;

/// Sends and receives of one source and tag that have not met.
struct Lane<T> {
    sends: VecDeque<SideRef<T>>,
    receives: VecDeque<SideRef<T>>,
}

impl<T> Default for Lane<T> {
    fn default() -> Lane<T> {
        Lane { sends: VecDeque::new(), receives: VecDeque::new() }
    }
}

/// What is on its way to one rank on one communicator.
struct Mailbox<T> {
    lanes: HashMap<(u32, i64), Lane<T>>,
    /// Receives of which it is not known yet what they met.
    held: Vec<(SideRef<T>, Wanted)>,
    /// Some receive took one of these, and nobody knows which.
    unclear: Vec<Wanted>,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Mailbox<T> {
        Mailbox { lanes: HashMap::new(), held: Vec::new(), unclear: Vec::new() }
    }
}

pub(crate) struct Messages<T> {
    mailboxes: HashMap<Address, Mailbox<T>>,
    posted: u64,
    /// Sends and receives that nobody can match.
    pub(crate) unclear: u64,
    news: Vec<News<T>>,
}

impl<T> Default for Messages<T> {
    fn default() -> Messages<T> {
        Messages { mailboxes: HashMap::new(), posted: 0, unclear: 0, news: Vec::new() }
    }
}

/// What has become of a side.
pub(crate) enum News<T> {
    Met {
        send: SideRef<T>,
        receive: SideRef<T>,
    },
    /// It was cancelled, or nobody can tell what it met.
    Left(SideRef<T>),
}

impl<T> Messages<T> {
    pub(crate) fn side(&mut self, what: T, to: Address, probe: bool) -> SideRef<T> {
        self.posted += 1;
        Rc::new(RefCell::new(Side { what, to, number: self.posted, probe, matched: false }))
    }

    pub(crate) fn send(&mut self, side: &SideRef<T>, source: u32, tag: i64) {
        let to = side.borrow().to;
        let mailbox = self.mailboxes.entry(to).or_default();
        if mailbox.unclear.iter().any(|wanted| wanted.takes(source, tag)) {
            self.leave(side);
            return;
        }
        mailbox.lanes.entry((source, tag)).or_default().sends.push_back(side.clone());
        self.meet(to, Wanted { source: Some(source), tag: Some(tag) });
    }

    pub(crate) fn receive(&mut self, side: &SideRef<T>, wanted: Wanted) {
        match (wanted.source, wanted.tag) {
            (Some(source), Some(tag)) => self.expect(side, source, tag),
            _ => {
                let to = side.borrow().to;
                self.mailboxes.entry(to).or_default().held.push((side.clone(), wanted));
            }
        }
    }

    /// A receive that could take several met this one.
    pub(crate) fn met(&mut self, side: &SideRef<T>, source: u32, tag: i64) {
        if let Some(wanted) = self.let_go(side) {
            self.expect(side, source, tag);
            self.meet(side.borrow().to, wanted);
        }
    }

    /// A receive is over, and nobody knows what it met, if it could take several.
    pub(crate) fn met_unknown(&mut self, side: &SideRef<T>) {
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
    pub(crate) fn cancelled(&mut self, side: &SideRef<T>) {
        self.let_go(side);
        let to = side.borrow().to;
        if let Some(mailbox) = self.mailboxes.get_mut(&to) {
            for lane in mailbox.lanes.values_mut() {
                lane.sends.retain(|other| !Rc::ptr_eq(side, other));
                lane.receives.retain(|other| !Rc::ptr_eq(side, other));
            }
        }
        self.news.push(News::Left(side.clone()));
        self.meet(to, Wanted { source: None, tag: None });
    }

    /// What has become of sides since this was asked last.
    pub(crate) fn take_news(&mut self) -> Vec<News<T>> {
        std::mem::take(&mut self.news)
    }

    /// What is left: sends, and receives.
    pub(crate) fn finish(self) -> (Vec<SideRef<T>>, Vec<SideRef<T>>) {
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for mailbox in self.mailboxes.into_values() {
            receives.extend(mailbox.held.into_iter().map(|(side, _)| side));
            for lane in mailbox.lanes.into_values() {
                sends.extend(lane.sends);
                receives.extend(lane.receives);
            }
        }
        (sends, receives)
    }

    /// Sends and receives that have not met, and mailboxes for them.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        let lanes = self.mailboxes.values().flat_map(|mailbox| mailbox.lanes.values());
        self.mailboxes.len() + lanes.map(|lane| lane.sends.len() + lane.receives.len()).sum::<usize>()
    }

    fn expect(&mut self, side: &SideRef<T>, source: u32, tag: i64) {
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

    fn let_go(&mut self, side: &SideRef<T>) -> Option<Wanted> {
        let held = &mut self.mailboxes.get_mut(&side.borrow().to)?.held;
        let at = held.iter().position(|(other, _)| Rc::ptr_eq(side, other))?;
        Some(held.remove(at).1)
    }

    fn leave(&mut self, side: &SideRef<T>) {
        self.unclear += 1;
        side.borrow_mut().matched = true;
        self.news.push(News::Left(side.clone()));
    }

    /// Lets those meet that can, among what such a receive would take.
    fn meet(&mut self, to: Address, among: Wanted) {
        let Some(mailbox) = self.mailboxes.get_mut(&to) else { return };
        let mut met = Vec::new();
        let held = &mailbox.held;
        let mut lane_meets = |(source, tag): (u32, i64), lane: &mut Lane<T>| {
            while let (Some(send), Some(receive)) = (lane.sends.front(), lane.receives.front()) {
                let number = receive.borrow().number;
                let before = |(other, wanted): &(SideRef<T>, Wanted)| {
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

    fn join(&mut self, send: &SideRef<T>, receive: &SideRef<T>) {
        receive.borrow_mut().matched = true;
        if !receive.borrow().probe {
            send.borrow_mut().matched = true;
        }
        self.news.push(News::Met { send: send.clone(), receive: receive.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: Address = (7, 1);
    const ANY: Wanted = Wanted { source: None, tag: None };

    /// Sides of messages between ranks 0, 2 and 1, which receives, with numbers 1, 2, ...
    #[derive(Default)]
    struct World {
        messages: Messages<i64>,
        now: i64,
        /// Which send each receive met.
        met: HashMap<i64, i64>,
    }

    impl World {
        fn send(&mut self, source: u32, tag: i64) -> SideRef<i64> {
            self.now += 1;
            let side = self.messages.side(self.now, TO, false);
            self.messages.send(&side, source, tag);
            self.hear();
            side
        }

        fn receive(&mut self, wanted: Wanted, probe: bool) -> SideRef<i64> {
            self.now += 1;
            let side = self.messages.side(self.now, TO, probe);
            self.messages.receive(&side, wanted);
            self.hear();
            side
        }

        fn from(&mut self, source: u32, tag: i64) -> i64 {
            self.receive(Wanted { source: Some(source), tag: Some(tag) }, false).borrow().what
        }

        fn hear(&mut self) {
            for news in self.messages.take_news() {
                if let News::Met { send, receive } = news {
                    self.met.insert(receive.borrow().what, send.borrow().what);
                }
            }
        }

        /// What the receives met.
        fn met<const N: usize>(&mut self, receives: [i64; N]) -> [Option<i64>; N] {
            self.hear();
            receives.map(|receive| self.met.get(&receive).copied())
        }
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
        assert_eq!(world.met([a, b, c, other]), [Some(5), Some(8), Some(6), Some(7)]);
        assert_eq!(world.messages.held(), 0);
    }

    /// The first receive takes anything: what the second one met is not known before the first one's status is.
    #[test]
    fn a_receive_of_anything_comes_before_those_after_it() {
        let mut world = World::default();
        let any = world.receive(ANY, false);
        let first = any.borrow().what;
        let second = world.from(0, 5);
        world.send(0, 5);
        world.send(0, 5);
        assert_eq!(world.met([first, second]), [None, None]);
        world.messages.met(&any, 0, 5);
        assert_eq!(world.met([first, second]), [Some(3), Some(4)]);
        assert_eq!(world.messages.held(), 0);
    }

    #[test]
    fn a_probe_leaves_the_message() {
        let mut world = World::default();
        let probe = world.receive(Wanted { source: Some(0), tag: Some(5) }, true).borrow().what;
        let receive = world.from(0, 5);
        world.send(0, 5);
        assert_eq!(world.met([probe, receive]), [Some(3), Some(3)]);
        assert_eq!(world.messages.held(), 0);
    }

    #[test]
    fn without_a_status_nothing_is_guessed() {
        let mut world = World::default();
        let any = world.receive(Wanted { source: None, tag: Some(5) }, false);
        let first = any.borrow().what;
        world.send(0, 5);
        world.messages.met_unknown(&any);
        let (second, other) = (world.from(2, 5), world.from(2, 6));
        world.send(2, 5);
        world.send(2, 6);
        // Another tag is as clear as ever.
        assert_eq!(world.met([first, second, other]), [None, None, Some(6)]);
        assert_eq!(world.messages.unclear, 4);
    }

    /// With another tag in every step, what is unclear does not grow with the run.
    #[test]
    fn many_kinds_that_are_unclear_are_all() {
        let mut world = World::default();
        for tag in 0..1000 {
            let any = world.receive(Wanted { source: None, tag: Some(tag) }, false);
            world.send(0, tag);
            world.messages.met_unknown(&any);
            assert!(world.messages.mailboxes.values().all(|mailbox| mailbox.unclear.len() <= MOST_UNCLEAR));
        }
        assert_eq!((world.messages.unclear, world.messages.held()), (2000, 1));
    }

    #[test]
    fn what_is_cancelled_meets_nobody() {
        let mut world = World::default();
        let cancelled = world.receive(Wanted { source: Some(0), tag: Some(5) }, false);
        let other = world.from(0, 5);
        world.messages.cancelled(&cancelled);
        world.send(0, 5);
        assert_eq!(world.met([other]), [Some(3)]);
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
