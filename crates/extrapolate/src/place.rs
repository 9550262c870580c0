//! Where a rank stands among the others, and what a number may depend on.

use std::cell::OnceCell;

use refrain_model::grid::coordinates;

use crate::grid::{RULES, Rule};

/// The grids that every number of ranks in question has; of those that are the same everywhere, one.
#[derive(Debug, Clone)]
pub struct Frame {
    pub rules: Vec<Rule>,
    /// The numbers of ranks that traces are there of, and the one that is asked for.
    seen: Vec<u32>,
    asked: u32,
    /// So many rules, the first ones, give the grids that the program names.
    named: usize,
    /// MPI chose them.
    created: bool,
    /// See [`Frame::others`].
    others: OnceCell<Vec<(u32, Vec<Place>)>>,
}

/// So many ranks are looked at to find a number of ranks that would tell laws apart.
const MOST_OTHERS: u32 = 4096;

/// One rank of so many.
#[derive(Debug, Clone)]
pub struct Place {
    pub ranks: i64,
    pub rank: i64,
    /// By rule of the frame: the grid's sides, and the rank's coordinates.
    pub grids: Vec<(Vec<i64>, Vec<i64>)>,
}

impl Frame {
    pub fn new(seen: &[u32], asked: u32) -> Frame {
        let worlds = [seen, &[asked]].concat();
        let mut rules: Vec<Rule> = Vec::new();
        let dims = |rule: Rule| worlds.iter().map(|ranks| rule.dims(*ranks)).collect::<Option<Vec<_>>>();
        // A side of one rank is none: it must be so everywhere or nowhere.
        let sound = |all: &[Vec<u32>]| {
            all.iter().all(|dims| dims.iter().zip(&all[0]).all(|(a, b)| (*a > 1) == (*b > 1)))
        };
        let plain = |all: &[Vec<u32>]| all[0].iter().filter(|dim| **dim > 1).count() < 2;
        for rule in RULES {
            let Some(all) = dims(rule) else { continue };
            let known = rules.iter().any(|known| dims(*known).as_ref() == Some(&all));
            if !known && (rule == Rule::Line || sound(&all) && !plain(&all)) {
                rules.push(rule);
            }
        }
        Frame { rules, seen: seen.to_vec(), asked, named: 0, created: false, others: OnceCell::new() }
    }

    fn sides(&self, grid: usize, ranks: u32) -> Vec<u32> {
        self.rules[grid].dims(ranks).unwrap_or_default()
    }

    /// Why traces at these numbers of ranks do not say which side of a grid a number has to do with, if they do not.
    pub fn unclear(&self, grid: usize) -> Option<String> {
        let asked = self.sides(grid, self.asked);
        let seen: Vec<Vec<u32>> = self.seen.iter().map(|ranks| self.sides(grid, *ranks)).collect();
        let dimensions = asked.len();
        let same = |k: usize| seen.iter().all(|sides| sides[k] == seen[0][k]) && asked[k] != seen[0][k];
        let alike =
            |a: usize, b: usize| seen.iter().all(|sides| sides[a] == sides[b]) && asked[a] != asked[b];
        if let Some(k) = (0..dimensions).find(|k| same(*k)) {
            return Some(format!("side {k} is {} in all traces, and {} is asked for", seen[0][k], asked[k]));
        }
        let mut pairs = (0..dimensions).flat_map(|a| (a + 1..dimensions).map(move |b| (a, b)));
        if let Some((a, b)) = pairs.find(|(a, b)| alike(*a, *b)) {
            return Some(format!(
                "sides {a} and {b} are the same in all traces, and {} and {} are asked for",
                asked[a], asked[b]
            ));
        }
        let even = |sides: &Vec<u32>| sides.iter().all(|side| *side == sides[0]);
        let created = grid < self.named && self.created;
        let is_free = matches!(self.rules[grid], Rule::Balanced(_) | Rule::Reversed(_)) && !created;
        (is_free && !(seen.iter().all(even) && even(&asked))).then(|| {
            let words = self.words(grid, self.asked);
            let power = match dimensions {
                2 => "squares".to_owned(),
                3 => "cubes".to_owned(),
                power => format!("powers of {power}"),
            };
            format!(
                "no MPI_Dims_create says that {} ranks are {words}; numbers of ranks that are {power} leave no choice",
                self.asked
            )
        })
    }

