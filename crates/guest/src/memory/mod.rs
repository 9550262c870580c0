//! The program's memory: its allocations, mappings, static data and what GPU runtimes allocate, each followed from its
//! first byte to its release, so that an address can be told as "segment 3, 16 bytes in".
//!
//! `live` knows what is allocated now. `hooks` stands before the allocator, `imports` and `operators` before calls that do
//! not come there by themselves, `gpu` before the runtimes; `real` is what stands behind all of them. `segments` gives
//! names to what traced calls mention.

pub mod area;
pub mod bitmap;
pub mod freed;
pub mod gpu;
pub mod hooks;
pub mod imports;
pub mod live;
pub mod mappings;
pub mod operators;
pub mod real;
pub mod segments;
pub mod statics;
