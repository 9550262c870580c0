//! Bytes between ranks: the interface, and its in-process twin for tests.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Blocking point-to-point messages, each delivered whole, those of one sender in their order.
///
/// A send may wait for its receive, so two ranks must not both send to each other first.
pub trait Transport {
    fn rank(&self) -> u32;
    fn size(&self) -> u32;
    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), TransportError>;
    fn recv(&self, from: u32) -> Result<Vec<u8>, TransportError>;
    /// From now on waits so long for one message.
    fn wait_at_most(&mut self, most: Duration);
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// There is no such other rank.
    #[error("rank {rank} cannot be written to or read from: it is none of the {size} ranks, or our own")]
    NoPeer { rank: u32, size: u32 },
    /// An MPI call failed.
    #[error("{call} failed with MPI error code {code}")]
    Mpi { call: &'static str, code: i32 },
    /// A message ended before its announced length.
    #[error("a message from rank {from} has {got} bytes where {expected} were announced")]
    Short { from: u32, expected: usize, got: usize },
    /// There is no memory for a message of that length.
    #[error("no memory for the {length} bytes that rank {from} sends; run with fewer ranks on a node")]
    Memory { from: u32, length: u64 },
    /// The other rank is gone.
    #[error("rank {rank} is gone")]
    Gone { rank: u32 },
    /// Nothing came of a message for so long.
    #[error("rank {rank} has not answered for {seconds} s")]
    Late { rank: u32, seconds: u64 },
    /// Another rank has given up, and nobody needs to wait any more.
    #[error("another rank could not go on")]
    CalledOff,
}

/// That rank, if it is another one.
pub(crate) fn peer(own: u32, size: u32, rank: u32) -> Result<u32, TransportError> {
    if rank < size && rank != own { Ok(rank) } else { Err(TransportError::NoPeer { rank, size }) }
}

/// One rank of several in this process; move each into a thread of its own.
#[derive(Debug)]
pub struct LocalTransport {
    rank: u32,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
    most: Duration,
}

/// As many ranks, connected each with each.
pub fn local(size: u32) -> Vec<LocalTransport> {
    let mut ranks: Vec<LocalTransport> = (0..size)
        .map(|rank| LocalTransport { rank, to: Vec::new(), from: Vec::new(), most: Duration::MAX })
        .collect();
    for from in 0..ranks.len() {
        for to in 0..ranks.len() {
            let (sender, receiver) = channel();
            // Each `to` grows in order of receivers here, and each `from` in order of senders.
            ranks[from].to.push(sender);
            ranks[to].from.push(receiver);
        }
    }
    ranks
}

impl Transport for LocalTransport {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        // `local` made it from a u32.
        self.to.len() as u32
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
        let rank = peer(self.rank, self.size(), to)?;
        self.to[rank as usize].send(bytes.to_vec()).map_err(|_| TransportError::Gone { rank })
    }

    fn recv(&self, from: u32) -> Result<Vec<u8>, TransportError> {
        let rank = peer(self.rank, self.size(), from)?;
        self.from[rank as usize].recv_timeout(self.most).map_err(|error| match error {
            RecvTimeoutError::Timeout => TransportError::Late { rank, seconds: self.most.as_secs() },
            RecvTimeoutError::Disconnected => TransportError::Gone { rank },
        })
    }

    fn wait_at_most(&mut self, most: Duration) {
        self.most = most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn ranks_know_themselves() {
        let ranks = local(5);
        for (rank, transport) in (0..).zip(&ranks) {
            assert_eq!((transport.rank(), transport.size()), (rank, 5));
        }
        assert!(local(0).is_empty());
    }

    #[test]
    fn a_message_goes_from_each_to_each_in_order() {
        let threads: Vec<_> = local(4)
            .into_iter()
            .map(|t| {
                thread::spawn(move || {
                    for peer in (0..4).filter(|&p| p != t.rank()) {
                        for turn in 0..3 {
                            t.send(peer, &[t.rank() as u8, peer as u8, turn]).expect("all are there");
                        }
                    }
                    for peer in (0..4).filter(|&p| p != t.rank()) {
                        for turn in 0..3 {
                            assert_eq!(t.recv(peer), Ok(vec![peer as u8, t.rank() as u8, turn]));
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no assertion failed");
        }
    }

    #[test]
    fn errors() {
        let mut ranks = local(2);
        assert_eq!(ranks[0].send(2, b"x"), Err(TransportError::NoPeer { rank: 2, size: 2 }));
        assert_eq!(ranks[0].recv(0), Err(TransportError::NoPeer { rank: 0, size: 2 }));
        ranks[0].wait_at_most(Duration::ZERO);
        assert_eq!(ranks[0].recv(1), Err(TransportError::Late { rank: 1, seconds: 0 }));
        ranks[1].send(0, b"last words").expect("both are there");
        ranks.pop();
        assert_eq!(ranks[0].send(1, b"x"), Err(TransportError::Gone { rank: 1 }));
        assert_eq!(ranks[0].recv(1), Ok(b"last words".to_vec()));
        assert_eq!(ranks[0].recv(1), Err(TransportError::Gone { rank: 1 }));
    }
}
