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
  refrain doctor -- mpiexec -n 16 ./app what would be traced, and what would be in the way?
  refrain info app.rfn                  what ran, what was kept
  refrain dump app.rfn --rank 0         every call of rank 0
  refrain loops app.rfn                 loops, trip counts, source lines: the program's own structure
  refrain stats app.rfn                 calls, payload and time
  refrain view app.rfn                  the same and more as a page, in a browser
  refrain verify app.rfn                is it what was recorded?
  refrain diff a.rfn b.rfn              are these the same run? if not, where do they part?
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
    /// Read calls whose arrays have up to N elements together, and look through N calls that make communicators; each takes
    /// about 50 bytes of memory [default: 1048576]
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
    /// Say what would be traced, and what would be in the way, without running anything
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
While a program runs, what was recorded lies in FILE.parts, beside where the trace will be. It is removed when the trace
is written. When the program crashes, is killed or aborts, `refrain run` makes a partial trace of it by itself; where
that process was killed too, or there was none, this does it by hand:

  refrain recover app.rfn.parts                 writes app.rfn
  refrain recover app.rfn.parts --out what-was.rfn
  refrain recover app.rfn.parts node2/app.rfn.parts    joins what two hosts kept, where they share no directory

All calls are there up to the last that returned; `refrain info` says how each rank ended. The parts are kept. A run that
is still at work writes its trace itself: of what there is until now make another file, with --out.")]
    Recover {
        /// The directory with the parts; of a run on several hosts, those of all of them
        #[arg(required = true, value_name = "DIRECTORY")]
        directories: Vec<PathBuf>,
        /// Write the trace here [default: the directory's name without .parts]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Replace the trace if it is there already
        #[arg(long)]
        force: bool,
    },
    /// Where a run hangs, or was when it died: the call that each rank is in
    #[command(after_help = "\
Examples:
  refrain where app.rfn                         while the program runs, from another terminal; it goes on untouched
  refrain where                                 the same of the one run that keeps its parts in this directory
  refrain where app.rfn                         of a run that died, the same from its trace

For each rank the call that it has entered and not left, with its arguments, where it was made and for how long. Below,
what follows from that: who waits for whom, a deadlock, a collective call that some ranks did not reach, collective calls
that do not match. Only ranks whose parts can be read from here are told of.")]
    Where {
        /// The trace, or the directory with its parts [default: the one that is here]
        file: Option<PathBuf>,
        /// One JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        modules: Modules,
    },
    /// One screen: what ran, what was kept, where the bytes are
    #[command(after_help = "\
Examples:
  refrain info app.rfn
  refrain info app.rfn --json | jq .sections")]
    Info {
        /// The trace
        file: PathBuf,
        /// One JSON object with exact numbers
        #[arg(long)]
        json: bool,
    },
    /// Every call, decoded, in order, with every argument by name
    #[command(after_help = "\
Examples:
  refrain dump app.rfn                                everything, rank by rank
  refrain dump app.rfn --ranks 0,3-5 --calls 100..200 the second hundred of four ranks
  refrain dump app.rfn --only MPI_Send,coll           functions, families (see `refrain run --help`), MPI_Win_*
  refrain dump app.rfn --json | jq 'select(.args.dest==1)'
  refrain dump app.rfn --stacks                       where each call came from, of a run with --stacks full
  refrain dump app.rfn --limit 1000                   the first thousand lines
  refrain dump app.rfn --merged --between 1.5..1.6    who did what then, of a run with --time exact or binned

A line is [rank] number call(argument=value, ...) = result; with several threads [rank.thread]. Numbers count a
thread's calls from 0. `-` (null in JSON) is what the call did not write, or what does not count on that rank. A status
has the fields that MPI defines: {cancelled=false} is that of a send, which has no others, and - one that MPI leaves as it was.
Buffers are heap#3+16: 16 bytes into heap segment 3; gpu1#3+16: into segment 3, on device 1. before->after is a number
the call read and wrote.
type#0, req#4 are the rank's own objects, numbers are used again after they are freed; world.0 is a communicator made
from world. source and dest are ranks in the call's comm. {size=256, ...} is what a new object is; JSON calls it facts.
Where the trace tells when calls began and ended, START..END stands before each, in seconds since the first call of the
trace began, with +-SECONDS behind each where it may be so wrong (--time binned); - where a time is missing. JSON has
start, end, start_error and end_error, in nanoseconds.")]
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
    /// The structure for people: loops with their trip counts, calls with their parameters, ranks and source lines
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

