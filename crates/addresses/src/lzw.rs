//! `.Z`, the files of the old `compress`: LZW with codes of 9 to 16 bits.
//!
//! Codes are written in groups of eight. When codes become longer, and after the table was cleared, the rest of the group is not used.
//! The format has neither an end nor a checksum.

use std::io::{self, Read};

pub(crate) const MARK: [u8; 2] = [0x1f, 0x9d];

const FIRST: u32 = 9;
const LAST: u32 = 16;
/// The code that clears the table, if the header says that there is one.
const CLEAR: u16 = 256;

pub(crate) struct Lzw<R> {
    from: R,
    state: Option<Box<Table>>,
    /// Unpacked, the last byte first.
    out: Vec<u8>,
    ended: bool,
    /// Waits until what stands before it was read.
    failure: Option<io::Error>,
}

struct Table {
    /// Bits of a code at most.
    most: u32,
    clears: bool,
    bits: u32,
    /// The first code that has no string yet.
    free: u32,
    /// By code: the code of all but the last byte, and that byte.
    before: Vec<u16>,
    last: Vec<u8>,
    /// The code before, and the first byte of its string.
    previous: Option<(u16, u8)>,
    /// A group of codes, and which bits are used.
    group: [u8; LAST as usize],
    used: u32,
    have: u32,
}

impl<R: Read> Lzw<R> {
    pub(crate) fn new(from: R) -> Lzw<R> {
        Lzw { from, state: None, out: Vec::new(), ended: false, failure: None }
    }

    fn header(&mut self) -> io::Result<Box<Table>> {
        let mut header = [0; 3];
        self.from.read_exact(&mut header).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => wrong("its header is cut short"),
            _ => error,
        })?;
        let (most, clears) = (u32::from(header[2] & 0x1f), header[2] & 0x80 != 0);
        if header[..2] != MARK || header[2] & 0x60 != 0 || !(FIRST..=LAST).contains(&most) {
            return Err(wrong("its header is not known"));
        }
        Ok(Box::new(Table {
            most,
            clears,
            bits: FIRST,
            free: if clears { 257 } else { 256 },
            before: vec![0; 1 << LAST],
            last: vec![0; 1 << LAST],
            previous: None,
            group: [0; LAST as usize],
            used: 0,
            have: 0,
        }))
    }

    /// Unpacks a code into `out`. False at the end.
    fn step(&mut self) -> io::Result<bool> {
        if self.state.is_none() {
            self.state = Some(self.header()?);
        }
        let Some(table) = &mut self.state else { return Ok(false) };
        if table.bits < table.most && table.free >> table.bits != 0 {
            table.bits += 1;
            table.used = table.have;
        }
        let Some(code) = table.code(&mut self.from)? else { return Ok(false) };
        if code == CLEAR && table.clears {
            table.free = 257;
            table.previous = None;
            table.bits = FIRST;
            table.used = table.have;
            return Ok(true);
        }
        table.string(code, &mut self.out)?;
        Ok(true)
    }
}

