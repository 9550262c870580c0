//! Records to references.

use super::{ADDRESS_SHIFT, END_SIZE, ESCAPE, Header, MOST_TIME, REPEAT, Stop, TIME_SHIFT};
use crate::error::Fault;
use crate::input::Input;
use crate::reader::Decode;
use crate::{BATCH, Batch, Fields, KINDS};

/// What a header byte means.
#[derive(Clone, Copy, Default)]
struct Code {
    kind: u8,
    /// Of the address offset that follows.
    bytes: u8,
    /// A word shifted to the left and back by this has the sign of an offset of so many bytes.
    shift: u8,
    time_bytes: u8,
    repeat: bool,
    /// Whether four bytes may stand for eight.
    escape: bool,
    known: bool,
    /// All ones if there are bytes, else 0.
    mask: i64,
    /// The offset if there are no bytes.
    add: i64,
    /// The same of the time.
    time_mask: u32,
    time_add: u8,
}

/// What is loaded of a record at once: more than any that is not special has.
const WINDOW: usize = 24;

/// References alike that did not fit into the batch.
#[derive(Clone, Copy, Default)]
struct Left {
    count: u64,
    kind: u8,
    offset: u64,
    time: u64,
}

pub(crate) struct Decoder {
    header: Header,
    codes: Box<[Code; 256]>,
    /// By header byte, how long the record is; 0 if it is to be looked at closely: it has a repeat count, or bytes that
    /// may stand for others, or no meaning. Apart, because where the next record begins is what everything waits for.
    lengths: Box<[u8; 256]>,
    last: [u64; KINDS],
    time: u64,
    left: Left,
    /// References so far, with those that did not fit.
    count: u64,
    ended: bool,
}

impl Decoder {
    pub(crate) fn new(header: Header) -> Decoder {
        let codes: Box<[Code; 256]> = Box::new(std::array::from_fn(|byte| code(byte as u8, &header)));
        let lengths = Box::new(codes.map(|code| {
            let special = code.repeat || code.escape || code.time_bytes == 2 || !code.known;
            if special { 0 } else { 1 + code.bytes + code.time_bytes }
        }));
        Decoder {
            header,
            codes,
            lengths,
            last: [0; KINDS],
            time: header.start,
            left: Left::default(),
            count: 0,
            ended: false,
        }
    }

    /// Decodes from `bytes`, of which the first `len` count, into the batch from `n` on. Says how many bytes were
    /// used, and how many references there are now.
    fn all<const WIDE: bool, const TIMES: bool>(
        &mut self,
        bytes: &[u8],
        len: usize,
        batch: &mut Batch,
        mut n: usize,
    ) -> (usize, usize, Stop) {
        let kinds: &mut [u8; BATCH] = (&mut batch.kinds[..]).try_into().expect("a whole batch");
        let addresses: &mut [u64; BATCH] = (&mut batch.addresses[..]).try_into().expect("a whole batch");
        let times: &mut [u64] = if TIMES { &mut batch.times[..BATCH] } else { &mut [] };
        let limit = if WIDE { u64::MAX } else { u64::from(u32::MAX) };
        let (mut last, mut clock) = (self.last, self.time);
        let (codes, lengths) = (&*self.codes, &*self.lengths);
        let mut at = 0;
        let stop = loop {
            // Most records are one reference, in full and far from the end: of them no more is asked than must be.
            while n < BATCH && at + WINDOW <= len {
                let window: &[u8; WINDOW] = bytes[at..at + WINDOW].try_into().expect("so many bytes");
                let length = lengths[usize::from(window[0])];
                if length == 0 {
                    break;
                }
                let code = &codes[usize::from(window[0])];
                let word = load(window, 1);
                let offset = (((word << code.shift) as i64 >> code.shift) & code.mask) + code.add;
                let before = &mut last[usize::from(code.kind) % KINDS];
                *before = before.wrapping_add(offset as u64) & limit;
                kinds[n] = code.kind;
                addresses[n] = *before;
                if TIMES {
                    let time = load(window, 1 + usize::from(code.bytes) % 16);
                    clock = clock.wrapping_add((time & u64::from(code.time_mask)) + u64::from(code.time_add));
                    times[n] = clock;
                }
                at += usize::from(length);
                n += 1;
            }
            if n == BATCH {
                break Stop::Full;
            }
            if at >= len {
                break Stop::Short;
            }
            let code = &codes[usize::from(bytes[at])];
            let mut from = at + 1;
            let mut more = 0;
            if code.repeat {
                more = u64::from(bytes[from]);
                from += 1;
                if WIDE && more == 0 {
                    break if at + END_SIZE > len { Stop::Short } else { Stop::End };
                }
                if WIDE && more >= 0x80 {
                    match long(bytes, from, more) {
                        Some((count, to)) => (more, from) = (count, to),
                        None => break if from + 9 > len { Stop::Short } else { Stop::Unknown },
                    }
                }
            }
            let word = load(bytes, from);
            let mut offset = (((word << code.shift) as i64 >> code.shift) & code.mask) + code.add;
            from += usize::from(code.bytes);
            if WIDE && TIMES && code.escape && offset == ESCAPE {
                offset = load(bytes, from) as i64;
                from += 8;
            }
            let mut time = 0;
            if TIMES {
                time = (load(bytes, from) & u64::from(code.time_mask)) + u64::from(code.time_add);
                from += usize::from(code.time_bytes);
                if code.time_bytes == 2 && time == 0 {
                    time = MOST_TIME;
                    if WIDE {
                        time = load(bytes, from);
                        from += 8;
                    }
                }
            }
            if from > len {
                break Stop::Short;
            }
            if WIDE && !TIMES && !code.known {
                break Stop::Unknown;
            }
            let kind = code.kind;
            let before = &mut last[usize::from(kind) % KINDS];
            let mut address = before.wrapping_add(offset as u64) & limit;
            kinds[n] = kind;
            addresses[n] = address;
            if TIMES {
                clock = clock.wrapping_add(time);
                times[n] = clock;
            }
            n += 1;
            at = from;
            if more > 0 {
                let now = more.min((BATCH - n) as u64) as usize;
                kinds[n..n + now].fill(kind);
                for to in &mut addresses[n..n + now] {
                    address = address.wrapping_add(offset as u64) & limit;
                    *to = address;
                }
                if TIMES {
                    for to in &mut times[n..n + now] {
                        clock = clock.wrapping_add(time);
                        *to = clock;
                    }
                }
                n += now;
                self.left = Left { count: more - now as u64, kind, offset: offset as u64, time };
                self.count = self.count.saturating_add(self.left.count);
            }
            *before = address;
        };
        (self.last, self.time) = (last, clock);
        (at, n, stop)
    }

