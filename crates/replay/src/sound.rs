//! What a library does not check, of the numbers that calls have: a trace may come from anybody. `reach` says which memory a
//! call touches, `windows` which memory of other ranks.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use refrain_model::{Call, Class, Dir, Effect, Kind, Value};
use refrain_views::human;
use refrain_views::value::shown;

use crate::ahead::before;
use crate::issue::{Around, Phase, Process};
use crate::reach;
use crate::words::{self, Surroundings};

/// What may be called whenever one likes.
const ALWAYS: [&str; 10] = [
    "MPI_Initialized",
    "MPI_Finalized",
    "MPI_Get_version",
    "MPI_Get_library_version",
    "MPI_Pcontrol",
    "MPI_Wtime",
    "MPI_Wtick",
    "MPI_Aint_add",
    "MPI_Aint_diff",
    "MPI_Abort",
];

/// Before anything is up.
const EARLY: [&str; 6] =
    ["MPI_Init", "MPI_Init_thread", "MPI_Session_", "MPI_Info_", "MPI_Add_error_", "MPI_Error_"];

/// Files that are smaller have room.
const SMALL: i128 = 1 << 26;

impl Process {
    /// Whether MPI can be called at that time, and whether it is a call that recorders record.
    pub(crate) fn allows(&self, call: &Call) -> Result<(), String> {
        let name = call.function.name;
        if call.function.silent {
            return Err("no recorder records it".to_owned());
        }
        let early = || {
            EARLY.iter().any(|start| name.starts_with(start)) || name.to_lowercase().contains("errhandler")
        };
        match self.known().phase {
            _ if name.starts_with("MPI_T_") || ALWAYS.contains(&name) => Ok(()),
            Phase::Up if name == "MPI_Init" || name == "MPI_Init_thread" => {
                Err("MPI has been brought up before".to_owned())
            }
            Phase::Up | Phase::Sessions => Ok(()),
            Phase::Before if early() => Ok(()),
            Phase::Before => Err("no call before it has brought MPI up".to_owned()),
            Phase::Finalized => Err("it comes after MPI_Finalize".to_owned()),
        }
    }

    /// A call was made with success.
    pub(crate) fn has_made(&self, call: &Call, words: &[usize]) {
        match call.function.name {
            "MPI_Init" | "MPI_Init_thread" => self.known().phase = Phase::Up,
            "MPI_Session_init" => {
                let mut known = self.known();
                if known.phase == Phase::Before {
                    known.phase = Phase::Sessions;
                }
            }
            "MPI_Finalize" => self.known().phase = Phase::Finalized,
            "MPI_Win_attach" => self.attached(call, words),
            "MPI_File_open" => self.opened(call),
            name if name.starts_with("MPI_Win_") => self.window_made(call, words),
            _ => {}
        }
    }

    /// Whether the numbers of a call are some that MPI can be given.
    pub(crate) fn is_sound(&self, call: &Call, words: &[usize]) -> Result<(), String> {
        let name = call.function.name;
        counts_something(call)?;
        if call.function.families.contains(&"rma") {
            self.is_in_window(call, words)?;
        }
        let at = |name: &str| call.function.index_of(name);
        if at("position").is_some() {
            let bytes = |data| self.packed_size(call, words, data);
            reach::packed(call, &Around { process: self }, bytes).map_err(|why| why.to_string())?;
        }
        if name == "MPI_Grequest_complete" {
            self.ends_request(call)?;
        }
        self.are_partitions(call)?;
        if name.contains("Cart_") || name == "MPI_Dims_create" {
            has_few(call, "dims")?;
        }
        if name.starts_with("MPI_Type_create_darray") {
            is_dealt_out(call)?;
        }
        if name.starts_with("MPI_File_") {
            self.has_room(call)?;
            self.is_in_file(call)?;
            self.is_open_for(call)?;
        }
        if ["topo", "group"].iter().any(|family| call.function.families.contains(family)) {
            self.are_ranks(call)?;
        }
        if name == "MPI_Alloc_mem" || name.starts_with("MPI_Win_allocate") {
            let size = at("size").map_or(0, |at| reach::number(call, at));
            reach::fits(size, "size").map_err(|why| why.to_string())?;
        }
        are_all_others(call)
    }

