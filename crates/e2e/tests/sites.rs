//! Where calls are made: the same however a program was built, whichever MPI library it uses, wherever it was loaded.
//! Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use std::path::{Path, PathBuf};
use std::process::Command;

use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, build, run};

/// Every stack that is recognised is also unwound, and the two are compared.
const CHECKED: (&str, &str) = ("REFRAIN_TEST_STACKS", "on");

/// Builds a program of `tests/programs` with these options, "strip" being one.
fn built(library: Library, source: &str, options: &[&str]) -> PathBuf {
    let source = build::sources().join("programs").join(source);
    let name = format!("{}{}", source.file_stem().unwrap().to_string_lossy(), options.concat());
    let target = build::folder_for(library).join(name);
    build::make(&target, &[&source], |part| {
        let mut compile = Command::new(library.compiler(&source));
        compile.args(options.iter().filter(|option| **option != "strip"));
        if source.extension().is_some_and(|e| e != "c") {
            // A subroutine that is there twice calls from two places.
            compile.args(["-fno-inline", "-fno-ipa-cp", "-J"]).arg(build::folder_for(library));
        }
        compile.arg("-o").arg(part).arg(&source);
        let mut commands = vec![compile];
        if options.contains(&"strip") {
            let mut strip = Command::new("strip");
            strip.arg(part);
            commands.push(strip);
        }
        commands
    });
    target
}

