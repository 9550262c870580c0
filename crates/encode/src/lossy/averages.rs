//! Averages: the counts of an `MPI_Alltoallv` vary with the data, what all ranks send together much less (ScalaTrace,
//! inherent load imbalance). Each count becomes the mean over all ranks, both what is sent and what is received, rounded,
//! and the displacements those of blocks of that size one after the other. So a message that one rank sends is as long
//! as the one that another receives, and the trace can be replayed. The smallest and the largest count are remembered,
//! and whose they were.
//!
//! Means are of *kinds* of calls, so that a call site with small messages and one with large ones keep theirs. All ranks
//! have to agree on what is one kind, or one end of a message would get another mean than the other. Collective calls
//! come in the same order on all ranks of a communicator: a kind is a set of such calls, by the communicator's name and
//! their place in its order, and its *label* is a hash of that set. A rank takes calls for one kind that look alike to it
//! (same site, same communicator id, same sizes of datatypes). Where all members of a communicator have come to
//! the same set, the kind is good: each member adds a number to its check, and the first member takes away as many as there
//! are members, so that the sum is zero. What is left over (a rank is missing, ended early, or saw other kinds) has one
//! mean for each function, which is the same everywhere in any case.
//!
//! Datatypes may differ from rank to rank and between the two sides; so the mean is one of bytes, a multiple of the size
//! of each datatype in it (the *unit*). A datatype that is only passed with count 0 is one of them: its rank has to receive
//! what others send. If anything is moved, the mean is at least one unit. So a sparse exchange (one element to one
//! neighbour) becomes one element to everybody: more than there was, but never nothing. Counts of a kind stay as they are
//! if the size of a datatype is not known, or if the mean would be more than [`MOST_RAISED`] times the true one.
//!
//! Not `MPI_Alltoallw`, whose calls mostly say with their datatypes how much they move.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use refrain_fold::bundle::Bundle;
use refrain_fold::xxh64;
use refrain_model::{Call, Class, Dir, Kind, Value, constant, function};

use crate::error::Error;
use crate::hash::mix;
use crate::layout::{Layout, Outcome, Slot};
use crate::params::comm_param;
use crate::reader::Reader;
use crate::sums;

/// Of one rank, or of several together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Averages {
    /// By label.
    kinds: BTreeMap<u64, Sum>,
    /// By function and parameter.
    met: BTreeMap<(&'static str, &'static str), Met>,
    /// Some rank cannot tell.
    pub(super) unknown: bool,
}

/// What a kind of calls moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sum {
    function: &'static str,
    /// Zero if all ranks that take part agree.
    check: u64,
    bytes: i128,
    /// How many counts that is the sum of.
    counts: u64,
    /// A multiple of the size of each datatype; `None` where one is not known.
    unit: Option<u64>,
    /// The largest of the datatypes of which something was moved.
    element: u64,
}

/// Why counts have no mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// There are none.
    Nothing,
    /// The size of a datatype is not known.
    Unknown,
    /// A mean that fits all datatypes would be much more than was moved.
    Coarse,
}

/// What stands for the counts of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mean {
    bytes: i64,
    /// The true mean is less than half a unit.
    raised: bool,
}

/// How many counts there were, and the smallest and the largest: the count, which entry of its array it was, and on which
/// rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Met {
    counts: u64,
    least: (i64, u32, u32),
    most: (i64, u32, u32),
}

impl Met {
    fn absorb(&mut self, other: Met) {
        self.counts = self.counts.saturating_add(other.counts);
        let first = |(count, entry, rank): (i64, u32, u32)| (count, rank, entry);
        if first(other.least) < first(self.least) {
            self.least = other.least;
        }
        // Of equal ones the first too, so that it does not matter in which order they come.
        let first = |(count, entry, rank): (i64, u32, u32)| (count, u32::MAX - rank, u32::MAX - entry);
        if first(other.most) > first(self.most) {
            self.most = other.most;
        }
    }
}

