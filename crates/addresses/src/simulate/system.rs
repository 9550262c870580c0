//! Which caches there are, and how they stand behind each other.

use super::coherence::{Coherence, MOST_CORES, Protocol};
use super::hierarchy::{Core, Hierarchy, MEMORY, NOWHERE};
use super::unit::Cache;
use super::{Config, Inclusion, Policy, Write, plru, sectors};

/// More levels than these are refused.
pub const LEVELS: usize = 5;

/// One level of caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// One cache for all references.
    Unified(Config),
    /// One for fetches, one for reads and writes; one of them at least. References for which the first level has none are
    /// passed over. Below it, they go on to the next level.
    Split { instructions: Option<Config>, data: Option<Config> },
}

/// Which references a cache is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    All,
    Instructions,
    Data,
}

impl Side {
    fn letter(self) -> &'static str {
        match self {
            Side::All => "",
            Side::Instructions => "i",
            Side::Data => "d",
        }
    }
}

impl Level {
    /// Data first.
    pub(super) fn configs(&self) -> Vec<(Side, Config)> {
        match *self {
            Level::Unified(config) => vec![(Side::All, config)],
            Level::Split { instructions, data } => {
                let data = data.map(|config| (Side::Data, config));
                data.into_iter().chain(instructions.map(|config| (Side::Instructions, config))).collect()
            }
        }
    }
}

/// What to simulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// The first at the front.
    pub levels: Vec<Level>,
    /// Threads that run side by side.
    pub cores: usize,
    /// So many levels, from the first on, each core has for itself. The others are shared.
    pub private: usize,
    /// Where dice start, for what is random.
    pub seed: u64,
    /// Whether misses are told apart by [`super::Class`].
    pub classify: bool,
    /// How private caches hear of what other cores write; not at all if there is none.
    pub coherence: Option<Protocol>,
}

/// Where a cache stands: its level, from 1, and what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub level: usize,
    pub side: Side,
}

impl Place {
    /// `l1`, or `l1i`, `l1d`.
    pub fn name(self) -> String {
        format!("l{}{}", self.level, self.side.letter())
    }
}

/// Why caches do not fit together. Levels are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    #[error("there is no first-level cache")]
    Nothing,
    #[error("there are {0} levels, and {LEVELS} are the most")]
    Many(usize),
    #[error("the lines of level {below} are smaller than those of level {above}")]
    SmallerLines { above: usize, below: usize },
    #[error("level {0} has caches for fetches and for data apart, behind a level that has one for both")]
    SplitAgain(usize),
    #[error("level {0} has a cache that no reference can come to: no cache above it is for such references")]
    Unreached(usize),
    #[error("plru is for a power of two of ways, {most} at most, and level {0} has others", most = plru::MOST_WAYS)]
    Tree(usize),
    #[error(
        "a sector is a power of two of bytes, from 4 to a line, of which it is one of {most} at most; level {0} has others", most = sectors::MOST)]
    Sector(usize),
    #[error("the sectors of level {below} are smaller than what level {above} asks for")]
    SmallerSectors { above: usize, below: usize },
    #[error("level 1 is {0}: no level is above it")]
    First(&'static str),
    #[error(
        "level {0} is exclusive: then it has lines as long as those of the level above it, and that level writes back"
    )]
    Exclusive(usize),
    #[error("level {level} cannot have both {one} and {other}")]
    Both { level: usize, one: &'static str, other: &'static str },
    #[error("level {0} keeps more victims than a cache can have lines")]
    Victims(usize),
    #[error("coherence is for 2 to {MOST_CORES} cores, and here the number is {0}")]
    Cores(usize),
    #[error("coherence is of data, and no level that cores have for themselves is for data")]
    NoData,
    #[error("coherence: level {level} has {what}, which caches that hear of each other cannot have")]
    Incoherent { level: usize, what: &'static str },
    #[error("coherence: level {level} is the last private level, and must be {must}, not {not}")]
    LastPrivate { level: usize, must: &'static str, not: &'static str },
    #[error("coherence: private caches have lines of one length, and those of {} and {} differ", .one.name(), .other.name())]
    DifferentLines { one: Place, other: Place },
}

impl System {
    /// For one thread.
    pub fn new(levels: Vec<Level>) -> System {
        System { private: levels.len(), levels, cores: 1, seed: 0, classify: false, coherence: None }
    }

