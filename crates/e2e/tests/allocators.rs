//! Programs with another `malloc` than the C library's, however they came by it, behave as they do untraced, and their
//! traces are whole. Ignored in a plain `cargo test`: needs the MPI libraries, the allocators and the built command.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use refrain_e2e::json::Json;
use refrain_e2e::{Library, build, run};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allocator {
    Jemalloc,
    Tcmalloc,
    Mimalloc,
    /// `allocator.c`, which ends the process when it is given memory of another one.
    Own,
}

use Allocator::{Jemalloc, Mimalloc, Own, Tcmalloc};

impl fmt::Display for Allocator {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Jemalloc => "jemalloc",
            Tcmalloc => "tcmalloc",
            Mimalloc => "mimalloc",
            Own => "an allocator of our own",
        })
    }
}

const ALLOCATORS: [Allocator; 4] = [Jemalloc, Tcmalloc, Mimalloc, Own];
const LIBRARIES: [Library; 2] = [Library::Mpich, Library::OpenMpi];
const RANKS: u32 = 2;
/// Of `allocators.cpp`, by each rank.
const CALLS: u32 = 27;

fn source(name: &str) -> PathBuf {
    build::sources().join("programs").join(name)
}

impl Allocator {
    /// Its shared library, as the linker or `dlopen` takes it.
    fn shared(self) -> PathBuf {
        let name = match self {
            Jemalloc => "libjemalloc.so.2",
            Tcmalloc => "libtcmalloc.so.4",
            Mimalloc => "libmimalloc.so.2",
            Own => return self.own("so", &["-shared"]),
        };
        let listing = Command::new("/sbin/ldconfig").arg("-p").output();
        let listing = listing.unwrap_or_else(|e| build::missing(&format!("ldconfig: {e}")));
        let text = String::from_utf8_lossy(&listing.stdout);
        let found = text.lines().filter(|line| line.trim_start().starts_with(name));
        let path = found.filter_map(|line| line.split("=> ").nth(1)).next();
        path.map_or_else(|| build::missing(&format!("{name} is not there")), PathBuf::from)
    }

    /// Its static library; none where nobody provides one.
    fn archive(self) -> Option<PathBuf> {
        let name = match self {
            Jemalloc => "libjemalloc.a",
            Tcmalloc => "libtcmalloc_minimal.a",
            // Debian has none.
            Mimalloc => "libmimalloc.a",
            Own => return Some(self.own("o", &["-c"])),
        };
        Some(self.shared().with_file_name(name)).filter(|path| path.exists())
    }

    fn own(self, ending: &str, how: &[&str]) -> PathBuf {
        let source = source("allocator.c");
        let target = build::target().join(format!("e2e/allocator.{ending}"));
        build::make(&target, &[&source], |part| {
            let mut command = Command::new("cc");
            command.args(["-O1", "-g", "-fPIC", "-fno-builtin", "-Wall", "-Wextra", "-Werror"]);
            command.args(how).arg("-o").arg(part).arg(&source);
            vec![command]
        });
        target
    }

    /// What makes the compiler put the functions into the program that pass everything on to it.
    fn behind(self) -> Option<&'static str> {
        match self {
            Jemalloc => Some("-DBEHIND_JEMALLOC"),
            Tcmalloc => Some("-DBEHIND_TCMALLOC"),
            Mimalloc => Some("-DBEHIND_MIMALLOC"),
            Own => None,
        }
    }
}

/// `allocators.cpp`, under a name of its own, linked with this.
fn program(library: Library, name: &str, link: &[PathBuf]) -> PathBuf {
    let source = source("allocators.cpp");
    let target = build::folder_for(library).join(name.replace(' ', "-"));
    let inputs: Vec<&Path> = [&source].into_iter().chain(link).map(PathBuf::as_path).collect();
    build::make(&target, &inputs, |part| {
        let mut command = Command::new(library.compiler(&source));
        command.args(["-O1", "-g", "-pthread", "-o"]).arg(part).arg(&source).args(link).arg("-ldl");
        vec![command]
    });
    target
}

fn plain(library: Library) -> PathBuf {
    program(library, "allocators", &[])
}

