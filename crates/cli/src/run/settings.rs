//! The options of a run, from the command line and the environment, parsed once.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;
use refrain_encode::Folding;
use refrain_model::Lossy;
use refrain_model::choice::{BadChoice, Choice, Words};
use refrain_model::time::Time;

use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stacks {
    Off,
    /// Where the program calls MPI.
    Site,
    /// All frames.
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Recursion {
    Fold,
    Keep,
}

/// The capture library reads these very words from the environment.
impl fmt::Display for Switch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Switch::On => "on",
            Switch::Off => "off",
        })
    }
}

impl fmt::Display for Stacks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Stacks::Off => "off",
            Stacks::Site => "site",
            Stacks::Full => "full",
        })
    }
}

impl fmt::Display for Recursion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Recursion::Fold => "fold",
            Recursion::Keep => "keep",
        })
    }
}

const CHOOSING: &str = "Choosing what to record";

/// As given on the command line; what is not given is looked up in the environment.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// Write the trace here [default: the program's name + .rfn; env: REFRAIN_OUT]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the trace if it is there already [env: REFRAIN_FORCE=on]
    #[arg(long)]
    pub force: bool,
    /// Record these ranks of MPI_COMM_WORLD only: 0-7,63 [env: REFRAIN_RANKS]
    #[arg(long, value_name = "RANKS", help_heading = CHOOSING)]
    pub ranks: Option<String>,
    /// Record these calls only: families (p2p, coll, rma, ...), functions, beginnings (MPI_Win_*) [env: REFRAIN_ONLY]
    #[arg(long, value_name = "CALLS", help_heading = CHOOSING)]
    pub only: Option<String>,
    /// Do not record these calls [env: REFRAIN_SKIP]
    #[arg(long, value_name = "CALLS", help_heading = CHOOSING)]
    pub skip: Option<String>,
    /// Record calls that begin in this stretch of time after MPI_Init: 10s..2m, 10s.., ..500ms [env: REFRAIN_WINDOW]
    #[arg(long, value_name = "FROM..UNTIL", help_heading = CHOOSING)]
    pub window: Option<String>,
    /// Let the program switch: MPI_Pcontrol(0) stops recording, any other level resumes it [default: on;
    /// env: REFRAIN_PCONTROL]
    #[arg(long, value_name = "on|off", hide_possible_values = true, help_heading = CHOOSING)]
    pub pcontrol: Option<Switch>,
    /// Keep buffer addresses, as allocation and offset [default: on; env: REFRAIN_POINTERS]
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub pointers: Option<Switch>,
    /// How exactly time is kept: mean, mean=signature, histogram, binned, exact, off [default: mean; env: REFRAIN_TIME]
    ///   mean                    of each kind of call: total, mean, shortest and longest
    ///   mean=signature          the same of calls with the same arguments; these are stored in the call, as with --split off
    ///   histogram               also how the durations and the gaps before them are distributed, for each call after another
    ///   binned=BASE             when each call began and ended, to within BASE - 1 of the time before [BASE: 1.2];
    ///                           binned=1.2,MPI_Wait=2 has another base for MPI_Wait
    ///   exact                   when each call began and ended, to the nanosecond
    ///   off                     no clock is read
    #[arg(long, value_name = "WORDS", verbatim_doc_comment)]
    pub time: Option<String>,
    /// Store arguments as separate streams; off is Pilgrim's way, for comparison, and larger [default: on;
    /// env: REFRAIN_SPLIT]
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub split: Option<Switch>,
    /// Keep the order of calls as a grammar, or as the program's loops, for `refrain loops`; a grammar is smallest [default:
    /// grammar; env: REFRAIN_FOLD]; for comparison: loops,exact (only equal iterations are one), loops,apart (and only
    /// equal ranks)
    #[arg(long, value_name = "grammar|loops")]
    pub fold: Option<String>,
    /// Keep where each call was made: the line that calls MPI, or the whole call stack [default: off, with --fold loops
    /// full; env: REFRAIN_STACKS]
    #[arg(long, value_name = "off|site|full", hide_possible_values = true)]
    pub stacks: Option<Stacks>,
    /// With --stacks full: calls at every depth of a recursion have one stack, or one each [default: fold;
    /// env: REFRAIN_RECURSION]
    #[arg(long, value_name = "fold|keep", hide_possible_values = true)]
    pub recursion: Option<Recursion>,
    /// What may be lost to make the trace smaller; words with commas between them [default: nothing; env: REFRAIN_LOSSY]:
    ///   histograms=TRIGGER:BINS  the order of peers and counts that take more than TRIGGER numbers to tell; at most BINS
    ///                            different ones are left (1:16 for all that are not constant; without numbers 64:64).
    ///                            Displacements stay as they were
    ///   averages                 the counts of MPI_Alltoallv and its kin; they become their mean over all ranks
    ///   tags                     tags, where the order of messages says the same
    ///   waits                    how many MPI_Waitsome or MPI_Testsome of the same requests followed one another
    ///   sites=N                  call stacks that differ in fewer than N frames become one (with --stacks full)
    ///   sites-in=MODULE+0xA-0xB  which place in this code made a call (with --stacks)
    #[arg(long, value_name = "WORDS", verbatim_doc_comment)]
    pub lossy: Option<String>,
    /// While the program runs, keep its calls in parts (OUT.parts), which survive a crash [default: on; env: REFRAIN_SAFE]
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub safe: Option<Switch>,
    /// Keep the parts in this directory of each host, such as a local disk, and not beside the trace [env: REFRAIN_PARTS]
    #[arg(long, value_name = "DIRECTORY")]
    pub parts: Option<PathBuf>,
    /// How many seconds a rank waits in MPI_Finalize for the others. Then the program goes on, and the trace is made of
    /// the parts [default: 30; env: REFRAIN_PATIENCE]
    #[arg(long, value_name = "SECONDS")]
    pub patience: Option<String>,
    /// How many seconds the command may take to end after SIGTERM (of a launcher also after SIGINT and SIGHUP); then it is
    /// killed. A second Ctrl-C kills it at once [default: 30; env: REFRAIN_GRACE]
    #[arg(long, value_name = "SECONDS")]
    pub grace: Option<u32>,
    /// No closing line
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub out: Option<PathBuf>,
    pub force: bool,
    pub pointers: Switch,
    pub time: Time,
    pub split: Switch,
    pub fold: Folding,
    pub stacks: Stacks,
    pub recursion: Recursion,
    /// Checked.
    pub lossy: Option<String>,
    pub safe: Switch,
    /// Absolute: where each host keeps its parts.
    pub parts: Option<PathBuf>,
    /// Seconds, as the capture library will read them. Checked.
    pub patience: Option<String>,
    /// Seconds.
    pub grace: u32,
    pub quiet: bool,
    /// What to record, by variable, as the capture library will read it. Checked.
    pub choice: Vec<(&'static str, String)>,
}

