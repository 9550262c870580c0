//! Which bytes a call touches: of every buffer, from its parameters' names in the call table, and of every datatype.
//!
//! A trace may come from anybody, and a library checks no displacement and no extent. So the replay adds up itself, in
//! numbers that cannot overflow, how far a call reaches, and makes room for it or refuses the call.

use std::sync::{Arc, OnceLock};

use refrain_model::{Call, Class, Dir, Function, Kind, Value, functions};
use refrain_views::human;
use refrain_views::value::shown;

use crate::ahead::before;
use crate::words::{Surroundings, Unmade};

/// No address, extent or number of bytes is larger: libraries add and multiply a few of these in 64 bits.
pub const FARTHEST: i128 = 1 << 60;

/// What a library may not tell: variables of the tool interface.
const UNKNOWN: i128 = 1 << 20;

/// Bytes around a place, from the first to the one behind the last. Empty where the two are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    pub lo: i128,
    pub hi: i128,
}

impl Reach {
    pub const NOTHING: Reach = Reach { lo: 0, hi: 0 };

    pub fn bytes(bytes: i128) -> Reach {
        Reach { lo: 0, hi: bytes.max(0) }
    }

    pub fn is_empty(self) -> bool {
        self.lo >= self.hi
    }

    pub fn and(self, other: Reach) -> Reach {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Reach { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) },
        }
    }

    pub fn moved(self, by: i128) -> Reach {
        if self.is_empty() { self } else { Reach { lo: self.lo + by, hi: self.hi + by } }
    }

    /// The numbers of it are those of addresses in this process.
    fn check(self, parameter: &'static str) -> Result<Reach, Unmade> {
        match self.lo < -FARTHEST || self.hi > FARTHEST {
            true => Err(Unmade::Memory { parameter, why: "it reaches further than any memory".to_owned() }),
            false => Ok(self),
        }
    }
}

/// What elements of a datatype touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The lower bound, and from one element to the next.
    pub lower: i64,
    pub extent: i64,
    /// What one element touches.
    pub data: (i64, i64),
    /// Bytes of data in one element.
    pub size: i64,
    /// So many types it is made of, one in another.
    pub depth: u32,
    /// So many pieces a library may keep of it.
    pub pieces: u64,
    /// Of a type of absolute addresses: each piece.
    pub parts: Option<Arc<[(i64, i64)]>>,
}

impl Shape {
    pub const fn plain(bytes: i64) -> Shape {
        let data = (0, bytes);
        Shape { lower: 0, extent: bytes, data, size: bytes, depth: 0, pieces: 1, parts: None }
    }

    /// So many elements, one behind the other.
    pub fn times(&self, count: i128) -> Reach {
        if count <= 0 || self.size == 0 {
            return Reach::NOTHING;
        }
        let last = i128::from(self.extent) * (count - 1);
        let (lo, hi) = (i128::from(self.data.0), i128::from(self.data.1));
        Reach { lo: lo + last.min(0), hi: hi + last.max(0) }
    }

    /// No number in it is larger.
    pub fn largest(&self) -> i128 {
        let upper = i128::from(self.lower) + i128::from(self.extent);
        let all = [self.lower, self.extent, self.data.0, self.data.1, self.size].map(i128::from);
        all.into_iter().chain([upper]).map(i128::abs).max().unwrap_or(0)
    }
}

/// How far a call reaches from one of its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// MPI does not look there.
    Nothing,
    /// A parameter says how many bytes.
    Bytes(usize),
    Unknown,
    Elements {
        /// One element where there is none.
        counts: Option<usize>,
        types: usize,
        displacements: Option<usize>,
        /// Displacements count bytes, not elements.
        in_bytes: bool,
        /// As often as a communicator has members, or a topology neighbours.
        members: Option<usize>,
        /// As often as that parameter says.
        partitions: Option<usize>,
    },
}

/// The buffers of a function, with their rules.
fn rules(function: &'static Function) -> &'static [(usize, Rule)] {
    static ALL: OnceLock<Vec<Vec<(usize, Rule)>>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let most = functions().iter().map(|f| usize::from(f.id)).max().unwrap_or(0);
        let mut all = vec![Vec::new(); most + 1];
        for function in functions() {
            let buffers = function.params.iter().enumerate().filter(|(_, p)| p.kind == Kind::Buffer);
            let rules = buffers.map(|(at, p)| (at, rule(function, p.name).unwrap_or(Rule::Unknown)));
            all[usize::from(function.id)] = rules.collect();
        }
        all
    });
    all.get(usize::from(function.id)).map_or(&[], |rules| rules)
}

