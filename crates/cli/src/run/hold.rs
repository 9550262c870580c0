//! The names that a run writes to: claimed before the program starts, held while it runs, given back at the end.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use refrain_tracefile::claim::{self, Claim, Holder, Job, Taken, numbered};
use refrain_tracefile::part::{self, Life, Part};
use refrain_tracefile::private::Private;

use crate::failure::Failure;
use crate::recover;
use crate::say;

/// What a directory of parts says about its name.
#[derive(Debug)]
enum Standing {
    Free,
    /// A run is at work there, or may be; `None` where only its processes are left.
    Busy(Option<Claim>),
    /// What a run left that did not end well.
    Left,
    /// The same; and of processes on that host nobody can tell from here whether they have ended.
    Unseen(String),
}

fn standing(private: &Private) -> Standing {
    let claim = Claim::of(private);
    if claim.as_ref().is_some_and(|claim| claim.holder() != Holder::Gone) {
        return Standing::Busy(claim);
    }
    standing_of_parts(private)
}

fn parts_in(private: &Private) -> Vec<(Life, Part)> {
    let names = private.names().unwrap_or_default();
    let read = |name: &OsString| Part::peek(private, name).ok().map(|part| (part.life(name), part));
    names.iter().filter(|name| part::is_part(name)).filter_map(read).collect()
}

fn standing_of_parts(private: &Private) -> Standing {
    let names = private.names().unwrap_or_default();
    let mut parts = parts_in(private);
    for (host, place) in part::kept_elsewhere(private) {
        match Private::open_to_read(&place) {
            Ok(place) => parts.extend(parts_in(&place)),
            // They may be there, and their ranks may live.
            Err(_) if host != claim::host_name() => return Standing::Unseen(host),
            Err(_) => {}
        }
    }
    if parts.iter().any(|(life, _)| *life == Life::Running) {
        return Standing::Busy(None);
    }
    match parts.iter().find(|(life, _)| *life == Life::Unseen) {
        Some((_, part)) => Standing::Unseen(part.text("host").unwrap_or("another host").to_owned()),
        None if part::has_any(&names) => Standing::Left,
        None => Standing::Free,
    }
}

/// What would keep `take` from taking that name. Changes nothing.
pub fn check(out: &Path, force: bool, safe: bool) -> Result<(), Failure> {
    let parts = part::directory(out);
    if parts.symlink_metadata().is_err() {
        return Ok(());
    }
    let private = match Private::open(&parts) {
        Ok(private) => private,
        Err(error) if safe => return Err(unusable(&parts, &error)),
        Err(_) => return Ok(()),
    };
    match standing(&private) {
        Standing::Left if !force => Err(left(&parts)),
        Standing::Unseen(host) if !force => Err(unseen(&parts, &host)),
        _ => Ok(()),
    }
}

fn unseen(parts: &Path, host: &str) -> Failure {
    let shown = parts.display();
    let what = format!(
        "{shown} is there: an earlier run did not end well, and nobody can tell from here whether its ranks on {host} still run"
    );
    Failure::new(what).help(format!(
        "make a trace of it with `refrain recover {shown}`; when those ranks have ended, remove {shown}"
    ))
}

fn left(parts: &Path) -> Failure {
    let shown = parts.display();
    Failure::new(format!("{shown} is there: an earlier run did not end well"))
        .help(format!("make a trace of it with `refrain recover {shown}`, or drop it with --force"))
}

fn unusable(parts: &Path, error: &io::Error) -> Failure {
    let parts = parts.display().to_string();
    let error = error.to_string();
    // Ours names it.
    let what = if error.starts_with(&parts) { error } else { format!("{parts} is not used: {error}") };
    Failure::new(what)
        .help(
        "what is recorded is kept there while the program runs; write elsewhere with --out FILE, or keep nothing with \
         --safe off",
    )
}