impl Settings {
    /// The command line wins over the environment, an empty variable is no variable.
    pub fn resolve(flags: &Flags, env: impl Fn(&str) -> Option<OsString>) -> Result<Settings, Failure> {
        let env = |name: &str| env(name).filter(|value| !value.is_empty());
        let fold = fold(flags, env("REFRAIN_FOLD"))?;
        // Loops are at lines of the program.
        let stacks = if fold == Folding::Grammar { Stacks::Off } else { Stacks::Full };
        let stacks = choice(flags.stacks, "REFRAIN_STACKS", env("REFRAIN_STACKS"), stacks)?;
        if stacks != Stacks::Full && flags.recursion == Some(Recursion::Keep) {
            let (what, mend) = match stacks {
                Stacks::Off => ("none are recorded", "add --stacks full"),
                _ => ("of these only the last frame is recorded", "--stacks full records all"),
            };
            let failure = Failure::new(format!("--recursion keep is about call stacks, and {what}"));
            return Err(failure.help(mend));
        }
        let safe = choice(flags.safe, "REFRAIN_SAFE", env("REFRAIN_SAFE"), Switch::On)?;
        let split = env("REFRAIN_SPLIT");
        let said = flags.split.is_some() || split.is_some();
        let split = choice(flags.split, "REFRAIN_SPLIT", split, Switch::On)?;
        let said = said.then_some(split == Switch::On);
        let (time, split) = time(flags, env("REFRAIN_TIME"), safe, said)?;
        let lossy = lossy(flags, env, (split, stacks), &time)?;
        Ok(Settings {
            out: flags.out.clone().or_else(|| env("REFRAIN_OUT").map(PathBuf::from)),
            force: flags.force || truth("REFRAIN_FORCE", env("REFRAIN_FORCE"))?,
            pointers: choice(flags.pointers, "REFRAIN_POINTERS", env("REFRAIN_POINTERS"), Switch::On)?,
            time,
            split,
            fold,
            stacks,
            recursion: choice(
                flags.recursion,
                "REFRAIN_RECURSION",
                env("REFRAIN_RECURSION"),
                Recursion::Fold,
            )?,
            lossy,
            safe,
            parts: parts(flags, env("REFRAIN_PARTS"), safe)?,
            patience: patience(flags, env("REFRAIN_PATIENCE"))?,
            grace: grace(flags, env("REFRAIN_GRACE"))?,
            quiet: flags.quiet,
            choice: chosen(flags, env)?,
        })
    }
}

