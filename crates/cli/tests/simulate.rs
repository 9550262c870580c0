//! `refrain simulate`: each option against numbers that are worked out by hand, or against runs without it.

mod common;

use common::Scratch;
use serde_json::Value;

/// Of what `simulate --json` says.
fn json(place: &Scratch, options: &str) -> Value {
    let said = place.refrain(&format!("simulate {options} --json"));
    serde_json::from_str(&said.check(0, "").out).unwrap()
}

/// Reads, writes and fetches that meet again, in no simple order.
fn mixed(count: u64) -> String {
    (0..count).map(|n| format!("{} {:x}\n", n % 3, n * n % 1021 * 48 + n % 7 * 4096)).collect()
}

#[test]
fn windows_and_intervals() {
    let place = Scratch::new("windows");
    // One line of 64 after the other, and then again: 0 40 80 c0, 0 40 80 c0.
    place.file("a.din", (0..8).map(|n| format!("0 {:x}\n", n % 4 * 64)).collect::<String>());
    let misses = |options: &str| {
        let said = json(&place, &format!("a.din --l1d 1K,2,64 {options}"));
        (said["references"].as_u64().unwrap(), said["caches"][0]["read"]["misses"].as_u64().unwrap())
    };
    // The first four miss. Without the first two, the last two are the first to their lines.
    assert_eq!(misses(""), (8, 4));
    assert_eq!(misses("--skip 2"), (6, 4));
    assert_eq!(misses("--skip 6"), (2, 2));
    assert_eq!(misses("--limit 3"), (3, 3));
    assert_eq!(misses("--skip 2 --limit 3"), (3, 3));
    // Warm caches have the lines: after two, the next two miss, then none.
    assert_eq!(misses("--warmup 2"), (6, 2));
    assert_eq!(misses("--warmup 4"), (4, 0));
    assert_eq!(misses("--skip 1 --warmup 3 --limit 2"), (2, 1));
    assert_eq!(misses("--warmup 9"), (0, 0));
    // Three, three and two references: 3, 1 and 0 misses.
    let said = json(&place, "a.din --l1d 1K,2,64 --interval 3");
    let intervals = said["intervals"].as_array().unwrap();
    let row = |interval: &Value| {
        let cache = &interval["caches"][0];
        assert_eq!(cache["name"], "l1d");
        [
            &interval["from"],
            &interval["references"],
            &cache["read"]["misses"],
            &interval["memory"]["lines_read"],
        ]
        .map(|n| n.as_u64().unwrap())
    };
    assert_eq!(intervals.iter().map(row).collect::<Vec<_>>(), [[0, 3, 3, 3], [3, 3, 1, 1], [6, 2, 0, 0]]);
    let table = place.refrain("simulate a.din --l1d 1K,2,64 --interval 3").check(0, "").out.clone();
    let (_, rows) = table.split_once("misses and miss ratio over time\n").unwrap();
    let rows: Vec<Vec<&str>> = rows.lines().skip(1).map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["0", "3", "3", "100.000%", "3"]);
    assert_eq!(rows[1], ["3", "3", "1", "33.333%", "1"]);
    assert_eq!(rows[2], ["6", "2", "0", "0.000%", "0"]);
    for (options, why) in [
        ("--interval 0", "0"),
        ("--curve --interval 3", "cannot be used with"),
        ("--curve --warmup 3", "cannot be used with"),
    ] {
        place.refrain(&format!("simulate a.din {options}")).check(2, why);
    }
    // A curve has windows too: of the last two, both are first uses.
    let said = json(&place, "a.din --curve --skip 6");
    assert_eq!(said["caches"][1]["first_uses"]["read"], 2);
}

/// An index finds the place in `rfa`, other formats are read up to it: the same numbers.
#[test]
fn skipping_is_the_same_in_every_format() {
    let place = Scratch::new("skip-formats");
    place.file("a.din", mixed(30_000));
    place.refrain("convert a.din a.rfa").check(0, "");
    place.refrain("convert a.din a.pdt64.gz").check(0, "");
    let caches = |file: &str| {
        let said = json(&place, &format!("{file} --l1 2K,4,32 --skip 12345 --limit 9999 --interval 4000"));
        [said["caches"].clone(), said["memory"].clone(), said["intervals"].clone()]
    };
    let din = caches("a.din");
    assert_eq!(din, caches("a.rfa"));
    assert_eq!(din, caches("a.pdt64.gz"));
    assert_eq!(din[2].as_array().unwrap().len(), 3);
}

#[test]
fn many_configurations_are_the_single_runs() {
    let place = Scratch::new("configurations");
    place.file("a.din", mixed(20_000));
    let all =
        "a.din --l1i 1K,2,32 --l1d 512..2K,1..4,32 --l1d 1K,full,16,fifo --l2 8K,4,32..64 --interval 7000";
    let said = json(&place, all);
    let found = said["configurations"].as_array().unwrap();
    let mut singles = Vec::new();
    for l1d in [
        "512,1,32",
        "512,2,32",
        "512,4,32",
        "1K,1,32",
        "1K,2,32",
        "1K,4,32",
        "2K,1,32",
        "2K,2,32",
        "2K,4,32",
        "1K,full,16,fifo",
    ] {
        for l2 in ["8K,4,32", "8K,4,64"] {
            singles.push(format!("a.din --l1i 1K,2,32 --l1d {l1d} --l2 {l2} --interval 7000"));
        }
    }
    assert_eq!(found.len(), singles.len());
    let mut different = std::collections::HashSet::new();
    for (many, single) in found.iter().zip(&singles) {
        let one = json(&place, single);
        for key in ["caches", "memory", "intervals"] {
            assert_eq!(many[key], one[key], "{key} of {single}");
        }
        different.insert(one["caches"].to_string());
        assert_eq!([&one["references"], &one["passed_over"]], [&said["references"], &said["passed_over"]]);
    }
    assert_eq!(different.len(), singles.len(), "the configurations differ in their numbers");
    // A row for each, and all in one table.
    let table =
        place.refrain(&format!("simulate {}", all.replace(" --interval 7000", ""))).check(0, "").out.clone();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("1K,2,32 ")).collect();
    assert_eq!(rows.len(), singles.len(), "{table}");
    assert!(rows[0].contains(" 512,1,32 ") && rows[19].contains("1K,full,16,fifo"), "{table}");
    // One after all.
    assert!(json(&place, "a.din --l1d 1K..1K,2,32")["configurations"].is_null());
    for (options, why) in [
        ("--l1d 1K..1M,1..1024,16..64 --l2 1M..1G,1..1024,64", "more than 4096 configurations"),
        ("--l1d 256M..4G,1..16,16", "lines in all"),
        ("--l1 1K,1,32 --l1d 1K,1,32", "cannot be used with"),
        ("--l1d 1K,1,32..64 --l2 4K,1,32", "level 2 are smaller"),
    ] {
        assert_eq!(place.refrain(&format!("simulate a.din {options}")).check(2, why).out, "");
    }
}
