//! The MPI library in this process: finding it, telling its family, looking functions up in it.

use crate::abi::{Abi, MissingConstant};
use crate::constants::Family;
use crate::objects::{Object, objects};
use libc::{RTLD_DEFAULT, RTLD_LAZY, RTLD_NOLOAD, c_char, c_void};
use std::ffi::{CStr, OsStr};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How the files of MPI's C libraries are named, up to their version. Any library that defines MPI functions is found
/// also without its name; a known name only takes precedence over, say, another tool that defines PMPI functions.
const FILE_NAMES: [&str; 10] = [
    "libmpi.so",     // MPICH, Intel MPI, MVAPICH, Open MPI
    "libmpich.so",   // Debian's MPICH
    "libmpi_abi.so", // the MPI 5 ABI
    "libmpi_abi-",   // the same in a Python wheel that carries its libraries
    "libmpi-",
    "libmpich-",
    "libmpi_cray.so", // Cray MPICH, by compiler
    "libmpi_intel.so",
    "libmpi_gnu_", // with the compiler's version behind
    "libmpi_ibm.so",
];

/// And what comes with them: layers for Fortran and C++, components, and the libraries they are built upon.
const LAYERS: [&str; 17] = [
    "libmpifort",
    "libmpichfort",
    "libmpichf90",
    "libfmpich",
    "libmpicxx",
    "libmpichcxx",
    "libmpi_mpifh",
    "libmpi_usempi",
    "libmpi_cxx",
    "libmpi_ignore_tkr",
    "mca_",
    "libopen-pal",
    "libopen-rte",
    "libpmix",
    "libucp.",
    "libuct.",
    "libucs.",
];

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The library's own, a component's, or that of the object this code is part of.
    Mpi,
    /// Stands between MPI and a language, or below MPI.
    Layer,
    /// Stands between MPI and Python: what it calls, it calls for the program.
    Binding,
    Other,
}

impl Owner {
    /// By the path of its file alone, which tells all but which of several libraries is the program's: the one rule for
    /// whose code it is.
    pub fn of_file(path: &str) -> Owner {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.starts_with("mca_") {
            Owner::Mpi
        } else if FILE_NAMES.iter().chain(&LAYERS).any(|known| name.starts_with(known)) {
            Owner::Layer
        } else if folder.ends_with("/mpi4py") && name.starts_with("MPI.") && name.ends_with(".so") {
            // `mpi4py/MPI.cpython-311-x86_64-linux-gnu.so`, `mpi4py/MPI.mpich.so`.
            Owner::Binding
        } else {
            Owner::Other
        }
    }
}

/// A function that every MPI library defines itself, and that its Fortran and C++ layers only use.
const SIGNATURE: &CStr = c"PMPI_Comm_rank";

/// Of these, each library has one: of Open MPI, of the MPICH ABI, of MPI 5's. A tool that only defines the functions it
/// watches has none.
const MARKS: [&CStr; 3] = [c"ompi_mpi_comm_world", c"MPI_UNWEIGHTED", c"MPI_Abi_get_version"];

/// Whether what itself `defines` these names is an MPI library.
pub fn is_library(defines: impl Fn(&CStr) -> bool) -> bool {
    defines(SIGNATURE) && MARKS.iter().any(|name| defines(name))
}

/// `dlsym` of the C library.
pub type Dlsym = unsafe extern "C" fn(handle: *mut c_void, name: *const c_char) -> *mut c_void;

/// The MPI library loaded in this process.
///
/// Functions are looked up in that library and what it depends on, never in the global scope, where a preloaded
/// library that defines `MPI_X` and `PMPI_X` would find itself.
#[derive(Debug)]
pub struct Library {
    handle: *mut c_void,
    dlsym: Dlsym,
    object: Object,
    family: Family,
    /// Where the object this code is part of lies: the preloaded library, or a tool's executable.
    own: Range<usize>,
}