/// From the names that parameters have in the standard. `None`: they do not say.
fn rule(function: &Function, buffer: &str) -> Option<Rule> {
    let at = |name: &str| function.index_of(name);
    let name = function.name;
    if name.starts_with("MPI_T_") || name.starts_with("MPI_Abi_") {
        return Some(Rule::Unknown);
    }
    // Whose address is asked for or given back, and the end of what was begun elsewhere.
    const NOTHING: [&str; 5] =
        ["MPI_Get_address", "MPI_Address", "MPI_Free_mem", "MPI_Win_detach", "MPI_F_sync_reg"];
    if NOTHING.contains(&name) || name.starts_with("MPI_File_") && name.ends_with("_end") {
        return Some(Rule::Nothing);
    }
    let both = |counts: &[&str], types: &[&str]| -> Option<(usize, usize)> {
        let first = |names: &[&str]| names.iter().find_map(|name| at(name));
        Some((first(counts)?, first(types)?))
    };
    let elements = |(counts, types): (usize, usize)| {
        let displacements = match buffer {
            "sendbuf" => at("sdispls").or_else(|| at("displs").filter(|_| at("sendcounts").is_some())),
            "recvbuf" => at("rdispls").or_else(|| at("displs").filter(|_| at("recvcounts").is_some())),
            _ => None,
        };
        let several = displacements.is_none() && at("recvcount").is_some();
        Rule::Elements {
            counts: Some(counts),
            types,
            displacements,
            in_bytes: at("sendtypes").is_some(),
            members: if several { at("comm") } else { None },
            partitions: at("partitions"),
        }
    };
    match buffer {
        // Of the whole call where a reduction has one count for all.
        "sendbuf" => both(
            &["sendcount", "sendcounts", "count", "recvcounts", "recvcount"],
            &["sendtype", "sendtypes", "datatype"],
        )
        .map(elements),
        "recvbuf" => {
            both(&["recvcount", "recvcounts", "count"], &["recvtype", "recvtypes", "datatype"]).map(elements)
        }
        "origin_addr" | "result_addr" | "compare_addr" => {
            let side = if buffer == "result_addr" { "result" } else { "origin" };
            let own = both(&[&format!("{side}_count")], &[&format!("{side}_datatype")]);
            own.map(elements).or_else(|| {
                Some(Rule::Elements {
                    counts: None,
                    types: at("datatype")?,
                    displacements: None,
                    in_bytes: false,
                    members: None,
                    partitions: None,
                })
            })
        }
        "inbuf" => {
            let whole = at("insize").map(Rule::Bytes);
            whole.or_else(|| both(&["incount", "count"], &["datatype"]).map(elements))
        }
        "outbuf" => {
            let whole = at("outsize").map(Rule::Bytes);
            whole.or_else(|| both(&["outcount"], &["datatype"]).map(elements))
        }
        "buf" | "inoutbuf" => both(&["count"], &["datatype"]).map(elements),
        "buffer" | "base" => {
            at("size").map(Rule::Bytes).or_else(|| both(&["count"], &["datatype"]).map(elements))
        }
        _ => None,
    }
}

/// A number that a call was given. Without a meaning on this rank it is 0, as it is to MPI. So is a name: `words` refuses those
/// that stand for any number.
pub fn number(call: &Call, at: usize) -> i128 {
    match before(&call.args[at]) {
        Value::Int(number) => (*number).into(),
        _ => 0,
    }
}

fn numbers(call: &Call, at: usize) -> Vec<i128> {
    let int = |value: &Value| match value {
        Value::Int(number) => i128::from(*number),
        _ => 0,
    };
    match before(&call.args[at]) {
        Value::List(list) => list.iter().map(int).collect(),
        one => vec![int(one)],
    }
}

