//! Distances between allocations: a program that sends several at once has asked for their addresses and subtracted them.

use std::collections::{HashMap, HashSet, VecDeque};

use refrain_model::{Address, Area, Call, Class, Dir, Effect, Value};

/// So many answers of `MPI_Get_address` are looked at, the last ones.
const MOST: usize = 1024;

/// The addresses that a thread of the program has asked for, and the types that it has made of them.
#[derive(Debug, Default)]
pub struct Addresses {
    recent: VecDeque<i64>,
    places: HashMap<i64, Address>,
    types: HashSet<u32>,
}

/// What the displacements of a call are: each the distance of a place from the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apart {
    pub base: Address,
    pub places: Vec<Address>,
}

/// Two places that lie in one allocation stay as far apart as they are.
fn together(a: &Address, b: &Address) -> bool {
    (a.area, a.device, a.segment) == (b.area, b.device, b.segment)
}

impl Addresses {
    pub fn learn(&mut self, call: &Call) {
        if let ("MPI_Get_address" | "MPI_Address", [Value::Address(place), Value::Int(number)]) =
            (call.function.name, &call.args[..])
        {
            self.asked(*place, *number);
        }
        let mut made = call.function.params.iter().zip(&call.args);
        let made = made.find_map(|(p, value)| match value {
            Value::Object(Class::Datatype, id) if p.effect == Effect::Create => Some(*id),
            _ => None,
        });
        if let Some(id) = made {
            match self.spans(call) {
                true => self.types.insert(id),
                false => self.types.remove(&id),
            };
        }
    }

    fn asked(&mut self, place: Address, number: i64) {
        if place.area == Area::Number {
            return;
        }
        if self.places.insert(number, place).is_some() {
            self.recent.retain(|known| *known != number);
        } else if self.recent.len() == MOST
            && let Some(oldest) = self.recent.pop_front()
        {
            self.places.remove(&oldest);
        }
        self.recent.push_back(number);
    }

    /// What the displacements of a call that makes a datatype are, if each of them is the distance of an address that was asked
    /// for from one and the same other, and not all of these lie in one allocation.
    pub fn apart(&self, call: &Call) -> Option<Apart> {
        let displacements = match &call.args[call.function.index_of("array_of_displacements")?] {
            Value::List(all) => all,
            _ => return None,
        };
        self.recent.iter().rev().find_map(|base| {
            let place = |distance: &Value| match distance {
                Value::Int(distance) => self.places.get(&base.checked_add(*distance)?).copied(),
                _ => None,
            };
            let places: Vec<Address> = displacements.iter().map(place).collect::<Option<_>>()?;
            let base = *self.places.get(base)?;
            places.iter().any(|place| !together(place, &base)).then_some(Apart { base, places })
        })
    }

    /// A call without the distances, which are others in each run: the places are told, and no extent of what spans them. Nothing
    /// if it has none.
    pub fn settled(&mut self, call: &Call) -> Option<Call> {
        let (apart, spans) = (self.apart(call), self.spans(call));
        self.learn(call);
        if apart.is_none() && !spans {
            return None;
        }
        let mut call = call.clone();
        if let (Some(apart), Some(at)) = (apart, call.function.index_of("array_of_displacements")) {
            call.args[at] = Value::List(apart.places.into_iter().map(Value::Address).collect());
        }
        if spans {
            call.facts.retain(|(fact, _)| *fact == "size");
        }
        Some(call)
    }

    /// Whether the datatype that a call makes spans several allocations, itself or one that it is made of.
    pub fn spans(&self, call: &Call) -> bool {
        let is =
            |value: &Value| matches!(value, Value::Object(Class::Datatype, id) if self.types.contains(id));
        let mut given = call.function.params.iter().zip(&call.args).filter(|(p, _)| p.dir == Dir::In);
        let made_of = given.any(|(_, value)| match value {
            Value::List(all) => all.iter().any(is),
            one => is(one),
        });
        made_of || self.apart(call).is_some()
    }
}

#[cfg(test)]
mod tests {
    use refrain_model::function;

    use super::*;

    fn place(segment: u32, offset: i64) -> Address {
        Address { area: Area::Heap, device: u32::MAX, segment, offset }
    }

    fn call(name: &str, args: Vec<Value>) -> Call {
        let function = function(name).unwrap();
        Call { function, args, result: Value::Int(0), facts: Vec::new() }
    }

    fn asked(addresses: &mut Addresses, place: Address, number: i64) {
        addresses.learn(&call("MPI_Get_address", vec![Value::Address(place), Value::Int(number)]));
    }

    /// A datatype with these displacements.
    fn made(of: &[i64], id: u32) -> Call {
        let numbers = |all: &[i64]| Value::List(all.iter().map(|one| Value::Int(*one)).collect());
        let (lengths, count) = (numbers(&vec![1; of.len()]), Value::Int(of.len() as i64));
        let (old, new) = (Value::Name("MPI_INT"), Value::Object(Class::Datatype, id));
        call("MPI_Type_create_hindexed", vec![count, lengths, numbers(of), old, new])
    }

    fn apart(addresses: &Addresses, of: &[i64]) -> Option<(Address, Vec<Address>)> {
        addresses.apart(&made(of, 0)).map(|Apart { base, places }| (base, places))
    }

    #[test]
    fn distances_of_one_allocation_are_numbers() {
        let mut addresses = Addresses::default();
        asked(&mut addresses, place(1, 0), 5000);
        asked(&mut addresses, place(1, 8), 5008);
        assert_eq!(apart(&addresses, &[0, 8]), None);
        asked(&mut addresses, place(2, 0), 4000);
        assert_eq!(apart(&addresses, &[0, 8]), None);
        assert_eq!(apart(&addresses, &[0, 1000]), Some((place(2, 0), vec![place(2, 0), place(1, 0)])));
        assert_eq!(apart(&addresses, &[-1000, 8]), Some((place(1, 0), vec![place(2, 0), place(1, 8)])));
        assert_eq!(apart(&addresses, &[-1000, 9]), None);
        assert_eq!(apart(&addresses, &[]), None);
    }

    #[test]
    fn types_of_types_that_span_allocations_do_so_too() {
        let mut addresses = Addresses::default();
        asked(&mut addresses, place(1, 0), 5000);
        asked(&mut addresses, place(2, 0), 4000);
        let copy = |of: u32, new: u32| {
            let object = |id| Value::Object(Class::Datatype, id);
            call("MPI_Type_dup", vec![object(of), object(new)])
        };
        for (call, spans) in [
            (made(&[0, 1000], 1), true),
            (copy(1, 2), true),
            (made(&[0, 8], 3), false),
            (copy(3, 4), false),
            (made(&[0, 8], 2), false),
            (copy(2, 5), false),
        ] {
            assert_eq!(addresses.spans(&call), spans, "{call:?}");
            addresses.learn(&call);
        }
    }

    #[test]
    fn the_last_answers_are_kept() {
        let mut addresses = Addresses::default();
        for number in 0..2 * MOST as i64 {
            asked(&mut addresses, place(number as u32 % 3, 0), number * 64);
            asked(&mut addresses, place(3, 0), -1);
        }
        assert_eq!((addresses.recent.len(), addresses.places.len()), (MOST, MOST));
        assert!(apart(&addresses, &[-64]).is_some());
    }
}
