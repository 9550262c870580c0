//! A call on a line of JSON.

use refrain_model::{Call, Value};
use refrain_sites::Location;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::Time;
use crate::{json, value};

#[derive(Serialize)]
pub(crate) struct Line<'a> {
    rank: u32,
    thread: u32,
    number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_error: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_error: Option<u64>,
    call: &'static str,
    args: Args<'a>,
    result: Returned<'a>,
    #[serde(skip_serializing_if = "Facts::is_empty")]
    facts: Facts<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<Vec<At<'a>>>,
}

impl<'a> Line<'a> {
    pub(crate) fn of(
        call: &'a Call,
        (rank, thread): (u32, u32),
        number: u64,
        time: Time<'_>,
        site: Option<&'a [Location]>,
    ) -> Line<'a> {
        let told = time.and_then(|(told, _)| told);
        let errors = time.and_then(|(told, errors)| told.filter(|_| errors));
        let returned = told.and_then(|told| told.result).map(f64::from_bits);
        Line {
            rank,
            thread,
            number,
            start: told.map(|told| told.span.start),
            end: told.map(|told| told.span.end),
            start_error: errors.map(|told| told.start_error),
            end_error: errors.map(|told| told.end_error),
            call: call.function.name,
            args: Args(call),
            result: returned.map_or(Returned::Value(value::Json(&call.result)), Returned::Clock),
            facts: Facts(&call.facts),
            site: site.map(|places| places.iter().map(At::of).collect()),
        }
    }
}

struct Args<'a>(&'a Call);

impl Serialize for Args<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(value::args(self.0).map(|(name, value)| (name, value::Json(value))))
    }
}

enum Returned<'a> {
    Value(value::Json<'a>),
    Clock(f64),
}

impl Serialize for Returned<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Returned::Value(value) => value.serialize(to),
            // As few digits as give back all bits.
            Returned::Clock(time) if time.is_finite() => json::number(format!("{time:?}")).serialize(to),
            Returned::Clock(time) => to.collect_str(&format_args!("{time:?}")),
        }
    }
}

struct Facts<'a>(&'a [(&'static str, Value)]);

impl Facts<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut facts = to.serialize_map(None)?;
        for (i, (name, _)) in self.0.iter().enumerate() {
            let known = self.0[..i].iter().any(|(earlier, _)| earlier == name);
            let all = self.0.iter().filter(|(n, _)| n == name).map(|(_, v)| value::Json(v));
            match all.collect::<Vec<_>>().as_slice() {
                _ if known => {}
                [one] => facts.serialize_entry(name, one)?,
                // A call that makes two types (MPI_File_get_view): in the order of its parameters.
                several => facts.serialize_entry(name, several)?,
            }
        }
        facts.end()
    }
}

/// A frame by name, as far as there is one.
#[derive(Serialize)]
pub(crate) struct At<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    module: &'a str,
    offset: u64,
}

/// For `serialize_with`: a place that is known, or null.
pub(crate) fn at<S: Serializer>(place: &Option<Location>, to: S) -> Result<S::Ok, S::Error> {
    place.as_ref().map(At::of).serialize(to)
}

impl<'a> At<'a> {
    pub(crate) fn of(place: &'a Location) -> At<'a> {
        let source = place.source.as_ref();
        At {
            function: place.function.as_deref(),
            file: source.map(|source| source.file.as_str()),
            line: source.map(|source| source.line),
            module: &place.module,
            offset: place.offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value as Json};

    #[test]
    fn no_call_has_two_members_of_one_name() {
        for function in refrain_model::functions() {
            let args = vec![Value::Int(1); function.params.len()];
            let facts = ["size", "extent", "size"].map(|fact| (fact, Value::Int(1))).to_vec();
            let call = Call { function, args, result: Value::Int(0), facts };
            let text = json::text(&Line::of(&call, (0, 0), 1, None, Some(&[])));
            let members: Map<String, Json> = serde_json::from_str(&text).unwrap();
            // Each once in the text as well as in the map.
            let written = serde_json::to_string(&members).unwrap();
            assert_eq!(written.len(), text.len(), "{text}");
        }
    }
}