/// Claims that name, or one beside it where another run has it. Returns which; the number is 1 for the name itself.
/// Without `safe` nothing is kept there, and what is in the way does not matter.
pub fn take(out: &Path, run: &str, force: bool, safe: bool) -> Result<u32, Failure> {
    let mut number = 1;
    let mut busy = None;
    loop {
        let trace = numbered(out, number);
        // A name of our own choice replaces nothing.
        if number > 1 && trace.symlink_metadata().is_ok() {
            number += 1;
            continue;
        }
        let parts = part::directory(&trace);
        let own = Claim::new(run, "", &trace).until_the_end();
        let taken = match own.take(&parts) {
            Ok(taken) => taken,
            Err(error) if safe && is_in_the_way(&parts, &error) => return Err(unusable(&parts, &error)),
            // This file system cannot do it.
            Err(_) => return Ok(number),
        };
        let (private, stands) = match &taken {
            Taken::Ours(private, _) => (private, standing_of_parts(private)),
            Taken::Others(private, claim) if claim.holder() != Holder::Gone => {
                (private, Standing::Busy(Some(claim.clone())))
            }
            Taken::Others(private, _) => (private, standing_of_parts(private)),
        };
        let give_up = || {
            if matches!(taken, Taken::Ours(..)) {
                claim::release(private, run, "");
            }
        };
        match (&stands, &taken) {
            (Standing::Busy(claim), _) => {
                give_up();
                busy = busy.or(Some(claim.clone()));
                number += 1;
                continue;
            }
            (Standing::Unseen(host), _) if number == 1 && !force => {
                give_up();
                return Err(unseen(&parts, host));
            }
            (Standing::Unseen(_), _) => {
                give_up();
                busy = busy.or(Some(None));
                number += 1;
                continue;
            }
            (Standing::Left, _) if number > 1 => {
                give_up();
                number += 1;
                continue;
            }
            (Standing::Left, _) if !force => {
                give_up();
                return Err(left(&parts));
            }
            (_, Taken::Others(_, gone)) => {
                let replaced = own.replace(private, gone);
                if !replaced.map_err(|error| unusable(&parts, &error))? {
                    continue;
                }
            }
            (_, Taken::Ours(..)) => {}
        }
        clear(private)
            .map_err(|error| Failure::new(format!("{} cannot be cleared: {error}", parts.display())))?;
        if let Some(claim) = busy {
            say(&warning(out, &trace, claim.as_ref()));
        }
        return Ok(number);
    }
}

fn warning(asked: &Path, own: &Path, claim: Option<&Claim>) -> String {
    let (asked, own) = (asked.display(), own.display());
    match claim {
        Some(Claim { process, host, .. }) if claim.is_some_and(|claim| claim.holder() == Holder::Unseen) => {
            format!(
                "a run on {host} (process {process}) has {asked}, and may still be at work; this one writes {own}. If it is \
             over, remove {asked}.parts"
            )
        }
        Some(Claim { process, .. }) => {
            format!("another run (process {process}) has {asked}; this one writes {own}")
        }
        None => format!(
            "processes of an earlier run still keep calls for {asked}, or may; this one writes {own}. If they have ended, remove \
             {asked}.parts"
        ),
    }
}

/// Whether something in the place of the directory is the reason.
fn is_in_the_way(parts: &Path, error: &io::Error) -> bool {
    // SAFETY: takes nothing and cannot fail.
    let own = unsafe { libc::geteuid() };
    let about = parts.symlink_metadata();
    about.is_ok_and(|about| !about.is_dir() || about.uid() != own || error.raw_os_error().is_none())
}

