//! What a tracer needs of the process that it lives in, whatever it traces: a line on stderr, whether it is to do anything
//! at all, a clock, memory of its own, and the functions that stand behind those it has taken the place of.

pub mod clock;
pub mod cores;
pub mod filter;
pub mod hash;
mod heap;
pub mod host;
pub mod mode;
pub mod next;
pub mod pages;
pub mod reserve;
pub mod say;
pub mod stack;

pub use refrain_process::{apart, waited};
