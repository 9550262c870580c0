//! Programs built with a sanitizer start, behave as they do untraced, and are told the same about their faults. Ignored in
//! a plain `cargo test`: needs the MPI libraries and the built command.

use std::path::{Path, PathBuf};
use std::process::Command;

use refrain_e2e::{Library, build, run, skipped};

const RANKS: u32 = 2;
/// Of `sanitized.c`, by each rank.
const CALLS: u32 = 15;

/// `sanitized.c`, built with these flags.
fn program(library: Library, name: &str, flags: &[&str]) -> PathBuf {
    let folder = build::sources().join("programs");
    let (source, common) = (folder.join("sanitized.c"), folder.join("common.h"));
    let target = build::folder_for(library).join(name);
    build::make(&target, &[&source, &common], |part| {
        let mut command = Command::new(library.compiler(&source));
        command.args(["-O1", "-g", "-w"]).args(flags).arg("-o").arg(part).arg(&source);
        vec![command]
    });
    target
}

/// Untraced, and under `refrain run`, with the trace's place.
fn both(library: Library, program: &Path, fault: &str, options: &str) -> [(run::Outcome, String); 2] {
    let words = [program.to_string_lossy().into_owned(), fault.to_owned()].to_vec();
    both_of([run::launcher(library, RANKS), words].concat(), options)
}

fn both_of(words: Vec<String>, options: &str) -> [(run::Outcome, String); 2] {
    let environment = [
        ("ASAN_OPTIONS", options.to_owned()),
        ("LSAN_OPTIONS", options.to_owned()),
        ("TSAN_OPTIONS", options.to_owned()),
        ("LD_PRELOAD", build::yielding().to_string_lossy().into_owned()),
    ];
    // Of a program that is not traced, the runtime must not care for the other preload either.
    let mut plain = environment.clone();
    plain[0].1.push_str(":verify_asan_link_order=0");
    let untraced = run::command(&run::folder("untraced"), &words, &plain);
    let folder = run::folder("sanitized");
    let trace = folder.join("trace.rfn").to_string_lossy().into_owned();
    let refrain = build::refrain().to_string_lossy().into_owned();
    let run = [&refrain, "run", "--out", &trace, "--"].map(str::to_owned).to_vec();
    let traced = run::command(&folder, &[run, words].concat(), &environment);
    [(untraced, String::new()), (traced, trace)]
}

fn same(what: &str, library: Library, program: &Path, options: &str) {
    let [(untraced, _), (traced, trace)] = both(library, program, "", options);
    assert!(untraced.stdout.contains("sanitized: "), "{what}: untraced: {untraced:?}");
    let told = |outcome: &run::Outcome| outcome.stdout.lines().next().map(str::to_owned);
    assert_eq!((traced.code, told(&traced)), (untraced.code, told(&untraced)), "{what}: {traced:?}");
    let verified = run::refrain(&["verify", &trace]);
    let whole = format!("{RANKS} ranks, {} calls", RANKS * CALLS);
    assert!(verified.code == 0 && verified.stdout.contains(&whole), "{what}: {verified:?}: {traced:?}");
    println!("{what}, {}: as untraced, {whole}", library.suffix());
}

/// All that a run printed: launchers put what ranks say where they like.
fn said(outcome: &run::Outcome) -> String {
    format!("{}{}", outcome.stdout, outcome.stderr)
}

