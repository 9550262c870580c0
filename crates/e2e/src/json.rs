//! What Refrain prints as JSON. Objects keep the order of their keys, and a key stands in them once.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Int(i64),
    /// A number that is not whole.
    Decimal(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn parse(text: &str) -> Result<Json, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
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
            Json::Decimal(number) => write!(f, "{number}"),
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

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
        from.deserialize_any(AnyJson)
    }
}

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        i64::try_from(value).map(Json::Int).map_err(|_| E::custom(format_args!("{value} is too large")))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Decimal(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = from.next_element()? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        let mut members: Vec<(String, Json)> = Vec::new();
        while let Some((key, value)) = from.next_entry::<String, Json>()? {
            if members.iter().any(|member| member.0 == key) {
                return Err(A::Error::custom(format_args!("the key {key:?} stands twice in one object")));
            }
            members.push((key, value));
        }
        Ok(Json::Object(members))
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
        check("[1.5,-2e3]", "[1.5,-2000]");
        check(r#"{"b":1,"a":{"x":null}}"#, r#"{"b":1,"a":{"x":null}}"#);
        check(r#""a\u0009\"\\\n""#, r#""a\t\"\\\n""#);
    }

    #[test]
    fn what_is_not_json() {
        for text in ["", "[1 2]", "1 1", "1.5.1", "\"a\nb\"", "\"open"] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
        let twice = Json::parse("{\"a\":1,\"a\":2}").unwrap_err();
        assert!(twice.starts_with("the key \"a\" stands twice in one object"), "{twice}");
    }
}
