//! What MPI's constants are in each family: `abi.txt`, compiled by `build.rs`.

/// Libraries that share one binary interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// MPICH, Intel MPI, MVAPICH, Cray MPICH: the MPICH ABI initiative.
    Mpich,
    /// Open MPI from 3 on.
    OpenMpi,
    /// The ABI of the MPI 5.0 standard.
    Mpi5,
}

impl Family {
    pub const ALL: [Family; 3] = [Family::Mpich, Family::OpenMpi, Family::Mpi5];

    pub fn name(self) -> &'static str {
        match self {
            Family::Mpich => "MPICH ABI",
            Family::OpenMpi => "Open MPI",
            Family::Mpi5 => "MPI 5 ABI",
        }
    }
}

/// Every kind of opaque object. The numbers are those of the call table's classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    Comm = 0,
    Group = 1,
    Datatype = 2,
    Op = 3,
    Request = 4,
    Win = 5,
    File = 6,
    Info = 7,
    Errhandler = 8,
    /// An `int` in C, but an object all the same.
    Keyval = 9,
    Message = 10,
    Session = 11,
    ToolEnum = 12,
    ToolCvar = 13,
    ToolPvar = 14,
    ToolPvarSession = 15,
    ToolEventRegistration = 16,
    ToolEventInstance = 17,
}

impl Class {
    pub const ALL: [Class; 18] = [
        Class::Comm,
        Class::Group,
        Class::Datatype,
        Class::Op,
        Class::Request,
        Class::Win,
        Class::File,
        Class::Info,
        Class::Errhandler,
        Class::Keyval,
        Class::Message,
        Class::Session,
        Class::ToolEnum,
        Class::ToolCvar,
        Class::ToolPvar,
        Class::ToolPvarSession,
        Class::ToolEventRegistration,
        Class::ToolEventInstance,
    ];

    /// The class with that number.
    pub fn from_number(number: u8) -> Option<Class> {
        Class::ALL.get(usize::from(number)).copied()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Handle(Class),
    /// An address that stands for something: `MPI_IN_PLACE`, `MPI_STATUS_IGNORE`.
    Pointer,
    /// A predefined callback. One value may have several names (`MPI_COMM_DUP_FN`, `MPI_WIN_DUP_FN`): the parameter
    /// it is passed for says which one is meant.
    Function,
    Int,
}

/// Where a constant's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The family has no such constant.
    Absent,
    Number(i64),
    /// The address of an exported symbol.
    Symbol(&'static str),
    /// What is stored in an exported pointer variable.
    Variable(&'static str),
}

/// One constant of MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    pub name: &'static str,
    pub kind: Kind,
    /// Differs between builds or versions of one family.
    pub varies: bool,
    /// Another spelling of that constant: skip it when mapping values to names.
    pub alias_of: Option<&'static str>,
    sources: [Source; 3],
}

impl Constant {
    pub fn source(&self, family: Family) -> Source {
        self.sources[family as usize]
    }
}

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
include!("place.rs");

/// All constants of all families, sorted by name.
pub fn constants() -> &'static [Constant] {
    &CONSTANTS
}

/// Its place in `constants()`.
pub(crate) fn position(name: &str) -> Option<usize> {
    let mut place = place_of(name.as_bytes(), PLACES.len());
    // Some are free, so this comes to an end.
    while PLACES[place] != u16::MAX {
        let at = usize::from(PLACES[place]);
        if CONSTANTS[at].name == name {
            return Some(at);
        }
        place = (place + 1) % PLACES.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_where_it_is_and_no_other() {
        for (at, constant) in constants().iter().enumerate() {
            assert_eq!(position(constant.name), Some(at));
            assert_eq!(position(&format!("{}_", constant.name)), None);
        }
        assert_eq!(position(""), None);
    }
}