/// Removes what is ours in a directory of parts, but for the claim.
fn clear(private: &Private) -> io::Result<()> {
    for name in private.names()?.iter().filter(|name| part::is_known(name) && *name != "claim") {
        match private.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Inside the launcher, where the ranks claim the name themselves: removes what is in their way. The other ranks of this
/// run may have begun already.
pub fn make_way(out: &Path, own: Option<&str>, force: bool) -> Result<(), Failure> {
    let parts = part::directory(out);
    // Something else in its place, or nothing: the library says so.
    let Ok(private) = Private::open(&parts) else { return Ok(()) };
    let claim = Claim::of(&private);
    // A run without a name is taken for any other without one.
    let is_own = |run: &str| run == own.unwrap_or_default();
    if claim.as_ref().is_some_and(|claim| is_own(&claim.run))
        || matches!(standing(&private), Standing::Busy(_) | Standing::Unseen(_))
    {
        return Ok(());
    }
    let of_others = |name: &OsString| {
        Part::peek(&private, name).is_ok_and(|part| part.text("run").is_some_and(|run| !is_own(run)))
    };
    let stale: Vec<OsString> =
        recover::names(&private).unwrap_or_default().into_iter().filter(of_others).collect();
    if !stale.is_empty() && !force {
        return Err(left(&parts));
    }
    for name in &stale {
        part::remove(&private, name);
    }
    if let Some(gone) = claim {
        // Another rank may do the same.
        let _ = gone.withdraw(&private);
    }
    Ok(())
}

/// A name that was taken. It is given back when this is dropped, and so are those of all programs of the run.
pub struct Held<'a> {
    pub out: &'a Path,
    pub run: &'a str,
}

impl Held<'_> {
    /// The programs of the run, as they came.
    pub fn jobs(&self) -> Vec<Job> {
        let found = || {
            let private = Private::open(&part::directory(self.out)).ok()?;
            let claim = Claim::of(&private).filter(|claim| claim.run == self.run)?;
            Some(Job::all(&private, self.out, &claim))
        };
        found().unwrap_or_default()
    }

    /// Whether names can be claimed here at all. Programs then say what they wrote; otherwise nobody knows.
    pub fn is_claimed(&self) -> bool {
        Private::open(&part::directory(self.out)).is_ok_and(|private| Claim::of(&private).is_some())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for job in self.jobs().iter().filter(|job| job.place > 1) {
            job.give_back(claim::release_all);
        }
        if let Ok(private) = Private::open(&part::directory(self.out)) {
            claim::release_all(&private, self.run, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    fn claimed(trace: &Path) -> Option<String> {
        Claim::of(&Private::open(&part::directory(trace)).ok()?).map(|claim| claim.run)
    }

    /// Somebody removed the directory while the run was at work, and another run has the name.
    #[test]
    fn only_its_own_name_is_given_back() {
        let folder = Scratch::new("held");
        let out = folder.path("x.rfn");
        assert_eq!(take(&out, "one", false, true).unwrap(), 1);
        let held = Held { out: &out, run: "one" };
        let job = Job::take(&out, "one", "a").unwrap();
        assert_eq!((held.jobs(), held.is_claimed()), (vec![job], true));
        std::fs::remove_dir_all(part::directory(&out)).unwrap();
        assert!(!held.is_claimed());
        let other = Job::take(&out, "two", "b").unwrap();
        let second = Job::take(&out, "two", "c").unwrap();
        assert_eq!((held.jobs(), held.is_claimed()), (vec![], true));
        drop(held);
        assert_eq!((claimed(&out), claimed(&second.trace)), (Some("two".into()), Some("two".into())));
        drop(Held { out: &out, run: "two" });
        assert!(!other.parts().exists() && !second.parts().exists());
    }

    /// After a crash inside the launcher the next program is the first of its run, and has the name that was asked for.
    #[test]
    fn way_is_made_for_the_first_program() {
        let folder = Scratch::new("way");
        let out = folder.path("x.rfn");
        let gone = "run=old job= host=h process=1 since=1 boot=before space=s old=";
        let gone = gone.replace("host=h", &format!("host={}", claim::host_name()));
        let private = Private::make(&part::directory(&out)).unwrap();
        for (note, text) in [("claim", gone.as_str()), ("job.1", "1 old"), ("done.1", "nothing")] {
            private.leave(note.as_ref(), text).unwrap();
        }
        make_way(&out, Some("new"), true).unwrap();
        let job = Job::take(&out, "new", "new").unwrap();
        assert_eq!((job.place, job.trace, job.instead), (1, out, None));
    }
}
