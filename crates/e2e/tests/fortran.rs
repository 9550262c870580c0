//! The same Fortran source gives the same calls with the same arguments on MPICH and on Open MPI, whatever their layers
//! for Fortran do on the way. Ignored in a plain `cargo test`: it needs the MPI libraries and the built command.

use std::collections::{BTreeMap, BTreeSet};

use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, compare, run};
use refrain_model::{CType, functions};

/// One argument of a call, as it is compared.
struct Argument<'a> {
    call: &'a str,
    name: &'a str,
}

/// What may differ between two libraries that are asked for the same.
fn normal(at: &Argument<'_>, value: &Json, segments: &mut BTreeMap<String, usize>) -> Json {
    match (at.call, at.name, value) {
        // Codes of errors, and strings about them and about the library, are the library's own.
        (_, "errorcode" | "errorclass", Json::Int(_)) => Json::Text("a code".into()),
        ("MPI_Get_library_version", "version" | "resultlen", _) => Json::Text("a version".into()),
        ("MPI_Get_version", "version" | "subversion", _) => Json::Text("a version".into()),
        // What one library adds to the infos it hands out, and how much room packing takes.
        ("MPI_Pack_size", "size", _) => Json::Text("a size".into()),
        // Where a function lies in its executable, and an address in the process.
        (_, _, Json::Text(text)) if text.contains("+0x") => Json::Text("a function".into()),
        ("MPI_Get_address" | "MPI_Address", "address", _) => Json::Text("an address".into()),
        (call, name, Json::Int(number)) if *number > 1 << 40 && holds_addresses(call, name) => {
            Json::Text("an address".into())
        }
        // MPI's own memory may be what it had before, or new.
        (_, "baseptr", Json::Text(text)) if is_place(text) => Json::Text("memory of MPI".into()),
        ("MPI_Free_mem", "base", _) => Json::Text("memory of MPI".into()),
        // One library's executable holds other variables before the program's: segments go by the order in which they
        // come up, and a static variable is one.
        (_, _, Json::Text(text)) if is_place(text) => {
            let (segment, offset) = text.rsplit_once('+').unwrap_or((text, "0"));
            let is_static = segment.starts_with("static");
            let key = if is_static { text.clone() } else { segment.to_owned() };
            let next = segments.len();
            let number = *segments.entry(key).or_insert(next);
            Json::Text(format!("place {number}+{}", if is_static { "0" } else { offset }))
        }
        (_, _, Json::List(list)) => Json::List(list.iter().map(|v| normal(at, v, segments)).collect()),
        (_, _, Json::Object(members)) => Json::Object(
            members
                .iter()
                .map(|(key, value)| {
                    (key.clone(), normal(&Argument { call: at.call, name: key }, value, segments))
                })
                .collect(),
        ),
        _ => value.clone(),
    }
}

/// Displacements may be addresses in the process; counts, tags and the like never are.
fn holds_addresses(call: &str, name: &str) -> bool {
    let function = functions().iter().find(|f| f.name == call);
    let parameter = function.and_then(|f| f.params.iter().find(|p| p.name == name));
    parameter.is_some_and(|p| p.ctype == CType::Aint)
}

fn is_place(text: &str) -> bool {
    let kind = text.split('#').next().unwrap_or_default();
    text.contains('#') && text.contains('+') && ["heap", "static", "stack", "other"].contains(&kind)
}

/// Ids of requests are names: which one a new request gets depends on the program's variable, in place of which Open MPI's
/// Fortran has one of its own. So each request is called by how many were made before it.
fn by_order(name: &str, args: String, made: &mut BTreeMap<String, usize>) -> String {
    const USE: [&str; 11] = [
        "MPI_Wait",
        "MPI_Test",
        "MPI_Start",
        "MPI_Cancel",
        "MPI_Request_free",
        "MPI_Request_get_status",
        "MPI_Pready",
        "MPI_Pready_range",
        "MPI_Pready_list",
        "MPI_Parrived",
        "MPI_Grequest_complete",
    ];
    let mut parts = args.split("req#");
    let mut out = parts.next().unwrap_or_default().to_owned();
    let makes = args.contains("\"request\":") && !USE.contains(&name);
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let (id, rest) = part.split_at(end);
        if makes {
            let next = made.values().max().map_or(0, |last| last + 1);
            made.insert(id.to_owned(), next);
        }
        out += &format!("request {:?}{rest}", made.get(id));
    }
    out
}

/// A rank's calls, as they are compared.
fn calls(dump: &[Json]) -> Vec<String> {
    let mut segments = BTreeMap::new();
    let mut made = BTreeMap::new();
    let mut show = |call: &Json| {
        let name = call.get("call").text().unwrap_or_default();
        let args = normal(&Argument { call: name, name: "args" }, call.get("args"), &mut segments);
        let failed = call.get("result").int().is_some_and(|code| code != 0) && !name.starts_with("MPI_Aint");
        let args = by_order(name, args.to_string(), &mut made);
        format!("{name} {args}{}", if failed { " failed" } else { "" })
    };
    dump.iter().filter(|call| !compare::is_vain_poll(call)).map(&mut show).collect()
}

/// Runs the program on both libraries, holds the traces against each other, and returns the functions that it called.
fn same_on_both(program: &Program) -> BTreeSet<String> {
    let ranks = program.ranks[program.ranks.len() - 1];
    let dump = |library| {
        let traced = run::traced_with(library, program, ranks, &[]);
        assert_eq!(traced.outcome.code, 0, "{} on {library:?}: {}", program.name(), traced.outcome.stderr);
        traced.dump()
    };
    let (mpich, openmpi) = (dump(Library::Mpich), dump(Library::OpenMpi));
    assert_eq!(mpich.len(), openmpi.len(), "{}: the ranks", program.name());
    let mut compared = 0;
    for (rank, (mpich, openmpi)) in mpich.iter().zip(&openmpi).enumerate() {
        assert!(!mpich.is_empty() && !openmpi.is_empty(), "{}: nothing of rank {rank}", program.name());
        let (mpich, openmpi) = (calls(mpich), calls(openmpi));
        let pairs = mpich.iter().zip(&openmpi).enumerate();
        let differing = pairs.filter(|(_, (a, b))| a != b);
        let shown: Vec<String> = differing
            .map(|(n, (a, b))| format!("call {n}\n  MPICH    {a}\n  Open MPI {b}"))
            .take(20)
            .collect();
        assert!(shown.is_empty(), "{}, rank {rank}\n{}", program.name(), shown.join("\n"));
        assert_eq!(mpich.len(), openmpi.len(), "{}, rank {rank}", program.name());
        compared += mpich.len();
    }
    println!("{}: {compared} calls of {ranks} ranks are equal on both libraries", program.name());
    mpich.iter().flatten().filter_map(|call| call.get("call").text().map(String::from)).collect()
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn programs_give_the_same_calls_on_both_libraries() {
    for program in Program::ALL.iter().filter(|program| program.is_fortran()) {
        same_on_both(program);
    }
}

fn every_function(binding: &str) {
    let program = Program::EVERY_FORTRAN.iter().find(|program| program.name().ends_with(binding));
    let functions = same_on_both(program.expect("a program for each binding"));
    println!("{binding}: {} functions: {functions:?}", functions.len());
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn every_function_of_mpif_h() {
    every_function("mpifh");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn every_function_of_the_module_mpi() {
    every_function("usempi");
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn every_function_of_mpi_f08() {
    every_function("f08");
}
