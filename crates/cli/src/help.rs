//! `-h` on one screen, `--help` with everything, completion in a shell.

use clap::error::{ContextKind, ContextValue};
use clap::{ColorChoice, Command, CommandFactory, FromArgMatches, ValueEnum};
use clap_complete::Shell;

use crate::args::Arguments;
use crate::paint::{self, Color};

/// Examples that `-h` shows.
const EXAMPLES: usize = 4;

/// What is said about an option in `-h` is not longer, if it can be cut.
const LONG: usize = 84;

/// Commands whose options are many, and those of them that few need: `-h` leaves these out.
const TRACING: [&str; 3] = ["refrain run", "refrain env", "refrain doctor"];
const RARE: [&str; 11] = [
    "split",
    "recursion",
    "safe",
    "parts",
    "patience",
    "grace",
    "libraries",
    "only_module",
    "limit",
    "from",
    "to",
];

/// Commands as `refrain -h` lists them: recording, looking, going on with it, addresses, the shell.
const ORDER: [&str; 23] = [
    "run",
    "doctor",
    "env",
    "memory",
    "where",
    "recover",
    "info",
    "stats",
    "loops",
    "dump",
    "verify",
    "view",
    "report",
    "diff",
    "extrapolate",
    "replay",
    "proxy",
    "export",
    "import",
    "convert",
    "simulate",
    "completions",
    "man",
];

/// Commands that are like the one that was given come in the order of likeness, the least first: few readers go on to the last.
fn likeliest_first(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::Strings(likely)) = error.get(ContextKind::SuggestedSubcommand) {
        let likely = ContextValue::Strings(likely.iter().rev().cloned().collect());
        error.insert(ContextKind::SuggestedSubcommand, likely);
    }
    error
}

/// The command line as it was given. Says what is wrong with it, or what was asked for (`--help`), and ends.
pub fn arguments() -> Arguments {
    let color = asked(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()));
    paint::choose(color);
    let color = match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    let matches =
        definition().color(color).try_get_matches().unwrap_or_else(|error| likeliest_first(error).exit());
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    paint::choose(arguments.color);
    arguments
}

/// What `--color` says, before the rest is understood: errors have colours too.
fn asked(words: impl Iterator<Item = String>) -> Color {
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    let value = |(at, word): (usize, &String)| match word.strip_prefix("--color") {
        Some("") => words.get(at + 1).cloned(),
        Some(value) => value.strip_prefix('=').map(str::to_owned),
        None => None,
    };
    let value = words.iter().enumerate().find_map(value);
    value.and_then(|value| Color::from_str(&value, false).ok()).unwrap_or_default()
}

/// All commands and options. What stands below the options in `--help` is long; `-h` has some of its examples.
pub fn definition() -> Command {
    let command = shortened(Arguments::command(), "refrain");
    ORDER
        .iter()
        .enumerate()
        .fold(command, |command, (at, name)| command.mut_subcommand(name, |sub| sub.display_order(at)))
}

fn shortened(mut command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        let path = format!("{path} {name}");
        command = command.mut_subcommand(name, |sub| shortened(sub, &path));
    }
    command = command.mut_args(|arg| {
        let rare = RARE.contains(&arg.get_id().as_str()) && TRACING.contains(&path);
        let Some(long) = arg.get_help().map(ToString::to_string) else { return arg };
        let arg = if rare { arg.hide_short_help(true) } else { arg };
        // These are told behind it, in brackets.
        let values = match arg.is_hide_possible_values_set() {
            true => Vec::new(),
            false => arg.get_possible_values(),
        };
        let values: usize = values.iter().map(|value| value.get_name().len() + 6).sum();
        match arg.get_long_help() {
            Some(_) => arg,
            None => arg.help(in_a_line(&long, LONG.saturating_sub(values))).long_help(long),
        }
    });
    let Some(long) = command.get_after_help().map(ToString::to_string) else { return command };
    command.after_help(short(&long, path)).after_long_help(long)
}

