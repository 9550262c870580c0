//! Where the library is that is loaded into the traced program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A library of ours, and the crate that it is built from.
#[derive(Debug)]
pub struct Library {
    pub file: &'static str,
    package: &'static str,
    /// It is loaded by `LD_PRELOAD`.
    is_preloaded: bool,
}

pub const MPI: Library =
    Library { file: "librefrain_capture_mpi.so", package: "refrain-capture-mpi", is_preloaded: true };

/// QEMU loads it, by any name.
pub const MEMORY: Library =
    Library { file: "librefrain_capture_memory.so", package: "refrain-capture-memory", is_preloaded: false };

/// `named` is the value of `REFRAIN_LIBRARY`; otherwise the library lies beside `binary` (in a build directory) or in
/// `../lib/refrain` (installed).
pub fn find(binary: &Path, library: &Library, named: Option<OsString>) -> Result<PathBuf, Failure> {
    let Library { file, package, is_preloaded } = library;
    let usable = |found: PathBuf| if *is_preloaded { loadable(found) } else { Ok(found) };
    if let Some(path) = named.filter(|n| !n.is_empty()).map(PathBuf::from) {
        return match path.canonicalize() {
            Ok(found) if found.is_file() => usable(found),
            _ => Err(Failure::new(format!("REFRAIN_LIBRARY names {}, which is not a file", path.display()))
                .help(format!("unset it, or let it name {file}"))),
        };
    }
    let beside = binary.parent().unwrap_or(Path::new("/"));
    let candidates = [beside.join(file), beside.join("../lib/refrain").join(file)];
    for candidate in &candidates {
        if let Ok(found) = candidate.canonicalize()
            && found.is_file()
        {
            return usable(found);
        }
    }
    Err(Failure::new(format!(
        "{file} is neither at {} nor at {}",
        candidates[0].display(),
        candidates[1].display()
    ))
    .help(match is_preloaded {
        true => format!("build it with `cargo build -p {package}`, or let REFRAIN_LIBRARY name it"),
        false => format!("build it with `cargo build -p {package}`"),
    }))
}

/// The dynamic linker splits `LD_PRELOAD` at spaces and colons and knows no escape.
fn loadable(path: PathBuf) -> Result<PathBuf, Failure> {
    if path.to_string_lossy().contains([' ', ':']) {
        return Err(Failure::new(format!(
            "{} cannot be preloaded: its path has a space or a colon",
            path.display()
        ))
        .help("move it, or let REFRAIN_LIBRARY name a copy elsewhere"));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    const FILE: &str = MPI.file;

    #[test]
    fn beside_the_binary_installed_and_named() {
        let dir = Scratch::new("library");
        let (bin, lib) = (dir.path("bin"), dir.path("lib/refrain"));
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(&lib).unwrap();
        let binary = bin.join("refrain");

        let missing = find(&binary, &MPI, None).unwrap_err().to_string();
        assert!(
            missing.contains("bin/librefrain_capture_mpi.so") && missing.contains("lib/refrain"),
            "{missing}"
        );

        std::fs::write(lib.join(FILE), "").unwrap();
        assert_eq!(find(&binary, &MPI, None).unwrap(), lib.join(FILE).canonicalize().unwrap());
        std::fs::write(bin.join(FILE), "").unwrap();
        assert_eq!(find(&binary, &MPI, None).unwrap(), bin.join(FILE).canonicalize().unwrap());
        let named = lib.join(FILE).into_os_string();
        assert_eq!(find(&binary, &MPI, Some(named)).unwrap(), lib.join(FILE).canonicalize().unwrap());
        assert_eq!(find(&binary, &MPI, Some("".into())).unwrap(), bin.join(FILE).canonicalize().unwrap());
        assert!(
            find(&binary, &MPI, Some("/no/such.so".into())).unwrap_err().to_string().contains("/no/such.so")
        );
    }

    #[test]
    fn a_path_the_linker_would_split_is_refused() {
        let dir = Scratch::new("library with space");
        std::fs::write(dir.path(FILE), "").unwrap();
        let error = find(&dir.path("refrain"), &MPI, None).unwrap_err().to_string();
        assert!(error.contains("space or a colon"), "{error}");
        std::fs::write(dir.path(MEMORY.file), "").unwrap();
        assert!(find(&dir.path("refrain"), &MEMORY, None).unwrap().ends_with(MEMORY.file));
    }
}
