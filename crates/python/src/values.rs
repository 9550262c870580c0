//! Values of calls as Python's.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use refrain_model::{Status, Value};
use refrain_views::value;

/// As in `dump --json`: what is not defined is None, names are str, a status is a dict, an argument that the call changed is
/// `{"in": ..., "out": ...}`.
pub fn python<'py>(py: Python<'py>, of: &Value) -> PyResult<Bound<'py, PyAny>> {
    match of {
        Value::Unset => Ok(py.None().into_bound(py)),
        Value::Int(number) => number.into_bound_py_any(py),
        Value::Bool(flag) => flag.into_bound_py_any(py),
        Value::Name(name) => name.into_bound_py_any(py),
        Value::Text(text) | Value::Comm(text) => text.into_bound_py_any(py),
        Value::List(values) => {
            let list = PyList::empty(py);
            values.iter().try_for_each(|value| list.append(python(py, value)?))?;
            Ok(list.into_any())
        }
        Value::InOut(before, after) => {
            let dict = PyDict::new(py);
            dict.set_item("in", python(py, before)?)?;
            dict.set_item("out", python(py, after)?)?;
            Ok(dict.into_any())
        }
        Value::Status(Status { source, tag, bytes, cancelled, error }) => {
            let dict = PyDict::new(py);
            dict.set_item("source", python(py, source)?)?;
            dict.set_item("tag", python(py, tag)?)?;
            dict.set_item("bytes", bytes)?;
            dict.set_item("cancelled", cancelled)?;
            dict.set_item("error", error)?;
            Ok(dict.into_any())
        }
        Value::Mask(_) | Value::Object(..) | Value::Address(_) => {
            let mut text = String::new();
            value::text(of, &mut text);
            text.into_bound_py_any(py)
        }
    }
}
