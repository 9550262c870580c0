//! Finds and uses real MPI libraries. Each case runs in a process of its own, which is this test's executable again
//! with `REFRAIN_MPI_CASE` set: an MPI library is loaded and initialised at most once in a process.
//!
//! `REFRAIN_TEST_MPICH5` names the folder an MPICH 5 is installed in (with `lib/libmpi_abi.so.1`, `bin/mpiexec`), for
//! the MPI 5 ABI; without it those cases are skipped.

use crate::common;

use libc::{RTLD_GLOBAL, RTLD_LAZY, RTLD_LOCAL, c_char, c_int, c_void};
use refrain_mpi::{
    Class, Family, Library, MpiTransport, Neighbours, Pmpi, Transport, TransportError, Waiting,
};
use std::ffi::CString;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, thread};

const CASE: &str = "REFRAIN_MPI_CASE";
/// What takes longer hangs.
const LONG: Duration = Duration::from_secs(600);
const MPICH: &str = "libmpich.so.12";
const OPENMPI: &str = "libmpi.so.40";

/// Opens that library, or says why the case is skipped.
fn open(name: &str, scope: c_int) -> bool {
    let name_c = CString::new(name).expect("no NUL in it");
    // SAFETY: an MPI library's constructors do nothing before MPI_Init.
    let handle = unsafe { libc::dlopen(name_c.as_ptr(), RTLD_LAZY | scope) };
    if handle.is_null() {
        println!("skipped: {name} is not installed");
    }
    !handle.is_null()
}

/// A function of MPI by name, called with these arguments and zeros behind them, which it does not look at.
fn call(library: &Library, name: &str, args: &[usize]) {
    type Fn8 = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> c_int;
    let address = library.symbol(name).expect(name);
    // SAFETY: all arguments of the functions used here are integers or pointers; surplus ones are harmless in C's
    // calling convention.
    let function = unsafe { std::mem::transmute::<*const c_void, Fn8>(address) };
    let a = |i: usize| args.get(i).copied().unwrap_or(0);
    // SAFETY: as above, and the cases pass what the functions ask for.
    let code = unsafe { function(a(0), a(1), a(2), a(3), a(4), a(5), a(6), a(7)) };
    assert_eq!(code, 0, "{name}");
}

fn init(library: &Library) -> Pmpi {
    let abi = library.abi().expect("all constants are there");
    // SAFETY: the library's own constants, and only its handles are used below.
    let pmpi = unsafe { Pmpi::new(library, &abi) }.expect("all functions are there");
    assert_eq!(pmpi.initialized(), Ok(false));
    call(library, "PMPI_Init", &[0, 0]);
    assert_eq!(pmpi.initialized(), Ok(true));
    assert_eq!(pmpi.finalized(), Ok(false));
    pmpi
}

/// How many names were looked up.
static ASKED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn counting(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    ASKED.fetch_add(1, Relaxed);
    // SAFETY: the caller's promises are passed on.
    unsafe { libc::dlsym(handle, name) }
}

fn finds(family: Family, file: &str, lacks: &str) {
    // SAFETY: it does what the C library's does.
    let library = unsafe { Library::find_with(counting) }.expect("it was opened just now");
    // A few names for each object that is called like an MPI library; the others are not asked.
    assert!(ASKED.swap(0, Relaxed) <= 16);
    assert_eq!(library.kind(), family);
    let path = library.path().to_str().expect("ASCII").to_owned();
    assert!(path.contains(file), "{path}");
    assert!(library.exports("MPI_Send") && library.exports("PMPI_Send"));
    assert!(!library.exports(lacks) && library.symbol(lacks).is_none());
    assert!(!library.exports("MPI_No_such_thing"));
    assert!(library.exports("MPI_Dist_graph_create_adjacent"));
    assert_eq!(ASKED.swap(0, Relaxed), 6, "one look-up for each name");
    assert!(!library.exports("MPI_Send\0") && !library.exports(&"M".repeat(1000)) && !library.exports(""));
    let abi = library.abi().expect("all constants are there");
    assert_eq!(abi.family, family);
    for name in ["MPI_INT", "MPI_COMM_WORLD", "MPI_SUM", "MPI_REQUEST_NULL", "MPI_CXX_BOOL"] {
        assert!(abi.handle(name).is_some_and(|h| h != 0), "{name}");
    }
}

