//! What goes into blocks comes out of them: exactly, or within the bounds that it comes with.

use fastrand::Rng;
use refrain_model::time::{Bases, Time};
use refrain_times::{Block, CALLS, CallTime, Packer, Span, Unpacker};

/// Of any length up to so many bits, each as likely.
fn spread(random: &mut Rng, bits: u64) -> i64 {
    let bits = random.u64(..=bits);
    if bits == 0 { 0 } else { (random.u64(..) >> (64 - bits)) as i64 }
}

#[derive(Debug, Clone, Copy)]
struct Call {
    signature: u64,
    function: u16,
    span: Span,
    result: u64,
}

const SHAPES: [&str; 10] =
    ["steady", "random", "equal", "zero", "descending", "nested", "extreme", "bursts", "lonely", "clocks"];

/// `MPI_Wtick` and `MPI_Wtime`.
const CLOCKS: [u16; 2] = [260, 261];

/// So many calls of a shape.
fn calls(shape: &str, count: usize, random: &mut Rng) -> Vec<Call> {
    let mut now = spread(random, 50);
    let mut made = Vec::with_capacity(count);
    for i in 0..count {
        let (signature, mut gap, mut took) =
            (random.u64(..7), 30 + random.u64(..40) as i64, 60 + random.u64(..100) as i64);
        let mut signature = if shape == "steady" { i as u64 % 6 } else { signature };
        match shape {
            "random" => (gap, took) = (spread(random, 40), spread(random, 40)),
            "equal" => (gap, took) = (100, 100),
            "zero" => (gap, took) = (0, random.u64(..2) as i64 * i64::from(random.u64(..50) == 0)),
            // Ever shorter: what is told of one start is later than the next ones.
            "descending" => (gap, took) = ((1 << 40) >> (i % 41), (1 << 38) >> (i % 39)),
            "nested" if i % 3 == 2 => gap = -(took + gap) - spread(random, 8),
            "extreme" => {
                let edge = |random: &mut Rng| match random.u64(..4) {
                    0 => i64::MIN.wrapping_add(spread(random, 20)),
                    1 => i64::MAX.wrapping_sub(spread(random, 20)),
                    2 => random.u64(..) as i64,
                    _ => spread(random, 62) - spread(random, 62),
                };
                (gap, took) = (edge(random), edge(random));
            }
            "bursts" if random.u64(..200) == 0 => took = 1 << (20 + random.u64(..12)),
            "lonely" => signature = random.u64(..),
            _ => {}
        }
        let start = now.wrapping_add(gap);
        let end = start.wrapping_add(took);
        now = end;
        let mut function = signature as u16 % 5;
        let mut result = 0;
        if shape == "clocks" || shape == "extreme" {
            function = [3, CLOCKS[0], CLOCKS[1]][signature as usize % 3];
            result = match (random.u64(..9), function) {
                (0, _) => random.u64(..),
                (1, _) => [f64::NAN, f64::INFINITY, -0.0, 1e300, 5e-324][random.u64(..5) as usize].to_bits(),
                (_, 261) => (start.wrapping_add(25) as f64 * 1e-9 - 1234.0).to_bits(),
                _ => 1e-9f64.to_bits(),
            };
        }
        let span = Span { start, end };
        made.push(Call { signature: signature.wrapping_mul(0x9e37_79b9), function, span, result });
    }
    made
}

fn pack(time: &Time, calls: &[Call]) -> Vec<Block> {
    let mut packer = Packer::new(time).unwrap();
    let mut blocks: Vec<Block> = calls
        .iter()
        .filter_map(|call| packer.push(call.signature, call.function, call.span, call.result))
        .collect();
    blocks.extend(packer.finish());
    let mut first = 0;
    for block in &blocks {
        assert_eq!(block.first, first);
        let most = 8 * packer.numbers() as usize * block.calls as usize;
        assert!(block.bytes.len() <= most, "{} of {}", block.bytes.len(), block.calls);
        first += u64::from(block.calls);
    }
    assert_eq!(first, calls.len() as u64);
    assert!(packer.finish().is_none());
    blocks
}

