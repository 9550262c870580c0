//! A second reader, in another language and written from FORMAT.md alone, finds in every trace the calls that `dump` finds,
//! and the digests that FORMAT.md describes. What is read here is frozen: a hash, a constant of the coder or a rule of the
//! encoding that is another than it was makes one of these tests fail.

use crate::common;
use crate::seal;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Encoded, call, looped, send, trace_of};
use refrain_fold::bundle::{Bundle, SideKind, merge};
use refrain_fold::pack::Kind;
use refrain_fold::ranks::{Curve, RankList};
use refrain_fold::stream::Stream;
use refrain_times::paths::{Before, Histogram, Path as Times, Recorder};
use refrain_tracefile::chunks::{Key, Settings, Writer};
use refrain_tracefile::clocks::{Clock, Clocks, Point};
use refrain_tracefile::{
    Arg, CodeAddress, Cores, Error, InFlight, Trace, Waited, append, read, settle, write, write_plain,
};
use refrain_views::dump::{Format, Selection, dump};
use refrain_views::verify::verify;
use seal::crc;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn traces(name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(name)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "rfn"));
    paths.sort();
    paths
}

/// What the second reader says; its complaints where it fails.
fn reader(words: &[PathBuf]) -> Result<String, String> {
    let script = folder("../../tests/reader/rfn.py");
    // Not to be left out: without Python nothing holds FORMAT.md to what is written.
    let out = Command::new("python3").arg("-B").arg(script).args(words).output();
    let out = out.expect("python3 runs the second reader; `scripts/setup test` installs it");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if out.status.success() { Ok(text(&out.stdout)) } else { Err(text(&out.stderr)) }
}

fn barrier() -> Encoded {
    call("MPI_Barrier").object("MPI_COMM_WORLD")
}

fn rank_of_world(rank: i64) -> Encoded {
    call("MPI_Comm_rank").object("MPI_COMM_WORLD").tagged(rank)
}

/// From a neighbour so far away.
fn receive(count: i64, source: i64, tag: i64) -> Encoded {
    let buffer = call("MPI_Recv").heap(2, 8 * count).number(count).object("MPI_DOUBLE");
    buffer.tagged(source).tagged(tag).object("MPI_COMM_WORLD").status(source, tag, 8 * count)
}

/// Loops whose times differ from iteration to iteration and from rank to rank, with calls that some ranks never make, and
/// where all of them come from.
fn loops() -> Trace {
    let rank = |rank: i64| {
        let mut calls = vec![rank_of_world(rank).from(&[0x100])];
        for step in 0..20 {
            for _ in 0..1 + (step + rank) % 3 {
                calls.push(send(10 + rank, "MPI_INT").from(&[0x110, 0x2040]));
            }
            if rank % 2 == 1 {
                calls.push(receive(4 * rank, -1, 7).from(&[0x110, 0x2080]));
            }
            calls.push(barrier().from(&[0x118]));
        }
        vec![calls]
    };
    looped(&(0..6).map(rank).collect::<Vec<_>>())
}

/// Two of ranks 0 and 2 and of rank 3, which was compared twice and runs behind; rank 1 was not compared.
fn clocks() -> Clocks {
    let point = |at, common| Point { at, common, error: 1_234 };
    let clock = |ranks: &[u32], start, end| Clock {
        ranks: RankList::from_sorted(ranks),
        counter: true,
        monotonic: ranks.len() > 1,
        wander: 17,
        residual: 900,
        start,
        end,
    };
    let own = point(5_000_000_000, 5_000_000_000);
    let behind = clock(&[3], point(4_000_000_000, 5_000_000_000), point(7_000_000_000, 8_000_001_000));
    Clocks { clocks: vec![clock(&[0, 2], own, own), behind] }
}

