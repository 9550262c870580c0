//! What the calls of a symbol have as parameters: one number, a few, a pattern, another on each rank.

mod comms;

use std::collections::{BTreeMap, HashMap};

use refrain_encode::{Slot, meaning};
use refrain_fold::bundle::{Bundle, Lane};
use refrain_fold::ranks::RankList;
use refrain_fold::stream::Stream;
use refrain_model::{Class, Dir, Kind, Len, Value};

use super::tree::Tree;
use crate::value;
use comms::Comm;
pub use comms::Comms;

/// Longer sequences are only told by their range.
const LOOKED_AT: u64 = 1 << 14;
/// Longer rounds are.
const ROUND: usize = 4;
/// So many values are listed with the ranks that have them.
const LISTED: usize = 3;
/// So many numbers of an array are.
const SHOWN: usize = 8;
/// Of more ranks than these, one in so many is looked at.
const RANKS: u64 = 1 << 12;

/// One parameter of a symbol's calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    pub name: &'static str,
    pub kind: Kind,
    pub is: Is,
    /// Of a peer that is counted as in the world: how many ranks that has.
    pub world: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Is {
    /// The same in all calls of all ranks, and not a number of the calls.
    Fixed(Value),
    /// Numbers of a scalar.
    Numbers(Numbers),
    /// An array: how long it is, if it says so itself, and what is in it.
    Array { length: Option<Numbers>, numbers: Numbers },
    /// Texts, others in every call.
    Texts,
    /// Displacements that are running sums of this parameter.
    Sums(&'static str),
}

/// What ranks have, by what they have.
pub type Numbers = Vec<(Pattern, RankList)>;

/// The numbers of one rank, in the order of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    Constant(i64),
    /// Each so much more than the one before.
    Stride {
        start: i64,
        step: i64,
        last: i64,
    },
    /// These, again and again.
    Round(Vec<i64>),
    /// An array of these, the same in each call.
    Array(Vec<i64>),
    Range {
        low: i64,
        high: i64,
    },
}

impl Pattern {
    pub fn of(stream: &Stream, n: u64) -> Option<Pattern> {
        let (low, high) = stream.min_max(n)?;
        if low == high {
            return Some(Pattern::Constant(low));
        }
        let range = Pattern::Range { low, high };
        if n > LOOKED_AT {
            return Some(range);
        }
        let all: Vec<i64> = stream.iter().take(n as usize).collect();
        let (start, last) = (all[0], all[all.len() - 1]);
        let step = all[1].wrapping_sub(start);
        if all.len() > 2 && all.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step) {
            return Some(Pattern::Stride { start, step, last });
        }
        let comes_again = |length: &usize| all.iter().skip(*length).zip(&all).all(|(a, b)| a == b);
        let round = (2..=ROUND.min(all.len())).find(|length| all.len() >= 2 * length && comes_again(length));
        Some(round.map_or(range, |length| Pattern::Round(all[..length].to_vec())))
    }

    pub fn range(&self) -> (i64, i64) {
        match self {
            Pattern::Constant(value) => (*value, *value),
            Pattern::Stride { start, last, .. } => (*start.min(last), *start.max(last)),
            Pattern::Round(all) | Pattern::Array(all) => {
                (all.iter().copied().min().unwrap_or(0), all.iter().copied().max().unwrap_or(0))
            }
            Pattern::Range { low, high } => (*low, *high),
        }
    }

    /// A peer's offsets as the ranks that they lead to.
    fn from(&self, kind: Kind, rank: u32) -> Option<Pattern> {
        let shift = |value: i64| match meaning(kind, value) {
            Value::Int(_) => value.checked_add(rank.into()),
            _ => None,
        };
        Some(match self {
            Pattern::Constant(value) => Pattern::Constant(shift(*value)?),
            Pattern::Stride { start, step, last } => {
                Pattern::Stride { start: shift(*start)?, step: *step, last: shift(*last)? }
            }
            Pattern::Round(all) => {
                Pattern::Round(all.iter().map(|value| shift(*value)).collect::<Option<_>>()?)
            }
            Pattern::Array(all) => {
                Pattern::Array(all.iter().map(|value| shift(*value)).collect::<Option<_>>()?)
            }
            Pattern::Range { low, high } => Pattern::Range { low: shift(*low)?, high: shift(*high)? },
        })
    }

    fn text(&self, kind: Kind) -> String {
        let one = |value: i64| number(kind, value);
        match self {
            Pattern::Constant(value) => one(*value),
            Pattern::Stride { start, step, last } => format!("{} to {} by {step}", one(*start), one(*last)),
            Pattern::Round(all) => {
                let all: Vec<String> = all.iter().map(|value| one(*value)).collect();
                format!("{} in turn", all.join(" "))
            }
            Pattern::Array(all) => {
                let some = all.iter().take(SHOWN).map(|value| one(*value)).collect::<Vec<_>>().join(" ");
                match all.len() > SHOWN {
                    true => format!("{some} ..."),
                    false => some,
                }
            }
            Pattern::Range { low, high } => format!("varies: {}..{}", one(*low), one(*high)),
        }
    }

    /// Of arrays of so many each, one after the other.
    fn of_arrays(stream: &Stream, n: u64, each: u64) -> Option<Pattern> {
        let plain = Pattern::of(stream, n)?;
        let each = usize::try_from(each).ok().filter(|each| *each > 1 && n <= LOOKED_AT);
        let Some(each) = each.filter(|_| !matches!(plain, Pattern::Constant(_))) else { return Some(plain) };
        let all: Vec<i64> = stream.iter().take(n as usize).collect();
        let same = all.chunks(each).all(|array| *array == all[..each]);
        // A stride says more than the first of its numbers.
        let longer = all.len() == each && matches!(plain, Pattern::Stride { .. });
        Some(if same && !longer { Pattern::Array(all[..each].to_vec()) } else { plain })
    }
}

