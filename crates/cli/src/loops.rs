//! `refrain loops`: the structure of a trace, with names from the binaries that ran.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use refrain_sites::Binaries;
use refrain_views::loops::{Options, write_events, write_json, write_text};
use refrain_views::written;

use crate::failure::Failure;
use crate::reading::{closing_line, finish, open, output};
use crate::say;

pub enum Form {
    Tree,
    Json,
    Events,
    Whole,
}

pub fn loops(path: &Path, options: &Options, form: Form, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    let trace = open(path)?.trace;
    let names = Binaries::new(&trace.bundle.sites, folders);
    let mut out = output();
    let done = match form {
        Form::Tree => write_text(&trace, &names, options, &mut out),
        Form::Json => write_json(&trace, &names, options, &mut out),
        Form::Events => write_events(&trace, options, &mut out),
        Form::Whole => written::write(&trace, &mut out),
    };
    names.warnings().iter().for_each(|warning| say(warning));
    finish(path, done)
}

/// A text of `--text` as a trace.
pub fn import(path: &Path, out: &Path, force: bool) -> Result<ExitCode, Failure> {
    let failed = |what: &dyn std::fmt::Display| Failure::new(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| failed(&format!("cannot be read: {e}")))?;
    let trace = written::read(&text).map_err(|error| failed(&error))?;
    refrain_tracefile::save(&trace, out, force).map_err(|error| Failure::new(error.to_string()))?;
    say(&closing_line(out, out));
    Ok(ExitCode::SUCCESS)
}
