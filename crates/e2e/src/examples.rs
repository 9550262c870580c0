//! The examples of README and handbook: what stands there is run, and what it prints is held against what stands there.
//!
//! An example is a line of an indented block that begins with `$ `; the lines below it are what it prints, as far as they are
//! shown. They may stand in any order, numbers may be others, and `...` stands for lines, or for the rest of a line.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::build::{self, Library, Program};
use crate::machine::{self, Room};
use crate::run;

#[derive(Debug, PartialEq, Eq)]
pub struct Example {
    /// Of the document, from 1.
    pub line: usize,
    pub command: String,
    pub shown: Vec<String>,
}

const INDENT: &str = "    ";

/// Those of a document, in its order.
pub fn of(document: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    // Whether the line before belongs to an example, and whether its command goes on.
    let (mut inside, mut goes_on) = (false, false);
    for (number, line) in (1..).zip(document.lines()) {
        let Some(text) = line.strip_prefix(INDENT) else {
            // Empty lines may be part of a block.
            inside &= line.is_empty();
            continue;
        };
        if let Some(command) = text.strip_prefix("$ ") {
            found.push(Example { line: number, command: command.to_owned(), shown: Vec::new() });
            (inside, goes_on) = (true, command.ends_with('\\'));
        } else if let (true, Some(last)) = (inside, found.last_mut()) {
            if goes_on {
                let _ = write!(last.command, "\n{text}");
                goes_on = text.ends_with('\\');
            } else {
                last.shown.push(text.trim_end().to_owned());
            }
        }
    }
    found
}

/// A line without what differs from run to run: numbers with their units, and bars.
fn masked(line: &str) -> String {
    const UNITS: [&str; 13] =
        ["ns", "us", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "bytes", "byte", "%"];
    let mut words: Vec<String> = Vec::new();
    for word in line.split(|c: char| c.is_whitespace() || ('\u{2580}'..='\u{259f}').contains(&c) || c == '·')
    {
        let mut own = String::new();
        // The longest rank of a run may be one whose times are known to the nanosecond, or not.
        for c in word.trim_start_matches('~').chars() {
            let number = c.is_ascii_digit() || (matches!(c, '.' | ',') && own.ends_with('#'));
            match (number, own.ends_with('#')) {
                (true, true) => {}
                (true, false) => own.push('#'),
                (false, _) => own.push(c),
            }
        }
        // What ends a sentence may stand behind it.
        let bare = own.trim_end_matches([',', '.', ';', ':', ')']);
        let counted = words.last().is_some_and(|last| last.ends_with('#'));
        if own.is_empty() || (counted && UNITS.contains(&bare)) {
            continue;
        }
        words.push(own);
    }
    words.join(" ")
}

/// What is shown and was not printed.
pub fn missing<'a>(example: &'a Example, printed: &str) -> Vec<&'a str> {
    let printed: Vec<String> = printed.lines().map(masked).collect();
    let there = |shown: &str| match shown.strip_suffix("...") {
        Some(start) => printed.iter().any(|line| line.starts_with(&masked(start))),
        None => printed.contains(&masked(shown)),
    };
    example.shown.iter().map(String::as_str).filter(|shown| !there(shown)).collect()
}

/// The programs of `tests/programs` that a command names: `./ring` is `ring.c` there.
fn programs(command: &str) -> BTreeSet<String> {
    let names = command.split(|c: char| c.is_whitespace() || matches!(c, ';' | '(' | ')' | '"' | '\''));
    let names = names.filter_map(|word| word.strip_prefix("./"));
    names.filter_map(source).collect()
}

fn source(name: &str) -> Option<String> {
    let folder = build::sources().join("programs");
    ["c", "cpp", "f90", "f"]
        .map(|end| format!("{name}.{end}"))
        .into_iter()
        .find(|file| folder.join(file).exists())
}

