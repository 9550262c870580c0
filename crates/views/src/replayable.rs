//! Whether a trace can be made again.

use std::collections::{BTreeMap, BTreeSet};

use refrain_encode::{Layout, Reader, Sharing, Slot};
use refrain_model::Value;
use refrain_tracefile::Trace;

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
    if option("lossy") {
        all.push("some of it was lost on purpose (--lossy): record the run without it".to_owned());
    }
    if !meta.complete {
        all.push("it is not the whole run: what a rank did not get to do, others wait for".to_owned());
    }
    all.extend(unclear(trace));
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
        if reader.threads(rank).len() > 1 && takes_turns(&reader, rank) {
            return Some(format!(
                "rank {rank}: several threads call MPI in turns, without MPI_THREAD_MULTIPLE, and whose turn it was is not recorded: record a run with one thread"
            ));
        }
        let sharing = match Sharing::of(&reader, rank) {
            Ok(sharing) => sharing,
            Err(error) => return Some(format!("rank {rank}: its calls cannot be read: {error}")),
        };
        let why = sharing.unclear.first()?;
        Some(format!("rank {rank}: {why}, and in which order threads call is not recorded: record a run with one thread"))
    })
}

/// Numbers from here on are addresses.
const LEAST_ADDRESS: i64 = 1 << 40;
/// No segment is longer.
const MOST_BYTES: i64 = 1 << 40;

/// Accesses of dynamic windows name addresses of other ranks. These are known if the ranks have asked MPI for them.
fn unknown_address(trace: &Trace) -> Option<String> {
    if !functions(trace).contains("MPI_Win_create_dynamic") {
        return None;
    }
    let reader = Reader::new(&trace.bundle);
    let (mut told, mut used) = (BTreeSet::new(), BTreeMap::new());
    for rank in 0..trace.meta.ranks {
        for thread in reader.threads(rank) {
            let Ok(calls) = reader.calls(rank, thread) else { continue };
            for (number, call) in calls.filter_map(Result::ok).enumerate() {
                let name = call.function.name;
                if let ("MPI_Get_address" | "MPI_Address", [Value::Address(place), Value::Int(address)]) =
                    (name, &call.args[..])
                {
                    told.insert(address.wrapping_sub(place.offset));
                } else if let Some(at) = call.function.index_of("target_disp")
                    && let Value::Int(address @ LEAST_ADDRESS..) = call.args[at]
                {
                    used.entry(address).or_insert((rank, number, name));
                }
            }
        }
    }
    let unknown = |address: &i64| {
        let before = told.range(..=*address).next_back();
        before.is_none_or(|before| address.wrapping_sub(*before) >= MOST_BYTES)
    };
    let (address, (rank, number, name)) = used.into_iter().find(|(address, _)| unknown(address))?;
    Some(format!(
        "rank {rank}, call {number}, {name} names an address of another rank ({address:#x}), which is another one in each run, and \
         no rank has asked for it: call MPI_Get_address for what is attached to a dynamic window"
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
