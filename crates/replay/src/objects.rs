//! What the program's objects are in this run: by the ids that the trace has for them.

use std::collections::HashMap;

use refrain_model::{Class, Value};

/// A handle, or where MPI will have put it when the request that makes it is complete.
#[derive(Debug, Clone, Copy)]
enum Held {
    Now(u64),
    Later(*const u64),
}

// SAFETY: the cells are never given back, and only read once MPI has written them.
unsafe impl Send for Held {}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Object(Class, u32),
    Comm(String),
}

/// Handles of four bytes are zero-extended.
#[derive(Debug, Default)]
pub struct Objects {
    /// Several where a library had given out one handle again and again, to be freed as often: the last is the one meant.
    known: HashMap<Key, Vec<Held>>,
}

fn key(value: &Value) -> Option<Key> {
    match value {
        Value::Object(class, id) => Some(Key::Object(*class, *id)),
        Value::Comm(name) => Some(Key::Comm(name.clone())),
        _ => None,
    }
}

impl Objects {
    pub fn get(&self, value: &Value) -> Option<u64> {
        match *self.known.get(&key(value)?)?.last()? {
            Held::Now(handle) => Some(handle),
            // SAFETY: a cell that was leaked for this.
            Held::Later(cell) => Some(unsafe { cell.read_volatile() }),
        }
    }

    /// A call has made it.
    pub fn made(&mut self, value: &Value, handle: u64) {
        if let Some(key) = key(value) {
            self.known.entry(key).or_default().push(Held::Now(handle));
        }
    }

    /// A call has told of it; it may be known already.
    pub fn seen(&mut self, value: &Value, handle: u64) {
        if let Some(key) = key(value) {
            let known = self.known.entry(key).or_default();
            if known.is_empty() {
                known.push(Held::Now(handle));
            }
        }
    }

    /// It is made when a request completes.
    pub fn made_later(&mut self, value: &Value, cell: &'static u64) {
        if let Some(key) = key(value) {
            self.known.entry(key).or_default().push(Held::Later(cell));
        }
    }

    pub fn gone(&mut self, value: &Value) {
        if let Some(key) = key(value)
            && let Some(known) = self.known.get_mut(&key)
        {
            known.pop();
            if known.is_empty() {
                self.known.remove(&key);
            }
        }
    }
}