fn single(family: Family) {
    let library = Library::find().expect("it was opened just now");
    let pmpi = init(&library);
    let abi = pmpi.abi().clone();
    assert_eq!(abi.family, family);
    let world = abi.comm_world;
    assert_eq!((pmpi.comm_rank(world), pmpi.comm_size(world)), (Ok(0), Ok(1)));
    assert_eq!(pmpi.comm_is_inter(world), Ok(false));
    assert_eq!(pmpi.status_layout_holds(), Ok(true));
    assert!(pmpi.version().is_ok_and(|(version, _)| version >= 3));
    let name = pmpi.library_version().expect("it has one");
    assert!(name.contains(if family == Family::OpenMpi { "Open MPI" } else { "MPICH" }), "{name}");
    assert!(!name.contains('\0'));
    assert_eq!(pmpi.is_thread_main(), Ok(true));
    assert!(pmpi.thread_level().is_ok());
    assert_eq!(pmpi.error_class(0), Ok(0));

    assert_eq!(pmpi.type_size(abi.handle("MPI_DOUBLE").expect("there")), Ok(8));
    assert_eq!(pmpi.type_size(abi.handle("MPI_DOUBLE_INT").expect("there")), Ok(12));
    assert_eq!(pmpi.type_extent(abi.handle("MPI_DOUBLE_INT").expect("there")), Ok((0, 16)));
    let mut shifted = 0u64;
    let int = abi.handle("MPI_INT").expect("there");
    call(
        &library,
        "PMPI_Type_create_resized",
        &[int as usize, -4isize as usize, 1 << 40, &raw mut shifted as usize],
    );
    assert_eq!(pmpi.type_extent(shifted), Ok((-4, 1 << 40)));

    assert_eq!(pmpi.comm_world_ranks(abi.comm_self), Ok(vec![0]));
    let group = pmpi.comm_group(world).expect("it has one");
    assert_eq!((pmpi.group_size(group), pmpi.group_rank(group)), (Ok(1), Ok(0)));
    assert_eq!(pmpi.group_translate(group, &[0, 0, 0], abi.group_empty), Ok(vec![abi.undefined; 3]));
    assert_eq!(pmpi.group_world_ranks(abi.group_empty), Ok(vec![]));
    pmpi.group_free(group).expect("it is ours");

    // A Cartesian communicator of 3 x 1 dimensions, then one without a topology.
    let (ones, zeros) = ([1 as c_int; 3], [0 as c_int; 3]);
    let (dims, periods) = (ones.as_ptr() as usize, zeros.as_ptr() as usize);
    let mut cart = 0u64;
    call(&library, "PMPI_Cart_create", &[world as usize, 3, dims, periods, 0, &raw mut cart as usize]);
    assert_eq!(pmpi.cart_dimensions(cart), Ok(Some(3)));
    assert_eq!(pmpi.neighbours(cart), Ok(Neighbours { incoming: 6, outgoing: 6 }));
    assert_eq!(pmpi.cart_dimensions(world), Ok(None));
    assert_eq!(pmpi.neighbours(world), Ok(Neighbours::default()));

    let copy = pmpi.comm_dup(world).expect("it can be");
    assert_ne!(copy, world);
    pmpi.comm_set_errhandler(copy, abi.errors_return).expect("it can be");
    // Errors come back as codes now, rather than ending this process.
    let code = pmpi.send(b"x", 17, 0, copy).expect_err("there is no rank 17");
    assert_eq!(pmpi.error_class(code).ok().map(i64::from), abi.constant_int("MPI_ERR_RANK"));
    assert_eq!(pmpi.comm_free(copy), Ok(()));
    call(&library, "PMPI_Finalize", &[]);
    assert_eq!(pmpi.finalized(), Ok(true));
}

fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

