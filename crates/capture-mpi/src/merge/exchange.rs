//! The messages by which the ranks bring their recordings together, and how a rank that fails among them still plays its
//! part: the others wait for each of its messages, in a program that is about to end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use refrain_fold::bundle::{Link, RankTree};

/// What a rank does next, with which other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Send(u32),
    Recv(u32),
}

/// Every message of `fold::bundle::gather` and then of `summary::gather`. They depend on nothing but the rank.
fn steps(rank: u32, size: u32) -> Vec<Step> {
    let RankTree { below, above } = RankTree::of(rank, size);
    let taking = below.iter().flat_map(|&from| [Step::Recv(from), Step::Send(from), Step::Recv(from)]);
    let giving = above.iter().flat_map(|&to| [Step::Send(to), Step::Recv(to), Step::Send(to)]);
    let summing = below.iter().map(|&from| Step::Recv(from)).chain(above.map(Step::Send));
    taking.chain(giving).chain(summing).collect()
}

/// A link that knows how far it has come.
pub struct Counted<'a, L> {
    link: &'a mut L,
    done: usize,
}

impl<L: Link> Link for Counted<'_, L> {
    type Error = L::Error;

    fn send(&mut self, to: u32, bytes: &[u8]) -> Result<(), L::Error> {
        self.done += 1;
        self.link.send(to, bytes)
    }

    fn recv(&mut self, from: u32) -> Result<Vec<u8>, L::Error> {
        self.done += 1;
        self.link.recv(from)
    }
}

/// Runs both exchanges. Where they fail or panic, what is left of them is gone through with empty messages, which the
/// partners take for a lost part.
pub fn both<L: Link, T>(
    link: &mut L,
    rank: u32,
    size: u32,
    exchange: impl FnOnce(&mut Counted<'_, L>) -> Result<T, L::Error>,
) -> Option<Result<T, L::Error>> {
    go_through(link, steps(rank, size), exchange)
}

/// The same for an exchange of other messages.
pub fn go_through<L: Link, T>(
    link: &mut L,
    steps: Vec<Step>,
    exchange: impl FnOnce(&mut Counted<'_, L>) -> Result<T, L::Error>,
) -> Option<Result<T, L::Error>> {
    let mut counted = Counted { link, done: 0 };
    let result = catch_unwind(AssertUnwindSafe(|| exchange(&mut counted)));
    if !matches!(result, Ok(Ok(_))) {
        let left = steps.into_iter().skip(counted.done);
        for step in left {
            let gone_through = match step {
                Step::Send(to) => link.send(to, &[]),
                Step::Recv(from) => link.recv(from).map(drop),
            };
            if gone_through.is_err() {
                break;
            }
        }
    }
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::summary::{self, Summary};
    use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart, gather};
    use refrain_fold::grammar::Folder;
    use refrain_mpi::{LocalTransport, Transport, TransportError, local};

    /// Panics with the message of that number still in its hands.
    struct Failing {
        transport: LocalTransport,
        at: usize,
    }

    impl Failing {
        fn count(&mut self) {
            self.at = self.at.wrapping_sub(1);
        }
    }

    impl Link for Failing {
        type Error = TransportError;

        fn send(&mut self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
            let sent = self.transport.send(to, bytes);
            self.count();
            assert_ne!(self.at, 0, "a test asked for a fault");
            sent
        }

        fn recv(&mut self, from: u32) -> Result<Vec<u8>, TransportError> {
            let received = self.transport.recv(from);
            self.count();
            assert_ne!(self.at, 0, "a test asked for a fault");
            received
        }
    }

    fn recording(rank: u32) -> Bundle {
        let mut structure = Folder::default();
        structure.push(0);
        let part = ThreadPart {
            thread: 0,
            structure: structure.finish().into(),
            times: Vec::new(),
            lanes: vec![vec![]],
            lengths: vec![vec![]],
            digest: rank.into(),
        };
        let tally = Tally { total: 1, min: 1, max: 1 };
        let symbol = SymbolEntry {
            bytes: Box::from([7u8, rank as u8]),
            site: 0,
            lanes: 0,
            tally,
            classes: Default::default(),
        };
        Bundle::of_rank((rank, 0), vec![symbol], vec![part]).unwrap()
    }

    /// All ranks meet, one of which panics at its message `at` (0: none); how many ranks rank 0 then knows of.
    fn check(size: u32, failing: u32, at: usize) -> Option<u64> {
        std::panic::set_hook(Box::new(|_| {}));
        let ranks = local(size).into_iter().map(|transport| {
            std::thread::spawn(move || {
                let rank = transport.rank();
                let mut link = Failing { transport, at: if rank == failing { at } else { 0 } };
                let met = both(&mut link, rank, size, |link| {
                    let gathered = gather(link, rank, size, recording(rank))?;
                    summary::gather(link, rank, size, Summary::default())?;
                    Ok(gathered.bundle)
                });
                met.and_then(Result::ok).flatten().map(|b| b.cohorts.iter().map(|c| c.ranks.len()).sum())
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).next().flatten()
    }

    #[test]
    fn a_rank_that_fails_while_merging_leaves_nobody_waiting() {
        for size in 1..=9 {
            assert_eq!(check(size, 0, 0), Some(size.into()));
            for failing in 0..size {
                let messages = steps(failing, size).len();
                for at in 1..=messages {
                    // Rank 0 has nothing left when it fails itself; otherwise what went through it before.
                    let known = check(size, failing, at);
                    assert_eq!(known.is_none(), failing == 0, "{size} ranks, {failing} fails at {at}");
                    let behind = (size - failing).min(1 << failing.trailing_zeros().min(31));
                    assert!(
                        known.is_none_or(|n| n >= u64::from(size - behind)),
                        "{failing} at {at}: {known:?}"
                    );
                }
            }
        }
    }
}
