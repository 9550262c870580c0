//! What the tests of this crate share.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A check that could not be made. Where all of them are asked for (`make test` sets REFRAIN_E2E) that is a failure;
/// elsewhere it is said past the test harness's capture, so that it does not look like a passed one.
pub fn skipped(what: &str) {
    assert!(std::env::var_os("REFRAIN_E2E").is_none(), "not checked: {what}");
    let _ = writeln!(std::io::stderr(), "note: not checked: {what}");
}

/// The same of something that no machine has unless somebody puts it there.
#[allow(dead_code)] // Not all test files have such checks.
pub fn not_asked_for(what: &str) {
    let _ = writeln!(std::io::stderr(), "note: not checked: {what}");
}

/// A place for the files of one launcher of Open MPI, or of one program that needs none. In the usual one who ends removes the
/// folder that another is about to use. Its path is short: sockets are made there.
pub struct Sessions(pub PathBuf);

impl Sessions {
    pub fn new() -> Sessions {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("rfm-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        Sessions(folder)
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        // What cannot be removed is only in the way.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