    /// The sides of a grid in each trace.
    pub fn shown(&self, grid: usize) -> Vec<(u32, String)> {
        self.seen.iter().map(|ranks| (*ranks, self.words(grid, *ranks))).collect()
    }

    fn words(&self, grid: usize, ranks: u32) -> String {
        let sides: Vec<String> = self.sides(grid, ranks).iter().map(u32::to_string).collect();
        sides.join("x")
    }

    /// Whether a side of the grid is that short in a trace.
    fn is_narrow(&self, grid: usize, less: u32) -> bool {
        self.seen.iter().any(|ranks| self.sides(grid, *ranks).iter().any(|side| *side < less))
    }

    /// Of all ranks of so many.
    pub fn places(&self, ranks: u32) -> Vec<Place> {
        let dims: Vec<Vec<u32>> =
            self.rules.iter().map(|rule| rule.dims(ranks).unwrap_or_default()).collect();
        let wide = |numbers: &[u32]| numbers.iter().copied().map(i64::from).collect();
        let place = |rank: u32| {
            let grids = dims.iter().map(|dims| (wide(dims), wide(&coordinates(dims, rank)))).collect();
            Place { ranks: ranks.into(), rank: rank.into(), grids }
        };
        (0..ranks).map(place).collect()
    }

    /// Numbers of ranks of the same shape that there is no trace of, small ones first, and their places.
    pub fn others(&self) -> &[(u32, Vec<Place>)] {
        self.others.get_or_init(|| {
            let worlds = || self.seen.iter().chain([&self.asked]).copied();
            let power = |ranks: u32, by: u32| (1..=ranks).any(|side| side.checked_pow(by) == Some(ranks));
            let shapes: [&dyn Fn(u32) -> bool; 4] = [
                &|ranks| power(ranks, 2),
                &|ranks| power(ranks, 3),
                &|ranks| power(ranks, 4),
                &u32::is_power_of_two,
            ];
            let shapes: Vec<_> = shapes.into_iter().filter(|shape| worlds().all(shape)).collect();
            let least = self.seen.iter().copied().min().unwrap_or(2);
            let like = |ranks: &u32| {
                let has_sides = |rule: &Rule| {
                    let (Some(one), Some(asked)) = (rule.dims(*ranks), rule.dims(self.asked)) else {
                        return false;
                    };
                    one.len() == asked.len() && one.iter().zip(&asked).all(|(a, b)| (*a > 1) == (*b > 1))
                };
                worlds().all(|known| known != *ranks)
                    && shapes.iter().all(|shape| shape(*ranks))
                    && self.rules.iter().all(has_sides)
            };
            let mut left = MOST_OTHERS;
            let few = |ranks: &u32| left.checked_sub(*ranks).inspect(|rest| left = *rest).is_some();
            let most = least.max(self.asked).saturating_mul(2).min(MOST_OTHERS);
            (least..most).filter(like).take_while(few).map(|ranks| (ranks, self.places(ranks))).collect()
        })
    }

    /// With the rules that give these grids first: so many ranks, so many along each dimension. `created`: MPI chose grids.
    pub fn prefer(&mut self, seen: &[(u32, Vec<u32>)], created: bool) {
        self.created = created;
        let fits = |rule: &Rule| {
            let worlds = seen.iter().map(|(ranks, _)| *ranks).collect::<std::collections::BTreeSet<u32>>();
            let at = |world: u32| {
                seen.iter().any(|(ranks, dims)| *ranks == world && rule.dims(world).as_ref() == Some(dims))
            };
            worlds.len() > 1 && worlds.into_iter().all(at)
        };
        self.named = self.rules.iter().filter(|rule| fits(rule)).count();
        self.rules.sort_by_key(|rule| !fits(rule));
    }

    /// Whether the program may use a grid: where it names one, that is the one.
    pub fn may_be(&self, grid: usize) -> bool {
        self.named == 0 || grid < self.named
    }

