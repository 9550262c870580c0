//! All tests of this crate that need nothing of their own: one program, built and linked once.

mod headers;
mod ids;
mod notation;
mod table;
