//! References to records.

use super::{ADDRESS_SHIFT, ESCAPE, Header, MOST_RUN, MOST_TIME, NARROW, REPEAT, TIME_SHIFT, end, width};
use crate::output::Output;
use crate::writer::{Encode, Unfit};
use crate::{Batch, KINDS};

/// A record at its longest: header, repeats, escaped address, escaped time; and a word's room to store in.
const LONGEST: usize = 1 + 10 + 12 + 10 + 8;

/// References alike, of which the record is not written yet.
#[derive(Clone, Copy)]
struct Run {
    kind: u8,
    offset: i64,
    time: u64,
    /// References, none before the first.
    count: u64,
}

pub(crate) struct Encoder {
    header: Header,
    begun: bool,
    /// The most references of one record.
    most: u64,
    /// The last address of each kind.
    last: [u64; KINDS],
    time: u64,
    run: Run,
    /// References in records that are written.
    written: u64,
}

impl Encoder {
    pub(crate) fn new(header: Header, repeats: bool) -> Encoder {
        let most = match (repeats, header.wide) {
            (false, _) => 1,
            (true, false) => 256,
            (true, true) => MOST_RUN,
        };
        let run = Run { kind: 0, offset: 0, time: 0, count: 0 };
        Encoder { header, begun: false, most, last: [0; KINDS], time: 0, run, written: 0 }
    }

    /// The header. It says when the trace starts if no record can: classic times have no other way to begin late.
    fn begin(&mut self, time: u64, out: &mut Output) {
        if !self.begun {
            self.begun = true;
            if !self.header.wide && time > MOST_TIME {
                self.header.start = time;
            }
            self.time = self.header.start;
            out.put(&self.header.bytes());
        }
    }

    fn all<const WIDE: bool, const TIMES: bool>(
        &mut self,
        batch: &Batch,
        out: &mut [u8],
    ) -> (usize, Result<(), Unfit>) {
        let kinds = &batch.kinds[..];
        let addresses = &batch.addresses[..kinds.len()];
        let times = if TIMES { &batch.times[..kinds.len()] } else { &[] };
        let steps = self.header.steps.map(i64::from);
        let (most, mut last, mut clock, mut run) = (self.most, self.last, self.time, self.run);
        let mut written = self.written;
        let mut at = 0;
        let mut unfit = None;
        for i in 0..kinds.len() {
            let (kind, address) = (kinds[i], addresses[i]);
            if usize::from(kind) >= KINDS {
                unfit = Some((i, format!("kinds are 0 to 7, not {kind}").into()));
                break;
            }
            let before = &mut last[usize::from(kind) % KINDS];
            let offset = if WIDE {
                address.wrapping_sub(*before) as i64
            } else {
                if address > u64::from(u32::MAX) {
                    let what = format!("address {address:x} has more than 32 bits; pdt64 keeps it");
                    unfit = Some((i, what.into()));
                    break;
                }
                i64::from(address.wrapping_sub(*before) as i32)
            };
            let time = if TIMES { times[i].wrapping_sub(clock) } else { 0 };
            if TIMES && !WIDE && time > MOST_TIME {
                let what = format!("time {} is not 0 to 65,536 after {clock}; pdt64 keeps it", times[i]);
                unfit = Some((i, what.into()));
                break;
            }
            *before = address;
            if TIMES {
                clock = times[i];
            }
            let alike = kind == run.kind && offset == run.offset && (!TIMES || time == run.time);
            if alike && run.count < most && run.count > 0 {
                run.count += 1;
            } else {
                at = record::<WIDE, TIMES>(&run, &steps, out, at);
                written += run.count;
                run = Run { kind, offset, time, count: 1 };
            }
        }
        (self.last, self.time, self.run, self.written) = (last, clock, run, written);
        (at, unfit.map_or(Ok(()), Err))
    }
}

/// Writes the record of a run, if there is one, and says where the next goes.
#[inline(always)]
fn record<const WIDE: bool, const TIMES: bool>(
    run: &Run,
    steps: &[i64; KINDS],
    out: &mut [u8],
    at: usize,
) -> usize {
    if run.count == 0 {
        return at;
    }
    let out = &mut out[at..at + LONGEST];
    let exact = run.offset == steps[usize::from(run.kind) % KINDS];
    let wide = if exact { 0 } else { width(run.offset) };
    let mut head = run.kind;
    let bytes = if WIDE && !TIMES {
        head |= (wide as u8) << TIME_SHIFT;
        wide
    } else {
        let (code, bytes) = NARROW[wide];
        head |= code << ADDRESS_SHIFT;
        usize::from(bytes)
    };
    let mut to = 1;
    if run.count > 1 {
        head |= REPEAT;
        to = repeats::<WIDE>(run.count - 1, out);
    }
    out[to..to + 8].copy_from_slice(&run.offset.to_le_bytes());
    to += bytes;
    if WIDE && TIMES && bytes == 4 && (wide > 4 || run.offset == ESCAPE) {
        out[to - 4..to].copy_from_slice(&(ESCAPE as i32).to_le_bytes());
        out[to..to + 8].copy_from_slice(&run.offset.to_le_bytes());
        to += 8;
    }
    if TIMES {
        let code = match run.time {
            0 => 0,
            1 => 1,
            2..256 => 2,
            _ => 3,
        };
        head |= code << TIME_SHIFT;
        out[to..to + 8].copy_from_slice(&run.time.to_le_bytes());
        to += usize::from([0u8, 0, 1, 2][usize::from(code)]);
        if WIDE && run.time >= MOST_TIME {
            out[to - 2..to].copy_from_slice(&[0, 0]);
            out[to..to + 8].copy_from_slice(&run.time.to_le_bytes());
            to += 8;
        }
    }
    out[0] = head;
    at + to
}

/// Writes how often more, after the header byte, and says where to go on.
fn repeats<const WIDE: bool>(mut count: u64, out: &mut [u8]) -> usize {
    let mut to = 1;
    if WIDE {
        while count >= 0x80 {
            out[to] = count as u8 | 0x80;
            count >>= 7;
            to += 1;
        }
    }
    out[to] = count as u8;
    to + 1
}

impl Encode for Encoder {
    fn encode(&mut self, batch: &Batch, out: &mut Output) -> Result<(), Unfit> {
        let Some(first) = (!batch.is_empty()).then(|| batch.times.first().copied().unwrap_or(0)) else {
            return Ok(());
        };
        self.begin(first, out);
        let room = out.room((batch.len() + 1) * LONGEST);
        let (bytes, done) = match (self.header.wide, self.header.times) {
            (false, false) => self.all::<false, false>(batch, room),
            (false, true) => self.all::<false, true>(batch, room),
            (true, false) => self.all::<true, false>(batch, room),
            (true, true) => self.all::<true, true>(batch, room),
        };
        out.advance(bytes);
        done
    }

    fn finish(&mut self, out: &mut Output) {
        self.begin(0, out);
        let run = std::mem::replace(&mut self.run, Run { kind: 0, offset: 0, time: 0, count: 0 });
        let steps = self.header.steps.map(i64::from);
        let room = out.room(LONGEST);
        let bytes = match (self.header.wide, self.header.times) {
            (false, false) => record::<false, false>(&run, &steps, room, 0),
            (false, true) => record::<false, true>(&run, &steps, room, 0),
            (true, false) => record::<true, false>(&run, &steps, room, 0),
            (true, true) => record::<true, true>(&run, &steps, room, 0),
        };
        out.advance(bytes);
        if self.header.wide {
            out.put(&end(self.written + run.count));
        }
    }
}
