//! `diff` on recordings made for it: it says what going through all calls says, without going through them.

use crate::common;

use std::path::Path;

use common::*;
use fastrand::Rng;
use refrain_encode::Reader;
use refrain_fold::bundle::Tally;
use refrain_model::Call;
use refrain_sites::Binaries;
use refrain_tracefile::Trace;
use refrain_tracefile::profile::Profile;
use refrain_views::diff::{self, Diff, Ignore, Report, Which, diff};

const EVERYTHING: Ignore = Ignore { pointers: false, sites: false, polls: false, requests: false };

fn compared(a: &Trace, b: &Trace, ignore: Ignore) -> Diff {
    diff(a, b, ignore, &mut |_| {}).unwrap()
}

fn text(a: &Trace, b: &Trace, ignore: Ignore) -> String {
    let found = compared(a, b, ignore);
    let names = (Binaries::new(&a.bundle.sites, &[]), Binaries::new(&b.bundle.sites, &[]));
    let rows = diff::rows((a, &names.0), (b, &names.1)).unwrap();
    let report = Report {
        diff: &found,
        traces: (a, b),
        files: ("a.rfn", "b.rfn"),
        names: (&names.0, &names.1),
        rows: (!found.is_equal() && found.ranks.0 != found.ranks.1).then_some(&rows),
        slower: None,
        all: false,
    };
    let mut out = Vec::new();
    diff::write_text(&report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// By rank and thread, the number of the first call that differs: all calls are read.
fn slowly(a: &Trace, b: &Trace) -> Vec<((u32, u32), u64)> {
    let (readers, mut found) = ((Reader::new(&a.bundle), Reader::new(&b.bundle)), Vec::new());
    for rank in 0..a.meta.ranks {
        for thread in readers.0.threads(rank) {
            let of = |reader: &Reader<'_>, trace: &Trace| -> Vec<(Call, u64)> {
                let mut calls = reader.calls(rank, thread).unwrap();
                let mut all = Vec::new();
                while let Some(call) = calls.next() {
                    let site = trace.bundle.symbols[calls.symbol().unwrap() as usize].site;
                    all.push((call.unwrap(), site));
                }
                all
            };
            let (x, y) = (of(&readers.0, a), of(&readers.1, b));
            if x != y {
                let same = x.iter().zip(&y).take_while(|(x, y)| x == y).count();
                found.push(((rank, thread), same as u64));
            }
        }
    }
    found
}

fn quickly(found: &Diff) -> Vec<((u32, u32), u64)> {
    let one = |first: &diff::First| {
        let (thread, number) = (first.thread, first.number.0);
        first.ranks.iter().map(move |rank| ((rank, thread), number)).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = found.firsts.iter().flat_map(one).collect();
    all.sort_unstable();
    all
}

fn irecv(segment: i64, count: i64, source: i64, request: i64) -> Encoded {
    let call = call("MPI_Irecv").heap(segment, 8 * count).number(count).object("MPI_INT").tagged(source);
    call.tagged(7).object("MPI_COMM_WORLD").tagged(2 * request)
}

/// A poll with so many failed ones before it.
fn iprobe(found: bool, failed: i64) -> Encoded {
    let asked = call("MPI_Iprobe").tagged(1).tagged(0).object("MPI_COMM_WORLD").tagged(found.into());
    if found { asked.status(1, 0, 8).number(failed) } else { asked.no_status().number(failed) }
}

fn alltoallv(counts: &[i64]) -> Encoded {
    let sent = call("MPI_Alltoallv").buffer().list(counts).list(&vec![0; counts.len()]).object("MPI_INT");
    sent.buffer().list(counts).list(&vec![4; counts.len()]).object("MPI_INT").object("MPI_COMM_WORLD")
}

/// A program: loops of calls with numbers that go by step and rank.
fn program(random: &mut Rng, rank: i64) -> Vec<Encoded> {
    let mut calls = vec![call("MPI_Barrier").object("MPI_COMM_WORLD")];
    for phase in 0..1 + random.u64(..3) as i64 {
        let (steps, body, stride) = (1 + random.u64(..30) as i64, random.u64(..4), random.u64(..3) as i64);
        for step in 0..steps {
            calls.push(send(8 + stride * step + rank % 2, "MPI_INT").from(&[0x10, 0x20 + phase as u64]));
            if body > 0 {
                calls.push(irecv(phase, 4 + step % 3, -1, step % 2).from(&[0x10, 0x40]));
            }
            if body > 1 {
                let lengths: Vec<i64> = (0..1 + step % 2).map(|i| 3 * i + rank).collect();
                calls.push(alltoallv(&lengths).from(&[0x10, 0x50]));
            }
            if body > 2 {
                calls.push(iprobe(step % 4 > 0, step % 5).from(&[0x10, 0x60]));
            }
        }
        calls.push(call("MPI_Barrier").object("MPI_COMM_WORLD").from(&[0x70]));
    }
    calls
}

fn ranks(seed: u64, ranks: i64) -> Vec<Vec<Vec<Encoded>>> {
    // The same program on all, with numbers of the rank.
    (0..ranks).map(|rank| vec![program(&mut Rng::with_seed(seed), rank)]).collect()
}

#[test]
fn a_recording_is_equal_to_itself_however_it_was_merged_and_folded() {
    for seed in 1..12 {
        let calls = ranks(seed, 5);
        let (rules, loops) = (trace_of(&calls), looped(&calls));
        for order in [[4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
            for (a, in_loops) in [(&rules, false), (&loops, true)] {
                let other = merged_in(order.into_iter(), &calls, in_loops);
                let found = compared(a, &other, EVERYTHING);
                assert!(found.is_equal(), "{seed} {found:?}");
                assert_eq!(found.read, 0, "nothing has to be decoded");
            }
        }
        let found = compared(&rules, &loops, EVERYTHING);
        assert!(found.is_equal(), "{seed} {found:?}");
        assert!(text(&rules, &rules, EVERYTHING).starts_with("equal: 5 ranks, "));
    }
}

#[test]
fn stored_traces_are_equal_to_themselves_and_to_no_other() {
    let mut traces = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            traces.push((path.clone(), refrain_tracefile::open(&path).unwrap()));
        }
    }
    assert!(traces.len() > 10);
    for (path, trace) in &traces {
        let found = compared(trace, trace, EVERYTHING);
        assert!(found.is_equal(), "{} {found:?}", path.display());
        for (other, another) in &traces {
            let found =
                compared(trace, another, Ignore { pointers: true, sites: true, polls: true, requests: true });
            assert_eq!(found.is_equal(), path == other, "{} {}", path.display(), other.display());
        }
    }
}

#[test]
fn one_number_of_one_call_of_one_rank_is_found() {
    let (mut random, mut tried) = (Rng::with_seed(99), 0);
    for seed in 1..60 {
        let calls = ranks(seed, 4);
        let rank = random.u64(..4) as usize;
        let at = random.u64(..calls[rank][0].len() as u64) as usize;
        let numbers = calls[rank][0][at].numbers();
        if numbers == 0 {
            continue;
        }
        let mut other = calls.clone();
        // If it is a length or a flag there may be no such call: those that cannot be read are left out.
        let number = random.u64(..numbers as u64) as usize;
        let by = if random.u64(..2) == 0 { 1 } else { 1000 };
        other[rank][0][at] = other[rank][0][at].clone().changed(number, by);
        let traces = [(trace_of(&calls), trace_of(&other)), (looped(&calls), looped(&other))];
        for (a, b) in &traces {
            let readable = Reader::new(&b.bundle).calls(rank as u32, 0).unwrap().all(|call| call.is_ok());
            if !readable {
                continue;
            }
            let found = compared(a, b, EVERYTHING);
            assert_eq!(quickly(&found), slowly(a, b), "{seed}");
            if found.is_equal() {
                continue; // Any number but nought is a flag that is set.
            }
            tried += 1;
            assert_eq!(found.firsts.len(), 1);
            assert_eq!(found.firsts[0].ranks.to_string(), rank.to_string());
            assert!(found.read < 100, "{}", found.read);
        }
        let readable = Reader::new(&traces[1].1.bundle).calls(rank as u32, 0).unwrap().all(|c| c.is_ok());
        if readable {
            let (a, b) = (&traces[0].0, &traces[1].1);
            assert_eq!(quickly(&compared(a, b, EVERYTHING)), slowly(a, b), "{seed}");
        }
    }
    assert!(tried > 60, "{tried}");
}

#[test]
fn calls_that_are_missing_more_or_others_are_found() {
    let mut random = Rng::with_seed(7);
    for seed in 1..60 {
        let calls = ranks(seed, 3);
        let mut other = calls.clone();
        for _ in 0..1 + random.u64(..2) {
            let of = &mut other[random.u64(..3) as usize][0];
            let at = random.u64(..of.len() as u64) as usize;
            match random.u64(..4) {
                0 => drop(of.remove(at)),
                1 => of.insert(at, send(3, "MPI_DOUBLE")),
                2 => of[at] = call("MPI_Barrier").object("MPI_COMM_SELF"),
                _ => of.truncate(at),
            }
        }
        for (a, b) in [
            (trace_of(&calls), trace_of(&other)),
            (looped(&calls), looped(&other)),
            (looped(&calls), trace_of(&other)),
        ] {
            let found = compared(&a, &b, EVERYTHING);
            assert_eq!(quickly(&found), slowly(&a, &b), "{seed}");
            let found = compared(&b, &a, EVERYTHING);
            assert_eq!(quickly(&found), slowly(&b, &a), "{seed}");
        }
    }
}

#[test]
fn a_change_in_a_million_calls_takes_no_reading() {
    let program = |steps: i64, changed: Option<i64>| -> Vec<Encoded> {
        let step = |step: i64| {
            let count = if changed == Some(step) { 9 } else { 8 };
            [
                send(count, "MPI_INT"),
                irecv(0, 8, 1, 0),
                alltoallv(&[1, 2]),
                call("MPI_Barrier").object("MPI_COMM_WORLD"),
            ]
        };
        (0..steps).flat_map(step).collect()
    };
    // Loops take longer to be found; to be compared they do not.
    for (in_loops, steps) in [(false, 250_000), (true, 25_000)] {
        let (same, other) = (program(steps, None), program(steps, Some(17_777)));
        let of = |calls: &Vec<Encoded>| {
            let one = rank_bundle_as((0, 1), std::slice::from_ref(calls), in_loops);
            let mut trace = alike(1, &calls[..1]);
            trace.bundle = one;
            trace.bundle.canonical().unwrap();
            trace
        };
        let (a, b) = (of(&same), of(&other));
        let found = compared(&a, &b, EVERYTHING);
        assert_eq!(quickly(&found), [((0, 0), 4 * 17_777)]);
        assert_eq!(found.read, 1);
        let row = found.functions.iter().find(|row| row.name == "MPI_Send").unwrap();
        assert_eq!((row.calls, row.differ), ((steps as u64, steps as u64), Some(1)));
        if in_loops {
            continue;
        }
        assert_eq!(
            text(&a, &b, EVERYTHING),
            "different: on 1 of 1 rank (not compared: time)\n  \
               A  a.rfn: 1 rank, 1,000,000 calls\n  \
               B  b.rfn: 1 rank, 1,000,000 calls\n\n\
             rank 0, call 71,108: MPI_Send\n  \
               count: 8 in A, 9 in B\n\n\
             function  calls in A     in B  differ\n\
             MPI_Send     250,000  250,000       1\n\
             The calls of 3 other functions are equal.\n"
        );
    }
}

#[test]
fn ranks_that_differ_alike_are_one_line() {
    let calls = |count: i64| vec![send(count, "MPI_INT"), send(4, "MPI_INT")];
    let a = trace_of(&vec![vec![calls(1)]; 6]);
    let mut other = vec![vec![calls(1)]; 6];
    for rank in [1, 3, 5] {
        other[rank] = vec![calls(2)];
    }
    let found = compared(&a, &trace_of(&other), EVERYTHING);
    assert_eq!(found.firsts.len(), 1);
    assert_eq!(found.firsts[0].ranks.to_string(), "1-5:2");
    let send = &found.functions[0];
    assert_eq!((send.calls, send.differ), ((12, 12), Some(3)));
    assert_eq!(found.firsts[0].changes[0].what, "count");
    assert_eq!((found.firsts[0].changes[0].a.as_str(), found.firsts[0].changes[0].b.as_str()), ("1", "2"));
}

#[test]
fn what_differs_in_symbols_hides_nothing_else() {
    let program = |op: &str, changed: i64| -> Vec<Encoded> {
        let reduce = |at: i64| {
            let call = call("MPI_Allreduce").buffer().buffer().number(if at == 7 { changed } else { 1 });
            call.object("MPI_INT").object("MPI_SUM").object("MPI_COMM_WORLD")
        };
        let scan = || {
            let call = call("MPI_Scan").buffer().buffer().number(1).object("MPI_INT");
            call.object(op).object("MPI_COMM_WORLD")
        };
        (0..10).flat_map(|at| [reduce(at), scan()]).collect()
    };
    for in_loops in [false, true] {
        let of = |calls: Vec<Encoded>| {
            let ranks = vec![vec![calls]; 3];
            if in_loops { looped(&ranks) } else { trace_of(&ranks) }
        };
        let (a, b) = (of(program("MPI_MAX", 1)), of(program("MPI_MIN", 2)));
        let found = compared(&a, &b, EVERYTHING);
        assert_eq!(quickly(&found), slowly(&a, &b));
        assert_eq!(found.firsts[0].number, (1, 1));
        assert_eq!(found.firsts[0].changes[0].what, "op");
        let differ: Vec<_> = found.functions.iter().map(|row| (row.name, row.differ)).collect();
        assert_eq!(differ, [("MPI_Allreduce", Some(3)), ("MPI_Scan", Some(30))]);
    }
}

#[test]
fn elements_of_arrays_and_fields_of_statuses_are_named() {
    let change = |x: Encoded, y: Encoded| {
        let found = compared(&alike(2, &[x]), &alike(2, &[y]), EVERYTHING);
        assert_eq!(found.firsts.len(), 1);
        let change = &found.firsts[0].changes[0];
        format!("{}: {} {}", change.what, change.a, change.b)
    };
    assert_eq!(change(alltoallv(&[1, 2, 3]), alltoallv(&[1, 2, 4])), "sendcounts[2]: 3 4");
    assert_eq!(change(alltoallv(&[1, 2]), alltoallv(&[1, 2, 4])), "sendcounts: 2 elements 3 elements");
    let recv = |tag| {
        let call = call("MPI_Recv").buffer().number(1).object("MPI_INT").tagged(1).tagged(0);
        call.object("MPI_COMM_WORLD").status(1, tag, 4)
    };
    assert_eq!(change(recv(5), recv(6)), "status.tag: 5 6");
    assert_eq!(change(contiguous(3, 0, 12), contiguous(3, 0, 24)), "extent: 12 24");
}

#[test]
fn where_buffers_lie_can_be_ignored() {
    let at = |heap: bool, offset: i64, count: i64| {
        let call = call("MPI_Send");
        let call = if heap { call.heap(3, offset) } else { call.stack_place(1, offset) };
        call.number(count).object("MPI_INT").tagged(1).tagged(9).object("MPI_COMM_WORLD")
    };
    let a: Vec<Encoded> = (0..50).map(|i| at(true, 8 * i, 4)).collect();
    // In another order of areas, so that symbols of one cannot be held against those of the other.
    let b: Vec<Encoded> = (0..50).map(|i| at(i % 3 == 0, -8 * i, 4)).collect();
    let c: Vec<Encoded> = (0..50).map(|i| at(i % 3 == 0, -8 * i, if i == 37 { 5 } else { 4 })).collect();
    let unkept: Vec<Encoded> = (0..50).map(|_| send(4, "MPI_INT")).collect();
    let pointers = Ignore { pointers: true, ..EVERYTHING };
    for in_loops in [false, true] {
        let of = |calls: &[Encoded]| {
            let ranks = vec![vec![calls.to_vec()]; 2];
            if in_loops { looped(&ranks) } else { trace_of(&ranks) }
        };
        assert!(!compared(&of(&a), &of(&b), EVERYTHING).is_equal());
        assert!(compared(&of(&a), &of(&b), pointers).is_equal());
        let found = compared(&of(&a), &of(&c), pointers);
        assert_eq!(quickly(&found), [((0, 0), 37), ((1, 0), 37)]);
        assert_eq!(found.firsts[0].changes.len(), 1);
        // A trace without addresses has none to compare, and says so.
        let mut without = of(&unkept);
        without.meta.options.push(("pointers".into(), "off".into()));
        let found = compared(&of(&a), &without, EVERYTHING);
        assert!(found.is_equal(), "{found:?}");
        assert_eq!(
            found.notes,
            ["A was recorded with addresses, B with --pointers off: buffers are not compared"]
        );
        assert_eq!(found.ignored, ["time", "pointers"]);
    }
    // Sentinels are no addresses.
    let all = |buffer: &str| {
        let call = call("MPI_Allreduce");
        let call = if buffer.is_empty() { call.heap(0, 0) } else { call.named(buffer) };
        call.heap(1, 0).number(1).object("MPI_INT").object("MPI_SUM").object("MPI_COMM_WORLD")
    };
    assert!(!compared(&alike(2, &[all("")]), &alike(2, &[all("MPI_IN_PLACE")]), pointers).is_equal());
}

#[test]
fn addresses_in_plain_numbers_can_be_ignored() {
    let get = |address: i64| call("MPI_Get_address").heap(0, 0).tagged(address);
    let pointers = Ignore { pointers: true, ..EVERYTHING };
    let (a, b) = (alike(2, &[get(0x7ffc_1234_5678)]), alike(2, &[get(0x55aa_1234_5000)]));
    assert!(!compared(&a, &b, EVERYTHING).is_equal());
    assert!(compared(&a, &b, pointers).is_equal());
    assert!(!compared(&a, &alike(2, &[get(64)]), pointers).is_equal());
    // A datatype made of addresses begins at one.
    let made = |lb: i64| {
        let call = call("MPI_Type_contiguous").number(1).object("MPI_INT").tagged(0).number(4);
        alike(2, &[call.number(lb).number(4)])
    };
    assert!(compared(&made(0x7ffc_1234_5678), &made(0x55aa_1234_5000), pointers).is_equal());
    assert!(!compared(&made(0), &made(8), pointers).is_equal());
}

/// Numbers of several parameters differ: what differs first is told, whichever parameter it is.
#[test]
fn the_first_of_several_differences_is_told() {
    let plain: Vec<Encoded> = vec![send(1, "MPI_INT"); 10];
    for (count, tag, first) in [(3, 7, "count"), (7, 3, "tag")] {
        let mut other = plain.clone();
        other[count] = other[count].clone().changed(0, 4);
        other[tag] = other[tag].clone().changed(2, 1);
        let found = compared(&alike(2, &plain), &alike(2, &other), EVERYTHING);
        let [only] = &found.firsts[..] else { panic!("{:?}", found.firsts) };
        assert_eq!((only.number, &*only.changes[0].what), ((3, 3), first));
    }
}

#[test]
fn failed_polls_can_be_ignored() {
    let polls = Ignore { polls: true, ..EVERYTHING };
    let barrier = || call("MPI_Barrier").object("MPI_COMM_WORLD");
    let a = vec![iprobe(true, 3), barrier(), iprobe(true, 0), barrier()];
    let more = vec![iprobe(true, 5), barrier(), iprobe(true, 9), barrier()];
    // Polls that are followed by something else are calls by themselves.
    let apart = vec![iprobe(false, 7), barrier(), barrier()];
    let none = vec![barrier(), iprobe(false, 0), barrier()];
    let one = |calls: &[Encoded]| alike(3, calls);
    assert!(compared(&one(&a), &one(&more), polls).is_equal());
    assert!(compared(&one(&apart), &one(&none), polls).is_equal());
    let said = text(&one(&a), &one(&more), polls);
    assert_eq!(said, "equal: 3 ranks, 21 calls in A, 54 in B (not compared: time, polls)\n");
    assert!(!compared(&one(&a), &one(&more), polls).is_about_order());
    assert!(!compared(&one(&a), &one(&none), polls).is_equal());
    let found = compared(&one(&a), &one(&more), EVERYTHING);
    assert_eq!(quickly(&found), [((0, 0), 3), ((1, 0), 3), ((2, 0), 3)]);
    assert_eq!(found.firsts[0].changes[0].what, "flag");
}

/// A copy of a handle that several requests have is any of them. How many requests, and all else, still counts.
#[test]
fn which_request_it_is_can_be_ignored() {
    let requests = Ignore { requests: true, ..EVERYTHING };
    let all = |list: &[i64]| {
        let call = call("MPI_Waitall").number(list.len() as i64).elements(list);
        alike(2, &[call.named("MPI_STATUSES_IGNORE"), send(1, "MPI_INT")])
    };
    let (a, b) = (all(&[0, 2, 4]), all(&[2, 0, 4]));
    assert!(!compared(&a, &b, EVERYTHING).is_equal());
    let found = compared(&a, &b, requests);
    assert!(found.is_equal());
    assert_eq!(found.ignored, ["time", "requests"]);
    assert!(!compared(&a, &all(&[0, 2]), requests).is_equal());
    let wait = |request: i64, buffer: i64| {
        let place = call("MPI_Get_address").heap(0, buffer).tagged(64);
        alike(2, &[call("MPI_Wait").tagged(request).named("MPI_STATUS_IGNORE"), place])
    };
    assert!(compared(&wait(0, 8), &wait(2, 8), requests).is_equal());
    // Where things lie counts as before.
    assert!(!compared(&wait(0, 8), &wait(2, 16), requests).is_equal());
}

#[test]
fn completions_in_other_portions_can_be_ignored() {
    let polls = Ignore { polls: true, ..EVERYTHING };
    let some = |requests: &[i64], done: &[i64]| {
        let call = call("MPI_Waitsome").number(requests.len() as i64).elements(requests);
        call.tagged(done.len() as i64).elements(done).named("MPI_STATUSES_IGNORE")
    };
    let null = 2 * i64::from(refrain_model::constant("MPI_REQUEST_NULL").unwrap().id) + 1;
    let whole = [some(&[0, 2, 4], &[2, 0, 1])];
    let parts = [some(&[0, 2, 4], &[1]), some(&[0, null, 4], &[0, 2])];
    let less = [some(&[0, 2, 4], &[1]), some(&[0, null, 4], &[0])];
    let of = |calls: &[Encoded]| alike(2, calls);
    assert!(!compared(&of(&whole), &of(&parts), EVERYTHING).is_equal());
    assert!(compared(&of(&whole), &of(&parts), polls).is_equal());
    assert!(!compared(&of(&whole), &of(&less), polls).is_equal());
}

#[test]
fn call_sites_count_unless_they_are_ignored() {
    let calls = |site: u64| vec![send(1, "MPI_INT").from(&[1, site]), send(2, "MPI_INT").from(&[1, 9])];
    let (a, b) = (trace_of(&vec![vec![calls(5)]; 2]), trace_of(&vec![vec![calls(6)]; 2]));
    let found = compared(&a, &b, EVERYTHING);
    assert_eq!(found.firsts[0].changes[0].what, "call site");
    let sites = Ignore { sites: true, ..EVERYTHING };
    assert!(compared(&a, &b, sites).is_equal());
    // Other sites for calls that are told apart by them in one trace alone.
    let (split, joined) = ([calls(5), calls(6)].concat(), [calls(9), calls(9)].concat());
    let (split, joined) = (alike(2, &split), alike(2, &joined));
    assert!(!compared(&split, &joined, EVERYTHING).is_equal());
    assert!(compared(&split, &joined, sites).is_equal());
}

#[test]
fn only_what_both_recorded_is_compared() {
    let barrier = || call("MPI_Barrier").object("MPI_COMM_WORLD");
    let whole = alike(2, &[send(1, "MPI_INT"), barrier(), send(2, "MPI_INT"), barrier()]);
    let mut sends = alike(2, &[send(1, "MPI_INT"), send(2, "MPI_INT")]);
    sends.meta.options.push(("only".into(), "p2p".into()));
    let found = compared(&whole, &sends, EVERYTHING);
    assert!(found.is_equal(), "{found:?}");
    assert!(found.notes[0].contains("--only p2p"), "{:?}", found.notes);
    let mut other = alike(2, &[send(1, "MPI_INT"), send(3, "MPI_INT")]);
    other.meta.options.push(("only".into(), "p2p".into()));
    let found = compared(&whole, &other, EVERYTHING);
    assert_eq!(found.firsts[0].number, (2, 1));
}

#[test]
fn numbers_in_symbols_are_the_same_numbers() {
    let calls: Vec<Encoded> = (0..20).map(|i| send(i % 4, "MPI_INT")).collect();
    let inline: Vec<Encoded> = calls.iter().cloned().map(Encoded::inline).collect();
    let mut b = alike(2, &inline);
    b.meta.split = false;
    assert!(compared(&alike(2, &calls), &b, EVERYTHING).is_equal());
    assert!(compared(&b, &b, Ignore { pointers: true, sites: true, polls: true, requests: true }).is_equal());
}

#[test]
fn threads_are_compared_by_number() {
    let calls = |count| vec![send(count, "MPI_INT")];
    let a = trace_of(&vec![vec![calls(1), calls(2)]; 3]);
    let b = trace_of(&[vec![calls(1), calls(2)], vec![calls(1), calls(3)], vec![calls(1)]]);
    let found = compared(&a, &b, EVERYTHING);
    assert_eq!(quickly(&found), [((1, 1), 0)]);
    assert_eq!(found.alone.len(), 1);
    let (which, thread, ranks) = &found.alone[0];
    assert_eq!((*which, *thread, ranks.to_string().as_str()), (Which::A, 1, "2"));
    let said = text(&a, &b, EVERYTHING);
    assert!(said.contains("on 2 of 3 ranks"), "{said}");
    assert!(said.contains("rank 2, thread 1 only in A"), "{said}");
}

#[test]
fn other_numbers_of_ranks_are_shown_by_function() {
    let calls = |ranks: i64, count: i64| {
        let step = [send(count, "MPI_INT"), alltoall(1, "MPI_INT", "MPI_COMM_WORLD")];
        let mut all = vec![call("MPI_Comm_size").object("MPI_COMM_WORLD").tagged(ranks)];
        (0..10 * count).for_each(|_| all.extend(step.clone()));
        all
    };
    let (a, b) = (alike(4, &calls(4, 1)), alike(16, &calls(16, 2)));
    let found = compared(&a, &b, EVERYTHING);
    assert!(!found.is_equal());
    assert_eq!(
        text(&a, &b, EVERYTHING),
        "different: 4 ranks and 16 ranks\n  \
           A  a.rfn: 4 ranks, 84 calls\n  \
           B  b.rfn: 16 ranks, 656 calls\n\n\
         function      calls a rank in A  in B  of all in A  in B  bytes a call in A  in B\n\
         MPI_Alltoall                 10    20           40   320               16 B  64 B\n\
         MPI_Send                     10    20           40   320                4 B   8 B\n\
         As often on each rank in both: 1 function.\n"
    );
}

#[test]
fn times_are_compared_beyond_noise() {
    let calls: Vec<Encoded> = (0..100).map(|_| send(1, "MPI_INT")).collect();
    let timed = |total: u64, min: u64, max: u64| {
        let mut trace = alike(2, &calls);
        trace.meta.profile = None;
        trace.bundle.symbols.iter_mut().for_each(|symbol| symbol.tally = Tally { total, min, max });
        trace
    };
    let moved = |a: &Trace, b: &Trace| {
        let names = Binaries::new(&a.bundle.sites, &[]);
        diff::slower((a, &names), (b, &names)).unwrap()
    };
    // 200 calls of 1000 ns.
    let a = timed(200_000, 900, 1100);
    assert_eq!((moved(&a, &a).moved.len(), moved(&a, &a).within), (0, 1));
    // 5 % is within what the file leaves open.
    assert!(moved(&a, &timed(210_000, 900, 1100)).moved.is_empty());
    let slower = moved(&a, &timed(240_000, 900, 1400));
    assert_eq!((slower.moved.len(), slower.within), (1, 0));
    assert_eq!(slower.moved[0].by(), 200.0);
    // Of two calls nobody knows how they spread.
    let two = |total: u64| {
        let mut trace = timed(total, total / 2 - 50, total / 2 + 50);
        trace.bundle = alike(2, &calls[..1]).bundle;
        let tally = Tally { total, min: total / 2 - 50, max: total / 2 + 50 };
        trace.bundle.symbols.iter_mut().for_each(|symbol| symbol.tally = tally);
        trace
    };
    assert!(moved(&two(2000), &two(3000)).moved.is_empty());
    // One call that took long says nothing of the others.
    assert!(moved(&a, &timed(240_000, 900, 60_000)).moved.is_empty());
}

/// Of call sites that share a tally nobody knows which is slower: they are one row, or not compared. What is rounded is marked.
#[test]
fn call_sites_that_share_a_tally_are_compared_together() {
    let tally = |total, min, max| Tally { total, min, max };
    let of = |sites: &[(u64, Tally)]| {
        let calls = sites.iter().flat_map(|&(site, _)| vec![send(1, "MPI_INT").from(&[site]); 50]);
        let mut trace = alike(2, &calls.collect::<Vec<_>>());
        trace.meta.profile = None;
        assert_eq!(trace.bundle.symbols.len(), sites.len());
        trace.bundle.symbols.iter_mut().zip(sites).for_each(|(symbol, (_, tally))| symbol.tally = *tally);
        trace
    };
    let said = |a: &Trace, b: &Trace| {
        let found = compared(a, b, EVERYTHING);
        let names = (Binaries::new(&a.bundle.sites, &[]), Binaries::new(&b.bundle.sites, &[]));
        let slower = diff::slower((a, &names.0), (b, &names.1)).unwrap();
        let report = Report {
            diff: &found,
            traces: (a, b),
            files: ("a.rfn", "b.rfn"),
            names: (&names.0, &names.1),
            rows: None,
            slower: Some(&slower),
            all: false,
        };
        let (mut text, mut json) = (Vec::new(), Vec::new());
        diff::write_text(&report, &mut text).unwrap();
        diff::write_json(&report, &mut json).unwrap();
        (String::from_utf8(text).unwrap(), String::from_utf8(json).unwrap(), slower)
    };
    let light = |total, min, max| [(5, tally(total, min, max)), (6, tally(total, min, max))];
    let a = of(&[&light(20_000, 150, 250)[..], &[(7, tally(1_000_000, 9_000, 11_000))]].concat());
    let b = of(&[&light(60_000, 550, 650)[..], &[(7, tally(2_000_000, 19_000, 21_000))]].concat());
    let (text, json, slower) = said(&a, &b);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = text.lines().filter(|line| line.starts_with("MPI_Send")).map(words).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[0].starts_with("MPI_Send ~10.0 us ~20.0 us ~+100% "), "{text}");
    assert!(
        rows[1].starts_with("MPI_Send ~200 ns ~600 ns ~+200% ")
            && rows[1].ends_with(" 200 200 2 call sites together")
    );
    assert!(text.contains("\n~: means are right to within 1/32.\n"), "{text}");
    assert_eq!(slower.moved.iter().map(|moved| moved.together).collect::<Vec<_>>(), [None, Some(2)]);
    let told = r#""at":null,"sites_together":2,"mean_ns":{"a":200,"b":600},"mean_error_ns":{"a":7,"b":19},"#;
    assert!(json.contains(told), "{json}");
    assert!(json.contains(r#""mean_ns":{"a":10000,"b":20000},"mean_error_ns":{"a":313,"b":625},"#), "{json}");
    // One of the two is not in the other run.
    let b = of(&[(5, tally(60_000, 550, 650)), (7, tally(2_000_000, 19_000, 21_000))]);
    let (text, json, slower) = said(&a, &b);
    assert_eq!((slower.moved.len(), slower.left), (1, 2), "{text}");
    assert!(text.contains("Not compared: 2 call sites, whose times"), "{text}");
    assert!(json.contains(r#""left_out":2,"#), "{json}");
}

/// Of the run, of ranks, and of calls.
#[test]
fn ranks_that_compute_longer_are_told() {
    let ms = |outside: &[u64]| {
        let mut trace = alike(outside.len(), &[send(1, "MPI_INT")]);
        let one = |(rank, ms): (u32, &u64)| Profile::of_rank(rank, (ms * 1_000_000, 40_000_000), []);
        let mut profile = (0..).zip(outside).map(one).fold(Profile::default(), |all, one| all.join(&one));
        profile.settle();
        trace.meta.profile = Some(profile);
        trace
    };
    let check = |a: &Trace, b: &Trace, changed: &[u32], wanted: &str| {
        let found = compared(a, b, EVERYTHING);
        let names = Binaries::new(&a.bundle.sites, &[]);
        let slower = diff::slower((a, &names), (b, &names)).unwrap();
        let report = Report {
            diff: &found,
            traces: (a, b),
            files: ("a.rfn", "b.rfn"),
            names: (&names, &names),
            rows: None,
            slower: Some(&slower),
            all: false,
        };
        assert_eq!(report.is_equal(), changed.is_empty());
        assert_eq!(slower.lasted.as_ref().map(|lasted| &lasted.moved[..]), Some(changed));
        let mut out = Vec::new();
        diff::write_text(&report, &mut out).unwrap();
        let said = String::from_utf8(out).unwrap();
        assert!(said.contains(wanted), "{said}");
    };
    // No call is slower.
    check(
        &ms(&[660]),
        &ms(&[1930]),
        &[0],
        "longest rank: 700 ms in A, 1.97 s in B (+181%)\n\
         rank  run in A    in B  change  outside MPI in A    in B  change\n\
         0       700 ms  1.97 s   +181%            660 ms  1.93 s   +192%\n",
    );
    // One of four became quicker; it is the longest in neither.
    check(
        &ms(&[2000, 1550, 2000, 2100]),
        &ms(&[2000, 870, 2000, 2100]),
        &[1],
        "\n1       1.59 s  910 ms    -43%            1.55 s  870 ms    -44%\n",
    );
    check(
        &ms(&[1000, 1010]),
        &ms(&[1000, 1040]),
        &[],
        "No rank's time, in all or outside MPI, changed by more than 1/20 of the run.\n",
    );
    // What both files leave open is no change.
    check(
        &ms(&[100, 1000, 2000]),
        &ms(&[100, 1130, 2000]),
        &[],
        "longest rank: 2.04 s in A, 2.04 s in B (+0%)\n",
    );
}

#[test]
fn a_damaged_trace_is_named() {
    let a = alike(2, &[send(1, "MPI_INT")]);
    let mut b = a.clone();
    b.bundle.symbols[0].bytes = [0xff, 0xff, 0x7f].into();
    let error = diff(&a, &b, EVERYTHING, &mut |_| {}).unwrap_err();
    assert_eq!(error.which, Which::B);
}
