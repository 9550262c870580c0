//! What the program's functions call while MPI runs them, and what it calls after it left MPI by a jump, is all there.
//! Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use std::collections::BTreeMap;

use refrain_e2e::build::Level;
use refrain_e2e::check::same;
use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, run};

/// How often each rank called each function.
fn counts(dump: &[Vec<Json>]) -> Vec<BTreeMap<String, usize>> {
    let of_rank = |calls: &Vec<Json>| {
        let mut counts = BTreeMap::new();
        for call in calls {
            *counts.entry(call.get("call").text().unwrap_or_default().to_owned()).or_default() += 1;
        }
        counts
    };
    dump.iter().map(of_rank).collect()
}

/// Away from the witness, whose own functions stand between MPI and the program's.
#[test]
#[ignore = "needs MPI: `make test`"]
fn callbacks_that_end_in_a_call() {
    for library in Library::ALL {
        for level in [Level::Plain, Level::Optimised] {
            let traced = same(library, &Program::named("tails").at(level), 2);
            for of_rank in counts(&traced.dump()) {
                let what = format!("{level:?}, {}", library.suffix());
                let wanted = [
                    ("MPI_Comm_dup", 4),
                    // One of them in the attribute's delete function.
                    ("MPI_Comm_free", 4),
                    // In its copy function.
                    ("MPI_Initialized", 1),
                    ("MPI_Status_set_cancelled", 1),
                    ("MPI_Finalized", 2),
                    ("MPI_Error_class", 1),
                ];
                for (function, calls) in wanted {
                    assert_eq!(of_rank.get(function), Some(&calls), "{function}, {what}");
                }
                // In which of its calls, and how often, MPI gets around to a reduction is for MPI to say.
                assert!(of_rank["MPI_Type_size"] >= 3, "{what}: {of_rank:?}");
            }
        }
    }
}

/// In no file that is loaded: as many as MPI may be given stand-ins for, and more.
#[test]
#[ignore = "needs MPI: `make test`"]
fn callbacks_made_at_run_time() {
    for library in Library::ALL {
        // It prints what memory it has come to hold, if that is much.
        let program = Program { args: &["20000"], ..Program::unwitnessed("generated.c") };
        let traced = same(library, &program, 2);
        for of_rank in counts(&traced.dump()) {
            let (reduced, called) = (of_rank["MPI_Reduce_local"], of_rank["MPI_Initialized"]);
            assert_eq!((reduced, called), (20_300, 20_300), "{}", library.suffix());
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_hundred_jumps_out_of_mpi() {
    for library in Library::ALL {
        let traced = same(library, &Program::unwitnessed("hundred_jumps.c").at(Level::Optimised), 2);
        // Open MPI jumps on two threads.
        let jumps = if library.is_open_mpi() { 203 } else { 103 };
        for of_rank in counts(&traced.dump()) {
            assert_eq!(of_rank["MPI_Initialized"], jumps, "{}", library.suffix());
        }
        let info = run::refrain(&["info", &traced.trace.to_string_lossy()]).stdout;
        assert!(info.contains(&format!("left {jumps} MPI calls by jumps")), "{info}");
    }
}

/// Nobody can say what MPI is in the middle of: the ranks do not talk over it any more, and the parts have the trace.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_jump_out_of_mpi_by_a_signal() {
    // MPICH does not get over it, traced or not.
    let traced = same(Library::OpenMpi, &Program::unwitnessed("torn_out.c"), 2);
    let info = run::refrain(&["info", &traced.trace.to_string_lossy()]).stdout;
    assert!(info.contains("left an MPI call by a jump"), "{info}");
    let calls: usize = traced.dump().iter().map(Vec::len).sum();
    // All but the receive: MPI_Init, MPI_Comm_rank, MPI_Barrier and MPI_Finalize of both.
    assert_eq!(calls, 8, "{}", traced.outcome.stderr);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_hundred_exceptions_out_of_mpi() {
    for library in Library::ALL {
        let traced = same(library, &Program::unwitnessed("thrown.cpp"), 2);
        assert!(traced.outcome.stdout.contains("caught 100"), "{}", traced.outcome.stdout);
        for of_rank in counts(&traced.dump()) {
            assert_eq!(of_rank["MPI_Initialized"], 100, "{}", library.suffix());
        }
        let info = run::refrain(&["info", &traced.trace.to_string_lossy()]).stdout;
        assert!(info.contains("left 100 MPI calls by jumps"), "{info}");
    }
}
