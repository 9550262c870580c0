//! `refrain simulate`: each option against numbers that are worked out by hand, or against runs without it.

use crate::common;
use crate::recorded;

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

#[test]
fn classes_of_misses() {
    let place = Scratch::new("classes");
    // Two sets of one way: 0 and 20 want one place, and a full cache of two lines would keep both. Then 40 and 60 take it.
    place.file("a.din", "0 0\n0 20\n0 0\n0 20\n0 40\n0 60\n0 0\n");
    let said = json(&place, "a.din --l1d 32,1,16 --classes");
    assert_eq!(said["caches"][0]["read"]["misses"], 7);
    let classes = &said["caches"][0]["classes"];
    assert_eq!(classes.to_string(), r#"{"capacity":1,"compulsory":4,"conflict":2}"#);
    let table = place.refrain("simulate a.din --l1d 32,1,16 --classes").check(0, "").out.clone();
    let row: Vec<&str> =
        table.lines().rfind(|line| line.starts_with("l1d ")).unwrap().split_whitespace().collect();
    assert_eq!(row, ["l1d", "4", "1", "2"], "{table}");
    assert!(json(&place, "a.din --l1d 32,1,16")["caches"][0]["classes"].is_null());
    // In one table with others: with two ways there is no conflict.
    let table = place.refrain("simulate a.din --l1d 32,1..2,16 --classes").check(0, "").out.clone();
    let rows: Vec<Vec<&str>> = table.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["32,1,16", "7", "7", "100.000%", "4", "1", "2", "7", "0"], "{table}");
    assert_eq!(rows[2], ["32,full,16", "7", "5", "71.429%", "4", "1", "0", "5", "0"], "{table}");
    place.refrain("simulate a.din --curve --classes").check(2, "cannot be used with");
}

#[test]
fn misses_by_instruction_and_region() {
    let place = Scratch::new("whose");
    // Fetches say which instruction it is. 1000 and 1040 are new; then 1000 is there, and 2000 is not.
    place.file("a.lackey", "I  10,4\n L 1000,8\n L 1040,8\nI  14,4\n L 1000,8\n S 2000,8\n");
    let said = json(&place, "a.lackey --l1d 1K,2,64 --by pc");
    let rows = said["misses_by"].as_array().unwrap();
    let row = |row: &Value| {
        let of = |counts: &Value| ["read", "write", "fetch"].map(|kind| counts[kind].as_u64().unwrap());
        assert_eq!(row["misses"].as_array().unwrap().len(), 1);
        (row["name"].as_str().unwrap().to_owned(), of(&row["references"]), of(&row["misses"][0]))
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    assert_eq!(rows, [("0x10".into(), [2, 0, 1], [2, 0, 0]), ("0x14".into(), [1, 1, 1], [0, 1, 0])]);
    let regions = "--by region --region a=0x1000..0x1040 --region b=0x2000..0x2040";
    let said = json(&place, &format!("a.lackey --l1d 1K,2,64 {regions}"));
    let rows: Vec<_> = said["misses_by"].as_array().unwrap().iter().map(row).collect();
    // 1040 is in none, and so are the fetches.
    assert_eq!(
        rows,
        [
            ("elsewhere".into(), [1, 0, 2], [1, 0, 0]),
            ("a".into(), [2, 0, 0], [1, 0, 0]),
            ("b".into(), [0, 1, 0], [0, 1, 0])
        ]
    );
    for (options, why) in [
        ("--by line", "--program ./app@0x108000"),
        ("--by region", "no region"),
        ("--by pc --region a=0..1", "--by region"),
        ("--program a.lackey", "are for --by"),
        ("--by line --program a.lackey", "is no program"),
        ("--by line --program missing", "cannot be read"),
    ] {
        assert_eq!(
            place.refrain(&format!("simulate a.lackey --l1d 1K,2,64 {options}")).check(2, why).out,
            ""
        );
    }
}

/// Names come from the program: here from that of the command itself.
#[test]
fn misses_by_function() {
    use object::{Object, ObjectSymbol};
    let place = Scratch::new("whose-function");
    let program = env!("CARGO_BIN_EXE_refrain");
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&bytes[..]).unwrap();
    let main = file.symbols().find(|symbol| symbol.name() == Ok("main")).unwrap().address();
    place.file("a.lackey", format!("I  {:x},4\n L 1000,8\n L 2000,8\n", 0x10_8000 + main));
    let said = json(&place, &format!("a.lackey --l1d 1K,2,64 --by function --program {program}@0x108000"));
    // Beyond the program nothing is named.
    place.file("b.lackey", "I  ffffff0000,4\n L 1000,8\n");
    let beyond = json(&place, &format!("b.lackey --l1d 1K,2,64 --by function --program {program}@0x108000"));
    assert_eq!(beyond["misses_by"][0]["name"], "?");
    let row = &said["misses_by"][0];
    assert_eq!((&row["name"], &row["misses"][0]["read"]), (&"main".into(), &2.into()), "{said}");
}

