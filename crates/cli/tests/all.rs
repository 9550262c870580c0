//! All tests of this crate that need nothing of their own: one program, built and linked once.

mod addresses;
mod arrows;
mod bombs;
mod commands;
mod common;
#[path = "../../views/tests/common/mod.rs"]
mod made;
mod recorded;
mod references;
mod schemas;
mod shell;
mod simulate;
mod stumbling;
#[path = "common/unique.rs"]
mod unique;