    /// Ranks of groups and topologies: libraries look them up without asking whether there are as many.
    fn are_ranks(&self, call: &Call) -> Result<(), String> {
        let around = Around { process: self };
        let of = |class: Class| call.function.params.iter().position(|p| p.kind == Kind::Handle(class));
        let size = match (of(Class::Group), of(Class::Comm)) {
            (Some(group), _) => {
                let mut size = 0i32;
                let handle = match before(&call.args[group]) {
                    Value::Name(name) => around.named(name).handle,
                    group => around.object(group),
                };
                let handle = handle.filter(|handle| *handle != self.abi.group_null);
                let Some(handle) = handle else { return Ok(()) };
                let words = [handle as usize, std::ptr::from_mut(&mut size) as usize];
                let code = self.real_call("MPI_Group_size", &words);
                if code == 0 { u64::try_from(size).unwrap_or(0) } else { return Ok(()) }
            }
            (None, Some(comm)) => around.members(&call.args[comm], false),
            (None, None) => return Ok(()),
        };
        ranks_below(call, size)
    }

    /// Offsets in a file: libraries add and multiply them, and some do not survive what the system says then.
    fn is_in_file(&self, call: &Call) -> Result<(), String> {
        let around = Around { process: self };
        let name = call.function.name;
        let at = |name: &str| call.function.index_of(name);
        let number = |parameter: &str| at(parameter).map_or(0, |at| reach::number(call, at));
        let shape = |parameter: &str| at(parameter).map(|at| around.shape(before(&call.args[at])));
        let file = before(&call.args[0]);
        if name == "MPI_File_set_view" {
            let of_view = shape("etype").map_or(1, |etype| etype.largest());
            let of_file = shape("filetype").map_or(1, |filetype| filetype.largest().max(1));
            if let Value::Object(_, id) = file {
                self.known().units.insert(*id, (of_view.max(1), of_file));
            }
        }
        let view = match file {
            Value::Object(_, id) => self.known().units.get(id).copied(),
            _ => None,
        };
        let (unit, step) = view.unwrap_or((1, 1));
        let data = number("count").max(0) * shape("datatype").map_or(0, |shape| shape.size.into());
        for parameter in ["offset", "disp", "size"] {
            let unit = if parameter == "offset" { unit } else { 1 };
            let bytes = number(parameter).saturating_mul(unit);
            // Of a view only a part of each step may be data.
            let end = bytes.saturating_add(data).saturating_mul(step.div_euclid(unit).clamp(1, 1 << 20));
            // Without a view the system is asked, which says no; Open MPI passes that on as success.
            let may_be_negative =
                name.starts_with("MPI_File_seek") || parameter == "offset" && view.is_none();
            if end.saturating_abs() > longest_file() || bytes < 0 && !may_be_negative {
                return Err(format!("{parameter} cannot be {}: no file is as long", number(parameter)));
            }
        }
        Ok(())
    }

    /// Files are read and written as they were opened for.
    fn is_open_for(&self, call: &Call) -> Result<(), String> {
        let name = call.function.name;
        let Value::Object(_, id) = before(&call.args[0]) else { return Ok(()) };
        let Some((reads, writes)) = self.known().modes.get(id).copied() else { return Ok(()) };
        match () {
            () if name.contains("read") && !reads => Err("fh: it was not opened for reading".to_owned()),
            () if name.contains("write") && !writes => Err("fh: it was not opened for writing".to_owned()),
            () => Ok(()),
        }
    }

