//! `refrain diff`: opens both traces, says what differs, and ends with 0, 1 or 2.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use refrain_sites::Binaries;
use refrain_views::diff::{self, Ignore, Report, Unread, Which};

use crate::ahead::{self, Work};
use crate::failure::Failure;
use crate::paint::Look;
use crate::progress::Bar;
use crate::reading::{NO, finish, open, open_summed_up, shown};
use crate::say;

/// So many calls are read without a word: that takes a second.
const READ: u64 = 1 << 20;

/// What to do beside comparing calls, and how to show it.
pub struct How<'a> {
    pub ignore: Ignore,
    pub time: bool,
    pub all: bool,
    pub json: bool,
    pub folders: &'a [PathBuf],
}

pub fn diff(a: &Path, b: &Path, how: &How) -> Result<ExitCode, Failure> {
    let read = |path| if how.time { open_summed_up(path) } else { Ok(open(path)?.trace) };
    let (one, other) = (read(a)?, read(b)?);
    let unread = |unread: Unread| {
        let path = if unread.which == Which::A { a } else { b };
        Failure::new(format!("{}: {}", path.display(), unread.error))
    };
    if how.time {
        for (path, trace) in [(a, &one), (b, &other)] {
            if !trace.meta.timed {
                let failure = Failure::new(format!("{} has no times to compare", path.display()));
                return Err(
                    failure.help("it was recorded with --time off; leave out --time, or record it anew")
                );
            }
        }
    }
    let mut bar = Bar::new("comparing");
    let all = refrain_views::info::calls(&one.bundle).max(refrain_views::info::calls(&other.bundle));
    // Where both fold alike no call is read: it is said when it turns out that many are.
    let mut told = false;
    let mut progress = |read: u64| {
        if read >= READ && !told {
            let (one, other) = (Work::of_kinds(&one), Work::of_kinds(&other));
            let work = if one.items > other.items { one } else { other };
            ahead::tell(a, work, "call", 0, "fewer where the traces soon differ or fold alike");
            told = true;
        }
        bar.show(read, all);
    };
    let found = diff::diff(&one, &other, how.ignore, &mut progress).map_err(unread)?;
    bar.clear();
    let names =
        (Binaries::new(&one.bundle.sites, how.folders), Binaries::new(&other.bundle.sites, how.folders));
    let places =
        ((&one, &names.0 as &dyn refrain_sites::Names), (&other, &names.1 as &dyn refrain_sites::Names));
    let rows =
        if found.is_about_order() { Some(diff::rows(places.0, places.1).map_err(unread)?) } else { None };
    let slower = if how.time { Some(diff::slower(places.0, places.1).map_err(unread)?) } else { None };
    let files = (a.to_string_lossy(), b.to_string_lossy());
    let report = Report {
        diff: &found,
        traces: (&one, &other),
        files: (&files.0, &files.1),
        names: (places.0.1, places.1.1),
        rows: rows.as_deref(),
        slower: slower.as_ref(),
        all: how.all,
    };
    let mut out = shown(how.json, Look::Answer);
    let done =
        if how.json { diff::write_json(&report, &mut out) } else { diff::write_text(&report, &mut out) };
    let mut warnings = [names.0.warnings(), names.1.warnings()].concat();
    warnings.dedup();
    warnings.iter().for_each(|warning| say(warning));
    finish(a, done)?;
    Ok(if report.is_equal() { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}
