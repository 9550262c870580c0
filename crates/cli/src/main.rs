//! The command `refrain`: arguments, exit codes, progress, launching. What a trace says comes from `refrain-views`.

mod addresses;
mod ahead;
mod args;
mod diff;
mod doctor;
mod export;
mod extrapolate;
mod failure;
mod flight;
mod help;
mod interrupt;
mod loops;
mod manual;
mod memory;
mod nothing;
mod paint;
mod progress;
mod proxy;
mod reading;
mod recover;
mod references;
mod replay;
mod report;
mod run;
mod stack;
#[cfg(test)]
mod testing;

use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use args::{Command, Format, MemoryCommand};
use failure::Failure;
use interrupt::Watch;
use refrain_views::dump::Selection;

/// It could not be done.
const COULD_NOT: u8 = 2;

/// A line on stderr.
fn say(line: &str) {
    say_more(line, &[]);
}

/// A line on stderr and others below it; a closed stderr is no reason to fail.
fn say_more(line: &str, more: &[&str]) {
    let text = format!("refrain: {}\n", failure::lines(line, more));
    let painted = paint::stderr_is_painted().then(|| paint::painted(paint::Look::Message, &text));
    let _ = std::io::stderr().write_all(painted.unwrap_or(text).as_bytes());
}

/// On stdout, all at once.
fn print(text: &str) -> Result<(), Failure> {
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|e| Failure::new(format!("the output could not be written: {e}")))
}

/// A file that may grow no more is an error that is told. Programs that are started do not inherit this, as they would if the signal
/// was ignored.
extern "C" fn goes_on(_: libc::c_int) {}

fn main() -> ExitCode {
    // SAFETY: the function does nothing.
    unsafe { libc::signal(libc::SIGXFSZ, goes_on as *const () as libc::sighandler_t) };
    let arguments = help::arguments();
    if let Some(elements) = arguments.elements {
        refrain_encode::allow_elements(usize::try_from(elements).unwrap_or(usize::MAX));
    }
    let placing = Arc::default();
    let watch =
        (!arguments.command.starts_others()).then(|| Watch::new(arguments.command.writes(), &placing));
    let done = command(arguments.command, placing);
    watch.inspect(Watch::settle);
    done.unwrap_or_else(|failure| {
        failure.say();
        ExitCode::from(COULD_NOT)
    })
}

