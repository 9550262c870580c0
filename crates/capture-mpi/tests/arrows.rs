//! What lives in a traced process, this crate, `guest` and `capture-memory`, is a house of rooms on floors. The arrows between its files run
//! down, or stay on one floor, and never in a circle; neither do those between the rooms. And all statics are listed where a
//! reader finds them: in the table that each crate's `lib.rs` opens with.
//!
//! An arrow is a path in the source that leads to another module: `crate::a::b`, `super::c`, or `d::e` where `d` is a
//! module below. What only tests use does not count, nor does what `build.rs` writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The rooms of a crate, lowest floor first. A room is a module with all that is below it.
type Floors = &'static [&'static [&'static str]];

const GUEST: Floors = &[&["process", "objects"], &["threads", "memory", "stacks", "ends"], &["streams"]];

const CAPTURE: Floors = &[
    &["config", "hooks", "library", "marked", "switches"],
    &["endings", "files", "filter", "flight", "held", "missing", "tail", "wild"],
    &["log", "parts", "recording"],
    &["recorder", "merge"],
    &["entry"],
];

const MEMORY: Floors = &[
    &["config", "decode", "fatal", "files", "heap", "modules", "paths", "qemu", "record"],
    &["code", "exec", "switch"],
    &["compiled", "recording"],
    &["process"],
    &["translation"],
    &["callbacks"],
    &["entry"],
];

const HOUSE: [(&str, Floors); 3] = [("guest", GUEST), ("capture-mpi", CAPTURE), ("capture-memory", MEMORY)];

/// From each module to those that it uses.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// A module by its path in the crate, as `a::b`; the crate itself is the empty one.
fn name_of(file: &Path) -> String {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let name = parts.join("::");
    let name = name.strip_suffix(".rs").unwrap_or(&name);
    let name = name.strip_suffix("::mod").unwrap_or(name);
    if name == "lib" { String::new() } else { name.to_owned() }
}

fn sources(folder: &Path, below: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            sources(folder, &path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(folder.join(&path)).unwrap();
            found.push((name_of(&path), text));
        }
    }
}

fn files_of(crate_: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(crate_).join("src");
    sources(&folder, Path::new(""), &mut found);
    found
}

/// What is not test code.
fn without_tests(text: &str) -> &str {
    text.split_once("#[cfg(test)]\nmod tests").map_or(text, |(code, _)| code)
}

/// Words and marks, without comments, strings and characters. A path's `::` is one mark.
fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = text;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, after)| after);
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            rest = end.map_or("", |end| &rest[end + 2..]);
        } else if c == '\'' {
            // A character, or a lifetime, which has no second mark.
            let character =
                rest.chars().nth(1).is_some_and(|c| c == '\\') || rest.chars().nth(2) == Some('\'');
            let length = if !character {
                1 + rest[1..].find(|c| !is_word(c)).unwrap_or(rest.len() - 1)
            } else if rest[1..].starts_with("\\'") {
                4
            } else {
                2 + rest[1..].find('\'').unwrap()
            };
            rest = &rest[length..];
        } else if is_word(c) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            found.push(rest[..end].to_owned());
            rest = &rest[end..];
        } else if rest.starts_with("::") {
            found.push("::".to_owned());
            rest = &rest[2..];
        } else {
            if !c.is_whitespace() {
                found.push(c.to_string());
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    found
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

fn parent(module: &str) -> String {
    module.rsplit_once("::").map_or(String::new(), |(parent, _)| parent.to_owned())
}

struct Scan<'a> {
    /// Those that are files.
    modules: &'a BTreeSet<String>,
    tokens: Vec<String>,
    at: usize,
    found: BTreeSet<String>,
}

impl Scan<'_> {
    fn token(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    /// The rest of a path, or of a tree of them, that has led to `from` so far.
    fn follow(&mut self, mut from: String) {
        loop {
            if self.token(0) == "{" {
                self.at += 1;
                while !["}", ""].contains(&self.token(0)) {
                    match self.token(0) {
                        "," => self.at += 1,
                        _ => self.follow(from.clone()),
                    }
                }
                self.at += 1;
                return;
            }
            let name = self.token(0).to_owned();
            self.at += 1;
            match name.as_str() {
                "self" => {}
                "super" => from = parent(&from),
                _ => from = join(&from, &name),
            }
            if self.token(0) != "::" {
                break;
            }
            self.at += 1;
            if self.token(0) == "<" {
                break;
            }
        }
        if self.token(0) == "as" {
            self.at += 2;
        }
        while !self.modules.contains(&from) {
            from = parent(&from);
        }
        self.found.insert(from);
    }

    fn run(mut self, file: &str) -> BTreeSet<String> {
        // Modules inside the file, each with the depth of braces outside it.
        let mut inner: Vec<(String, usize)> = Vec::new();
        let (mut depth, mut before) = (0, String::new());
        while self.at < self.tokens.len() {
            let here = inner.last().map_or(file.to_owned(), |(module, _)| module.clone());
            let token = self.token(0).to_owned();
            let child = join(&here, &token);
            let begins = self.token(1) == "::" && !["::", "."].contains(&before.as_str());
            match token.as_str() {
                "mod" if self.token(2) == "{" => inner.push((join(&here, self.token(1)), depth)),
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inner.pop_if(|(_, outside)| *outside == depth);
                }
                "crate" | "super" | "self" if begins => {
                    self.at += 2;
                    self.follow(match token.as_str() {
                        "crate" => String::new(),
                        "super" => parent(&here),
                        _ => here,
                    });
                    before = String::new();
                    continue;
                }
                _ if begins && self.modules.contains(&child) => {
                    self.follow(here);
                    before = String::new();
                    continue;
                }
                _ => {}
            }
            before = token;
            self.at += 1;
        }
        self.found.remove(file);
        self.found
    }
}

