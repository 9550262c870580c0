//! Many ranks: files and `MPI_Finalize`, ranks that are all different, `recover` of runs that were killed.

use std::fs;
use std::path::Path;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library, size};
use crate::parts::simulated::{scale_rows, simulator};
use crate::readings::numbers;
use crate::row::Unit::{Bytes, Count, KiB, Ms, Seconds, TimedBytes};
use crate::table::Table;
use crate::task::Task;

pub fn ranks(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let slow = bench.cc("bench/slow.c", "slow", &[])?;
    let preload = bench.yielding()?;
    let program = bench.mpicc(Library::Mpich, "bench/ranks.c", &[])?;
    bench.table(Table::new(
        "ranks",
        "MPICH. files and bytes: of parts, while the program runs. operations on them, where they are counted: of rank 0, and of\n\
         the others, mean. MPI_Init: wall. MPI_Finalize: wall, and CPU time of a rank, mean. Seconds.",
    ));
    for ranks in given.numbers(0, &[16, 64])? {
        for (how, delay) in
            [("untraced", None), ("traced", None), ("counted", Some("0")), ("1ms", Some("1000"))]
        {
            let launch = Library::Mpich.sharing(ranks);
            let launch = match delay {
                Some(delay) => launch.arg(&slow).arg(delay).arg("t.rfn.parts"),
                None => launch,
            };
            let command = launch.arg(&program).arg("10");
            let task = if how == "untraced" { command } else { bench.traced(&[], &command) };
            let parts = format!("{}.parts", bench.trace().display());
            let ran = task.env("LD_PRELOAD", &preload).env("RANKS_PARTS", parts).limit(120).run()?;
            let said = Said::read(&(ran.out + &ran.err));
            bench.row(&[("ranks", &ranks), ("how", &how)], &said.values(ranks))?;
        }
    }
    Ok(())
}

/// What the ranks of `bench/ranks.c` and `bench/slow.c` print.
#[derive(Debug, Default)]
struct Said {
    files: f64,
    bytes: f64,
    /// Seconds of MPI_Init, of MPI_Finalize, and processor seconds of it: of all ranks.
    seconds: [f64; 3],
    /// The same of rank 0.
    root: [f64; 3],
    told: f64,
    /// Operations of each process that counted them.
    operations: Vec<f64>,
}

impl Said {
    fn read(text: &str) -> Said {
        let mut said = Said::default();
        for line in text.lines() {
            let figures = numbers(line);
            match (line.split_whitespace().next(), &figures[..]) {
                (Some("files"), [files, bytes]) => (said.files, said.bytes) = (*files, *bytes),
                (Some("rank"), [rank, times @ ..]) if times.len() == 3 => {
                    said.told += 1.0;
                    said.seconds.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
                    if *rank == 0.0 {
                        said.root.copy_from_slice(times);
                    }
                }
                (Some("slow:"), counts) => said.operations.push(counts.iter().sum()),
                _ => {}
            }
        }
        said
    }

    fn values(&self, ranks: u64) -> Vec<(&'static str, crate::row::Value)> {
        let most = self.operations.iter().copied().fold(0.0, f64::max);
        let others = (self.operations.iter().sum::<f64>() - most) / (ranks as f64 - 1.0);
        let [init, finalize, cpu] = self.seconds.map(|sum| sum / self.told);
        vec![
            ("files", Count.of(self.files)),
            ("bytes", Bytes.of(self.bytes)),
            ("root", Count.of((most > 0.0).then_some(most)).varies()),
            ("others", Count.of((most > 0.0).then_some(others)).varies()),
            ("init", Seconds.of(init)),
            ("finalize", Seconds.of(finalize)),
            ("cpu", Seconds.of(cpu)),
        ]
    }
}

