use super::*;
use crate::code::Fetch;
use crate::decode::Insn;
use refrain_fold::bundle::sites::{Frame, Module};
use refrain_references::{Folding, Item, References};

/// Accesses as the tests tell them: the size, and whether it stores.
fn meaning(info: u32) -> (u32, bool) {
    (info & 0xff, info & 0x100 != 0)
}

fn insn(at: u32, loads: u32, stores: u32) -> Insn {
    Insn { at, len: 4, loads, stores, load: loads, store: stores, ..Insn::default() }
}

fn block(offset: u64, first: u32, insns: Vec<Insn>) -> Arc<Block> {
    let module = Module { path: "/p".into(), build_id: [1].into() };
    let place = Some((Frame { module: module.key(), offset }, Arc::new(module)));
    let (address, start) = (0x40_0000 + offset, Record::default());
    Arc::new(Block { address, place, first, insns, fetches: Box::default(), start, is_recorded: true })
}

fn load(insn: u32, address: u64, size: u32) -> Record {
    Record { address, insn, info: size }
}

fn store(insn: u32, address: u64, size: u32) -> Record {
    Record { address, insn, info: size | 0x100 }
}

/// What comes of these records, whatever the places at which the buffer is full: access, address and size of each reference,
/// and how many executions there were.
fn recorded(blocks: &[Arc<Block>], records: &[Record], limit: u64) -> (String, usize) {
    let mut results = Vec::new();
    for room in [1, 2, 3, 7, 1000] {
        let thread = Thread::new(Folding::Rules, (0, 1), 0);
        let mut recording = Recording::new(thread, limit, true, meaning);
        let tell = |all: &mut Vec<Arc<Block>>, of: &mut Vec<u32>| {
            *all = blocks.to_vec();
            of.clear();
            for (number, block) in blocks.iter().enumerate() {
                of.extend(block.insns.iter().map(|_| number as u32));
            }
        };
        let mut buffer: Vec<Record> = Vec::new();
        for more in records.chunks(room) {
            buffer.extend(more);
            let taken = recording.take(&buffer, false, tell);
            buffer.drain(..taken);
        }
        assert_eq!(recording.take(&buffer, true, tell), buffer.len());
        let bundle = recording.bundle().unwrap();
        let events = References::new(&bundle, (0, 0), None).unwrap().unwrap().map(Result::unwrap);
        let word = |e: refrain_references::Event| {
            format!("{}{:x}/{}", ["L", "S", "U", "F"][e.access as usize], e.address, e.size)
        };
        let events: Vec<String> = events.map(word).collect();
        results.push((events.join(" "), recording.symbols.len()));
    }
    assert!(results.windows(2).all(|two| two[0] == two[1]), "{results:?}");
    results.swap_remove(0)
}

#[track_caller]
fn check(blocks: &[Arc<Block>], records: &[Record], expected: &str, symbols: usize) {
    assert_eq!(recorded(blocks, records, u64::MAX), (expected.to_owned(), symbols));
}

#[test]
fn a_loop_of_one_instruction_is_one_symbol() {
    let blocks = [block(0, 0, vec![insn(0, 8, 0)])];
    check(&blocks, &[load(0, 0x10, 8), load(0, 0x18, 8), load(0, 0x20, 8)], "L10/8 L18/8 L20/8", 1);
}

#[test]
fn pieces_of_a_vector_are_one_reference() {
    let blocks = [block(0, 0, vec![insn(0, 32, 0), insn(8, 0, 16)])];
    let once = |at: u64| {
        let loads = (0..4).map(move |n| load(0, at + 8 * n, 8));
        loads.chain((0..2).map(move |n| store(1, at + 0x100 + 8 * n, 8)))
    };
    let records: Vec<Record> = once(0x10).chain(once(0x30)).collect();
    check(&blocks, &records, "L10/32 S110/16 L30/32 S130/16", 1);
}

#[test]
fn a_vector_loop_of_one_instruction_is_cut_where_it_runs_again() {
    let blocks = [block(0, 0, vec![insn(0, 16, 0)])];
    let records: Vec<Record> = (0..6).map(|n| load(0, 0x10 + 8 * n, 8)).collect();
    check(&blocks, &records, "L10/16 L20/16 L30/16", 1);
}

#[test]
fn several_references_of_one_instruction_stay_apart() {
    let blocks = [block(0, 0, vec![insn(0, 8, 8)])];
    let records = [load(0, 0x10, 8), store(0, 0x18, 8), load(0, 0x10, 8), store(0, 0x10, 8)];
    check(&blocks, &records, "L10/8 S18/8 L10/8 S10/8", 1);
    // Two loads side by side.
    let mut two = insn(0, 2, 0);
    two.load = 1;
    check(&[block(0, 0, vec![two])], &[load(0, 0x10, 1), load(0, 0x11, 1)], "L10/1 L11/1", 1);
}

