//! The only code that talks to an MPI library.
//!
//! Owns: what MPI's constants, handles and statuses look like in each family of libraries; finding the library in the
//! running process and its functions by name; the few calls Refrain makes itself; bytes between ranks.
//!
//! Does not own: what the program's calls mean (the call table), wrappers, traces. It links with no MPI library, and
//! never finds the object it is part of, so it is safe in a preloaded library that defines MPI's names.
//!
//! ```
//! use refrain_mpi::{Library, Pmpi};
//! if let Some(library) = Library::find() {
//!     let abi = library.abi()?;
//!     let pmpi = unsafe { Pmpi::new(&library, &abi)? }; // SAFETY: abi and library belong together
//!     println!("{}: rank {:?}", library.path().display(), pmpi.comm_rank(abi.comm_world));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abi;
mod constants;
mod library;
mod mpi_transport;
mod objects;
mod pmpi;
mod status;
mod transport;

pub use abi::{Abi, MissingConstant, handle_size};
pub use constants::{Class, Constant, Family, Kind, Source, constants};
pub use library::{Dlsym, Library, Owner, is_library};
pub use mpi_transport::{MpiTransport, Waiting};
pub use pmpi::{Code, MissingFunction, Neighbours, Pmpi, ReturningErrors, ThreadLevel};
pub use status::RawStatus;
pub use transport::{LocalTransport, Transport, TransportError, local};