fn unpack(time: &Time, blocks: &[Block], calls: &[Call]) -> Vec<CallTime> {
    let mut unpacker = Unpacker::new(time).unwrap();
    let mut told = Vec::new();
    for block in blocks {
        unpacker.begin(&block.bytes, block.calls).unwrap();
        for call in &calls[block.first as usize..][..block.calls as usize] {
            told.push(unpacker.next(call.signature, call.function).unwrap());
        }
        assert_eq!(unpacker.left(), 0);
        assert!(unpacker.next(0, 0).is_err());
    }
    told
}

fn binned(text: &str) -> Time {
    Time::read(text).unwrap()
}

#[test]
fn exact_times_come_back() {
    let mut random = Rng::with_seed(1);
    for shape in SHAPES {
        let long = if ["random", "nested"].contains(&shape) { CALLS as usize } else { 5000 };
        for count in [1, 2, 3, 10, 1000, long + 700] {
            let calls = calls(shape, count, &mut random);
            let told = unpack(&Time::Exact, &pack(&Time::Exact, &calls), &calls);
            for (told, call) in told.iter().zip(&calls) {
                let result = CLOCKS.contains(&call.function).then_some(call.result);
                let whole = CallTime { span: call.span, start_error: 0, end_error: 0, result };
                assert_eq!(*told, whole, "{shape} {count}");
            }
        }
    }
}

/// What FORMAT.md promises: the error of a start is at most b - 1 of the time since the last start of its signature, as
/// told; that of an end is at most so much more as b - 1 of the call's duration.
fn check_bounds(time: &Time, shape: &str, calls: &[Call]) {
    let Time::Binned(bases) = time else { panic!() };
    let blocks = pack(time, calls);
    let all = unpack(time, &blocks, calls);
    for block in &blocks {
        let calls = &calls[block.first as usize..][..block.calls as usize];
        let told = &all[block.first as usize..][..block.calls as usize];
        let base = calls[0].span.start;
        let mut last = std::collections::HashMap::new();
        for (told, call) in told.iter().zip(calls) {
            let at = (shape, call, told);
            // Times that are further apart than an i64 tells are compared as clocks are, around the end.
            let apart = |a: i64, b: i64| a.wrapping_sub(b).unsigned_abs();
            assert!(apart(told.span.start, call.span.start) <= told.start_error, "{at:?}");
            assert!(apart(told.span.end, call.span.end) <= told.end_error, "{at:?}");
            let part = bases.of(call.function).value() - 1.0 + 1e-9;
            let interval = apart(call.span.start, *last.get(&call.signature).unwrap_or(&base)) as f64;
            assert!(told.start_error as f64 <= part * interval, "{at:?} {interval}");
            let took = call.span.end.wrapping_sub(call.span.start).max(0) as f64;
            assert!((told.end_error - told.start_error) as f64 <= part * took, "{at:?}");
            last.insert(call.signature, told.span.start);
        }
    }
}

#[test]
fn binned_times_are_within_their_bounds() {
    let mut random = Rng::with_seed(2);
    for text in
        ["binned=1.2", "binned=1.05", "binned=2", "binned=16", "binned=1.001", "binned=1.5,MPI_Wait=1.01"]
    {
        for shape in SHAPES {
            for count in [1, 2, 5, 1500] {
                check_bounds(&binned(text), shape, &calls(shape, count, &mut random));
            }
        }
    }
}

#[test]
fn binned_times_are_within_their_bounds_over_long_runs() {
    let mut random = Rng::with_seed(3);
    for shape in ["bursts", "descending"] {
        check_bounds(&binned("binned=1.2"), shape, &calls(shape, 100_000, &mut random));
    }
}

/// A call of a step follows the one before at once; where it is told to begin then says next to nothing new.
#[test]
fn regular_times_take_little() {
    let calls = calls("steady", CALLS as usize, &mut Rng::with_seed(4));
    let size = |time: &Time| pack(time, &calls).iter().map(|block| block.bytes.len()).sum::<usize>();
    let each = |bytes: usize| bytes as f64 / f64::from(CALLS);
    // The numbers are drawn from 40 and 100 possible ones: that is 1.497 bytes.
    assert!(each(size(&Time::Exact)) < 1.56, "{}", each(size(&Time::Exact)));
    assert!(each(size(&Time::Binned(Bases::default()))) < 0.8);
}

