//! `refrain convert` and `refrain stats` on address traces, as a user meets them.

use crate::common;

use common::{Done, Scratch};

const DIN: &str = "2 400190\n0 7ffebc64\n2 400194\n2 400198\n1 100039b8\n";
const LACKEY: &str = "==7== Lackey, an example Valgrind tool\nI  0401ab70,3\n M 1fff000758,8\nI  0401ab73,5\n L 1fff000760,4\n";

#[test]
fn there_and_back_through_files_and_pipes() {
    let place = Scratch::new("back");
    place.file("a.din", DIN);
    let all =
        ["a.pdt", "a.pdt.gz", "a.pdt64.zst", "a.raw.xz", "a.rfa", "a.rfa.xz", "a.din.bz2", "a.pdt64.lz4"];
    for packed in all {
        place.refrain(&format!("convert a.din {packed}")).check(0, "");
        let back = place.refrain(&format!("convert {packed} - --to din"));
        assert_eq!(back.check(0, "").out, DIN, "{packed}");
    }
    assert_eq!(place.read("a.pdt.gz")[..2], [0x1f, 0x8b]);
    // Without a name to go by: bytes in, bytes out.
    let packed = place.refrain_with("convert - - --to pdt64.gz", DIN);
    let back = place.refrain_with("convert - - --to din", &packed.check(0, "").bytes);
    assert_eq!(back.check(0, "").out, DIN);
    assert!(!place.names().iter().any(|name| name.contains("part")), "{:?}", place.names());
}

/// Two lines as a file of `compress`, each code a byte.
fn of_compress() -> Vec<u8> {
    let bits =
        "0 10\n1 20\n".bytes().enumerate().fold(0u128, |bits, (i, byte)| bits | u128::from(byte) << (9 * i));
    // Eight codes of nine bits are a group.
    [&[0x1f, 0x9d, 0x90][..], &bits.to_le_bytes()[..12]].concat()
}

#[test]
fn files_of_compress_are_read_and_not_written() {
    let place = Scratch::new("compress");
    // Known by its bytes, whatever its name.
    for name in ["a.din.Z", "a.din", "a"] {
        place.file(name, of_compress());
        let back = place.refrain(&format!("convert {name} - --to din"));
        assert_eq!(back.check(0, "").out, "0 10\n1 20\n", "{name}");
    }
    place.refrain("convert a.din.Z b.din.Z").check(2, "read, not written");
    place.refrain("convert a.din.Z - --to din.Z").check(2, "read, not written");
    place.refrain("convert a.din.Z b.din.lz4 --level 3").check(2, "no level");
    place.refrain("convert a.din.Z b.din.bz2 --level 10").check(2, "1 to 9");
}

#[test]
fn misses_and_samples() {
    let place = Scratch::new("thin");
    // Two lines of 16 bytes: the last read takes the place of the line that was written to.
    place.file("a.din", "0 0\n1 4\n0 8\n2 0\n2 4\n0 10\n0 20\n");
    let left = |options: &str| {
        place.refrain(&format!("convert {options} a.din - --to din")).check(0, "").out.clone()
    };
    assert_eq!(left("--filter 32,full,16"), "0 0\n2 0\n0 10\n0 20\n");
    assert_eq!(left("--filter 32,full,16,write-backs"), "0 0\n2 0\n0 10\n0 20\n1 0\n");
    assert_eq!(left("--filter 32,full,16 --drop fetches --limit 2"), "0 0\n0 10\n");
    assert_eq!(left("--sample 2/3"), "0 0\n1 4\n2 0\n2 4\n0 20\n");
    assert_eq!(left("--sample 1/2 --skip 1"), "1 4\n2 0\n0 10\n");
    assert_eq!(left("--sample 1/2 --filter 32,full,16"), "0 0\n0 20\n");
    // Instructions are known although their fetches are left out.
    let pcs = place.refrain("convert --pcs --drop fetches --filter 32,full,16 a.din - --to raw-pc");
    let pcs: Vec<u8> = pcs.check(0, "").bytes.chunks(17).map(|record| record[9]).collect();
    assert_eq!(pcs, [0, 4, 4]);
    place.refrain("convert --sample times=1/2 a.din b.din").check(2, "needs times");
    place.refrain("convert --sample 3/2 a.din b.din").check(2, "N is 1 to M");
    place.refrain("convert --filter 32K,8 a.din b.din").check(2, "32K,8,64");
    place.file("a.dint", "0 0 64\n0 1 65\n0 2 c8\n0 3 12c\n");
    let some = place.refrain("convert --sample times=1/100 a.dint - --to din-time");
    assert_eq!(some.check(0, "").out, "0 0 64\n0 2 c8\n0 3 12c\n");
}

