//! For `crowd`, which a test runs on others.

pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
