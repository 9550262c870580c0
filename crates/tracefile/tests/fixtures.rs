//! What is written today is frozen here: the bytes of made-up traces, packed and plain. Those of real calls, with loops, blocks,
//! threads and more, are in `views/tests`.

use crate::stencil;
use crate::torus;

use refrain_fold::bundle::sites::{Frame, Module};
use refrain_tracefile::{Trace, read, write, write_plain};

const STENCIL: &[u8] = include_bytes!("fixtures/stencil-v3.rfn");
const STENCIL_PLAIN: &[u8] = include_bytes!("fixtures/stencil-v3-plain.rfn");
/// With numbers that depend on the rank.
const TORUS: &[u8] = include_bytes!("fixtures/torus-v3.rfn");
const TORUS_PLAIN: &[u8] = include_bytes!("fixtures/torus-v3-plain.rfn");
/// With call stacks.
const SITES: &[u8] = include_bytes!("fixtures/sites-v3.rfn");
const SITES_PLAIN: &[u8] = include_bytes!("fixtures/sites-v3-plain.rfn");

/// The torus, its calls made from a solver in a library that the program calls, but for the first symbol.
fn sited() -> Trace {
    let mut trace = torus::trace(&[4, 5], 3);
    let program = Module { path: "/home/a/torus".into(), build_id: (0..20).collect() };
    let solver = Module { path: "/home/a/libsolver.so".into(), build_id: [].into() };
    let at = |module: &Module, offset: u64| Frame { module: module.key(), offset };
    let bundle = &mut trace.bundle;
    for (number, symbol) in (0..).zip(&mut bundle.symbols).skip(1) {
        let frames = [
            at(&program, 0x11a9),
            at(&solver, 0x2040 + number % 2 * 0x31),
            at(&solver, 0x1f00 + 24 * number),
        ];
        symbol.site = bundle.sites.add(&frames);
    }
    [program, solver].into_iter().for_each(|module| bundle.sites.add_module(module));
    trace
}

#[test]
fn call_stacks_are_read() {
    let trace = read(SITES).unwrap();
    assert_eq!(trace, sited());
    assert_eq!(read(SITES_PLAIN).unwrap(), trace);
    assert_eq!((write(&trace), write_plain(&trace)), (SITES.to_vec(), SITES_PLAIN.to_vec()));
    assert_eq!(trace.bundle.symbols[0].site, 0);
    assert_eq!(trace.bundle.sites.frames(trace.bundle.symbols[1].site)[2].offset, 0x1f00 + 24);
}

#[test]
fn the_stencil_is_read() {
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
fn rewriting_changes_nothing() {
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

/// For a new version of the format: `scripts/seeds` runs it.
#[test]
#[ignore = "writes the fixtures"]
fn write_fixtures() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let trace = stencil::trace(3, 100);
    std::fs::write(folder.join("stencil-v3.rfn"), write(&trace)).unwrap();
    std::fs::write(folder.join("stencil-v3-plain.rfn"), write_plain(&trace)).unwrap();
    let trace = torus::trace(&[4, 5], 3);
    std::fs::write(folder.join("torus-v3.rfn"), write(&trace)).unwrap();
    std::fs::write(folder.join("torus-v3-plain.rfn"), write_plain(&trace)).unwrap();
    std::fs::write(folder.join("sites-v3.rfn"), write(&sited())).unwrap();
    std::fs::write(folder.join("sites-v3-plain.rfn"), write_plain(&sited())).unwrap();
}
