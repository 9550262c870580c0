//! The objects that are loaded into the process, the program's own file and its libraries: one walk over them, which tells
//! when some came or went, and their tables in memory.

pub mod closed;
pub mod elf;
pub mod footprint;

pub use refrain_process::loaded;
