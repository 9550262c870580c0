//! File sizes of patterns, on real and on simulated ranks.

use std::path::Path;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library, size};
use crate::row::Unit::{Bytes, TimedBytes};
use crate::table::Table;
use crate::task::Task;

struct Pattern {
    name: &'static str,
    /// The program of `tests/programs` and its arguments; empty where there is none.
    real: &'static [&'static str],
    simulated: &'static str,
}

const fn pattern(name: &'static str, real: &'static [&'static str], simulated: &'static str) -> Pattern {
    Pattern { name, real, simulated }
}

const PATTERNS: [Pattern; 16] = [
    pattern("ring", &["ring"], "ring"),
    pattern("stencil2d", &["stencil2d", "10"], "stencil2d"),
    pattern("torus3d", &["stencil3d", "10", "hand"], "torus3d"),
    pattern("torus3d-cart", &["stencil3d", "10", "cart"], "cart-torus3d"),
    pattern("butterfly", &["butterfly", "10"], "butterfly"),
    pattern("transpose", &["transpose", "10"], "transpose"),
    pattern("pipeline", &["pipeline", "10"], "pipeline"),
    pattern("tree", &["tree", "10"], "tree"),
    pattern("masterworker", &["masterworker", "10"], "masterworker"),
    pattern("rowcol", &["rowcol", "10"], "rowcol"),
    pattern("stencil1d", &[], "stencil1d"),
    pattern("stencil3d", &[], "stencil3d"),
    pattern("stencil3d-cart", &[], "cart-stencil3d"),
    pattern("torus4d", &[], "torus4d"),
    pattern("box3d", &[], "box3d"),
    pattern("boxtorus3d", &[], "boxtorus3d"),
];

pub fn patterns(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let (real, most) = (given.number(0, 64)?, given.number(1, 1_048_576)?);
    let traced = Mpich::prepare(bench)?;
    let scale = bench.example("refrain-scale", "scale")?;
    bench.table(
        Table::new(
            "patterns",
            "File sizes of patterns: 10 steps on real ranks (MPICH), 4 steps on simulated ones (s, untimed)",
        )
        .across(&["ranks"]),
    );
    for pattern in &PATTERNS {
        for ranks in [4, 16, 64].into_iter().filter(|ranks| *ranks <= real) {
            let [program, arguments @ ..] = pattern.real else { break };
            let bytes = traced.bytes(bench, ranks, program, arguments)?;
            bench
                .row(&[("pattern", &pattern.name), ("ranks", &ranks)], &[("trace", TimedBytes.of(bytes))])?;
        }
        for ranks in [1024, 65_536, 1_048_576].into_iter().filter(|ranks| *ranks <= most) {
            let bytes = simulated(&scale, pattern.simulated, ranks)?;
            bench.row(
                &[("pattern", &pattern.name), ("ranks", &format!("{ranks}s"))],
                &[("trace", Bytes.of(bytes))],
            )?;
        }
    }
    bench.note("");
    bench.table(Table::new("neighbours", "3D 7-point periodic stencil, 10 steps").across(&["ranks"]));
    for how in ["hand", "cart"] {
        for ranks in [8, 27, 64].into_iter().filter(|ranks| *ranks <= real) {
            let bytes = traced.bytes(bench, ranks, "stencil3d", &["10", how])?;
            bench.row(&[("neighbours", &how), ("ranks", &ranks)], &[("trace", TimedBytes.of(bytes))])?;
        }
    }
    Ok(())
}

/// Traces programs of `tests/programs` on MPICH, many ranks on few cores.
pub struct Mpich {
    preload: std::path::PathBuf,
}

impl Mpich {
    pub fn prepare(bench: &Bench) -> Result<Mpich> {
        Ok(Mpich { preload: bench.yielding()? })
    }

    /// Bytes of the verified trace.
    pub fn bytes(&self, bench: &Bench, ranks: u64, program: &str, arguments: &[&str]) -> Result<u64> {
        let program = match bench.work(program) {
            there if there.exists() => there,
            _ => bench.program(Library::Mpich, program)?,
        };
        let command = Library::Mpich.sharing(ranks).arg(program).args(arguments);
        bench.traced(&[], &command).env("LD_PRELOAD", &self.preload).run()?;
        bench.verify(&bench.trace())?;
        size(&bench.trace())
    }
}

/// Seconds for one simulation: SIMULATION_LIMIT, or 240.
pub fn simulation_limit() -> u64 {
    std::env::var("SIMULATION_LIMIT").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(240)
}

/// Bytes of the trace of so many simulated ranks, or none where it took too long.
fn simulated(scale: &Path, pattern: &str, ranks: u64) -> Result<Option<u64>> {
    let task =
        Task::new(scale).args(["--threads", "2", pattern, &ranks.to_string(), "4"]).limit(simulation_limit());
    let Some(ran) = task.in_time()? else { return Ok(None) };
    let bytes = ran.out.lines().nth(1).and_then(|line| line.split_whitespace().nth(4)?.parse().ok());
    bytes.map(Some).ok_or_else(|| format!("{task}: no row: {}", ran.out).into())
}
