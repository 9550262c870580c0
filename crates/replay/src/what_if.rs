//! Another run than the recorded one: without files, with other sizes of messages.

use std::collections::HashSet;

use refrain_model::{Call, Class, Dir, Effect, Kind, Value};

use crate::ahead::{after, before, completed};

/// What becomes of a call without files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// It is made.
    Nothing,
    /// It is left out.
    All,
    /// It completes requests of calls that are left out too: what it says of these is not what it said then.
    Outcome,
}

/// The calls of a run without those that need a file, or what such a call made.
#[derive(Debug, Default)]
pub struct NoFiles {
    /// What calls that are left out would have made.
    missing: HashSet<(Class, u32)>,
}

impl NoFiles {
    pub fn of(&mut self, call: &Call) -> Without {
        let of_files = call.function.families.contains(&"io");
        let completes = completed(call).iter().any(|(id, _)| self.missing.contains(&(Class::Request, *id)));
        if completes && !of_files {
            for (id, _) in completed(call) {
                self.missing.remove(&(Class::Request, id));
            }
            return Without::Outcome;
        }
        if of_files || self.needs_missing(call) {
            for (p, value) in call.function.params.iter().zip(&call.args) {
                if p.dir != Dir::In && matches!(p.effect, Effect::Create | Effect::None | Effect::Alias) {
                    each_object(after(value), &mut |object| {
                        self.missing.insert(object);
                    });
                }
                if p.effect == Effect::Free {
                    each_object(before(value), &mut |object| {
                        self.missing.remove(&object);
                    });
                }
            }
            return Without::All;
        }
        Without::Nothing
    }

    /// Requests that were never made are complete: whoever waits for one among others goes on waiting for these.
    fn needs_missing(&self, call: &Call) -> bool {
        let mut needs = false;
        for (p, value) in call.function.params.iter().zip(&call.args) {
            if p.dir == Dir::Out {
                continue;
            }
            each_object(before(value), &mut |object| {
                needs |= object.0 != Class::Request && self.missing.contains(&object);
            });
        }
        needs
    }

    /// Requests that calls which are left out would have made.
    pub fn requests(call: &Call) -> Vec<&Value> {
        let params = call.function.params.iter().zip(&call.args);
        let made = params.filter(|(p, _)| p.dir != Dir::In && p.kind == Kind::Handle(Class::Request));
        made.map(|(_, value)| after(value)).filter(|value| matches!(value, Value::Object(..))).collect()
    }
}

fn each_object(value: &Value, each: &mut dyn FnMut((Class, u32))) {
    match value {
        Value::Object(class, id) => each((*class, *id)),
        Value::List(list) => list.iter().for_each(|one| each_object(one, each)),
        _ => {}
    }
}

/// Collectives in which every rank must name the same count of the same datatype.
const REDUCTIONS: [&str; 5] = ["reduce", "allreduce", "scan", "exscan", "reduce_scatter_block"];
/// Those in which datatypes may differ between ranks: only whole factors keep both sides equal.
const MOVES: [&str; 7] =
    ["bcast", "gather", "scatter", "allgather", "alltoall", "neighbor_allgather", "neighbor_alltoall"];

/// How a call's counts change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sized {
    /// Not at all.
    As,
    /// Each of these.
    Counts(&'static [&'static str]),
    /// What is received is as much as can come.
    Received(&'static [&'static str]),
}

/// `MPI_Iallreduce_c` is an `allreduce`.
fn stem(name: &str) -> String {
    let name = name.strip_prefix("MPI_").unwrap_or(name).to_lowercase();
    let name = name.strip_suffix("_c").unwrap_or(&name);
    let name = name.strip_suffix("_init").unwrap_or(name);
    let known = |name: &str| REDUCTIONS.contains(&name) || MOVES.contains(&name);
    match name.strip_prefix('i') {
        Some(rest) if !known(name) && known(rest) => rest.to_owned(),
        _ => name.to_owned(),
    }
}

