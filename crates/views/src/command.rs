//! What a command line runs: which of its words is the launcher, which the program, and what the trace is called.
//!
//! Nothing here touches the system; whether a word is a program is asked through a closure.

use std::path::Path;

/// A command line, understood as far as it needs to be.
#[derive(Debug, PartialEq, Eq)]
pub struct Analysis {
    /// The word that is `mpiexec` or one of its kin.
    pub launcher: Option<usize>,
    /// The word that is the program; the interpreter where it is a script's.
    pub program: Option<usize>,
    /// The traced program's name, without directories; `trace` where none was found.
    pub name: String,
}

/// A command that runs another one, and what may stand between the two.
struct Prefix {
    launcher: bool,
    /// Options that take values, without dashes, and how many.
    values: &'static [(&'static str, usize)],
    /// Words of its own before the command (`timeout 60`, `taskset 0x3`).
    operands: usize,
}

/// Hydra (MPICH, Intel) and Open MPI answer to the same names, so their options are read together; none of them
/// takes values in one and none in the other.
const MPIEXEC: &[(&str, usize)] = &[
    ("n", 1),
    ("np", 1),
    ("c", 1),
    ("N", 1),
    ("ppn", 1),
    ("perhost", 1),
    ("npernode", 1),
    ("npersocket", 1),
    ("f", 1),
    ("hostfile", 1),
    ("machinefile", 1),
    ("machine", 1),
    ("host", 1),
    ("hosts", 1),
    ("H", 1),
    ("wdir", 1),
    ("wd", 1),
    ("dir", 1),
    ("path", 1),
    ("prefix", 1),
    ("configfile", 1),
    ("app", 1),
    ("x", 1),
    ("env", 2),
    ("genv", 2),
    ("envlist", 1),
    ("genvlist", 1),
    ("mca", 2),
    ("gmca", 2),
    ("omca", 2),
    ("pmixmca", 2),
    ("prtemca", 2),
    ("am", 1),
    ("tune", 1),
    ("map-by", 1),
    ("bind-to", 1),
    ("rank-by", 1),
    ("rankfile", 1),
    ("rf", 1),
    ("cpu-set", 1),
    ("cpu-list", 1),
    ("cpus-per-proc", 1),
    ("cpus-per-rank", 1),
    ("slot-list", 1),
    ("membind", 1),
    ("launcher", 1),
    ("launcher-exec", 1),
    ("bootstrap", 1),
    ("rmk", 1),
    ("iface", 1),
    ("demux", 1),
    ("localhost", 1),
    ("topolib", 1),
    ("prepend-pattern", 1),
    ("outfile-pattern", 1),
    ("errfile-pattern", 1),
    ("output", 1),
    ("output-filename", 1),
    ("stdin", 1),
    ("s", 1),
    ("timeout", 1),
    ("report-uri", 1),
    ("personality", 1),
    ("arch", 1),
    ("soft", 1),
    ("usize", 1),
    ("pmi-port", 1),
    ("nameserver", 1),
];

const SRUN: &[(&str, usize)] = &[
    ("n", 1),
    ("ntasks", 1),
    ("N", 1),
    ("nodes", 1),
    ("c", 1),
    ("cpus-per-task", 1),
    ("p", 1),
    ("partition", 1),
    ("t", 1),
    ("time", 1),
    ("A", 1),
    ("account", 1),
    ("J", 1),
    ("job-name", 1),
    ("w", 1),
    ("nodelist", 1),
    ("x", 1),
    ("exclude", 1),
    ("o", 1),
    ("output", 1),
    ("e", 1),
    ("error", 1),
    ("i", 1),
    ("input", 1),
    ("d", 1),
    ("dependency", 1),
    ("D", 1),
    ("chdir", 1),
    ("C", 1),
    ("constraint", 1),
    ("q", 1),
    ("qos", 1),
    ("m", 1),
    ("distribution", 1),
    ("G", 1),
    ("gpus", 1),
    ("mem", 1),
    ("mpi", 1),
    ("ntasks-per-node", 1),
    ("r", 1),
    ("relative", 1),
    ("reservation", 1),
    ("jobid", 1),
    ("W", 1),
    ("wait", 1),
];

