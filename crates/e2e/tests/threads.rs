//! Four threads a rank, all calling at once, again and again: no call is lost or wrong, whichever thread was faster.
//! `REFRAIN_THREAD_RUNS` says how often; a few times unless told.

use refrain_e2e::{Library, Program, compare, run};

const RANKS: u32 = 4;

fn runs() -> u32 {
    std::env::var("REFRAIN_THREAD_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(3)
}

/// The bytes of a trace of the program, each of whose calls is what the witness saw.
fn agree(library: Library, program: &Program) -> (u64, usize) {
    let traced = run::traced(library, program, RANKS);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let report = compare::compare(&traced.dump(), &traced.witness(), program.rules);
    let calls = report.unwrap_or_else(|difference| panic!("{difference}")).calls;
    (traced.trace.metadata().map_or(0, |file| file.len()), calls)
}

/// Away from the witness, whose lock brings threads into an order: what a thread makes and then uses has one name, and
/// messages sent with a type of its own have the length that their tag says.
fn holds_together(library: Library, program: &Program) -> usize {
    let traced = run::traced_with(library, program, RANKS, &[]);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let calls = traced.dump().concat();
    let mut own = std::collections::HashMap::new();
    let mut checked = 0;
    for call in &calls {
        let args = call.get("args");
        let whose = (call.get("rank").int(), call.get("thread").int());
        match call.get("call").text() {
            Some("MPI_Type_contiguous") => {
                own.insert(whose, (args.get("newtype").clone(), args.get("count").int()));
            }
            Some("MPI_Sendrecv") if args.get("sendtag").int() > Some(10) => {
                let (name, count) = &own[&whose];
                assert_eq!(args.get("sendtype"), name, "{call}");
                assert_eq!(args.get("sendtag").int(), count.map(|count| count + 10), "{call}");
                checked += 1;
            }
            Some("MPI_Type_free") if own.contains_key(&whose) => {
                let (name, _) = &own[&whose];
                // The first thread also frees the one that all use.
                assert!(args.get("datatype") == name || whose.1 == Some(1), "{call}");
            }
            _ => {}
        }
    }
    assert!(checked > 0);
    calls.len()
}

fn every_call_of_every_thread(library: Library) {
    let program = Program::named("threads4");
    let (mut smallest, mut largest, mut calls) = (u64::MAX, 0, 0);
    for _ in 0..runs() {
        let (bytes, seen) = agree(library, &program);
        (smallest, largest) = (smallest.min(bytes), largest.max(bytes));
        calls += seen + holds_together(library, &program);
    }
    let (one, _) = agree(library, &program.with(&["4", "1"]));
    println!(
        "{}: {RANKS} ranks x 4 threads, {} runs with the witness and as many without: {calls} calls, none lost or \
         wrong; {smallest} to {largest} bytes a trace, {one} where one thread does all the work",
        library.suffix(),
        runs()
    );
}

on_both!(every_call_of_every_thread);