/// A loop whose lines miss differently: the source stands beside the misses.
#[test]
fn misses_by_line_with_the_source_beside_them() {
    let place = Scratch::new("whose-line");
    place.file(
        "kernel.c",
        "long sum(long *a, long *b) {\n    long sum = *a;\n    sum += *b;\n    return sum;\n}\n",
    );
    let compiler = std::process::Command::new("cc")
        .args(["-O0", "-g", "-c", "kernel.c", "-o", "kernel.o"])
        .current_dir(&place.0)
        .status();
    if !compiler.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no C compiler");
        return;
    }
    // The code is at 0 in an object file. All of it is fetched, byte by byte, and each byte reads a line of its own.
    let fetches: String = (0..60).map(|pc| format!("I  {pc:x},1\n L {:x},8\n", 0x10000 + 64 * pc)).collect();
    place.file("a.lackey", fetches);
    let said = json(&place, "a.lackey --l1d 8K,2,64 --by line --program kernel.o");
    let rows = said["misses_by"].as_array().unwrap();
    let lines: Vec<u64> = rows.iter().filter_map(|row| row["line"].as_u64()).collect();
    assert!([2, 3, 4].iter().all(|line| lines.contains(line)), "{said}");
    let misses: u64 = rows.iter().map(|row| row["misses"][0]["read"].as_u64().unwrap()).sum();
    assert_eq!(misses, 60);
    let table = place
        .refrain("simulate a.lackey --l1d 8K,2,64 --by line --program kernel.o")
        .check(0, "")
        .out
        .clone();
    assert!(table.contains("\nkernel.c:3 sum: sum += *b;  "), "{table}");
}

/// Words of a cache come to it: each against numbers of the worked examples of the library.
#[test]
fn words_of_caches() {
    let place = Scratch::new("words");
    place.file("a.din", "0 0\n0 10\n0 20\n0 30\n0 40\n0 50\n");
    let first = |options: &str| json(&place, &format!("a.din {options}"))["caches"][0].clone();
    let number = |cache: &Value, keys: &[&str]| {
        keys.iter().fold(cache.clone(), |value, key| value[key].clone()).as_u64().unwrap()
    };
    let plain = first("--l1d 256,16,16");
    assert_eq!((number(&plain, &["read", "misses"]), number(&plain, &["bytes_in"])), (6, 96));
    // Every second of six lines in a row is prefetched after the miss of the one before; tagged, all but the first.
    let miss = first("--l1d 256,16,16,prefetch-miss");
    assert_eq!((number(&miss, &["read", "misses"]), number(&miss, &["prefetches", "used"])), (3, 3));
    let tagged = first("--l1d 256,16,16,prefetch-tagged");
    assert_eq!((number(&tagged, &["read", "misses"]), number(&tagged, &["prefetches", "lines"])), (1, 6));
    let sectors = first("--l1d 256,4,64,sector=16");
    assert_eq!((number(&sectors, &["read", "misses"]), number(&sectors, &["bytes_in"])), (6, 96));
    assert_eq!(number(&first("--l1d 256,4,64"), &["bytes_in"]), 128);
    // Lines that want one place, of two sets of one way: each is among the victims when it is asked for again.
    place.file("b.din", "0 0\n0 20\n0 0\n0 20\n");
    let kept = json(&place, "b.din --l1d 32,1,16,victims=1");
    assert_eq!(
        (number(&kept["caches"][0], &["victim_hits"]), number(&kept["memory"], &["lines_read"])),
        (2, 2)
    );
    // One line above and two below are three, if they are not the same.
    place.file("c.din", "0 0\n0 10\n0 20\n0 0\n0 10\n0 20\n");
    let read = |options: &str| number(&json(&place, &format!("c.din {options}"))["memory"], &["lines_read"]);
    assert_eq!(read("--l1d 16,1,16 --l2 32,2,16,exclusive"), 3);
    assert_eq!(read("--l1d 16,1,16 --l2 32,2,16"), 6);
    place.file("d.din", "1 0\n0 0\n");
    let read = |options: &str| number(&json(&place, &format!("d.din {options}"))["memory"], &["bytes_read"]);
    assert_eq!(
        (read("--l1d 32,1,16"), read("--l1d 32,1,16 --allocate no-fetch"), read("--l1d 32,1,16,no-fetch")),
        (16, 0, 0)
    );
    let table = place.refrain("simulate a.din --l1d 256,16,16,prefetch-miss,plru").check(0, "").out.clone();
    assert!(table.contains("l1d: prefetch-miss: 3 lines fetched, 3 then used, 0 left unused"), "{table}");
    for (options, why) in [
        ("--l1d 768,3,16,plru", "power of two of ways"),
        ("--l1d 1K,2,64,inclusive", "no level is above it"),
        ("--l1d 1K,2,64,sector=128", "sector"),
        ("--l1d 1K,2,64 --l2 4K,2,128,exclusive", "level 2 is exclusive"),
        ("--l1d 1K,2,64 --l4 4K,2,64", "a level 4 and no level 2"),
        ("--l1d 1K,2,64 --l2 4K,2,64 --l2d 4K,2,64", "cannot be used with"),
        ("--l1d 1K,2,64 --l2i 4K,2,64", "no reference can come to"),
        ("--l1 1K,2,64 --l2d 4K,2,64 --l2i 4K,2,64", "behind a level that has one for both"),
    ] {
        assert_eq!(place.refrain(&format!("simulate a.din {options}")).check(2, why).out, "", "{options}");
    }
}

