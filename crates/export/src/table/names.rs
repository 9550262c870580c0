//! What columns are called, and of which type they are: the same in all traces.

use std::collections::HashMap;
use std::sync::OnceLock;

use refrain_model::{Kind, Param, functions};

/// What a cell may hold. A parameter that is sometimes one and sometimes another has a column for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    Int,
    Bool,
    /// Names of constants, objects, communicators, addresses, the program's strings.
    Text,
    Status,
    Ints,
    Bools,
    Texts,
    Statuses,
    /// Lists of lists, as JSON.
    Json,
    /// What a clock of MPI returned.
    Real,
}

impl Form {
    pub const ALL: [Form; 10] = [
        Form::Int,
        Form::Bool,
        Form::Text,
        Form::Status,
        Form::Ints,
        Form::Bools,
        Form::Texts,
        Form::Statuses,
        Form::Json,
        Form::Real,
    ];

    /// Behind the name of a column that has not the form that its parameter mostly has.
    pub fn suffix(self) -> &'static str {
        match self {
            Form::Int => "_number",
            Form::Bool => "_flag",
            Form::Text => "_name",
            Form::Status => "_status",
            Form::Ints => "_numbers",
            Form::Bools => "_flags",
            Form::Texts => "_names",
            Form::Statuses => "_statuses",
            Form::Json => "_json",
            Form::Real => "_seconds",
        }
    }

    /// As it stands in the metadata.
    pub fn word(self) -> &'static str {
        &self.suffix()[1..]
    }
}

/// Which value of a parameter: that before the call, or the only one; or that after a call that changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    In,
    Out,
}

/// What a column is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Of {
    Param(&'static str, Side),
    Fact(&'static str),
    Result,
}

/// Columns of every table.
pub const OWN: [&str; 15] = [
    "rank",
    "thread",
    "number",
    "start_ns",
    "end_ns",
    "start_error_ns",
    "end_error_ns",
    "call",
    "result",
    "bytes",
    "site",
    "site_function",
    "site_file",
    "site_line",
    "stack",
];

/// What a parameter is as a rule.
pub fn usual(param: &Param) -> Option<Form> {
    let one = param.len.is_empty();
    Some(match param.kind {
        Kind::Skip => return None,
        Kind::Int
        | Kind::Undefinable
        | Kind::Tag
        | Kind::Peer(_)
        | Kind::Root(_)
        | Kind::Rank
        | Kind::ArgCount => match one {
            true => Form::Int,
            false => Form::Ints,
        },
        Kind::Logical if one => Form::Bool,
        Kind::Logical => Form::Bools,
        Kind::Status if one => Form::Status,
        Kind::Status => Form::Statuses,
        Kind::Enum(_) | Kind::Mask(_) | Kind::Handle(_) if !one => Form::Texts,
        Kind::Strings | Kind::ArgVector => Form::Texts,
        Kind::StringsOfStrings => Form::Json,
        Kind::Enum(_)
        | Kind::Mask(_)
        | Kind::Handle(_)
        | Kind::Buffer
        | Kind::Value
        | Kind::OutPointer
        | Kind::OutAttribute
        | Kind::String
        | Kind::Function => Form::Text,
    })
}

/// By parameter: what it is in most functions, and where it stands among all parameters.
fn parameters() -> &'static HashMap<&'static str, (Form, usize)> {
    static KNOWN: OnceLock<HashMap<&'static str, (Form, usize)>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut all: Vec<_> = functions().iter().filter(|function| !function.silent).collect();
        all.sort_by_key(|function| function.id);
        let mut counts: HashMap<&'static str, [usize; Form::ALL.len()]> = HashMap::new();
        let mut order = Vec::new();
        for param in all.iter().flat_map(|function| function.params) {
            let Some(form) = usual(param) else { continue };
            let count = counts.entry(param.name).or_insert_with(|| {
                order.push(param.name);
                Default::default()
            });
            count[form as usize] += 1;
        }
        let known = (0..).zip(order).map(|(at, name)| {
            let most = counts[name].iter().max().copied().unwrap_or(0);
            let form = Form::ALL.into_iter().find(|form| counts[name][*form as usize] == most);
            (name, (form.unwrap_or(Form::Text), at))
        });
        known.collect()
    })
}

