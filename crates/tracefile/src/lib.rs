//! `.rfn` files: the only code that knows bytes on disk. The format is described in FORMAT.md.
//!
//! Owns: container, sections, checksums, versions, packing, writing under a temporary name.
//! Does not own: what a symbol's bytes mean, folding, merging.
//!
//! ```
//! use refrain_tracefile::{Meta, Trace, read, write};
//! let trace = Trace { meta: Meta { complete: true, ..Meta::default() }, bundle: Default::default() };
//! assert_eq!(read(&write(&trace)).unwrap(), trace);
//! ```

#![forbid(unsafe_code)]

pub mod chunks;
pub mod claim;
pub mod clocks;
mod container;
mod disk;
mod error;
pub mod flight;
mod get;
mod load;
mod model;
mod pack;
pub mod part;
mod prime;
pub mod private;
pub mod profile;
mod sections;
pub mod spans;
mod token;

use std::convert::Infallible;
use std::io;
use std::rc::Rc;

use refrain_fold::bundle::sites::Module;
use refrain_fold::bundle::{Bundle, Depth};
use refrain_fold::ranks::{Checks, RankList};
use refrain_times::paths::Paths;

use clocks::Clocks;
use container::{APART, Apart, COMPLETE, Kind, ORDER, SPLIT, TIMED};
use get::{Bad, Get};
use model::Model;
use pack::{Decoder, Encoder};
use sections::kinds::Kinds;
use sections::pools::Pools;
use sections::tables::{Pending, Tables};
use token::{Put, Token};

pub use disk::{
    End, FileType, Replace, Stamp, Target, is_device, open, put_folder_in_place, put_in_place, replace_with,
    save, save_as, save_text, save_with, target,
};
pub use error::Error;
pub use load::{Loaded, Within, append, attach, load};
pub use profile::Profile;
pub use sections::paths::settle;

pub const MAGIC: [u8; 4] = *b"\x93RFN";
/// What [`write`] writes, and what [`read`] reads: nothing older was ever released.
pub const FORMAT_VERSION: u8 = 3;

/// Packed sections unpack to at most `RATIO` times their size and `MARGIN` bytes: what a small file can make a reader
/// do is bounded.
const RATIO: usize = 256;
const MARGIN: usize = 1 << 20;

/// Holding functions of the rank against their ranks, and keeping those that a file tells by a reference, takes at most
/// so many steps (of [`Checks`]) for each stored byte, and so many more. A step is a few nanoseconds. Ranks have to be
/// looked at one by one only where boxes interleave a lot, which takes many bytes to say.
const STEPS_A_BYTE: u64 = 1 << 18;
const STEPS: u64 = 1 << 27;

/// A whole recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    pub meta: Meta,
    pub bundle: Bundle,
}

/// What ran, where, when, and how it was traced.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Meta {
    pub refrain_version: String,
    pub command: Vec<String>,
    /// The MPI library, in its own words.
    pub library: String,
    pub abi: String,
    pub ranks: u32,
    pub hosts: Vec<(String, RankList)>,
    /// The cores that ranks may use; empty where that is not known. Each rank is in at most one.
    pub cores: Vec<Cores>,
    /// Unix seconds.
    pub started: u64,
    pub wall_ns: u64,
    /// What was asked for, where it differs from what one gets without asking.
    pub options: Vec<(String, String)>,
    /// Values are kept apart from symbols.
    pub split: bool,
    /// Tallies are times.
    pub timed: bool,
    /// The program ended by itself and every rank is there.
    pub complete: bool,
    pub notes: Vec<String>,
    /// Where tallies are times: how each rank spent its own.
    pub profile: Option<Profile>,
    pub memory: Option<Memory>,
    /// How long the ranks took to merge, as rank 0 saw it, in milliseconds: all but writing the file.
    pub merge_ms: Option<u64>,
    /// How the times of calls are distributed, by the number of their symbol and of the one before; as [`settle`] leaves
    /// it.
    pub paths: Option<Paths>,
    /// Only where it is known of every call when it was.
    pub clocks: Option<Clocks>,
    /// Of a run that did not end by itself: what its threads were doing.
    pub flight: Vec<InFlight>,
}

