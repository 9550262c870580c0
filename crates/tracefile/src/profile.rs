//! Time by rank and function, to within 1/32; outside MPI and in all of it the extremes exactly.

use refrain_fold::ranks::RankList;

/// A function that takes less than one part in so many of the mean wall time on every rank is not told by rank.
pub const PARTS: u64 = 128;

/// What a time was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spent {
    /// By the main thread, from `MPI_Init` to `MPI_Finalize`, in no call that was recorded.
    Outside,
    /// By the main thread, in all calls together.
    Inside,
    /// In one function, by all threads together.
    Function(u16),
}

impl Spent {
    /// The numbers are in files.
    pub fn number(self) -> u32 {
        match self {
            Spent::Outside => 0,
            Spent::Inside => 1,
            Spent::Function(id) => 2 + u32::from(id),
        }
    }

    pub fn from_number(number: u32) -> Option<Spent> {
        match number {
            0 => Some(Spent::Outside),
            1 => Some(Spent::Inside),
            more => u16::try_from(more - 2).ok().map(Spent::Function),
        }
    }
}

/// One kind of time, over ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub spent: Spent,
    /// (rank, nanoseconds), exact unless it is a settled one of a function; the lowest of several ranks.
    pub least: (u32, u64),
    pub most: (u32, u64),
    /// (level, ranks), in the order of the profile's ranks; no two neighbours are equal.
    pub runs: Vec<(u16, u32)>,
}

/// How ranks spent their time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Those that it is about.
    pub ranks: RankList,
    /// In order; the first two are always there if there is any rank.
    pub rows: Vec<Row>,
}

/// Levels are 16 to the octave; below 32 ns each number has its own.
const STEPS: u32 = 16;
/// No time has a higher one.
pub const HIGHEST: u16 = level(u64::MAX);

pub const fn level(ns: u64) -> u16 {
    let bits = u64::BITS - ns.leading_zeros();
    let shift = bits.saturating_sub(STEPS.ilog2() + 1);
    (shift * STEPS) as u16 + (ns >> shift) as u16
}

/// The least time of a level, and how many bits it leaves open.
pub const fn lowest(level: u16) -> (u64, u32) {
    let shift = (level as u32 / STEPS).saturating_sub(1);
    ((level as u64 - (shift * STEPS) as u64) << shift, shift)
}

/// What a level stands for: wrong by 1/32 at most.
pub const fn middle(level: u16) -> u64 {
    let (lowest, open) = lowest(level);
    lowest + (1 << open >> 1)
}

fn is_function(row: &Row) -> bool {
    matches!(row.spent, Spent::Function(_))
}

fn runs_of(levels: impl Iterator<Item = u16>) -> Vec<(u16, u32)> {
    let mut runs: Vec<(u16, u32)> = Vec::new();
    for level in levels {
        match runs.last_mut() {
            Some((last, count)) if *last == level => *count += 1,
            _ => runs.push((level, 1)),
        }
    }
    runs
}

impl Row {
    /// One for each rank.
    pub fn levels(&self) -> impl Iterator<Item = u16> {
        self.runs.iter().flat_map(|&(level, ranks)| std::iter::repeat_n(level, ranks as usize))
    }

    /// The lowest and the highest level.
    pub fn span(&self) -> (u16, u16) {
        let levels = || self.runs.iter().map(|run| run.0);
        (levels().min().unwrap_or(0), levels().max().unwrap_or(0))
    }

    /// Nanoseconds by rank, those of the extremes exact.
    pub fn by_rank(&self, ranks: &RankList) -> Vec<(u32, u64)> {
        let told = |(rank, level)| match rank {
            rank if rank == self.least.0 => self.least,
            rank if rank == self.most.0 => self.most,
            rank => (rank, middle(level).clamp(self.least.1, self.most.1.max(self.least.1))),
        };
        ranks.iter().zip(self.levels()).map(told).collect()
    }

    /// The least and the most as far as levels tell.
    pub(crate) fn rough(&self, ranks: &RankList) -> ((u32, u64), (u32, u64)) {
        let first = |of: u16| {
            let mut levels = ranks.iter().zip(self.levels());
            (levels.find(|(_, level)| *level == of).map_or(0, |(rank, _)| rank), middle(of))
        };
        let (low, high) = self.span();
        (first(low), first(high))
    }

    /// Ranks that spent nothing.
    fn nothing(spent: Spent, ranks: &RankList) -> Row {
        let none = (ranks.first().unwrap_or(0), 0);
        let runs = vec![(0, u32::try_from(ranks.len()).unwrap_or(u32::MAX))];
        Row { spent, least: none, most: none, runs }
    }
}

