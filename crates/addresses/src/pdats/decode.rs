//! Records to references.

use super::{ADDRESS_SHIFT, END_SIZE, ESCAPE, Header, MOST_RUN, MOST_TIME, REPEAT, Stop, TIME_SHIFT};
use crate::error::Fault;
use crate::input::{Input, word};
use crate::reader::Decode;
use crate::{BATCH, Batch, Fields, KINDS};

/// What a header byte means.
#[derive(Clone, Copy)]
struct Code {
    /// The offset is `((word & mask) ^ flip) - less`, of the eight bytes that follow: with a number's highest bit in `flip`
    /// and `less` that gives it its sign, and with the step in `flip` and no mask, the step.
    mask: u64,
    flip: u64,
    less: u64,
    /// The same of the time.
    time_mask: u16,
    time_add: u8,
    time_bytes: u8,
    /// Of the address offset.
    bytes: u8,
    /// One reference, and no bytes that may stand for others.
    plain: bool,
    known: bool,
}

/// One record, or what is left of it for the next batch.
#[derive(Clone, Copy, Default)]
struct Run {
    kind: u8,
    offset: u64,
    time: u64,
    /// References.
    count: u64,
}

/// Bytes that are looked at together, and in how many of them a record may begin: none is longer than the difference.
const WINDOW: usize = 256;
const STARTS: usize = WINDOW - LONGEST;
/// Header, repeats, escaped address, escaped time.
const LONGEST: usize = 1 + 10 + 12 + 10;

/// So many references are written of a short run, whatever its length: that is faster than to count them.
const SHORT: usize = 4;

pub(crate) struct Decoder {
    header: Header,
    codes: Box<[Code; 256]>,
    last: [u64; KINDS],
    time: u64,
    /// What did not fit into the batch.
    left: Run,
    /// References so far.
    count: u64,
    ended: bool,
}

/// A batch being filled, and what offsets are offsets from.
struct Columns<'a> {
    kinds: &'a mut [u8; BATCH],
    addresses: &'a mut [u64; BATCH],
    /// Empty if there are no times.
    times: &'a mut [u64],
    /// References in it.
    n: usize,
    last: [u64; KINDS],
    clock: u64,
}

impl Columns<'_> {
    #[inline(always)]
    fn one<const WIDE: bool, const TIMES: bool>(&mut self, kind: u8, offset: u64, time: u64) {
        let last = &mut self.last[usize::from(kind) % KINDS];
        *last = cut::<WIDE>(last.wrapping_add(offset));
        self.kinds[self.n] = kind;
        self.addresses[self.n] = *last;
        if TIMES {
            self.clock = self.clock.wrapping_add(time);
            self.times[self.n] = self.clock;
        }
        self.n += 1;
    }

    /// As many of a run as there is room for. Says how many are left.
    #[inline(always)]
    fn run<const WIDE: bool, const TIMES: bool>(&mut self, run: &Run) -> u64 {
        let Run { kind, offset, time, count } = *run;
        let now = count.min((BATCH - self.n) as u64);
        let (first, end) = (self.n, self.n + now as usize);
        let last = &mut self.last[usize::from(kind) % KINDS];
        if now <= SHORT as u64 && first <= BATCH - SHORT {
            self.kinds[first..first + SHORT].fill(kind);
            for (i, to) in (1..).zip(&mut self.addresses[first..first + SHORT]) {
                *to = cut::<WIDE>(last.wrapping_add(offset.wrapping_mul(i)));
            }
        } else {
            self.kinds[first..end].fill(kind);
            steps(*last, offset, cut::<WIDE>(u64::MAX), &mut self.addresses[first..end]);
        }
        *last = cut::<WIDE>(last.wrapping_add(offset.wrapping_mul(now)));
        if TIMES {
            steps(self.clock, time, u64::MAX, &mut self.times[first..end]);
            self.clock = self.clock.wrapping_add(time.wrapping_mul(now));
        }
        self.n = end;
        count - now
    }
}

/// Numbers that rise by the same, modulo a power of two. Out of the way of short runs.
#[inline(never)]
fn steps(from: u64, step: u64, mask: u64, into: &mut [u64]) {
    for (i, to) in (1..).zip(into) {
        *to = from.wrapping_add(step.wrapping_mul(i)) & mask;
    }
}

/// Classic addresses are modulo 2^32.
#[inline(always)]
fn cut<const WIDE: bool>(address: u64) -> u64 {
    if WIDE { address } else { address & u64::from(u32::MAX) }
}

