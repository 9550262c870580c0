//! A preloaded library in one page: it defines both names of a few functions, and finds the real ones behind them.
//!
//!     LD_PRELOAD=target/debug/examples/libpreload.so ./an_mpi_program
//!
//! Prints one line at MPI_Init and one at each MPI_Comm_rank, with what it could tell about the communicator.

use refrain_mpi::{Abi, Library, Pmpi};
use std::ffi::c_int;
use std::sync::OnceLock;

struct Real {
    library: Library,
    abi: Abi,
    pmpi: Pmpi,
}

static REAL: OnceLock<Option<Real>> = OnceLock::new();

fn real() -> Option<&'static Real> {
    let find = || {
        let library = Library::find()?;
        let abi = library.abi().ok()?;
        // SAFETY: they belong together, and only handles from the program are passed on.
        let pmpi = unsafe { Pmpi::new(&library, &abi) }.ok()?;
        Some(Real { library, abi, pmpi })
    };
    REAL.get_or_init(find).as_ref()
}

/// MPI_ERR_OTHER differs between families; a program that got this far without MPI has no use for the right one.
const NO_LIBRARY: c_int = 1;

fn init(argc: usize, argv: usize) -> c_int {
    let Some(real) = real() else { return NO_LIBRARY };
    let Some(address) = real.library.symbol("PMPI_Init") else { return NO_LIBRARY };
    // SAFETY: MPI_Init takes two pointers and returns an int.
    let function = unsafe {
        std::mem::transmute::<*const libc::c_void, unsafe extern "C" fn(usize, usize) -> c_int>(address)
    };
    // SAFETY: the program's own arguments.
    let code = unsafe { function(argc, argv) };
    println!("preload: {}", real.library.kind().name());
    code
}

fn comm_rank(comm: usize, rank: *mut c_int) -> c_int {
    let Some(real) = real() else { return NO_LIBRARY };
    // Handles of four bytes come with anything in the upper half of the register.
    let width = real.abi.handle_size(refrain_mpi::Class::Comm);
    let comm = if width == 4 { u64::from(comm as u32) } else { comm as u64 };
    let name = match comm {
        c if c == real.abi.comm_world => "world",
        c if c == real.abi.comm_self => "self",
        _ => "another",
    };
    println!("preload: rank in {name}");
    match real.pmpi.comm_rank(comm) {
        Ok(value) => {
            // SAFETY: the program gives the place for an int.
            unsafe { rank.write(value) };
            0
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn MPI_Init(argc: usize, argv: usize) -> c_int {
    init(argc, argv)
}

#[unsafe(no_mangle)]
extern "C" fn PMPI_Init(argc: usize, argv: usize) -> c_int {
    init(argc, argv)
}

#[unsafe(no_mangle)]
extern "C" fn MPI_Comm_rank(comm: usize, rank: *mut c_int) -> c_int {
    comm_rank(comm, rank)
}

#[unsafe(no_mangle)]
extern "C" fn PMPI_Comm_rank(comm: usize, rank: *mut c_int) -> c_int {
    comm_rank(comm, rank)
}
