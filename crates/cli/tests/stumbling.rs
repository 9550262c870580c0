//! What people stumble over: names that are no files, answers that are empty, files of the other kind.

use crate::common;

use std::fs::FileType;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Command;

use common::Scratch;

fn kind(place: &Scratch, name: &str) -> FileType {
    std::fs::symlink_metadata(place.path(name)).unwrap().file_type()
}

/// Whether a tool of the system could make something there.
fn make(place: &Scratch, words: &str) -> bool {
    let mut words = words.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).current_dir(&place.0).status();
    status.is_ok_and(|status| status.success())
}

/// Rank 1 of three, which sends to rank 0 three times.
const TEXT: &str = r#"refrain-text 1
version "0.1.0"
command "./two"
library "MPICH 4.0.2"
abi "MPICH ABI"
ranks 3
option "ranks" "1"
split yes
timed no
complete yes
symbol 0 lanes 1 stack - time 0 0 0 bytes f50100010501052e2f74776f
symbol 1 lanes 1 stack - time 0 0 0 bytes 9302000601
symbol 2 lanes 3 stack - time 0 0 0 bytes 15000420010106
symbol 3 lanes 0 stack - time 0 0 0 bytes ed0100
stream 0 terms 1 shape t0
stream 1 terms 0 shape t0
stream 2 terms -1 shape t0
stream 3 terms 7 shape t0
structure 0 rules e0 e1 e2x3 e3
cohort members 1 structure 0 digest c6580383c3aa0303
  lane 0
  lane 1
  lane 0
  lane 2
  lane 3
"#;

#[test]
fn what_is_no_file_stays_what_it_is() {
    let place = Scratch::new("kinds");
    place.script("app", "touch started");
    assert!(make(&place, "mkfifo pipe"));
    std::fs::create_dir(place.path("folder")).unwrap();
    place.file("text", TEXT);
    for (name, what) in [("pipe", "a pipe"), ("folder", "a directory")] {
        for force in ["", "--force"] {
            place.refrain(&format!("run {force} -o {name} ./app")).check(2, &format!("it is {what}"));
            place.refrain(&format!("import {force} text -o {name}")).check(2, &format!("{name} is {what}"));
        }
    }
    assert!(!place.path("started").exists());
    assert!(kind(&place, "pipe").is_fifo());

    // What a link leads to is replaced, the link is not.
    place.file("old.rfn", "old");
    symlink("old.rfn", place.path("link.rfn")).unwrap();
    place.refrain("import text --out link.rfn").check(2, "link.rfn exists already").check(2, "`--force`");
    place.refrain("import --force text --out link.rfn").check(0, "1 of 3 ranks, 6 calls");
    assert!(kind(&place, "link.rfn").is_symlink());
    place.refrain("verify old.rfn").check(0, "");

    // Only ever a device that is ours.
    if make(&place, "mknod null c 1 3") && std::fs::write(place.path("null"), "x").is_ok() {
        place.refrain("import --force text --out null").check(0, "bytes -> null");
        let run = place.refrain("run --force --out null ./app");
        assert!(!run.check(0, "").err.contains("no trace"), "{run:?}");
        place.file("a.din", "0 10\n");
        place.refrain("convert a.din null --to raw").check(0, "");
        assert!(kind(&place, "null").is_char_device());
    }
}

#[test]
fn texts_and_what_is_none() {
    let place = Scratch::new("texts");
    place.refrain_with("import - --out one.rfn", TEXT).check(0, "-> one.rfn");
    place.refrain("verify one.rfn").check(0, "");
    place.refrain("import one.rfn --out two.rfn").check(2, "a trace file, not the text").check(2, "--text");
    place.refrain("import missing --out two.rfn").check(2, "missing cannot be read: there is no such file");
    place.refrain("stats missing --lz").check(2, "missing cannot be read: there is no such file");
    place.refrain("recover one.rfn").check(2, "one.rfn is not a directory").check(2, ".parts");
}

