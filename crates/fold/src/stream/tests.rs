use super::*;
use crate::testing::{cases, loops};
use fastrand::Rng;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn fold(values: &[i64]) -> Stream {
    let mut folder = Folder::new();
    values.iter().for_each(|&v| folder.push(v));
    assert_eq!(folder.len(), values.len() as u64);
    folder.finish()
}

/// `3x2 (0..8:4)...`: strides as first..last:step, rules in brackets, dots behind what goes on for ever.
fn render(stream: &Stream) -> String {
    fn body(stream: &Stream, rule: usize) -> String {
        let items = &stream.shape.rules[rule];
        let parts = items.iter().enumerate().map(|(at, item)| {
            let open = rule == 0 && at + 1 == items.len();
            let one = match item.symbol {
                Symbol::Rule(r) => format!("({})", body(stream, r as usize)),
                Symbol::Terminal(t) => match stream.terms[t as usize] {
                    Term::Value(v) => v.to_string(),
                    Term::Block(b) => match &stream.blocks[b as usize] {
                        Block::Packed { count, .. } => format!("[{count}]"),
                        Block::Running { count: 0, steps } => format!("+{{{}}}", render(steps)),
                        Block::Running { count, steps } => format!("+{{{}}}:{count}", render(steps)),
                        Block::Rows { count, rows } => {
                            let (starts, counts) = (render(&rows.starts), render(&rows.counts));
                            format!("rows{{{starts}; {counts}; {}}}:{count}", rows.step)
                        }
                    },
                    Term::Stride { start, step, .. } if open => format!("{start}..:{step}"),
                    Term::Stride { start, step, count } => {
                        format!("{start}..{}:{step}", start.wrapping_add(step.wrapping_mul(count as i64 - 1)))
                    }
                },
            };
            match (open, item.count) {
                (true, _) => one + "...",
                (_, 1) => one,
                (_, n) => format!("{one}x{n}"),
            }
        });
        parts.collect::<Vec<_>>().join(" ")
    }
    body(stream, 0)
}

fn check(values: &[i64], text: &str) {
    let stream = fold(values);
    assert_eq!(render(&stream), text, "{values:?}");
    assert_sound(&stream, values);
}