impl Profile {
    /// Of one rank: what its main thread spent outside and inside MPI, and what all its threads did in each function.
    pub fn of_rank(
        rank: u32,
        (outside, inside): (u64, u64),
        functions: impl IntoIterator<Item = (u16, u64)>,
    ) -> Profile {
        let functions = functions.into_iter().filter(|(_, ns)| *ns > 0);
        let functions = functions.map(|(function, ns)| (Spent::Function(function), ns));
        let all = [(Spent::Outside, outside), (Spent::Inside, inside)].into_iter().chain(functions);
        let row = |(spent, ns): (Spent, u64)| Row {
            spent,
            least: (rank, ns),
            most: (rank, ns),
            runs: vec![(level(ns), 1)],
        };
        let mut rows: Vec<Row> = all.map(row).collect();
        rows.sort_by_key(|row| row.spent);
        Profile { ranks: RankList::single(rank), rows }
    }

    /// The same of both together, whichever comes first. They have no rank in common.
    pub fn join(&self, other: &Profile) -> Profile {
        if self.ranks.is_empty() || other.ranks.is_empty() {
            return if self.ranks.is_empty() { other.clone() } else { self.clone() };
        }
        let ranks = self.ranks.union(&other.ranks);
        let mut spent: Vec<Spent> = self.rows.iter().chain(&other.rows).map(|row| row.spent).collect();
        spent.sort_unstable();
        spent.dedup();
        let row_of = |profile: &Profile, spent: Spent| {
            let row = profile.rows.iter().find(|row| row.spent == spent).cloned();
            row.unwrap_or_else(|| Row::nothing(spent, &profile.ranks))
        };
        let by_time = |&(rank, ns): &(u32, u64)| (ns, rank);
        let by_time_down = |&(rank, ns): &(u32, u64)| (std::cmp::Reverse(ns), rank);
        let joined = |spent: Spent| {
            let (a, b) = (row_of(self, spent), row_of(other, spent));
            let mut levels: Vec<(u32, u16)> = self.ranks.iter().zip(a.levels()).collect();
            levels.extend(other.ranks.iter().zip(b.levels()));
            levels.sort_unstable_by_key(|(rank, _)| *rank);
            Row {
                spent,
                least: [a.least, b.least].into_iter().min_by_key(by_time).unwrap_or(a.least),
                most: [a.most, b.most].into_iter().min_by_key(by_time_down).unwrap_or(a.most),
                runs: runs_of(levels.into_iter().map(|(_, level)| level)),
            }
        };
        let rows = spent.into_iter().map(joined).collect();
        Profile { ranks, rows }
    }

    pub fn row(&self, spent: Spent) -> Option<&Row> {
        self.rows.iter().find(|row| row.spent == spent)
    }

    /// From `MPI_Init` to `MPI_Finalize`, on the mean.
    pub fn mean_wall(&self) -> u64 {
        let rows = [Spent::Outside, Spent::Inside].into_iter().filter_map(|spent| self.row(spent));
        let of_row = |row: &Row| {
            let run = |&(level, ranks): &(u16, u32)| u128::from(middle(level)) * u128::from(ranks);
            row.runs.iter().map(run).fold(0u128, u128::saturating_add)
        };
        let all = rows.map(of_row).fold(0u128, u128::saturating_add);
        u64::try_from(all / u128::from(self.ranks.len().max(1))).unwrap_or(u64::MAX)
    }

    /// Below this a function's time by rank is told as none.
    pub fn least_told(&self) -> u64 {
        self.mean_wall() / PARTS
    }

    /// Whether it can be written: what is read from text may be anything.
    pub fn is_valid(&self) -> bool {
        let in_order = self.rows.windows(2).all(|two| two[0].spent < two[1].spent);
        let row_is_valid = |row: &Row| {
            let (low, high) = row.span();
            let ranks = row.runs.iter().map(|run| u64::from(run.1)).fold(0, u64::saturating_add);
            // Whether that rank has that level, and its time fits it.
            let fits = |(rank, ns): (u32, u64), at: u16| {
                let mut levels = self.ranks.iter().zip(row.levels());
                levels.any(|(other, level)| other == rank && level == at) && (at == 0 || level(ns) == at)
            };
            ranks == self.ranks.len()
                && high <= HIGHEST
                && row.runs.iter().all(|run| run.1 > 0)
                && row.runs.windows(2).all(|two| two[0].0 != two[1].0)
                && fits(row.least, low)
                && fits(row.most, high)
                && row.least.1 <= row.most.1
                && (!is_function(row) || (row.least, row.most) == row.rough(&self.ranks))
        };
        self.ranks.validate().is_ok() && in_order && self.rows.iter().all(row_is_valid)
    }

