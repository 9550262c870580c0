//! How references come to the caches: which of them, in which order of threads, and where intervals end.

use refrain_addresses::{Batch, Error, Reader};

use super::super::files::Source;
use crate::progress::Bar;

/// What takes references.
pub trait Sink {
    fn add(&mut self, core: usize, batch: &Batch);

    /// The caches are warm: what comes from here on counts.
    fn warmed(&mut self) {}

    /// So many references count as an interval.
    fn interval_ended(&mut self) {}
}

/// Which references are simulated, and which of these count.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// So many are passed over first.
    pub skip: u64,
    /// Then so many are simulated and do not count.
    pub warmup: u64,
    /// Then so many count.
    pub limit: u64,
    pub interval: Option<u64>,
}

/// Where in a window the next reference is.
pub struct Feed<'a> {
    sink: &'a mut dyn Sink,
    skip: u64,
    warmup: u64,
    left: u64,
    interval: Option<u64>,
    /// Until an interval ends.
    until: u64,
    part: Batch,
}

impl<'a> Feed<'a> {
    pub fn new(window: Window, sink: &'a mut dyn Sink) -> Feed<'a> {
        let Window { skip, warmup, limit, interval } = window;
        let until = interval.unwrap_or(u64::MAX);
        Feed { sink, skip, warmup, left: limit, interval, until, part: Batch::new() }
    }

    /// Whether anything that comes would still be simulated.
    pub fn wants_more(&self) -> bool {
        self.left > 0
    }

    /// Hands on what is in the window.
    pub fn give(&mut self, core: usize, batch: &Batch) {
        let mut from = skipped(&mut self.skip, batch.len());
        while from < batch.len() && self.left > 0 {
            let most = if self.warmup > 0 { self.warmup } else { self.left.min(self.until) };
            let count = usize::try_from(most).unwrap_or(usize::MAX).min(batch.len() - from);
            match count == batch.len() {
                true => self.sink.add(core, batch),
                false => {
                    batch.copy_part(from..from + count, &mut self.part);
                    self.sink.add(core, &self.part);
                }
            }
            from += count;
            self.passed(count as u64);
        }
    }

    fn passed(&mut self, count: u64) {
        if self.warmup > 0 {
            self.warmup -= count;
            if self.warmup == 0 {
                self.sink.warmed();
            }
            return;
        }
        self.left -= count;
        self.until -= count;
        if self.until == 0 {
            self.sink.interval_ended();
            self.until = self.interval.unwrap_or(u64::MAX);
        }
    }

    /// There is nothing more: an interval that has begun ends too.
    pub fn end(self) {
        if self.warmup > 0 {
            self.sink.warmed();
        }
        if self.interval.is_some_and(|interval| self.until < interval) {
            self.sink.interval_ended();
        }
    }
}

/// How many of so many are passed over.
fn skipped(left: &mut u64, count: usize) -> usize {
    let now = usize::try_from(*left).unwrap_or(usize::MAX).min(count);
    *left -= now as u64;
    now
}

/// Which thread runs on which core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// Of each thread; where there are more threads, it begins anew.
    pins: Vec<usize>,
}

impl Cores {
    /// Threads go round them.
    pub fn round(count: usize) -> Cores {
        Cores { pins: (0..count.max(1)).collect() }
    }

    pub fn pinned(pins: &[usize]) -> Cores {
        Cores { pins: pins.to_vec() }
    }

    pub fn count(&self) -> usize {
        self.pins.iter().max().map_or(1, |last| last + 1)
    }

    fn of(&self, thread: usize) -> usize {
        self.pins[thread % self.pins.len()]
    }
}

/// Hands on what threads did, in the order of the trace, each to its core.
fn give_by_thread(feed: &mut Feed<'_>, cores: &Cores, batch: &Batch, part: &mut Batch) {
    if batch.threads.is_empty() {
        return feed.give(0, batch);
    }
    let core = |at: usize| cores.of(batch.threads[at] as usize);
    let mut from = 0;
    while from < batch.len() {
        let same = (from..batch.len()).take_while(|at| core(*at) == core(from)).count();
        if same == batch.len() {
            return feed.give(core(from), batch);
        }
        batch.copy_part(from..from + same, part);
        feed.give(core(from), part);
        from += same;
    }
}

/// The references of one source; what stopped it.
pub fn of_one(source: &mut Source, cores: &Cores, window: Window, sink: &mut dyn Sink) -> Option<Error> {
    let mut bar = Bar::new("simulating");
    let (mut batch, mut part) = (Batch::new(), Batch::new());
    let mut feed = Feed::new(window, sink);
    let mut damage = None;
    while feed.wants_more() {
        match source.next(&mut batch) {
            Ok(true) => give_by_thread(&mut feed, cores, &batch, &mut part),
            Ok(false) => break,
            Err(error) => {
                damage = Some(error);
                break;
            }
        }
        if let Some((done, all)) = source.progress() {
            bar.show(done, all);
        }
    }
    feed.end();
    damage
}