/// jsrun, aprun, flux: what they share is short options with one value.
const OTHERS: &[(&str, usize)] = &[
    ("n", 1),
    ("N", 1),
    ("np", 1),
    ("a", 1),
    ("c", 1),
    ("g", 1),
    ("r", 1),
    ("d", 1),
    ("b", 1),
    ("l", 1),
    ("S", 1),
    ("j", 1),
    ("cc", 1),
    ("L", 1),
];

fn prefix(name: &str) -> Option<Prefix> {
    let launcher = |values| Some(Prefix { launcher: true, values, operands: 0 });
    let wrapper = |values, operands| Some(Prefix { launcher: false, values, operands });
    // Debian tells its libraries' launchers apart by `mpiexec.mpich`, `mpirun.openmpi`.
    let (stem, suffix) = name.split_once('.').unwrap_or((name, ""));
    let known_suffix = matches!(suffix, "" | "mpich" | "openmpi" | "hydra" | "gforker");
    match if known_suffix { stem } else { name } {
        "mpiexec" | "mpirun" | "orterun" | "prterun" | "prun" | "oshrun" | "mpiexec_mpt" | "mpirun_rsh" => {
            launcher(MPIEXEC)
        }
        "srun" => launcher(SRUN),
        "jsrun" | "aprun" | "ibrun" | "lrun" => launcher(OTHERS),
        // `flux run`, `flux submit`.
        "flux" => Some(Prefix { launcher: true, values: OTHERS, operands: 1 }),
        "salloc" => wrapper(SRUN, 0),
        "env" => wrapper(&[("u", 1), ("unset", 1), ("C", 1), ("chdir", 1)], 0),
        "timeout" => wrapper(&[("k", 1), ("kill-after", 1), ("s", 1), ("signal", 1)], 1),
        "nice" => wrapper(&[("n", 1), ("adjustment", 1)], 0),
        "stdbuf" => wrapper(&[("i", 1), ("o", 1), ("e", 1)], 0),
        "numactl" => wrapper(
            &[
                ("N", 1),
                ("m", 1),
                ("C", 1),
                ("i", 1),
                ("p", 1),
                ("cpunodebind", 1),
                ("membind", 1),
                ("physcpubind", 1),
            ],
            0,
        ),
        "taskset" => wrapper(&[], 1),
        "nohup" | "time" | "setsid" | "exec" => wrapper(&[], 0),
        _ => None,
    }
}

/// What runs a command where we cannot see it, and what is to be seen to there.
pub fn elsewhere(word: &str) -> Option<&'static str> {
    match base(word) {
        "singularity" | "apptainer" | "docker" | "podman" | "podman-hpc" | "udocker" | "shifter"
        | "sarus" | "enroot" | "ch-run" | "bwrap" | "chroot" | "systemd-nspawn" => Some("in a container"),
        "ssh" | "rsh" | "pdsh" | "clush" => Some("on another machine"),
        "sudo" | "su" | "doas" | "runuser" => Some("as another user, with another environment"),
        _ => None,
    }
}

/// Launchers of batch systems, which start nothing on the machine they are called on.
pub fn starts_elsewhere(launcher: &str) -> bool {
    matches!(base(launcher), "srun" | "jsrun" | "aprun" | "ibrun" | "lrun" | "flux")
}

