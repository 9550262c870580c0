//! Symbolic ids for opaque objects: the lowest free number of their class, given back on free.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use refrain_fold::FastMap;
use refrain_model::{Class, NUMBER_BITS, maker_of};

use crate::hash::mix;

/// How an object is written: a constant of MPI, or an id of ours, in one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Constant(u16),
    Id(u32),
}

impl Code {
    pub(crate) fn number(self) -> u64 {
        match self {
            Code::Id(id) => u64::from(id) * 2,
            Code::Constant(c) => u64::from(c) * 2 + 1,
        }
    }

    pub(crate) fn from_number(number: u64) -> Option<Code> {
        if number & 1 == 0 {
            u32::try_from(number / 2).ok().map(Code::Id)
        } else {
            u16::try_from(number / 2).ok().map(Code::Constant)
        }
    }
}

/// Lowest number first.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pool {
    free: BinaryHeap<Reverse<u32>>,
    next: u32,
}

impl Pool {
    pub(crate) fn take(&mut self) -> u32 {
        self.free.pop().map_or_else(
            || {
                self.next += 1;
                self.next - 1
            },
            |Reverse(id)| id,
        )
    }

    /// One that was given back, if there is any.
    fn take_again(&mut self) -> Option<u32> {
        self.free.pop().map(|Reverse(id)| id)
    }

    pub(crate) fn give_back(&mut self, id: u32) {
        self.free.push(Reverse(id));
    }

    /// All that were taken were given back.
    pub(crate) fn is_idle(&self) -> bool {
        self.free.len() == self.next as usize
    }
}

/// Ids of objects are numbers of the thread that made them, so that they do not depend on which thread was faster.
pub(crate) fn made_by(thread: u32, number: u32) -> u32 {
    maker(thread) << NUMBER_BITS | number
}

/// The numbers of each thread, lowest first.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pools(FastMap<u32, Pool>);

impl Pools {
    pub(crate) fn take(&mut self, thread: u32) -> u32 {
        made_by(thread, self.0.entry(maker(thread)).or_default().take())
    }

    pub(crate) fn give_back(&mut self, id: u32) {
        let (thread, number) = maker_of(id);
        self.0.entry(thread).or_default().give_back(number);
    }
}

/// Many threads share the last one's numbers.
fn maker(thread: u32) -> u32 {
    thread.min(u32::MAX >> NUMBER_BITS)
}

/// Whether another thread than the one that made it has to do with an object.
pub(crate) fn is_foreign(code: Code, thread: u32) -> bool {
    matches!(code, Code::Id(id) if maker_of(id).0 != maker(thread))
}

#[derive(Debug, Clone)]
struct Object {
    code: Code,
    /// Some calls hand out one handle many times (`MPI_Comm_group`), and each is freed.
    references: u32,
    /// Calls that are about to free it.
    ending: u32,
    /// A thread used it that did not make it. Nothing in that thread's calls would tell it from another object with the
    /// same id, so the id is given again only to one that is made in the same way.
    foreign: bool,
    /// A hash of how it was made.
    signature: u64,
}

impl Object {
    fn new(code: Code, signature: u64) -> Object {
        Object { code, references: 1, ending: 0, foreign: false, signature }
    }
}

/// All objects but communicators and requests, which have rules of their own.
#[derive(Debug, Default, Clone)]
pub(crate) struct Objects {
    known: FastMap<(Class, u64), Object>,
    /// Freed by calls that have not returned to us yet, while their handles are others' already.
    leaving: Vec<(Class, Object)>,
    pools: FastMap<Class, Pools>,
    /// Ids that other threads than their makers know, by how their objects were made.
    foreign: FastMap<(Class, u64), Pool>,
    /// Freed, and still known: the last ones.
    outliving: VecDeque<(Class, u64, Object)>,
}

/// Classes whose creators may return a handle that is already out.
fn shares_handles(class: Class) -> bool {
    matches!(class, Class::Group | Class::Errhandler)
}

