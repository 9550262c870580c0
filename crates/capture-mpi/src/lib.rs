//! The preloaded library: it stands between a program and its MPI library, watches, and changes nothing.
//!
//! Owns: the wrappers of every MPI function, the guard around what observes them, the clock, the call stacks,
//! allocations and threads of the program, and every static Refrain has in a traced process (`state`). Does not own: what a call means
//! (`encode`), how calls are folded (`fold`), bytes on disk (`tracefile`), what MPI library this is (`mpi`).
//!
//! ```text
//! REFRAIN_OUT=app.rfn LD_PRELOAD=librefrain_capture_mpi.so mpiexec -n 4 ./app
//!
//! app: MPI_Send(..) ─> wrappers ─> guard ─> hooks::Recorder::before
//!                                   │ ────> the real PMPI_Send, once; its result goes back as it is
//!                                   └ ────> hooks::Recorder::after
//! ```
//!
//! # The rules of living in someone else's process
//!
//! 1. The real call happens exactly once, with the program's arguments; its result and `errno` go back untouched.
//! 2. What observes runs behind a panic guard and with the thread marked as ours. A fault of ours ends tracing, with one
//!    line on stderr; it never ends the program.
//! 3. We are loaded into shells and launchers too: nothing happens where no trace was asked for, nothing is recorded
//!    before MPI is there, and no function is offered that the program's MPI library lacks.
//! 4. `malloc` is called before any constructor, inside `dlsym`, and with locks held that we cannot see. On its path
//!    there is no allocation, no lock, no lazily initialised static, no thread-local with a destructor. Our own memory
//!    never comes from it: whose `malloc` it is differs from program to program (`heap`).
//! 5. No thread and no file descriptor of ours while the program runs. One exit handler. What happens on a signal is the
//!    program's: of five faults we take note first, and nobody can tell (`signals`).
//! 6. Exceptions and cancellations may unwind through us: wrappers are `C-unwind`, and the thread's mark is undone on drop.

mod apart;
mod callbacks;
pub mod clock;
pub mod config;
mod elf;
pub mod filter;
mod footprint;
#[cfg(target_arch = "x86_64")]
mod fortran;
mod guard;
mod heap;
pub mod hooks;
mod late;
pub mod memory;
mod pages;
mod recorder;
mod reserve;
pub mod signals;
pub mod stacks;
mod start;
pub mod state;
pub mod symbols;
pub mod threads;
mod wrappers;
