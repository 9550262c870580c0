//! The requests of all threads of a process. Each thread has a table of its own, so that ids do not depend on which
//! thread was faster, and threads do not wait for each other. A request that another thread made is looked for only
//! where the own table does not have it.

use std::cell::RefCell;

use refrain_model::Function;

use crate::comms::Later;
use crate::defined::{Set, Undefined};
use crate::objects::Code;
use crate::requests::{Found, Given, New, Requests, Source};

/// A request of another thread, as it stands in a lane: below zero.
pub(crate) fn foreign(thread: u32, id: u32) -> i64 {
    -1 - (i64::from(id) << 16 | i64::from(thread.min(0xffff)))
}

/// The thread and id behind a number below zero.
pub(crate) fn owner(number: i64) -> Option<(u32, u32)> {
    let bits = u64::try_from(-1 - number).ok()?;
    Some(((bits & 0xffff) as u32, u32::try_from(bits >> 16).ok()?))
}

/// What the calling thread knows of requests. Numbers are as they stand in lanes; handles are not null.
pub trait Tables {
    /// The calling thread.
    fn thread(&self) -> u32;
    /// A new call looks requests up: each look-up in it claims another operation.
    fn next_call(&mut self);
    fn create(&mut self, new: New) -> i64;
    /// As `create`, for a signature whose pool is known.
    fn create_in(&mut self, source: Source, handle: u64, address: usize, persistent: bool) -> i64;
    /// The pool of the request that was made last.
    fn last_source(&self) -> Option<Source>;
    fn forget_source(&mut self);
    /// Which operation handle `k` of a call stands for, and what its status does not say.
    fn number(&mut self, given: Given<'_>, k: usize) -> (i64, Undefined);
    /// A call of this thread has set something of a status.
    fn note_set(&mut self, f: &Function);
    /// What a status does not say that the program's own functions have set, in the call at hand.
    fn was_set(&self) -> Undefined;
    /// What was set until now is no business of the statuses to come.
    fn forget_set(&mut self);
    /// A request was started, or is complete and still has its handle: if it is persistent, that says what its next status
    /// means.
    fn set_active(&mut self, number: i64, active: bool);
    /// The operation is over.
    fn complete(&mut self, number: i64, freed: bool) -> Option<Box<Later>>;
}

fn lane(id: u32) -> i64 {
    Code::Id(id).number() as i64
}

fn id(number: i64) -> Option<u32> {
    match u64::try_from(number).ok().and_then(Code::from_number) {
        Some(Code::Id(id)) => Some(id),
        _ => None,
    }
}

/// As long as no other thread has called MPI.
impl Tables for Requests {
    fn thread(&self) -> u32 {
        self.thread
    }

    #[inline]
    fn next_call(&mut self) {
        self.stamp();
    }

    fn create(&mut self, new: New) -> i64 {
        lane(Requests::create(self, new))
    }

    #[inline]
    fn create_in(&mut self, source: Source, handle: u64, address: usize, persistent: bool) -> i64 {
        lane(self.insert_in(source, handle, address, persistent, None))
    }

    fn last_source(&self) -> Option<Source> {
        self.last_source
    }

    fn forget_source(&mut self) {
        self.last_source = None;
    }

    #[inline]
    fn number(&mut self, given: Given<'_>, k: usize) -> (i64, Undefined) {
        let (id, undefined) = match self.find(given, k) {
            Some(found) => found,
            None => (self.unseen(given.handle(k), given.address(k)), Undefined::EVERYTHING),
        };
        (lane(id), undefined)
    }

    fn note_set(&mut self, f: &Function) {
        self.set.note(f);
    }

    fn was_set(&self) -> Undefined {
        self.set.undefined()
    }

    #[inline]
    fn forget_set(&mut self) {
        self.set = Set::default();
    }

    fn set_active(&mut self, number: i64, active: bool) {
        if let Some(id) = id(number) {
            Requests::set_active(self, id, active);
        }
    }

    #[inline]
    fn complete(&mut self, number: i64, freed: bool) -> Option<Box<Later>> {
        self.end(id(number)?, freed)
    }
}

/// How the tables of threads are reached. One at a time: nobody waits for one table while holding another.
pub trait Peers {
    /// Looks at the table of `thread`, if it has one.
    fn with(&self, thread: u32, look: &mut dyn FnMut(&mut Requests));
    /// Looks at the tables of all but `thread`, until one look says that it is enough.
    fn others(&self, thread: u32, look: &mut dyn FnMut(&mut Requests) -> bool);
}

/// One thread among several.
#[derive(Debug)]
pub struct Crowd<'a, P> {
    peers: &'a P,
    thread: u32,
    stamp: u64,
    last_source: Option<Source>,
}

