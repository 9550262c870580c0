//! A trace of memory references recorded again from what it says, and the processor time of each step: the references of a thread,
//! the threads of a process, the processes. Then the file that it makes.
//!
//!     cargo run --release -p refrain-references --example refold TRACE

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use refrain_fold::bundle::Bundle;
use refrain_references::{Folding, References, Symbol, Thread, join, open, symbols};
use refrain_tracefile::{Meta, Trace, write};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("one thread").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: refold TRACE")?;
    let loaded = refrain_tracefile::load(File::open(&path)?)?;
    let bundle = refrain_tracefile::read(&loaded.bytes)?.bundle;
    let known = symbols(&bundle)?;
    let mut processes: BTreeMap<u32, Vec<Bundle>> = BTreeMap::new();
    let (mut references, mut aside, mut within) = (0, 0, Duration::ZERO);
    for cohort in &bundle.cohorts {
        for member in cohort.ranks.iter() {
            let (rank, thread) = bundle.place_of(member);
            let chunks = match loaded.chunks.clone() {
                Some(range) => Some(open(Box::new(File::open(&path)?), range)?),
                None => None,
            };
            let Some(read) = References::new(&bundle, (rank, thread), chunks)? else { continue };
            let sink = Memory::default();
            let mut recording = Thread::new(Folding::Rules, (rank, bundle.world), thread)
                .bounded(Box::new(sink.clone()), 256 << 20);
            let numbers: Vec<u32> = known
                .iter()
                .zip(&bundle.symbols)
                .map(|(symbol, entry)| match symbol {
                    Symbol::Block { block, .. } => recording.symbol(block, entry.site),
                    _ => 0,
                })
                .collect();
            // Executions in portions, so that reading them is not in the time.
            let (mut portion, mut addresses): (Vec<(u32, u16)>, Vec<u64>) = (Vec::new(), Vec::new());
            let mut push = |portion: &mut Vec<(u32, u16)>, addresses: &mut Vec<u64>| {
                let (began, mut at) = (Instant::now(), 0);
                for &(symbol, count) in &*portion {
                    recording.push(numbers[symbol as usize], &addresses[at..at + usize::from(count)]);
                    at += usize::from(count);
                }
                within += began.elapsed();
                portion.clear();
                addresses.clear();
            };
            for event in read {
                let event = event?;
                if event.nth == 0 {
                    if addresses.len() > 1 << 16 {
                        push(&mut portion, &mut addresses);
                    }
                    portion.push((event.symbol, 0));
                }
                addresses.push(event.address);
                portion.last_mut().ok_or("a block begins in its middle")?.1 += 1;
                references += 1;
            }
            push(&mut portion, &mut addresses);
            let began = Instant::now();
            let folded = recording.bundle(&bundle.sites)?;
            recording.close()?;
            within += began.elapsed();
            aside += sink.0.lock().expect("one thread").len();
            processes.entry(rank).or_default().push(folded);
        }
    }
    let (threads, ranks) = (processes.values().map(Vec::len).sum::<usize>(), processes.len());
    let began = Instant::now();
    let joined = processes.into_values().map(join).collect::<Result<Vec<_>, _>>()?;
    let between_threads = began.elapsed();
    let began = Instant::now();
    let bundle = join(joined)?;
    let between_processes = began.elapsed();
    let began = Instant::now();
    let mut file = Cursor::new(Vec::new());
    file.write_all(&write(&Trace { meta: Meta::default(), bundle }))?;
    let written = began.elapsed();
    println!(
        "{references} references of {threads} threads of {ranks} processes: within threads {:.3} s, between threads {:.3} s, between \
         processes {:.3} s, written {:.3} s; {} bytes",
        within.as_secs_f64(),
        between_threads.as_secs_f64(),
        between_processes.as_secs_f64(),
        written.as_secs_f64(),
        file.into_inner().len() + aside,
    );
    Ok(())
}
