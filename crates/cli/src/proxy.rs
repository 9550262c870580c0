//! `refrain proxy`: a C program that makes the calls of a trace.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use refrain_sites::Binaries;
use refrain_tracefile::save_text;
use refrain_views::human::{plural, thousands};
use refrain_views::proxy::{self, Options, Report};

use crate::addresses::is_dash;
use crate::ahead::{self, Work};
use crate::failure::{Failure, not_saved};
use crate::progress::Bar;
use crate::{print, reading, say};

pub struct How<'a> {
    pub out: PathBuf,
    pub force: bool,
    /// For any number of ranks.
    pub any: bool,
    pub folders: &'a [PathBuf],
}

/// So many numbers are named that depend on how many ranks there are.
const MOST_TOLD: usize = 12;

pub fn proxy(file: &Path, how: &How<'_>) -> Result<ExitCode, Failure> {
    // Before anything is read: that it cannot be written is known already.
    if !how.force && !is_dash(&how.out) && how.out.symlink_metadata().is_ok() {
        return Err(exists(&how.out));
    }
    let trace = reading::open(file)?.trace;
    let work = Work::all(&trace);
    let is_short = work.items <= proxy::MOST_CALLS;
    // More are refused.
    if is_short {
        ahead::tell(file, work, "call", 0, "");
    }
    let obstacles = proxy::obstacles(&trace);
    if !obstacles.is_empty() {
        let text = format!("{} cannot become a program: {}", file.display(), obstacles.join("; "));
        return Err(Failure::new(text));
    }
    if is_short {
        reading::as_recorded(file, &trace)?;
    }
    let names = Binaries::new(&trace.bundle.sites, how.folders);
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let options = Options { any: how.any, file: name };
    let mut bar = Bar::new("reading");
    let all = refrain_views::info::calls(&trace.bundle);
    let made = proxy::program(&trace, &names, &options, &mut |read| bar.show(read, all));
    bar.clear();
    names.warnings().iter().for_each(|warning| say(warning));
    let (text, report) = made.map_err(|why| Failure::new(format!("{}: {why}", file.display())))?;
    if how.any && !report.not_any.is_empty() {
        let told = report.not_any.iter().take(MOST_TOLD).map(String::as_str).collect::<Vec<_>>().join("; ");
        let more = report.not_any.len().saturating_sub(MOST_TOLD);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let what = format!(
            "{}: these are no function of the rank and the number of ranks: {told}{more}",
            file.display()
        );
        return Err(Failure::new(what)
            .help(format!("without --ranks any the program is for {} ranks", trace.meta.ranks)));
    }
    if is_dash(&how.out) {
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    save_text(&text, &how.out, how.force).map_err(|error| not_saved(&error))?;
    tell(&how.out, &report);
    if how.any && !report.as_many.is_empty() {
        let told = report.as_many.iter().take(MOST_TOLD).map(String::as_str).collect::<Vec<_>>().join("; ");
        say(&format!(
            "as many as there were ranks, and so in the program whatever number of ranks it is started with: {told}"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn exists(path: &Path) -> Failure {
    Failure::new(format!("{} exists already", path.display())).help("`--force` replaces it")
}

fn tell(path: &Path, report: &Report) {
    let Report { lines, calls, polls, unmatched, files, .. } = report;
    say(&format!(
        "{} of C for {} -> {}",
        plural(*lines as u64, "line"),
        plural(*calls, "call"),
        path.display()
    ));
    if *polls > 0 {
        say(&format!("{} polls that had found nothing are left out", thousands(*polls)));
    }
    if *unmatched > 0 {
        let count = thousands(*unmatched);
        say(&format!(
            "{count} receives from any source may get another message: the trace does not say who sent theirs"
        ));
    }
    if !files.is_empty() {
        say(&format!("the program opens these files, as the one that was traced did: {}", files.join(", ")));
    }
}
