//! JSON as all our documents have it. What a document says is a type that derives `Serialize`; `serde_json` writes it down.

use std::fmt::Display;
use std::io::{self, Write};

use refrain_sites::printable;
use serde::{Serialize, Serializer};
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};
use serde_json::value::RawValue;

/// Without spaces. Strings have more escapes than JSON asks for: some characters end a line for some readers, or are an order to
/// a terminal. Numbers are as Rust writes them.
struct Compact;

impl Formatter for Compact {
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        write!(out, "{value}")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        match text.bytes().all(|byte| byte < 0x7f) {
            true => out.write_all(text.as_bytes()),
            false => out.write_all(printable(text).as_bytes()),
        }
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::Backspace => out.write_all(b"\\u0008"),
            CharEscape::FormFeed => out.write_all(b"\\u000c"),
            other => CompactFormatter.write_char_escape(out, other),
        }
    }
}

/// Writes one value.
pub fn write<W: Write>(value: &(impl Serialize + ?Sized), out: W) -> io::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, Compact))?;
    Ok(())
}

/// A document by itself, on a line. Its first member is `schema`: which one it is, and the version of its form. `schemas/`
/// has them all.
pub fn document(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    write(document, &mut *out)?;
    out.write_all(b"\n")?;
    out.flush()
}

pub fn text(value: &(impl Serialize + ?Sized)) -> String {
    let mut bytes = Vec::new();
    write(value, &mut bytes).expect("a vector takes all");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// A number with the digits that are given.
pub fn number(digits: String) -> Box<RawValue> {
    RawValue::from_string(digits).expect("digits are a number")
}

/// For `serialize_with`: pairs as one object, in their order.
pub fn pairs<K: Serialize, V: Serialize, S: Serializer>(pairs: &[(K, V)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// For `serialize_with`: what is shown as a text.
pub fn shown<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &(impl Serialize + ?Sized), expected: &str) {
        assert_eq!(text(value), expected);
    }

    #[test]
    fn strings() {
        check("", r#""""#);
        check("MPI_INT", r#""MPI_INT""#);
        check("a\"b\\c", r#""a\"b\\c""#);
        check("a\nb\r\tc", r#""a\nb\r\tc""#);
        check("\0\x08\x0c\x1f\x7f", r#""\u0000\u0008\u000c\u001f\u007f""#);
        check("Käse\u{2028}", "\"Käse\\u2028\"");
        check("\u{9b}31m\u{202e}", r#""\u009b31m\u202e""#);
    }

    #[test]
    fn numbers() {
        check(&[0.0, 1.5, 1e-7, 1e21], "[0,1.5,0.0000001,1000000000000000000000]");
        check(&u128::MAX, &u128::MAX.to_string());
        check(&number("0.500000".into()), "0.500000");
    }

    #[test]
    fn documents() {
        #[derive(Serialize)]
        struct Document {
            schema: &'static str,
            #[serde(serialize_with = "pairs")]
            options: Vec<(&'static str, u32)>,
            #[serde(serialize_with = "shown")]
            ranks: refrain_fold::ranks::RankList,
        }
        let said = Document {
            schema: "refrain-info-1",
            options: vec![("b", 1), ("a", 2)],
            ranks: [0, 1, 2].into_iter().collect(),
        };
        let mut out = Vec::new();
        document(&said, &mut out).unwrap();
        let expected = "{\"schema\":\"refrain-info-1\",\"options\":{\"b\":1,\"a\":2},\"ranks\":\"0-2\"}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