/// What threads do, `turn` references of each at a time, until the last has ended.
pub fn of_threads(
    readers: Vec<Reader>,
    cores: &Cores,
    turn: u64,
    window: Window,
    sink: &mut dyn Sink,
) -> Option<Error> {
    // What was read of each and is not simulated yet, from where on.
    let mut threads: Vec<Option<(Reader, Batch, usize)>> =
        readers.into_iter().map(|reader| Some((reader, Batch::new(), 0))).collect();
    let mut feed = Feed::new(window, sink);
    let (mut some, mut damage) = (Batch::new(), None);
    while feed.wants_more() && threads.iter().any(Option::is_some) {
        for (number, thread) in threads.iter_mut().enumerate() {
            let mut now = turn;
            while now > 0 && feed.wants_more() {
                let Some((reader, batch, from)) = thread else { break };
                if *from == batch.len() {
                    *from = 0;
                    match reader.read(batch) {
                        Ok(true) => {}
                        end => {
                            damage = damage.or(end.err());
                            *thread = None;
                            break;
                        }
                    }
                }
                let count = now.min((batch.len() - *from) as u64);
                let to = *from + count as usize;
                batch.copy_part(*from..to, &mut some);
                feed.give(cores.of(number), &some);
                *from = to;
                now -= count;
            }
        }
    }
    feed.end();
    damage
}

#[cfg(test)]
mod tests {
    use refrain_addresses::{Fields, Reference};

    use super::*;

    /// What came, as text: addresses, `|` where an interval ended, `!` where the caches were warm.
    #[derive(Default)]
    struct Seen(String);

    impl Sink for Seen {
        fn add(&mut self, _: usize, batch: &Batch) {
            self.0.extend(batch.addresses.iter().map(|address| char::from(b'0' + *address as u8)));
        }

        fn warmed(&mut self) {
            self.0.push('!');
        }

        fn interval_ended(&mut self) {
            self.0.push('|');
        }
    }

    /// Ten references, 0 to 9, in batches of four.
    #[track_caller]
    fn check(skip: u64, warmup: u64, limit: u64, interval: Option<u64>, expected: &str) {
        let mut seen = Seen::default();
        let mut feed = Feed::new(Window { skip, warmup, limit, interval }, &mut seen);
        for some in (0..10).collect::<Vec<u64>>().chunks(4) {
            let mut batch = Batch::new();
            some.iter()
                .for_each(|&address| batch.push(Fields::NONE, Reference { address, ..Reference::default() }));
            feed.give(0, &batch);
        }
        feed.end();
        assert_eq!(seen.0, expected, "{skip} {warmup} {limit} {interval:?}");
    }

    /// Threads of a batch go to their cores, in the order of the trace.
    #[test]
    fn threads_on_cores() {
        struct Seen(Vec<(usize, Vec<u64>)>);
        impl Sink for Seen {
            fn add(&mut self, core: usize, batch: &Batch) {
                self.0.push((core, batch.addresses.clone()));
            }
        }
        let given = |cores: &Cores, threads: &[u32]| {
            let mut batch = Batch::new();
            (0..4)
                .for_each(|address| batch.push(Fields::NONE, Reference { address, ..Reference::default() }));
            batch.threads = threads.to_vec();
            let mut seen = Seen(Vec::new());
            let window = Window { skip: 0, warmup: 0, limit: u64::MAX, interval: None };
            let mut feed = Feed::new(window, &mut seen);
            give_by_thread(&mut feed, cores, &batch, &mut Batch::new());
            seen.0
        };
        let two = Cores::round(2);
        assert_eq!(two.count(), 2);
        assert_eq!(given(&two, &[0, 0, 1, 2]), [(0, vec![0, 1]), (1, vec![2]), (0, vec![3])]);
        assert_eq!(given(&Cores::round(1), &[0, 0, 1, 2]), [(0, vec![0, 1, 2, 3])]);
        assert_eq!(given(&two, &[]), [(0, vec![0, 1, 2, 3])]);
        let pinned = Cores::pinned(&[2, 0, 2]);
        assert_eq!(pinned.count(), 3);
        assert_eq!(given(&pinned, &[0, 1, 2, 3]), [(2, vec![0]), (0, vec![1]), (2, vec![2, 3])]);
    }

    #[test]
    fn windows() {
        const ALL: u64 = u64::MAX;
        check(0, 0, ALL, None, "0123456789");
        check(3, 0, ALL, None, "3456789");
        check(3, 0, 2, None, "34");
        check(5, 0, 0, None, "");
        check(20, 0, ALL, Some(3), "");
        // The last interval is shorter; one that ends with the trace is not counted twice.
        check(0, 0, ALL, Some(3), "012|345|678|9|");
        check(0, 0, ALL, Some(5), "01234|56789|");
        check(1, 0, 5, Some(3), "123|45|");
        // What warms comes before intervals begin, and is not among those that the limit is for.
        check(1, 3, 4, Some(2), "123!45|67|");
        check(0, 20, ALL, Some(4), "0123456789!");
    }
}
