//! Fortran's names of MPI's functions, and what is known of each.

use std::ffi::CStr;

/// A name and what it stands for.
pub struct Name {
    pub name: &'static CStr,
    /// The function's position in `refrain_model::functions()`.
    pub function: usize,
    /// Words on the stack: arguments, `ierror` and the lengths of strings beyond those in registers.
    pub words: usize,
    /// Arguments that the layer may not pass on as they are meant: statuses, weights of edges, what is handed back.
    pub special: &'static [u8],
    /// Layers may make no call of C for it.
    pub alone: bool,
}

include!(concat!(env!("OUT_DIR"), "/fortran_names.rs"));
