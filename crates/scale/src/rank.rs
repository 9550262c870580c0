//! One simulated process: its calls as a program writes them, encoded and folded as the preloaded library does.

use refrain_encode::{
    Before, CommInfo, Digest, Encoder, Folding, Journal, Record, Requests, Tape, Topology, hash_symbol,
};
use refrain_fold::bundle;
use refrain_fold::bundle::sites::{Frame, Module};
use refrain_model::{Function, function};
use refrain_tracefile::part::{self, End, Word};

use crate::grid::Grid;
use crate::memory::Memory;
use crate::process::{self, ANY_SOURCE, PROC_NULL, Process, STATUS_IGNORE, UNDEFINED};

/// The program's array of requests comes first in memory, then what calls need for the moment.
const REQUESTS: usize = Memory::BASE;
const MOST_REQUESTS: usize = 4096;
const SCRATCH: usize = REQUESTS + 8 * MOST_REQUESTS;
/// Where `MPI_Waitsome` puts its statuses: behind its count and the indices.
const SOME_STATUSES: usize = SCRATCH + 8 + 4 * MOST_REQUESTS;

macro_rules! functions {
    ($($field:ident $name:literal),* $(,)?) => {
        #[derive(Debug, Clone, Copy)]
        struct Functions { $($field: &'static Function),* }

        impl Functions {
            fn new() -> Functions {
                Functions { $($field: function($name).expect("the call table has every function named here")),* }
            }
        }
    };
}

functions! {
    init "MPI_Init", finalize "MPI_Finalize", comm_rank "MPI_Comm_rank", comm_size "MPI_Comm_size",
    send "MPI_Send", ssend "MPI_Ssend", recv "MPI_Recv", sendrecv "MPI_Sendrecv",
    isend "MPI_Isend", irecv "MPI_Irecv", wait "MPI_Wait", waitall "MPI_Waitall", waitsome "MPI_Waitsome",
    barrier "MPI_Barrier", bcast "MPI_Bcast", reduce "MPI_Reduce", allreduce "MPI_Allreduce",
    alltoall "MPI_Alltoall", alltoallv "MPI_Alltoallv", allgather "MPI_Allgather",
    dup "MPI_Comm_dup", split "MPI_Comm_split", free "MPI_Comm_free",
    cart_create "MPI_Cart_create", cart_coords "MPI_Cart_coords", cart_shift "MPI_Cart_shift",
    cart_rank "MPI_Cart_rank", dims_create "MPI_Dims_create",
    win_create "MPI_Win_create", win_free "MPI_Win_free", win_lock "MPI_Win_lock", win_unlock "MPI_Win_unlock",
    win_flush "MPI_Win_flush", put "MPI_Put", get "MPI_Get", accumulate "MPI_Accumulate",
}

/// What all ranks start from: reading the call table and the constants for each of a million would take longer than
/// everything else.
#[derive(Debug)]
pub struct Template {
    encoder: Encoder,
    functions: Functions,
    world: Comm,
    double: usize,
    sum: usize,
    comm_null: i64,
    request_null: i64,
    info_null: usize,
    win_null: i64,
    lock_shared: usize,
    /// How all ranks fold the order of their calls.
    pub folding: Folding,
}

impl Default for Template {
    fn default() -> Self {
        Template::new()
    }
}

impl Template {
    pub fn new() -> Template {
        let mut encoder = Encoder::new(&process::library());
        encoder.prepare(&Process::default());
        Template {
            encoder,
            functions: Functions::new(),
            world: Comm(process::predefined("MPI_COMM_WORLD")),
            double: process::predefined("MPI_DOUBLE"),
            sum: process::predefined("MPI_SUM"),
            comm_null: process::predefined("MPI_COMM_NULL") as i64,
            request_null: process::predefined("MPI_REQUEST_NULL") as i64,
            info_null: process::predefined("MPI_INFO_NULL"),
            win_null: process::predefined("MPI_WIN_NULL") as i64,
            lock_shared: process::predefined("MPI_LOCK_SHARED"),
            folding: Folding::default(),
        }
    }
}

/// A communicator's handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comm(usize);

/// A window's handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Win(usize);

/// What a one-sided call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Put,
    Get,
    Accumulate,
}

/// Who a message goes to or comes from. A neighbour that is not there is `Null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Rank(u32),
    Any,
    Null,
}

