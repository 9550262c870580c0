//! What the user asked for: the `REFRAIN_...` variables, read once, before the program's `main`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use refrain_encode::Folding;
use refrain_model::Lossy;
use refrain_model::choice::{BadChoice, Choice, Words};
use refrain_model::time::Time;

use crate::switches::Switches;

/// Written once, in the constructor.
static CONFIG: OnceLock<Config> = OnceLock::new();

/// What was asked for; `None` until that is known, and where nothing was.
#[inline]
pub fn asked() -> Option<&'static Config> {
    CONFIG.get()
}

/// The first stays.
pub fn keep(config: Config) {
    let _ = CONFIG.set(config);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `REFRAIN_OUT`: the trace to write. Without it there is no `Config`, and the library does nothing.
    pub out: PathBuf,
    /// `REFRAIN_POINTERS=on|off`: record where buffers lie.
    pub pointers: bool,
    /// `REFRAIN_TIME=mean|histogram|binned|exact|off`
    pub time: Time,
    /// `REFRAIN_SPLIT=on|off`: values in streams beside the symbols, or all in the symbol.
    pub split: bool,
    /// `REFRAIN_FOLD=grammar|loops`: how the order of calls is kept.
    pub fold: Folding,
    /// `REFRAIN_FORCE=on|off`: replace an existing trace.
    pub force: bool,
    /// `REFRAIN_SUMMARY=on|off`: one closing line on stderr.
    pub summary: bool,
    /// `REFRAIN_SAFE=on|off`: keep what is recorded where it survives the process.
    pub safe: bool,
    /// `REFRAIN_PARTS=directory`: each host keeps its parts there, and not beside the trace.
    pub parts: Option<PathBuf>,
    /// `REFRAIN_PATIENCE=seconds`: how long a rank waits in `MPI_Finalize` for the others.
    pub patience: Duration,
    /// `REFRAIN_RUN`, or what the launcher calls this job: tells one run's parts from another's. Empty if unknown.
    pub run: String,
    /// What the launcher calls this job, of which a run may have several. Empty if unknown.
    pub job: String,
    /// `REFRAIN_RUN` is there: somebody waits for the run's end, and holds its names until then.
    pub held: bool,
    /// `REFRAIN_COMMAND`: the command line that was traced, its words separated by the unit separator (0x1f).
    pub command: Vec<String>,
    /// `REFRAIN_RANKS`, `REFRAIN_ONLY`, `REFRAIN_SKIP`, `REFRAIN_WINDOW`, `REFRAIN_PCONTROL`: what is recorded at all.
    pub choice: Choice,
    /// `REFRAIN_STACKS=off|site|full`: where calls are made.
    pub stacks: Kept,
    /// `REFRAIN_RECURSION=fold|keep`: whether calls at all depths of a recursion have the same stack.
    pub fold_recursion: bool,
    /// `REFRAIN_LOSSY`: what may be lost.
    pub lossy: Lossy,
    /// What the launcher says of this process.
    pub launched: Option<Launched>,
    #[cfg(feature = "switches")]
    switches: Switches,
}

/// How much of a call's stack is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Nothing,
    /// The place in the program that calls MPI.
    Site,
    /// All frames, from `main` or the thread's start.
    Full,
}

/// One of several processes that a launcher started together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    pub rank: u32,
    pub size: u32,
}

/// A variable whose value means nothing to us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error("{variable} is {value:?}, which is none of: {known}")]
    Value { variable: &'static str, value: String, known: &'static str },
    #[error("REFRAIN_{}: {}", .0.option.to_uppercase(), .0.why)]
    Choice(BadChoice),
    #[error("REFRAIN_FOLD: {0}")]
    Fold(String),
}

