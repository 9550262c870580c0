//! The commands that read a trace, on memory references that are known.

use crate::common;
use crate::recorded;

use common::Scratch;
use recorded::{make, make_both, references};
use refrain_references::Access;

/// More than is folded before it is seen that there is nothing to fold.
const PLACES: u64 = 400_000;

#[test]
fn every_reference_comes_back() {
    let place = Scratch::new("references");
    make(&place.path("a.rfn"), 3, PLACES);
    let said = place.refrain("verify a.rfn").check(0, "").out.clone();
    assert_eq!(said, "yes: 403,660 references of 3 threads are what was recorded\n");
    for thread in 0..3 {
        let said = place.refrain(&format!("dump a.rfn --thread {thread}")).check(0, "").out.clone();
        let all = references(thread, PLACES);
        assert_eq!(said.lines().count(), all.len());
        for (number, (line, (at, access, size, address))) in said.lines().zip(all).enumerate() {
            let expected =
                format!("[0.{thread}] {number}  {:<6} {size:>2}  {address:#x}  made+{at:#x}", access.name());
            assert_eq!(line, expected);
        }
    }
    let some = place.refrain("dump a.rfn --thread 2 --calls 60..62").check(0, "").out.clone();
    assert_eq!(
        some,
        "[0.2] 60  update  8  0x300010  made+0x200\n[0.2] 61  load    8  0x102670  made+0x100\n"
    );
}

#[test]
fn what_is_said_of_it() {
    let place = Scratch::new("references-said");
    make(&place.path("a.rfn"), 3, 0);
    let info = place.refrain("info a.rfn").check(0, "").out.clone();
    assert!(info.contains("threads      3 in 1 process\nreferences   3,660, "), "{info}");
    assert!(info.contains("1,800 loads (14.5 KiB), 1,800 stores (7.50 KiB), 60 atomic updates"), "{info}");
    let loops = place.refrain("loops a.rfn --all").check(0, "").out.clone();
    assert!(loops.starts_with("threads 0.0 0.1 0.2;"), "{loops}");
    assert!(loops.contains("loop 30 times\n"), "{loops}");
    assert!(loops.contains("store 4  from 0x200000 by 4 x30, again"), "{loops}");
    let stats = place.refrain("stats a.rfn").check(0, "").out.clone();
    assert!(stats.contains("false sharing: threads use different bytes of 1 line"), "{stats}");
    assert!(stats.contains("0x300000 of rank 0: threads 0 1 2, 60 references, at made+0x200"), "{stats}");
}

#[test]
fn it_is_an_address_trace_too() {
    let place = Scratch::new("references-addresses");
    make(&place.path("a.rfn"), 3, PLACES);
    let convert = "convert --thread 0 --drop sizes,pcs a.rfn a.din";
    place.refrain(convert).check(0, "");
    let mut expected = String::new();
    for (_, access, _, address) in references(0, PLACES) {
        if access != Access::Store {
            expected.push_str(&format!("0 {address:x}\n"));
        }
        if access != Access::Load {
            expected.push_str(&format!("1 {address:x}\n"));
        }
    }
    assert_eq!(String::from_utf8(place.read("a.din")).unwrap(), expected);
    place.refrain("convert --thread 0 a.rfn a.rfa").check(0, "");
    let misses = |file: &str| {
        let said = place.refrain(&format!("simulate {file} --l1d 4K,4,64 --l2 64K,8,64 --json"));
        let said: serde_json::Value = serde_json::from_str(&said.check(0, "").out).unwrap();
        said["caches"].clone()
    };
    assert_eq!(misses("a.rfn --thread 0"), misses("a.rfa"));
    assert!(misses("a.rfa").to_string().contains("misses"));
    // Of all threads at once the second level is shared.
    let all = place.refrain("simulate a.rfn --l1d 4K,4,64 --l2 64K,8,64").check(0, "").out.clone();
    assert!(all.contains("l2"), "{all}");
    place
        .refrain("convert a.rfn b.din --drop sizes,pcs")
        .check(2, "has several threads, and which one is not said");
    place.refrain("convert --thread 9 a.rfn b.rfa").check(2, "has no such thread");
    place.refrain("simulate a.din --l1 4K,4,64 --thread 1").check(2, "is not a trace of memory references");
}