#[test]
fn the_other_kind_of_trace() {
    let place = Scratch::new("kind");
    place.refrain_with("import - --out one.rfn", TEXT).check(0, "");
    place.file("a.din", "0 10\n1 20\n");
    for to in ["a.rfa", "a.pdt", "b.din"] {
        place.refrain(&format!("convert a.din {to}")).check(0, "");
        std::fs::copy(place.path(to), place.path("unnamed")).unwrap();
        for (command, name) in
            [("info", to), ("dump", to), ("verify", to), ("loops", to), ("info", "unnamed")]
        {
            let done = place.refrain(&format!("{command} {name}"));
            done.check(2, "is an address trace").check(2, "`refrain convert`");
        }
    }
    for command in ["convert one.rfn b.raw", "simulate one.rfn --curve"] {
        place.refrain(command).check(2, "one.rfn is a trace of MPI calls").check(2, "`refrain info`");
    }
    place.file("a.din.bz2", b"BZh91AY&SY\x01\x02");
    place.refrain("stats --from din a.din.bz2").check(2, "");
    place.refrain("convert a.din.bz2 c.raw").check(2, "record 1 at byte 0 cannot be read");
    place.file("a.din.lz", b"LZIP\x01\x0c");
    place
        .refrain("convert a.din.lz d.raw")
        .check(2, "lzip; gzip, zstd, xz, bzip2, lz4 and compress are read");
}

#[test]
fn empty_answers_are_explained() {
    let place = Scratch::new("empty");
    place.refrain_with("import - --out one.rfn", TEXT).check(0, "");
    for (command, why) in [
        ("dump one.rfn --rank 0", "nothing was recorded of these ranks, only of 1"),
        ("loops one.rfn --rank 0", "nothing was recorded of these ranks, only of 1"),
        ("dump one.rfn --calls 9999", "none of these threads made more than 6 calls"),
        ("dump one.rfn --calls 6", "made more than 6 calls"),
        ("dump one.rfn --only MPI_Comm_spawn", "none of these calls is one of MPI_Comm_spawn"),
    ] {
        assert_eq!(place.refrain(command).check(0, why).out, "", "{command}");
    }
    let sends = place.refrain("dump one.rfn --only p2p");
    assert_eq!((sends.check(0, "").out.lines().count(), sends.err.as_str()), (3, ""), "{sends:?}");
    assert_eq!(place.refrain("dump one.rfn --calls 5").check(0, "").err, "");
    assert!(place.refrain("loops one.rfn").check(0, "").out.contains("dest=0, tag=7"));

    place.file("a.din", "0 10\n1 20\n");
    place.refrain("convert --skip 999 a.din b.din").check(0, "nothing of a.din is left to write after 999");
    assert_eq!(place.refrain("convert --skip 1 a.din c.din").check(0, "").err, "");

    // Of ranks that there are none of.
    let none = TEXT.replace("option \"ranks\" \"1\"", "option \"ranks\" \"9\"");
    let (head, _) = none.split_once("symbol 0").unwrap();
    place.refrain_with("import - -o none.rfn", head).check(0, "had none of the ranks that were chosen");
    let yes = place.refrain("verify none.rfn");
    assert!(yes.check(0, "").out.contains("none of the chosen ranks was in the run"), "{yes:?}");
    place.refrain("dump none.rfn").check(0, "nothing was recorded");
}