/// The option of a trace that nobody recorded: it says what it was worked out from.
pub const EXTRAPOLATED: &str = "extrapolated";

impl Meta {
    /// What a trace that nobody recorded was worked out from.
    pub fn extrapolated(&self) -> Option<&str> {
        self.options.iter().find(|(name, _)| name == EXTRAPOLATED).map(|(_, from)| from.as_str())
    }
}

/// What a thread was doing when its recording was found: the call that it had entered and not left, or else the last one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InFlight {
    pub rank: u32,
    pub thread: u32,
    /// It had not left the call.
    pub inside: bool,
    /// The function's number in the call table.
    pub function: Option<u16>,
    /// By parameter, as far as they are known; empty where none are.
    pub args: Vec<Arg>,
    /// How many requests it was given to complete, and the first of them as far as they are known.
    pub waits_for: u64,
    pub requests: Vec<Waited>,
    /// How long it had been in the call.
    pub ns: Option<u64>,
    /// Where it returns to.
    pub place: Option<CodeAddress>,
    /// The error of MPI that ended the process: the number of its class among the constants, and the library's words.
    pub error: Option<(u16, String)>,
    /// The signal that ended the process, and where.
    pub fault: Option<u32>,
    pub fault_place: Option<CodeAddress>,
}

/// An argument of a call in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    /// An address, or something that was not there yet.
    Unknown,
    Number(i64),
    /// A constant of MPI, by its number.
    Constant(u16),
    /// An object of the parameter's class, by its id.
    Object(u32),
}

/// A request: that of the last call of a thread that made one, if `back` is 0, of the one before that if 1, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    pub thread: u32,
    pub back: u64,
}

/// A place in the program's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeAddress {
    pub module: Module,
    pub offset: u64,
}

/// What the tracer held at most, in bytes, over ranks while the program ran, and on the rank that merged once it had. A
/// file keeps whole KiB of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub min: u64,
    pub mean: u64,
    pub max: u64,
    pub root: u64,
}

/// What ranks may use of the cores of their host. Ranks that have as much of as many cores with as many others stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    pub ranks: RankList,
    /// On so many cores each of them may run.
    pub each: u32,
    /// So many ranks of the host, each of these among them, have together ...
    pub sharing: u32,
    /// ... so many thousandths of a core, and no more: where several of a rank's groups are limited, the one that has least for each rank.
    pub thousandths: u64,
}

impl Cores {
    /// More ranks than cores for them.
    pub fn are_short(&self) -> bool {
        u64::from(self.sharing) * 1000 > self.thousandths
    }
}

/// Where the bytes of a file go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionInfo {
    pub name: &'static str,
    pub offset: usize,
    pub stored: usize,
    /// Before packing.
    pub raw: usize,
}

/// The file's bytes. Rules and terms are renumbered in the order in which a reader meets them, which is how
/// [`Bundle::canonical`] leaves them; nothing else changes between `write` and [`read`].
///
/// The bundle must be valid ([`Bundle::validate`]).
pub fn write(trace: &Trace) -> Vec<u8> {
    write_as(trace, true)
}

/// The same without packing: larger, but its bytes can be read with nothing but FORMAT.md's tables.
pub fn write_plain(trace: &Trace) -> Vec<u8> {
    write_as(trace, false)
}

fn write_as(trace: &Trace, may_pack: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(()) = put_file(trace, may_pack, &mut |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok::<(), Infallible>(())
    });
    bytes
}

/// The same bytes, which are never all in memory: a trace of ranks that are all different is mostly blocks, and these go
/// where they belong straight from their streams.
pub fn write_to(trace: &Trace, mut out: impl io::Write) -> io::Result<()> {
    put_file(trace, true, &mut |piece: &[u8]| out.write_all(piece))
}

