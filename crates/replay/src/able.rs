//! Whether a library can make the calls of a trace.

use refrain_encode::{Layout, Slot};
use refrain_model::{Returns, Value};
use refrain_mpi::{Abi, Library};
use refrain_tracefile::Trace;

/// What the library lacks, and what to do.
pub fn lacks(trace: &Trace, library: &Library, abi: &Abi) -> Option<String> {
    let (mut functions, mut constants) = (Vec::new(), Vec::new());
    for symbol in &trace.bundle.symbols {
        let Ok(layout) = Layout::parse(&symbol.bytes) else { continue };
        // Sums and differences of addresses are not asked of a library.
        let made = layout.function.returns != Returns::Aint;
        let name = layout.function.name;
        if made && !functions.contains(&name) && library.symbol(name).is_none() {
            functions.push(name);
        }
        for slot in &layout.slots {
            if let Slot::Fixed(Value::Name(name)) = slot
                && name.starts_with("MPI")
                && !constants.contains(name)
                && !knows(abi, name)
            {
                constants.push(*name);
            }
        }
    }
    let lacking: Vec<&str> = functions.into_iter().chain(constants).collect();
    let most = 5;
    let more = lacking.len().saturating_sub(most);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let told = lacking[..lacking.len().min(most)].join(", ");
    if !lacking.is_empty() {
        return Some(format!(
            "this MPI library has no {told}{more}, which the trace has: replay it on a library that has, such as the one \
             that it was recorded on"
        ));
    }
    None
}

fn knows(abi: &Abi, name: &str) -> bool {
    abi.pointer(name).is_some() || abi.handle(name).is_some() || abi.constant_int(name).is_some()
}

/// Whether the trace was recorded on a library of another kind.
pub fn is_foreign(trace: &Trace, abi: &Abi) -> bool {
    trace.meta.abi != abi.family.name()
}
