//! What was found, for people and for programs.

use std::path::Path;

use refrain_sites::plain;
use refrain_views::json;

use super::{Findings, Kind};

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
    lines.iter().map(|(name, text)| format!("{name:<width$}  {}\n", plain(text))).collect()
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

/// One object; what was not found is null.
pub fn json(found: &Findings) -> String {
    let mut text = String::new();
    let mut object = json::Object::document(&mut text, "doctor");
    let path = |path: Option<&Path>, out: &mut String| match path {
        Some(path) => json::string(&path.to_string_lossy(), out),
        None => out.push_str("null"),
    };
    path(found.program.as_deref(), object.key("program"));
    let word = match &found.kind {
        Kind::Unknown => "unknown",
        Kind::Dynamic => "dynamic",
        Kind::Static => "static",
        Kind::Script(_) => "script",
        Kind::Python(_) => "python",
        Kind::OtherMachine(_) => "other machine",
    };
    object.text("kind", word);
    match &found.library {
        None => object.key("library").push_str("null"),
        Some(library) => {
            let mut inner = json::Object::new(object.key("library"));
            path(Some(&library.path), inner.key("path"));
            inner.text("name", library.name);
            match &library.version {
                Some(version) => json::string(version, inner.key("version")),
                None => inner.key("version").push_str("null"),
            }
            inner.text("abi", library.family.abi());
            inner.end();
        }
    }
    json::array(&found.bindings, object.key("bindings"), |binding, out| json::string(binding, out));
    match &found.launcher {
        None => object.key("launcher").push_str("null"),
        Some(launcher) => {
            let mut inner = json::Object::new(object.key("launcher"));
            path(Some(&launcher.path), inner.key("path"));
            match launcher.family {
                Some(family) => json::string(family.abi(), inner.key("abi")),
                None => inner.key("abi").push_str("null"),
            }
            inner.end();
        }
    }
    path(found.capture.as_deref(), object.key("capture"));
    json::array(&found.records, object.key("records"), |record, out| json::string(record, out));
    json::array(&found.notes, object.key("notes"), |note, out| json::string(note, out));
    json::array(&found.problems, object.key("problems"), |problem, out| {
        let mut inner = json::Object::new(out);
        inner.text("what", &problem.what).text("help", &problem.help);
        inner.end();
    });
    object.end();
    text.push('\n');
    text
}
