//! Traces in other tools' formats, written as the calls are read.
//!
//! Owns: the formats. Does not own: what calls mean (`refrain_views::happenings`), opening traces, arguments, exit codes;
//! nothing here prints by itself.

mod chrome;
mod collectives;
#[cfg(feature = "parquet")]
mod csv;
mod error;
mod format;
mod otf2;
mod out;
mod paje;
mod paraver;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
mod protobuf;
mod simgrid;
#[cfg(feature = "parquet")]
pub mod table;
mod timeline;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use refrain_model::Function;
use refrain_sites::Names;
use refrain_tracefile::Trace;
use refrain_views::dump::Selection;
use refrain_views::select::{Between, Numbers};
use refrain_views::timed::Times;

pub use error::Error;
pub use format::{Format, Named};

/// What is exported.
pub struct Input<'a> {
    pub trace: &'a Trace,
    /// When calls began and ended, where the trace says so.
    pub times: Option<&'a Times>,
    /// Call sites by name.
    pub names: &'a dyn Names,
    pub ranks: Option<&'a Numbers>,
    pub between: Option<Between>,
    /// Only calls of these functions.
    pub only: Option<&'a [&'static Function]>,
    /// Told how many calls have been read.
    pub progress: &'a mut dyn FnMut(u64),
}

impl Input<'_> {
    /// Which calls were asked for.
    pub fn selection(&self) -> Selection {
        Selection {
            ranks: self.ranks.cloned(),
            only: self.only.map(<[_]>::to_vec),
            between: self.between,
            ..Selection::default()
        }
    }
}

/// Where it goes: a file or a folder.
#[derive(Debug, Clone)]
pub struct Output {
    pub path: PathBuf,
    /// What is there already is replaced.
    pub force: bool,
    /// Held while what is finished gets its name: whoever ends the process and removes what is not finished waits for it.
    placing: Arc<Mutex<()>>,
    /// What it will be called, where it is made apart.
    becomes: Option<PathBuf>,
}

/// What there is to say after an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Calls that were written.
    pub calls: u64,
    /// What a user has to know: sentences without a period.
    pub notes: Vec<String>,
}

/// Writes a trace in a format.
pub fn export(format: Format, input: &mut Input, out: &Output) -> Result<Report, Error> {
    out.check()?;
    if input.only.is_some() && !format.is_table() {
        let what = "--only goes with tables: parquet and csv".to_string();
        return Err(Error::Refused {
            what,
            help: "--ranks and --between go with all formats but simgrid".into(),
        });
    }
    if format.is_table() && cfg!(not(feature = "parquet")) {
        let what = "this build of refrain, which `make demo` makes, writes no tables".to_string();
        return Err(Error::Refused { what, help: "`make build` makes one that does".into() });
    }
    if format == Format::Paraver {
        paraver::check(out)?;
    }
    if !format.is_folder() && out.path.is_dir() {
        let what = format!("{} is a folder, and this format is one file", out.path.display());
        return Err(Error::Refused { what, help: "name a file".into() });
    }
    if format.is_folder() {
        out.check_folder(|path| format.made(path))?;
    }
    let made = out.apart()?;
    let report = write(format, input, &made.output)?;
    match format.is_folder() {
        true => made.put_folder_in_place(out, |path| format.made(path))?,
        false => made.put_in_place(out)?,
    }
    Ok(report)
}

fn write(format: Format, input: &mut Input, out: &Output) -> Result<Report, Error> {
    match format {
        Format::Chrome => chrome::write(input, out),
        Format::Perfetto => perfetto::write(input, out),
        Format::Paje => paje::write(input, out),
        Format::Paraver => paraver::write(input, out),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::write(input, out),
        #[cfg(feature = "parquet")]
        Format::Csv => csv::write(input, out),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet | Format::Csv => unreachable!("refused before anything is written"),
        Format::Otf2 => otf2::write(input, out),
        Format::Simgrid => simgrid::write(input, out),
    }
}