fn assert_sound(stream: &Stream, values: &[i64]) {
    assert_eq!(stream.validate(), Ok(()));
    assert!(stream.iter().take(values.len()).eq(values.iter().copied()), "{values:?} -> {stream:?}");
    // Beyond what was seen, sums still agree with the numbers the stream goes on with.
    let more = values.len() + 40;
    let (mut sum, mut range) = (0i128, None::<(i64, i64)>);
    let probes = [0, 1, 2, 3, values.len() / 2, values.len(), more];
    for (n, value) in stream.iter().take(more + 1).enumerate() {
        if probes.contains(&n) {
            assert_eq!(stream.sum(n as u64), sum, "{n} of {stream:?}");
            assert_eq!(stream.min_max(n as u64), range, "{n} of {stream:?}");
        }
        sum += i128::from(value);
        range = Some(range.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
    }
    let all: Vec<i64> = stream.iter().take(more).collect();
    for n in crate::testing::probes(values.len()) {
        let (from, n) = (stream.iter_from(n).take(20), n as usize);
        assert!(from.eq(all[n..n + 20].iter().copied()), "from {n} of {stream:?}");
    }
    let used = stream.shape.counts();
    assert!(used.iter().map(|&(t, _)| t).eq(0..stream.terms.len() as u32), "terms by first use: {stream:?}");
    assert_eq!(stream.split().1.map(|last| last.count), Some(1));
}

#[test]
fn small_streams() {
    check(&[], "0...");
    check(&[5], "5...");
    check(&[5, 5, 5], "5...");
    check(&[5, 6], "5 6...");
    check(&[0, 1, 2], "0..:1...");
    check(&[0, 1, 2, 3, 4, 5], "0..:1...");
    check(&[9, 0, 8, 16, 24], "9 0..:8...");
    check(&[0, 1, 2, 0, 1, 2], "(0..2:1)...");
    check(&[0, 1, 2, 0], "(0..2:1)...");
    check(&[0, 1, 2, 0, 1, 2, 0, 1], "(0..2:1)...");
    check(&[5, 5, 5, 7, 5, 5, 5, 7], "(5x3 7)...");
    check(&[5, 5, 5, 7, 5, 5, 5, 7, 5, 5], "(5x3 7)...");
    check(&[0, 4, 8, 0, 4, 8], "(0..8:4)...");
    check(&[1, 2, 5, 1, 2, 5], "(1 2 5)...");
    check(&[1, 2, 5, 1, 2, 5, 1], "(1 2 5)...");
    check(&[1, 2, 3, 9, 1, 2, 3, 9, 1], "(1..3:1 9)...");
    check(&[3, 1, 4, 1, 5, 8], "3 1 4 1 5 8...");
    check(&[3, 1, 4, 1, 5, 9], "3 1 4 1..:4...");
    check(&[7, 7, 7, 1, 1], "7x3 1...");
    check(&[1, 2, 2, 3, 1, 2, 2, 3, 8, 1, 2, 2, 3, 1, 2, 2, 3, 8], "((1 2x2 3)x2 8)...");
    check(&[i64::MIN, i64::MAX, i64::MIN, i64::MAX], "(-9223372036854775808 9223372036854775807)...");
}

/// Equal but for how long they were watched: equal streams.
#[test]
fn length_does_not_matter() {
    for (prefix, cycle, from) in [
        (&[][..], &[4][..], 1),
        (&[], &[0, 1, 2], 4),
        (&[], &[1, 5, 2, 9], 8),
        (&[], &[5, 5, 5, 7], 8),
        (&[8, 1], &[0, 4, 8, 12], 10),
        (&[8, 1], &[3, 3, 9, 9, 9, 1, 2, 3, 4, 7, 6], 24),
        // 7 5 3 is taken for a stride that ends in the next round, which therefore begins later.
        (&[8, 1], &[3, 3, 9, 9, 9, 1, 2, 3, 4, 7, 5], 26),
        (&[100], &[1, 5, 2, 9, 1, 5, 2, 9, 6, 6, 0], 23),
    ] {
        let values: Vec<i64> = [prefix, &cycle.repeat(40)].concat();
        let first = fold(&values[..from]);
        for n in from..values.len() {
            let stream = fold(&values[..n]);
            assert_sound(&stream, &values[..n]);
            assert_eq!(render(&stream), render(&first), "{n} of {cycle:?}");
            assert_eq!(stream, first);
        }
    }
    let up: Vec<i64> = (0..100).map(|i| 8 * i - 50).collect();
    assert!((3..100).all(|n| fold(&up[..n]) == fold(&up)));
}

/// Longer rounds than are kept expanded, and long strides inside them.
#[test]
fn long_rounds() {
    let round: Vec<i64> = (0..30_000).chain([5; 20_000]).chain([7, 1]).collect();
    let values = round.repeat(5);
    let stream = fold(&values);
    assert_eq!(render(&stream), "(0..29999:1 5x20000 7 1)...");
    assert_sound(&stream, &values);
    for cut in [110_000, 130_000, 140_001, 150_003, 150_006] {
        assert_eq!(fold(&values[..cut]), stream, "{cut}");
    }
}

/// What a stream takes in memory and, nearly, in a file.
fn size(stream: &Stream) -> usize {
    let blocks = stream.blocks.iter().map(|block| match block {
        Block::Packed { bytes, .. } => bytes.len(),
        Block::Running { steps, .. } => size(steps),
        Block::Rows { rows, .. } => 8 + size(&rows.starts) + size(&rows.counts),
    });
    4 * stream.shape.items() + 4 * stream.terms.len() + blocks.sum::<usize>()
}

/// Nests of loops whose bounds go by the counts of loops outside: one size for all.
#[test]
fn rows_of_nests_with_bounds_that_move() {
    let lower = |n: i64| -> Vec<i64> {
        (0..n).flat_map(|i| (0..=i).map(move |j| 4096 + 8 * (1000 * i + j))).collect()
    };
    let upper =
        |n: i64| -> Vec<i64> { (0..n).flat_map(|i| (i..n).map(move |j| 8 * (1000 * i + j))).collect() };
    for n in [24, 60, 150] {
        for (name, values) in [("lower", lower(n)), ("upper", upper(n))] {
            let stream = fold(&values);
            assert!(size(&stream) <= 90, "{name} {n}: {} for {}", size(&stream), render(&stream));
            assert_sound(&stream, &values);
        }
    }
    let large = fold(&lower(2000));
    assert!(size(&large) <= 90, "{}", render(&large));
}

/// What begins like rows need not stay so.
#[test]
fn rows_that_end() {
    let mut random = Rng::with_seed(3);
    let mut values: Vec<i64> = (0..200).flat_map(|i| (0..=i).map(move |j| 8 * (1000 * i + j))).collect();
    values.extend((0..20_000).map(|_| random.u64(..1 << 30) as i64));
    values.extend((0..300).flat_map(|i| (0..=i).map(move |j| 8 * (1000 * i + j))));
    assert_sound(&fold(&values), &values);
}

/// Lists of any length without a shape that come again are kept about once.
#[test]
fn random_rounds() {
    let mut random = Rng::with_seed(21);
    for period in [300, 700, 1000, 2000, 5000, 10_000, 65_536] {
        let round: Vec<i64> = (0..period).map(|_| random.u64(..1 << 20) as i64).collect();
        let values = round.repeat(9.max(40_000 / period));
        let stream = fold(&values);
        assert_sound(&stream, &values);
        let once = period * 5 / 2;
        assert!(size(&stream) < 4 * once + 6000, "{period}: {} for {once}", size(&stream));
        // The last rounds cost nothing: what is still open at the end, at most.
        let more = fold(&round.repeat(2 * values.len() / period));
        assert!(size(&more) < size(&stream) + 12_000, "{period}: {} {}", size(&stream), size(&more));
    }
}

#[test]
fn nested_strides() {
    let nest = |dims: &[(i64, i64)]| {
        dims.iter().fold(vec![7], |inner, &(count, step)| {
            (0..count).flat_map(|i| inner.iter().map(move |v| v + i * step)).collect::<Vec<i64>>()
        })
    };
    let two = nest(&[(3, 1), (40, 10)]);
    check(&two, "+{7 (1x2 8)...}...");
    let other: Vec<usize> = (30..120).filter(|&n| fold(&two[..n]) != fold(&two)).collect();
    assert_eq!(other, []);
    check(&nest(&[(2, 1), (40, 10)]), "+{7 (1 9)...}...");
    let literals: Vec<i64> = (0..300).map(|i| [5, 7, 1][i as usize % 3] + i / 3 * 10).collect();
    check(&literals, "+{5 (2 -6 14)...}...");
    for (dims, most) in [
        (&[(3, 1), (4, 10), (5, 100)][..], 14),
        (&[(3, 1), (4, 10), (5, 100), (6, 1000)], 20),
        (&[(8, 8), (16, 1000), (32, 100_000), (50, 5_000_000)], 20),
        (&[(8, 8), (16, 1000), (32, 100_000), (3, -5), (40, 77)], 26),
        (&[(10_000, 8), (100, 1_000_000)], 5),
        (&[(100, 8), (1000, 1_000_000)], 5),
    ] {
        let values = nest(dims);
        let stream = fold(&values);
        assert_sound(&stream, &values);
        let Some(Block::Running { steps, .. }) = stream.blocks.first() else { panic!("{dims:?}") };
        assert!(steps.shape.items() <= most && stream.shape.items() == 1, "{dims:?} {}", steps.shape.items());
    }
}

/// What comes after numbers without a shape is folded as if they had not been.
#[test]
fn shapes_return() {
    let mut random = Rng::with_seed(26);
    let noise: Vec<i64> = (0..20_000).map(|_| random.u64(..) as i64 >> 24).collect();
    let alone = size(&fold(&noise));
    let later: [(&str, &dyn Fn(i64) -> i64); 5] = [
        ("constant", &|_| 5),
        ("stride", &|i| 24 * i),
        ("period", &|i| [3, 1, 4, 1, 5, 9, 2, 6][i as usize % 8]),
        ("nest", &|i| i % 10 + i / 10 * 1000),
        ("round of 500", &|i| i % 500 * (i % 500) % 1009),
    ];
    for (name, shape) in later {
        let tail: Vec<i64> = (0..400_000).map(shape).collect();
        let values = [&noise[..], &tail].concat();
        let stream = fold(&values);
        assert_sound(&stream, &values);
        let extra = size(&stream).saturating_sub(alone);
        assert!(extra < 12_000, "{name}: {extra} bytes");
        let short = fold(&values[..200_000]);
        let extra = size(&stream).saturating_sub(size(&short));
        assert!(extra < 200, "{name}: {extra} bytes for 200000 more");
        // And noise once more.
        let values = [&values[..], &noise].concat();
        assert_sound(&fold(&values), &values);
    }
}

/// Every generator for a while, then the next: everything comes back, wherever it is cut.
#[test]
fn mixtures() {
    let mut random = Rng::with_seed(27);
    for round in 0..24 {
        let mut values: Vec<i64> = Vec::new();
        while values.len() < 30_000 {
            let (count, scale) =
                (1 + random.u64(..if round % 2 == 0 { 9000 } else { 900 }), random.u64(..60));
            let start = if random.u64(..4) == 0 { random.u64(..) as i64 } else { random.u64(..1000) as i64 };
            let list: Vec<i64> =
                (0..1 + random.u64(..3000)).map(|_| random.u64(..) as i64 >> scale).collect();
            let kind = random.u64(..9);
            let mut at = start;
            values.extend((0..count as i64).map(|i| match kind {
                0 => start,
                1 => start.wrapping_add(i << (scale / 2)),
                2 => list[i as usize % 5.min(list.len())],
                3 => list[i as usize % list.len()],
                4 => random.u64(..) as i64 >> scale,
                5 => [start, 0, i64::MIN, i64::MAX][random.u64(..4) as usize],
                6 => start.wrapping_add(i % 7 + i / 7 % 9 * 100 + i / 63 * 1000),
                7 => {
                    at = at.wrapping_add(random.u64(..100) as i64);
                    at
                }
                _ => {
                    if random.u64(..50) == 0 {
                        random.u64(..) as i64
                    } else {
                        list[i as usize % 3.min(list.len())]
                    }
                }
            }));
        }
        let mut folder = Folder::new();
        for (n, &value) in values.iter().enumerate() {
            folder.push(value);
            if n % 7919 == 7918 {
                assert_sound(&folder.finish(), &values[..=n]);
            }
        }
        let stream = folder.finish();
        assert_sound(&stream, &values);
        assert_eq!(stream, fold(&values));
    }
}

#[test]
fn agrees_with_every_prefix() {
    let mut random = Rng::with_seed(22);
    for round in 0..60u64 {
        let scale = [1, 3, -5, i64::MAX / 5, i64::MIN][round as usize % 5];
        let values: Vec<i64> = match round % 3 {
            0 => loops(&mut random, 6, 150).iter().map(|&v| scale.wrapping_mul(v.into())).collect(),
            1 => (0..100).map(|_| scale.wrapping_mul(random.u64(..5) as i64)).collect(),
            _ => strides(&mut random, 150, scale),
        };
        let (mut folder, mut watched) = (Folder::new(), Folder::new());
        for (n, &value) in values.iter().enumerate() {
            folder.push(value);
            watched.push(value);
            assert_sound(&watched.finish(), &values[..=n]);
        }
        assert_eq!(folder.finish(), watched.finish());
    }
}

/// Nested loops over strides and constants.
fn strides(random: &mut Rng, limit: usize, scale: i64) -> Vec<i64> {
    let mut values = Vec::new();
    while values.len() < limit {
        let mut round = Vec::new();
        for _ in 0..1 + random.u64(..3) {
            let (start, step) = (random.u64(..5) as i64, random.u64(..5) as i64 - 2);
            round.extend((0..1 + random.u64(..8) as i64).map(|i| scale.wrapping_mul(start + i * step)));
        }
        values.extend(round.repeat(1 + random.u64(..5) as usize));
    }
    values.truncate(limit);
    values
}

#[test]
fn long_and_mixed() {
    let mut random = Rng::with_seed(23);
    for round in 0..15 {
        let values = match round % 3 {
            0 => strides(&mut random, 30_000, 7),
            1 => loops(&mut random, 50, 15_000).iter().map(|&v| v.into()).collect(),
            _ => (0..15_000).map(|_| random.u64(..1 << (4 * round)) as i64).collect(),
        };
        assert_sound(&fold(&values), &values);
    }
}

const EXTREMES: [i64; 9] = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX, 1 << 62, -(1 << 62)];

