//! How much information is in the numbers of a trace: `entropy [--parameters] FILE`.
//!
//! Of each parameter of each function the Shannon entropy of order 0, with the numbers of all ranks in one pool: what a
//! perfect coder would need that knows how often each number occurs, and nothing else. Numbers that follow a pattern
//! are no information, so a parameter counts as it stands, relative to the rank (also modulo the ranks), or as the
//! difference to the number 1 to 64 (or as many as there are ranks) before it on the same rank, whichever is least; the
//! numbers that nothing stands before are a pool of their own. Of more than 2^20 numbers only the differences to the one before
//! and to the one in the row before are looked at. Requests are not counted: their ids are the tracer's names.
//!
//! `distinct` counts parameters that say the same only once: those whose numbers are a times another's plus b,
//! throughout (the bytes of a status and the count asked from it). `once` leaves out, too, what follows from other numbers of the call
//! or of other ranks: displacements that are running sums of counts, and counts that are those of the other side (what a rank
//! receives from others is what these send to it). So it is the matrix of an `MPI_Alltoallv`, once. `polls` are the calls that found
//! nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::process::ExitCode;

use refrain_encode::{Calls, hash_bytes};
use refrain_model::{Call, Class, Kind, Value};

const DISTANCES: usize = 64;
/// Of more numbers not all distances are tried.
const MANY: usize = 1 << 20;

/// A parameter's numbers, in order, rank by rank.
#[derive(Default)]
struct Numbers {
    ranks: Vec<(i64, Vec<i64>)>,
}

impl Numbers {
    fn push(&mut self, rank: i64, value: i64) {
        if self.ranks.last().is_none_or(|(last, _)| *last != rank) {
            self.ranks.push((rank, Vec::new()));
        }
        if let Some((_, values)) = self.ranks.last_mut() {
            values.push(value);
        }
    }

    /// Equal for parameters that differ by a factor and a sum only.
    fn content(&self) -> u64 {
        let all =
            || self.ranks.iter().flat_map(|(rank, values)| values.iter().map(move |value| (*rank, *value)));
        let first = all().next().map_or(0, |(_, value)| value);
        let unit = all().fold(0, |unit, (_, value)| gcd(unit, value.wrapping_sub(first).unsigned_abs()));
        let down = all()
            .map(|(_, value)| value.wrapping_sub(first))
            .find(|away| *away != 0)
            .is_some_and(|away| away < 0);
        let unit = i128::from(unit.max(1)) * if down { -1 } else { 1 };
        let mut bytes = Vec::new();
        for (rank, value) in all() {
            bytes.extend(rank.to_le_bytes());
            bytes.extend(((i128::from(value) - i128::from(first)) / unit).to_le_bytes());
        }
        hash_bytes(&bytes)
    }

    fn len(&self) -> usize {
        self.ranks.iter().map(|(_, values)| values.len()).sum()
    }

    /// In bits, over all numbers.
    fn entropy(&self, ranks: i64) -> f64 {
        let views: [&dyn Fn(i64, i64) -> i64; 3] =
            [&|_, value| value, &|rank, value| value - rank, &|rank, value| (value - rank).rem_euclid(ranks)];
        let mut least = f64::INFINITY;
        for (number, view) in views.iter().enumerate() {
            // What is taken modulo the ranks must have been a rank.
            let rank_like = |(_, values): &(i64, Vec<i64>)| values.iter().all(|v| (-1..ranks).contains(v));
            if number == 2 && !self.ranks.iter().all(rank_like) {
                continue;
            }
            let most = if self.len() > MANY { 1 } else { DISTANCES };
            for distance in (0..=most).chain([ranks as usize]) {
                least = least.min(self.entropy_of(view, distance));
                if least == 0.0 {
                    return 0.0;
                }
            }
        }
        least
    }

    fn entropy_of(&self, view: &dyn Fn(i64, i64) -> i64, distance: usize) -> f64 {
        let mut counts: HashMap<(bool, i64), u64> = HashMap::new();
        let mut total = [0u64; 2];
        for (rank, values) in &self.ranks {
            for (at, &value) in values.iter().enumerate() {
                let known = distance > 0 && at >= distance;
                let before = if known { view(*rank, values[at - distance]) } else { 0 };
                *counts.entry((known, view(*rank, value).wrapping_sub(before))).or_default() += 1;
                total[usize::from(known)] += 1;
            }
        }
        let bits = |(&(known, _), &n): (&(bool, i64), &u64)| {
            n as f64 * (total[usize::from(known)] as f64 / n as f64).log2()
        };
        counts.iter().map(bits).sum()
    }

