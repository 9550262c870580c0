//! The arrows between the crates run one way. The picture of them is in ARCHITECTURE.md; this test holds both to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Who may use whom, of our own crates. A crate that is not listed is forbidden, so is an arrow that is not.
const ALLOWED: [(&str, &[&str]); 23] = [
    ("fold", &[]),
    ("model", &[]),
    ("process", &[]),
    ("guest", &["fold", "process"]),
    ("mpi", &["process"]),
    ("addresses", &["fold"]),
    ("encode", &["model", "fold"]),
    ("times", &["model", "fold"]),
    ("tracefile", &["model", "fold", "times"]),
    ("capture-mpi", &["guest", "model", "fold", "encode", "times", "tracefile", "mpi"]),
    ("replay", &["encode", "fold", "model", "mpi", "times", "tracefile", "views"]),
    ("sites", &["fold"]),
    ("references", &["fold", "tracefile", "addresses"]),
    ("capture-memory", &["fold", "process", "references", "tracefile"]),
    ("views", &["model", "fold", "encode", "times", "tracefile", "sites", "references"]),
    ("export", &["model", "fold", "encode", "times", "tracefile", "sites", "views"]),
    ("report", &["model", "fold", "encode", "tracefile", "sites", "views", "addresses", "references"]),
    ("python", &["encode", "export", "model", "references", "sites", "times", "tracefile", "views"]),
    ("scale", &["model", "fold", "encode", "tracefile"]),
    ("extrapolate", &["model", "fold", "encode", "tracefile"]),
    (
        "cli",
        &[
            "model",
            "fold",
            "encode",
            "times",
            "tracefile",
            "sites",
            "views",
            "export",
            "extrapolate",
            "report",
            "addresses",
            "references",
        ],
    ),
    ("e2e", &["capture-mpi"]),
    ("bench", &[]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Our crates in the tables of a manifest that decide what is linked: not what only tests use.
fn arrows_of(manifest: &str) -> BTreeSet<String> {
    let mut table = "";
    let mut found = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            table = line;
        } else if table.contains("dependencies]") && !table.contains("dev-dependencies") {
            let name = line.split(['=', '.', ' ']).next().unwrap_or("");
            if let Some(ours) = name.strip_prefix("refrain-") {
                found.insert(ours.to_owned());
            }
        }
    }
    found
}

fn all_arrows() -> BTreeMap<String, BTreeSet<String>> {
    let mut arrows = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        arrows.insert(name, arrows_of(&manifest));
    }
    arrows
}

#[test]
fn arrows_run_only_where_the_map_says() {
    for (from, to) in all_arrows() {
        let (_, allowed) = ALLOWED.iter().find(|(name, _)| *name == from).unwrap_or_else(|| {
            panic!("crate {from} is not on the map: add it here and to ARCHITECTURE.md, with what it may use")
        });
        for used in to {
            assert!(allowed.contains(&used.as_str()), "{from} uses {used}, which the map forbids");
        }
    }
}

#[test]
fn the_map_itself_has_no_circle() {
    // Crates that use only crates already placed are placed; in a circle none ever is.
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    while let Some((name, _)) = ALLOWED
        .iter()
        .find(|(name, uses)| !placed.contains(name) && uses.iter().all(|used| placed.contains(used)))
    {
        placed.insert(name);
    }
    assert_eq!(placed.len(), ALLOWED.len(), "a circle among those left out of {placed:?}");
}

#[test]
fn the_picture_shows_the_arrows_there_are() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let drawn: BTreeSet<(String, String)> = text
        .lines()
        .skip_while(|line| !line.starts_with("```mermaid"))
        .take_while(|line| *line != "```")
        .filter_map(|line| line.split_once("-->"))
        .map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned()))
        .collect();
    let mut there = BTreeSet::new();
    for (from, to) in all_arrows() {
        there.extend(to.into_iter().map(|to| (from.clone(), to)));
    }
    assert_eq!(drawn, there, "the picture in ARCHITECTURE.md and the manifests differ");
}

/// What the documents call a file of this repository is there.
#[test]
fn documents_name_files_that_are_there() {
    let documents = ["README.md", "FORMAT.md", "ADDRESSES.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
    let mut seen = 0;
    for document in documents {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            let folders = ["crates/", "tests/", "scripts/", "docs/", "schemas/", "include/"];
            let is_path = folders.iter().any(|folder| name.starts_with(folder))
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            // A test of a crate is named from that crate on.
            let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
            if is_path && name != "schemas/NAME.json" {
                let there =
                    root().join(name).exists() || crates.map(|c| c.join(name)).any(|path| path.exists());
                assert!(there, "{document} names {name}, which is not there");
                seen += 1;
            }
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn a_manifest_is_understood() {
    let manifest = "[package]\nname = \"refrain-x\"\n[dependencies]\nrefrain-fold.workspace = true\nlibc = \"0.2\"\n\
                    [dev-dependencies]\nrefrain-views = { path = \"..\" }\n[build-dependencies]\nrefrain-model = \"1\"\n";
    assert_eq!(arrows_of(manifest), ["fold", "model"].map(str::to_owned).into());
}

/// A file of tests that no program has would never run.
#[test]
fn every_file_of_tests_is_part_of_a_program() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    for package in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        let all = fs::read_to_string(package.join("tests/all.rs")).unwrap_or_default();
        for file in
            fs::read_dir(package.join("tests")).into_iter().flatten().map(|entry| entry.unwrap().path())
        {
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            if file.extension().is_none_or(|end| end != "rs") || name == "all" {
                continue;
            }
            let found = !manifest.contains("autotests = false");
            let alone = manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
            let listed = all.lines().any(|line| line == format!("mod {name};"));
            assert!(found || alone || listed, "{}: add `mod {name};` to all.rs", file.display());
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}
