//! Samples with addresses, as `perf script` prints them after `perf mem record` or `perf record -d`:
//!
//! ```text
//!   cpu/mem-loads,ldlat=30/P:     7ffd4a1b2c38     55d0c0ffee12
//! ```
//!
//! That is `-F event,addr,ip`. What perf prints before the event and behind the instruction's address is passed over; between them
//! there may be where the data came from (`data_src`), which says more surely than the event's name what was done.

use super::{Cursor, counted, lines};
use crate::error::Fault;
use crate::input::Input;
use crate::kind::{ESCAPE, FETCH, READ, SUPERVISOR_READ, WRITE};
use crate::reader::Decode;
use crate::{Batch, Fields, Reference};

const PCS: Fields = Fields { pcs: true, ..Fields::NONE };

#[derive(Default)]
pub(crate) struct Decoder {
    /// Samples without an address.
    without: u64,
    /// Neither the event nor the source of the data says what was done.
    unknown: u64,
}

impl Decode for Decoder {
    fn fields(&self) -> Fields {
        PCS
    }

    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        lines(input, batch, |cursor, batch| self.line(cursor, batch))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        counted(
            &mut notes,
            self.without,
            "sample without an address was passed over",
            "samples without an address were passed over",
        );
        counted(
            &mut notes,
            self.unknown,
            "sample does not say whether it is a read or a write, and is kept as kind 3 (unknown)",
            "samples do not say whether they are reads or writes, and are kept as kind 3 (unknown)",
        );
        notes
    }
}

impl Decoder {
    fn line(&mut self, cursor: &mut Cursor<'_>, batch: &mut Batch) -> Result<(), &'static str> {
        let line = cursor.line();
        if line.trim_ascii().is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        let (event, rest) = event(line).ok_or(FORM)?;
        let (address, behind) = first(rest).ok_or(FORM)?;
        let address = hex(address).ok_or(FORM)?;
        let source = behind.iter().rposition(|byte| *byte == b'|');
        let pc = match source {
            // What the source of the data ends with are words: `BLK  N/A`.
            Some(bar) => words(&behind[bar + 1..]).find_map(hex),
            None => words(behind).next().and_then(hex),
        };
        let pc = pc.ok_or(FORM)?;
        if address == 0 {
            self.without += 1;
            return Ok(());
        }
        let kind = operation(behind).or_else(|| by_name(event)).unwrap_or(ESCAPE);
        self.unknown += u64::from(kind == ESCAPE);
        // The upper half of all addresses is the kernel's.
        let supervisor = if pc >> 63 == 1 && kind != ESCAPE { SUPERVISOR_READ } else { 0 };
        batch.push(PCS, Reference { kind: kind + supervisor, address, pc, ..Reference::default() });
        Ok(())
    }
}

const FORM: &str =
    "a line has an event, an address and the instruction's address: `perf script -F event,addr,ip`";

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty())
}

/// The first word, and what follows it.
fn first(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    (end > 0).then(|| line.split_at(end))
}

/// The event and what follows it. The time before it ends with a colon too, but is a number.
fn event(mut line: &[u8]) -> Option<(&[u8], &[u8])> {
    loop {
        let (word, rest) = first(line)?;
        let is_time = word.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b':'));
        if word.ends_with(b":") && !is_time && words(rest).next().and_then(hex).is_some() {
            return Some((word, rest));
        }
        line = rest;
    }
}

/// What `|OP LOAD|` says.
fn operation(source: &[u8]) -> Option<u8> {
    let mut parts = source.split(|byte| *byte == b'|').map(<[u8]>::trim_ascii);
    match parts.find_map(|part| part.strip_prefix(b"OP "))? {
        b"LOAD" => Some(READ),
        b"STORE" => Some(WRITE),
        b"EXEC" => Some(FETCH),
        _ => None,
    }
}

fn by_name(event: &[u8]) -> Option<u8> {
    let has = |word: &[u8]| event.windows(word.len()).any(|some| some.eq_ignore_ascii_case(word));
    match (has(b"load"), has(b"store")) {
        (true, false) => Some(READ),
        (false, true) => Some(WRITE),
        _ => None,
    }
}

fn hex(word: &[u8]) -> Option<u64> {
    if word.starts_with(b"+") {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<(u8, u64, u64)>) {
        let bytes = format!("{line}\n").into_bytes();
        let (mut cursor, mut batch) = (Cursor { bytes: &bytes, at: 0 }, Batch::new());
        let done = Decoder::default().line(&mut cursor, &mut batch);
        let found = batch.iter().next().map(|found| (found.kind, found.address, found.pc));
        assert_eq!(found, expected, "{line}: {done:?}");
    }

    #[test]
    fn samples() {
        check(
            "cpu/mem-loads,ldlat=30/P:     7ffd4a1b2c38     55d0c0ffee12",
            Some((0, 0x7ffd_4a1b_2c38, 0x55d0_c0ff_ee12)),
        );
        check("   cpu/mem-stores/P:  10 20 main+0x1f (/tmp/a b)", Some((1, 0x10, 0x20)));
        check("app  77/77 [001]  4.123456:  1 mem-loads:  10 20 add (/tmp/a)", Some((0, 0x10, 0x20)));
        // The kernel's, and one that says nothing.
        check(
            "cpu/mem-loads/: ffff888100000000 ffffffff81000000 copy",
            Some((4, 0xffff_8881_0000_0000, 0xffff_ffff_8100_0000)),
        );
        check("page-faults: 1000 2000", Some((3, 0x1000, 0x2000)));
        let source = "68100842 |OP STORE|LVL L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A";
        check(&format!("ibs_op//: 1000 {source}   401136 main"), Some((1, 0x1000, 0x40_1136)));
        check("cpu/mem-loads/: 0 401136", None);
    }

    #[test]
    fn no_samples() {
        for line in [
            "cpu/mem-loads/: 1000",
            "1000 2000",
            "cpu/mem-loads/: x 1000",
            ":",
            "a: b",
            "mem-loads: 10 |",
            "mem-loads:",
        ] {
            check(line, None);
        }
    }
}
