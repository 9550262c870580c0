//! Every call of one rank of a folded trace, decoded, in order. Other ranks are not expanded.

use refrain_fold::bundle::{Bundle, Walk};
use refrain_model::Call;

use crate::decoder::Decoder;
use crate::digest::Digest;
use crate::error::Error;
use crate::hash::hash_bytes;
use crate::layout::Layout;
use crate::polls::Waiting;

pub struct Calls<'a> {
    bundle: &'a Bundle,
    walk: Walk<'a>,
    decoder: Decoder,
    /// By symbol; a layout is read once and used for every occurrence.
    layouts: Vec<Option<(Layout, u64)>>,
    digest: Digest,
    failed: bool,
    waiting: Waiting,
}

impl<'a> Calls<'a> {
    pub fn new(bundle: &'a Bundle, rank: u32, thread: u32) -> Result<Calls<'a>, Error> {
        let mut decoder = Decoder::new(rank);
        // Communicators that other threads of the rank made have to be known by name here too.
        for other in bundle.threads(rank) {
            if other != thread {
                let mut calls = Calls::with(bundle, rank, other, decoder)?;
                for call in &mut calls {
                    call?;
                }
                decoder = calls.decoder;
            }
        }
        Calls::with(bundle, rank, thread, decoder)
    }

    fn with(bundle: &'a Bundle, rank: u32, thread: u32, decoder: Decoder) -> Result<Calls<'a>, Error> {
        let walk = Walk::new(bundle, rank, thread).map_err(Error::Trace)?;
        Ok(Calls {
            bundle,
            walk: walk.ok_or(Error::NoSuchRank { rank, thread })?,
            decoder,
            layouts: vec![None; bundle.symbols.len()],
            digest: Digest::default(),
            failed: false,
            waiting: Waiting::default(),
        })
    }

    /// Of the calls read so far. After the last one it equals the digest taken while the program ran.
    pub fn digest(&self) -> u64 {
        self.digest.get()
    }

    fn decode(&mut self, symbol: u32) -> Result<Call, Error> {
        let index = symbol as usize;
        if self.layouts[index].is_none() {
            let bytes = &self.bundle.symbols[index].bytes;
            self.layouts[index] = Some((Layout::parse(bytes)?, hash_bytes(bytes)));
        }
        let Some((layout, hash)) = &self.layouts[index] else {
            return Err(Error::BadSymbol { function: "?", at: 0 });
        };
        if layout.lanes != self.bundle.symbols[index].lanes {
            return Err(Error::BadSymbol { function: layout.function.name, at: 0 });
        }
        let (digest, walk) = (&mut self.digest, &mut self.walk);
        digest.symbol(*hash);
        let mut missing = false;
        let mut values = Vec::new();
        let mut next = |lane| {
            let value = walk.value(lane).unwrap_or_else(|| {
                missing = true;
                0
            });
            digest.value(value);
            if layout.polls.is_some() {
                values.push((lane, value));
            }
            value
        };
        let mut call = self.decoder.call(layout, &mut next)?;
        if let Some(lane) = layout.polls {
            let polls = next(lane);
            self.waiting = Waiting::expand(&mut self.decoder, layout, &values, polls, call)?;
            call = self.waiting.next().ok_or(Error::BadSymbol { function: layout.function.name, at: 0 })?;
        }
        if missing {
            return Err(Error::BadSymbol { function: call.function.name, at: 0 });
        }
        Ok(call)
    }
}

impl Iterator for Calls<'_> {
    type Item = Result<Call, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if let Some(call) = self.waiting.next() {
            return Some(Ok(call));
        }
        let symbol = self.walk.next_symbol()?;
        let call = self.decode(symbol);
        self.failed = call.is_err();
        Some(call)
    }
}