impl Decoder {
    pub(crate) fn new(header: Header) -> Decoder {
        Decoder {
            header,
            codes: Box::new(std::array::from_fn(|byte| code(byte as u8, &header))),
            last: [0; KINDS],
            time: header.start,
            left: Run::default(),
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
        n: usize,
    ) -> (usize, usize, Stop) {
        let mut columns = Columns {
            kinds: (&mut batch.kinds[..]).try_into().expect("a whole batch"),
            addresses: (&mut batch.addresses[..]).try_into().expect("a whole batch"),
            times: &mut batch.times,
            n,
            last: self.last,
            clock: self.time,
        };
        let mut at = 0;
        if self.left.count > 0 {
            self.left.count = columns.run::<WIDE, TIMES>(&self.left);
        }
        let stop = loop {
            if columns.n == BATCH {
                break Stop::Full;
            }
            if columns.n <= BATCH - SHORT && at + WINDOW <= len {
                let window = bytes[at..at + WINDOW].try_into().expect("so many bytes");
                let (used, stop) = self.window::<WIDE, TIMES>(window, &mut columns);
                at += used;
                match stop {
                    Some(stop) => break stop,
                    None => continue,
                }
            }
            if at >= len {
                break Stop::Short;
            }
            match record::<WIDE, TIMES>(&self.codes, bytes, at, len) {
                Ok((run, to)) => {
                    self.put::<WIDE, TIMES>(run, &mut columns);
                    at = to;
                }
                Err(stop) => break stop,
            }
        };
        (self.last, self.time) = (columns.last, columns.clock);
        (at, columns.n, stop)
    }

    /// Decodes what begins in the window's first bytes, as far as there is room. Says how many bytes were used, and what
    /// stopped it, if that was a record.
    ///
    /// Where the next record begins is what everything waits for. So that is found out beforehand, as if each byte began
    /// a record: all of them at once, while to look at one header after the other takes twice as long as the rest.
    #[inline(always)]
    fn window<const WIDE: bool, const TIMES: bool>(
        &mut self,
        window: &[u8; WINDOW],
        columns: &mut Columns<'_>,
    ) -> (usize, Option<Stop>) {
        let mut next = [0; WINDOW];
        for (at, (to, head)) in (0..).zip(next[..STARTS].iter_mut().zip(window)) {
            *to = length::<WIDE, TIMES>(*head).wrapping_add(at);
        }
        let mut at = 0;
        while at < STARTS && columns.n <= BATCH - SHORT {
            let head = window[at];
            let code = &self.codes[usize::from(head)];
            if code.plain {
                let offset = code.offset(word(window, at + 1));
                let time =
                    if TIMES { code.time(word(window, at + 1 + usize::from(code.bytes) % 16)) } else { 0 };
                columns.one::<WIDE, TIMES>(head & 7, offset, time);
                at = usize::from(next[at]);
            } else {
                match record::<WIDE, TIMES>(&self.codes, window, at, WINDOW) {
                    Ok((run, to)) => {
                        self.put::<WIDE, TIMES>(run, columns);
                        at = to;
                    }
                    Err(stop) => return (at, Some(stop)),
                }
            }
        }
        (at, None)
    }

    #[inline(always)]
    fn put<const WIDE: bool, const TIMES: bool>(&mut self, run: Run, columns: &mut Columns<'_>) {
        self.left = Run { count: columns.run::<WIDE, TIMES>(&run), ..run };
    }
}

/// How long a plain record with this header byte is; anything for others. Of many bytes at once, so without a table.
#[inline(always)]
fn length<const WIDE: bool, const TIMES: bool>(head: u8) -> u8 {
    if WIDE && !TIMES {
        return 1 + (head >> TIME_SHIFT & 15);
    }
    // 0, 1, 2, 4.
    let address = head >> ADDRESS_SHIFT & 3;
    let bytes = address + (address & address >> 1);
    // 0, 0, 1.
    let time = if TIMES { head >> TIME_SHIFT >> 1 & 1 } else { 0 };
    1 + bytes + time
}

/// Any record, of which the bytes up to `len` count, and where it ends.
#[inline(always)]
fn record<const WIDE: bool, const TIMES: bool>(
    codes: &[Code; 256],
    bytes: &[u8],
    at: usize,
    len: usize,
) -> Result<(Run, usize), Stop> {
    let head = bytes[at];
    let code = &codes[usize::from(head)];
    let mut from = at + 1;
    let mut more = 0;
    if head & REPEAT != 0 {
        more = u64::from(bytes[from]);
        from += 1;
        if WIDE && more == 0 {
            return Err(if at + END_SIZE > len { Stop::Short } else { Stop::End });
        }
        if WIDE && more >= 0x80 {
            match long(bytes, from, more) {
                Some((count, to)) => (more, from) = (count, to),
                None => return Err(if from + 9 > len { Stop::Short } else { Stop::Unknown }),
            }
        }
    }
    let mut offset = code.offset(word(bytes, from));
    from += usize::from(code.bytes);
    if WIDE && TIMES && code.bytes == 4 && offset == ESCAPE as u64 {
        offset = word(bytes, from);
        from += 8;
    }
    let mut time = 0;
    if TIMES {
        time = code.time(word(bytes, from));
        from += usize::from(code.time_bytes);
        if code.time_bytes == 2 && time == 0 {
            time = MOST_TIME;
            if WIDE {
                time = word(bytes, from);
                from += 8;
            }
        }
    }
    if from > len {
        return Err(Stop::Short);
    }
    if !code.known {
        return Err(Stop::Unknown);
    }
    if WIDE && more >= MOST_RUN {
        return Err(Stop::Long);
    }
    Ok((Run { kind: head & 7, offset, time, count: more + 1 }, from))
}

impl Code {
    #[inline(always)]
    fn offset(&self, word: u64) -> u64 {
        ((word & self.mask) ^ self.flip).wrapping_sub(self.less)
    }

