//! Pages for `man`, one for each command.

use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::help::definition;

/// The page of one command: `memory run`.
pub fn page(words: &[String]) -> Result<String, Failure> {
    let mut command = &built();
    for word in words {
        command = command.find_subcommand(word).ok_or_else(|| {
            let known: Vec<&str> = commands(command).map(Command::get_name).collect();
            Failure::new(format!("there is no command {word}")).help(format!("there is {}", known.join(", ")))
        })?;
    }
    Ok(of(command))
}

/// All pages, into a folder.
pub fn pages(folder: &Path) -> Result<(), Failure> {
    let not_written = |path: &Path, error: &std::io::Error| {
        Failure::new(format!("{} cannot be written: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| not_written(folder, &error))?;
    let all = built();
    let mut open = vec![&all];
    while let Some(command) = open.pop() {
        let path = folder.join(format!("{}.1", name(command)));
        std::fs::write(&path, of(command)).map_err(|error| not_written(&path, &error))?;
        open.extend(commands(command));
    }
    Ok(())
}

fn built() -> Command {
    let mut command = definition().disable_help_subcommand(true);
    command.build();
    command
}

fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| sub.get_name() != "help")
}

/// `refrain-memory-run`
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

fn of(command: &Command) -> String {
    let man = Man::new(command.clone()).title(name(command).to_uppercase()).manual("Refrain").date("");
    let mut page = Vec::new();
    // Nothing fails that is written into memory.
    let _ = man.render_title(&mut page);
    let _ = man.render_name_section(&mut page);
    let _ = man.render_synopsis_section(&mut page);
    let _ = man.render_description_section(&mut page);
    let _ = man.render_options_section(&mut page);
    let mut page = String::from_utf8_lossy(&page).into_owned();
    let commands: Vec<&Command> = commands(command).collect();
    if !commands.is_empty() {
        page.push_str(".SH COMMANDS\n");
        for sub in &commands {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            page.push_str(&format!(".TP\n\\fB{}\\fR(1)\n{}\n", escaped(name(sub)), escaped(&about)));
        }
    }
    if let Some(long) = command.get_after_long_help().or(command.get_after_help()) {
        page.push_str(&format!(".SH EXAMPLES AND DETAILS\n.nf\n{}\n.fi\n", as_it_is(&long.to_string())));
    }
    page.push_str(".SH SEE ALSO\n");
    page.push_str(match name(command) {
        "refrain" => "README.md, FORMAT.md and the chapters of docs in the folder of the documentation\n",
        _ => "\\fBrefrain\\fR(1)\n",
    });
    page
}

/// Lines stay lines.
fn as_it_is(text: &str) -> String {
    text.lines().map(escaped).collect::<Vec<_>>().join("\n")
}

fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-").replace('`', "\\(ga");
    // A dot or quote in front would be a request.
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let folder = std::env::temp_dir().join(format!("refrain-man-{}", std::process::id()));
        pages(&folder).unwrap();
        let run = std::fs::read_to_string(folder.join("refrain-memory-run.1")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(run.contains(".SH EXAMPLES"), "{run}");
        assert_eq!(run, page(&["memory".into(), "run".into()]).unwrap());
        let all = page(&[]).unwrap();
        for command in commands(&built()) {
            assert!(all.contains(&escaped(name(command))), "{}", command.get_name());
        }
        assert!(page(&["nothing".into()]).unwrap_err().to_string().contains("info"));
    }

    #[test]
    fn lines_are_not_taken_for_requests() {
        assert_eq!(as_it_is(".x\n'y\na-b\\"), "\\&.x\n\\&'y\na\\-b\\e");
    }
}