/// What a call touches from that buffer on.
pub fn of(call: &Call, at: usize, around: &impl Surroundings) -> Result<Reach, Unmade> {
    let rule = rules(call.function).iter().find(|(buffer, _)| *buffer == at).map(|(_, rule)| *rule);
    let parameter = call.function.params[at].name;
    // What is read and not changed needs nothing to change it with.
    let op = call.function.index_of("op").map(|op| &call.args[op]);
    if parameter == "origin_addr" && op == Some(&Value::Name("MPI_NO_OP")) {
        return Ok(Reach::NOTHING);
    }
    let reach = match rule.unwrap_or(Rule::Unknown) {
        Rule::Nothing => Reach::NOTHING,
        Rule::Bytes(size) => Reach::bytes(number(call, size)),
        Rule::Unknown => Reach::bytes(UNKNOWN),
        Rule::Elements { counts, types, displacements, in_bytes, members, partitions } => {
            let types = before(&call.args[types]);
            let Some(counts) = counts else { return Ok(around.shape(types).times(1)) };
            if let (Value::List(_), _) | (_, Value::List(_)) = (before(&call.args[counts]), types) {
                return in_parts(call, (counts, types, displacements), in_bytes, around)?.check(parameter);
            }
            let shape = around.shape(types);
            let mut times = number(call, counts);
            if let Some(comm) = members {
                let members = around.members(&call.args[comm], has_neighbours(call));
                times = times.saturating_mul(members.into());
            }
            if let Some(partitions) = partitions {
                times = times.saturating_mul(number(call, partitions).max(0));
            }
            is_straight(call, &shape, times, parameter)?;
            // Libraries keep copies of as many bytes.
            Reach::bytes(times.max(0).saturating_mul(shape.largest())).check(parameter)?;
            // A negative count is none.
            fits(times.max(0).saturating_mul(shape.size.into()), parameter)?;
            shape.times(times)
        }
    };
    reach.check(parameter)
}

fn has_neighbours(call: &Call) -> bool {
    call.function.name.contains("eighbor")
}

/// Collective calls copy to memory of their own, where nothing lies before the first element.
fn is_straight(call: &Call, shape: &Shape, times: i128, parameter: &'static str) -> Result<(), Unmade> {
    let collective = call.function.families.contains(&"coll");
    match collective && shape.extent < 0 && times > 1 && shape.size > 0 {
        true => {
            let why = "elements of its datatype lie one before the other (a negative extent)".to_owned();
            Err(Unmade::Memory { parameter, why })
        }
        false => Ok(()),
    }
}

/// So much data is in the memory of this machine.
pub fn fits(bytes: i128, parameter: &'static str) -> Result<(), Unmade> {
    let most = crate::sound::memory();
    match bytes > most {
        true => {
            let [bytes, most] = [bytes, most].map(|bytes| human::size(bytes as u128));
            let why = format!("{bytes} of data, and this machine has {most} of memory");
            Err(Unmade::Memory { parameter, why })
        }
        false => Ok(()),
    }
}

/// A part for each rank.
fn in_parts(
    call: &Call,
    (counts, types, displacements): (usize, &Value, Option<usize>),
    in_bytes: bool,
    around: &impl Surroundings,
) -> Result<Reach, Unmade> {
    let parameter = call.function.params[counts].name;
    let places = displacements.map(|at| numbers(call, at));
    let (mut all, mut sum, mut data) = (Reach::NOTHING, 0i128, 0);
    let mut shape = None;
    for (k, count) in numbers(call, counts).into_iter().enumerate() {
        if count < 0 {
            return Err(Unmade::Value { parameter, value: shown(&Value::Int(count as i64)) });
        }
        let shape: &Shape = match types {
            Value::List(types) => shape.insert(around.shape(types.get(k).unwrap_or(&Value::Unset))),
            one => shape.get_or_insert_with(|| around.shape(one)),
        };
        is_straight(call, shape, count, parameter)?;
        let step = if in_bytes { 1 } else { i128::from(shape.extent) };
        let from = match &places {
            Some(places) => places.get(k).copied().unwrap_or(0) * step,
            // One behind the other.
            None => sum * step,
        };
        sum += count;
        Reach::bytes(count * shape.largest()).check(parameter)?;
        all = all.and(shape.times(count).moved(from));
        data += count * i128::from(shape.size);
    }
    fits(data, parameter)?;
    Ok(all)
}

