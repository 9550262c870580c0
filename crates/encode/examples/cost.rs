//! Where the nanoseconds of a traced call go, without MPI: encoding it, recalling it, folding it.
//! `cargo run --release -p refrain-encode --example cost`

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::Instant;

use common::{ANY_SOURCE, STATUS_IGNORE, handle, world};
use refrain_encode::{Memo, Tape};
use refrain_model::function;

const CALLS: u32 = 200_000;
const ROUNDS: u32 = 9;

/// Nanoseconds per call: the best of several rounds, since others use the machine too.
fn best(mut each: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS {
            each();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    best
}

fn main() {
    let (comm, int) = (handle("MPI_COMM_WORLD"), handle("MPI_INT"));
    let (rank, flag, buffer) = (2i32, 0i32, [0u8; 64]);
    let (rank, flag, buffer) = (&raw const rank as usize, &raw const flag as usize, buffer.as_ptr() as usize);
    let calls: [(&str, Vec<usize>); 3] = [
        ("MPI_Comm_rank", vec![comm, rank]),
        ("MPI_Iprobe", vec![ANY_SOURCE, 7, comm, flag, STATUS_IGNORE]),
        ("MPI_Sendrecv", vec![buffer, 1, int, 2, 3, buffer, 1, int, 2, 3, comm, STATUS_IGNORE]),
    ];
    println!("{:<14} {:>9} {:>9} {:>9}   nanoseconds a call", "function", "encoding", "recalling", "folding");
    for (name, args) in calls {
        let Some(f) = function(name) else { continue };
        let mut w = world();
        let (mut tape, mut memo) = (Tape::default(), Memo::default());
        let encoding = best(|| {
            w.encoder.before(&mut w.host, f, &args, &mut w.before);
            w.encoder.after(&mut w.host, f, &args, 0, &w.before, &mut w.record);
            black_box(&w.record);
        });
        let symbol = tape.push(&w.record, 1);
        memo.remember(&mut w.encoder, &mut w.host, f, &args, &w.record, symbol);
        let recalling = best(|| {
            black_box(memo.recall(&mut w.encoder, &mut w.host, f, &args));
        });
        let folding = best(|| tape.push_known(symbol, &w.record.values, 1));
        println!("{name:<14} {encoding:>9.1} {recalling:>9.1} {folding:>9.1}");
    }
}