/// Units from this on say that nothing fits together.
const MOST_UNIT: u64 = 1 << 40;

/// A mean may be so many times the true mean, or so many elements where the true mean is less than one.
const MOST_RAISED: i128 = 2;

fn common_unit(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    let (a, b) = (a?, b.filter(|size| *size > 0)?);
    // What does not fit together does not do so with more datatypes either.
    if a >= MOST_UNIT || b >= MOST_UNIT {
        return Some(MOST_UNIT);
    }
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    Some((a / x).saturating_mul(b).min(MOST_UNIT))
}

impl Sum {
    fn new(function: &'static str) -> Sum {
        Sum { function, check: 0, bytes: 0, counts: 0, unit: Some(1), element: 0 }
    }

    fn absorb(&mut self, other: &Sum) {
        self.check = self.check.wrapping_add(other.check);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.counts = self.counts.saturating_add(other.counts);
        self.unit = common_unit(self.unit, other.unit);
        self.element = self.element.max(other.element);
    }

    fn mean(&self) -> Result<Mean, Stay> {
        let counts = i128::from(self.counts);
        if counts == 0 {
            return Err(Stay::Nothing);
        }
        let unit = self.unit.ok_or(Stay::Unknown)?;
        let unit = Some(i128::from(unit)).filter(|_| unit < MOST_UNIT).ok_or(Stay::Coarse)?;
        let all = unit * counts;
        let units = self.bytes.saturating_add(all / 2).div_euclid(all);
        let raised = units == 0 && self.bytes > 0;
        let bytes = (if raised { 1 } else { units }).checked_mul(unit).ok_or(Stay::Coarse)?;
        // Both sides times the number of counts, since the true mean is a fraction. One element is the least there is.
        let least = self.bytes.max(i128::from(self.element).saturating_mul(counts));
        if bytes.saturating_mul(counts) > least.saturating_mul(MOST_RAISED) {
            return Err(Stay::Coarse);
        }
        Ok(Mean { bytes: i64::try_from(bytes).map_err(|_| Stay::Coarse)?, raised })
    }
}

/// What a call sends, or what it receives: indices of parameters, and lanes.
#[derive(Debug, Clone, Copy)]
struct Side {
    counts: usize,
    datatype: usize,
    lane: u16,
    /// The lane of their length, and their own.
    displacements: Option<(Option<u16>, u16)>,
}

/// The function whose calls those of this one meet, if its counts have a mean: calls with large counts meet others.
fn averaged(layout: &Layout) -> Option<&'static str> {
    let name = layout.function.name;
    // In both spellings: MPI_Alltoallv, MPI_Neighbor_alltoallv.
    name.contains("lltoallv").then(|| name.strip_suffix("_c").unwrap_or(name))
}

fn sides(layout: &Layout) -> Vec<Side> {
    let f = layout.function;
    let list = |name: &str| {
        let at = f.index_of(name)?;
        match layout.slots[at] {
            Slot::List { len, lane, .. } => Some((at, len, lane)),
            _ => None,
        }
    };
    let names = [("sendcounts", "sdispls", "sendtype"), ("recvcounts", "rdispls", "recvtype")].into_iter();
    let side = |(counts, displacements, datatype)| {
        let (counts, _, lane) = list(counts)?;
        let displacements = list(displacements).map(|(_, len, lane)| (len, lane));
        Some(Side { counts, datatype: f.index_of(datatype)?, lane, displacements })
    };
    names.filter_map(side).collect()
}

/// Calls that look alike to a rank.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Look {
    function: &'static str,
    thread: u32,
    site: u64,
    /// What its symbol calls the communicator.
    comm: u64,
    sizes: [Option<u64>; 2],
}