    fn check(&self) -> Result<(), Misplaced> {
        if self.levels.is_empty() || self.cores == 0 {
            return Err(Misplaced::Nothing);
        }
        if self.levels.len() > LEVELS {
            return Err(Misplaced::Many(self.levels.len()));
        }
        for (number, level) in (1..).zip(&self.levels) {
            level.configs().iter().try_for_each(|(_, config)| check_one(number, config))?;
        }
        for (number, pair) in (2..).zip(self.levels.windows(2)) {
            check_pair(number, &pair[0], &pair[1])?;
        }
        let mut largest = (1, 0);
        let mut above: Option<Vec<Side>> = None;
        for (number, level) in (1..).zip(&self.levels) {
            let configs = level.configs();
            let lines = || configs.iter().map(|(_, config)| config.geometry.line());
            match lines().min() {
                None => return Err(Misplaced::Nothing),
                Some(least) if number > 1 && least < largest.1 => {
                    return Err(Misplaced::SmallerLines { above: largest.0, below: number });
                }
                Some(_) => largest = (number, lines().max().unwrap_or(0).max(largest.1)),
            }
            let sides: Vec<Side> = configs.iter().map(|(side, _)| *side).collect();
            if let Some(above) = &mut above {
                for side in &sides {
                    match side {
                        Side::All => {}
                        _ if above.contains(&Side::All) => return Err(Misplaced::SplitAgain(number)),
                        side if !above.contains(side) => return Err(Misplaced::Unreached(number)),
                        _ => {}
                    }
                }
                if sides.contains(&Side::All) {
                    *above = vec![Side::All];
                }
            } else {
                above = Some(sides);
            }
        }
        match self.coherence {
            Some(_) => self.check_coherence(),
            None => Ok(()),
        }
    }

    /// What keeps private caches from being coherent.
    fn check_coherence(&self) -> Result<(), Misplaced> {
        if !(2..=MOST_CORES).contains(&self.cores) {
            return Err(Misplaced::Cores(self.cores));
        }
        let (private, shared) = self.levels.split_at(self.private.min(self.levels.len()));
        let numbered = (1..).zip(private);
        let configs = numbered.flat_map(|(level, configs)| {
            configs.configs().into_iter().map(move |(side, config)| (Place { level, side }, config))
        });
        let all: Vec<(Place, Config)> = configs.collect();
        for (place, config) in &all {
            let what = match config {
                Config { sector: Some(_), .. } => "sectors",
                Config { allocate: true, fetch: false, .. } => "writes that fetch nothing (no-fetch)",
                _ => continue,
            };
            return Err(Misplaced::Incoherent { level: place.level, what });
        }
        let line = |(_, config): &(Place, Config)| config.geometry.line();
        if let Some(pair) = all.windows(2).find(|pair| line(&pair[0]) != line(&pair[1])) {
            return Err(Misplaced::DifferentLines { one: pair[0].0, other: pair[1].0 });
        }
        let last = all.iter().rev().find(|(place, _)| place.side != Side::Instructions);
        let (Place { level, .. }, last) = *last.ok_or(Misplaced::NoData)?;
        if last.write == Write::Through {
            return Err(Misplaced::LastPrivate { level, must: "back", not: "through" });
        }
        if !last.allocate {
            return Err(Misplaced::LastPrivate { level, must: "allocate", not: "no-allocate" });
        }
        let mut behind = shared.iter().take(1).flat_map(Level::configs);
        if behind.any(|(_, config)| config.inclusion == Inclusion::Exclusive) {
            let what = "exclusion behind caches of several cores";
            return Err(Misplaced::Incoherent { level: private.len() + 1, what });
        }
        Ok(())
    }

    /// The caches, all empty.
    pub fn build(&self) -> Result<Hierarchy, Misplaced> {
        self.check()?;
        let private = self.private.min(self.levels.len());
        let mut caches: Vec<Cache> = Vec::new();
        // From the last level up, so that what is below a cache is there before it.
        let shared = stack(&mut caches, &self.levels, private, [MEMORY; 2], self.seed.wrapping_sub(1));
        let shared_caches = caches.len();
        let mut cores = Vec::new();
        for core in 0..self.cores as u64 {
            // Dice of their own, or cores would roll alike.
            let seed = self.seed.wrapping_add(core);
            let first = caches.len();
            let [data, fetch] = stack(&mut caches, &self.levels[..private], 0, shared, seed);
            let route = match self.levels[0] {
                Level::Unified(_) => [data; 3],
                Level::Split { instructions, data: of_data } => {
                    let data = of_data.map_or(NOWHERE, |_| data);
                    [data, data, instructions.map_or(NOWHERE, |_| fetch)]
                }
            };
            cores.push(Core { route, caches: first..caches.len() });
        }
        if self.classify {
            caches.iter_mut().for_each(Cache::classify);
        }
        let line = caches.last().map_or(0, Cache::length);
        let coherence = self.coherence.map(|protocol| Coherence::new(protocol, line, self.cores));
        Ok(Hierarchy::of(caches, cores, shared_caches, coherence))
    }
}