/// Three threads, of which one rank lacks one; a communicator that one thread makes and another uses.
fn threads() -> Trace {
    let rank = |rank: i64| {
        let group: Vec<i64> = (0..4).collect();
        let dup = call("MPI_Comm_dup").object("MPI_COMM_WORLD").comm_as_parent(0, 0);
        let split = common::split(1, 1, &[rank % 2, rank % 2 + 2]);
        let create = call("MPI_Comm_create_group").object("MPI_COMM_WORLD").object("#0").tagged(5);
        let main = vec![dup, split, create.comm_of_members(2, 0, rank, &group), barrier()];
        let on = |comm: &str| {
            let sent = call("MPI_Send").heap(1, 16).number(3).object("MPI_INT").tagged(1).tagged(9);
            sent.object(comm)
        };
        let worker = |n: usize| ["#0", "#1", "#2"].iter().cycle().take(n).map(|comm| on(comm)).collect();
        let mut threads: Vec<Vec<Encoded>> = vec![main, worker(7), worker(30)];
        threads.truncate(if rank == 3 { 2 } else { 3 });
        threads
    };
    let mut trace = trace_of(&(0..4).map(rank).collect::<Vec<_>>());
    trace.meta.clocks = Some(clocks());
    trace
}

/// Three threads that do the same, with numbers that go by rank and thread, and one that does something else.
fn crew() -> Vec<Vec<Vec<Encoded>>> {
    let worker = |rank: i64, thread: i64| {
        let mut calls = vec![send(100 * thread + rank, "MPI_INT")];
        calls.extend((0..20).map(|i| send(10 * thread + 3 * i, "MPI_DOUBLE")));
        calls
    };
    let rank = |rank: i64| {
        let mut threads = vec![vec![rank_of_world(rank), barrier()]];
        threads.extend((1..4).map(|thread| worker(rank, thread)));
        threads
    };
    (0..5).map(rank).collect()
}

/// Ranks that share cores, and ranks that have them for themselves.
fn cores() -> Trace {
    let mut trace = trace_of(&crew());
    let group = |ranks: &[u32], each, sharing, thousandths| Cores {
        ranks: RankList::from_sorted(ranks),
        each,
        sharing,
        thousandths,
    };
    trace.meta.cores = vec![group(&[0, 2, 4], 2, 3, 1500), group(&[1, 3], 1, 1, 1000)];
    trace
}

/// What loops whose bounds move give: rows that get longer, each rank's elsewhere; and sums of steps that are its own.
fn triangles() -> Trace {
    let rank = |rank: i64| {
        let rows = (1..40).flat_map(|i| (0..i).map(move |j| (i, j)));
        let calls = rows.flat_map(|(i, j)| {
            let triangle = send(5000 * rank + 64 * i + j, "MPI_INT");
            [triangle, send((5 + rank) * (i % 7) + 1000 * (i / 7) + j % 2, "MPI_DOUBLE")]
        });
        let nest = (0..30).flat_map(|i| (0..4).map(move |j| send(rank + 8 * j + 100 * i, "MPI_LONG")));
        vec![calls.chain(nest).collect()]
    };
    trace_of(&(0..4).map(rank).collect::<Vec<_>>())
}

/// Counts without a shape (blocks), some of which come again and can be guessed, and some of which stand there often; nested
/// strides (running sums), a stride, and a stride over and over.
fn numbers() -> Trace {
    // Of its own: the fixtures are made of these numbers.
    let mut state = 88_172_645_463_325_252u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as i64 % 1000
    };
    let song: Vec<i64> = (0..150).map(|_| noise()).collect();
    let often: Vec<(i64, i64)> = (0..900).map(|_| (noise() % 8, noise() % 40)).collect();
    let mut calls = Vec::new();
    for i in 0..900 {
        let (value, times) = often[i as usize];
        calls.extend((0..times).map(|_| send(value, "MPI_LONG")));
        calls.push(send(noise(), "MPI_INT"));
        let heard = if i % 37 == 0 { noise() } else { song[i as usize % 150] };
        calls.push(send(heard, "MPI_SHORT"));
        calls.push(send(i % 9 + i / 9 * 100, "MPI_DOUBLE"));
        calls.push(send(i64::MIN + 3 * i, "MPI_FLOAT"));
        calls.push(send(i % 5 * 4, "MPI_CHAR"));
    }
    trace_of(&[vec![calls.clone()], vec![calls]])
}

