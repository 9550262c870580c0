//! Receives from any source or with any tag whose status the program ignores: what they matched is known all the same,
//! from statuses of ours that MPI is given in place of none.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use refrain_model::{Dir, Effect, Function, Kind};
use refrain_mpi::Abi;

/// What the running library calls such things.
static NUMBERS: OnceLock<Numbers> = OnceLock::new();
/// A request was made that is such a receive. Set before the program has it.
static MADE: AtomicBool = AtomicBool::new(false);

#[derive(Debug, Clone, Copy)]
struct Numbers {
    any_source: i32,
    any_tag: i32,
    /// One status that is ignored, and several.
    ignored: [usize; 2],
    size: usize,
}

/// The library is known.
pub fn start(abi: &Abi) {
    let _ = NUMBERS.set(Numbers {
        any_source: abi.any_source,
        any_tag: abi.any_tag,
        ignored: [abi.status_ignore, abi.statuses_ignore],
        size: abi.status_size(),
    });
}

/// A request was made that receives from any source or with any tag.
pub fn note() {
    MADE.store(true, Relaxed);
}

/// Whether a call that completes requests may complete such a one.
#[inline]
pub fn made() -> bool {
    MADE.load(Relaxed)
}

/// The parameter that statuses are written to.
pub fn parameter(function: &Function) -> Option<usize> {
    function.params.iter().position(|p| p.kind == Kind::Status && p.dir == Dir::Out)
}

/// Whether its statuses are those of requests.
pub fn completes(function: &Function) -> bool {
    function.params.iter().any(|p| p.effect == Effect::Complete)
}

/// How many bytes of statuses such a call needs, if the program ignores them and something is to be known from them.
/// Calls that complete several requests say first how many.
pub fn needed(function: &Function, args: &[usize]) -> Option<usize> {
    let numbers = NUMBERS.get()?;
    let at = parameter(function)?;
    let several = !function.params[at].len.is_empty();
    if args[at] != numbers.ignored[usize::from(several)] {
        return None;
    }
    let int = |at: usize| args[at] as u32 as i32;
    if !completes(function) {
        let mut params = function.params.iter().enumerate();
        let asks = params.any(|(i, p)| match p.kind {
            Kind::Peer(_) => int(i) == numbers.any_source,
            Kind::Tag => int(i) == numbers.any_tag,
            _ => false,
        });
        return asks.then_some(numbers.size);
    }
    let count = if several { usize::try_from(int(0)).ok().filter(|count| *count > 0)? } else { 1 };
    count.checked_mul(numbers.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::function;

    #[test]
    fn statuses_of_ours_stand_in_where_nobody_looks_at_what_matched() {
        const IGNORED: i64 = 1;
        const ALL_IGNORED: i64 = 5;
        let numbers = Numbers { any_source: -2, any_tag: -1, ignored: [1, 5], size: 20 };
        assert_eq!(NUMBERS.get_or_init(|| numbers).size, 20);
        let bytes = |name: &str, given: &[(&str, i64)]| {
            let function = function(name).unwrap();
            let mut args = vec![0; function.params.len()];
            given.iter().for_each(|(name, value)| args[function.index_of(name).unwrap()] = *value as usize);
            needed(function, &args)
        };
        let receive =
            |source, tag, status| bytes("MPI_Recv", &[("source", source), ("tag", tag), ("status", status)]);
        assert_eq!(receive(3, 7, IGNORED), None);
        assert_eq!([receive(-2, 7, IGNORED), receive(3, -1, IGNORED)], [Some(20); 2]);
        // The program has a status of its own.
        assert_eq!(receive(-2, -1, 0x1000), None);
        let waitall =
            |count, statuses| bytes("MPI_Waitall", &[("count", count), ("array_of_statuses", statuses)]);
        assert_eq!(
            [waitall(3, ALL_IGNORED), waitall(0, ALL_IGNORED), waitall(3, 0x1000)],
            [Some(60), None, None]
        );
        assert_eq!(bytes("MPI_Wait", &[("status", IGNORED)]), Some(20));
    }
}