/// Three ranks: groups, topologies, statuses and messages.
fn ranks() {
    let library = Library::find().expect("it was opened just now");
    let pmpi = init(&library);
    let abi = pmpi.abi().clone();
    let world = abi.comm_world;
    let rank = pmpi.comm_rank(world).expect("initialised");
    assert_eq!(pmpi.comm_size(world), Ok(3));

    // Ranks 2, 1, 0 by key; then rank 1 alone against the others, joined by an inter-communicator.
    let mut reversed = 0u64;
    call(&library, "PMPI_Comm_split", &[world as usize, 0, -rank as usize, &raw mut reversed as usize]);
    assert_eq!(pmpi.comm_world_ranks(reversed), Ok(vec![2, 1, 0]));
    let (mut half, mut inter) = (0u64, 0u64);
    let alone = rank == 1;
    call(&library, "PMPI_Comm_split", &[world as usize, usize::from(alone), 0, &raw mut half as usize]);
    let leader = if alone { 0 } else { 1 };
    let arguments = [half as usize, 0, world as usize, leader, 5, &raw mut inter as usize];
    call(&library, "PMPI_Intercomm_create", &arguments);
    assert_eq!(pmpi.comm_is_inter(inter), Ok(true));
    let (own, other) = if alone { (vec![1], vec![0, 2]) } else { (vec![0, 2], vec![1]) };
    assert_eq!(pmpi.comm_remote_size(inter), Ok(other.len() as i32));
    assert_eq!(pmpi.comm_world_ranks(inter), Ok(own));
    assert_eq!(pmpi.comm_remote_world_ranks(inter), Ok(other));
    assert_eq!(pmpi.neighbours(inter), Ok(Neighbours::default()));

    // A line 0 - 1 - 2 as a graph; as a distributed graph each rank receives from all below it.
    let (index, edges): ([c_int; 3], [c_int; 4]) = ([1, 3, 4], [1, 0, 2, 1]);
    let mut graph = 0u64;
    let (index, edges) = (index.as_ptr() as usize, edges.as_ptr() as usize);
    call(&library, "PMPI_Graph_create", &[world as usize, 3, index, edges, 0, &raw mut graph as usize]);
    let n = if rank == 1 { 2 } else { 1 };
    assert_eq!(pmpi.neighbours(graph), Ok(Neighbours { incoming: n, outgoing: n }));
    let below: Vec<c_int> = (0..rank).collect();
    let above: Vec<c_int> = (rank + 1..3).collect();
    let mut dist = 0u64;
    type Fn10 =
        unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize, usize, usize) -> c_int;
    let create = library.symbol("PMPI_Dist_graph_create_adjacent").expect("MPI 2.2 has it");
    // SAFETY: the function has ten arguments, all integers and pointers.
    let create = unsafe { std::mem::transmute::<*const c_void, Fn10>(create) };
    // SAFETY: two lists of ranks with their lengths, and no weights.
    let code = unsafe {
        create(
            world as usize,
            below.len(),
            below.as_ptr() as usize,
            abi.unweighted,
            above.len(),
            above.as_ptr() as usize,
            abi.unweighted,
            abi.info_null as usize,
            0,
            &raw mut dist as usize,
        )
    };
    assert_eq!(code, 0);
    assert_eq!(
        pmpi.neighbours(dist),
        Ok(Neighbours { incoming: rank as usize, outgoing: 2 - rank as usize })
    );

    let mut word = if rank == 2 { *b"refrain" } else { [0; 7] };
    assert_eq!(pmpi.bcast(&mut word, 2, world), Ok(()));
    assert_eq!(&word, b"refrain");
    if rank == 0 {
        pmpi.send(&[7; 11], 1, 42, world).expect("rank 1 receives");
    } else if rank == 1 {
        let status = pmpi.probe(abi.any_source, abi.any_tag, world).expect("rank 0 sends");
        assert_eq!((status.source, status.tag, status.bytes, status.cancelled), (0, 42, 11, false));
        let mut buffer = [0; 16];
        assert_eq!(pmpi.recv(&mut buffer, 0, 42, world), Ok(11));
    }

    {
        // By default this would be the end of the program.
        let _returned = pmpi.returning_errors();
        assert!(pmpi.send(&[1], 99, 0, world).is_err());
    }
    let waiting = || Waiting { most: Duration::from_secs(600), called_off: &|_| false };
    // A message that nobody sends is not waited for for ever, nor where somebody has left.
    let soon = Waiting { most: Duration::from_millis(20), ..waiting() };
    let late = MpiTransport::new(&pmpi, world, soon).expect("all ranks make it").recv((rank as u32 + 1) % 3);
    assert!(matches!(late, Err(TransportError::Late { seconds: 0, .. })), "{late:?}");
    let off = Waiting { called_off: &|_| true, ..waiting() };
    let off = MpiTransport::new(&pmpi, world, off).expect("all ranks make it").recv((rank as u32 + 1) % 3);
    assert_eq!(off, Err(TransportError::CalledOff));

    // Parts of 1000 bytes, so that a long message has a first part, many parts and a last one.
    let transport = MpiTransport::with_chunk(&pmpi, world, 1000, waiting()).expect("all ranks make it");
    let me = transport.rank();
    assert_eq!((me as i32, transport.size()), (rank, 3));
    assert_eq!(transport.send(3, b""), Err(TransportError::NoPeer { rank: 3, size: 3 }));
    assert_eq!(transport.recv(me), Err(TransportError::NoPeer { rank: me, size: 3 }));
    let first = 64 * 1024 - 8;
    let lengths = [0, 1, 999, first - 1, first, first + 1, first + 1000, first + 1001, first + 5000, 300_000];
    for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 2)] {
        for (seed, &length) in (1..).zip(&lengths) {
            if me == from {
                transport.send(to, &noise(length, seed)).expect("the other receives");
            } else if me == to {
                assert!(
                    transport.recv(from) == Ok(noise(length, seed)),
                    "{length} bytes from {from} to {to}"
                );
            }
        }
    }
    transport.close().expect("all ranks close it");
    call(&library, "PMPI_Finalize", &[]);
    println!("rank {rank} done");
}