#[test]
fn five_levels_and_split_ones() {
    let place = Scratch::new("levels");
    place.file("a.din", mixed(5000));
    let levels =
        "--l1i 256,1,16 --l1d 256,1,16 --l2i 512,2,16 --l2d 512,2,16 --l3 2K,2,32 --l4 4K,4,32 --l5 16K,4,64";
    let said = json(&place, &format!("a.din {levels}"));
    let caches = said["caches"].as_array().unwrap();
    let names: Vec<&str> = caches.iter().map(|cache| cache["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["l1i", "l1d", "l2i", "l2d", "l3", "l4", "l5"]);
    // What one level lacks, the next is asked for.
    for (above, below) in [(0, 2), (2, 4)] {
        assert_eq!(caches[above]["fetch"]["misses"], caches[below]["fetch"]["accesses"]);
    }
    assert_eq!(caches[1]["read"]["misses"], caches[3]["read"]["accesses"]);
    assert_eq!(caches[5]["read"]["misses"], caches[6]["read"]["accesses"]);
    assert!(caches[2]["read"].is_null() && caches[3]["fetch"].is_null());
}

#[test]
fn look_ups_of_pages() {
    let place = Scratch::new("tlbs");
    // Pages 0, 1, 0, 2 and 1 of 4K, and a fetch: with two entries all but the third miss, and the second level has 1 then.
    place.file("a.din", "0 0\n1 1000\n0 800\n0 2000\n0 1004\n2 5000\n");
    let said = json(&place, "a.din --l1 1K,2,64 --dtlb 2,full,4K --l2tlb 8,4,4K");
    let of = |at: usize| {
        let tlb = &said["tlbs"][at];
        let of = |key: &str| ["read", "write", "fetch"].map(|kind| tlb[key][kind].as_u64().unwrap());
        (tlb["name"].as_str().unwrap(), of("lookups"), of("misses"))
    };
    assert_eq!(of(0), ("dtlb", [4, 1, 0], [3, 1, 0]));
    assert_eq!(of(1), ("l2tlb", [3, 1, 0], [2, 1, 0]));
    // The caches are as without.
    assert_eq!(said["caches"], json(&place, "a.din --l1 1K,2,64")["caches"]);
    // Warm, the last two are 2 (page 1) and a fetch.
    let warm = json(&place, "a.din --l1 1K,2,64 --dtlb 4,full,4K --itlb 4,full,4K --warmup 4");
    assert_eq!(
        (&warm["tlbs"][0]["misses"]["fetch"], &warm["tlbs"][1]["misses"]["read"]),
        (&1.into(), &0.into())
    );
    let table = place.refrain("simulate a.din --l1 1K,2,64 --dtlb 2,full,4K").check(0, "").out.clone();
    assert!(table.contains("dtlb: 2 entries, 2 ways, pages of 4K         5       4     80.000%"), "{table}");
    // Two at a time: reads and writes looked up and missed, at both levels. Warm, what came first is in no row.
    let rows = |options: &str| {
        let options = format!("a.din --l1 1K,2,64 --dtlb 2,full,4K --l2tlb 8,4,4K --interval 2 {options}");
        let said = json(&place, &options);
        let of = |tlb: &Value, name: &str| {
            assert_eq!(tlb["name"], name);
            [("lookups", "read"), ("lookups", "write"), ("misses", "read"), ("misses", "write")]
                .map(|(key, kind)| tlb[key][kind].as_u64().unwrap())
        };
        let row = |row: &Value| [of(&row["tlbs"][0], "dtlb"), of(&row["tlbs"][1], "l2tlb")];
        said["intervals"].as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    let all = [[[1, 1, 1, 1], [1, 1, 1, 1]], [[2, 0, 1, 0], [1, 0, 1, 0]], [[1, 0, 1, 0], [1, 0, 0, 0]]];
    assert_eq!(rows(""), all);
    assert_eq!(rows("--warmup 2"), all[1..]);
    let table =
        place.refrain("simulate a.din --l1 1K,2,64 --dtlb 2,full,4K --interval 2").check(0, "").out.clone();
    let (_, table) = table.split_once("misses and miss ratio over time\n").unwrap();
    let table: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(table[0], ["from", "references", "l1", "memory", "lines", "read", "dtlb"]);
    assert_eq!(table[2], ["2", "2", "2", "100.000%", "2", "1", "50.000%"]);
    for (options, why) in [
        ("--l2tlb 8,4,4K", "there is neither"),
        ("--dtlb 8,4", "ENTRIES,WAYS,PAGE"),
        ("--dtlb 8,3,4K", "power of two"),
    ] {
        assert_eq!(place.refrain(&format!("simulate a.din --l1 1K,2,64 {options}")).check(2, why).out, "");
    }
    place.refrain("simulate a.din --curve --dtlb 8,4,4K").check(2, "cannot be used with");
}

/// Lines of drmemtrace's text: thread, read or write, address; of 8 bytes each.
fn view(references: &[(u32, &str, u64)]) -> String {
    let line = |(n, (thread, what, address)): (usize, &(u32, &str, u64))| {
        format!(
            "{:>12} {n:>11}: {thread:>11} {what:<12} 8 byte(s) @ {address:#018x} by PC 0x0000000000401000\n",
            n + 1
        )
    };
    references.iter().enumerate().map(line).collect()
}

/// Two threads write neighbouring words in turn, one of them also reads what the other wrote.
#[test]
fn threads_of_drmemtrace_share_lines() {
    let place = Scratch::new("coherence");
    let (a, b) = (0x1000, 0x1008);
    let shared = [(7, "write", a), (9, "write", b), (7, "write", a), (9, "write", b), (7, "read", b)];
    place.file("a.drmemtrace", view(&shared));
    let said = json(&place, "a.drmemtrace --l1d 1K,2,64 --l2 4K,4,64 --cores 2 --coherence mesi");
    let numbers = |value: &Value, keys: &[&str]| -> Vec<u64> {
        keys.iter().map(|key| value[key].as_u64().unwrap()).collect()
    };
    let keys = ["true_sharing", "false_sharing", "invalidations_sent", "transfers_in", "write_backs"];
    // 7 loses the line twice and gets it back, once for its own word and once for the other's; 9 loses it once.
    assert_eq!(said["coherence"]["protocol"], "mesi");
    assert_eq!(said["threads"].to_string(), r#"{"order":"trace"}"#);
    assert_eq!(numbers(&said["coherence"], &keys), [1, 2, 3, 4, 1]);
    assert_eq!(numbers(&said["cores"][0]["coherence"], &keys), [1, 1, 1, 2, 0]);
    assert_eq!(numbers(&said["cores"][1]["coherence"], &keys), [0, 1, 2, 2, 1]);
    assert_eq!(said["cores"][0]["caches"][0]["read"].to_string(), r#"{"accesses":1,"misses":1}"#);
    assert_eq!(said["memory"]["lines_read"], 1);
    // MOESI keeps what is dirty; without a protocol both have the line for good; on one core there is nobody else.
    let owned = json(&place, "a.drmemtrace --l1d 1K,2,64 --l2 4K,4,64 --cores 2 --coherence moesi");
    assert_eq!(numbers(&owned["coherence"], &keys), [1, 2, 3, 4, 0]);
    let deaf = json(&place, "a.drmemtrace --l1d 1K,2,64 --l2 4K,4,64 --cores 2 --coherence none");
    assert_eq!(deaf["caches"][0]["write"]["misses"], 2);
    assert!(deaf["coherence"].is_null() && deaf["cores"][1]["coherence"].is_null());
    let alone = json(&place, "a.drmemtrace --l1d 1K,2,64");
    assert!(alone["cores"].is_null());
    assert_eq!(alone["caches"][0]["write"]["misses"], 1);
    let classes = |cache: usize| {
        let said =
            json(&place, "a.drmemtrace --l1d 1K,2,64 --l2 4K,4,64 --cores 2 --coherence mesi --classes");
        said["caches"][cache]["classes"].to_string()
    };
    assert_eq!(classes(0), r#"{"capacity":0,"coherence":3,"compulsory":2,"conflict":0}"#);
    assert_eq!(classes(1), r#"{"capacity":0,"compulsory":1,"conflict":0}"#);
    let table = place
        .refrain("simulate a.drmemtrace --l1d 1K,2,64 --cores 2 --coherence mesi --classes")
        .check(0, "")
        .out
        .clone();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["misses", "compulsory", "capacity", "conflict", "coherence"]), "{table}");
    assert!(rows.contains(&vec!["l1d", "2", "0", "0", "3"]), "{table}");
    // Both on the second core.
    // Thread 9 takes a line, a prefetch brings it back, and another takes its place before it is used.
    let ahead = [(7, "read", 0x40), (9, "write", 0x40), (7, "read", 0), (7, "read", 0xc0), (7, "read", 0x40)];
    place.file("ahead.drmemtrace", view(&ahead));
    let said =
        json(&place, "ahead.drmemtrace --l1d 128,1,64,prefetch-miss --cores 2 --coherence mesi --classes");
    assert_eq!(said["caches"][0]["classes"]["coherence"], 0, "{said}");
    // 9 has 40 and, prefetched, 80 from 7, and gives 40 back.
    assert_eq!(numbers(&said["coherence"], &keys), [0, 0, 1, 3, 1]);
    // What is written back for a reader is a write-back of the cache, too.
    let readers = [(7, "write", 0), (9, "read", 0), (9, "write", 0), (7, "read", 0)];
    place.file("readers.drmemtrace", view(&readers));
    let said = json(&place, "readers.drmemtrace --l1d 1K,2,64 --l2 4K,4,64 --cores 2 --coherence mesi");
    assert_eq!(
        (&said["caches"][0]["write_backs"], &said["coherence"]["write_backs"]),
        (&2.into(), &2.into())
    );
    let pinned = json(&place, "a.drmemtrace --l1d 1K,2,64 --pin 1,1 --coherence mesi");
    assert_eq!(pinned["coherence"]["invalidations_sent"], 0);
    assert_eq!(pinned["cores"][0]["caches"][0]["write"]["accesses"], 0);
    assert_eq!(pinned["cores"][1]["caches"][0]["write"]["accesses"], 4);
    // In rows of time, after a warm-up, and by instruction.
    let said =
        json(&place, "a.drmemtrace --l1d 1K,2,64 --cores 2 --coherence msi --warmup 1 --interval 2 --by pc");
    let rows: Vec<Vec<u64>> =
        said["intervals"].as_array().unwrap().iter().map(|row| numbers(&row["coherence"], &keys)).collect();
    assert_eq!(rows, [[0, 1, 2, 2, 0], [1, 1, 1, 2, 1]]);
    assert_eq!(said["misses_by"][0]["sharing"].to_string(), r#"{"false":2,"true":1}"#);
    let table = place
        .refrain("simulate a.drmemtrace --l1d 1K,2,64 --cores 2 --coherence mesi --by pc")
        .check(0, "")
        .out
        .clone();
    assert!(table.contains("\nthreads on 2 cores, in the order of the trace\n"), "{table}");
    let (_, rows) = table.split_once("coherence: mesi\n").unwrap();
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["core", "0", "3", "1", "1", "2", "2"], "{table}");
    assert_eq!(rows[3], ["all", "5", "1", "2", "4", "4"], "{table}");
    assert_eq!(rows[8], ["all", "0", "0", "3", "3", "1"], "{table}");
    // Of several configurations, and over time.
    let table = place
        .refrain("simulate a.drmemtrace --l1d 1K..2K,2,64 --cores 2 --coherence mesi --interval 5")
        .check(0, "")
        .out
        .clone();
    let ends = |end: &str| {
        table
            .lines()
            .filter(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").ends_with(end))
            .count()
    };
    assert_eq!(ends("invalidations true sharing false sharing"), 3, "{table}");
    assert_eq!(ends("1 0 3 1 2") + ends("1 3 1 2"), 4, "{table}");
    for (options, why) in [
        ("--coherence mesi", "--cores 4"),
        ("--private 1", "for several cores"),
        ("--cores 2 --turn 5", "--turn is for traces of `refrain memory run`"),
        ("--cores 1 --coherence msi", "for 2 to 64 cores"),
        ("--cores 65 --coherence msi", "`--cores 8`"),
        ("--cores 2 --private 3", "not so many levels"),
        ("--cores 2 --coherence dragon", "none, msi, mesi, moesi"),
        ("--cores 2 --pin 0,1", "cannot be used with"),
        ("--pin 0,x", "a list of cores"),
        (
            "--cores 2 --coherence mesi --write through",
            "the last private level, and must be back, not through",
        ),
        ("--cores 2 --coherence mesi --allocate no-fetch", "no-fetch"),
        ("--cores 2 --coherence mesi --allocate off", "must be allocate, not no-allocate"),
        ("--cores 2 --coherence mesi --l2 4K,4,128 --private 2", "those of l1d and l2 differ"),
        (
            "--cores 2 --coherence mesi --l2 4K,4,128 --private 2",
            "`--private 1` shares level 2 and those below it",
        ),
        ("--cores 2 --coherence mesi --l2 4K,4,32 --private 2", "the lines of level 2 are smaller than"),
        ("--cores 2 --coherence mesi --l2 4K,4,64,exclusive", "exclusion behind caches of several cores"),
    ] {
        let said = place.refrain(&format!("simulate a.drmemtrace --l1d 1K,2,64 {options}"));
        assert_eq!(said.check(2, why).out, "", "{options}");
    }
    // No number of private levels would help here.
    let said = place.refrain("simulate a.drmemtrace --l1d 1K,2,64 --l1i 1K,2,32 --cores 2 --coherence mesi");
    assert!(!said.check(2, "those of l1d and l1i differ").err.contains("--private"));
    place.refrain("simulate a.drmemtrace --curve --coherence mesi").check(2, "cannot be used with");
    place.file("a.din", "0 0\n");
    place.refrain("simulate a.din --l1d 1K,2,64 --cores 2").check(2, "it is read as din");
    place.refrain("simulate a.din --l1d 1K,2,64 --coherence mesi").check(2, "for several cores");
    assert!(json(&place, "a.din --l1d 1K,2,64 --coherence none")["threads"].is_null());
    place.refrain("simulate missing.rfn --l1d 1K,2,64 --coherence mesi").check(2, "missing.rfn");
}

/// A recorded trace takes turns; the same order in text comes to the same, whatever the turn.
#[test]
fn turns_of_recorded_threads() {
    use refrain_references::Access;
    let place = Scratch::new("turns");
    recorded::make(&place.path("a.rfn"), 3, 0);
    let all: Vec<Vec<(&str, u64, u32)>> = (0..3)
        .map(|thread| {
            let own = recorded::references(thread, 0);
            own.into_iter()
                .flat_map(|(_, access, size, address)| {
                    let whats: &[&str] = match access {
                        Access::Load => &["read"],
                        Access::Store => &["write"],
                        _ => &["read", "write"],
                    };
                    whats.iter().map(move |what| (*what, address, size))
                })
                .collect()
        })
        .collect();
    for (option, turn) in [("", 1), ("--turn 7", 7)] {
        let mut text = String::new();
        for from in (0..all[0].len()).step_by(turn) {
            for (thread, own) in all.iter().enumerate() {
                for (what, address, size) in &own[from..own.len().min(from + turn)] {
                    text.push_str(&format!("1: {thread} {what} {size} byte(s) @ {address:#x} by PC 0x10\n"));
                }
            }
        }
        place.file("a.drmemtrace", text);
        let levels = "--l1d 512,2,64 --l2 1K,4,64 --l3 8K,4,64 --coherence moesi --private 1";
        let [turns, text] = [
            json(&place, &format!("a.rfn {levels} {option}")),
            json(&place, &format!("a.drmemtrace {levels} --cores 3")),
        ];
        for key in ["caches", "memory", "coherence", "cores", "references"] {
            assert_eq!(turns[key], text[key], "{key}, turns of {turn}");
        }
        let of = |key: &str| turns["coherence"][key].as_u64().unwrap();
        assert!(of("true_sharing") > 10 && of("false_sharing") > 10, "{turns}");
    }
    let turns = json(&place, "a.rfn --l1d 512,2,64 --coherence mesi")["threads"].to_string();
    assert_eq!(turns, r#"{"count":3,"order":"turns","turn":1}"#);
    // Without coherence a turn is longer, as before.
    let same = |options: &str| {
        json(&place, &format!("a.rfn --l1d 512,2,64 --l2 4K,4,64 {options}"))["caches"].clone()
    };
    assert_eq!(same(""), same("--turn 1000"));
    assert_ne!(same(""), same("--turn 1"));
    let table = place.refrain("simulate a.rfn --l1d 512,2,64 --cores 2").check(0, "").out.clone();
    assert!(table.contains("\n3 threads on 2 cores, in turns of 1,000 references\n"), "{table}");
    assert!(table.contains("\ncore 1  ") && !table.contains("coherence"), "{table}");
    // One thread is on one core, and has no turns.
    place
        .refrain("simulate a.rfn --thread 1 --l1d 512,2,64 --turn 5")
        .check(2, "--turn is for several threads");
    place.refrain("simulate a.rfn --thread 1 --l1d 512,2,64 --coherence mesi").check(2, "simulated on one");
}

/// DineroIV's labels: of text with sizes or without, at every level.
#[test]
fn copy_backs_and_invalidations() {
    let place = Scratch::new("commands");
    // 0 is written and copied back, written again and invalidated; then it is missing again.
    place.file("a.din", "1 0\n4 8\n1 0\n5 0\n0 0\n3 0\n");
    let said = json(&place, "--from dinero a.din --l1 1K,2,64 --l2 4K,4,64");
    let numbers =
        |cache: usize| ["copied_back", "dropped"].map(|key| said["caches"][cache][key].as_u64().unwrap());
    assert_eq!((numbers(0), numbers(1)), ([1, 1], [1, 1]));
    assert_eq!(
        said["memory"].to_string(),
        r#"{"bytes_read":128,"bytes_written":64,"lines_read":2,"writes":1}"#
    );
    assert_eq!((&said["references"], said["passed_over"].to_string()), (&6.into(), r#"{"escape":1}"#.into()));
    place.file("a.xdin", "w 0 4\nw 40 4\nc 0 0\nv 0 0\nr 0 4\nr 40 4\n");
    let said = json(&place, "a.xdin --l1 1K,2,64");
    assert_eq!((&said["caches"][0]["copied_back"], &said["caches"][0]["dropped"]), (&2.into(), &2.into()));
    assert_eq!(said["caches"][0]["read"]["misses"], 2);
    // They count as references: the third is the copy-back, the fourth the invalidation.
    let dropped = |options: &str| {
        let said = json(&place, &format!("a.xdin --l1 1K,2,64 {options}"));
        ["references", "copied_back", "dropped"].map(|key| match key {
            "references" => said[key].as_u64().unwrap(),
            key => said["caches"][0][key].as_u64().unwrap_or(0),
        })
    };
    assert_eq!(dropped("--limit 3"), [3, 2, 0]);
    assert_eq!(dropped("--limit 4"), [4, 2, 2]);
    assert_eq!(dropped("--skip 3"), [3, 0, 0]);
    assert_eq!(dropped("--warmup 3 --limit 1"), [1, 0, 2]);
    let table = place.refrain("simulate a.xdin --l1 1K,2,64").check(0, "").out.clone();
    assert!(table.contains("l1: the trace had 2 lines copied back, and 2 invalidated\n"), "{table}");
    // As labels of the papers they are the supervisor's. A curve knows no lines that leave.
    assert!(json(&place, "--from din a.din --l1 1K,2,64")["caches"][0]["dropped"].is_null());
    assert_eq!(json(&place, "--from dinero a.din --curve")["passed_over"]["other"], 2);
}