#[test]
fn labels_with_two_meanings_are_told() {
    let place = Scratch::new("labels");
    place.file("a.din", "0 10 ; text\n4 20\n5 30\n");
    let told = place.refrain("convert a.din a.raw").check(0, "2 references have labels 4 or 5").err.clone();
    assert!(told.contains("`--from dinero`") && told.contains("one line has text"), "{told}");
    assert_eq!(told.matches("labels").count(), 1, "{told}");
    let dinero = place.refrain("convert --from dinero a.din - --to din");
    assert_eq!(dinero.check(0, "one copy-back is kept as kind 7").out, "0 10\n7 20\n7 30\n");
    // Caches do what they say; a curve has none.
    let done =
        place.refrain("simulate --from dinero a.din --l1 1K,2,32").check(0, "one line has text").err.clone();
    assert!(!done.contains("invalidation") && !done.contains("copy-back"), "{done}");
    place.refrain("simulate --from dinero a.din --curve").check(0, "one invalidation");
    place.refrain("convert --from dinero a.din b.dinero").check(2, "DineroIV knows");
    place.file("a.xdin", "r 10 4\nw 1ffe0 10\n");
    let back = place.refrain("convert a.xdin - --to xdin");
    assert_eq!(back.check(0, "").out, "r 10 4\nw 1ffe0 10\n");
    assert_eq!(back.err, "");
    place.refrain("convert a.xdin b.perf --drop sizes").check(2, "perf is read, not written");
}

#[test]
fn what_tools_print() {
    let place = Scratch::new("tools");
    let view = "Output format:\n<--record#-> <--instr#->: <---tid---> <record details>\n-----\n\
                1 0: 7 <marker: version 6>\n2 1: 7 ifetch 4 byte(s) @ 0x401012 90 nop\n\
                3 1: 7 write 8 byte(s) @ 0x402000 by PC 0x401012\n";
    let lackey = place.refrain_with("convert --drop pcs - - --to lackey", view);
    assert_eq!(lackey.check(0, "").out, "I  00401012,4\n S 00402000,8\n");
    let samples = " cpu/mem-loads,ldlat=30/P:   7ffd10  401012 main\n cpu/mem-stores/P:  0 401016\n";
    let din = place.refrain_with("convert --drop pcs - - --to din", samples);
    assert_eq!(din.check(0, "one sample without an address").out, "0 7ffd10\n");
}

#[test]
fn from_the_middle() {
    let place = Scratch::new("middle");
    let lines: Vec<String> = (0..10_000).map(|i| format!("{} {:x}\n", i % 3, i * i)).collect();
    place.file("a.din", lines.concat());
    for name in ["a.rfa", "a.rfa.gz", "a.pdt"] {
        place.refrain(&format!("convert a.din {name}")).check(0, "");
        let some = place.refrain(&format!("convert --skip 7000 --limit 20 {name} - --to din"));
        assert_eq!(some.check(0, "").out, lines[7000..7020].concat(), "{name}");
    }
    // Without its index it is read from the beginning, up to where it is damaged.
    let mut cut = place.read("a.rfa");
    cut.truncate(cut.len() - 1);
    place.file("cut.rfa", cut);
    place.refrain("convert --skip 9999 cut.rfa b.din").check(2, "record 10001 at byte");
    assert_eq!(place.read("b.din"), lines[9999].as_bytes());
}

#[test]
fn nothing_is_lost_unnoticed() {
    let place = Scratch::new("lost");
    place.file("a.lackey", LACKEY);
    place.refrain("convert a.lackey a.pdt64").check(2, "cannot keep the sizes").check(2, "`--drop sizes`");
    place.refrain("convert a.lackey --drop sizes a.pdt64").check(0, "");
    place.refrain("convert a.pdt64 b.lackey").check(2, "needs sizes").check(2, "--fill sizes=0");
    place.refrain("convert a.pdt64 b.lackey --fill sizes=4").check(0, "");
    assert!(String::from_utf8(place.read("b.lackey")).unwrap().contains(" S 1fff000758,4\n"));
    let pcs = place.refrain("convert --drop sizes,fetches --pcs a.lackey - --to raw-pc");
    let pcs: Vec<u64> =
        pcs.check(0, "").bytes.chunks(17).map(|r| u64::from_le_bytes(r[9..].try_into().unwrap())).collect();
    assert_eq!(pcs, [0x401_ab70, 0x401_ab70, 0x401_ab73]);
    place.refrain("convert --drop sizes a.lackey c.pdt").check(2, "record 2 cannot").check(2, "pdt64");
}

