//! Polls that had found nothing, made again: they take their time, and what they find is not told.

use refrain_model::{Call, Class, Dir, Kind, Value};

use crate::ahead::before;
use crate::issue::Process;

/// Asks as that call did, without taking anything: what is complete stays for the call that found it complete then.
pub fn once(process: &Process, call: &Call, words: &[usize]) {
    let mut flag = 0u64;
    let flag = std::ptr::from_mut(&mut flag) as usize;
    let name = call.function.name;
    if let ("MPI_Iprobe" | "MPI_Improbe", [source, tag, comm, ..]) = (name, words) {
        process.real_call("MPI_Iprobe", &[*source, *tag, *comm, flag, process.abi.status_ignore]);
        return;
    }
    let mut params = call.function.params.iter().zip(words).zip(&call.args);
    let requests = params.find(|((p, _), _)| p.kind == Kind::Handle(Class::Request));
    let Some(((p, first), value)) = requests else { return };
    let size = process.abi.handle_size(refrain_mpi::Class::Request);
    let count = if let Value::List(all) = before(value) { all.len() } else { 1 };
    for at in 0..count {
        let request = match p.dir == Dir::In && p.len.is_empty() {
            true => *first as u64,
            // SAFETY: the call has as many requests there, or one.
            false => unsafe { crate::words::read(*first as *const u8, at, size) },
        };
        if request != process.abi.request_null {
            let words = [request as usize, flag, process.abi.status_ignore];
            process.real_call("MPI_Request_get_status", &words);
        }
    }
}
