//! Which objects a rank has made so far, where times are made up and several threads of a rank use what one of them makes.

use std::collections::HashSet;

use refrain_model::{Call, Class, Dir, Effect, Value, maker_of};

use crate::meaning::requests::before;

#[derive(Debug, PartialEq, Eq, Hash)]
enum Name {
    Comm(String),
    Object(Class, u32),
}

/// What ranks with several threads have made.
#[derive(Debug, Default)]
pub(super) struct Known {
    ranks: HashSet<u32>,
    made: HashSet<(u32, Name)>,
}

fn each<'a>(value: &'a Value, to: &mut dyn FnMut(&'a Value)) {
    match value {
        Value::List(all) => all.iter().for_each(|one| each(one, to)),
        one => to(one),
    }
}

impl Known {
    /// Threads of this rank wait for what others of it make.
    pub(super) fn watch(&mut self, rank: u32) {
        self.ranks.insert(rank);
    }

    pub(super) fn watches(&self, rank: u32) -> bool {
        self.ranks.contains(&rank)
    }

    /// A call of a thread uses what another thread has yet to make, or makes what another has yet to end.
    pub(super) fn lacks(&self, (rank, thread): (u32, u32), call: &Call) -> bool {
        if !self.watches(rank) {
            return false;
        }
        let mut lacks = false;
        for (param, value) in call.function.params.iter().zip(&call.args) {
            if matches!(param.effect, Effect::Create | Effect::CreateComm(_) | Effect::Alias) {
                // The name of a request is free when another thread has completed the one before.
                each(value, &mut |one| {
                    if let Value::Object(Class::Request, id) = one {
                        lacks |= self.made.contains(&(rank, Name::Object(Class::Request, *id)));
                    }
                });
                continue;
            }
            each(before(value), &mut |one| {
                let name = match one {
                    Value::Comm(name) if name != "world" && name != "self" => Name::Comm(name.clone()),
                    Value::Object(class @ (Class::Request | Class::Datatype), id)
                        if maker_of(*id).0 != thread && param.dir != Dir::Out =>
                    {
                        Name::Object(*class, *id)
                    }
                    _ => return,
                };
                lacks |= !self.made.contains(&(rank, name));
            });
        }
        lacks
    }

    /// What a call has made is there.
    pub(super) fn made(&mut self, rank: u32, call: &Call) {
        if !self.watches(rank) {
            return;
        }
        for (param, value) in call.function.params.iter().zip(&call.args) {
            if !matches!(param.effect, Effect::Create | Effect::CreateComm(_) | Effect::Alias) {
                continue;
            }
            each(value, &mut |one| {
                let name = match one {
                    Value::Comm(name) => Name::Comm(name.clone()),
                    // Requests are there when the call begins; what completes them may come before it ends.
                    Value::Object(Class::Datatype, id) => Name::Object(Class::Datatype, *id),
                    _ => return,
                };
                self.made.insert((rank, name));
            });
        }
    }

    pub(super) fn request(&mut self, rank: u32, id: u32) {
        if self.watches(rank) {
            self.made.insert((rank, Name::Object(Class::Request, id)));
        }
    }

    /// A request is complete.
    pub(super) fn gone(&mut self, rank: u32, id: u32) {
        self.made.remove(&(rank, Name::Object(Class::Request, id)));
    }
}
