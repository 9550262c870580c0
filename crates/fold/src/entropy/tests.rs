use super::*;
use fastrand::Rng;

fn runs(values: &[i64]) -> Vec<(i64, u64)> {
    values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect()
}

fn check(values: &[i64]) -> usize {
    check_runs(&runs(values))
}

fn check_runs(runs: &[(i64, u64)]) -> usize {
    let bytes = encode(runs);
    let total = runs.iter().map(|run| run.1).sum();
    assert_eq!(decode(&bytes, total).as_deref(), Ok(runs), "{runs:?}");
    bytes.len()
}

#[test]
fn numbers_come_back() {
    let mut random = Rng::with_seed(31);
    let extremes = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX, 1 << 62, -(1 << 62)];
    check(&[]);
    for &value in &extremes {
        check(&[value]);
        check(&[value; 100]);
    }
    for round in 0..600u64 {
        let count = random.u64(..if round % 50 == 0 { 8000 } else { 300 });
        let scale = random.u64(..63);
        let mut at = 0i64;
        let values: Vec<i64> = (0..count as i64)
            .map(|i| match round % 6 {
                0 => extremes[random.u64(..9) as usize],
                1 => random.u64(..) as i64,
                2 => (random.u64(..) >> scale) as i64,
                3 => [7, 1 << 40, -3, 9][random.u64(..4) as usize],
                4 => (i % 37).wrapping_mul(i64::MAX / 11),
                _ => {
                    at = at.wrapping_add(random.u64(..9) as i64 - 4);
                    if random.u64(..10) == 0 { random.u64(..) as i64 } else { at }
                }
            })
            .collect();
        check(&values);
    }
}

/// Bits a number against what is needed, in percent over.
#[test]
fn costs_what_it_says() {
    let mut random = Rng::with_seed(32);
    let mut report = Vec::new();
    let mut over = |name: &str, bits: f64, percent: f64, next: &mut dyn FnMut(&mut Rng) -> i64| {
        let values: Vec<i64> = (0..40_960).map(|_| next(&mut random)).collect();
        let bytes: usize = values.chunks(2560).map(check).sum();
        let each = bytes as f64 * 8.0 / values.len() as f64;
        let extra = (each / bits - 1.0) * 100.0;
        report.push(format!("{name:28} {bits:7.3} {each:7.3} {extra:6.2}%"));
        assert!(extra < percent, "{}", report.join("\n"));
    };
    over("uniform below 1000", 1000f64.log2(), 2.0, &mut |r| r.u64(..1000) as i64);
    over("uniform below 100", 100f64.log2(), 4.0, &mut |r| r.u64(..100) as i64);
    over("uniform of 64 bits", 64.0, 0.5, &mut |r| r.u64(..) as i64);
    over("uniform 1 MiB to 2 MiB", 20.0, 1.0, &mut |r| (1 << 20) + r.u64(..1 << 20) as i64);
    over("multiples of 8 and 5", 15.0, 1.5, &mut |r| 0x7fff_0000_0005 + 8 * r.u64(..1 << 15) as i64);
    over("coin", 1.0, 3.0, &mut |r| r.u64(..2) as i64);
    over("die", 6f64.log2(), 3.0, &mut |r| r.u64(..6) as i64);
    over("four odd numbers", 2.0, 4.0, &mut |r| [7, 1 << 40, -3, 9_999_999][r.u64(..4) as usize]);
    over("geometric 1/2", 2.0, 4.0, &mut |r| r.u64(..).trailing_zeros().into());
    let mut at = 1i64 << 30;
    over("walk of -8..8", 17f64.log2(), 4.0, &mut |r| {
        at += r.u64(..17) as i64 - 8;
        at
    });
    // 0.9 and 0.1: 0.469 bits, and 17 for one in ten.
    over("mostly one number", 0.469 + 1.7, 5.0, &mut |r| {
        if r.u64(..10) == 0 { r.u64(..1 << 17) as i64 } else { 1024 }
    });
    let mut i = 0;
    over("period of 7 with noise", 3.0, 28.0, &mut |r| {
        i += 1;
        [100, 90_000, 5, 7_000_000, 81, 3, 40_404][i % 7] + r.u64(..8) as i64
    });
    let mut state = 0;
    over("symbols in a chain", 0.469 + 0.1, 12.0, &mut |r| {
        if r.u64(..10) == 0 {
            state = (state + 1 + r.u64(..2) as usize) % 3;
        }
        [5, 900, 44][state]
    });
    println!("{}", report.join("\n"));
}

#[test]
fn regular_blocks_cost_next_to_nothing() {
    let period: Vec<i64> = (0..4000).map(|i| [3, 1, 4, 1, 5, 9, 2, 6][i % 8]).collect();
    assert!(check(&[77; 4000]) < 24, "{}", check(&[77; 4000]));
    assert!(check(&period) < 40, "{}", check(&period));
    let stride: Vec<i64> = (0..4000).map(|i| 1000 * i).collect();
    assert!(check(&stride) < 64, "{}", check(&stride));
}

#[test]
fn any_bytes_are_safe() {
    let mut random = Rng::with_seed(33);
    for _ in 0..3000 {
        let bytes: Vec<u8> = (0..random.u64(..60)).map(|_| random.u64(..) as u8).collect();
        let count = random.u64(..200) << random.u64(..25);
        if let Ok(values) = decode(&bytes, count) {
            assert!(values.len() <= LONGEST && values.iter().map(|run| run.1).sum::<u64>() == count);
        }
    }
    assert_eq!(decode(&[], LONGEST as u64 + 1), Err(Damaged));
    let mut long = encode(&runs(&[1, 5, 2, 9]));
    long.extend([1; 20]);
    assert_eq!(decode(&long, 4), Err(Damaged));
}

/// Where numbers stand many times in a row, a block costs time and bytes by the runs.
#[test]
fn long_runs_are_counted() {
    let mut random = Rng::with_seed(34);
    for often in [1u64, 2, 4, 8, 16, 64, 1000, 1 << 18] {
        let runs: Vec<(i64, u64)> =
            (0..2000).flat_map(|_| [(0, 1 + random.u64(..2 * often)), (1, 1)]).collect();
        let each = check_runs(&runs) as f64 * 8.0 / 2000.0;
        // How long each is takes so many bits.
        let least = (2.0 * often as f64).log2();
        println!("{often:8} {least:6.2} {each:6.2}");
        let fits = if often < 16 { least + 0.5 } else { least * 1.03 };
        assert!(each < fits, "{often}: {each} bits instead of {least}");
    }
    check_runs(&[(7, u32::MAX.into())]);
    check_runs(&[(7, 1 << 31), (i64::MIN, 3), (7, 1 << 30)]);
}
