//! A regular program on more ranks, for longer.

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::{Bench, Library, size, xz};
use crate::row::Unit::TimedBytes;
use crate::table::Table;

pub fn sizes(bench: &mut Bench, _: &Arguments) -> Result<()> {
    let preload = bench.yielding()?;
    bench.table(
        Table::new("stencil", "2D 5-point stencil: bytes of the trace (and of xz -9 of it), by steps")
            .across(&["steps"]),
    );
    for library in Library::ALL {
        let program = bench.program(library, "stencil2d")?;
        for ranks in [4, 9, 16, 36, 64] {
            for steps in [10, 100, 1000] {
                let command = library.sharing(ranks).arg(&program).arg(steps.to_string());
                bench.traced(&[], &command).env("LD_PRELOAD", &preload).run()?;
                let trace = bench.trace();
                bench.verify(&trace)?;
                bench.row(
                    &[("library", &library.name()), ("ranks", &ranks), ("steps", &steps)],
                    &[("trace", TimedBytes.of(size(&trace)?)), ("xz", TimedBytes.of(xz(bench, &trace)?))],
                )?;
            }
        }
    }
    Ok(())
}
