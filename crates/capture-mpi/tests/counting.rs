//! What the wrappers observe, with the recorder that counts (`--features count-calls`).

mod common;

use common::{installed, library, scratch, text};
use std::fs;

/// Calls of one rank, as `name count` words.
fn counts(mpi: common::Mpi, program: &str, ranks: usize, variables: &[(&str, &str)]) -> Vec<String> {
    let folder = scratch().join(format!("counts.{program}.{}.{}", mpi.0, variables.len()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let compiled = mpi.compile(program);
    let (out, library) = (folder.join("n"), library());
    let mut all = vec![("LD_PRELOAD", &*library), ("REFRAIN_OUT", out.to_str().unwrap())];
    all.extend(variables);
    mpi.run(ranks, &compiled, &[], &all);
    let files = fs::read_dir(&folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let mut ranks: Vec<String> =
        files.map(|bytes| text(&bytes).replace('\n', " ").trim().to_owned()).collect();
    ranks.sort();
    ranks
}

fn check(program: &str, variables: &[(&str, &str)], expected: &str) {
    for mpi in installed() {
        assert_eq!(counts(mpi, program, 2, variables), [expected, expected], "{mpi:?} {program}");
    }
}

const RING: &str = "MPI_Allreduce 10 MPI_Barrier 2 MPI_Comm_compare 1 MPI_Comm_rank 1 MPI_Comm_set_errhandler 1 \
                    MPI_Comm_size 1 MPI_Finalize 1 MPI_Init 1 MPI_Pcontrol 2 MPI_Send 1 MPI_Sendrecv 10 \
                    MPI_Wtick 1 MPI_Wtime 1";
const FORTRAN: &str = "MPI_Allreduce 1 MPI_Comm_rank 1 MPI_Comm_size 1 MPI_Finalize 1 MPI_Init 1 MPI_Irecv 5 \
                       MPI_Isend 5 MPI_Waitall 5";

#[test]
fn every_call_is_seen_once() {
    check("ring.c", &[], &format!("whole true {RING}"));
    check("ring.c", &[("REFRAIN_TIME", "off"), ("REFRAIN_POINTERS", "off")], &format!("whole true {RING}"));
}

#[test]
fn fortran_is_seen_by_every_binding() {
    check("old.f90", &[], &format!("whole true {FORTRAN}"));
    check("f08.f90", &[], &format!("whole true {FORTRAN}"));
}

/// After a fault nothing is recorded, but `MPI_Finalize` is still met: other ranks may be waiting there.
#[test]
fn a_stopped_process_still_comes_to_the_end() {
    check(
        "ring.c",
        &[("REFRAIN_TEST_PANIC", "3"), ("REFRAIN_SPLIT", "on"), ("REFRAIN_SUMMARY", "0")],
        "whole false MPI_Comm_rank 1 MPI_Finalize 1 MPI_Init 1",
    );
}

/// Names follow use; a freed segment's name is used again; static memory keeps its distances.
#[test]
fn pointers_are_placed() {
    for mpi in installed() {
        let ranks = counts(mpi, "places.c", 1, &[]);
        let places: Vec<&str> = ranks[0].split(' ').filter(|word| word.contains('#')).collect();
        let heap: Vec<&&str> = places.iter().filter(|place| !place.starts_with("Static")).collect();
        let expected = "Heap#0+0 Heap#0+999 Heap#1+7 Heap#2+2097152 Heap#0+0 \
                        Stack#0+0 Stack#1+0 Stack#0+0 \
                        Heap#0+8191 Heap#1+0 Heap#2+0 Heap#2+5242879 \
                        Heap#3+9999 Heap#3+1 \
                        Heap#1+0 Heap#1+0 Heap#1+0 Number#0+0";
        assert_eq!(heap, expected.split(' ').collect::<Vec<_>>().iter().collect::<Vec<_>>(), "{mpi:?}");
        let offset = |place: &str| place.strip_prefix("Static#0+").and_then(|n| n.parse::<i64>().ok());
        let (first, second) = (offset(places[5]).unwrap(), offset(places[6]).unwrap());
        assert_eq!(second - first, 8, "{mpi:?}");
    }
}