/// Of a buffer that begins at address 0 each piece that is touched: its datatype has the addresses.
pub fn absolute(call: &Call, at: usize, around: &impl Surroundings) -> Result<Vec<Reach>, Unmade> {
    let rule = rules(call.function).iter().find(|(buffer, _)| *buffer == at).map(|(_, rule)| *rule);
    if let Some(Rule::Elements { counts, types, displacements: None, members: None, .. }) = rule
        && let Value::Object(Class::Datatype, _) = before(&call.args[types])
    {
        let count = counts.map_or(1, |counts| number(call, counts));
        let shape = around.shape(before(&call.args[types]));
        // Few have more than one element of such a type.
        const MOST: i128 = 1 << 10;
        if let (Some(parts), 0..=MOST) = (&shape.parts, count) {
            let each = |k: i128| {
                let by = k * i128::from(shape.extent);
                parts.iter().map(move |(lo, hi)| Reach { lo: (*lo).into(), hi: (*hi).into() }.moved(by))
            };
            return Ok((0..count).flat_map(each).collect());
        }
    }
    Ok(vec![of(call, at, around)?])
}

/// What a call touches in a window of another rank, from its displacement on.
pub fn in_window(call: &Call, around: &impl Surroundings) -> Result<Option<Reach>, Unmade> {
    let at = |name: &str| call.function.index_of(name);
    if at("target_disp").is_none() {
        return Ok(None);
    }
    let Some(types) = at("target_datatype").or_else(|| at("datatype")) else { return Ok(None) };
    let count = at("target_count").map_or(1, |count| number(call, count));
    let shape = around.shape(before(&call.args[types]));
    Reach::bytes(count.max(0) * shape.largest()).check("target_count")?;
    shape.times(count).check("target_count").map(Some)
}

/// What one call makes of other datatypes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    pub depth: u32,
    pub pieces: u64,
    pub parts: Option<Arc<[(i64, i64)]>>,
}

/// More types in each other than a library may go through by recursion.
const DEEPEST: u32 = 512;
/// More pieces than a library should keep.
const MOST_PIECES: u64 = 1 << 24;
/// Numbers from here on are addresses.
const LEAST_ADDRESS: i128 = crate::memory::LEAST_ADDRESS as i128;

