//! A trace of memory references whose references are known.

use std::fs::File;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use refrain_fold::bundle::Sites;
use refrain_fold::bundle::sites::{Frame, Module, Stack};
use refrain_references::{Access, Block, Folding, Reference, Thread, join};
use refrain_tracefile::chunks::{Merger, Section};
use refrain_tracefile::{Meta, Trace, append, attach, read, write};

#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a thread refers to: offset of the instruction, access, size, address. Rows of a matrix, a counter beside those of others,
/// and in thread 0 places without order, so many.
pub fn references(thread: u64, places: u64) -> Vec<(u64, Access, u32, u64)> {
    let mut all = Vec::new();
    for i in 0..20 {
        for k in 0..30 {
            all.push((0x100, Access::Load, 8, 0x10_0000 + 8 * (30 * (20 * thread + i) + k)));
            all.push((0x105, Access::Store, 4, 0x20_0000 + 4 * k));
        }
        all.push((0x200, Access::Update, 8, 0x30_0000 + 8 * thread));
    }
    let mut at = 1u64;
    for _ in 0..if thread == 0 { places } else { 0 } {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.push((0x300, Access::Load, 1, 0x40_0000 + (at >> 40)));
    }
    all
}

/// Writes a trace of so many threads.
pub fn make(path: &Path, threads: u32, places: u64) {
    let module = Module { path: "/usr/bin/made".into(), build_id: [1, 2, 3].into() };
    let mut sites = Sites::default();
    let mut site =
        |offset| sites.add_stack(Stack { outer: 0, frame: Frame { module: module.key(), offset } });
    let all_sites = [site(0x100), site(0x200), site(0x300)];
    sites.add_module(module.clone());
    let reference = |at, access, size| Reference { at, access, size };
    let blocks = [
        vec![reference(0, Access::Load, 8), reference(5, Access::Store, 4)],
        vec![reference(0, Access::Update, 8)],
        vec![reference(0, Access::Load, 1)],
    ]
    .map(|references| Block { pc: 0, references });
    let (mut bundles, mut merger) = (Vec::new(), Merger::new(Vec::new()));
    for thread in 0..threads {
        let bytes = Bytes::default();
        let recording = Thread::new(Folding::Rules, (0, 1), thread);
        let mut recording = recording.bounded(Box::new(bytes.clone()), 1 << 20);
        let symbols: Vec<u32> =
            blocks.iter().zip(all_sites).map(|(block, site)| recording.symbol(block, site)).collect();
        let all = references(thread.into(), places);
        let mut rest = &all[..];
        while let Some((at, ..)) = rest.first() {
            let block = (at / 0x100 - 1) as usize;
            let (own, behind) = rest.split_at(blocks[block].references.len());
            let addresses: Vec<u64> = own.iter().map(|reference| reference.3).collect();
            recording.push(symbols[block], &addresses);
            rest = behind;
        }
        bundles.push(recording.bundle(&sites).unwrap());
        recording.close().unwrap();
        let file = bytes.0.lock().unwrap().clone();
        merger.add(&mut Section::open(Cursor::new(file)).unwrap(), Some).unwrap();
    }
    let chunks = merger.finish().unwrap();
    let meta = Meta {
        abi: refrain_references::ABI.into(),
        library: "by hand".into(),
        command: vec!["made".into()],
        ranks: 1,
        complete: true,
        split: true,
        options: vec![("limit".into(), "5".into())],
        notes: vec!["a note".into()],
        ..Meta::default()
    };
    let trace = write(&Trace { meta, bundle: join(bundles).unwrap() });
    append(&trace, Cursor::new(chunks), File::create(path).unwrap()).unwrap();
}

/// A trace of calls, `seed`, and what its threads may have referred to between them: address 8n before call n, and 1 after the
/// last; with so many marks too few at the end of the last thread.
#[allow(dead_code)]
pub fn make_both(seed: &[u8], path: &Path, lacking: u64) {
    let calls = read(seed).unwrap();
    let bundle = &calls.bundle;
    let mut bundles = Vec::new();
    for cohort in &bundle.cohorts {
        for member in cohort.ranks.iter() {
            let (rank, thread) = bundle.place_of(member);
            let is_last =
                member == bundle.cohorts.iter().flat_map(|cohort| cohort.ranks.iter()).max().unwrap();
            // Threads of a program may be numbered otherwise than those of its calls.
            let mut recording = Thread::new(Folding::Rules, (rank, bundle.world), 2 * thread);
            let load =
                Block { pc: 0x1000, references: vec![Reference { at: 0, access: Access::Load, size: 8 }] };
            let symbol = recording.symbol(&load, 0);
            let count = refrain_encode::calls_of(bundle, cohort, member) - if is_last { lacking } else { 0 };
            for call in 0..count {
                recording.push(symbol, &[8 * call]);
                recording.mark(thread);
            }
            recording.push(symbol, &[1]);
            bundles.push(recording.bundle(&Sites::default()).unwrap());
        }
    }
    let meta =
        Meta { ranks: bundle.world, abi: refrain_references::ABI.into(), complete: true, ..Meta::default() };
    let references = write(&Trace { meta, bundle: join(bundles).unwrap() });
    attach(Cursor::new(seed), Cursor::new(references), File::create(path).unwrap()).unwrap();
}
