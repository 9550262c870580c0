//! The transport over MPI, on a communicator of its own.

use std::thread;
use std::time::Duration;

use refrain_process::waited::Waited;

use crate::pmpi::{Code, Pmpi};
use crate::transport::{Transport, TransportError, peer};

/// The first part of a message carries its length and as much of it as fits; most messages fit.
const FIRST: usize = 64 * 1024;
const PREFIX: usize = size_of::<u64>();
/// What is left over travels in parts of this size, since MPI counts in ints.
const CHUNK: usize = 1 << 30;
/// All parts use one tag: MPI keeps the order of messages between two ranks.
const TAG: i32 = 0;
/// The tag under which the communicator is made: the highest that every library allows, since Open MPI uses it in the
/// program's communicator.
const MAKING: i32 = 32_767;

/// After so long a wait the core is given to others for a while each time: for an eighth of the wait, and at most so long. Naps
/// as long as the wait before them would keep two ranks that answer each other asleep by turns.
const BRIEFLY: Duration = Duration::from_millis(1);
const NAP: Duration = Duration::from_millis(1);
/// How often a rank that waits looks whether the exchange is called off: at first, and when it has waited for long. With many
/// ranks it is less often, so that all together ask a file server no more than so many times in the time for one.
const LOOK: Duration = Duration::from_millis(100);
const SELDOM: Duration = Duration::from_secs(5);
const FOR_EACH: Duration = Duration::from_micros(50);

/// How long a rank waits for another one.
pub struct Waiting<'a> {
    /// For one message.
    pub most: Duration,
    /// Whether some rank has left, so that the others wait in vain. Is told for how long this message was waited for.
    pub called_off: &'a dyn Fn(Duration) -> bool,
}

/// Messages among all ranks of a communicator. None of them waits for ever.
pub struct MpiTransport<'a> {
    pmpi: &'a Pmpi,
    comm: u64,
    rank: u32,
    size: u32,
    chunk: usize,
    waiting: Waiting<'a>,
}

impl<'a> MpiTransport<'a> {
    /// To be called by all ranks of `comm`, an intra-communicator. Collectives of the program that are under way in it
    /// make no difference; a receive that is, and takes any tag, does (`Pmpi::comm_create_group`).
    ///
    /// The new communicator is made from the group rather than duplicated: a duplicate would run the program's own
    /// attribute copy functions. Errors on it are returned. Those of `comm` are the program's, unless the caller has
    /// `Pmpi::returning_errors`.
    pub fn new(pmpi: &'a Pmpi, comm: u64, waiting: Waiting<'a>) -> Result<MpiTransport<'a>, TransportError> {
        MpiTransport::with_chunk(pmpi, comm, CHUNK, waiting)
    }

    /// As `new`, with parts of at most `chunk` bytes: for tests of long messages that are not long.
    #[doc(hidden)]
    pub fn with_chunk(
        pmpi: &'a Pmpi,
        comm: u64,
        chunk: usize,
        waiting: Waiting<'a>,
    ) -> Result<MpiTransport<'a>, TransportError> {
        let group = pmpi.comm_group(comm).map_err(failed("MPI_Comm_group"))?;
        let new = pmpi.comm_create_group(comm, group, MAKING).map_err(failed("MPI_Comm_create_group"));
        pmpi.group_free(group).map_err(failed("MPI_Group_free"))?;
        let comm = new?;
        pmpi.comm_set_errhandler(comm, pmpi.abi().errors_return)
            .map_err(failed("MPI_Comm_set_errhandler"))?;
        let rank = pmpi.comm_rank(comm).map_err(failed("MPI_Comm_rank"))?;
        let size = pmpi.comm_size(comm).map_err(failed("MPI_Comm_size"))?;
        // MPI's ranks and sizes are never below zero.
        let (rank, size) = (rank as u32, size as u32);
        Ok(MpiTransport { pmpi, comm, rank, size, chunk: chunk.clamp(1, CHUNK), waiting })
    }

    /// Collective over the communicator. Without it the communicator lives until the program ends; it is not done on
    /// drop, which may come after `MPI_Finalize`.
    pub fn close(self) -> Result<(), TransportError> {
        self.pmpi.comm_free(self.comm).map_err(failed("MPI_Comm_free"))
    }

    /// Waits until a request is complete: how many bytes were received.
    fn complete(&self, call: &'static str, request: u64, peer: u32) -> Result<usize, TransportError> {
        let mut request = request;
        let (mut waited, mut looked) = (Duration::ZERO, Duration::ZERO);
        let mut clock = Waited::default();
        let often = LOOK.max(FOR_EACH * self.size);
        loop {
            if let Some(bytes) = self.pmpi.test(&mut request).map_err(failed(call))? {
                return Ok(bytes);
            }
            if waited < BRIEFLY {
                thread::yield_now();
            } else {
                thread::sleep((waited / 8).min(NAP));
            }
            waited = clock.so_far();
            let is_time = waited - looked >= (waited / 8).min(SELDOM).max(often);
            let why = if waited >= self.waiting.most {
                TransportError::Late { rank: peer, seconds: waited.as_secs() }
            } else if is_time && (self.waiting.called_off)(waited) {
                TransportError::CalledOff
            } else {
                if is_time {
                    looked = waited;
                }
                continue;
            };
            self.pmpi.let_go(request);
            return Err(why);
        }
    }

    /// Where this fails MPI may still read the bytes.
    fn send_part(&self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
        // SAFETY: the bytes stay until the request is complete, and where that cannot be waited for, for good (`send`).
        let request = unsafe { self.pmpi.isend(bytes, mpi_rank(to), TAG, self.comm) };
        self.complete("MPI_Isend", request.map_err(failed("MPI_Isend"))?, to).map(drop)
    }

    /// Where this fails MPI may still write into the buffer.
    fn recv_part(&self, from: u32, buffer: &mut [u8]) -> Result<usize, TransportError> {
        // SAFETY: nobody touches it until the request is complete, and where that cannot be waited for, ever (`recv`).
        let request = unsafe { self.pmpi.irecv(buffer, mpi_rank(from), TAG, self.comm) };
        self.complete("MPI_Irecv", request.map_err(failed("MPI_Irecv"))?, from)
    }

    fn send_parts(&self, to: u32, message: &[u8]) -> Result<(), TransportError> {
        let (first, rest) = message.split_at(message.len().min(FIRST));
        self.send_part(to, first)?;
        rest.chunks(self.chunk).try_for_each(|part| self.send_part(to, part))
    }
}

