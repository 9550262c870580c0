//! Which columns a trace needs, from its symbols: no call is read for it.

use std::collections::BTreeSet;

use refrain_encode::{Layout, Slot};
use refrain_model::{Function, Kind, Param, Returns, Value};
use refrain_tracefile::Trace;
use refrain_views::Error;

use super::names::{Form, Of, Side, usual};

/// What there is to say of the calls of a trace, and in which forms.
#[derive(Debug, Clone, Default)]
pub struct Shapes {
    pub needed: BTreeSet<(Of, Form)>,
    /// Functions that occur.
    pub functions: BTreeSet<&'static str>,
    /// Also in forms that are rare.
    all: bool,
}

/// The forms that a value takes. Several for a list in which numbers and names are mixed; none for a value that is not there.
pub fn forms(value: &Value) -> Vec<Form> {
    match value {
        Value::Unset => Vec::new(),
        Value::Int(_) => vec![Form::Int],
        Value::Bool(_) => vec![Form::Bool],
        Value::Name(_)
        | Value::Mask(_)
        | Value::Text(_)
        | Value::Object(..)
        | Value::Comm(_)
        | Value::Address(_) => vec![Form::Text],
        Value::Status(_) => vec![Form::Status],
        Value::InOut(..) => vec![Form::Json],
        Value::List(values) => {
            let mut all = BTreeSet::new();
            for value in values {
                all.extend(forms(value).into_iter().map(|form| match form {
                    Form::Int => Form::Ints,
                    Form::Bool => Form::Bools,
                    Form::Text => Form::Texts,
                    Form::Status => Form::Statuses,
                    _ => Form::Json,
                }));
            }
            match all.len() {
                0 | 1 => all.into_iter().collect(),
                2 if all.contains(&Form::Ints) && all.contains(&Form::Texts) => all.into_iter().collect(),
                _ => vec![Form::Json],
            }
        }
    }
}

/// What numbers of a lane may say for a parameter. What is rarer is met while calls are read, unless all that is possible is
/// asked for.
fn of_numbers(param: &Param, list: bool, all: bool) -> &'static [Form] {
    match (param.kind, list) {
        (Kind::Mask(_) | Kind::Enum(_), false) if all => &[Form::Int, Form::Text],
        (Kind::Mask(_) | Kind::Enum(_), true) if all => &[Form::Ints, Form::Texts],
        (Kind::Peer(_) | Kind::Root(_) | Kind::Rank | Kind::Undefinable | Kind::Tag, true) if all => {
            &[Form::Ints, Form::Texts]
        }
        (Kind::Logical, false) => &[Form::Bool],
        (Kind::Logical, true) => &[Form::Bools],
        (Kind::Mask(_), false) => &[Form::Text],
        (Kind::Mask(_), true) => &[Form::Texts],
        (Kind::Undefinable | Kind::Rank, false) => &[Form::Int, Form::Text],
        (_, false) => &[Form::Int],
        (_, true) => &[Form::Ints],
    }
}

impl Shapes {
    /// Of the functions asked for, or of all. `all`: also in forms that are rare.
    pub fn of(trace: &Trace, only: Option<&[&'static Function]>, all: bool) -> Result<Shapes, Error> {
        let mut shapes = Shapes { all, ..Shapes::default() };
        for (index, symbol) in (0..).zip(&trace.bundle.symbols) {
            let layout = Layout::parse(&symbol.bytes).map_err(|error| Error::Symbol { index, error })?;
            if only.is_none_or(|only| only.iter().any(|asked| asked.id == layout.function.id)) {
                shapes.take_in(&layout);
            }
        }
        Ok(shapes)
    }

    /// Room for one more form.
    pub fn admit(&mut self, of: Of, form: Form) {
        self.needed.insert((of, form));
    }

    fn take_in(&mut self, layout: &Layout) {
        let function = layout.function;
        self.functions.insert(function.name);
        let result = if function.returns == Returns::Clock { Form::Real } else { Form::Int };
        self.admit(Of::Result, result);
        for (param, slot) in function.params.iter().zip(&layout.slots) {
            let of = Of::Param(param.name, Side::In);
            usual(param).into_iter().for_each(|form| self.admit(of, form));
            self.of_slot(param, slot);
            if layout.ignored && param.kind == Kind::Status {
                self.admit(of, Form::Text);
                let matched = if param.len.is_empty() { Form::Status } else { Form::Statuses };
                self.admit(Of::Fact("matched"), matched);
            }
        }
        for name in ["size", "lb", "extent"] {
            match layout.datatype_facts.len() {
                0 => {}
                1 => self.admit(Of::Fact(name), Form::Int),
                _ => [Form::Int, Form::Ints].into_iter().for_each(|form| self.admit(Of::Fact(name), form)),
            }
        }
    }

    fn of_slot(&mut self, param: &'static Param, slot: &Slot) {
        let all = self.all;
        let mut admit = |side, forms: &[Form]| {
            forms.iter().for_each(|form| self.admit(Of::Param(param.name, side), *form));
        };
        match slot {
            Slot::Absent => {}
            Slot::Fixed(value) => admit(Side::In, &forms(value)),
            Slot::Number { .. } => admit(Side::In, of_numbers(param, false, all)),
            Slot::List { .. } => admit(Side::In, of_numbers(param, true, all)),
            Slot::InOut { after, .. } | Slot::ListInOut { after, .. } => {
                let forms = of_numbers(param, matches!(slot, Slot::ListInOut { .. }), all);
                admit(Side::In, forms);
                if after.is_some() {
                    admit(Side::Out, forms);
                }
            }
            Slot::Codes { .. } => admit(Side::In, &[Form::Texts]),
            Slot::Status { .. } => admit(Side::In, &[Form::Status]),
            Slot::Statuses { .. } => admit(Side::In, &[Form::Statuses]),
            Slot::Object(..) | Slot::Code { .. } | Slot::Address { .. } | Slot::Text { .. } => {
                admit(Side::In, &[Form::Text]);
            }
            Slot::NewComm(new) => {
                admit(Side::In, &[Form::Text]);
                let group = if new.is_like_parent() { Form::Text } else { Form::Ints };
                if !new.is_null() {
                    self.admit(Of::Fact("group"), group);
                }
                if new.is_between_groups() {
                    self.admit(Of::Fact("remote_group"), Form::Ints);
                }
            }
        }
    }
}