/// The first sentence, with the default; which variable says the same stands in `--help`.
fn in_a_line(long: &str, most: usize) -> String {
    let line = long.lines().next().unwrap_or("").trim_end_matches(':');
    let (text, bracket) = match line.find('[') {
        Some(at) => (&line[..at], line[at + 1..].split(']').next().unwrap_or("")),
        None => (line, ""),
    };
    let end = [". ", "; "].iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    let mut text = text[..end].trim_end();
    let default = bracket.split("; ").find(|part| part.starts_with("default: "));
    while let Some(end) = [", ", ": ", " ("].iter().filter_map(|end| text.rfind(end)).max()
        && text.len() + default.map_or(0, str::len) > most
    {
        text = &text[..end];
    }
    match default {
        Some(default) => format!("{text} [{default}]"),
        None => text.to_owned(),
    }
}

/// Its first examples.
fn short(long: &str, path: &str) -> String {
    let is_example =
        |line: &&str| line.starts_with("  ") && line.contains("refrain ") && !line.contains("| sed");
    let examples: Vec<&str> = long.lines().filter(is_example).take(EXAMPLES).collect();
    format!("Examples:\n{}\n\nMore: {path} --help", examples.join("\n"))
}

pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "refrain", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines and columns of a terminal that people have, not of the smallest one.
    const SCREEN: (usize, usize) = (50, 140);

    fn all(command: &Command, then: &mut dyn FnMut(&Command)) {
        then(command);
        command.get_subcommands().for_each(|sub| all(sub, then));
    }

    #[test]
    fn short_help_is_one_screen_and_both_have_examples() {
        let mut command = definition();
        command.build();
        all(&command, &mut |command| {
            if command.get_name() == "help"
                || command.get_display_name().is_some_and(|n| n.contains("-help-"))
            {
                return;
            }
            let mut command = command.clone();
            let (short, long) = (command.render_help().to_string(), command.render_long_help().to_string());
            let (name, lines) =
                (command.get_display_name().unwrap_or("refrain").to_owned(), short.lines().count());
            assert!(lines <= SCREEN.0, "{name} -h: {lines} lines\n{short}");
            for line in short.lines() {
                assert!(line.chars().count() <= SCREEN.1, "{name} -h: {line}");
            }
            assert!(short.lines().any(|line| line.starts_with("  ") && line.contains("refrain ")), "{short}");
            assert!(long.contains("refrain "), "{long}");
        });
    }

    #[test]
    fn every_command_has_its_place_in_the_list() {
        let mut listed = ORDER.map(str::to_owned);
        let mut known: Vec<String> =
            Arguments::command().get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(&listed[..], known);
    }

    #[test]
    fn what_few_need_is_not_in_the_short_help() {
        let mut command = definition();
        let stats = command.find_subcommand_mut("stats").unwrap();
        assert!(!stats.render_help().to_string().contains("--elements"));
        assert!(command.render_long_help().to_string().contains("--elements"));
    }

    #[test]
    fn an_option_in_a_line() {
        assert_eq!(in_a_line("Keep x [default: on; env: REFRAIN_X]; or not", LONG), "Keep x [default: on]");
        assert_eq!(in_a_line("How [env: X]:\n  a  b", LONG), "How");
        assert_eq!(in_a_line("One thing. Another", LONG), "One thing");
    }

    #[test]
    fn colours_are_known_before_the_rest() {
        let of = |line: &str| asked(line.split(' ').map(str::to_owned));
        assert_eq!(of("info a --color never"), Color::Never);
        assert_eq!(of("--color=always info"), Color::Always);
        assert_eq!(of("info --color sometimes"), Color::Auto);
        assert_eq!(of("run -- ls --color=always"), Color::Auto);
    }

    #[test]
    fn scripts_know_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = completions(shell);
            for command in definition().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
            assert!(script.contains("color"), "{shell}");
        }
    }
}
