//! The columns of a table, and what stands in its metadata.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::Int32Builder;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use refrain_model::{Function, Value, function};
use refrain_tracefile::Trace;
use refrain_views::json;
use serde::Serialize;

use super::builder::Cells;
use super::names::{Form, Of, Side, column, place};
use super::shapes::{Shapes, forms};

/// A value that no column has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misfit {
    pub of: Of,
    pub form: Form,
}

struct Column {
    name: String,
    of: Option<(Of, Form)>,
    cells: Cells,
    optional: bool,
}

/// The columns of what a table has of every call; of times and sites where it has some.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    pub rank: usize,
    pub thread: usize,
    pub number: usize,
    pub start: usize,
    pub end: usize,
    pub errors: Option<(usize, usize)>,
    pub call: usize,
    pub bytes: usize,
    pub site: Option<Site>,
}

#[derive(Debug, Clone, Copy)]
pub struct Site {
    pub text: usize,
    pub function: usize,
    pub file: usize,
    pub line: usize,
    pub stack: Option<usize>,
}

/// By form, the column that has it.
type Places = [Option<usize>; Form::ALL.len()];

/// What is known of a trace beside its symbols.
#[derive(Debug, Clone, Copy)]
pub struct About {
    pub errors: bool,
    pub sites: bool,
    pub stacks: bool,
}

/// The columns of a table, with the rows that have come so far.
pub struct Columns {
    all: Vec<Column>,
    pub own: Own,
    by: HashMap<Of, Places>,
    /// By function number, the columns of its parameters: before and after.
    of_function: Vec<Option<Vec<(Places, Places)>>>,
    schema: SchemaRef,
    buffer: String,
    rows: usize,
}

