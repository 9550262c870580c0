//! What `--lossy` makes of a recording, and that it still reads back as what was kept.

use crate::common;

use std::cell::Cell;

use common::*;
use refrain_encode::{Agreed, Calls, Folding, Tags, Tape, lose};
use refrain_fold::bundle::sites::{Frame, Module};
use refrain_fold::bundle::{Bundle, blend, merge};
use refrain_model::{Call, Lossy, Value};

fn at<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<u8>() as usize
}

fn words(text: &str) -> Lossy {
    Lossy::read(Some(text)).unwrap()
}

/// As many ranks as the world of these tests has.
const SIZE: u32 = 5;

/// Loses what the words allow in the bundles of these ranks, as they would together.
fn lose_together(bundles: &mut [(u32, Bundle)], text: &str) -> Agreed {
    let lossy = words(text);
    let mut agreed = Agreed::default();
    for (rank, bundle) in &*bundles {
        let own = Agreed::of(bundle, *rank, SIZE, false, &lossy).unwrap();
        assert_eq!(Agreed::from_text(&own.to_text()), own);
        agreed.absorb(own);
    }
    for (rank, bundle) in bundles {
        lose(bundle, (*rank, SIZE), (&lossy, Folding::default()), &agreed).unwrap();
    }
    agreed
}

fn lose_alone(bundle: &mut Bundle, rank: u32, text: &str) {
    let mut alone = [(rank, std::mem::take(bundle))];
    lose_together(&mut alone, text);
    let [(_, lost)] = alone;
    *bundle = lost;
}

/// One rank's recording under way.
struct Taped {
    rank: u32,
    world: World,
    tape: Tape,
    /// Where calls are made.
    site: u64,
    split: bool,
}

impl Taped {
    fn new(rank: u32) -> Taped {
        Taped { rank, world: world_of(rank as i32), tape: Tape::default(), site: 0, split: true }
    }

    fn call(&mut self, name: &str, args: &[usize]) {
        self.world.call(name, args, 0, || {});
        self.world.record.site = self.site;
        if !self.split {
            self.world.record.inline_values();
        }
        self.tape.push(&self.world.record, 1);
    }

    /// From here on calls are made at a stack of these offsets.
    fn at(&mut self, offsets: &[u64]) {
        let module = Module { path: "/bin/app".into(), build_id: [7].into() };
        let frame = |offset: &u64| Frame { module: module.key(), offset: *offset };
        let frames: Vec<Frame> = offsets.iter().map(frame).collect();
        self.site = self.tape.note_site(&frames, |key| (key == module.key()).then_some(&module));
    }

    /// To and from each of five ranks.
    fn alltoallv(&mut self, sent: [i32; 5], received: [i32; 5]) {
        self.alltoallv_of(sent, handle("MPI_INT"), received, handle("MPI_INT"));
    }

    fn alltoallv_of(&mut self, sent: [i32; 5], sendtype: usize, received: [i32; 5], recvtype: usize) {
        let (from, to) = ([7i32, 1, 2, 3, 4], [9i32, 8, 7, 6, 5]);
        let comm = handle("MPI_COMM_WORLD");
        let args = [0, at(&sent), at(&from), sendtype, 0, at(&received), at(&to), recvtype, comm];
        self.call("MPI_Alltoallv", &args);
    }

    fn send(&mut self, count: usize, dest: usize, tag: usize) {
        self.call("MPI_Send", &[0, count, handle("MPI_INT"), dest, tag, handle("MPI_COMM_WORLD")]);
    }

    fn recv(&mut self, source: usize, tag: usize) {
        let comm = handle("MPI_COMM_WORLD");
        self.call("MPI_Recv", &[0, 1, handle("MPI_INT"), source, tag, comm, STATUS_IGNORE]);
    }

    fn bundle(mut self) -> Bundle {
        Tape::bundle((self.rank, 0), [(0, &mut self.tape)], |ticks| ticks).unwrap()
    }
}

/// Its calls, whose digest is the one it has.
fn read(bundle: &Bundle, rank: u32) -> Vec<Call> {
    bundle.validate().unwrap();
    let mut calls = Calls::new(bundle, rank, 0).unwrap();
    let read = (&mut calls).collect::<Result<Vec<Call>, _>>().unwrap();
    assert_eq!(blend(rank, calls.digest()), bundle.cohorts[0].digest);
    read
}

fn shown(bundle: &Bundle, rank: u32) -> Vec<String> {
    read(bundle, rank).iter().map(|call| format!("{} {}", call.function.name, show(call))).collect()
}

