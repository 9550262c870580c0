//! Stacks that were unwound before, recognised by comparing words on the stack.
//!
//! Why that is enough: a frame is known by where its call returns to and by where on the stack that is written. The code
//! at a return address decides, through the compiler's tables, where its caller's return address is written: at a fixed
//! distance from its own (`Cfa::Stack`), or from its frame pointer (`Cfa::Frame`). In the first case that is the place
//! where it was when the stack was unwound; if the same return address still stands there, the caller is the same code,
//! at the same place. In the second the frame pointer is compared too, where an inner frame has saved it (at a fixed
//! distance from that frame's end, which is known by the same argument) or in its register. A frame that aligns its stack
//! has written where it ends (`Cfa::Written`), which is then compared as well. So, frame by frame outwards, the whole stack
//! is the same. Frames of which neither is known are not remembered, and unwound each time.
//!
//! Frames are kept in pieces of `PIECE`, counted from the outermost, so that stacks share the pieces they have in common.
//! Only stacks that come again are kept here: see `Stacks::look_outwards`.

use std::hash::Hasher;
use std::ops::Range;

use refrain_fold::FastMap;
use rustc_hash::FxHasher;

use crate::process::hash::add;

use super::cfi::{Cfa, Saved};
use super::unwind::Raw;
use crate::threads::marks::Caller;

/// Frames in a piece.
pub const PIECE: usize = 32;
/// More than a program makes traced calls from again and again. Where there are more, no other is taken in for so many times, and
/// then all are forgotten.
const MOST_PIECES: usize = 1 << 13;
const MOST_WORDS: usize = 1 << 18;
const REFUSED: usize = 8 * MOST_PIECES;
/// Shapes of an innermost frame, and pieces that may be the right one, that are looked at. To unwind costs less than to look
/// at more. Many may be the right one where the innermost piece is short: it is then the same in many stacks.
const MOST_SHAPES: usize = 4;
const MOST_TRIED: usize = 4;

const NONE: u32 = u32::MAX;
/// Stands for any slot: of a return address that says it all.
const ANYWHERE: usize = 0;

#[derive(Debug)]
struct Piece {
    /// Of its innermost frame.
    returns: usize,
    slot: usize,
    /// What the frame pointer must be there.
    pointer: Option<usize>,
    /// Words that must stand where they stood: address and content.
    words: Box<[(usize, usize)]>,
    /// The piece that this was called from.
    outer: u32,
    /// The return addresses, innermost first.
    frames: Box<[usize]>,
    /// Of the return addresses of the whole stack from here outwards: see `add`.
    sum: u64,
    /// Of a whole stack that begins here.
    site: Option<u64>,
    /// The piece that began the next call's stack last time.
    next: u32,
    /// Another one of the same shape with the same sum.
    same: u32,
}

/// Which words tell pieces with one innermost frame apart. Code that is called from everywhere has many such pieces, but
/// few shapes: one for every way in which the frames around it have other sizes.
#[derive(Debug)]
struct Shape {
    addresses: Box<[usize]>,
    /// Another one with the same innermost frame.
    same: u32,
}

#[derive(Debug, Default)]
pub struct Cache {
    pieces: Vec<Piece>,
    shapes: Vec<Shape>,
    /// The first shape.
    by_frame: FastMap<(usize, usize), u32>,
    /// The last piece of a shape whose words have this sum.
    by_words: FastMap<(u32, u64), u32>,
    /// The last piece of `PIECE` frames with this innermost one.
    whole: FastMap<(usize, usize), u32>,
    last: usize,
    words: usize,
    /// How many were not taken in since it was full.
    refused: usize,
}

/// The content of a word of the stack.
///
/// # Safety
/// `address` lies on the calling thread's stack, above frames that are alive.
#[inline]
unsafe fn word(address: usize) -> usize {
    // SAFETY: as the caller says.
    unsafe { (address as *const usize).read_volatile() }
}

/// Of contents, for finding them.
fn sum(words: impl Iterator<Item = usize>) -> u64 {
    let mut hasher = FxHasher::default();
    words.for_each(|word| hasher.write_usize(word));
    hasher.finish()
}

impl Cache {
    /// The site of a call that returns to `returns`, as is written at `place.slot`, if it is known.
    #[inline]
    pub fn recall(&mut self, returns: usize, place: Caller) -> Option<u64> {
        let expected = self.pieces.get(self.last)?.next as usize;
        let fits = self.pieces.get(expected).is_some_and(|piece| {
            piece.returns == returns && (piece.slot == place.slot || piece.slot == ANYWHERE)
        });
        if fits
            && let Some(site) = self.pieces[expected].site
            && self.holds(expected, place.pointer)
        {
            self.last = expected;
            return Some(site);
        }
        self.recall_by_frame(returns, place)
    }

    fn recall_by_frame(&mut self, returns: usize, place: Caller) -> Option<u64> {
        let found = [place.slot, ANYWHERE].into_iter().find_map(|slot| {
            self.with_frame(returns, slot)
                .take(MOST_TRIED)
                .find(|&at| self.pieces[at].site.is_some() && self.holds(at, place.pointer))
        })?;
        self.pieces[self.last].next = found as u32;
        self.last = found;
        self.pieces[found].site
    }