impl<'a, P: Peers> Crowd<'a, P> {
    pub fn new(peers: &'a P, thread: u32) -> Crowd<'a, P> {
        Crowd { peers, thread, stamp: 0, last_source: None }
    }

    fn own<R>(&self, look: impl FnOnce(&mut Requests) -> R) -> Option<R> {
        let (mut look, mut result) = (Some(look), None);
        self.peers.with(self.thread, &mut |table| result = look.take().map(|look| look(table)));
        result
    }

    fn other(&self, look: impl Fn(&mut Requests) -> Option<Found>) -> Option<(i64, Undefined)> {
        let mut found = None;
        self.peers.others(self.thread, &mut |table| {
            found = look(table).map(|(id, undefined)| (foreign(table.thread, id), undefined));
            found.is_some()
        });
        found
    }
}

impl<P: Peers> Tables for Crowd<'_, P> {
    fn thread(&self) -> u32 {
        self.thread
    }

    fn next_call(&mut self) {
        self.stamp = self.own(Requests::stamp).unwrap_or(0);
    }

    fn create(&mut self, new: New) -> i64 {
        let made = self.own(|table| (table.create(new), table.last_source));
        let (id, source) = made.unwrap_or_default();
        self.last_source = source;
        lane(id)
    }

    fn create_in(&mut self, source: Source, handle: u64, address: usize, persistent: bool) -> i64 {
        self.last_source = Some(source);
        lane(self.own(|table| table.insert_in(source, handle, address, persistent, None)).unwrap_or(0))
    }

    fn last_source(&self) -> Option<Source> {
        self.last_source
    }

    fn forget_source(&mut self) {
        self.last_source = None;
    }

    /// A library may hand one handle to operations of several threads: the one that is kept at this address comes
    /// first, whoever made it.
    fn number(&mut self, given: Given<'_>, k: usize) -> (i64, Undefined) {
        let (handle, address) = (given.handle(k), given.address(k));
        let stamp = self.stamp;
        let own = |id: Option<Option<Found>>| id.flatten().map(|(id, undefined)| (lane(id), undefined));
        own(self.own(|table| table.kept_at(handle, address, stamp)))
            .or_else(|| self.other(|table| table.kept_at(handle, address, stamp)))
            .or_else(|| own(self.own(|table| table.copied(given, k, stamp))))
            .or_else(|| self.other(|table| table.copied(given, k, stamp)))
            .unwrap_or_else(|| {
                let id = self.own(|table| table.unseen(handle, address)).unwrap_or(0);
                (lane(id), Undefined::EVERYTHING)
            })
    }

    fn note_set(&mut self, f: &Function) {
        self.own(|table| table.set.note(f));
    }

    fn was_set(&self) -> Undefined {
        self.own(|table| table.set).unwrap_or_default().undefined()
    }

    fn forget_set(&mut self) {
        self.own(|table| table.set = Set::default());
    }

    fn set_active(&mut self, number: i64, active: bool) {
        let own = id(number).map(|id| (self.thread, id));
        if let Some((thread, id)) = own.or_else(|| owner(number)) {
            self.peers.with(thread, &mut |table| table.set_active(id, active));
        }
    }

    fn complete(&mut self, number: i64, freed: bool) -> Option<Box<Later>> {
        if let Some(id) = id(number) {
            return self.own(|table| table.end(id, freed)).flatten();
        }
        let (thread, id) = owner(number)?;
        let mut later = None;
        self.peers.with(thread, &mut |table| later = table.end(id, freed));
        later
    }
}

/// Tables of threads that nobody else looks at.
struct Own(Vec<RefCell<Requests>>);

impl Peers for Own {
    fn with(&self, thread: u32, look: &mut dyn FnMut(&mut Requests)) {
        if let Some(table) = self.0.iter().find(|table| table.borrow().thread == thread) {
            look(&mut table.borrow_mut());
        }
    }

    fn others(&self, thread: u32, look: &mut dyn FnMut(&mut Requests) -> bool) {
        let mut others = self.0.iter().filter(|table| table.borrow().thread != thread);
        others.any(|table| look(&mut table.borrow_mut()));
    }
}

