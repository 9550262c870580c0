//! Every function of the call table, with made-up arguments: what is written can be read, and nothing else is there.

mod common;

use common::*;
use refrain_model::{Dir, Kind, functions};

/// A small deterministic generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Memory for one parameter: small numbers when read as ints, longs or handles, and a string when read as text.
fn memory(random: &mut Random) -> Vec<u64> {
    (0..64).map(|_| random.below(6)).collect()
}

#[test]
fn every_function_reads_back_whatever_its_arguments() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut calls = 0;
    for f in functions() {
        let mut w = world();
        for round in 0..40 {
            w.split = round % 4 != 3;
            let blocks: Vec<Vec<u64>> = f.params.iter().map(|_| memory(&mut random)).collect();
            let strings: Vec<usize> = vec![c"one".as_ptr() as usize, c"two".as_ptr() as usize, 0];
            let lists: Vec<usize> = vec![strings.as_ptr() as usize; 64];
            let args: Vec<usize> = f
                .params
                .iter()
                .zip(&blocks)
                .map(|(p, block)| {
                    let block = block.as_ptr() as usize;
                    let pointer = if random.below(8) == 0 { 0 } else { block };
                    let scalar = p.len.is_empty() && p.dir == Dir::In;
                    match p.kind {
                        Kind::Handle(_) if scalar && random.below(2) == 0 => handle("MPI_COMM_WORLD"),
                        Kind::String if p.dir == Dir::In => strings[0],
                        Kind::Strings if random.below(2) == 0 => strings.as_ptr() as usize,
                        Kind::Strings => 0,
                        Kind::StringsOfStrings | Kind::ArgVector => lists.as_ptr() as usize,
                        Kind::Peer(_) | Kind::Root(_) if scalar => {
                            [0, 1, 2, 3, ANY_SOURCE, PROC_NULL, ROOT][random.below(7) as usize]
                        }
                        Kind::Buffer => [0, IN_PLACE, block][random.below(3) as usize],
                        Kind::Status => [block, STATUS_IGNORE][random.below(2) as usize],
                        Kind::Function => random.below(2) as usize * 0x4000,
                        _ if scalar => random.below(6) as usize,
                        _ => pointer,
                    }
                })
                .collect();
            let result = [0, 0, 0, 5, 17][random.below(5) as usize];
            let call = w.call(f.name, &args, result, || {});
            assert_eq!(call.args.len(), f.params.len());
            calls += 1;
        }
    }
    assert!(calls > 20_000, "{calls}");
}