#[test]
fn an_atomic_operation_is_one_update() {
    let mut atomic = insn(0, 8, 8);
    atomic.is_atomic = true;
    let blocks = [block(0, 0, vec![atomic.clone()])];
    // In one access, or in two.
    check(&blocks, &[store(0, 0x10, 8), store(0, 0x10, 8)], "U10/8 U10/8", 1);
    let apart = [load(0, 0x10, 8), store(0, 0x10, 8), load(0, 0x18, 8), store(0, 0x18, 8)];
    check(&blocks, &apart, "U10/8 U18/8", 1);
    (atomic.loads, atomic.load, atomic.stores, atomic.store) = (16, 16, 16, 16);
    let blocks = [block(0, 0, vec![atomic])];
    let four = [load(0, 0x10, 8), load(0, 0x18, 8), store(0, 0x10, 8), store(0, 0x18, 8)];
    check(&blocks, &[four, four].concat(), "U10/16 U10/16", 1);
}

#[test]
fn what_ends_early_is_a_block_of_its_own() {
    let blocks = [block(0, 0, vec![insn(0, 8, 0), insn(4, 8, 0)]), block(64, 2, vec![insn(0, 0, 4)])];
    let records = [load(0, 1, 8), load(1, 2, 8), load(0, 3, 8), store(2, 4, 4), load(0, 5, 8), load(1, 6, 8)];
    check(&blocks, &records, "L1/8 L2/8 L3/8 S4/4 L5/8 L6/8", 3);
}

#[test]
fn what_varies_is_left_in_pieces() {
    let mut varies = insn(0, 512, 0);
    varies.varies = true;
    let blocks = [block(0, 0, vec![varies])];
    check(&blocks, &[load(0, 0x10, 4), load(0, 0x14, 4), load(0, 0x20, 4)], "L10/4 L14/4 L20/4", 1);
}

#[test]
fn calls_make_other_symbols_of_the_same_block() {
    let mut call = insn(0, 0, 8);
    call.flow = Flow::Call;
    let mut ret = insn(4, 8, 0);
    ret.flow = Flow::Return;
    let blocks =
        [block(0, 0, vec![call.clone()]), block(32, 1, vec![call]), block(64, 2, vec![insn(0, 8, 0), ret])];
    let from = |caller: u32| [store(caller, 0x100, 8), load(2, 0x10, 8), load(3, 0x100, 8)];
    let records = [from(0), from(1), from(0)].concat();
    check(&blocks, &records, "S100/8 L10/8 L100/8 S100/8 L10/8 L100/8 S100/8 L10/8 L100/8", 4);
}

#[test]
fn nothing_is_recorded_beyond_the_limit() {
    let blocks = [block(0, 0, vec![insn(0, 8, 0), insn(4, 8, 0)])];
    let records: Vec<Record> = (0..10).map(|n| load(n % 2, 0x10 + u64::from(n), 8)).collect();
    assert_eq!(recorded(&blocks, &records, 3).0, "L10/8 L11/8 L12/8");
    assert_eq!(recorded(&blocks, &records, 4).0, "L10/8 L11/8 L12/8 L13/8");
}

#[test]
fn what_is_off_is_not_recorded() {
    let mut call = insn(4, 0, 8);
    call.flow = Flow::Call;
    let blocks = [block(0, 0, vec![insn(0, 8, 0), call])];
    let off = Record { info: 8 | 0x100 | OFF, ..store(1, 0x100, 8) };
    check(&blocks, &[off, load(0, 0x10, 8), store(1, 0x90, 8)], "L10/8 S90/8", 1);
}

/// Calls stay between the references that they were between, wherever the buffer was full, also behind the limit.
#[test]
fn calls_are_marked_where_they_were() {
    let blocks = [block(0, 0, vec![insn(0, 8, 0)])];
    let thread = Record { address: 4, insn: THREAD, info: 0 };
    let call = Record { insn: CALL, ..Record::default() };
    let records = [thread, load(0, 1, 8), call, load(0, 2, 8), load(0, 3, 8), call, call, load(0, 4, 8)];
    for (room, limit, expected) in
        [(1, 9, "1 c4 2 3 c4 c4 4"), (3, 9, "1 c4 2 3 c4 c4 4"), (3, 2, "1 c4 2 c4 c4")]
    {
        let mut recording = Recording::new(Thread::new(Folding::Rules, (0, 1), 0), limit, true, meaning);
        let tell = |all: &mut Vec<Arc<Block>>, of: &mut Vec<u32>| {
            *all = blocks.to_vec();
            *of = vec![0];
        };
        let mut buffer: Vec<Record> = Vec::new();
        for more in records.chunks(room) {
            buffer.extend(more);
            if recording.is_full() {
                recording.take_marks(&buffer);
                buffer.clear();
            }
            let taken = recording.take(&buffer, false, tell);
            buffer.drain(..taken);
        }
        recording.take(&buffer, true, tell);
        let bundle = recording.bundle().unwrap();
        let mut items = References::new(&bundle, (0, 0), None).unwrap().unwrap();
        let mut words = Vec::new();
        while let Some(item) = items.next_item() {
            words.push(match item.unwrap() {
                Item::Reference(event) => event.address.to_string(),
                Item::Call(thread) => format!("c{thread}"),
            });
        }
        assert_eq!(words.join(" "), expected, "room for {room}, at most {limit}");
    }
}