/// `rank+1` for a peer, a name where it has one.
pub fn number(kind: Kind, number: i64) -> String {
    let mut out = String::new();
    match (kind, meaning(kind, number)) {
        (Kind::Peer(_), Value::Int(0)) => out.push_str("rank"),
        (Kind::Peer(_), Value::Int(n)) => out = format!("rank{n:+}"),
        (_, other) => value::text(&other, &mut out),
    }
    out
}

/// Everything about the calls of a symbol that is neither memory nor an output.
pub fn params(bundle: &Bundle, tree: &Tree, comms: &Comms, world: u32, symbol: u32) -> Vec<Param> {
    let Some(layout) = tree.functions.get(&symbol) else { return Vec::new() };
    let lanes = tree.lanes(symbol);
    let ranks = tree.occurrences(symbol, RANKS);
    let numbers = |lane: u16, lengths: Option<&HashMap<u32, u64>>| -> Numbers {
        let Some(lane) = lanes.get(usize::from(lane)) else { return Vec::new() };
        // How many there are in all, and in each array.
        let count = |rank: u32, calls: u64| {
            let Some(all) = lengths.map(|all| all.get(&rank).copied().unwrap_or(0)) else {
                return (calls, 1);
            };
            (all, all.checked_div(calls).filter(|each| each.checked_mul(calls) == Some(all)).unwrap_or(1))
        };
        by_rank(bundle, lane, ranks.iter().map(|&(rank, calls)| (rank, count(rank, calls))))
    };
    let total = |lane: u16| -> HashMap<u32, u64> {
        let Some(lane) = lanes.get(usize::from(lane)) else { return HashMap::new() };
        let sum = |&(rank, calls): &(u32, u64)| {
            let sum = bundle.stream_of(lane, rank).map_or(0, |stream| stream.sum(calls));
            (rank, u64::try_from(sum.max(0)).unwrap_or(u64::MAX))
        };
        ranks.iter().map(sum).collect()
    };
    let below_zero = |lane: u16| {
        let Some(lane) = lanes.get(usize::from(lane)) else { return false };
        let most = |&(rank, calls): &(u32, u64)| Some(bundle.stream_of(lane, rank)?.min_max(calls)?.1);
        let mut all = ranks.iter().filter_map(most).peekable();
        all.peek().is_some() && all.all(|most| most < 0)
    };
    let counted_as = |kind: Kind| match kind {
        Kind::Peer(comm) => comms.of_slot(layout.slots.get(usize::from(comm))?),
        _ => None,
    };
    let size = i64::from(world);
    let mut params = Vec::new();
    for (param, slot) in layout.function.params.iter().zip(&layout.slots) {
        if param.dir == Dir::Out || !matters(param.kind) || layout.inline.is_some() {
            continue;
        }
        let is = match slot {
            Slot::Fixed(value) => Is::Fixed(comm_name(param.kind, value)),
            Slot::Object(Class::Comm, _) if comms.of_slot(slot).is_some() => {
                let name = comms.of_slot(slot).map_or(String::new(), |comm| comm.name);
                Is::Fixed(Value::Comm(name))
            }
            Slot::Object(class, id) => Is::Fixed(Value::Object(*class, *id)),
            Slot::Number { lane } | Slot::InOut { before: lane, .. } => Is::Numbers(numbers(*lane, None)),
            Slot::List { len: Some(len), sums: Some(counts), .. } if below_zero(*len) => {
                Is::Sums(layout.function.params.get(usize::from(*counts)).map_or("", |counts| counts.name))
            }
            Slot::List { len: Some(len), lane, .. } => {
                let lengths = total(*len);
                Is::Array { length: Some(numbers(*len, None)), numbers: numbers(*lane, Some(&lengths)) }
            }
            // Another parameter says how many there are.
            Slot::List { len: None, lane, .. } => {
                let said = match param.len {
                    [Len::Param(other)] => layout.slots.get(usize::from(*other)),
                    _ => None,
                };
                let lengths = match said {
                    Some(Slot::Number { lane }) => total(*lane),
                    Some(Slot::Fixed(Value::Int(each))) => {
                        let each = u64::try_from(*each).unwrap_or(0);
                        ranks.iter().map(|&(rank, calls)| (rank, calls.saturating_mul(each))).collect()
                    }
                    _ => continue,
                };
                Is::Array { length: None, numbers: numbers(*lane, Some(&lengths)) }
            }
            Slot::Text { .. } => Is::Texts,
            _ => continue,
        };
        let world = counted_as(param.kind).filter(|comm: &Comm| comm.like_world).map(|_| size);
        params.push(Param { name: param.name, kind: param.kind, is, world });
    }
    params
}