/// Classes whose objects a program may name after it has freed them: a key stays until its last attribute is gone, and attributes are
/// deleted by their keys. When that is depends on the library, so an id is given again when `KEPT` more were freed.
fn outlives_free(class: Class) -> bool {
    class == Class::Keyval
}

/// So many objects that were freed keep their ids.
const KEPT: usize = 256;

impl Objects {
    pub(crate) fn predefine(&mut self, class: Class, handle: u64, constant: u16) {
        // The first name of an alias is the canonical one.
        let object = Object { references: u32::MAX, ..Object::new(Code::Constant(constant), 0) };
        self.known.entry((class, handle)).or_insert(object);
    }

    pub(crate) fn is_constant(&self, class: Class, handle: u64) -> bool {
        self.known.get(&(class, handle)).is_some_and(|object| matches!(object.code, Code::Constant(_)))
    }

    pub(crate) fn known_code(&self, class: Class, handle: u64) -> Option<Code> {
        self.known.get(&(class, handle)).map(|object| object.code)
    }

    /// The object behind a handle; one that nobody saw being made gets an id now.
    pub(crate) fn code(&mut self, class: Class, handle: u64, thread: u32) -> Code {
        match self.known.get_mut(&(class, handle)) {
            Some(object) => {
                object.foreign |= is_foreign(object.code, thread);
                object.code
            }
            None => self.create(class, handle, thread, 0),
        }
    }

    /// A call returned this handle as a new object; `signature` says how it was made.
    pub(crate) fn create(&mut self, class: Class, handle: u64, thread: u32, signature: u64) -> Code {
        // Each thread has its own.
        let signature = mix(signature, u64::from(thread));
        match self.known.get_mut(&(class, handle)) {
            Some(object) if matches!(object.code, Code::Constant(_)) => object.code,
            Some(object) if shares_handles(class) && object.ending < object.references => {
                object.references += 1;
                object.foreign |= is_foreign(object.code, thread);
                object.code
            }
            Some(object) => {
                let old = object.clone();
                if old.ending > 0 {
                    // Its end will be seen in a moment, by another thread.
                    self.leaving.push((class, old));
                } else if !self.outliving.iter().any(|(c, _, object)| *c == class && object.code == old.code)
                {
                    // Its end was not seen.
                    self.over(class, &old);
                }
                self.make(class, handle, thread, signature)
            }
            None => self.make(class, handle, thread, signature),
        }
    }

    fn make(&mut self, class: Class, handle: u64, thread: u32, signature: u64) -> Code {
        let known = self.foreign.get_mut(&(class, signature)).and_then(Pool::take_again);
        let id = known.unwrap_or_else(|| self.pools.entry(class).or_default().take(thread));
        self.known.insert((class, handle), Object::new(Code::Id(id), signature));
        Code::Id(id)
    }

    fn over(&mut self, class: Class, object: &Object) {
        match object.code {
            Code::Id(id) if object.foreign => {
                self.foreign.entry((class, object.signature)).or_default().give_back(id);
            }
            Code::Id(id) => self.pools.entry(class).or_default().give_back(id),
            Code::Constant(_) => {}
        }
    }

    /// It was freed. The one that was freed longest ago is forgotten.
    fn outlives(&mut self, class: Class, handle: u64, object: Object) {
        if !self.outliving.iter().any(|(c, _, known)| *c == class && known.code == object.code) {
            self.outliving.push_back((class, handle, object));
        }
        if self.outliving.len() > KEPT
            && let Some((class, handle, object)) = self.outliving.pop_front()
        {
            if self.known_code(class, handle) == Some(object.code) {
                self.known.remove(&(class, handle));
            }
            self.over(class, &object);
        }
    }

