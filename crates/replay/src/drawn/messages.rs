//! Messages as they are really sent and received: all on one communicator of the replay's own, between ranks of the world,
//! with one tag. So communicators of the program may come and go, and the order between two ranks decides what meets what.
//!
//! A call of the program that receives is made with `MPI_PROC_NULL`, so that there is such a call, and requests and statuses
//! that can be used; the message itself is received beside it.

use std::collections::{HashMap, VecDeque};
use std::sync::MutexGuard;
use std::time::Duration;

use refrain_encode::Message;
use refrain_model::{Call, Value};

use super::clock::Time;
use super::context::Expected;
use super::owed::Owed;
use super::steps::{argument, is_matched_receive, is_probe};
use crate::ahead::{completed, started};
use crate::issue::Process;

const TAG: usize = 0;

/// Messages of more bytes than this are received in blocks of a mebibyte.
const LARGE: u64 = 1 << 30;
const BLOCK: u64 = 1 << 20;

/// Ranks that compute look after messages so often: what a rank receives beside its calls may keep another one waiting.
pub const LOOK: Duration = Duration::from_micros(200);

/// What is to be done with the next call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plan {
    /// Whom it sends to, in the world.
    pub to: Option<u32>,
    /// So many messages it receives.
    pub receives: u64,
    /// Messages that are sent before may be waited for.
    pub before: Option<Time>,
    /// It may wait until something is received that was sent.
    pub sends_wait: bool,
    /// The request that it makes.
    pub request: Option<u32>,
    /// Nothing may be left after it.
    pub last: bool,
}

/// The messages of a rank.
#[derive(Debug, Default)]
pub struct Messages {
    comm: u64,
    block: u64,
    owed: Owed<Request>,
    to_post: Vec<Expected>,
    plan: Plan,
    /// Where messages are put: nobody looks at them, so they may lie on each other.
    rooms: Vec<Box<[u64]>>,
    /// What is on its way, with the program's request for it.
    sends: VecDeque<(Option<u32>, Request)>,
    /// What persistent requests send.
    persistent: HashMap<u32, Send>,
}

/// A message that is sent: buffer, count, datatype, destination.
#[derive(Debug, Clone, Copy)]
struct Send {
    function: &'static str,
    words: [usize; 4],
}

/// Of so many sends is looked each time whether they are over.
const LOOKS: usize = 4;

/// Where a request lies.
#[derive(Debug, Default)]
struct Request(Box<u64>);

impl Request {
    fn place(&mut self) -> usize {
        std::ptr::from_mut(&mut *self.0) as usize
    }

    fn wait(mut self, process: &Process) {
        process.real_call("MPI_Wait", &[self.place(), process.abi.status_ignore]);
    }

    /// Whether it is over.
    fn is_done(&mut self, process: &Process) -> bool {
        let mut flag = 0i32;
        let flag_at = std::ptr::from_mut(&mut flag) as usize;
        process.real_call("MPI_Test", &[self.place(), flag_at, process.abi.status_ignore]);
        flag != 0
    }
}

impl Messages {
    /// The next call is made so, and these messages may come while it is made.
    pub fn plan(&mut self, plan: Plan, coming: impl Iterator<Item = Expected>) {
        self.plan = plan;
        self.to_post.extend(coming);
    }

    /// A communicator with all ranks, and who of them sends something to this one. `to`: whom this one sends to.
    pub fn negotiate(process: &Process, to: &[bool]) -> Result<(Messages, Vec<bool>), String> {
        let abi = &process.abi;
        let mut messages = Messages::default();
        let place = |word: &mut u64| std::ptr::from_mut(word) as usize;
        let mut failed =
            process.real_call("MPI_Comm_dup", &[abi.comm_world as usize, place(&mut messages.comm)]) as i32;
        let packed = abi.handle("MPI_PACKED").unwrap_or(abi.byte) as usize;
        failed |= process
            .real_call("MPI_Type_contiguous", &[BLOCK as usize, packed, place(&mut messages.block)])
            as i32;
        failed |= process.real_call("MPI_Type_commit", &[place(&mut messages.block)]) as i32;
        let sent: Vec<u8> = to.iter().map(|to| u8::from(*to)).collect();
        let mut comes = vec![0u8; sent.len()];
        let (byte, comm) = (abi.byte as usize, messages.comm as usize);
        let words = [sent.as_ptr() as usize, 1, byte, comes.as_mut_ptr() as usize, 1, byte, comm];
        failed |= process.real_call("MPI_Alltoall", &words) as i32;
        if failed != 0 {
            return Err("the ranks could not tell each other whom they send to".to_owned());
        }
        Ok((messages, comes.iter().map(|comes| *comes != 0).collect()))
    }

    fn room(&mut self, bytes: u64) -> usize {
        let words = usize::try_from(bytes.div_ceil(8)).unwrap_or(usize::MAX).max(1);
        if self.rooms.last().is_none_or(|room| room.len() < words) {
            // Those before stay: messages may still come there.
            self.rooms.push(vec![0u64; words.next_power_of_two()].into_boxed_slice());
        }
        self.rooms.last_mut().map_or(0, |room| room.as_mut_ptr() as usize)
    }

