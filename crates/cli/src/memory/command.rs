//! The command that runs a program in the emulator: the words of the user with the emulator's before each program.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

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
}

/// `path` is where programs are looked for.
pub fn emulated(words: &[OsString], emulator: &Emulator, path: &OsStr) -> Result<Emulated, Failure> {
    let text: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let is_program = |word: &str| find_program(OsStr::new(word), path).is_some();
    let analysis = analyse(&text, is_program);
    let Some(first) = analysis.program else {
        return Err(Failure::new("the command names no program")
            .help("write the program and its arguments after `--`: refrain memory run -- ./app"));
    };
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
    let mut all: Vec<OsString> = Vec::with_capacity(words.len() + 8);
    for (at, word) in words.iter().enumerate() {
        match programs.contains(&at) {
            true => all.extend(emulator.words(word, is_launched, path)?),
            false => all.push(word.clone()),
        }
    }
    Ok(Emulated { words: all, is_launched, name: analysis.name })
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
            let Kind::Script(line) = read_kind(&program)? else { break };
            let (by, argument) = interpreter(&line, &program, path)?;
            rest.splice(0..0, argument.into_iter().chain([program.into()]));
            name = by.clone().into();
            program = by;
        }
        let mut plugin = doubled(self.library.as_os_str());
        let more = [joined("program=", program.as_os_str())];
        let launched = is_launched.then(|| OsString::from("launched=on"));
        for told in self.plugin.iter().chain(&more).chain(&launched) {
            plugin.push(",");
            plugin.push(doubled(told));
        }
        let words = [self.qemu.clone().into(), "-0".into(), name, "-plugin".into(), plugin, program.into()];
        Ok(words.into_iter().chain(rest).collect())
    }
}

pub fn joined(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(name);
    word.push(value);
    word
}

/// QEMU reads two commas as one, and one as the end of a word.
fn doubled(word: &OsStr) -> OsString {
    let bytes = word.as_bytes();
    OsString::from_vec(
        bytes.iter().flat_map(|&b| std::iter::repeat_n(b, if b == b',' { 2 } else { 1 })).collect(),
    )
}

enum Kind {
    Program,
    /// Its first line, without the mark.
    Script(String),
}

fn read_kind(file: &Path) -> Result<Kind, Failure> {
    /// `e_machine` of x86-64.
    const X86_64: [u8; 2] = [62, 0];
    let mut start = Vec::new();
    let read = File::open(file).and_then(|open| open.take(256).read_to_end(&mut start));
    read.map_err(|error| crate::failure::not_read(file, &error))?;
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        return Ok(Kind::Script(String::from_utf8_lossy(line).trim().to_owned()));
    }
    let is_program = start.starts_with(b"\x7fELF\x02") && start.get(18..20) == Some(&X86_64);
    is_program.then_some(Kind::Program).ok_or_else(|| {
        Failure::new(format!("{} is no program for x86-64", file.display()))
            .help("memory references are recorded of programs for 64-bit x86 only")
    })
}

/// The program that runs a script, and its argument.
fn interpreter(line: &str, script: &Path, path: &OsStr) -> Result<(PathBuf, Option<OsString>), Failure> {
    let (mut word, mut rest) = line.split_once(' ').unwrap_or((line, ""));
    // It would become the interpreter, outside the emulator.
    if word.ends_with("/env") && !rest.trim_start().starts_with('-') && !rest.contains('=') {
        (word, rest) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
    }
    let found = find_program(OsStr::new(word), path).and_then(|found| found.canonicalize().ok());
    let program = found
        .ok_or_else(|| Failure::new(format!("{} is run by {word}, which is no program", script.display())))?;
    let argument = Some(rest.trim()).filter(|rest| !rest.is_empty()).map(OsString::from);
    Ok((program, argument))
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
        let emulator = Emulator { qemu: "Q".into(), library: "L,1".into(), plugin: vec!["a=b,c".into()] };
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
        check(&folder, "a 1 2", "Q -0 a -plugin L,,1,a=b,,c,program=@a @a 1 2");
        check(&folder, "env X=1 b", "env X=1 Q -0 b -plugin L,,1,a=b,,c,program=@b @b");
        let one = "Q -0 a -plugin L,,1,a=b,,c,program=@a,launched=on @a";
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
        check(&folder, "s y", &format!("Q -0 {shown} -plugin L,,1,a=b,,c,program=@py @py -x @s y"));
    }

    #[test]
    fn what_cannot_be_run() {
        let folder = Scratch::new("emulated-not");
        program(&folder.path("text"), b"hello");
        program(&folder.path("script"), b"#!/nothing\n");
        let path = folder.path("").into_os_string();
        let emulator = Emulator { qemu: "Q".into(), library: "L".into(), plugin: vec![] };
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