proptest! {
    #![proptest_config(cases(3000))]
    #[test]
    fn extremes_come_back(values in vec(select(&EXTREMES), 0..12)) {
        assert_sound(&fold(&values), &values);
    }
}

#[test]
fn extremes() {
    // A stride goes on behind the end of the numbers.
    let near: Vec<i64> = (0..5).map(|i| i64::MAX - 10 + 2 * i).collect();
    assert_sound(&fold(&near), &near);
    assert_eq!(fold(&near).iter().nth(100), Some(i64::MIN + 189));
    // Sums of as many numbers as there can be.
    assert_eq!(Stream::constant(i64::MIN).sum(u64::MAX), i128::from(i64::MIN) * i128::from(u64::MAX));
    // Round and round: 0, -2^62, -2^63, 2^62.
    let down = fold(&[0, i64::MIN / 2, i64::MIN]);
    assert_eq!(down.sum(u64::MAX), -(1i128 << 125) - (1 << 62));
    assert_eq!(down.min_max(u64::MAX), Some((i64::MIN, 1 << 62)));
    let up = fold(&[i64::MIN, i64::MIN + 1, i64::MIN + 2]);
    assert_eq!(
        (up.sum(u64::MAX), up.min_max(u64::MAX)),
        (-i128::from(u64::MAX), Some((i64::MIN, i64::MAX - 1)))
    );
}

