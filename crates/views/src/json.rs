//! Writing JSON, in the order we choose, without building it first. We never read any, and a line a call leaves no
//! room for a tree of values, so this is all we need of it.

use std::fmt::Write;

use refrain_sites::push_plain;

pub fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // More than JSON asks for: some of it ends a line for some readers, or is an order to a terminal.
            c => push_plain(c, out),
        }
    }
    out.push('"');
}

/// An object being written: `{"key":value,...}`.
pub struct Object<'a> {
    out: &'a mut String,
    first: bool,
}

impl<'a> Object<'a> {
    pub fn new(out: &'a mut String) -> Object<'a> {
        out.push('{');
        Object { out, first: true }
    }

    /// An object that is a document by itself: which one, and the version of its form. `schemas/` has them all.
    pub fn document(out: &'a mut String, name: &str) -> Object<'a> {
        let mut object = Object::new(out);
        object.text("schema", &format!("refrain-{name}-1"));
        object
    }

    /// Writes the key; the value is up to the caller.
    pub fn key(&mut self, key: &str) -> &mut String {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        string(key, self.out);
        self.out.push(':');
        self.out
    }

    pub fn text(&mut self, key: &str, value: &str) -> &mut Self {
        string(value, self.key(key));
        self
    }

    /// For what JSON writes as Rust does: integers, booleans, finite floats.
    pub fn plain(&mut self, key: &str, value: impl std::fmt::Display) -> &mut Self {
        let _ = write!(self.key(key), "{value}");
        self
    }

    pub fn end(self) {
        self.out.push('}');
    }
}

/// `[a,b,...]`, each element written by the closure.
pub fn array<T>(items: impl IntoIterator<Item = T>, out: &mut String, mut write: impl FnMut(T, &mut String)) {
    out.push('[');
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut out = String::new();
        string(text, &mut out);
        assert_eq!(out, expected);
    }

    #[test]
    fn strings() {
        check("", r#""""#);
        check("MPI_INT", r#""MPI_INT""#);
        check("a\"b\\c", r#""a\"b\\c""#);
        check("a\nb\r\tc", r#""a\nb\r\tc""#);
        check("\0\x1f\x7f", r#""\u0000\u001f\u007f""#);
        check("Käse\u{2028}", "\"Käse\\u2028\"");
        check("\u{9b}31m\u{202e}", r#""\u009b31m\u202e""#);
    }

    #[test]
    fn objects_and_arrays() {
        let mut out = String::new();
        let mut object = Object::new(&mut out);
        object.plain("a", 1).text("b", "x").plain("c", true);
        array([1, 2, 3], object.key("d"), |n, out| out.push_str(&n.to_string()));
        object.end();
        assert_eq!(out, r#"{"a":1,"b":"x","c":true,"d":[1,2,3]}"#);
        let mut out = String::new();
        Object::new(&mut out).end();
        assert_eq!(out, "{}");
        let mut out = String::new();
        Object::document(&mut out, "info").end();
        assert_eq!(out, r#"{"schema":"refrain-info-1"}"#);
    }
}
