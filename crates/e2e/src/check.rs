//! What is asked of every traced run.

use std::collections::{BTreeSet, HashSet};

use std::fs;
use std::path::{Path, PathBuf};

use crate::build::{Level, Library, Program};
use crate::json::Json;
use crate::once::Once;
use crate::run::{self, Filler, Setting};
use crate::{account, compare, machine};

/// Untraced and traced: the same output and exit code.
pub fn same(library: Library, program: &Program, ranks: u32) -> run::Traced {
    let plain = run::plain(library, program, ranks);
    let traced = run::conclusive(library, program, ranks, || run::traced_with(library, program, ranks, &[]));
    let (code, stdout) = (traced.outcome.code, traced.outcome.stdout.as_str());
    assert_eq!((code, stdout), (plain.code, plain.stdout.as_str()), "{}", traced.outcome.stderr);
    traced
}

/// A run that the witness has seen.
#[derive(Debug, Clone)]
pub struct Seen {
    pub trace: PathBuf,
    /// Its dump, as it was printed.
    pub text: String,
    /// The functions that it calls.
    pub functions: HashSet<String>,
}

/// On its most ranks in two settings, and on others if it has any: the program does not notice that it is traced, the trace verifies,
/// and its dump says what the witness saw. On the most ranks both settings run behind the filler, where there is one, with random
/// bytes and with marks. Returns the dumps of these two runs.
pub fn against_witness(library: Library, program: &Program, filler: Option<&Path>) -> [String; 2] {
    seen(library, program);
    let ranks = program.ranks.iter().copied().max().unwrap_or(1);
    [(1, Setting::DEFAULT), (2, Setting::LOOPS)].map(|(seed, setting)| {
        let filler = filler.map(|library| Filler { library, seed });
        held(library, program, ranks, setting, filler).text
    })
}

/// A run of the program on other ranks than the most, if it has any: if it can be, odd where that is even. It records times in one
/// of three ways; programs take turns. Made once for all tests that look at it, and kept until the next time the tests run.
pub fn seen(library: Library, program: &Program) -> Seen {
    static SEEN: Once<Seen> = Once::new();
    machine::has_no_room();
    SEEN.get(&format!("{library:?} {program:?}"), || {
        let most = program.ranks.iter().copied().max();
        let others = || program.ranks.iter().copied().filter(|ranks| Some(*ranks) != most);
        let other_kind = others().filter(|ranks| most.is_some_and(|most| (most - ranks) % 2 == 1)).max();
        let ranks = other_kind.or_else(|| others().max()).or(most).unwrap_or(1);
        let number = Program::ALL.iter().position(|p| p.source == program.source).unwrap_or(0);
        let seen = held(library, program, ranks, Setting::TIMES[number % Setting::TIMES.len()], None);
        if let Some(folder) = seen.trace.parent() {
            account::keep(folder);
            // The largest part, and nobody asks for it again. If it stays, it is only in the way.
            let _ = fs::remove_dir_all(folder.join("witness"));
        }
        seen
    })
}

/// Traced in this setting, as [`against_witness`] says.
pub fn held(
    library: Library,
    program: &Program,
    ranks: u32,
    setting: Setting,
    filler: Option<Filler<'_>>,
) -> Seen {
    let what = format!("{} on {ranks} ranks of {}, {}", program.name(), library.suffix(), setting.name);
    let program = &program.when(setting).at(Level::Optimised);
    let plain = run::plain(library, program, ranks);
    let traced = run::conclusive(library, program, ranks, || match filler {
        Some(filler) => run::traced_filled(filler, library, program, ranks, setting),
        None => run::traced_as(library, program, ranks, setting),
    });
    assert_eq!(traced.outcome.code, plain.code, "{what}: {}", traced.outcome.stderr);
    assert_eq!(traced.outcome.stdout, plain.stdout, "{what}");
    let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
    assert_eq!(verified.code, 0, "{what}, verify: {}{}", verified.stdout, verified.stderr);
    let text = traced.text();
    match says_what_the_witness_saw(program, &traced, &text) {
        Ok((dump, report)) => {
            if setting.options.ends_with(&["exact"]) {
                report.times.fit().unwrap_or_else(|e| panic!("{what}: {e}"));
            }
            println!("{what}: {} calls, {} arguments equal", report.calls, report.arguments);
            Seen { trace: traced.trace.clone(), text, functions: compare::functions(&dump) }
        }
        Err(difference) => panic!("{what}:\n{difference}"),
    }
}

/// The trace's dump, where it says what the witness saw of the same run.
pub fn says_what_the_witness_saw(
    program: &Program,
    traced: &run::Traced,
    text: &str,
) -> Result<(Vec<Vec<Json>>, compare::Report), String> {
    let (mut dump, mut witness) = (traced.by_rank(text), traced.witness());
    as_the_witness_sees_it(program, &mut dump, &mut witness);
    let report = compare::compare(&dump, &witness, program.rules)?;
    Ok((dump, report))
}

/// The witness sees what layers for Fortran call in C. Of some functions that is nothing, and of statuses that the program
/// ignores some pass their own: `tests/fortran.rs` looks at these.
pub fn as_the_witness_sees_it(program: &Program, dump: &mut [Vec<Json>], witness: &mut [Vec<Json>]) {
    if program.is_fortran() {
        dump.iter_mut().zip(witness).for_each(|(dump, witness)| as_in_c(dump, witness));
    }
}