fn comm_name(kind: Kind, value: &Value) -> Value {
    match (kind, value) {
        (Kind::Handle(Class::Comm), Value::Name("MPI_COMM_WORLD")) => Value::Comm("world".into()),
        (Kind::Handle(Class::Comm), Value::Name("MPI_COMM_SELF")) => Value::Comm("self".into()),
        _ => value.clone(),
    }
}

fn matters(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Buffer
            | Kind::Value
            | Kind::Status
            | Kind::OutPointer
            | Kind::OutAttribute
            | Kind::ArgCount
            | Kind::ArgVector
            | Kind::Skip
            | Kind::Handle(Class::Request | Class::Message)
    )
}

fn by_rank(bundle: &Bundle, lane: &Lane, ranks: impl Iterator<Item = (u32, (u64, u64))>) -> Numbers {
    let mut found: BTreeMap<Pattern, Vec<u32>> = BTreeMap::new();
    let mut same: HashMap<(u64, u64), Option<Pattern>> = HashMap::new();
    for (rank, count) in ranks {
        let stream = || bundle.stream_of(lane, rank);
        let pattern = || Pattern::of_arrays(&*stream()?, count.0, count.1);
        let pattern = match lane {
            Lane::Same { .. } => same.entry(count).or_insert_with(pattern).clone(),
            Lane::Varied(_) => pattern(),
        };
        if let Some(pattern) = pattern {
            found.entry(pattern).or_default().push(rank);
        }
    }
    let mut found: Vec<(Pattern, Vec<u32>)> = found.into_iter().collect();
    found.sort_by_key(|(_, ranks)| ranks[0]);
    found.into_iter().map(|(pattern, ranks)| (pattern, RankList::from_sorted(&ranks))).collect()
}