/// The sizes of the datatypes that a rank's calls have made, by id.
#[derive(Debug, Clone, Default)]
struct Types {
    thread: u32,
    /// Made by the calls of that thread so far, which are read in order.
    own: HashMap<u32, u64>,
    /// Made by calls of any thread: a thread may use what another one has made. Which of those calls came before the one at
    /// hand nobody says, so an id that has had several sizes has 0.
    all: HashMap<u32, u64>,
}

impl Types {
    fn of_all(bundle: &Bundle, rank: u32) -> Result<Types, Error> {
        let mut types = Types::default();
        let reader = Reader::new(bundle);
        let threads = reader.threads(rank);
        if threads.len() > 1 {
            for thread in threads {
                let mut events = reader.events(rank, thread)?;
                while let Some(event) = events.next_event()? {
                    for (id, size) in made(&event.call) {
                        let known = types.all.entry(id).or_insert(size);
                        *known = if *known == size { size } else { 0 };
                    }
                }
            }
        }
        Ok(types)
    }

    fn take_in(&mut self, call: &Call, thread: u32) {
        if thread != self.thread {
            self.thread = thread;
            self.own.clear();
        }
        self.own.extend(made(call));
    }

    /// `None` where it is not known, or nothing.
    fn size(&self, datatype: &Value) -> Option<u64> {
        let size = match datatype {
            Value::Name(name) => constant(name)?.size.map(u64::from),
            Value::Object(Class::Datatype, id) => self.own.get(id).or_else(|| self.all.get(id)).copied(),
            _ => None,
        };
        size.filter(|size| *size > 0)
    }

    fn look(&self, call: &Call, layout: &Layout, sides: &[Side], thread: u32, site: u64) -> Option<Look> {
        let comm = match layout.slots.get(comm_param(layout.function)?)? {
            Slot::Object(_, id) => u64::from(*id) << 1,
            Slot::Fixed(Value::Name(name)) => xxh64(name.as_bytes(), 0) | 1,
            _ => return None,
        };
        let mut sizes = [None; 2];
        for (size, side) in sizes.iter_mut().zip(sides) {
            *size = self.size(&call.args[side.datatype]);
        }
        Some(Look { function: averaged(layout)?, thread, site, comm, sizes })
    }
}

/// The ids and sizes of the datatypes that a call made.
fn made(call: &Call) -> impl Iterator<Item = (u32, u64)> {
    // One size for each new type, in the order of the parameters.
    let mut sizes = call.facts.iter().filter(|(name, _)| *name == "size").map(|(_, value)| value);
    call.function.params.iter().zip(&call.args).filter_map(move |(p, value)| {
        if p.dir != Dir::In
            && let (Kind::Handle(Class::Datatype), Value::Object(_, id)) = (p.kind, value)
            && let Some(Value::Int(size)) = sizes.next()
        {
            return Some((*id, u64::try_from(*size).unwrap_or(0)));
        }
        None
    })
}

/// The members of a communicator.
#[derive(Debug, Clone, Copy)]
struct Group {
    hash: u64,
    /// `None` where it is not known, and of an inter-communicator.
    size: Option<u64>,
}

/// What a rank's calls say of communicators, read in order.
#[derive(Debug, Default)]
struct Groups {
    world: u32,
    known: HashMap<String, Group>,
}

impl Groups {
    fn get(&self, name: &str) -> Group {
        match name {
            "world" => Group { hash: 1, size: Some(self.world.into()) },
            "self" => Group { hash: 2, size: Some(1) },
            _ => self.known.get(name).copied().unwrap_or(Group { hash: 3, size: None }),
        }
    }

