//! `refrain convert` and `refrain stats` on address traces, as a user meets them.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("refrain-addresses-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Place(dir)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Words of a command line, and its standard input.
    fn refrain(&self, words: &str, input: &[u8]) -> Done {
        let mut child = Command::new(env!("CARGO_BIN_EXE_refrain"))
            .args(words.split_whitespace())
            .current_dir(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // A command that refuses its arguments reads nothing.
        let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        Done { code: status.code(), out: stdout, err: String::from_utf8_lossy(&stderr).into_owned() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug)]
struct Done {
    code: Option<i32>,
    out: Vec<u8>,
    err: String,
}

impl Done {
    #[track_caller]
    fn check(&self, code: i32, err: &str) -> &Done {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.err.contains(err), "{err:?} is not in {self:?}");
        self
    }

    fn text(&self) -> String {
        String::from_utf8(self.out.clone()).unwrap()
    }
}

const DIN: &str = "2 400190\n0 7ffebc64\n2 400194\n2 400198\n1 100039b8\n";
const LACKEY: &str = "==7== Lackey, an example Valgrind tool\nI  0401ab70,3\n M 1fff000758,8\nI  0401ab73,5\n L 1fff000760,4\n";

#[test]
fn there_and_back_through_files_and_pipes() {
    let place = Place::new("back");
    place.file("a.din", DIN);
    for packed in ["a.pdt", "a.pdt.gz", "a.pdt64.zst", "a.raw.xz", "a.rfa", "a.rfa.xz"] {
        place.refrain(&format!("convert a.din {packed}"), b"").check(0, "");
        let back = place.refrain(&format!("convert {packed} - --to din"), b"");
        assert_eq!(back.check(0, "").text(), DIN, "{packed}");
    }
    assert_eq!(place.read("a.pdt.gz")[..2], [0x1f, 0x8b]);
    // Without a name to go by: bytes in, bytes out.
    let packed = place.refrain("convert - - --to pdt64.gz", DIN.as_bytes());
    let back = place.refrain("convert - - --to din", &packed.check(0, "").out);
    assert_eq!(back.check(0, "").text(), DIN);
    assert!(!place.names().iter().any(|name| name.contains("part")), "{:?}", place.names());
}

#[test]
fn from_the_middle() {
    let place = Place::new("middle");
    let lines: Vec<String> = (0..10_000).map(|i| format!("{} {:x}\n", i % 3, i * i)).collect();
    place.file("a.din", lines.concat());
    for name in ["a.rfa", "a.rfa.gz", "a.pdt"] {
        place.refrain(&format!("convert a.din {name}"), b"").check(0, "");
        let some = place.refrain(&format!("convert --skip 7000 --limit 20 {name} - --to din"), b"");
        assert_eq!(some.check(0, "").text(), lines[7000..7020].concat(), "{name}");
    }
    // Without its index it is read from the beginning, up to where it is damaged.
    let mut cut = place.read("a.rfa");
    cut.truncate(cut.len() - 1);
    place.file("cut.rfa", cut);
    place.refrain("convert --skip 9999 cut.rfa b.din", b"").check(2, "record 10001 at byte");
    assert_eq!(place.read("b.din"), lines[9999].as_bytes());
}

#[test]
fn nothing_is_lost_unnoticed() {
    let place = Place::new("lost");
    place.file("a.lackey", LACKEY);
    place
        .refrain("convert a.lackey a.pdt64", b"")
        .check(2, "cannot keep the sizes")
        .check(2, "`--drop sizes`");
    place.refrain("convert a.lackey --drop sizes a.pdt64", b"").check(0, "");
    place.refrain("convert a.pdt64 b.lackey", b"").check(2, "needs sizes").check(2, "--fill sizes=0");
    place.refrain("convert a.pdt64 b.lackey --fill sizes=4", b"").check(0, "");
    assert!(String::from_utf8(place.read("b.lackey")).unwrap().contains(" S 1fff000758,4\n"));
    let pcs = place.refrain("convert --drop sizes,fetches --pcs a.lackey - --to raw-pc", b"");
    let pcs: Vec<u64> =
        pcs.check(0, "").out.chunks(17).map(|r| u64::from_le_bytes(r[9..].try_into().unwrap())).collect();
    assert_eq!(pcs, [0x401_ab70, 0x401_ab70, 0x401_ab73]);
    place.refrain("convert --drop sizes a.lackey c.pdt", b"").check(2, "record 2 cannot").check(2, "pdt64");
}