/// What ranks have in a few words. `world`: of peers that are counted as in the world, its size.
pub fn text(kind: Kind, numbers: &Numbers, world: Option<i64>) -> String {
    if let Some(peers) = world.and_then(|size| peers(kind, numbers, size)) {
        return peers;
    }
    match &numbers[..] {
        [] => "-".into(),
        [(pattern, _)] => pattern.text(kind),
        several => {
            // What is counted from the caller on says nothing of ranks where the caller's number is not known.
            let known = world.is_some() || !matches!(kind, Kind::Peer(_));
            if let Some(formula) = known.then(|| linear(kind, several)).flatten() {
                return formula;
            }
            let listed = several.len() <= LISTED;
            if listed {
                let one = |(pattern, ranks): &(Pattern, RankList)| {
                    format!("{} on {}", pattern.text(kind), on(ranks))
                };
                return several.iter().map(one).collect::<Vec<_>>().join(", ");
            }
            let ranges = several.iter().map(|(pattern, _)| pattern.range());
            let (low, high) =
                ranges.fold((i64::MAX, i64::MIN), |all, one| (all.0.min(one.0), all.1.max(one.1)));
            let constant = several.iter().all(|(pattern, _)| matches!(pattern, Pattern::Constant(_)));
            let how = if constant { "by rank" } else { "varies" };
            format!("{how}: {}..{}", number(kind, low), number(kind, high))
        }
    }
}

/// Lists of more pieces than these are written as short as they can be.
const PIECES: usize = 6;

/// `rank 3`, `ranks 0,2,4`, and where that is long `ranks 0-14:2`.
pub fn on(ranks: &RankList) -> String {
    let one = if ranks.len() == 1 { "rank" } else { "ranks" };
    let short = ranks.to_string();
    if !is_notation(&short) {
        return format!("{one} {short}");
    }
    let mut pieces: Vec<(u32, u32)> = Vec::new();
    for rank in ranks.iter() {
        let full = pieces.len() == PIECES;
        match pieces.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
            _ if full => return format!("{one} {short}"),
            _ => pieces.push((rank, rank)),
        }
    }
    let piece = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    format!("{one} {}", pieces.iter().map(piece).collect::<Vec<_>>().join(","))
}

/// A list of ranks has more than single ones and such from one to another.
fn is_notation(list: &str) -> bool {
    list.contains([':', '+'])
}

/// Whether a text has lists of ranks that want to be explained.
pub fn has_notation(text: &str) -> bool {
    let lists = text.split("ranks ").skip(1).filter_map(|rest| rest.split([' ', '\n']).next());
    lists.into_iter().any(|list| list.starts_with(|c: char| c.is_ascii_digit()) && is_notation(list))
}

/// Ranks and the number that each has, if each has one.
fn points(numbers: &[(Pattern, RankList)]) -> Option<Vec<(i64, i64)>> {
    let mut points: Vec<(i64, i64)> = Vec::new();
    for (pattern, ranks) in numbers {
        let Pattern::Constant(value) = pattern else { return None };
        points.extend(ranks.iter().map(|rank| (i64::from(rank), *value)));
    }
    points.sort_unstable();
    Some(points)
}

/// `0`, `(rank+1) mod 8`: peers that are better told as ranks, or around the world, than from each caller on.
fn peers(kind: Kind, numbers: &Numbers, size: i64) -> Option<String> {
    if let [(pattern, ranks)] = &numbers[..]
        && ranks.len() == 1
    {
        return Some(pattern.from(kind, ranks.iter().next()?)?.text(Kind::Int));
    }
    let points = points(numbers)?;
    if points.iter().any(|(_, offset)| !matches!(meaning(kind, *offset), Value::Int(_))) {
        return None;
    }
    let to = |(rank, offset): &(i64, i64)| rank.wrapping_add(*offset);
    let first = to(points.first()?);
    if points.iter().all(|point| to(point) == first) {
        return Some(first.to_string());
    }
    let around = points[0].1.rem_euclid(size.max(1));
    let fits = |point: &(i64, i64)| to(point) == (point.0 + around) % size.max(1);
    if numbers.len() < 2 || !points.iter().all(fits) {
        return None;
    }
    let least = if 2 * around > size { around - size } else { around };
    Some(format!("(rank{least:+}) mod {size}"))
}

