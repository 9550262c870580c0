//! What comes out of a million symbols or numbers, for each folder, and that it is what went in. Lines of fields between
//! tabs; the last is how many percent of the symbols were foreseen.
//!
//!     cargo run --release -p refrain-fold --example folded
//!
//! How long it takes is measured by `benches/push.rs`.

#[path = "../benches/sequences/mod.rs"]
mod sequences;

use refrain_fold::loops::{Folded, Folder, Matching, WINDOW};
use refrain_fold::stream::{Block, Stream};
use refrain_fold::{grammar, stream};
use sequences::{EVENTS, NUMBERS, ORDERS};

fn main() {
    println!("sequence\tfolder\titems\tterms\tpacked bytes\theld\tforeseen");
    for sequence in &ORDERS {
        let symbols: Vec<u32> = sequence.all().into_iter().map(|symbol| symbol as u32).collect();
        rules(sequence.name, &symbols);
        loops(sequence.name, "elastic", &symbols, Matching::Elastic);
        loops(sequence.name, "exact", &symbols, Matching::Exact { window: WINDOW });
    }
    for sequence in &NUMBERS {
        numbers(sequence.name, &sequence.all());
    }
}

fn rules(name: &str, symbols: &[u32]) {
    let mut folder = grammar::Folder::new();
    symbols.iter().for_each(|&symbol| folder.push(symbol));
    let grammar = folder.finish();
    assert!(grammar.iter().eq(symbols.iter().copied()));
    println!("{name}\trules\t{}\t0\t0\t{}\t", grammar.items(), folder.memory());
}

fn loops(name: &str, how: &str, symbols: &[u32], matching: Matching) {
    let mut folder = Folder::new(matching);
    let mut foreseen = 0;
    for &symbol in symbols {
        foreseen += u64::from(folder.predicted() == Some(symbol));
        folder.push(symbol);
    }
    let folded = folder.finish();
    assert!(folded.iter().eq(symbols.iter().copied()));
    let (nodes, terms, packed) = size(&folded);
    let percent = 100.0 * foreseen as f64 / EVENTS as f64;
    println!("{name}\t{how} loops\t{nodes}\t{terms}\t{packed}\t{}\t{percent:.1}", folder.memory());
}

fn numbers(name: &str, values: &[i64]) {
    let mut folder = stream::Folder::new();
    values.iter().for_each(|&value| folder.push(value));
    let stream = folder.finish();
    assert!(stream.iter().take(values.len()).eq(values.iter().copied()));
    let (terms, packed) = blocks(&stream);
    println!("{name}\tstream\t{}\t{terms}\t{packed}\t{}\t", stream.shape.items(), folder.memory());
}

/// Nodes, items of times that are not one number, bytes of numbers without a shape.
fn size(folded: &Folded) -> (usize, usize, usize) {
    let (mut terms, mut packed) = (0, 0);
    for times in folded.times.iter().filter(|times| times.as_constant().is_none()) {
        let (more, bytes) = blocks(times);
        terms += times.shape.items() + times.terms.len() + more;
        packed += bytes;
    }
    (folded.loops.nodes.len(), terms, packed)
}

/// Items of the blocks of a stream that have a shape, and bytes of those that have none.
fn blocks(stream: &Stream) -> (usize, usize) {
    stream.blocks.iter().fold((0, 0), |(terms, packed), block| match block {
        Block::Packed { bytes, .. } => (terms, packed + bytes.len()),
        Block::Running { steps, .. } => (terms + steps.shape.items() + steps.terms.len(), packed),
        Block::Rows { rows, .. } => (terms + rows.starts.shape.items() + rows.counts.shape.items(), packed),
    })
}
