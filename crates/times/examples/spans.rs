//! Bytes and time a call of packing starts and ends: `spans NAME LOG...` with the logs of `bench/spans.c`, one for each rank.
//! Without arguments: the heads of the columns.

use std::collections::HashMap;
use std::error::Error;
use std::hash::Hash;
use std::process::{Command, Stdio};

use refrain_model::time::Time;
use refrain_times::{Packer, Span, Unpacker};

struct Call {
    signature: u64,
    function: u16,
    span: Span,
}

fn read(path: &str) -> Result<Vec<Call>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let calls = bytes.chunks_exact(24).map(|call| {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| call[at + i]));
        Call {
            signature: word(0),
            function: word(0) as u16,
            span: Span { start: word(8) as i64, end: word(16) as i64 },
        }
    });
    Ok(calls.collect())
}

/// How many bytes such a program makes of others.
fn packed_by(command: &[&str], path: &str) -> Result<usize, Box<dyn Error>> {
    let output = Command::new(command[0]).args(&command[1..]).arg(path).stderr(Stdio::null()).output()?;
    if output.status.success() { Ok(output.stdout.len()) } else { Err(command[0].into()) }
}

/// Bytes that numbers take by their own frequencies, each group by itself, if nothing had to say what these are.
fn entropy<K: Hash + Eq>(numbers: impl Iterator<Item = (K, i64)>) -> f64 {
    let mut groups: HashMap<K, HashMap<i64, u64>> = HashMap::new();
    for (key, number) in numbers {
        *groups.entry(key).or_default().entry(number).or_default() += 1;
    }
    let bits = |counts: &HashMap<i64, u64>| {
        let all = counts.values().sum::<u64>() as f64;
        counts.values().map(|count| *count as f64 * (all / *count as f64).log2()).sum::<f64>()
    };
    groups.values().map(bits).sum::<f64>() / 8.0
}

/// Nanoseconds that this process has run: on a machine that is shared, others' time does not count.
fn ran() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

#[derive(Default)]
struct Figures {
    bytes: usize,
    pack: f64,
    unpack: f64,
    start_error: f64,
    end_error: f64,
}

fn measure(time: &Time, calls: &[Call], into: &mut Figures) -> Result<(), Box<dyn Error>> {
    let mut packer = Packer::new(time).ok_or("no times")?;
    let began = ran();
    let mut blocks: Vec<_> =
        calls.iter().filter_map(|call| packer.push(call.signature, call.function, call.span, 0)).collect();
    blocks.extend(packer.finish());
    into.pack += ran() - began;
    into.bytes += blocks.iter().map(|block| block.bytes.len()).sum::<usize>();
    let mut unpacker = Unpacker::new(time).ok_or("no times")?;
    let began = ran();
    let mut told = Vec::with_capacity(calls.len());
    for block in &blocks {
        unpacker.begin(&block.bytes, block.calls)?;
        for call in &calls[block.first as usize..][..block.calls as usize] {
            told.push(unpacker.next(call.signature, call.function)?);
        }
    }
    into.unpack += ran() - began;
    for (told, call) in told.iter().zip(calls) {
        let start = told.span.start.abs_diff(call.span.start);
        let end = told.span.end.abs_diff(call.span.end);
        if start > told.start_error || end > told.end_error {
            return Err(format!("{:?} was told as {told:?}", call.span).into());
        }
        into.start_error += start as f64;
        into.end_error += end as f64;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, paths)) = arguments.split_first() else {
        println!(
            "{:<16} {:>8} {:>6} {:>6} {:>6} {:>7} {:>7} {:>6}   {:>12} {:>12}   {:>18}",
            "program",
            "calls",
            "raw",
            "zstd",
            "xz",
            "order-0",
            "exact",
            "binned",
            "exact ns",
            "binned ns",
            "binned: mean error"
        );
        return Ok(());
    };
    let times = [Time::read("exact")?, Time::read("binned=1.2")?];
    let mut figures = [Figures::default(), Figures::default()];
    let (mut calls, mut zstd, mut xz, mut order0) = (0, 0, 0, 0.0);
    let raw = std::env::temp_dir().join(format!("spans-{}", std::process::id()));
    for path in paths {
        let log = read(path)?;
        calls += log.len();
        let bytes: Vec<u8> =
            log.iter().flat_map(|call| [call.span.start, call.span.end]).flat_map(i64::to_le_bytes).collect();
        std::fs::write(&raw, bytes)?;
        let file = raw.to_str().ok_or("a folder's name is no text")?;
        zstd += packed_by(&["zstd", "-19", "-q", "-c"], file)?;
        xz += packed_by(&["xz", "-9", "-T1", "-k", "-c"], file)?;
        let after = || log.iter().zip(log.iter().skip(1));
        order0 +=
            entropy(after().map(|(a, b)| ((a.function, b.function), b.span.start.wrapping_sub(a.span.end))));
        order0 += entropy(after().map(|(a, b)| ((a.function, b.function), b.span.end - b.span.start)));
        for (time, figures) in times.iter().zip(&mut figures) {
            measure(time, &log, figures)?;
        }
    }
    std::fs::remove_file(&raw)?;
    let each = |total: f64| total / calls as f64;
    let [exact, binned] = &figures;
    println!(
        "{name:<16} {calls:>8} {:>6.2} {:>6.2} {:>6.2} {:>7.2} {:>7.2} {:>6.2}   {:>5.0} / {:>4.0} {:>5.0} / {:>4.0}   {:>7.0}, {:>6.0} ns",
        16.0,
        each(zstd as f64),
        each(xz as f64),
        each(order0),
        each(exact.bytes as f64),
        each(binned.bytes as f64),
        each(exact.pack),
        each(exact.unpack),
        each(binned.pack),
        each(binned.unpack),
        each(binned.start_error),
        each(binned.end_error),
    );
    Ok(())
}
