//! Every program, traced on both MPI libraries: the dump equals the witness, the program does not notice, the trace verifies, and
//! nothing is in it that MPI leaves unwritten (`undefined`). Ignored in a plain `cargo test`, because it needs the MPI libraries and the built command.

use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, build, check, compare, run};

use crate::undefined;

fn check(library: Library, name: &str) {
    with_rubbish(library, &Program::named(name));
}

/// Runs that differ by chance are made again: once a run with random bytes is equal to one with marks, none of these is in either. What
/// is taken from them differs every time.
fn with_rubbish(library: Library, program: &Program) {
    const TIMES: usize = 5;
    let (mut random, mut marked) = (Vec::new(), Vec::new());
    let mut differ = None;
    for _ in 0..TIMES {
        let [one, other] = check::against_witness(library, program, Some(&undefined::filler(library)));
        undefined::has_no_marks(program, &other);
        random.push(one);
        marked.push(other);
        let pairs = random.iter().flat_map(|one| marked.iter().map(move |other| (one, other)));
        let all: Vec<_> = pairs.map(|(one, other)| undefined::difference(program, one, other)).collect();
        if all.contains(&None) {
            return;
        }
        differ = all.into_iter().flatten().next();
    }
    panic!("{}, {TIMES} times: {}", program.name(), differ.unwrap_or_default());
}

macro_rules! programs {
    ($($name:ident),*; mpich: $($mpich:ident),*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        const OF_MPICH: &[&str] = &[$(stringify!($mpich)),*];
        mod mpich { $(#[test] #[ignore = "needs MPI: `make test`"]
            fn $name() { super::check(super::Library::Mpich, stringify!($name)) })*
            $(#[test] #[ignore = "needs MPI: `make test`"]
            fn $mpich() { super::check(super::Library::Mpich, stringify!($mpich)) })* }
        mod openmpi { $(#[test] #[ignore = "needs MPI: `make test`"]
            fn $name() { super::check(super::Library::OpenMpi, stringify!($name)) })* }
    };
}

programs!(
    ring,
    p2p,
    completion,
    persistent,
    collectives,
    icollectives,
    vw,
    comms,
    types,
    misc,
    callbacks,
    tails,
    types_more,
    processes,
    tool,
    odds,
    rma,
    windows,
    io,
    files,
    heap,
    stencil2d,
    random_sizes,
    random_partners,
    amr,
    alltoallv,
    new_objects,
    new_strings,
    stencil3d,
    butterfly,
    transpose,
    pipeline,
    tree,
    masterworker,
    rowcol,
    stencil1d5,
    stencil2d9,
    stencil3d27,
    stencil3d_recursive,
    trailing,
    loop_figure1,
    loop_figure4,
    pop_like,
    mg_like,
    pipeline2d,
    bt_sites,
    branches,
    turns,
    cold,
    commands,
    seldom,
    jumps,
    random3,
    threads4,
    forkjoin,
    cxx,
    f_mpifh,
    f_usempi,
    f_f08,
    f_steps,
    f_steps08,
    f_rmaio,
    f_callbacks,
    f_sp_like,
    leftovers,
    vcycle,
    no_steps,
    f_sweeps;
    // What MPI 4.0 added.
    mpich: large_p2p, partitioned, coll_forms, large_types, sessions4
);

#[test]
#[ignore = "needs MPI: `make test`"]
fn with_other_arguments() {
    for library in Library::ALL {
        with_rubbish(library, &Program::named("stencil3d").with(&["3", "hand"]));
        with_rubbish(library, &Program::named("trailing").with(&["9", "drawn"]));
    }
}

/// The functions that a rank calls, without MPI_, and what it waits for.
fn sequence(calls: &[Json]) -> String {
    let short = |call: &Json| {
        let name = call.get("call").text().unwrap_or_default();
        let name = name.strip_prefix("MPI_").unwrap_or(name).to_owned();
        let count = call.get("args").get("count").int().filter(|_| name == "Waitall");
        count.map_or(name.clone(), |count| format!("{name}({count})"))
    };
    let names: Vec<_> = calls.iter().map(short).collect();
    names.join(" ")
}

#[track_caller]
fn check_sequence(name: &str, ranks: u32, rank: usize, wanted: &str) {
    for library in Library::ALL {
        let dump = run::traced(library, &Program::named(name), ranks).dump();
        let around = format!("Init Comm_rank Comm_size {wanted} Reduce Finalize");
        assert_eq!(sequence(&dump[rank]), around, "{}", library.suffix());
    }
}

