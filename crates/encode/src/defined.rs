//! What MPI defines of a status. The rest is whatever lay in the program's memory, and has no place in a trace.

use refrain_model::{Class, Dir, Effect, Function, Kind, Param};

use crate::params::speaks_of_a_file;

/// Which fields of a status mean nothing, a bit each. The numbers are in trace files, doubled: the lowest bit there says
/// whether the operation was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Undefined(u8);

impl Undefined {
    const PEER: u8 = 1;
    const BYTES: u8 = 2;
    const CANCELLED: u8 = 4;
    const ALL: u8 = 7;
    /// Never in a file.
    const AS_SET: u8 = 8;
    /// Of a receive whose status says what it matched: it asked for any source or any tag. Never in a file.
    const WILD: u8 = 16;

    /// Of a receive, everything is defined; so it is of a request that is null, whose status is empty.
    pub(crate) const NONE: Undefined = Undefined(0);
    /// Of a send only whether it was cancelled is (MPI 4.1, 3.7.3).
    pub(crate) const SEND: Undefined = Undefined(Self::PEER | Self::BYTES);
    /// Of access to a file the amount is (14.4). Libraries do not set the mark of a cancelled operation there.
    pub(crate) const FILE: Undefined = Undefined(Self::PEER | Self::CANCELLED);
    /// Of collective and one-sided operations (6.12, 12.3) nothing is.
    pub(crate) const EVERYTHING: Undefined = Undefined(Self::ALL);
    /// Of a generalised request, what the program's query function has set (13.2): see [`Set`].
    pub(crate) const GENERALISED: Undefined = Undefined(Self::AS_SET);

    /// What a status of ours says of a receive that asked for anything: source and tag, or that it was cancelled.
    pub(crate) const MATCH: Undefined = Undefined(Self::BYTES);

    /// The same of a receive that asks for any source or any tag.
    pub(crate) fn wild(self) -> Undefined {
        Undefined(self.0 | Self::WILD)
    }

    pub(crate) fn is_wild(self) -> bool {
        self.0 & Self::WILD != 0
    }

    /// What is kept of a status that the program ignores.
    pub(crate) fn of_ignored(self) -> Undefined {
        if self.is_wild() { Undefined::MATCH } else { Undefined::EVERYTHING }
    }

    /// As it stands in a lane.
    pub(crate) fn mark(self, cancelled: bool) -> i64 {
        i64::from(self.0 & Self::ALL) << 1 | i64::from(cancelled && self.has_cancelled())
    }

    /// What a lane says, and whether the operation was cancelled.
    pub(crate) fn from_mark(mark: i64) -> Option<(Undefined, bool)> {
        let bits = u8::try_from(mark >> 1).ok().filter(|bits| *bits <= Self::ALL)?;
        Some((Undefined(bits), mark & 1 != 0))
    }

    pub(crate) fn has_peer(self) -> bool {
        self.0 & Self::PEER == 0
    }

    pub(crate) fn has_bytes(self) -> bool {
        self.0 & Self::BYTES == 0
    }

    pub(crate) fn has_cancelled(self) -> bool {
        self.0 & Self::CANCELLED == 0
    }

    /// What a status does not say that says so of its operation: of one that was cancelled nothing else is defined (3.8.4).
    #[inline]
    pub(crate) fn if_cancelled(self, cancelled: bool) -> Undefined {
        if cancelled && self.has_cancelled() { Undefined::SEND } else { self }
    }

    pub(crate) fn is_everything(self) -> bool {
        self.0 == Self::ALL
    }

    pub(crate) fn goes_by_what_was_set(self) -> bool {
        self.0 == Self::AS_SET
    }

    /// How many numbers of a status are kept, with the mark.
    pub(crate) fn numbers(self) -> usize {
        1 + 2 * usize::from(self.has_peer()) + usize::from(self.has_bytes())
    }

    /// Of a request that this function makes.
    pub(crate) fn of_request(f: &Function) -> Undefined {
        let buffers = || f.params.iter().filter(|p| p.kind == Kind::Buffer);
        match () {
            () if f.name == "MPI_Grequest_start" => Undefined::GENERALISED,
            () if speaks_of_a_file(f) => Undefined::FILE,
            () if !f.families.contains(&"p2p") => Undefined::EVERYTHING,
            () if buffers().any(|p| p.dir != Dir::In) => Undefined::NONE,
            () if buffers().count() > 0 => Undefined::SEND,
            () => Undefined::EVERYTHING,
        }
    }
}

/// Which rule says what is defined in a call's statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statuses {
    /// The call is no completion. A blocking operation is never cancelled, whatever the memory says.
    OfTheCall(Undefined),
    /// The program hands a status in, and the call looks at this of it, or sets it.
    Given(Undefined),
    /// The k-th is that of the k-th request.
    InOrder,
    /// That of the request which an output says.
    At(u8),
    /// Those of the requests which a list says.
    Listed(u8),
}