pub fn different(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let steps = given.number(0, 4000)?.to_string();
    let preload = bench.yielding()?;
    let program = bench.mpicc(Library::Mpich, "bench/ranks.c", &[])?;
    let title = format!(
        "Ranks that are all different, {steps} random calls each. MPICH; MPI_Finalize: wall and CPU time of rank 0. Seconds.\n\
         merge: what `refrain info` says of it; memory: KiB of rank 0 with the merge."
    );
    bench.table(Table::new("different", &title).with("steps", &steps));
    for ranks in given.numbers(1, &[32, 128])? {
        let command = Library::Mpich
            .sharing(ranks)
            .arg(&program)
            .args([&steps, "different"])
            .env("LD_PRELOAD", &preload);
        let plain = Said::read(&command.run()?.out);
        let traced = Said::read(&bench.traced(&[], &command).run()?.out);
        bench.verify(&bench.trace())?;
        let info = bench.info(&bench.trace())?;
        let bytes = size(&bench.trace())?;
        bench.row(
            &[("ranks", &ranks)],
            &[
                ("calls", Count.of(info["calls"].as_f64())),
                ("bytes", TimedBytes.of(bytes)),
                ("untraced", Seconds.of(plain.root[1])),
                ("finalize", Seconds.of(traced.root[1])),
                ("cpu", Seconds.of(traced.root[2])),
                ("merge ms", Ms.of(info["merge_ms"].as_f64())),
                (
                    "memory",
                    KiB.of(info["tracer_memory"]["root"].as_f64().map(|bytes| (bytes / 1024.0).floor())),
                ),
            ],
        )?;
    }
    let scale = simulator(bench)?;
    bench.table(Table::new("simulated", "The same, simulated"));
    for ranks in ["128", "1000", "10000"] {
        let said = Task::new(&scale).args(["random", ranks, &steps]).limit(3600).run()?.out;
        scale_rows(bench, &said)?;
    }
    Ok(())
}

pub fn recover(bench: &mut Bench, given: &Arguments) -> Result<()> {
    let steps = given.number(0, 4000)?.to_string();
    let parts = bench.example("refrain-scale", "parts")?;
    bench.table(Table::new(
        "recover",
        "`recover` of runs that were killed: bytes of parts and trace, seconds, the largest memory in KiB",
    ));
    let (out, folder) = (bench.work("killed.rfn"), bench.work("killed.rfn.parts"));
    for pattern in ["random", "stencil2d"] {
        for ranks in given.numbers(1, &[100, 1000])? {
            Task::new(&parts).arg(&folder).args([pattern, &ranks.to_string(), &steps]).limit(3600).run()?;
            let ran = bench.command(&["recover"]).arg(&folder).arg("--force").limit(3600).run()?;
            let values = [
                ("parts", Bytes.of(all_bytes(&folder)?)),
                ("trace", Bytes.of(size(&out)?)),
                ("wall", Seconds.of(ran.wall)),
                ("CPU", Seconds.of(ran.cpu)),
                ("memory", KiB.of(ran.peak)),
            ];
            bench.row(&[("pattern", &pattern), ("ranks", &ranks), ("steps", &steps)], &values)?;
            fs::remove_dir_all(&folder)?;
            fs::remove_file(&out)?;
        }
    }
    Ok(())
}

/// Bytes of all files in a folder.
fn all_bytes(folder: &Path) -> Result<u64> {
    fs::read_dir(folder)?.try_fold(0, |sum, entry| Ok(sum + entry?.metadata()?.len()))
}

#[cfg(test)]
mod tests {
    use super::Said;

    #[test]
    fn what_ranks_print_is_understood() {
        let said = Said::read(
            "files 4 bytes 1234\nrank 1 init 0.100 finalize 0.300 cpu 0.0010\nrank 0 init 0.200 finalize 0.500 cpu 0.0030\n\
             slow: open 10 stat 20\nslow: open 1 stat 3\n",
        );
        assert_eq!((said.files, said.bytes, said.root), (4.0, 1234.0, [0.2, 0.5, 0.003]));
        let values: Vec<String> = said.values(2).iter().map(|(_, value)| value.text()).collect();
        assert_eq!(values, ["4", "1234", "30", "4", "0.1500", "0.4000", "0.0020"]);
    }
}
