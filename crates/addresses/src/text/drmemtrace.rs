//! What the `view` tool of DynamoRIO's drmemtrace prints:
//!
//! ```text
//!           16           1:      296231 ifetch       4 byte(s) @ 0x0000000000401028 48 83 eb 01  sub $1 %rbx -> %rbx
//!           17           1:      296231 write        8 byte(s) @ 0x00007fffcb44c0d8 by PC 0x0000000000401028
//! ```
//!
//! Before the colon are the number of the record and that of the instruction, which older versions leave out; behind it is the
//! thread. Markers are in `<>`. A line of an instruction's bytes that found no room has no name.

use refrain_fold::FastMap;

use super::{Cursor, counted, lines};
use crate::error::Fault;
use crate::input::Input;
use crate::kind::{FETCH, OTHER, READ, WRITE};
use crate::reader::Decode;
use crate::{Batch, Fields, Reference};

const FIELDS: Fields = Fields { sizes: true, pcs: true, ..Fields::NONE };

/// The tool's own lines.
const WORDS: [&[u8]; 4] = [b"Output format:", b"<--record", b"-----", b"View tool results:"];

#[derive(Default)]
pub(crate) struct Decoder {
    /// Instructions that were not fetched again, as those of a repeated string instruction.
    not_fetched: u64,
    /// Prefetches and flushes.
    others: u64,
    /// The threads so far, if they are told: as the text names them, numbered as they came.
    threads: Option<FastMap<Vec<u8>, u32>>,
}

impl Decode for Decoder {
    fn fields(&self) -> Fields {
        FIELDS
    }

    fn decode(&mut self, input: &mut Input, batch: &mut Batch) -> Result<(), Fault> {
        lines(input, batch, |cursor, batch| self.line(cursor, batch))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        counted(
            &mut notes,
            self.not_fetched,
            "instruction that was not fetched was passed over",
            "instructions that were not fetched were passed over",
        );
        counted(
            &mut notes,
            self.others,
            "prefetch or flush is kept as kind 7 (other), which `simulate` passes over",
            "prefetches and flushes are kept as kind 7 (other), which `simulate` passes over",
        );
        notes
    }

    fn tell_caches(&mut self) {
        self.threads.get_or_insert_default();
    }
}

impl Decoder {
    fn line(&mut self, cursor: &mut Cursor<'_>, batch: &mut Batch) -> Result<(), &'static str> {
        let line = cursor.line();
        if line.trim_ascii().is_empty() || WORDS.iter().any(|words| line.starts_with(words)) {
            return Ok(());
        }
        let colon = line.iter().position(|byte| *byte == b':').ok_or("no number and colon begin the line")?;
        let (numbers, rest) = (&line[..colon], &line[colon + 1..]);
        if !numbers.iter().all(|byte| matches!(byte, b'0'..=b'9' | b' ')) || numbers.trim_ascii().is_empty() {
            return Err("no number and colon begin the line");
        }
        if rest.starts_with(b" total instructions") {
            return Ok(());
        }
        let rest = rest.trim_ascii_start();
        let thread =
            rest.iter().position(|byte| *byte == b' ').ok_or("a thread and a record follow the colon")?;
        if !rest[..thread].iter().all(|byte| matches!(byte, b'0'..=b'9' | b'T' | b'W' | b'.')) {
            return Err("a thread follows the colon");
        }
        let (thread, record) = (&rest[..thread], &rest[thread + 1..]);
        // A marker, or bytes of the instruction before.
        if record.starts_with(b"<") || record.starts_with(b" ") {
            return Ok(());
        }
        let before = batch.len();
        self.record(record, batch)?;
        if batch.len() > before
            && let Some(threads) = &mut self.threads
        {
            let next = u32::try_from(threads.len()).map_err(|_| "there are too many threads")?;
            let number = match threads.get(thread) {
                Some(number) => *number,
                None => *threads.entry(thread.to_vec()).or_insert(next),
            };
            batch.threads.push(number);
        }
        Ok(())
    }

    fn record(&mut self, record: &[u8], batch: &mut Batch) -> Result<(), &'static str> {
        let mut words = record.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let name = words.next().unwrap_or_default();
        let kind = match name {
            b"ifetch" => FETCH,
            b"read" => READ,
            b"write" => WRITE,
            b"iflush" | b"dflush" => OTHER,
            name if name.starts_with(b"pref") => OTHER,
            _ => return Err("a record is of a kind that is not known"),
        };
        let size = words.next().and_then(decimal).ok_or("a size follows the record's kind")?;
        let size = u16::try_from(size).map_err(|_| "a size is more than 65,535")?;
        if words.next() != Some(b"byte(s)") || words.next() != Some(b"@") {
            return Err("`byte(s) @` and an address follow the size");
        }
        let address = words.next().and_then(hex).ok_or("`byte(s) @` and an address follow the size")?;
        let pc = match kind {
            FETCH => address,
            _ if words.next() == Some(b"by") && words.next() == Some(b"PC") => {
                words.next().and_then(hex).ok_or("`by PC` and an address end the line")?
            }
            _ => return Err("`by PC` and an address end the line"),
        };
        if kind == FETCH && words.next() == Some(b"non-fetched") {
            self.not_fetched += 1;
            return Ok(());
        }
        self.others += u64::from(kind == OTHER);
        batch.push(FIELDS, Reference { kind, address, size, pc, ..Reference::default() });
        Ok(())
    }
}

