//! `refrain report` and `refrain view`: a trace as a page, and the page in a browser.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use refrain_report::Input;
use refrain_sites::Binaries;
use refrain_tracefile::save_text;
use refrain_views::human::thousands;
use refrain_views::select::{Between, between};

use crate::addresses::is_dash;
use crate::ahead::{self, Work};
use crate::args::Modules;
use crate::failure::{Failure, not_saved};
use crate::progress::Bar;
use crate::{print, reading, references, say};

/// So many calls are read at most where the folded form does not tell.
const SHOWN: u64 = 1 << 20;

pub const REPORT_HELP: &str = "\
Examples:
  refrain report app.rfn                        writes app.html beside the trace
  refrain report app.rfn -o page.html --force   another name, replacing what is there
  refrain report app.rfn --between 1.5..1.6     the timeline shows every call of this tenth of a second
  refrain run --report -- mpiexec -n 16 ./app   traces a run and makes its page at once
  refrain view app.rfn                          makes the page and opens it in a browser
  refrain report memory.rfn                     of `refrain memory run`: working set, miss ratios, strides, false sharing

The page is one HTML file of a few hundred kilobytes at most, whatever the run. It opens from disk, loads nothing from anywhere
and can be sent by mail. It has the command line, host names and file names in it, as the trace has.

It begins with what stands out, and what to do about it. Then: a timeline; time by function, call site and rank; waits and
the critical path; who sends to whom; sizes of messages; the program's loops; which ranks do the same.

What it can tell depends on what was kept. Call sites: `run --stacks site`. The real timeline, waits and the critical path:
`run --time exact` (or binned). Otherwise the timeline is put together from the order of the calls and their mean times, and
says so. Loops of the source: `run --fold loops`.";

pub const VIEW_HELP: &str = "\
Examples:
  refrain view app.rfn                  makes the page and opens it in a browser
  BROWSER=firefox refrain view app.rfn  in this one

The page lies in the user's cache ($XDG_CACHE_HOME/refrain, or ~/.cache/refrain) and is made anew each time; the path is
printed. Without a browser the page is written all the same. `refrain report app.rfn` writes it where you say.
$BROWSER is used if it is set, otherwise xdg-open.";

#[derive(Debug, clap::Args)]
pub struct ReportFlags {
    /// The trace
    pub file: PathBuf,
    /// The page; `-` for standard output [default: the trace's name with .html, beside it]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the page if it is there
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub look: Look,
}

#[derive(Debug, clap::Args)]
pub struct ViewFlags {
    /// The trace
    pub file: PathBuf,
    #[command(flatten)]
    pub look: Look,
}

#[derive(Debug, clap::Args)]
pub struct Look {
    /// What the timeline shows call by call, in seconds since the first call began: T1..T2, T1.. or ..T2
    #[arg(long, value_name = "T1..T2", value_parser = between, allow_hyphen_values = true)]
    pub between: Option<Between>,
    /// The memory references of a run that was recorded with `run --memory`, not its calls
    #[arg(long)]
    pub references: bool,
    #[command(flatten)]
    pub modules: Modules,
}

pub fn report(flags: &ReportFlags) -> Result<ExitCode, Failure> {
    let out = flags.out.clone().unwrap_or_else(|| beside(&flags.file));
    if !is_dash(&out) {
        refuse(&flags.file, &out, flags.force)?;
    }
    let page = page(&flags.file, &flags.look)?;
    if is_dash(&out) {
        print(&page)?;
        return Ok(ExitCode::SUCCESS);
    }
    save_text(&page, &out, flags.force).map_err(|error| not_saved(&error))?;
    tell(&page, &out);
    Ok(ExitCode::SUCCESS)
}

/// Where the page of a trace goes if nobody says so.
pub fn beside(trace: &Path) -> PathBuf {
    trace.with_extension("html")
}

/// Before anything is read or run: that it cannot be written is known already.
pub fn refuse(trace: &Path, out: &Path, force: bool) -> Result<(), Failure> {
    if same(trace, out) {
        return Err(
            Failure::new(format!("{} is the trace itself", out.display())).help("name another file: -o FILE")
        );
    }
    if out.is_dir() {
        return Err(Failure::new(format!("{} is a folder", out.display())).help("name a file: -o FILE"));
    }
    if !force && out.symlink_metadata().is_ok() {
        return Err(exists(out));
    }
    Ok(())
}

/// Whether two names lead to one file, also by hard links.
pub fn same(a: &Path, b: &Path) -> bool {
    let file = |path: &Path| path.metadata().map(|about| (about.dev(), about.ino()));
    matches!((file(a), file(b)), (Ok(a), Ok(b)) if a == b)
}

/// After a run: the page of its trace beside it.
pub fn at_once(trace: &Path, shown: &Path, force: bool, quiet: bool) -> Result<(), Failure> {
    let look = Look {
        between: None,
        references: references::is_one(trace),
        modules: Modules { folders: Vec::new() },
    };
    let (page, out) = (page(trace, &look)?, beside(trace));
    save_text(&page, &out, force).map_err(|error| not_saved(&error))?;
    if !quiet {
        tell(&page, &beside(shown));
    }
    Ok(())
}

