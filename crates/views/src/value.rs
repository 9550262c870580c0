//! One value of one argument, as text and as JSON. Both call the same things by the same names.

use std::fmt::Write;

use refrain_model::{Address, Area, Call, Class, Status, Value, maker_of};
use serde::{Serialize, Serializer};

use crate::json;

/// A value for a sentence.
pub fn shown(value: &Value) -> String {
    let mut out = String::new();
    text(value, &mut out);
    out
}

pub fn text(value: &Value, out: &mut String) {
    match value {
        Value::Unset => out.push('-'),
        Value::Int(n) => push(n, out),
        Value::Bool(b) => push(b, out),
        Value::Name(name) => out.push_str(name),
        Value::Mask(names) => mask(names, out),
        // Quoted and escaped as in JSON, so that a call stays on its line.
        Value::Text(text) => out.push_str(&json::text(&**text)),
        Value::Object(class, id) => object(*class, *id, out),
        Value::Comm(name) => out.push_str(name),
        Value::Address(a) => address(*a, out),
        Value::Status(s) => {
            out.push('{');
            for (i, (name, field)) in fields(s).iter().filter(|(_, f)| *f != Value::Unset).enumerate() {
                let _ = write!(out, "{}{name}=", if i > 0 { ", " } else { "" });
                text(field, out);
            }
            out.push('}');
        }
        Value::List(values) => {
            out.push('[');
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                text(value, out);
            }
            out.push(']');
        }
        Value::InOut(before, after) => {
            text(before, out);
            out.push_str("->");
            text(after, out);
        }
    }
}

/// A value as JSON.
pub struct Json<'a>(pub &'a Value);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Unset => to.serialize_unit(),
            Value::Int(n) => to.serialize_i64(*n),
            Value::Bool(b) => to.serialize_bool(*b),
            Value::Name(name) => to.serialize_str(name),
            Value::Text(text) => to.serialize_str(text),
            Value::Comm(name) => to.serialize_str(name),
            Value::Mask(_) | Value::Object(..) | Value::Address(_) => {
                let mut shown = String::new();
                text(self.0, &mut shown);
                to.serialize_str(&shown)
            }
            Value::Status(s) => to.collect_map(fields(s).iter().map(|(name, field)| (name, Json(field)))),
            Value::List(values) => to.collect_seq(values.iter().map(Json)),
            Value::InOut(before, after) => to.collect_map([("in", Json(before)), ("out", Json(after))]),
        }
    }
}

/// The arguments of a call by the names of the parameters.
pub fn args(call: &Call) -> impl Iterator<Item = (&'static str, &Value)> {
    call.function.params.iter().map(|param| param.name).zip(&call.args)
}