// SAFETY: a handle of `dlopen` may be used by any thread, and it is never closed.
unsafe impl Send for Library {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Library {}

impl Library {
    /// The MPI library this process uses, also where it was opened with `RTLD_LOCAL`. None where there is none (yet).
    ///
    /// Of several, the one loaded first: a program linked with `libmpi_abi.so.1` has that before whatever it is
    /// built upon. A library that is linked statically into the executable cannot be found.
    pub fn find() -> Option<Library> {
        // SAFETY: it is what it must be.
        unsafe { Library::find_with(libc::dlsym) }
    }

    /// As `find`, for a preloaded library that answers the program's own calls of `dlsym`.
    ///
    /// # Safety
    /// `dlsym` is the C library's, or does what it does.
    pub unsafe fn find_with(dlsym: Dlsym) -> Option<Library> {
        let all = objects();
        let here = Library::find as fn() -> Option<Library> as *const c_void;
        let own =
            all.iter().find(|object| object.contains(here)).map_or(0..0, |object| object.memory.clone());
        let (known, unknown): (Vec<Object>, Vec<Object>) = all.into_iter().partition(is_named);
        known.into_iter().chain(unknown).find_map(|object| Library::open(object, &own, dlsym))
    }

    /// The object as an MPI library, if it is one: it defines MPI's functions itself, and it is not us.
    fn open(object: Object, own: &Range<usize>, dlsym: Dlsym) -> Option<Library> {
        if object.path.is_empty() || object.memory == *own {
            return None;
        }
        // SAFETY: NOLOAD only looks among the loaded objects; no code of the object runs.
        let handle = unsafe { libc::dlopen(object.path.as_ptr(), RTLD_NOLOAD | RTLD_LAZY) };
        if handle.is_null() {
            return None;
        }
        let defines = |name: &CStr| {
            // SAFETY: an open handle and a terminated name.
            let address = unsafe { dlsym(handle, name.as_ptr()) };
            !address.is_null() && object.contains(address)
        };
        if !is_library(defines) {
            // SAFETY: the reference taken just above is given back.
            unsafe { libc::dlclose(handle) };
            return None;
        }
        let family = family_of(&object, handle, dlsym);
        // From here on the library stays open: function pointers into it must not dangle.
        Some(Library { handle, dlsym, object, family, own: own.clone() })
    }

    pub fn kind(&self) -> Family {
        self.family
    }

    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.object.path.to_bytes()))
    }

    /// The address of what the library exports under that name; never one inside the object this code is part of.
    pub fn symbol(&self, name: &str) -> Option<*const c_void> {
        look_up(self.dlsym, self.handle, name).filter(|&address| !self.own.contains(&(address as usize)))
    }

    /// Whether the library offers that function to programs. A few hundred nanoseconds.
    pub fn exports(&self, name: &str) -> bool {
        self.symbol(name).is_some()
    }

    /// Where every object loaded now lies, and whose code it has.
    pub fn code(&self) -> Vec<(Range<usize>, Owner)> {
        let owner = |object: &Object| match object.memory == self.object.memory || object.memory == self.own {
            true => Owner::Mpi,
            false => Owner::of_file(object.path()),
        };
        objects().into_iter().map(|object| (object.memory.clone(), owner(&object))).collect()
    }

    /// The library's constants and layouts, as the program sees them.
    pub fn abi(&self) -> Result<Abi, MissingConstant> {
        // An executable has copies of a library's data, and may have its own addresses for functions, so the global
        // scope comes first; a library opened with RTLD_LOCAL is not in it.
        let address = |name| {
            let found =
                look_up(self.dlsym, RTLD_DEFAULT, name).or_else(|| look_up(self.dlsym, self.handle, name));
            found.map(|address| address as usize)
        };
        // SAFETY: the variables named in the table are pointers in every library of their family.
        unsafe { Abi::new(self.family, address) }
    }
}

