//! Communicators as all their members know them.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::rc::{Rc, Weak};

use refrain_model::{Call, Class, Dir, Kind, Value};

/// A communicator: the same for all members.
#[derive(Debug)]
pub struct Comm {
    /// Made of its name and its members: one call makes several communicators of one name.
    pub number: u64,
    /// As its members name it: `world`, `self`, `world.0`, ...
    pub name: String,
    /// As ranks of the world.
    group: Rc<[u32]>,
    /// The other group of an inter-communicator, from where this rank is.
    remote: Option<Rc<[u32]>>,
    /// All members are in the trace.
    whole: bool,
}

impl Comm {
    /// Its members, or those of this rank's side of an inter-communicator, as ranks of the world.
    pub fn group(&self) -> &[u32] {
        &self.group
    }

    /// The other side of an inter-communicator.
    pub fn remote(&self) -> Option<&[u32]> {
        self.remote.as_deref()
    }

    /// The rank of the world that a rank of the communicator is, as messages go.
    pub(crate) fn peer(&self, rank: i64) -> Option<u32> {
        let group = self.remote.as_ref().unwrap_or(&self.group);
        group.get(usize::try_from(rank).ok()?).copied()
    }

    /// Its members, where calls of all of them can be looked at together.
    pub(crate) fn members(&self) -> Option<&[u32]> {
        (self.remote.is_none() && self.whole).then_some(&self.group[..])
    }
}

/// A communicator as one rank uses it.
#[derive(Debug)]
pub(crate) struct Used {
    pub(crate) comm: Rc<Comm>,
    /// The rank's own in it.
    pub(crate) index: Option<usize>,
    /// Collective calls so far.
    pub(crate) calls: u64,
    /// What the rank had computed when it made the last one.
    pub(crate) computed: u64,
}

/// All communicators of all ranks.
pub(crate) struct Comms {
    /// By rank, by name.
    used: Vec<HashMap<String, Used>>,
    /// Those of several ranks are one.
    shared: HashMap<u64, Weak<Comm>>,
    present: Vec<bool>,
}

impl Comms {
    /// `present` says of which ranks there are calls.
    pub(crate) fn new(present: Vec<bool>) -> Comms {
        let all: Vec<u32> =
            (0u32..).zip(&present).filter(|(_, there)| **there).map(|(rank, _)| rank).collect();
        Comms::of(present, all)
    }

    /// The same where only these ranks will ask.
    pub(crate) fn of(present: Vec<bool>, ranks: impl IntoIterator<Item = u32>) -> Comms {
        let used = present.iter().map(|_| HashMap::new()).collect();
        let mut comms = Comms { used, shared: HashMap::new(), present };
        let world: Rc<[u32]> = (0..comms.ranks()).collect();
        let number = hash(("world", 0));
        for rank in ranks {
            comms.make((rank, "world", Some(rank as usize)), number, world.clone(), None);
            comms.make((rank, "self", Some(0)), hash(("self", rank)), [rank].into(), None);
        }
        comms
    }

    /// How many ranks the run had.
    pub(crate) fn ranks(&self) -> u32 {
        self.present.len() as u32
    }

    /// Whether there are calls of this rank.
    pub(crate) fn is_present(&self, rank: u32) -> bool {
        self.present.get(rank as usize).copied().unwrap_or(false)
    }

    pub(crate) fn get(&self, rank: u32, value: &Value) -> Option<&Used> {
        let Value::Comm(name) = value else { return None };
        self.used.get(rank as usize)?.get(name)
    }

    pub(crate) fn used(&mut self, rank: u32, value: &Value) -> Option<&mut Used> {
        let Value::Comm(name) = value else { return None };
        self.used.get_mut(rank as usize)?.get_mut(name)
    }

    /// What a call makes.
    pub(crate) fn learn(&mut self, rank: u32, call: &Call) {
        if call.facts.is_empty() {
            return;
        }
        let made = call.function.params.iter().zip(&call.args).find_map(|(p, value)| match value {
            Value::Comm(name) if p.kind == Kind::Handle(Class::Comm) && p.dir != Dir::In => Some(name),
            _ => None,
        });
        let Some(name) = made else { return };
        let fact = |name: &str| call.facts.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
        let group = |value: &Value| match value {
            Value::List(members) => {
                let member = |member: &Value| match member {
                    Value::Int(rank) => u32::try_from(*rank).ok(),
                    _ => None,
                };
                members.iter().map(member).collect::<Option<Rc<[u32]>>>()
            }
            _ => None,
        };
        // Processes of another world have its numbers.
        if name.starts_with("process.") {
            return;
        }
        match (fact("group"), fact("remote_group")) {
            // As its parent's: all its members say so.
            (Some(Value::Text(text)), None) => {
                let parent = text.strip_prefix("as ").unwrap_or(text);
                let parent = self.used.get(rank as usize).and_then(|used| used.get(parent));
                let Some(Used { comm, index, .. }) = parent else { return };
                let (group, remote) = (comm.group.clone(), comm.remote.clone());
                self.make((rank, name, *index), hash((name, comm.number)), group, remote);
            }
            (Some(local), remote) => {
                let Some(local) = group(local) else { return };
                let remote = remote.map(group);
                if remote == Some(None) {
                    return;
                }
                let remote = remote.flatten();
                // Both sides of an inter-communicator give it the same number.
                let other: &[u32] = remote.as_deref().unwrap_or_default();
                let sides = if *local <= *other { [&local[..], other] } else { [other, &local[..]] };
                let index = local.iter().position(|member| *member == rank);
                self.make((rank, name, index), hash((name, sides)), local, remote);
            }
            (None, _) => {}
        }
    }

    pub(crate) fn forget(&mut self, rank: u32, value: &Value) {
        if let Value::Comm(name) = value
            && let Some(used) = self.used.get_mut(rank as usize)
        {
            used.remove(name);
        }
        if self.shared.len() > 64 && self.shared.len() > 4 * self.used.iter().map(HashMap::len).sum::<usize>()
        {
            self.shared.retain(|_, comm| comm.strong_count() > 0);
        }
    }

    fn make(
        &mut self,
        (rank, name, index): (u32, &str, Option<usize>),
        number: u64,
        group: Rc<[u32]>,
        remote: Option<Rc<[u32]>>,
    ) {
        let known = self.shared.get(&number).and_then(Weak::upgrade);
        let same = |comm: &Rc<Comm>| {
            Rc::ptr_eq(&comm.group, &group) || (comm.group == group && comm.remote == remote)
        };
        let comm = known.filter(same).unwrap_or_else(|| {
            let whole = group.iter().all(|rank| self.is_present(*rank));
            let comm = Rc::new(Comm { number, name: name.to_owned(), group, remote, whole });
            self.shared.insert(number, Rc::downgrade(&comm));
            comm
        });
        if let Some(used) = self.used.get_mut(rank as usize) {
            used.insert(name.to_owned(), Used { comm, index, calls: 0, computed: 0 });
        }
    }
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