/// The directory need not be there on this host: it is made on none.
fn parts(flags: &Flags, variable: Option<OsString>, safe: Switch) -> Result<Option<PathBuf>, Failure> {
    let named = flags.parts.clone().or(variable.filter(|text| !text.is_empty()).map(PathBuf::from));
    let Some(parts) = named else { return Ok(None) };
    if safe == Switch::Off && flags.parts.is_some() {
        return Err(Failure::new("--parts says where to keep what --safe off does not keep")
            .help("leave one of them out"));
    }
    let absolute = std::path::absolute(&parts);
    absolute.map(Some).map_err(|error| Failure::new(format!("--parts: {}: {error}", parts.display())))
}

fn patience(flags: &Flags, variable: Option<OsString>) -> Result<Option<String>, Failure> {
    let (place, text) = match (&flags.patience, variable) {
        (Some(text), _) => ("--patience", text.clone()),
        (None, Some(text)) => ("REFRAIN_PATIENCE", text.to_string_lossy().into_owned()),
        (None, None) => return Ok(None),
    };
    // A year, which the capture library takes at most.
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=365.0 * 86_400.0).contains(&seconds) => Ok(Some(text)),
        _ => {
            Err(Failure::new(format!("{place}: '{text}' is not a number of seconds"))
                .help("such as: 30, 0.5"))
        }
    }
}

fn grace(flags: &Flags, variable: Option<OsString>) -> Result<u32, Failure> {
    const SECONDS: u32 = 30;
    let Some(value) = variable else { return Ok(flags.grace.unwrap_or(SECONDS)) };
    let text = value.to_string_lossy();
    let told = text.parse().map_err(|_| {
        Failure::new(format!("the environment variable REFRAIN_GRACE is '{text}'"))
            .help("set it to a number of seconds")
    });
    flags.grace.map_or(told, Ok)
}

/// And whether arguments are kept apart from calls, given what is said of that.
fn time(
    flags: &Flags,
    variable: Option<OsString>,
    safe: Switch,
    split: Option<bool>,
) -> Result<(Time, Switch), Failure> {
    let (place, text) = match (&flags.time, variable) {
        (Some(text), _) => ("--time", text.clone()),
        (None, Some(text)) => ("REFRAIN_TIME", text.to_string_lossy().into_owned()),
        (None, None) => ("--time", String::new()),
    };
    let bad = |BadChoice { why, .. }| Failure::new(format!("{place}: {why}"));
    let time = Time::read(&text).map_err(bad)?;
    time.with_safe(safe == Switch::On).map_err(bad)?;
    let split = Time::split(&text, split).map_err(bad)?;
    Ok((time, if split { Switch::On } else { Switch::Off }))
}

fn lossy(
    flags: &Flags,
    env: impl Fn(&str) -> Option<OsString>,
    (split, stacks): (Switch, Stacks),
    time: &Time,
) -> Result<Option<String>, Failure> {
    let variable = || env("REFRAIN_LOSSY").map(|value| value.to_string_lossy().into_owned());
    let (place, text) = match &flags.lossy {
        Some(text) => ("--lossy", Some(text.clone())),
        None => ("REFRAIN_LOSSY", variable()),
    };
    let bad = |BadChoice { why, .. }| Failure::new(format!("{place}: {why}"));
    let lossy = Lossy::read(text.as_deref()).map_err(bad)?;
    lossy.with_split(split == Switch::On).map_err(bad)?;
    lossy.with_time(time).map_err(bad)?;
    let sites = lossy.with_stacks(stacks != Stacks::Off, stacks == Stacks::Full).map_err(bad);
    sites.map_err(|failure| failure.help("add --stacks full"))?;
    Ok(text)
}

