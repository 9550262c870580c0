//! A process that exists only in tests: constants with numbers of its own, handles of eight bytes or of four, no MPI library.
#![allow(dead_code)] // Each test file uses its part.

pub mod generated;

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::CStr;
use std::rc::Rc;

use refrain_encode::{
    Before, CommInfo, DatatypeInfo, Decoder, Encoder, Host, Layout, Memo, Memory, Now, RawStatus, Record,
    Requests, Topology, Values,
};
use refrain_model::{Address, Amount, Area, Call, Class, Function, Value, constant, constants, function};

/// Handles of predefined objects: far from what tests use for their own.
pub fn handle(name: &str) -> usize {
    0x10_0000 + usize::from(constant(name).unwrap().id)
}

pub const ANY_SOURCE: usize = -101i32 as u32 as usize;
pub const PROC_NULL: usize = -102i32 as u32 as usize;
pub const ROOT: usize = -103i32 as u32 as usize;
pub const ANY_TAG: usize = -104i32 as u32 as usize;
pub const UNDEFINED: i32 = -32766;
pub const IN_PLACE: usize = 1;
pub const STATUS_IGNORE: usize = 2;

pub struct Fake {
    pub comms: HashMap<u64, CommInfo>,
    pub topology: Topology,
    pub keep_pointers: bool,
    /// Where in its segment every address lies.
    pub area: Area,
    pub device: u32,
    /// Handles have four bytes, not eight.
    pub narrow: bool,
    /// The caller's rank in every window.
    pub win_rank: i32,
    /// Of new datatypes.
    pub type_size: i64,
    pub offset: Rc<Cell<i64>>,
    pub places: u64,
    /// A communicator about which a real library must not be asked.
    pub untouchable: Option<u64>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct FakeStatus {
    pub source: i32,
    pub tag: i32,
    pub bytes: i64,
    pub error: i32,
    pub cancelled: i32,
}

// Every pointer that reaches the host in these tests was made from a live allocation of the test's own.
impl Memory for Fake {
    fn handle(&self, class: Class, raw: usize) -> u64 {
        if self.handle_size(class) == 4 { u64::from(raw as u32) } else { raw as u64 }
    }
    fn handle_size(&self, class: Class) -> usize {
        if self.narrow || class == Class::Keyval { 4 } else { 8 }
    }
    fn handle_at(&self, class: Class, pointer: usize, index: usize) -> u64 {
        match self.handle_size(class) {
            // SAFETY: see above.
            4 => u64::from(unsafe { (pointer as *const u32).add(index).read_unaligned() }),
            // SAFETY: see above.
            _ => unsafe { (pointer as *const u64).add(index).read_unaligned() },
        }
    }
    fn status_at(&self, pointer: usize, index: usize) -> RawStatus {
        // SAFETY: see above.
        let s = unsafe { (pointer as *const FakeStatus).add(index).read_unaligned() };
        let FakeStatus { source, tag, bytes, error, cancelled } = s;
        RawStatus { source, tag, error, bytes, cancelled: cancelled != 0 }
    }
    fn int_at(&self, pointer: usize, index: usize) -> i64 {
        // SAFETY: see above.
        i64::from(unsafe { (pointer as *const i32).add(index).read_unaligned() })
    }
    fn wide_at(&self, pointer: usize, index: usize) -> i64 {
        // SAFETY: see above.
        unsafe { (pointer as *const i64).add(index).read_unaligned() }
    }
    fn pointer_at(&self, pointer: usize, index: usize) -> usize {
        // SAFETY: see above.
        unsafe { (pointer as *const usize).add(index).read_unaligned() }
    }
    fn text_at(&self, pointer: usize, max: usize, out: &mut Vec<u8>) {
        // SAFETY: see above; the tests' strings are terminated.
        let text = unsafe { CStr::from_ptr(pointer as *const _) }.to_bytes();
        out.extend_from_slice(&text[..text.len().min(max)]);
    }
    fn readable(&self, _: usize, bytes: usize) -> bool {
        bytes < 1 << 20
    }
}

impl Host for Fake {
    fn locate(&mut self, pointer: usize) -> Option<Address> {
        let address = Address {
            area: self.area,
            device: self.device,
            segment: (pointer >> 12) as u32 & 0xff,
            offset: self.offset.get(),
        };
        self.keep_pointers.then_some(address)
    }
    fn places(&mut self) -> u64 {
        self.places
    }
    fn lasting(&mut self, _: usize) -> bool {
        true
    }
    fn function_name(&mut self, _: usize) -> String {
        "app+0x10".into()
    }
    fn comm(&mut self, handle: u64) -> CommInfo {
        assert_ne!(Some(handle), self.untouchable);
        self.comms.get(&handle).cloned().unwrap_or_default()
    }
    fn topology(&mut self, _: u64) -> Topology {
        self.topology
    }
    fn neighbours_of(&mut self, _: u64, _: i64) -> usize {
        2
    }
    fn amount(&mut self, _: Amount, _: u64, _: bool) -> usize {
        2
    }
    fn win_rank(&mut self, _: u64) -> i32 {
        self.win_rank
    }
    fn datatype(&mut self, _: u64) -> DatatypeInfo {
        DatatypeInfo { size: self.type_size, lb: 0, extent: 32 }
    }
}

/// What a constant is here.
pub fn constant_value(name: &str) -> i64 {
    match name {
        "MPI_ANY_SOURCE" => i64::from(ANY_SOURCE as i32),
        "MPI_PROC_NULL" => i64::from(PROC_NULL as i32),
        "MPI_ROOT" => i64::from(ROOT as i32),
        "MPI_ANY_TAG" => i64::from(ANY_TAG as i32),
        "MPI_UNDEFINED" => i64::from(UNDEFINED),
        "MPI_IN_PLACE" => IN_PLACE as i64,
        "MPI_BOTTOM" | "MPI_ARGV_NULL" | "MPI_ARGVS_NULL" | "MPI_ERRCODES_IGNORE" => 0,
        "MPI_STATUS_IGNORE" | "MPI_STATUSES_IGNORE" => STATUS_IGNORE as i64,
        "MPI_UNWEIGHTED" => 3,
        "MPI_WEIGHTS_EMPTY" => 4,
        "MPI_SUCCESS" => 0,
        "MPI_ERR_IN_STATUS" => 17,
        "MPI_MODE_NOCHECK" => 1 << 10,
        "MPI_MODE_CREATE" => 1 << 4,
        "MPI_MODE_RDWR" => 1 << 7,
        name => handle(name) as i64,
    }
}

/// Rank 2 of 5, with its encoder and a decoder that reads what the encoder writes.
pub struct World {
    pub host: Fake,
    pub encoder: Encoder,
    pub requests: Requests,
    pub before: Before,
    pub record: Record,
    pub decoder: Decoder,
    pub split: bool,
}

pub fn world() -> World {
    world_of(2)
}

/// The same of another rank.
pub fn world_of(rank: i32) -> World {
    world_with(rank, false)
}

/// The same, with handles of four bytes if they are narrow.
pub fn world_with(rank: i32, narrow: bool) -> World {
    let mut values: Vec<(u16, i64)> = constants().iter().map(|c| (c.id, constant_value(c.name))).collect();
    values.sort_unstable();
    let all = CommInfo { rank, size: 5, remote_size: None, world: vec![0, 1, 2, 3, 4], remote_world: vec![] };
    let me = CommInfo { rank: 0, size: 1, remote_size: None, world: vec![rank], remote_world: vec![] };
    let comms =
        [(handle("MPI_COMM_WORLD") as u64, all), (handle("MPI_COMM_SELF") as u64, me)].into_iter().collect();
    let topology = Topology { indegree: 2, outdegree: 3, dims: 2 };
    let mut host = Fake {
        comms,
        topology,
        keep_pointers: true,
        area: Area::Heap,
        device: 0,
        narrow,
        win_rank: 1,
        type_size: 24,
        offset: Rc::new(Cell::new(8)),
        places: 0,
        untouchable: None,
    };
    let mut encoder = Encoder::new(&values);
    encoder.start(&mut host);
    World {
        host,
        encoder,
        requests: Requests::default(),
        before: Before::default(),
        record: Record::default(),
        decoder: Decoder::new(rank as u32),
        split: true,
    }
}

impl World {
    /// Lets the encoder see a call: `mpi` does what the library would do in between.
    pub fn call(&mut self, name: &str, args: &[usize], result: i64, mpi: impl FnOnce()) -> Call {
        let f = function(name).unwrap();
        assert_eq!(f.params.len(), args.len(), "{name}");
        self.encoder.before(&mut self.host, &mut self.requests, f, args, &mut self.before);
        mpi();
        self.encode(f, args, result);
        if !self.split {
            self.record.inline_values();
        }
        self.read()
    }