/// The process that a case runs in.
#[test]
fn child() {
    let Ok(case) = env::var(CASE) else { return };
    let (library, case) = case.split_once(' ').expect("library, case");
    let scope = if case == "global" { RTLD_GLOBAL } else { RTLD_LOCAL };
    let family = match library {
        MPICH => Family::Mpich,
        OPENMPI => Family::OpenMpi,
        path if path.ends_with("libmpi_abi.so.1") => Family::Mpi5,
        path if path.ends_with("lib/libmpi.so.12") => Family::Mpich,
        path => panic!("no such library: {path}"),
    };
    if !open(library, scope) {
        return;
    }
    match (case, family) {
        ("find" | "global", Family::Mpich) => finds(family, library, "MPI_Isend_d"),
        ("find" | "global", Family::OpenMpi) => finds(family, library, "MPI_Isend_c"),
        ("find" | "global", Family::Mpi5) => finds(family, library, "MPIR_Dup_fn"),
        ("single", _) => single(family),
        ("ranks", _) => ranks(),
        _ => panic!("no such case: {case}"),
    }
    println!("case done");
}

/// Runs the command, and ends it if it takes too long.
fn finish(mut command: Command) -> Option<Output> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .inspect_err(|_| common::skipped(&format!("{:?} is not installed", command.get_program())))
        .ok()?;
    let deadline = Instant::now() + LONG;
    while child.try_wait().expect("it is our child").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("it is our child");
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().ok()
}

fn check(library: &str, case: &str, launcher: &[&str], done: &str, times: usize) {
    let mut words = launcher.iter().copied().map(std::ffi::OsString::from).collect::<Vec<_>>();
    words.push(env::current_exe().expect("it runs").into());
    let sessions = common::Sessions::new();
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args(["--exact", "library::child", "--nocapture", "--test-threads=1"])
        .env(CASE, format!("{library} {case}"))
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("OMPI_MCA_orte_tmpdir_base", &sessions.0);
    let Some(output) = finish(command) else { return };
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if let Some(line) = out.lines().find(|l| l.starts_with("skipped")) {
        common::skipped(&format!("{library} {case}: {line}"));
        return;
    }
    assert!(output.status.success(), "{library} {case}: {:?}\n{out}\n{err}", output.status);
    assert_eq!(out.matches(done).count(), times, "{library} {case}:\n{out}\n{err}");
}

#[test]
fn mpich_is_found() {
    check(MPICH, "find", &[], "case done", 1);
    check(MPICH, "global", &[], "case done", 1);
}

#[test]
fn openmpi_is_found() {
    check(OPENMPI, "find", &[], "case done", 1);
    check(OPENMPI, "global", &[], "case done", 1);
}

#[test]
fn mpich_alone() {
    check(MPICH, "single", &[], "case done", 1);
}

#[test]
fn openmpi_alone() {
    check(OPENMPI, "single", &[], "case done", 1);
}

#[test]
fn mpich_ranks() {
    check(MPICH, "ranks", &["mpiexec.mpich", "-n", "3"], "done", 6);
}

#[test]
fn openmpi_ranks() {
    check(OPENMPI, "ranks", &["mpiexec.openmpi", "--oversubscribe", "-n", "3"], "done", 6);
}

#[test]
fn mpich5() {
    let Ok(prefix) = env::var("REFRAIN_TEST_MPICH5") else {
        common::not_asked_for("REFRAIN_TEST_MPICH5 is not set");
        return;
    };
    let launcher = format!("{prefix}/bin/mpiexec");
    for library in [format!("{prefix}/lib/libmpi_abi.so.1"), format!("{prefix}/lib/libmpi.so.12")] {
        check(&library, "find", &[], "case done", 1);
        check(&library, "global", &[], "case done", 1);
        check(&library, "single", &[], "case done", 1);
        check(&library, "ranks", &[&launcher, "-n", "3"], "done", 6);
    }
}

#[test]
fn classes_that_are_wide_in_every_family() {
    for family in Family::ALL {
        assert_eq!(refrain_mpi::handle_size(family, Class::File), 8);
        assert_eq!(refrain_mpi::handle_size(family, Class::Keyval), 4);
    }
}
