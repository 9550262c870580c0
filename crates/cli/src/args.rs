//! The command line, as clap reads it and `--help` teaches it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use refrain_views::diff::Ignore;
use refrain_views::select::{Between, Numbers, between, positions};

use crate::addresses::{Convert, Simulate, StatsFlags, convert_help, simulate_help};
use crate::memory::{CC_HELP, RUN_HELP, RunFlags, SWITCH_HELP, WithCalls};
use crate::paint::Color;
use crate::report::{ReportFlags, ViewFlags};
use crate::run::Flags;

#[derive(Debug, Parser)]
#[command(
    name = "refrain",
    version,
    about = "Records every MPI call, or every load and store, of a program into one small file, and gives it back",
    after_help = "\
Examples:
  refrain run -- mpiexec -n 16 ./app    trace a run into app.rfn
  refrain stats app.rfn                 which functions are slow? which rank?
  refrain view app.rfn                  show me everything, in a browser
  refrain where app.rfn                 it hangs, or it died: which call is each rank in?
  refrain info app.rfn                  what ran, what was kept
  refrain dump app.rfn --ranks 3        every call of rank 3
  refrain loops app.rfn                 the program's loops, how often each ran, source lines
  refrain doctor -- mpiexec -n 16 ./app what would be traced, and what would be in the way?
  refrain verify app.rfn                is it what was recorded?
  refrain diff a.rfn b.rfn              are these the same run? if not, where do they part?
  refrain extrapolate a16.rfn a36.rfn a64.rfn --ranks 4096 -o a4096.rfn   the same program on more ranks
  refrain replay app.rfn -- mpiexec -n 16   make the same calls again, in the same time
  refrain proxy app.rfn -o app.c        a C program that makes them
  refrain export app.rfn --to otf2 -o app-otf2   for other tools: `refrain export --help` lists formats
  refrain memory run -- ./app           every load and store; the commands above read that too
  refrain run --memory -- mpiexec -n 4 ./app   both: each load and store lies between two calls
  refrain convert app.din app.pdt       address traces, from one format to another
  refrain simulate app.pdt --l1d 32K,8,64   how often would they miss a cache?
  refrain completions bash              completion for the shell; `refrain man` prints a page for man

Exit codes: 0 done, 1 the answer is no, 2 it could not be done; `run` passes the program's own on. Ctrl-C
removes what was begun and ends the command by the signal (130 in a shell)."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// Colours: auto is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t, hide_default_value = true)]
    pub color: Color,
    /// Read calls with arrays of up to N elements in all, and up to N calls that make communicators; each takes about 50
    /// bytes of memory [default: 1048576]
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    pub elements: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Trace a run into one file
    #[command(after_help = run_help())]
    Run {
        #[command(flatten)]
        flags: Flags,
        #[command(flatten)]
        memory: WithCalls,
        /// Make a page of the trace at once, beside it (see `refrain report --help`)
        #[arg(long)]
        report: bool,
        /// The command to run, with its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
        words: Vec<OsString>,
    },
    /// Print the environment in which programs are traced, for batch scripts
    #[command(after_help = "\
Prints lines for a shell of the Bourne family. What is started after them is traced, whatever starts it:

  eval \"$(refrain env --out app.rfn --only p2p)\"
  mpiexec -n 64 ./app
  REFRAIN_OUT=$PWD/second.rfn mpiexec -n 64 ./second     each run needs a file of its own

The default file is trace.rfn in this directory. Open MPI's launcher takes no variables to other nodes: add
`-x LD_PRELOAD -x REFRAIN_OUT` and so on for those that are printed; `refrain run` does this by itself.")]
    Env {
        #[command(flatten)]
        flags: Flags,
    },
    /// Check before a run: what would be traced, and what would be in the way; runs nothing
    #[command(after_help = "\
Examples:
  refrain doctor ./app
  refrain doctor -- mpiexec -n 4 ./app       also: does the launcher belong to the program's MPI library?
  refrain doctor --json ./app | jq .library

Says which MPI library the program would load and through which interfaces it calls it, whether it can be preloaded
into (not if it is linked statically, is set-user-id or is for another machine), which launcher this is, where the
capture library is, and what would be recorded with the options and variables as they are.
Exit code 0: all is well; 1: a problem was found; 2: there was nothing to look at.")]
    Doctor {
        #[command(flatten)]
        flags: Flags,
        /// One JSON object
        #[arg(long)]
        json: bool,
        /// A program, or a whole command
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
        words: Vec<OsString>,
    },
    /// Trace the loads and stores of a program
    #[command(after_help = "\