/// Changes a call so that its message is so many times as long. Whole factors suit all messages and collectives with one
/// count; others only messages between two ranks and reductions, where both sides come to the same count. Counts by rank,
/// windows and files stay.
pub fn sized(call: &mut Call, factor: f64) {
    let most = factor.ceil();
    let whole = factor == most;
    let name = stem(call.function.name);
    let families = call.function.families;
    let p2p = families.contains(&"p2p") && !families.contains(&"wait");
    let how = match &*name {
        "buffer_attach" => Sized::Received(&["size"]),
        "sendrecv" | "isendrecv" => Sized::Received(&["recvcount"]),
        "recv" | "irecv" | "mrecv" | "imrecv" => Sized::Received(&["count"]),
        // What it sends and what it receives have one count: both are as much as can come.
        "sendrecv_replace" | "isendrecv_replace" => Sized::Received(&["count"]),
        name if REDUCTIONS.contains(&name) => Sized::Counts(&["count", "recvcount"]),
        name if MOVES.contains(&name) && whole => Sized::Counts(&["count", "sendcount", "recvcount"]),
        name if MOVES.contains(&name) => Sized::As,
        "psend" | "precv" if !whole => Sized::As,
        name if p2p && name.contains("send") => Sized::Counts(&["count"]),
        "psend" | "precv" => Sized::Counts(&["count"]),
        _ => Sized::As,
    };
    let mut scale = |names: &[&str], factor: f64| {
        for (p, value) in call.function.params.iter().zip(&mut call.args) {
            if p.kind == Kind::Int
                && p.len.is_empty()
                && names.contains(&p.name)
                && let Value::Int(count @ 1..) = value
            {
                let most = if p.ctype.is_wide() { i64::MAX } else { i32::MAX.into() };
                *count = (*count as f64 * factor).ceil().min(most as f64) as i64;
            }
        }
    };
    match how {
        Sized::As => {}
        Sized::Counts(names) => scale(names, factor),
        Sized::Received(names) => {
            scale(names, most);
            scale(&["sendcount"], factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Call {
        let function = refrain_model::function(name).unwrap();
        let args = vec![Value::Unset; function.params.len()];
        Call { function, args, result: Value::Int(0), facts: Vec::new() }
    }

    #[test]
    fn messages_grow_on_both_sides() {
        let count_of = |name: &str, parameter: &str, count: i64, factor: f64| {
            let function = refrain_model::function(name).unwrap();
            let mut one = call(name);
            let at = function.index_of(parameter).unwrap();
            one.args[at] = Value::Int(count);
            sized(&mut one, factor);
            one.args[at].clone()
        };
        for (name, parameter, count, factor, expected) in [
            ("MPI_Send", "count", 10, 2.0, 20),
            ("MPI_Isend", "count", 3, 1.5, 5),
            ("MPI_Recv", "count", 3, 1.5, 6),
            ("MPI_Ibsend", "count", 4, 0.5, 2),
            ("MPI_Ssend_init", "count", 4, 0.5, 2),
            ("MPI_Sendrecv", "sendcount", 5, 0.5, 3),
            ("MPI_Sendrecv", "recvcount", 5, 0.5, 5),
            ("MPI_Sendrecv_replace", "count", 5, 1.5, 10),
            ("MPI_Sendrecv_replace", "count", 5, 0.5, 5),
            ("MPI_Isendrecv_replace", "count", 5, 2.5, 15),
            ("MPI_Allreduce", "count", 5, 1.5, 8),
            ("MPI_Iallreduce", "count", 5, 1.5, 8),
            ("MPI_Bcast", "count", 5, 2.0, 10),
            ("MPI_Bcast", "count", 5, 1.5, 5),
            ("MPI_Ialltoall", "recvcount", 5, 3.0, 15),
            ("MPI_Send", "count", 0, 8.0, 0),
            ("MPI_Buffer_attach", "size", 100, 1.5, 200),
            ("MPI_Put", "origin_count", 5, 2.0, 5),
            ("MPI_Type_contiguous", "count", 5, 2.0, 5),
            ("MPI_Waitall", "count", 5, 2.0, 5),
            ("MPI_Startall", "count", 5, 2.0, 5),
            ("MPI_Send", "count", i32::MAX.into(), 2.0, i32::MAX.into()),
        ] {
            assert_eq!(count_of(name, parameter, count, factor), Value::Int(expected), "{name} {parameter}");
        }
    }

    #[test]
    fn what_needs_a_file_goes_with_it() {
        let object = |class, id| Value::Object(class, id);
        let with = |name: &str, given: &[(&str, Value)]| {
            let mut one = call(name);
            for (parameter, value) in given {
                let at = one.function.index_of(parameter).unwrap();
                one.args[at] = value.clone();
            }
            one
        };
        let mut files = NoFiles::default();
        let open = with("MPI_File_open", &[("fh", object(Class::File, 0))]);
        assert_eq!(files.of(&open), Without::All);
        let read =
            with("MPI_File_iread", &[("fh", object(Class::File, 0)), ("request", object(Class::Request, 4))]);
        assert_eq!(files.of(&read), Without::All);
        assert_eq!(NoFiles::requests(&read), [&object(Class::Request, 4)]);
        let send = with("MPI_Isend", &[("request", object(Class::Request, 5))]);
        assert_eq!(files.of(&send), Without::Nothing);
        let both = Value::List(vec![object(Class::Request, 4), object(Class::Request, 5)]);
        // Whoever asks for it among others, and is told nothing yet, asks all the same.
        let test = with("MPI_Testall", &[("array_of_requests", both.clone()), ("flag", Value::Bool(false))]);
        assert_eq!(files.of(&test), Without::Nothing);
        let wait = with("MPI_Waitall", &[("array_of_requests", both)]);
        assert_eq!(files.of(&wait), Without::Outcome);
        let info = with(
            "MPI_File_get_info",
            &[("fh", object(Class::File, 0)), ("info_used", object(Class::Info, 3))],
        );
        assert_eq!(files.of(&info), Without::All);
        let used = with("MPI_Info_get_nkeys", &[("info", object(Class::Info, 3))]);
        assert_eq!(files.of(&used), Without::All);
        let freed = with("MPI_Info_free", &[("info", object(Class::Info, 3))]);
        assert_eq!(files.of(&freed), Without::All);
        // The number may be that of another one by then.
        assert_eq!(files.of(&used), Without::Nothing);
        assert_eq!(files.of(&with("MPI_Barrier", &[])), Without::Nothing);
    }
}