/// 24 ranks on a grid: neighbours and coordinates are functions of the rank, what a few of them send follows no rule, and
/// some ranks on the way do something else.
fn grid() -> Trace {
    let rank = |rank: i64| {
        let (row, column) = (rank / 6, rank % 6);
        let east = if column == 5 { -5 } else { 1 };
        let mut calls = vec![rank_of_world(rank), send(100 * row + column, "MPI_INT")];
        calls.push(receive(64, east, row));
        calls.push(send(if rank < 4 { [17, 3, 99, 41][rank as usize] } else { 5 }, "MPI_LONG"));
        if [5, 9, 16].contains(&rank) {
            calls.push(barrier());
        }
        vec![calls]
    };
    trace_of(&(0..24).map(rank).collect::<Vec<_>>())
}

/// An integer sort on 16 ranks: what one sends to another is drawn, what it receives is what others send, and both change
/// little from step to step. (Numbers told together, transposed numbers, sums of counts.)
fn sort() -> Trace {
    const RANKS: usize = 16;
    let drawn = |from: usize, to: usize| (from * 7919 + to * 104_729 + from * to * 31) % 61;
    let keys = |from: usize, to: usize, step: usize| {
        let changed = step > 0 && (from * 5 + to * 3).is_multiple_of(RANKS);
        (40 + drawn(from, to) * drawn(to, from + 1) % 23 + usize::from(changed)) as i64
    };
    let rank = |rank: usize| {
        let step = |step: usize| {
            let sent: Vec<i64> = (0..RANKS).map(|to| keys(rank, to, step)).collect();
            let received: Vec<i64> = (0..RANKS).map(|from| keys(from, rank, step)).collect();
            let out = call("MPI_Alltoallv").buffer().list(&sent).sums(RANKS).object("MPI_INT");
            out.buffer().list(&received).sums(RANKS).object("MPI_INT").object("MPI_COMM_WORLD")
        };
        vec![vec![rank_of_world(rank as i64), step(0), step(1), step(2), barrier()]]
    };
    trace_of(&(0..RANKS).map(rank).collect::<Vec<_>>())
}

/// Sizes that go along the diagonals of a grid, around it, but for the first rank.
fn diagonal() -> Trace {
    let rank = |rank: i64| {
        let (row, column) = (rank / 6, rank % 6);
        let (thick, wide) = (3 + i64::from((row + column) % 6 < 2), 5 + i64::from(column < 4));
        let mut calls = vec![rank_of_world(rank), send(thick * wide, "MPI_INT")];
        calls.extend((rank == 0).then(barrier));
        vec![calls]
    };
    trace_of(&(0..36).map(rank).collect::<Vec<_>>())
}

/// Stages that go around a grid of 12 x 12 ranks, each with the sizes of the one before a column further, and a sum of all of
/// them; and ranks that exchange in pairs.
fn turned() -> Trace {
    const SIDE: i64 = 12;
    let thick = |slice: i64| 5 + i64::from(slice.rem_euclid(SIDE) < 5);
    let rank = |rank: i64| {
        let (row, column) = (rank / SIDE, rank % SIDE);
        let face = |stage: i64| thick(row + column - stage) * thick(stage - column);
        let mut calls = vec![rank_of_world(rank)];
        for apart in [8, 3] {
            calls.push(receive(64, if rank / apart % 2 == 0 { apart } else { -apart }, 5));
        }
        calls.extend((0..SIDE).map(|stage| send(face(stage), "MPI_INT")));
        calls.push(send((1..SIDE).map(face).sum(), "MPI_LONG"));
        vec![calls]
    };
    trace_of(&(0..SIDE * SIDE).map(rank).collect::<Vec<_>>())
}

