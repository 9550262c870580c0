//! Address traces: what a program read, wrote and fetched, in the formats that such traces come in.
//!
//! Owns: references in batches, the formats' bytes (described in ADDRESSES.md), telling formats apart, compressed files,
//! statistics, simulated caches.
//! Does not own: the command line, how numbers are printed. Nothing here knows MPI.
//!
//! ```
//! use refrain_addresses::{Batch, Format, Reader, Writer};
//! let din: &[u8] = b"2 430d70\n2 430d74\n0 1000acac\n";
//! let mut reader = Reader::new(Box::new(din), Format::Din).unwrap();
//! let mut writer = Writer::new(Vec::new(), Format::Pdats, reader.fields()).unwrap();
//! let mut batch = Batch::new();
//! while reader.read(&mut batch).unwrap() {
//!     writer.write(&batch).unwrap();
//! }
//! assert_eq!(writer.finish().unwrap().len(), 16 + 5 + 1 + 5);
//! ```

#![forbid(unsafe_code)]

mod compression;
mod detect;
mod error;
mod format;
mod guessed;
mod input;
mod lz4;
mod lzw;
mod output;
mod packed;
mod pdats;
mod pdi;
mod raw;
mod reader;
mod reference;
mod shape;
pub mod simulate;
pub mod stats;
mod text;
mod thin;
mod writer;

pub use compression::{Compression, Packed};
pub use detect::{of_name, open};
pub use error::Error;
pub use format::Format;
pub use guessed::{Followed, Guessed};
pub use packed::{Division, open_after};
pub use pdi::{Dictionary, WordCounts, dictionary_of};
pub use reader::Reader;
pub use reference::{BATCH, Batch, Fields, KINDS, Reference, kind};
pub use shape::Shape;
pub use thin::{Filter, Sample, Thin};
pub use writer::{Options, Writer};