/// `placing`: held while what is finished gets its name.
fn command(command: Command, placing: Arc<Mutex<()>>) -> Result<ExitCode, Failure> {
    match command {
        Command::Run { flags, memory, report, words } => run::run(&flags, &memory, report, &words),
        Command::Env { flags } => run::env(&flags),
        Command::Doctor { flags, json, words } => doctor::doctor(&flags, &words, json),
        Command::Memory { command: MemoryCommand::Run { flags, words } } => memory::run(&flags, &words),
        Command::Memory { command: MemoryCommand::On { file } } => memory::switch(&file, true),
        Command::Memory { command: MemoryCommand::Off { file } } => memory::switch(&file, false),
        Command::Memory { command: MemoryCommand::Cc { words } } => memory::cc(&words),
        Command::Recover { directories, out, force } => recover::command(&directories, out, force),
        Command::Where { file, json, modules } => flight::command(file, json, &modules.folders),
        Command::Info { file, json } if references::is_one(&file) => references::info(&file, json),
        Command::Info { file, json } => reading::info(&file, json),
        Command::Dump {
            file,
            ranks,
            threads,
            calls,
            only,
            format,
            json,
            sites,
            stacks,
            merged,
            between,
            limit,
            references: asked,
            modules,
        } => {
            let format = if json { Format::Json } else { format };
            if references::are_asked(&file, asked)? {
                let options =
                    [("--only", only.is_some()), ("--merged", merged), ("--between", between.is_some())];
                let option = options.iter().find(|(_, given)| *given).map(|(name, _)| *name);
                let which = refrain_views::references::Selection {
                    ranks,
                    threads,
                    references: calls.unwrap_or(0..u64::MAX),
                };
                let names = (sites || stacks).then_some(&modules.folders[..]);
                references::refuse(&file, option)?;
                return references::dump(&file, &which, format == Format::Json, names, limit);
            }
            let from = (sites || stacks).then_some(reading::From { stacks, folders: &modules.folders });
            let calls = calls.unwrap_or(0..u64::MAX);
            let which = Selection { ranks, threads, calls, only: None, between };
            reading::dump(&file, which, only.as_deref(), format, from, merged, limit)
        }
        Command::Loops {
            file,
            ranks,
            threads,
            depth,
            all,
            folded,
            json,
            events,
            text,
            references: asked,
            modules,
        } => {
            if references::are_asked(&file, asked)? {
                let options = [
                    ("--ranks", ranks.is_some()),
                    ("--threads", threads.is_some()),
                    ("--depth", depth.is_some()),
                    ("--folded", folded),
                    ("--events", events),
                    ("--text", text),
                ];
                let option = options.iter().find(|(_, given)| *given).map(|(name, _)| *name);
                references::refuse(&file, option)?;
                return references::loops(&file, json, all, &modules.folders);
            }
            let options = refrain_views::loops::Options { ranks, threads, depth, all, folded };
            let form = match (json, events, text) {
                (true, ..) => loops::Form::Json,
                (_, true, _) => loops::Form::Events,
                (.., true) => loops::Form::Whole,
                _ => loops::Form::Tree,
            };
            loops::loops(&file, &options, form, &modules.folders)
        }
        Command::Import { file, out, force, digest } => loops::import(&file, &out, force, digest),
        Command::Stats { file, per, waits, plot, json, references: asked, modules, addresses: flags } => {
            if references::are_asked(&file, asked)? {
                let option = if waits { Some("--waits") } else { per.map(|_| "--per") };
                references::refuse(&file, option)?;
                return references::stats(&file, json, plot, &modules.folders);
            }
            let of_calls = || match (waits, plot) {
                (true, _) => reading::waits(&file, json, &modules.folders),
                (_, true) => reading::plot(&file),
                _ => reading::stats(&file, per, json, &modules.folders),
            };
            let options = [("--waits", waits), ("--per", per.is_some()), ("--plot", plot)];
            let option = options.iter().find(|(_, given)| *given).map(|(name, _)| *name);
            addresses::stats(&file, &flags, option, json).unwrap_or_else(of_calls)
        }
        Command::Diff { a, b, ignore, time, all, json, modules } => {
            let ignore = ignore.unwrap_or_default();
            diff::diff(&a, &b, &diff::How { ignore, time, all, json, folders: &modules.folders })
        }
        Command::Extrapolate { files, ranks, out, guess, force, json } => {
            extrapolate::command(&files, &extrapolate::How { ranks, out, guess, force, json })
        }
        Command::Replay { flags } => replay::replay(&flags),
        Command::Proxy { file, out, force, ranks, modules } => {
            proxy::proxy(&file, &proxy::How { out, force, any: ranks.is_some(), folders: &modules.folders })
        }
        Command::Export { file, to, out, force, ranks, between, only, modules } => {
            let only = only.as_deref();
            let folders = &modules.folders;
            export::export(&file, export::How { to, out, force, ranks, between, only, folders, placing })
        }
        Command::Report { flags } => report::report(&flags),
        Command::View { flags } => report::view(&flags),
        Command::Convert { flags } => addresses::convert(&flags),
        Command::Simulate { flags } => addresses::simulate(&flags),
        Command::Completions { shell } => print(&help::completions(shell)).map(|()| ExitCode::SUCCESS),
        Command::Man { out: None, words } => print(&manual::page(&words)?).map(|()| ExitCode::SUCCESS),
        Command::Man { out: Some(folder), .. } => manual::pages(&folder).map(|()| ExitCode::SUCCESS),
        Command::Verify { file, quiet } if references::is_one(&file) => references::verify(&file, quiet),
        Command::Verify { file, quiet } => reading::verify(&file, quiet),
    }
}
