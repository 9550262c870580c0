//! README and handbook hold what they promise: every example in them is run. Ignored in a plain `cargo test`, because it needs
//! the MPI libraries and the built command.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use refrain_e2e::{build, examples, skipped};

fn documents() -> Vec<PathBuf> {
    let root = build::sources().join("..");
    let chapters =
        fs::read_dir(root.join("docs")).expect("docs is there").filter_map(|entry| Some(entry.ok()?.path()));
    let mut all: Vec<PathBuf> =
        chapters.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    all.push(root.join("README.md"));
    all.sort();
    all
}

#[test]
#[ignore = "needs MPI; run `make e2e`"]
fn every_example_is_true() {
    if std::env::var_os("REFRAIN_E2E").is_none() {
        skipped("REFRAIN_E2E is not set");
        return;
    }
    // Each document has a folder of its own; what its examples start waits for room.
    let (left, wrong) = (Mutex::new(documents()), Mutex::new(Vec::new()));
    let next = || left.lock().expect("no other thread has failed").pop();
    let work = || {
        while let Some(document) = next() {
            let found = examples::run(&document);
            wrong.lock().expect("no other thread has failed").extend(found);
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    let wrong = wrong.into_inner().expect("no thread has failed");
    assert!(wrong.is_empty(), "{} examples:\n\n{}", wrong.len(), wrong.join("\n"));
}

/// The front page is read in five minutes, and all chapters are in the table of contents.
#[test]
fn the_front_page_is_short_and_all_chapters_are_listed() {
    let root = build::sources().join("..");
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(read("README.md").lines().count() <= 150);
    let contents = read("docs/SUMMARY.md");
    for document in documents() {
        let name = document.file_name().unwrap_or_default().to_string_lossy().into_owned();
        assert!(
            contents.contains(&format!("({name})")) || ["README.md", "SUMMARY.md"].contains(&name.as_str()),
            "{name}"
        );
    }
}

/// What a document points to is there: files, and headings in them.
#[test]
fn links_lead_somewhere() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap_or_else(|e| panic!("{}: {e}", document.display()));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => document.clone(),
                file => document.with_file_name(file),
            };
            assert!(target.exists(), "{}: {link}", document.display());
            if !heading.is_empty() {
                let text = fs::read_to_string(&target).unwrap_or_default();
                let anchor = |line: &str| {
                    let words = line.trim_start_matches('#').trim().to_lowercase();
                    let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
                    kept.collect::<String>().replace(' ', "-")
                };
                let there =
                    text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading);
                assert!(there, "{}: {link}", document.display());
            }
        }
    }
}
