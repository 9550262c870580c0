//! The transport over MPI, on a communicator of its own.

use crate::pmpi::{Code, Pmpi};
use crate::transport::{Transport, TransportError, peer};

/// The first part of a message carries its length and as much of it as fits; most messages fit.
const FIRST: usize = 64 * 1024;
const PREFIX: usize = size_of::<u64>();
/// What is left over travels in parts of this size, since MPI counts in ints.
const CHUNK: usize = 1 << 30;
/// All parts use one tag: MPI keeps the order of messages between two ranks.
const TAG: i32 = 0;

/// Messages among all ranks of a communicator.
#[derive(Debug)]
pub struct MpiTransport<'a> {
    pmpi: &'a Pmpi,
    comm: u64,
    rank: u32,
    size: u32,
    chunk: usize,
}

impl<'a> MpiTransport<'a> {
    /// Collective over `comm`, an intra-communicator.
    ///
    /// The new communicator is made from the group rather than duplicated: a duplicate would run the program's own
    /// attribute copy functions. Errors on it are returned; the program's communicator and its handler stay as they are.
    pub fn new(pmpi: &'a Pmpi, comm: u64) -> Result<MpiTransport<'a>, TransportError> {
        MpiTransport::with_chunk(pmpi, comm, CHUNK)
    }

    /// As `new`, with parts of at most `chunk` bytes: for tests of long messages that are not long.
    #[doc(hidden)]
    pub fn with_chunk(pmpi: &'a Pmpi, comm: u64, chunk: usize) -> Result<MpiTransport<'a>, TransportError> {
        let group = pmpi.comm_group(comm).map_err(failed("MPI_Comm_group"))?;
        let new = pmpi.comm_create(comm, group).map_err(failed("MPI_Comm_create"));
        pmpi.group_free(group).map_err(failed("MPI_Group_free"))?;
        let comm = new?;
        pmpi.comm_set_errhandler(comm, pmpi.abi().errors_return)
            .map_err(failed("MPI_Comm_set_errhandler"))?;
        let rank = pmpi.comm_rank(comm).map_err(failed("MPI_Comm_rank"))?;
        let size = pmpi.comm_size(comm).map_err(failed("MPI_Comm_size"))?;
        // MPI's ranks and sizes are never below zero.
        Ok(MpiTransport { pmpi, comm, rank: rank as u32, size: size as u32, chunk: chunk.clamp(1, CHUNK) })
    }

    /// Collective over the communicator. Without it the communicator lives until the program ends; it is not done on
    /// drop, which may come after `MPI_Finalize`.
    pub fn close(self) -> Result<(), TransportError> {
        self.pmpi.comm_free(self.comm).map_err(failed("MPI_Comm_free"))
    }

    fn send_part(&self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
        self.pmpi.send(bytes, mpi_rank(to), TAG, self.comm).map_err(failed("MPI_Send"))
    }

    fn recv_part(&self, from: u32, buffer: &mut [u8]) -> Result<usize, TransportError> {
        self.pmpi.recv(buffer, mpi_rank(from), TAG, self.comm).map_err(failed("MPI_Recv"))
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

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), TransportError> {
        let to = peer(self.rank, self.size, to)?;
        let (head, rest) = bytes.split_at(bytes.len().min(FIRST - PREFIX));
        let mut first = Vec::with_capacity(PREFIX + head.len());
        first.extend((bytes.len() as u64).to_le_bytes());
        first.extend(head);
        self.send_part(to, &first)?;
        rest.chunks(self.chunk).try_for_each(|part| self.send_part(to, part))
    }

    fn recv(&self, from: u32) -> Result<Vec<u8>, TransportError> {
        let from = peer(self.rank, self.size, from)?;
        let mut first = vec![0; FIRST];
        let got = self.recv_part(from, &mut first)?;
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
            let got = self.recv_part(from, part)?;
            if got != part.len() {
                return Err(short(part.len(), got));
            }
        }
        Ok(message)
    }
}
