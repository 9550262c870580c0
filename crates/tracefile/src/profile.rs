//! Time by rank and function, to within 1/32 or a small part of the wall time; outside MPI and in all of it the extremes
//! exactly.

use std::collections::{BTreeMap, BTreeSet};

use refrain_fold::ranks::RankList;
use refrain_times::levels::Levels;

/// Times of functions are told in units of about one part in so many of the mean wall time: what takes less on a rank is
/// told as none. Those outside MPI, and in all of it, are told in units of an eighth of that.
pub const PARTS: u64 = 64;
const FINER: u32 = 3;

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

/// A rank, what its main thread spent outside and inside MPI, and what all its threads did in each function.
pub type OfRank = (u32, (u64, u64), BTreeMap<u16, u64>);

/// One kind of time, over ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub spent: Spent,
    /// (rank, nanoseconds), exact unless it is a settled one of a function; the lowest of several ranks.
    pub least: (u32, u64),
    pub most: (u32, u64),
    /// (level, ranks), in the order of the profile's ranks; no two neighbours are equal.
    pub runs: Vec<(u16, u32)>,
    /// Nanoseconds in the order of the profile's ranks, where they were added up from single calls. No file has them.
    pub single: Vec<u64>,
}

/// How ranks spent their time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Those that it is about.
    pub ranks: RankList,
    /// Times of functions are in units of 2 to this power. 0 before [`Profile::settle`].
    pub unit: u32,
    /// In order; the first two are always there if there is any rank.
    pub rows: Vec<Row>,
}

/// 16 to the octave; below 32 ns each number has its own.
type Times = Levels<16>;

pub const fn level(ns: u64) -> u16 {
    Times::of(ns)
}

/// No time in units of so many bits has a higher one.
pub(crate) const fn highest(unit: u32) -> u16 {
    level(u64::MAX >> unit)
}

/// The least time of a level, and how many bits it leaves open.
pub const fn lowest(level: u16) -> (u64, u32) {
    Times::lowest(level)
}

/// What a level of units of so many bits stands for: wrong by 1/32 at most, or by half a unit.
const fn middle(level: u16, unit: u32) -> u64 {
    let (lowest, open) = lowest(level);
    // Less than a unit is none.
    if level == 0 { 0 } else { (lowest << unit) + (1 << (open + unit) >> 1) }
}

/// How far a time of that level may be from its [`middle`].
const fn open(level: u16, unit: u32) -> u64 {
    let (_, open) = lowest(level);
    // None stands for less than a unit.
    if level == 0 { (1 << unit) - 1 } else { (1 << (open + unit)) / 2 }
}