impl Config {
    /// `None` where tracing was not asked for. `look_up` gives a variable's value.
    pub fn read(look_up: impl Fn(&str) -> Option<OsString>) -> Result<Option<Config>, Unknown> {
        let Some(out) = look_up("REFRAIN_OUT").filter(|out| !out.is_empty()) else {
            return Ok(None);
        };
        let text = |variable: &str| look_up(variable).map(|value| value.to_string_lossy().into_owned());
        let switch = |variable: &'static str, default: bool| match text(variable).as_deref() {
            None => Ok(default),
            Some("on" | "1") => Ok(true),
            Some("off" | "0" | "") => Ok(false),
            Some(value) => Err(Unknown::Value { variable, value: value.to_owned(), known: "on, off, 1, 0" }),
        };
        let job = refrain_tracefile::claim::job(&look_up).unwrap_or_default();
        let choice =
            ["RANKS", "ONLY", "SKIP", "WINDOW", "PCONTROL"].map(|name| text(&format!("REFRAIN_{name}")));
        let [ranks, only, skip, window, pcontrol] = choice.each_ref().map(Option::as_deref);
        let words = Words { ranks, only, skip, window, pcontrol };
        let lossy = Lossy::read(text("REFRAIN_LOSSY").as_deref()).map_err(Unknown::Choice)?;
        let time = text("REFRAIN_TIME").unwrap_or_default();
        let said = text("REFRAIN_SPLIT").is_some_and(|said| !said.is_empty());
        let said = if said { Some(switch("REFRAIN_SPLIT", true)?) } else { None };
        let split = Time::split(&time, said).map_err(Unknown::Choice)?;
        lossy.with_split(split).map_err(Unknown::Choice)?;
        let time = Time::read(&time).map_err(Unknown::Choice)?;
        lossy.with_time(&time).map_err(Unknown::Choice)?;
        let safe = switch("REFRAIN_SAFE", true)?;
        time.with_safe(safe).map_err(Unknown::Choice)?;
        let fold = match text("REFRAIN_FOLD").filter(|text| !text.is_empty()) {
            None => Folding::default(),
            Some(text) => text.parse().map_err(Unknown::Fold)?,
        };
        let stacks = match text("REFRAIN_STACKS").as_deref() {
            None | Some("") if fold != Folding::Grammar => Kept::Full,
            None | Some("off" | "") => Kept::Nothing,
            Some("site") => Kept::Site,
            Some("full") => Kept::Full,
            Some(value) => {
                let value = value.to_owned();
                return Err(Unknown::Value { variable: "REFRAIN_STACKS", value, known: "off, site, full" });
            }
        };
        lossy.with_stacks(stacks != Kept::Nothing, stacks == Kept::Full).map_err(Unknown::Choice)?;
        Ok(Some(Config {
            out: PathBuf::from(out),
            pointers: switch("REFRAIN_POINTERS", true)?,
            time,
            split,
            fold,
            stacks,
            fold_recursion: match text("REFRAIN_RECURSION").as_deref() {
                None | Some("fold" | "") => true,
                Some("keep") => false,
                Some(value) => {
                    let value = value.to_owned();
                    return Err(Unknown::Value { variable: "REFRAIN_RECURSION", value, known: "fold, keep" });
                }
            },
            lossy,
            force: switch("REFRAIN_FORCE", false)?,
            summary: switch("REFRAIN_SUMMARY", false)?,
            safe,
            parts: look_up("REFRAIN_PARTS").filter(|parts| !parts.is_empty()).map(PathBuf::from),
            patience: match text("REFRAIN_PATIENCE").filter(|text| !text.is_empty()) {
                None => PATIENCE,
                Some(value) => patience(&value).ok_or(Unknown::Value {
                    variable: "REFRAIN_PATIENCE",
                    value,
                    known: "a number of seconds",
                })?,
            },
            job: job.clone(),
            command: text("REFRAIN_COMMAND")
                .map_or_else(Vec::new, |words| words.split('\u{1f}').map(str::to_owned).collect()),
            choice: Choice::read(words).map_err(Unknown::Choice)?,
            launched: launched(&look_up),
            run: text("REFRAIN_RUN").unwrap_or(job).replace('\n', " "),
            held: look_up("REFRAIN_RUN").is_some(),
            #[cfg(feature = "switches")]
            switches: Switches::read(text).map_err(|(variable, value, known)| Unknown::Value {
                variable,
                value,
                known,
            })?,
        }))
    }

    /// What tests ask for.
    #[inline]
    pub fn tests(&self) -> &Switches {
        #[cfg(feature = "switches")]
        return &self.switches;
        #[cfg(not(feature = "switches"))]
        &Switches::NONE
    }
}

/// How long a rank waits for the others where nobody says.
const PATIENCE: Duration = Duration::from_secs(30);
/// Nobody waits longer: a year.
const MOST_PATIENCE: f64 = 365.0 * 86_400.0;

/// Seconds, of which there may be a part.
fn patience(text: &str) -> Option<Duration> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.0..=MOST_PATIENCE).contains(seconds))?;
    Some(Duration::from_secs_f64(seconds))
}