Examples:
  refrain memory run -- ./app               every load and store of every thread, into app.rfn
  refrain memory run -- mpiexec -n 4 ./app  of every rank, into one file")]
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
    /// Make a trace from the parts that a run left behind when it ended too early
    #[command(after_help = "\
While a program runs, Refrain keeps its calls in FILE.parts, beside where the trace will be. If the program crashes, is
killed or aborts, `refrain run` makes a partial trace of the parts by itself. If `refrain run` was killed too, or ran
inside the launcher, do it by hand:

  refrain recover app.rfn.parts                 writes app.rfn
  refrain recover app.rfn.parts --out what-was.rfn
  refrain recover app.rfn.parts node2/app.rfn.parts    joins what two hosts kept, where they share no directory

The trace has all calls up to the last that returned. `refrain where` and `refrain info` say how each rank ended. The parts
stay. If the run is still at work, name another file with --out: the run will write its own trace.")]
    Recover {
        /// The directory with the parts (app.rfn.parts); of a run on several hosts, name all of them
        #[arg(required = true, value_name = "DIRECTORY")]
        directories: Vec<PathBuf>,
        /// Write the trace here [default: the directory's name without .parts]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Replace the trace if it is there already
        #[arg(long)]
        force: bool,
    },
    /// Where a run hangs, or where it died: the call that each rank is in, and who waits for whom
    #[command(after_help = "\
Examples:
  refrain where app.rfn     of a run that died, or, from another terminal, of one that is running; it goes on untouched
  refrain where             of the one run that is at work in this directory

The first sentence says where to look: who crashed, who holds up the others and since when, who waits for each other in a
circle, or which calls do not match. Then `where` says who waits for whom, and for each rank the call that it has entered and
not left, with arguments, line and time, or since which call it is outside MPI. While the program runs, it sees only the ranks whose parts (in app.rfn.parts) can be read from this host.")]
    Where {
        /// The trace, or the directory with its parts [default: the one that is here]
        file: Option<PathBuf>,
        /// One JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        modules: Modules,
    },
    /// What ran, what was kept, how each rank ended, where the bytes are: one screen
    #[command(after_help = "\
Examples:
  refrain info app.rfn
  refrain info app.rfn --json | jq .sections")]
    Info {
        /// The trace
        file: PathBuf,
        /// One JSON object: numbers in bytes and nanoseconds; `..._error_ns` says by how much a rounded one may be wrong
        #[arg(long)]
        json: bool,
    },
    /// Print every call in order, with every argument by name
    #[command(after_help = "\
Examples:
  refrain dump app.rfn                                everything, rank by rank
  refrain dump app.rfn --ranks 0,3-5 --calls 100..200 the second hundred of four ranks
  refrain dump app.rfn --only MPI_Send,coll           functions, families (see `refrain run --help`), MPI_Win_*
  refrain dump app.rfn --json | jq 'select(.args.dest==1)'
  refrain dump app.rfn --stacks                       where each call came from, of a run with --stacks full
  refrain dump app.rfn --limit 1000                   the first thousand lines
  refrain dump app.rfn --merged --between 1.5..1.6    who did what then, of a run with --time exact or binned

A line is [rank] number call(argument=value, ...) = result; with several threads [rank.thread].

  number             counts the calls of a thread from 0
  -                  what the call did not write, or what does not count on that rank; null in JSON
  heap#3+16          16 bytes into allocation 3; gpu1#3+16: the same on device 1
  type#0, req#4      objects of this rank; a number is used again after its object is freed
  world.0            the first communicator that was made from world
  source, dest       ranks in the communicator of the call
  before->after      a number that the call read and wrote
  {cancelled=false}  the status of a send, which has nothing else
  {size=256, ...}    behind a call: what a new object is; `facts` in JSON
  START..END         when the call began and ended, in seconds since the first call of the trace (of `run --time exact`
                     or binned); with binned, +-SECONDS is the error; - is a missing time. JSON has start, end,
                     start_error and end_error in nanoseconds")]
    Dump {
        /// The trace
        file: PathBuf,
        /// Only these ranks: 0,3-5
        #[arg(long, visible_alias = "rank", value_name = "RANKS")]
        ranks: Option<Numbers>,
        /// Only these threads of the ranks
        #[arg(long, visible_alias = "thread", value_name = "THREADS")]
        threads: Option<Numbers>,
        /// Only the calls at these positions: A..B (without B), A.., ..B or A
        #[arg(long, value_name = "A..B", value_parser = positions)]
        calls: Option<std::ops::Range<u64>>,
        /// Only these calls: functions, families (p2p, coll, rma, ...), beginnings (MPI_Win_*)
        #[arg(long, value_name = "CALLS")]
        only: Option<String>,
        /// text for people, json for programs: one object a line
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
        /// The same as --format json
        #[arg(long, conflicts_with = "format")]
        json: bool,
        /// Where each call was made: function, file and line
        #[arg(long)]
        sites: bool,
        /// The same with all that it was called from
        #[arg(long)]
        stacks: bool,
        /// All ranks and threads together, in the order in which calls began (of `run --time exact` or binned)
        #[arg(long)]
        merged: bool,
        /// Only calls that overlap this time, in seconds since the first call began: T1..T2, T1.. or ..T2
        #[arg(long, value_name = "T1..T2", value_parser = between, allow_hyphen_values = true)]
        between: Option<Between>,
        /// Stop after so many lines
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// The memory references of a run that was recorded with `run --memory`, each call where it returned; --calls then
        /// counts references
        #[arg(long)]
        references: bool,
        #[command(flatten)]
        modules: Modules,
    },
    /// The program's loops: how often each ran, the calls in it, with parameters, ranks and source lines
    #[command(after_help = "\