    /// Pieces that begin with this frame, which is alive, and may hold.
    fn with_frame(&self, returns: usize, slot: usize) -> impl Iterator<Item = usize> {
        self.shapes_of(returns, slot).flat_map(|shape| {
            let addresses = self.shapes[shape as usize].addresses.iter();
            // SAFETY: as in `holds`, whose words these are.
            let found = sum(addresses.map(|&address| unsafe { word(address) }));
            let first = self.by_words.get(&(shape, found)).map(|&at| at as usize);
            std::iter::successors(first, |&at| {
                Some(self.pieces[at].same as usize).filter(|&same| same < self.pieces.len())
            })
        })
    }

    fn shapes_of(&self, returns: usize, slot: usize) -> impl Iterator<Item = u32> {
        let first = self.by_frame.get(&(returns, slot)).copied();
        std::iter::successors(first, |&at| {
            Some(self.shapes[at as usize].same).filter(|&same| (same as usize) < self.shapes.len())
        })
    }

    /// The shape of a piece that begins with this frame; `None` where there are too many.
    fn shape(&mut self, returns: usize, slot: usize, words: &[(usize, usize)]) -> Option<u32> {
        let addresses = || words.iter().map(|&(address, _)| address);
        let fits = |&at: &u32| self.shapes[at as usize].addresses.iter().copied().eq(addresses());
        if let Some(known) = self.shapes_of(returns, slot).find(fits) {
            return Some(known);
        }
        if self.shapes_of(returns, slot).count() == MOST_SHAPES {
            return None;
        }
        let at = self.shapes.len() as u32;
        let same = self.by_frame.insert((returns, slot), at).unwrap_or(NONE);
        self.shapes.push(Shape { addresses: addresses().collect(), same });
        Some(at)
    }

    /// Whether the stack from this piece's innermost frame outwards is what it was, given that this frame is, with that
    /// frame pointer.
    #[inline]
    fn holds(&self, at: usize, pointer: usize) -> bool {
        let mut piece = &self.pieces[at];
        if piece.pointer.is_some_and(|known| known != pointer) {
            return false;
        }
        loop {
            // SAFETY: `insert` saw to it that all lie between this frame's slot and the end of the stack of the thread
            // that the cache belongs to.
            let differs =
                |sum: usize, &(address, known): &(usize, usize)| sum | (unsafe { word(address) } ^ known);
            if piece.words.iter().fold(0, differs) != 0 {
                return false;
            }
            match self.pieces.get(piece.outer as usize) {
                Some(outer) => piece = outer,
                None => return true,
            }
        }
    }

    /// A whole piece that begins with this frame and still holds: what is further out need not be unwound.
    pub fn known(&self, frame: &Raw) -> Option<usize> {
        let at = *self.whole.get(&(frame.returns, frame.slot))? as usize;
        self.holds(at, frame.pointer).then_some(at)
    }

    /// The sum of what is known, and 0 of nothing.
    pub fn sum(&self, known: Option<usize>) -> u64 {
        known.map_or(0, |at| self.pieces[at].sum)
    }

    /// Whether the stack that begins at `place` is the one of this piece; then it is expected after the last one.
    pub fn meets(&mut self, at: u32, sum: u64, place: Caller) -> bool {
        let fits = |piece: &Piece| piece.sum == sum && piece.slot == place.slot && piece.site.is_some();
        let meets = self.pieces.get(at as usize).is_some_and(fits) && self.holds(at as usize, place.pointer);
        if meets {
            self.pieces[self.last].next = at;
            self.last = at as usize;
        }
        meets
    }

    /// The return addresses of what is known, innermost first.
    pub fn addresses(&self, known: Option<usize>) -> impl Iterator<Item = usize> {
        let pieces = std::iter::successors(known, |&at| {
            Some(self.pieces[at].outer as usize).filter(|&outer| outer < self.pieces.len())
        });
        pieces.flat_map(|at| self.pieces[at].frames.iter().copied())
    }

    /// What a return address says by itself, wherever on the stack it is.
    pub fn insert_anywhere(&mut self, returns: usize, site: u64) {
        if self.is_full(0) {
            self.forget();
        }
        let frames = Box::new([returns]);
        let at = self.push(returns, ANYWHERE, None, Box::default(), NONE, frames);
        self.pieces[at].site = Some(site);
    }

