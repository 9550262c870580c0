//! Whether a trace can be made again.

use std::collections::{BTreeMap, BTreeSet};

use refrain_encode::{Draw, Layout, Reader, Sharing, Slot};
use refrain_model::{Address, Call, Function, Lossy, Value};
use refrain_tracefile::Trace;

use crate::rivals::rivals;

/// What of a trace cannot be made again, and what to record instead. Empty where all can.
pub fn obstacles(trace: &Trace) -> Vec<String> {
    let mut all = Vec::new();
    let meta = &trace.meta;
    let option = |name: &str| meta.options.iter().any(|(option, _)| option == name);
    for (name, without) in
        [("ranks", "--ranks"), ("only", "--only"), ("skip", "--skip"), ("window", "--window")]
    {
        if option(name) {
            all.push(format!("calls were left out ({without}): record the run without it"));
        }
    }
    if !meta.complete {
        all.push("it is not the whole run: what a rank did not get to do, others wait for".to_owned());
    }
    all.extend(unclear(trace));
    if draws(trace, 0).is_some() {
        all.extend(undrawable(trace));
    }
    if switches_off(trace) {
        all.push("calls after MPI_Pcontrol(0) were left out: record the run with --pcontrol off".to_owned());
    }
    all.extend(unknown_address(trace));
    const UNABLE: [(&str, &str); 5] = [
        ("spawn", "starts other processes, of which the trace has nothing"),
        ("MPI_Comm_get_parent", "is of a process that another one started"),
        ("MPI_Comm_accept", "meets another program"),
        ("MPI_Comm_connect", "meets another program"),
        ("MPI_Comm_join", "meets another program"),
    ];
    for symbol in &trace.bundle.symbols {
        let Ok(layout) = Layout::parse(&symbol.bytes) else { continue };
        let name = layout.function.name;
        // Nobody has started this one.
        if name == "MPI_Comm_get_parent"
            && layout.slots.iter().any(|slot| matches!(slot, Slot::NewComm(new) if new.is_null()))
        {
            continue;
        }
        let found =
            UNABLE.iter().find(|(word, _)| name == *word || *word == "spawn" && name.contains("_spawn"));
        if let Some((_, why)) = found {
            let line = format!("{name} {why}");
            if !all.contains(&line) {
                all.push(line);
            }
        }
    }
    all
}

/// What is drawn when a trace is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    pub draw: Draw,
    /// Counts of collectives too.
    pub collectives: bool,
}

/// The symbols of all threads of which numbers are drawn.
fn drawn_symbols(trace: &Trace, seed: u64) -> Option<(Draw, BTreeSet<u32>)> {
    let words = trace.meta.options.iter().find(|(option, _)| option == "lossy").map(|(_, words)| &**words);
    let histograms = Lossy::read(words).ok()?.histograms?;
    let draw = Draw { seed, histograms };
    let reader = Reader::drawing(&trace.bundle, draw);
    let mut symbols = BTreeSet::new();
    for rank in 0..trace.meta.ranks {
        for thread in reader.threads(rank) {
            symbols.extend(reader.drawn_symbols(rank, thread).unwrap_or_default());
        }
    }
    Some((draw, symbols)).filter(|(_, symbols)| !symbols.is_empty())
}

fn function_of(trace: &Trace, symbol: u32) -> Option<&'static Function> {
    let entry = trace.bundle.symbols.get(symbol as usize)?;
    Layout::parse(&entry.bytes).ok().map(|layout| layout.function)
}

/// `None` where the trace has no histograms.
pub fn draws(trace: &Trace, seed: u64) -> Option<Draws> {
    let (draw, symbols) = drawn_symbols(trace, seed)?;
    let mut functions = symbols.iter().filter_map(|symbol| function_of(trace, *symbol));
    Some(Draws { draw, collectives: functions.any(|function| function.families.contains(&"coll")) })
}

