//! Request ids: a pool for each creating signature, so that the order of completion leaves no mark on the ids
//! (Pilgrim, 3.4.3). A signature that is new takes the pool that its variable had before, if nothing of that is under way:
//! a count that changes from stage to stage, and from rank to rank, changes no id.

use refrain_fold::FastMap;
use refrain_model::function_by_id;

use crate::comms::Later;
use crate::defined::{Set, Undefined};
use crate::hash::mix;
use crate::objects::Pool;

/// Distinct signatures that get a pool of their own. A program that never repeats itself shares one pool per function
/// after that, which costs compression and bounds memory.
const MAX_POOLS: usize = 1 << 16;

/// Entries of one handle, or of one handle in one variable: oldest first, linked through the entries themselves.
#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    /// Where the next look-up of the same call starts: all before it are claimed. [`NONE`] at the end.
    cursor: u32,
    cursor_call: u64,
}

/// No entry.
const NONE: u32 = u32::MAX;

impl Default for List {
    fn default() -> Self {
        List { head: NONE, tail: NONE, cursor: NONE, cursor_call: 0 }
    }
}

/// The two lists an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Handle = 0,
    Address = 1,
}

#[derive(Debug, Clone)]
struct Entry {
    id: u32,
    handle: u64,
    /// Its handle's list.
    list: u32,
    /// Where the program keeps the handle: tells operations apart to which the library gave one handle.
    address: usize,
    pool: u32,
    index: u32,
    /// The call that last claimed this entry.
    claimed: u64,
    persistent: bool,
    /// Started and not complete. Always so where it is not persistent.
    active: bool,
    /// Of its status.
    undefined: Undefined,
    /// In the list of its place too: only where its handle stands for several operations at once.
    placed: bool,
    later: Option<Box<Later>>,
    /// Neighbours in the lists, by [`By`].
    older: [u32; 2],
    newer: [u32; 2],
}

/// Handles whose lists are found without hashing them properly.
const RECENT: usize = 64;

/// A request that a call returned.
#[derive(Debug)]
pub struct New {
    pub(crate) handle: u64,
    /// The program's variable.
    pub(crate) address: usize,
    /// Of the call.
    pub(crate) signature: u64,
    /// Of the call without its numbers.
    pub(crate) symbol: u64,
    pub(crate) function: u16,
    pub(crate) persistent: bool,
    /// A receive from any source or with any tag.
    pub(crate) wild: bool,
    pub(crate) later: Option<Box<Later>>,
}

/// Handles as a call was given them, one beside the other.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    pub handles: &'a [u64],
    /// Where the program keeps the first of them.
    pub address: usize,
    /// Bytes of each.
    pub size: usize,
}

impl Given<'_> {
    #[inline]
    pub(crate) fn handle(&self, k: usize) -> u64 {
        self.handles.get(k).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn address(&self, k: usize) -> usize {
        self.address.wrapping_add(k.wrapping_mul(self.size))
    }
}

/// How far the program has moved a block of handles, as far as the call at hand has found out.
#[derive(Debug, Default, Clone, Copy)]
struct Moved {
    call: u64,
    by: Option<usize>,
    /// So much more may be looked at.
    looks: usize,
}

/// What is looked at in a call to find out where its handles were copied from: so much, and so much for each of them.
const LOOKS: usize = 64;
const LOOKS_EACH: usize = 4;
/// Handles before the one in question that are looked at.
const BEHIND: usize = 8;

/// An operation's id, and what its status does not say.
pub(crate) type Found = (u32, Undefined);

