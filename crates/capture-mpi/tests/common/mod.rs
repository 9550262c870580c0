//! Compiling small programs and running them, with and without the preloaded library.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// An installed MPI library: its compilers' and launcher's suffix on Debian.
#[derive(Debug, Clone, Copy)]
pub struct Mpi(pub &'static str);

/// Those of the two that are installed.
pub fn installed() -> Vec<Mpi> {
    let there = |mpi: &Mpi| Command::new(format!("mpicc.{}", mpi.0)).arg("--version").output().is_ok();
    let found: Vec<Mpi> = [Mpi("mpich"), Mpi("openmpi")].into_iter().filter(there).collect();
    if found.is_empty() {
        eprintln!("no MPI library is installed here: nothing was tested");
    }
    found
}

impl Mpi {
    pub fn compile(self, program: &str) -> PathBuf {
        let compiler = match program.rsplit_once('.') {
            Some((_, "f90")) => "mpif90",
            Some((_, "cpp")) => "mpicxx",
            _ => "mpicc",
        };
        compile(&format!("{compiler}.{}", self.0), program, &[], self.0)
    }

    /// What the program does with `words` on `ranks` ranks.
    pub fn run(self, ranks: usize, program: &Path, words: &[&str], variables: &[(&str, &str)]) -> Output {
        let sessions = Sessions::new();
        let mut command = Command::new("timeout");
        // A bound against hanging.
        command.args(["-k", "3", "600", &format!("mpiexec.{}", self.0), "-n", &ranks.to_string()]);
        if self.0 == "openmpi" {
            command.args(["--allow-run-as-root", "--oversubscribe"]);
            command.env("OMPI_MCA_orte_tmpdir_base", &sessions.0);
        }
        command.arg(program).args(words).envs(variables.iter().copied());
        command.output().expect("the launcher starts")
    }
}

/// A place for the files of one launcher of Open MPI. In the usual one a launcher that ends removes the folder that another is
/// about to use. Its path is short: sockets are made there.
struct Sessions(PathBuf);

impl Sessions {
    fn new() -> Sessions {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("rfc-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Sessions(folder)
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        // What cannot be removed is only in the way.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles a file of `programs/`. The result's name holds `variant`, so that tests do not get in each other's way.
pub fn compile(compiler: &str, program: &str, flags: &[&str], variant: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(program);
    let thread = std::thread::current().name().unwrap_or("main").replace("::", "_");
    let target = scratch().join(format!("{program}.{variant}.{thread}"));
    let mut command = Command::new(compiler);
    command.args(["-O1", "-o"]).arg(&target).arg(&source).args(flags);
    let output = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{compiler} {program}: {}", String::from_utf8_lossy(&output.stderr));
    target
}

pub fn scratch() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).expect("the target folder is writable");
    folder
}

/// The library under test, which cargo puts beside the tests.
pub fn library() -> String {
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.parent().expect("and a folder").join("librefrain_capture_mpi.so");
    assert!(library.exists(), "{} was not built", library.display());
    library.to_str().expect("a plain path").to_owned()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lines in an order that does not depend on which rank's came first.
pub fn sorted(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = text(bytes).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Our own lines on stderr.
pub fn said(output: &Output) -> Vec<String> {
    sorted(&output.stderr).into_iter().filter(|line| line.starts_with("refrain:")).collect()
}