Loops are those of the source: which loop a call is in, and how often one was gone around, is read off the machine code of
the binaries that ran, which must still be there, and the counts of the calls. Where no call is sure to be made each time,
the order of the calls tells iterations apart: those without any call are not counted. `60 times or more` is a loop that
polled and found nothing, or of which the order of the calls does not tell. `15 times in all` and `3.5 times on average` are loops within loops of which it is not known how the turns
are spread. Loops of which no second iteration is known are not shown. Without the code, or where functions call
themselves, loops are shown as the order of the calls was folded (--folded), which the second line says: then 1,000
iterations (100 x 10) are a hundred times ten that differ in what the first does. Polls that found nothing are not shown.
The time-step loop is the outermost one that holds most of the calls, or else there is none and the largest repetition is
named; a loop that polls is neither. Where the loops of the source and the folded ones differ on it, both are told. Where these are in one inside it that few of its
turns come to, such as that of one command among many, it is that one. `at f < g` is a call in f, which g called. Peers
are told from the caller on, rank+1 or around the world (rank+1) mod 8, or as the rank they are where that is one. `1
to 64 by 1`, `1 2 in turn` and `varies: 1..64` are numbers that change from call to call, `by rank: 1..9` and
`3*rank+10` from rank to rank. A red flag is a number that is that of the ranks (8 or more), so that it will grow with them.
Lines need programs with debug information (-g), and the binaries that ran: their build-ids are compared (those that have
none may be others, which is said). Without them calls are named by their function, or by module and offset. A trace that was
folded by grammar has no loops; they are then looked for in the calls of one rank of each kind.
What is long is cut short, and says so: bodies with many lines but for their large loops, and with more than 500 lines in
all, loops far inside; --all shows everything.
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
    /// Make a trace of what `refrain loops --text` wrote
    #[command(after_help = "\
Examples:
  refrain loops app.rfn --text > app.txt
  refrain import app.txt --out again.rfn      has the same calls as app.rfn
  refrain loops app.rfn --text | sed s/old/new/ | refrain import - --out new.rfn

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
    },
    /// Tables: calls, payload and time per function and per rank; of an address trace, offsets, runs and memory touched
    #[command(after_help = stats_help())]
    Stats {
        /// The trace
        file: PathBuf,
        /// Only this table; site (where in the program), size (of messages), peer and path (how times are distributed, by the
        /// call before) are in none of the others
        #[arg(long, value_enum)]
        per: Option<Per>,
        /// Who waits for whom, where and how long, and the critical path (of `run --time exact` or binned)
        #[arg(long, conflicts_with = "per")]
        waits: bool,
        /// Draw it, as wide as the terminal: time by function and rank, messages by size, who sends how much to whom
        #[arg(long, conflicts_with_all = ["per", "waits", "json"])]
        plot: bool,
        /// One JSON object with exact numbers: bytes and nanoseconds
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
    /// Are two traces the same run? If not, the first call that differs, on each rank, and what was added or removed
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
        /// What does not count, by commas: time, pointers, sites, polls
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
    /// Make that page and open it in a browser
    #[command(after_help = crate::report::VIEW_HELP)]
    View {
        #[command(flatten)]
        flags: Box<ViewFlags>,
    },
    /// An address trace from one format to another: dinero, lackey, raw, PDATS, PDI, Refrain's own
    #[command(after_help = convert_help())]
    Convert {
        #[command(flatten)]
        flags: Box<Convert>,
    },
    /// Caches, simulated from an address trace; or miss ratios for all sizes at once
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
            Command::Import { out, .. } | Command::Proxy { out, .. } | Command::Export { out, .. } => {
                Some(out.clone())
            }
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
--plot draws with blocks where the locale is UTF-8, otherwise in ASCII; COLUMNS says how wide where there is no terminal. Of a trace
of memory references it draws bytes by place, stride and thread.
Time of a function is that of its calls on all ranks together. Sums and means are kept to within 1.6%, other times to within
3.2%; the ranks that were outside MPI, or in it, the least and the most have exact ones. By rank, times are in units of 1/512 to
1/1024 of the wall time, those of functions of 1/64 to 1/128: what is less is told as none. A rank that is outside MPI for longer than others makes them wait: it is named below the table.

Of an address trace: a reference is repeated if it is of the kind of the one right before and as far on as that. What
packing is worth is told in steps: overhead is what the trace's own format has beside kind and address, locality what is
saved by writing offsets instead of addresses, sequentiality what is saved by counting repeated ones. Memory touched is
counted in different lines of 64 bytes and pages of 4 KiB, of each kind and in all; what this takes goes by the pages, up to
{} of them, some 220 MB: of a trace that touches more it is told that these are at least so many. How small a cache
would do says `refrain simulate --curve`.",
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
    Function,
    Rank,
    Site,
    Size,
    Peer,
    /// How the times of calls are distributed, by the call before (of `run --time histogram`)
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