/// How many there are, and which one this is, as launchers tell the processes they start. Not those of batch systems,
/// whose variables every command of a script inherits.
const LAUNCHERS: [(&str, &str); 5] = [
    ("PMI_SIZE", "PMI_RANK"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"),
    ("FLUX_JOB_SIZE", "FLUX_TASK_RANK"),
];

/// `None` also where two launchers, one inside the other, do not agree.
fn launched(look_up: impl Fn(&str) -> Option<OsString>) -> Option<Launched> {
    let number = |variable: &str| look_up(variable)?.to_str()?.parse::<u32>().ok();
    let told = |&(size, rank): &(&str, &str)| Some(Launched { size: number(size)?, rank: number(rank)? });
    let mut all = LAUNCHERS.iter().filter_map(told);
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_launchers_say() {
        let told = |variables: &[(&str, &str)]| {
            launched(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
        };
        let second_of_four = Some(Launched { rank: 1, size: 4 });
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[("PMI_SIZE", "4"), ("PMI_RANK", "1")]), second_of_four);
        assert_eq!(told(&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "1")]), second_of_four);
        assert_eq!(told(&[("PMI_SIZE", "4")]), None);
        let both = |size| {
            let inner = [("OMPI_COMM_WORLD_SIZE", size), ("OMPI_COMM_WORLD_RANK", "1")];
            told(&[[("PMI_SIZE", "4"), ("PMI_RANK", "1")], inner].concat())
        };
        assert_eq!((both("4"), both("2")), (second_of_four, None));
    }

    #[test]
    fn seconds_of_patience() {
        assert_eq!(patience("2.5"), Some(Duration::from_millis(2500)));
        assert_eq!((patience("0"), patience("1e30"), patience("")), (Some(Duration::ZERO), None, None));
    }

    /// Variables as `NAME=value` words, against what was understood, in one line.
    fn check(variables: &str, expected: &str) {
        let look_up = |name: &str| {
            let mut words = variables.split(' ').filter_map(|word| word.split_once('='));
            words.find(|(n, _)| *n == name.trim_start_matches("REFRAIN_")).map(|(_, v)| OsString::from(v))
        };
        let said = match Config::read(look_up) {
            Ok(None) => "inert".to_owned(),
            Err(unknown) => unknown.to_string(),
            Ok(Some(c)) => format!(
                "{} pointers={} time={:?} split={} fold={} force={} summary={} safe={}",
                c.out.display(),
                c.pointers,
                c.time,
                c.split,
                c.fold,
                c.force,
                c.summary,
                c.safe
            ),
        };
        assert_eq!(said, expected, "for {variables:?}");
    }

    #[test]
    fn variables_are_understood_or_refused() {
        check("", "inert");
        check("OUT=", "inert");
        check("TIME=sometimes", "inert");
        check(
            "OUT=a.rfn",
            "a.rfn pointers=true time=Mean split=true fold=grammar force=false summary=false safe=true",
        );
        check(
            "OUT=/t/b FOLD=loops POINTERS=off TIME=off SPLIT=off FORCE=1 SUMMARY=1 SAFE=off",
            "/t/b pointers=false time=Off split=false fold=loops force=true summary=true safe=false",
        );
        check(
            "OUT=a TIME=mean=signature",
            "a pointers=true time=Mean split=false fold=grammar force=false summary=false safe=true",
        );
        check(
            "OUT=a TIME=mean FORCE=0",
            "a pointers=true time=Mean split=true fold=grammar force=false summary=false safe=true",
        );
        check(
            "OUT=a TIME=exakt",
            "REFRAIN_TIME: 'exakt' is none of: mean, mean=signature, histogram, binned, binned=BASE, binned=BASE,MPI_NAME=BASE,..., exact, off; did \
             you mean exact?",
        );
        check("OUT=a STACKS=on", "REFRAIN_STACKS is \"on\", which is none of: off, site, full");
        check("OUT=a RECURSION=off", "REFRAIN_RECURSION is \"off\", which is none of: fold, keep");
        check("OUT=a LOSSY=sites=x", "REFRAIN_LOSSY: 'sites=x' needs a number from 2 on");
        check(
            "OUT=a LOSSY=sites=2",
            "REFRAIN_LOSSY: 'sites' needs whole call stacks (stacks full or fold loops)",
        );
        check(
            "OUT=a LOSSY=sites=2 FOLD=loops",
            "a pointers=true time=Mean split=true fold=loops force=false summary=false safe=true",
        );
        check(
            "OUT=a LOSSY=tags SPLIT=off",
            "REFRAIN_LOSSY: 'tags' needs numbers apart from calls (split on)",
        );
        check("OUT=a SPLIT=maybe", "REFRAIN_SPLIT is \"maybe\", which is none of: on, off, 1, 0");
        check(
            "OUT=a ONLY=p2q",
            "REFRAIN_ONLY: 'p2q' is neither a function nor a family of functions; did you mean p2p?",
        );
        check(
            "OUT=a FOLD=loops,exactly",
            "REFRAIN_FOLD: 'exactly' is nothing that loops can be: exact, apart",
        );
        check("OUT=a WINDOW=2s..1s", "REFRAIN_WINDOW: '2s..1s' is empty");
        check(
            "OUT=a ONLY=coll RANKS=0-3 SKIP=MPI_T",
            "a pointers=true time=Mean split=true fold=grammar force=false summary=false safe=true",
        );
        let known = "which is none of: a number of seconds";
        check("OUT=a PATIENCE=-1", &format!("REFRAIN_PATIENCE is \"-1\", {known}"));
        check("OUT=a PATIENCE=long", &format!("REFRAIN_PATIENCE is \"long\", {known}"));
        check("OUT=a PATIENCE=nan", &format!("REFRAIN_PATIENCE is \"nan\", {known}"));
    }
}
