//! Addresses by themselves, as a method of packing numbers: the model that guesses references, on one column of them.
//!
//! Wherever numbers of the kind `ADDRESS` are packed, this stands beside the shapes and bins of `fold`, and what is
//! shortest is kept.
//!
//! ```
//! use refrain_addresses::Guessed;
//! use refrain_fold::pack::{Kind, Methods, number};
//! // A list that is walked again and again: no stride, but each node follows the same one.
//! let nodes: Vec<i64> = (0..5000i64).map(|i| 0x5555_0000 + i * i % 7919 * 48).collect();
//! let walks = nodes.repeat(8);
//! let mut methods = Methods::quick().with(Guessed::new());
//! let (method, bytes) = methods.pack(Kind::ADDRESS, &walks);
//! assert_eq!(method, number::GUESSED);
//! let mut again = Vec::new();
//! methods.unpack(method, &bytes, walks.len(), &mut again).unwrap();
//! assert_eq!(again, walks);
//! ```

use refrain_fold::pack::{Damaged, Kind, Method, number};

use crate::packed::MOST_THICK;
use crate::packed::columns::{Filling, Taking};
use crate::packed::finder::Finder;
use crate::packed::model::Model;
use crate::packed::streams::{LEVEL, Packer, Unpacker};
use crate::{Batch, Fields, Reference};

/// More references than this are not one piece, as they are not one block.
const MOST: usize = MOST_THICK as usize;
/// As many references as 2 to the power of this may come again: these are packed where programs run, for each thread of one.
const PAST: u32 = 20;

/// What both methods need.
#[derive(Default)]
struct Tools {
    /// Made when first needed: with the finder it takes about 25 megabytes, once as many references came as may come again.
    model: Option<Box<Model>>,
    filling: Filling,
    taking: Taking,
    unpacker: Unpacker,
    packer: Option<Packer>,
    finder: Option<Finder>,
    piece: Vec<Reference>,
    batch: Batch,
    /// What was unpacked last was damaged: nothing that goes on with it is good.
    broken: bool,
}

impl Tools {
    /// `first`: nothing from before is needed to unpack it.
    fn pack(
        &mut self,
        fields: Fields,
        first: bool,
        references: impl Iterator<Item = Reference>,
    ) -> Option<Vec<u8>> {
        let model = learnt(&mut self.model, fields, first);
        self.filling.clear();
        self.piece.clear();
        self.piece.extend(references);
        let finder = self.finder.get_or_insert_with(|| Finder::new(LEVEL, PAST));
        if first {
            finder.clear();
        }
        model.pack(&mut self.filling, finder, &self.piece);
        self.packer.get_or_insert_with(|| Packer::new(None)).pack(&mut self.filling, first).ok()
    }

    fn unpack(
        &mut self,
        fields: Fields,
        first: bool,
        bytes: &[u8],
        count: usize,
        mut take: impl FnMut(&Reference),
    ) -> Result<(), Damaged> {
        let references = u32::try_from(count).ok().filter(|&count| count as usize <= MOST).ok_or(Damaged)?;
        if std::mem::replace(&mut self.broken, true) && !first {
            return Err(Damaged);
        }
        if !self.unpacker.unpack(bytes, first, references, &mut self.taking) {
            return Err(Damaged);
        }
        let model = learnt(&mut self.model, fields, first);
        self.batch.clear();
        model.unpack(&mut self.taking, count, &mut self.batch);
        // No writer has another kind.
        let good = !self.taking.lacking && self.taking.spent() && model.settled();
        if !good || self.batch.kinds.iter().any(|kind| *kind != 0) {
            return Err(Damaged);
        }
        self.batch.iter().for_each(|reference| take(&reference));
        self.broken = false;
        Ok(())
    }
}

/// The model as it was left, or one that knows nothing.
fn learnt(model: &mut Option<Box<Model>>, fields: Fields, forget: bool) -> &mut Model {
    match model {
        Some(model) => {
            if forget {
                model.forget();
            }
            model
        }
        none => none.insert(Box::new(Model::new(fields, PAST))),
    }
}

/// Packs addresses that follow others as before, whatever the distance.
#[derive(Default)]
pub struct Guessed(Tools);

impl Guessed {
    pub fn new() -> Guessed {
        Guessed::default()
    }
}

/// Packs references in pairs of numbers: which instruction, and the address. What was learnt in one piece goes on to the next,
/// so that they are unpacked in the same order.
#[derive(Default)]
pub struct Followed(Tools);

const PCS: Fields = Fields { pcs: true, ..Fields::NONE };

impl Followed {
    pub fn new() -> Followed {
        Followed::default()
    }

    /// `first`: nothing is known, and nothing from before is needed to unpack it. Nothing where there is no pair or too many;
    /// then, and if the bytes are not kept, the next must be a first one.
    pub fn pack(&mut self, first: bool, numbers: &[i64]) -> Option<Vec<u8>> {
        if numbers.len() / 2 > MOST || !numbers.len().is_multiple_of(2) {
            return None;
        }
        let pairs = numbers.chunks_exact(2);
        let reference =
            |pair: &[i64]| Reference { pc: pair[0] as u64, address: pair[1] as u64, ..Reference::default() };
        self.0.pack(PCS, first, pairs.map(reference))
    }

    /// So many numbers, behind what is there.
    pub fn unpack(
        &mut self,
        first: bool,
        bytes: &[u8],
        count: usize,
        into: &mut Vec<i64>,
    ) -> Result<(), Damaged> {
        if !count.is_multiple_of(2) {
            return Err(Damaged);
        }
        self.0.unpack(PCS, first, bytes, count / 2, |reference| {
            into.extend([reference.pc as i64, reference.address as i64]);
        })
    }
}

