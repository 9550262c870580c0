//! What holds for every call of a process from the moment MPI is up: all threads read it, none writes it.

use crate::defined::Undefined;
use crate::host::{Memory, RawStatus};
use crate::memo::Plans;
use crate::objects::Code;
use crate::wire;

/// Numbers of the running library that the encoder compares with on every call.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) any_source: i64,
    pub(crate) proc_null: i64,
    pub(crate) root: i64,
    pub(crate) any_tag: i64,
    pub(crate) undefined: i64,
    pub(crate) in_place: usize,
    pub(crate) status_ignore: usize,
    pub(crate) statuses_ignore: usize,
    pub(crate) err_in_status: i64,
}

/// Constant ids of the same, as they go into symbols.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Names {
    pub(crate) any_source: u16,
    pub(crate) proc_null: u16,
    pub(crate) root: u16,
    pub(crate) any_tag: u16,
    pub(crate) undefined: u16,
    pub(crate) status_ignore: u16,
    pub(crate) statuses_ignore: u16,
    pub(crate) argv_null: u16,
    pub(crate) argvs_null: u16,
}

/// Of a status's lanes, the one that says what is defined; source, tag and bytes are those before it.
pub(crate) const STATUS_MARK: u16 = 3;
/// How many there are, but for that of an error.
pub(crate) const STATUS_LANES: u16 = 4;

#[derive(Debug, Default, Clone)]
pub struct Facts {
    pub(crate) numbers: Numbers,
    pub(crate) names: Names,
    /// Addresses of integer arrays that are names.
    pub(crate) arrays: Vec<(usize, u16)>,
    pub(crate) null_request: Option<(u64, u16)>,
    pub(crate) world_rank: i64,
    pub(crate) plans: Plans,
}

impl Facts {
    /// A rank as it stands in a lane, or the constant it is.
    pub(crate) fn peer(&self, value: i64, base: i64) -> Result<i64, u16> {
        let (n, names) = (&self.numbers, &self.names);
        match value {
            _ if value == n.any_source => Err(names.any_source),
            _ if value == n.proc_null => Err(names.proc_null),
            _ if value == n.root => Err(names.root),
            // The source of a status that no message has filled in, as after MPI_Wait for a file's request.
            _ if value == n.undefined => Err(names.undefined),
            _ => Ok(value - base),
        }
    }

    pub(crate) fn tag(&self, value: i64) -> Result<i64, u16> {
        if value == self.numbers.any_tag { Err(self.names.any_tag) } else { Ok(value) }
    }

    fn source_and_tag(&self, raw: &RawStatus, base: i64) -> (i64, i64) {
        let (source, tag) = (self.peer(raw.source.into(), base), self.tag(raw.tag.into()));
        let named = wire::named_value;
        (source.unwrap_or_else(named), tag.unwrap_or_else(named))
    }

    /// A status as it stands in lanes from `first` on, as far as it is defined: what is defined, source, tag, bytes.
    #[inline]
    pub(crate) fn push_status(
        &self,
        raw: &RawStatus,
        base: i64,
        undefined: Undefined,
        first: u16,
        values: &mut Vec<(u16, i64)>,
    ) {
        let undefined = undefined.if_cancelled(raw.cancelled);
        values.push((first + STATUS_MARK, undefined.mark(raw.cancelled)));
        if undefined.has_peer() {
            let (source, tag) = self.source_and_tag(raw, base);
            values.extend([(first, source), (first + 1, tag)]);
        }
        if undefined.has_bytes() {
            values.push((first + 2, raw.bytes));
        }
    }

    /// Writes a status of a call that completes nothing over the values of an earlier one. Whether that changes them.
    pub(crate) fn fill_status<M: Memory>(
        &self,
        memory: &M,
        pointer: usize,
        base: i64,
        undefined: Undefined,
        values: &mut [(u16, i64)],
    ) -> bool {
        let raw = memory.status_at(pointer, 0);
        let mut changed = false;
        if let (true, [_, (_, source), (_, tag), ..]) = (undefined.has_peer(), &mut *values) {
            let now = self.source_and_tag(&raw, base);
            changed |= now != (*source, *tag);
            (*source, *tag) = now;
        }
        if let (true, Some((_, bytes))) = (undefined.has_bytes(), values.last_mut()) {
            changed |= *bytes != raw.bytes;
            *bytes = raw.bytes;
        }
        changed
    }

    pub(crate) fn ignores_status(&self, pointer: usize, several: bool) -> bool {
        let n = &self.numbers;
        pointer == if several { n.statuses_ignore } else { n.status_ignore }
    }

    /// Whether an address stands for something else than an array.
    pub(crate) fn names_an_array(&self, pointer: usize) -> bool {
        self.arrays.iter().any(|&(address, _)| address == pointer && address != 0)
    }

    pub(crate) fn status_was_written(&self, pointer: usize) -> bool {
        pointer != 0 && pointer != self.numbers.status_ignore
    }

    /// `MPI_REQUEST_NULL` as it stands in a lane, if that is what the handle is.
    #[inline]
    pub(crate) fn null_request(&self, handle: u64) -> Option<i64> {
        let null = self.null_request.filter(|&(null, _)| null == handle);
        null.map(|(_, constant)| Code::Constant(constant).number() as i64)
    }
}