/// The requests that one thread made. Every look-up, creation and completion takes the same time, however many
/// operations share one handle.
#[derive(Debug, Default, Clone)]
pub struct Requests {
    pub(crate) thread: u32,
    entries: Vec<Option<Entry>>,
    vacant: Vec<u32>,
    lists: Vec<List>,
    /// Where in `lists` a handle's is. Never removed: handles come back.
    by_handle: FastMap<u64, u32>,
    /// Some of them again, each where a quick look finds it: a handle, and one more than its list.
    recent: Vec<(u64, u32)>,
    by_address: FastMap<(u64, usize), List>,
    /// By id: where its entry is.
    entry_of: Vec<u32>,
    pool_of: FastMap<u64, u32>,
    /// By what kind of call made it and the program's variable: its place in `last_at`.
    variables: FastMap<u64, u32>,
    /// The pool of the last request there.
    last_at: Vec<u32>,
    pools: Vec<Pool>,
    /// By pool: the function whose requests are in it, and what their statuses do not say.
    functions: Vec<(u16, Undefined)>,
    /// Ids are unique over all pools: each pool hands out indices, this maps (pool, index) to an id.
    ids: Vec<Vec<u32>>,
    next: u32,
    /// The calls of its thread that looked something up, here or in another table.
    calls: u64,
    moved: Moved,
    pub(crate) last_source: Option<Source>,
    pub(crate) set: Set,
}

/// Where the ids of a call's requests come from.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    pool: u32,
    /// The program's variable, by its place in [`Requests::last_at`]. [`NONE`] if there are too many.
    variable: u32,
}

impl Requests {
    pub fn new(thread: u32) -> Requests {
        Requests { thread, ..Requests::default() }
    }

    /// A number for a new call of this thread, unlike those of other threads.
    pub(crate) fn stamp(&mut self) -> u64 {
        self.calls += 1;
        self.call()
    }

    fn call(&self) -> u64 {
        self.calls << 16 | u64::from(self.thread & 0xffff)
    }

    fn source(&mut self, new: &New) -> Source {
        let at = mix(mix(new.symbol, new.address as u64), u64::from(new.wild));
        let seen = self.variables.get(&at).copied();
        let pool = match self.pool_of.get(&new.signature) {
            Some(&known) => known,
            None => self.pool_of_new(new, seen.map(|variable| self.last_at[variable as usize])),
        };
        let variable = seen.unwrap_or_else(|| {
            if self.last_at.len() == MAX_POOLS {
                return NONE;
            }
            let variable = self.last_at.len() as u32;
            self.last_at.push(pool);
            self.variables.insert(at, variable);
            variable
        });
        Source { pool, variable }
    }

    /// The pool of a signature that has none. The last request of its variable came from `last`.
    fn pool_of_new(&mut self, new: &New, last: Option<u32>) -> u32 {
        let here = last.filter(|&pool| self.pools[pool as usize].is_idle());
        let shared = u64::from(new.function) | u64::from(new.wild) << 16;
        let key = if self.pool_of.len() < MAX_POOLS { new.signature } else { shared };
        let Requests { pools, functions, ids, pool_of, .. } = self;
        *pool_of.entry(key).or_insert_with(|| {
            here.unwrap_or_else(|| {
                pools.push(Pool::default());
                let undefined = function_by_id(new.function).map(Undefined::of_request);
                // Of one that nobody saw being made nothing is known.
                let undefined = undefined.unwrap_or(Undefined::EVERYTHING);
                functions.push((new.function, if new.wild { undefined.wild() } else { undefined }));
                ids.push(Vec::new());
                (pools.len() - 1) as u32
            })
        })
    }

    /// The requests that are outstanding or, if they are persistent, not freed: the function that made each, 0 where it was
    /// not seen, the handle, and whether it is persistent.
    pub fn outstanding(&self) -> impl Iterator<Item = (u16, u64, bool)> {
        let function = |entry: &Entry| self.functions[entry.pool as usize].0;
        self.entries.iter().flatten().map(move |entry| (function(entry), entry.handle, entry.persistent))
    }

    /// The id of a new request.
    pub(crate) fn create(&mut self, new: New) -> u32 {
        let source = self.source(&new);
        self.insert_in(source, new.handle, new.address, new.persistent, new.later)
    }

