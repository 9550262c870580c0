//! All parts. A new one is a function and a line here.

mod address_peers;
mod addresses;
mod calls;
mod cluster;
mod costs;
mod exports;
mod extrapolate;
mod folding;
mod instructions;
mod irregular;
mod loops_sizes;
mod memory;
mod overhead;
mod packing;
mod papers;
mod patterns;
mod real;
mod reference_sizes;
mod references;
mod replay;
mod simulate;
mod simulated;
mod sizes;
mod times;

use crate::Result;
use crate::arguments::Arguments;
use crate::bench::Bench;

pub struct Part {
    pub name: &'static str,
    /// As the usage shows them.
    pub arguments: &'static str,
    pub about: &'static str,
    /// Whether `make bench` measures it.
    pub in_all: bool,
    pub run: Measure,
}

type Measure = fn(&mut Bench, &Arguments) -> Result<()>;

const fn part(name: &'static str, arguments: &'static str, about: &'static str, run: Measure) -> Part {
    Part { name, arguments, about, in_all: true, run }
}

/// A part that takes long, or is another part's: only by its name.
const fn apart(name: &'static str, arguments: &'static str, about: &'static str, run: Measure) -> Part {
    Part { name, arguments, about, in_all: false, run }
}

/// In the order in which `make bench` measures them.
pub static PARTS: [Part; 43] = [
    part("calls", "", "Processor time per call", calls::calls),
    part(
        "instructions",
        "[REFRAIN...]",
        "Instructions per call (callgrind), of this build or of several",
        instructions::instructions,
    ),
    part("safe", "", "Processor time per call, with and without what survives a crash", costs::safe),
    part(
        "times",
        "[RANKS]",
        "How exactly time is kept (--time): processor time per call, memory over ten million calls, bytes \
         a call of a stencil, an irregular program and LAMMPS on so many ranks (16)",
        times::times,
    ),
    apart("times-sizes", "[RANKS]", "Only the bytes of `times`", times::times_sizes),
    part("stacks", "", "Processor time per call of keeping where calls were made", costs::stacks),
    part(
        "new-stacks",
        "[REFRAIN...]",
        "The same of stacks that were not seen before, and their memory, of one or several builds",
        costs::new_stacks,
    ),
    part(
        "allocations",
        "",
        "Processor time of allocating, with and without following it",
        costs::allocations,
    ),
    part(
        "memory",
        "[STEPS]",
        "Memory of one rank of a stencil, untraced and traced, by mapping (1000)",
        memory::memory,
    ),
    part("steady", "", "Memory over ten million regular calls", memory::steady),
    part(
        "strings",
        "",
        "A new string in every third call: time of the calls and of MPI_Finalize, size, `info`",
        memory::strings,
    ),
    part("sizes", "", "A regular program on more ranks, for longer", sizes::sizes),
    part(
        "irregular",
        "[RANKS]",
        "Programs whose numbers vary, up to so many ranks (16)",
        irregular::irregular,
    ),
    part("objects", "", "New communicators and types in every step, for longer", irregular::objects),
    apart(
        "threads",
        "[RUNS]",
        "Four threads a rank calling at once, so often (100), and forks and joins",
        memory::threads,
    ),
    part(
        "patterns",
        "[REAL [RANKS]]",
        "File sizes of patterns, up to so many real (64) and simulated ranks (1048576)",
        patterns::patterns,
    ),
    apart(
        "papers",
        "[RANKS...]",
        "Programs of the papers on so many simulated ranks (64 256 1024 4096 16384): bytes of both folds, growth, kinds of \
         ranks, what the papers say; PAPERS=\"npb-bt milc\" takes only these",
        papers::papers,
    ),
    apart(
        "overhead",
        "[ROUNDS [LIBRARY...]]",
        "Processor time of whole programs of the papers on two ranks, untraced and traced, so many rounds (7) on these \
         libraries (mpich): without any computing between messages and with as much as the program it stands for; \
         OVERHEAD=\"lu milc\" takes only these",
        overhead::overhead,
    ),
    apart(
        "extrapolate",
        "",
        "Which programs `refrain extrapolate` gives exactly, on simulated ranks, and which parts of the others it does not work \
         out; PATTERNS=\"ring npb-bt\" takes only these",
        extrapolate::extrapolate,
    ),
    part(
        "loops-sizes",
        "[RANKS...]",
        "File sizes of programs about loops in several settings, on so many ranks (4 16 64); \
         LOOPS_STEPS=\"10 100 1000\", LOOPS_PROGRAMS, LOOPS_SETTINGS, LOOPS_LIBRARY=mpich, LOOPS_LIMIT \
         choose",
        loops_sizes::loops_sizes,
    ),
    part(
        "real",
        "[RANKS...]",
        "LAMMPS and HPC Challenge as Debian has them, on so many ranks (4 16): bytes and time",
        real::real,
    ),
    part(
        "finalize",
        "[RANKS]",
        "Merging many kinds of ranks, up to so many simulated ranks (65536)",
        simulated::finalize,
    ),
    part(
        "hostile",
        "[EVENTS [WORD...]]",
        "Orders no folder likes: ns an event for 10^3 events up to so many (1000000), in each folder, of \
         the orders and folders with such a word in their name",
        folding::hostile,
    ),
    part(
        "folders",
        "",
        "What comes out of each folder for sequences from regular to random (benches/push.rs of fold times \
         them)",
        folding::folders,
    ),
    apart(
        "growth",
        "[EVENTS [WORD]]",
        "Whether folding into loops stays linear: ns a push at so many events (25000), twice and four \
         times as many, of sequences with such a word in their name",
        folding::growth,
    ),
    apart(
        "merge",
        "[SIDE [DIMENSIONS]]",
        "Merging the ranks of a periodic grid of so many a side (16) in so many dimensions (3)",
        folding::merge,
    ),
    apart(
        "kernels",
        "[SIZE [rules|loops]]",
        "References of known kernels (128) on 1 to 32 threads: bytes, nanoseconds a reference",
        folding::kernels,
    ),
    apart(
        "scale",
        "PATTERN... RANKS STEPS",
        "One simulation each; options of examples/scale.rs behind `--`",
        simulated::scale,
    ),
    part(
        "replay",
        "[LIBRARY [ROUNDS]]",
        "Wall time of timed replays beside the recorded one, on two ranks of a library (openmpi), so many \
         times each (5), for exact times, distributions and means, and for the last two with histograms of \
         messages (lossy, lossy-mean), also of programs whose messages vary; BENCH_PAUSE=2 leaves the \
         machine to others between runs, BENCH_TIMES=\"exact lossy\" takes only these",
        replay::replay,
    ),
    part(
        "replay-speed",
        "[LIBRARY [CALLS]]",
        "So many calls of an MPI_Allreduce loop on two ranks (10000000), as fast as they can: the program, \
         traced, replayed; calls a second, memory of a rank",
        replay::replay_speed,
    ),
    part(
        "addresses",
        "[REFERENCES...]",
        "Address traces of real programs, packed every way (1000000 10000000); PROGRAMS names some of \
         them, OURS=1 leaves out the compressors of others",
        addresses::addresses,
    ),
    apart(
        "address-peers",
        "[REFERENCES...]",
        "Address traces of Debian's programs (1000000 10000000): `rfa`, raw records with xz -9e, bytesort, VPC4, pdt64.xz; bytes, \
         processor time, memory; and simulation from din, pdt64, rfa beside a loop in C. PROGRAMS names some of them, \
         FORMS=\"data pcs fetches\" takes only these",
        address_peers::address_peers,
    ),
    apart(
        "meet",
        "[REFERENCES]",
        "The same traces in the model of `rfa` and in `fold`, side by side (1000000)",
        addresses::meet,
    ),
    part(
        "simulate",
        "[REFERENCES]",
        "Caches beside cachegrind's, and how fast from each form of a trace (2000000)",
        simulate::simulate,
    ),
    part(
        "references",
        "[ROUNDS]",
        "Recording memory references: processor time beside plain QEMU, the best of rounds (3)",
        references::references,
    ),
    part(
        "reference-sizes",
        "[PART...]",
        "What recorded references take: threads, unstructured, programs, simulate",
        reference_sizes::reference_sizes,
    ),
    part(
        "exports",
        "[CALLS]",
        "The page and each export: time, memory, of 100 million calls that fold and of so many (10000000) \
         that do not",
        exports::exports,
    ),
    apart(
        "ranks",
        "[RANKS...]",
        "Files and bytes while a program runs on so many ranks (16 64), operations on files a rank and of \
         rank 0, MPI_Finalize: untraced, traced, and with 1 ms an operation",
        cluster::ranks,
    ),
    apart(
        "different",
        "[CALLS [RANKS...]]",
        "Ranks that are all different, so many calls each (4000): MPI_Finalize of real ones (32 128), \
         merge and file of simulated ones (128 1000 10000)",
        cluster::different,
    ),
    apart(
        "recover",
        "[STEPS [RANKS...]]",
        "`recover` of killed runs, of calls that do not fold and of calls that do, so many steps (4000) on \
         so many ranks (100 1000): wall and processor time, memory, bytes of parts and trace",
        cluster::recover,
    ),
    apart(
        "numbers",
        "[NUMBERS]",
        "Times, durations and addresses packed in chunks, beside the crate `pco` (1048576)",
        packing::numbers,
    ),
    apart(
        "spans",
        "[STEPS]",
        "Starts and ends of calls, packed exactly and in bins, beside zstd and xz (4000)",
        packing::spans,
    ),
    apart(
        "chunks",
        "[NUMBERS]",
        "A long stream of times through a chunked section: bytes, speed, memory (100000000)",
        packing::chunks,
    ),
];