/// Runs it on two ranks; what `info` says. What was recorded must be what happened.
fn info(library: Library, program: &Path, args: &[&str], variables: &[(&str, &str)]) -> Json {
    let folder = run::folder("sites");
    let trace = folder.join("trace.rfn").to_string_lossy().into_owned();
    let mut words = vec![build::refrain().to_string_lossy().into_owned()];
    words.extend(["run", "--force", "--out", &trace, "--"].map(str::to_owned));
    words.extend(run::launcher(library, 2));
    words.push(program.to_string_lossy().into_owned());
    words.extend(args.iter().map(|arg| arg.to_string()));
    let mut environment: Vec<(&str, String)> = variables.iter().map(|(k, v)| (*k, v.to_string())).collect();
    environment.push(("LD_PRELOAD", build::yielding().to_string_lossy().into_owned()));
    // Each call of a deep recursion would take a millisecond.
    if args != ["1000"] {
        environment.push((CHECKED.0, CHECKED.1.into()));
    }
    let outcome = run::command(&folder, &words, &environment);
    assert!(outcome.code == 0 || args.contains(&"die"), "{words:?}: {}", outcome.stderr);
    assert!(!outcome.stderr.contains("tracing stopped"), "{words:?}: {}", outcome.stderr);
    let verified = run::refrain(&["verify", &trace]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let said = run::refrain(&["info", "--json", &trace]).stdout;
    // A fraction, which is nothing that is compared here.
    let (before, after) = said.split_once("\"bytes_per_call\":").unwrap();
    Json::parse(&format!("{before}{}", after.split_once(',').unwrap().1)).unwrap()
}

fn number(info: &Json, key: &str) -> i64 {
    info.get(key).int().unwrap_or_else(|| panic!("no {key} in {info}"))
}

/// What depends neither on how long anything took nor on the library.
fn folded(info: &Json) -> [i64; 5] {
    ["sites", "symbols", "structures", "rules", "kinds_of_ranks"].map(|key| number(info, key))
}

const WAYS: [&[&str]; 7] = [
    &["-O2"],
    &["-O2", "-fno-pie", "-no-pie"],
    &["-O2", "strip"],
    &["-O2", "-fomit-frame-pointer"],
    &["-O2", "-fno-omit-frame-pointer"],
    &["-O2", "-fno-omit-frame-pointer", "-no-pie", "-fno-pie", "strip"],
    // No tables to unwind with: by frame pointers alone.
    &["-O2", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
];

#[test]
#[ignore = "needs MPI: `make test`"]
fn however_a_program_was_built() {
    for (source, places) in [("sites.c", 10), ("f_sites.f90", 7)] {
        for stacks in ["site", "full"] {
            let mut all = Vec::new();
            for library in [Library::Mpich, Library::OpenMpi] {
                for options in WAYS {
                    let program = built(library, source, options);
                    let info = info(library, &program, &[], &[("REFRAIN_STACKS", stacks)]);
                    assert_eq!((number(&info, "modules"), number(&info, "kinds_of_ranks")), (1, 1), "{info}");
                    all.push((library, options, folded(&info)));
                }
            }
            let (_, _, first) = all[0];
            for (library, options, folded) in &all {
                assert_eq!(*folded, first, "{source} {stacks} {library:?} {options:?}");
            }
            if stacks == "site" {
                assert_eq!(first[0], places, "{source}");
            } else {
                assert!(first[0] > places, "{source}");
            }
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn recursions_are_folded_unless_kept() {
    for library in [Library::Mpich, Library::OpenMpi] {
        let program = built(library, "sites.c", &["-O2"]);
        let sites = |depth: &str, recursion: &str| {
            let variables = [("REFRAIN_STACKS", "full"), ("REFRAIN_RECURSION", recursion)];
            number(&info(library, &program, &[depth], &variables), "sites")
        };
        let flat = sites("10", "fold");
        assert_eq!([sites("100", "fold"), sites("1000", "fold")], [flat, flat]);
        // A call before and a call after each level of one, and every second level of the other.
        let kept = [10, 20, 100].map(|depth: i64| sites(&depth.to_string(), "keep"));
        assert_eq!(kept.map(|sites| sites - kept[0]), [0, 40, 360]);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn what_may_be_lost() {
    let library = Library::Mpich;
    let program = built(library, "sites.c", &["-O2"]);
    let sites = |lossy: &str| {
        let info = info(library, &program, &[], &[("REFRAIN_STACKS", "full"), ("REFRAIN_LOSSY", lossy)]);
        let said = info.get("options").get("lossy").text().unwrap_or("").to_owned();
        assert_eq!(said, lossy);
        number(&info, "sites")
    };
    let exact = sites("");
    // `first`, `second` and `third` become one to each of four calls. To MPI_Sendrecv `sized` and the outermost `direct`
    // and `even` do too: two frames differ.
    assert_eq!([sites("sites=2"), sites("sites=3")], [exact - 8, exact - 11]);
    let name = program.file_name().unwrap().to_string_lossy();
    assert_eq!(sites(&format!("sites-in={name}+0x0-0xffffff")), 1, "one place, and recursions are folded");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_run_that_dies_keeps_its_sites() {
    for library in [Library::Mpich, Library::OpenMpi] {
        let program = built(library, "sites.c", &["-O2"]);
        let full = ("REFRAIN_STACKS", "full");
        let whole = info(library, &program, &["5"], &[full]);
        // Snapshots now and then, and a journal after them.
        for tail in ["4096", "1000000"] {
            let died = info(library, &program, &["5", "die"], &[full, ("REFRAIN_TEST_TAIL", tail)]);
            assert_eq!(died.get("complete").to_string(), "false");
            assert_eq!(number(&died, "sites"), number(&whole, "sites") - 1, "all but MPI_Finalize");
        }
    }
}

/// Calls from callbacks, in threads and by many functions: stacks are what they are, and calls what they were.
#[test]
#[ignore = "needs MPI: `make test`"]
fn stacks_change_nothing_about_calls() {
    for library in [Library::Mpich, Library::OpenMpi] {
        for (name, ranks) in [("callbacks", 2), ("f_callbacks", 2), ("threads4", 2), ("misc", 2), ("cxx", 2)]
        {
            let program = Program::named(name);
            let variables = [("REFRAIN_POINTERS", "off"), ("REFRAIN_STACKS", "full"), CHECKED];
            let traced = run::traced_with(library, &program, ranks, &variables);
            assert_eq!(traced.outcome.code, 0, "{name}: {}", traced.outcome.stderr);
            assert!(!traced.outcome.stderr.contains("tracing stopped"), "{name}: {}", traced.outcome.stderr);
            let plain = run::traced_with(library, &program, ranks, &variables[..1]);
            let functions = |traced: &run::Traced| -> Vec<Vec<String>> {
                let names =
                    |calls: &Vec<Json>| calls.iter().map(|call| call.get("call").to_string()).collect();
                traced.dump().iter().map(names).collect()
            };
            // Polls come as often as they come.
            if name != "threads4" {
                assert_eq!(functions(&traced), functions(&plain), "{name}");
            }
            let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
            assert_eq!(verified.code, 0, "{name}: {}{}", verified.stdout, verified.stderr);
        }
    }
}

/// Coroutines, wrong tables, frames that align themselves, libraries that come and go: nothing of it harms the program,
/// and what can be told is right.
#[test]
#[cfg(target_arch = "x86_64")]
#[ignore = "needs MPI: `make test`"]
fn odd_stacks() {
    for library in [Library::Mpich, Library::OpenMpi] {
        let program = built(library, "odd_stacks.c", &["-O2", "-g"]);
        let plugins = ["-DWHICH=1", "-DWHICH=2"]
            .map(|which| built(library, "odd_library.c", &["-O2", "-g", "-shared", "-fPIC", which]));
        let plugins = plugins.each_ref().map(|path| path.to_str().unwrap());
        for (stacks, modules) in [("full", 3), ("site", 3)] {
            let info = info(library, &program, &plugins, &[("REFRAIN_STACKS", stacks)]);
            assert_eq!(number(&info, "modules"), modules, "{library:?} {stacks}: {info}");
        }
        let folder = run::folder("odd");
        let trace = folder.join("trace.rfn").to_string_lossy().into_owned();
        let mut words = vec![build::refrain().to_string_lossy().into_owned()];
        words.extend(["run", "--stacks", "full", "--out", &trace, "--"].map(str::to_owned));
        words.extend(run::launcher(library, 1));
        words.push(program.to_string_lossy().into_owned());
        let outcome = run::command(&folder, &words, &[]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let dump = run::refrain(&["dump", "--stacks", &trace]).stdout;
        let count = |text: &str| dump.lines().filter(|line| line.contains(text)).count();
        assert_eq!(count("at reduce (odd_stacks.c:18), in coroutine (odd_stacks.c:25)"), 3, "{dump}");
        assert_eq!(
            count("at reduce (odd_stacks.c:18), in aligned (odd_stacks.c:57), in main ("),
            6,
            "{dump}"
        );
        assert_eq!(count("at reduce (odd_stacks.c:18)"), 12, "{dump}");
        assert_eq!(count("frame_dummy"), 0, "code without a name got that of something before it: {dump}");
    }
}