/// Addresses are unsigned: what runs across the middle or the end of 64 bits is one stride, or one nest, as anywhere else.
#[test]
fn everything_wraps() {
    for around in [0u64, 1 << 63, u64::MAX - 40, (1 << 63) - 40] {
        for step in [8u64, 1, 8u64.wrapping_neg(), 1 << 60, 3 << 62, (1 << 63) - 1] {
            let at =
                |i: u64| around.wrapping_sub(step.wrapping_mul(50)).wrapping_add(step.wrapping_mul(i)) as i64;
            let plain: Vec<i64> = (0..100).map(at).collect();
            assert_eq!(fold(&plain).terms.len(), 1, "{around:x} {step:x}");
            assert_sound(&fold(&plain), &plain);
            let twice: Vec<i64> = [&plain[..], &plain].concat();
            assert_eq!(fold(&twice).terms.len(), 1, "{around:x} {step:x}");
            assert_sound(&fold(&twice), &twice);
        }
        let nest = |i: u64| around.wrapping_add(8 * (i % 5) + 1000 * (i / 5)).wrapping_sub(50_000) as i64;
        let nest: Vec<i64> = (0..600).map(nest).collect();
        let stream = fold(&nest);
        assert_sound(&stream, &nest);
        assert!(
            matches!(stream.blocks[..], [Block::Running { .. }]) && stream.shape.items() == 1,
            "{around:x}"
        );
    }
    let (stream, n) = (fold(&[1 << 62, 1 << 61, 5, i64::MIN, 5, i64::MAX, i64::MIN]), 1000);
    assert_eq!(stream.sum(n), stream.iter().take(n as usize).map(i128::from).sum());
}

