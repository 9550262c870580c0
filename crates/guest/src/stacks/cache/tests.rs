use super::super::cfi::Rule;
use super::*;

/// A stack of our own making: words that frames refer to by index.
struct Made {
    words: Vec<usize>,
    frames: Vec<Raw>,
}

const BY_STACK: Rule = Rule { cfa: Cfa::Stack(24), saved: Saved::Not };
const BY_POINTER: Rule = Rule { cfa: Cfa::Frame(16), saved: Saved::At(-16) };

impl Made {
    /// Frames of four words each, innermost first: what is kept there, the saved frame pointer, and the return address
    /// of the next.
    fn new(depth: usize, rule: Rule) -> Made {
        let mut made = Made { words: vec![0; 4 * depth + 8], frames: Vec::new() };
        for index in 0..depth {
            let slot = made.address(4 * index);
            made.words[4 * index] = 1000 + index;
            // The frame pointer of a frame: where the outer one is saved, below the next slot.
            let pointer = made.address(4 * index + 3);
            made.words[4 * index + 3] = made.address(4 * index + 7);
            // A frame by its stack pointer ends three words further than its slot: below the next one.
            let rule = match rule.cfa {
                Cfa::Stack(_) => Rule { cfa: Cfa::Stack(32), ..rule },
                _ => rule,
            };
            made.frames.push(Raw { returns: 1000 + index, slot, pointer, rule });
        }
        made
    }

    fn address(&self, index: usize) -> usize {
        self.words.as_ptr().wrapping_add(index) as usize
    }

    fn bounds(&self) -> Range<usize> {
        self.address(0)..self.address(self.words.len())
    }

    fn place(&self) -> Caller {
        Caller { slot: self.address(0), pointer: self.address(3) }
    }

    fn write(&mut self, index: usize, word: usize) -> usize {
        // As another frame would, unseen by the compiler.
        // SAFETY: a word of ours.
        unsafe { self.words.as_mut_ptr().add(index).replace(word) }
    }
}

fn recall(cache: &mut Cache, made: &Made) -> Option<u64> {
    cache.recall(made.words[0], made.place())
}

#[test]
fn a_stack_is_known_as_long_as_every_word_stands() {
    for rule in [BY_STACK, BY_POINTER] {
        for depth in [1, 2, 31, 32, 33, 100] {
            let mut made = Made::new(depth, rule);
            let mut cache = Cache::default();
            assert_eq!(recall(&mut cache, &made), None);
            cache.insert(&made.frames.clone(), None, &made.bounds(), 7);
            assert_eq!(recall(&mut cache, &made), Some(7), "{depth}");
            for index in 1..depth {
                let before = made.write(4 * index, 1);
                assert_eq!(recall(&mut cache, &made), None, "return address {index} of {depth}");
                made.write(4 * index, before);
                // Where a frame's end depends on it; that of the outermost does not matter.
                let saved = made.write(4 * index - 1, 1);
                let matters = rule == BY_POINTER && index < depth - 1;
                assert_eq!(recall(&mut cache, &made), (!matters).then_some(7), "pointer {index} of {depth}");
                made.write(4 * index - 1, saved);
            }
            let other = Caller { pointer: 5, ..made.place() };
            let matters = rule == BY_POINTER && depth > 1;
            assert_eq!(cache.recall(made.words[0], other), (!matters).then_some(7), "the register, {depth}");
            assert_eq!(recall(&mut cache, &made), Some(7));
        }
    }
}

#[test]
fn stacks_with_the_same_innermost_frame_are_told_apart() {
    let mut made = Made::new(5, BY_STACK);
    let mut cache = Cache::default();
    for caller in 0..10 {
        made.write(16, 500 + caller);
        made.frames[4].returns = 500 + caller;
        assert_eq!(recall(&mut cache, &made), None);
        cache.insert(&made.frames.clone(), None, &made.bounds(), caller as u64 + 1);
    }
    for _ in 0..3 {
        for caller in 0..10 {
            made.write(16, 500 + caller);
            assert_eq!(recall(&mut cache, &made), Some(caller as u64 + 1));
        }
    }
}

/// Every level of a recursion calls: what is further out is unwound and kept once.
#[test]
fn deep_stacks_share_their_outer_pieces() {
    let made = Made::new(1000, BY_POINTER);
    let mut cache = Cache::default();
    for first in (0..1000).rev() {
        let frames = &made.frames[first..];
        let known = frames.iter().position(|frame| cache.known(frame).is_some());
        let outer = known.and_then(|at| cache.known(&frames[at]));
        let new = &frames[..known.unwrap_or(frames.len())];
        assert!(new.len() <= PIECE, "{}", new.len());
        let addresses: Vec<usize> = new.iter().map(|f| f.returns).chain(cache.addresses(outer)).collect();
        assert!(addresses.into_iter().eq(frames.iter().map(|frame| frame.returns)));
        cache.insert(new, outer, &made.bounds(), first as u64 + 1);
    }
    assert!(cache.words < 2 * 1000 * (PIECE + 2), "{}", cache.words);
    for (first, frame) in made.frames.iter().enumerate() {
        let place = Caller { slot: frame.slot, pointer: frame.pointer };
        assert_eq!(cache.recall(frame.returns, place), Some(first as u64 + 1), "{first}");
    }
}

#[test]
fn what_cannot_be_told_is_not_remembered() {
    let mut cache = Cache::default();
    let made = Made::new(4, BY_STACK);
    let mut unknown = made.frames.clone();
    unknown[1].rule.cfa = Cfa::Other;
    cache.insert(&unknown, None, &made.bounds(), 1);
    let mut lost = Made::new(4, BY_POINTER).frames;
    lost[0].rule.saved = Saved::Other;
    cache.insert(&lost, None, &made.bounds(), 1);
    let short = made.address(0)..made.address(8);
    cache.insert(&made.frames, None, &short, 1);
    assert!(cache.pieces.is_empty());
    cache.insert(&made.frames, None, &made.bounds(), 1);
    assert_eq!(recall(&mut cache, &made), Some(1));
}

#[test]
fn memory_is_bounded() {
    let mut cache = Cache::default();
    let mut made = Made::new(3, BY_STACK);
    for round in 0..3 * MOST_PIECES {
        made.frames[0].returns = round + 1;
        cache.insert(&made.frames.clone(), None, &made.bounds(), round as u64 + 1);
        assert!(cache.pieces.len() <= MOST_PIECES && cache.words <= MOST_WORDS);
    }
    for address in 0..3 * MOST_PIECES {
        cache.insert_anywhere(1 << 40 | address, 5);
        assert!(cache.pieces.len() <= MOST_PIECES);
        assert_eq!(cache.recall(1 << 40 | address, made.place()), Some(5));
    }
}

/// A function that is called from everywhere: how many stacks there are does not matter to finding one.
#[test]
fn of_many_stacks_with_one_innermost_frame_few_are_looked_at() {
    let mut made = Made::new(6, BY_STACK);
    let mut cache = Cache::default();
    for caller in 0..1000 {
        made.write(20, 5000 + caller);
        made.frames[5].returns = 5000 + caller;
        cache.insert(&made.frames.clone(), None, &made.bounds(), caller as u64 + 1);
    }
    assert_eq!(cache.shapes.len(), 1);
    for caller in (0..1000).rev() {
        made.write(20, 5000 + caller);
        assert_eq!(cache.with_frame(1000, made.address(0)).count(), 1);
        assert_eq!(recall(&mut cache, &made), Some(caller as u64 + 1));
    }
}