impl Statuses {
    /// Of parameter `i`.
    pub(crate) fn of(f: &Function, i: usize) -> Statuses {
        if f.params[i].dir != Dir::Out {
            let has = |kind: Kind| f.params.iter().any(|p| p.kind == kind);
            return Statuses::Given(match () {
                () if has(Kind::Logical) => Undefined::SEND,
                () if has(Kind::Handle(Class::Datatype)) => Undefined::FILE,
                () => Undefined::EVERYTHING,
            });
        }
        let request = |p: &Param| {
            p.kind == Kind::Handle(Class::Request) && p.dir != Dir::Out && p.effect != Effect::Create
        };
        if !f.params.iter().any(request) {
            let file = speaks_of_a_file(f);
            return Statuses::OfTheCall(if file { Undefined::FILE } else { Undefined::NONE });
        }
        let index = |listed: bool| {
            f.params
                .iter()
                .position(|p| p.dir == Dir::Out && p.kind == Kind::Undefinable && p.len.is_empty() != listed)
        };
        if f.params[i].len.is_empty() {
            return index(false).map_or(Statuses::InOrder, |at| Statuses::At(at as u8));
        }
        index(true).map_or(Statuses::InOrder, |at| Statuses::Listed(at as u8))
    }

    /// Of the k-th status of a call whose requests are such; an index that is none belongs to an empty status.
    pub(crate) fn kth(
        self,
        k: usize,
        requests: &[Undefined],
        mut number: impl FnMut(u8, usize) -> i64,
    ) -> Undefined {
        let at = match self {
            Statuses::OfTheCall(undefined) | Statuses::Given(undefined) => return undefined,
            Statuses::InOrder => k as i64,
            Statuses::At(j) => number(j, 0),
            Statuses::Listed(j) => number(j, k),
        };
        let request = usize::try_from(at).ok().and_then(|at| requests.get(at));
        request.copied().unwrap_or(Undefined::NONE)
    }
}

/// Which requests a call that succeeded has completed. Numbers are positions of its outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completed {
    /// All, if the flag says so.
    All { flag: Option<u8> },
    /// The one that an index says. It says none where the flag is false.
    One { index: u8 },
    /// Those that a list says.
    Listed { count: u8, indices: u8 },
}

impl Completed {
    pub(crate) fn of(f: &Function) -> Completed {
        let output = |kind: Kind, listed: bool| {
            let wanted = |p: &Param| p.dir == Dir::Out && p.kind == kind && p.len.is_empty() != listed;
            f.params.iter().position(wanted).map(|at| at as u8)
        };
        match (output(Kind::Undefinable, false), output(Kind::Undefinable, true)) {
            (Some(count), Some(indices)) => Completed::Listed { count, indices },
            (Some(index), None) => Completed::One { index },
            _ => Completed::All { flag: output(Kind::Logical, false) },
        }
    }

    /// Tells each of `n` requests that is complete. `number` is element `k` of an output, if it was written.
    pub(crate) fn each(
        self,
        n: usize,
        number: impl Fn(u8, usize) -> Option<i64>,
        mut complete: impl FnMut(usize),
    ) {
        let mut at = |k: Option<i64>| {
            if let Some(k) = k.and_then(|k| usize::try_from(k).ok()).filter(|k| *k < n) {
                complete(k);
            }
        };
        match self {
            Completed::All { flag } => {
                if flag.is_none_or(|flag| number(flag, 0).is_some_and(|flag| flag != 0)) {
                    (0..n as i64).for_each(|k| at(Some(k)));
                }
            }
            Completed::One { index } => at(number(index, 0)),
            Completed::Listed { count, indices } => {
                let count = number(count, 0).unwrap_or(0).clamp(0, n as i64);
                (0..count as usize).for_each(|k| at(number(indices, k)));
            }
        }
    }
}

/// What the query functions of generalised requests have set in the call at hand, which completes them. They run in that
/// call, on its thread. Which of them has set what is not told: what one has set counts for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Set {
    source: bool,
    tag: bool,
    bytes: bool,
    cancelled: bool,
}

impl Set {
    /// A call that may set something of a status.
    pub(crate) fn note(&mut self, f: &Function) {
        match f.name {
            "MPI_Status_set_source" => self.source = true,
            "MPI_Status_set_tag" => self.tag = true,
            "MPI_Status_set_cancelled" => self.cancelled = true,
            name if name.starts_with("MPI_Status_set_elements") => self.bytes = true,
            _ => {}
        }
    }

    pub(crate) fn undefined(self) -> Undefined {
        let peer = if self.source && self.tag { 0 } else { Undefined::PEER };
        let bytes = if self.bytes { 0 } else { Undefined::BYTES };
        let cancelled = if self.cancelled { 0 } else { Undefined::CANCELLED };
        Undefined(peer | bytes | cancelled)
    }
}

#[cfg(test)]
mod tests {
    use refrain_model::functions;

    use super::*;

