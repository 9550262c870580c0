//! Request ids: a pool for each creating signature, so that the order of completion leaves no mark on the ids
//! (Pilgrim, 3.4.3).

use std::collections::VecDeque;

use crate::comms::Later;
use crate::hash::FastMap;
use crate::objects::{Code, Pool};

/// Distinct signatures that get a pool of their own. A program that never repeats itself shares one pool per function
/// after that, which costs compression and bounds memory.
const MAX_POOLS: usize = 1 << 16;

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: u32,
    /// Where the program keeps the handle: tells operations apart to which the library gave one handle.
    address: usize,
    pool: u32,
    index: u32,
    /// The call that last claimed this entry.
    claimed: u64,
    persistent: bool,
    pub(crate) later: Option<Box<Later>>,
}

#[derive(Debug, Default, Clone)]
struct Outstanding {
    entries: VecDeque<Entry>,
    /// Where the next look-up in the same call starts.
    cursor: usize,
    cursor_call: u64,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Requests {
    by_handle: FastMap<u64, Outstanding>,
    pool_of: FastMap<u64, u32>,
    pools: Vec<Pool>,
    /// Ids are unique over all pools: each pool hands out indices, this maps (pool, index) to an id.
    ids: Vec<Vec<u32>>,
    next: u32,
    null: Option<(u64, u16)>,
    call: u64,
}

impl Requests {
    pub(crate) fn set_null(&mut self, handle: u64, constant: u16) {
        self.null = Some((handle, constant));
    }

    pub(crate) fn is_null(&self, handle: u64) -> bool {
        self.null.is_some_and(|(null, _)| null == handle)
    }

    /// A new call looks requests up: each look-up in it claims another entry.
    pub(crate) fn next_call(&mut self) {
        self.call += 1;
    }

    fn pool(&mut self, signature: u64, function: u16) -> u32 {
        let known = self.pool_of.get(&signature).copied();
        known.unwrap_or_else(|| {
            let key = if self.pool_of.len() < MAX_POOLS { signature } else { u64::from(function) };
            let pools = &mut self.pools;
            let ids = &mut self.ids;
            *self.pool_of.entry(key).or_insert_with(|| {
                pools.push(Pool::default());
                ids.push(Vec::new());
                (pools.len() - 1) as u32
            })
        })
    }

    pub(crate) fn create(
        &mut self,
        handle: u64,
        address: usize,
        signature: u64,
        function: u16,
        persistent: bool,
        later: Option<Box<Later>>,
    ) -> Code {
        if let Some((null, constant)) = self.null
            && null == handle
        {
            return Code::Constant(constant);
        }
        let pool = self.pool(signature, function);
        let index = self.pools[pool as usize].take();
        let ids = &mut self.ids[pool as usize];
        if index as usize == ids.len() {
            ids.push(self.next);
            self.next += 1;
        }
        let id = ids[index as usize];
        let entry = Entry { id, address, pool, index, claimed: 0, persistent, later };
        self.by_handle.entry(handle).or_default().entries.push_back(entry);
        Code::Id(id)
    }

    /// Which operation a handle stands for here: the one whose handle was stored at this address, otherwise the oldest
    /// that this call has not claimed yet.
    pub(crate) fn code(&mut self, handle: u64, address: usize) -> Code {
        if let Some((null, constant)) = self.null
            && null == handle
        {
            return Code::Constant(constant);
        }
        let call = self.call;
        let found = self.by_handle.get_mut(&handle).and_then(|o| {
            let n = o.entries.len();
            if o.cursor_call != call || o.cursor >= n {
                o.cursor = 0;
                o.cursor_call = call;
            }
            let at = (0..n).map(|k| (o.cursor + k) % n);
            let free = |&i: &usize| o.entries[i].claimed != call;
            let index = at
                .clone()
                .find(|i| free(i) && o.entries[*i].address == address)
                .or_else(|| at.clone().find(free))
                .or(if n > 0 { Some(0) } else { None })?;
            o.cursor = index + 1;
            o.entries[index].claimed = call;
            Some(o.entries[index].id)
        });
        match found {
            Some(id) => Code::Id(id),
            // Made by a call that was not seen (a generalised request of another language, say).
            None => self.create(handle, address, handle, 0, false, None),
        }
    }

    /// The operation is over: its id goes back. Persistent requests live until they are freed.
    pub(crate) fn complete(&mut self, handle: u64, id: u32, freed: bool) -> Option<Box<Later>> {
        let outstanding = self.by_handle.get_mut(&handle)?;
        let index = outstanding.entries.iter().position(|e| e.id == id)?;
        if outstanding.entries[index].persistent && !freed {
            return outstanding.entries[index].later.take();
        }
        let entry = outstanding.entries.remove(index)?;
        self.pools[entry.pool as usize].give_back(entry.index);
        entry.later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(r: &mut Requests, handle: u64, address: usize, signature: u64) -> u64 {
        r.create(handle, address, signature, 1, false, None).number() / 2
    }

    fn finish(r: &mut Requests, handle: u64, address: usize) -> u64 {
        r.next_call();
        let Code::Id(id) = r.code(handle, address) else { panic!("null") };
        r.complete(handle, id, false);
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
        r.next_call();
        let ids: Vec<u64> = (0..3).map(|_| r.code(7, 0x9999).number() / 2).collect();
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

    #[test]
    fn persistent_requests_stay_until_freed() {
        let mut r = Requests::default();
        let Code::Id(id) = r.create(9, 0, 1, 1, true, None) else { panic!() };
        r.complete(9, id, false);
        r.next_call();
        assert_eq!(r.code(9, 0), Code::Id(id));
        r.complete(9, id, true);
        assert_eq!(r.create(9, 0, 1, 1, true, None), Code::Id(id));
    }
}