fn put_file<E>(trace: &Trace, may_pack: bool, out: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let kinds = kinds_of(trace);
    let Body { plan, bytes, ends, unpacked } = body(trace, &kinds, may_pack);
    let meta = &trace.meta;
    let flag = |on: bool, flag: u8| if on { flag } else { 0 };
    let flags = flag(meta.complete, COMPLETE) | flag(meta.split, SPLIT) | flag(meta.timed, TIMED);
    let body = container::Body { bytes: &bytes, ends: kinds.into_iter().zip(ends).collect(), unpacked };
    let paths = meta.paths.as_ref().map(|paths| sections::paths::write(paths, trace.bundle.symbols.len()));
    let small = [(Kind::Paths, paths), (Kind::Sides, sections::sides::write(&trace.bundle))];
    let small: Vec<(Kind, Vec<u8>)> =
        small.into_iter().filter_map(|(kind, bytes)| Some((kind, bytes?))).collect();
    let mut apart: Vec<Apart> =
        sections::streams::about_blocks(plan.bundle(trace), &plan.pools).into_iter().collect();
    let about = |(kind, bytes): &(Kind, Vec<u8>)| Apart {
        kind: *kind,
        length: bytes.len(),
        crc: crc32fast::hash(bytes),
    };
    apart.extend(small.iter().map(about));
    out(&container::header(flags, &body, &apart))?;
    out(&bytes)?;
    sections::streams::blocks(plan.bundle(trace), &plan.pools, out)?;
    small.iter().try_for_each(|(_, bytes)| out(bytes))
}

/// What is told in ways that not every file needs.
#[derive(Clone, Default)]
struct Plan {
    /// Lanes that are told as neighbours, and the bundle without these.
    tables: Option<Rc<(Tables, Bundle)>>,
    /// Or other numbers for ranks, and the bundle with these.
    kinds: Option<Rc<(Kinds, Bundle)>>,
    pools: Rc<Pools>,
}

impl Plan {
    /// What is left to tell of streams.
    fn bundle<'a>(&'a self, trace: &'a Trace) -> &'a Bundle {
        match (&self.tables, &self.kinds) {
            (Some(tables), _) => &tables.1,
            (None, Some(kinds)) => &kinds.1,
            (None, None) => &trace.bundle,
        }
    }

    /// What a reader spends because of it, in steps of [`Checks`].
    fn steps(&self) -> u64 {
        let tables = self.tables.as_ref().map_or(0, |tables| tables.0.steps());
        let kinds = self.kinds.as_ref().map_or(0, |kinds| kinds.0.steps());
        tables.saturating_add(kinds)
    }
}

/// The sections that are made of tokens.
struct Body {
    plan: Plan,
    bytes: Vec<u8>,
    /// Where in the bytes each section ends.
    ends: Vec<usize>,
    /// How long they are unpacked, if they are packed.
    unpacked: Option<usize>,
}

/// More plain bytes than these are not packed a second time to see which way is shorter.
const TRIED: usize = 1 << 20;

fn body(trace: &Trace, kinds: &[Kind], may_pack: bool) -> Body {
    let plain = Plan::default();
    if !may_pack {
        return with_pools(trace, kinds, &plain, false);
    }
    let tables = Tables::taken(&trace.bundle);
    let tables = tables.map(|tables| Plan { tables: Some(Rc::new(tables)), ..Plan::default() });
    let alike = if tables.is_none() { Kinds::taken(&trace.bundle) } else { None };
    let alike = alike.map(|alike| Plan { kinds: Some(Rc::new(alike)), ..Plan::default() });
    let Some(plan) = tables.or(alike) else { return with_pools(trace, kinds, &plain, true) };
    let with = with_pools(trace, kinds, &plan, true);
    // A reader has other work, too. What it refused would be lost.
    if plan.steps() > allowed(size(trace, &with)) / 2 {
        return with_pools(trace, kinds, &plain, true);
    }
    let plainly = plan.tables.is_some_and(|tables| tables.0.are_plainly_better());
    if plainly || with.unpacked.is_some_and(|plain| plain > TRIED) {
        return with;
    }
    shorter(trace, with, with_pools(trace, kinds, &plain, true))
}

