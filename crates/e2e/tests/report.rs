//! Pages in a browser: Chromium opens them from disk, clicks through them (`#selftest`), and loads nothing else.
//! Ignored in a plain `cargo test`: needs Chromium, QEMU, the MPI libraries and the built command.

use std::fs;
use std::path::Path;
use std::process::Command;

use refrain_e2e::run::words;
use refrain_e2e::{Library, Program, memory, run, skipped};

/// Whatever the run, a page is no larger.
const LARGEST: u64 = 500_000;

fn browser() -> Option<&'static str> {
    let there =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|told| told.status.success());
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(there);
    if found.is_none() {
        skipped("pages in a browser: there is no chromium");
    }
    found
}

/// What the page says of itself after it has clicked through everything, and what the browser's console has.
fn clicked(browser: &str, folder: &Path, page: &str) -> (String, String) {
    let address = format!("file://{}#selftest", folder.join(page).display());
    let profile = format!("--user-data-dir={}", folder.join("browser").display());
    let options = [
        &run::LONG.as_secs().to_string(),
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--virtual-time-budget=20000",
        &profile,
        "--dump-dom",
        &address,
    ];
    let told = Command::new("timeout").args(options).output().unwrap();
    (String::from_utf8_lossy(&told.stdout).into_owned(), String::from_utf8_lossy(&told.stderr).into_owned())
}

/// The page is small, needs nothing, and works; these words are on it.
#[track_caller]
fn check(browser: &str, folder: &Path, page: &str, has: &[&str]) {
    let length = fs::metadata(folder.join(page)).unwrap().len();
    assert!(length < LARGEST, "{page}: {length} bytes");
    let (shown, console) = clicked(browser, folder, page);
    let told = shown.split("<pre id=\"selftest\">").nth(1).unwrap_or("it did not come to its end");
    assert!(told.starts_with("SELFTEST passed"), "{}/{page}: {told}\n{console}", folder.display());
    assert!(!console.contains("CONSOLE"), "{page}: {console}");
    for text in has {
        assert!(shown.contains(text), "{page} says nothing of {text:?}");
    }
}

fn refrain(folder: &Path, args: &[&str]) -> run::Outcome {
    run::refrain_in(&[], folder, &words(args))
}