    /// A file was opened. Its id may have been that of another one before.
    fn opened(&self, call: &Call) {
        let value = |name: &str| call.function.index_of(name).map(|at| &call.args[at]);
        let Some(Value::Object(_, id)) = value("fh") else { return };
        let mut known = self.known();
        known.units.remove(id);
        known.modes.remove(id);
        if let Some(Value::Mask(names)) = value("amode") {
            let has = |mode: &str| names.contains(&mode) || names.contains(&"MPI_MODE_RDWR");
            known.modes.insert(*id, (has("MPI_MODE_RDONLY"), has("MPI_MODE_WRONLY")));
        }
    }

    /// What a datatype was made of: Open MPI looks at as many types as there is room for.
    pub(crate) fn contents(&self, name: &'static str, w: &[usize]) -> usize {
        let mut words = w.to_vec();
        let (mut small, mut large, mut combiner) = ([0i32; 3], [0i64; 4], 0i32);
        let combiner = std::ptr::from_mut(&mut combiner) as usize;
        let asked = match name {
            "MPI_Type_get_contents" => {
                let [a, b, c] = small.each_mut().map(|cell| std::ptr::from_mut(cell) as usize);
                self.real_call("MPI_Type_get_envelope", &[w[0], a, b, c, combiner])
            }
            _ => {
                let [a, b, c, d] = large.each_mut().map(|cell| std::ptr::from_mut(cell) as usize);
                self.real_call("MPI_Type_get_envelope_c", &[w[0], a, b, c, d, combiner])
            }
        };
        let there: Vec<i64> = match name {
            "MPI_Type_get_contents" => small.map(i64::from).to_vec(),
            _ => large.to_vec(),
        };
        if asked == 0 {
            for (word, there) in words[1..].iter_mut().zip(there) {
                *word = (*word as i64).min(there) as usize;
            }
        }
        self.real_call(name, &words)
    }

    /// Before the end: what ranks do together is over.
    pub(crate) fn ends_collectives(&self) {
        let mut pending: Vec<(u32, usize)> = {
            let mut known = self.known();
            let ids: Vec<u32> = known.together.drain().collect();
            let place = |id: u32| Some((id, std::ptr::from_mut(&mut **known.cells.get_mut(&id)?) as usize));
            ids.into_iter().filter_map(place).collect()
        };
        pending.sort_unstable();
        for (_, place) in pending {
            self.real_call("MPI_Wait", &[place, self.abi.status_ignore]);
        }
    }

    /// How many bytes a library may pack or unpack, if so many of data.
    fn packed_size(&self, call: &Call, words: &[usize], data: i128) -> i128 {
        let word = |name: &str| call.function.index_of(name).map(|at| words[at]);
        let large = call.function.name.ends_with("_c");
        let count = word("incount").or_else(|| word("outcount")).unwrap_or(0);
        let datatype = word("datatype").unwrap_or(0);
        let mut size = 0i64;
        let cell = std::ptr::from_mut(&mut size) as usize;
        let code = match (word("datarep"), word("comm"), large) {
            (Some(datarep), _, false) => {
                self.real_call("MPI_Pack_external_size", &[datarep, count, datatype, cell])
            }
            (Some(datarep), _, true) => {
                self.real_call("MPI_Pack_external_size_c", &[datarep, count, datatype, cell])
            }
            // Ranks of one kind pack what there is.
            _ => return data,
        };
        if code == 0 { size.into() } else { data }
    }

    /// Whether the program may say that the request of this call is complete.
    pub(crate) fn is_going_on(&self, call: &Call) -> bool {
        matches!(before(&call.args[0]), Value::Object(_, id) if self.known().going_on.contains(id))
    }

    /// A generalised request is complete once.
    fn ends_request(&self, call: &Call) -> Result<(), String> {
        match before(&call.args[0]) {
            Value::Object(_, id) if self.known().going_on.remove(id) => Ok(()),
            _ => Err("request: no generalised request is going on".to_owned()),
        }
    }