#[test]
fn nothing_is_overwritten_without_leave() {
    let place = Scratch::new("overwrite");
    place.file("a.din", DIN);
    place.file("b.pdt", "old");
    place.refrain("convert a.din b.pdt").check(2, "b.pdt exists already").check(2, "--force");
    assert_eq!(place.read("b.pdt"), b"old");
    place.refrain("convert --drop nothing a.din b.pdt --force").check(2, "fetches");
    place.refrain("convert missing.din b.pdt --force").check(2, "missing.din cannot be read");
    assert_eq!(place.read("b.pdt"), b"old");
    place.refrain("convert --force a.din b.pdt").check(0, "");
    assert_ne!(place.read("b.pdt"), b"old");
    // A trace may take its own place.
    place.refrain("convert --force a.din a.din").check(0, "");
    assert_eq!(place.read("a.din"), DIN.as_bytes());
}

#[test]
fn damage_is_said_and_what_stands_before_it_is_kept() {
    let place = Scratch::new("damage");
    place.file("a.din", "0 10\n1 20\n0 xyz\n0 30\n");
    place.refrain("convert a.din a.raw").check(2, "record 3 at byte 10").check(2, "2 references before it");
    assert_eq!(place.read("a.raw").len(), 18);
    place.refrain("stats a.din").check(2, "record 3 at byte 10");
    place.file("b.din", DIN);
    place.refrain("convert b.din b.pdt64.gz").check(0, "");
    let mut cut = place.read("b.pdt64.gz");
    cut.truncate(cut.len() - 9);
    place.file("c.pdt64.gz", cut);
    place.refrain("convert c.pdt64.gz c.din").check(2, "record");
    assert!(DIN.as_bytes().starts_with(&place.read("c.din")));
}

#[test]
fn what_cannot_be_known_is_asked_for() {
    let place = Scratch::new("asked");
    place.file("a.din", "2 400190 8fa40000\n0 7ffebc64 0\n");
    place.refrain("convert a.din b.raw").check(2, "--from din-word");
    place.refrain_with("convert - b.raw", [0; 9]).check(2, "--from");
    place.refrain("convert a.din b.txt").check(2, "--to");
    place.refrain("convert a.din -").check(2, "--to");
    place.refrain("convert --from din-word a.din b.pdt --drop words --step 8").check(2, "no step");
    place.refrain("convert --from din-word a.din b.pdt --drop words --level 9").check(2, "compressed");
    place.refrain("convert --from din-word a.din b.pdi.gz --level 10").check(2, "1 to 9");
    place.refrain("convert --from din-word a.din b.rfa --level 20").check(2, "1 to 19");
    place.refrain("convert --from din-word a.din b.rfa --level 19").check(0, "");
}

#[test]
fn dictionaries_in_two_passes_or_one() {
    let place = Scratch::new("dictionary");
    let dinw = "2 400190 8fa40000\n0 7ffebc64 0\n2 400194 8fa40000\n2 400198 1\n";
    place.file("a.dinw", dinw);
    place.refrain("convert a.dinw a.pdi").check(0, "");
    assert_eq!(place.read("a.pdi")[8..16], [0, 0, 0xa4, 0x8f, 1, 0, 0, 0]);
    assert_eq!(place.refrain("convert a.pdi - --to din-word").out, dinw);
    let refused = place.refrain_with("convert --from din-word - b.pdi", dinw);
    refused.check(2, "first pass").check(2, "--dictionary");
    place.file("words", "8fa40000\n");
    for words in ["words", "a.pdi"] {
        let packed =
            place.refrain_with(&format!("convert --from din-word --dictionary {words} - - --to pdi"), dinw);
        assert_eq!(packed.check(0, "").bytes[8..12], [0, 0, 0xa4, 0x8f]);
        assert_eq!(place.refrain_with("convert - - --to din-word", &packed.bytes).out, dinw);
    }
}