impl From<u32> for Peer {
    fn from(rank: u32) -> Peer {
        Peer::Rank(rank)
    }
}

impl From<Option<u32>> for Peer {
    fn from(rank: Option<u32>) -> Peer {
        rank.map_or(Peer::Null, Peer::Rank)
    }
}

impl Peer {
    fn number(self) -> i32 {
        match self {
            Peer::Rank(rank) => rank as i32,
            Peer::Any => ANY_SOURCE,
            Peer::Null => PROC_NULL,
        }
    }

    fn word(self) -> usize {
        word(self.number())
    }
}

/// So many doubles at a place in a block of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    pub block: u32,
    pub offset: u32,
    pub count: i32,
}

impl Data {
    pub fn new(block: u32, offset: u32, count: i32) -> Data {
        Data { block, offset, count }
    }

    fn address(self) -> usize {
        process::heap(self.block, self.offset)
    }
}

/// An `int` in a register.
fn word(value: i32) -> usize {
    value as u32 as usize
}

/// What a request was started for.
#[derive(Debug, Clone, Copy)]
enum Started {
    Send,
    Receive { source: i32, tag: i32, bytes: i64 },
}

impl Started {
    /// A status of a send says nothing: what was there before stays.
    fn tell(self, memory: &mut Memory, status: usize) {
        if let Started::Receive { source, tag, bytes } = self {
            process::write_status(memory, status, source, tag, bytes);
        }
    }
}

/// What is left of a rank.
#[derive(Debug)]
pub struct Finished {
    pub bundle: bundle::Bundle,
    pub calls: u64,
    /// Of the calls as they were made; only where [`Rank::with_digest`] asked for it.
    pub digest: Option<u64>,
}

pub struct Rank<'a> {
    template: &'a Template,
    pub rank: u32,
    pub size: u32,
    process: Process,
    encoder: Encoder,
    requests: Requests,
    before: Before,
    record: Record,
    tape: Tape,
    pending: usize,
    /// By their place in the program's array of requests.
    started: Vec<Started>,
    handles: usize,
    calls: u64,
    site: u64,
    digest: Option<Digest>,
    /// What a part has of its calls, and how many bytes of that.
    journal: Option<(Journal, Vec<u8>, usize)>,
}

/// A process that ended early leaves a journal of so many bytes at first.
const JOURNAL: usize = 1 << 16;

