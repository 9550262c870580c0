//! Questions about functions and parameters that the call table alone answers.

use refrain_model::{CType, Class, Function, Kind};

use crate::shape::Shape;

pub(crate) fn is_number(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Int
            | Kind::Undefinable
            | Kind::Logical
            | Kind::Tag
            | Kind::Peer(_)
            | Kind::Root(_)
            | Kind::Rank
            | Kind::Enum(_)
            | Kind::Mask(_)
            | Kind::ArgCount
    )
}

/// The communicator whose ranks a status of this call speaks of; without one, the world.
pub(crate) fn comm_param(f: &'static Function) -> Option<usize> {
    Shape::of(f).comm
}

/// Whether a call speaks of a file.
pub(crate) fn speaks_of_a_file(f: &Function) -> bool {
    f.params.iter().any(|p| p.kind == Kind::Handle(Class::File))
}

/// Four bytes or eight.
pub(crate) fn is_wide(ctype: CType) -> bool {
    matches!(ctype, CType::Aint | CType::Count | CType::Offset)
}