/// The examples in the text on ScalaTrace II, call by call.
#[test]
#[ignore = "needs MPI: `make test`"]
fn figures_are_as_drawn() {
    let twice = "Barrier Isend Barrier Barrier Irecv Barrier Waitall(2)";
    check_sequence("loop_figure1", 1, 0, twice);
    check_sequence("loop_figure1", 2, 1, twice);
    let one = "Isend Irecv ";
    check_sequence("loop_figure4", 2, 0, &format!("{}Waitall(12)", one.repeat(6)));
    check_sequence("loop_figure4", 2, 1, format!("{one}Waitall(2) ").repeat(6).trim_end());
}

#[test]
fn no_program_is_forgotten() {
    let mut listed: Vec<_> = Program::ALL.iter().map(Program::name).collect();
    let mut tested = [NAMES, OF_MPICH].concat();
    assert!(Program::ALL.iter().all(|p| OF_MPICH.contains(&p.name()) == (p.only == Some(Library::Mpich))));
    listed.sort();
    tested.sort();
    assert_eq!(listed, tested);
}

#[test]
fn programs_about_loops_name_theirs() {
    let named: Vec<_> = Program::ALL.iter().filter(|p| p.time_step().is_some()).map(Program::name).collect();
    let wanted = [
        "amr",
        "alltoallv",
        "stencil1d5",
        "stencil2d9",
        "stencil3d27",
        "stencil3d_recursive",
        "trailing",
        "loop_figure1",
        "loop_figure4",
        "pop_like",
        "mg_like",
        "vcycle",
        "pipeline2d",
        "bt_sites",
        "branches",
        "cold",
        "commands",
        "seldom",
        "jumps",
        "random3",
        "f_steps",
        "f_steps08",
        "f_sweeps",
    ];
    assert_eq!(named, wanted);
}

/// The witness alone: programs run as without it, and it knows every object it is shown.
fn alone(library: Library) {
    let mut calls = 0;
    let mut seen = std::collections::HashSet::new();
    for program in Program::ALL.iter().filter(|p| p.runs_on(library)) {
        let ranks = program.ranks[program.ranks.len() - 1];
        let plain = run::plain(library, program, ranks);
        let (outcome, witness) = run::witnessed(library, program, ranks);
        assert_eq!(outcome.code, plain.code, "{}: {}", program.name(), outcome.stderr);
        assert_eq!(outcome.stdout, plain.stdout);
        for line in witness.iter().flatten() {
            assert!(!line.to_string().contains(":unknown\""), "{}: {line}", program.name());
        }
        assert_eq!(
            witness[0].last().and_then(|l| l.get("call").text()),
            Some("MPI_Finalize"),
            "{}",
            program.name()
        );
        calls += witness.iter().map(Vec::len).sum::<usize>();
        seen.extend(compare::functions(&witness));
    }
    println!("{}: {calls} calls of {} functions", library.suffix(), seen.len());
    let defined = build::defined(&build::witness(library));
    let unused: Vec<_> = defined.iter().filter(|f| is_plain(f) && !seen.contains(*f)).collect();
    assert!(unused.is_empty(), "no program calls {unused:?}");
}

mod long {
    use super::*;

    #[test]
    #[ignore = "needs MPI: `make test-all`"]
    fn witness_alone_mpich() {
        alone(Library::Mpich);
    }

    #[test]
    #[ignore = "needs MPI: `make test-all`"]
    fn witness_alone_openmpi() {
        alone(Library::OpenMpi);
    }

    /// Nothing comes from another rank.
    #[test]
    #[ignore = "needs MPI: `make test-all`"]
    fn one_rank() {
        for library in Library::ALL {
            for program in Program::ALL.iter().filter(|p| p.runs_on(library) && p.ranks.contains(&1)) {
                check::held(library, program, 1, run::Setting::LOOPS, None);
            }
        }
    }
}

fn is_plain(name: &str) -> bool {
    name.starts_with("MPI_")
}

/// What the witness defines, it defines under both names: Fortran enters through either.
#[test]
#[ignore = "needs MPI: `make test`"]
fn witness_defines_both_names() {
    for library in Library::ALL {
        let defined = build::defined(&build::witness(library));
        let plain: Vec<_> = defined.iter().filter(|f| is_plain(f)).collect();
        assert!(plain.len() > 190, "{plain:?}");
        for name in plain {
            assert!(defined.contains(&format!("P{name}")), "P{name} is not there");
        }
    }
}
