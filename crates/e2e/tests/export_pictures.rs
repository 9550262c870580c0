//! Exports for viewers, read back by others: their own libraries where there are some, and a strict parser in Python
//! (`tests/python/pictures.py`). Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use std::path::Path;
use std::process::Command;

use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, build, run};

const FORMATS: [(&str, &str); 4] =
    [("chrome", "t.json"), ("perfetto", "t.pftrace"), ("paje", "t.paje"), ("paraver", "t.prv")];

/// Exports a trace and reads it again: calls, messages, threads. `None` where the reader is not installed.
fn read_back(trace: &Path, format: &str, file: &str, more: &[&str]) -> Option<(i64, i64, i64)> {
    let out = trace.with_file_name(file).to_string_lossy().into_owned();
    let trace = trace.to_string_lossy().into_owned();
    let done = run::refrain(&[&["export", &trace, "--to", format, "-o", &out, "--force"], more].concat());
    assert_eq!(done.code, 0, "{format}: {}", done.stderr);
    let script = build::script("pictures.py");
    // With Perfetto's package, after `make wheels`.
    let with_package = build::target().join("venv/perfetto/bin/python3");
    let python = if with_package.exists() { with_package } else { "python3".into() };
    let mut python = Command::new(python);
    let said = python.arg(script).args([format, &out]).output().unwrap();
    let stderr = String::from_utf8_lossy(&said.stderr);
    if said.status.code() == Some(77) {
        eprintln!("{format} is not checked: {stderr}");
        return None;
    }
    assert!(said.status.success(), "{format} of {trace}: {stderr}");
    let seen = Json::parse(&String::from_utf8_lossy(&said.stdout)).unwrap();
    let number = |name: &str| seen.get(name).int().unwrap();
    Some((number("calls"), number("messages"), number("threads")))
}

/// Calls and messages as `dump` has them. Sends of these programs go to ranks of the world, and all are received.
fn recorded(dump: &[Vec<Json>]) -> (i64, i64) {
    let calls = dump.iter().map(Vec::len).sum::<usize>() as i64;
    let sends = |call: &&Json| {
        let name = call.get("call").text().unwrap_or("");
        let sends = ["MPI_Send", "MPI_Isend", "MPI_Ssend", "MPI_Sendrecv"].contains(&name);
        sends && call.get("args").get("dest").int().is_some()
    };
    (calls, dump.iter().flatten().filter(sends).count() as i64)
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn every_call_and_message_is_in_every_picture() {
    for library in Library::ALL {
        for (program, time) in [("stencil2d", "exact"), ("ring", "mean"), ("ring", "binned")] {
            let traced = run::traced_with(library, &Program::named(program), 4, &[("REFRAIN_TIME", time)]);
            assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
            let (calls, messages) = recorded(&traced.dump());
            assert!(messages > 0, "{program} sends nothing");
            for (format, file) in FORMATS {
                if let Some(seen) = read_back(&traced.trace, format, file, &[]) {
                    // Times that are not exact may say that a message came before it was sent: it has no line then.
                    let least = if time == "binned" { 0 } else { messages };
                    assert_eq!((seen.0, seen.2), (calls, 4), "{program} {time} {format}");
                    assert!((least..=messages).contains(&seen.1), "{program} {time} {format}: {}", seen.1);
                }
            }
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn ranks_can_be_left_out() {
    let traced = run::traced_with(Library::Mpich, &Program::named("ring"), 3, &[("REFRAIN_TIME", "exact")]);
    let dump = traced.dump();
    let calls = (dump[0].len() + dump[2].len()) as i64;
    for (format, file) in FORMATS {
        if let Some((seen, _, threads)) = read_back(&traced.trace, format, file, &["--ranks", "0,2"]) {
            assert_eq!((seen, threads), (calls, 2), "{format}");
        }
    }
    let trace = traced.trace.to_string_lossy().into_owned();
    let wrong = run::refrain(&["export", &trace, "--to", "paraver", "-o", "t.txt"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains(".prv"), "{}", wrong.stderr);
}