    /// Remembers a stack: frames innermost first, called from the `known` piece. Gives its piece. Not where it could not be
    /// recognised, or where there is no room.
    pub fn insert(
        &mut self,
        frames: &[Raw],
        known: Option<usize>,
        stack: &Range<usize>,
        site: u64,
    ) -> Option<u32> {
        if self.is_full(2 * frames.len()) {
            self.refused += 1;
            if self.refused >= REFUSED {
                self.forget();
            }
            return None;
        }
        let mut outer = known;
        let mut next = known.map(|at| (self.pieces[at].slot, self.pieces[at].pointer));
        // The outermost pieces are whole.
        let mut end = frames.len();
        let mut made = Vec::new();
        while end > 0 {
            let range = end.saturating_sub(PIECE)..end;
            end = range.start;
            let (words, pointer) = words(&frames[range.clone()], next, stack)?;
            next = Some((frames[range.start].slot, pointer));
            made.push((range, words, pointer));
        }
        for (range, words, pointer) in made {
            let returns: Box<[usize]> = frames[range.clone()].iter().map(|frame| frame.returns).collect();
            let link = outer.map_or(NONE, |at| at as u32);
            outer = Some(self.push(returns[0], frames[range.start].slot, pointer, words, link, returns));
        }
        let innermost = outer?;
        self.pieces[innermost].site = Some(site);
        Some(innermost as u32)
    }

    fn push(
        &mut self,
        returns: usize,
        slot: usize,
        pointer: Option<usize>,
        words: Box<[(usize, usize)]>,
        outer: u32,
        frames: Box<[usize]>,
    ) -> usize {
        let at = self.pieces.len();
        self.words += words.len();
        let same = self.shape(returns, slot, &words).and_then(|shape| {
            let contents = sum(words.iter().map(|&(_, content)| content));
            self.by_words.insert((shape, contents), at as u32)
        });
        if frames.len() == PIECE {
            self.whole.insert((returns, slot), at as u32);
        }
        let further_out = self.pieces.get(outer as usize).map_or(0, |piece| piece.sum);
        let sum = frames.iter().rev().fold(further_out, |sum, &returns| add(sum, returns));
        let (next, same) = (at as u32, same.unwrap_or(NONE));
        self.pieces.push(Piece { returns, slot, pointer, words, outer, frames, sum, site: None, next, same });
        at
    }

    fn is_full(&self, words: usize) -> bool {
        self.pieces.len() >= MOST_PIECES || self.words + words > MOST_WORDS
    }

    /// The stack is another thread's from here on.
    pub fn forget(&mut self) {
        *self = Cache::default();
    }
}

/// What tells a piece of a stack: words that must not change, and the frame pointer at its innermost frame, if it takes
/// that. `next` is the slot of the frame further out, and the frame pointer that it takes. `None`: it cannot be told.
type Words = (Box<[(usize, usize)]>, Option<usize>);

fn words(frames: &[Raw], next: Option<(usize, Option<usize>)>, stack: &Range<usize>) -> Option<Words> {
    /// Where the frame pointer of the frame at hand is.
    #[derive(Clone, Copy)]
    enum At {
        Register,
        Saved(usize),
        Unknown,
    }
    let innermost = frames.first()?;
    let mut words: Vec<(usize, usize)> = Vec::with_capacity(2 * frames.len() + 1);
    let mut pointer = None;
    let mut need = |at: At, value: usize, words: &mut Vec<(usize, usize)>| match at {
        At::Register => pointer = Some(value),
        At::Saved(address) => words.push((address, value)),
        At::Unknown => {}
    };
    let mut at = At::Register;
    for (index, frame) in frames.iter().enumerate() {
        words.push((frame.slot, frame.returns));
        let outer = frames.get(index + 1).map(|outer| outer.slot).or(next.map(|(slot, _)| slot));
        // The outermost frame has no caller.
        let Some(cfa) = outer.map(|slot| slot.wrapping_add(size_of::<usize>())) else { break };
        let from = |base: usize, offset: i64| base.wrapping_add(offset as usize) == cfa;
        match frame.rule.cfa {
            Cfa::Stack(offset) if from(frame.slot.wrapping_add(size_of::<usize>()), offset) => {}
            Cfa::Frame(offset) if from(frame.pointer, offset) && !matches!(at, At::Unknown) => {
                need(at, frame.pointer, &mut words);
            }
            Cfa::Written(offset) if !matches!(at, At::Unknown) => {
                need(at, frame.pointer, &mut words);
                words.push((frame.pointer.wrapping_add(offset as usize), cfa));
            }
            _ => return None,
        }
        at = match frame.rule.saved {
            Saved::Not => at,
            Saved::At(offset) => At::Saved(cfa.wrapping_add(offset as usize)),
            // The pointer it goes by was compared.
            Saved::Frame(offset) if matches!(frame.rule.cfa, Cfa::Frame(_) | Cfa::Written(_)) => {
                At::Saved(frame.pointer.wrapping_add(offset as usize))
            }
            Saved::Frame(_) | Saved::Nowhere | Saved::Other => At::Unknown,
        };
    }
    if let Some((_, Some(value))) = next {
        if matches!(at, At::Unknown) {
            return None;
        }
        need(at, value, &mut words);
    }
    words.sort_unstable();
    words.dedup();
    let readable = |&(address, _): &(usize, usize)| {
        address >= innermost.slot && stack.contains(&address) && address.is_multiple_of(size_of::<usize>())
    };
    words.iter().all(readable).then(|| (words.into(), pointer))
}

#[cfg(test)]
mod tests;
