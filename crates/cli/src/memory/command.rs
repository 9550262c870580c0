//! The command that runs a program in the emulator: the words of the user with the emulator's before each program.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use refrain_references::emulator::{self, Kind};

use crate::failure::Failure;
use crate::run::{analyse, find_program};

/// A command, understood.
#[derive(Debug, PartialEq, Eq)]
pub struct Emulated {
    pub words: Vec<OsString>,
    /// A launcher starts the programs.
    pub is_launched: bool,
    /// What the trace is called without another name.
    pub name: String,
}

/// What stands before a program: the emulator, and its plugin with what that is told.
#[derive(Debug)]
pub struct Emulator {
    pub qemu: PathBuf,
    pub library: PathBuf,
    /// `name=value` each.
    pub plugin: Vec<OsString>,
    /// What the program has in its environment and the emulator has not, `NAME=value` each, without commas.
    pub environment: Vec<OsString>,
}

/// The programs of a command.
#[derive(Debug)]
pub struct Programs {
    /// Where they stand; one at least.
    pub at: Vec<usize>,
    /// A launcher starts them.
    pub is_launched: bool,
    /// What the trace is called without another name.
    pub name: String,
}

pub fn no_program() -> Failure {
    Failure::new("the command names no program")
        .help("write the program and its arguments after `--`: refrain memory run -- ./app")
}

/// `path` is where programs are looked for.
pub fn programs(words: &[OsString], path: &OsStr) -> Option<Programs> {
    let text: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let is_program = |word: &str| find_program(OsStr::new(word), path).is_some();
    let analysis = analyse(&text, is_program);
    let first = analysis.program?;
    let is_launched = analysis.launcher.is_some();
    let mut programs = vec![first];
    if let Some(launcher) = analysis.launcher {
        // `mpiexec -n 1 ./a : -n 2 ./b` starts several.
        for colon in (first..words.len()).filter(|&at| text[at] == ":") {
            let rest: Vec<String> = std::iter::once(&text[launcher])
                .chain(text[colon + 1..].iter().take_while(|word| *word != ":"))
                .cloned()
                .collect();
            programs.extend(analyse(&rest, is_program).program.map(|at| colon + at));
        }
    }
    Some(Programs { at: programs, is_launched, name: analysis.name })
}

/// `path` is where programs are looked for.
pub fn emulated(words: &[OsString], emulator: &Emulator, path: &OsStr) -> Result<Emulated, Failure> {
    let Programs { at: programs, is_launched, name } = programs(words, path).ok_or_else(no_program)?;
    let mut all: Vec<OsString> = Vec::with_capacity(words.len() + 8);
    for (at, word) in words.iter().enumerate() {
        match programs.contains(&at) {
            true => all.extend(emulator.words(word, is_launched, path)?),
            false => all.push(word.clone()),
        }
    }
    Ok(Emulated { words: all, is_launched, name })
}

impl Emulator {
    /// What stands for the program's word.
    fn words(&self, word: &OsStr, is_launched: bool, path: &OsStr) -> Result<Vec<OsString>, Failure> {
        let found = find_program(word, path).and_then(|found| found.canonicalize().ok());
        let Some(file) = found else {
            return Err(Failure::new(format!("{} is no program", Path::new(word).display()))
                .help("check the name; the command follows the options after `--`"));
        };
        let (mut program, mut name, mut rest) = (file, word.to_owned(), Vec::new());
        // What runs a script may be one itself.
        for _ in 0..5 {
            let Kind::Script(by, argument) = read_kind(&program)? else { break };
            let (by, argument) = interpreter(by, argument, &program, path)?;
            rest.splice(0..0, argument.into_iter().chain([program.into()]));
            name = by.clone().into();
            program = by;
        }
        let more = [joined("program=", program.as_os_str())];
        let launched = is_launched.then(|| OsString::from("launched=on"));
        let told = self.plugin.iter().chain(&more).chain(&launched).map(OsString::as_os_str);
        let plugin = emulator::plugin(self.library.as_os_str(), told);
        let words = emulator::words(self.qemu.as_os_str(), plugin, &name, program.as_os_str());
        let [start @ .., program] = words;
        let environment = self.environment.iter().flat_map(|variable| ["-E".into(), variable.clone()]);
        let words = start.into_iter().chain(environment).chain([program]);
        Ok(words.into_iter().chain(rest).collect())
    }
}

pub fn joined(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(name);
    word.push(value);
    word
}

