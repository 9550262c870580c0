//! A pattern of the papers and its program make the same calls, on every rank, in the same order, with the same peers, tags
//! and counts. Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use crate::rows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use refrain_e2e::{Library, build, run};
use refrain_encode::Calls;
use refrain_model::{Call, Value};
use refrain_scale::{Options, Paper, Pattern, simulate};
use refrain_tracefile::Trace;
use rows::as_rows;

/// The program, what it is told after its steps, and so many steps.
fn program(pattern: &str) -> (&'static str, Option<&str>, u32) {
    if let Some(which) = pattern.strip_prefix("osu-") {
        return ("bench/papers/osu.c", Some(which), 2);
    }
    let (source, more, steps) = match pattern {
        "npb-bt" => ("bench/papers/bt.f90", None, 2),
        "npb-sp" => ("bench/papers/sp.f90", None, 2),
        "npb-lu" => ("bench/papers/lu.c", None, 2),
        "npb-cg" => ("bench/papers/cg.c", None, 2),
        "npb-mg" => ("bench/papers/mg.c", None, 2),
        "npb-ft" => ("bench/papers/ft.c", None, 3),
        "npb-is" => ("bench/papers/is.c", None, 3),
        "npb-ep" => ("bench/papers/ep.c", None, 1),
        "milc" => ("bench/papers/milc.c", None, 2),
        "milc-strong" => ("bench/papers/milc.c", Some("strong"), 2),
        "flash-sedov" => ("bench/papers/flash_sedov.c", None, 41),
        "flash-cellular" => ("bench/papers/flash_cellular.c", None, 9),
        "flash-stirturb" => ("bench/papers/flash_stirturb.c", None, 3),
        "sweep3d" => ("bench/papers/sweep3d.c", None, 2),
        "pop" => ("tests/programs/pop_like.c", None, 9),
        "raptor" => ("bench/papers/raptor.c", None, 2),
        "umt2k" => ("bench/papers/umt2k.c", None, 2),
        "stencil5" => ("tests/programs/stencil1d5.c", None, 3),
        "stencil9" => ("tests/programs/stencil2d9.c", None, 3),
        "stencil27" => ("tests/programs/stencil3d27.c", None, 3),
        "recursive3d" => ("tests/programs/stencil3d_recursive.c", None, 3),
        other => panic!("{other} has no program"),
    };
    (source, more, steps)
}

fn built(library: Library, source: &Path) -> PathBuf {
    let name = format!("paper-{}", source.file_stem().unwrap_or_default().to_string_lossy());
    let target = build::folder_for(library).join(name);
    // Whatever lies beside it may be included.
    let beside = fs::read_dir(source.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let inputs: Vec<PathBuf> = beside.collect();
    let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    build::make(&target, &inputs, |part| {
        let mut command = Command::new(library.compiler(source));
        command.arg("-O1").arg("-o").arg(part).arg(source);
        vec![command]
    });
    target
}

fn traced(library: Library, pattern: &str, ranks: u32) -> Trace {
    let (source, more, steps) = program(pattern);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let app = built(library, &root.join(source)).to_string_lossy().into_owned();
    let folder = run::folder(pattern);
    let mut words = run::words(&["run", "--quiet", "--out", "trace.rfn", "--"]);
    words.extend(run::launcher(library, ranks));
    words.extend([app, steps.to_string()]);
    words.extend(more.map(str::to_owned));
    let outcome = run::refrain_in(&[], &folder, &words);
    assert_eq!(outcome.code, 0, "{pattern}: {}{}", outcome.stdout, outcome.stderr);
    refrain_tracefile::read(&fs::read(folder.join("trace.rfn")).unwrap()).unwrap()
}

/// What a call says of messages. The datatype is left out: a pattern has only doubles.
fn line(call: &Call) -> String {
    const TOLD: [&str; 14] = [
        "dest",
        "source",
        "tag",
        "count",
        "sendcount",
        "recvcount",
        "sendcounts",
        "recvcounts",
        "sdispls",
        "rdispls",
        "root",
        "target_rank",
        "rank",
        "color",
    ];
    let mut line = call.function.name.to_owned();
    for (parameter, value) in call.function.params.iter().zip(&call.args) {
        if TOLD.contains(&parameter.name) {
            line += &format!(" {}={value:?}", parameter.name);
        }
    }
    line
}

/// How many requests a call of `MPI_Waitsome` found done. Each run has other ones.
fn found_done(call: &Call) -> Option<i64> {
    let at = call.function.params.iter().position(|parameter| parameter.name == "outcount")?;
    match call.args[at] {
        Value::Int(count) => Some(count),
        _ => None,
    }
}

/// The calls of a rank, and how many requests were done in any order.
fn calls(trace: &Trace, rank: u32) -> (Vec<String>, i64) {
    let (mut lines, mut done) = (Vec::new(), 0);
    for call in Calls::new(&trace.bundle, rank, 0).unwrap() {
        let call = call.unwrap();
        match found_done(&call) {
            Some(count) => done += count,
            None => lines.push(line(&call)),
        }
    }
    (lines, done)
}

fn check(library: Library, name: &str, ranks: u32) {
    let (pattern, steps): (Pattern, u32) = (name.parse().unwrap(), program(name).2);
    let real = traced(library, name, ranks);
    let simulated = simulate(pattern, ranks, steps, &Options::default()).unwrap().trace;
    for rank in 0..ranks {
        let (real, simulated) = (calls(&real, rank), calls(&simulated, rank));
        let first = real.0.iter().zip(&simulated.0).position(|(a, b)| a != b);
        if let Some(at) = first {
            panic!("{name}, rank {rank} of {ranks}, call {at}: {} is {}", simulated.0[at], real.0[at]);
        }
        assert_eq!(
            (simulated.0.len(), simulated.1),
            (real.0.len(), real.1),
            "{name}, rank {rank} of {ranks}"
        );
    }
}

fn check_all(library: Library) {
    for (name, _) in Paper::ALL {
        let ranks = match name {
            "npb-bt" | "npb-sp" => [4, 9],
            "flash-cellular" | "sweep3d" | "npb-is" | "pop" | "stencil9" => [6, 9],
            "umt2k" | "raptor" | "stencil27" | "recursive3d" => [4, 12],
            _ if name.starts_with("osu-") => [2, 4],
            _ => [4, 8],
        };
        ranks.into_iter().for_each(|ranks| check(library, name, ranks));
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn patterns_make_the_calls_of_their_programs_on_mpich() {
    check_all(Library::Mpich);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn patterns_make_the_calls_of_their_programs_on_open_mpi() {
    check_all(Library::OpenMpi);
}

/// Both folds read back what was recorded, on numbers of ranks that are legal; others are refused.
#[test]
fn numbers_of_ranks_are_legal_or_refused() {
    for (name, _) in Paper::ALL {
        for fold in ["grammar", "loops"] {
            let options = Options { folding: fold.parse().unwrap(), ..Options::default() };
            let done = simulate(name.parse().unwrap(), 16, 2, &options).unwrap();
            let read = refrain_tracefile::read(&done.bytes).unwrap();
            assert!(as_rows(read) == as_rows(done.trace), "{name}");
        }
    }
    for name in ["npb-bt", "npb-sp", "npb-lu", "npb-cg", "npb-mg", "npb-ft", "milc-strong"] {
        let refused = simulate(name.parse().unwrap(), 15, 2, &Options::default()).unwrap_err();
        assert!(refused.to_string().contains("not 15"), "{refused}");
    }
}