    /// Whether rows and columns of `other` are exchanged here, in each table with an entry for every two ranks.
    fn is_transpose_of(&self, other: &Numbers, ranks: usize) -> bool {
        let all = |numbers: &Numbers| {
            let ids = numbers.ranks.iter().map(|(rank, _)| *rank);
            let whole = |(_, values): &(i64, Vec<i64>)| {
                values.len().is_multiple_of(ranks) && values.len() == numbers.ranks[0].1.len()
            };
            ids.eq(0..ranks as i64) && numbers.ranks.iter().all(whole)
        };
        if ranks < 2 || self.len() != other.len() || !all(self) || !all(other) {
            return false;
        }
        (0..ranks).all(|rank| {
            let mut places = self.ranks[rank].1.iter().enumerate();
            places.all(|(at, value)| other.ranks[at % ranks].1[at / ranks * ranks + rank] == *value)
        })
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

type Pools = BTreeMap<String, Numbers>;

fn add(pools: &mut Pools, name: &str, rank: i64, value: &Value) {
    let mut push = |part: &str, number: i64| {
        let key = format!("{name}{part}");
        pools.entry(key).or_default().push(rank, number);
    };
    match value {
        Value::Unset => {}
        Value::Int(number) => push("", *number),
        Value::Bool(truth) => push("", i64::from(*truth)),
        // Names are few; below any number that a program uses.
        Value::Name(text) => push("", i64::MIN / 2 + (hash_bytes(text.as_bytes()) >> 40) as i64),
        Value::Mask(names) => push("", hash_bytes(names.join("|").as_bytes()) as i64 >> 8),
        Value::Text(text) | Value::Comm(text) => push("", hash_bytes(text.as_bytes()) as i64 >> 8),
        Value::Object(_, id) => push("", i64::from(*id)),
        Value::Address(a) => {
            push(".segment", i64::from(a.segment) * 8 + a.area as i64);
            push(".offset", a.offset);
        }
        Value::Status(s) => {
            let numbers =
                [(".bytes", s.bytes), (".cancelled", s.cancelled.map(i64::from)), (".error", s.error)];
            numbers.into_iter().for_each(|(field, number)| number.into_iter().for_each(|n| push(field, n)));
            add(pools, &format!("{name}.source"), rank, &s.source);
            add(pools, &format!("{name}.tag"), rank, &s.tag);
        }
        Value::List(values) => {
            push(".length", values.len() as i64);
            values.iter().for_each(|value| add(pools, &format!("{name}[]"), rank, value));
        }
        Value::InOut(before, after) => {
            add(pools, &format!("{name}.in"), rank, before);
            add(pools, &format!("{name}.out"), rank, after);
        }
    }
}

fn collect(pools: &mut Pools, rank: i64, call: &Call) {
    let mut before = None;
    for (parameter, value) in call.function.params.iter().zip(&call.args) {
        if parameter.kind != Kind::Handle(Class::Request) {
            let sums = if before.is_some_and(|counts| are_sums(counts, value)) { SUMS } else { "" };
            add(pools, &format!("{}.{}{sums}", call.function.name, parameter.name), rank, value);
        }
        before = Some(value);
    }
    for (fact, value) in &call.facts {
        add(pools, &format!("{}.{fact}", call.function.name), rank, value);
    }
}

/// Of a parameter whose numbers follow from those of the one before.
const SUMS: &str = " (sums)";

fn are_sums(counts: &Value, value: &Value) -> bool {
    let (Value::List(counts), Value::List(sums)) = (counts, value) else { return false };
    let number = |value: &Value| if let Value::Int(number) = value { *number } else { 0 };
    let follows =
        |(pair, count): (&[Value], &Value)| number(&pair[1]).wrapping_sub(number(&pair[0])) == number(count);
    sums.len() > 1 && sums.len() == counts.len() && sums.windows(2).zip(counts).all(follows)
}

/// A test or probe that found nothing.
fn in_vain(call: &Call) -> bool {
    call.function.params.iter().zip(&call.args).any(|(parameter, value)| {
        matches!((parameter.name, value), ("flag", Value::Bool(false)) | ("outcount", Value::Int(0)))
    })
}

fn measure(file: &str, parameters: bool) -> Result<(), String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{file}: {error}"))?;
    let trace = refrain_tracefile::read(&bytes).map_err(|error| format!("{file}: {error}"))?;
    let mut pools = Pools::new();
    let (mut calls, mut polls) = (0u64, 0u64);
    for rank in 0..trace.meta.ranks {
        for thread in trace.bundle.threads(rank) {
            for call in Calls::new(&trace.bundle, rank, thread).map_err(|error| error.to_string())? {
                let call = call.map_err(|error| error.to_string())?;
                collect(&mut pools, rank.into(), &call);
                calls += 1;
                polls += u64::from(in_vain(&call));
            }
        }
    }
    let ranks = i64::from(trace.meta.ranks.max(1));
    let (mut total, mut distinct, mut once, mut seen) = (0.0, 0.0, 0.0, HashSet::new());
    for (name, numbers) in &pools {
        let bits = numbers.entropy(ranks);
        total += bits;
        let new = seen.insert(numbers.content());
        if new {
            distinct += bits;
        }
        let twin = |(other, twin): (&String, &Numbers)| {
            other > name && numbers.is_transpose_of(twin, ranks as usize)
        };
        let other_side = bits > 0.0 && pools.iter().any(twin);
        if new && !other_side && !name.contains(SUMS) {
            once += bits;
        }
        if parameters && bits > 0.0 {
            let again = match (new, other_side) {
                (false, _) => " (as another)",
                (_, true) => " (as the other side)",
                _ => "",
            };
            println!("{name} {} numbers {:.1} bytes{again}", numbers.len(), bits / 8.0);
        }
    }
    let [total, distinct, once] = [total, distinct, once].map(|bits| bits / 8.0);
    println!("calls {calls} polls {polls} entropy {total:.1} distinct {distinct:.1} once {once:.1}");
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (file, parameters) = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [file] => (file, false),
        ["--parameters", file] => (file, true),
        _ => {
            eprintln!("usage: entropy [--parameters] FILE");
            return ExitCode::from(2);
        }
    };
    match measure(file, parameters) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
