//! What the threads of a rank share. In which order they called is not in a trace: whoever makes their calls again has to
//! know which objects of one another they use.

use std::collections::{HashMap, HashSet};

use refrain_model::{Call, Class, Dir, Effect, Kind, Param, Value, maker_of};

use crate::error::Error;
use crate::reader::Reader;

/// An object that is no request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shared {
    Comm(String),
    Object(Class, u32),
}

impl Shared {
    pub fn of(value: &Value) -> Option<Shared> {
        match value {
            Value::Comm(name) => Some(Shared::Comm(name.clone())),
            Value::Object(Class::Request, _) => None,
            Value::Object(class, id) => Some(Shared::Object(*class, *id)),
            _ => None,
        }
    }

    /// Whether several processes free it together.
    pub fn is_collective(&self) -> bool {
        matches!(self, Shared::Comm(_) | Shared::Object(Class::Win | Class::File | Class::Session, _))
    }
}

/// What several threads of a rank use.
#[derive(Debug, Default)]
pub struct Sharing {
    /// How often each thread names it, in calls that do not make it.
    pub uses: HashMap<Shared, HashMap<u32, u64>>,
    /// Requests that another thread starts or completes than the one that made them.
    pub requests: HashSet<u32>,
    /// Why the order among the threads would have to be known.
    pub unclear: Vec<String>,
}

/// What is known of one object.
#[derive(Default)]
struct Known {
    uses: HashMap<u32, u64>,
    makers: HashSet<u32>,
    made: u64,
    /// The call that made it first, without what it made.
    maker: String,
    varies: bool,
}

/// Every object that a call names, and whether the call makes it.
pub fn objects_of(call: &Call) -> Vec<(&'static Param, bool, &Value)> {
    let mut all = Vec::new();
    for (p, value) in call.function.params.iter().zip(&call.args) {
        let Kind::Handle(_) = p.kind else { continue };
        let makes = p.dir == Dir::Out && matches!(p.effect, Effect::Create | Effect::CreateComm(_));
        let value = match value {
            Value::InOut(before, _) => before,
            value => value,
        };
        match value {
            Value::List(list) => all.extend(list.iter().map(|one| (p, makes, one))),
            one => all.push((p, makes, one)),
        }
    }
    all
}

impl Sharing {
    /// Reads all calls of a rank.
    pub fn of(reader: &Reader<'_>, rank: u32) -> Result<Sharing, Error> {
        let mut sharing = Sharing::default();
        let threads = reader.threads(rank);
        if threads.len() < 2 {
            return Ok(sharing);
        }
        let mut known: HashMap<Shared, Known> = HashMap::new();
        let mut collective: HashMap<String, HashSet<u32>> = HashMap::new();
        for thread in threads {
            for call in reader.calls(rank, thread)? {
                let call = call?;
                if let Some(comm) = collective_on(&call) {
                    collective.entry(comm).or_default().insert(thread);
                }
                for (_, makes, object) in objects_of(&call) {
                    if let Value::Object(Class::Request, id) = object {
                        if maker_of(*id).0 != thread {
                            sharing.requests.insert(*id);
                        }
                        continue;
                    }
                    let Some(object) = Shared::of(object) else { continue };
                    let one = known.entry(object).or_default();
                    if makes {
                        one.makes(thread, &call);
                    } else {
                        *one.uses.entry(thread).or_default() += 1;
                    }
                }
            }
        }
        for (comm, threads) in collective {
            if threads.len() > 1 && comm != "self" {
                sharing.unclear.push(format!("several threads make collective calls on {comm}"));
            }
        }
        for (object, one) in known {
            let threads: HashSet<u32> = one.makers.iter().chain(one.uses.keys()).copied().collect();
            if threads.len() < 2 {
                continue;
            }
            if let (Shared::Object(class, id), true) = (&object, one.made > 1) {
                let (thread, number) = maker_of(*id);
                let name = format!("{class:?} {number} of thread {thread}").to_lowercase();
                if one.varies || object.is_collective() {
                    sharing.unclear.push(format!("several threads use {name}, which is not always the same"));
                }
            }
            sharing.uses.insert(object, one.uses);
        }
        sharing.unclear.sort();
        Ok(sharing)
    }
}

impl Known {
    fn makes(&mut self, thread: u32, call: &Call) {
        let inputs = call.function.params.iter().zip(&call.args).filter(|(p, _)| p.dir == Dir::In);
        let inputs: Vec<&Value> = inputs.map(|(_, value)| value).collect();
        let maker = format!("{} {inputs:?}", call.function.name);
        self.varies |= self.made > 0 && self.maker != maker;
        if self.made == 0 {
            self.maker = maker;
        }
        self.made += 1;
        self.makers.insert(thread);
    }
}

/// The communicator whose members all make this call.
fn collective_on(call: &Call) -> Option<String> {
    let f = call.function;
    let makes = f.params.iter().any(|p| match p.kind {
        Kind::Handle(Class::Comm | Class::Win | Class::File) => p.dir == Dir::Out,
        _ => false,
    });
    if !f.families.contains(&"coll") && !makes {
        return None;
    }
    f.params.iter().zip(&call.args).find_map(|(p, value)| match (p.kind, value) {
        (Kind::Handle(Class::Comm), Value::Comm(name)) if p.dir == Dir::In => Some(name.clone()),
        _ => None,
    })
}
