//! The Python package: the wheel that is built, installed into an empty environment, traces mpi4py, and the examples of
//! docs/python.md run. Ignored in a plain `cargo test`: needs the MPI libraries, the built command and the network once.

use std::fs;
use std::path::{Path, PathBuf};

use refrain_e2e::run::words;
use refrain_e2e::{Library, Program, build, run, skipped};

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn done(folder: &Path, words: &[String], environment: &[(&str, String)]) -> run::Outcome {
    let outcome = run::command(folder, words, environment);
    assert_eq!(outcome.code, 0, "{words:?}\n{}{}", outcome.stdout, outcome.stderr);
    outcome
}

/// The wheel of this build, made in a folder.
fn wheel(folder: &Path) -> PathBuf {
    let script = build::sources().join("../scripts/wheel");
    let built = build::refrain().with_file_name("");
    let said = done(folder, &[script, built, folder.join("wheels")].map(|path| text(&path)), &[]).stdout;
    PathBuf::from(said.trim())
}

#[test]
#[ignore = "needs MPI"]
fn the_wheel_brings_the_command_and_the_module() {
    let pip = build::target().join("python/bin/python3");
    if !pip.exists() {
        skipped("the wheel: `scripts/python` makes an environment with pip, and could not");
        return;
    }
    let folder = run::folder("wheel");
    let wheel = wheel(&folder);
    let name = wheel.file_name().unwrap().to_string_lossy();
    assert!(name.starts_with("refrain_mpi-") && name.contains("-cp39-abi3-manylinux_2_"), "{name}");
    // The one that Debian's mpi4py is for.
    let library = Library::OpenMpi;

    // An empty environment: nothing but Python itself and the wheel.
    let mut system = vec![text(&build::python(library))];
    system.extend(words(&["-m", "venv", "--without-pip", "empty"]));
    done(&folder, &system, &[]);
    let python = folder.join("empty/bin/python3");
    let mut install = vec![text(&pip)];
    install.extend(words(&["-m", "pip", "--python"]));
    install.extend([text(&python)]);
    install.extend(words(&["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]));
    install.push(text(&wheel));
    done(&folder, &install, &[]);

    // Its own command traces mpi4py, with its own libraries. That run alone sees the system's packages, for mpi4py.
    let place = "import mpi4py, os; print(os.path.dirname(os.path.dirname(mpi4py.__file__)))";
    let packages = done(&folder, &[text(&build::python(library)), "-c".into(), place.into()], &[]).stdout;
    let refrain = folder.join("empty/bin/refrain");
    let script = folder.join("ring.py");
    fs::write(
        &script,
        "from mpi4py import MPI\n\
         comm = MPI.COMM_WORLD\n\
         right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size\n\
         assert comm.sendrecv(comm.rank, dest=right, source=left) == left\n\
         comm.Barrier()\n",
    )
    .unwrap();
    let mut traced = vec![text(&refrain)];
    traced.extend(words(&["run", "--out", "ring.rfn", "--"]));
    traced.extend(run::launcher(library, 2));
    traced.extend([text(&python), text(&script)]);
    let said = done(&folder, &traced, &[("PYTHONPATH", packages.trim().to_owned())]).stderr;
    assert!(said.contains("2 ranks, ") && said.contains("-> ring.rfn"), "{said}");
    let asked = "import refrain; trace = refrain.open('ring.rfn'); \
                 print(trace.ranks, sum(call.name == 'MPI_Barrier' for call in trace.calls()), \
                 [call.args['dest'] for call in trace.calls(rank=1, only='p2p') if call.args.get('dest') is not None])";
    let said = done(&folder, &[text(&python), "-c".into(), asked.into()], &[]).stdout;
    assert_eq!(said, "2 2 [0]\n");
    // Nothing asked for is nothing, and no error.
    let asked = "import refrain; trace = refrain.open('ring.rfn'); \
                 number = type('Index', (), {'__index__': lambda self: 1}); \
                 print([len(list(trace.calls(**asked))) for asked in \
                 ({'rank': []}, {'thread': ()}, {'only': []}, {'calls': range(5, 2)})], \
                 {call.rank for call in trace.calls(rank=number())}, \
                 {call.rank for call in trace.calls(rank=[number()], calls=number())})";
    let said = done(&folder, &[text(&python), "-c".into(), asked.into()], &[]).stdout;
    assert_eq!(said, "[0, 0, 0, 0] {1} {1}\n");
}

#[test]
#[ignore = "needs MPI"]
fn the_examples_of_the_documentation_run() {
    let python = build::target().join("python/bin/python3");
    let module = build::refrain().with_file_name("lib_refrain.so");
    if !python.exists() || !module.exists() {
        skipped("docs/python.md: `scripts/python` fetches PyArrow, Polars and others, and could not");
        return;
    }
    let program = Program { args: &["10"], ..Program::named("stencil2d") };
    let options = [("REFRAIN_TIME", "exact"), ("REFRAIN_STACKS", "site")];
    let traced = run::traced_with(Library::Mpich, &program, 4, &options);
    let folder = traced.folder();
    fs::copy(&traced.trace, folder.join("app.rfn")).unwrap();
    let document = build::sources().join("../docs/python.md");
    let args = [python, build::script("blocks.py"), document].map(|path| text(&path));
    let said = done(folder, &args, &[("PYTHONPATH", text(&build::python_module(folder)))]).stdout;
    assert!(said.contains("260 rows, "), "{said}");
    assert!(said.contains("no-such.rfn cannot be read: there is no such file"), "{said}");
    assert!(said.ends_with(" blocks ran\n"), "{said}");
}
