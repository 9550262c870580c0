//! What the wrappers observe, read from the traces they leave.

use crate::common;

use std::collections::BTreeMap;

use common::{Mpi, installed, library, scratch};
use refrain_encode::Calls;
use refrain_model::{Area, Call, Value};
use refrain_tracefile::Trace;

/// The trace of a program on some ranks, with some more variables set.
fn trace(mpi: Mpi, program: &str, ranks: usize, variables: &[(&str, &str)]) -> Trace {
    let out = scratch().join(format!("observed.{program}.{}.{}.rfn", mpi.0, variables.len()));
    let compiled = mpi.compile(program);
    let library = library();
    let mut all =
        vec![("LD_PRELOAD", &*library), ("REFRAIN_OUT", out.to_str().unwrap()), ("REFRAIN_FORCE", "1")];
    all.extend(variables);
    let output = mpi.run(ranks, &compiled, &[], &all);
    refrain_tracefile::open(&out).unwrap_or_else(|error| panic!("{mpi:?} {program}: {error}\n{output:?}"))
}

fn calls(trace: &Trace, rank: u32) -> Vec<Call> {
    match Calls::new(&trace.bundle, rank, 0) {
        Ok(calls) => calls.map(Result::unwrap).collect(),
        Err(_) => Vec::new(),
    }
}

/// Both of two ranks made these calls, given as `name count` words.
fn check(program: &str, variables: &[(&str, &str)], complete: bool, expected: &str) {
    for mpi in installed() {
        let trace = trace(mpi, program, 2, variables);
        assert_eq!(trace.meta.complete, complete, "{mpi:?} {program}");
        for rank in 0..2 {
            let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
            for call in calls(&trace, rank) {
                *counts.entry(call.function.name).or_default() += 1;
            }
            let words: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
            assert_eq!(words.join(" "), expected, "{mpi:?} {program}, rank {rank}");
        }
    }
}

const RING: &str = "MPI_Allreduce 10 MPI_Barrier 2 MPI_Comm_compare 1 MPI_Comm_rank 1 MPI_Comm_set_errhandler 1 \
                    MPI_Comm_size 1 MPI_Finalize 1 MPI_Init 1 MPI_Pcontrol 2 MPI_Send 1 MPI_Sendrecv 10 \
                    MPI_Wtick 1 MPI_Wtime 1";
const FORTRAN: &str = "MPI_Allreduce 1 MPI_Comm_rank 1 MPI_Comm_size 1 MPI_Finalize 1 MPI_Init 1 MPI_Irecv 5 \
                       MPI_Isend 5 MPI_Waitall 5";

#[test]
fn every_call_is_seen_once() {
    check("ring.c", &[], true, RING);
    check("ring.c", &[("REFRAIN_TIME", "off"), ("REFRAIN_POINTERS", "off")], true, RING);
}

#[test]
fn without_the_split_nothing_is_missing() {
    check(
        "ring.c",
        &[("REFRAIN_SPLIT", "off"), ("REFRAIN_TIME", "off"), ("REFRAIN_POINTERS", "on")],
        true,
        RING,
    );
}

#[test]
fn fortran_is_seen_by_every_binding() {
    check("old.f90", &[], true, FORTRAN);
    check("f08.f90", &[], true, FORTRAN);
}

/// Calls that an exception left have no end: they are missing, and the trace says so. Those after them are seen again.
#[test]
fn exceptions_pass_through() {
    check(
        "throwing.cpp",
        &[],
        false,
        "MPI_Comm_create_errhandler 1 MPI_Comm_rank 3 MPI_Comm_set_errhandler 1 MPI_Finalize 1 MPI_Init 1",
    );
}

/// After a fault nothing is kept of the rank, but it still meets the others in the merge, and the trace says so.
#[test]
fn a_stopped_process_still_comes_to_the_end() {
    check(
        "ring.c",
        &[("REFRAIN_TEST_PANIC", "3"), ("REFRAIN_SPLIT", "on"), ("REFRAIN_SUMMARY", "0"), ("A", "")],
        false,
        "",
    );
    check("ring.c", &[("REFRAIN_TEST_PANIC", "1")], false, "");
}

/// Names follow use; a freed segment's name is used again; static memory keeps its distances.
#[test]
fn pointers_are_placed() {
    for mpi in installed() {
        let trace = trace(mpi, "places.c", 1, &[]);
        let places: Vec<(Area, u32, i64)> = calls(&trace, 0)
            .iter()
            .filter(|call| call.function.name == "MPI_Get_address")
            .map(|call| match &call.args[0] {
                Value::Address(place) => (place.area, place.segment, place.offset),
                Value::Name("MPI_BOTTOM") => (Area::Number, 0, 0),
                other => panic!("{other:?}"),
            })
            .collect();
        let moving = places.iter().filter(|(area, ..)| *area != Area::Static);
        let moving: Vec<String> =
            moving.map(|(area, segment, offset)| format!("{area:?}#{segment}+{offset}")).collect();
        let expected = "Heap#0+0 Heap#0+999 Heap#1+7 Heap#2+2097152 Heap#0+0 \
                        Stack#0+0 Stack#1+0 Stack#0+0 \
                        Heap#0+8191 Heap#1+0 Heap#2+0 Heap#2+5242879 \
                        Heap#3+9999 Heap#3+1 \
                        Heap#1+0 Heap#1+0 Heap#1+0 Number#0+0";
        assert_eq!(moving.join(" "), expected, "{mpi:?}");
        let fixed: Vec<i64> = places.iter().filter(|p| p.0 == Area::Static).map(|p| p.2).collect();
        assert_eq!(fixed[1] - fixed[0], 8, "{mpi:?}");
    }
}