impl Method for Guessed {
    fn number(&self) -> u8 {
        number::GUESSED
    }

    fn pack(&mut self, kind: Kind, numbers: &[i64], _: usize) -> Option<Vec<u8>> {
        if kind != Kind::ADDRESS || numbers.len() > MOST {
            return None;
        }
        let reference = |&number: &i64| Reference { address: number as u64, ..Reference::default() };
        self.0.pack(Fields::NONE, true, numbers.iter().map(reference))
    }

    fn unpack(&mut self, bytes: &[u8], count: usize, into: &mut Vec<i64>) -> Result<(), Damaged> {
        self.0.unpack(Fields::NONE, true, bytes, count, |reference| into.push(reference.address as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refrain_fold::pack::Methods;

    fn walks(round: i64) -> Vec<i64> {
        (0..3000 * round).map(|i| 0x7fff_0000_0000 + (i % 3000) * (i % 3000) % 2003 * 40 + i / 3000).collect()
    }

    #[test]
    fn addresses_come_back_and_one_piece_needs_no_other() {
        let mut guessed = Guessed::new();
        for numbers in [walks(5), vec![], vec![-1, i64::MIN, 0, i64::MAX], walks(2)] {
            let bytes = guessed.pack(Kind::ADDRESS, &numbers, usize::MAX).unwrap();
            let mut again = Vec::new();
            Guessed::new().unpack(&bytes, numbers.len(), &mut again).unwrap();
            assert_eq!(again, numbers);
        }
        assert!(guessed.pack(Kind::TIME, &walks(1), usize::MAX).is_none());
    }

    #[test]
    fn the_better_is_kept_for_each_stretch() {
        let mut methods = Methods::quick().with(Guessed::new());
        let list: Vec<i64> = walks(1).repeat(4);
        assert_eq!(methods.pack(Kind::ADDRESS, &list).0, number::GUESSED);
        let mut random = fastrand::Rng::with_seed(1);
        let random: Vec<i64> = (0..4000).map(|_| 0x1000_0000 + random.i64(0..1 << 24)).collect();
        assert_eq!(methods.pack(Kind::ADDRESS, &random).0, number::BINS);
    }

    #[test]
    fn references_come_back_in_pairs() {
        let pairs: Vec<i64> =
            walks(3).into_iter().enumerate().flat_map(|(i, at)| [i as i64 % 7 * 1024, at]).collect();
        let (mut followed, mut again) = (Followed::new(), Followed::new());
        let mut lengths = Vec::new();
        for (first, numbers) in [
            (true, &pairs),
            (false, &pairs),
            (false, &vec![-1, i64::MIN, 0, i64::MAX]),
            (true, &pairs),
            (true, &vec![]),
        ] {
            let bytes = followed.pack(first, numbers).unwrap();
            let mut unpacked = Vec::new();
            again.unpack(first, &bytes, numbers.len(), &mut unpacked).unwrap();
            assert_eq!(unpacked, *numbers);
            lengths.push(bytes.len());
        }
        // What was learnt is worth something, and can be forgotten.
        assert!(lengths[1] * 4 < lengths[0] && lengths[3] == lengths[0], "{lengths:?}");
        assert!(followed.pack(true, &[1]).is_none());
        assert!(followed.unpack(true, &[], 1, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_piece_may_be_as_large_as_a_block_and_all_of_it_told() {
        let mut random = fastrand::Rng::with_seed(2);
        let numbers: Vec<i64> = (0..MOST).map(|_| random.i64(..)).collect();
        let (mut guessed, mut again) = (Guessed::new(), Vec::new());
        let bytes = guessed.pack(Kind::ADDRESS, &numbers, usize::MAX).unwrap();
        guessed.unpack(&bytes, numbers.len(), &mut again).unwrap();
        assert!(again == numbers);
        let (mut followed, mut pairs) = (Followed::new(), numbers.repeat(2));
        let bytes = followed.pack(true, &pairs).unwrap();
        again.clear();
        followed.unpack(true, &bytes, pairs.len(), &mut again).unwrap();
        assert!(again == pairs);
        pairs.extend([1, 2]);
        assert!(followed.pack(true, &pairs).is_none());
    }

    #[test]
    fn nothing_goes_on_with_what_is_damaged() {
        let pairs: Vec<i64> = walks(2);
        let (mut followed, mut into) = (Followed::new(), Vec::new());
        let (one, two) = (followed.pack(true, &pairs).unwrap(), followed.pack(false, &pairs).unwrap());
        assert!(followed.unpack(true, &one[..one.len() - 1], pairs.len(), &mut into).is_err());
        assert!(followed.unpack(false, &two, pairs.len(), &mut into).is_err());
        assert!(into.is_empty());
        followed.unpack(true, &one, pairs.len(), &mut into).unwrap();
        followed.unpack(false, &two, pairs.len(), &mut into).unwrap();
        assert_eq!(into.len(), 2 * pairs.len());
    }

    #[test]
    fn damaged_bytes_give_an_error_or_numbers() {
        let numbers = walks(1);
        let mut guessed = Guessed::new();
        let good = guessed.pack(Kind::ADDRESS, &numbers, usize::MAX).unwrap();
        for at in (0..good.len()).step_by(7) {
            let mut bytes = good.clone();
            bytes[at] ^= 0x41;
            let mut into = Vec::new();
            let good = guessed.unpack(&bytes, numbers.len(), &mut into).is_ok();
            assert_eq!(into.len(), if good { numbers.len() } else { 0 });
        }
    }
}