fn failed(call: &'static str) -> impl Fn(Code) -> TransportError {
    move |code| TransportError::Mpi { call, code }
}

/// A rank that `peer` has let through, so it came from MPI's int.
fn mpi_rank(rank: u32) -> i32 {
    rank as i32
}

impl Transport for MpiTransport<'_> {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn wait_at_most(&mut self, most: Duration) {
        self.waiting.most = most;
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
        let to = peer(self.rank, self.size, to)?;
        let mut message = Vec::with_capacity(PREFIX + bytes.len());
        message.extend((bytes.len() as u64).to_le_bytes());
        message.extend(bytes);
        // In a program that is about to end: memory that MPI may still read is not given back.
        self.send_parts(to, &message).inspect_err(|_| std::mem::forget(message))
    }

    fn recv(&self, from: u32) -> Result<Vec<u8>, TransportError> {
        let from = peer(self.rank, self.size, from)?;
        let mut first = vec![0; FIRST];
        let got = match self.recv_part(from, &mut first) {
            Ok(got) => got,
            Err(error) => {
                // MPI may still write to it.
                std::mem::forget(first);
                return Err(error);
            }
        };
        let short = |expected, got| TransportError::Short { from, expected, got };
        let (Some((prefix, head)), true) = (first.split_first_chunk::<PREFIX>(), got >= PREFIX) else {
            return Err(short(PREFIX, got));
        };
        let length = u64::from_le_bytes(*prefix);
        let memory = || TransportError::Memory { from, length };
        let total = usize::try_from(length).map_err(|_| memory())?;
        let held = total.min(FIRST - PREFIX);
        if got != PREFIX + held {
            return Err(short(PREFIX + held, got));
        }
        let mut message = Vec::new();
        message.try_reserve_exact(total).map_err(|_| memory())?;
        message.extend(&head[..held]);
        message.resize(total, 0);
        for part in message[held..].chunks_mut(self.chunk) {
            match self.recv_part(from, part) {
                Ok(got) if got == part.len() => {}
                Ok(got) => return Err(short(part.len(), got)),
                Err(error) => {
                    std::mem::forget(message);
                    return Err(error);
                }
            }
        }
        Ok(message)
    }
}