    /// What the last record still stands for.
    fn rest(&mut self, batch: &mut Batch) -> usize {
        let now = self.left.count.min(BATCH as u64) as usize;
        let Left { kind, offset, time, .. } = self.left;
        let limit = if self.header.wide { u64::MAX } else { u64::from(u32::MAX) };
        batch.kinds[..now].fill(kind);
        let address = &mut self.last[usize::from(kind)];
        for to in &mut batch.addresses[..now] {
            *address = address.wrapping_add(offset) & limit;
            *to = *address;
        }
        if self.header.times {
            for to in &mut batch.times[..now] {
                self.time = self.time.wrapping_add(time);
                *to = self.time;
            }
        }
        self.left.count -= now as u64;
        now
    }
}

fn code(byte: u8, header: &Header) -> Code {
    let kind = byte & 7;
    let joined = header.wide && !header.times;
    let (bytes, time) = if joined {
        ((byte >> TIME_SHIFT) & 15, 0)
    } else {
        ([0, 1, 2, 4][usize::from(byte >> ADDRESS_SHIFT) & 3], (byte >> TIME_SHIFT) & 3)
    };
    let known = bytes <= 8;
    let bytes = bytes.min(8);
    let time_bytes = [0, 0, 1, 2][usize::from(time)];
    Code {
        kind,
        bytes,
        shift: if bytes == 0 { 0 } else { 64 - 8 * bytes },
        time_bytes,
        repeat: byte & REPEAT != 0,
        escape: header.wide && header.times && bytes == 4,
        known,
        mask: if bytes == 0 { 0 } else { -1 },
        add: if bytes == 0 { i64::from(header.steps[usize::from(kind)]) } else { 0 },
        time_mask: (1 << (8 * time_bytes)) - 1,
        time_add: u8::from(time == 1),
    }
}

fn load(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// A count of several bytes, of which the first is known, and where it ends.
fn long(bytes: &[u8], mut at: usize, first: u64) -> Option<(u64, usize)> {
    let mut count = first & 0x7f;
    for shift in (7..64).step_by(7) {
        let byte = u64::from(bytes[at]);
        at += 1;
        if shift == 63 && byte > 1 {
            return None;
        }
        count |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((count, at));
        }
    }
    None
}

impl Decode for Decoder {
    fn fields(&self) -> Fields {
        Fields { times: self.header.times, ..Fields::NONE }
    }

    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        if self.ended {
            batch.clear();
            return Ok(());
        }
        batch.resize(self.fields(), BATCH);
        let mut n = if self.left.count > 0 { self.rest(batch) } else { 0 };
        let done = loop {
            let (bytes, len) = (input.padded(), input.len());
            let (used, now, stop) = match (self.header.wide, self.header.times) {
                (false, false) => self.all::<false, false>(bytes, len, batch, n),
                (false, true) => self.all::<false, true>(bytes, len, batch, n),
                (true, false) => self.all::<true, false>(bytes, len, batch, n),
                (true, true) => self.all::<true, true>(bytes, len, batch, n),
            };
            self.count = self.count.saturating_add((now - n) as u64);
            n = now;
            input.consume(used);
            self.ended = stop == Stop::End;
            if let Some(done) = stop.settle(input, self.header.wide, self.count) {
                break done;
            }
        };
        batch.truncate(n);
        done
    }
}