/// `10 + 3 * rank`, where that is all there is to it and there are enough ranks to believe it.
fn linear(kind: Kind, numbers: &[(Pattern, RankList)]) -> Option<String> {
    let points = points(numbers)?;
    let [(r0, v0), (r1, v1), _, ..] = points[..] else { return None };
    let (slope, rest) = ((v1 - v0) / (r1 - r0), (v1 - v0) % (r1 - r0));
    let start = v0.checked_sub(slope.checked_mul(r0)?)?;
    let fits = |&(rank, value): &(i64, i64)| {
        slope.checked_mul(rank).and_then(|v| v.checked_add(start)) == Some(value)
    };
    if rest != 0 || slope == 0 || !points.iter().all(fits) {
        return None;
    }
    // A peer is told from the caller on.
    let slope = if matches!(kind, Kind::Peer(_)) { slope + 1 } else { slope };
    let times = match slope.unsigned_abs() {
        0 => return Some(start.to_string()),
        1 => "rank".to_string(),
        slope => format!("{slope}*rank"),
    };
    Some(match (slope > 0, start) {
        (true, 0) => times,
        (true, _) => format!("{times}{start:+}"),
        (false, 0) => format!("-{times}"),
        (false, _) => format!("{start}-{times}"),
    })
}

impl Param {
    pub fn text(&self) -> String {
        let mut out = String::new();
        match &self.is {
            Is::Fixed(fixed) => value::text(fixed, &mut out),
            Is::Texts => out.push_str("(texts)"),
            Is::Sums(counts) => out = format!("(sums of {counts})"),
            Is::Numbers(numbers) => out = text(self.kind, numbers, self.world),
            Is::Array { length, numbers } => {
                let length = length
                    .as_ref()
                    .map_or(String::new(), |length| format!("{} of ", text(Kind::Int, length, None)));
                out = format!("[{length}{}]", text(self.kind, numbers, self.world));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(values: &[i64]) -> Stream {
        let mut folder = refrain_fold::stream::Folder::new();
        values.iter().for_each(|&v| folder.push(v));
        folder.finish()
    }

    #[track_caller]
    fn check(values: &[i64], expected: &str) {
        let pattern = Pattern::of(&stream(values), values.len() as u64).unwrap();
        assert_eq!(pattern.text(Kind::Int), expected);
    }

    #[test]
    fn patterns() {
        check(&[5, 5, 5], "5");
        check(&[1, 2, 3, 4], "1 to 4 by 1");
        check(&[9, 6, 3], "9 to 3 by -3");
        check(&[1, 7, 1, 7, 1], "1 7 in turn");
        check(&[1, 7, 3, 64, 2], "varies: 1..64");
        check(&[1, 7], "varies: 1..7");
        assert_eq!(Pattern::of(&stream(&[1]), 0), None);
    }

    /// An array that is the same in each call does not vary.
    #[test]
    fn arrays() {
        let check = |values: &[i64], each: u64, expected: &str| {
            let pattern = Pattern::of_arrays(&stream(values), values.len() as u64, each).unwrap();
            assert_eq!(pattern.text(Kind::Int), expected, "{values:?}");
        };
        check(&[4, 4, 4, 4], 2, "4");
        check(&[1, 7], 2, "1 7");
        check(&[1, 7, 3, 64, 2].repeat(3), 5, "1 7 3 64 2");
        check(&[1, 7, 3, 64, 2, 1, 7, 3, 64, 9], 5, "varies: 1..64");
        check(&[0, 2, 4, 6, 8, 10, 12, 14, 16, 18], 10, "0 to 18 by 2");
        check(&[9, 2, 4, 6, 8, 10, 12, 14, 16, 18], 10, "9 2 4 6 8 10 12 14 ...");
        check(&[1, 7, 3], 1, "varies: 1..7");
    }

    #[test]
    fn ranks_in_words() {
        let check = |ranks: &[u32], expected: &str| assert_eq!(on(&RankList::from_sorted(ranks)), expected);
        check(&[3], "rank 3");
        check(&[0, 1, 2, 7], "ranks 0-2,7");
        check(&[0, 2, 4], "ranks 0,2,4");
        check(&[0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14], "ranks 0-2,4-6,8-10,12-14");
        check(&(0..40).step_by(2).collect::<Vec<_>>(), "ranks 0-38:2");
        assert!(has_notation("on ranks 0-38:2  at x") && has_notation("ranks 0-2+4x4\n"));
        assert!(!has_notation("ranks 0-2,7 at a.c:3 in b") && !has_notation("all ranks +1:3"));
    }

    fn numbers(all: &[(i64, &[u32])]) -> Numbers {
        all.iter().map(|(value, ranks)| (Pattern::Constant(*value), RankList::from_sorted(ranks))).collect()
    }

    #[test]
    fn by_ranks() {
        let check = |all: &[(i64, &[u32])], world: Option<i64>, expected: &str| {
            assert_eq!(text(Kind::Peer(0), &numbers(all), world), expected);
        };
        for world in [None, Some(5)] {
            check(&[(1, &[0, 1, 2, 3])], world, "rank+1");
            check(&[(0, &[0, 1])], world, "rank");
        }
        let ring: [(i64, &[u32]); 2] = [(1, &[0, 1, 2]), (-3, &[3])];
        check(&ring, None, "rank+1 on ranks 0-2, rank-3 on rank 3");
        check(&ring, Some(4), "(rank+1) mod 4");
        check(&ring, Some(5), "rank+1 on ranks 0-2, rank-3 on rank 3");
        check(&[(3, &[0]), (-1, &[1, 2, 3])], Some(4), "(rank-1) mod 4");
        // A rank of its own, or where all send to one: who that is.
        check(&[(-2, &[2])], Some(3), "0");
        check(&[(-2, &[2])], None, "rank-2");
        check(&[(-1, &[1]), (-2, &[2])], Some(3), "0");
        check(&[(-1, &[1]), (-2, &[2])], None, "rank-1 on rank 1, rank-2 on rank 2");
        let to_all = Pattern::Stride { start: 1, step: 1, last: 3 };
        let to_all = vec![(to_all, RankList::single(1))];
        assert_eq!(text(Kind::Peer(0), &to_all, Some(5)), "2 to 4 by 1");
        assert_eq!(text(Kind::Peer(0), &to_all, None), "rank+1 to rank+3 by 1");

        let each: Vec<(i64, [u32; 1])> = (0..5).map(|r| (10 + 3 * i64::from(r), [r])).collect();
        let each: Vec<(i64, &[u32])> = each.iter().map(|(v, r)| (*v, &r[..])).collect();
        assert_eq!(text(Kind::Int, &numbers(&each), None), "3*rank+10");
        // All to rank 0, or to the one on the other side.
        let to = |f: fn(i64) -> i64| (0..4).map(|r| (f(r) - r, [r as u32])).collect::<Vec<_>>();
        for (to, expected) in [(to(|_| 0), "0"), (to(|r| 3 - r), "3-rank"), (to(|r| 2 * r), "2*rank")] {
            let to: Vec<(i64, &[u32])> = to.iter().map(|(v, r)| (*v, &r[..])).collect();
            check(&to, Some(8), expected);
        }
        let odd = [(4, &[0u32][..]), (9, &[1]), (2, &[2]), (7, &[3])];
        assert_eq!(text(Kind::Int, &numbers(&odd), None), "by rank: 2..9");
        assert_eq!(text(Kind::Int, &vec![], None), "-");
    }
}
