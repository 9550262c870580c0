//! Speed and size of Refrain, measured here and now; never asserted in tests. `scripts/bench` builds and starts this.
//!
//! Owns: which parts there are (`parts`), how rows are shown (`table`), kept (`store`) and compared (`compare`). Does not
//! own: what it measures. It drives the command, the libraries and the examples that are built, and links none of them.
//!
//! A part is one function and one line in `parts::PARTS`:
//!
//!     pub fn sizes(bench: &mut Bench, _: &Arguments) -> Result<()> {
//!         bench.table(Table::new("sizes", "Bytes of the trace"));
//!         bench.row(&[("program", &"ring"), ("ranks", &4)], &[("trace", Unit::Bytes.of(1234))])
//!     }

mod arguments;
mod bench;
mod compare;
mod parts;
mod readings;
mod row;
mod scratch;
mod store;
mod table;
mod task;
mod text;
mod valgrind;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use arguments::Arguments;
use bench::Bench;
use parts::{PARTS, Part};
use store::Stored;

pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Error>;

/// To standard output. Whoever reads it may have had enough.
pub fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn interface() -> Command {
    let mut command = Command::new("refrain-bench")
        .about("Speed and size, measured here and now. Without a part: all, with their defaults")
        .override_usage("scripts/bench [OPTIONS] [PART [ARGUMENTS]...]")
        .arg(
            Arg::new("json")
                .long("json")
                .global(true)
                .action(ArgAction::SetTrue)
                .help("Print rows as JSON lines, and no tables"),
        )
        .arg(
            Arg::new("against")
                .long("against")
                .global(true)
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Compare with these rows, not with those of the last run"),
        )
        .arg(
            Arg::new("threshold")
                .long("threshold")
                .global(true)
                .value_name("PERCENT")
                .value_parser(value_parser!(f64))
                .help("Show times that changed by more than this [default: 10]"),
        )
        .subcommand(Command::new("list").about("List the parts"))
        .subcommand(Command::new("all").about("All parts but the longest, with their defaults"))
        .subcommand(Command::new("compare").about("Compare the rows of two files of target/bench").args(
            [("was", "WAS"), ("now", "NOW")].map(|(name, shown)| {
                Arg::new(name).required(true).value_name(shown).value_parser(value_parser!(PathBuf))
            }),
        ));
    for part in &PARTS {
        let usage = format!("scripts/bench {} {}", part.name, part.arguments);
        let words = Arg::new("arguments")
            .num_args(0..)
            .value_name("ARGUMENTS")
            .help("See the usage; options behind `--`");
        command = command.subcommand(
            Command::new(part.name).about(part.about).override_usage(usage.trim_end().to_owned()).arg(words),
        );
    }
    command
}

fn main() -> ExitCode {
    match obey(&interface().get_matches()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn obey(given: &ArgMatches) -> Result<ExitCode> {
    // As `scripts/bench` has it: paths of files and programs begin here.
    std::env::set_current_dir(root())?;
    match given.subcommand() {
        Some(("list", _)) => say(&listed()),
        Some(("compare", files)) => {
            let file =
                |name: &str| Stored::read(&files.get_one::<PathBuf>(name).cloned().unwrap_or_default());
            say(&compare::compare(&file("was")?, &file("now")?, threshold(files)));
        }
        None | Some(("all", _)) => return all(given.subcommand_matches("all").unwrap_or(given)),
        Some((name, given)) => {
            let part = PARTS.iter().find(|part| part.name == name).ok_or("no such part")?;
            let words: Vec<String> =
                given.get_many::<String>("arguments").into_iter().flatten().cloned().collect();
            measure(part, &words, given)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One part that fails does not keep the others from being measured.
fn all(given: &ArgMatches) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for part in PARTS.iter().filter(|part| part.in_all) {
        if let Err(error) = measure(part, &[], given) {
            eprintln!("bench: {}: {error}", part.name);
            code = ExitCode::from(2);
        }
        if !given.get_flag("json") {
            say("\n");
        }
    }
    Ok(code)
}

fn measure(part: &Part, words: &[String], given: &ArgMatches) -> Result<()> {
    let json = given.get_flag("json");
    let against = given.get_one::<PathBuf>("against").map(|file| Stored::read(file)).transpose()?;
    let mut bench = Bench::new(&root(), part.name, words, json)?;
    (part.run)(&mut bench, &Arguments(words))?;
    let (now, last, path) = bench.finish();
    let mut text = match against.or(last) {
        Some(was) if !now.rows.is_empty() => compare::compare(&was, &now, threshold(given)),
        _ => String::new(),
    };
    if let Some(path) = path {
        text += &format!("Rows: {}\n", path.strip_prefix(root()).unwrap_or(&path).display());
    }
    match json {
        true => eprint!("{text}"),
        false => say(&text),
    }
    Ok(())
}

fn threshold(given: &ArgMatches) -> f64 {
    given.get_one("threshold").copied().unwrap_or(compare::THRESHOLD)
}

fn listed() -> String {
    let width = PARTS.iter().map(|part| part.name.len() + 1 + part.arguments.len()).max().unwrap_or(0);
    let line =
        |part: &Part| format!("{:width$}  {}\n", format!("{} {}", part.name, part.arguments), part.about);
    PARTS.iter().map(line).collect()
}

/// The repository that this was built in. The path is not resolved further than this, so that it reads well.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        interface().debug_assert();
    }

    #[test]
    fn names_of_parts_are_unique_and_listed() {
        let text = listed();
        for (at, part) in PARTS.iter().enumerate() {
            assert!(
                PARTS[..at].iter().all(|before| before.name != part.name),
                "{} is there twice",
                part.name
            );
            assert!(
                text.contains(&format!("{} {}", part.name, part.arguments)),
                "{} is not listed",
                part.name
            );
        }
    }

    #[test]
    fn a_part_takes_words_and_options() {
        let given = interface()
            .try_get_matches_from(["x", "patterns", "16", "1024", "--json", "--against", "f"])
            .unwrap();
        let (name, given) = given.subcommand().unwrap();
        let words: Vec<&str> = given.get_many::<String>("arguments").unwrap().map(String::as_str).collect();
        assert_eq!((name, words), ("patterns", vec!["16", "1024"]));
        assert!(given.get_flag("json"));
        assert_eq!(given.get_one::<PathBuf>("against").unwrap(), Path::new("f"));
    }

    #[test]
    fn without_a_part_options_are_still_options() {
        let given = interface().try_get_matches_from(["x", "--json", "--threshold", "5"]).unwrap();
        assert!(given.subcommand().is_none() && given.get_flag("json"));
        assert_eq!(threshold(&given), 5.0);
        assert!(interface().try_get_matches_from(["x", "no-such-part"]).is_err());
    }

    #[test]
    fn the_repository_is_found() {
        assert!(root().join("ARCHITECTURE.md").exists());
    }
}
