//! A trace of any length as raw records on standard output: `generate COUNT [vector|random]`.

use std::io::Write;

use refrain_addresses::{BATCH, Batch, Fields, Format, Reference, Writer, kind};

fn main() {
    let mut words = std::env::args().skip(1);
    let count: u64 = words.next().and_then(|n| n.parse().ok()).expect("generate COUNT [vector|random]");
    let random = match words.next().as_deref() {
        None | Some("vector") => false,
        Some("random") => true,
        Some(other) => panic!("{other}: only vector and random are known"),
    };
    let mut writer =
        Writer::new(std::io::stdout().lock(), Format::Raw, Fields::NONE).expect("raw keeps this");
    let mut rng = fastrand::Rng::with_seed(1);
    let mut at = 0;
    let mut batch = Batch::new();
    while at < count {
        batch.clear();
        for i in at..count.min(at + BATCH as u64) {
            // c[i] = a[i] + b[i], or anything at all.
            let (kind, base) =
                [(kind::READ, 0x10_0000), (kind::READ, 0x4000_0000), (kind::WRITE, 0x8000_0000)]
                    [i as usize % 3];
            let address = if random { rng.u64(..) } else { base + 8 * (i / 3 % (1 << 24)) };
            batch.push(Fields::NONE, Reference { kind, address, ..Reference::default() });
        }
        at += batch.len() as u64;
        if writer.write(&batch).is_err() {
            return;
        }
    }
    let _ = writer.finish().map(|mut out| out.flush());
}
