//! Names that others gave, fit for a line on a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character can end a line, give a terminal orders or turn the order around in which others are shown.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Such characters written as in JSON: `name\u001b[2J`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    text.chars().for_each(|c| push_printable(c, &mut out));
    Cow::Owned(out)
}

/// One character of it.
fn push_printable(c: char, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if is_hidden(c) => {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_is_not_to_be_seen_is_told() {
        for (text, shown) in [
            ("node-17.cluster", "node-17.cluster"),
            ("größe.c", "größe.c"),
            ("a\nranks  9\r\t", r"a\nranks  9\r\t"),
            ("\u{1b}[2Jx\u{7f}\u{9b}31m", r"\u001b[2Jx\u007f\u009b31m"),
            ("a\u{202e}cba\u{2028}b", r"a\u202ecba\u2028b"),
            ("a\u{61c}b", r"a\u061cb"),
            (r"back\slash", r"back\slash"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
