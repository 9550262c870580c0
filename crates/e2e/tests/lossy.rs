//! What `--lossy` loses of real runs, and that it loses nothing else: the trace beside what the witness saw of the same
//! run. Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use std::collections::{BTreeMap, BTreeSet};

use refrain_e2e::json::Json;
use refrain_e2e::run::{self, Special, Traced};
use refrain_e2e::{Library, Program};

const RANKS: u32 = 4;

/// Runs the program with these words. The trace must be whole, and say what it lacks.
fn traced(library: Library, program: &Program, words: &'static str, more: &[(&'static str, &str)]) -> Traced {
    traced_on(RANKS, library, program, words, more)
}

fn traced_on(
    ranks: u32,
    library: Library,
    program: &Program,
    words: &'static str,
    more: &[(&'static str, &str)],
) -> Traced {
    let environment = [&[("REFRAIN_LOSSY", words)], more].concat();
    let special = Special { environment: &environment, ..Special::default() };
    let traced = run::traced_special(library, program, ranks, &special);
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

/// How many symbols, rules and streams a trace has, and the bytes that tell them. What else is in it (time, notes, the
/// command) is as long as its digits.
fn folded(traced: &Traced) -> ([i64; 4], i64) {
    let said = run::refrain(&["info", "--json", &traced.trace.to_string_lossy()]).stdout;
    // A fraction, which the reader of these tests does not know.
    let (before, after) = said.split_once("\"bytes_per_call\":").unwrap();
    let info = Json::parse(&format!("{before}{}", after.split_once(',').unwrap().1)).unwrap();
    let count = |key: &str| info.get(key).int().unwrap_or_else(|| panic!("{info}"));
    let bytes = |section: &&str| info.get("sections").get(section).int().unwrap_or(0);
    let sections = ["symbols", "structure", "ranks", "streams", "blocks"];
    (["symbols", "rules", "streams", "kinds_of_ranks"].map(count), sections.iter().map(bytes).sum())
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

/// The paper's threshold: whatever is not constant becomes a histogram, however concise it is.
#[test]
#[ignore = "needs MPI: `make test`"]
fn histograms_from_the_second_number_on() {
    for library in Library::ALL {
        let program = Program::named("random_partners").with(&["60"]);
        let traced = traced(library, &program, "histograms=1:16", &[]);
        assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
        let said = "peers and counts that take more than 1 number to tell; they are sorted, at most 16 different ones";
        assert!(info(&traced).contains(said), "{}", info(&traced));
        let (mut reordered, mut binned) = (0, 0);
        for (rank, (dump, witness)) in traced.dump().iter().zip(traced.witness()).enumerate() {
            for function in ["MPI_Isend", "MPI_Irecv"] {
                for argument in ["dest", "source", "count"] {
                    let of = |calls: &[Json]| all(&named(calls, function), argument);
                    let (kept, seen) = (of(dump), of(&witness));
                    assert_eq!(kept.len(), seen.len(), "rank {rank}");
                    assert!(kept.is_sorted(), "rank {rank}, {argument} of {function}: {kept:?}");
                    let different = |numbers: &[i64]| numbers.iter().collect::<BTreeSet<_>>().len();
                    assert!(different(&kept) <= 16, "rank {rank}, {argument} of {function}: {kept:?}");
                    reordered += usize::from(kept != seen && different(&kept) == different(&seen));
                    binned += usize::from(different(&kept) < different(&seen));
                }
            }
        }
        assert!(reordered > 0 && binned > 0, "{reordered} {binned}");
    }
}

/// What the counts of a call are, in bytes, where each must be the same; their displacements are those of such blocks.
/// Nothing for arrays that are not there, or empty.
fn one_block(call: &Json, counts: &str, displacements: &str, datatype: &str) -> Option<i64> {
    let (counts, displacements) = (list(call, counts), list(call, displacements));
    let first = *counts.first()?;
    assert!(counts.iter().all(|count| *count == first), "{call}");
    let packed: Vec<i64> = (0..).zip(&counts).map(|(k, count)| k * count).collect();
    assert_eq!(displacements, packed, "{call}");
    let size = match call.get("args").get(datatype).text() {
        Some("MPI_INT") => 4,
        // The one that `alltoallv_kin` makes.
        _ => 8,
    };
    Some(first * size)
}

const SENT: [&str; 3] = ["sendcounts", "sdispls", "sendtype"];
const RECEIVED: [&str; 3] = ["recvcounts", "rdispls", "recvtype"];

/// As ScalaTrace has it: one mean over all ranks, the same where it is sent and where it is received, so that the trace is
/// as large whatever the number of steps.
#[test]
#[ignore = "needs MPI: `make test`"]
fn averages() {
    for library in Library::ALL {
        for ranks in [2, 3, 4] {
            let mut sizes = Vec::new();
            for steps in [&["5"], &["20"], &["80"]] {
                let program = Program::named("alltoallv").with(steps);
                let traced = traced_on(ranks, library, &program, "averages", &[]);
                assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
                let (mut least, mut most, mut sum, mut counts) = (i64::MAX, 0, 0, 0);
                let mut kept = BTreeSet::new();
                for (dump, witness) in traced.dump().iter().zip(traced.witness()) {
                    let (calls, seen) = (named(dump, "MPI_Alltoallv"), named(&witness, "MPI_Alltoallv"));
                    assert_eq!(calls.len(), steps[0].parse::<usize>().unwrap());
                    assert_eq!(calls.len(), seen.len());
                    for call in calls {
                        assert_eq!(list(call, "sendcounts").len(), ranks as usize);
                        kept.extend(one_block(call, SENT[0], SENT[1], SENT[2]));
                        kept.extend(one_block(call, RECEIVED[0], RECEIVED[1], RECEIVED[2]));
                    }
                    for count in seen.iter().flat_map(|call| list(call, "sendcounts")) {
                        (least, most) = (count.min(least), count.max(most));
                        (sum, counts) = (sum + count, counts + 1);
                    }
                    assert_eq!(named(dump, "MPI_Alltoall").len(), named(&witness, "MPI_Alltoall").len());
                }
                let mean = (2 * sum + counts) / (2 * counts);
                assert_eq!(kept, BTreeSet::from([4 * mean]), "{ranks} ranks, {steps:?}");
                assert!(least < most);
                let info = info(&traced);
                let note = format!("averages: the {counts} sendcounts of MPI_Alltoallv were from {least} (");
                let note = info.lines().find(|line| line.contains(&note)).unwrap_or_else(|| panic!("{info}"));
                assert!(note.contains(&format!("to {most} (")), "{note}");
                assert!(info.contains(", complete"), "{info}");
                sizes.push(folded(&traced));
            }
            let (first, bytes) = sizes[0];
            // Eighty is a longer number than five, and what is packed together varies by a byte or two.
            let same = |(counts, other): &([i64; 4], i64)| *counts == first && bytes.abs_diff(*other) <= 6;
            assert!(sizes.iter().all(same), "{library:?}, {ranks} ranks: {sizes:?}");
        }
    }
}

/// The blocks that calls of a function on a communicator have, over all ranks, what is sent and what is received.
fn both_sides(dumps: &[Vec<Json>]) -> BTreeMap<(String, String), [BTreeSet<i64>; 2]> {
    let mut blocks: BTreeMap<(String, String), [BTreeSet<i64>; 2]> = BTreeMap::new();
    for call in dumps.iter().flatten().filter(|call| name(call).contains("lltoallv")) {
        let comm = call.get("args").get("comm").text().unwrap_or("?").to_owned();
        // In place: another kind of call, of which there is nothing to send.
        let place = if list(call, "sendcounts").is_empty() { " in place" } else { "" };
        let [sent, received] = blocks.entry((format!("{}{place}", name(call)), comm)).or_default();
        sent.extend(one_block(call, SENT[0], SENT[1], SENT[2]));
        received.extend(one_block(call, RECEIVED[0], RECEIVED[1], RECEIVED[2]));
    }
    blocks
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn averages_on_communicators_with_other_datatypes_and_of_kin() {
    for library in Library::ALL {
        for (ranks, split) in [(2, "on"), (3, "on"), (4, "on"), (4, "off")] {
            for steps in [&["6"], &["30"]] {
                let program = Program::unwitnessed("alltoallv_kin.c").with(steps);
                let traced = traced_on(ranks, library, &program, "averages", &[("REFRAIN_SPLIT", split)]);
                assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
                assert!(info(&traced).contains(", complete"), "{}", info(&traced));
                let blocks = both_sides(&traced.dump());
                // World, rows, neighbours, and one communicator for each step.
                assert!(blocks.len() >= 3 + steps[0].parse::<usize>().unwrap(), "{blocks:?}");
                for (of, [sent, received]) in &blocks {
                    assert_eq!(received.len(), 1, "{library:?}, {ranks} ranks: {of:?} {received:?}");
                    assert!(received.iter().all(|bytes| *bytes > 0), "{of:?}");
                    assert!(of.0.ends_with("in place") || sent == received, "{of:?}: {sent:?} {received:?}");
                }
            }
        }
    }
}

/// Means are those of the ranks that are there, one for each function, since a rank that ended early knows of fewer calls.
#[test]
#[ignore = "needs MPI: `make test`"]
fn averages_of_a_run_whose_rank_was_killed() {
    for library in Library::ALL {
        let program = Program::unwitnessed("alltoallv_kin.c").with(&["12", "8"]);
        let traced = traced(library, &program, "averages", &[]);
        assert_ne!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
        let dump = traced.dump();
        let made: Vec<usize> = dump.iter().map(|calls| named(calls, "MPI_Alltoallv").len()).collect();
        assert!(made.iter().all(|calls| *calls >= 16), "{made:?}");
        let mut blocks: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
        for ((function, _), [sent, received]) in both_sides(&dump) {
            let function = function.trim_end_matches(" in place").trim_end_matches("_c").to_owned();
            blocks.entry(function).or_default().extend(sent.iter().chain(&received));
        }
        assert!(blocks.contains_key("MPI_Ialltoallv"), "{blocks:?}");
        // Of these there are several kinds.
        blocks.retain(|function, _| function != "MPI_Alltoallv");
        assert!(blocks.values().all(|bytes| bytes.len() == 1), "{library:?}: {blocks:?}");
        // Rows have one name. All ranks of one may have come equally far, and have a mean of their own then.
        let is_row = |(_, comm): &(String, String)| comm == "world.0";
        let (mut all, rows) = (both_sides(&dump), [both_sides(&dump[..2]), both_sides(&dump[2..])]);
        all.retain(|of, _| !is_row(of));
        for (of, [sent, received]) in
            all.into_iter().chain(rows.into_iter().flatten().filter(|(of, _)| is_row(of)))
        {
            assert!(
                received.len() == 1 && (sent.is_empty() || sent == received),
                "{of:?} {sent:?} {received:?}"
            );
        }
        let info = info(&traced);
        assert!(info.contains("averages: the ") && info.contains("killed or crashed"), "{info}");
    }
}

/// Which of several stacks stands for the others does not depend on the rank that came to it first.
#[test]
#[ignore = "needs MPI: `make test`"]
fn the_same_sites_stand_for_others_on_every_rank() {
    for library in Library::ALL {
        let mut runs = Vec::new();
        for begin in [&["0"], &["1"], &["2"]] {
            let program = Program::unwitnessed("sites_order.c").with(begin);
            let environment =
                [("REFRAIN_LOSSY", "sites=2"), ("REFRAIN_STACKS", "full"), ("REFRAIN_TIME", "off")];
            let special = Special { environment: &environment, unwitnessed: true, ..Special::default() };
            let traced = run::traced_special(library, &program, RANKS, &special);
            assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
            let trace = traced.trace.to_string_lossy();
            let verified = run::refrain(&["verify", &trace]);
            assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
            let shown = run::refrain(&["dump", &trace, "--stacks", "--only", "MPI_Allreduce"]);
            let mut ranks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for line in shown.stdout.lines() {
                let (rank, call) = line.strip_prefix('[').and_then(|line| line.split_once(']')).unwrap();
                let (_, place) = call.split_once(" at exchange ").unwrap_or_else(|| panic!("{line}"));
                ranks.entry(rank).or_default().push(place);
            }
            assert_eq!(ranks.len(), RANKS as usize, "{}", shown.stdout);
            let places: BTreeSet<&str> = ranks.values().flatten().copied().collect();
            assert_eq!(places.len(), 1, "{}", shown.stdout);
            runs.push((places.into_iter().map(str::to_owned).collect::<Vec<_>>(), folded(&traced).0));
        }
        assert!(runs.iter().all(|run| *run == runs[0]), "{library:?}: {runs:?}");
    }
}

/// The tags that a call names.
fn named_tags(call: &Json) -> Vec<i64> {
    let args = call.get("args");
    ["tag", "sendtag", "recvtag"].iter().filter_map(|tag| args.get(tag).int()).collect()
}

/// The same, and those of its statuses.
fn tags(call: &Json) -> Vec<i64> {
    let args = call.get("args");
    let mut tags = named_tags(call);
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
            assert!(kept.iter().all(|tag| *tag == 0), "{kept:?}");
            // The witness also writes down tags of statuses that have none.
            let count = |calls: &[Json]| calls.iter().flat_map(named_tags).count();
            assert_eq!(count(dump), count(&witness));
            assert!(kept.len() > count(dump), "no status has a tag");
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
