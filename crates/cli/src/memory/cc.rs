//! `refrain memory cc`: a compiler, told to make code that tells of its loads and stores, and to link it with our library.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::failure::Failure;
use crate::memory::command::joined;
use crate::run::{self, library, wait};

pub const CC_HELP: &str = "\
Put it before the compiler, where the program is compiled and where it is linked:

  refrain memory cc gcc -O2 -g -fopenmp app.c -o app
  make CC='refrain memory cc gcc'                        also CXX, FC, MPICC
  OMPI_CC='refrain memory cc gcc' mpicc app.c -o app     or: refrain memory cc mpicc ...
  cmake -DCMAKE_C_COMPILER_LAUNCHER='refrain;memory;cc' -DCMAKE_C_LINKER_LAUNCHER='refrain;memory;cc'

gcc, g++, gfortran, clang and clang++ can do it, by the instructions of their thread sanitizer; that sanitizer itself is not
linked. `refrain memory run -- ./app` then records without an emulator. By itself the program runs as ever, somewhat slower.

Recorded are the loads and stores of code that was compiled so, and what it copies and fills with memcpy, memmove and memset
(in pieces of 64 bytes). Not recorded: other libraries, constants, and variables that the compiler knows to be private to a
function. Loops are not vectorised.";

/// Whose options a compiler understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Gcc,
    Clang,
}

/// Functions of the C library whose calls are taken to ours.
const WRAPPED: [&str; 6] = ["memcpy", "memmove", "memset", "__memcpy_chk", "__memmove_chk", "__memset_chk"];

/// Options that stand before a value of their own.
const WITH_VALUE: [&str; 27] = [
    "-o",
    "-I",
    "-L",
    "-D",
    "-U",
    "-x",
    "-T",
    "-u",
    "-z",
    "-A",
    "-B",
    "-J",
    "-F",
    "-e",
    "-include",
    "-imacros",
    "-isystem",
    "-idirafter",
    "-iquote",
    "-iprefix",
    "-MF",
    "-MT",
    "-MQ",
    "-Xlinker",
    "-Xclang",
    "-mllvm",
    "-target",
];

/// Options with which nothing is linked.
const ONLY: [&str; 12] = [
    "-c",
    "-r",
    "-S",
    "-E",
    "-M",
    "-MM",
    "-fsyntax-only",
    "--version",
    "--help",
    "-dumpversion",
    "-dumpmachine",
    "-dumpspecs",
];

fn links(words: &[OsString]) -> bool {
    let mut has_input = false;
    let mut words = words.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if ONLY.contains(&&*word) || word.starts_with("-print-") || word.starts_with("--print-") {
            return false;
        }
        if WITH_VALUE.contains(&&*word) {
            words.next();
        } else {
            has_input |= !word.starts_with('-') || word == "-" || word.starts_with("-l");
        }
    }
    has_input
}

/// By what a compiler defines.
fn family(compiler: &OsStr) -> Result<Family, Failure> {
    let told = Command::new(compiler).args(["-dM", "-E", "-x", "c", "/dev/null"]).output();
    let told = told.map_err(|error| run::not_started(compiler, &error))?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let defines = |name: &str| told.lines().any(|line| line.split(' ').nth(1) == Some(name));
    if defines("__clang__") {
        Ok(Family::Clang)
    } else if defines("__GNUC__") && !defines("__NVCOMPILER") && !defines("__INTEL_COMPILER") {
        Ok(Family::Gcc)
    } else {
        Err(Failure::new(format!("{} is neither gcc nor clang", Path::new(compiler).display()))
            .help("compile with one of these, or record without compiling: refrain memory run -- ./app"))
    }
}

