//! The ids that trace files contain. The golden files are only ever appended to: a changed line is a broken trace.

use refrain_model::{constant_by_id, constants, function_by_id, functions};

/// `rows` must be the golden file, line by line.
fn check(file: &str, golden: &str, mut rows: Vec<(u16, &'static str)>) {
    rows.sort_unstable();
    let mut golden = golden.lines();
    for (id, name) in rows {
        let row = format!("{id} {name}");
        match golden.next() {
            Some(line) => {
                assert_eq!(row, line, "an id in {file} changed, vanished, or was not the next free one")
            }
            None => panic!("append this line to tests/golden/{file}: {row}"),
        }
    }
    assert_eq!(golden.next(), None, "{file}: this one is gone from the table");
}

#[test]
fn functions_keep_their_ids() {
    let rows = functions().iter().map(|f| (f.id, f.name)).collect();
    check("functions.txt", include_str!("golden/functions.txt"), rows);
}

#[test]
fn constants_keep_their_ids() {
    let rows = constants().iter().map(|c| (c.id, c.name)).collect();
    check("constants.txt", include_str!("golden/constants.txt"), rows);
}

#[test]
fn ids_lead_back() {
    for f in functions() {
        assert_eq!(function_by_id(f.id), Some(f));
    }
    for c in constants() {
        assert_eq!(constant_by_id(c.id), Some(c));
    }
    for hole in [0, 60_000, u16::MAX] {
        assert_eq!(function_by_id(hole), None);
        assert_eq!(constant_by_id(hole), None);
    }
}
