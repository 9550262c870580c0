//! All tests of this crate that need nothing of their own: one program, built and linked once.

mod bombs;
mod chunks;
mod fixtures;
mod loops;
mod neighbours;
mod places;
mod pools;
mod references;
mod safety;
mod seal;
mod sides;
mod size;
mod stencil;
mod torus;

/// How often a test with random input goes around: a quarter of all rounds, unless `make test-all` asks for all.
fn rounds(all: u64) -> u64 {
    if std::env::var_os("REFRAIN_LONG").is_some() { all } else { all / 4 }
}
