//! Who writes a trace under which name: two runs, or two programs of one run, never write the same.
//!
//! A name is claimed in the directory of its parts, by a note there that only one can make. `refrain run` claims the name it
//! is given and holds it until its end; inside the launcher, where there is nobody to hold it, the ranks do. Each MPI
//! program (job) that a run starts is written down beside the claim, in the order in which they come: the first has the
//! run's name, others `NAME.2.rfn` and so on. All ranks of a job read the same there, and need no message for it.
//!
//! Whoever claims a name says who he is, so that what a dead run left behind can be told from a run that is at work.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use refrain_fold::xxh64;

use crate::disk::Stamp;
use crate::part::{self, directory};
use crate::private::Private;

const CLAIM: &str = "claim";
/// More names than anybody has beside each other, and more programs than a run starts.
const MOST: u32 = 100_000;
/// Others may remove what we are about to look at: so often.
const TRIES: u32 = 1000;

/// What stands in a claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim {
    pub run: String,
    /// The one program that the name is for; empty where it is for the run, whose programs are then written down.
    pub job: String,
    pub host: String,
    /// The process that holds it.
    pub process: u32,
    /// When that process began, and where its number means something: its number alone may be another's by now.
    since: u64,
    boot: String,
    space: String,
    /// It is held until the run's end, by one that waits for it; not by a rank.
    pub held: bool,
    /// The file that had the name before.
    pub old: Option<Stamp>,
}

/// Whether the process that made a claim is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Alive,
    Gone,
    /// It is, or was, on another machine.
    Unseen,
}

#[derive(Debug)]
pub enum Taken {
    Ours(Private, Claim),
    Others(Private, Claim),
}

impl Claim {
    /// A claim of this process.
    pub fn new(run: &str, job: &str, trace: &Path) -> Claim {
        let process = std::process::id();
        Claim {
            run: word(run),
            job: word(job),
            host: word(&host_name()),
            process,
            since: since(process).unwrap_or(0),
            boot: boot(),
            space: space(),
            held: false,
            old: Stamp::of(trace),
        }
    }

    /// The same, of one that waits for the run's end.
    pub fn until_the_end(self) -> Claim {
        Claim { held: true, ..self }
    }

    fn text(&self) -> String {
        let Claim { run, job, host, process, since, boot, space, held, old } = self;
        let old = old.map_or_else(String::new, |old| old.to_string());
        let held = if *held { " held=yes" } else { "" };
        format!(
            "run={run} job={job} host={host} process={process} since={since} boot={boot} space={space} old={old}{held}"
        )
    }

    fn read(text: &str) -> Claim {
        let value = |key: &str| {
            let words = text.split(' ').filter_map(|word| word.split_once('='));
            words.into_iter().find(|(k, _)| *k == key).map_or("", |(_, value)| value)
        };
        Claim {
            run: value("run").into(),
            job: value("job").into(),
            host: value("host").into(),
            process: value("process").parse().unwrap_or(0),
            since: value("since").parse().unwrap_or(0),
            boot: value("boot").into(),
            space: value("space").into(),
            held: value("held") == "yes",
            old: value("old").parse().ok(),
        }
    }

    pub fn holder(&self) -> Holder {
        match (self.host == word(&host_name()), self.boot == boot(), self.space == space()) {
            (_, true, true) if since(self.process) == Some(self.since) => Holder::Alive,
            (_, true, true) => Holder::Gone,
            // That machine was started anew.
            (true, false, _) => Holder::Gone,
            _ => Holder::Unseen,
        }
    }

    /// Claims the name whose parts are kept there, unless somebody else has. The same run and job may do so again.
    pub fn take(&self, parts: &Path) -> io::Result<Taken> {
        let mut last = None;
        for _ in 0..TRIES {
            let private = Private::make(parts)?;
            match private.leave(OsStr::new(CLAIM), &self.text()) {
                Ok(()) => return Ok(Taken::Ours(private, self.clone())),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                // Its owner has just removed the directory.
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    last = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
            }
            match private.word(OsStr::new(CLAIM)) {
                Ok(Some(text)) => {
                    let there = Claim::read(&text);
                    let own = there.run == self.run && there.job == self.job;
                    return Ok(if own { Taken::Ours(private, there) } else { Taken::Others(private, there) });
                }
                Ok(None) => last = Some(ErrorKind::NotFound.into()),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| ErrorKind::NotFound.into()))
    }

