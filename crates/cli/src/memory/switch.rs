//! `refrain memory on` and `off`: recording goes on and off while the program runs.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;

use refrain_references::parts::switch::{FIRST, NAME, NEXT, OWN, TIMES, WORDS};
use refrain_tracefile::part;
use refrain_tracefile::private::Private;
use refrain_views::human::plural;

use crate::failure::Failure;
use crate::say;

fn put(file: &File, word: usize, value: u32) -> io::Result<()> {
    file.write_all_at(&value.to_ne_bytes(), 4 * word as u64)
}

fn get(file: &File, word: usize) -> io::Result<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, 4 * word as u64)?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Makes the switch of a run; an older one goes.
pub fn make(parts: &Path, on: bool) -> io::Result<()> {
    let private = Private::make(parts)?;
    let name = OsStr::new(NAME);
    if private.names()?.iter().any(|there| there == name) {
        private.remove(name)?;
    }
    let file = private.create(name)?;
    file.set_len(4 * WORDS as u64)?;
    put(&file, FIRST, on.into())
}

/// How often recording was switched from outside.
pub fn times(private: &Private) -> u32 {
    private.read(OsStr::new(NAME)).and_then(|file| get(&file, TIMES)).unwrap_or(0)
}

fn turn(file: &File, on: bool) -> io::Result<u32> {
    put(file, FIRST, on.into())?;
    put(file, TIMES, get(file, TIMES)?.saturating_add(1))?;
    let processes = get(file, NEXT)?.min((WORDS - OWN) as u32);
    for process in 0..processes as usize {
        put(file, OWN + process, on.into())?;
    }
    Ok(processes)
}

/// Switches all processes of the run that writes this trace.
pub fn command(trace: &Path, on: bool) -> Result<ExitCode, Failure> {
    let parts = part::directory(trace);
    let opened = Private::open(&parts).and_then(|private| private.reopen(OsStr::new(NAME)));
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::new(format!("no run of `refrain memory run` is writing {}", trace.display()))
                .help("name the file that it will write, as --out does, while the program runs")
        }
        _ => Failure::new(format!("{} cannot be opened: {error}", parts.join(NAME).display())),
    })?;
    let processes = turn(&file, on).map_err(|error| {
        Failure::new(format!("{} cannot be changed: {error}", parts.join(NAME).display()))
    })?;
    let state = if on { "on" } else { "off" };
    say(&format!("recording is {state} for {}, and for new ones", plural(processes.into(), "process")));
    Ok(ExitCode::SUCCESS)
}
