//! Every rank's time outside MPI and in it is in the trace, and `stats` names the rank that others wait for. Ignored in a
//! plain `cargo test`: needs the MPI libraries and the built command.

use refrain_e2e::json::Json;
use refrain_e2e::{Library, Program, build, run};

/// What `stats` says of a program in which one rank sleeps for a second, 20 times as long as anything else takes.
#[track_caller]
fn check(library: Library, args: &'static [&'static str], ranks: u32, slow: &str, function: &str) {
    let program = Program { source: "waits.c", args, ..Program::named("ring") };
    let traced = run::traced_with(library, &program, ranks, &[]);
    assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
    let trace = traced.trace.to_string_lossy().into_owned();
    let said = run::refrain(&["stats", &trace]).stdout;
    let verdict = said.lines().find(|line| line.starts_with("Rank")).unwrap_or_default();
    assert!(verdict.starts_with(slow) && verdict.contains(&format!("for it in {function}")), "{said}");
    let document = Json::parse(&run::refrain(&["stats", "--json", &trace]).stdout).unwrap();
    assert_eq!(document.get("verdict").text(), Some(verdict));
}

#[test]
#[ignore = "needs MPI: `make test`"]
fn the_rank_that_others_wait_for_is_named() {
    for library in [Library::Mpich, Library::OpenMpi] {
        check(library, &["collective"], 4, "Rank 2 spent ", "MPI_Allreduce");
        // The two ranks without a message wait at the end, in MPI_Reduce: only rank 0 waits in MPI_Recv.
        check(library, &["sender"], 2, "Rank 1 spent ", "MPI_Recv");
    }
}

/// By construction: of 20 messages of each of 4 ranks to the next one every fifth is large; those to the rank before are small.
#[test]
#[ignore = "needs MPI: `make test`"]
fn calls_are_told_by_size_and_by_peer() {
    let program = Program { source: "two_sizes.c", args: &["20"], ..Program::named("ring") };
    for library in [Library::Mpich, Library::OpenMpi] {
        let traced = run::traced_with(library, &program, 4, &[]);
        assert_eq!(traced.outcome.code, 0, "{}", traced.outcome.stderr);
        let trace = traced.trace.to_string_lossy().into_owned();
        let told = |by: &str, of: fn(&Json) -> String| -> Vec<String> {
            let said = run::refrain(&["stats", &trace, "--per", by, "--json"]);
            let document = Json::parse(&said.stdout).unwrap();
            let rows = document.get("classes").list().iter();
            let rows = rows.filter(|row| row.get("function").text() == Some("MPI_Sendrecv"));
            let row = |row: &Json| {
                let [calls, time, mean, min, max] = ["calls", "time_ns", "mean_ns", "min_ns", "max_ns"]
                    .map(|key| row.get(key).int().unwrap_or(-1));
                assert!(0 < min && min <= mean && mean <= max && max <= time, "{document}");
                format!("{}: {calls}", of(row))
            };
            rows.map(row).collect()
        };
        let bytes = |row: &Json| format!("{}", row.get("min_bytes").int().unwrap_or(-1));
        assert_eq!(told("size", bytes), ["8: 144", "4194304: 16"], "{}", library.suffix());
        let peer = |row: &Json| row.get("peer").text().unwrap_or_default().to_owned();
        assert_eq!(told("peer", peer), ["-3: 20", "-1: 60", "+1: 60", "+3: 20"], "{}", library.suffix());
    }
}

/// On one core, three ranks: whatever takes long may do so because of that.
fn ranks_that_share_a_core_are_told(library: Library) {
    let cores = std::fs::read_to_string("/proc/self/status").unwrap();
    let cores = cores.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let first = cores.split([',', '-']).next().unwrap();
    let folder = run::folder("cores");
    let program = Program::named("ring").build(library).to_string_lossy().into_owned();
    let mut words = run::words(&["taskset", "-c", first]);
    words.push(build::refrain().to_string_lossy().into_owned());
    words.extend(run::words(&["run", "--out", "ring.rfn", "--"]));
    words.extend(run::launcher(library, 3));
    words.push(program);
    // Open MPI binds ranks to cores of its own choice.
    let unbound = [("OMPI_MCA_hwloc_base_binding_policy", "none".to_owned())];
    let outcome = run::command(&folder, &words, &unbound);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let trace = folder.join("ring.rfn").to_string_lossy().into_owned();
    let told = run::refrain(&["info", &trace]).stdout;
    let line = told.lines().find_map(|line| line.strip_prefix("cores ")).unwrap_or_else(|| panic!("{told}"));
    assert_eq!(line.trim(), "1 core for 3 ranks; oversubscribed", "{told}");
    let document = Json::parse(&run::refrain(&["info", "--json", &trace]).stdout).unwrap();
    let group = &document.get("cores").list()[0];
    assert_eq!((group.get("ranks").text(), group.get("each").int()), (Some("0-2"), Some(1)), "{group}");
    assert_eq!(
        (group.get("sharing").int(), group.get("oversubscribed").clone()),
        (Some(3), Json::Bool(true)),
        "{group}"
    );
}

on_both!(ranks_that_share_a_core_are_told);
