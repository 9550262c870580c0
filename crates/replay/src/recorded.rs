//! Outcomes that are a library's own matter, or that functions of the program have decided, which are not in the trace:
//! they are presented as they were recorded.

use std::collections::HashSet;

use refrain_model::{Address, Area, Call, Dir, Kind, Value};

use crate::ahead::{after, completed};
use crate::issue::Process;
use crate::{stand_ins, words};

/// Functions that tell of the library or the machine.
const OWN: [&str; 15] = [
    "MPI_Error_string",
    "MPI_Error_class",
    "MPI_Info_get_nkeys",
    "MPI_Info_get_nthkey",
    "MPI_Info_get",
    "MPI_Info_get_valuelen",
    "MPI_Info_get_string",
    "MPI_Cart_map",
    "MPI_Graph_map",
    "MPI_Get_library_version",
    "MPI_Get_processor_name",
    "MPI_Get_version",
    "MPI_Get_hw_resource_info",
    "MPI_Pack_size",
    "MPI_Pack_size_c",
];

/// Whether what a call tells is the library's own matter. On a library of another kind it is not made.
pub fn is_its_own(name: &str) -> bool {
    OWN.contains(&name)
}

/// Whether the library has made up what a call tells, for the occasion.
pub fn is_made_up(name: &str) -> bool {
    name == "MPI_Error_string" || name.starts_with("MPI_Add_error_")
}

/// Whether what a call tells is another one on another machine, or in every run.
pub fn is_of_the_run(name: &str) -> bool {
    const NAMES: [&str; 5] = [
        "MPI_Get_processor_name",
        "MPI_Get_library_version",
        "MPI_Get_hw_resource_info",
        "MPI_Open_port",
        "MPI_Lookup_name",
    ];
    NAMES.contains(&name)
}

impl Process {
    /// After a call: what it tells is what it told then, where that does not depend on what was done.
    pub(crate) fn as_recorded(&self, call: &Call, words: &[usize]) {
        let name = call.function.name;
        // What a call that failed has written is nobody's.
        let failed = stand_ins::have_heard();
        let own = failed || is_made_up(name) || self.foreign && is_its_own(name);
        let unsent: HashSet<*const Value> = {
            let known = self.known();
            let unsent = |(id, _): &(u32, Option<&Value>)| known.unsent.contains(id);
            let completed = if known.unsent.is_empty() { Vec::new() } else { completed(call) };
            let statuses = completed.into_iter().filter(unsent).filter_map(|(_, status)| status);
            statuses.map(std::ptr::from_ref).collect()
        };
        for ((p, value), word) in call.function.params.iter().zip(&call.args).zip(words) {
            if p.dir == Dir::In || *word == 0 {
                continue;
            }
            match (p.kind, after(value)) {
                (Kind::Status, told) if p.dir == Dir::Out && !self.ignores(*word) => {
                    let all = match told {
                        Value::List(all) => &all[..],
                        one => std::slice::from_ref(one),
                    };
                    for (k, one) in all.iter().enumerate() {
                        let Value::Status(status) = one else { continue };
                        // Nobody has sent anything.
                        let nobody =
                            matches!(*status.source, Value::Name(_)) || self.drawn.is_some() || failed;
                        if nobody || unsent.contains(&std::ptr::from_ref(one)) {
                            let place = *word + k * self.abi.status_size();
                            // SAFETY: as many statuses lie there.
                            unsafe { words::write_status(&self.abi, status, place as *mut u8) };
                        }
                    }
                }
                // Functions of the program say which attributes a copy has, and what they are.
                (Kind::OutAttribute, Value::Address(Address { area: Area::Number, offset, .. }))
                    if name.contains("_get_attr") =>
                {
                    // SAFETY: a cell of ours with a pointer.
                    unsafe { words::write(*word as *mut u8, 0, 8, *offset as u64) };
                }
                (Kind::Logical, Value::Bool(false)) if name.contains("_get_attr") => {
                    // SAFETY: a cell of ours with an int.
                    unsafe { words::write(*word as *mut u8, 0, 4, 0) };
                }
                (Kind::String, Value::Text(text)) if own => {
                    let bytes = text.as_bytes();
                    let length = bytes.len().min(words::STRING - 1);
                    // SAFETY: rooms for strings are that long.
                    unsafe {
                        std::ptr::copy_nonoverlapping(bytes.as_ptr(), *word as *mut u8, length);
                        (*word as *mut u8).add(length).write(0);
                    }
                }
                // Libraries have several names for one type, and each has its favourite.
                (Kind::Handle(_), Value::Name(type_name))
                    if self.foreign && name == "MPI_Type_match_size" && call.result == Value::Int(0) =>
                {
                    let Some(handle) = self.abi.handle(type_name) else { continue };
                    let width = words::width_of(p, &self.abi);
                    // SAFETY: a cell of ours with a handle of that width.
                    unsafe { words::write(*word as *mut u8, 0, width, handle) };
                }
                (kind, told) if own && p.len.is_empty() && kind.is_number() => {
                    let number = match told {
                        Value::Int(number) => *number,
                        Value::Bool(yes) => i64::from(*yes),
                        Value::Name(name) => self.abi.constant_int(name).unwrap_or(0),
                        _ => continue,
                    };
                    let width = words::width_of(p, &self.abi);
                    // SAFETY: a cell of ours of that width.
                    unsafe { words::write(*word as *mut u8, 0, width, number as u64) };
                }
                _ => {}
            }
        }
    }

    pub(crate) fn ignores(&self, word: usize) -> bool {
        word == self.abi.status_ignore || word == self.abi.statuses_ignore
    }
}
