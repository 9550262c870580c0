//! How ranks come together in `MPI_Finalize`, on both MPI libraries: whatever state the program is in, and whoever does not
//! come, it ends as it would untraced, and its trace is there. Ignored in a plain `cargo test`, because it needs the MPI
//! libraries and the built command.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use refrain_e2e::run::{self, Outcome};
use refrain_e2e::{Library, Program, build, skipped};

const RANKS: u32 = 3;
/// For ranks that come.
const LONG: &str = "500";
/// For ranks that never come. Under load, others may be late too.
const SHORT: &str = "5";

/// What a run is to be like.
struct Run<'a> {
    args: &'static [&'static str],
    options: &'a [&'a str],
    /// Between launcher and program.
    before: &'a [&'a str],
    patience: &'a str,
    ranks: u32,
    /// Where the trace goes, if not into the run's folder.
    trace: Option<&'a Path>,
}

impl Run<'_> {
    fn of(args: &'static [&'static str]) -> Run<'static> {
        Run { args, options: &[], before: &[], patience: LONG, ranks: RANKS, trace: None }
    }
}

/// A traced run and the same without Refrain.
struct Both {
    what: String,
    plain: Outcome,
    traced: Outcome,
    trace: PathBuf,
}

fn both(library: Library, run: &Run<'_>) -> Both {
    let program = Program { source: "finalizing.c", args: run.args, ..Program::named("ring") };
    let what = format!("{:?} on {}", run.args, library.suffix());
    let path = program.build(library).to_string_lossy().into_owned();
    let owned = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let launched =
        [run::launcher(library, run.ranks), owned(run.before), vec![path], owned(run.args)].concat();
    let environment = [("LD_PRELOAD", build::yielding().to_string_lossy().into_owned())];
    let plain = run::command(&run::folder("finalizing"), &launched, &environment);
    let folder = run::folder("finalizing");
    let trace = run.trace.map_or_else(|| folder.join("trace.rfn"), Path::to_owned);
    let out = trace.to_string_lossy().into_owned();
    let refrain = build::refrain().to_string_lossy().into_owned();
    let mut words = owned(&[&refrain, "run", "--force", "--out", &out, "--patience", run.patience]);
    words.extend(owned(run.options));
    words.push("--".into());
    let traced = run::command(&folder, &[words, launched].concat(), &environment);
    let both = Both { what, plain, traced, trace };
    let said = both.said();
    assert_eq!(both.traced.code, both.plain.code, "{said}");
    // UCX warns of what a program leaves unfinished.
    let told = |outcome: &Outcome| {
        let lines = outcome.stdout.lines().filter(|line| line.starts_with("finaliz"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(&both.traced), told(&both.plain), "{said}");
    assert_eq!(told(&both.plain).len(), 2, "{said}");
    both
}

impl Both {
    fn said(&self) -> String {
        format!("{}: {}\nuntraced: {}", self.what, self.traced.stderr, self.plain.stderr)
    }

    /// How many lines of Refrain's begin so.
    fn lines(&self, start: &str) -> usize {
        self.traced.lines(&format!("refrain: {start}")).len()
    }

    /// One line begins so and names ranks that have not come, this one among them. Others may be late.
    fn misses(&self, start: &str, rank: u32) {
        let lines = self.traced.lines(&format!("refrain: {start}: rank"));
        let &[line] = &lines[..] else { panic!("{lines:?}\n{}", self.said()) };
        let named = line.split_once(": rank").and_then(|(_, rest)| rest.split_once(" not come"));
        let named = named.map_or("", |(ranks, _)| ranks);
        let named = named.trim_start_matches('s').trim_end_matches(" has").trim_end_matches(" have").trim();
        let has = |range: &str| {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            from.parse().is_ok_and(|from: u32| from <= rank) && to.parse().is_ok_and(|to: u32| rank <= to)
        };
        assert!(named.split(',').any(has), "rank {rank}: {}", self.said());
    }

    /// `refrain info` of a trace that can be verified, beside which nothing is left. All calls of these ranks are there.
    fn info(&self, ranks: &[u32]) -> String {
        let path = self.trace.to_string_lossy().into_owned();
        let verified = run::refrain(&["verify", &path]);
        assert_eq!(verified.code, 0, "{}{}\n{}", verified.stdout, verified.stderr, self.said());
        for rank in ranks {
            let dump = run::refrain(&["dump", &path, "--rank", &rank.to_string()]).stdout;
            let last = dump.lines().last().unwrap_or_default().to_owned();
            assert!(last.contains("MPI_Finalize"), "rank {rank} ends with {last}\n{}", self.said());
            assert!(dump.lines().count() > 30, "{dump}");
        }
        let beside =
            fs::read_dir(self.trace.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
        let beside: Vec<String> = beside.filter_map(|name| name.into_string().ok()).collect();
        assert!(!beside.iter().any(|name| name.contains("parts")), "{beside:?}\n{}", self.said());
        let info = run::refrain(&["info", &path]);
        assert_eq!(info.code, 0, "{}", info.stderr);
        println!("{}: exit code {}\n{}", self.what, self.traced.code, self.traced.stderr);
        info.stdout
    }

    fn is_complete(&self) {
        let info = self.info(&(0..RANKS).collect::<Vec<_>>());
        assert!(info.contains(", complete"), "{info}\n{}", self.said());
    }
}

/// A collective that one rank begins and the others never do makes no difference to the merge.
fn uneven(how: &'static str) {
    for library in Library::ALL {
        for rank in ["0", "1"] {
            let both = both(library, &Run::of(Vec::leak(vec![how, rank])));
            both.is_complete();
            assert_eq!(both.lines("no trace"), 0, "{}", both.said());
        }
    }
}

macro_rules! uneven {
    ($($name:ident: $how:expr;)*) => {
        $(#[test] #[ignore = "needs MPI: `make test`"] fn $name() { uneven($how) })*
    };
}

uneven! {
    a_barrier_of_one_rank: "ibarrier";
    a_broadcast_of_one_rank: "ibcast";
    a_gather_of_one_rank: "igather";
    a_reduction_of_one_rank: "iallreduce";
    an_exchange_of_one_rank: "ialltoall";
    a_receive_that_was_not_started: "idle";
}

/// A receive that takes anything takes nothing of ours: on Open MPI, where it could, the ranks send nothing.
#[test]
#[ignore = "needs MPI: `make test`"]
fn receives_that_are_outstanding() {
    for library in Library::ALL {
        for how in ["irecv", "precv"] {
            for rank in ["0", "1"] {
                let both = both(library, &Run::of(Vec::leak(vec![how, rank])));
                both.is_complete();
                let apart = usize::from(library == Library::OpenMpi);
                let why = both.traced.stderr.matches("which could take our messages").count();
                assert_eq!(why, apart, "{}", both.said());
            }
        }
    }
}

/// There is no communicator left for us, on all ranks or on one.
#[test]
#[ignore = "needs MPI: `make test`"]
fn exhausted_communicators() {
    for library in Library::ALL {
        for args in [&["exhaust"] as &[_], &["exhaust", "0"], &["exhaust", "1"]] {
            let both = both(library, &Run::of(args));
            both.is_complete();
            // Open MPI has more than anybody makes.
            let failed = usize::from(library == Library::Mpich);
            assert_eq!(
                both.lines("no trace yet: the ranks could not be brought together"),
                failed,
                "{}",
                both.said()
            );
        }
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// The program becomes another user on the way. Needs root.
#[test]
#[ignore = "needs MPI: `make test`"]
fn other_rights_than_at_the_beginning() {
    if !is_root() {
        skipped("setuid: only root can");
        return;
    }
    for library in Library::ALL {
        for (args, patience) in
            [(&["setuid"] as &[_], LONG), (&["setuid", "1"], SHORT), (&["setuid", "0"], SHORT)]
        {
            let both = both(library, &Run { patience, ..Run::of(args) });
            both.is_complete();
            assert!(both.lines("no trace yet") > 0, "{}", both.said());
        }
    }
}

/// No file may grow: the program is not told, and the trace is written by `refrain run`.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_limit_on_the_size_of_files() {
    for library in Library::ALL {
        let both = both(library, &Run::of(&["fsize"]));
        both.is_complete();
        assert_eq!(both.lines("no trace: "), 1, "{}", both.said());
    }
}

/// Nobody reads what we say.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_pipe_that_nobody_reads() {
    for library in Library::ALL {
        both(library, &Run::of(&["pipe"])).is_complete();
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn closed_standard_files() {
    for library in Library::ALL {
        both(library, &Run::of(&["closed"])).is_complete();
    }
}

/// No file can be opened on all ranks, or on one.
#[test]
#[ignore = "needs MPI: `make test`"]
fn no_file_descriptor_left() {
    for library in Library::ALL {
        for (args, patience) in
            [(&["nofile"] as &[_], LONG), (&["nofile", "1"], SHORT), (&["nofile", "0"], SHORT)]
        {
            both(library, &Run { patience, ..Run::of(args) }).is_complete();
        }
    }
}

/// No memory is left on one rank, or on all.
#[test]
#[ignore = "needs MPI: `make test`"]
fn no_memory_left() {
    for library in Library::ALL {
        for args in [&["memory"] as &[_], &["memory", "0"], &["memory", "1"]] {
            let both = both(library, &Run::of(args));
            both.is_complete();
            assert_eq!(both.lines("no trace yet"), 1, "{}", both.said());
        }
    }
}

/// The rank of which the launcher's variables say that it is this one runs without us.
fn untraced(rank: u32) -> String {
    format!("case ${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} in {rank}) unset LD_PRELOAD;; esac; exec \"$@\"")
}

/// One rank is not traced: the others do not wait for it for ever.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_rank_that_is_not_traced() {
    for library in Library::ALL {
        for rank in [0, 1] {
            let script = untraced(rank);
            let before = ["sh", "-c", &script, "sh"];
            let both = both(library, &Run { before: &before, patience: SHORT, ..Run::of(&["well"]) });
            both.misses("no trace yet", rank);
            let there: Vec<u32> = (0..RANKS).filter(|there| *there != rank).collect();
            let info = both.info(&there);
            assert!(info.contains("partial"), "{info}");
            assert!(info.contains(&format!("rank {rank}: nothing was kept")), "{info}");
            assert!(!info.contains("every call of every rank,"), "{info}");
        }
    }
}

/// On another host, of which rank 1 is the first, there is no such directory. It says so itself.
#[test]
#[ignore = "needs MPI: `make test`"]
fn no_place_for_the_parts_of_one_rank() {
    for library in Library::ALL {
        let script = "case ${PMI_RANK:-$OMPI_COMM_WORLD_RANK} in 1) export REFRAIN_OUT=/no/such/place/t.rfn \
                      MPI_LOCALRANKID=0 OMPI_COMM_WORLD_LOCAL_RANK=0;; esac; exec \"$@\"";
        let before = ["sh", "-c", script, "sh"];
        let both = both(library, &Run { before: &before, patience: SHORT, ..Run::of(&["well"]) });
        let line = "what is recorded would not survive a crash, the program goes on: rank 1 on ";
        assert_eq!(both.lines(line), 1, "{}", both.said());
        assert!(both.traced.stderr.contains(": /no/such/place"), "{}", both.said());
        let info = both.info(&[0, 2]);
        assert!(info.contains("rank 1: nothing was kept"), "{info}");
        assert!(
            info.contains("calls: every call of every rank but those that are missing (see notes),"),
            "{info}"
        );
    }
}

/// A directory that goes also where a test fails.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// MPI would fail in the merge itself, and on some ranks only: after `setuid` MPICH cannot reach the memory of other
/// processes any more. So nothing is sent.
#[test]
#[ignore = "needs MPI: `make test`"]
fn other_rights_where_all_may_write() {
    if !is_root() {
        skipped("setuid: only root can");
        return;
    }
    for library in Library::ALL {
        // The parts are for the old user: the new one meets elsewhere. It must get to where the trace would be.
        let folder =
            PathBuf::from(format!("/tmp/refrain-finalizing-{}-{}", library.suffix(), std::process::id()));
        let folder = Removed(folder);
        fs::create_dir(&folder.0).unwrap();
        fs::set_permissions(&folder.0, PermissionsExt::from_mode(0o1777)).unwrap();
        let trace = folder.0.join("t.rfn");
        let both =
            both(library, &Run { options: &["--safe", "off"], trace: Some(&trace), ..Run::of(&["setuid"]) });
        assert_eq!(both.lines("no trace: ranks 0-2 are another user's since MPI_Init"), 1, "{}", both.said());
    }
}

/// A rank is stopped, the others go on without it, and then it comes.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_rank_that_comes_late() {
    for library in Library::ALL {
        let args = ["stopped", "trace.rfn.parts", "trace.rfn.parts/meet-*.decision"];
        let both = both(library, &Run { patience: SHORT, ..Run::of(Vec::leak(args.to_vec())) });
        both.is_complete();
        both.misses("no trace yet", 2);
    }
}

/// A rank needs another one's help to come at all, which waits for it in `MPI_Finalize`.
#[test]
#[ignore = "needs MPI: `make test`"]
fn a_message_that_is_still_on_its_way() {
    for library in Library::ALL {
        let both = both(library, &Run::of(&["freed"]));
        both.is_complete();
        assert_eq!(both.lines("no trace"), 0, "{}", both.said());
    }
}

/// Nothing is kept while the program runs: the ranks meet all the same, and nothing of it is left.
#[test]
#[ignore = "needs MPI: `make test`"]
fn nothing_kept() {
    for library in Library::ALL {
        let both = both(library, &Run { options: &["--safe", "off"], ..Run::of(&["well"]) });
        both.is_complete();
        let script = untraced(1);
        let (before, options) = (["sh", "-c", &script, "sh"], ["--safe", "off"]);
        let run = Run { before: &before, options: &options, patience: SHORT, ..Run::of(&["well"]) };
        let both = self::both(library, &run);
        both.misses("no trace", 1);
        assert!(!both.trace.exists() && !both.trace.with_extension("rfn.parts").exists(), "{}", both.said());
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn into_a_device() {
    for library in Library::ALL {
        let device = Path::new("/dev/null");
        let both = both(library, &Run { trace: Some(device), ..Run::of(&["well"]) });
        assert_eq!(both.lines("3 ranks, "), 1, "{}", both.said());
    }
}

/// One rank alone meets nobody.
#[test]
#[ignore = "needs MPI: `make test`"]
fn one_rank_alone() {
    for library in Library::ALL {
        for how in ["well", "exhaust", "nofile", "setuid"] {
            let both = both(library, &Run { ranks: 1, ..Run::of(Vec::leak(vec![how])) });
            let info = both.info(&[0]);
            assert!(info.contains(", complete"), "{info}\n{}", both.said());
        }
    }
}
