//! What any part of ours asks of the process that it is in, whether that is a program of ours or one that is traced.
//!
//! Owns: the one walk over the loaded objects, writes whose signals do not reach the program, time that was waited.
//! Does not own: anything that takes the place of a function of the program's (`guest`). It defines no symbol, and has no static.
//!
//! ```
//! use refrain_process::loaded::walk;
//! let mut objects = 0;
//! walk(|_| {
//!     objects += 1;
//!     false
//! });
//! assert!(objects > 0);
//! ```

pub mod apart;
pub mod loaded;
pub mod waited;
