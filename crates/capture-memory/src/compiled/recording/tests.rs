use refrain_fold::bundle::Sites;
use refrain_references::{Folding, References};

use super::super::kinds::{load, store};
use super::*;

/// A call of something that notes a record: 5 bytes.
const CALL: [u8; 5] = [0xe8, 0, 0, 0, 0];
/// `jne` over nothing.
const JUMP: [u8; 2] = [0x75, 0];
/// `mov (%rax),%eax`
const MOVE: [u8; 2] = [0x8b, 0];

const START: u64 = 0x1000;

/// Records code that begins at `START`; `records` have where they come from, their kind, and the address.
fn recorded(
    code: &'static [u8],
    limit: u64,
    batches: &[&[(u64, u64, u64)]],
) -> (Vec<(u64, u32)>, usize, Recording) {
    let thread = Thread::new(Folding::Rules, (0, 1), 0);
    let mut recording = Recording::new(thread, limit);
    let find =
        |pc: u64| Found { place: None, code: code.get((pc - START) as usize..).unwrap_or_default().to_vec() };
    let mut waiting: Vec<Record> = Vec::new();
    for (nth, batch) in batches.iter().enumerate() {
        waiting
            .extend(batch.iter().map(|&(pc, kind, address)| Record { address, word: kind | (START + pc) }));
        let taken = recording.take(&waiting, nth + 1 == batches.len(), find);
        waiting.drain(..taken);
    }
    assert!(waiting.is_empty());
    let bundle = recording.thread.bundle(&Sites::default()).unwrap();
    let blocks = bundle.symbols.len();
    let all = References::new(&bundle, (0, 0), None).unwrap();
    let all =
        all.into_iter().flatten().map(Result::unwrap).map(|event| (event.address, event.size)).collect();
    (all, blocks, recording)
}

fn code(pieces: &[&[u8]]) -> &'static [u8] {
    pieces.concat().leak()
}

#[test]
fn what_no_jump_parts_is_one_block() {
    let code = code(&[&CALL, &MOVE, &CALL, &MOVE, &JUMP, &CALL, &MOVE]);
    let turn = [(5, load(4), 100), (12, load(8), 200), (21, store(8), 300)];
    let (found, blocks, _) = recorded(code, u64::MAX, &[&turn, &turn]);
    assert_eq!(found, [(100, 4), (200, 8), (300, 8)].repeat(2));
    assert_eq!(blocks, 2);
}

#[test]
fn a_block_waits_for_its_end() {
    let code = code(&[&CALL, &MOVE, &CALL, &MOVE, &CALL, &JUMP]);
    let turn = [(5, load(4), 100), (12, load(8), 200), (19, store(8), 300)];
    for cut in 0..=6 {
        let twice = turn.repeat(2);
        let (found, blocks, _) = recorded(code, u64::MAX, &[&twice[..cut], &twice[cut..]]);
        assert_eq!(found, [(100, 4), (200, 8), (300, 8)].repeat(2), "{cut}");
        assert_eq!(blocks, 1, "{cut}");
    }
}

#[test]
fn a_handler_may_come_between() {
    let code = code(&[&CALL, &MOVE, &CALL, &JUMP, &CALL, &JUMP]);
    let turn = [
        (5, load(4), 1),
        (19, store(1), 9),
        (12, load(8), 2),
        (5, load(4), 1),
        (12, load(8), 2),
        (5, load(4), 3),
    ];
    let (found, ..) = recorded(code, u64::MAX, &[&turn]);
    assert_eq!(found, [(1, 4), (9, 1), (2, 8), (1, 4), (2, 8), (3, 4)]);
}

#[test]
fn limits_cut_blocks() {
    let code = code(&[&CALL, &MOVE, &CALL, &JUMP]);
    let turn = [(5, load(4) | BOTH, 100), (12, load(8), 200)].repeat(3);
    for limit in 0..10 {
        let (found, ..) = recorded(code, limit, &[&turn]);
        let all = [(100, 4), (100, 4), (200, 8)].repeat(3);
        assert_eq!(found, all[..all.len().min(limit as usize)], "{limit}");
    }
}

#[test]
fn pieces_stand_alone() {
    let code = code(&[&CALL, &MOVE, &CALL, &JUMP]);
    let turn =
        [(5, load(64) | PIECE, 0), (5, load(64) | PIECE, 64), (5, load(2) | PIECE, 128), (12, load(8), 7)];
    let (found, blocks, _) = recorded(code, u64::MAX, &[&turn]);
    assert_eq!(found, [(0, 64), (64, 64), (128, 2), (7, 8)]);
    assert_eq!(blocks, 3);
}

#[test]
fn functions_make_paths() {
    let code = code(&[&CALL, &JUMP, &CALL, &JUMP]);
    let turn = [
        (0, ENTERED, 1000),
        (5, load(4), 1),
        (2, ENTERED, 900),
        (5, load(4), 2),
        (9, LEFT, 900),
        (5, load(4), 3),
    ];
    let (found, _, recording) = recorded(code, u64::MAX, &[&turn]);
    assert_eq!(found, [(1, 4), (2, 4), (3, 4)]);
    assert_eq!(recording.paths.frames(recording.paths.current()).len(), 1);
}