/// The options by name, with their variables. Checked together: they may leave nothing.
fn chosen(
    flags: &Flags,
    env: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let pcontrol = flags.pcontrol.map(|switch| switch.to_string());
    let options = [
        ("ranks", "REFRAIN_RANKS", &flags.ranks),
        ("only", "REFRAIN_ONLY", &flags.only),
        ("skip", "REFRAIN_SKIP", &flags.skip),
        ("window", "REFRAIN_WINDOW", &flags.window),
        ("pcontrol", "REFRAIN_PCONTROL", &pcontrol),
    ];
    let values = options.map(|(_, variable, flag)| {
        flag.clone().or_else(|| Some(env(variable)?.to_string_lossy().into_owned()))
    });
    let [ranks, only, skip, window, pcontrol] = values.each_ref().map(Option::as_deref);
    Choice::read(Words { ranks, only, skip, window, pcontrol }).map_err(|bad| {
        let named = options.iter().find(|(option, ..)| *option == bad.option);
        let place = match named {
            Some((_, variable, None)) => (*variable).to_owned(),
            _ => format!("--{}", bad.option),
        };
        Failure::new(format!("{place}: {}", bad.why)).help("`refrain run --help` has examples")
    })?;
    let given = options.into_iter().zip(values);
    Ok(given.filter_map(|((_, variable, _), value)| Some((variable, value?))).collect())
}

fn fold(flags: &Flags, variable: Option<OsString>) -> Result<Folding, Failure> {
    let (place, text) = match (&flags.fold, variable) {
        (Some(text), _) => ("--fold", text.clone()),
        (None, Some(text)) => ("REFRAIN_FOLD", text.to_string_lossy().into_owned()),
        (None, None) => return Ok(Folding::default()),
    };
    text.parse()
        .map_err(|why| Failure::new(format!("{place}: {why}")).help("`refrain run --help` lists them"))
}

fn choice<T: ValueEnum>(
    flag: Option<T>,
    name: &str,
    value: Option<OsString>,
    otherwise: T,
) -> Result<T, Failure> {
    match (flag, value) {
        (Some(flag), _) => Ok(flag),
        (None, None) => Ok(otherwise),
        (None, Some(value)) => {
            let text = value.to_string_lossy();
            T::from_str(&text, false).map_err(|_| {
                let known: Vec<String> = T::value_variants()
                    .iter()
                    .filter_map(|v| v.to_possible_value())
                    .map(|v| v.get_name().to_string())
                    .collect();
                Failure::new(format!("the environment variable {name} is '{text}'"))
                    .help(format!("set it to one of: {}", known.join(", ")))
            })
        }
    }
}

