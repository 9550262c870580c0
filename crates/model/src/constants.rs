//! MPI's named constants, and look-up among them. The list is `constants.txt`, compiled by `build.rs`.
//!
//! Names only: what number stands for `MPI_INT` is a fact about one library, and lives where libraries are known.

use crate::Class;

/// A constant of MPI that can be an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    /// Assigned in `constants.txt`, never reused, never renumbered: it is what trace files contain.
    pub id: u16,
    pub name: &'static str,
    /// The set it belongs to: a class of handles, `address`, `function`, `rank`, ..., or a set of `Kind::Enum` and
    /// `Kind::Mask`.
    pub set: &'static str,
    /// Of a datatype: its size in bytes where `long` is 64 bits wide.
    pub size: Option<u16>,
}

include!(concat!(env!("OUT_DIR"), "/constants.rs"));

/// All constants, by name.
pub fn constants() -> &'static [Constant] {
    CONSTANTS
}

pub fn constant(name: &str) -> Option<&'static Constant> {
    CONSTANTS.binary_search_by(|c| c.name.cmp(name)).ok().map(|i| &CONSTANTS[i])
}

pub fn constant_by_id(id: u16) -> Option<&'static Constant> {
    BY_ID.get(usize::from(id)).copied().filter(|&i| i != u16::MAX).map(|i| &CONSTANTS[usize::from(i)])
}

/// The constants that are valid where that set is asked for, its own first, by id: of several names for one value
/// the first is canonical. Nothing for a set that does not exist.
pub fn constants_of(set: &str) -> impl Iterator<Item = &'static Constant> + use<> {
    let members = SETS.binary_search_by(|s| s.0.cmp(set)).map_or(&[][..], |i| SETS[i].1);
    members.iter().map(|&i| &CONSTANTS[usize::from(i)])
}

/// The constant that has that canonical bit in a set of masks.
pub fn constant_of_bit(set: &str, bit: u32) -> Option<&'static Constant> {
    let bit = usize::try_from(bit).ok()?;
    constants_of(set).nth(bit).filter(|c| c.set == set)
}

impl Constant {
    /// Its place in its set: of a mask, the canonical bit number.
    pub fn bit(&self) -> u32 {
        constants_of(self.set).take_while(|c| c.id < self.id).map(|_| 1).sum()
    }
}

impl Class {
    /// The set that holds the predefined handles of this class.
    pub fn set(self) -> &'static str {
        match self {
            Class::Comm => "comm",
            Class::Group => "group",
            Class::Datatype => "datatype",
            Class::Op => "op",
            Class::Request => "request",
            Class::Win => "win",
            Class::File => "file",
            Class::Info => "info",
            Class::Errhandler => "errhandler",
            Class::Keyval => "keyval",
            Class::Message => "message",
            Class::Session => "session",
            Class::ToolEnum => "tool_enum",
            Class::ToolCvar => "tool_cvar",
            Class::ToolPvar => "tool_pvar",
            Class::ToolPvarSession => "tool_pvar_session",
            Class::ToolEventRegistration => "tool_event_registration",
            Class::ToolEventInstance => "tool_event_instance",
        }
    }
}
