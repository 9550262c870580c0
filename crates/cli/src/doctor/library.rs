//! Which MPI library a program would load, and through which of MPI's interfaces it calls it.

use std::path::{Path, PathBuf};

use super::elf::{Elf, Symbol};
use super::linker::Needed;

/// Libraries of one family understand each other's programs and launchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// MPICH and all that share its ABI: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    OpenMpi,
    /// The ABI of MPI 5, which any library may stand behind.
    Mpi5,
}

impl Family {
    /// As traces call it.
    pub fn abi(self) -> &'static str {
        match self {
            Family::Mpich => "MPICH ABI",
            Family::OpenMpi => "Open MPI ABI",
            Family::Mpi5 => "MPI 5 ABI",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    pub path: PathBuf,
    pub family: Family,
    /// `MPICH`, `Open MPI`, `Intel MPI`
    pub name: &'static str,
    /// As far as the file says.
    pub version: Option<String>,
}

impl Library {
    pub fn shown(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// Every MPI library defines it itself; Fortran and C++ layers and tools only use it.
const SIGNATURE: &str = "PMPI_Comm_rank";

/// The first library in the linker's order that defines MPI's functions. Those that are called so are asked first.
pub fn find(needed: &[Needed]) -> Option<Library> {
    let found = || needed.iter().filter_map(|needed| needed.found.as_ref());
    let named = |path: &Path| base(path).starts_with("libmpi");
    let first = found().filter(|(path, _)| named(path));
    first.chain(found().filter(|(path, _)| !named(path))).find_map(|(path, elf)| look_into(path, elf))
}

fn base(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What the file is, if it is an MPI library.
pub fn look_into(path: &Path, elf: &Elf) -> Option<Library> {
    let symbols = elf.dynamic_symbols().ok()?;
    let defined = |name: &str| symbols.iter().find(|symbol| symbol.defined && symbol.name == name);
    defined(SIGNATURE)?;
    let soname = elf.soname.clone().unwrap_or_else(|| base(path));
    let family = if soname.starts_with("libmpi_abi") {
        Family::Mpi5
    } else if defined("ompi_mpi_int").is_some() {
        Family::OpenMpi
    } else {
        Family::Mpich
    };
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let intel =
        real.components().any(|part| part.as_os_str().to_string_lossy().to_lowercase().contains("intel"));
    let text = |names: &[&str]| names.iter().find_map(|name| elf.text_of(defined(name)?));
    let mpich = text(&["MPII_Version_string", "MPIR_Version_string"]);
    let (name, version) = match (family, mpich) {
        (Family::OpenMpi, _) => ("Open MPI", text(&["ompi_version_string"])),
        (_, Some(version)) if !intel => ("MPICH", Some(version)),
        (_, _) if intel => ("Intel MPI", None),
        (Family::Mpi5, _) => ("a library of the MPI 5 ABI", None),
        _ => ("a library of the MPICH ABI", None),
    };
    let version = version.map(|version| version.trim_start_matches('v').to_owned());
    Some(Library { path: path.to_owned(), family, name, version })
}

/// How the program speaks to MPI, from the names it wants; through libraries of its own too.
pub fn bindings<'a>(files: impl Iterator<Item = &'a Elf>) -> Vec<&'static str> {
    let mut found: Vec<&str> = Vec::new();
    for elf in files {
        let symbols = elf.dynamic_symbols().unwrap_or_default();
        for binding in symbols.iter().filter(|symbol| !symbol.defined).filter_map(binding) {
            if !found.contains(&binding) {
                found.push(binding);
            }
        }
    }
    found.sort_unstable();
    found
}

fn binding(symbol: &Symbol) -> Option<&'static str> {
    let name = symbol.name.as_str();
    let function = |name: &str| refrain_model::function(name).is_some();
    if name.starts_with("_ZN3MPI") || name.starts_with("_ZNK3MPI") {
        Some("C++ (MPI::)")
    } else if function(name.strip_prefix('P').unwrap_or(name)) {
        Some("C")
    } else if name.starts_with("mpi_") && name.contains("_f08") {
        Some("Fortran (mpi_f08)")
    } else if name.starts_with("mpi_") && name.ends_with('_') {
        Some("Fortran (mpif.h, use mpi)")
    } else {
        None
    }
}

/// Whether MPI's functions are in the program itself.
pub fn is_inside(program: &Elf) -> bool {
    let tables = [program.dynamic_symbols(), program.all_symbols()];
    tables.into_iter().flatten().flatten().any(|symbol| symbol.defined && symbol.name == SIGNATURE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::linker::{Places, closure};

    #[test]
    fn a_program_without_mpi() {
        let path = std::env::current_exe().unwrap();
        let elf = Elf::open(&path).unwrap().unwrap();
        assert_eq!(find(&closure(&path, &elf, &Places::of_this_system())), None);
        assert!(bindings([&elf].into_iter()).is_empty() && !is_inside(&elf));
    }
}
