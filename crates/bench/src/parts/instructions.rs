//! Instructions per call. Times on a shared machine swing; instructions do not. What a call costs is the difference
//! between many and few, so that the start and the end of the program do not count.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library};
use crate::readings::number_after;
use crate::row::Unit::Instructions;
use crate::table::Table;
use crate::task::Task;

const FUNCTIONS: [&str; 4] = ["MPI_Comm_rank", "MPI_Iprobe", "MPI_Sendrecv", "Isend+Irecv+Waitall"];

pub fn instructions(bench: &mut Bench, given: &Arguments) -> Result<()> {
    bench.need(&[("valgrind", "valgrind")])?;
    let builds = builds(bench, given);
    bench.table(Table::new(
        "instructions",
        "Instructions that tracing adds to a call: 30,000 calls less 10,000, less the same untraced",
    ));
    for library in Library::ALL {
        let program = bench.mpicc(library, "bench/count.c", &[])?;
        for function in FUNCTIONS {
            let task = |calls: u64| counting(library, &program, function, calls);
            let plain = each(task)?;
            let mut values = vec![("untraced".to_owned(), Instructions.of(plain as f64))];
            for (name, refrain) in &builds {
                let traced = each(|calls| bench.traced_by(refrain, &[], &task(calls)))?;
                values.push((name.clone(), Instructions.of((traced - plain) as f64)));
            }
            let values: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            bench.row(&[("library", &library.name()), ("function", &function)], &values)?;
        }
    }
    Ok(())
}

/// The builds to measure and what they are called: this one is `traced`, others go by their paths.
pub fn builds(bench: &Bench, given: &Arguments) -> Vec<(String, PathBuf)> {
    match given.0 {
        [] => vec![("traced".to_owned(), bench.refrain())],
        paths => paths.iter().map(|path| (path.clone(), PathBuf::from(path))).collect(),
    }
}

fn counting(library: Library, program: &Path, function: &str, calls: u64) -> Task {
    let task = library.alone(1).args(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    task.arg(program).arg(function).arg(calls.to_string())
}

/// Instructions of one call.
fn each(task: impl Fn(u64) -> Task) -> Result<i64> {
    let counted = |calls: u64| -> Result<i64> {
        let ran = task(calls).run()?;
        let collected =
            number_after(&ran.err, "Collected :").or_else(|| number_after(&ran.out, "Collected :"));
        Ok(collected.ok_or("callgrind counted nothing")? as i64)
    };
    Ok((counted(30_000)? - counted(10_000)?) / 20_000)
}
