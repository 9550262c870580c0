//! All tests of this crate that need nothing of their own: one program, built and linked once.

mod bombs;
mod chunks;
mod fixtures;
mod loops;
mod neighbours;
mod places;
mod pools;
mod references;
mod rounds;
mod safety;
mod seal;
mod sides;
mod size;
mod stencil;
mod torus;

use rounds::rounds;