/// For which requests the handles of a call of `thread` stand, as a recorder would name them: thread, and place in its list.
/// `made` are the requests of each thread that are not complete, the oldest first: the handle, and where the program had it put.
pub fn stand_for(
    made: &[(u32, Vec<(u64, usize)>)],
    thread: u32,
    given: Given<'_>,
) -> Vec<Option<(u32, usize)>> {
    let table = |(thread, made): &(u32, Vec<(u64, usize)>)| {
        let mut table = Requests::new(*thread);
        for (&(handle, address), at) in made.iter().zip(0..) {
            // Ids are places: no two have one pool.
            table.create(New {
                handle,
                address,
                signature: at,
                symbol: at,
                function: 0,
                persistent: false,
                wild: false,
                later: None,
            });
        }
        RefCell::new(table)
    };
    let tables = Own(made.iter().map(table).collect());
    let mut own = Crowd::new(&tables, thread);
    own.next_call();
    let found = |number: i64| {
        let (of, id) = id(number).map(|id| (thread, id)).or_else(|| owner(number))?;
        let (_, made) = made.iter().find(|(thread, _)| *thread == of)?;
        let at = usize::try_from(id).ok()?;
        (at < made.len()).then_some((of, at))
    };
    let is_made = |handle| made.iter().flat_map(|(_, made)| made).any(|(known, _)| *known == handle);
    let mut stands = |k: usize| is_made(given.handle(k)).then(|| own.number(given, k).0);
    (0..given.handles.len()).map(|k| found(stands(k)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Own {
        Own([0, 1].map(|thread| RefCell::new(Requests::new(thread))).into())
    }

    fn new(handle: u64, address: usize, signature: u64) -> New {
        New {
            handle,
            address,
            signature,
            symbol: 0,
            function: 1,
            persistent: false,
            wild: false,
            later: None,
        }
    }

    fn one(handle: u64, address: usize) -> Given<'static> {
        Given { handles: Box::leak(Box::new([handle])), address, size: 8 }
    }

    #[test]
    fn what_another_thread_made_is_found_and_over() {
        let two = two();
        let [mut a, mut b] = [0, 1].map(|thread| Crowd::new(&two, thread));
        assert_eq!((a.create(new(7, 0x10, 1)), b.create(new(8, 0x20, 1))), (lane(0), lane(0)));
        b.next_call();
        let of_a = b.number(one(7, 0x99), 0).0;
        assert_eq!((of_a, owner(of_a)), (foreign(0, 0), Some((0, 0))));
        b.complete(of_a, false);
        // Its id is free again, the other's is not.
        assert_eq!((a.create(new(7, 0x10, 1)), b.create(new(7, 0x30, 1))), (lane(0), lane(1)));
    }

    #[test]
    fn one_handle_in_two_threads_is_told_apart_by_its_variable() {
        let two = two();
        let [mut a, mut b] = [0, 1].map(|thread| Crowd::new(&two, thread));
        a.create(new(7, 0x10, 1));
        b.create(new(7, 0x20, 1));
        a.next_call();
        assert_eq!(a.number(one(7, 0x20), 0).0, foreign(1, 0));
        assert_eq!(a.number(one(7, 0x10), 0).0, lane(0));
        // Copied elsewhere: the own one is likelier.
        a.next_call();
        assert_eq!(a.number(one(7, 0x50), 0).0, lane(0));
    }

    #[test]
    fn an_array_that_was_copied_is_known_in_several_threads_too() {
        let two = two();
        let [mut a, mut b] = [0, 1].map(|thread| Crowd::new(&two, thread));
        for (id, address) in [0x800, 0x1000, 0x1008].into_iter().enumerate() {
            assert_eq!(a.create(new(7, address, 1)), lane(id as u32));
        }
        let given = Given { handles: &[7, 7], address: 0x5000, size: 8 };
        for (table, of) in [(&mut a, [lane(1), lane(2)]), (&mut b, [foreign(0, 1), foreign(0, 2)])] {
            table.next_call();
            assert_eq!([0, 1].map(|k| table.number(given, k).0), of);
        }
    }

    /// What a recorder would have named.
    #[test]
    fn handles_that_are_not_complete_stand_for_requests() {
        let made = [(0, vec![(7, 0x800), (7, 0x1000), (8, 0x1008)]), (2, vec![(7, 0x2000), (9, 0x2008)])];
        let of =
            |thread, handles: &[u64], address| stand_for(&made, thread, Given { handles, address, size: 8 });
        assert_eq!(of(0, &[7, 8], 0x1000), [Some((0, 1)), Some((0, 2))]);
        assert_eq!(of(0, &[7, 8], 0x5000), [Some((0, 1)), Some((0, 2))]);
        assert_eq!(of(0, &[7, 9, 5], 0x2000), [Some((2, 0)), Some((2, 1)), None]);
        assert_eq!(of(2, &[7, 7], 0x800), [Some((0, 0)), Some((2, 0))]);
        // A thread that has made none.
        assert_eq!(of(1, &[8], 0x5000), [Some((0, 2))]);
    }

    #[test]
    fn numbers_of_others_come_back() {
        for (thread, id) in [(0, 0), (1, 0), (3, 77), (0xffff, u32::MAX)] {
            let number = foreign(thread, id);
            assert!(number < 0);
            assert_eq!(owner(number), Some((thread, id)));
        }
        assert_eq!(owner(0), None);
    }
}
