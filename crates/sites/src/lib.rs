//! Call sites by name: which function of which file at which line a call came from, and which loop it is in.
//!
//! Owns: finding the binaries that ran and what describes them, and reading both. Does not own: what was called there,
//! and how it is shown. The files are only read, and nothing in them is believed: a file that is not the one that ran,
//! or cannot be understood, costs names and nothing else.
//!
//! ```no_run
//! # let bundle = refrain_fold::bundle::Bundle::default();
//! use refrain_sites::{Binaries, Names};
//! let names = Binaries::new(&bundle.sites, &[]);
//! for frame in bundle.sites.frames(bundle.symbols[0].site) {
//!     names.places(frame).iter().for_each(|place| println!("{place}"));
//! }
//! names.warnings().iter().for_each(|warning| eprintln!("{warning}"));
//! ```

#![forbid(unsafe_code)]

mod binaries;
mod code;
mod debug;
mod ends;
mod functions;
mod nest;
mod pieces;
mod printable;
pub mod unwind;

use std::fmt;
use std::rc::Rc;

use refrain_fold::bundle::sites::Frame;

pub use binaries::Binaries;
pub use code::Order;
pub use nest::{Around, Turn, nest};
pub use printable::{is_hidden, printable};

/// What one frame of a stack is called. Of names that [`Binaries`] found, nothing [hidden](is_hidden) is left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location {
    /// As in the source, where anything says so.
    pub function: Option<String>,
    /// How far the return address is from where the function begins; 0 where it is inlined or that is not known.
    pub distance: u64,
    pub source: Option<Source>,
    /// The file name of the module.
    pub module: String,
    pub offset: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// As the compiler saw it.
    pub file: String,
    pub line: u32,
}

impl Source {
    /// Without its folders.
    pub fn name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name(), self.line)
    }
}

/// `solve_x (bt.c:29)`, `solve_x+0x12`, `libsolver.so+0x1234`
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.function, &self.source) {
            (Some(function), Some(source)) => write!(f, "{function} ({source})"),
            (Some(function), None) => write!(f, "{function}+{:#x}", self.distance),
            (None, Some(source)) => write!(f, "{source}"),
            (None, None) if self.module.is_empty() => write!(f, "?"),
            (None, None) => write!(f, "{}+{:#x}", self.module, self.offset),
        }
    }
}

/// What a call calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goes {
    /// A function of its own module, as [`Names::function`] numbers it.
    Own(u64),
    /// One of another module, by name.
    Away,
    /// Whatever a pointer says.
    Anywhere,
}

/// Where names come from.
pub trait Names {
    /// What a frame is called: the function, and then what is inlined in it at that place, the innermost last. Never empty.
    fn places(&self, frame: Frame) -> Rc<[Location]>;

    /// The same number for two frames if their code is of the same function; `None` where that is not known.
    fn function(&self, frame: Frame) -> Option<u64>;

    /// What a call calls.
    fn goes_to(&self, _call: Frame) -> Goes {
        Goes::Away
    }

    /// Whether the function of one frame may end with a jump to where that of another begins.
    fn jumps_to(&self, _from: Frame, _to: Frame) -> bool {
        false
    }

    /// The loops in the frames' function, innermost first, that all of the calls are in: the code may get from each of
    /// them to each of them, and so around.
    fn loops(&self, calls: &[Frame]) -> Vec<Turn>;

    /// How calls from one function follow each other: in a loop of it, or from where it begins to where it ends.
    fn order(&self, calls: &[Frame], within: Option<&Turn>) -> Option<Order>;
}
