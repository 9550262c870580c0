//! How large a file is, which is what this project is about.

use crate::stencil;
use crate::torus;

use std::io::Write;
use std::process::{Command, Stdio};

fn xz(bytes: &[u8]) -> Option<usize> {
    let mut child =
        Command::new("xz").args(["-9", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdin.take()?.write_all(bytes).ok()?;
    Some(child.wait_with_output().ok()?.stdout.len())
}

fn size(width: u32, steps: u64) -> usize {
    let trace = stencil::trace(width, steps);
    let bytes = refrain_tracefile::write(&trace);
    assert_eq!(refrain_tracefile::read(&bytes).unwrap(), trace);
    let b = &trace.bundle;
    println!(
        "{} ranks, {steps} steps: {} bytes, after xz -9 {:?}; {} symbols, {} structures, {} cohorts, {} streams",
        width * width,
        bytes.len(),
        xz(&bytes),
        b.symbols.len(),
        b.structures.len(),
        b.cohorts.len(),
        b.streams.len(),
    );
    for section in refrain_tracefile::sections(&bytes).unwrap() {
        println!("    {:<10} {:>5} of {:>5}", section.name, section.stored, section.raw);
    }
    if let Some(xz) = xz(&bytes) {
        assert!(xz >= bytes.len(), "a general-purpose compressor gains something");
    }
    bytes.len()
}

#[test]
fn a_stencil_takes_less_than_a_thousand_bytes() {
    let sizes = [(3, 100), (4, 100), (4, 1000), (8, 1000)].map(|(width, steps)| size(width, steps));
    assert!(sizes.iter().all(|&s| s < 1000), "{sizes:?}");
    // Counters grow by a digit now and then; nothing else does.
    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() < 50, "{sizes:?}");
}

#[test]
fn cohorts_cost_little_beyond_their_digest() {
    let mut trace = stencil::trace(4, 100);
    let before = refrain_tracefile::write(&trace).len();
    for i in 0..48 {
        let mut cohort = trace.bundle.cohorts[4].clone();
        cohort.ranks = refrain_fold::ranks::RankList::single(16 + i);
        cohort.lanes = cohort
            .lanes
            .iter()
            .map(|l| refrain_fold::bundle::Lane::same(l.streams().next().unwrap()))
            .collect();
        cohort.digest = u64::from(i).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ 0x9e37_79b9;
        trace.bundle.cohorts.push(cohort);
    }
    let after = refrain_tracefile::write(&trace).len();
    println!("48 cohorts more: {before} -> {after} bytes");
    assert!(after - before < 48 * 11, "{before} -> {after}");
}

/// Numbers grow by a digit now and then; nothing else grows with the ranks.
#[test]
fn functions_of_the_rank_do_not_grow_with_the_ranks() {
    let size = |sides: &[u32]| {
        let trace = torus::trace(sides, 0);
        let bytes = refrain_tracefile::write(&trace);
        assert_eq!(refrain_tracefile::read(&bytes).unwrap(), trace);
        assert_eq!(trace.bundle.cohorts.len(), 1);
        println!("{sides:?}: {} bytes", bytes.len());
        bytes.len()
    };
    let check = |grids: &[&[u32]]| {
        let sizes: Vec<usize> = grids.iter().map(|sides| size(sides)).collect();
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() < 30, "{sizes:?}");
    };
    check(&[&[3, 4], &[4, 4], &[5, 4], &[7, 9], &[16, 16], &[32, 8], &[40, 25]]);
    check(&[&[3, 4, 5], &[4, 4, 4], &[3, 3, 3], &[5, 7, 6], &[8, 8, 8], &[10, 9, 11]]);
    check(&[&[3, 4, 3, 5], &[4, 4, 4, 4], &[6, 5, 3, 7]]);
}

/// A cohort of the inside of a grid without its diagonal, whose boxes follow the side: as all but a line of one box they
/// do not.
#[test]
fn a_set_with_holes_costs_no_more_when_it_is_larger() {
    let sizes = [12u32, 24, 48, 96].map(|side| {
        let mut trace = stencil::trace(3, 100);
        let inside = |x: u32| (1..side - 1).contains(&x);
        let there = |rank: &u32| rank / side != rank % side && inside(rank / side) && inside(rank % side);
        let ranks: Vec<u32> = (0..side * side).filter(there).collect();
        let cohort = &mut trace.bundle.cohorts[4];
        cohort.ranks = refrain_fold::ranks::RankList::from_sorted(&ranks);
        assert!(cohort.ranks.parts.len() > side as usize / 2, "{}", cohort.ranks);
        for lane in &mut cohort.lanes {
            let stream = lane.streams().next().unwrap();
            *lane = refrain_fold::bundle::Lane::same(stream);
        }
        let first = trace.bundle.cohorts[4].clone();
        trace.bundle.cohorts = vec![first];
        let trace = stencil::told(trace);
        for bytes in [refrain_tracefile::write(&trace), refrain_tracefile::write_plain(&trace)] {
            assert_eq!(refrain_tracefile::read(&bytes).unwrap(), trace);
        }
        refrain_tracefile::write(&trace).len()
    });
    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() < 8, "{sizes:?}");
}
