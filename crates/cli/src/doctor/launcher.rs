//! Which MPI library a launcher belongs to. A launcher of one family starts a program of the other as so many programs of
//! one rank each, without a word.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::library::{Family, Library};
use crate::run::find_program;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    pub path: PathBuf,
    /// `None`: any library, or it cannot be told.
    pub family: Option<Family>,
}

impl Launcher {
    pub fn of(path: PathBuf) -> Launcher {
        let family = family(&path);
        Launcher { path, family }
    }

    pub fn shown(&self) -> &'static str {
        match self.family {
            Some(Family::OpenMpi) => "Open MPI's",
            Some(_) => "Hydra, of MPICH and its kin",
            None => "of a batch system, or not known",
        }
    }

    /// Whether it takes a list of variables to pass on from one of its own: Open MPI 4 does.
    pub fn takes_list(&self) -> bool {
        let real = self.path.canonicalize().ok();
        real.is_some_and(|real| {
            real.file_name().is_some_and(|name| name.to_string_lossy().contains("orterun"))
        })
    }

    pub fn fits(&self, library: &Library) -> bool {
        match (self.family, library.family) {
            (None, _) | (_, Family::Mpi5) => true,
            (Some(launcher), library) => launcher == library,
        }
    }
}

/// They go by many names: a link to orterun (Open MPI 4), a small program that starts prterun (5), a script that starts
/// mpiexec.hydra (Intel).
fn family(launcher: &Path) -> Option<Family> {
    /// Larger than any of these programs.
    const SMALL: u64 = 1 << 20;
    const MARKS: [(&str, Family); 3] =
        [("orterun", Family::OpenMpi), ("prterun", Family::OpenMpi), ("hydra", Family::Mpich)];
    let real = launcher.canonicalize().ok()?;
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let by_name = MARKS.iter().find(|(mark, _)| name.contains(mark));
    if let Some((_, family)) = by_name {
        return Some(*family);
    }
    if matches!(name.as_str(), "srun" | "jsrun" | "aprun" | "flux") || real.metadata().ok()?.len() > SMALL {
        return None;
    }
    let bytes = std::fs::read(&real).ok()?;
    let holds = |mark: &str| bytes.windows(mark.len()).any(|window| window == mark.as_bytes());
    MARKS.iter().find(|(mark, _)| holds(mark)).map(|(_, family)| *family)
}

/// One that fits: beside the library, or by a usual name in `PATH`.
pub fn fitting(library: &Library, path: &OsStr) -> Option<PathBuf> {
    const NAMES: [&str; 8] = [
        "mpiexec",
        "mpirun",
        "mpiexec.mpich",
        "mpiexec.hydra",
        "mpiexec.openmpi",
        "mpirun.mpich",
        "mpirun.openmpi",
        "orterun",
    ];
    let real = library.path.canonicalize().ok()?;
    let beside = real.parent().and_then(Path::parent).map(|prefix| prefix.join("bin"));
    let beside = beside.into_iter().flat_map(|bin| NAMES.map(|name| bin.join(name).into_os_string()));
    beside
        .chain(NAMES.map(Into::into))
        .filter_map(|name| find_program(&name, path))
        .find(|launcher| family(launcher).is_some_and(|family| family == library.family))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn library(family: Family, path: PathBuf) -> Library {
        Library { path, family, name: "", version: None }
    }

    #[test]
    fn by_link_by_content_and_not_at_all() {
        let dir = Scratch::new("launcher");
        let make = |name: &str, text: &str| {
            let path = dir.path(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path
        };
        let orterun = make("orterun", "");
        symlink(&orterun, dir.path("mpiexec")).unwrap();
        let script = make("mpirun", "exec mpiexec.hydra \"$@\"\n");
        let open = Launcher::of(dir.path("mpiexec"));
        let hydra = Launcher::of(script.clone());
        let srun = Launcher::of(make("srun", "it may well mention hydra"));
        assert_eq!(
            (open.family, hydra.family, srun.family),
            (Some(Family::OpenMpi), Some(Family::Mpich), None)
        );
        assert_eq!(Launcher::of(make("other", "what")).family, None);

        let lib = dir.path("lib.so");
        std::fs::write(&lib, "").unwrap();
        let mpich = library(Family::Mpich, lib.clone());
        let abi = library(Family::Mpi5, lib);
        assert!(!open.fits(&mpich) && hydra.fits(&mpich) && srun.fits(&mpich) && open.fits(&abi));
        assert_eq!(fitting(&mpich, dir.path("").as_os_str()), Some(script));
    }
}