/// Sums and extremes of strides against their numbers.
#[test]
fn strides_are_summed_across_the_ends() {
    let mut random = Rng::with_seed(28);
    for round in 0..4000 {
        let near = [0, i64::MIN, i64::MAX, -1][round % 4];
        let start = near.wrapping_add(random.u64(..) as i64 >> (1 + random.u64(..62)));
        let step = (random.u64(..) as i64 >> random.u64(..63)).max(i64::MIN + 1);
        let term = Term::Stride { start, step: if step == 0 { 1 } else { step }, count: 3 };
        let n = 1 + random.u64(..60);
        let numbers = || (0..n).map(|i| term.at(i));
        let summary = term.summary(n);
        assert_eq!(summary.sum, numbers().map(i128::from).sum::<i128>(), "{n} of {term:?}");
        assert_eq!(
            (Some(summary.min), Some(summary.max)),
            (numbers().min(), numbers().max()),
            "{n} of {term:?}"
        );
    }
}

/// No shape: a few percent more than their information, whatever it is.
#[test]
fn random_numbers_cost_their_information() {
    let mut random = Rng::with_seed(25);
    let mut check = |count: usize, bits: f64, over: f64, next: &mut dyn FnMut(&mut Rng) -> i64| {
        let values: Vec<i64> = (0..count).map(|_| next(&mut random)).collect();
        let stream = fold(&values);
        assert_sound(&stream, &values);
        let each = size(&stream) as f64 * 8.0 / count as f64;
        assert!(each < bits * over, "{each} bits where {bits} are needed");
    };
    check(10_000, 64.0, 1.01, &mut |r| r.u64(..) as i64);
    check(10_000, 6.64, 1.03, &mut |r| r.u64(..100) as i64);
    check(50_000, 1.0, 1.05, &mut |r| r.u64(..2) as i64);
    check(1_000, 9.97, 1.08, &mut |r| r.u64(..1000) as i64);
    check(400, 9.97, 1.15, &mut |r| r.u64(..1000) as i64);
    check(50_000, 2.0, 1.05, &mut |r| r.u64(..).trailing_zeros().into());
}

