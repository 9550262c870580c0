//! Turns a trace file into its plain form, which is what `src/prime.bin` holds:
//! `cargo run -p refrain-tracefile --example prime -- typical.rfn src/prime.bin`
//!
//! A new prime changes what every packed file means: it needs a new format version.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths = std::env::args_os().skip(1);
    let (Some(from), Some(to)) = (paths.next(), paths.next()) else {
        return Err("give a trace to read and a file to write".into());
    };
    let trace = refrain_tracefile::open(from)?;
    std::fs::write(to, refrain_tracefile::write_plain(&trace))?;
    Ok(())
}