/// A parameter of all calls that have it.
fn all(calls: &[Call], name: &str) -> Vec<i64> {
    let of = |call: &Call| {
        let at = call.function.params.iter().position(|p| p.name == name)?;
        match call.args[at] {
            Value::Int(number) => Some(number),
            _ => None,
        }
    };
    calls.iter().filter_map(of).collect()
}

fn drawn(k: usize) -> usize {
    (k * 2_654_435_761 % 4_294_967_296) >> 8
}

#[test]
fn histograms_keep_how_often_each_number_came() {
    let mut taped = Taped::new(2);
    let comm = handle("MPI_COMM_WORLD");
    let requests = [const { Cell::new(0usize) }; 4];
    for k in 0..300 {
        taped.send(drawn(k) % 7, drawn(k + 999) % 5, drawn(k) % 9);
        // How many requests there are decides how a call reads on.
        taped.call("MPI_Waitall", &[drawn(k) % 4, at(&requests), STATUS_IGNORE]);
        taped.call("MPI_Barrier", &[comm]);
    }
    let whole = taped.bundle();
    let mut lost = whole.clone();
    lose_alone(&mut lost, 2, "histograms=8");
    let (before, after) = (read(&whole, 2), read(&lost, 2));
    let names = |calls: &[Call]| calls.iter().map(|call| call.function.name).collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after));
    let sends =
        |calls: &[Call]| calls.iter().filter(|c| c.function.name == "MPI_Send").cloned().collect::<Vec<_>>();
    for name in ["count", "dest"] {
        let (mut was, is) = (all(&sends(&before), name), all(&sends(&after), name));
        assert_ne!(was, is, "{name}");
        was.sort_unstable();
        assert_eq!(was, is, "{name}");
    }
    let others = |calls: &[Call]| {
        let waits: Vec<Call> = calls.iter().filter(|c| c.function.name == "MPI_Waitall").cloned().collect();
        (all(calls, "tag"), all(&waits, "count"))
    };
    assert_eq!(others(&before), others(&after));
    // What can be told in so many numbers stays.
    let mut same = whole.clone();
    lose_alone(&mut same, 2, "histograms=1000");
    assert_eq!(same, whole);
    let mut binned = whole.clone();
    lose_alone(&mut binned, 2, "histograms=3");
    for name in ["count", "dest"] {
        let mut few = all(&sends(&read(&binned, 2)), name);
        assert_eq!(few.len(), 300);
        few.dedup();
        assert!(few.len() <= 3, "{name}: {few:?}");
    }
}

/// What triggers a histogram and how fine it is are two things.
#[test]
fn histograms_of_everything_that_is_not_constant() {
    let mut taped = Taped::new(2);
    // Two partners in turn, sizes that climb, and a constant: concise as they are.
    for k in 0..100 {
        taped.send(k, 1 + 2 * (k % 2), 0);
        taped.call("MPI_Bcast", &[0, 8, handle("MPI_INT"), 0, handle("MPI_COMM_WORLD")]);
    }
    let whole = taped.bundle();
    let sends = |bundle: &Bundle| {
        let mut calls = read(bundle, 2);
        calls.retain(|call| call.function.name == "MPI_Send");
        (all(&calls, "dest"), all(&calls, "count"))
    };
    let mut kept = whole.clone();
    lose_alone(&mut kept, 2, "histograms=64:16");
    assert_eq!(kept, whole);
    let mut lost = whole.clone();
    lose_alone(&mut lost, 2, "histograms=1:16");
    let (partners, mut sizes) = sends(&lost);
    assert_eq!(partners, [vec![1; 50], vec![3; 50]].concat());
    assert_eq!((sizes.len(), sizes.iter().sum::<i64>() / 50), (100, 99), "{sizes:?}");
    assert!(sizes.is_sorted());
    sizes.dedup();
    assert_eq!(sizes.len(), 16, "{sizes:?}");
    let mut coarse = whole.clone();
    lose_alone(&mut coarse, 2, "histograms=1:1");
    assert_eq!(sends(&coarse).1, [50; 100]);
    assert_eq!(all(&read(&coarse, 2), "count").iter().filter(|count| **count == 8).count(), 100);
}

/// How many bytes a call sends to and receives from each rank, and where these lie.
fn blocks(call: &Call, sizes: [i64; 2]) -> [Vec<i64>; 2] {
    let list = |name: &str| {
        let at = call.function.index_of(name).unwrap();
        let Value::List(list) = &call.args[at] else { return Vec::new() };
        list.iter().map(|value| if let Value::Int(number) = value { *number } else { -1 }).collect::<Vec<_>>()
    };
    let side = |counts: &str, displacements: &str, size: i64| {
        let (counts, displacements) = (list(counts), list(displacements));
        let packed: Vec<i64> = (0..).zip(&counts).map(|(k, count)| k * count).collect();
        assert_eq!(displacements, packed);
        counts.iter().map(|count| count * size).collect()
    };
    [side("sendcounts", "sdispls", sizes[0]), side("recvcounts", "rdispls", sizes[1])]
}

