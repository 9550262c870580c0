//! Who gives to whom where many bring something together: the binomial tree over the ranks, with rank 0 at its root.

/// One rank's place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankTree {
    /// Who gives to it, in this order.
    pub below: Vec<u32>,
    /// Whom it gives to then; `None` for rank 0.
    pub above: Option<u32>,
}

impl RankTree {
    /// Of `rank` among `size`. In phase k a rank whose bit k is set gives to the rank that lacks only that bit, and is done.
    pub fn of(rank: u32, size: u32) -> RankTree {
        let phases = (0..u32::BITS).map(|k| 1u32 << k).take_while(|&bit| bit < size);
        let mut below = Vec::new();
        for bit in phases {
            if rank & bit != 0 {
                return RankTree { below, above: Some(rank - bit) };
            }
            below.extend(rank.checked_add(bit).filter(|&from| from < size));
        }
        RankTree { below, above: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_gives_once_and_all_reach_rank_0() {
        for size in 1..70 {
            let all: Vec<RankTree> = (0..size).map(|rank| RankTree::of(rank, size)).collect();
            assert_eq!(all[0].above, None);
            for rank in 1..size {
                let above = all[rank as usize].above.unwrap();
                assert!(above < rank, "{rank} of {size}");
                assert_eq!(all[above as usize].below.iter().filter(|&&from| from == rank).count(), 1);
            }
            assert_eq!(all.iter().map(|tree| tree.below.len() as u32).sum::<u32>(), size - 1);
        }
        assert_eq!(RankTree::of(0, u32::MAX).below.len(), 32);
        assert_eq!(
            RankTree::of(1 << 31, u32::MAX),
            RankTree { below: (0..31).map(|k| (1 << 31) + (1 << k)).collect(), above: Some(0) }
        );
    }
}