#[test]
fn statistics() {
    let place = Scratch::new("stats");
    place.file("a.din", DIN);
    let table = place.refrain("stats a.din").check(0, "").out.clone();
    assert!(table.starts_with("5 references as din"), "{table}");
    assert!(table.contains("2 fetch"), "{table}");
    // 400190 to 400198 are one line, the others one each, and each in a page of its own.
    let (_, touched) =
        table.split_once("memory touched: different lines of 64 bytes and pages of 4.00 KiB").unwrap();
    let touched: Vec<Vec<&str>> =
        touched.lines().skip(2).take(4).map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(touched[0], ["0", "read", "1", "64", "B", "1", "4.00", "KiB"], "{table}");
    assert_eq!(touched[2], ["2", "fetch", "1", "64", "B", "1", "4.00", "KiB"], "{table}");
    assert_eq!(touched[3], ["all", "3", "192", "B", "3", "12.0", "KiB"], "{table}");
    place.refrain("convert a.din a.pdt.zst").check(0, "");
    let json = place.refrain("stats a.pdt.zst --json --lz").check(0, "").out.clone();
    for part in [
        "\"format\":\"pdt\",\"references\":5,\"step\":4",
        "{\"kind\":2,\"name\":\"fetch\",\"references\":3,\"lines\":1,\"pages\":1,",
        "\"all\":{\"references\":5,\"lines\":3,\"pages\":3,",
        "\"footprint\":{\"line\":64,\"page\":4096,\"exact\":true}",
        "\"exact\":2,",
        "{\"from\":1,\"to\":1,\"runs\":1}",
        "\"binary\":25,",
        "\"pdats_gzip\":",
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
    place.file("wide.lackey", " L 3e,4\n S 1000,8\n M ffe,4\n");
    let json = place.refrain("stats wide.lackey --json").check(0, "").out.clone();
    // Read: lines 0 and 1, and 63 of page 0 with 0 of page 1; written: the last two.
    for part in ["\"references\":2,\"lines\":4,\"pages\":2,", "\"references\":2,\"lines\":2,\"pages\":2,"] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
    let piped = place.refrain_with("stats --json -", DIN).check(0, "").out.clone();
    assert!(
        piped.starts_with("{\"schema\":\"refrain-addresses-1\",\"format\":\"din\",\"references\":5"),
        "{piped}"
    );
    place.refrain("stats a.din --per rank").check(2, "--per is for traces of MPI calls");
    // What is neither kind of trace is told as before.
    place.file("x.rfn", "rubbish that is no trace");
    place.refrain("stats x.rfn").check(2, "x.rfn");
    place.refrain("stats x.rfn --step 8").check(2, "--step is for address traces");
}

#[test]
fn simulation() {
    let place = Scratch::new("simulate");
    // 400190 to 400198 are one line of 64; the others one each.
    place.file("a.din", DIN);
    place.refrain("convert a.din a.pdt.gz").check(0, "");
    let caches = "--l1i 1K,2,64 --l1d 128,1,64 --l2 4K,full,64";
    let json = place.refrain(&format!("simulate a.pdt.gz {caches} --json")).check(0, "").out.clone();
    for part in [
        "{\"schema\":\"refrain-caches-1\",\"format\":\"pdt\",\"references\":5,\"passed_over\":{},",
        "{\"name\":\"l1i\",\"size\":1024,\"ways\":2,\"line\":64,\"sets\":8,\"policy\":\"lru\",\"write_policy\":\"back\",\"allocate\":true,\"write_fetch\":true,\
         \"fetch\":{\"accesses\":3,\"misses\":1},\"straddling\":0,",
        "\"read\":{\"accesses\":1,\"misses\":1},\"write\":{\"accesses\":1,\"misses\":1},\"straddling\":0,",
        "\"ways\":64,",
        "\"fetch\":{\"accesses\":1,\"misses\":1},\"written\":{\"accesses\":0,\"misses\":0},",
        "\"memory\":{\"lines_read\":3,\"writes\":0,\"bytes_read\":192,\"bytes_written\":0}}",
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
    // Any format, any way in: the same numbers.
    let table = place.refrain(&format!("simulate a.din {caches}")).check(0, "").out.clone();
    let piped =
        place.refrain_with(&format!("simulate - {caches}"), place.read("a.pdt.gz")).check(0, "").out.clone();
    assert_eq!(table.replace("as din", "as pdt"), piped);
    assert!(table.contains("no sizes"), "{table}");
    assert!(table.contains("l1i fetch         3       1     33.333%"), "{table}");
    let some = place.refrain("simulate a.din --l1d 1K,2,64 --limit 3 --json").check(0, "").out.clone();
    assert!(some.contains("\"references\":3,\"passed_over\":{\"fetch\":2}"), "{some}");
    // A size makes a reference straddle.
    place.file("a.lackey", " L 3e,4\n S 40,8\n");
    let table = place.refrain("simulate a.lackey --l1d 1K,2,64,through").check(0, "").out.clone();
    assert!(table.contains("l1d write         1       0      0.000%"), "{table}");
    assert!(table.contains("write-through") && table.contains("memory: 2 lines read, 1 write\n"), "{table}");
}

#[test]
fn curves() {
    let place = Scratch::new("curve");
    place.file("a.din", "0 0\n0 40\n1 0\n2 0\n3 0\n");
    let table = place.refrain("simulate a.din --curve").check(0, "").out.clone();
    assert!(table.contains("5 references as din, 1 of unknown type passed over"), "{table}");
    let row = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{table}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("size"), ["size", "lines", "fetch", "read", "write", "data"]);
    assert_eq!(row("64"), ["64", "1", "100.000%", "100.000%", "100.000%", "100.000%"]);
    assert_eq!(row("128"), ["128", "2", "100.000%", "100.000%", "0.000%", "66.667%"]);
    assert_eq!(row("first"), ["first", "use", "1", "2", "0", "2"]);
    let json = place.refrain("simulate a.din --curve=unified --line 32 --json").check(0, "").out.clone();
    for part in [
        "\"line\":32,\"caches\":[{\"name\":\"unified\",\"lines\":2,\
         \"references\":{\"read\":2,\"write\":1,\"fetch\":1},\"first_uses\":{\"read\":2,\"write\":0,\"fetch\":0},",
        "{\"size\":64,\"lines\":2,\"miss_ratio\":0.5,\"misses\":{\"read\":2,\"write\":0,\"fetch\":0}}",
        "\"distances\":[[0,0,0,1],[1,0,1,0]]",
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
    let empty = place.refrain("simulate --from din - --curve").check(0, "").out.clone();
    assert!(empty.contains("0 references"), "{empty}");
}

#[test]
fn simulations_of_what_is_damaged_or_impossible() {
    let place = Scratch::new("simulate-not");
    place.file("a.din", "0 10\n1 20\n0 xyz\n0 30\n");
    for options in ["--l1 1K,1,64", "--curve"] {
        let done = place.refrain(&format!("simulate a.din {options}"));
        done.check(2, "a.din: record 3 at byte 10").check(2, "what stands before");
        assert!(done.out.starts_with("2 references as din"), "{done:?}");
    }
    for (options, why) in [
        ("", "`--curve` does all sizes at once"),
        ("--l2 1K,1,64", "no first-level cache"),
        ("--l1 1K,1,64 --l3 1K,1,64", "no level 2"),
        ("--l1 1K,1,64 --l1d 1K,1,64", "cannot be used with"),
        ("--l1d 30K,8,64", "16K or 32K"),
        ("--l1d 32K,8", "SIZE,WAYS,LINE"),
        ("--l1d 1K,1,64 --l2 4K,1,32", "level 2 are smaller than those of level 1"),
        ("--l1d 1K,1,64 --policy mru", "lru, fifo, random"),
        ("--l1d 1K,1,64 --write around", "back, through"),
        ("--l1d 1K,1,64 --allocate maybe", "on, off"),
        ("--l1d 1K,1,64 --seed 3", "none of these is"),
        ("--l1d 1K,1,64 --line 32", "--curve"),
        ("--curve --policy fifo", "cannot be used with"),
        ("--curve --line 48", "power of two"),
        ("--curve=both", "split, unified"),
    ] {
        let done = place.refrain(&format!("simulate a.din {options}"));
        assert_eq!(done.check(2, why).out, "", "{options}");
    }
    place.refrain("simulate missing.pdt --curve").check(2, "missing.pdt cannot be read");
    // The last word on a cache is its own, and dice can be thrown again.
    place.file("b.din", (0..9000).map(|n| format!("0 {:x}\n", n * n % 4001 * 64)).collect::<String>());
    let misses = |options: &str| {
        let json = place.refrain(&format!("simulate b.din --json {options}")).check(0, "").out.clone();
        json.split("\"misses\":").nth(1).unwrap().split('}').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(misses("--l1d 64K,8,64,fifo --policy random"), misses("--l1d 64K,8,64 --policy fifo"));
    assert_eq!(misses("--l1d 64K,8,64,random"), misses("--l1d 64K,8,64 --policy random --seed 0"));
    assert!((1..20).any(
        |seed| misses(&format!("--l1d 64K,8,64,random --seed {seed}")) != misses("--l1d 64K,8,64,random")
    ));
}

/// A disk may be full; that is no success.
#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error() {
    let place = Scratch::new("full");
    place.file("a.din", "0 10\n");
    for words in ["stats a.din", "simulate a.din --l1 1K,1,64", "convert a.din - --to din"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let done = Done::of(place.command(words).stdout(full).output().unwrap());
        assert!(!done.check(2, "output").err.contains("-:"), "{words}: {done:?}");
    }
}