/// The functions of `allocator.c` in the program itself.
fn defining(library: Library, allocator: Allocator) -> PathBuf {
    let Some(define) = allocator.behind() else {
        return program(library, "allocators defining", &[allocator.own("o", &["-c"])]);
    };
    let source = source("allocator.c");
    let object = build::target().join(format!("e2e/{allocator}.o"));
    build::make(&object, &[&source], |part| {
        let mut command = Command::new("cc");
        command.args(["-O1", "-g", "-fPIC", "-fno-builtin", "-c", define, "-o"]).arg(part).arg(&source);
        vec![command]
    });
    program(library, &format!("allocators defining {allocator}"), &[object, allocator.shared()])
}

/// How Refrain's library gets into the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traced {
    /// `refrain run`, which finds its place among what is preloaded.
    ByRun,
    /// The user's own `LD_PRELOAD`, with ours at the end.
    Behind,
}

fn preloaded(preload: &[PathBuf]) -> Vec<String> {
    preload.iter().chain(&[build::yielding()]).map(|path| path.to_string_lossy().into_owned()).collect()
}

fn untraced(library: Library, preload: &[PathBuf], words: &[String]) -> run::Outcome {
    let words = exported(library, &[run::launcher(library, RANKS), words.to_vec()].concat(), false);
    let preload = preloaded(preload).join(":");
    run::command(&run::folder("untraced"), &words, &[("LD_PRELOAD", preload)])
}

/// Untraced and traced: the same. What the buffers of the calls are named.
fn same(what: &str, library: Library, preload: &[PathBuf], words: &[String], how: Traced) -> Vec<String> {
    let untraced = untraced(library, preload, words);
    let mut preload = preloaded(preload);
    let words = [run::launcher(library, RANKS), words.to_vec()].concat();
    assert!(untraced.stdout.contains("good") && untraced.code == 0, "{what}: untraced: {untraced:?}");

    let folder = run::folder("allocators");
    let trace = folder.join("trace.rfn").to_string_lossy().into_owned();
    let refrain = build::refrain();
    let traced = match how {
        Traced::ByRun => {
            let run = [&refrain.to_string_lossy(), "run", "--out", &trace, "--"].map(str::to_owned);
            run::command(&folder, &[run.to_vec(), words].concat(), &[("LD_PRELOAD", preload.join(":"))])
        }
        Traced::Behind => {
            preload.push(refrain.with_file_name("librefrain_capture_mpi.so").to_string_lossy().into_owned());
            let environment = [("LD_PRELOAD", preload.join(":")), ("REFRAIN_OUT", trace.clone())];
            run::command(&folder, &exported(library, &words, true), &environment)
        }
    };
    assert_eq!((traced.code, &traced.stdout), (untraced.code, &untraced.stdout), "{what}: {}", traced.stderr);
    let verified = run::refrain(&["verify", &trace]);
    let whole = format!("{RANKS} ranks, {} calls", RANKS * CALLS);
    assert!(
        verified.code == 0 && verified.stdout.contains(&whole),
        "{what}: {verified:?}; the run said: {}",
        traced.stderr
    );
    println!("{what}, {}: as untraced, {whole}", library.suffix());
    names(&trace)
}

/// Open MPI's launcher passes no variables on to the ranks that it does not know, but those it is told.
fn exported(library: Library, words: &[String], traced: bool) -> Vec<String> {
    let mut words = words.to_vec();
    if library.is_open_mpi() {
        let names = if traced { &["LD_PRELOAD", "REFRAIN_OUT"][..] } else { &["LD_PRELOAD"] };
        words.splice(1..1, names.iter().flat_map(|name| ["-x".to_owned(), (*name).to_owned()]));
    }
    words
}

/// The kinds of memory that the buffers lie in, call by call.
fn names(trace: &str) -> Vec<String> {
    let dump = run::refrain(&["dump", trace, "--format", "json"]);
    assert_eq!(dump.code, 0, "{}", dump.stderr);
    let calls = dump.stdout.lines().map(|line| Json::parse(line).unwrap_or_else(|e| panic!("{e} in {line}")));
    let sent = calls.filter(|call| call.get("call").to_string().contains("MPI_Sendrecv"));
    let area = |call: Json| {
        let buffer = call.get("args").get("sendbuf").to_string();
        buffer.trim_matches('"').split('#').next().unwrap_or_default().to_owned()
    };
    sent.map(area).collect()
}

