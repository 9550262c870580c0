//! The preloaded library: it stands between a program and its MPI library, watches, and changes nothing.
//!
//! Owns: the wrappers of every MPI function, the guard around what observes them, the recorder that joins encoding, folding
//! and merging. Does not own: what any tracer needs inside a process (`guest`, where the rules of living there are too), what
//! a call means (`encode`), how calls are folded (`fold`), bytes on disk (`tracefile`), what MPI library this is (`mpi`).
//!
//! ```text
//! REFRAIN_OUT=app.rfn LD_PRELOAD=librefrain_capture_mpi.so mpiexec -n 4 ./app
//!
//! app: MPI_Send(..) ─> wrappers ─> guard ─> hooks::Recorder::before
//!                                   │ ────> the real PMPI_Send, once; its result goes back as it is
//!                                   └ ────> hooks::Recorder::after
//! ```
//!
//! # The rooms, lowest floor first
//!
//! | floor | rooms |
//! |---|---|
//! | 0 | what was asked for (config), what a recorder is told (hooks), the program's MPI library (library), places that are watched (marked), what tests ask for (switches) |
//! | 1 | the end of the process in the words of parts (endings), names of files (files), which calls are kept (filter), what a thread is doing (flight), files that stay open (held), which calls cannot be kept (missing), mappings of part files (tail), statuses of ours (wild) |
//! | 2 | part files (parts), times of every call (log), what is recorded and by which thread (recording) |
//! | 3 | every call (recorder), the end: clocks, collect, lose, gather, times, write, settle (merge) |
//! | 4 | wrappers, guard, callbacks, Fortran, symbols, late libraries, the constructor (entry) |
//!
//! `tests/arrows.rs` holds the files to this: no arrow runs up, and none in a circle.
//!
//! # Every static of this crate
//!
//! Beside those of `guest`. All of them are usable before any constructor has run: the first calls come from the dynamic
//! linker. The same test holds this table to what is there.
//!
//! | file | statics | what they keep |
//! |---|---|---|
//! | `config` | `CONFIG` | what was asked for; written once |
//! | `library` | `LIBRARY`, `WAITING` | the program's MPI library, and whether one may still come |
//! | `filter` | `FATES`, `GATE` | what becomes of each function's calls, and what decides that |
//! | `flight` | `MAKES`, `NARROW` | which functions make requests, and how long those are |
//! | `flight` | `ERRORS` | what classes of errors are called |
//! | `missing` | `JUMPS`, `TORN_OUT`, `UNSEEN` | how many calls are missing, by reason |
//! | `wild` | `NUMBERS`, `MADE` | what any source is called, and whether a request asks for it |
//! | `recording` | `RECORDER` | what all threads share, and the stream of each |
//! | `recording` | `OBJECTS`, `PLACES`, `SEEN` | generations, for threads that recognise a call without the lock |
//! | `recording` | `EVERY_CALL` | whether times of every call are asked for |
//! | `recording` | `KEPT` | whether threads keep parts |
//! | `merge::absence` | `NOT_COMING` | the link that says that this rank does not come |
//! | `entry::real` | `REAL`, `INSTEAD` | MPI's functions behind ours, and who says what a replay calls in their place |
//! | `entry::code` | `CODE` | whose code lies where |
//! | `entry::guard` | `STARTED` | whether MPI was initialised |
//! | `switches` | `PANIC_AT`, `OBSERVED` | a fault that a test asks for; only in a library for tests |
//! | `entry::callbacks` | `CALLBACKS`, `STAND_INS` | functions of the program that MPI calls, and ours in their place |
//! | `entry::fatal` | `REAL` | the library's functions for errors behind ours |
//! | `entry::fortran` | `REAL` | the layer's functions behind Fortran's names |
//! | `entry::fortran::frame` | `SENTINELS` | constants of Fortran that its layer leaves as they are |
//! | `entry::late` | `DLOPEN`, `OPENERS` | the C library's `dlopen`, and who is opening something |
//! | `entry::start` | `CONSTRUCTOR` | where the dynamic linker finds the constructor |
//!
//! `entry::fortran::names` has one more, a constant table that `build.rs` writes.

mod config;
mod endings;
mod entry;
mod files;
mod filter;
mod flight;
mod held;
mod hooks;
mod library;
mod log;
mod marked;
mod merge;
mod missing;
mod parts;
mod recorder;
mod recording;
mod switches;
mod tail;
mod wild;