    fn take_in(&mut self, call: &Call) {
        let made = call.function.params.iter().zip(&call.args).find_map(|(p, value)| match value {
            Value::Comm(name) if p.kind == Kind::Handle(Class::Comm) && p.dir != Dir::In => Some(name),
            _ => None,
        });
        let Some(made) = made else { return };
        let fact = |name: &str| call.facts.iter().find(|(n, _)| *n == name).map(|(_, value)| value);
        let group = match (fact("group"), fact("remote_group")) {
            (Some(Value::List(members)), None) => {
                let add = |hash, member: &Value| {
                    if let Value::Int(rank) = member { mix(hash, *rank as u64) } else { hash }
                };
                Group { hash: members.iter().fold(4, add), size: u64::try_from(members.len()).ok() }
            }
            (Some(Value::Text(text)), None) => self.get(text.strip_prefix("as ").unwrap_or(text)),
            _ => Group { hash: 5, size: None },
        };
        self.known.insert(made.clone(), group);
    }
}

/// A kind of calls while they are read.
#[derive(Debug)]
struct Reading {
    label: u64,
    sum: Sum,
    comms: HashSet<String>,
}

impl Averages {
    /// A rank that cannot say anything: all counts stay.
    pub(super) fn unknown() -> Averages {
        Averages { unknown: true, ..Averages::default() }
    }

    /// Those of one of `size` ranks, whose own bundle this is.
    pub(super) fn of(bundle: &Bundle, rank: u32, size: u32) -> Result<Averages, Error> {
        Ok(read(bundle, rank, size)?.0)
    }

    pub(super) fn absorb(&mut self, other: Averages) {
        self.unknown |= other.unknown;
        for (label, sum) in other.kinds {
            self.kinds.entry(label).and_modify(|known| known.absorb(&sum)).or_insert(sum);
        }
        for (of, met) in other.met {
            self.met.entry(of).and_modify(|known| known.absorb(met)).or_insert(met);
        }
    }

    /// What was averaged, for people.
    pub(super) fn notes(&self) -> Vec<String> {
        let place = |(count, entry, rank): (i64, u32, u32)| format!("{count} (entry {entry} on rank {rank})");
        let met = self.met.iter().map(|((function, parameter), met)| {
            let (counts, least, most) = (met.counts, place(met.least), place(met.most));
            format!("averages: the {counts} {parameter} of {function} were from {least} to {most}")
        });
        let means = self.means();
        let said = self.kinds.iter().filter_map(|(label, sum)| {
            let function = sum.function;
            match means.get(label)? {
                Err(Stay::Unknown) => Some(format!(
                    "averages: counts of {function} stay where the size of a datatype is not known"
                )),
                Err(Stay::Coarse) => Some(format!(
                    "averages: counts of {function} stay where no mean near the true one fits the sizes of all datatypes"
                )),
                Ok(Mean { raised: true, .. }) => Some(format!(
                    "averages: counts of {function} are the least that fits all datatypes where their true mean is nearer to 0"
                )),
                Ok(_) | Err(Stay::Nothing) => None,
            }
        });
        // Once for each function.
        let said: BTreeSet<String> = said.collect();
        met.chain(said).collect()
    }

    /// By label.
    fn means(&self) -> HashMap<u64, Result<Mean, Stay>> {
        let mut others: BTreeMap<&str, Sum> = BTreeMap::new();
        for sum in self.kinds.values().filter(|sum| sum.check != 0) {
            others.entry(sum.function).or_insert_with(|| Sum::new(sum.function)).absorb(sum);
        }
        let mean = |sum: &Sum| match sum.check {
            0 => sum.mean(),
            _ => others.get(sum.function).map_or(Err(Stay::Nothing), Sum::mean),
        };
        self.kinds.iter().map(|(label, sum)| (*label, mean(sum))).collect()
    }

    /// Puts the means of all ranks into calls of one of them; `None` where it has no such calls.
    pub(super) fn filling(&self, bundle: &Bundle, rank: u32, size: u32) -> Result<Option<Filling>, Error> {
        let concerned = |bytes: &[u8]| Layout::parse(bytes).is_ok_and(|layout| averaged(&layout).is_some());
        if self.unknown || !bundle.symbols.iter().any(|symbol| concerned(&symbol.bytes)) {
            return Ok(None);
        }
        let means = self.means();
        let (_, labels) = read(bundle, rank, size)?;
        let mean = |(look, label)| Some((look, means.get(&label)?.ok()?.bytes));
        let means = labels.into_iter().filter_map(mean).collect();
        Ok(Some(Filling { types: Types::of_all(bundle, rank)?, means }))
    }
}

