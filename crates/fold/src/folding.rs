//! What all folders have in common, and a bound on their memory.

use crate::grammar::{self, Grammar};
use crate::loops::{self, Folded};
use crate::stream::{self, Stream};

/// Builds something small from symbols or numbers as they come: [`grammar::Folder`] and [`loops::Folder`] from symbols,
/// [`stream::Folder`] from numbers.
pub trait Fold {
    /// A symbol or a number.
    type Item: Copy + PartialEq;
    /// What becomes of them.
    type Folded;

    /// The next one.
    fn push(&mut self, item: Self::Item);

    /// The same several times over. A grammar may get other rules for the same sequence than if they came one by one.
    fn push_n(&mut self, item: Self::Item, count: u64);

    /// A column of them: the same as one by one.
    fn extend(&mut self, items: &[Self::Item]) {
        items.iter().for_each(|&item| self.push(item));
    }

    /// What was pushed so far, folded. Folding can go on afterwards.
    fn finish(&self) -> Self::Folded;

    /// How many were pushed.
    fn len(&self) -> u64;

    /// Nothing was pushed.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held, nearly.
    fn memory(&self) -> usize;

    /// Forgets all that was pushed, and nothing else.
    fn restart(&mut self);
}

/// The methods of a folder's own are the trait's.
macro_rules! delegate {
    ($folder:ty, $item:ty, $folded:ty) => {
        impl Fold for $folder {
            type Item = $item;
            type Folded = $folded;

            #[inline]
            fn push(&mut self, item: $item) {
                self.push(item);
            }

            fn push_n(&mut self, item: $item, count: u64) {
                self.push_n(item, count);
            }

            fn finish(&self) -> $folded {
                self.finish()
            }

            fn len(&self) -> u64 {
                self.len()
            }

            fn memory(&self) -> usize {
                self.memory()
            }

            fn restart(&mut self) {
                self.restart();
            }
        }
    };
}

delegate!(grammar::Folder, u32, Grammar);
delegate!(loops::Folder, u32, Folded);
delegate!(stream::Folder, i64, Stream);

/// How often memory is looked at: behind so many pushes, or more if much is held, since looking takes time by that.
const LOOK: usize = 1 << 10;

/// A folder that keeps to so many bytes, nearly (lists grow by doubling, so it may be three times as many): when it holds more, what it has is sealed as a [`Piece`] and a new one is
/// begun. The pieces, one behind the other, are the whole sequence.
///
/// ```
/// use refrain_fold::{Bounded, Fold, grammar};
/// let mut pieces = Vec::new();
/// let mut folder = Bounded::new(grammar::Folder::new(), 100_000, |piece| pieces.push(piece));
/// (0..50_000).for_each(|i| folder.push(i)); // nothing repeats
/// folder.finish();
/// assert!(pieces.len() > 10);
/// assert!(pieces.iter().flat_map(|piece| piece.folded.iter()).eq(0..50_000));
/// ```
#[derive(Debug)]
pub struct Bounded<F: Fold, S: FnMut(Piece<F::Folded>)> {
    folder: F,
    budget: usize,
    seal: S,
    /// Pushes until memory is looked at.
    left: usize,
}

/// A part of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<T> {
    /// What it became.
    pub folded: T,
    /// How many symbols or numbers it stands for.
    pub len: u64,
}

impl<F: Fold, S: FnMut(Piece<F::Folded>)> Bounded<F, S> {
    /// Pieces go to `seal` as they are made. What is sealed is no longer counted.
    pub fn new(folder: F, budget: usize, seal: S) -> Self {
        Bounded { folder, budget, seal, left: LOOK }
    }

    #[inline]
    /// The next symbol or number.
    pub fn push(&mut self, item: F::Item) {
        self.folder.push(item);
        self.pushed();
    }

    /// The same several times over.
    pub fn push_n(&mut self, item: F::Item, count: u64) {
        self.folder.push_n(item, count);
        self.pushed();
    }

    /// A column of symbols or numbers.
    pub fn extend(&mut self, items: &[F::Item]) {
        for items in items.chunks(LOOK) {
            self.folder.extend(items);
            self.left = self.left.saturating_sub(items.len() - 1).max(1);
            self.pushed();
        }
    }

    /// Seals what is left.
    pub fn finish(mut self) {
        self.seal();
    }

    /// The folder of the piece that is being made.
    pub fn folder(&self) -> &F {
        &self.folder
    }