impl<'a> Rank<'a> {
    /// After `MPI_Init`.
    pub fn new(template: &'a Template, rank: u32, size: u32) -> Rank<'a> {
        let mut process = Process { rank, ..Process::default() };
        // The world's members are never recorded, so they need not be listed: a million ranks times four megabytes.
        let world = info(rank, size, Vec::new());
        process.comms.insert(template.world.0 as u64, (world, Topology::default()));
        let alone = info(0, 1, vec![rank as i32]);
        process.comms.insert(process::predefined("MPI_COMM_SELF") as u64, (alone, Topology::default()));
        let mut encoder = template.encoder.clone();
        encoder.start(&mut process);
        let mut rank = Rank {
            template,
            rank,
            size,
            process,
            encoder,
            requests: Requests::default(),
            before: Before::default(),
            record: Record::default(),
            tape: Tape::new(template.folding),
            pending: 0,
            started: Vec::new(),
            handles: 0x5000_0000,
            calls: 0,
            site: 0,
            digest: None,
            journal: None,
        };
        rank.call(template.functions.init, &[0, 0], |_| {});
        rank
    }

    /// The same, with a digest of our own beside the recorder's: every call is hashed once more.
    pub fn with_digest(template: &'a Template, rank: u32, size: u32) -> Rank<'a> {
        let mut rank = Rank::new(template, rank, size);
        let mut digest = Digest::default();
        // The one call made so far.
        feed(&mut digest, &rank.record);
        rank.digest = Some(digest);
        rank
    }

    /// The same, with a journal of its calls, as a process keeps it that may end early.
    pub fn with_journal(template: &'a Template, rank: u32, size: u32) -> Rank<'a> {
        let mut rank = Rank::new(template, rank, size);
        rank.journal = Some((Journal::default(), vec![0; JOURNAL], 0));
        // The one call made so far.
        rank.keep(0);
        rank
    }

    fn keep(&mut self, symbol: u32) {
        let Rank { journal: Some((journal, bytes, used)), tape, record, .. } = self else { return };
        loop {
            match journal.write(&mut bytes[*used..], tape, symbol, &record.values, 0) {
                Some(more) => break *used += more,
                None => bytes.resize(bytes.len() * 2, 0),
            }
        }
    }

    /// The part that is left of it if it is killed now: one that has a journal.
    pub fn part(&self) -> Vec<u8> {
        let (journal, length) =
            self.journal.as_ref().map_or((&[][..], 0), |(_, bytes, used)| (&bytes[..], *used));
        let words = [
            (Word::Rank, u64::from(self.rank) + 1),
            (Word::Size, self.size.into()),
            (Word::Pid, u64::from(self.rank) + 1),
            (Word::Started, 1),
            (Word::Flags, part::SPLIT),
            (Word::Tail, length as u64),
            (Word::End, End::Signal as u64),
            (Word::EndCode, 9),
        ];
        let mut bytes =
            part::header(&words, "version 0.1.0\ncommand ./simulated\nhost nowhere\nrun simulated\n");
        bytes.extend_from_slice(&journal[..length]);
        bytes
    }

    /// `MPI_Finalize`, and what was recorded.
    pub fn finish(mut self) -> Result<Finished, bundle::Error> {
        self.call(self.template.functions.finalize, &[], |_| {});
        let bundle = Tape::bundle((self.rank, self.size), [(0, &mut self.tape)], |ticks| ticks)?;
        Ok(Finished { bundle, calls: self.calls, digest: self.digest.map(Digest::get) })
    }

    /// The calls from now on are made at this place of the program.
    pub fn at(&mut self, offset: u64) {
        let program = Module { path: "simulated".into(), build_id: Box::default() };
        let frame = Frame { module: program.key(), offset };
        self.site = self.tape.note_site(&[frame], |_| Some(&program));
    }

    pub fn world(&self) -> Comm {
        self.template.world
    }

    fn call(&mut self, f: &'static Function, args: &[usize], mpi: impl FnOnce(&mut Memory)) {
        self.encoder.before(&mut self.process, &mut self.requests, f, args, &mut self.before);
        mpi(&mut self.process.memory);
        let Rank { encoder, process, requests, before, record, .. } = self;
        encoder.after(process, requests, f, args, 0, before, record);
        record.site = self.site;
        // Untimed: what a call takes here says nothing about MPI.
        let symbol = self.tape.push(&self.record, 0);
        self.keep(symbol);
        self.calls += 1;
        if let Some(digest) = &mut self.digest {
            feed(digest, &self.record);
        }
    }

    fn of(&self, comm: Comm) -> (u32, u32) {
        self.process
            .comms
            .get(&(comm.0 as u64))
            .map_or((0, 0), |(info, _)| (info.rank as u32, info.size as u32))
    }

    /// Writes arrays behind one another into scratch memory; their addresses.
    fn place<const N: usize>(&mut self, arrays: [&[i32]; N]) -> [usize; N] {
        let mut next = SCRATCH;
        arrays.map(|values| {
            let at = next;
            self.process.memory.write_ints(at, values);
            next += (4 * values.len()).next_multiple_of(8);
            at
        })
    }

    pub fn comm_rank(&mut self, comm: Comm) -> u32 {
        let (rank, _) = self.of(comm);
        self.call(self.template.functions.comm_rank, &[comm.0, SCRATCH], |m| {
            m.write_int(SCRATCH, 0, rank as i32)
        });
        rank
    }

    pub fn comm_size(&mut self, comm: Comm) -> u32 {
        let (_, size) = self.of(comm);
        self.call(self.template.functions.comm_size, &[comm.0, SCRATCH], |m| {
            m.write_int(SCRATCH, 0, size as i32)
        });
        size
    }

    pub fn send(&mut self, data: Data, to: impl Into<Peer>, tag: i32, comm: Comm) {
        let f = self.template.functions.send;
        self.send_by(f, data, to.into(), tag, comm);
    }

    pub fn ssend(&mut self, data: Data, to: impl Into<Peer>, tag: i32, comm: Comm) {
        let f = self.template.functions.ssend;
        self.send_by(f, data, to.into(), tag, comm);
    }

    fn send_by(&mut self, f: &'static Function, data: Data, to: Peer, tag: i32, comm: Comm) {
        let double = self.template.double;
        self.call(f, &[data.address(), word(data.count), double, to.word(), word(tag), comm.0], |_| {});
    }

    /// With `MPI_STATUS_IGNORE`.
    pub fn recv(&mut self, data: Data, from: impl Into<Peer>, tag: i32, comm: Comm) {
        let double = self.template.double;
        let args =
            [data.address(), word(data.count), double, from.into().word(), word(tag), comm.0, STATUS_IGNORE];
        self.call(self.template.functions.recv, &args, |_| {});
    }

    /// With a status.
    pub fn recv_with_status(&mut self, data: Data, from: u32, tag: i32, comm: Comm) {
        let double = self.template.double;
        let args =
            [data.address(), word(data.count), double, Peer::Rank(from).word(), word(tag), comm.0, SCRATCH];
        self.call(self.template.functions.recv, &args, |m| {
            process::write_status(m, SCRATCH, from as i32, tag, 8 * i64::from(data.count));
        });
    }

    /// From `MPI_ANY_SOURCE`; the message comes from `source`.
    pub fn recv_any(&mut self, data: Data, source: u32, tag: i32, comm: Comm) {
        let double = self.template.double;
        let args = [data.address(), word(data.count), double, Peer::Any.word(), word(tag), comm.0, SCRATCH];
        self.call(self.template.functions.recv, &args, |m| {
            process::write_status(m, SCRATCH, source as i32, tag, 8 * i64::from(data.count));
        });
    }

    pub fn sendrecv(
        &mut self,
        out: Data,
        to: impl Into<Peer>,
        into: Data,
        from: impl Into<Peer>,
        tag: i32,
        comm: Comm,
    ) {
        let (double, tag) = (self.template.double, word(tag));
        let (to, from) = (to.into().word(), from.into().word());
        let sent = [out.address(), word(out.count), double, to, tag];
        let received = [into.address(), word(into.count), double, from, tag, comm.0, STATUS_IGNORE];
        let args: Vec<usize> = sent.into_iter().chain(received).collect();
        self.call(self.template.functions.sendrecv, &args, |_| {});
    }

    pub fn isend(&mut self, data: Data, to: impl Into<Peer>, tag: i32, comm: Comm) {
        let f = self.template.functions.isend;
        self.start(f, data, to.into(), tag, comm);
    }

    pub fn irecv(&mut self, data: Data, from: impl Into<Peer>, tag: i32, comm: Comm) {
        let f = self.template.functions.irecv;
        self.start(f, data, from.into(), tag, comm);
    }

    /// `&requests[pending++]` is where the program lets the handle be stored.
    fn start(&mut self, f: &'static Function, data: Data, peer: Peer, tag: i32, comm: Comm) {
        let slot = self.pending;
        self.pending += 1;
        self.start_in(slot, f, data, peer, tag, comm);
    }

    /// `&requests[slot]` is; the program waits for it by its place.
    pub fn isend_in(&mut self, slot: usize, data: Data, to: u32, tag: i32, comm: Comm) {
        let f = self.template.functions.isend;
        self.start_in(slot, f, data, to.into(), tag, comm);
    }

    pub fn irecv_in(&mut self, slot: usize, data: Data, from: u32, tag: i32, comm: Comm) {
        let f = self.template.functions.irecv;
        self.start_in(slot, f, data, from.into(), tag, comm);
    }

    fn start_in(&mut self, slot: usize, f: &'static Function, data: Data, peer: Peer, tag: i32, comm: Comm) {
        assert!(slot < MOST_REQUESTS, "a pattern waits for its requests now and then");
        if self.started.len() <= slot {
            self.started.resize(slot + 1, Started::Send);
        }
        self.started[slot] = if f.name == "MPI_Irecv" {
            Started::Receive { source: peer.number(), tag, bytes: 8 * i64::from(data.count) }
        } else {
            Started::Send
        };
        let double = self.template.double;
        let (at, count) = (REQUESTS + 8 * slot, word(data.count));
        let args = [data.address(), count, double, peer.word(), word(tag), comm.0, at];
        self.call(f, &args, |m| m.write_wide(at, 0, 0x6000_0000 + slot as i64));
    }

    /// For one request, with a status.
    pub fn wait(&mut self, slot: usize) {
        let (at, null, started) = (REQUESTS + 8 * slot, self.template.request_null, self.started[slot]);
        self.call(self.template.functions.wait, &[at, SCRATCH], |m| {
            m.write_wide(at, 0, null);
            started.tell(m, SCRATCH);
        });
    }

    /// For everything started since the last time, one request after the other, each with a status.
    pub fn wait_each(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        (0..pending).for_each(|slot| self.wait(slot));
    }

    /// For everything started since the last time, with `MPI_STATUSES_IGNORE`.
    pub fn waitall(&mut self) {
        let (pending, null) = (std::mem::take(&mut self.pending), self.template.request_null);
        self.call(self.template.functions.waitall, &[pending, REQUESTS, STATUS_IGNORE], |m| {
            (0..pending).for_each(|slot| m.write_wide(REQUESTS, slot, null));
        });
    }

    /// The same with statuses.
    pub fn waitall_told(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.waitall_first(pending);
    }

    /// For some of the array from `first` on, with `MPI_STATUSES_IGNORE`.
    pub fn waitall_range(&mut self, first: usize, count: usize) {
        let (at, null) = (REQUESTS + 8 * first, self.template.request_null);
        self.call(self.template.functions.waitall, &[count, at, STATUS_IGNORE], |m| {
            (0..count).for_each(|slot| m.write_wide(at, slot, null));
        });
    }

    /// For the first requests of the array, with statuses.
    pub fn waitall_first(&mut self, count: usize) {
        let null = self.template.request_null;
        let started = self.started[..count].to_vec();
        self.call(self.template.functions.waitall, &[count, REQUESTS, SCRATCH], |m| {
            for (slot, started) in started.iter().enumerate() {
                m.write_wide(REQUESTS, slot, null);
                started.tell(m, SCRATCH + slot * process::STATUS_SIZE);
            }
        });
    }

    /// Calls of `MPI_Waitsome` until everything started since the last time is done. `order` names the requests in the order
    /// in which they are, `at_once` how many a call finds done, at least one.
    pub fn wait_some(&mut self, order: &[usize], mut at_once: impl FnMut() -> usize) {
        let (pending, null) = (std::mem::take(&mut self.pending), self.template.request_null);
        let args = [pending, REQUESTS, SCRATCH, SCRATCH + 8, SOME_STATUSES];
        let mut left = order;
        while !left.is_empty() {
            let (now, after) = left.split_at(at_once().clamp(1, left.len()));
            let mut now = now.to_vec();
            now.sort_unstable();
            let started: Vec<Started> = now.iter().map(|&slot| self.started[slot]).collect();
            self.call(self.template.functions.waitsome, &args, |m| {
                m.write_int(SCRATCH, 0, now.len() as i32);
                for (place, (&slot, started)) in now.iter().zip(&started).enumerate() {
                    m.write_wide(REQUESTS, slot, null);
                    m.write_int(SCRATCH + 8, place, slot as i32);
                    started.tell(m, SOME_STATUSES + place * process::STATUS_SIZE);
                }
            });
            left = after;
        }
    }

    pub fn barrier(&mut self, comm: Comm) {
        self.call(self.template.functions.barrier, &[comm.0], |_| {});
    }

    pub fn bcast(&mut self, data: Data, root: u32, comm: Comm) {
        let args = [data.address(), word(data.count), self.template.double, root as usize, comm.0];
        self.call(self.template.functions.bcast, &args, |_| {});
    }

    pub fn reduce(&mut self, out: Data, into: Data, root: u32, comm: Comm) {
        let Template { double, sum, .. } = *self.template;
        let args = [out.address(), into.address(), word(out.count), double, sum, root as usize, comm.0];
        self.call(self.template.functions.reduce, &args, |_| {});
    }

    pub fn allreduce(&mut self, out: Data, into: Data, comm: Comm) {
        let Template { double, sum, .. } = *self.template;
        let args = [out.address(), into.address(), word(out.count), double, sum, comm.0];
        self.call(self.template.functions.allreduce, &args, |_| {});
    }

    /// The same number of doubles to and from each.
    pub fn alltoall(&mut self, out: Data, into: Data, comm: Comm) {
        let double = self.template.double;
        let args = [out.address(), word(out.count), double, into.address(), word(into.count), double, comm.0];
        self.call(self.template.functions.alltoall, &args, |_| {});
    }

    pub fn allgather(&mut self, out: Data, into: Data, comm: Comm) {
        let double = self.template.double;
        let args = [out.address(), word(out.count), double, into.address(), word(into.count), double, comm.0];
        self.call(self.template.functions.allgather, &args, |_| {});
    }

    /// Packed: every displacement is the sum of the counts before it.
    pub fn alltoallv(&mut self, out: Data, sent: &[i32], into: Data, received: &[i32], comm: Comm) {
        let double = self.template.double;
        let (out_at, in_at) = (packed(sent), packed(received));
        let [s, sd, r, rd] = self.place([sent, &out_at, received, &in_at]);
        let args = [out.address(), s, sd, double, into.address(), r, rd, double, comm.0];
        self.call(self.template.functions.alltoallv, &args, |_| {});
    }

    fn new_comm(&mut self, info: CommInfo, topology: Topology) -> usize {
        self.handles += 1;
        self.process.comms.insert(self.handles as u64, (info, topology));
        self.handles
    }

    pub fn dup(&mut self, comm: Comm) -> Comm {
        let (info, topology) = self.process.comms.get(&(comm.0 as u64)).cloned().unwrap_or_default();
        let new = self.new_comm(info, topology);
        self.call(self.template.functions.dup, &[comm.0, SCRATCH], |m| m.write_wide(SCRATCH, 0, new as i64));
        Comm(new)
    }

    /// `members`: who gives the same colour, in the order of their keys, as ranks of the world, and this rank among
    /// them. Without a colour there is no new communicator.
    pub fn split(&mut self, comm: Comm, colour: Option<i32>, key: i32, members: Vec<u32>) -> Option<Comm> {
        let new = colour.map(|_| {
            let place = members.iter().position(|&member| member == self.rank).unwrap_or(0);
            let (size, all) = (members.len() as u32, members.len() == self.size as usize);
            let same = all && members.iter().zip(0..).all(|(&member, place)| member == place);
            // As the world's own list: see `new`.
            let world = if same { Vec::new() } else { members.into_iter().map(|m| m as i32).collect() };
            self.new_comm(info(place as u32, size, world), Topology::default())
        });
        let handle = new.map_or(self.template.comm_null, |new| new as i64);
        let args = [comm.0, word(colour.unwrap_or(UNDEFINED)), word(key), SCRATCH];
        self.call(self.template.functions.split, &args, |m| m.write_wide(SCRATCH, 0, handle));
        new.map(Comm)
    }

    pub fn free(&mut self, comm: Comm) {
        let null = self.template.comm_null;
        self.process.memory.write_wide(SCRATCH, 0, comm.0 as i64);
        self.call(self.template.functions.free, &[SCRATCH], |m| m.write_wide(SCRATCH, 0, null));
        self.process.comms.remove(&(comm.0 as u64));
    }

    /// `grid` is what the library answers.
    pub fn dims_create(&mut self, grid: &Grid) {
        let dims: Vec<i32> = grid.dims.iter().map(|&dim| dim as i32).collect();
        let [at] = self.place([&vec![0; dims.len()]]);
        let args = [self.size as usize, dims.len(), at];
        self.call(self.template.functions.dims_create, &args, |m| m.write_ints(at, &dims));
    }

    /// Of all ranks, in units of a byte.
    pub fn win_create(&mut self, memory: Data) -> Win {
        self.handles += 1;
        let (new, bytes) = (self.handles, 8 * memory.count as usize);
        let args = [memory.address(), bytes, 1, self.template.info_null, self.template.world.0, SCRATCH];
        self.call(self.template.functions.win_create, &args, |m| m.write_wide(SCRATCH, 0, new as i64));
        Win(new)
    }

    pub fn win_free(&mut self, win: Win) {
        let null = self.template.win_null;
        self.process.memory.write_wide(SCRATCH, 0, win.0 as i64);
        self.call(self.template.functions.win_free, &[SCRATCH], |m| m.write_wide(SCRATCH, 0, null));
    }

    pub fn win_lock_shared(&mut self, target: u32, win: Win) {
        let args = [self.template.lock_shared, target as usize, 0, win.0];
        self.call(self.template.functions.win_lock, &args, |_| {});
    }

    pub fn win_unlock(&mut self, target: u32, win: Win) {
        self.call(self.template.functions.win_unlock, &[target as usize, win.0], |_| {});
    }

    pub fn win_flush(&mut self, target: u32, win: Win) {
        self.call(self.template.functions.win_flush, &[target as usize, win.0], |_| {});
    }

    /// At the beginning of the target's window.
    pub fn access(&mut self, access: Access, data: Data, target: u32, win: Win) {
        let Template { double, sum, functions, .. } = *self.template;
        let count = word(data.count);
        let args = [data.address(), count, double, target as usize, 0, count, double];
        match access {
            Access::Put => self.call(functions.put, &[&args[..], &[win.0]].concat(), |_| {}),
            Access::Get => self.call(functions.get, &[&args[..], &[win.0]].concat(), |_| {}),
            Access::Accumulate => {
                self.call(functions.accumulate, &[&args[..], &[sum, win.0]].concat(), |_| {})
            }
        }
    }

    /// All of `comm` on a grid of the same size, without reordering.
    pub fn cart_create(&mut self, comm: Comm, grid: &Grid) -> Comm {
        let (info, _) = self.process.comms.get(&(comm.0 as u64)).cloned().unwrap_or_default();
        let n = grid.dims.len();
        let new = self.new_comm(info, Topology { dims: n, indegree: 2 * n, outdegree: 2 * n });
        let dims: Vec<i32> = grid.dims.iter().map(|&dim| dim as i32).collect();
        let [dims, periods, out] = self.place([&dims, &vec![i32::from(grid.periodic); n], &[0, 0]]);
        self.call(self.template.functions.cart_create, &[comm.0, n, dims, periods, 0, out], |m| {
            m.write_wide(out, 0, new as i64);
        });
        Comm(new)
    }

    pub fn cart_coords(&mut self, comm: Comm, grid: &Grid, rank: u32) -> Vec<u32> {
        let coords = grid.coords(rank);
        let out: Vec<i32> = coords.iter().map(|&at| at as i32).collect();
        let args = [comm.0, rank as usize, coords.len(), SCRATCH];
        self.call(self.template.functions.cart_coords, &args, |m| m.write_ints(SCRATCH, &out));
        coords
    }

    pub fn cart_rank(&mut self, comm: Comm, grid: &Grid, coords: &[u32]) -> u32 {
        let rank = grid.rank(coords);
        let given: Vec<i32> = coords.iter().map(|&at| at as i32).collect();
        let [given, out] = self.place([&given, &[0]]);
        self.call(self.template.functions.cart_rank, &[comm.0, given, out], |m| {
            m.write_int(out, 0, rank as i32)
        });
        rank
    }

    /// Source and destination of a shift by one along a dimension.
    pub fn cart_shift(&mut self, comm: Comm, grid: &Grid, dimension: usize) -> (Peer, Peer) {
        let (rank, _) = self.of(comm);
        let step = |by: i32| {
            let by: Vec<i32> = (0..grid.dims.len()).map(|d| if d == dimension { by } else { 0 }).collect();
            Peer::from(grid.neighbour(rank, &by))
        };
        let (source, dest) = (step(-1), step(1));
        let args = [comm.0, dimension, 1, SCRATCH, SCRATCH + 4];
        self.call(self.template.functions.cart_shift, &args, |m| {
            m.write_ints(SCRATCH, &[source.number(), dest.number()]);
        });
        (source, dest)
    }
}

fn info(rank: u32, size: u32, world: Vec<i32>) -> CommInfo {
    CommInfo { rank: rank as i32, size: size as i32, remote_size: None, world, remote_world: Vec::new() }
}

fn feed(digest: &mut Digest, record: &Record) {
    digest.symbol(hash_symbol(&record.symbol, record.site));
    record.values.iter().for_each(|&(_, value)| digest.value(value));
}

fn packed(counts: &[i32]) -> Vec<i32> {
    let mut next = 0i32;
    counts
        .iter()
        .map(|count| {
            let at = next;
            next = next.wrapping_add(*count);
            at
        })
        .collect()
}