    /// Receives for all messages that may come by now.
    fn post(&mut self, process: &Process) {
        for Expected { from, bytes, time } in std::mem::take(&mut self.to_post) {
            let packed = process.abi.handle("MPI_PACKED").unwrap_or(process.abi.byte);
            let (count, datatype) =
                if bytes > LARGE { (bytes.div_ceil(BLOCK), self.block) } else { (bytes, packed) };
            let room = self.room(if bytes > LARGE { count * BLOCK } else { bytes });
            let mut request = Request::default();
            let words = [
                room,
                count as usize,
                datatype as usize,
                from as usize,
                TAG,
                self.comm as usize,
                request.place(),
            ];
            process.real_call("MPI_Irecv", &words);
            self.owed.expect(time, request);
        }
    }

    /// Sends something.
    fn begin(&self, process: &Process, send: Send) -> (usize, Request) {
        let [buffer, count, datatype, to] = send.words;
        let mut request = Request::default();
        let words = [buffer, count, datatype, to, TAG, self.comm as usize, request.place()];
        (process.real_call(send.function, &words), request)
    }

    /// A persistent request is started.
    fn start(&mut self, process: &Process, id: u32) {
        if let Some(send) = self.persistent.get(&id).copied() {
            let (_, request) = self.begin(process, send);
            self.sends.push_back((Some(id), request));
        }
    }

    /// What this request of the program sends has been received, if that may be waited for.
    fn is_over(&mut self, process: &Process, id: u32) {
        while let Some(at) = self.sends.iter().position(|(of, _)| *of == Some(id)) {
            match self.plan.sends_wait {
                true => self.sends.remove(at).into_iter().for_each(|(_, request)| request.wait(process)),
                false => self.sends[at].0 = None,
            }
        }
    }

    /// Waits for what the call receives, as far as that may be waited for.
    fn take(&mut self, process: &Process) {
        let Plan { receives, before, last, .. } = self.plan;
        self.plan.receives = 0;
        self.owed.receive(receives);
        if let Some(before) = before {
            while let Some(request) = self.owed.due(before) {
                request.wait(process);
            }
        }
        while self.owed.due_if(|request| request.is_done(process)).is_some() {}
        for _ in 0..LOOKS {
            if !self.sends.front_mut().is_some_and(|(_, request)| request.is_done(process)) {
                break;
            }
            self.sends.pop_front();
        }
        if last {
            while let Some(request) = self.owed.next() {
                request.wait(process);
            }
            self.sends.drain(..).for_each(|(_, request)| request.wait(process));
            for (free, handle) in [("MPI_Type_free", &mut self.block), ("MPI_Comm_free", &mut self.comm)] {
                process.real_call(free, &[std::ptr::from_mut(handle) as usize]);
                *handle = 0;
            }
        }
    }
}

/// What sends in the place of a function, and goes on meanwhile. Some need what only the program's own receives could give
/// them, such as a receive that is there already, or room for a copy.
fn sender(name: &str) -> Option<&'static str> {
    Some(match name {
        "MPI_Send" | "MPI_Rsend" | "MPI_Bsend" | "MPI_Isend" | "MPI_Irsend" | "MPI_Ibsend" => "MPI_Isend",
        "MPI_Send_c" | "MPI_Rsend_c" | "MPI_Bsend_c" | "MPI_Isend_c" | "MPI_Irsend_c" | "MPI_Ibsend_c" => {
            "MPI_Isend_c"
        }
        "MPI_Sendrecv" | "MPI_Sendrecv_replace" | "MPI_Isendrecv" | "MPI_Isendrecv_replace" => "MPI_Isend",
        "MPI_Sendrecv_c" | "MPI_Sendrecv_replace_c" | "MPI_Isendrecv_c" | "MPI_Isendrecv_replace_c" => {
            "MPI_Isend_c"
        }
        "MPI_Ssend" | "MPI_Issend" | "MPI_Ssend_init" => "MPI_Issend",
        "MPI_Ssend_c" | "MPI_Issend_c" | "MPI_Ssend_init_c" => "MPI_Issend_c",
        "MPI_Send_init" | "MPI_Bsend_init" | "MPI_Rsend_init" => "MPI_Isend",
        "MPI_Send_init_c" | "MPI_Bsend_init_c" | "MPI_Rsend_init_c" => "MPI_Isend_c",
        _ => return None,
    })
}