    #[inline]
    fn pushed(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.look();
        }
    }

    #[cold]
    fn look(&mut self) {
        let held = self.folder.memory();
        if held > self.budget {
            self.seal();
        }
        self.left = (held / LOOK).clamp(LOOK.min(self.budget / LOOK).max(16), self.budget.max(16));
    }

    fn seal(&mut self) {
        if !self.folder.is_empty() {
            (self.seal)(Piece { folded: self.folder.finish(), len: self.folder.len() });
            self.folder.restart();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::Matching;
    use crate::testing::loops as program;
    use fastrand::Rng;

    /// Pushed one by one, in columns and as runs: the same comes out.
    fn check<F: Fold<Folded: PartialEq + std::fmt::Debug>>(
        new: impl Fn() -> F,
        items: &[F::Item],
    ) -> F::Folded {
        let (mut one, mut columns, mut runs) = (new(), new(), new());
        items.iter().for_each(|&item| one.push(item));
        items.chunks(97).for_each(|items| columns.extend(items));
        items.chunk_by(|a, b| a == b).for_each(|run| runs.push_n(run[0], run.len() as u64));
        assert_eq!((one.len(), columns.len(), runs.len()), (items.len() as u64, one.len(), one.len()));
        let folded = one.finish();
        assert_eq!(columns.finish(), folded);
        one.restart();
        assert!(one.is_empty());
        items.iter().for_each(|&item| one.push(item));
        assert_eq!(one.finish(), folded);
        runs.finish()
    }

    #[test]
    fn one_by_one_in_columns_and_as_runs() {
        let mut random = Rng::with_seed(12);
        for round in 0..40 {
            let symbols = match round % 2 {
                0 => program(&mut random, 6, 600),
                _ => (0..600).map(|_| random.u64(..40) as u32 / 10).collect::<Vec<_>>(),
            };
            let runs = check(grammar::Folder::new, &symbols);
            assert!(runs.iter().eq(symbols.iter().copied()));
            for matching in [Matching::Elastic, Matching::Exact { window: 50 }] {
                let runs = check(|| loops::Folder::new(matching), &symbols);
                assert!(runs.iter().eq(symbols.iter().copied()));
            }
            let numbers: Vec<i64> = symbols.iter().map(|&symbol| i64::from(symbol) << 61).collect();
            let runs = check(stream::Folder::new, &numbers);
            let mut one = stream::Folder::new();
            numbers.iter().for_each(|&number| one.push(number));
            assert_eq!(runs, one.finish());
        }
    }

    /// The pieces, and the most memory that was held between two of them.
    fn pieces<F: Fold>(folder: F, budget: usize, items: &[F::Item]) -> (Vec<Piece<F::Folded>>, usize) {
        let (mut pieces, mut most) = (Vec::new(), 0);
        let mut bounded = Bounded::new(folder, budget, |piece| pieces.push(piece));
        for (at, items) in items.chunks(50).enumerate() {
            match at % 3 {
                0 => items.iter().for_each(|&item| bounded.push(item)),
                1 => bounded.extend(items),
                _ => items.chunk_by(|a, b| a == b).for_each(|run| bounded.push_n(run[0], run.len() as u64)),
            }
            most = most.max(bounded.folder().memory());
        }
        bounded.finish();
        (pieces, most)
    }

    #[test]
    fn memory_stays_in_its_bounds_whatever_comes() {
        let mut random = Rng::with_seed(13);
        for (symbols, budget) in [(20, 1 << 16), (2_000, 1 << 18), (50_000, 1 << 20), (1 << 31, 1 << 20)] {
            let items: Vec<u32> = (0..100_000).map(|_| random.u64(..symbols) as u32).collect();
            let (rules, most) = pieces(grammar::Folder::new(), budget, &items);
            assert!(most < 3 * budget && rules.len() > 1, "{symbols}: {most} held, {} pieces", rules.len());
            assert!(rules.iter().flat_map(|piece| piece.folded.iter()).eq(items.iter().copied()));
            let (trees, most) = pieces(loops::Folder::new(Matching::Elastic), budget, &items);
            assert!(most < 3 * budget, "{symbols}: {most} held, {} pieces", trees.len());
            assert!(trees.iter().flat_map(|piece| piece.folded.iter()).eq(items.iter().copied()));
            assert_eq!(trees.iter().map(|piece| piece.len).sum::<u64>(), items.len() as u64);
        }
        let numbers: Vec<i64> = (0..200_000).map(|_| random.u64(..) as i64).collect();
        let (streams, most) = pieces(stream::Folder::new(), 1 << 18, &numbers);
        assert!(most < 3 << 18 && streams.len() > 4, "{most} held, {} pieces", streams.len());
        let back = streams.iter().flat_map(|piece| piece.folded.iter().take(piece.len as usize));
        assert!(back.eq(numbers.iter().copied()));
    }

    #[test]
    fn what_folds_is_one_piece() {
        let step: Vec<u32> = [vec![0], [1, 2, 3].repeat(20), vec![4, 4, 4], [5, 6].repeat(7)].concat();
        let items = step.repeat(500);
        assert_eq!(pieces(grammar::Folder::new(), 1 << 16, &items).0.len(), 1);
        assert_eq!(pieces(loops::Folder::new(Matching::Elastic), 1 << 16, &items).0.len(), 1);
    }
}
