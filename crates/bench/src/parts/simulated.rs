//! Simulated ranks (`examples/scale.rs` of the crate `scale`).

use std::path::PathBuf;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::Bench;
use crate::parts::patterns::simulation_limit;
use crate::row::Unit::{self, Bytes, Count, MiB, Seconds};
use crate::table::Table;
use crate::task::Task;

/// The columns of `scale` behind the pattern, ranks and steps.
const COLUMNS: [(&str, Unit); 11] = [
    ("calls", Count),
    ("bytes", Bytes),
    ("symbols", Count),
    ("structs", Count),
    ("streams", Count),
    ("kinds", Count),
    ("ranks s", Seconds),
    ("merge s", Seconds),
    ("path s", Seconds),
    ("write s", Seconds),
    ("peak MiB", MiB),
];

pub fn simulator(bench: &Bench) -> Result<PathBuf> {
    bench.example("refrain-scale", "scale")
}

/// What `scale` printed, as rows. Lines that are none (`--sections`) come back.
pub fn scale_rows(bench: &mut Bench, said: &str) -> Result<Vec<String>> {
    let mut others = Vec::new();
    for line in said.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with(' ') || words.len() != 3 + COLUMNS.len() {
            others.push(line.to_owned());
            continue;
        }
        let amounts = words[3..].iter().map(|word| word.parse::<f64>().ok());
        let values: Vec<_> =
            COLUMNS.iter().zip(amounts).map(|((name, unit), amount)| (*name, unit.of(amount))).collect();
        bench.row(&[("pattern", &words[0]), ("ranks", &words[1]), ("steps", &words[2])], &values)?;
    }
    Ok(others)
}

pub fn scale(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let scale = simulator(bench)?;
    let ran = Task::new(scale).args(["--threads", "2"]).args(given.0).limit(36_000).run()?;
    bench.table(Table::new("scale", "Simulated ranks, on 2 threads"));
    let others = scale_rows(bench, &ran.out)?;
    others.iter().for_each(|line| bench.note(line));
    Ok(())
}

pub fn finalize(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let (most, limit) = (given.number(0, 65_536)?, simulation_limit());
    let scale = simulator(bench)?;
    bench.table(Table::new(
        "finalize",
        "Merging simulated ranks of so many kinds (4 steps): behaviours differ in structure and numbers, values in numbers only\n\
         path: processor time of the merges on the longest way up the tree; peak: memory at rank 0",
    ));
    let mut late = Vec::new();
    for ranks in [1024, 16_384, 65_536].into_iter().filter(|ranks| *ranks <= most) {
        let kinds = [1, 9, 27, 500, ranks].map(|kinds| format!("behaviours:{kinds}"));
        for kind in kinds.into_iter().chain([format!("values:{ranks}")]) {
            match Task::new(&scale).args([&kind, &ranks.to_string(), "4"]).limit(limit).in_time()? {
                Some(ran) => drop(scale_rows(bench, &ran.out)?),
                None => late.push(format!("{kind} on {ranks} ranks: not within {limit} s")),
            }
        }
    }
    late.iter().for_each(|line| bench.note(line));
    Ok(())
}
