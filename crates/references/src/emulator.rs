//! How a program is started in the emulator with the plugin that records it: what the command that starts one and the plugin,
//! which starts those that a program becomes, agree on.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// As many bytes of a file say how it is run.
pub const START: usize = 256;

/// A file that is to be run, by its first [`START`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A program for 64-bit x86.
    Program,
    /// By whom it is run, with which argument.
    Script(OsString, Option<OsString>),
    /// A program for another machine.
    Foreign,
    Other,
}

impl Kind {
    pub fn of(start: &[u8]) -> Kind {
        /// `e_machine` of x86-64.
        const X86_64: [u8; 2] = [62, 0];
        let Some(line) = start.strip_prefix(b"#!") else {
            return match (start.starts_with(b"\x7fELF"), start.get(4), start.get(18..20)) {
                (true, Some(2), Some(machine)) if machine == X86_64 => Kind::Program,
                (true, ..) => Kind::Foreign,
                _ => Kind::Other,
            };
        };
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
        let word = |bytes: &[u8]| OsStr::from_bytes(bytes.trim_ascii()).to_owned();
        let blank = line.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(line.len());
        let (by, rest) = line.split_at(blank);
        Kind::Script(word(by), Some(word(rest)).filter(|rest| !rest.is_empty()))
    }
}

/// The emulator, its plugin, and what that is told: `name=value` each.
pub fn plugin<'a>(library: &OsStr, told: impl IntoIterator<Item = &'a OsStr>) -> OsString {
    let mut word = doubled(library);
    for told in told {
        word.push(",");
        word.push(doubled(told));
    }
    word
}

/// The words that start a program, but for its arguments; `name` is what it is called.
pub fn words(qemu: &OsStr, plugin: OsString, name: &OsStr, program: &OsStr) -> [OsString; 6] {
    [qemu.to_owned(), "-0".into(), name.to_owned(), "-plugin".into(), plugin, program.to_owned()]
}

/// QEMU reads two commas as one, and one as the end of a word. So do programs that were compiled to be recorded.
pub fn doubled(word: &OsStr) -> OsString {
    let twice = |&byte: &u8| std::iter::repeat_n(byte, if byte == b',' { 2 } else { 1 });
    OsString::from_vec(word.as_bytes().iter().flat_map(twice).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is() {
        let elf = |class: u8, machine: u8| {
            let mut start = vec![0x7f, b'E', b'L', b'F', class];
            start.resize(18, 0);
            start.extend([machine, 0]);
            Kind::of(&start)
        };
        assert_eq!((elf(2, 62), elf(1, 3), elf(2, 183)), (Kind::Program, Kind::Foreign, Kind::Foreign));
        let script = |by: &str, argument: Option<&str>| Kind::Script(by.into(), argument.map(Into::into));
        assert_eq!(Kind::of(b"#! /bin/sh \nexit"), script("/bin/sh", None));
        assert_eq!(Kind::of(b"#!/usr/bin/awk\t-x  f \r\n"), script("/usr/bin/awk", Some("-x  f")));
        assert_eq!(Kind::of(b"#!"), script("", None));
        for other in [&b""[..], b"x", b"\x7fEL"] {
            assert_eq!(Kind::of(other), Kind::Other);
        }
    }

    #[test]
    fn commas_are_doubled() {
        let word = plugin("/l,1".as_ref(), ["a=b,c".as_ref(), "d=e".as_ref()]);
        assert_eq!(word, "/l,,1,a=b,,c,d=e");
    }
}