    /// One that was made by a call that was not seen (a generalised request of another language, say).
    pub(crate) fn unseen(&mut self, handle: u64, address: usize) -> u32 {
        let wild = false;
        self.create(New {
            handle,
            address,
            signature: handle,
            symbol: handle,
            function: 0,
            persistent: false,
            wild,
            later: None,
        })
    }

    /// As `create`, where the source is known already.
    pub(crate) fn insert_in(
        &mut self,
        source: Source,
        handle: u64,
        address: usize,
        persistent: bool,
        later: Option<Box<Later>>,
    ) -> u32 {
        self.last_source = Some(source);
        let Source { pool, variable } = source;
        if let Some(last) = self.last_at.get_mut(variable as usize) {
            *last = pool;
        }
        let list = self.list_of(handle).unwrap_or_else(|| {
            self.lists.push(List::default());
            let list = (self.lists.len() - 1) as u32;
            self.by_handle.insert(handle, list);
            list
        });
        let index = self.pools[pool as usize].take();
        let ids = &mut self.ids[pool as usize];
        if index as usize == ids.len() {
            ids.push(self.next);
            self.next += 1;
        }
        let id = ids[index as usize];
        self.insert(Entry {
            id,
            handle,
            list,
            address,
            pool,
            index,
            claimed: 0,
            persistent,
            active: !persistent,
            undefined: self.functions[pool as usize].1,
            placed: false,
            later,
            older: [NONE; 2],
            newer: [NONE; 2],
        });
        id
    }