/// The same with numbers of many ranks told together, where that is shorter.
fn with_pools(trace: &Trace, kinds: &[Kind], plan: &Plan, may_pack: bool) -> Body {
    let apart = || body_with(trace, kinds, plan.clone(), may_pack);
    let pools = if may_pack { Pools::new(plan.bundle(trace)) } else { Pools::default() };
    if pools.is_empty() {
        return apart();
    }
    let together = body_with(trace, kinds, Plan { pools: Rc::new(pools), ..plan.clone() }, may_pack);
    if together.unpacked.is_some_and(|plain| plain > TRIED) {
        return together;
    }
    shorter(trace, together, apart())
}

fn shorter(trace: &Trace, a: Body, b: Body) -> Body {
    if size(trace, &a) < size(trace, &b) { a } else { b }
}

/// How many bytes a body takes in a file.
fn size(trace: &Trace, body: &Body) -> usize {
    let blocks = sections::streams::about_blocks(body.plan.bundle(trace), &body.plan.pools);
    body.bytes.len() + blocks.map_or(0, |blocks| blocks.length)
}

/// How many steps of [`Checks`] reading a file of so many bytes may take.
fn allowed(bytes: usize) -> u64 {
    (bytes as u64).saturating_mul(STEPS_A_BYTE).saturating_add(STEPS)
}

fn body_with(trace: &Trace, kinds: &[Kind], plan: Plan, may_pack: bool) -> Body {
    // Tokens are made as often as they are needed, and never held.
    let mut counting = Put::counting();
    kinds.iter().for_each(|&kind| tokens(&mut counting, trace, &plan, kind));
    let plain_len = counting.len();
    let (packed, ends) = if may_pack { pack(trace, &plan, kinds, plain_len) } else { Default::default() };
    let is_packed = may_pack && packed.len() < plain_len;
    let (bytes, ends) = if is_packed { (packed, ends) } else { put_all(Put::plain(), trace, &plan, kinds) };
    Body { plan, bytes, ends, unpacked: is_packed.then_some(plain_len) }
}

/// The bytes of all sections, and where in them each ends.
fn put_all(mut put: Put, trace: &Trace, plan: &Plan, kinds: &[Kind]) -> (Vec<u8>, Vec<usize>) {
    let mut ends = Vec::new();
    for &kind in kinds {
        tokens(&mut put, trace, plan, kind);
        ends.push(put.len());
    }
    (put.finish(), ends)
}

/// A trace and what is known of its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    pub trace: Trace,
    /// What they cost; the first is the header.
    pub sections: Vec<SectionInfo>,
    /// What it took to hold functions of the rank against their ranks: see [`Checks::spent`].
    pub steps: u64,
}

/// Safe on any bytes.
pub fn read(bytes: &[u8]) -> Result<Trace, Error> {
    Ok(contents(bytes)?.trace)
}

/// The same, with the sections of the file.
pub fn contents(bytes: &[u8]) -> Result<Contents, Error> {
    read_some(bytes, Depth::All)
}

/// The sections of a file alone.
pub fn sections(bytes: &[u8]) -> Result<Vec<SectionInfo>, Error> {
    Ok(contents(bytes)?.sections)
}

/// What an overview needs: the trace without times of symbols and ranks, and with blocks that were not looked into. Damage there is
/// not noticed; [`read`] does.
pub fn outline(bytes: &[u8]) -> Result<Contents, Error> {
    read_some(bytes, Depth::ButBlocks)
}

/// What ran, and nothing else of the trace; without what stands in later sections.
pub fn meta(bytes: &[u8]) -> Result<Meta, Error> {
    let header = container::parse(bytes)?;
    let packed: Vec<u8> =
        header.entries.iter().filter(|e| e.packed).flat_map(|e| &bytes[e.start..e.end]).copied().collect();
    let model = if packed.is_empty() { Model::new(0) } else { primed(header.plain_len) };
    let mut stream = Get::packed(Decoder::new(model, packed), header.plain_len);
    let Some(entry) = header.entries.iter().find(|entry| entry.known() == Some(Kind::Meta)) else {
        return Ok(Meta::default());
    };
    let mut alone = Get::plain(&bytes[entry.start..entry.end]);
    // It is the first of the packed sections.
    let get = if entry.packed { &mut stream } else { &mut alone };
    sections::meta::read(get).map_err(|bad| Error::Malformed {
        section: entry.name(),
        start: entry.start,
        end: entry.end,
        what: bad.0,
    })
}

