//! Which programs `refrain extrapolate` gives exactly, call by call on every rank, and which parts of the others it does not
//! work out. On simulated ranks.

use crate::Result;
use crate::arguments::{Arguments, from_environment};
use crate::bench::Bench;
use crate::parts::patterns::simulation_limit;
use crate::row::Unit::{Count, Seconds};
use crate::table::Table;
use crate::task::Task;

/// Patterns, the steps they run for, the numbers of ranks that are learnt from and those that are asked for.
type Group = (&'static [&'static str], u32, &'static str, &'static str);

/// Squares are what a grid of two dimensions has on every trace, cubes one of three. The programs of NPB that want a power of two
/// get one.
const GROUPS: [Group; 5] = [
    (
        &[
            "ring",
            "pipeline",
            "stencil1d",
            "torus1d",
            "stencil2d",
            "torus2d",
            "box2d",
            "boxtorus2d",
            "cart-stencil2d",
            "cart-torus2d",
            "transpose",
            "tree",
            "masterworker",
            "rowcol",
            "behaviours:3",
            "values:5",
            "alltoallv",
            "random",
            "npb-bt",
            "npb-sp",
            "npb-is",
            "npb-ep",
            "flash-sedov",
            "flash-cellular",
            "flash-stirturb",
            "sweep3d",
            "pop",
            "raptor",
            "umt2k",
            "stencil9",
            "osu-latency",
            "osu-bw",
            "osu-bibw",
            "osu-allreduce",
            "osu-bcast",
            "osu-reduce",
            "osu-alltoall",
            "osu-allgather",
            "osu-barrier",
            "osu-put",
            "osu-get",
            "osu-acc",
        ],
        4,
        "16,36,64",
        "144,256",
    ),
    (
        &[
            "stencil3d",
            "torus3d",
            "box3d",
            "boxtorus3d",
            "cart-stencil3d",
            "cart-torus3d",
            "stencil27",
            "recursive3d",
        ],
        4,
        "27,64,125",
        "216,343",
    ),
    (&["stencil4d", "torus4d", "milc"], 1, "81,256,625", "1296"),
    (&["npb-lu"], 2, "16,64,256", "1024"),
    (&["butterfly", "npb-cg", "npb-mg", "npb-ft", "milc-strong"], 2, "8,16,32,64", "128,256"),
];

pub fn extrapolate(bench: &mut Bench, _: &Arguments) -> Result<()> {
    let only = from_environment("PATTERNS", "");
    let patterns = bench.example("refrain-extrapolate", "patterns")?;
    bench.table(Table::new(
        "extrapolate",
        "Traces of more ranks from traces of fewer: 1 is exact, call by call on every rank",
    ));
    let mut others = Vec::new();
    for (names, steps, from, to) in GROUPS {
        for name in names.iter().filter(|name| only.is_empty() || only.iter().any(|one| one == *name)) {
            for to in to.split(',') {
                let task = Task::new(&patterns).args(["--steps", &steps.to_string(), name, from, to]);
                let said = task.limit(simulation_limit()).in_time()?.map(|ran| ran.out);
                let said = said.unwrap_or_else(|| "it took too long".into());
                let told = said.trim_end().split_once(": ").map_or(said.trim_end(), |(_, told)| told);
                let exact = told.starts_with("exact");
                let number = |before: &str| {
                    let at = told.find(before).filter(|_| exact)?;
                    told[..at].rsplit([' ', ',']).next()?.parse::<f64>().ok()
                };
                bench.row(
                    &[("program", name), ("from", &from), ("to", &to)],
                    &[
                        ("exact", Count.of(Some(f64::from(u8::from(exact))))),
                        ("kinds", Count.of(number(" kinds"))),
                        ("laws", Count.of(number(" laws"))),
                        ("s", Seconds.of(number(" s"))),
                    ],
                )?;
                if !exact {
                    others.push(format!("{name} {from} -> {to}: {told}"));
                }
            }
        }
    }
    others.iter().for_each(|line| bench.note(line));
    Ok(())
}
