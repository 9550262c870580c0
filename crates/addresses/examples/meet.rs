//! Address traces in `rfa`'s model and in `fold`, side by side: `meet TRACE...`. The traces must have PCs (`rawp`). For each
//! way the bytes and the nanoseconds of processor time a reference, packing. All hold the same: kind, PC and address.
//!
//! - rfa: the model and zstd, with PCs.
//! - fold: the instructions as a grammar, each with a stream of its addresses, as a trace file.
//! - loops: the same with a tree of loops in the place of the grammar.
//! - chunks: the instructions as a grammar, their addresses in chunks, a stream for each instruction: what `fold` has
//!   (quick, small), and with `rfa`'s model as one method more.
//! - column: all addresses as one stream in chunks, without the instructions: `fold` alone, the model alone, the better.

use std::collections::HashMap;
use std::fs::File;

use refrain_addresses::{Batch, Format, Guessed, Options, Writer, of_name, open};
use refrain_fold::bundle::{Bundle, SymbolEntry, Tally, ThreadPart};
use refrain_fold::grammar::Folder as Grammar;
use refrain_fold::loops::{Folder as Loops, Matching};
use refrain_fold::pack::{Kind, Methods, number};
use refrain_fold::stream::{Folder, Stream};
use refrain_tracefile::chunks::{self, Key, Section, Settings, Writer as Chunks};
use refrain_tracefile::{Meta, Trace, write};