    /// Encodes a call that has returned.
    pub fn encode(&mut self, f: &'static Function, args: &[usize], result: i64) {
        let World { host, encoder, requests, before, record, .. } = self;
        encoder.after(host, requests, f, args, result, before, record);
    }

    /// Recognises a call that has returned.
    pub fn recall<'m>(
        &mut self,
        memo: &'m mut Memo,
        site: u64,
        f: &'static Function,
        args: &[usize],
    ) -> Option<(u32, Values<'m>)> {
        let World { host, encoder, requests, before, .. } = self;
        while let Some(later) = memo.take_arrived() {
            encoder.arrived(host, later);
        }
        let now = Now { objects: encoder.generation(), places: host.places(), site };
        memo.recall(encoder.facts(), host, requests, now, f, args, before)
    }

    /// Decodes the record; everything written must be asked for, in the same order.
    pub fn read(&mut self) -> Call {
        let layout = Layout::parse(&self.record.symbol).unwrap();
        assert_eq!(layout.lanes, self.record.lanes(), "{}", layout.function.name);
        let mut values = self.record.values.iter();
        let call = self.decoder.call(&layout, &mut |lane| {
            let &(written, value) = values.next().unwrap_or_else(|| {
                panic!(
                    "{}: the reader asks for more than was written: {:?}",
                    layout.function.name, layout.slots
                )
            });
            assert_eq!(lane, written, "{}", layout.function.name);
            value
        });
        // Nobody has counted yet.
        if let Some(lane) = layout.polls {
            assert_eq!(values.next(), Some(&(lane, 0)), "{}", layout.function.name);
        }
        assert_eq!(values.next(), None, "{}: the reader asks for all that was written", layout.function.name);
        call.unwrap()
    }