    /// Functions that make requests, by what is defined when one is complete.
    fn makers(of: Undefined) -> Vec<&'static str> {
        let makes = |f: &&Function| {
            f.params.iter().any(|p| p.kind == Kind::Handle(Class::Request) && p.effect == Effect::Create)
        };
        let found = functions().iter().filter(makes).filter(|f| Undefined::of_request(f) == of);
        found.map(|f| f.name.trim_end_matches("_c")).collect()
    }

    #[test]
    fn of_each_request_something_is_defined() {
        let unique = |of| {
            let mut names = makers(of);
            names.dedup();
            names.sort_unstable();
            names
        };
        assert_eq!(unique(Undefined::GENERALISED), ["MPI_Grequest_start"]);
        let receives = [
            "MPI_Imrecv",
            "MPI_Irecv",
            "MPI_Isendrecv",
            "MPI_Isendrecv_replace",
            "MPI_Precv_init",
            "MPI_Recv_init",
        ];
        assert_eq!(unique(Undefined::NONE), receives);
        let sends = [
            "MPI_Bsend_init",
            "MPI_Ibsend",
            "MPI_Irsend",
            "MPI_Isend",
            "MPI_Issend",
            "MPI_Psend_init",
            "MPI_Rsend_init",
            "MPI_Send_init",
            "MPI_Ssend_init",
        ];
        assert_eq!(unique(Undefined::SEND), sends);
        assert!(unique(Undefined::FILE).iter().all(|name| name.starts_with("MPI_File_i")));
        let rest = unique(Undefined::EVERYTHING);
        for name in ["MPI_Ibarrier", "MPI_Rput", "MPI_Comm_idup", "MPI_Allreduce_init", "MPI_Buffer_iflush"] {
            assert!(rest.contains(&name), "{name}");
        }
    }

    #[test]
    fn marks_come_back() {
        for undefined in [Undefined::NONE, Undefined::SEND, Undefined::FILE, Undefined::EVERYTHING] {
            for cancelled in [false, true] {
                let kept = cancelled && undefined.has_cancelled();
                assert_eq!(Undefined::from_mark(undefined.mark(cancelled)), Some((undefined, kept)));
            }
        }
        assert_eq!(Undefined::from_mark(16), None);
        assert_eq!(Undefined::from_mark(-1), None);
    }

    #[test]
    fn which_requests_are_complete() {
        let of = |name: &str| Completed::of(refrain_model::function(name).unwrap());
        assert_eq!(of("MPI_Wait"), Completed::All { flag: None });
        assert_eq!(of("MPI_Waitall"), Completed::All { flag: None });
        assert_eq!(of("MPI_Test"), Completed::All { flag: Some(1) });
        assert_eq!(of("MPI_Testall"), Completed::All { flag: Some(2) });
        assert_eq!(of("MPI_Waitany"), Completed::One { index: 2 });
        assert_eq!(of("MPI_Testany"), Completed::One { index: 2 });
        assert_eq!(of("MPI_Waitsome"), Completed::Listed { count: 2, indices: 3 });
        assert_eq!(of("MPI_Testsome"), Completed::Listed { count: 2, indices: 3 });
        let told = |completed: Completed, outputs: [&[i64]; 2]| {
            let mut told = Vec::new();
            let number = |j: u8, k: usize| outputs[usize::from(j)].get(k).copied();
            completed.each(3, number, |k| told.push(k));
            told
        };
        assert_eq!(told(Completed::All { flag: Some(0) }, [&[0], &[]]), [0usize; 0]);
        assert_eq!(told(Completed::All { flag: Some(0) }, [&[7], &[]]), [0, 1, 2]);
        assert_eq!(told(Completed::One { index: 0 }, [&[-32766], &[]]), [0usize; 0]);
        assert_eq!(told(Completed::One { index: 0 }, [&[3], &[]]), [0usize; 0]);
        let listed = Completed::Listed { count: 0, indices: 1 };
        assert_eq!(told(listed, [&[2], &[2, 0, 1]]), [2, 0]);
        assert_eq!(told(listed, [&[-32766], &[2, 0, 1]]), [0usize; 0]);
    }

    #[test]
    fn statuses_belong_to_requests() {
        let of = |name: &str| {
            let f = refrain_model::function(name).unwrap();
            let i = f.params.iter().position(|p| p.kind == Kind::Status).unwrap();
            Statuses::of(f, i)
        };
        assert_eq!(of("MPI_Wait"), Statuses::InOrder);
        assert_eq!(of("MPI_Waitall"), Statuses::InOrder);
        assert_eq!(of("MPI_Testany"), Statuses::At(2));
        assert_eq!(of("MPI_Waitsome"), Statuses::Listed(3));
        assert_eq!(of("MPI_Request_get_status"), Statuses::InOrder);
        assert_eq!(of("MPI_Request_get_status_any"), Statuses::At(2));
        assert_eq!(of("MPI_Recv"), Statuses::OfTheCall(Undefined::NONE));
        assert_eq!(of("MPI_File_read_all_end"), Statuses::OfTheCall(Undefined::FILE));
        assert_eq!(of("MPI_Test_cancelled"), Statuses::Given(Undefined::SEND));
        assert_eq!(of("MPI_Get_elements_x"), Statuses::Given(Undefined::FILE));
        assert_eq!(of("MPI_Status_set_source"), Statuses::Given(Undefined::EVERYTHING));
    }
}