fn arrows_among(files: &[(String, String)]) -> Arrows {
    let modules: BTreeSet<String> = files.iter().map(|(module, _)| module.clone()).collect();
    let arrows = files.iter().map(|(module, text)| {
        let tokens = tokens(without_tests(text));
        let scan = Scan { modules: &modules, tokens, at: 0, found: BTreeSet::new() };
        (module.clone(), scan.run(module))
    });
    arrows.collect()
}

/// The modules from which a way leads back to themselves.
fn in_circles(arrows: &Arrows) -> BTreeSet<String> {
    let reachable = |from: &String| {
        let mut seen: BTreeSet<&String> = BTreeSet::new();
        let mut next: Vec<&String> = arrows[from].iter().collect();
        while let Some(module) = next.pop() {
            if seen.insert(module) {
                next.extend(&arrows[module]);
            }
        }
        seen.contains(from)
    };
    arrows.keys().filter(|module| reachable(module)).cloned().collect()
}

/// The room that a module is in.
fn room(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

fn floor(floors: Floors, module: &str) -> Option<usize> {
    floors.iter().position(|rooms| rooms.contains(&room(module)))
}

#[test]
fn every_file_is_in_a_room_and_every_room_has_files() {
    for (crate_, floors) in HOUSE {
        let files = files_of(crate_);
        for (module, _) in files.iter().filter(|(module, _)| !module.is_empty()) {
            assert!(
                floor(floors, module).is_some(),
                "{crate_}: {module} is on no floor: add its room to one"
            );
        }
        for room in floors.iter().copied().flatten() {
            assert!(files.iter().any(|(module, _)| self::room(module) == *room), "{crate_}: {room} is empty");
        }
    }
}

#[test]
fn arrows_do_not_run_up() {
    for (crate_, floors) in HOUSE {
        for (from, to) in arrows_among(&files_of(crate_)) {
            for used in to {
                let (above, below) = (floor(floors, &from), floor(floors, &used));
                assert!(below <= above, "{crate_}: {from} uses {used}, which is above it");
            }
        }
    }
}

#[test]
fn there_is_no_circle_of_files_and_none_of_rooms() {
    for (crate_, _) in HOUSE {
        let arrows = arrows_among(&files_of(crate_));
        assert_eq!(in_circles(&arrows), BTreeSet::new(), "{crate_}: files that use each other in a circle");
        let mut rooms = Arrows::new();
        for (from, to) in &arrows {
            let used = rooms.entry(room(from).to_owned()).or_default();
            used.extend(to.iter().map(|to| room(to).to_owned()).filter(|to| to != room(from)));
        }
        assert_eq!(in_circles(&rooms), BTreeSet::new(), "{crate_}: rooms that use each other in a circle");
        let drawn: usize = arrows.values().map(BTreeSet::len).sum();
        println!("{crate_}: {} files, {drawn} arrows, no circle", arrows.len());
        rooms.iter().for_each(|(from, to)| println!("    {from} -> {to:?}"));
    }
}

/// The statics that a file defines, those of threads among them. Not what C's libraries have.
fn statics_in(text: &str) -> BTreeSet<String> {
    let tokens = tokens(without_tests(text));
    let found = tokens
        .windows(3)
        .filter(|next| next[0] == "static" && next[2] == ":" && next[1].chars().all(|c| !c.is_lowercase()));
    found.map(|next| next[1].clone()).collect()
}

/// What the table at the beginning of a `lib.rs` says: lines as ``//! | `room::file` | `ONE`, `OTHER` | ... |``.
fn statics_told(lib: &str) -> BTreeSet<(String, String)> {
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let mut told = BTreeSet::new();
    for row in rows {
        let (module, rest) = row.split_once('`').unwrap();
        let names = rest.split('|').nth(1).unwrap().split('`').skip(1).step_by(2);
        told.extend(names.map(|name| (module.to_owned(), name.to_owned())));
    }
    told
}

#[test]
fn every_static_is_in_the_table_and_no_other() {
    for (crate_, _) in HOUSE {
        let files = files_of(crate_);
        let lib = files.iter().find(|(module, _)| module.is_empty()).unwrap();
        let there = files
            .iter()
            .flat_map(|(module, text)| statics_in(text).into_iter().map(move |name| (module.clone(), name)));
        assert_eq!(
            there.collect::<BTreeSet<_>>(),
            statics_told(&lib.1),
            "{crate_}: statics, and the table of lib.rs"
        );
    }
}

#[test]
fn statics_are_found() {
    let text = "static ONE: AtomicU8 = AtomicU8::new(0);\n/// static NOT: u8\npub static TWO: [&'static str; 1] = [\"\"];\n\
                thread_local! { static THREE: Cell<u8> = const { Cell::new(0) }; }\n\
                unsafe extern \"C\" { static environ: usize; }\nfn f<T: 'static>(T: u8) {}\n\
                #[cfg(test)]\nmod tests { static FOUR: u8 = 0; }";
    assert_eq!(statics_in(text).into_iter().collect::<Vec<_>>(), ["ONE", "THREE", "TWO"]);
    let told = statics_told(
        "//! | room | statics | what |\n//! |---|---|---|\n//! | `a::b` | `ONE`, `TWO` | x `y` |\n",
    );
    let pair = |name: &str| ("a::b".to_owned(), name.to_owned());
    assert_eq!(told.into_iter().collect::<Vec<_>>(), [pair("ONE"), pair("TWO")]);
}

#[test]
fn arrows_are_found() {
    let file = |module: &str, text: &str| (module.to_owned(), text.to_owned());
    let files = [
        file("", "mod a; pub mod b; // crate::b::c\n"),
        file("a", "use crate::{b::{self, c::X as Y}, d};\nconst S: &str = \"crate::d::e\";\n"),
        file("b", "pub use c::X; mod inner { use super::super::d; fn f<'a>() -> char { '\"' } }"),
        file("b::c", "fn f() { super::g(); a::h(); }\n#[cfg(test)]\nmod tests { use crate::d; }"),
        file(
            "d",
            "mod inner { use super::T; } fn f(x: T) { x.b::<u8>(); crate::a::g::<u8>(); $crate::b!() }",
        ),
    ];
    let arrows = arrows_among(&files);
    let check = |from: &str, to: &[&str]| {
        assert_eq!(arrows[from], to.iter().map(|&to| to.to_owned()).collect(), "{from}");
    };
    check("", &[]);
    check("a", &["b", "b::c", "d"]);
    check("b", &["b::c", "d"]);
    check("b::c", &["b"]);
    check("d", &["a", "b"]);
    assert_eq!(in_circles(&arrows).into_iter().collect::<Vec<_>>(), ["a", "b", "b::c", "d"]);
}
