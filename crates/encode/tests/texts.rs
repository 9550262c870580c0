//! Strings that are others in every call: in lanes, and lost nowhere.

use crate::common;

use std::collections::HashSet;
use std::ffi::CString;

use common::{World, handle, show, world};
use refrain_encode::{Calls, Folding, Tape};
use refrain_model::Value;

/// The symbol of `MPI_Info_set` with this value, after it was read back.
#[track_caller]
fn set(w: &mut World, value: &[u8]) -> Vec<u8> {
    let text = CString::new(value).unwrap();
    let args = [handle("MPI_INFO_ENV"), c"key".as_ptr() as usize, text.as_ptr() as usize];
    let call = w.call("MPI_Info_set", &args, 0, || {});
    assert_eq!(call.args[2], Value::Text(String::from_utf8_lossy(value).into_owned()));
    w.record.symbol.clone()
}

fn symbols(texts: impl IntoIterator<Item = String>) -> usize {
    let mut w = world();
    let symbols: HashSet<Vec<u8>> = texts.into_iter().map(|text| set(&mut w, text.as_bytes())).collect();
    symbols.len()
}

/// Words without a pattern.
fn word(i: u64) -> String {
    let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:016x}", mixed ^ mixed >> 29)
}

#[test]
fn new_strings_are_few_symbols() {
    assert!(symbols((0..100_000).map(|i| format!("checkpoint.{i:07}"))) < 100);
    assert!(symbols((0..100_000).map(|i| format!("step {i}"))) < 100);
    assert!(symbols((0..100_000).map(word)) < 2100);
}

#[test]
fn a_few_strings_are_symbols_each() {
    assert_eq!(symbols((0..10_000).map(|i| format!("file {}", i % 50))), 50);
    assert_eq!(symbols((0..2000).map(word)), 2000);
}

#[test]
fn strings_that_come_again_become_symbols() {
    let mut w = world();
    let names: Vec<String> = (0..500).map(|i| format!("variable {i:04}")).collect();
    let mut last: HashSet<Vec<u8>> = HashSet::new();
    for round in 0..200 {
        let symbols: HashSet<Vec<u8>> = names.iter().map(|name| set(&mut w, name.as_bytes())).collect();
        if round == 199 {
            last = symbols;
        }
    }
    assert_eq!(last.len(), 500);
}

#[test]
fn any_bytes_and_lengths_come_back() {
    let mut w = world();
    (0..100).for_each(|i| drop(set(&mut w, format!("a name {i:04}").as_bytes())));
    for length in [0usize, 1, 15, 16, 17, 37, 255, 256, 1023, 1024, 1025, 5000] {
        let bytes: Vec<u8> = (0..length).map(|i| (i * 37 % 255 + 1) as u8).collect();
        set(&mut w, &bytes);
    }
    // Too long for lanes: a symbol, whatever came before.
    let long = "x".repeat(1025);
    assert!(set(&mut w, long.as_bytes()).len() > 1025);
    w.split = false;
    set(&mut w, b"a name that is inline");
}

/// Through both folders, and back.
#[test]
fn folded_and_read_back() {
    for folding in ["grammar", "loops", "loops,exact"] {
        let mut w = world();
        let mut tape = Tape::new(folding.parse::<Folding>().unwrap());
        let mut expected = Vec::new();
        for i in 0..3000u64 {
            let text = if i % 7 == 3 { word(i) } else { format!("/scratch/out.{i:05}.h5") };
            let text = CString::new(text).unwrap();
            let args = [handle("MPI_INFO_ENV"), c"filename".as_ptr() as usize, text.as_ptr() as usize];
            let call = w.call("MPI_Info_set", &args, 0, || {});
            expected.push(show(&call));
            tape.push(&w.record, 1);
        }
        let bundle = Tape::bundle((0, 1), [(0, &mut tape)], |ticks| ticks).unwrap();
        let read = Calls::new(&bundle, 0, 0).unwrap().map(|call| show(&call.unwrap()));
        assert_eq!(read.collect::<Vec<_>>(), expected, "{folding}");
    }
}
