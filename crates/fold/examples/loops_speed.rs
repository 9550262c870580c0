//! Nanoseconds a push takes and what comes out, for the folders into loops and the grammar.
//!
//!     cargo run --release -p refrain-fold --example loops_speed [EVENTS [WORD]]

use fastrand::Rng;
use refrain_fold::loops::{Folded, Folder, Matching, WINDOW};
use refrain_fold::{grammar, stream};
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let events: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let word = arguments.next().unwrap_or_default();
    let mut random = Rng::with_seed(1);
    let noise: Vec<u64> = (0..events).map(|_| random.u64(..)).collect();
    let run = |name: &str, symbol: &dyn Fn(u64) -> u64| {
        if name.contains(&word) {
            report(name, &(0..events).map(|i| symbol(i) as u32).collect::<Vec<u32>>());
        }
    };
    run("loop of 20", &|i| i % 20);
    run("nest of 2: (20)x10 1", &|i| if i % 201 == 200 { 99 } else { i % 201 % 20 });
    run("nest of 3: ((20)x10 1)x10 1", &|i| match i % 2011 {
        2010 => 98,
        j if j % 201 == 200 => 99,
        j => j % 201 % 20,
    });
    run("nest of 3, short: ((2)x3 1)x3 1", &|i| match i % 22 {
        21 => 98,
        j if j % 7 == 6 => 99,
        j => j % 7 % 2,
    });
    run("random trips: (a b)x1-9 c", &|i| {
        let (block, at) = (i / 19, i % 19);
        if at < 2 * (1 + noise[block as usize] % 9) { at % 2 } else { 7 + at.min(1) }
    });
    run("conditionals: 1 of 10 in each", &|i| if i % 3 == 1 { 10 + noise[i as usize] % 10 } else { i % 3 });
    run("random of 3", &|i| noise[i as usize] % 3);
    run("random of 400", &|i| noise[i as usize] % 400);
    run("400 shuffled each time", &|i| {
        // A different step through the residues each time, all of them coprime to 400.
        let round = noise[(i / 400) as usize];
        ((i % 400) * (2 * (round % 200) + 1 - u64::from(round % 5 == 2) * 2) + round / 400) % 400
    });
    run("all different", &|i| i);
    run("drifting period", &|i| (i * i / 5000) % 50);
    run("growing: a b, a b c, a b c d ...", &|i| {
        let block = (((8 * i + 1) as f64).sqrt() as u64 - 1) / 2;
        i - block * (block + 1) / 2
    });
}

fn report(name: &str, symbols: &[u32]) {
    let each = |begin: Instant| begin.elapsed().as_nanos() as f64 / symbols.len() as f64;
    println!("{name}");
    for (label, matching) in [("elastic", Matching::Elastic), ("exact", Matching::Exact { window: WINDOW })] {
        let mut folder = Folder::new(matching);
        let push = best(|| {
            folder = Folder::new(matching);
            let begin = Instant::now();
            symbols.iter().for_each(|&symbol| folder.push(symbol));
            each(begin)
        });
        let mut foreseen = 0usize;
        let both = best(|| {
            let mut folder = Folder::new(matching);
            foreseen = 0;
            let begin = Instant::now();
            for &symbol in symbols {
                foreseen += usize::from(folder.predicted() == Some(symbol));
                folder.push(symbol);
            }
            each(begin)
        });
        let begin = Instant::now();
        let folded = folder.finish();
        let finish = each(begin);
        assert!(folded.iter().eq(symbols.iter().copied()));
        let (nodes, terms, packed) = size(&folded);
        println!(
            "  {label:8} {push:7.1} ns/push, predicted {:3.0}% {both:7.1}, finish {finish:6.1} {nodes:7} nodes \
             {terms:8} terms {packed:7} packed bytes {:9} held",
            100.0 * foreseen as f64 / symbols.len() as f64,
            folder.memory()
        );
    }
    let mut folder = grammar::Folder::new();
    let push = best(|| {
        folder = grammar::Folder::new();
        let begin = Instant::now();
        symbols.iter().for_each(|&symbol| folder.push(symbol));
        each(begin)
    });
    println!("  {:8} {push:7.1} ns/push {:45} items", "grammar", folder.finish().items());
}

/// The best of a few, as other work on the machine only ever adds.
fn best(mut run: impl FnMut() -> f64) -> f64 {
    let begin = Instant::now();
    let mut best = f64::MAX;
    for _ in 0..10 {
        best = best.min(run());
        if begin.elapsed().as_secs() >= 2 {
            break;
        }
    }
    best
}

/// Nodes, items of times that are not one number, bytes of numbers without a shape.
fn size(folded: &Folded) -> (usize, usize, usize) {
    let (mut terms, mut packed) = (0, 0);
    for times in folded.times.iter().filter(|times| times.as_constant().is_none()) {
        terms += times.shape.items() + times.terms.len();
        for block in &times.blocks {
            match block {
                stream::Block::Packed { bytes, .. } => packed += bytes.len(),
                stream::Block::Running { steps, .. } => terms += steps.shape.items() + steps.terms.len(),
                stream::Block::Rows { rows, .. } => {
                    terms += rows.starts.shape.items() + rows.counts.shape.items();
                }
            }
        }
    }
    (folded.loops.nodes.len(), terms, packed)
}
