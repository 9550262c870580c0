//! Compiles `abi.txt` to a static table sorted by name, so that nothing is parsed in the traced program.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::{env, fs, path::Path};

struct Line {
    kind: &'static str,
    varies: bool,
    alias_of: Option<String>,
    columns: Vec<String>,
}

fn main() {
    println!("cargo::rerun-if-changed=abi.txt");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/place.rs");
    let text = fs::read_to_string("abi.txt").expect("abi.txt lies beside build.rs");
    let lines = parse(&text);
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("constants.rs"), rust(&lines)).expect("OUT_DIR can be written");
}

fn parse(text: &str) -> BTreeMap<String, Line> {
    let mut lines = BTreeMap::new();
    let mut kind = None;
    for (number, line) in text.lines().enumerate() {
        let fail = |why: &str| -> ! { panic!("abi.txt:{}: {why}: {line}", number + 1) };
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [heading] if heading.starts_with('[') => {
                kind = Some(kind_of(heading).unwrap_or_else(|| fail("no such kind")));
            }
            [name, ref columns @ ..] => {
                let Some(kind) = kind else { fail("a constant before the first [kind]") };
                let (name, varies) = match name.strip_suffix('~') {
                    Some(name) => (name, true),
                    None => (name, false),
                };
                let alias_of = columns[0].strip_prefix('=').map(str::to_owned);
                if columns.len() != if alias_of.is_some() { 1 } else { 3 } {
                    fail("expected three columns, or one =NAME");
                }
                let columns =
                    columns.iter().map(|c| source(c).unwrap_or_else(|| fail("not a value"))).collect();
                if lines.insert(name.to_owned(), Line { kind, varies, alias_of, columns }).is_some() {
                    fail("this name is here twice");
                }
            }
        }
    }
    lines
}

fn kind_of(heading: &str) -> Option<&'static str> {
    Some(match heading {
        "[comm]" => "Kind::Handle(Class::Comm)",
        "[group]" => "Kind::Handle(Class::Group)",
        "[datatype]" => "Kind::Handle(Class::Datatype)",
        "[op]" => "Kind::Handle(Class::Op)",
        "[request]" => "Kind::Handle(Class::Request)",
        "[win]" => "Kind::Handle(Class::Win)",
        "[file]" => "Kind::Handle(Class::File)",
        "[info]" => "Kind::Handle(Class::Info)",
        "[errhandler]" => "Kind::Handle(Class::Errhandler)",
        "[keyval]" => "Kind::Handle(Class::Keyval)",
        "[message]" => "Kind::Handle(Class::Message)",
        "[session]" => "Kind::Handle(Class::Session)",
        "[tool_enum]" => "Kind::Handle(Class::ToolEnum)",
        "[tool_cvar]" => "Kind::Handle(Class::ToolCvar)",
        "[tool_pvar]" => "Kind::Handle(Class::ToolPvar)",
        "[tool_pvar_session]" => "Kind::Handle(Class::ToolPvarSession)",
        "[pointer]" => "Kind::Pointer",
        "[function]" => "Kind::Function",
        "[int]" => "Kind::Int",
        _ => return None,
    })
}

/// A column as a Rust expression of type `Source`.
fn source(column: &str) -> Option<String> {
    let is_name = |s: &str| {
        s.starts_with(|c: char| c.is_ascii_alphabetic())
            && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if column == "-" {
        return Some("Source::Absent".into());
    }
    if let Some(name) = column.strip_prefix('=') {
        return is_name(name).then(|| "Source::Absent".into());
    }
    if let Some(name) = column.strip_prefix('*') {
        return is_name(name).then(|| format!("Source::Variable({name:?})"));
    }
    if is_name(column) {
        return Some(format!("Source::Symbol({column:?})"));
    }
    let number: i64 = match column.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => column.parse().ok()?,
    };
    Some(format!("Source::Number({number})"))
}

fn rust(lines: &BTreeMap<String, Line>) -> String {
    let mut out = format!("static CONSTANTS: [Constant; {}] = [\n", lines.len());
    for (name, line) in lines {
        // An alias has its own line in the table with the values of the constant it stands for.
        let origin = match &line.alias_of {
            None => line,
            Some(other) => match lines.get(other) {
                Some(origin) if origin.alias_of.is_none() && origin.kind == line.kind => origin,
                _ => panic!("abi.txt: {name} is an alias of {other}, which is no constant of the same kind"),
            },
        };
        writeln!(
            out,
            "Constant {{ name: {name:?}, kind: {}, varies: {}, alias_of: {:?}, sources: [{}] }},",
            line.kind,
            line.varies,
            line.alias_of,
            origin.columns.join(", ")
        )
        .expect("a String takes everything");
    }
    out.push_str("];\n");
    // Names come again and again where calls are made: each is found at its place or right after it.
    let places = (lines.len() * 4).next_power_of_two();
    let mut table = vec![u16::MAX; places];
    for (at, name) in lines.keys().enumerate() {
        let mut place = place_of(name.as_bytes(), places);
        while table[place] != u16::MAX {
            place = (place + 1) % places;
        }
        table[place] = u16::try_from(at).expect("fewer constants than that");
    }
    writeln!(out, "static PLACES: [u16; {places}] = {table:?};").expect("a String takes everything");
    out
}

include!("src/place.rs");
