//! Files that are not what they should be: an answer, never a panic. Ignored in a plain `cargo test`: the trace is
//! made by a real run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use refrain_e2e::{Library, Program, run};

fn trace() -> &'static [u8] {
    static TRACE: OnceLock<Vec<u8>> = OnceLock::new();
    TRACE.get_or_init(|| {
        let traced = run::traced_with(Library::Mpich, &Program::named("ring"), 2, &[]);
        fs::read(&traced.trace).unwrap_or_else(|e| panic!("{e}; {}", traced.outcome.stderr))
    })
}

fn file(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("t.rfn");
    fs::write(&path, bytes).unwrap();
    path
}

/// The exit code, and everything it said.
fn ask(command: &str, path: &Path) -> (i32, String) {
    let outcome = run::refrain(&[command, &path.to_string_lossy()]);
    let said = outcome.stderr + &outcome.stdout;
    assert!(!said.contains("panicked"), "{command}: {said}");
    (outcome.code, said)
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn empty_foreign_truncated_and_missing_files() {
    let folder = run::folder("damage");
    let whole = trace();
    let mut cases = vec![("empty".to_string(), Vec::new())];
    cases.push(("text".into(), b"This is no trace.\n".repeat(40)));
    cases.push(("a program".into(), fs::read("/bin/sh").unwrap()[..4096].to_vec()));
    cases.push(("zeros".into(), vec![0; 1000]));
    for length in [1, 3, 4, 5, 8, 16, whole.len() / 3, whole.len() / 2, whole.len() - 4, whole.len() - 1] {
        cases.push((format!("the first {length} of {} bytes", whole.len()), whole[..length].to_vec()));
    }
    for (what, bytes) in &cases {
        let path = file(&folder, bytes);
        for command in ["info", "dump", "stats", "verify"] {
            let (code, said) = ask(command, &path);
            assert_eq!(code, 2, "{command} of {what}: {said}");
            assert!(said.contains("t.rfn"), "{command} of {what} does not name the file: {said}");
        }
    }
    let (code, said) = ask("info", &folder.join("not-there.rfn"));
    assert!(code == 2 && said.contains("not-there.rfn"), "{said}");
    println!("{} files that are none, 4 commands each", cases.len());
}

/// Any one bit of the file: `verify` says no and where; the others refuse or, where they do not look there, answer.
#[test]
#[ignore = "needs MPI: `make test`"]
fn every_byte_counts() {
    let folder = run::folder("flip");
    let whole = trace();
    assert_eq!(ask("verify", &file(&folder, whole)).0, 0);
    for at in 0..whole.len() {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 1 << (at % 8);
        let path = file(&folder, &bytes);
        let (code, said) = ask("verify", &path);
        // A file without the mark at its start is not a damaged trace but none.
        let expected: &[i32] = if at < 4 { &[1, 2] } else { &[1] };
        assert!(expected.contains(&code), "byte {at}: verify ends with {code}: {said}");
        assert!(said.contains("offset"), "byte {at}: {said}");
        if at % 16 == 0 {
            let (code, said) = ask("dump", &path);
            assert_eq!(code, 2, "byte {at}: dump: {said}");
        }
    }
    println!("{} bytes, each flipped", whole.len());
}
