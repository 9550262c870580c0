//! Rules of the encoding that follow from the call table alone, shared by the writing and the reading side.

use refrain_model::{CType, Class, Cond, Dir, Effect, Function, Kind, Len, Param};

/// A scalar number that is always there needs no tag.
pub(crate) fn untagged(p: &Param) -> bool {
    p.dir == Dir::In && p.when.is_empty() && matches!(p.kind, Kind::Int | Kind::Undefinable | Kind::Logical)
}

/// Kinds whose every form lives in lanes, so that whether they were written can be left to another value.
fn in_lanes(p: &Param) -> bool {
    match p.kind {
        Kind::Int | Kind::Undefinable | Kind::Logical | Kind::Mask(_) | Kind::Status => true,
        Kind::Handle(_) => p.dir == Dir::Out && !matches!(p.effect, Effect::CreateComm(_)),
        _ => !p.len.is_empty() && is_number(p.kind),
    }
}

/// The condition on an earlier output that decides at reading time whether parameter `i` was written. Conditions that
/// this does not return are decided at writing time and leave an absent mark in the symbol.
pub(crate) fn dynamic_condition(f: &Function, i: usize) -> Option<Cond> {
    let p = &f.params[i];
    p.when.iter().copied().find(|c| match c {
        Cond::Flag(j) | Cond::Defined(j) => {
            usize::from(*j) < i && in_lanes(p) && f.params[usize::from(*j)].when.is_empty()
        }
        _ => false,
    })
}

/// The earlier parameter that already says how long array `i` is, so that its length is not stored again.
pub(crate) fn known_length(f: &Function, i: usize) -> Option<usize> {
    let [Len::Param(j)] = f.params[i].len else { return None };
    let j = usize::from(*j);
    let q = &f.params[j];
    let known = j < i
        && q.dir != Dir::InOut
        && q.when.is_empty()
        && q.len.is_empty()
        && matches!(q.kind, Kind::Int | Kind::Undefinable);
    known.then_some(j)
}

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

/// Requests and messages come and go with every message: their ids are values. Other objects belong to the symbol.
pub(crate) fn object_in_lane(class: Class) -> bool {
    matches!(class, Class::Request | Class::Message)
}

/// Constructors of datatypes also record what they made.
pub(crate) fn has_datatype_facts(p: &Param) -> bool {
    p.kind == Kind::Handle(Class::Datatype)
        && p.dir == Dir::Out
        && p.len.is_empty()
        && matches!(p.effect, Effect::Create | Effect::Alias)
}

/// The communicator whose ranks a status of this call speaks of; without one, the world.
pub(crate) fn comm_param(f: &Function) -> Option<usize> {
    f.params.iter().position(|p| p.kind == Kind::Handle(Class::Comm) && p.dir == Dir::In && p.len.is_empty())
}

/// Whether a call speaks of a file.
pub(crate) fn speaks_of_a_file(f: &Function) -> bool {
    f.params.iter().any(|p| p.kind == Kind::Handle(Class::File))
}

/// Four bytes or eight.
pub(crate) fn is_wide(ctype: CType) -> bool {
    matches!(ctype, CType::Aint | CType::Count | CType::Offset)
}

/// A call that fails leaves nothing to read here. A buffer's address is the caller's, whichever way the data go.
pub(crate) fn output_only(p: &Param) -> bool {
    p.dir == Dir::Out && p.kind != Kind::Buffer
}