/// A call that makes a datatype: refused where its numbers overflow in a library. `None` of any other call.
pub fn of_datatype(call: &Call, around: &impl Surroundings) -> Result<Option<Outline>, Unmade> {
    let name = call.function.name;
    let Some(kind) = name.strip_prefix("MPI_Type_") else { return Ok(None) };
    let kind = kind.strip_prefix("create_").unwrap_or(kind);
    let kind = kind.strip_suffix("_c").unwrap_or(kind);
    let at = |name: &str| call.function.index_of(name);
    let given = |name: &str| at(name).map_or(0, |at| number(call, at));
    let list = |name: &str| at(name).map_or(Vec::new(), |at| numbers(call, at));
    let old = || around.shape(at("oldtype").map_or(&Value::Unset, |at| before(&call.args[at])));
    // Addresses are others in this run.
    let now = |place: i128| i64::try_from(place).map_or(place, |then| around.address(then).into());
    // Where each block begins, how many elements it has, and of what; how often all of it comes.
    let mut blocks: Vec<(i128, i128, Shape)> = Vec::new();
    let (mut times, mut largest) = (1i128, 0i128);
    match kind {
        "dup" => blocks.push((0, 1, old())),
        "contiguous" => blocks.push((0, given("count"), old())),
        "vector" | "hvector" => {
            let old = old();
            let step = if kind == "vector" { i128::from(old.extent) } else { 1 };
            let last = (given("count") - 1).max(0).saturating_mul(given("stride")).saturating_mul(step);
            times = given("count").max(0);
            blocks.push((0, given("blocklength"), old.clone()));
            blocks.push((last, given("blocklength"), old));
        }
        "indexed" | "hindexed" | "indexed_block" | "hindexed_block" => {
            let (old, lengths) = (old(), list("array_of_blocklengths"));
            let step = if kind.starts_with('h') { 1 } else { i128::from(old.extent) };
            for (k, place) in list("array_of_displacements").into_iter().enumerate() {
                let place = if kind.starts_with('h') { now(place) } else { place };
                let length = if kind.ends_with("block") { Some(given("blocklength")) } else { None };
                let length = length.or_else(|| lengths.get(k).copied()).unwrap_or(0);
                blocks.push((place * step, length, old.clone()));
            }
        }
        "struct" => {
            let lengths = list("array_of_blocklengths");
            let types = match at("array_of_types").map(|at| before(&call.args[at])) {
                Some(Value::List(types)) => &types[..],
                _ => &[],
            };
            for (k, place) in list("array_of_displacements").into_iter().enumerate() {
                let of = around.shape(types.get(k).unwrap_or(&Value::Unset));
                blocks.push((now(place), lengths.get(k).copied().unwrap_or(0), of));
            }
        }
        "resized" => {
            let (lower, extent) = (given("lb"), given("extent"));
            largest = lower.abs() + extent.abs();
            blocks.push((0, 1, old()));
        }
        "subarray" | "darray" => {
            let sizes = if kind == "darray" { "array_of_gsizes" } else { "array_of_sizes" };
            let all = list(sizes).into_iter().try_fold(1i128, |all, one| all.checked_mul(one.max(1)));
            blocks.push((0, all.unwrap_or(FARTHEST), old()));
            largest = all.map_or(i128::MAX, i128::abs);
        }
        _ => return Ok(None),
    }
    let far = |why: &str| Unmade::Memory { parameter: "newtype", why: why.to_owned() };
    let too_far = || far("it reaches further than any memory");
    let (mut size, mut depth, mut pieces) = (0i128, 0, 2u64);
    for (place, count, old) in &blocks {
        let count = (*count).max(0);
        let bytes = count.checked_mul(old.largest()).ok_or_else(too_far)?;
        largest = largest.max(place.saturating_abs().saturating_add(bytes));
        size = size.saturating_add(count.saturating_mul(old.size.into()));
        depth = depth.max(old.depth + 1);
        pieces = pieces.saturating_add(old.pieces);
    }
    if largest.max(size.saturating_mul(times)) > FARTHEST {
        return Err(too_far());
    }
    if depth > DEEPEST {
        return Err(far(&format!("more than {DEEPEST} datatypes, each made of another")));
    }
    if pieces > MOST_PIECES {
        return Err(far(&format!("it is made of more than {MOST_PIECES} pieces")));
    }
    Ok(Some(Outline { depth, pieces, parts: parts(&blocks) }))
}

/// The pieces of a type of absolute addresses; of one that has too many none are known.
fn parts(blocks: &[(i128, i128, Shape)]) -> Option<Arc<[(i64, i64)]>> {
    const MOST: usize = 1 << 16;
    let is_far = |(place, _, old): &(i128, i128, Shape)| place.abs() >= LEAST_ADDRESS || old.parts.is_some();
    if !blocks.iter().any(is_far) {
        return None;
    }
    let mut parts = Vec::new();
    for (place, count, old) in blocks {
        let pieces = match &old.parts {
            Some(own) if *count <= MOST as i128 => {
                let each = |k: i128| own.iter().map(move |(lo, hi)| (k, *lo, *hi));
                let each = (0..*count).flat_map(each).map(|(k, lo, hi)| {
                    Reach { lo: lo.into(), hi: hi.into() }.moved(k * i128::from(old.extent))
                });
                each.take(MOST + 1).collect()
            }
            Some(_) => return None,
            None => vec![old.times(*count)],
        };
        for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
            let piece = piece.moved(*place);
            parts.push((i64::try_from(piece.lo).ok()?, i64::try_from(piece.hi).ok()?));
        }
        if parts.len() > MOST {
            return None;
        }
    }
    Some(parts.into())
}

/// A position in packed data, and what is packed or unpacked there: refused where it does not lie in the buffer. `bytes`: how
/// much a library takes for that.
pub fn packed(
    call: &Call,
    around: &impl Surroundings,
    bytes: impl FnOnce(i128) -> i128,
) -> Result<(), Unmade> {
    let at = |name: &str| call.function.index_of(name);
    let (Some(position), Some(types)) = (at("position"), at("datatype")) else { return Ok(()) };
    let Some(size) = at("outsize").or_else(|| at("insize")) else { return Ok(()) };
    let Some(count) = at("incount").or_else(|| at("outcount")) else { return Ok(()) };
    let (position, size) = (number(call, position), number(call, size));
    let shape = around.shape(before(&call.args[types]));
    let data = number(call, count).max(0) * i128::from(shape.size);
    if position < 0 || position > size.max(0) || position + bytes(data).max(data) > size.max(0) {
        let value = format!("{position}: the buffer has {size} bytes, and {data} come next");
        return Err(Unmade::Value { parameter: "position", value });
    }
    Ok(())
}