#[test]
fn size_is_independent_of_the_trip_count() {
    let nest = |outer: usize, inner: usize| -> Vec<i64> {
        let step = [vec![100], [1, 9, 4].repeat(inner), vec![7; inner], (0..20).collect()].concat();
        step.repeat(outer)
    };
    let size = |values: &[i64]| (fold(values).shape.items(), fold(values).terms.len());
    for (outer, inner) in [(3, 10), (10, 100), (100, 10)] {
        assert_eq!(size(&nest(outer, inner)), size(&nest(10, 10)));
    }
}

#[test]
fn constants() {
    assert_eq!(fold(&[]), Stream::constant(0));
    assert_eq!(fold(&[-3; 7]), Stream::constant(-3));
    assert_eq!(Stream::constant(9).as_constant(), Some(9));
    assert_eq!(fold(&[1, 2, 3]).as_constant(), None);
    assert_eq!(fold(&[1, 2]).as_constant(), None);
}

#[test]
fn bad_streams_are_refused() {
    let item = |symbol, count| Item { symbol, count };
    let stream = |terms: &[Term], start: &[Item]| Stream {
        terms: terms.to_vec(),
        shape: Grammar { rules: vec![start.to_vec()] },
        blocks: Vec::new(),
    };
    let t = Symbol::Terminal;
    let stride = |start, step, count| Term::Stride { start, step, count };
    let error = |terms: &[Term], start: &[Item]| stream(terms, start).validate();
    assert_eq!(error(&[], &[]), Err(Error::NoItems));
    assert_eq!(error(&[], &[item(t(0), 1)]), Err(Error::NoSuchTerm { term: 0, terms: 0 }));
    for bad in [stride(0, 0, 3), stride(0, 1, 2)] {
        assert_eq!(error(&[bad], &[item(t(0), 1)]), Err(Error::BadStride { term: 0 }));
    }
    let long = stride(0, 1, 1 << 40);
    assert_eq!(error(&[long], &[item(t(0), 1 << 24), item(t(0), 1)]), Err(Error::TooLong));
    assert!(matches!(error(&[], &[item(Symbol::Rule(0), 1)]), Err(Error::Shape(_))));
    let with = |block: Block, last: Term| Stream {
        terms: vec![Term::Block(0), last],
        shape: Grammar { rules: vec![vec![item(t(0), 2), item(t(1), 1)]] },
        blocks: vec![block],
    };
    let running = |count, step| Block::Running { count, steps: Box::new(Stream::constant(step)) };
    let packed = |count, bytes: &[u8]| Block::Packed { count, bytes: bytes.into() };
    assert_eq!(with(running(5, 5), Term::Block(0)).validate(), Ok(()));
    assert_eq!(
        with(running(5, 5), Term::Block(1)).validate(),
        Err(Error::NoSuchBlock { block: 1, blocks: 1 })
    );
    for bad in [
        running(0, 5),
        Block::Running { count: 5, steps: Box::new(fold(&[1, 2, 3])) },
        packed(0, &[]),
        packed(1 << 20, &[]),
        packed(2, &[&crate::entropy::encode(&[(1, 1), (2, 1)])[..], &[7; 50]].concat()),
    ] {
        let stream = with(bad, Term::Value(0));
        assert_eq!(stream.validate(), Err(Error::BadBlock), "{stream:?}");
        assert!(stream.iter().take(1000).count() <= 1000);
        stream.sum(1000);
    }
    // Not valid, yet harmless.
    assert_eq!(stream(&[], &[]).iter().next(), None);
    assert_eq!(stream(&[], &[item(t(0), 1)]).iter().next(), None);
    assert_eq!(stream(&[], &[item(Symbol::Rule(0), 1)]).iter().next(), None);
    assert_eq!(stream(&[], &[]).sum(5), 0);
    assert_eq!(stream(&[], &[item(Symbol::Rule(0), 1), item(t(3), 2)]).sum(5), 0);
}