/// Reads a command line. `is_program` says whether a word names an executable file, by itself or in `PATH`.
pub fn analyse(words: &[String], is_program: impl Fn(&str) -> bool) -> Analysis {
    let mut launcher = None;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let Some(prefix) = prefix(base(word)) else { break };
        if prefix.launcher && launcher.is_none() {
            launcher = Some(at);
        }
        at = skip_own_words(&prefix, words, at + 1, &is_program);
    }
    let name = words.get(at..).and_then(program_name).unwrap_or_else(|| "trace".to_string());
    let program = (at < words.len()).then_some(at);
    Analysis { launcher, program, name }
}

/// The first word after a launcher's or wrapper's own.
fn skip_own_words(
    prefix: &Prefix,
    words: &[String],
    mut at: usize,
    is_program: impl Fn(&str) -> bool,
) -> usize {
    let mut operands = prefix.operands;
    let mut after_unknown_option = false;
    while let Some(word) = words.get(at) {
        if word == "--" {
            return at + 1 + operands;
        }
        if let Some(option) = word.strip_prefix('-').filter(|o| !o.is_empty()) {
            let option = option.trim_start_matches('-');
            let known = prefix.values.iter().find(|(name, _)| *name == option);
            // `--name=value` and `-n4` bring their value along and are not in the list.
            after_unknown_option = known.is_none() && !option.contains('=');
            at += 1 + known.map_or(0, |(_, values)| *values);
            continue;
        }
        let assignment = !prefix.launcher && word.contains('=') && !word.starts_with(['/', '.']);
        // A word after an option we do not know, and not a program, is most likely that option's value.
        if assignment || (after_unknown_option && !is_program(word)) {
            after_unknown_option = false;
            at += 1;
        } else if operands > 0 {
            operands -= 1;
            at += 1;
        } else {
            return at;
        }
    }
    at
}

/// What the program is called: its file name, or the stem of the script it interprets.
fn program_name(words: &[String]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let program = base(first);
    if program.is_empty() {
        return None;
    }
    script(program, rest).or_else(|| Some(program.to_string()))
}