/// Elements of an array that a call reads or writes, at the most. `None`: the call table does not say it before.
pub fn elements(call: &Call, at: usize, around: &impl Surroundings) -> Result<Option<u64>, Unmade> {
    use refrain_model::Len;
    let p = &call.function.params[at];
    let whole = |number: i128| u64::try_from(number.max(0)).unwrap_or(u64::MAX);
    let mut least: Option<u64> = None;
    for len in p.len {
        let of = |at: u8| usize::from(at);
        let found = match *len {
            Len::Param(n) if call.function.params[of(n)].dir == Dir::Out => None,
            Len::Param(n) => Some(whole(number(call, of(n)))),
            Len::Triple(n) => Some(whole(number(call, of(n)).saturating_mul(3))),
            Len::Size(comm) | Len::LocalSize(comm) => Some(around.members(&call.args[of(comm)], false)),
            Len::InDegree(comm) | Len::OutDegree(comm) => Some(around.members(&call.args[of(comm)], true)),
            Len::CartDims(comm) => Some(around.dimensions(&call.args[of(comm)])),
            Len::Sum(array) => {
                let all = numbers(call, of(array));
                if let Some(negative) = all.iter().find(|one| **one < 0) {
                    let parameter = call.function.params[of(array)].name;
                    return Err(Unmade::Value { parameter, value: negative.to_string() });
                }
                Some(whole(all.into_iter().sum()))
            }
            Len::Last(array) => {
                let all = numbers(call, of(array));
                let parameter = call.function.params[of(array)].name;
                if all.first().is_some_and(|first| *first < 0) || !all.is_sorted() {
                    let value = "what gets smaller: its numbers count those before it".to_owned();
                    return Err(Unmade::Value { parameter, value });
                }
                Some(whole(all.last().copied().unwrap_or(0)))
            }
            Len::Fixed(number) => Some(number.into()),
            Len::Asked(..) | Len::Neighbours(..) => None,
        };
        least = match (least, found) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    Ok(least)
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeMap;

    use refrain_mpi::Abi;

    use super::*;
    use crate::words::Named;

    struct Around {
        types: BTreeMap<u32, Shape>,
    }

    impl Surroundings for Around {
        fn abi(&self) -> &Abi {
            unreachable!("no word is made")
        }
        fn object(&self, _: &Value) -> Option<u64> {
            None
        }
        fn place(&self, _: refrain_model::Address, _: Reach) -> std::io::Result<usize> {
            Ok(0)
        }
        fn somewhere(&self, _: Reach) -> std::io::Result<usize> {
            Ok(0)
        }
        fn is_there(&self, _: Reach) -> bool {
            false
        }
        fn named(&self, _: &'static str) -> Named {
            Named::default()
        }
        fn world(&self) -> usize {
            1000
        }
        fn shape(&self, datatype: &Value) -> Shape {
            match datatype {
                Value::Name("MPI_INT") => Shape::plain(4),
                Value::Name("MPI_DOUBLE") => Shape::plain(8),
                Value::Object(_, id) => self.types[id].clone(),
                _ => Shape::plain(1),
            }
        }
        fn members(&self, _: &Value, neighbours: bool) -> u64 {
            if neighbours { 4 } else { 1000 }
        }
        fn dimensions(&self, _: &Value) -> u64 {
            3
        }
        fn address(&self, then: i64) -> i64 {
            then
        }
        fn request(&self, _: u32) -> *mut u8 {
            std::ptr::null_mut()
        }
    }

    pub fn call(name: &str, given: &[(&str, Value)]) -> Call {
        let function = refrain_model::function(name).unwrap();
        let mut args = vec![Value::Unset; function.params.len()];
        for (parameter, value) in given {
            args[function.index_of(parameter).unwrap()] = value.clone();
        }
        Call { function, args, result: Value::Int(0), facts: Vec::new() }
    }

    fn around() -> Around {
        let strange = Shape { extent: -16, data: (-8, 40), ..Shape::plain(12) };
        Around { types: BTreeMap::from([(3, strange)]) }
    }

    fn list(numbers: &[i64]) -> Value {
        Value::List(numbers.iter().map(|n| Value::Int(*n)).collect())
    }

    fn int() -> Value {
        Value::Name("MPI_INT")
    }

    fn strange() -> Value {
        Value::Object(Class::Datatype, 3)
    }

    #[track_caller]
    fn check(name: &str, buffer: &str, given: &[(&str, Value)], expected: Option<(i128, i128)>) {
        let call = call(name, given);
        let reach = of(&call, call.function.index_of(buffer).unwrap(), &around());
        assert_eq!(reach.ok().map(|reach| (reach.lo, reach.hi)), expected, "{name}");
    }

    /// Every buffer of the call table has a rule; of these the standard does not say how long they are.
    #[test]
    fn every_buffer_has_a_rule() {
        let unknown =
            |name: &str| ["MPI_T_", "MPI_Abi_", "MPI_Status_"].iter().any(|start| name.starts_with(start));
        for function in functions().iter().filter(|function| !unknown(function.name)) {
            for p in function.params.iter().filter(|p| p.kind == Kind::Buffer) {
                assert!(rule(function, p.name).is_some(), "{}, {}", function.name, p.name);
            }
        }
    }

    #[test]
    fn buffers_are_as_large_as_a_call_needs() {
        let count = |count: i64| ("count", Value::Int(count));
        check("MPI_Send", "buf", &[count(10), ("datatype", int())], Some((0, 40)));
        check("MPI_Send", "buf", &[count(3), ("datatype", strange())], Some((-40, 40)));
        check("MPI_Send", "buf", &[count(0), ("datatype", strange())], Some((0, 0)));
        check("MPI_Send", "buf", &[count(-1), ("datatype", int())], Some((0, 0)));
        check("MPI_Send_c", "buf", &[count(1 << 60), ("datatype", int())], None);
        let parts = [count(10), ("partitions", Value::Int(7)), ("datatype", int())];
        check("MPI_Psend_init", "buf", &parts, Some((0, 280)));
        let most = Value::Int(i64::MAX);
        let parts = |count: i64| {
            [
                ("count", Value::Int(count)),
                ("partitions", most.clone()),
                ("datatype", Value::Name("MPI_DOUBLE")),
            ]
        };
        check("MPI_Psend_init", "buf", &parts(i64::MIN), Some((0, 0)));
        check("MPI_Psend_init", "buf", &parts(i64::MAX), None);
        let gather = [("sendcount", Value::Int(10)), ("sendtype", int()), ("recvtype", int())];
        check("MPI_Allgather", "sendbuf", &gather, Some((0, 40_000)));
        check("MPI_Allgather", "recvbuf", &gather, Some((0, 0)));
        check("MPI_Neighbor_alltoall", "sendbuf", &gather, Some((0, 160)));
        let all = [("recvcounts", list(&[3, 4, 5])), ("displs", list(&[0, 30, -20])), ("recvtype", int())];
        check("MPI_Allgatherv", "recvbuf", &all, Some((-80, 136)));
        check(
            "MPI_Reduce_scatter",
            "sendbuf",
            &[("recvcounts", list(&[3, 4])), ("datatype", int())],
            Some((0, 28)),
        );
        check("MPI_Allreduce", "sendbuf", &[count(3), ("datatype", int())], Some((0, 12)));
        // Libraries copy elements to memory that begins with the first of them.
        check("MPI_Allreduce", "sendbuf", &[count(3), ("datatype", strange())], None);
        let types = Value::List(vec![int(), strange()]);
        let bad = [("sendcounts", list(&[3, -1])), ("sdispls", list(&[8, 0])), ("sendtypes", types.clone())];
        check("MPI_Alltoallw", "sendbuf", &bad, None);
        let each = [("sendcounts", list(&[3, 1])), ("sdispls", list(&[8, 100])), ("sendtypes", types)];
        check("MPI_Alltoallw", "sendbuf", &each, Some((8, 140)));
        check("MPI_Win_create", "base", &[("size", Value::Int(64))], Some((0, 64)));
        check(
            "MPI_Get_accumulate",
            "result_addr",
            &[("result_count", Value::Int(2)), ("result_datatype", int())],
            Some((0, 8)),
        );
        let reads = [("datatype", int()), ("op", Value::Name("MPI_NO_OP"))];
        check("MPI_Fetch_and_op", "origin_addr", &reads, Some((0, 0)));
        check("MPI_Fetch_and_op", "result_addr", &reads, Some((0, 4)));
        check("MPI_Compare_and_swap", "compare_addr", &[("datatype", int())], Some((0, 4)));
        check("MPI_Unpack", "inbuf", &[("insize", Value::Int(64))], Some((0, 64)));
        check("MPI_Get_address", "location", &[], Some((0, 0)));
    }

    #[track_caller]
    fn made(name: &str, given: &[(&str, Value)]) -> Result<Outline, String> {
        of_datatype(&call(name, given), &around()).map(Option::unwrap).map_err(|why| why.to_string())
    }

    #[test]
    fn datatypes_whose_numbers_overflow_are_refused() {
        let old = || ("oldtype", int());
        let number = |name, number| (name, Value::Int(number));
        let vector = |count, length, stride| {
            let given =
                [number("count", count), number("blocklength", length), number("stride", stride), old()];
            made("MPI_Type_create_hvector", &given)
        };
        assert!(vector(1000, 1000, -100_000).is_ok());
        assert!(vector(1, 3, 1 << 50).is_ok());
        assert!(vector(1 << 20, 1, 1 << 50).is_err() && vector(1 << 20, 1, -(1 << 50)).is_err());
        assert!(vector(1 << 31, 1 << 31, 0).is_err());
        let indexed = |lengths: &[i64], places: &[i64]| {
            let given =
                [("array_of_blocklengths", list(lengths)), ("array_of_displacements", list(places)), old()];
            made("MPI_Type_create_hindexed", &given)
        };
        assert_eq!(indexed(&[1, 2], &[0, 100]).unwrap().parts, None);
        let far = 1i64 << 46;
        let parts = indexed(&[1, 2], &[far, far + 100]).unwrap().parts;
        assert_eq!(parts.as_deref(), Some(&[(far, far + 4), (far + 100, far + 108)][..]));
        assert!(indexed(&[1], &[i64::MAX]).is_err() && indexed(&[1], &[i64::MIN]).is_err());
        let resized = |lb, extent| {
            made("MPI_Type_create_resized", &[number("lb", lb), number("extent", extent), old()])
        };
        assert!(resized(-8, 64).is_ok() && resized(i64::MIN, 1).is_err() && resized(0, i64::MAX).is_err());
        let sub = |sizes: &[i64]| made("MPI_Type_create_subarray", &[("array_of_sizes", list(sizes)), old()]);
        assert!(sub(&[1000, 1000]).is_ok() && sub(&[1 << 31, 1 << 31, 1 << 31]).is_err());
        let mut around = around();
        around.types.insert(4, Shape { depth: DEEPEST, ..Shape::plain(1) });
        let deep = call("MPI_Type_dup", &[("oldtype", Value::Object(Class::Datatype, 4))]);
        assert!(of_datatype(&deep, &around).is_err());
    }

    #[test]
    fn positions_lie_in_the_buffer() {
        let pack = |position: i64, size: i64, count: i64| {
            let given = [
                ("position", Value::Int(position)),
                ("outsize", Value::Int(size)),
                ("incount", Value::Int(count)),
                ("datatype", int()),
            ];
            packed(&call("MPI_Pack", &given), &around(), |bytes| bytes)
        };
        assert!(pack(0, 40, 10).is_ok() && pack(36, 40, 1).is_ok() && pack(40, 40, 0).is_ok());
        assert!(pack(-1, 40, 1).is_err() && pack(37, 40, 1).is_err() && pack(i64::MAX, 40, 0).is_err());
    }

    #[test]
    fn what_is_touched_in_a_window_is_added_up() {
        let put = |count: i64, datatype: Value| {
            let given = [("target_count", Value::Int(count)), ("target_datatype", datatype)];
            in_window(&call("MPI_Put", &given), &around()).unwrap().unwrap()
        };
        assert_eq!(put(5, int()), Reach { lo: 0, hi: 20 });
        assert_eq!(put(2, strange()), Reach { lo: -24, hi: 40 });
        assert!(put(0, int()).is_empty());
        assert_eq!(in_window(&call("MPI_Win_fence", &[]), &around()).unwrap(), None);
    }
}
