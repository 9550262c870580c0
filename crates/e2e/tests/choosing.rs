//! What was chosen is recorded as it would have been among everything else, and nothing but that. Ignored in a plain
//! `cargo test`: needs the MPI libraries and the built command.

use std::collections::BTreeSet;

use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, build, run};

/// Addresses count from their first mention, so they are left out.
const STILL: (&str, &str) = ("REFRAIN_POINTERS", "off");

fn program(source: &'static str) -> Program {
    Program { source, args: &[], ..Program::named("ring") }
}

fn name(call: &Json) -> &str {
    call.get("call").text().unwrap_or("?")
}

/// Calls without their position.
fn shown(calls: &[Json]) -> Vec<String> {
    let fields = ["call", "args", "result", "facts"];
    calls.iter().map(|call| fields.map(|field| call.get(field).to_string()).join(" ")).collect()
}

/// Runs the program with these variables; its calls by rank. The trace must be whole.
fn calls(
    library: Library,
    program: &Program,
    ranks: u32,
    variables: &[(&'static str, &str)],
) -> Vec<Vec<Json>> {
    let traced = run::traced_with(library, program, ranks, &[&[STILL], variables].concat());
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let trace = traced.trace.to_string_lossy().into_owned();
    for view in ["verify", "stats", "info"] {
        let seen = run::refrain(&[view, &trace]);
        assert_eq!(seen.code, 0, "{view}: {}{}", seen.stdout, seen.stderr);
    }
    traced.dump()
}

/// The chosen calls are those among all calls that have these names.
#[track_caller]
fn check(all: &[Vec<Json>], chosen: &[Vec<Json>], names: &[&str]) {
    let names: BTreeSet<&str> = names.iter().copied().collect();
    for (rank, (all, chosen)) in all.iter().zip(chosen).enumerate() {
        let seen: BTreeSet<&str> = chosen.iter().map(name).collect();
        assert_eq!(seen, names, "rank {rank}");
        let wanted: Vec<Json> = all.iter().filter(|call| names.contains(name(call))).cloned().collect();
        assert_eq!(shown(chosen), shown(&wanted), "rank {rank}");
    }
}

const ENDS: [&str; 2] = ["MPI_Init", "MPI_Finalize"];

#[test]
#[ignore = "needs MPI: `make test`"]
fn calls_by_family_and_by_name() {
    for library in Library::ALL {
        let switch = program("switch.c");
        let all = calls(library, &switch, 4, &[("REFRAIN_PCONTROL", "off")]);
        let makers = ["MPI_Comm_split", "MPI_Comm_dup", "MPI_Type_contiguous", "MPI_Pcontrol"];
        let p2p = ["MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Sendrecv"];
        let still = ("REFRAIN_PCONTROL", "off");
        let chosen = calls(library, &switch, 4, &[("REFRAIN_ONLY", "p2p"), still]);
        check(&all, &chosen, &[&ENDS[..], &makers, &p2p].concat());
        // Requests that only followed calls made.
        let chosen = calls(library, &switch, 4, &[("REFRAIN_ONLY", "wait,MPI_Allreduce"), still]);
        check(&all, &chosen, &[&ENDS[..], &makers, &["MPI_Waitall", "MPI_Allreduce"]].concat());
        let chosen = calls(library, &switch, 4, &[("REFRAIN_SKIP", "p2p,comm,MPI_Type_*"), still]);
        check(&all, &chosen, &[&ENDS[..], &makers, &["MPI_Barrier", "MPI_Allreduce"]].concat());

        let comms = program("comms.c");
        let (all, chosen) =
            (calls(library, &comms, 4, &[]), calls(library, &comms, 4, &[("REFRAIN_ONLY", "p2p")]));
        let names: Vec<&str> = chosen[0].iter().map(name).collect();
        assert!(names.contains(&"MPI_Sendrecv") && names.contains(&"MPI_Comm_idup"), "{names:?}");
        assert!(!names.contains(&"MPI_Comm_free") && !names.contains(&"MPI_Bcast"), "{names:?}");
        check(&all, &chosen, &chosen[0].iter().map(name).collect::<Vec<_>>());
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_program_switches_recording() {
    for library in Library::ALL {
        let switch = program("switch.c");
        let all = calls(library, &switch, 3, &[("REFRAIN_PCONTROL", "off")]);
        let chosen = calls(library, &switch, 3, &[]);
        let always =
            ["MPI_Pcontrol", "MPI_Comm_split", "MPI_Comm_dup", "MPI_Type_contiguous", "MPI_Finalize"];
        for (rank, (all, chosen)) in all.iter().zip(&chosen).enumerate() {
            let mut on = true;
            let wanted: Vec<Json> = all
                .iter()
                .filter(|call| {
                    if name(call) == "MPI_Pcontrol" {
                        on = call.get("args").get("level").int() != Some(0);
                    }
                    on || always.contains(&name(call))
                })
                .cloned()
                .collect();
            assert_eq!(shown(chosen), shown(&wanted), "rank {rank}");
            // Steps 0 and 2 send with recording off, and wait with it on.
            let count = |calls: &[Json], of: &str| calls.iter().filter(|call| name(call) == of).count();
            assert_eq!((count(chosen, "MPI_Isend"), count(chosen, "MPI_Waitall")), (2, 4));
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn ranks_alone() {
    for library in Library::ALL {
        let all = calls(library, &program("comms.c"), 4, &[]);
        for ranks in ["0,2", "3"] {
            let chosen = calls(library, &program("comms.c"), 4, &[("REFRAIN_RANKS", ranks)]);
            for (rank, (all, chosen)) in all.iter().zip(&chosen).enumerate() {
                let wanted = if ranks.contains(&rank.to_string()) { shown(all) } else { Vec::new() };
                assert_eq!(shown(chosen), wanted, "rank {rank} of {ranks}");
            }
        }
        let beyond = run::traced_with(library, &program("ring.c"), 2, &[("REFRAIN_RANKS", "1,7")]);
        let said = beyond.outcome.lines("refrain: rank 7 was chosen, but the ranks are 0 to 1");
        assert_eq!(said.len(), 1, "{}", beyond.outcome.stderr);
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_stretch_of_time() {
    for library in Library::ALL {
        let paused = program("switch.c").with(&["sleep"]);
        let half = |window: &str| calls(library, &paused, 2, &[("REFRAIN_WINDOW", window)]);
        // A machine under load may take a while for what comes before the pause.
        let (early, late) = (half("..2500ms"), half("2500ms.."));
        let (all, ring) = (calls(library, &program("ring.c"), 2, &[]), program("ring.c"));
        let whole = calls(library, &ring, 2, &[("REFRAIN_WINDOW", "..1h")]);
        let count = |calls: &[Json], of: &str| calls.iter().filter(|call| name(call) == of).count();
        for rank in 0..2 {
            assert_eq!(shown(&whole[rank]), shown(&all[rank]));
            let waits = (count(&early[rank], "MPI_Waitall"), count(&late[rank], "MPI_Waitall"));
            assert_eq!(waits, (2, 2), "rank {rank}");
            let ends = (count(&early[rank], "MPI_Finalize"), count(&late[rank], "MPI_Init"));
            assert_eq!(ends, (1, 1), "rank {rank}");
            let sums = (count(&early[rank], "MPI_Allreduce"), count(&late[rank], "MPI_Allreduce"));
            assert_eq!(sums, (0, 1), "rank {rank}");
        }
    }
}

/// `eval "$(refrain env)"` and then the launcher, as in a batch script.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_batch_script() {
    for library in Library::ALL {
        let folder = run::folder("batch");
        let (refrain, launcher) = (build::refrain(), run::launcher(library, 2).join(" "));
        let program = program("ring.c").build(library);
        let script = format!(
            "eval \"$({} env --out it.rfn --only coll)\" && {launcher} {}",
            refrain.display(),
            program.display()
        );
        let done = run::command(&folder, &["sh".into(), "-c".into(), script], &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert_eq!(done.lines("refrain: 2 ranks,").len(), 1, "{}", done.stderr);
        let info = run::refrain(&["info", &folder.join("it.rfn").to_string_lossy()]);
        assert!(info.stdout.contains("only coll of every rank"), "{}", info.stdout);
    }
}

/// Launcher of one library, program of the other: named before the start and in it, and no trace writes over another.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_launcher_of_another_library_is_named() {
    for (library, other) in [(Library::Mpich, Library::OpenMpi), (Library::OpenMpi, Library::Mpich)] {
        let folder = run::folder("mismatch");
        let refrain = build::refrain().to_string_lossy().into_owned();
        let program = program("ring.c").build(library).to_string_lossy().into_owned();
        let mut words: Vec<String> = [&refrain, "run", "--out", "x.rfn", "--"].map(str::to_owned).to_vec();
        words.extend(run::launcher(other, 2));
        words.push(program.clone());
        let done = run::command(&folder, &words, &[]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        let warned = done.lines("refrain: warning: the launcher");
        assert!(warned.len() == 1 && warned[0].contains("does not belong"), "{}", done.stderr);
        assert_eq!(done.lines("refrain: the launcher started 2 processes").len(), 1, "{}", done.stderr);
        assert!(!folder.join("x.rfn").exists());
        for process in 0..2 {
            let trace = folder.join(format!("x.process-{process}.rfn"));
            let verified = run::refrain(&["verify", &trace.to_string_lossy()]);
            assert!(verified.stdout.starts_with("yes: 1 rank"), "{}{}", verified.stdout, verified.stderr);
        }

        let doctor = |launcher: Library| {
            let mut words: Vec<String> = [&refrain, "doctor", "--json", "--"].map(str::to_owned).to_vec();
            words.extend(run::launcher(launcher, 2));
            words.push(program.clone());
            run::command(&folder, &words, &[])
        };
        let (bad, good) = (doctor(other), doctor(library));
        assert!(bad.code == 1 && bad.stdout.contains("does not belong"), "{}", bad.stdout);
        assert!(good.code == 0 && good.stdout.contains(r#""bindings":["C"]"#), "{}", good.stdout);
        let family = if library == Library::Mpich { "MPICH ABI" } else { "Open MPI ABI" };
        assert!(good.stdout.contains(family), "{}", good.stdout);
    }
}