    /// The list of a handle that was seen before.
    #[inline]
    fn list_of(&mut self, handle: u64) -> Option<u32> {
        if self.recent.is_empty() {
            self.recent = vec![(0, 0); RECENT];
        }
        let recent = &mut self.recent[(handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize];
        if recent.0 == handle && recent.1 != 0 {
            return Some(recent.1 - 1);
        }
        let list = *self.by_handle.get(&handle)?;
        *recent = (handle, list + 1);
        Some(list)
    }

    fn insert(&mut self, entry: Entry) {
        let (id, list) = (entry.id as usize, entry.list);
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as u32
        });
        self.entries[slot as usize] = Some(entry);
        if self.entry_of.len() <= id {
            self.entry_of.resize(id + 1, NONE);
        }
        self.entry_of[id] = slot;
        let list = &mut self.lists[list as usize];
        let first = list.head;
        if first == NONE {
            *list = List { head: slot, tail: slot, cursor: slot, ..*list };
        } else {
            // The handle is not alone any more: from here on variables tell its operations apart.
            self.link(By::Handle, slot);
            self.place(first);
            self.place(slot);
        }
    }

    fn place(&mut self, slot: u32) {
        if let Some(entry) = self.entries[slot as usize].as_mut().filter(|entry| !entry.placed) {
            entry.placed = true;
            self.link(By::Address, slot);
        }
    }

    fn link(&mut self, by: By, slot: u32) {
        let Some(entry) = &self.entries[slot as usize] else { return };
        let list = match by {
            By::Handle => &mut self.lists[entry.list as usize],
            By::Address => self.by_address.entry((entry.handle, entry.address)).or_default(),
        };
        let last = std::mem::replace(&mut list.tail, slot);
        if last == NONE {
            list.head = slot;
        }
        if list.cursor == NONE {
            // It had come to the end, and there is more now.
            list.cursor = slot;
        }
        if let Some(last) = self.entries.get_mut(last as usize).and_then(Option::as_mut) {
            last.newer[by as usize] = slot;
        }
        if let Some(entry) = &mut self.entries[slot as usize] {
            entry.older[by as usize] = last;
        }
    }

    fn unlink(&mut self, by: By, slot: u32) {
        let Some(entry) = &self.entries[slot as usize] else { return };
        let (older, newer) = (entry.older[by as usize], entry.newer[by as usize]);
        let list = match by {
            By::Handle => &mut self.lists[entry.list as usize],
            By::Address => self.by_address.entry((entry.handle, entry.address)).or_default(),
        };
        if list.head == slot {
            list.head = newer;
        }
        if list.tail == slot {
            list.tail = older;
        }
        if list.cursor == slot {
            list.cursor = newer;
        }
        if list.head == NONE && by == By::Address {
            // Variables come and go.
            self.by_address.remove(&(entry.handle, entry.address));
        }
        if let Some(older) = self.entries.get_mut(older as usize).and_then(Option::as_mut) {
            older.newer[by as usize] = newer;
        }
        if let Some(newer) = self.entries.get_mut(newer as usize).and_then(Option::as_mut) {
            newer.older[by as usize] = older;
        }
    }

    /// The oldest entry of a list that this call has not claimed yet.
    fn unclaimed(entries: &[Option<Entry>], list: &mut List, by: By, call: u64) -> Option<u32> {
        if list.cursor_call != call {
            list.cursor = list.head;
            list.cursor_call = call;
        }
        while let Some(entry) = entries.get(list.cursor as usize).and_then(Option::as_ref) {
            if entry.claimed != call {
                return Some(list.cursor);
            }
            list.cursor = entry.newer[by as usize];
        }
        None
    }

    /// Which operation a handle stands for here: the one whose handle was stored at this address, otherwise the likeliest
    /// that this call has not claimed yet. And what its status does not say.
    #[inline]
    pub(crate) fn find(&mut self, given: Given<'_>, k: usize) -> Option<Found> {
        let list = self.list_of(given.handle(k))?;
        let call = self.call();
        let List { head, tail, .. } = self.lists[list as usize];
        // Alone: neither its place is asked for nor whether it is claimed.
        let slot = match head == tail {
            true => head,
            false => match self.placed(given.handle(k), given.address(k), call) {
                Some(slot) => slot,
                None => self.likeliest(given, k, list, call),
            },
        };
        self.claim(slot, call)
    }

    /// The operation whose handle was stored at this address, for the call of some thread.
    pub(crate) fn kept_at(&mut self, handle: u64, address: usize, call: u64) -> Option<Found> {
        let list = self.list_of(handle)?;
        let slot = match self.only(list) {
            Some((slot, only)) => (only.address == address).then_some(slot)?,
            None => self.placed(handle, address, call)?,
        };
        self.claim(slot, call)
    }

    /// The likeliest operation of one that is not kept where it was stored, for the call of some thread.
    pub(crate) fn copied(&mut self, given: Given<'_>, k: usize, call: u64) -> Option<Found> {
        let list = self.list_of(given.handle(k))?;
        let slot = self.likeliest(given, k, list, call);
        self.claim(slot, call)
    }

    /// The one operation of a list.
    fn only(&self, list: u32) -> Option<(u32, &Entry)> {
        let List { head, tail, .. } = self.lists[list as usize];
        let entry = self.entries.get(head as usize)?.as_ref()?;
        (head == tail).then_some((head, entry))
    }

    /// The oldest of those that were stored at an address, if the handle stands for several operations.
    fn placed(&mut self, handle: u64, address: usize, call: u64) -> Option<u32> {
        let list = self.by_address.get_mut(&(handle, address))?;
        Self::unclaimed(&self.entries, list, By::Address, call)
    }

    /// One of several whose handle the program has copied: from where the others of its array were copied too, otherwise
    /// the oldest.
    #[cold]
    #[inline(never)]
    fn likeliest(&mut self, given: Given<'_>, k: usize, list: u32, call: u64) -> u32 {
        if self.moved.call != call {
            self.moved = Moved { call, by: None, looks: LOOKS + LOOKS_EACH * given.handles.len() };
        }
        let here = (given.handle(k), given.address(k));
        let known = self.moved.by;
        let mut found = known.and_then(|by| self.placed(here.0, here.1.wrapping_sub(by), call));
        if found.is_none()
            && let Some(by) = self.moved_by(given, k, list, call)
        {
            self.moved.by = Some(by);
            found = self.placed(here.0, here.1.wrapping_sub(by), call);
        }
        if let Some(slot) = found {
            // It is kept here from now on: what asks for it again finds it.
            self.unlink(By::Address, slot);
            if let Some(entry) = &mut self.entries[slot as usize] {
                entry.address = here.1;
                (entry.older[By::Address as usize], entry.newer[By::Address as usize]) = (NONE, NONE);
            }
            self.link(By::Address, slot);
            return slot;
        }
        let list = &mut self.lists[list as usize];
        Self::unclaimed(&self.entries, list, By::Handle, call).unwrap_or(list.head)
    }

    /// How far a block of handles was moved that `k` is in: what most of the others say, and where several say as much
    /// the oldest of `k`. `None` where no other says anything.
    fn moved_by(&mut self, given: Given<'_>, k: usize, list: u32, call: u64) -> Option<usize> {
        if given.handles.len() < 2 {
            return None;
        }
        let mut best = None;
        let mut most = 0;
        let mut last = None;
        let mut slot = self.lists[list as usize].head;
        while let Some(entry) = self.entries.get(slot as usize).and_then(Option::as_ref) {
            let (from, claimed) = (entry.address, entry.claimed == call);
            slot = entry.newer[By::Handle as usize];
            let Some(left) = self.moved.looks.checked_sub(1) else { break };
            self.moved.looks = left;
            if claimed || last == Some(from) {
                continue;
            }
            last = Some(from);
            let by = given.address(k).wrapping_sub(from);
            let (others, all) = self.moved_alike(given, k, by, call);
            if others > most {
                (best, most) = (Some(by), others);
                if all {
                    break;
                }
            }
        }
        best
    }

    /// How many others around `k` can have been moved as far as that, and whether all that come after it can.
    fn moved_alike(&mut self, given: Given<'_>, k: usize, by: usize, call: u64) -> (usize, bool) {
        let mut alike = 0;
        for j in (k.saturating_sub(BEHIND)..given.handles.len()).filter(|&j| j != k) {
            let Some(left) = self.moved.looks.checked_sub(1) else { return (alike, false) };
            self.moved.looks = left;
            // Null ones are not known.
            let Some(list) = self.list_of(given.handle(j)) else { continue };
            let from = given.address(j).wrapping_sub(by);
            let fits = match self.only(list) {
                Some((_, only)) => only.address == from,
                // Of these it is known already which they are.
                None if j < k => continue,
                None => self.placed(given.handle(j), from, call).is_some(),
            };
            if fits {
                alike += 1;
            } else if j > k {
                return (alike, false);
            }
        }
        (alike, true)
    }

    fn claim(&mut self, slot: u32, call: u64) -> Option<Found> {
        let entry = self.entries.get_mut(slot as usize)?.as_mut()?;
        entry.claimed = call;
        // The status of an inactive request is empty, and all of that is defined (MPI 4.1, 3.7.3).
        Some((entry.id, if entry.active { entry.undefined } else { Undefined::NONE }))
    }

    /// A persistent request was started, or is complete.
    pub(crate) fn set_active(&mut self, id: u32, active: bool) {
        let slot = self.entry_of.get(id as usize).copied().unwrap_or(NONE);
        if let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::as_mut)
            && entry.persistent
        {
            entry.active = active;
        }
    }

    /// The operation is over: its id goes back. Persistent requests live until they are freed.
    pub(crate) fn end(&mut self, id: u32, freed: bool) -> Option<Box<Later>> {
        let slot = self.entry_of.get(id as usize).copied().filter(|&slot| slot != NONE)?;
        let entry = self.entries[slot as usize].as_mut()?;
        if entry.persistent && !freed {
            return entry.later.take();
        }
        let (pool, index, placed, later) = (entry.pool, entry.index, entry.placed, entry.later.take());
        self.entry_of[id as usize] = NONE;
        let list = &mut self.lists[entry.list as usize];
        if list.head == list.tail {
            *list = List { head: NONE, tail: NONE, cursor: NONE, ..*list };
        } else {
            self.unlink(By::Handle, slot);
        }
        if placed {
            self.unlink(By::Address, slot);
        }
        self.entries[slot as usize] = None;
        self.vacant.push(slot);
        self.pools[pool as usize].give_back(index);
        later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(handle: u64, address: usize, signature: u64, persistent: bool) -> New {
        New { handle, address, signature, symbol: 0, function: 1, persistent, wild: false, later: None }
    }

    fn start(r: &mut Requests, handle: u64, address: usize, signature: u64) -> u64 {
        u64::from(r.create(new(handle, address, signature, false)))
    }

    fn find(r: &mut Requests, handle: u64, address: usize) -> Option<Found> {
        r.find(Given { handles: &[handle], address, size: 8 }, 0)
    }

    /// What a call finds whose array lies at `address`.
    fn find_all(r: &mut Requests, handles: &[u64], address: usize) -> Vec<u32> {
        r.stamp();
        let given = Given { handles, address, size: 8 };
        let live = (0..handles.len()).filter(|&k| handles[k] != NULL);
        live.map(|k| r.find(given, k).unwrap().0).collect()
    }

    /// What is over in the end.
    fn finish_all(r: &mut Requests, handles: &[u64], address: usize) -> Vec<u32> {
        let all = find_all(r, handles, address);
        all.iter().for_each(|&id| drop(r.end(id, false)));
        all
    }

    /// No request.
    const NULL: u64 = 99;

    fn finish(r: &mut Requests, handle: u64, address: usize) -> u64 {
        r.stamp();
        let id = find(r, handle, address).unwrap().0;
        r.end(id, false);
        u64::from(id)
    }

    #[test]
    fn completion_order_leaves_no_mark() {
        let mut r = Requests::default();
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            for s in 0..3u64 {
                assert_eq!(start(&mut r, 100 + s, 0, s), s);
            }
            for i in order {
                assert_eq!(finish(&mut r, 100 + i, 0), i);
            }
        }
    }

    #[test]
    fn one_handle_for_many_operations_is_told_apart_by_its_variable() {
        let mut r = Requests::default();
        for s in 0..3u64 {
            assert_eq!(start(&mut r, 7, 0x1000 + s as usize, s), s);
        }
        assert_eq!(finish(&mut r, 7, 0x1002), 2);
        assert_eq!(finish(&mut r, 7, 0x1000), 0);
        assert_eq!(finish(&mut r, 7, 0x1001), 1);
    }

    #[test]
    fn one_handle_many_times_in_one_array_is_many_operations() {
        let mut r = Requests::default();
        for s in 0..3u64 {
            start(&mut r, 7, 0x1000, s);
        }
        r.stamp();
        let ids: Vec<u32> = (0..3).map(|_| find(&mut r, 7, 0x9999).unwrap().0).collect();
        assert_eq!(ids, [0, 1, 2]);
    }

    #[test]
    fn two_of_one_signature_get_two_ids() {
        let mut r = Requests::default();
        assert_eq!(start(&mut r, 1, 0, 5), 0);
        assert_eq!(start(&mut r, 2, 0, 5), 1);
        assert_eq!(start(&mut r, 3, 0, 6), 2);
        assert_eq!(finish(&mut r, 1, 0), 0);
        assert_eq!(start(&mut r, 4, 0, 5), 0);
    }

    /// Counts that differ from stage to stage leave no mark either, as long as one is over before the next begins.
    #[test]
    fn a_new_signature_takes_the_pool_of_its_variable() {
        let mut r = Requests::default();
        for s in 0..5 {
            assert_eq!(start(&mut r, 1, 0x10, s), 0);
            assert_eq!(finish(&mut r, 1, 0x10), 0);
        }
        // Another variable, another pool; and where the pool is in use.
        assert_eq!(start(&mut r, 2, 0x18, 5), 1);
        assert_eq!(start(&mut r, 3, 0x18, 6), 2);
        finish(&mut r, 2, 0x18);
        finish(&mut r, 3, 0x18);
        // What is known stays where it is, whatever the variable.
        assert_eq!([5, 6, 3].map(|s| start(&mut r, 10 + s, 0x18, s)), [1, 2, 0]);
    }

    #[test]
    fn calls_of_other_kinds_share_no_pool() {
        let mut r = Requests::default();
        for (id, symbol, wild) in [(0, 1, false), (1, 2, false), (2, 1, true), (0, 1, false)] {
            let signature = 10 + u64::from(id);
            assert_eq!(r.create(New { symbol, wild, ..new(7, 0x10, signature, false) }), id);
            finish(&mut r, 7, 0x10);
        }
    }

    #[test]
    fn persistent_requests_stay_until_freed() {
        let mut r = Requests::default();
        let id = r.create(new(9, 0, 1, true));
        r.end(id, false);
        r.stamp();
        assert_eq!(find(&mut r, 9, 0).map(|found| found.0), Some(id));
        r.end(id, true);
        assert_eq!(r.create(new(9, 0, 1, true)), id);
    }

    #[test]
    fn the_status_of_an_inactive_request_is_defined() {
        let mut r = Requests::default();
        let send = refrain_model::function("MPI_Send_init").unwrap().id;
        let id = r.create(New { function: send, ..new(9, 0, 1, true) });
        let of = |r: &mut Requests| {
            r.stamp();
            find(r, 9, 0).unwrap().1
        };
        assert_eq!(of(&mut r), Undefined::NONE);
        r.set_active(id, true);
        assert_eq!(of(&mut r), Undefined::SEND);
        r.set_active(id, false);
        assert_eq!(of(&mut r), Undefined::NONE);
        // One that ends when it is complete is active until then.
        let other = r.create(New { function: send, ..new(10, 0, 2, false) });
        r.set_active(other, false);
        r.stamp();
        assert_eq!(find(&mut r, 10, 0).unwrap().1, Undefined::SEND);
    }

    /// One at 0x800, then as many as that one beside the other from 0x1000 on: ids 0, 1, 2 and so on.
    fn an_older_one_and_a_block(count: u32) -> Requests {
        let mut r = Requests::default();
        start(&mut r, 7, 0x800, 0);
        for k in 0..count {
            start(&mut r, 7, 0x1000 + 8 * k as usize, 1 + u64::from(k));
        }
        r
    }

    #[test]
    fn a_copied_array_is_known_by_its_distances() {
        let mut r = an_older_one_and_a_block(3);
        assert_eq!(finish_all(&mut r, &[7; 3], 0x5000), [1, 2, 3]);
        assert_eq!(finish(&mut r, 7, 0x800), 0);
        // With a gap, and behind others that are not alike.
        let mut r = an_older_one_and_a_block(4);
        finish(&mut r, 7, 0x1008);
        assert_eq!(finish_all(&mut r, &[NULL, 7, NULL, 7, 7], 0x5000), [1, 3, 4]);
        // The longest block that fits, not the first.
        let mut r = an_older_one_and_a_block(2);
        for k in 0..3 {
            start(&mut r, 7, 0x2000 + 8 * k, 10 + k as u64);
        }
        assert_eq!(finish_all(&mut r, &[7; 3], 0x5000), [3, 4, 5]);
        // Two blocks in one array.
        assert_eq!(finish_all(&mut r, &[7, 7, 7], 0x5000), [1, 2, 0]);
    }

    #[test]
    fn a_handle_of_its_own_says_where_the_others_come_from() {
        for [first, second] in [[7, 8], [8, 7]] {
            let mut r = an_older_one_and_a_block(2);
            start(&mut r, first, 0x1018, 3);
            start(&mut r, second, 0x1020, 4);
            assert_eq!(finish_all(&mut r, &[first, second], 0x5000), [3, 4]);
            assert_eq!(finish_all(&mut r, &[7, 7], 0x1000), [1, 2]);
        }
    }

    #[test]
    fn what_moves_up_in_its_array_is_known() {
        let mut r = an_older_one_and_a_block(3);
        finish(&mut r, 7, 0x1000);
        assert_eq!(find_all(&mut r, &[7, 7], 0x1000), [2, 3]);
    }

    /// One after the other is over, and the last has no neighbour any more.
    #[test]
    fn what_was_found_in_a_copy_is_kept_there() {
        let mut r = an_older_one_and_a_block(3);
        assert_eq!(find_all(&mut r, &[7; 3], 0x5000), [1, 2, 3]);
        r.end(2, false);
        assert_eq!(find_all(&mut r, &[7, NULL, 7], 0x5000), [1, 3]);
        r.end(1, false);
        assert_eq!(finish_all(&mut r, &[NULL, NULL, 7], 0x5000), [3]);
        assert_eq!((finish(&mut r, 7, 0x6000), r.by_address.len()), (0, 0));
        // The program may go back to where it was.
        let mut r = an_older_one_and_a_block(3);
        find_all(&mut r, &[7; 3], 0x5000);
        assert_eq!(finish_all(&mut r, &[7; 3], 0x1000), [1, 2, 3]);
    }

    /// Against a plain list of operations: those stored at the address first, then the oldest; each once in a call.
    #[test]
    fn shared_handles_agree_with_a_plain_list() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut random = |n: u64| random.u64(..n);
        let mut r = Requests::default();
        let mut plain: Vec<(u64, usize, u32)> = Vec::new();
        for _ in 0..20_000 {
            if plain.len() < 30 && random(2) == 0 {
                let (handle, address) = (random(3), random(4) as usize);
                let id = r.create(new(handle, address, random(5), false));
                assert!(plain.iter().all(|&(_, _, other)| other != id));
                plain.push((handle, address, id));
                continue;
            }
            r.stamp();
            let mut claimed = Vec::new();
            for _ in 0..random(6) {
                let (handle, address) = (random(3), random(4) as usize);
                let free = |(h, _, id): &&(u64, usize, u32)| *h == handle && !claimed.contains(id);
                let here = plain.iter().filter(free).find(|(_, a, _)| *a == address);
                let Some(&(_, _, id)) = here.or_else(|| plain.iter().find(free)) else { continue };
                assert_eq!(find(&mut r, handle, address).map(|found| found.0), Some(id));
                claimed.push(id);
            }
            for id in claimed {
                if random(3) != 0 {
                    r.end(id, false);
                    plain.retain(|&(_, _, other)| other != id);
                }
            }
        }
    }

    /// A million operations of one handle, looked up where they were copied to and completed from the last to the first:
    /// within a test's patience only where each takes the same time.
    #[test]
    fn many_operations_of_one_handle_cost_the_same_each() {
        let mut r = Requests::default();
        let n = 1_000_000;
        for s in 0..n {
            start(&mut r, 7, 0x10, s % 5);
        }
        r.stamp();
        let mut ids: Vec<u32> = (0..n as usize).map(|k| find(&mut r, 7, 0x1000 + 8 * k).unwrap().0).collect();
        ids.reverse();
        ids.iter().for_each(|&id| drop(r.end(id, false)));
        assert_eq!((r.by_address.len(), r.vacant.len()), (0, n as usize));
        // The same in one array, which lies as they lay, or does not.
        for distance in [8, 24] {
            (0..n).for_each(|s| _ = start(&mut r, 7, 0x1000 + distance * s as usize, s % 5));
            let mut ids = finish_all(&mut r, &vec![7; n as usize], 0x9000_0000);
            ids.sort_unstable();
            ids.dedup();
            assert_eq!((ids.len(), r.by_address.len()), (n as usize, 0));
        }
    }
}