    /// How many dimensions a grid has.
    pub fn dimensions(&self, grid: usize) -> usize {
        match self.rules[grid] {
            Rule::Line => 1,
            Rule::Balanced(dimensions) | Rule::Reversed(dimensions) => dimensions,
            Rule::Rows(_) | Rule::Columns(_) => 2,
        }
    }
}

/// Which turn of each loop around it this is, and how many turns there are.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    pub at: Vec<i64>,
    pub of: Vec<i64>,
}

/// Something that a number may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    Ranks,
    Rank,
    /// The logarithm of the number of ranks, where that is a power of two.
    Log,
    HalfRanks,
    HalfRank,
    HalfRankBefore,
    /// A side of a grid, a coordinate, how many ranks one step along it is.
    Side(usize, usize),
    At(usize, usize),
    Stride(usize, usize),
    /// How many ranks there are in a line along it and all dimensions inside.
    Span(usize, usize),
    /// How many lines along it there are.
    Others(usize, usize),
    /// The rank on the other side of the diagonal.
    Mirror(usize),
    Turn(usize),
    Turns(usize),
    /// 2^turn, the rank that differs in that bit, the rank that differs in the turn's bits.
    Power(usize),
    OtherBit(usize),
    OtherBits(usize),
    /// The rank so many after this one, and before it, around the ring; the same with one more.
    After(usize, i64),
    Before(usize, i64),
    /// The turn modulo a side, or modulo the ranks.
    TurnWithin(usize, usize, usize),
    /// How far the rank is whose coordinates differ by -1, 0 or 1, around the grid: a digit to base 3 for each dimension, the
    /// first the highest.
    Shift(usize, u32),
    /// The number of ranks squared, and times a side.
    Square,
    Plane(usize, usize),
    /// Rank number turn of the line along a dimension that this rank is on.
    Line(usize, usize, usize),
}

impl Quantity {
    pub fn grid(self) -> Option<usize> {
        match self {
            Quantity::Side(grid, _)
            | Quantity::At(grid, _)
            | Quantity::Stride(grid, _)
            | Quantity::Others(grid, _)
            | Quantity::Span(grid, _)
            | Quantity::Line(_, grid, _)
            | Quantity::Shift(grid, _)
            | Quantity::Plane(grid, _)
            | Quantity::Mirror(grid)
            | Quantity::TurnWithin(_, grid, _) => Some(grid),
            _ => None,
        }
    }

    /// Whether it is a number by itself, and no part of a sum.
    pub fn is_alone(self) -> bool {
        matches!(self, Quantity::Shift(..) | Quantity::Square | Quantity::Plane(..))
    }

    /// Whether a line may be cut into as many parts.
    pub fn is_length(self) -> bool {
        use Quantity::{HalfRanks, Others, Plane, Ranks, Side, Square, Turns};
        matches!(self, Ranks | HalfRanks | Side(..) | Others(..) | Square | Plane(..) | Turns(_))
    }

    /// Whether it says which of so many parts is meant.
    pub fn is_position_of(self, parts: Quantity) -> bool {
        match (self, parts) {
            (Quantity::Rank, Quantity::Ranks) | (Quantity::Turn(_), _) => true,
            (Quantity::At(..), Quantity::Side(grid, k)) => self == Quantity::At(grid, k),
            _ => false,
        }
    }

