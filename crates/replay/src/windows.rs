//! Windows: how much of each rank's memory they open. A target's displacement is looked up there before MPI uses it.

use refrain_fold::FastMap;
use refrain_model::{Address, Area, Call, Value};
use refrain_views::value::shown;

use crate::issue::{Around, Known, Process};
use crate::reach::{self, Reach};
use crate::words;

/// By handle.
pub type Windows = FastMap<u64, Window>;

#[derive(Debug, Default)]
pub struct Window {
    /// What is attached to it is told in files (`dynamic`).
    dynamic: bool,
    /// Of each rank: bytes, and what a displacement counts.
    parts: Vec<(i64, i64)>,
    /// What MPI has allocated for it here.
    memory: Vec<Address>,
}

impl Known {
    /// A call has been given memory of MPI.
    pub(crate) fn allocates(&mut self, call: &Call, words: &[usize], value: &Value, place: usize) {
        let name = call.function.name;
        let at = |name: &str| call.function.index_of(name);
        let (Some(size), true) = (at("size"), place != 0) else { return };
        let bytes = match name {
            "MPI_Alloc_mem" => reach::number(call, size),
            _ if name.starts_with("MPI_Win_shared_query") => {
                // SAFETY: a cell of ours of eight bytes, into which MPI has put the size.
                unsafe { (words[size] as *const i64).read_unaligned() }.into()
            }
            _ if name.starts_with("MPI_Win_allocate") => reach::number(call, size),
            // The program's own comes back.
            _ => return,
        };
        let bytes = u64::try_from(bytes).unwrap_or(0);
        let address = match value {
            Value::Address(address) => Some(*address),
            _ => None,
        };
        if name == "MPI_Alloc_mem" {
            self.allocated.insert(place);
            if address.is_none() {
                self.nameless.push(place);
            }
        }
        // Memory that has no name in the trace is used by none of its calls.
        let unnamed = Address { area: Area::Number, device: 0, segment: 0, offset: 0 };
        self.memory.is_at(address.unwrap_or(unnamed), place, bytes);
        if let (Some(win), Some(address)) = (at("win"), address) {
            let handle = match name.starts_with("MPI_Win_shared_query") {
                true => words[win] as u64,
                false => return self.is_of_next(address),
            };
            if let Some(window) = self.windows.get_mut(&handle) {
                window.memory.push(address);
            }
        }
    }

    /// Of the window that was made last.
    fn is_of_next(&mut self, address: Address) {
        if let Some(window) = self.last_window.and_then(|handle| self.windows.get_mut(&handle)) {
            window.memory.push(address);
        }
    }
}

impl Process {
    /// A call was made, with success: all ranks tell each other how large their parts of a new window are.
    pub(crate) fn window_made(&self, call: &Call, words: &[usize]) {
        let name = call.function.name;
        let at = |name: &str| call.function.index_of(name);
        let makes = name.starts_with("MPI_Win_create") || name.starts_with("MPI_Win_allocate");
        let (true, Some(win), Some(comm)) = (makes, at("win"), at("comm")) else { return };
        let width = words::width_of(&call.function.params[win], &self.abi);
        // SAFETY: a cell of ours with the handle.
        let handle = unsafe { words::read(words[win] as *const u8, 0, width) };
        let mut window = Window { dynamic: name.starts_with("MPI_Win_create_dynamic"), ..Window::default() };
        if let (false, Some(size), Some(unit)) = (window.dynamic, at("size"), at("disp_unit")) {
            let whole = |at| i64::try_from(reach::number(call, at)).unwrap_or(0);
            let own = [whole(size), whole(unit)];
            let members = usize::try_from(self.members(words[comm] as u64)).unwrap_or(0);
            let mut all = vec![[0i64; 2]; members];
            let (from, to) = (own.as_ptr() as usize, all.as_mut_ptr() as usize);
            let byte = self.abi.byte as usize;
            let words = [from, size_of_val(&own), byte, to, size_of_val(&own), byte, words[comm]];
            if self.real_call("MPI_Allgather", &words) != 0 {
                all.clear();
            }
            window.parts = all.into_iter().map(|[size, unit]| (size, unit)).collect();
        }
        let mut known = self.known();
        known.windows.insert(handle, window);
        known.last_window = Some(handle);
    }

    /// A window is about to be freed, with what MPI has allocated for it.
    pub(crate) fn window_freed(&self, handle: u64) {
        let mut known = self.known();
        if let Some(window) = known.windows.remove(&handle) {
            window.memory.into_iter().for_each(|address| known.memory.is_gone(address));
        }
    }

    /// Whether what a call touches in another rank's window is there.
    pub(crate) fn is_in_window(&self, call: &Call, words: &[usize]) -> Result<(), String> {
        let around = Around { process: self };
        let Some(touched) = reach::in_window(call, &around).map_err(|why| why.to_string())? else {
            return Ok(());
        };
        let at = |name: &str| call.function.index_of(name);
        let (Some(target), Some(win), Some(displacement)) = (at("target_rank"), at("win"), at("target_disp"))
        else {
            return Ok(());
        };
        // Of MPI_PROC_NULL nothing is touched; of ranks that are none MPI says so.
        let Some(rank) = target_of(&call.args[target])? else { return Ok(()) };
        if touched.is_empty() {
            return Ok(());
        }
        let known = self.known();
        let Some(window) = known.windows.get(&(words[win] as u64)) else {
            return Err("win: no call of the trace has made it".to_owned());
        };
        if window.dynamic {
            return Ok(());
        }
        let part = usize::try_from(rank).ok().and_then(|rank| window.parts.get(rank));
        let Some((size, unit)) = part else { return Ok(()) };
        let displacement = reach::number(call, displacement);
        let Reach { lo, hi } = touched.moved(displacement.saturating_mul((*unit).into()));
        if lo < 0 || hi > i128::from(*size) {
            return Err(format!(
                "target_disp cannot be {displacement}: it would touch bytes {lo} to {hi} of the window of rank \
                 {rank}, which has {size}"
            ));
        }
        Ok(())
    }

    /// Whether displacements in that window are addresses of another rank.
    pub(crate) fn is_dynamic(&self, win: usize) -> bool {
        self.known().windows.get(&(win as u64)).is_some_and(|window| window.dynamic)
    }
}

/// The rank whose window a call touches. `None`: nobody's.
pub fn target_of(target: &Value) -> Result<Option<i64>, String> {
    match target {
        Value::Int(rank) => Ok(Some(*rank)),
        // What a trace does not tell is 0 to MPI.
        Value::Unset => Ok(Some(0)),
        Value::Name("MPI_PROC_NULL") => Ok(None),
        other => Err(format!("target_rank cannot be {}", shown(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_touches_the_window_of_a_rank_or_of_nobody() {
        assert_eq!(target_of(&Value::Int(3)), Ok(Some(3)));
        assert_eq!(target_of(&Value::Unset), Ok(Some(0)));
        assert_eq!(target_of(&Value::Name("MPI_PROC_NULL")), Ok(None));
        assert_eq!(
            target_of(&Value::Name("MPI_ANY_SOURCE")),
            Err("target_rank cannot be MPI_ANY_SOURCE".to_owned())
        );
    }
}
