//! Traces of a few bytes that stand for more than anyone can wait for: what can answer from the folded form does, and what
//! cannot says so.

mod common;

use common::{call, send, trace_of};
use refrain_fold::bundle::Structure;
use refrain_fold::grammar::{Item, Symbol};
use refrain_sites::Binaries;
use refrain_tracefile::Trace;
use refrain_views::loops::{Options, write_events, write_json, write_text};
use refrain_views::{Error, info, stats, written};

/// Three calls, so often.
fn repeated(times: u64) -> Trace {
    let barrier = call("MPI_Barrier").object("MPI_COMM_WORLD");
    let mut trace = trace_of(&[vec![vec![send(1, "MPI_INT"), barrier, send(2, "MPI_INT")]]]);
    for structure in &mut trace.bundle.structures {
        let Structure::Rules(rules) = structure else { panic!("rules were asked for") };
        let start = rules.rules[0].clone();
        rules.rules = vec![vec![Item { symbol: Symbol::Rule(1), count: times }], start];
    }
    trace
}

#[test]
fn more_calls_than_anyone_can_wait_for() {
    let trace = repeated(1 << 50);
    trace.bundle.validate().unwrap();
    let trace = refrain_tracefile::read(&refrain_tracefile::write(&trace)).unwrap();
    let calls = 3 << 50;
    assert_eq!(info::calls(&trace.bundle), calls);
    let stats = stats::stats(&trace).unwrap();
    assert_eq!(stats.functions.iter().map(|row| row.calls).sum::<u64>(), calls);
    written::write(&trace, &mut std::io::sink()).unwrap();
    let names = Binaries::new(&trace.bundle.sites, &[]);
    let options = Options::default();
    let mut out = Vec::new();
    for done in [
        write_text(&trace, &names, &options, &mut out),
        write_json(&trace, &names, &options, &mut out),
        write_events(&trace, &options, &mut out),
    ] {
        let error = done.unwrap_err();
        assert!(matches!(error, Error::TooMany { calls: found, .. } if found == calls), "{error}");
        assert!(error.to_string().contains("--fold loops"), "{error}");
    }
    // As many as it takes are gone through.
    let trace = repeated(1000);
    write_text(&trace, &names, &options, &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("1,000"));
}
