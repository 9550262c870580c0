//! Questions about functions and parameters that the call table alone answers.

use refrain_model::{Class, Function, Kind};

use crate::shape::Shape;

/// The communicator whose ranks a status of this call speaks of; without one, the world.
pub(crate) fn comm_param(f: &'static Function) -> Option<usize> {
    Shape::of(f).comm
}

/// Whether a call speaks of a file.
pub(crate) fn speaks_of_a_file(f: &Function) -> bool {
    f.params.iter().any(|p| p.kind == Kind::Handle(Class::File))
}