/// The calls of one rank: what it knows, and the label of each kind that it sees.
fn read(bundle: &Bundle, rank: u32, size: u32) -> Result<(Averages, HashMap<Look, u64>), Error> {
    let mut types = Types::of_all(bundle, rank)?;
    let mut groups = Groups { world: size, ..Groups::default() };
    let mut looks: HashMap<Look, Reading> = HashMap::new();
    // By communicator: how many such calls there were, and on which thread.
    let mut orders: HashMap<String, (u64, u32)> = HashMap::new();
    let mut crowded: HashSet<String> = HashSet::new();
    let mut averages = Averages::default();
    // Added to a check it makes a kind that nobody agrees on.
    let doubt = mix(xxh64(b"doubt", 0), rank.into()) | 1;
    let reader = Reader::new(bundle);
    for thread in reader.threads(rank) {
        let mut events = reader.events(rank, thread)?;
        while let Some(event) = events.next_event()? {
            let call = &event.call;
            types.take_in(call, thread);
            groups.take_in(call);
            let Some(layout) = events.layout(event.symbol) else { continue };
            let Some(function) = averaged(layout) else { continue };
            let (sides, site) = (sides(layout), bundle.symbols[event.symbol as usize].site);
            let Some(look) = types.look(call, layout, &sides, thread, site) else { continue };
            let reading = looks.entry(look).or_insert_with(|| Reading {
                label: xxh64(function.as_bytes(), 0),
                sum: Sum::new(function),
                comms: HashSet::new(),
            });
            let comm = comm_param(layout.function);
            match comm.map(|at| &call.args[at]) {
                Some(Value::Comm(name)) => {
                    let own_rank = comm.map_or(0, |at| events.base_rank(event.symbol, at));
                    let order = orders.entry(name.clone()).or_insert((0, thread));
                    if order.1 != thread {
                        crowded.insert(name.clone());
                    }
                    let call = mix(xxh64(name.as_bytes(), 0), order.0);
                    reading.label = reading.label.wrapping_add(call);
                    order.0 += 1;
                    if reading.comms.insert(name.clone()) {
                        let Group { hash, size } = groups.get(name);
                        let own = mix(xxh64(name.as_bytes(), 0), hash);
                        let all = if own_rank == 0 { size.unwrap_or(0) } else { 0 };
                        let share = own.wrapping_mul(1u64.wrapping_sub(all));
                        let share = if size.is_none() { doubt } else { share };
                        reading.sum.check = reading.sum.check.wrapping_add(share);
                    }
                }
                _ => reading.sum.check = reading.sum.check.wrapping_add(doubt),
            }
            if layout.outcome != Outcome::Success {
                continue;
            }
            for side in sides {
                let Value::List(counts) = &call.args[side.counts] else { continue };
                let size = types.size(&call.args[side.datatype]);
                let sum = &mut reading.sum;
                sum.unit = common_unit(sum.unit, size);
                let of = (layout.function.name, layout.function.params[side.counts].name);
                for (entry, count) in (0..).zip(counts) {
                    let Value::Int(count) = *count else {
                        sum.unit = None;
                        continue;
                    };
                    sum.bytes = sum.bytes.saturating_add(i128::from(count) * i128::from(size.unwrap_or(0)));
                    sum.counts += 1;
                    if count > 0 {
                        sum.element = sum.element.max(size.unwrap_or(0));
                    }
                    let at = (count, entry, rank);
                    let met = Met { counts: 1, least: at, most: at };
                    averages.met.entry(of).and_modify(|known| known.absorb(met)).or_insert(met);
                }
            }
        }
    }
    let mut labels = HashMap::new();
    for (look, mut reading) in looks {
        if reading.comms.iter().any(|name| crowded.contains(name)) {
            reading.sum.check = reading.sum.check.wrapping_add(doubt);
        }
        labels.insert(look, reading.label);
        let sum = reading.sum;
        averages.kinds.entry(reading.label).and_modify(|known| known.absorb(&sum)).or_insert(sum);
    }
    Ok((averages, labels))
}