#[test]
fn a_fragment_replaces_no_whole_file() {
    let place = Scratch::new("fragment");
    place.file("bad.din", "0 10\n1 20\n0 xyz\n");
    place.file("good.raw", "good");
    symlink("good.raw", place.path("link.raw")).unwrap();
    for name in ["good.raw", "link.raw"] {
        let done = place.refrain(&format!("convert --force bad.din {name}"));
        done.check(2, "record 3").check(2, &format!("2 references before it are written to {name}.part"));
        assert_eq!(
            (place.read("good.raw"), place.read(&format!("{name}.part")).len()),
            (b"good".to_vec(), 18)
        );
    }
    place
        .refrain("convert --force bad.din new.raw")
        .check(2, "2 references before it are written to new.raw\n");
    assert_eq!(place.read("new.raw").len(), 18);
    // What lies there from before may be all that is left of something.
    place.file("good.raw.part", "kept");
    for name in ["good.raw.1.part", "good.raw.2.part"] {
        let done = place.refrain("convert --force bad.din good.raw");
        done.check(2, &format!("are written to {name}; good.raw is as it was"));
        assert_eq!((place.read("good.raw.part"), place.read(name).len()), (b"kept".to_vec(), 18));
    }
    let mut parts = place.names();
    parts.retain(|name| name.ends_with(".part"));
    assert_eq!(parts, ["good.raw.1.part", "good.raw.2.part", "good.raw.part", "link.raw.part"]);
    place.file("bad.din", "0 10\n1 20\n");
    place.refrain("convert --force bad.din link.raw").check(0, "");
    assert_eq!(place.read("good.raw").len(), 18);
    assert!(kind(&place, "link.raw").is_symlink());
}

#[test]
fn each_process_with_a_trace_of_its_own() {
    let place = Scratch::new("alone");
    place.file("x.process-0.rfn", "from before");
    place.script("app", "for k in 1 2 10; do echo > x.process-$k.rfn; done");
    let done = place.refrain("run --out x.rfn ./app");
    done.check(0, "3 processes, each with a trace of its own -> ").check(0, "x.process-1.rfn to ");
    assert!(done.err.contains("x.process-10.rfn") && !done.err.contains("no trace was written"), "{done:?}");
}

/// Another user exchanges a file and what it must not be all the time: nothing of ours is written where a link leads, and
/// nobody waits for the other end of a pipe.
#[test]
fn a_name_that_changes_while_it_is_looked_at() {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, lchown};
    use std::sync::atomic::{AtomicBool, Ordering};
    const NOBODY: u32 = 65534;
    // SAFETY: takes and touches nothing.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let place = Scratch::new("exchanged");
    std::fs::set_permissions(&place.0, PermissionsExt::from_mode(0o1777)).unwrap();
    place.file("in.din", "0 10\n");
    std::fs::create_dir(place.path("home")).unwrap();
    place.file("home/precious", "years of work");
    let at = |name: &str| CString::new(place.path(name).as_os_str().as_bytes()).unwrap();
    let (name, other) = (at("x.raw"), at("other"));
    let over = AtomicBool::new(false);
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let _over = Over(&over);
        scope.spawn(|| {
            // SAFETY: numbers only. Asked of the kernel itself, it is this thread alone that becomes another user.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) }, 0);
            while !over.load(Ordering::Relaxed) {
                let (cwd, exchange) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
                // SAFETY: both names are live and end in a zero.
                unsafe { libc::renameat2(cwd, name.as_ptr(), cwd, other.as_ptr(), exchange) };
            }
        });
        for round in 0..120 {
            place.file("x.raw", "the attacker's");
            match round % 3 {
                0 => symlink("home/precious", place.path("other")).unwrap(),
                1 => symlink("home/new", place.path("other")).unwrap(),
                _ => assert!(make(&place, "mkfifo -m 666 other")),
            }
            for file in ["x.raw", "other"] {
                lchown(place.path(file), Some(NOBODY), Some(NOBODY)).unwrap();
            }
            let force = if round % 4 == 0 { "" } else { "--force" };
            place.refrain(&format!("convert {force} --to raw in.din x.raw"));
            assert_eq!(place.read("home/precious"), b"years of work", "round {round}");
            assert_eq!(std::fs::read_dir(place.path("home")).unwrap().count(), 1, "round {round}");
            for file in ["x.raw", "other"] {
                let _ = std::fs::remove_file(place.path(file));
            }
        }
    });
}
