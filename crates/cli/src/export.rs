//! `refrain export`: a trace in another tool's format.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use refrain_export::{Error, Format, Input, Output, export as write};
use refrain_model::choice;
use refrain_sites::Binaries;
use refrain_views::dump::Selection;
use refrain_views::human::plural;
use refrain_views::select::{Between, Numbers};

use crate::addresses::is_dash;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{ahead, reading, report, say};

/// Bytes that a call takes, about: from a few, packed, to 200 in JSON.
const ROW: u64 = 50;

pub struct How<'a> {
    pub to: Format,
    pub out: PathBuf,
    pub force: bool,
    pub ranks: Option<Numbers>,
    pub between: Option<Between>,
    pub only: Option<&'a str>,
    pub folders: &'a [PathBuf],
    /// Held while the export gets its name.
    pub placing: Arc<Mutex<()>>,
}

pub fn export(file: &Path, how: How<'_>) -> Result<ExitCode, Failure> {
    let out = Output::new(how.out, how.force).placed_under(how.placing);
    if is_dash(&out.path) {
        return Err(Failure::new("an export is a file or a folder, and `-` is neither")
            .help("name one: -o OUT; into a pipe goes `-o /dev/stdout`"));
    }
    if report::same(file, &out.path) {
        let what = format!("{} is the trace itself", out.path.display());
        return Err(Failure::new(what).help("name another file: -o OUT"));
    }
    // Before anything is read: that it cannot be written is known already.
    out.check().map_err(failed(file))?;
    let only = how.only.map(choice::chosen).transpose();
    let only = only.map_err(|why| Failure::new(format!("--only: {why}")))?;
    let (trace, times) = reading::open_timed(file)?;
    let asked = Selection { ranks: how.ranks.clone(), ..Selection::default() };
    let row = if how.between.is_none() && only.is_none() { ROW } else { 0 };
    let help = "--ranks, --between and --only choose some of them";
    ahead::tell(file, ahead::Work::of(&trace, &asked), "call", row, help);
    let names = Binaries::new(&trace.bundle.sites, how.folders);
    let mut bar = Bar::new("writing");
    let all = refrain_views::info::calls(&trace.bundle);
    let mut input = Input {
        trace: &trace,
        times: times.as_ref(),
        names: &names,
        ranks: how.ranks.as_ref(),
        between: how.between,
        only: only.as_deref(),
        progress: &mut |read| bar.show(read, all),
    };
    let done = write(how.to, &mut input, &out);
    bar.clear();
    names.warnings().iter().for_each(|warning| say(warning));
    let told = done.map_err(failed(file))?;
    reading::say_lost_times(file, times.as_ref());
    reading::say_apart(file, times.as_ref());
    told.notes.iter().for_each(|note| say(&format!("{}: {note}", file.display())));
    say(&format!("{} -> {}", plural(told.calls, "call"), out.path.display()));
    Ok(ExitCode::SUCCESS)
}

/// What is about the trace names it; what is about the output names that already.
fn failed(file: &Path) -> impl Fn(Error) -> Failure {
    move |error| {
        let text = match &error {
            Error::Trace(error) => format!("{}: {error}", file.display()),
            other => other.to_string(),
        };
        match error.help() {
            Some(help) => Failure::new(text).help(help),
            None => Failure::new(text),
        }
    }
}

pub fn help() -> String {
    let formats: String =
        Format::ALL.iter().map(|one| format!("  {:<10}{}\n", one.name, one.about)).collect();
    format!(
        "\
Examples:
  refrain export app.rfn --to otf2 -o app-otf2                  a folder that Vampir and ViTE open
  refrain export app.rfn --to otf2 -o part --ranks 0-3 --between 1.5..2
  refrain export app.rfn --to perfetto -o app.pftrace           open it at ui.perfetto.dev
  refrain export app.rfn --to paraver -o app.prv                with app.pcf and app.row beside it
  refrain export app.rfn --to parquet -o app.parquet            a table: one row a call

Formats:
{formats}
Calls are written as they are read, so memory does not grow with the run. Runs recorded with --time exact or binned have the
times of each call. Of other runs only sums are known: then each rank's calls follow one another with mean durations and
gaps, and the export says so."
    )
}