/// A periodic grid of 4 x 4 x 4 ranks along a Morton curve. Neighbours go by rank, how much comes from them by their direction.
fn curve() -> Trace {
    let curve = Curve { axes: 3, bits: 6 };
    let rank = |rank: u32| {
        let here = curve.seen(rank);
        let ways = [(1, 3), (3, 3), (4, 5), (12, 5), (16, 9), (48, 9)];
        let mut near = ways.map(|(way, count)| (curve.rank(curve.moved(here, way)), count));
        near.sort_unstable();
        let all = |_| near.map(|(other, count)| receive(count, i64::from(other) - i64::from(rank), 7));
        let mut calls = vec![rank_of_world(rank.into())];
        calls.extend((0..3).flat_map(all));
        vec![calls]
    };
    trace_of(&(0..64).map(rank).collect::<Vec<_>>())
}

/// A grid of 8 x 8 x 8 ranks along a Morton curve: those inside make one call more.
fn inside() -> Trace {
    let curve = Curve { axes: 3, bits: 9 };
    let rank = |rank: u32| {
        let seen = curve.seen(rank);
        let inside = [seen, seen >> 3, seen >> 6].into_iter().all(|at| (1..7).contains(&(at % 8)));
        vec![vec![barrier(); 1 + usize::from(inside)]]
    };
    trace_of(&(0..512).map(rank).collect::<Vec<_>>())
}