/// What cannot be made again if some of it is drawn.
fn undrawable(trace: &Trace) -> Vec<String> {
    let Some((_, symbols)) = drawn_symbols(trace, 0) else { return Vec::new() };
    let mut all = Vec::new();
    let instead = "record the run without `--lossy histograms`";
    let mut say = |what: String| {
        let line = format!("the trace has histograms (--lossy), and {what}: {instead}");
        if !all.contains(&line) {
            all.push(line);
        }
    };
    let functions = functions(trace);
    let drawn: Vec<&Function> = symbols.iter().filter_map(|symbol| function_of(trace, *symbol)).collect();
    if !functions.iter().any(|name| name.starts_with("MPI_Init")) {
        say("messages are drawn on MPI_COMM_WORLD, which is not there without MPI_Init".into());
    }
    if let Some(name) =
        functions.iter().find(|name| name.starts_with("MPI_Psend") || name.starts_with("MPI_Precv"))
    {
        say(format!("{name} needs a partner that is known"));
    }
    let threads = |cohort: &refrain_fold::bundle::Cohort| cohort.ranks.iter().any(|m| m >= trace.meta.ranks);
    if trace.bundle.cohorts.iter().any(threads) {
        say("which thread receives a message that is drawn is not known".into());
    }
    let name_all = |of: &dyn Fn(&Function) -> bool| {
        let names: BTreeSet<&str> = drawn.iter().filter(|f| of(f)).map(|f| f.name).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    let one_sided = name_all(&|function| function.families.contains(&"rma"));
    if !one_sided.is_empty() {
        say(format!("counts and targets that are drawn may not fit a window ({one_sided})"));
    }
    let neighbors = name_all(&|function| {
        let name = function.name.to_ascii_lowercase();
        let name = name.strip_suffix("_c").unwrap_or(&name);
        let name = name.strip_suffix("_init").unwrap_or(name);
        name.contains("neighbor") && (name.ends_with('v') || name.ends_with('w'))
    });
    if !neighbors.is_empty() {
        say(format!("neighbours cannot agree on counts that are drawn ({neighbors})"));
    }
    let between = |symbol: &refrain_fold::bundle::SymbolEntry| {
        Layout::parse(&symbol.bytes).is_ok_and(|layout| {
            layout.slots.iter().any(|slot| matches!(slot, Slot::NewComm(new) if new.is_between_groups()))
        })
    };
    if drawn.iter().any(|function| function.families.contains(&"coll"))
        && trace.bundle.symbols.iter().any(between)
    {
        say("the two groups of an inter-communicator cannot agree on counts that are drawn".into());
    }
    all
}

/// The functions that a trace calls, by name.
pub fn functions(trace: &Trace) -> BTreeSet<&'static str> {
    let layouts = trace.bundle.symbols.iter().filter_map(|symbol| Layout::parse(&symbol.bytes).ok());
    layouts.map(|layout| layout.function.name).collect()
}

/// Where the order of a rank's threads would have to be known.
fn unclear(trace: &Trace) -> Option<String> {
    let threads =
        |cohort: &refrain_fold::bundle::Cohort| cohort.ranks.iter().any(|member| member >= trace.meta.ranks);
    if !trace.bundle.cohorts.iter().any(threads) {
        return None;
    }
    let reader = Reader::new(&trace.bundle);
    (0..trace.meta.ranks).find_map(|rank| {
        if reader.threads(rank).len() < 2 {
            return None;
        }
        if takes_turns(&reader, rank) {
            return Some(format!(
                "rank {rank}: several threads call MPI in turns, without MPI_THREAD_MULTIPLE, and whose turn it was is not recorded: record a run with one thread"
            ));
        }
        let shared = Sharing::of(&reader, rank).map(|sharing| sharing.unclear.into_iter().next());
        let why = shared.and_then(|why| why.map_or_else(|| rivals(&reader, rank), |why| Ok(Some(why))));
        let why = match why {
            Ok(why) => why?,
            Err(error) => return Some(format!("rank {rank}: its calls cannot be read: {error}")),
        };
        Some(format!("rank {rank}: {why}, and in which order threads call is not recorded: record a run with one thread"))
    })
}

/// Numbers from here on are addresses.
const LEAST_ADDRESS: i64 = 1 << 40;

/// What a rank attaches to dynamic windows, and where that was.
#[derive(Default)]
struct Attached {
    /// Where segments began, of which the rank has asked for an address.
    told: BTreeMap<(u8, u32, u32), BTreeSet<i64>>,
    /// Segment, offset and bytes.
    parts: BTreeSet<((u8, u32, u32), i64, i64)>,
}