/// The functions of a report, in order, without addresses and processes.
fn frames(outcome: &run::Outcome) -> Vec<String> {
    let text = said(outcome);
    let frames = text.lines().map(str::trim).filter(|line| line.starts_with('#'));
    frames.filter_map(|line| Some(line.split_once(" in ")?.1.split(" (").next()?.to_owned())).collect()
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn address_sanitizer() {
    for library in Library::ALL {
        for (what, name, flags) in [
            ("AddressSanitizer, linked shared", "asan", &["-fsanitize=address"][..]),
            (
                "AddressSanitizer, linked statically",
                "asan-static",
                &["-fsanitize=address", "-static-libasan"],
            ),
            (
                "AddressSanitizer, linked statically and visible",
                "asan-visible",
                &["-fsanitize=address", "-static-libasan", "-rdynamic"],
            ),
        ] {
            let program = program(library, name, flags);
            same(what, library, &program, "detect_leaks=0");
            let [(untraced, _), (traced, _)] = both(library, &program, "overflow", "detect_leaks=0");
            assert!(said(&traced).contains("heap-buffer-overflow"), "{what}: {traced:?}");
            assert_eq!(traced.code != 0, untraced.code != 0, "{what}");
            assert_eq!(frames(&traced), frames(&untraced), "{what}: {traced:?}");
            // Who wrote, and who allocated.
            let main = frames(&traced).iter().filter(|frame| frame.starts_with("main ")).count();
            assert!(main >= 2, "{what}: {traced:?}");
        }
    }
}

/// What MPI leaks is none of ours, and nothing of ours is leaked.
#[test]
#[ignore = "needs MPI: `make test`"]
fn leaks() {
    for library in Library::ALL {
        let program = program(library, "asan", &["-fsanitize=address"]);
        let [(untraced, _), (traced, _)] = both(library, &program, "leak", "detect_leaks=1");
        let lost = |outcome: &run::Outcome| {
            let text = said(outcome);
            let mut lines: Vec<String> =
                text.lines().filter(|line| line.contains("leaked in")).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert!(!lost(&untraced).is_empty(), "{untraced:?}");
        assert_eq!(traced.code, untraced.code, "{traced:?}");
        // Where one rank ends with an error the launcher may end the other before it has told of its leaks.
        let [few, many] = match [lost(&traced), lost(&untraced)] {
            [traced, untraced] if traced.len() > untraced.len() => [untraced, traced],
            both => both,
        };
        assert!(!few.is_empty() && few.iter().all(|one| many.contains(one)), "{few:?}, {many:?}: {traced:?}");
        // Not its file's name: places in libraries that are gone by then are told as being beyond another's end.
        for ours in ["capture-mpi/src", "guest/src"] {
            assert!(!said(&traced).contains(ours), "{traced:?}");
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn undefined_behaviour() {
    for library in Library::ALL {
        let program = program(library, "ubsan", &["-fsanitize=undefined"]);
        same("UndefinedBehaviorSanitizer", library, &program, "");
    }
}

/// The runtime wants its memory where the kernel may have put something else.
const IN_ITS_PLACE: [&str; 2] = ["setarch", "-R"];
/// MPI's own threads are none of ours.
const QUIETLY: &str = "report_bugs=0";

#[test]
#[ignore = "needs MPI: `make test`"]
fn thread_sanitizer() {
    for library in Library::ALL {
        let program = program(library, "tsan", &["-fsanitize=thread"]);
        let shown = program.to_string_lossy();
        let words = [&IN_ITS_PLACE[..], &[&shown]].concat();
        let [(untraced, _), (traced, trace)] =
            both_of([run::launcher(library, RANKS), run::words(&words)].concat(), QUIETLY);
        let what = format!("ThreadSanitizer, {}", library.suffix());
        if untraced.code != 0 {
            skipped(&format!("{what}: it does not run untraced: {}", said(&untraced)));
            continue;
        }
        assert_eq!((traced.code, &traced.stdout), (untraced.code, &untraced.stdout), "{what}: {traced:?}");
        let verified = run::refrain(&["verify", &trace]);
        let whole = format!("{RANKS} ranks, {} calls", RANKS * CALLS);
        assert!(verified.code == 0 && verified.stdout.contains(&whole), "{what}: {verified:?}: {traced:?}");
    }
}

/// `threaded.c`, built with these flags.
fn without_mpi(name: &str, flags: &[&str]) -> PathBuf {
    let source = build::sources().join("programs/threaded.c");
    let target = build::folder_for(Library::Mpich).join(name);
    build::make(&target, &[&source], |part| {
        let mut command = Command::new("cc");
        command.args(["-O1", "-g", "-pthread"]).args(flags).arg("-o").arg(part).arg(&source);
        vec![command]
    });
    target
}

/// The library is in every process that a run starts.
#[test]
#[ignore = "needs the built command: `make test`"]
fn thread_sanitizer_without_mpi() {
    let target = without_mpi("threaded-tsan", &["-fsanitize=thread"]);
    let shown = target.to_string_lossy();
    let words = [&IN_ITS_PLACE[..], &[&shown]].concat();
    let [(untraced, _), (traced, _)] = both_of(run::words(&words), "");
    if !untraced.stdout.starts_with("threaded: ") {
        skipped(&format!("ThreadSanitizer: it does not run untraced: {}", said(&untraced)));
        return;
    }
    assert_eq!((traced.code, &traced.stdout), (untraced.code, &untraced.stdout), "{traced:?}");
}

/// Leaks are looked for too, where a process may look into another: of ours there are none.
#[test]
#[ignore = "needs the built command: `make test`"]
fn other_sanitizers_without_mpi() {
    for (name, flags) in [
        ("threaded-asan", &["-fsanitize=address"][..]),
        ("threaded-asan-static", &["-fsanitize=address", "-static-libasan"]),
        ("threaded-ubsan", &["-fsanitize=undefined"]),
    ] {
        let shown = without_mpi(name, flags).to_string_lossy().into_owned();
        let [(untraced, _), (traced, _)] = both_of(vec![shown], "");
        if untraced.code != 0 && said(&untraced).contains("LeakSanitizer") {
            skipped(&format!("{name}: it does not run untraced: {}", said(&untraced)));
            continue;
        }
        assert!(untraced.code == 0 && untraced.stdout.starts_with("threaded: "), "{name}: {untraced:?}");
        assert_eq!((traced.code, &traced.stdout), (untraced.code, &untraced.stdout), "{name}: {traced:?}");
        assert!(!said(&traced).contains("Sanitizer"), "{name}: {traced:?}");
    }
}
