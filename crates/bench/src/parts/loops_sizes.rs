//! File sizes of programs about loops, in several settings.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::arguments::{Arguments, from_environment, parse};
use crate::bench::{Bench, Library, size};
use crate::row::Unit::TimedBytes;
use crate::table::Table;

const PROGRAMS: &str = "stencil1d5 stencil2d9 stencil3d27 stencil3d_recursive trailing loop_figure1 loop_figure4 pop_like \
                        mg_like amr pipeline2d alltoallv bt_sites random3 f_steps f_steps08";

/// A name, and options of `refrain run`. After the grammar, what ScalaTrace II adds to ScalaTrace, one after the other:
/// merging ranks whatever their loops, iterations that match in part, stacks that differ in a frame or two, histograms;
/// and averages of all-to-all, which are ScalaTrace's.
const SETTINGS: [(&str, &[&str]); 8] = [
    ("grammar", &[]),
    ("no-stacks", &["--fold", "loops", "--stacks", "off"]),
    ("exact", &["--fold", "loops,exact,apart"]),
    ("+ranks", &["--fold", "loops,exact"]),
    ("+partial", &["--fold", "loops"]),
    ("+sites", &["--fold", "loops", "--lossy", "sites=3"]),
    ("+histogr.", &["--fold", "loops", "--lossy", "sites=3,histograms"]),
    ("+averages", &["--fold", "loops", "--lossy", "sites=3,histograms,averages"]),
];

pub fn loops_sizes(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let all_ranks = given.numbers(0, &[4, 16, 64])?;
    let programs = from_environment("LOOPS_PROGRAMS", PROGRAMS);
    let steps = from_environment("LOOPS_STEPS", "10 100 1000");
    let settings = from_environment("LOOPS_SETTINGS", &SETTINGS.map(|(name, _)| name).join(" "));
    // Many of Open MPI's ranks share few cores far better than MPICH's.
    let library = Library::named(&from_environment("LOOPS_LIBRARY", "openmpi").join(" "))?;
    let limit = parse(&from_environment("LOOPS_LIMIT", "60").join(" "))?;
    let runs = Runs { library, preload: bench.yielding()?, limit };
    let title = format!(
        "File sizes of programs about loops ({}), by ranks x steps; -: not within {limit} s",
        library.name()
    );
    bench.table(Table::new("loops", &title).across(&["ranks", "steps"]).with("library", library.name()));
    for name in &programs {
        let program = bench.program(library, name)?;
        for (setting, options) in
            SETTINGS.iter().filter(|(name, _)| settings.iter().any(|wanted| wanted == name))
        {
            for &ranks in &all_ranks {
                let mut fast = true;
                for steps in &steps {
                    // What was too slow is so for more steps, too.
                    let bytes = match fast {
                        true => runs.bytes(bench, ranks, &program, steps, options)?,
                        false => None,
                    };
                    fast = bytes.is_some();
                    let keys: [(&str, &dyn std::fmt::Display); 4] =
                        [("program", name), ("setting", setting), ("ranks", &ranks), ("steps", steps)];
                    bench.row(&keys, &[("trace", TimedBytes.of(bytes))])?;
                }
            }
        }
    }
    Ok(())
}

/// How programs are run.
struct Runs {
    library: Library,
    preload: PathBuf,
    /// Seconds.
    limit: u64,
}

impl Runs {
    /// Bytes of the verified trace, or none where it took too long.
    fn bytes(
        &self,
        bench: &Bench,
        ranks: u64,
        program: &Path,
        steps: &str,
        options: &[&str],
    ) -> Result<Option<u64>> {
        let command = self.library.sharing(ranks).arg(program).arg(steps);
        let task = bench.traced(options, &command).env("LD_PRELOAD", &self.preload).limit(self.limit);
        if task.in_time()?.is_none() {
            return Ok(None);
        }
        bench.verify(&bench.trace())?;
        size(&bench.trace()).map(Some)
    }
}
