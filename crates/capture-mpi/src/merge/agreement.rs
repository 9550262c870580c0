//! Which tags matter, what a mean is and which call stack stands for others (`--lossy tags,averages,sites=N`) no rank can
//! tell alone: what each knows goes up the tree that the recordings will take, and what all know together comes down
//! again.

use refrain_encode::Agreed;
use refrain_fold::bundle::{Link, RankTree};

use super::exchange::{Step, go_through};

/// To be called by all ranks. One that fails among these messages leaves the others with the knowledge that nothing is
/// known, so that everything stays.
pub fn agree<L: Link>(link: &mut L, rank: u32, size: u32, own: Agreed) -> Agreed {
    let RankTree { below, above } = RankTree::of(rank, size);
    let up = below.iter().copied().map(Step::Recv).chain(above.map(Step::Send));
    let down = above.map(Step::Recv).into_iter().chain(below.iter().rev().copied().map(Step::Send));
    let read = |bytes: &[u8]| Agreed::from_text(&String::from_utf8_lossy(bytes));
    let agreed = go_through(link, up.chain(down).collect(), |link| {
        let mut all = own;
        for &from in &below {
            all.absorb(read(&link.recv(from)?));
        }
        if let Some(above) = above {
            link.send(above, all.to_text().as_bytes())?;
            all = read(&link.recv(above)?);
        }
        for &to in below.iter().rev() {
            link.send(to, all.to_text().as_bytes())?;
        }
        Ok(all)
    });
    agreed.and_then(Result::ok).unwrap_or_else(Agreed::unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_encode::Tags;
    use refrain_mpi::{LocalTransport, Transport, TransportError, local};

    struct Wire {
        transport: LocalTransport,
        fails: bool,
    }

    impl Link for Wire {
        type Error = TransportError;
        fn send(&mut self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
            let sent = self.transport.send(to, bytes);
            assert!(!std::mem::take(&mut self.fails), "a test asked for a fault");
            sent
        }
        fn recv(&mut self, from: u32) -> Result<Vec<u8>, TransportError> {
            self.transport.recv(from)
        }
    }

    fn with_tags(text: &str) -> Agreed {
        Agreed { tags: Tags::from_text(text), ..Agreed::default() }
    }

    /// What each of `size` ranks is left with, if `fails` panics after its first message. Together their tags do not
    /// matter.
    fn agreed(size: u32, fails: Option<u32>) -> Vec<Agreed> {
        std::thread::scope(|scope| {
            let ranks = (0..).zip(local(size)).map(|(rank, transport)| {
                let mut link = Wire { transport, fails: fails == Some(rank) };
                let others = u64::from((0..size - 1).sum::<u32>());
                let sum = if rank + 1 < size { rank.into() } else { others.wrapping_neg() };
                let own = with_tags(&format!("known\n{sum} 0 {rank} world\n"));
                scope.spawn(move || agree(&mut link, rank, size, own))
            });
            let ranks = ranks.collect::<Vec<_>>();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_ranks_know_the_same() {
        for size in [1, 2, 3, 5, 8] {
            let tags = if size == 1 { "0" } else { "many" };
            let expected = with_tags(&format!("known\n0 0 {tags} world\n"));
            assert!(!expected.tags.matter("world"));
            assert_eq!(agreed(size, None), vec![expected; size as usize], "{size} ranks");
        }
    }

    #[test]
    fn nobody_waits_for_a_rank_that_fails() {
        std::panic::set_hook(Box::new(|_| {}));
        for size in 2..9 {
            for fails in 0..size {
                let known = agreed(size, Some(fails));
                assert!(known[fails as usize].tags.matter("world"), "{fails} of {size}: {known:?}");
                // Below it nothing is known either; above it everything is.
                let above = RankTree::of(fails, size).above;
                assert!(
                    above.is_none_or(|above| !known[above as usize].tags.matter("world")),
                    "{fails} of {size}"
                );
            }
        }
    }
}
