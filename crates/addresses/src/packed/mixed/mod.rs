//! The smallest form: every reference is told in binary decisions, whose probabilities are mixed from what followed many
//! histories. It takes its time.

mod bits;
mod chain;
mod coder;
mod logistic;
mod matches;
mod model;

pub(crate) use coder::{Reading, Writing};
pub(crate) use model::Model;

/// A hash of two numbers, all of whose bits depend on all of theirs, or nearly.
#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let mixed = (a ^ b.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29 ^ b >> 7
}

/// Where in a table of 2^`bits` entries something with this hash is.
#[inline(always)]
fn spread(hash: u64, bits: u32) -> usize {
    (hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> (64 - bits)) as usize
}
