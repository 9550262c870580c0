//! Whether folding into loops stays linear: nanoseconds of processor time a push takes, for sequences whose alphabet or
//! bodies grow with them, at N, 2N and 4N events.
//!
//!     cargo run --release -p refrain-fold --example loops_growth [EVENTS [WORD]]

use refrain_fold::loops::{Folder, Matching, Spot};

type Family = (&'static str, fn(usize) -> Vec<u32>);

const FAMILIES: &[Family] = &[
    ("half left out once, then new from later code", |n| {
        let body = n as u32 / 6;
        let mut all: Vec<u32> = [(0..body).collect::<Vec<_>>().repeat(2), (0..body / 2).collect()].concat();
        let mut new = body;
        while all.len() < n {
            all.extend([new, 0]);
            new += 1;
        }
        all
    }),
    ("the same, a third of the body each time", |n| {
        let body = n as u32 / 12;
        let mut all: Vec<u32> = [(0..body).collect::<Vec<_>>().repeat(2), (0..body / 2).collect()].concat();
        let mut new = body;
        while all.len() < n {
            all.extend([new, 0, body / 3]);
            new += 1;
        }
        all
    }),
    ("second half left out once, then new before each of it", |n| {
        let body = n as u32 / 4;
        let mut all: Vec<u32> = [(0..body).collect::<Vec<_>>().repeat(2), (0..body / 2).collect()].concat();
        all.extend((0..body / 2).chain((body / 2..body).flat_map(|i| [body + i, i])));
        all
    }),
    ("second half left out once, then new before each of all", |n| {
        let body = n as u32 / 4;
        let mut all: Vec<u32> = [(0..body).collect::<Vec<_>>().repeat(2), (0..body / 2).collect()].concat();
        all.extend((0..body).flat_map(|i| [body + i, i]));
        all
    }),
    ("first half left out once, then new before each of it", |n| {
        let body = n as u32 / 4;
        let mut all: Vec<u32> =
            [(0..body).collect::<Vec<_>>().repeat(2), (body / 2..body).collect()].concat();
        all.extend((0..body).flat_map(|i| [body + i, i]));
        all
    }),
    ("every second left out once, then new before each of it", |n| {
        let body = n as u32 / 4;
        let mut all: Vec<u32> =
            [(0..body).collect::<Vec<_>>().repeat(2), (0..body / 2).map(|i| 2 * i).collect()].concat();
        all.extend((0..body / 2).flat_map(|i| [body + i, 2 * i + 1]));
        all
    }),
    ("the first half left out, then back to its end", |n| {
        let body = n as u32 / 6;
        let mut all: Vec<u32> =
            [(0..body).collect::<Vec<_>>().repeat(2), (body / 2..body).collect()].concat();
        while all.len() < n {
            all.extend([body / 2, body - 1]);
        }
        all
    }),
    ("back to the middle, the rest left out", |n| {
        let body = n as u32 / 6;
        let mut all: Vec<u32> = [(0..body).collect::<Vec<_>>().repeat(2), vec![0, body / 2]].concat();
        while all.len() < n {
            all.extend([0, body / 2]);
        }
        all
    }),
    ("new ones from earlier code", |n| {
        let (body, top) = (n as u32 / 6, n as u32);
        let mut all: Vec<u32> = (top..top + body).collect::<Vec<_>>().repeat(2);
        let mut new = top;
        while all.len() < n {
            new -= 1;
            all.extend([new, top + body - 1]);
        }
        all
    }),
    ("new ones from code in between", |n| {
        let body = n as u32 / 6;
        let mut all: Vec<u32> = (0..body).map(|i| 2 * i).collect::<Vec<_>>().repeat(2);
        let mut new = 1;
        while all.len() < n {
            all.extend([new, 2 * body - 2]);
            new += 2;
        }
        all
    }),
    ("something new in each iteration", |n| {
        (0..n as u32).map(|i| if i % 3 < 2 { i % 3 } else { i }).collect()
    }),
    ("growing: a b, a b c, a b c d ...", |n| (1..).flat_map(|to| 0..to).take(n).collect()),
    ("shrinking from the end", |n| {
        let top = (2.0 * n as f64).sqrt() as u32 + 1;
        (0..top).rev().flat_map(|to| 0..to + 1).take(n).collect()
    }),
    ("shrinking from the beginning", |n| {
        let top = (2.0 * n as f64).sqrt() as u32 + 1;
        (0..top).flat_map(|from| from..top).take(n).collect()
    }),
    ("inwards: a loop before the others each time", |n| {
        let top = (n as f64).sqrt() as u32 + 1;
        (0..top).rev().flat_map(|from| (from..top).chain(from..top)).take(n).collect()
    }),
    ("alternating halves", |n| {
        let body = n as u32 / 20;
        let round = (0..body).chain(0..body / 2).chain(body / 2..body);
        round.collect::<Vec<_>>().into_iter().cycle().take(n).collect()
    }),
    ("nested, drifting trips", |n| {
        let steps = (0u32..).flat_map(|step| {
            let inner = [1, 2].repeat(1 + step as usize % 17).into_iter();
            let other = [3, 4, 5].repeat(1 + step as usize * 7 % 11).into_iter();
            [0].into_iter().chain(inner).chain(other).chain([6 + step % 5])
        });
        steps.take(n).collect()
    }),
    ("permutations of a body", |n| {
        let body = (n as u64 / 40) | 1;
        let at = |i: u64| (i % body * (2 * (i / body) + 1) + i / body * 7) % body;
        (0..n as u64).map(|i| at(i) as u32).collect()
    }),
    ("a body backwards every other time", |n| {
        let body = n as u32 / 40;
        (0..body).chain((0..body).rev()).collect::<Vec<_>>().into_iter().cycle().take(n).collect()
    }),
    ("a long prelude, then back into it", |n| {
        let body = n as u32 / 2;
        let mut all: Vec<u32> = (0..body).collect();
        all.extend((0..body).rev());
        all
    }),
    ("a long prelude, back into it from the end on", |n| {
        let body = n as u32 / 2;
        let mut all: Vec<u32> = (0..body).collect();
        all.extend((0..body).rev().flat_map(|i| [i, body - 1]).take(n - body as usize));
        all
    }),
    ("phases that never come back", |n| {
        (0..n as u32 / 4).flat_map(|phase| [2 * phase, 2 * phase + 1].repeat(2)).collect()
    }),
    ("phases, each of which ends with the first call", |n| {
        (0..n as u32 / 5).flat_map(|p| [2 * p + 1, 2 * p + 2, 2 * p + 1, 2 * p + 2, 0]).collect()
    }),
    ("random of a quarter", |n| {
        let mut random = fastrand::Rng::with_seed(1);
        (0..n).map(|_| random.u32(..n as u32 / 4)).collect()
    }),
    ("every second left out, by turns", |n| {
        let body = n as u32 / 40;
        let round = |r: u32| (0..body).filter(move |i| (i + r).is_multiple_of(2));
        (0..).flat_map(round).take(n).collect()
    }),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let events: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(25_000);
    let word = arguments.next().unwrap_or_default();
    println!("ns a push, without and with call paths{:>11}{:>12}{:>12}", "N", "2N", "4N");
    for (name, family) in FAMILIES.iter().filter(|(name, _)| name.contains(&word)) {
        for paths in [false, true] {
            let each = [1, 2, 4].map(|times| format!("{:12.1}", measure(&family(events * times), paths)));
            println!("{:38}{}", if paths { "" } else { name }, each.concat());
        }
    }
}

/// With `paths`, the larger a symbol the further down in the code of one function it is called.
fn measure(symbols: &[u32], paths: bool) -> f64 {
    let mut folder = Folder::new(Matching::Elastic);
    for symbol in (0..=symbols.iter().max().copied().unwrap_or(0)).filter(|_| paths) {
        folder.define(symbol, [Spot { area: 1, at: 1 + u64::from(symbol) }]);
    }
    let begin = processor_time();
    for &symbol in symbols {
        std::hint::black_box(folder.predicted());
        folder.push(symbol);
    }
    let each = (processor_time() - begin) as f64 / symbols.len() as f64;
    assert!(folder.finish().iter().eq(symbols.iter().copied()));
    each
}

/// Nanoseconds that this process ran, whatever else the machine was doing.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}