impl Table {
    fn code(&mut self, from: &mut impl Read) -> io::Result<Option<u16>> {
        if self.used + self.bits > self.have {
            let group = &mut self.group[..self.bits as usize];
            let mut read = 0;
            while read < group.len() {
                match from.read(&mut group[read..]) {
                    Ok(0) => break,
                    Ok(bytes) => read += bytes,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            (self.used, self.have) = (0, 8 * read as u32);
            if self.have < self.bits {
                // A file ends with the byte that holds the last bits of its last code.
                return if read == 0 { Ok(None) } else { Err(wrong("its last code is cut short")) };
            }
        }
        let (byte, shift) = ((self.used / 8) as usize, self.used % 8);
        let some = (0..3).map(|i| u32::from(self.group.get(byte + i).copied().unwrap_or(0)) << (8 * i));
        let code = some.sum::<u32>() >> shift & ((1 << self.bits) - 1);
        self.used += self.bits;
        Ok(Some(code as u16))
    }

    /// Puts the string of a code on `out`, its last byte first, and learns a new one.
    fn string(&mut self, code: u16, out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        let mut at = code;
        match self.previous {
            None if code > 255 => return Err(wrong("its first code is not a byte")),
            // The string that is about to be learned: that before and its own first byte.
            Some((previous, first)) if u32::from(code) == self.free => {
                out.push(first);
                at = previous;
            }
            _ if u32::from(code) >= self.free || self.clears && code == CLEAR => {
                return Err(wrong("a code has no string yet"));
            }
            _ => {}
        }
        // Each code's string is made of one with a lower code, so this ends.
        while at > 255 {
            out.push(self.last[usize::from(at)]);
            at = self.before[usize::from(at)];
        }
        out.push(at as u8);
        if let Some((previous, _)) = self.previous
            && self.free < 1 << self.most
        {
            self.before[self.free as usize] = previous;
            self.last[self.free as usize] = at as u8;
            self.free += 1;
        }
        self.previous = Some((code, at as u8));
        Ok(())
    }
}

impl<R: Read> Read for Lzw<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while count < into.len() {
            if let Some(byte) = self.out.pop() {
                into[count] = byte;
                count += 1;
            } else if self.ended {
                break;
            } else {
                match self.step() {
                    Ok(more) => self.ended = !more,
                    Err(error) => {
                        self.out.clear();
                        (self.ended, self.failure) = (true, Some(error));
                    }
                }
            }
        }
        match self.failure.take() {
            Some(error) if count == 0 => Err(error),
            waits => {
                self.failure = waits;
                Ok(count)
            }
        }
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the .Z file is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Lzw::new(bytes).read_to_end(&mut out).map(|_| out)
    }

    /// Codes in groups of eight, as `compress` writes them.
    struct Groups {
        out: Vec<u8>,
        codes: Vec<u16>,
        bits: u32,
    }

    impl Groups {
        fn put(&mut self, code: u16) {
            self.codes.push(code);
            if self.codes.len() == 8 {
                self.close(false);
            }
        }

        /// The last group of all is not filled up.
        fn close(&mut self, last: bool) {
            let mut bytes = vec![0u8; self.bits as usize];
            for (i, code) in self.codes.iter().enumerate() {
                for bit in 0..self.bits {
                    let at = i * self.bits as usize + bit as usize;
                    bytes[at / 8] |= ((code >> bit & 1) as u8) << (at % 8);
                }
            }
            if last {
                bytes.truncate((self.codes.len() * self.bits as usize).div_ceil(8));
            }
            if !self.codes.is_empty() {
                self.out.extend(bytes);
            }
            self.codes.clear();
        }
    }

    /// `clear_every`: the table is cleared when it has been full for so many codes.
    fn pack(bytes: &[u8], most: u32, clear_every: Option<u32>) -> Vec<u8> {
        let clears = clear_every.is_some();
        let header = [MARK[0], MARK[1], most as u8 | if clears { 0x80 } else { 0 }];
        let mut groups = Groups { out: header.to_vec(), codes: Vec::new(), bits: FIRST };
        let first = if clears { 257 } else { 256 };
        let (mut strings, mut free): (HashMap<(u16, u8), u16>, u32) = (HashMap::new(), first);
        let (mut current, mut full): (Option<u16>, u32) = (None, 0);
        // What the reader has learned, which is one code behind.
        let mut theirs = first;
        let mut begun = false;
        let emit = |groups: &mut Groups, code: u16, theirs: &mut u32, begun: &mut bool| {
            if groups.bits < most && *theirs >> groups.bits != 0 {
                groups.close(false);
                groups.bits += 1;
            }
            groups.put(code);
            if *begun && *theirs < 1 << most {
                *theirs += 1;
            }
            *begun = true;
        };
        for &byte in bytes {
            let Some(code) = current else {
                current = Some(u16::from(byte));
                continue;
            };
            if let Some(longer) = strings.get(&(code, byte)) {
                current = Some(*longer);
                continue;
            }
            emit(&mut groups, code, &mut theirs, &mut begun);
            if free < 1 << most {
                strings.insert((code, byte), free as u16);
                free += 1;
            } else {
                full += 1;
            }
            if clear_every.is_some_and(|every| full >= every) {
                if groups.bits < most && theirs >> groups.bits != 0 {
                    groups.close(false);
                    groups.bits += 1;
                }
                groups.put(CLEAR);
                groups.close(false);
                groups.bits = FIRST;
                strings.clear();
                (free, theirs, begun, full) = (first, first, false, 0);
            }
            current = Some(u16::from(byte));
        }
        if let Some(code) = current {
            emit(&mut groups, code, &mut theirs, &mut begun);
        }
        groups.close(true);
        groups.out
    }