Examples:
  refrain run --fold loops -- mpiexec -n 16 ./app     keeps loops and call sites
  refrain loops app.rfn
  refrain loops app.rfn --depth 1                     what is in the outermost loops, no further
  refrain loops app.rfn --ranks 3                     as rank 3 went through it
  refrain loops app.rfn --folded                      as the calls were folded, whatever the source looks like
  refrain loops app.rfn --json | jq '.kinds[0].steps' the time-step loop
  refrain loops app.rfn --events                      one row an event, as in the papers on ScalaTrace
  refrain loops app.rfn --text                        all of the trace, to be read back by `refrain import`

    loop 200 times  at bt.c:123 in main
      MPI_Isend(count=10, datatype=MPI_INT, dest=rank+1, tag=7, comm=world)  at exchange (bt.c:30)
      MPI_Reduce(...)  in 20 of 200 iterations  at main (bt.c:140)

How to read it:

  loop 20 times               the loop ran 20 times
  loop 2-6 times, mean 3.5    an inner loop that ran between 2 and 6 times each time it was reached
  loop 75 times in all        it is not known how these iterations are spread over the outer loop;
  loop 3.5 times on average   the same
  loop 60 times or more       the loop polled and found nothing, or the order of the calls does not tell the number
  1,000 iterations (100 x 10) with --folded: a hundred times ten, of which the first differs from the others
  in 4 of 20 iterations       the call was made in only 4 of the iterations
  on ranks 0,2                only these ranks make the call
  at f < g                    the call is in f, which g called
  dest=(rank+1) mod 8         a number as a function of the rank
  by rank: 1..9, 3*rank+10    a number that differs from rank to rank
  varies: 1..64, 1 2 in turn  a number that changes from call to call
  red flag                    a number that equals the number of ranks (8 or more), so it may grow with them

The loops are those of the source. Refrain reads them off the machine code of the binaries that ran, which must still be
there. It counts iterations by the calls that every iteration makes. If no such call exists, the order of the calls tells
iterations apart; iterations without any call are then not counted. Loops with one iteration and polls that found nothing
are not shown. If the code is not there, or a function calls itself, the loops are shown as the calls were folded
(--folded), and the second line says so.

The time-step loop is the outermost loop that has most of the calls. If nearly all of these are in an inner loop that few
of its iterations reach, it is the inner loop. If no loop has most of the calls, the largest repetition is named. A loop
that polls is neither. If the source and the folded form differ on it, both are printed.

Lines need debug information (-g). Without it, calls have a function or a module with an offset. Refrain compares the
build-ids of the binaries, and warns if they have changed. A trace of `--fold grammar` has no loops: Refrain looks for
them in the calls of one rank of each kind. Long bodies are cut short, and a line says so; --all shows everything.

JSON: kinds[] of ranks with nodes[] in the order of the program. Those with `inside` are loops, and so many of the nodes
that follow are within them; those with `call` have params and site[], the stack from the outermost frame on. times[] says
for each list of ranks how often the node's place is reached and how often it runs.")]
    Loops {
        /// The trace
        file: PathBuf,
        /// Only these ranks, each by itself: 0,3-5
        #[arg(long, visible_alias = "rank", value_name = "RANKS")]
        ranks: Option<Numbers>,
        /// Only these threads of the ranks
        #[arg(long, visible_alias = "thread", value_name = "THREADS")]
        threads: Option<Numbers>,
        /// Show loops within at most so many loops, and count the rest
        #[arg(long, value_name = "LOOPS")]
        depth: Option<usize>,
        /// Leave nothing out
        #[arg(long)]
        all: bool,
        /// Show the loops as they are folded in the trace, not those of the source
        #[arg(long)]
        folded: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
        /// One row an event, with (members,iterations)[ranks] where loops begin
        #[arg(long, conflicts_with = "json")]
        events: bool,
        /// The whole trace as text, which `refrain import` makes a trace of again
        #[arg(long, conflicts_with_all = ["json", "events", "ranks", "threads", "depth", "all", "folded"])]
        text: bool,
        /// The memory references of a run that was recorded with `run --memory`, not its calls
        #[arg(long)]
        references: bool,
        #[command(flatten)]
        modules: Modules,
    },
    /// Make a trace from the text that `refrain loops --text` printed
    #[command(after_help = "\
