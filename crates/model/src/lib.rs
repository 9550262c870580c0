//! The vocabulary of MPI that every other part of Refrain speaks.
//!
//! Owns: the call table (names, stable ids, parameters), the names of MPI's constants, and what a decoded call
//! looks like, and how a user says which calls to record. Does not own: bytes on disk, symbolic ids, any MPI library.
//!
//! ```
//! let send = refrain_model::function("MPI_Send").unwrap();
//! assert_eq!(send.params[3].name, "dest");
//! assert_eq!(send.params[3].kind, refrain_model::Kind::Peer(5));
//! assert_eq!(refrain_model::constant("MPI_INT").unwrap().size, Some(4));
//! ```

#![forbid(unsafe_code)]

mod call;
pub mod choice;
mod constants;
pub mod grid;
mod lossy;
mod numbers;
mod table;
pub mod time;
mod variables;

pub use call::{Address, Area, Call, NUMBER_BITS, Status, Value, maker_of};
pub use constants::{Constant, constant, constant_by_id, constant_of_bit, constants, constants_of};
pub use lossy::{Code, Histograms, Lossy};
pub use numbers::{BadNumbers, Numbers};
pub use table::{
    Amount, CType, Class, Cond, Dir, Effect, FUNCTION_COUNT, Function, Kind, Len, Param, Returns, Scope,
    families, function, function_by_id, functions,
};
pub use variables::unknown_variable;