/// The sections made of tokens that the file has.
fn kinds_of(trace: &Trace) -> Vec<Kind> {
    let has = |kind: &Kind| *kind != Kind::Sites || !trace.bundle.sites.is_empty();
    ORDER.into_iter().filter(has).collect()
}

fn tokens(put: &mut Put, trace: &Trace, plan: &Plan, kind: Kind) {
    let bundle = &trace.bundle;
    match kind {
        Kind::Meta => sections::meta::write(put, &trace.meta),
        Kind::Symbols => sections::symbols::write(put, &bundle.symbols),
        Kind::Structure => sections::structure::write(put, &bundle.structures),
        Kind::Ranks => {
            let none = Tables::default();
            let tables = plan.tables.as_ref().map_or(&none, |tables| &tables.0);
            let kinds = plan.kinds.as_ref().map(|kinds| &kinds.0);
            sections::cohorts::write(put, plan.bundle(trace), kinds, tables);
        }
        Kind::Streams => sections::streams::write(put, plan.bundle(trace), &plan.pools),
        Kind::Tallies => {
            sections::tallies::write(put, bundle, trace.meta.split);
            sections::profile::write(put, trace.meta.profile.as_ref());
        }
        Kind::Sites => sections::sites::write(put, &bundle.sites, &bundle.symbols),
        // Not pieces of the packed stream.
        Kind::Blocks | Kind::Paths | Kind::Sides | Kind::Chunked | Kind::References => {}
    }
}

fn plain(tokens: &[Token]) -> Vec<u8> {
    let mut bytes = Vec::new();
    tokens.iter().for_each(|token| token::plain(token, &mut bytes));
    bytes
}

/// All sections as one packed stream, and where in it each ends.
fn pack(trace: &Trace, plan: &Plan, kinds: &[Kind], plain_len: usize) -> (Vec<u8>, Vec<usize>) {
    let put = Put::packing(Encoder::new(primed(plain_len)));
    let (mut bytes, mut ends) = put_all(put, trace, plan, kinds);
    let least = plain_len.saturating_sub(MARGIN).div_ceil(RATIO);
    bytes.resize(bytes.len().max(least), 0);
    if let Some(last) = ends.last_mut() {
        *last = bytes.len();
    }
    (bytes, ends)
}

/// A model that has seen a typical small trace.
fn primed(plain_len: usize) -> Model {
    let mut encoder = Encoder::new(Model::new(plain_len));
    prime::tokens().iter().for_each(|token| encoder.token(token));
    encoder.into_model()
}