/// Puts means into calls, which are given in the order in which they are read.
pub(super) struct Filling {
    types: Types,
    /// Bytes.
    means: HashMap<Look, i64>,
}

impl Filling {
    /// The values of a call with means in the place of its counts; `None` for a call that stays.
    pub(super) fn fill(
        &mut self,
        call: &Call,
        layout: &Layout,
        thread: u32,
        site: u64,
        values: &[(u16, i64)],
    ) -> Option<Vec<(u16, i64)>> {
        self.types.take_in(call, thread);
        averaged(layout)?;
        let sides = sides(layout);
        let mean = *self.means.get(&self.types.look(call, layout, &sides, thread, site)?)?;
        if layout.outcome != Outcome::Success {
            return None;
        }
        let mut values = values.to_vec();
        for side in sides {
            let size = i64::try_from(self.types.size(&call.args[side.datatype])?).ok()?;
            let count = mean / size;
            let mut before = 0i64;
            // Where they are told as sums of the counts, they follow from these: from 0, without gaps, in units of 1.
            let mut summed = false;
            for (lane, value) in &mut values {
                if *lane == side.lane {
                    *value = count;
                } else if side.displacements.is_some_and(|(length, _)| length == Some(*lane)) {
                    summed = sums::summed(*value).is_some();
                } else if side.displacements.is_some_and(|(_, own)| own == *lane) {
                    *value = if summed { 0 } else { before };
                    before = before.saturating_add(count);
                }
            }
        }
        Some(values)
    }
}

/// How they travel from rank to rank: a line for each kind, and one for each parameter.
impl Averages {
    pub(super) fn write(&self, out: &mut String) {
        if self.unknown {
            *out += "unknown\n";
        }
        for (label, sum) in &self.kinds {
            let Sum { function, check, bytes, counts, unit, element } = sum;
            let unit = unit.unwrap_or(0);
            *out += &format!("kind {function} {label} {check} {bytes} {counts} {unit} {element}\n");
        }
        for ((function, parameter), Met { counts, least: a, most: b }) in &self.met {
            let places = format!("{} {} {} {} {} {}", a.0, a.1, a.2, b.0, b.1, b.2);
            *out += &format!("met {function} {parameter} {counts} {places}\n");
        }
    }

    /// One of these lines, read back. What cannot be read says nothing, so that counts stay.
    pub(super) fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        fn at<T: std::str::FromStr>(words: &[&str], at: usize) -> Option<T> {
            words.get(at)?.parse().ok()
        }
        let known = (|| match *words.first()? {
            "kind" => {
                let unit = Some(at(&words, 6)?).filter(|unit| *unit > 0);
                let (check, bytes, counts) = (at(&words, 3)?, at(&words, 4)?, at(&words, 5)?);
                let (function, element) = (function(words.get(1)?)?.name, at(&words, 7)?);
                let sum = Sum { function, check, bytes, counts, unit, element };
                self.kinds.insert(at(&words, 2)?, sum);
                Some(())
            }
            "met" => {
                let f = function(words.get(1)?)?;
                let parameter = f.params.get(f.index_of(words.get(2)?)?)?.name;
                let place = |from| Some((at(&words, from)?, at(&words, from + 1)?, at(&words, from + 2)?));
                let met = Met { counts: at(&words, 3)?, least: place(4)?, most: place(7)? };
                self.met.insert((f.name, parameter), met);
                Some(())
            }
            _ => None,
        })();
        self.unknown |= known.is_none();
    }
}