/// Islands in an ocean: who is beside land has fewer neighbours, and where land is follows no rule.
fn islands() -> Trace {
    const ROW: i64 = 16;
    const RANKS: i64 = 16 * ROW;
    let drawn = |rank: i64| {
        let x = (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (x ^ x >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 40
    };
    let is_land = |rank: i64| !(0..RANKS).contains(&rank) || drawn(rank).is_multiple_of(5);
    let rank = |rank: i64| {
        let beside = [-1, 1, -ROW, ROW].into_iter().filter(|by| !is_land(rank) && !is_land(rank + by));
        let receive = |by: i64| receive(10 + by.abs(), by, by + ROW);
        vec![beside.map(receive).chain([barrier()]).collect()]
    };
    trace_of(&(0..RANKS).map(rank).collect::<Vec<_>>())
}

/// Numbers in the symbols, a call that failed.
fn whole() -> Trace {
    let failed = call("MPI_Barrier").failed().object("MPI_COMM_WORLD").number(5);
    let calls = [receive(4, 1, 3).inline(), send(-7, "MPI_INT").inline(), failed, barrier()];
    let mut trace = trace_of(&vec![vec![calls.to_vec()]; 2]);
    trace.meta.split = false;
    trace
}

/// A run that died: one rank by a signal, one by an error of MPI, one that waits for two requests.
fn flying() -> Trace {
    let mut trace = trace_of(&vec![vec![vec![barrier(), barrier()]]; 3]);
    let place = |offset| Some(CodeAddress { module: common::program(), offset });
    let within = |rank, name: &str, args: Vec<Arg>| InFlight {
        rank,
        inside: true,
        function: refrain_model::function(name).map(|f| f.id),
        args,
        ns: Some(41_000_000_123),
        place: place(0x1234),
        ..InFlight::default()
    };
    let receive = vec![
        Arg::Unknown,
        Arg::Number(-4),
        Arg::Constant(15),
        Arg::Number(1),
        Arg::Number(77),
        Arg::Object(1),
    ];
    let crashed = InFlight { inside: false, ns: None, ..within(0, "MPI_Barrier", vec![Arg::Constant(2)]) };
    trace.meta.complete = false;
    trace.meta.flight = vec![
        InFlight { fault: Some(11), fault_place: place(0x2000), ..crashed },
        InFlight { error: Some((3, "message truncated".into())), ..within(1, "MPI_Recv", receive) },
        InFlight {
            waits_for: 20,
            requests: vec![Waited { thread: 0, back: 3 }, Waited { thread: 1, back: 0 }],
            ..within(2, "MPI_Waitall", Vec::new())
        },
    ];
    trace
}

fn made() -> [(&'static str, Trace); 15] {
    [
        ("cores", cores()),
        ("crew", trace_of(&crew())),
        ("curve", curve()),
        ("diagonal", diagonal()),
        ("flying", flying()),
        ("grid", grid()),
        ("inside", inside()),
        ("islands", islands()),
        ("loops", loops()),
        ("numbers", numbers()),
        ("sort", sort()),
        ("threads", threads()),
        ("triangles", triangles()),
        ("turned", turned()),
        ("whole", whole()),
    ]
}

/// For a new version of the format: `scripts/seeds` runs it.
#[test]
#[ignore = "writes the fixtures"]
fn write_fixtures() {
    std::fs::create_dir_all(folder("tests/fixtures")).unwrap();
    for (name, trace) in made() {
        std::fs::write(folder(&format!("tests/fixtures/{name}.rfn")), write(&trace)).unwrap();
    }
}

#[test]
fn what_is_written_is_frozen() {
    for (name, trace) in made() {
        let frozen = std::fs::read(folder(&format!("tests/fixtures/{name}.rfn"))).unwrap();
        let report = verify(&read(&frozen).unwrap(), &mut |_, _| {});
        assert!(report.problems.is_empty(), "{name}: {:?}", report.problems);
        assert!(write(&trace) == frozen, "{name} is written in another way");
    }
}

#[test]
fn recorded_traces_verify() {
    for path in traces("tests/seeds") {
        let report = verify(&refrain_tracefile::open(&path).unwrap(), &mut |_, _| {});
        assert!(report.problems.is_empty(), "{}: {:?}", path.display(), report.problems);
    }
}

#[test]
fn the_second_reader_finds_the_same_calls_and_digests() {
    let scratch = std::env::temp_dir().join(format!("refrain-reader-{}", std::process::id()));
    std::fs::create_dir(&scratch).unwrap();
    // Two processes read at once, each every other trace.
    let mut words = [vec![PathBuf::from("check")], vec![PathBuf::from("check")]];
    let paths = [traces("tests/fixtures"), traces("tests/seeds")].concat();
    assert!(paths.len() >= 26, "{paths:?}");
    for (name, path) in paths.iter().enumerate() {
        let trace = refrain_tracefile::open(path).unwrap();
        let calls = scratch.join(format!("{name}.json"));
        let mut out = std::fs::File::create(&calls).unwrap();
        dump(&trace, &Selection::default(), Format::Json, &mut std::io::BufWriter::new(&mut out)).unwrap();
        let plain = scratch.join(format!("{name}-plain.rfn"));
        std::fs::write(&plain, write_plain(&trace)).unwrap();
        words[name % 2].extend([path.clone(), calls, path.clone(), plain]);
    }
    let said = std::thread::scope(|scope| {
        let reading = words.each_ref().map(|words| scope.spawn(|| reader(words)));
        reading.map(|thread| thread.join().unwrap())
    });
    std::fs::remove_dir_all(&scratch).unwrap();
    let said = said.map(Result::unwrap).concat();
    assert_eq!(said.matches("digests agree").count(), paths.len(), "{said}");
    assert_eq!(said.matches("the same sections").count(), paths.len(), "{said}");
    // Every form of every section was among them.
    let forms = said.lines().filter_map(|line| line.strip_prefix("forms: "));
    let forms: BTreeSet<&str> = forms.flat_map(|line| line.split(", ")).collect();
    assert_eq!(
        Vec::from_iter(forms).join(", "),
        "all but, another order of ranks, blocks, classes, counted blocks, failed polls, functions of the rank, functions of the rank in blocks, functions on a grid that is turned, groups without \
         numbers, guesses, ignored statuses, inline values, kinds of ranks, light tallies, loops, members, neighbours along a curve, numbers near those of other places, numbers told together, partners, paths, ranks along a curve, rows, rules, running sums, shared rules, shifted blocks, sites, statuses, strides, \
         strides without end, sums of counts, sums of functions, texts in lanes, threads, threads of one cohort, transposed numbers, variants",
    );
}

#[test]
fn the_second_reader_reads_what_is_made_up_too() {
    let paths = traces("../tracefile/tests/fixtures");
    let words = [vec![PathBuf::from("check")], paths.clone()].concat();
    let said = reader(&words).unwrap();
    assert_eq!((paths.len(), said.matches("the same sections").count()), (6, 3), "{said}");
}

#[test]
fn the_vectors_of_the_format_hold_for_the_second_reader() {
    let said = reader(&[PathBuf::from("vectors"), folder("../../FORMAT.md")]).unwrap();
    assert!(said.ends_with(" vectors hold\n"), "{said}");
}

/// Both readers.
#[track_caller]
fn refused(bytes: &[u8], as_ours_says: impl Fn(&Error) -> bool, as_the_other_says: &str) {
    let error = read(bytes).unwrap_err();
    assert!(as_ours_says(&error), "{error}");
    let path =
        std::env::temp_dir().join(format!("refrain-refused-{}-{}.rfn", std::process::id(), bytes.len()));
    std::fs::write(&path, bytes).unwrap();
    let said = reader(&["dump".into(), path.clone()]);
    std::fs::remove_file(path).unwrap();
    let said = said.unwrap_err();
    assert!(said.contains(as_the_other_says), "{said}");
}

#[test]
fn other_versions_are_refused_as_what_they_are() {
    for old in [1, 2] {
        let file = folder(&format!("../tracefile/tests/fixtures/refused/stencil-v{old}.rfn"));
        refused(
            &std::fs::read(file).unwrap(),
            |error| matches!(error, Error::Version { version } if *version == old),
            &format!("format version {old}; this reads version 3"),
        );
    }
    let mut new = write(&grid());
    new[4] = 4;
    refused(
        &new,
        |error| matches!(error, Error::Version { version: 4 }),
        "format version 4; this reads version 3",
    );
    let said = read(&new).unwrap_err().to_string();
    assert!(said.contains("has format version 4") && said.contains("reads version 3"), "{said}");
}

/// The trace with one section more, of this head, at the beginning of its directory.
fn with_section(trace: &[u8], head: u8, content: &[u8]) -> Vec<u8> {
    let varint = |at: usize| at + 1 + trace[at..].iter().position(|byte| *byte < 0x80).unwrap();
    let first = varint(7);
    let mut end = first;
    let mut stream_begun = false;
    for _ in 0..trace[6] {
        // The pieces of the packed stream have one checksum together, in the first of their entries.
        let packed = trace[end] & 0x20 != 0;
        end = varint(end + 1) + if packed && stream_begun { 0 } else { 4 };
        stream_begun |= packed;
    }
    let mut out = [&trace[..6], &[trace[6] + 1], &trace[7..first], &[head, content.len() as u8]].concat();
    out.extend(crc(content));
    out.extend(&trace[first..end]);
    let sum = crc(&out);
    out.extend(sum);
    out.extend(content);
    out.extend(&trace[end + 4..]);
    out
}

/// How times are distributed, as both readers find it.
#[test]
fn distributions_are_read_alike() {
    let mut trace = trace_of(&crew());
    let symbols = trace.bundle.symbols.len() as u32;
    let (mut recorder, mut now) = (Recorder::default(), 0);
    for turn in 0..3000u64 {
        let length = 90 + turn * turn % 977 + if turn % 100 == 7 { 1 << (turn % 43) } else { 0 };
        recorder.add((turn * turn % 7) as u32 % symbols, now + turn % 50, now + length);
        now += length;
    }
    let mut paths = recorder.paths(|symbol| Some(symbol.into()), |ticks| ticks);
    let many = Times {
        duration: Histogram { first: 3, counts: vec![u64::MAX], total: u64::MAX },
        ..Times::default()
    };
    paths.0.insert((0, Before::Others), many);
    settle(&mut paths);
    trace.meta.paths = Some(paths.clone());
    let file = std::env::temp_dir().join(format!("refrain-paths-{}.rfn", std::process::id()));
    std::fs::write(&file, write(&trace)).unwrap();
    let said = reader(&["paths".into(), file.clone()]);
    std::fs::remove_file(file).unwrap();
    let histogram = |one: &Histogram| {
        let counts = one.counts.iter().map(|count| format!(" {count}"));
        format!("{}{} {}", one.first, counts.collect::<String>(), one.total)
    };
    let line = |(&(symbol, before), path): (&(u64, Before), &Times)| {
        let before = match before {
            Before::Nothing => -1,
            Before::Call(symbol) => symbol as i64,
            Before::Others => symbols.into(),
        };
        format!("{symbol} {before}: {}; {}\n", histogram(&path.duration), histogram(&path.gap))
    };
    assert_eq!(said.unwrap(), paths.0.iter().map(line).collect::<String>());
    assert_eq!(read(&write(&trace)).unwrap(), trace);
}

/// Side lanes and chunks, neither of which has calls.
#[test]
fn sections_without_calls_are_passed_over() {
    let ranks = crew();
    let mut bundle = Bundle::default();
    for (rank, threads) in (0u32..).zip(&ranks) {
        let mut one = common::rank_bundle_as((rank, ranks.len() as u32), threads, false);
        let time = |thread: u32, symbol: u32| Some((Stream::constant((thread + symbol).into()), 1));
        one.add_side(SideKind::TIME, time).unwrap();
        bundle = merge(bundle, one).unwrap();
    }
    bundle.canonical().unwrap();
    let trace = Trace { bundle, ..trace_of(&ranks) };
    let mut writer = Writer::new(Vec::new(), Settings::default());
    let times = writer.stream(Key { member: 3, lane: 1 }, Kind::TIME);
    writer.push(times, &[5, 7, 12]).unwrap();
    let chunks = writer.finish().unwrap();
    let mut file = Vec::new();
    append(&write(&trace), std::io::Cursor::new(chunks), &mut file).unwrap();
    assert_eq!(read(&file).unwrap(), trace);
    let path =
        |word: &str| std::env::temp_dir().join(format!("refrain-sides-{}-{word}.rfn", std::process::id()));
    std::fs::write(path("more"), &file).unwrap();
    std::fs::write(path("less"), write(&trace_of(&ranks))).unwrap();
    let said = reader(&["check".into(), path("more"), path("less")]);
    std::fs::remove_file(path("more")).unwrap();
    std::fs::remove_file(path("less")).unwrap();
    let said = said.unwrap();
    assert!(said.contains("the same sections"), "{said}");
    assert!(said.contains("chunks, ") && said.contains("side lanes, "), "{said}");
}

#[test]
fn sections_of_another_time_are_passed_over_or_refused_by_name() {
    let grid = write(&grid());
    for (name, trace) in [("packed", grid.clone()), ("plain", write_plain(&read(&grid).unwrap()))] {
        let more = with_section(&trace, 0x40 | 9, b"whatever");
        assert_eq!(read(&more).unwrap(), read(&trace).unwrap());
        let path = |word: &str| {
            std::env::temp_dir().join(format!("refrain-section-{}-{name}-{word}.rfn", std::process::id()))
        };
        std::fs::write(path("more"), &more).unwrap();
        std::fs::write(path("less"), &trace).unwrap();
        let said = reader(&["check".into(), path("more"), path("less")]);
        std::fs::remove_file(path("more")).unwrap();
        std::fs::remove_file(path("less")).unwrap();
        assert!(said.unwrap().contains("the same sections"));
    }
    let is_unknown = |error: &Error| matches!(error, Error::Unknown { kind: 9, .. });
    refused(&with_section(&grid, 9, b"whatever"), is_unknown, "section of unknown kind 9");
    let plain = write_plain(&read(&grid).unwrap());
    refused(&with_section(&plain, 0x60 | 9, b""), is_unknown, "section of unknown kind 9");
}
