//! Python programs: where mpi4py lies that an interpreter would import.

use std::path::{Path, PathBuf};

pub fn is_python(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') == "python"
}

/// The extension module, `mpi4py/MPI.cpython-311-x86_64-linux-gnu.so` or the like, or one for each family of MPI
/// libraries: `MPI.mpich.cpython-...`. An environment's own packages come first: its interpreter is a link, and the
/// packages lie beside the link.
pub fn mpi4py(interpreter: &Path) -> Vec<PathBuf> {
    let real = interpreter.canonicalize().ok();
    let prefixes = [Some(interpreter.to_owned()), real];
    let prefixes = prefixes.iter().flatten().filter_map(|path| path.parent()?.parent());
    let mut found = prefixes.flat_map(packages).map(|packages| extensions(&packages.join("mpi4py")));
    found.find(|modules| !modules.is_empty()).unwrap_or_default()
}

/// Where packages put shared libraries into an environment.
pub fn libraries(interpreter: &Path) -> PathBuf {
    interpreter.parent().and_then(Path::parent).unwrap_or(Path::new("/")).join("lib")
}

/// `site-packages` and Debian's `dist-packages` of every Python under that prefix.
fn packages(prefix: &Path) -> Vec<PathBuf> {
    let mut found =
        vec![prefix.join("lib/python3/dist-packages"), prefix.join("local/lib/python3/dist-packages")];
    for lib in ["lib", "lib64", "local/lib"] {
        let entries = std::fs::read_dir(prefix.join(lib)).into_iter().flatten().flatten();
        let pythons = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
        for python in pythons {
            found.extend(["site-packages", "dist-packages"].map(|name| python.path().join(name)));
        }
    }
    found
}

fn extensions(module: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(module).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("MPI.") && name.ends_with(".so")
    };
    let mut found: Vec<PathBuf> = entries.filter(named).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::os::unix::fs::symlink;

    #[test]
    fn interpreters() {
        assert!(is_python(Path::new("/usr/bin/python3.11")) && is_python(Path::new("python")));
        assert!(!is_python(Path::new("/bin/sh")) && !is_python(Path::new("ipython-config")));
    }

    #[test]
    fn an_environment_comes_before_the_system() {
        let dir = Scratch::new("python");
        let module = |prefix: &str| {
            let folder = dir.path(format!("{prefix}/lib/python3.11/site-packages/mpi4py"));
            std::fs::create_dir_all(&folder).unwrap();
            folder.join("MPI.cpython-311-x86_64-linux-gnu.so")
        };
        for bin in ["system/bin", "venv/bin"] {
            std::fs::create_dir_all(dir.path(bin)).unwrap();
        }
        std::fs::write(dir.path("system/bin/python3"), "").unwrap();
        let interpreter = dir.path("venv/bin/python3");
        symlink(dir.path("system/bin/python3"), &interpreter).unwrap();
        assert!(mpi4py(&interpreter).is_empty());
        let (system, own) = (module("system"), module("venv"));
        std::fs::write(&system, "").unwrap();
        assert_eq!(mpi4py(&interpreter)[0].canonicalize().unwrap(), system.canonicalize().unwrap());
        std::fs::write(&own, "").unwrap();
        assert_eq!(mpi4py(&interpreter), std::slice::from_ref(&own));
        let another = own.with_file_name("MPI.openmpi.cpython-311-x86_64-linux-gnu.so");
        std::fs::write(&another, "").unwrap();
        assert_eq!(mpi4py(&interpreter), [own, another]);
        assert_eq!(libraries(&interpreter), dir.path("venv/lib"));
    }
}