impl Process {
    fn messages(&self) -> Option<MutexGuard<'_, Messages>> {
        let messages = self.drawn.as_ref()?;
        Some(messages.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// The library gets on with messages, as far as it needs to be called for that.
    pub(crate) fn let_messages_come(&self) {
        let Some(comm) = self.messages().map(|messages| messages.comm).filter(|comm| *comm != 0) else {
            return;
        };
        let mut flag = 0i32;
        let flag = std::ptr::from_mut(&mut flag) as usize;
        let source = self.abi.any_source as usize;
        // Nobody sends with this tag.
        self.real_call("MPI_Iprobe", &[source, TAG + 1, comm as usize, flag, self.abi.status_ignore]);
    }

    /// Does what is left of a call where messages are drawn; `None`: it is made as any other.
    pub(crate) fn perform_drawn(&self, call: &Call, words: &[usize]) -> Option<usize> {
        let mut messages = self.messages()?;
        messages.post(self);
        // A call that failed has sent and received nothing.
        if let (Value::Int(code), true) = (&call.result, call.function.families.contains(&"p2p"))
            && *code != 0
        {
            return Some(*code as usize);
        }
        let word = |name: &str| call.function.index_of(name).map_or(0, |at| words[at]);
        let name = call.function.name;
        if let Some(function) = sender(name) {
            return Some(self.send(&mut messages, call, words, function));
        }
        if name == "MPI_Cancel" {
            return Some(0);
        }
        let expected = Message::of(call.function).is_some_and(|message| message.expected.is_some());
        if expected {
            messages.take(self);
            let mut words = words.to_vec();
            if let Some(at) = call.function.index_of("source") {
                words[at] = self.abi.proc_null as usize;
            }
            let (tag, comm, status) = (word("tag"), word("comm"), word("status"));
            let nobody = self.abi.proc_null as usize;
            if !is_probe(call.function) {
                return Some(self.real_call(name, &words));
            }
            if let Some(flag) = call.function.index_of("flag") {
                // SAFETY: a cell of ours, for an output that is an int.
                unsafe { (words[flag] as *mut i32).write_unaligned(1) };
            }
            return Some(match call.function.index_of("message") {
                Some(message) => self.real_call("MPI_Mprobe", &[nobody, tag, comm, words[message], status]),
                None => self.real_call("MPI_Probe", &[nobody, tag, comm, status]),
            });
        }
        let over = completed(call);
        if is_matched_receive(call.function) || !over.is_empty() || messages.plan.before.is_some() {
            messages.take(self);
        }
        for (request, _) in over {
            if name == "MPI_Request_free" {
                messages.persistent.remove(&request);
                messages.plan.sends_wait = false;
            }
            messages.is_over(self, request);
        }
        let begins = started(call);
        if !begins.is_empty() {
            begins.into_iter().for_each(|request| messages.start(self, request));
            return Some(self.real_call(name, words));
        }
        // Something in there may still be on its way.
        (name == "MPI_Free_mem" && !messages.sends.is_empty()).then_some(0)
    }

    /// A call that sends, of any kind. What it makes of itself, for the program, is with nobody.
    fn send(&self, messages: &mut Messages, call: &Call, words: &[usize], function: &'static str) -> usize {
        let f = call.function;
        let word = |names: &[&str]| {
            let at = names.iter().find_map(|name| f.index_of(name));
            at.map_or(0, |at| words[at])
        };
        let nobody = self.abi.proc_null as usize;
        let to = messages.plan.to.map_or(nobody, |to| to as usize);
        let words =
            [word(&["sendbuf", "buf"]), word(&["sendcount", "count"]), word(&["sendtype", "datatype"]), to];
        let send = Send { function, words };
        let [buffer, count, datatype, _] = words;
        let nothing =
            |request: usize| [buffer, count, datatype, nobody, TAG, messages.comm as usize, request];
        if f.persistent {
            if let Some(request) = messages.plan.request {
                let mut send = send;
                let is_own = matches!(argument(call, &["datatype"]), Some(Value::Object(..)));
                let mut copy = 0u64;
                let place = std::ptr::from_mut(&mut copy) as usize;
                // The program may free its own before the last start.
                if is_own && self.real_call("MPI_Type_dup", &[datatype, place]) == 0 {
                    send.words[2] = copy as usize;
                }
                messages.persistent.insert(request, send);
            }
            let large = f.name.ends_with("_c");
            let name = if large { "MPI_Send_init_c" } else { "MPI_Send_init" };
            return self.real_call(name, &nothing(word(&["request"])));
        }
        let (code, own) = messages.begin(self, send);
        if let Some(at) = f.index_of("request") {
            messages.sends.push_back((messages.plan.request, own));
            return code.max(self.real_call(function, &nothing(word(&[f.params[at].name]))));
        }
        let receives = f.name.starts_with("MPI_Sendrecv");
        if receives {
            messages.take(self);
        }
        match messages.plan.sends_wait && !f.name.starts_with("MPI_Bsend") {
            true => own.wait(self),
            false => messages.sends.push_back((None, own)),
        }
        if !receives {
            return code;
        }
        let (tag, comm, status) = (word(&["recvtag"]), word(&["comm"]), word(&["status"]));
        code.max(self.real_call("MPI_Recv", &[buffer, 0, self.abi.byte as usize, nobody, tag, comm, status]))
    }
}
