//! A few of the mutants that `scripts/fuzz` tries for as long as one likes, in every format.

#[path = "../../tracefile/tests/mutants/mod.rs"]
mod maker;
#[path = "../../tracefile/tests/rounds.rs"]
mod rounds;

use std::path::Path;

use fastrand::Rng;
use refrain_export::{Format, Input, Output, export};
use refrain_sites::Binaries;
use refrain_tracefile::Trace;

use maker::{Bounds, Seeds, for_a_while};

#[global_allocator]
static COUNTING: maker::Counting = maker::Counting;

fn written(format: Format, trace: &Trace, path: &Path) {
    let names = Binaries::new(&trace.bundle.sites, &[]);
    let mut enough = for_a_while();
    let mut input = Input {
        trace,
        times: None,
        names: &names,
        ranks: None,
        between: None,
        only: None,
        progress: &mut |_| enough(),
    };
    let _ = export(format, &mut input, &Output::new(path.to_owned(), true));
}

#[test]
fn no_mutant_makes_an_export_fail() {
    let scratch = std::env::temp_dir().join(format!("refrain-export-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    // A table is told of when it has 65,536 rows: of long runs that takes seconds.
    let short = |trace: &Trace| refrain_views::info::calls(&trace.bundle) < 10_000;
    let traces: Vec<Trace> = maker::stored().into_iter().filter(short).collect();
    let (seeds, mut bounds, mut read) = (Seeds::new(&traces), Bounds::new(), 0);
    let tried = maker::try_each(rounds::rounds(400), |number| {
        let (bytes, _) = seeds.mutant(&mut Rng::with_seed(number));
        let Ok(trace) = refrain_tracefile::read(&bytes) else { return Ok(()) };
        read += 1;
        for named in Format::ALL {
            let file =
                scratch.join(format!("out.{}", if named.name == "paraver" { "prv" } else { named.name }));
            bounds.command(named.name, || written(named.format, &trace, &file))?;
        }
        Ok(())
    });
    std::fs::remove_dir_all(&scratch).unwrap();
    maker::report(tried, read, &bounds);
    // The others are refused by the reader of files.
    assert!(read * 10 > tried, "{read} of {tried}");
}
