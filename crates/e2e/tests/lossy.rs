//! What `--lossy` loses of real runs, and that it loses nothing else: the trace beside what the witness saw of the same
//! run. Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use refrain_e2e::json::Json;
use refrain_e2e::run::{self, Special, Traced};
use refrain_e2e::{Library, Program};

const RANKS: u32 = 4;

/// Runs the program with these words. The trace must be whole, and say what it lacks.
fn traced(library: Library, program: &Program, words: &'static str, more: &[(&'static str, &str)]) -> Traced {
    let environment = [&[("REFRAIN_LOSSY", words)], more].concat();
    let special = Special { environment: &environment, ..Special::default() };
    let traced = run::traced_special(library, program, RANKS, &special);
    let said = format!("--lossy {words}");
    let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
    assert_eq!(verified.code, 0, "{}{}\n{}", verified.stdout, verified.stderr, traced.outcome.stderr);
    assert!(verified.stdout.contains(&said), "{}", verified.stdout);
    let dumped = run::refrain(&["dump", &traced.trace.to_string_lossy()]);
    assert!(dumped.stderr.contains(&said), "{}", dumped.stderr);
    traced
}

fn info(traced: &Traced) -> String {
    run::refrain(&["info", &traced.trace.to_string_lossy()]).stdout
}

fn name(call: &Json) -> &str {
    call.get("call").text().unwrap_or("?")
}

fn named<'a>(calls: &'a [Json], of: &str) -> Vec<&'a Json> {
    calls.iter().filter(|call| name(call) == of).collect()
}

/// An argument of all these calls.
fn all(calls: &[&Json], argument: &str) -> Vec<i64> {
    calls.iter().filter_map(|call| call.get("args").get(argument).int()).collect()
}

