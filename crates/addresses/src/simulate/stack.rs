//! Stack distances: how many other lines were used since a line was last used. A fully associative LRU cache of so many
//! lines misses, a larger one hits (Mattson and others, 1970).
//!
//! Every use has a place in a row, and only each line's last use is marked in it. The marks after a line's are its
//! distance; a tree of sums over the row counts them (Bennett and Kruskal, 1975). When the row is full, the marks move
//! together, so memory goes by the lines and not by the references.

use refrain_fold::FastMap;

const WORD: usize = 64;
/// Places at first.
const LEAST: usize = 1 << 16;

pub(super) struct Stack {
    /// Where each line's mark is.
    places: FastMap<u64, usize>,
    marks: Marks,
    /// The next free place.
    next: usize,
    /// The line used last, whose distance is nothing.
    last: Option<u64>,
}

impl Stack {
    pub(super) fn new() -> Stack {
        Stack { places: FastMap::default(), marks: Marks::new(LEAST), next: 0, last: None }
    }

    /// The distance of a line since its last use; none if this is its first.
    #[inline]
    pub(super) fn distance(&mut self, line: u64) -> Option<usize> {
        if self.last == Some(line) {
            return Some(0);
        }
        self.last = Some(line);
        self.look(line)
    }

    /// The same, and the line is not used by that.
    pub(super) fn look_up(&self, line: u64) -> Option<usize> {
        self.places.get(&line).map(|place| self.places.len() - self.marks.up_to(*place))
    }

    /// The line is as if it had never been used.
    pub(super) fn remove(&mut self, line: u64) {
        if let Some(place) = self.places.remove(&line) {
            self.marks.clear(place);
            self.last = self.last.filter(|last| *last != line);
        }
    }

    fn look(&mut self, line: u64) -> Option<usize> {
        if self.next == self.marks.len() {
            self.compact();
        }
        let place = self.next;
        self.next += 1;
        let before = self.places.insert(line, place);
        let distance = before.map(|before| {
            // The line's own mark is among those up to it.
            let after = self.places.len() - self.marks.up_to(before);
            self.marks.clear(before);
            after
        });
        self.marks.set(place);
        distance
    }

    /// Lines so far.
    pub(super) fn lines(&self) -> usize {
        self.places.len()
    }

    fn compact(&mut self) {
        let lines = self.places.len();
        for place in self.places.values_mut() {
            *place = self.marks.up_to(*place) - 1;
        }
        self.marks = Marks::with_first((4 * lines).max(LEAST), lines);
        self.next = lines;
    }
}

/// Bits, and a Fenwick tree over the counts in their words.
struct Marks {
    words: Vec<u64>,
    /// At i, the sum over the (i & -i) words up to the i-th, counted from 1.
    sums: Vec<u32>,
}

impl Marks {
    fn new(len: usize) -> Marks {
        let words = len.div_ceil(WORD);
        Marks { words: vec![0; words], sums: vec![0; words + 1] }
    }

    /// With the first so many set.
    fn with_first(len: usize, set: usize) -> Marks {
        let mut marks = Marks::new(len);
        for (at, word) in marks.words.iter_mut().enumerate() {
            let here = set.saturating_sub(at * WORD).min(WORD);
            *word = if here == 0 { 0 } else { u64::MAX >> (WORD - here) };
            marks.sums[at + 1] = here as u32;
        }
        for at in 1..marks.sums.len() {
            let parent = at + (at & at.wrapping_neg());
            if parent < marks.sums.len() {
                marks.sums[parent] += marks.sums[at];
            }
        }
        marks
    }

    fn len(&self) -> usize {
        self.words.len() * WORD
    }

    fn set(&mut self, place: usize) {
        self.words[place / WORD] |= 1 << (place % WORD);
        self.walk(place, |sum| *sum += 1);
    }

    fn clear(&mut self, place: usize) {
        self.words[place / WORD] &= !(1 << (place % WORD));
        self.walk(place, |sum| *sum -= 1);
    }

    fn walk(&mut self, place: usize, change: impl Fn(&mut u32)) {
        let mut at = place / WORD + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            change(sum);
            at += at & at.wrapping_neg();
        }
    }

    /// Marks up to a place, which counts too.
    fn up_to(&self, place: usize) -> usize {
        let mut at = place / WORD;
        let mut sum = (self.words[at] << (WORD - 1 - place % WORD)).count_ones() as usize;
        while at > 0 {
            sum += self.sums[at] as usize;
            at &= at - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &str, expected: &str) {
        let mut stack = Stack::new();
        let found: String = lines
            .bytes()
            .map(|line| stack.distance(line.into()).map_or('-', |d| char::from(b'0' + d as u8)))
            .collect();
        assert_eq!(found, expected, "{lines}");
    }

    #[test]
    fn by_hand() {
        check("", "");
        check("aaa", "-00");
        check("abab", "--11");
        check("abcba", "---12");
        check("abcabcc", "---2220");
        check("abbbca", "--00-2");
    }

    #[test]
    fn looking_up_changes_nothing() {
        let mut stack = Stack::new();
        for line in "abc".bytes() {
            stack.distance(line.into());
        }
        let seen = |stack: &Stack| "abcd".bytes().map(|line| stack.look_up(line.into())).collect::<Vec<_>>();
        assert_eq!(seen(&stack), [Some(2), Some(1), Some(0), None]);
        assert_eq!(seen(&stack), [Some(2), Some(1), Some(0), None]);
    }

    /// A list of lines, the latest first: a line's place in it is its distance.
    #[test]
    fn as_a_list_does_it_and_over_compactions() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut stack = Stack::new();
        let mut list: Vec<u64> = Vec::new();
        for round in 0..300_000u64 {
            let line = match round / 100_000 {
                0 => random.u64(..300),
                1 => (random.u64(..30) * random.u64(..30)) << 40,
                _ => round % 200,
            };
            let expected = list.iter().rposition(|have| *have == line);
            let distance = expected.map(|at| list.len() - 1 - at);
            if let Some(at) = expected {
                list.remove(at);
            }
            list.push(line);
            assert_eq!(stack.distance(line), distance, "round {round}");
        }
        assert_eq!(stack.lines(), list.len());
        assert_eq!(stack.marks.len(), LEAST, "memory goes by the lines");
    }

    #[test]
    fn more_lines_than_places_at_first() {
        let mut stack = Stack::new();
        let many = 3 * LEAST as u64;
        (0..many).for_each(|line| assert_eq!(stack.distance(line), None));
        for line in (0..many).rev() {
            // Lines above it were used again, and stay between.
            assert_eq!(stack.distance(line), Some((many - 1 - line) as usize));
        }
    }

    #[test]
    fn marks_in_order() {
        for set in [0, 1, 63, 64, 65, 200, 256] {
            let marks = Marks::with_first(256, set);
            let mut one_by_one = Marks::new(256);
            (0..set).for_each(|place| one_by_one.set(place));
            assert_eq!((&marks.words, &marks.sums), (&one_by_one.words, &one_by_one.sums));
            (0..256).for_each(|place| assert_eq!(marks.up_to(place), set.min(place + 1)));
        }
    }
}