fn tell(page: &str, out: &Path) {
    say(&format!("a page of {} bytes -> {}", thousands(page.len() as u64), out.display()));
}

fn page(file: &Path, look: &Look) -> Result<String, Failure> {
    if references::are_asked(file, look.references)? {
        references::refuse(file, look.between.map(|_| "--between"))?;
        return references::page(file, &look.modules.folders);
    }
    let (trace, times, bytes) = reading::open_for_report(file)?;
    if look.between.is_some() && times.is_none() {
        let error = refrain_views::Error::NoTimes;
        return Err(Failure::new(format!("{}: --between: {error}", file.display())));
    }
    ahead::tell(file, Work::all(&trace).first(SHOWN), "call", 0, "");
    let names = Binaries::new(&refrain_views::flight::modules(&trace), &look.modules.folders);
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let input = Input {
        trace: &trace,
        times: times.as_ref(),
        names: &names,
        file: &name,
        bytes,
        between: look.between,
    };
    let mut bar: Option<(&'static str, Bar)> = None;
    let made = refrain_report::page(&input, &mut |what, done, all| {
        if bar.as_ref().is_none_or(|(before, _)| *before != what) {
            bar = Some((what, Bar::new(what)));
        }
        if let Some((_, bar)) = &mut bar {
            bar.show(done, all);
        }
    });
    drop(bar);
    names.warnings().iter().for_each(|warning| say(warning));
    made.map_err(|error| Failure::new(format!("{}: {error}", file.display())))
}

fn exists(path: &Path) -> Failure {
    Failure::new(format!("{} exists already", path.display())).help("`--force` replaces it")
}

pub fn view(flags: &ViewFlags) -> Result<ExitCode, Failure> {
    let page = page(&flags.file, &flags.look)?;
    let folder = cache()?;
    let stem = flags.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let place = flags.file.canonicalize().unwrap_or_else(|_| flags.file.clone());
    // Traces of the same name in other folders have pages of their own.
    let number = refrain_fold::xxh64(place.as_os_str().as_encoded_bytes(), 0) as u32;
    let out = folder.join(format!("{stem}-{number:08x}.html"));
    save_text(&page, &out, true).map_err(|error| not_saved(&error))?;
    say(&format!("the page is {}", out.display()));
    // The page is what was asked for; it is there.
    if let Err(why) = open(&out) {
        say(&format!(
            "no browser was found ({why}): open {} yourself, or name one: BROWSER=firefox",
            out.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// A folder that only this user writes into.
fn cache() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let Some(base) = base else {
        let failure = Failure::new("there is no place for the page: neither XDG_CACHE_HOME nor HOME is set");
        return Err(failure.help("`refrain report FILE -o page.html` writes it where you say"));
    };
    let folder = base.join("refrain");
    // The page has the command line in it, which is nobody else's business.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(|error| Failure::new(format!("{} cannot be made: {error}", folder.display())))?;
    let refused = |why: &str| {
        let failure = Failure::new(format!("{} is not used: {why}", folder.display()));
        failure.help("XDG_CACHE_HOME names another place; `refrain report FILE -o page.html` writes the page where you say")
    };
    why_not(&folder).map_or(Ok(()), |why| Err(refused(&why)))?;
    Ok(folder)
}

/// Why a page is not to be left in that folder: it, or a link in its place, is somebody else's, or others may write into it.
fn why_not(folder: &Path) -> Option<String> {
    const SHARED: u32 = 0o022;
    let found = folder.symlink_metadata().and_then(|link| Ok([link, folder.metadata()?]));
    let [link, about] = match found {
        Ok(found) => found,
        Err(error) => return Some(error.to_string()),
    };
    // SAFETY: asks for a number.
    let own = unsafe { libc::geteuid() };
    if link.uid() != own || about.uid() != own {
        return Some("it belongs to another user".to_owned());
    }
    (about.mode() & SHARED != 0).then(|| "others may write into it".to_owned())
}

/// Starts what shows the page, or says why there is nothing that does.
fn open(page: &Path) -> Result<(), String> {
    let browser = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let browser = browser.unwrap_or_else(|| "xdg-open".into());
    let shown = browser.to_string_lossy().into_owned();
    // A command with its words, as others take it; of a list with colons, the first.
    let first = shown.split(':').next().unwrap_or_default();
    let mut words = first.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("xdg-open"));
    command.args(words).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A browser goes on; `xdg-open` ends at once and says whether it found one.
    let mut child = command.spawn().map_err(|error| format!("{shown} cannot be started: {error}"))?;
    for _ in 0..20 {
        match child.try_wait() {
            Ok(Some(status)) if !status.success() => {
                return Err(format!("{shown} found no way to show the page, {status}"));
            }
            Ok(None) => std::thread::sleep(std::time::Duration::from_millis(50)),
            _ => break,
        }
    }
    Ok(())
}