#[test]
fn what_is_for_calls_is_refused_and_damage_is_seen() {
    let place = Scratch::new("references-refused");
    make(&place.path("a.rfn"), 2, PLACES);
    for words in ["stats a.rfn --waits", "dump a.rfn --only MPI_Send", "loops a.rfn --events"] {
        place.refrain(words).check(2, "is for MPI calls, and a.rfn has none");
    }
    for words in ["diff a.rfn a.rfn", "proxy a.rfn -o a.c"] {
        place.refrain(words).check(2, "is a trace of memory references, not of MPI calls");
    }
    let whole = place.read("a.rfn");
    for at in [60, whole.len() / 2, whole.len() - 60] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        place.file("b.rfn", bytes);
        let said = place.refrain("verify b.rfn");
        assert!(matches!(said.code, Some(1 | 2)), "byte {at}: {} {}", said.out, said.err);
    }
    place.file("c.rfn", &whole[..whole.len() / 2]);
    assert_eq!(place.refrain("verify c.rfn").code, Some(1));
}

const CALLS: &[u8] = include_bytes!("../../views/tests/seeds/threads.rfn");

#[test]
fn calls_and_references_in_one_file() {
    let place = Scratch::new("references-both");
    place.file("calls.rfn", CALLS);
    make_both(CALLS, &place.path("both.rfn"), 0);
    let said = |words: &str| place.refrain(words).check(0, "").out.clone();
    // Calls are read as before.
    for command in ["dump", "stats", "loops --folded"] {
        assert_eq!(said(&format!("{command} both.rfn")), said(&format!("{command} calls.rfn")), "{command}");
    }
    assert!(said("diff both.rfn calls.rfn").starts_with("equal"));
    assert!(said("info both.rfn").contains(": `--references` with dump, loops, stats"));
    let answer = said("verify both.rfn");
    let calls = said("dump calls.rfn").lines().count();
    assert!(answer.starts_with("yes: ") && answer.contains("\nyes: "), "{answer}");
    let kept = format!("{} references of 10 threads between {calls} calls are", calls + 10);
    assert!(answer.replace(',', "").contains(&kept), "{answer}");
    // Each call stands behind the reference before it.
    let (mut before, mut shown) = (None, 0);
    for line in said("dump both.rfn --references").lines() {
        let (_, rest) = line.split_once("] ").unwrap();
        match rest.strip_prefix("call ") {
            Some(call) => {
                let number: u64 = call.split([' ', '.']).nth(1).unwrap().parse().unwrap();
                assert_eq!(before, Some(8 * number), "{line}");
                shown += 1;
            }
            None => {
                let address = rest.split_whitespace().nth(3).unwrap().trim_start_matches("0x");
                before = Some(u64::from_str_radix(address, 16).unwrap());
            }
        }
    }
    assert_eq!(shown, calls);
    let some = said("dump both.rfn --references --rank 1 --thread 2 --calls 1..2");
    let lines: Vec<&str> = some.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("[1.2] call 1.0  MPI_"), "{some}");
    assert_eq!(lines[1], "[1.2] 1  load    8  0x8  0x1000");
    let loops = said("loops both.rfn --references --all");
    assert!(loops.contains("loop 13 times\n    load 8  varies: 0x0..0x60"), "{loops}");
    assert!(said("stats both.rfn --references").contains("references"));
    said("convert both.rfn --rank 0 --thread 0 --drop sizes,pcs a.din");
    assert!(String::from_utf8(place.read("a.din")).unwrap().starts_with("0 0\n0 8\n0 10\n"));
    said("simulate both.rfn --rank 0 --l1d 1K,2,64");
    place.refrain("dump calls.rfn --references").check(2, "has no memory references");
}

#[test]
fn a_mark_that_is_missing_is_noticed() {
    let place = Scratch::new("references-marks");
    make_both(CALLS, &place.path("both.rfn"), 1);
    let said = place.refrain("verify both.rfn").check(1, "").out.clone();
    assert!(said.contains("but its references say that there were"), "{said}");
}
