//! What a trace looks like, in one pass: the statistics of the paper's sections 2.1 and 3.2, and its Table 6.

mod footprint;
mod packing;

use crate::pdats::width;
use crate::{Batch, Fields, KINDS, WordCounts};

use footprint::Pages;
pub use footprint::{Footprint, LINE, MOST_PAGES, PAGE, Touched};
use packing::Packers;
pub use packing::Packing;

/// Offsets are counted by the bytes that hold them: one, two, four or eight.
pub const WIDTHS: [u64; 4] = [1, 2, 4, 8];

/// Time stamps are counted by how much later they are: as PDATS has codes for, and then what has none.
pub const TIME_CLASSES: [&str; 6] = ["+0", "+1", "+2..255", "+256..65536", "more", "earlier"];

/// The references of one kind, which are a stream of their own.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    pub count: u64,
    /// Offsets below zero, by [`WIDTHS`].
    pub negative: [u64; 4],
    /// Offsets of exactly the step.
    pub exact: u64,
    /// All others.
    pub positive: [u64; 4],
    /// Offsets that are the size of the reference before, which then ends where this one begins.
    pub adjacent: u64,
    /// Offsets like the one before in this stream.
    pub steady: u64,
    pub repeats: Repeats,
    /// By [`TIME_CLASSES`].
    pub times: [u64; 6],
    /// Sum of log2(|d + 1/2| + 1/2).
    bits: f64,
    last: u64,
    last_size: u16,
    last_offset: i64,
}

impl Stream {
    /// Mean distance between neighbours in bits, the paper's l.
    pub fn locality_bits(&self) -> f64 {
        share(self.bits, self.count)
    }

    /// And in bytes, its L.
    pub fn locality_bytes(&self) -> f64 {
        share(self.by_width().iter().zip(WIDTHS).map(|(n, bytes)| n * bytes).sum::<u64>() as f64, self.count)
    }

    /// Offsets by the bytes that hold them, whatever their sign. The step is one of them.
    pub fn by_width(&self) -> [u64; 4] {
        let mut all: [u64; 4] = std::array::from_fn(|i| self.negative[i] + self.positive[i]);
        all[0] += self.exact;
        all
    }

    fn add(&mut self, other: &Stream) {
        self.count += other.count;
        self.exact += other.exact;
        self.adjacent += other.adjacent;
        self.steady += other.steady;
        self.bits += other.bits;
        for i in 0..4 {
            self.negative[i] += other.negative[i];
            self.positive[i] += other.positive[i];
        }
        for (sum, n) in self.times.iter_mut().zip(other.times) {
            *sum += n;
        }
        self.repeats.add(&other.repeats);
    }
}

fn share(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// How often runs are repeated: exactly up to 255 times, as classic PDATS can count, then by powers of two.
#[derive(Debug, Clone)]
pub struct Repeats {
    few: [u64; 256],
    /// At place i, runs of 2^i to 2^(i+1) - 1.
    many: [u64; 64],
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats { few: [0; 256], many: [0; 64] }
    }
}

impl Repeats {
    fn count(&mut self, repeats: u64) {
        match self.few.get_mut(usize::try_from(repeats).unwrap_or(usize::MAX)) {
            Some(slot) => *slot += 1,
            None => self.many[repeats.ilog2() as usize] += 1,
        }
    }

    fn add(&mut self, other: &Repeats) {
        self.few.iter_mut().zip(other.few).for_each(|(sum, n)| *sum += n);
        self.many.iter_mut().zip(other.many).for_each(|(sum, n)| *sum += n);
    }

    /// Rows that are not empty: from, to, how many.
    pub fn rows(&self) -> Vec<(u64, u64, u64)> {
        let few = self.few.iter().enumerate().map(|(n, count)| (n as u64, n as u64, *count));
        let many = self.many.iter().enumerate().map(|(i, count)| (1 << i, u64::MAX >> (63 - i), *count));
        few.chain(many).filter(|(_, _, count)| *count > 0).collect()
    }

    /// Runs, which are the records of PDATS if its counts had no bound.
    pub fn runs(&self) -> u64 {
        self.few.iter().chain(&self.many).sum()
    }
}

pub struct Stats {
    /// The offset that is counted apart.
    pub step: i64,
    pub fields: Fields,
    streams: [Stream; KINDS],
    words: WordCounts,
    pages: Pages,
    packers: Packers,
    time: u64,
    started: bool,
    /// Kind, offset, time offset and repeats of the references alike so far.
    run: Option<(u8, i64, u64, u64)>,
}

/// What came out.
pub struct Report {
    pub step: i64,
    pub fields: Fields,
    /// By kind.
    pub streams: [Stream; KINDS],
    pub all: Stream,
    pub words: WordCounts,
    pub footprint: Footprint,
    pub packing: Packing,
}

impl Stats {
    /// With `lz`, PDATS is also compressed, which takes far longer than all the rest.
    pub fn new(fields: Fields, step: i16, lz: bool) -> Stats {
        Stats {
            step: i64::from(step),
            fields,
            streams: std::array::from_fn(|_| Stream::default()),
            words: WordCounts::new(),
            pages: Pages::new(MOST_PAGES),
            packers: Packers::new(fields, step, lz),
            time: 0,
            started: false,
            run: None,
        }
    }