Examples:
  refrain loops app.rfn --text > app.txt
  refrain import app.txt --out again.rfn      has the same calls as app.rfn
  refrain loops app.rfn --text | sed s/old/new/ | refrain import - --digest --out new.rfn

One thing a line: what ran, then the modules, the stacks, the symbols (calls without their numbers), the streams of numbers,
the structures, and for each kind of ranks which structure and which streams are theirs. What is behind # is for people.

  stream 1 terms 0:4:3 7 shape r1x2 t1 | t0   0 4 8 twice, then 7 for ever
  structure 0 loops l2 e0 e1                  a loop of two nodes: symbols 0 and 1
  cohort members 0x4:1 ...                    0 to 3 (thread * ranks + rank): from 0, four, one apart
    lane 1                                    all of them have stream 1 here

Lanes are the times of each node of a structure of loops, then the numbers of each of its symbols.")]
    Import {
        /// The text; - is standard input
        file: PathBuf,
        /// Write the trace here
        #[arg(long, short, value_name = "FILE")]
        out: PathBuf,
        /// Replace the trace if it is there already
        #[arg(long)]
        force: bool,
        /// Take the calls of a text that was changed for those that were recorded: without it `verify`, `replay` and `proxy`
        /// say no to such a trace
        #[arg(long)]
        digest: bool,
    },
    /// Tables of calls, payload and time: by function, rank, call site, size, peer; also of address traces
    #[command(after_help = stats_help())]
    Stats {
        /// The trace
        file: PathBuf,
        /// Print one table; without this, those of functions and ranks
        #[arg(long, value_enum)]
        per: Option<Per>,
        /// Who waits for whom, where and how long, and the critical path (of `run --time exact` or binned)
        #[arg(long, conflicts_with = "per")]
        waits: bool,
        /// Draw it, as wide as the terminal: time by function and rank, messages by size, who sends how much to whom
        #[arg(long, conflicts_with_all = ["per", "waits", "json"])]
        plot: bool,
        /// One JSON object: numbers in bytes and nanoseconds; `..._error_ns` says by how much a rounded one may be wrong
        #[arg(long)]
        json: bool,
        /// The memory references of a run that was recorded with `run --memory`, not its calls
        #[arg(long)]
        references: bool,
        #[command(flatten)]
        modules: Modules,
        #[command(flatten)]
        addresses: StatsFlags,
    },
    /// Compare two traces: the first call that differs on each rank, and what was added or removed
    #[command(after_help = "\
Examples:
  refrain diff a.rfn b.rfn
  refrain diff a.rfn b.rfn --ignore pointers,polls    two runs of a program that allocates and polls
  refrain diff before.rfn after.rfn --time            which functions became slower, beyond noise?
  refrain diff 4.rfn 16.rfn                           other numbers of ranks: calls by rank, by function or call site
  refrain diff a.rfn b.rfn --json | jq -r '.first[] | [.ranks, .number.a, .function.a] | @tsv'

  different: on 1 of 4 ranks (not compared: time)
    A  a.rfn: 4 ranks, 1,000,012 calls
    B  b.rfn: 4 ranks, 1,000,012 calls

  rank 2, call 500,123: MPI_Send at exchange (app.c:30)
    count: 8 in A, 9 in B

A line stands for all ranks that part in the same way. Calls are counted from 0, as in `refrain dump --calls`. `differ` is how
many calls of a function differ; ? where that is not known. Calls are equal if all that `refrain dump` shows of them is: function,
arguments, results, and where they were made. Which folder a run was recorded with, how its ranks were merged and when calls
happened does not matter. What else does not, --ignore says:

  time      when calls began and ended, and how long they took: never compared, unless by --time
  pointers  where buffers lie: segment and offset, and the area (heap, stack, GPU); attributes that are pointers; numbers of type
            MPI_Aint that are addresses, 2^40 and above in both. MPI_IN_PLACE, MPI_BOTTOM and NULL are compared
  sites     call stacks; those of two builds of a program always differ
  polls     how often MPI_Test, MPI_Iprobe and the like found nothing, and how many calls of MPI_Waitsome or MPI_Testsome it took
            to complete the same requests one after the other
  requests  which request it is: a library may have one handle for several, and nobody can tell its copies apart

