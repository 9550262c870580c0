//! All tests of this crate that need nothing of their own: one program, built and linked once.

mod calls;
mod common;
mod every_function;
mod journal;
mod lossy;
mod memo;
mod polls;
mod texts;
