//! Numbers packed in chunks of 32768 by each method, and by `pco`: bytes a number, nanoseconds of processor time a number
//! to pack and to unpack. `numbers [NUMBERS [TRACE...]]`; addresses are those of address traces.

use std::fs::File;
use std::time::Instant;

use pco::ChunkConfig;
use pco::standalone::{simple_compress, simple_decompress};
use refrain_addresses::{Batch, of_name, open};
use refrain_fold::entropy::bins;
use refrain_fold::pack::{Kind, Methods};
use refrain_tracefile::chunks;

const CHUNK: usize = 1 << 15;
const ROUNDS: usize = 3;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Around 1, most within a factor of e^spread, as durations are.
    fn factor(&mut self, spread: f64) -> f64 {
        let normal = (-2.0 * (self.unit() + 1e-12).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos();
        (spread * normal).exp()
    }
}

fn seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time`, which outlives the call.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "a process has a clock");
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn streams(count: usize, traces: &[String]) -> Vec<(String, Kind, Vec<i64>)> {
    let mut random = Random(88_172_645_463_325_252);
    let begin = Instant::now();
    let (mut a, b) = (vec![1u8; 4096], vec![2u8; 4096]);
    // What this machine's clock says of a loop that copies.
    let real: Vec<i64> = (0..count)
        .map(|i| {
            let time = begin.elapsed().as_nanos() as i64;
            let length = if i % 10 == 0 { 4096 } else { 64 + i % 3 * 200 };
            a[..length].copy_from_slice(&b[..length]);
            std::hint::black_box(&a);
            time
        })
        .collect();
    let (mut time, mut times, mut durations, mut alike) = (0, Vec::new(), Vec::new(), Vec::new());
    for i in 0..count {
        let usual = [1500.0, 300.0, 12_000.0, 800.0][i % 4];
        let duration = (usual * random.factor(0.15)) as i64;
        durations.push(duration);
        alike.push((1500.0 * random.factor(0.15)) as i64);
        time += duration + (5000.0 * random.factor(0.3)) as i64;
        times.push(time);
    }
    let mut all = vec![
        ("real times".to_owned(), Kind::TIME, real),
        ("times".to_owned(), Kind::TIME, times),
        ("durations, four in turn".to_owned(), Kind::DURATION, durations),
        ("durations, one call".to_owned(), Kind::DURATION, alike),
        ("a stride".to_owned(), Kind::ADDRESS, (0..count as i64).map(|i| 0x1000 + 8 * i).collect()),
    ];
    for path in traces {
        let file = File::open(path).expect("the trace opens");
        let mut reader = open(Box::new(file), path, of_name(path).0).expect("the trace is one");
        let (mut batch, mut addresses) = (Batch::new(), Vec::new());
        while addresses.len() < count && reader.read(&mut batch).expect("the trace is whole") {
            addresses.extend(batch.addresses.iter().map(|&address| address as i64));
        }
        let name = path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or(path);
        all.push((format!("addresses of {name}"), Kind::ADDRESS, addresses));
    }
    all
}

type Pack<'a> = Box<dyn FnMut(&[i64]) -> Vec<u8> + 'a>;
type Unpack<'a> = Box<dyn FnMut(&[u8], usize) -> Vec<i64> + 'a>;

fn set<'a>(methods: fn() -> Methods, kind: Kind) -> (Pack<'a>, Unpack<'a>) {
    let (mut pack, mut unpack) = (methods(), methods());
    let with_method = move |numbers: &[i64]| {
        let (method, mut bytes) = pack.pack(kind, numbers);
        bytes.push(method);
        bytes
    };
    let without = move |bytes: &[u8], count: usize| {
        let mut into = Vec::with_capacity(count);
        let (method, bytes) = bytes.split_last().expect("the method");
        unpack.unpack(*method, bytes, count, &mut into).expect("it is what was packed");
        into
    };
    (Box::new(with_method), Box::new(without))
}

fn ways<'a>(kind: Kind) -> Vec<(&'static str, Pack<'a>, Unpack<'a>)> {
    let copied: Pack = Box::new(|numbers| numbers.iter().flat_map(|number| number.to_le_bytes()).collect());
    let back: Unpack = Box::new(|bytes, _| {
        bytes.as_chunks::<8>().0.iter().map(|number| i64::from_le_bytes(*number)).collect()
    });
    let binned: Pack = Box::new(bins::encode);
    let from_bins: Unpack = Box::new(|bytes, count| {
        let mut into = Vec::with_capacity(count);
        bins::decode(bytes, count, &mut into).expect("it is what was packed");
        into
    });
    let mut all = vec![("copied", copied, back), ("bins", binned, from_bins)];
    let small: fn() -> Methods = chunks::small;
    for (name, methods) in [("chunks, quick", chunks::quick as fn() -> Methods), ("chunks, small", small)] {
        let (pack, unpack) = set(methods, kind);
        all.push((name, pack, unpack));
    }
    for (name, level) in [("pco, level 4", 4), ("pco, level 8", 8)] {
        let config = ChunkConfig::default().with_compression_level(level);
        let pack: Pack = Box::new(move |numbers| simple_compress(numbers, &config).expect("it packs anything"));
        let unpack: Unpack = Box::new(|bytes, _| simple_decompress(bytes).expect("it is what was packed"));
        all.push((name, pack, unpack));
    }
    all
}

fn main() {
    let mut words = std::env::args().skip(1);
    let count = words.next().map_or(1 << 20, |word| word.parse().expect("a number of numbers"));
    let traces: Vec<String> = words.collect();
    println!("{:<26} {:<14} {:>10} {:>10} {:>10}", "stream", "way", "bytes/no.", "pack, ns", "unpack, ns");
    for (name, kind, numbers) in streams(count, &traces) {
        for (way, mut pack, mut unpack) in ways(kind) {
            let (mut bytes, mut least) = (0, [f64::INFINITY; 2]);
            for _ in 0..ROUNDS {
                let begin = seconds();
                let packed: Vec<Vec<u8>> = numbers.chunks(CHUNK).map(&mut pack).collect();
                least[0] = least[0].min(seconds() - begin);
                bytes = packed.iter().map(Vec::len).sum();
                let mut unpacking = 0.0;
                for (packed, numbers) in packed.iter().zip(numbers.chunks(CHUNK)) {
                    let begin = seconds();
                    let again = unpack(packed, numbers.len());
                    unpacking += seconds() - begin;
                    assert!(again == numbers, "{way} gives other numbers back");
                }
                least[1] = least[1].min(unpacking);
            }
            let each = |all: f64| all / numbers.len() as f64;
            let (pack, unpack) = (each(least[0]) * 1e9, each(least[1]) * 1e9);
            println!("{name:<26} {way:<14} {:>10.3} {pack:>10.1} {unpack:>10.1}", each(bytes as f64));
        }
    }
}