    fn text(lines: u32) -> Vec<u8> {
        (0..lines)
            .flat_map(|i| format!("{} {:x}\n", i % 3, 0x1000 + i.wrapping_mul(i) % 7919).into_bytes())
            .collect()
    }

    #[test]
    fn codes_of_all_lengths() {
        for bytes in [vec![], vec![7], vec![b'a'; 5000], text(30_000)] {
            for most in FIRST..=LAST {
                for clears in [None, Some(1), Some(1000)] {
                    let packed = pack(&bytes, most, clears);
                    assert!(unpack(&packed).unwrap() == bytes, "{most} {clears:?} {}", bytes.len());
                }
            }
        }
    }

    /// By hand: the codes of `compress` for "aaaaa" are 97, 257 (which is not known yet), 257.
    #[test]
    fn a_string_that_is_about_to_be_learned() {
        let bits = 97u32 | 257 << 9 | 257 << 18;
        let file = [&[0x1f, 0x9d, 0x90][..], &bits.to_le_bytes()].concat();
        assert_eq!(unpack(&file).unwrap(), b"aaaaa");
    }

    #[test]
    fn what_no_writer_writes() {
        let codes = |codes: &[u32]| {
            let bits = codes.iter().rev().fold(0u64, |bits, code| bits << 9 | u64::from(*code));
            [&[0x1f, 0x9d, 0x90][..], &bits.to_le_bytes()].concat()
        };
        for (bytes, why) in [
            (vec![0x1f, 0x9d], "cut short"),
            (vec![0x1f, 0x9d, 0x88], "header"),
            (vec![0x1f, 0x9d, 0x91], "header"),
            (vec![0x1f, 0x9d, 0xf0], "header"),
            (vec![0x1f, 0x9d, 0x90, 1], "last code"),
            (codes(&[257]), "first code"),
            (codes(&[97, 258]), "no string"),
            (codes(&[97, 98, 256, 97]), ""),
        ] {
            match unpack(&bytes) {
                Err(error) => assert!(error.to_string().contains(why) && !why.is_empty(), "{error}"),
                Ok(_) => assert!(why.is_empty(), "{why}"),
            }
        }
    }

    /// There is no checksum. Whatever is read comes from so many codes, each of at most 65,536 bytes.
    #[test]
    fn flipped_bits_and_cuts_end() {
        let packed = pack(&text(600), 11, Some(50));
        for bit in (16..8 * packed.len()).step_by(5) {
            let mut packed = packed.clone();
            packed[bit / 8] ^= 1 << (bit % 8);
            let mut out = Vec::new();
            let _ = Lzw::new(&packed[..]).read_to_end(&mut out);
            assert!(out.len() < packed.len() * (1 << 11));
        }
        for end in 0..packed.len() {
            let _ = unpack(&packed[..end]);
        }
    }

    #[test]
    fn what_stands_before_damage_is_given() {
        let whole = text(3000);
        let mut packed = pack(&whole, 12, Some(1));
        packed.truncate(3 + 9 * 20);
        // Nine bits that are all ones stand for a code that is not there yet.
        packed.extend([0xff; 9]);
        let mut lzw = Lzw::new(&packed[..]);
        let mut out = Vec::new();
        assert!(lzw.read_to_end(&mut out).is_err());
        assert!(out.len() > 160 && whole.starts_with(&out), "{}", out.len());
    }
}