    fn are_partitions(&self, call: &Call) -> Result<(), String> {
        if !call.function.name.starts_with("MPI_Pready") && call.function.name != "MPI_Parrived" {
            return Ok(());
        }
        let at = |name: &str| call.function.index_of(name);
        let request = at("request").map(|at| before(&call.args[at]));
        let Some(Value::Object(Class::Request, id)) = request else { return Ok(()) };
        let Some(partitions) = self.known().partitions.get(id).copied() else {
            return Err("request: it has no partitions".to_owned());
        };
        for parameter in ["partition", "partition_low", "partition_high", "array_of_partitions"] {
            let Some(at) = at(parameter) else { continue };
            let list = match before(&call.args[at]) {
                Value::List(list) => &list[..],
                one => std::slice::from_ref(one),
            };
            for one in list {
                if let Value::Int(number) = one
                    && !(0..partitions).contains(&i128::from(*number))
                {
                    return Err(format!("{parameter} cannot be {number}: there are {partitions} partitions"));
                }
            }
        }
        Ok(())
    }

    /// Files: a type that offsets count has bytes, and there is room for what is written.
    fn has_room(&self, call: &Call) -> Result<(), String> {
        let name = call.function.name;
        let around = Around { process: self };
        let shape = |parameter: &str| {
            call.function.index_of(parameter).map(|at| around.shape(before(&call.args[at])))
        };
        if name == "MPI_File_set_view" && shape("etype").is_some_and(|etype| etype.size <= 0) {
            return Err("etype: it has no bytes, and offsets count them".to_owned());
        }
        let number = |parameter: &str| call.function.index_of(parameter).map(|at| reach::number(call, at));
        let bytes = match name {
            "MPI_File_preallocate" => number("size").unwrap_or(0),
            _ if name.contains("write") => {
                number("count").unwrap_or(0).max(0) * shape("datatype").map_or(0, |shape| shape.size.into())
            }
            _ => return Ok(()),
        };
        if bytes < SMALL {
            return Ok(());
        }
        let path = CString::new(self.files.as_os_str().as_bytes()).unwrap_or_default();
        let mut found = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: a terminated name, and a place for the answer.
        if unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
            return Ok(());
        }
        // SAFETY: it was filled in.
        let found = unsafe { found.assume_init() };
        let free = i128::from(found.f_bavail) * i128::from(found.f_frsize);
        match bytes > free {
            true => Err(format!(
                "it writes {}, and {} has {} left (--scratch names another place)",
                human::size(bytes as u128),
                self.files.display(),
                human::size(free as u128)
            )),
            false => Ok(()),
        }
    }

    /// Frees what `MPI_Alloc_mem` has given, if nobody can write there any more.
    pub(crate) fn free_memory(&self, call: &Call, words: &[usize]) -> usize {
        let place = {
            let mut known = self.known();
            let place = match before(&call.args[0]) {
                Value::Address(_) => Some(words[0]),
                Value::Unset => known.nameless.pop(),
                _ => None,
            };
            let busy = !known.live.is_empty() || !known.windows.is_empty();
            place.filter(|place| known.allocated.remove(place) && !busy)
        };
        // Messages may be on their way to it, or it is none that MPI has given: it stays.
        place.map_or(0, |place| self.real_call("MPI_Free_mem", &[place]))
    }

    /// Variables of the tool interface keep what they have: what the program wrote is not in a trace.
    pub(crate) fn keeps_variable(&self, name: &'static str, words: &[usize]) {
        match name {
            "MPI_T_cvar_write" => self.real_call("MPI_T_cvar_read", words),
            "MPI_T_pvar_write" => self.real_call("MPI_T_pvar_read", words),
            _ => 0,
        };
    }

    /// Members of a communicator's larger group.
    pub(crate) fn members(&self, comm: u64) -> u64 {
        let ask = |name: &'static str| {
            let mut number = 0i32;
            let made = self.real_call(name, &[comm as usize, std::ptr::from_mut(&mut number) as usize]) == 0;
            if made { number } else { 0 }
        };
        let remote = if ask("MPI_Comm_test_inter") != 0 { ask("MPI_Comm_remote_size") } else { 0 };
        u64::try_from(ask("MPI_Comm_size").max(remote)).unwrap_or(0)
    }

    /// Neighbours in a communicator's topology, in either direction.
    pub(crate) fn neighbours(&self, comm: u64) -> u64 {
        let comm = comm as usize;
        let place = |number: &mut i32| std::ptr::from_mut(number) as usize;
        let (mut topology, mut found, mut other, mut weighted) = (0i32, 0i32, 0i32, 0i32);
        if self.real_call("MPI_Topo_test", &[comm, place(&mut topology)]) != 0 {
            return 0;
        }
        let code = if topology == self.abi.cart {
            let code = self.real_call("MPI_Cartdim_get", &[comm, place(&mut found)]);
            found = found.saturating_mul(2);
            code
        } else if topology == self.abi.graph {
            let mut rank = 0i32;
            self.real_call("MPI_Comm_rank", &[comm, place(&mut rank)]);
            self.real_call("MPI_Graph_neighbors_count", &[comm, rank as usize, place(&mut found)])
        } else if topology == self.abi.dist_graph {
            let words = [comm, place(&mut found), place(&mut other), place(&mut weighted)];
            self.real_call("MPI_Dist_graph_neighbors_count", &words)
        } else {
            1
        };
        if code == 0 { u64::try_from(found.max(other)).unwrap_or(0) } else { 0 }
    }

    pub(crate) fn dimensions(&self, comm: u64) -> u64 {
        let (mut topology, mut found) = (0i32, 0i32);
        let place = |number: &mut i32| std::ptr::from_mut(number) as usize;
        let is_cart = self.real_call("MPI_Topo_test", &[comm as usize, place(&mut topology)]) == 0
            && topology == self.abi.cart;
        let code =
            if is_cart { self.real_call("MPI_Cartdim_get", &[comm as usize, place(&mut found)]) } else { 1 };
        if code == 0 { u64::try_from(found).unwrap_or(0) } else { 0 }
    }

    /// A handle that is about to be freed, as MPI has it.
    pub(crate) fn before_free(&self, call: &Call, words: &[usize]) {
        if call.function.name == "MPI_Win_free"
            && let Some(at) = call.function.params.iter().position(|p| p.effect == Effect::Free)
        {
            let width = words::width_of(&call.function.params[at], &self.abi);
            // SAFETY: a cell of ours with the handle.
            self.window_freed(unsafe { words::read(words[at] as *const u8, 0, width) });
        }
    }
}