    pub fn check(&mut self, name: &str, args: &[usize], expected: &str) {
        let call = self.call(name, args, 0, || {});
        assert_eq!(show(&call), expected);
    }
}

/// A call on one line, without its function's name.
pub fn show(call: &Call) -> String {
    let args: Vec<String> = call.args.iter().map(value).collect();
    let mut line = args.join(" ");
    if call.result != Value::Int(0) {
        line += &format!(" = {}", value(&call.result));
    }
    for (name, fact) in &call.facts {
        line += &format!(" {{{name} {}}}", value(fact));
    }
    line
}

fn value(v: &Value) -> String {
    match v {
        Value::Unset => "-".into(),
        Value::Int(v) => v.to_string(),
        Value::Bool(v) => v.to_string(),
        Value::Name(v) => v.trim_start_matches("MPI_").into(),
        Value::Mask(v) => v.join("|").replace("MPI_", ""),
        Value::Text(v) => format!("'{v}'"),
        Value::Object(class, id) => format!("{class:?}#{id}").to_lowercase(),
        Value::Comm(v) => v.clone(),
        Value::Address(a) => format!("@{}", a.offset),
        Value::Status(s) => {
            let bytes = s.bytes.map_or("-".into(), |bytes| bytes.to_string());
            let cancelled = s.cancelled.map_or("-".into(), |cancelled| cancelled.to_string());
            let error = s.error.map_or(String::new(), |error| format!(" {error}"));
            format!("<{} {} {bytes} {cancelled}{error}>", value(&s.source), value(&s.tag))
        }
        Value::List(v) => format!("[{}]", v.iter().map(value).collect::<Vec<_>>().join(",")),
        Value::InOut(a, b) => format!("{}->{}", value(a), value(b)),
    }
}