fn list(call: &Json, argument: &str) -> Vec<i64> {
    call.get("args").get(argument).list().iter().filter_map(Json::int).collect()
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn histograms() {
    for library in Library::ALL {
        let program = Program::named("random_partners").with(&["60"]);
        let traced = traced(library, &program, "histograms=16", &[]);
        assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
        assert!(info(&traced).contains("the order of peers and counts"), "{}", info(&traced));
        for (rank, (dump, witness)) in traced.dump().iter().zip(traced.witness()).enumerate() {
            let names = |calls: &[Json]| calls.iter().map(|call| name(call).to_owned()).collect::<Vec<_>>();
            assert_eq!(names(dump), names(&witness), "rank {rank}");
            let (dump, witness) = (named(dump, "MPI_Isend"), named(&witness, "MPI_Isend"));
            // Four ranks: each kept as often as it came.
            let mut partners = all(&witness, "dest");
            assert_ne!(all(&dump, "dest"), partners, "rank {rank}");
            partners.sort_unstable();
            assert_eq!(all(&dump, "dest"), partners, "rank {rank}");
            // Two hundred sizes: means of sixteen bins.
            let (sizes, mut bins) = (all(&witness, "count"), all(&dump, "count"));
            assert_eq!(bins.len(), sizes.len(), "rank {rank}");
            let (whole, kept): (i64, i64) = (sizes.iter().sum(), bins.iter().sum());
            assert!((whole - kept).abs() <= sizes.len() as i64 / 2, "rank {rank}: {kept} of {whole}");
            bins.dedup();
            assert!((8..=16).contains(&bins.len()), "rank {rank}: {bins:?}");
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn averages() {
    for library in Library::ALL {
        let traced = traced(library, &Program::named("alltoallv"), "averages", &[]);
        assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
        let (mut least, mut most, mut calls) = (i64::MAX, 0, 0);
        for (dump, witness) in traced.dump().iter().zip(traced.witness()) {
            let pairs = named(dump, "MPI_Alltoallv").into_iter().zip(named(&witness, "MPI_Alltoallv"));
            for (kept, seen) in pairs {
                for (counts, displacements) in [("sendcounts", "sdispls"), ("recvcounts", "rdispls")] {
                    let (mean, counts) = (list(kept, counts), list(seen, counts));
                    assert!(mean.iter().all(|count| *count == mean[0]), "{kept}");
                    let lost = mean.iter().sum::<i64>() - counts.iter().sum::<i64>();
                    assert!(
                        mean.len() == counts.len() && lost.abs() <= i64::from(RANKS / 2),
                        "{kept} {seen}"
                    );
                    let packed: Vec<i64> = (0..i64::from(RANKS)).map(|k| k * mean[0]).collect();
                    assert_eq!(list(kept, displacements), packed);
                }
                let counts = list(seen, "sendcounts");
                least = counts.iter().copied().min().unwrap_or(i64::MAX).min(least);
                most = counts.iter().copied().max().unwrap_or(0).max(most);
                calls += 1;
            }
            assert_eq!(named(dump, "MPI_Alltoall").len(), named(&witness, "MPI_Alltoall").len());
        }
        assert!(calls > 0 && least < most);
        let info = info(&traced);
        let note = |line: &&str| line.contains("averages: sendcounts of MPI_Alltoallv were");
        let note = info.lines().find(note).unwrap_or_else(|| panic!("{info}"));
        assert!(
            note.contains(&format!("from {least} (")) && note.contains(&format!("to {most} (")),
            "{note}"
        );
        assert!(info.contains(", complete"), "{info}");
    }
}

/// The tags of all calls, and those of their statuses.
fn tags(call: &Json) -> Vec<i64> {
    let args = call.get("args");
    let mut tags: Vec<i64> =
        ["tag", "sendtag", "recvtag"].iter().filter_map(|tag| args.get(tag).int()).collect();
    tags.extend(args.get("status").get("tag").int());
    tags.extend(args.get("array_of_statuses").list().iter().filter_map(|status| status.get("tag").int()));
    tags
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn tags_that_matter_stay_and_others_go() {
    for library in Library::ALL {
        let traced_as = |program: &str| {
            let traced = traced(library, &Program::named(program), "tags", &[]);
            assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
            traced
        };
        // Everybody with everybody, one tag after the other.
        let dropped = traced_as("completion");
        for (dump, witness) in dropped.dump().iter().zip(dropped.witness()) {
            let witnessed: Vec<i64> = witness.iter().flat_map(tags).collect();
            assert!(witnessed.contains(&40) && witnessed.contains(&45));
            let kept: Vec<i64> = dump.iter().flat_map(tags).collect();
            assert!(kept.len() >= witnessed.len() && kept.iter().all(|tag| *tag == 0), "{kept:?}");
        }
        // Probes, cancelled receives, any tag.
        let stays = traced_as("p2p");
        for (dump, witness) in stays.dump().iter().zip(stays.witness()) {
            let sent = |calls: &[Json]| all(&named(calls, "MPI_Send"), "tag");
            assert_eq!(sent(dump), sent(&witness));
            assert!(sent(dump).iter().any(|tag| *tag != 0));
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn waits_for_the_same_requests_are_one() {
    for library in Library::ALL {
        let traced = traced(library, &Program::named("completion"), "waits", &[]);
        assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
        for (dump, witness) in traced.dump().iter().zip(traced.witness()) {
            // Each of three rounds: everything that was posted, and that nothing is left.
            let kept: Vec<Option<i64>> = named(dump, "MPI_Waitsome")
                .iter()
                .map(|call| call.get("args").get("outcount").int())
                .collect();
            let posted = Some(2 * i64::from(RANKS));
            assert_eq!(kept, [posted, None, posted, None, posted, None]);
            let done: usize = all(&named(&witness, "MPI_Waitsome"), "outcount").iter().sum::<i64>() as usize;
            assert_eq!(done, 6 * RANKS as usize);
            let first = named(dump, "MPI_Waitsome")[0];
            let indices: Vec<i64> = (0..2 * i64::from(RANKS)).collect();
            assert_eq!(list(first, "array_of_indices"), indices);
            // Others are as they were.
            let others = |calls: &[Json]| named(calls, "MPI_Waitany").len();
            assert_eq!(others(dump), others(&witness));
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn a_recovered_run_loses_the_same() {
    let program = Program::named("completion").with(&["20"]);
    let more = [("REFRAIN_TEST_DIE_IN_MERGE", "1"), ("REFRAIN_TEST_TAIL", "4096")];
    let traced = traced(Library::Mpich, &program, "tags,waits,averages,histograms=4", &more);
    assert_ne!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    for (dump, witness) in traced.dump().iter().zip(traced.witness()) {
        let kept: Vec<i64> = dump.iter().flat_map(tags).collect();
        assert!(!kept.is_empty() && kept.iter().all(|tag| *tag == 0), "{kept:?}");
        let done = |calls: &[Json]| all(&named(calls, "MPI_Waitsome"), "outcount").iter().sum::<i64>();
        assert_eq!(done(dump), done(&witness));
        assert!(named(dump, "MPI_Waitsome").len() <= named(&witness, "MPI_Waitsome").len());
    }
}