/// What every rank sends and receives of what rank `from` sends to rank `to` in a step.
fn matrix(rank: i32, amount: impl Fn(i32, i32) -> i32) -> ([i32; 5], [i32; 5]) {
    (std::array::from_fn(|to| amount(rank, to as i32)), std::array::from_fn(|from| amount(from as i32, rank)))
}

fn uneven(step: i32) -> impl Fn(i32, i32) -> i32 {
    move |from, to| (from * 7 + to * 3 + step * from * to) % 11
}

/// The bundles of these ranks.
fn ranks(ranks: impl IntoIterator<Item = u32>, program: impl Fn(&mut Taped)) -> Vec<(u32, Bundle)> {
    let run = |rank| {
        let mut taped = Taped::new(rank);
        program(&mut taped);
        (rank, taped.bundle())
    };
    ranks.into_iter().map(run).collect()
}

#[test]
fn an_average_is_one_over_all_ranks_and_both_sides() {
    let program = |steps: i32, split: bool| {
        move |taped: &mut Taped| {
            taped.split = split;
            for step in 0..steps {
                // Small messages at one place, large ones at another, which one rank calls from elsewhere.
                taped.at(&[1, 2]);
                let (sent, received) = matrix(taped.rank as i32, uneven(step));
                taped.alltoallv(sent, received);
                taped.at(&[1, if taped.rank == 3 { 33 } else { 3 }]);
                let (sent, received) = matrix(taped.rank as i32, |from, to| 1000 * uneven(step)(from, to));
                taped.alltoallv(sent, received);
            }
        }
    };
    for split in [true, false] {
        let mut bundles = ranks(0..5, program(80, split));
        let mean = |every: i32| {
            let all = (0..80).flat_map(|step| (0..25).map(move |k| every * uneven(step)(k / 5, k % 5)));
            (f64::from(all.sum::<i32>()) / (80.0 * 25.0)).round() as i64
        };
        assert!(mean(1) > 1 && mean(1000) > 1000);
        let agreed = lose_together(&mut bundles, "averages");
        for (rank, bundle) in &bundles {
            let calls = read(bundle, *rank);
            assert_eq!(calls.len(), 160);
            for (k, call) in calls.iter().enumerate() {
                let mean = mean(if k % 2 == 0 { 1 } else { 1000 });
                assert_eq!(
                    blocks(call, [4, 4]),
                    [vec![4 * mean; 5], vec![4 * mean; 5]],
                    "call {k} of rank {rank}"
                );
            }
        }
        let told = agreed.notes();
        assert_eq!(told.len(), 2);
        let said =
            "averages: the 4000 sendcounts of MPI_Alltoallv were from 0 (entry 0 on rank 0) to 10000 (entry ";
        assert!(told[1].starts_with(said), "{told:?}");
        // As large after five steps as after eighty.
        let folded = |bundles: Vec<(u32, Bundle)>| {
            let merged =
                bundles.into_iter().map(|(_, bundle)| bundle).reduce(|a, b| merge(a, b).unwrap()).unwrap();
            (merged.symbols.len(), merged.structures.len(), merged.streams.len())
        };
        let mut fewer = ranks(0..5, program(5, split));
        lose_together(&mut fewer, "averages");
        assert_eq!(folded(fewer), folded(bundles));
    }
}

#[test]
fn both_sides_are_equal_where_ranks_see_other_kinds_or_are_missing() {
    let program = |taped: &mut Taped| {
        for step in 0..20 {
            // One rank makes its calls here and there, and one ends early.
            taped.at(&[1, if taped.rank == 1 { 2 + step as u64 % 3 } else { 2 }]);
            let (sent, received) = matrix(taped.rank as i32, uneven(step));
            if taped.rank != 4 || step < 7 {
                taped.alltoallv(sent, received);
            }
        }
    };
    for there in [vec![0, 1, 2, 3, 4], vec![0, 2, 3], vec![1], vec![4, 0]] {
        let mut bundles = ranks(there.iter().copied(), program);
        lose_together(&mut bundles, "averages");
        let mut seen = Vec::new();
        for (rank, bundle) in &bundles {
            read(bundle, *rank).iter().for_each(|call| seen.extend(blocks(call, [4, 4]).concat()));
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "{there:?}: {seen:?}");
        assert!((4..40).contains(&seen[0]), "{seen:?}");
    }
}