impl Columns {
    pub fn new(trace: &Trace, shapes: &Shapes, about: About) -> Columns {
        let mut all = Vec::new();
        let mut own = |name: &str, cells: Cells, optional| {
            all.push(Column { name: name.into(), of: None, cells, optional });
            all.len() - 1
        };
        let small = || Cells::Small(Int32Builder::new());
        let (int, text) = (|| Cells::of(Form::Int), || Cells::of(Form::Text));
        let rank = own("rank", small(), false);
        let thread = own("thread", small(), false);
        let number = own("number", int(), false);
        let start = own("start_ns", int(), true);
        let end = own("end_ns", int(), true);
        let errors =
            about.errors.then(|| (own("start_error_ns", int(), true), own("end_error_ns", int(), true)));
        let call = own("call", text(), false);
        let bytes = own("bytes", int(), true);
        let site = about.sites.then(|| Site {
            text: own("site", text(), true),
            function: own("site_function", text(), true),
            file: own("site_file", text(), true),
            line: own("site_line", small(), true),
            stack: about.stacks.then(|| own("stack", text(), true)),
        });
        let own = Own { rank, thread, number, start, end, errors, call, bytes, site };
        let mut needed: Vec<(Of, Form)> = shapes.needed.iter().copied().collect();
        needed.sort_by_key(|(of, form)| (place(*of), *form));
        let mut by: HashMap<Of, Places> = HashMap::new();
        for (of, form) in needed {
            by.entry(of).or_default()[form as usize] = Some(all.len());
            let name = column(of, form);
            all.push(Column { name, of: Some((of, form)), cells: Cells::of(form), optional: true });
        }
        let fields: Vec<Field> = all
            .iter()
            .map(|column| Field::new(&column.name, column.cells.data_type(), column.optional))
            .collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata(trace, shapes, &all)));
        Columns { all, own, by, of_function: Vec::new(), schema, buffer: String::new(), rows: 0 }
    }

    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn end_row(&mut self) {
        self.rows += 1;
    }

    /// A cell of the row at hand.
    pub fn cell(&mut self, column: usize) -> &mut Cells {
        self.all[column].cells.up_to(self.rows)
    }

    /// All rows, and then none again.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let arrays: Vec<ArrayRef> = self.all.iter_mut().map(|column| column.cells.finish(rows)).collect();
        RecordBatch::try_new(self.schema.clone(), arrays)
    }

    /// The arguments of a call.
    pub fn arguments(&mut self, function: &'static Function, args: &[Value]) -> Result<(), Misfit> {
        let at = usize::from(function.id);
        if self.of_function.get(at).is_none_or(Option::is_none) {
            self.of_function.resize_with(self.of_function.len().max(at + 1), || None);
            let places = |name, side| self.by.get(&Of::Param(name, side)).copied().unwrap_or_default();
            let of = function.params.iter().map(|p| (places(p.name, Side::In), places(p.name, Side::Out)));
            self.of_function[at] = Some(of.collect());
        }
        for (i, (param, value)) in function.params.iter().zip(args).enumerate() {
            let Some(Some((before, after))) =
                self.of_function[at].as_ref().map(|params| params.get(i).copied())
            else {
                continue;
            };
            match value {
                Value::Unset => {}
                Value::InOut(was, is) => {
                    self.value(Of::Param(param.name, Side::In), &before, was)?;
                    self.value(Of::Param(param.name, Side::Out), &after, is)?;
                }
                value => self.value(Of::Param(param.name, Side::In), &before, value)?,
            }
        }
        Ok(())
    }

    pub fn fact(&mut self, name: &'static str, value: &Value) -> Result<(), Misfit> {
        let of = Of::Fact(name);
        let places = self.by.get(&of).copied().unwrap_or_default();
        self.value(of, &places, value)
    }

    pub fn result(&mut self, value: &Value, clock: Option<f64>) -> Result<(), Misfit> {
        let places = self.by.get(&Of::Result).copied().unwrap_or_default();
        match clock {
            None => self.value(Of::Result, &places, value),
            Some(seconds) => {
                let misfit = Misfit { of: Of::Result, form: Form::Real };
                let column = places[Form::Real as usize].ok_or(misfit)?;
                self.cell(column).push_real(seconds);
                Ok(())
            }
        }
    }

    fn value(&mut self, of: Of, places: &Places, value: &Value) -> Result<(), Misfit> {
        let form = match value {
            Value::Unset => return Ok(()),
            Value::Int(_) => Form::Int,
            Value::Bool(_) => Form::Bool,
            Value::Status(_) => Form::Status,
            Value::List(_) | Value::InOut(..) => return self.list(of, places, value),
            _ => Form::Text,
        };
        self.put(of, places, form, value)
    }

    fn list(&mut self, of: Of, places: &Places, value: &Value) -> Result<(), Misfit> {
        let mut all = forms(value);
        if all.is_empty() {
            // An empty list is one of whatever there is.
            let lists = [Form::Ints, Form::Bools, Form::Texts, Form::Statuses, Form::Json];
            all.push(lists.into_iter().find(|form| places[*form as usize].is_some()).unwrap_or(Form::Ints));
        }
        all.into_iter().try_for_each(|form| self.put(of, places, form, value))
    }

    fn put(&mut self, of: Of, places: &Places, form: Form, value: &Value) -> Result<(), Misfit> {
        let column = places[form as usize].ok_or(Misfit { of, form })?;
        self.all[column].cells.up_to(self.rows).push(value, &mut self.buffer);
        Ok(())
    }
}

/// Members in the order that is given.
#[derive(Serialize)]
struct Object<'a, T: Serialize>(#[serde(serialize_with = "json::pairs")] Vec<(&'a str, T)>);

/// What is in a column.
#[derive(Default, Serialize)]
struct Said {
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fact: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<bool>,
    form: &'static str,
}

impl Said {
    fn of(of: Of, form: Form) -> Said {
        let said = Said { form: form.word(), ..Said::default() };
        match of {
            Of::Param(name, Side::In) => Said { parameter: Some(name), ..said },
            Of::Param(name, Side::Out) => Said { parameter: Some(name), side: Some("out"), ..said },
            Of::Fact(name) => Said { fact: Some(name), ..said },
            Of::Result => Said { result: Some(true), ..said },
        }
    }
}

