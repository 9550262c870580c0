//! How the records of a function's calls are laid out: what stands for each parameter, in a symbol's bytes and in lanes.
//! Compiled once for each function from the call table. The encoder, the layout of symbols, the decoder and what recognises
//! calls without encoding them ([`crate::memo`], [`crate::completions`]) all interpret this and nothing else, so that none
//! of them can see a record otherwise than the others.

use std::sync::{LazyLock, OnceLock};

use refrain_model::{Area, Class, Cond, Dir, Effect, Function, Kind, Len, Param, Returns, Scope, functions};

use crate::defined::Statuses;
use crate::facts::STATUS_LANES;
use crate::layout::{NewComm, NewGroup, Outcome};
use crate::wire;

/// A function's calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// One for each parameter.
    pub(crate) steps: Box<[Step]>,
    /// The communicator whose ranks a status of this call speaks of; without one, the world.
    pub(crate) comm: Option<usize>,
    returns: Returns,
    poll: bool,
}

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    pub(crate) form: Form,
    pub(crate) length: Length,
    /// The condition on an earlier output that decides at reading time whether it was written. Other conditions are decided at
    /// writing time and leave an absent mark in the symbol.
    pub(crate) dynamic: Option<Cond>,
    /// Displacements may be told as running sums of the numbers of this parameter, the one before: see [`crate::sums`].
    pub(crate) sums: Option<u8>,
    /// A call that fails leaves nothing to read here. A buffer's address is the caller's, whichever way the data go.
    pub(crate) output: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// It is no array.
    One,
    /// An earlier parameter says how long it is, so that it is not stored again.
    Said(u8),
    /// It has a lane of its own.
    OwnLane,
}

/// What stands for a parameter. All but the first three begin with a tag, which may say that there is nothing but itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Nothing,
    /// An object whose code is in the symbol. Other objects than requests and messages belong there.
    Object(Class),
    /// A number that is always there.
    Number,
    /// A number or several. If `changed`, what they were before the call and what they were after it.
    Numbers {
        changed: bool,
    },
    /// The codes of objects. With `facts`, what the datatype is that the call has made.
    Codes {
        facts: bool,
    },
    NewComm(Scope),
    Statuses(Statuses),
    /// A place in memory.
    Pointer,
    Text,
    Texts,
    Function,
}

/// Which lanes hold the numbers of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes {
    pub(crate) length: Option<u16>,
    /// Of numbers that a call changes, those before it. Of statuses, the first of several lanes.
    pub(crate) first: u16,
    /// The numbers after the call, of those that it changes.
    pub(crate) after: Option<u16>,
    /// The size of the new datatype; its lower bound and extent follow.
    pub(crate) facts: Option<u16>,
    /// The next lane that is free.
    pub(crate) end: u16,
}

impl Shape {
    /// That of a function of the call table.
    pub(crate) fn of(f: &'static Function) -> &'static Shape {
        static SHAPES: LazyLock<Box<[OnceLock<Shape>]>> = LazyLock::new(|| {
            let most = functions().iter().map(|f| usize::from(f.id)).max().unwrap_or(0);
            (0..=most).map(|_| OnceLock::new()).collect()
        });
        SHAPES[usize::from(f.id)].get_or_init(|| Shape::new(f))
    }

    fn new(f: &Function) -> Shape {
        let comm = |p: &Param| p.kind == Kind::Handle(Class::Comm) && p.dir == Dir::In && p.len.is_empty();
        Shape {
            steps: (0..f.params.len()).map(|i| Step::new(f, i)).collect(),
            comm: f.params.iter().position(comm),
            returns: f.returns,
            poll: f.poll,
        }
    }

    /// Behind the parameters there is a lane for what the call returned.
    pub(crate) fn has_result(&self, outcome: Outcome) -> bool {
        match self.returns {
            Returns::Code => outcome != Outcome::Success,
            Returns::Aint => true,
            _ => false,
        }
    }

    /// The last lane counts polls.
    pub(crate) fn counts_polls(&self, outcome: Outcome) -> bool {
        self.poll && outcome == Outcome::Success
    }
}

impl Step {
    fn new(f: &Function, i: usize) -> Step {
        let p = &f.params[i];
        let form = Form::new(f, i);
        // Only what is in lanes alone can be left to another number.
        let in_lanes = match form {
            Form::Number | Form::Statuses(_) => true,
            Form::Codes { .. } => p.dir == Dir::Out,
            Form::Numbers { .. } if p.len.is_empty() => {
                matches!(p.kind, Kind::Int | Kind::Undefinable | Kind::Logical | Kind::Mask(_))
            }
            Form::Numbers { .. } => true,
            _ => false,
        };
        let by_output = |c: &Cond| match c {
            Cond::Flag(j) | Cond::Defined(j) => {
                usize::from(*j) < i && in_lanes && f.params[usize::from(*j)].when.is_empty()
            }
            _ => false,
        };
        Step {
            form,
            length: Length::new(f, i),
            dynamic: p.when.iter().copied().find(by_output),
            sums: summed(f, i),
            output: p.dir == Dir::Out && p.kind != Kind::Buffer,
        }
    }

