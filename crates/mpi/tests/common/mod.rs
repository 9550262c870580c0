//! What the tests of this crate share.

use std::io::Write;

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
