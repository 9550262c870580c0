//! All tests of this crate that need nothing of their own: one program, built and linked once.

/// `on_both!(name);` makes of a function that takes a library one test for each: `name::mpich` and `name::openmpi`, which run side
/// by side.
macro_rules! on_both {
    ($name:ident) => {
        on_both!($name, "needs MPI: `make test`");
    };
    ($name:ident, $needs:literal) => {
        mod $name {
            #[test]
            #[ignore = $needs]
            fn mpich() {
                super::$name(refrain_e2e::Library::Mpich);
            }

            #[test]
            #[ignore = $needs]
            fn openmpi() {
                super::$name(refrain_e2e::Library::OpenMpi);
            }
        }
    };
}

mod allocators;
mod behaviour;
mod bindings;
mod callbacks;
mod choosing;
mod clocks;
mod coverage;
mod damage;
mod diff;
mod endings;
mod export;
mod export_pictures;
mod extrapolate;
mod finalizing;
mod fortran;
mod gpu;
mod handbook;
mod hangs;
mod hosts;
mod intruders;
mod layers;
mod loops;
mod lossy;
mod memory;
mod memory_calls;
mod memory_compiled;
mod memory_runs;
mod outlived;
mod package;
mod probabilistic;
mod profile;
mod proxy;
mod python;
mod replay;
mod replay_odd;
mod replay_time;
mod report;
mod restricted;
mod sanitizers;
mod settings;
mod signals;
mod sites;
mod tables;
mod threads;
mod times;
mod told;
mod turns;
mod undefined;
mod waits;
mod wheel;
mod witness;
