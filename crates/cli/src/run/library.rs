//! Where the library is that is loaded into the traced program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

pub const FILE: &str = "librefrain_capture_mpi.so";

/// `named` is the value of `REFRAIN_LIBRARY`; otherwise the library lies beside `binary` (in a build directory) or in
/// `../lib/refrain` (installed).
pub fn find(binary: &Path, named: Option<OsString>) -> Result<PathBuf, Failure> {
    if let Some(path) = named.filter(|n| !n.is_empty()).map(PathBuf::from) {
        return match path.canonicalize() {
            Ok(found) if found.is_file() => loadable(found),
            _ => Err(Failure::new(format!("REFRAIN_LIBRARY names {}, which is not a file", path.display()))
                .help(format!("unset it, or let it name {FILE}"))),
        };
    }
    let beside = binary.parent().unwrap_or(Path::new("/"));
    let candidates = [beside.join(FILE), beside.join("../lib/refrain").join(FILE)];
    for candidate in &candidates {
        if let Ok(found) = candidate.canonicalize()
            && found.is_file()
        {
            return loadable(found);
        }
    }
    Err(Failure::new(format!(
        "{FILE} is neither at {} nor at {}",
        candidates[0].display(),
        candidates[1].display()
    ))
    .help("build it with `cargo build -p refrain-capture-mpi`, or let REFRAIN_LIBRARY name it"))
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

    #[test]
    fn beside_the_binary_installed_and_named() {
        let dir = Scratch::new("library");
        let (bin, lib) = (dir.path("bin"), dir.path("lib/refrain"));
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(&lib).unwrap();
        let binary = bin.join("refrain");

        let missing = find(&binary, None).unwrap_err().to_string();
        assert!(
            missing.contains("bin/librefrain_capture_mpi.so") && missing.contains("lib/refrain"),
            "{missing}"
        );

        std::fs::write(lib.join(FILE), "").unwrap();
        assert_eq!(find(&binary, None).unwrap(), lib.join(FILE).canonicalize().unwrap());
        std::fs::write(bin.join(FILE), "").unwrap();
        assert_eq!(find(&binary, None).unwrap(), bin.join(FILE).canonicalize().unwrap());
        let named = lib.join(FILE).into_os_string();
        assert_eq!(find(&binary, Some(named)).unwrap(), lib.join(FILE).canonicalize().unwrap());
        assert_eq!(find(&binary, Some("".into())).unwrap(), bin.join(FILE).canonicalize().unwrap());
        assert!(find(&binary, Some("/no/such.so".into())).unwrap_err().to_string().contains("/no/such.so"));
    }

    #[test]
    fn a_path_the_linker_would_split_is_refused() {
        let dir = Scratch::new("library with space");
        std::fs::write(dir.path(FILE), "").unwrap();
        let error = find(&dir.path("refrain"), None).unwrap_err().to_string();
        assert!(error.contains("space or a colon"), "{error}");
    }
}
