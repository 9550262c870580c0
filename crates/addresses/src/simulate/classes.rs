//! Why a line was missing: compulsory, capacity or conflict (Hill and Smith, 1989).
//!
//! Beside the cache stands one of as many lines that is fully associative and LRU. What that would have had is missing because
//! of the sets or the policy.

use refrain_fold::FastMap;

use super::stack::Stack;

/// In the order of their weight: a reference to several lines has the class of the heaviest that it misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A fully associative LRU cache of the same size would have had it.
    Conflict = 0,
    /// A larger one would have had it.
    Capacity = 1,
    /// None would: the line was never brought in before.
    Compulsory = 2,
    /// None would: another core wrote to the line.
    Coherence = 3,
}

impl Class {
    /// Those that one core has by itself.
    pub const ALL: [Class; 3] = [Class::Compulsory, Class::Capacity, Class::Conflict];

    pub fn name(self) -> &'static str {
        match self {
            Class::Compulsory => "compulsory",
            Class::Capacity => "capacity",
            Class::Conflict => "conflict",
            Class::Coherence => "coherence",
        }
    }
}

/// Tells the class of what is missing.
pub(super) struct Classifier {
    stack: Stack,
    /// Of the cache.
    lines: usize,
    /// Lines that writes of other cores took away.
    lost: FastMap<u64, ()>,
    /// Of the reference at hand, so far.
    pub(super) heaviest: Option<Class>,
}

impl Classifier {
    pub(super) fn new(lines: usize) -> Classifier {
        Classifier { stack: Stack::new(), lines, lost: FastMap::default(), heaviest: None }
    }

    /// A line was taken out of all caches.
    pub(super) fn forget(&mut self, line: u64) {
        self.stack.remove(line);
    }

    /// Another core wrote to a line.
    pub(super) fn lose(&mut self, line: u64) {
        self.lost.insert(line, ());
    }

    /// A prefetch brings a line back: if it is missing again, nobody's write is the reason.
    pub(super) fn regain(&mut self, line: u64) {
        self.lost.remove(&line);
    }

    /// A line is used, and was missing or not. If it was and is not brought in, it is not in the other cache either.
    pub(super) fn used(&mut self, line: u64, missing: bool, brought: bool) {
        let distance = match missing && !brought {
            true => match self.stack.look_up(line) {
                Some(distance) if distance < self.lines => self.stack.distance(line),
                not_there => not_there,
            },
            false => self.stack.distance(line),
        };
        let lost = self.lost.remove(&line).is_some();
        if missing {
            let class = match distance {
                _ if lost => Class::Coherence,
                None => Class::Compulsory,
                Some(distance) if distance >= self.lines => Class::Capacity,
                Some(_) => Class::Conflict,
            };
            self.heaviest = self.heaviest.max(Some(class));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of one letter, which miss where it is a capital: their classes.
    #[track_caller]
    fn check(lines: usize, uses: &str, brought: bool, expected: &str) {
        let mut classifier = Classifier::new(lines);
        let classes: String = uses
            .bytes()
            .map(|name| {
                classifier.used(name.to_ascii_lowercase().into(), name.is_ascii_uppercase(), brought);
                match classifier.heaviest.take() {
                    Some(class) => class.name().as_bytes()[1] as char,
                    None => '.',
                }
            })
            .collect();
        assert_eq!(classes, expected, "{uses}");
    }

    #[test]
    fn by_hand() {
        // The second letters: cOmpulsory, cApacity; of cOnflict too, so what is first seen tells these apart.
        // Two lines. a and b come first; a again would be in a full cache of two: conflict.
        check(2, "ABA", true, "ooo");
        // With c between, a has two others since: capacity. b then has c and a: capacity again.
        check(2, "ABCAB", true, "oooaa");
        // A hit is in no class, and counts as a use: b is then the older one, and c finds a conflict in a.
        check(2, "ABaCA", true, "oo.oo");
        // Not brought in: the line stays new, whatever the size.
        check(2, "AAA", false, "ooo");
    }

    #[test]
    fn classes_by_name() {
        let mut classifier = Classifier::new(2);
        let mut class = |line, brought| {
            classifier.used(line, true, brought);
            classifier.heaviest.take().unwrap()
        };
        assert_eq!(class(1, true), Class::Compulsory);
        assert_eq!(class(2, true), Class::Compulsory);
        assert_eq!(class(1, true), Class::Conflict);
        assert_eq!(class(3, true), Class::Compulsory);
        assert_eq!(class(2, true), Class::Capacity);
        // Written around the cache, a line is as new as before.
        assert_eq!(class(9, false), Class::Compulsory);
        assert_eq!(class(9, true), Class::Compulsory);
        assert_eq!(class(9, false), Class::Conflict);
        // 1 is too far away, and a write around the cache does not bring it nearer.
        assert_eq!(class(1, false), Class::Capacity);
        assert_eq!(class(1, false), Class::Capacity);
    }
}
