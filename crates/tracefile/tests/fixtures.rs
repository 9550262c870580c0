//! Files written by earlier versions must stay readable. After a change of the format add a fixture; keep the old.

mod stencil;
mod torus;

use refrain_tracefile::{read, write, write_plain};

const STENCIL: &[u8] = include_bytes!("fixtures/stencil-v1.rfn");
const STENCIL_PLAIN: &[u8] = include_bytes!("fixtures/stencil-v1-plain.rfn");
/// With numbers that depend on the rank.
const TORUS: &[u8] = include_bytes!("fixtures/torus-v1.rfn");
const TORUS_PLAIN: &[u8] = include_bytes!("fixtures/torus-v1-plain.rfn");

#[test]
fn version_1_is_read() {
    let trace = read(STENCIL).unwrap();
    assert_eq!(trace, read(STENCIL_PLAIN).unwrap());
    assert_eq!(trace.meta.command, ["mpiexec", "-n", "9", "./stencil", "100"]);
    assert_eq!((trace.bundle.cohorts.len(), trace.bundle.symbols.len()), (9, 35));
    let cohort = trace.bundle.cohort_of(4, 0).unwrap();
    let mut walk = refrain_fold::bundle::Walk::new(&trace.bundle, 4, 0).unwrap().unwrap();
    let mut calls = 0;
    while walk.next_symbol().is_some() {
        calls += 1;
    }
    assert_eq!(calls, trace.bundle.structures[cohort.structure as usize].rules().unwrap().len());
}

#[test]
fn rewriting_version_1_changes_nothing() {
    assert_eq!(write(&read(STENCIL).unwrap()), STENCIL);
    assert_eq!(write_plain(&read(STENCIL).unwrap()), STENCIL_PLAIN);
    assert_eq!(write(&read(TORUS_PLAIN).unwrap()), TORUS);
    assert_eq!(write_plain(&read(TORUS).unwrap()), TORUS_PLAIN);
}

#[test]
fn functions_of_the_rank_are_read() {
    let trace = read(TORUS).unwrap();
    assert_eq!(trace.bundle.cohorts.len(), 1);
    for rank in 0..20 {
        let mut walk = refrain_fold::bundle::Walk::new(&trace.bundle, rank, 0).unwrap().unwrap();
        assert!(walk.next_symbol().is_some());
        let coordinates = [walk.value(0), walk.value(0)];
        assert_eq!(coordinates, [Some(i64::from(rank / 5)), Some(i64::from(rank % 5))]);
    }
}

/// `cargo test -p refrain-tracefile --test fixtures -- --ignored`, for a new version of the format only.
#[test]
#[ignore = "writes the fixtures"]
fn write_fixtures() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let trace = stencil::trace(3, 100);
    std::fs::write(folder.join("stencil-v1.rfn"), write(&trace)).unwrap();
    std::fs::write(folder.join("stencil-v1-plain.rfn"), write_plain(&trace)).unwrap();
    let trace = torus::trace(&[4, 5], 3);
    std::fs::write(folder.join("torus-v1.rfn"), write(&trace)).unwrap();
    std::fs::write(folder.join("torus-v1-plain.rfn"), write_plain(&trace)).unwrap();
}