fn script(interpreter: &str, words: &[String]) -> Option<String> {
    let stem = interpreter.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    // Options with a value, and the one that is followed by the program's text.
    let (with_value, text): (&[&str], &str) = match stem {
        "python" | "pypy" => (&["-W", "-X"], "-c"),
        "bash" | "sh" | "dash" | "zsh" | "ksh" => (&["-o", "-O"], "-c"),
        "perl" | "ruby" | "julia" | "Rscript" | "node" | "lua" => (&[], "-e"),
        _ => return None,
    };
    let mut at = 0;
    loop {
        let word = words.get(at)?;
        match word.as_str() {
            "-" => return None,
            option if option == text => return None,
            // `python3 -m mpi4py script.py` runs the script; any other module is the program.
            "-m" if words.get(at + 1).is_some_and(|module| module == "mpi4py") => at += 2,
            "-m" => return words.get(at + 1).cloned(),
            option if with_value.contains(&option) => at += 2,
            option if option.starts_with('-') => at += 1,
            script => {
                let stem = Path::new(base(script)).file_stem()?;
                return Some(stem.to_string_lossy().into_owned());
            }
        }
    }
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Analysis {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        analyse(&words, |word| {
            word.starts_with("./") || word.starts_with("/bin/") || word == "app" || word == "python3"
        })
    }

    #[track_caller]
    fn check(line: &str, name: &str) {
        assert_eq!(run(line).name, name, "{line}");
    }

    #[test]
    fn the_trace_is_named_after_the_program() {
        check("./app", "app");
        check("/opt/codes/bin/cg.C.x arg", "cg.C.x");
        check("./a.out", "a.out");
        check("./app.exe in.txt", "app.exe");
        check("app", "app");
        check("", "trace");
    }

    #[test]
    fn launchers_and_their_options_are_skipped() {
        check("mpiexec ./app", "app");
        check("mpiexec -n 9 ./app", "app");
        check("mpiexec -n 9 ./app ./other", "app");
        check("mpiexec -n 9 app 100", "app");
        check("mpiexec -n 9 ./missing-dir/../solver", "solver");
        check("mpiexec -n 9 solver -n 3", "solver");
        check("/usr/bin/mpiexec.mpich -np 4 -ppn 2 -f hosts ./app", "app");
        check("mpiexec.hydra -genv A 1 -env B ./b -l ./app", "app");
        check("mpirun --mca btl tcp,self -x LD_LIBRARY_PATH --oversubscribe -np 4 ./app", "app");
        check("mpiexec.openmpi --allow-run-as-root --oversubscribe -n 4 ./app", "app");
        check("mpirun --map-by core --bind-to core -n 4 ./app", "app");
        check("mpirun --map-by=core -n4 ./app", "app");
        check("mpirun -H a:2,b:2 --hostfile ./hosts ./app", "app");
        check("orterun -n 2 ./app : -n 1 ./other", "app");
        check("mpiexec -n 2 -- ./app", "app");
        check("srun -n 4 --mpi=pmix -c 2 ./app", "app");
        check("srun --mpi pmix -N 2 -t 10 ./app", "app");
        check("jsrun -n 4 -a 1 ./app", "app");
        check("flux run -n 4 -N 2 ./app 3", "app");
        check("mpiexec -n", "trace");
        check("mpiexec", "trace");
        check("mpiexec -configfile jobs.txt", "trace");
    }

    #[test]
    fn unknown_options_may_have_a_value() {
        check("mpiexec --new-option ./app", "app");
        check("mpiexec --new-option value ./app", "app");
        check("mpiexec --new-option value -n 3 ./app", "app");
        check("mpiexec --new-option=value solver ./app", "solver");
    }

    #[test]
    fn wrappers_are_skipped_on_both_sides() {
        check("timeout 60 mpiexec -n 4 ./app", "app");
        check("timeout -k 5 60 mpiexec -n 4 ./app", "app");
        check("env OMP_NUM_THREADS=1 mpiexec -n 4 ./app", "app");
        check("mpiexec -n 4 env A=1 B=./x ./app", "app");
        check("mpiexec -n 4 numactl -m 0 taskset 0x3 ./app", "app");
        check("nice -n 5 ./app", "app");
        check("time ./app", "app");
        check("timeout 60", "trace");
        check("./time.sh ./app", "time.sh");
        check("./mpirun.sh ./app", "mpirun.sh");
    }

    #[test]
    fn scripts_give_their_stem() {
        check("python3 solve.py", "solve");
        check("mpiexec -n 4 python3 -u -W ignore dir/solve.py --n 4", "solve");
        check("mpiexec -n 4 /usr/bin/python3.11 solve.v2.py", "solve.v2");
        check("python3 -m mpi4py solve.py", "solve");
        check("python3 -m mpi4py.bench helloworld", "mpi4py.bench");
        check("python3 -c pass", "python3");
        check("python3 -", "python3");
        check("python3", "python3");
        check("bash -e run.sh", "run");
        check("perl -e print", "perl");
        check("sh run.sh", "run");
        check("sh -c exit", "sh");
        check("julia solve.jl", "solve");
    }

    #[test]
    fn the_program_s_word() {
        assert_eq!(run("mpiexec -n 2 ./app 3").program, Some(3));
        assert_eq!(run("env A=1 python3 solve.py").program, Some(2));
        assert_eq!(run("mpiexec -n").program, None);
    }

    #[test]
    fn the_launcher_is_found_behind_wrappers() {
        assert_eq!(run("mpiexec -n 2 ./app").launcher, Some(0));
        assert_eq!(run("timeout 60 mpiexec -n 2 ./app").launcher, Some(2));
        assert_eq!(run("env A=1 /usr/bin/mpirun.openmpi ./app").launcher, Some(2));
        assert_eq!(run("./app mpiexec").launcher, None);
        assert_eq!(run("python3 mpiexec").launcher, None);
        assert_eq!(run("mpiexec srun ./app").launcher, Some(0));
    }
}