fn decimal(word: &[u8]) -> Option<u64> {
    if word.starts_with(b"+") {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Behind `0x`.
fn hex(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"0x")?;
    if digits.starts_with(b"+") {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kind, address, size and instruction.
    type Found = (u8, u64, u16, u64);

    fn read(text: &str) -> Result<(Vec<Found>, Decoder), &'static str> {
        let (mut cursor, mut batch) = (Cursor { bytes: text.as_bytes(), at: 0 }, Batch::new());
        let mut decoder = Decoder::default();
        while cursor.at < text.len() {
            decoder.line(&mut cursor, &mut batch)?;
        }
        let all = batch.iter().map(|found| (found.kind, found.address, found.size, found.pc)).collect();
        Ok((all, decoder))
    }

    const VIEW: &str = "\
Output format:
<--record#-> <--instr#->: <---tid---> <record details>
------------------------------------------------------------
           1           0:      296231 <marker: version 6>
          94          68:      296231 ifetch       8 byte(s) @ 0x0000000000401012 48 8d 34 25 00 20 40 lea    0x00402000 -> %rsi
          94          68:      296231                                             00
          95          68:      296231 read         8 byte(s) @ 0x0000000000402000 by PC 0x0000000000401012
          96          69:      W0.T296232 write       16 byte(s) @ 0x00007fff00000010 by PC 0x000000000040101a
          97          69:      296231 pref-r-L1    1 byte(s) @ 0x0000000000000040 by PC 0x000000000040101a
          98          70:      296231 ifetch       2 byte(s) @ 0x0000000000401020 non-fetched instruction
          99          70:      296231 <thread 296231 exited>
View tool results:
              6 : total instructions
";

    #[test]
    fn records() {
        let (all, decoder) = read(VIEW).unwrap();
        assert_eq!(
            all,
            [
                (2, 0x40_1012, 8, 0x40_1012),
                (0, 0x40_2000, 8, 0x40_1012),
                (1, 0x7fff_0000_0010, 16, 0x40_101a),
                (7, 0x40, 1, 0x40_101a),
            ]
        );
        let notes = decoder.notes();
        assert!(notes[0].starts_with("one instruction that was not fetched"), "{notes:?}");
        assert!(notes[1].starts_with("one prefetch"), "{notes:?}");
    }

    #[test]
    fn threads_are_told_to_who_asks() {
        let view = |tell: bool| {
            let (mut cursor, mut batch) = (Cursor { bytes: VIEW.as_bytes(), at: 0 }, Batch::new());
            let mut decoder = Decoder::default();
            if tell {
                decoder.tell_caches();
            }
            while cursor.at < VIEW.len() {
                decoder.line(&mut cursor, &mut batch).unwrap();
            }
            batch.threads
        };
        assert!(view(false).is_empty());
        // The fourth is of the first thread again. What has no reference has no thread.
        assert_eq!(view(true), [0, 0, 1, 0]);
    }

    #[test]
    fn records_of_older_versions() {
        let (all, _) =
            read("         8: T342625 ifetch       3 byte(s) @ 0x00007f8aa5d16050 non-branch\n").unwrap();
        assert_eq!(all, [(2, 0x7f8a_a5d1_6050, 3, 0x7f8a_a5d1_6050)]);
    }

    #[test]
    fn no_records() {
        for line in [
            "hello",
            ":",
            "1:",
            "1: 2",
            "1: x read 8 byte(s) @ 0x10 by PC 0x20",
            "1: 2 jump 8 byte(s) @ 0x10 by PC 0x20",
            "1: 2 read 70000 byte(s) @ 0x10 by PC 0x20",
            "1: 2 read +8 byte(s) @ 0x10 by PC 0x20",
            "1: 2 read 8 byte(s) @ 10 by PC 0x20",
            "1: 2 read 8 byte(s) @ 0x10 by PC",
            "1: 2 read 8 byte(s) @ 0x10",
            "1: 2 read 8 byte(s) @ 0x10000000000000000 by PC 0x20",
        ] {
            assert!(read(&format!("{line}\n")).is_err(), "{line}");
        }
    }
}
