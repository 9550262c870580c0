//! What is asked of every traced run.

use std::collections::BTreeSet;

use crate::build::{Library, Program};
use crate::json::Json;
use crate::{compare, run};

/// Untraced and traced: the same output and exit code.
pub fn same(library: Library, program: &Program, ranks: u32) -> run::Traced {
    let plain = run::plain(library, program, ranks);
    let traced = run::conclusive(library, program, ranks, || run::traced_with(library, program, ranks, &[]));
    let (code, stdout) = (traced.outcome.code, traced.outcome.stdout.as_str());
    assert_eq!((code, stdout), (plain.code, plain.stdout.as_str()), "{}", traced.outcome.stderr);
    traced
}

/// On an odd and an even number of ranks, and in every setting: the program does not notice that it is traced, the trace
/// verifies, and its dump says what the witness saw.
pub fn against_witness(library: Library, program: &Program) {
    let name = program.name();
    for ranks in program.odd_and_even() {
        let what = format!("{name} on {ranks} ranks of {}", library.suffix());
        let plain = run::plain(library, program, ranks);
        // The other settings change what is folded, not what is seen: the most ranks will do.
        let most = program.ranks.iter().max() == Some(&ranks);
        for &setting in run::Setting::ALL.iter().take(if most { usize::MAX } else { 1 }) {
            in_setting(library, program, ranks, setting, &plain, &what);
        }
    }
}

/// Traced in this setting, as [`against_witness`] says; `plain` is how it ends untraced. What was read of it.
pub fn in_setting(
    library: Library,
    program: &Program,
    ranks: u32,
    setting: run::Setting,
    plain: &run::Outcome,
    what: &str,
) -> Vec<Vec<Json>> {
    let what = format!("{what}, {}", setting.name);
    let program = program.when(setting);
    let traced =
        run::conclusive(library, &program, ranks, || run::traced_as(library, &program, ranks, setting));
    assert_eq!(traced.outcome.code, plain.code, "{what}: {}", traced.outcome.stderr);
    assert_eq!(traced.outcome.stdout, plain.stdout, "{what}");
    let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
    assert_eq!(verified.code, 0, "{what}, verify: {}{}", verified.stdout, verified.stderr);
    match says_what_the_witness_saw(&program, &traced) {
        Ok((dump, report)) => {
            println!("{what}: {} calls, {} arguments equal", report.calls, report.arguments);
            dump
        }
        Err(difference) => panic!("{what}:\n{difference}"),
    }
}

/// The trace's dump, where it says what the witness saw of the same run.
pub fn says_what_the_witness_saw(
    program: &Program,
    traced: &run::Traced,
) -> Result<(Vec<Vec<Json>>, compare::Report), String> {
    let (mut dump, mut witness) = (traced.dump(), traced.witness());
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
