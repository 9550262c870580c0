//! A few of the mutants that `scripts/fuzz` tries for as long as one likes, as pages.

#[path = "../../tracefile/tests/mutants/mod.rs"]
mod maker;
#[path = "../../tracefile/tests/rounds.rs"]
mod rounds;

use fastrand::Rng;
use refrain_report::{Input, page};
use refrain_sites::Binaries;

use maker::{Bounds, Seeds, for_a_while};

#[global_allocator]
static COUNTING: maker::Counting = maker::Counting;

#[test]
fn no_mutant_makes_a_page_fail() {
    let (seeds, mut bounds, mut read) = (Seeds::new(&maker::stored()), Bounds::new(), 0);
    let tried = maker::try_each(rounds::rounds(1200), |number| {
        let (bytes, _) = seeds.mutant(&mut Rng::with_seed(number));
        let Ok(trace) = refrain_tracefile::read(&bytes) else { return Ok(()) };
        read += 1;
        let names = Binaries::new(&trace.bundle.sites, &[]);
        let input =
            Input { trace: &trace, times: None, names: &names, file: "t.rfn", bytes: 9, between: None };
        bounds.command("report", || {
            let mut enough = for_a_while();
            drop(page(&input, &mut |_, _, _| enough()));
        })?;
        Ok(())
    });
    maker::report(tried, read, &bounds);
    // The others are refused by the reader of files.
    assert!(read * 10 > tried, "{read} of {tried}");
}