/// How many bits the unit of a kind of time has.
pub(crate) fn unit_of(unit: u32, spent: Spent) -> u32 {
    match spent {
        Spent::Function(_) => unit,
        Spent::Outside | Spent::Inside => unit.saturating_sub(FINER),
    }
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
    fn by_rank(&self, ranks: &RankList, unit: u32) -> Vec<(u32, u64)> {
        if !self.single.is_empty() {
            return ranks.iter().zip(self.single.iter().copied()).collect();
        }
        let told = |(rank, level)| match rank {
            rank if rank == self.least.0 => self.least,
            rank if rank == self.most.0 => self.most,
            rank => (rank, middle(level, unit).clamp(self.least.1, self.most.1.max(self.least.1))),
        };
        ranks.iter().zip(self.levels()).map(told).collect()
    }

    /// The least and the most as far as levels tell.
    pub(crate) fn rough(&self, ranks: &RankList, unit: u32) -> ((u32, u64), (u32, u64)) {
        let first = |of: u16| {
            let mut levels = ranks.iter().zip(self.levels());
            (levels.find(|(_, level)| *level == of).map_or(0, |(rank, _)| rank), middle(of, unit))
        };
        let (low, high) = self.span();
        (first(low), first(high))
    }

    /// Ranks that spent nothing.
    fn nothing(spent: Spent, ranks: &RankList) -> Row {
        let none = (ranks.first().unwrap_or(0), 0);
        let runs = vec![(0, u32::try_from(ranks.len()).unwrap_or(u32::MAX))];
        Row { spent, least: none, most: none, runs, single: Vec::new() }
    }

    /// Of single calls: nanoseconds by rank, of which there are some.
    fn of_single(spent: Spent, times: &[(u32, u64)]) -> Row {
        let least = times.iter().copied().min_by_key(|&(rank, ns)| (ns, rank));
        let most = times.iter().copied().min_by_key(|&(rank, ns)| (std::cmp::Reverse(ns), rank));
        Row {
            spent,
            least: least.unwrap_or_default(),
            most: most.unwrap_or_default(),
            runs: runs_of(times.iter().map(|(_, ns)| level(*ns))),
            single: times.iter().map(|(_, ns)| *ns).collect(),
        }
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
            single: Vec::new(),
        };
        let mut rows: Vec<Row> = all.map(row).collect();
        rows.sort_by_key(|row| row.spent);
        Profile { ranks: RankList::single(rank), unit: 0, rows }
    }

    /// Exactly, from single calls: of each rank, in order.
    pub fn of_single(all: &[OfRank]) -> Profile {
        let row = |spent: Spent| {
            let of = |(rank, main, functions): &OfRank| match spent {
                Spent::Outside => (*rank, main.0),
                Spent::Inside => (*rank, main.1),
                Spent::Function(id) => (*rank, functions.get(&id).copied().unwrap_or(0)),
            };
            Row::of_single(spent, &all.iter().map(of).collect::<Vec<_>>())
        };
        let functions: BTreeSet<u16> = all.iter().flat_map(|one| one.2.keys().copied()).collect();
        let spent =
            [Spent::Outside, Spent::Inside].into_iter().chain(functions.into_iter().map(Spent::Function));
        let ranks: Vec<u32> = all.iter().map(|one| one.0).collect();
        let rows = if all.is_empty() { Vec::new() } else { spent.map(row).collect() };
        Profile { ranks: RankList::from_sorted(&ranks), unit: 0, rows }
    }

    /// Whether times were added up from single calls.
    pub fn is_of_single(&self) -> bool {
        self.rows.iter().any(|row| !row.single.is_empty())
    }

    /// The same of both together, whichever comes first. They have no rank in common, and neither is settled.
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
                single: Vec::new(),
            }
        };
        let rows = spent.into_iter().map(joined).collect();
        Profile { ranks, unit: 0, rows }
    }

    /// Nanoseconds by rank, those of the extremes exact.
    pub fn by_rank(&self, spent: Spent) -> Vec<(u32, u64)> {
        let row = self.row(spent);
        row.map(|row| row.by_rank(&self.ranks, unit_of(self.unit, spent))).unwrap_or_default()
    }

    /// The same, and by how many nanoseconds each may be wrong.
    pub fn by_rank_within(&self, spent: Spent) -> Vec<(u32, (u64, u64))> {
        let Some(row) = self.row(spent) else { return Vec::new() };
        let unit = unit_of(self.unit, spent);
        let told = row.by_rank(&self.ranks, unit).into_iter().zip(row.levels());
        let error = |(rank, ns): (u32, u64), level| {
            let open = open(level, unit);
            let extreme = rank == row.least.0 || rank == row.most.0;
            match row.spent {
                _ if !row.single.is_empty() => 0,
                Spent::Function(_) => open,
                _ if extreme => 0,
                // It lies between the extremes.
                _ => open.min((ns - row.least.1.min(ns)).max(row.most.1.max(ns) - ns)),
            }
        };
        told.map(|(told, level)| (told.0, (told.1, error(told, level)))).collect()
    }

    pub fn row(&self, spent: Spent) -> Option<&Row> {
        self.rows.iter().find(|row| row.spent == spent)
    }

    /// From `MPI_Init` to `MPI_Finalize`, on the mean.
    pub fn mean_wall(&self) -> u64 {
        let times = [Spent::Outside, Spent::Inside].into_iter().flat_map(|spent| self.by_rank(spent));
        let all = times.map(|(_, ns)| u128::from(ns)).fold(0u128, u128::saturating_add);
        u64::try_from(all / u128::from(self.ranks.len().max(1))).unwrap_or(u64::MAX)
    }

    /// Below this a function's time by rank is told as none.
    pub fn least_told(&self) -> u64 {
        1 << self.unit
    }

    /// Whether it can be written: what is read from text may be anything.
    pub fn is_valid(&self) -> bool {
        let in_order = self.rows.windows(2).all(|two| two[0].spent < two[1].spent);
        let row_is_valid = |row: &Row| {
            let (low, high) = row.span();
            let ranks = row.runs.iter().map(|run| u64::from(run.1)).fold(0, u64::saturating_add);
            let unit = unit_of(self.unit, row.spent);
            // Whether that rank has that level, and its time fits it.
            let fits = |(rank, ns): (u32, u64), at: u16| {
                let mut levels = self.ranks.iter().zip(row.levels());
                levels.any(|(other, level)| other == rank && level == at) && level(ns >> unit) == at
            };
            ranks == self.ranks.len()
                && high <= highest(unit)
                && row.runs.iter().all(|run| run.1 > 0)
                && row.runs.windows(2).all(|two| two[0].0 != two[1].0)
                && fits(row.least, low)
                && fits(row.most, high)
                && row.least.1 <= row.most.1
                && (!is_function(row) || (row.least, row.most) == row.rough(&self.ranks, unit))
        };
        self.unit < u64::BITS
            && self.ranks.validate().is_ok()
            && in_order
            && self.rows.iter().all(row_is_valid)
    }

    /// Leaves out what is too little to matter: once, when all ranks are there.
    pub fn settle(&mut self) {
        if self.unit > 0 {
            return;
        }
        self.unit = (self.mean_wall() / PARTS).checked_ilog2().unwrap_or(0);
        for row in &mut self.rows {
            let unit = unit_of(self.unit, row.spent);
            let times = row.by_rank(&self.ranks, 0);
            row.runs = runs_of(times.into_iter().map(|(_, ns)| level(ns >> unit)));
            if is_function(row) {
                (row.least, row.most) = row.rough(&self.ranks, unit);
            }
        }
        self.rows.retain(|row| !is_function(row) || row.most.1 > 0);
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
            let (level, told) = (level(ns), middle(level(ns), 0));
            assert!(told.abs_diff(ns) <= ns / 32 + 1 && (ns >= 32 || told == ns), "{ns}: {told}");
            let (low, open) = lowest(level);
            assert!(low <= ns && ns - low < 1u64 << open, "{ns}");
        }
        assert_eq!(level(u64::MAX), highest(0));
        for (ns, unit) in [(1_000_000u64, 10), (1_000_000, 16), (1_000_000, 19), (1_048_576, 20)] {
            let told = middle(level(ns >> unit), unit);
            assert!(told.abs_diff(ns) <= (ns / 32).max(1 << unit >> 1), "{ns}: {told}");
        }
        assert_eq!(middle(level(1_000_000 >> 20), 20), 0);
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
        let outside = all.by_rank(Spent::Outside);
        assert_eq!(outside[2], (2, 1_200_000_000));
        assert!(outside[3].1.abs_diff(300_000_003) <= 300_000_003 / 32 && outside[3].1 >= outside[0].1);
        // 50 ms in units of 16.8 ms, and none.
        let unit = all.least_told();
        assert_eq!(unit, 1 << 24);
        let own: Vec<u64> = all.by_rank(Spent::Function(77)).into_iter().map(|(_, ns)| ns).collect();
        assert_eq!(own[..4], [2 * unit + unit / 2, 0, 0, 2 * unit + unit / 2]);
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