    /// The claim in a directory, if there is one.
    pub fn of(private: &Private) -> Option<Claim> {
        private.word(OsStr::new(CLAIM)).ok()?.map(|text| Claim::read(&text))
    }

    /// Puts this claim in the place of one whose holder is gone. Whether that was still to be had: somebody else may have
    /// been faster.
    pub fn replace(&self, private: &Private, gone: &Claim) -> io::Result<bool> {
        let _locked = private.lock();
        if Claim::of(private).as_ref() != Some(gone) {
            return Ok(false);
        }
        remove_notes(private, is_note);
        private.remove(OsStr::new(CLAIM))?;
        match private.leave(OsStr::new(CLAIM), &self.text()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Claim {
    /// Removes this claim, whose holder is gone, and the notes beside it, if it is still there.
    pub fn withdraw(&self, private: &Private) -> io::Result<()> {
        let _locked = private.lock();
        match Claim::of(private) {
            Some(there) if there == *self => {
                remove_notes(private, is_note);
                private.remove(OsStr::new(CLAIM))
            }
            _ => Ok(()),
        }
    }

    fn is_of(&self, run: &str, job: &str) -> bool {
        self.run == word(run) && self.job == word(job)
    }
}

/// Gives a name back, if that run and job still have it: removes the claim, the programs beside it, and the directory, if
/// nothing else is in it.
pub fn release(private: &Private, run: &str, job: &str) {
    give_back(private, run, job, is_note_of_a_job);
}

/// As `release`, when all ranks have ended: also removes what they said to each other, unless parts are left.
pub fn release_all(private: &Private, run: &str, job: &str) {
    // Ranks that still run may be reading it.
    give_back(private, run, job, if has_parts(private) { is_note_of_a_job } else { is_note });
}

fn give_back(private: &Private, run: &str, job: &str, which: fn(&OsStr) -> bool) {
    let _locked = private.lock();
    match Claim::of(private) {
        Some(there) if there.is_of(run, job) => {
            remove_notes(private, which);
            // The claim goes last. What cannot be removed is only in the way.
            let _ = private.remove(OsStr::new(CLAIM));
        }
        // It is another's by now.
        Some(_) => return,
        None => {}
    }
    let _ = private.remove_itself();
}

fn remove_notes(private: &Private, which: fn(&OsStr) -> bool) {
    for name in private.names().unwrap_or_default().iter().filter(|name| which(name)) {
        let _ = private.remove(name);
    }
}

/// Whether parts are left there, of whomever.
fn has_parts(private: &Private) -> bool {
    private.names().is_ok_and(|names| part::has_any(&names))
}

/// All but parts and the claim.
fn is_note(name: &OsStr) -> bool {
    part::is_known(name) && !part::is_part_or_snapshot(name) && name != CLAIM
}

fn is_note_of_a_job(name: &OsStr) -> bool {
    is_note(name) && !name.as_encoded_bytes().starts_with(part::MEETING.as_bytes())
}

/// The name of a trace beside others: `app.2.rfn`.
pub fn numbered(trace: &Path, number: u32) -> PathBuf {
    if number < 2 {
        return trace.to_owned();
    }
    let mut name = trace.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = trace.extension() {
        name.push(".");
        name.push(extension);
    }
    trace.with_file_name(name)
}

/// A program of a run, and where its trace goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Where programs are written down.
    base: PathBuf,
    run: String,
    /// What the launcher calls it.
    who: String,
    /// Which of the run's programs it is, from 1 on.
    pub place: u32,
    pub trace: PathBuf,
    /// What had the trace's name before.
    pub old: Option<Stamp>,
    /// Somebody waits for the run's end, and gives its names back then.
    pub held: bool,
    /// What it wrote, if it came to its end.
    pub done: Option<Done>,
    /// Who has the name that was asked for; this one then has another.
    pub instead: Option<Claim>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// The trace has all that was recorded.
    Whole(Stamp),
    /// It lacks something that the parts have.
    Lacking(Stamp),
    /// There is no trace.
    Nothing,
}

impl Done {
    /// The file it wrote.
    pub fn wrote(self) -> Option<Stamp> {
        match self {
            Done::Whole(stamp) | Done::Lacking(stamp) => Some(stamp),
            Done::Nothing => None,
        }
    }

    fn text(self) -> String {
        match self {
            Done::Whole(stamp) => format!("whole {stamp}"),
            Done::Lacking(stamp) => format!("lacking {stamp}"),
            Done::Nothing => "nothing".into(),
        }
    }

    fn read(text: &str) -> Done {
        let (how, stamp) = text.split_once(' ').unwrap_or((text, ""));
        match (how, stamp.parse()) {
            ("whole", Ok(stamp)) => Done::Whole(stamp),
            ("lacking", Ok(stamp)) => Done::Lacking(stamp),
            _ => Done::Nothing,
        }
    }
}

fn job_note(place: u32) -> OsString {
    format!("job.{place}").into()
}

fn done_note(place: u32) -> OsString {
    format!("done.{place}").into()
}

impl Job {
    /// The program `job` of that run, which is written down if it is not yet. Every rank of it gets the same answer.
    pub fn take(out: &Path, run: &str, job: &str) -> io::Result<Job> {
        Job::take_with(out, run, job, false)
    }

    /// As `take`. With `force` what a dead run has left goes, if none of its processes can still be at work.
    pub fn take_with(out: &Path, run: &str, job: &str, force: bool) -> io::Result<Job> {
        let mut instead = None;
        let (mut number, mut tries) = (1, 0);
        while number < MOST {
            let trace = numbered(out, number);
            let parts = directory(&trace);
            let was_there = is_there(&parts);
            // A name of our own choice replaces nothing; but this may be where the other ranks are.
            if number > 1 && is_there(&trace) && !was_there {
                number += 1;
                continue;
            }
            let own = Claim::new(run, "", &trace);
            match own.take(&parts) {
                Ok(Taken::Ours(base, claim)) if number > 1 && claim.old.is_some() => release(&base, run, ""),
                Ok(Taken::Ours(base, claim)) => {
                    return Ok(Job { instead, ..Job::take_in(&base, &trace, &claim, job)? });
                }
                // A dead run that left nothing needs its name no more. Another rank may be faster: so look again.
                Ok(Taken::Others(base, gone))
                    if tries < TRIES
                        && gone.holder() == Holder::Gone
                        && (!has_parts(&base) || force && part::clear_of_others(&base, run)) =>
                {
                    tries += 1;
                    own.replace(&base, &gone)?;
                    continue;
                }
                Ok(Taken::Others(_, claim)) => instead = instead.or(Some(claim)),
                // Something in its place cannot be used: another name will do.
                Err(_) if number > 1 && was_there => {}
                Err(error) => return Err(error),
            }
            number += 1;
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn take_in(base: &Private, out: &Path, claim: &Claim, job: &str) -> io::Result<Job> {
        let job = &word(job);
        let (mut place, mut tries) = (1, 0);
        while place < MOST && tries < TRIES {
            match Job::at(base, out, claim, place)? {
                Some(found) if found.who == *job && found.done.is_none() => return Ok(found),
                Some(_) => {
                    (place, tries) = (place + 1, 0);
                    continue;
                }
                None => tries += 1,
            }
            let number = if place == 1 { 1 } else { Job::own_name(out, claim, job, place)? };
            match base.leave(&job_note(place), &format!("{number} {job}")) {
                Ok(()) => {}
                // Another rank of this program, or another program: it is looked at again.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let other = Job::at(base, out, claim, place)?.map(|found| found.trace);
                    let own = numbered(out, number);
                    if number > 1
                        && other.as_ref() != Some(&own)
                        && let Ok(private) = Private::open(&directory(&own))
                    {
                        release(&private, &claim.run, &job_of_claim(job, place));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// A name that nothing has: no trace, and no other run or program.
    fn own_name(out: &Path, claim: &Claim, job: &str, place: u32) -> io::Result<u32> {
        // Who holds the run's name holds this one.
        let own = Claim { job: word(&job_of_claim(job, place)), old: None, ..claim.clone() };
        for number in 2..MOST {
            let trace = numbered(out, number);
            let parts = directory(&trace);
            if is_there(&trace) {
                continue;
            }
            let was_there = is_there(&parts);
            match own.take(&parts) {
                Ok(Taken::Ours(..)) => return Ok(number),
                Ok(Taken::Others(..)) => {}
                // Something in its place cannot be used, so it is taken.
                Err(_) if was_there => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// The program that has this place, if one has.
    fn at(base: &Private, out: &Path, claim: &Claim, place: u32) -> io::Result<Option<Job>> {
        let Some(text) = base.word(&job_note(place))? else { return Ok(None) };
        let read = || {
            let (number, who) = text.split_once(' ')?;
            Some((number.parse().ok()?, who.to_owned()))
        };
        let (number, who) = read().ok_or(ErrorKind::InvalidData)?;
        let done = base.word(&done_note(place))?.map(|text| Done::read(&text));
        let trace = numbered(out, number);
        let old = if place == 1 { claim.old } else { None };
        let (base, run) = (base.path().to_owned(), claim.run.clone());
        Ok(Some(Job { base, run, who, place, trace, old, held: claim.held, done, instead: None }))
    }

    /// All programs of a run, as they came.
    pub fn all(base: &Private, out: &Path, claim: &Claim) -> Vec<Job> {
        (1..MOST).map_while(|place| Job::at(base, out, claim, place).ok()?).collect()
    }

    /// Where its parts are kept.
    pub fn parts(&self) -> PathBuf {
        directory(&self.trace)
    }

    /// Writes down how it ended. The next program is another one, whatever it is called.
    pub fn end(&self, done: Done) {
        let Ok(base) = Private::open(&self.base) else { return };
        let _locked = base.lock();
        // Another run may have the name by now, which waits for its own program.
        if self.is_written_down(&base) {
            // Without it the one who reads has to look at the files themselves.
            let _ = base.leave(&done_note(self.place), &done.text());
        }
    }

    fn is_written_down(&self, base: &Private) -> bool {
        let note = base.word(&job_note(self.place)).ok().flatten();
        Claim::of(base).is_some_and(|claim| claim.is_of(&self.run, ""))
            && note.is_some_and(|note| note.split_once(' ').is_some_and(|(_, who)| who == self.who))
    }

    /// Gives its names back, where nobody holds the run's.
    pub fn release(&self) {
        self.give_back(release);
        if let Ok(base) = Private::open(&self.base) {
            release(&base, &self.run, "");
        }
    }

    /// Gives the name of its trace back with `how`, one of `release` and `release_all`.
    pub fn give_back(&self, how: fn(&Private, &str, &str)) {
        if let Ok(private) = Private::open(&self.parts()) {
            how(&private, &self.run, &job_of_claim(&self.who, self.place));
        }
    }
}

/// What a claim says of a program: the first has the run's own name. The same program may come again when it has ended.
fn job_of_claim(job: &str, place: u32) -> String {
    if place == 1 { String::new() } else { format!("{place}#{job}") }
}

/// The first name beside that of a trace which nothing has.
pub fn free_name(trace: &Path) -> PathBuf {
    let names = (2..MOST).map(|number| numbered(trace, number));
    let is_free = |name: &PathBuf| !is_there(name) && !is_there(&directory(name));
    names.into_iter().find(is_free).unwrap_or_else(|| numbered(trace, MOST))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// What the launcher calls the MPI program that this process is one of, the same in all of its processes and on all
/// machines. `None` where it has no name that we know of. `env` gives a variable's value.
pub fn job(env: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let text = |name: &str| env(name).map(|value| value.to_string_lossy().into_owned());
    if let (Some(space), Some(_)) = (text("PMIX_NAMESPACE"), text("PMIX_RANK")) {
        // Of Open MPI 4 a number of 16 bits, and another one that is drawn for each job.
        let drawn = text("OMPI_MCA_orte_precondition_transports").unwrap_or_default();
        return Some(format!("pmix-{space}-{drawn}"));
    }
    if text("PMI_RANK").is_some()
        && let Some(hydra) = hydra()
    {
        return Some(hydra);
    }
    for variable in ["PALS_APID", "ALPS_APP_ID", "FLUX_JOB_ID", "LSF_PM_TASKID"] {
        if let Some(value) = text(variable) {
            return Some(format!("{variable}-{value}"));
        }
    }
    if let (Some(job), Some(step)) = (text("SLURM_JOB_ID"), text("SLURM_STEP_ID")) {
        return Some(format!("slurm-{job}.{step}"));
    }
    let launched =
        ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "JSM_NAMESPACE_RANK"];
    if launched.iter().any(|variable| env(variable).is_some()) {
        return None;
    }
    // Nobody launched it: it is a program of one process, and another one when that process becomes another program.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    Some(format!("{}-{}-{now}", host_name(), std::process::id()))
}

/// MPICH's launcher says nothing to its processes, but its proxy on each machine is told where the launcher listens.
fn hydra() -> Option<String> {
    const ANCESTORS: u32 = 64;
    let mut process = std::process::id();
    for _ in 0..ANCESTORS {
        process = parent(process)?;
        let line = fs::read(format!("/proc/{process}/cmdline")).ok()?;
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let value = |option: &str| {
            let at = words.iter().position(|word| word == option)?;
            words.get(at + 1).map(|value| value.to_string())
        };
        if let Some(port) = value("--control-port") {
            return Some(format!("hydra-{port}-{}", value("--pgid").unwrap_or_default()));
        }
    }
    None
}

/// A field of `/proc/PROCESS/stat` after the command, which may have blanks in it.
fn stat(process: u32, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(field).map(str::to_owned)
}

fn parent(process: u32) -> Option<u32> {
    stat(process, 1)?.parse().ok().filter(|parent| *parent > 1)
}

/// When it began, in ticks since the machine did. One that has ended is not there, though nobody may have asked how.
fn since(process: u32) -> Option<u64> {
    let ended = stat(process, 0).is_none_or(|state| ["Z", "X"].contains(&state.as_str()));
    if ended { None } else { stat(process, 19)?.parse().ok() }
}

/// Names the running kernel; empty where it is not told.
pub fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Which numbers of processes mean what they mean here.
fn space() -> String {
    fs::read_link("/proc/self/ns/pid").map_or_else(|_| String::new(), |link| word(&link.to_string_lossy()))
}

/// Whose numbers of processes those are that this process sees: another number on another machine, after another start of it
/// and in another namespace. 0: that is not told, and nothing is known of the processes of others.
pub fn processes_seen() -> u64 {
    let (boot, space) = (boot(), space());
    if boot.is_empty() || space.is_empty() {
        return 0;
    }
    xxh64(format!("{boot} {space}").as_bytes(), 0).max(1)
}

pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// As one word of a claim, and not too long for it.
fn word(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(400) {
        let _ = match c {
            c if c.is_whitespace() || c.is_control() => out.write_char('_'),
            c => out.write_char(c),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("refrain-claim-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn names_beside_each_other() {
        let name = |trace: &str, number| numbered(Path::new(trace), number).to_string_lossy().into_owned();
        assert_eq!(name("/a/app.rfn", 1), "/a/app.rfn");
        assert_eq!(name("/a/app.rfn", 2), "/a/app.2.rfn");
        assert_eq!(name("cg.C.x.rfn", 3), "cg.C.x.3.rfn");
        assert_eq!(name("trace", 2), "trace.2");
    }

    #[test]
    fn a_claim_is_read_as_it_was_written() {
        let place = Scratch::new("read");
        let trace = place.0.join("x.rfn");
        let claim = Claim::new("a run", "job\nof it", &trace);
        assert_eq!(Claim::read(&claim.text()), claim);
        assert_eq!((claim.run.as_str(), claim.job.as_str(), claim.old), ("a_run", "job_of_it", None));
        fs::write(&trace, "").unwrap();
        let claim = Claim::new("", "", &trace);
        assert!(claim.old == Stamp::of(&trace) && Claim::read(&claim.text()) == claim);
        assert_eq!(claim.holder(), Holder::Alive);
        assert_eq!(Claim { since: claim.since + 1, ..claim.clone() }.holder(), Holder::Gone);
        assert_eq!(Claim { boot: "before".into(), ..claim.clone() }.holder(), Holder::Gone);
        assert_eq!(Claim { space: "other".into(), ..claim.clone() }.holder(), Holder::Unseen);
        let there = Claim { boot: "its own".into(), host: "there".into(), ..claim };
        assert_eq!(there.holder(), Holder::Unseen);
        assert_eq!(Claim::read("any rubbish").process, 0);
    }

    #[test]
    fn only_one_has_a_name() {
        let place = Scratch::new("one");
        let trace = place.0.join("x.rfn");
        let parts = directory(&trace);
        let (one, other) = (Claim::new("one", "", &trace), Claim::new("other", "", &trace));
        assert!(matches!(one.take(&parts).unwrap(), Taken::Ours(..)));
        assert!(matches!(one.take(&parts).unwrap(), Taken::Ours(..)));
        let Taken::Others(private, there) = other.take(&parts).unwrap() else { panic!("it was taken") };
        assert_eq!(there, one);
        assert!(!other.replace(&private, &Claim::new("third", "", &trace)).unwrap());
        assert!(other.replace(&private, &there).unwrap() && Claim::of(&private) == Some(other.clone()));
        fs::write(parts.join("0-a-1-0.part"), "").unwrap();
        // What is another's stays.
        release_all(&private, "one", "");
        release(&private, "other", "its program");
        assert_eq!(Claim::of(&private), Some(other));
        private.leave(OsStr::new("meet-1.decision"), "yes").unwrap();
        private.leave(&job_note(1), "1 a").unwrap();
        release_all(&private, "other", "");
        assert!(Claim::of(&private).is_none() && private.word(&job_note(1)).unwrap().is_none());
        assert!(parts.join("0-a-1-0.part").exists() && private.names().unwrap().len() == 2);
        fs::remove_file(parts.join("0-a-1-0.part")).unwrap();
        one.take(&parts).unwrap();
        release_all(&private, "one", "");
        assert!(!parts.exists());
    }

    #[test]
    fn notes_go_with_the_claim() {
        let place = Scratch::new("notes");
        let trace = place.0.join("x.rfn");
        let parts = directory(&trace);
        let gone = |run: &str| Claim { since: 0, ..Claim::new(run, "", &trace) };
        let left = |run: &str| {
            let Taken::Ours(private, claim) = gone(run).take(&parts).unwrap() else { panic!("it is taken") };
            for note in ["job.1", "done.1", "meet-1.decision"] {
                private.leave(OsStr::new(note), "1 a").unwrap();
            }
            fs::write(parts.join("precious"), "").unwrap();
            (private, claim)
        };
        let (private, claim) = left("one");
        gone("another").withdraw(&private).unwrap();
        assert_eq!(private.names().unwrap().len(), 5);
        claim.withdraw(&private).unwrap();
        assert_eq!(private.names().unwrap(), ["precious"]);
        let (private, claim) = left("one");
        assert!(Claim::new("two", "", &trace).replace(&private, &claim).unwrap());
        assert_eq!(private.names().unwrap().len(), 2);
    }

    /// What a run left that was killed, without parts, is no reason for another name; with parts it is.
    #[test]
    fn a_dead_run_that_left_nothing_gives_its_name_back() {
        let place = Scratch::new("dead");
        let out = place.0.join("x.rfn");
        let parts = directory(&out);
        let dead = Claim { since: 0, ..Claim::new("dead", "", &out) };
        let Taken::Ours(private, _) = dead.take(&parts).unwrap() else { panic!("it is taken") };
        private.leave(&job_note(1), "1 a").unwrap();
        fs::write(parts.join("0-a-1-0.part"), "").unwrap();
        let beside = Job::take(&out, "run", "a").unwrap();
        assert_eq!((beside.trace.clone(), beside.instead.as_ref()), (numbered(&out, 2), Some(&dead)));
        beside.release();
        fs::remove_file(parts.join("0-a-1-0.part")).unwrap();
        let take = || Job::take(&out, "run", "a").unwrap();
        let ranks: Vec<Job> = std::thread::scope(|scope| {
            let ranks: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        for rank in ranks {
            assert_eq!((&rank.trace, rank.place, rank.instead), (&out, 1, None));
        }
    }

    #[test]
    fn what_cannot_be_used_is_taken() {
        let place = Scratch::new("unusable");
        let out = place.0.join("x.rfn");
        assert_eq!(Job::take(&out, "run", "a").unwrap().trace, out);
        fs::write(directory(&numbered(&out, 2)), "no directory").unwrap();
        fs::create_dir(directory(&numbered(&out, 3))).unwrap();
        fs::write(directory(&numbered(&out, 3)).join(CLAIM), "no word").unwrap();
        let second = Job::take(&out, "run", "b").unwrap();
        assert_eq!((second.trace, second.place), (numbered(&out, 4), 2));
        assert_eq!(Job::take(&out, "other run", "a").unwrap().trace, numbered(&out, 5));
    }

    #[test]
    fn notes_that_cannot_be_read_are_errors() {
        let place = Scratch::new("rubbish");
        let out = place.0.join("x.rfn");
        let Taken::Ours(base, _) = Claim::new("run", "", &out).take(&directory(&out)).unwrap() else {
            panic!("it is taken")
        };
        fs::write(directory(&out).join("job.1"), "no word").unwrap();
        assert!(Job::take(&out, "run", "a").is_err());
        base.remove(&job_note(1)).unwrap();
        base.leave(&job_note(1), "rubbish").unwrap();
        assert_eq!(Job::take(&out, "run", "a").unwrap_err().kind(), ErrorKind::InvalidData);
    }

    /// Ranks that outlive their run say nothing about the next one, and take nothing from it.
    #[test]
    fn a_program_ends_for_its_own_run_only() {
        let place = Scratch::new("end");
        let out = place.0.join("x.rfn");
        let first = Job::take(&out, "one", "a").unwrap();
        let base = Private::open(&directory(&out)).unwrap();
        Claim::of(&base).unwrap().withdraw(&base).unwrap();
        let again = || Job::take(&out, "two", "a").unwrap();
        let second = again();
        first.end(Done::Nothing);
        first.release();
        assert_eq!((second.place, again().done), (1, None));
        second.end(Done::Nothing);
        assert_eq!(Job::all(&base, &out, &Claim::of(&base).unwrap())[0].done, Some(Done::Nothing));
        second.release();
        assert!(!directory(&out).exists());
    }

    #[test]
    fn every_rank_of_a_program_gets_the_same_name() {
        let place = Scratch::new("ranks");
        let out = place.0.join("x.rfn");
        // A name that is there already is nobody's.
        fs::write(place.0.join("x.2.rfn"), "").unwrap();
        let take = |job: &str| Job::take(&out, "run", job).unwrap();
        let mut all: Vec<(u32, PathBuf)> = Vec::new();
        std::thread::scope(|scope| {
            let ranks: Vec<_> =
                (0..24u32).map(|i| (i % 3, scope.spawn(move || take(&format!("job {}", i % 3))))).collect();
            all.extend(ranks.into_iter().map(|(job, rank)| (job, rank.join().unwrap().trace)));
        });
        all.sort();
        all.dedup();
        let jobs: Vec<u32> = all.iter().map(|(job, _)| *job).collect();
        assert_eq!(jobs, [0, 1, 2], "{all:?}");
        // A rank that came too late passes a name over now and then.
        let mut names: Vec<&PathBuf> = all.iter().map(|(_, trace)| trace).collect();
        names.sort();
        names.dedup();
        assert!(names.len() == 3 && !names.contains(&&place.0.join("x.2.rfn")), "{all:?}");
        // Nothing else is left of those who tried.
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 4);

        // One that has ended and comes again is another one.
        let first = take("job 0");
        assert_eq!((first.done, take("job 0")), (None, first.clone()));
        first.end(Done::Nothing);
        let again = take("job 0");
        assert_ne!(again.trace, first.trace);
        let base = Private::open(&directory(&out)).unwrap();
        let jobs = Job::all(&base, &out, &Claim::of(&base).unwrap());
        assert_eq!((jobs.len(), jobs[3].trace.clone()), (4, again.trace));
        assert_eq!(jobs.iter().filter(|job| job.done == Some(Done::Nothing)).count(), 1);
    }

    #[test]
    fn another_run_has_another_name() {
        let place = Scratch::new("runs");
        let out = place.0.join("x.rfn");
        let first = Job::take(&out, "one", "a").unwrap();
        let second = Job::take(&out, "two", "a").unwrap();
        assert_eq!((first.trace, first.instead), (out.clone(), None));
        assert_eq!(second.trace, numbered(&out, 2));
        assert_eq!(second.instead.as_ref().map(|claim| claim.run.as_str()), Some("one"));
        second.release();
        assert!(!directory(&second.trace).exists() && directory(&out).exists());
    }

    #[test]
    fn what_launchers_call_a_program() {
        let told = |variables: &[(&str, &str)]| {
            job(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
        };
        let pmix = [("PMIX_NAMESPACE", "77"), ("PMIX_RANK", "1")];
        assert_eq!(told(&pmix).as_deref(), Some("pmix-77-"));
        assert_eq!(told(&[("SLURM_JOB_ID", "5"), ("SLURM_STEP_ID", "2")]).as_deref(), Some("slurm-5.2"));
        // One that somebody launched without a name that we know; and one that nobody did, which is always another.
        assert_eq!(told(&[("OMPI_COMM_WORLD_RANK", "0")]), None);
        assert_ne!(told(&[]), told(&[]));
    }
}