/// All of it, or what [`outline`] needs.
fn read_some(bytes: &[u8], depth: Depth) -> Result<Contents, Error> {
    let all = depth == Depth::All;
    let header = container::parse(bytes)?;
    let packed: Vec<u8> =
        header.entries.iter().filter(|e| e.packed).flat_map(|e| &bytes[e.start..e.end]).copied().collect();
    // Without packed sections no model is needed.
    let model = if packed.is_empty() { Model::new(0) } else { primed(header.plain_len) };
    let mut stream = Get::packed(Decoder::new(model, packed), header.plain_len);
    let mut trace = Trace::default();
    let mut tables = Pending::default();
    let mut blocks = header.blocks().map(|entry| &bytes[entry.start..entry.end]);
    let first = header.entries.iter().map(|e| e.start).min().unwrap_or(bytes.len());
    let mut infos = vec![SectionInfo { name: "header", offset: 0, stored: first, raw: first }];
    // What comes before the tallies is held together before they are read.
    let mut valid = false;
    let mut checks = Checks::within(allowed(bytes.len()));
    for entry in &header.entries {
        let stored = entry.end - entry.start;
        let mut alone = Get::plain(&bytes[entry.start..entry.end]);
        let get = if entry.packed { &mut stream } else { &mut alone };
        let before = get.left();
        let malformed = |what: String| Error::Malformed {
            section: entry.name(),
            start: entry.start,
            end: entry.end,
            what,
        };
        // Nothing that is packed comes after the tallies.
        let skipped = |kind| !all && kind == Kind::Tallies;
        valid |= entry.known() == Some(Kind::Tallies) && !skipped(Kind::Tallies);
        let tokens = |kind: &Kind| !APART.contains(kind);
        if entry.known() == Some(Kind::Sides) {
            let stored = &bytes[entry.start..entry.end];
            sections::sides::read(stored, &mut trace.bundle, &mut checks, depth)
                .map_err(|bad| malformed(bad.0))?;
        } else if entry.known() == Some(Kind::Paths) && all {
            let stored = &bytes[entry.start..entry.end];
            let paths = sections::paths::read(stored, trace.bundle.symbols.len());
            trace.meta.paths = Some(paths.map_err(|bad| malformed(bad.0))?);
        } else if let Some(kind) = entry.known().filter(tokens).filter(|&kind| !skipped(kind)) {
            read_section(&mut trace, kind, get, &mut blocks, depth, (&mut checks, &mut tables))
                .map_err(|bad| malformed(bad.0))?;
            if !entry.packed && get.left() > 0 {
                return Err(malformed("it goes on after its end".into()));
            }
        }
        let read = before - get.left();
        let raw = if entry.known().as_ref().is_some_and(tokens) { read } else { stored };
        infos.push(SectionInfo { name: entry.name(), offset: entry.start, stored, raw });
    }
    let whole = |what: String| Error::Malformed { section: "ranks", start: first, end: bytes.len(), what };
    if blocks.is_some_and(|left| !left.is_empty()) {
        return Err(whole("there are more blocks than its streams have".into()));
    }
    if stream.left() > 0 && all {
        return Err(whole("the packed sections are shorter than announced".into()));
    }
    if !valid {
        trace.bundle.validate_within(&mut checks, depth).map_err(|error| whole(error.to_string()))?;
    }
    trace.meta.complete = header.flags & COMPLETE != 0;
    trace.meta.split = header.flags & SPLIT != 0;
    trace.meta.timed = header.flags & TIMED != 0;
    Ok(Contents { trace, sections: infos, steps: checks.spent() })
}

fn read_section(
    trace: &mut Trace,
    kind: Kind,
    get: &mut Get,
    blocks: &mut Option<&[u8]>,
    depth: Depth,
    (checks, tables): (&mut Checks, &mut Pending),
) -> Result<(), Bad> {
    let bundle = &mut trace.bundle;
    match kind {
        Kind::Meta => {
            trace.meta = sections::meta::read(get)?;
            bundle.world = trace.meta.ranks;
        }
        Kind::Symbols => bundle.symbols = sections::symbols::read(get)?,
        Kind::Structure => {
            bundle.structures = sections::structure::read(get, bundle.symbols.len())?;
            for structure in &bundle.structures {
                if !structure.is_valid() {
                    return Err(Bad::new("a structure that is not well formed"));
                }
            }
        }
        Kind::Ranks => {
            let (structures, symbols) = (&bundle.structures, &bundle.symbols);
            (bundle.cohorts, *tables) =
                sections::cohorts::read(get, bundle.world, structures, symbols, checks)?;
        }
        Kind::Streams => {
            bundle.streams =
                sections::streams::read(get, blocks, &bundle.cohorts, &bundle.structures, &bundle.symbols)?;
            std::mem::take(tables).fill(bundle, checks)?;
        }
        Kind::Blocks | Kind::Paths | Kind::Sides | Kind::Chunked | Kind::References => {}
        Kind::Tallies => {
            bundle.validate_within(checks, depth).map_err(|error| Bad(error.to_string()))?;
            sections::tallies::read(get, bundle)?;
            trace.meta.profile = sections::profile::read(get, checks)?;
        }
        Kind::Sites => bundle.sites = sections::sites::read(get, &mut bundle.symbols)?,
    }
    Ok(())
}