/// What is wrong with a cache of a level by itself.
fn check_one(level: usize, config: &Config) -> Result<(), Misplaced> {
    let (line, ways) = (config.geometry.line(), config.geometry.ways());
    if config.policy == Policy::Plru && (!ways.is_power_of_two() || ways > plru::MOST_WAYS) {
        return Err(Misplaced::Tree(level));
    }
    let fits = |sector: u64| {
        sector.is_power_of_two() && (4..=line).contains(&sector) && line / sector <= sectors::MOST
    };
    if config.sector.is_some_and(|sector| !fits(sector)) {
        return Err(Misplaced::Sector(level));
    }
    if config.victims > 0
        && super::Geometry::new(config.victims.saturating_mul(line), config.victims, line).is_err()
    {
        return Err(Misplaced::Victims(level));
    }
    let name = match config.inclusion {
        Inclusion::Free => None,
        Inclusion::Inclusive => Some("inclusive"),
        Inclusion::Exclusive => Some("exclusive"),
    };
    if let (1, Some(name)) = (level, name) {
        return Err(Misplaced::First(name));
    }
    let exclusive = config.inclusion == Inclusion::Exclusive;
    let features = [
        ("sectors", config.sector.is_some()),
        ("victims", config.victims > 0),
        ("inclusion", config.inclusion == Inclusion::Inclusive),
        ("exclusion", exclusive),
        ("a prefetcher", config.prefetch.is_some()),
    ];
    // A pair that is not here works.
    let never = [
        ("sectors", "victims"),
        ("sectors", "inclusion"),
        ("sectors", "exclusion"),
        ("victims", "exclusion"),
        ("exclusion", "a prefetcher"),
    ];
    let has = |name: &str| features.iter().any(|(feature, there)| *feature == name && *there);
    match never.into_iter().find(|(one, other)| has(one) && has(other)) {
        Some((one, other)) => Err(Misplaced::Both { level, one, other }),
        None => Ok(()),
    }
}

/// What is wrong with a level, `number`, below another.
fn check_pair(number: usize, above: &Level, below: &Level) -> Result<(), Misplaced> {
    for (_, upper) in above.configs() {
        for (_, lower) in below.configs() {
            let (above, below) = (&upper.geometry, &lower.geometry);
            let asked = upper.sector.unwrap_or(above.line());
            if lower.sector.is_some_and(|sector| sector < asked) {
                return Err(Misplaced::SmallerSectors { above: number - 1, below: number });
            }
            let alike = above.line() == below.line() && upper.sector.is_none();
            if lower.inclusion == Inclusion::Exclusive && !(alike && upper.write == Write::Back) {
                return Err(Misplaced::Exclusive(number));
            }
            if lower.inclusion == Inclusion::Inclusive && upper.sector.is_some() {
                return Err(Misplaced::Both { level: number, one: "inclusion", other: "sectors above it" });
            }
        }
    }
    Ok(())
}

/// Puts in the caches of all levels but the first `skip`, the last level first, and gives the caches at the top of what data
/// and fetches go through.
fn stack(
    caches: &mut Vec<Cache>,
    levels: &[Level],
    skip: usize,
    mut top: [usize; 2],
    seed: u64,
) -> [usize; 2] {
    // Dice are numbered from the first level on.
    let mut number: u64 = levels[skip..].iter().map(|level| level.configs().len() as u64).sum();
    for (at, level) in levels.iter().enumerate().skip(skip).rev() {
        let below = top;
        for (side, config) in level.configs().into_iter().rev() {
            number -= 1;
            // Dice of their own, or levels would roll alike.
            let seed = seed.wrapping_add(number.wrapping_mul(0x1_0001));
            let behind = below[usize::from(side == Side::Instructions)];
            let name = Place { level: at + 1, side }.name();
            let index = caches.len();
            caches.push(Cache::new(config, seed, name, at, side, behind));
            match side {
                Side::All => top = [index; 2],
                Side::Data => top[0] = index,
                Side::Instructions => top[1] = index,
            }
        }
    }
    top
}