#[test]
fn nothing_is_overwritten_without_leave() {
    let place = Place::new("overwrite");
    place.file("a.din", DIN);
    place.file("b.pdt", "old");
    place.refrain("convert a.din b.pdt", b"").check(2, "b.pdt exists already").check(2, "--force");
    assert_eq!(place.read("b.pdt"), b"old");
    place.refrain("convert --drop nothing a.din b.pdt --force", b"").check(2, "fetches");
    place.refrain("convert missing.din b.pdt --force", b"").check(2, "missing.din cannot be read");
    assert_eq!(place.read("b.pdt"), b"old");
    place.refrain("convert --force a.din b.pdt", b"").check(0, "");
    assert_ne!(place.read("b.pdt"), b"old");
    // A trace may take its own place.
    place.refrain("convert --force a.din a.din", b"").check(0, "");
    assert_eq!(place.read("a.din"), DIN.as_bytes());
}

#[test]
fn damage_is_said_and_what_stands_before_it_is_kept() {
    let place = Place::new("damage");
    place.file("a.din", "0 10\n1 20\n0 xyz\n0 30\n");
    place
        .refrain("convert a.din a.raw", b"")
        .check(2, "record 3 at byte 10")
        .check(2, "2 references before it");
    assert_eq!(place.read("a.raw").len(), 18);
    place.refrain("stats a.din", b"").check(2, "record 3 at byte 10");
    place.file("b.din", DIN);
    place.refrain("convert b.din b.pdt64.gz", b"").check(0, "");
    let mut cut = place.read("b.pdt64.gz");
    cut.truncate(cut.len() - 9);
    place.file("c.pdt64.gz", cut);
    place.refrain("convert c.pdt64.gz c.din", b"").check(2, "record");
    assert!(DIN.as_bytes().starts_with(&place.read("c.din")));
}

#[test]
fn what_cannot_be_known_is_asked_for() {
    let place = Place::new("asked");
    place.file("a.din", "2 400190 8fa40000\n0 7ffebc64 0\n");
    place.refrain("convert a.din b.raw", b"").check(2, "--from din-word");
    place.refrain("convert - b.raw", &[0; 9]).check(2, "--from");
    place.refrain("convert a.din b.txt", b"").check(2, "--to");
    place.refrain("convert a.din -", b"").check(2, "--to");
    place.refrain("convert --from din-word a.din b.pdt --drop words --step 8", b"").check(2, "no step");
    place.refrain("convert --from din-word a.din b.pdt --drop words --level 9", b"").check(2, "compressed");
    place.refrain("convert --from din-word a.din b.pdi.gz --level 10", b"").check(2, "1 to 9");
}

#[test]
fn dictionaries_in_two_passes_or_one() {
    let place = Place::new("dictionary");
    let dinw = "2 400190 8fa40000\n0 7ffebc64 0\n2 400194 8fa40000\n2 400198 1\n";
    place.file("a.dinw", dinw);
    place.refrain("convert a.dinw a.pdi", b"").check(0, "");
    assert_eq!(place.read("a.pdi")[8..16], [0, 0, 0xa4, 0x8f, 1, 0, 0, 0]);
    assert_eq!(place.refrain("convert a.pdi - --to din-word", b"").text(), dinw);
    let refused = place.refrain("convert --from din-word - b.pdi", dinw.as_bytes());
    refused.check(2, "first pass").check(2, "--dictionary");
    place.file("words", "8fa40000\n");
    for words in ["words", "a.pdi"] {
        let packed = place
            .refrain(&format!("convert --from din-word --dictionary {words} - - --to pdi"), dinw.as_bytes());
        assert_eq!(packed.check(0, "").out[8..12], [0, 0, 0xa4, 0x8f]);
        assert_eq!(place.refrain("convert - - --to din-word", &packed.out).text(), dinw);
    }
}