    pub(crate) fn is_one(&self) -> bool {
        self.length == Length::One
    }

    /// The tag that says that its numbers are in lanes.
    pub(crate) fn tag(&self) -> u8 {
        if matches!(self.form, Form::Statuses(_)) { wire::STATUS } else { wire::LANE }
    }

    /// Which of the lanes from `next` on are its own, if its numbers are in lanes. `None`: no symbol has that many.
    pub(crate) fn lanes(&self, next: u16, outcome: Outcome) -> Option<Lanes> {
        let mut end = next;
        let mut take = |n: u16| {
            let first = end;
            end = end.checked_add(n)?;
            Some(first)
        };
        let length = if self.length == Length::OwnLane { Some(take(1)?) } else { None };
        let first = take(match self.form {
            // The error field is written only where the call says so; elsewhere it holds what was there before.
            Form::Statuses(_) => STATUS_LANES + u16::from(outcome == Outcome::FailedWithStatuses),
            _ => 1,
        })?;
        let changed = self.form == Form::Numbers { changed: true } && outcome != Outcome::Failed;
        let after = if changed { Some(take(1)?) } else { None };
        let facts = if self.form == (Form::Codes { facts: true }) { Some(take(3)?) } else { None };
        Some(Lanes { length, first, after, facts, end })
    }
}

/// The counts whose running sums parameter `i` may have.
fn summed(f: &Function, i: usize) -> Option<u8> {
    let counts = i.checked_sub(1)?;
    let (p, q) = (&f.params[i], &f.params[counts]);
    let is_pair = p.name.ends_with("displs") && q.name.ends_with("counts");
    (is_pair && p.len == q.len && p.dir == Dir::In && Length::new(f, i) == Length::OwnLane)
        .then_some(counts as u8)
}

impl Length {
    fn new(f: &Function, i: usize) -> Length {
        match f.params[i].len {
            [] => Length::One,
            [Len::Param(j)] => {
                let q = &f.params[usize::from(*j)];
                let known = usize::from(*j) < i
                    && q.dir != Dir::InOut
                    && q.when.is_empty()
                    && q.len.is_empty()
                    && matches!(q.kind, Kind::Int | Kind::Undefinable);
                if known { Length::Said(*j) } else { Length::OwnLane }
            }
            _ => Length::OwnLane,
        }
    }
}

impl Form {
    fn new(f: &Function, i: usize) -> Form {
        let p = &f.params[i];
        let one = p.len.is_empty();
        match p.kind {
            Kind::Skip => Form::Nothing,
            Kind::Handle(class) => {
                let in_lane = matches!(class, Class::Request | Class::Message);
                match p.effect {
                    Effect::CreateComm(scope) if p.dir != Dir::In || !one => Form::NewComm(scope),
                    _ if one && p.dir != Dir::Out && !in_lane => Form::Object(class),
                    effect => Form::Codes {
                        facts: class == Class::Datatype
                            && p.dir == Dir::Out
                            && one
                            && matches!(effect, Effect::Create | Effect::Alias),
                    },
                }
            }
            Kind::Status => Form::Statuses(Statuses::of(f, i)),
            Kind::Buffer | Kind::Value | Kind::OutPointer | Kind::OutAttribute => Form::Pointer,
            Kind::String => Form::Text,
            Kind::Strings | Kind::StringsOfStrings | Kind::ArgVector => Form::Texts,
            Kind::Function => Form::Function,
            Kind::Int | Kind::Undefinable | Kind::Logical if one && p.dir == Dir::In && p.when.is_empty() => {
                Form::Number
            }
            kind => {
                debug_assert!(kind.is_number(), "{} {}", f.name, p.name);
                Form::Numbers { changed: p.dir == Dir::InOut && kind != Kind::ArgCount }
            }
        }
    }
}

/// How many lanes a place in memory has: the device of a GPU, segment, offset; or the number itself.
pub(crate) fn lanes_of_place(area: Area) -> u16 {
    match area {
        Area::Number => 1,
        Area::Gpu => 3,
        _ => 2,
    }
}

/// The lanes of a new communicator from `next` on, and the next one that is free. `group` is the byte behind its tag.
pub(crate) fn lanes_of_comm(scope: Scope, group: u8, next: u16) -> Option<(NewComm, u16)> {
    let mut end = next;
    let mut take = |n: u16| {
        let first = end;
        end = end.checked_add(n)?;
        Some(first)
    };
    let by_members = matches!(scope, Scope::Members | Scope::Inter);
    let named = group != wire::GROUP_NONE;
    let code = take(1)?;
    let order = take(1)?;
    let rank = if named && (by_members || scope == Scope::Process) { Some(take(1)?) } else { None };
    let group = match group {
        wire::GROUP_NONE => NewGroup::None,
        wire::GROUP_SAME => NewGroup::SameAsParent,
        wire::GROUP_LIST => NewGroup::List(take(2)?),
        wire::GROUP_INTER => NewGroup::Inter(take(2)?, take(2)?),
        _ => return None,
    };
    Some((NewComm { scope, code, order, rank, group }, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(function: &str, parameter: &str) -> Step {
        let f = refrain_model::function(function).unwrap();
        Shape::of(f).steps[f.index_of(parameter).unwrap()]
    }

    #[test]
    fn shapes_follow_the_call_table() {
        assert_eq!(step("MPI_Send", "count").form, Form::Number);
        assert_eq!(step("MPI_Send", "comm").form, Form::Object(Class::Comm));
        assert_eq!(step("MPI_Send", "dest").form, Form::Numbers { changed: false });
        assert_eq!(step("MPI_Dims_create", "dims").form, Form::Numbers { changed: true });
        assert_eq!(step("MPI_Irecv", "request").form, Form::Codes { facts: false });
        assert_eq!(step("MPI_Type_contiguous", "newtype").form, Form::Codes { facts: true });
        assert_eq!(step("MPI_Type_free", "datatype").form, Form::Object(Class::Datatype));
        assert_eq!(step("MPI_Iprobe", "status").dynamic, Some(Cond::Flag(3)));
        assert_eq!(step("MPI_Waitall", "array_of_statuses").length, Length::Said(0));
        assert_eq!(step("MPI_Alltoallv", "sendcounts").length, Length::OwnLane);
        assert_eq!(step("MPI_Alltoallv", "sdispls").sums, Some(1));
        assert_eq!(step("MPI_Alltoallv", "sendcounts").sums, None);
        assert_eq!(Shape::of(refrain_model::function("MPI_Recv").unwrap()).comm, Some(5));
    }

    #[test]
    fn lanes_come_one_after_the_other() {
        let lanes = |function: &str, parameter: &str, outcome| step(function, parameter).lanes(7, outcome);
        let one = Lanes { length: None, first: 7, after: None, facts: None, end: 8 };
        assert_eq!(lanes("MPI_Send", "tag", Outcome::Success), Some(one));
        assert_eq!(lanes("MPI_Recv", "status", Outcome::Success), Some(Lanes { end: 11, ..one }));
        let errors = lanes("MPI_Waitall", "array_of_statuses", Outcome::FailedWithStatuses);
        assert_eq!(errors, Some(Lanes { end: 12, ..one }));
        let made = Lanes { facts: Some(8), end: 11, ..one };
        assert_eq!(lanes("MPI_Type_contiguous", "newtype", Outcome::Success), Some(made));
        let changed = Lanes { after: Some(8), end: 9, ..one };
        assert_eq!(lanes("MPI_Dims_create", "dims", Outcome::Success), Some(changed));
        assert_eq!(lanes("MPI_Dims_create", "dims", Outcome::Failed), Some(one));
        let told = Lanes { length: Some(7), first: 8, end: 9, ..one };
        assert_eq!(lanes("MPI_Alltoallv", "sendcounts", Outcome::Success), Some(told));
        assert_eq!(step("MPI_Recv", "status").lanes(u16::MAX - 2, Outcome::Success), None);
    }
}
