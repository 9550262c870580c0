//! A place to run commands in, and what they said.

#![allow(dead_code)]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own for each test, with a stand-in for the capture library.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("refrain-{}-{}-{number}-{name}", env!("CARGO_CRATE_NAME"), std::process::id());
        let place = Scratch(std::env::temp_dir().join(name));
        std::fs::create_dir(&place.0).unwrap_or_else(|e| panic!("{}: {e}", place.0.display()));
        // The dynamic linker says that it is no library and goes on.
        place.file("library.so", "");
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name, format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// What is here, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub fn command(&self, words: &(impl Words + ?Sized)) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_refrain"));
        // Who runs the tests may ignore signals, as shells do for what they start in the background.
        let heed = || {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
                // SAFETY: sets a default action.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: what it calls is async-signal-safe.
        unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, heed) };
        command.args(words.words()).current_dir(&self.0).stdin(Stdio::null());
        // Tests may themselves run under a launcher, or under Refrain.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["REFRAIN_", "PMI", "OMPI_", "SLURM_", "LD_PRELOAD"].iter().any(|mark| text.starts_with(mark))
            {
                command.env_remove(&name);
            }
        }
        command.env("REFRAIN_LIBRARY", self.path("library.so"));
        command
    }

    pub fn refrain(&self, words: &(impl Words + ?Sized)) -> Done {
        Done::of(self.command(words).output().unwrap())
    }

    /// With something on its standard input.
    pub fn refrain_with(&self, words: &(impl Words + ?Sized), input: impl AsRef<[u8]>) -> Done {
        let mut command = self.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_ref().to_vec();
        // A command that refuses its arguments reads nothing.
        let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        Done::of(output)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A command line: words with spaces between them, or one by one.
pub trait Words {
    fn words(&self) -> Vec<String>;
}

impl Words for str {
    fn words(&self) -> Vec<String> {
        self.split_whitespace().map(str::to_owned).collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<String> {
        self.as_str().words()
    }
}

impl Words for [&str] {
    fn words(&self) -> Vec<String> {
        self.iter().map(|word| (*word).to_owned()).collect()
    }
}

impl<const N: usize> Words for [&str; N] {
    fn words(&self) -> Vec<String> {
        self.as_slice().words()
    }
}

impl Words for Vec<&str> {
    fn words(&self) -> Vec<String> {
        self.as_slice().words()
    }
}

#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    /// The same, where it need not be text.
    pub bytes: Vec<u8>,
    pub err: String,
}

impl Done {
    pub fn of(output: Output) -> Done {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Done {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
            bytes: output.stdout,
        }
    }

    #[track_caller]
    pub fn check(&self, code: i32, err: &str) -> &Done {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.contains(err), "{err:?} is not in {self:?}");
        self
    }
}