#[test]
fn averages_of_other_datatypes_are_the_same_number_of_bytes() {
    // 24 bytes, as all derived datatypes of these tests are.
    let program = |taped: &mut Taped| {
        let made = Cell::new(0x5000usize);
        taped.call("MPI_Type_contiguous", &[6, handle("MPI_INT"), at(&made)]);
        for step in 0..9 {
            let (sent, received) = matrix(taped.rank as i32, |from, to| 6 * (4 + uneven(step)(from, to)));
            let sixth = |counts: [i32; 5]| counts.map(|count| count / 6);
            match taped.rank {
                0 => taped.alltoallv_of(sixth(sent), made.get(), received, handle("MPI_INT")),
                1 => taped.alltoallv_of(sent, handle("MPI_INT"), sixth(received), made.get()),
                _ => taped.alltoallv(sent, received),
            }
        }
    };
    let mut bundles = ranks(0..5, program);
    lose_together(&mut bundles, "averages");
    let mut seen = Vec::new();
    for (rank, bundle) in &bundles {
        let sizes = [if *rank == 0 { 24 } else { 4 }, if *rank == 1 { 24 } else { 4 }];
        read(bundle, *rank)[1..].iter().for_each(|call| seen.extend(blocks(call, sizes).concat()));
    }
    assert_eq!(seen.len(), 5 * 9 * 10);
    seen.dedup();
    assert!(seen.len() == 1 && seen[0] >= 4 * 24 && seen[0] % 24 == 0, "{seen:?}");
}

