//! A call as observed -> a rank-neutral symbol and the numbers that hang off it, and back.
//!
//! Owns: symbolic ids, request pools, communicator names, relative ranks, the split of a call into *symbol* (function,
//! communicator, datatype, operation, named sentinels, which arrays are there) and *values* (counts, peers, tags,
//! displacements, statuses, results). Does not own: any MPI library (see [`Host`]), folding, files.
//!
//! The writing side is [`Encoder`], with [`Memo`] for calls it has seen before and [`Tape`], which folds what is written;
//! the reading side is [`Layout`] (what a symbol's bytes say) and [`Decoder`] (a symbol and its numbers as a call);
//! [`Reader`] gives the [`Calls`] of a rank of a folded trace. Both sides are driven by the call table, parameter by parameter, in the same
//! order.
//!
//! ```no_run
//! # fn bundle() -> refrain_fold::bundle::Bundle { unimplemented!() }
//! let bundle = bundle();
//! for call in refrain_encode::Calls::new(&bundle, 0, 0).unwrap() {
//!     println!("{}", call.unwrap().function.name);
//! }
//! ```

#![forbid(unsafe_code)]

mod classes;
mod comms;
mod completions;
mod count;
mod decoder;
mod defined;
mod digest;
mod drawn;
mod encoder;
mod error;
mod facts;
mod hash;
mod host;
mod journal;
mod layout;
mod lossy;
mod memo;
mod objects;
mod params;
mod polls;
mod reader;
mod record;
mod requests;
mod seek;
mod shape;
mod sharing;
mod structure;
mod sums;
mod tables;
mod tape;
mod wire;

pub use classes::{Apart, ClassLanes};
pub use comms::Later;
pub use count::{calls_of, calls_of_all, elements_of_all};
pub use decoder::{Decoder, MOST_ELEMENTS, allow_elements, meaning, most_elements};
pub use digest::Digest;
pub use drawn::Draw;
pub use encoder::{Before, Encoder};
pub use error::Error;
pub use facts::Facts;
pub use hash::{hash_bytes, hash_symbol};
pub use host::{CommInfo, DatatypeInfo, Host, Memory, RawStatus, Topology};
pub use journal::{Journal, replay};
pub use layout::{DatatypeFacts, Layout, NewComm, Outcome, Slot};
pub use lossy::{Agreed, Tags, lose};
pub use memo::{Memo, Now};
pub use params::Message;
pub use reader::{Calls, Reader};
pub use record::{Record, Values};
pub use requests::{Given, Requests};
pub use seek::Taken;
pub use sharing::{Shared, Sharing, objects_of};
pub use structure::Folding;
pub use tables::{Crowd, Peers, Tables, stand_for};
pub use tape::{Spent, Tape};