/// The compiler's words, with ours. `specs` is a file that tells gcc what to compile with, and not its linker.
fn instructed(words: &[OsString], family: Family, specs: &Path, library: &Path) -> Vec<OsString> {
    // The compiler would link its own sanitizer.
    let theirs = words.iter().filter(|word| *word != "-fsanitize=thread");
    let mut all: Vec<OsString> = theirs.cloned().collect();
    let compiling: Vec<OsString> = match family {
        Family::Gcc => vec![joined("-specs=", specs.as_os_str())],
        Family::Clang => ["-Xclang", "-fsanitize=thread", "-mllvm", "-tsan-instrument-read-before-write=1"]
            .iter()
            .chain(&["-Wno-unused-command-line-argument"])
            .map(OsString::from)
            .collect(),
    };
    all.splice(1..1, compiling);
    if links(&words[1..]) {
        let folder = library.parent().unwrap_or(Path::new("/"));
        let wrapped: Vec<String> = WRAPPED.iter().map(|name| format!("--wrap={name}")).collect();
        // Also if a linker thinks that it could do without.
        // Whatever language was named for the files before.
        all.extend(["-x".into(), "none".into()]);
        all.extend(["-Wl,--push-state,--no-as-needed".into(), library.as_os_str().to_owned()]);
        all.extend(["-Wl,--pop-state".into(), joined("-Wl,-rpath,", folder.as_os_str())]);
        all.push(format!("-Wl,{}", wrapped.join(",")).into());
    }
    all
}

/// A file that is gone when this is.
struct Specs(PathBuf);

impl Specs {
    fn new() -> Result<Specs, Failure> {
        let path = std::env::temp_dir().join(format!("refrain-{}.specs", std::process::id()));
        let cannot = |error| Failure::new(format!("{} cannot be written: {error}", path.display()));
        let mut file = fs::File::create_new(&path).map_err(cannot)?;
        file.write_all(b"*cc1_options:\n+ -fsanitize=thread\n\n").map_err(cannot)?;
        Ok(Specs(path))
    }
}

impl Drop for Specs {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

pub fn cc(words: &[OsString]) -> Result<ExitCode, Failure> {
    let binary = std::env::current_exe()
        .map_err(|e| Failure::new(format!("the path of this program is not known: {e}")))?;
    let library = library::find(&binary, &library::MEMORY, None)?;
    if words.iter().any(|word| word == "-static" || word == "-static-pie") && links(&words[1..]) {
        return Err(Failure::new("a static program cannot be linked with what records its references")
            .help("leave out -static, or record without compiling: refrain memory run -- ./app"));
    }
    if library.as_os_str().as_bytes().contains(&b',') {
        return Err(Failure::new(format!("{} has a comma in its path", library.display()))
            .help("move it: a linker takes a comma for the end of a path"));
    }
    let family = family(&words[0])?;
    let specs = Specs::new()?;
    let all = instructed(words, family, &specs.0, &library);
    let status = Command::new(&all[0]).args(&all[1..]).status();
    let status = status.map_err(|error| run::not_started(&all[0], &error))?;
    Ok(ExitCode::from(wait::exit_code(status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_links() {
        for line in ["a.c", "-O2 a.o b.o -o app", "-lm -o x", "-o app -", "-shared -fPIC a.c -o liba.so"] {
            assert!(links(&words(line)), "{line}");
        }
        for line in
            ["-c a.c", "-O2 -S a.c", "--version", "-v", "-o app", "-I include", "-print-file-name=a a"]
        {
            assert!(!links(&words(line)), "{line}");
        }
    }

    #[test]
    fn what_is_added() {
        let check = |line: &str, family, expected: &str| {
            let made = instructed(&words(line), family, Path::new("S"), Path::new("/l/lib.so"));
            let made: Vec<String> = made.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            assert_eq!(made.join(" ").split(" -Wl,--wrap").next(), Some(expected));
        };
        check("gcc -c -fsanitize=thread a.c", Family::Gcc, "gcc -specs=S -c a.c");
        check(
            "gcc a.o -o a",
            Family::Gcc,
            "gcc -specs=S a.o -o a -x none -Wl,--push-state,--no-as-needed /l/lib.so -Wl,--pop-state \
             -Wl,-rpath,/l",
        );
        check(
            "clang -c a.c",
            Family::Clang,
            "clang -Xclang -fsanitize=thread -mllvm -tsan-instrument-read-before-write=1 \
             -Wno-unused-command-line-argument -c a.c",
        );
    }
}