/// A block whose fetches are recorded, of instructions of 4 bytes; those that refer to memory are at the places of `insns`.
fn fetched(offset: u64, first: u32, count: u32, insns: Vec<Insn>) -> Arc<Block> {
    let plain = block(offset, first, Vec::new());
    let refers = |at| insns.iter().find(|insn| insn.at == at);
    let fetch = |nth: u32| Fetch {
        at: 4 * nth,
        len: 4,
        refers: refers(4 * nth).is_some_and(|insn| !insn.varies && !insn.is_repeated),
        is_repeated: refers(4 * nth).is_some_and(|insn| insn.is_repeated),
    };
    let fetches = (0..count).map(fetch).collect();
    let start = Record { address: plain.address, insn: first, info: START };
    let insns = [Insn::default()].into_iter().chain(insns).collect();
    let (address, place) = (plain.address, plain.place.clone());
    Arc::new(Block { address, place, first, insns, fetches, start, is_recorded: true })
}

#[test]
fn fetches_stand_before_what_their_instructions_do() {
    let blocks = [fetched(0, 0, 4, vec![insn(4, 8, 0), insn(8, 8, 8)]), fetched(0x100, 3, 2, vec![])];
    let (a, b) = (blocks[0].start, blocks[1].start);
    let once = [a, load(1, 0x10, 8), load(2, 0x20, 8), store(2, 0x20, 8), b];
    let expected = "F400000/4 F400004/4 L10/8 F400008/4 L20/8 S20/8 F40000c/4 F400100/4 F400104/4";
    check(&blocks, &once, expected, 2);
    check(&blocks, &[once, once].concat(), &[expected, expected].join(" "), 2);
}

#[test]
fn what_does_not_come_to_its_end_is_not_fetched_to_its_end() {
    let blocks = [fetched(0, 0, 4, vec![insn(4, 8, 0), insn(8, 8, 0)]), fetched(0x100, 3, 1, vec![])];
    let (a, b) = (blocks[0].start, blocks[1].start);
    check(&blocks, &[a, load(1, 0x10, 8), b], "F400000/4 F400004/4 L10/8 F400100/4", 2);
    check(&blocks, &[a, b], "F400000/4 F400100/4", 2);
}

#[test]
fn an_instruction_with_many_accesses_is_fetched_once() {
    let varies = Insn { varies: true, ..insn(0, 8, 0) };
    let blocks = [fetched(0, 0, 2, vec![varies, insn(4, 8, 0)])];
    let mut records = vec![blocks[0].start];
    records.extend((0..200).map(|n| load(1, 0x1000 + 8 * n, 8)));
    records.push(load(2, 0x10, 8));
    let (found, symbols) = recorded(&blocks, &[&records[..], &records].concat(), u64::MAX);
    assert_eq!((found.matches('F').count(), found.matches('L').count(), symbols), (4, 402, 1));
    assert!(found.ends_with("L1638/8 F400004/4 L10/8"), "{found}");
}

#[test]
fn an_instruction_that_runs_many_times_is_fetched_once() {
    let repeated = |at| Insn { is_repeated: true, ..insn(at, 0, 1) };
    let other = fetched(0x100, 4, 1, vec![]);
    let blocks = [fetched(0, 0, 2, vec![repeated(4)]), fetched(4, 2, 1, vec![repeated(0)]), other];
    let [a, b, c] = [0, 1, 2].map(|nth: usize| blocks[nth].start);
    let twice = [a, store(1, 0x10, 1), b, store(3, 0x11, 1), b, store(3, 0x12, 1), c];
    let expected = "F400000/4 F400004/4 S10/1 S11/1 S12/1 F400100/4";
    let (found, _) = recorded(&blocks, &[twice, twice].concat(), u64::MAX);
    assert_eq!(found, [expected, expected].join(" "));
    // None at all, and one that is jumped to.
    assert_eq!(
        recorded(&blocks, &[a, c, b, store(3, 0x10, 1)], u64::MAX).0,
        "F400000/4 F400004/4 F400100/4 F400004/4 S10/1"
    );
    assert_eq!(recorded(&blocks, &twice, 4).0, "F400000/4 F400004/4 S10/1 S11/1");
}
