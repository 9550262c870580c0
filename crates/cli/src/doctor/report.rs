//! What was found, for people and for programs.

use std::borrow::Cow;
use std::path::Path;

use refrain_sites::printable;
use refrain_views::json;
use serde::Serialize;

use super::{Findings, Kind, Problem};

/// For people.
pub fn text(found: &Findings) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    if let Some(program) = &found.program {
        lines.push(("program", format!("{}, {}", program.display(), kind(&found.kind))));
    }
    if let Some(library) = &found.library {
        let (name, abi) = (library.shown(), library.family.abi());
        lines.push(("MPI library", format!("{name} ({abi}), {}", library.path.display())));
    }
    if !found.bindings.is_empty() {
        lines.push(("bindings", found.bindings.join(", ")));
    }
    if let Some(launcher) = &found.launcher {
        lines.push(("launcher", format!("{}, {}", launcher.path.display(), launcher.shown())));
    }
    if let Some(capture) = &found.capture {
        lines.push(("capture", capture.display().to_string()));
    }
    for (i, record) in found.records.iter().enumerate() {
        lines.push((if i == 0 { "records" } else { "" }, record.clone()));
    }
    lines.extend(found.notes.iter().map(|note| ("note", note.clone())));
    if found.problems.is_empty() {
        lines.push(("problems", "none".into()));
    }
    for problem in &found.problems {
        lines.push(("problem", problem.what.clone()));
        if !problem.help.is_empty() {
            lines.push(("", problem.help.clone()));
        }
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.iter().map(|(name, text)| format!("{name:<width$}  {}\n", printable(text))).collect()
}

fn kind(kind: &Kind) -> String {
    match kind {
        Kind::Unknown => "not looked into".into(),
        Kind::Dynamic => "linked dynamically".into(),
        Kind::Static => "linked statically".into(),
        Kind::Script(line) => format!("a script for {line}; what it starts is traced, but was not looked at"),
        Kind::Python(Some(module)) => format!("Python with {}", module.display()),
        Kind::Python(None) => "Python without mpi4py".into(),
        Kind::OtherMachine(name) => format!("for {name}"),
    }
}

/// What was not found is null.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    program: Option<Cow<'a, str>>,
    kind: &'static str,
    library: Option<Library<'a>>,
    bindings: &'a [&'static str],
    launcher: Option<Launcher<'a>>,
    capture: Option<Cow<'a, str>>,
    records: &'a [String],
    notes: &'a [String],
    problems: &'a [Problem],
}

#[derive(Serialize)]
struct Library<'a> {
    path: Cow<'a, str>,
    name: &'static str,
    version: Option<&'a str>,
    abi: &'static str,
}

#[derive(Serialize)]
struct Launcher<'a> {
    path: Cow<'a, str>,
    abi: Option<&'static str>,
}

pub fn json(found: &Findings) -> String {
    let document = Document {
        schema: "refrain-doctor-1",
        program: found.program.as_deref().map(Path::to_string_lossy),
        kind: match &found.kind {
            Kind::Unknown => "unknown",
            Kind::Dynamic => "dynamic",
            Kind::Static => "static",
            Kind::Script(_) => "script",
            Kind::Python(_) => "python",
            Kind::OtherMachine(_) => "other machine",
        },
        library: found.library.as_ref().map(|library| Library {
            path: library.path.to_string_lossy(),
            name: library.name,
            version: library.version.as_deref(),
            abi: library.family.abi(),
        }),
        bindings: &found.bindings,
        launcher: found.launcher.as_ref().map(|launcher| Launcher {
            path: launcher.path.to_string_lossy(),
            abi: launcher.family.map(|family| family.abi()),
        }),
        capture: found.capture.as_deref().map(Path::to_string_lossy),
        records: &found.records,
        notes: &found.notes,
        problems: &found.problems,
    };
    json::text(&document) + "\n"
}
