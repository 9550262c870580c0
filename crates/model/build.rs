//! Compiles `calls.txt` and `constants.txt` into the tables that `table.rs` and `constants.rs` include.

#[allow(dead_code)]
#[path = "src/notation.rs"]
mod notation;

use std::collections::HashMap;
use std::fmt::{Display, Write};
use std::path::Path;

fn main() {
    for file in ["build.rs", "src/notation.rs", "src/notation/resolve.rs", "calls.txt", "constants.txt"] {
        println!("cargo::rerun-if-changed={file}");
    }
    if let Err(message) = compile() {
        println!("cargo::error={message}");
        std::process::exit(1);
    }
}

fn compile() -> Result<(), String> {
    let read = |file: &str| std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"));
    let sets = notation::constants(&read("constants.txt")?).map_err(|e| format!("constants.txt, {e}"))?;
    let functions = notation::functions(&read("calls.txt")?, &sets).map_err(|e| format!("calls.txt, {e}"))?;
    let out = std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this through cargo")?;
    let write = |file: &str, text: String| {
        let path = Path::new(&out).join(file);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
    };
    write("calls.rs", calls(functions))?;
    write("constants.rs", constants(&sets))
}

fn calls(mut functions: Vec<notation::Function>) -> String {
    functions.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = format!(
        "/// How many functions the call table has.\npub const FUNCTION_COUNT: usize = {};\nstatic FUNCTIONS: &[Function] = &[\n",
        functions.len()
    );
    for f in &functions {
        line(
            &mut text,
            format_args!(
                "Function {{ id: {}, name: {:?}, since: {}, returns: {}, persistent: {}, silent: {}, poll: {}, \
                 families: &{:?}, params: &[",
                f.id, f.name, f.since, f.returns, f.persistent, f.silent, f.poll, f.families
            ),
        );
        for p in &f.params {
            line(
                &mut text,
                format_args!(
                    "    Param {{ name: {:?}, dir: {}, ctype: {}, kind: {}, len: &[{}], when: &[{}], effect: {} }},",
                    p.name,
                    p.dir,
                    p.ctype,
                    p.kind,
                    p.len.join(", "),
                    p.when.join(", "),
                    p.effect
                ),
            );
        }
        line(&mut text, "] },");
    }
    line(&mut text, "];");
    let by_id = by_id(functions.iter().map(|f| f.id));
    line(&mut text, format_args!("static BY_ID: &[u16] = &{by_id:?};"));
    text
}

fn constants(sets: &[notation::Set]) -> String {
    let mut all: Vec<_> = sets.iter().flat_map(|set| set.constants.iter().map(|c| (c, &set.name))).collect();
    all.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    let mut text = String::from("static CONSTANTS: &[Constant] = &[\n");
    for (c, set) in &all {
        let (id, name, size) = (c.id, &c.name, c.size);
        line(
            &mut text,
            format_args!("    Constant {{ id: {id}, name: {name:?}, set: {set:?}, size: {size:?} }},"),
        );
    }
    line(&mut text, "];");
    let by_id = by_id(all.iter().map(|(c, _)| c.id));
    line(&mut text, format_args!("static BY_ID: &[u16] = &{by_id:?};"));

    let place: HashMap<&str, usize> =
        all.iter().enumerate().map(|(i, (c, _))| (c.name.as_str(), i)).collect();
    let mut sorted: Vec<_> = sets.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    line(&mut text, "static SETS: &[(&str, &[u16])] = &[");
    for set in sorted {
        let also = sets.iter().filter(|other| Some(&other.name) == set.also.as_ref());
        let members: Vec<usize> = set
            .constants
            .iter()
            .chain(also.flat_map(|s| &s.constants))
            .map(|c| place[c.name.as_str()])
            .collect();
        line(&mut text, format_args!("    ({:?}, &{members:?}),", set.name));
    }
    line(&mut text, "];");
    text
}

/// For each id the place it has in its table; `u16::MAX` where no one has it.
fn by_id(ids: impl Iterator<Item = u16>) -> Vec<u16> {
    let mut places = Vec::new();
    for (place, id) in (0..u16::MAX).zip(ids) {
        let id = usize::from(id);
        if places.len() <= id {
            places.resize(id + 1, u16::MAX);
        }
        places[id] = place;
    }
    places
}

fn line(text: &mut String, line: impl Display) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}