    pub fn of(self, place: &Place, turn: &Turn) -> Option<i64> {
        let Place { ranks, rank, .. } = *place;
        let bit = |k: usize| 1i64.checked_shl(u32::try_from(turn.at[k]).ok()?).filter(|bit| *bit > 0);
        let grid = |grid: usize| &place.grids[grid];
        Some(match self {
            Quantity::Ranks => ranks,
            Quantity::Rank => rank,
            Quantity::Log => (ranks as u64).is_power_of_two().then(|| i64::from(ranks.ilog2()))?,
            Quantity::HalfRanks => ranks / 2,
            Quantity::HalfRank => rank / 2,
            Quantity::HalfRankBefore => (rank - 1).div_euclid(2),
            Quantity::Side(g, k) => grid(g).0[k],
            Quantity::At(g, k) => grid(g).1[k],
            Quantity::Stride(g, k) => grid(g).0[k + 1..].iter().product(),
            Quantity::Span(g, k) => grid(g).0[k..].iter().product(),
            Quantity::Shift(g, code) => {
                let (dims, at) = grid(g);
                let (mut distance, mut stride, mut code) = (0, 1, i64::from(code));
                for (dim, at) in dims.iter().zip(at).rev() {
                    distance += ((at + code % 3 - 1).rem_euclid(*dim) - at) * stride;
                    (stride, code) = (stride * dim, code / 3);
                }
                distance
            }
            Quantity::Square => ranks.checked_mul(ranks)?,
            Quantity::Plane(g, k) => ranks.checked_mul(grid(g).0[k])?,
            Quantity::Line(k, g, dim) => {
                let stride: i64 = grid(g).0[dim + 1..].iter().product();
                rank + (turn.at[k] - grid(g).1[dim]) * stride
            }
            Quantity::Others(g, k) => ranks / grid(g).0[k],
            Quantity::Mirror(g) => {
                let (dims, at) = grid(g);
                at[1] * dims[0] + at[0]
            }
            Quantity::Turn(k) => turn.at[k],
            Quantity::Turns(k) => turn.of[k],
            Quantity::Power(k) => bit(k)?,
            Quantity::OtherBit(k) => rank ^ bit(k)?,
            Quantity::OtherBits(k) => rank ^ turn.at[k],
            Quantity::After(k, more) => (rank + turn.at[k] + more).rem_euclid(ranks),
            Quantity::Before(k, more) => (rank - turn.at[k] - more).rem_euclid(ranks),
            Quantity::TurnWithin(k, g, dim) => turn.at[k].rem_euclid(grid(g).0[dim]),
        })
    }

    /// All of them, simple ones first.
    pub fn all(frame: &Frame, loops: usize) -> Vec<Quantity> {
        let mut all = Vec::new();
        for k in 0..loops {
            all.push(Quantity::Turn(k));
        }
        all.extend([
            Quantity::Rank,
            Quantity::Ranks,
            Quantity::Log,
            Quantity::HalfRanks,
            Quantity::HalfRank,
            Quantity::HalfRankBefore,
            Quantity::Square,
        ]);
        for grid in 0..frame.rules.len() {
            let dimensions = frame.dimensions(grid);
            for k in 0..loops {
                all.extend((0..dimensions).map(|dim| Quantity::TurnWithin(k, grid, dim)));
            }
            all.extend((0..3u32.pow(dimensions as u32)).map(|code| Quantity::Shift(grid, code)));
            if dimensions < 2 {
                continue;
            }
            for dim in 0..dimensions {
                all.extend((dim + 1 < dimensions).then_some(Quantity::Stride(grid, dim)));
                all.extend([Quantity::Side(grid, dim), Quantity::At(grid, dim)]);
                all.extend((dim > 0 && dim + 1 < dimensions).then_some(Quantity::Span(grid, dim)));
                all.extend((dimensions > 2).then_some(Quantity::Others(grid, dim)));
                all.extend((0..loops).map(|k| Quantity::Line(k, grid, dim)));
            }
            if dimensions == 2 {
                all.push(Quantity::Mirror(grid));
            }
            all.extend((0..dimensions).map(|dim| Quantity::Plane(grid, dim)));
        }
        for k in 0..loops {
            all.extend([
                Quantity::Turns(k),
                Quantity::Power(k),
                Quantity::OtherBit(k),
                Quantity::OtherBits(k),
                Quantity::After(k, 0),
                Quantity::After(k, 1),
                Quantity::Before(k, 0),
                Quantity::Before(k, 1),
            ]);
        }
        all
    }
}

/// What tells ranks of one kind from those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    First,
    Last,
    Odd,
    /// In the lower half.
    Half,
    /// How many children it has in a binary tree.
    Children,
    /// The rank modulo something.
    Modulo(u32),
    /// First, last, or between, along a dimension of a grid.
    Side(usize, usize),
    /// The same with second and last but one.
    Near(usize, usize),
    /// Below, on or above the diagonal.
    Diagonal(usize),
    OddAt(usize, usize),
}

/// Parts that together tell kinds apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Key {
    pub parts: Vec<Part>,
    /// The first and the last turn of this loop are kinds of their own.
    pub ends: Option<usize>,
}

