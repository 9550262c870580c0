//! All tests of this crate that need nothing of their own: one program, built and linked once.

mod arrows;
mod common;
mod observed;
mod preload;
