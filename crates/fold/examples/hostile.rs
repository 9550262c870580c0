//! Orders that no folder likes: nanoseconds of processor time an event takes in each folder, to push and to finish, from
//! 1,000 events to a million. A folder that is linear whatever comes has about the same number in each column.
//!
//!     cargo run --release -p refrain-fold --example hostile [EVENTS [WORD...]]
//!
//! EVENTS is the longest sequence; of the orders and folders only those are run whose name holds one of the words.

use fastrand::Rng;
use refrain_fold::loops::{self, Matching};
use refrain_fold::{grammar, stream};
use std::hint::black_box;

type Order = (&'static str, fn(usize) -> Vec<u32>);

const ORDERS: &[Order] = &[
    ("random of 20", |n| uniform(n, 20)),
    ("random of 200", |n| uniform(n, 200)),
    ("random of 2,000", |n| uniform(n, 2_000)),
    ("random of 50,000", |n| uniform(n, 50_000)),
    ("random, some far more often", |n| {
        let mut random = Rng::with_seed(7);
        let mut draw = || {
            let top = 1 << random.u32(..17);
            random.u32(..top)
        };
        (0..n).map(|_| draw()).collect()
    }),
    ("random walk over 1,000", |n| {
        let (mut random, mut at) = (Rng::with_seed(3), 500);
        (0..n)
            .map(|_| {
                at = (at + 999 + 2 * random.u32(..2)) % 1000;
                at
            })
            .collect()
    }),
    ("a new order of 1,000 each time", |n| {
        let (mut random, mut body) = (Rng::with_seed(9), (0..1000).collect::<Vec<u32>>());
        let mut all = Vec::with_capacity(n + 1000);
        while all.len() < n {
            (1..1000).rev().for_each(|i| body.swap(i, random.usize(..i + 1)));
            all.extend(&body);
        }
        all.truncate(n);
        all
    }),
    ("sawtooth: 500 up, 500 down", |n| (0..500).chain((0..500).rev()).cycle().take(n).collect()),
    ("sawtooth with growing teeth", |n| {
        (1..).flat_map(|top| (0..top).chain((0..top).rev())).take(n).collect()
    }),
    ("reversed: all of it, then backwards", |n| {
        let half = n as u32 / 2;
        (0..half).chain((0..half).rev()).collect()
    }),
    ("Fibonacci word", |n| {
        let (mut word, mut before) = (vec![0, 1], vec![0]);
        while word.len() < n {
            let next = [&word[..], &before].concat();
            before = std::mem::replace(&mut word, next);
        }
        word.truncate(n);
        word
    }),
    ("Thue-Morse word", |n| (0..n).map(|i| i.count_ones() % 2).collect()),
    ("ruler: how often two divides", |n| (1..=n).map(|i| i.trailing_zeros()).collect()),
    ("de Bruijn, 10 symbols", |n| {
        // Each word of `order` symbols once: the Lyndon words of lengths that divide it, one behind the other.
        let order = n.max(10).ilog10() as usize;
        let (mut word, mut all) = (vec![0u32], Vec::with_capacity(n));
        while all.len() < n && !word.is_empty() {
            if order.is_multiple_of(word.len()) {
                all.extend(&word);
            }
            word = word.iter().copied().cycle().take(order).collect();
            while word.last() == Some(&9) {
                word.pop();
            }
            word.iter_mut().last().into_iter().for_each(|last| *last += 1);
        }
        all.truncate(n);
        all
    }),
    ("nested loops, one of them left out at random", |n| {
        let mut random = Rng::with_seed(5);
        let steps = std::iter::repeat_with(|| {
            let mut step: Vec<u32> = [vec![0], (1..9).collect::<Vec<_>>().repeat(4), vec![9, 10]].concat();
            step.remove(random.usize(..step.len()));
            step
        });
        steps.flatten().take(n).collect()
    }),
    ("nested loops, trips at random", |n| {
        let mut random = Rng::with_seed(5);
        let steps = std::iter::repeat_with(|| {
            let inner = [1, 2].repeat(1 + random.usize(..9));
            [vec![0], inner, [3, 4, 5].repeat(random.usize(..7)), vec![6]].concat()
        });
        steps.flatten().take(n).collect()
    }),
    ("a body of 1,000, each there or not", |n| {
        let mut random = Rng::with_seed(5);
        (0..1000).cycle().filter(|_| random.u32(..2) == 0).take(n).collect()
    }),
    ("a body of 20,000, a hundredth of it at random", |n| {
        let mut random = Rng::with_seed(5);
        (0..20_000).cycle().filter(|_| random.u32(..100) == 0).take(n).collect()
    }),
    ("something new each time", |n| (0..n as u32).map(|i| if i % 3 < 2 { i % 3 } else { i }).collect()),
    ("all different", |n| (0..n as u32).collect()),
];

fn uniform(n: usize, symbols: u32) -> Vec<u32> {
    let mut random = Rng::with_seed(1);
    (0..n).map(|_| random.u32(..symbols)).collect()
}

/// Pushes all, then finishes: nanoseconds of each, and bytes held in between.
type Run = fn(&[u32]) -> (u64, u64, usize);

const FOLDERS: [(&str, Run); 4] = [
    ("grammar", |symbols| {
        let mut folder = grammar::Folder::new();
        let begin = processor_time();
        symbols.iter().for_each(|&symbol| folder.push(symbol));
        let pushed = processor_time();
        let folded = folder.finish();
        let done = processor_time();
        assert!(folded.iter().eq(symbols.iter().copied()));
        (pushed - begin, done - pushed, folder.memory())
    }),
    ("loops", |symbols| into_loops(symbols, Matching::Elastic)),
    ("loops,exact", |symbols| into_loops(symbols, Matching::Exact { window: loops::WINDOW })),
    ("stream", |numbers| {
        let mut folder = stream::Folder::new();
        let begin = processor_time();
        numbers.iter().for_each(|&number| folder.push(number.into()));
        let pushed = processor_time();
        let folded = folder.finish();
        let done = processor_time();
        assert!(folded.iter().take(numbers.len()).eq(numbers.iter().map(|&number| i64::from(number))));
        (pushed - begin, done - pushed, folder.memory())
    }),
];

fn into_loops(symbols: &[u32], matching: Matching) -> (u64, u64, usize) {
    let mut folder = loops::Folder::new(matching);
    let begin = processor_time();
    for &symbol in symbols {
        black_box(folder.predicted());
        folder.push(symbol);
    }
    let pushed = processor_time();
    let folded = folder.finish();
    let done = processor_time();
    assert!(folded.iter().eq(symbols.iter().copied()));
    (pushed - begin, done - pushed, folder.memory())
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let most: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let words: Vec<String> = arguments.collect();
    let tens = std::iter::successors(Some(1000), |n| Some(n * 10)).take_while(|&n| n < most);
    let lengths: Vec<usize> = tens.chain([most]).collect();
    let wanted = |name: &str, all: &[&str]| {
        let mut of_these = words.iter().filter(|word| all.iter().any(|name| name.contains(*word))).peekable();
        of_these.peek().is_none() || of_these.any(|word| name.contains(word))
    };
    let orders: Vec<&str> = ORDERS.iter().map(|order| order.0).collect();
    let folders = FOLDERS.map(|folder| folder.0);
    println!("ns an event: push, and finish behind the +; of the longest also bytes an event");
    print!("{:46} {:11}", "", "");
    lengths.iter().for_each(|n| print!("{n:>18}"));
    println!();
    for (order, sequence) in ORDERS.iter().filter(|order| wanted(order.0, &orders)) {
        for (at, (folder, run)) in FOLDERS.iter().filter(|folder| wanted(folder.0, &folders)).enumerate() {
            print!("{:46} {folder:11}", if at == 0 { order } else { "" });
            let mut held = 0.0;
            for &n in &lengths {
                let sequence = sequence(n);
                // The clock is coarse: short sequences are folded until there is something to divide.
                let (mut push, mut finish, mut events) = (0, 0, 0);
                while events == 0 || push + finish < 60_000_000 {
                    let one = run(&sequence);
                    (push, finish, events) = (push + one.0, finish + one.1, events + sequence.len());
                    held = one.2 as f64 / sequence.len() as f64;
                }
                print!("{:9.0} + {:6.0}", push as f64 / events as f64, finish as f64 / events as f64);
            }
            println!("{held:8.1}");
        }
    }
}

/// Nanoseconds that this process ran, whatever else the machine was doing.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}
