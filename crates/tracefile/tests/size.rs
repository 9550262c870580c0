//! How large a file is, which is what this project is about.

mod stencil;

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
        "{} ranks, {steps} steps: {} bytes, after xz -9 {:?}; {} symbols, {} structures, {} groups, {} streams",
        width * width,
        bytes.len(),
        xz(&bytes),
        b.symbols.len(),
        b.structures.len(),
        b.groups.len(),
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
    let sizes = [(3, 100), (4, 10), (4, 100), (4, 1000), (8, 1000)].map(|(width, steps)| size(width, steps));
    assert!(sizes.iter().all(|&s| s < 1000), "{sizes:?}");
    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() < 60, "{sizes:?}");
}
