//! Threads of a rank that take from, or add to, the same row of messages: those of one source (or for one destination), one
//! tag and one communicator. MPI hands them out in the order of the calls, and a trace does not have that of threads.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use refrain_encode::{Error, Message, Reader};
use refrain_model::{Call, Status, Value};

use crate::meaning::requests::{completed, is_failed_poll, made_request, matched, started, status_of};

/// Rows that a thread names by one rank and tag each. Of more, and of more that are named by `any`, all tags count.
const MOST: usize = 1 << 18;
const MOST_WILD: usize = 64;

/// MPI keeps messages of partitioned calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Does {
    Send,
    Receive,
    SendParts,
    ReceiveParts,
}

/// The other side and the tag; `None` stands for any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    peer: Option<i64>,
    tag: Option<i64>,
}

impl Row {
    const ALL: Row = Row { peer: None, tag: None };

    fn is_one(self) -> bool {
        self.peer.is_some() && self.tag.is_some()
    }

    fn meets(self, other: Row) -> bool {
        let same = |a: Option<i64>, b: Option<i64>| a.is_none() || b.is_none() || a == b;
        same(self.peer, other.peer) && same(self.tag, other.tag)
    }
}

/// The rows of one communicator that a thread uses in one way.
#[derive(Debug, Default)]
struct Rows {
    one: BTreeSet<Row>,
    wild: BTreeSet<Row>,
}

impl Rows {
    fn add(&mut self, row: Row) {
        let (rows, most) = if row.is_one() { (&mut self.one, MOST) } else { (&mut self.wild, MOST_WILD) };
        if rows.len() < most {
            rows.insert(row);
        } else if !rows.contains(&row) {
            self.wild.insert(Row::ALL);
        }
    }

    /// A row that both use.
    fn shared(&self, other: &Rows) -> Option<Row> {
        let among = |wild: &BTreeSet<Row>, rows: &BTreeSet<Row>| {
            wild.iter().find_map(|row| rows.iter().find(|one| row.meets(**one)).copied())
        };
        let one = self.one.iter().find(|row| other.one.contains(row)).copied();
        one.or_else(|| among(&self.wild, &other.one))
            .or_else(|| among(&other.wild, &self.one))
            .or_else(|| among(&self.wild, &other.wild))
    }
}

/// What a call asks for: of a receive from any source it is not known yet what it gets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    does: Does,
    comm: String,
    row: Row,
}

/// What a thread does with messages.
#[derive(Debug, Default)]
struct Thread {
    rows: BTreeMap<(String, Does), Rows>,
    /// By request: receives from any source, or with any tag, that are under way.
    open: HashMap<u32, Vec<Claim>>,
    /// What starting a request asks for.
    persistent: HashMap<u32, Vec<Claim>>,
}

fn number(value: &Value) -> Option<Option<i64>> {
    match value {
        Value::Int(number) => Some(Some(*number)),
        Value::Name("MPI_ANY_SOURCE" | "MPI_ANY_TAG") => Some(None),
        // Nobody, or none at all.
        _ => None,
    }
}

/// What a call asks for.
fn claims_of(call: &Call) -> Vec<Claim> {
    let Some(message) = Message::of(call.function).filter(|_| !is_failed_poll(call)) else {
        return Vec::new();
    };
    let Some(Value::Comm(comm)) = call.args.get(message.comm) else { return Vec::new() };
    let parts = call.function.name.starts_with("MPI_Psend") || call.function.name.starts_with("MPI_Precv");
    let claim = |which: Option<(usize, usize)>, does: Does| {
        let (peer, tag) = which?;
        let row = Row { peer: number(call.args.get(peer)?)?, tag: number(call.args.get(tag)?)? };
        Some(Claim { does, comm: comm.clone(), row })
    };
    let (sends, receives) =
        if parts { (Does::SendParts, Does::ReceiveParts) } else { (Does::Send, Does::Receive) };
    [claim(message.sent, sends), claim(message.expected, receives)].into_iter().flatten().collect()
}

impl Thread {
    fn add(&mut self, claim: &Claim) {
        self.rows.entry((claim.comm.clone(), claim.does)).or_default().add(claim.row);
    }

    /// A receive ends, and this is its status. A replay asks for what it got.
    fn ends(&mut self, claims: &[Claim], status: Option<&Value>) {
        if matches!(status, Some(Value::Status(Status { cancelled: Some(true), .. }))) {
            return;
        }
        let got = status.and_then(matched);
        for claim in claims {
            let row = got.map_or(claim.row, |(peer, tag)| Row { peer: Some(peer), tag: Some(tag) });
            self.add(&Claim { row, ..claim.clone() });
        }
    }

    /// One that is made or started again without having ended got a message that nobody tells of.
    fn begins(&mut self, request: u32, claims: &[Claim]) {
        let (one, wild): (Vec<_>, Vec<_>) = claims.iter().cloned().partition(|claim| claim.row.is_one());
        one.iter().for_each(|claim| self.add(claim));
        let lost = if wild.is_empty() { self.open.remove(&request) } else { self.open.insert(request, wild) };
        self.ends(&lost.unwrap_or_default(), None);
    }

