//! Folds sequences of events while they happen, and merges many such sequences into one.
//!
//! A program that repeats itself makes long sequences with little in them: a log, a trace of calls, the references to memory,
//! the notes of a song. This crate keeps such a sequence in about the space that its *pattern* takes, without loss. It folds
//! while events come, so that nobody needs to hold the sequence. It does three things:
//!
//! | what comes | what is kept | where |
//! |---|---|---|
//! | *symbols*: which kind of event, in which order | a grammar with repeat counts, or loops within loops | [`grammar`], [`loops`] |
//! | *numbers* beside the symbols: sizes, times, addresses | constants, strides, nested strides, periods; what has no shape is packed | [`stream`] |
//! | many sequences, of *ranks* (processes, threads, machines, voices) | what is equal, once, with the list of ranks; numbers that differ, as functions of the rank | [`bundle`], [`ranks`] |
//!
//! ```
//! use refrain_fold::{grammar::Grammar, ranks::RankList, stream::Folder};
//! assert_eq!((0..3000).map(|i| i % 3).collect::<Grammar>().items(), 4); // (0 1 2)x1000
//! let mut offsets = Folder::new();
//! (0..3000).for_each(|i| offsets.push(8 * (i % 3)));
//! assert_eq!(offsets.finish().terms.len(), 1); // 0, 8, 16, over and over
//! assert_eq!(RankList::from_iter([7, 8, 10, 11]).parts.len(), 1); // 2 x 2 ranks
//! ```
//!
//! It knows nothing of MPI, files, clocks or processes, and has no `unsafe` code. It depends on `rustc-hash`, `thiserror` and `xxhash-rust`
//! alone. Symbols are opaque: you say which bytes stand for a kind of event.
//!
//! # The types, in the order in which you meet them
//!
//! 1. Give each kind of event a number, its symbol, from 0 on. Decide which of its numbers hang off it: these are its *lanes*.
//! 2. Push the symbols into a folder as they come. [`grammar::Folder`] makes a [`Grammar`](grammar::Grammar), which is the
//!    smallest. [`loops::Folder`] makes a tree of [`Loops`](loops::Loops), in which iterations that are alike but not equal are
//!    one body.
//! 3. Push the numbers of each lane into a [`stream::Folder`] of their own. It makes a [`Stream`](stream::Stream). A stream is
//!    endless: how many of its numbers count follows from how often the symbol came.
//! 4. All folders are a [`Fold`]. [`Bounded`] gives any of them a bound on its memory.
//! 5. Put it together: a [`SymbolEntry`](bundle::SymbolEntry) for each symbol, a [`ThreadPart`](bundle::ThreadPart) for each
//!    sequence, and [`Bundle::of_rank`](bundle::Bundle::of_rank) makes the [`Bundle`](bundle::Bundle) of one rank.
//! 6. [`bundle::merge`] makes one bundle of two. [`bundle::gather`] merges those of many processes in a tree, over a
//!    [`Link`](bundle::Link) of yours, and sends only what the other side lacks.
//!    [`Bundle::canonical`](bundle::Bundle::canonical) then puts it in an order that depends on nothing but its content.
//! 7. [`Bundle::to_bytes`](bundle::Bundle::to_bytes) and [`Bundle::from_bytes`](bundle::Bundle::from_bytes) write and read it.
//! 8. A [`Walk`](bundle::Walk) goes through the events of one rank, with their numbers, in time and memory that do not depend on
//!    the other ranks. Whoever asks how often something happened asks the folded form
//!    ([`Bundle::counts`](bundle::Bundle::counts), [`Stream::sum`](stream::Stream::sum)), which takes time in its size.
//!
//! Below that lie [`ranks`] (sets and functions of ranks), [`pack`] and [`entropy`] (numbers into bytes).
//!
//! # A complete example: a round
//!
//! Four voices sing *Frère Jacques* a hundred times. Each begins two bars after the one before. An event is a note; its symbol
//! is the pitch, its numbers are when it begins and how long it is.
//!
//! ```
//! use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart, Walk, merge};
//! use refrain_fold::{grammar, loops, stream};
//!
//! /// Pitch, and length in eighths. Each phrase is sung twice.
//! const SONG: [&[(&str, i64)]; 4] = [
//!     &[("c", 2), ("d", 2), ("e", 2), ("c", 2)],
//!     &[("e", 2), ("f", 2), ("g", 4)],
//!     &[("g", 1), ("a", 1), ("g", 1), ("f", 1), ("e", 2), ("c", 2)],
//!     &[("c", 2), ("G", 2), ("c", 4)],
//! ];
//!
//! /// What a voice sings: pitch, beginning, length.
//! fn sung(voice: u32) -> Vec<(&'static str, i64, i64)> {
//!     let mut when = 16 * i64::from(voice);
//!     let refrain = || SONG.iter().flat_map(|phrase| [phrase, phrase]).copied().flatten();
//!     let notes = (0..100).flat_map(|_| refrain());
//!     let begin = |&(pitch, length): &(_, i64)| {
//!         when += length;
//!         (pitch, when - length, length)
//!     };
//!     notes.map(begin).collect()
//! }
//!
//! /// A voice records itself: it folds symbols and numbers as they come.
//! fn record(voice: u32, in_loops: bool) -> Bundle {
//!     let mut pitches: Vec<&str> = Vec::new();
//!     let mut rules = grammar::Folder::new();
//!     let mut tree = loops::Folder::new(loops::Matching::Elastic);
//!     let mut lanes: Vec<[stream::Folder; 2]> = Vec::new();
//!     for (pitch, when, length) in sung(voice) {
//!         let symbol = pitches.iter().position(|&known| known == pitch).unwrap_or_else(|| {
//!             pitches.push(pitch);
//!             lanes.push([stream::Folder::new(), stream::Folder::new()]);
//!             pitches.len() - 1
//!         });
//!         // A recording has one of the two.
//!         match in_loops {
//!             false => rules.push(symbol as u32),
//!             true => tree.push(symbol as u32),
//!         }
//!         lanes[symbol][0].push(when);
//!         lanes[symbol][1].push(length);
//!     }
//!     let (structure, times) = match in_loops {
//!         false => (rules.finish().into(), Vec::new()),
//!         true => {
//!             let folded = tree.finish();
//!             (folded.loops.into(), folded.times.into_iter().zip(folded.lengths).collect())
//!         }
//!     };
//!     let finish = |lanes: &[stream::Folder; 2]| lanes.iter().map(stream::Folder::finish).collect();
//!     let lengths = |lanes: &[stream::Folder; 2]| lanes.iter().map(stream::Folder::len).collect();
//!     let part = ThreadPart {
//!         thread: 0,
//!         structure,
//!         times,
//!         lanes: lanes.iter().map(finish).collect(),
//!         lengths: lanes.iter().map(lengths).collect(),
//!         digest: 0,
//!     };
//!     let symbol = |pitch: &&str| SymbolEntry {
//!         bytes: pitch.as_bytes().into(),
//!         site: 0,
//!         lanes: 2,
//!         tally: Tally::NONE,
//!         classes: Default::default(),
//!     };
//!     Bundle::of_rank((voice, 4), pitches.iter().map(symbol).collect(), vec![part]).unwrap()
//! }
//!
//! for in_loops in [false, true] {
//!     // What is equal is there once: all voices sing the same notes. Only when they begin depends on the voice.
//!     let voices = (0..4).map(|voice| record(voice, in_loops));
//!     let mut round = voices.reduce(|a, b| merge(a, b).unwrap()).unwrap();
//!     round.canonical().unwrap();
//!     assert_eq!((round.structures.len(), round.cohorts.len()), (1, 1));
//!     assert_eq!(round.cohorts[0].ranks.to_string(), "0-3");
//!
//!     // Written down, 12,800 notes with two numbers each take little more than a kilobyte. Three of the voices are
//!     // nearly free.
//!     let (one, all) = (record(0, in_loops).to_bytes(), round.to_bytes());
//!     assert!(all.len() < 1500, "{} bytes", all.len());
//!     assert!(all.len() < 2 * one.len(), "{} and {} bytes", one.len(), all.len());
//!
//!     // Read back, each voice sings what it sang.
//!     let back = Bundle::from_bytes(&all).unwrap();
//!     for voice in 0..4 {
//!         let mut walk = Walk::new(&back, voice, 0).unwrap().unwrap();
//!         let heard = std::iter::from_fn(|| {
//!             let symbol = walk.next_symbol()?;
//!             Some((&*back.symbols[symbol as usize].bytes, walk.value(0)?, walk.value(1)?))
//!         });
//!         assert!(heard.eq(sung(voice).into_iter().map(|(pitch, when, length)| (pitch.as_bytes(), when, length))));
//!     }
//! }
//! ```
//!
//! `examples/sorting.rs` folds the memory references of a sort: numbers that have no shape, with a bound on memory.
//!
//! # What it costs
//!
//! - *Time.* While the pattern holds, a push is a comparison with what is expected next: some nanoseconds. Where the pattern is
//!   new, a push takes constant time on average. `cargo bench -p refrain-fold --bench push` measures a push of a symbol and
//!   of a number, from regular to random.
//! - *Memory while folding* follows the folded form. Where nothing repeats, it grows with the sequence, up to the bound of
//!   [`Bounded`]. [`Fold::memory`] says how much is held.
//! - *Size.* A loop costs its body once, however often it runs. A constant or a stride costs one term. Numbers without a shape
//!   cost little more than their entropy.
//! - *Merging* takes time in the size of the folded forms, not of the sequences. Ranks that do the same with other numbers cost
//!   nothing, if the numbers are a function of the rank.
//!
//! # Limits
//!
//! - Symbols have 32 bits, numbers 64 bits. All sums of numbers wrap, so an address is as good as a count.
//! - A sequence has at most 2^64 symbols. A bundle has at most 2^24 members, ranks times threads ([`bundle::MOST_RANKS`]).
//! - A bundle has the order of each sequence. It has no order between sequences; numbers that are times give one.
//! - The same sequence may have several grammars. Equal sequences, pushed one by one from the start, have equal grammars.
//!   [`Fold::push_n`] and merging keep the sequence, not always the rules.
//! - Trees of loops deeper than [`loops::merge::DEEPEST`] are not merged into one.
//! - [`Bundle::to_bytes`](bundle::Bundle::to_bytes) is for transport between equal versions of this crate. It has no version and
//!   no checksum: who keeps it in a file adds them.
//! - What comes from outside is checked: `from_bytes` and `validate` return an error on anything that is not well formed.
//!   Bytes that are well formed may still stand for more events than anybody can walk through.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bundle;
pub mod entropy;
mod folding;
pub mod grammar;
pub mod loops;
pub mod pack;
mod print;
pub mod ranks;
mod round;
pub mod stream;

/// What names symbols, call stacks and modules in files (FORMAT.md): taken once for each of these, never for a call.
pub use xxhash_rust::xxh64::xxh64;

/// Maps for what is looked up often: addresses, handles, symbols and their hashes. They take no seed from the system, so they
/// serve in a traced program too. Whoever chooses the keys can choose them to collide: a file that is made so can make its
/// reader slow, not wrong. Their order, which is the same in every run, is in no file.
pub use rustc_hash::{FxHashMap as FastMap, FxHashSet as FastSet};

pub use folding::{Bounded, Fold, Piece};

#[cfg(test)]
mod testing;
