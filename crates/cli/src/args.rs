//! The command line, as clap reads it and `--help` teaches it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use refrain_views::select::{Numbers, positions};

use crate::addresses::{Convert, Simulate, StatsFlags, convert_help, simulate_help};
use crate::run::Flags;

#[derive(Debug, Parser)]
#[command(
    name = "refrain",
    version,
    about = "Records every MPI call of a parallel program into one small file, and gives it back",
    after_help = "\
Examples:
  refrain run -- mpiexec -n 16 ./app    trace a run into app.rfn
  refrain doctor -- mpiexec -n 16 ./app what would be traced, and what would be in the way?
  refrain info app.rfn                  what ran, what was kept
  refrain dump app.rfn --rank 0         every call of rank 0
  refrain stats app.rfn                 calls, payload and time
  refrain verify app.rfn                is it what happened?
  refrain convert app.din app.pdt       address traces, from one format to another
  refrain simulate app.pdt --l1d 32K,8,64   how often would they miss a cache?

Exit codes: 0 done, 1 the answer is no, 2 it could not be done; `run` passes the program's own on."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Trace a run into one file
    #[command(after_help = run_help())]
    Run {
        #[command(flatten)]
        flags: Flags,
        /// The command to run, with its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
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
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        words: Vec<OsString>,
    },
    /// Make a trace from the parts that a run left behind when it ended too early
    #[command(after_help = "\
While a program runs, what was recorded lies in FILE.parts, beside where the trace will be. It is removed when the trace
is written. When the program crashes, is killed or aborts, `refrain run` makes a partial trace of it by itself; where
that process was killed too, or there was none, this does it by hand:

  refrain recover app.rfn.parts                 writes app.rfn
  refrain recover app.rfn.parts --out what-was.rfn

All calls are there up to the last that returned; `refrain info` says how each rank ended. The parts are kept.")]
    Recover {
        /// The directory with the parts
        directory: PathBuf,
        /// Write the trace here [default: the directory's name without .parts]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Replace the trace if it is there already
        #[arg(long)]
        force: bool,
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
  refrain dump app.rfn --rank 0,3-5 --calls 100..200  the second hundred of four ranks
  refrain dump app.rfn --only MPI_Send,MPI_Recv
  refrain dump app.rfn --json | jq 'select(.args.dest==1)'

A line is [rank] number call(argument=value, ...) = result; with several threads [rank.thread]. Numbers count a
thread's calls from 0. `-` (null in JSON) is what the call did not write, or what does not count on that rank.
Buffers are heap#3+16: 16 bytes into heap segment 3; gpu1#3+16: into segment 3, on device 1. before->after is a number
the call read and wrote.
type#0, req#4 are the rank's own objects, numbers are used again after they are freed; world.0 is a communicator made
from world. source and dest are ranks in the call's comm. {size=256, ...} is what a new object is; JSON calls it facts.")]
    Dump {
        /// The trace
        file: PathBuf,
        /// Only these ranks: 0,3-5
        #[arg(long, value_name = "RANKS")]
        rank: Option<Numbers>,
        /// Only these threads of the ranks
        #[arg(long, value_name = "THREADS")]
        thread: Option<Numbers>,
        /// Only the calls at these positions: A..B (without B), A.., ..B or A
        #[arg(long, value_name = "A..B", value_parser = positions)]
        calls: Option<std::ops::Range<u64>>,
        /// Only calls of these functions
        #[arg(long, value_name = "FUNCTIONS", value_delimiter = ',')]
        only: Vec<String>,
        /// text for people, json for programs: one object a line
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
        /// The same as --format json
        #[arg(long, conflicts_with = "format")]
        json: bool,
    },
    /// Tables: calls, payload and time per function and per rank; of an address trace, offsets and runs
    #[command(after_help = stats_help())]
    Stats {
        /// The trace
        file: PathBuf,
        /// Only this table
        #[arg(long, value_enum)]
        per: Option<Per>,
        /// One JSON object with exact numbers: bytes and nanoseconds
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        addresses: StatsFlags,
    },
    /// An address trace from one format to another: dinero, lackey, raw, PDATS, PDI
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
  refrain stats app.rfn --per rank
  refrain stats app.rfn --json | jq '.functions[] | [.function, .payload]'
  refrain stats app.pdt.gz                  an address trace, in any format that `refrain convert` reads

{}
Time is that of the calls on all ranks together; by rank only its sum, least and most are kept.",
        refrain_views::stats::DEFINITION
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
            Ok(Command::Run { words, flags }) => (
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
    }

    #[test]
    fn what_is_refused() {
        for (line, why) in [
            ("refrain run", "required"),
            ("refrain run --", "required"),
            ("refrain run --time all -- ./app", "mean, off"),
            ("refrain run --pointers yes -- ./app", "on, off"),
            ("refrain run --pcontrol yes -- ./app", "on, off"),
            ("refrain doctor", "required"),
            ("refrain env ./app", "unexpected"),
            ("refrain dump", "required"),
            ("refrain dump a --rank x", "0,3-5"),
            ("refrain dump a --calls 5..2", "10..20"),
            ("refrain dump a --format xml", "text, json"),
            ("refrain stats a --per peer", "function, rank"),
            ("refrain nothing", "unrecognized"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn ranks_and_ranges() {
        let Ok(Command::Dump { rank, calls, only, format, .. }) =
            parse("refrain dump f --rank 0,3-5 --calls 10.. --only MPI_Send,MPI_Recv --format json")
        else {
            panic!()
        };
        assert!(rank.unwrap().contains(4));
        assert_eq!(calls, Some(10..u64::MAX));
        assert_eq!(only, ["MPI_Send", "MPI_Recv"]);
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