fn is_named(object: &Object) -> bool {
    FILE_NAMES.iter().any(|name| object.file_name().starts_with(name))
}

fn look_up(dlsym: Dlsym, handle: *mut c_void, name: &str) -> Option<*const c_void> {
    // The longest name in MPI 5.0 has 46 characters.
    let mut buffer = [0u8; 128];
    if name.len() >= buffer.len() || name.as_bytes().contains(&0) {
        return None;
    }
    buffer[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the handle is open or RTLD_DEFAULT, and the name ends in at least one NUL.
    let address = unsafe { dlsym(handle, buffer.as_ptr().cast::<c_char>()) };
    (!address.is_null()).then_some(address.cast_const())
}

fn family_of(object: &Object, handle: *mut c_void, dlsym: Dlsym) -> Family {
    let defines = |name| look_up(dlsym, handle, name).is_some_and(|address| object.contains(address));
    // The name comes first: libraries of the MPI 5 ABI are built upon, or along with, those of the other families,
    // and MPICH 5 exports MPI_Abi_get_version from its MPICH-ABI library too.
    if object.file_name().starts_with("libmpi_abi") {
        Family::Mpi5
    } else if defines("ompi_mpi_int") {
        Family::OpenMpi
    } else if defines("MPIR_Dup_fn") || !defines("MPI_Abi_get_version") {
        Family::Mpich
    } else {
        Family::Mpi5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_mpi_library_here() {
        assert!(Library::find().is_none());
    }

    #[test]
    fn tools_are_no_libraries() {
        let check =
            |names: &[&CStr], library| assert_eq!(is_library(|n| names.contains(&n)), library, "{names:?}");
        check(&[c"PMPI_Comm_rank", c"MPI_Comm_rank"], false);
        check(&[c"MPI_UNWEIGHTED"], false);
        check(&[c"PMPI_Comm_rank", c"MPI_UNWEIGHTED"], true);
        check(&[c"PMPI_Comm_rank", c"ompi_mpi_comm_world"], true);
        check(&[c"PMPI_Comm_rank", c"MPI_Abi_get_version"], true);
    }

    fn check_name(name: &str, known: bool) {
        assert_eq!(FILE_NAMES.iter().any(|n| name.starts_with(n)), known, "{name}");
    }

    #[test]
    fn file_names() {
        check_name("libmpi.so.12", true);
        check_name("libmpi.so.40.30.4", true);
        check_name("libmpich.so.12", true);
        check_name("libmpi_abi.so.1", true);
        check_name("libmpi_cray.so.12", true);
        check_name("libmpi_intel.so.12", true);
        check_name("libmpi_gnu_91.so.12", true);
        check_name("libmpi-f1bd3a2c.so.40.40.7", true);
        check_name("libmpifort.so.12", false);
        check_name("libmpichfort.so.12", false);
        check_name("libmpi_mpifh.so.40", false);
        check_name("libmpi_usempif08.so.40", false);
        check_name("libmpi_cxx.so.40", false);
        check_name("libmpicxx.so.12", false);
    }

    #[test]
    fn whose_code_a_file_has() {
        let check = |path, owner| assert_eq!(Owner::of_file(path), owner, "{path}");
        check("/usr/lib/libmpich.so.12", Owner::Layer);
        check("libmpichfort.so.12", Owner::Layer);
        check("/usr/lib/libmpi_usempif08.so.40", Owner::Layer);
        check("/usr/lib/openmpi/mca_coll_tuned.so", Owner::Mpi);
        check("/usr/lib/python3/dist-packages/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so", Owner::Binding);
        check("/venv/site-packages/mpi4py/MPI.mpich.cpython-312-x86_64-linux-gnu.so", Owner::Binding);
        for path in ["", "app", "libmpiapp.so", "/home/me/MPI.so", "/usr/lib/mpi4py/run.so"] {
            check(path, Owner::Other);
        }
    }
}
