//! Takes from a trace what says where and when it was recorded, so that it can be kept as a test:
//! `cargo run -p refrain-tracefile --example scrub -- trace.rfn kept.rfn`

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths = std::env::args_os().skip(1);
    let (Some(from), Some(to)) = (paths.next(), paths.next()) else {
        return Err("give a trace to read and a file to write".into());
    };
    let mut trace = refrain_tracefile::open(from)?;
    let meta = &mut trace.meta;
    meta.started = 1_700_000_000;
    meta.hosts.iter_mut().for_each(|(host, _)| *host = "node".into());
    meta.command = meta.command.iter().map(|word| named(word, ".")).collect();
    // What such a module is known by is its build-id, so that its path is free.
    for module in trace.bundle.sites.modules.values_mut().filter(|module| !module.build_id.is_empty()) {
        module.path = named(&module.path, "/home/me");
    }
    std::fs::write(to, refrain_tracefile::write(&trace))?;
    Ok(())
}

/// A path as if the file were in that folder; another word as it is.
fn named(word: &str, folder: &str) -> String {
    match Path::new(word).file_name() {
        Some(name) if word.contains('/') => format!("{folder}/{}", name.to_string_lossy()),
        _ => word.to_owned(),
    }
}
