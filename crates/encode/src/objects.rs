//! Symbolic ids for opaque objects: the lowest free number of their class, given back on free.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use refrain_model::Class;

use crate::hash::FastMap;

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

    pub(crate) fn give_back(&mut self, id: u32) {
        self.free.push(Reverse(id));
    }
}

#[derive(Debug, Clone)]
struct Object {
    code: Code,
    /// Some calls hand out one handle many times (`MPI_Comm_group`), and each is freed.
    references: u32,
}

/// All objects but communicators and requests, which have rules of their own.
#[derive(Debug, Default, Clone)]
pub(crate) struct Objects {
    known: FastMap<(Class, u64), Object>,
    pools: FastMap<Class, Pool>,
}

/// Classes whose creators may return a handle that is already out.
fn shares_handles(class: Class) -> bool {
    matches!(class, Class::Group | Class::Errhandler)
}

impl Objects {
    pub(crate) fn predefine(&mut self, class: Class, handle: u64, constant: u16) {
        // The first name of an alias is the canonical one.
        self.known
            .entry((class, handle))
            .or_insert(Object { code: Code::Constant(constant), references: u32::MAX });
    }

    /// The object behind a handle; one that nobody saw being made gets an id now.
    pub(crate) fn code(&mut self, class: Class, handle: u64) -> Code {
        match self.known.get(&(class, handle)) {
            Some(object) => object.code,
            None => self.create(class, handle),
        }
    }

    /// A call returned this handle as a new object.
    pub(crate) fn create(&mut self, class: Class, handle: u64) -> Code {
        let pool = self.pools.entry(class).or_default();
        match self.known.get_mut(&(class, handle)) {
            Some(object) if matches!(object.code, Code::Constant(_)) => object.code,
            Some(object) if shares_handles(class) => {
                object.references += 1;
                object.code
            }
            Some(object) => {
                // The old object's free was not seen; the library has reused its handle.
                if let Code::Id(id) = object.code {
                    pool.give_back(id);
                }
                object.code = Code::Id(pool.take());
                object.references = 1;
                object.code
            }
            None => {
                let code = Code::Id(pool.take());
                self.known.insert((class, handle), Object { code, references: 1 });
                code
            }
        }
    }

    /// A call returned a handle that may be known already, as `MPI_Type_get_contents` does. It is one more reference,
    /// and will be freed by itself.
    pub(crate) fn alias(&mut self, class: Class, handle: u64) -> Code {
        match self.known.get_mut(&(class, handle)) {
            Some(object) => {
                if matches!(object.code, Code::Id(_)) {
                    object.references = object.references.saturating_add(1);
                }
                object.code
            }
            None => self.create(class, handle),
        }
    }

    pub(crate) fn free(&mut self, class: Class, handle: u64) {
        let Some(object) = self.known.get_mut(&(class, handle)) else { return };
        let Code::Id(id) = object.code else { return };
        object.references -= 1;
        if object.references == 0 {
            self.known.remove(&(class, handle));
            self.pools.entry(class).or_default().give_back(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_reused_lowest_first() {
        let mut o = Objects::default();
        for (handle, id) in [(10, 0), (11, 1), (12, 2)] {
            assert_eq!(o.create(Class::Datatype, handle), Code::Id(id));
        }
        o.free(Class::Datatype, 11);
        o.free(Class::Datatype, 10);
        assert_eq!(o.create(Class::Datatype, 99), Code::Id(0));
        assert_eq!(o.create(Class::Datatype, 98), Code::Id(1));
        assert_eq!(o.create(Class::Info, 99), Code::Id(0));
    }

    #[test]
    fn one_group_handle_given_out_twice_lives_until_both_are_freed() {
        let mut o = Objects::default();
        assert_eq!(o.create(Class::Group, 7), Code::Id(0));
        assert_eq!(o.create(Class::Group, 7), Code::Id(0));
        o.free(Class::Group, 7);
        assert_eq!(o.code(Class::Group, 7), Code::Id(0));
        o.free(Class::Group, 7);
        assert_eq!(o.create(Class::Group, 8), Code::Id(0));
    }

    #[test]
    fn a_reused_handle_is_a_new_object() {
        let mut o = Objects::default();
        assert_eq!(o.create(Class::Win, 7), Code::Id(0));
        assert_eq!(o.create(Class::Win, 8), Code::Id(1));
        assert_eq!(o.create(Class::Win, 7), Code::Id(0));
    }

    #[test]
    fn constants_are_never_freed() {
        let mut o = Objects::default();
        o.predefine(Class::Op, 3, 40);
        o.free(Class::Op, 3);
        assert_eq!(o.code(Class::Op, 3), Code::Constant(40));
    }

    #[test]
    fn codes_come_back() {
        for code in [Code::Id(0), Code::Id(77), Code::Constant(0), Code::Constant(900)] {
            assert_eq!(Code::from_number(code.number()), Some(code));
        }
    }
}
