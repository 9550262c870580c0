//! A cache as it is asked for: its shape, and what it does with lines.

use super::Geometry;
pub use super::prefetch::Prefetch;

/// Which line leaves a set that is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The one not used for longest.
    Lru,
    /// The one there for longest.
    Fifo,
    /// Any of them.
    Random,
    /// One that was not used of late, by a tree of bits; ways are a power of two, 64 at most.
    Plru,
}

impl Policy {
    pub const ALL: [Policy; 4] = [Policy::Lru, Policy::Fifo, Policy::Random, Policy::Plru];

    pub fn name(self) -> &'static str {
        match self {
            Policy::Lru => "lru",
            Policy::Fifo => "fifo",
            Policy::Random => "random",
            Policy::Plru => "plru",
        }
    }
}

/// When what is written goes to the level below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// When the line leaves.
    Back,
    /// At once.
    Through,
}

impl Write {
    pub const ALL: [Write; 2] = [Write::Back, Write::Through];

    pub fn name(self) -> &'static str {
        match self {
            Write::Back => "back",
            Write::Through => "through",
        }
    }
}

/// What a level below the first has of the lines that those above it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inclusion {
    /// Whatever comes of it.
    Free,
    /// All of them: what leaves it leaves those above too.
    Inclusive,
    /// None of them: it takes what leaves the level above, and gives away what is asked for.
    Exclusive,
}

/// A cache as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    pub geometry: Geometry,
    pub policy: Policy,
    pub write: Write,
    /// Whether a write to a line that is not there brings it in.
    pub allocate: bool,
    /// Whether what a write brings in is fetched from below. If not, what was not written is taken to be there too.
    pub fetch: bool,
    /// Bytes of a sector, where lines come and go in parts.
    pub sector: Option<u64>,
    pub prefetch: Option<Prefetch>,
    /// Lines that are kept for a while after they left (a victim cache, fully associative).
    pub victims: u64,
    pub inclusion: Inclusion,
}

impl Config {
    /// LRU, writes back, and brings in what is written.
    pub fn new(geometry: Geometry) -> Config {
        Config {
            geometry,
            policy: Policy::Lru,
            write: Write::Back,
            allocate: true,
            fetch: true,
            sector: None,
            prefetch: None,
            victims: 0,
            inclusion: Inclusion::Free,
        }
    }
}
