//! Programs run with and without Refrain, each in a folder of its own and within a time limit.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::build::{self, Library, Program};
use crate::json::Json;
use crate::machine::{self, Room};
use crate::{account, once, skipped};

/// A way to trace, held against the witness: options of `refrain run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    pub options: &'static [&'static str],
    /// The trace says where in memory buffers lie.
    pub places: bool,
}

impl Setting {
    pub const DEFAULT: Setting = Setting { name: "default", options: &[], places: true };

    pub const LOOPS: Setting = Setting { name: "loops", options: &["--fold", "loops"], ..Setting::DEFAULT };

    /// For every program one of them.
    pub const TIMES: &'static [Setting] = &[
        Setting { name: "time exact", options: &["--time", "exact"], ..Setting::DEFAULT },
        Setting { name: "time binned", options: &["--time", "binned"], ..Setting::DEFAULT },
        Setting::DEFAULT,
    ];

    /// For a few programs that make every kind of call together (`tests/settings.rs`).
    pub const MORE: &'static [Setting] = &[
        Setting { name: "split off", options: &["--split", "off"], ..Setting::DEFAULT },
        Setting { name: "pointers off", options: &["--pointers", "off"], places: false },
        Setting { name: "stacks site", options: &["--stacks", "site"], ..Setting::DEFAULT },
        Setting {
            name: "stacks full",
            options: &["--stacks", "full", "--fold", "loops"],
            ..Setting::DEFAULT
        },
        Setting { name: "time off", options: &["--time", "off", "--safe", "off"], ..Setting::DEFAULT },
        Setting { name: "time histogram", options: &["--time", "histogram"], ..Setting::DEFAULT },
        Setting { name: "time exact", options: &["--time", "exact"], ..Setting::DEFAULT },
    ];
}

/// A bound against hanging, for whatever a test waits for. No program of ours takes more than a second or two; a machine under
/// load may take a hundred times that.
pub const LONG: Duration = Duration::from_secs(600);

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Lines on stderr that start so.
    pub fn lines(&self, start: &str) -> Vec<&str> {
        self.stderr.lines().filter(|l| l.starts_with(start)).collect()
    }
}

/// A traced run: its outcome, its trace, and the witness's logs.
#[derive(Debug)]
pub struct Traced {
    pub outcome: Outcome,
    pub trace: PathBuf,
    folder: PathBuf,
    ranks: u32,
}

impl Traced {
    /// `refrain dump`, rank by rank.
    pub fn dump(&self) -> Vec<Vec<Json>> {
        self.by_rank(&self.text())
    }

    /// `refrain dump`, as it was printed.
    pub fn text(&self) -> String {
        assert_ne!(self.outcome.code, LATE, "the run took more than {LONG:?}: {}", self.outcome.stderr);
        let shown = refrain(&["dump", &self.trace.to_string_lossy(), "--format", "json"]);
        assert_eq!(shown.code, 0, "refrain dump: {}\nthe run said: {}", shown.stderr, self.outcome.stderr);
        shown.stdout
    }

    /// The same, rank by rank.
    pub fn by_rank(&self, text: &str) -> Vec<Vec<Json>> {
        let mut ranks = vec![Vec::new(); self.ranks as usize];
        for line in parse(text) {
            let rank = line.get("rank").int().and_then(|r| usize::try_from(r).ok()).unwrap_or(usize::MAX);
            ranks.get_mut(rank).unwrap_or_else(|| panic!("a call of rank {rank}: {line}")).push(line);
        }
        ranks
    }

    /// What the witness saw, rank by rank.
    pub fn witness(&self) -> Vec<Vec<Json>> {
        self.logs("witness")
    }

    /// What a script wrote down itself, rank by rank.
    pub fn record(&self) -> Vec<Vec<Json>> {
        self.logs("record")
    }

    fn logs(&self, folder: &str) -> Vec<Vec<Json>> {
        let log =
            |rank| {
                let path = self.folder.join(format!("{folder}/rank.{rank}.jsonl"));
                let text = fs::read_to_string(&path);
                parse(&text.unwrap_or_else(|e| {
                    panic!("{}: {e}; the run said: {}", path.display(), self.outcome.stderr)
                }))
            };
        (0..self.ranks).map(log).collect()
    }

