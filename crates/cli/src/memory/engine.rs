//! What records a program: an emulator around it, or what it was compiled with.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::ValueEnum;

use refrain_references::emulator::doubled;

use super::command::{Emulated, Emulator, emulated, programs};
use crate::doctor;
use crate::failure::Failure;
use crate::run::{find_program, library};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// The program itself where it was made by `refrain memory cc`, otherwise QEMU
    Auto,
    Qemu,
    /// Programs that were made by `refrain memory cc`, and those only
    Compiled,
}

#[derive(Debug)]
pub enum Engine {
    Emulator {
        emulator: Emulator,
        /// What it calls itself.
        version: String,
    },
    Compiled {
        library: PathBuf,
        told: Vec<OsString>,
        /// Addresses stay as random as the system makes them.
        is_random: bool,
    },
}

/// Where the library that programs are linked with finds what to do.
const VARIABLE: &str = "REFRAIN_MEMORY";

/// Whether all programs of a command were made by `refrain memory cc`.
pub fn is_compiled(words: &[OsString], path: &OsStr) -> bool {
    let Some(found) = programs(words, path) else { return false };
    let mut files = found.at.iter().map(|&at| find_program(&words[at], path));
    files.all(|file| file.is_some_and(|file| doctor::needs(&file, library::MEMORY.file)))
}

impl Engine {
    /// What it is told.
    pub fn tell(&mut self, words: Vec<OsString>) {
        match self {
            Engine::Emulator { emulator, .. } => emulator.plugin = words,
            Engine::Compiled { told, .. } => *told = words,
        }
    }

    /// The command with whatever has to stand before programs.
    pub fn understood(&self, words: &[OsString], path: &OsStr) -> Result<Emulated, Failure> {
        match self {
            Engine::Emulator { emulator, .. } => emulated(words, emulator, path),
            Engine::Compiled { .. } => {
                let Some(found) = programs(words, path) else { return Err(super::command::no_program()) };
                Ok(Emulated { words: words.to_vec(), is_launched: found.is_launched, name: found.name })
            }
        }
    }

    /// What a trace calls it.
    pub fn name(&self) -> String {
        match self {
            Engine::Emulator { version, .. } => version.clone(),
            Engine::Compiled { .. } => "compiled with refrain memory cc".into(),
        }
    }

    /// Gives a command what it needs beside its words.
    pub fn prepare(&self, command: &mut Command, is_launched: bool) {
        let Engine::Compiled { library, told, is_random } = self else { return };
        let launched = is_launched.then(|| OsString::from("launched=on"));
        let told: Vec<OsString> = told.iter().chain(&launched).map(|word| doubled(word)).collect();
        command.env(VARIABLE, told.join(OsStr::new(",")));
        // The library of this command, not the one that was there when the program was made.
        let folders = library.parent().map(PathBuf::from).into_iter();
        let before = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let before = std::env::split_paths(&before).filter(|folder| !folder.as_os_str().is_empty());
        if let Ok(folders) = std::env::join_paths(folders.chain(before)) {
            command.env("LD_LIBRARY_PATH", folders);
        }
        if !is_random {
            // SAFETY: one system call, which may fail: then addresses are as random as ever.
            unsafe {
                command.pre_exec(|| {
                    let now = libc::personality(0xffff_ffff);
                    if now >= 0 {
                        libc::personality((now | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
                    }
                    Ok(())
                });
            }
        }
    }
}