What only one of the traces has (addresses, call sites, functions that --only left out) is not compared either: notes in
front say so. Where structures are equal the traces are compared as they are folded, in time of their size; from the first call
that may differ on calls are read one by one.

--time compares mean times, and counts in the exit code. Noise is twice the uncertainty of the difference of two means (more
for less than ten calls), as it follows from how many, how short and how long they are, or from the spread over ranks, and 1/32
of both, which the file leaves open.
A machine that was busier in one run is told as a change: record runs under equal conditions.

Exit codes: 0 equal, 1 different, 2 it could not be done.")]
    Diff {
        /// The first trace
        a: PathBuf,
        /// The second
        b: PathBuf,
        /// What does not count, by commas: time, pointers, sites, polls, requests
        #[arg(long, value_name = "WORDS")]
        ignore: Option<Ignore>,
        /// Compare times too: which functions or call sites became slower or faster
        #[arg(long)]
        time: bool,
        /// Nothing is cut short
        #[arg(long)]
        all: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        modules: Modules,
    },
    /// From traces at several numbers of ranks, a prediction of the trace at another
    #[command(after_help = "\
Examples:
  refrain run --out a16.rfn -- mpiexec -n 16 ./app
  refrain run --out a36.rfn -- mpiexec -n 36 ./app
  refrain run --out a64.rfn -- mpiexec -n 64 ./app
  refrain extrapolate a16.rfn a36.rfn a64.rfn --ranks 4096 -o a4096.rfn
  refrain stats a4096.rfn                              every other command reads it

For each place in the program it looks for an exact law that says how often it is reached, and what its numbers are, from the rank,
the number of ranks and the turn of the loop. Ranks may lie on a line, on grids of two to four dimensions as MPI_Dims_create makes
them, or be told apart by first, last, odd or even. A law holds for every rank of every trace. It is looked for without the largest
trace, and must hold there: so three traces are better than two, and it helps if each side of the program's grid has three
different lengths in them (for three dimensions 27, 64 and 125 ranks).

What follows no law is listed, with what was seen at each number of ranks, and nothing is written. With --guess such numbers are
those of a rank of the largest trace. A number that depends on data follows no law. Where two laws or grids that are equally simple
fit and differ on the ranks that are asked for, that is listed too; so is every other way to cut a line of points into pieces. A number
of ranks at which one more trace would settle it is named.

It is a prediction: a law that fits all traces may fit by chance. More traces make that less likely. What only two traces tell of is
listed as not confirmed.

Times are not extrapolated: the new trace has none. It says that it was extrapolated, and from what (`refrain info`).

