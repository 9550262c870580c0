//! Part of `meta`: what each thread was doing when what it had recorded was found, where a run did not end by itself.

use refrain_fold::bundle::sites::Module;

use crate::get::{Bad, Get};
use crate::token::{Field, Put, unzigzag, zigzag};
use crate::{Arg, CodeAddress, InFlight, Waited};

// Hints: counts, beside those of `meta`.
const MODULES: u64 = 18;
const BUILD_ID: u64 = 19;
const THREADS: u64 = 20;
const RANK: u64 = 21;
const THREAD: u64 = 22;
const WHAT: u64 = 23;
const FUNCTION: u64 = 24;
const ARGS: u64 = 25;
const FORM: u64 = 26;
const REQUESTS: u64 = 27;
const OFTEN: u64 = 28;
const MODULE: u64 = 29;
const CLASS: u64 = 30;
const SIGNAL: u64 = 31;

// Hints: quantities, and texts.
const NUMBER: u64 = 12;
const OFFSET: u64 = 13;
const LONG: u64 = 14;
const PATH: u64 = 9;
const TEXT: u64 = 10;

// What is known of a thread.
const INSIDE: u64 = 1;
const TIMED: u64 = 2;
const PLACED: u64 = 4;
const FAILED: u64 = 8;
const FAULTED: u64 = 16;
const FAULT_PLACED: u64 = 32;
const CALLED: u64 = 64;

pub fn write(put: &mut Put, all: &[InFlight]) {
    let mut modules: Vec<&Module> = Vec::new();
    let places = all.iter().flat_map(|one| [&one.place, &one.fault_place]);
    for CodeAddress { module, .. } in places.flatten() {
        if !modules.contains(&module) {
            modules.push(module);
        }
    }
    put.put(Field::Count, MODULES, modules.len() as u64);
    for module in &modules {
        put.text(PATH, &module.path);
        put.put(Field::Count, BUILD_ID, module.build_id.len() as u64);
        module.build_id.iter().for_each(|byte| put.put(Field::Bits, 8, (*byte).into()));
    }
    let write_place = |put: &mut Put, place: &CodeAddress| {
        let module = modules.iter().position(|known| **known == place.module).unwrap_or(0);
        put.put(Field::Count, MODULE, module as u64);
        put.measure(Field::Magnitude, OFFSET, place.offset);
    };
    put.put(Field::Count, THREADS, all.len() as u64);
    for one in all {
        put.put(Field::Count, RANK, one.rank.into());
        put.put(Field::Count, THREAD, one.thread.into());
        let known = [
            (one.inside, INSIDE),
            (one.ns.is_some(), TIMED),
            (one.place.is_some(), PLACED),
            (one.error.is_some(), FAILED),
            (one.fault.is_some(), FAULTED),
            (one.fault_place.is_some(), FAULT_PLACED),
            (one.function.is_some(), CALLED),
        ];
        put.put(Field::Count, WHAT, known.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum());
        if let Some(function) = one.function {
            put.put(Field::Count, FUNCTION, function.into());
        }
        put.put(Field::Count, ARGS, one.args.len() as u64);
        for arg in &one.args {
            let (form, number) = match *arg {
                Arg::Unknown => (0, None),
                Arg::Number(number) => (1, Some(zigzag(number))),
                Arg::Constant(id) => (2, Some(id.into())),
                Arg::Object(id) => (3, Some(id.into())),
            };
            put.put(Field::Count, FORM, form);
            if let Some(number) = number {
                put.measure(Field::Magnitude, NUMBER, number);
            }
        }
        put.put(Field::Count, OFTEN, one.waits_for);
        put.put(Field::Count, REQUESTS, one.requests.len() as u64);
        for Waited { thread, back } in &one.requests {
            put.put(Field::Count, THREAD, (*thread).into());
            put.put(Field::Count, REQUESTS, *back);
        }
        if let Some(ns) = one.ns {
            put.measure(Field::Magnitude, LONG, ns);
        }
        if let Some(place) = &one.place {
            write_place(put, place);
        }
        if let Some((class, text)) = &one.error {
            put.put(Field::Count, CLASS, (*class).into());
            put.text(TEXT, text);
        }
        if let Some(signal) = one.fault {
            put.put(Field::Count, SIGNAL, signal.into());
        }
        if let Some(place) = &one.fault_place {
            write_place(put, place);
        }
    }
}

fn read_place(get: &mut Get, modules: &[Module]) -> Result<CodeAddress, Bad> {
    let module: usize = get.small(Field::Count, MODULE)?;
    let module =
        modules.get(module).ok_or_else(|| Bad::new("a call in flight in a module that is not there"))?;
    Ok(CodeAddress { module: module.clone(), offset: get.measure(Field::Magnitude, OFFSET)? })
}

fn read_arg(get: &mut Get) -> Result<Arg, Bad> {
    let form = get.get(Field::Count, FORM)?;
    if form == 0 {
        return Ok(Arg::Unknown);
    }
    let number = get.measure(Field::Magnitude, NUMBER)?;
    let too_large = |_| Bad::new("an argument of a call in flight is too large");
    match form {
        1 => Ok(Arg::Number(unzigzag(number))),
        2 => u16::try_from(number).map(Arg::Constant).map_err(too_large),
        3 => u32::try_from(number).map(Arg::Object).map_err(too_large),
        _ => Err(Bad::new("an argument of a call in flight has an unknown form")),
    }
}

pub fn read(get: &mut Get) -> Result<Vec<InFlight>, Bad> {
    let mut modules = Vec::new();
    for _ in 0..get.count(Field::Count, MODULES)? {
        let path = get.text(PATH)?;
        let length = get.count(Field::Count, BUILD_ID)?;
        let bytes: Result<Box<[u8]>, Bad> = (0..length).map(|_| get.small(Field::Bits, 8)).collect();
        modules.push(Module { path, build_id: bytes? });
    }
    let mut all = Vec::new();
    for _ in 0..get.count(Field::Count, THREADS)? {
        let rank = get.small(Field::Count, RANK)?;
        let thread = get.small(Field::Count, THREAD)?;
        let known = get.get(Field::Count, WHAT)?;
        if known >= CALLED << 1 {
            return Err(Bad::new("something unknown of a call in flight"));
        }
        let has = |bit: u64| known & bit != 0;
        let function = if has(CALLED) { Some(get.small(Field::Count, FUNCTION)?) } else { None };
        let count = get.count(Field::Count, ARGS)?;
        let args: Result<_, Bad> = (0..count).map(|_| read_arg(get)).collect();
        let waits_for = get.get(Field::Count, OFTEN)?;
        let mut requests = Vec::new();
        for _ in 0..get.count(Field::Count, REQUESTS)? {
            let thread = get.small(Field::Count, THREAD)?;
            requests.push(Waited { thread, back: get.get(Field::Count, REQUESTS)? });
        }
        let ns = if has(TIMED) { Some(get.measure(Field::Magnitude, LONG)?) } else { None };
        let place = if has(PLACED) { Some(read_place(get, &modules)?) } else { None };
        let error = if has(FAILED) { Some((get.small(Field::Count, CLASS)?, get.text(TEXT)?)) } else { None };
        let fault = if has(FAULTED) { Some(get.small(Field::Count, SIGNAL)?) } else { None };
        let fault_place = if has(FAULT_PLACED) { Some(read_place(get, &modules)?) } else { None };
        let inside = has(INSIDE);
        let args = args?;
        all.push(InFlight {
            rank,
            thread,
            inside,
            function,
            args,
            waits_for,
            requests,
            ns,
            place,
            error,
            fault,
            fault_place,
        });
    }
    Ok(all)
}
