//! How long it takes to fold a million symbols or numbers: milliseconds are nanoseconds a push.
//!
//!     cargo bench -p refrain-fold --bench push [WORD]
//!
//! What comes out is weighed by `examples/folded.rs`.

mod sequences;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use refrain_fold::loops::{Folder, Matching, WINDOW};
use refrain_fold::{grammar, stream};
use sequences::{EVENTS, NUMBERS, ORDERS, Sequence};

fn main() {
    divan::main();
}

const EXACT: Matching = Matching::Exact { window: WINDOW };

fn symbols(sequence: Sequence<u64>) -> Vec<u32> {
    sequence.all().into_iter().map(|symbol| symbol as u32).collect()
}

#[divan::bench(args = ORDERS, sample_count = 5, sample_size = 1)]
fn into_rules(bencher: Bencher, sequence: Sequence<u64>) {
    let symbols = symbols(sequence);
    let push = |mut folder: grammar::Folder| {
        symbols.iter().for_each(|&symbol| folder.push(symbol));
        folder
    };
    bencher.counter(ItemsCount::new(EVENTS)).with_inputs(grammar::Folder::new).bench_local_values(push);
}

#[divan::bench(args = ORDERS, sample_count = 5, sample_size = 1)]
fn into_elastic_loops(bencher: Bencher, sequence: Sequence<u64>) {
    into_loops(bencher, sequence, Matching::Elastic);
}

#[divan::bench(args = ORDERS, sample_count = 5, sample_size = 1)]
fn into_exact_loops(bencher: Bencher, sequence: Sequence<u64>) {
    into_loops(bencher, sequence, EXACT);
}

fn into_loops(bencher: Bencher, sequence: Sequence<u64>, matching: Matching) {
    pushed(bencher, sequence, matching, |_| ());
}

/// With what is done before each push.
fn pushed(bencher: Bencher, sequence: Sequence<u64>, matching: Matching, before: impl Fn(&Folder)) {
    let symbols = symbols(sequence);
    let push = |mut folder: Folder| {
        for &symbol in &symbols {
            before(&folder);
            folder.push(symbol);
        }
        folder
    };
    bencher.counter(ItemsCount::new(EVENTS)).with_inputs(|| Folder::new(matching)).bench_local_values(push);
}

/// What comes next is asked before each push, as the encoder does.
#[divan::bench(args = ORDERS, sample_count = 5, sample_size = 1)]
fn into_elastic_loops_foreseen(bencher: Bencher, sequence: Sequence<u64>) {
    foreseen(bencher, sequence, Matching::Elastic);
}

#[divan::bench(args = ORDERS, sample_count = 5, sample_size = 1)]
fn into_exact_loops_foreseen(bencher: Bencher, sequence: Sequence<u64>) {
    foreseen(bencher, sequence, EXACT);
}

fn foreseen(bencher: Bencher, sequence: Sequence<u64>, matching: Matching) {
    pushed(bencher, sequence, matching, |folder| {
        black_box(folder.predicted());
    });
}

#[divan::bench(args = ORDERS, sample_count = 5, sample_size = 1)]
fn finish_elastic_loops(bencher: Bencher, sequence: Sequence<u64>) {
    finish_loops(bencher, sequence, Matching::Elastic);
}

#[divan::bench(args = ORDERS, sample_count = 5, sample_size = 1)]
fn finish_exact_loops(bencher: Bencher, sequence: Sequence<u64>) {
    finish_loops(bencher, sequence, EXACT);
}

fn finish_loops(bencher: Bencher, sequence: Sequence<u64>, matching: Matching) {
    let mut folder = Folder::new(matching);
    symbols(sequence).into_iter().for_each(|symbol| folder.push(symbol));
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| folder.finish());
}

fn folded(values: &[i64]) -> stream::Folder {
    let mut folder = stream::Folder::new();
    values.iter().for_each(|&value| folder.push(value));
    folder
}

#[divan::bench(args = NUMBERS, sample_count = 5, sample_size = 1)]
fn into_streams(bencher: Bencher, sequence: Sequence<i64>) {
    let values = sequence.all();
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| folded(&values));
}

#[divan::bench(args = NUMBERS, sample_count = 5, sample_size = 1)]
fn finish_streams(bencher: Bencher, sequence: Sequence<i64>) {
    let folder = folded(&sequence.all());
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| folder.finish());
}

#[divan::bench(args = NUMBERS, sample_count = 5, sample_size = 1)]
fn read_streams(bencher: Bencher, sequence: Sequence<i64>) {
    let stream = folded(&sequence.all()).finish();
    let read = || stream.iter().take(EVENTS as usize).fold(0i64, i64::wrapping_add);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(read);
}
