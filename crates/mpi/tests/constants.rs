//! Holds `abi.txt` against the `mpi.h` of the MPI libraries installed here, by a C program that knows them all.
//!
//! `REFRAIN_TEST_MPICH5` names the folder an MPICH 5 is installed in (with `bin/mpicc`, `bin/mpicc_abi`), for the
//! MPI 5 ABI; without it that case is skipped.

use crate::common;

use refrain_mpi::{Class, Family, Kind, Source, constants, handle_size};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What the C program's `main` begins with. A handle is copied into a zeroed 8 bytes, as the tracer sees it.
const PROLOGUE: &str = r#"
#define _GNU_SOURCE
#include <mpi.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *address(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) printf("%s is not exported\n", name);
    return found;
}

static void symbol(const char *name, unsigned long long value, const char *symbol, int variable) {
    void *found = address(symbol);
    if (found && variable) found = *(void **)found;
    printf("%s %s\n", name, (unsigned long long)found == value ? "same" : "differs");
}

static void number(const char *name, long long value) { printf("%s %lld\n", name, value); }

int main(void) {
    unsigned long long h;
"#;

fn handle_type(class: Class) -> &'static str {
    match class {
        Class::Comm => "MPI_Comm",
        Class::Group => "MPI_Group",
        Class::Datatype => "MPI_Datatype",
        Class::Op => "MPI_Op",
        Class::Request => "MPI_Request",
        Class::Win => "MPI_Win",
        Class::File => "MPI_File",
        Class::Info => "MPI_Info",
        Class::Errhandler => "MPI_Errhandler",
        Class::Keyval => "int",
        Class::Message => "MPI_Message",
        Class::Session => "MPI_Session",
        Class::ToolEnum => "MPI_T_enum",
        Class::ToolCvar => "MPI_T_cvar_handle",
        Class::ToolPvar => "MPI_T_pvar_handle",
        Class::ToolPvarSession => "MPI_T_pvar_session",
        Class::ToolEventRegistration => "MPI_T_event_registration",
        Class::ToolEventInstance => "MPI_T_event_instance",
    }
}

/// What the compiler's preprocessor makes of `#include <mpi.h>`; None where there is no such compiler.
fn preprocess(compiler: &str, header: &Path, flags: &[&str]) -> Option<String> {
    let output = Command::new(compiler).args(flags).arg(header).output().ok()?;
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("C headers are ASCII"))
}

fn words(text: &str) -> HashSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("refrain-mpi-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the temporary folder can be written");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn check(compiler: &str, family: Family, at_least: usize) {
    let folder = Folder::new(&compiler.replace('/', "-"));
    let header = folder.0.join("header.c");
    fs::write(&header, "#include <mpi.h>\n").expect("written");
    // Constants are macros or members of enumerations, so names come from both; a removed one is a macro that says so.
    let Some(macros) = preprocess(compiler, &header, &["-E", "-dM"]) else {
        common::skipped(&format!("{compiler} is not installed"));
        return;
    };
    let text = preprocess(compiler, &header, &["-E"]).expect("it ran a moment ago");
    let removed: HashSet<&str> = macros
        .lines()
        .filter(|l| l.contains("REMOVED"))
        .filter_map(|l| l.split_whitespace().nth(1))
        .collect();
    let known: HashSet<&str> = words(&text)
        .into_iter()
        .chain(macros.lines().filter_map(|l| l.strip_prefix("#define ")?.split_whitespace().next()))
        .filter(|name| !removed.contains(name))
        .collect();

    let mut program = String::from(PROLOGUE);
    let mut expected: Vec<(String, String)> = Vec::new();
    for class in Class::ALL.into_iter().filter(|&c| c == Class::Keyval || known.contains(handle_type(c))) {
        let name = handle_type(class);
        writeln!(program, "number(\"sizeof {name}\", sizeof({name}));").expect("written");
        expected.push((format!("sizeof {name}"), handle_size(family, class).to_string()));
    }
    let mut held = 0;
    for constant in constants().iter().filter(|c| !c.varies && known.contains(c.name)) {
        let name = constant.name;
        let value = match constant.kind {
            Kind::Handle(class) => {
                let of = handle_type(class);
                writeln!(program, "{{ {of} v = {name}; h = 0; memcpy(&h, &v, sizeof v); }}")
                    .expect("written");
                "h".to_owned()
            }
            Kind::Pointer | Kind::Function => format!("(unsigned long long){name}"),
            Kind::Int => name.to_owned(),
        };
        let (line, answer) = match constant.source(family) {
            Source::Absent => panic!("{compiler} has {name}, abi.txt says that {} has not", family.name()),
            Source::Symbol(symbol) => {
                (format!("symbol({name:?}, {value}, {symbol:?}, 0);"), "same".to_owned())
            }
            Source::Variable(symbol) => {
                (format!("symbol({name:?}, {value}, {symbol:?}, 1);"), "same".to_owned())
            }
            Source::Number(number) => {
                let number = match constant.kind {
                    Kind::Handle(class) if handle_size(family, class) == 4 => number & 0xffff_ffff,
                    _ => number,
                };
                (format!("number({name:?}, {value});"), number.to_string())
            }
        };
        writeln!(program, "{line}").expect("written");
        expected.push((name.to_owned(), answer));
        held += 1;
    }
    program.push_str("return 0;\n}\n");

    let (source, binary) = (folder.0.join("constants.c"), folder.0.join("constants"));
    fs::write(&source, program).expect("written");
    let built = Command::new(compiler)
        .args(["-w", "-o"])
        .arg(&binary)
        .arg(&source)
        .arg("-ldl")
        .output()
        .expect("it ran a moment ago");
    assert!(built.status.success(), "{compiler}: {}", String::from_utf8_lossy(&built.stderr));
    let run = Command::new(&binary).output().expect("it was built just now");
    assert!(run.status.success());
    let output = String::from_utf8(run.stdout).expect("ASCII");
    let got: Vec<(String, String)> = output
        .lines()
        .map(|l| {
            l.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.to_owned())).expect("name value")
        })
        .collect();
    let wrong: Vec<_> = got.iter().filter(|line| !expected.contains(line)).collect();
    assert!(wrong.is_empty(), "{compiler} has, other than abi.txt says: {wrong:?}");
    assert_eq!(got.len(), expected.len());
    assert!(held >= at_least, "only {held} constants were held against {compiler}");
    println!("{compiler}: {held} constants hold");
}

#[test]
fn mpich() {
    check("mpicc.mpich", Family::Mpich, 320);
}

#[test]
fn openmpi() {
    check("mpicc.openmpi", Family::OpenMpi, 300);
}

#[test]
fn mpich5() {
    let Ok(prefix) = env::var("REFRAIN_TEST_MPICH5") else {
        common::not_asked_for("REFRAIN_TEST_MPICH5 is not set");
        return;
    };
    check(&format!("{prefix}/bin/mpicc"), Family::Mpich, 340);
    check(&format!("{prefix}/bin/mpicc_abi"), Family::Mpi5, 340);
}
