//! A cache as it is asked for: its shape, and what it does with lines.

use super::Geometry;

/// Which line leaves a set that is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The one not used for longest.
    Lru,
    /// The one there for longest.
    Fifo,
    /// Any of them.
    Random,
}

impl Policy {
    pub const ALL: [Policy; 3] = [Policy::Lru, Policy::Fifo, Policy::Random];

    pub fn name(self) -> &'static str {
        match self {
            Policy::Lru => "lru",
            Policy::Fifo => "fifo",
            Policy::Random => "random",
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

/// A cache as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    pub geometry: Geometry,
    pub policy: Policy,
    pub write: Write,
    /// Whether a write to a line that is not there brings it in.
    pub allocate: bool,
}

impl Config {
    /// LRU, writes back, and brings in what is written.
    pub fn new(geometry: Geometry) -> Config {
        Config { geometry, policy: Policy::Lru, write: Write::Back, allocate: true }
    }
}