/// What MPI does not define is unset.
fn fields(status: &Status) -> [(&'static str, Value); 5] {
    let Status { source, tag, bytes, cancelled, error } = status;
    let int = |value: &Option<i64>| value.map_or(Value::Unset, Value::Int);
    [
        ("source", Value::clone(source)),
        ("tag", Value::clone(tag)),
        ("bytes", int(bytes)),
        ("cancelled", cancelled.map_or(Value::Unset, Value::Bool)),
        ("error", int(error)),
    ]
}

fn push(value: impl std::fmt::Display, out: &mut String) {
    let _ = write!(out, "{value}");
}

fn mask(names: &[&str], out: &mut String) {
    if names.is_empty() {
        out.push('0');
    }
    for (i, name) in names.iter().enumerate() {
        if i > 0 {
            out.push('|');
        }
        out.push_str(name);
    }
}

fn object(class: Class, id: u32, out: &mut String) {
    let name = match class {
        Class::Comm => "comm",
        Class::Group => "group",
        Class::Datatype => "type",
        Class::Op => "op",
        Class::Request => "req",
        Class::Win => "win",
        Class::File => "file",
        Class::Info => "info",
        Class::Errhandler => "errh",
        Class::Keyval => "keyval",
        Class::Message => "msg",
        Class::Session => "session",
        Class::ToolEnum => "tenum",
        Class::ToolCvar => "cvar",
        Class::ToolPvar => "pvar",
        Class::ToolPvarSession => "pvars",
        Class::ToolEventRegistration => "tevent",
        Class::ToolEventInstance => "tinst",
    };
    let _ = match maker_of(id) {
        (0, number) => write!(out, "{name}#{number}"),
        (thread, number) => write!(out, "{name}#{thread}.{number}"),
    };
}

fn address(address: Address, out: &mut String) {
    let Address { area, device, segment, offset } = address;
    let area = match area {
        Area::Heap => "heap",
        Area::Static => "static",
        Area::Stack => "stack",
        Area::Other => "other",
        Area::Managed => "managed",
        Area::Pinned => "pinned",
        Area::Gpu => {
            let _ = write!(out, "gpu{device}#{segment}{offset:+}");
            return;
        }
        // The bits as they are: a pointer-sized number has no sign.
        Area::Number => {
            let _ = write!(out, "0x{offset:x}");
            return;
        }
    };
    let _ = write!(out, "{area}#{segment}{offset:+}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: Value, as_text: &str, as_json: &str) {
        let mut out = String::new();
        text(&value, &mut out);
        assert_eq!(out, as_text);
        assert_eq!(json::text(&Json(&value)), as_json);
    }

    fn at(area: Area, segment: u32, offset: i64) -> Value {
        Value::Address(Address { area, device: 0, segment, offset })
    }

    #[test]
    fn every_kind_of_value() {
        check(Value::Unset, "-", "null");
        check(Value::Int(-3), "-3", "-3");
        check(Value::Int(i64::MIN), "-9223372036854775808", "-9223372036854775808");
        check(Value::Bool(true), "true", "true");
        check(Value::Name("MPI_INT"), "MPI_INT", r#""MPI_INT""#);
        check(Value::Mask(vec![]), "0", r#""0""#);
        check(Value::Mask(vec!["MPI_MODE_CREATE"]), "MPI_MODE_CREATE", r#""MPI_MODE_CREATE""#);
        check(Value::Mask(vec!["A", "B"]), "A|B", r#""A|B""#);
        check(Value::Text("a \"b\"\n".into()), r#""a \"b\"\n""#, r#""a \"b\"\n""#);
        check(Value::Comm("world.0".into()), "world.0", r#""world.0""#);
        check(Value::List(vec![]), "[]", "[]");
        check(Value::List(vec![Value::Int(1), Value::Unset]), "[1, -]", "[1,null]");
        let in_out = Value::InOut(Value::Int(0).into(), Value::Int(8).into());
        check(in_out, "0->8", r#"{"in":0,"out":8}"#);
    }

    #[test]
    fn statuses() {
        let status = Status {
            source: Value::Int(1).into(),
            tag: Value::Name("MPI_ANY_TAG").into(),
            bytes: Some(4),
            cancelled: Some(false),
            error: Some(0),
        };
        check(
            Value::Status(status.clone()),
            "{source=1, tag=MPI_ANY_TAG, bytes=4, cancelled=false, error=0}",
            r#"{"source":1,"tag":"MPI_ANY_TAG","bytes":4,"cancelled":false,"error":0}"#,
        );
        let (source, tag) = (Value::Unset.into(), Value::Unset.into());
        check(
            Value::Status(Status { source, tag, bytes: None, error: None, ..status }),
            "{cancelled=false}",
            r#"{"source":null,"tag":null,"bytes":null,"cancelled":false,"error":null}"#,
        );
    }

    #[test]
    fn addresses() {
        check(at(Area::Heap, 3, 0), "heap#3+0", r#""heap#3+0""#);
        check(at(Area::Static, 0, 16448), "static#0+16448", r#""static#0+16448""#);
        check(at(Area::Stack, 2, -8), "stack#2-8", r#""stack#2-8""#);
        check(at(Area::Other, 0, 0), "other#0+0", r#""other#0+0""#);
        check(at(Area::Gpu, 0, 0), "gpu0#0+0", r#""gpu0#0+0""#);
        let third = Address { area: Area::Gpu, device: 3, segment: 1, offset: 16 };
        check(Value::Address(third), "gpu3#1+16", r#""gpu3#1+16""#);
        check(at(Area::Managed, 2, 8), "managed#2+8", r#""managed#2+8""#);
        check(at(Area::Pinned, 0, 0), "pinned#0+0", r#""pinned#0+0""#);
        check(at(Area::Number, 0, 255), "0xff", r#""0xff""#);
        check(at(Area::Number, 0, -1), "0xffffffffffffffff", r#""0xffffffffffffffff""#);
    }

    #[test]
    fn objects() {
        let name = |class| {
            let mut out = String::new();
            text(&Value::Object(class, 4), &mut out);
            out
        };
        assert_eq!(name(Class::Datatype), "type#4");
        assert_eq!(name(Class::Request), "req#4");
        assert_eq!(name(Class::Errhandler), "errh#4");
        assert_eq!(name(Class::ToolPvarSession), "pvars#4");
        assert_eq!(name(Class::ToolEventInstance), "tinst#4");
    }
}
