//! Where the program comes in: the wrappers of MPI's functions and the guard around what observes them, functions of the
//! program that MPI calls, Fortran's names, what of all this is offered to the dynamic linker, and the constructor.

mod callbacks;
mod code;
mod fatal;
#[cfg(target_arch = "x86_64")]
mod fortran;
mod guard;
mod jumps;
mod late;
mod real;
mod start;
pub mod symbols;
mod wrappers;