#[test]
fn several_at_once_are_as_one_after_the_other() {
    let mut random = Rng::with_seed(31);
    for round in 0..60 {
        let (mut runs, mut singles) = (Folder::new(), Folder::new());
        for _ in 0..400 {
            let value = match round % 3 {
                0 => random.u64(..2) as i64,
                1 => random.u64(..1 << 20) as i64,
                _ => random.u64(..50) as i64 / 48,
            };
            let count = match random.u64(..40) {
                0 => random.u64(..6000),
                _ => random.u64(..4),
            };
            runs.push_n(value, count);
            (0..count).for_each(|_| singles.push(value));
            assert_eq!(runs.len(), singles.len());
        }
        assert_eq!(runs.finish(), singles.finish());
    }
}

/// What a run costs does not go by its length, whatever comes between.
#[test]
fn long_runs_take_no_longer_than_short_ones() {
    let steps = |long: u64, between: fn(&mut Rng) -> i64| {
        let mut random = Rng::with_seed(41);
        crate::testing::steps(|| {
            let mut folder = Folder::new();
            for _ in 0..20_000 {
                folder.push_n(0, long + random.u64(..long));
                folder.push_n(between(&mut random), 1);
            }
            let stream = folder.finish();
            assert_eq!(stream.validate(), Ok(()));
        })
    };
    for between in [|_: &mut Rng| 1, |r: &mut Rng| r.u64(..) as i64, |r: &mut Rng| r.u64(..3) as i64] {
        for long in [10, 1000, 1 << 20, 1 << 40] {
            let steps = steps(long, between);
            assert!(steps < 20_000 * 40, "{steps} steps for runs of {long}");
        }
    }
}

#[test]
fn a_stride_without_end_behind_the_same_one_that_ends() {
    check(&[3, 1, 3, 2, 1, 3, 2, 1, 0], "3 1 3..1:-1 3..:-1...");
    assert_sound(&fold(&[5, 5, 0, 1, 2, 0, 1, 2, 3, 4, 5]), &[5, 5, 0, 1, 2, 0, 1, 2, 3, 4, 5]);
    let top = i64::MAX;
    for end in [top, top - 1] {
        let run = [end - 2, end - 1, end];
        let values = [&[9, 7][..], &run, &[4, 9, 7], &run, &run].concat();
        assert_sound(&fold(&values), &values);
        let longer = [&[9, 7][..], &run, &[4, 9, 7], &run, &run, &[top]].concat();
        assert_sound(&fold(&longer), &longer);
    }
}

/// Short alphabets with strides in them, where terms meet themselves.
#[test]
fn every_short_stream() {
    for (base, length) in [(3i64, 8u32), (4, 6), (2, 11)] {
        for code in 0..base.pow(length) {
            let values: Vec<i64> = (0..length).map(|i| code / base.pow(i) % base).collect();
            assert_sound(&fold(&values), &values);
        }
    }
    let mut random = Rng::with_seed(17);
    for _ in 0..20_000 {
        let values: Vec<i64> = (0..6 + random.u64(..14)).map(|_| random.u64(..4) as i64).collect();
        assert_sound(&fold(&values), &values);
    }
}
