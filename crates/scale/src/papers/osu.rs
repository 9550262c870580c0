//! OSU's loops: for messages of 1, 2, 4 ... 4096 numbers one loop each.

use super::{
    Loop, barrier, broadcast, into, out, receive, send, start_receive, start_send, sum_all, sum_at_root,
};
use crate::rank::{Access, Rank};

const WINDOW: u32 = 64;
const LARGEST: u32 = 4096;

pub(super) fn run(r: &mut Rank<'_>, which: Loop, steps: u32) {
    let half = r.size / 2;
    let pair = Pair { other: (r.rank + half) % r.size, is_first: r.rank < half };
    for count in (0..=LARGEST.ilog2()).map(|power| 1 << power) {
        barrier(r);
        match which {
            Loop::Latency => (0..steps).for_each(|_| pair.latency(r, count)),
            Loop::Bandwidth => (0..steps).for_each(|_| pair.bandwidth(r, count)),
            Loop::BothWays => (0..steps).for_each(|_| pair.both_ways(r, count)),
            Loop::OneSided(access) => pair.one_sided(r, access, count, steps),
            _ => {
                (0..steps).for_each(|_| collective(r, which, count));
                (0..3).for_each(|_| sum_at_root(r, 1));
            }
        }
    }
}

fn collective(r: &mut Rank<'_>, which: Loop, count: u32) {
    let world = r.world();
    match which {
        Loop::Allreduce => sum_all(r, count),
        Loop::Bcast => broadcast(r, count),
        Loop::Reduce => sum_at_root(r, count),
        Loop::Alltoall => r.alltoall(out(count), into(count), world),
        Loop::Allgather => r.allgather(out(count), into(count), world),
        _ => {}
    }
    barrier(r);
}

struct Pair {
    other: u32,
    is_first: bool,
}

impl Pair {
    fn latency(&self, r: &mut Rank<'_>, count: u32) {
        if self.is_first {
            send(r, count, self.other, 1);
        }
        receive(r, count, self.other, 1);
        if !self.is_first {
            send(r, count, self.other, 1);
        }
    }

    fn bandwidth(&self, r: &mut Rank<'_>, count: u32) {
        for _ in 0..WINDOW {
            if self.is_first {
                start_send(r, count, self.other, 100);
            } else {
                start_receive(r, count, self.other, 100);
            }
        }
        r.waitall_told();
        if self.is_first {
            receive(r, 1, self.other, 101);
        } else {
            send(r, 1, self.other, 101);
        }
    }

    fn both_ways(&self, r: &mut Rank<'_>, count: u32) {
        let (here, there) = if self.is_first { (10, 100) } else { (100, 10) };
        (0..WINDOW).for_each(|_| start_receive(r, count, self.other, here));
        (0..WINDOW).for_each(|_| start_send(r, count, self.other, there));
        r.waitall_told();
    }

    fn one_sided(&self, r: &mut Rank<'_>, access: Access, count: u32, steps: u32) {
        let window = r.win_create(into(LARGEST));
        if self.is_first {
            r.win_lock_shared(self.other, window);
            for _ in 0..steps {
                r.access(access, out(count), self.other, window);
                r.win_flush(self.other, window);
            }
            r.win_unlock(self.other, window);
        }
        barrier(r);
        r.win_free(window);
    }
}
