//! Runs over several hosts: what they share and what they do not, who is traced, and who dies. The hosts are namespaces of
//! this machine, where root may make them. Ignored in a plain `cargo test`, because it needs the MPI libraries and the built
//! command.

use std::path::Path;

use refrain_e2e::hosts::Hosts;
use refrain_e2e::run::{self, Outcome};
use refrain_e2e::{Library, skipped};

/// Hosts of Open MPI, and what a case of theirs printed. `None` where there can be none.
fn open_mpi(name: &str, words: &str) -> Option<(Hosts, Outcome)> {
    on(Library::OpenMpi, name, words)
}

fn on(library: Library, name: &str, words: &str) -> Option<(Hosts, Outcome)> {
    if std::env::var_os("REFRAIN_E2E").is_none() {
        skipped("REFRAIN_E2E is not set");
        return None;
    }
    let hosts = Hosts::new(library, name);
    let outcome = hosts.run(words)?;
    println!("{name}: exit code {}\n{}{}", outcome.code, outcome.stdout, outcome.stderr);
    Some((hosts, outcome))
}

/// `refrain info` of a trace that can be verified.
fn info(trace: &Path) -> String {
    let path = trace.to_string_lossy();
    let verified = run::refrain(&["verify", &path]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let info = run::refrain(&["info", &path]);
    assert_eq!(info.code, 0, "{}", info.stderr);
    println!("{}", info.stdout);
    info.stdout
}

/// What is in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[track_caller]
fn says(outcome: &Outcome, parts: &[&str]) {
    let lines = outcome.stderr.lines().filter(|line| parts.iter().all(|part| line.contains(part)));
    assert_eq!(lines.count(), 1, "one line with {parts:?}:\n{}", outcome.stderr);
}

/// The trace is complete and names these hosts, and nothing is left beside it.
#[track_caller]
fn is_whole(hosts: &Hosts, trace: &str, by_host: &str) {
    let info = info(&hosts.out.join(trace));
    assert!(info.contains(", complete") && info.contains(by_host), "{info}");
    assert_eq!(names(&hosts.out), [trace]);
}

#[test]
#[ignore = "needs MPI and root; run `make e2e`"]
fn where_everything_is_shared_the_trace_is_whole() {
    let Some((hosts, run)) = open_mpi("shared", "$R -- $L $(at 2 one two) $RING") else { return };
    assert_eq!(run.code, 0);
    is_whole(&hosts, "ring.rfn", "one (rank 0-1), two (rank 2-3)");

    let Some((hosts, run)) = open_mpi("root-elsewhere", "$R -- $L $(at 1 two three) $RING") else {
        return;
    };
    assert_eq!(run.code, 0);
    is_whole(&hosts, "ring.rfn", "two (rank 0), three (rank 1)");

    let words = "until_written ring.rfn $R -- $L $(at 1 one two) $RING
        on two \"cd $OUT && $REFRAIN verify ring.rfn\"";
    let Some((hosts, run)) = on(Library::Mpich, "mpich", words) else { return };
    assert_eq!(run.code, 0);
    says(&run, &["2 ranks, 14 calls"]);
    is_whole(&hosts, "ring.rfn", "one (rank 0), two (rank 1)");

    // Inside the launcher, where each rank is on its own.
    let words = "until_written x.rfn $L $(at 1 one two) $R -o $OUT/x.rfn -- $RING";
    let Some((hosts, run)) = on(Library::Mpich, "inside", words) else { return };
    says(&run, &["2 ranks, 14 calls"]);
    is_whole(&hosts, "x.rfn", "one (rank 0), two (rank 1)");
}

/// Variables get to all parts of a command line of Open MPI, also beside the user's own.
#[test]
#[ignore = "needs MPI and root; run `make e2e`"]
fn programs_with_several_parts_are_traced() {
    let by_host = "one (rank 0-1), two (rank 2-3)";
    let parts = "-n 2 --host one:2 $RING : -n 2 --host two:2 $RING";
    let Some((hosts, run)) = open_mpi("parts", &format!("$R -- $L {parts}")) else { return };
    assert_eq!(run.code, 0);
    is_whole(&hosts, "ring.rfn", by_host);

    let own = "MINE=1 $R -- $L -x MINE -n 2 --host one:2 $RING : -n 2 --host two:2 $RING";
    let Some((hosts, run)) = open_mpi("parts-own", own) else { return };
    assert_eq!(run.code, 0);
    is_whole(&hosts, "ring.rfn", by_host);

    let file = "printf '%s\\n' \"-n 2 --host one:2 $RING\" \"-n 2 --host two:2 $RING\" >../file\n\
                $R -o x.rfn -- $L --app ../file";
    let Some((hosts, run)) = open_mpi("file", file) else { return };
    assert_eq!(run.code, 0);
    is_whole(&hosts, "x.rfn", by_host);
}

/// Each host keeps what it has, and says so; one trace can be made of it, and another run goes well.
#[test]
#[ignore = "needs MPI and root; run `make e2e`"]
fn a_directory_that_is_not_shared() {
    let words = "private two
        $S -- $L $(at 2 one two) $RING
        on two \"cp -r $OUT/ring.rfn.parts $FOLDER/of-two\"
        cp -r ring.rfn.parts ../of-one
        $REFRAIN recover ../of-one ../of-two -o ../joined.rfn
        $R -- $L $(at 2 one two) $RING; echo refused $?
        $S --force -o ring.rfn -- $L $(at 2 one two) $RING
        on two \"ls $OUT/ring.rfn.parts\" | grep -c part";
    let Some((hosts, run)) = open_mpi("private", words) else { return };
    let again = run.stderr.find("it exists already").unwrap_or_else(|| panic!("{}", run.stderr));
    let first = Outcome { stderr: run.stderr[..again].to_owned(), ..run.clone() };
    says(&first, &["ranks 2-3 have not come to MPI_Finalize within 20 s", "is kept on one in"]);
    says(&first, &["of host two: that directory is not shared with rank 0's host", "is kept on two in"]);
    says(&first, &["ranks 2-3 left nothing here"]);
    says(&first, &["2 of 4 ranks, 14 calls", "ring.rfn (partial"]);
    // What of-one and of-two have is a trace of all.
    let joined = info(&hosts.folder.join("joined.rfn"));
    assert!(joined.contains(", complete") && joined.contains("one (rank 0-1), two (rank 2-3)"), "{joined}");
    assert!(run.stdout.contains("refused 2"), "{}", run.stdout);
    // Of the second run two parts are left on the other host, and of the first none.
    assert_eq!(run.stdout.lines().last(), Some("2"), "{}", run.stdout);
    assert!(hosts.out.join("ring.rfn.parts").exists());
}

/// Who starts the ranks does not see their trace, and is told where it is. Nothing else is left there.
#[test]
#[ignore = "needs MPI and root; run `make e2e`"]
fn all_ranks_elsewhere_in_a_directory_of_their_own() {
    let words = "private two; $R -- $L $(at 2 two) $RING; on two \"ls -A $OUT\"";
    let Some((_, run)) = open_mpi("own", words) else { return };
    says(&run, &["2 ranks, 14 calls", "ring.rfn on two, which is not shared"]);
    assert_eq!(run.stdout.lines().last(), Some("ring.rfn"), "{}", run.stdout);
}

/// The program ends as ever; one line names the host, one what to do.
#[test]
#[ignore = "needs MPI and root; run `make e2e`"]
fn a_directory_that_one_host_cannot_write_to() {
    let cases = [
        ("missing", "mkdir in; private two; T=in/x.rfn", "No such file or directory"),
        (
            "read-only",
            "on two \"mount --bind $OUT $OUT && mount -o remount,ro,bind $OUT\"; T=x.rfn",
            "Read-only",
        ),
        (
            "full",
            "on two \"mount -t tmpfs -o size=64k own $OUT; head -c 100k /dev/zero >$OUT/all 2>$FOLDER/told\"; T=x.rfn",
            "No space left",
        ),
    ];
    for (name, before, why) in cases {
        let Some((hosts, run)) = open_mpi(name, &format!("{before}; $S -o $T -- $L $(at 2 one two) $RING"))
        else {
            return;
        };
        assert_eq!(run.code, 0, "{name}");
        assert!(run.stdout.contains("ring: 4 ranks, checksum 20"), "{}", run.stdout);
        says(&run, &["would not survive a crash", " on two: ", why]);
        says(&run, &["ranks 2-3 have not come to MPI_Finalize within 20 s", "those that came are on one"]);
        let trace = hosts.out.join(if name == "missing" { "in/x.rfn" } else { "x.rfn" });
        let info = info(&trace);
        assert!(info.contains("nothing was kept here, or it is on another host"), "{info}");
    }
}

/// Nobody waits for ranks that are not traced for longer than asked.
#[test]
#[ignore = "needs MPI and root; run `make e2e`"]
fn a_library_that_is_missing_on_one_host() {
    let words = "on two \"mount -t tmpfs own $LIB\"; $S -- $L $(at 2 one two) $RING";
    let Some((_, run)) = open_mpi("library", words) else { return };
    assert_eq!(run.code, 0);
    assert!(run.stdout.contains("ring: 4 ranks, checksum 20"), "{}", run.stdout);
    says(
        &run,
        &[
            "ranks 2-3 have not come",
            "not traced (LD_PRELOAD or the capture library did not get to that host)",
        ],
    );
    says(&run, &["2 of 4 ranks, 14 calls"]);
}

/// What a run kept until it was killed is all there, and stays while nobody knows whether ranks on other hosts still run.
#[test]
#[ignore = "needs MPI and root; run `make e2e`"]
fn who_is_killed() {
    let cases = [
        ("rank", "on two \"kill -9 $(ls x.rfn.parts | sed -n 's/^3-two-\\([0-9]*\\)-0.part$/\\1/p')\""),
        ("host", "on two \"kill -9 -1\""),
        ("launcher", "kill -9 $(pgrep -P $run mpiexec)"),
    ];
    for (name, kill) in cases {
        let words = format!(
            "$R -o x.rfn -- $L $(at 2 one two) $AWAITING $FOLDER & run=$!
             await ../ready.0 ../ready.1 ../ready.2 ../ready.3
             {kill}
             wait $run; echo ended $?"
        );
        let Some((hosts, run)) = open_mpi(&format!("kill-{name}"), &words) else { return };
        assert!(run.stdout.contains("ended") && !run.stdout.contains("ended 0"), "{}", run.stdout);
        says(&run, &["4 ranks, 92 calls", "x.rfn (partial"]);
        let info = info(&hosts.out.join("x.rfn"));
        assert!(info.contains("one (rank 0-1), two (rank 2-3)"), "{info}");
    }
}

/// Ranks on another host outlive their launcher. Nothing of theirs is touched, and the next run has another name.
#[test]
#[ignore = "needs MPI and root; run `make e2e`"]
fn living_ranks_of_another_host_keep_what_they_have() {
    let words = "$R -o x.rfn -- $L $(at 1 one two) $AWAITING $FOLDER & run=$!
        await ../ready.0 ../ready.1
        on two 'kill -9 $(pgrep hydra)'
        kill -9 $(pgrep -P $run mpiexec) $(pgrep hydra)
        wait $run
        until_written x.2.rfn $R --force -o x.rfn -- $L $(at 1 one two) $RING
        ls x.rfn.parts
        on two 'pgrep -c awaiting'";
    let Some((hosts, run)) = on(Library::Mpich, "living", words) else { return };
    says(&run, &["2 ranks, 14 calls", "x.2.rfn"]);
    says(&run, &["rank 1 on two: nobody can tell from here whether they still run"]);
    says(&run, &["may; this one writes", "x.2.rfn"]);
    assert!(info(&hosts.out.join("x.2.rfn")).contains(", complete"));
    let kept = |name: &String| name.starts_with("1-two-") && name.ends_with(".part");
    assert!(names(&hosts.out.join("x.rfn.parts")).iter().any(kept), "{}", run.stdout);
    assert_eq!(run.stdout.lines().last(), Some("1"), "it still runs: {}", run.stdout);
}

/// Parts on a disk of each host: nothing of them is left after a good run, and after a bad one all of it is found.
#[test]
#[ignore = "needs MPI and root; run `make e2e`"]
fn parts_on_local_disks() {
    let words = "for h in one two; do on $h \"mkdir -p $FOLDER/disk; mount -t tmpfs own $FOLDER/disk\"; done
        $R --parts $FOLDER/disk -o good.rfn -- $L $(at 2 one two) $RING
        for h in one two; do on $h \"ls -A $FOLDER/disk | wc -l\"; done
        $R --parts $FOLDER/disk -o bad.rfn -- $L $(at 2 one two) $AWAITING $FOLDER & run=$!
        await ../ready.0 ../ready.1 ../ready.2 ../ready.3
        on two 'kill -9 -1'
        wait $run
        on two \"cp -r $FOLDER/disk/* $FOLDER/of-two\"
        $REFRAIN recover bad.rfn.parts ../of-two -o all.rfn";
    let Some((hosts, run)) = open_mpi("disks", words) else { return };
    assert_eq!(run.code, 0);
    says(&run, &["4 ranks, 28 calls", "good.rfn"]);
    assert!(info(&hosts.out.join("good.rfn")).contains(", complete"));
    let left: Vec<&str> = run.stdout.lines().filter(|line| line.trim().parse::<u32>().is_ok()).collect();
    assert_eq!(left, ["0", "0"], "{}", run.stdout);
    // On the host of `refrain run` only its own ranks are found; it says where the others are.
    says(&run, &["2 of 4 ranks, 46 calls", "bad.rfn (partial"]);
    says(&run, &["what ranks kept elsewhere is on two in"]);
    says(&run, &["4 ranks, 92 calls", "all.rfn (partial"]);
}