#[test]
fn whatever_bytes_end_well() {
    let mut random = Rng::with_seed(5);
    for round in 0..300 {
        let time = if round % 2 == 0 { Time::Exact } else { binned("binned=1.1") };
        let bytes: Vec<u8> =
            (0..random.u64(..600)).map(|_| random.u64(..) as u8 & [0xff, 0, 0x81][round % 3]).collect();
        let calls = random.u64(..400) as u32 + u32::from(round % 10 == 0) * random.u64(..) as u32;
        let mut unpacker = Unpacker::new(&time).unwrap();
        if unpacker.begin(&bytes, calls).is_ok() {
            assert!(calls <= CALLS);
            while unpacker.left() > 0 {
                let _ = unpacker.next(random.u64(..5), random.u64(..600) as u16);
            }
        } else {
            assert_eq!(unpacker.left(), 0);
        }
        assert!(unpacker.next(0, 0).is_err());
    }
}

#[test]
fn flipped_bytes_end_well() {
    let mut random = Rng::with_seed(6);
    for time in [Time::Exact, binned("binned=1.2")] {
        let calls = calls("bursts", 300, &mut random);
        let block = pack(&time, &calls).remove(0);
        let mut different = 0;
        for at in 0..block.bytes.len() {
            let mut bytes = block.bytes.clone();
            bytes[at] ^= 1 << random.u64(..8);
            let mut unpacker = Unpacker::new(&time).unwrap();
            unpacker.begin(&bytes, block.calls).unwrap();
            let told: Vec<_> =
                calls.iter().map(|call| unpacker.next(call.signature, call.function)).collect();
            let good = |(told, call): (&Result<CallTime, _>, &Call)| {
                told.as_ref().is_ok_and(|told| told.span == call.span)
            };
            different += usize::from(!told.iter().zip(&calls).all(good));
        }
        assert!(different * 10 > block.bytes.len() * 9, "{different} of {}", block.bytes.len());
    }
}

#[test]
fn more_or_fewer_bytes_than_a_block_has_are_noticed() {
    let calls = calls("steady", 500, &mut Rng::with_seed(7));
    for time in [Time::Exact, binned("binned=1.2")] {
        let block = pack(&time, &calls).remove(0);
        let mut longer = block.bytes.clone();
        longer.extend([7; 12]);
        let mut unpacker = Unpacker::new(&time).unwrap();
        unpacker.begin(&longer, block.calls).unwrap();
        let told: Vec<_> = calls.iter().map(|call| unpacker.next(call.signature, call.function)).collect();
        assert!(told.iter().any(Result::is_err));
        assert!(unpacker.begin(&vec![1; 24 * 500 + 1], 500).is_err());
        assert!(unpacker.begin(&block.bytes, 0).is_err());
        assert!(unpacker.begin(&block.bytes, CALLS + 1).is_err());
    }
}

#[test]
fn blocks_are_read_in_any_order() {
    let calls = calls("random", 2 * CALLS as usize + 5, &mut Rng::with_seed(8));
    let blocks = pack(&Time::Exact, &calls);
    let mut unpacker = Unpacker::new(&Time::Exact).unwrap();
    for block in blocks.iter().rev() {
        unpacker.begin(&block.bytes, block.calls).unwrap();
        let call = &calls[block.first as usize];
        assert_eq!(unpacker.next(call.signature, call.function).unwrap().span, call.span);
    }
}

/// A clock that keeps step with ours costs next to nothing beside the call's own times.
#[test]
fn what_mpi_wtime_returns_costs_little() {
    let mut random = Rng::with_seed(5);
    let mut now = 51_234_000_000_000;
    let mut bytes = |results: bool| {
        let calls: Vec<Call> = (0..CALLS)
            .map(|i| {
                let start = now + 40 + random.u64(..8) as i64;
                now = start + 60 + random.u64(..8) as i64;
                let read = start + 20 + random.u64(..4) as i64;
                let (second, nanosecond) = (read / 1_000_000_000, read % 1_000_000_000);
                let result = (second as f64 + 1e-9 * nanosecond as f64).to_bits();
                let function = if results && i % 2 == 0 { 261 } else { 7 };
                Call { signature: u64::from(i % 2), function, span: Span { start, end: now }, result }
            })
            .collect();
        pack(&Time::Exact, &calls).iter().map(|block| block.bytes.len()).sum::<usize>()
    };
    let (with, without) = (bytes(true), bytes(false));
    let each = (with - without) as f64 / f64::from(CALLS / 2);
    // The readings here have two bits of chance.
    assert!(each < 0.5, "{each} bytes a result");
}