    /// What the witness saw of a run that was cut short: its last line may be torn, or there is none.
    pub fn witness_so_far(&self) -> Vec<Vec<Json>> {
        let log = |rank| {
            let path = self.folder.join(format!("witness/rank.{rank}.jsonl"));
            let text = fs::read_to_string(path).unwrap_or_default();
            parse(text.rfind('\n').map_or("", |end| &text[..end]))
        };
        (0..self.ranks).map(log).collect()
    }

    /// The folder of the run.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the ranks kept what they recorded while they ran.
    pub fn parts(&self) -> PathBuf {
        parts(&self.trace)
    }

    /// How a launcher whose code was to be noted has ended.
    pub fn launchers_code(&self) -> Option<i32> {
        fs::read_to_string(self.folder.join("code")).ok()?.trim().parse().ok()
    }

    /// The same run's trace in another place.
    pub fn at(self, trace: PathBuf) -> Traced {
        Traced { trace, ..self }
    }
}

fn parse(lines: &str) -> Vec<Json> {
    lines.lines().map(|line| Json::parse(line).unwrap_or_else(|e| panic!("{e} in {line}"))).collect()
}

/// The launcher and its arguments, up to the program.
pub fn launcher(library: Library, ranks: u32) -> Vec<String> {
    let options: &[&str] = match library.is_open_mpi() {
        false => &[],
        true => &["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
    };
    let mut words = vec![library.tool("mpiexec")];
    words.extend(options.iter().map(|o| o.to_string()));
    words.extend(["-n".into(), ranks.to_string()]);
    words
}

fn program_words(library: Library, program: &Program) -> Vec<String> {
    let mut words = vec![program.build(library).to_string_lossy().into_owned()];
    words.extend(program.args.iter().map(|a| a.to_string()));
    words
}

/// A fresh folder under `target/e2e/runs`. It goes with the test that made it. If that fails, or others look at it too
/// (`check::seen`), it stays until the next time the tests run.
pub fn folder(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    static SWEPT: Once = Once::new();
    SWEPT.call_once(sweep);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = build::target().join(format!("e2e/runs/{name}.{}.{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    account::owns(&folder);
    folder
}

/// Removes what earlier processes left.
fn sweep() {
    let runs = build::target().join("e2e/runs");
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.rsplit('.').nth(1).unwrap_or("0");
        if !Path::new("/proc").join(owner).exists() {
            // Another test may sweep at the same time; what is gone is gone.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A place for what one launcher's ranks print, and for the files of Open MPI. In the usual one a launcher that ends removes the
/// folder that another is about to use, and that one fails. Its path is short: sockets are made there.
#[derive(Debug)]
struct Apart(PathBuf);

impl Apart {
    fn new() -> Apart {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rfo-{}-{number}", std::process::id()));
        for_everybody(&path);
        Apart(path)
    }
}

/// A folder that every user may write to: some programs are another user's.
fn for_everybody(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let everybody = fs::Permissions::from_mode(0o1777);
    fs::set_permissions(path, everybody).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

impl Drop for Apart {
    fn drop(&mut self) {
        // What cannot be removed is only in the way.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a command in that folder when there is room for its ranks; killed with all its children when the time is up.
pub fn command(folder: &Path, words: &[String], environment: &[(&str, String)]) -> Outcome {
    let outcome = attempt(folder, words, environment);
    in_time(words, &outcome);
    outcome
}

/// The same for who asks itself whether the time was up: exit code [`LATE`].
fn attempt(folder: &Path, words: &[String], environment: &[(&str, String)]) -> Outcome {
    let _room = Room::for_ranks(machine::ranks(words));
    let outcome = at_once(folder, words, environment, &UnderWay::default());
    account::ran(words, folder, &outcome);
    outcome
}

/// What `timeout` says when the time is up.
const LATE: i32 = 124;

fn in_time(words: &[String], outcome: &Outcome) {
    assert_ne!(outcome.code, LATE, "{words:?} took more than {LONG:?}");
}

/// Runs a command for which there is room.
fn at_once(folder: &Path, words: &[String], environment: &[(&str, String)], under_way: &UnderWay) -> Outcome {
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    let apart = Apart::new();
    let prints = apart.0.join("prints");
    for_everybody(&prints);
    // Who is told to end has a minute to write what it has. Who has to be killed ends with another code than `LATE`.
    let limited = [&self::words(&["timeout", "-k", "60", &LONG.as_secs().to_string()]), words].concat();
    let mut command = prepared(folder, &limited, &apart, (&out, &err));
    command.env("PRINTS", &prints).envs(environment.iter().map(|(k, v)| (k, v)));
    let child = command.spawn().unwrap_or_else(|e| build::missing(&format!("{limited:?}: {e}")));
    under_way.begins(child.id());
    let status = account::end_of(child, || under_way.is_over());
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let printed = read(&out) + &printed(&prints);
    fs::write(&out, &printed).unwrap_or_else(|e| panic!("{}: {e}", out.display()));
    let outcome = Outcome { code: status.code().unwrap_or(-1), stdout: printed, stderr: read(&err) };
    // What the launcher itself is told when it is not there; 127 is also what a shell would say.
    if outcome.code == 127 && outcome.stderr.contains("failed to run command") {
        build::missing(&outcome.stderr);
    }
    outcome
}

fn prepared(folder: &Path, words: &[String], apart: &Apart, (out, err): (&Path, &Path)) -> Command {
    let open = |path: &Path| File::create(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut command = Command::new("env");
    // Who runs the tests may ignore signals, as shells do for what they start in the background.
    command
        .arg("--default-signal")
        .args(words)
        .env("OMPI_MCA_orte_tmpdir_base", &apart.0)
        .current_dir(folder);
    command.stdin(std::process::Stdio::null()).stdout(open(out)).stderr(open(err));
    command
}

/// The process of a command. 0: there is none, yet or any more.
#[derive(Default)]
struct UnderWay(AtomicU32);

impl UnderWay {
    /// Instead of a process: it is to end as soon as it begins.
    const TO_END: u32 = u32::MAX;

    fn begins(&self, process: u32) {
        if self.0.compare_exchange(0, process, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            kill("-TERM", &[(0, process)]);
        }
    }

    /// Its number may be another's from here on.
    fn is_over(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

/// Ends the command if it is dropped by a panic. `timeout` passes the signal on to its process group, and kills what does not end.
struct EndedByPanic<'a>(&'a UnderWay);

impl Drop for EndedByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let process = self.0.0.swap(UnderWay::TO_END, Ordering::SeqCst);
            if process != 0 {
                kill("-TERM", &[(0, process)]);
            }
        }
    }
}

/// A process that goes on beside the test, and ends with it: also by a panic. Who starts it has taken room for its ranks.
#[derive(Debug)]
pub struct Started {
    pub process: Child,
    _apart: Apart,
}

/// Starts a command in that folder, where what it prints goes to `NAME.out` and `NAME.err`.
pub fn start(folder: &Path, name: &str, words: &[String]) -> Started {
    let apart = Apart::new();
    let [out, err] = ["out", "err"].map(|end| folder.join(format!("{name}.{end}")));
    let process = prepared(folder, words, &apart, (&out, &err)).spawn();
    Started { process: process.unwrap_or_else(|e| build::missing(&format!("{words:?}: {e}"))), _apart: apart }
}

impl Drop for Started {
    fn drop(&mut self) {
        // One that was not asked how it ended still has its number.
        if let Ok(None) = self.process.try_wait() {
            kill("-TERM", &[(0, self.process.id())]);
            // If it cannot be waited for, it is gone.
            let _ = self.process.wait();
        }
    }
}

/// Waits until it is so; false if it is not within [`LONG`].
pub fn until(is_so: impl FnMut() -> bool) -> bool {
    within(LONG, is_so)
}

/// The same within another time: that of something that must not happen.
pub fn within(most: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > most {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// What the ranks printed, one after the other.
fn printed(folder: &Path) -> String {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let rank = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut files: Vec<(u32, PathBuf)> = names.filter_map(|path| Some((rank(&path)?, path))).collect();
    files.sort();
    let read = |(_, path): &(u32, PathBuf)| {
        String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
    };
    files.iter().map(read).collect()
}

/// `refrain` with these arguments, away from any MPI.
pub fn refrain(args: &[&str]) -> Outcome {
    let mut words = vec![build::refrain().to_string_lossy().into_owned()];
    words.extend(args.iter().map(|a| a.to_string()));
    let folder = folder("refrain");
    let outcome = command(&folder, &words, &[]);
    let _ = fs::remove_dir_all(folder);
    outcome
}

/// Words of a command.
pub fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|word| word.to_string()).collect()
}

/// `refrain` with these arguments in a folder, where it may start ranks. `before` it what it is run by.
pub fn refrain_in(before: &[&str], folder: &Path, args: &[String]) -> Outcome {
    let mut all = words(before);
    all.push(build::refrain().to_string_lossy().into_owned());
    all.extend_from_slice(args);
    command(folder, &all, &[preload(&[])])
}

/// Traces the program `app` of a folder, which is called the same whichever library it is linked with: its name is an
/// argument of `MPI_Init`.
pub fn trace_app(
    folder: &Path,
    library: Library,
    trace: &str,
    ranks: u32,
    args: &[&str],
    options: &[&str],
) -> Outcome {
    let mut all = words(&["run", "--quiet", "--out", trace]);
    all.extend(words(options));
    all.push("--".into());
    all.extend(launcher(library, ranks));
    all.push("./app".into());
    all.extend(words(args));
    let outcome = refrain_in(&[], folder, &all);
    assert_eq!(outcome.code, 0, "{}: {}{}", folder.display(), outcome.stdout, outcome.stderr);
    outcome
}

/// What makes ranks rest and gives what they print a file of its own, behind other libraries.
fn preload(first: &[&Path]) -> (&'static str, String) {
    let ours = [build::yielding(), build::printing()];
    let all = first.iter().copied().chain(ours.iter().map(PathBuf::as_path));
    ("LD_PRELOAD", all.map(Path::to_string_lossy).collect::<Vec<_>>().join(":"))
}

/// Without Refrain and without witness.
pub fn untraced(library: Library, program: &Program, ranks: u32) -> Outcome {
    let words = [launcher(library, ranks), program_words(library, program)].concat();
    attempt(&folder(program.name()), &words, &[preload(&[])])
}

/// The same, of a program that ends well: once for all tests that ask for it, because all of our programs print the same every
/// time.
pub fn plain(library: Library, program: &Program, ranks: u32) -> Outcome {
    static KNOWN: once::Once<Outcome> = once::Once::new();
    machine::has_no_room();
    KNOWN.get(&format!("{library:?} {ranks} {program:?}"), || ends_well(library, program, ranks))
}

/// That a program fails untraced says nothing about Refrain: it is run again, once, and counted.
fn ends_well(library: Library, program: &Program, ranks: u32) -> Outcome {
    let first = untraced(library, program, ranks);
    if first.code == 0 {
        return first;
    }
    inconclusive(&format!(
        "{} on {ranks} ranks of {}, untraced: exit code {}",
        program.name(),
        library.suffix(),
        first.code
    ));
    let second = untraced(library, program, ranks);
    assert_eq!(second.code, 0, "untraced, and twice: {}{}", second.stdout, second.stderr);
    second
}

/// A traced run that had to end well and did not: is the machine to blame? If the program fails untraced too, the run is
/// counted as inconclusive and made once more.
pub fn conclusive(library: Library, program: &Program, ranks: u32, traced: impl Fn() -> Traced) -> Traced {
    let first = traced();
    if first.outcome.code == 0 || untraced(library, program, ranks).code == 0 {
        return first;
    }
    inconclusive(&format!(
        "{} on {ranks} ranks of {}, traced and untraced",
        program.name(),
        library.suffix()
    ));
    traced()
}

/// Counted where `make test` finds it.
pub fn inconclusive(what: &str) {
    let path = build::target().join("e2e/inconclusive");
    let file = fs::OpenOptions::new().create(true).append(true).open(&path);
    let mut file = file.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    writeln!(file, "{what}").unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    skipped(&format!("inconclusive, run again: {what}"));
}

/// With the witness alone; its logs are checked to be there.
pub fn witnessed(library: Library, program: &Program, ranks: u32) -> (Outcome, Vec<Vec<Json>>) {
    let folder = folder(program.name());
    let words = [launcher(library, ranks), program_words(library, program)].concat();
    let outcome = command(&folder, &words, &witness_environment(&folder, library, program, &[]));
    let traced = Traced { outcome, trace: PathBuf::new(), folder, ranks };
    let witness = traced.witness();
    (traced.outcome, witness)
}

/// The witness stays before what is `behind` it: it looks at the address that a call comes from.
fn witness_environment(
    folder: &Path,
    library: Library,
    program: &Program,
    behind: &[&Path],
) -> Vec<(&'static str, String)> {
    let logs = folder.join("witness");
    fs::create_dir_all(&logs).unwrap_or_else(|e| panic!("{}: {e}", logs.display()));
    let witness = build::witness(library);
    let mut environment = vec![
        preload(&[&[witness.as_path()], behind].concat()),
        ("WITNESS_DIR", logs.to_string_lossy().into_owned()),
    ];
    if program.moves_requests() {
        environment.push(("WITNESS_FORTRAN", "1".into()));
    }
    environment
}

/// With both: `refrain run -- mpiexec -n RANKS program`, the witness in front of Refrain's library.
pub fn traced(library: Library, program: &Program, ranks: u32) -> Traced {
    traced_as(library, program, ranks, Setting::DEFAULT)
}

/// The same with options.
pub fn traced_as(library: Library, program: &Program, ranks: u32, setting: Setting) -> Traced {
    traced_seen(library, program, ranks, setting, &[])
}

/// The same, and more in the environment.
pub fn traced_seen(
    library: Library,
    program: &Program,
    ranks: u32,
    setting: Setting,
    more: &[(&'static str, &str)],
) -> Traced {
    let folder = folder(program.name());
    let mut environment = witness_environment(&folder, library, program, &[]);
    environment.extend(more.iter().map(|(k, v)| (*k, v.to_string())));
    traced_in(folder, &[], library, program, ranks, setting, &environment)
}

/// With Refrain alone, and more in the environment.
pub fn traced_with(library: Library, program: &Program, ranks: u32, more: &[(&'static str, &str)]) -> Traced {
    let mut environment = vec![preload(&[])];
    environment.extend(more.iter().map(|(k, v)| (*k, v.to_string())));
    traced_in(folder(program.name()), &[], library, program, ranks, Setting::DEFAULT, &environment)
}

/// What fills the outputs of calls with rubbish, and where the rubbish begins (`tests/fill`).
#[derive(Debug, Clone, Copy)]
pub struct Filler<'a> {
    pub library: &'a Path,
    pub seed: u32,
}

/// With both, and a filler behind the witness. Addresses are the same in each run.
pub fn traced_filled(
    filler: Filler<'_>,
    library: Library,
    program: &Program,
    ranks: u32,
    setting: Setting,
) -> Traced {
    let folder = folder(program.name());
    let environment = witness_environment(&folder, library, program, &[filler.library]);
    behind(filler, folder, library, program, ranks, setting, environment)
}

/// The same without the witness.
pub fn traced_behind(
    filler: Filler<'_>,
    library: Library,
    program: &Program,
    ranks: u32,
    setting: Setting,
) -> Traced {
    let environment = vec![preload(&[filler.library])];
    behind(filler, folder(program.name()), library, program, ranks, setting, environment)
}

fn behind(
    filler: Filler<'_>,
    folder: PathBuf,
    library: Library,
    program: &Program,
    ranks: u32,
    setting: Setting,
    mut environment: Vec<(&'static str, String)>,
) -> Traced {
    environment.push(("FILL_SEED", filler.seed.to_string()));
    traced_in(folder, &["setarch", "-R"], library, program, ranks, setting, &environment)
}

fn parts(trace: &Path) -> PathBuf {
    trace.with_file_name(format!("{}.parts", trace.file_name().unwrap_or_default().to_string_lossy()))
}

/// The ranks of a run that is under way, by what they keep: rank and process.
pub fn processes(parts: &Path) -> Vec<(u32, u32)> {
    let names = fs::read_dir(parts).into_iter().flatten().flatten().map(|e| e.file_name());
    let process = |name: String| {
        let name = name.strip_suffix("-0.part")?;
        Some((name.split('-').next()?.parse().ok()?, name.rsplit('-').next()?.parse().ok()?))
    };
    let mut found: Vec<_> = names.filter_map(|name| process(name.into_string().ok()?)).collect();
    found.sort();
    found
}

/// More of a traced run than most need.
#[derive(Debug, Default)]
pub struct Special<'a> {
    /// In front of `refrain run`.
    pub before: &'a [&'a str],
    /// Where the trace goes, if not into the run's folder.
    pub trace: Option<PathBuf>,
    pub environment: &'a [(&'static str, &'a str)],
    pub unwitnessed: bool,
    /// `mpiexec refrain run` instead of `refrain run mpiexec`.
    pub inside: bool,
    /// Without `--force`.
    pub careful: bool,
    /// With a shell in between that notes the launcher's own exit code: [`Traced::launchers_code`].
    pub code_noted: bool,
}

/// Does something to a run while it is under way: it is given the place where the ranks keep what they record.
pub fn traced_while(
    library: Library,
    program: &Program,
    ranks: u32,
    special: &Special<'_>,
    meanwhile: impl FnOnce(&Path),
) -> Traced {
    let folder = folder(program.name());
    let mut environment = if special.unwitnessed {
        vec![preload(&[])]
    } else {
        witness_environment(&folder, library, program, &[])
    };
    environment.extend(special.environment.iter().map(|(k, v)| (*k, v.to_string())));
    let trace = special.trace.clone().unwrap_or_else(|| folder.join("trace.rfn"));
    let mut refrain = vec![build::refrain().to_string_lossy().into_owned(), "run".into()];
    refrain.extend(["--out".into(), trace.to_string_lossy().into_owned()]);
    if !special.careful {
        refrain.push("--force".into());
    }
    refrain.push("--".into());
    let launcher = launcher(library, ranks);
    let mut words: Vec<String> = special.before.iter().map(|w| w.to_string()).collect();
    if special.code_noted {
        refrain
            .extend(["sh", "-c", "\"$@\"; code=$?; echo $code >code; exit $code", "sh"].map(str::to_owned));
    }
    words.extend(if special.inside { [launcher, refrain] } else { [refrain, launcher] }.concat());
    words.extend(program_words(library, program));
    let parts = parts(&trace);
    let room = Room::for_ranks(machine::ranks(&words));
    let under_way = UnderWay::default();
    let outcome = std::thread::scope(|scope| {
        let run = scope.spawn(|| at_once(&folder, &words, &environment, &under_way));
        // The scope waits for the run, whatever becomes of what is done meanwhile.
        let ended = EndedByPanic(&under_way);
        meanwhile(&parts);
        drop(ended);
        run.join().unwrap_or_else(|panic| {
            account::fail();
            std::panic::resume_unwind(panic)
        })
    });
    drop(room);
    account::ran(&words, &folder, &outcome);
    in_time(&words, &outcome);
    Traced { outcome, trace, folder, ranks }
}

/// With both, in special circumstances.
pub fn traced_special(library: Library, program: &Program, ranks: u32, special: &Special<'_>) -> Traced {
    traced_while(library, program, ranks, special, |_| {})
}

/// In front of `refrain run`, so that it can be [told](tell) something.
pub const NOTED: [&str; 3] = ["sh", "-c", "echo $$ >process; exec \"$0\" \"$@\""];

/// Sends a signal to a `refrain run` that is [noted](NOTED), of which this is where its ranks keep what they record.
pub fn tell(signal: &str, parts: &Path) {
    let noted = fs::read_to_string(parts.with_file_name("process")).unwrap_or_default();
    if let Ok(process) = noted.trim().parse() {
        kill(signal, &[(0, process)]);
    }
}

/// Sends a signal to these processes, all at once.
pub fn kill(signal: &str, processes: &[(u32, u32)]) {
    // The shell's own: a small system has no program of that name.
    let ids: Vec<String> = processes.iter().map(|p| p.1.to_string()).collect();
    let status = Command::new("sh").arg("-c").arg(format!("kill {signal} {}", ids.join(" "))).status();
    // One may have ended meanwhile.
    status.unwrap_or_else(|e| build::missing(&format!("kill: {e}")));
}

fn traced_in(
    folder: PathBuf,
    before: &[&str],
    library: Library,
    program: &Program,
    ranks: u32,
    setting: Setting,
    environment: &[(&'static str, String)],
) -> Traced {
    let trace = folder.join("trace.rfn");
    let mut words: Vec<String> = before.iter().map(|w| w.to_string()).collect();
    words.push(build::refrain().to_string_lossy().into_owned());
    words.extend(["run".into(), "--out".into(), trace.to_string_lossy().into_owned(), "--force".into()]);
    words.extend(setting.options.iter().map(|o| o.to_string()));
    words.push("--".into());
    words.extend(launcher(library, ranks));
    words.extend(program_words(library, program));
    // A program may hang untraced too: `conclusive` asks.
    let outcome = attempt(&folder, &words, environment);
    Traced { outcome, trace, folder, ranks }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracing {
    On,
    Off,
}

/// A script of `tests/python`, by the Python that the library belongs to.
pub fn script(library: Library, script: &str, ranks: u32, tracing: Tracing) -> Traced {
    let options: &[&str] = &[];
    script_with(library, script, ranks, (tracing == Tracing::On).then_some(options), &[])
}

/// The same, traced with these options or not at all, and more in the environment.
pub fn script_with(
    library: Library,
    script: &str,
    ranks: u32,
    traced: Option<&[&str]>,
    more: &[(&'static str, &str)],
) -> Traced {
    let folder = folder(script);
    let record = folder.join("record");
    fs::create_dir_all(&record).unwrap_or_else(|e| panic!("{}: {e}", record.display()));
    let trace = folder.join("trace.rfn");
    let mut words = Vec::new();
    if let Some(options) = traced {
        words.push(build::refrain().to_string_lossy().into_owned());
        words.extend(["run", "--out", &trace.to_string_lossy()].map(String::from));
        words.extend(options.iter().map(|option| option.to_string()));
        words.push("--".into());
    }
    words.extend(launcher(library, ranks));
    words.extend([build::python(library), build::script(script)].map(|p| p.to_string_lossy().into_owned()));
    let mut environment = vec![("RECORD_DIR", record.to_string_lossy().into_owned()), preload(&[])];
    environment.extend(more.iter().map(|(k, v)| (*k, v.to_string())));
    let outcome = command(&folder, &words, &environment);
    Traced { outcome, trace, folder, ranks }
}

/// The other way round: `mpiexec -n RANKS refrain run -- program`.
pub fn traced_inside(library: Library, program: &Program, ranks: u32) -> Traced {
    let folder = folder(program.name());
    let trace = folder.join("trace.rfn");
    let mut words = launcher(library, ranks);
    words.push(build::refrain().to_string_lossy().into_owned());
    words.extend([
        "run".into(),
        "--out".into(),
        trace.to_string_lossy().into_owned(),
        "--force".into(),
        "--".into(),
    ]);
    words.extend(program_words(library, program));
    let outcome = command(&folder, &words, &witness_environment(&folder, library, program, &[]));
    Traced { outcome, trace, folder, ranks }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Before the process is there, and after.
    #[test]
    fn a_panic_ends_what_is_under_way() {
        for waits in [false, true] {
            let (folder, under_way) = (folder("ended"), UnderWay::default());
            let code = Mutex::new(None);
            let panicked = std::panic::catch_unwind(|| {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let outcome = at_once(&folder, &words(&["sleep", "600"]), &[], &under_way);
                        *code.lock().unwrap() = Some(outcome.code);
                    });
                    let _ended = EndedByPanic(&under_way);
                    while waits && under_way.0.load(Ordering::SeqCst) == 0 {
                        std::thread::yield_now();
                    }
                    panic!("as a test does");
                })
            });
            assert!(panicked.is_err());
            assert!(code.into_inner().unwrap().is_some_and(|code| code != 0));
            fs::remove_dir_all(folder).unwrap();
        }
    }
}
