//! Which format a trace is in: as the user says, as its first bytes say, as its name says.

use std::io::Read;

use crate::compression::{peek, unpacked};
use crate::error::Error;
use crate::{Compression, Format, Reader, packed, pdats, pdi};

/// Enough of a trace to see what it is; the text of a tool begins with lines of its own.
const HEAD: usize = 1 << 14;

/// Opens a trace, compressed or not. Without a format, its bytes and then its name say what it is; the name of what has
/// none is "-".
pub fn open(from: Box<dyn Read + Send>, name: &str, format: Option<Format>) -> Result<Reader, Error> {
    let failed = |error| Error::Read { record: 1, offset: 0, error };
    let from = unpacked(from).map_err(failed)?;
    if let Some(format) = format {
        return Reader::new(from, format);
    }
    let mut peeked = peek(from, HEAD);
    match (of_bytes(&peeked.head, of_name(name).0), peeked.failure.take()) {
        (Ok(format), failure) => {
            peeked.failure = failure;
            Reader::new(peeked.whole(), format)
        }
        (Err(_), Some(error)) => Err(failed(error)),
        (Err(unknown), None) => Err(unknown),
    }
}

/// The format and the compression that a name stands for: `app.pdt.gz`.
pub fn of_name(name: &str) -> (Option<Format>, Compression) {
    let (stem, compression) = Compression::of_name(name);
    let extension = stem.rsplit_once('.').map_or("", |(_, extension)| extension);
    (Format::named(extension), compression)
}

/// Compressions that are not read, by how their files begin.
const OTHERS: [(&[u8], &str); 5] = [
    (b"LZIP", "lzip"),
    (b"PK\x03\x04", "zip"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
    (b"\x1f\xa0", "lzh"),
    (b"\x1f\x1e", "pack"),
];

fn of_bytes(head: &[u8], name: Option<Format>) -> Result<Format, Error> {
    let marked = if head.starts_with(&pdats::MAGIC) {
        Some(Format::Pdats)
    } else if head.starts_with(&pdi::MAGIC) {
        Some(Format::Pdi)
    } else if head.starts_with(&packed::MAGIC) {
        Some(Format::Rfa)
    } else {
        None
    };
    match (marked, name) {
        (Some(format), _) => Ok(format),
        (None, Some(Format::Din)) | (None, None) => {
            match OTHERS.iter().find(|(mark, _)| head.starts_with(mark)) {
                Some((_, tool)) => Err(Error::Unknown {
                    what: format!(
                        "it is compressed with {tool}; gzip, zstd, xz, bzip2, lz4 and compress are read, others through a pipe"
                    ),
                }),
                None => of_text(head, name),
            }
        }
        (None, Some(format)) => Ok(format),
    }
}

/// Lines that are not a tool's own words.
fn of_text(head: &[u8], name: Option<Format>) -> Result<Format, Error> {
    let line = head
        .split(|byte| *byte == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok())
        .find(|line| !line.trim().is_empty() && !line.starts_with("=="));
    let Some(line) = line else {
        return name.filter(|_| head.is_empty()).ok_or_else(|| unknown("nothing in it says what it is"));
    };
    let columns = line.split_whitespace().count();
    let first = line.split_whitespace().next().unwrap_or("");
    if columns == 2 && matches!(first, "I" | "L" | "S" | "M") && line.contains(',') {
        return Ok(Format::Lackey);
    }
    if is_view(line) {
        return Ok(Format::Drmemtrace);
    }
    if line.contains("|OP ") || line.contains("mem-loads") || line.contains("mem-stores") {
        return Ok(Format::Perf);
    }
    let hex = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    // How many columns are numbers; what follows them is text.
    let numbers = |from: usize| line.split_whitespace().skip(from).take_while(|word| hex(word)).count();
    if matches!(first, "r" | "w" | "i" | "m" | "c" | "v") && numbers(1) >= 2 {
        return Ok(Format::Xdin);
    }
    let is_kind = matches!(first.as_bytes(), [b'0'..=b'7']);
    match numbers(0) {
        0 | 1 => name.ok_or_else(|| unknown("neither its name nor its first bytes are those of one")),
        _ if !is_kind => name.ok_or_else(|| unknown("neither its name nor its first bytes are those of one")),
        2 => Ok(Format::Din),
        4 if columns == 4 => Ok(Format::DinSize),
        3 if columns == 3 => Err(Error::Unknown {
            what: "the third column may be instruction words or times; say `--from din-word` or `--from din-time`"
                .to_owned(),
        }),
        _ => name.ok_or_else(|| unknown("it has more columns than any; `--from din` takes the first two")),
    }
}

/// The first lines of drmemtrace's view, or a record of it.
fn is_view(line: &str) -> bool {
    let record = line.split_once(": ").is_some_and(|(numbers, rest)| {
        let digits = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b' '));
        digits(numbers) && (rest.contains(" byte(s) @ 0x") || rest.contains("<marker: "))
    });
    record || line == "Output format:" || line.starts_with("<--record#->")
}

fn unknown(why: &str) -> Error {
    let names: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
    Error::Unknown {
        what: format!("the format is not known: {why}; say which with `--from`: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &[u8], name: &str, expected: Result<Format, &str>) {
        match (of_bytes(head, of_name(name).0), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn by_content() {
        check(b"0 1000\n1 2000\n", "-", Ok(Format::Din));
        check(b"2 1000 04 0\n", "a.din", Ok(Format::DinSize));
        check(b"2 1000 8fa40000\n", "a.din", Err("din-word"));
        check(b"2 1000 8fa40000\n", "a.dinw.gz", Ok(Format::DinWord));
        check(b"==1== Lackey\nI  04016b80,3\n L 1ffeffe7e0,8\n", "-", Ok(Format::Lackey));
        check(&[&pdats::MAGIC[..], &[2]].concat(), "wrong.din", Ok(Format::Pdats));
        check(&pdi::MAGIC, "-", Ok(Format::Pdi));
        check(&packed::MAGIC, "wrong.pdt", Ok(Format::Rfa));
        check(b"0 0x1000\n", "-", Ok(Format::Din));
        check(b"r 1000 4\n", "-", Ok(Format::Xdin));
        check(b"c 1000 4 text\n", "a.din", Ok(Format::Xdin));
        check(b"0 1000 ; text\n", "-", Ok(Format::Din));
        check(b"0 1000 main a b\n", "a.din", Ok(Format::Din));
        check(b"Output format:\n<--record#->", "-", Ok(Format::Drmemtrace));
        check(b"  7  1:  99 read 8 byte(s) @ 0x10 by PC 0x20\n", "a.txt", Ok(Format::Drmemtrace));
        check(b" cpu/mem-loads,ldlat=30/P:  10  20\n", "-", Ok(Format::Perf));
    }

    #[test]
    fn by_name() {
        check(b"", "a.din", Ok(Format::Din));
        check(&[0; 9], "a.raw", Ok(Format::Raw));
        check(&[0; 17], "dir.d/a.rawt.xz", Ok(Format::RawTime));
    }

    #[test]
    fn not_at_all() {
        check(b"", "-", Err("--from"));
        check(&[0; 9], "a", Err("--from"));
        check(b"hello, world\n", "a.txt", Err("pdt64"));
        check(b"0 1 2 3 4\n", "a.txt", Err("--from din"));
        check(b"9 1000\n", "a.txt", Err("--from"));
        check(b"LZIP\x01", "a.din.lz", Err("lzip; gzip, zstd, xz, bzip2, lz4 and compress are read"));
    }
}