fn truth(name: &str, value: Option<OsString>) -> Result<bool, Failure> {
    let Some(value) = value else { return Ok(false) };
    match value.to_string_lossy().as_ref() {
        "on" | "1" | "yes" | "true" => Ok(true),
        "off" | "0" | "no" | "false" => Ok(false),
        other => Err(Failure::new(format!("the environment variable {name} is '{other}'"))
            .help("set it to one of: on, off, 1, 0, yes, no, true, false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(flags: Flags, env: &[(&str, &str)]) -> Result<Settings, String> {
        let look_up = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        Settings::resolve(&flags, look_up).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults() {
        let s = resolve(Flags::default(), &[]).unwrap();
        assert_eq!((s.pointers, s.time, s.split), (Switch::On, Time::Mean, Switch::On));
        assert_eq!((s.out, s.force, s.quiet), (None, false, false));
    }

    #[test]
    fn the_environment_says_the_same_as_the_options() {
        let one = |name, value| resolve(Flags::default(), &[(name, value)]).unwrap();
        assert_eq!(one("REFRAIN_POINTERS", "off").pointers, Switch::Off);
        assert_eq!(one("REFRAIN_TIME", "off").time, Time::Off);
        assert_eq!(one("REFRAIN_SPLIT", "off").split, Switch::Off);
        assert_eq!(one("REFRAIN_OUT", "x/y.rfn").out, Some(PathBuf::from("x/y.rfn")));
        assert!(one("REFRAIN_FORCE", "1").force);
        assert!(one("REFRAIN_FORCE", "on").force);
        assert!(!one("REFRAIN_FORCE", "0").force);
        assert!(!one("REFRAIN_FORCE", "").force);
        assert_eq!(one("REFRAIN_TIME", "").time, Time::Mean);
        assert_eq!((one("REFRAIN_GRACE", "5").grace, one("REFRAIN_GRACE", "").grace), (5, 30));
    }

    #[test]
    fn the_command_line_wins() {
        let flags = Flags { time: Some("mean".into()), out: Some("a.rfn".into()), ..Flags::default() };
        let s = resolve(flags, &[("REFRAIN_TIME", "off"), ("REFRAIN_OUT", "b.rfn")]).unwrap();
        assert_eq!((s.time, s.out), (Time::Mean, Some("a.rfn".into())));
    }

    #[test]
    fn an_unknown_value_is_an_error_that_lists_the_known_ones() {
        let error = |name, value| resolve(Flags::default(), &[(name, value)]).unwrap_err();
        assert_eq!(
            error("REFRAIN_TIME", "all"),
            "REFRAIN_TIME: 'all' is none of: mean, mean=signature, histogram, binned, binned=BASE, binned=BASE,MPI_NAME=BASE,..., exact, off"
        );
        assert!(error("REFRAIN_POINTERS", "ON").contains("on, off"));
        assert!(error("REFRAIN_SPLIT", "1").contains("on, off"));
        assert!(error("REFRAIN_FORCE", "maybe").contains("on, off"));
        assert!(error("REFRAIN_GRACE", "soon").contains("a number of seconds"));
    }

    #[test]
    fn patience_is_a_number_of_seconds() {
        let flags = |text: &str| Flags { patience: Some(text.into()), ..Flags::default() };
        assert_eq!(resolve(flags("2.5"), &[("REFRAIN_PATIENCE", "x")]).unwrap().patience, Some("2.5".into()));
        assert_eq!(resolve(Flags::default(), &[("REFRAIN_PATIENCE", "")]).unwrap().patience, None);
        for text in ["-1", "soon", "inf", "NaN", "1e9"] {
            let error = resolve(flags(text), &[]).unwrap_err();
            assert!(
                error.starts_with(&format!("--patience: '{text}' is not a number of seconds")),
                "{error}"
            );
        }
        let error = resolve(Flags::default(), &[("REFRAIN_PATIENCE", "long")]).unwrap_err();
        assert!(error.starts_with("REFRAIN_PATIENCE: 'long'"), "{error}");
    }

    #[test]
    fn what_may_be_lost_is_checked() {
        let flags = Flags { lossy: Some("sites=3".into()), ..Flags::default() };
        let error = resolve(flags.clone(), &[]).unwrap_err();
        assert!(error.starts_with("--lossy: 'sites' needs whole call stacks"), "{error}");
        assert!(resolve(flags.clone(), &[("REFRAIN_FOLD", "loops")]).is_ok());
        let site = Flags { stacks: Some(Stacks::Site), ..flags.clone() };
        assert!(resolve(site, &[]).unwrap_err().contains("whole call stacks"));
        let flags = Flags { stacks: Some(Stacks::Full), ..flags };
        assert_eq!(resolve(flags, &[("REFRAIN_LOSSY", "x")]).unwrap().lossy, Some("sites=3".into()));
        let s = resolve(Flags::default(), &[("REFRAIN_STACKS", "full"), ("REFRAIN_LOSSY", "")]).unwrap();
        assert_eq!((s.stacks, s.recursion, s.lossy), (Stacks::Full, Recursion::Fold, None));
        let error = resolve(Flags::default(), &[("REFRAIN_LOSSY", "sites")]).unwrap_err();
        assert!(error.starts_with("REFRAIN_LOSSY: 'sites' needs a number"), "{error}");
        let flags = Flags { lossy: Some("histograms".into()), split: Some(Switch::Off), ..Flags::default() };
        let error = resolve(flags, &[]).unwrap_err();
        assert!(error.starts_with("--lossy: 'histograms' needs numbers apart from calls"), "{error}");
    }

    #[test]
    fn a_recursion_needs_all_frames() {
        let keep = Flags { recursion: Some(Recursion::Keep), ..Flags::default() };
        let error = |stacks: &str| resolve(keep.clone(), &[("REFRAIN_STACKS", stacks)]).unwrap_err();
        assert!(error("off").contains("none are recorded"), "{}", error("off"));
        assert!(error("site").contains("only the last frame is recorded"), "{}", error("site"));
        assert!(error("site").contains("--stacks full"), "{}", error("site"));
        let kept = resolve(keep, &[("REFRAIN_STACKS", "full")]).unwrap();
        assert_eq!((kept.stacks, kept.recursion), (Stacks::Full, Recursion::Keep));
    }

    #[test]
    fn means_of_signatures_need_numbers_within_calls() {
        let signature = Flags { time: Some("mean=signature".into()), ..Flags::default() };
        let s = resolve(signature.clone(), &[]).unwrap();
        assert_eq!((s.time, s.split), (Time::Mean, Switch::Off));
        let s = resolve(Flags::default(), &[("REFRAIN_TIME", "mean=signature")]).unwrap();
        assert_eq!((s.time, s.split), (Time::Mean, Switch::Off));
        let s = resolve(signature.clone(), &[("REFRAIN_SPLIT", "off")]).unwrap();
        assert_eq!(s.split, Switch::Off);
        // Who names another way to keep times has that one.
        let mean = Flags { time: Some("mean".into()), ..Flags::default() };
        let s = resolve(mean, &[("REFRAIN_TIME", "mean=signature")]).unwrap();
        assert_eq!(s.split, Switch::On);

        let wrong = Flags { split: Some(Switch::On), ..signature.clone() };
        assert!(resolve(wrong, &[]).unwrap_err().starts_with("--time: mean=signature is for calls"));
        let wrong = Flags { lossy: Some("tags".into()), ..signature };
        assert!(resolve(wrong, &[]).unwrap_err().contains("needs numbers apart from calls"));
    }

    #[test]
    fn choices_come_from_both_and_are_checked_together() {
        let flags = Flags { only: Some("coll".into()), pcontrol: Some(Switch::Off), ..Flags::default() };
        let s = resolve(flags.clone(), &[("REFRAIN_RANKS", "0-3"), ("REFRAIN_ONLY", "p2p")]).unwrap();
        let given: Vec<String> = s.choice.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(given, ["REFRAIN_RANKS=0-3", "REFRAIN_ONLY=coll", "REFRAIN_PCONTROL=off"]);

        let error = |flags: &Flags, env: &[(&str, &str)]| resolve(flags.clone(), env).unwrap_err();
        assert!(error(&flags, &[("REFRAIN_SKIP", "coll")]).starts_with("REFRAIN_SKIP: no call is left"));
        assert!(error(&flags, &[("REFRAIN_RANKS", "0-")]).starts_with("REFRAIN_RANKS: '0-' is neither"));
        let wrong = Flags { only: Some("MPI_Allreduse".into()), ..Flags::default() };
        assert!(error(&wrong, &[]).starts_with("--only: 'MPI_Allreduse'"), "{}", error(&wrong, &[]));
        assert!(error(&wrong, &[]).contains("did you mean MPI_Allreduce?"));
        let wrong = Flags { window: Some("2m..10s".into()), ..Flags::default() };
        assert!(error(&wrong, &[]).starts_with("--window: '2m..10s' is empty"));
    }

    #[test]
    fn what_is_shown_is_what_is_read() {
        for value in Switch::value_variants() {
            assert_eq!(Switch::from_str(&value.to_string(), false), Ok(*value));
        }
        for value in Stacks::value_variants() {
            assert_eq!(Stacks::from_str(&value.to_string(), false), Ok(*value));
        }
        for value in Recursion::value_variants() {
            assert_eq!(Recursion::from_str(&value.to_string(), false), Ok(*value));
        }
    }
}
