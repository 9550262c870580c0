//! Numbers in columns of their bytes, each column in an order in which what is alike stands together: that of the bytes above, as
//! far as they are told already. Numbers with the same bytes above keep their order.

/// Columns of a number: its five upper bytes, and each of the others.
pub(crate) const PARTS: usize = 4;

/// Groups of less are sorted by insertion.
const FEW: usize = 24;

/// An order of numbers by some of their upper bytes.
#[derive(Default)]
pub(crate) struct Order {
    order: Vec<u32>,
    /// Where those begin and end that are alike so far, if they are more than one.
    alike: Vec<(u32, u32)>,
    split: Vec<(u32, u32)>,
    moved: Vec<u32>,
    bytes: Vec<u8>,
}

impl Order {
    fn begin(&mut self, count: usize) {
        self.order.clear();
        self.order.extend(0..count as u32);
        self.alike.clear();
        self.alike.extend((count > 1).then_some((0, count as u32)));
    }

    /// By one byte more: the one of `bytes`, which are in the order so far.
    fn refine(&mut self) {
        let Order { order, alike, split, moved, bytes } = self;
        split.clear();
        for &(begin, end) in alike.iter() {
            let (order, bytes) =
                (&mut order[begin as usize..end as usize], &mut bytes[begin as usize..end as usize]);
            if bytes.iter().all(|byte| *byte == bytes[0]) {
                split.push((begin, end));
                continue;
            }
            if bytes.len() < FEW {
                insert(order, bytes)
            } else {
                count(order, bytes, moved)
            }
            let mut at = 0;
            for some in bytes.chunk_by(|a, b| a == b) {
                if some.len() > 1 {
                    split.push((begin + at, begin + at + some.len() as u32));
                }
                at += some.len() as u32;
            }
        }
        std::mem::swap(alike, split);
    }

    /// Puts the numbers behind what the columns have.
    pub(crate) fn put(&mut self, numbers: &[u64], columns: &mut [Vec<u8>]) {
        self.begin(numbers.len());
        for part in (0..8).rev() {
            self.bytes.clear();
            let byte = |at: &u32| (numbers[*at as usize] >> (8 * part)) as u8;
            self.bytes.extend(self.order.iter().map(byte));
            columns[column(part)].extend_from_slice(&self.bytes);
            if part > 0 {
                self.refine();
            }
        }
    }

    /// The numbers that the columns have, and nothing else. False if no writer makes such columns.
    pub(crate) fn take(&mut self, columns: &[Vec<u8>], numbers: &mut Vec<u64>) -> bool {
        let count = columns[PARTS - 1].len();
        numbers.clear();
        if columns[0].len() != 5 * count || columns[1..].iter().any(|column| column.len() != count) {
            return false;
        }
        numbers.resize(count, 0);
        self.begin(count);
        for part in (0..8).rev() {
            let bytes = match part {
                3.. => &columns[0][(7 - part) * count..][..count],
                _ => &columns[column(part)],
            };
            for (at, byte) in self.order.iter().zip(bytes) {
                numbers[*at as usize] |= u64::from(*byte) << (8 * part);
            }
            if part > 0 && !self.alike.is_empty() {
                self.bytes.clear();
                self.bytes.extend_from_slice(bytes);
                self.refine();
            }
        }
        true
    }
}

fn column(part: usize) -> usize {
    PARTS - 1 - part.min(PARTS - 1)
}

fn insert(order: &mut [u32], bytes: &mut [u8]) {
    for end in 1..bytes.len() {
        let (which, byte) = (order[end], bytes[end]);
        let mut at = end;
        while at > 0 && bytes[at - 1] > byte {
            (order[at], bytes[at]) = (order[at - 1], bytes[at - 1]);
            at -= 1;
        }
        (order[at], bytes[at]) = (which, byte);
    }
}

fn count(order: &mut [u32], bytes: &mut [u8], moved: &mut Vec<u32>) {
    let mut ends = [0u32; 256];
    bytes.iter().for_each(|byte| ends[usize::from(*byte)] += 1);
    let mut sum = 0;
    let counts = ends;
    for end in &mut ends {
        sum += std::mem::replace(end, sum);
    }
    moved.clear();
    moved.extend_from_slice(order);
    for (which, byte) in moved.iter().zip(bytes.iter()) {
        let at = &mut ends[usize::from(*byte)];
        order[*at as usize] = *which;
        *at += 1;
    }
    let mut rest = bytes;
    for (byte, count) in (0..=255).zip(counts) {
        let (these, others) = rest.split_at_mut(count as usize);
        these.fill(byte);
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_one_by_hand() {
        let mut columns: [Vec<u8>; PARTS] = Default::default();
        Order::default().put(&[0x0203_0401, 0x0203_0302, 0x0203_0403], &mut columns);
        // Five bytes of each, where the lowest alone is not 0; then the others, the last by the order of the one before it.
        let mut upper = [0; 15];
        upper[12..].fill(2);
        assert_eq!(columns, [upper.to_vec(), vec![3; 3], vec![4, 3, 4], vec![2, 1, 3]]);
    }

    #[test]
    fn numbers_come_back() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut order = Order::default();
        for count in [0, 1, 2, 23, 24, 25, 1000, 30_000] {
            for bits in [1, 9, 20, 33, 64] {
                let numbers: Vec<u64> = (0..count).map(|_| random.u64(..) >> (64 - bits)).collect();
                let mut columns: [Vec<u8>; PARTS] = Default::default();
                order.put(&numbers, &mut columns);
                // As it is told: by the bytes above.
                for (at, part) in [(3, 0), (2, 1), (1, 2)] {
                    let mut sorted = numbers.clone();
                    sorted.sort_by_key(|number| number >> (8 * part + 8));
                    let bytes: Vec<u8> = sorted.iter().map(|number| (number >> (8 * part)) as u8).collect();
                    assert_eq!(columns[at], bytes);
                }
                let mut again = vec![1];
                assert!(order.take(&columns, &mut again));
                assert_eq!(again, numbers);
                if count > 0 {
                    columns[1].pop();
                    assert!(!order.take(&columns, &mut again));
                }
            }
        }
    }
}