/// Counts are 0 or more: what a library does with others is not always to say so.
fn counts_something(call: &Call) -> Result<(), String> {
    for (p, value) in call.function.params.iter().zip(&call.args) {
        if let (Kind::Int, Dir::In, true, Value::Int(count @ ..0)) =
            (p.kind, p.dir, p.name.ends_with("count"), value)
        {
            return Err(format!("{} cannot be {count}", p.name));
        }
    }
    Ok(())
}

/// Whether all ranks that a call is given are ranks of a group of that size.
fn ranks_below(call: &Call, size: u64) -> Result<(), String> {
    for (p, value) in call.function.params.iter().zip(&call.args).filter(|(p, _)| p.dir == Dir::In) {
        let list = match before(value) {
            Value::List(list) => &list[..],
            one => std::slice::from_ref(one),
        };
        let is_rank = |at: usize| match p.kind {
            Kind::Rank | Kind::Peer(_) => true,
            // First, last and stride.
            _ => p.name == "ranges" && at % 3 < 2,
        };
        for (at, one) in list.iter().enumerate().filter(|(at, _)| is_rank(*at)) {
            if let Value::Int(rank) = one
                && !u64::try_from(*rank).is_ok_and(|rank| rank < size)
            {
                return Err(format!("{}[{at}] cannot be {rank}: there are {size} ranks", p.name));
            }
        }
    }
    Ok(())
}