impl Part {
    fn of(self, place: &Place) -> u64 {
        let Place { ranks, rank, .. } = *place;
        let side = |g: usize, k: usize| (place.grids[g].1[k], place.grids[g].0[k]);
        match self {
            Part::First => u64::from(rank == 0),
            Part::Last => u64::from(rank == ranks - 1),
            Part::Odd => (rank & 1) as u64,
            Part::Half => u64::from(2 * rank < ranks),
            Part::Children => {
                [2 * rank + 1, 2 * rank + 2].iter().filter(|child| **child < ranks).count() as u64
            }
            Part::Modulo(by) => (rank % i64::from(by)) as u64,
            Part::Side(g, k) => match side(g, k) {
                (_, 1) => 3,
                (0, _) => 0,
                (at, of) if at == of - 1 => 2,
                _ => 1,
            },
            Part::Near(g, k) => match side(g, k) {
                (at, _) if at < 2 => at as u64,
                (at, of) if at >= of - 2 => 3 + (at - of + 2) as u64,
                _ => 2,
            },
            Part::Diagonal(g) => {
                let at = &place.grids[g].1;
                (at[0] - at[1]).signum().wrapping_add(1) as u64
            }
            Part::OddAt(g, k) => (side(g, k).0 & 1) as u64,
        }
    }
}

impl Key {
    pub fn new(parts: Vec<Part>) -> Key {
        Key { parts, ends: None }
    }

    /// The grid that it is about.
    pub fn grid(&self) -> Option<usize> {
        self.parts.iter().find_map(|part| match part {
            Part::Side(grid, _) | Part::Near(grid, _) | Part::OddAt(grid, _) | Part::Diagonal(grid) => {
                Some(*grid)
            }
            _ => None,
        })
    }

    /// Whether numbers of its classes may follow laws: where it is about a pattern of ranks, they are taken to be the same.
    pub fn allows_laws(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Modulo(_)))
    }

    /// The kind of a rank.
    pub fn class(&self, place: &Place) -> u64 {
        self.parts.iter().fold(1, |class, part| class * 32 + part.of(place))
    }

    /// The kind of a turn.
    pub fn turn_class(&self, turn: &Turn) -> u64 {
        match self.ends {
            None => 0,
            Some(k) if turn.at[k] == 0 => 1,
            Some(k) if turn.at[k] == turn.of[k] - 1 => 2,
            Some(_) => 3,
        }
    }

    /// Simple ones first.
    pub fn all(frame: &Frame) -> Vec<Key> {
        use Part::*;
        let mut all: Vec<Vec<Part>> = vec![
            vec![],
            vec![First],
            vec![First, Last],
            vec![Last],
            vec![Odd],
            vec![Half],
            vec![Odd, First, Last],
            vec![Children, First],
            vec![Children, First, Odd],
        ];
        all.extend((3..=8).map(|by| vec![Modulo(by)]));
        let grids = || (0..frame.rules.len()).filter(|grid| frame.dimensions(*grid) > 1);
        let mut subsets: Vec<(usize, Vec<Part>)> = Vec::new();
        for grid in grids() {
            let dimensions = frame.dimensions(grid);
            for subset in 1u32..1 << dimensions {
                let dims = (0..dimensions).filter(|dim| subset >> dim & 1 == 1);
                let parts: Vec<Part> = dims.map(|dim| Side(grid, dim)).collect();
                subsets.push((parts.len(), parts));
            }
        }
        subsets.sort_by_key(|(len, _)| *len);
        all.extend(subsets.into_iter().map(|(_, parts)| parts));
        for grid in grids().filter(|grid| frame.dimensions(*grid) == 2) {
            all.push(vec![Diagonal(grid)]);
            all.push(vec![Diagonal(grid), Side(grid, 0), Side(grid, 1)]);
            all.push(vec![OddAt(grid, 0)]);
            all.push(vec![OddAt(grid, 1)]);
            all.push(vec![OddAt(grid, 0), OddAt(grid, 1)]);
        }
        for grid in (0..frame.rules.len()).filter(|grid| !frame.is_narrow(*grid, 5)) {
            all.push((0..frame.dimensions(grid)).map(|dim| Near(grid, dim)).collect());
        }
        all.into_iter().map(Key::new).collect()
    }
}