fn as_in_c(dump: &mut Vec<Json>, witness: &mut [Json]) {
    let name = |call: &Json| call.get("call").text().unwrap_or_default().to_owned();
    let witnessed: BTreeSet<String> = witness.iter().map(name).collect();
    const UNSEEN: [&str; 4] = ["_get_attr", "_set_attr", "_create_keyval", "_create_errhandler"];
    let unseen = |name: &str| UNSEEN.iter().any(|end| name.ends_with(end)) && !witnessed.contains(name);
    dump.retain(|call| !unseen(&name(call)));
    for (seen, call) in dump.iter().zip(witness) {
        let Json::Object(members) = call else { continue };
        let Some(Json::Object(args)) = members.iter_mut().find(|m| m.0 == "args").map(|m| &mut m.1) else {
            continue;
        };
        for (name, value) in args {
            let told = seen.get("args").get(name);
            let ignored = told.text().is_some_and(|text| text.starts_with("MPI_STATUS"));
            // Fortran passes no arguments to MPI_Init, and Open MPI's layer none at an address.
            let none = name == "argc" && told.text() == Some("NULL");
            // MPICH's layer passes where it stands.
            let state = name == "extra_state";
            if ((ignored || none) && !matches!(value, Json::Text(_))) || state {
                *value = told.clone();
            }
        }
    }
}

/// As `against_witness`, for a script of `tests/python` that writes down itself what it asks of MPI.
pub fn against_record(library: Library, script: &str, ranks: u32) {
    let what = format!("{script} on {ranks} ranks of {}", library.suffix());
    let plain = run::script(library, script, ranks, run::Tracing::Off).outcome;
    assert_eq!(plain.code, 0, "{what}, untraced: {}{}", plain.stdout, plain.stderr);
    let traced = run::script(library, script, ranks, run::Tracing::On);
    assert_eq!(traced.outcome.code, plain.code, "{what}: {}", traced.outcome.stderr);
    assert_eq!(traced.outcome.stdout, plain.stdout, "{what}");
    let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
    assert_eq!(verified.code, 0, "{what}, verify: {}{}", verified.stdout, verified.stderr);
    let (dump, record) = (traced.dump(), traced.record());
    let mut calls = 0;
    for (rank, (dump, record)) in dump.iter().zip(&record).enumerate() {
        calls += recorded(dump, record).unwrap_or_else(|e| panic!("{what}, rank {rank}:\n{e}"));
    }
    println!("{what}: {calls} calls equal, of {} traced", dump.iter().map(Vec::len).sum::<usize>());
}

/// Of all functions that occur in the record, the dump has exactly its calls, in its order, with at least its arguments.
/// Which of a function's two forms is called, that with or without large counts, is for the binding to choose.
pub fn recorded(dump: &[Json], record: &[Json]) -> Result<usize, String> {
    let bare = |call: &Json| {
        let name = call.get("call").text().unwrap_or_default();
        name.strip_suffix("_c").unwrap_or(name).to_owned()
    };
    let wanted: Vec<String> = record.iter().map(bare).collect();
    let mut found = dump.iter().filter(|call| wanted.contains(&bare(call)));
    for (number, want) in record.iter().enumerate() {
        let Some(call) = found.next() else { return Err(format!("call {number}, {want}, is not there")) };
        if bare(call) != wanted[number] || !within(want.get("args"), call.get("args")) {
            return Err(format!("call {number} is {call}\nand should be {want}"));
        }
    }
    match found.next() {
        Some(call) => Err(format!("{call} is one too many")),
        None => Ok(record.len()),
    }
}

fn within(part: &Json, whole: &Json) -> bool {
    match part {
        Json::Object(members) => members.iter().all(|(key, value)| within(value, whole.get(key))),
        _ => part == whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dump: &str, record: &str, equal: bool) {
        let list = |text: &str| Json::parse(text).expect("a list").list().to_vec();
        assert_eq!(recorded(&list(dump), &list(record)).is_ok(), equal, "{dump} {record}");
    }

    #[test]
    fn differences_are_noticed() {
        let send = r#"[{"call":"MPI_Send_c","args":{"count":3,"dest":1,"status":{"tag":7,"bytes":8}}}]"#;
        check(send, r#"[{"call":"MPI_Send","args":{"count":3,"status":{"tag":7}}}]"#, true);
        check(send, r#"[{"call":"MPI_Send","args":{"count":4}}]"#, false);
        check(send, r#"[{"call":"MPI_Send","args":{"count":3,"status":{"tag":8}}}]"#, false);
        check(send, r#"[{"call":"MPI_Send","args":{"tag":3}}]"#, false);
        check(send, r#"[{"call":"MPI_Send","args":{}},{"call":"MPI_Send","args":{}}]"#, false);
        let two =
            r#"[{"call":"MPI_Send","args":{}},{"call":"MPI_Wait","args":{}},{"call":"MPI_Send","args":{}}]"#;
        check(two, r#"[{"call":"MPI_Send","args":{}}]"#, false);
        check(two, r#"[{"call":"MPI_Send","args":{}},{"call":"MPI_Send","args":{}}]"#, true);
        check(two, r#"[{"call":"MPI_Wait","args":{}},{"call":"MPI_Send","args":{}}]"#, false);
    }
}
