//! `refrain loops`: the structure of a trace, with names from the binaries that ran.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use refrain_sites::Binaries;
use refrain_views::loops::{Options, write_events, write_json, write_text};

use crate::failure::Failure;
use crate::reading::{finish, open, output};
use crate::say;

pub enum Form {
    Text,
    Json,
    Events,
}

pub fn loops(path: &Path, options: &Options, form: Form, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    let trace = open(path)?.trace;
    let names = Binaries::new(&trace.bundle.sites, folders);
    let mut out = output();
    let done = match form {
        Form::Text => write_text(&trace, &names, options, &mut out),
        Form::Json => write_json(&trace, &names, options, &mut out),
        Form::Events => write_events(&trace, options, &mut out),
    };
    names.warnings().iter().for_each(|warning| say(warning));
    finish(path, done)
}