    fn learn(&mut self, call: &Call) {
        let claims = claims_of(call);
        match made_request(call) {
            Some(request) => {
                self.persistent.remove(&request);
                let parts = |claim: &Claim| matches!(claim.does, Does::SendParts | Does::ReceiveParts);
                // Those of partitions meet when they are made.
                if call.function.persistent && !claims.iter().any(parts) {
                    self.persistent.insert(request, claims);
                } else {
                    self.begins(request, &claims);
                }
            }
            None => {
                let (one, wild): (Vec<_>, Vec<_>) = claims.into_iter().partition(|claim| claim.row.is_one());
                one.iter().for_each(|claim| self.add(claim));
                self.ends(&wild, status_of(call));
            }
        }
        for request in started(call) {
            if let Some(claims) = self.persistent.get(&request).cloned() {
                self.begins(request, &claims);
            }
        }
        if !self.open.is_empty() {
            for (request, status) in completed(call) {
                if let Some(claims) = self.open.remove(&request) {
                    self.ends(&claims, status);
                }
            }
        }
    }

    fn is_over(&mut self) {
        for claims in std::mem::take(&mut self.open).into_values() {
            self.ends(&claims, None);
        }
    }
}

/// All threads of a rank.
#[derive(Debug, Default)]
struct Rivals {
    threads: BTreeMap<u32, Thread>,
    /// What persistent requests ask for that another thread may start.
    made: HashMap<u32, BTreeSet<Claim>>,
    /// Which requests of others a thread starts.
    foreign: BTreeSet<(u32, u32)>,
}

impl Rivals {
    fn learn(&mut self, number: u32, call: &Call) {
        if call.function.persistent
            && let Some(request) = made_request(call)
        {
            self.made.entry(request).or_default().extend(claims_of(call));
        }
        let thread = self.threads.entry(number).or_default();
        for request in started(call) {
            if refrain_model::maker_of(request).0 != number {
                self.foreign.insert((number, request));
            }
        }
        thread.learn(call);
    }

    /// A row that two threads use, in words.
    fn found(mut self) -> Option<String> {
        self.threads.values_mut().for_each(Thread::is_over);
        for (number, request) in &self.foreign {
            let Some(thread) = self.threads.get_mut(number) else { continue };
            self.made.get(request).into_iter().flatten().for_each(|claim| thread.add(claim));
        }
        let all: Vec<&Thread> = self.threads.values().collect();
        all.iter().enumerate().find_map(|(at, thread)| {
            let others = &all[at + 1..];
            thread.rows.iter().find_map(|(key, rows)| {
                let row = others.iter().find_map(|other| rows.shared(other.rows.get(key)?))?;
                Some(told(key.1, &key.0, row))
            })
        })
    }
}

fn told(does: Does, comm: &str, row: Row) -> String {
    let sends = matches!(does, Does::Send | Does::SendParts);
    let does = if sends { "send to" } else { "receive from" };
    let peer = row.peer.map_or("any rank".to_owned(), |peer| format!("rank {peer}"));
    let tag = row.tag.map_or("any tag".to_owned(), |tag| format!("tag {tag}"));
    format!("several threads {does} {peer} of {comm} with {tag}")
}