/// No request is completed or started twice by one call.
fn are_all_others(call: &Call) -> Result<(), String> {
    let requests = call.function.params.iter().zip(&call.args).find_map(|(p, value)| match before(value) {
        Value::List(all) if p.kind == Kind::Handle(Class::Request) => Some((p.name, all)),
        _ => None,
    });
    let Some((parameter, all)) = requests else { return Ok(()) };
    let mut seen = HashSet::new();
    for one in all {
        if let Value::Object(_, id) = one
            && !seen.insert(*id)
        {
            return Err(format!("{parameter}: {} is in it twice", shown(one)));
        }
    }
    Ok(())
}

/// Bytes of the longest file that this process may write.
fn longest_file() -> i128 {
    // As long as some systems have them.
    const LONGEST: i128 = 1 << 43;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the answer.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    if asked == 0 { LONGEST.min(limit.rlim_cur.into()) } else { LONGEST }
}

/// Grids have as many places as an int can count.
fn has_few(call: &Call, parameter: &str) -> Result<(), String> {
    let Some(at) = call.function.index_of(parameter).filter(|at| call.function.params[*at].dir != Dir::Out)
    else {
        return Ok(());
    };
    let Value::List(list) = before(&call.args[at]) else { return Ok(()) };
    let product = list.iter().try_fold(1i32, |product, one| match one {
        Value::Int(number) => product.checked_mul(i32::try_from((*number).max(1)).ok()?),
        _ => Some(product),
    });
    product.map(drop).ok_or_else(|| format!("{parameter}: the grid has more places than ranks have numbers"))
}

/// An array is dealt out to a grid of processes: libraries divide by how many there are, and MPICH looks up where one of them is
/// without asking whether it is one of the grid.
fn is_dealt_out(call: &Call) -> Result<(), String> {
    for parameter in ["array_of_gsizes", "array_of_dargs", "array_of_psizes"] {
        is_none_of(call, parameter, 0)?;
    }
    let at = |name: &str| call.function.index_of(name);
    let number = |name: &str| at(name).map_or(0, |at| reach::number(call, at));
    let size = number("size");
    let sides = match at("array_of_psizes").map(|at| before(&call.args[at])) {
        Some(Value::List(sides)) => &sides[..],
        _ => &[],
    };
    if number("ndims") > sides.len() as i128 {
        return Err("array_of_psizes: there is none for some dimension".to_owned());
    }
    let places = sides.iter().try_fold(1i128, |all, one| match one {
        Value::Int(side @ 1..) => all.checked_mul((*side).into()),
        _ => None,
    });
    if places != Some(size) {
        return Err(format!("size cannot be {size}: array_of_psizes makes no grid of as many processes"));
    }
    match at("rank").map(|at| before(&call.args[at])) {
        Some(Value::Int(rank)) if (0..size).contains(&i128::from(*rank)) => Ok(()),
        rank => {
            let rank = rank.map_or(String::new(), shown);
            Err(format!("rank cannot be {rank}: there are {size} processes"))
        }
    }
}

fn is_none_of(call: &Call, parameter: &str, number: i64) -> Result<(), String> {
    let Some(at) = call.function.index_of(parameter) else { return Ok(()) };
    let Value::List(list) = before(&call.args[at]) else { return Ok(()) };
    match list.contains(&Value::Int(number)) {
        true => Err(format!("{parameter} cannot be {number}")),
        false => Ok(()),
    }
}

/// Bytes that the data of a call may have: as much memory as there is, or as a user allows.
static MEMORY: OnceLock<i128> = OnceLock::new();

/// So many MiB and no more.
pub fn allow_memory(mib: u32) {
    // The first one counts.
    let _ = MEMORY.set(i128::from(mib) << 20);
}