impl Attached {
    fn learn(&mut self, call: &Call) {
        let key = |place: &Address| (place.area as u8, place.device, place.segment);
        match (call.function.name, &call.args[..]) {
            ("MPI_Get_address" | "MPI_Address", [Value::Address(place), Value::Int(address)]) => {
                self.told.entry(key(place)).or_default().insert(address.wrapping_sub(place.offset));
            }
            ("MPI_Win_attach", [_, Value::Address(place), Value::Int(bytes)]) => {
                self.parts.insert((key(place), place.offset, *bytes));
            }
            _ => {}
        }
    }

    /// First and last address of each part.
    fn ranges(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.parts.iter().flat_map(|(key, offset, bytes)| {
            let bases = self.told.get(key).into_iter().flatten();
            bases.map(move |base| {
                let first = base.wrapping_add(*offset);
                (first, first.wrapping_add(*bytes))
            })
        })
    }
}

/// Accesses of dynamic windows name addresses of other ranks. These are known if the ranks have asked MPI for them.
fn unknown_address(trace: &Trace) -> Option<String> {
    if !functions(trace).contains("MPI_Win_create_dynamic") {
        return None;
    }
    let reader = Reader::new(&trace.bundle);
    let (mut known, mut used) = (BTreeSet::new(), BTreeMap::new());
    for rank in 0..trace.meta.ranks {
        let mut attached = Attached::default();
        for thread in reader.threads(rank) {
            let Ok(calls) = reader.calls(rank, thread) else { continue };
            for (number, call) in calls.filter_map(Result::ok).enumerate() {
                attached.learn(&call);
                if let Some(at) = call.function.index_of("target_disp")
                    && let Value::Int(address @ LEAST_ADDRESS..) = call.args[at]
                {
                    used.entry(address).or_insert((rank, number, call.function.name));
                }
            }
        }
        known.extend(attached.ranges());
    }
    let unknown = |address: i64| !known.iter().any(|(first, last)| (*first..=*last).contains(&address));
    let (address, (rank, number, name)) = used.into_iter().find(|(address, _)| unknown(*address))?;
    Some(format!(
        "rank {rank}, call {number}, {name} names an address of another rank ({address:#x}), which is another one in each run, and \
         no rank has asked MPI_Get_address for what it has attached there: record a program that does"
    ))
}

/// Whether several threads of a rank called what they may not call at the same time.
fn takes_turns(reader: &Reader<'_>, rank: u32) -> bool {
    // What every thread may call, whatever was asked for.
    const FREE: [&str; 8] = [
        "MPI_Initialized",
        "MPI_Finalized",
        "MPI_Query_thread",
        "MPI_Is_thread_main",
        "MPI_Get_version",
        "MPI_Get_library_version",
        "MPI_Wtime",
        "MPI_Wtick",
    ];
    let (mut multiple, mut callers) = (true, 0);
    for thread in reader.threads(rank) {
        let Ok(calls) = reader.calls(rank, thread) else { continue };
        let mut calls_mpi = false;
        for call in calls.filter_map(Result::ok) {
            let name = call.function.name;
            calls_mpi |= !FREE.contains(&name);
            match (name, call.function.index_of("provided")) {
                ("MPI_Init", _) => multiple = false,
                ("MPI_Init_thread", Some(at)) => {
                    multiple = call.args.get(at) == Some(&Value::Name("MPI_THREAD_MULTIPLE"));
                }
                _ => {}
            }
        }
        callers += u32::from(calls_mpi);
    }
    !multiple && callers > 1
}

/// Whether the program has switched recording off.
fn switches_off(trace: &Trace) -> bool {
    let honoured = !trace.meta.options.iter().any(|(name, value)| name == "pcontrol" && value == "off");
    let control =
        |symbol: &[u8]| Layout::parse(symbol).is_ok_and(|layout| layout.function.name == "MPI_Pcontrol");
    if !honoured || !trace.bundle.symbols.iter().any(|symbol| control(&symbol.bytes)) {
        return false;
    }
    let reader = Reader::new(&trace.bundle);
    let members = (0..trace.meta.ranks).flat_map(|rank| {
        let threads = reader.threads(rank).into_iter();
        threads.map(move |thread| (rank, thread))
    });
    members.filter_map(|(rank, thread)| reader.calls(rank, thread).ok()).any(|calls| {
        let mut calls = calls.filter_map(Result::ok);
        calls.any(|call| call.function.name == "MPI_Pcontrol" && call.args.first() == Some(&Value::Int(0)))
    })
}