fn all_on_the_heap(names: &[String]) -> bool {
    !names.is_empty() && names.iter().all(|name| name == "heap")
}

fn words(program: &Path, args: &[&Path]) -> Vec<String> {
    [program].iter().chain(args).map(|word| word.to_string_lossy().into_owned()).collect()
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn preloaded_first() {
    for library in LIBRARIES {
        for allocator in ALLOCATORS {
            let what = format!("{allocator} preloaded before Refrain's library");
            let preload = [allocator.shared()];
            let names = same(&what, library, &preload, &words(&plain(library), &[]), Traced::Behind);
            assert!(all_on_the_heap(&names), "{what}: {names:?}");
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn preloaded_last() {
    for library in LIBRARIES {
        for allocator in ALLOCATORS {
            let what = format!("{allocator} preloaded, with refrain run");
            let preload = [allocator.shared()];
            let names = same(&what, library, &preload, &words(&plain(library), &[]), Traced::ByRun);
            assert!(all_on_the_heap(&names), "{what}: {names:?}");
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn linked_shared() {
    for library in LIBRARIES {
        for allocator in ALLOCATORS {
            let what = format!("{allocator} linked shared");
            let program = program(library, &format!("allocators with {allocator}"), &[allocator.shared()]);
            let names = same(&what, library, &[], &words(&program, &[]), Traced::ByRun);
            assert!(all_on_the_heap(&names), "{what}: {names:?}");
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn linked_statically() {
    for library in LIBRARIES {
        for allocator in ALLOCATORS {
            let what = format!("{allocator} linked statically");
            let Some(archive) = allocator.archive() else {
                println!("{what}, {}: not tested, there is no static library of it here", library.suffix());
                continue;
            };
            let program = program(library, &format!("allocators static {allocator}"), &[archive]);
            same(&what, library, &[], &words(&program, &[]), Traced::ByRun);
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn defined_in_the_program() {
    for library in LIBRARIES {
        for allocator in ALLOCATORS {
            let what = format!("functions in the program in front of {allocator}");
            let program = defining(library, allocator);
            // The communication library below Debian's MPICH patches allocators, and does not get along with this one.
            if (library, allocator) == (Library::Mpich, Tcmalloc)
                && untraced(library, &[], &words(&program, &[])).code != 0
            {
                println!("{what}, {}: not tested, it fails untraced", library.suffix());
                continue;
            }
            same(&what, library, &[], &words(&program, &[]), Traced::ByRun);
        }
    }
}

/// It is nobody's allocator then: names are bound to the first one.
#[test]
#[ignore = "needs MPI: `make test`"]
fn opened_later() {
    for library in LIBRARIES {
        for allocator in ALLOCATORS {
            let what = format!("{allocator} opened by the program");
            let opened = allocator.shared();
            let names = same(&what, library, &[], &words(&plain(library), &[&opened]), Traced::ByRun);
            assert!(all_on_the_heap(&names), "{what}: {names:?}");
        }
    }
}

/// What is no MPI program runs as well: launchers and shells have us preloaded too.
#[test]
#[ignore = "needs MPI: `make test`"]
fn programs_without_mpi() {
    let library = build::refrain().with_file_name("librefrain_capture_mpi.so");
    for allocator in ALLOCATORS {
        for preload in [[allocator.shared(), library.clone()], [library.clone(), allocator.shared()]] {
            let preload = preload.map(|path| path.to_string_lossy().into_owned()).join(":");
            let folder = run::folder("no-mpi");
            let trace = folder.join("x.rfn").to_string_lossy().into_owned();
            let shell = ["sh", "-c", "ls / | sort >/dev/null; echo $(echo hello)"].map(str::to_owned);
            let done = run::command(&folder, &shell, &[("LD_PRELOAD", preload), ("REFRAIN_OUT", trace)]);
            assert_eq!((done.code, done.stdout.as_str()), (0, "hello\n"), "{allocator}: {}", done.stderr);
        }
    }
}