/// What a reader needs to know of the trace, and to turn rows back into calls.
fn metadata(trace: &Trace, shapes: &Shapes, columns: &[Column]) -> HashMap<String, String> {
    let meta = &trace.meta;
    let of_columns = columns.iter().filter_map(|column| {
        let (of, form) = column.of?;
        Some((column.name.as_str(), Said::of(of, form)))
    });
    let params = |name: &&'static str| {
        let params = function(name).map_or(&[][..], |function| function.params);
        (*name, params.iter().map(|param| param.name).collect())
    };
    let said = Object(of_columns.collect());
    let parameters: Object<Vec<&str>> = Object(shapes.functions.iter().map(params).collect());
    let entries = [
        ("refrain.table", "1".to_string()),
        ("refrain.version", env!("CARGO_PKG_VERSION").to_string()),
        ("refrain.command", meta.command.join(" ")),
        ("refrain.library", meta.library.clone()),
        ("refrain.ranks", meta.ranks.to_string()),
        ("refrain.columns", json::text(&said)),
        ("refrain.parameters", json::text(&parameters)),
    ];
    entries.into_iter().map(|(name, text)| (name.to_string(), text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_model::Status;

    /// The columns of calls of `MPI_Recv`, as far as its symbols say.
    fn columns(more: &[(Of, Form)]) -> Columns {
        let mut shapes = Shapes::default();
        shapes.functions.insert("MPI_Recv");
        let usual = [
            ("buf", Form::Text),
            ("count", Form::Int),
            ("datatype", Form::Text),
            ("source", Form::Int),
            ("tag", Form::Int),
            ("comm", Form::Text),
            ("status", Form::Status),
        ];
        usual.into_iter().for_each(|(name, form)| shapes.admit(Of::Param(name, Side::In), form));
        more.iter().for_each(|(of, form)| shapes.admit(*of, *form));
        Columns::new(&Trace::default(), &shapes, About { errors: false, sites: false, stacks: false })
    }

    fn receive(columns: &mut Columns, source: Value, status: Value) -> Result<(), Misfit> {
        let comm = Value::Comm("world".into());
        let args = [Value::Unset, Value::Int(4), Value::Name("MPI_INT"), source, Value::Int(7), comm, status];
        let own = columns.own;
        for column in [own.rank, own.thread, own.number] {
            columns.cell(column).push_int(0);
        }
        columns.cell(own.call).push_text("MPI_Recv");
        columns.arguments(function("MPI_Recv").unwrap(), &args)?;
        columns.end_row();
        Ok(())
    }

    #[test]
    fn what_has_no_column_is_asked_for_and_then_fits() {
        let of = Of::Param("source", Side::In);
        let any = || Value::Name("MPI_ANY_SOURCE");
        let misfit = Misfit { of, form: Form::Text };
        assert_eq!(receive(&mut columns(&[]), any(), Value::Unset), Err(misfit));
        let mut columns = columns(&[(misfit.of, misfit.form)]);
        receive(&mut columns, any(), Value::Unset).unwrap();
        receive(&mut columns, Value::Int(3), Value::Unset).unwrap();
        let batch = columns.take().unwrap();
        assert_eq!(batch.num_rows(), 2);
        let nulls = |name: &str| batch.column_by_name(name).unwrap().null_count();
        assert_eq!((nulls("source"), nulls("source_name")), (1, 1));
        assert_eq!((nulls("count"), nulls("buf"), nulls("status")), (0, 2, 2));
        assert_eq!(columns.take().unwrap().num_rows(), 0);
    }

    #[test]
    fn a_status_of_which_nothing_is_defined_is_not_the_same_as_none() {
        let mut columns = columns(&[]);
        let (source, tag) = (Value::Unset.into(), Value::Unset.into());
        let status = Status { source, tag, bytes: None, cancelled: None, error: None };
        receive(&mut columns, Value::Int(0), Value::Status(status)).unwrap();
        receive(&mut columns, Value::Int(0), Value::Unset).unwrap();
        let batch = columns.take().unwrap();
        let status = batch.column_by_name("status").unwrap();
        assert!(status.is_valid(0) && status.is_null(1));
    }

    #[test]
    fn lists_may_be_empty_mixed_or_of_lists() {
        let dims = Of::Param("dims", Side::In);
        let mixed = [(dims, Form::Ints), (dims, Form::Texts), (dims, Form::Json)];
        let mut columns = columns(&mixed);
        let places = columns.by[&dims];
        let lists = [
            Value::List(vec![]),
            Value::List(vec![Value::Int(1), Value::Name("MPI_PROC_NULL")]),
            Value::List(vec![Value::List(vec![Value::Int(1)])]),
        ];
        for list in &lists {
            columns.value(dims, &places, list).unwrap();
            columns.rows += 1;
        }
        let arrays: Vec<ArrayRef> = ["dims", "dims_names", "dims_json"]
            .map(|name| columns.all.iter().position(|column| column.name == name).unwrap())
            .map(|at| columns.all[at].cells.finish(3))
            .to_vec();
        let there: Vec<[bool; 3]> = arrays.iter().map(|a| [0, 1, 2].map(|row| a.is_valid(row))).collect();
        assert_eq!(there, [[true, true, false], [false, true, false], [false, false, true]]);
    }
}