    /// The batch must have the fields that were said.
    pub fn add(&mut self, batch: &Batch) {
        self.packers.add(batch);
        self.words.add(batch);
        self.pages.add(batch);
        for i in 0..batch.len() {
            let kind = batch.kinds[i];
            let stream = &mut self.streams[usize::from(kind) % KINDS];
            let address = batch.addresses[i];
            let offset = address.wrapping_sub(stream.last) as i64;
            let class = [0, 0, 1, 2, 2, 3, 3, 3, 3][width(offset)];
            match offset {
                _ if offset == self.step => stream.exact += 1,
                ..0 => stream.negative[class] += 1,
                _ => stream.positive[class] += 1,
            }
            stream.bits += bits(offset);
            if stream.count > 0 {
                stream.adjacent += u64::from(offset == i64::from(stream.last_size));
                stream.steady += u64::from(stream.count > 1 && offset == stream.last_offset);
            }
            stream.count += 1;
            stream.last = address;
            stream.last_offset = offset;
            stream.last_size = batch.sizes.get(i).copied().unwrap_or(0);
            let mut later = 0;
            if let Some(time) = batch.times.get(i) {
                later = time.wrapping_sub(self.time);
                let before = std::mem::replace(&mut self.time, *time);
                stream.times[match later {
                    _ if !self.started => 0,
                    _ if *time < before => 5,
                    0 => 0,
                    1 => 1,
                    2..256 => 2,
                    256..=65_536 => 3,
                    _ => 4,
                }] += 1;
                self.started = true;
            }
            match &mut self.run {
                Some((k, o, t, repeats)) if (*k, *o, *t) == (kind, offset, later) => *repeats += 1,
                run => {
                    if let Some((kind, _, _, repeats)) = run.replace((kind, offset, later, 0)) {
                        self.streams[usize::from(kind) % KINDS].repeats.count(repeats);
                    }
                }
            }
        }
    }

    /// `original` is the length of the trace in its own format.
    pub fn finish(mut self, original: u64) -> Report {
        if let Some((kind, _, _, repeats)) = self.run.take() {
            self.streams[usize::from(kind) % KINDS].repeats.count(repeats);
        }
        let mut all = Stream::default();
        self.streams.iter().for_each(|stream| all.add(stream));
        let packing = self.packers.finish(original, all.count);
        Report {
            step: self.step,
            fields: self.fields,
            streams: self.streams,
            all,
            words: self.words,
            footprint: self.pages.finish(),
            packing,
        }
    }
}

/// The bits that an offset needs in two's complement, as section 2.1 counts them.
fn bits(offset: i64) -> f64 {
    // |d + 1/2| + 1/2 is d + 1 where d is not negative, and -d where it is: both without rounding.
    let magnitude = if offset < 0 { offset.unsigned_abs() } else { offset as u64 + 1 };
    (magnitude as f64).log2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reference;

    fn report(references: &[(u8, u64)], step: i16) -> Report {
        let mut batch = Batch::new();
        for (kind, address) in references {
            batch.push(Fields::NONE, Reference { kind: *kind, address: *address, ..Reference::default() });
        }
        let mut stats = Stats::new(Fields::NONE, step, false);
        stats.add(&batch);
        stats.finish(100)
    }

    #[test]
    fn bits_of_offsets() {
        for (offset, expected) in
            [(0, 0.0), (-1, 0.0), (1, 1.0), (-2, 1.0), (3, 2.0), (-4, 2.0), (127, 7.0), (-128, 7.0)]
        {
            assert_eq!(bits(offset), expected, "{offset}");
        }
        assert_eq!(bits(i64::MIN), 63.0);
    }

    #[test]
    fn offsets_by_kind_sign_and_width() {
        let report = report(&[(0, 1000), (0, 1004), (0, 1003), (0, 70_000), (1, 4), (0, 1 << 40), (0, 0)], 4);
        let reads = &report.streams[0];
        assert_eq!((reads.count, reads.exact), (6, 1));
        assert_eq!(reads.negative, [1, 0, 0, 1]);
        assert_eq!(reads.positive, [0, 1, 1, 1]);
        assert_eq!(report.streams[1].exact, 1);
        assert_eq!(reads.by_width(), [2, 1, 1, 2]);
        assert_eq!(reads.locality_bytes(), (2 + 2 + 4 + 16) as f64 / 6.0);
    }

    #[test]
    fn runs() {
        let report = report(&[(2, 4), (2, 8), (2, 12), (0, 4), (2, 16), (2, 24), (2, 32)], 4);
        assert_eq!(report.streams[2].repeats.rows(), [(0, 0, 1), (1, 1, 1), (2, 2, 1)]);
        assert_eq!(report.streams[0].repeats.rows(), [(0, 0, 1)]);
        assert_eq!(report.all.repeats.runs(), 4);
        let long: Vec<(u8, u64)> = (1..=1000).map(|i| (0, 4 * i)).collect();
        assert_eq!(super::tests::report(&long, 4).all.repeats.rows(), [(512, 1023, 1)]);
    }

    #[test]
    fn times() {
        let fields = Fields { times: true, sizes: true, ..Fields::NONE };
        let mut batch = Batch::new();
        for time in [9_000_000, 9_000_000, 9_000_001, 9_000_003, 9_000_300, 9_900_000, 5] {
            let address = 8 * batch.len() as u64;
            batch.push(fields, Reference { address, time, size: 8, ..Reference::default() });
        }
        let mut stats = Stats::new(fields, 4, false);
        stats.add(&batch);
        let report = stats.finish(100);
        assert_eq!(report.all.times, [2, 1, 1, 1, 1, 1]);
        assert_eq!((report.all.adjacent, report.all.steady), (6, 5));
    }
}