    /// A call returned a handle that may be known already, as `MPI_Type_get_contents` does. It is one more reference,
    /// and will be freed by itself.
    pub(crate) fn alias(&mut self, class: Class, handle: u64, thread: u32) -> Code {
        match self.known.get_mut(&(class, handle)) {
            Some(object) => {
                if matches!(object.code, Code::Id(_)) {
                    object.references = object.references.saturating_add(1);
                    object.foreign |= is_foreign(object.code, thread);
                }
                object.code
            }
            None => self.create(class, handle, thread, 0),
        }
    }

    /// A call is about to free the object. The library may give its handle to another thread before that call returns.
    pub(crate) fn ending(&mut self, class: Class, handle: u64, thread: u32) -> Option<Code> {
        let object = self.known.get_mut(&(class, handle))?;
        object.ending += 1;
        object.foreign |= is_foreign(object.code, thread);
        Some(object.code)
    }

    /// That call failed.
    pub(crate) fn stays(&mut self, class: Class, handle: u64, code: Code) {
        if let Some(object) = self.known.get_mut(&(class, handle)).filter(|object| object.code == code) {
            object.ending = object.ending.saturating_sub(1);
        }
    }

    /// The call has freed it. Whether the handle stands for nothing now.
    pub(crate) fn free(&mut self, class: Class, handle: u64, code: Code) -> bool {
        if !matches!(code, Code::Id(_)) {
            return false;
        }
        let known = self.known.get_mut(&(class, handle)).filter(|object| object.code == code);
        let here = known.is_some();
        let left = self.leaving.iter().position(|(c, object)| *c == class && object.code == code);
        let object = match (known, left) {
            (Some(object), _) => object,
            (None, Some(at)) => &mut self.leaving[at].1,
            (None, None) => return false,
        };
        object.ending = object.ending.saturating_sub(1);
        if here && outlives_free(class) {
            let object = object.clone();
            self.outlives(class, handle, object);
            return false;
        }
        object.references -= 1;
        if object.references > 0 {
            return false;
        }
        let object = object.clone();
        match left {
            _ if here => drop(self.known.remove(&(class, handle))),
            Some(at) => drop(self.leaving.swap_remove(at)),
            None => {}
        }
        self.over(class, &object);
        here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(o: &mut Objects, class: Class, handle: u64) {
        let code = o.ending(class, handle, 0).unwrap();
        o.free(class, handle, code);
    }

    #[test]
    fn a_handle_that_another_thread_gets_before_its_free_returns_is_another_object() {
        let mut o = Objects::default();
        let old = o.create(Class::Datatype, 7, 0, 5);
        assert_eq!(o.ending(Class::Datatype, 7, 0), Some(old));
        let new = o.create(Class::Datatype, 7, 1, 5);
        assert_ne!(old, new);
        assert!(!o.free(Class::Datatype, 7, old));
        assert_eq!(o.code(Class::Datatype, 7, 1), new);
        assert_eq!((o.create(Class::Datatype, 8, 0, 5), o.leaving.len()), (old, 0));
    }

    /// A group is handed out many times, and each time is freed by itself.
    #[test]
    fn a_handle_of_which_all_references_end_is_another_object() {
        let mut o = Objects::default();
        let old = o.create(Class::Group, 7, 0, 5);
        assert_eq!(o.create(Class::Group, 7, 0, 5), old);
        o.ending(Class::Group, 7, 0);
        // One reference stays, so this is one more.
        assert_eq!(o.create(Class::Group, 7, 0, 5), old);
        o.ending(Class::Group, 7, 0);
        o.ending(Class::Group, 7, 0);
        assert_ne!(o.create(Class::Group, 7, 0, 5), old);
    }

    #[test]
    fn a_free_that_fails_frees_nothing() {
        let mut o = Objects::default();
        let code = o.create(Class::Group, 7, 0, 5);
        o.ending(Class::Group, 7, 0);
        o.stays(Class::Group, 7, code);
        assert_eq!((o.code(Class::Group, 7, 0), o.create(Class::Group, 7, 0, 5)), (code, code));
    }

    #[test]
    fn what_another_thread_used_keeps_its_id() {
        let mut o = Objects::default();
        // Used by the thread that made it or another: then only one that is made alike gets its id.
        for (user, signature, id) in [(0, 5, 0), (1, 5, 0), (0, 6, 1), (0, 6, 1), (0, 5, 0), (1, 5, 0)] {
            assert_eq!(o.create(Class::Datatype, 7, 0, signature), Code::Id(id));
            o.code(Class::Datatype, 7, user);
            end(&mut o, Class::Datatype, 7);
        }
    }

    #[test]
    fn ids_are_reused_lowest_first() {
        let mut o = Objects::default();
        for (handle, id) in [(10, 0), (11, 1), (12, 2)] {
            assert_eq!(o.create(Class::Datatype, handle, 0, 5), Code::Id(id));
        }
        end(&mut o, Class::Datatype, 11);
        end(&mut o, Class::Datatype, 10);
        assert_eq!(o.create(Class::Datatype, 99, 0, 5), Code::Id(0));
        assert_eq!(o.create(Class::Datatype, 98, 0, 5), Code::Id(1));
        assert_eq!(o.create(Class::Info, 99, 0, 5), Code::Id(0));
    }

    #[test]
    fn one_group_handle_given_out_twice_lives_until_both_are_freed() {
        let mut o = Objects::default();
        assert_eq!(o.create(Class::Group, 7, 0, 5), Code::Id(0));
        assert_eq!(o.create(Class::Group, 7, 0, 5), Code::Id(0));
        end(&mut o, Class::Group, 7);
        assert_eq!(o.code(Class::Group, 7, 0), Code::Id(0));
        end(&mut o, Class::Group, 7);
        assert_eq!(o.create(Class::Group, 8, 0, 5), Code::Id(0));
    }

    #[test]
    fn a_reused_handle_is_a_new_object() {
        let mut o = Objects::default();
        assert_eq!(o.create(Class::Win, 7, 0, 5), Code::Id(0));
        assert_eq!(o.create(Class::Win, 8, 0, 5), Code::Id(1));
        assert_eq!(o.create(Class::Win, 7, 0, 5), Code::Id(0));
    }

    /// A key is freed while an attribute has it, another one is made, and then the attribute is deleted.
    #[test]
    fn no_other_key_gets_the_id_of_one_that_was_freed_lately() {
        let mut o = Objects::default();
        let old = o.create(Class::Keyval, 7, 0, 5);
        end(&mut o, Class::Keyval, 7);
        let new = o.create(Class::Keyval, 8, 0, 5);
        assert_ne!(old, new);
        assert_eq!((o.code(Class::Keyval, 7, 0), o.code(Class::Keyval, 8, 0)), (old, new));
        // The library has given it up by now; another one may do so later.
        for id in 2..=KEPT as u32 + 1 {
            assert_eq!(o.create(Class::Keyval, 7, 0, 5), Code::Id(id));
            end(&mut o, Class::Keyval, 7);
        }
        // Names do not become more and more: whichever handles the library gives.
        for round in 0..3 {
            for id in (0..=KEPT as u32 + 1).filter(|id| *id != 1) {
                assert_eq!(o.create(Class::Keyval, 9 + u64::from(id) % 3, 0, 5), Code::Id(id), "{round}");
                end(&mut o, Class::Keyval, 9 + u64::from(id) % 3);
            }
        }
    }

    #[test]
    fn constants_are_never_freed() {
        let mut o = Objects::default();
        o.predefine(Class::Op, 3, 40);
        end(&mut o, Class::Op, 3);
        assert_eq!(o.code(Class::Op, 3, 0), Code::Constant(40));
    }

    #[test]
    fn codes_come_back() {
        for code in [Code::Id(0), Code::Id(77), Code::Constant(0), Code::Constant(900)] {
            assert_eq!(Code::from_number(code.number()), Some(code));
        }
    }
}
