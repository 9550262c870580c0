//! Programs that may do less after `MPI_Init`: they end as they would untraced, and every call is kept. Ignored in a plain
//! `cargo test`: needs the MPI libraries and the built command.

use refrain_e2e::run::{self, Special};
use refrain_e2e::{Library, Program, skipped};

const RANKS: u32 = 2;
/// Each rank makes 30,000 calls, and besides: init, rank, size, reduce, finalize.
const WHOLE: &str = "2 ranks, 60,010 calls";

fn program(how: &'static str) -> Program {
    Program {
        source: "restricted.c",
        args: vec![how, "30000"].leak(),
        ..Program::unwitnessed("restricted.c")
    }
}

/// The trace has every call of a program that goes on as if it was untraced.
#[track_caller]
fn keeps_all(library: Library, how: &'static str, environment: &[(&'static str, &str)]) -> run::Outcome {
    let special = Special { unwitnessed: true, environment, ..Special::default() };
    let program = program(how);
    let plain = run::plain(library, &program, RANKS);
    let what = format!("{how} on {}, {environment:?}", library.suffix());
    if plain.code == 9 {
        skipped(&format!("{what}: not allowed here"));
        return plain;
    }
    let traced = run::traced_special(library, &program, RANKS, &special);
    let outcome = &traced.outcome;
    // UCX says on stdout that it has no descriptors.
    let own = |outcome: &run::Outcome| {
        let lines = outcome.stdout.lines().filter(|line| line.starts_with("restricted: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!((outcome.code, own(outcome)), (plain.code, own(&plain)), "{what}: {outcome:?}");
    assert_eq!(own(outcome).len(), 1, "{what}: {outcome:?}");
    let verified = run::refrain(&["verify", &traced.trace.to_string_lossy()]);
    assert!(verified.code == 0 && verified.stdout.contains(WHOLE), "{what}: {verified:?}: {outcome:?}");
    let info = run::refrain(&["info", &traced.trace.to_string_lossy()]).stdout;
    assert!(info.contains(", complete"), "{what}: {info}: {outcome:?}");
    assert!(!traced.parts().exists(), "{what}");
    traced.outcome
}

/// Parts grow a little at a time, and there is a snapshot now and then.
const SMALL: [(&str, &str); 1] = [("REFRAIN_TEST_TAIL", "65536")];

fn without_descriptors_every_call_is_kept(library: Library) {
    for how in ["used", "few", "forever", "closed"] {
        for environment in [&[][..], &SMALL] {
            keeps_all(library, how, environment);
        }
    }
}

on_both!(without_descriptors_every_call_is_kept);

fn as_another_user_every_call_is_kept(library: Library) {
    for environment in [&[][..], &SMALL] {
        keeps_all(library, "user", environment);
    }
}

on_both!(as_another_user_every_call_is_kept);

/// Whoever asks the kernel for something unusual is killed.
fn a_filter_of_system_calls_kills_nobody(library: Library) {
    keeps_all(library, "filter", &SMALL);
    keeps_all(library, "filter", &[("REFRAIN_TIME", "exact")]);
}

on_both!(a_filter_of_system_calls_kills_nobody);
