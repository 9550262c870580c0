//! Memory of GPUs, on machines without one: programs linked with a stand-in for CUDA's or HIP's runtime (`tests/cuda`),
//! whose device memory any MPI library can read. `scripts/gpu-check` runs the same program on a real GPU.
//! Ignored in a plain `cargo test`: needs the MPI libraries and the built command.

use std::path::PathBuf;
use std::process::Command;

use refrain_e2e::json::Json;
use refrain_e2e::{Library, build, run};

#[derive(Clone, Copy, PartialEq)]
enum Runtime {
    Cuda,
    Hip,
    /// No runtime when the program starts: it is loaded later, as one is that nvcc linked into the program.
    Late,
}

impl Runtime {
    fn file(self) -> &'static str {
        match self {
            Runtime::Cuda => "libcudart.so.12",
            Runtime::Hip => "libamdhip64.so.6",
            Runtime::Late => "libcuda.so.1",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Runtime::Cuda => &[],
            Runtime::Hip => &["-DHIP"],
            Runtime::Late => &["-DDRIVER", "-DLATE"],
        }
    }

    fn build(self, library: Library) -> PathBuf {
        let target = build::folder_for(library).join(self.file());
        build::make(&target, &[&build::sources().join("cuda/runtime.c")], |part| {
            let mut command = Command::new("cc");
            command.args(["-shared", "-fPIC", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]);
            command.args(self.options()).arg(format!("-Wl,-soname,{}", self.file()));
            command.arg("-o").arg(part).arg(build::sources().join("cuda/runtime.c"));
            vec![command]
        });
        target
    }

    /// The program's words.
    fn program(self, library: Library) -> Vec<String> {
        let source = build::sources().join("cuda/gpu_send.c");
        let runtime = self.build(library);
        let target = build::folder_for(library).join(format!("gpu_send.{}", self.file()));
        build::make(&target, &[&source, &runtime], |part| {
            let mut command = Command::new(library.compiler(&source));
            command.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror"]).args(self.options());
            command.arg("-o").arg(part).arg(&source);
            if self != Runtime::Late {
                command.arg(&runtime).arg(format!("-Wl,-rpath,{}", build::folder_for(library).display()));
            }
            vec![command]
        });
        [target, "full".into(), runtime].map(|word| word.to_string_lossy().into_owned()).into()
    }
}

const RANKS: u32 = 4;
const DEVICES: u32 = 2;

/// Untraced and traced with these options: the same output. The trace.
fn traced(library: Library, runtime: Runtime, options: &[&str]) -> String {
    let folder = run::folder("gpu_send");
    let yielding = build::yielding().to_string_lossy().into_owned();
    let environment = [("STANDIN_DEVICES", DEVICES.to_string()), ("LD_PRELOAD", yielding)];
    let launch = [run::launcher(library, RANKS), runtime.program(library)].concat();
    let plain = run::command(&folder, &launch, &environment);
    assert_eq!((plain.code, plain.stdout.is_empty()), (0, false), "{}", plain.stderr);

    let trace = folder.join("trace.rfn").to_string_lossy().into_owned();
    let mut words = vec![build::refrain().to_string_lossy().into_owned(), "run".into()];
    words.extend(["--out", &trace].iter().chain(options).map(|w| w.to_string()));
    words.push("--".into());
    words.extend(launch);
    let traced = run::command(&folder, &words, &environment);
    assert_eq!((traced.code, &traced.stdout), (0, &plain.stdout), "{}", traced.stderr);
    assert!(!traced.stderr.contains("tracing stopped"), "{}", traced.stderr);
    let verified = run::refrain(&["verify", &trace]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    trace
}

/// What `dump` says of the messages, rank by rank and by tag: where they come from and where they go.
fn places(trace: &str) -> Vec<Vec<(Json, Json)>> {
    let shown = run::refrain(&["dump", trace, "--format", "json"]);
    let mut ranks = vec![Vec::new(); RANKS as usize];
    for line in shown.stdout.lines().map(|line| Json::parse(line).unwrap()) {
        if line.get("call").text() == Some("MPI_Sendrecv") {
            let (rank, args) = (line.get("rank").int().unwrap() as usize, line.get("args"));
            assert_eq!(args.get("sendtag").int(), Some(ranks[rank].len() as i64));
            ranks[rank].push((args.get("sendbuf").clone(), args.get("recvbuf").clone()));
        }
    }
    ranks
}

/// `gpuN` is the rank's own device, `gpuM` the next one.
fn check(library: Library, runtime: Runtime, expected: &str) {
    let trace = traced(library, runtime, &[]);
    for (rank, said) in (0..).zip(places(&trace)) {
        let place = |json: &Json| json.text().unwrap_or_else(|| panic!("{json}")).to_owned();
        let said: Vec<String> =
            said.iter().map(|(from, to)| format!("{}>{}", place(from), place(to))).collect();
        let (own, next) = (rank % DEVICES, (rank + 1) % DEVICES);
        let expected = expected.replace("gpuN", &format!("gpu{own}")).replace("gpuM", &format!("gpu{next}"));
        assert_eq!(said.join(" "), expected, "rank {rank}, {}, {}", library.suffix(), runtime.file());
    }
    // The root of MPI_Reduce, and all others: their devices make no difference.
    let info = run::refrain(&["info", &trace]);
    assert!(info.stdout.contains(" in 2 structures,"), "{}", info.stdout);
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn device_and_segment_of_every_kind_of_memory() {
    for library in Library::ALL {
        for runtime in [Runtime::Cuda, Runtime::Hip, Runtime::Late] {
            check(
                library,
                runtime,
                "gpuN#0+16>gpuN#1+0 heap#0+8>gpuN#1+0 gpuN#0+4936>gpuN#1+0 gpuN#2+4672>gpuN#1+0 \
                 managed#0+32>gpuN#1+0 pinned#0+0>gpuN#1+0 pinned#1+8>gpuN#1+0 gpuN#3+0>gpuN#1+0 \
                 gpuN#3+8>gpuN#1+0 gpuM#4+0>gpuN#1+0 gpuM#0+0>pinned#0+0",
            );
        }
    }
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn nothing_of_it_without_pointers() {
    for library in Library::ALL {
        for rank in places(&traced(library, Runtime::Cuda, &["--pointers", "off"])) {
            assert_eq!(rank.len(), 11);
            assert!(rank.iter().all(|(from, to)| (from, to) == (&Json::Null, &Json::Null)), "{rank:?}");
        }
    }
}