#[test]
#[ignore = "needs MPI and chromium: `make test`"]
fn pages_of_runs_work_in_a_browser() {
    let Some(browser) = browser() else { return };
    let folder = run::folder("report");
    fs::copy(Program::named("stencil2d").build(Library::OpenMpi), folder.join("app")).unwrap();
    run::trace_app(&folder, Library::OpenMpi, "mean.rfn", 4, &["20"], &[]);
    run::trace_app(
        &folder,
        Library::OpenMpi,
        "exact.rfn",
        4,
        &["20"],
        &["--time", "exact", "--stacks", "site"],
    );
    run::trace_app(&folder, Library::OpenMpi, "off.rfn", 4, &["20"], &["--time", "off"]);
    for trace in ["mean", "exact", "off"] {
        let told = refrain(&folder, &["report", &format!("{trace}.rfn")]);
        assert_eq!(told.code, 0, "{}", told.stderr);
        assert!(told.stderr.contains(&format!("bytes -> {trace}.html")), "{}", told.stderr);
    }
    check(browser, &folder, "mean.html", &["MPI_Allreduce", "Reconstructed: ", "./app 20"]);
    check(browser, &folder, "exact.html", &["The critical path", "stencil2d.c:", "Every call"]);
    check(browser, &folder, "off.html", &["No times were kept", "Who sends to whom"]);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_page_is_made_at_once_and_replaces_nothing() {
    let folder = run::folder("report-at-once");
    fs::copy(Program::named("ring").build(Library::OpenMpi), folder.join("app")).unwrap();
    let launched: Vec<String> = run::launcher(Library::OpenMpi, 2);
    let traced = |options: &[&str]| {
        let mut all = words(&["run", "--report"]);
        all.extend(words(options));
        all.push("--".into());
        all.extend(launched.clone());
        all.push("./app".into());
        run::refrain_in(&[], &folder, &all)
    };
    let told = traced(&[]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stderr.contains("bytes -> app.html"), "{}", told.stderr);
    let page = fs::read_to_string(folder.join("app.html")).unwrap();
    assert!(page.contains("Refrain report"));

    // What is there stays, and nothing is run for nothing.
    fs::remove_file(folder.join("app.rfn")).unwrap();
    fs::write(folder.join("app.html"), "mine").unwrap();
    let told = traced(&[]);
    assert_eq!(told.code, 2, "{}", told.stderr);
    assert!(told.stderr.contains("app.html exists already"), "{}", told.stderr);
    assert!(!folder.join("app.rfn").exists());
    assert_eq!(fs::read_to_string(folder.join("app.html")).unwrap(), "mine");
    let told = traced(&["--force"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(fs::read_to_string(folder.join("app.html")).unwrap().len() > 1000);

    // `report` likewise, and never the trace itself.
    let told = refrain(&folder, &["report", "app.rfn"]);
    assert_eq!((told.code, told.stderr.contains("`--force` replaces it")), (2, true), "{}", told.stderr);
    let told = refrain(&folder, &["report", "app.rfn", "-o", "app.rfn", "--force"]);
    assert_eq!((told.code, told.stderr.contains("is the trace itself")), (2, true), "{}", told.stderr);
    let told = refrain(&folder, &["report", "app.rfn", "--between", "0..1", "-o", "-"]);
    assert_eq!((told.code, told.stderr.contains("--time exact")), (2, true), "{}", told.stderr);

    // `view` makes the page elsewhere, says where, and starts what the user names.
    let cache = folder.join("cache").to_string_lossy().into_owned();
    let all = [run_binary(), "view".into(), "app.rfn".into()];
    let seen = folder.join("seen").to_string_lossy().into_owned();
    let opener = folder.join("opener");
    fs::write(&opener, format!("#!/bin/sh\necho \"$1\" > '{seen}'\n")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&opener, mode).unwrap();
    let opener = opener.to_string_lossy().into_owned();
    let told = run::command(&folder, &all, &[("XDG_CACHE_HOME", cache), ("BROWSER", opener)]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let opened = fs::read_to_string(&seen).unwrap();
    assert!(told.stderr.contains(opened.trim()), "{} does not say {opened}", told.stderr);
    assert!(fs::read_to_string(opened.trim()).unwrap().contains("Refrain report"));
}

fn run_binary() -> String {
    refrain_e2e::build::refrain().to_string_lossy().into_owned()
}

#[test]
#[ignore = "needs MPI and chromium: `make test`"]
fn a_crashed_run_has_a_page() {
    let Some(browser) = browser() else { return };
    let folder = run::folder("report-crash");
    fs::copy(Program::unwitnessed("endings.c").build(Library::OpenMpi), folder.join("app")).unwrap();
    let mut all = words(&["run", "--out", "app.rfn", "--report", "--"]);
    all.extend(run::launcher(Library::OpenMpi, 2));
    all.extend(words(&["./app", "segv", "50"]));
    let told = run::refrain_in(&[], &folder, &all);
    assert_ne!(told.code, 0, "{}", told.stderr);
    assert!(told.stderr.contains("bytes -> app.html"), "{}", told.stderr);
    check(browser, &folder, "app.html", &["The run did not finish", "ended by SIGSEGV"]);
}

#[test]
#[ignore = "needs QEMU and chromium: `make test`"]
fn pages_of_memory_references_work_in_a_browser() {
    let Some(browser) = browser() else { return };
    let folder = run::folder("report-memory");
    let program = memory::built(&folder, "shared.c", "cc", &["-fopenmp"]);
    let program = program.to_string_lossy();
    let told = memory::recorded(&folder, &["--force"], &[&program]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let told = refrain(&folder, &["report", "t.rfn"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    check(browser, &folder, "t.html", &["Miss ratio by size of the cache", "Working set", "shared.c:"]);
}