fn read_kind(file: &Path) -> Result<Kind, Failure> {
    let mut start = Vec::new();
    let read = File::open(file).and_then(|open| open.take(emulator::START as u64).read_to_end(&mut start));
    read.map_err(|error| crate::failure::not_read(file, &error))?;
    match Kind::of(&start) {
        Kind::Foreign | Kind::Other => {
            Err(Failure::new(format!("{} is no program for x86-64", file.display()))
                .help("memory references are recorded of programs for 64-bit x86 only"))
        }
        kind => Ok(kind),
    }
}

/// The program that runs a script, and its argument.
fn interpreter(
    by: OsString,
    argument: Option<OsString>,
    script: &Path,
    path: &OsStr,
) -> Result<(PathBuf, Option<OsString>), Failure> {
    let (mut word, mut rest) = (by, argument);
    // It would only become the interpreter.
    if let (true, Some(words)) =
        (word.as_bytes().ends_with(b"/env"), rest.as_ref().and_then(|rest| rest.to_str()))
        && !words.starts_with('-')
        && !words.contains('=')
    {
        let (by, argument) = words.split_once(' ').unwrap_or((words, ""));
        (word, rest) = (by.into(), Some(argument.trim().into()).filter(|rest: &OsString| !rest.is_empty()));
    }
    let found = find_program(&word, path).and_then(|found| found.canonicalize().ok());
    let program = found.ok_or_else(|| {
        let word = Path::new(&word).display();
        Failure::new(format!("{} is run by {word}, which is no program", script.display()))
    })?;
    Ok((program, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::os::unix::fs::PermissionsExt;

    fn program(path: &Path, content: &[u8]) {
        std::fs::write(path, content).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[track_caller]
    fn check(folder: &Scratch, line: &str, expected: &str) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let plugin = vec!["a=b,c".into()];
        let environment = vec!["X=y".into()];
        let emulator = Emulator { qemu: "Q".into(), library: "L,1".into(), plugin, environment };
        let folder = folder.path("").canonicalize().unwrap();
        let made = emulated(&words, &emulator, folder.as_os_str()).unwrap();
        let made: Vec<String> = made.words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        assert_eq!(made.join(" ").replace(&format!("{}/", folder.display()), "@"), expected);
    }

    #[test]
    fn the_emulator_stands_before_each_program() {
        let folder = Scratch::new("emulated");
        let mut elf = b"\x7fELF\x02".to_vec();
        elf.resize(18, 0);
        elf.extend([62, 0, 0, 0]);
        for name in ["a", "b", "py"] {
            program(&folder.path(name), &elf);
        }
        program(&folder.path("s"), b"#! /usr/bin/env py -x\nbody");
        check(&folder, "a 1 2", "Q -0 a -plugin L,,1,a=b,,c,program=@a -E X=y @a 1 2");
        check(&folder, "env X=1 b", "env X=1 Q -0 b -plugin L,,1,a=b,,c,program=@b -E X=y @b");
        let one = "Q -0 a -plugin L,,1,a=b,,c,program=@a,launched=on -E X=y @a";
        let two = one.replace("@a", "@b").replace("-0 a", "-0 b");
        check(&folder, "mpiexec -n 2 a x", &format!("mpiexec -n 2 {one} x"));
        check(
            &folder,
            "mpiexec -n 2 a x : -n 3 b : a",
            &format!("mpiexec -n 2 {one} x : -n 3 {two} : {one}"),
        );
        let py = folder.path("py").canonicalize().unwrap();
        let py = py.display().to_string();
        let folder_name = folder.path("").canonicalize().unwrap();
        let shown = py.replace(&format!("{}/", folder_name.display()), "@");
        check(&folder, "s y", &format!("Q -0 {shown} -plugin L,,1,a=b,,c,program=@py -E X=y @py -x @s y"));
    }

    #[test]
    fn what_cannot_be_run() {
        let folder = Scratch::new("emulated-not");
        program(&folder.path("text"), b"hello");
        program(&folder.path("script"), b"#!/nothing\n");
        let path = folder.path("").into_os_string();
        let emulator =
            Emulator { qemu: "Q".into(), library: "L".into(), plugin: vec![], environment: vec![] };
        for (line, why) in [
            ("none", "none is no program"),
            ("text", "no program for x86-64"),
            ("script", "run by /nothing"),
            ("mpiexec -n 2", "names no program"),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let failure = emulated(&words, &emulator, &path).unwrap_err().to_string();
            assert!(failure.contains(why), "{line}: {failure}");
        }
    }
}