/// Why the order of a rank's threads would have to be known for its messages to reach the same receives again.
pub(crate) fn rivals(reader: &Reader<'_>, rank: u32) -> Result<Option<String>, Error> {
    let mut rivals = Rivals::default();
    for thread in reader.threads(rank) {
        for call in reader.calls(rank, thread)? {
            rivals.learn(thread, &call?);
        }
    }
    Ok(rivals.found())
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::{Class, Dir, Kind, NUMBER_BITS, function};

    const ANY: Value = Value::Name("MPI_ANY_SOURCE");
    const ANY_TAG: Value = Value::Name("MPI_ANY_TAG");

    /// A call on `world`: its ranks, tags, requests and statuses in their order, and nothing else.
    fn call(name: &str, mut values: Vec<Value>) -> Call {
        let function = function(name).unwrap();
        values.reverse();
        let mut value = |p: &refrain_model::Param| match p.kind {
            Kind::Handle(Class::Comm) => Value::Comm("world".into()),
            Kind::Peer(_) | Kind::Tag | Kind::Handle(Class::Request) | Kind::Status | Kind::Logical => {
                values.pop().unwrap_or(Value::Unset)
            }
            _ if p.dir == Dir::In => Value::Int(1),
            _ => Value::Unset,
        };
        let args = function.params.iter().map(&mut value).collect();
        Call { function, args, result: Value::Int(0), facts: Vec::new() }
    }

    fn int(number: i64) -> Value {
        Value::Int(number)
    }

    fn request(thread: u32, number: u32) -> Value {
        Value::Object(Class::Request, thread << NUMBER_BITS | number)
    }

    fn status(source: i64, tag: i64) -> Value {
        let (source, tag) = (Box::new(int(source)), Box::new(int(tag)));
        Value::Status(Status { source, tag, bytes: Some(4), cancelled: Some(false), error: None })
    }

    fn recv(source: i64, tag: i64) -> Call {
        call("MPI_Recv", vec![int(source), int(tag), status(source, tag)])
    }

    fn any(source: i64, tag: i64) -> Call {
        call("MPI_Recv", vec![ANY, ANY_TAG, status(source, tag)])
    }

    fn irecv(thread: u32) -> Call {
        call("MPI_Irecv", vec![ANY, int(5), request(thread, 0)])
    }

    /// What is said of threads with these calls.
    fn said(threads: &[&[Call]]) -> Option<String> {
        let mut rivals = Rivals::default();
        for (number, calls) in (0..).zip(threads) {
            calls.iter().for_each(|call| rivals.learn(number, call));
        }
        rivals.found()
    }

    fn clear(threads: &[&[Call]]) {
        assert_eq!(said(threads), None);
    }

    fn unclear(threads: &[&[Call]], expected: &str) {
        assert_eq!(said(threads).as_deref(), Some(expected));
    }

    #[test]
    fn two_that_receive_the_same_are_rivals() {
        let words = "several threads receive from rank 1 of world with tag 5";
        unclear(&[&[recv(1, 5)], &[recv(1, 5)]], words);
        unclear(&[&[any(1, 5)], &[recv(2, 5), recv(1, 5)]], words);
        let probe = call("MPI_Probe", vec![int(1), int(5), status(1, 5)]);
        unclear(&[&[recv(1, 5)], &[], &[probe]], words);
        clear(&[&[recv(1, 5), recv(1, 5)], &[recv(1, 6), recv(2, 5)]]);
        // A replay asks for what a receive from any source got.
        clear(&[&[any(1, 5)], &[any(2, 5), any(1, 6)]]);
        let nobody = || call("MPI_Recv", vec![Value::Name("MPI_PROC_NULL"), int(5)]);
        clear(&[&[nobody()], &[nobody()]]);
    }

    #[test]
    fn two_that_send_the_same_way_are_rivals() {
        let send = |tag: i64| call("MPI_Isend", vec![int(1), int(tag), request(0, 0)]);
        unclear(&[&[send(5)], &[send(5)]], "several threads send to rank 1 of world with tag 5");
        clear(&[&[send(5)], &[send(6)]]);
        clear(&[&[send(5)], &[recv(1, 5)]]);
    }

    #[test]
    fn what_a_receive_gets_is_told_when_it_ends() {
        let wait = |thread: u32, source: i64| call("MPI_Wait", vec![request(thread, 0), status(source, 5)]);
        clear(&[&[irecv(0), wait(0, 1)], &[irecv(1), wait(1, 2)]]);
        let words = "several threads receive from rank 1 of world with tag 5";
        unclear(&[&[irecv(0), wait(0, 1)], &[irecv(1), wait(1, 1)]], words);
        // Of one that nobody waited for it is not known.
        unclear(&[&[irecv(0)], &[recv(1, 5)]], words);
        clear(&[&[irecv(0)], &[recv(1, 6)]]);
        let words = "several threads receive from any rank of world with tag 5";
        unclear(&[&[irecv(0)], &[irecv(1)]], words);
        let cancelled = Value::Status(Status {
            source: Box::new(Value::Unset),
            tag: Box::new(Value::Unset),
            bytes: None,
            cancelled: Some(true),
            error: None,
        });
        clear(&[&[irecv(0), call("MPI_Wait", vec![request(0, 0), cancelled])], &[recv(1, 5)]]);
    }

    /// Who starts a request receives, not who makes it.
    #[test]
    fn persistent_ones_belong_to_whoever_starts_them() {
        let init = || call("MPI_Recv_init", vec![int(1), int(5), request(0, 0)]);
        let start = || call("MPI_Start", vec![request(0, 0)]);
        clear(&[&[init()], &[start(), recv(1, 6)]]);
        clear(&[&[init()], &[start(), recv(1, 5)]]);
        let words = "several threads receive from rank 1 of world with tag 5";
        unclear(&[&[init(), recv(1, 5)], &[start()]], words);
        unclear(&[&[init(), start()], &[start()]], words);
        let parts = |thread: u32| call("MPI_Precv_init", vec![int(1), int(5), request(thread, 0)]);
        unclear(&[&[parts(0)], &[parts(1)]], words);
        clear(&[&[parts(0)], &[recv(1, 5)]]);
    }

    #[test]
    fn polls_that_found_nothing_take_nothing() {
        let poll = |flag: bool| call("MPI_Improbe", vec![int(1), int(5), Value::Bool(flag), status(1, 5)]);
        clear(&[&[poll(false)], &[recv(1, 5)]]);
        assert!(said(&[&[poll(true)], &[recv(1, 5)]]).is_some());
    }

    /// With another tag in every call, memory has an end, and nothing is promised that was not looked at.
    #[test]
    fn very_many_rows_count_as_all() {
        let mut rows = Rows::default();
        (0..MOST as i64 + 2).for_each(|tag| rows.add(Row { peer: Some(0), tag: Some(tag) }));
        let mut other = Rows::default();
        other.add(Row { peer: Some(3), tag: Some(4) });
        assert!(rows.one.len() == MOST && other.shared(&rows).is_some());
    }
}