/// Facts, in the order of their columns.
const FACTS: [(&str, Form); 6] = [
    ("size", Form::Int),
    ("lb", Form::Int),
    ("extent", Form::Int),
    ("group", Form::Ints),
    ("remote_group", Form::Ints),
    ("matched", Form::Status),
];

/// The name of a column.
pub fn column(of: Of, form: Form) -> String {
    let (mut name, usual) = match of {
        Of::Result => ("result".to_string(), Form::Int),
        Of::Fact(name) => {
            let usual = FACTS.iter().find(|(fact, _)| *fact == name).map_or(Form::Text, |(_, form)| *form);
            (format!("fact_{name}"), usual)
        }
        Of::Param(name, side) => {
            // `rank` of MPI_Comm_rank is not the rank that called it.
            let own = if OWN.contains(&name) { "arg_" } else { "" };
            let out = if side == Side::Out { "_out" } else { "" };
            (format!("{own}{name}{out}"), parameters().get(name).map_or(Form::Text, |known| known.0))
        }
    };
    if form != usual {
        name.push_str(form.suffix());
    }
    name
}

/// Where a column stands: arguments in the order of the call table, then facts.
pub fn place(of: Of) -> (u8, usize, Side) {
    match of {
        Of::Result => (0, 0, Side::In),
        Of::Param(name, side) => (1, parameters().get(name).map_or(usize::MAX, |known| known.1), side),
        Of::Fact(name) => {
            let at = FACTS.iter().position(|(fact, _)| *fact == name).unwrap_or(FACTS.len());
            (2, at, Side::In)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn columns_are_called_as_parameters() {
        let input = |name| Of::Param(name, Side::In);
        assert_eq!(column(input("dest"), Form::Int), "dest");
        assert_eq!(column(input("dest"), Form::Text), "dest_name");
        assert_eq!(column(input("comm"), Form::Text), "comm");
        assert_eq!(column(input("status"), Form::Status), "status");
        assert_eq!(column(input("status"), Form::Text), "status_name");
        assert_eq!(column(input("rank"), Form::Int), "arg_rank");
        assert_eq!(column(Of::Param("dims", Side::Out), Form::Ints), "dims_out");
        assert_eq!(column(Of::Fact("group"), Form::Text), "fact_group_name");
        assert_eq!(column(Of::Result, Form::Real), "result_seconds");
    }

    /// These are in people's queries.
    #[test]
    fn parameters_that_are_not_the_same_everywhere_keep_their_form() {
        let mut forms: HashMap<&str, HashSet<Form>> = HashMap::new();
        for param in functions().iter().filter(|f| !f.silent).flat_map(|f| f.params) {
            forms.entry(param.name).or_default().extend(usual(param));
        }
        let mut several: Vec<String> = forms
            .iter()
            .filter(|(_, forms)| forms.len() > 1)
            .map(|(name, _)| format!("{name}{}", parameters()[name].0.suffix()))
            .collect();
        several.sort();
        let expected = [
            "base_name",
            "disp_number",
            "errorclass_name",
            "indx_number",
            "key_name",
            "status_status",
            "value_name",
            "version_number",
        ];
        assert_eq!(several, expected);
    }

    #[test]
    fn no_two_columns_have_one_name() {
        let mut seen: HashSet<String> =
            OWN.iter().filter(|own| **own != "result").map(|own| own.to_string()).collect();
        let params =
            parameters().keys().flat_map(|name| [Of::Param(name, Side::In), Of::Param(name, Side::Out)]);
        let all = params.chain(FACTS.iter().map(|(name, _)| Of::Fact(name))).chain([Of::Result]);
        for of in all {
            for form in Form::ALL {
                let name = column(of, form);
                assert!(seen.insert(name.clone()), "{name}");
            }
        }
    }
}
