//! The real place of this crate: inside a preloaded library that defines MPI's names itself (`examples/preload.rs`).

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Linked with the library, and calling both names.
const LINKED: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank = -1, again = -1, own = -1;
    MPI_Comm other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_rank(MPI_COMM_SELF, &again);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_rank(other, &own);
    printf("program: %d %d %d\n", rank, again, own);
    fflush(stdout);
    return MPI_Finalize();
}
"#;

/// Linked with nothing; opens a plugin that is linked with the library, as Python does.
const HOST: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) { puts(dlerror()); return 1; }
    int (*run)(int, char **) = (int (*)(int, char **))dlsym(plugin, "plugin_main");
    return run(argc, argv);
}
"#;

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn build(compiler: &str, source: &Path, output: &Path, flags: &[&str]) {
    let built = Command::new(compiler)
        .args(flags)
        .arg("-o")
        .args([output, source])
        .arg("-ldl")
        .output()
        .expect("a C compiler is there");
    assert!(built.status.success(), "{compiler}: {}", String::from_utf8_lossy(&built.stderr));
}

fn preload() -> PathBuf {
    let exe = env::current_exe().expect("it runs");
    let target = exe.parent().and_then(Path::parent).expect("tests lie in deps");
    let library = target.join("examples/libpreload.so");
    assert!(library.exists(), "{} is not built; run cargo test without naming this test", library.display());
    library
}

fn check(compiler: &str, name: &str, flags: Option<&[&str]>, family: &str) {
    if Command::new(compiler).arg("--version").output().is_err() {
        common::skipped(&format!("{compiler} is not installed"));
        return;
    }
    let folder = Folder(env::temp_dir().join(format!("refrain-preload-{name}-{}", std::process::id())));
    fs::create_dir_all(&folder.0).expect("the temporary folder can be written");
    let (source, binary) = (folder.0.join("program.c"), folder.0.join("program"));
    let mut command = Command::new(&binary);
    if let Some(flags) = flags {
        fs::write(&source, LINKED).expect("written");
        build(compiler, &source, &binary, flags);
    } else {
        let (host, plugin) = (folder.0.join("host.c"), folder.0.join("plugin.so"));
        fs::write(&source, LINKED.replace("int main(", "int plugin_main(")).expect("written");
        fs::write(&host, HOST).expect("written");
        build(compiler, &source, &plugin, &["-shared", "-fPIC"]);
        build("cc", &host, &binary, &[]);
        command.arg(plugin);
    }
    let sessions = common::Sessions::new();
    let output = command
        .env("LD_PRELOAD", preload())
        .env("OMPI_MCA_orte_tmpdir_base", &sessions.0)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output()
        .expect("it was built just now");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}\n{err}", output.status);
    let mut lines: Vec<&str> = out.lines().collect();
    // Both sides write to one pipe through buffers of their own.
    lines.sort_unstable();
    let want = [
        &format!("preload: {family}"),
        "preload: rank in another",
        "preload: rank in self",
        "preload: rank in world",
        "program: 0 0 0",
    ];
    assert_eq!(lines, want, "{err}");
}

/// The library's data is copied into such an executable, and its handles are the addresses of the copies.
const FIXED: Option<&[&str]> = Some(&["-fno-pie", "-no-pie"]);
const MOVABLE: Option<&[&str]> = Some(&["-fPIE", "-pie"]);
const PLUGIN: Option<&[&str]> = None;

#[test]
fn mpich() {
    check("mpicc.mpich", "mpich-fixed", FIXED, "MPICH ABI");
    check("mpicc.mpich", "mpich-movable", MOVABLE, "MPICH ABI");
    check("mpicc.mpich", "mpich-plugin", PLUGIN, "MPICH ABI");
}

#[test]
fn openmpi() {
    check("mpicc.openmpi", "openmpi-fixed", FIXED, "Open MPI");
    check("mpicc.openmpi", "openmpi-movable", MOVABLE, "Open MPI");
    check("mpicc.openmpi", "openmpi-plugin", PLUGIN, "Open MPI");
}