/// Runs all examples of a document, one after the other, in a folder of their own. What was wrong with them.
pub fn run(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).unwrap_or_else(|e| panic!("{}: {e}", document.display()));
    let name = document.file_stem().unwrap_or_default().to_string_lossy();
    let mut examples = of(&text);
    if !python().exists() {
        let all = examples.len();
        examples.retain(|example| !example.command.contains("python3"));
        if examples.len() < all {
            crate::skipped(&format!(
                "{name}.md: its examples in Python; `scripts/python` could not fetch what they need"
            ));
        }
    }
    let folder = run::folder(&format!("handbook-{name}"));
    let (here, results) = (folder.join("here"), folder.join("results"));
    for made in [&here, &results] {
        fs::create_dir(made).unwrap_or_else(|e| panic!("{}: {e}", made.display()));
    }
    let mut script = String::from("cd here\n");
    for (number, example) in examples.iter().enumerate() {
        let library = if example.command.contains(".openmpi") { Library::OpenMpi } else { Library::Mpich };
        for source in programs(&example.command) {
            let built = Program::unwitnessed(Box::leak(source.into_boxed_str())).build(library);
            let _ = writeln!(script, "cp -f '{}' .", built.display());
        }
        let _ = writeln!(
            script,
            "{{ {}\n}} >../results/{number}.out 2>&1\necho $? >../results/{number}.code",
            example.command
        );
    }
    // One example runs at a time: the largest needs room, not all of them together.
    let ranks = |example: &Example| machine::ranks(std::slice::from_ref(&example.command));
    let _room = Room::for_ranks(examples.iter().map(ranks).max().unwrap_or(0));
    let outcome = run::command(&folder, &run::words(&["bash", "-c", &script]), &environment(&folder));
    let mut wrong = Vec::new();
    for (number, example) in examples.iter().enumerate() {
        let read = |end: &str| {
            let bytes = fs::read(results.join(format!("{number}.{end}"))).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (printed, code) = (read("out"), read("code"));
        let missing = missing(example, &printed);
        // 1 is an answer: no, they differ.
        let answered = match code.trim() {
            "0" => true,
            "1" => !example.shown.is_empty(),
            _ => false,
        };
        if !answered || !missing.is_empty() {
            wrong.push(format!(
                "{}:{}: {}\nends with {}, and does not print\n    {}\nIt prints\n{printed}",
                document.display(),
                example.line,
                example.command,
                code.trim(),
                missing.join("\n    ")
            ));
        }
    }
    if !outcome.stderr.is_empty() && !wrong.is_empty() {
        wrong.push(outcome.stderr);
    }
    wrong
}

/// With all that `scripts/python` fetched.
fn python() -> PathBuf {
    build::target().join("python/bin/python3")
}

/// What examples find: `refrain`, an `mpiexec`, Python with what it needs, and no browser.
fn environment(folder: &Path) -> Vec<(&'static str, String)> {
    let bin = folder.join("bin");
    fs::create_dir(&bin).unwrap_or_else(|e| panic!("{}: {e}", bin.display()));
    // Not links: launchers look for their own beside them.
    let start = |command: String, name: &str| {
        let script = bin.join(name);
        fs::write(&script, format!("#!/bin/sh\nexec {command} \"$@\"\n"))
            .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
            .unwrap_or_else(|e| panic!("{}: {e}", script.display()));
    };
    start(build::refrain().display().to_string(), "refrain");
    start(Library::Mpich.tool("mpiexec"), "mpiexec");
    start(Library::Mpich.tool("mpicc"), "mpicc");
    start(python().display().to_string(), "python3");
    let path = std::env::var("PATH").unwrap_or_default();
    vec![
        ("PATH", format!("{}:{path}", bin.display())),
        ("LD_PRELOAD", build::yielding().to_string_lossy().into_owned()),
        ("PYTHONPATH", build::python_module(folder).to_string_lossy().into_owned()),
        ("BROWSER", "true".into()),
        // As root, and with more ranks than cores.
        ("OMPI_ALLOW_RUN_AS_ROOT", "1".into()),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".into()),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1".into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "Text.\n\n    $ refrain run -- \\\n        ./ring\n    ring: 2 ranks\n    ...\n\n    of 3.5 ms, ...\n\nMore.\n\n    listing\n    $ true   # yes\n\nEnd\n";

    #[test]
    fn examples_are_found_with_what_they_print() {
        let found = of(DOCUMENT);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].command, "refrain run -- \\\n    ./ring");
        assert_eq!(found[0].shown, ["ring: 2 ranks", "...", "of 3.5 ms, ..."]);
        assert_eq!((found[1].line, found[1].command.as_str()), (13, "true   # yes"));
        assert_eq!(programs(&found[0].command), BTreeSet::from(["ring.c".to_owned()]));
    }

    #[test]
    fn numbers_may_differ_and_words_may_not() {
        let found = of(DOCUMENT);
        assert!(missing(&found[0], "ring: 12 ranks\nof 1,200.5 us, and so on").is_empty());
        assert_eq!(missing(&found[0], "ring: 12 ranks"), ["of 3.5 ms, ..."]);
        assert_eq!(missing(&found[0], "ring of 2 ranks\nof 3 s, x"), ["ring: 2 ranks"]);
        assert_eq!(masked("a  ███▌  45.6%  200 calls"), masked("a █ 5.1% 4 calls"));
        assert_eq!(masked("MPI_Isend(count=8) 3 KiB, x"), masked("MPI_Isend(count=99)  3.5 MiB, x"));
    }
}