    #[inline(always)]
    fn time(&self, word: u64) -> u64 {
        (word & u64::from(self.time_mask)) + u64::from(self.time_add)
    }
}

fn code(byte: u8, header: &Header) -> Code {
    let step = i64::from(header.steps[usize::from(byte & 7)]) as u64;
    let time = (byte >> TIME_SHIFT) & 3;
    let (bytes, known) = if header.wide && !header.times {
        let bytes = (byte >> TIME_SHIFT) & 15;
        (bytes.min(8), bytes <= 8)
    } else {
        ([0, 1, 2, 4][usize::from(byte >> ADDRESS_SHIFT) & 3], header.times || time == 0)
    };
    let time_bytes = if header.times { [0, 0, 1, 2][usize::from(time)] } else { 0 };
    let escapes = time_bytes == 2 || header.wide && header.times && bytes == 4;
    let (mask, flip, less) = match bytes {
        0 => (0, step, 0),
        _ => {
            let sign = 1 << (8 * bytes - 1);
            (sign | (sign - 1), sign, sign)
        }
    };
    Code {
        mask,
        flip,
        less,
        time_mask: [0, 0xff, 0xffff][usize::from(time_bytes)],
        time_add: u8::from(header.times && time == 1),
        time_bytes,
        bytes,
        plain: known && !escapes && byte & REPEAT == 0,
        known,
    }
}

/// A count of several bytes, of which the first is known, and where it ends.
#[cold]
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

    fn ahead(&self) -> u64 {
        self.left.count
    }

    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        if self.ended {
            batch.clear();
            return Ok(());
        }
        batch.resize(self.fields(), BATCH);
        let mut n = 0;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Format, Reader};

    fn lengths<const WIDE: bool, const TIMES: bool>() {
        let header = if WIDE { Header::wide(TIMES, [4; KINDS]) } else { Header::classic(TIMES) };
        let codes: [Code; 256] = std::array::from_fn(|byte| code(byte as u8, &header));
        let mut plain = 0;
        for head in (0..=255).filter(|head| codes[usize::from(*head)].plain) {
            let mut bytes = [1; WINDOW];
            bytes[0] = head;
            let (run, end) = record::<WIDE, TIMES>(&codes, &bytes, 0, WINDOW).ok().expect("a plain record");
            assert_eq!((run.count, end), (1, usize::from(length::<WIDE, TIMES>(head))), "{head:x}");
            plain += 1;
        }
        assert!(plain >= 4 * KINDS, "{plain}");
    }

    #[test]
    fn lengths_without_a_table_are_those_of_records() {
        lengths::<false, false>();
        lengths::<false, true>();
        lengths::<true, false>();
        lengths::<true, true>();
    }

    /// Eleven bytes once stood for 2^63 references.
    #[test]
    fn a_record_stands_for_so_many_references_and_no_more() {
        for (more, fits) in [(MOST_RUN - 1, true), (MOST_RUN, false), (u64::MAX, false)] {
            let mut bytes = Header::wide(false, [4; KINDS]).bytes();
            bytes.push(REPEAT);
            let mut left = more;
            while left >= 0x80 {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
            let mut reader = Reader::new(Box::new(std::io::Cursor::new(bytes)), Format::Pdats64).unwrap();
            match reader.read(&mut Batch::new()) {
                Ok(there) => assert!(fits && there, "{more}"),
                Err(error) => assert!(!fits && error.to_string().contains("4294967296"), "{more}: {error}"),
            }
        }
    }

    /// Where times are said not to be, wherever in the input.
    #[test]
    fn a_time_code_without_times_has_no_meaning() {
        for (time, after) in (1..4).flat_map(|time| [0, 3, 1000].map(|after| (time, after))) {
            let mut bytes = Header::classic(false).bytes();
            bytes.extend([0, 0, time << TIME_SHIFT]);
            bytes.extend(vec![0; after]);
            let mut reader = Reader::new(Box::new(std::io::Cursor::new(bytes)), Format::Pdats).unwrap();
            let mut batch = Batch::new();
            assert!(reader.read(&mut batch).unwrap());
            assert_eq!(batch.addresses, [4, 8]);
            let error = reader.read(&mut batch).unwrap_err();
            assert!(matches!(error, Error::Damaged { record: 3, offset: 18, .. }), "{error}");
        }
    }
}