/// Processor time of this process.
fn seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time`, which outlives the call.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "a process has a clock");
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The references as `fold` takes them: which instruction, and where it referred to.
struct References {
    batches: Vec<Batch>,
    instructions: Vec<(u64, u8)>,
    sequence: Vec<u32>,
    addresses: Vec<i64>,
}

fn load(path: &str) -> References {
    let file = File::open(path).expect("the trace opens");
    let mut reader = open(Box::new(file), path, of_name(path).0).expect("the trace is one");
    assert!(reader.fields().pcs, "{path} has no PCs");
    let mut known: HashMap<(u64, u8), u32> = HashMap::new();
    let (mut batches, mut sequence, mut addresses) = (Vec::new(), Vec::new(), Vec::new());
    let mut batch = Batch::new();
    while reader.read(&mut batch).expect("the trace is whole") {
        for reference in batch.iter() {
            let next = known.len() as u32;
            sequence.push(*known.entry((reference.pc, reference.kind)).or_insert(next));
            addresses.push(reference.address as i64);
        }
        batches.push(batch.clone());
    }
    let mut instructions: Vec<((u64, u8), u32)> = known.into_iter().collect();
    instructions.sort_by_key(|known| known.1);
    References {
        batches,
        instructions: instructions.into_iter().map(|known| known.0).collect(),
        sequence,
        addresses,
    }
}

impl References {
    fn rfa(&self) -> usize {
        let fields = refrain_addresses::Fields { pcs: true, ..refrain_addresses::Fields::NONE };
        let mut writer =
            Writer::with(Vec::new(), Format::Rfa, fields, &Options::default()).expect("it can be packed");
        self.batches.iter().for_each(|batch| writer.write(batch).expect("there is memory"));
        writer.finish().expect("there is memory").len()
    }

    fn symbols(&self, lanes: u16) -> Vec<SymbolEntry> {
        let tally = Tally { total: 0, min: 0, max: 0 };
        let bytes = |&(pc, kind): &(u64, u8)| [&[kind][..], &pc.to_be_bytes()].concat().into();
        self.instructions
            .iter()
            .map(|at| SymbolEntry { bytes: bytes(at), site: 0, lanes, tally, classes: Default::default() })
            .collect()
    }

    fn file(&self, part: ThreadPart, lanes: u16) -> usize {
        let bundle = Bundle::of_rank((0, 1), self.symbols(lanes), vec![part]).expect("it is well formed");
        write(&Trace { meta: Meta { ranks: 1, ..Meta::default() }, bundle }).len()
    }

    fn grammar(&self) -> ThreadPart {
        let mut folder = Grammar::new();
        self.sequence.iter().for_each(|&symbol| folder.push(symbol));
        ThreadPart {
            thread: 0,
            structure: folder.into_grammar().into(),
            times: Vec::new(),
            lanes: Vec::new(),
            lengths: Vec::new(),
            digest: 0,
        }
    }

    fn streams(&self) -> (Vec<Vec<Stream>>, Vec<Vec<u64>>) {
        let mut folders = vec![Folder::new(); self.instructions.len()];
        for (&symbol, &address) in self.sequence.iter().zip(&self.addresses) {
            folders[symbol as usize].push(address);
        }
        folders.iter().map(|folder| (vec![folder.finish()], vec![folder.len()])).unzip()
    }

    fn fold(&self) -> usize {
        let (lanes, lengths) = self.streams();
        self.file(ThreadPart { lanes, lengths, ..self.grammar() }, 1)
    }

    fn loops(&self) -> usize {
        let mut folder = Loops::new(Matching::Elastic);
        self.sequence.iter().for_each(|&symbol| folder.push(symbol));
        let folded = folder.finish();
        let times = folded.times.into_iter().zip(folded.lengths).collect();
        let (lanes, lengths) = self.streams();
        let structure = folded.loops.into();
        self.file(ThreadPart { thread: 0, structure, times, lanes, lengths, digest: 0 }, 1)
    }

    fn chunks(&self, methods: Methods) -> usize {
        self.file(self.grammar(), 0) + self.chunked(methods, u64::from).len()
    }

    fn chunked(&self, methods: Methods, lane: impl Fn(u32) -> u64) -> Vec<u8> {
        let mut writer = Chunks::with(Vec::new(), Settings { budget: 16 << 20, chunk: 1 << 16 }, methods);
        let streams: Vec<_> = (0..self.instructions.len() as u32)
            .map(|symbol| writer.stream(Key { member: 0, lane: lane(symbol) }, Kind::ADDRESS))
            .collect();
        for (&symbol, address) in self.sequence.iter().zip(&self.addresses) {
            writer.push(streams[symbol as usize], std::slice::from_ref(address)).expect("there is memory");
        }
        writer.finish().expect("there is memory")
    }
}

fn main() {
    println!("{:<10} {:<28} {:>10} {:>10} {:>8}", "trace", "way", "bytes", "bytes/ref", "ns/ref");
    for path in std::env::args().skip(1) {
        let name = path.rsplit('/').next().unwrap_or(&path).split('.').next().unwrap_or(&path).to_owned();
        let trace = load(&path);
        let count = trace.sequence.len() as f64;
        let show = |way: &str, measure: &dyn Fn() -> usize| {
            let begin = seconds();
            let bytes = measure();
            let each = (seconds() - begin) * 1e9 / count;
            println!("{name:<10} {way:<28} {bytes:>10} {:>10.4} {each:>8.1}", bytes as f64 / count);
        };
        show("rfa, PCs too", &|| trace.rfa());
        show("fold, grammar", &|| trace.fold());
        show("fold, loops", &|| trace.loops());
        show("chunks by instr., quick", &|| trace.chunks(chunks::quick()));
        show("chunks by instr., small", &|| trace.chunks(chunks::small()));
        show("chunks by instr., the better", &|| trace.chunks(chunks::quick().with(Guessed::new())));
        show("column, fold quick", &|| trace.chunked(chunks::quick(), |_| 0).len());
        show("column, fold small", &|| trace.chunked(chunks::small(), |_| 0).len());
        show("column, model only", &|| trace.chunked(Methods::only(Guessed::new()), |_| 0).len());
        show("column, the better", &|| trace.chunked(chunks::quick().with(Guessed::new()), |_| 0).len());
        let bytes = trace.chunked(chunks::quick().with(Guessed::new()), |_| 0);
        let section = Section::open(std::io::Cursor::new(bytes)).expect("it is one");
        let mut section = section.with(chunks::quick().with(Guessed::new()));
        let mut again = Vec::new();
        let begin = seconds();
        section.read(Key::default(), 0..count as u64, &mut again).expect("it is whole");
        let each = (seconds() - begin) * 1e9 / count;
        assert!(again == trace.addresses, "what is read back differs");
        println!("{name:<10} {:<28} {:>10} {:>10} {each:>8.1}", "  read back", "", "");
        let methods: HashMap<u8, usize> = section.methods_used().expect("it is whole");
        let names = [number::PLAIN, number::SHAPE, number::BINS, number::BLOCKS, number::GUESSED];
        let used: Vec<String> = names
            .into_iter()
            .zip(["plain", "shape", "bins", "blocks", "guessed"])
            .filter_map(|(method, name)| Some(format!("{name} {}", methods.get(&method)?)))
            .collect();
        println!("{name:<10}   chunks: {}", used.join(", "));
    }
}
