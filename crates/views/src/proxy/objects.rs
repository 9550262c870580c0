//! Which slot of its arrays the program has an object in.

use refrain_model::{Class, Dir, Effect, Param, Value};

use super::call::{Arg, Extra, Hole, Writer};
use super::fit;
use super::registry::{Key, handle_type, null_of};
use super::survey::NO_REQUEST;
use crate::meaning::requests::{after, before};

impl Writer<'_> {
    pub(super) fn key(&mut self, class: Class, value: &Value) -> Option<Key> {
        Some(match value {
            Value::Name(name) => Key::Named(name),
            Value::Object(_, id) => Key::Object(*id),
            Value::Comm(name) => match name.as_str() {
                "world" => Key::Named("MPI_COMM_WORLD"),
                "self" => Key::Named("MPI_COMM_SELF"),
                name if name.starts_with("group-") || name.starts_with("inter-") => {
                    // Named after its members, which differ: by order then.
                    let (members, rest) = name.split_once('.').unwrap_or((name, ""));
                    let next = self.groups.len();
                    let which = *self.groups.entry(members.to_owned()).or_insert(next);
                    Key::Comm(format!("{} {which}.{rest}", &members[..5]))
                }
                name => Key::Comm(name.to_owned()),
            },
            Value::Unset => Key::Named(null_of(class)),
            _ => return None,
        })
    }

    /// The slot of an object that there is.
    fn used(&mut self, class: Class, value: &Value) -> Result<i64, String> {
        if class == Class::Request {
            return match value {
                Value::Object(_, id) => {
                    let slot = self.survey.requests.get(id).copied().unwrap_or(NO_REQUEST);
                    match self.busy.contains(&slot) {
                        true => Ok(slot as i64),
                        false => Err("a request that no call in the trace has made".to_owned()),
                    }
                }
                _ => Ok(NO_REQUEST as i64),
            };
        }
        if matches!(
            class,
            Class::ToolEnum
                | Class::ToolCvar
                | Class::ToolPvar
                | Class::ToolPvarSession
                | Class::ToolEventRegistration
                | Class::ToolEventInstance
        ) {
            return Err("the tool interface is not generated".to_owned());
        }
        let key = self.key(class, value).ok_or("something that is no object")?;
        if !matches!(key, Key::Named(_)) && !self.known.contains(&(class, key.clone())) {
            return Err("an object that no call in the trace has made".to_owned());
        }
        Ok(match self.comms.get(&key).filter(|_| class == Class::Comm) {
            Some(slot) => *slot,
            None => self.registry.slot(class, key),
        })
    }

    /// The slot of an object that the call writes.
    fn written(&mut self, class: Class, value: &Value) -> i64 {
        match (class, value) {
            (Class::Request, Value::Object(_, id)) => {
                self.survey.requests.get(id).copied().unwrap_or(NO_REQUEST) as i64
            }
            (Class::Request, _) => NO_REQUEST as i64,
            (_, Value::Object(..) | Value::Comm(_)) => match self.key(class, value) {
                Some(key) if !matches!(key, Key::Named(_)) => {
                    self.known.insert((class, key.clone()));
                    match class {
                        Class::Comm => self.comm_slot(key),
                        _ => self.registry.slot(class, key),
                    }
                }
                _ => self.registry.slot(class, Key::Junk),
            },
            _ => self.registry.slot(class, Key::Junk),
        }
    }

    /// Names of communicators never come again, and their slots do.
    fn comm_slot(&mut self, key: Key) -> i64 {
        if let Some(slot) = self.comms.get(&key) {
            return *slot;
        }
        let slot = self.vacant.pop_first().unwrap_or((self.comms.len()) as i64);
        self.comms.insert(key, slot);
        self.registry.at_least(Class::Comm, slot as usize + 1);
        slot
    }

    pub(super) fn handle(
        &mut self,
        p: &'static Param,
        class: Class,
        value: &Value,
        holes: &mut Vec<Hole>,
    ) -> Result<Arg, String> {
        let slot = match p.dir {
            Dir::Out => self.written(class, after(value)),
            // It does not matter on this rank.
            Dir::In if *value == Value::Unset => fit::UNSET,
            _ => self.used(class, before(value))?,
        };
        holes.push(Hole::One(slot));
        // Of these a copy of the handle goes: keys are used after they were freed.
        let shared =
            matches!(class, Class::Group | Class::Errhandler | Class::Datatype | Class::Op | Class::Keyval);
        Ok(match p.dir {
            Dir::In => Arg::Handle(class),
            Dir::InOut if shared && p.effect == Effect::Free => Arg::HandleGone(class),
            _ => Arg::HandleAt(class),
        })
    }

    pub(super) fn handles(
        &mut self,
        i: usize,
        p: &'static Param,
        class: Class,
        value: &Value,
        holes: &mut Vec<Hole>,
        (extras, extra): (&mut Vec<Extra>, &mut Vec<Hole>),
    ) -> Result<Arg, String> {
        let list = match if p.dir == Dir::Out { after(value) } else { before(value) } {
            Value::List(list) => &list[..],
            _ => {
                return Ok(Arg::Text(if p.dir == Dir::Out {
                    format!("OUT({}, {i})", handle_type(class))
                } else {
                    "NULL".to_owned()
                }));
            }
        };
        self.registry.longest = self.registry.longest.max(list.len());
        if p.dir == Dir::Out {
            let slots = list.iter().map(|one| self.written(class, one)).collect();
            extras.push(Extra::Stored(class, i));
            extra.push(Hole::Many(slots));
            return Ok(Arg::Text(format!("OUT({}, {i})", handle_type(class))));
        }
        let slots: Result<Vec<i64>, String> = list.iter().map(|one| self.used(class, one)).collect();
        let slots = slots?;
        if class == Class::Request {
            let places: Vec<usize> = slots.iter().map(|slot| *slot as usize).collect();
            if let Some(first) = self.side_by_side(&places) {
                holes.push(Hole::One(first as i64));
                return Ok(Arg::Requests);
            }
            holes.push(Hole::Many(slots));
            return Ok(Arg::RequestsApart);
        }
        holes.push(Hole::Many(slots));
        Ok(Arg::Handles(class))
    }

    /// Where these begin, if they are neighbours in the array of all requests.
    fn side_by_side(&self, slots: &[usize]) -> Option<usize> {
        let (at, slot) = slots.iter().enumerate().find(|(_, slot)| **slot != NO_REQUEST)?;
        let first = slot.checked_sub(at).filter(|first| *first > NO_REQUEST)?;
        let is = |(k, slot): (usize, &usize)| match *slot {
            NO_REQUEST => first + k <= self.survey.requests.len() && !self.busy.contains(&(first + k)),
            slot => slot == first + k,
        };
        slots.iter().enumerate().all(is).then_some(first)
    }
}
