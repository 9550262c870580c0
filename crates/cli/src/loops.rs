//! `refrain loops`: the structure of a trace, with names from the binaries that ran.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use refrain_sites::Binaries;
use refrain_views::loops::{Options, calls_to_read, write_events, write_json, write_text};
use refrain_views::{verify, written};

use crate::addresses::is_dash;
use crate::ahead::{self, Work};
use crate::failure::{Failure, not_read, not_saved};
use crate::paint::Look;
use crate::reading::{finish, open, say_closing, shown};
use crate::{nothing, say};

pub enum Form {
    Tree,
    Json,
    Events,
    Whole,
}

pub fn loops(path: &Path, options: &Options, form: Form, folders: &[PathBuf]) -> Result<ExitCode, Failure> {
    let trace = open(path)?.trace;
    if !matches!(form, Form::Whole) {
        let items = calls_to_read(&trace, options);
        let help = "--ranks and --threads choose some of them";
        ahead::tell(path, Work { items, elements: 0 }, "call", 0, help);
    }
    let names = Binaries::new(&trace.bundle.sites, folders);
    let mut out = shown(!matches!(form, Form::Tree), Look::Tree);
    let done = match form {
        Form::Tree => write_text(&trace, &names, options, &mut out),
        Form::Json => write_json(&trace, &names, options, &mut out),
        Form::Events => write_events(&trace, options, &mut out),
        Form::Whole => written::write(&trace, &mut out),
    };
    names.warnings().iter().for_each(|warning| say(warning));
    let asked = |rank| options.ranks.as_ref().is_none_or(|asked| asked.contains(rank));
    if let (Ok(()), Some(why)) = (&done, nothing::of_ranks(&trace, asked)) {
        say(&format!("{}: {why}", path.display()));
    }
    finish(path, done)
}

/// A text of `--text` as a trace. `renew`: what it says is what counts, not what was recorded.
pub fn import(path: &Path, out: &Path, force: bool, renew: bool) -> Result<ExitCode, Failure> {
    // Before anything is read: that it cannot be written is known already.
    refrain_tracefile::target(out, force).map_err(|error| not_saved(&error))?;
    let name = if is_dash(path) { "standard input".into() } else { path.display().to_string() };
    let failed = |what: &dyn std::fmt::Display| Failure::new(format!("{name}: {what}"));
    let mut bytes = Vec::new();
    let read = match is_dash(path) {
        true => std::io::stdin().read_to_end(&mut bytes).map(drop),
        false => std::fs::read(path).map(|read| bytes = read),
    };
    read.map_err(|error| not_read(Path::new(&name), &error))?;
    if bytes.starts_with(&refrain_tracefile::MAGIC) {
        let help = "`refrain loops FILE --text` makes a text of it, which this reads back";
        return Err(failed(&"a trace file, not the text of one").help(help));
    }
    let text = String::from_utf8(bytes).map_err(|_| failed(&"it is no text"))?;
    let mut trace = written::read(&text).map_err(|error| failed(&error))?;
    if renew {
        verify::renew(&mut trace).map_err(|problem| failed(&problem))?;
    }
    let size = refrain_tracefile::save(&trace, out, force).map_err(|error| not_saved(&error))?;
    match refrain_tracefile::is_device(out) {
        true => say(&format!("{size} bytes -> {}", out.display())),
        false => say_closing(out, out),
    }
    Ok(ExitCode::SUCCESS)
}
