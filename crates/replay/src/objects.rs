//! What the program's objects are in this run: by the ids that the trace has for them.

use refrain_fold::FastMap;
use refrain_model::{Class, Value};

/// A handle, or where MPI will have put it when the request that makes it is complete.
#[derive(Debug, Clone, Copy)]
enum Held {
    Now(u64),
    Later(*const u64),
}

// SAFETY: the cells are never given back, and only read once MPI has written them.
unsafe impl Send for Held {}

/// Several where a library had given out one handle again and again, to be freed as often: the last is the one meant.
#[derive(Debug)]
struct Handles {
    last: Held,
    before: Vec<Held>,
}

/// Attributes are deleted by their keys, also after those were freed.
fn outlives_free(value: &Value) -> bool {
    matches!(value, Value::Object(Class::Keyval, _))
}

/// Handles of four bytes are zero-extended.
#[derive(Debug, Default)]
pub struct Objects {
    objects: FastMap<(Class, u32), Handles>,
    comms: FastMap<String, Handles>,
}

impl Objects {
    pub fn get(&self, value: &Value) -> Option<u64> {
        let found = match value {
            Value::Object(class, id) => self.objects.get(&(*class, *id))?,
            Value::Comm(name) => self.comms.get(name)?,
            _ => return None,
        };
        match found.last {
            Held::Now(handle) => Some(handle),
            // SAFETY: a cell that was leaked for this.
            Held::Later(cell) => Some(unsafe { cell.read_volatile() }),
        }
    }

    fn push(&mut self, value: &Value, held: Held) {
        let known = match value {
            Value::Object(class, id) => self.objects.get_mut(&(*class, *id)),
            Value::Comm(name) => self.comms.get_mut(name),
            _ => return,
        };
        if let Some(known) = known {
            let before = std::mem::replace(&mut known.last, held);
            if !outlives_free(value) {
                known.before.push(before);
            }
            return;
        }
        let new = Handles { last: held, before: Vec::new() };
        match value {
            Value::Object(class, id) => _ = self.objects.insert((*class, *id), new),
            Value::Comm(name) => _ = self.comms.insert(name.clone(), new),
            _ => {}
        }
    }

    /// A call has made it.
    pub fn made(&mut self, value: &Value, handle: u64) {
        self.push(value, Held::Now(handle));
    }

    /// A call has told of it; it may be known already.
    pub fn seen(&mut self, value: &Value, handle: u64) {
        if self.get(value).is_none() {
            self.push(value, Held::Now(handle));
        }
    }

    /// It is made when a request completes.
    pub fn made_later(&mut self, value: &Value, cell: &'static u64) {
        self.push(value, Held::Later(cell));
    }

    pub fn gone(&mut self, value: &Value) {
        if outlives_free(value) {
            return;
        }
        let known = match value {
            Value::Object(class, id) => self.objects.get_mut(&(*class, *id)),
            Value::Comm(name) => self.comms.get_mut(name),
            _ => return,
        };
        match (known, value) {
            (None, _) => {}
            (Some(known), _) if !known.before.is_empty() => {
                known.last = known.before.pop().unwrap_or(known.last)
            }
            (Some(_), Value::Object(class, id)) => _ = self.objects.remove(&(*class, *id)),
            (Some(_), Value::Comm(name)) => _ = self.comms.remove(name),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_is_meant() {
        let mut objects = Objects::default();
        for one in [Value::Object(Class::Datatype, 3), Value::Comm("world.1".into())] {
            assert_eq!(objects.get(&one), None);
            objects.made(&one, 7);
            objects.seen(&one, 8);
            assert_eq!(objects.get(&one), Some(7));
            objects.made(&one, 9);
            assert_eq!(objects.get(&one), Some(9));
            objects.gone(&one);
            assert_eq!(objects.get(&one), Some(7));
            objects.gone(&one);
            objects.gone(&one);
            assert_eq!(objects.get(&one), None);
        }
    }

    #[test]
    fn a_key_is_there_after_it_was_freed() {
        let (mut objects, key) = (Objects::default(), Value::Object(Class::Keyval, 0));
        objects.made(&key, 7);
        objects.gone(&key);
        assert_eq!(objects.get(&key), Some(7));
        objects.made(&key, 8);
        objects.gone(&key);
        assert_eq!(objects.get(&key), Some(8));
    }
}