    /// Leaves out what is too little to matter: once, when all ranks are there.
    pub fn settle(&mut self) {
        let unit = self.least_told();
        let lowest = level(unit);
        self.rows.retain(|row| !is_function(row) || level(row.most.1) >= lowest.max(1));
        for row in self.rows.iter_mut().filter(|row| is_function(row)) {
            let levels: Vec<u16> = row.levels().map(|level| if level < lowest { 0 } else { level }).collect();
            row.runs = runs_of(levels.into_iter());
            (row.least, row.most) = row.rough(&self.ranks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_near_what_it_stands_for() {
        assert!((1..70_000).all(|ns| level(ns - 1) <= level(ns)));
        for ns in
            (0..70_000u64).chain((16..64).flat_map(|b| [(1 << b) - 1, 1 << b, (1 << b) + 1, 3 << (b - 1)]))
        {
            let (level, told) = (level(ns), middle(level(ns)));
            assert!(told.abs_diff(ns) <= ns / 32 + 1 && (ns >= 32 || told == ns), "{ns}: {told}");
            let (low, open) = lowest(level);
            assert!(low <= ns && ns - low < 1u64 << open, "{ns}");
        }
        assert_eq!(level(u64::MAX), HIGHEST);
    }

    fn some(ranks: u32) -> Vec<Profile> {
        let one = |rank: u32| {
            let slow = if rank % 5 == 2 { 1_200_000_000 } else { 300_000_000 + u64::from(rank) };
            let own = rank.is_multiple_of(3).then_some((77, 50_000_000));
            let functions = [(20, 1_500_000_000 - slow), (3, 90 + u64::from(rank))].into_iter().chain(own);
            Profile::of_rank(rank, (slow, 1_500_000_000 - slow), functions)
        };
        (0..ranks).map(one).collect()
    }

    #[test]
    fn the_order_of_joining_does_not_matter() {
        let ranks = some(13);
        let forwards = ranks.iter().fold(Profile::default(), |all, one| all.join(one));
        let backwards = ranks.iter().rev().fold(Profile::default(), |all, one| all.join(one));
        assert_eq!(forwards, backwards);
        let mut heap: std::collections::VecDeque<Profile> = ranks.into();
        while heap.len() > 1 {
            let (a, b) = (heap.pop_front().unwrap(), heap.pop_back().unwrap());
            heap.push_back(b.join(&a));
        }
        assert_eq!(heap[0], forwards);
        assert_eq!(forwards.row(Spent::Outside).unwrap().most, (2, 1_200_000_000));
        assert_eq!(forwards.row(Spent::Outside).unwrap().least, (0, 300_000_000));
        // A rank that never called a function has spent nothing in it.
        assert_eq!(forwards.row(Spent::Function(77)).unwrap().least, (1, 0));
        assert_eq!(forwards.row(Spent::Function(77)).unwrap().most, (0, 50_000_000));
    }

    #[test]
    fn what_takes_no_time_is_left_out_once() {
        let mut all = some(8).iter().fold(Profile::default(), |all, one| all.join(one));
        assert!(all.row(Spent::Function(3)).is_some());
        all.settle();
        assert!(all.row(Spent::Function(3)).is_none() && all.row(Spent::Function(77)).is_some());
        assert!(all.is_valid());
        let once = all.clone();
        all.settle();
        assert_eq!(all, once);
        let outside = all.row(Spent::Outside).unwrap().by_rank(&all.ranks);
        assert_eq!(outside[2], (2, 1_200_000_000));
        assert!(outside[3].1.abs_diff(300_000_003) <= 300_000_003 / 32 && outside[3].1 >= outside[0].1);
        let broken: [fn(&mut Profile); 5] = [
            |p| p.rows[0].most.1 *= 4,
            |p| p.rows[0].least.0 = 99,
            |p| p.rows[1].runs[0].1 += 1,
            |p| p.rows.swap(0, 1),
            |p| p.rows[1].runs.push((5, 0)),
        ];
        for how in broken {
            let mut bad = once.clone();
            how(&mut bad);
            assert!(!bad.is_valid(), "{bad:?}");
        }
    }
}