/// Bytes that the data of a call may have.
pub fn memory() -> i128 {
    *MEMORY.get_or_init(|| {
        // SAFETY: asks the system for two numbers.
        let (pages, bytes) =
            unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
        i128::from(pages.max(1)) * i128::from(bytes.max(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::tests::call;

    fn list(numbers: &[i64]) -> Value {
        Value::List(numbers.iter().map(|n| Value::Int(*n)).collect())
    }

    #[test]
    fn grids_have_as_many_places_as_ranks_have_numbers() {
        let grid = |dims: &[i64]| has_few(&call("MPI_Cart_create", &[("dims", list(dims))]), "dims");
        assert!(grid(&[3, 4]).is_ok() && grid(&[0, -1, 46_340, 46_340]).is_ok());
        assert!(grid(&[65_536, 65_536]).is_err() && grid(&[1 << 40]).is_err());
    }

    #[test]
    fn counts_are_none_or_more() {
        let send = |count: i64| counts_something(&call("MPI_Mrecv", &[("count", Value::Int(count))]));
        assert!(send(0).is_ok() && send(7).is_ok());
        assert_eq!(send(-4).unwrap_err(), "count cannot be -4");
    }

    #[test]
    fn ranks_are_those_of_the_group() {
        let incl = |ranks: &[i64]| ranks_below(&call("MPI_Group_incl", &[("ranks", list(ranks))]), 3);
        assert!(incl(&[]).is_ok() && incl(&[2, 0]).is_ok());
        assert_eq!(incl(&[0, 3]).unwrap_err(), "ranks[1] cannot be 3: there are 3 ranks");
        assert!(incl(&[-1]).is_err() && incl(&[i64::MAX]).is_err());
        let range =
            |ranges: &[i64]| ranks_below(&call("MPI_Group_range_incl", &[("ranges", list(ranges))]), 3);
        assert!(range(&[2, 0, -1]).is_ok() && range(&[0, 3, 1]).is_err());
        let nobody = Value::List(vec![Value::Name("MPI_PROC_NULL"), Value::Int(1)]);
        assert!(ranks_below(&call("MPI_Group_translate_ranks", &[("ranks1", nobody)]), 3).is_ok());
    }

    #[test]
    fn a_request_is_completed_once() {
        let wait = |ids: &[u32]| {
            let requests = ids.iter().map(|id| Value::Object(Class::Request, *id)).collect();
            are_all_others(&call("MPI_Waitall", &[("array_of_requests", Value::List(requests))]))
        };
        assert!(wait(&[]).is_ok() && wait(&[3, 1, 2]).is_ok());
        assert!(wait(&[3, 1, 3]).unwrap_err().starts_with("array_of_requests: "));
    }

    #[test]
    fn an_array_is_dealt_out_to_a_grid() {
        let array = |size: i64, rank: Value, sides: Value| {
            let given = [
                ("size", Value::Int(size)),
                ("rank", rank),
                ("ndims", Value::Int(2)),
                ("array_of_psizes", sides),
            ];
            is_dealt_out(&call("MPI_Type_create_darray", &given))
        };
        assert!(array(6, Value::Int(5), list(&[2, 3])).is_ok());
        let size = "size cannot be 4: array_of_psizes makes no grid of as many processes";
        assert_eq!(array(4, Value::Int(0), list(&[2, 3])).unwrap_err(), size);
        assert!(array(6, Value::Int(0), list(&[-2, -3])).is_err());
        assert!(
            array(6, Value::Int(0), list(&[6])).is_err() && array(6, Value::Int(0), Value::Unset).is_err()
        );
        let huge = list(&[i64::MAX, i64::MAX]);
        assert!(array(1, Value::Int(0), huge).is_err());
        for rank in [Value::Int(6), Value::Int(-1), Value::Name("MPI_PROC_NULL")] {
            assert!(array(6, rank, list(&[2, 3])).unwrap_err().starts_with("rank cannot be "));
        }
    }

    #[test]
    fn nothing_is_dealt_out_to_no_rank() {
        let array = |sizes: &[i64]| {
            let call = call("MPI_Type_create_darray", &[("array_of_psizes", list(sizes))]);
            is_none_of(&call, "array_of_psizes", 0)
        };
        assert!(array(&[1, 2]).is_ok());
        assert_eq!(array(&[1, 0]).unwrap_err(), "array_of_psizes cannot be 0");
    }
}
