//! `refrain env`: what `refrain run` would put into the environment, as lines for a shell.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use super::{Flags, Position, Settings, capture_library, variables, writable_place};
use crate::failure::Failure;

/// Of a trace whose program is not known yet.
const NAME: &str = "trace.rfn";

pub fn env(flags: &Flags) -> Result<ExitCode, Failure> {
    let settings = Settings::resolve(flags, |name| std::env::var_os(name))?;
    let library = capture_library()?;
    let shown = settings.out.clone().unwrap_or_else(|| PathBuf::from(NAME));
    let out = writable_place(&shown, settings.force, Position::Outside)?;
    let mut variables = variables(&settings, &library, &out, |name| std::env::var_os(name));
    // Nobody else will be there to say it.
    variables.push(("REFRAIN_SUMMARY", if settings.quiet { "off" } else { "on" }.into()));
    let mut text = Vec::new();
    for (name, value) in &variables {
        text.extend_from_slice(b"export ");
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        quote(value, &mut text);
        text.push(b'\n');
    }
    let written = std::io::stdout().write_all(&text);
    written.map_err(|e| Failure::new(format!("the variables could not be written: {e}")))?;
    Ok(ExitCode::SUCCESS)
}

/// As one word for any shell of the Bourne family.
fn quote(value: &OsStr, out: &mut Vec<u8>) {
    out.push(b'\'');
    for &byte in value.as_bytes() {
        match byte {
            b'\'' => out.extend_from_slice(br"'\''"),
            byte => out.push(byte),
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for value in ["", "plain", "two words", "it's", "$HOME `x` \"y\" \\", "a\nb", "\u{1f}"] {
            let mut quoted = Vec::new();
            quote(OsStr::new(value), &mut quoted);
            let mut line = b"printf %s ".to_vec();
            line.extend(quoted);
            let read =
                std::process::Command::new("sh").arg("-c").arg(OsStr::from_bytes(&line)).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&read.stdout), value);
        }
    }
}