/// The bytes that all blocks of the calls of these ranks have, after averages: one number. `sizes` are those of the
/// datatypes of a rank.
fn one_mean(bundles: &[(u32, Bundle)], sizes: impl Fn(u32) -> [i64; 2]) -> i64 {
    let mut seen = Vec::new();
    for (rank, bundle) in bundles {
        let mut calls = read(bundle, *rank);
        calls.retain(|call| call.function.name == "MPI_Alltoallv");
        calls.iter().for_each(|call| seen.extend(blocks(call, sizes(*rank)).concat()));
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
    seen[0]
}

#[test]
fn an_average_of_something_is_not_nothing() {
    // One element to one neighbour.
    let sparse = |taped: &mut Taped| {
        let (sent, received) = matrix(taped.rank as i32, |from, to| i32::from(to == (from + 1) % 5));
        (0..3).for_each(|_| taped.alltoallv(sent, received));
    };
    let mut bundles = ranks(0..5, sparse);
    let told = lose_together(&mut bundles, "averages").notes();
    assert_eq!(one_mean(&bundles, |_| [4, 4]), 4);
    let raised = "averages: counts of MPI_Alltoallv are the least that fits all datatypes where their true mean is nearer to 0";
    assert_eq!((told.len(), told[2].as_str()), (3, raised));
    // One element from one rank to one other, in all of the run.
    let once = |taped: &mut Taped| {
        for step in 0..20 {
            let (sent, received) =
                matrix(taped.rank as i32, |from, to| i32::from((step, from, to) == (7, 1, 3)));
            taped.alltoallv(sent, received);
        }
    };
    let mut bundles = ranks(0..5, once);
    lose_together(&mut bundles, "averages");
    assert_eq!(one_mean(&bundles, |_| [4, 4]), 4);
    // Nothing stays nothing.
    let nothing = |taped: &mut Taped| taped.alltoallv([0; 5], [0; 5]);
    let mut bundles = ranks(0..5, nothing);
    assert_eq!(lose_together(&mut bundles, "averages").notes().len(), 2);
    assert_eq!(one_mean(&bundles, |_| [4, 4]), 0);
}

/// Six `MPI_INT` there are one datatype of 24 bytes here, if there is anything.
fn other_datatype(ints: i32, others: i32) -> impl Fn(&mut Taped) {
    move |taped| {
        let made = Cell::new(0x5000usize);
        taped.call("MPI_Type_contiguous", &[6, handle("MPI_INT"), at(&made)]);
        let (rank, int) = (taped.rank as i32, handle("MPI_INT"));
        // Rank 4 has the other datatype, for what it sends and what it receives.
        let amount = |from: i32, to: i32| if from == 4 || to == 4 { others } else { ints };
        let (sent, received) = matrix(rank, amount);
        match rank {
            4 => taped.alltoallv_of(sent.map(|n| n / 6), made.get(), received.map(|n| n / 6), made.get()),
            _ => taped.alltoallv_of(sent, int, received, int),
        }
    }
}

#[test]
fn an_average_fits_all_datatypes_or_counts_stay() {
    let sizes = |rank: u32| if rank == 4 { [24; 2] } else { [4; 2] };
    let coarse = "averages: counts of MPI_Alltoallv stay where no mean near the true one fits the sizes of all datatypes";
    let stays = |program: &dyn Fn(&mut Taped)| {
        let whole = ranks(0..5, program);
        let mut lost = whole.clone();
        let told = lose_together(&mut lost, "averages").notes();
        assert!(told.iter().any(|said| said == coarse), "{told:?}");
        for ((rank, whole), (_, lost)) in whole.iter().zip(&lost) {
            assert_eq!(shown(whole, *rank), shown(lost, *rank));
        }
    };
    // A large datatype that was passed with count 0 only: 16 of 25 counts are 1, then 9.
    stays(&other_datatype(1, 0));
    let mut bundles = ranks(0..5, other_datatype(9, 0));
    lose_together(&mut bundles, "averages");
    assert_eq!(one_mean(&bundles, sizes), 24);
    // Of which there is something: then one element of it is the least.
    let mut bundles = ranks(0..5, other_datatype(0, 6));
    lose_together(&mut bundles, "averages");
    assert_eq!(one_mean(&bundles, sizes), 24);
    // Three datatypes of 32 bytes sent are four of 24 bytes received, and only 96 bytes fit both.
    let mixed = |every: i32| {
        move |taped: &mut Taped| {
            let made = Cell::new(0x5000usize);
            taped.call("MPI_Type_contiguous", &[6, handle("MPI_INT"), at(&made)]);
            let amount = |all: i32| move |from: i32, to: i32| if (from + to) % every == 0 { all } else { 0 };
            let (sent, received) =
                (matrix(taped.rank as i32, amount(3)).0, matrix(taped.rank as i32, amount(4)).1);
            taped.alltoallv_of(sent, handle("MPI_COMPLEX32"), received, made.get());
        }
    };
    stays(&mixed(5));
    let mut bundles = ranks(0..5, mixed(1));
    lose_together(&mut bundles, "averages");
    assert_eq!(one_mean(&bundles, |_| [32, 24]), 96);
}

#[test]
fn counts_without_a_mean_stay() {
    // A datatype that was made where nobody looked, on one rank.
    let program = |taped: &mut Taped| {
        for step in 0..4 {
            let (sent, received) = matrix(taped.rank as i32, uneven(step));
            let int = handle("MPI_INT");
            taped.alltoallv_of(sent, if taped.rank == 2 { 0x7777 } else { int }, received, int);
        }
    };
    let whole = ranks(0..5, program);
    let mut lost = whole.clone();
    let told = lose_together(&mut lost, "averages").notes();
    let said = "averages: counts of MPI_Alltoallv stay where the size of a datatype is not known";
    assert_eq!((told.len(), told[2].as_str()), (3, said));
    for ((rank, whole), (_, lost)) in whole.iter().zip(&lost) {
        assert_eq!(shown(whole, *rank), shown(lost, *rank));
    }
    // And so do all if the ranks could not agree.
    let mut lost = whole.clone();
    let lossy = words("averages,sites=2");
    let agreed = Agreed::from_text("known\n");
    assert!(agreed.failed(&lossy).len() == 2 && agreed.notes().is_empty());
    assert_eq!(agreed.failed(&words("sites=2")), agreed.failed(&lossy)[1..]);
    lose(&mut lost[0].1, (0, SIZE), (&lossy, Folding::default()), &agreed).unwrap();
    assert_eq!(lost[0].1, whole[0].1);
}

#[test]
fn averages_of_alltoallvs_kin() {
    let mut taped = Taped::new(2);
    let (int, comm) = (handle("MPI_INT"), handle("MPI_COMM_WORLD"));
    let (sent, at_sent) = ([1i32, 9, 2, 3, 0], [0i32, 1, 10, 12, 15]);
    let (received, at_received) = ([4i32, 4, 4, 4, 5], [0i32, 10, 20, 30, 40]);
    let args = [0, at(&sent), at(&at_sent), int, 0, at(&received), at(&at_received), int, comm];
    taped.call("MPI_Alltoallv", &args);
    taped.call("MPI_Alltoallv", &[IN_PLACE, 0, 0, 0, 0, at(&received), at(&at_received), int, comm]);
    let request = Cell::new(77usize);
    taped.call("MPI_Ialltoallv", &[&args[..], &[at(&request)]].concat());
    taped.call("MPI_Allgatherv", &[0, 1, int, 0, at(&received), at(&at_received), int, comm]);
    let mut bundles = [(2, taped.bundle())];
    let agreed = lose_together(&mut bundles, "averages");
    assert_eq!(
        agreed.notes(),
        [
            "averages: the 10 recvcounts of MPI_Alltoallv were from 4 (entry 0 on rank 2) to 5 (entry 4 on rank 2)",
            "averages: the 5 sendcounts of MPI_Alltoallv were from 0 (entry 4 on rank 2) to 9 (entry 1 on rank 2)",
            "averages: the 5 recvcounts of MPI_Ialltoallv were from 4 (entry 0 on rank 2) to 5 (entry 4 on rank 2)",
            "averages: the 5 sendcounts of MPI_Ialltoallv were from 0 (entry 4 on rank 2) to 9 (entry 1 on rank 2)",
        ]
    );
    let calls = shown(&bundles[0].1, 2);
    let mean = "[4,4,4,4,4] [0,4,8,12,16] INT BOTTOM [4,4,4,4,4] [0,4,8,12,16] INT world";
    assert_eq!(calls[0], format!("MPI_Alltoallv BOTTOM {mean}"));
    assert_eq!(calls[1], "MPI_Alltoallv IN_PLACE - - - BOTTOM [4,4,4,4,4] [0,4,8,12,16] INT world");
    assert_eq!(calls[2], format!("MPI_Ialltoallv BOTTOM {mean} request#0"));
    assert!(calls[3].contains("[4,4,4,4,5] [0,10,20,30,40]"), "{}", calls[3]);
}

#[test]
fn the_same_stack_stands_for_others_on_all_ranks() {
    // Each rank comes across them in another order, and only one across the last.
    let stacks: [&[u64]; 5] = [&[1, 10, 5], &[1, 20, 5], &[1, 20, 6], &[1, 30, 6], &[1, 2]];
    let program = |taped: &mut Taped| {
        for k in 0..if taped.rank == 3 { 5 } else { 4 } {
            taped.at(stacks[if k < 4 { (k + taped.rank) as usize % 4 } else { 4 }]);
            taped.send(1, 1, k as usize);
            taped.call("MPI_Barrier", &[handle("MPI_COMM_WORLD")]);
        }
    };
    let whole = ranks(0..5, program);
    let sites = |fewer: u32| {
        let mut bundles = whole.clone();
        lose_together(&mut bundles, &format!("sites={fewer}"));
        let mut all: Option<Vec<Vec<u64>>> = None;
        for ((rank, bundle), (_, before)) in bundles.iter().zip(&whole) {
            assert_eq!(shown(bundle, *rank), shown(before, *rank));
            let time = |bundle: &Bundle| bundle.symbols.iter().map(|s| s.tally.total).sum::<u64>();
            assert_eq!(time(bundle), time(before));
            let offsets =
                |site| bundle.sites.frames(site).iter().map(|frame| frame.offset).collect::<Vec<_>>();
            let mut own: Vec<Vec<u64>> = bundle.symbols.iter().map(|symbol| offsets(symbol.site)).collect();
            own.sort();
            own.retain(|stack| stack.len() == 3);
            assert_eq!(all.get_or_insert_with(|| own.clone()), &own, "rank {rank}");
        }
        all.unwrap()
    };
    // Each for both kinds of calls.
    let twice =
        |stacks: &[[u64; 3]]| stacks.iter().flat_map(|s| [s.to_vec(), s.to_vec()]).collect::<Vec<_>>();
    assert_eq!(sites(2), twice(&[[1, 10, 5], [1, 20, 6]]));
    assert_eq!(sites(3), twice(&[[1, 10, 5]]));
}

/// What ranks 0 and 1 do; whether their tags turn out to matter, and are 0 otherwise.
fn tags(zero: impl Fn(&mut Taped), one: impl Fn(&mut Taped), matter: bool) {
    let bundles: Vec<Bundle> = (0..2u32)
        .map(|rank| {
            let mut taped = Taped::new(rank);
            if rank == 0 {
                zero(&mut taped)
            } else {
                one(&mut taped)
            }
            taped.bundle()
        })
        .collect();
    let mut all_tags = Tags::default();
    for (rank, bundle) in (0..).zip(&bundles) {
        let own = Tags::of(bundle, rank).unwrap();
        assert_eq!(Tags::from_text(&own.to_text()), own);
        all_tags.absorb(own);
    }
    assert_eq!(all_tags.matter("world"), matter);
    for (rank, mut bundle) in (0..).zip(bundles) {
        let before = read(&bundle, rank);
        let agreed = Agreed { tags: all_tags.clone(), ..Agreed::default() };
        lose(&mut bundle, (rank, 2), (&words("tags"), Folding::default()), &agreed).unwrap();
        let after = read(&bundle, rank);
        for name in ["tag", "sendtag", "recvtag"] {
            let (was, is) = (all(&before, name), all(&after, name));
            assert_eq!(is, if matter { was } else { vec![0; was.len()] }, "{name}");
        }
    }
}

#[test]
fn tags_in_the_order_of_messages_do_not_matter() {
    let in_order = |taped: &mut Taped| (1..9).for_each(|tag| taped.recv(0, tag));
    let sends = |taped: &mut Taped| (1..9).for_each(|tag| taped.send(1, 1, tag));
    tags(sends, in_order, false);
    // What comes from others is another matter.
    let both = |taped: &mut Taped| (1..9).for_each(|tag| (taped.send(1, 0, 20 - tag), taped.recv(0, tag)).0);
    let back = |taped: &mut Taped| (1..9).for_each(|tag| (taped.send(1, 1, tag), taped.recv(1, 20 - tag)).0);
    tags(back, both, false);
}

#[test]
fn tags_that_choose_among_messages_stay() {
    let sends = |taped: &mut Taped| (1..9).for_each(|tag| taped.send(1, 1, tag));
    let turned = |taped: &mut Taped| (1..9).rev().for_each(|tag| taped.recv(0, tag));
    tags(sends, turned, true);
    let posted = |order: [usize; 2]| {
        move |taped: &mut Taped| {
            let requests = [const { Cell::new(0usize) }; 2];
            for (k, tag) in order.into_iter().enumerate() {
                requests[k].set(40 + k);
                let (int, comm) = (handle("MPI_INT"), handle("MPI_COMM_WORLD"));
                taped.call("MPI_Irecv", &[0, 1, int, 0, tag, comm, at(&requests[k])]);
            }
        }
    };
    let two = |taped: &mut Taped| [3, 5].into_iter().for_each(|tag| taped.send(1, 1, tag));
    tags(two, posted([3, 5]), false);
    tags(two, posted([5, 3]), true);
    // A message that nobody took, and one that nobody sent.
    tags(sends, |taped| (1..8).for_each(|tag| taped.recv(0, tag)), true);
    tags(|_| {}, |taped| (1..3).for_each(|tag| taped.recv(0, tag)), true);
    // The order of what comes from anybody is not that of one sender.
    tags(two, |taped| [3, 5].into_iter().for_each(|tag| taped.recv(ANY_SOURCE, tag)), true);
    tags(two, |taped| [3, ANY_TAG].into_iter().for_each(|tag| taped.recv(0, tag)), true);
    // But one tag is none.
    let one = |taped: &mut Taped| [3, 3].into_iter().for_each(|tag| taped.send(1, 1, tag));
    tags(one, |taped| [3, 3].into_iter().for_each(|tag| taped.recv(ANY_SOURCE, tag)), false);
}

#[test]
fn unknown_tags_stay() {
    assert!(Tags::unknown().matter("world") && Tags::from_text("").matter("world"));
    assert!(Tags::from_text("known\nwrong\n").matter("world"));
    let mut tags = Tags::from_text("known\n0 0 many world\n");
    assert!(!tags.matter("world") && tags.matter("world.0"));
    tags.absorb(Tags::unknown());
    assert!(tags.matter("world"));
}

/// Requests and what calls found done of them.
struct Wait {
    taped: Taped,
    requests: [Cell<usize>; 4],
}

impl Wait {
    fn new(joins: bool) -> Wait {
        let mut taped = Taped::new(2);
        taped.tape.join_waits(joins);
        let mut wait = Wait { taped, requests: [const { Cell::new(0) }; 4] };
        wait.post();
        wait
    }

    fn post(&mut self) {
        for (k, request) in self.requests.iter().enumerate() {
            request.set(500 + k);
            let args = [0, 1, handle("MPI_INT"), k, 9, handle("MPI_COMM_WORLD"), at(request)];
            self.taped.call("MPI_Irecv", &args);
        }
    }

    fn some(&mut self, name: &str, done: &[i32]) {
        let count = if done.first() == Some(&UNDEFINED) { UNDEFINED } else { done.len() as i32 };
        let status = |&k: &i32| FakeStatus { source: k, tag: 9, bytes: 4, error: 0, cancelled: 0 };
        let mut indices = [0; 4];
        indices[..done.len()].copy_from_slice(done);
        let statuses = indices.each_ref().map(status);
        let null = handle("MPI_REQUEST_NULL");
        let args = [4, at(&self.requests), at(&count), at(&indices), at(&statuses)];
        let requests = &self.requests;
        self.taped.world.call(name, &args, 0, || {
            done.iter().filter(|k| **k >= 0).for_each(|&k| requests[k as usize].set(null));
        });
        self.taped.tape.push(&self.taped.world.record, 1);
    }

    fn barrier(&mut self) {
        self.taped.call("MPI_Barrier", &[handle("MPI_COMM_WORLD")]);
    }

    /// The calls after the first four.
    fn waits(self) -> Vec<String> {
        shown(&self.taped.bundle(), 2).split_off(4)
    }
}

#[test]
fn waits_for_the_same_requests_are_one() {
    let whole = {
        let mut wait = Wait::new(false);
        wait.some("MPI_Waitsome", &[0, 1, 2, 3]);
        wait.barrier();
        wait.waits()
    };
    assert!(whole[0].contains("4 [0,1,2,3] [<0 9 4"), "{whole:?}");
    for parts in [&[&[3, 1][..], &[0, 2]][..], &[&[2], &[1], &[3], &[0]], &[&[0, 1, 2, 3]]] {
        let mut wait = Wait::new(true);
        parts.iter().for_each(|done| wait.some("MPI_Waitsome", done));
        wait.barrier();
        assert_eq!(wait.waits(), whole);
    }
    // Only where it was asked for.
    let mut wait = Wait::new(false);
    wait.some("MPI_Waitsome", &[0, 1]);
    wait.some("MPI_Waitsome", &[2, 3]);
    assert_eq!(wait.waits().len(), 2);
}

#[test]
fn polls_before_joined_tests_are_counted_together() {
    let mut wait = Wait::new(true);
    for done in [&[][..], &[], &[2], &[], &[0, 3], &[], &[1]] {
        wait.some("MPI_Testsome", done);
    }
    let calls = wait.waits();
    // Four that found nothing, and one that found all.
    assert_eq!(calls.len(), 5, "{calls:?}");
    assert!(calls[..4].iter().all(|call| call.ends_with(" 0 [] []")), "{calls:?}");
    assert!(calls[4].contains(" 4 [0,1,2,3] "), "{calls:?}");
}

#[test]
fn other_requests_and_other_calls_are_apart() {
    let mut wait = Wait::new(true);
    wait.some("MPI_Waitsome", &[0]);
    wait.barrier();
    wait.some("MPI_Waitsome", &[1, 2]);
    wait.some("MPI_Waitsome", &[3]);
    // Nothing is left: that is no completion.
    wait.some("MPI_Waitsome", &[UNDEFINED]);
    wait.post();
    wait.some("MPI_Waitsome", &[0, 1, 2, 3]);
    let calls = wait.waits();
    let counts: Vec<&str> = calls.iter().map(|call| call.split(' ').next().unwrap()).collect();
    let expected =
        ["Waitsome", "Barrier", "Waitsome", "Waitsome", "Irecv", "Irecv", "Irecv", "Irecv", "Waitsome"];
    assert_eq!(counts, expected.map(|name| format!("MPI_{name}")));
    assert!(calls[2].contains(" 3 [1,2,3] "), "{}", calls[2]);
}

#[test]
fn a_snapshot_has_the_call_that_was_held() {
    let mut wait = Wait::new(true);
    wait.some("MPI_Waitsome", &[0]);
    let snapshot = wait.taped.tape.snapshot().unwrap();
    wait.some("MPI_Waitsome", &[1, 2, 3]);
    let mut calls = Calls::new(&snapshot, 0, 0).unwrap();
    assert_eq!((&mut calls).count(), 5);
    assert_eq!(wait.waits().len(), 2);
}

/// A thread uses a datatype that another one has made. That one has given the id to a larger type since: which of the two it
/// was nobody says, so counts stay.
#[test]
fn a_size_that_an_id_had_at_another_time_is_not_taken() {
    let mut taped = Taped::new(2);
    let mut other = Tape::default();
    let made = Cell::new(0x5000usize);
    let make = [6, handle("MPI_INT"), at(&made)];
    taped.world.host.type_size = 4;
    taped.call("MPI_Type_contiguous", &make);
    std::mem::swap(&mut taped.tape, &mut other);
    taped.alltoallv_of([3, 1, 4, 1, 5], made.get(), [9, 2, 6, 5, 3], made.get());
    std::mem::swap(&mut taped.tape, &mut other);
    taped.call("MPI_Type_free", &[at(&made)]);
    taped.world.host.type_size = 24;
    taped.call("MPI_Type_contiguous", &make);
    let whole = Tape::bundle((2, 3), [(0, &mut taped.tape), (1, &mut other)], |ticks| ticks).unwrap();
    let types: Vec<String> =
        shown(&whole, 2).into_iter().filter(|call| call.contains("contiguous")).collect();
    assert!(types.len() == 2 && types.iter().all(|call| call.contains("datatype#0")), "{types:?}");
    let mut lost = [(2, whole.clone())];
    let told = lose_together(&mut lost, "averages").notes();
    let said = "averages: counts of MPI_Alltoallv stay where the size of a datatype is not known";
    assert!(told.iter().any(|told| told == said), "{told:?}");
    assert_eq!(lost[0].1, whole);
}
