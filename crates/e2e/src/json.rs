//! As much JSON as the tests need: objects keep the order of their keys.

use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Int(i64),
    /// A number that is not whole, as it is written.
    Decimal(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut parser = Parser { bytes: text.as_bytes(), at: 0 };
        let value = parser.value()?;
        parser.space();
        if parser.at < parser.bytes.len() {
            return Err(parser.wrong("the end"));
        }
        Ok(value)
    }

    /// A member of an object; null where there is none.
    pub fn get(&self, key: &str) -> &Json {
        match self {
            Json::Object(members) => members.iter().find(|m| m.0 == key).map_or(&Json::Null, |m| &m.1),
            _ => &Json::Null,
        }
    }

    pub fn has(&self, key: &str) -> bool {
        matches!(self, Json::Object(members) if members.iter().any(|m| m.0 == key))
    }

    pub fn text(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    pub fn int(&self) -> Option<i64> {
        if let Json::Int(number) = self { Some(*number) } else { None }
    }

    pub fn list(&self) -> &[Json] {
        if let Json::List(list) = self { list } else { &[] }
    }

    pub fn members(&self) -> &[(String, Json)] {
        if let Json::Object(members) = self { members } else { &[] }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Int(number) => write!(f, "{number}"),
            Json::Decimal(text) => f.write_str(text),
            Json::Text(text) => write!(f, "{text:?}"),
            Json::List(list) => {
                for (i, value) in list.iter().enumerate() {
                    write!(f, "{}{value}", if i == 0 { "[" } else { "," })?;
                }
                f.write_str(if list.is_empty() { "[]" } else { "]" })
            }
            Json::Object(members) => {
                for (i, (key, value)) in members.iter().enumerate() {
                    write!(f, "{}{key:?}:{value}", if i == 0 { "{" } else { "," })?;
                }
                f.write_str(if members.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn wrong(&self, expected: &str) -> String {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let rest = String::from_utf8_lossy(&rest[..rest.len().min(20)]);
        format!("expected {expected} at byte {}, found {rest:?}", self.at)
    }

    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, word: &str) -> bool {
        self.space();
        let found = self.bytes[self.at..].starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    fn need(&mut self, word: &str) -> Result<(), String> {
        if self.take(word) { Ok(()) } else { Err(self.wrong(word)) }
    }

    fn value(&mut self) -> Result<Json, String> {
        self.space();
        match self.bytes.get(self.at) {
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'[') => {
                let mut list = Vec::new();
                self.need("[")?;
                while !self.take("]") {
                    if !list.is_empty() {
                        self.need(",")?;
                    }
                    list.push(self.value()?);
                }
                Ok(Json::List(list))
            }
            Some(b'{') => {
                let mut members: Vec<(String, Json)> = Vec::new();
                self.need("{")?;
                while !self.take("}") {
                    if !members.is_empty() {
                        self.need(",")?;
                    }
                    self.space();
                    let key = self.string()?;
                    if members.iter().any(|m| m.0 == key) {
                        return Err(format!("the key {key:?} stands twice in one object"));
                    }
                    self.need(":")?;
                    members.push((key, self.value()?));
                }
                Ok(Json::Object(members))
            }
            Some(b'-' | b'0'..=b'9') => {
                let start = self.at;
                self.at += 1;
                while self.bytes.get(self.at).is_some_and(|&b| b.is_ascii_digit() || b".eE+-".contains(&b)) {
                    self.at += 1;
                }
                let digits = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or("");
                if digits.contains(['.', 'e', 'E']) {
                    let number = digits.parse::<f64>().map(|_| Json::Decimal(digits.to_owned()));
                    return number.map_err(|_| self.wrong("a number"));
                }
                digits.parse().map(Json::Int).map_err(|_| self.wrong("a whole number"))
            }
            _ if self.take("null") => Ok(Json::Null),
            _ if self.take("true") => Ok(Json::Bool(true)),
            _ if self.take("false") => Ok(Json::Bool(false)),
            _ => Err(self.wrong("a value")),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        self.need("\"")?;
        let mut bytes = Vec::new();
        loop {
            let byte = *self.bytes.get(self.at).ok_or_else(|| self.wrong("the end of a string"))?;
            self.at += 1;
            match byte {
                b'"' => return String::from_utf8(bytes).map_err(|_| self.wrong("UTF-8")),
                b'\\' => {
                    let escape = *self.bytes.get(self.at).ok_or_else(|| self.wrong("an escape"))?;
                    self.at += 1;
                    let plain = match escape {
                        b'n' => '\n',
                        b't' => '\t',
                        b'r' => '\r',
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'u' => {
                            let digits = self.bytes.get(self.at..self.at + 4).unwrap_or(&[]);
                            let digits = std::str::from_utf8(digits).unwrap_or("");
                            let code =
                                u32::from_str_radix(digits, 16).map_err(|_| self.wrong("4 hex digits"))?;
                            self.at += 4;
                            char::from_u32(code).ok_or_else(|| self.wrong("a character"))?
                        }
                        b'"' | b'\\' | b'/' => char::from(escape),
                        _ => return Err(self.wrong("an escape")),
                    };
                    bytes.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
                }
                0..0x20 => return Err(self.wrong("no bare control character")),
                _ => bytes.push(byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[track_caller]
    fn check(text: &str, shown: &str) {
        let found = Json::parse(text).map_or_else(|e| format!("error: {e}"), |j| j.to_string());
        assert_eq!(found, shown);
    }

    #[test]
    fn values() {
        check("null", "null");
        check(" [ ] ", "[]");
        check("[1,-2,[true,false]]", "[1,-2,[true,false]]");
        check("[1.5,-2e3]", "[1.5,-2e3]");
        check(r#"{"b":1,"a":{"x":null}}"#, r#"{"b":1,"a":{"x":null}}"#);
        check(r#""a\u0009\"\\\n""#, r#""a\t\"\\\n""#);
    }

    #[test]
    fn what_is_not_json() {
        check("", "error: expected a value at byte 0, found \"\"");
        check("[1 2]", "error: expected , at byte 3, found \"2]\"");
        check("{\"a\":1,\"a\":2}", "error: the key \"a\" stands twice in one object");
        check("1 1", "error: expected the end at byte 2, found \"1\"");
        check("1.5.1", "error: expected a number at byte 5, found \"\"");
        check("\"a\nb\"", "error: expected no bare control character at byte 3, found \"b\\\"\"");
        check("\"open", "error: expected the end of a string at byte 5, found \"\"");
    }
}