Exit codes: 0 written, 1 something was not worked out, 2 it could not be done.")]
    Extrapolate {
        /// Traces of the same program, each at another number of ranks
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// For so many ranks
        #[arg(long, value_name = "N")]
        ranks: u32,
        /// Write the trace here
        #[arg(long, short, value_name = "FILE")]
        out: PathBuf,
        /// Where no law is found, take what the largest trace has
        #[arg(long)]
        guess: bool,
        /// Replace the trace if it is there already
        #[arg(long)]
        force: bool,
        /// What was found out as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Make the calls of a trace again, on any MPI library
    #[command(after_help = crate::replay::help())]
    Replay {
        #[command(flatten)]
        flags: Box<crate::replay::ReplayFlags>,
    },
    /// Write a C program that makes the calls of a trace: loops as loops, numbers as functions of the rank
    #[command(after_help = "\
  refrain proxy app.rfn -o proxy.c
  mpicc -O2 proxy.c -o proxy && mpiexec -n 16 ./proxy    # -DCOMPUTE=0: without the time between calls
  refrain run --out proxy.rfn -- mpiexec -n 16 ./app
  refrain diff app.rfn proxy.rfn --ignore time,pointers,sites,polls

The program is one file that needs nothing but MPI. Loops of the run are loops, ranks that do something else are
conditions, numbers are constants or functions of the rank or of a loop's counter where they are that in the trace, and
tables where not. Between calls it is busy as long as the program was on average: before each kind of call where the
trace tells (`run --time histogram`), otherwise before all calls alike. Where the run was recorded with call sites
(`--stacks site`, `--fold loops`), comments say where each call was made.

Where MPI had a choice (whose message came, which request was complete) the program makes the same choice; polls that
found nothing are left out. What cannot be written is said before anything is: calls that were left out of the trace,
several threads, other processes, addresses that were numbers to the program, the tool interface.

--ranks any writes a program for any number of ranks, if every number and condition is a function of the rank and of the
number of ranks; otherwise it says which are not. Whether a number that is the same on all ranks depends on how many
there are, one trace cannot tell.

Exit code 0: done, 2: it could not be done.")]
    Proxy {
        /// The trace
        file: PathBuf,
        /// The program; `-` for standard output
        #[arg(long, short, value_name = "FILE")]
        out: PathBuf,
        /// Replace the file if it is there
        #[arg(long)]
        force: bool,
        /// `any`: a program for any number of ranks
        #[arg(long, value_name = "any", value_parser = ["any"])]
        ranks: Option<String>,
        #[command(flatten)]
        modules: Modules,
    },
    /// Write a trace in another tool's format
    #[command(after_help = crate::export::help())]
    Export {
        /// The trace
        file: PathBuf,
        /// The format
        #[arg(long, value_name = "FORMAT", value_parser = refrain_export::Format::read)]
        to: refrain_export::Format,
        /// The file or folder to write
        #[arg(long, short, value_name = "OUT")]
        out: PathBuf,
        /// Replace what is there
        #[arg(long)]
        force: bool,
        /// Only these ranks: 0,3-5
        #[arg(long, visible_alias = "rank", value_name = "RANKS")]
        ranks: Option<Numbers>,
        /// Only calls that overlap this time, in seconds since the first call began: T1..T2, T1.. or ..T2
        #[arg(long, value_name = "T1..T2", value_parser = between, allow_hyphen_values = true)]
        between: Option<Between>,
        /// Only these functions or families (see `refrain run --help`), of tables: MPI_Send,coll
        #[arg(long, value_name = "FUNCTIONS")]
        only: Option<String>,
        #[command(flatten)]
        modules: Modules,
    },
    /// Write one page with everything to look at: what stands out, a timeline, time, messages, loops
    #[command(after_help = crate::report::REPORT_HELP)]
    Report {
        #[command(flatten)]
        flags: Box<ReportFlags>,
    },
    /// Make the page of `refrain report` and open it in a browser
    #[command(after_help = crate::report::VIEW_HELP)]
    View {
        #[command(flatten)]
        flags: Box<ViewFlags>,
    },
    /// Convert an address trace to another format: dinero, lackey, raw, PDATS, PDI, Refrain's own
    #[command(after_help = convert_help())]
    Convert {
        #[command(flatten)]
        flags: Box<Convert>,
    },
    /// Simulate caches on an address trace, or find miss ratios for all sizes at once
    #[command(after_help = simulate_help())]
    Simulate {
        #[command(flatten)]
        flags: Box<Simulate>,
    },
    /// Print a script that completes commands and options in a shell
    #[command(after_help = "\
Examples:
  refrain completions bash > ~/.local/share/bash-completion/completions/refrain
  refrain completions zsh > ~/.zfunc/_refrain            a folder of $fpath, before compinit
  refrain completions fish > ~/.config/fish/completions/refrain.fish

`make install` and the Debian package put these in their places for all users.")]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the page for man, or write all pages into a folder
    #[command(after_help = "\
Examples:
  refrain man | man -l -                  the page of refrain
  refrain man memory run | man -l -       that of a command
  refrain man --out ~/.local/share/man/man1
                                          refrain.1, refrain-run.1, ...; `man refrain-run` finds them")]
    Man {
        /// Write one page for each command into this folder, which is made if it is not there
        #[arg(long, short, value_name = "DIR", conflicts_with = "words")]
        out: Option<PathBuf>,
        /// The command that the page is about
        #[arg(value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// Check a trace: its checksums, and every rank's calls against the digest taken while it ran
    #[command(after_help = "\
Says yes (exit code 0) or no (1) and where; 2 if the file cannot be read, is cut short or is not one of Refrain's.

  refrain verify app.rfn && echo all of it is there")]
    Verify {
        /// The trace
        file: PathBuf,
        /// Say nothing but no
        #[arg(long, short)]
        quiet: bool,
    },
}

impl Command {
    /// Whether it starts other programs, which have signals of their own to hear.
    pub fn starts_others(&self) -> bool {
        use Command::{Doctor, Env, Memory, Replay, Run, View};
        matches!(self, Run { .. } | Env { .. } | Doctor { .. } | Memory { .. } | Replay { .. } | View { .. })
    }

    /// The file or folder that it writes, if it does.
    pub fn writes(&self) -> Option<PathBuf> {
        match self {
            Command::Recover { directories, out, .. } => {
                out.clone().or_else(|| Some(directories.first()?.with_extension("")))
            }
            Command::Import { out, .. }
            | Command::Proxy { out, .. }
            | Command::Export { out, .. }
            | Command::Extrapolate { out, .. } => Some(out.clone()),
            Command::Report { flags } => {
                Some(flags.out.clone().unwrap_or_else(|| flags.file.with_extension("html")))
            }
            Command::Convert { flags } => Some(flags.output.clone()),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// Record every load and store of a run into one file
    #[command(after_help = RUN_HELP)]
    Run {
        #[command(flatten)]
        flags: Box<RunFlags>,
        /// The command to run, with its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
        words: Vec<OsString>,
    },
    /// Switch recording on, of a run that is at work
    #[command(after_help = SWITCH_HELP)]
    On {
        /// The trace that the run will write
        file: PathBuf,
    },
    /// Switch recording off, of a run that is at work
    #[command(after_help = SWITCH_HELP)]
    Off {
        /// The trace that the run will write
        file: PathBuf,
    },
    /// Compile and link a program so that `memory run` can record it without an emulator
    #[command(after_help = CC_HELP)]
    Cc {
        /// The compiler, with its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMPILER")]
        words: Vec<OsString>,
    },
}

/// Where the binaries that ran are now.
#[derive(Debug, clap::Args)]
pub struct Modules {
    /// Search this folder too for programs, libraries and their debug information, by name and build-id
    #[arg(long = "modules", value_name = "DIR")]
    pub folders: Vec<PathBuf>,
}

fn run_help() -> String {
    format!(
        "\
The program needs no rebuilding. Refrain goes before the launcher, or between the launcher and the program:

  refrain run -- mpiexec -n 16 ./app          writes app.rfn
  mpiexec -n 16 refrain run -- ./app          the same, from inside
  refrain run --out big.rfn --force -- mpirun -np 64 ./app input.txt
  refrain run --time off -- mpiexec -n 4 ./run.sh     the program may be started by a script
  REFRAIN_POINTERS=off refrain run -- srun -n 128 ./app

Less than everything, in any combination:

  refrain run --ranks 0-7,63 -- mpiexec -n 64 ./app
  refrain run --only p2p,MPI_Allreduce -- mpiexec -n 64 ./app
  refrain run --skip tool,MPI_Wtime,MPI_Comm_* -- mpiexec -n 64 ./app
  refrain run --window 10s..2m -- mpiexec -n 64 ./app

Families: {}.
MPI_Wait and its kin are both in wait and in p2p; MPI_T is another name of tool.
Recorded in any case are MPI_Init, MPI_Finalize and MPI_Pcontrol, and the calls that make the communicators, windows and
datatypes which recorded calls use: without them nobody could say whom a message goes to, and how large it is.

The exit code is the program's own; 128 + the signal's number if a signal ended it; 2 if it could not be started.
An option on the command line wins over its environment variable. REFRAIN_LIBRARY names the capture library where it
is neither beside this binary nor in ../lib/refrain.",
        refrain_model::families().join(", ")
    )
}

fn stats_help() -> String {
    format!(
        "\
Examples:
  refrain stats app.rfn
  refrain stats app.rfn --plot              bars, and who sends how much to whom as a picture
  refrain stats app.rfn --per rank          every rank: its time outside MPI and in it, and which one the others wait for
  refrain stats app.rfn --per site          which MPI_Allreduce is slow? Of a run with --stacks or --fold loops
  refrain stats app.rfn --per size          are large messages slow, or small ones? By function and size of the message
  refrain stats app.rfn --per peer          by function and peer: +1 is the next rank, -1 the one before
  refrain stats app.rfn --per path          is it always slow, or rarely very slow? Of a run with --time histogram
  refrain stats app.rfn --json | jq '.functions[] | [.function, .payload]'
  refrain stats app.rfn --waits             which rank waits for which? Of a run with --time exact or binned
  refrain stats app.pdt.gz                  an address trace, in any format that `refrain convert` reads

{}

The time of a function is that of its calls on all ranks together. A rank that is outside MPI for longer than the others
makes them wait; a line below the table of ranks names it. The run is as long as its longest rank, from the start of
MPI_Init to MPI_Finalize; `of run` is a share of the times of all ranks together. Of a run with --time exact all times are exact:
they are those of single calls. Otherwise `~` marks what is kept to within 1/32 (3.2%), and `*` call sites, sizes and peers that took
less than about 1/1000 of the time in MPI: the row `all with *` has the time of all such calls of their function. Times by rank are
then in units of 1/512 to 1/1024 of the wall time, times by rank and function in units of 1/64 to 1/128; less than a unit is shown as
none. The largest and the smallest time outside MPI, and in MPI, are exact. With --json a time that is not exact has its error
beside it (time_error_ns).

--plot draws with blocks in a UTF-8 locale, otherwise in ASCII. It is as wide as the terminal, or as COLUMNS says. Of a
trace of memory references it draws bytes by place, stride and thread.

Of an address trace: a reference is repeated if it has the kind and the offset of the one before it. The table shows step
by step what packing saves. Overhead: what the trace's format has beside kind and address. Locality: what offsets instead
of addresses save. Sequentiality: what counting repeated references saves. Memory touched is the number of different lines
of 64 bytes and pages of 4 KiB, of each kind and in all. Refrain counts up to {} pages, with some 220 MB of memory; beyond
that it prints `at least`. `refrain simulate --curve` says how small a cache would do.",
        refrain_views::stats::DEFINITION,
        refrain_views::human::thousands(refrain_addresses::stats::MOST_PAGES as u64)
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Per {
    /// Calls, payload and time of each function
    Function,
    /// Time of each rank outside MPI and in it, and which rank the others wait for
    Rank,
    /// Time of each place in the program that calls MPI (of `run --stacks site` or `--fold loops`)
    Site,
    /// Time by function and size of the message
    Size,
    /// Time by function and distance of the peer: +1 is the next rank
    Peer,
    /// Time by function and arguments (of `run --time mean=signature`)
    Signature,
    /// Percentiles of each function after each other one (of `run --time histogram`)
    Path,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Command, String> {
        Arguments::try_parse_from(line.split_whitespace()).map(|a| a.command).map_err(|e| e.to_string())
    }

    #[test]
    fn the_definition_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn everything_after_the_dashes_is_the_command() {
        let words_of = |line: &str| match parse(line) {
            Ok(Command::Run { words, flags, .. }) => (
                words.iter().map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "),
                flags.force,
            ),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(
            words_of("refrain run -- mpiexec -n 4 ./app --force"),
            ("mpiexec -n 4 ./app --force".into(), false)
        );
        assert_eq!(words_of("refrain run --force -- ./app -- x"), ("./app -- x".into(), true));
        assert_eq!(words_of("refrain run --force ./app --out y"), ("./app --out y".into(), true));
        assert_eq!(words_of("refrain run -o y --force ./app --ouut -z"), ("./app --ouut -z".into(), true));
        assert_eq!(words_of("refrain run -- -app"), ("-app".into(), false));
    }

    #[test]
    fn what_is_refused() {
        for (line, why) in [
            ("refrain run", "required"),
            ("refrain run --", "required"),
            ("refrain run --pointers yes -- ./app", "on, off"),
            ("refrain run --pcontrol yes -- ./app", "on, off"),
            ("refrain doctor", "required"),
            ("refrain env ./app", "unexpected"),
            ("refrain dump", "required"),
            ("refrain dump a --rank x", "0,3-5"),
            ("refrain dump a --calls 5..2", "10..20"),
            ("refrain dump a --format xml", "text, json"),
            ("refrain dump a --between 2..1", "1.5..2"),
            ("refrain dump a --between 1", "1.5..2"),
            ("refrain stats a --per node", "function, rank, site, size, peer"),
            ("refrain run --ouut y.rfn -- ./app", "unexpected argument '--ouut'"),
            ("refrain run --ouut y.rfn ./app", "'--out'"),
            ("refrain doctor --jsn ./app", "'--json'"),
            ("refrain loops a --ranks 0;1", "'0;1' is neither a number nor a range"),
            ("refrain replay a --speed -1 -- mpiexec", "0.5 or 2"),
            ("refrain replay a --compute x -- mpiexec", "0.5 or 2"),
            ("refrain replay a", "required"),
            ("refrain nothing", "unrecognized"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn ranks_and_ranges() {
        let Ok(Command::Dump { ranks, calls, only, format, .. }) =
            parse("refrain dump f --ranks 0,3-5 --calls 10.. --only MPI_Send,MPI_Recv --format json")
        else {
            panic!()
        };
        assert!(ranks.unwrap().contains(4));
        let Ok(Command::Loops { ranks, .. }) = parse("refrain loops f --rank 2") else { panic!() };
        assert!(ranks.unwrap().contains(2));
        assert_eq!(calls, Some(10..u64::MAX));
        assert_eq!(only.as_deref(), Some("MPI_Send,MPI_Recv"));
        assert_eq!(format, Format::Json);
        assert!(matches!(parse("refrain dump f --json"), Ok(Command::Dump { json: true, .. })));
    }

    #[test]
    fn help_has_examples_everywhere() {
        for command in Arguments::command().get_subcommands() {
            let help = command.get_after_help().map(|h| h.to_string()).unwrap_or_default();
            assert!(help.contains("refrain "), "{}", command.get_name());
        }
    }
}