#[test]
fn statistics() {
    let place = Place::new("stats");
    place.file("a.din", DIN);
    let table = place.refrain("stats a.din", b"").check(0, "").text();
    assert!(table.starts_with("5 references as din"), "{table}");
    assert!(table.contains("2 fetch"), "{table}");
    place.refrain("convert a.din a.pdt.zst", b"").check(0, "");
    let json = place.refrain("stats a.pdt.zst --json --lz", b"").check(0, "").text();
    for part in [
        "\"format\":\"pdt\",\"references\":5,\"step\":4",
        "{\"kind\":2,\"name\":\"fetch\",\"references\":3,",
        "\"exact\":2,",
        "{\"from\":1,\"to\":1,\"runs\":1}",
        "\"binary\":25,",
        "\"pdats_gzip\":",
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
    let piped = place.refrain("stats --json -", DIN.as_bytes()).check(0, "").text();
    assert!(piped.starts_with("{\"format\":\"din\",\"references\":5"), "{piped}");
    place.refrain("stats a.din --per rank", b"").check(2, "--per is for traces of MPI calls");
    // What is neither kind of trace is told as before.
    place.file("x.rfn", "rubbish that is no trace");
    place.refrain("stats x.rfn", b"").check(2, "x.rfn");
    place.refrain("stats x.rfn --step 8", b"").check(2, "--step is for address traces");
}

#[test]
fn simulation() {
    let place = Place::new("simulate");
    // 400190 to 400198 are one line of 64; the others one each.
    place.file("a.din", DIN);
    place.refrain("convert a.din a.pdt.gz", b"").check(0, "");
    let caches = "--l1i 1K,2,64 --l1d 128,1,64 --l2 4K,full,64";
    let json = place.refrain(&format!("simulate a.pdt.gz {caches} --json"), b"").check(0, "").text();
    for part in [
        "{\"format\":\"pdt\",\"references\":5,\"passed_over\":{},",
        "{\"name\":\"l1i\",\"size\":1024,\"ways\":2,\"line\":64,\"sets\":8,\"policy\":\"lru\",\"write\":\"back\",\"allocate\":true,\
         \"fetch\":{\"accesses\":3,\"misses\":1},\"straddling\":0,",
        "\"read\":{\"accesses\":1,\"misses\":1},\"write\":{\"accesses\":1,\"misses\":1},\"straddling\":0,",
        "\"ways\":64,",
        "\"fetch\":{\"accesses\":1,\"misses\":1},\"written\":{\"accesses\":0,\"misses\":0},",
        "\"memory\":{\"lines_read\":3,\"writes\":0}}",
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
    // Any format, any way in: the same numbers.
    let table = place.refrain(&format!("simulate a.din {caches}"), b"").check(0, "").text();
    let piped = place.refrain(&format!("simulate - {caches}"), &place.read("a.pdt.gz")).check(0, "").text();
    assert_eq!(table.replace("as din", "as pdt"), piped);
    assert!(table.contains("no sizes"), "{table}");
    assert!(table.contains("l1i fetch         3       1     33.333%"), "{table}");
    let some = place.refrain("simulate a.din --l1d 1K,2,64 --limit 3 --json", b"").check(0, "").text();
    assert!(some.contains("\"references\":3,\"passed_over\":{\"fetch\":2}"), "{some}");
    // A size makes a reference straddle.
    place.file("a.lackey", " L 3e,4\n S 40,8\n");
    let table = place.refrain("simulate a.lackey --l1d 1K,2,64,through", b"").check(0, "").text();
    assert!(table.contains("l1d write         1       0      0.000%"), "{table}");
    assert!(table.contains("write-through") && table.contains("memory: 2 lines read, 1 write\n"), "{table}");
}

#[test]
fn curves() {
    let place = Place::new("curve");
    place.file("a.din", "0 0\n0 40\n1 0\n2 0\n3 0\n");
    let table = place.refrain("simulate a.din --curve", b"").check(0, "").text();
    assert!(table.contains("5 references as din, 1 of unknown type passed over"), "{table}");
    let row = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{table}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("size"), ["size", "lines", "fetch", "read", "write", "data"]);
    assert_eq!(row("64"), ["64", "1", "100.000%", "100.000%", "100.000%", "100.000%"]);
    assert_eq!(row("128"), ["128", "2", "100.000%", "100.000%", "0.000%", "66.667%"]);
    assert_eq!(row("first"), ["first", "use", "1", "2", "0", "2"]);
    let json = place.refrain("simulate a.din --curve=unified --line 32 --json", b"").check(0, "").text();
    for part in [
        "\"line\":32,\"caches\":[{\"name\":\"unified\",\"lines\":2,\
         \"references\":{\"read\":2,\"write\":1,\"fetch\":1},\"first_uses\":{\"read\":2,\"write\":0,\"fetch\":0},",
        "{\"size\":64,\"lines\":2,\"miss_ratio\":0.5,\"misses\":{\"read\":2,\"write\":0,\"fetch\":0}}",
        "\"distances\":[[0,0,0,1],[1,0,1,0]]",
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
    let empty = place.refrain("simulate --from din - --curve", b"").check(0, "").text();
    assert!(empty.contains("0 references"), "{empty}");
}

#[test]
fn simulations_of_what_is_damaged_or_impossible() {
    let place = Place::new("simulate-not");
    place.file("a.din", "0 10\n1 20\n0 xyz\n0 30\n");
    for options in ["--l1 1K,1,64", "--curve"] {
        let done = place.refrain(&format!("simulate a.din {options}"), b"");
        done.check(2, "a.din: record 3 at byte 10").check(2, "what stands before");
        assert!(done.text().starts_with("2 references as din"), "{done:?}");
    }
    for (options, why) in [
        ("", "`--curve` does all sizes at once"),
        ("--l2 1K,1,64", "no first-level cache"),
        ("--l1 1K,1,64 --l3 1K,1,64", "--l2"),
        ("--l1 1K,1,64 --l1d 1K,1,64", "cannot be used with"),
        ("--l1d 30K,8,64", "16K or 32K"),
        ("--l1d 32K,8", "SIZE,WAYS,LINE"),
        ("--l1d 1K,1,64 --l2 4K,1,32", "level 2 are smaller than those of level 1"),
        ("--l1d 1K,1,64 --policy plru", "lru, fifo, random"),
        ("--l1d 1K,1,64 --write around", "back, through"),
        ("--l1d 1K,1,64 --allocate maybe", "on, off"),
        ("--l1d 1K,1,64 --seed 3", "none of these is"),
        ("--l1d 1K,1,64 --line 32", "--curve"),
        ("--curve --policy fifo", "cannot be used with"),
        ("--curve --line 48", "power of two"),
        ("--curve=both", "split, unified"),
    ] {
        let done = place.refrain(&format!("simulate a.din {options}"), b"");
        assert_eq!(done.check(2, why).text(), "", "{options}");
    }
    place.refrain("simulate missing.pdt --curve", b"").check(2, "missing.pdt cannot be read");
    // The last word on a cache is its own, and dice can be thrown again.
    place.file("b.din", (0..9000).map(|n| format!("0 {:x}\n", n * n % 4001 * 64)).collect::<String>());
    let misses = |options: &str| {
        let json = place.refrain(&format!("simulate b.din --json {options}"), b"").check(0, "").text();
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
    let place = Place::new("full");
    place.file("a.din", "0 10\n");
    for words in ["stats a.din", "simulate a.din --l1 1K,1,64", "convert a.din - --to din"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_refrain"))
            .args(words.split_whitespace())
            .current_dir(&place.0)
            .stdout(full)
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{words}: {err}");
        assert!(err.contains("output") && !err.contains("-:"), "{words}: {err}");
    }
}
